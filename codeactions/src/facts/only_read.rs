//! Parameters that a function does nothing but read, also where it calls them or their member functions.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::effects::is_pure;
use gridfuse_analysis::facts::functors::{called_operators, class_named};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::{unqualified, without_template_arguments};
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::{BindingId, Body, ExprId, ExprKind};

use crate::edit::lex;
use crate::facts::calls::is_plain_type;
use crate::facts::ctype;
use crate::facts::pure::{is_immutable_parameter, keeps_first_value_but_for_members};
use crate::facts::uses::{named, root};

/// Whether a parameter keeps the value that the function was called with. `body` is the function's.
///
/// An object keeps it where each function that is called of it computes something from it, and returns a plain value: then there is no pointer
/// and no reference to the object by which somebody else could change it, whatever is cast.
pub fn only_read(db: &dyn Db, function: FunctionItem<'_>, body: &Body, binding: BindingId) -> bool {
    if is_immutable_parameter(db, function, body, binding) {
        return true;
    }
    let variable = body.binding(binding);
    if !body.params.contains(&binding) || !variable.ty.is_value() || variable.ty.volatile {
        return false;
    }
    let callees: Vec<ExprId> = { body.exprs.iter() }
        .filter_map(|expr| match &expr.kind {
            ExprKind::Call { callee, .. } => Some(body.strip_parens(*callee)),
            _ => None,
        })
        .collect();
    let uses: Vec<ExprId> = { (0..body.exprs.len() as u32).map(ExprId) }
        .filter(|e| named(body, *e) == Some(binding))
        .collect();
    if !uses.is_empty() && uses.iter().all(|e| callees.contains(e)) {
        // All that an object is used for is to be called.
        return called_operators(db, function, body, binding)
            .is_some_and(|called| called.operators.iter().all(|f| leaves_object(db, *f)));
    }
    keeps_first_value_but_for_members(db, function, body, binding)
        && callees.iter().all(|callee| match &body.expr(*callee).kind {
            ExprKind::Field { base, field, .. } if root(body, *base) == Some(binding) => {
                named(body, body.strip_parens(*base)) == Some(binding)
                    && member_leaves_object(db, function, &variable.ty.base, field)
            }
            _ => true,
        })
}

/// The member function of this name of a class in sight leaves its object as it is.
fn member_leaves_object(db: &dyn Db, function: FunctionItem<'_>, class: &str, member: &str) -> bool {
    let written = without_template_arguments(class);
    let Some((_, class)) = class_named(db, function, unqualified(written.trim())) else {
        return false;
    };
    if !class.bases.is_empty() || class.nontrivial || class.mutable || class.hidden.is_some() {
        return false;
    }
    let functions = functions_named(db, function.file(db), &format!("{}::{member}", class.name));
    !functions.is_empty() && functions.iter().all(|f| leaves_object(db, *f))
}

/// A member function that changes nothing, and hands out no way to its object.
fn leaves_object(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    is_pure(db, function) && returns_plain_value(db, function)
}

/// A number that holds no address, or nothing.
fn returns_plain_value(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let text = function.text(db);
    let signature = function.signature(db);
    let words = lex::code_words(signature.head_span.text(&text));
    let of_function = |word: &str| {
        matches!(
            word,
            "inline"
                | "constexpr"
                | "static"
                | "__host__"
                | "__device__"
                | "__forceinline__"
                | "__noinline__"
                | "const"
        )
    };
    let ty: Vec<&str> = words.into_iter().filter(|word| !of_function(word)).collect();
    // What an address has room in may be one, as of an array of the object.
    let has_room = ctype::is_integer(db, function.file(db), &ty.join(" ")) && !is_narrow(&ty);
    let ty = ty.join(" ").replace(" :: ", "::");
    ty == "void" || is_plain_type(&ty) && !has_room
}

/// The words of an integer type of at most 32 bits.
fn is_narrow(words: &[&str]) -> bool {
    const NARROW: [&str; 7] = ["bool", "char", "short", "int", "unsigned", "int32_t", "uint32_t"];
    words.iter().all(|word| NARROW.contains(word) || *word == "signed")
}
