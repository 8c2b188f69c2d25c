//! A little of C++'s types: enough to know whether `{value}` would narrow when it initialises a struct field.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::items;
pub use gridfuse_analysis::hir::number_types::{SYNONYMS, normalize, rank};
use gridfuse_analysis::hir::resolve::functions_in;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{BinOp, ExprId, ExprKind, Literal, Name, UnOp};

use crate::facts::calls;
use crate::facts::site::Site;

/// Whether a type as `file` names it is one of the language's integers; what a function declares for itself is no name of the file.
pub fn is_integer(db: &dyn Db, file: SourceFile, base: &str) -> bool {
    let names = visible_names(db, file);
    let mut base = normalize(base);
    for _ in 0..8 {
        if base.contains('*') {
            return false;
        }
        let wide = matches!(
            base.as_str(),
            "size_t" | "ptrdiff_t" | "int64_t" | "uint64_t" | "intptr_t" | "uintptr_t" | "ulong" | "wchar_t"
        );
        if wide || rank(&base).is_some_and(|rank| rank <= 5) {
            return true;
        }
        match names.aliases.get(base.as_str()) {
            Some(target) => base = normalize(target),
            None => return false,
        }
    }
    false
}

/// The type of an expression, normalized, when it is a plain value whose type can be told.
pub fn type_of(site: &Site<'_>, expr: ExprId) -> Option<String> {
    let body = &site.body;
    let promoted = |ty: &str| rank(ty).map(|r| if r == 0 { "int".to_owned() } else { ty.to_owned() });
    match &body.expr(expr).kind {
        ExprKind::Literal(Literal::Int(value)) => {
            let text = site.expr_source(expr);
            let suffixed = !text.starts_with('\'') && text.ends_with(['u', 'U', 'l', 'L', 'z', 'Z']);
            (!suffixed && i32::try_from(*value).is_ok() && !body.expr(expr).from_macro).then(|| "int".into())
        }
        ExprKind::Literal(Literal::Bool(_)) => Some("bool".into()),
        ExprKind::Literal(Literal::Float(text)) => {
            Some(if text.ends_with(['f', 'F']) { "float" } else { "double" }.into())
        }
        ExprKind::Name(Name::Local(binding)) => {
            let ty = &body.binding(*binding).ty;
            let plain = ty.pointers == 0 && ty.array.is_empty() && !ty.complex && ty.base != "auto";
            plain.then(|| normalize(&ty.base))
        }
        ExprKind::Paren(e) => type_of(site, *e),
        ExprKind::Unary(UnOp::Not, _) | ExprKind::Logical { .. } => Some("bool".into()),
        ExprKind::Unary(_, e) => promoted(&type_of(site, *e)?),
        ExprKind::Binary(BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge, ..) => {
            Some("bool".into())
        }
        ExprKind::Binary(BinOp::Shl | BinOp::Shr, a, _) => promoted(&type_of(site, *a)?),
        ExprKind::Binary(_, a, b) => {
            let (a, b) = (promoted(&type_of(site, *a)?)?, promoted(&type_of(site, *b)?)?);
            let (ra, rb) = (rank(&a)?, rank(&b)?);
            // `unsigned int` with `long` is `long` or `unsigned long`, depending on the platform.
            if ra.min(rb) == 1 && ra.max(rb) == 2 {
                return None;
            }
            // So is `unsigned long` with `long long`.
            let pair = [a.as_str(), b.as_str()];
            if pair.contains(&"unsigned long") && pair.contains(&"long long") {
                return None;
            }
            Some(if ra >= rb { a } else { b })
        }
        ExprKind::Conditional { then, otherwise, .. } => {
            let (a, b) = (type_of(site, *then)?, type_of(site, *otherwise)?);
            (a == b).then_some(a)
        }
        ExprKind::Cast { ty, reinterpret, .. } if !reinterpret => Some(normalize(ty)),
        ExprKind::Index { base, .. } | ExprKind::Deref(base) => {
            let ExprKind::Name(Name::Local(binding)) = body.expr(body.strip_parens(*base)).kind else {
                return None;
            };
            let ty = &body.binding(binding).ty;
            let one = usize::from(ty.pointers) + ty.array.len() == 1;
            (one && !ty.complex && ty.base != "auto").then(|| normalize(&ty.base))
        }
        ExprKind::Field { base, field, .. } => {
            if matches!(body.expr(*base).kind, ExprKind::Name(Name::Builtin(_))) {
                return Some("unsigned int".into());
            }
            let record = match body.expr(body.strip_parens(*base)).kind {
                ExprKind::Name(Name::Local(binding)) => body.binding(binding).ty.base.clone(),
                _ => type_of(site, *base)?,
            };
            // A class of the function's own may have the name of another one.
            if body.declared.contains(&record) {
                return None;
            }
            field_type(site, &record, field)
        }
        ExprKind::Call {
            name: Some(name), args, ..
        } if matches!(name.as_str(), "min" | "max") && is_library(site, name) => {
            let (a, b) = (type_of(site, *args.first()?)?, type_of(site, *args.get(1)?)?);
            // CUDA has none for smaller types than `int`.
            (a == b).then(|| promoted(&a).unwrap_or(a))
        }
        ExprKind::Call {
            name: Some(name), args, ..
        } if name.starts_with("atomic") && is_library(site, name) => {
            let first = body.strip_parens(*args.first()?);
            match &body.expr(first).kind {
                ExprKind::AddrOf(place) => type_of(site, *place),
                ExprKind::Name(Name::Local(binding)) => {
                    let ty = &body.binding(*binding).ty;
                    (ty.pointers == 1 && ty.array.is_empty() && !ty.complex && ty.base != "auto")
                        .then(|| normalize(&ty.base))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether no function in sight has the name of one of CUDA's.
fn is_library(site: &Site<'_>, name: &str) -> bool {
    functions_in(site.db, site.parent, name).is_empty()
}

fn field_type(site: &Site<'_>, record: &str, field: &str) -> Option<String> {
    if record == "dim3" {
        return Some("unsigned int".into());
    }
    if calls::VECTORS.contains(&record) && matches!(field, "x" | "y" | "z" | "w") {
        let stem = record.trim_end_matches(|c: char| c.is_ascii_digit());
        return Some(match stem {
            "uint" => "unsigned int".into(),
            "uchar" => "unsigned char".into(),
            "ushort" => "unsigned short".into(),
            "ulong" => "unsigned long".into(),
            "longlong" => "long long".into(),
            "ulonglong" => "unsigned long long".into(),
            // Plain `char` in `char1` is `signed char`.
            "char" => "signed char".into(),
            other => other.into(),
        });
    }
    let mut found = None;
    for file in included_files(site.db, site.file) {
        for ty in &items(site.db, *file).types {
            if ty.name != record {
                continue;
            }
            let (text, _) = ty.fields.iter().find(|(_, name)| name == field)?;
            if found.replace(normalize(text)).is_some() {
                return None;
            }
        }
    }
    found
}

/// Whether `{value}` initialises a field of type `to` without narrowing when the value has type `from`.
pub fn converts_in_braces(from: &str, to: &str) -> bool {
    from == to
        || matches!(
            (from, to),
            (
                "bool" | "char" | "signed char" | "unsigned char" | "short" | "unsigned short",
                "int" | "long" | "long long"
            ) | ("int", "long" | "long long")
                | ("long", "long long")
                | (
                    "bool" | "unsigned char" | "unsigned short",
                    "unsigned int" | "unsigned long" | "unsigned long long" | "size_t"
                )
                | (
                    "unsigned int",
                    "unsigned long" | "unsigned long long" | "size_t" | "long long"
                )
                | ("unsigned long", "unsigned long long" | "size_t")
                | ("float", "double")
        )
}

/// Whether a literal's value fits a type, so that braces accept it.
pub fn literal_fits(site: &Site<'_>, expr: ExprId, to: &str) -> bool {
    let expr = site.body.strip_parens(expr);
    let value = match &site.body.expr(expr).kind {
        ExprKind::Literal(Literal::Int(value)) => Some(*value),
        ExprKind::Unary(UnOp::Neg, e) => match &site.body.expr(*e).kind {
            ExprKind::Literal(Literal::Int(value)) => value.checked_neg(),
            _ => None,
        },
        ExprKind::Literal(Literal::Float(_)) => return matches!(to, "float" | "double"),
        ExprKind::Literal(Literal::Bool(_)) => return rank(to).is_some() || to == "size_t",
        _ => None,
    };
    let Some(value) = value else { return false };
    // `-1u` is a large number.
    if value < 0 && (site.body.expr(expr).from_macro || site.expr_source(expr).contains(['u', 'U'])) {
        return false;
    }
    match to {
        "int" | "long" | "long long" | "float" | "double" => value.abs() < 1 << 24,
        "unsigned int" | "unsigned long" | "unsigned long long" | "size_t" => (0..1 << 31).contains(&value),
        "short" => value.abs() < 1 << 15,
        "unsigned short" => (0..1 << 16).contains(&value),
        "char" | "signed char" => (0..1 << 7).contains(&value),
        "unsigned char" => (0..1 << 8).contains(&value),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synonyms() {
        assert_eq!(normalize("unsigned"), "unsigned int");
        assert_eq!(normalize("const long unsigned int"), "unsigned long");
        assert_eq!(normalize("std::uint32_t"), "unsigned int");
        assert_eq!(normalize("unsigned char"), "unsigned char");
        assert_eq!(normalize("Foo<int>"), "Foo<int>");
    }
}
