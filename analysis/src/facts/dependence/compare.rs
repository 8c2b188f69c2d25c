//! Compares what two executions do to memory: pairs of accesses, each by one of the two.

use std::collections::{BTreeMap, BTreeSet};

use super::access::{Access, Gap, Kind};
use super::alias::{Relation, relation};
use super::equation::{Effort, Facts};
use super::guard::Guard;
use super::location::Root;
use super::polynomial::{Interval, Polynomial, Symbol};
use super::sizes::{Sizes, sizes};
use super::subscript::{Fit, default_range};
use crate::base::db::Db;
use crate::base::span::Span;
use crate::hir::Builtin;
use crate::hir::items::FunctionItem;

/// One access of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Touch<'db> {
    /// The function in which it stands.
    pub function: FunctionItem<'db>,
    /// Where in that function.
    pub span: Span,
    /// What it does.
    pub kind: Kind,
    /// There are executions of which both accesses are to the same place, for sure.
    pub meets: bool,
}

impl<'db> Touch<'db> {
    pub(super) fn of(access: &Access<'db>, meets: bool) -> Touch<'db> {
        Touch {
            meets,
            function: access.function,
            span: access.span,
            kind: access.kind,
        }
    }
}

/// Whether two executions depend on each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum Dependence<'db> {
    /// They don't, and why.
    None(Independence),
    /// These two accesses are to the same place, and their order matters.
    Conflict(Touch<'db>, Touch<'db>),
    /// Not known.
    Unknown(Doubt<'db>),
}

/// Why executions are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue)]
pub enum Independence {
    /// There is only one.
    Single,
    /// Nothing that both access is written.
    ReadOnly,
    /// What one of them writes, the other doesn't access.
    Disjoint,
    /// What both write, they write in ways whose order makes no difference.
    Commuting,
}

/// Why nothing is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Doubt<'db> {
    /// A fragment of a sentence.
    pub reason: String,
    /// Where: function and place.
    pub place: Option<(FunctionItem<'db>, Span)>,
    /// The accesses that it's about.
    pub pair: Option<(Touch<'db>, Touch<'db>)>,
}

impl Doubt<'_> {
    /// One of the accesses reads, the other one writes.
    fn is_of_a_read(&self) -> bool {
        let reads = |touch: &Touch<'_>| matches!(touch.kind, Kind::Read);
        matches!(&self.pair, Some((a, b)) if reads(a) != reads(b))
    }
}

impl<'db> Dependence<'db> {
    pub(super) fn unknown(reason: impl Into<String>, place: Option<(FunctionItem<'db>, Span)>) -> Dependence<'db> {
        Dependence::Unknown(Doubt {
            reason: reason.into(),
            place,
            pair: None,
        })
    }

    pub(super) fn gap(gap: &Gap<'db>) -> Dependence<'db> {
        Dependence::unknown(gap.reason.clone(), Some((gap.function, gap.span)))
    }

    /// A conflict whose order shows in what is computed: not two that only write, or only update atomically.
    pub fn shows(&self) -> bool {
        match self {
            Dependence::Conflict(a, b) => !matches!(
                (a.kind, b.kind),
                (Kind::Write(_), Kind::Write(_)) | (Kind::Atomic { .. }, Kind::Atomic { .. })
            ),
            _ => false,
        }
    }

    /// The same for places that are the same for sure, whatever the numbers are.
    pub fn shows_for_sure(&self) -> bool {
        self.shows() && matches!(self, Dependence::Conflict(a, _) if a.meets)
    }

    /// A conflict for sure of grids that run the same code: what one of them computes and writes, another one reads. A flag that is
    /// set, or something that is updated atomically, may be meant to be read at any time.
    pub fn accumulates(&self) -> bool {
        let changes = |kind: Kind| matches!(kind, Kind::Update { .. } | Kind::Write(None) | Kind::Free);
        let reads = |kind: Kind| matches!(kind, Kind::Update { .. } | Kind::Read);
        match self {
            Dependence::Conflict(a, b) if a.meets => {
                changes(a.kind) && reads(b.kind) || reads(a.kind) && changes(b.kind) || a.kind == Kind::Free
            }
            _ => false,
        }
    }

    /// It is proven that there is none.
    pub fn is_none(&self) -> bool {
        matches!(self, Dependence::None(_))
    }

    /// The worse of two.
    pub(super) fn or(self, other: Dependence<'db>) -> Dependence<'db> {
        match (self, other) {
            // The conflict that says most.
            (a @ Dependence::Conflict(..), b @ Dependence::Conflict(..)) => {
                let weight = |d: &Dependence<'_>| (d.accumulates(), d.shows());
                if weight(&b) > weight(&a) { b } else { a }
            }
            (c @ Dependence::Conflict(..), _) | (_, c @ Dependence::Conflict(..)) => c,
            // Who reads what another one writes needs an order sooner than two who write.
            (Dependence::Unknown(a), Dependence::Unknown(b)) => {
                Dependence::Unknown(if b.is_of_a_read() && !a.is_of_a_read() { b } else { a })
            }
            (u @ Dependence::Unknown(_), _) | (_, u @ Dependence::Unknown(_)) => u,
            (Dependence::None(a), Dependence::None(b)) => Dependence::None(a.max(b)),
        }
    }
}

/// What two executions have in common.
pub(super) enum Executions<'a> {
    /// Different threads of one block.
    Threads,
    /// Any two threads of one block, or one thread twice.
    Block,
    /// Any two threads of the grid.
    Grid,
    /// One thread, in two iterations of a loop: what stays the same in both, and for each loop whose iterations differ, outermost
    /// first, its counter with the step, where it has any.
    Iterations {
        /// Stays the same while the thread runs.
        stable: &'a dyn Fn(&Symbol) -> bool,
        /// Counters; `None`: a loop that counts nothing.
        counters: &'a [Option<(Symbol, Polynomial)>],
    },
}

/// The comparison of the executions of one kernel.
pub(super) struct Comparison<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    executions: &'a Executions<'a>,
    /// Ranges of the function's symbols, for each execution.
    ranges: [&'a BTreeMap<Symbol, Interval>; 2],
    sizes: &'db Sizes,
    cases: Vec<BTreeMap<Symbol, Polynomial>>,
    effort: Effort,
}

/// More pairs than this aren't compared.
const MAX_PAIRS: usize = 4000;

impl<'a, 'db> Comparison<'a, 'db> {
    /// For a kernel, or for the iterations of a loop in any function.
    pub fn new(
        db: &'db dyn Db,
        function: FunctionItem<'db>,
        executions: &'a Executions<'a>,
        ranges: [&'a BTreeMap<Symbol, Interval>; 2],
    ) -> Comparison<'a, 'db> {
        let mut comparison = Comparison {
            db,
            function,
            executions,
            ranges,
            sizes: sizes(db, function),
            cases: Vec::new(),
            effort: Effort::default(),
        };
        comparison.cases = comparison.cases();
        comparison
    }

    /// The ways in which the two executions may differ: what symbols of the one are in terms of the other's.
    fn cases(&self) -> Vec<BTreeMap<Symbol, Polynomial>> {
        let side = |side: bool, symbol: &Symbol| Symbol::Side(side, Box::new(symbol.clone()));
        // One more than the other's, by `Distance` at least, times the step.
        let further = |symbol: &Symbol, step: &Polynomial, ahead: bool| {
            let more = Polynomial::constant(1).plus(&Polynomial::symbol(Symbol::Distance(0)))?;
            let other = Polynomial::symbol(side(!ahead, symbol));
            Some((side(ahead, symbol), other.plus(&more.times(step)?)?))
        };
        let equal = |symbol: &Symbol| (side(false, symbol), Polynomial::symbol(side(true, symbol)));
        let mut cases = Vec::new();
        match self.executions {
            Executions::Block | Executions::Grid => cases.push(BTreeMap::new()),
            Executions::Threads => {
                let mut before = BTreeMap::new();
                // Rows before columns: a row's number usually has the larger factor.
                for axis in (0..3u8)
                    .rev()
                    .filter(|a| self.sizes.range(Builtin::BlockDim, *a) != Interval::new(1, 1))
                {
                    let index = Symbol::Builtin(Builtin::ThreadIdx, axis);
                    for ahead in [false, true] {
                        let mut case = before.clone();
                        case.extend(further(&index, &Polynomial::constant(1), ahead));
                        cases.push(case);
                    }
                    before.extend([equal(&index)]);
                }
            }
            Executions::Iterations { counters, .. } => {
                let mut before = BTreeMap::new();
                for counter in *counters {
                    match counter {
                        Some((symbol, step)) => {
                            for ahead in [false, true] {
                                let mut case = before.clone();
                                case.extend(further(symbol, step, ahead));
                                cases.push(case);
                            }
                            before.extend([equal(symbol)]);
                        }
                        None => cases.push(before.clone()),
                    }
                }
            }
        }
        cases
    }

    /// The symbol means the same number in both executions.
    fn shared(&self, symbol: &Symbol) -> bool {
        let grid = match symbol {
            // Each thread calls a device function with arguments of its own.
            Symbol::Parameter(_) => self.function.signature(self.db).kernel,
            Symbol::Named(_) | Symbol::Builtin(Builtin::BlockDim | Builtin::GridDim | Builtin::WarpSize, _) => true,
            _ => false,
        };
        match self.executions {
            Executions::Grid => grid,
            Executions::Block | Executions::Threads => grid || matches!(symbol, Symbol::Builtin(Builtin::BlockIdx, _)),
            Executions::Iterations { stable, .. } => {
                grid || matches!(symbol, Symbol::Builtin(..) | Symbol::Parameter(_)) || stable(symbol)
            }
        }
    }

    fn range(&self, side: bool, symbol: &Symbol) -> Interval {
        if let Symbol::Builtin(builtin, axis) = symbol {
            return self.sizes.range(*builtin, *axis);
        }
        let known = self.ranges[usize::from(side)].get(symbol).copied();
        default_range(symbol).meet(known.unwrap_or(Interval::ALL))
    }

    fn exact(&self, side: bool, fits: &[Fit]) -> bool {
        fits.iter()
            .all(|fit| fit.value.interval(&|s| self.range(side, s)).within(fit.range))
    }

    /// A polynomial of one execution, in terms of both.
    fn sided(&self, side: bool, p: &Polynomial, case: &BTreeMap<Symbol, Polynomial>) -> Option<Polynomial> {
        p.substitute(&mut |symbol| {
            if self.shared(symbol) {
                return Some(Polynomial::symbol(symbol.clone()));
            }
            let own = Symbol::Side(side, Box::new(symbol.clone()));
            Some(case.get(&own).cloned().unwrap_or_else(|| Polynomial::symbol(own)))
        })
    }

    fn facts(&self, guards: [&[Guard]; 2], case: &BTreeMap<Symbol, Polynomial>) -> Facts {
        let mut facts = Facts {
            effort: self.effort.clone(),
            ..Facts::default()
        };
        let mut symbols = BTreeSet::new();
        for (side, guards) in [false, true].into_iter().zip(guards) {
            for guard in guards {
                let exact = self.exact(side, &guard.fits);
                let Some(value) = self.sided(side, &guard.value, case) else {
                    continue;
                };
                symbols.extend(value.symbols().cloned());
                match (guard.zero, exact) {
                    (true, _) => {
                        if exact {
                            facts.nonnegative.extend(value.scale(-1));
                            facts.nonnegative.push(value.clone());
                        }
                        facts.zero.push((value, exact));
                    }
                    (false, true) => facts.nonnegative.push(value),
                    (false, false) => {}
                }
            }
        }
        // Both conditions hold: so does their difference.
        for (i, (a, _)) in facts.zero.clone().iter().enumerate() {
            for (b, _) in facts.zero.clone().iter().skip(i + 1) {
                facts.zero.extend(a.minus(b).map(|d| (d, false)));
            }
            if facts.zero.len() > 24 {
                break;
            }
        }
        for value in case.values() {
            symbols.extend(value.symbols().cloned());
        }
        symbols.extend(case.keys().cloned());
        for symbol in symbols {
            self.describe(&symbol, case, &mut facts);
        }
        facts
    }

    /// What is known of a symbol.
    fn describe(&self, symbol: &Symbol, case: &BTreeMap<Symbol, Polynomial>, facts: &mut Facts) {
        if facts.ranges.contains_key(symbol) {
            return;
        }
        let range = match symbol {
            Symbol::Side(side, inner) => self.range(*side, inner),
            Symbol::Distance(_) => match self.executions {
                Executions::Threads => Interval::new(0, 1022),
                _ => Interval { lo: Some(0), hi: None },
            },
            shared => self.range(false, shared).meet(self.range(true, shared)),
        };
        facts.ranges.insert(symbol.clone(), range);
        // What is defined by the other execution's value has its own range all the same.
        if let Some(value) = case.get(symbol) {
            for bound in [
                range
                    .lo
                    .and_then(|lo| value.plus(&Polynomial::constant(lo.checked_neg()?))),
                range.hi.and_then(|hi| Polynomial::constant(hi).minus(value)),
            ] {
                facts.nonnegative.extend(bound);
            }
        }
        let inner = match symbol {
            Symbol::Side(_, inner) => inner,
            other => other,
        };
        if let Symbol::Builtin(Builtin::ThreadIdx, axis) = inner {
            let size = Polynomial::symbol(Symbol::Builtin(Builtin::BlockDim, *axis));
            let own = case
                .get(symbol)
                .cloned()
                .unwrap_or_else(|| Polynomial::symbol(symbol.clone()));
            let room = size.minus(&own).and_then(|p| p.plus(&Polynomial::constant(-1)));
            facts.nonnegative.extend(room);
            let size = Symbol::Builtin(Builtin::BlockDim, *axis);
            let range = self.range(false, &size);
            facts.ranges.entry(size).or_insert(range);
        }
    }

    /// Whether no two such executions exist.
    pub fn single(&self, guards: &[Guard]) -> bool {
        self.cases.iter().all(|case| {
            let mut facts = self.facts([guards, guards], case);
            facts.tighten();
            facts.contradict()
        })
    }

    /// The places of two accesses are never the same.
    fn never(&self, a: &Access<'db>, b: &Access<'db>) -> bool {
        let (Some(x), Some(y)) = (&a.offset, &b.offset) else {
            return false;
        };
        if a.unit.is_none() || a.unit != b.unit {
            return false;
        }
        let exact = self.exact(false, &x.fits) && self.exact(true, &y.fits);
        self.cases.iter().all(|case| {
            let sides = self
                .sided(false, &x.polynomial, case)
                .zip(self.sided(true, &y.polynomial, case));
            let Some(difference) = sides.and_then(|(x, y)| x.minus(&y)) else {
                return false;
            };
            // What it takes to write the conditions down.
            let conditions = (a.guards.len() + b.guards.len() + 1) as u32;
            if !self.effort.spend(conditions * conditions) {
                return false;
            }
            let mut facts = self.facts([&a.guards, &b.guards], case);
            for symbol in difference.symbols() {
                self.describe(symbol, case, &mut facts);
            }
            facts.tighten();
            facts.contradict() || facts.never_zero(&difference, exact)
        })
    }

    /// The subscripts depend on nothing but the numbers of threads, so that it's clear that they meet.
    fn understood(&self, a: &Access<'db>, b: &Access<'db>) -> bool {
        let (Some(x), Some(y)) = (&a.offset, &b.offset) else {
            return false;
        };
        if a.unit.is_none() || a.unit != b.unit || a.path != b.path {
            return false;
        }
        let no_case = BTreeMap::new();
        let sides = self
            .sided(false, &x.polynomial, &no_case)
            .zip(self.sided(true, &y.polynomial, &no_case));
        let Some(difference) = sides.and_then(|(x, y)| x.minus(&y)) else {
            return false;
        };
        if is_of_rows(&difference) && [a, b].iter().any(|access| access.guards.iter().any(ends_rows)) {
            return false;
        }
        difference.symbols().all(|symbol| match symbol {
            Symbol::Builtin(..) | Symbol::Distance(_) => true,
            Symbol::Side(_, inner) => {
                let counts = |e: &Executions<'_>| match e {
                    Executions::Iterations { counters, .. } => {
                        counters.iter().flatten().any(|(counter, _)| counter == &**inner)
                    }
                    _ => false,
                };
                matches!(**inner, Symbol::Builtin(..) | Symbol::Index(_)) || counts(self.executions)
            }
            _ => false,
        })
    }

    /// Two executions get to both accesses at the same place, whatever the numbers are: the subscripts are the same for one thread of
    /// two grids, or for the first thread of each, and what differs between the executions isn't in them.
    fn meet(&self, a: &Access<'db>, b: &Access<'db>) -> bool {
        let all = |p: &Polynomial| Some(p.clone());
        // The first one is there however large grids and blocks are; their sizes aren't 0.
        let from_zero = |symbol: &Symbol| self.range(false, symbol).meet(self.range(true, symbol)).lo == Some(0);
        let first = |p: &Polynomial| {
            p.substitute(&mut |symbol| match symbol {
                Symbol::Index(_) if from_zero(symbol) => Some(Polynomial::constant(0)),
                other => Some(Polynomial::symbol(other.clone())),
            })
        };
        self.meet_for(a, b, &all) || self.meet_for(a, b, &first)
    }

    /// The same for the threads of grids for which a number is what `of` says.
    fn meet_for(&self, a: &Access<'db>, b: &Access<'db>, of: &dyn Fn(&Polynomial) -> Option<Polynomial>) -> bool {
        let alike = |symbol: &Symbol| match symbol {
            Symbol::Index(_) => true,
            // Any two threads may also be one thread.
            Symbol::Builtin(..) => !matches!(self.executions, Executions::Threads) || self.shared(symbol),
            _ => self.shared(symbol),
        };
        let holds = |guard: &Guard| {
            let Some(value) = of(&guard.value) else { return false };
            match value.as_constant() {
                Some(number) if guard.zero => number == 0,
                Some(number) => number >= 0,
                None => !guard.zero || value.symbols().all(alike),
            }
        };
        let (Some(x), Some(y)) = (&a.offset, &b.offset) else {
            return false;
        };
        let (Some(x), Some(y)) = (of(&x.polynomial), of(&y.polynomial)) else {
            return false;
        };
        a.root == b.root
            && a.guards.iter().chain(&b.guards).all(holds)
            && x.symbols().chain(y.symbols()).all(alike)
            && x.minus(&y) == Some(Polynomial::constant(0))
    }

    /// Compares two accesses.
    pub fn pair(&self, a: &Access<'db>, b: &Access<'db>) -> Dependence<'db> {
        if a.kind.reads_only() && b.kind.reads_only() {
            return Dependence::None(Independence::ReadOnly);
        }
        let touches = || {
            let meets = self.meet(a, b);
            (Touch::of(a, meets), Touch::of(b, meets))
        };
        let doubt = |reason: String| {
            Dependence::Unknown(Doubt {
                reason,
                place: None,
                pair: Some(touches()),
            })
        };
        // In a device function, each thread may have been called with something else.
        let own = self.function.signature(self.db).kernel || matches!(self.executions, Executions::Iterations { .. });
        let related = if own {
            relation(self.db, self.function, &a.root, &b.root)
        } else {
            Relation::Unknown("callers of a device function decide what it accesses".to_owned())
        };
        match related {
            Relation::Distinct => return Dependence::None(Independence::Disjoint),
            Relation::Same if self.never(a, b) => return Dependence::None(Independence::Disjoint),
            _ => {}
        }
        // Places of one size overlap wholly or not at all.
        if a.kind.commutes(b.kind) && is_size(&a.width) && a.width == b.width {
            return Dependence::None(Independence::Commuting);
        }
        match related {
            Relation::Unknown(reason) => doubt(reason),
            _ if a.offset.is_none() || b.offset.is_none() => {
                doubt("which part of the memory is accessed isn't known".to_owned())
            }
            _ if self.understood(a, b) => {
                let (a, b) = touches();
                Dependence::Conflict(a, b)
            }
            _ => doubt("the subscripts may be equal".to_owned()),
        }
    }

    /// Compares all accesses of the one with all of the other.
    pub fn all(&self, a: &[Access<'db>], b: &[Access<'db>]) -> Dependence<'db> {
        let mut worst = Dependence::None(Independence::ReadOnly);
        let mut pairs = 0;
        for x in a {
            for y in b {
                // What neither writes, and a thread's own memory, is no one else's business.
                if x.kind.reads_only() && y.kind.reads_only() {
                    continue;
                }
                let private = |root: &Root| matches!(root, Root::Object(_));
                if (private(&x.root) || private(&y.root)) && !matches!(self.executions, Executions::Iterations { .. }) {
                    continue;
                }
                pairs += 1;
                if pairs > MAX_PAIRS {
                    return worst.or(Dependence::unknown("there are too many accesses to compare", None));
                }
                self.db.unwind_if_revision_cancelled();
                worst = worst.or(self.pair(x, y));
                if worst.accumulates() {
                    return worst;
                }
            }
        }
        worst
    }
}

/// Whether executions begin two places apart or more, and go on place by place: each may have a row of its own, `data + 40 * t`.
fn is_of_rows(difference: &Polynomial) -> bool {
    let is_index = |symbol: &Symbol| match symbol {
        Symbol::Side(_, inner) => matches!(**inner, Symbol::Index(_)),
        other => matches!(other, Symbol::Index(_)),
    };
    let (indices, starts): (Vec<_>, Vec<_>) = difference
        .terms()
        .filter(|(product, _)| !product.is_empty())
        .partition(|(product, _)| product.iter().all(is_index));
    let single = |factor: i128| factor.unsigned_abs() == 1;
    !starts.is_empty()
        && starts.iter().all(|(_, factor)| !single(*factor))
        && indices.iter().any(|(_, factor)| single(*factor))
}

/// Whether a condition keeps the threads of a grid below a number that isn't in sight, which may be the length of a row: `i < count`.
fn ends_rows(guard: &Guard) -> bool {
    let is_index = |symbol: &Symbol| matches!(symbol, Symbol::Index(_));
    let known = |symbol: &Symbol| is_index(symbol) || matches!(symbol, Symbol::Builtin(..));
    !guard.zero && guard.value.symbols().any(is_index) && !guard.value.symbols().all(known)
}

/// A width that is a number of bytes, rather than the name of a class.
pub(super) fn is_size(width: &Option<String>) -> bool {
    width.as_ref().is_some_and(|w| {
        let size = w.strip_prefix("unsigned ").unwrap_or(w);
        size.bytes().all(|b| b.is_ascii_digit())
    })
}
