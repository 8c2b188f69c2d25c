//! Operators of the workspace that change an operand.

use std::collections::HashMap;

use super::memory::Places;
use super::objects::objects;
use super::references::{changes_through, takes_in};
use crate::base::db::{Db, SourceFile};
use crate::facts::hidden::symbol_of;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, items};
use crate::hir::resolve::is_made_by_macros;
use crate::hir::{BindingId, Body, ExprId, parameters};

/// Which operands an operator of the workspace may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
struct Changing {
    /// The first one.
    object: bool,
    /// The others.
    others: bool,
}

/// The operators of the workspace that may change an operand: `>>`, `[]`; empty for one of which it isn't known which it is.
#[salsa::tracked(returns(ref))]
fn changing_operators(db: &dyn Db, file: SourceFile) -> HashMap<String, Changing> {
    let functions = included_files(db, file).iter().flat_map(|f| &items(db, *f).functions);
    let mut found: HashMap<String, Changing> = HashMap::new();
    for f in functions {
        let Some(symbol) = symbol_of(db, *f) else { continue };
        let may = may_change_operands(db, *f);
        if may != Changing::default() {
            let all = found.entry(symbol).or_default();
            all.object |= may.object;
            all.others |= may.others;
        }
    }
    // One that a macro declares.
    if is_made_by_macros(db, file, "operator") {
        let any = Changing {
            object: true,
            others: true,
        };
        found.insert(String::new(), any);
    }
    found
}

/// Whether an operator of this symbol may change its first operand, or one of the others.
pub(super) fn may_change(db: &dyn Db, file: SourceFile, symbol: &str) -> (bool, bool) {
    let operators = changing_operators(db, file);
    let all = [symbol, ""].map(|symbol| operators.get(symbol).copied().unwrap_or_default());
    (all.iter().any(|may| may.object), all.iter().any(|may| may.others))
}

/// A member that isn't `const` may change its object, a function what it may get a reference to.
fn may_change_operands(db: &dyn Db, function: FunctionItem<'_>) -> Changing {
    let signature = function.signature(db);
    let text = function.text(db);
    let behind = text.get(signature.params_span.end as usize..).unwrap_or("");
    let end = behind.find(['{', ';']).unwrap_or(behind.len());
    let constant = crate::base::words::words(behind.get(..end).unwrap_or("")).any(|word| word == "const");
    let mut by_reference = parameters(db, function).iter().map(|p| {
        changes_through(db, function, &p.ty) || p.ty.is_value() && takes_in(db, function.file(db), &p.ty.base)
    });
    let object = match signature.member {
        true => !constant,
        false => by_reference.next().unwrap_or(false),
    };
    Changing {
        object,
        others: by_reference.any(|may| may),
    }
}

/// The local variables of which a place may be a part: `x`, `x.f`, `x.a[i]` for a member array, `c ? x : y`; not `*p`, `p[i]`.
pub fn variables_of_place(db: &dyn Db, function: FunctionItem<'_>, body: &Body, place: ExprId) -> Vec<BindingId> {
    objects(Places { db, function, body }, place)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::host::Host;

    #[test]
    fn operators_that_may_change_an_operand() {
        let mut host = Host::new();
        let text = r#"struct Reader { int n; __device__ int& operator[](int i) { return n; }
  __device__ int operator()(int i) const { return n; } };
__device__ Reader& operator>>(Reader& r, int& x) { x = ++r.n; return r; }
__device__ float3 operator*(const float3& a, float b) { return a; }
__device__ inline float3 operator + (float3 a, float3 b) { return a; }
inline __host__ __device__ void operator+=(float3& a, float3 b) { a.x += b.x; }
"#;
        let file = host.set_file(Path::new("/a.cu"), text);
        let db = host.db();
        let names: Vec<String> = items(db, file)
            .functions
            .iter()
            .map(|f| f.name(db).to_owned())
            .collect();
        let mut found: Vec<(&str, bool, bool)> = changing_operators(db, file)
            .iter()
            .map(|(symbol, may)| (symbol.as_str(), may.object, may.others))
            .collect();
        found.sort_unstable();
        let expected = [("+=", true, false), (">>", true, true), ("[]", true, false)];
        assert_eq!(found, expected, "{names:?}");
    }
}
