//! How many grids may be pending at a time: launched, and not yet done. CUDA keeps a slot for each, also until the grid that has launched it
//! is done (seen on an H200 with CUDA 13.0: of 2,100 grids that one grid launches, 52 are lost, however short they are).

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::facts::launch::{Bound, LaunchId, in_recursion, launch_counts, pending_launch_limit};
use gridfuse_analysis::hir::items::FunctionItem;

/// The assumption that not too many launches are pending, with what contradicts it.
pub fn most_pending(db: &dyn Db, file: SourceFile, why: &str) -> String {
    let room = match pending_launch_limit(db, file) {
        Some(limit) => format!("at most {limit} grids are pending at a time"),
        None => "no more grids are pending at a time than the limit that is set".to_owned(),
    };
    format!("{room} (`cudaLimitDevRuntimePendingLaunchCount`): {why}")
}

/// How many grids a function launches at most, in all of its threads; `None` where nothing bounds it, as in a recursion.
pub fn most_launched(db: &dyn Db, function: FunctionItem<'_>) -> Option<u64> {
    let mut sum = 0u64;
    for (index, count) in launch_counts(db, function).iter().enumerate() {
        let index = index as u32;
        match count.per_grid.at_most {
            Bound::Constant(n) if !in_recursion(db, LaunchId { function, index }) => sum = sum.saturating_add(n),
            _ => return None,
        }
    }
    Some(sum)
}

/// What is taken for granted where one grid does the work of many grids of a kernel that launches others besides: those keep their slots
/// until that grid is done. `kernel` is the kernel's name, `others` are those that it launches.
pub fn kept_by_one_grid(db: &dyn Db, file: SourceFile, kernel: &str, others: &[String]) -> Option<String> {
    let mut names: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
    names.sort_unstable();
    names.dedup();
    let names = match names.as_slice() {
        [] => return None,
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        all => all.concat(),
    };
    let why = format!(
        "one grid runs all blocks of `{kernel}`, and the grids of {names} that it launches stay pending until it is done"
    );
    Some(most_pending(db, file, &why))
}
