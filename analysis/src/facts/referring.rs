//! Types that refer to something else: a class with a reference member, an alias of a reference, a reference as a template's argument. Where
//! there is one in sight, a template's parameter may stand for it, and a field may be one.

use crate::base::db::{Db, SourceFile};
use crate::hir::included::included_files;
use crate::hir::items::items;
use crate::hir::runtime_header::is_runtime_header;

/// Whether a type of the program may be a reference or hold one, as far as a file sees.
#[salsa::tracked(returns(clone))]
pub fn types_may_refer(db: &dyn Db, file: SourceFile) -> bool {
    let own = included_files(db, file)
        .iter()
        .filter(|file| !is_runtime_header(db, **file));
    own.into_iter().any(|file| {
        let items = items(db, *file);
        let members = items.types.iter().flat_map(|ty| &ty.fields);
        let mut parts = members.flat_map(|(ty, declarator)| [ty, declarator]);
        parts.any(|part| part.contains('&'))
            || items.aliases.iter().any(|(_, target)| target.contains('&'))
            || has_reference_as_argument(&file.text(db))
    })
}

/// `f<int&>`, `W<const T&, 3>`: a `&` at the end of a template's argument. A parameter without a name looks the same, which does no harm.
fn has_reference_as_argument(text: &str) -> bool {
    text.match_indices('&').any(|(at, _)| {
        let before = text.get(..at).unwrap_or("").trim_end();
        let behind = text.get(at + 1..).unwrap_or("").trim_start();
        let ends = behind.starts_with(['>', ',', '.']);
        ends && before.ends_with(|c: char| c == '*' || c == '>' || c == '&' || c == '_' || c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::has_reference_as_argument;

    #[test]
    fn arguments_that_are_references() {
        for text in [
            "f<int&>(x)",
            "W<const T &, 3> w;",
            "A<int*&> a;",
            "g<B<int>&>(b)",
            "h<int&&>()",
        ] {
            assert!(has_reference_as_argument(text), "{text}");
        }
        for text in ["f(int& a, float &b)", "a && b", "p = &x;", "x & y > z", "f(&x, &y)"] {
            assert!(!has_reference_as_argument(text), "{text}");
        }
    }
}
