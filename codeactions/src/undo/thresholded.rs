//! Takes `threshold` back.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::{LaunchId, Launchers, Places, launches};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::{Body, ExprKind, StmtId, StmtKind};

use super::NO_ORDER;
use super::layer::Peeled;
use super::text::{child_of, delete_item, is_used_elsewhere, moved_body, place, put_body_back, source, take_constant};
use crate::api::rewrite::{Layer, Options};
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::one_line::flat;
use crate::edit::style;
use crate::facts::site::Site;

/// Takes it off one of the launches that have it, counted from 0; `None` where there are fewer.
pub fn peel<'db>(db: &'db dyn Db, parent: FunctionItem<'db>, nth: usize) -> Option<Option<Peeled>> {
    let own = launches(db, parent).iter().enumerate();
    let mut compared = own
        .filter(|(_, facts)| facts.launchers != Launchers::Host)
        .filter_map(|(index, _)| {
            let index = index as u32;
            let launch = LaunchId {
                function: parent,
                index,
            };
            let site = Site::new(db, launch).ok()?;
            let (branch, serial) = comparison(&site)?;
            Some((site, branch, serial))
        });
    let (site, branch, serial) = compared.nth(nth)?;
    Some(layer(&site, branch, serial))
}

/// The `if` whose other branch runs the grid in the launching thread, and the function that does.
fn comparison<'db>(site: &Site<'db>) -> Option<(StmtId, FunctionItem<'db>)> {
    let body = &site.body;
    let (branch, launching) = branch_of(body, &site.places, site.facts.statement?)?;
    let StmtKind::If {
        init: None,
        cond: Some(_),
        then,
        otherwise: Some(otherwise),
        ..
    } = body.stmt(branch).kind
    else {
        return None;
    };
    let StmtKind::Expr(call) = body.stmt(without_braces(body, then)).kind else {
        return None;
    };
    let ExprKind::Call { name: Some(name), .. } = &body.expr(call).kind else {
        return None;
    };
    let mut found = functions_named(site.db, site.file, name)
        .into_iter()
        .filter(|f| f.has_body(site.db));
    let serial = found.next()?;
    let serially = source(site.db, serial).contains("gridfuse::for_each_");
    (otherwise == launching && serially).then_some((branch, serial))
}

/// The statement that another one is a branch or the body of, alone or in braces of its own; and the branch.
fn branch_of(body: &Body, places: &Places, statement: StmtId) -> Option<(StmtId, StmtId)> {
    let around = places.parent(statement)?;
    match &body.stmt(around).kind {
        StmtKind::Block(stmts) if stmts.len() == 1 => Some((places.parent(around)?, around)),
        _ => Some((around, statement)),
    }
}

/// The only statement of a block, or the statement that is none.
fn without_braces(body: &Body, statement: StmtId) -> StmtId {
    match &body.stmt(statement).kind {
        StmtKind::Block(stmts) => match stmts.as_slice() {
            [only] => *only,
            _ => statement,
        },
        _ => statement,
    }
}

/// Whether a statement is what is done below a threshold: a branch beside one that launches, by a condition that names the threshold.
pub fn is_below(text: &str, body: &Body, places: &Places, statement: StmtId) -> bool {
    let Some((branch, own)) = branch_of(body, places, statement) else {
        return false;
    };
    let StmtKind::If {
        cond: Some(cond),
        then,
        otherwise: Some(otherwise),
        ..
    } = body.stmt(branch).kind
    else {
        return false;
    };
    let condition = body.expr(cond).span.text(text).to_ascii_lowercase();
    let beside = body.stmt(otherwise).span.text(text);
    then == own && condition.contains("threshold") && (beside.contains("<<<") || beside.contains(".launch("))
}

fn layer<'db>(site: &Site<'db>, branch: StmtId, serial: FunctionItem<'db>) -> Option<Peeled> {
    let db = site.db;
    let body = &site.body;
    let statement = site.facts.statement?;
    let StmtKind::If { cond: Some(cond), .. } = body.stmt(branch).kind else {
        return None;
    };
    let mut edit = EditBuilder::new(db);
    let constant = lex::identifiers(site.expr_source(cond)).last()?.to_owned();
    let whole = site.place(body.stmt(branch).span);
    let indent = style::indent_at(&site.text, whole.range.start as usize).to_owned();
    let inner = site.place(body.stmt(statement).span);
    let own = style::indent_at(&site.text, inner.range.start as usize).to_owned();
    let launch = site.source(body.stmt(statement).span);
    // Where the branches have braces, the launch had some.
    let braces = !matches!(branch_of(body, &site.places, statement), Some((_, own)) if own == statement);
    match sole_block(site, branch).filter(|_| !braces) {
        // The braces were put there with the comparison.
        Some((block, outer)) => {
            let outer_indent = style::indent_at(&site.text, site.place(body.stmt(outer).span).range.start as usize);
            let braces = site.place(body.stmt(block).span).range;
            let line = style::indent_at(&site.text, braces.start as usize).to_owned();
            let before = site.text.get(..braces.start as usize)?;
            let head = before.trim_end();
            // Behind a comment the brace stands on a line of its own, as the launch did.
            let inner = match style::columns(&line) > style::columns(outer_indent) {
                true => line.clone(),
                false => format!("{line}{}", edit.style(site.file).unit),
            };
            let launch = style::reindent(launch, &own, &inner);
            let width = style::columns(outer_indent) + head.len() - style::line_start(&site.text, head.len());
            // The user's lines may be wider than those that rewrites write.
            let widest = site
                .text
                .lines()
                .map(|line| line.trim_end().chars().count())
                .max()
                .unwrap_or(0);
            // The fire-and-forget stream, which stays, has made the line wider.
            let stream = launch.find(NO_ORDER).map_or(0, |_| NO_ORDER.len());
            // It may also have broken it.
            let one_line = flat(&launch);
            let was_broken = stream > 0 && width + 1 + one_line.len() > edit.style(site.file).width;
            let whole = !launch.contains('\n') || was_broken;
            // So may those of who writes several statements in one line.
            let first = site.place(body.stmt(outer).span).range.start as usize;
            let beside = site.text.get(style::line_start(&site.text, first)..first).unwrap_or("");
            let in_one_line = beside.contains(';') && !beside.trim_end().ends_with("else");
            let fits = whole && (in_one_line || width + 1 + one_line.len() - stream <= widest.max(100));
            let fits = fits && !stood_on_own_line(site, block, outer, edit.style(site.file).brace_on_own_line);
            let style = edit.style(site.file);
            let gap = if fits {
                " ".to_owned()
            } else {
                format!("{}{inner}", style.newline)
            };
            let range = TextRange::new(head.len() as u32, braces.end);
            let launch = match fits {
                true => style::reindent(&launch, &inner, outer_indent),
                false => launch,
            };
            edit.replace(FileRange { file: site.file, range }, format!("{gap}{launch}"));
        }
        None => {
            let launch = style::reindent(launch, &own, &indent);
            edit.replace(whole, launch);
        }
    }
    let own = place(db, serial);
    let mut used = vec![whole];
    // What is split at barriers has a body of its own, and the child is as it was.
    let moved = match moved_body(db, serial) {
        Some(worker) => Some((worker, child_of(db, worker)?)),
        None if source(db, serial).contains("gridfuse::for_each_block") => None,
        None => return None,
    };
    let file = moved.as_ref().map_or(own.file, |(_, child)| child.file);
    if !is_used_elsewhere(db, own.file, unqualified(serial.name(db)), &[whole, own]) {
        delete_item(&mut edit, own);
        used.push(own);
        if let Some((worker, child)) = &moved {
            put_body_back(&mut edit, db, *worker, child, &used);
        }
    }
    let value = take_constant(&mut edit, db, file, &constant, &used)?;
    let mut options = Options::default();
    options.0.insert("threshold".to_owned(), value);
    Some(Peeled {
        edits: vec![edit.finish().ok()?],
        layer: Layer::Thresholded,
        options,
        index: site.id.index,
        function: None,
    })
}

/// Whether a statement without braces stood on a line of its own, as far as the code around it says: where braces do, where the other branch
/// does, and in a loop, unless other loops have their bodies behind their heads.
fn stood_on_own_line(site: &Site<'_>, block: StmtId, outer: StmtId, braces_do: bool) -> bool {
    let body = &site.body;
    let stands = |statement: StmtId| {
        let start = site.place(body.stmt(statement).span).range.start as usize;
        let line = style::line_start(&site.text, start);
        site.text
            .get(line..start)
            .is_some_and(|before| before.trim().is_empty())
    };
    let has_braces = |statement: StmtId| matches!(body.stmt(statement).kind, StmtKind::Block(_));
    let loop_body = |kind: &StmtKind| match kind {
        StmtKind::For { body, .. } | StmtKind::While { body, .. } | StmtKind::RangeFor { body, .. } => Some(*body),
        _ => None,
    };
    match &body.stmt(outer).kind {
        _ if braces_do => true,
        StmtKind::If {
            then,
            otherwise: Some(otherwise),
            ..
        } => {
            let other = if *then == block { *otherwise } else { *then };
            !has_braces(other) && stands(other)
        }
        StmtKind::If { .. } | StmtKind::DoWhile { .. } => false,
        _ => {
            let mut others = body.stmts.iter().filter_map(|stmt| loop_body(&stmt.kind));
            !others.any(|other| other != block && !has_braces(other) && !stands(other))
        }
    }
}

/// The block that holds nothing but this statement, where it is a branch or a loop's body; and what it is that of.
fn sole_block(site: &Site<'_>, branch: StmtId) -> Option<(StmtId, StmtId)> {
    let body = &site.body;
    let block = site.places.parent(branch)?;
    let outer = site.places.parent(block)?;
    let alone = matches!(&body.stmt(block).kind, StmtKind::Block(stmts) if stmts.len() == 1);
    let controls = matches!(
        body.stmt(outer).kind,
        StmtKind::If { .. }
            | StmtKind::For { .. }
            | StmtKind::While { .. }
            | StmtKind::DoWhile { .. }
            | StmtKind::RangeFor { .. }
    );
    // The launch keeps its own.
    let count = |statement: StmtId| {
        let span = body.stmt(statement).span.shift(site.start);
        lex::comments(span.text(&site.text)).len()
    };
    let comments = site.facts.statement.map(count) != Some(count(block));
    (alone && controls && !comments).then_some((block, outer))
}
