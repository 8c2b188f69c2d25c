//! Changes of local variables that no assignment to them shows: by a pointer, a reference, a call that gets one, a member function, a
//! lambda. Who asks what a loop waits for follows them as assignments.

use rustc_hash::{FxHashMap, FxHashSet};

use super::memory::Places;
use super::objects::{mentions, objects};
use super::references::{changes_through, class_changes, takes_in};
use crate::base::db::Db;
use crate::facts::callee::{Callee, callee};
use crate::facts::launch::statement_places;
use crate::hir::flow::operands;
use crate::hir::items::FunctionItem;
use crate::hir::library::vector_fields;
use crate::hir::walk::parts;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtId, StmtKind, Storage, parameters};

/// One such change.
pub(super) struct Change {
    /// What is changed.
    pub variable: BindingId,
    /// The expression that does it.
    pub by: ExprId,
    /// What decides the new value.
    pub from: ExprId,
}

/// All of them in a body.
#[derive(Default)]
pub(super) struct Indirect {
    pub changes: Vec<Change>,
    /// For each variable, the expressions that change it so.
    pub changers: FxHashMap<BindingId, Vec<ExprId>>,
    /// For each such change, the conditions under which it happens: the variable, the statement or expression with the condition.
    pub under_stmt: Vec<(BindingId, StmtId, ExprId)>,
    pub under_expr: Vec<(BindingId, ExprId, ExprId)>,
    /// Variables that something changes which isn't followed.
    pub anyhow: FxHashSet<BindingId>,
    /// What stands in lambdas: it runs wherever they are called.
    pub lambda_stmts: FxHashSet<StmtId>,
    pub lambda_exprs: FxHashSet<ExprId>,
    /// The local variables to which one leads that is a pointer, a reference, or an object or lambda with one in it.
    leads: FxHashMap<BindingId, FxHashSet<BindingId>>,
}

impl Indirect {
    pub fn of(db: &dyn Db, function: FunctionItem<'_>, body: &Body) -> Indirect {
        let mut finder = Finder {
            db,
            function,
            body,
            places: Places { db, function, body },
            lambdas: FxHashMap::default(),
            counters: counters(body),
            targets: FxHashMap::default(),
            flows: FxHashMap::default(),
            found: Indirect::default(),
        };
        finder.lambdas();
        finder.values();
        finder.close();
        finder.changes();
        finder.conditions();
        let mut found = finder.found;
        let unseen = class_changes(db, function).iter().copied();
        found.anyhow = unseen.filter(|b| !found.changers.contains_key(b)).collect();
        found
    }

    /// The local variables that may be reached by what a variable holds.
    pub fn reached(&self, variable: BindingId) -> impl Iterator<Item = BindingId> + '_ {
        self.leads.get(&variable).into_iter().flatten().copied()
    }
}

struct Finder<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    places: Places<'a>,
    /// Variables that hold a lambda, with its parameters.
    lambdas: FxHashMap<BindingId, Vec<BindingId>>,
    /// Numbers that the head of a `for` loop counts.
    counters: FxHashSet<BindingId>,
    /// Variables whose address or reference a variable may hold.
    targets: FxHashMap<BindingId, FxHashSet<BindingId>>,
    /// Variables from which a variable may have what it holds.
    flows: FxHashMap<BindingId, FxHashSet<BindingId>>,
    found: Indirect,
}

impl Finder<'_, '_> {
    /// A number, which holds no address.
    fn is_number(&self, b: BindingId) -> bool {
        let ty = &self.body.binding(b).ty;
        let base = self.places.alias(&ty.base);
        let number = super::changes::plain_type(&base) && vector_fields(&base).is_none() || base == "bool";
        ty.is_value() && number
    }

    fn is_local(&self, b: BindingId) -> bool {
        matches!(self.body.binding(b).storage, Storage::Param | Storage::Local)
    }

    fn lambdas(&mut self) {
        let body = self.body;
        for expr in &body.exprs {
            let ExprKind::Lambda { body: Some(inner), .. } = &expr.kind else {
                continue;
            };
            let mut stmts = vec![*inner];
            let mut exprs = Vec::new();
            while let Some(s) = stmts.pop() {
                if !self.found.lambda_stmts.insert(s) {
                    continue;
                }
                let (inner, own) = parts(body, s);
                stmts.extend(inner);
                exprs.extend(own);
            }
            while let Some(e) = exprs.pop() {
                self.found.lambda_exprs.insert(e);
                exprs.extend(operands(&body.expr(e).kind));
            }
        }
        for stmt in &body.stmts {
            let StmtKind::Decl(decls) = &stmt.kind else { continue };
            for decl in decls {
                let Some(init) = decl.init else { continue };
                let init = body.strip_parens(init);
                let ExprKind::Lambda { body: Some(inner), .. } = &body.expr(init).kind else {
                    continue;
                };
                let (whole, inner) = (body.expr(init).span, body.stmt(*inner).span);
                let own = (0..).map(BindingId).zip(&body.bindings).filter(|(_, b)| {
                    b.storage == Storage::Param && whole.contains(b.span) && b.span.start < inner.start
                });
                let own = own.map(|(id, _)| id).collect();
                self.lambdas.insert(decl.binding, own);
            }
        }
    }

    /// What every variable may get, wherever it does.
    fn values(&mut self) {
        let body = self.body;
        for stmt in &body.stmts {
            match &stmt.kind {
                StmtKind::Decl(decls) => {
                    for decl in decls {
                        if let Some(init) = decl.init {
                            self.value(decl.binding, init);
                        }
                    }
                }
                StmtKind::RangeFor { binding, range, .. } => self.value(*binding, *range),
                _ => {}
            }
        }
        for (index, expr) in body.exprs.iter().enumerate() {
            match &expr.kind {
                ExprKind::Assign { place, value, .. } => {
                    for b in mentions(body, *place) {
                        self.value(b, *value);
                    }
                }
                ExprKind::Call {
                    callee: target, args, ..
                } => {
                    if let Some(called) = self.local(*target)
                        && let Some(parameters) = self.lambdas.get(&called).cloned()
                    {
                        for (parameter, arg) in parameters.into_iter().zip(args) {
                            self.value(parameter, *arg);
                        }
                        continue;
                    }
                    // `h.set(&s)`, `set(h, &s)`
                    for (b, _) in self.changed_by_call(ExprId(index as u32), false) {
                        for arg in args {
                            self.value(b, *arg);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn value(&mut self, b: BindingId, value: ExprId) {
        let body = self.body;
        let ty = &body.binding(b).ty;
        let number = self.is_number(b);
        let mut targets = self.addresses(value, !number);
        let mut parts = vec![value];
        let class = ty.pointers == 0 && (ty.complex || takes_in(self.db, self.function.file(self.db), &ty.base));
        if ty.reference || class {
            while let Some(part) = parts.pop() {
                match &body.expr(part).kind {
                    ExprKind::InitList(inner) | ExprKind::Construct { args: inner, .. } => parts.extend(inner),
                    _ => targets.extend(objects(self.places, part)),
                }
            }
        }
        // What a call returns may lead to what it gets by reference.
        if !number {
            let calls = crate::hir::walk::all_in_expr(body, value);
            for e in calls {
                targets.extend(self.changed_by_call(e, false).into_iter().map(|(b, _)| b));
            }
            let from: Vec<BindingId> = { mentions(body, value).into_iter() }
                .filter(|m| *m != b && !self.is_number(*m))
                .collect();
            self.flows.entry(b).or_default().extend(from);
        }
        targets.retain(|t| *t != b);
        if !targets.is_empty() {
            self.targets.entry(b).or_default().extend(targets);
        }
    }

    /// The variables whose addresses, or references to them in a lambda, are in a value.
    fn addresses(&self, value: ExprId, arrays: bool) -> Vec<BindingId> {
        let body = self.body;
        let mut found = Vec::new();
        for e in crate::hir::walk::all_in_expr(body, value) {
            match &body.expr(e).kind {
                ExprKind::AddrOf(place) => found.extend(objects(self.places, *place)),
                ExprKind::Name(Name::Local(b)) if arrays && !body.binding(*b).ty.array.is_empty() => found.push(*b),
                ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => found.extend(mentions),
                _ => {}
            }
        }
        found.retain(|b| self.is_local(*b));
        found
    }

    /// Makes the relation transitive.
    fn close(&mut self) {
        let all: FxHashSet<BindingId> = self.targets.keys().chain(self.flows.keys()).copied().collect();
        if self.targets.is_empty() {
            return;
        }
        for from in all {
            let mut seen = FxHashSet::default();
            let mut reached = FxHashSet::default();
            let mut stack = vec![from];
            while let Some(b) = stack.pop() {
                if !seen.insert(b) {
                    continue;
                }
                let targets = self.targets.get(&b);
                reached.extend(targets.into_iter().flatten());
                // A pointer to a pointer leads to what that one points at.
                stack.extend(targets.into_iter().flatten());
                stack.extend(self.flows.get(&b).into_iter().flatten());
            }
            if !reached.is_empty() {
                self.found.leads.insert(from, reached);
            }
        }
    }

    fn local(&self, e: ExprId) -> Option<BindingId> {
        match self.body.expr(self.body.strip_parens(e)).kind {
            ExprKind::Name(Name::Local(b)) => Some(b),
            _ => None,
        }
    }

    /// What a call may change: the variables, each with what decides the new value. `reached`: also those to which pointers and objects
    /// lead that it gets.
    fn changed_by_call(&self, e: ExprId, reached: bool) -> Vec<(BindingId, ExprId)> {
        let body = self.body;
        let (db, function) = (self.db, self.function);
        let mut found: Vec<BindingId> = Vec::new();
        let by_value = |arg: ExprId, found: &mut Vec<BindingId>| {
            found.extend(self.addresses(arg, true));
            if reached {
                let names = mentions(body, arg).into_iter().filter(|b| !self.is_number(*b));
                found.extend(names.flat_map(|b| self.found.reached(b)));
            }
        };
        match &body.expr(e).kind {
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } => {
                if let Some(called) = self.local(*target) {
                    // What it does stands in the body itself.
                    if self.lambdas.contains_key(&called) {
                        return Vec::new();
                    }
                    found.push(called);
                    found.extend(self.found.reached(called));
                }
                let means = callee(db, function, body, *target, name.as_deref(), args);
                if let ExprKind::Field { base, .. } = &body.expr(body.strip_parens(*target)).kind
                    && !matches!(means, Callee::Known(_))
                {
                    found.extend(objects(self.places, *base));
                    by_value(*base, &mut found);
                }
                match means {
                    Callee::Known(_) | Callee::Type(_) => args.iter().for_each(|arg| by_value(*arg, &mut found)),
                    Callee::Unknown => {
                        // A functor that the function is handed gets the number of the iteration to work on.
                        let functor = self.local(*target).is_some();
                        for arg in args {
                            let all = objects(self.places, *arg).into_iter();
                            found.extend(all.filter(|b| !functor || !self.counters.contains(b)));
                            by_value(*arg, &mut found);
                        }
                    }
                    Callee::Functions(all, _) => {
                        for f in all {
                            let parameters = parameters(db, f);
                            for (index, arg) in args.iter().enumerate() {
                                let ty = parameters.get(index).map(|p| &p.ty);
                                if ty.is_none_or(|ty| changes_through(db, f, ty)) {
                                    found.extend(objects(self.places, *arg));
                                }
                                // What it only reads.
                                if !ty.is_some_and(|ty| ty.const_base && ty.pointers == 1) {
                                    by_value(*arg, &mut found);
                                }
                            }
                        }
                    }
                }
            }
            ExprKind::Construct { ty, args } if !super::changes::plain_type(ty) => {
                let takes = takes_in(db, function.file(db), ty);
                for arg in args {
                    if takes {
                        found.extend(objects(self.places, *arg));
                    }
                    by_value(*arg, &mut found);
                }
            }
            _ => {}
        }
        found.retain(|b| self.is_local(*b));
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(|b| (b, e)).collect()
    }

    fn changes(&mut self) {
        let body = self.body;
        let mut changes = Vec::new();
        for (index, expr) in body.exprs.iter().enumerate() {
            let e = ExprId(index as u32);
            match &expr.kind {
                ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
                    let from = match &expr.kind {
                        ExprKind::Assign { value, .. } => *value,
                        _ => e,
                    };
                    // The variable itself.
                    if { self.local(*place) }.is_some_and(|b| !body.binding(b).ty.reference) {
                        continue;
                    }
                    for b in super::wait::written_through(body, *place) {
                        let reached = self.found.reached(b);
                        changes.extend(reached.map(|variable| Change { variable, by: e, from }));
                    }
                }
                ExprKind::Call { .. } | ExprKind::Construct { .. } => {
                    let changed = self.changed_by_call(e, true).into_iter();
                    changes.extend(changed.map(|(variable, from)| Change { variable, by: e, from }));
                }
                _ => {}
            }
        }
        for change in &changes {
            self.found.changers.entry(change.variable).or_default().push(change.by);
        }
        self.found.changes = changes;
    }

    /// What a change depends on beside the new value: whether it happens.
    fn conditions(&mut self) {
        if self.found.changes.is_empty() {
            return;
        }
        let body = self.body;
        let around = statement_places(self.db, self.function);
        let mut parents: FxHashMap<ExprId, ExprId> = FxHashMap::default();
        for (index, expr) in body.exprs.iter().enumerate() {
            for operand in operands(&expr.kind) {
                parents.insert(operand, ExprId(index as u32));
            }
        }
        let (mut under_stmt, mut under_expr) = (Vec::new(), Vec::new());
        for change in &self.found.changes {
            for s in around.around(change.by) {
                match &body.stmt(s).kind {
                    StmtKind::If { cond: Some(cond), .. }
                    | StmtKind::While { cond: Some(cond), .. }
                    | StmtKind::For { cond: Some(cond), .. }
                    | StmtKind::Switch { cond, .. } => under_stmt.push((change.variable, s, *cond)),
                    _ => {}
                }
            }
            let mut e = change.by;
            while let Some(parent) = parents.get(&e).copied() {
                match &body.expr(parent).kind {
                    ExprKind::Logical { lhs, .. } if *lhs != e => under_expr.push((change.variable, parent, *lhs)),
                    ExprKind::Conditional { cond, .. } if *cond != e => {
                        under_expr.push((change.variable, parent, *cond));
                    }
                    _ => {}
                }
                e = parent;
            }
        }
        (self.found.under_stmt, self.found.under_expr) = (under_stmt, under_expr);
    }
}

/// The numbers that heads of `for` loops count.
fn counters(body: &Body) -> FxHashSet<BindingId> {
    let steps = body.stmts.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::For { step, .. } => *step,
        _ => None,
    });
    let places = steps.filter_map(|step| match &body.expr(body.strip_parens(step)).kind {
        ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => Some(*place),
        _ => None,
    });
    let variables = places.filter_map(|place| match body.expr(body.strip_parens(place)).kind {
        ExprKind::Name(Name::Local(b)) => Some(b),
        _ => None,
    });
    variables
        .filter(|b| super::changes::plain_type(&body.binding(*b).ty.base))
        .collect()
}
