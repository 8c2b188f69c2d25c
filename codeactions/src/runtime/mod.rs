//! The runtime that rewritten code includes, `gridfuse.cuh`: its parts, which of them code needs, and what stands in a project already.

mod header;
mod parts;

pub(crate) use header::installed;
pub use header::{HEADER, Installed, SUPPORTED_FROM, header, together};
pub use parts::{PARTS, Part, PartSet};

pub use gridfuse_analysis::hir::runtime_header::{HEADER_NAME, is_runtime_header as is_header};

/// The version of the runtime: that of its namespace, `gridfuse::v2`.
pub const VERSION: u32 = 2;
