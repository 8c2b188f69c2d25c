//! What goes on around a launch: in the function that launches, in those that call it, and in code of which nothing is known. A device
//! function that launches inherits what its callers do: one may ask for the error of the launch, order it by an event, wait for it.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;

use crate::api::assumption;
use crate::api::refusal::{Reason, Refusals};
use crate::edit::builder::EditBuilder;
use crate::facts::cluster::{Function, callers};
use crate::facts::launch_errors;
use crate::facts::site::Site;

/// What becomes of the error of a launch that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    /// It's there as before.
    Stay,
    /// It's there no more, which is taken for granted not to matter.
    Vanish,
}

/// The functions that call the launching one, and those that call them, as far as they are in sight.
#[derive(Debug)]
pub struct Callers<'db> {
    /// Them.
    pub all: Vec<FunctionItem<'db>>,
    /// It may be called in other ways, too.
    pub more: bool,
}

/// See [`Callers`]. A kernel has none.
pub fn callers_of_launch<'db>(site: &Site<'db>) -> Callers<'db> {
    callers_of(site.db, site.parent)
}

/// See [`Callers`], of a function that launches.
pub fn callers_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Callers<'db> {
    const MOST: usize = 100;
    let mut found = Callers {
        all: Vec::new(),
        more: false,
    };
    let mut todo = vec![function];
    while let Some(item) = todo.pop() {
        if item.signature(db).kernel {
            continue;
        }
        if found.all.len() > MOST {
            found.more = true;
            continue;
        }
        let mut refusals = Refusals::default();
        let all = callers(&Function::new(db, item), &mut refusals);
        found.more |= all.is_empty() || !refusals.is_empty();
        for (caller, _) in all {
            if caller != function && !found.all.contains(&caller) {
                found.all.push(caller);
                todo.push(caller);
            }
        }
    }
    found
}

/// That a function waits for its children: all rewrites have the same words for it, so that it is told once of a launch.
pub fn waits_for_children(who: &str, call: &str) -> String {
    format!("{who} waits for its children with {call}")
}

/// Refuses callers that wait for the launch or order it by events, as [`Site::refuse_common`] does for the launching function itself.
pub fn refuse_callers(site: &Site<'_>, refusals: &mut Refusals) {
    let parent = site.parent_name();
    for caller in callers_of_launch(site).all {
        let effects = effects(site.db, caller);
        let name = unqualified(caller.name(site.db));
        if let Some(found) = effects.syncs.first() {
            let text = waits_for_children(&format!("`{name}`, which calls `{parent}`,"), &found.what);
            refusals.add(text, Some(found.place));
        }
        if let Some(found) = effects.events.first() {
            let text = format!(
                "`{name}`, which calls `{parent}`, orders streams by events with {}",
                found.what
            );
            refusals.add(text, Some(found.place));
        }
    }
}

/// Refuses a launch where somebody asks for its errors: the launching function or one that calls it.
pub fn refuse_asked(site: &Site<'_>, refusals: &mut Refusals) {
    for function in [site.parent].into_iter().chain(callers_of_launch(site).all) {
        launch_errors::refuse_asked(
            unqualified(function.name(site.db)),
            &effects(site.db, function),
            refusals,
        );
    }
}

/// What a rewrite takes for granted of what goes on around a launch that is made elsewhere or in another way, or not made any more.
pub fn assume_nothing_else(site: &Site<'_>, errors: Errors, edit: &mut EditBuilder<'_>) {
    let db = site.db;
    let callers = callers_of_launch(site);
    for function in [site.parent].into_iter().chain(callers.all.iter().copied()) {
        let name = unqualified(function.name(db));
        let effects = effects(db, function);
        if errors == Errors::Vanish {
            launch_errors::assume_none(name, &effects, edit);
        }
        if let Some(unknown) = effects.unknown.first() {
            edit.assume(assumption::UNSEEN_CODE.of(Reason {
                text: format!(
                    "unseen code that `{name}` runs ({}) leaves streams, child grids and errors alone",
                    unknown.what
                ),
                place: Some(unknown.place),
            }));
        }
    }
    if callers.more {
        let parent = site.parent_name();
        edit.assume(assumption::UNSEEN_CODE.of(Reason {
            text: format!("unseen callers of `{parent}` leave its stream, its child grids and their errors alone"),
            place: Some(site.here()),
        }));
    }
}
