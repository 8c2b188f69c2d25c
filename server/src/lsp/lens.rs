//! Code lenses: how many launches a kernel contains and how many rewrites they admit; each leads to what it counts where the client can show
//! that. Counting rewrites is dear, so it is left to the request that resolves a lens, for those in sight.

use std::collections::BTreeSet;

use gridfuse_analysis::base::db::SourceFile;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_codeactions::api::rewrite::{Options, Rewrite};
use gridfuse_codeactions::handlers::optimize::plan_of;
use gridfuse_codeactions::handlers::{of_launches, optimize, place_rewrite};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower_lsp_server::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp_server::ls_types::{CodeLens, CodeLensParams, Command, Range, Uri};

use super::commands;
use super::convert::path_of;
use super::measure;
use super::measured;
use super::state::Snapshot;
use crate::collected::{self, Collector};
use crate::describe::has_twin;
use crate::launches::{LaunchSite, REPLACES_WAIT, REVERT, by_function, place_in, wait_for};
use crate::through_calls::{self, through_calls};

/// What a lens needs to be resolved later.
#[derive(Debug, Serialize, Deserialize)]
struct Data {
    uri: Uri,
    version: Option<i32>,
    /// First byte of the function's name.
    offset: u32,
    counts: Counts,
}

/// What a lens is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Counts {
    Launches,
    Rewrites,
    /// Both, for a client that lists neither.
    LaunchesAndRewrites,
    /// None: it measures.
    Time,
    /// None: it searches for better values of what is collected.
    Values,
}

/// The lenses of a file, without their titles.
pub fn code_lenses(snapshot: &Snapshot, params: &CodeLensParams) -> Vec<CodeLens> {
    let uri = &params.text_document.uri;
    let path = path_of(uri);
    let Some(file) = snapshot.file(&path) else {
        return Vec::new();
    };
    let db = &snapshot.db;
    let functions = items(db, file).functions.iter();
    functions
        .flat_map(|function| {
            let collects = collected::count(db, *function) > 0;
            let launches = !launches_in(snapshot, *function).is_empty();
            let place = place_in(db, *function, function.signature(db).name_span);
            let lens = |counts: Counts| {
                let data = Data {
                    uri: uri.clone(),
                    version: snapshot.version(&path),
                    offset: place.range.start,
                    counts,
                };
                CodeLens {
                    range: snapshot.range(place),
                    command: None,
                    data: serde_json::to_value(data).ok(),
                }
            };
            let session = &snapshot.session;
            let own = launches || collects;
            let counted: &[Counts] = match session.shows_rewrites {
                // What can be done, and measured, stands where the launch is.
                _ if !own && through_calls(db, *function).is_empty() => &[],
                _ if !own => &[Counts::Launches],
                true => &[Counts::Launches, Counts::Rewrites],
                false => &[Counts::LaunchesAndRewrites],
            };
            let measured = session.runs_measure && own;
            let time = measured.then_some(Counts::Time);
            let values = (measured && collects && !launches).then_some(Counts::Values);
            let all = counted.iter().copied().chain(time).chain(values);
            all.map(lens).collect::<Vec<_>>()
        })
        .collect()
}

/// The launches that a kernel or device function makes.
fn launches_in<'db>(snapshot: &'db Snapshot, function: FunctionItem<'db>) -> Vec<LaunchSite<'db>> {
    let mut sites = by_function(&snapshot.db, function);
    sites.retain(LaunchSite::device_side);
    sites
}

fn function_named_at(snapshot: &Snapshot, file: SourceFile, offset: u32) -> Option<FunctionItem<'_>> {
    let db = &snapshot.db;
    let functions = items(db, file).functions.iter();
    functions
        .copied()
        .find(|function| place_in(db, *function, function.signature(db).name_span).range.start == offset)
}

/// Gives a lens its title and its command.
pub fn resolve(snapshot: &Snapshot, mut lens: CodeLens) -> Result<CodeLens> {
    let data: Data = serde_json::from_value(lens.data.clone().unwrap_or_default())
        .map_err(|error| Error::invalid_params(format!("not a code lens of gridfuse: {error}")))?;
    let path = path_of(&data.uri);
    let file = snapshot.file(&path).filter(|_| snapshot.version(&path) == data.version);
    let function = file.and_then(|file| function_named_at(snapshot, file, data.offset));
    let Some(function) = function else {
        return Err(Error::new(ErrorCode::ContentModified));
    };
    if matches!(data.counts, Counts::Time | Counts::Values) {
        let line = Some(lens.range.start.line);
        let mut command = match data.counts {
            Counts::Values => measure::tune_command(&data.uri, line),
            _ => measure::command(&data.uri, line),
        };
        let measured = measured::of_function(snapshot, function);
        if let Some(best) = measured.first().filter(|_| data.counts == Counts::Time) {
            command.title = format!("{} · {}", command.title, best.phrase());
        }
        if let Some(lacking) = snapshot.lacking(&path) {
            command.title = format!("{} ({})", command.title, lacking.short());
        }
        lens.command = Some(command);
        return Ok(lens);
    }
    let sites = launches_in(snapshot, function);
    let collectors = collected::collectors(&snapshot.db, function);
    let collected = collectors.iter().flat_map(|collector| {
        let calls = collector.launches.iter();
        calls.map(move |call| (place_in(&snapshot.db, function, call.span), collector))
    });
    let collected: Vec<(FileRange, &Collector<'_>)> = collected.collect();
    let calls: Vec<FileRange> = collected.iter().map(|(place, _)| *place).collect();
    let at = lens.range.start;
    let usable = || usable_rewrites(snapshot, &sites, &collected);
    let called = through_calls(&snapshot.db, function);
    let launches = joined(
        titled_launches(sites.len(), calls.len()),
        called_title(snapshot, &called),
    );
    let places = || sites.iter().map(|site| site.place).chain(calls.iter().copied());
    lens.command = Some(match data.counts {
        Counts::Rewrites => {
            let usable = usable();
            let title = count(usable, "rewrite");
            match span_of(snapshot, places()).filter(|_| usable > 0) {
                Some(range) => command(title, commands::SHOW_REWRITES, [json!(&data.uri), json!(range)]),
                // Why there are none.
                None => commands::explain(title, &data.uri, at),
            }
        }
        counts => {
            let title = match counts {
                Counts::LaunchesAndRewrites => format!("{launches} · {}", count(usable(), "rewrite")),
                _ => launches,
            };
            if snapshot.session.shows_launches {
                let all = places().chain(called.iter().map(|launch| launch.place));
                let places: Vec<_> = all.filter_map(|place| snapshot.location(place)).collect();
                let arguments = [json!(&data.uri), json!(at), json!(places)];
                command(title, commands::SHOW_LAUNCHES, arguments)
            } else {
                commands::explain(title, &data.uri, at)
            }
        }
    });
    Ok(lens)
}

/// A command of the client.
fn command<const N: usize>(title: String, command: &str, arguments: [Value; N]) -> Command {
    Command {
        title,
        command: command.to_owned(),
        arguments: Some(arguments.into()),
    }
}

/// From the first of some places of a file to the last.
fn span_of(snapshot: &Snapshot, places: impl Iterator<Item = FileRange>) -> Option<Range> {
    let mut ranges: Vec<Range> = places.map(|place| snapshot.range(place)).collect();
    ranges.sort_by_key(|range| range.start);
    Some(Range {
        start: ranges.first()?.start,
        end: ranges.iter().map(|range| range.end).max()?,
    })
}

/// A lens that says how many launches there are, while it isn't known what can be done with them.
pub fn known(snapshot: &Snapshot, lens: CodeLens) -> CodeLens {
    let data = serde_json::from_value(lens.data.clone().unwrap_or_default());
    let title = data.ok().and_then(|data: Data| {
        let path = path_of(&data.uri);
        let file = snapshot
            .file(&path)
            .filter(|_| snapshot.version(&path) == data.version)?;
        let function = function_named_at(snapshot, file, data.offset)?;
        let sites = launches_in(snapshot, function).len();
        let own = titled_launches(sites, collected::count(&snapshot.db, function));
        let launches = joined(own, called_title(snapshot, &through_calls(&snapshot.db, function)));
        match data.counts {
            Counts::Launches => Some(launches),
            Counts::LaunchesAndRewrites => Some(format!("{launches} · …")),
            Counts::Rewrites | Counts::Time | Counts::Values => None,
        }
    });
    match title {
        Some(title) => titled(lens, title),
        None => unknown(lens),
    }
}

/// A lens whose function is still being read.
pub fn unknown(lens: CodeLens) -> CodeLens {
    titled(lens, "gridfuse is still reading this function".to_owned())
}

/// A lens that does nothing when it's clicked.
fn titled(mut lens: CodeLens, title: String) -> CodeLens {
    lens.command = Some(Command {
        title,
        ..Command::default()
    });
    lens
}

/// `2 launches, 1 collected`; `None`: there are none.
fn titled_launches(sites: usize, collected: usize) -> Option<String> {
    match (sites, collected) {
        (0, 0) => None,
        (_, 0) => Some(count(sites, "launch")),
        (0, n) => Some(count(n, "collected launch")),
        (_, n) => Some(format!("{}, {n} collected", count(sites + n, "launch"))),
    }
}

/// ``1 launch in `visit` `` or `3 launches in called functions`; `None`: no function that is called launches.
fn called_title(snapshot: &Snapshot, called: &[through_calls::Launch<'_>]) -> Option<String> {
    let first = called.first()?.callee;
    let place = match called.iter().all(|launch| launch.callee == first) {
        true => format!("`{}`", first.name(&snapshot.db)),
        false => "called functions".to_owned(),
    };
    Some(format!("{} in {place}", count(called.len(), "launch")))
}

/// What a function launches itself, and in others.
fn joined(own: Option<String>, called: Option<String>) -> String {
    match (own, called) {
        (Some(own), Some(called)) => format!("{own}, {called}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => count(0, "launch"),
    }
}

fn count(n: usize, one: &str) -> String {
    match n {
        0 => format!("no {one}"),
        1 => format!("1 {one}"),
        n => format!("{n} {one}{}", if one.ends_with("ch") { "es" } else { "s" }),
    }
}

/// How many different rewrites can be applied to one of the launches at least, or to one of those that are collected.
fn usable_rewrites(snapshot: &Snapshot, sites: &[LaunchSite<'_>], collected: &[(FileRange, &Collector<'_>)]) -> usize {
    let mut usable = BTreeSet::new();
    for (place, collector) in collected {
        let fitting = collected::fitting(&snapshot.db, *place, collector);
        // As the hover counts them: taking back is no further one.
        usable.extend(fitting.iter().map(|(rewrite, _)| rewrite.id).filter(|id| *id != REVERT));
    }
    for site in sites {
        for rewrite in of_launches() {
            // As the hover counts them.
            let verdict = || rewrite.verdict(&snapshot.db, site.id, &Options::default());
            if !usable.contains(rewrite.id) && verdict().fits() {
                usable.insert(rewrite.id);
            }
        }
    }
    // What only does what another one does is no further one.
    let db = &snapshot.db;
    let plans = sites
        .iter()
        .filter_map(|site| Some((site.id, plan_of(db, site.id).as_ref().ok()?)));
    if plans.into_iter().all(|(launch, plan)| has_twin(db, launch, plan)) {
        usable.remove(optimize::ID);
    }
    let waits = sites.iter().filter_map(|site| wait_for(&snapshot.db, site));
    let replaces = place_rewrite(REPLACES_WAIT);
    for wait in waits.filter(|_| replaces.is_some_and(|fix| !usable.contains(fix.id))) {
        let fits = |fix: &&'static Rewrite| fix.apply(&snapshot.db, wait, &Options::default()).is_ok();
        if replaces.filter(fits).is_some() {
            usable.insert(REPLACES_WAIT);
            break;
        }
    }
    usable.len()
}
