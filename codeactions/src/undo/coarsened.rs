//! Takes `coarsen` back.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::{Child, LaunchId, Launchers, launches};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::functions_named;

use super::layer::Peeled;
use super::text::{child_of, delete_item, is_used_elsewhere, list, place, put_body_back, source, take_constant};
use crate::api::rewrite::{Layer, Options};
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::style;
use crate::facts::site::Site;

/// Takes it off one of the launches that have it, counted from 0; `None` where there are fewer.
pub fn peel<'db>(db: &'db dyn Db, parent: FunctionItem<'db>, nth: usize) -> Option<Option<Peeled>> {
    let all = launches(db, parent).iter().enumerate();
    let index = all
        .filter(|(_, facts)| facts.launchers != Launchers::Host)
        .filter(|(_, facts)| {
            let range = facts.grid.operand.span.shift(parent.start(db));
            let text = parent.file(db).text(db);
            range.text(&text).starts_with("gridfuse::coarsened")
        })
        .nth(nth)
        .map(|(index, _)| index as u32)?;
    let launch = LaunchId {
        function: parent,
        index,
    };
    let site = Site::new(db, launch).ok()?;
    // What is on several lines now may have been on one.
    let one_line = site
        .source(site.facts.span)
        .contains('\n')
        .then(|| layer(&site, true))
        .flatten();
    let Some(as_it_is) = layer(&site, false) else {
        return Some(None);
    };
    let edits = one_line.map(|peeled| peeled.edits).unwrap_or_default().into_iter();
    Some(Some(Peeled {
        edits: edits.chain(as_it_is.edits.clone()).collect(),
        ..as_it_is
    }))
}

/// `one_line`: the launch comes to stand on one line, where it has room there.
fn layer(site: &Site<'_>, one_line: bool) -> Option<Peeled> {
    let db = site.db;
    let grid_place = site.place(site.facts.grid.operand.span);
    let text = &site.text;
    let tokens = lex::code_tokens(text);
    let open = tokens
        .iter()
        .position(|t| t.start as u32 > grid_place.range.start && t.text(text) == "(")?;
    let (operands, _) = list(text, &tokens, open)?;
    let [grid, constant] = operands.as_slice() else {
        return None;
    };
    let grid = text.get(grid.clone())?.to_owned();
    let constant = unqualified(text.get(constant.clone())?).to_owned();
    let blocks = grid_place.range.text(text).starts_with("gridfuse::coarsened_to");
    let Child::Kernel(kernel) = site.facts.child else {
        return None;
    };
    let mut edit = EditBuilder::new(db);
    let mut used = vec![site.here()];
    if let Some(worker) = worker(db, kernel) {
        let child = child_of(db, worker)?;
        let mut config = vec![grid];
        config.extend(
            site.launch
                .config
                .iter()
                .skip(1)
                .map(|c| crate::edit::one_line::flat(site.expr_source(*c))),
        );
        let name = site.source(site.launch.name_span);
        let scope = name
            .rsplit_once("::")
            .map_or(String::new(), |(scope, _)| format!("{scope}::"));
        let template = site.launch.template_args.map_or("", |t| site.source(t));
        let head = format!("{scope}{}{template}<<<{}>>>(", child.name, config.join(", "));
        let arguments = site.place(site.launch.args_span).range;
        let open = tokens.iter().position(|t| t.start as u32 == arguments.start)?;
        let (items, _) = list(text, &tokens, open)?;
        if one_line {
            let given: Vec<String> = items
                .iter()
                .skip(1)
                .filter_map(|item| Some(crate::edit::one_line::flat(text.get(item.clone())?)))
                .collect();
            let launch = format!("{head}{})", given.join(", "));
            let start = site.here().range.start as usize;
            let indent = style::indent_at(text, start);
            let before = start - style::line_start(text, start) - indent.len();
            // The user's lines may be wider than those that rewrites write.
            let widest = text
                .lines()
                .map(|line| line.trim_end().chars().count())
                .max()
                .unwrap_or(0);
            let width = edit.style(site.file).width.max(widest);
            if style::columns(indent) + before + launch.chars().count() + 1 > width {
                return None;
            }
            edit.replace(site.here(), launch);
        } else {
            let behind = items.get(1).map_or(arguments.end as usize - 1, |next| next.start);
            let range = TextRange::new(site.here().range.start, behind as u32);
            edit.replace(FileRange { file: site.file, range }, head);
        }
        let own = place(db, kernel);
        let mut except = used.clone();
        except.push(own);
        if !is_used_elsewhere(db, own.file, unqualified(kernel.name(db)), &except) {
            delete_item(&mut edit, own);
            used.push(own);
            put_body_back(&mut edit, db, worker, &child, &used);
        }
    } else {
        edit.replace(grid_place, grid);
    }
    // In front of the body.
    let value = take_constant(&mut edit, db, kernel.file(db), &constant, &used)?;
    let mut options = Options::default();
    options
        .0
        .insert(if blocks { "blocks" } else { "factor" }.to_owned(), value);
    Some(Peeled {
        edits: vec![edit.finish().ok()?],
        layer: Layer::Coarsened,
        options,
        index: site.id.index,
        function: None,
    })
}

/// The function that a coarsened kernel calls for each block.
fn worker<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> Option<FunctionItem<'db>> {
    let code = source(db, kernel);
    let words = lex::code_words(&code);
    let made = words.iter().position(|w| *w == "make_uint3")?;
    let before = words.get(..made)?.iter().rposition(|w| *w == ")")?;
    let name = words
        .get(before + 1)
        .map(|w| if *w == "{" { words.get(before + 2) } else { Some(w) })??;
    let mut found = functions_named(db, kernel.file(db), name)
        .into_iter()
        .filter(|f| f.has_body(db));
    found.next()
}
