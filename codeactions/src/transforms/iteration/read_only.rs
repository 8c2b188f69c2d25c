//! Loads that take for granted that nothing writes there while the kernel runs: right from one grid to the next one, and wrong in a
//! grid that stays, where an iteration has written what the next one loads.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::dependence::{Access, Root, always_apart, own_footprint};
use gridfuse_analysis::facts::effects::Effects;
use gridfuse_analysis::hir::items::FunctionItem;

use super::kernel::Iteration;
use crate::api::assumption;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::facts::calls::is_plain_type;
use crate::facts::ctype;
use crate::facts::read_only::all_restrict;

/// Refuses such loads where iterations may pass on what they have written, which they may where one of them `writes`. The kernel's own
/// parameters aren't `__restrict__` any more when it has become a loop. `all`: the kernels whose iterations are those of one grid, and
/// their names.
pub fn refuse<'db>(
    iteration: &Iteration<'db>,
    all: &[(FunctionItem<'db>, &str)],
    writes: bool,
    effects: &Effects,
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) {
    let name = &iteration.kernel.name;
    if all_restrict(iteration.site.db, iteration.site.file) && writes {
        refusals.add(
            format!("`{name}` writes memory, and its file is compiled with `--restrict`, so that loads may miss what an iteration before has written"),
            Some(iteration.kernel.place()),
        );
        return;
    }
    let mut loads = effects.read_only.iter();
    let unclear = loads.find(|load| !is_never_written(iteration, all, load.place));
    let Some(load) = unclear.or(effects.restricts.first()).filter(|_| writes) else {
        return;
    };
    let mut given = iteration.kernel.params.iter().zip(&iteration.uniform);
    let passes_pointers = given
        .any(|(param, same)| !same && (param.ty.pointers > 0 || !is_plain_type(&ctype::normalize(&param.ty.base))));
    if passes_pointers {
        refusals.add(
            format!(
                "`{name}` makes read-only loads by {}, and an iteration may have written what the next one loads",
                load.what
            ),
            Some(load.place),
        );
    } else {
        let text = match all {
            [] | [_] => format!(
                "`{name}` writes nothing that it reads by {}, which may miss what the same kernel has written",
                load.what
            ),
            [others @ .., (_, last)] => format!(
                "neither `{}` nor `{last}` writes what `{name}` reads by {}, which may miss what the same grid has written",
                others.iter().map(|(_, name)| *name).collect::<Vec<_>>().join("`, `"),
                load.what
            ),
        };
        edit.assume(assumption::READ_ONLY_LOADS.of(Reason {
            text,
            place: Some(load.place),
        }));
    }
}

/// Whether none of the kernels writes the memory that a load reads, in any of their grids.
fn is_never_written<'db>(iteration: &Iteration<'db>, all: &[(FunctionItem<'db>, &str)], load: FileRange) -> bool {
    let (db, item) = (iteration.site.db, iteration.kernel.item);
    let found = own_footprint(db, item);
    // The call is the smallest of what begins with its name.
    let text = load.file.text(db);
    let around = |access: &&Access<'db>| {
        let at = access.span.shift(access.function.start(db));
        let begins = at.start == load.range.start && at.contains(load.range);
        access.function.file(db) == load.file && begins && at.text(&text).ends_with(')')
    };
    let length = |access: &Access<'db>| access.span.end - access.span.start;
    let smallest = found.accesses.iter().filter(around).map(length).min();
    let is_it = |access: &&Access<'db>| around(access) && Some(length(access)) == smallest;
    let reads: Vec<&Access<'db>> = found.accesses.iter().filter(is_it).collect();
    let kernels: Vec<FunctionItem<'db>> = match all {
        [] => vec![item],
        all => all.iter().map(|(item, _)| *item).collect(),
    };
    !reads.is_empty()
        && reads.iter().all(|access| access.kind.reads_only())
        && kernels.iter().all(|kernel| {
            let found = own_footprint(db, *kernel);
            let mut writes = found.accesses.iter().filter(|access| !access.kind.reads_only());
            let apart = |write: &Access<'db>| {
                let own = matches!(write.root, Root::Object(_));
                own || reads
                    .iter()
                    .all(|read| always_apart(db, (item, &read.root), (*kernel, &write.root)))
            };
            found.gaps.iter().all(|gap| gap.prints || gap.reads) && writes.all(apart)
        })
}

/// Whether the kernel may write memory that other blocks see.
pub fn may_write(iteration: &Iteration<'_>) -> bool {
    let found = own_footprint(iteration.site.db, iteration.kernel.item);
    let writes = |access: &Access<'_>| !access.kind.reads_only() && !matches!(access.root, Root::Object(_));
    found.accesses.iter().any(writes) || found.gaps.iter().any(|gap| !gap.prints)
}
