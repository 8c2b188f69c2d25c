//! A loop of a thread as a kernel of its own: each iteration becomes a thread of a child grid, which the thread launches where it looped.
//!
//! The child runs some time after its launch, beside the parent, and is done when the parent's grid is done. So the iterations have to do
//! without the order in which the thread does them, and nothing that the kernel does after the loop may have to do with them.

mod conditions;
mod emit;
mod needs;

use std::sync::Arc;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::file_settings::file_settings;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::{CountedLoop, counted_loop};
use gridfuse_analysis::facts::launch::{Places, statement_places};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::{ExprId, ExprKind, StmtId, StmtKind};

use crate::api::refusal::{Ineligible, Refusals, refuse};
use crate::api::rewrite::RewriteCtx;
use crate::api::source_edit::SourceEdit;
use crate::edit::builder::{EditBuilder, finish};
use crate::edit::names::Names;
use crate::facts::child::Child;
use crate::facts::cluster::Function;
use crate::facts::site::function_around;

/// A loop of a kernel.
struct SerialLoop<'db> {
    db: &'db dyn Db,
    /// The kernel.
    function: Function<'db>,
    /// Where its parts stand.
    places: Arc<Places>,
    /// The loop.
    stmt: StmtId,
    /// All of it, relative to the kernel.
    span: Span,
    /// The loops around it.
    outer: Vec<StmtId>,
}

impl<'db> SerialLoop<'db> {
    /// The `for` in a kernel that a place is about.
    fn find(db: &'db dyn Db, place: FileRange) -> Result<SerialLoop<'db>, Ineligible> {
        let nothing = || refuse("no `for` loop of a kernel stands here", Some(place));
        let item = function_around(db, place).ok_or_else(nothing)?;
        if !item.signature(db).kernel {
            return Err(nothing());
        }
        let function = Function::new(db, item);
        let range = |stmt: &StmtId| function.body.stmt(*stmt).span.shift(function.start);
        let loops = || {
            let all = (0..function.body.stmts.len() as u32).map(StmtId);
            all.filter(|s| matches!(function.body.stmt(*s).kind, StmtKind::For { .. }))
        };
        // The one that begins in a line or selection, else the smallest one around.
        let begins = |stmt: &StmtId| place.range.start <= range(stmt).start && range(stmt).start < place.range.end;
        let around = |stmt: &StmtId| range(stmt).contains(place.range);
        let stmt = loops()
            .filter(begins)
            .min_by_key(|s| range(s).start)
            .or_else(|| loops().filter(around).min_by_key(|s| range(s).end - range(s).start))
            .ok_or_else(nothing)?;
        let places = statement_places(db, item);
        let mut outer = Vec::new();
        let mut inner = stmt;
        while let Some(next) = places.parent(inner) {
            let loops = matches!(
                function.body.stmt(next).kind,
                StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::RangeFor { .. }
            );
            if loops {
                outer.push(next);
            }
            inner = next;
        }
        Ok(SerialLoop {
            db,
            span: function.body.stmt(stmt).span,
            function,
            places,
            stmt,
            outer,
        })
    }

    fn here(&self) -> FileRange {
        self.function.place(self.span)
    }

    fn source(&self, span: Span) -> &str {
        span.shift(self.function.start).text(&self.function.text)
    }

    fn contains(&self, e: ExprId) -> bool {
        self.span.contains(self.function.body.expr(e).span)
    }

    /// A literal, or what isn't part of a macro.
    fn is_written(&self, e: ExprId) -> bool {
        let expr = self.function.body.expr(e);
        !expr.from_macro || matches!(expr.kind, ExprKind::Literal(_))
    }

    /// The launches need no order: one thread launches no second grid here.
    fn in_no_order(&self) -> bool {
        let cuda = file_settings(self.db, self.function.file).cuda;
        self.outer.is_empty() && cuda.is_none_or(|version| version >= (12, 0))
    }
}

/// The edit that makes a kernel of the loop at a place.
///
/// # Errors
/// The reasons why it can't be done.
pub fn extract_loop(ctx: &RewriteCtx<'_, '_>) -> Result<SourceEdit, Ineligible> {
    let (db, place) = (ctx.db, ctx.place()?);
    let block = block_size(ctx)?;
    let serial = SerialLoop::find(db, place)?;
    let head: CountedLoop = counted_loop(db, serial.function.item, serial.stmt)
        .map_err(|why| refuse(why.reason, Some(serial.function.place(why.span))))?;
    let mut names = Names::default();
    let mut edit = EditBuilder::new(db);
    let mut refusals = Refusals::default();
    names.add_file(db, serial.function.file);
    let kernel = Child::read(db, serial.function.item, &mut names, &mut refusals);
    conditions::check(&serial, &head, &kernel, &mut refusals, &mut edit);
    let needs = needs::collect(&serial, &head, &kernel, &mut refusals);
    refusals.check()?;
    emit::write(&serial, &head, &kernel, &needs, block, &mut names, &mut edit)?;
    finish(edit)
}

/// The kernel with the loop at a place, and where the loop stands: where its launch will.
///
/// # Errors
/// There is none.
pub fn loop_at(db: &dyn Db, place: FileRange) -> Result<(FunctionItem<'_>, FileRange), Ineligible> {
    let serial = SerialLoop::find(db, place)?;
    Ok((serial.function.item, serial.here()))
}

/// The threads of a block of the child: a power of two, so that the number of the last thread fits where the number of iterations does.
fn block_size(ctx: &RewriteCtx<'_, '_>) -> Result<u64, Ineligible> {
    let block = ctx.positive("block")?;
    if (32..=1024).contains(&block) && block.is_power_of_two() {
        return Ok(block);
    }
    Err(refuse(
        format!("`block` must be 32, 64, 128, 256, 512 or 1024, not {block}"),
        None,
    ))
}
