//! `docs/compile-time.md`: how long a program compiles as it is and rewritten. Needs a compiler, Linux, and no GPU.

use std::fmt::Write as _;
use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use crate::gpu::plan::launch_line;
use crate::nvcc::{Nvcc, VERSION};
use crate::overhead::rewritten;
use crate::workspace;

/// The program, the launch that is rewritten, and how.
const SOURCE: &str = "tests/corpus/bfs.cu";
const LAUNCH: &str = "expand<<<";
const VARIANTS: [&str; 7] = [
    "threshold",
    "serialize",
    "aggregate-warp",
    "aggregate-block",
    "aggregate-grid",
    "aggregate-grid-host",
    "aggregate-grid-stream",
];

/// Each is compiled so often; the least counts.
const TIMES: usize = 5;

/// What the page begins with.
const NOTE: &str = "<!-- Made by `cargo run -p gridfuse-tests --bin overhead -- compile-time` with a compiler; changes belong there. -->";

/// Makes the page.
///
/// # Errors
/// When the program can't be rewritten or compiled, or the system doesn't say how long that took.
pub fn page(nvcc: &Nvcc) -> Result<String> {
    let source = fs::read_to_string(workspace::root().join(SOURCE))?;
    let line = launch_line(&source, LAUNCH)?;
    let mut text = format!(
        r#"{NOTE}

# What the runtime header costs those who compile

`{SOURCE}`, compiled by nvcc {VERSION} with `-O3 -rdc=true` for sm_90: seconds of processor time, the least of {TIMES}. `empty` is a file with nothing but `main`, which includes what nvcc includes by itself.

| | seconds | more than as it is |
| --- | ---: | ---: |
"#
    );
    let empty = least(nvcc, "int main() {}\n", None)?;
    let original = least(nvcc, &source, None)?;
    let _ = writeln!(
        text,
        "| empty | {} | |\n| as it is | {} | |",
        seconds(empty),
        seconds(original)
    );
    for rewrite in VARIANTS {
        let taken = least(nvcc, &source, Some((line, rewrite)))?;
        let more = taken.saturating_sub(original);
        let _ = writeln!(text, "| {rewrite} | {} | {} |", seconds(taken), seconds(more));
    }
    Ok(text)
}

fn seconds(hundredths: u64) -> String {
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// The least time that a program takes to compile, rewritten before.
fn least(nvcc: &Nvcc, source: &str, rewrite: Option<(usize, &str)>) -> Result<u64> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("program.cu");
    fs::write(&file, source)?;
    if let Some((line, rewrite)) = rewrite {
        ensure!(rewritten(&file, line, rewrite, &[])?, "{rewrite} isn't possible");
    }
    let mut least = u64::MAX;
    for _ in 0..TIMES {
        let before = processor_time()?;
        let mut command = nvcc.command();
        command
            .args(["-O3", "-c", "-o"])
            .arg(file.with_extension("o"))
            .arg(&file);
        let output = command.stdin(Stdio::null()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        least = least.min(processor_time()?.saturating_sub(before));
    }
    Ok(least)
}

/// What the processes have taken that this one has started and waited for, and theirs, in hundredths of a second.
fn processor_time() -> Result<u64> {
    let stat = fs::read_to_string("/proc/self/stat").context("only Linux says how long it took")?;
    // Behind the name, which may hold anything: the state, and as the 13th and 14th from there the time of user and system.
    let (_, fields) = stat.rsplit_once(')').context("no name")?;
    let mut times = fields.split_whitespace().skip(13).map(str::parse::<u64>);
    let mut next = || times.next().context("too few fields")?.context("no number");
    Ok(next()? + next()?)
}
