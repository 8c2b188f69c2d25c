//! The words of a text.

/// The identifiers in a text (strings and comments not excepted).
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c == '_' || c.is_ascii_alphanumeric()))
        .filter(|w| w.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic()))
}

/// The same without the words right behind a `.` or an arrow, which name members. Behind `...`, anything may stand.
pub(crate) fn words_but_members(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let mut at = 0;
    text.split_inclusive(move |c: char| !is_part(c))
        .filter_map(move |piece| {
            let before = text.get(..at).unwrap_or_default();
            at += piece.len();
            let word = piece.trim_end_matches(|c: char| !is_part(c));
            let is_member = before.ends_with("->") || (before.ends_with('.') && !before.ends_with(".."));
            (!is_member && !word.is_empty() && !word.starts_with(|c: char| c.is_ascii_digit())).then_some(word)
        })
}

#[cfg(test)]
mod tests {
    use super::words_but_members;

    #[test]
    fn members_are_left_out() {
        let found = |text: &'static str| words_but_members(text).collect::<Vec<_>>();
        assert_eq!(found("a.b + c->d(e) * 2.f"), ["a", "c", "e"]);
        // A sentence in a comment ends with a full stop, too.
        assert_eq!(found("// x.\nrow = 1; g(all...)"), ["x", "row", "g", "all"]);
        assert_eq!(found("case 1 ...last: ü.n"), ["case", "last"]);
    }
}
