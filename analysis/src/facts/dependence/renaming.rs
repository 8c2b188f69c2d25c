//! What a callee or child computes, in terms of its caller.

use std::collections::BTreeMap;

use super::guard::Guard;
use super::polynomial::{Interval, Polynomial, Symbol};
use super::subscript::{Fit, Value, default_range};

/// What a symbol is for the caller, and when it is exactly that.
pub(super) type Image = (Polynomial, Vec<Fit>);

/// Renames the symbols of a callee or child.
pub(super) struct Renaming<'a> {
    image: &'a dyn Fn(&Symbol) -> Option<Image>,
    known: BTreeMap<Symbol, Image>,
    theirs: &'a BTreeMap<Symbol, Interval>,
    narrower: &'a BTreeMap<Symbol, Interval>,
    /// The number of renamed symbols.
    pub fresh: u32,
    /// Their values.
    pub ranges: BTreeMap<Symbol, Interval>,
}

impl<'a> Renaming<'a> {
    /// With what is known of symbols, their values in the callee, and what the call says about those; symbols of which nothing is
    /// known get numbers from `fresh` on.
    pub fn new(
        image: &'a dyn Fn(&Symbol) -> Option<Image>,
        theirs: &'a BTreeMap<Symbol, Interval>,
        narrower: &'a BTreeMap<Symbol, Interval>,
        fresh: u32,
    ) -> Renaming<'a> {
        Renaming {
            image,
            known: BTreeMap::new(),
            theirs,
            narrower,
            fresh,
            ranges: BTreeMap::new(),
        }
    }

    fn symbol(&mut self, symbol: &Symbol) -> Image {
        if let Some(known) = self.known.get(symbol) {
            return known.clone();
        }
        let image = (self.image)(symbol).unwrap_or_else(|| {
            let fresh = match symbol {
                Symbol::Builtin(..) | Symbol::Index(_) => Symbol::Index(self.fresh),
                _ => Symbol::Fresh(self.fresh),
            };
            self.fresh += 1;
            let all = [self.theirs.get(symbol), self.narrower.get(symbol)];
            let range = all
                .into_iter()
                .flatten()
                .fold(default_range(symbol), |range, other| range.meet(*other));
            self.ranges.insert(fresh.clone(), range);
            (Polynomial::symbol(fresh), Vec::new())
        });
        self.known.insert(symbol.clone(), image.clone());
        image
    }

    fn polynomial(&mut self, p: &Polynomial, fits: &mut Vec<Fit>) -> Option<Polynomial> {
        p.substitute(&mut |symbol| {
            let (image, needs) = self.symbol(symbol);
            for fit in needs {
                if !fits.contains(&fit) {
                    fits.push(fit);
                }
            }
            Some(image)
        })
    }

    fn fits(&mut self, all: &[Fit], into: &mut Vec<Fit>) -> Option<()> {
        for fit in all {
            let value = self.polynomial(&fit.value, into)?;
            into.push(Fit {
                value,
                range: fit.range,
            });
        }
        Some(())
    }

    /// An integer.
    pub fn value(&mut self, value: &Value) -> Option<Value> {
        let mut fits = Vec::new();
        self.fits(&value.fits, &mut fits)?;
        Some(Value {
            polynomial: self.polynomial(&value.polynomial, &mut fits)?,
            fits,
            ty: value.ty,
        })
    }

    /// A condition.
    pub fn guard(&mut self, guard: &Guard) -> Option<Guard> {
        let mut fits = Vec::new();
        self.fits(&guard.fits, &mut fits)?;
        Some(Guard {
            value: self.polynomial(&guard.value, &mut fits)?,
            fits,
            zero: guard.zero,
        })
    }
}
