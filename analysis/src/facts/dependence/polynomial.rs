//! Polynomials with integer coefficients over symbols, and what values they can take.
//!
//! All arithmetic is checked: what doesn't fit into 128 bits, or gets too large to be worth it, isn't known.

use std::collections::BTreeMap;

use crate::hir::{BindingId, Builtin, ExprId};

/// An integer that a program computes and that isn't looked into.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue)]
pub enum Symbol {
    /// A parameter that keeps its argument's value, by index.
    Parameter(u32),
    /// `threadIdx.x`, by axis.
    Builtin(Builtin, u8),
    /// A local variable that keeps its value, or a loop's counter within an iteration.
    Variable(BindingId),
    /// The value of an expression, at one evaluation.
    Opaque(ExprId),
    /// A name from outside of the function that stands for a constant.
    Named(String),
    /// A symbol of a callee or child grid, renamed.
    Fresh(u32),
    /// A built-in variable of a child grid, renamed.
    Index(u32),
    /// A symbol of one of two executions that are compared.
    Side(bool, Box<Symbol>),
    /// By how much more than one two numbers differ.
    Distance(u8),
}

/// Values from `lo` to `hi`; `None`: no bound is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Interval {
    /// Smallest value.
    pub lo: Option<i128>,
    /// Largest value.
    pub hi: Option<i128>,
}

impl Interval {
    /// All integers.
    pub const ALL: Interval = Interval { lo: None, hi: None };

    /// From `lo` to `hi`.
    pub fn new(lo: i128, hi: i128) -> Interval {
        Interval {
            lo: Some(lo),
            hi: Some(hi),
        }
    }

    /// Whether all its values lie in the other.
    pub fn within(self, other: Interval) -> bool {
        let lo = other.lo.is_none_or(|o| self.lo.is_some_and(|s| s >= o));
        let hi = other.hi.is_none_or(|o| self.hi.is_some_and(|s| s <= o));
        lo && hi
    }

    /// The values that both have.
    pub fn meet(self, other: Interval) -> Interval {
        let pick = |a: Option<i128>, b: Option<i128>, f: fn(i128, i128) -> i128| match (a, b) {
            (Some(a), Some(b)) => Some(f(a, b)),
            (a, b) => a.or(b),
        };
        Interval {
            lo: pick(self.lo, other.lo, i128::max),
            hi: pick(self.hi, other.hi, i128::min),
        }
    }

    /// The values that either has, and those in between.
    pub fn hull(self, other: Interval) -> Interval {
        Interval {
            lo: self.lo.zip(other.lo).map(|(a, b)| a.min(b)),
            hi: self.hi.zip(other.hi).map(|(a, b)| a.max(b)),
        }
    }

    /// Sums of values of the two.
    pub fn plus(self, other: Interval) -> Interval {
        let add = |a: Option<i128>, b: Option<i128>| a.zip(b).and_then(|(a, b)| a.checked_add(b));
        Interval {
            lo: add(self.lo, other.lo),
            hi: add(self.hi, other.hi),
        }
    }

    /// Products of values of the two.
    pub fn times(self, other: Interval) -> Interval {
        let zero = |i: Interval| i == Interval::new(0, 0);
        if zero(self) || zero(other) {
            return Interval::new(0, 0);
        }
        if let (Some(a), Some(b), Some(c), Some(d)) = (self.lo, self.hi, other.lo, other.hi) {
            let corners = [(a, c), (a, d), (b, c), (b, d)].map(|(x, y)| x.checked_mul(y));
            if let [Some(p), Some(q), Some(r), Some(s)] = corners {
                return Interval::new(p.min(q).min(r).min(s), p.max(q).max(r).max(s));
            }
            return Interval::ALL;
        }
        // With a bound missing, only signs tell something.
        let at_least = |i: Interval| i.lo.filter(|lo| *lo >= 0);
        let at_most = |i: Interval| i.hi.filter(|hi| *hi <= 0);
        let above = |a: i128, b: i128| Interval {
            lo: a.checked_mul(b).or(Some(0)),
            hi: None,
        };
        let below = |a: i128, b: i128| Interval {
            lo: None,
            hi: a.checked_mul(b).or(Some(0)),
        };
        match (at_least(self), at_most(self), at_least(other), at_most(other)) {
            (Some(a), _, Some(b), _) => above(a, b),
            (_, Some(a), _, Some(b)) => above(a, b),
            (Some(a), _, _, Some(b)) | (_, Some(b), Some(a), _) => below(a, b),
            _ => Interval::ALL,
        }
    }
}

/// A sum of products of symbols with coefficients other than zero. The empty product stands for 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue)]
pub struct Polynomial {
    terms: BTreeMap<Vec<Symbol>, i128>,
}

/// Polynomials with more terms than this aren't followed.
const MAX_TERMS: usize = 24;
/// Nor those of a higher degree.
const MAX_DEGREE: usize = 5;

impl Polynomial {
    /// A number.
    pub fn constant(value: i128) -> Polynomial {
        let mut p = Polynomial::default();
        if value != 0 {
            p.terms.insert(Vec::new(), value);
        }
        p
    }

    /// A symbol.
    pub fn symbol(symbol: Symbol) -> Polynomial {
        Polynomial {
            terms: BTreeMap::from([(vec![symbol], 1)]),
        }
    }

    /// The products and their coefficients.
    pub fn terms(&self) -> impl Iterator<Item = (&[Symbol], i128)> {
        self.terms.iter().map(|(product, c)| (product.as_slice(), *c))
    }

    /// The coefficient of a product of symbols.
    pub fn coefficient(&self, product: &[Symbol]) -> i128 {
        self.terms.get(product).copied().unwrap_or(0)
    }

    /// The number, when it is one.
    pub fn as_constant(&self) -> Option<i128> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// All symbols in it.
    pub fn symbols(&self) -> impl Iterator<Item = &Symbol> {
        self.terms.keys().flatten()
    }

    /// The sum.
    pub fn plus(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut sum = self.clone();
        for (product, c) in &other.terms {
            let slot = sum.terms.entry(product.clone()).or_insert(0);
            *slot = slot.checked_add(*c)?;
        }
        sum.terms.retain(|_, c| *c != 0);
        (sum.terms.len() <= MAX_TERMS).then_some(sum)
    }

    /// This many times.
    pub fn scale(&self, by: i128) -> Option<Polynomial> {
        if by == 0 {
            return Some(Polynomial::default());
        }
        let mut scaled = self.clone();
        for c in scaled.terms.values_mut() {
            *c = c.checked_mul(by)?;
        }
        Some(scaled)
    }

    /// The difference.
    pub fn minus(&self, other: &Polynomial) -> Option<Polynomial> {
        self.plus(&other.scale(-1)?)
    }

    /// The product.
    pub fn times(&self, other: &Polynomial) -> Option<Polynomial> {
        let mut result = Polynomial::default();
        for (a, c) in &self.terms {
            for (b, d) in &other.terms {
                let mut product = [a.as_slice(), b.as_slice()].concat();
                if product.len() > MAX_DEGREE {
                    return None;
                }
                product.sort();
                let term = Polynomial {
                    terms: BTreeMap::from([(product, c.checked_mul(*d)?)]),
                };
                result = result.plus(&term)?;
            }
        }
        Some(result)
    }

    /// With polynomials in place of symbols.
    pub fn substitute(&self, with: &mut dyn FnMut(&Symbol) -> Option<Polynomial>) -> Option<Polynomial> {
        let mut result = Polynomial::default();
        for (product, c) in &self.terms {
            let mut term = Polynomial::constant(*c);
            for symbol in product {
                term = term.times(&with(symbol)?)?;
            }
            result = result.plus(&term)?;
        }
        Some(result)
    }

    /// The values that it can take at most, given those of its symbols.
    pub fn interval(&self, range: &dyn Fn(&Symbol) -> Interval) -> Interval {
        let mut sum = Interval::new(0, 0);
        for (product, c) in &self.terms {
            let mut term = Interval::new(*c, *c);
            for symbol in product {
                term = term.times(range(symbol));
            }
            sum = sum.plus(term);
        }
        sum
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn s(n: u32) -> Polynomial {
        Polynomial::symbol(Symbol::Parameter(n))
    }

    #[test]
    fn arithmetic_is_that_of_a_ring() {
        let sum = s(0).plus(&s(1)).unwrap();
        let difference = s(0).minus(&s(1)).unwrap();
        let product = sum.times(&difference).unwrap();
        let squares = s(0).times(&s(0)).unwrap().minus(&s(1).times(&s(1)).unwrap()).unwrap();
        assert_eq!(product, squares);
        assert_eq!(sum.minus(&sum).unwrap().as_constant(), Some(0));
        assert_eq!(s(0).scale(i128::MAX).unwrap().scale(2), None);
        let shifted = product.substitute(&mut |_| Some(Polynomial::constant(3))).unwrap();
        assert_eq!(shifted.as_constant(), Some(0));
    }

    #[test]
    fn intervals() {
        let range = |symbol: &Symbol| match symbol {
            Symbol::Parameter(0) => Interval::new(-2, 3),
            Symbol::Parameter(1) => Interval { lo: Some(4), hi: None },
            _ => Interval::ALL,
        };
        let p = s(0).scale(-5).unwrap().plus(&Polynomial::constant(1)).unwrap();
        assert_eq!(p.interval(&range), Interval::new(-14, 11));
        let square = s(1).times(&s(1)).unwrap();
        assert_eq!(
            (square.interval(&range).lo, square.interval(&range).hi),
            (Some(16), None)
        );
        assert_eq!(s(0).times(&s(1)).unwrap().interval(&range), Interval::ALL);
        assert!(Interval::new(1, 2).within(Interval::new(1, 2)) && !Interval::ALL.within(Interval::new(0, 1)));
    }
}
