//! The block size of a child that the host launches before anybody knows of what: it is a template argument there, and stands in the launch
//! as well. Whoever changes one of them alone gets a program that stops, so both name one constant.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::hir::resolve::{Meaning, meaning};
use gridfuse_analysis::hir::{BindingId, ExprId, ExprKind, Literal, Name, StmtKind, Storage};

use crate::edit::builder::EditBuilder;
use crate::edit::names::{Names, camel};
use crate::facts::child::Child;
use crate::facts::pure;
use crate::facts::qualified::qualified;
use crate::facts::site::Site;

/// What the comment of a constant that is declared begins with.
pub const COMMENT: &str = "// The threads of a block of";

/// The constant.
pub enum SharedBlock {
    /// One of the program's, which the launches name.
    Known(String),
    /// A new one.
    New(New),
}

/// A constant that is to be declared.
pub struct New {
    /// Its name.
    pub name: String,
    /// Its value, as the program writes it.
    pub value: String,
    /// The variables that the launches take it from, by their values' places, and which launch that is.
    variables: Vec<(usize, FileRange)>,
}

/// Where a launch has its block size from.
enum Source {
    /// It is written there.
    Number(String),
    /// A local variable begins with it.
    Variable(String, FileRange),
    /// A constant of the program's.
    Constant(String),
}

impl SharedBlock {
    /// The constant for launches of a child, by the number of each; `None` where its block isn't one number that is written in one way.
    pub fn of(sites: &[(usize, &Site<'_>)], child: &Child<'_>, names: &mut Names) -> Option<SharedBlock> {
        let sources: Option<Vec<(usize, Source)>> = sites
            .iter()
            .map(|(index, site)| Some((*index, source(site, child)?)))
            .collect();
        let sources = sources?;
        let mut variables: Vec<(usize, FileRange)> = Vec::new();
        let (mut value, mut known): (Option<&str>, Option<&str>) = (None, None);
        for (index, source) in &sources {
            let (of_kind, written) = match source {
                Source::Number(written) => (&mut value, written),
                Source::Variable(written, place) => {
                    if !variables.iter().any(|(_, other)| other == place) {
                        variables.push((*index, *place));
                    }
                    (&mut value, written)
                }
                Source::Constant(name) => (&mut known, name),
            };
            if of_kind.is_some_and(|other| other != written) {
                return None;
            }
            *of_kind = Some(written);
        }
        match (value, known) {
            (None, Some(name)) => Some(SharedBlock::Known(name.to_owned())),
            (Some(value), None) => Some(SharedBlock::New(New {
                name: names.fresh(&format!("k{}Block", camel(&child.name))),
                value: value.to_owned(),
                variables,
            })),
            _ => None,
        }
    }

    /// Whether variables are to begin with it.
    pub fn has_variables(&self) -> bool {
        matches!(self, SharedBlock::New(new) if !new.variables.is_empty())
    }

    /// Its name beside the child.
    pub fn name(&self) -> &str {
        match self {
            SharedBlock::Known(name) => name,
            SharedBlock::New(new) => &new.name,
        }
    }

    /// The declaration, with an empty line behind it, or nothing.
    pub fn declaration(&self, child: &Child<'_>) -> String {
        match self {
            SharedBlock::Known(_) => String::new(),
            SharedBlock::New(New { name, value, .. }) => format!(
                "{COMMENT} {}, for its launches and for what runs them.\nconstexpr int {name} = {value};\n\n",
                child.name
            ),
        }
    }

    /// The block size of a launch that has a number there.
    pub fn at_launch(&self, site: &Site<'_>, child: &Child<'_>) -> Option<String> {
        let SharedBlock::New(new) = self else { return None };
        let is_number = matches!(source(site, child), Some(Source::Number(_)));
        is_number.then(|| qualified(site, child, &new.name))
    }

    /// Has the variables begin with the constant that launches take their block sizes from.
    pub fn name_in_variables<'a, 'db: 'a>(
        &self,
        site: impl Fn(usize) -> &'a Site<'db>,
        child: &Child<'_>,
        edit: &mut EditBuilder<'_>,
    ) {
        let SharedBlock::New(new) = self else { return };
        for (index, place) in &new.variables {
            edit.replace(*place, qualified(site(*index), child, &new.name));
        }
    }
}

fn source(site: &Site<'_>, child: &Child<'_>) -> Option<Source> {
    let body = &site.body;
    let operand = body.strip_parens(site.facts.block.operand.expr);
    if site.facts.from_macro || body.expr(operand).from_macro {
        return None;
    }
    match &body.expr(operand).kind {
        ExprKind::Literal(Literal::Int(_)) => Some(Source::Number(number(site, operand)?)),
        ExprKind::Name(Name::Local(binding)) => {
            let initial = initial_value(site, *binding)?;
            let place = site.place(body.expr(initial).span);
            Some(Source::Variable(number(site, initial)?, place))
        }
        ExprKind::Name(Name::Other(name)) => {
            is_seen_constant(site, child, name).then(|| Source::Constant(name.clone()))
        }
        _ => None,
    }
}

/// A number as it is written.
fn number(site: &Site<'_>, literal: ExprId) -> Option<String> {
    let written = site.expr_source(literal);
    written.bytes().all(|b| b.is_ascii_digit()).then(|| written.to_owned())
}

/// The number that a variable of the function begins with, and keeps.
fn initial_value(site: &Site<'_>, binding: BindingId) -> Option<ExprId> {
    let body = &site.body;
    let variable = body.binding(binding);
    let plain = variable.storage == Storage::Local && variable.ty.is_value() && variable.ty.array.is_empty();
    if !plain || !pure::assignments(site.db, site.parent, body, binding).is_empty() {
        return None;
    }
    let declarations = body.stmts.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::Decl(decls) => decls.iter().find(|decl| decl.binding == binding),
        _ => None,
    });
    let initial = declarations.into_iter().next()?.init?;
    let expr = body.expr(initial);
    (matches!(expr.kind, ExprKind::Literal(Literal::Int(_))) && !expr.from_macro).then_some(initial)
}

/// Whether a name is that of a constant which the child's file sees where the child stands.
fn is_seen_constant(site: &Site<'_>, child: &Child<'_>, name: &str) -> bool {
    let Meaning::Global(global) = meaning(site.db, child.file, name) else {
        return false;
    };
    let in_front = child
        .text
        .get(..child.start as usize)
        .is_some_and(|front| front.contains(name));
    let number = global
        .init
        .as_deref()
        .is_some_and(|init| init.trim().bytes().all(|b| b.is_ascii_digit()));
    global.constant
        && number
        && !name.contains(':')
        && global.scopes.iter().all(String::is_empty)
        && (in_front || !child.text.contains(name))
}
