//! Trees of texts that were parsed before.
//!
//! Rewrites that are applied one after the other work on copies of the workspace. Each copy is a database of its own, but for the
//! lines that changed its texts are the same: they need not be parsed again. Parsing depends on the text alone, so it doesn't
//! matter whose tree it is.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use hashlink::LruCache;
use tree_sitter::Tree;

/// Bytes of text whose trees are kept. A tree takes some twenty times as much memory as its text.
const KEPT: usize = 2 << 20;

/// Bytes of a text whose tree isn't kept, as it would take the place of all others.
const LARGE: usize = KEPT / 4;

struct Trees {
    by_text: LruCache<Arc<str>, Tree>,
    bytes: usize,
}

static TREES: LazyLock<Mutex<Trees>> = LazyLock::new(|| {
    Mutex::new(Trees {
        by_text: LruCache::new_unbounded(),
        bytes: 0,
    })
});

/// The tree of `text`: an earlier one, or what `parse` makes of it.
pub fn tree_of(text: &str, parse: impl FnOnce() -> Tree) -> Tree {
    if text.len() > LARGE {
        return parse();
    }
    // Whoever panicked here left texts with their trees all the same.
    let lock = || TREES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(tree) = lock().by_text.get(text) {
        return tree.clone();
    }
    let tree = parse();
    lock().insert(text, &tree);
    tree
}

impl Trees {
    fn insert(&mut self, text: &str, tree: &Tree) {
        if self.by_text.insert(Arc::from(text), tree.clone()).is_none() {
            self.bytes += text.len();
        }
        while self.bytes > KEPT
            && let Some((oldest, _)) = self.by_text.remove_lru()
        {
            self.bytes -= oldest.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::base::parse::parse_anew;

    #[test]
    fn a_text_is_parsed_once() {
        let parsed = Cell::new(0);
        let tree = |text: &str| {
            tree_of(text, || {
                parsed.set(parsed.get() + 1);
                parse_anew(text, None)
            })
        };
        let one = "int tree_cache_one;";
        let first = tree(one).root_node().to_sexp();
        assert_eq!(tree(one).root_node().to_sexp(), first);
        assert_eq!(parsed.get(), 1);
        assert_ne!(tree("int tree_cache_two();").root_node().to_sexp(), first);
        assert_eq!(parsed.get(), 2);
    }

    #[test]
    fn what_is_kept_is_limited() {
        let tree = parse_anew("int a;", None);
        let mut trees = Trees {
            by_text: LruCache::new_unbounded(),
            bytes: 0,
        };
        for number in 0..10 {
            trees.insert(&format!("{number}{}", " ".repeat(LARGE - 1)), &tree);
            trees.insert(&format!("{number}{}", " ".repeat(LARGE - 1)), &tree);
        }
        assert_eq!((trees.by_text.len(), trees.bytes), (4, KEPT));
        assert!(
            trees
                .by_text
                .iter()
                .all(|(text, _)| text.starts_with(['6', '7', '8', '9']))
        );
    }
}
