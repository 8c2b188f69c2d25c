//! Whether the parameters of the kernel with the loop fit into the space that CUDA has for a kernel's parameters.

use super::host_loop::HostLoop;
use super::translate::Param;
use crate::api::assumption;
use crate::api::refusal::{Reason, Refusals};
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::facts::sizes::named_at_most;

/// Bytes that the parameters of any kernel may take (CUDA C++ Programming Guide, "`__global__` Function Parameters"). From CUDA 12.1 and
/// compute capability 7.0 on there are more, if the driver knows them, too.
const MOST_BYTES: u64 = 4096;

/// Bytes that the runtime's own parameter takes, at most.
const OWN_BYTES: u64 = 256;

/// Refuses a parameter with the name of a type that another one has.
pub fn refuse_named_as_types(host: &HostLoop<'_>, params: &[Param], refusals: &mut Refusals) {
    let named = params.iter().find(|param| {
        params
            .iter()
            .any(|other| lex::identifiers(&other.ty).any(|word| word == param.name))
    });
    if let Some(param) = named {
        refusals.add(
            format!(
                "`{}` has the name of a type, which the kernel's parameters need: rename the variable",
                param.name
            ),
            Some(host.function.place(host.span())),
        );
    }
}

/// Refuses parameters that take more; where that isn't known, takes for granted that they don't.
pub fn refuse_large<'db>(host: &HostLoop<'db>, params: &[Param], refusals: &mut Refusals, edit: &mut EditBuilder<'db>) {
    let padded = |(size, align): (u64, u64)| size.checked_add(align - 1);
    let sizes: Vec<Option<u64>> = params
        .iter()
        .map(|param| padded(named_at_most(&host.function, &param.ty)?))
        .collect();
    let known: u64 = sizes
        .iter()
        .flatten()
        .fold(OWN_BYTES, |sum, size| sum.saturating_add(*size));
    let place = Some(host.function.place(host.span()));
    if known > MOST_BYTES {
        let largest = params.iter().zip(&sizes).max_by_key(|(_, size)| **size);
        let name = largest.map_or("", |(param, _)| &param.value);
        refusals.add(
            format!(
                "the kernel with the loop would have more than {MOST_BYTES} bytes of parameters, `{name}` among them"
            ),
            place,
        );
        return;
    }
    let unknown = params.iter().zip(&sizes).filter(|(_, size)| size.is_none());
    for (param, _) in unknown {
        edit.assume(assumption::LAUNCHES_ACCEPTED.of(Reason {
            text: format!(
                "CUDA accepts the kernel with the loop: `{}`, of the type `{}`, and its other parameters take no more than {MOST_BYTES} bytes",
                param.value, param.ty
            ),
            place,
        }));
    }
}
