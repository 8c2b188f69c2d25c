//! Which instance of a kernel that is a template a launch means, also where the template arguments are deduced.

use gridfuse_analysis::facts::functors::functor_class;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{ExprId, ExprKind, Name};

use crate::edit::lex;
use crate::facts::child::Child;
use crate::facts::ctype;
use crate::facts::deduction::Deduction;
use crate::facts::kept_value::{by_value, local_constant};
use crate::facts::site::Site;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::{template_arguments, unqualified};
use gridfuse_analysis::hir::resolve::declarations_of;

/// Whether a launch of the kernel by itself means the instance that launches. Deduced template arguments do where the kernel's own
/// parameters, from which they are deduced, are passed on.
pub fn is_own(site: &Site<'_>, child: &Child<'_>) -> bool {
    if child.template.is_none() {
        return true;
    }
    if let Some(written) = site.launch.template_args {
        return lex::code_words(site.source(written)) == lex::code_words(&child.template_args);
    }
    let passed_on = |index: usize| {
        let arg = site.launch.args.get(index).map(|arg| site.body.strip_parens(*arg));
        arg.zip(child.body.params.get(index)).is_some_and(
            |(arg, own)| matches!(site.body.expr(arg).kind, ExprKind::Name(Name::Local(binding)) if binding == *own),
        )
    };
    let names = &child.item.signature(child.db).template_names;
    names.iter().all(|name| {
        let mut params = child.params.iter().enumerate();
        params.any(|(index, param)| says(site, &param.ty.base, name) && passed_on(index))
    })
}

/// Whether a type that is written in the launching function means the same in others: it names nothing that is that function's own.
fn means_the_same_elsewhere(site: &Site<'_>, ty: &str) -> bool {
    let own = |word: &str| {
        word == "decltype"
            || site.body.declared.contains(word)
            || site.body.bindings.iter().any(|binding| binding.name == word)
    };
    !lex::identifiers(ty).any(own)
}

/// Whether a type is deduced from an argument of the type `ty`: it is the parameter itself, or a class of which it is an argument. What
/// stands behind `::`, or in an alias, may be another one for the same class.
fn says(site: &Site<'_>, ty: &str, name: &str) -> bool {
    let mut found = Vec::new();
    ty == name || unify(site, ty, ty, &[name.to_owned()], &mut found).is_some() && !found.is_empty()
}

/// Names and values of the template parameters that `param` names, a type that a function's parameter has, where its argument has the
/// type `arg`. `None` where they aren't written alike: then `arg` may still be of such a type.
fn unify(site: &Site<'_>, param: &str, arg: &str, names: &[String], found: &mut Vec<(String, String)>) -> Option<()> {
    let (param, arg) = (param.trim(), arg.trim());
    if names.iter().any(|name| name == param) {
        found.push((param.to_owned(), arg.to_owned()));
        return Some(());
    }
    let named = |code: &str| lex::identifiers(code).any(|word| names.iter().any(|name| name == word));
    if !named(param) {
        return Some(());
    }
    let parts = |ty: &str| {
        let at = ty.find('<').filter(|_| ty.ends_with('>'))?;
        let list = template_arguments(ty.get(at..)?);
        Some((ty.get(..at)?.trim().to_owned(), list))
    };
    let ((class, own), (of_arg, others)) = (parts(param)?, parts(arg)?);
    let visible = visible_names(site.db, site.file);
    let is_class = |name: &str| visible.types.contains(name) && !visible.aliases.contains_key(name);
    let same = unqualified(&class) == unqualified(&of_arg) && is_class(unqualified(&class)) && !named(&class);
    if !same || own.len() != others.len() || own.iter().any(|one| one.contains("...")) {
        return None;
    }
    let mut all = own.iter().zip(&others);
    all.try_for_each(|(own, other)| unify(site, own, other, names, found))
}

/// Names and values of all template parameters at a launch, written or deduced, as they are called there; `None` where they aren't known.
pub fn at_launch(site: &Site<'_>, child: &Child<'_>) -> Option<Vec<(String, String)>> {
    if child.template.is_none() {
        return Some(Vec::new());
    }
    if deduces(site, child.item) {
        return deduced(site, child);
    }
    let values = written_values(site, child.item);
    let all = values.len() == child.item.signature(child.db).template_names.len();
    all.then_some(values)
}

/// Names and values of the template parameters of a launch some of whose template arguments are deduced; `None` where that isn't simple.
pub fn deduced(site: &Site<'_>, child: &Child<'_>) -> Option<Vec<(String, String)>> {
    let signature = child.item.signature(child.db);
    let own = site.parent == child.item;
    if own && (site.launch.template_args.is_some() || !is_own(site, child)) {
        return None;
    }
    let mut values = written_values(site, child.item);
    if values.len() > signature.template_names.len() || values.iter().any(|(_, value)| value.is_empty()) {
        return None;
    }
    for name in signature.template_names.iter().skip(values.len()) {
        let value = match own {
            true => name.clone(),
            false => one_deduced(site, child, name).or_else(|| default_value(child, name, &values))?,
        };
        values.push((name.clone(), value));
    }
    Some(values)
}

/// What is deduced for one template parameter: from the plain pointers and values of its type, else from other parameters.
fn one_deduced(site: &Site<'_>, child: &Child<'_>, name: &str) -> Option<String> {
    let is_type = child
        .item
        .signature(child.db)
        .template_types
        .iter()
        .any(|ty| ty == name);
    // Of `auto N` the argument has a type that a number as it is written needn't have.
    if !is_type && is_declared_auto(child, name) {
        return None;
    }
    let params = || child.params.iter().zip(&site.launch.args);
    let mut plain: Vec<_> = params()
        .filter(|(param, _)| is_type && param.ty.base == *name)
        .collect();
    // Of what a pointer points to, more is known than of a value: no parameter of the launching function is a reference there.
    plain.sort_by_key(|(param, _)| param.ty.pointers == 0);
    let simple = plain.into_iter().find_map(|(param, arg)| {
        if param.ty.is_value() {
            return of_value(site, *arg);
        }
        let ExprKind::Name(Name::Local(binding)) = site.body.expr(site.body.strip_parens(*arg)).kind else {
            return None;
        };
        let ty = &site.body.binding(binding).ty;
        let pointer = ty.pointers == 1 && param.ty.pointers == 1 && ty.array.is_empty();
        let known = crate::facts::calls::is_plain_type(&ty.base);
        if !pointer || ty.complex || ty.reference || ty.volatile || !known {
            return None;
        }
        let constant = ty.const_base && !param.ty.const_base;
        Some(if constant {
            format!("const {}", ty.base)
        } else {
            ty.base.clone()
        })
    });
    let deduction = Deduction::new(site.db, site.parent, &site.body);
    let mut others: Vec<_> = params().collect();
    others.sort_by_key(|(param, _)| param.ty.is_value() && param.ty.base == *name);
    let other = || {
        let mut found = others
            .iter()
            .filter_map(|(param, arg)| deduction.of_argument(&param.ty, **arg, name, is_type));
        found.find(|value| means_the_same_elsewhere(site, value))
    };
    simple.or_else(other)
}

/// Whether a template parameter is declared with `auto`.
fn is_declared_auto(child: &Child<'_>, name: &str) -> bool {
    let header = child
        .template
        .as_deref()
        .and_then(|header| header.trim_start().strip_prefix("template"));
    template_arguments(header.unwrap_or("")).iter().any(|parameter| {
        let declared = parameter.split('=').next().unwrap_or("");
        lex::identifiers(declared).last() == Some(name) && lex::identifiers(declared).any(|word| word == "auto")
    })
}

/// The default of a template parameter of which nothing can be deduced: a number, a plain type, or a parameter in front of it.
fn default_value(child: &Child<'_>, name: &str, before: &[(String, String)]) -> Option<String> {
    let mentions = |ty: &str| lex::identifiers(ty).any(|word| word == name);
    if child.params.iter().any(|param| mentions(&param.decl)) {
        return None;
    }
    let header = child.template.as_deref()?.trim_start().strip_prefix("template")?;
    let own = template_arguments(header);
    let default = own.iter().find_map(|parameter| {
        let (declared, default) = parameter.split_once('=')?;
        (lex::identifiers(declared).last() == Some(name)).then(|| default.trim().to_owned())
    });
    let default = default.or_else(|| declared_default(child, name, &own))?;
    let default = default.as_str();
    if let Some((_, value)) = before.iter().find(|(own, _)| own == default) {
        return Some(value.clone());
    }
    let plain = default.parse::<i64>().is_ok()
        || matches!(default, "true" | "false")
        || crate::facts::calls::is_plain_type(default);
    plain.then(|| default.to_owned())
}

/// The default that a declaration in front of the definition gives a template parameter. `own`: the parameters as the definition has them.
fn declared_default(child: &Child<'_>, name: &str, own: &[String]) -> Option<String> {
    let names = &child.item.signature(child.db).template_names;
    let at = names.iter().position(|own| own == name)?;
    let mut found = Vec::new();
    for declared in declarations_of(child.db, child.item) {
        let span = declared.signature(child.db).template_params?;
        let text = declared.text(child.db);
        let parameters = template_arguments(span.text(&text));
        // Another kernel's of that name, or one whose parameters have other names.
        let same = parameters.len() == own.len()
            && parameters.iter().zip(own).all(|(one, other)| {
                let head = |parameter: &str| {
                    let words = lex::code_words(parameter.split('=').next().unwrap_or(""));
                    words.join(" ").replacen("class ", "typename ", 1)
                };
                head(one) == head(other)
            });
        if !same {
            return None;
        }
        found.extend(
            parameters
                .get(at)
                .and_then(|parameter| parameter.split_once('='))
                .map(|(_, value)| value.trim().to_owned()),
        );
    }
    // Only one declaration may say it.
    match found.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    }
}

/// The type that is deduced from an argument that is passed by value: a variable's that is a number, that of a number which any
/// `int` holds, or that of an object that can be called. Of other expressions the type is known well enough to convert them, not to
/// the point of `sizeof`: a character is no `int`, and an operator may be the user's.
fn of_value(site: &Site<'_>, arg: ExprId) -> Option<String> {
    let inner = site.body.strip_parens(arg);
    let certain = match site.body.expr(inner).kind {
        ExprKind::Name(Name::Local(binding)) => {
            let ty = &site.body.binding(binding).ty;
            ty.array.is_empty() && ty.pointers == 0 && !ty.complex && !site.body.expr(inner).from_macro
        }
        ExprKind::Literal(_) => {
            let written = site.expr_source(inner);
            let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let whole = written.len() < 10 && digits(written);
            let fraction = written.trim_end_matches(['f', 'F']).split_once('.');
            let fraction =
                fraction.is_some_and(|(before, behind)| !before.is_empty() && digits(before) && digits(behind));
            (whole || fraction) && !site.body.expr(inner).from_macro
        }
        _ => false,
    };
    ctype::type_of(site, arg)
        .filter(|ty| certain && crate::facts::calls::is_plain_type(ty))
        .or_else(|| functor_class(site.db, site.parent, &site.body, arg))
        .filter(|ty| means_the_same_elsewhere(site, ty))
}

/// Whether an argument of a launch is a lambda, or a variable that is one.
pub fn gets_lambda(site: &Site<'_>) -> bool {
    let is_lambda = |e: ExprId| matches!(site.body.expr(site.body.strip_parens(e)).kind, ExprKind::Lambda { .. });
    site.launch.args.iter().any(|arg| {
        let named = match site.body.expr(site.body.strip_parens(*arg)).kind {
            ExprKind::Name(Name::Local(variable)) => site.body.initialiser(variable),
            _ => None,
        };
        is_lambda(*arg) || named.is_some_and(is_lambda)
    })
}

/// Whether a launch leaves the template arguments of its child, or some of them, to be deduced.
pub fn deduces(site: &Site<'_>, child: FunctionItem<'_>) -> bool {
    written_values(site, child).len() < child.signature(site.db).template_names.len()
}

/// Names of a child's template parameters with their arguments at a launch, written or deduced; those that are written where the others
/// aren't known.
pub fn values(site: &Site<'_>, child: &Child<'_>) -> Vec<(String, String)> {
    let all = deduces(site, child.item).then(|| deduced(site, child)).flatten();
    all.unwrap_or_else(|| written_values(site, child.item))
}

/// The template arguments of a launch as what is made of its child has to be given them, which deduces nothing: those that are written,
/// and those that are deduced.
pub fn named(site: &Site<'_>, child: &Child<'_>) -> String {
    if child.template.is_none() {
        return String::new();
    }
    let written = || {
        site.launch
            .template_args
            .map_or("", |list| site.source(list))
            .to_owned()
    };
    arguments(site, child).unwrap_or_else(written)
}

/// The value of a template argument that is a decimal number; `010` is another one.
pub fn number(written: &str) -> Option<u32> {
    let plain = written == "0" || !written.starts_with('0') && written.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| written.parse().ok()).flatten()
}

/// Whether two launches of a template are surely of different instances: one of their template arguments is another number, or another type
/// that the language has.
pub fn are_others(a: &Site<'_>, b: &Site<'_>, child: &Child<'_>) -> bool {
    let (Some(of_a), Some(of_b)) = (at_launch(a, child), at_launch(b, child)) else {
        return false;
    };
    let ty = |value: &str| {
        let plain = ctype::normalize(value);
        matches!(
            plain.as_str(),
            "bool" | "char" | "short" | "int" | "unsigned int" | "float" | "double"
        )
        .then_some(plain)
    };
    let mut pairs = of_a.iter().zip(&of_b);
    pairs.any(|((_, a), (_, b))| {
        let others = |a: Option<String>, b: Option<String>| a.zip(b).is_some_and(|(a, b)| a != b);
        number(a).zip(number(b)).is_some_and(|(a, b)| a != b) || others(ty(a), ty(b))
    })
}

/// Template arguments with their angle brackets; nothing where there are none.
pub fn list(values: &[(String, String)]) -> String {
    let values: Vec<&str> = values.iter().map(|(_, value)| value.as_str()).collect();
    match values.as_slice() {
        [] => String::new(),
        values => format!("<{}>", values.join(", ")),
    }
}

/// The template arguments of a launch with their angle brackets, all of them written, or deduced; empty for what is no template.
pub fn arguments(site: &Site<'_>, child: &Child<'_>) -> Option<String> {
    if child.template.is_none() {
        return Some(String::new());
    }
    if let Some(written) = site.launch.template_args.filter(|_| !deduces(site, child.item)) {
        let values = values_anywhere(site, child.item);
        let source = site.source(written);
        let all = values.len() == child.item.signature(child.db).template_names.len();
        let as_written = values.iter().map(|(_, value)| value).eq(&template_arguments(source));
        return all.then(|| if as_written { source.to_owned() } else { list(&values) });
    }
    Some(list(&deduced(site, child)?))
}

/// Names of a child's template parameters with the arguments that are written at a launch.
pub fn written_values(site: &Site<'_>, child: FunctionItem<'_>) -> Vec<(String, String)> {
    let Some(span) = site.launch.template_args else {
        return Vec::new();
    };
    let mut values = template_arguments(site.source(span)).into_iter();
    let names = child.signature(site.db).template_names.iter().cloned();
    let mut pairs: Vec<(String, String)> = names.zip(values.by_ref()).collect();
    pairs.extend(values.map(|v| (String::new(), v)));
    pairs
}

/// The same as they are written outside the launching function, where its constants have no names.
pub fn values_anywhere(site: &Site<'_>, child: FunctionItem<'_>) -> Vec<(String, String)> {
    let mut pairs = written_values(site, child);
    for (_, value) in &mut pairs {
        if let Some(number) = local_constant(site, value) {
            *value = by_value(value, number);
        }
    }
    pairs
}
