//! Numbers that hold for every GPU.

/// Threads of a warp: child grids with fewer use a part of one.
pub const WARP: u64 = 32;

/// Launches that may be pending at once, unless the program sets another limit.
pub const PENDING_LAUNCHES: u64 = 2048;
