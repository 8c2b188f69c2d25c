//! Whether two roots are the same memory.
//!
//! Pointers are distinct when the programmer says so (`__restrict__` on both parameters of the kernel that both accesses go
//! through), or when every launch of the kernel in the workspace passes pointers into allocations or variables that differ.

use std::collections::{HashMap, HashSet};

use super::access::{VOLATILE, own_footprint};
use super::allocated::{Holder, held, held_by};
use super::fields::with_field;
use super::location::Root;
use super::subscript::Evaluator;
use crate::base::db::{Db, SourceFile};
use crate::base::words::words;
use crate::facts::callee::library_called;
use crate::facts::effects::summary;
use crate::facts::launch::is_scalar;
use crate::facts::uniformity::memory::MemoryClass;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, GlobalItem, items};
use crate::hir::resolve::{launch_sites_of, only_known_launches};
use crate::hir::{ExprId, ExprKind, Name, body};

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
        (Root::Global(global), other) | (other, Root::Global(global))
            if Passed::of(other).is_some_and(|passed| never_into(db, kernel, passed, global)) =>
        {
            Relation::Distinct
        }
        (x, y) => match Passed::of(x).zip(Passed::of(y)) {
            Some((x, y)) if distinct(db, kernel, &x, &y) => Relation::Distinct,
            _ => Relation::Unknown(format!("`{}` and `{}` may overlap", name(a), name(b))),
        },
    }
}

/// A pointer that a kernel is passed: a parameter, or a field of one that is an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Passed {
    parameter: u32,
    /// `edges`; nothing for the parameter itself.
    path: String,
}

impl Passed {
    fn of(root: &Root) -> Option<Passed> {
        let (parameter, path) = match root {
            Root::Parameter(parameter) => (*parameter, String::new()),
            Root::Member(parameter, path) => (*parameter, path.clone()),
            _ => return None,
        };
        Some(Passed { parameter, path })
    }
}

/// The pointers in objects that a kernel is passed by value, where they stand in its body.
pub(crate) fn passed_members(db: &dyn Db, function: FunctionItem<'_>) -> HashMap<ExprId, (u32, String)> {
    let body = body(db, function);
    let evaluator = Evaluator::new(db, function, &body);
    let fields = (0..body.exprs.len() as u32).map(ExprId);
    let fields = fields.filter(|e| matches!(body.expr(*e).kind, ExprKind::Field { arrow: false, .. }));
    let members = fields.filter_map(|e| match evaluator.pointer(e).root {
        Root::Member(parameter, path) => Some((e, (parameter, path))),
        _ => None,
    });
    members.collect()
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
    Allocation(FunctionItem<'db>, Holder),
    /// What the launching kernel has been passed.
    Passed(FunctionItem<'db>, Passed),
    /// A variable at namespace scope.
    Global(String),
}

/// Two pointers that a kernel is passed never point into the same memory.
fn distinct(db: &dyn Db, kernel: FunctionItem<'_>, a: &Passed, b: &Passed) -> bool {
    differ(db, kernel, a, b, &mut HashSet::new())
}

fn differ<'db>(
    db: &'db dyn Db,
    kernel: FunctionItem<'db>,
    a: &Passed,
    b: &Passed,
    seen: &mut HashSet<(FunctionItem<'db>, Passed, Passed)>,
) -> bool {
    if !kernel.signature(db).kernel {
        return false;
    }
    let body = body(db, kernel);
    let restrict = |passed: &Passed| {
        let binding = body.params.get(passed.parameter as usize).map(|p| body.binding(*p));
        passed.path.is_empty() && binding.is_some_and(|p| p.ty.restrict && p.ty.pointers == 1 && !p.ty.complex)
    };
    if restrict(a) && restrict(b) {
        return true;
    }
    // What a recursion passes on was distinct before.
    if !seen.insert((kernel, a.clone(), b.clone())) {
        return true;
    }
    every_launch(db, kernel, &mut |site, index| {
        let (of_a, of_b) = (origins(db, site, index, a), origins(db, site, index, b));
        let Some((of_a, of_b)) = of_a.zip(of_b) else {
            return false;
        };
        let mut pairs = of_a.iter().flat_map(|x| of_b.iter().map(move |y| (x, y)));
        pairs.all(|pair| match pair {
            (Origin::Allocation(f, x), Origin::Allocation(g, y)) => f == g && x != y,
            (Origin::Allocation(..), Origin::Global(_)) | (Origin::Global(_), Origin::Allocation(..)) => true,
            (Origin::Global(x), Origin::Global(y)) => x != y,
            (Origin::Passed(f, x), Origin::Passed(_, y)) => x != y && differ(db, *f, x, y, seen),
            (Origin::Passed(f, x), Origin::Global(g)) | (Origin::Global(g), Origin::Passed(f, x)) => {
                never_into(db, *f, x.clone(), g)
            }
            _ => false,
        })
    })
}

/// A pointer that a kernel is passed never points into a variable.
fn never_into(db: &dyn Db, kernel: FunctionItem<'_>, passed: Passed, global: &str) -> bool {
    let found = all_origins(db, kernel, passed);
    found.is_some_and(|found| !found.contains(&Origin::Global(global.to_owned())))
}

/// What a pointer that a kernel is passed may point into in any of its grids; `None`: something else, too.
fn all_origins<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>, passed: Passed) -> Option<Vec<Origin<'db>>> {
    let mut seen = HashSet::new();
    let mut todo = vec![(kernel, passed)];
    let mut found = Vec::new();
    while let Some((kernel, passed)) = todo.pop() {
        if !kernel.signature(db).kernel {
            return None;
        }
        if !seen.insert((kernel, passed.clone())) {
            continue;
        }
        let known = every_launch(db, kernel, &mut |site, index| {
            let Some(origins) = origins(db, site, index, &passed) else {
                return false;
            };
            for origin in origins {
                match origin {
                    Origin::Passed(f, passed) => todo.push((f, passed)),
                    origin => found.push(origin),
                }
            }
            true
        });
        known.then_some(())?;
    }
    Some(found)
}

/// Whether what one kernel is passed, or a variable, is never the same memory as another one's, whichever of their grids access it.
pub fn always_apart<'db>(db: &'db dyn Db, a: (FunctionItem<'db>, &Root), b: (FunctionItem<'db>, &Root)) -> bool {
    let of = |(kernel, root): (FunctionItem<'db>, &Root)| match root {
        Root::Global(name) => Some(vec![Origin::Global(name.clone())]),
        root => all_origins(db, kernel, Passed::of(root)?),
    };
    match of(a).zip(of(b)) {
        Some((a, b)) => !a.iter().any(|origin| b.contains(origin)),
        None => false,
    }
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

/// What a launch passes for a pointer of its kernel; `None`: something else may be among it. It is read off the launch itself: who launches
/// asks this.
fn origins<'db>(db: &'db dyn Db, site: FunctionItem<'db>, index: u32, passed: &Passed) -> Option<Vec<Origin<'db>>> {
    let body = body(db, site);
    let launch = body.launches.get(index as usize).map(|e| &body.expr(*e).kind);
    let Some(ExprKind::Launch(launch)) = launch else {
        return None;
    };
    let arg = launch.args.get(passed.parameter as usize).copied()?;
    let signature = site.signature(db);
    if signature.kernel {
        let evaluator = Evaluator::new(db, site, &body);
        let own = |root: &Root| match root {
            Root::Global(name) => Some(Origin::Global(name.clone())),
            root => Passed::of(root).map(|own| Origin::Passed(site, own)),
        };
        if passed.path.is_empty() {
            return own(&evaluator.pointer(arg).root).map(|origin| vec![origin]);
        }
        // An object that is handed on as it is.
        let ExprKind::Name(Name::Local(object)) = body.expr(body.strip_parens(arg)).kind else {
            return None;
        };
        let parameter = body.params.iter().position(|p| *p == object)?;
        let own = Passed {
            parameter: parameter as u32,
            path: passed.path.clone(),
        };
        let kept = evaluator.variables.keeps_argument(object);
        return kept.then(|| vec![Origin::Passed(site, own)]);
    }
    if signature.device {
        return None;
    }
    let found = match passed.path.is_empty() {
        true => held_by(db, site, arg),
        false => match Holder::named(&body, arg) {
            Some(object) => {
                let path = with_field(&object.path, &passed.path);
                held(db, site, &Holder { path, ..object })
            }
            None => None,
        },
    };
    let all = found?.into_iter().map(|holder| Origin::Allocation(site, holder));
    Some(all.collect())
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
    for gap in footprint.gaps.iter().filter(|gap| !gap.prints && !gap.reads) {
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
