//! Takes `coarsen` back.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::{Child, LaunchId, Launchers, launches};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::functions_named;

use super::launch::{Looks, put_back};
use super::layer::{Peeled, of_all_looks};
use super::text::{child_of, delete_item, is_used_elsewhere, list, place, put_body_back, source, take_constant};
use crate::api::rewrite::{Layer, Options};
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::emit::was;
use crate::facts::site::Site;

/// Takes it off one of the launches that have it, counted from 0; `None` where there are fewer.
pub fn peel<'db>(db: &'db dyn Db, parent: FunctionItem<'db>, nth: usize) -> Option<Option<Peeled>> {
    let all = launches(db, parent).iter().enumerate();
    let index = all
        .filter(|(_, facts)| facts.launchers != Launchers::Host)
        .filter(|(_, facts)| {
            let range = facts.grid.operand.span.shift(parent.start(db));
            let text = parent.file(db).text(db);
            range.text(&text).starts_with(was::COARSENED)
        })
        .nth(nth)
        .map(|(index, _)| index as u32)?;
    let launch = LaunchId {
        function: parent,
        index,
    };
    let site = Site::new(db, launch).ok()?;
    Some(of_all_looks(&Looks::ALL, |looks| layer(&site, looks)))
}

fn layer(site: &Site<'_>, looks: Looks) -> Option<Peeled> {
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
                .map(|c| site.expr_source(*c).to_owned()),
        );
        let name = site.source(site.launch.name_span);
        let scope = name
            .rsplit_once("::")
            .map_or(String::new(), |(scope, _)| format!("{scope}::"));
        let template = site.launch.template_args.map_or("", |t| site.source(t));
        let name = format!("{scope}{}{template}", child.name);
        let arguments = site.place(site.launch.args_span).range;
        let open = tokens.iter().position(|t| t.start as u32 == arguments.start)?;
        let (items, _) = list(text, &tokens, open)?;
        let given: Option<Vec<String>> = items
            .iter()
            .skip(1)
            .map(|item| Some(text.get(item.clone())?.to_owned()))
            .collect();
        put_back(&mut edit, site.here(), &name, &config, &given?, looks)?;
        let own = place(db, kernel);
        let mut except = used.clone();
        except.push(own);
        if !is_used_elsewhere(db, own.file, unqualified(kernel.name(db)), &except) {
            delete_item(&mut edit, own);
            used.push(own);
            put_body_back(&mut edit, db, worker, &child, &used);
        }
    } else if site.here().range.text(text).contains('\n') {
        // The line has been broken as it got too wide.
        let mut config = vec![grid];
        let further = site.launch.config.iter().skip(1);
        config.extend(further.map(|operand| site.expr_source(*operand).to_owned()));
        let arguments = site.launch.args.iter();
        let arguments: Vec<String> = arguments.map(|arg| site.expr_source(*arg).to_owned()).collect();
        let template = site.launch.template_args.map_or("", |t| site.source(t));
        let name = format!("{}{template}", site.source(site.launch.name_span));
        put_back(&mut edit, site.here(), &name, &config, &arguments, looks)?;
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
