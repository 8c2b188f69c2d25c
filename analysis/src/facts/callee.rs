//! Which functions a call means.

use crate::base::db::Db;
use crate::facts::groups::group_call;
use crate::facts::overloads::takes_as_they_are;
use crate::facts::unseen::misses_header;
use crate::hir::included::included_files;
use crate::hir::items::FunctionItem;
use crate::hir::library::{Library, TOGETHER, known};
use crate::hir::names::unqualified;
use crate::hir::resolve::{Meaning, is_made_by_macros, meaning, shares_its_name};
use crate::hir::scope::hides;
use crate::hir::visible::{visible, visible_names};
use crate::hir::word::Word;
use crate::hir::{Body, ExprId, ExprKind, Name, Type};

/// What a call means.
pub(crate) enum Callee<'db> {
    /// One of these definitions, or the library's function of that name, which they overload.
    Functions(Vec<FunctionItem<'db>>, Option<Library>),
    /// A library function.
    Known(Library),
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
        if let ExprKind::Field { .. } = &body.expr(body.strip_parens(target)).kind {
            return group_call(db, function, body, target).map_or(Callee::Unknown, |(_, known)| Callee::Known(known));
        }
        return match name {
            Some(name) if matches!(&body.expr(target).kind, ExprKind::Unknown { .. }) => {
                by_name(db, function, name, args)
            }
            _ => Callee::Unknown,
        };
    };
    match by_name(db, function, name, args) {
        Callee::Functions(all, _) if !is_certain(db, function, body, name, args, &all) => Callee::Unknown,
        found => found,
    }
}

/// Whether no function of a header that isn't found can be meant in place of these: no header is missing, the name is that of a class's
/// function, or one of them takes the arguments as they are.
fn is_certain<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    name: &str,
    args: &[ExprId],
    all: &[FunctionItem<'db>],
) -> bool {
    if !misses_header(db, function.file(db)) {
        return true;
    }
    let of_runtime = |f: &FunctionItem<'db>| f.name(db).starts_with("gridfuse::");
    let scope = name.rsplit_once("::").map_or("", |(scope, _)| unqualified(scope));
    visible_names(db, function.file(db)).types.contains(scope)
        || all.iter().all(|f| f.signature(db).member || of_runtime(f))
        || all.iter().any(|f| takes_as_they_are(db, function, body, args, *f))
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
    if name.starts_with(TOGETHER)
        && let Some(atomic) = known(name)
    {
        return Callee::Known(atomic);
    }
    let found = meaning(db, function.file(db), name);
    // Which of the two is meant, a function or an object that is called like one, their scopes decide.
    if matches!(found, Meaning::Functions(_)) && shares_its_name(db, function.file(db), name) {
        return Callee::Unknown;
    }
    match found {
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
            // Which of its parameters gets an argument isn't followed.
            let packs = all.iter().any(|f| takes_any_number(db, *f));
            let known_head = definitions
                .iter()
                .all(|f| !f.signature(db).conditional || definitions.len() > 1);
            if definitions.is_empty() || undefined || packs || !fits && definitions.len() == 1 || !known_head {
                return Callee::Unknown;
            }
            let fitting = definitions
                .into_iter()
                .filter(|f| arity(f) >= args.len())
                .collect::<Vec<_>>();
            if fitting.is_empty() {
                Callee::Unknown
            } else {
                // A function in a namespace hides what is outside of it.
                let overloads = fitting.iter().all(|f| !f.name(db).contains("::"));
                Callee::Functions(fitting, known(name).filter(|_| overloads))
            }
        }
        Meaning::Type => Callee::Type(name.to_owned()),
        // One of the library's names, perhaps, of which a macro makes another function.
        Meaning::Unknown if is_made_by_macros(db, function.file(db), name) => Callee::Unknown,
        Meaning::Unknown => match known(name) {
            Some(k) => Callee::Known(k),
            None if scalar_type(name) => Callee::Type(name.to_owned()),
            None => Callee::Unknown,
        },
        Meaning::Global(_) | Meaning::Enumerator(_) | Meaning::Macro(_) => Callee::Unknown,
    }
}

/// What the library function does that a call by this name in `function` means; `None` where it means something else, or may.
pub fn library_called(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> Option<Library> {
    match by_name(db, function, name, &[]) {
        Callee::Known(known) => Some(known),
        _ => None,
    }
}

/// Whether a function takes any number of arguments: `template <class... A> void f(A... all)`.
#[salsa::tracked(returns(copy))]
fn takes_any_number<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let text = function.text(db);
    function.signature(db).params_span.text(&text).contains("...")
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

/// Whether a call by this name in `function` is one of CUDA's runtime: nothing in sight has the name, and what isn't in sight has none
/// that CUDA doesn't have.
pub(crate) fn is_runtime<'db>(db: &'db dyn Db, function: FunctionItem<'db>, name: &str) -> bool {
    let plain = name.trim_start_matches("::");
    let own = || match meaning(db, function.file(db), name) {
        Meaning::Unknown => is_made_by_macros(db, function.file(db), name),
        Meaning::Functions(all) => all.iter().any(|f| sees(db, function, *f)),
        _ => true,
    };
    let unseen = || known(name).is_none() && misses_header(db, function.file(db));
    plain.starts_with("cuda") && !plain.contains("::") && !hides(db, function, name) && !own() && !unseen()
}
