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

/// What begins a line, and a text that is continued below its own beginning where the terminal isn't wide enough. Code in backquotes, which is
/// copied, isn't broken.
pub fn hanging(begins: &str, text: &str) -> String {
    match known_width() {
        Some(width) => hanging_in(begins, text, width),
        None => format!("{begins}{text}"),
    }
}

fn hanging_in(begins: &str, text: &str, width: usize) -> String {
    let indent = begins.chars().count();
    let mut out = begins.to_owned();
    let mut column = indent;
    let mut is_code = false;
    let is_blank = |c: char| {
        is_code ^= c == '`';
        c == ' ' && !is_code
    };
    for (index, word) in text.split(is_blank).enumerate() {
        let length = word.chars().count();
        if index > 0 && column + 1 + length > width && indent + VALUES <= width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if index > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
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
    use super::{hanging_in, wrapped_in};

    #[test]
    fn a_text_is_continued_below_itself() {
        let text = "install the toolkit, or `pip install nvidia-cuda-nvcc` into some place";
        let expected = "  -> install the toolkit, or\n     `pip install nvidia-cuda-nvcc`\n     into some place";
        assert_eq!(hanging_in("  -> ", text, 28), expected);
        assert_eq!(hanging_in("  -> ", text, 200), format!("  -> {text}"));
        // Too narrow for anything.
        assert_eq!(hanging_in("  -> ", text, 12), format!("  -> {text}"));
        assert_eq!(hanging_in("", "", 80), "");
    }

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
