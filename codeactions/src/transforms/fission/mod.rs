//! Loop fission: a kernel whose threads meet at barriers, as code for one thread.
//!
//! After MCUDA (Stratton, Stone, Hwu, LCPC 2008): what stands between two barriers becomes a loop over the threads of the block;
//! control flow around a barrier, which all threads take alike, stays around those loops; shared memory becomes local arrays,
//! and so does a thread's variable that is used on both sides of a barrier, with one element for each thread. A variable that is
//! the same for the whole block stays one variable, and one that can be computed again is computed again.
//!
//! The result runs the threads of a block in one of the orders that CUDA allows, so that it needs no proof that they don't
//! interfere between barriers. What it can't keep is threads that wait for one another without a barrier: those are refused.

mod atomics;
mod constants;
mod copies;
mod directives;
mod emit;
mod groups;
mod layout;
mod memory;
mod reasons;
pub mod structure;
mod text;

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::effects::Effects;

use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Reason;
use crate::facts::child::Child;

pub use emit::SerialNames;
pub use groups::Groups;
pub use memory::{Told, constant_bytes};

use layout::Layout;
use memory::{Dynamic, Sizes};
use reasons::reason;

/// A child that can be split at its barriers.
pub struct Fission<'a, 'db> {
    child: &'a Child<'db>,
    groups: &'a Groups,
    layout: Layout,
    sizes: Sizes,
    atomics: Vec<Span>,
}

/// How many threads a block has, as far as the launch tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockThreads {
    /// At most this many.
    pub most: u64,
    /// Always that many: the block size is constant.
    pub constant: bool,
}

impl<'a, 'db> Fission<'a, 'db> {
    /// Splits the child's body, or says why not. `told`: what the launch tells of its memory; `limit` is what all arrays may take of a thread's local memory, in bytes.
    pub fn of(
        child: &'a Child<'db>,
        groups: &'a Groups,
        effects: &Effects,
        threads: BlockThreads,
        told: &Told,
        limit: u64,
    ) -> Result<Self, Vec<Reason>> {
        let (layout, atomics) = match (Layout::of(child, groups, effects), atomics::on_shared_memory(child)) {
            (Ok(layout), Ok(atomics)) => (layout, atomics),
            (Err(mut refused), Err(more)) => {
                refused.extend(more);
                return Err(refused);
            }
            (Err(refused), _) | (_, Err(refused)) => return Err(refused),
        };
        if let Some(place) = told.unknown_block.filter(|_| layout.counts_threads()) {
            let text = format!(
                "`{}` has barriers, and how many threads a block has isn't known",
                child.name
            );
            return Err(vec![reason(text, place)]);
        }
        let sizes = Sizes::of(child, &layout, threads, told)?;
        if sizes.bytes > limit {
            let what = format!(
                "`{}` in one thread needs {} bytes of local memory for its shared memory and its threads' variables, more than \
                 the limit of {limit}",
                child.name, sizes.bytes
            );
            return Err(vec![reason(what, child.place())]);
        }
        Ok(Fission {
            child,
            groups,
            layout,
            sizes,
            atomics,
        })
    }
}

impl Fission<'_, '_> {
    /// The launch computes how large dynamic shared memory is: a grid runs in one thread only where that fits.
    pub fn compares_shared(&self) -> bool {
        matches!(self.sizes.dynamic, Some((_, Dynamic::Room { .. })))
    }

    /// That shared arrays whose size isn't known are small enough; `limit`: what they and all else may take, in bytes.
    pub fn assumed(&self, limit: u64) -> Option<Assumed> {
        let body = &self.child.body;
        let first = body.binding(*self.sizes.unknown.first()?);
        let names: Vec<String> = { self.sizes.unknown.iter() }
            .map(|b| format!("`{}`", body.binding(*b).name))
            .collect();
        let takes = if names.len() == 1 { "takes" } else { "take" };
        Some(assumption::LOCAL_MEMORY.of(Reason {
            text: format!(
                "{} of `{}` {takes} no more than {} bytes, which become local memory of each launching thread",
                names.join(", "),
                self.child.name,
                limit - self.sizes.bytes.min(limit)
            ),
            place: Some(self.child.place_of(first.span)),
        }))
    }
}

impl Child<'_> {
    /// A span of the child as a place.
    fn place_of(&self, span: Span) -> FileRange {
        FileRange {
            file: self.file,
            range: span.shift(self.start),
        }
    }
}
