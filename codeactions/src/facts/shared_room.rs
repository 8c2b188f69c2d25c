//! How much shared memory a block has left for what a rewrite puts there.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::effects::Found;
use gridfuse_analysis::hir::{Binding, Storage};

use crate::api::assumption::{self, Assumed};
use crate::api::refusal::Reason;
use crate::facts::cluster::Function;
use crate::facts::site::function_around;
use crate::facts::sizes::{at_most, of_variable};

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
    /// `fixed` bytes and `times` the parameters of a kernel, as they stand in a struct of its own.
    pub fn for_parameters(fixed: u32, times: u32, kernel: &Function<'_>) -> Needed {
        let mut needed = Needed::Bytes(fixed);
        for parameter in &kernel.body.params {
            let size = at_most(kernel, &kernel.body.binding(*parameter).ty);
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
    let fits = || Some(static_bytes(function, used)? <= left? && !has_dynamic(function, used));
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

/// Bytes of the `__shared__` variables of fixed size of a kernel and of the functions that it calls. `used` are the places where one of them
/// uses some. `None`: not known, or others come on top: those of the file.
pub fn static_bytes(function: &Function<'_>, used: &[Found]) -> Option<u64> {
    let callees = callees(function, used)?;
    std::iter::once(function).chain(&callees).try_fold(0u64, |sum, one| {
        let own: Vec<&Found> = used.iter().filter(|found| is_in(one, found.place)).collect();
        sum.checked_add(own_bytes(one, &own)?)
    })
}

/// The functions that a kernel calls and that use some. `None`: not known, or templates, of which each instance has variables of its own.
fn callees<'db>(function: &Function<'db>, used: &[Found]) -> Option<Vec<Function<'db>>> {
    let mut callees: Vec<Function<'db>> = Vec::new();
    for found in used {
        if is_in(function, found.place) || callees.iter().any(|callee| is_in(callee, found.place)) {
            continue;
        }
        let callee = function_around(function.db, found.place)?;
        if !callee.signature(function.db).scope_names.is_empty() {
            return None;
        }
        callees.push(Function::new(function.db, callee));
    }
    Some(callees)
}

/// Whether one of them has a variable in dynamic shared memory: how much of it there is the launch says.
fn has_dynamic(function: &Function<'_>, used: &[Found]) -> bool {
    let dynamic = |one: &Function<'_>| one.body.bindings.iter().any(|b| b.storage == Storage::ExternShared);
    callees(function, used).is_none_or(|callees| std::iter::once(function).chain(&callees).any(dynamic))
}

fn is_in(function: &Function<'_>, place: FileRange) -> bool {
    let end = function.start + function.item.text(function.db).len() as u32;
    function.file == place.file && function.start <= place.range.start && place.range.end <= end
}

/// Bytes of the variables that a function declares; `None` where it uses others, too.
fn own_bytes(function: &Function<'_>, used: &[&Found]) -> Option<u64> {
    let shared = |binding: &&Binding| matches!(binding.storage, Storage::Shared | Storage::ExternShared);
    let variables: Vec<&Binding> = function.body.bindings.iter().filter(shared).collect();
    let declared = |found: &&Found| {
        variables.iter().any(|variable| {
            let declaration = variable.decl_span.shift(function.start);
            declaration.start <= found.place.range.start && found.place.range.end <= declaration.end
        })
    };
    if !used.iter().all(declared) {
        return None;
    }
    let fixed = variables.iter().filter(|variable| variable.storage == Storage::Shared);
    // Each may begin at a multiple of 16.
    let mut bytes = fixed.map(|variable| of_variable(function, variable)?.checked_next_multiple_of(16));
    bytes.try_fold(0u64, |sum, bytes| sum.checked_add(bytes?))
}
