//! Whether two roots are the same memory.
//!
//! Pointers are distinct when the programmer says so (`__restrict__` on both parameters of the kernel that both accesses go
//! through), or when every launch of the kernel in the workspace passes pointers into allocations or variables that differ.

use std::collections::HashSet;

use super::access::{VOLATILE, own_footprint};
use super::allocated::allocated;
use super::location::Root;
use super::subscript::Evaluator;
use crate::base::db::{Db, SourceFile};
use crate::base::words::words;
use crate::facts::callee::library_called;
use crate::facts::effects::summary;
use crate::facts::launch::is_scalar;
use crate::facts::uniformity::memory::{MemoryClass, Places};
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, GlobalItem, items};
use crate::hir::resolve::{launch_sites_of, only_known_launches};
use crate::hir::{BinOp, BindingId, ExprId, ExprKind, Name, body};

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

/// What a launch passes for a parameter. It is read off the launch itself: who launches asks this.
fn origin<'db>(db: &'db dyn Db, site: FunctionItem<'db>, index: u32, parameter: u32) -> Origin<'db> {
    let body = body(db, site);
    let launch = body.launches.get(index as usize).map(|e| &body.expr(*e).kind);
    let Some(ExprKind::Launch(launch)) = launch else {
        return Origin::Unknown;
    };
    let Some(arg) = launch.args.get(parameter as usize).copied() else {
        return Origin::Unknown;
    };
    let signature = site.signature(db);
    if signature.kernel {
        let evaluator = Evaluator::new(db, site, &body);
        return match evaluator.pointer(arg).root {
            Root::Parameter(own) => Origin::Parameter(site, own),
            Root::Global(name) => Origin::Global(name),
            _ => Origin::Unknown,
        };
    }
    if signature.device {
        return Origin::Unknown;
    }
    let places = Places {
        db,
        function: site,
        body: &body,
    };
    // An address that has been a number may be that of anything: `(int*)(a ^ b)`.
    let is_pointer = |e: ExprId| {
        places
            .shape(e)
            .is_some_and(|s| s.pointers > 0 || s.dims > 0 || s.base.contains('*'))
    };
    let is_number = |e: ExprId| places.shape(e).is_none_or(|s| s.pointers == 0 && s.dims == 0);
    let mut e = arg;
    loop {
        match &body.expr(e).kind {
            ExprKind::Paren(inner) => e = *inner,
            ExprKind::Cast { operand, .. } if is_pointer(e) => e = *operand,
            ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) if is_pointer(*a) && is_number(*b) => e = *a,
            ExprKind::Binary(BinOp::Add, a, b) if is_pointer(*b) && is_number(*a) => e = *b,
            ExprKind::Name(Name::Local(b)) if allocated(db, site, *b) => return Origin::Allocation(site, *b),
            _ => return Origin::Unknown,
        }
    }
}

/// What may write the memory that a pointer of a function points at: the expressions of the function that do, or lead to it; `None`:
/// anything may. Where types tell memory apart, and what the host passes, isn't one of them.
pub(crate) fn writers(db: &dyn Db, function: FunctionItem<'_>, pointer: ExprId) -> Option<Vec<ExprId>> {
    let body = body(db, function);
    let evaluator = Evaluator::new(db, function, &body);
    let own = evaluator.pointer(pointer).root;
    // What stands in one function is followed by its name.
    if matches!(own, Root::Object(_)) {
        return Some(Vec::new());
    }
    let summary = summary(db, function);
    if !summary.unknown_calls.is_empty() || summary.uses_asm.is_some() {
        return None;
    }
    let places = evaluator.places;
    let class = match places.puns() {
        true => MemoryClass::Any,
        false => places.pointee_class(pointer),
    };
    let by_name_alone = match &own {
        Root::Global(name) => !has_other_names(db, function.file(db), name),
        _ => false,
    };
    let may_be = |root: &Root, theirs: MemoryClass| {
        let apart = || by_name_alone || relation(db, function, root, &own) == Relation::Distinct;
        theirs.may_alias(class) && (*root == own || !apart())
    };
    let mut found: Vec<ExprId> = Vec::new();
    let footprint = own_footprint(db, function);
    for access in footprint.accesses.iter().filter(|access| !access.kind.reads_only()) {
        let theirs = match &body.expr(access.at).kind {
            ExprKind::Call { args, .. } if access.function == function => {
                args.first().map_or(MemoryClass::Any, |arg| places.pointee_class(*arg))
            }
            ExprKind::Call { .. } => MemoryClass::Any,
            _ => places.class(access.at),
        };
        found.extend(may_be(&access.root, theirs).then_some(access.at));
    }
    for gap in footprint.gaps.iter().filter(|gap| !gap.prints) {
        let Some(at) = gap.at else { continue };
        // What is volatile is listed nowhere else.
        if gap.reason != VOLATILE || gap.function != function {
            return None;
        }
        let root = evaluator.location(at).map_or(Root::Unknown, |place| place.root);
        found.extend(may_be(&root, places.class(at)).then_some(at));
    }
    // Grids that are launched get pointers, too.
    for e in &body.launches {
        if let ExprKind::Launch(launch) = &body.expr(*e).kind {
            let leads = |arg: &ExprId| {
                !is_scalar(db, function, &body, *arg)
                    && may_be(&evaluator.pointer(*arg).root, places.pointee_class(*arg))
            };
            found.extend(launch.args.iter().any(leads).then_some(*e));
        }
    }
    Some(found)
}

/// Whether something in sight may get at a variable of device memory by a pointer: its address is taken, or asked for by the host. What
/// refers to it at namespace scope isn't followed anywhere.
fn has_other_names(db: &dyn Db, file: SourceFile, name: &str) -> bool {
    let names = |text: &str| words(text).any(|word| word == name);
    let refers = |f: &FunctionItem<'_>| {
        let text = f.text(db);
        if !f.has_body(db) || !names(&text) {
            return false;
        }
        let body = body(db, *f);
        let mut of_library: HashSet<ExprId> = HashSet::new();
        for expr in &body.exprs {
            if let ExprKind::Call {
                name: Some(called),
                args,
                ..
            } = &expr.kind
                && library_called(db, *f, called).is_some()
            {
                of_library.extend(args);
            }
        }
        let mut exprs = (0..body.exprs.len() as u32).map(ExprId);
        text.contains("cudaGetSymbolAddress")
            || exprs.any(|e| match &body.expr(e).kind {
                ExprKind::AddrOf(_) => !of_library.contains(&e) && names(body.expr(e).span.text(&text)),
                ExprKind::Lambda { .. } | ExprKind::Unknown { .. } => names(body.expr(e).span.text(&text)),
                _ => false,
            })
    };
    included_files(db, file).iter().any(|file| {
        let items = items(db, *file);
        let initialises = |global: &GlobalItem| global.init.as_deref().is_some_and(names);
        items.functions.iter().any(refers) || items.globals.iter().any(initialises)
    })
}
