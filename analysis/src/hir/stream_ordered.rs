//! The operations of the device runtime that take their turn in a stream, as launches do: what a thread puts into a stream before a
//! launch is done before the grid begins, what it puts there behind one is done after the grid.

/// What such an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The functions, with the place of the argument that names the stream; left out, it is the NULL stream.
const TABLE: &[(&str, Operation, usize)] = &[
    ("cudaMemsetAsync", Operation::Set, 3),
    ("cudaMemset2DAsync", Operation::Set, 5),
    ("cudaMemset3DAsync", Operation::CopyBox, 3),
    ("cudaMemcpyAsync", Operation::Copy, 4),
    ("cudaMemcpy2DAsync", Operation::Copy, 7),
    ("cudaMemcpy3DAsync", Operation::CopyBox, 1),
    ("cudaEventRecord", Operation::Event, 1),
    ("cudaEventRecordWithFlags", Operation::Event, 1),
    ("cudaStreamWaitEvent", Operation::Event, 0),
];

/// The operation that a function is, by its name as written, and which of its arguments is the stream.
pub fn stream_ordered(name: &str) -> Option<(Operation, usize)> {
    let name = name.strip_prefix("::").unwrap_or(name);
    TABLE
        .iter()
        .find(|(known, ..)| *known == name)
        .map(|(_, operation, stream)| (*operation, *stream))
}
