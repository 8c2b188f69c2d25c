//! Pieces of Markdown: cells of tables, code, links.

use std::path::Path;

use gridfuse_analysis::base::place::FileRange;

use super::state::Snapshot;
use crate::describe::{Describe, placed};
use crate::line_index::line_index;
use crate::schema::{Note, Place};

/// Longer code in a cell is cut.
const MAX_CODE_CHARS: usize = 60;

/// Width to which [`aligned`] fits tables.
const MAX_COLUMNS: usize = 96;

/// The last column is never broken into shorter lines than these.
const MIN_LAST_COLUMN: usize = 24;

/// Code in a table's cell.
pub fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let short: String = if text.chars().count() > MAX_CODE_CHARS {
        text.chars().take(MAX_CODE_CHARS - 1).chain(['…']).collect()
    } else {
        text.to_string()
    };
    format!("`{}`", short.replace('`', "'").replace('|', "\\|"))
}

/// Words in a table's cell.
pub fn words(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// `line 7`, or `other.cuh:7` in another file than `home`, as a link where the place has a URI.
pub fn link(place: &Place, home: &str) -> String {
    let line = place.start.line;
    let name = place.path.rsplit('/').next().unwrap_or_default();
    let shown = if place.path == home {
        format!("line {line}")
    } else {
        format!("{name}:{line}")
    };
    if place.path.contains("://") {
        format!("[{shown}]({}#L{line})", place.path)
    } else {
        shown
    }
}

/// A statement with the link to its place.
pub fn note(note: &Note, home: &str) -> String {
    match &note.place {
        Some(place) => placed(&words(&note.text), &link(place, home)),
        None => words(&note.text),
    }
}

/// A table with these rows; nothing when there are none.
pub fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let header: Vec<String> = header.iter().map(|cell| (*cell).to_string()).collect();
    let mut out = line(&header);
    out.push_str(&format!("|{}\n", "---|".repeat(header.len())));
    for row in rows {
        out.push_str(&line(row));
    }
    out
}

/// The same text with its tables as aligned columns, for editors that show tables as they are written.
pub fn aligned(text: &str) -> String {
    let mut out = String::new();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.starts_with("```");
        if !in_code && line.starts_with('|') {
            rows.push(cells(line));
            continue;
        }
        out.push_str(&columns(std::mem::take(&mut rows)));
        out.push_str(line);
        out.push('\n');
    }
    out.push_str(&columns(rows));
    out
}

/// The same text without marks, its tables as aligned columns, for clients that show no Markdown. Backquotes stay: they tell names from words.
pub fn plain_text(text: &str) -> String {
    let mut out = String::new();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut in_code = false;
    let mut line_of = |line: &str| {
        // One empty line is enough.
        if !line.is_empty() || !out.is_empty() && !out.ends_with("\n\n") {
            out.push_str(line);
            out.push('\n');
        }
    };
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
            continue;
        }
        if !in_code && line.starts_with('|') {
            rows.push(cells(line));
            continue;
        }
        lines_of_columns(std::mem::take(&mut rows))
            .iter()
            .for_each(|row| line_of(row));
        match line.trim_end() {
            code if in_code => line_of(&format!("    {code}")),
            "---" => line_of(""),
            prose => line_of(&unmarked(prose)),
        }
    }
    lines_of_columns(rows).iter().for_each(|row| line_of(row));
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// A line of prose without emphasis and links.
fn unmarked(line: &str) -> String {
    let line = line.trim_start_matches('#').trim_start();
    let emphasized = line.strip_prefix('*').filter(|rest| !rest.starts_with(['*', ' ']));
    let line = match emphasized.and_then(|rest| rest.split_once('*')) {
        Some((name, rest)) => format!("{name}{rest}"),
        None => line.to_owned(),
    };
    // Every other part is code.
    let parts = line.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => without_links(&part.replace("**", "").replace("\\|", "|")),
        _ => part.replace("\\|", "|"),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// The cells of a table's row, without marks.
fn cells(line: &str) -> Vec<String> {
    // Not a bar that belongs to a cell.
    let line = line.replace("\\|", "\u{1}");
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner
        .split('|')
        .map(|cell| plain(cell.trim()).replace('\u{1}', "|"))
        .collect()
}

/// Text without links, and without marks for code and emphasis.
fn plain(cell: &str) -> String {
    let emphasized = cell.strip_prefix('*').and_then(|cell| cell.strip_suffix('*'));
    // Every other part is code.
    let parts = emphasized.unwrap_or(cell).split('`').enumerate();
    parts
        .map(|(at, part)| match at % 2 {
            0 => without_links(part),
            _ => part.to_owned(),
        })
        .collect()
}

fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](")
        && let Some((before, shown)) = before.rsplit_once('[')
        && let Some((_, behind)) = after.split_once(')')
    {
        out.push_str(before);
        out.push_str(shown);
        rest = behind;
    }
    out + rest
}

/// Rows as lines of a block.
fn columns(rows: Vec<Vec<String>>) -> String {
    match lines_of_columns(rows) {
        none if none.is_empty() => String::new(),
        lines => format!("```text\n{}\n```\n", lines.join("\n")),
    }
}

/// Rows as lines; the last column is broken into lines.
fn lines_of_columns(mut rows: Vec<Vec<String>>) -> Vec<String> {
    rows.retain(|row| !row.iter().all(|cell| cell.chars().all(|c| c == '-')));
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<(usize, usize)> = (0..count).map(|at| (at, width(at))).filter(|(_, w)| *w > 0).collect();
    let Some((&(last, _), before)) = widths.split_last() else {
        return Vec::new();
    };
    let left: usize = before.iter().map(|(_, width)| width + 2).sum();
    let all = MAX_COLUMNS.saturating_sub(left).max(MIN_LAST_COLUMN);
    let mut out = Vec::new();
    // A header without words says nothing.
    for row in rows.iter().filter(|row| row.iter().any(|cell| !cell.is_empty())) {
        let cell = |column: usize| row.get(column).map_or("", String::as_str);
        let mut line: String = before
            .iter()
            .map(|&(column, width)| format!("{:width$}  ", cell(column)))
            .collect();
        let mut room = all;
        for word in cell(last).split(' ') {
            let length = word.chars().count() + 1;
            if length > room && room < all {
                out.push(line.trim_end().to_owned());
                line = " ".repeat(left);
                room = all;
            }
            line.push_str(word);
            line.push(' ');
            room = room.saturating_sub(length);
        }
        out.push(line.trim_end().to_owned());
    }
    out
}

/// The line on which a place begins, as a block of code.
pub fn source_line(snapshot: &Snapshot, place: FileRange) -> String {
    let text = place.file.text(&snapshot.db);
    let index = line_index(&snapshot.db, place.file);
    let (line, _) = index.line(place.range.start);
    let content = index
        .content(&text, line)
        .and_then(|(start, end)| text.get(start as usize..end as usize));
    fenced(content.unwrap_or_default().trim())
}

/// A block of CUDA.
pub fn fenced(code: &str) -> String {
    format!("```cuda\n{code}\n```\n")
}

/// Runs `f` with a describer whose paths are URIs, as the client spells them.
pub fn describe<R>(snapshot: &Snapshot, f: impl FnOnce(&Describe<'_>) -> R) -> R {
    let uri = |path: &Path| {
        let uri = snapshot.uri(path);
        uri.map_or_else(|| path.display().to_string(), |uri| uri.as_str().to_string())
    };
    f(&Describe {
        db: &snapshot.db,
        path: &uri,
        is_untouched: &|edit| snapshot.is_untouched(edit),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_the_table_whole() {
        assert_eq!(code("a || b"), "`a \\|\\| b`");
        assert_eq!(words("a | b\nc"), "a \\| b c");
        assert_eq!(code(&"x".repeat(70)).chars().count(), 62);
        assert_eq!(table(&["a", "b"], &[]), "");
        let row = vec!["1".to_string(), "2".to_string()];
        assert_eq!(table(&["a", "b"], &[row]), "| a | b |\n|---|---|\n| 1 | 2 |\n");
    }

    #[test]
    fn tables_become_columns() {
        let text = r#"**launch**

|  |  |
|---|---|
| *reached* | varying ([line 4](file:///a.cu#L4)) |

| | value | why |
|---|---|---|
| `a` | `x[0](y) \|\| y` |  |
| *block* | 128 |  |

```cuda
| not one |
```
"#;
        let wanted = r#"**launch**

```text
reached  varying (line 4)
```

```text
       value         why
a      x[0](y) || y
block  128
```

```cuda
| not one |
```
"#;
        assert_eq!(aligned(text), wanted);
        let plain = "launch

reached  varying (line 4)

       value         why
a      x[0](y) || y
block  128

    | not one |
";
        assert_eq!(plain_text(text), plain);
        let long = format!("| a | {} |\n", "word ".repeat(40));
        let lines = aligned(&long);
        assert!(lines.lines().all(|line| line.len() <= MAX_COLUMNS), "{lines}");
        assert_eq!(lines.matches("word").count(), 40);
        assert!(
            lines.lines().nth(2).is_some_and(|line| line.starts_with("   word")),
            "{lines}"
        );
        for odd in [
            "",
            "|",
            "||",
            "| [a | b](c |",
            "|---|",
            "| `a | \n|",
            "*",
            "**",
            "```",
            "* a",
        ] {
            aligned(odd);
            plain_text(odd);
        }
    }

    #[test]
    fn prose_without_marks() {
        let text = "**launch of `k`** ([line 4](file:///a.cu#L4)) in `p`\n\n\n---\n\n*Measured*: **2 x** of `a ** b \\| c`  \n(1) `a[i](j)` may change";
        let plain = "launch of `k` (line 4) in `p`\n\nMeasured: 2 x of `a ** b | c`\n(1) `a[i](j)` may change\n";
        assert_eq!(plain_text(text), plain);
    }
}
