//! Which expressions of a function are evaluated before which others, whatever way it takes.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{BlockId, Dominators, Flow, Step};
use crate::base::db::Db;
use crate::hir::items::FunctionItem;
use crate::hir::{ExprId, body};

/// The order in which the expressions of a function are evaluated.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct Evaluation {
    /// The block of each expression that may be evaluated, and its step there.
    places: FxHashMap<ExprId, (BlockId, u32)>,
    dominators: Dominators,
}

impl Evaluation {
    fn of(flow: &Flow) -> Evaluation {
        let mut places = FxHashMap::default();
        for block in &flow.order {
            for (at, step) in (0u32..).zip(&flow.block(*block).steps) {
                if let Step::Expr(e) = step
                    && flow.expr_block.get(e) == Some(block)
                {
                    places.entry(*e).or_insert((*block, at));
                }
            }
        }
        Evaluation {
            places,
            dominators: Dominators::of(flow),
        }
    }

    /// Whether an expression is evaluated on every way to another one.
    pub fn comes_first(&self, first: ExprId, then: ExprId) -> bool {
        let (Some((block, step)), Some((home, at))) = (self.places.get(&first), self.places.get(&then)) else {
            return false;
        };
        match block == home {
            true => step < at,
            false => self.dominators.dominates(*block, *home),
        }
    }
}

/// The order of evaluation in a function. Each of its launches may ask for it.
#[salsa::tracked(returns(clone), lru = 128)]
pub(crate) fn evaluation<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Evaluation> {
    Arc::new(Evaluation::of(&control_flow(db, function)))
}

/// The control flow of a function. Who compares its launches with one another asks for each pair.
#[salsa::tracked(returns(clone), lru = 128)]
pub fn control_flow<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Flow> {
    Arc::new(Flow::of(&body(db, function)))
}
