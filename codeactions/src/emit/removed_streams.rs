//! Streams that were there for one launch each, and aren't needed any more.

use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::{BindingId, StmtId, StmtKind};

use crate::edit::builder::EditBuilder;
use crate::emit::was;
use crate::facts::order::CreatedStream;
use crate::facts::site::Site;

/// Takes them away: where they are created, where they are destroyed, and their declarations. One that declares another variable, too,
/// which is still used, stays as it is.
pub fn remove<'s, 'db: 's>(
    streams: impl Iterator<Item = (&'s Site<'db>, &'s CreatedStream)>,
    edit: &mut EditBuilder<'db>,
) {
    let mut declarations: Vec<(&Site<'db>, StmtId, Vec<BindingId>)> = Vec::new();
    let mut seen: Vec<(FunctionItem<'db>, BindingId)> = Vec::new();
    for (site, stream) in streams {
        // Launches that keep their order share one.
        if seen.contains(&(site.parent, stream.variable)) {
            continue;
        }
        seen.push((site.parent, stream.variable));
        for stmt in stream.create.iter().chain(&stream.destroy) {
            was::delete(site, *stmt, edit);
        }
        if let Some(stmt) = stream.declaration {
            let same = |(other, s, _): &&mut (&Site<'db>, _, _)| other.parent == site.parent && *s == stmt;
            match declarations.iter_mut().find(same) {
                Some((_, _, gone)) => gone.push(stream.variable),
                None => declarations.push((site, stmt, vec![stream.variable])),
            }
        }
    }
    for (site, stmt, gone) in declarations {
        let StmtKind::Decl(decls) = &site.body.stmt(stmt).kind else {
            continue;
        };
        if decls.iter().all(|decl| gone.contains(&decl.binding)) {
            was::delete(site, stmt, edit);
        }
    }
}
