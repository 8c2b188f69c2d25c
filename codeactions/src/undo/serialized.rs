//! Takes `serialize` back.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::launch::{launches, statement_places};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::{ExprId, ExprKind, StmtId, StmtKind, body};

use super::launch::{Looks, put_back};
use super::layer::{Peeled, of_all_looks};
use super::text::{child_of, delete_item, is_used_elsewhere, moved_body, place, put_body_back, source};
use super::thresholded::is_below;
use crate::api::rewrite::{Layer, Options};
use crate::edit::builder::EditBuilder;

/// What the function is called that runs a child's grids in the launching thread.
const SUFFIX: &str = "_serial";

/// Takes it off one of the calls that take a launch's place, counted from 0, those of the function that was made last first and the last
/// of these first; `None` where there are fewer.
pub fn peel<'db>(db: &'db dyn Db, parent: FunctionItem<'db>, nth: usize) -> Option<Option<Peeled>> {
    let body = body(db, parent);
    let places = statement_places(db, parent);
    let text = parent.text(db);
    let calls = body.stmts.iter().enumerate().filter_map(|(index, stmt)| {
        let StmtKind::Expr(call) = stmt.kind else { return None };
        // That is a threshold's, whatever has been done to its other branch.
        if is_below(&text, &body, &places, StmtId(index as u32)) {
            return None;
        }
        let ExprKind::Call { name: Some(name), .. } = &body.expr(call).kind else {
            return None;
        };
        let (_, number) = unqualified(name).rsplit_once(SUFFIX)?;
        // The first has none.
        let number: u32 = if number.is_empty() { 1 } else { number.parse().ok()? };
        let mut found = functions_named(db, parent.file(db), name).into_iter();
        let serial = found.find(|f| f.has_body(db) && source(db, *f).contains("gridfuse::for_each_"))?;
        Some((number, body.expr(call).span.start, call, serial))
    });
    let mut calls: Vec<(u32, u32, ExprId, FunctionItem<'db>)> = calls.collect();
    calls.sort_by_key(|(number, start, ..)| std::cmp::Reverse((*number, *start)));
    let (_, _, call, serial) = *calls.get(nth)?;
    Some(of_all_looks(&Looks::ALL, |looks| {
        layer(db, parent, call, serial, looks)
    }))
}

fn layer<'db>(
    db: &'db dyn Db,
    parent: FunctionItem<'db>,
    call: ExprId,
    serial: FunctionItem<'db>,
    looks: Looks,
) -> Option<Peeled> {
    let body = body(db, parent);
    let span = body.expr(call).span;
    let ExprKind::Call { args, .. } = &body.expr(call).kind else {
        return None;
    };
    let text = parent.text(db);
    let [grid, block, rest @ ..] = args.as_slice() else {
        return None;
    };
    let of = |arg: &ExprId| body.expr(*arg).span.text(&text).to_owned();
    let called = span.text(&text);
    let name = called.get(..called.find('(')?)?.trim_end();
    let (kernel, behind) = name.rsplit_once(SUFFIX)?;
    let kernel = format!("{kernel}{}", behind.trim_start_matches(|c: char| c.is_ascii_digit()));
    let rest: Vec<String> = rest.iter().map(of).collect();
    let whole = FileRange {
        file: parent.file(db),
        range: span.shift(parent.start(db)),
    };
    let mut edit = EditBuilder::new(db);
    put_back(&mut edit, whole, &kernel, &[of(grid), of(block)], &rest, looks)?;
    let own = place(db, serial);
    if !is_used_elsewhere(db, own.file, unqualified(serial.name(db)), &[whole, own]) {
        delete_item(&mut edit, own);
        // What is split at barriers has a body of its own.
        if let Some(worker) = moved_body(db, serial) {
            let child = child_of(db, worker)?;
            put_body_back(&mut edit, db, worker, &child, &[whole, own]);
        }
    }
    let index = launches(db, parent)
        .iter()
        .filter(|l| l.span.start < span.start)
        .count() as u32;
    Some(Peeled {
        edits: vec![edit.finish().ok()?],
        layer: Layer::Serialized,
        options: Options::default(),
        index,
        function: None,
    })
}
