//! Which of the loops around a launch repeat it. A loop that is left right after the launch (`break`, `return`) doesn't.

use crate::hir::flow::{Flow, Loops};
use crate::hir::{Body, ExprId, StmtId};

/// The cycles of a function's control flow.
pub struct Repeats {
    flow: Flow,
    cycles: Loops,
}

impl Repeats {
    /// Those of a body.
    pub fn of(body: &Body) -> Repeats {
        let flow = Flow::of(body);
        let cycles = Loops::of(&flow);
        Repeats { flow, cycles }
    }

    /// Those of the loops around a launch, which are given innermost first, in which a thread that has launched may come to the launch
    /// again. All of them where the launch stands in a lambda: nothing is known of who calls that, or how often.
    pub fn among(&self, launch: ExprId, around: &[StmtId]) -> Vec<StmtId> {
        let Some(block) = self.flow.expr_block.get(&launch) else {
            return around.to_vec();
        };
        let mut found = Vec::new();
        for cycle in self.cycles.around(*block) {
            // A loop begins outside of the cycle that it makes. One that begins inside is left before it comes around.
            let begins_outside = |stmt: &&StmtId| {
                let begin = self.flow.stmt_block.get(stmt);
                begin.is_none_or(|begin| !self.cycles.contains(cycle, *begin))
            };
            found.extend(around.iter().find(begins_outside).filter(|stmt| !found.contains(*stmt)));
        }
        found
    }
}
