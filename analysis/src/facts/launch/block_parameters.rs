//! Template parameters of a kernel that say how many threads its blocks have: `smooth<TPB><<<blocks, TPB>>>(…)`.

use super::config::components;
use crate::base::db::Db;
use crate::hir::items::FunctionItem;
use crate::hir::names::template_arguments;
use crate::hir::resolve::{launch_sites_of, only_known_launches};
use crate::hir::{Body, Builtin, ExprId, ExprKind, Launch, Name, body};

/// The template parameters of a kernel that are `blockDim.x` in each of its grids, as all of its launches say: the argument is what stands
/// there as the size of a block in x.
#[salsa::tracked(returns(ref))]
pub(super) fn block_parameters<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> Vec<String> {
    let signature = kernel.signature(db);
    let mut names = signature.template_names.clone();
    names.retain(|name| !name.is_empty() && !signature.template_types.contains(name));
    if !signature.kernel || names.is_empty() || !only_known_launches(db, kernel) {
        return Vec::new();
    }
    for site in launch_sites_of(db, kernel) {
        let body = body(db, site.function);
        let launch = body.launches.get(site.index as usize).map(|e| body.expr(*e));
        let Some((ExprKind::Launch(launch), false)) = launch.map(|launch| (&launch.kind, launch.from_macro)) else {
            return Vec::new();
        };
        let text = site.function.text(db);
        let written = launch.template_args.map(|list| template_arguments(list.text(&text)));
        let written = written.unwrap_or_default();
        let size = size_in_x(db, site.function, &body, launch);
        let inherits = site.function == kernel && inherits(&body, launch);
        names.retain(|name| {
            let at = signature.template_names.iter().position(|own| own == name);
            let Some(argument) = at.and_then(|at| written.get(at)) else {
                return false;
            };
            let same = |size: ExprId| body.expr(size).span.text(&text).trim() == argument;
            let own = inherits && argument == name && !hides(&body, name);
            own || is_plain(argument) && size.is_some_and(same)
        });
    }
    // Of a kernel that only launches itself nothing is known.
    let outside = launch_sites_of(db, kernel)
        .into_iter()
        .any(|site| site.function != kernel);
    names.retain(|_| outside);
    names
}

/// The size of a launch's blocks in x, where it is written in the launch, so that its names mean what they mean in the template arguments.
fn size_in_x<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body, launch: &Launch) -> Option<ExprId> {
    let &block = launch.config.get(1)?;
    let size = body.strip_parens(components(db, function, body, block)?[0]?);
    let within = body.expr(block).span.contains(body.expr(size).span);
    within.then_some(size)
}

/// Whether a launch takes the size that the launching grid's blocks have.
fn inherits(body: &Body, launch: &Launch) -> bool {
    let of = |e: ExprId| &body.expr(body.strip_parens(e)).kind;
    let whole = |e: ExprId| *of(e) == ExprKind::Name(Name::Builtin(Builtin::BlockDim));
    launch.config.get(1).is_some_and(|&block| match of(block) {
        ExprKind::Field { base, field, .. } => field == "x" && whole(*base),
        _ => whole(block),
    })
}

/// Whether something in a function's body has the name.
fn hides(body: &Body, name: &str) -> bool {
    body.declared.contains(name) || body.bindings.iter().any(|binding| binding.name == name)
}

/// A name or a number, which is the same wherever it stands in a launch.
fn is_plain(code: &str) -> bool {
    !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
