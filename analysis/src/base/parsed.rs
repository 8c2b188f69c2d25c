//! A parsed text.

use std::sync::Arc;

use tree_sitter::Tree;

use crate::base::mask::Masked;

/// A parsed file; equal when it is the very same.
#[derive(Clone, Debug)]
pub struct Parsed(Arc<ParsedData>);

#[derive(Debug)]
struct ParsedData {
    masked: Masked,
    tree: Tree,
}

impl Parsed {
    pub(super) fn new(masked: Masked, tree: Tree) -> Self {
        Parsed(Arc::new(ParsedData { masked, tree }))
    }

    /// The masked text; same offsets as the file's.
    pub fn masked(&self) -> &Masked {
        &self.0.masked
    }

    /// The tree over the masked text.
    pub fn tree(&self) -> &Tree {
        &self.0.tree
    }
}

impl PartialEq for Parsed {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Parsed {}
