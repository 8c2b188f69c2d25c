//! The preprocessor's lines of a text.

use crate::base::scan::{
    end_of_block_comment, end_of_char, end_of_directive, end_of_line_comment, end_of_number, end_of_raw_string,
    end_of_string, is_blank, is_raw_prefix, is_word_start, skip_in_directive, word_across_lines, word_at,
};

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
        Directive {
            start: at,
            end: end_of_directive(text.as_bytes(), at),
            name: name_at(text, at).0,
        }
    }

    /// Where what stands between the mark and the name is: blanks, comments, ends of lines that go on.
    pub(super) fn gap(&self, text: &str) -> std::ops::Range<usize> {
        let bytes = text.as_bytes();
        let behind = self.start + mark_len(bytes, self.start);
        behind..skip_in_directive(bytes, behind).max(behind)
    }

    /// What stands behind the name, as written.
    pub fn rest<'t>(&self, text: &'t str) -> &'t str {
        text.get(name_at(text, self.start).1..self.end).unwrap_or("")
    }
}

/// The name of the directive that begins at `at`, and where it ends: the end of a line that goes on may stand in the middle of it.
fn name_at(text: &str, at: usize) -> (String, usize) {
    let bytes = text.as_bytes();
    word_across_lines(text, skip_in_directive(bytes, at + mark_len(bytes, at)))
}

/// The length of `#`, or of its other spelling `%:`.
fn mark_len(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at) == Some(&b'%') { 2 } else { 1 }
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
            _ if matches!(byte, b'\n' | b'\r') || is_blank(byte) => {
                line_fresh = fresh || byte == b'\n';
                at + 1
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => end_of_line_comment(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                line_fresh = fresh;
                end_of_block_comment(bytes, at)
            }
            b'"' => end_of_string(bytes, at),
            b'\'' => end_of_char(bytes, at),
            // `%:` is another spelling of `#`.
            b'#' | b'%' if fresh && (byte == b'#' || bytes.get(at + 1) == Some(&b':')) => {
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
