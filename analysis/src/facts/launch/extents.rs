//! How large an index of threads or blocks can become, by the sizes of the grid and of its blocks.

use crate::hir::Builtin;

/// A number `n` with `n <= bound - step`, each the product of a set of sizes: `gridDim.y * blockIdx.z` is at most
/// `gridDim.y * gridDim.z - gridDim.y`. No size is in a set twice, so that no bound is more than the threads of the grid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extents {
    bound: u8,
    step: u8,
}

/// The set of one size: of `blockDim` or `gridDim`, along an axis.
fn set(of: Builtin, axis: usize) -> Option<u8> {
    match of {
        Builtin::BlockDim | Builtin::ThreadIdx if axis < 3 => Some(1 << axis),
        Builtin::GridDim | Builtin::BlockIdx if axis < 3 => Some(8 << axis),
        _ => None,
    }
}

impl Extents {
    /// An index itself: `threadIdx` or `blockIdx` along an axis.
    pub(super) fn of_index(index: Builtin, axis: usize) -> Option<Extents> {
        Some(Extents {
            bound: set(index, axis)?,
            step: 0,
        })
    }

    /// Times sizes. `None`: one of them would be there twice, or isn't known.
    pub(super) fn times(self, sizes: &[(Builtin, usize)]) -> Option<Extents> {
        sizes.iter().try_fold(self, |Extents { bound, step }, (of, axis)| {
            let size = set(*of, *axis).filter(|size| bound & size == 0)?;
            Some(Extents {
                bound: bound | size,
                step: step | size,
            })
        })
    }

    /// A sum. `None`: it isn't known to be less than the larger one's bound.
    pub(super) fn plus(self, other: Extents) -> Option<Extents> {
        let within = |small: Extents, large: Extents| {
            (small.bound & !large.step == 0).then_some(Extents {
                bound: large.bound,
                step: small.step,
            })
        };
        within(self, other).or_else(|| within(other, self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const Y: (Builtin, usize) = (Builtin::GridDim, 1);
    const X: (Builtin, usize) = (Builtin::GridDim, 0);

    fn block(axis: usize) -> Option<Extents> {
        Extents::of_index(Builtin::BlockIdx, axis)
    }

    #[test]
    fn an_index_in_three_dimensions_stays_within_the_grid() {
        let rows = block(2).and_then(|z| z.times(&[Y]));
        let inner = rows.and_then(|rows| block(1)?.plus(rows));
        let outer = inner.and_then(|inner| inner.times(&[X]));
        assert!(outer.and_then(|outer| block(0)?.plus(outer)).is_some());
    }

    #[test]
    fn what_may_be_more_than_the_grid() {
        // `blockIdx.z * gridDim.y` and `blockIdx.x`, which may be more than `gridDim.y`.
        let rows = block(2).and_then(|z| z.times(&[Y]));
        assert_eq!(rows.and_then(|rows| block(0)?.plus(rows)), None);
        // A size twice, and the size of the index itself.
        assert_eq!(rows.and_then(|rows| rows.times(&[Y])), None);
        assert_eq!(block(1).and_then(|y| y.times(&[Y])), None);
        assert_eq!(block(1).and_then(|y| y.times(&[(Builtin::WarpSize, 0)])), None);
    }
}
