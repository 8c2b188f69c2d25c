//! A layer that a rewrite has put on a function, taken off.

use crate::api::rewrite::{Layer, Options};
use crate::api::source_edit::SourceEdit;

/// A layer to take off.
#[derive(Clone)]
pub struct Peeled {
    /// The edit that does; several where what was there may have looked in several ways: the first one of which the rewrite makes what is
    /// there now, to the byte, is right.
    pub edits: Vec<SourceEdit>,
    /// What it is: its rewrite puts it on again, with these options.
    pub layer: Layer,
    /// The rewrite's options.
    pub options: Options,
    /// The launch to which it does, in the function.
    pub index: u32,
    /// The name of that function, where it has another one without the layer.
    pub function: Option<String>,
}
