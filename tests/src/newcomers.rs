//! The page of `docs/` that says how far a newcomer's program is from a faster one: six programs, what is found in each, what the menu of code
//! actions has at the launch, and what the first entry changes. Taken from real runs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cli::{Directory, gridfuse};
use crate::docs::NOTE;
use crate::gpu::tables::milliseconds;
use crate::lsp_client::{Capabilities, Client, apply_workspace_edit};
use crate::workspace;

/// Name of the page.
pub const NAME: &str = "newcomers.md";

/// The programs, in the fixtures.
const PROGRAMS: [(&str, &str); 6] = [
    ("bfs.cu", "breadth-first search"),
    ("quadtree.cu", "quadtree"),
    ("mandelbrot.cu", "Mandelbrot set by Mariani and Silver"),
    ("quicksort.cu", "quicksort with a wait"),
    ("matrix.cu", "sparse matrix, launches in a loop"),
    ("refine.cu", "adaptive refinement"),
];

/// What a newcomer finds in a program.
pub struct Row {
    /// The program.
    pub file: &'static str,
    /// What it does.
    pub what: &'static str,
    /// What `check` finds.
    pub findings: BTreeSet<String>,
    /// The title of the best action, as the menu has it.
    pub best: String,
    /// Its place in the menu, from 1.
    pub position: usize,
    /// Keys until the program has changed: to the launch, to the menu, through it.
    pub keys: Vec<&'static str>,
    /// Lines of the program that are gone or have become others.
    pub changed: usize,
    /// Lines that are new, or others than before.
    pub added: usize,
}

impl Row {
    /// The median times of the program and of what `optimize` makes of it, in milliseconds, where `tests/gpu/measure.sh` has measured them.
    fn times(&self) -> Option<(f64, f64)> {
        let name = format!("newcomer-{}.json", self.file.trim_end_matches(".cu"));
        let path = workspace::root().join("tests/gpu/results/measured").join(name);
        let report: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
        let variants = report["variants"].as_array()?;
        let best = variants.iter().find(|variant| variant["rewrites"] == "optimize")?;
        // A time counts where the result is the same.
        (best["outcome"]["agreement"]["agreement"] == "agrees").then_some(())?;
        Some((
            report["original"]["median_ms"].as_f64()?,
            best["outcome"]["median_ms"].as_f64()?,
        ))
    }
}

/// Looks at one program: takes the best action, and where that only makes it compile the best one after that, too.
fn row(file: &'static str, what: &'static str) -> Row {
    let root = Directory::new();
    let text =
        std::fs::read_to_string(workspace::root().join("tests/fixtures/newcomers").join(file)).expect("a program");
    root.write(file, text.as_bytes());
    let report = gridfuse(root.path(), &["check", "--format", "json", file]).json();
    let found = report["findings"].as_array().expect("findings").clone();
    let findings = found.iter().map(|finding| finding["id"].as_str().unwrap().to_owned());
    let findings: BTreeSet<String> = findings.collect();
    let mut steps = vec![step(&root, file)];
    if findings.contains("device-sync") {
        steps.push(step(&root, file));
    }
    let text_after = root.read(file);
    let (before, after): (Vec<&str>, Vec<&str>) = (text.lines().collect(), text_after.lines().collect());
    let changed = before.iter().filter(|line| !after.contains(line)).count();
    let added = after.iter().filter(|line| !before.contains(line)).count();
    let titles: Vec<&str> = steps.iter().map(|step| step.title.as_str()).collect();
    Row {
        file,
        what,
        findings,
        best: titles.join("; then "),
        position: steps.iter().map(|step| step.position).max().unwrap_or_default(),
        keys: steps.iter().flat_map(|step| step.keys.clone()).collect(),
        changed,
        added,
    }
}

/// An action that was taken.
struct Step {
    title: String,
    /// Its place in the menu, from 1.
    position: usize,
    keys: Vec<&'static str>,
}

/// Opens a program, and applies the best action at the first finding, or else at the first launch.
fn step(root: &Directory, file: &str) -> Step {
    let (path, text) = (root.file(file), root.read(file));
    let mut client = Client::spawn(workspace::gridfuse_bin(), &["lsp"]);
    client.initialize(Some(root.path()), &Capabilities::default());
    client.open(&path, &text);
    let diagnostics = client.diagnostics(&path);
    let position_of = |found: &Value| {
        client
            .encoding()
            .offset(&text, &found["range"]["start"])
            .expect("a place")
    };
    let at = match diagnostics.first() {
        Some(first) => position_of(first),
        None => text.match_indices("<<<").map(|(at, _)| at).next().expect("a launch"),
    };
    let actions = client.code_actions(&path, at..at, &[], &[]);
    let enabled: Vec<&Value> = actions.iter().filter(|action| action["disabled"].is_null()).collect();
    let title = |action: &Value| action["title"].as_str().unwrap_or_default().to_owned();
    let waits = diagnostics.iter().any(|found| found["code"] == "device-sync");
    let best = match waits {
        true => "Replace the wait for child grids",
        false => "Best: ",
    };
    let position = enabled.iter().position(|action| title(action).starts_with(best));
    let position = position.unwrap_or_else(|| panic!("{file}: no `{best}` in {actions:#?}"));
    let action = enabled[position].clone();
    let resolved = client.resolve(&action);
    apply_workspace_edit(root.path(), &resolved["edit"], client.encoding()).expect("an edit");
    client.shutdown();
    let mut keys = match diagnostics.is_empty() {
        // By the search for a symbol, or a click on the lens.
        true => vec!["a click on the lens"],
        false => vec!["F8"],
    };
    keys.push("Ctrl+.");
    keys.extend(std::iter::repeat_n("↓", position));
    keys.push("Enter");
    Step {
        title: title(&action),
        position: position + 1,
        keys,
    }
}

/// Looks at all of them.
pub fn rows() -> Vec<Row> {
    PROGRAMS.iter().map(|(file, what)| row(file, what)).collect()
}

/// Makes the page.
pub fn page(rows: &[Row]) -> String {
    let mut page = format!(
        "{NOTE}\n\n# Six programs of newcomers\n\nWhat you find when you open one of these programs for the first time, taken from real runs. The table says what \
         `gridfuse check` finds, which action is the best one, and its place in the menu at the launch (or at what stops the program). \
         Then come the keys that apply it in Visual Studio Code, and how many lines of the program it removes and adds. \
         Where the first action only makes the program compile on CUDA 12 and later, the row goes on to the one that makes it faster. \
         The preview says what an action assumes before anything changes; `gridfuse revert` takes a rewrite back. \
         The best action is the *preferred* one, too: editors have a key that applies it without a menu.\n\n\
         The last column has the time of the program and of what `optimize` makes of it, in milliseconds, on an NVIDIA H200; both compute the \
         same. `tests/gpu/measure.sh` runs them, with the inputs of `tests/gpu/newcomers`.\n\n\
         | program | findings | best action | place | keys | lines removed | lines added | time |\n|---|---|---|---|---|---|---|---|\n"
    );
    for row in rows {
        let findings: Vec<String> = row
            .findings
            .iter()
            .map(|id| format!("[{id}](diagnostics/{id}.md)"))
            .collect();
        let findings = if findings.is_empty() {
            "none".to_owned()
        } else {
            findings.join(", ")
        };
        let time = row.times().map_or("not measured".to_owned(), |(before, after)| {
            format!(
                "{} → {} ({:.1}x)",
                milliseconds(before),
                milliseconds(after),
                before / after
            )
        });
        page += &format!(
            "| [{}](../tests/fixtures/newcomers/{}) | {findings} | {} | {} | {} | {} | {} | {time} |\n",
            row.what,
            row.file,
            row.best,
            row.position,
            row.keys.join(", "),
            row.changed,
            row.added
        );
    }
    page
}
