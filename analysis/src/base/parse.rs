//! Parsing: text → masked text → tree.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use tree_sitter::{Parser, Tree};

use crate::base::db::{Db, PatchedText, SourceFile};
use crate::base::mask::{Masked, edited_tree, mask_with};
use crate::base::parsed::{Bare, Kept, Parsed};
use crate::base::preprocess::{branches, file_directives, specifier_macros};
use crate::base::skeleton::{Blank, skeleton};
use crate::base::span::TextRange;
use crate::base::tree_cache::tree_of;

/// Parses a text, from the tree of an earlier one where there is one.
fn parse_from(kept: Option<&Mutex<Kept>>, text: &Arc<str>) -> Tree {
    let Some(kept) = kept else {
        return parse_text(text, None);
    };
    // Whoever panicked here left a text with its tree all the same.
    let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
    let old = lock().clone();
    let tree = match old {
        Some((old, tree)) if old == *text => tree,
        // An edit can change what is masked far away from it, so the difference of the masked texts is taken.
        Some((old, tree)) => parse_anew(text, Some(&edited_tree(&tree, &old, text))),
        None => parse_text(text, None),
    };
    *lock() = Some((text.clone(), tree.clone()));
    tree
}

/// Whether what is known of a text without reading it is so still: what is compiled of it, and what macros stand for in it, other files
/// say as well.
#[salsa::tracked(returns(copy))]
pub(crate) fn patch_holds(db: &dyn Db, file: SourceFile) -> bool {
    let holds = |patched: &Arc<PatchedText>| {
        patched.branches == *branches(db, file) && patched.macros == *specifier_macros(db, file)
    };
    file.patched(db).as_ref().is_some_and(holds)
}

/// Masks a file.
#[salsa::tracked(returns(clone))]
pub fn masked(db: &dyn Db, file: SourceFile) -> Arc<Masked> {
    if let Some(patched) = file.patched(db)
        && patch_holds(db, file)
    {
        return patched.masked.clone();
    }
    let directives = file_directives(db, file);
    Arc::new(mask_with(
        &file.text(db),
        &directives,
        branches(db, file),
        specifier_macros(db, file),
    ))
}

/// What was blanked in a file because it is too large, in order.
pub(crate) fn large_ranges(db: &dyn Db, file: SourceFile) -> Vec<TextRange> {
    masked(db, file).large.clone()
}

/// Parses a file, incrementally where it is being edited.
#[salsa::tracked(returns(clone), no_eq, unsafe(non_salsa_values))]
pub fn parse(db: &dyn Db, file: SourceFile) -> Parsed {
    let masked = masked(db, file);
    let last = file.last_trees(db);
    let tree = parse_from(last.as_ref().map(|last| last.whole.as_ref()), &masked.text);
    Parsed::new(masked, tree)
}

/// Parses a file without what its functions do, but for those in classes. Once its items are known, hardly anybody asks for the tree: those of
/// all files of a workspace would be most of what is kept.
#[salsa::tracked(returns(clone), no_eq, lru = 128, unsafe(non_salsa_values))]
pub(crate) fn parse_bare(db: &dyn Db, file: SourceFile) -> Bare {
    let skeleton = skeleton(&masked(db, file).text, Blank::OutsideOfClasses);
    let last = file.last_trees(db);
    let tree = parse_from(last.as_ref().map(|last| last.bare.as_ref()), &skeleton.text.into());
    let bodies = skeleton.bodies;
    Bare::new(tree, bodies)
}

/// Parses a file without what any of its functions does.
#[salsa::tracked(returns(clone), no_eq, lru = 128, unsafe(non_salsa_values))]
pub(crate) fn parse_barest(db: &dyn Db, file: SourceFile) -> Bare {
    let skeleton = skeleton(&masked(db, file).text, Blank::All);
    let tree = parse_text(&skeleton.text, None);
    let bodies = skeleton.bodies;
    Bare::new(tree, bodies)
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
    thread_local! {
        // Making one takes as long as parsing a small function.
        static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
    }
    let mut parser = PARSER.with(|kept| kept.try_borrow_mut().ok().and_then(|mut kept| kept.take()));
    // Both calls fail only when the grammar's ABI doesn't fit the library (a build error that every test would show)
    // or when a cancellation callback was set (none is).
    if parser.is_none() {
        let mut new = Parser::new();
        parser = new.set_language(&tree_sitter_cuda::LANGUAGE.into()).ok().map(|()| new);
    }
    let parsed = parser.as_mut().and_then(|parser| parser.parse(masked, old));
    PARSER.with(|kept| {
        if let Ok(mut kept) = kept.try_borrow_mut() {
            *kept = parser;
        }
    });
    match parsed {
        Some(tree) => tree,
        None => unreachable!("tree-sitter-cuda's ABI fits tree-sitter, and no cancellation is set"),
    }
}
