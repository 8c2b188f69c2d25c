//! The arithmetic types of C++ and CUDA, by their names.

/// How an element's bits are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// An integer with a sign.
    Signed,
    /// An integer without one.
    Unsigned,
    /// A truth value.
    Bool,
    /// A floating point number.
    Float,
}

/// An arithmetic type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// How its bits are read.
    pub element: Element,
    /// How many there are.
    pub bytes: u32,
}

impl Scalar {
    /// Whether an integer type can hold a number.
    pub fn holds(self, number: i64) -> bool {
        let bits = self.bytes * 8;
        match self.element {
            Element::Bool => (0..=1).contains(&number),
            Element::Float => true,
            Element::Signed if bits >= 64 => true,
            Element::Signed => (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(&number),
            Element::Unsigned if bits >= 64 => number >= 0,
            Element::Unsigned => (0..1i64 << bits).contains(&number),
        }
    }

    /// Whether NumPy's type of this kind and size is the same.
    pub fn is(self, kind: char, size: u32) -> bool {
        let own = match self.element {
            Element::Signed => 'i',
            Element::Unsigned => 'u',
            Element::Bool => 'b',
            Element::Float => 'f',
        };
        (own, self.bytes) == (kind, size)
    }
}

/// The type of this name, without qualifiers; `None`: it isn't known.
pub fn scalar(name: &str) -> Option<Scalar> {
    use Element::{Bool, Float, Signed, Unsigned};
    let words: Vec<&str> = name.trim().trim_start_matches("std::").split_whitespace().collect();
    let long = if cfg!(windows) { 4 } else { 8 };
    let (element, bytes) = match words.as_slice() {
        ["bool"] => (Bool, 1),
        // What `char` is without a word about its sign differs between machines; on those with CUDA it has one, but on ARM.
        ["char"] => (
            if cfg!(target_arch = "aarch64") {
                Unsigned
            } else {
                Signed
            },
            1,
        ),
        ["signed", "char"] | ["int8_t"] => (Signed, 1),
        ["unsigned", "char"] | ["uint8_t"] => (Unsigned, 1),
        ["short"] | ["short", "int"] | ["int16_t"] => (Signed, 2),
        ["unsigned", "short"] | ["unsigned", "short", "int"] | ["uint16_t"] | ["ushort"] => (Unsigned, 2),
        ["int"] | ["signed"] | ["signed", "int"] | ["int32_t"] => (Signed, 4),
        ["unsigned"] | ["unsigned", "int"] | ["uint32_t"] | ["uint"] => (Unsigned, 4),
        ["long"] | ["long", "int"] => (Signed, long),
        ["unsigned", "long"] | ["unsigned", "long", "int"] | ["ulong"] => (Unsigned, long),
        ["long", "long"] | ["long", "long", "int"] | ["int64_t"] | ["ptrdiff_t"] => (Signed, 8),
        ["unsigned", "long", "long"] | ["unsigned", "long", "long", "int"] | ["uint64_t"] | ["size_t"] => (Unsigned, 8),
        ["float"] => (Float, 4),
        ["double"] => (Float, 8),
        _ => return None,
    };
    Some(Scalar { element, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert!(scalar("std::uint32_t").is_some_and(|kind| kind.is('u', 4) && !kind.is('i', 4)));
        assert!(scalar("unsigned long long").is_some_and(|kind| kind.holds(i64::MAX) && !kind.holds(-1)));
        assert!(scalar("int").is_some_and(|kind| !kind.holds(1 << 31) && kind.holds(-(1 << 31))));
        assert_eq!(scalar("Node"), None);
    }
}
