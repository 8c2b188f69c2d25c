//! Lines of a text: byte offsets to line and column, and back.

use gridfuse_analysis::base::db::{Db, SourceFile};

/// Offsets at which the lines of a text start. Lines end with `\n`, `\r\n` or a lone `\r`, as the language server protocol
/// counts them.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct LineIndex {
    starts: Vec<u32>,
    len: u32,
}

impl LineIndex {
    /// Finds the lines of `text`.
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends = memchr::memchr2_iter(b'\n', b'\r', bytes);
        let ends = ends.filter(|at| bytes[*at] == b'\n' || bytes.get(at + 1) != Some(&b'\n'));
        let starts = std::iter::once(0).chain(ends.map(|at| at as u32 + 1)).collect();
        LineIndex {
            starts,
            len: bytes.len() as u32,
        }
    }

    /// Zero-based line of `offset`, and the offset of the first byte of that line. Offsets behind the text belong to its end.
    pub fn line(&self, offset: u32) -> (u32, u32) {
        let offset = offset.min(self.len);
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        (line as u32, self.starts.get(line).copied().unwrap_or(0))
    }

    /// Zero-based line and byte column of `offset`.
    pub fn line_column(&self, offset: u32) -> (u32, u32) {
        let (line, start) = self.line(offset);
        (line, offset.min(self.len) - start)
    }

    /// Offset of the first byte of a zero-based line.
    pub fn start(&self, line: u32) -> Option<u32> {
        self.starts.get(line as usize).copied()
    }

    /// Byte range of a zero-based line without its line end.
    pub fn content(&self, text: &str, line: u32) -> Option<(u32, u32)> {
        let start = self.start(line)?;
        let end = self.start(line + 1).unwrap_or(self.len);
        let content = text.get(start as usize..end as usize)?;
        let trimmed = content
            .strip_suffix("\r\n")
            .or_else(|| content.strip_suffix('\n'))
            .or_else(|| content.strip_suffix('\r'))
            .unwrap_or(content);
        Some((start, start + trimmed.len() as u32))
    }
}

/// The lines of a file.
#[salsa::tracked]
pub fn line_index(db: &dyn Db, file: SourceFile) -> LineIndex {
    LineIndex::new(&file.text(db))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_end() {
        let text = "a\nbc\r\nd\re";
        let index = LineIndex::new(text);
        assert_eq!(index.starts.len(), 4);
        assert_eq!(index.line_column(0), (0, 0));
        assert_eq!(index.line_column(3), (1, 1));
        assert_eq!(index.line_column(6), (2, 0));
        assert_eq!(index.line_column(8), (3, 0));
        assert_eq!(index.line_column(999), (3, 1));
        assert_eq!(index.content(text, 1), Some((2, 4)));
        assert_eq!(index.content(text, 2), Some((6, 7)));
        assert_eq!(index.content(text, 4), None);
    }

    #[test]
    fn empty_text_has_one_line() {
        let index = LineIndex::new("");
        assert_eq!(index.starts.len(), 1);
        assert_eq!(index.line_column(5), (0, 0));
        assert_eq!(index.content("", 0), Some((0, 0)));
    }
}
