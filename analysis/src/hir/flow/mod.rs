//! Control flow of a function: basic blocks over the lowered body, with the facts about paths that analyses need.
//!
//! The graph is evaluation-exact: `&&`, `||` and `?:` branch, a `#if` is a branch that goes the same way for every thread,
//! and a statement that wasn't understood branches to everywhere it could.

mod before;
mod build;
mod graph;
mod join;

pub(crate) use crate::hir::walk::operands;
pub use before::control_flow;
pub(crate) use before::evaluation;
pub use graph::{ControlDependence, Dominators, Loop, LoopId, Loops};
pub use join::divergent_joins;

use std::collections::HashMap;

use crate::base::span::Span;
use crate::hir::{BindingId, Body, ExprId, StmtId};

/// Index of a basic block in [`Flow::blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue)]
pub struct BlockId(pub u32);

impl BlockId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a block does, in order of evaluation.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub enum Step {
    /// The statement begins here.
    Stmt(StmtId),
    /// The expression is evaluated; its operands were evaluated by earlier steps.
    Expr(ExprId),
    /// The variable comes to life, with the value of its initialiser.
    Decl {
        /// The variable.
        binding: BindingId,
        /// Its initialiser, evaluated by earlier steps.
        init: Option<ExprId>,
    },
    /// The variable of a range-for takes the next element.
    Element {
        /// The variable.
        binding: BindingId,
        /// The range.
        range: ExprId,
    },
    /// The return value is set.
    Return(ExprId),
    /// Something that wasn't understood (or `asm`) happens.
    Opaque(StmtId),
}

/// What decides a branch.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub enum Condition {
    /// The value of an expression.
    Expr(ExprId),
    /// A declaration in the condition: the variable's value.
    Binding(BindingId),
    /// The next element of a range, or its end.
    Range(ExprId),
    /// The preprocessor or `if constexpr`: the same for every thread.
    Uniform,
    /// Not known; anything.
    Opaque(Span),
}

/// How a block ends.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub enum Terminator {
    /// Goes on at another block.
    Goto(BlockId),
    /// Goes on at one of several blocks. Of two targets of an `Expr` that isn't a `switch`, the first is taken when it's true.
    Branch {
        /// What decides.
        on: Condition,
        /// Where to; not empty.
        targets: Vec<BlockId>,
        /// A `switch`: the targets aren't "true" and "false".
        many: bool,
    },
    /// The end of the function: only the exit block has it.
    Exit,
}

/// A basic block.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct BasicBlock {
    /// What it does.
    pub steps: Vec<Step>,
    /// How it ends.
    pub end: Terminator,
}

impl BasicBlock {
    /// Successors, one per edge.
    pub fn targets(&self) -> &[BlockId] {
        match &self.end {
            Terminator::Goto(to) => std::slice::from_ref(to),
            Terminator::Branch { targets, .. } => targets,
            Terminator::Exit => &[],
        }
    }
}

/// The control flow of one function.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct Flow {
    /// All blocks; the first is the entry, the second the exit.
    pub blocks: Vec<BasicBlock>,
    /// Incoming edges of each block from reachable blocks: where they come from.
    pub preds: Vec<Vec<BlockId>>,
    /// The block in which each statement begins.
    pub stmt_block: HashMap<StmtId, BlockId>,
    /// The block in which each expression is evaluated (completed).
    pub expr_block: HashMap<ExprId, BlockId>,
    /// Blocks that the entry reaches, in reverse post-order.
    pub order: Vec<BlockId>,
    /// Position in `order`; `u32::MAX` for unreachable blocks.
    pub position: Vec<u32>,
}

impl Flow {
    /// The entry block.
    pub const ENTRY: BlockId = BlockId(0);
    /// The exit block: every `return` and the end of the body go there.
    pub const EXIT: BlockId = BlockId(1);

    /// Builds the control flow of a body.
    pub fn of(body: &Body) -> Flow {
        build::build(body)
    }

    /// The block with this id.
    pub fn block(&self, id: BlockId) -> &BasicBlock {
        &self.blocks[id.index()]
    }

    /// Whether the block `to` may be executed after `from`.
    pub fn leads(&self, from: BlockId, to: BlockId) -> bool {
        let mut seen = vec![false; self.blocks.len()];
        let mut todo = self.block(from).targets().to_vec();
        while let Some(block) = todo.pop() {
            if block == to {
                return true;
            }
            if !std::mem::replace(&mut seen[block.index()], true) {
                todo.extend_from_slice(self.block(block).targets());
            }
        }
        false
    }

    /// Whether control can reach the block.
    pub fn reachable(&self, id: BlockId) -> bool {
        self.position[id.index()] != u32::MAX
    }

    /// Whether control can reach the statement.
    pub fn reaches(&self, stmt: StmtId) -> bool {
        self.stmt_block.get(&stmt).is_some_and(|b| self.reachable(*b))
    }
}
