//! Streams that a thread has created before its wait: another grid can't use them. At the wait all is done that is in them, so what
//! follows creates streams of its own, and the kernel destroys those that what follows would have destroyed.

use gridfuse_analysis::facts::launch::{LaunchFacts, launches};
use gridfuse_analysis::facts::streams::creates_stream;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Name, StmtId, StmtKind, Storage};

use super::{Around, Tail};

/// What becomes of a stream.
pub(super) struct Renewed {
    /// The statement that creates it, where there is one alone.
    pub create: Option<StmtId>,
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
        if let Some(destroy) = self.destroyed_array(binding) {
            return Some(Renewed {
                create: None,
                destroy,
                used: false,
            });
        }
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
                ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. }
                    if mentions.contains(&binding) =>
                {
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
        create?;
        Some(Renewed { create, destroy, used })
    }

    /// The same for an array of streams of which what follows only destroys elements.
    pub(super) fn destroyed_array(&self, binding: BindingId) -> Option<Vec<StmtId>> {
        let body = self.body();
        self.declaration_in(self.levels.get(self.outermost..)?, binding)?;
        let mut destroy = Vec::new();
        for (element, using) in self.elements(binding)? {
            let index = match &body.expr(element).kind {
                ExprKind::Index { index, .. } => &body.expr(body.strip_parens(*index)).kind,
                _ => return None,
            };
            match (using, self.moves(body.expr(element).span)) {
                (_, false) if self.looped.is_none() => {}
                (Use::Destroy(stmt), true) if matches!(index, ExprKind::Literal(_)) && self.is_left_out(stmt) => {
                    destroy.push(stmt);
                }
                _ => return None,
            }
        }
        Some(destroy)
    }

    /// Whether a launch goes into an element of an array of streams that the thread creates, and hands to nobody.
    pub(super) fn is_into_own_array(&self, launch: &LaunchFacts<'_>) -> bool {
        let body = self.body();
        let operand = launch
            .stream_operand
            .as_ref()
            .map(|operand| body.strip_parens(operand.expr));
        let array = operand.and_then(|operand| match body.expr(operand).kind {
            ExprKind::Index { base, .. } => Some(base),
            _ => None,
        });
        match array.map(|base| &body.expr(body.strip_parens(base)).kind) {
            Some(ExprKind::Name(Name::Local(array))) => self
                .elements(*array)
                .is_some_and(|all| all.iter().any(|(_, using)| matches!(using, Use::Create(_)))),
            _ => false,
        }
    }

    /// All elements of an array of streams that the kernel names, with what is done there; `None` where one isn't understood.
    fn elements(&self, array: BindingId) -> Option<Vec<(ExprId, Use)>> {
        let body = self.body();
        let variable = body.binding(array);
        let ty = &variable.ty;
        let plain = ty.array.len() == 1 && ty.pointers == 0 && !ty.reference && !ty.complex;
        let stream = unqualified(&ty.base) == "cudaStream_t" && variable.storage == Storage::Local;
        if !plain || !stream || body.initialiser(array).is_some() {
            return None;
        }
        let is_array = |e: ExprId| body.expr(body.strip_parens(e)).kind == ExprKind::Name(Name::Local(array));
        let mut found = Vec::new();
        let mut named = 0;
        for (index, expr) in body.exprs.iter().enumerate() {
            match &expr.kind {
                ExprKind::Name(Name::Local(b)) if *b == array => named += 1,
                ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } if mentions.contains(&array) => {
                    return None;
                }
                ExprKind::Index { base, .. } if is_array(*base) => {
                    let element = ExprId(index as u32);
                    let same = |e: ExprId| body.strip_parens(e) == element;
                    found.push((element, self.use_as(element, &same)?));
                }
                _ => {}
            }
        }
        (named == found.len()).then_some(found)
    }

    fn use_of(&self, name: ExprId, binding: BindingId) -> Option<Use> {
        let body = self.body();
        let is_stream = |e: ExprId| body.expr(body.strip_parens(e)).kind == ExprKind::Name(Name::Local(binding));
        self.use_as(name, &is_stream)
    }

    /// What is done with a stream, where `name` stands for it.
    fn use_as(&self, name: ExprId, is_stream: &dyn Fn(ExprId) -> bool) -> Option<Use> {
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

    /// Whoever comes to what follows has run this statement, in a block around all of that.
    fn is_passed(&self, stmt: StmtId) -> bool {
        let mut around = self.levels.iter().skip(self.outermost);
        around.any(|level| level.before().contains(&stmt))
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
        let creates = |renewed: &&Renewed| renewed.create == Some(stmt) && renewed.used;
        self.streams.values().find(creates)?;
        Some(crate::edit::one_line::one_line(
            self.source(self.body().stmt(stmt).span),
        ))
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
