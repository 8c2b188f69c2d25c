//! Whose launches become one launch.

use gridfuse_analysis::facts::uniformity::Level;

/// Whose launches become one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// Of the threads of a warp.
    Warp,
    /// Of the threads of a block.
    Block,
    /// Of so many neighbouring blocks.
    MultiBlock(u64),
    /// Of the whole parent grid.
    Grid,
    /// Of the whole parent grid; the host launches.
    GridFromHost,
    /// Of the whole parent grid; the host has launched after the parent what runs them.
    GridInStream,
}

impl Granularity {
    /// The type in `gridfuse.cuh`.
    pub fn type_name(self) -> String {
        match self {
            Granularity::Warp => "gridfuse::PerWarp".to_owned(),
            Granularity::Block => "gridfuse::PerBlock".to_owned(),
            Granularity::MultiBlock(blocks) => format!("gridfuse::PerMultiBlock<{blocks}>"),
            Granularity::Grid => "gridfuse::PerGrid".to_owned(),
            Granularity::GridFromHost => "gridfuse::PerGridFromHost".to_owned(),
            Granularity::GridInStream => "gridfuse::PerGridInStream".to_owned(),
        }
    }

    /// For a comment and a message: the launches of what.
    pub fn noun(self) -> &'static str {
        match self {
            Granularity::Warp => "warp",
            Granularity::Block => "block",
            Granularity::MultiBlock(_) => "group of blocks",
            Granularity::Grid | Granularity::GridFromHost | Granularity::GridInStream => "grid",
        }
    }

    /// What has to be uniform at this level is the same for all launches that are collected together.
    pub fn level(self) -> Level {
        match self {
            Granularity::Warp | Granularity::Block => Level::Block,
            Granularity::MultiBlock(_) | Granularity::Grid | Granularity::GridFromHost | Granularity::GridInStream => {
                Level::Grid
            }
        }
    }

    /// Shared memory that the aggregator takes, in bytes.
    pub fn shared_bytes(self) -> u32 {
        match self {
            Granularity::Warp => 32 * 64,
            Granularity::Block => 64,
            Granularity::MultiBlock(_) | Granularity::Grid | Granularity::GridFromHost => 16,
            Granularity::GridInStream => 0,
        }
    }
}
