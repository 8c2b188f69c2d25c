//! Types of which `{}` makes a value, whatever their fields are.

use gridfuse_analysis::base::db::{Db, SourceFile};
use gridfuse_analysis::hir::Type;
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{FunctionItem, TypeItem, items};
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::special_members::Constructors;

use crate::edit::lex;
use crate::facts::calls::is_plain_type;
use crate::facts::ctype;

/// Whether `{}` makes a value of a type, and runs nothing for that: pointers, numbers, and structs of such without constructors.
pub fn made_from_nothing(db: &dyn Db, function: FunctionItem<'_>, ty: &Type) -> bool {
    let base = ctype::normalize(&ty.base);
    let named = base.trim_start_matches("struct ").trim();
    ty.pointers > 0 || is_plain_type(&base) || !hides(db, function, named) && plain(db, function.file(db), named, 0)
}

fn plain(db: &dyn Db, file: SourceFile, name: &str, depth: u32) -> bool {
    let files = included_files(db, file).iter();
    let mut named = files
        .flat_map(|file| &items(db, *file).types)
        .filter(|item| item.name == name);
    let (Some(one), None) = (named.next(), named.next()) else {
        return false;
    };
    let field = |ty: &str| {
        let mut words: Vec<&str> = ty.split_whitespace().filter(|word| *word != "struct").collect();
        words.retain(|word| *word != "volatile");
        let ty = words.join(" ");
        !ty.contains('&')
            && (ty.contains('*') && !ty.contains('<')
                || is_plain_type(&ctype::normalize(&ty))
                || plain(db, file, &ty, depth + 1))
    };
    let constant = |ty: &str| ty.split_whitespace().any(|word| word == "const") && !ty.contains('*');
    let aggregate = |item: &TypeItem| {
        item.constructors == Constructors::None
            && !item.nontrivial
            && item.hidden.is_none()
            && item.template_names.is_empty()
            && item.bases.is_empty()
            && item.implicit.is_empty()
            && !item.shares_storage
    };
    // A reference is written with the name, and a class may have a type of its own of a name.
    let plain_field = |(ty, declared): &(String, String)| {
        let own = lex::identifiers(ty).any(|word| one.members.contains(word));
        !declared.contains('&') && !own && !constant(ty) && field(ty)
    };
    depth < 6 && (one.is_enum || aggregate(one) && one.fields.iter().all(plain_field))
}
