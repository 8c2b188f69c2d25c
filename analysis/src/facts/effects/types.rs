//! What is found in one body: facts about memory, and what it does beside computing, in order.

use std::collections::BTreeSet;

use crate::base::span::Span;
use crate::facts::closures::Closure;
use crate::facts::uniformity::memory::MemoryClass;
use crate::hir::items::FunctionItem;
use crate::hir::library::Library;
use crate::hir::{Builtin, ExprId};

/// A set of CUDA's built-in variables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Builtins(u8);

impl Builtins {
    /// All of them.
    pub const ALL: Builtins = Builtins(31);

    /// Adds one.
    pub fn insert(&mut self, builtin: Builtin) {
        self.0 |= 1 << builtin as u8;
    }

    /// Whether it's in the set.
    pub fn contains(self, builtin: Builtin) -> bool {
        self.0 & (1 << builtin as u8) != 0
    }

    /// The union.
    pub fn union(self, other: Builtins) -> Builtins {
        Builtins(self.0 | other.0)
    }

    /// No built-in at all.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A write to memory that other threads may see.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Write {
    /// What kind of memory.
    pub class: MemoryClass,
    /// Certainly to shared memory.
    pub shared: bool,
    /// Where, in the function that the facts are about: the write, or the call or launch that leads to it.
    pub span: Span,
}

/// A call of a function of the workspace.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct CallSite<'db> {
    /// The call or launch expression.
    pub expr: ExprId,
    /// Its span.
    pub span: Span,
    /// Every definition that it may mean.
    pub candidates: Vec<FunctionItem<'db>>,
}

/// The words for a loop whose end another thread may decide.
pub(super) const WAITING_LOOP: &str = "a loop that waits for another thread";

/// What a piece of code does, beside computing.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub enum What {
    /// Calls a function of the library, or a member function of a cooperative group.
    Calls(Library),
    /// Launches a grid.
    Launches,
    /// Declares or names `__shared__` memory.
    Shared,
    /// Inline assembly: its text, see [`assembly_text`](crate::hir::assembly::assembly_text).
    Asm(Option<String>),
    /// A loop that may wait for another thread.
    Waits,
    /// Declares a `__restrict__` pointer.
    Restrict {
        /// It is a parameter.
        parameter: bool,
    },
    /// Names itself: `__func__`.
    OwnName,
    /// Reads a built-in variable, for which a parameter of that name could stand.
    Builtin(&'static str),
    /// Something with a name of its own reads a built-in variable.
    ReadsItself(&'static str),
    /// Nothing is known of it.
    Unknown,
    /// A name that computes a value, of which nothing else is known.
    UnknownValue,
}

/// One of these in a body.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct Act {
    /// What is done.
    pub what: What,
    /// The words to name it: `__syncthreads()`, `a call of f`.
    pub name: String,
    /// All of it.
    pub span: Span,
    /// Where to point at: the name of what is called.
    pub at: Span,
}

/// What happens at a place in a body.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub enum Step<'db> {
    /// It does something itself.
    Does(Act),
    /// One of these functions may run.
    Runs {
        /// Every definition that may be meant.
        functions: Vec<FunctionItem<'db>>,
        /// Where it is named.
        at: Span,
    },
    /// One of these lambdas may run.
    RunsLambda {
        /// Every lambda that may be meant.
        closures: Vec<Closure<'db>>,
        /// Where it is named.
        at: Span,
    },
}

impl Step<'_> {
    /// Where to point at.
    pub fn at(&self) -> Span {
        match self {
            Step::Does(act) => act.at,
            Step::Runs { at, .. } | Step::RunsLambda { at, .. } => *at,
        }
    }
}

/// Facts that hold for a function, or for all that it calls as well.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct Facts {
    /// Built-in variables that are read.
    pub builtins: Builtins,
    /// Block barriers, warp barriers, barriers of cooperative groups and in `asm`.
    pub barriers: Vec<Span>,
    /// Shuffles, votes, `__activemask`, warp reductions.
    pub warp_ops: Vec<Span>,
    /// Declarations of `__shared__` variables of fixed size.
    pub static_shared: Vec<Span>,
    /// Declarations of `extern __shared__` arrays.
    pub dynamic_shared: Vec<Span>,
    /// Kernel launches.
    pub launches: Vec<Span>,
    /// Waits for child grids.
    pub device_sync: Vec<Span>,
    /// Loops that may wait for another thread: their end depends on an atomic's result, on volatile or on spinning on memory.
    pub may_wait: Vec<Span>,
    /// `asm`.
    pub asm: Vec<Span>,
    /// Calls of functions of which nothing is known, with their names; constructs that weren't understood have an empty name.
    pub unknown_calls: Vec<(String, Span)>,
    /// Writes to memory that other threads may see.
    pub writes: Vec<Write>,
    /// `printf`
    pub prints: Vec<Span>,
}

/// The facts of one body alone, and the calls and launches in it.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct Direct<'db> {
    /// The facts.
    pub facts: Facts,
    /// Calls of functions of the workspace.
    pub calls: Vec<CallSite<'db>>,
    /// Launches; without candidates when the kernel isn't known.
    pub launches: Vec<CallSite<'db>>,
    /// Parameters (by index) that the body itself may write through, or hands on to something that may.
    pub written_params: BTreeSet<u32>,
    /// Parameters that are used as values, so that what they point at may be reached in other ways.
    pub leaked_params: BTreeSet<u32>,
    /// Pointers are cast between types: types say nothing about aliasing.
    pub puns: bool,
    /// What the lowered body does, in the order in which it stands there.
    pub steps: Vec<Step<'db>>,
    /// What isn't understood, and what runs without being called.
    pub unclear: Vec<Act>,
}
