//! All that the queries say about a workspace, as text: what stands in it depends on the files' texts alone, not on how the database came
//! to know them.

use std::fmt::Write;
use std::path::Path;

use gridfuse::describe::Describe;
use gridfuse::launches::{in_file, place_in};
use gridfuse_analysis::base::db::{Database, SourceFile, Workspace};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::{compile, preprocess};
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::diagnostics::suppress;
use gridfuse_analysis::facts::uniformity::{assumed_uniformity, settled_uniformity, uniformity};
use gridfuse_analysis::facts::{dependence, effects, escape, hidden, launch, streams};
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::resolve::{only_known_launches, other_mentions};
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{self, flow};

/// What the editor shows: diagnostics, and what a hover says of each launch, with the verdicts of all rewrites.
pub fn shown(db: &Database) -> String {
    let mut out = String::new();
    let name = |path: &Path| path.display().to_string();
    let describe = Describe {
        db,
        path: &name,
        is_untouched: &|_| false,
    };
    for file in files(db) {
        for found in diagnostics(db, file) {
            let place = |place: FileRange| format!("{}:{:?}", place.file.path(db).display(), place.range);
            let (id, severity, at) = (found.id, found.severity, place(found.place));
            say(
                &mut out,
                format_args!("{at} {severity:?} {id}: {} [{}]", found.message, found.label),
            );
            for related in &found.related {
                say(&mut out, format_args!("  {} {}", place(related.place), related.message));
            }
            say(
                &mut out,
                format_args!("  {:?} {:?} {:?}", found.help, found.rewrites, found.edit),
            );
        }
        for site in in_file(db, file) {
            let launch = describe.launch(&site);
            say(
                &mut out,
                format_args!("{}", serde_json::to_string(&launch).unwrap_or_default()),
            );
        }
    }
    out
}

/// Asks every query; what they say is only looked at for whether they say it twice the same.
pub fn all(db: &Database) {
    for file in files(db) {
        let _ = (
            visible_names(db, file),
            suppress::independent(db, file),
            suppress::allowed(db, file),
        );
        let _ = (compile::compilation(db, file), preprocess::preprocessed(db, file));
        let text = file.text(db);
        for function in items(db, file).functions.iter().copied() {
            let place = place_in(db, function, function.signature(db).name_span);
            assert!(
                text.get(place.range.start as usize..place.range.end as usize).is_some(),
                "the name of a function stands at {place:?}, which is no place"
            );
            if function.has_body(db) {
                of_function(db, function);
            }
        }
    }
}

fn of_function<'db>(db: &'db Database, function: FunctionItem<'db>) {
    let _ = (
        hir::body(db, function),
        flow::Flow::of(&hir::body(db, function)),
        hidden::hidden(db, function),
    );
    let _ = (
        uniformity(db, function),
        settled_uniformity(db, function),
        assumed_uniformity(db, function),
    );
    let _ = (
        effects::direct(db, function),
        effects::memory_effects(db, function),
        effects::summary(db, function),
    );
    let _ = (
        dependence::footprint(db, function),
        dependence::order(db, function),
        dependence::loops(db, function),
    );
    let _ = (dependence::after(db, function), dependence::prefixes(db, function));
    let _ = (escape::escapes(db, function), streams::created_streams(db, function));
    let _ = (
        launch::launches(db, function),
        launch::launch_counts(db, function),
        launch::waits_after(db, function),
    );
    let _ = (other_mentions(db, function), only_known_launches(db, function));
}

/// The files, by path.
pub fn files(db: &Database) -> Vec<SourceFile> {
    Workspace::get(db).files(db).values().copied().collect()
}

fn say(out: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string never fails.
    let _ = out.write_fmt(line);
    out.push('\n');
}
