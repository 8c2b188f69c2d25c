//! How much shared memory a block has left for what a rewrite puts there.

use gridfuse_analysis::facts::effects::Found;
use gridfuse_analysis::facts::launch::constant_value;
use gridfuse_analysis::hir::{Binding, Storage, Type};

use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Reason;
use crate::facts::cluster::Function;
use crate::facts::room::size_of;

/// Static shared memory that a block may have, in bytes, less what alignment may take.
const STATIC_BYTES: u64 = 48 * 1024 - 208;

/// What a rewrite puts into shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// So many bytes.
    Bytes(u32),
    /// At least so many bytes: classes of the program's own come on top.
    AtLeast(u32),
}

impl Needed {
    /// `fixed` bytes and `times` the parameters of these types, as they stand in a struct of the kernel's.
    pub fn for_parameters<'t>(fixed: u32, times: u32, types: impl IntoIterator<Item = &'t Type>) -> Needed {
        let mut needed = Needed::Bytes(fixed);
        for ty in types {
            let size = if ty.reference { None } else { size_of(ty) };
            // Each is aligned to 16 bytes at most.
            let bytes = size.map_or(16, |(size, _)| u32::try_from(size).unwrap_or(u32::MAX).max(16));
            needed = needed.and(bytes.saturating_mul(times), size.is_some());
        }
        needed
    }

    fn and(self, more: u32, known: bool) -> Needed {
        match self {
            Needed::Bytes(bytes) if known => Needed::Bytes(bytes.saturating_add(more)),
            Needed::Bytes(bytes) | Needed::AtLeast(bytes) => Needed::AtLeast(bytes.saturating_add(more)),
        }
    }
}

/// A kernel that uses shared memory has enough left: an assumption, unless that is sure. `used` are the places where it, or what it calls,
/// uses some.
pub fn enough(function: &Function<'_>, needed: Needed, used: &[Found]) -> Option<Assumed> {
    let place = used.first()?.place;
    let left = match needed {
        Needed::Bytes(bytes) => STATIC_BYTES.checked_sub(u64::from(bytes)),
        Needed::AtLeast(_) => None,
    };
    let fits = || Some(of_kernel(function, used)? <= left?);
    if fits() == Some(true) {
        return None;
    }
    let bytes = match needed {
        Needed::Bytes(bytes) => format!("{bytes} bytes"),
        Needed::AtLeast(bytes) => format!("{bytes} bytes, and room for the classes among its arguments,"),
    };
    Some(assumption::SHARED_MEMORY.of(Reason {
        text: format!("a block of `{}` has {bytes} of shared memory to spare", function.name()),
        place: Some(place),
    }))
}

/// Bytes of the shared variables of a kernel. `None`: not known, or others come on top: those of the file, of functions that it calls, or
/// what the host asks for.
fn of_kernel(function: &Function<'_>, used: &[Found]) -> Option<u64> {
    let shared = |binding: &&Binding| matches!(binding.storage, Storage::Shared | Storage::ExternShared);
    let variables: Vec<&Binding> = function.body.bindings.iter().filter(shared).collect();
    let declared = |found: &Found| {
        found.place.file == function.file
            && variables.iter().any(|variable| {
                let declaration = variable.decl_span.shift(function.start);
                declaration.start <= found.place.range.start && found.place.range.end <= declaration.end
            })
    };
    if !used.iter().all(declared) {
        return None;
    }
    variables.iter().try_fold(0u64, |sum, variable| {
        let bytes = of_variable(function, variable).filter(|_| variable.storage == Storage::Shared)?;
        // Each may begin at a multiple of 16.
        sum.checked_add(bytes.next_multiple_of(16))
    })
}

fn of_variable(function: &Function<'_>, variable: &Binding) -> Option<u64> {
    let element = Type {
        array: Vec::new(),
        ..variable.ty.clone()
    };
    let mut bytes = size_of(&element)?.0;
    for extent in &variable.ty.array {
        let count = constant_value(function.db, function.item, &function.body, (*extent)?)?;
        bytes = bytes.checked_mul(u64::try_from(count).ok()?)?;
    }
    Some(bytes)
}
