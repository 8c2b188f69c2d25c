//! What the page asks.

use serde::Deserialize;

/// A file of the program.
#[derive(Clone, Debug, Deserialize)]
pub struct File {
    /// Its name; there are no directories.
    pub name: String,
    /// What stands in it.
    pub text: String,
}

/// A question about a program.
#[derive(Debug, Deserialize)]
pub struct Question {
    /// The file that is asked about, and what it includes.
    pub files: Vec<File>,
    /// What is asked.
    #[serde(flatten)]
    pub about: About,
}

/// What is asked. Offsets are bytes from the start of the first file.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase")]
pub enum About {
    /// What is wrong, and where something is launched.
    Check,
    /// What is known about the launch at an offset, and which rewrites it admits.
    Explain {
        /// Where.
        offset: u32,
    },
    /// What a rewrite makes of the launch at an offset.
    Rewrite {
        /// Where.
        offset: u32,
        /// The rewrite's id.
        rewrite: String,
    },
    /// Nothing: it panics, for the test of what the page does then.
    #[cfg(debug_assertions)]
    Panic,
}
