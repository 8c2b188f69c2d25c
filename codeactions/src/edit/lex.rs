//! A lexer for C++ text that keeps every byte: rewrites use it for what needs no syntax tree (which identifiers occur, where
//! comments stand, whether two pieces of code are the same).

use gridfuse_analysis::base::db::{Db, SourceFile};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub enum TokenKind {
    /// Identifier or keyword.
    Word,
    /// Number.
    Number,
    /// String or character literal.
    Text,
    /// `//…` without its newline, or `/*…*/`.
    Comment,
    /// One byte of punctuation, or one character that isn't known.
    Punct,
}

/// A token with its byte range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Token {
    /// Its text.
    pub fn text(self, of: &str) -> &str {
        of.get(self.start..self.end).unwrap_or("")
    }
}

/// The tokens of `text`, comments included, white space and line continuations left out.
pub fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    // A byte order mark is no word.
    let mut at = if text.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    while at < bytes.len() {
        let start = at;
        let next = bytes.get(at + 1).copied();
        let kind = match bytes[at] {
            byte if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'\\' if matches!(next, Some(b'\n' | b'\r')) => {
                at += 1;
                continue;
            }
            b'/' if next == Some(b'/') => {
                at = line_comment_end(bytes, at);
                TokenKind::Comment
            }
            b'/' if next == Some(b'*') => {
                at = text[at + 2..].find("*/").map_or(bytes.len(), |p| at + 2 + p + 2);
                TokenKind::Comment
            }
            b'"' => {
                at = quoted_end(bytes, at);
                TokenKind::Text
            }
            b'\'' => {
                at = quoted_end(bytes, at);
                TokenKind::Text
            }
            byte if byte == b'_' || byte.is_ascii_alphabetic() || byte >= 0x80 => {
                while at < bytes.len() && (bytes[at] == b'_' || bytes[at].is_ascii_alphanumeric() || bytes[at] >= 0x80)
                {
                    at += 1;
                }
                let word = &text[start..at];
                if bytes.get(at) == Some(&b'"') && matches!(word, "R" | "LR" | "uR" | "UR" | "u8R") {
                    at = raw_string_end(text, at);
                    TokenKind::Text
                } else if matches!(bytes.get(at), Some(b'"' | b'\'')) && matches!(word, "L" | "u" | "U" | "u8") {
                    at = quoted_end(bytes, at);
                    TokenKind::Text
                } else {
                    TokenKind::Word
                }
            }
            byte if byte.is_ascii_digit() || (byte == b'.' && next.is_some_and(|b| b.is_ascii_digit())) => {
                at = number_end(bytes, at);
                TokenKind::Number
            }
            _ => {
                at += 1;
                TokenKind::Punct
            }
        };
        found.push(Token { kind, start, end: at });
    }
    found
}

/// The tokens without the comments.
pub fn code_tokens(text: &str) -> Vec<Token> {
    let mut found = tokens(text);
    found.retain(|t| t.kind != TokenKind::Comment);
    found
}

/// The bracket that closes the one at `open`, among code tokens.
pub fn closing(text: &str, tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text(text) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

/// The texts of the code tokens of `text`: equal for two pieces of code that differ in white space and comments only.
pub fn code_words(text: &str) -> Vec<&str> {
    code_tokens(text).into_iter().map(|t| t.text(text)).collect()
}

/// The first word that may declare a type in a piece of code: `typedef`, `struct`.
pub fn type_declaration(code: &str) -> Option<&str> {
    identifiers(code).find(|word| matches!(*word, "typedef" | "using" | "struct" | "class" | "union" | "enum"))
}

/// The identifiers (and keywords) that occur in the code of `text`.
pub fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    tokens(text)
        .into_iter()
        .filter(|t| t.kind == TokenKind::Word)
        .map(move |t| t.text(text))
}

/// The tokens of a file without the comments: every launch in it asks for them.
#[salsa::tracked]
pub fn code_tokens_of(db: &dyn Db, file: SourceFile) -> Vec<Token> {
    code_tokens(&file.text(db))
}

/// The comments in `text`, in order.
pub fn comments(text: &str) -> Vec<Token> {
    let mut found = tokens(text);
    found.retain(|t| t.kind == TokenKind::Comment);
    found
}

/// The directives in a text that are conditions of the preprocessor or begin a branch: `#if`, `#elif`, `#else`, `#endif`.
pub fn conditions(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    if !text.contains('#') {
        return found;
    }
    let tokens = code_tokens(text);
    for (index, token) in tokens.iter().enumerate().filter(|(_, t)| t.text(text) == "#") {
        let before = text.get(..token.start).unwrap_or("");
        let line = before.get(before.rfind('\n').map_or(0, |at| at + 1)..).unwrap_or("");
        let word = tokens.get(index + 1).map_or("", |t| t.text(text));
        let known = ["if", "ifdef", "ifndef", "elif", "elifdef", "elifndef", "else", "endif"].contains(&word);
        if !known || !line.trim().is_empty() {
            continue;
        }
        let mut end = token.start;
        for line in text.get(token.start..).unwrap_or("").split_inclusive('\n') {
            end += line.len();
            if !line.trim_end_matches(['\r', '\n']).ends_with('\\') {
                break;
            }
        }
        found.push(token.start..end);
    }
    found
}

/// Whether `text` holds nothing but white space and comments.
pub fn is_blank(text: &str) -> bool {
    code_tokens(text).is_empty()
}

fn line_comment_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        if bytes[at] == b'\n' {
            let mut last = at;
            if last > 0 && bytes[last - 1] == b'\r' {
                last -= 1;
            }
            if last > 0 && bytes[last - 1] == b'\\' {
                at += 1;
                continue;
            }
            return last;
        }
        at += 1;
    }
    bytes.len()
}

/// End of the string or character literal whose quote stands at `at`; at the end of the line when it isn't closed.
fn quoted_end(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    let mut next = at + 1;
    while next < bytes.len() {
        match bytes[next] {
            b'\\' => next += 2,
            b'\n' => return next,
            byte if byte == quote => return next + 1,
            _ => next += 1,
        }
    }
    bytes.len()
}

fn raw_string_end(text: &str, quote: usize) -> usize {
    let Some(open) = text[quote..].find('(').filter(|p| *p <= 17) else {
        return quoted_end(text.as_bytes(), quote);
    };
    let close = format!("){}\"", &text[quote + 1..quote + open]);
    text[quote + open..]
        .find(&close)
        .map_or(text.len(), |p| quote + open + p + close.len())
}

fn number_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'+' | b'-' if matches!(bytes[at - 1], b'e' | b'E' | b'p' | b'P') && !is_hex(bytes, at) => at += 1,
            b'\'' if bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric) => at += 2,
            b'.' | b'_' => at += 1,
            byte if byte.is_ascii_alphanumeric() => at += 1,
            _ => break,
        }
    }
    at
}

/// The number that runs up to `at` is hexadecimal and the letter before `at` is a digit of it (`0xe+1` is a sum).
fn is_hex(bytes: &[u8], at: usize) -> bool {
    let mut start = at;
    while start > 0 && (bytes[start - 1].is_ascii_alphanumeric() || bytes[start - 1] == b'.') {
        start -= 1;
    }
    bytes[start..at].starts_with(b"0x") && matches!(bytes[at - 1], b'e' | b'E')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_comments() {
        let text = "int a = b/*c*/+1'000; // d\n\"e\\\"f\" 'g' R\"x(h)\" )x\" i";
        let words: Vec<_> = identifiers(text).collect();
        assert_eq!(words, ["int", "a", "b", "i"]);
        let comments: Vec<_> = comments(text).iter().map(|c| c.text(text)).collect();
        assert_eq!(comments, ["/*c*/", "// d"]);
    }

    #[test]
    fn conditions_are_told_from_code() {
        let found = |text: &'static str| conditions(text).into_iter().map(move |range| &text[range]);
        let text = "#if A(1) \\\n  && B\nx\n  # elif (C)\ny\n#define Z 1\n#endif\n";
        let expected = ["#if A(1) \\\n  && B\n", "# elif (C)\n", "#endif\n"];
        assert_eq!(found(text).collect::<Vec<_>>(), expected);
        assert_eq!(found("/*\n#if */ x(blockIdx)\n").count(), 0);
        assert_eq!(found("f(\"\\\n#if\") y # else\n").count(), 0);
    }

    #[test]
    fn same_code() {
        assert_eq!(code_words("a+ b /* c */* 2"), code_words("a + b*2"));
        assert_ne!(code_words("a b"), code_words("ab"));
    }

    #[test]
    fn numbers() {
        assert_eq!(code_words("1e-3f 0xe+1 .5"), ["1e-3f", "0xe", "+", "1", ".5"]);
    }

    #[test]
    fn unclosed() {
        for text in ["\"", "'", "/*", "R\"(", "\\", "é\"", "0x", "\"\\"] {
            for token in tokens(text) {
                let _ = token.text(text);
            }
        }
    }
}
