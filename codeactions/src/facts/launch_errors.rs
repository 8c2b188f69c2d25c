//! Kernels that ask for errors of their launches.
//!
//! What becomes of a launch can't fail any more where it was, so who asks there hears of no error. That changes what is computed only
//! where a launch does fail, which is what the programmer asks about: taken for granted, and said.

use gridfuse_analysis::facts::effects::Effects;

use crate::api::assumption;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;

/// Takes for granted that no launch fails of the function `name`, if it asks. `effects` are the function's.
pub fn assume_none(name: &str, effects: &Effects, edit: &mut EditBuilder<'_>) {
    if let Some(found) = effects.errors.first() {
        edit.assume(assumption::NO_LAUNCH_FAILS.of(Reason {
            text: format!(
                "no CUDA call fails in `{name}`, and no launch has zero blocks: `{name}` checks {}",
                found.what
            ),
            place: Some(found.place),
        }));
    }
}

/// Refuses a function that asks, where what happens to it would depend on the answer.
pub fn refuse_asked(name: &str, effects: &Effects, refusals: &mut Refusals) {
    if let Some(found) = effects.errors.first() {
        refusals.add(
            format!("`{name}` checks its launches with {}", found.what),
            Some(found.place),
        );
    }
}
