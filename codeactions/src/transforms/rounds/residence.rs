//! A grid that stays until the loop ends keeps from others what each of the loop's grids gave back: multiprocessors, and the buffer into
//! which device code prints.

use gridfuse_analysis::hir::names::unqualified;

use super::host_loop::HostLoop;
use super::kernels::Kernels;
use crate::api::assumption;
use crate::api::refusal::Reason;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;

/// Words by which a program has work in several streams.
const STREAMS: [&str; 5] = [
    "cudaStreamCreate",
    "cudaStreamCreateWithFlags",
    "cudaStreamCreateWithPriority",
    "cudaStreamPerThread",
    "cudaStreamLegacy",
];

/// What is taken for granted of the rest of the program.
pub fn assume(host: &HostLoop<'_>, kernels: &Kernels<'_>, edit: &mut EditBuilder<'_>) {
    let db = edit.db();
    let has_streams = lex::identifiers(&host.file().text(db)).any(|word| STREAMS.contains(&unqualified(word)));
    if has_streams {
        edit.assume(assumption::LOOP_ENDS_ALONE.of(Reason {
            text: "the loop ends without the work of other streams, which may have to wait until it does".to_owned(),
            place: Some(host.function.place(host.span())),
        }));
    }
    let prints = |source: &str| lex::identifiers(source).any(|word| word == "printf");
    for kernel in &kernels.all {
        if prints(kernel.source(kernel.item.body_span(db))) {
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
