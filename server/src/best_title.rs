//! What `optimize` does to a launch, as the title of an action: `Best: loop small grids, collect per grid`.

use std::borrow::Cow;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::LaunchId;
use gridfuse_codeactions::api::rewrite::Rewrite;
use gridfuse_codeactions::handlers::optimize::{self, plan_of};

/// What the title begins with.
const BEST: &str = "Best: ";

/// Room for the steps: editors show some 60 characters, and ` — 12 assumptions` may stand behind.
const MAX_STEPS: usize = 38;

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
        && let Ok(plan) = plan_of(db, launch)
        && let Some(title) = best(plan.steps.iter().map(|(step, _)| step.as_str()))
    {
        return title.into();
    }
    rewrite.title.into()
}

/// The title for steps (`threshold=32`). The last one decides what becomes of the launches: it stands there in any case, those before it as
/// far as there is room. `None` where a step has no words.
fn best<'s>(steps: impl Iterator<Item = &'s str>) -> Option<String> {
    let words: Option<Vec<&str>> = steps.map(in_words).collect();
    let words = words.filter(|words| !words.is_empty())?;
    let length = |first: usize| words[first..].join(", ").chars().count();
    let first = (0..words.len()).find(|first| length(*first) <= MAX_STEPS);
    Some(format!(
        "{BEST}{}",
        words[first.unwrap_or(words.len() - 1)..].join(", ")
    ))
}

/// A step in few words.
fn in_words(step: &str) -> Option<&'static str> {
    let id = step.split('=').next()?;
    let known = STEPS.iter().find(|(known, _)| *known == id);
    known.map(|(_, words)| *words)
}

#[cfg(test)]
mod tests {
    use gridfuse_codeactions::handlers::REWRITES;

    use super::{MAX_STEPS, STEPS, best};

    #[test]
    fn a_title_says_the_last_step_and_what_else_has_room() {
        for (id, words) in STEPS {
            assert!(REWRITES.iter().any(|rewrite| rewrite.id == id), "{id}");
            assert!(words.chars().count() <= MAX_STEPS, "{words}");
        }
        let title = |steps: &[&str]| best(steps.iter().copied());
        let expected = "Best: loop small grids, collect per grid";
        assert_eq!(title(&["threshold=32", "aggregate-grid"]).as_deref(), Some(expected));
        let expected = "Best: fewer blocks, collect per grid";
        assert_eq!(
            title(&["threshold=32", "coarsen=4", "aggregate-grid"]).as_deref(),
            Some(expected)
        );
        let expected = "Best: run children in the parent's threads";
        assert_eq!(
            title(&["skip-silent-stores", "reuse-threads=grid"]).as_deref(),
            Some(expected)
        );
        assert_eq!(title(&[]), None);
        assert_eq!(title(&["no-such"]), None);
    }
}
