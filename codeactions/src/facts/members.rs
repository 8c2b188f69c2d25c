//! Member functions that launch. Who calls them is told by the classes of the objects that they are called for.

use std::collections::HashSet;

use gridfuse_analysis::base::db::{Db, SourceFile, Workspace};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{ExprId, ExprKind, Name};

use crate::edit::lex;
use crate::facts::cluster::Function;
use crate::facts::site::function_around;

/// The class that a member function stands in, without its namespaces.
fn class_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<&'db str> {
    let (scope, _) = function.name(db).rsplit_once("::")?;
    function.signature(db).member.then(|| unqualified(scope))
}

/// The namespaces that a function stands in, without its class.
pub fn namespace_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> &'db str {
    let mut scope = function.name(db).rsplit_once("::").map_or("", |(scope, _)| scope);
    let types = &visible_names(db, function.file(db)).types;
    while function.signature(db).member && types.contains(unqualified(scope)) {
        scope = scope.rsplit_once("::").map_or("", |(scope, _)| scope);
    }
    scope
}

/// Why a member function can't get another parameter, whose argument every caller has to give it.
pub fn refusal(function: &Function<'_>) -> Option<String> {
    let (db, name) = (function.db, function.name());
    let signature = function.item.signature(db);
    if !signature.member {
        let operator = name.contains("operator");
        return operator.then(|| format!("`{name}` is an operator, which can't be given an aggregator"));
    }
    let Some(class) = class_of(db, function.item) else {
        return Some(format!("which class `{name}` is a member of isn't known"));
    };
    let text = function.item.text(db);
    let words = |from: u32, to: u32| lex::code_words(Span::new(from, to.max(from)).text(&text));
    let head = words(0, signature.params_span.start);
    let behind = words(signature.params_span.end, function.item.body_span(db).start);
    if name.contains("operator") || name == class || head.contains(&"~") {
        return Some(format!(
            "`{name}` is an operator or a constructor, which can't be given an aggregator"
        ));
    }
    let is_virtual = head.contains(&"virtual") || behind.iter().any(|word| matches!(*word, "override" | "final"));
    let own = |word: &str| unqualified(word) == class;
    let files = included_files(db, function.file);
    let types = || files.iter().flat_map(|file| &items(db, *file).types);
    let derives = types().any(|ty| ty.name == class && !ty.bases.is_empty() || lex::identifiers(&ty.bases).any(own));
    if is_virtual || derives {
        return Some(format!(
            "`{name}` is a member of a class with a base or of one that others derive from, which may have another `{name}`"
        ));
    }
    let same = types().filter(|ty| ty.name == class).count();
    let is_template = types().any(|ty| ty.name == class && !ty.template_names.is_empty());
    if same != 1 || is_template || signature.scope_names.len() > signature.template_names.len() {
        return Some(format!(
            "`{name}` is a member of a class template, which can't be given an aggregator"
        ));
    }
    None
}

/// Which class's member function a callee names.
enum Class {
    /// This one's.
    Known(String),
    /// It names none: a function that stands in no class.
    None,
    /// That isn't known.
    Unknown,
}

/// See [`Class`]; `name`: the member function's name.
fn class_at(caller: &Function<'_>, callee: ExprId, name: &str) -> Class {
    let (db, body) = (caller.db, &caller.body);
    let own = || class_of(db, caller.item).map_or(Class::Unknown, |class| Class::Known(class.to_owned()));
    let (base, arrow) = match &body.expr(body.strip_parens(callee)).kind {
        ExprKind::Field { base, field, arrow } if field == name => (body.strip_parens(*base), *arrow),
        // Without an object it is called for the caller's own.
        ExprKind::Name(Name::Other(called)) if called == name => {
            let Some(class) = class_of(db, caller.item) else {
                return match caller.item.signature(db).member {
                    true => Class::Unknown,
                    false => Class::None,
                };
            };
            let has_one = !functions_named(db, caller.file, &format!("{class}::{name}")).is_empty();
            return if has_one { own() } else { Class::Unknown };
        }
        _ => return Class::Unknown,
    };
    let is_this = |e: ExprId| matches!(&body.expr(e).kind, ExprKind::Name(Name::Other(name)) if name == "this");
    if arrow && is_this(base) {
        return own();
    }
    let (variable, element) = match &body.expr(base).kind {
        ExprKind::Index { base, .. } => (body.strip_parens(*base), true),
        ExprKind::Deref(pointer) => (body.strip_parens(*pointer), true),
        _ => (base, false),
    };
    if element && !arrow && is_this(variable) {
        return own();
    }
    let ExprKind::Name(Name::Local(binding)) = &body.expr(variable).kind else {
        return Class::Unknown;
    };
    let ty = &body.binding(*binding).ty;
    let levels = ty.pointers as usize + ty.array.len();
    let class = ty.base.trim_start_matches("struct ").trim();
    let names = visible_names(db, caller.file);
    let known = names.types.contains(unqualified(class))
        && !names.aliases.contains_key(unqualified(class))
        && !hides(db, caller.item, class);
    match known && !ty.complex && levels == usize::from(arrow) + usize::from(element) && !(arrow && element) {
        true => Class::Known(unqualified(class).to_owned()),
        false => Class::Unknown,
    }
}

/// Whether a callee of a caller names this member function.
pub fn is_called(caller: &Function<'_>, callee: ExprId, member: &Function<'_>) -> bool {
    let class = class_of(member.db, member.item);
    matches!(class_at(caller, callee, member.name()), Class::Known(found) if class == Some(found.as_str()))
}

/// The definitions of the member function that a callee names.
pub fn called<'db>(caller: &Function<'db>, callee: ExprId) -> Vec<FunctionItem<'db>> {
    let db = caller.db;
    let ExprKind::Field { field, .. } = &caller.body.expr(caller.body.strip_parens(callee)).kind else {
        return Vec::new();
    };
    let Class::Known(class) = class_at(caller, callee, field) else {
        return Vec::new();
    };
    let mut all = functions_named(db, caller.file, &format!("{class}::{field}"));
    all.retain(|f| f.has_body(db));
    all
}

/// Whether the name of a member function means something else at a place: the member of another class, a function outside of classes.
pub fn is_another(member: &Function<'_>, mention: FileRange) -> bool {
    let db = member.db;
    let class = class_of(db, member.item);
    let named = |f: &&FunctionItem<'_>| f.signature(db).name_span.shift(f.start(db)).contains(mention.range);
    if let Some(function) = items(db, mention.file).functions.iter().find(named) {
        return class_of(db, *function) != class;
    }
    let Some(caller) = function_around(db, mention).map(|f| Function::new(db, f)) else {
        return false;
    };
    let callees = caller.body.exprs.iter().filter_map(|expr| match &expr.kind {
        ExprKind::Call { callee, .. } if !expr.from_macro => Some(*callee),
        _ => None,
    });
    let mut here = callees.filter(|callee| {
        let callee = caller.body.expr(*callee);
        !callee.from_macro && callee.span.shift(caller.start).contains(mention.range)
    });
    here.next()
        .is_some_and(|callee| match class_at(&caller, callee, member.name()) {
            Class::Known(found) => class != Some(found.as_str()),
            Class::None => true,
            Class::Unknown => false,
        })
}

/// The places where a member function may be named behind an object, `x.f` or `p->f`: in its own file, and in all that stand in one
/// program with it.
pub fn named_behind_objects(member: &Function<'_>) -> Vec<FileRange> {
    let (db, name) = (member.db, member.name());
    let files = Workspace::try_get(db).map(|w| w.files(db)).unwrap_or_default();
    let sees = |file: &SourceFile| *file == member.file || included_files(db, *file).contains(&member.file);
    let together: HashSet<SourceFile> = files
        .values()
        .filter(|file| sees(file))
        .flat_map(|file| included_files(db, *file).iter().copied().chain([*file]))
        .collect();
    let mut found = Vec::new();
    for file in files.values().filter(|file| together.contains(file)) {
        let text = file.text(db);
        if !text.contains(name) {
            continue;
        }
        let tokens = lex::code_tokens_of(db, *file);
        let word = |index: Option<usize>| {
            index
                .and_then(|at| tokens.get(at))
                .map_or("", |token| token.text(&text))
        };
        for (index, token) in tokens.iter().enumerate().filter(|(_, token)| token.text(&text) == name) {
            let before = word(index.checked_sub(1));
            if before == "." || before == ">" && word(index.checked_sub(2)) == "-" || before == "->" {
                let range = TextRange::new(token.start as u32, token.end as u32);
                found.push(FileRange { file: *file, range });
            }
        }
    }
    found
}
