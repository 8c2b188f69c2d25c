//! Surfaces that the grids of a launch have in common.

use gridfuse_analysis::facts::launch::Child;
use gridfuse_analysis::facts::uniformity::Level;
use gridfuse_analysis::hir::{self, BindingId, Body, ExprId, ExprKind, Name};

use crate::facts::site::Site;

/// A surface that all grids of a launch read and write at the same places, in words.
pub fn surface_in_common(site: &Site<'_>) -> Option<String> {
    let Child::Kernel(child) = site.facts.child else {
        return None;
    };
    let (db, body) = (site.db, hir::body(site.db, child));
    // The parameters with the same value in all grids that a block launches.
    let same: Vec<bool> = (0..body.params.len())
        .map(|index| {
            let argument = site.facts.args.get(index);
            argument.is_some_and(|a| a.uniformity.level <= Level::Block && !a.changes_in_loop)
        })
        .collect();
    let differs = |e: ExprId| {
        let span = body.expr(e).span;
        body.exprs
            .iter()
            .filter(|inner| span.contains(inner.span))
            .any(|inner| match &inner.kind {
                ExprKind::Name(Name::Local(binding)) => match body.params.iter().position(|p| p == binding) {
                    Some(index) => !same[index],
                    None => !follows_threads(&body, *binding, &same),
                },
                ExprKind::Name(_) | ExprKind::Literal(_) | ExprKind::Binary(..) | ExprKind::Paren(_) => false,
                ExprKind::Field { .. } | ExprKind::SizeOf | ExprKind::Cast { .. } | ExprKind::Unary(..) => false,
                _ => true,
            })
    };
    let mut read: Vec<(BindingId, String)> = Vec::new();
    let mut written: Vec<(BindingId, String)> = Vec::new();
    for expr in &body.exprs {
        let ExprKind::Call {
            name: Some(name), args, ..
        } = &expr.kind
        else {
            continue;
        };
        let name = name.split('<').next().unwrap_or(name);
        let list = match name.strip_prefix("surf") {
            Some(rest) if rest.ends_with("read") => &mut read,
            Some(rest) if rest.ends_with("write") => &mut written,
            _ => continue,
        };
        let surface = args
            .iter()
            .take(2)
            .find_map(|arg| match &body.expr(body.strip_parens(*arg)).kind {
                ExprKind::Name(Name::Local(binding)) if body.binding(*binding).ty.base.ends_with("SurfaceObject_t") => {
                    Some(*binding)
                }
                _ => None,
            });
        let at = args.iter().position(|arg| {
            matches!(&body.expr(body.strip_parens(*arg)).kind, ExprKind::Name(Name::Local(b)) if Some(*b) == surface)
        });
        if let (Some(surface), Some(at)) = (surface, at)
            && !args[at..].iter().any(|arg| differs(*arg))
        {
            list.push((surface, body.binding(surface).name.clone()));
        }
    }
    let (_, name) = read.into_iter().find(|surface| written.contains(surface))?;
    let child = child.name(db);
    Some(format!(
        "`{child}` reads and writes the surface `{name}` at the same places in each of them"
    ))
}

/// Whether a variable is computed once, from thread numbers and from parameters that are `same` for all grids.
fn follows_threads(body: &Body, binding: BindingId, same: &[bool]) -> bool {
    let assigned = body.exprs.iter().any(|e| match &e.kind {
        ExprKind::Assign { place, .. } | ExprKind::IncDec { place, .. } => {
            matches!(&body.expr(body.strip_parens(*place)).kind, ExprKind::Name(Name::Local(b)) if *b == binding)
        }
        _ => false,
    });
    let Some(init) = body.initialiser(binding) else {
        return false;
    };
    let span = body.expr(init).span;
    !assigned
        && body
            .exprs
            .iter()
            .filter(|inner| span.contains(inner.span))
            .all(|inner| match &inner.kind {
                ExprKind::Name(Name::Local(b)) => {
                    body.params.iter().position(|p| p == b).is_some_and(|index| same[index])
                }
                ExprKind::Call { .. } | ExprKind::Index { .. } | ExprKind::Deref(_) | ExprKind::Unknown { .. } => false,
                _ => true,
            })
}
