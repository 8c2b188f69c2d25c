//! CUDA sources for tests, with everything the test needs to know written into them.
//!
//! ```text
//! //- /kernels.cu
//! __global__ void child(int* x) {}
//! __global__ void parent(int* x) {
//!     chi$0ld<<<1, 1>>>(x);
//!   //^^^^^ warning many-launches: every thread launches
//! }
//! ```
//!
//! - `//- /path` starts a file; a text without such a line is the one file `/main.cu`.
//! - `$0` is the cursor, and is taken out of the text; two of them enclose a selection.
//! - `//^^^ severity id: part of the message` is an expected diagnostic for the columns under which the
//!   carets stand, on the nearest line above that is not itself such a comment. The comment stays in
//!   the text. `//<^^^` starts at column 0, which the slashes would hide. The message may be left out.

use std::fmt;
use std::ops::Range;

/// A parsed fixture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixture {
    /// The files, in order.
    pub files: Vec<FixtureFile>,
    /// Where `$0` stood.
    pub cursor: Option<Cursor>,
}

/// One file of a [`Fixture`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixtureFile {
    /// The path in the header, such as `/main.cu`.
    pub path: String,
    /// The text without cursor markers.
    pub text: String,
    /// The diagnostics that the comments expect, in the order of the text.
    pub annotations: Vec<Annotation>,
}

/// The place of `$0`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The index in [`Fixture::files`].
    pub file: usize,
    /// The selected bytes; empty for a lone cursor.
    pub range: Range<usize>,
}

impl Cursor {
    /// The byte offset of the (first) marker.
    pub fn offset(&self) -> usize {
        self.range.start
    }
}

/// An expected diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// The bytes it covers.
    pub range: Range<usize>,
    /// How severe it is.
    pub severity: Severity,
    /// Its id, such as `many-launches`.
    pub id: String,
    /// What its message has to contain; empty when anything will do.
    pub message: String,
}

impl Annotation {
    /// Whether a diagnostic is the expected one.
    pub fn matches(&self, range: &Range<usize>, severity: &str, id: &str, message: &str) -> bool {
        self.range == *range && self.severity.as_str() == severity && self.id == id && message.contains(&self.message)
    }
}

/// The severities of the Language Server Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// `error`
    Error,
    /// `warning`
    Warning,
    /// `info`
    Info,
    /// `hint`
    Hint,
}

impl Severity {
    /// The word used in annotations.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
            Severity::Hint => "hint",
        }
    }

    fn parse(word: &str) -> Option<Severity> {
        [Severity::Error, Severity::Warning, Severity::Info, Severity::Hint]
            .into_iter()
            .find(|severity| severity.as_str() == word)
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const CURSOR: &str = "$0";
const DEFAULT_PATH: &str = "/main.cu";

impl Fixture {
    /// Parses a fixture.
    ///
    /// # Panics
    /// When the fixture is malformed; use [`Fixture::try_parse`] to see why without a panic.
    #[allow(clippy::panic)]
    #[track_caller]
    pub fn parse(text: &str) -> Fixture {
        match Self::try_parse(text) {
            Ok(fixture) => fixture,
            Err(message) => panic!("malformed fixture: {message}"),
        }
    }

    /// Parses a fixture.
    pub fn try_parse(text: &str) -> Result<Fixture, String> {
        let mut files = Vec::new();
        let mut markers = Vec::new();
        for (path, marked) in split_files(text)? {
            let mut plain = String::with_capacity(marked.len());
            let mut parts = marked.split(CURSOR);
            plain.push_str(parts.next().unwrap_or_default());
            for part in parts {
                markers.push((files.len(), plain.len()));
                plain.push_str(part);
            }
            let annotations = annotations(&plain).map_err(|error| format!("{path}: {error}"))?;
            files.push(FixtureFile {
                path,
                text: plain,
                annotations,
            });
        }
        let cursor = match markers.as_slice() {
            [] => None,
            &[(file, offset)] => Some(Cursor {
                file,
                range: offset..offset,
            }),
            &[(file, start), (other, end)] if file == other => Some(Cursor {
                file,
                range: start..end,
            }),
            _ => return Err("at most two `$0`, in one file".to_owned()),
        };
        Ok(Fixture { files, cursor })
    }

    /// The file named `path`.
    pub fn file(&self, path: &str) -> Option<&FixtureFile> {
        self.files.iter().find(|file| file.path == path)
    }
}

/// Splits at `//- /path` lines.
fn split_files(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut files: Vec<(String, String)> = Vec::new();
    for line in text.split_inclusive('\n') {
        if let Some(path) = line.strip_prefix("//- ") {
            let path = path.trim();
            if !path.starts_with('/') {
                return Err(format!("the path `{path}` has to start with `/`"));
            }
            if files.iter().any(|(other, _)| other == path) {
                return Err(format!("the file {path} is there twice"));
            }
            files.push((path.to_owned(), String::new()));
        } else if let Some((_, contents)) = files.last_mut() {
            contents.push_str(line);
        } else if text.lines().any(|line| line.starts_with("//- ")) {
            // Nothing but blank lines may come before the first header.
            if !line.trim().is_empty() {
                return Err(format!("`{}` stands before the first file", line.trim()));
            }
        } else {
            files.push((DEFAULT_PATH.to_owned(), line.to_owned()));
        }
    }
    if files.is_empty() {
        files.push((DEFAULT_PATH.to_owned(), String::new()));
    }
    Ok(files)
}

/// Reads the annotations of one file.
fn annotations(text: &str) -> Result<Vec<Annotation>, String> {
    let mut found = Vec::new();
    let mut target: Option<(usize, &str)> = None;
    let mut start = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        match annotation_comment(line) {
            Some((column, comment)) => {
                let located = |message: String| format!("line {}: {message}", number + 1);
                let (line_start, target) =
                    target.ok_or_else(|| located("there is no line above the annotation".to_owned()))?;
                found.push(annotation(line_start, target, column, comment).map_err(located)?);
            }
            None => target = Some((start, line.trim_end_matches(['\n', '\r']))),
        }
        start += line.len();
    }
    Ok(found)
}

/// The column of the slashes and what follows them, if the line is an annotation.
fn annotation_comment(line: &str) -> Option<(usize, &str)> {
    let comment = line.trim_start();
    let column = line.chars().count() - comment.chars().count();
    let body = comment.strip_prefix("//")?;
    let marks = body.trim_start_matches(' ');
    marks
        .strip_prefix('<')
        .unwrap_or(marks)
        .starts_with('^')
        .then(|| (column, body.trim_end()))
}

fn annotation(line_start: usize, target: &str, slashes: usize, body: &str) -> Result<Annotation, String> {
    let marks = body.trim_start_matches(' ');
    let mut first = slashes + 2 + (body.len() - marks.len());
    let (from_start, marks) = match marks.strip_prefix('<') {
        Some(rest) => (true, rest),
        None => (false, marks),
    };
    let rest = marks.trim_start_matches('^');
    let mut last = first + (marks.len() - rest.len());
    if from_start {
        last += 1;
        first = 0;
    }
    let byte = |column: usize| {
        target
            .char_indices()
            .map(|(byte, _)| byte)
            .chain([target.len()])
            .nth(column)
            .map(|byte| line_start + byte)
            .ok_or_else(|| format!("the carets reach past the end of `{target}`"))
    };
    let range = byte(first)?..byte(last)?;

    let (head, message) = match rest.split_once(':') {
        Some((head, message)) => (head, message.trim()),
        None => (rest, ""),
    };
    let mut words = head.split_whitespace();
    let (Some(severity), Some(id), None) = (words.next(), words.next(), words.next()) else {
        return Err(format!(
            "expected `severity id: message` after the carets, found `{}`",
            rest.trim()
        ));
    };
    let severity =
        Severity::parse(severity).ok_or_else(|| format!("`{severity}` is not error, warning, info or hint"))?;
    Ok(Annotation {
        range,
        severity,
        id: id.to_owned(),
        message: message.to_owned(),
    })
}

/// The comment that expects a finding, `what`, for a range of a file's text, and the number of lines in front of it. `None` where no carets
/// can stand: under nothing, under several lines, and where the slashes would be.
pub fn expecting(text: &str, range: &Range<usize>, what: &str) -> Option<(usize, String)> {
    let start = text.get(..range.start)?.rfind('\n').map_or(0, |end| end + 1);
    let (in_front, width) = (text.get(start..range.start)?, text.get(range.clone())?);
    let (column, width) = (in_front.chars().count(), width.lines().map(|line| line.chars().count()));
    let [width] = width.collect::<Vec<_>>()[..] else {
        return None;
    };
    let comment = match column {
        0 => format!(
            "//<{} {what}",
            "^".repeat(width.checked_sub(3).filter(|carets| *carets > 0)?)
        ),
        _ => {
            let blanks = in_front.chars().take_while(|c| c.is_whitespace()).count();
            let indent = blanks.min(column.checked_sub(2)?);
            let gap = " ".repeat(column - 2 - indent);
            format!("{}//{gap}{} {what}", " ".repeat(indent), "^".repeat(width))
        }
    };
    let line = text.get(..start)?.matches('\n').count() + 1;
    let others = text
        .lines()
        .skip(line)
        .take_while(|line| annotation_comment(line).is_some());
    Some((line + others.count(), comment))
}

/// The number of lines of a fixture in front of one of its files.
pub fn lines_before(fixture: &str, path: &str) -> usize {
    let header = fixture
        .lines()
        .position(|line| line.strip_prefix("//- ").is_some_and(|it| it.trim() == path));
    header.map_or(0, |line| line + 1)
}

/// The example in a rewrite's documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeforeAfter {
    /// The code block under `## Before`.
    pub before: String,
    /// The code block under `## After`.
    pub after: String,
}

/// Takes the first fenced `cuda` block under `## Before` and under `## After` out of a Markdown text.
pub fn before_after(doc: &str) -> Result<BeforeAfter, String> {
    Ok(BeforeAfter {
        before: block_under(doc, "Before")?,
        after: block_under(doc, "After")?,
    })
}

fn block_under(doc: &str, heading: &str) -> Result<String, String> {
    let mut under = false;
    let mut fence: Option<(&str, bool)> = None;
    let mut block = String::new();
    for line in doc.split_inclusive('\n') {
        let trimmed = line.trim();
        if let Some((closing, wanted)) = fence {
            if trimmed == closing {
                if wanted {
                    return Ok(block);
                }
                fence = None;
            } else if wanted {
                block.push_str(line);
            }
        } else if trimmed.starts_with("```") {
            let length = trimmed.len() - trimmed.trim_start_matches('`').len();
            let (closing, language) = trimmed.split_at(length);
            fence = Some((closing, under && language.trim() == "cuda"));
        } else if let Some(title) = trimmed.strip_prefix("## ") {
            under = title.trim().eq_ignore_ascii_case(heading);
        }
    }
    Err(format!("there is no closed `cuda` code block under `## {heading}`"))
}

/// Whether the environment asks for this program of the fixtures: `GRIDFUSE_FIXTURES` holds parts of names, separated by commas, when
/// the tests that take minutes are to run for some programs alone.
pub fn is_asked_for(name: &str) -> bool {
    std::env::var("GRIDFUSE_FIXTURES").map_or(true, |parts| parts.split(',').any(|part| name.contains(part)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn one_file_without_a_header() {
        let fixture = Fixture::parse("int a;\nint $0b;\n");
        assert_eq!(fixture.files.len(), 1);
        assert_eq!(fixture.files[0].path, "/main.cu");
        assert_eq!(fixture.files[0].text, "int a;\nint b;\n");
        let cursor = fixture.cursor.unwrap();
        assert_eq!((cursor.file, cursor.offset()), (0, 11));
        assert!(cursor.range.is_empty());
        assert_eq!(Fixture::parse("").files[0].text, "");
    }

    #[test]
    fn several_files_and_a_selection() {
        let fixture = Fixture::parse("\n//- /a.cuh\nint a;\n//- /b/c.cu\n$0int$0 b;\n#include \"a.cuh\"\n");
        let paths: Vec<_> = fixture.files.iter().map(|file| &file.path).collect();
        assert_eq!(paths, ["/a.cuh", "/b/c.cu"]);
        assert_eq!(fixture.file("/a.cuh").unwrap().text, "int a;\n");
        assert_eq!(fixture.cursor, Some(Cursor { file: 1, range: 0..3 }));
    }

    #[test]
    fn annotations_point_at_the_line_above() {
        let text = "void parent() {\n    child<<<1, 1>>>(x);\n  //^^^^^ warning many-launches: every: thread\n  //           ^ hint other\n}\n";
        let fixture = Fixture::parse(text);
        let [first, second] = fixture.files[0].annotations.as_slice() else {
            panic!("{fixture:?}")
        };
        assert_eq!(&text[first.range.clone()], "child");
        assert_eq!(first.severity, Severity::Warning);
        assert_eq!(first.id, "many-launches");
        assert_eq!(first.message, "every: thread");
        assert_eq!(&text[second.range.clone()], "1");
        assert_eq!((second.id.as_str(), second.message.as_str()), ("other", ""));
        assert_eq!(fixture.files[0].text, text, "annotations stay");
        assert!(first.matches(&(20..25), "warning", "many-launches", "so every: thread"));
        assert!(!first.matches(&(20..25), "error", "many-launches", "so every: thread"));
    }

    #[test]
    fn an_angle_bracket_reaches_back_to_column_zero() {
        let text = "child();\n//<^^ info id\n";
        let fixture = Fixture::parse(text);
        assert_eq!(&text[fixture.files[0].annotations[0].range.clone()], "child");
    }

    #[test]
    fn the_cursor_does_not_shift_the_carets() {
        let fixture = Fixture::parse("    chi$0ld();\n  //^^^^^ error id\n");
        let file = &fixture.files[0];
        assert_eq!(&file.text[file.annotations[0].range.clone()], "child");
    }

    #[test]
    fn columns_count_characters_not_bytes() {
        let fixture = Fixture::parse("/* ÄÖ */ child();\n       //^^^^^ error id\n");
        let file = &fixture.files[0];
        assert_eq!(&file.text[file.annotations[0].range.clone()], "child");
    }

    #[test]
    fn what_is_written_for_a_finding_expects_it() {
        let text = "//- /a.cuh\n\n//- /main.cu\nauto x = f(ü, y);\n    //   ^ info other\nvoid g();\n";
        let plain = &Fixture::parse(text).files[1].text;
        for (part, line) in [("f", 2), ("y", 2), ("auto", 2), ("void g()", 3)] {
            let start = plain.find(part).unwrap();
            let (lines, comment) = expecting(plain, &(start..start + part.len()), "warning new: it is").unwrap();
            assert_eq!(lines, line, "{comment}");
            let mut all: Vec<&str> = text.lines().collect();
            all.insert(lines_before(text, "/main.cu") + lines, &comment);
            let fixture = Fixture::parse(&all.join("\n"));
            let file = fixture.file("/main.cu").unwrap();
            let found = file.annotations.iter().find(|found| found.id == "new").unwrap();
            assert_eq!(
                (&file.text[found.range.clone()], found.message.as_str()),
                (part, "it is")
            );
        }
        let newline = plain.find('\n').unwrap();
        for none in [1..3, 0..2, 5..5, newline - 2..newline + 9] {
            assert_eq!(expecting(plain, &none, "info a"), None, "{none:?}");
        }
    }

    #[test]
    fn other_comments_are_not_annotations() {
        let fixture = Fixture::parse("x;\n// a ^ b\n    //- indented\nint y; //^^ no\n");
        assert_eq!(fixture.files.len(), 1);
        assert_eq!(fixture.files[0].annotations, []);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("//^^ error id\n", "no line above"),
            ("x;\n  //^^ error id\n", "reach past"),
            ("abcdefgh;\n//^^ fatal id\n", "`fatal` is not"),
            ("abcdefgh;\n//^^ error\n", "expected `severity id: message`"),
            ("$0a$0b$0", "at most two"),
            ("//- a.cu\n", "has to start with `/`"),
            ("//- /a.cu\n//- /a.cu\n", "twice"),
            ("int a;\n//- /a.cu\n", "before the first file"),
        ] {
            let message = Fixture::try_parse(text).unwrap_err();
            assert!(message.contains(part), "{text:?}: {message}");
        }
    }

    #[test]
    fn before_and_after_come_out_of_the_documentation() {
        let doc = "# threshold\n\n```cuda\nignored\n```\n\n## Before\nText.\n```text\nno\n```\n```cuda\n## not a heading\na<<<1, 1>>>();\n```\n## After\n\n````cuda\nb();\n```\n````\n";
        let example = before_after(doc).unwrap();
        assert_eq!(example.before, "## not a heading\na<<<1, 1>>>();\n");
        assert_eq!(example.after, "b();\n```\n");
        let message = before_after("## Before\n```cuda\nx\n```\n").unwrap_err();
        assert!(message.contains("## After"), "{message}");
    }
}
