//! Macros of a program that have names which inserted code takes from the runtime.

use gridfuse_analysis::base::db::{Db, SourceFile};

use crate::api::refusal::Reason;
use crate::edit::include::own_words;
use crate::edit::lex;
use crate::edit::names::is_macro;

/// Why code that is inserted into a file means something else there: a macro replaces what it takes from the runtime. (In the header
/// itself it does so only if it stands before it: see `Header::include_in`.)
pub(super) fn in_the_way<'a>(
    db: &dyn Db,
    file: SourceFile,
    mut inserted: impl Iterator<Item = &'a str>,
) -> Option<Reason> {
    let replaced = |name: &&str| is_macro(db, file, name) && own_words().contains(*name);
    let name = inserted.find_map(|code| names_of_runtime(code).into_iter().find(replaced))?;
    Some(Reason {
        text: format!(
            "the macro `{name}` has the name of something in the runtime header that is used here; give it another one"
        ),
        place: None,
    })
}

/// What follows `gridfuse::`, and members that something is asked for, where the code needs the runtime.
fn names_of_runtime(code: &str) -> Vec<&str> {
    let tokens = lex::code_tokens(code);
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text(code));
    let named = |at: &usize| match word(*at - 1) {
        "." => true,
        "::" => *at >= 2 && word(*at - 2) == "gridfuse",
        ":" => *at >= 3 && word(*at - 3) == "gridfuse",
        _ => false,
    };
    (1..tokens.len()).filter(named).map(word).collect()
}
