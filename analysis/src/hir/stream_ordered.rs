//! The operations of the device runtime that take their turn in a stream, as launches do: what a thread puts into a stream before a
//! launch is done before the grid begins, what it puts there behind one is done after the grid.

use crate::hir::library::library;

/// What such an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub enum Operation {
    /// Writes memory.
    Set,
    /// Reads and writes memory, by its first two arguments.
    Copy,
    /// Reads and writes memory that a struct names.
    CopyBox,
    /// Orders streams.
    Event,
}

/// The operation that a function is, by its name as written, and which of its arguments is the stream; left out, it is the NULL stream.
pub fn stream_ordered(name: &str) -> Option<(Operation, usize)> {
    library(name)?.stream
}
