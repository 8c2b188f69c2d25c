//! How the user formats a file: newline, indentation, line width, where braces go. Inserted code follows it.

use gridfuse_analysis::base::db::{Db, SourceFile};

use crate::edit::lex;

/// The formatting habits of one file.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Style {
    /// `\n` or `\r\n`.
    pub newline: &'static str,
    /// One level of indentation: a tab, or some spaces.
    pub unit: String,
    /// Columns that inserted lines should stay within, however long the file's own are.
    pub width: usize,
    /// The brace of a function body stands on a line of its own.
    pub brace_on_own_line: bool,
}

/// Bytes of a file that are looked at.
const READ: usize = 1 << 16;

/// The formatting habits of a file.
#[salsa::tracked]
pub fn style_of(db: &dyn Db, file: SourceFile) -> Style {
    let text = file.text(db);
    // The habits of a long file are seen at its beginning.
    let end = (0..=READ.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    Style::of(text.get(..end.unwrap_or(0)).unwrap_or(&text))
}

impl Style {
    /// The habits that `text` shows.
    pub fn of(text: &str) -> Style {
        let crlf = text.matches("\r\n").count();
        let newline = if crlf * 2 > text.matches('\n').count() {
            "\r\n"
        } else {
            "\n"
        };
        let mut tabs = 0;
        let mut steps = [0usize; 9];
        let mut before = 0;
        let mut longest = 0;
        let mut own_line = 0;
        let mut same_line = 0;
        let mut previous = "";
        for line in text.lines() {
            longest = longest.max(line.chars().count());
            let rest = line.trim_start_matches([' ', '\t']);
            if rest.is_empty() {
                continue;
            }
            let indent = &line[..line.len() - rest.len()];
            if indent.contains('\t') {
                tabs += 1;
            } else if !rest.starts_with('*') {
                let spaces = indent.len();
                if spaces > before && spaces - before <= 8 {
                    // Continuation lines are aligned to anything; lines behind an opening brace are indented by a unit.
                    if previous.ends_with('{') {
                        steps[spaces - before] += 8;
                    } else if previous.ends_with(')') {
                        steps[spaces - before] += 2;
                    }
                }
                before = spaces;
            }
            // Functions more than statements: what isn't indented counts most.
            let weight = if indent.is_empty() { 100 } else { 1 };
            if rest.trim_end() == "{" && previous.ends_with(')') {
                own_line += weight;
            } else if rest.trim_end().ends_with(") {") || rest.trim_end().ends_with("){") {
                same_line += weight;
            }
            previous = rest.trim_end();
        }
        let indented: usize = steps.iter().sum();
        let unit = if tabs * 8 > indented {
            "\t".to_owned()
        } else {
            let best = (1..=8).rev().max_by_key(|n| steps[*n]).filter(|n| steps[*n] > 0);
            " ".repeat(best.unwrap_or(4))
        };
        Style {
            newline,
            unit,
            width: if longest <= 80 && text.lines().count() >= 60 {
                80
            } else {
                100
            },
            brace_on_own_line: own_line > same_line,
        }
    }

    /// Text generated with `\n` and a tab for each level, as it is inserted into the file at a line indented by `indent`:
    /// every line but the first gets `indent` in front.
    pub fn fit(&self, generated: &str, indent: &str) -> String {
        let mut out = String::new();
        for (number, line) in generated.split('\n').enumerate() {
            let rest = line.trim_start_matches('\t');
            if number > 0 {
                out.push_str(self.newline);
                if !rest.is_empty() {
                    out.push_str(indent);
                }
            }
            if !rest.is_empty() {
                out.push_str(&self.unit.repeat(line.len() - rest.len()));
                out.push_str(rest);
            }
        }
        out
    }

    /// What stands between the parameter list of a generated function and the code of its body.
    pub fn open_brace(&self) -> &'static str {
        if self.brace_on_own_line { "\n{" } else { " {" }
    }

    /// `prefix`, a declaration, `suffix`; where the line would be wider than the file's, with the template arguments of its type on lines of
    /// their own. It begins at `column`, and further lines are indented behind the indentation of the first.
    pub fn declaration(&self, column: usize, prefix: &str, declaration: &str, suffix: &str) -> String {
        let line = format!("{prefix}{declaration}{suffix}");
        match in_angles(declaration).filter(|_| column + line.chars().count() > self.width) {
            Some((open, parts, close)) => {
                self.list(column, &format!("{prefix}{open}"), &parts, &format!("{close}{suffix}"))
            }
            None => line,
        }
    }

    /// `prefix`, the items separated by commas, `suffix`; broken into several lines, aligned behind the prefix, where it would
    /// be wider than the file's lines when indented by `column` columns. An item that is wider itself is broken where it is a list.
    /// `prefix` may not hold a newline.
    pub fn list(&self, column: usize, prefix: &str, items: &[String], suffix: &str) -> String {
        if column + prefix.chars().count() > self.width
            && let Some((open, parts, close)) = in_angles(prefix)
        {
            // The template arguments below each other, and then the items.
            let head = self.list(column, open, &parts, close);
            let rest = self.list(column + 4, "", items, suffix);
            return format!("{head}\n    {}", rest.replace('\n', "\n    "));
        }
        let start = column + prefix.chars().count();
        let last_line = suffix.split('\n').next().unwrap_or("").chars().count();
        let total: usize = items.iter().map(|i| i.chars().count() + 2).sum();
        let mut out = prefix.to_owned();
        if start + total.saturating_sub(2) + last_line <= self.width {
            out.push_str(&items.join(", "));
        } else {
            // The continuation is indented with spaces behind the indentation of the first line.
            let mut align = " ".repeat(prefix.chars().count());
            let mut at = start;
            let widest = items.iter().map(|item| item.chars().count() + 1).max().unwrap_or(0);
            let narrow = prefix.chars().count() * 2 > self.width || start + widest > self.width;
            if narrow && align.len() > 4 && !items.is_empty() {
                align = " ".repeat(4);
                out.push('\n');
                out.push_str(&align);
                at = column + 4;
            }
            let start = column + align.len();
            for (index, item) in items.iter().enumerate() {
                let tail = if index + 1 == items.len() { last_line } else { 1 };
                let len = item.chars().count();
                if index > 0 {
                    if at + 2 + len + tail > self.width {
                        out.push_str(",\n");
                        out.push_str(&align);
                        at = start;
                    } else {
                        out.push_str(", ");
                        at += 2;
                    }
                }
                match parted(item).filter(|_| at == start && at + len + tail > self.width) {
                    Some((open, parts, close)) => {
                        let last = if index + 1 == items.len() { suffix } else { "," };
                        let last = last.split('\n').next().unwrap_or("");
                        let list = self.list(at, open, &parts, &format!("{close}{last}"));
                        let list = list.strip_suffix(last).unwrap_or(&list);
                        at += list.rsplit('\n').next().unwrap_or(list).chars().count();
                        out.push_str(&list.replace('\n', &format!("\n{align}")));
                    }
                    None => {
                        out.push_str(item);
                        at += len;
                    }
                }
            }
        }
        out.push_str(suffix);
        out
    }
}

/// A piece of code that ends with a list in brackets, or declares something of a template's type: what stands in front of the list's items,
/// they themselves, and what stands behind them, from the bracket on. `None` where there is no such list, or nothing in it.
fn parted(code: &str) -> Option<(&str, Vec<String>, &str)> {
    let tokens = lex::code_tokens(code);
    match tokens.last()?.text(code) {
        ")" | "}" => items_of(code, &tokens, false),
        _ => in_angles(code),
    }
}

/// The same of a declaration of something of a template's type, `X<A, B>& name`, or of a call of a template up to its bracket, `x<A, B>(`.
fn in_angles(code: &str) -> Option<(&str, Vec<String>, &str)> {
    let tokens = lex::code_tokens(code);
    let behind = |token: &lex::Token| token.kind == lex::TokenKind::Word || matches!(token.text(code), "&" | "(");
    let end = tokens.len() - tokens.iter().rev().take_while(|token| behind(token)).count();
    let ends = end < tokens.len() && end > 0 && tokens[end - 1].text(code) == ">";
    items_of(code, tokens.get(..end)?, true).filter(|_| ends)
}

/// The same of tokens, the last of which ends the list; `angles`: in angle brackets.
fn items_of<'a>(code: &'a str, tokens: &[lex::Token], angles: bool) -> Option<(&'a str, Vec<String>, &'a str)> {
    let last = tokens.last()?;
    let (mut depth, mut commas) = (0, Vec::new());
    for token in tokens.iter().rev() {
        match token.text(code) {
            ")" | "]" | "}" => depth += 1,
            "(" | "[" | "{" => depth -= 1,
            ">" if angles => depth += 1,
            "<" if angles => depth -= 1,
            "," if depth == 1 => commas.push(token.start),
            _ => {}
        }
        if depth == 0 {
            let mut items = Vec::new();
            let mut at = token.end;
            for comma in commas.into_iter().rev().chain([last.start]) {
                items.push(code.get(at..comma)?.trim().to_owned());
                at = comma + 1;
            }
            let empty = items.iter().any(String::is_empty);
            return (!empty).then_some((code.get(..token.end)?, items, code.get(last.start..)?));
        }
    }
    None
}

/// The offset of the first byte of the line that holds `at`.
pub fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|t| t.rfind('\n')).map_or(0, |p| p + 1)
}

/// The offset of the end of the line that holds `at`, in front of its newline.
pub fn line_end(text: &str, at: usize) -> usize {
    let end = text.get(at..).and_then(|t| t.find('\n')).map_or(text.len(), |p| at + p);
    if end > at && text.as_bytes().get(end - 1) == Some(&b'\r') {
        end - 1
    } else {
        end
    }
}

/// The same, where a line that ends in a backslash, as that of a macro or of a comment may, goes on with the next one.
pub fn logical_line_end(text: &str, at: usize) -> usize {
    let mut end = line_end(text, at);
    while text.get(at..end).is_some_and(|line| line.ends_with('\\')) {
        let Some(newline) = text.get(end..).and_then(|t| t.find('\n')) else {
            break;
        };
        end = line_end(text, end + newline + 1);
    }
    end
}

/// The indentation of the line that holds `at`.
pub fn indent_at(text: &str, at: usize) -> &str {
    let line = text.get(line_start(text, at)..).unwrap_or("");
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Columns that an indentation takes, a tab for four.
pub fn columns(indent: &str) -> usize {
    indent.chars().map(|c| if c == '\t' { 4 } else { 1 }).sum()
}

/// `code`, which was taken from a place indented by `from`, as it reads at a place indented by `to`. The first line has no
/// indentation.
pub fn reindent(code: &str, from: &str, to: &str) -> String {
    let mut out = String::new();
    for (number, line) in code.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
            match line.strip_prefix(from) {
                Some(rest) if !line.trim().is_empty() => {
                    out.push_str(to);
                    out.push_str(rest);
                }
                _ => out.push_str(line),
            }
        } else {
            out.push_str(line);
        }
    }
    out
}

/// The range of a piece of code together with the rest of its line, white space and newline, when nothing else stands there:
/// what to delete so that no empty line stays behind. Between other code on a line, together with the blanks in front of it.
pub fn whole_lines(text: &str, start: usize, end: usize) -> (usize, usize) {
    let line = line_start(text, start);
    let stop = line_end(text, end);
    let alone = text.get(line..start).is_some_and(|t| t.trim().is_empty());
    let rest = text.get(end..stop).is_some_and(|t| t.trim().is_empty());
    if alone && rest && !lex::is_blank(text.get(start..end).unwrap_or("")) {
        let after = text.get(stop..).unwrap_or("");
        let newline = if after.starts_with("\r\n") {
            2
        } else {
            after.len().min(1)
        };
        (line, stop + newline)
    } else if !alone
        && text
            .get(end..)
            .is_some_and(|t| t.is_empty() || t.starts_with(char::is_whitespace))
    {
        let before = text.get(line..start).unwrap_or("");
        (start - (before.len() - before.trim_end().len()), end)
    } else {
        (start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn habits() {
        let style = Style::of("void f(int a,\n       int b)\n{\n  if (a) {\n    b;\n  }\n}\n");
        assert_eq!(style.unit, "  ");
        assert_eq!(style.newline, "\n");
        assert!(style.brace_on_own_line);
        let style = Style::of("void f() {\r\n\tg();\r\n\tif (x)\r\n\t\th();\r\n}\r\n");
        assert_eq!(style.unit, "\t");
        assert_eq!(style.newline, "\r\n");
        assert!(!style.brace_on_own_line);
        assert_eq!(Style::of("").unit, "    ");
    }

    #[test]
    fn fitting() {
        let style = Style::of("void f() {\r\n  g();\r\n}\r\n");
        assert_eq!(style.fit("a\n\tb\n\nc", "  "), "a\r\n    b\r\n\r\n  c");
    }

    #[test]
    fn lists() {
        let mut style = Style::of("");
        let items: Vec<String> = ["aaa", "bbb", "ccc"].map(String::from).to_vec();
        assert_eq!(style.list(0, "f(", &items, ");"), "f(aaa, bbb, ccc);");
        style.width = 12;
        assert_eq!(style.list(0, "f(", &items, ");"), "f(aaa, bbb,\n  ccc);");
        assert_eq!(style.list(0, "f(", &[], ");"), "f();");
        // What stands behind the list of an item stays there.
        let declared = ["X<aaaaaa, bbbbbb>& name".to_owned(), "c".to_owned()];
        let broken = "f(X<aaaaaa,\n    bbbbbb>& name,\n  c)";
        assert_eq!(style.list(0, "f(", &declared, ")"), broken);
        assert_eq!(
            style.list(0, "long_na(", &items, ");"),
            "long_na(\n    aaa,\n    bbb,\n    ccc);"
        );
    }

    #[test]
    fn lines() {
        let text = "a;\r\n  b;\r\nc;";
        assert_eq!(whole_lines(text, 6, 8), (4, 10));
        assert_eq!(whole_lines(text, 10, 12), (10, 12));
        let shared = "{ a; b; }\na; b;\n";
        assert_eq!(whole_lines(shared, 5, 7), (4, 7));
        assert_eq!(whole_lines(shared, 13, 15), (12, 15));
        assert_eq!(indent_at(text, 7), "  ");
        assert_eq!(line_end(text, 7), 8);
        let goes_on = "a; // b \\\n  c\nd;";
        assert_eq!(logical_line_end(goes_on, 1), goes_on.len() - 3);
        let goes_on = "a; // b \\\r\n  c\r\nd;";
        assert_eq!(logical_line_end(goes_on, 1), goes_on.len() - 4);
        assert_eq!(logical_line_end("a \\", 0), 3);
    }
}
