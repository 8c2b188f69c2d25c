//! Integer expressions as polynomials over what a thread knows.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::integer::{Integer, integer};
use super::polynomial::{Interval, Polynomial, Symbol};
use super::variables::Variables;
use crate::base::db::Db;
use crate::facts::launch::constant_value;
use crate::facts::uniformity::memory::{Places, Shape, is_constant_value, written};
use crate::hir::items::FunctionItem;
use crate::hir::resolve::{Meaning, meaning_in};
use crate::hir::{BinOp, BindingId, Body, Builtin, ExprId, ExprKind, Literal, Name, Storage, UnOp};

/// A condition under which integer arithmetic computes what the polynomial says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Fit {
    /// What has to lie in the range.
    pub value: Polynomial,
    /// The range.
    pub range: Interval,
}

/// An integer: the polynomial where all of `fits` hold; equal to it modulo 2³² in any case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Value {
    /// The value.
    pub polynomial: Polynomial,
    /// When it is exactly that.
    pub fits: Vec<Fit>,
    /// The type that it's computed in.
    pub ty: Integer,
}

/// More conditions than this aren't kept.
const MAX_FITS: usize = 16;
const DEPTH: u32 = 40;

impl Value {
    /// The value of a symbol.
    pub fn symbol(symbol: Symbol, ty: Integer) -> Value {
        Value {
            polynomial: Polynomial::symbol(symbol),
            fits: Vec::new(),
            ty,
        }
    }

    /// A number.
    pub fn constant(value: i128, ty: Integer) -> Value {
        Value {
            polynomial: Polynomial::constant(value),
            fits: Vec::new(),
            ty,
        }
    }

    /// The value after conversion to a type that holds all promoted values of its kind.
    pub fn convert(mut self, ty: Integer) -> Option<Value> {
        let from = self.ty;
        let widens = from.unsigned == ty.unsigned && from.wide <= ty.narrow
            || from.unsigned && !ty.unsigned && from.wide < ty.narrow;
        if !widens && from != ty {
            self.require(ty.holds())?;
        }
        self.ty = ty;
        Some(self)
    }

    fn require(&mut self, range: Interval) -> Option<()> {
        let known = self
            .polynomial
            .as_constant()
            .is_some_and(|c| Interval::new(c, c).within(range));
        let fit = Fit {
            value: self.polynomial.clone(),
            range,
        };
        if !known && !self.fits.contains(&fit) {
            self.fits.push(fit);
        }
        (self.fits.len() <= MAX_FITS).then_some(())
    }

    /// `a op b` for `+`, `-` and `*`, in the operands' common type.
    pub fn combine(self, other: Value, op: impl Fn(&Polynomial, &Polynomial) -> Option<Polynomial>) -> Option<Value> {
        let ty = self.ty.common(other.ty);
        let (a, b) = (self.convert(ty)?, other.convert(ty)?);
        let mut result = Value {
            polynomial: op(&a.polynomial, &b.polynomial)?,
            fits: a.fits,
            ty,
        };
        for fit in b.fits {
            if !result.fits.contains(&fit) {
                result.fits.push(fit);
            }
        }
        // Signed arithmetic that overflows is undefined.
        if ty.unsigned {
            result.require(ty.holds())?;
        }
        (result.fits.len() <= MAX_FITS).then_some(result)
    }
}

/// Evaluates the expressions of one function.
pub(super) struct Evaluator<'a, 'db> {
    pub db: &'db dyn Db,
    pub function: FunctionItem<'db>,
    pub body: &'a Body,
    pub places: Places<'a>,
    pub variables: Variables,
    /// Operand to expression.
    pub parents: HashMap<ExprId, ExprId>,
    text: Arc<str>,
    /// Where control structures stand.
    pub around: Arc<crate::facts::launch::Places>,
    ranges: RefCell<BTreeMap<Symbol, Interval>>,
    known: RefCell<HashMap<BindingId, Option<Value>>>,
}

impl<'a, 'db> Evaluator<'a, 'db> {
    pub fn new(db: &'db dyn Db, function: FunctionItem<'db>, body: &'a Body) -> Evaluator<'a, 'db>
    where
        'db: 'a,
    {
        let places = Places { db, function, body };
        let mut parents = HashMap::new();
        for (i, expr) in body.exprs.iter().enumerate() {
            for operand in crate::hir::flow::operands(&expr.kind) {
                parents.insert(operand, ExprId(i as u32));
            }
        }
        Evaluator {
            db,
            function,
            body,
            variables: Variables::of(db, function, body, &places),
            places,
            parents,
            text: function.text(db),
            around: crate::facts::launch::statement_places(db, function),
            ranges: RefCell::default(),
            known: RefCell::default(),
        }
    }

    /// Ranges of the symbols that were met.
    pub fn ranges(&self) -> BTreeMap<Symbol, Interval> {
        self.ranges.borrow().clone()
    }

    fn symbol(&self, symbol: Symbol, ty: Integer, range: Interval) -> Value {
        self.ranges.borrow_mut().insert(symbol.clone(), range);
        Value::symbol(symbol, ty)
    }

    /// The type of an expression, when it's a built-in integer.
    fn integer(&self, shape: &Shape) -> Option<(Integer, Interval, bool)> {
        (shape.pointers == 0 && shape.dims == 0).then_some(())?;
        integer(&self.places.alias(&shape.base))
    }

    /// The integer type that an expression has, as an operand; `None`: it has another one, or it isn't known which.
    pub fn integer_type(&self, e: ExprId) -> Option<Integer> {
        if let Some(value) = self.value(e) {
            return Some(value.ty).filter(|ty| *ty != Integer::ANY);
        }
        match self.body.expr(self.body.strip_parens(e)).kind {
            ExprKind::Index { .. } | ExprKind::Deref(_) | ExprKind::Field { .. } | ExprKind::Name(_) => {
                let shape = self.places.shape(e)?;
                self.integer(&shape).map(|(ty, _, _)| ty)
            }
            _ => None,
        }
    }

    /// An integer of which nothing but its type is known.
    pub fn opaque(&self, e: ExprId) -> Value {
        let (ty, range, _) =
            self.places
                .shape(e)
                .and_then(|s| self.integer(&s))
                .unwrap_or((Integer::ANY, Interval::ALL, true));
        self.symbol(Symbol::Opaque(e), ty, range)
    }

    /// The value of an index: at worst a symbol.
    pub fn index(&self, e: ExprId) -> Value {
        self.value(e).unwrap_or_else(|| self.opaque(e))
    }

    /// The value of an expression; `None` when it isn't an integer or not a polynomial.
    pub fn value(&self, e: ExprId) -> Option<Value> {
        self.eval(e, DEPTH)
    }

    /// The same as a polynomial, or a symbol when it's an integer at all.
    fn part(&self, e: ExprId, depth: u32) -> Option<Value> {
        self.eval(e, depth).or_else(|| {
            let shape = self.places.shape(e)?;
            self.integer(&shape).map(|_| self.opaque(e))
        })
    }

    fn eval(&self, e: ExprId, depth: u32) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        let expr = self.body.expr(e);
        match &expr.kind {
            ExprKind::Literal(Literal::Int(n)) => Some(Value::constant(*n, self.literal_type(e, *n))),
            ExprKind::Literal(Literal::Bool(b)) => Some(Value::constant(i128::from(*b), Integer::INT)),
            ExprKind::Paren(inner) => self.eval(*inner, depth),
            ExprKind::Unary(UnOp::Plus, a) => self.part(*a, depth),
            ExprKind::Unary(UnOp::Neg, a) => {
                let zero = Value::constant(0, Integer::INT);
                zero.combine(self.part(*a, depth)?, Polynomial::minus)
            }
            ExprKind::Binary(op, a, b) => self.binary(e, *op, *a, *b, depth),
            ExprKind::Cast {
                ty,
                operand,
                reinterpret: false,
            } => {
                let (ty, range, whole) = self.integer(&written(ty)?)?;
                match self.part(*operand, depth) {
                    Some(value) if whole => value.convert(ty),
                    _ => Some(self.symbol(Symbol::Opaque(e), ty, range)),
                }
            }
            ExprKind::Field {
                base,
                field,
                arrow: false,
            } => {
                let ExprKind::Name(Name::Builtin(builtin)) = &self.body.expr(self.body.strip_parens(*base)).kind else {
                    return None;
                };
                let axis = ["x", "y", "z"].iter().position(|f| f == field)? as u8;
                Some(Value::symbol(Symbol::Builtin(*builtin, axis), Integer::UNSIGNED))
            }
            ExprKind::Name(Name::Local(b)) => self.variable(e, *b, depth),
            ExprKind::Name(Name::Other(name)) => self.named(e, name),
            ExprKind::SizeOf => {
                Some(self.symbol(Symbol::Opaque(e), Integer::ANY, Interval::new(1, i128::from(u64::MAX))))
            }
            _ => None,
        }
    }

    /// `1u` is unsigned, and so is what doesn't fit into an `int`, perhaps.
    fn literal_type(&self, e: ExprId, n: i128) -> Integer {
        let expr = self.body.expr(e);
        let plain = !expr.from_macro
            && expr
                .span
                .text(&self.text)
                .chars()
                .all(|c| c.is_ascii_digit() || c == '\'');
        if plain && Interval::new(n, n).within(Integer::INT.range()) {
            Integer::INT
        } else {
            Integer::ANY
        }
    }

    fn binary(&self, e: ExprId, op: BinOp, a: ExprId, b: ExprId, depth: u32) -> Option<Value> {
        // Of operands that aren't integers, nothing is known.
        let x = self.part(a, depth)?;
        let y = self.part(b, depth)?;
        let second = y.ty;
        let constant = y.polynomial.as_constant();
        let bits = Interval::new(0, i128::from(x.ty.narrow) - 1);
        let result = match op {
            BinOp::Add => x.clone().combine(y, Polynomial::plus),
            BinOp::Sub => x.clone().combine(y, Polynomial::minus),
            BinOp::Mul => x.clone().combine(y, Polynomial::times),
            BinOp::Shl => {
                let by = constant.filter(|c| Interval::new(*c, *c).within(bits))?;
                // A signed shift may wrap, too.
                let mut shifted = x.clone();
                shifted.polynomial = shifted.polynomial.scale(1 << by)?;
                shifted.require(shifted.ty.holds())?;
                Some(shifted)
            }
            _ => None,
        };
        if result.is_some() {
            return result;
        }
        // A symbol with what the operator says about its values.
        let common = x.ty.common(second);
        let range = match (op, constant) {
            (BinOp::BitAnd, Some(mask)) if mask >= 0 => Interval::new(0, mask),
            (BinOp::Rem, Some(divisor)) if divisor > 0 => {
                let least = if common.unsigned && common.narrow == common.wide {
                    0
                } else {
                    1 - divisor
                };
                Interval::new(least, divisor - 1)
            }
            (BinOp::Div, Some(divisor)) if divisor > 0 => self.quotient(&x, common, divisor),
            (BinOp::Shr, Some(by)) if Interval::new(by, by).within(bits) => self.quotient(&x, x.ty, 1 << by),
            (BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge, _) => {
                return Some(self.symbol(Symbol::Opaque(e), Integer::INT, Interval::new(0, 1)));
            }
            _ => common.range(),
        };
        let ty = if matches!(op, BinOp::Shl | BinOp::Shr) {
            x.ty
        } else {
            common
        };
        Some(self.symbol(Symbol::Opaque(e), ty, range))
    }

    /// Values of `x / divisor`, rounded either way, for any `x` of its type that overflow leaves possible.
    fn quotient(&self, x: &Value, ty: Integer, divisor: i128) -> Interval {
        let own = ty.range();
        let ranges = self.ranges.borrow();
        let known =
            |p: &Polynomial| p.interval(&|s| default_range(s).meet(ranges.get(s).copied().unwrap_or(Interval::ALL)));
        let exact = x.fits.iter().all(|fit| known(&fit.value).within(fit.range)) && (ty == x.ty || !ty.unsigned);
        let values = if exact { own.meet(known(&x.polynomial)) } else { own };
        Interval {
            lo: values
                .lo
                .map(|lo| if lo < 0 { lo.div_euclid(divisor) } else { lo / divisor }),
            hi: values.hi.map(|hi| hi.div_euclid(divisor).max(hi / divisor)),
        }
    }

    fn variable(&self, e: ExprId, b: BindingId, depth: u32) -> Option<Value> {
        let binding = self.body.binding(b);
        let shape = Shape {
            base: binding.ty.base.clone(),
            pointers: u32::from(binding.ty.pointers),
            dims: binding.ty.array.len() as u32,
        };
        let declared = self.integer(&shape);
        if binding.ty.reference || binding.ty.complex || binding.ty.volatile {
            return declared.map(|_| self.opaque(e));
        }
        if let Some(initialiser) = self.variables.initialiser(b) {
            if let Some(known) = self.known.borrow().get(&b) {
                return known.clone();
            }
            let value = match declared {
                Some((ty, range, whole)) => {
                    let value = self
                        .part(initialiser, depth)
                        .filter(|_| whole)
                        .and_then(|v| v.convert(ty));
                    Some(value.unwrap_or_else(|| self.symbol(Symbol::Variable(b), ty, range)))
                }
                None if binding.ty.base == "auto" && binding.ty.is_value() => self.part(initialiser, depth),
                None => None,
            };
            self.known.borrow_mut().insert(b, value.clone());
            return value;
        }
        let (ty, range, _) = declared?;
        if let Some(index) = self.body.params.iter().position(|p| *p == b)
            && self.variables.keeps_argument(b)
        {
            return Some(self.symbol(Symbol::Parameter(index as u32), ty, range));
        }
        let local = matches!(binding.storage, Storage::Local | Storage::Param);
        if local && self.counter_at(b, e).is_some() {
            return Some(self.symbol(Symbol::Variable(b), ty, range));
        }
        Some(self.opaque(e))
    }

    /// The loop that counts in `b` and in whose body or condition `e` stands.
    pub fn counter_at(&self, b: BindingId, e: ExprId) -> Option<super::variables::Counter> {
        let all = self.variables.counters.get(&b)?;
        let around: Vec<_> = self.around.around(e).collect();
        let root = std::iter::successors(Some(e), |e| self.parents.get(e).copied()).last();
        all.iter()
            .copied()
            .find(|c| around.contains(&c.body) || c.cond.is_some() && c.cond == root)
    }

    fn named(&self, e: ExprId, name: &str) -> Option<Value> {
        if let Some(value) = constant_value(self.db, self.function, self.body, e) {
            return Some(Value::constant(value, Integer::ANY));
        }
        let file = self.function.file(self.db);
        let shared = |range| Some(self.symbol(Symbol::Named(name.to_owned()), Integer::ANY, range));
        match meaning_in(self.db, self.function, name) {
            Meaning::Enumerator(_) => shared(Interval::ALL),
            // A template parameter that is a value: types have no place in an expression.
            Meaning::Unknown
                if self
                    .function
                    .signature(self.db)
                    .template_names
                    .iter()
                    .any(|t| t == name) =>
            {
                shared(Interval::ALL)
            }
            Meaning::Global(global) if global.pointer || global.dims > 0 => None,
            Meaning::Global(global) => {
                let (ty, range, _) = integer(&self.places.alias(&global.base))?;
                let constant = is_constant_value(self.db, file, name);
                let symbol = if constant {
                    Symbol::Named(name.to_owned())
                } else {
                    Symbol::Opaque(e)
                };
                Some(self.symbol(symbol, ty, range))
            }
            _ => None,
        }
    }
}

/// What CUDA says about the built-in variables.
pub(super) fn default_range(symbol: &Symbol) -> Interval {
    let Symbol::Builtin(builtin, axis) = symbol else {
        return Interval::ALL;
    };
    let threads = if *axis == 2 { 64 } else { 1024 };
    let blocks = if *axis == 0 { i128::from(i32::MAX) } else { 65_535 };
    match builtin {
        Builtin::ThreadIdx => Interval::new(0, threads - 1),
        Builtin::BlockDim => Interval::new(1, threads),
        Builtin::BlockIdx => Interval::new(0, blocks - 1),
        Builtin::GridDim => Interval::new(1, blocks),
        Builtin::WarpSize => Interval::new(32, 32),
    }
}
