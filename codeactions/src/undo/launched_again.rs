//! What has to hold for a grid that was collected, or ran in the launching thread, to be a launch again.
//!
//! A rewrite has shown it for the program that it was applied to. The code around has perhaps been edited since: a thread that has run the
//! grid by itself may use what it has computed, and one that has only collected it may still change what it will read.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::dependence::{Dependence, Touch, after};
use gridfuse_analysis::facts::escape::escapes;
use gridfuse_analysis::facts::launch::launches;
use gridfuse_analysis::hir::items::FunctionItem;

use crate::api::refusal::{Ineligible, Reason, refuse};

/// What a launch of the function as it will be takes for granted. `place`: where it is now.
///
/// # Errors
/// It would be handed memory that no child grid can use.
pub fn assumed(
    db: &dyn Db,
    function: FunctionItem<'_>,
    launch: u32,
    place: FileRange,
) -> Result<Option<Reason>, Ineligible> {
    let Some(facts) = launches(db, function).get(launch as usize) else {
        return Ok(None);
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
    let assumed = |what: String| Reason {
        text: format!(
            "{what} (its grid may come at another time than now: before the rest of `{parent}`, beside it or behind it)"
        ),
        place: Some(place),
    };
    let code = |touch: &Touch<'_>| {
        let text = touch.function.text(db);
        let words: Vec<&str> = touch.span.text(&text).split_whitespace().collect();
        words.join(" ")
    };
    Ok(match behind {
        None | Some(Dependence::None(_)) => None,
        Some(Dependence::Conflict(theirs, ours)) => Some(assumed(format!(
            "`{parent}` doesn't need `{child}` to be done behind the launch; but there it uses `{}`, and `{child}` uses `{}`",
            code(ours),
            code(theirs)
        ))),
        Some(Dependence::Unknown(_)) => Some(assumed(format!(
            "behind the launch, `{parent}` neither uses what `{child}` computes nor changes what it reads"
        ))),
    })
}
