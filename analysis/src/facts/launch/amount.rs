//! Numbers that are known within bounds, with bounds that may be expressions.

/// A number that isn't below `at_least` nor above `at_most`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Amount {
    /// Never fewer.
    pub at_least: u64,
    /// Never more.
    pub at_most: Bound,
}

/// An upper bound.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum Bound {
    /// A number.
    Constant(u64),
    /// An expression over the launching function's variables: `(end - begin) * blockDim.x`.
    Symbolic(String),
    /// None was found.
    Unbounded,
}

impl Bound {
    /// The product.
    pub fn times(&self, other: &Bound) -> Bound {
        match (self, other) {
            (Bound::Constant(0), _) | (_, Bound::Constant(0)) => Bound::Constant(0),
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => Bound::Unbounded,
            (Bound::Constant(1), x) | (x, Bound::Constant(1)) => x.clone(),
            (Bound::Constant(a), Bound::Constant(b)) => Bound::Constant(a.saturating_mul(*b)),
            (a, b) => Bound::Symbolic(format!("{} * {}", a.factor(), b.factor())),
        }
    }

    /// It's an expression with this in it.
    pub(super) fn mentions(&self, name: &str) -> bool {
        matches!(self, Bound::Symbolic(text) if text.contains(name))
    }

    /// The text as a factor of a product.
    pub(super) fn factor(&self) -> String {
        let text = self.to_string();
        let product = |c: char| c.is_ascii_alphanumeric() || "_.*[] ".contains(c);
        if text.chars().all(product) || is_enclosed(&text) {
            text
        } else {
            format!("({text})")
        }
    }
}

/// The text as a summand: in parentheses where an operator in it binds less than a sum.
pub(super) fn summand(text: &str) -> String {
    let weak = ["?", "<", ">", "==", "!=", "&", "|", "^", "=", ","];
    match weak.iter().any(|operator| text.contains(operator)) && !is_enclosed(text) {
        true => format!("({text})"),
        false => text.to_owned(),
    }
}

/// The text as what something is divided by: in parentheses unless it is a name, a number or enclosed.
pub(super) fn divisor(text: &str) -> String {
    let atom = |c: char| c.is_ascii_alphanumeric() || "_.[]:".contains(c);
    match text.chars().all(atom) || is_enclosed(text) {
        true => text.to_owned(),
        false => format!("({text})"),
    }
}

/// One pair of parentheses is around it all.
fn is_enclosed(text: &str) -> bool {
    text.starts_with('(') && matching_parenthesis(text) == Some(text.len() - 1)
}

/// Index of the parenthesis that closes the first character.
fn matching_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 0u32;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return Some(at),
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Bound::Constant(n) => write!(f, "{n}"),
            Bound::Symbolic(text) => f.write_str(text),
            Bound::Unbounded => f.write_str("unbounded"),
        }
    }
}

impl Amount {
    /// Exactly `n`.
    pub fn exactly(n: u64) -> Amount {
        Amount {
            at_least: n,
            at_most: Bound::Constant(n),
        }
    }

    /// From nothing to `bound`.
    pub fn up_to(bound: Bound) -> Amount {
        Amount {
            at_least: 0,
            at_most: bound,
        }
    }

    /// The product.
    pub fn times(&self, other: &Amount) -> Amount {
        Amount {
            at_least: self.at_least.saturating_mul(other.at_least),
            at_most: self.at_most.times(&other.at_most),
        }
    }

    /// The number, when only one is possible.
    pub fn constant(&self) -> Option<u64> {
        (self.at_most == Bound::Constant(self.at_least)).then_some(self.at_least)
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.at_least, &self.at_most) {
            (n, Bound::Constant(m)) if n == *m => write!(f, "{n}"),
            (0, Bound::Constant(1)) => f.write_str("0 or 1"),
            (n, Bound::Unbounded) => write!(f, "{n} or more"),
            (0, m) => write!(f, "up to {m}"),
            (n, m) => write!(f, "{n} to {m}"),
        }
    }
}
