//! Rows of blocks: in a block of several rows a warp wraps around, where a row isn't made of whole warps.

use crate::base::db::Db;
use crate::facts::launch::constant_extent;
use crate::hir::items::FunctionItem;
use crate::hir::resolve::launch_sites_of;
use crate::hir::{ExprKind, body};

/// Whether a launch in sight gives a kernel blocks of several rows, each of which isn't made of whole warps: `dim3(48, 4)`. Then
/// `threadIdx.x / 32` is no warp's index.
#[salsa::tracked(returns(copy))]
pub fn wraps_warps<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> bool {
    launch_sites_of(db, kernel).iter().any(|site| {
        let body = &*body(db, site.function);
        let launch = body
            .launches
            .get(site.index as usize)
            .map(|launch| &body.expr(*launch).kind);
        let Some(ExprKind::Launch(launch)) = launch else {
            return false;
        };
        let block = launch.config.get(1);
        let block = block.and_then(|block| constant_extent(db, site.function, body, *block));
        block.is_some_and(|[x, y, z]| x % 32 != 0 && y.saturating_mul(z) > 1)
    })
}
