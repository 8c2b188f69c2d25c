//! Preprocessing tokens.

use crate::base::scan::{
    end_of_block_comment, end_of_char, end_of_directive, end_of_line_comment, end_of_number, end_of_raw_string,
    end_of_string, is_raw_prefix, is_word_start, word_at,
};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// An identifier or a keyword.
    Word,
    /// A number.
    Number,
    /// A string or character literal.
    Literal,
    /// An operator or bracket.
    Punctuation,
    /// A whole directive line.
    Directive,
}

/// A token in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lexeme {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
    /// White space or a comment stands before it.
    pub space: bool,
}

/// Operators of several characters, longest first.
const OPERATORS: &[&str] = &[
    "%:%:", "<<<", ">>>", "...", "<<=", ">>=", "->*", "<=>", "##", "::", "->", "++", "--", "<<", ">>", "<=", ">=",
    "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", ".*", "%:",
];

/// The tokens of a text. `directives`: a `#` at the start of a line begins a directive.
pub(crate) fn lex(text: &str, directives: bool) -> Vec<Lexeme> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    let mut space = false;
    let mut line_fresh = true;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        let kind = match byte {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => {
                line_fresh |= byte == b'\n';
                space = true;
                at += 1;
                continue;
            }
            b'\\' if matches!(bytes.get(at + 1), Some(b'\n' | b'\r')) => {
                space = true;
                at += 2;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                space = true;
                at = end_of_line_comment(bytes, at);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                space = true;
                at = end_of_block_comment(bytes, at);
                continue;
            }
            b'#' | b'%' if directives && line_fresh && (byte == b'#' || bytes.get(at + 1) == Some(&b':')) => {
                at = end_of_directive(bytes, at);
                TokenKind::Directive
            }
            b'"' => {
                at = end_of_string(bytes, at);
                TokenKind::Literal
            }
            b'\'' => {
                at = end_of_char(bytes, at);
                TokenKind::Literal
            }
            b'0'..=b'9' => {
                at = number(bytes, at);
                TokenKind::Number
            }
            b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => {
                at = number(bytes, at + 1);
                TokenKind::Number
            }
            _ if is_word_start(byte) => {
                let word = word_at(text, at).unwrap_or("");
                at += word.len().max(1);
                match bytes.get(at) {
                    Some(b'"') if is_raw_prefix(word) => {
                        at = end_of_raw_string(bytes, at);
                        TokenKind::Literal
                    }
                    Some(b'"') if matches!(word, "L" | "u" | "U" | "u8") => {
                        at = end_of_string(bytes, at);
                        TokenKind::Literal
                    }
                    Some(b'\'') if matches!(word, "L" | "u" | "U" | "u8") => {
                        at = end_of_char(bytes, at);
                        TokenKind::Literal
                    }
                    _ => TokenKind::Word,
                }
            }
            // Most of them, and none begins an operator of several characters.
            b'(' | b')' | b'{' | b'}' | b'[' | b']' | b';' | b',' | b'?' | b'~' => {
                at += 1;
                TokenKind::Punctuation
            }
            _ => {
                let rest = text.get(at..).unwrap_or("");
                let operator = OPERATORS.iter().find(|o| rest.starts_with(**o));
                at += operator.map_or_else(|| rest.chars().next().map_or(1, char::len_utf8), |o| o.len());
                TokenKind::Punctuation
            }
        };
        line_fresh = false;
        found.push(Lexeme {
            kind,
            start,
            end: at.min(bytes.len()),
            space,
        });
        space = false;
    }
    found
}

/// End of a preprocessing number: `1e+3` is one.
fn number(bytes: &[u8], at: usize) -> usize {
    let mut end = end_of_number(bytes, at);
    while end > at
        && matches!(bytes[end - 1], b'e' | b'E' | b'p' | b'P')
        && matches!(bytes.get(end), Some(b'+' | b'-'))
        && (bytes[at] != b'0'
            || !matches!(bytes.get(at + 1), Some(b'x' | b'X'))
            || matches!(bytes[end - 1], b'p' | b'P'))
    {
        end = end_of_number(bytes, end);
    }
    end
}

/// A token by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub text: String,
    /// White space stands before it.
    pub space: bool,
    /// Macros out of whose expansion it comes: it is not expanded as one of them again.
    pub hidden: Vec<String>,
    /// Where it is written in the text that is expanded; `None`: in a macro.
    pub origin: Option<(usize, usize)>,
}

/// The tokens of a text without directives, digraphs of `#` as what they stand for.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut found: Vec<Token> = lex(text, false).into_iter().map(|l| token(text, l)).collect();
    for token in &mut found {
        match token.text.as_str() {
            "%:%:" => token.text = "##".to_owned(),
            "%:" => token.text = "#".to_owned(),
            _ => {}
        }
    }
    found
}

/// A token out of a text.
pub(crate) fn token(text: &str, lexeme: Lexeme) -> Token {
    Token {
        kind: lexeme.kind,
        text: text.get(lexeme.start..lexeme.end).unwrap_or("").to_owned(),
        space: lexeme.space,
        hidden: Vec::new(),
        origin: None,
    }
}

/// Tokens as text; those that would read as one with their neighbour are kept apart.
pub(crate) fn spelled(tokens: &[Token]) -> String {
    let mut out = String::new();
    for token in tokens {
        if !out.is_empty() && (token.space || glues(&out, &token.text)) {
            out.push(' ');
        }
        out.push_str(&token.text);
    }
    out
}

/// Whether a text and what follows would read as something else when nothing stands between them.
pub(crate) fn glues(before: &str, after: &str) -> bool {
    let (Some(last), Some(first)) = (before.chars().next_back(), after.chars().next()) else {
        return false;
    };
    let part = |c: char| c == '_' || c.is_alphanumeric() || c == '"' || c == '\'';
    let fraction = (last == '.' && first.is_ascii_digit()) || (first == '.' && last.is_ascii_digit());
    let operator = |c: char| "+-<>=&|:!*/%^#.".contains(c);
    fraction || (part(last) && part(first)) || (operator(last) && operator(first))
}
