//! The lattice of uniformity levels and the per-function result.

use std::collections::HashMap;

use crate::base::span::Span;
use crate::hir::{ExprId, StmtId};

/// How many threads are sure to hold the same value (of those that reach the point): ordered, the smaller the more uniform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue, serde::Serialize)]
pub enum Level {
    /// The same in every run of the statement.
    #[default]
    Constant,
    /// The same for all threads of a grid: a kernel parameter.
    Grid,
    /// The same for all threads of a block: `blockIdx.x`.
    Block,
    /// The same for all threads of a warp.
    Warp,
    /// May differ between any two threads: `threadIdx.x`.
    Varying,
}

impl Level {
    /// The less uniform of the two.
    pub fn join(self, other: Level) -> Level {
        self.max(other)
    }

    /// Lower-case name for messages.
    pub fn name(self) -> &'static str {
        match self {
            Level::Constant => "constant",
            Level::Grid => "grid-uniform",
            Level::Block => "block-uniform",
            Level::Warp => "warp-uniform",
            Level::Varying => "varying",
        }
    }
}

/// A level with its justification.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct Uniformity {
    /// The level.
    pub level: Level,
    /// Why it isn't more uniform: a short sentence (`depends on threadIdx.x`), with the place of the cause.
    pub why: Option<Cause>,
    /// What the level takes for granted and only the programmer knows, e.g. `nothing writes row[] while the grid runs`.
    pub assumes: Vec<Cause>,
}

/// A reason with its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Cause {
    /// Sentence fragment without a full stop.
    pub text: String,
    /// Where.
    pub span: Span,
}

/// The result for one function.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct FunctionUniformity {
    /// Level of every expression at its place. Expressions in unreachable code are missing.
    pub exprs: HashMap<ExprId, Uniformity>,
    /// For every reachable statement: how uniform the decision is that control reaches it. `Grid`: all threads of the grid
    /// reach it or none; `Varying`: threads of one warp may differ. `why` is the condition that causes it.
    pub divergence: HashMap<StmtId, Uniformity>,
    /// The same for every launch expression (differs from its statement's under `?:`, `&&`, `||`).
    pub launch_divergence: HashMap<ExprId, Uniformity>,
    /// Nothing is known of any of them: it would take too many steps.
    pub too_large: bool,
}

impl FunctionUniformity {
    /// Level of an expression; `Varying` when it isn't known.
    pub fn of(&self, expr: ExprId) -> Level {
        self.exprs.get(&expr).map_or(Level::Varying, |u| u.level)
    }
}
