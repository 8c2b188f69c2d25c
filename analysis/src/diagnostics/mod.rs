//! The table of diagnostics: one file each.

mod device_malloc;
mod device_sync;
pub mod diagnostic;
mod divergent_barrier;
mod empty_grid;
mod endless_recursion;
mod grid_barrier_occupancy;
mod host_iteration;
mod inaccessible_pointer;
mod launch_chain;
mod launch_in_loop;
mod launch_tree;
mod leaked_stream;
mod missing_device_linking;
mod nesting_depth;
mod origin;
mod oversized_block;
mod parallel_inner_loop;
mod partial_warp;
mod pending_launch_limit;
mod serialized_launches;
mod single_launcher_call;
pub mod suppress;
mod tail_launches;
mod tiny_child_grid;
mod too_large;
mod unchecked_launch;
mod unknown_suppression;
mod unordered_child_result;
mod unused_stream;
mod unused_suppression;
mod varying_block_size;
mod warp_spin_lock;

use std::collections::HashSet;

use crate::base::db::{Db, SourceFile};
use crate::base::file_settings::settings;
use crate::base::place::FileRange;
use crate::base::span::Span;
use crate::diagnostics::diagnostic::{Diagnostic, Finding, Kind, Related};
use crate::diagnostics::suppress::allowed;
use crate::hir::flow::Flow;
use crate::hir::items::{FunctionItem, items};
use crate::hir::runtime_header::is_runtime_header;
use crate::hir::{Body, StmtId, body};

/// Every kind of diagnostic.
pub static KINDS: &[Kind] = &[
    device_sync::KIND,
    missing_device_linking::KIND,
    inaccessible_pointer::KIND,
    oversized_block::KIND,
    divergent_barrier::KIND,
    grid_barrier_occupancy::KIND,
    warp_spin_lock::KIND,
    endless_recursion::KIND,
    nesting_depth::KIND,
    unordered_child_result::KIND,
    empty_grid::KIND,
    pending_launch_limit::KIND,
    serialized_launches::KIND,
    launch_in_loop::KIND,
    launch_tree::KIND,
    launch_chain::KIND,
    tail_launches::KIND,
    tiny_child_grid::KIND,
    single_launcher_call::KIND,
    unused_stream::KIND,
    leaked_stream::KIND,
    device_malloc::KIND,
    host_iteration::KIND,
    parallel_inner_loop::KIND,
    varying_block_size::KIND,
    partial_warp::KIND,
    unchecked_launch::KIND,
    too_large::KIND,
    unknown_suppression::KIND,
    unused_suppression::KIND,
];

/// All diagnostics of a file, by place, without those that are switched off or that a comment allows.
#[salsa::tracked]
pub fn diagnostics(db: &dyn Db, file: SourceFile) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if is_runtime_header(db, file) {
        return found;
    }
    let settings = settings(db, file);
    for function in items(db, file).functions.iter().filter(|f| f.has_body(db)) {
        for (index, finding) in findings(db, *function) {
            let kind = &KINDS[*index];
            let Some(severity) = settings.severity(kind.id, kind.severity) else {
                continue;
            };
            let place = |function: FunctionItem<'_>, span: Span| FileRange {
                file: function.file(db),
                range: span.shift(function.start(db)),
            };
            found.push(Diagnostic {
                id: kind.id,
                severity,
                place: place(*function, finding.span),
                message: finding.message.clone(),
                label: finding.label.clone(),
                related: finding
                    .related
                    .iter()
                    .map(|(function, span, message)| Related {
                        place: place(*function, *span),
                        message: message.clone(),
                    })
                    .collect(),
                help: finding.help.clone(),
                rewrites: kind.rewrites,
                edit: None,
            });
        }
    }
    let own = &too_large::KIND;
    if let Some(severity) = settings.severity(own.id, own.severity) {
        found.extend(too_large::too_large_in_file(db, file, severity));
    }
    let allowed = allowed(db, file);
    let own = &unused_suppression::KIND;
    if let Some(severity) = settings.severity(own.id, own.severity) {
        let unused = unused_suppression::unused_suppressions(db, file, severity, &found);
        found.extend(unused);
    }
    found.retain(|d| !allowed.iter().any(|allow| allow.silences(d.id, d.place.range)));
    drop_what_adds_nothing(&mut found);
    let own = &unknown_suppression::KIND;
    if let Some(severity) = settings.severity(own.id, own.severity) {
        found.extend(unknown_suppression::unknown_suppressions(db, file, severity));
    }
    found.sort_by_key(|d| (d.place.range, d.id));
    found
}

/// Of two findings at one place, the second adds nothing to the first: without the launches, or with fewer of them, there is
/// nothing left to serialize or to check. The page of each second one says so.
const COVERED: &[(&str, &str)] = &[
    ("tiny-child-grid", "serialized-launches"),
    ("tiny-child-grid", "unchecked-launch"),
    ("serialized-launches", "unchecked-launch"),
    ("launch-in-loop", "unchecked-launch"),
    ("pending-launch-limit", "unchecked-launch"),
];

fn drop_what_adds_nothing(found: &mut Vec<Diagnostic>) {
    let said: HashSet<(&'static str, FileRange)> = found.iter().map(|d| (d.id, d.place)).collect();
    let covered = |d: &Diagnostic| {
        COVERED
            .iter()
            .any(|(first, second)| *second == d.id && said.contains(&(*first, d.place)))
    };
    found.retain(|d| !covered(d));
}

/// What is said of code that never runs, too: it doesn't compile or link, or can't be read.
const OF_ANY_CODE: &[&str] = &[
    device_sync::KIND.id,
    missing_device_linking::KIND.id,
    too_large::KIND.id,
    unknown_suppression::KIND.id,
    unused_suppression::KIND.id,
];

/// The findings in one function, each with the index of its kind.
#[salsa::tracked]
fn findings<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<(usize, Finding<'db>)> {
    let all = KINDS.iter().enumerate();
    let mut found: Vec<(usize, Finding<'db>)> = all
        .flat_map(|(index, kind)| {
            (kind.find)(db, function)
                .into_iter()
                .map(move |finding| (index, finding))
        })
        .collect();
    let of_what_runs = |index: usize| KINDS.get(index).is_some_and(|kind| !OF_ANY_CODE.contains(&kind.id));
    if found.iter().any(|(index, _)| of_what_runs(*index)) {
        let body = body(db, function);
        let flow = Flow::of(&body);
        found.retain(|(index, finding)| !of_what_runs(*index) || runs(&body, &flow, finding.span));
    }
    found
}

/// Whether control may come to a place: not behind `if (false)`.
fn runs(body: &Body, flow: &Flow, place: Span) -> bool {
    let stmts = (0..body.stmts.len() as u32).map(StmtId);
    let around = stmts.filter(|s| body.stmt(*s).span.contains(place));
    let nearest = around.min_by_key(|s| body.stmt(*s).span.end - body.stmt(*s).span.start);
    body.cut || nearest.is_none_or(|s| !flow.stmt_block.contains_key(&s) || flow.reaches(s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use crate::base::command::CompileCommand;
    use crate::host::Host;

    /// The fenced program below a heading of a diagnostic's documentation.
    fn program(doc: &str, heading: &str) -> String {
        let section = doc.split(&format!("## {heading}\n")).nth(1).unwrap_or_default();
        let fenced = section.split("```cuda\n").nth(1).unwrap_or_default();
        fenced.split("```").next().unwrap_or_default().to_owned()
    }

    #[test]
    fn documentation_says_beside_what_it_is_silent() {
        for (first, second) in COVERED {
            let doc = KINDS.iter().find(|kind| kind.id == *second).map_or("", |kind| kind.doc);
            assert!(doc.contains(&format!("`{first}`")), "{second} says nothing of {first}");
        }
    }

    #[test]
    fn documentation_shows_what_it_says() {
        for kind in KINDS {
            let found = |heading: &str| -> Vec<&'static str> {
                let source = program(kind.doc, heading);
                assert!(!source.is_empty(), "{}: no program under {heading}", kind.id);
                let mut host = Host::new();
                // A program may begin with the command that compiles it.
                let first = source.lines().next().and_then(|line| line.strip_prefix("// nvcc "));
                if let Some(flags) = first {
                    let command = CompileCommand {
                        relocatable: flags.contains("-rdc=true"),
                        ..CompileCommand::default()
                    };
                    host.set_commands(BTreeMap::from([("/doc.cu".into(), vec![Arc::new(command)])]));
                }
                let file = host.set_file("/doc.cu".as_ref(), source);
                diagnostics(host.db(), file).iter().map(|d| d.id).collect()
            };
            assert!(
                kind.doc.contains("## What it does\n") && kind.doc.contains("## Why is this bad\n"),
                "{}",
                kind.id
            );
            assert!(
                found("Example").contains(&kind.id),
                "{}: the example doesn't show it",
                kind.id
            );
            assert!(
                !found("Use instead").contains(&kind.id),
                "{}: what to use instead has it, too",
                kind.id
            );
        }
    }
}
