//! Adds `#include "gridfuse.cuh"` to a file, and the header itself to the workspace.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use gridfuse_analysis::base::db::{Db, SourceFile, Workspace};
use gridfuse_analysis::base::file_settings::settings;
use gridfuse_analysis::base::include::normalize;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::preprocess::file_directives;
use gridfuse_analysis::base::preprocess::{MacroState, preprocessed};
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::mentions::gaps;

use crate::api::refusal::Reason;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::style;
use crate::runtime::{HEADER, HEADER_NAME, Installed, PartSet, SUPPORTED_FROM, VERSION, header, installed, is_header};

/// Where the header is, or will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    path: PathBuf,
    /// The header that is there.
    there: Option<SourceFile>,
}

impl Header {
    /// Finds the header that `user` (the file with the parent kernel) includes or can include, or plans to create it: where the project
    /// has its copy.
    pub fn for_file(db: &dyn Db, user: SourceFile) -> Result<Header, Reason> {
        if let Some(place) = other_meaning(db, user) {
            return Err(Reason {
                text: "`gridfuse` isn't the runtime header's namespace here".to_owned(),
                place: Some(place),
            });
        }
        let foreign = |what: &str| Reason {
            text: format!("another file named {HEADER_NAME} {what}"),
            place: None,
        };
        let mut named = included_files(db, user).iter().filter(|file| is_named_so(db, **file));
        let included = match named.clone().find(|file| is_header(db, **file)) {
            Some(ours) => Some(*ours),
            None if named.next().is_some() => return Err(foreign("is included; rename it")),
            None => None,
        };
        let path = match included {
            Some(file) => file.path(db).to_path_buf(),
            None => home(db, user).join(HEADER_NAME),
        };
        let files = Workspace::try_get(db).map(|w| w.files(db)).unwrap_or_default();
        let there = included.or_else(|| files.get(&path).copied());
        let Some(file) = there else {
            return Ok(Header { path, there });
        };
        let Some(installed) = installed(db, file) else {
            let advice =
                "stands where the runtime header would; rename it, or say by `header-dir` in gridfuse.toml where else";
            return Err(foreign(advice));
        };
        match too_different(installed, VERSION) {
            Some(text) => Err(Reason { text, place: None }),
            None => Ok(Header { path, there }),
        }
    }

    /// Makes `file` include the header, unless it does already. What the header has to hold is found out when the edit is finished.
    pub fn include_in(&self, db: &dyn Db, edit: &mut EditBuilder<'_>, file: SourceFile) {
        edit.uses(self);
        if included_files(db, file).iter().any(|f| f.path(db) == self.path) {
            return;
        }
        let dir = file.path(db).parent().unwrap_or(Path::new(""));
        let written = relative(dir, &self.path);
        let newline = edit.style(file).newline;
        let mut place = include_place(db, file).clone();
        if let Some((name, _)) = macro_in_sight(db, file, place.directives) {
            place = place.at_head();
            let still = macro_in_sight(db, file, place.directives);
            if still.is_some() || place.tuned {
                let (name, defined) = still.unwrap_or((name, None));
                edit.refuse(Reason {
                    text: format!(
                        "{HEADER_NAME} would be included after the macro `{name}`, a name that it uses itself"
                    ),
                    place: defined,
                });
                return;
            }
        }
        if let Some((at, insert)) = place.insertion(&written, newline) {
            edit.insert_once(file, at as u32, insert);
        }
    }

    /// Has the header hold some parts: creates it, writes it anew with those that it lacks, or leaves it as it is.
    pub(super) fn provide(&self, edit: &mut EditBuilder<'_>, needed: PartSet) -> Result<(), Reason> {
        let Some(file) = self.there else {
            edit.create(self.path.clone(), header(needed));
            return Ok(());
        };
        let text = edit.text(file);
        let provided = Installed::read(&text).map(|there| provided(&there, needed, VERSION));
        match provided {
            None => Ok(()),
            Some(Provided::There) => Ok(()),
            Some(Provided::Anew(parts)) => {
                let newline = edit.style(file).newline;
                edit.rewrite(file, &header(parts).replace('\n', newline));
                Ok(())
            }
            Some(Provided::Refused(text)) => Err(Reason { text, place: None }),
        }
    }
}

/// What becomes of a header that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Provided {
    /// It has what is needed.
    There,
    /// It's written anew, with these parts.
    Anew(PartSet),
    /// It can't be.
    Refused(String),
}

/// What becomes of a header that is to have some parts, by the gridfuse that writes `version`.
fn provided(there: &Installed, needed: PartSet, version: u32) -> Provided {
    if let Some(refused) = too_different(there, version) {
        return Provided::Refused(refused);
    }
    if there.version == version && there.parts.holds(needed) {
        return Provided::There;
    }
    if there.is_intact {
        return Provided::Anew(there.parts.with(needed));
    }
    Provided::Refused(format!(
        "{HEADER_NAME} lacks what this needs, and somebody has changed it: delete it, and it's written anew"
    ))
}

/// Why a header can't be used by the gridfuse that writes `version`, and not be written anew either.
fn too_different(there: &Installed, version: u32) -> Option<String> {
    let found = there.version;
    if found > version {
        return Some(format!(
            "{HEADER_NAME} is of version {found}, and this gridfuse writes version {version}: update gridfuse"
        ));
    }
    if found < SUPPORTED_FROM {
        return Some(format!(
            "{HEADER_NAME} is of an older version, which this gridfuse doesn't write anew: revert what was rewritten with it, and delete it"
        ));
    }
    (found < version && !there.is_intact).then(|| {
        format!(
            "{HEADER_NAME} is of version {found}, this gridfuse writes version {version}, and somebody has changed it: delete it, and it's \
             written anew"
        )
    })
}

fn is_named_so(db: &dyn Db, file: SourceFile) -> bool {
    file.path(db).file_name().is_some_and(|name| name == HEADER_NAME)
}

/// The directory of the runtime header that a file is to include: the project's, or the file's own.
fn home(db: &dyn Db, user: SourceFile) -> PathBuf {
    let own = || user.path(db).parent().unwrap_or(Path::new("")).to_path_buf();
    settings(db, user).header_dir.clone().unwrap_or_else(own)
}

/// The words that a macro must not have where the header is included: those of the header, and `min` and `max`, which are in what it
/// includes; but for those that it asks for by `#if` or defines itself, and for those that the system's headers may define.
pub(super) fn own_words() -> &'static HashSet<&'static str> {
    static WORDS: OnceLock<HashSet<&'static str>> = OnceLock::new();
    WORDS.get_or_init(|| {
        let lines = logical_lines(&HEADER);
        let asked: HashSet<&str> = lines
            .iter()
            .filter_map(|line| line.directive)
            .flat_map(|(_, rest)| lex::identifiers(rest))
            .collect();
        let of_system = |word: &str| {
            let limit = word.len() > 4 && word.ends_with("_MAX");
            limit || word.starts_with('_') || word.starts_with("cuda") || matches!(word, "NULL" | "stderr" | "stdout")
        };
        let words = lex::identifiers(&HEADER).filter(|word| !asked.contains(word) && !of_system(word));
        let mut words: HashSet<&str> = words.collect();
        words.extend(["min", "max"]);
        words
    })
}

/// A macro, with the place of its definition, that has a word of the header behind so many directives of a file.
fn macro_in_sight(db: &dyn Db, file: SourceFile, directives: u32) -> Option<(String, Option<FileRange>)> {
    let found = preprocessed(db, file).states.iter().find(|(name, states)| {
        let before = states.partition_point(|(index, _)| *index <= directives);
        let state = before.checked_sub(1).and_then(|last| states.get(last));
        let defined = matches!(state, Some((_, MacroState::Defined(_) | MacroState::DefinedSomehow)));
        defined && own_words().contains(name.as_str())
    });
    let (name, _) = found?;
    let place = included_files(db, file).iter().find_map(|file| {
        let text = file.text(db);
        let tokens = lex::code_tokens_of(db, *file);
        let word = |index: usize| tokens.get(index).map_or("", |t| t.text(&text));
        let at = (2..tokens.len()).find(|i| word(*i) == name && word(i - 1) == "define" && word(i - 2) == "#")?;
        Some(FileRange {
            file: *file,
            range: TextRange::new(tokens[at].start as u32, tokens[at].end as u32),
        })
    });
    Some((name.clone(), place))
}

/// Where a file, or one that it includes, gives the name of the header's namespace to something else.
fn other_meaning(db: &dyn Db, user: SourceFile) -> Option<FileRange> {
    included_files(db, user).iter().find_map(|file| {
        let range = (*other_meaning_in(db, *file))?;
        Some(FileRange { file: *file, range })
    })
}

/// The first such place in a file.
#[salsa::tracked]
fn other_meaning_in(db: &dyn Db, file: SourceFile) -> Option<TextRange> {
    let text = file.text(db);
    if file.path(db).file_name().is_some_and(|n| n == HEADER_NAME) || !text.contains("gridfuse") {
        return None;
    }
    let tokens = lex::code_tokens_of(db, file);
    tokens.iter().enumerate().find_map(|(index, token)| {
        let next = tokens.get(index + 1).map_or("", |t| t.text(&text));
        (token.kind == lex::TokenKind::Word && token.text(&text) == "gridfuse" && !matches!(next, ":" | "."))
            .then(|| TextRange::new(token.start as u32, token.end as u32))
    })
}

/// `target` as seen from directory `from`, with `/`.
fn relative(from: &Path, target: &Path) -> String {
    let (from, target) = (normalize(from), normalize(target));
    let from: Vec<Component<'_>> = from.components().collect();
    let target: Vec<Component<'_>> = target.components().collect();
    let common = from.iter().zip(&target).take_while(|(a, b)| a == b).count();
    let mut parts: Vec<String> = vec!["..".to_owned(); from.len() - common];
    parts.extend(
        target[common..]
            .iter()
            .map(|c| c.as_os_str().to_string_lossy().into_owned()),
    );
    parts.join("/")
}

/// A logical line: a directive with its continuation lines, a comment, or a line of code.
struct Line<'a> {
    start: usize,
    /// In front of the newline.
    end: usize,
    /// Name and rest of a directive.
    directive: Option<(&'a str, &'a str)>,
    /// Holds code.
    code: bool,
}

fn logical_lines(text: &str) -> Vec<Line<'_>> {
    let tokens = lex::tokens(text);
    let mut lines = Vec::new();
    let mut at = 0;
    let mut next = 0;
    while at < text.len() {
        let mut end = style::line_end(text, at);
        // Comments that go on in the next line belong to this one.
        let first = next;
        while next < tokens.len() && tokens[next].start < end {
            if tokens[next].end > end {
                end = style::line_end(text, tokens[next].end);
            }
            next += 1;
        }
        let code: Vec<_> = tokens[first..next]
            .iter()
            .filter(|t| t.kind != lex::TokenKind::Comment)
            .collect();
        let mut directive = None;
        if code.first().is_some_and(|t| t.text(text) == "#") {
            while text.get(..end).is_some_and(|t| t.ends_with('\\')) && end < text.len() {
                let begin = (end + 2).min(text.len());
                let begin = if text.is_char_boundary(begin) { begin } else { end + 1 };
                end = style::line_end(text, begin.max(end + 1).min(text.len()));
                while next < tokens.len() && tokens[next].start < end {
                    next += 1;
                }
            }
            let name = code.get(1).map_or("", |t| t.text(text));
            let rest = code.get(1).and_then(|t| text.get(t.end..end)).unwrap_or("");
            directive = Some((name, rest.trim()));
        }
        lines.push(Line {
            start: at,
            end,
            directive,
            code: directive.is_none() && !code.is_empty(),
        });
        let after = text.get(end..).unwrap_or("");
        let newline = if after.starts_with("\r\n") {
            2
        } else {
            after.len().min(1)
        };
        at = end + newline.max(1);
    }
    lines
}

/// The logical lines of a part of a text that begins and ends where no comment or literal is open.
fn logical_lines_in(text: &str, part: TextRange) -> impl Iterator<Item = Line<'_>> {
    let shift = part.start as usize;
    logical_lines(part.text(text)).into_iter().map(move |line| Line {
        start: line.start + shift,
        end: line.end + shift,
        ..line
    })
}

/// Makes `file` include a header of the system, `<name>`.
pub fn add_system_include(edit: &mut EditBuilder<'_>, file: SourceFile, name: &str) {
    let place = include_place(edit.db(), file);
    if place.included.iter().any(|written| written == name) {
        return;
    }
    let (at, insert) = place.line(&format!("#include <{name}>"), edit.style(file).newline);
    edit.insert_once(file, at as u32, insert);
}

/// Where in a file an `#include` line goes.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
struct IncludePlace {
    /// What is included in any case: under no `#if` but the include guard.
    included: Vec<String>,
    /// The offset.
    at: usize,
    /// What stands there.
    behind: Behind,
    /// How many directives come before.
    directives: u32,
    /// The same in front of all other directives: the offset, what stands there, how many directives come before.
    head: (usize, Behind, u32),
    /// In between, something is set for the system's headers.
    tuned: bool,
}

/// What an `#include` line is inserted behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
enum Behind {
    /// The last `#include` at the top.
    Include,
    /// The head of the file: its comment, `#pragma once`, the include guard.
    Head,
    /// Nothing.
    Nothing,
}

/// Where an `#include` line goes: every launch in the file asks for it.
#[salsa::tracked]
fn include_place(db: &dyn Db, file: SourceFile) -> IncludePlace {
    let text = file.text(db);
    let directives = file_directives(db, file);
    let has_directive = |range: TextRange| {
        let first = directives.partition_point(|d| d.start < range.start as usize);
        directives.get(first).is_some_and(|d| d.start < range.end as usize)
    };
    let mut lines = Vec::new();
    let mut at = 0;
    let end = TextRange::empty(text.len() as u32);
    for gap in gaps(db, file).iter().copied().chain([end]) {
        // A function is code, and mostly no directives stand in it.
        let functions = TextRange::new(at, gap.start);
        if has_directive(functions) {
            lines.extend(logical_lines_in(&text, functions));
        } else if functions.start < functions.end {
            lines.push(Line {
                start: functions.start as usize,
                end: functions.end as usize,
                directive: None,
                code: true,
            });
        }
        lines.extend(logical_lines_in(&text, gap));
        at = gap.end;
    }
    IncludePlace::of_lines(&text, &lines)
}

/// Where to insert the line that includes `path`, and the text to insert; `None` when it is there already.
pub fn insertion(text: &str, path: &str, newline: &str) -> Option<(usize, String)> {
    IncludePlace::of(text).insertion(path, newline)
}

/// The same in front of all other directives: where macros are in the way.
pub fn insertion_at_head(text: &str, path: &str, newline: &str) -> Option<(usize, String)> {
    IncludePlace::of(text).at_head().insertion(path, newline)
}

impl IncludePlace {
    /// In front of all other directives.
    fn at_head(self) -> IncludePlace {
        let (at, behind, directives) = self.head;
        IncludePlace {
            at,
            behind,
            directives,
            ..self
        }
    }

    /// Where to insert the line that includes the runtime header at `path`; `None` when it is there already.
    fn insertion(&self, path: &str, newline: &str) -> Option<(usize, String)> {
        let there = |written: &String| written == path || written.rsplit('/').next() == Some(HEADER_NAME);
        (!self.included.iter().any(there)).then(|| self.line(&format!("#include \"{path}\""), newline))
    }

    /// Where to insert a line, and the text to insert.
    fn line(&self, line: &str, newline: &str) -> (usize, String) {
        let insert = match self.behind {
            Behind::Include => format!("{newline}{line}"),
            Behind::Head => format!("{newline}{newline}{line}"),
            Behind::Nothing => format!("{line}{newline}{newline}"),
        };
        (self.at, insert)
    }

    fn of(text: &str) -> IncludePlace {
        IncludePlace::of_lines(text, &logical_lines(text))
    }

    fn of_lines(text: &str, lines: &[Line<'_>]) -> IncludePlace {
        let mut included = Vec::new();
        let guard = include_guard(lines);
        let base = i32::from(guard.is_some());
        let mut depth = 0;
        let mut after_include = None;
        let mut after_head = guard;
        let mut comment_only = true;
        let mut code_seen = false;
        for (index, line) in lines.iter().enumerate() {
            if line.code {
                code_seen = true;
                continue;
            }
            let Some((name, rest)) = line.directive else {
                // A comment at the very top that something other than an item follows is the file's own comment.
                if comment_only && !code_seen && guard.is_none() && line.start < line.end {
                    let followed_by_blank = lines
                        .get(index + 1)
                        .is_none_or(|l| l.start == l.end || l.directive.is_some());
                    if followed_by_blank && text.get(line.start..line.end).is_some_and(|t| !t.trim().is_empty()) {
                        after_head = Some(index);
                    }
                }
                continue;
            };
            match name {
                "if" | "ifdef" | "ifndef" => depth += 1,
                "endif" => depth -= 1,
                "include" => {
                    if depth == base {
                        included.push(rest.trim_matches(['"', '<', '>']).to_owned());
                    }
                    if depth == base && !code_seen {
                        after_include = Some(index);
                    }
                }
                "pragma" if rest == "once" && !code_seen => after_head = Some(index),
                _ => {}
            }
            comment_only = false;
        }
        let count = |at: usize| lines.iter().filter(|l| l.directive.is_some() && l.end <= at).count() as u32;
        // What comes behind an include or a definition isn't the head.
        let first = |l: &Line<'_>| matches!(l.directive, Some(("include" | "define", _)));
        let start = guard.map_or(0, |index| index + 1);
        let first = lines.iter().skip(start).position(first).map(|at| at + start);
        let head = match after_head.filter(|index| first.is_none_or(|first| *index < first)) {
            Some(index) => (lines[index].end, Behind::Head),
            None => (if text.starts_with('\u{feff}') { 3 } else { 0 }, Behind::Nothing),
        };
        let (at, behind) = match (after_include, after_head) {
            (Some(index), _) => (lines[index].end, Behind::Include),
            (None, Some(index)) => (lines[index].end, Behind::Head),
            (None, None) => head,
        };
        let tuned = lines.iter().filter(|l| head.0 < l.end && l.start < at).any(|l| {
            let name = l
                .directive
                .filter(|d| matches!(d.0, "define" | "undef"))
                .map_or("", |d| d.1);
            name.starts_with('_')
                || ["NDEBUG", "CCCL_", "CUDA_", "CUB_", "THRUST_"]
                    .iter()
                    .any(|p| name.starts_with(p))
        });
        IncludePlace {
            included,
            at,
            behind,
            directives: count(at),
            head: (head.0, head.1, count(head.0)),
            tuned,
        }
    }
}

/// The index of the `#define` line of an include guard around the whole file.
fn include_guard(lines: &[Line<'_>]) -> Option<usize> {
    let mut directives = lines.iter().enumerate().filter(|(_, l)| l.directive.is_some());
    let (first, opening) = directives.next()?;
    let (second, define) = directives.next()?;
    let (("ifndef", name), ("define", rest)) = (opening.directive?, define.directive?) else {
        return None;
    };
    if rest.split_whitespace().next() != Some(name) || lines[..second].iter().any(|l| l.code) || second < first {
        return None;
    }
    let mut depth = 0;
    for (index, line) in lines.iter().enumerate() {
        match line.directive.map(|d| d.0) {
            Some("if" | "ifdef" | "ifndef") => depth += 1,
            Some("else" | "elif") if depth == 1 => return None,
            Some("endif") => {
                depth -= 1;
                if depth == 0 {
                    return (!lines[index + 1..].iter().any(|l| l.code || l.directive.is_some())).then_some(second);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inserted(text: &str) -> String {
        match insertion(text, "gridfuse.cuh", "\n") {
            Some((at, insert)) => format!("{}{insert}{}", &text[..at], &text[at..]),
            None => text.to_owned(),
        }
    }

    /// A file is read function by function: that finds the same place as reading all of it.
    #[test]
    fn functions_need_not_be_read() {
        let texts = [
            "// a\n#include <a>\n\nvoid f() {\n    int x;\n}\n#include \"late.inc\"\nint y;\n",
            "#ifndef A\n#define A\n// b\nvoid f() {\n#if X\n#include \"in.inc\"\n#endif\n}\n  int g() { return 1; } // c\n#endif\n",
            "// License.\n\n// About f.\nvoid f() { g(); }\n#include <b>\n",
            "// About f.\nvoid f() {}\n",
            "void f() {}",
            "",
        ];
        for text in texts {
            let mut host = gridfuse_analysis::host::Host::new();
            let file = host.set_file(Path::new("/a.cu"), text);
            assert_eq!(*include_place(host.db(), file), IncludePlace::of(text), "{text}");
        }
    }

    #[test]
    fn behind_the_last_include_of_the_top() {
        assert_eq!(
            inserted("// a\n#include <a>\n#include <b> // c\n\nint x;\n#include \"late.inc\"\n"),
            "// a\n#include <a>\n#include <b> // c\n#include \"gridfuse.cuh\"\n\nint x;\n#include \"late.inc\"\n"
        );
        assert_eq!(
            inserted("#include <a>\n#ifdef X\n#include <b>\n#endif\nint x;\n"),
            "#include <a>\n#include \"gridfuse.cuh\"\n#ifdef X\n#include <b>\n#endif\nint x;\n"
        );
        assert_eq!(
            inserted("\u{feff}#include <a>\nint x;\n"),
            "\u{feff}#include <a>\n#include \"gridfuse.cuh\"\nint x;\n"
        );
    }

    #[test]
    fn not_twice() {
        let text = "#include <a>\n#include \"sub/gridfuse.cuh\"\nint x;\n";
        assert_eq!(inserted(text), text);
    }

    #[test]
    fn without_includes() {
        assert_eq!(inserted("int x;\n"), "#include \"gridfuse.cuh\"\n\nint x;\n");
        assert_eq!(
            inserted("// License.\n\n// About x.\nint x;\n"),
            "// License.\n\n#include \"gridfuse.cuh\"\n\n// About x.\nint x;\n"
        );
        assert_eq!(
            inserted("// About x.\nint x;\n"),
            "#include \"gridfuse.cuh\"\n\n// About x.\nint x;\n"
        );
        assert_eq!(
            inserted("/* a\n b */\n#pragma once\nint x;\n"),
            "/* a\n b */\n#pragma once\n\n#include \"gridfuse.cuh\"\nint x;\n"
        );
        assert_eq!(
            inserted("#ifndef A\n#define A\n#include <b>\nint x;\n#endif\n"),
            "#ifndef A\n#define A\n#include <b>\n#include \"gridfuse.cuh\"\nint x;\n#endif\n"
        );
        assert_eq!(
            inserted("#ifndef A\n#define A\nint x;\n#endif\n"),
            "#ifndef A\n#define A\n\n#include \"gridfuse.cuh\"\nint x;\n#endif\n"
        );
        assert_eq!(inserted(""), "#include \"gridfuse.cuh\"\n\n");
    }

    #[test]
    fn carriage_returns_and_continuations() {
        let text = "#include <a>\r\n#define A \\\r\n  1\r\nint x;\r\n";
        let (at, insert) = insertion(text, "gridfuse.cuh", "\r\n").unwrap_or_default();
        assert_eq!((at, insert.as_str()), (12, "\r\n#include \"gridfuse.cuh\""));
    }

    #[test]
    fn what_becomes_of_a_header() {
        let parts = PartSet::of(|part| part.name == "coarsen");
        let more = PartSet::of(|part| part.name == "threshold");
        let there = |version, is_intact| Installed {
            version,
            parts,
            is_intact,
        };
        assert_eq!(provided(&there(1, true), parts, 1), Provided::There);
        assert_eq!(provided(&there(1, false), parts, 1), Provided::There);
        assert_eq!(provided(&there(1, true), more, 1), Provided::Anew(parts.with(more)));
        // Older: written anew, with what it had.
        assert_eq!(provided(&there(1, true), parts, 2), Provided::Anew(parts));
        assert_eq!(provided(&there(1, true), more, 2), Provided::Anew(parts.with(more)));
        for (refused, reason) in [
            (provided(&there(1, false), more, 1), "delete it, and it's written anew"),
            (
                provided(&there(1, false), parts, 2),
                "version 1, this gridfuse writes version 2, and somebody has",
            ),
            (provided(&there(0, true), parts, 1), "of an older version"),
            (provided(&there(2, true), parts, 1), "update gridfuse"),
        ] {
            assert!(
                matches!(&refused, Provided::Refused(text) if text.contains(reason)),
                "{reason}: {refused:?}"
            );
        }
    }

    #[test]
    fn relative_paths() {
        let show = |from: &str, to: &str| relative(Path::new(from), Path::new(to));
        assert_eq!(show("/p/src", "/p/src/gridfuse.cuh"), "gridfuse.cuh");
        assert_eq!(show("/p/app", "/p/src/gridfuse.cuh"), "../src/gridfuse.cuh");
        assert_eq!(show("/p", "/p/src/gridfuse.cuh"), "src/gridfuse.cuh");
    }
}
