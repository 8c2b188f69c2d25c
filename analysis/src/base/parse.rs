//! Parsing: text → masked text → tree.

use std::sync::Arc;

use tree_sitter::{Parser, Tree};

use crate::base::db::{Db, SourceFile};
use crate::base::mask::{Masked, edited_tree, file_directives, mask_with};
use crate::base::preprocess::{branches, specifier_macros};
use crate::base::tree_cache::tree_of;

/// A parsed file; equal when it is the very same.
#[derive(Clone, Debug)]
pub struct Parsed(Arc<ParsedData>);

#[derive(Debug)]
struct ParsedData {
    masked: Masked,
    tree: Tree,
}

impl Parsed {
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

/// Parses a file, incrementally where the host left what was parsed before.
#[salsa::tracked(returns(clone), no_eq, unsafe(non_salsa_values))]
pub fn parse(db: &dyn Db, file: SourceFile) -> Parsed {
    let directives = file_directives(db, file);
    let masked = mask_with(
        &file.text(db),
        &directives,
        branches(db, file),
        specifier_macros(db, file),
    );
    // An edit can change what is masked far away from it, so the difference of the masked texts is taken.
    let old = file
        .previous(db)
        .map(|old| edited_tree(old.tree(), &old.masked().text, &masked.text));
    let tree = parse_text(&masked.text, old.as_ref());
    Parsed(Arc::new(ParsedData { masked, tree }))
}

/// Parses a masked text, where `old` is what an edit left of the tree of a similar one.
pub fn parse_text(masked: &str, old: Option<&Tree>) -> Tree {
    match old {
        Some(old) => parse_anew(masked, Some(old)),
        None => tree_of(masked, || parse_anew(masked, None)),
    }
}

/// The same without asking whether it was parsed before.
pub(crate) fn parse_anew(masked: &str, old: Option<&Tree>) -> Tree {
    let mut parser = Parser::new();
    // Both calls fail only when the grammar's ABI doesn't fit the library (a build error that every test would show)
    // or when a cancellation callback was set (none is).
    let parsed = parser
        .set_language(&tree_sitter_cuda::LANGUAGE.into())
        .ok()
        .and_then(|()| parser.parse(masked, old));
    match parsed {
        Some(tree) => tree,
        None => unreachable!("tree-sitter-cuda's ABI fits tree-sitter, and no cancellation is set"),
    }
}
