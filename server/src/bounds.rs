//! What may be written: files of the workspace, and those that the user has opened or named. An include, a compile command, a link or a
//! client may lead to any other file; what is there is read, and never changed.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::files::{normalize, workspace_root};

/// What may be written.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// Directories below which everything may be, by their real paths.
    roots: BTreeSet<PathBuf>,
    /// Files that may be wherever they are.
    named: BTreeSet<PathBuf>,
}

/// A file that lies outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The file.
    pub path: PathBuf,
    /// Where its path really leads, if that is elsewhere.
    leads_to: Option<PathBuf>,
}

impl Outside {
    /// What to do about it. `show` shows a path.
    pub fn message(&self, show: impl Fn(&Path) -> String) -> String {
        let link = self
            .leads_to
            .as_deref()
            .map_or(String::new(), |to| format!(" (it leads to {})", show(to)));
        format!(
            "{}{link} would have to be changed, and lies outside of the workspace: open a folder that holds it, or name one on the \
             command line",
            show(&self.path)
        )
    }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(|path| path.display().to_string()))
    }
}

impl Bounds {
    /// Files below these directories, and these files.
    pub fn new(roots: impl IntoIterator<Item = PathBuf>, named: impl IntoIterator<Item = PathBuf>) -> Self {
        Bounds {
            roots: roots.into_iter().map(|root| real(&root)).collect(),
            named: named.into_iter().collect(),
        }
    }

    /// The directory that counts as the workspace of files in `directory` where nobody says which it is.
    pub fn around(directory: &Path) -> PathBuf {
        workspace_root(directory).unwrap_or_else(|| directory.to_path_buf())
    }

    /// A file may be changed, or created.
    pub fn check(&self, path: &Path) -> Result<(), Outside> {
        // What has no place on disk is only written in an editor, which has it open.
        if self.named.contains(path) || !path.is_absolute() {
            return Ok(());
        }
        let place = real(path);
        if self.roots.iter().any(|root| place.starts_with(root)) {
            return Ok(());
        }
        Err(Outside {
            path: path.to_path_buf(),
            leads_to: (place != normalize(path)).then_some(place),
        })
    }
}

/// Where a path leads, as far as something is there.
fn real(path: &Path) -> PathBuf {
    let path = normalize(path);
    let found = path
        .ancestors()
        .find_map(|above| Some((above, above.canonicalize().ok()?)));
    match found {
        Some((above, real)) => match path.strip_prefix(above) {
            // A link to a place where nothing is yet: writing through it would make something there.
            Ok(rest) => match rest.components().next().map(|first| above.join(first)) {
                Some(link) if link.is_symlink() => std::fs::read_link(&link).map_or(path.clone(), |to| above.join(to)),
                Some(_) => real.join(rest),
                None => real,
            },
            Err(_) => real,
        },
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn nothing_leads_outside() -> std::io::Result<()> {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir()?;
        let at = |name: &str| dir.path().join(name);
        for directory in ["workspace/src", "workspace-2", "elsewhere"] {
            std::fs::create_dir_all(at(directory))?;
        }
        std::fs::write(at("elsewhere/x.cuh"), "")?;
        symlink(at("elsewhere"), at("workspace/vendor"))?;
        symlink(at("elsewhere/x.cuh"), at("workspace/x.cuh"))?;
        symlink(at("elsewhere/new.cuh"), at("workspace/dangling.cuh"))?;
        symlink(at("workspace"), at("other name"))?;
        let bounds = Bounds::new([at("other name")], [at("elsewhere/open.cu")]);
        let inside = [
            "workspace/a.cu",
            "workspace/src/new/gridfuse.cuh",
            "other name/a.cu",
            "elsewhere/open.cu",
        ];
        for path in inside {
            assert_eq!(bounds.check(&at(path)), Ok(()), "{path}");
        }
        assert_eq!(bounds.check(Path::new("Untitled-1")), Ok(()));
        let outside = [
            "elsewhere/x.cuh",
            "workspace/vendor/gridfuse.cuh",
            "workspace/x.cuh",
            "workspace/dangling.cuh",
            "workspace/../elsewhere/x.cuh",
            "workspace-2/a.cu",
            "workspace/src/../../a.cu",
        ];
        for path in outside {
            let refused = bounds.check(&at(path));
            assert!(refused.is_err(), "{path}");
            let told = refused.map_or_else(|outside| outside.to_string(), |()| String::new());
            assert_eq!(
                told.contains("leads to"),
                path.contains("vendor") || path.matches('/').count() == 1 && path.starts_with("workspace/"),
                "{told}"
            );
        }
        assert!(Bounds::default().check(&at("workspace/a.cu")).is_err());
        Ok(())
    }
}
