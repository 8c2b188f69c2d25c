//! Which instance of a kernel that is a template a launch means, also where the template arguments are deduced.

use gridfuse_analysis::facts::functors::functor_class;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{ExprId, ExprKind, Name, Type};

use crate::edit::lex;
use crate::facts::child::Child;
use crate::facts::ctype;
use crate::facts::site::Site;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::{template_arguments, unqualified};

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
    let variable = |word: &str| site.body.bindings.iter().any(|binding| binding.name == word);
    let own = |word: &str| word == "decltype" || variable(word) || site.body.declared.contains(word);
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

/// What an argument's type says of a template parameter, of which a class is an argument that the function's parameter has: `T` of
/// `Pile<T>`. As it is written where the launch is.
fn of_class(site: &Site<'_>, param: &Type, arg: ExprId, name: &str) -> Option<String> {
    let ExprKind::Name(Name::Local(binding)) = site.body.expr(site.body.strip_parens(arg)).kind else {
        return None;
    };
    let ty = &site.body.binding(binding).ty;
    let odd = |ty: &Type| ty.complex || ty.volatile || !ty.array.is_empty();
    let const_beneath = ty.pointers > 1 && ty.const_base != param.const_base;
    if odd(ty) || odd(param) || ty.pointers != param.pointers || const_beneath {
        return None;
    }
    let mut found = Vec::new();
    unify(site, &param.base, &ty.base, &[name.to_owned()], &mut found)?;
    let (_, value) = found.into_iter().next()?;
    Some(value)
}

/// Names and values of the template parameters of a launch whose template arguments are deduced; `None` where that isn't simple.
pub fn deduced(site: &Site<'_>, child: &Child<'_>) -> Option<Vec<(String, String)>> {
    let found = deduced_here(site, child)?;
    let own = site.parent == child.item;
    let elsewhere = |(_, value): &(String, String)| own || means_the_same_elsewhere(site, value);
    found.iter().all(elsewhere).then_some(found)
}

/// Names and values of all template parameters at a launch, written or deduced, as they are called there; `None` where they aren't known.
pub fn at_launch(site: &Site<'_>, child: &Child<'_>) -> Option<Vec<(String, String)>> {
    match site.launch.template_args {
        _ if child.template.is_none() => Some(Vec::new()),
        Some(_) => {
            let values = written_values(site, child.item);
            let all = values.len() == child.item.signature(child.db).template_names.len();
            all.then_some(values)
        }
        None => deduced_here(site, child),
    }
}

fn deduced_here(site: &Site<'_>, child: &Child<'_>) -> Option<Vec<(String, String)>> {
    let signature = child.item.signature(child.db);
    let value = |name: &String| {
        if site.parent == child.item {
            return Some(name.clone());
        }
        let of_classes = || {
            let mut params = child.params.iter().zip(&site.launch.args);
            params.find_map(|(param, arg)| of_class(site, &param.ty, *arg, name).filter(|_| param.ty.base != *name))
        };
        let is_type = signature.template_types.contains(name);
        let params = child.params.iter().zip(&site.launch.args);
        let mut params: Vec<_> = params.filter(|(param, _)| is_type && param.ty.base == *name).collect();
        // Of what a pointer points to, more is known than of a value: no parameter of the launching function is a reference there.
        params.sort_by_key(|(param, _)| param.ty.pointers == 0);
        let found = params.into_iter().find_map(|(param, arg)| {
            if param.ty.is_value() {
                return of_value(site, *arg);
            }
            let ExprKind::Name(Name::Local(binding)) = site.body.expr(site.body.strip_parens(*arg)).kind else {
                return None;
            };
            let ty = &site.body.binding(binding).ty;
            let pointer = ty.pointers == 1 && param.ty.pointers == 1 && ty.array.is_empty();
            let of_parent = site.parent.signature(site.db).template_types.contains(&ty.base);
            let known = of_parent || crate::facts::calls::is_plain_type(&ty.base);
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
        found.or_else(of_classes)
    };
    if site.parent == child.item && !is_own(site, child) {
        return None;
    }
    signature
        .template_names
        .iter()
        .map(|name| Some((name.clone(), value(name)?)))
        .collect()
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

/// Names of a child's template parameters with their arguments at a launch, written or deduced; empty where they aren't known.
pub fn values(site: &Site<'_>, child: &Child<'_>) -> Vec<(String, String)> {
    match site.launch.template_args {
        Some(_) => written_values(site, child.item),
        None => deduced(site, child).unwrap_or_default(),
    }
}

/// The template arguments of a launch as what is made of its child has to be given them, which deduces nothing: those that are written
/// where some are, else those that are deduced.
pub fn named(site: &Site<'_>, child: &Child<'_>) -> String {
    match site.launch.template_args {
        Some(_) if child.template.is_none() => String::new(),
        Some(written) => site.source(written).to_owned(),
        None => arguments(site, child).unwrap_or_default(),
    }
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
    if let Some(written) = site.launch.template_args {
        let all = written_values(site, child.item).len() == child.item.signature(child.db).template_names.len();
        return all.then(|| site.source(written).to_owned());
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
