//! Names that are followed by a parenthesis, by what rewrites ask of them: functions of the library, words of the language, types.

use gridfuse_analysis::hir::library::library;

pub use gridfuse_analysis::facts::effects::{computes as is_pure, keeps_arguments};
/// The namespace of the runtime header with atomic operations that are called as CUDA's, and do for a warp what those do for a thread.
pub use gridfuse_analysis::hir::library::TOGETHER;
pub use gridfuse_analysis::hir::plain_types::{VECTORS, is_keyword, is_plain_name, is_plain_type};

/// Whether a library function does nothing but load, by way of a cache of its own.
pub fn only_loads(name: &str) -> bool {
    library(name).is_some_and(|known| known.only_loads())
}
