//! Whether two texts are the same code, white space between tokens aside.

use std::collections::{BTreeSet, HashSet};

use crate::edit::lex::{self, TokenKind};
use crate::emit::described::is_taken_back;

/// Whether a text, `a`, has the same tokens and comments as what a rewrite has made, `b`. In literals white space counts, in comments how
/// long it is doesn't; nor does where lines end, but for directives. What `spelling` macros are given counts as it is spelled: see
/// [`spelling_macros`]. What the rewrite's own comments say of its functions may be gone.
pub fn same_code(a: &str, b: &str, spelling: &BTreeSet<String>) -> bool {
    let comments = lex::comments(b).into_iter().map(|comment| comment.text(b));
    let told: HashSet<&str> = comments.filter(|comment| is_taken_back(comment)).collect();
    let parts = |text, spelling| parts(text, spelling, &told);
    a == b || parts(a, spelling).eq(parts(b, spelling))
}

/// The macros of some texts that make a string of what they are given (`#define LEN(e) sizeof(#e)`), themselves or by others.
pub fn spelling_macros<'t>(texts: impl Iterator<Item = &'t str>) -> BTreeSet<String> {
    let mut others: Vec<(String, String)> = Vec::new();
    let mut found = BTreeSet::new();
    for text in texts {
        let whole = text.replace("\\\r\n", " ").replace("\\\n", " ");
        for line in whole.lines() {
            let define = line
                .trim_start()
                .strip_prefix('#')
                .and_then(|rest| rest.trim_start().strip_prefix("define"));
            let Some((head, body)) = define.and_then(|define| define.split_once(')')) else {
                continue;
            };
            let name = head.split('(').next().unwrap_or("").trim().to_owned();
            let alone = |at: usize| {
                let other = |at: Option<usize>| at.and_then(|at| body.as_bytes().get(at)) == Some(&b'#');
                !other(at.checked_sub(1)) && !other(Some(at + 1))
            };
            if body.match_indices('#').any(|(at, _)| alone(at)) {
                found.insert(name);
            } else {
                others.push((name, body.to_owned()));
            }
        }
    }
    loop {
        let before = found.len();
        for (name, body) in &others {
            if lex::identifiers(body).any(|word| found.contains(word)) {
                found.insert(name.clone());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The tokens, each with what else tells it from others: whether it touches the one before where that makes another operator of both,
/// whether it begins a line where that ends a directive or begins one, and whether white space stands before it where that is spelled.
fn parts<'a>(
    text: &'a str,
    spelling: &'a BTreeSet<String>,
    without: &'a HashSet<&str>,
) -> impl Iterator<Item = (String, bool, bool, bool)> + 'a {
    let mut before: Option<lex::Token> = None;
    let mut directive = false;
    // Parentheses that are open in what such a macro is given.
    let mut depth = 0u32;
    let counts = |token: &lex::Token| token.kind != TokenKind::Comment || !without.contains(token.text(text));
    lex::tokens(text).into_iter().filter(counts).map(move |token| {
        let gap = text.get(before.map_or(0, |b| b.end)..token.start).unwrap_or("");
        let fresh = before.is_none() || ends_line(gap);
        let code = token.text(text);
        let given = before.is_some_and(|b| spelling.contains(b.text(text)));
        let spelled = depth > 0 && !gap.is_empty();
        match code {
            "(" if depth > 0 || given => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
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
        (code, joined, ends || directive && fresh, spelled)
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
    use std::collections::BTreeSet;

    use super::spelling_macros;

    fn same_code(a: &str, b: &str) -> bool {
        super::same_code(a, b, &BTreeSet::new())
    }

    #[test]
    fn what_macros_spell() {
        let macros =
            "#define LEN(e) sizeof(#e)\n#define LONG(e) \\\n  (LEN(e) + 1)\n#define CAT(a, b) a##b\n# define ID(e) e\n";
        let spelling = spelling_macros([macros].into_iter());
        assert_eq!(spelling.iter().map(String::as_str).collect::<Vec<_>>(), ["LEN", "LONG"]);
        let same = |a: &str, b: &str| super::same_code(a, b, &spelling);
        assert!(same("ID(v+1) + LEN(v+1)", "ID(v + 1)+LEN(v+1)"));
        assert!(!same("LEN(v+1)", "LEN(v + 1)"));
        assert!(!same("x = LONG(f(v)+1);", "x = LONG(f(v) +1);"));
    }

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
