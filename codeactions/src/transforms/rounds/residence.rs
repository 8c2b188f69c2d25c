//! A grid that stays until the loop ends keeps from others what each of the loop's grids gave back: multiprocessors, and the buffer into
//! which device code prints.

use gridfuse_analysis::facts::dependence::own_footprint;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::names::unqualified;

use super::host_loop::HostLoop;
use super::kernels::Kernels;
use crate::api::assumption;
use crate::api::refusal::Reason;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::names::words_with_macros;
use crate::runtime::is_header;

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
    let mut files = included_files(db, host.file()).iter();
    let has_streams = files.any(|file| {
        let text = file.text(db);
        // Large files are searched before they are read word by word.
        STREAMS.iter().any(|word| text.contains(word))
            && !is_header(db, *file)
            && lex::identifiers(&text).any(|word| STREAMS.contains(&unqualified(word)))
    });
    if has_streams {
        edit.assume(assumption::LOOP_ENDS_ALONE.of(Reason {
            text: "the loop ends without the work of other streams, which may have to wait until it does".to_owned(),
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
