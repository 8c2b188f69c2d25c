//! Scalarisation (El Hajj 2018, §3.4.1): which arguments of a launch are the same for all launches of a block or of a grid, and
//! how the others are written down.

use gridfuse_analysis::hir::items::Signature;
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::visible::visible_names;
use gridfuse_analysis::hir::{ExprId, ExprKind, Literal};

use crate::api::refusal::Refusals;
use crate::edit::lex;
use crate::emit::target;
use crate::facts::child::Child;
use crate::facts::child::Param;
use crate::facts::cluster::Function;
use crate::facts::constant_macro::is_constant;
use crate::facts::ctype;
use crate::facts::explicit::casts_as_it_converts;
use crate::facts::instance;
use crate::facts::instance::values_anywhere;
use crate::facts::kept_value::local_constant;
use crate::facts::moved;
use crate::facts::moved::Spot;
use crate::facts::site::Site;

/// The child's parameters: which are the same for all launches that are collected together, and which differ.
pub struct Split<'a> {
    /// In the order of the parameters.
    pub parts: Vec<Part<'a>>,
}

/// One parameter with its argument.
pub struct Part<'a> {
    /// The parameter.
    pub param: &'a Param,
    /// The argument at the launch; `None` where it is left to its default.
    pub arg: Option<ExprId>,
    /// Passed once for all of them.
    pub uniform: bool,
    /// The argument as a field's initialiser.
    pub initialiser: String,
}

/// Whether an argument may be passed once for several launches, as far as its form goes: a null pointer that is written as a
/// number converts in braces, and not as a deduced argument.
pub fn may_be_passed_once(site: &Site<'_>, param: &Param, arg: ExprId) -> bool {
    let number = matches!(
        &site.body.expr(site.body.strip_parens(arg)).kind,
        ExprKind::Literal(Literal::Int(_))
    );
    let base = ctype::normalize(&param.ty.base);
    let named = site.expr_source(site.body.strip_parens(arg)) == "NULL";
    !((number || named) && (param.ty.pointers > 0 || !crate::facts::calls::is_plain_type(&base)))
}

impl<'a> Split<'a> {
    /// The arguments of a launch; `uniform` says for each parameter whether it is the same for all launches that are
    /// collected together. What can't be passed on is refused.
    pub fn of(site: &Site<'_>, child: &'a Child<'_>, uniform: &[bool], refusals: &mut Refusals) -> Split<'a> {
        let template_args = template_arguments(site, child, refusals);
        Split::with(site, child, uniform, &template_args, refusals)
    }

    /// The same where the child's template arguments may be deduced.
    pub fn of_instance(site: &Site<'_>, child: &'a Child<'_>, uniform: &[bool], refusals: &mut Refusals) -> Split<'a> {
        let deduces = child.template.is_some() && instance::deduces(site, child.item);
        match deduces.then(|| instance::deduced(site, child)).flatten() {
            Some(values) => {
                refuse_unclear_arguments(site, refusals);
                Split::with(site, child, uniform, &values, refusals)
            }
            None => Split::of(site, child, uniform, refusals),
        }
    }

    /// The same where nothing of the child's template arguments is written elsewhere than at the launch.
    pub fn at_launch(site: &Site<'_>, child: &'a Child<'_>, uniform: &[bool], refusals: &mut Refusals) -> Split<'a> {
        let values = instance::at_launch(site, child);
        if values.is_none() {
            let why = format!("the template arguments of `{}` are deduced", child.name);
            refusals.add(why, Some(site.place(site.launch.name_span)));
        }
        Split::with(site, child, uniform, &values.unwrap_or_default(), refusals)
    }

    fn with(
        site: &Site<'_>,
        child: &'a Child<'_>,
        uniform: &[bool],
        template_args: &[(String, String)],
        refusals: &mut Refusals,
    ) -> Split<'a> {
        let mut parts = Vec::new();
        for (index, param) in child.params.iter().enumerate() {
            let Some(arg) = site.launch.args.get(index) else {
                let value = target::plain_default(site.db, child.item, index).unwrap_or_default();
                let ty = &param.ty;
                let plain = ty.pointers == 0 && crate::facts::calls::is_plain_type(&ctype::normalize(&ty.base));
                parts.push(Part {
                    param,
                    arg: None,
                    uniform: false,
                    initialiser: if plain {
                        format!("static_cast<{}>({value})", ty.base)
                    } else {
                        value
                    },
                });
                continue;
            };
            let uniform = uniform.get(index).is_some_and(|u| *u);
            let source = crate::edit::one_line::flat(site.expr_source(*arg));
            let mut initialiser = source.clone();
            if !uniform && param.ty.pointers == 0 {
                let written = with_values(&param.ty.base, child.item.signature(site.db), template_args);
                let wanted = written.as_deref().map(|ty| narrowing(site, child, *arg, ty));
                let near = crate::facts::qualified::qualified(site, child, "").is_empty();
                match wanted {
                    Some(None) => {}
                    Some(Some(wanted)) if !casts_as_it_converts(site, *arg, &wanted) => refusals.add(
                        format!(
                            "a cast of `{source}` to `{wanted}` may use an explicit conversion, which the launch doesn't: put it into a \
                             variable of this type before"
                        ),
                        Some(site.place(site.body.expr(*arg).span)),
                    ),
                    Some(Some(wanted))
                        if crate::facts::calls::is_plain_type(&wanted) || near && same_type(site, child, param) =>
                    {
                        initialiser = format!("static_cast<{wanted}>({source})");
                    }
                    _ => refusals.add(
                        format!(
                            "the type of parameter `{}` can't be named in `{}`",
                            param.name,
                            site.parent_name()
                        ),
                        Some(site.place(site.body.expr(*arg).span)),
                    ),
                }
            }
            parts.push(Part {
                param,
                arg: Some(*arg),
                uniform,
                initialiser,
            });
        }
        Split { parts }
    }

    /// What a uniform argument is written as at the top of the kernel, given its source there: a constant of the host has no
    /// address in device code.
    pub fn at_top(site: &Site<'_>, child: &Child<'_>, param: &Param, source: String, host_constant: bool) -> String {
        if !host_constant {
            return source;
        }
        let base = &param.ty.base;
        let ty = with_values(base, child.item.signature(site.db), &instance::values(site, child));
        format!("static_cast<{}>({source})", ty.as_ref().unwrap_or(base))
    }

    /// The type of an argument that differs depends on a template parameter of the child.
    pub fn depends_on_template(&self, child: &Child<'_>) -> bool {
        let names = &child.item.signature(child.db).template_names;
        self.varying()
            .any(|p| lex::identifiers(&p.param.field).any(|w| names.iter().any(|n| n == w)))
    }

    /// Those that differ.
    pub fn varying(&self) -> impl Iterator<Item = &Part<'a>> {
        self.parts.iter().filter(|p| !p.uniform)
    }

    /// Those that are the same for all launches.
    pub fn uniform(&self) -> impl Iterator<Item = &Part<'a>> {
        self.parts.iter().filter(|p| p.uniform)
    }
}

/// Whether what a parameter's type names, beside the child's template parameters, is the same at the launch.
fn same_type(site: &Site<'_>, child: &Child<'_>, param: &Param) -> bool {
    let (parent, child) = (Function::new(site.db, site.parent), Function::new(site.db, child.item));
    let own = &child.item.signature(site.db).template_names;
    let to = Spot::within(&parent, site.launch.name_span);
    moved::different(&param.ty.base, Spot::head(&child), to, own).is_none()
}

/// A type of the child as it is named outside of it, where its template parameters have these values: `typename T::type`. `None`
/// where a value isn't known, or is an expression that could mean something else inside of the type.
pub fn with_values(ty: &str, child: &Signature, values: &[(String, String)]) -> Option<String> {
    let value_of = |word: &str| values.iter().find(|(name, _)| name == word).map(|(_, value)| value);
    if let Some(value) = value_of(ty) {
        return Some(value.clone());
    }
    let mut out = String::new();
    let mut copied = 0;
    for token in lex::code_tokens(ty) {
        let (word, before) = (token.text(ty), ty.get(..token.start).unwrap_or("").trim_end());
        // A member may have the name of a template parameter.
        if !child.template_names.iter().any(|name| name == word) || before.ends_with("::") {
            continue;
        }
        let value = value_of(word)?;
        if !child.template_types.iter().any(|name| name == word) && lex::code_tokens(value).len() != 1 {
            return None;
        }
        out.push_str(ty.get(copied..token.start).unwrap_or(""));
        out.push_str(value);
        copied = token.end;
    }
    out.push_str(ty.get(copied..).unwrap_or(""));
    Some(out)
}

/// The type to which an argument must be converted so that braces accept it for a parameter of this type, which is written as it is
/// named outside of the child; `None` when they do anyway.
fn narrowing(site: &Site<'_>, child: &Child<'_>, arg: ExprId, written: &str) -> Option<String> {
    let names = visible_names(site.db, child.file);
    // What an alias of a number stands for can be named everywhere.
    let mut wanted = ctype::normalize(written);
    for _ in 0..8 {
        match names
            .aliases
            .get(wanted.as_str())
            .filter(|_| !hides(site.db, child.item, &wanted))
        {
            Some(target) if !target.contains(['(', '*']) => wanted = ctype::normalize(target),
            _ => break,
        }
    }
    let is_class = names.types.contains(wanted.split('<').next().unwrap_or(&wanted).trim())
        || (crate::facts::calls::is_plain_type(&wanted) && crate::facts::calls::VECTORS.contains(&wanted.as_str()));
    if is_class || ctype::literal_fits(site, arg, &wanted) {
        return None;
    }
    let fits = ctype::type_of(site, arg).is_some_and(|from| ctype::converts_in_braces(&from, &wanted));
    let near = crate::facts::qualified::qualified(site, child, "").is_empty();
    let named = if near || !crate::facts::calls::is_plain_type(&wanted) {
        written
    } else {
        wanted.as_str()
    };
    (!fits).then(|| named.to_owned())
}

/// Names and values of the child's template parameters. Refuses values that aren't written at the launch, or that mean
/// something at the launch alone.
fn template_arguments(site: &Site<'_>, child: &Child<'_>, refusals: &mut Refusals) -> Vec<(String, String)> {
    let names = &child.item.signature(site.db).template_names;
    if child.template.is_none() {
        return Vec::new();
    }
    let place = Some(site.place(site.launch.name_span));
    if site.launch.template_args.is_none() {
        let lambda = match instance::gets_lambda(site) {
            true => " from a lambda, whose type has no name where launches are collected",
            false => "",
        };
        let what = format!("the template arguments of `{}` are deduced{lambda}", child.name);
        refusals.add(what, place);
        return Vec::new();
    }
    let values = values_anywhere(site, child.item);
    if values.len() != names.len() {
        refusals.add(
            format!(
                "not all template arguments of `{}` are written at the launch",
                child.name
            ),
            place,
        );
    }
    refuse_unclear_arguments(site, refusals);
    values
}

/// The members of template parameters that a code names, `threads` of `Policy::threads`, as far as nothing else there has their names.
fn of_own_parameters<'a>(code: &'a str, parameters: &[String]) -> Vec<&'a str> {
    let words = lex::code_words(code);
    let is_member = |index: usize| {
        let owner = match (
            index.checked_sub(1).map(|i| words[i]),
            index.checked_sub(2).map(|i| words[i]),
        ) {
            (Some("::"), Some(owner)) => owner,
            (Some(":"), Some(":")) => index.checked_sub(3).map_or("", |i| words[i]),
            _ => "",
        };
        parameters.iter().any(|own| own == owner)
    };
    let members = |word: &&&str| {
        let mut places = (0..words.len()).filter(|index| words[*index] == **word).peekable();
        places.peek().is_some() && places.all(is_member)
    };
    words.iter().filter(members).copied().collect()
}

/// Refuses template arguments that are written at a launch and mean something there alone, or aren't understood.
fn refuse_unclear_arguments(site: &Site<'_>, refusals: &mut Refusals) {
    let Some(span) = site.launch.template_args else { return };
    let place = Some(site.place(site.launch.name_span));
    let inner = site.source(span).trim().trim_start_matches('<').trim_end_matches('>');
    let visible = visible_names(site.db, site.file);
    let signature = site.parent.signature(site.db);
    let arguments = gridfuse_analysis::hir::names::template_arguments(site.source(span));
    let of_own = of_own_parameters(inner, &signature.template_names);
    for word in lex::identifiers(inner) {
        if of_own.contains(&word) {
            continue;
        }
        if local_constant(site, word).is_some() && arguments.iter().any(|argument| argument == word) {
            continue;
        }
        let known = crate::facts::calls::is_plain_type(word)
            || matches!(word, "true" | "false" | "const" | "sizeof" | "std")
            || signature.template_names.iter().any(|n| n == word)
            || visible.types.contains(word)
            || visible.aliases.contains_key(word)
            || is_constant(site, word)
            || matches!(
                gridfuse_analysis::hir::resolve::meaning(site.db, site.file, word),
                gridfuse_analysis::hir::resolve::Meaning::Enumerator(_)
                    | gridfuse_analysis::hir::resolve::Meaning::Global(_)
            );
        let local = site.body.bindings.iter().any(|b| b.name == word);
        if !known || local {
            refusals.add(format!("the template argument `{word}` is not understood"), place);
        }
    }
}
