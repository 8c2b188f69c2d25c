//! What compilers say, with the places in the user's files that they speak of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// An error or a warning at a line of a file that was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The file as the compiler names it.
    pub path: PathBuf,
    /// From 1.
    pub line: u32,
    /// `error` or `warning`
    pub severity: &'static str,
    /// What is wrong.
    pub text: String,
}

/// The messages of nvcc and of the host's compiler that have a place: `x.cu(7): error: …`, `x.cu:7:3: warning: …`.
pub fn parse(output: &str) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for message in output.lines().filter_map(message) {
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    // What doesn't stop it comes last.
    messages.sort_by_key(|message| message.severity != "error");
    messages
}

fn message(line: &str) -> Option<Message> {
    let (place, severity, text) = [
        (": error: ", "error"),
        (": fatal error: ", "error"),
        (": catastrophic error: ", "error"),
        (": error #", "error"),
        (": warning: ", "warning"),
        (": warning #", "warning"),
    ]
    .into_iter()
    .find_map(|(separator, severity)| {
        let (place, text) = line.split_once(separator)?;
        Some((place, severity, text))
    })?;
    let (path, line) = match place.strip_suffix(')') {
        Some(place) => place.rsplit_once('(')?,
        None => {
            let mut parts = place.rsplitn(3, ':');
            let (last, before, path) = (parts.next()?, parts.next()?, parts.next());
            match path {
                // With a column.
                Some(path) if before.parse::<u32>().is_ok() => (path, before),
                _ => (place.rsplit_once(':')?.0, last),
            }
        }
    };
    let line = line.parse().ok().filter(|line| *line > 0)?;
    Some(Message {
        path: PathBuf::from(path.trim()),
        line,
        severity,
        text: text.trim().to_owned(),
    })
}

/// Where a line of a text was before it was rewritten; from 1 both. The second is true when the line is the same; else
/// the rewrite has put it in place of the returned one or behind it.
pub fn line_before(before: &str, after: &str, line: u32) -> (u32, bool) {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let line = (line as usize).saturating_sub(1);
    for op in capture_diff_slices(Algorithm::Patience, &old, &new) {
        if !op.new_range().contains(&line) {
            continue;
        }
        let (old_start, into) = (op.old_range().start, line - op.new_range().start);
        return match op {
            DiffOp::Equal { .. } => ((old_start + into + 1) as u32, true),
            // The last line of what was replaced is the furthest that is meant.
            DiffOp::Replace { old_len, .. } => ((old_start + into.min(old_len.saturating_sub(1)) + 1) as u32, false),
            DiffOp::Insert { .. } | DiffOp::Delete { .. } => (old_start.max(1) as u32, false),
        };
    }
    (old.len().max(1) as u32, false)
}

/// The path in the user's tree of a file in the copy of it at `tree`.
pub fn real_path(tree: &Path, path: &Path, known: &BTreeMap<PathBuf, String>) -> PathBuf {
    let Ok(below) = path.strip_prefix(tree) else {
        return path.to_path_buf();
    };
    // Prefixes of drives are lost in the copy.
    let original = known
        .keys()
        .find(|path| super::build::below(Path::new(""), path) == below);
    original.map_or_else(|| Path::new("/").join(below), Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_messages() {
        let found = parse(
            r#"/t/a.cu(9): warning #177-D: variable "x" was declared but never referenced
/t/a.cu(7): error: expected a ";"

/t/a.cu(7): error: expected a ";"
/t/b.h:12:5: error: 'y' was not declared
/t/c.h:3: fatal error: no.h: No such file or directory
1 error detected in the compilation of "/t/a.cu".
ptxas fatal : no
x(: error: y
(0): error: z
"#,
        );
        let short: Vec<String> = found
            .iter()
            .map(|m| format!("{} {} {} {}", m.path.display(), m.line, m.severity, m.text))
            .collect();
        assert_eq!(
            short,
            [
                "/t/a.cu 7 error expected a \";\"",
                "/t/b.h 12 error 'y' was not declared",
                "/t/c.h 3 error no.h: No such file or directory",
                "/t/a.cu 9 warning 177-D: variable \"x\" was declared but never referenced",
            ]
        );
    }

    #[test]
    fn lines_of_rewritten_texts() {
        let (before, after) = ("a\nb\nc\nd\n", "new\na\nB1\nB2\nc\nd\nend\n");
        let lines: Vec<(u32, bool)> = (1..=7).map(|line| line_before(before, after, line)).collect();
        assert_eq!(
            lines,
            [
                (1, false),
                (1, true),
                (2, false),
                (2, false),
                (3, true),
                (4, true),
                (4, false)
            ]
        );
        assert!(!line_before("", "x\n", 1).1);
        assert_eq!(line_before("a\n", "a\n", 99), (1, false));
    }

    #[test]
    fn paths_in_the_copy() {
        let known = BTreeMap::from([(PathBuf::from("/home/x/a.cu"), String::new())]);
        let path = |path: &str| real_path(Path::new("/tmp/s/tree"), Path::new(path), &known);
        assert_eq!(path("/tmp/s/tree/home/x/a.cu"), Path::new("/home/x/a.cu"));
        assert_eq!(path("/tmp/s/tree/home/x/b.cuh"), Path::new("/home/x/b.cuh"));
        assert_eq!(path("/usr/include/c.h"), Path::new("/usr/include/c.h"));
    }
}
