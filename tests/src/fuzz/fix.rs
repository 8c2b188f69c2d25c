//! `gridfuse check --fix` as a rewrite of its own: what it applies takes nothing for granted, so the program does the same afterwards,
//! whatever its launches rely on.

use std::collections::BTreeMap;

use super::print::Printed;
use super::rewrite::{Step, Variant};
use crate::cli::{Directory, files_of, gridfuse};

/// What stands in the place of a rewrite's id.
pub const ID: &str = "check --fix";

/// The program that `gridfuse check --fix` makes; `None`: it leaves it as it is.
///
/// # Errors
/// What it says where it fails.
pub fn fixed(printed: &Printed) -> Result<Option<Variant>, String> {
    let directory = Directory::new();
    for (name, text) in &printed.files {
        directory.write(name, text.as_bytes());
    }
    let run = gridfuse(directory.path(), &["check", ".", "--fix"]);
    // 1: something is left that isn't mended by itself.
    if !matches!(run.code, Some(0 | 1)) {
        return Err(run.story());
    }
    let mut files = BTreeMap::new();
    for (name, bytes) in files_of(directory.path()) {
        let text = String::from_utf8(bytes).map_err(|error| format!("{name}: {error}"))?;
        files.insert(name, text);
    }
    let step = Step {
        site: 0,
        id: ID.to_owned(),
        option: None,
    };
    Ok((files != printed.files).then(|| Variant {
        steps: vec![step],
        files,
        assumptions: Vec::new(),
    }))
}
