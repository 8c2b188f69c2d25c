//! What is too large to be analysed: it is blanked, so that nothing spends time on it.

use super::directives::Directive;
use crate::base::budget::{BRACKETS, DECLARATION_BYTES, FUNCTION_BYTES, SCOPES, UNCLOSED_BYTES};
use crate::base::scan::{
    blank, end_of_block_comment, end_of_char, end_of_line_comment, end_of_number, end_of_raw_string, end_of_string,
};
use crate::base::scan::{is_raw_prefix, is_word_start};
use crate::base::span::TextRange;

/// What stands at an opening brace outside of functions.
#[derive(Clone, Copy, PartialEq)]
enum Brace {
    /// The body of a function.
    Function,
    /// An initialiser.
    Table,
    /// A namespace, a class: declarations stand in it.
    Scope,
}

/// One declaration, while it is read.
#[derive(Default)]
struct Declaration {
    /// Where it begins.
    start: Option<usize>,
    /// Where its outermost brace is, and what that is.
    brace: Option<(usize, Brace)>,
    /// Brackets that are open in it.
    depth: usize,
    /// A limit was exceeded.
    too_deep: bool,
    /// Bytes of its initialisers.
    tables: usize,
}

/// Blanks in `out` the bodies of functions, initialisers and declarations that are too large, and gives their places, in order.
pub(super) fn blank_large(out: &mut [u8], directives: &[Directive]) -> Vec<TextRange> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    if out.len() > FUNCTION_BYTES.min(BRACKETS) {
        search(out, directives, &mut found);
    }
    for (start, end) in &found {
        blank(out, *start, *end);
    }
    found
        .into_iter()
        .map(|(start, end)| TextRange::new(start as u32, end as u32))
        .collect()
}

fn search(bytes: &[u8], directives: &[Directive], found: &mut Vec<(usize, usize)>) {
    let mut next_directive = 0;
    // The last thing that was read, blanks aside: where it begins and ends.
    let mut last = (0, 0);
    let mut scopes = 0usize;
    // Where the scope begins that is too deep inside others.
    let mut too_deep: Option<usize> = None;
    let mut now = Declaration::default();
    let mut at = 0;
    while at < bytes.len() {
        while directives.get(next_directive).is_some_and(|d| d.start < at) {
            next_directive += 1;
        }
        let byte = bytes[at];
        let end = match byte {
            b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c => {
                at += 1;
                continue;
            }
            b'#' if directives.get(next_directive).is_some_and(|d| d.start == at) => {
                at = directives[next_directive].end.max(at + 1);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = end_of_line_comment(bytes, at);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = end_of_block_comment(bytes, at);
                continue;
            }
            b'"' => end_of_string(bytes, at),
            b'\'' => end_of_char(bytes, at),
            b'0'..=b'9' => end_of_number(bytes, at),
            _ if is_word_start(byte) => {
                let end = end_of_word(bytes, at);
                let word = std::str::from_utf8(&bytes[at..end]).unwrap_or("");
                match bytes.get(end) {
                    Some(b'"') if is_raw_prefix(word) => end_of_raw_string(bytes, end),
                    _ => end,
                }
            }
            _ => at + 1,
        };
        let before = std::mem::replace(&mut last, (at, end));
        match (byte, now.brace) {
            (b'{', None) if now.depth == 0 => match brace(bytes, before) {
                Brace::Scope => {
                    scopes += 1;
                    if scopes > SCOPES {
                        too_deep.get_or_insert(at + 1);
                    }
                    now = Declaration::default();
                }
                kind => {
                    now.start.get_or_insert(at);
                    now.brace = Some((at, kind));
                    now.depth = 1;
                }
            },
            (b'}', None) => {
                if scopes == SCOPES + 1
                    && let Some(start) = too_deep.take()
                {
                    found.push((start, at));
                }
                scopes = scopes.saturating_sub(1);
                now = Declaration::default();
            }
            (b'(' | b'[' | b'{', _) => {
                now.start.get_or_insert(at);
                now.depth += 1;
                now.too_deep |= now.depth > BRACKETS;
            }
            (b')' | b']' | b'}', _) => {
                now.depth = now.depth.saturating_sub(1);
                if let (b'}', Some((open, kind)), 0) = (byte, now.brace, now.depth) {
                    let limit = if kind == Brace::Function {
                        FUNCTION_BYTES
                    } else {
                        DECLARATION_BYTES
                    };
                    let head = now.start.map_or(0, |start| open - start);
                    if kind == Brace::Function && too_deep.is_none() && head > DECLARATION_BYTES {
                        found.push((open - head, end));
                    } else if too_deep.is_none() && (now.too_deep || at - open > limit) {
                        found.push((open + 1, at));
                    }
                    now.brace = None;
                    now.too_deep = false;
                    now.tables += at - open;
                    if kind == Brace::Function {
                        now = Declaration::default();
                    }
                }
            }
            (b';', None) => {
                finish(&mut now, at, too_deep.is_some(), found);
            }
            _ => {
                now.start.get_or_insert(at);
            }
        }
        at = end;
    }
    match (too_deep, now.brace) {
        (Some(start), _) => found.push((start, bytes.len())),
        (None, Some((open, _))) if now.too_deep || bytes.len() - open > UNCLOSED_BYTES => {
            found.push((open + 1, bytes.len()));
        }
        (None, Some(_)) => {}
        (None, None) => finish(&mut now, bytes.len(), false, found),
    }
}

/// Ends a declaration that isn't a function.
fn finish(now: &mut Declaration, end: usize, inside: bool, found: &mut Vec<(usize, usize)>) {
    let done = std::mem::take(now);
    if let Some(start) = done.start
        && !inside
        && (done.too_deep || end - start > DECLARATION_BYTES + done.tables)
    {
        // What was found in it is a part of it.
        while found.last().is_some_and(|(inner, _)| *inner >= start) {
            found.pop();
        }
        found.push((start, end));
    }
}

/// What the brace opens behind which this stands.
fn brace(bytes: &[u8], (start, end): (usize, usize)) -> Brace {
    match &bytes[start..end] {
        b")" | b"const" | b"noexcept" | b"override" | b"final" | b"mutable" | b"try" => Brace::Function,
        b"=" | b"," | b"]" => Brace::Table,
        _ => Brace::Scope,
    }
}

fn end_of_word(bytes: &[u8], at: usize) -> usize {
    let rest = bytes[at..].iter();
    at + rest.take_while(|b| **b == b'_' || b.is_ascii_alphanumeric()).count()
}

#[cfg(test)]
mod tests {
    use super::super::directives::directives;
    use super::*;

    fn blanked(text: &str) -> Vec<String> {
        let mut out = text.as_bytes().to_vec();
        let ranges = blank_large(&mut out, &directives(text));
        let masked = String::from_utf8(out).unwrap_or_default();
        assert_eq!(masked.len(), text.len());
        assert_eq!(masked.matches('\n').count(), text.matches('\n').count());
        for range in &ranges {
            assert!(range.text(&masked).trim().is_empty());
        }
        let short = |range: &TextRange| {
            let text = range.text(text).trim();
            text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
        };
        ranges.iter().map(short).collect()
    }

    #[test]
    fn what_is_of_usual_size_stays() {
        let small = "__global__ void f(int *p) {\n  p[0] = 1;\n}\n".repeat(20_000);
        assert!(blanked(&small).is_empty());
        assert!(blanked(&format!("namespace a {{\n{small}}}\nint t[] = {{1, 2}};\n")).is_empty());
    }

    #[test]
    fn only_what_is_too_large_goes() {
        let body = "first(1);\n".repeat(FUNCTION_BYTES / 5);
        let text =
            format!("int a() {{ one(); }}\nnamespace n {{ void b() const {{\n{body}}} }}\nint c() {{ two(); }}\n");
        assert_eq!(blanked(&text), ["first(1); first(1); first(1);"]);
        let table = "7, ".repeat(DECLARATION_BYTES);
        assert_eq!(
            blanked(&format!("int t[] = {{ {table} }};\nint a() {{ one(); }}\n")),
            ["7, 7, 7,"]
        );
        let sum = "+ 1 ".repeat(DECLARATION_BYTES);
        assert_eq!(blanked(&format!("int a;\nint t = 0 {sum};\nint b;\n")), ["int t ="]);
        let strings = "\"{\" ".repeat(DECLARATION_BYTES);
        assert_eq!(blanked(&format!("auto t = {strings};\nint b;\n")), ["auto t ="]);
    }

    #[test]
    fn what_is_too_deep_goes() {
        for (open, close) in [("(", ")"), ("{", "}"), ("[", "]")] {
            let deep = format!("{}1{}", open.repeat(BRACKETS + 1), close.repeat(BRACKETS + 1));
            assert_eq!(
                blanked(&format!("int a() {{ x {deep}; }} int b() {{ y; }}")).len(),
                1,
                "{open}"
            );
        }
        let scopes = format!(
            "int a; {} int b; {} int c;",
            "namespace n {".repeat(SCOPES * 2),
            "}".repeat(SCOPES * 2)
        );
        assert_eq!(blanked(&scopes), ["namespace n {namespace"]);
    }

    #[test]
    fn a_body_that_is_being_typed_may_reach_far() {
        let rest = "__global__ void f(int *p) {\n  p[0] = 1;\n}\n".repeat(FUNCTION_BYTES / 10);
        assert!(rest.len() > 2 * FUNCTION_BYTES && rest.len() < UNCLOSED_BYTES);
        assert!(blanked(&format!("void a() {{\n{rest}")).is_empty());
    }
}
