//! What values take in memory: numbers, CUDA's vectors, pointers, and classes in sight.

use gridfuse_analysis::facts::functors::class_named;
use gridfuse_analysis::facts::launch::constant_value;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::hir::{Binding, Type};

use crate::edit::lex;
use crate::facts::alignment::{Asked, asked_of};
use crate::facts::calls;
use crate::facts::cluster::Function;
use crate::facts::ctype;

/// Size and alignment of a pointer, in bytes.
const POINTER: (u64, u64) = (8, 8);

/// Classes in classes that are looked into.
const MAX_DEPTH: u32 = 8;

/// Size and alignment, in bytes, of a number, a vector of CUDA's or a pointer. `None`: it is of another type, or not known.
pub fn size_of(ty: &Type) -> Option<(u64, u64)> {
    if ty.pointers > 0 {
        return Some(POINTER);
    }
    if !ty.array.is_empty() || ty.complex {
        return None;
    }
    size_of_name(&ty.base)
}

/// The same of a type by its name.
pub fn size_of_name(base: &str) -> Option<(u64, u64)> {
    let base = ctype::normalize(base);
    let scalar = |name: &str| {
        Some(match name {
            "bool" | "char" | "signed char" | "unsigned char" | "uchar" => 1,
            "short" | "unsigned short" | "ushort" | "half" | "__half" => 2,
            "int" | "unsigned int" | "uint" | "float" | "half2" | "__half2" => 4,
            "long" | "unsigned long" | "ulong" | "long long" | "unsigned long long" | "longlong" | "ulonglong"
            | "double" | "size_t" | "int64_t" | "uint64_t" | "ptrdiff_t" | "intptr_t" | "uintptr_t" | "clock_t"
            | "cudaStream_t" => 8,
            _ => return None,
        })
    };
    if let Some(size) = scalar(&base) {
        return Some((size, size));
    }
    if base == "dim3" {
        return Some((12, 4));
    }
    let count = base.chars().last()?.to_digit(10)?;
    if !calls::VECTORS.contains(&base.as_str()) {
        return None;
    }
    let part = scalar(base.get(..base.len() - 1)?)?;
    let size = part * u64::from(count);
    // A vector of three is aligned as its parts.
    Some((size, if count == 3 { part } else { size.min(16) }))
}

/// What a value of a type takes at most, as a function names it, and how it is aligned, in bytes: classes in sight, too. `None`: not known.
pub fn at_most(function: &Function<'_>, ty: &Type) -> Option<(u64, u64)> {
    if ty.reference || ty.complex {
        return None;
    }
    // A parameter that is written as an array is a pointer.
    if ty.is_pointer_like() {
        return Some(POINTER);
    }
    named_at_most(function, &ty.base)
}

/// The same of a type as it is written.
pub fn named_at_most(function: &Function<'_>, written: &str) -> Option<(u64, u64)> {
    // What a function, or a template, names itself is something else than what its file calls by that name.
    let signature = function.item.signature(function.db);
    let own =
        |word: &str| function.body.declared.contains(word) || signature.scope_names.iter().any(|name| name == word);
    if lex::identifiers(written).any(own) {
        return None;
    }
    of_name(function, written, 0)
}

fn of_name(function: &Function<'_>, written: &str, depth: u32) -> Option<(u64, u64)> {
    if written.contains("::*") || written.contains("::(") {
        // Pointers to members.
        return Some((16, 8));
    }
    if written.contains(['*', '&']) {
        return Some(POINTER);
    }
    let words = written.split_whitespace();
    let name = words
        .filter(|word| !matches!(*word, "const" | "volatile" | "struct" | "enum" | "mutable"))
        .collect::<Vec<_>>()
        .join(" ");
    if let Some(known) = size_of_name(&name) {
        return Some(known);
    }
    if ctype::is_integer(function.db, function.file, &name) {
        return Some(POINTER);
    }
    of_class(function, &name, depth)
}

fn of_class(function: &Function<'_>, name: &str, depth: u32) -> Option<(u64, u64)> {
    if depth >= MAX_DEPTH {
        return None;
    }
    if is_enum(function, name) {
        // At most: what it is made of is rarely said.
        return Some(POINTER);
    }
    let (_, class) = class_named(function.db, function.item, name)?;
    if !class.bases.is_empty() || !class.template_names.is_empty() || class.nontrivial {
        return None;
    }
    let asked = match asked_of(function.db, function.file, name) {
        Asked::Nothing => 1,
        Asked::Bytes(bytes) => bytes.max(1),
        Asked::NotKnown => return None,
    };
    let (size, align) = class
        .fields
        .iter()
        .try_fold((0, asked), |(at, widest), (ty, declarator)| {
            let count = declarator.split('[').skip(1).try_fold(1, |count: u64, extent| {
                let extent: u64 = extent.split(']').next()?.trim().parse().ok()?;
                count.checked_mul(extent)
            })?;
            let (size, align) = match declarator.contains(['*', '&', '(']) {
                true => of_name(function, declarator, depth + 1)?,
                false => of_name(function, ty, depth + 1)?,
            };
            let begins = u64::checked_next_multiple_of(at, align)?;
            Some((begins.checked_add(size.checked_mul(count)?)?, align.max(widest)))
        })?;
    // An object takes a byte at least.
    Some((size.max(1).checked_next_multiple_of(align)?, align))
}

fn is_enum(function: &Function<'_>, name: &str) -> bool {
    let files = included_files(function.db, function.file).iter();
    let mut named = files
        .flat_map(|file| items(function.db, *file).types.iter())
        .filter(|ty| ty.name == name);
    named.next().is_some_and(|ty| ty.is_enum) && named.all(|ty| ty.is_enum)
}

/// What a variable of a function takes at most, in bytes, with all elements of an array. `None`: not known.
pub fn of_variable(function: &Function<'_>, variable: &Binding) -> Option<u64> {
    let element = Type {
        array: Vec::new(),
        ..variable.ty.clone()
    };
    let (bytes, _) = at_most(function, &element)?;
    variable.ty.array.iter().try_fold(bytes, |bytes, extent| {
        let count = constant_value(function.db, function.item, &function.body, (*extent)?)?;
        bytes.checked_mul(u64::try_from(count).ok()?)
    })
}
