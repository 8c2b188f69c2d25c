//! Whether two roots are the same memory.
//!
//! Pointers are distinct when the programmer says so (`__restrict__` on both parameters of the kernel that both accesses go
//! through), or when every launch of the kernel in the workspace passes pointers into allocations or variables that differ.

use std::collections::{BTreeSet, HashSet};

use super::location::Root;
use super::subscript::Evaluator;
use crate::base::db::Db;
use crate::base::words::words;
use crate::facts::launch::launches;
use crate::hir::items::FunctionItem;
use crate::hir::resolve::{launch_sites_of, only_known_launches};
use crate::hir::visible::visible_names;
use crate::hir::{BindingId, Body, ExprId, ExprKind, Literal, Name, StmtKind, Storage, body};

/// How two roots of one function are related.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// They start at the same address.
    Same,
    /// They have no byte in common.
    Distinct,
    /// Not known, and why.
    Unknown(String),
}

/// Relates two roots of a kernel, for all of its threads.
pub(super) fn relation(db: &dyn Db, kernel: FunctionItem<'_>, a: &Root, b: &Root) -> Relation {
    let name = |root: &Root| root_name(db, kernel, root);
    match (a, b) {
        (Root::Unknown, _) | (_, Root::Unknown) => {
            Relation::Unknown("a pointer that isn't followed may point anywhere".to_owned())
        }
        (Root::Object(x), Root::Object(y)) if x != y => Relation::Distinct,
        (x, y) if x == y => Relation::Same,
        // A child can't access either, and addresses that are taken are followed or unknown.
        (Root::Object(_), _) | (_, Root::Object(_)) => Relation::Distinct,
        (Root::Global(_), Root::Global(_)) => Relation::Distinct,
        (Root::Parameter(x), Root::Parameter(y)) if distinct(db, kernel, *x, *y) => Relation::Distinct,
        (Root::Parameter(x), Root::Global(global)) | (Root::Global(global), Root::Parameter(x))
            if never_into(db, kernel, *x, global) =>
        {
            Relation::Distinct
        }
        _ => Relation::Unknown(format!("`{}` and `{}` may overlap", name(a), name(b))),
    }
}

/// A root as a programmer would call it.
pub(super) fn root_name(db: &dyn Db, function: FunctionItem<'_>, root: &Root) -> String {
    let body = body(db, function);
    let parameter = |index: u32| {
        let binding = body.params.get(index as usize).map(|b| body.binding(*b));
        binding.map_or("", |b| b.name.as_str()).to_owned()
    };
    match root {
        Root::Parameter(index) => parameter(*index),
        Root::Member(index, path) => format!("{}.{path}", parameter(*index)),
        Root::Global(name) => name.clone(),
        Root::Object(b) => body.binding(*b).name.clone(),
        Root::Unknown => "a pointer".to_owned(),
    }
}

/// What an argument points into.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin<'db> {
    /// Memory that `cudaMalloc` put into a variable.
    Allocation(FunctionItem<'db>, BindingId),
    /// What a parameter of the launching kernel points at.
    Parameter(FunctionItem<'db>, u32),
    /// A variable at namespace scope.
    Global(String),
    /// Not known.
    Unknown,
}

/// Two pointer parameters of a kernel never point into the same memory.
fn distinct(db: &dyn Db, kernel: FunctionItem<'_>, a: u32, b: u32) -> bool {
    differ(db, kernel, a, b, &mut HashSet::new())
}

fn differ<'db>(
    db: &'db dyn Db,
    kernel: FunctionItem<'db>,
    a: u32,
    b: u32,
    seen: &mut HashSet<(FunctionItem<'db>, u32, u32)>,
) -> bool {
    if !kernel.signature(db).kernel {
        return false;
    }
    let body = body(db, kernel);
    let restrict = |index: u32| {
        let binding = body.params.get(index as usize).map(|p| body.binding(*p));
        binding.is_some_and(|p| p.ty.restrict && p.ty.pointers == 1 && !p.ty.complex)
    };
    if restrict(a) && restrict(b) {
        return true;
    }
    // What a recursion passes on was distinct before.
    if !seen.insert((kernel, a, b)) {
        return true;
    }
    every_launch(
        db,
        kernel,
        &mut |site, index| match (origin(db, site, index, a), origin(db, site, index, b)) {
            (Origin::Allocation(f, x), Origin::Allocation(g, y)) => f == g && x != y,
            (Origin::Allocation(..), Origin::Global(_)) | (Origin::Global(_), Origin::Allocation(..)) => true,
            (Origin::Global(x), Origin::Global(y)) => x != y,
            (Origin::Parameter(f, x), Origin::Parameter(_, y)) => x != y && differ(db, f, x, y, seen),
            (Origin::Parameter(f, x), Origin::Global(g)) | (Origin::Global(g), Origin::Parameter(f, x)) => {
                never_into(db, f, x, &g)
            }
            _ => false,
        },
    )
}

/// A pointer parameter of a kernel never points into a variable.
fn never_into(db: &dyn Db, kernel: FunctionItem<'_>, parameter: u32, global: &str) -> bool {
    let mut seen = HashSet::new();
    let mut todo = vec![(kernel, parameter)];
    while let Some((kernel, parameter)) = todo.pop() {
        if !kernel.signature(db).kernel {
            return false;
        }
        if !seen.insert((kernel, parameter)) {
            continue;
        }
        let fine = every_launch(
            db,
            kernel,
            &mut |site, index| match origin(db, site, index, parameter) {
                Origin::Allocation(..) => true,
                Origin::Global(name) => name != global,
                Origin::Parameter(f, p) => {
                    todo.push((f, p));
                    true
                }
                Origin::Unknown => false,
            },
        );
        if !fine {
            return false;
        }
    }
    true
}

/// Something holds for all launches of a kernel, and these are known: nothing else can launch it.
fn every_launch<'db>(
    db: &'db dyn Db,
    kernel: FunctionItem<'db>,
    holds: &mut dyn FnMut(FunctionItem<'db>, u32) -> bool,
) -> bool {
    let sites = launch_sites_of(db, kernel);
    !sites.is_empty()
        && only_known_launches(db, kernel)
        && sites.into_iter().all(|site| holds(site.function, site.index))
}

/// What a launch passes for a parameter.
fn origin<'db>(db: &'db dyn Db, site: FunctionItem<'db>, index: u32, parameter: u32) -> Origin<'db> {
    let Some(facts) = launches(db, site).get(index as usize) else {
        return Origin::Unknown;
    };
    let Some(arg) = facts.args.get(parameter as usize) else {
        return Origin::Unknown;
    };
    let body = body(db, site);
    let signature = site.signature(db);
    if signature.kernel {
        let evaluator = Evaluator::new(db, site, &body);
        return match evaluator.pointer(arg.expr).root {
            Root::Parameter(own) => Origin::Parameter(site, own),
            Root::Global(name) => Origin::Global(name),
            _ => Origin::Unknown,
        };
    }
    if signature.device {
        return Origin::Unknown;
    }
    let mut e = arg.expr;
    loop {
        match &body.expr(e).kind {
            ExprKind::Paren(inner) => e = *inner,
            ExprKind::Cast { operand, .. } => e = *operand,
            ExprKind::Binary(_, a, _) => e = *a,
            ExprKind::Name(Name::Local(b)) if allocated(db, site, &body, *b) => return Origin::Allocation(site, *b),
            _ => return Origin::Unknown,
        }
    }
}

/// A host variable is set by nothing but `cudaMalloc` and its kind.
fn allocated(db: &dyn Db, function: FunctionItem<'_>, body: &Body, b: BindingId) -> bool {
    let binding = body.binding(b);
    let ty = &binding.ty;
    if binding.storage != Storage::Local || ty.pointers != 1 || ty.reference || ty.complex || !ty.array.is_empty() {
        return false;
    }
    let strip = |mut e: ExprId| loop {
        match &body.expr(e).kind {
            ExprKind::Paren(inner) => e = *inner,
            ExprKind::Cast { operand, .. } => e = *operand,
            _ => return e,
        }
    };
    let own = |e: ExprId| body.expr(strip(e)).kind == ExprKind::Name(Name::Local(b));
    let null = |e: ExprId| {
        matches!(
            body.expr(strip(e)).kind,
            ExprKind::Literal(Literal::Null | Literal::Int(0))
        )
    };
    // Where its address is allowed.
    let mut allowed: BTreeSet<ExprId> = BTreeSet::new();
    let mut any = false;
    for expr in &body.exprs {
        if let ExprKind::Call {
            name: Some(name), args, ..
        } = &expr.kind
            && matches!(
                name.trim_start_matches("::"),
                "cudaMalloc" | "cudaMallocManaged" | "cudaMallocAsync"
            )
            && let Some(first) = args.first()
            && let ExprKind::AddrOf(place) = body.expr(strip(*first)).kind
            && own(place)
        {
            any = true;
            allowed.insert(strip(*first));
        }
    }
    let text = function.text(db);
    let names = visible_names(db, function.file(db));
    // A macro around calls of the runtime, whose own text doesn't name the variable.
    let checks = |span: crate::base::span::Span, parts: &[ExprId]| {
        let mut seen = words(span.text(&text));
        let item = seen.next().and_then(|name| names.macros.get(name));
        let runtime = |e: &ExprId| {
            matches!(&body.expr(strip(*e)).kind, ExprKind::Call { name: Some(n), .. }
                if n.trim_start_matches("::").starts_with("cuda"))
        };
        item.is_some_and(|item| !words(&item.body).any(|w| w == binding.name))
            && !parts.is_empty()
            && parts.iter().all(runtime)
    };
    let exprs = body.exprs.iter().enumerate().all(|(i, expr)| match &expr.kind {
        ExprKind::Assign { place, value, op } => !own(*place) || (op.is_none() && null(*value)),
        ExprKind::IncDec { place, .. } => !own(*place),
        ExprKind::AddrOf(place) => !own(*place) || allowed.contains(&ExprId(i as u32)),
        ExprKind::Lambda { mentions, .. } => !mentions.contains(&b),
        ExprKind::Unknown { mentions, parts } => !mentions.contains(&b) || checks(expr.span, parts),
        // By reference, perhaps.
        ExprKind::Call { name, args, .. } => {
            let harmless = name.as_deref().is_some_and(|n| {
                let n = n.trim_start_matches("::");
                n.starts_with("cuda") || matches!(n, "printf" | "free")
            });
            harmless || !args.iter().any(|a| own(*a))
        }
        ExprKind::Construct { args, .. } | ExprKind::InitList(args) | ExprKind::New(args) => {
            !args.iter().any(|a| own(*a))
        }
        _ => true,
    });
    let stmts = body.stmts.iter().all(|stmt| match &stmt.kind {
        StmtKind::Asm { mentions, .. } => !mentions.contains(&b),
        StmtKind::Unknown { mentions, exprs, .. } => {
            let parts: Vec<ExprId> = exprs
                .iter()
                .flat_map(|e| match &body.expr(*e).kind {
                    ExprKind::Unknown { parts, .. } => parts.clone(),
                    _ => vec![*e],
                })
                .collect();
            !mentions.contains(&b) || checks(stmt.span, &parts)
        }
        StmtKind::Decl(decls) => decls.iter().all(|d| {
            let ty = &body.binding(d.binding).ty;
            let initialised = d.binding != b || d.init.is_none_or(null);
            let bound = (ty.reference || ty.complex) && d.init.is_some_and(own);
            initialised && !bound
        }),
        _ => true,
    });
    any && exprs && stmts
}
