//! A CUDA program as a tree: what the generator makes, the printer prints and the shrinker takes apart.
//!
//! The tree knows nothing of types: that a program is well-formed is the generator's care, and the shrinker asks a compiler.

use std::collections::{BTreeMap, BTreeSet};

/// A program of one or more files.
#[derive(Clone, Debug)]
pub struct Program {
    /// Everything at namespace scope, in order.
    pub items: Vec<Item>,
    /// The items before each of these indices stand in a header of their own, which the next file includes.
    pub cuts: Vec<usize>,
    /// How it is written.
    pub layout: Layout,
    /// What is special about it, for statistics.
    pub features: BTreeSet<&'static str>,
    /// Sites whose grids rely on an order that the stream gives them: what a rewrite assumes about them is false.
    pub ordered_sites: BTreeSet<u32>,
    /// Kernels whose blocks have two dimensions, which stands in the program: nothing may assume that they have one.
    pub two_dimensional: BTreeSet<String>,
    /// It has directives or words that the compiler knows and the grammar doesn't.
    pub beyond_the_grammar: bool,
    /// Files that the compiler finds and gridfuse doesn't: their texts by name.
    pub unfound: BTreeMap<String, String>,
    /// How often kernels wait for their children, as they could before CUDA 12.
    pub waits: usize,
}

/// Habits of whoever wrote the text.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// One level of indentation.
    pub indent: &'static str,
    /// Braces on lines of their own.
    pub allman: bool,
    /// `\r\n`
    pub crlf: bool,
    /// What precedes names of headers other than the main file: `kernels.cuh` or `kernels.cu`.
    pub header_suffix: &'static str,
}

/// Something at namespace scope.
#[derive(Clone, Debug)]
pub enum Item {
    /// A macro, a type, a variable, a helper whose inside doesn't matter.
    Text(String),
    /// A function or a kernel.
    Function(Function),
}

/// A function or a kernel.
#[derive(Clone, Debug)]
pub struct Function {
    /// `template <int N>`, or nothing.
    pub template: Option<String>,
    /// What stands before the name: `static __global__ void`.
    pub head: String,
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Its statements.
    pub body: Vec<Stmt>,
}

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its type: `const int* __restrict__`.
    pub ty: String,
    /// Its name.
    pub name: String,
    /// Its default argument.
    pub default: Option<String>,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A literal or a name.
    Atom(String),
    /// `-x`, `!x`, `&x`, `*x`, `++x`
    Unary(&'static str, Box<Expr>),
    /// `x++`
    Postfix(&'static str, Box<Expr>),
    /// `x + y`, assignments and the comma included.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// `c ? x : y`
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `x[y]`
    Index(Box<Expr>, Box<Expr>),
    /// `x.y`
    Member(Box<Expr>, String),
    /// `f(x, y)`, `T(x)`, `f<3>(x)`
    Call(String, Vec<Expr>),
    /// `(int)x`
    Cast(String, Box<Expr>),
    /// `T{x, y}`
    Braces(String, Vec<Expr>),
    /// A launch inside an expression.
    Launch(Box<Launch>),
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// `int x = y;`
    Declare {
        /// The type.
        ty: String,
        /// The name.
        name: String,
        /// `x = y`
        init: Option<Expr>,
    },
    /// `dim3 x(y, z);`
    Construct {
        /// The type.
        ty: String,
        /// The name.
        name: String,
        /// The constructor's arguments.
        args: Vec<Expr>,
    },
    /// `x;`
    Expr(Expr),
    /// `if (x) … else …`
    If {
        /// The condition.
        cond: Expr,
        /// What is done when it holds.
        then: Vec<Stmt>,
        /// What is done when not; a single `if` makes a chain.
        otherwise: Vec<Stmt>,
        /// Braces though one statement needs none.
        braces: bool,
    },
    /// `for (a; b; c) …`
    For {
        /// The declaration: type, name, first value.
        init: (String, String, Expr),
        /// The condition.
        cond: Expr,
        /// The step.
        step: Expr,
        /// The body.
        body: Vec<Stmt>,
        /// Braces though one statement needs none.
        braces: bool,
        /// A `#pragma unroll` in front of it.
        unroll: bool,
    },
    /// `while (x) …`
    While {
        /// The condition.
        cond: Expr,
        /// The body.
        body: Vec<Stmt>,
    },
    /// `do … while (x);`
    DoWhile {
        /// The body.
        body: Vec<Stmt>,
        /// The condition.
        cond: Expr,
    },
    /// `switch (x) { case 0: … }`
    Switch {
        /// The value.
        on: Expr,
        /// The cases (`None`: default) with their statements, `break` included where there is one.
        cases: Vec<(Option<i64>, Vec<Stmt>)>,
    },
    /// `{ … }`
    Block(Vec<Stmt>),
    /// `return;`, `break;`, `continue;`, `again:`, a comment, a directive: printed as it is.
    Text(String),
    /// `return x;`
    Return(Expr),
    /// A launch as a statement.
    Launch(Launch),
}

/// `kernel<<<…>>>(…)`
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// What identifies it, whatever happens to the text around it; 0 for launches by the host.
    pub site: u32,
    /// The kernel, with template arguments.
    pub kernel: String,
    /// Grid size, block size, shared memory, stream.
    pub config: Vec<Expr>,
    /// The arguments.
    pub args: Vec<Expr>,
    /// How it is written.
    pub form: LaunchForm,
}

/// How a launch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchForm {
    /// `k<<<g, b>>>(x)`
    Plain,
    /// `k<< <g, b>> >(x)`
    Spaced,
    /// An argument a line.
    Broken,
    /// With comments between the arguments.
    Commented,
}

/// A name, or a literal.
pub fn atom(text: impl Into<String>) -> Expr {
    Expr::Atom(text.into())
}

/// A number.
pub fn int(value: i64) -> Expr {
    if value < 0 {
        Expr::Unary("-", Box::new(atom((-value).to_string())))
    } else {
        atom(value.to_string())
    }
}

/// `x op y`
pub fn binary(x: Expr, op: &'static str, y: Expr) -> Expr {
    Expr::Binary(op, Box::new(x), Box::new(y))
}

/// `op x`
pub fn unary(op: &'static str, x: Expr) -> Expr {
    Expr::Unary(op, Box::new(x))
}

/// `x[y]`
pub fn index(x: Expr, y: Expr) -> Expr {
    Expr::Index(Box::new(x), Box::new(y))
}

/// `x.y`
pub fn member(x: Expr, y: &str) -> Expr {
    Expr::Member(Box::new(x), y.to_owned())
}

/// `f(…)`
pub fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Call(name.to_owned(), args)
}

/// `(ty)x`
pub fn cast(ty: &str, x: Expr) -> Expr {
    Expr::Cast(ty.to_owned(), Box::new(x))
}

/// `c ? x : y`
pub fn conditional(c: Expr, x: Expr, y: Expr) -> Expr {
    Expr::Conditional(Box::new(c), Box::new(x), Box::new(y))
}

/// `x = y;`
pub fn assign(x: Expr, op: &'static str, y: Expr) -> Stmt {
    Stmt::Expr(binary(x, op, y))
}

/// `ty name = init;`
pub fn declare(ty: &str, name: &str, init: Expr) -> Stmt {
    Stmt::Declare {
        ty: ty.to_owned(),
        name: name.to_owned(),
        init: Some(init),
    }
}

/// `if (cond) …`
pub fn when(cond: Expr, then: Vec<Stmt>) -> Stmt {
    Stmt::If {
        cond,
        then,
        otherwise: Vec::new(),
        braces: true,
    }
}

/// A statement that is printed as it is.
pub fn text(line: &str) -> Stmt {
    Stmt::Text(line.to_owned())
}
