//! Source snippets with carets, in the style of rustc.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use gridfuse_analysis::base::db::{Database, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::severity::Severity;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::diagnostics::diagnostic::Diagnostic;
use gridfuse_codeactions::api::refusal::Reason;
use gridfuse_codeactions::api::rewrite::{Options, Target, Verdict};
use gridfuse_codeactions::handlers::{optimize, rewrite_by_id};

use super::fitted_snippet::fitted;
use super::output::shell;
use crate::describe::clamp;
use crate::glance::decisive;
use crate::launches::{LaunchSite, around};
use crate::line_index::line_index;
use crate::schema::Fix;

/// Related places at most this many lines away share the snippet of the finding.
const SHARED_LINES: u32 = 60;

/// Longer lines are not shown: nobody would find the caret.
const MAX_SHOWN_BYTES: u32 = 4_000;

/// Source lines that are wider than this are cut, however wide the terminal is.
const USUAL_WIDTH: usize = 140;

/// Draws snippets.
pub struct Snippets<'a> {
    /// The database.
    pub db: &'a Database,
    /// Shows a path.
    pub path: &'a dyn Fn(&Path) -> String,
}

/// Level of a severity.
fn level(severity: Severity) -> Level<'static> {
    match severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Info => Level::INFO,
    }
}

/// What the offers of several findings assume. What is assumed more than once has a number, by which all findings know it, and each of them
/// tells it once.
#[derive(Default)]
pub struct Assumed {
    /// How many offers assume it.
    offers: BTreeMap<String, usize>,
    /// What has a number: it's the index, from 1.
    told: Vec<String>,
    /// The commands of the offers that have been told: several findings may be about one launch.
    offered: BTreeSet<Vec<String>>,
}

impl Assumed {
    /// What these offers assume.
    pub fn of<'f>(fixes: impl IntoIterator<Item = &'f Fix>) -> Assumed {
        let mut assumed = Assumed::default();
        for fix in fixes {
            for text in distinct(fix) {
                *assumed.offers.entry(text.to_string()).or_default() += 1;
            }
        }
        assumed
    }

    /// The offers that no finding has told so far, and those that one has.
    fn split<'f>(&mut self, fixes: &'f [Fix]) -> (Vec<&'f Fix>, Vec<&'f Fix>) {
        fixes.iter().partition(|fix| self.offered.insert(fix.command.clone()))
    }

    /// What an offer assumes, a line each; the numbers are one line. What they stand for is added to `numbered`,
    /// unless it is there.
    fn lines(&mut self, fix: &Fix, numbered: &mut Vec<String>) -> Vec<String> {
        let (mut numbers, mut lines) = (Vec::new(), Vec::new());
        let distinct = distinct(fix);
        let is_shared = |text: &&str| self.offers.get(*text).is_some_and(|offers| *offers > 1);
        // Those of one offer have numbers, or none of them has.
        let has_numbers = distinct.iter().any(is_shared);
        for text in distinct {
            if !has_numbers {
                lines.push(text.to_string());
                continue;
            }
            let known = self.told.iter().position(|told| told == text);
            let index = known.unwrap_or_else(|| {
                self.told.push(text.to_string());
                self.told.len() - 1
            });
            let told = format!("({}) {text}", index + 1);
            if !numbered.contains(&told) {
                numbered.push(told);
            }
            numbers.push(format!("({})", index + 1));
        }
        if !numbers.is_empty() {
            lines.insert(0, numbers.join(" "));
        }
        lines
    }
}

/// The texts of an offer's assumptions, each once: two launches of one kernel may read the same.
fn distinct(fix: &Fix) -> Vec<&str> {
    let mut texts: Vec<&str> = Vec::new();
    for assumption in &fix.assumptions {
        if !texts.contains(&assumption.text.as_str()) {
            texts.push(&assumption.text);
        }
    }
    texts
}

struct Mark {
    kind: AnnotationKind,
    range: TextRange,
    label: String,
}

impl Snippets<'_> {
    fn lines(&self, file: SourceFile, range: TextRange) -> (u32, u32) {
        let index = line_index(self.db, file);
        (index.line(range.start).0, index.line(range.end).0)
    }

    /// The lines around the marks, with carets; only the place when they are too long to show.
    fn snippet(&self, file: SourceFile, marks: Vec<Mark>) -> Element<'static> {
        let text = file.text(self.db);
        let index = line_index(self.db, file);
        let path = (self.path)(file.path(self.db));
        let first = marks
            .iter()
            .map(|mark| index.line(mark.range.start).0)
            .min()
            .unwrap_or(0);
        let last = marks
            .iter()
            .map(|mark| index.line(mark.range.end).0)
            .max()
            .unwrap_or(first);
        let start = index.start(first).unwrap_or(0);
        let end = index.content(&text, last).map_or(start, |(_, end)| end);
        let window = clamp(&text, TextRange::new(start, end));
        if window.len() as u32 > MAX_SHOWN_BYTES.max((last - first) * 500) {
            let primary = marks.first().map_or(0, |mark| mark.range.start);
            let (line, start) = index.line(primary);
            let before = text
                .get(clamp(&text, TextRange::new(start, primary)))
                .unwrap_or_default();
            return Origin::path(path)
                .line(line as usize + 1)
                .char_column(before.chars().count() + 1)
                .into();
        }
        let shown = text.get(window.clone()).unwrap_or_default().to_string();
        let mut snippet = Snippet::source(shown).line_start(first as usize + 1).path(path);
        for mark in marks {
            let range = clamp(&text, mark.range);
            let span = range.start.clamp(window.start, window.end) - window.start
                ..range.end.clamp(window.start, window.end) - window.start;
            snippet = snippet.annotation(mark.kind.span(span).label(mark.label));
        }
        snippet.into()
    }

    /// The place from its first character on that isn't blank.
    fn without_indentation(&self, place: FileRange) -> FileRange {
        let text = place.file.text(self.db);
        let source = text.get(clamp(&text, place.range)).unwrap_or_default();
        let blanks = source.len() - source.trim_start().len();
        let start = place
            .range
            .start
            .saturating_add(u32::try_from(blanks).unwrap_or_default());
        FileRange {
            range: TextRange::new(start.min(place.range.end), place.range.end),
            ..place
        }
    }

    fn note(&self, text: &str, place: Option<FileRange>) -> Group<'static> {
        let group = Group::with_title(Level::NOTE.secondary_title(text.to_string()));
        match place {
            Some(place) => group.element(self.snippet(
                place.file,
                vec![Mark {
                    kind: AnnotationKind::Primary,
                    range: place.range,
                    label: String::new(),
                }],
            )),
            None => group,
        }
    }

    /// A finding with its causes, and the fixes on offer with what they assume.
    pub fn finding(&self, diagnostic: &Diagnostic, fixes: &[Fix], assumed: &mut Assumed) -> String {
        let place = diagnostic.place;
        let (first, last) = self.lines(place.file, place.range);
        let (shared, apart): (Vec<_>, Vec<_>) = diagnostic.related.iter().partition(|related| {
            related.place.file == place.file && {
                let (start, end) = self.lines(place.file, related.place.range);
                start + SHARED_LINES >= first && end <= last + SHARED_LINES
            }
        });
        let mut marks = vec![Mark {
            kind: AnnotationKind::Primary,
            range: place.range,
            label: diagnostic.label.clone(),
        }];
        marks.extend(shared.into_iter().map(|related| Mark {
            kind: AnnotationKind::Context,
            range: related.place.range,
            label: related.message.clone(),
        }));
        let mut main = level(diagnostic.severity)
            .primary_title(diagnostic.message.clone())
            .id(diagnostic.id)
            .element(self.snippet(place.file, marks));
        if let Some(help) = &diagnostic.help {
            main = main.element(Level::HELP.message(help.clone()));
        }
        let mut groups = vec![main];
        groups.extend(
            apart
                .into_iter()
                .map(|related| self.note(&related.message, Some(related.place))),
        );
        let mut numbered: Vec<String> = Vec::new();
        let (new, told) = assumed.split(fixes);
        for fix in new {
            let mut text = format!("{}: {}", fix.title, shell(&fix.command));
            for line in assumed.lines(fix, &mut numbered) {
                text.push_str(&format!("\n      assumes {line}"));
            }
            groups.push(Group::with_title(Level::HELP.secondary_title(text)));
        }
        if !told.is_empty() {
            let told: Vec<String> = told.iter().map(|fix| format!("`{}`", fix.rewrite)).collect();
            let text = format!("mended by the same rewrites: {}", told.join(", "));
            groups.push(Group::with_title(Level::HELP.secondary_title(text)));
        }
        if !numbered.is_empty() {
            groups.push(Group::with_title(Level::NOTE.secondary_title(numbered.join("\n"))));
        }
        if fixes.is_empty()
            && let Some(obstacle) = self.obstacle(diagnostic)
        {
            let text = format!("no rewrite mends it: {}", obstacle.text);
            let elsewhere = obstacle.place.filter(|place| *place != diagnostic.place);
            groups.push(self.note(&text, elsewhere));
        }
        render(&groups)
    }

    /// Why what rewrites would mend stays as it is: what the first of them says.
    fn obstacle(&self, diagnostic: &Diagnostic) -> Option<Reason> {
        let site = around(self.db, diagnostic.place).filter(LaunchSite::device_side);
        let steps = diagnostic.rewrites.iter().filter(|id| **id != optimize::ID);
        steps.filter_map(|id| rewrite_by_id(id)).find_map(|rewrite| {
            let verdict = match rewrite.target {
                Target::Launch(_) => rewrite.verdict(self.db, site?.id, &Options::default()),
                Target::Place(_) => Verdict::of(&rewrite.apply(self.db, diagnostic.place, &Options::default())),
            };
            match verdict {
                Verdict::Ineligible(reasons) => decisive(rewrite.id, &reasons).cloned(),
                Verdict::Eligible | Verdict::Assumes(_) => None,
            }
        })
    }

    /// A headline with a place, which may be a whole line, and reasons each with its own.
    pub fn reasons(&self, level: Level<'static>, title: &str, place: FileRange, reasons: &[Reason]) -> String {
        let place = self.without_indentation(place);
        let mark = Mark {
            kind: AnnotationKind::Primary,
            range: place.range,
            label: String::new(),
        };
        let mut main = level
            .primary_title(title.to_string())
            .element(self.snippet(place.file, vec![mark]));
        let at = |reason: &Reason| reason.place.map(|at| self.without_indentation(at));
        let (here, elsewhere): (Vec<_>, Vec<_>) = reasons
            .iter()
            .partition(|reason| at(reason).is_none_or(|at| at == place));
        for reason in here {
            main = main.element(Level::NOTE.message(reason.text.clone()));
        }
        let mut groups = vec![main];
        groups.extend(elsewhere.into_iter().map(|reason| self.note(&reason.text, at(reason))));
        render(&groups)
    }
}

fn render(groups: &[Group<'static>]) -> String {
    fitted(USUAL_WIDTH, |width| Renderer::styled().term_width(width).render(groups))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Note;

    fn fix(assumptions: &[&str]) -> Fix {
        let note = |text: &&str| Note {
            text: text.to_string(),
            place: None,
            assumption: None,
        };
        Fix {
            rewrite: "x",
            title: "X".into(),
            assumptions: assumptions.iter().map(note).collect(),
            command: Vec::new(),
        }
    }

    #[test]
    fn what_several_offers_assume_is_told_once() {
        let fixes = [fix(&["a", "b", "a"]), fix(&["c", "b"]), fix(&[]), fix(&["b", "a"])];
        let mut assumed = Assumed::of(&fixes);
        let mut numbered = Vec::new();
        let lines: Vec<_> = fixes.iter().map(|fix| assumed.lines(fix, &mut numbered)).collect();
        let none: [&str; 0] = [];
        assert_eq!(lines, [&["(1) (2)"][..], &["(3) (2)"], &none, &["(2) (1)"]]);
        assert_eq!(numbered, ["(1) a", "(2) b", "(3) c"]);
    }

    #[test]
    fn an_offer_for_several_findings_is_told_once() {
        let offer = |command: &str| Fix {
            command: vec![command.to_owned()],
            ..fix(&[])
        };
        let fixes = [offer("one"), offer("two")];
        let mut assumed = Assumed::of(&fixes);
        assert_eq!(assumed.split(&fixes[..1]).0.len(), 1);
        let (new, told) = assumed.split(&fixes);
        assert_eq!(
            (&new[0].command, &told[0].command),
            (&fixes[1].command, &fixes[0].command)
        );
    }

    #[test]
    fn what_one_offer_assumes_needs_no_number() {
        let fixes = [fix(&["a", "a"])];
        let mut numbered = Vec::new();
        assert_eq!(Assumed::of(&fixes).lines(&fixes[0], &mut numbered), ["a"]);
        // An offer that nobody has counted.
        assert_eq!(Assumed::default().lines(&fixes[0], &mut numbered), ["a"]);
        assert!(numbered.is_empty());
    }
}
