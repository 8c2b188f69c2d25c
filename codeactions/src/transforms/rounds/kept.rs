//! Who may keep one of the host's variables, so that it is read by another name: a reference, an object, a lambda.

use std::collections::HashMap;

use gridfuse_analysis::hir::resolve::functions_in;
use gridfuse_analysis::hir::walk::{operands, parts};
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Name, StmtId, StmtKind, Type, body};

use super::api;
use super::host_loop::HostLoop;
use crate::edit::names::words_with_macros;
use crate::facts::calls::{VECTORS, is_plain_type, keeps_arguments};
use crate::facts::cluster::Function;
use crate::facts::ctype;

/// Whether something outside of the loop may keep a variable, which may be read by that then wherever it is. Of each place that names the
/// variable it has to be known that it only reads a number or a pointer, or assigns one: whatever else there is may keep it.
pub fn is_kept(host: &HostLoop<'_>, binding: BindingId) -> bool {
    is_read_at_its_end(host, binding) || !keepers(host, binding).is_empty()
}

/// Whether an attribute calls a function with the variable's address when its scope ends.
fn is_read_at_its_end(host: &HostLoop<'_>, binding: BindingId) -> bool {
    let Function { db, body, .. } = &host.function;
    let Some((stmt, _)) = body.declaration(binding) else {
        return false;
    };
    // The attribute may stand before the declaration, in it, or in a macro.
    let span = body.stmt(stmt).span;
    let declared = format!("{} {}", host.in_front(span.start), host.source(span));
    let words = words_with_macros(*db, host.file(), &declared);
    ["cleanup", "__cleanup__"].iter().any(|word| words.contains(*word))
}

/// The places outside of the loop at which something may keep a variable: its names there, and lambdas and what isn't understood.
pub fn keepers(host: &HostLoop<'_>, binding: BindingId) -> Vec<ExprId> {
    let body = &host.function.body;
    let within = host.span();
    let uses = Uses::of(host);
    let outside = (0u32..).zip(&body.exprs).filter(|(_, e)| !within.contains(e.span));
    let outside = outside.map(|(index, e)| (ExprId(index), &e.kind));
    let keeps = |(expr, kind): &(ExprId, &ExprKind)| match kind {
        ExprKind::Name(Name::Local(b)) => *b == binding && !uses.only_reads(*expr),
        ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. } => mentions.contains(&binding),
        _ => false,
    };
    outside.filter(keeps).map(|(expr, _)| expr).collect()
}

/// What an expression is a part of.
#[derive(Clone, Copy)]
enum Around {
    Expr(ExprId),
    Stmt(StmtId),
}

struct Uses<'a, 'db> {
    function: &'a Function<'db>,
    around: HashMap<ExprId, Around>,
}

impl<'a, 'db> Uses<'a, 'db> {
    fn of(host: &'a HostLoop<'db>) -> Self {
        let body = &host.function.body;
        let mut around = HashMap::new();
        for (index, expr) in (0u32..).zip(&body.exprs) {
            let all = operands(&expr.kind);
            around.extend(all.into_iter().map(|inner| (inner, Around::Expr(ExprId(index)))));
        }
        for index in 0..body.stmts.len() as u32 {
            let (_, direct) = parts(body, StmtId(index));
            around.extend(direct.into_iter().map(|inner| (inner, Around::Stmt(StmtId(index)))));
        }
        Uses {
            function: &host.function,
            around,
        }
    }

    /// Whether what stands around a place of the variable, which is a number or a pointer, takes no reference to it.
    fn only_reads(&self, place: ExprId) -> bool {
        let body = &self.function.body;
        let outer = match self.around.get(&place) {
            Some(Around::Expr(outer)) => *outer,
            Some(Around::Stmt(stmt)) => return self.statement_only_reads(*stmt, place),
            None => return false,
        };
        match &body.expr(outer).kind {
            // A program may have operators of its own for CUDA's vectors.
            ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Logical { .. }
            | ExprKind::IncDec { .. }
            | ExprKind::Assign { op: Some(_), .. }
                if api::is_vector(self.function, place) =>
            {
                false
            }
            // These are the place itself where it is one.
            ExprKind::Paren(_) => self.only_reads(outer),
            ExprKind::IncDec { .. } => self.only_reads(outer),
            ExprKind::Field { arrow: false, .. } => self.only_reads(outer),
            ExprKind::Conditional { cond, .. } => *cond == place || self.only_reads(outer),
            ExprKind::Assign { place: to, .. } if *to == place => self.only_reads(outer),
            // A class on the other side may have such an operator, which takes a reference.
            ExprKind::Assign { place: other, .. } => self.is_plain(*other),
            ExprKind::Binary(_, a, b) | ExprKind::Logical { lhs: a, rhs: b, .. } => {
                self.is_plain(if *a == place { *b } else { *a })
            }
            ExprKind::Index { base, index } => *base == place || *index == place && self.is_plain(*base),
            ExprKind::Unary(..) | ExprKind::Deref(_) | ExprKind::Delete(_) => true,
            ExprKind::Field { arrow: true, .. } => true,
            ExprKind::Cast { ty, .. } => ty == "void" || is_plain_name(ty),
            ExprKind::Construct { ty, .. } => ty == "dim3" || is_plain_name(ty),
            ExprKind::Call { name, args, .. } => {
                let at = args.iter().position(|arg| *arg == place);
                at.zip(name.as_deref())
                    .is_some_and(|(at, name)| self.takes_a_number(name, at))
            }
            // The sizes are numbers or `dim3`, and a stream is a pointer.
            ExprKind::Launch(launch) => {
                let at = launch.args.iter().position(|arg| *arg == place);
                match (at, launch.kernel.as_deref()) {
                    (None, _) => launch.config.contains(&place),
                    (Some(at), Some(kernel)) => self.takes_a_number(kernel, at),
                    (Some(_), None) => false,
                }
            }
            _ => false,
        }
    }

    fn statement_only_reads(&self, stmt: StmtId, place: ExprId) -> bool {
        let body = &self.function.body;
        match &body.stmt(stmt).kind {
            StmtKind::Decl(decls) => {
                let begun = decls.iter().find(|decl| decl.init == Some(place));
                // What isn't the value of one is the size of an array.
                begun.is_none_or(|decl| {
                    let ty = &body.binding(decl.binding).ty;
                    !ty.reference && ty.array.is_empty() && (is_number(ty) || ty.base == "auto" && !ty.complex)
                })
            }
            StmtKind::Asm { .. } | StmtKind::Unknown { .. } | StmtKind::RangeFor { .. } => false,
            _ => true,
        }
    }

    /// Whether all functions of a name get a number or a pointer for an argument, and none gets a reference.
    fn takes_a_number(&self, name: &str, at: usize) -> bool {
        let Function { db, item, .. } = self.function;
        let functions = functions_in(*db, *item, name);
        if functions.is_empty() {
            // CUDA's runtime is C: it takes no references.
            let bare = name.trim_start_matches("::");
            let runtime = bare
                .strip_prefix("cuda")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
            return runtime || keeps_arguments(*db, *item, name);
        }
        functions.iter().all(|function| {
            let body = body(*db, *function);
            let param = body.params.get(at).map(|p| &body.binding(*p).ty);
            param.is_some_and(|ty| !ty.reference && ty.array.is_empty() && is_number(ty))
        })
    }

    /// Whether an expression is of no class, for which somebody may have made operators.
    fn is_plain(&self, expr: ExprId) -> bool {
        let body = &self.function.body;
        match &body.expr(expr).kind {
            ExprKind::Literal(_) | ExprKind::SizeOf => true,
            ExprKind::Name(Name::Local(_)) if api::is_vector(self.function, expr) => false,
            ExprKind::Name(Name::Local(binding)) => {
                let ty = &body.binding(*binding).ty;
                !ty.complex && (is_number(ty) || ty.is_pointer_like() && is_plain_name(&ty.base))
            }
            ExprKind::Name(Name::Builtin(_)) => true,
            ExprKind::Paren(e) | ExprKind::Unary(_, e) => self.is_plain(*e),
            ExprKind::Binary(_, a, b) | ExprKind::Logical { lhs: a, rhs: b, .. } => {
                self.is_plain(*a) && self.is_plain(*b)
            }
            ExprKind::Cast { ty, .. } | ExprKind::Construct { ty, .. } => {
                is_plain_name(ty) && !VECTORS.contains(&ty.as_str())
            }
            ExprKind::Conditional { then, otherwise, .. } => self.is_plain(*then) && self.is_plain(*otherwise),
            ExprKind::Index { base, .. } | ExprKind::Deref(base) => match &body.expr(body.strip_parens(*base)).kind {
                ExprKind::Name(Name::Local(binding)) => {
                    let ty = &body.binding(*binding).ty;
                    !ty.complex && ty.is_pointer_like() && is_plain_name(&ty.base)
                }
                _ => false,
            },
            _ => false,
        }
    }
}

/// A number, or a pointer of the language.
fn is_number(ty: &Type) -> bool {
    !ty.complex && (ty.pointers > 0 || is_plain_name(&ty.base) || ty.base == "dim3")
}

/// A type of numbers as it is written, or a pointer; an alias may stand for a reference.
fn is_plain_name(ty: &str) -> bool {
    let bare = ty.trim();
    !bare.contains('&') && (bare.ends_with('*') || is_plain_type(bare) || is_plain_type(&ctype::normalize(bare)))
}
