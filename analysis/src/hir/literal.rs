//! Values of number and character literals.

use super::types::Literal;
use crate::base::literal::{self, Number};

/// The value of a C++ number literal; `None` when it isn't understood.
pub(super) fn number(text: &str) -> Option<Literal> {
    Some(match literal::number(text)? {
        Number::Int(value) => Literal::Int(value),
        Number::Float => Literal::Float(text.to_owned()),
    })
}

/// The name of a built-in number type, or of one that the standard library and CUDA's headers declare.
pub(super) fn is_number_type(name: &str) -> bool {
    let name = name.trim();
    let name = name.strip_prefix("::").unwrap_or(name);
    let name = name.strip_prefix("std::").unwrap_or(name);
    let word = |word: &str| {
        matches!(
            word,
            "unsigned" | "signed" | "int" | "long" | "short" | "char" | "float" | "double" | "bool" | "const"
        )
    };
    matches!(
        name,
        "size_t" | "ptrdiff_t" | "ssize_t" | "uint" | "ushort" | "ulong" | "intptr_t" | "uintptr_t"
    ) || (name.ends_with("_t") && ["int8_t", "int16_t", "int32_t", "int64_t"].contains(&name.trim_start_matches('u')))
        || (name.split_whitespace().all(word) && !matches!(name, "" | "const"))
}

/// The value of a character literal with a single character; escapes other than the simple ones are not understood.
pub(super) fn character(text: &str) -> Option<Literal> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut chars = inner.chars();
    let value = match (chars.next()?, chars.next(), chars.next()) {
        ('\\', Some(escape), None) => match escape {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '0' => '\0',
            '\\' | '\'' | '"' => escape,
            _ => return None,
        },
        (plain, None, None) => plain,
        _ => return None,
    };
    Some(Literal::Int(value as i128))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number("0x1Fu"), Some(Literal::Int(31)));
        assert_eq!(number("1'000'000ULL"), Some(Literal::Int(1_000_000)));
        assert_eq!(number("017"), Some(Literal::Int(15)));
        assert_eq!(number("0"), Some(Literal::Int(0)));
        assert_eq!(number("0b101"), Some(Literal::Int(5)));
        assert_eq!(number("1e3"), Some(Literal::Float("1e3".into())));
        assert_eq!(number("2.f"), Some(Literal::Float("2.f".into())));
        assert_eq!(number("12_km"), None);
        assert_eq!(character("'a'"), Some(Literal::Int(97)));
        assert_eq!(character("'\\n'"), Some(Literal::Int(10)));
        assert_eq!(character("'ab'"), None);
    }
}
