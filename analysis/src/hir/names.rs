//! Qualified names.

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

/// `ns::child<N, T>` → `ns::child`; white space removed.
pub(crate) fn without_template_arguments(text: &str) -> String {
    let mut out = String::new();
    let mut depth = 0u32;
    for c in text.chars() {
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
}
