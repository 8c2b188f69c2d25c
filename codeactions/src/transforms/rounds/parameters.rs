//! Whether the parameters of the kernel with the loop fit into the space that CUDA has for a kernel's parameters.

use gridfuse_analysis::hir::Type;

use super::classes::class_named;
use super::host_loop::HostLoop;
use super::translate::Param;
use crate::api::assumption;
use crate::api::refusal::{Reason, Refusals};
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::facts::ctype;
use crate::facts::room::size_of;

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
    let sizes: Vec<Option<u64>> = params.iter().map(|param| padded(layout(host, &param.ty, 0)?)).collect();
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

/// Classes in classes that are looked into.
const MAX_DEPTH: u32 = 8;

/// What a value of a type takes, at most, and how it is aligned; `None`: not known.
fn layout(host: &HostLoop<'_>, ty: &str, depth: u32) -> Option<(u64, u64)> {
    const POINTER: (u64, u64) = (8, 8);
    let (db, file) = (host.function.db, host.file());
    if ty.contains(['*', '&']) {
        return Some(POINTER);
    }
    let name = ty
        .split_whitespace()
        .filter(|word| !matches!(*word, "const" | "volatile" | "struct" | "enum" | "mutable"))
        .collect::<Vec<_>>()
        .join(" ");
    let plain = Type {
        base: name.clone(),
        ..Type::default()
    };
    if let Some(known) = size_of(&plain) {
        return Some(known);
    }
    if ctype::is_integer(db, file, &name) {
        return Some(POINTER);
    }
    let class = class_named(db, file, &name).filter(|_| depth < MAX_DEPTH)?;
    if class.is_enum {
        return Some(POINTER);
    }
    if !class.bases.is_empty() || !class.template_names.is_empty() {
        return None;
    }
    let (size, align) = class.fields.iter().try_fold((0, 1), |(at, widest), (ty, declarator)| {
        let count = declarator.split('[').skip(1).try_fold(1, |count: u64, extent| {
            let extent: u64 = extent.split(']').next()?.trim().parse().ok()?;
            count.checked_mul(extent)
        })?;
        let (size, align) = match declarator.contains(['*', '&', '(']) {
            true => POINTER,
            false => layout(host, ty, depth + 1)?,
        };
        let begins = u64::next_multiple_of(at, align);
        Some((begins.checked_add(size.checked_mul(count)?)?, align.max(widest)))
    })?;
    Some((size.next_multiple_of(align), align))
}
