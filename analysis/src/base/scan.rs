//! Reading C++ byte by byte: where comments, literals, words and directives end.

use std::borrow::Cow;

/// Blanks bytes; newlines stay.
pub(crate) fn blank(out: &mut [u8], start: usize, end: usize) {
    for byte in &mut out[start..end] {
        if !matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// Whether an identifier may begin with this byte.
pub(crate) fn is_word_start(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphabetic()
}

/// The word that begins at `at`, if any.
pub(crate) fn word_at(text: &str, at: usize) -> Option<&str> {
    let rest = text.get(at..)?;
    let len = rest
        .bytes()
        .take_while(|b| *b == b'_' || b.is_ascii_alphanumeric())
        .count();
    (len > 0).then(|| &rest[..len])
}

/// Where the text goes on behind the end of a line at `at` that a backslash takes away; `None`: there is none.
pub(crate) fn behind_splice(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at..)? {
        [b'\\', b'\n', ..] => Some(at + 2),
        [b'\\', b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    }
}

/// The word that begins at `at`, and where it ends: the end of a line that goes on may stand in the middle of it.
pub(crate) fn word_across_lines(text: &str, at: usize) -> (String, usize) {
    let mut word = String::new();
    let mut end = at;
    while let Some(part) = word_at(text, end) {
        word.push_str(part);
        end += part.len();
        let next = behind_splice(text.as_bytes(), end).filter(|next| word_at(text, *next).is_some());
        match next {
            Some(next) => end = next,
            None => break,
        }
    }
    (word, end)
}

/// The first byte from `at` on that is no white space.
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
        at += 1;
    }
    at
}

/// The newline that ends the line of `at`.
pub(crate) fn end_of_line(bytes: &[u8], at: usize) -> usize {
    bytes[at..]
        .iter()
        .position(|b| *b == b'\n')
        .map_or(bytes.len(), |p| at + p)
}

/// The newline that ends the comment that `//` begins at `at`: a line that ends in a backslash goes on. Compilers take blanks behind the
/// backslash for nothing.
pub(crate) fn end_of_line_comment(bytes: &[u8], at: usize) -> usize {
    let mut end = end_of_line(bytes, at);
    while end < bytes.len() {
        let last = bytes[at..end].iter().rfind(|byte| !is_blank(**byte) && **byte != b'\r');
        if last != Some(&b'\\') {
            break;
        }
        end = end_of_line(bytes, end + 1);
    }
    end
}

/// One past the comment that begins at `at`.
pub(crate) fn end_of_block_comment(bytes: &[u8], at: usize) -> usize {
    let mut next = at + 2;
    while next + 1 < bytes.len() {
        if bytes[next] == b'*' && bytes[next + 1] == b'/' {
            return next + 2;
        }
        next += 1;
    }
    bytes.len()
}

/// A name, a type or a head without comments and ends of lines that go on; a blank stands for a comment.
pub(crate) fn without_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("/*") && !text.contains("//") && !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let (mut out, mut kept, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        let (end, instead) = match &bytes[at..] {
            [b'/', b'*', ..] => (end_of_block_comment(bytes, at), " "),
            [b'/', b'/', ..] => (end_of_line_comment(bytes, at), " "),
            _ => match behind_splice(bytes, at) {
                Some(behind) => (behind, ""),
                None => {
                    at += 1;
                    continue;
                }
            },
        };
        // Both begin with a byte of ASCII, so nothing is cut in the middle of a character.
        out.push_str(text.get(kept..at).unwrap_or(""));
        out.push_str(instead);
        (kept, at) = (end, end);
    }
    out.push_str(text.get(kept..).unwrap_or(""));
    Cow::Owned(out)
}

/// One past the string literal that begins at `at`; an unclosed one ends with its line.
pub(crate) fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut next = at + 1;
    while next < bytes.len() {
        match bytes[next] {
            b'\\' => next += 2,
            b'"' => return next + 1,
            b'\n' => return next,
            _ => next += 1,
        }
    }
    bytes.len()
}

/// One past the raw string literal whose quote is at `quote`.
pub(crate) fn end_of_raw_string(bytes: &[u8], quote: usize) -> usize {
    let Some(open) = bytes[quote..].iter().take(18).position(|b| *b == b'(') else {
        return quote + 1;
    };
    let delimiter = &bytes[quote + 1..quote + open];
    let mut next = quote + open + 1;
    while next < bytes.len() {
        if bytes[next] == b')'
            && bytes[next + 1..].starts_with(delimiter)
            && bytes.get(next + 1 + delimiter.len()) == Some(&b'"')
        {
            return next + 2 + delimiter.len();
        }
        next += 1;
    }
    bytes.len()
}

/// One past the character literal that begins at `at`; an unclosed one ends with its line.
pub(crate) fn end_of_char(bytes: &[u8], at: usize) -> usize {
    let mut next = at + 1;
    while next < bytes.len() {
        match bytes[next] {
            b'\\' => next += 2,
            b'\'' => return next + 1,
            b'\n' => return next,
            _ => next += 1,
        }
    }
    bytes.len()
}

/// End of a number; it may hold digit separators: `1'000`.
pub(crate) fn end_of_number(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'\'' | b'.' | b'_')) {
        if bytes[at] == b'\'' && !bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric) {
            break;
        }
        at += 1;
    }
    at
}

/// What stands before the quote of a raw string.
pub(crate) fn is_raw_prefix(word: &str) -> bool {
    matches!(word, "R" | "u8R" | "uR" | "UR" | "LR")
}

/// End of a preprocessor directive: continuation lines, and block comments that it begins, included.
pub(crate) fn end_of_directive(bytes: &[u8], at: usize) -> usize {
    let mut next = at;
    let mut line_comment = false;
    while next < bytes.len() {
        if let Some(behind) = behind_splice(bytes, next) {
            next = behind;
            continue;
        }
        match bytes[next] {
            b'\n' => return next,
            b'/' if bytes.get(next + 1) == Some(&b'/') => {
                line_comment = true;
                next += 2;
            }
            b'/' if !line_comment && bytes.get(next + 1) == Some(&b'*') => next = end_of_block_comment(bytes, next),
            b'"' if !line_comment => next = end_of_string(bytes, next),
            _ => next += 1,
        }
    }
    bytes.len()
}

/// The first byte from `at` on that is neither blank nor tab, form feed nor vertical tab.
pub(crate) fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).copied().is_some_and(is_blank) {
        at += 1;
    }
    at
}

/// White space within a line.
pub(crate) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0b | 0x0c)
}

/// The first byte from `at` on, which is in a directive, that is neither blank nor part of a comment or of the end of a line that goes on.
pub(crate) fn skip_in_directive(bytes: &[u8], mut at: usize) -> usize {
    loop {
        at = skip_blanks(bytes, at);
        if bytes.get(at..).is_some_and(|rest| rest.starts_with(b"/*")) {
            at = end_of_block_comment(bytes, at);
        } else if let Some(behind) = behind_splice(bytes, at) {
            at = behind;
        } else {
            return at;
        }
    }
}

/// Index of the bracket that closes the one at `open`, strings and comments skipped; gives up after 4 KiB.
pub(crate) fn matching(bytes: &[u8], open: usize, opener: u8, closer: u8) -> Option<usize> {
    let mut depth = 0;
    let mut at = open;
    let limit = bytes.len().min(open + 4096);
    while at < limit {
        match bytes[at] {
            b'"' => {
                at = end_of_string(bytes, at);
                continue;
            }
            b'\'' => {
                at = end_of_char(bytes, at);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = end_of_block_comment(bytes, at);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = end_of_line_comment(bytes, at);
                continue;
            }
            byte if byte == opener => depth += 1,
            byte if byte == closer => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Commas at the top level between the brackets.
pub(crate) fn commas(bytes: &[u8], open: usize, close: usize) -> usize {
    let mut depth = 0i32;
    let mut count = 0;
    for byte in &bytes[open + 1..close] {
        match byte {
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => depth -= 1,
            b',' if depth == 0 => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_go_on() {
        for (text, end) in [
            ("// a\nb", 4),
            ("// a\\\nb\nc", 7),
            ("// a\\\r\nb\r\nc", 9),
            ("// a\\ \t\nb\nc", 9),
            ("// a\\ \r\nb\nc", 9),
            ("// a\\ b\nc", 7),
            ("// \\", 4),
        ] {
            assert_eq!(end_of_line_comment(text.as_bytes(), 0), end, "{text:?}");
        }
    }
}
