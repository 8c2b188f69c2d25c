//! Numbers that differ between threads, and in which dimensions they do.

use super::Pins;
use crate::facts::dependence::{Interval, integer};
use crate::facts::groups::{Group, group};
use crate::facts::launch::block_parameters::block_parameters;
use crate::facts::launch::config::{constant_value, definition, stable, through_variables};
use crate::facts::launch::extents::Extents;
use crate::facts::uniformity::memory::Places as TypePlaces;
use crate::hir::{BinOp, Builtin, ExprId, ExprKind, Name};
use std::collections::HashSet;

/// Dimensions, x to z.
pub(crate) type Dims = [bool; 3];

pub(crate) fn either(a: Dims, b: Dims) -> Dims {
    [a[0] || b[0], a[1] || b[1], a[2] || b[2]]
}

/// A number that differs between threads or blocks that differ in certain dimensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Number {
    /// Dimensions of the thread index.
    pub(super) thread: Dims,
    /// Dimensions of the block index.
    pub(super) block: Dims,
    /// All dimensions of the thread index.
    pub(super) all_threads: bool,
    /// All dimensions of the block index.
    pub(super) all_blocks: bool,
    /// The lane: it repeats every warp.
    pub(super) lane: bool,
    /// Different threads have different numbers; otherwise only 0 is had by one alone.
    pub(super) exact: bool,
    /// What it is compared with may be another number each time, and so the thread may be another one: `threadIdx.x == k` in a loop
    /// over `k`.
    pub(crate) turns: bool,
    /// It was drawn from a counter, and only after all others were.
    pub(super) last: bool,
    /// The largest that it can be; `None`: it counts the threads or blocks of a whole grid.
    pub(super) most: Option<i128>,
    /// The same by the sizes of the grid and its blocks, where that is known.
    pub(super) extents: Option<Extents>,
}

/// The largest number of 32 bits.
pub(super) const MAX: i128 = u32::MAX as i128;

impl Number {
    /// The index of a thread in its block along an axis.
    pub(super) fn of_thread(axis: usize) -> Number {
        Number {
            thread: std::array::from_fn(|own| own == axis),
            exact: true,
            most: Some(if axis == 2 { 63 } else { 1023 }),
            extents: Extents::of_index(Builtin::ThreadIdx, axis),
            ..Number::default()
        }
    }

    /// The index of a block in its grid along an axis.
    fn of_block(axis: usize) -> Number {
        Number {
            block: std::array::from_fn(|own| own == axis),
            exact: true,
            most: Some(if axis == 0 { i128::from(i32::MAX) - 1 } else { 65534 }),
            extents: Extents::of_index(Builtin::BlockIdx, axis),
            ..Number::default()
        }
    }

    /// A sum, or bits of both: 0 where both are, as the sum of what is known doesn't wrap around. That there are fewer than 2³² threads
    /// in a grid is taken for granted everywhere.
    pub(super) fn over(self, other: Number) -> Option<Number> {
        let most = match self.most.zip(other.most) {
            Some((a, b)) => Some(a.checked_add(b).filter(|sum| *sum <= MAX)?),
            None => None,
        };
        Some(Number {
            thread: either(self.thread, other.thread),
            block: either(self.block, other.block),
            all_threads: self.all_threads || other.all_threads,
            all_blocks: self.all_blocks || other.all_blocks,
            lane: self.lane || other.lane,
            exact: false,
            turns: self.turns || other.turns,
            last: false,
            most,
            extents: self.extents.zip(other.extents).and_then(|(a, b)| a.plus(b)),
        })
    }

    /// Times what is 1 at least and doesn't make it wrap around.
    pub(super) fn times(self, factor: i128) -> Option<Number> {
        let blocks = self.of_blocks() && !self.all_threads && self.thread == Dims::default();
        let most = match (factor, self.most) {
            (1, most) => most,
            // `blockIdx.x * 64`: the number of a block's first thread.
            (2..=1024, most) if blocks => most.map(|most| most * factor).filter(|product| *product <= MAX),
            (2.., Some(most)) => Some(most.checked_mul(factor).filter(|product| *product <= MAX)?),
            _ => return None,
        };
        Some(Number {
            exact: self.exact && factor == 1,
            most,
            extents: self.extents.filter(|_| factor == 1),
            ..self
        })
    }

    pub(super) fn of_blocks(self) -> bool {
        self.all_blocks || self.block != Dims::default()
    }
}

impl Pins<'_, '_> {
    pub(super) fn constant(&self, expr: ExprId) -> Option<i128> {
        constant_value(self.db, self.function, self.body, expr)
    }

    pub(super) fn number(&self, expr: ExprId) -> Option<Number> {
        self.number_within(expr, 24)
    }

    pub(super) fn number_within(&self, expr: ExprId, depth: u32) -> Option<Number> {
        let depth = depth.checked_sub(1)?;
        let body = self.body;
        let expr = body.strip_parens(expr);
        match &body.expr(expr).kind {
            ExprKind::Name(Name::Local(binding)) => {
                let init = definition(self.db, self.function, body, *binding)
                    .filter(|init| stable(self.db, self.function, body, *init))?;
                let ty = &body.binding(*binding).ty;
                let number = self.number_within(init, depth)?;
                (ty.pointers == 0).then(|| self.converted(number, &ty.base))?
            }
            ExprKind::Cast { ty, operand, .. } => self.converted(self.number_within(*operand, depth)?, ty),
            ExprKind::Field {
                base,
                field,
                arrow: false,
            } => {
                let axis = ["x", "y", "z"].iter().position(|d| d == field)?;
                match body.expr(*base).kind {
                    ExprKind::Name(Name::Builtin(Builtin::ThreadIdx)) => Some(Number::of_thread(axis)),
                    ExprKind::Name(Name::Builtin(Builtin::BlockIdx)) => Some(Number::of_block(axis)),
                    _ => None,
                }
            }
            ExprKind::Binary(BinOp::Rem, a, b) if self.is_warp_size(*b) => self.in_warp(*a, depth),
            ExprKind::Binary(BinOp::BitAnd, a, b) if self.is_lane_mask(*b) => self.in_warp(*a, depth),
            ExprKind::Binary(BinOp::Add | BinOp::BitOr, a, b) => {
                let (x, y) = (self.number_within(*a, depth)?, self.number_within(*b, depth)?);
                if x.lane || y.lane {
                    return None;
                }
                let pairs = [(*a, y), (*b, x)];
                let exact = matches!(body.expr(expr).kind, ExprKind::Binary(BinOp::Add, ..))
                    && pairs
                        .iter()
                        .any(|(product, other)| other.exact && self.is_start(*product, *other));
                Some(Number { exact, ..x.over(y)? })
            }
            // A multiple is 0 where the number is, if the factor is no 0 and the product doesn't wrap around.
            ExprKind::Binary(BinOp::Mul, a, b) => {
                let pairs = [(*a, *b), (*b, *a)];
                pairs.iter().find_map(|(number, factor)| {
                    let number = self.number_within(*number, depth).filter(|n| !n.lane)?;
                    match self.constant(*factor) {
                        Some(factor) => number.times(factor),
                        None => self.within_grid(number, *factor, depth),
                    }
                })
            }
            ExprKind::Call { callee, .. } => self.rank(*callee),
            _ => None,
        }
    }

    /// What a number is after a conversion; `None`: other numbers may become the same.
    pub(super) fn converted(&self, number: Number, ty: &str) -> Option<Number> {
        let places = TypePlaces {
            db: self.db,
            function: self.function,
            body: self.body,
        };
        let ty = places.alias(ty.trim_start_matches("const ").trim());
        if ty == "auto" {
            return Some(number);
        }
        if ty == "bool" {
            // Only 0 stays by itself.
            return Some(Number {
                exact: false,
                most: Some(1),
                ..number
            });
        }
        let (_, range, whole) = integer(&ty)?;
        let fits = whole || number.most.is_some_and(|most| Interval::new(0, most).within(range));
        fits.then_some(number)
    }

    /// An index times sizes of the grid or of its blocks, each of another dimension than all others and than the index: there are that
    /// many threads, so it doesn't wrap around. The sizes are 1 at least.
    fn within_grid(&self, number: Number, factor: ExprId, depth: u32) -> Option<Number> {
        let mut factors = Vec::new();
        if !self.sizes(factor, depth, &mut factors) {
            return None;
        }
        let extents = number.extents.and_then(|extents| extents.times(&factors));
        let product = Number {
            exact: false,
            most: None,
            extents,
            ..number
        };
        if extents.is_some() {
            return Some(product);
        }
        let mut sizes = Vec::new();
        let axes = |of: Builtin, dims: Dims, all: bool| {
            let used = move |axis: &usize| all || dims.get(*axis) == Some(&true);
            (0..3).filter(used).map(move |axis| (of, axis))
        };
        sizes.extend(axes(Builtin::BlockDim, number.thread, number.all_threads));
        sizes.extend(axes(Builtin::GridDim, number.block, number.all_blocks));
        sizes.extend(factors);
        let mut seen = HashSet::new();
        let of_grid = sizes.iter().any(|(of, _)| *of == Builtin::GridDim);
        let distinct = sizes.iter().all(|(of, axis)| {
            let fits = *of != Builtin::WarpSize || !of_grid;
            fits && seen.insert((*of as u8, *axis))
        });
        (number.exact && distinct).then_some(product)
    }

    /// Collects the sizes of which an expression is the product, with their axes.
    pub(super) fn sizes(&self, expr: ExprId, depth: u32, found: &mut Vec<(Builtin, usize)>) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let body = self.body;
        let expr = body.strip_parens(expr);
        let whole = |ty: &str| {
            let number = Number::default();
            matches!(self.converted(number, ty), Some(Number { most: None, .. }))
        };
        match &body.expr(expr).kind {
            ExprKind::Name(Name::Builtin(Builtin::WarpSize)) => {
                found.push((Builtin::WarpSize, 0));
                true
            }
            ExprKind::Name(Name::Local(binding)) => {
                let ty = &body.binding(*binding).ty;
                let init = definition(self.db, self.function, body, *binding)
                    .filter(|init| stable(self.db, self.function, body, *init));
                ty.pointers == 0 && whole(&ty.base) && init.is_some_and(|init| self.sizes(init, depth, found))
            }
            ExprKind::Name(Name::Other(name)) if block_parameters(self.db, self.function).contains(name) => {
                found.push((Builtin::BlockDim, 0));
                true
            }
            ExprKind::Cast { ty, operand, .. } => whole(ty) && self.sizes(*operand, depth, found),
            ExprKind::Binary(BinOp::Mul, a, b) => self.sizes(*a, depth, found) && self.sizes(*b, depth, found),
            ExprKind::Field {
                base,
                field,
                arrow: false,
            } => {
                let of = match &body.expr(body.strip_parens(*base)).kind {
                    ExprKind::Name(Name::Builtin(of @ (Builtin::BlockDim | Builtin::GridDim))) => *of,
                    _ => return false,
                };
                let axis = ["x", "y", "z"].iter().position(|d| d == field);
                found.extend(axis.map(|axis| (of, axis)));
                axis.is_some()
            }
            _ => false,
        }
    }

    /// `block.thread_rank()` of a cooperative group.
    pub(super) fn rank(&self, callee: ExprId) -> Option<Number> {
        let body = self.body;
        let ExprKind::Field { base, field, .. } = &body.expr(body.strip_parens(callee)).kind else {
            return None;
        };
        if field != "thread_rank" {
            return None;
        }
        let of = group(self.db, self.function, body, *base)?;
        let number = Number {
            exact: true,
            ..Number::default()
        };
        match of {
            Group::Block => Some(Number {
                all_threads: true,
                most: Some(1023),
                ..number
            }),
            Group::Grid => Some(Number {
                all_threads: true,
                all_blocks: true,
                ..number
            }),
            Group::Warp if self.is_whole_warp(*base) => Some(Number {
                lane: true,
                most: Some(31),
                ..number
            }),
            _ => None,
        }
    }

    /// A group of threads of a warp is made as a tile of 32.
    fn is_whole_warp(&self, group: ExprId) -> bool {
        let body = self.body;
        let mut made = body.strip_parens(group);
        if let ExprKind::Name(Name::Local(binding)) = body.expr(made).kind {
            if body.binding(binding).ty.base.contains("thread_block_tile<32>") {
                return true;
            }
            made = definition(self.db, self.function, body, binding).map_or(made, |init| body.strip_parens(init));
        }
        let text = self.function.text(self.db);
        matches!(&body.expr(made).kind, ExprKind::Call { callee, .. }
            if body.expr(*callee).span.text(&text).contains("tiled_partition<32>"))
    }

    pub(super) fn in_warp(&self, expr: ExprId, depth: u32) -> Option<Number> {
        let number = self.number_within(expr, depth)?;
        (number.exact && self.one_per_block(&[number])).then_some(Number {
            lane: true,
            exact: true,
            most: Some(31),
            ..Number::default()
        })
    }

    pub(super) fn is_warp_size(&self, expr: ExprId) -> bool {
        let expr = self.body.strip_parens(expr);
        self.constant(expr) == Some(32) || self.body.expr(expr).kind == ExprKind::Name(Name::Builtin(Builtin::WarpSize))
    }

    /// `31`, `warpSize - 1`
    pub(super) fn is_lane_mask(&self, expr: ExprId) -> bool {
        let expr = self.body.strip_parens(expr);
        self.constant(expr) == Some(31)
            || matches!(self.body.expr(expr).kind, ExprKind::Binary(BinOp::Sub, a, b)
                if self.is_warp_size(a) && self.constant(b) == Some(1))
    }

    /// `blockIdx.x * blockDim.x` to a thread's `threadIdx.x`, `threadIdx.y * blockDim.x` to it.
    pub(super) fn is_start(&self, expr: ExprId, rest: Number) -> bool {
        let body = self.body;
        let is = |e: ExprId, builtin: Builtin, dim: &str| match &body
            .expr(through_variables(self.db, self.function, body, e))
            .kind
        {
            ExprKind::Field { base, field, .. } => {
                field == dim && body.expr(*base).kind == ExprKind::Name(Name::Builtin(builtin))
            }
            ExprKind::Name(Name::Other(name)) => {
                let of_block = builtin == Builtin::BlockDim && dim == "x";
                of_block && block_parameters(self.db, self.function).contains(name)
            }
            _ => false,
        };
        let ExprKind::Binary(BinOp::Mul, a, b) = body.expr(through_variables(self.db, self.function, body, expr)).kind
        else {
            return false;
        };
        let product = |index: Builtin, of: &str, extent: &str| {
            [(a, b), (b, a)]
                .iter()
                .any(|(x, y)| is(*x, index, of) && is(*y, Builtin::BlockDim, extent))
        };
        let only = |d: usize| {
            let mut dims = Dims::default();
            dims[d] = true;
            rest.thread == dims && rest.block == Dims::default()
        };
        ["x", "y", "z"]
            .iter()
            .enumerate()
            .any(|(d, dim)| only(d) && product(Builtin::BlockIdx, dim, dim))
            || (only(0) && product(Builtin::ThreadIdx, "y", "x"))
    }
}
