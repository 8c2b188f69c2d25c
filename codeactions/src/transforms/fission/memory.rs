//! How much local memory a block takes when one thread runs it.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::launch::constant_value;
use gridfuse_analysis::hir::{BinOp, Binding, BindingId, Body, ExprId, ExprKind, Name, Storage, Type};

use super::BlockThreads;
use super::layout::Layout;
use super::reasons::reason;
use crate::api::refusal::Reason;
use crate::facts::child::Child;
use crate::facts::cluster::Function;
use crate::facts::ctype::is_integer;
use crate::facts::site::Site;
use crate::facts::sizes::{at_most, size_of, size_of_name};

/// Sizes of the arrays.
#[derive(Debug)]
pub struct Sizes {
    /// All of them of which that is known, in bytes.
    pub bytes: u64,
    /// Threads of a block.
    pub threads: BlockThreads,
    /// The variable in dynamic shared memory.
    pub dynamic: Option<(BindingId, Dynamic)>,
    /// Shared arrays whose size depends on template arguments, or on constants that aren't in sight.
    pub unknown: Vec<BindingId>,
}

/// How large dynamic shared memory is.
#[derive(Clone, Copy, Debug)]
pub enum Dynamic {
    /// The launch says so: so many bytes, of which an element takes `element`, where that is known exactly.
    Bytes { all: u64, element: Option<u64> },
    /// So many as the threshold leaves for it; who launches compares.
    Room { element: Option<u64> },
}

/// What the launch tells of the memory that a child needs.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Dynamic shared memory, in bytes, where that is a constant.
    pub shared: Option<u64>,
    /// Dynamic shared memory of a size that the launch computes may take so many bytes.
    pub room: Option<u64>,
    /// Where the launch says how many threads a block has, if that isn't known.
    pub unknown_block: Option<FileRange>,
    /// The values of template parameters.
    pub values: Vec<(String, String)>,
}

impl Sizes {
    /// Adds them up; refuses what has no known size.
    pub fn of(child: &Child<'_>, layout: &Layout, threads: BlockThreads, told: &Told) -> Result<Sizes, Vec<Reason>> {
        let body: &Body = &child.body;
        let mut refused = Vec::new();
        let mut sizes = Sizes {
            bytes: 0,
            threads,
            dynamic: None,
            unknown: Vec::new(),
        };
        let add = |sizes: &mut Sizes, bytes: u64| sizes.bytes = sizes.bytes.saturating_add(bytes);
        for (index, variable) in body.bindings.iter().enumerate() {
            let binding = BindingId(index as u32);
            let place = child.place_of(variable.span);
            match variable.storage {
                Storage::Shared if variable.ty.reference || variable.ty.array.iter().any(Option::is_none) => {
                    refused.push(reason(
                        format!("how large `{}` of `{}` is isn't known", variable.name, child.name),
                        place,
                    ));
                }
                Storage::Shared => match size(child, variable, &told.values) {
                    Some(bytes) => add(&mut sizes, bytes),
                    None => sizes.unknown.push(binding),
                },
                Storage::ExternShared => {
                    let one = variable.ty.array.len() == 1 && sizes.dynamic.is_none();
                    let (exact, most) = (bytes_of(variable), element_at_most(child, variable));
                    match (told.shared, told.room, most) {
                        (Some(all), _, Some(most)) if one && all >= most => {
                            add(&mut sizes, all);
                            sizes.dynamic = Some((binding, Dynamic::Bytes { all, element: exact }));
                        }
                        (None, Some(room), Some(most)) if one && room >= most => {
                            add(&mut sizes, room);
                            sizes.dynamic = Some((binding, Dynamic::Room { element: exact }));
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
                _ if layout.arrays.contains(&binding) => match size(child, variable, &[]) {
                    Some(bytes) => add(&mut sizes, bytes.saturating_mul(threads.most)),
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
            add(&mut sizes, threads.most);
        }
        if refused.is_empty() { Ok(sizes) } else { Err(refused) }
    }
}

/// What a variable of numbers, pointers or, in shared memory, of a class in sight takes at most, all elements of an array included; `values`:
/// those of template parameters.
fn size(child: &Child<'_>, variable: &Binding, values: &[(String, String)]) -> Option<u64> {
    let ty = &variable.ty;
    let element = match variable.storage {
        Storage::Shared => {
            let given = || size_of_name(&values.iter().find(|(name, _)| *name == ty.base)?.1);
            element_at_most(child, variable).or_else(|| given().map(|(bytes, _)| bytes))
        }
        _ => bytes_of(variable).or_else(|| integer_at_most(child, variable)),
    };
    let mut total = element?;
    for extent in &ty.array {
        total = total.checked_mul(count_of(child, (*extent)?, values)?)?;
    }
    Some(total)
}

/// The number of elements.
fn count_of(child: &Child<'_>, extent: ExprId, values: &[(String, String)]) -> Option<u64> {
    let body: &Body = &child.body;
    if let Some(count) = constant_value(child.db, child.item, body, extent) {
        return u64::try_from(count).ok();
    }
    match &body.expr(extent).kind {
        ExprKind::Paren(e) => count_of(child, *e, values),
        ExprKind::Binary(BinOp::Mul, a, b) => count_of(child, *a, values)?.checked_mul(count_of(child, *b, values)?),
        ExprKind::Binary(BinOp::Add, a, b) => count_of(child, *a, values)?.checked_add(count_of(child, *b, values)?),
        ExprKind::Name(Name::Other(name)) => {
            let (_, value) = values.iter().find(|(own, _)| own == name)?;
            value.trim().trim_end_matches(['u', 'U', 'l', 'L']).parse().ok()
        }
        _ => None,
    }
}

/// What one element takes at most, of a class in sight, too.
fn element_at_most(child: &Child<'_>, variable: &Binding) -> Option<u64> {
    let element = Type {
        array: Vec::new(),
        ..variable.ty.clone()
    };
    let (bytes, _) = at_most(&Function::new(child.db, child.item), &element)?;
    Some(bytes)
}

/// The same of an integer by another name.
fn integer_at_most(child: &Child<'_>, variable: &Binding) -> Option<u64> {
    let ty = &variable.ty;
    let own =
        child.item.signature(child.db).template_names.contains(&ty.base) || child.body.declared.contains(&ty.base);
    let plain = !ty.reference && !ty.complex && ty.pointers == 0;
    (plain && !own && is_integer(child.db, child.file, &ty.base)).then_some(8)
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
