//! Reading and copying a source with everything that it includes.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Copies what [`read`] finds to the same places below `to`.
pub fn copy(root: &Path, source: &Path, further: &[PathBuf], to: &Path) -> Result<()> {
    for (file, text) in read(root, source, further)? {
        let target = to.join(&file);
        if let Some(directory) = target.parent() {
            std::fs::create_dir_all(directory)?;
        }
        std::fs::write(&target, &text).with_context(|| format!("{} cannot be written", target.display()))?;
    }
    Ok(())
}

/// Reads `source`, the `further` files, and what they include with quotes, all relative to `root`. Includes that
/// are not in the repository are the compiler's business.
pub fn read(root: &Path, source: &Path, further: &[PathBuf]) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![clean(source)?];
    for file in further {
        waiting.push(clean(file)?);
    }
    while let Some(file) = waiting.pop() {
        if files.contains_key(&file) {
            continue;
        }
        let text = std::fs::read(root.join(&file)).with_context(|| format!("{} cannot be read", file.display()))?;
        let directory = file.parent().unwrap_or(Path::new(""));
        for included in quoted_includes(&String::from_utf8_lossy(&text)) {
            if let Ok(included) = clean(&directory.join(included))
                && root.join(&included).is_file()
            {
                waiting.push(included);
            }
        }
        files.insert(file, text);
    }
    Ok(files)
}

fn quoted_includes(text: &str) -> Vec<&str> {
    text.lines()
        .filter_map(|line| {
            let directive = line.trim_start().strip_prefix('#')?.trim_start();
            let name = directive.strip_prefix("include")?.trim_start();
            Some(name.strip_prefix('"')?.split_once('"')?.0)
        })
        .collect()
}

/// A relative path without `.` and `..`; a path that leaves the root is an error.
fn clean(path: &Path) -> Result<PathBuf> {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => cleaned.push(name),
            Component::CurDir => {}
            Component::ParentDir if cleaned.pop() => {}
            _ => bail!("{} is outside the repository", path.display()),
        }
    }
    Ok(cleaned)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn includes_go_along() {
        let (root, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "a/b.cu",
            "#include <x.h>\n  # include \"../c/d.cuh\"\n#include \"gone.h\"\n",
        );
        write("c/d.cuh", "#include \"../a/b.cu\"\n#include \"../../outside.h\"\n");
        write("other.cu", "");
        write("data.txt", "");
        copy(root.path(), Path::new("./a/b.cu"), &["data.txt".into()], to.path()).unwrap();
        for (name, there) in [
            ("a/b.cu", true),
            ("c/d.cuh", true),
            ("data.txt", true),
            ("other.cu", false),
        ] {
            assert_eq!(to.path().join(name).is_file(), there, "{name}");
        }
        assert!(copy(root.path(), Path::new("../x.cu"), &[], to.path()).is_err());
        assert!(copy(root.path(), Path::new("missing.cu"), &[], to.path()).is_err());
    }
}
