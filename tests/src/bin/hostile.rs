//! Measures what `gridfuse` takes for the hostile projects: processor time and memory of `check` and `explain`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use gridfuse_tests::cli::directory;
use gridfuse_tests::hostile::measure::{Limits, first_answer, run};
use gridfuse_tests::hostile::{all, launch_line};
use gridfuse_tests::workspace::gridfuse_bin;
use serde_json::json;

/// Measures what `gridfuse` takes for the hostile projects.
#[derive(Parser)]
struct Arguments {
    /// The program; without it, the one that tests use.
    #[arg(long)]
    bin: Option<PathBuf>,
    /// Divides how many of the hard thing there are.
    #[arg(long, default_value_t = 1)]
    divide: usize,
    /// Seconds of processor time after which a run is ended.
    #[arg(long, default_value_t = 10.0)]
    cpu: f64,
    /// MB of memory beyond which a run is ended.
    #[arg(long, default_value_t = 2_000)]
    memory: u64,
    /// Writes the numbers as JSON there.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Names of projects; without any, all.
    names: Vec<String>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let program = arguments.bin.as_deref().unwrap_or_else(|| gridfuse_bin());
    let program = program.canonicalize().context("the program")?;
    let limits = Limits {
        cpu: arguments.cpu,
        memory: arguments.memory,
    };
    let mut rows = Vec::new();
    for hostile in all() {
        if !arguments.names.is_empty() && !arguments.names.iter().any(|name| name == hostile.name) {
            continue;
        }
        let files = (hostile.make)(arguments.divide.max(1));
        let written: Vec<(&str, &[u8])> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_slice()))
            .collect();
        let directory = directory(&written);
        let place = format!("hostile.cu:{}", launch_line(&files));
        let mut row = json!({ "name": hostile.name, "about": hostile.about });
        print!("{:28}", hostile.name);
        for (command, path) in [("check", "hostile.cu"), ("explain", &place)] {
            let ran = run(&program, directory.path(), &[command, path], limits)?;
            let ended = if ran.ended { "ended" } else { "" };
            print!(" {command} {:6.2} s {:5} MB {ended:5}", ran.cost.cpu, ran.cost.memory);
            row[command] = json!({ "cpu_s": ran.cost.cpu, "peak_mb": ran.cost.memory, "ended": ran.ended });
        }
        if let Some((path, text)) = files.first().map(|(path, text)| (path, String::from_utf8_lossy(text))) {
            let first = first_answer(&program, directory.path(), &directory.file(path), &text);
            let unfinished = if first.unfinished { "unfinished" } else { "" };
            print!(
                " hover {:6.2} s on the clock {:5} MB {unfinished:10}",
                first.wall, first.cost.memory
            );
            row["hover"] = json!({
                "wall_s": first.wall, "cpu_s": first.cost.cpu, "peak_mb": first.cost.memory, "unfinished": first.unfinished,
            });
        }
        println!();
        rows.push(row);
    }
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_string_pretty(&rows)?)?;
    }
    Ok(())
}
