//! What `optimize` does to a launch, as the title of an action: `Best: loop small grids, collect per grid`.

use std::borrow::Cow;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::LaunchId;
use gridfuse_codeactions::api::rewrite::Rewrite;
use gridfuse_codeactions::handlers::optimize::{self, plan_of};

use crate::gain::may_gain;

/// What the title begins with.
const BEST: &str = "Best: ";

/// Room for the steps: editors show some 60 characters, and ` — 2 assumptions` may follow.
const MAX_STEPS: usize = 38;

/// The last step, in fewer words, where the title has no room for the steps before it: then it says how many there are.
const LAST_OF_SEVERAL: [(&str, &str); 9] = [
    ("aggregate-grid-host", "collect for the host"),
    ("aggregate-grid-stream", "collect, run after parent"),
    ("fire-and-forget", "launch fire-and-forget"),
    ("flatten-recursion", "flatten the recursion"),
    ("persistent-loop", "one loop, no tail launches"),
    ("promote", "turn the chain into one grid"),
    ("promote-lookback", "one grid, with look-back"),
    ("promote-overlap", "one grid, overlapped"),
    ("reuse-threads", "run in the parent's threads"),
];

/// The steps of plans in few words, by id.
const STEPS: [(&str, &str); 19] = [
    ("aggregate-atomics", "combine atomics"),
    ("aggregate-block", "collect per block"),
    ("aggregate-grid", "collect per grid"),
    ("aggregate-grid-host", "collect per grid, launch from the host"),
    ("aggregate-grid-stream", "collect per grid, run after the parent"),
    ("aggregate-malloc", "allocate together"),
    ("aggregate-multiblock", "collect per group of blocks"),
    ("aggregate-warp", "collect per warp"),
    ("coarsen", "fewer blocks"),
    ("fire-and-forget", "launch into the fire-and-forget stream"),
    ("flatten-recursion", "flatten the recursion into a worklist"),
    ("persistent-loop", "replace tail launches with a loop"),
    ("promote", "turn the launch chain into one grid"),
    ("promote-lookback", "one grid for the chain, with look-back"),
    ("promote-overlap", "one grid for the chain, overlapped"),
    ("reuse-threads", "run children in the parent's threads"),
    ("serialize", "loop all grids"),
    ("skip-silent-stores", "store only changes"),
    ("threshold", "loop small grids"),
];

/// The title of a rewrite at a launch: its own, but for `optimize`, which does another thing at each launch.
pub fn title_at(db: &dyn Db, rewrite: &Rewrite, launch: LaunchId<'_>) -> Cow<'static, str> {
    if rewrite.id == optimize::ID
        && may_gain(db, launch, rewrite.id)
        && let Ok(plan) = plan_of(db, launch)
        && let Some(title) = best(plan.steps.iter().map(|(step, _)| step.as_str()))
    {
        return title.into();
    }
    rewrite.title.into()
}

/// The title for steps (`threshold=32`): all of them in order or, where these have no room, the last one, which decides what becomes of the
/// launches, and how many there are besides. `None` where a step has no words.
fn best<'s>(steps: impl Iterator<Item = &'s str>) -> Option<String> {
    let steps: Vec<&str> = steps.collect();
    let words: Vec<&str> = steps.iter().map(|step| in_words(step)).collect::<Option<_>>()?;
    let (last, before) = words.split_last()?;
    let all = words.join(", ");
    if all.chars().count() <= MAX_STEPS {
        return Some(format!("{BEST}{all}"));
    }
    let last = steps
        .last()
        .and_then(|step| find(&LAST_OF_SEVERAL, step))
        .unwrap_or(last);
    Some(match before.len() {
        1 => format!("{BEST}{last}, +1 step"),
        more => format!("{BEST}{last}, +{more} steps"),
    })
}

/// A step in few words, as titles name it and whoever tells all steps.
pub fn in_words(step: &str) -> Option<&'static str> {
    find(&STEPS, step)
}

fn find(known: &[(&'static str, &'static str)], step: &str) -> Option<&'static str> {
    let id = step.split('=').next()?;
    let found = known.iter().find(|(known, _)| *known == id);
    found.map(|(_, words)| *words)
}

#[cfg(test)]
mod tests {
    use gridfuse_codeactions::handlers::REWRITES;

    use super::{LAST_OF_SEVERAL, MAX_STEPS, STEPS, best, in_words};

    #[test]
    fn words_have_room() {
        for (id, words) in STEPS {
            assert!(REWRITES.iter().any(|rewrite| rewrite.id == id), "{id}");
            assert!(words.chars().count() <= MAX_STEPS, "{words}");
            let title = best(["threshold", "coarsen", "skip-silent-stores", id].into_iter()).unwrap_or_default();
            assert!(title.chars().count() <= MAX_STEPS + "Best: ".len(), "{title}");
            assert!(title.ends_with(", +3 steps"), "{title}");
        }
        for (id, _) in LAST_OF_SEVERAL {
            assert!(in_words(id).is_some(), "{id}");
        }
    }

    #[test]
    fn a_title_says_the_last_step_and_hides_none() {
        let title = |steps: &[&str]| best(steps.iter().copied());
        let expected = "Best: loop small grids, collect per grid";
        assert_eq!(title(&["threshold=32", "aggregate-grid"]).as_deref(), Some(expected));
        let expected = "Best: collect per grid, +2 steps";
        assert_eq!(
            title(&["threshold=32", "coarsen=4", "aggregate-grid"]).as_deref(),
            Some(expected)
        );
        let expected = "Best: run in the parent's threads, +1 step";
        assert_eq!(
            title(&["skip-silent-stores", "reuse-threads=grid"]).as_deref(),
            Some(expected)
        );
        let expected = "Best: run children in the parent's threads";
        assert_eq!(title(&["reuse-threads=grid"]).as_deref(), Some(expected));
        assert_eq!(title(&[]), None);
        assert_eq!(title(&["no-such"]), None);
    }
}
