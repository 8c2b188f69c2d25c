//! The preprocessor's lines of a text.

use std::sync::Arc;

use super::{
    end_of_block_comment, end_of_char, end_of_directive, end_of_line, end_of_number, end_of_raw_string, end_of_string,
    is_raw_prefix, is_word_start, skip_blanks, word_at,
};

use crate::db::{Db, SourceFile};

/// A directive line: where it stands, continuation lines included, and its name.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Directive {
    /// Offset of the `#`.
    pub start: usize,
    /// Offset of the end of its (last) line.
    pub end: usize,
    /// `define`, `if`, …; empty when there is none.
    pub name: String,
}

impl Directive {
    /// The directive at the `#` that stands at `at`.
    pub(super) fn at(text: &str, at: usize) -> Directive {
        let name = skip_blanks(text.as_bytes(), at + 1);
        Directive {
            start: at,
            end: end_of_directive(text.as_bytes(), at),
            name: word_at(text, name).unwrap_or("").to_owned(),
        }
    }

    /// What stands behind the name, as written.
    pub fn rest<'t>(&self, text: &'t str) -> &'t str {
        let name = skip_blanks(text.as_bytes(), self.start + 1);
        text.get(name + self.name.len()..self.end).unwrap_or("")
    }
}

/// All directives of a file, in order.
#[salsa::tracked(returns(clone))]
pub fn file_directives(db: &dyn Db, file: SourceFile) -> Arc<Vec<Directive>> {
    match file.patched(db) {
        Some(patched) => patched.directives.clone(),
        None => Arc::new(directives(&file.text(db))),
    }
}

/// All directives of a text, in order.
pub fn directives(text: &str) -> Vec<Directive> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    let mut line_fresh = true;
    while let Some(&byte) = bytes.get(at) {
        let fresh = std::mem::replace(&mut line_fresh, false);
        at = match byte {
            b'\n' | b' ' | b'\t' | b'\r' => {
                line_fresh = fresh || byte == b'\n';
                at + 1
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => end_of_line(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                line_fresh = fresh;
                end_of_block_comment(bytes, at)
            }
            b'"' => end_of_string(bytes, at),
            b'\'' => end_of_char(bytes, at),
            b'#' if fresh => {
                let directive = Directive::at(text, at);
                let end = directive.end;
                found.push(directive);
                end
            }
            b'0'..=b'9' => end_of_number(bytes, at),
            _ if is_word_start(byte) => {
                let word = word_at(text, at).unwrap_or("");
                let end = at + word.len().max(1);
                if is_raw_prefix(word) && bytes.get(end) == Some(&b'"') {
                    end_of_raw_string(bytes, end)
                } else {
                    end
                }
            }
            _ => at + 1,
        };
    }
    found
}
