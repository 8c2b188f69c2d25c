//! Rules of soundness that are taken out one at a time, to see that the tests notice.
//!
//! `tests/rule-mutants/rules.toml` lists them. All are compiled at once into a copy of the sources, each as a choice that an environment
//! variable makes when the program runs: one build does for all, and it is quick to ask for one of them again.

mod copy;
mod kill;
mod record;
mod switch;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

pub use copy::Copy;
pub use kill::{Killers, Verdict};
pub use record::{Record, Records, records, write_records};
pub use switch::VARIABLE;

use crate::workspace;

/// What runs all of them.
pub const COMMAND: &str = "cargo run -p gridfuse-tests --bin rule-mutants";

/// A rule, and the code without it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What the rule says.
    pub name: String,
    /// The row of the table in `docs/soundness.md` that it belongs to.
    pub class: String,
    /// The file that it stands in, from the root of the repository.
    pub file: String,
    /// The code of the rule, which stands there once.
    pub find: String,
    /// The code without it.
    pub replace: String,
    /// The tests that notice it, where that is known.
    pub killer: Option<String>,
}

/// The rules, and the rows of the table that have none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Rows whose rule is in the emulator or the runtime header.
    pub elsewhere: Vec<String>,
    /// Rows of which two rules see the same, so that one of them alone can go.
    pub seen_twice: Vec<String>,
    /// The rules.
    pub rule: Vec<Rule>,
}

impl Rules {
    /// Those of `tests/rule-mutants/rules.toml`.
    ///
    /// # Errors
    /// When the file can't be read, or says something else.
    pub fn read() -> Result<Rules> {
        let path = directory().join("rules.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("{} can't be read", path.display()))?;
        toml::from_str(&text).with_context(|| format!("{} isn't a list of rules", path.display()))
    }

    /// The number of a rule: what the environment variable says to take it out. They are counted from 1.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn number(&self, name: &str) -> Result<usize> {
        match self.rule.iter().position(|rule| rule.name == name) {
            Some(index) => Ok(index + 1),
            None => bail!("there is no rule \"{name}\" in tests/rule-mutants/rules.toml"),
        }
    }
}

impl Rule {
    /// The command line that takes it out.
    pub fn command(&self) -> String {
        format!("{COMMAND} -- --only '{}'", self.name.replace('\'', r"'\''"))
    }

    /// Changes whenever the rule's code, or the code without it, does.
    pub fn fingerprint(&self) -> String {
        // FNV-1a: no hash of the standard library stays the same from one version to the next.
        let parts = [self.file.as_str(), "\0", &self.find, "\0", &self.replace];
        let bytes = parts.iter().flat_map(|part| part.bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}

/// Where the rules and their results are.
pub fn directory() -> PathBuf {
    workspace::root().join("tests/rule-mutants")
}
