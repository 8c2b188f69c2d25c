//! Tables of results: for the terminal, and the Markdown ones in `docs/measurements.md`.
//!
//! The document is written by hand, except between the lines `<!-- begin gpu-tables: <program> -->` and
//! `<!-- end gpu-tables: <program> -->`; `summary` stands for all programs.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use comfy_table::{CellAlignment, Table, presets};

use super::record::{BuildStatus, Results, Run, RunStatus};
use super::summary;
use super::tune_record::{self, Tuned};
use super::{by_hand, chains, conformance_record, measured, random_programs, random_tables, scale, thresholds};

/// What is in the table for one run.
pub fn cell(run: Option<&Run>) -> String {
    match run {
        None => "–".to_owned(),
        Some(run) => match (run.status, run.time_ms) {
            (RunStatus::Pass, Some(time)) => milliseconds(time),
            (status, _) => status.as_str().to_owned(),
        },
    }
}

/// A time with three significant digits, and no more than are shown.
pub fn milliseconds(time: f64) -> String {
    let digits = match time {
        time if time >= 100.0 => 0,
        time if time >= 10.0 => 1,
        time if time >= 1.0 => 2,
        _ => 3,
    };
    if time < 0.1 {
        return format!("{time:.4}");
    }
    format!("{time:.digits$}")
}

/// The tables of one program for a terminal, with what went wrong below.
pub fn terminal(results: &Results) -> String {
    let mut text = String::new();
    if !results.runs.is_empty() {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let mut header = vec![format!("{} [ms]", results.program)];
        header.extend(results.inputs.iter().cloned());
        table.set_header(header);
        for variant in &results.variants {
            let mut row = vec![variant.clone()];
            row.extend(results.inputs.iter().map(|input| cell(results.run(variant, input))));
            table.add_row(row);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        text.push_str(&table.trim_fmt());
        text.push('\n');
    }
    let mut problem = |name: &str, how: &str, message: &str| {
        let first = message.lines().find(|line| !line.trim().is_empty());
        let _ = writeln!(text, "  {name}: {how}: {}", first.unwrap_or_default());
    };
    for build in &results.builds {
        let how = match build.status {
            BuildStatus::Ok => continue,
            BuildStatus::RewriteFailed => "not rewritten",
            BuildStatus::CompileFailed => "not compiled",
            BuildStatus::PlanFailed => "not built",
        };
        let message = build.message.as_deref().unwrap_or_default();
        problem(&build.variants.join(", "), how, message);
    }
    for run in &results.runs {
        if let Some(message) = &run.message
            && run.status != RunStatus::NotBuilt
        {
            let name = format!("{}/{}", run.variant, run.input);
            problem(&name, run.status.as_str(), message);
        }
    }
    for run in &results.sanitize {
        problem(
            &format!("{} under {}", run.variant, run.tool),
            run.status.as_str(),
            &run.message,
        );
    }
    text.push('\n');
    text
}

/// The Markdown of one program: a table with the best time of each input in bold, and where it is from.
pub fn markdown(results: &Results) -> String {
    let mut text = String::new();
    let mut line = |cells: Vec<String>| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    let row = |first: &str, rest: Vec<String>| {
        let mut cells = vec![first.to_owned()];
        cells.extend(rest);
        cells
    };
    let names = |names: &[String]| names.iter().map(|name| escaped(name)).collect::<Vec<_>>();
    line(row("time in ms", names(&results.inputs)));
    line(row("---", vec!["---:".to_owned(); results.inputs.len()]));
    for variant in &results.variants {
        let runs: Vec<_> = results.inputs.iter().map(|input| results.run(variant, input)).collect();
        if runs.iter().all(Option::is_none) {
            continue;
        }
        let baseline = runs.iter().flatten().any(|run| run.baseline);
        let name = match baseline {
            true => format!("{} (by hand)", escaped(variant)),
            false => escaped(variant),
        };
        let cells = runs
            .into_iter()
            .zip(&results.inputs)
            .map(|(run, input)| {
                let fastest = fastest(results, input);
                match run.and_then(|run| run.time_ms) {
                    Some(time) if Some(time) == fastest => format!("**{}**", milliseconds(time)),
                    _ => cell(run),
                }
            })
            .collect();
        line(row(&name, cells));
    }

    let unknown = || "unknown".to_owned();
    let machine = &results.machine;
    let short: String = match results.commit.split_once(' ') {
        Some((id, rest)) => format!("{} {rest}", abbreviated(id)),
        None => abbreviated(&results.commit).to_owned(),
    };
    let _ = writeln!(
        text,
        "\n{}, driver {}, CUDA {}, {}; commit {short}, {}.",
        machine.gpu.clone().unwrap_or_else(unknown),
        machine.driver.clone().unwrap_or_else(unknown),
        machine.cuda.clone().unwrap_or_else(unknown),
        machine.cpu.clone().unwrap_or_else(unknown),
        results.date.split('T').next().unwrap_or_default(),
    );

    if !results.sanitize.is_empty() {
        let mut tools: Vec<&str> = Vec::new();
        for run in &results.sanitize {
            if !tools.contains(&run.tool.as_str()) {
                tools.push(&run.tool);
            }
        }
        text.push('\n');
        text.push_str(&sanitizer_table(results, &tools));
    }
    text
}

fn sanitizer_table(results: &Results, tools: &[&str]) -> String {
    let mut text = format!("| compute-sanitizer | {} |\n", tools.join(" | "));
    let _ = writeln!(text, "| --- |{}", " --- |".repeat(tools.len()));
    for variant in &results.variants {
        let runs = || results.sanitize.iter().filter(|run| run.variant == *variant);
        if runs().next().is_none() {
            continue;
        }
        let _ = write!(text, "| {} |", escaped(variant));
        for tool in tools {
            let status = runs()
                .find(|run| run.tool == **tool)
                .map_or("–", |run| run.status.as_str());
            let _ = write!(text, " {status} |");
        }
        text.push('\n');
    }
    text
}

fn fastest(results: &Results, input: &str) -> Option<f64> {
    results
        .runs
        .iter()
        .filter(|run| run.input == input)
        .filter_map(|run| run.time_ms)
        .min_by(f64::total_cmp)
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

fn abbreviated(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Reads all result files of a directory, in the order of their names.
pub fn load_all(directory: &Path) -> Result<Vec<Results>> {
    let mut paths = Vec::new();
    if directory.is_dir() {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            let measured = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| {
                let others = [tune_record::PREFIX, random_programs::PREFIX, random_tables::EMULATED];
                ![conformance_record::FILE, scale::record::FILE].contains(&name)
                    && !others.iter().any(|prefix| name.starts_with(prefix))
            });
            if measured && path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.iter().map(|path| Results::load(path)).collect()
}

const NEW_DOCUMENT: &str = r#"# Measurements

The tables are made by `gpu-tables` from the files in `tests/gpu/results/`, which `gpu-bench` writes.
"#;

/// The section with what is said of all programs; a program can't have this name.
const SUMMARY: &str = "summary";

/// The document with its tables replaced by those of `results`; new ones go to the end.
pub fn updated(
    document: &str,
    results: &[Results],
    measured: Option<String>,
    tuned: &[(String, Tuned)],
    random: Option<String>,
) -> Result<String> {
    let mut document = match document.is_empty() {
        true => NEW_DOCUMENT.to_owned(),
        false => document.to_owned(),
    };
    let mut sections: Vec<(&str, String)> = Vec::new();
    for results in results {
        let reserved = [
            SUMMARY,
            by_hand::SECTION,
            chains::SECTION,
            measured::DIRECTORY,
            random_tables::SECTION,
            thresholds::SECTION,
            tune_record::SECTION,
        ];
        let reserved = reserved.contains(&results.program.as_str());
        ensure!(!reserved, "a program can't be named `{}`", results.program);
        sections.push((&results.program, markdown(results)));
    }
    sections.extend(summary::markdown(results).map(|text| (SUMMARY, text)));
    sections.extend(by_hand::markdown(results).map(|text| (by_hand::SECTION, text)));
    sections.extend(thresholds::markdown(results).map(|text| (thresholds::SECTION, text)));
    sections.extend(chains::markdown(results).map(|text| (chains::SECTION, text)));
    sections.extend(measured.map(|text| (measured::DIRECTORY, text)));
    sections.extend(tune_record::markdown(tuned).map(|text| (tune_record::SECTION, text)));
    sections.extend(random.map(|text| (random_tables::SECTION, text)));
    for (name, table) in &sections {
        let begin = format!("<!-- begin gpu-tables: {name} -->\n");
        let end = format!("<!-- end gpu-tables: {name} -->");
        match document.split_once(&begin) {
            Some((before, rest)) => {
                let (_, after) = rest.split_once(&end).with_context(|| format!("`{end}` is missing"))?;
                document = format!("{before}{begin}\n{table}\n{end}{after}");
            }
            None => {
                ensure!(!document.contains(&end), "`{end}` stands without its beginning");
                let _ = write!(document, "\n## {name}\n\n{begin}\n{table}\n{end}\n");
            }
        }
    }
    for line in document.lines() {
        if let Some(rest) = line.strip_prefix("<!-- begin gpu-tables: ")
            && let Some(name) = rest.strip_suffix(" -->")
            && !sections.iter().any(|(section, _)| *section == name)
        {
            bail!("the document has a table of `{name}`, but there is no such result");
        }
    }
    Ok(document)
}

/// Brings the document up to date, or, with `check`, fails if it is not.
pub fn generate(results: &Path, document: &Path, check: bool) -> Result<()> {
    let all = load_all(results)?;
    ensure!(
        !all.is_empty() || document.is_file(),
        "there are no results in {}",
        results.display()
    );
    let old = match std::fs::read_to_string(document) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be read", document.display()));
        }
    };
    let new = updated(
        &old,
        &all,
        measured::markdown(results)?,
        &tune_record::load_all(results)?,
        random_tables::markdown(results)?,
    )?;
    let mut pages = vec![(document.to_path_buf(), new)];
    let scale = results.join(scale::record::FILE);
    if scale.is_file() {
        let docs = document.parent().unwrap_or(Path::new(""));
        let made = scale::page::pages(&scale::record::Scale::load(&scale)?)?;
        pages.extend(made.into_iter().map(|(name, text)| (docs.join(name), text)));
    }
    for (path, new) in pages {
        if std::fs::read_to_string(&path).is_ok_and(|old| old == new) {
            continue;
        }
        if check {
            bail!(
                "{} does not show the results in {}: run `cargo run -p gridfuse-tests --bin gpu-tables`",
                path.display(),
                results.display()
            );
        }
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        std::fs::write(&path, new).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}
