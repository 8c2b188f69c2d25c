//! The sizes of the grids and blocks that a kernel is launched with.

use super::access::{size_range, size_value};
use super::polynomial::{Interval, Symbol};
use super::subscript::{Evaluator, default_range};
use crate::base::db::Db;
use crate::facts::launch::launches;
use crate::hir::items::FunctionItem;
use crate::hir::resolve::{launch_sites_of, only_known_launches};
use crate::hir::{Builtin, body};

/// Values of `gridDim` and `blockDim`, by axis.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub(super) struct Sizes {
    grid: [Interval; 3],
    block: [Interval; 3],
}

impl Sizes {
    /// Values of a built-in variable.
    pub fn range(&self, builtin: Builtin, axis: u8) -> Interval {
        let axis = usize::from(axis).min(2);
        let below = |size: Interval| Interval {
            lo: Some(0),
            hi: size.hi.map(|hi| hi - 1),
        };
        match builtin {
            Builtin::GridDim => self.grid[axis],
            Builtin::BlockDim => self.block[axis],
            Builtin::BlockIdx => below(self.grid[axis]),
            Builtin::ThreadIdx => below(self.block[axis]),
            Builtin::WarpSize => default_range(&Symbol::Builtin(builtin, 0)),
        }
    }
}

/// As the launches of a kernel in the workspace say, if nothing else can launch it.
#[salsa::tracked]
pub(super) fn sizes<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Sizes {
    let any = |builtin: Builtin| [0u8, 1, 2].map(|axis| default_range(&Symbol::Builtin(builtin, axis)));
    let unknown = Sizes {
        grid: any(Builtin::GridDim),
        block: any(Builtin::BlockDim),
    };
    let sites = launch_sites_of(db, function);
    if !function.signature(db).kernel || sites.is_empty() || !only_known_launches(db, function) {
        return unknown;
    }
    let mut found: Option<Sizes> = None;
    // Those of one function stand together: its variables are looked at once.
    for sites in sites.chunk_by(|a, b| a.function == b.function) {
        let Some(of) = sites.first().map(|site| site.function) else {
            continue;
        };
        let body = body(db, of);
        let evaluator = Evaluator::new(db, of, &body);
        let range = |builtin: Builtin, extent, axis| {
            let value = size_value(&evaluator, extent, axis);
            size_range(&evaluator, value.as_ref(), Symbol::Builtin(builtin, axis))
        };
        for site in sites {
            let Some(facts) = launches(db, of).get(site.index as usize) else {
                return unknown;
            };
            let here = Sizes {
                grid: [0, 1, 2].map(|axis| range(Builtin::GridDim, &facts.grid, axis)),
                block: [0, 1, 2].map(|axis| range(Builtin::BlockDim, &facts.block, axis)),
            };
            found = Some(match found {
                None => here,
                Some(known) => Sizes {
                    grid: [0, 1, 2].map(|i| known.grid[i].hull(here.grid[i])),
                    block: [0, 1, 2].map(|i| known.block[i].hull(here.block[i])),
                },
            });
        }
    }
    found.unwrap_or(unknown)
}

/// The most threads that a block of a kernel has, as far as its launches tell. No block has more than 1,024.
pub fn most_threads(db: &dyn Db, kernel: FunctionItem<'_>) -> u64 {
    let block = sizes(db, kernel).block;
    let threads = block.iter().try_fold(1u64, |threads, axis| {
        threads.checked_mul(u64::try_from(axis.hi?.max(1)).ok()?)
    });
    threads.unwrap_or(1024).min(1024)
}
