//! What the host read in each round and the kernel gets once: that nothing in the loop changes it is taken for granted, unless the code in
//! sight may do so.

use std::collections::BTreeSet;

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::resolve::{Meaning, meaning_in};
use gridfuse_analysis::hir::walk::{all_exprs, all_in_expr};
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Name, StmtKind};

use super::super::api;
use super::Translation;
use crate::api::assumption;
use crate::api::refusal::Reason;
use crate::edit::names::words_with_macros;
use crate::facts::cluster::Function;

/// The memory that the host reads.
pub(super) struct Read {
    /// The pointers and references by which it gets there.
    pointers: BTreeSet<BindingId>,
    /// The managed variables in it.
    managed: BTreeSet<String>,
}

impl Translation<'_, '_> {
    /// What an expression reads.
    pub(super) fn read_by(&self, expr: ExprId) -> Read {
        Read {
            pointers: self.memory_of(expr),
            managed: self.managed_names(expr),
        }
    }

    /// What a reference refers to.
    pub(super) fn read_through(&self, binding: BindingId) -> Read {
        Read {
            pointers: self.with_copies([binding].into()),
            managed: BTreeSet::new(),
        }
    }

    /// Takes for granted that what the host reads isn't changed by the loop; refuses it where a kernel or a copy of the loop may change it.
    pub(super) fn assume_unchanged(&mut self, what: &str, read: &Read, span: Span) {
        if let Some(by) = self.may_be_changed(read) {
            self.refuse(
                format!("{by} may change `{what}`, which the host reads in each round: copy it to a variable before the loop if it stays"),
                span,
            );
        } else if self.unchanged.insert(what.to_owned()) {
            self.edit.assume(assumption::UNCHANGED_VALUES.of(Reason {
                text: format!("nothing in the loop changes `{what}`, which the host reads in each round"),
                place: Some(self.host.function.place(span)),
            }));
        }
    }

    /// What in the loop gets a pointer to memory that an expression reads, and may write there.
    fn may_be_changed(&self, read: &Read) -> Option<String> {
        let meets = |given: Option<BindingId>| given.is_some_and(|given| read.pointers.contains(&given));
        let launches = self.host.launches.iter().zip(&self.kernels.of_launch);
        for (site, kernel) in launches {
            let kernel = self.kernels.all.get(*kernel)?;
            let mut given = site.launch.args.iter().zip(&kernel.params);
            if given.any(|(arg, param)| param.ty.pointers > 0 && !param.ty.const_base && meets(self.pointer_in(*arg))) {
                return Some(format!("`{}`", kernel.name));
            }
            let text = kernel.item.text(kernel.db);
            let words = words_with_macros(kernel.db, kernel.file, &text);
            if read.managed.iter().any(|name| words.contains(name)) {
                return Some(format!("`{}`", kernel.name));
            }
        }
        all_exprs(self.body, self.host.stmt).into_iter().find_map(|e| {
            let written = match &self.body.expr(e).kind {
                ExprKind::Call {
                    name: Some(name), args, ..
                } => match api::named(&self.host.function, name)? {
                    api::Call::Set(_) | api::Call::Copy(_) => self.pointer_in(*args.first()?),
                    _ => return None,
                },
                // A variable itself is another matter: it is carried through the rounds.
                ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. }
                    if self.host.local(*place).is_none() =>
                {
                    self.pointer_to(*place)
                }
                _ => return None,
            };
            meets(written).then(|| format!("`{}`", self.host.flat(e)))
        })
    }

    /// The managed variables that an expression names.
    fn managed_names(&self, expr: ExprId) -> BTreeSet<String> {
        let names = all_in_expr(self.body, expr)
            .into_iter()
            .filter_map(|e| match &self.body.expr(e).kind {
                ExprKind::Name(Name::Other(name)) => {
                    let meaning = meaning_in(self.host.function.db, self.host.function.item, name);
                    let managed = matches!(meaning, Meaning::Global(global) if global.managed);
                    managed.then(|| name.rsplit("::").next().unwrap_or(name).to_owned())
                }
                _ => None,
            });
        names.collect()
    }

    /// The pointers and references by which an expression gets to memory, with those that are copies of one another.
    fn memory_of(&self, expr: ExprId) -> BTreeSet<BindingId> {
        let leads = |binding: &BindingId| {
            let ty = &self.body.binding(*binding).ty;
            ty.pointers > 0 || ty.reference
        };
        let named = all_in_expr(self.body, expr)
            .into_iter()
            .filter_map(|e| self.host.local(e));
        self.with_copies(named.filter(leads).collect())
    }

    /// Whether a pointer may lead to constant memory: it is the address of a device variable that isn't known to be another one.
    pub(super) fn may_be_constant(&self, pointer: ExprId) -> bool {
        let Function { db, item, body, .. } = &self.host.function;
        let pointers = self.memory_of(pointer);
        body.exprs.iter().any(|e| match &e.kind {
            ExprKind::Call {
                name: Some(name), args, ..
            } if name.trim_start_matches("::") == "cudaGetSymbolAddress" => {
                let [to, symbol] = args.as_slice() else { return true };
                let known = match &body.expr(body.strip_parens(*symbol)).kind {
                    ExprKind::Name(Name::Other(name)) => {
                        matches!(meaning_in(*db, *item, name), Meaning::Global(global) if !global.constant_memory)
                    }
                    _ => false,
                };
                !known
                    && self
                        .host
                        .address_of(*to)
                        .is_none_or(|binding| pointers.contains(&binding))
            }
            _ => false,
        })
    }

    /// These pointers and references, with those that are copies of one of them.
    fn with_copies(&self, mut found: BTreeSet<BindingId>) -> BTreeSet<BindingId> {
        let copies = self.copies();
        loop {
            let before = found.len();
            for (a, b) in &copies {
                if found.contains(a) || found.contains(b) {
                    found.extend([*a, *b]);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// The pairs of a pointer or reference of the function and the one that it gets its value from.
    fn copies(&self) -> Vec<(BindingId, BindingId)> {
        let mut found = Vec::new();
        for stmt in &self.body.stmts {
            if let StmtKind::Decl(decls) = &stmt.kind {
                let begun = decls.iter().filter_map(|decl| {
                    let init = decl.init?;
                    let source = match self.body.binding(decl.binding).ty.reference {
                        true => self.pointer_to(init),
                        false => self.pointer_in(init),
                    };
                    Some((decl.binding, source?))
                });
                found.extend(begun);
            }
        }
        for expr in &self.body.exprs {
            if let ExprKind::Assign { op: None, place, value } = &expr.kind {
                found.extend(self.host.local(*place).zip(self.pointer_in(*value)));
            }
        }
        found
    }

    /// The pointer that a value is a copy of.
    fn pointer_in(&self, value: ExprId) -> Option<BindingId> {
        match &self.body.expr(value).kind {
            ExprKind::Paren(e) | ExprKind::Cast { operand: e, .. } => self.pointer_in(*e),
            ExprKind::AddrOf(place) => self.pointer_to(*place),
            ExprKind::Name(Name::Local(binding)) => (self.body.binding(*binding).ty.pointers > 0).then_some(*binding),
            _ => None,
        }
    }

    /// The pointer or reference by which a place is reached.
    fn pointer_to(&self, place: ExprId) -> Option<BindingId> {
        match &self.body.expr(place).kind {
            ExprKind::Paren(e)
            | ExprKind::Field {
                base: e, arrow: false, ..
            } => self.pointer_to(*e),
            ExprKind::Deref(e)
            | ExprKind::Index { base: e, .. }
            | ExprKind::Field {
                base: e, arrow: true, ..
            } => self.pointer_in(*e),
            ExprKind::Name(Name::Local(binding)) => self.body.binding(*binding).ty.reference.then_some(*binding),
            _ => None,
        }
    }
}
