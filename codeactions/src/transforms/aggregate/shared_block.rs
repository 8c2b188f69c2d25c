//! The block size of a child that the host launches before anybody knows of what: it is a template argument there, and stands in the launch
//! as well. Whoever changes one of them alone gets a program that stops, so both name one constant; and so does the number of blocks that
//! is computed from it, as in `(count + 127) / 128`: with another block size it would be too few.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{Meaning, meaning};
use gridfuse_analysis::hir::{BinOp, ExprId, ExprKind, Literal, Name};

use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::names::{Names, camel};
use crate::facts::child::Child;
use crate::facts::constant_macro::{is_constant, is_seen_by};
use crate::facts::ctype;
use crate::facts::kept_value::kept_value;
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
    /// The numbers that variables of launches begin with and that it replaces.
    variables: Vec<InVariable>,
}

/// A number that a variable begins with: the block size, or what the grid size is computed from.
#[derive(Clone)]
struct InVariable {
    /// The launch that takes the variable.
    launch: usize,
    place: FileRange,
    number: Number,
}

/// What a number in the code is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    /// The threads of a block.
    Threads,
    /// One less, as in `(count + 127) / 128`, where all is integers.
    OneLess,
    /// The same where the types aren't known: other numbers may be rounded after each operation.
    OneLessFirst,
}

impl Number {
    /// The same by the name of the constant, with blanks as what stands before it has them.
    fn named(self, name: &str, before: &str) -> String {
        let minus = if before.ends_with('+') { "-" } else { " - " };
        match self {
            Number::Threads => name.to_owned(),
            Number::OneLess => format!("{name}{minus}1"),
            Number::OneLessFirst => format!("({name}{minus}1)"),
        }
    }
}

/// What a launch has in place of its grid size and its block size, where that changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AtLaunch {
    /// The grid size, in code.
    pub grid: Option<String>,
    /// The block size, in code.
    pub block: Option<String>,
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
        let mut variables: Vec<InVariable> = Vec::new();
        let (mut value, mut known): (Option<&str>, Option<&str>) = (None, None);
        for (index, source) in &sources {
            let (of_kind, written) = match source {
                Source::Number(written) => (&mut value, written),
                Source::Variable(written, place) => {
                    variables.push(InVariable {
                        launch: *index,
                        place: *place,
                        number: Number::Threads,
                    });
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
            (Some(value), None) => {
                let value = value.to_owned();
                for (index, site) in sites {
                    variables.extend(grid_variable(*index, site, &value));
                }
                let mut known: Vec<FileRange> = Vec::new();
                variables.retain(|variable| {
                    let is_new = !known.contains(&variable.place);
                    known.push(variable.place);
                    is_new
                });
                Some(SharedBlock::New(New {
                    name: names.fresh(&format!("k{}Block", camel(&child.name))),
                    value,
                    variables,
                }))
            }
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

    /// What a launch has in place of numbers that are written there.
    pub fn at_launch(&self, site: &Site<'_>, child: &Child<'_>) -> AtLaunch {
        let SharedBlock::New(new) = self else {
            return AtLaunch::default();
        };
        let name = qualified(site, child, &new.name);
        let is_number = matches!(source(site, child), Some(Source::Number(_)));
        let grid = &site.facts.grid.operand;
        let span = site.place(grid.span).range;
        let mut text = site.source(grid.span).to_owned();
        let mut numbers = numbers(site, grid.expr, &new.value);
        numbers.sort_by_key(|(place, _)| std::cmp::Reverse(place.range.start));
        for (place, number) in &numbers {
            let (start, end) = (place.range.start - span.start, place.range.end - span.start);
            let named = number.named(&name, text.get(..start as usize).unwrap_or_default());
            text.replace_range(start as usize..end as usize, &named);
        }
        AtLaunch {
            grid: (!numbers.is_empty()).then_some(text),
            block: is_number.then_some(name),
        }
    }

    /// Has the variables begin with the constant that launches take their block sizes from.
    pub fn name_in_variables<'a, 'db: 'a>(
        &self,
        site: impl Fn(usize) -> &'a Site<'db>,
        child: &Child<'_>,
        edit: &mut EditBuilder<'_>,
    ) {
        let SharedBlock::New(new) = self else { return };
        for variable in &new.variables {
            let site = site(variable.launch);
            let name = qualified(site, child, &new.name);
            let text = variable.place.file.text(site.db);
            let before = text.get(..variable.place.range.start as usize).unwrap_or_default();
            edit.replace(variable.place, variable.number.named(&name, before));
        }
    }
}

/// The numbers in a number of blocks that stand for the threads of a block: what it divides by, and what it adds before to round up. Not
/// those that a macro writes.
fn numbers(site: &Site<'_>, grid: ExprId, value: &str) -> Vec<(FileRange, Number)> {
    let mut found = Vec::new();
    // What begins with 0 is octal.
    if site.facts.from_macro || value.starts_with('0') {
        return found;
    }
    let body = &site.body;
    let less = value.parse::<u32>().ok().and_then(|value| value.checked_sub(1));
    let less = less.map(|less| less.to_string());
    let is = |expr: ExprId, written: &str| {
        let expr = body.strip_parens(expr);
        let is_number = matches!(body.expr(expr).kind, ExprKind::Literal(Literal::Int(_)));
        is_number && !body.expr(expr).from_macro && number(site, expr).as_deref() == Some(written)
    };
    let place = |expr: ExprId| site.place(body.expr(body.strip_parens(expr)).span);
    // What is left to look at, and whether it is divided by the threads of a block.
    let mut todo = vec![(grid, false)];
    while let Some((expr, divided)) = todo.pop() {
        match &body.expr(expr).kind {
            ExprKind::Paren(inner) => todo.push((*inner, divided)),
            ExprKind::Binary(BinOp::Div, dividend, divisor) => {
                let by_block = is(*divisor, value);
                if by_block {
                    found.push((place(*divisor), Number::Threads));
                }
                todo.push((*dividend, by_block));
            }
            ExprKind::Binary(BinOp::Add, left, right) => {
                let is_integer = |ty: String| ctype::is_integer(site.db, site.file, &ty);
                let one_less = match ctype::type_of(site, expr).is_some_and(is_integer) {
                    true => Number::OneLess,
                    false => Number::OneLessFirst,
                };
                for side in [*left, *right] {
                    match &less {
                        // `(last - first + 128) / 128`: one more than `last - first`, and rounded up.
                        Some(_) if divided && one_less == Number::OneLess && is(side, value) => {
                            found.push((place(side), Number::Threads));
                        }
                        // Only what is behind the sign can be told from the arguments of a call when it is taken back.
                        Some(_) if side == *left && one_less == Number::OneLessFirst => todo.push((side, divided)),
                        Some(less) if divided && is(side, less) => found.push((place(side), one_less)),
                        _ => todo.push((side, divided)),
                    }
                }
            }
            ExprKind::Binary(_, left, right) => todo.extend([(*left, false), (*right, false)]),
            ExprKind::Conditional { then, otherwise, .. } => todo.extend([(*then, false), (*otherwise, false)]),
            _ => {}
        }
    }
    found
}

/// The numbers that the variable begins with which is a launch's number of blocks.
fn grid_variable(launch: usize, site: &Site<'_>, value: &str) -> Vec<InVariable> {
    let body = &site.body;
    let operand = body.strip_parens(site.facts.grid.operand.expr);
    let ExprKind::Name(Name::Local(binding)) = &body.expr(operand).kind else {
        return Vec::new();
    };
    let initial = kept_value(site, *binding);
    let numbers = initial.map_or_else(Vec::new, |initial| numbers(site, one_dimension(site, initial), value));
    let variables = numbers
        .into_iter()
        .map(|(place, number)| InVariable { launch, place, number });
    variables.collect()
}

fn source(site: &Site<'_>, child: &Child<'_>) -> Option<Source> {
    let body = &site.body;
    let operand = body.strip_parens(site.facts.block.operand.expr);
    if site.facts.from_macro {
        return None;
    }
    if let Some(name) = constant(site, child, operand) {
        return Some(Source::Constant(name));
    }
    match body.expr(operand).kind {
        _ if body.expr(operand).from_macro => None,
        ExprKind::Literal(Literal::Int(_)) => Some(Source::Number(number(site, operand)?)),
        ExprKind::Name(Name::Local(binding)) => {
            let initial = one_dimension(site, kept_value(site, binding)?);
            if let Some(name) = constant(site, child, initial) {
                return Some(Source::Constant(name));
            }
            let expr = site.body.expr(initial);
            let is_number = matches!(expr.kind, ExprKind::Literal(Literal::Int(_))) && !expr.from_macro;
            is_number.then_some(())?;
            Some(Source::Variable(number(site, initial)?, site.place(expr.span)))
        }
        _ => None,
    }
}

/// The name of the program's constant that a block size is: a variable, or a macro that is a number.
fn constant(site: &Site<'_>, child: &Child<'_>, size: ExprId) -> Option<String> {
    let size = site.body.strip_parens(size);
    if site.body.expr(size).from_macro {
        let name = site.expr_source(size);
        let is_name = lex::identifiers(name).next() == Some(name) && is_seen_by(site, child.item, name);
        return (is_name && is_constant(site, name)).then(|| name.to_owned());
    }
    match &site.body.expr(size).kind {
        ExprKind::Name(Name::Other(name)) => is_seen_constant(site, child, name).then(|| name.clone()),
        _ => None,
    }
}

/// A number as it is written.
fn number(site: &Site<'_>, literal: ExprId) -> Option<String> {
    let written = site.expr_source(literal);
    written.bytes().all(|b| b.is_ascii_digit()).then(|| written.to_owned())
}

/// The one number that a `dim3` is made of: `dim3 block(128);`
fn one_dimension(site: &Site<'_>, initial: ExprId) -> ExprId {
    match &site.body.expr(initial).kind {
        ExprKind::Construct { ty, args } if unqualified(ty) == "dim3" => match args.as_slice() {
            [only] => *only,
            _ => initial,
        },
        _ => initial,
    }
}

/// Whether a name is that of a constant which the child's file sees where the child stands.
fn is_seen_constant(site: &Site<'_>, child: &Child<'_>, name: &str) -> bool {
    let Meaning::Global(global) = meaning(site.db, child.file, name) else {
        return false;
    };
    // One of that name, in a namespace around both.
    let is_around = |function: FunctionItem<'_>| {
        let of = function.name(site.db);
        global.scopes.iter().all(|scope| of.starts_with(scope))
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
        && global.scopes.len() <= 1
        && [child.item, site.parent].into_iter().all(is_around)
        && (in_front || !child.text.contains(name))
}
