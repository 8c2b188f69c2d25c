//! Whether two texts are the same code, white space between tokens aside.

use std::collections::HashSet;

use crate::edit::lex::{self, TokenKind};
use crate::emit::described::is_taken_back;

/// Whether a text has the same tokens and comments as what a rewrite has made. In literals white space counts, in comments how long it is
/// doesn't; nor does where lines end, but for directives. What the rewrite's own comments say of its functions may be gone.
pub fn same_code(text: &str, made: &str) -> bool {
    let comments = lex::comments(made).into_iter().map(|comment| comment.text(made));
    let told: HashSet<&str> = comments.filter(|comment| is_taken_back(comment)).collect();
    text == made || parts(text, &told).eq(parts(made, &told))
}

/// The tokens, each with what else tells it from others: whether it touches the one before where that makes another operator of both,
/// and whether it begins a line where that ends a directive or begins one.
fn parts<'a>(text: &'a str, without: &'a HashSet<&str>) -> impl Iterator<Item = (String, bool, bool)> + 'a {
    let mut before: Option<lex::Token> = None;
    let mut directive = false;
    let tokens = lex::tokens(text).into_iter();
    let counts = |token: &lex::Token| token.kind != TokenKind::Comment || !without.contains(token.text(text));
    tokens.filter(counts).map(move |token| {
        let gap = text.get(before.map_or(0, |b| b.end)..token.start).unwrap_or("");
        let fresh = before.is_none() || ends_line(gap);
        let code = token.text(text);
        let ends = directive && fresh;
        directive = (directive && !fresh) || (fresh && code == "#");
        let operator = |code: &str| code.len() == 1 && "+-&|<=>!*/%^#:.".contains(code);
        // `> >` and `>>` close the same lists.
        let joined = gap.is_empty()
            && code != ">"
            && operator(code)
            && before.is_some_and(|b| b.kind == TokenKind::Punct && operator(b.text(text)));
        before = Some(token);
        let code = match token.kind {
            TokenKind::Comment => code.split_whitespace().collect::<Vec<_>>().join(" "),
            _ => code.to_owned(),
        };
        (code, joined, ends || directive && fresh)
    })
}

/// Whether a gap between tokens ends a line that doesn't go on.
fn ends_line(gap: &str) -> bool {
    let mut lines = gap.split('\n');
    let last = lines.next_back();
    last.is_some() && lines.any(|line| !line.trim_end_matches('\r').ends_with('\\'))
}

#[cfg(test)]
mod tests {
    use super::same_code;

    #[test]
    fn white_space_between_tokens_aside() {
        assert!(same_code("f(a, b);\n\tg();", "f(a,\n  b); g();"));
        assert!(same_code("A<B<int> > x;", "A<B<int>> x;"));
        assert!(same_code("// a  b\nx", "// a b\n  x"));
        assert!(same_code("#define X a \\\n b\ny", "#define X a b\ny"));
        for (a, b) in [
            ("p(\"a: b\");", "p(\"a:b\");"),
            ("// a\nb();", "// a b();"),
            ("a - -b", "a --b"),
            ("a + ++b", "a ++ +b"),
            ("#define X a\ny", "#define X a y"),
            ("x\n#define X", "x #define X"),
            ("int a;", "inta;"),
            ("a b", "a"),
        ] {
            assert!(!same_code(a, b), "{a:?} {b:?}");
        }
    }
}
