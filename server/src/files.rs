//! Files on disk: which belong to a workspace, and reading them.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gridfuse_analysis::base::db::{Db, SourceFile, Workspace};
use gridfuse_analysis::base::include::include_candidates;
use gridfuse_analysis::host::Host;
use ignore::WalkBuilder;

/// Suffixes of the files that are looked at when a directory is searched.
pub const SUFFIXES: &[&str] = &["cu", "cuh", "h", "hpp"];

/// Suffixes of files that a build may compile as CUDA all the same, or include in the middle of others: they belong to a workspace where
/// they launch something.
const MAY_LAUNCH: &[&str] = &["cpp", "cc", "cxx", "c++", "inl", "inc", "ipp", "tpp"];

/// A workspace's files beyond this number are left out.
pub const MAX_WORKSPACE_FILES: usize = 5_000;

/// Files found by searching are left out when they are larger. A file that is named is read up to [`MAX_NAMED_BYTES`].
pub const MAX_FOUND_BYTES: u64 = 16 << 20;

/// Offsets have 32 bits; this leaves room for what a rewrite adds.
pub const MAX_NAMED_BYTES: u64 = 1 << 30;

/// Directories that hold results of builds, not sources.
pub const SKIPPED_DIRECTORIES: &[&str] = &["build", "target", "node_modules"];

/// A directory with one of these is the root of a workspace.
const ROOT_MARKERS: &[&str] = &[".git", "compile_commands.json"];

/// Why a file could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The system says no.
    Io(io::Error),
    /// A directory, a pipe, a device.
    NoFile,
    /// Not text: the offset of the first byte that isn't UTF-8, or of a NUL.
    Binary(usize),
    /// Too many bytes.
    TooLarge(u64),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => match error.kind() {
                io::ErrorKind::NotFound => f.write_str("no such file or directory"),
                io::ErrorKind::PermissionDenied => f.write_str("permission denied"),
                _ => write!(f, "{error}"),
            },
            ReadError::NoFile => f.write_str("not a regular file"),
            ReadError::Binary(offset) => {
                write!(
                    f,
                    "not UTF-8 text (byte {offset} is invalid); convert the file to UTF-8 first"
                )
            }
            ReadError::TooLarge(bytes) => write!(f, "too large ({} MiB)", bytes >> 20),
        }
    }
}

/// Reads what comes in on standard input to its end: at most [`MAX_NAMED_BYTES`].
pub fn read_standard_input() -> Result<Arc<str>, ReadError> {
    text_of(io::stdin().lock(), Vec::new(), MAX_NAMED_BYTES)
}

/// Reads a source file of at most `limit` bytes. Waits for nobody: a pipe or a device is refused, whenever it took the file's place.
pub fn read(path: &Path, limit: u64) -> Result<Arc<str>, ReadError> {
    let regular = |metadata: std::fs::Metadata| match metadata.len() {
        _ if !metadata.is_file() => Err(ReadError::NoFile),
        size if size > limit => Err(ReadError::TooLarge(size)),
        size => Ok(size),
    };
    // Before it's opened, because opening a device may do something.
    regular(std::fs::metadata(path).map_err(ReadError::Io)?)?;
    let file = open(path).map_err(ReadError::Io)?;
    let size = regular(file.metadata().map_err(ReadError::Io)?)?;
    // It may grow meanwhile, and some files of the system say that they are empty.
    text_of(
        file,
        Vec::with_capacity(usize::try_from(size).unwrap_or_default()),
        limit,
    )
}

/// Reads text into an empty buffer, at most `limit` bytes.
fn text_of(from: impl Read, mut bytes: Vec<u8>, limit: u64) -> Result<Arc<str>, ReadError> {
    let read = from.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    let size = read.map_err(ReadError::Io)? as u64;
    if size > limit {
        return Err(ReadError::TooLarge(size));
    }
    if let Some(nul) = bytes.iter().position(|byte| *byte == 0) {
        return Err(ReadError::Binary(nul));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(error) => Err(ReadError::Binary(error.utf8_error().valid_up_to())),
    }
}

/// Opens a file to read it. A pipe that took its place since somebody looked is opened without waiting for who writes to it.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use nix::fcntl::OFlag;
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(OFlag::O_NONBLOCK.bits());
    }
    options.open(path)
}

/// The name says that it is a CUDA source or a header.
pub fn is_source(path: &Path) -> bool {
    has_suffix(path, SUFFIXES)
}

/// Names of code in other languages, and of texts. They may quote CUDA.
const OTHER_LANGUAGES: &[&str] = &[
    "py", "pyi", "ipynb", "pl", "rb", "lua", "jl", "r", "sh", "rs", "go", "java", "js", "ts", "f90", "f", "md", "rst",
    "tex", "html", "json", "toml", "yaml", "yml", "xml", "diff", "patch", "log",
];

/// The name says that it's code that a build may compile as CUDA, or it has what only CUDA has.
pub fn may_be_cuda(path: &Path, text: &str) -> bool {
    let has_marks = || {
        ["__global__", "__device__", "<<<"]
            .iter()
            .any(|mark| text.contains(mark))
    };
    has_suffix(path, SUFFIXES) || has_suffix(path, MAY_LAUNCH) || !has_suffix(path, OTHER_LANGUAGES) && has_marks()
}

fn has_suffix(path: &Path, suffixes: &[&str]) -> bool {
    path.extension()
        .and_then(|suffix| suffix.to_str())
        .is_some_and(|suffix| suffixes.iter().any(|known| known.eq_ignore_ascii_case(suffix)))
}

/// Another name, and a launch in the text.
fn launches(path: &Path) -> bool {
    has_suffix(path, MAY_LAUNCH)
        && read(path, MAX_FOUND_BYTES)
            .is_ok_and(|text| text.split_once("<<<").is_some_and(|(_, rest)| rest.contains(">>>")))
}

/// The name is one of a directory that holds results of builds.
pub fn is_build_directory(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| SKIPPED_DIRECTORIES.contains(&name))
}

/// The sources under a directory, and what could not be looked into.
#[derive(Debug, Default)]
pub struct Sources {
    /// Sorted. Ignored and hidden files and the results of builds are left out.
    pub files: Vec<PathBuf>,
    /// The directory itself, or ones in it, and why.
    pub unreadable: Vec<(PathBuf, ReadError)>,
}

/// Searches a directory for sources.
pub fn find_sources(directory: &Path) -> Sources {
    let mut unreadable = Vec::new();
    let files = search(directory, true, usize::MAX, is_source, &mut |path, error| {
        unreadable.push((path, ReadError::Io(error)));
    });
    Sources { files, unreadable }
}

/// The sources in a directory and what else may launch their kernels, sorted, at most `limit`.
pub fn find_all(directory: &Path, recursive: bool, limit: usize) -> Vec<PathBuf> {
    let fits = |path: &Path| is_source(path) || launches(path);
    search(directory, recursive, limit, fits, &mut |_, _| {})
}

fn search(
    directory: &Path,
    recursive: bool,
    limit: usize,
    fits: impl Fn(&Path) -> bool,
    unreadable: &mut dyn FnMut(PathBuf, io::Error),
) -> Vec<PathBuf> {
    let mut walk = WalkBuilder::new(directory);
    walk.sort_by_file_path(|a, b| a.cmp(b)).filter_entry(|entry| {
        entry.depth() == 0
            || !entry.file_type().is_some_and(|kind| kind.is_dir())
            || !is_build_directory(entry.file_name())
    });
    if !recursive {
        walk.max_depth(Some(1));
    }
    walk.build()
        .filter_map(|entry| match entry {
            Ok(entry) => Some(entry),
            Err(error) => {
                let path = place_of(&error).unwrap_or(directory).to_path_buf();
                if let Some(error) = error.into_io_error() {
                    unreadable(path, error);
                }
                None
            }
        })
        .filter(|entry| entry.path().is_file() && fits(entry.path()))
        .map(|entry| entry.into_path())
        .take(limit)
        .collect()
}

/// The path that an error is about.
fn place_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => place_of(err),
        _ => None,
    }
}

/// The nearest directory at or above `path` that is marked as the root of a workspace, else the farthest with a `gridfuse.toml`.
pub fn workspace_root(path: &Path) -> Option<PathBuf> {
    let marked = |directory: &&Path| ROOT_MARKERS.iter().any(|marker| directory.join(marker).exists());
    let root = path.ancestors().find(marked);
    let root = root.or_else(|| {
        path.ancestors()
            .filter(|d| d.join(crate::manifest::NAME).is_file())
            .last()
    });
    root.map(Path::to_path_buf)
}

/// The other sources that may concern `path`: all of its workspace, or those beside it when it isn't in one.
pub fn context_of(path: &Path) -> Vec<PathBuf> {
    let directory = if path.is_dir() { Some(path) } else { path.parent() };
    let Some(directory) = directory else { return Vec::new() };
    let mut found = find_all(directory, false, MAX_WORKSPACE_FILES);
    if let Some(root) = workspace_root(directory) {
        let have: BTreeSet<PathBuf> = found.iter().cloned().collect();
        let rest = MAX_WORKSPACE_FILES.saturating_sub(found.len());
        found.extend(
            find_all(&root, true, MAX_WORKSPACE_FILES)
                .into_iter()
                .filter(|path| !have.contains(path))
                .take(rest),
        );
    }
    found
}

/// Removes `.` and `..` from a path without asking the disk.
pub fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(out.components().next_back(), Some(Component::Normal(_))) => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Files on disk that `from` include, directly or through others that are known, and that aren't known yet.
pub fn missing_includes(db: &dyn Db, from: impl IntoIterator<Item = SourceFile>) -> Vec<PathBuf> {
    let workspace = Workspace::get(db);
    let known = workspace.files(db);
    let mut pending: Vec<SourceFile> = from.into_iter().collect();
    let mut seen: std::collections::HashSet<SourceFile> = pending.iter().copied().collect();
    let mut missing = BTreeSet::new();
    while let Some(file) = pending.pop() {
        // Also those in the middle of functions, and in branches that aren't compiled here.
        for include in file.includes(db).iter() {
            for candidate in include_candidates(db, file, include) {
                if let Some(file) = known.get(&candidate) {
                    if seen.insert(*file) {
                        pending.push(*file);
                    }
                    break;
                }
                if candidate.is_absolute() && candidate.is_file() {
                    missing.insert(candidate);
                    break;
                }
            }
        }
    }
    missing.into_iter().collect()
}

/// Adds the files that `from` include, transitively, as far as they can be read.
pub fn load_includes(host: &mut Host, from: &[SourceFile]) {
    let mut unreadable = BTreeSet::new();
    let mut budget = MAX_WORKSPACE_FILES;
    loop {
        let missing = missing_includes(host.db(), from.iter().copied());
        let mut texts = Vec::new();
        for path in missing {
            if unreadable.contains(&path) || texts.len() >= budget {
                continue;
            }
            match read(&path, MAX_FOUND_BYTES) {
                Ok(text) => texts.push((path, text)),
                Err(_) => {
                    unreadable.insert(path);
                }
            }
        }
        budget = budget.saturating_sub(texts.len());
        if texts.is_empty() {
            return;
        }
        host.set_files(texts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalizes_without_the_disk() {
        assert_eq!(normalize(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(normalize(Path::new("../a")), Path::new("../a"));
        assert_eq!(normalize(Path::new("/a/b/../../c.cuh")), Path::new("/c.cuh"));
    }

    #[test]
    fn finds_sources_and_skips_builds() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        for path in ["a.cu", "sub/b.cuh", "build/c.cu", "sub/node_modules/d.cu", "e.txt"] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(dir.path()))?;
            std::fs::write(path, "")?;
        }
        let sources = |directory: &Path| find_sources(directory).files;
        let found = sources(dir.path());
        assert_eq!(found, [dir.path().join("a.cu"), dir.path().join("sub/b.cuh")]);
        assert_eq!(find_all(dir.path(), false, 10), [dir.path().join("a.cu")]);
        assert_eq!(sources(&dir.path().join("build")).len(), 1);
        // What isn't called a CUDA source may launch kernels.
        std::fs::write(dir.path().join("f.cpp"), "void f() { k<<<1, 2>>>(); }")?;
        std::fs::write(dir.path().join("g.cpp"), "int g = 1 << 2 >> 1;")?;
        assert_eq!(sources(dir.path()), found);
        let all = [dir.path().join("a.cu"), dir.path().join("f.cpp")];
        assert_eq!(find_all(dir.path(), false, 10), all);
        assert_eq!(context_of(dir.path()), all);
        Ok(())
    }

    #[test]
    fn refuses_what_is_not_text() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("x.cu");
        std::fs::write(&path, b"ab\xff")?;
        assert!(matches!(read(&path, 100), Err(ReadError::Binary(2))));
        std::fs::write(&path, b"a\0b")?;
        assert!(matches!(read(&path, 100), Err(ReadError::Binary(1))));
        assert!(matches!(read(&path, 2), Err(ReadError::TooLarge(3))));
        assert!(matches!(read(&dir.path().join("y.cu"), 2), Err(ReadError::Io(_))));
        assert!(matches!(read(dir.path(), 1 << 20), Err(ReadError::NoFile)));
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn waits_for_nobody() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let pipe = dir.path().join("x.cu");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU)?;
        assert!(matches!(read(&pipe, 100), Err(ReadError::NoFile)));
        // Nor where it took the place of a file.
        assert!(open(&pipe)?.metadata().is_ok_and(|metadata| !metadata.is_file()));
        for device in ["/dev/zero", "/dev/tty"] {
            assert!(
                matches!(read(Path::new(device), 100), Err(ReadError::NoFile | ReadError::Io(_))),
                "{device}"
            );
        }
        let link = dir.path().join("loop.cu");
        std::os::unix::fs::symlink(&link, &link)?;
        assert!(matches!(read(&link, 100), Err(ReadError::Io(_))));
        Ok(())
    }
}
