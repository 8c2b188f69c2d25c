//! Dependences through memory: between a launching function and its child grids, among child grids, among the iterations of
//! loops that launch.
//!
//! A [`Footprint`](access::Footprint) lists what a function reads and writes: the root of the memory, and the subscript as a
//! polynomial over thread numbers, parameters and values that aren't looked into. A launch maps the child's footprint to the launching
//! function's terms through its arguments. Two executions are then compared access by access: roots by what is known of pointers,
//! subscripts by the classical tests. "None" is a proof; what can't be proven is a conflict with its two accesses, or not known,
//! and why.

mod access;
mod alias;
mod allocated;
mod children;
mod compare;
mod equation;
mod fields;
mod guard;
mod integer;
mod iterations;
mod location;
mod parent;
mod polynomial;
mod prefix;
mod renaming;
mod serial;
mod sizes;
mod subscript;
mod variables;
mod wait;

pub use access::{Access, Footprint, Gap, Kind, Operation, child_footprint, footprint, own_footprint};
pub use alias::always_apart;
pub(crate) use alias::{passed_members, writers};
pub use children::{Beside, Order, order};
pub use compare::{Dependence, Doubt, Independence, Touch};
pub use guard::Guard;
pub use integer::Integer;
pub(crate) use integer::integer;
pub use iterations::{Iterations, LoopDependence, loops, rounds_are_independent};
pub use location::Root;
pub use parent::{After, Meeting, after, beside};
pub use polynomial::{Interval, Polynomial, Symbol};
pub use prefix::{Prefix, prefixes};
pub use serial::{Clash, CountedLoop, LoopMemory, NotCounted, Sort, counted_loop};
pub use sizes::most_threads;
pub use subscript::{Fit, Value};
pub(crate) use variables::exposed;
pub use wait::{Waited, behind_wait, unchanged};
