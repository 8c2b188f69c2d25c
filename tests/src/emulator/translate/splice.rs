//! Words that go on in the next line, behind a backslash: the word becomes whole, and the line ends behind it, so that all lines keep
//! their numbers.

use crate::emulator::program::Program;

/// The program with whole words.
pub fn joined(program: &Program) -> Program {
    let texts = program.files().iter();
    let changed = texts.filter_map(|(path, text)| Some((path.clone(), joined_text(text)?)));
    let changed: Vec<_> = changed.collect();
    changed
        .into_iter()
        .fold(program.clone(), |program, (path, text)| program.with_file(path, text))
}

/// A text with whole words; `None` where they are.
fn joined_text(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut last) = (text, None);
    // Line ends that the word which is being written has gone over.
    let mut behind = String::new();
    let mut changed = false;
    while let Some(first) = rest.chars().next() {
        let splice = ["\\\n", "\\\r\n"].into_iter().find(|splice| rest.starts_with(splice));
        if let (Some(splice), true) = (splice, last.is_some_and(is_of_word)) {
            let after = rest.get(splice.len()..).unwrap_or("");
            if after.chars().next().is_some_and(|c| is_of_word(c) || c == '\\') {
                behind.push_str(splice);
                changed = true;
                rest = after;
                continue;
            }
        }
        if !is_of_word(first) && !behind.is_empty() {
            out.push_str(&std::mem::take(&mut behind));
        }
        out.push(first);
        last = Some(first);
        rest = rest.get(first.len_utf8()..).unwrap_or("");
    }
    out.push_str(&behind);
    changed.then_some(out)
}

fn is_of_word(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_whole_and_lines_keep_their_numbers() {
        let text = "a ro\\\nun\\\r\nds<<<1, 2>>>(a);\n#define X \\\n  y\nb";
        assert_eq!(
            joined_text(text).as_deref(),
            Some("a rounds\\\n\\\r\n<<<1, 2>>>(a);\n#define X \\\n  y\nb")
        );
        assert_eq!(joined_text("#define F(x) f(x) \\\n  + 1\n"), None);
        assert_eq!(joined_text("x\\\n"), None);
    }
}
