//! Loops that may wait for another thread.

use rustc_hash::{FxHashMap, FxHashSet};

use super::changes::{Region, plain_type, whole_body};
use super::indirect::Indirect;
use crate::base::db::Db;
use crate::base::span::Span;
use crate::facts::callee::Callee;
use crate::facts::callee::callee;
use crate::hir::assembly::assembly_may_have;
use crate::hir::flow::operands;
use crate::hir::items::FunctionItem;
use crate::hir::library::{Library, Memory};
use crate::hir::names::unqualified;
use crate::hir::resolve::functions_named;
use crate::hir::walk::parts;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtId, StmtKind, body};

/// Spans of the loops of a function whose end may depend on what another thread does: on an atomic's result, a volatile
/// load, a call or inline assembly of which that can't be excluded, or on memory that the loop reads again and again.
pub(crate) fn waiting_loops(db: &dyn Db, function: FunctionItem<'_>) -> Vec<Span> {
    let body = body(db, function);
    let mut found = Vec::new();
    let goes_back = |kind: &StmtKind| {
        let a_loop = matches!(
            kind,
            StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::For { .. }
        );
        a_loop || matches!(kind, StmtKind::Goto(_))
    };
    // What calls mean is the dear part.
    let recursive = calls_itself(db, function);
    if !recursive && !body.stmts.iter().any(|stmt| goes_back(&stmt.kind)) {
        return found;
    }
    let suspicious: Vec<bool> = (0..body.exprs.len() as u32)
        .map(|i| others_decide(db, function, &body, ExprId(i), DEPTH))
        .collect();
    let asking = asking_assembly(&body);
    let any = suspicious.iter().any(|s| *s) || !asking.is_empty();
    // Where nobody asks other threads, it makes no difference by what variables change.
    let indirect = match any {
        true => Indirect::of(db, function, &body),
        false => Indirect::default(),
    };
    let follow = Follow {
        sources: Sources::of(&body, &indirect, recursive),
        body: &body,
        suspicious,
        asking,
        indirect,
    };
    if recursive && follow.recursion_waits() {
        found.push(function.signature(db).name_span);
    }
    for (i, stmt) in body.stmts.iter().enumerate() {
        let id = StmtId(i as u32);
        let waits = match &stmt.kind {
            StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::For { .. } => follow.loop_waits(id),
            StmtKind::Goto(_) => any,
            _ => false,
        };
        if waits {
            found.push(stmt.span);
        }
    }
    found
}

/// More functions than this aren't looked at for one that leads back.
const MAX_CALLED: usize = 64;

/// A function comes back to itself by calls.
fn calls_itself<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let mut seen: FxHashSet<FunctionItem<'db>> = FxHashSet::default();
    let mut stack = vec![function];
    while let Some(f) = stack.pop() {
        for called in called_functions(db, f) {
            if *called == function {
                return true;
            }
            if seen.len() < MAX_CALLED && seen.insert(*called) {
                stack.push(*called);
            }
        }
    }
    false
}

/// The functions with bodies that a function may call.
#[salsa::tracked(returns(ref))]
fn called_functions<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<FunctionItem<'db>> {
    let body = body(db, function);
    let mut found = Vec::new();
    for expr in &body.exprs {
        let ExprKind::Call {
            callee: target,
            name,
            args,
            ..
        } = &expr.kind
        else {
            continue;
        };
        match callee(db, function, &body, *target, name.as_deref(), args) {
            Callee::Functions(all, _) => found.extend(all),
            Callee::Unknown => found.extend(method(db, function, &body, *target)),
            _ => {}
        }
    }
    let mut seen = FxHashSet::default();
    found.retain(|f| f.has_body(db) && seen.insert(*f));
    found
}

/// So many calls deep is looked: helpers of helpers.
const DEPTH: u32 = 4;

/// What other threads do may decide the value of this expression, its operands aside. `depth`: so many calls deep is looked, what is
/// called below that may ask them.
fn others_decide(db: &dyn Db, function: FunctionItem<'_>, body: &Body, e: ExprId, depth: u32) -> bool {
    let called_asks = |called: FunctionItem<'_>| depth.checked_sub(1).is_none_or(|rest| asks_others(db, called, rest));
    let asks = |library: &Library| matches!(library.memory, Memory::Atomic(_) | Memory::Loads { .. });
    match &body.expr(e).kind {
        ExprKind::Name(Name::Local(b)) => body.binding(*b).ty.volatile,
        ExprKind::Cast { ty, .. } => ty.contains("volatile"),
        ExprKind::Unknown { .. } => true,
        ExprKind::Construct { ty, .. } => constructors(db, function, ty).iter().any(|f| called_asks(*f)),
        ExprKind::Call {
            callee: target,
            name,
            args,
            ..
        } => match callee(db, function, body, *target, name.as_deref(), args) {
            Callee::Known(library) => asks(&library),
            Callee::Type(ty) => constructors(db, function, &ty).iter().any(|f| called_asks(*f)),
            Callee::Unknown => match method(db, function, body, *target) {
                Some(method) => method.file(db).text(db).contains("volatile") || called_asks(method),
                None => true,
            },
            Callee::Functions(all, library) => library.is_some_and(|l| asks(&l)) || all.iter().any(|f| called_asks(*f)),
        },
        _ => false,
    }
}

/// The constructors in sight of a class.
fn constructors<'db>(db: &'db dyn Db, function: FunctionItem<'db>, ty: &str) -> Vec<FunctionItem<'db>> {
    let class = unqualified(ty.split('<').next().unwrap_or("").trim());
    if class.is_empty() || plain_type(class) {
        return Vec::new();
    }
    let named = functions_named(db, function.file(db), &format!("{class}::{class}")).into_iter();
    named.filter(|f| f.has_body(db)).collect()
}

/// The member function that is called for a variable, where its class has only one of that name.
fn method<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, target: ExprId) -> Option<FunctionItem<'db>> {
    let ExprKind::Field {
        base,
        field,
        arrow: false,
    } = &body.expr(body.strip_parens(target)).kind
    else {
        return None;
    };
    let ExprKind::Name(Name::Local(binding)) = &body.expr(body.strip_parens(*base)).kind else {
        return None;
    };
    let ty = &body.binding(*binding).ty;
    let class = unqualified(ty.base.split('<').next().unwrap_or("").trim());
    let of_class = |f: &FunctionItem<'db>| {
        let mut parts = f.name(db).rsplit("::");
        parts.next() == Some(field.as_str()) && parts.next() == Some(class)
    };
    let mut named = functions_named(db, function.file(db), field)
        .into_iter()
        .filter(|f| f.signature(db).member);
    let only = named.next()?;
    let plain = only.has_body(db) && !only.signature(db).conditional && !ty.volatile && ty.pointers == 0;
    (named.next().is_none() && plain && !class.is_empty() && of_class(&only)).then_some(only)
}

/// A body contains something that [`others_decide`]. Each `depth` is a query of its own, so that recursive functions end.
#[salsa::tracked(returns(copy))]
fn asks_others<'db>(db: &'db dyn Db, function: FunctionItem<'db>, depth: u32) -> bool {
    let body = body(db, function);
    (0..body.exprs.len() as u32).any(|i| others_decide(db, function, &body, ExprId(i), depth))
        || !asking_assembly(&body).is_empty()
}

/// Inline assembly that may load what another thread writes, with the variables that occur in it.
fn asking_assembly(body: &Body) -> Vec<(StmtId, FxHashSet<BindingId>)> {
    let stmts = body.stmts.iter().enumerate();
    stmts
        .filter_map(|(i, stmt)| {
            let StmtKind::Asm { text, mentions, .. } = &stmt.kind else {
                return None;
            };
            let asks = assembly_may_have(text.as_deref(), &["ld", "atom", "mbarrier"]);
            asks.then(|| (StmtId(i as u32), mentions.iter().copied().collect()))
        })
        .collect()
}

/// Follows what decides when a loop ends.
struct Follow<'a> {
    body: &'a Body,
    /// For each expression, whether other threads may decide its value.
    suspicious: Vec<bool>,
    /// Inline assembly of which that holds.
    asking: Vec<(StmtId, FxHashSet<BindingId>)>,
    sources: Sources,
    indirect: Indirect,
}

impl Follow<'_> {
    fn loop_waits(&self, id: StmtId) -> bool {
        let body = self.body;
        let Some(region) = Region::of_loop(body, id) else {
            return false;
        };
        let own = match &body.stmt(id).kind {
            StmtKind::While { cond, .. } | StmtKind::For { cond, .. } => *cond,
            StmtKind::DoWhile { cond, .. } => Some(*cond),
            _ => None,
        };
        let mut deciding: Vec<ExprId> = own.into_iter().collect();
        let leaves = |s: &StmtId| {
            matches!(
                body.stmt(*s).kind,
                StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) | StmtKind::Goto(_)
            )
        };
        if region.stmts.iter().any(leaves) {
            deciding.extend(region.stmts.iter().skip(1).filter_map(|s| decides(body, *s)));
        }
        let found = self.origins(&region, Some(id), deciding);
        found.others || found.memory && !found.changes
    }

    /// A function that comes back to itself by calls goes round as a loop does, and any condition in it may end that.
    fn recursion_waits(&self) -> bool {
        let body = self.body;
        let region = whole_body(body);
        let stmts = region.stmts.iter().filter_map(|s| decides(body, *s));
        let exprs = body.exprs.iter().filter_map(|expr| match expr.kind {
            ExprKind::Logical { lhs, .. } => Some(lhs),
            ExprKind::Conditional { cond, .. } => Some(cond),
            _ => None,
        });
        self.origins(&region, None, stmts.chain(exprs).collect()).others
    }

    /// Everything that values are computed from in a part of the body: in a loop, or in all of it.
    fn origins(&self, region: &Region, a_loop: Option<StmtId>, mut stack: Vec<ExprId>) -> Found {
        let body = self.body;
        let stmts = Members::of(body.stmts.len(), region.stmts.iter().map(|s| s.0));
        let exprs = Members::of(body.exprs.len(), region.exprs.iter().map(|e| e.0));
        // The head of the loop itself decides anyway. A lambda runs where it is called.
        let inside = |part: &Part| match part {
            Part::Stmt(s) => Some(*s) != a_loop && stmts.contains(s.0) || self.indirect.lambda_stmts.contains(s),
            Part::Expr(e) => exprs.contains(e.0) || self.indirect.lambda_exprs.contains(e),
        };
        let assigned = region.assigned(body);
        let mut variables: FxHashSet<BindingId> = FxHashSet::default();
        let mut seen: FxHashSet<ExprId> = FxHashSet::default();
        let mut found = Found::default();
        while let Some(e) = stack.pop() {
            if !seen.insert(e) {
                continue;
            }
            let asks = |e: &ExprId| self.suspicious.get(e.0 as usize).copied().unwrap_or(true);
            if asks(&e) {
                found.others = true;
                return found;
            }
            let kind = &body.expr(e).kind;
            found.memory |= super::memory::reads_memory(kind) || matches!(kind, ExprKind::Name(Name::Other(_)));
            found.changes |= matches!(kind, ExprKind::Assign { .. } | ExprKind::IncDec { .. });
            stack.extend(operands(kind));
            let ExprKind::Name(Name::Local(b)) = kind else { continue };
            found.changes |= assigned.contains(b);
            if !variables.insert(*b) {
                continue;
            }
            let by = |by: &ExprId| inside(&Part::Expr(*by));
            found.changes |= self.indirect.changers.get(b).is_some_and(|all| all.iter().any(by));
            let asked = |(stmt, mentions): &(StmtId, FxHashSet<BindingId>)| {
                let led = || {
                    mentions
                        .iter()
                        .any(|m| self.indirect.reached(*m).any(|reached| reached == *b))
                };
                stmts.contains(stmt.0) && (mentions.contains(b) || led())
            };
            // What changes a variable in a way that isn't followed may have asked whatever is asked in the loop.
            let anyhow = || self.indirect.anyhow.contains(b) && region.exprs.iter().any(asks);
            if self.asking.iter().any(asked) || anyhow() {
                found.others = true;
                return found;
            }
            if let Some(sources) = self.sources.of_variable.get(b) {
                let inside = sources.iter().filter(|(part, _)| inside(part));
                stack.extend(inside.map(|(_, e)| *e));
            }
        }
        found
    }
}

/// What values are computed from.
#[derive(Default)]
struct Found {
    /// What other threads do.
    others: bool,
    /// Memory.
    memory: bool,
    /// Something that changes meanwhile.
    changes: bool,
}

/// The condition of a branch.
fn decides(body: &Body, s: StmtId) -> Option<ExprId> {
    match &body.stmt(s).kind {
        StmtKind::If { cond, .. } => *cond,
        StmtKind::Switch { cond, .. } => Some(*cond),
        _ => None,
    }
}

/// Variables that an assignment may change, or through which it reaches what it changes: not those that only pick an element.
pub(super) fn written_through(body: &Body, place: ExprId) -> FxHashSet<BindingId> {
    let mut found = FxHashSet::default();
    let mut stack = vec![place];
    while let Some(e) = stack.pop() {
        match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => drop(found.insert(*b)),
            ExprKind::Index { base, .. } if is_array_or_pointer(body, *base) => stack.push(*base),
            kind => stack.extend(operands(kind)),
        }
    }
    found
}

/// Certain to be what is indexed: `0[a]` is an element of `a` as well.
fn is_array_or_pointer(body: &Body, e: ExprId) -> bool {
    match &body.expr(body.strip_parens(e)).kind {
        ExprKind::Name(Name::Local(b)) => body.binding(*b).ty.is_pointer_like(),
        _ => false,
    }
}

/// A set of statements or of expressions of a body.
struct Members(Vec<bool>);

impl Members {
    fn of(count: usize, members: impl Iterator<Item = u32>) -> Members {
        let mut all = vec![false; count];
        for member in members {
            if let Some(slot) = all.get_mut(member as usize) {
                *slot = true;
            }
        }
        Members(all)
    }

    fn contains(&self, member: u32) -> bool {
        self.0.get(member as usize).copied().unwrap_or(false)
    }
}

/// A part of a body.
enum Part {
    Stmt(StmtId),
    Expr(ExprId),
}

/// What variables are computed from, for all loops of a body at once, or for the whole body.
#[derive(Default)]
struct Sources {
    /// For each variable the expressions that decide its value, each with the part of the body that makes it so: a declaration, an
    /// assignment, or a condition around one.
    of_variable: FxHashMap<BindingId, Vec<(Part, ExprId)>>,
}

impl Sources {
    fn of(body: &Body, indirect: &Indirect, whole: bool) -> Sources {
        let mut sources = Sources::default();
        let mut stmts = FxHashSet::default();
        let mut exprs = FxHashSet::default();
        // From the outside in: what is in a loop comes before it.
        let all = (0..body.stmts.len() as u32).rev().map(StmtId);
        if whole {
            let region = whole_body(body);
            stmts.extend(&region.stmts);
            exprs.extend(&region.exprs);
            region.stmts.iter().for_each(|s| sources.stmt(body, *s));
            region.exprs.iter().for_each(|e| sources.expr(body, *e));
        }
        let loops = all.filter(|s| {
            let kind = &body.stmt(*s).kind;
            matches!(
                kind,
                StmtKind::While { .. } | StmtKind::DoWhile { .. } | StmtKind::For { .. }
            )
        });
        for id in loops {
            // All of it is part of the loop around it.
            if stmts.contains(&id) {
                continue;
            }
            let Some(region) = Region::of_loop(body, id) else {
                continue;
            };
            for s in region.stmts {
                if stmts.insert(s) {
                    sources.stmt(body, s);
                }
            }
            for e in region.exprs {
                if exprs.insert(e) {
                    sources.expr(body, e);
                }
            }
        }
        for s in indirect.lambda_stmts.iter().filter(|s| stmts.insert(**s)) {
            sources.stmt(body, *s);
        }
        for e in indirect.lambda_exprs.iter().filter(|e| exprs.insert(**e)) {
            sources.expr(body, *e);
        }
        for change in &indirect.changes {
            sources.add(change.variable, Part::Expr(change.by), change.from);
        }
        for (variable, s, cond) in &indirect.under_stmt {
            sources.add(*variable, Part::Stmt(*s), *cond);
        }
        for (variable, e, cond) in &indirect.under_expr {
            sources.add(*variable, Part::Expr(*e), *cond);
        }
        sources
    }

    fn add(&mut self, variable: BindingId, part: Part, from: ExprId) {
        self.of_variable.entry(variable).or_default().push((part, from));
    }

    fn stmt(&mut self, body: &Body, s: StmtId) {
        let (stmts, exprs) = parts(body, s);
        match &body.stmt(s).kind {
            StmtKind::If { cond: Some(cond), .. }
            | StmtKind::While { cond: Some(cond), .. }
            | StmtKind::For { cond: Some(cond), .. }
            | StmtKind::Switch { cond, .. } => {
                for b in assigned_in(body, stmts, Vec::new()) {
                    self.add(b, Part::Stmt(s), *cond);
                }
            }
            StmtKind::Decl(decls) => {
                for d in decls {
                    for e in &exprs {
                        self.add(d.binding, Part::Stmt(s), *e);
                    }
                }
            }
            _ => {}
        }
    }

    fn expr(&mut self, body: &Body, e: ExprId) {
        let guarded = match &body.expr(e).kind {
            ExprKind::Assign { place, value, .. } => {
                for b in written_through(body, *place) {
                    self.add(b, Part::Expr(e), *value);
                }
                return;
            }
            ExprKind::Logical { lhs, rhs, .. } => (*lhs, vec![*rhs]),
            ExprKind::Conditional { cond, then, otherwise } => (*cond, vec![*then, *otherwise]),
            _ => return,
        };
        let (cond, exprs) = guarded;
        for b in assigned_in(body, Vec::new(), exprs) {
            self.add(b, Part::Expr(e), cond);
        }
    }
}

/// Variables that are assigned in these parts of a body.
fn assigned_in(body: &Body, mut stmts: Vec<StmtId>, mut exprs: Vec<ExprId>) -> FxHashSet<BindingId> {
    let mut assigned = FxHashSet::default();
    while let Some(s) = stmts.pop() {
        let (inner, own) = parts(body, s);
        stmts.extend(inner);
        exprs.extend(own);
    }
    while let Some(e) = exprs.pop() {
        if let ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } = &body.expr(e).kind {
            assigned.extend(super::objects::mentions(body, *place));
        }
        exprs.extend(operands(&body.expr(e).kind));
    }
    assigned
}
