//! What the names of a run specification stand for: numbers, graphs, contents of buffers.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::expression::{Argument, Expr, ExprKind, Mistake, Operator};
use super::npy::Npy;
use super::spec::{Definition, Spec};

/// Elements that a buffer may have at most, and edges of a graph: what is more is a slip of the pen.
const MOST_ELEMENTS: u64 = 1 << 33;

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// A floating point number.
    Float(f64),
}

impl Number {
    fn float(self) -> f64 {
        match self {
            Number::Int(number) => number as f64,
            Number::Float(number) => number,
        }
    }

    /// As a literal of C++.
    pub fn literal(self) -> String {
        match self {
            // There is no literal of the least number: it's the negation of one that is too large.
            Number::Int(i64::MIN) => "(-9223372036854775807LL - 1)".to_owned(),
            Number::Int(number) if i32::try_from(number).is_ok_and(|small| small != i32::MIN) => number.to_string(),
            Number::Int(number) => format!("{number}LL"),
            Number::Float(number) => format!("{number:?}"),
        }
    }
}

/// Kinds of graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphKind {
    /// A power law (R-MAT with 57, 19, 19 and 5 %): `degree` edges for each vertex, from anywhere to anywhere.
    Rmat,
    /// `degree` edges for each vertex, from anywhere to anywhere, all places alike.
    Uniform,
    /// A square grid with edges to the neighbours.
    Grid,
    /// The first vertex with edges to and from all others.
    Star,
    /// Every vertex has `degree` children.
    Tree,
}

const GRAPH_KINDS: &[(&str, GraphKind)] = &[
    ("rmat", GraphKind::Rmat),
    ("uniform", GraphKind::Uniform),
    ("grid", GraphKind::Grid),
    ("road", GraphKind::Grid),
    ("star", GraphKind::Star),
    ("tree", GraphKind::Tree),
];

/// A graph in compressed sparse rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Its kind.
    pub kind: GraphKind,
    /// Vertices.
    pub nodes: u64,
    /// Edges for each vertex, where the kind knows it.
    pub degree: u64,
    /// Of the random numbers.
    pub seed: i64,
}

impl Graph {
    /// Its edges.
    pub fn edges(&self) -> u64 {
        let nodes = self.nodes;
        match self.kind {
            GraphKind::Rmat | GraphKind::Uniform => nodes * self.degree,
            GraphKind::Star => 2 * nodes.saturating_sub(1),
            GraphKind::Tree => nodes.saturating_sub(1),
            GraphKind::Grid => {
                let side = nodes.isqrt().max(1);
                let (rows, rest) = (nodes / side, nodes % side);
                let across = rows * (side - 1) + rest.saturating_sub(1);
                2 * (across + nodes.saturating_sub(side))
            }
        }
    }

    /// The function of the generated program that makes it, with its arguments.
    pub fn constructor(&self) -> String {
        let Graph {
            kind,
            nodes,
            degree,
            seed,
        } = self;
        match kind {
            GraphKind::Rmat => format!("rmat({nodes}, {degree}, {seed})"),
            GraphKind::Uniform => format!("uniform({nodes}, {degree}, {seed})"),
            GraphKind::Grid => format!("grid({nodes})"),
            GraphKind::Star => format!("star({nodes})"),
            GraphKind::Tree => format!("tree({nodes}, {degree})"),
        }
    }
}

/// What a buffer holds before each launch.
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// All bits are zero.
    Zeros,
    /// The same number everywhere.
    Constant(Number),
    /// `start`, `start + step`, …
    Iota {
        /// The first.
        start: Number,
        /// From one to the next.
        step: Number,
    },
    /// Random numbers: integers from `low` to `high`, both of them included; floating point numbers below `high`.
    Random {
        /// Least.
        low: Number,
        /// Most.
        high: Number,
        /// `None`: the parameter's number.
        seed: Option<i64>,
    },
    /// Where each vertex's edges begin, and where the last ones end.
    Row(Graph),
    /// Where each edge leads.
    Col(Graph),
    /// A file.
    File(PathBuf, Npy),
}

/// A buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// What it holds.
    pub fill: Fill,
    /// Elements.
    pub count: u64,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(Number),
    /// `dim3(x, y, z)`
    Dim([i64; 3]),
    /// A graph, of which `.row`, `.col`, `.nodes` and `.edges` can be asked.
    Graph(Graph),
    /// Memory.
    Buffer(Buffer),
    /// A null pointer.
    Null,
    /// C++ that is taken as it is.
    Code(String),
}

impl Value {
    /// In words.
    pub fn what(&self) -> &'static str {
        match self {
            Value::Number(Number::Int(_)) => "an integer",
            Value::Number(Number::Float(_)) => "a floating point number",
            Value::Dim(_) => "a size in three dimensions",
            Value::Graph(_) => "a graph",
            Value::Buffer(_) => "a buffer",
            Value::Null => "a null pointer",
            Value::Code(_) => "code",
        }
    }
}

/// Evaluates the expressions of a specification.
pub struct Evaluator<'a> {
    definitions: BTreeMap<&'a str, &'a Definition>,
    /// Where the names of files count from.
    directory: &'a Path,
    /// Names whose value is being found out: none may need itself.
    open: RefCell<Vec<String>>,
    /// Names whose value was asked for.
    used: RefCell<BTreeSet<String>>,
}

impl<'a> Evaluator<'a> {
    /// For a specification.
    pub fn new(spec: &'a Spec, directory: &'a Path) -> Result<Self, Mistake> {
        let mut definitions: BTreeMap<&str, &Definition> = BTreeMap::new();
        for definition in spec
            .definitions
            .iter()
            .filter(|definition| definition.element.is_none())
        {
            if definitions.insert(&definition.name, definition).is_some() {
                let message = format!("`{}` is defined twice", definition.name);
                return Err(Mistake::new(definition.at, message));
            }
        }
        Ok(Evaluator {
            definitions,
            directory,
            open: RefCell::new(Vec::new()),
            used: RefCell::new(BTreeSet::new()),
        })
    }

    /// Whether anybody has asked for the value of a name.
    pub fn is_used(&self, name: &str) -> bool {
        self.used.borrow().contains(name)
    }

    /// What a name is defined as; `None`: it isn't.
    pub fn named(&self, name: &str) -> Option<Result<Value, Mistake>> {
        let definition = self.definitions.get(name)?;
        if self.open.borrow().iter().any(|open| open == name) {
            let message = format!("`{name}` is defined by itself");
            return Some(Err(Mistake::new(definition.at, message)));
        }
        self.used.borrow_mut().insert(name.to_owned());
        self.open.borrow_mut().push(name.to_owned());
        let value = self.value(&definition.value);
        self.open.borrow_mut().pop();
        Some(value)
    }

    /// The value of an expression.
    pub fn value(&self, expr: &Expr) -> Result<Value, Mistake> {
        match &expr.kind {
            ExprKind::Int(number) => Ok(Value::Number(Number::Int(*number))),
            ExprKind::Float(number) => Ok(Value::Number(Number::Float(*number))),
            ExprKind::Text(_) => Err(Mistake::new(expr.at, "a text stands only for a file: npy(\"x.npy\")")),
            ExprKind::Code(code) => Ok(Value::Code(code.clone())),
            ExprKind::Name(name) if name == "nullptr" => Ok(Value::Null),
            ExprKind::Name(name) => match self.named(name) {
                Some(value) => value,
                None => Err(Mistake::new(
                    expr.at,
                    format!("nothing says what `{name}` is: add `{name} = …`"),
                )),
            },
            ExprKind::Member(of, member) => self.member(of, member),
            ExprKind::Negate(inner) => match self.number(inner)? {
                Number::Int(number) => match number.checked_neg() {
                    Some(number) => Ok(Value::Number(Number::Int(number))),
                    None => Err(Mistake::new(expr.at, "this doesn't fit into 64 bits")),
                },
                Number::Float(number) => Ok(Value::Number(Number::Float(-number))),
            },
            ExprKind::Binary(operator, left, right) => {
                let (left, right) = (self.number(left)?, self.number(right)?);
                calculate(*operator, left, right)
                    .map(Value::Number)
                    .map_err(|message| Mistake::new(expr.at, message))
            }
            ExprKind::Call { name, arguments } => self.call(expr.at, name, arguments),
        }
    }

    fn number(&self, expr: &Expr) -> Result<Number, Mistake> {
        match self.value(expr)? {
            Value::Number(number) => Ok(number),
            other => Err(Mistake::new(
                expr.at,
                format!("expected a number, not {}", other.what()),
            )),
        }
    }

    /// The value of an expression that has to be an integer.
    pub fn integer(&self, expr: &Expr) -> Result<i64, Mistake> {
        match self.number(expr)? {
            Number::Int(number) => Ok(number),
            Number::Float(number) => Err(Mistake::new(expr.at, format!("expected an integer, not {number}"))),
        }
    }

    fn count(&self, expr: &Expr) -> Result<u64, Mistake> {
        let number = self.integer(expr)?;
        match u64::try_from(number) {
            Ok(count) if (1..=MOST_ELEMENTS).contains(&count) => Ok(count),
            _ => Err(Mistake::new(
                expr.at,
                format!("{number} is no number of elements: it must be from 1 to {MOST_ELEMENTS}"),
            )),
        }
    }

    /// The value of an expression as a size in three dimensions.
    pub fn dim(&self, expr: &Expr) -> Result<[i64; 3], Mistake> {
        match self.value(expr)? {
            Value::Dim(dim) => Ok(dim),
            Value::Number(Number::Int(x)) => Ok([x, 1, 1]),
            other => Err(Mistake::new(
                expr.at,
                format!("expected a number or dim3(x, y, z), not {}", other.what()),
            )),
        }
    }

    fn member(&self, of: &Expr, member: &str) -> Result<Value, Mistake> {
        let graph = match self.value(of)? {
            Value::Graph(graph) => graph,
            Value::Buffer(buffer) if member == "size" => {
                return Ok(Value::Number(Number::Int(buffer.count.cast_signed())));
            }
            other => {
                return Err(Mistake::new(of.at, format!("{} has no `.{member}`", other.what())));
            }
        };
        Ok(match member {
            "row" => Value::Buffer(Buffer {
                count: graph.nodes + 1,
                fill: Fill::Row(graph),
            }),
            "col" => Value::Buffer(Buffer {
                count: graph.edges(),
                fill: Fill::Col(graph),
            }),
            "nodes" => Value::Number(Number::Int(graph.nodes.cast_signed())),
            "edges" => Value::Number(Number::Int(graph.edges().cast_signed())),
            _ => {
                let message = format!("a graph has .row, .col, .nodes and .edges, but no `.{member}`");
                return Err(Mistake::new(of.at, message));
            }
        })
    }

    fn call(&self, at: usize, name: &str, arguments: &[Argument]) -> Result<Value, Mistake> {
        let take =
            |names: &'static [&'static str], least: usize| Arguments::new(self, at, name, arguments, names, least);
        let buffer = |count: u64, fill: Fill| Ok(Value::Buffer(Buffer { fill, count }));
        match name {
            "zeros" => {
                let given = take(&["count"], 1)?;
                buffer(given.count(0)?, Fill::Zeros)
            }
            "fill" => {
                let given = take(&["count", "value"], 2)?;
                let value = given.number(1)?.unwrap_or(Number::Int(0));
                buffer(given.count(0)?, Fill::Constant(value))
            }
            "iota" => {
                let given = take(&["count", "start", "step"], 1)?;
                let start = given.number(1)?.unwrap_or(Number::Int(0));
                let step = given.number(2)?.unwrap_or(Number::Int(1));
                buffer(given.count(0)?, Fill::Iota { start, step })
            }
            "random" => {
                let given = take(&["count", "low", "high", "seed"], 3)?;
                let low = given.number(1)?.unwrap_or(Number::Int(0));
                let high = given.number(2)?.unwrap_or(Number::Int(1));
                if low.float() > high.float() {
                    let message = format!("nothing lies from {} to {}", low.literal(), high.literal());
                    return Err(Mistake::new(at, message));
                }
                let seed = given.integer(3)?;
                buffer(given.count(0)?, Fill::Random { low, high, seed })
            }
            "csr" => self.graph(at, arguments),
            "npy" => self.file(at, arguments),
            "dim3" => {
                let given = take(&["x", "y", "z"], 1)?;
                let side = |index: usize| Ok::<_, Mistake>(given.integer(index)?.unwrap_or(1));
                Ok(Value::Dim([side(0)?, side(1)?, side(2)?]))
            }
            "min" | "max" => {
                let given = take(&["a", "b"], 2)?;
                let zero = Number::Int(0);
                let (a, b) = (given.number(0)?.unwrap_or(zero), given.number(1)?.unwrap_or(zero));
                Ok(Value::Number(if (a.float() < b.float()) == (name == "min") {
                    a
                } else {
                    b
                }))
            }
            _ => Err(Mistake::new(
                at,
                format!(
                    "`{name}` isn't known: there are zeros, fill, iota, random, csr, npy, dim3, min, max, and code(…) for C++ of \
                     your own"
                ),
            )),
        }
    }

    fn graph(&self, at: usize, arguments: &[Argument]) -> Result<Value, Mistake> {
        let kinds = || GRAPH_KINDS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let (first, rest) = arguments
            .split_first()
            .ok_or_else(|| Mistake::new(at, format!("csr(KIND, vertices) needs a kind: {}", kinds())))?;
        let written = match &first.value.kind {
            ExprKind::Name(name) => name.as_str(),
            _ => "",
        };
        let kind = GRAPH_KINDS
            .iter()
            .find(|(name, _)| *name == written)
            .map(|(_, kind)| *kind);
        let kind =
            kind.ok_or_else(|| Mistake::new(first.value.at, format!("expected a kind of graph: {}", kinds())))?;
        let given = Arguments::new(self, at, "csr", rest, &["nodes", "degree", "seed"], 1)?;
        let nodes = given.count(0)?;
        let degree = match (kind, given.integer(1)?) {
            (GraphKind::Rmat | GraphKind::Uniform, None) => 16,
            (GraphKind::Tree, None) => 2,
            (GraphKind::Rmat | GraphKind::Uniform | GraphKind::Tree, Some(degree)) => u64::try_from(degree)
                .ok()
                .filter(|degree| *degree > 0)
                .ok_or_else(|| Mistake::new(at, format!("{degree} is no number of edges of a vertex")))?,
            (GraphKind::Grid | GraphKind::Star, None) => 1,
            (GraphKind::Grid | GraphKind::Star, Some(_)) => {
                return Err(Mistake::new(
                    at,
                    format!("a graph of kind `{written}` has no degree to choose"),
                ));
            }
        };
        if nodes.checked_mul(degree).is_none_or(|edges| edges > MOST_ELEMENTS) {
            return Err(Mistake::new(
                at,
                format!("{nodes} vertices of degree {degree} are too many"),
            ));
        }
        let graph = Graph {
            kind,
            nodes,
            degree,
            seed: given.integer(2)?.unwrap_or(1),
        };
        if graph.edges() == 0 {
            return Err(Mistake::new(at, "this graph has no edges: give it more vertices"));
        }
        Ok(Value::Graph(graph))
    }

    fn file(&self, at: usize, arguments: &[Argument]) -> Result<Value, Mistake> {
        let [
            Argument {
                value:
                    Expr {
                        kind: ExprKind::Text(name),
                        at: place,
                    },
                ..
            },
        ] = arguments
        else {
            return Err(Mistake::new(at, "npy takes the name of a file: npy(\"x.npy\")"));
        };
        let path = crate::files::normalize(&self.directory.join(name));
        let npy =
            Npy::read(&path).map_err(|why| Mistake::new(*place, format!("{} can't be read: {why}", path.display())))?;
        if npy.count == 0 {
            return Err(Mistake::new(*place, format!("{} holds nothing", path.display())));
        }
        Ok(Value::Buffer(Buffer {
            count: npy.count,
            fill: Fill::File(path, npy),
        }))
    }
}

/// The arguments of a call, in the order of the parameters.
struct Arguments<'a> {
    evaluator: &'a Evaluator<'a>,
    at: usize,
    values: Vec<Option<&'a Expr>>,
}

impl<'a> Arguments<'a> {
    fn new(
        evaluator: &'a Evaluator<'a>,
        at: usize,
        call: &str,
        given: &'a [Argument],
        names: &'static [&'static str],
        least: usize,
    ) -> Result<Self, Mistake> {
        let mut values: Vec<Option<&Expr>> = vec![None; names.len()];
        let usage = || format!("{call}({})", names.join(", "));
        for (index, argument) in given.iter().enumerate() {
            let place = match &argument.name {
                None => Some(index),
                Some(name) => names.iter().position(|known| known == name),
            };
            match place.and_then(|place| values.get_mut(place)) {
                Some(place @ None) => *place = Some(&argument.value),
                Some(Some(_)) => return Err(Mistake::new(argument.value.at, format!("given twice: {}", usage()))),
                None => return Err(Mistake::new(argument.value.at, format!("it takes {}", usage()))),
            }
        }
        if values.iter().take(least).any(Option::is_none) {
            return Err(Mistake::new(at, format!("something is missing: {}", usage())));
        }
        Ok(Arguments { evaluator, at, values })
    }

    fn expr(&self, index: usize) -> Option<&'a Expr> {
        self.values.get(index).copied().flatten()
    }

    fn number(&self, index: usize) -> Result<Option<Number>, Mistake> {
        self.expr(index).map(|expr| self.evaluator.number(expr)).transpose()
    }

    fn integer(&self, index: usize) -> Result<Option<i64>, Mistake> {
        self.expr(index).map(|expr| self.evaluator.integer(expr)).transpose()
    }

    fn count(&self, index: usize) -> Result<u64, Mistake> {
        match self.expr(index) {
            Some(expr) => self.evaluator.count(expr),
            None => Err(Mistake::new(self.at, "the number of elements is missing")),
        }
    }
}

fn calculate(operator: Operator, left: Number, right: Number) -> Result<Number, String> {
    let (Number::Int(a), Number::Int(b)) = (left, right) else {
        let (a, b) = (left.float(), right.float());
        let result = match operator {
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a * b,
            Operator::Divide => a / b,
            Operator::Remainder | Operator::ShiftLeft | Operator::ShiftRight => {
                return Err("this is for integers only".to_owned());
            }
        };
        return match result.is_finite() {
            true => Ok(Number::Float(result)),
            false => Err("this is no finite number".to_owned()),
        };
    };
    let shift = u32::try_from(b).ok();
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide | Operator::Remainder if b == 0 => return Err("this divides by zero".to_owned()),
        Operator::Divide => a.checked_div(b),
        Operator::Remainder => a.checked_rem(b),
        Operator::ShiftLeft => shift
            .and_then(|shift| 1i64.checked_shl(shift))
            .filter(|power| *power > 0)
            .and_then(|power| a.checked_mul(power)),
        Operator::ShiftRight => shift.and_then(|shift| a.checked_shr(shift)),
    };
    result
        .map(Number::Int)
        .ok_or_else(|| "this doesn't fit into 64 bits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic() {
        let int = |a: i64, operator: Operator, b: i64| calculate(operator, Number::Int(a), Number::Int(b));
        assert_eq!(int(7, Operator::Divide, 2), Ok(Number::Int(3)));
        assert_eq!(int(1, Operator::ShiftLeft, 14), Ok(Number::Int(16384)));
        for (a, operator, b) in [
            (1, Operator::Divide, 0),
            (i64::MIN, Operator::Divide, -1),
            (i64::MAX, Operator::Add, 1),
            (1, Operator::ShiftLeft, 63),
            (1, Operator::ShiftLeft, -1),
        ] {
            assert!(int(a, operator, b).is_err(), "{a} {operator:?} {b}");
        }
        assert!(calculate(Operator::Divide, Number::Float(1.0), Number::Int(0)).is_err());
    }

    #[test]
    fn edges_of_grids() {
        let edges = |nodes: u64| {
            Graph {
                kind: GraphKind::Grid,
                nodes,
                degree: 1,
                seed: 1,
            }
            .edges()
        };
        // Of 2 by 2; of 3 by 3; with one and two more in a last row.
        assert_eq!([edges(1), edges(4), edges(9), edges(10), edges(11)], [0, 8, 24, 26, 30]);
    }

    #[test]
    fn literals() {
        let literals = [5, -5, i64::from(i32::MIN), 3_000_000_000, i64::MIN].map(|n| Number::Int(n).literal());
        assert_eq!(
            literals,
            [
                "5",
                "-5",
                "-2147483648LL",
                "3000000000LL",
                "(-9223372036854775807LL - 1)"
            ]
        );
        assert_eq!(Number::Float(1.0).literal(), "1.0");
    }
}
