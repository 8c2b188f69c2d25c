//! The rule for files that a rewrite adds: an existing file is never overwritten.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that a rewrite wants to add exists with other content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exists(pub PathBuf);

impl Exists {
    /// What to do about it. `path` is the file as the user knows it.
    pub fn message(path: &str) -> String {
        format!(
            "{path} exists with other content than this version of gridfuse needs; \
             delete it if it is an older copy of that header, else rename it, and try again"
        )
    }
}

/// The files of `creates` that aren't there yet. `existing` reads a file, from an editor or from disk.
pub fn to_create(
    creates: &BTreeMap<PathBuf, Arc<str>>,
    existing: impl Fn(&Path) -> Option<String>,
) -> Result<BTreeMap<PathBuf, Arc<str>>, Exists> {
    let mut missing = BTreeMap::new();
    for (path, text) in creates {
        match existing(path) {
            None => {
                missing.insert(path.clone(), text.clone());
            }
            Some(old) if same(&old, text) => {}
            Some(_) => return Err(Exists(path.clone())),
        }
    }
    Ok(missing)
}

/// The same text, line ends and a byte order mark aside.
fn same(a: &str, b: &str) -> bool {
    let lines = |text: &str| text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    lines(a) == lines(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_overwrites() {
        let creates = BTreeMap::from([(PathBuf::from("gridfuse.cuh"), Arc::from("a\nb\n"))]);
        assert_eq!(to_create(&creates, |_| None), Ok(creates.clone()));
        assert_eq!(to_create(&creates, |_| Some("a\r\nb\r\n".into())), Ok(BTreeMap::new()));
        assert!(to_create(&creates, |_| Some("mine".into())).is_err());
    }
}
