//! Promotion (El Hajj 2018, chapter 4): a kernel of one block that launches itself becomes one grid, whose blocks run the launches
//! one after the other. What the rewrites `promote`, `promote-overlap` and `promote-lookback` have in common.

mod chain;
mod emit;
mod marker;
mod memory;
mod overlap;
mod running;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::{LaunchId, takes_flat_blocks};

use crate::api::refusal::Ineligible;
use crate::api::refusal::Refusals;
use crate::api::refusal::refuse;
use crate::api::source_edit::SourceEdit;
use crate::edit::builder::EditBuilder;
use crate::edit::builder::finish;
use crate::edit::include::Header;
use crate::edit::names::Names;
use crate::emit::split::Split;
use crate::facts::effects::effects;
use crate::facts::order;
use crate::transforms::aggregate::shared_memory;

use chain::{Chain, Passed};
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

/// The edit that makes one grid of the kernel that launches itself at `launch`.
///
/// # Errors
/// The reasons why it can't be done.
pub fn promote<'db>(db: &'db dyn Db, launch: LaunchId<'db>, promotion: &Promotion) -> Result<SourceEdit, Ineligible> {
    let mut names = Names::default();
    let chain = Chain::find(db, launch, &mut names)?;
    let mut refusals = Refusals::default();
    let form = match promotion {
        Promotion::Wait => Some(Form::Wait),
        Promotion::Overlap => Overlap::find(&chain, &mut refusals).map(Form::Overlap),
        Promotion::Lookback => Overlap::find(&chain, &mut refusals).and_then(|overlap| {
            Running::find(&chain, &overlap, &mut refusals).map(|running| Form::Running(overlap, running))
        }),
    };
    let same: Vec<bool> = chain.passed.iter().map(|p| *p == Passed::Same).collect();
    let split = Split::of_instance(&chain.site, &chain.kernel, &same, &mut refusals);
    let header = Header::for_file(db, chain.site.file)
        .map_err(|r| refusals.add(r.text, r.place))
        .ok();
    refusals.check()?;
    let (Some(form), Some(header)) = (form, header) else {
        return Err(refuse("the launch is not understood", Some(chain.site.here())));
    };
    let mut edit = EditBuilder::new(db);
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
    let needed = 32 + 32 * chain.passed.len() as u32;
    let used = effects(db, chain.function.item).shared.first().map(|s| s.place);
    if let Some(reason) = shared_memory(&chain.function, needed, used) {
        edit.assume(reason);
    }
    emit::write(&chain, &form, &split, &header, &mut names, &mut edit);
    finish(edit)
}
