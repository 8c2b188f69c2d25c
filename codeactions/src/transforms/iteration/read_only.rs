//! Loads that take for granted that nothing writes there while the kernel runs: right from one grid to the next one, and wrong in a
//! grid that stays, where an iteration has written what the next one loads.

use gridfuse_analysis::facts::dependence::{Root, own_footprint};
use gridfuse_analysis::facts::effects::Effects;

use super::kernel::Iteration;
use crate::api::assumption;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::facts::calls::is_plain_type;
use crate::facts::ctype;
use crate::facts::read_only::all_restrict;

/// Refuses such loads where iterations may pass on what they have written, which they may where one of them `writes`. The kernel's own
/// parameters aren't `__restrict__` any more when it has become a loop. `all`: the kernels whose iterations are those of one grid.
pub fn refuse<'db>(
    iteration: &Iteration<'db>,
    all: &[&str],
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
    let Some(load) = effects.read_only.first().or(effects.restricts.first()) else {
        return;
    };
    if !writes {
        return;
    }
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
            [others @ .., last] => format!(
                "neither `{}` nor `{last}` writes what `{name}` reads by {}, which may miss what the same grid has written",
                others.join("`, `"),
                load.what
            ),
        };
        edit.assume(assumption::READ_ONLY_LOADS.of(Reason {
            text,
            place: Some(load.place),
        }));
    }
}

/// Whether the kernel may write memory that other blocks see.
pub fn may_write(iteration: &Iteration<'_>) -> bool {
    let found = own_footprint(iteration.site.db, iteration.kernel.item);
    let writes = |access: &gridfuse_analysis::facts::dependence::Access<'_>| {
        !access.kind.reads_only() && !matches!(access.root, Root::Object(_))
    };
    found.accesses.iter().any(writes) || found.gaps.iter().any(|gap| !gap.prints)
}
