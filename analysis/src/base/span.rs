//! Byte ranges. Everything inside a function is a [`Span`] relative to the function's first byte, so that an edit
//! elsewhere in the file leaves it alone; only presentation turns it into a [`FileRange`](crate::base::place::FileRange).

/// Half-open byte range relative to the start of a function's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue, serde::Serialize)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range from `start` to `end`, in bytes.
    pub fn new(start: u32, end: u32) -> Self {
        Span { start, end }
    }

    /// Smallest span that covers both.
    pub fn cover(self, other: Span) -> Span {
        Span {
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }

    /// Whether `other` lies within this span.
    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether `offset` lies within this span or directly behind it (a cursor sits between two bytes).
    pub fn touches(self, offset: u32) -> bool {
        self.start <= offset && offset <= self.end
    }

    /// The text of this span in the text that it is relative to; empty when it lies outside.
    pub fn text(self, of: &str) -> &str {
        of.get(self.start as usize..self.end as usize).unwrap_or("")
    }

    /// This span moved by `by` bytes: from function-relative to absolute.
    pub fn shift(self, by: u32) -> TextRange {
        TextRange {
            start: self.start + by,
            end: self.end + by,
        }
    }
}

/// Half-open byte range in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue, serde::Serialize)]
pub struct TextRange {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl TextRange {
    /// The range from `start` to `end`, in bytes.
    pub fn new(start: u32, end: u32) -> Self {
        TextRange { start, end }
    }

    /// The empty range at `offset`.
    pub fn empty(offset: u32) -> Self {
        TextRange {
            start: offset,
            end: offset,
        }
    }

    /// Whether `offset` lies within this range or directly behind it.
    pub fn touches(self, offset: u32) -> bool {
        self.start <= offset && offset <= self.end
    }

    /// Whether `other` lies within this range.
    pub fn contains(self, other: TextRange) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The text of this range in `of`; empty when it lies outside.
    pub fn text(self, of: &str) -> &str {
        of.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}
