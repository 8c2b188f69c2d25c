//! Stores by many threads of the same number to the same place, as of a flag that says that something has changed.
//!
//! All but the first are silent (see [`gridfuse_analysis::hir::silent_store`]), but each goes to the same cache line, one after the other:
//! in a search through a graph of 2^22 vertices that took half of the time.

use std::collections::{HashMap, HashSet};

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::{Launchers, who_gets_to};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::silent_store::silent_stores;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::walk::{all_stmts, parts};
use gridfuse_analysis::hir::{BinOp, Body, ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Type, UnOp, body};

use crate::api::refusal::Refusals;
use crate::facts::combinable::{self, done_by_one, is_one_place, is_same_for_all, worker};
use crate::facts::ctype;

/// A store of one number to one place, by many threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// The statement.
    pub stmt: StmtId,
    /// What is written to.
    pub place: ExprId,
    /// What is written there.
    pub value: ExprId,
}

/// A child has such stores, and nothing rules out a look, so that there is something to gain.
pub fn has_some(db: &dyn Db, child: FunctionItem<'_>) -> bool {
    let worker = worker(db, child);
    let mut refusals = Refusals::default();
    refuse_fences(db, worker, "", &mut refusals);
    refusals.is_empty() && !unguarded(db, worker).is_empty()
}

/// Refuses a child that says in which order others see what it writes: they may expect behind the store what was written before it, and a
/// look is none.
pub fn refuse_fences(db: &dyn Db, worker: FunctionItem<'_>, name: &str, refusals: &mut Refusals) {
    combinable::refuse_fences(db, worker, name, "store", refusals);
}

/// Those of a function in front of which nobody looks, in the order of the text.
pub fn unguarded(db: &dyn Db, function: FunctionItem<'_>) -> Vec<Store> {
    let body = body(db, function);
    // Of a branch that isn't shown, an `else` may belong to what is.
    let Some(root) = body.root.filter(|_| !body.cut) else {
        return Vec::new();
    };
    let stmts = all_stmts(&body, root);
    let mut left_alone: HashSet<StmtId> = stmts.iter().flat_map(|stmt| done_by_one(&body, *stmt)).collect();
    left_alone.extend(silent_stores(&body).iter().map(|silent| silent.store));
    left_alone.extend(no_place_for_an_if(&body, &stmts));
    let candidates = stmts.into_iter().filter(|stmt| !left_alone.contains(stmt));
    let mut found: Vec<Store> = candidates.filter_map(|stmt| store(db, function, &body, stmt)).collect();
    found.sort_by_key(|store| body.stmt(store.stmt).span.start);
    found
}

fn store(db: &dyn Db, function: FunctionItem<'_>, body: &Body, stmt: StmtId) -> Option<Store> {
    let StmtKind::Expr(expr) = body.stmt(stmt).kind else {
        return None;
    };
    let expr = body.strip_parens(expr);
    let assignment = body.expr(expr);
    let ExprKind::Assign { op: None, place, value } = &assignment.kind else {
        return None;
    };
    let (place, value) = (*place, *value);
    let ty = pointed_to(body, place)?;
    let is_signed = signedness(db, function, ty)?;
    let number = Number {
        db,
        function,
        body,
        is_signed,
        is_flag: ctype::normalize(&ty.base) == "bool",
    };
    let one = is_one_place(db, function, body, place) && is_same_for_all(db, function, body, value);
    // Where one thread comes there is nothing to save.
    let many = || matches!(who_gets_to(db, function, expr), None | Some(Launchers::ManyThreads));
    (one && !assignment.from_macro && number.fits(value) && many()).then_some(Store { stmt, place, value })
}

/// The type of a pointer, or of an array, of which an element is named.
fn pointed_to(body: &Body, place: ExprId) -> Option<&Type> {
    let pointer = match &body.expr(body.strip_parens(place)).kind {
        ExprKind::Deref(pointer) | ExprKind::Index { base: pointer, .. } => body.strip_parens(*pointer),
        _ => return None,
    };
    let ExprKind::Name(Name::Local(binding)) = &body.expr(pointer).kind else {
        return None;
    };
    let ty = &body.binding(*binding).ty;
    let one = usize::from(ty.pointers) + ty.array.len() == 1;
    (one && !ty.volatile && !ty.reference && !ty.complex).then_some(ty)
}

/// Whether a whole number of this type is signed where it's compared; `None`: it is none, or may be volatile. Nobody has to ask what a
/// floating-point number is compared with: 0.0 and -0.0 are equal, and not the same.
fn signedness(db: &dyn Db, function: FunctionItem<'_>, ty: &Type) -> Option<bool> {
    let base = ctype::normalize(&ty.base);
    if visible_names(db, function.file(db)).aliases.contains_key(base.as_str()) {
        return None;
    }
    match base.as_str() {
        // They become an int.
        "bool" | "char" | "signed char" | "unsigned char" | "short" | "unsigned short" => Some(true),
        "int" | "long" | "long long" | "int64_t" => Some(true),
        "unsigned int" | "unsigned long" | "unsigned long long" | "size_t" | "uint64_t" => Some(false),
        _ => None,
    }
}

/// What is compared with a place.
struct Number<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    /// The place is signed.
    is_signed: bool,
    /// It is true or false.
    is_flag: bool,
}

impl Number<'_, '_> {
    /// It's a whole number of which compilers don't say that such a place can't have it, or that the one is signed and the other isn't.
    fn fits(&self, value: ExprId) -> bool {
        let body = self.body;
        match &body.expr(value).kind {
            ExprKind::Paren(inner) => self.fits(*inner),
            ExprKind::Literal(Literal::Bool(_)) => true,
            ExprKind::Literal(Literal::Int(n)) => !self.is_flag || (0..=1).contains(n),
            ExprKind::Unary(UnOp::Neg, inner) => self.is_signed && !self.is_flag && self.fits(*inner),
            ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul, a, b) => {
                !self.is_flag && self.fits(*a) && self.fits(*b)
            }
            ExprKind::Name(Name::Local(binding)) => {
                let ty = &body.binding(*binding).ty;
                ty.is_value() && !ty.volatile && signedness(self.db, self.function, ty) == Some(self.is_signed)
            }
            _ => false,
        }
    }
}

/// Statements in front of which no `if` can be put: those in the head of a loop or a branch, and those behind which an `else` would belong
/// to it.
fn no_place_for_an_if(body: &Body, stmts: &[StmtId]) -> HashSet<StmtId> {
    let mut around = HashMap::new();
    for stmt in stmts {
        around.extend(parts(body, *stmt).0.into_iter().map(|inner| (inner, *stmt)));
    }
    let is_none = |stmt: &StmtId| {
        let mut inner = *stmt;
        while let Some(outer) = around.get(&inner) {
            match &body.stmt(*outer).kind {
                StmtKind::Block(_) => return false,
                StmtKind::If { init: Some(head), .. }
                | StmtKind::For { init: Some(head), .. }
                | StmtKind::While { init: Some(head), .. }
                    if *head == inner =>
                {
                    return true;
                }
                StmtKind::If {
                    then,
                    otherwise: Some(_),
                    ..
                } if *then == inner => return true,
                _ => inner = *outer,
            }
        }
        false
    };
    stmts.iter().copied().filter(is_none).collect()
}
