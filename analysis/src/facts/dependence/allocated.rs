//! Whether a variable of the host holds nothing but what `cudaMalloc` has put into it.
//!
//! What else may set it is any use of it by which something gets a reference to it; so each use has to be one that reads it.

use std::collections::HashMap;

use crate::base::db::Db;
use crate::base::span::Span;
use crate::base::words::words;
use crate::facts::callee::{Callee, by_name, callee, is_runtime};
use crate::facts::hidden::is_plain;
use crate::facts::uniformity::memory::{Class, Places};
use crate::hir::flow::operands;
use crate::hir::items::FunctionItem;
use crate::hir::visible::visible_names;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Literal, Name, StmtKind, Storage, Type, body, parameters};

/// A host variable is set by nothing but `cudaMalloc` and its kind.
pub(super) fn allocated(db: &dyn Db, function: FunctionItem<'_>, b: BindingId) -> bool {
    let body = &body(db, function);
    let binding = body.binding(b);
    let ty = &binding.ty;
    if binding.storage != Storage::Local || ty.pointers != 1 || ty.reference || ty.complex || !ty.array.is_empty() {
        return false;
    }
    let mut parents: HashMap<ExprId, ExprId> = HashMap::new();
    for (i, expr) in body.exprs.iter().enumerate() {
        for operand in operands(&expr.kind) {
            parents.insert(operand, ExprId(i as u32));
        }
    }
    let mut uses = Uses {
        db,
        function,
        body,
        places: Places { db, function, body },
        parents,
        b,
        any: false,
    };
    let exprs = (0..body.exprs.len() as u32)
        .map(ExprId)
        .all(|e| match &body.expr(e).kind {
            ExprKind::Name(Name::Local(named)) if *named == b => uses.reads(e),
            ExprKind::Lambda { mentions, .. } => !mentions.contains(&b),
            ExprKind::Unknown { mentions, parts } => !mentions.contains(&b) || uses.checks(body.expr(e).span, parts),
            _ => true,
        });
    exprs && uses.statements() && uses.any
}

struct Uses<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    places: Places<'a>,
    parents: HashMap<ExprId, ExprId>,
    b: BindingId,
    /// It is allocated somewhere.
    any: bool,
}

impl Uses<'_, '_> {
    fn strip(&self, mut e: ExprId) -> ExprId {
        loop {
            match &self.body.expr(e).kind {
                ExprKind::Paren(inner) => e = *inner,
                ExprKind::Cast { operand, .. } => e = *operand,
                _ => return e,
            }
        }
    }

    fn is_null(&self, e: ExprId) -> bool {
        matches!(
            self.body.expr(self.strip(e)).kind,
            ExprKind::Literal(Literal::Null | Literal::Int(0))
        )
    }

    /// A macro around calls of the runtime, whose own text doesn't name the variable.
    fn checks(&self, span: Span, parts: &[ExprId]) -> bool {
        let text = self.function.text(self.db);
        let names = visible_names(self.db, self.function.file(self.db));
        let name = &self.body.binding(self.b).name;
        let item = words(span.text(&text)).next().and_then(|name| names.macros.get(name));
        let runtime = |e: &ExprId| {
            matches!(&self.body.expr(self.strip(*e)).kind, ExprKind::Call { name: Some(n), .. }
                if is_runtime(self.db, self.function, n))
        };
        item.is_some_and(|item| !words(&item.body).any(|w| w == name)) && !parts.is_empty() && parts.iter().all(runtime)
    }

    fn statements(&self) -> bool {
        let b = self.b;
        self.body.stmts.iter().all(|stmt| match &stmt.kind {
            StmtKind::Asm { mentions, .. } => !mentions.contains(&b),
            StmtKind::Unknown { mentions, exprs, .. } => {
                let parts = exprs.iter().flat_map(|e| match &self.body.expr(*e).kind {
                    ExprKind::Unknown { parts, .. } => parts.clone(),
                    _ => vec![*e],
                });
                !mentions.contains(&b) || self.checks(stmt.span, &parts.collect::<Vec<_>>())
            }
            StmtKind::Decl(decls) => decls
                .iter()
                .all(|d| d.binding != b || d.init.is_none_or(|init| self.is_null(init))),
            _ => true,
        })
    }

    /// A pointer or a number: making one of a pointer takes its value.
    fn takes_value(&self, ty: &Type) -> bool {
        let plain = ty.pointers > 0 || ty.base == "auto" || self.places.class_kind(&ty.base, &[]) == Class::Plain;
        !ty.reference && !ty.complex && plain
    }

    /// Whether an occurrence of the variable, or a place that is the variable, is one that only reads it, or allocates for it.
    fn reads(&mut self, mut e: ExprId) -> bool {
        let body = self.body;
        while let Some(outer) = self.parents.get(&e).copied() {
            match &body.expr(outer).kind {
                ExprKind::Paren(_) => e = outer,
                ExprKind::Comma(_, last) if *last == e => e = outer,
                ExprKind::Conditional { cond, .. } if *cond != e => e = outer,
                ExprKind::Assign { op, place, value } if *place == e => {
                    if op.is_some() || !self.is_null(*value) {
                        return false;
                    }
                    e = outer;
                }
                ExprKind::AddrOf(_) => return self.allocates(outer),
                kind => return self.reads_as_part(kind, outer, e),
            }
        }
        body.stmts.iter().all(|stmt| match &stmt.kind {
            StmtKind::Decl(decls) => {
                let mut bound = decls.iter().filter(|d| d.init == Some(e));
                bound.all(|d| self.takes_value(&body.binding(d.binding).ty))
            }
            StmtKind::RangeFor { range, .. } => *range != e,
            _ => true,
        })
    }

    /// The same of an operand `e` of what isn't a place by itself.
    fn reads_as_part(&self, kind: &ExprKind, outer: ExprId, e: ExprId) -> bool {
        let of_value =
            |ty: &str| !ty.contains('&') && (ty.contains('*') || self.places.class_kind(ty, &[]) == Class::Plain);
        match kind {
            ExprKind::Assign { .. }
            | ExprKind::Comma(..)
            | ExprKind::Conditional { .. }
            | ExprKind::Deref(_)
            | ExprKind::Index { .. }
            | ExprKind::Field { arrow: true, .. }
            | ExprKind::Unary(..)
            | ExprKind::Delete(_)
            | ExprKind::SizeOf => true,
            // An operator may be a user's where the other operand is an object.
            ExprKind::Binary(_, x, y) | ExprKind::Logical { lhs: x, rhs: y, .. } => [x, y]
                .into_iter()
                .all(|operand| *operand == e || is_plain(self.places, *operand)),
            ExprKind::Cast { ty, .. } => of_value(ty),
            ExprKind::Call {
                callee: target,
                name,
                args,
                ..
            } => self.passed_by_value(*target, name.as_deref(), args, e),
            ExprKind::Launch(launch) => {
                let kernel = launch.kernel.as_deref();
                match kernel.map(|name| by_name(self.db, self.function, name, &launch.args)) {
                    Some(Callee::Functions(all, _)) => self.are_values(&all, &launch.args, e),
                    _ => launch.callee != e,
                }
            }
            // Pointers in an array.
            ExprKind::InitList(_) => self.body.stmts.iter().any(|stmt| match &stmt.kind {
                StmtKind::Decl(decls) => decls.iter().any(|d| {
                    let ty = &self.body.binding(d.binding).ty;
                    d.init == Some(outer) && ty.pointers > 0 && !ty.reference && !ty.complex
                }),
                _ => false,
            }),
            _ => false,
        }
    }

    /// The address is an argument of a call that allocates.
    fn allocates(&mut self, address: ExprId) -> bool {
        let mut e = address;
        while let Some(outer) = self.parents.get(&e).copied() {
            match &self.body.expr(outer).kind {
                ExprKind::Paren(_) | ExprKind::Cast { .. } => e = outer,
                ExprKind::Call {
                    name: Some(name), args, ..
                } => {
                    let allocating = matches!(
                        name.trim_start_matches("::"),
                        "cudaMalloc" | "cudaMallocManaged" | "cudaMallocAsync"
                    );
                    let fits = allocating && args.first() == Some(&e) && is_runtime(self.db, self.function, name);
                    self.any |= fits;
                    return fits;
                }
                _ => return false,
            }
        }
        false
    }

    fn passed_by_value(&self, target: ExprId, name: Option<&str>, args: &[ExprId], e: ExprId) -> bool {
        if target == e {
            return false;
        }
        match callee(self.db, self.function, self.body, target, name, args) {
            Callee::Functions(all, None) => self.are_values(&all, args, e),
            Callee::Known(library) => library.keeps_arguments(),
            Callee::Unknown => name.is_some_and(|n| {
                is_runtime(self.db, self.function, n) || matches!(n.trim_start_matches("::"), "free" | "std::free")
            }),
            Callee::Functions(_, Some(_)) | Callee::Type(_) => false,
        }
    }

    /// All of these functions take the argument `e` by value.
    fn are_values(&self, all: &[FunctionItem<'_>], args: &[ExprId], e: ExprId) -> bool {
        let Some(index) = args.iter().position(|arg| *arg == e) else {
            return true;
        };
        all.iter().all(|f| {
            let parameter = parameters(self.db, *f).get(index);
            parameter.is_some_and(|p| self.takes_value(&p.ty))
        })
    }
}
