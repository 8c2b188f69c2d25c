//! A layer that a rewrite has put on a function, taken off.

use crate::api::rewrite::{Layer, Options};
use crate::api::source_edit::SourceEdit;

/// A layer to take off.
pub struct Peeled {
    /// The edit that does.
    pub edit: SourceEdit,
    /// What it is: its rewrite puts it on again, with these options.
    pub layer: Layer,
    /// The rewrite's options.
    pub options: Options,
    /// The launch to which it does, in the function.
    pub index: u32,
}
