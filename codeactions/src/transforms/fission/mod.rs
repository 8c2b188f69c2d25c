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
mod emit;
mod layout;
mod memory;
pub mod structure;
mod text;

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::effects::Effects;

use crate::api::refusal::Reason;
use crate::facts::child::Child;

pub use emit::SerialNames;
pub use memory::constant_bytes;

use layout::Layout;
use memory::Sizes;

/// A child that can be split at its barriers.
pub struct Fission<'a, 'db> {
    child: &'a Child<'db>,
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
    /// Splits the child's body, or says why not. `shared_bytes` is the dynamic shared memory of the launch, where that is a
    /// constant; `limit` is what all arrays may take of a thread's local memory, in bytes.
    pub fn of(
        child: &'a Child<'db>,
        effects: &Effects,
        threads: BlockThreads,
        shared_bytes: Option<u64>,
        limit: u64,
    ) -> Result<Self, Vec<Reason>> {
        let layout = Layout::of(child, effects)?;
        let atomics = atomics::on_shared_memory(child)?;
        let sizes = Sizes::of(child, &layout, threads, shared_bytes)?;
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
            layout,
            sizes,
            atomics,
        })
    }
}

fn reason(text: impl Into<String>, place: FileRange) -> Reason {
    Reason {
        text: text.into(),
        place: Some(place),
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
