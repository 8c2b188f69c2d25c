//! What rewrites take for granted: which of them makes which assumption, as the programs of this repository show.
//!
//! The programs are those of `tests/corpus` and `tests/fixtures`, and the examples of the rewrites' pages. What they show is recorded in
//! `tests/fixtures/assumptions.expect`, from which `docs/assumptions.md` is made; a test fails when the record is stale.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::facts::launch::{LaunchId, Launchers, launches};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;
use gridfuse_codeactions::api::rewrite::{At, Offered, Options, Target};
use gridfuse_codeactions::api::source_edit::SourceEdit;
use gridfuse_codeactions::handlers::{REWRITES, of_launches, of_places};
use gridfuse_codeactions::runtime::HEADER;

use crate::cli::in_parallel;
use crate::workspace;

/// For each assumption that is made, by its id: the ids of the rewrites that make it.
pub type Made = BTreeMap<String, BTreeSet<String>>;

/// A kind that none of the programs leads to, with the rewrite that makes it, and why they don't.
pub const ELSEWHERE: [(&str, &str, &str); 1] = [(
    "other-edits",
    "revert",
    "the server makes it, which remembers what it has applied: `revert` in tests/tests/revert.rs",
)];

/// Where the record is.
pub fn record_file() -> PathBuf {
    workspace::root().join("tests/fixtures/assumptions.expect")
}

/// The record: what the programs show, and what is made elsewhere.
pub fn recorded() -> Made {
    // Without it the pages name no rewrites, and are stale.
    let text = fs::read_to_string(record_file()).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    let mut made: Made = lines
        .map(|(id, by)| (id.to_owned(), by.split(' ').map(str::to_owned).collect()))
        .collect();
    for (id, by, _) in ELSEWHERE {
        made.entry(id.to_owned()).or_default().insert(by.to_owned());
    }
    made
}

/// The text of the record: a line for each kind.
pub fn record(made: &Made) -> String {
    let line = |(id, by): (&String, &BTreeSet<String>)| {
        let by: Vec<&str> = by.iter().map(String::as_str).collect();
        format!("{id}: {}\n", by.join(" "))
    };
    made.iter().map(line).collect()
}

/// A program: what its files are called, and what is in them.
type Program = BTreeMap<PathBuf, String>;

/// Goes through all rewrites at all launches and places of all programs.
pub fn made() -> Made {
    let programs = programs();
    let mut all = Made::new();
    for made in in_parallel(&programs, made_in) {
        for (id, by) in made {
            all.entry(id).or_default().extend(by);
        }
    }
    all
}

fn programs() -> Vec<Program> {
    let tests = workspace::root().join("tests");
    let mut found = Vec::new();
    collect(&tests.join("corpus"), &mut found);
    collect(&tests.join("fixtures"), &mut found);
    for rewrite in REWRITES {
        for text in rewrite.doc.split("```cuda\n").skip(1) {
            let text = text.split("```").next().unwrap_or_default();
            found.push(BTreeMap::from([(PathBuf::from("/p/a.cu"), text.to_owned())]));
        }
    }
    found
}

/// The programs of a directory: each source with the headers beside it, or a directory of its own that is one program.
fn collect(directory: &Path, found: &mut Vec<Program>) {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    let named = |path: &Path, endings: &[&str]| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| endings.contains(&ending))
    };
    let read = |path: &PathBuf| Some((path.clone(), fs::read_to_string(path).ok()?));
    let headers: Program = paths
        .iter()
        .filter(|path| named(path, &["cuh", "h", "hpp"]))
        .filter_map(read)
        .collect();
    let sources: Vec<(PathBuf, String)> = paths
        .iter()
        .filter(|path| named(path, &["cu"]))
        .filter_map(read)
        .collect();
    // `tests/fixtures/rewrites/parent_in_another_file`
    let is_one_program = directory
        .parent()
        .is_some_and(|parent| parent.ends_with("fixtures/rewrites"));
    if is_one_program {
        found.push(headers.into_iter().chain(sources).collect());
    } else {
        found.extend(sources.into_iter().map(|source| {
            let program = headers.clone().into_iter().chain([source]);
            program.collect()
        }));
    }
    for path in paths.iter().filter(|path| path.is_dir()) {
        collect(path, found);
    }
}

fn host(program: &Program) -> Host {
    let mut host = Host::new();
    host.set_files(
        program
            .iter()
            .map(|(path, text)| (path.clone(), text.as_str().into()))
            .collect(),
    );
    // Generated code is known by it.
    let generated = program.iter().filter(|(_, text)| text.contains("gridfuse.cuh"));
    let folders = generated.filter_map(|(path, _)| path.parent());
    for folder in folders.collect::<BTreeSet<_>>() {
        host.set_file(&folder.join("gridfuse.cuh"), HEADER.clone());
    }
    host
}

/// What is made in one program.
fn made_in(program: &Program) -> Made {
    let mut made = Made::new();
    let host = host(program);
    for path in program.keys() {
        if let Some(file) = host.file(path) {
            at_launches(&host, file, &mut made);
            at_places(&host, file, &mut made);
        }
    }
    made
}

fn note(rewrite: &str, edit: &SourceEdit, made: &mut Made) {
    for assumed in &edit.assumptions {
        let by = made.entry(assumed.kind.id().to_owned()).or_default();
        by.insert(rewrite.to_owned());
    }
}

/// A function has no more launches that are looked at: further ones are like them, and `optimize` weighs each against all others.
const MOST_LAUNCHES: usize = 8;

/// Every rewrite at every launch by device code.
fn at_launches(host: &Host, file: SourceFile, made: &mut Made) {
    let db = host.db();
    for function in items(db, file).functions.iter().filter(|f| f.has_body(db)) {
        for (index, facts) in (0..).zip(launches(db, *function)).take(MOST_LAUNCHES) {
            if facts.launchers == Launchers::Host {
                continue;
            }
            let launch = LaunchId {
                function: *function,
                index,
            };
            for rewrite in of_launches() {
                if let Ok(edit) = rewrite.edit(db, launch, &Options::default()) {
                    note(rewrite.id, &edit, made);
                }
            }
        }
    }
}

/// Every rewrite of places where a diagnostic names it, or where it may have something to do with launches that were rewritten before.
fn at_places(host: &Host, file: SourceFile, made: &mut Made) {
    let db = host.db();
    let text = file.text(db);
    let written = [".launch(", "cudaDeviceSetLimit(", "_serial(", "<<<"];
    // The first of each is enough: what is generated for one launch looks as what is generated for another.
    let starts = written.iter().filter_map(|what| text.find(what));
    let starts: BTreeSet<u32> = starts.map(|at| at as u32 + 1).collect();
    let found = diagnostics(db, file);
    for rewrite in of_places() {
        let named = found
            .iter()
            .filter(|diagnostic| diagnostic.rewrites.contains(&rewrite.id));
        let named = named.map(|diagnostic| diagnostic.place);
        let everywhere = rewrite.target == Target::Place(Offered::Everywhere);
        let anywhere = starts.iter().filter(|_| everywhere).map(|at| FileRange {
            file,
            range: TextRange::empty(*at),
        });
        for place in named.chain(anywhere) {
            if let Ok(edit) = rewrite.apply(db, At::Place(place), &Options::default()) {
                note(rewrite.id, &edit, made);
            }
        }
    }
}
