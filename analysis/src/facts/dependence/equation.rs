//! Whether two subscripts can be equal: the GCD test and Banerjee's inequalities (Banerjee, "Dependence Analysis for
//! Supercomputing", 1988; Allen and Kennedy, "Optimizing Compilers for Modern Architectures", 2002, §3.3.2), over products of
//! symbols in place of loop indices, and with the conditions under which the subscripts are evaluated (after Fourier and Motzkin:
//! a condition is added to the difference so that a product of symbols cancels).
//!
//! Index arithmetic that may wrap around is known modulo 2³² only. The tests then ask for equality modulo 2³².

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::polynomial::{Interval, Polynomial, Symbol};

/// 2³²
pub(super) const WORD: i128 = 1 << 32;

/// Conditions that eliminations may use up to this depth.
const DEPTH: u32 = 3;
/// Eliminations that are tried for one bound.
const BUDGET: u32 = 1500;

/// How much may still be tried for a comparison: a step is about one operation on polynomials. Without any left, less is proven.
#[derive(Clone, Debug)]
pub(super) struct Effort(Rc<Cell<u32>>);

impl Effort {
    /// For all pairs of accesses of one comparison: far more than programs need whose subscripts a reader can follow.
    const STEPS: u32 = 60_000;

    /// Takes steps; `false` when none were left.
    pub fn spend(&self, steps: u32) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(steps));
        left > 0
    }
}

impl Default for Effort {
    fn default() -> Effort {
        Effort(Rc::new(Cell::new(Effort::STEPS)))
    }
}

/// What is known of the symbols of two executions.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// The values that symbols can have.
    pub ranges: BTreeMap<Symbol, Interval>,
    /// What isn't negative.
    pub nonnegative: Vec<Polynomial>,
    /// What is zero, modulo 2³² at least; exactly, when the flag says so.
    pub zero: Vec<(Polynomial, bool)>,
    /// What may still be tried.
    pub effort: Effort,
}

impl Facts {
    /// Values of a symbol.
    pub fn range(&self, symbol: &Symbol) -> Interval {
        self.ranges.get(symbol).copied().unwrap_or(Interval::ALL)
    }

    /// Values of a polynomial.
    pub fn interval(&self, p: &Polynomial) -> Interval {
        p.interval(&|s| self.range(s))
    }

    /// Narrows the ranges by the conditions.
    pub fn tighten(&mut self) {
        for _ in 0..2 {
            for g in &self.nonnegative {
                for (product, c) in g.terms() {
                    let [symbol] = product else { continue };
                    let Some(rest) = Polynomial::symbol(symbol.clone())
                        .scale(-c)
                        .and_then(|own| g.plus(&own))
                    else {
                        continue;
                    };
                    // `c * s + rest >= 0`
                    let Some(most) = rest
                        .interval(&|s| self.ranges.get(s).copied().unwrap_or(Interval::ALL))
                        .hi
                    else {
                        continue;
                    };
                    let Some(size) = c.checked_abs() else { continue };
                    let bound = match (c > 0, most.checked_neg()) {
                        (true, Some(least)) => Interval {
                            lo: Some(-(-least).div_euclid(size)),
                            hi: None,
                        },
                        (false, _) => Interval {
                            lo: None,
                            hi: Some(most.div_euclid(size)),
                        },
                        _ => continue,
                    };
                    let slot = self.ranges.entry(symbol.clone()).or_insert(Interval::ALL);
                    *slot = slot.meet(bound);
                }
            }
        }
    }

    /// No execution meets the conditions.
    pub fn contradict(&self) -> bool {
        let empty = |i: &Interval| matches!((i.lo, i.hi), (Some(lo), Some(hi)) if lo > hi);
        self.ranges.values().any(empty)
            || self
                .nonnegative
                .iter()
                .any(|g| self.upper(g).is_some_and(|most| most < 0))
            || self.zero.iter().any(|(p, exact)| self.never_zero(p, *exact))
    }

    /// The difference can't be zero; with `exact` unset: not even modulo 2³².
    pub fn never_zero(&self, difference: &Polynomial, exact: bool) -> bool {
        if gcd_excludes(difference, exact) {
            return true;
        }
        let most = self.upper(difference);
        let least = difference
            .scale(-1)
            .and_then(|d| self.upper(&d))
            .and_then(i128::checked_neg);
        if exact {
            return most.is_some_and(|m| m < 0) || least.is_some_and(|l| l > 0);
        }
        match (least, most) {
            // No multiple of 2³² lies in between.
            (Some(least), Some(most)) => {
                least > most || most.div_euclid(WORD) < least.div_euclid(WORD) + i128::from(least.rem_euclid(WORD) != 0)
            }
            _ => false,
        }
    }

    /// An upper bound: Banerjee's, and what the conditions make of it.
    fn upper(&self, p: &Polynomial) -> Option<i128> {
        let budget = Cell::new(BUDGET.min(self.effort.0.get()));
        let given = budget.get();
        let bound = self.bound(p, 1, DEPTH, &budget);
        self.effort.spend(given - budget.get());
        bound
    }

    /// An upper bound of `p / scale`.
    fn bound(&self, p: &Polynomial, scale: i128, depth: u32, budget: &Cell<u32>) -> Option<i128> {
        let mut best = self.interval(p).hi.map(|hi| hi.div_euclid(scale));
        if depth == 0 {
            return best;
        }
        for (product, c) in p.terms() {
            if product.is_empty() {
                continue;
            }
            for g in &self.nonnegative {
                let other = g.coefficient(product);
                if other == 0 || (other > 0) == (c > 0) {
                    continue;
                }
                let Some(left) = budget.get().checked_sub(1) else {
                    return best;
                };
                budget.set(left);
                let sum = other
                    .checked_abs()
                    .and_then(|o| p.scale(o).zip(scale.checked_mul(o)))
                    .zip(c.checked_abs().and_then(|c| g.scale(c)))
                    .and_then(|((p, scale), g)| p.plus(&g).zip(Some(scale)));
                let Some((sum, scale)) = sum else { continue };
                if let Some(found) = self.bound(&sum, scale, depth - 1, budget) {
                    best = Some(best.map_or(found, |b| b.min(found)));
                }
            }
        }
        best
    }
}

/// The GCD test: the greatest common divisor of the coefficients divides the constant, or there is no solution.
fn gcd_excludes(difference: &Polynomial, exact: bool) -> bool {
    let mut divisor = if exact { 0 } else { WORD };
    let mut constant = 0;
    for (product, c) in difference.terms() {
        if product.is_empty() {
            constant = c;
        } else {
            divisor = gcd(divisor, c);
        }
    }
    match divisor {
        0 => constant != 0,
        _ => constant.checked_rem(divisor) != Some(0),
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i128::try_from(a).unwrap_or(1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn s(n: u32) -> Polynomial {
        Polynomial::symbol(Symbol::Parameter(n))
    }

    fn sum(parts: &[(i128, Polynomial)]) -> Polynomial {
        parts.iter().fold(Polynomial::default(), |sum, (c, p)| {
            sum.plus(&p.scale(*c).unwrap()).unwrap()
        })
    }

    fn one() -> Polynomial {
        Polynomial::constant(1)
    }

    #[test]
    fn greatest_common_divisor() {
        let facts = Facts::default();
        // 2i - 2j + 1
        let odd = sum(&[(2, s(0)), (-2, s(1)), (1, one())]);
        assert!(facts.never_zero(&odd, true) && facts.never_zero(&odd, false));
        assert!(!facts.never_zero(&sum(&[(2, s(0)), (-2, s(1)), (4, one())]), true));
        // 3i - 3j + 1: divisible modulo 2³², since 3 has an inverse there.
        let thirds = sum(&[(3, s(0)), (-3, s(1)), (1, one())]);
        assert!(facts.never_zero(&thirds, true) && !facts.never_zero(&thirds, false));
        assert!(facts.never_zero(&one(), true) && !facts.never_zero(&Polynomial::default(), true));
        assert!(!facts.never_zero(&Polynomial::constant(WORD), false));
    }

    #[test]
    fn bounds() {
        let mut facts = Facts::default();
        facts.ranges.insert(Symbol::Parameter(0), Interval::new(0, 63));
        facts.ranges.insert(Symbol::Parameter(1), Interval::new(0, 63));
        // 64 + i - j
        let far = sum(&[(64, one()), (1, s(0)), (-1, s(1))]);
        assert!(facts.never_zero(&far, true) && facts.never_zero(&far, false));
        assert!(!facts.never_zero(&sum(&[(63, one()), (1, s(0)), (-1, s(1))]), true));
        // Close to 2³²: equal modulo 2³².
        let wraps = sum(&[(WORD - 5, one()), (1, s(0))]);
        assert!(facts.never_zero(&wraps, true) && !facts.never_zero(&wraps, false));
    }

    #[test]
    fn conditions() {
        let mut facts = Facts::default();
        facts
            .ranges
            .insert(Symbol::Parameter(0), Interval { lo: Some(0), hi: None });
        facts
            .ranges
            .insert(Symbol::Parameter(1), Interval { lo: Some(0), hi: None });
        // i < n and j >= n
        facts.nonnegative = vec![
            sum(&[(1, s(2)), (-1, s(0)), (-1, one())]),
            sum(&[(1, s(1)), (-1, s(2))]),
        ];
        let difference = sum(&[(1, s(0)), (-1, s(1))]);
        assert!(facts.never_zero(&difference, true));
        facts.nonnegative.pop();
        assert!(!facts.never_zero(&difference, true));
        // i < n and i > n
        facts.nonnegative.push(sum(&[(1, s(0)), (-1, s(2)), (-1, one())]));
        assert!(facts.contradict());
    }

    #[test]
    fn ranges_follow_from_conditions() {
        let mut facts = Facts::default();
        facts
            .ranges
            .insert(Symbol::Parameter(0), Interval { lo: Some(0), hi: None });
        facts.nonnegative = vec![sum(&[(1, s(1)), (-1, s(0)), (-1, one())])];
        facts.tighten();
        assert_eq!(facts.range(&Symbol::Parameter(1)), Interval { lo: Some(1), hi: None });
        facts.ranges.insert(Symbol::Parameter(0), Interval::new(0, 9));
        facts.nonnegative = vec![sum(&[(2, s(1)), (1, s(0)), (-12, one())])];
        facts.tighten();
        // 2n >= 12 - i >= 3
        assert_eq!(facts.range(&Symbol::Parameter(1)).lo, Some(2));
    }
}
