//! Classes of the program, as the host's function names them: whether an object of one is a value, or refers to other variables.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::facts::effects::computes;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{TypeItem, items};
use gridfuse_analysis::hir::library::constant;
use gridfuse_analysis::hir::resolve::{Meaning, meaning_in};
use gridfuse_analysis::hir::walk::all_in_expr;
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind, Name};

use super::host_loop::HostLoop;
use crate::edit::lex;
use crate::facts::calls::{VECTORS, is_plain_type};
use crate::facts::cluster::Function;
use crate::facts::ctype;

/// Classes in classes that are looked into.
const MAX_DEPTH: u32 = 8;

/// Whether what is read of a variable is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    /// It is a value, or a pointer.
    Yes,
    /// It may be a reference to another variable: nothing in sight says so.
    Unknown,
    /// It is a reference.
    No,
}

/// The class of this name in a file or what it includes.
pub fn class_named<'db>(db: &'db dyn Db, file: SourceFile, name: &str) -> Option<&'db TypeItem> {
    let mut files = included_files(db, file).iter();
    files.find_map(|file| items(db, *file).types.iter().find(|class| class.name == name))
}

/// Whether a field, by its type and name as they are written, is a reference.
pub fn is_reference((ty, name): &(String, String)) -> bool {
    ty.contains('&') || name.contains('&')
}

/// Of some expressions those of which a field is taken: of such an object its fields are read alone.
pub fn taken_apart(body: &Body, parts: &[ExprId]) -> Vec<ExprId> {
    let objects = parts.iter().filter_map(|e| match body.expr(*e).kind {
        ExprKind::Field { base, .. } => Some(body.strip_parens(base)),
        _ => None,
    });
    objects.collect()
}

/// Whether a variable of the host's function is read itself.
pub fn of_variable(host: &HostLoop<'_>, variable: BindingId) -> Own {
    let own = host.function.body.binding(variable);
    if own.ty.reference {
        return Own::No;
    }
    if own.ty.pointers > 0 || !own.ty.array.is_empty() {
        return Own::Yes;
    }
    match own.ty.base == "auto" {
        true => of_initialiser(host, variable),
        false => of_type(host, &own.ty.base, 0),
    }
}

/// The same of a variable whose type is what its initialiser has.
fn of_initialiser(host: &HostLoop<'_>, variable: BindingId) -> Own {
    let Function { db, item, body, .. } = &host.function;
    let Some(init) = body.initialiser(variable) else {
        return Own::Unknown;
    };
    let is_value = |e: ExprId| match &body.expr(e).kind {
        ExprKind::Call { name, .. } => name.as_deref().is_some_and(|name| computes(*db, *item, name)),
        ExprKind::Construct { ty, .. } | ExprKind::Cast { ty, .. } => of_type(host, ty, 0) == Own::Yes,
        ExprKind::Name(Name::Local(other)) => *other != variable && of_variable(host, *other) == Own::Yes,
        ExprKind::Name(Name::Other(name)) => match meaning_in(*db, *item, name) {
            Meaning::Enumerator(_) => true,
            Meaning::Global(global) => !global.pointer && is_plain_type(&global.base),
            // What is called, CUDA's own constants.
            _ => computes(*db, *item, name) || constant(name),
        },
        ExprKind::Literal(_)
        | ExprKind::Paren(_)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Logical { .. }
        | ExprKind::Conditional { .. }
        | ExprKind::SizeOf => true,
        _ => false,
    };
    match all_in_expr(body, init).into_iter().all(is_value) {
        true => Own::Yes,
        false => Own::Unknown,
    }
}

/// Whether the field that is read of an object is its own.
pub fn of_field(host: &HostLoop<'_>, expr: ExprId) -> Own {
    let mut names = Vec::new();
    let body = &host.function.body;
    let mut object = body.strip_parens(expr);
    while let ExprKind::Field {
        base,
        field,
        arrow: false,
    } = &body.expr(object).kind
    {
        names.push(field.as_str());
        object = body.strip_parens(*base);
    }
    // What a pointer leads to, or a variable of the program's, is memory like any other.
    let ExprKind::Name(Name::Local(variable)) = body.expr(object).kind else {
        return Own::Yes;
    };
    let own = body.binding(variable);
    if body.declared.contains(&own.ty.base) {
        return Own::No;
    }
    let mut ty = own.ty.base.clone();
    while let Some(name) = names.pop() {
        let Some(class) = class_named(host.function.db, host.file(), &ty) else {
            return match is_of_cuda(&ty) {
                true => Own::Yes,
                false => Own::Unknown,
            };
        };
        if class.fields.iter().any(is_reference) {
            return Own::No;
        }
        let declared = class.fields.iter().find(|(_, declarator)| {
            let mut words = lex::identifiers(declarator);
            words.next() == Some(name)
        });
        match declared {
            Some((_, declarator)) if declarator.contains('*') => return Own::Yes,
            Some((declared, _)) => ty = declared.trim().to_owned(),
            None => return Own::Unknown,
        }
    }
    of_type(host, &ty, 0)
}

/// Whether objects of a type are values, their fields among them.
fn of_type(host: &HostLoop<'_>, ty: &str, depth: u32) -> Own {
    let (db, file) = (host.function.db, host.file());
    let name = ty.trim().trim_start_matches("const ").trim_start_matches("struct ");
    let plain = name.ends_with('*') || is_plain_type(&ctype::normalize(name));
    // A program may have a class of that name, too.
    let class = class_named(db, file, name);
    if plain || ctype::is_integer(db, file, name) || class.is_none() && is_of_cuda(name) {
        return Own::Yes;
    }
    let class = class.filter(|class| class.template_names.is_empty() && class.bases.is_empty());
    let Some(class) = class.filter(|_| depth < MAX_DEPTH) else {
        return Own::Unknown;
    };
    if class.is_enum {
        return Own::Yes;
    }
    let fields = class.fields.iter().map(|field| match field {
        _ if is_reference(field) => Own::No,
        (_, declarator) if declarator.contains('*') => Own::Yes,
        (ty, _) => of_type(host, ty, depth + 1),
    });
    fields.fold(Own::Yes, |all, one| match (all, one) {
        (Own::No, _) | (_, Own::No) => Own::No,
        (Own::Unknown, _) | (_, Own::Unknown) => Own::Unknown,
        _ => Own::Yes,
    })
}

/// Whether a type is one of CUDA's own, which are values.
fn is_of_cuda(name: &str) -> bool {
    name == "dim3" || VECTORS.contains(&name) || name.starts_with("cuda") && !name.contains("::")
}
