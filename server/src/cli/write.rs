//! Writing several files: all of them or none.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file to write.
pub struct NewText {
    /// Where.
    pub path: PathBuf,
    /// What.
    pub text: String,
    /// What must be there now; `None`: nothing.
    pub replaces: Option<String>,
}

/// Why nothing was written.
#[derive(Debug)]
pub struct WriteError(pub String);

fn failed(path: &Path, error: &io::Error) -> WriteError {
    WriteError(format!("cannot write {}: {error}; no file was changed", path.display()))
}

/// Writes a temporary file beside the target, with the target's permissions.
fn prepare(file: &NewText) -> io::Result<NamedTempFile> {
    let directory = file.path.parent().unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".gridfuse-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The process's umask still applies: a new file gets the usual permissions.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut temporary = builder.tempfile_in(directory)?;
    temporary.write_all(file.text.as_bytes())?;
    if file.replaces.is_some() {
        let permissions = std::fs::metadata(&file.path)?.permissions();
        temporary.as_file().set_permissions(permissions)?;
    }
    temporary.as_file().sync_all()?;
    Ok(temporary)
}

/// Writes all files or none. A file that changed since it was read, or that exists though it shouldn't, stops everything.
pub fn write_all(files: &[NewText]) -> Result<(), WriteError> {
    let mut prepared = Vec::new();
    for file in files {
        match (std::fs::read(&file.path), &file.replaces) {
            (Ok(now), Some(expected)) if now == expected.as_bytes() => {}
            (Err(error), None) if error.kind() == io::ErrorKind::NotFound => {}
            (Ok(_), _) => {
                return Err(WriteError(format!(
                    "{} changed on disk meanwhile; no file was changed, run the command again",
                    file.path.display()
                )));
            }
            (Err(error), _) => return Err(failed(&file.path, &error)),
        }
        prepared.push((file, prepare(file).map_err(|error| failed(&file.path, &error))?));
    }
    let mut done: Vec<&NewText> = Vec::new();
    for (file, temporary) in prepared {
        let persisted = match file.replaces {
            Some(_) => temporary.persist(&file.path),
            None => temporary.persist_noclobber(&file.path),
        };
        if let Err(error) = persisted {
            undo(&done);
            return Err(failed(&file.path, &error.error));
        }
        done.push(file);
    }
    Ok(())
}

/// Brings back what was there before: the rename of a later file failed.
fn undo(done: &[&NewText]) {
    for file in done {
        // Best effort: the error that led here is the one to report.
        let _ = match &file.replaces {
            Some(text) => std::fs::write(&file.path, text),
            None => std::fs::remove_file(&file.path),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(path: PathBuf, text: &str, replaces: Option<&str>) -> NewText {
        NewText {
            path,
            text: text.to_string(),
            replaces: replaces.map(str::to_string),
        }
    }

    #[test]
    fn replaces_and_creates() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (a, b) = (dir.path().join("a.cu"), dir.path().join("b.cuh"));
        std::fs::write(&a, "old")?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&a, std::fs::Permissions::from_mode(0o640))?;
        }
        let written = write_all(&[new(a.clone(), "new\r\n", Some("old")), new(b.clone(), "header", None)]);
        assert!(written.is_ok(), "{written:?}");
        assert_eq!(std::fs::read_to_string(&a)?, "new\r\n");
        assert_eq!(std::fs::read_to_string(&b)?, "header");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&a)?.permissions().mode() & 0o777, 0o640);
        }
        assert_eq!(std::fs::read_dir(dir.path())?.count(), 2);
        Ok(())
    }

    #[test]
    fn all_or_none() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (a, b) = (dir.path().join("a.cu"), dir.path().join("missing/b.cuh"));
        std::fs::write(&a, "old")?;
        assert!(write_all(&[new(a.clone(), "new", Some("old")), new(b, "x", None)]).is_err());
        assert!(write_all(&[new(a.clone(), "new", Some("other"))]).is_err());
        assert!(write_all(&[new(a.clone(), "new", None)]).is_err());
        assert_eq!(std::fs::read_to_string(&a)?, "old");
        assert_eq!(std::fs::read_dir(dir.path())?.count(), 1);
        Ok(())
    }
}
