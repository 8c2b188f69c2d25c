//! Times `gridfuse check` on files with many launches: the time must grow with their number, not with its square.
//!
//! ```text
//! cargo build -p gridfuse && cargo run -p gridfuse-tests --bin check-bench
//! ```
//!
//! A build without optimisation took, on a busy machine with two cores, in seconds of processor time:
//!
//! | launches | one a kernel | before | ten a kernel | before |
//! |---|---|---|---|---|
//! | 50 | 2.4 | 3.0 | 2.2 | 3.2 |
//! | 100 | 2.8 | 5.8 | 2.9 | 6.0 |
//! | 200 | 4.0 | 16.0 | 4.6 | 12.6 |
//! | 400 | 8.6 | 56.2 | 7.7 | 29.6 |
//!
//! Before, the rewrites that are offered read the whole file anew for each launch.

use std::fmt::Write;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Parser;
use gridfuse_tests::workspace;

/// Print how long `gridfuse check` takes for files with many launches
#[derive(Debug, Parser)]
struct Args {
    /// Numbers of launches
    #[arg(default_values_t = [50, 100, 200, 400])]
    launches: Vec<usize>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let directory = tempfile::tempdir()?;
    println!("| launches | one a kernel | ten a kernel |\n|---|---|---|");
    for launches in args.launches {
        print!("| {launches} |");
        for per_kernel in [1, 10] {
            let file = directory.path().join("program.cu");
            fs::write(&file, program(launches.div_ceil(per_kernel), per_kernel))?;
            let start = Instant::now();
            let status = Command::new(workspace::gridfuse_bin())
                .arg("check")
                .arg(&file)
                .stdout(Stdio::null())
                .status()
                .context("gridfuse doesn't start")?;
            if status.code() == Some(2) {
                bail!("gridfuse check failed");
            }
            print!(" {:.1} s |", start.elapsed().as_secs_f64());
        }
        println!();
    }
    Ok(())
}

/// A program of kernels that launch a child of their own, and a host function that launches them.
fn program(kernels: usize, launches: usize) -> String {
    let mut text = String::new();
    let mut host = String::new();
    for kernel in 0..kernels {
        let mut body = String::new();
        for launch in 0..launches {
            let _ = writeln!(
                body,
                "    if (count > {launch}) child_{kernel}<<<(count + 127) / 128, 128>>>(out, begin + {launch}, count - {launch});"
            );
        }
        let _ = write!(
            text,
            r#"__global__ void child_{kernel}(int* out, int begin, int count) {{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t < count) out[begin + t] = {kernel};
}}

__global__ void parent_{kernel}(const int* row, int* out, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
{body}}}

"#
        );
        let _ = writeln!(host, "    parent_{kernel}<<<10, 256>>>(row, out, n);");
    }
    let _ = write!(text, "void run(const int* row, int* out, int n) {{\n{host}}}\n");
    text
}
