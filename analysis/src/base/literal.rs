//! Number literals.

/// What a number literal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// An integer, with its value.
    Int(i128),
    /// A floating-point number.
    Float,
}

/// The value of a C++ number literal; `None` when it isn't understood.
pub(crate) fn number(text: &str) -> Option<Number> {
    let digits: String = text
        .chars()
        .filter(|c| *c != '\'')
        .collect::<String>()
        .to_ascii_lowercase();
    let hex = digits.starts_with("0x");
    let float = digits.contains('.') || (!hex && digits.contains('e')) || (hex && digits.contains('p'));
    if float || (!hex && digits.ends_with('f')) {
        return Some(Number::Float);
    }
    let digits = digits.trim_end_matches(['u', 'l', 'z']);
    let value = if let Some(hex) = digits.strip_prefix("0x") {
        i128::from_str_radix(hex, 16)
    } else if let Some(binary) = digits.strip_prefix("0b") {
        i128::from_str_radix(binary, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        i128::from_str_radix(digits, 8)
    } else {
        digits.parse()
    };
    value.ok().map(Number::Int)
}

/// The value of a text that is nothing but an integer literal.
pub(crate) fn integer_literal(text: &str) -> Option<i128> {
    match number(text.trim())? {
        Number::Int(value) => Some(value),
        _ => None,
    }
}
