//! `docs/responsiveness.md`, made from `tests/responsiveness/results.json`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;

use super::plot::{self, Line};
use super::record::{Diagnostics, Measured, Operation, Report, Situation, Source, Stats};

/// Where the JSON is that the page is made from.
pub const RESULTS: &str = "tests/responsiveness/results.json";

/// The page, in `docs/`.
pub const NAME: &str = "responsiveness.md";

const LINES_PLOT: &str = "responsiveness-lines.svg";
const FILES_PLOT: &str = "responsiveness-files.svg";

const NOTE: &str = "<!-- Made by `cargo run -p gridfuse-tests --bin gridfuse-bench -- docs` from tests/responsiveness/results.json; changes belong there. -->";

/// What is asked for after an edit.
const REQUESTS: [Operation; 6] = [
    Operation::Hover,
    Operation::Menu,
    Operation::Resolve,
    Operation::Lens,
    Operation::LensResolve,
    Operation::Hints,
];

const EDITED: [Situation; 2] = [Situation::Elsewhere, Situation::Same];

/// The page and its plots: names below `docs/`, and texts.
///
/// # Errors
/// When a plot can't be drawn.
pub fn pages(report: &Report) -> Result<BTreeMap<String, String>> {
    let mut text = format!("{NOTE}\n\n# How fast the server answers\n\n{}", introduction(report));
    let mut pages = BTreeMap::new();
    let plots = [
        (LINES_PLOT, "lines-", "A file of that many lines", "lines"),
        (
            FILES_PLOT,
            "programs-",
            "A workspace of that many files, each a program",
            "files",
        ),
    ];
    for (name, prefix, title, unit) in plots {
        let lines = plot_lines(report, prefix);
        if lines.iter().any(|line| line.points.len() > 1) {
            pages.insert(
                name.to_owned(),
                plot::svg(&format!("{title}: CPU time in ms"), unit, &lines)?,
            );
            let _ = write!(text, "\n![{title}: the median of each operation]({name})\n");
        }
    }
    text.push('\n');
    text.push_str(&tables(report));
    pages.insert(NAME.to_owned(), text);
    Ok(pages)
}

fn introduction(report: &Report) -> String {
    let machine = &report.machine;
    let known = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    let mut text = String::from(
        "Servers are driven over standard input and output, all with the same script, and take turns with each input. Times are \
         milliseconds: the processor time of the server's process until the answer, and where it says *wall*, the time on the clock. \
         `50 / 99` is the median and the 99th percentile. *Elsewhere* and *same function* say which function had been edited before \
         the request, *again* that nothing had been edited since the last one. `>` means that nothing came within the limit, `–` that \
         the server doesn't do this.\n\n",
    );
    let _ = writeln!(
        text,
        "{} cores of {}, {} MiB, Linux {}; {}, commit {}, `{}`.",
        known(machine.cores.map(|cores| cores.to_string())),
        known(machine.cpu.clone()),
        known(machine.memory_mib.map(|memory| memory.to_string())),
        known(machine.kernel.clone()),
        report.date.split('T').next().unwrap_or_default(),
        known(report.commit.clone()),
        report.command,
    );
    if let [begin, end] = machine.load[..] {
        let _ = writeln!(
            text,
            "{begin} processes ran or wanted to at the beginning and {end} at the end, in the mean of five minutes."
        );
    }
    if let Some(client) = report.client_ms {
        let _ = writeln!(
            text,
            "The client itself takes {} of the wall time, {} in the 99th percentile: a hover at a server that does nothing.",
            number(client.p50),
            number(client.p99)
        );
    }
    text.push('\n');
    for server in &report.servers {
        let version = server.version.as_deref().unwrap_or("no version");
        let _ = writeln!(text, "- {}: {version}, `{}`", server.name, server.command);
    }
    text
}

fn plot_lines(report: &Report, prefix: &str) -> Vec<Line> {
    let wanted = [
        ("open", Operation::Open, Situation::Any),
        ("edit", Operation::EditPush, Situation::Elsewhere),
        ("hover", Operation::Hover, Situation::Elsewhere),
        ("menu", Operation::Menu, Situation::Elsewhere),
        ("resolve", Operation::Resolve, Situation::Elsewhere),
    ];
    let mut lines = Vec::new();
    for (index, server) in report.servers.iter().enumerate() {
        for (name, operation, situation) in wanted {
            // Of the others, what both do when one edits.
            if index > 0 && !matches!(operation, Operation::Open | Operation::EditPush) {
                continue;
            }
            let mut points: Vec<(f64, f64)> = report
                .inputs
                .iter()
                .filter_map(|input| {
                    let size: u32 = input.name.strip_prefix(prefix)?.parse().ok()?;
                    let measured = report.find(&input.name, &server.name, operation, situation)?;
                    Some((f64::from(size), measured.cpu_ms?.p50))
                })
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if !points.is_empty() {
                lines.push(Line {
                    name: format!("{}: {name}", server.name),
                    points,
                });
            }
        }
    }
    lines
}

/// All tables.
pub fn tables(report: &Report) -> String {
    let mut text = String::new();
    if report.servers.len() > 1 {
        text.push_str(&beside(report));
    }
    for server in &report.servers {
        text.push_str(&requests(report, &server.name));
    }
    text.push_str(&workspaces(report));
    text.push_str(&memory(report));
    text.push_str(&everything(report));
    if !report.problems.is_empty() {
        text.push_str("## Problems\n\n");
        for problem in &report.problems {
            let _ = writeln!(text, "- {}", problem.lines().next().unwrap_or_default());
        }
    }
    text
}

fn row(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn head(text: &mut String, names: &[String]) {
    row(text, names);
    let mut rule = vec!["---".to_owned()];
    rule.resize(names.len(), "---:".to_owned());
    row(text, &rule);
}

/// The first server beside the others: opening and editing.
fn beside(report: &Report) -> String {
    let mut text = "## Opening and editing, side by side\n\nMedian processor time; in parentheses how many times as long as the first server's.\n\n"
        .to_owned();
    let columns = [
        ("open", Operation::Open, Situation::Any),
        ("edit elsewhere", Operation::EditPush, Situation::Elsewhere),
        ("edit, same function", Operation::EditPush, Situation::Same),
    ];
    let mut names = vec!["input".to_owned(), "lines".to_owned()];
    for (column, ..) in columns {
        names.extend(report.servers.iter().map(|server| format!("{column}: {}", server.name)));
    }
    head(&mut text, &names);
    for input in &report.inputs {
        let mut cells = vec![input.name.clone(), input.lines.to_string()];
        for (_, operation, situation) in columns {
            let find = |server: &str| report.find(&input.name, server, operation, situation);
            let median = |measured: Option<&Measured>| measured.and_then(|m| m.cpu_ms).map(|stats| stats.p50);
            let first = report.servers.first().and_then(|server| median(find(&server.name)));
            for (index, server) in report.servers.iter().enumerate() {
                let measured = find(&server.name);
                let ratio = match (first, median(measured)) {
                    (Some(first), Some(other)) if index > 0 && first > 0.0 => format!(" ({:.0}×)", other / first),
                    _ => String::new(),
                };
                cells.push(format!("{}{ratio}", median_cell(report, measured)));
            }
        }
        row(&mut text, &cells);
    }
    text.push('\n');
    text
}

fn median_cell(report: &Report, measured: Option<&Measured>) -> String {
    cell(report, measured, |measured| measured.cpu_ms, |stats| number(stats.p50))
}

fn percentiles_cell(report: &Report, measured: Option<&Measured>) -> String {
    let show = |stats: Stats| format!("{} / {}", number(stats.p50), number(stats.p99));
    cell(report, measured, |measured| measured.cpu_ms, show)
}

fn cell(
    report: &Report,
    measured: Option<&Measured>,
    which: impl Fn(&Measured) -> Option<Stats>,
    show: impl Fn(Stats) -> String,
) -> String {
    let Some(measured) = measured.filter(|measured| measured.supported) else {
        return "–".to_owned();
    };
    let shown = which(measured).map(show);
    let limit = limit(report, measured.operation);
    match (shown, measured.late) {
        (Some(shown), 0) => shown,
        (Some(shown), late) => format!("{shown}, {late} × > {limit} s"),
        (None, 0) => "–".to_owned(),
        (None, _) => format!("> {limit} s"),
    }
}

/// After how many seconds an operation is given up.
fn limit(report: &Report, operation: Operation) -> u64 {
    match operation {
        Operation::ColdIndexed => report.settings.index_s,
        _ => report.settings.limit_s,
    }
}

/// What is asked for after an edit.
fn requests(report: &Report, server: &str) -> String {
    let mut text = format!("## {server}: what is asked for after an edit\n\nProcessor time, 50 / 99.\n");
    for situation in [Situation::Elsewhere, Situation::Same, Situation::Again] {
        let heading = match situation {
            Situation::Elsewhere => "After an edit elsewhere",
            Situation::Same => "After an edit in the function of the launch",
            _ => "Again, without an edit",
        };
        let _ = write!(text, "\n{heading}:\n\n");
        let mut names = vec!["input".to_owned()];
        names.extend(REQUESTS.iter().map(|operation| operation.title().to_owned()));
        head(&mut text, &names);
        for input in &report.inputs {
            if !report
                .measured
                .iter()
                .any(|m| m.input == input.name && m.server == server)
            {
                continue;
            }
            let mut cells = vec![input.name.clone()];
            cells.extend(
                REQUESTS
                    .iter()
                    .map(|operation| percentiles_cell(report, report.find(&input.name, server, *operation, situation))),
            );
            row(&mut text, &cells);
        }
    }
    text.push('\n');
    text
}

/// From the start of the process.
fn workspaces(report: &Report) -> String {
    let mut text = "## From the start of the process\n\nMedians; *idle*: until the server did nothing any more, so has read its workspace.\n\n"
        .to_owned();
    let names = [
        "input",
        "files",
        "MB",
        "server",
        "first diagnostics",
        "wall",
        "idle",
        "wall",
        "diagnostics",
    ];
    head(&mut text, &names.map(str::to_owned));
    let mut line = |input: &Source, server: &str| {
        let find = |operation| report.find(&input.name, server, operation, Situation::Any);
        let (first, idle) = (find(Operation::ColdFirst), find(Operation::ColdIndexed));
        if first.is_none() && idle.is_none() {
            return;
        }
        let of = |d: &&Diagnostics| d.input == input.name && d.server == server;
        let diagnostics = match report.diagnostics.iter().find(of) {
            Some(found) if found.first == found.settled => found.first.to_string(),
            Some(found) => format!("{}, then {}", found.first, found.settled),
            None => "–".to_owned(),
        };
        let wall = |measured| cell(report, measured, |measured| measured.wall_ms, |stats| number(stats.p50));
        let cells = [
            input.name.clone(),
            input.files.to_string(),
            number(input.bytes as f64 / 1e6),
            server.to_owned(),
            median_cell(report, first),
            wall(first),
            median_cell(report, idle),
            wall(idle),
            diagnostics,
        ];
        row(&mut text, &cells);
    };
    for input in &report.inputs {
        for server in &report.servers {
            line(input, &server.name);
        }
    }
    text.push('\n');
    text
}

fn memory(report: &Report) -> String {
    if report.memory.is_empty() {
        return String::new();
    }
    let mut text =
        "## Memory\n\nMiB: after opening, at the end of a session, at most; and as a session edits.\n\n".to_owned();
    let names = ["input", "server", "opened", "end", "peak", "after so many edits"];
    head(&mut text, &names.map(str::to_owned));
    for memory in &report.memory {
        let edits: Vec<String> = match &memory.edits[..] {
            [] => vec!["–".to_owned()],
            series => {
                let middle = series[series.len() / 2];
                let mut shown = vec![series[0], middle, series[series.len() - 1]];
                shown.dedup();
                shown.iter().map(|(edits, mib)| format!("{edits}: {mib}")).collect()
            }
        };
        let cells = [
            memory.input.clone(),
            memory.server.clone(),
            memory.opened_mib.to_string(),
            memory.end_mib.to_string(),
            memory.peak_mib.to_string(),
            edits.join(", "),
        ];
        row(&mut text, &cells);
    }
    text.push('\n');
    text
}

/// Every number.
fn everything(report: &Report) -> String {
    let mut text = "## All numbers\n\n".to_owned();
    for input in &report.inputs {
        let _ = write!(
            text,
            "### {}\n\n{} lines, {} files; asked about `{}`, edited elsewhere in `{}`.\n\n",
            input.name, input.lines, input.files, input.launch, input.elsewhere
        );
        let names = [
            "what",
            "server",
            "times",
            "least",
            "50",
            "99",
            "most",
            "wall 50",
            "wall 99",
            "until idle",
            "slowest",
        ];
        head(&mut text, &names.map(str::to_owned));
        let situations = [Situation::Any, EDITED[0], EDITED[1], Situation::Again];
        for operation in Operation::ALL {
            for situation in situations {
                for server in &report.servers {
                    let found = report.find(&input.name, &server.name, operation, situation);
                    if let Some(measured) = found.filter(|measured| measured.supported) {
                        row(&mut text, &numbers(report, measured));
                    }
                }
            }
        }
        text.push('\n');
    }
    text
}

fn numbers(report: &Report, measured: &Measured) -> Vec<String> {
    let what = match measured.situation {
        Situation::Any => measured.operation.title().to_owned(),
        situation => format!("{}, {}", measured.operation.title(), situation.title()),
    };
    let count = match measured.late {
        0 => measured.count.to_string(),
        late => format!("{}, {late} × > {} s", measured.count, limit(report, measured.operation)),
    };
    let shown =
        |stats: Option<Stats>, which: fn(Stats) -> f64| stats.map_or("–".to_owned(), |stats| number(which(stats)));
    let (cpu, wall) = (measured.cpu_ms, measured.wall_ms);
    vec![
        what,
        measured.server.clone(),
        count,
        shown(cpu, |stats| stats.min),
        shown(cpu, |stats| stats.p50),
        shown(cpu, |stats| stats.p99),
        shown(cpu, |stats| stats.max),
        shown(wall, |stats| stats.p50),
        shown(wall, |stats| stats.p99),
        shown(measured.settled_cpu_ms, |stats| stats.p50),
        measured.slowest.clone().unwrap_or_default().replace('|', "\\|"),
    ]
}

/// A number with about three digits.
fn number(value: f64) -> String {
    let digits = match value {
        value if value >= 99.95 => 0,
        value if value >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::time::Duration;

    use super::super::record::{Machine, Samples, Server, Settings};
    use super::super::session::Spent;
    use super::*;

    fn server(name: &str) -> Server {
        Server {
            name: name.to_owned(),
            version: None,
            command: name.to_owned(),
        }
    }

    fn report() -> Report {
        let source = |name: &str, lines| Source {
            name: name.to_owned(),
            lines,
            files: 1,
            bytes: 4_000,
            launch: "child<<< (7)".to_owned(),
            elsewhere: "main".to_owned(),
        };
        let mut measured = Vec::new();
        for (server, factor) in [("gridfuse", 1), ("clangd", 40)] {
            for (input, size) in [("lines-100", 1), ("lines-1000", 10)] {
                let mut samples = Samples::default();
                let spent = Spent {
                    wall: Duration::from_millis(2 * size * factor),
                    cpu: Duration::from_millis(size * factor),
                };
                samples.add(Operation::Open, Situation::Any, spent);
                samples.add(Operation::Hover, Situation::Same, spent);
                if server == "clangd" {
                    samples.unsupported(Operation::Lens, Situation::Same);
                } else {
                    samples.late(Operation::Lens, Situation::Same);
                    samples.late(Operation::Hover, Situation::Same);
                }
                measured.extend(samples.finish(input, server));
            }
        }
        Report {
            date: "2026-01-02T03:04:05Z".to_owned(),
            commit: Some("abc".to_owned()),
            command: "gridfuse-bench run".to_owned(),
            machine: Machine::default(),
            settings: Settings {
                rounds: 1,
                opens: 1,
                edits: 1,
                requests: 1,
                keystrokes: 0,
                pace_ms: 80,
                memory_edits: 0,
                limit_s: 30,
                index_s: 60,
                budget_s: 60,
                input_budget_s: 60,
                quiet_ms: 100,
            },
            client_ms: None,
            servers: vec![server("gridfuse"), server("clangd")],
            inputs: vec![source("lines-100", 100), source("lines-1000", 1_000)],
            measured,
            diagnostics: Vec::new(),
            memory: Vec::new(),
            problems: Vec::new(),
        }
    }

    #[test]
    fn tables_say_what_was_measured_what_was_late_and_what_cannot_be() {
        let text = tables(&report());
        for piece in [
            "| lines-1000 | 1000 | 10.0 | 400 (40×) | – | – | – | – |",
            "| lines-100 | 1.00 / 1.00, 1 × > 30 s | – | – | > 30 s | – | – |",
            "| lines-100 | 40.0 / 40.0 | – | – | – | – | – |",
            "| hover, same function | gridfuse | 1, 1 × > 30 s | 1.00 |",
        ] {
            assert!(text.contains(piece), "{piece}\n{text}");
        }
    }

    #[test]
    fn a_series_of_lengths_is_plotted() {
        let report = report();
        let pages = pages(&report).unwrap();
        assert_eq!(pages.keys().collect::<Vec<_>>(), [LINES_PLOT, NAME]);
        let svg = &pages[LINES_PLOT];
        assert!(svg.contains("gridfuse: open") && svg.contains("clangd: open"), "{svg}");
        assert_eq!(*svg, super::pages(&report).unwrap()[LINES_PLOT]);
    }
}
