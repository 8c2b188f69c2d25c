//! What a programmer wants to know of a launch at one glance: whether something can be done, what is best, what that takes for granted.

use gridfuse_codeactions::api::rewrite::Family;
use gridfuse_codeactions::handlers::rewrite_by_id;

use crate::describe::told_rewrites;
use crate::made::REVERT;
use crate::schema::{CollectedLaunch, Launch, RewriteVerdict};

/// More assumptions than these aren't told at a glance.
const MAX_TOLD: usize = 2;

/// The answer about a launch.
pub struct Glance<'a> {
    /// How many rewrites fit.
    pub fit: usize,
    /// The one that a menu shows first.
    pub best: Option<&'a RewriteVerdict>,
}

/// The answer about a launch whose verdicts are known.
pub fn glance(launch: &Launch) -> Glance<'_> {
    of_verdicts(told_rewrites(launch))
}

/// The answer about a launch that a rewrite has collected. Taking that back is the best only where nothing else can be done.
pub fn glance_at_collected(launch: &CollectedLaunch) -> Glance<'_> {
    let mut rewrites = launch.rewrites.iter();
    let best = match launch.rewrites.as_slice() {
        [only] if only.rewrite == REVERT => Some(only),
        _ => rewrites.find(|rewrite| Some(rewrite.rewrite) == launch.faster),
    };
    Glance {
        best,
        ..of_verdicts(launch.rewrites.iter())
    }
}

fn of_verdicts<'a>(verdicts: impl Iterator<Item = &'a RewriteVerdict>) -> Glance<'a> {
    let fitting: Vec<&RewriteVerdict> = verdicts.filter(|rewrite| fits(rewrite)).collect();
    let best = fitting.iter().copied().find(|rewrite| may_be_best(rewrite.rewrite));
    Glance {
        fit: fitting
            .iter()
            .filter(|rewrite| rewrite.plan.as_ref().is_none_or(|plan| !plan.twin))
            .count(),
        best,
    }
}

/// Fewer blocks are a preparation: by themselves they make most programs slower (docs/measurements.md).
pub fn may_be_best(id: &str) -> bool {
    rewrite_by_id(id).is_none_or(|rewrite| rewrite.family != Family::Coarsening)
}

/// Nobody is to be talked into what is known to be wrong.
fn fits(rewrite: &RewriteVerdict) -> bool {
    rewrite.verdict != "ineligible" && !rewrite.refuted
}

/// A step of a plan, `reuse-threads=grid`, by the title of its rewrite, as a part of a sentence.
fn in_words(step: &str) -> String {
    let id = step.split('=').next().unwrap_or(step);
    rewrite_by_id(id).map_or_else(|| step.to_owned(), |rewrite| first_small(rewrite.title))
}

/// A title within a sentence.
fn first_small(title: &str) -> String {
    let mut title = title.chars();
    title
        .next()
        .map(|first| first.to_lowercase().chain(title).collect())
        .unwrap_or_default()
}

impl Glance<'_> {
    /// `11 rewrites fit; best: run small grids as a loop, collect launches per grid`, without a full stop.
    pub fn sentence(&self) -> String {
        let Some(best) = self.best else {
            return match self.fit {
                0 => "no rewrite fits".to_owned(),
                1 => "1 rewrite fits; it is unlikely to be faster".to_owned(),
                fit => format!("{fit} rewrites fit; none is likely to be faster"),
            };
        };
        let steps: Vec<String> = match &best.plan {
            Some(plan) => plan.steps.iter().map(|step| in_words(&step.rewrite)).collect(),
            None => Vec::new(),
        };
        let best = match steps.is_empty() {
            true => first_small(&best.title),
            false => steps.join(", "),
        };
        match self.fit {
            1 => format!("1 rewrite fits: {best}"),
            fit => format!("{fit} rewrites fit; best: {best}"),
        }
    }

    /// What the best one takes for granted, in short: `grids of `x` are independent of each other, and 1 more`.
    pub fn assumptions(&self) -> Option<String> {
        let mut texts: Vec<&str> = Vec::new();
        for reason in &self.best?.reasons {
            if !texts.contains(&short(&reason.text)) {
                texts.push(short(&reason.text));
            }
        }
        let more = texts.len().saturating_sub(MAX_TOLD);
        texts.truncate(MAX_TOLD);
        match (texts.as_slice(), more) {
            ([], _) => None,
            (texts, 0) => Some(texts.join("; ")),
            (texts, more) => Some(format!("{}; and {more} more", texts.join("; "))),
        }
    }

    /// Where nothing fits: the reason that most rewrites share, in short.
    pub fn obstacle(launch: &Launch) -> Option<String> {
        let mut counted: Vec<(&str, usize)> = Vec::new();
        for reason in told_rewrites(launch).flat_map(|rewrite| &rewrite.reasons) {
            let text = reason.text.as_str();
            match counted.iter_mut().find(|(known, _)| *known == text) {
                Some((_, times)) => *times += 1,
                None => counted.push((text, 1)),
            }
        }
        // The first of those that stand equally often.
        let most = counted.iter().map(|(_, times)| *times).max()?;
        let (text, _) = counted.iter().find(|(_, times)| *times == most)?;
        Some((*text).to_owned())
    }
}

/// What stands before the explanation.
fn short(text: &str) -> &str {
    let end = [": ", " ("].iter().filter_map(|mark| text.find(mark)).min();
    &text[..end.unwrap_or(text.len())]
}
