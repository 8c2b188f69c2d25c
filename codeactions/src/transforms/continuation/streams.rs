//! Streams that a thread has created before its wait: another grid can't use them. At the wait all is done that is in them, so what
//! follows creates streams of its own, and the kernel destroys those that what follows would have destroyed.

use gridfuse_analysis::facts::launch::launches;
use gridfuse_analysis::facts::streams::creates_stream;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Name, StmtId, StmtKind, Storage};

use super::{Around, Tail};

/// What becomes of a stream.
pub(super) struct Renewed {
    /// The statement that creates it.
    pub create: StmtId,
    /// The statements that destroy it, all of which move.
    pub destroy: Vec<StmtId>,
    /// What follows launches into it.
    pub used: bool,
}

/// What is done with a stream where it is named.
enum Use {
    Create(StmtId),
    Destroy(StmtId),
    Launch,
}

impl Tail<'_, '_> {
    /// What becomes of a stream of the thread that waits, where all its uses are understood.
    pub(super) fn renewed(&self, binding: BindingId) -> Option<Renewed> {
        let body = self.body();
        let variable = body.binding(binding);
        let plain = variable.ty.is_value() && unqualified(&variable.ty.base) == "cudaStream_t";
        let (_, init) = self.declaration_in(self.levels.get(self.outermost..)?, binding)?;
        if !plain || variable.storage != Storage::Local || init.is_some() || self.looped.is_some() {
            return None;
        }
        let mut create = None;
        let mut destroy = Vec::new();
        let mut used = false;
        for (index, expr) in body.exprs.iter().enumerate() {
            match &expr.kind {
                ExprKind::Name(Name::Local(named)) if *named == binding => {}
                ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } if mentions.contains(&binding) => {
                    return None;
                }
                _ => continue,
            }
            let moves = self.moves(expr.span);
            match self.use_of(ExprId(index as u32), binding)? {
                // Once, by each thread that comes to the wait.
                Use::Create(stmt) if create.is_none() && !moves && self.is_passed(stmt) => create = Some(stmt),
                Use::Destroy(stmt) if moves && self.is_left_out(stmt) => destroy.push(stmt),
                Use::Launch => used |= moves,
                Use::Create(_) | Use::Destroy(_) => return None,
            }
        }
        Some(Renewed {
            create: create?,
            destroy,
            used,
        })
    }

    fn use_of(&self, name: ExprId, binding: BindingId) -> Option<Use> {
        let (wait, body) = (self.wait, self.body());
        if body.expr(name).from_macro {
            return None;
        }
        let into = launches(wait.db, wait.function).iter().any(|facts| {
            let operand = facts.stream_operand.as_ref();
            operand.is_some_and(|operand| body.strip_parens(operand.expr) == name)
        });
        if into {
            return Some(Use::Launch);
        }
        let stmt = wait.places.statement_of(name)?;
        let StmtKind::Expr(e) = body.stmt(stmt).kind else {
            return None;
        };
        let call = body.expr(body.strip_parens(e));
        let ExprKind::Call {
            name: Some(called),
            args,
            ..
        } = &call.kind
        else {
            return None;
        };
        let (first, rest) = args.split_first()?;
        let first = body.strip_parens(*first);
        let is_stream = |e: ExprId| body.expr(body.strip_parens(e)).kind == ExprKind::Name(Name::Local(binding));
        let idle = |arg: &ExprId| {
            let kind = &body.expr(body.strip_parens(*arg)).kind;
            matches!(kind, ExprKind::Literal(_) | ExprKind::Name(Name::Other(_)))
        };
        if call.from_macro || !rest.iter().all(idle) {
            return None;
        }
        match body.expr(first).kind {
            ExprKind::AddrOf(place) if is_stream(place) && creates_stream(wait.db, wait.function, called) => {
                Some(Use::Create(stmt))
            }
            _ if is_stream(first) && called.trim_start_matches("::") == "cudaStreamDestroy" => Some(Use::Destroy(stmt)),
            _ => None,
        }
    }

    /// Whoever comes to the wait has run this statement, in a block around it.
    fn is_passed(&self, stmt: StmtId) -> bool {
        self.levels.iter().any(|level| level.before().contains(&stmt))
    }

    /// Whoever comes to what follows runs this statement.
    fn is_left_out(&self, stmt: StmtId) -> bool {
        match self.levels.get(self.outermost) {
            Some(level @ Around::Block { .. }) => level.rest().contains(&stmt),
            _ => false,
        }
    }

    /// The statement that creates a stream again in the continuation.
    pub(super) fn created_again(&self, stmt: StmtId) -> Option<String> {
        let creates = |renewed: &&Renewed| renewed.create == stmt && renewed.used;
        self.streams.values().find(creates)?;
        Some(crate::edit::one_line::one_line(self.source(self.body().stmt(stmt).span)))
    }

    /// The statements by which the kernel destroys its own streams.
    pub(super) fn destroyed(&self) -> Vec<String> {
        let all = self.streams.values().flat_map(|renewed| &renewed.destroy);
        all.map(|stmt| crate::edit::one_line::one_line(self.source(self.body().stmt(*stmt).span)))
            .collect()
    }

    /// The statements that what follows doesn't do any more: they destroy streams that it has none of.
    pub(super) fn left_out(&self) -> impl Iterator<Item = StmtId> + '_ {
        let unused = self.streams.values().filter(|renewed| !renewed.used);
        unused.flat_map(|renewed| renewed.destroy.iter().copied())
    }
}
