//! The block size of a child that the host launches before anybody knows of what: it is a template argument there, and stands in the launch
//! as well. Whoever changes one of them alone gets a program that stops, so both name one constant, in each dimension; and so does the
//! number of blocks that is computed from it, as in `(count + 127) / 128`: with another block size it would be too few.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::{Meaning, meaning_in};
use gridfuse_analysis::hir::{BinOp, ExprId, ExprKind, Literal, Name};

use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::edit::names::{Names, camel};
use crate::edit::one_line::flat;
use crate::facts::child::Child;
use crate::facts::constant_macro::{is_constant, is_seen_by};
use crate::facts::ctype;
use crate::facts::kept_value::kept_value;
use crate::facts::qualified::qualified;
use crate::facts::site::Site;

/// What the comment of a constant that is declared begins with.
pub const COMMENT: &str = "// The threads of a block of";

/// Where the sizes of a child's block stand for its launches and for what runs them.
pub struct SharedBlock {
    /// In x, and in y and z as far as they are more than one.
    sizes: Vec<Size>,
    /// The numbers that variables of launches begin with and that new constants replace.
    variables: Vec<InVariable>,
}

/// One size of the block.
enum Size {
    /// A constant of the program's, or what is computed from such: the launches name it.
    Known(String),
    /// A new constant.
    New(New),
}

/// A constant that is to be declared.
struct New {
    /// Its name.
    name: String,
    /// Its value, as the program writes it.
    value: String,
    /// What the comment says of the dimension, where there are several: ` in x`.
    dimension: &'static str,
}

/// A number that a variable begins with: a block size, or what the grid size is computed from.
#[derive(Clone)]
struct InVariable {
    /// The launch that takes the variable.
    launch: usize,
    place: FileRange,
    number: Number,
    /// The dimension of which it is the size.
    dimension: usize,
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

/// Where a launch has a size of its block from.
enum Source {
    /// It is written there.
    Number(String, FileRange),
    /// A local variable begins with it.
    Variable(String, FileRange),
    /// A constant of the program's.
    Constant(String),
}

impl Source {
    /// What is written, and whether that is a number.
    fn written(&self) -> (&str, bool) {
        match self {
            Source::Number(written, _) | Source::Variable(written, _) => (written, true),
            Source::Constant(name) => (name, false),
        }
    }
}

impl SharedBlock {
    /// The constants for launches of a child, by the number of each; `None` where a size of its block isn't a number or a constant that is
    /// written in one way.
    pub fn of(sites: &[(usize, &Site<'_>)], child: &Child<'_>, names: &mut Names) -> Option<SharedBlock> {
        let all: Option<Vec<(usize, &Site<'_>, Vec<Source>)>> = sites
            .iter()
            .map(|(index, site)| Some((*index, *site, sources(site, child)?)))
            .collect();
        let all = all?;
        let (_, _, first) = all.first()?;
        let same = |sources: &[Source]| {
            sources.len() == first.len() && sources.iter().zip(first).all(|(a, b)| a.written() == b.written())
        };
        if !all.iter().all(|(_, _, sources)| same(sources)) {
            return None;
        }
        let mut variables: Vec<InVariable> = Vec::new();
        for (index, site, sources) in &all {
            for (dimension, source) in sources.iter().enumerate() {
                if let Source::Variable(_, place) = source {
                    variables.push(InVariable {
                        launch: *index,
                        place: *place,
                        number: Number::Threads,
                        dimension,
                    });
                }
                if let (value, true) = source.written() {
                    variables.extend(grid_variable(*index, site, dimension, value));
                }
            }
        }
        let mut known: Vec<FileRange> = Vec::new();
        variables.retain(|variable| {
            let is_new = !known.contains(&variable.place);
            known.push(variable.place);
            is_new
        });
        let several = first.len() > 1;
        let dimensions = [("X", " in x"), ("Y", " in y"), ("Z", " in z")];
        let size = |(source, (letter, dimension)): (&Source, (&str, &'static str))| match source.written() {
            // Of a dimension in which the block has one thread nobody speaks.
            ("1", true) if several => Size::Known("1".to_owned()),
            (written, false) => Size::Known(written.to_owned()),
            (value, true) => Size::New(New {
                name: names.fresh(&format!(
                    "k{}Block{}",
                    camel(&child.name),
                    if several { letter } else { "" }
                )),
                value: value.to_owned(),
                dimension: if several { dimension } else { "" },
            }),
        };
        let sizes: Vec<Size> = first.iter().zip(dimensions).map(size).collect();
        variables.retain(|variable| matches!(sizes.get(variable.dimension), Some(Size::New(_))));
        Some(SharedBlock { sizes, variables })
    }

    /// Whether variables are to begin with it.
    pub fn has_variables(&self) -> bool {
        !self.variables.is_empty()
    }

    /// Whether the constants for another group of launches are these, or would have the same values.
    pub fn is_like(&self, other: &SharedBlock) -> bool {
        let same = |(a, b): (&Size, &Size)| match (a, b) {
            (Size::Known(a), Size::Known(b)) => a == b,
            (Size::New(a), Size::New(b)) => a.value == b.value,
            _ => false,
        };
        self.sizes.len() == other.sizes.len() && self.sizes.iter().zip(&other.sizes).all(same)
    }

    /// Names the constants as those of another group, which declares them.
    pub fn take_names(&mut self, other: &SharedBlock) {
        for (own, of) in self.sizes.iter_mut().zip(&other.sizes) {
            if let (Size::New(own), Size::New(of)) = (own, of) {
                own.name.clone_from(&of.name);
            }
        }
    }

    /// The sizes as template arguments beside the child.
    pub fn sizes(&self) -> String {
        self.listed(|name| name.to_owned())
    }

    /// The same where a launch stands.
    pub fn sizes_at(&self, site: &Site<'_>, child: &Child<'_>) -> String {
        self.listed(|name| qualified(site, child, name))
    }

    /// The sizes in a list; `written`: how a new constant's name is. One of the program's is written as the launch writes it.
    fn listed(&self, written: impl Fn(&str) -> String) -> String {
        let sizes = self.sizes.iter().map(|size| match size {
            Size::Known(code) => code.clone(),
            Size::New(new) => written(&new.name),
        });
        sizes.collect::<Vec<_>>().join(", ")
    }

    /// The declarations, with an empty line below each, or nothing.
    pub fn declaration(&self, child: &Child<'_>) -> String {
        let new = self.sizes.iter().filter_map(|size| match size {
            Size::New(new) => Some(new),
            Size::Known(_) => None,
        });
        let declared = new.map(|New { name, value, dimension }| {
            format!(
                "{COMMENT} {}{dimension}, for its launches and for what runs them.\nconstexpr int {name} = {value};\n\n",
                child.name
            )
        });
        declared.collect()
    }

    /// The new constant for a dimension.
    fn new_constant(&self, dimension: usize) -> Option<&New> {
        match self.sizes.get(dimension)? {
            Size::New(new) => Some(new),
            Size::Known(_) => None,
        }
    }

    /// What a launch has in place of numbers that are written there.
    pub fn at_launch(&self, site: &Site<'_>, child: &Child<'_>) -> AtLaunch {
        let mut in_block = Vec::new();
        for (dimension, source) in sources(site, child).unwrap_or_default().iter().enumerate() {
            if let (Source::Number(_, place), Some(new)) = (source, self.new_constant(dimension)) {
                in_block.push((*place, Number::Threads, qualified(site, child, &new.name)));
            }
        }
        let mut in_grid = Vec::new();
        for (dimension, size) in components(site, site.facts.grid.operand.expr).into_iter().enumerate() {
            if let Some(new) = self.new_constant(dimension) {
                let name = qualified(site, child, &new.name);
                let found = numbers(site, size, &new.value).into_iter();
                in_grid.extend(found.map(|(place, number)| (place, number, name.clone())));
            }
        }
        AtLaunch {
            grid: with_names(site, site.facts.grid.operand.span, in_grid),
            block: with_names(site, site.facts.block.operand.span, in_block),
        }
    }

    /// Has the variables begin with the constants that launches take their block sizes from.
    pub fn name_in_variables<'a, 'db: 'a>(
        &self,
        site: impl Fn(usize) -> &'a Site<'db>,
        child: &Child<'_>,
        edit: &mut EditBuilder<'_>,
    ) {
        for variable in &self.variables {
            let Some(new) = self.new_constant(variable.dimension) else {
                continue;
            };
            let site = site(variable.launch);
            let name = qualified(site, child, &new.name);
            let text = variable.place.file.text(site.db);
            let before = text.get(..variable.place.range.start as usize).unwrap_or_default();
            edit.replace(variable.place, variable.number.named(&name, before));
        }
    }
}

/// The code of an operand of a launch with names in place of numbers; `None` where there are none.
fn with_names(site: &Site<'_>, operand: Span, mut numbers: Vec<(FileRange, Number, String)>) -> Option<String> {
    let whole = site.place(operand).range;
    let mut text = site.source(operand).to_owned();
    numbers.sort_by_key(|(place, ..)| std::cmp::Reverse(place.range.start));
    for (place, number, name) in &numbers {
        let start = place.range.start.checked_sub(whole.start)? as usize;
        let end = place.range.end.checked_sub(whole.start)? as usize;
        let named = number.named(name, text.get(..start)?);
        text.get(start..end)?;
        text.replace_range(start..end, &named);
    }
    (!numbers.is_empty()).then_some(text)
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

/// The numbers that the variable begins with which is a launch's number of blocks, in one dimension.
fn grid_variable(launch: usize, site: &Site<'_>, dimension: usize, value: &str) -> Vec<InVariable> {
    let body = &site.body;
    let operand = body.strip_parens(site.facts.grid.operand.expr);
    let ExprKind::Name(Name::Local(binding)) = &body.expr(operand).kind else {
        return Vec::new();
    };
    let sizes = kept_value(site, *binding).map_or_else(Vec::new, |initial| components(site, initial));
    let size = sizes.get(dimension);
    let numbers = size.map_or_else(Vec::new, |size| numbers(site, *size, value));
    let variables = numbers.into_iter().map(|(place, number)| InVariable {
        launch,
        place,
        number,
        dimension,
    });
    variables.collect()
}

/// Where a launch has the sizes of its block from, in x, and in y and z as far as they aren't written as 1.
fn sources(site: &Site<'_>, child: &Child<'_>) -> Option<Vec<Source>> {
    let body = &site.body;
    let operand = body.strip_parens(site.facts.block.operand.expr);
    if site.facts.from_macro {
        return None;
    }
    let (sizes, in_variable) = match body.expr(operand).kind {
        ExprKind::Name(Name::Local(binding)) => (components(site, kept_value(site, binding)?), true),
        _ => (components(site, operand), false),
    };
    let source = |size: &ExprId| {
        if let Some(name) = constant(site, child, *size) {
            return Some(Source::Constant(name));
        }
        let expr = body.expr(body.strip_parens(*size));
        let is_number = matches!(expr.kind, ExprKind::Literal(Literal::Int(_))) && !expr.from_macro;
        is_number.then_some(())?;
        let (written, place) = (number(site, body.strip_parens(*size))?, site.place(expr.span));
        Some(match in_variable {
            true => Source::Variable(written, place),
            false => Source::Number(written, place),
        })
    };
    let mut sources: Vec<Source> = sizes.iter().map(source).collect::<Option<_>>()?;
    while sources.len() > 1 && sources.last().is_some_and(|last| last.written() == ("1", true)) {
        sources.pop();
    }
    (!sources.is_empty()).then_some(sources)
}

/// A constant of the program's that a block size is, as the launch writes it: a variable, an enumerator, a macro that is a number, or what
/// is computed from these and from numbers.
fn constant(site: &Site<'_>, child: &Child<'_>, size: ExprId) -> Option<String> {
    let mut constants = 0;
    let mut todo = vec![size];
    while let Some(part) = todo.pop() {
        let part = site.body.strip_parens(part);
        let expr = site.body.expr(part);
        match &expr.kind {
            _ if expr.from_macro => {
                let name = site.expr_source(part);
                let is_name = lex::identifiers(name).next() == Some(name) && is_seen_by(site, child.item, name);
                (is_name && is_constant(site, name)).then_some(())?;
                constants += 1;
            }
            ExprKind::Name(Name::Other(name)) => {
                is_seen_constant(site, child, name).then_some(())?;
                constants += 1;
            }
            ExprKind::Literal(Literal::Int(_)) => {
                number(site, part)?;
            }
            ExprKind::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Rem, left, right) => {
                todo.extend([*left, *right]);
            }
            _ => return None,
        }
    }
    let written = site.expr_source(site.body.strip_parens(size));
    (constants > 0 && lex::comments(written).is_empty()).then(|| flat(written))
}

/// A number as it is written.
fn number(site: &Site<'_>, literal: ExprId) -> Option<String> {
    let written = site.expr_source(literal);
    written.bytes().all(|b| b.is_ascii_digit()).then(|| written.to_owned())
}

/// The sizes that a `dim3` is made of, `dim3 block(16, 16);`, or the one that is written.
fn components(site: &Site<'_>, size: ExprId) -> Vec<ExprId> {
    let size = site.body.strip_parens(size);
    match &site.body.expr(size).kind {
        ExprKind::Construct { ty, args } if unqualified(ty) == "dim3" && (1..=3).contains(&args.len()) => args.clone(),
        _ => vec![size],
    }
}

/// Whether a name is that of a constant which the child's file sees where the child stands, and which means the same there.
fn is_seen_constant(site: &Site<'_>, child: &Child<'_>, name: &str) -> bool {
    let in_front = child
        .text
        .get(..child.start as usize)
        .is_some_and(|front| front.contains(name));
    if name.contains(':') || !in_front && child.text.contains(name) {
        return false;
    }
    let scope = |function: FunctionItem<'_>| {
        let of = function.name(site.db);
        of.rsplit_once("::").map_or("", |(scope, _)| scope).to_owned()
    };
    // Not where a parameter of the child, or of its template, has that name.
    match meaning_in(site.db, child.item, name) {
        Meaning::Global(global) => {
            // One of that name, in a namespace around both.
            let is_around = |function: FunctionItem<'_>| {
                let of = function.name(site.db);
                global.scopes.iter().all(|scope| of.starts_with(scope))
            };
            let number = global
                .init
                .as_deref()
                .is_some_and(|init| init.trim().bytes().all(|b| b.is_ascii_digit()));
            global.constant
                && number
                && global.scopes.len() <= 1
                && [child.item, site.parent].into_iter().all(is_around)
        }
        Meaning::Enumerator(Some(_)) => scope(child.item) == scope(site.parent),
        _ => false,
    }
}
