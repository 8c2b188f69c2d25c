//! Programs that the user has rewritten by hand, measured beside those that gridfuse has rewritten.

use std::path::{Path, PathBuf};

use crate::cli::{Project, unified};
use crate::files::{MAX_NAMED_BYTES, load_includes, read};

/// A text that takes the place of the measured file.
#[derive(Clone, Debug)]
pub struct HandWritten {
    /// How it's called in reports.
    pub name: String,
    /// The file.
    pub file: PathBuf,
}

impl HandWritten {
    /// Understands `NAME=FILE`.
    pub fn parse(text: &str) -> Result<HandWritten, String> {
        match text.split_once('=') {
            Some((name, file)) if !name.trim().is_empty() && !file.is_empty() => Ok(HandWritten {
                name: name.trim().to_owned(),
                file: PathBuf::from(file),
            }),
            _ => Err(format!("`{text}` isn't understood: write --also NAME=FILE")),
        }
    }

    /// Puts its text in place of the measured file's, in memory, and returns what that changes.
    pub fn take_place(&self, project: &mut Project, path: &Path) -> Result<String, String> {
        let text = read(&self.file, MAX_NAMED_BYTES)
            .map_err(|error| format!("cannot read {}: {error}", self.file.display()))?;
        let before = project.host.file(path).map(|file| file.text(project.host.db()));
        let file = project.host.set_file(path, text.clone());
        load_includes(&mut project.host, &[file]);
        Ok(unified(&project.show(path), before.as_deref(), &text))
    }
}

#[cfg(test)]
mod tests {
    use super::HandWritten;

    #[test]
    fn names_and_files() {
        let own = HandWritten::parse("mine = a=b.cu").map(|own| (own.name, own.file));
        assert_eq!(own, Ok(("mine".to_owned(), " a=b.cu".into())));
        for wrong in ["", "x", "=x", "x=", " =x"] {
            assert!(HandWritten::parse(wrong).is_err(), "{wrong}");
        }
    }
}
