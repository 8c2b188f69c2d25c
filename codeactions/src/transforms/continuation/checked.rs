//! What looks at the error of a wait: it stays in front of what moves, and asks for errors of launches there.
//!
//! `cudaError_t e = cudaDeviceSynchronize(); if (e != cudaSuccess) return;` does something only where there is an error, and an error that a
//! kernel can see is one of its launches: it is there before the children are done.

use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::facts::launch::LaunchId;
use gridfuse_analysis::hir::walk::{all_exprs, all_stmts};
use gridfuse_analysis::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Storage};

use super::wait::{ASKS, Wait};
use crate::facts::checked_calls::{is_redefined, looked_at};
use crate::facts::pure::{assignments, only_assigned};
use crate::facts::site::Site;
use crate::transforms::fission::structure::is_barrier;

/// The statement that waits, and those behind it that only look at errors.
pub(super) struct Checked {
    /// The statement with the wait. It stands where the wait is all that it does, or where it looks at the error as well.
    pub stmt: StmtId,
    /// The wait is all of it, and goes.
    pub plain: bool,
    /// How many statements behind it stay as well.
    pub behind: usize,
    /// All of them, relative to the kernel, as far as they stay.
    pub stays: Option<Span>,
}

impl Checked {
    /// What stays of the statement with a wait. `None` where that isn't clear.
    pub fn find(wait: &Wait<'_>) -> Option<Checked> {
        let looks = Looks::new(wait);
        let (stmt, plain) = match wait.statement() {
            Some(plain) => (plain, true),
            None => (looks.around_wait()?, false),
        };
        let body = &*wait.body;
        let block = wait.places.parent(stmt).map(|block| &body.stmt(block).kind);
        let behind: Vec<StmtId> = match block {
            Some(StmtKind::Block(all)) => {
                let rest = all.iter().skip_while(|other| **other != stmt).skip(1).copied();
                rest.take_while(|other| looks.is_one(*other)).collect()
            }
            _ => Vec::new(),
        };
        // Nothing but `;` is left where it is.
        let asks = behind
            .iter()
            .any(|other| !matches!(body.stmt(*other).kind, StmtKind::Empty));
        let behind = if plain && !asks { Vec::new() } else { behind };
        let staying: Vec<StmtId> = (!plain)
            .then_some(stmt)
            .into_iter()
            .chain(behind.iter().copied())
            .collect();
        let spans = || staying.iter().map(|stmt| body.stmt(*stmt).span);
        Some(Checked {
            stmt,
            plain,
            behind: behind.len(),
            stays: spans().reduce(|a, b| a.cover(b)),
        })
    }

    /// Whether something is a part of what stays.
    pub fn has(&self, span: Span) -> bool {
        self.stays
            .is_some_and(|all| all.start <= span.start && span.end <= all.end)
    }

    /// Where all of it ends, in the file: the statement with the wait and what stays behind it.
    pub fn end(&self, wait: &Wait<'_>) -> u32 {
        let own = wait.body.stmt(self.stmt).span;
        self.stays.map_or(own, |all| own.cover(all)).shift(wait.start).end
    }

    /// What stays, in the file.
    pub fn range(&self, wait: &Wait<'_>) -> Option<TextRange> {
        self.stays.map(|span| span.shift(wait.start))
    }
}

/// What only looks at errors, in a kernel that waits.
struct Looks<'a, 'db> {
    wait: &'a Wait<'db>,
    /// A launch of the kernel's.
    site: Option<Site<'db>>,
    /// The words of errors mean what they mean everywhere.
    plain_words: bool,
}

impl<'a, 'db> Looks<'a, 'db> {
    fn new(wait: &'a Wait<'db>) -> Self {
        let first = LaunchId {
            function: wait.function,
            index: 0,
        };
        Looks {
            wait,
            site: Site::new(wait.db, first).ok(),
            plain_words: !is_redefined(wait.db, wait.file) && !body_names(&wait.body),
        }
    }

    /// The outermost statement around the wait that only looks at errors.
    fn around_wait(&self) -> Option<StmtId> {
        let mut all = self
            .wait
            .places
            .around(self.wait.call)
            .skip_while(|stmt| !self.is_one(*stmt));
        let innermost = all.next()?;
        Some(all.take_while(|stmt| self.is_one(*stmt)).last().unwrap_or(innermost))
    }

    /// Whether a statement does nothing, unless there is an error.
    fn is_one(&self, stmt: StmtId) -> bool {
        let body = &*self.wait.body;
        self.plain_words
            && match &body.stmt(stmt).kind {
                StmtKind::Empty => true,
                StmtKind::Block(all) => all.iter().all(|inner| self.is_one(*inner)),
                StmtKind::DoWhile { body: inner, cond } => is_false(body, *cond) && self.is_one(*inner),
                StmtKind::Expr(e) => self.sets_error(*e) || self.checks(*e),
                StmtKind::Decl(all) => all.iter().all(|d| self.is_error_variable(d.binding)),
                StmtKind::If {
                    init,
                    cond,
                    constexpr: false,
                    then,
                    otherwise: None,
                } => {
                    let declared = init.is_none_or(|init| self.is_one(init));
                    let fails = match (cond, init.map(|init| &body.stmt(init).kind)) {
                        (Some(cond), _) => self.fails(*cond),
                        (None, Some(StmtKind::Decl(all))) => !all.is_empty(),
                        _ => false,
                    };
                    declared && fails && self.stays_here(*then)
                }
                _ => false,
            }
    }

    /// A variable that holds errors of calls, and nothing else.
    fn is_error_variable(&self, binding: BindingId) -> bool {
        let Wait { db, function, body, .. } = self.wait;
        let variable = body.binding(binding);
        let known = ["cudaError_t", "::cudaError_t", "cudaError", "auto"].contains(&variable.ty.base.as_str());
        let init = body.initialiser(binding);
        let named = known && variable.ty.is_value() && variable.storage == Storage::Local;
        named
            && only_assigned(*db, *function, body, binding)
            && (init.is_some() || variable.ty.base != "auto")
            && init.is_none_or(|init| self.is_error(init))
            && assignments(*db, *function, body, binding)
                .iter()
                .all(|e| match &body.expr(*e).kind {
                    ExprKind::Assign { op: None, value, .. } => self.is_error(*value),
                    _ => false,
                })
    }

    /// `cudaGetLastError()`, the wait itself, or no error.
    fn is_error(&self, e: ExprId) -> bool {
        self.asks(e) || is_success(&self.wait.body, e)
    }

    fn asks(&self, e: ExprId) -> bool {
        let body = &*self.wait.body;
        let e = body.strip_parens(e);
        let name = match &body.expr(e).kind {
            ExprKind::Call {
                name: Some(name), args, ..
            } if args.is_empty() => name.trim_start_matches("::"),
            _ => return false,
        };
        e == self.wait.call || matches!(name, "cudaGetLastError" | "cudaPeekAtLastError")
    }

    /// `e = cudaGetLastError()`
    fn sets_error(&self, e: ExprId) -> bool {
        let body = &*self.wait.body;
        match &body.expr(body.strip_parens(e)).kind {
            ExprKind::Assign { op: None, place, value } => {
                let variable = match body.expr(body.strip_parens(*place)).kind {
                    ExprKind::Name(Name::Local(binding)) => Some(binding),
                    _ => None,
                };
                variable.is_some_and(|binding| self.is_error_variable(binding)) && self.is_error(*value)
            }
            _ => self.asks(e),
        }
    }

    /// `check(cudaGetLastError())`, by a function that does something only where there is an error.
    fn checks(&self, e: ExprId) -> bool {
        let called = self
            .site
            .as_ref()
            .and_then(|site| looked_at(site, self.wait.body.strip_parens(e)));
        called.is_some_and(|call| self.asks(call))
    }

    /// Whether a condition is true only where there is an error.
    fn fails(&self, cond: ExprId) -> bool {
        let body = &*self.wait.body;
        let cond = body.strip_parens(cond);
        let error = |e: ExprId| {
            let e = body.strip_parens(e);
            match &body.expr(e).kind {
                ExprKind::Name(Name::Local(binding)) => self.is_error_variable(*binding),
                _ => self.sets_error(e),
            }
        };
        match &body.expr(cond).kind {
            ExprKind::Binary(BinOp::Ne, a, b) => error(*a) && is_success(body, *b) || is_success(body, *a) && error(*b),
            ExprKind::Logical { and: false, lhs, rhs } => self.fails(*lhs) && self.fails(*rhs),
            _ => error(cond),
        }
    }

    /// What is done where there is an error neither waits nor launches, and can stay.
    fn stays_here(&self, then: StmtId) -> bool {
        let body = &*self.wait.body;
        let launches = |e: &ExprId| matches!(body.expr(*e).kind, ExprKind::Launch(_)) || self.wait.is_one(*e);
        let meets = |stmt: &StmtId| {
            is_barrier(body, *stmt)
                || matches!(
                    body.stmt(*stmt).kind,
                    StmtKind::Goto(_) | StmtKind::Label(..) | StmtKind::Asm { .. } | StmtKind::Unknown { .. }
                )
        };
        !all_exprs(body, then).iter().any(launches) && !all_stmts(body, then).iter().any(meets)
    }
}

/// A variable of the kernel is named like a word of errors.
fn body_names(body: &Body) -> bool {
    let mut all = body.bindings.iter();
    all.any(|binding| matches!(binding.name.as_str(), "cudaSuccess" | "cudaGetLastError" | ASKS))
}

fn is_success(body: &Body, e: ExprId) -> bool {
    match &body.expr(body.strip_parens(e)).kind {
        ExprKind::Name(Name::Other(name)) => name.trim_start_matches("::") == "cudaSuccess",
        ExprKind::Literal(Literal::Int(0)) => true,
        _ => false,
    }
}

fn is_false(body: &Body, cond: ExprId) -> bool {
    matches!(
        body.expr(body.strip_parens(cond)).kind,
        ExprKind::Literal(Literal::Int(0) | Literal::Bool(false))
    )
}
