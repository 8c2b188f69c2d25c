//! Lines of plain text that fit the terminal, each continued below its own text.

use super::fitted_table::known_width;

/// How far the values of `  label       value` are indented.
const VALUES: usize = 14;

/// How commands begin. They are copied: none is broken into lines.
const COMMAND: &str = "gridfuse ";

/// A text whose lines fit the terminal, where it's known how wide that is. Rows of tables and commands, which are copied, stay as they are.
pub fn wrapped(text: &str) -> String {
    match known_width() {
        Some(width) => wrapped_in(text, width),
        None => text.to_owned(),
    }
}

fn wrapped_in(text: &str, width: usize) -> String {
    text.lines().map(|line| line_in(line, width) + "\n").collect()
}

fn line_in(line: &str, width: usize) -> String {
    let is_command = line.get(VALUES..).is_some_and(|value| value.starts_with(COMMAND));
    let stays = !line.is_ascii() && line.starts_with(['│', '┌', '├', '╞', '└']) || is_command;
    let indent = hang(line);
    if stays || line.chars().count() <= width || width < indent + VALUES {
        return line.to_owned();
    }
    let mut out = String::new();
    let mut column = 0;
    for word in line.split_inclusive(' ') {
        let length = word.trim_end().chars().count();
        if column > indent && column + length > width {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        }
        out.push_str(word);
        column += word.chars().count();
    }
    out
}

/// Where a line is continued: below its value, after its number, or a little further than it begins.
fn hang(line: &str) -> usize {
    let begins = line.len() - line.trim_start().len();
    let number = line.trim_start().split_once(") ").filter(|(number, _)| {
        let digits = number.strip_prefix('(').unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    match (number, line.get(..VALUES)) {
        (Some((number, _)), _) => begins + number.len() + 2,
        (None, Some(label)) if begins == 2 && label.ends_with(' ') && label.trim().chars().all(is_label) => VALUES,
        _ => begins + 2,
    }
}

fn is_label(c: char) -> bool {
    c.is_ascii_lowercase() || c == ' '
}

#[cfg(test)]
mod tests {
    use super::wrapped_in;

    #[test]
    fn lines_are_continued_below_their_text() {
        let text = "  answer      three rewrites fit; best: collect per grid
  (12) the host waits for the parent anyway, and then
  optimize applies threshold: grids differ in size by far
  take back   gridfuse rewrite a.cu --at 12:20 --apply optimize
  short       one
│ a very long row of a table that stays as it has been │
";
        let expected = "  answer      three rewrites fit;
              best: collect per
              grid
  (12) the host waits for the
       parent anyway, and then
  optimize applies threshold:
    grids differ in size by far
  take back   gridfuse rewrite a.cu --at 12:20 --apply optimize
  short       one
│ a very long row of a table that stays as it has been │
";
        assert_eq!(wrapped_in(text, 34), expected);
        assert_eq!(wrapped_in(text, 200), text);
        // Too narrow for anything.
        assert_eq!(wrapped_in(text, 12), text);
    }
}
