//! The alignment that a class asks for: what is written down for launches is aligned to so many bytes, and no more.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::hir::included::included_files;

use crate::edit::lex::{self, code_tokens_of};

/// What the runtime aligns the arguments of a launch to.
pub(crate) const MOST_ALIGNED: u64 = 128;

/// What a class, or a member of it, is said to be aligned to: the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    /// Nothing is said.
    #[default]
    Nothing,
    /// So many bytes.
    Bytes(u64),
    /// Something that isn't a number.
    NotKnown,
}

/// What a class that a file sees asks for.
pub(crate) fn asked_of(db: &dyn Db, file: SourceFile, class: &str) -> Asked {
    let all = included_files(db, file).iter().map(|file| in_file(db, *file, class));
    all.max().unwrap_or_default()
}

fn in_file(db: &dyn Db, file: SourceFile, class: &str) -> Asked {
    let text = file.text(db);
    if !text.contains("align") {
        return Asked::Nothing;
    }
    let tokens = code_tokens_of(db, file);
    let word = |at: usize| tokens.get(at).map_or("", |t: &lex::Token| t.text(&text));
    let mut largest = Asked::Nothing;
    for name in (0..tokens.len()).filter(|at| word(*at) == class) {
        let Some(head) = head_of(&word, name) else { continue };
        let mut depth = 0u32;
        for at in head..tokens.len() {
            match word(at) {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                ";" if depth == 0 => break,
                "alignas" | "__align__" | "aligned" | "__aligned__" if word(at + 1) == "(" => {
                    let number = word(at + 2).trim_end_matches(['u', 'U', 'l', 'L']).parse().ok();
                    let number = number.filter(|_| word(at + 3) == ")");
                    largest = largest.max(number.map_or(Asked::NotKnown, Asked::Bytes));
                }
                _ => {}
            }
        }
    }
    largest
}

/// Where `struct` stands in front of the name at `name`: over attributes and what they hold, and over the class's body where the name is
/// the typedef's.
fn head_of<'a>(word: &impl Fn(usize) -> &'a str, name: usize) -> Option<usize> {
    let mut depth = 0u32;
    for at in (0..name).rev() {
        match word(at) {
            "}" => depth += 1,
            "{" => depth = depth.checked_sub(1)?,
            ";" if depth == 0 => return None,
            "struct" | "class" | "union" if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}
