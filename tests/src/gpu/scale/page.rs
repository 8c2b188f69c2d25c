//! `docs/scale.md` and its plots, made from the record of `gpu-scale`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use anyhow::Result;

use super::record::{Run, Scale, Status};
use crate::gpu::chains::table;
use crate::gpu::tables::milliseconds;
use crate::lsp_bench::plot::{self, Line};

/// The page, in `docs/`.
pub const NAME: &str = "scale.md";

const NOTE: &str = "<!-- Made by `cargo run -p gridfuse-tests --bin gpu-tables` from tests/gpu/results/scale.json; changes belong there. -->";

const INTRODUCTION: &str = r#"# How rewritten programs fare as their inputs grow

The tables hold the median of the times of whole computations on a GPU, in ms, of results that are those of a CPU. `optimize` is what
`gridfuse rewrite --apply optimize` makes of the program in `tests/corpus/`, `serial` its plain loop in each thread, `naive` the program as it
is, `outlined` what `serialize` and then `outline-iteration` make of it: that loop, with all rounds in one grid. The peers are kernels without launches by the device, written by hand (`tests/gpu/scale/peers.cu`):

- `hand-topo`: the same algorithm in two tuned kernels: all vertices are looked at, and edges are dealt out evenly, 1,024 at a time.
- `hand-queue` and `hand-queue-coop`: another algorithm. The next round's vertices are a queue, so that nobody looks at the others; in the
  second one cooperative grid runs all rounds, and the host waits for none.
- `hand-edge-N`: triangles, with N threads for an edge, which look the *shorter* of two lists up in the longer one. The program in
  `tests/corpus/` takes the lists as they come, and a thread for an edge.
- `cub`: `DeviceSelect::If`, `DeviceScan`.
"#;

/// The peer that does what the program does.
const SAME_ALGORITHM: &str = "hand-topo";

/// The page and its plots: names below `docs/`, and texts.
///
/// # Errors
/// When a plot can't be drawn.
pub fn pages(scale: &Scale) -> Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    let machine = &scale.machine;
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let mut text = format!("{NOTE}\n\n{INTRODUCTION}\n");
    let _ = writeln!(
        text,
        "{}, driver {}, CUDA {}, {}; commit {}, `{}`.\n",
        known(&machine.gpu),
        known(&machine.driver),
        known(&machine.cuda),
        known(&machine.cpu),
        scale.commit.get(..12).unwrap_or(&scale.commit),
        scale.command
    );
    text.push_str(&against(scale, SAME_ALGORITHM, "## Against the same algorithm by hand"));
    text.push_str(&against_serial(scale));
    text.push_str(&growth(scale));
    for program in programs(scale) {
        let _ = writeln!(text, "## {program}\n");
        if let Some((name, svg)) = drawn(scale, &program)? {
            let _ = writeln!(text, "![{program}: time by size]({name})\n");
            pages.insert(name, svg);
        }
        for input in inputs(scale, &program) {
            text.push_str(&times(scale, &program, &input));
        }
    }
    pages.insert(NAME.to_owned(), text.trim_end().to_owned() + "\n");
    Ok(pages)
}

fn unique<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for item in items {
        if !found.contains(&item) {
            found.push(item);
        }
    }
    found
}

fn programs(scale: &Scale) -> Vec<String> {
    unique(scale.runs.iter().map(|run| run.program.clone()))
}

fn inputs(scale: &Scale, program: &str) -> Vec<String> {
    unique(
        scale
            .runs
            .iter()
            .filter(|run| run.program == program)
            .map(|run| run.input.clone()),
    )
}

fn sizes(scale: &Scale, program: &str, input: &str) -> Vec<u64> {
    let runs = scale
        .runs
        .iter()
        .filter(|run| run.program == program && run.input == input);
    unique(runs.map(|run| run.vertices))
}

fn shown_size(vertices: u64) -> String {
    if vertices.is_power_of_two() {
        format!("2^{}", vertices.trailing_zeros())
    } else {
        vertices.to_string()
    }
}

/// A table with a column for each size.
fn by_size(first: &str, sizes: &[u64], rows: &[(String, BTreeMap<u64, String>)]) -> String {
    let head: Vec<String> = sizes.iter().map(|size| shown_size(*size)).collect();
    let head: Vec<&str> = [first].into_iter().chain(head.iter().map(String::as_str)).collect();
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|(name, cells)| {
            let cells = sizes
                .iter()
                .map(|size| cells.get(size).cloned().unwrap_or_else(|| "–".to_owned()));
            [name.clone()].into_iter().chain(cells).collect()
        })
        .collect();
    table(&head, 1, &rows) + "\n"
}

/// All sizes that rows have, in order.
fn all_sizes<T>(rows: &[(String, BTreeMap<u64, T>)]) -> Vec<u64> {
    let all: BTreeSet<u64> = rows.iter().flat_map(|(_, cells)| cells.keys().copied()).collect();
    all.into_iter().collect()
}

/// The variants of one program on one input, by size.
fn times(scale: &Scale, program: &str, input: &str) -> String {
    let runs = || {
        scale
            .runs
            .iter()
            .filter(|run| run.program == program && run.input == input)
    };
    let shown = |run: &Run| match (run.status, run.time_ms) {
        (Status::Pass, Some(time)) => milliseconds(time),
        (Status::Pass | Status::Failed, _) => "failed".to_owned(),
        (Status::Wrong, _) => "wrong".to_owned(),
        (Status::Timeout, _) => "not in time".to_owned(),
    };
    let rows: Vec<_> = unique(runs().map(|run| run.variant.clone()))
        .into_iter()
        .map(|variant| {
            let cells = runs()
                .filter(|run| run.variant == variant)
                .map(|run| (run.vertices, shown(run)));
            let cells = cells.collect();
            (variant, cells)
        })
        .collect();
    by_size(&format!("{program}, {input}"), &sizes(scale, program, input), &rows)
}

/// How many times the time of a peer `optimize` takes.
fn against(scale: &Scale, peer: &str, title: &str) -> String {
    let mut ratios: Vec<(f64, String)> = Vec::new();
    let mut rows: Vec<(String, BTreeMap<u64, f64>)> = Vec::new();
    for program in programs(scale) {
        for input in inputs(scale, &program) {
            let mut ratio_by_size = BTreeMap::new();
            for size in sizes(scale, &program, &input) {
                let time = |variant: &str| scale.time(&program, &input, size, variant);
                let Some((ours, theirs)) = time("optimize").zip(time(peer)) else {
                    continue;
                };
                ratios.push((ours / theirs, format!("{program}, {input}, {}", shown_size(size))));
                ratio_by_size.insert(size, ours / theirs);
            }
            if !ratio_by_size.is_empty() {
                rows.push((format!("{program}, {input}"), ratio_by_size));
            }
        }
    }
    let Some((worst, place)) = ratios.iter().max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return String::new();
    };
    let mean = (ratios.iter().map(|(ratio, _)| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let text = format!(
        "{title}\n\n**`optimize` takes {mean:.2} times as long as `{peer}`** (geometric mean of {}); at most {worst:.2} times ({place}).\n\n",
        ratios.len()
    );
    let sizes = all_sizes(&rows);
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(name, ratios)| {
            (
                name,
                ratios
                    .into_iter()
                    .map(|(size, ratio)| (size, format!("{ratio:.2}")))
                    .collect(),
            )
        })
        .collect();
    text + &by_size(&format!("optimize ÷ {peer}"), &sizes, &rows)
}

/// Where the plain loop is faster, by more than 5 % and 5 µs.
fn against_serial(scale: &Scale) -> String {
    let mut slower = Vec::new();
    let mut compared = 0;
    for program in programs(scale) {
        for input in inputs(scale, &program) {
            for size in sizes(scale, &program, &input) {
                let time = |variant: &str| scale.time(&program, &input, size, variant);
                let Some((ours, serial)) = time("optimize").zip(time("serial")) else {
                    continue;
                };
                compared += 1;
                if ours > serial * 1.05 && ours > serial + 0.005 {
                    slower.push(format!(
                        "| {program}, {input}, {} | {} | {} | {:.2} |",
                        shown_size(size),
                        milliseconds(serial),
                        milliseconds(ours),
                        ours / serial
                    ));
                }
            }
        }
    }
    if compared == 0 {
        return String::new();
    }
    let mut text = "## Against the serial loop\n\n".to_owned();
    if slower.is_empty() {
        let _ = writeln!(
            text,
            "`optimize` is nowhere slower by more than 5 % and 5 µs ({compared} inputs).\n"
        );
        return text;
    }
    let _ = writeln!(
        text,
        "`optimize` is slower by more than 5 % and 5 µs on {} of {compared} inputs:\n\n| | serial | optimize | optimize ÷ serial |\n| --- | ---: | ---: | ---: |\n{}\n",
        slower.len(),
        slower.join("\n")
    );
    text
}

/// The time for an edge, by size.
fn growth(scale: &Scale) -> String {
    let mut rows: Vec<(String, BTreeMap<u64, f64>)> = Vec::new();
    for program in programs(scale) {
        for input in inputs(scale, &program) {
            let runs = scale.runs.iter().filter(|run| {
                run.program == program && run.input == input && run.variant == "optimize" && run.status == Status::Pass
            });
            let times: BTreeMap<u64, f64> = runs
                .filter_map(|run| Some((run.vertices, run.time_ms? * 1e6 / run.edges? as f64)))
                .collect();
            if times.len() > 1 {
                rows.push((format!("{program}, {input}"), times));
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let sizes = all_sizes(&rows);
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(name, times)| {
            (
                name,
                times
                    .into_iter()
                    .map(|(size, time)| (size, milliseconds(time)))
                    .collect(),
            )
        })
        .collect();
    "## Growth\n\nThe time of `optimize` for an edge of the graph, in ns: it falls while the GPU isn't full.\n\n"
        .to_owned()
        + &by_size("ns for an edge", &sizes, &rows)
}

/// The plot of a program: what `optimize` and the best peer take, for each input.
fn drawn(scale: &Scale, program: &str) -> Result<Option<(String, String)>> {
    let mut lines = Vec::new();
    for input in inputs(scale, program) {
        let variants = unique(
            scale
                .runs
                .iter()
                .filter(|run| run.program == program)
                .map(|run| run.variant.as_str()),
        );
        let peer = variants.iter().find(|variant| **variant == SAME_ALGORITHM).or_else(|| {
            variants
                .iter()
                .rev()
                .find(|variant| variant.starts_with("hand-") || **variant == "cub")
        });
        let ours = variants
            .iter()
            .find(|variant| matches!(**variant, "optimize" | "promote-lookback"));
        for variant in ours.into_iter().chain(peer) {
            let points: Vec<(f64, f64)> = sizes(scale, program, &input)
                .into_iter()
                .filter_map(|size| Some((size as f64, scale.time(program, &input, size, variant)?)))
                .collect();
            if points.len() > 1 {
                let name = format!("{input}: {variant}");
                lines.push(Line { name, points });
            }
        }
    }
    if lines.is_empty() {
        return Ok(None);
    }
    let unit = if program == "bfs" || program == "sssp" || program == "tc" {
        "vertices"
    } else {
        "elements"
    };
    Ok(Some((
        format!("scale-{program}.svg"),
        plot::svg(program, unit, &lines)?,
    )))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::gpu::machine::Machine;
    use crate::gpu::scale::record::SCHEMA;

    fn run(vertices: u64, variant: &str, time: f64) -> Run {
        Run {
            program: "bfs".to_owned(),
            input: "road".to_owned(),
            vertices,
            edges: Some(4 * vertices),
            variant: variant.to_owned(),
            status: if time > 0.0 { Status::Pass } else { Status::Timeout },
            time_ms: (time > 0.0).then_some(time),
            repeats: Some(3),
            command: String::new(),
        }
    }

    #[test]
    fn ratios_and_exceptions_are_told() {
        let mut runs = Vec::new();
        for (vertices, optimize, topo, serial) in [(1024, 1.0, 2.0, 0.5), (4096, 2.0, 1.0, 3.0)] {
            runs.extend([
                run(vertices, "serial", serial),
                run(vertices, "naive", 0.0),
                run(vertices, "optimize", optimize),
                run(vertices, "hand-topo", topo),
            ]);
        }
        let scale = Scale {
            schema: SCHEMA,
            machine: Machine::default(),
            commit: "0123456789abcdef".to_owned(),
            command: "gpu-scale".to_owned(),
            runs,
        };
        let pages = pages(&scale).unwrap();
        let page = &pages[NAME];
        for wanted in [
            "**`optimize` takes 1.00 times as long as `hand-topo`** (geometric mean of 2); at most 2.00 times (bfs, road, 2^12).",
            "| bfs, road | 0.50 | 2.00 |",
            "slower by more than 5 % and 5 µs on 1 of 2 inputs",
            "| bfs, road, 2^10 | 0.500 | 1.00 | 2.00 |",
            "| naive | not in time | not in time |",
            "commit 0123456789ab,",
            "![bfs: time by size](scale-bfs.svg)",
        ] {
            assert!(page.contains(wanted), "{wanted}\n{page}");
        }
        assert!(pages["scale-bfs.svg"].contains("road: optimize"));
    }
}
