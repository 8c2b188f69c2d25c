//! What C++ deduces for a parameter of a kernel's template from an argument ([temp.deduct.call] in the standard), as the function that
//! launches can write it.
//!
//! The type of an argument is followed where it is written down: that of a variable, of a field of a class, and of what pointers to these
//! lead to. What is deduced of it is told where the parameter's type is the template's parameter itself, a pointer to it, or a class
//! template with it among the arguments. All else (`typename T::type`, bases, aliases of templates, pointers to pointers) isn't deduced
//! here: then nobody writes anything down.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::functors::{Use, class_named, uses_of_template};
use gridfuse_analysis::hir::included::included_files;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::{EITHER, template_arguments, unqualified};
use gridfuse_analysis::hir::number_types::{normalize, rank};
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::visible::{visible, visible_names};
use gridfuse_analysis::hir::{BinOp, Body, ExprId, ExprKind, Literal, Name, Type, body};

use crate::edit::lex;
use crate::facts::calls::is_plain_type;

/// Expressions in expressions that are followed.
const MAX_DEPTH: u32 = 16;

/// The type of an expression without references, arrays being pointers.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    /// The type without pointers and without `const` of its own, as it is written in the function.
    base: String,
    pointers: usize,
    /// What the pointer leads to is `const`; `None` where that isn't known.
    constant: Option<bool>,
}

/// Whether a template's type parameter may stand for a type that is `const`, `volatile` or a reference.
#[derive(Clone, Copy, PartialEq)]
enum Qualified {
    Never,
    Maybe,
    /// Who uses the template isn't in sight.
    Unseen,
}

/// What is deduced from arguments in a function.
pub struct Deduction<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
    /// Template parameters whose uses are being looked at, by the functions whose they are.
    seen: Vec<(FunctionItem<'db>, String)>,
}

impl<'a, 'db> Deduction<'a, 'db> {
    /// In a function with this body.
    pub fn new(db: &'db dyn Db, function: FunctionItem<'db>, body: &'a Body) -> Self {
        Deduction {
            db,
            function,
            body,
            seen: Vec::new(),
        }
    }

    /// What the template parameter `name` stands for where a parameter of this type gets `arg`; `None` where that isn't told.
    pub fn of_argument(&self, param: &Type, arg: ExprId, name: &str, is_type: bool) -> Option<String> {
        let pattern = param.base.strip_prefix("struct ").unwrap_or(&param.base).trim();
        if param.complex || param.volatile || param.reference || !lex::identifiers(pattern).any(|word| word == name) {
            return None;
        }
        let known = self.known(arg, 0)?;
        let pointers = usize::from(param.pointers) + param.array.len();
        if pointers == 0 && pattern == name {
            return is_type.then(|| self.of_value(&known)).flatten();
        }
        if known.pointers != pointers {
            return None;
        }
        if pattern != name {
            return self.matched(pattern, &self.resolved(&known), name, is_type);
        }
        if !self.is_own_parameter(&known.base) && !self.is_unqualified(&known.base, 0) {
            return None;
        }
        match (param.const_base, known.constant) {
            _ if !is_type => None,
            (true, _) => Some(match self.qualified(&known.base) {
                Qualified::Maybe => format!("std::remove_cv_t<{}>", known.base),
                _ => known.base,
            }),
            (false, Some(true)) => Some(format!("const {}", known.base)),
            (false, Some(false)) => Some(known.base),
            (false, None) => None,
        }
        .filter(|ty| self.is_nameable(ty))
    }

    /// What a parameter stands for that is passed by value: the argument's type without its own qualifiers.
    fn of_value(&self, known: &Known) -> Option<String> {
        let base = &known.base;
        if known.pointers > 0 {
            let constant = if known.constant? { "const " } else { "" };
            let ty = format!("{constant}{base}*");
            return (known.pointers == 1 && self.is_nameable(base)).then_some(ty);
        }
        if self.is_own_parameter(base) {
            return Some(match self.qualified(base) {
                Qualified::Never => base.clone(),
                _ => format!("std::decay_t<{base}>"),
            });
        }
        (self.is_unqualified(base, 0) && self.is_nameable(base)).then(|| base.clone())
    }

    /// What `name` stands for where `pattern`, a type that names it, is the type `actual`.
    fn matched(&self, pattern: &str, actual: &str, name: &str, is_type: bool) -> Option<String> {
        let (pattern, actual) = (pattern.trim(), actual.trim());
        if pattern == name {
            let fits = is_type || lex::code_tokens(actual).len() == 1;
            return (fits && !actual.is_empty()).then(|| actual.to_owned());
        }
        let both = |strip: fn(&str) -> Option<&str>| strip(pattern).zip(strip(actual));
        if let Some((pattern, actual)) = both(|ty| ty.strip_prefix("const ")) {
            return self.matched(pattern, actual, name, is_type);
        }
        if let Some((pattern, actual)) = both(|ty| ty.strip_suffix('*')) {
            return self.matched(pattern, actual, name, is_type);
        }
        let ((class, parameters), (other, arguments)) = (template_id(pattern)?, template_id(actual)?);
        // Whose the class is must not be deduced itself: `typename T::type<U>`.
        let plain = |class: &str| !class.contains([' ', '<', '(', '*', '&']);
        let same = plain(class) && plain(other) && unqualified(class) == unqualified(other);
        if !same
            || class.contains("::") && lex::identifiers(class).any(|part| part == name)
            || hides(self.db, self.function, other)
        {
            return None;
        }
        let (_, found) = class_named(self.db, self.function, unqualified(other))?;
        if found.template_names.len() < parameters.len().max(arguments.len()) {
            return None;
        }
        let mut pairs = parameters.iter().zip(&arguments);
        pairs.find_map(|(pattern, actual)| self.matched(pattern, actual, name, is_type))
    }

    /// The type of an expression.
    fn known(&self, expr: ExprId, depth: u32) -> Option<Known> {
        let body = self.body;
        let deeper = (depth < MAX_DEPTH).then_some(depth + 1)?;
        if body.expr(expr).from_macro {
            return None;
        }
        match &body.expr(expr).kind {
            ExprKind::Paren(inner) => self.known(*inner, deeper),
            ExprKind::Name(Name::Local(variable)) => {
                let ty = &body.binding(*variable).ty;
                if ty.complex || ty.volatile || ty.array.len() > 1 {
                    return None;
                }
                if ty.base == "auto" {
                    let init = body
                        .initialiser(*variable)
                        .filter(|_| !ty.reference && ty.array.is_empty())?;
                    let mut known = self.known(init, deeper)?;
                    let (found, written) = (known.pointers, usize::from(ty.pointers));
                    if ty.const_base && written > 0 && found == written {
                        // `const auto* p`: what it points to can't be changed through it.
                        known.constant = Some(true);
                    } else if ty.const_base && written > 0 {
                        known.constant = None;
                    }
                    return (found >= written).then_some(known);
                }
                Some(Known {
                    base: ty.base.strip_prefix("struct ").unwrap_or(&ty.base).trim().to_owned(),
                    pointers: usize::from(ty.pointers) + ty.array.len(),
                    constant: Some(ty.const_base),
                })
            }
            ExprKind::Field { base, field, arrow } => {
                let object = self.known(*base, deeper)?;
                (object.pointers == usize::from(*arrow))
                    .then(|| self.field(&object, field))
                    .flatten()
            }
            ExprKind::Binary(op @ (BinOp::Add | BinOp::Sub), a, b) => {
                let (left, right) = (self.known(*a, deeper), self.known(*b, deeper));
                let moved = match (&left, &right) {
                    (Some(pointer), _) if pointer.pointers > 0 => self.is_number(*b, &right, deeper).then_some(left),
                    (_, Some(pointer)) if pointer.pointers > 0 && *op == BinOp::Add => {
                        self.is_number(*a, &left, deeper).then_some(right)
                    }
                    _ => None,
                };
                moved.flatten()
            }
            ExprKind::AddrOf(place) if !self.has_operator("&") => {
                let mut known = self.known(*place, deeper).filter(|known| known.pointers == 0)?;
                let element = matches!(
                    body.expr(body.strip_parens(*place)).kind,
                    ExprKind::Index { .. } | ExprKind::Deref(_) | ExprKind::Name(_)
                );
                known.constant = known.constant.filter(|_| element);
                known.pointers = 1;
                Some(known)
            }
            ExprKind::Index { base, .. } | ExprKind::Deref(base) => {
                let mut known = self.known(*base, deeper)?;
                known.pointers = known.pointers.checked_sub(1)?;
                Some(known)
            }
            ExprKind::Cast { ty, .. } => cast(ty),
            _ => None,
        }
    }

    /// The type of a field of an object. Whether it, or what it points to, is `const` isn't known.
    fn field(&self, object: &Known, field: &str) -> Option<Known> {
        let written = self.resolved(object);
        let (class, arguments) = template_id(&written).unwrap_or((&written, Vec::new()));
        if hides(self.db, self.function, class) {
            return None;
        }
        let (home, item) = class_named(self.db, self.function, unqualified(class))?;
        let text = home.text(self.db);
        if lex::identifiers(&text).any(|word| word == "volatile") {
            return None;
        }
        let mut named = item
            .fields
            .iter()
            .filter(|(_, declarator)| lex::identifiers(declarator).last() == Some(field));
        let (ty, declarator) = named.next()?;
        let plain = |word: &str| word == field || matches!(word, "const" | "__restrict__" | "__restrict" | "*");
        if named.next().is_some() || !lex::code_words(declarator).into_iter().all(plain) {
            return None;
        }
        let ty = ty.trim();
        let base = match item.template_names.iter().position(|name| name == ty) {
            Some(index) => arguments.get(index)?.clone(),
            None => is_plain_type(ty).then(|| ty.to_owned())?,
        };
        let base = base.trim_start_matches("const ").to_owned();
        // Of an argument that is a pointer itself the field may be, too.
        let name = !base.is_empty() && !base.contains(['*', '&', '(', '[']);
        name.then(|| Known {
            base,
            pointers: declarator.matches('*').count(),
            constant: None,
        })
    }

    /// A whole number for sure, so that a pointer that is moved by it stays what it is. `known`: its type.
    fn is_number(&self, expr: ExprId, known: &Option<Known>, depth: u32) -> bool {
        let body = self.body;
        let number = |ty: &str| rank(&normalize(ty)).is_some_and(|rank| rank <= 5) || is_wide(&normalize(ty));
        match &body.expr(body.strip_parens(expr)).kind {
            ExprKind::Literal(literal) => matches!(literal, Literal::Int(_)),
            ExprKind::Field { base, .. } if matches!(body.expr(*base).kind, ExprKind::Name(Name::Builtin(_))) => true,
            ExprKind::Construct { ty, .. } => number(ty),
            ExprKind::Binary(_, a, b) if depth < MAX_DEPTH => {
                let one = |e: ExprId| self.is_number(e, &self.known(e, depth + 1), depth + 1);
                one(*a) && one(*b)
            }
            _ => known.as_ref().is_some_and(|known| {
                let own = self.is_own_parameter(&known.base) && !self.has_operator("+") && !self.has_operator("-");
                known.pointers == 0 && (own || number(&known.base))
            }),
        }
    }

    /// Whether somebody defines such an operator.
    fn has_operator(&self, symbol: &str) -> bool {
        let functions = &visible(self.db, self.function.file(self.db)).functions;
        functions.contains_key(&format!("operator{symbol}")) || functions.contains_key(&format!("operator {symbol}"))
    }

    fn is_own_parameter(&self, ty: &str) -> bool {
        self.function
            .signature(self.db)
            .template_types
            .iter()
            .any(|own| own == ty)
    }

    /// What a name of a class template's instance stands for, where an object's type is one.
    fn resolved(&self, known: &Known) -> String {
        let alias = self.alias(&known.base).filter(|_| template_id(&known.base).is_none());
        match alias {
            // What an alias elsewhere stands for is written there, where other names may mean something else.
            Some((target, own)) if own || self.is_plain_instance(&target) => {
                target.trim_start_matches("const ").trim().to_owned()
            }
            _ => known.base.clone(),
        }
    }

    /// An instance of a class template with plain arguments.
    fn is_plain_instance(&self, ty: &str) -> bool {
        let plain = |argument: &String| is_plain_type(argument) || argument.parse::<i64>().is_ok();
        template_id(ty.trim_start_matches("const ")).is_some_and(|(_, arguments)| arguments.iter().all(plain))
    }

    /// What `using name = …;` says of a name, with whether it stands in the function.
    fn alias(&self, name: &str) -> Option<(String, bool)> {
        let own = self.body.declared.contains(name);
        if own {
            // In a block it may be another one than around it.
            let elsewhere = visible_names(self.db, self.function.file(self.db));
            let twice = elsewhere.types.contains(name) || elsewhere.aliases.contains_key(name);
            let target = using(&self.function.text(self.db), name).filter(|_| !twice)?;
            return Some((target, true));
        }
        let known = visible_names(self.db, self.function.file(self.db)).aliases.get(name)?;
        if known.contains(EITHER) || hides(self.db, self.function, name) {
            return None;
        }
        let files = included_files(self.db, self.function.file(self.db)).iter();
        let mut found = files.filter_map(|file| using(&file.text(self.db), name));
        let target = found.next()?;
        (found.next().is_none() && lex::code_words(&target) == lex::code_words(known)).then_some((target, false))
    }

    /// Whether a type, as it is written in the function, has no qualifiers of its own and is no reference.
    fn is_unqualified(&self, ty: &str, depth: u32) -> bool {
        let ty = ty.trim();
        let whole = template_id(ty).map_or(ty, |(class, _)| class);
        let odd = |word: &str| matches!(word, "const" | "volatile" | "decltype" | "auto" | "typename");
        if ty.contains('&') || lex::identifiers(whole).any(odd) {
            return false;
        }
        if ty.starts_with("std::decay_t<") || ty.starts_with("std::remove_cv_t<") || is_plain_type(ty) {
            return true;
        }
        if self.is_own_parameter(ty) {
            return self.qualified(ty) == Qualified::Never;
        }
        if let Some((target, _)) = self.alias(ty) {
            return depth < MAX_DEPTH && self.is_unqualified(&target, depth + 1);
        }
        !hides(self.db, self.function, whole) && class_named(self.db, self.function, unqualified(whole)).is_some()
    }

    /// Whether a type parameter of the function may stand for a qualified type, as far as those say who use the function.
    fn qualified(&self, name: &str) -> Qualified {
        if !self.is_own_parameter(name) {
            return Qualified::Never;
        }
        let key = (self.function, name.to_owned());
        if self.seen.contains(&key) {
            return Qualified::Never;
        }
        let Some(uses) = uses_of_template(self.db, self.function).filter(|uses| !uses.is_empty()) else {
            return Qualified::Unseen;
        };
        let mut seen = self.seen.clone();
        seen.push(key);
        match uses.iter().all(|used| self.gives_unqualified(used, name, &seen)) {
            true => Qualified::Never,
            false => Qualified::Maybe,
        }
    }

    /// Whether a use of the function gives its type parameter a type without qualifiers.
    fn gives_unqualified(&self, used: &Use<'db>, name: &str, seen: &[(FunctionItem<'db>, String)]) -> bool {
        let user_body = body(self.db, used.user);
        let there = Deduction {
            seen: seen.to_vec(),
            ..Deduction::new(self.db, used.user, &user_body)
        };
        let names = &self.function.signature(self.db).template_names;
        let index = names.iter().position(|own| own == name);
        let written = index.and_then(|index| used.written(self.db).into_iter().nth(index));
        if let Some(written) = written.filter(|argument| !argument.is_empty()) {
            return there.is_unqualified(&written, 0);
        }
        let own_body = body(self.db, self.function);
        let mut pairs = own_body.params.iter().zip(&used.args);
        pairs.any(|(param, arg)| {
            let ty = &own_body.binding(*param).ty;
            let whole = ty.base == *name && ty.pointers == 0 && ty.array.is_empty() && !ty.complex;
            let lambda = || {
                matches!(
                    there.body.expr(there.body.strip_parens(*arg)).kind,
                    ExprKind::Lambda { .. }
                )
            };
            match whole {
                true if !ty.reference => true,
                // An array that a reference is bound to is one.
                true if ty.const_base => lambda() || there.known(*arg, 0).is_some_and(|known| known.pointers == 0),
                true => false,
                false => {
                    let found = there.of_argument(ty, *arg, name, true);
                    found.is_some_and(|found| there.is_unqualified(&found, 0))
                }
            }
        })
    }

    /// Whether what a type names is the same wherever the function names it: nothing that its body declares.
    fn is_nameable(&self, ty: &str) -> bool {
        let own = |word: &str| {
            word == "decltype"
                || word == "auto"
                || self.body.declared.contains(word)
                || self.body.bindings.iter().any(|b| b.name == word)
        };
        !ty.is_empty() && !lex::identifiers(ty).any(own)
    }
}

/// Whole numbers by the names of the library.
fn is_wide(ty: &str) -> bool {
    matches!(
        ty,
        "size_t" | "ptrdiff_t" | "int64_t" | "uint64_t" | "intptr_t" | "uintptr_t"
    )
}

/// A class template's name and its arguments: `Csr` with `int` and `T` of `Csr<int, T>`.
fn template_id(ty: &str) -> Option<(&str, Vec<String>)> {
    let ty = ty.trim();
    let open = ty.find('<').filter(|_| ty.ends_with('>'))?;
    let (class, list) = ty.split_at_checked(open)?;
    let arguments = template_arguments(list);
    // `A<B>::C<D>` is another class's.
    let mut depth = 0i32;
    let last = list.char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        (depth == 0).then_some(at)
    });
    (last == Some(list.len() - 1) && !class.trim().is_empty()).then_some((class.trim(), arguments))
}

/// The type that a cast is to.
fn cast(ty: &str) -> Option<Known> {
    let pointers = ty.matches('*').count();
    let base = ty.trim_end_matches(|c: char| c == '*' || c.is_whitespace());
    let constant = base.trim_start().starts_with("const ");
    let base = base.trim_start().trim_start_matches("const ").trim();
    let plain = !base.is_empty() && !base.contains(['*', '&', '(', '[']);
    let qualified =
        lex::identifiers(base).any(|word| matches!(word, "const" | "volatile" | "auto" | "decltype" | "typename"));
    (plain && !qualified && pointers < 2).then(|| Known {
        base: base.to_owned(),
        pointers,
        constant: Some(constant),
    })
}

/// What the one `using name = …;` in a piece of code says; `None` where there are more, or a `typedef` may say something else.
fn using(code: &str, name: &str) -> Option<String> {
    let tokens = lex::code_tokens(code);
    let word = |at: usize| tokens.get(at).map_or("", |token| token.text(code));
    let mut found = None;
    for at in 0..tokens.len() {
        if word(at) == "using" && word(at + 1) == name && word(at + 2) == "=" {
            let end = (at + 3..tokens.len()).find(|end| word(*end) == ";")?;
            let (first, last) = (tokens.get(at + 3)?, tokens.get(end)?);
            let target = code.get(first.start..last.start)?.trim().to_owned();
            // Of a template it is a pattern.
            let template = at > 0 && word(at - 1) == ">";
            if template || found.replace(target).is_some() {
                return None;
            }
        }
        let typedef = word(at) == "typedef"
            && (at..tokens.len())
                .take_while(|i| word(*i) != ";")
                .any(|i| word(i) == name);
        if typedef {
            return None;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_of_class_templates() {
        let id = |ty: &str| template_id(ty).map(|(class, arguments)| (class.to_owned(), arguments.join("; ")));
        assert_eq!(
            id("a::Csr<int, V<T>>"),
            Some(("a::Csr".to_owned(), "int; V<T>".to_owned()))
        );
        assert_eq!(id("A<B>::C<D>"), None);
        assert_eq!(id("Csr"), None);
        assert_eq!(id("Csr<T>*"), None);
    }

    #[test]
    fn aliases() {
        assert_eq!(using("using A = B<int>; using C = A;", "A").as_deref(), Some("B<int>"));
        assert_eq!(using("template <class T> using A = B<T>;", "A"), None);
        assert_eq!(using("using A = int; { using A = long; }", "A"), None);
        assert_eq!(using("typedef int A; using A = int;", "A"), None);
    }

    #[test]
    fn casts() {
        let cast = |ty: &str| cast(ty).map(|known| (known.base, known.pointers, known.constant));
        assert_eq!(cast("const float *"), Some(("float".to_owned(), 1, Some(true))));
        assert_eq!(cast("short"), Some(("short".to_owned(), 0, Some(false))));
        assert_eq!(cast("int* const*"), None);
        assert_eq!(cast("float const*"), None);
    }
}
