//! Inline assembly: its text, as far as it can be seen, and the words in it. Whoever wants to know what an `asm` does asks here.

use crate::base::preprocess::Lexeme;
use crate::base::preprocess::lex;

/// The text of the `asm` that `code` begins with: its strings, put together as the compiler does, with escapes resolved and without
/// comments. `None` where a macro or something else hides a part of it: then it may do anything.
pub fn assembly_text(code: &str) -> Option<String> {
    let tokens: Vec<Lexeme> = lex(code, false);
    let mut texts = tokens.iter().map(|t| code.get(t.start..t.end).unwrap_or(""));
    if !matches!(texts.next()?, "asm" | "__asm__" | "__asm") {
        return None;
    }
    let mut texts = texts.skip_while(|text| matches!(*text, "volatile" | "__volatile__"));
    if texts.next()? != "(" {
        return None;
    }
    let mut found = String::new();
    let mut some = false;
    for text in texts {
        if matches!(text, ":" | "::" | ")") {
            return some.then(|| without_comments(&found));
        }
        unescape(text, &mut found)?;
        some = true;
    }
    None
}

/// The words of an assembly's text: instructions and each of their suffixes (`ld`, `global` and `nc` of `ld.global.nc`), labels, names of
/// registers.
pub fn assembly_words(text: &str) -> impl Iterator<Item = &str> {
    let part = |c: char| c == '_' || c == '$' || c.is_alphanumeric();
    text.split(move |c| !part(c)).filter(|word| !word.is_empty())
}

/// Whether inline assembly has one of these words, or may have it as its text isn't seen.
pub fn assembly_may_have(text: Option<&str>, wanted: &[&str]) -> bool {
    text.is_none_or(|text| assembly_words(text).any(|word| wanted.contains(&word)))
}

/// Appends what a string literal stands for. `None` where that isn't known.
fn unescape(literal: &str, out: &mut String) -> Option<()> {
    if let Some(raw) = literal.strip_prefix("R\"") {
        let (delimiter, rest) = raw.split_once('(')?;
        out.push_str(rest.strip_suffix('"')?.strip_suffix(delimiter)?.strip_suffix(')')?);
        return Some(());
    }
    let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next()? {
                'n' | 'r' => '\n',
                't' => '\t',
                c @ ('"' | '\'' | '\\') => c,
                // The literal goes on in the next line.
                '\n' => continue,
                _ => return None,
            },
            c => c,
        });
    }
    Some(())
}

fn without_comments(text: &str) -> String {
    let mut found = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, comment) = rest.split_at(at);
        found.push_str(before);
        rest = if comment.starts_with("//") {
            comment.find('\n').map_or("", |end| &comment[end..])
        } else if let Some(comment) = comment.strip_prefix("/*") {
            found.push(' ');
            comment.find("*/").map_or("", |end| &comment[end + 2..])
        } else {
            found.push('/');
            &comment[1..]
        };
    }
    found.push_str(rest);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let text = |code: &str| assembly_text(code);
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(text("asm(\"exit;\");"), of("exit;"));
        assert_eq!(
            text("asm volatile (\"@p ex\" /* c */ \"it; ret;\" : : \"r\"(x));"),
            of("@p exit; ret;")
        );
        assert_eq!(
            text("__asm__(\"bar.sync\\n\\t0;\" ::: \"memory\")"),
            of("bar.sync\n\t0;")
        );
        assert_eq!(text("asm(R\"x({ exit; })x\" : \"=r\"(a))"), of("{ exit; }"));
        assert_eq!(
            text("asm(\"mov.u32 // exit\\nadd /* ret */ q / r;\")"),
            of("mov.u32 \nadd   q / r;")
        );
        for hidden in [
            "LEAVE();",
            "asm(LEAVE);",
            "asm(\"e\" NAME \"it;\");",
            "asm(\"\\x65xit;\")",
            "asm goto (\"bra x;\")",
            "asm(\"exit;\"",
            "asm",
            "asm()",
        ] {
            assert_eq!(text(hidden), None, "{hidden}");
        }
    }

    #[test]
    fn words() {
        let has = |code: &str| assembly_may_have(assembly_text(code).as_deref(), &["exit", "ret"]);
        assert!(has("asm(\"setp.ne.s32 p, %0, 0; @p exit;\" :: \"r\"(x))"));
        assert!(has("asm(\"ret.uni;\")"));
        assert!(has("LEAVE"));
        assert!(!has("asm(\"mov.u32 %0, exited;\" : \"=r\"(exit))"));
    }
}
