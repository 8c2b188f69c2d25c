//! Loads that take for granted that nobody writes while the kernel runs (`__ldg`, `ld.global.nc`, textures, surfaces), in a grid that
//! takes the place of many. What one of these has written, the next one would find; within one grid a load may miss it.

use std::collections::BTreeSet;

use gridfuse_analysis::base::compile::compilation;
use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::dependence::{Root, own_footprint};
use gridfuse_analysis::facts::effects::{Effects, Found};
use gridfuse_analysis::hir::items::FunctionItem;

use crate::api::assumption;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;

/// The file is compiled so that all pointers that kernels get are `__restrict__`.
pub fn all_restrict(db: &dyn Db, file: SourceFile) -> bool {
    compilation(db, file).commands.iter().any(|command| command.restrict)
}

/// Refuses a kernel named `name` that writes through the very pointer by which it loads so; that other pointers don't lead there is
/// assumed.
pub fn refuse_written<'db>(
    db: &'db dyn Db,
    kernel: FunctionItem<'db>,
    name: &str,
    effects: &Effects,
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) {
    let restrict = all_restrict(db, kernel.file(db));
    if effects.read_only.is_empty() && effects.restricts.is_empty() && !restrict {
        return;
    }
    let footprint = own_footprint(db, kernel);
    let seen = |root: &Root| !matches!(root, Root::Object(_));
    let written: BTreeSet<&Root> = footprint
        .accesses
        .iter()
        .filter(|access| !access.kind.reads_only() && seen(&access.root))
        .map(|access| &access.root)
        .collect();
    if written.is_empty() && footprint.gaps.iter().all(|gap| gap.prints) {
        return;
    }
    if restrict {
        refusals.add(
            format!("`{name}` writes memory, and its file is compiled with `--restrict`, so that loads may miss what the same kernel has written"),
            Some(FileRange {
                file: kernel.file(db),
                range: kernel.signature(db).name_span.shift(kernel.start(db)),
            }),
        );
        return;
    }
    let roots = |load: &Found| {
        let mut roots: BTreeSet<&Root> = BTreeSet::new();
        for access in footprint.accesses.iter().filter(|access| access.kind.reads_only()) {
            let place = FileRange {
                file: access.function.file(db),
                range: access.span.shift(access.function.start(db)),
            };
            if place.file == load.place.file && place.range.contains(load.place.range) {
                roots.insert(&access.root);
            }
        }
        roots
    };
    let through_the_same = |load: &&Found| {
        roots(load)
            .into_iter()
            .any(|root| *root != Root::Unknown && written.contains(root))
    };
    if let Some(load) = effects.read_only.iter().find(through_the_same) {
        refusals.add(
            format!(
                "`{name}` writes what it reads by {}, which may miss what the same kernel has written",
                load.what
            ),
            Some(load.place),
        );
    } else if let Some(load) = effects.read_only.first().or(effects.restricts.first()) {
        edit.assume(assumption::READ_ONLY_LOADS.of(Reason {
            text: format!(
                "`{name}` writes nothing that it reads by {}, which may miss what the same kernel has written",
                load.what
            ),
            place: Some(load.place),
        }));
    }
}
