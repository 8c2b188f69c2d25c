//! What has to hold for a grid that was collected, or ran in the launching thread, to be a launch again.
//!
//! A rewrite has shown it for the program that it was applied to. The code around has perhaps been edited since: a thread that has run the
//! grid by itself may use what it has computed, and one that has only collected it may still change what it will read.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::limits::PENDING_LAUNCHES;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::dependence::{Dependence, Touch, after, beside, order};
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::escape::escapes;
use gridfuse_analysis::facts::launch::{LaunchFacts, Stream, launches, pending_launch_limit};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;

use crate::api::assumption::{self, Assumed, Assumption};
use crate::api::refusal::{Ineligible, Reason, refuse};
use crate::facts::pending::{most_launched, most_pending};
use crate::facts::surroundings::callers_of;

/// What a launch of the function as it will be takes for granted. `place`: where it is now.
///
/// # Errors
/// It would be handed memory that no child grid can use.
pub fn assumed(
    db: &dyn Db,
    function: FunctionItem<'_>,
    launch: u32,
    place: FileRange,
) -> Result<Vec<Assumed>, Ineligible> {
    let Some(facts) = launches(db, function).get(launch as usize) else {
        return Ok(Vec::new());
    };
    let child = facts.kernel_name.as_deref().unwrap_or("the kernel");
    let (parent, text) = (function.name(db), function.text(db));
    let handed = escapes(db, function)
        .iter()
        .find(|e| !e.through_parameter && facts.span.contains(e.span));
    if let Some(escape) = handed {
        return Err(refuse(
            format!(
                "`{child}` is handed `{}`, which points to local or shared memory: a grid that is launched can't use it",
                escape.span.text(&text)
            ),
            Some(place),
        ));
    }
    let behind = after(db, function).get(launch as usize).map(|after| &after.dependence);
    let assumed = |kind: &'static Assumption, what: String| {
        kind.of(Reason {
            text: format!("{what} (its grid may start earlier or later than now)"),
            place: Some(place),
        })
    };
    let at_another_time = |what: String| assumed(&assumption::OTHER_TIME, what);
    let code = |touch: &Touch<'_>| {
        let text = touch.function.text(db);
        let words: Vec<&str> = touch.span.text(&text).split_whitespace().collect();
        words.join(" ")
    };
    let used = |theirs: &Touch<'_>, ours: &Touch<'_>| {
        format!(
            "`{parent}` uses `{}`, and `{child}` uses `{}`",
            code(ours),
            code(theirs)
        )
    };
    let own = match behind {
        Some(Dependence::Conflict(theirs, ours)) => Some(at_another_time(format!(
            "`{parent}` doesn't need `{child}` to be done after the launch; check it: there {}",
            used(theirs, ours)
        ))),
        Some(Dependence::Unknown(_)) => {
            let who = match function.signature(db).kernel {
                true => format!("`{parent}` needs no result of `{child}` and changes nothing that it reads"),
                false => {
                    format!("neither `{parent}` nor what calls it needs a result of `{child}` or changes what it reads")
                }
            };
            Some(at_another_time(format!("after the launch, {who}")))
        }
        None | Some(Dependence::None(_)) => beside(db, function, launch).map(|(theirs, ours)| {
            at_another_time(format!(
                "no other thread needs `{child}` to come later, or to be done; check it: {}",
                used(&theirs, &ours)
            ))
        }),
    };
    let others = in_another_stream(db, function, launch);
    let others = others.map(|what| assumed(&assumption::LAUNCHES_INDEPENDENT, what));
    let failing = asks_for_errors(db, function, child).map(|text| {
        assumption::NO_LAUNCH_FAILS.of(Reason {
            text,
            place: Some(place),
        })
    });
    Ok(own.into_iter().chain(others).chain(failing).collect())
}

/// What is taken for granted where a launch may fail again, which what has taken its place can't, and somebody asks for errors: the
/// function, or one that calls it.
fn asks_for_errors(db: &dyn Db, function: FunctionItem<'_>, child: &str) -> Option<String> {
    let callers = callers_of(db, function).all;
    [function].into_iter().chain(callers).find_map(|asking| {
        let asked = effects(db, asking).errors.first()?.what.clone();
        Some(format!(
            "the launch of `{child}` doesn't fail and has at least one block: `{}` checks {asked}",
            unqualified(asking.name(db))
        ))
    })
}

/// What is taken for granted where a function has more launches than before: they may be more than can be pending at a time. Not where
/// nobody knows how many there are and nobody has asked for another limit than there is anyway.
pub fn room(db: &dyn Db, function: FunctionItem<'_>, why: &str, place: FileRange) -> Option<Assumed> {
    let file = function.file(db);
    let fits = match (most_launched(db, function), pending_launch_limit(db, file)) {
        (Some(sum), Some(limit)) => sum <= limit,
        (None, limit) => limit == Some(PENDING_LAUNCHES),
        (Some(_), None) => false,
    };
    (!fits).then(|| {
        assumption::PENDING_LAUNCHES.of(Reason {
            text: most_pending(db, file, why),
            place: Some(place),
        })
    })
}

/// What is taken for granted of the function's launches into other streams, which don't wait for this one.
fn in_another_stream(db: &dyn Db, function: FunctionItem<'_>, launch: u32) -> Option<String> {
    let all = launches(db, function);
    let own = all.get(launch as usize)?;
    let order = order(db, function).get(launch as usize)?;
    order.others.iter().find_map(|(other, dependence)| {
        let other = all.get(*other as usize)?;
        let apart = other.stream != own.stream || !matches!(own.stream, Stream::Null);
        let name = |facts: &LaunchFacts<'_>| facts.kernel_name.clone().unwrap_or_else(|| "another kernel".to_owned());
        (apart && !matches!(dependence, Dependence::None(_))).then(|| {
            let (own, other) = (name(own), name(other));
            match own == other {
                true => format!("grids of `{own}` don't depend on each other"),
                false => format!("the grids of `{own}` and `{other}` don't depend on each other"),
            }
        })
    })
}
