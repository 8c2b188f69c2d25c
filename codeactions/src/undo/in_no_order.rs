//! Takes `fire-and-forget` back from the launch at a place. Nothing marks what it has made: any launch into that stream may come back to the
//! NULL stream, in which order its grids have run so far as well.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::{LaunchId, Launchers, Stream, launches};
use gridfuse_analysis::hir::items::{FunctionItem, items};

use super::launch::put_noted_back;
use super::same_code::{same_code, spelling_macros};
use super::{MADE_STREAM, NOTHING, functions_before, texts};
use crate::api::copy::Copy;
use crate::api::refusal::{Ineligible, refuse};
use crate::api::rewrite::{Layer, Options, Rewrite, RewriteCtx, Undo};
use crate::api::source_edit::{SourceEdit, apply};
use crate::edit::builder::EditBuilder;
use crate::edit::one_line::flat;
use crate::emit::was;
use crate::facts::site::{Site, function_around};

/// Puts the launch at a place back into the stream in which it was.
pub fn take_back(ctx: &RewriteCtx<'_, '_>, table: &'static [Rewrite]) -> Result<SourceEdit, Ineligible> {
    let (db, place) = (ctx.db, ctx.place()?);
    let nothing = || refuse(NOTHING, Some(place));
    let function = function_around(db, place).ok_or_else(nothing)?;
    let index = launches(db, function).iter().position(|facts| {
        let range = facts.span.shift(function.start(db));
        let there = range.start <= place.range.end && place.range.start <= range.end;
        there && facts.launchers != Launchers::Host && facts.stream == Stream::FireAndForget
    });
    let launch = LaunchId {
        function,
        index: index.ok_or_else(nothing)? as u32,
    };
    let site = Site::new(db, launch)?;
    let mut rewrites = table.iter();
    let rewrite = rewrites.find(|rewrite| rewrite.undo == Undo::Layer(Layer::InNoOrder));
    let rewrite = rewrite.ok_or_else(nothing)?;
    let ways = [noted, on_one_line, without_operands];
    let edits: Vec<SourceEdit> = ways.into_iter().filter_map(|way| way(&site)).collect();
    let exact = |text: &str, made: &str| text == made;
    if let Some(edit) = edits.iter().find(|edit| makes_it_again(&site, rewrite, edit, &exact)) {
        return Ok(edit.clone());
    }
    // Where another rewrite has been taken off around it, the line was broken otherwise.
    let spelling = spelling_macros(std::iter::once(&*site.text));
    let same = |text: &str, made: &str| same_code(text, made, &spelling);
    let mut right = edits
        .into_iter()
        .rev()
        .filter(|edit| makes_it_again(&site, rewrite, edit, &same));
    right.next().ok_or_else(nothing)
}

/// As the note above it says.
fn noted(site: &Site<'_>) -> Option<SourceEdit> {
    let mut edit = EditBuilder::new(site.db);
    put_noted_back(&mut edit, site.here(), site.source(site.launch.name_span))?;
    edit.finish().ok()
}

/// What the launch is without the stream, and without a shared memory that says nothing.
fn plain_config(site: &Site<'_>) -> Option<usize> {
    let config = &site.launch.config;
    let made = config.len() == 4 && site.expr_source(config[3]) == MADE_STREAM;
    let shared = made.then(|| site.expr_source(config[2]))?;
    Some(if shared == "0" { 2 } else { 3 })
}

/// With the operands taken out.
fn without_operands(site: &Site<'_>) -> Option<SourceEdit> {
    let config = &site.launch.config;
    let end = |index: usize| site.place(site.body.expr(*config.get(index)?).span).range.end.into();
    let last: Option<u32> = end(plain_config(site)? - 1);
    let range = TextRange::new(last?, end(3)?);
    let mut edit = EditBuilder::new(site.db);
    edit.replace(FileRange { range, ..site.here() }, "");
    edit.finish().ok()
}

/// On one line, where the stream has made it too wide.
fn on_one_line(site: &Site<'_>) -> Option<SourceEdit> {
    let kept = site.launch.config.get(..plain_config(site)?)?;
    let code = |operands: &mut dyn Iterator<Item = &gridfuse_analysis::hir::ExprId>| -> Vec<String> {
        operands.map(|operand| flat(site.expr_source(*operand))).collect()
    };
    let config = code(&mut kept.iter());
    let arguments = code(&mut site.launch.args.iter());
    let template = site.launch.template_args.map_or("", |written| site.source(written));
    let name = format!("{}{template}", site.source(site.launch.name_span));
    let mut edit = EditBuilder::new(site.db);
    let style = edit.style(site.file);
    let launch = was::plain(&site.text, site.here().range, &style, &name, &config, &arguments);
    edit.replace(site.here(), launch);
    edit.finish().ok()
}

/// Whether the rewrite makes what is there now, the `same`, of what an edit leaves behind.
fn makes_it_again(
    site: &Site<'_>,
    rewrite: &'static Rewrite,
    edit: &SourceEdit,
    same: &dyn Fn(&str, &str) -> bool,
) -> bool {
    let db = site.db;
    let Some(mut copy) = Copy::around(db, site.parent) else {
        return false;
    };
    let before = texts(&copy.host);
    let set = |copy: &mut Copy, edit: &SourceEdit| {
        let now = texts(&copy.host);
        let read = |path: &std::path::Path| {
            now.iter()
                .find(|(known, _)| known == path)
                .map(|(_, text)| text.clone())
        };
        let after = apply(edit, read).ok()?;
        for (path, text) in after {
            copy.host.set_file(&path, text);
        }
        Some(())
    };
    if set(&mut copy, edit).is_none() {
        return false;
    }
    let again = {
        let db_of_copy = copy.host.db();
        let function = copy.host.file(site.file.path(db)).and_then(|file| {
            let functions = items(db_of_copy, file).functions.iter().copied();
            let mut named = functions
                .filter(|f: &FunctionItem<'_>| f.has_body(db_of_copy) && f.name(db_of_copy) == site.parent.name(db));
            named.nth(functions_before(db, site.parent))
        });
        function.and_then(|function| {
            let index = site.id.index;
            rewrite
                .apply(db_of_copy, LaunchId { function, index }, &Options::default())
                .ok()
        })
    };
    let made = again.is_some_and(|again| set(&mut copy, &again).is_some());
    let now = texts(&copy.host);
    let mut files = before.iter();
    made && files.all(|(path, text)| now.iter().any(|(known, made)| known == path && same(text, made)))
}
