//! The child's parameters: each thread of a grid has its own, one thread that runs them all has one.

use std::collections::{BTreeMap, BTreeSet};

use gridfuse_analysis::hir::{BindingId, Body};

use super::reasons::reason;
use crate::api::refusal::Reason;
use crate::edit::lex;
use crate::facts::child::Child;
use crate::facts::ctype;
use crate::facts::only_read::only_read;
use crate::facts::pure::{is_immutable_parameter, only_assigned};
use crate::facts::sizes::size_of_name;
use crate::facts::unknown_use::unknown_use;

/// Where the copies of a parameter live that its threads change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copy {
    /// All threads of a block change it alike: there is one for the block.
    Block,
    /// In an array, with an element for each thread.
    Threads,
    /// In the loop over the threads: between two barriers nobody else needs it.
    Region,
}

/// The copies by parameter.
pub type Copies = BTreeMap<BindingId, Copy>;

/// The parameters that the child changes, so that one for all threads won't do.
pub fn changed(child: &Child<'_>) -> BTreeSet<BindingId> {
    let own = child.body.params.iter().copied();
    own.filter(|param| !is_the_same_for_all(child, *param)).collect()
}

/// Nobody changes the parameter.
fn is_the_same_for_all(child: &Child<'_>, param: BindingId) -> bool {
    let body: &Body = &child.body;
    body.binding(param).name.is_empty()
        || is_immutable_parameter(child.db, child.item, body, param)
        || only_read(child.db, child.item, body, param) && unknown_use(child, param).is_none()
}

/// Why a parameter that the child changes can't be copied.
pub fn refusal(child: &Child<'_>, param: BindingId) -> Option<Reason> {
    let body: &Body = &child.body;
    let variable = body.binding(param);
    let ty = &variable.ty;
    let name = &variable.name;
    // What happens to an object when it is copied or assigned to, its class says.
    let number = size_of_name(&ty.base).is_some() || ctype::is_integer(child.db, child.file, &ty.base);
    let plain = (ty.pointers > 0 || number) && ty.array.is_empty() && !is_of_template(child, param);
    if !plain || !only_assigned(child.db, child.item, body, param) {
        let text = format!(
            "`{}` may change its parameter `{name}`, of which each thread has its own",
            child.name
        );
        return Some(reason(text, child.place_of(variable.decl_span)));
    }
    let index = body.params.iter().position(|own| *own == param);
    let declared = index.and_then(|index| child.params.get(index));
    let can_be_renamed = declared.is_some_and(|own| own.name == *name && renamed(&own.decl, name, "").is_some());
    let unknown = unknown_use(child, param).or_else(|| (!can_be_renamed).then_some(variable.span));
    unknown.map(|span| {
        let text = format!(
            "`{name}`, which `{}` changes, is used in a way that is not understood",
            child.name
        );
        reason(text, child.place_of(span))
    })
}

/// A value whose type a template parameter says.
fn is_of_template(child: &Child<'_>, param: BindingId) -> bool {
    let ty = &child.body.binding(param).ty;
    let names = &child.item.signature(child.db).template_names;
    ty.pointers == 0 && lex::identifiers(&ty.base).any(|word| names.iter().any(|name| name == word))
}

/// The name of the parameter that holds what the threads begin with.
pub fn given(child: &Child<'_>, param: BindingId) -> String {
    child.local_around_body(&format!("{}_given", child.body.binding(param).name))
}

/// A parameter's declaration with another name; `None` where it isn't clear where its name stands.
pub fn renamed(declaration: &str, name: &str, by: &str) -> Option<String> {
    let tokens = lex::code_tokens(declaration);
    let mut names = tokens.iter().filter(|token| token.text(declaration) == name);
    let (only, None) = (names.next()?, names.next()) else {
        return None;
    };
    let (before, behind) = (declaration.get(..only.start)?, declaration.get(only.end..)?);
    Some(format!("{before}{by}{behind}"))
}
