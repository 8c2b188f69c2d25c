//! `docs/overhead.md`: registers, memory and instructions of the corpus' kernels, as they are and rewritten. Needs a compiler and no
//! GPU: the numbers are those of the linked code.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::examples::kernels;
use crate::gpu::plan::{Plan, launch_line};
use crate::nvcc::Nvcc;
use crate::resources::{is_function, usages};
use crate::workspace;

/// What the page compares: the name, the rewrites and their options.
const VARIANTS: [(&str, &str, &[&str]); 11] = [
    ("as it is", "", &[]),
    ("threshold", "threshold", &["threshold=64"]),
    ("serialize", "serialize", &[]),
    ("coarsen", "coarsen", &["factor=4"]),
    ("aggregate-atomics", "aggregate-atomics", &[]),
    ("aggregate-warp", "aggregate-warp", &[]),
    ("aggregate-block", "aggregate-block", &[]),
    ("aggregate-multiblock", "aggregate-multiblock", &[]),
    ("aggregate-grid", "aggregate-grid", &[]),
    ("aggregate-grid-stream", "aggregate-grid-stream", &[]),
    ("optimize", "optimize", &[]),
];

/// Makes the page.
///
/// # Errors
/// When a program can't be rewritten for another reason than that it isn't eligible, or can't be compiled.
pub fn page(nvcc: &Nvcc) -> Result<String> {
    let mut text = format!(
        "{NOTE}\n\n# What the rewrites cost in registers, memory and code\n\nCompiled by nvcc {} with `-O3` for sm_90 and linked. \
         A kernel takes as many registers as the function that it calls with the most, so that both are counted; instructions are \
         those of the kernel itself, most of which never run: the code for what doesn't fit comes after the code \
         for what does. *Spilled*: bytes that the kernel stores for want of registers. \
         *Resident*: the most threads that a multiprocessor keeps at the same time, by registers and static shared memory; `gridfuse measure` \
         asks the driver for the same.\n",
        crate::nvcc::VERSION
    );
    let plan = Plan::load(&workspace::root().join("tests/gpu/plan.toml"))?;
    for program in &plan.programs {
        let Some(launch) = program.launch.as_ref().and_then(|at| at.lines().first()) else {
            continue;
        };
        let source = fs::read_to_string(workspace::root().join(&program.source))?;
        let line = launch_line(&source, launch)?;
        let launching = source.lines().nth(line - 1).unwrap_or_default();
        let mut found = kernels(&source).into_iter();
        let (parent, _) = found
            .find(|(_, body)| body.lines().any(|l| l == launching))
            .context("no parent")?;
        let child = launch.trim_end_matches("<<<");
        let _ = write!(
            text,
            r#"
## {}

| `{parent}` and `{child}` | registers | stack | shared | spilled | resident | instructions | child: registers | shared | spilled | resident | instructions |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"#,
            program.name
        );
        for (name, rewrite, options) in VARIANTS {
            let directory = tempfile::tempdir()?;
            let file = directory.path().join(format!("{}.cu", program.name));
            fs::write(&file, &source)?;
            if !rewrite.is_empty() && !rewritten(&file, line, rewrite, options)? {
                continue;
            }
            let usages = usages(nvcc, &file)?;
            let usage = |kernel: &str| {
                usages
                    .iter()
                    .find(|(symbol, _)| is_function(symbol, kernel))
                    .map(|(_, usage)| *usage)
            };
            let of_parent = usage(&parent).with_context(|| format!("{}: no `{parent}`", program.name))?;
            let made = [
                format!("{child}_coarsened_aggregated"),
                format!("{child}_aggregated"),
                format!("{child}_coarsened"),
                child.to_owned(),
            ];
            let of_child = made
                .iter()
                .find_map(|kernel| usage(kernel))
                .with_context(|| format!("{}: no `{child}`", program.name))?;
            let _ = writeln!(
                text,
                "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                of_parent.registers,
                of_parent.stack,
                of_parent.shared,
                of_parent.spilled,
                of_parent.resident_threads(),
                of_parent.instructions,
                of_child.registers,
                of_child.shared,
                of_child.spilled,
                of_child.resident_threads(),
                of_child.instructions,
            );
        }
    }
    Ok(text)
}

/// What the page begins with.
const NOTE: &str =
    "<!-- Made by `cargo run -p gridfuse-tests --bin overhead` with a compiler; changes belong there. -->";

/// Rewrites a source in place; false when that isn't possible.
pub(crate) fn rewritten(file: &Path, line: usize, rewrite: &str, options: &[&str]) -> Result<bool> {
    let mut command = Command::new(workspace::gridfuse_bin());
    command
        .arg("rewrite")
        .arg(file)
        .args(["--at", &line.to_string(), "--apply", rewrite]);
    for option in options {
        command.args(["--set", option]);
    }
    let output = command.arg("--in-place").stdin(Stdio::null()).output()?;
    match output.status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => bail!("{}", String::from_utf8_lossy(&output.stderr)),
    }
}
