//! Loops that are left right after a launch in them: `for (…) if (found) { child<<<…>>>(…); break; }` launches once, however long it runs.

use crate::hir::walk::parts;
use crate::hir::{Body, StmtId, StmtKind};

/// Where control is on the way out of the statements around a launch, once that is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Leaving {
    /// It goes on behind the statement that was passed.
    #[default]
    Stays,
    /// The innermost loop or `switch` around it ends.
    Breaks,
    /// The function ends.
    Returns,
}

impl Leaving {
    /// Goes on to `stmt`, which is around `inner`; whether it is a loop that is left in the iteration that has launched.
    pub(super) fn pass(&mut self, body: &Body, stmt: StmtId, inner: Option<StmtId>) -> bool {
        match &body.stmt(stmt).kind {
            StmtKind::Block(stmts) | StmtKind::Case { stmts, .. } => {
                if *self == Leaving::Stays {
                    let at = stmts.iter().position(|s| Some(*s) == inner);
                    *self = at.map_or(Leaving::Stays, |at| leaves(body, &stmts[at + 1..]));
                }
                false
            }
            StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::RangeFor { .. } => {
                let left = *self != Leaving::Stays;
                if *self == Leaving::Breaks {
                    *self = Leaving::Stays;
                }
                left
            }
            StmtKind::Switch { .. } => {
                if *self == Leaving::Breaks {
                    *self = Leaving::Stays;
                }
                false
            }
            _ => false,
        }
    }
}

/// How control leaves statements that follow each other, as far as nothing else is possible.
fn leaves(body: &Body, stmts: &[StmtId]) -> Leaving {
    for stmt in stmts {
        match &body.stmt(*stmt).kind {
            StmtKind::Break => return Leaving::Breaks,
            StmtKind::Return(_) => return Leaving::Returns,
            StmtKind::Block(inner) => match leaves(body, inner) {
                // It may have a jump of another kind.
                Leaving::Stays if jump_in(body, *stmt).is_some() => return Leaving::Stays,
                Leaving::Stays => {}
                left => return left,
            },
            _ if jump_in(body, *stmt).is_some() => return Leaving::Stays,
            _ => {}
        }
    }
    Leaving::Stays
}

/// A jump out of a statement (`return`, `goto`, `break` or `continue` of a loop around it, something that wasn't understood).
pub(super) fn jump_in(body: &Body, stmt: StmtId) -> Option<StmtId> {
    // With each statement: whether `break` and `continue` in it stay inside.
    let mut todo = vec![(stmt, false, false)];
    while let Some((next, breaks, continues)) = todo.pop() {
        let (mut inner_breaks, mut inner_continues) = (breaks, continues);
        match body.stmt(next).kind {
            StmtKind::Return(_) | StmtKind::Goto(_) | StmtKind::Unknown { .. } => return Some(next),
            StmtKind::Break if !breaks => return Some(next),
            StmtKind::Continue if !continues => return Some(next),
            StmtKind::For { .. } | StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::RangeFor { .. } => {
                (inner_breaks, inner_continues) = (true, true);
            }
            StmtKind::Switch { .. } => inner_breaks = true,
            _ => {}
        }
        let inner = parts(body, next).0;
        todo.extend(inner.into_iter().map(|s| (s, inner_breaks, inner_continues)));
    }
    None
}
