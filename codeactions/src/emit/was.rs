//! What a launch was, as a comment above the line of the code that has taken its place: `// was: child<<<1, 32, 0, stream>>>(out)`. It is
//! written where that code doesn't say, so that `revert` knows, and so does the next reader.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::facts::launch::Child as Launched;
use gridfuse_analysis::hir::StmtId;

use crate::api::refusal::Reason;
use crate::edit::builder::EditBuilder;
use crate::edit::one_line::flat;
use crate::edit::style::{self, Style};
use crate::facts::instance;
use crate::facts::site::Site;

/// What the grid of a launch begins with that a rewrite has written.
pub const COARSENED: &str = "gridfuse::coarsened";

/// What begins a note.
const FIRST: &str = "// was: ";
/// What begins a note among other code.
const INLINE: &str = "/* was: ";
/// What ends it.
const INLINE_END: &str = " */";

/// The statement that a comment among other code says was there.
pub fn inline(comment: &str) -> Option<&str> {
    comment.strip_prefix(INLINE)?.strip_suffix(INLINE_END)
}

/// What begins another line of the launch.
const NEXT: &str = "//    : ";
/// What begins the rest of a line that is too wide for one.
const REST: &str = "//      ";

/// Notes what a launch is that comes to be replaced.
pub fn note(site: &Site<'_>, edit: &mut EditBuilder<'_>) {
    let source = site.source(site.facts.span);
    let start = site.here().range.start as usize;
    let (line, indent) = (
        style::line_start(&site.text, start),
        style::indent_at(&site.text, start),
    );
    // On the line of a kernel's head, which is broken there perhaps, a note would be lost.
    let head = site.parent.body_span(site.db).start + site.start;
    let in_head = line <= head as usize && site.parent.signature(site.db).kernel;
    if site.facts.from_macro || joins_lines(source) || in_head {
        return;
    }
    let code = lines(source, &edit.style(site.file), indent);
    edit.insert_directly(site.file, (line + indent.len()) as u32, &code);
}

/// Deletes a statement, and notes what it was where it has lines of its own.
pub fn delete(site: &Site<'_>, statement: StmtId, edit: &mut EditBuilder<'_>) {
    let mut place = site.place(site.body.stmt(statement).span);
    let behind = site.text.get(place.range.end as usize..).unwrap_or("");
    let gap = behind.len() - behind.trim_start().len();
    // A macro's use ends before its semicolon.
    if place.range.text(&site.text).ends_with(')') && behind.trim_start().starts_with(';') {
        place.range.end += gap as u32 + 1;
    }
    let source = place.range.text(&site.text);
    let (start, end) = (place.range.start as usize, place.range.end as usize);
    let (first, last) = style::whole_lines(&site.text, start, end);
    let indent = style::indent_at(&site.text, start);
    let alone = first + indent.len() == start
        && site
            .text
            .get(end..last)
            .is_some_and(|rest| rest.trim().is_empty() && rest.ends_with('\n'));
    if !alone || joins_lines(source) {
        // Where other code stands in the line, so does the note; and a backslash at the end of a line does no harm in it.
        if source.contains("*/") {
            let text = "what stands there with a comment in it can't be removed so that it can be put back; take the comment away";
            edit.refuse(Reason {
                text: text.to_owned(),
                place: Some(place),
            });
        }
        edit.replace(place, format!("{INLINE}{source}{INLINE_END}"));
        return;
    }
    let style = edit.style(site.file);
    let code = style.fit(&lines(source, &style, indent), indent);
    let range = TextRange::new(start as u32, last as u32);
    edit.replace(FileRange { range, ..place }, code);
}

/// A backslash at the end of a line would make the next one a part of the comment.
fn joins_lines(source: &str) -> bool {
    source.lines().any(|line| line.trim_end().ends_with('\\'))
}

/// The lines of a note, as generated code.
pub fn lines(source: &str, style: &Style, indent: &str) -> String {
    let room = style.width.saturating_sub(style::columns(indent) + FIRST.len());
    let mut code = String::new();
    for (number, line) in source.lines().enumerate() {
        let mut begin = if number == 0 { FIRST } else { NEXT };
        for piece in pieces(line, room) {
            code.push_str(&format!("{begin}{piece}\n"));
            begin = REST;
        }
    }
    code
}

/// The same unless that can be told from what takes the launch's place, which says this configuration.
pub fn note_unless_plain(site: &Site<'_>, config: &[String], edit: &mut EditBuilder<'_>) {
    let arguments: Vec<String> = site
        .launch
        .args
        .iter()
        .map(|arg| flat(site.expr_source(*arg)))
        .collect();
    let written = site.launch.template_args.map_or("", |arguments| site.source(arguments));
    let name = format!("{}{written}", site.source(site.launch.name_span));
    let here = site.here().range;
    // What takes its place has template arguments that are deduced here.
    let deduces = matches!(site.facts.child, Launched::Kernel(child) if instance::deduces(site, child));
    if deduces
        || site.source(site.facts.span) != plain(&site.text, here, &edit.style(site.file), &name, config, &arguments)
    {
        note(site, edit);
    }
}

/// A launch as it looks where no note says otherwise: on one line, or as a rewrite has written it.
pub fn plain(
    text: &str,
    range: TextRange,
    style: &Style,
    name: &str,
    config: &[String],
    arguments: &[String],
) -> String {
    if config.first().is_some_and(|grid| grid.starts_with(COARSENED)) {
        return laid_out(text, range, style, name, config, arguments);
    }
    format!("{name}<<<{}>>>({})", config.join(", "), arguments.join(", "))
}

/// A launch as rewrites write it in place of a part of a text.
pub fn laid_out(
    text: &str,
    range: TextRange,
    style: &Style,
    name: &str,
    config: &[String],
    arguments: &[String],
) -> String {
    let (start, end) = (range.start as usize, range.end as usize);
    let before = text.get(style::line_start(text, start)..start).unwrap_or("");
    // As much stands behind it in its line.
    let rest = text.get(end..style::line_end(text, end)).unwrap_or("").trim_end();
    let close = format!("){rest}");
    let indent = style::indent_at(text, start);
    let first = before.chars().count() - indent.chars().count();
    let column = style::columns(indent) + first;
    // Aligned with the statement, wherever it begins in its line; or else indented once.
    let broken = |code: &str| {
        let breaks_first = code.lines().next().is_some_and(|line| line.ends_with(['(', '<']));
        let align = " ".repeat(if breaks_first { 0 } else { first });
        code.replace('\n', &format!("{}{indent}{align}", style.newline))
    };
    let head = style.list(column, &format!("{name}<<<"), config, ">>>(");
    if head.contains('\n') {
        let list = style.list(style::columns(indent) + 4, "", arguments, &close);
        let list = list.strip_suffix(rest).unwrap_or(&list);
        return broken(&head) + &format!("\n{list}").replace('\n', &format!("{}{indent}    ", style.newline));
    }
    let list = style.list(column, &head, arguments, &close);
    broken(list.strip_suffix(rest).unwrap_or(&list))
}

/// A line in pieces of at most so many characters, where spaces allow it: a space stood between any two of them.
fn pieces(line: &str, room: usize) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = line;
    while rest.chars().count() > room {
        let begins = rest.len() - rest.trim_start().len();
        let fits = |at: &usize| rest.get(..*at).is_some_and(|piece| piece.chars().count() <= room);
        let spaces = || rest.match_indices(' ').map(|(at, _)| at).filter(|at| *at > begins);
        // After a comma, if there is one in the second half.
        let ends_item = |at: &usize| rest.get(..*at).is_some_and(|piece| piece.ends_with(',')) && *at > room / 2;
        let last = spaces().filter(fits).rfind(ends_item);
        let Some(at) = last.or_else(|| spaces().rfind(fits)).or_else(|| spaces().next()) else {
            break;
        };
        found.push(&rest[..at]);
        rest = &rest[at + 1..];
    }
    found.push(rest);
    found
}

/// A note, read back.
#[derive(Debug, PartialEq, Eq)]
pub struct Note {
    /// The launch.
    pub launch: String,
    /// The lines of the note.
    pub lines: TextRange,
}

/// The notes above the line with a place of a text.
pub fn above(text: &str, at: usize) -> Vec<Note> {
    let mut lines = Vec::new();
    let mut end = style::line_start(text, at);
    while end > 0 {
        let start = style::line_start(text, end - 1);
        let line = text.get(start..end).unwrap_or("");
        let code = line.trim_end_matches(['\n', '\r']).trim_start();
        if ![FIRST, NEXT, REST].iter().any(|begin| code.starts_with(begin)) {
            break;
        }
        lines.push((start, end, code));
        end = start;
    }
    if lines.is_empty() {
        return Vec::new();
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut notes: Vec<Note> = Vec::new();
    for (start, end, code) in lines.into_iter().rev() {
        let (begin, code) = code.split_at(FIRST.len());
        if begin == FIRST {
            notes.push(Note {
                launch: code.to_owned(),
                lines: TextRange::new(start as u32, end as u32),
            });
        } else if let Some(note) = notes.last_mut() {
            note.launch.push_str(if begin == NEXT { newline } else { " " });
            note.launch.push_str(code);
            note.lines = TextRange::new(note.lines.start, end as u32);
        }
    }
    notes
}

impl Note {
    /// It is of a launch, not of another statement.
    pub fn is_launch(&self) -> bool {
        self.kernel().is_some()
    }

    /// How many parts the launch's configuration has: grid, block, shared memory, stream.
    pub fn config_len(&self) -> Option<usize> {
        let dense: String = self.launch.split_whitespace().collect();
        let (_, rest) = dense.split_once("<<<")?;
        let (config, _) = rest.split_once(">>>")?;
        let mut depth = 0i32;
        let between = config.chars().filter(|c| {
            depth += i32::from(matches!(c, '(' | '[' | '{')) - i32::from(matches!(c, ')' | ']' | '}'));
            *c == ',' && depth == 0
        });
        Some(between.count() + 1)
    }

    /// The kernel that is launched.
    pub fn kernel(&self) -> Option<String> {
        let dense: String = self.launch.split_whitespace().collect();
        let (name, _) = dense.split_once("<<<")?;
        let name = name.split(['<', '/']).next().unwrap_or(name);
        Some(name.rsplit("::").next().unwrap_or(name).to_owned())
    }
}

/// The notes in a part of a text.
pub fn in_range(text: &str, range: TextRange) -> Vec<Note> {
    let mut found: Vec<Note> = Vec::new();
    if !range.text(text).contains(FIRST) {
        return found;
    }
    let mut end = range.end as usize;
    while end > range.start as usize {
        let start = style::line_start(text, end);
        let notes = above(text, start);
        end = notes
            .first()
            .map_or(start, |first| first.lines.start as usize)
            .min(start)
            .saturating_sub(1);
        found.splice(0..0, notes);
    }
    found.retain(|note| range.contains(note.lines));
    found
}

/// The note of a kernel's launch above the line with a place of a text.
pub fn of_kernel(text: &str, at: usize, kernel: &str) -> Option<Note> {
    above(text, at)
        .into_iter()
        .find(|note| note.kernel().as_deref() == Some(kernel))
}

#[cfg(test)]
mod tests {
    use super::{above, pieces};

    #[test]
    fn what_is_noted_is_read_back() {
        assert_eq!(pieces("a b c", 9), ["a b c"]);
        assert_eq!(pieces("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(pieces("   aaaa b", 4), ["   aaaa", "b"]);
        assert_eq!(pieces("f(aa, b + c)", 9), ["f(aa,", "b + c)"]);
        let text = "  // Mine.\n  // was: f<<<1, 2>>>(a,\n  //    :        b,\n  //      c)\n  // was: g<<<1, 2>>>()\n  fs.launch();\n";
        let notes = above(text, text.find("fs.").unwrap_or_default());
        let launches: Vec<&str> = notes.iter().map(|note| note.launch.as_str()).collect();
        assert_eq!(launches, ["f<<<1, 2>>>(a,\n       b, c)", "g<<<1, 2>>>()"]);
        assert!(above("// Mine.\nf();\n", 9).is_empty());
        assert_eq!(notes[0].config_len(), Some(2));
        let dims = "// was: f<<<dim3(1, 2), g[a, b], 0, s>>>(a)\nfs.launch();\n";
        assert_eq!(above(dims, dims.len() - 3)[0].config_len(), Some(4));
    }
}
