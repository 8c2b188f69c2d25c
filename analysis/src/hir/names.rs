//! Qualified names.

use crate::base::scan::without_comments;

/// The template arguments in a list with its brackets, as they are written: `T` and `2` of `<T, 2>`.
pub fn template_arguments(list: &str) -> Vec<String> {
    let inner = list.trim();
    let inner = inner.strip_prefix('<').unwrap_or(inner);
    let inner = inner.strip_suffix('>').unwrap_or(inner);
    let mut depth = 0i32;
    let mut parts = vec![String::new()];
    for c in inner.chars() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.into_iter().map(|part| part.trim().to_owned()).collect()
}

/// A type that a template names, where its parameters `names` stand for these arguments. `None` where it names one that has none.
pub fn with_arguments(ty: &str, names: &[String], arguments: &[String]) -> Option<String> {
    let is_word = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let mut out = String::new();
    let mut rest = ty;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| is_word(c) != is_word(first)).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        // A member may have the name of a parameter.
        let member = out.trim_end().ends_with("::") || out.trim_end().ends_with('.');
        match names.iter().position(|name| name == part).filter(|_| !member) {
            Some(index) => out.push_str(arguments.get(index).filter(|argument| !argument.is_empty())?),
            None => out.push_str(part),
        }
        rest = behind;
    }
    Some(out)
}

/// The last segment of a qualified name.
pub fn unqualified(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// Stands between the types that a name of several aliases may stand for: together they are no type that is known.
pub const EITHER: &str = " | ";

/// Adds a type to those that a name stands for.
pub(crate) fn also_stands_for(known: &mut String, target: &str) {
    if known.is_empty() {
        target.clone_into(known);
    } else if !known.split(EITHER).any(|one| one == target) {
        known.push_str(EITHER);
        known.push_str(target);
    }
}

/// `ns::child<N, T>` → `ns::child`; white space and comments removed.
pub fn without_template_arguments(text: &str) -> String {
    let mut out = String::new();
    let mut depth = 0u32;
    for c in without_comments(text).chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 && !c.is_whitespace() => out.push(c),
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn lists_of_template_arguments() {
        assert_eq!(super::template_arguments("<int, Op<A, B>>"), ["int", "Op<A, B>"]);
        assert_eq!(super::template_arguments("<A<B>>"), ["A<B>"]);
        assert_eq!(super::template_arguments("<>"), [""]);
    }

    #[test]
    fn types_of_templates() {
        let (names, arguments) = (["T".to_owned(), "N".to_owned()], ["const int".to_owned()]);
        let with = |ty: &str| super::with_arguments(ty, &names, &arguments);
        assert_eq!(with("T").as_deref(), Some("const int"));
        assert_eq!(with("Pair<T, X::T>*").as_deref(), Some("Pair<const int, X::T>*"));
        assert_eq!(with("Type").as_deref(), Some("Type"));
        assert_eq!(with("Tile<T, N>"), None);
    }
}
