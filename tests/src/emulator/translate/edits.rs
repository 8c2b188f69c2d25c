//! Replacements in a text that keep its number of lines.

use std::ops::Range;

use super::stream::Stream;

/// Replacements of ranges of one text.
#[derive(Default)]
pub struct Edits(Vec<(Range<usize>, String)>);

impl Edits {
    /// Puts `insert` in the place of bytes, with as many line ends behind it as they had.
    pub fn replace(&mut self, stream: &Stream<'_>, bytes: Range<usize>, insert: impl Into<String>) {
        let mut insert = insert.into();
        let lines = stream
            .text()
            .get(bytes.clone())
            .map_or(0, |text| text.matches('\n').count());
        let line_end = if stream.in_macro() { "\\\n" } else { "\n" };
        insert.push_str(&line_end.repeat(lines));
        self.0.push((bytes, insert));
    }

    /// Puts `insert` in the place of a range of tokens.
    pub fn replace_tokens(&mut self, stream: &Stream<'_>, tokens: Range<usize>, insert: impl Into<String>) {
        self.replace(stream, stream.bytes(&tokens), insert);
    }

    /// Inserts text.
    pub fn insert(&mut self, at: usize, insert: impl Into<String>) {
        self.0.push((at..at, insert.into()));
    }

    /// Puts text in the place of bytes and doesn't count lines.
    pub fn replace_exactly(&mut self, bytes: Range<usize>, insert: impl Into<String>) {
        self.0.push((bytes, insert.into()));
    }

    /// The text with all replacements done. What lies inside a larger replacement is gone with it.
    pub fn apply(mut self, text: &str) -> String {
        // Of those with the same start: what is inserted, then the largest.
        self.0
            .sort_by_key(|(range, _)| (range.start, !range.is_empty(), std::cmp::Reverse(range.end)));
        let mut out = String::with_capacity(text.len() * 2);
        let mut done = 0;
        for (range, insert) in &self.0 {
            if range.start < done {
                continue;
            }
            out.push_str(text.get(done..range.start).unwrap_or(""));
            out.push_str(insert);
            done = range.end;
        }
        out.push_str(text.get(done..).unwrap_or(""));
        out
    }
}
