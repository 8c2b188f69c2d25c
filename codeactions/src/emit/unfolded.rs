//! Launches that come out of macros, written out: what a macro stands for takes the place of its use, below a note of the lines that were
//! there. Rewrites go on from that.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::{LaunchFacts, LaunchId, Launchers, launches};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::unfolded::{Code, Unfolded, unfolded};

use crate::api::refusal::Refusals;
use crate::api::rewrite::{At, RewriteCtx};
use crate::api::source_edit::SourceEdit;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::style::{self, Style};
use crate::emit::was;
use crate::facts::cluster::Cluster;
use crate::facts::site::{Site, site_at};

/// How statements stand in the place of a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In a block of their own.
    Block,
    /// In the block around them, where nothing else stands.
    Bare,
}

/// A use of a macro in a text, with what takes its place.
struct Use {
    /// What is replaced.
    range: TextRange,
    /// By what: generated code.
    code: String,
    /// It stands in lines of this range.
    lines: TextRange,
}

/// What is done first for a rewrite of one launch: its macro is written out.
pub fn one<'db>(ctx: &RewriteCtx<'_, 'db>) -> Option<(LaunchId<'db>, SourceEdit)> {
    let site = launch(ctx).filter(|site| site.facts.from_macro)?;
    let edit = unfold(ctx.db, &[site.parent], Some(site.here()), None)?;
    Some((site.id, edit))
}

/// The same for a rewrite of all launches that belong together.
pub fn all<'db>(ctx: &RewriteCtx<'_, 'db>) -> Option<(LaunchId<'db>, SourceEdit)> {
    let site = launch(ctx)?;
    if !launches(ctx.db, site.parent).iter().any(|launch| launch.from_macro) {
        return None;
    }
    let cluster = Cluster::find(ctx.db, site.parent, &mut Refusals::default());
    let functions: Vec<FunctionItem<'db>> = cluster.functions.iter().map(|function| function.item).collect();
    let edit = unfold(ctx.db, &functions, None, None)?;
    Some((site.id, edit))
}

/// The launch that a rewrite is asked for, unless the macro that it comes out of launches more than once: which of them is meant couldn't
/// be told from its place.
fn launch<'db>(ctx: &RewriteCtx<'_, 'db>) -> Option<Site<'db>> {
    let site = match ctx.at {
        At::Launch(launch) => Site::new(ctx.db, launch),
        At::Place(place) => site_at(ctx.db, place),
    };
    let site = site.ok()?;
    let own = site.facts.span;
    let here = |launch: &&LaunchFacts<'_>| launch.span.start < own.end && own.start < launch.span.end;
    let several = launches(ctx.db, site.parent).iter().filter(here).count() > 1;
    (site.facts.launchers != Launchers::Host && !several).then_some(site)
}

/// The edit that writes out the macros of which launches of these functions come. `only`: those of this part of the text. `None` where
/// there is nothing to write out.
pub fn unfold<'db>(
    db: &'db dyn Db,
    functions: &[FunctionItem<'db>],
    only: Option<FileRange>,
    form: Option<Form>,
) -> Option<SourceEdit> {
    let mut edit = EditBuilder::new(db);
    let mut any = false;
    for function in functions {
        let file = function.file(db);
        let mut last: Option<TextRange> = None;
        for one in unfolded(db, *function) {
            let range = one.span.shift(function.start(db));
            let meant =
                |only: FileRange| only.file == file && only.range.start < range.end && range.start < only.range.end;
            if only.is_some_and(|only| !meant(only)) {
                continue;
            }
            let style = edit.style(file);
            let found = written(db, *function, &one, form, &style)?;
            // A note is of whole lines.
            if last.is_some_and(|last| found.lines.start < last.end) {
                return None;
            }
            last = Some(found.lines);
            let text = file.text(db);
            let indent = style::indent_at(&text, found.lines.start as usize);
            let note = was::lines(found.lines.text(&text).trim_start(), &style, indent);
            edit.insert_directly(file, found.lines.start + indent.len() as u32, &note);
            edit.replace_code(
                FileRange {
                    file,
                    range: found.range,
                },
                &found.code,
            );
            any = true;
        }
    }
    edit.finish().ok().filter(|_| any)
}

/// What takes the place of a use; `None` where it can't.
fn written(db: &dyn Db, function: FunctionItem<'_>, one: &Unfolded, form: Option<Form>, style: &Style) -> Option<Use> {
    let file = function.file(db);
    let text = file.text(db);
    let masked = function.text(db);
    let mut range = one.span.shift(function.start(db));
    // What was blanked isn't known to mean the same elsewhere.
    if one.span.text(&masked) != range.text(&text) {
        return None;
    }
    let tokens = lex::code_tokens_of(db, file);
    let first = tokens.iter().position(|token| token.start == range.start as usize)?;
    let next = tokens.iter().position(|token| token.start >= range.end as usize)?;
    let before = first.checked_sub(1).map(|index| tokens[index])?;
    let word = |index: usize| tokens.get(index).map_or("", |token| token.text(&text));
    let code = match &one.code {
        Code::Part(code) => code.clone(),
        Code::Statements { lines, closed } => {
            let ends = word(next) == ";";
            if *closed && !ends || !matches!(before.text(&text), ";" | "{" | "}" | ":" | ")" | "else" | "do") {
                return None;
            }
            let mut behind = next;
            if ends {
                range.end = tokens.get(next)?.end as u32;
                behind += 1;
            }
            // A parameter's name can't be declared anew in the function's own braces.
            let own = function.body_span(db).start + function.start(db);
            let alone = before.text(&text) == "{" && before.start != own as usize && word(behind) == "}";
            let indent = style::indent_at(&text, range.start as usize);
            let line = style::line_start(&text, range.start as usize);
            let leads = line + indent.len() == range.start as usize;
            let bare = match form {
                None => alone && leads,
                Some(form) => form == Form::Bare && before.text(&text) == "{",
            };
            let width = style.width.saturating_sub(style::columns(indent));
            let tab = style::columns(&style.unit);
            let fitting = |line: &String| fitted(line, width, tab);
            match bare {
                true => lines.iter().map(fitting).collect::<Vec<_>>().join("\n"),
                false => {
                    let inner: Vec<String> = lines.iter().map(|line| fitting(&format!("\t{line}"))).collect();
                    format!("{{\n{}\n}}", inner.join("\n"))
                }
            }
        }
    };
    let start = style::line_start(&text, range.start as usize);
    let end = style::line_end(&text, range.end as usize);
    let lines = TextRange::new(start as u32, end as u32);
    let source = lines.text(&text);
    // In the line of the head, a note would be lost; and it has to be read back as it is.
    let in_body = lines.start >= function.body_span(db).start + function.start(db);
    let plain = source
        .lines()
        .all(|line| line == line.trim_end() && !line.ends_with('\\'));
    (in_body && plain && !source.contains('#')).then_some(Use { range, code, lines })
}

/// A line of generated code, broken behind commas where it is too wide.
fn fitted(line: &str, width: usize, tab: usize) -> String {
    let level = line.len() - line.trim_start_matches('\t').len();
    let (mut rest, mut out) = (line.trim_start_matches('\t'), String::new());
    let mut indent = level;
    loop {
        let room = width.saturating_sub(indent * tab);
        let breaks = rest.match_indices(", ").map(|(at, _)| at + 1).filter(|at| *at <= room);
        let last = breaks.last().filter(|_| rest.chars().count() > room);
        out.push_str(&"\t".repeat(indent));
        let Some(at) = last else {
            out.push_str(rest);
            return out;
        };
        out.push_str(&rest[..at]);
        out.push('\n');
        rest = &rest[at + 1..];
        indent = level + 1;
    }
}

/// The notes in a function, from the last one: they may be of lines in which macros were used.
pub fn notes(db: &dyn Db, function: FunctionItem<'_>) -> Vec<was::Note> {
    let start = function.start(db);
    let range = TextRange::new(start, start + function.text(db).len() as u32);
    let mut found = was::in_range(&function.file(db).text(db), range);
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::fitted;

    #[test]
    fn wide_lines_are_broken() {
        assert_eq!(fitted("\tf(a, b);", 20, 4), "\tf(a, b);");
        assert_eq!(
            fitted("\tfff(aaaa, bbbb, cccc);", 18, 4),
            "\tfff(aaaa,\n\t\tbbbb,\n\t\tcccc);"
        );
    }
}
