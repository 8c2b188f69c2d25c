//! A layer that a rewrite has put on a function.

use crate::api::rewrite::Options;
use crate::api::source_edit::SourceEdit;

/// A layer to take off.
pub struct Layer {
    /// The edit that does.
    pub edit: SourceEdit,
    /// The rewrite that puts it on again, with these options.
    pub rewrite: &'static str,
    /// Its options.
    pub options: Options,
    /// The launch to which it does, in the function.
    pub index: u32,
}
