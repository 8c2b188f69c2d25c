//! Launches that a kernel or device function makes through the functions that it calls: `parent` calls `visit`, and `visit` launches.

use std::collections::{BTreeSet, VecDeque};

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::effects::{direct, summary};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::runtime_header::is_runtime_header;

use crate::collected::{collectors, kernel_of, runs_for_a_collector};
use crate::launches::{LaunchSite, by_function, place_in};

/// So many called functions are looked at: more, nobody reads.
const MAX_CALLEES: usize = 64;

/// A launch in a function that another one calls, or that its callees call.
#[derive(Clone)]
pub struct Launch<'db> {
    /// The first call on the way there, in the function that was asked about.
    pub call: FileRange,
    /// No call on the way may mean another function.
    pub certain: bool,
    /// The function that launches.
    pub callee: FunctionItem<'db>,
    /// The child kernel's name; `None`: it is computed.
    pub child: Option<String>,
    /// Where the launch stands.
    pub place: FileRange,
    /// What is known about it; `None`: a rewrite has collected it.
    pub site: Option<LaunchSite<'db>>,
}

/// A function on the way.
struct Step<'db> {
    function: FunctionItem<'db>,
    /// The first call on the way; `None`: the way begins here.
    call: Option<FileRange>,
    certain: bool,
}

/// The launches that `function` makes through the functions that it calls, in the order in which the calls stand. None where it is host
/// code, or one that a rewrite has made.
pub fn through_calls<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Launch<'db>> {
    let signature = function.signature(db);
    let on_device = signature.kernel || signature.device;
    if !function.has_body(db) || !on_device || !leads_on(db, function) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut seen = vec![function];
    let mut todo = VecDeque::from([Step {
        function,
        call: None,
        certain: true,
    }]);
    while let Some(step) = todo.pop_front() {
        let calls = &direct(db, step.function).calls;
        for call in calls {
            let bodies = call.candidates.iter().filter(|f| f.has_body(db));
            let bodies: Vec<FunctionItem<'db>> = bodies.copied().collect();
            let certain = step.certain && bodies.len() == 1;
            let first = step.call.unwrap_or_else(|| place_in(db, function, call.span));
            for callee in bodies.into_iter().filter(|callee| leads(db, *callee)) {
                if seen.contains(&callee) || seen.len() > MAX_CALLEES {
                    continue;
                }
                seen.push(callee);
                found.extend(in_callee(db, callee, first, certain));
                todo.push_back(Step {
                    function: callee,
                    call: Some(first),
                    certain,
                });
            }
        }
    }
    found.sort_by_key(|launch| (launch.call.range, launch.place.range));
    found
}

/// The function calls something that launches.
fn leads_on(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let own: BTreeSet<Span> = direct(db, function).facts.launches.iter().copied().collect();
    let calls_what_collects = || {
        let calls = &direct(db, function).calls;
        let mut callees = calls.iter().flat_map(|call| &call.candidates);
        callees.any(|callee| leads(db, *callee))
    };
    summary(db, function).launches.iter().any(|span| !own.contains(span)) || calls_what_collects()
}

/// A device function of the user's that launches, or calls what does. A body that a rewrite has moved is its kernel's.
fn leads(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let signature = function.signature(db);
    signature.device
        && !signature.kernel
        && function.has_body(db)
        && !is_runtime_header(db, function.file(db))
        && (!summary(db, function).launches.is_empty() || runs_for_a_collector(db, function))
        && kernel_of(db, function) == function
}

/// The launches that stand in a callee itself.
fn in_callee<'db>(db: &'db dyn Db, callee: FunctionItem<'db>, call: FileRange, certain: bool) -> Vec<Launch<'db>> {
    let plain = by_function(db, callee).into_iter().map(|site| Launch {
        call,
        certain,
        callee,
        child: site.facts.kernel_name.clone(),
        place: site.place,
        site: Some(site),
    });
    let mut all: Vec<Launch<'db>> = plain.collect();
    for collector in collectors(db, callee) {
        all.extend(collector.launches.iter().map(|launch| Launch {
            call,
            certain,
            callee,
            child: Some(collector.child.name(db).to_owned()),
            place: place_in(db, callee, launch.span),
            site: None,
        }));
    }
    all
}
