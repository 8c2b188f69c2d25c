//! The documentation of diagnostics and rewrites as files of the user's cache directory, so that a link in an editor opens it
//! without a network, and it is that of this version.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gridfuse_analysis::diagnostics::KINDS;
use gridfuse_codeactions::handlers::REWRITES;
use tower_lsp_server::ls_types::Uri;

/// Where the pages are; they are written when the first one is asked for.
#[derive(Debug)]
pub struct Pages {
    /// They may be.
    written: bool,
    directory: OnceLock<Option<PathBuf>>,
}

impl Pages {
    /// Pages that may be `written`, or none.
    pub fn new(written: bool) -> Self {
        Pages {
            written,
            directory: OnceLock::new(),
        }
    }

    /// The page of a diagnostic; `None` when it can't be written.
    pub fn diagnostic(&self, id: &str) -> Option<Uri> {
        self.page("diagnostics", id)
    }

    /// The page of a rewrite; `None` when it can't be written.
    pub fn rewrite(&self, id: &str) -> Option<String> {
        self.page("rewrites", id).map(|uri| uri.as_str().to_string())
    }

    /// A document with an explanation; the next one takes its place. `None` when it can't be written.
    pub fn explanation(&self, text: &str) -> Option<Uri> {
        self.document("explanation.md", text)
    }

    /// A document with the report of a measurement; the next one takes its place. `None` when it can't be written.
    pub fn measurement(&self, text: &str) -> Option<Uri> {
        self.document("measurement.md", text)
    }

    fn document(&self, name: &str, text: &str) -> Option<Uri> {
        let directory = self.directory()?;
        let path = directory.join(name);
        replace(directory, &path, text).ok()?;
        Uri::from_file_path(path)
    }

    fn page(&self, kind: &str, id: &str) -> Option<Uri> {
        Uri::from_file_path(self.directory()?.join(kind).join(format!("{id}.md")))
    }

    fn directory(&self) -> Option<&Path> {
        if !self.written {
            return None;
        }
        let directory = self.directory.get_or_init(|| {
            let directory = cache_directory()?.join("gridfuse").join(env!("CARGO_PKG_VERSION"));
            write(&directory).ok().map(|()| directory)
        });
        directory.as_deref()
    }
}

/// Where the system wants files that can be made again.
fn cache_directory() -> Option<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    variable("XDG_CACHE_HOME")
        .or_else(|| variable("LOCALAPPDATA"))
        .or_else(|| variable("HOME").map(|home| home.join(".cache")))
}

fn write(directory: &Path) -> io::Result<()> {
    let diagnostics = KINDS.iter().map(|kind| {
        let severity = format!("{:?}", kind.severity).to_lowercase();
        let head = format!("# {}\n\nSeverity: {severity}.", kind.id);
        ("diagnostics", kind.id, head, kind.doc)
    });
    let rewrites = REWRITES.iter().map(|rewrite| {
        let head = format!("# {}: {}", rewrite.id, rewrite.title);
        ("rewrites", rewrite.id, head, rewrite.doc)
    });
    for (kind, id, head, doc) in diagnostics.chain(rewrites) {
        let directory = directory.join(kind);
        let path = directory.join(format!("{id}.md"));
        let text = format!("{head}\n\n{}\n", doc.trim());
        if std::fs::read(&path).is_ok_and(|old| old == text.as_bytes()) {
            continue;
        }
        std::fs::create_dir_all(&directory)?;
        replace(&directory, &path, &text)?;
    }
    Ok(())
}

/// Writes a file in one step: another server may do the same, and an editor may be reading.
fn replace(directory: &Path, path: &Path, text: &str) -> io::Result<()> {
    let mut temporary = tempfile::NamedTempFile::new_in(directory)?;
    temporary.write_all(text.as_bytes())?;
    temporary.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_written_once() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        write(directory.path())?;
        let page = directory.path().join("rewrites/threshold.md");
        let text = std::fs::read_to_string(&page)?;
        assert!(text.starts_with("# threshold: "), "{text}");
        let written = std::fs::metadata(&page)?.modified()?;
        write(directory.path())?;
        assert_eq!(std::fs::metadata(&page)?.modified()?, written);
        assert_eq!(
            std::fs::read_dir(directory.path().join("diagnostics"))?.count(),
            KINDS.len()
        );
        Ok(())
    }
}
