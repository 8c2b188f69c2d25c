//! What code does beside computing values: the one analysis that is asked, by the other analyses and by rewrites.
//!
//! It looks at lowered bodies, in which macros are expanded ([`direct`]); what is done where a name stands, the table of the library
//! tells, or the functions that the name may mean ([`named`]). Only words of which nothing is lowered are looked at as such
//! ([`unlowered`]). What isn't in sight, isn't understood, comes out of a macro that isn't certain or runs without being called is unknown,
//! with its place: it may do anything.
//!
//! Who asks what:
//!
//! | question | answer | who asks |
//! |---|---|---|
//! | what does this body write, through which parameters, of which kind is the memory | [`Direct`] | `dependence`, `uniformity`, `escape` |
//! | what does it write with all that it calls and launches | [`memory_effects`] | `uniformity`: whether two reads find the same |
//! | does something that runs end the program, or look at which thread it is | [`may_end_the_program`], [`looks_at_the_thread`] | `launch::count`, `uniformity` |
//! | are there more callees than are looked at | [`leads_too_far`] | whatever follows calls |
//! | whom does it call and launch; which call leads to a launch, a barrier, a wait for children, a loop that waits, dynamic shared memory, unknown code | [`summary`], [`direct`] | diagnostics, `dependence::wait`, the graph; rewrites, for spans in the function itself |
//! | do threads meet: barriers of the block, exchange in the warp | [`Effects::barriers`], [`Effects::warp`] | running in the launcher, fission, coarsening, promotion, streams, grid-stride loops |
//! | does it use shared memory | [`Effects::shared`] | the same, and whoever puts an aggregator there |
//! | what does it launch, callees included | [`Effects::launches`] | order of launches, aggregation, recursion, continuation, promotion, persistent loops, copies of callees |
//! | what does it put into streams beside launches; does it order them by events | [`Effects::operations`], [`Effects::events`] | order of launches, every rewrite that moves launches |
//! | does it wait for children, does it ask for errors | [`Effects::syncs`], [`Effects::errors`] | surroundings of a launch, moving of bodies, continuation, promotion |
//! | may it wait for another thread | [`Effects::waits`] | aggregation, coarsening, running in the launcher, grid-stride loops |
//! | which built-in variables do functions read that it calls | [`Effects::builtins_in_callees`] | moving and copying of bodies, continuation, accumulation, promotion |
//! | what does its inline assembly do | [`Effects::asm`] | moving of bodies, arenas, combining of atomics, continuation, promotion, allocation |
//! | does it load by way of a cache that takes for granted that nobody writes | [`Effects::read_only`], [`Effects::restricts`] | what makes one grid of several, or a loop |
//! | are there fences | [`Effects::fences`] | combining of atomics |
//! | does it call itself, does it ask for its own name | [`Effects::recursion`], [`Effects::own_name`] | running in the launcher, moving of bodies, promotion |
//! | what isn't known, and where | [`Effects::unknown`] | all of them |
//! | may it be called twice, or not at all | [`is_pure`], [`computes`], [`keeps_arguments`] | whoever evaluates an expression elsewhere |

mod assembly;
mod for_callers;
mod named;
mod of_body;
mod pure;
mod types;
mod unlowered;
mod with_callees;

pub use assembly::Assembly;
pub(crate) use for_callers::looks_at_the_thread;
pub use for_callers::{MemoryEffects, Summary, leads_too_far, may_end_the_program, memory_effects, summary};
pub use named::{BUILTINS, OWN_HEAD};
pub use of_body::direct;
pub use pure::{computes, is_pure, keeps_arguments};
pub use types::{Act, Builtins, CallSite, Direct, Facts, Step, What, Write};
pub use with_callees::{Effects, Found, effects, runs};
