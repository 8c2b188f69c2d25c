//! What the emulator reports about a run.

use std::fmt;

use serde::Deserialize;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Event {
    /// What it is.
    pub kind: Kind,
    /// One sentence about it.
    pub message: String,
    /// The seed of the run.
    #[serde(default)]
    pub seed: u64,
    /// The accesses to memory, or the threads, that it is about.
    #[serde(default)]
    pub accesses: Vec<Access>,
}

/// Kinds of events.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Unordered accesses of which one writes.
    Race,
    /// Beside an allocation.
    OutOfBounds,
    /// In memory that was freed.
    UseAfterFree,
    /// A read of bytes that nobody wrote.
    Uninitialised,
    /// Freed twice, or never allocated.
    DoubleFree,
    /// Threads wait at different barriers.
    BarrierDivergence,
    /// Threads wait for ever.
    Deadlock,
    /// More steps than allowed.
    Livelock,
    /// Memory that is never freed.
    Leak,
    /// A launch that CUDA refuses.
    LaunchError,
    /// Something that the emulator doesn't know.
    Unsupported,
    /// Host code in device memory, or the reverse.
    HostAccess,
    /// A pointer into another thread's or block's memory.
    InvalidAddress,
    /// An argument that a function of CUDA doesn't allow.
    InvalidArgument,
    /// A trap, or an assertion that doesn't hold.
    #[serde(alias = "assert")]
    Trap,
    /// Another one.
    #[serde(untagged)]
    Other(String),
}

/// An access to memory.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Access {
    /// `read`, `write`, `atomic`, …
    pub what: String,
    /// Its size.
    pub bytes: u64,
    /// Where.
    pub address: String,
    /// What is there.
    pub allocation: Option<String>,
    /// Where in it.
    pub offset: Option<i64>,
    /// Name of the kernel.
    pub kernel: Option<String>,
    /// Block of the thread.
    pub block: Option<[u32; 3]>,
    /// The thread in its block.
    pub thread: Option<[u32; 3]>,
    /// File, where it is known.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// The function that the line is in, as C++ writes it.
    pub function: Option<String>,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        if self.bytes > 0 {
            write!(f, " of {} bytes", self.bytes)?;
        }
        if let Some(allocation) = &self.allocation {
            write!(f, " at {allocation}")?;
            if let Some(offset) = self.offset {
                write!(f, " + {offset}")?;
            }
        }
        if let Some(kernel) = &self.kernel {
            write!(f, " by {kernel}")?;
        }
        if let (Some([x, y, z]), Some([u, v, w])) = (self.block, self.thread) {
            write!(f, ", block ({x}, {y}, {z}), thread ({u}, {v}, {w})")?;
        }
        if let (Some(file), Some(line)) = (&self.file, self.line) {
            write!(f, ", {file}:{line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (seed {})", self.message, self.seed)?;
        for access in &self.accesses {
            write!(f, "\n  {access}")?;
        }
        Ok(())
    }
}

/// Reads the lines of a report. Lines that aren't events are errors of the emulator, and come back as such.
pub fn parse(text: &str) -> Result<Vec<Event>, String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| serde_json::from_str(line).map_err(|error| format!("{error}: {line}")))
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn reads_events() {
        let text = "{\"kind\":\"race\",\"seed\":7,\"message\":\"a race\",\"accesses\":[{\"what\":\"write\",\"bytes\":4,\
                    \"address\":\"0x1000\",\"allocation\":\"cudaMalloc #3\",\"offset\":8,\"kernel\":\"child\",\"block\":[1,0,0],\
                    \"thread\":[2,0,0],\"file\":\"a.cu\",\"line\":3}]}\n\n{\"kind\":\"new-kind\",\"message\":\"m\"}\n";
        let events = parse(text).unwrap();
        assert_eq!(events[0].kind, Kind::Race);
        assert_eq!(events[1].kind, Kind::Other("new-kind".to_owned()));
        assert_eq!(
            events[0].to_string(),
            "a race (seed 7)\n  write of 4 bytes at cudaMalloc #3 + 8 by child, block (1, 0, 0), thread (2, 0, 0), a.cu:3"
        );
        assert!(parse("no json").is_err());
    }
}
