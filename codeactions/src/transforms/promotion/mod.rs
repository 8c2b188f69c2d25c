//! Promotion (El Hajj 2018, chapter 4): a kernel of one block that launches itself becomes one grid, whose blocks run the launches
//! one after the other. What the rewrites `promote`, `promote-overlap` and `promote-lookback` have in common.

mod chain;
mod emit;
mod marker;
mod memory;
mod overlap;
mod running;

use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::launch::takes_flat_blocks;

use crate::api::refusal::Ineligible;
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::emit::launch_bounds;
use crate::emit::split::Split;
use crate::facts::order;
use crate::facts::shared_room::{self, Needed};
use crate::transforms::self_launch::refuse_other_kernel;

use chain::{Chain, Passed};
pub use emit::{CHAIN_BLOCKS, MEMORY};
use overlap::Overlap;
use running::Running;

/// When a link begins.
pub enum Promotion {
    /// When it has been launched.
    Wait,
    /// Before; it waits where it needs the launch.
    Overlap,
    /// Before; it looks back where it needs the running value.
    Lookback,
}

/// The same with what that takes.
enum Form {
    Wait,
    Overlap(Overlap),
    Running(Overlap, Running),
}

/// The edit that makes one grid of the kernel that launches itself there.
///
/// # Errors
/// The reasons why it can't be done.
pub fn promote(mut draft: Draft<'_>, promotion: &Promotion) -> Result<SourceEdit, Ineligible> {
    let db = draft.site.db;
    refuse_other_kernel(&mut draft)?;
    let chain = Chain::find(&mut draft)?;
    launch_bounds::assume_enough(&chain.function, &chain.entries, &[], &mut draft.edit);
    let refusals = &mut draft.refusals;
    let form = match promotion {
        Promotion::Wait => Some(Form::Wait),
        Promotion::Overlap => Overlap::find(&chain, refusals).map(Form::Overlap),
        Promotion::Lookback => Overlap::find(&chain, refusals).and_then(|overlap| {
            Running::find(&chain, &overlap, refusals).map(|running| Form::Running(overlap, running))
        }),
    };
    let same: Vec<bool> = chain.passed.iter().map(|p| *p == Passed::Same).collect();
    let split = Split::of_instance(&chain.site, &chain.kernel, &same, refusals);
    let header = draft.header();
    let (form, header) = draft.settle(form.zip(header))?;
    let Draft { names, edit, .. } = &mut draft;
    if takes_flat_blocks(db, chain.site.id) {
        edit.assume(order::flat_blocks(&chain.site));
    }
    if let Form::Overlap(overlap) | Form::Running(overlap, _) = &form {
        overlap.assumes.iter().cloned().for_each(|reason| edit.assume(reason));
    }
    if let Form::Running(_, running) = &form {
        running.assumes.iter().cloned().for_each(|reason| edit.assume(reason));
    }
    // The number of the link, and its arguments twice.
    let needed = Needed::for_parameters(32, 2, &chain.function);
    let used = &effects(db, chain.function.item).shared;
    if let Some(reason) = shared_room::enough(&chain.function, needed, used) {
        edit.assume(reason);
    }
    emit::write(&chain, &form, &split, &header, names, edit);
    draft.finish()
}
