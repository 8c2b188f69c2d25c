//! Between the language server and the process that measures for it. That process is one of its own, so that nothing that happens
//! in it can touch the server.
//!
//! It reads one line of JSON from its standard input: the texts that aren't saved, by path. When the input is closed, because the
//! user has given up or the server is gone, it kills what it has started and ends. Its standard error carries a [`Message`] a line,
//! its standard output the report.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::process;

/// Texts that take the place of what is in the files.
pub type Unsaved = BTreeMap<PathBuf, Arc<str>>;

/// A line on standard error.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// So far it has come.
    Progress {
        /// Percent that are done.
        percent: u8,
        /// What goes on.
        what: String,
    },
    /// It can't be measured; a sentence that says what to do.
    Error(String),
}

impl Message {
    /// Tells the server.
    pub fn send(&self) {
        if let Ok(line) = serde_json::to_string(self) {
            // A server that is gone has closed the input, too: the measurement ends.
            eprintln!("{line}");
        }
    }

    /// Understands a line; `None`: it's something else, such as what a program printed.
    pub fn parse(line: &str) -> Option<Message> {
        serde_json::from_str(line).ok()
    }
}

/// Reads the texts, and watches the input from then on.
pub fn unsaved() -> Result<Unsaved, String> {
    let mut input = BufReader::new(io::stdin());
    let mut line = String::new();
    let read = input.read_line(&mut line);
    let texts: Unsaved = read
        .and_then(|_| serde_json::from_str(&line).map_err(io::Error::from))
        .map_err(|error| format!("cannot read the editor's texts: {error}"))?;
    std::thread::spawn(move || {
        let mut rest = [0; 256];
        while input.read(&mut rest).is_ok_and(|bytes| bytes > 0) {}
        process::give_up();
    });
    // Files are known by their real paths.
    let real = |(path, text): (PathBuf, Arc<str>)| (path.canonicalize().unwrap_or(path), text);
    Ok(texts.into_iter().map(real).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_apart() -> serde_json::Result<()> {
        let progress = Message::Progress {
            percent: 7,
            what: "building".into(),
        };
        let line = serde_json::to_string(&progress)?;
        assert!(matches!(
            Message::parse(&line),
            Some(Message::Progress { percent: 7, .. })
        ));
        for other in ["", "3", "note: x", "{}", "{\"progress\": 3}"] {
            assert!(Message::parse(other).is_none(), "{other}");
        }
        Ok(())
    }
}
