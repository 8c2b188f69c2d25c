//! CUDA's words for where code runs and where data lies, and the macros of a program that stand for them.

use std::collections::{BTreeMap, BTreeSet};

use gridfuse_codeactions::edit::lex::TokenKind;

use super::stream::File;

/// The words.
const WORDS: [&str; 6] = [
    "__global__",
    "__device__",
    "__host__",
    "__constant__",
    "__managed__",
    "__shared__",
];

/// Macros that stand for some of the words, as in `#define KERNEL extern "C" __global__`.
#[derive(Default)]
pub struct Qualifiers {
    words: BTreeMap<String, Vec<&'static str>>,
    /// Names that stand with arguments before something else than a `;`.
    heads: BTreeSet<String>,
}

impl Qualifiers {
    /// Adds the macros of a file.
    pub fn add(&mut self, file: &File<'_>) {
        let code = &file.code;
        for at in (0..code.len()).filter(|at| code.is_word(*at) && code.word(at + 1) == "(") {
            if code.partner(at + 1).is_some_and(|close| code.word(close + 1) != ";") {
                self.heads.insert(code.word(at).to_owned());
            }
        }
        for directive in &file.directives {
            let (Some(name), Some(body)) = (directive.macro_name(), directive.body()) else {
                continue;
            };
            let plain = |at: usize| body.is_word(at) || body.kind(at) == Some(TokenKind::Text);
            if !(0..body.len()).all(plain) {
                continue;
            }
            let words = WORDS
                .iter()
                .filter(|word| (0..body.len()).any(|at| body.word(at) == **word));
            self.words.entry(name.to_owned()).or_default().extend(words);
        }
    }

    /// Whether `word` is `qualifier`, or a macro that may stand for it.
    pub fn means(&self, word: &str, qualifier: &str) -> bool {
        word == qualifier || self.words.get(word).is_some_and(|words| words.contains(&qualifier))
    }

    /// Whether a macro with arguments stands before more of a declaration somewhere.
    pub fn is_head(&self, name: &str) -> bool {
        self.heads.contains(name)
    }
}
