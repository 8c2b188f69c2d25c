//! A grid that stays until the loop ends keeps from others what each of the loop's grids gave back: multiprocessors, and the buffer into
//! which device code prints.

use gridfuse_analysis::facts::dependence::own_footprint;

use super::host_loop::HostLoop;
use super::kernels::Kernels;
use super::streams;
use crate::api::assumption;
use crate::api::refusal::Reason;
use crate::edit::builder::EditBuilder;
use crate::edit::names::words_with_macros;

/// What is taken for granted of the rest of the program.
pub fn assume(host: &HostLoop<'_>, kernels: &Kernels<'_>, edit: &mut EditBuilder<'_>) {
    let db = edit.db();
    if streams::may_be_others(host) {
        edit.assume(assumption::LOOP_ENDS_ALONE.of(Reason {
            text: "the loop ends without the work of other streams, which may have to wait until it does, and none of that waits for the loop"
                .to_owned(),
            place: Some(host.function.place(host.span())),
        }));
    }
    for kernel in &kernels.all {
        let words = words_with_macros(db, kernel.file, kernel.source(kernel.item.body_span(db)));
        let calls_what_prints = || own_footprint(db, kernel.item).gaps.iter().any(|gap| gap.prints);
        if words.contains("printf") || calls_what_prints() {
            edit.assume(assumption::PRINTF_BUFFER.of(Reason {
                text: format!(
                    "the buffer of printf (cudaLimitPrintfFifoSize) has room for what `{}` prints in all rounds",
                    kernel.name
                ),
                place: Some(kernel.place()),
            }));
        }
    }
}
