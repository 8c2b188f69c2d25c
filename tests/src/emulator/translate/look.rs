//! Looks that `skip-silent-stores` has put in front of stores: `if (*p != v) *p = v;  // only what changes` is what `*p = v;` does, in
//! whatever order other threads write (see `gridfuse_analysis::hir::silent_store`), and other threads' stores of the same number are no
//! race. So the look goes, and the store stays where it stands. One that isn't followed by just that store is left, and so is what
//! somebody has written.

use crate::emulator::program::Program;

/// The program without looks.
pub fn without(program: &Program) -> Program {
    let texts = program.files().iter();
    let changed: Vec<_> = texts
        .filter_map(|(path, text)| Some((path.clone(), without_looks(text)?)))
        .collect();
    changed
        .into_iter()
        .fold(program.clone(), |program, (path, text)| program.with_file(path, text))
}

/// A text without looks, in which all else stands where it stood; `None` where there are none.
fn without_looks(text: &str) -> Option<String> {
    let mut out = text.to_owned();
    let mut changed = false;
    for (at, _) in text.match_indices("if (") {
        if text[..at].ends_with(|c: char| c == '_' || c.is_ascii_alphanumeric()) {
            continue;
        }
        let Some(length) = look(&text[at..]) else { continue };
        out.replace_range(at..at + length, &" ".repeat(length));
        changed = true;
    }
    changed.then_some(out)
}

/// How long a look is with the blank behind it, in bytes; `None`: no look begins here.
fn look(code: &str) -> Option<usize> {
    let condition = code.strip_prefix("if (")?;
    let mut depth = 1;
    let close = condition.bytes().position(|byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    let (place, value) = condition.get(..close)?.split_once(" != ")?;
    let store = condition.get(close + 1..)?.strip_prefix(' ')?;
    let plain = ["\n", "\"", "//", "/*", "&&", "||", ",", "="];
    let condition = format!("{place} {value}");
    let behind = store.strip_prefix(&format!("{place} = {value};"))?;
    let is_made = behind.starts_with("  // only what changes") || behind.starts_with(" /* only what changes */");
    (is_made && !plain.iter().any(|odd| condition.contains(odd))).then_some("if (".len() + close + ") ".len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_go_and_all_else_stays_in_place() {
        let text = "if (a) if (*p != v + 1) *p = v + 1;  // only what changes\nif (q[f(1)] != 2) q[f(1)] = 2; /* only what changes */";
        let without = without_looks(text);
        let expected = "if (a)                  *p = v + 1;  // only what changes\n                  q[f(1)] = 2; /* only what changes */";
        assert_eq!(without.as_deref(), Some(expected));
        for other in [
            "if (*p != v) *p = v;",
            "if (*p != v) *p = w;  // only what changes",
            "if (*p != v) *q = v;  // only what changes",
            "if (*p != v) { *p = v; }",
            "if (*p == v) *p = v;",
            "if (*p != v && x) *p = v && x;",
            "elif (*p != v) *p = v;",
            "if (*p != v",
        ] {
            assert_eq!(without_looks(other), None, "{other}");
        }
    }
}
