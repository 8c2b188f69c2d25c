//! Passes over the same memory: all grids of a launch read and change the same elements, as in the steps of a sort or of a transform. The
//! stream's order is then meant, or at least that they run one at a time.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use gridfuse_analysis::facts::dependence::{Access, Kind, Polynomial, Root, Symbol, own_footprint};
use gridfuse_analysis::facts::launch::{Child, Operand};
use gridfuse_analysis::facts::uniformity::Level;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::walk::all_in_expr;
use gridfuse_analysis::hir::{BinOp, BindingId, Body, Builtin, ExprId, ExprKind, Name, StmtKind, body};

use crate::facts::called_again::same_in_all_calls;
use crate::facts::site::Site;
use crate::facts::swapped::Turns;

/// Which grids of a launch are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grids {
    /// Those that one thread launches in a loop.
    Iterations,
    /// Those that different threads of a block launch.
    Threads,
    /// Those that one thread launches in several calls of the launching function.
    Calls,
}

/// An access that changes memory and one that reads it, where each of these grids goes over the same elements: nothing that differs
/// between them chooses a part of the memory. `None` where something may: an offset, a row, what is read from an index.
pub fn passes<'db>(site: &Site<'db>, grids: Grids) -> Option<(Access<'db>, Access<'db>)> {
    let Child::Kernel(kernel) = site.facts.child else {
        return None;
    };
    let turns = Turns::of(site);
    let differs = |arg: &Operand| {
        let in_loop = turns.as_ref().is_some_and(|turns| turns.varies(arg.expr));
        let among = match grids {
            Grids::Iterations => false,
            Grids::Threads => arg.uniformity.level > Level::Block && !same_in_all_calls(site, arg.expr),
            Grids::Calls => !same_in_all_calls(site, arg.expr),
        };
        in_loop || among
    };
    if grids == Grids::Iterations && turns.is_none() {
        return None;
    }
    let code = body(site.db, kernel);
    let footprint = own_footprint(site.db, kernel);
    let varying = (0u32..).zip(&site.facts.args).filter(|(_, arg)| differs(arg));
    let view = View {
        kernel,
        body: &code,
        varying: varying.map(|(index, _)| index).collect(),
        of_thread: variables_of_thread(&code),
        known: RefCell::default(),
    };
    let changes = |kind: Kind| matches!(kind, Kind::Write(None) | Kind::Update { .. });
    let reads = |kind: Kind| matches!(kind, Kind::Read | Kind::Update { .. });
    let all = || footprint.accesses.iter().filter(|access| view.is_whole(access));
    for write in all().filter(|access| changes(access.kind)) {
        for read in all().filter(|access| reads(access.kind)) {
            if write.root == read.root && write.path == read.path && view.meet(write, read) {
                return Some((write.clone(), read.clone()));
            }
        }
    }
    None
}

/// The child, and which of its parameters differ between the iterations.
struct View<'b, 'db> {
    kernel: FunctionItem<'db>,
    body: &'b Body,
    varying: Vec<u32>,
    /// Variables whose values come of built-in variables.
    of_thread: HashSet<BindingId>,
    /// How variables depend on it, as far as that has been asked for; nothing for one that is being looked at.
    known: RefCell<HashMap<BindingId, Option<Depends>>>,
}

/// How a value depends on what differs between the iterations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Depends {
    /// Not at all.
    No,
    /// It is computed from that and from the number of the thread, as in `t / half * 2 * half`.
    Mixed,
    /// It may choose a part of the memory for each iteration.
    Chooses,
}

impl View<'_, '_> {
    /// Whether an access goes over the same elements in each iteration.
    fn is_whole(&self, access: &Access<'_>) -> bool {
        let (Some(offset), Root::Parameter(index)) = (&access.offset, &access.root) else {
            return false;
        };
        access.function == self.kernel
            && !self.varying.contains(index)
            && self.of(&offset.polynomial) < Depends::Chooses
            && access
                .guards
                .iter()
                .all(|guard| self.of(&guard.value) < Depends::Chooses)
    }

    /// Whether the elements of two such accesses may be the same: not another half (`to[i + n]`), nor another one (`to[0]` and `to[1]`).
    fn meet(&self, a: &Access<'_>, b: &Access<'_>) -> bool {
        let (Some(a), Some(b)) = (&a.offset, &b.offset) else {
            return false;
        };
        let Some(apart) = a.polynomial.minus(&b.polynomial) else {
            return false;
        };
        let of_thread = |polynomial: &Polynomial| polynomial.symbols().any(|symbol| self.tells_threads_apart(symbol));
        match apart.as_constant() {
            Some(0) => true,
            Some(_) => of_thread(&a.polynomial),
            None => of_thread(&apart),
        }
    }

    fn tells_threads_apart(&self, symbol: &Symbol) -> bool {
        match symbol {
            Symbol::Builtin(builtin, _) => matches!(builtin, Builtin::ThreadIdx | Builtin::BlockIdx),
            Symbol::Opaque(expr) => self.reads_thread(*expr),
            Symbol::Variable(binding) => self.of_thread.contains(binding),
            _ => false,
        }
    }

    fn of(&self, polynomial: &Polynomial) -> Depends {
        let of_term = |factors: &[Symbol]| {
            let depends = factors.iter().map(|factor| self.symbol(factor)).max();
            let of_thread = factors.iter().any(|factor| match factor {
                Symbol::Builtin(..) => true,
                Symbol::Opaque(expr) => self.reads_thread(*expr),
                Symbol::Variable(binding) => self.of_thread.contains(binding),
                _ => false,
            });
            mixed(depends.unwrap_or(Depends::No), of_thread && factors.len() > 1)
        };
        polynomial
            .terms()
            .map(|(factors, _)| of_term(factors))
            .max()
            .unwrap_or(Depends::No)
    }

    fn symbol(&self, symbol: &Symbol) -> Depends {
        match symbol {
            Symbol::Parameter(index) if self.varying.contains(index) => Depends::Chooses,
            Symbol::Parameter(_) | Symbol::Builtin(..) | Symbol::Named(_) => Depends::No,
            Symbol::Opaque(expr) => self.computed(*expr, DEPTH),
            Symbol::Variable(binding) => self.variable(*binding, DEPTH),
            _ => Depends::Chooses,
        }
    }

    /// Of a value that the polynomial doesn't follow: a quotient, a shift, `i ^ j`. What is read from memory may be anything.
    fn computed(&self, expr: ExprId, depth: u32) -> Depends {
        let Some(depth) = depth.checked_sub(1) else {
            return Depends::Chooses;
        };
        match &self.body.expr(expr).kind {
            ExprKind::Literal(_) | ExprKind::SizeOf | ExprKind::Name(Name::Builtin(_) | Name::Other(_)) => Depends::No,
            ExprKind::Name(Name::Local(binding)) => self.variable(*binding, depth),
            ExprKind::Field { base, arrow: false, .. } => self.computed(*base, depth),
            ExprKind::Paren(inner) | ExprKind::Unary(_, inner) | ExprKind::Cast { operand: inner, .. } => {
                self.computed(*inner, depth)
            }
            ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) => self.computed(*a, depth).max(self.computed(*b, depth)),
            ExprKind::Binary(_, a, b) => {
                let both = self.computed(*a, depth).max(self.computed(*b, depth));
                let of_thread = self.reads_thread(*a) || self.reads_thread(*b);
                mixed(both, of_thread && !self.reads_memory(expr))
            }
            ExprKind::Logical { lhs, rhs, .. } => self.computed(*lhs, depth).max(self.computed(*rhs, depth)),
            _ => Depends::Chooses,
        }
    }

    fn reads_memory(&self, expr: ExprId) -> bool {
        all_in_expr(self.body, expr).into_iter().any(|part| {
            let kind = &self.body.expr(part).kind;
            matches!(
                kind,
                ExprKind::Index { .. } | ExprKind::Deref(_) | ExprKind::Call { .. }
            )
        })
    }

    fn reads_thread(&self, expr: ExprId) -> bool {
        all_in_expr(self.body, expr)
            .into_iter()
            .any(|part| match &self.body.expr(part).kind {
                ExprKind::Name(Name::Builtin(_)) => true,
                ExprKind::Name(Name::Local(binding)) => self.of_thread.contains(binding),
                _ => false,
            })
    }

    /// All that a variable is given.
    fn values(&self, binding: BindingId) -> Vec<ExprId> {
        let is_it = |e: ExprId| self.body.expr(self.body.strip_parens(e)).kind == ExprKind::Name(Name::Local(binding));
        let assigned = self.body.exprs.iter().filter_map(|expr| match &expr.kind {
            ExprKind::Assign { place, value, .. } if is_it(*place) => Some(*value),
            _ => None,
        });
        self.body.initialiser(binding).into_iter().chain(assigned).collect()
    }

    fn variable(&self, binding: BindingId, depth: u32) -> Depends {
        if let Some(index) = self.body.params.iter().position(|param| *param == binding) {
            let varies = self.varying.contains(&(index as u32));
            return if varies { Depends::Chooses } else { Depends::No };
        }
        // One that is made of itself may be anything.
        let known = self.known.borrow().get(&binding).copied();
        match (known, depth.checked_sub(1)) {
            (Some(known), _) => known.unwrap_or(Depends::Chooses),
            (None, None) => Depends::Chooses,
            (None, Some(depth)) => {
                self.known.borrow_mut().insert(binding, None);
                let values = self.values(binding).into_iter();
                let depends = values.map(|value| self.computed(value, depth)).max();
                let depends = depends.unwrap_or(Depends::Chooses);
                self.known.borrow_mut().insert(binding, Some(depends));
                depends
            }
        }
    }
}

/// Variables whose values come of built-in variables, also by way of others.
fn variables_of_thread(body: &Body) -> HashSet<BindingId> {
    let mut found = HashSet::new();
    // Which variables each one goes into.
    let mut into: HashMap<BindingId, Vec<BindingId>> = HashMap::new();
    let mut gives = |binding: BindingId, value: ExprId, found: &mut HashSet<BindingId>| {
        for part in all_in_expr(body, value) {
            match &body.expr(part).kind {
                ExprKind::Name(Name::Builtin(_)) => {
                    found.insert(binding);
                }
                ExprKind::Name(Name::Local(other)) => into.entry(*other).or_default().push(binding),
                _ => {}
            }
        }
    };
    for stmt in &body.stmts {
        if let StmtKind::Decl(declared) = &stmt.kind {
            for declaration in declared {
                if let Some(value) = declaration.init {
                    gives(declaration.binding, value, &mut found);
                }
            }
        }
    }
    for expr in &body.exprs {
        if let ExprKind::Assign { place, value, .. } = &expr.kind
            && let ExprKind::Name(Name::Local(binding)) = body.expr(body.strip_parens(*place)).kind
        {
            gives(binding, *value, &mut found);
        }
    }
    let mut left: Vec<BindingId> = found.iter().copied().collect();
    while let Some(binding) = left.pop() {
        for next in into.get(&binding).into_iter().flatten() {
            if found.insert(*next) {
                left.push(*next);
            }
        }
    }
    found
}

/// How deep expressions and variables are followed at most.
const DEPTH: u32 = 32;

/// A product or a quotient of what differs between iterations and of the number of the thread chooses no part of the memory.
fn mixed(depends: Depends, of_thread: bool) -> Depends {
    match depends {
        Depends::Chooses if of_thread => Depends::Mixed,
        depends => depends,
    }
}
