//! Parsing: text → masked text → tree.

use tree_sitter::{Parser, Tree};

use crate::base::db::{Db, SourceFile};
use crate::base::mask::{edited_tree, mask_with};
use crate::base::parsed::Parsed;
use crate::base::preprocess::file_directives;
use crate::base::preprocess::{branches, specifier_macros};
use crate::base::tree_cache::tree_of;

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
    Parsed::new(masked, tree)
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
