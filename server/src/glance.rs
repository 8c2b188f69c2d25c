//! What a programmer wants to know of a launch at one glance: whether something can be done, what is best, what that takes for granted.

use crate::best_title::in_words;
use crate::describe::told_rewrites;
use crate::launches::{REPLACES_WAIT, REVERT};
use crate::schema::{CollectedLaunch, Launch, RewriteVerdict};

/// A line about assumptions isn't longer: the full texts stand below it.
const MAX_ASSUMED: usize = 100;

/// The answer about a launch.
pub struct Glance<'a> {
    /// How many rewrites fit, besides the one that takes back what was made.
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
    let best = fitting.iter().copied().find(|rewrite| rewrite.may_gain);
    Glance {
        fit: fitting
            .iter()
            .filter(|rewrite| rewrite.plan.as_ref().is_none_or(|plan| !plan.twin) && rewrite.rewrite != REVERT)
            .count(),
        best,
    }
}

/// Nobody is to be talked into what is known to be wrong.
fn fits(rewrite: &RewriteVerdict) -> bool {
    rewrite.verdict != "ineligible" && !rewrite.refuted
}

/// The reason that decides a refusal: the first. A wait is either taken out or replaced, and the reason against the last way comes last.
pub fn decisive<'r, R>(rewrite: &str, reasons: &'r [R]) -> Option<&'r R> {
    match rewrite {
        REPLACES_WAIT => reasons.last(),
        _ => reasons.first(),
    }
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
    /// `11 rewrites fit; best: loop small grids, collect per grid`, without a full stop: all steps, in the words that titles have for them.
    pub fn sentence(&self) -> String {
        let Some(best) = self.best else {
            return match self.fit {
                0 => "no rewrite fits".to_owned(),
                1 => "1 rewrite fits; it is unlikely to be faster".to_owned(),
                fit => format!("{fit} rewrites fit; none is likely to be faster"),
            };
        };
        if best.rewrite == REVERT {
            return "nothing is likely to be faster; `revert` goes back to plain launches".to_owned();
        }
        let steps = best.plan.iter().flat_map(|plan| &plan.steps);
        let steps: Option<Vec<&str>> = steps.map(|step| in_words(&step.rewrite)).collect();
        let best = match steps.filter(|steps| !steps.is_empty()) {
            Some(steps) => steps.join(", "),
            None => first_small(&best.title),
        };
        match self.fit {
            1 => format!("1 rewrite fits: {best}"),
            fit => format!("{fit} rewrites fit; best: {best}"),
        }
    }

    /// What the best one takes for granted, in one short line: `grids of `x` are independent of each other; and 1 more assumption`. With those that it
    /// has no room for, it counts as many as the title in a menu.
    pub fn assumptions(&self) -> Option<String> {
        let mut texts: Vec<&str> = Vec::new();
        for reason in &self.best?.reasons {
            if !texts.contains(&reason.text.as_str()) {
                texts.push(&reason.text);
            }
        }
        told(&texts)
    }

    /// Where nothing fits: the reason that most rewrites share. Where the launch is waited for, that is the wait, which anybody sees: then
    /// why it stays.
    pub fn obstacle(launch: &Launch) -> Option<String> {
        if let Some(wait) = &launch.sync
            && let Some(refused) = wait.replace.as_ref().filter(|replace| !fits(replace))
            && let Some(reason) = decisive(refused.rewrite, &refused.reasons)
        {
            let line = wait.place.start.line;
            return Some(format!("the wait in line {line} has to stay: {}", reason.text));
        }
        // Where the code contradicts what rewrites assume, that is why they don't count.
        let contradicted = told_rewrites(launch).any(|rewrite| rewrite.refuted);
        let counts = |rewrite: &&RewriteVerdict| rewrite.refuted == contradicted && !fits(rewrite);
        let mut counted: Vec<(&str, usize)> = Vec::new();
        for reason in told_rewrites(launch)
            .filter(counts)
            .flat_map(|rewrite| &rewrite.reasons)
        {
            let text = reason.text.as_str();
            match counted.iter_mut().find(|(known, _)| *known == text) {
                Some((_, times)) => *times += 1,
                None => counted.push((text, 1)),
            }
        }
        // The first of those that stand equally often.
        let most = counted.iter().map(|(_, times)| *times).max()?;
        let (text, _) = counted.iter().find(|(_, times)| *times == most)?;
        Some(match contradicted {
            true => format!("the code contradicts what most rewrites assume: {text}"),
            false => (*text).to_owned(),
        })
    }
}

/// As many of the texts as a line has room for, whole, but without their explanations, and how many there are beside these. A text that has
/// no room for itself ends where it comes to its next thought.
fn told(texts: &[&str]) -> Option<String> {
    let line = |first: &[String], more: usize| match more {
        0 => first.join("; "),
        1 => format!("{}; and 1 more assumption", first.join("; ")),
        more => format!("{}; and {more} more assumptions", first.join("; ")),
    };
    let fits = |line: &String| line.chars().count() <= MAX_ASSUMED;
    // Without explanations, two may say the same.
    let mut whole: Vec<String> = Vec::new();
    for text in texts.iter().map(|text| short(text)) {
        if !whole.contains(&text) {
            whole.push(text);
        }
    }
    let first = whole.first()?;
    let begins = match first.split_once(", and ") {
        Some((begins, _)) => format!("{begins}, …"),
        None => first.clone(),
    };
    let mut lines = (1..=whole.len()).rev();
    lines
        .find_map(|count| Some(line(&whole[..count], texts.len() - count)).filter(fits))
        // Names may be long: one thought is said in any case.
        .or_else(|| Some(line(&[begins], texts.len() - 1)))
}

/// A menu has room for so many characters of a reason.
const MAX_REASON: usize = 120;

/// A reason in a menu: one short thought. `explain` and the hover say all of it.
pub fn brief(text: &str) -> String {
    let short = short(text);
    if short.chars().count() <= MAX_REASON {
        return short;
    }
    let ends = ["; ", ", and ", ", "].iter().find_map(|end| short.split_once(end));
    let begins = ends.map_or(short.as_str(), |(begins, _)| begins);
    match begins.char_indices().nth(MAX_REASON - 1) {
        None => format!("{begins}…"),
        Some((end, _)) => {
            let begins = &begins[..end];
            format!(
                "{}…",
                begins.rsplit_once(' ').map_or(begins, |(whole_words, _)| whole_words)
            )
        }
    }
}

/// A text without its explanations: what stands in parentheses, and what comes after a colon. Code has colons and parentheses of its own.
fn short(text: &str) -> String {
    let mut out = String::new();
    let (mut is_code, mut depth) = (false, 0_usize);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek();
        is_code ^= c == '`';
        match c {
            '(' if !is_code && (depth > 0 || out.ends_with(' ')) => {
                out.truncate(out.trim_end().len());
                depth += 1;
            }
            ')' if !is_code && depth > 0 => depth -= 1,
            ':' if !is_code && depth == 0 && next == Some(&' ') => break,
            _ if depth == 0 => out.push(c),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Glance, MAX_ASSUMED, MAX_REASON, brief, decisive, short, told};
    use crate::schema::{Plan, RewriteVerdict, Step};

    fn verdict(rewrite: &'static str, title: &'static str, steps: &[&str]) -> RewriteVerdict {
        let step = |step: &&str| Step {
            rewrite: (*step).to_owned(),
            why: String::new(),
        };
        RewriteVerdict {
            rewrite,
            title: title.into(),
            verdict: "eligible",
            reasons: Vec::new(),
            refuted: false,
            plan: (!steps.is_empty()).then(|| Plan {
                steps: steps.iter().map(step).collect(),
                without: Vec::new(),
                twin: false,
            }),
            may_gain: rewrite != "coarsen",
        }
    }

    #[test]
    fn the_answer_is_a_sentence() {
        let sentence = |fit: usize, best: Option<&RewriteVerdict>| Glance { fit, best }.sentence();
        assert_eq!(sentence(0, None), "no rewrite fits");
        assert_eq!(sentence(1, None), "1 rewrite fits; it is unlikely to be faster");
        // All steps, by the words that titles have for them.
        let plan = verdict(
            "optimize",
            "Best: run in the parent's threads, +1 step",
            &["skip-silent-stores", "reuse-threads=grid"],
        );
        let expected = "2 rewrites fit; best: store only changes, run children in the parent's threads";
        assert_eq!(sentence(2, Some(&plan)), expected);
        let one = verdict("coarsen", "Launch fewer blocks", &[]);
        assert_eq!(sentence(1, Some(&one)), "1 rewrite fits: launch fewer blocks");
        let back = verdict("revert", "Go back to plain launches", &[]);
        let expected = "nothing is likely to be faster; `revert` goes back to plain launches";
        assert_eq!(sentence(1, Some(&back)), expected);
    }

    #[test]
    fn the_reason_that_decides() {
        assert_eq!(decisive("coarsen", &[1, 2]), Some(&1));
        assert_eq!(decisive("replace-device-sync", &[1, 2]), Some(&2));
        assert_eq!(decisive::<u8>("coarsen", &[]), None);
    }

    #[test]
    fn an_explanation_is_left_out_and_no_verb() {
        for (text, expected) in [
            (
                "unseen code that `spmv` runs (`printf` (line 3)) leaves streams, child grids and errors alone",
                "unseen code that `spmv` runs leaves streams, child grids and errors alone",
            ),
            (
                "grids of `x` are independent of each other: those that one thread launches (the NULL stream runs them in order)",
                "grids of `x` are independent of each other",
            ),
            (
                "blocks of `x` have at most 256 threads (the rewritten kernel may need more registers)",
                "blocks of `x` have at most 256 threads",
            ),
            (
                "the host can compute `a ? b : f (c)` even where no round of `if (a)` does so",
                "the host can compute `a ? b : f (c)` even where no round of `if (a)` does so",
            ),
            (
                "the host may wait (nothing waits for it), and no other thread launches meanwhile",
                "the host may wait, and no other thread launches meanwhile",
            ),
            ("", ""),
            ("it (", "it"),
            ("it) `", "it) `"),
        ] {
            assert_eq!(short(text), expected);
        }
    }

    #[test]
    fn a_reason_in_a_menu_is_one_short_thought() {
        assert_eq!(
            brief("`x` waits at a barrier: it can't run in a thread (line 3)"),
            "`x` waits at a barrier"
        );
        let long = format!("the launch is waited for, and {}", "y".repeat(MAX_REASON));
        assert_eq!(brief(&long), "the launch is waited for…");
        let words = "word ".repeat(60);
        let told = brief(&words);
        assert!(told.chars().count() <= MAX_REASON && told.ends_with("word…"), "{told}");
        assert_eq!(brief(&"ä".repeat(200)).chars().count(), MAX_REASON);
    }

    #[test]
    fn one_line_has_whole_phrases() {
        let independent = "grids of `visitNeighbours` are independent of each other";
        let stream = "no other thread of the host launches into the stream between `visit` and what follows it";
        let memory = format!("{stream}, and there is memory for all that the threads of `visit` may launch");
        assert_eq!(told(&[]), None);
        assert_eq!(told(&["a", "b", "c"]).as_deref(), Some("a; b; c"));
        let expected = format!("{independent}; and 1 more assumption");
        assert_eq!(told(&[independent, &memory]), Some(expected));
        // Half of it: one can see that there is another half. It counts once, as in the title of a menu.
        assert_eq!(told(&[&memory]), Some(format!("{stream}, …")));
        assert_eq!(
            told(&[&memory, "b"]),
            Some(format!("{stream}, …; and 1 more assumption"))
        );
        // They differ in their explanations.
        assert_eq!(
            told(&["a: x", "a: y", "b"]).as_deref(),
            Some("a; b; and 1 more assumption")
        );
        let long = "x".repeat(MAX_ASSUMED + 20);
        assert_eq!(told(&[&long]), Some(long.clone()));
        assert_eq!(told(&[&long, "b"]), Some(format!("{long}; and 1 more assumption")));
    }
}
