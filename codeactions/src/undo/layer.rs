//! A layer that a rewrite has put on a function, taken off.

use super::launch::Looks;
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

/// A layer as it comes off for launches that looked in one of several ways.
pub fn of_all_looks(all: &[Looks], mut peel: impl FnMut(Looks) -> Option<Peeled>) -> Option<Peeled> {
    let mut found: Option<Peeled> = None;
    for peeled in all.iter().filter_map(|looks| peel(*looks)) {
        match &mut found {
            None => found = Some(peeled),
            Some(found) => {
                let further = peeled.edits.into_iter().filter(|edit| !found.edits.contains(edit));
                let further: Vec<SourceEdit> = further.collect();
                found.edits.extend(further);
            }
        }
    }
    found
}
