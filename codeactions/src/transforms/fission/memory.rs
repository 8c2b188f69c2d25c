//! How much local memory a block takes when one thread runs it.

use gridfuse_analysis::facts::launch::constant_value;
use gridfuse_analysis::hir::{BinOp, Binding, BindingId, Body, ExprId, ExprKind, Storage, Type};

use super::layout::Layout;
use super::{BlockThreads, Reason, reason};
use crate::facts::child::Child;
use crate::facts::site::Site;
use crate::facts::sizes::{size_of, size_of_name};

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

/// Bytes of a variable of numbers or pointers, all elements of an array included.
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
    if variable.ty.reference {
        return None;
    }
    let element = Type {
        array: Vec::new(),
        ..variable.ty.clone()
    };
    Some(size_of(&element)?.0)
}

/// The value of an expression of the launch that is made of constants and sizes of types: `64 * sizeof(float)`.
pub fn constant_bytes(site: &Site<'_>, expr: ExprId) -> Option<u64> {
    match &site.body.expr(expr).kind {
        ExprKind::Paren(e) => constant_bytes(site, *e),
        ExprKind::Binary(BinOp::Mul, a, b) => constant_bytes(site, *a)?.checked_mul(constant_bytes(site, *b)?),
        ExprKind::Binary(BinOp::Add, a, b) => constant_bytes(site, *a)?.checked_add(constant_bytes(site, *b)?),
        ExprKind::SizeOf if !site.body.expr(expr).from_macro => {
            let source = site.expr_source(expr).trim().strip_prefix("sizeof")?.trim();
            Some(size_of_name(source.strip_prefix('(')?.strip_suffix(')')?)?.0)
        }
        _ => u64::try_from(constant_value(site.db, site.parent, &site.body, expr)?).ok(),
    }
}

/// A number, or a vector of numbers.
pub(super) fn is_number(base: &str) -> bool {
    size_of_name(base).is_some()
}
