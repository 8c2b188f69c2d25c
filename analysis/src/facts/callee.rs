//! Which functions a call means.

use crate::base::db::Db;
use crate::base::span::Span;
use crate::hir::included::included_files;
use crate::hir::items::FunctionItem;
use crate::hir::library::{Known, known};
use crate::hir::names::unqualified;
use crate::hir::resolve::{Meaning, meaning};
use crate::hir::scope::hides;
use crate::hir::visible::visible;
use crate::hir::word::Word;
use crate::hir::{Body, ExprId, ExprKind, Name, Type};

/// What a call means.
pub(crate) enum Callee<'db> {
    /// One of these definitions.
    Functions(Vec<FunctionItem<'db>>),
    /// A library function.
    Known(Known),
    /// `T(x)`: a conversion or construction of this type.
    Type(String),
    /// Not known.
    Unknown,
}

/// Resolves the callee of a call in a function.
pub(crate) fn callee<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    target: ExprId,
    name: Option<&str>,
    args: &[ExprId],
) -> Callee<'db> {
    let (ExprKind::Name(Name::Other(_)), Some(name)) = (&body.expr(body.strip_parens(target)).kind, name) else {
        // A member function of a cooperative group.
        if let ExprKind::Field { base, field, .. } = &body.expr(body.strip_parens(target)).kind {
            return group_method(body, *base, field).map_or(Callee::Unknown, Callee::Known);
        }
        return match name {
            Some(name) if matches!(&body.expr(target).kind, ExprKind::Unknown { .. }) => {
                by_name(db, function, name, args)
            }
            _ => Callee::Unknown,
        };
    };
    by_name(db, function, name, args)
}

pub(crate) fn by_name<'db>(db: &'db dyn Db, function: FunctionItem<'db>, name: &str, args: &[ExprId]) -> Callee<'db> {
    if function.signature(db).template_names.iter().any(|t| t == name) {
        return Callee::Type(name.to_owned());
    }
    // A function that a template parameter stands for, a member that can be called: never the library's.
    if hides(db, function, name) {
        return Callee::Unknown;
    }
    // The runtime header's, of a warp for all its threads, do what CUDA's do.
    if let Some(atomic) = name.strip_prefix("gridfuse::warp_aggregated::").and_then(known) {
        return Callee::Known(atomic);
    }
    match meaning(db, function.file(db), name) {
        // A file that isn't included may define CUDA's functions for another machine.
        Meaning::Functions(all) if known(name).is_some() && !all.iter().any(|f| sees(db, function, *f)) => {
            known(name).map_or(Callee::Unknown, Callee::Known)
        }
        Meaning::Functions(all) => {
            let definitions: Vec<FunctionItem<'db>> = all.iter().copied().filter(|f| f.has_body(db)).collect();
            let arity = |f: &FunctionItem<'db>| crate::hir::parameters(db, *f).len();
            let blanked = &visible(db, function.file(db)).blanked;
            let defined = |declared: &FunctionItem<'db>| definitions.iter().any(|f| takes_the_same(db, *declared, *f));
            let undefined =
                all.iter().any(|f| !f.has_body(db) && !defined(f)) || blanked.contains(&Word::new(unqualified(name)));
            let fits = definitions.iter().all(|f| arity(f) >= args.len());
            let known_head = definitions
                .iter()
                .all(|f| !f.signature(db).conditional || definitions.len() > 1);
            if definitions.is_empty() || undefined || !fits && definitions.len() == 1 || !known_head {
                return Callee::Unknown;
            }
            let fitting = definitions
                .into_iter()
                .filter(|f| arity(f) >= args.len())
                .collect::<Vec<_>>();
            if fitting.is_empty() {
                Callee::Unknown
            } else {
                Callee::Functions(fitting)
            }
        }
        Meaning::Type => Callee::Type(name.to_owned()),
        Meaning::Unknown => match known(name) {
            Some(k) => Callee::Known(k),
            None if scalar_type(name) => Callee::Type(name.to_owned()),
            None => Callee::Unknown,
        },
        Meaning::Global(_) | Meaning::Enumerator | Meaning::Macro(_) => Callee::Unknown,
    }
}

/// Whether two functions of one name have the same parameters, so that one may declare the other.
fn takes_the_same<'db>(db: &'db dyn Db, a: FunctionItem<'db>, b: FunctionItem<'db>) -> bool {
    let (first, second) = (crate::hir::parameters(db, a), crate::hir::parameters(db, b));
    let same = |a: &Type, b: &Type| {
        let indirect = |ty: &Type| usize::from(ty.pointers) + ty.array.len();
        let constant = |ty: &Type| ty.const_base && (ty.reference || indirect(ty) > 0);
        let words = |ty: &Type| {
            let mut words: Vec<String> = crate::base::words::words(&ty.base).map(str::to_owned).collect();
            // `unsigned`, `long int`
            if words.len() > 1
                || words
                    .iter()
                    .any(|w| matches!(w.as_str(), "unsigned" | "signed" | "long" | "short"))
            {
                words.retain(|word| word != "int" && word != "signed");
            }
            words.sort_unstable();
            words
        };
        (indirect(a), a.reference, constant(a), words(a)) == (indirect(b), b.reference, constant(b), words(b))
    };
    first.len() == second.len() && first.iter().zip(second).all(|(a, b)| same(&a.ty, &b.ty))
}

/// The file of `function`, or one that it includes, declares `other`.
fn sees<'db>(db: &'db dyn Db, function: FunctionItem<'db>, other: FunctionItem<'db>) -> bool {
    included_files(db, function.file(db)).contains(&other.file(db))
}

fn scalar_type(name: &str) -> bool {
    let scalar = [
        "int",
        "unsigned",
        "float",
        "double",
        "long",
        "short",
        "bool",
        "char",
        "size_t",
        "unsigned int",
    ];
    scalar.contains(&name)
        || (name.ends_with("_t") && (name.starts_with("int") || name.starts_with("uint")))
        || crate::hir::library::vector_fields(name).is_some()
}

fn group_method(body: &Body, base: ExprId, method: &str) -> Option<Known> {
    let ExprKind::Name(Name::Local(b)) = &body.expr(body.strip_parens(base)).kind else {
        return None;
    };
    let ty = &body.binding(*b).ty;
    if !ty.base.starts_with("cg::") && !ty.base.starts_with("cooperative_groups::") {
        return None;
    }
    match method {
        "sync" | "barrier_arrive" | "barrier_wait" | "arrive_and_wait" => Some(Known::GroupBarrier),
        "any" | "all" | "ballot" | "shfl" | "shfl_up" | "shfl_down" | "shfl_xor" | "match_any" | "match_all" => {
            Some(Known::OpaqueWarp)
        }
        "thread_rank" | "size" | "num_threads" | "meta_group_rank" | "meta_group_size" | "group_index"
        | "thread_index" | "group_dim" | "dim_threads" | "is_valid" => Some(Known::Opaque),
        _ => None,
    }
}

/// A default argument that every call gets alike.
pub(crate) fn constant_default(file_text: &str, default: Span) -> bool {
    let text = default.text(file_text).trim_start_matches('=').trim();
    matches!(text, "true" | "false" | "nullptr" | "NULL") || text.parse::<f64>().is_ok()
}
