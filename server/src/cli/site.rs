//! `[FILE:]LINE[:COL]` and `FILE[:LINE]` on the command line, and the launches there.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::span::TextRange;

use crate::collected;
use crate::launches::{LaunchSite, overlapping};
use crate::line_index::line_index;

/// A line and perhaps a column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Line.
    pub line: u32,
    /// Column in bytes.
    pub column: Option<u32>,
}

impl FromStr for At {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| part.parse().ok().filter(|n| *n > 0);
        let (line, column) = match text.split_once(':') {
            Some((line, column)) => (number(line), number(column).map(Some)),
            None => (number(text), Some(None)),
        };
        match (line, column) {
            (Some(line), Some(column)) => Ok(At { line, column }),
            _ => Err("expected LINE or LINE:COL, both from 1, for example 41:9".to_string()),
        }
    }
}

/// What `--at` takes: a place as the user types it, or as messages and tables print it, with its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAt {
    /// The file, where it is named.
    file: Option<PathBuf>,
    /// The place in it.
    at: At,
}

impl FromStr for NamedAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(at) => Ok(NamedAt { file: None, at }),
            Err(expected) => match split_location(text) {
                (file, Some(at)) if !file.as_os_str().is_empty() => Ok(NamedAt { file: Some(file), at }),
                _ => Err(expected),
            },
        }
    }
}

impl NamedAt {
    /// The place in `path`, the file that the command is about.
    ///
    /// # Errors
    /// It names another file.
    pub fn within(self, path: &Path) -> Result<At, String> {
        let Some(file) = self.file else { return Ok(self.at) };
        let real = |path: &Path| path.canonicalize().ok();
        // Standard input is shown by the name that `--stdin-path` gives it.
        let same = file == path || path == Path::new("-") || real(&file).is_some_and(|file| real(path) == Some(file));
        match same {
            true => Ok(self.at),
            false => Err(format!(
                "--at names {}, and the command is about {}",
                file.display(),
                path.display()
            )),
        }
    }
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.column {
            Some(column) => write!(f, "{}:{column}", self.line),
            None => write!(f, "{}", self.line),
        }
    }
}

/// The file and the place in it that `FILE:LINE` and `--at` name.
///
/// # Errors
/// Both name a line, or they name different files.
pub fn named_place(location: &Path, at: Option<NamedAt>) -> Result<(PathBuf, Option<At>), String> {
    let (path, named) = match location.to_str() {
        Some(location) => split_location(location),
        None => (location.to_path_buf(), None),
    };
    match (named, at) {
        (Some(_), Some(_)) => {
            Err("the line is named twice: leave --at out, or the line after the file's name".to_owned())
        }
        (Some(named), None) => Ok((path, Some(named))),
        (None, at) => {
            let at = at.map(|at| at.within(&path)).transpose()?;
            Ok((path, at))
        }
    }
}

/// Splits `FILE`, `FILE:LINE` and `FILE:LINE:COL`. A file whose name ends like that is taken as a file.
pub fn split_location(argument: &str) -> (PathBuf, Option<At>) {
    let whole = PathBuf::from(argument);
    if whole.exists() {
        return (whole, None);
    }
    let colons: Vec<usize> = argument.match_indices(':').map(|(at, _)| at).rev().take(2).collect();
    for colon in colons.into_iter().rev() {
        if let Ok(at) = argument[colon + 1..].parse() {
            return (PathBuf::from(&argument[..colon]), Some(at));
        }
    }
    (whole, None)
}

/// The launches at a line, narrowed down by the column where it helps: those that start there, else those that reach there.
pub fn launches_at<'db>(db: &'db dyn Db, file: SourceFile, at: At) -> Vec<LaunchSite<'db>> {
    let index = line_index(db, file);
    let line = at.line - 1;
    // Only the functions of that line are looked at. A launch may end where the line begins.
    let start = index.start(line).unwrap_or(u32::MAX);
    let end = index.start(line.saturating_add(1)).unwrap_or(u32::MAX);
    let mut sites = overlapping(db, file, TextRange::new(start.saturating_sub(1), end));
    sites.retain(|site| {
        let range = site.place.range;
        (index.line(range.start).0..=index.line(range.end).0).contains(&line)
    });
    if let (Some(column), Some(start)) = (at.column, index.start(line)) {
        let offset = start.saturating_add(column - 1);
        if sites.iter().any(|site| site.place.range.touches(offset)) {
            sites.retain(|site| site.place.range.touches(offset));
        }
    }
    let starts_here = |site: &LaunchSite<'_>| index.line(site.place.range.start).0 == line;
    if sites.iter().any(starts_here) {
        sites.retain(starts_here);
    }
    sites
}

/// The launch that a rewrite has collected at a line, or at a column of it.
pub fn collected_at(db: &dyn Db, file: SourceFile, at: At) -> Option<TextRange> {
    let index = line_index(db, file);
    let start = index.start(at.line - 1)?;
    let end = index.start(at.line).unwrap_or(u32::MAX);
    let found = collected::overlapping(db, file, TextRange::new(start, end));
    let places = || found.iter().map(|found| found.place(db).range);
    let column = at.column.map(|column| start.saturating_add(column - 1));
    let meant = column.and_then(|offset| places().find(|place| place.touches(offset)));
    meant.or_else(|| places().next())
}

/// A message has room for so many places.
const MAX_LISTED: usize = 8;

/// Where launches of the file that is shown as `path` start, for a message, as a command takes them: `a.cu:12:5, a.cu:40:5 and a.cu:40:31`.
pub fn list_places(db: &dyn Db, path: &str, sites: &[LaunchSite<'_>]) -> String {
    let mut places: Vec<String> = sites
        .iter()
        .take(MAX_LISTED)
        .map(|site| {
            let (line, column) = line_index(db, site.place.file).line_column(site.place.range.start);
            format!("{path}:{}:{}", line + 1, column + 1)
        })
        .collect();
    if let Some(more) = sites.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
        places.push(format!("{more} more places"));
    }
    match places.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations() {
        let at = |line, column| Some(At { line, column });
        assert_eq!(split_location("a.cu"), ("a.cu".into(), None));
        assert_eq!(split_location("a.cu:12"), ("a.cu".into(), at(12, None)));
        assert_eq!(split_location("a.cu:12:3"), ("a.cu".into(), at(12, Some(3))));
        assert_eq!(split_location("a:b.cu"), ("a:b.cu".into(), None));
        assert_eq!(split_location("a.cu:0"), ("a.cu:0".into(), None));
        assert!("0".parse::<At>().is_err());
    }

    #[test]
    fn a_place_as_it_is_printed() {
        let named = |text: &str| text.parse::<NamedAt>().map(|named| (named.file, named.at.to_string()));
        assert_eq!(named("31"), Ok((None, "31".to_owned())));
        assert_eq!(named("31:9"), Ok((None, "31:9".to_owned())));
        assert_eq!(named("a/x.cu:31:9"), Ok((Some("a/x.cu".into()), "31:9".to_owned())));
        assert_eq!(named("-:31"), Ok((Some("-".into()), "31".to_owned())));
        assert!(named("x.cu").is_err() && named(":3").is_err() && named("").is_err());
        let within = |text: &str, path: &str| text.parse::<NamedAt>()?.within(Path::new(path));
        assert!(within("x.cu:3", "x.cu").is_ok() && within("3", "x.cu").is_ok());
        assert!(within("lib/x.cu:3", "-").is_ok());
        assert_eq!(
            within("y.cu:3", "x.cu"),
            Err("--at names y.cu, and the command is about x.cu".to_owned())
        );
    }

    #[test]
    fn wrong_places() {
        assert!("1:x".parse::<At>().is_err());
        assert!("".parse::<At>().is_err());
    }
}
