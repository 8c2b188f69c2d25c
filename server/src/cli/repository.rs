//! The repository that is checked: services that read results know its files by their paths in it.

use std::path::{Path, PathBuf};

/// A repository.
pub struct Repository {
    /// Its root; where there is no repository, the current directory.
    pub root: Option<PathBuf>,
}

impl Repository {
    /// The one that holds a path: an absolute one.
    pub fn around(path: Option<&Path>, here: Option<&Path>) -> Repository {
        let marked = |directory: &&Path| directory.join(".git").exists();
        let root = path.and_then(|path| path.ancestors().find(marked)).or(here);
        Repository {
            root: root.map(Path::to_path_buf),
        }
    }

    /// A path in it, with `/` between its parts; `None`: the file lies outside.
    pub fn path_of(&self, path: &Path) -> Option<String> {
        let below = path.strip_prefix(self.root.as_deref()?).ok()?;
        let parts: Vec<_> = below
            .components()
            .map(|part| part.as_os_str().to_string_lossy())
            .collect();
        (!parts.is_empty()).then(|| parts.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_in_the_repository() -> std::io::Result<()> {
        let disk = tempfile::tempdir()?;
        let at = |path: &str| disk.path().join(path);
        std::fs::create_dir_all(at("repository/src"))?;
        let of = |path: &str| Repository::around(Some(&at(path)), Some(&at("repository")));
        let plain = of("elsewhere/a.cu");
        assert_eq!(plain.path_of(&at("repository/src/a.cu")).as_deref(), Some("src/a.cu"));
        // A worktree has a file of that name.
        std::fs::write(at("repository/.git"), "gitdir: x")?;
        let repository = Repository::around(Some(&at("repository/src/a.cu")), Some(&at("repository/src")));
        assert_eq!(
            repository.path_of(&at("repository/src/a.cu")).as_deref(),
            Some("src/a.cu")
        );
        assert_eq!(repository.path_of(&at("other/a.cu")), None);
        assert_eq!(Repository::around(None, None).path_of(&at("a.cu")), None);
        Ok(())
    }
}
