//! How much local memory a block takes when one thread runs it.

use gridfuse_analysis::facts::launch::constant_value;
use gridfuse_analysis::hir::{BinOp, Binding, BindingId, Body, ExprId, ExprKind, Storage};

use super::layout::Layout;
use super::{BlockThreads, Reason, reason};
use crate::facts::child::Child;
use crate::facts::ctype;
use crate::facts::site::Site;

/// Sizes of the arrays.
#[derive(Debug)]
pub struct Sizes {
    /// All of them, in bytes.
    pub bytes: u64,
    /// Threads of a block.
    pub threads: BlockThreads,
    /// The variable in dynamic shared memory, with its number of elements.
    pub dynamic: Option<(BindingId, u64)>,
}

impl Sizes {
    /// Adds them up; refuses what has no known size.
    pub fn of(
        child: &Child<'_>,
        layout: &Layout,
        threads: BlockThreads,
        shared_bytes: Option<u64>,
    ) -> Result<Sizes, Vec<Reason>> {
        let body: &Body = &child.body;
        let mut refused = Vec::new();
        let mut bytes = 0u64;
        let mut dynamic = None;
        for (index, variable) in body.bindings.iter().enumerate() {
            let binding = BindingId(index as u32);
            let place = child.place_of(variable.span);
            match variable.storage {
                Storage::Shared => match size(child, variable) {
                    Some(size) => bytes = bytes.saturating_add(size),
                    None => refused.push(reason(
                        format!("how large `{}` of `{}` is isn't known", variable.name, child.name),
                        place,
                    )),
                },
                Storage::ExternShared => {
                    let element = bytes_of(variable);
                    let one = variable.ty.array.len() == 1 && dynamic.is_none();
                    match (shared_bytes, element) {
                        (Some(given), Some(element)) if one && given >= element => {
                            bytes = bytes.saturating_add(given);
                            dynamic = Some((binding, given / element));
                        }
                        _ => refused.push(reason(
                            format!(
                                "`{}` lies in dynamic shared memory, whose size isn't a constant at the launch",
                                variable.name
                            ),
                            place,
                        )),
                    }
                }
                _ if layout.arrays.contains(&binding) => match size(child, variable) {
                    Some(size) => bytes = bytes.saturating_add(size.saturating_mul(threads.most)),
                    None => refused.push(reason(
                        format!(
                            "how large `{}` is, which is used on both sides of a barrier, isn't known",
                            variable.name
                        ),
                        place,
                    )),
                },
                _ => {}
            }
        }
        if layout.exits {
            bytes = bytes.saturating_add(threads.most);
        }
        if refused.is_empty() {
            Ok(Sizes {
                bytes,
                threads,
                dynamic,
            })
        } else {
            Err(refused)
        }
    }
}

/// Bytes of the `__shared__` variables of fixed size of a child, those of functions that it calls not among them. `None`: not known.
pub fn static_shared_bytes(child: &Child<'_>) -> Option<u64> {
    let shared = child.body.bindings.iter().filter(|b| b.storage == Storage::Shared);
    shared.map(|variable| size(child, variable)).sum()
}

/// Bytes of a variable, all elements of an array included.
fn size(child: &Child<'_>, variable: &Binding) -> Option<u64> {
    let mut total = bytes_of(variable)?;
    for extent in &variable.ty.array {
        let count = constant_value(child.db, child.item, &child.body, (*extent)?)?;
        total = total.checked_mul(u64::try_from(count).ok()?)?;
    }
    Some(total)
}

/// Bytes of one element.
fn bytes_of(variable: &Binding) -> Option<u64> {
    let ty = &variable.ty;
    if ty.reference || ty.complex {
        return None;
    }
    if ty.pointers > 0 {
        return Some(8);
    }
    bytes_of_type(&ty.base)
}

/// The value of an expression of the launch that is made of constants and sizes of types: `64 * sizeof(float)`.
pub fn constant_bytes(site: &Site<'_>, expr: ExprId) -> Option<u64> {
    match &site.body.expr(expr).kind {
        ExprKind::Paren(e) => constant_bytes(site, *e),
        ExprKind::Binary(BinOp::Mul, a, b) => constant_bytes(site, *a)?.checked_mul(constant_bytes(site, *b)?),
        ExprKind::Binary(BinOp::Add, a, b) => constant_bytes(site, *a)?.checked_add(constant_bytes(site, *b)?),
        ExprKind::SizeOf if !site.body.expr(expr).from_macro => {
            let source = site.expr_source(expr).trim().strip_prefix("sizeof")?.trim();
            bytes_of_type(source.strip_prefix('(')?.strip_suffix(')')?)
        }
        _ => u64::try_from(constant_value(site.db, site.parent, &site.body, expr)?).ok(),
    }
}

/// A number, or a vector of numbers.
pub(super) fn is_number(base: &str) -> bool {
    bytes_of_type(base).is_some()
}

/// Bytes of a type of the language's or CUDA's own.
fn bytes_of_type(base: &str) -> Option<u64> {
    let name = ctype::normalize(base);
    let plain = |name: &str| {
        Some(match name {
            "bool" | "char" | "signed char" | "unsigned char" => 1,
            "short" | "unsigned short" | "half" | "__half" => 2,
            "int" | "unsigned int" | "float" | "half2" | "__half2" => 4,
            "long" | "unsigned long" | "long long" | "unsigned long long" | "double" | "size_t" | "ptrdiff_t"
            | "int64_t" | "uint64_t" | "intptr_t" | "uintptr_t" | "clock_t" => 8,
            _ => return None,
        })
    };
    if let Some(size) = plain(&name) {
        return Some(size);
    }
    // CUDA's vectors: `float4`.
    let count = u64::from(name.chars().last()?.to_digit(10).filter(|n| (1..=4).contains(n))?);
    let element = match name.get(..name.len() - 1)? {
        "char" | "uchar" => 1,
        "short" | "ushort" => 2,
        "int" | "uint" | "float" => 4,
        "long" | "ulong" | "longlong" | "ulonglong" | "double" => 8,
        _ => return None,
    };
    Some(element * count)
}
