//! A file without the insides of its functions: what is broken in one of them then hides none of the items around it.

use crate::base::preprocess::Lexeme;
use crate::base::preprocess::TokenKind;
use crate::base::preprocess::lex;
use crate::base::span::TextRange;

/// A text whose functions' bodies are blanked: same length, same lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skeleton {
    /// The text.
    pub text: String,
    /// The bodies that were blanked, their braces included, in order.
    pub bodies: Vec<TextRange>,
}

/// Which bodies are blanked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blank {
    /// Those of functions that stand in no class: what a class is depends on what its members do.
    OutsideOfClasses,
    /// All.
    All,
}

/// The text with the bodies of functions blanked.
pub(crate) fn skeleton(text: &str, blank: Blank) -> Skeleton {
    let mut out = text.as_bytes().to_vec();
    let mut bodies = Vec::new();
    let lexemes = lex(text, true);
    let word = |index: usize| lexemes.get(index).and_then(|l| text.get(l.start..l.end)).unwrap_or("");
    // Where the declaration begins whose head is being read, and whether a parameter list closed in it.
    let mut head = 0;
    let mut parameters = false;
    let mut depth = 0u32;
    // For each brace around: whether it is that of a class.
    let mut scopes: Vec<bool> = Vec::new();
    let mut classes = 0;
    let mut at = 0;
    while let Some(lexeme) = lexemes.get(at) {
        match (lexeme.kind, word(at)) {
            (TokenKind::Directive, _) if depth == 0 && head == at => head = at + 1,
            (TokenKind::Directive, _) => {}
            (_, "(" | "[") => depth += 1,
            (_, ")" | "]") => {
                depth = depth.saturating_sub(1);
                parameters |= depth == 0 && word(at) == ")";
            }
            (_, ";") => {
                (head, parameters, depth) = (at + 1, false, 0);
            }
            (_, "}") => {
                (head, parameters, depth) = (at + 1, false, 0);
                classes -= usize::from(scopes.pop() == Some(true));
            }
            (_, "{") if depth == 0 => {
                let last = at.checked_sub(1).map_or("", word);
                let names_type = matches!(
                    first_word(&word, head),
                    "struct" | "class" | "union" | "enum" | "namespace"
                );
                let is_body = parameters && last != "=" && (!names_type || last == ")");
                let close = if is_body {
                    closing(text, &lexemes, &word, at)
                } else {
                    None
                };
                if let Some(close) = close {
                    let (from, to) = (lexeme.end, lexemes.get(close).map_or(lexeme.end, |l| l.start));
                    if classes == 0 || blank == Blank::All {
                        for byte in out.get_mut(from..to).unwrap_or_default() {
                            if !matches!(*byte, b'\n' | b'\r') {
                                *byte = b' ';
                            }
                        }
                        bodies.push(TextRange::new(lexeme.start as u32, to as u32 + 1));
                    }
                    at = close;
                } else {
                    let is_class = (head..at).any(|index| matches!(word(index), "struct" | "class" | "union"));
                    scopes.push(is_class);
                    classes += usize::from(is_class);
                }
                (head, parameters) = (at + 1, false);
            }
            (_, "{") => scopes.push(false),
            _ => {}
        }
        at += 1;
    }
    // Whole tokens were blanked, and what is between them.
    match String::from_utf8(out) {
        Ok(text) => Skeleton { text, bodies },
        Err(_) => Skeleton {
            text: text.to_owned(),
            bodies: Vec::new(),
        },
    }
}

/// The first word of a declaration, its template header left out.
fn first_word<'t>(word: &impl Fn(usize) -> &'t str, head: usize) -> &'t str {
    let mut at = head;
    if word(at) == "template" && word(at + 1) == "<" {
        let mut depth = 0i32;
        for _ in 0..1000 {
            at += 1;
            match word(at) {
                "<" => depth += 1,
                ">" => depth -= 1,
                ">>" => depth -= 2,
                "" => break,
                _ => {}
            }
            if depth <= 0 {
                break;
            }
        }
        at += 1;
    }
    word(at)
}

/// The lexeme that closes the brace at `open`. A kernel can't begin inside a function: when one does, at the start of a line, or when
/// nothing closes the brace, the last closing brace at the start of a line is taken for the end.
fn closing<'t>(text: &str, lexemes: &[Lexeme], word: &impl Fn(usize) -> &'t str, open: usize) -> Option<usize> {
    let starts_line = |index: usize| {
        let start = lexemes.get(index).map_or(0, |l| l.start);
        start == 0 || text.as_bytes().get(start - 1) == Some(&b'\n')
    };
    let mut depth = 0u32;
    let mut at_line_start = None;
    for index in open..lexemes.len() {
        match word(index) {
            "{" => depth += 1,
            "}" => {
                depth = depth.saturating_sub(1);
                if starts_line(index) {
                    at_line_start = Some(index);
                }
            }
            "__global__" | "__device__" if starts_line(index) => return at_line_start,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    at_line_start
}

#[cfg(test)]
mod tests {
    use super::{Blank, skeleton};

    #[test]
    fn bodies_of_functions_are_blanked() {
        for (text, expected) in [
            ("void f() { if (x) { y } }\nint a;", "void f() {              }\nint a;"),
            (
                "struct S { int m() const { return 1; } int n; };",
                "struct S { int m() const {           } int n; };",
            ),
            ("namespace n { void f() { x } }", "namespace n { void f() {   } }"),
            (
                "extern \"C\" { void f(); void g() { \"}\" } }",
                "extern \"C\" { void f(); void g() {     } }",
            ),
            ("int a[] = { f(1), 2 };", "int a[] = { f(1), 2 };"),
            ("struct S f() { x }", "struct S f() {   }"),
            (
                "template <class T, int N> struct S : B<T(int)> { int x; };",
                "template <class T, int N> struct S : B<T(int)> { int x; };",
            ),
            (
                "template <class T> auto f(T x) -> int { x; }",
                "template <class T> auto f(T x) -> int {    }",
            ),
            ("#define X (\nenum E { A, B };", "#define X (\nenum E { A, B };"),
            ("void f() { // }\n é }\nint b;", "void f() {     \n    }\nint b;"),
            ("void f() { {", "void f() { {"),
            (
                "void f() {\n if (a {\n}\n__global__ void g() { x }\n",
                "void f() {\n        \n}\n__global__ void g() {   }\n",
            ),
            ("void f() {\n {\n}\nint a;", "void f() {\n  \n}\nint a;"),
        ] {
            let found = skeleton(text, Blank::All).text;
            assert_eq!(found, expected);
            assert_eq!(found.len(), text.len());
        }
    }
}
