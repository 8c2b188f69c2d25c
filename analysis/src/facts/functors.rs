//! Which functions a call of an object runs: `op(x)` of a variable whose type is a class, or a template parameter that stands for one, and
//! which classes those are.
//!
//! A parameter of a template stands for what its callers pass, so all of them have to be in sight: whoever else names the function may
//! pass anything. What isn't one `operator()` for sure (overloads, templates, bases, conversions to pointers of functions, state that a
//! call changes) is unknown. A lambda that a caller passes is code of that caller's: see [`closures`](crate::facts::closures).

use crate::base::db::{Db, SourceFile};
use crate::base::place::FileRange;
use crate::base::span::Span;
use crate::base::words::words;
use crate::facts::callee::{Callee, callee};
use crate::facts::closures::{Closure, closure};
use crate::facts::hidden::{class_of, symbol_of};
use crate::facts::uniformity::memory::Places;
use crate::hir::included::included_files;
use crate::hir::items::{FunctionItem, TypeItem, items};
use crate::hir::mentions::{files_mentioning, places_of};
use crate::hir::names::{template_arguments, unqualified, without_template_arguments};
use crate::hir::related::mentioned;
use crate::hir::resolve::{
    functions_named, is_local_in, is_made_by_macros, may_launch, may_mean_template, shares_its_name,
};
use crate::hir::scope::hides_class;
use crate::hir::visible::visible_names;
use crate::hir::{Binding, BindingId, Body, ExprId, ExprKind, Name, Type, body};

/// So many functions are looked at before what a functor may launch isn't known.
const MAX_FUNCTIONS: usize = 64;

/// What a call of an object runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Called<'db> {
    /// Functions: each is the `operator()` of a class.
    pub operators: Vec<FunctionItem<'db>>,
    /// Lambdas.
    pub closures: Vec<Closure<'db>>,
}

/// What a call of the local variable `object` runs; `None` where that isn't certain.
pub fn called_operators<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    object: BindingId,
) -> Option<Called<'db>> {
    let mut search = Search::new(db, Wanted::Operators);
    search.of_variable(function, body.binding(object))?;
    search.is_answered().then_some(Called {
        operators: search.found,
        closures: search.closures,
    })
}

/// The class of an object that an expression of `function` makes or names, as it is written there, where what a call of it runs is
/// certain: `Square` of `Square()`, `F` of a parameter `F f`.
pub fn functor_class(db: &dyn Db, function: FunctionItem<'_>, body: &Body, object: ExprId) -> Option<String> {
    let mut search = Search::new(db, Wanted::Operators);
    search.of_value(function, body, object)?;
    if !search.is_answered() {
        return None;
    }
    let expr = body.expr(body.strip_parens(object));
    Some(match &expr.kind {
        ExprKind::Construct { ty, .. } => ty.clone(),
        // A lambda's class has no name, but a template parameter that stands for it is one.
        ExprKind::Name(Name::Local(b)) if body.binding(*b).ty.base != "auto" => body.binding(*b).ty.base.clone(),
        ExprKind::Call {
            callee, template_args, ..
        } => {
            let text = function.text(db);
            let mut span = body.expr(*callee).span;
            span.end = template_args.map_or(span.end, |list| list.end.max(span.end));
            span.text(&text).to_owned()
        }
        _ => return None,
    })
}

/// The classes that a type parameter of a function's template stands for: all that who calls or launches it gives it. `None` where that
/// isn't certain.
pub(crate) fn classes_given<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    parameter: &str,
) -> Option<Vec<&'db TypeItem>> {
    let mut search = Search::new(db, Wanted::Classes);
    search.of_parameter(function, parameter)?;
    (!search.classes.is_empty()).then_some(search.classes)
}

/// What the analysis wants to know of the classes.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    /// What their objects run when they are called.
    Operators,
    /// Which they are.
    Classes,
}

/// The classes that a template parameter may stand for, and what their objects run when they are called.
struct Search<'db> {
    db: &'db dyn Db,
    wanted: Wanted,
    found: Vec<FunctionItem<'db>>,
    closures: Vec<Closure<'db>>,
    classes: Vec<&'db TypeItem>,
    /// Template parameters that are looked into, by the functions whose they are.
    seen: Vec<(FunctionItem<'db>, String)>,
}

impl<'db> Search<'db> {
    fn new(db: &'db dyn Db, wanted: Wanted) -> Self {
        Search {
            db,
            wanted,
            found: Vec::new(),
            closures: Vec::new(),
            classes: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Whether something was found that a call runs.
    fn is_answered(&self) -> bool {
        !self.found.is_empty() || !self.closures.is_empty()
    }

    fn of_variable(&mut self, function: FunctionItem<'db>, variable: &Binding) -> Option<()> {
        let ty = &variable.ty;
        is_object(ty).then_some(())?;
        self.of_type(function, &ty.base)
    }

    /// What a call of an expression's value runs.
    fn of_value(&mut self, function: FunctionItem<'db>, body: &Body, value: ExprId) -> Option<()> {
        let value = body.strip_parens(value);
        match &body.expr(value).kind {
            ExprKind::Name(Name::Local(b)) => match lambda_of(body, *b) {
                Some(lambda) => self.of_lambda(function, body, lambda),
                None => self.of_variable(function, body.binding(*b)),
            },
            ExprKind::Lambda { .. } => self.of_lambda(function, body, value),
            ExprKind::Construct { ty, .. } => self.of_type(function, ty),
            ExprKind::Call {
                callee: target,
                name: Some(name),
                args,
                ..
            } => match callee(self.db, function, body, *target, Some(name), args) {
                Callee::Type(_) => self.of_type(function, name),
                _ => None,
            },
            _ => None,
        }
    }

    /// A lambda of a function's.
    fn of_lambda(&mut self, function: FunctionItem<'db>, body: &Body, lambda: ExprId) -> Option<()> {
        // Which fields its objects have only the compiler knows.
        (self.wanted == Wanted::Operators).then_some(())?;
        let closure = closure(self.db, function, body, lambda)?;
        if !self.closures.contains(&closure) {
            self.closures.push(closure);
        }
        Some(())
    }

    /// A type as it is written in a function.
    fn of_type(&mut self, function: FunctionItem<'db>, written: &str) -> Option<()> {
        let written = written.trim();
        let written = written.strip_prefix("const ").unwrap_or(written);
        let written = written.strip_prefix("struct ").unwrap_or(written).trim();
        let parameters = &function.signature(self.db).template_types;
        if parameters.iter().any(|name| name == written) {
            return self.of_parameter(function, written);
        }
        let name = without_template_arguments(written);
        if name.contains(['*', '&', '(', '[', ' ']) || hides_class(self.db, function, &name) {
            return None;
        }
        let (home, class) = class_named(self.db, function, unqualified(&name))?;
        if self.wanted == Wanted::Classes {
            // Where a class stands, only its functions say.
            (!name.contains("::")).then_some(())?;
            self.classes.push(class);
            return Some(());
        }
        // Whoever hands it on copies it.
        let places = Places {
            db: self.db,
            function,
            body: &body(self.db, function),
        };
        if places.is_opaque(&name, &[]) {
            return None;
        }
        let operator = operator_of(self.db, function, home, class)?;
        let full = without_template_arguments(operator.name(self.db));
        let scopes = full.rsplit_once("::").map_or("", |(class, _)| class);
        let written = name.trim_start_matches("::");
        if scopes != written && !scopes.ends_with(&format!("::{written}")) {
            return None;
        }
        if !self.found.contains(&operator) {
            self.found.push(operator);
        }
        Some(())
    }

    /// All that those who call or launch `function` pass for one of its template parameters.
    fn of_parameter(&mut self, function: FunctionItem<'db>, parameter: &str) -> Option<()> {
        let db = self.db;
        if self.seen.iter().any(|(f, name)| *f == function && name == parameter) {
            return Some(());
        }
        self.seen.push((function, parameter.to_owned()));
        let signature = function.signature(db);
        let own_body = body(db, function);
        let index = own_body.params.iter().position(|p| {
            let ty = &own_body.binding(*p).ty;
            is_object(ty) && ty.base == parameter
        });
        let place = signature.template_names.iter().position(|name| name == parameter)?;
        let uses = uses_of_template(db, function)?;
        for used in &uses {
            let body = body(db, used.user);
            let written = used.written(db).into_iter().nth(place);
            match written.filter(|argument| !argument.is_empty()) {
                Some(ty) => self.of_type(used.user, &ty)?,
                None => self.of_value(used.user, &body, *used.args.get(index?)?)?,
            }
        }
        // Who uses it stands elsewhere.
        (!uses.is_empty()).then_some(())
    }
}

/// A call or a launch of a function that is a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Use<'db> {
    /// The function in which it stands.
    pub user: FunctionItem<'db>,
    /// The list of template arguments, where some are written.
    pub template_args: Option<Span>,
    /// Its arguments.
    pub args: Vec<ExprId>,
}

impl Use<'_> {
    /// The template arguments that are written.
    pub fn written(&self, db: &dyn Db) -> Vec<String> {
        let text = self.user.text(db);
        self.template_args
            .map_or(Vec::new(), |list| template_arguments(list.text(&text)))
    }
}

/// All calls and launches in sight of a function that is a template; `None` where it may be used in other ways, or another function is
/// meant by some.
pub fn uses_of_template<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<Vec<Use<'db>>> {
    let signature = function.signature(db);
    let (file, name) = (function.file(db), unqualified(function.name(db)));
    let text = function.text(db);
    let alone = functions_named(db, file, name) == [function]
        && !shares_its_name(db, file, name)
        && !is_made_by_macros(db, file, name);
    let fixed = signature.member
        || signature.conditional
        || signature.uncertain.is_some()
        || signature.params_span.text(&text).contains("...")
        || signature
            .template_params
            .is_some_and(|list| list.text(&text).contains("..."));
    if !alone || fixed {
        return None;
    }
    let own = FileRange {
        file,
        range: signature.name_span.shift(function.start(db)),
    };
    let mut found = Vec::new();
    for file in files_mentioning(db, name)
        .iter()
        .filter(|f| may_mean_template(db, **f, function))
    {
        for mention in places_of(db, *file, name) {
            if mention.place == own {
                continue;
            }
            let user = mention.identifier_in.filter(|f| f.has_body(db))?;
            if is_local_in(db, user, name) {
                continue;
            }
            let (template_args, args) = use_at(db, user, &body(db, user), mention.place)?;
            found.push(Use {
                user,
                template_args,
                args,
            });
        }
    }
    Some(found)
}

/// The lambda that a variable is declared as: it is the same for good, as nothing can be assigned to such an object.
fn lambda_of(body: &Body, variable: BindingId) -> Option<ExprId> {
    let ty = &body.binding(variable).ty;
    let init = body.strip_parens(body.initialiser(variable)?);
    let lambda = matches!(body.expr(init).kind, ExprKind::Lambda { body: Some(_), .. });
    (lambda && ty.base == "auto" && is_object(ty)).then_some(init)
}

/// A variable that is an object, or a reference to one, as far as its type's form goes.
fn is_object(ty: &Type) -> bool {
    ty.pointers == 0 && ty.array.is_empty() && !ty.complex && !ty.volatile
}

/// The template arguments and the arguments of the call or launch whose callee's name stands at `place`.
fn use_at(db: &dyn Db, user: FunctionItem<'_>, body: &Body, place: FileRange) -> Option<(Option<Span>, Vec<ExprId>)> {
    let start = user.start(db);
    let mut found = None;
    for expr in body.exprs.iter().filter(|expr| !expr.from_macro) {
        let (name, template_args, args) = match &expr.kind {
            ExprKind::Launch(launch) => (launch.name_span, launch.template_args, &launch.args),
            ExprKind::Call {
                callee,
                name: Some(_),
                template_args,
                args,
            } => {
                let mut span = body.expr(*callee).span;
                span.end = template_args.map_or(span.end, |list| list.start.min(span.end));
                (span, *template_args, args)
            }
            _ => continue,
        };
        if name.shift(start).contains(place.range) && found.replace((template_args, args.clone())).is_some() {
            return None;
        }
    }
    found
}

/// The one class of this name that a function sees, with the file that it stands in.
pub fn class_named<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    class: &str,
) -> Option<(SourceFile, &'db TypeItem)> {
    let file = function.file(db);
    let names = visible_names(db, file);
    let hidden = names.aliases.contains_key(class)
        || names.macros.contains_key(class)
        || names.ambiguous_macros.contains(class)
        || is_made_by_macros(db, file, class);
    if hidden {
        return None;
    }
    let classes = included_files(db, file).iter().flat_map(|file| {
        let types = items(db, *file).types.iter().map(|ty| (*file, ty));
        types.filter(|(_, ty)| ty.name == class && !ty.is_enum)
    });
    let classes: Vec<_> = classes.collect();
    let [only] = classes.as_slice() else { return None };
    Some(*only)
}

/// The `operator()` that a call of an object of this class runs: there is one, it isn't a template, and it leaves its object as it is.
fn operator_of<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    home: SourceFile,
    class: &TypeItem,
) -> Option<FunctionItem<'db>> {
    if !is_plain_class(class) || words(&home.text(db)).any(|word| word == "mutable") {
        return None;
    }
    let of_class =
        |f: &FunctionItem<'db>| class_of_name(db, *f) == class.name && symbol_of(db, *f).as_deref() == Some("()");
    let files = included_files(db, function.file(db)).iter();
    let functions = files.flat_map(|file| items(db, *file).functions.iter().copied());
    let operators: Vec<FunctionItem<'db>> = functions.filter(of_class).collect();
    let [operator] = operators.as_slice() else { return None };
    (is_plain_operator(db, *operator) && !launches_somewhere(db, *operator)).then_some(*operator)
}

/// A class without bases, virtual functions and conversions.
fn is_plain_class(ty: &TypeItem) -> bool {
    ty.bases.is_empty() && !ty.nontrivial && ty.hidden.is_none() && ty.implicit.is_empty()
}

/// The class that a function is a member of, without template arguments.
fn class_of_name(db: &dyn Db, function: FunctionItem<'_>) -> String {
    without_template_arguments(class_of(db, function))
}

/// A member function that is one function, and changes nothing of its object.
fn is_plain_operator(db: &dyn Db, operator: FunctionItem<'_>) -> bool {
    let signature = operator.signature(db);
    let text = operator.text(db);
    let between = text.get(signature.params_span.end as usize..operator.body_span(db).start as usize);
    let constant = between.is_some_and(|behind| words(behind).any(|word| word == "const"));
    let parameters = signature.params_span.text(&text);
    let itself = words(&text).any(|word| matches!(word, "this" | "const_cast"));
    operator.has_body(db)
        && signature.device
        && signature.member
        && signature.template_params.is_none()
        && !signature.conditional
        && !signature.optional
        && signature.uncertain.is_none()
        && constant
        && !itself
        && !words(parameters).any(|word| word == "auto")
        && !parameters.contains("...")
}

/// Whether a function, or one that it mentions, may launch: who collects launches finds them by the names of functions.
pub(super) fn launches_somewhere<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let mut reached = vec![function];
    let mut at = 0;
    while let Some(next) = reached.get(at).copied() {
        if may_launch(db, next) || reached.len() > MAX_FUNCTIONS {
            return true;
        }
        for callee in mentioned(db, next) {
            if !reached.contains(&callee) {
                reached.push(callee);
            }
        }
        at += 1;
    }
    false
}
