//! Launches by function templates whose template arguments depend on those of the function: `child<T><<<…>>>(…)` in `visit<T>`. One kernel
//! template collects them, and each kernel that calls the function declares a collector for each instance that it comes to, with the
//! template arguments as they are called there. The function gets its collectors by parameters whose types are deduced.

use std::collections::BTreeMap;

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::functors::{class_named, functor_class};
use gridfuse_analysis::hir::names::{template_arguments, unqualified};
use gridfuse_analysis::hir::scope::hides;
use gridfuse_analysis::hir::{Body, ExprId, ExprKind, Name, Stmt, StmtKind};

use super::collect::Collection;
use super::collected_instances::{Instances, is_same};
use super::group::Group;
use super::strategy::Strategy;
use crate::api::refusal::Refusals;
use crate::edit::lex;
use crate::edit::names::{Names, plural};
use crate::emit::split::with_values;
use crate::facts::cluster::{Call, Function};
use crate::facts::ctype;
use crate::facts::deduction::Deduction;
use crate::facts::instance;
use crate::facts::moved::{self, Spot};
use crate::facts::site::Site;

/// So many instances of one child are collected in a function; each takes a collector of its own.
const MAX_INSTANCES: usize = 8;

/// Finds them. What a kernel can't name is refused.
pub fn find(
    groups: &[Group<'_>],
    collection: &Collection<'_>,
    strategy: &dyn Strategy,
    names: &mut Names,
    refusals: &mut Refusals,
) -> Instances {
    let mut instances = Instances::default();
    for (index, group) in groups.iter().enumerate() {
        let sites = group.launches.iter().map(|(site, _)| *site);
        let own = sites.filter(|site| depends(collection, *site));
        instances.dependent.extend(own);
        let Some(first) = group
            .launches
            .iter()
            .map(|(site, _)| *site)
            .find(|site| depends(collection, *site))
        else {
            continue;
        };
        let search = Search {
            collection,
            group,
            site: &collection.cluster.sites[first],
            launcher: &collection.cluster.functions[collection.cluster.site_of[first]],
        };
        match search.all(strategy) {
            Ok((of, passed)) => {
                let most = of.values().map(Vec::len).max().unwrap_or(0);
                let child = &collection.children[group.child];
                let wanted = plural(&child.name);
                let texts = collection.cluster.texts();
                let further = (1..most).map(|_| names.fresh_in(child.db, &texts, &wanted));
                let all = std::iter::once(group.aggregator.clone()).chain(further).collect();
                instances.names.insert(index, all);
                for (function, texts) in of {
                    instances.of.insert((function, index), texts);
                }
                for (call, numbers) in passed {
                    instances.passed.insert((call, index), numbers);
                }
            }
            Err(reason) => refusals.add(reason, Some(search.site.place(search.site.launch.name_span))),
        }
    }
    instances
}

/// Whether the template arguments of a launch name template parameters of the function that it stands in, and this is no kernel.
pub fn depends(collection: &Collection<'_>, site: usize) -> bool {
    let function = &collection.cluster.functions[collection.cluster.site_of[site]];
    let Some(child) = collection.child_of.get(site).map(|child| &collection.children[*child]) else {
        return false;
    };
    let own = &function.item.signature(function.db).template_names;
    let named = instance::named(&collection.cluster.sites[site], child);
    !function.is_kernel() && lex::identifiers(&named).any(|word| own.iter().any(|own| own == word))
}

/// By function, the instances; by call, which of the caller's each of the callee's is.
type Found = (BTreeMap<usize, Vec<String>>, BTreeMap<usize, Vec<usize>>);

/// The search for the instances of one group.
struct Search<'a, 'db> {
    collection: &'a Collection<'db>,
    group: &'a Group<'a>,
    /// A launch whose template arguments depend on those of `launcher`.
    site: &'a Site<'db>,
    launcher: &'a Function<'db>,
}

impl<'db> Search<'_, 'db> {
    fn all(&self, strategy: &dyn Strategy) -> Result<Found, String> {
        let cluster = &self.collection.cluster;
        let launching = self.group.launches.iter();
        let launching: Vec<usize> = launching.map(|(site, _)| cluster.site_of[*site]).collect();
        // What an aggregated kernel declares for its child's launches is named in that kernel.
        let nested = |index: &usize| {
            let function = &cluster.functions[*index];
            let reached = cluster.reached_from(*index);
            let is_child = self.collection.children.iter().any(|child| child.item == function.item);
            (is_child || function.batch().is_some()) && launching.iter().any(|at| reached.contains(at))
        };
        let plain = format!(
            "the template arguments of this launch depend on those of `{}`",
            self.launcher.name()
        );
        if !strategy.has_instances() {
            return Err(plain);
        }
        if let Some(nested) = (0..cluster.functions.len()).find(nested) {
            let name = cluster.functions[nested].name();
            return Err(format!(
                "{plain}, and `{name}`, which comes to it, is launched by the device itself"
            ));
        }
        // An instance that nobody launches may not compile.
        let chosen = |body: &Body, at: Span| {
            let branch =
                |stmt: &Stmt| matches!(stmt.kind, StmtKind::If { constexpr: true, .. }) && stmt.span.contains(at);
            body.stmts.iter().any(branch)
        };
        let sites = self.group.launches.iter().map(|(site, _)| &cluster.sites[*site]);
        let mut at_sites = sites.map(|site| chosen(&site.body, site.facts.span));
        let to_launch = |call: &&Call| {
            launching
                .iter()
                .any(|at| call.callee == *at || cluster.reached_from(call.callee).contains(at))
        };
        let mut at_calls = cluster.calls.iter().filter(to_launch).map(|call| {
            let body = &cluster.functions[call.caller].body;
            chosen(body, body.expr(call.expr).span)
        });
        if at_sites.any(|chosen| chosen) || at_calls.any(|chosen| chosen) {
            return Err(format!(
                "{plain}, and `if constexpr` decides which of them are compiled"
            ));
        }
        let mut of: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let child = &self.collection.children[self.group.child];
        for ((site, _), at) in self.group.launches.iter().zip(&launching) {
            add(
                of.entry(*at).or_default(),
                instance::named(&cluster.sites[*site], child),
            );
        }
        loop {
            let before = of.clone();
            for call in &cluster.calls {
                for text in before.get(&call.callee).into_iter().flatten() {
                    add(of.entry(call.caller).or_default(), self.in_caller(call, text)?);
                }
            }
            if of.values().any(|texts| texts.len() > MAX_INSTANCES) {
                return Err(format!("{plain}, and it has more than {MAX_INSTANCES} instances"));
            }
            if of == before {
                break;
            }
        }
        for (index, texts) in &of {
            self.refuse_twins(&cluster.functions[*index], texts)?;
        }
        let mut passed = BTreeMap::new();
        for (index, call) in cluster.calls.iter().enumerate() {
            let Some(texts) = of.get(&call.callee) else { continue };
            let known = of.get(&call.caller).map_or(&[][..], Vec::as_slice);
            let number = |text: &String| -> Result<usize, String> {
                let text = self.in_caller(call, text)?;
                let number = known.iter().position(|known| is_same(known, &text));
                number.ok_or_else(|| plain.clone())
            };
            passed.insert(index, texts.iter().map(number).collect::<Result<_, _>>()?);
        }
        Ok((of, passed))
    }

    /// A kernel's collectors of one type would share their state: the instances have to be different for sure.
    fn refuse_twins(&self, function: &Function<'db>, texts: &[String]) -> Result<(), String> {
        if !function.is_kernel() {
            return Ok(());
        }
        for (index, text) in texts.iter().enumerate() {
            let twin = texts[..index]
                .iter()
                .find(|other| !are_different(function, other, text));
            if let Some(other) = twin {
                return Err(format!(
                    "the template arguments of this launch depend on those of `{}`, and whether `{other}` and `{text}` are different ones in \
                     `{}` isn't known",
                    self.launcher.name(),
                    function.name()
                ));
            }
        }
        Ok(())
    }

    /// Template arguments of a function that is called, as they are called where it is.
    fn in_caller(&self, call: &Call, text: &str) -> Result<String, String> {
        let cluster = &self.collection.cluster;
        let (caller, callee) = (&cluster.functions[call.caller], &cluster.functions[call.callee]);
        let signature = callee.item.signature(callee.db);
        let used = |name: &&String| lex::identifiers(text).any(|word| word == *name);
        let mut values: Vec<(String, String)> = Vec::new();
        for name in signature.template_names.iter().filter(used) {
            let value =
                value(caller, call, callee, name).map_err(|lambda| self.unknown(caller, callee, name, lambda))?;
            self.check_names(caller, call, &value)?;
            values.push((name.clone(), value));
        }
        let child = &self.collection.children[self.group.child];
        let header = child
            .template
            .as_deref()
            .and_then(|header| header.trim_start().strip_prefix("template"));
        let of_child = template_arguments(header.unwrap_or(""));
        let argument = |(index, argument): (usize, &String)| {
            // A number as it is written has a type that the parameter needn't have.
            let is_typed = |(name, value): &(String, String)| {
                signature.template_types.iter().any(|ty| ty == name)
                    || is_plain_int(&declared(callee, name)) && is_int(caller, value)
            };
            let typed = values
                .iter()
                .filter(|(name, _)| lex::identifiers(argument).any(|word| word == name))
                .all(is_typed);
            if let Some((_, value)) = values.iter().find(|(name, _)| name == argument) {
                let any_type = of_child
                    .get(index)
                    .is_none_or(|own| lex::identifiers(own).any(|word| word == "auto"));
                return (typed || !any_type).then(|| value.clone());
            }
            if !typed {
                return None;
            }
            // In `T*` and `const T`, an argument that is a pointer would bind otherwise; in `N + 1`, a sum.
            let names = |value: &str| lex::code_words(value).iter().all(|word| is_part_of_name(word));
            let plain = values
                .iter()
                .all(|(name, value)| names(value) || !lex::identifiers(argument).any(|word| word == name));
            plain.then(|| with_values(argument, signature, &values)).flatten()
        };
        let arguments = template_arguments(text);
        let arguments: Option<Vec<String>> = arguments.iter().enumerate().map(argument).collect();
        let arguments = arguments.ok_or_else(|| {
            format!(
                "the template arguments of this launch are computed from those of `{}`, and what they are in `{}` can't be written there",
                callee.name(),
                caller.name()
            )
        })?;
        Ok(format!("<{}>", arguments.join(", ")))
    }

    /// Why nobody can write a value of a template parameter.
    fn unknown(&self, caller: &Function<'_>, callee: &Function<'_>, name: &str, lambda: bool) -> String {
        let why = match lambda {
            true => format!(
                "`{}` gives it a lambda, whose type has no name where launches are collected",
                caller.name()
            ),
            false => format!("what that is where `{}` calls it isn't known", caller.name()),
        };
        format!(
            "the template arguments of this launch depend on `{name}` of `{}`: {why}",
            callee.name()
        )
    }

    /// What a template argument names has to mean the same wherever it is written.
    fn check_names(&self, caller: &Function<'db>, call: &Call, value: &str) -> Result<(), String> {
        let cluster = &self.collection.cluster;
        let at = Spot::within(caller, caller.body.expr(call.expr).span);
        let own = &caller.item.signature(caller.db).template_names;
        for (index, function) in cluster.functions.iter().enumerate() {
            let signature = function.item.signature(function.db);
            let is_caller = index == call.caller;
            let written = match function.is_kernel() {
                true => is_caller || !caller.is_kernel() && cluster.reached_from(index).contains(&call.caller),
                false => signature.template_params.is_none() && cluster.reached_from(index).contains(&call.caller),
            };
            if !written {
                continue;
            }
            let to = if function.is_kernel() {
                Spot::top(function)
            } else {
                Spot::head(function)
            };
            let known: &[String] = if is_caller { &[] } else { own };
            if let Some(name) = moved::different(value, at, to, known) {
                return Err(format!(
                    "`{name}`, on which the template arguments of this launch depend, isn't the same at the top of `{}` as where `{}` calls \
                     `{}`; give one of them another name",
                    function.name(),
                    caller.name(),
                    cluster.functions[call.callee].name()
                ));
            }
        }
        Ok(())
    }
}

/// What a template parameter of a function stands for at a call. Without an answer: whether it is the type of a lambda.
fn value(caller: &Function<'_>, call: &Call, callee: &Function<'_>, name: &str) -> Result<String, bool> {
    let signature = callee.item.signature(callee.db);
    let at = |span: Span, function: &Function<'_>| span.shift(function.start).text(&function.text).to_owned();
    let header = signature.template_params.map_or(String::new(), |list| at(list, callee));
    let is_type = signature.template_types.iter().any(|ty| ty == name);
    let place = signature
        .template_names
        .iter()
        .position(|own| own == name)
        .ok_or(false)?;
    // A template as an argument is none of its types.
    let is_template = |parameter: &String| lex::identifiers(parameter).next() == Some("template");
    if header.contains("...") || template_arguments(&header).iter().any(is_template) {
        return Err(false);
    }
    let ExprKind::Call { template_args, .. } = &caller.body.expr(call.expr).kind else {
        return Err(false);
    };
    let written = template_args.map_or(Vec::new(), |list| template_arguments(&at(list, caller)));
    let found = match written.into_iter().nth(place) {
        Some(written) => written,
        None => deduced(caller, call, callee, name, is_type)?,
    };
    // References and qualifiers of its own would be those of what is collected.
    let odd = |word: &&str| {
        matches!(
            *word,
            "&" | "&&" | "const" | "volatile" | "decltype" | "auto" | "..." | "(" | "{"
        )
    };
    match found.is_empty() || lex::code_words(&found).iter().any(odd) {
        true => Err(false),
        false => Ok(found),
    }
}

/// How a function's template parameter is declared, without its name and its default.
fn declared(function: &Function<'_>, name: &str) -> String {
    let signature = function.item.signature(function.db);
    let list = signature
        .template_params
        .map_or("", |list| list.shift(function.start).text(&function.text));
    let all = template_arguments(list);
    let own = all.iter().map(|parameter| parameter.split('=').next().unwrap_or(""));
    own.filter_map(|parameter| parameter.trim().strip_suffix(name))
        .map(|ty| ty.trim().to_owned())
        .next()
        .unwrap_or_default()
}

fn is_plain_int(ty: &str) -> bool {
    ty == "int"
}

/// A template argument is an `int` as it is written where a function calls: a number, or a template parameter of that function's.
fn is_int(caller: &Function<'_>, value: &str) -> bool {
    value.parse::<i32>().is_ok() || is_plain_int(&declared(caller, value))
}

/// The same where it is deduced.
fn deduced(
    caller: &Function<'_>,
    call: &Call,
    callee: &Function<'_>,
    name: &str,
    is_type: bool,
) -> Result<String, bool> {
    if !is_type {
        return Err(false);
    }
    let deduction = Deduction::new(caller.db, caller.item, &caller.body);
    let mut lambda = false;
    for (param, arg) in callee.body.params.iter().zip(&call.args) {
        let ty = &callee.body.binding(*param).ty;
        if let Some(found) = deduction.of_argument(ty, *arg, name, is_type) {
            return Ok(found);
        }
        let plain = ty.pointers == 0 && ty.array.is_empty() && !ty.complex && !ty.volatile;
        // What `T&&` stands for may be a reference, and what `T&` does may be `const`.
        if !plain || ty.base != name || ty.reference && !ty.const_base {
            continue;
        }
        lambda |= is_lambda(caller, *arg);
        if let Some(found) = functor_class(caller.db, caller.item, &caller.body, *arg) {
            return Ok(found);
        }
    }
    Err(lambda)
}

/// An expression that is a lambda, or a variable that is one.
fn is_lambda(function: &Function<'_>, expr: ExprId) -> bool {
    let body = &function.body;
    let is = |expr: ExprId| matches!(body.expr(body.strip_parens(expr)).kind, ExprKind::Lambda { .. });
    let named = match body.expr(body.strip_parens(expr)).kind {
        ExprKind::Name(Name::Local(variable)) => body.initialiser(variable),
        _ => None,
    };
    is(expr) || named.is_some_and(is)
}

/// A name, a number, or what stands between scopes and around template arguments.
fn is_part_of_name(word: &str) -> bool {
    let first = word.chars().next();
    first.is_some_and(|c| c.is_alphanumeric() || c == '_') || matches!(word, ":" | "::" | "<" | ">" | ",")
}

fn add(texts: &mut Vec<String>, text: String) {
    if !texts.iter().any(|known| is_same(known, &text)) {
        texts.push(text);
    }
}

/// A type or a number of which it is known which one it is.
#[derive(PartialEq)]
enum Certain {
    Number(u32),
    /// One of the language's, or pointers to it: so many stars.
    Type(String, usize),
    Class(String, usize),
}

/// Whether two lists of template arguments, as a kernel writes them, are those of different instances for sure.
fn are_different(function: &Function<'_>, a: &str, b: &str) -> bool {
    let certain = |written: &String| {
        if let Some(number) = instance::number(written) {
            return Some(Certain::Number(number));
        }
        let written = written.trim();
        let base = written.trim_end_matches(['*', ' ']);
        let stars = written.get(base.len()..).unwrap_or("").matches('*').count();
        let plain = ctype::normalize(base);
        let of_language = ["bool", "char", "short", "int", "unsigned int", "float", "double"];
        if of_language.contains(&plain.as_str()) {
            return Some(Certain::Type(plain, stars));
        }
        let (class, list) = base.split_at(base.find('<').unwrap_or(base.len()));
        let class = class.trim();
        let name = unqualified(class);
        let signature = function.item.signature(function.db);
        let own = |names: &[String]| names.iter().any(|own| own == name);
        // What stands behind the arguments may be a member that is any type.
        let odd = class.contains(['*', '&', '(', '[', ' ', ':'])
            || list.contains(':')
            || !list.is_empty() && !list.ends_with('>');
        if odd || hides(function.db, function.item, class) || own(&signature.template_names) {
            return None;
        }
        class_named(function.db, function.item, name).map(|_| Certain::Class(name.to_owned(), stars))
    };
    let (a, b) = (template_arguments(a), template_arguments(b));
    let mut pairs = a.iter().zip(&b);
    pairs.any(|(a, b)| certain(a).zip(certain(b)).is_some_and(|(a, b)| a != b))
}
