//! A parsed text.

use std::sync::{Arc, Mutex};

use tree_sitter::Tree;

use crate::base::mask::Masked;
use crate::base::span::TextRange;

/// A parsed file; equal when it is the very same.
#[derive(Clone, Debug)]
pub struct Parsed(Arc<ParsedData>);

#[derive(Debug)]
struct ParsedData {
    masked: Arc<Masked>,
    tree: Tree,
}

impl Parsed {
    pub(super) fn new(masked: Arc<Masked>, tree: Tree) -> Self {
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

/// A file without what its functions do; equal when it is the very same.
#[derive(Clone, Debug)]
pub(crate) struct Bare(Arc<BareData>);

#[derive(Debug)]
struct BareData {
    tree: Tree,
    bodies: Vec<TextRange>,
}

impl Bare {
    pub(super) fn new(tree: Tree, bodies: Vec<TextRange>) -> Self {
        Bare(Arc::new(BareData { tree, bodies }))
    }

    /// The tree over the masked text, the bodies blanked.
    pub fn tree(&self) -> &Tree {
        &self.0.tree
    }

    /// The bodies that were blanked, their braces included, in order.
    pub fn bodies(&self) -> &[TextRange] {
        &self.0.bodies
    }
}

impl PartialEq for Bare {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Bare {}

/// A text with its tree.
pub(super) type Kept = Option<(Arc<str>, Tree)>;

/// The last trees of a file that is being edited: the next ones are made from them. What a text means doesn't depend on them, so that
/// they may be those of any earlier text.
#[derive(Clone, Debug, Default)]
pub struct LastTrees {
    pub(super) whole: Arc<Mutex<Kept>>,
    pub(super) bare: Arc<Mutex<Kept>>,
}

impl PartialEq for LastTrees {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.whole, &other.whole)
    }
}

impl Eq for LastTrees {}
