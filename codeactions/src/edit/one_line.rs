//! Code on one line.

use gridfuse_analysis::base::preprocess::reads_as_restrict;

use super::lex::{self, Token, TokenKind};

/// Declarations without `__restrict__`.
pub fn without_restrict(code: &str) -> String {
    let mut out = String::new();
    let mut copied = 0;
    let tokens = lex::code_tokens(code);
    let restricts = (0..tokens.len())
        .filter(|at| is_restrict(code, &tokens, *at))
        .map(|at| &tokens[at]);
    for token in restricts {
        out.push_str(code.get(copied..token.start).unwrap_or(""));
        let behind = code.get(token.end..).unwrap_or("");
        copied = token.end + behind.len() - behind.trim_start_matches([' ', '\t']).len();
    }
    out.push_str(code.get(copied..).unwrap_or(""));
    out
}

/// Whether a word qualifies a pointer. One that is named like users' macros for it may be anything else: it stands between the type and
/// the name, `T* RESTRICT p`, and neither is the name, `bool DO_RESTRICT`, nor a part of the type, `Stencil<MODE_RESTRICT> s`.
fn is_restrict(code: &str, tokens: &[Token], at: usize) -> bool {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text(code));
    let word = text(at);
    // Of a pointer to pointers, that of an inner one is a part of the type.
    if !reads_as_restrict(word) || text(at + 1) == "*" {
        return false;
    }
    let name = |word: &str| word.starts_with(|c: char| c == '_' || c.is_alphabetic());
    let before = at.checked_sub(1).map_or("", text);
    let behind = text(at + 1);
    !word.contains("RESTRICT")
        || (name(before) || matches!(before, "*" | "&" | ">")) && (name(behind) || matches!(behind, "*" | "&"))
}

/// A declaration or expression that may be broken over lines, on one line: without `//` comments, and with its literals as they are.
pub fn one_line(code: &str) -> String {
    let mut out = String::new();
    let mut end = 0;
    for token in lex::tokens(code) {
        let text = token.text(code);
        let comment = token.kind == TokenKind::Comment;
        if comment && text.starts_with("//") {
            continue;
        }
        if !out.is_empty() && separates(code.get(end..token.start).unwrap_or("")) {
            out.push(' ');
        }
        if comment {
            out.push_str(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        } else {
            out.push_str(text);
        }
        end = token.end;
    }
    out
}

/// Whether what stands between two tokens keeps them apart: a line continuation alone doesn't.
pub fn separates(gap: &str) -> bool {
    !gap.replace("\\\r\n", "").replace("\\\n", "").is_empty()
}

/// Code on one line: line breaks with their indentation become a space, line continuations go. Code with a `//` comment or with a
/// literal over several lines stays as it is.
pub fn flat(code: &str) -> String {
    if !code.contains('\n') {
        return code.to_owned();
    }
    let tokens = lex::tokens(code);
    let line_comment = |t: &Token| t.kind == TokenKind::Comment && t.text(code).starts_with("//");
    if tokens.iter().any(|t| line_comment(t) || is_long_literal(*t, code)) {
        return code.replace("\r\n", "\n");
    }
    let mut out = String::new();
    let mut end = 0;
    for token in tokens {
        let (gap, text) = (code.get(end..token.start).unwrap_or(""), token.text(code));
        if !gap.contains('\n') {
            out.push_str(gap);
        } else if !out.is_empty() && !out.ends_with('(') && text != ")" && separates(gap) {
            out.push(' ');
        }
        if token.kind == TokenKind::Comment {
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            out.push_str(&lines.join(" "));
        } else {
            out.push_str(text);
        }
        end = token.end;
    }
    out
}

/// Whether some code holds a literal that goes over several lines, a raw string for example.
pub fn has_long_literal(code: &str) -> bool {
    code.contains('\n') && lex::tokens(code).into_iter().any(|t| is_long_literal(t, code))
}

fn is_long_literal(token: Token, code: &str) -> bool {
    token.kind == TokenKind::Text && token.text(code).contains('\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_end_in_restrict() {
        for (written, without) in [
            ("const int* __restrict__ p", "const int* p"),
            ("const int* RESTRICT p", "const int* p"),
            ("int* const MY_RESTRICT p", "int* const p"),
            ("int* RESTRICT* __RESTRICT__ p", "int* RESTRICT* p"),
            ("Pointer RESTRICT p", "Pointer p"),
            ("std::vector<int>::pointer __restrict p", "std::vector<int>::pointer p"),
        ] {
            assert_eq!(without_restrict(written), without, "{written}");
        }
        for other in [
            "bool DO_RESTRICT",
            "(bool DO_RESTRICT, int n)",
            "Stencil<MODE_RESTRICT> s",
            "int mode = MODE_RESTRICT",
            "int a[4 * MODE_RESTRICT + 1]",
        ] {
            assert_eq!(without_restrict(other), other);
        }
    }
}
