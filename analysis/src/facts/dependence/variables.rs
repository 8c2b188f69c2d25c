//! Local variables that keep their values, and the counters of loops.

use std::collections::{HashMap, HashSet};

use crate::base::db::Db;
use crate::facts::escape::{changed_elsewhere, denoted};
use crate::facts::uniformity::memory::{Class, Places};
use crate::hir::items::FunctionItem;
use crate::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Name, StmtId, StmtKind, Storage};

/// A variable that a `for` counts in even steps, and nothing else in the loop changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    /// The loop.
    pub stmt: StmtId,
    /// Its body.
    pub body: StmtId,
    /// Its condition, which sees the value that the body sees.
    pub cond: Option<ExprId>,
    /// Value that it begins with.
    pub init: ExprId,
    /// What is added; `None`: 1.
    pub step: Option<ExprId>,
    /// It's subtracted.
    pub down: bool,
}

/// What is known of a function's variables.
pub(super) struct Variables {
    /// Initialisers of variables that nothing changes after their declaration.
    fixed: HashMap<BindingId, ExprId>,
    /// Parameters that nothing changes.
    fixed_parameters: HashSet<BindingId>,
    /// Initialisers of references.
    references: HashMap<BindingId, ExprId>,
    /// Counters, with the loop in whose body they are.
    pub counters: HashMap<BindingId, Vec<Counter>>,
}

/// The local variables that may change in a way that no assignment to them shows: by a reference, a pointer, a lambda, a function, a
/// class that keeps a reference, as one of two places.
pub(crate) fn exposed<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    places: &Places<'_>,
) -> HashSet<BindingId> {
    let mut exposed = changed_elsewhere(db, function, body);
    let templates = &function.signature(db).template_types;
    let object = |e: ExprId| object(places, e);
    let whole = |e: ExprId| object(e).into_iter().chain(denoted(places, e));
    for expr in &body.exprs {
        match &expr.kind {
            // A constructor may take references.
            ExprKind::Construct { ty, args } if places.is_opaque(ty, templates) => {
                exposed.extend(args.iter().flat_map(|a| whole(*a)));
            }
            ExprKind::New(args) => exposed.extend(args.iter().flat_map(|a| whole(*a))),
            ExprKind::Cast { ty, operand, .. } if ty.contains('&') => exposed.extend(whole(*operand)),
            // `(c ? a : b) = 1`, also `(0, c ? a : b).x = 1`
            ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } if object(*place).is_none() => {
                exposed.extend(denoted(places, *place));
                let whole = body.strip_parens(*place);
                if matches!(
                    body.expr(whole).kind,
                    ExprKind::Conditional { .. } | ExprKind::Cast { .. }
                ) {
                    exposed.extend(named(body, whole));
                }
            }
            _ => {}
        }
    }
    let decls = body.stmts.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::Decl(decls) => Some(decls),
        _ => None,
    });
    for d in decls.flatten() {
        // A list may initialise a class that keeps references.
        if let Some(init) = d.init
            && let ExprKind::InitList(items) = &body.expr(init).kind
            && places.class_kind(&body.binding(d.binding).ty.base, templates) == Class::Opaque
        {
            exposed.extend(items.iter().flat_map(|a| whole(*a)));
        }
    }
    exposed
}

impl Variables {
    pub fn of<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, places: &Places<'_>) -> Variables {
        let exposed = exposed(db, function, body, places);
        let object = |e: ExprId| object(places, e);
        let mut assigned: HashMap<BindingId, Vec<ExprId>> = HashMap::new();
        for (i, expr) in body.exprs.iter().enumerate() {
            if let ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } = &expr.kind
                && let Some(b) = object(*place)
            {
                assigned.entry(b).or_default().push(ExprId(i as u32));
            }
        }
        let mut declared: HashMap<BindingId, Vec<Option<ExprId>>> = HashMap::new();
        for stmt in &body.stmts {
            match &stmt.kind {
                StmtKind::Decl(decls) => {
                    for d in decls {
                        declared.entry(d.binding).or_default().push(d.init);
                    }
                }
                StmtKind::RangeFor { binding, .. } => {
                    declared.entry(*binding).or_default().push(None);
                }
                _ => {}
            }
        }
        let mut variables = Variables {
            fixed: HashMap::new(),
            fixed_parameters: HashSet::new(),
            references: HashMap::new(),
            counters: HashMap::new(),
        };
        let ordinary = |b: BindingId| {
            let ty = &body.binding(b).ty;
            !ty.volatile && !ty.complex && !exposed.contains(&b)
        };
        for b in body
            .params
            .iter()
            .filter(|b| ordinary(**b) && !assigned.contains_key(b))
        {
            variables.fixed_parameters.insert(*b);
        }
        for (b, inits) in &declared {
            let [Some(init)] = inits.as_slice() else { continue };
            let binding = body.binding(*b);
            if binding.storage != Storage::Local || !binding.ty.array.is_empty() || binding.ty.complex {
                continue;
            }
            if binding.ty.reference {
                variables.references.insert(*b, *init);
            } else if ordinary(*b) && !assigned.contains_key(b) {
                variables.fixed.insert(*b, *init);
            }
        }
        for (i, stmt) in body.stmts.iter().enumerate() {
            let StmtKind::For {
                init: Some(init),
                cond: condition,
                step: Some(step),
                body: inner,
            } = &stmt.kind
            else {
                continue;
            };
            let Some((b, step_by, down)) = step_of(body, *step) else {
                continue;
            };
            let binding = body.binding(b);
            let plain = binding.ty.is_value() && matches!(binding.storage, Storage::Local | Storage::Param);
            if !plain || !ordinary(b) {
                continue;
            }
            let start = match &body.stmt(*init).kind {
                StmtKind::Decl(decls) => decls.iter().find(|d| d.binding == b).and_then(|d| d.init),
                StmtKind::Expr(e) => match &body.expr(body.strip_parens(*e)).kind {
                    ExprKind::Assign { op: None, place, value } if object(*place) == Some(b) => Some(*value),
                    _ => None,
                },
                _ => None,
            };
            let Some(start) = start else { continue };
            // Assignments in the loop other than the step.
            let span = body.stmt(*inner).span;
            let cond = stmt.span;
            let changes = assigned.get(&b).into_iter().flatten().filter(|e| {
                let at = body.expr(**e).span;
                let own = **e == body.strip_parens(*step);
                let first = matches!(&body.stmt(*init).kind, StmtKind::Expr(i) if body.strip_parens(*i) == **e);
                !own && !first && (span.contains(at) || cond.contains(at))
            });
            if changes.count() == 0 && !body.expr(*step).from_macro {
                variables.counters.entry(b).or_default().push(Counter {
                    stmt: StmtId(i as u32),
                    body: *inner,
                    cond: *condition,
                    init: start,
                    step: step_by,
                    down,
                });
            }
        }
        variables
    }

    /// The initialiser of a variable that never changes after it.
    pub fn initialiser(&self, b: BindingId) -> Option<ExprId> {
        self.fixed.get(&b).copied()
    }

    /// The parameter keeps its argument's value.
    pub fn keeps_argument(&self, b: BindingId) -> bool {
        self.fixed_parameters.contains(&b)
    }

    /// What a local reference is bound to.
    pub fn referent(&self, b: BindingId) -> Option<ExprId> {
        self.references.get(&b).copied()
    }
}

/// `k++`, `k += e`, `k = k + e`: the variable, what is added (`None`: 1), and whether it's subtracted.
fn step_of(body: &Body, step: ExprId) -> Option<(BindingId, Option<ExprId>, bool)> {
    let variable = |e: ExprId| match &body.expr(body.strip_parens(e)).kind {
        ExprKind::Name(Name::Local(b)) => Some(*b),
        _ => None,
    };
    match &body.expr(body.strip_parens(step)).kind {
        ExprKind::IncDec { place, increment, .. } => Some((variable(*place)?, None, !increment)),
        ExprKind::Assign {
            op: Some(op @ (BinOp::Add | BinOp::Sub)),
            place,
            value,
        } => Some((variable(*place)?, Some(*value), *op == BinOp::Sub)),
        ExprKind::Assign { op: None, place, value } => {
            let b = variable(*place)?;
            match &body.expr(body.strip_parens(*value)).kind {
                ExprKind::Binary(BinOp::Add, x, y) if variable(*x) == Some(b) => Some((b, Some(*y), false)),
                ExprKind::Binary(BinOp::Add, x, y) if variable(*y) == Some(b) => Some((b, Some(*x), false)),
                ExprKind::Binary(BinOp::Sub, x, y) if variable(*x) == Some(b) => Some((b, Some(*y), true)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The local variable of which a place is the whole or a part; not what it points at.
pub(super) fn object(places: &Places<'_>, mut e: ExprId) -> Option<BindingId> {
    let body = places.body;
    loop {
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => return Some(*b),
            ExprKind::Paren(inner)
            | ExprKind::Comma(_, inner)
            | ExprKind::Assign { place: inner, .. }
            | ExprKind::IncDec { place: inner, .. }
            | ExprKind::Field {
                base: inner,
                arrow: false,
                ..
            } => e = *inner,
            ExprKind::Index { base, .. } => {
                let inner = body.strip_parens(*base);
                match &body.expr(inner).kind {
                    ExprKind::Name(Name::Local(b))
                        if body.binding(*b).ty.array.is_empty() || body.binding(*b).storage == Storage::Param =>
                    {
                        return None;
                    }
                    _ if places.shape(inner).is_some_and(|s| s.dims == 0 && s.pointers > 0) => return None,
                    _ => e = inner,
                }
            }
            _ => return None,
        }
    }
}

/// Every local variable that is named in an expression.
fn named(body: &Body, e: ExprId) -> Vec<BindingId> {
    let mut found = Vec::new();
    let mut todo = vec![e];
    while let Some(e) = todo.pop() {
        if let ExprKind::Name(Name::Local(b)) = &body.expr(e).kind {
            found.push(*b);
        }
        todo.extend(crate::hir::flow::operands(&body.expr(e).kind));
    }
    found
}
