//! Launches that CUDA refuses, and whose grids would run all the same once they aren't launches any more.

use gridfuse_analysis::facts::effects::effects;

use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Reason;
use crate::edit::builder::EditBuilder;
use crate::emit::launch_bounds;
use crate::facts::child::Child;
use crate::facts::cluster::Function;
use crate::facts::shared_room::static_bytes;
use crate::facts::site::Site;
use crate::transforms::fission::constant_bytes;

/// Shared memory that any launch may have, in bytes; more has to be asked for by the host (CUDA C++ Programming Guide, "Shared Memory" of each
/// compute capability).
const SHARED_BYTES: u64 = 48 << 10;

/// Takes for granted that CUDA doesn't refuse the launch for its dynamic shared memory or its block size, where that isn't clear.
///
/// Grids and blocks beyond the limits of all GPUs are a matter of the runtime header (`is_launchable`), which runs nothing for them.
pub fn assume_accepted(site: &Site<'_>, child: &Child<'_>, edit: &mut EditBuilder<'_>) {
    assume_shared_memory(site, child, edit);
    assume_block(site, child, edit);
}

fn assume_shared_memory(site: &Site<'_>, child: &Child<'_>, edit: &mut EditBuilder<'_>) {
    let Some(shared) = &site.facts.shared else { return };
    let fits = || {
        let dynamic = constant_bytes(site, shared.expr)?;
        if dynamic == 0 {
            return Some(true);
        }
        let found = effects(child.db, child.item);
        let fixed = static_bytes(&Function::new(child.db, child.item), &found.shared)?;
        Some(found.unknown.is_empty() && dynamic.checked_add(fixed)? <= SHARED_BYTES)
    };
    if fits() == Some(true) {
        return;
    }
    edit.assume(assumption::LAUNCHES_ACCEPTED.of(Reason {
        text: format!(
            "CUDA accepts the launches of `{}`: `{}` bytes of shared memory are no more than 48 KiB, or than what the host allows (a grid \
             whose launch it refuses would run now)",
            child.name,
            site.source(shared.span)
        ),
        place: Some(site.place(shared.span)),
    }));
}

fn assume_block(site: &Site<'_>, child: &Child<'_>, edit: &mut EditBuilder<'_>) {
    let Some(most) = launch_bounds::allowed_threads(child) else {
        return;
    };
    let block = site.facts.block.constant;
    let threads = block.map(|block| block.iter().fold(1u64, |n, x| n.saturating_mul(*x)));
    let fits = threads.zip(most).map(|(threads, most)| threads <= most);
    if fits == Some(true) {
        return;
    }
    let mut text = format!(
        "CUDA accepts the launches of `{}`: no block has more threads than its __launch_bounds__ allow (a grid whose launch it refuses \
         would run now)",
        child.name
    );
    if let (Some(false), Some((threads, most))) = (fits, threads.zip(most)) {
        text.push_str(&format!(
            "; the code contradicts it: blocks of {threads} threads, of which {most} are allowed"
        ));
    }
    let assumed = assumption::LAUNCHES_ACCEPTED.of(Reason {
        text,
        place: Some(site.place(site.facts.block.operand.span)),
    });
    edit.assume(Assumed {
        contradicted: fits == Some(false),
        ..assumed
    });
}
