//! The data types of a lowered body.

use crate::base::span::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Index of an expression in [`Body::exprs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue)]
pub struct ExprId(pub u32);

/// Index of a statement in [`Body::stmts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue)]
pub struct StmtId(pub u32);

/// Index of a parameter or local variable in [`Body::bindings`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue)]
pub struct BindingId(pub u32);

/// The lowered body of one function.
#[derive(Clone, Debug, Default, PartialEq, salsa::SalsaValue)]
pub struct Body {
    /// Parameters in order; each is a binding of storage [`Storage::Param`].
    pub params: Vec<BindingId>,
    /// Parameters and local variables.
    pub bindings: Vec<Binding>,
    /// All expressions; children come before parents.
    pub exprs: Vec<Expr>,
    /// All statements.
    pub stmts: Vec<Stmt>,
    /// The compound statement of the body; `None` for a declaration without body.
    pub root: Option<StmtId>,
    /// The launch expressions in source order (`ExprKind::Launch`).
    pub launches: Vec<ExprId>,
    /// Places inside the function that could not be understood (syntax errors, unknown constructs), with a short reason.
    pub problems: Vec<(Span, String)>,
    /// An `#if` that isn't decided cuts through a construct: one of its branches is what the body shows, and another one may be what
    /// is compiled. What holds in any case isn't known then.
    pub cut: bool,
    /// The names that the function declares for itself beside its variables: types, aliases, enumerators, what `using` brings in.
    pub declared: BTreeSet<String>,
    /// Those of them that are classes, aliases or enumerations, and whether they may be more than a number.
    pub own_types: BTreeMap<String, bool>,
    /// It opens a namespace (`using namespace n;`): from there on names may mean what stands in that.
    pub opens_namespace: bool,
}

impl Body {
    /// The expression with this id.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.0 as usize]
    }

    /// The statement with this id.
    pub fn stmt(&self, id: StmtId) -> &Stmt {
        &self.stmts[id.0 as usize]
    }

    /// The binding with this id.
    pub fn binding(&self, id: BindingId) -> &Binding {
        &self.bindings[id.0 as usize]
    }

    /// The expression without surrounding parentheses.
    pub fn strip_parens(&self, mut id: ExprId) -> ExprId {
        while let ExprKind::Paren(inner) = self.expr(id).kind {
            id = inner;
        }
        id
    }
}

/// A parameter or a local variable.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct Binding {
    /// Its name; empty for an unnamed parameter.
    pub name: String,
    /// Its declared type.
    pub ty: Type,
    /// Where it lives.
    pub storage: Storage,
    /// Span of the name.
    pub span: Span,
    /// Span of the whole declaration (parameter declaration, or the declaration statement).
    pub decl_span: Span,
    /// The default argument of a parameter.
    pub default: Option<Span>,
}

/// Where a binding lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum Storage {
    /// Parameter of the function (also of a lambda: then it is not in `Body::params`).
    Param,
    /// Automatic variable of a thread.
    Local,
    /// `__shared__` variable.
    Shared,
    /// `extern __shared__` array: dynamic shared memory.
    ExternShared,
    /// `static` local variable.
    Static,
}

/// A type as written, with the facts that analyses ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub struct Type {
    /// The type as written, without the declarator's `*`, `&` and `[]`: `const unsigned int`, `std::vector<int>`, `auto`.
    pub text: String,
    /// The same without cv-qualifiers and storage words: `unsigned int`.
    pub base: String,
    /// Number of `*` in the declarator.
    pub pointers: u8,
    /// `&` or `&&`.
    pub reference: bool,
    /// Array extents in order; `None` for `[]` or an extent that isn't an expression.
    pub array: Vec<Option<ExprId>>,
    /// The base type is `const`: `const int* p` points at constant ints, `const int n` is constant.
    pub const_base: bool,
    /// The outermost pointer is itself `const`: `int* const p`.
    pub const_pointer: bool,
    /// `volatile` anywhere.
    pub volatile: bool,
    /// `__restrict__`.
    pub restrict: bool,
    /// A function pointer, a member pointer or another declarator that is not understood.
    pub complex: bool,
}

impl Type {
    /// Neither pointer, reference nor array.
    pub fn is_value(&self) -> bool {
        self.pointers == 0 && !self.reference && self.array.is_empty() && !self.complex
    }

    /// A plain pointer or an array (which decays to one).
    pub fn is_pointer_like(&self) -> bool {
        self.pointers > 0 || !self.array.is_empty()
    }

    /// The whole type as it would be written for a struct field or a cast, for example `const int*`.
    /// Arrays and complex declarators are not covered.
    pub fn spelled(&self) -> String {
        let mut text = self.text.clone();
        for _ in 0..self.pointers {
            text.push('*');
        }
        // What is complex may be no reference.
        if self.reference && !self.complex {
            text.push('&');
        }
        text
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its source. An expression that comes out of an expanded macro carries the span of the macro's use.
    pub span: Span,
    /// Is, or begins or ends within, what comes out of a macro: text at `span` is the macro's use, not this expression.
    pub from_macro: bool,
}

/// CUDA's built-in variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, salsa::SalsaValue)]
pub enum Builtin {
    /// `threadIdx`
    ThreadIdx,
    /// `blockIdx`
    BlockIdx,
    /// `blockDim`
    BlockDim,
    /// `gridDim`
    GridDim,
    /// `warpSize`
    WarpSize,
}

/// What an identifier refers to, as far as the function alone tells.
#[derive(Clone, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
pub enum Name {
    /// A parameter or local variable.
    Local(BindingId),
    /// A built-in variable that isn't shadowed.
    Builtin(Builtin),
    /// Anything else, possibly qualified (`ns::x`): a global, a function, an enumerator, a template parameter, a macro.
    /// Ask [`crate::hir::resolve`].
    Other(String),
}

/// A literal.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub enum Literal {
    /// Integer or character, where it fits.
    Int(i128),
    /// Floating point, as written.
    Float(String),
    /// `true`, `false`.
    Bool(bool),
    /// String.
    Str,
    /// `nullptr`, `NULL`.
    Null,
}

/// Binary operators (assignment operators carry one, too).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
#[allow(missing_docs)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Shl,
    Shr,
    BitAnd,
    BitOr,
    BitXor,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Unary operators without side effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, salsa::SalsaValue)]
#[allow(missing_docs)]
pub enum UnOp {
    Neg,
    Plus,
    Not,
    BitNot,
}

/// A kernel launch `callee<<<grid, block, shared, stream>>>(args)`.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct Launch {
    /// The callee expression (a `Name::Other` for a plain kernel name).
    pub callee: ExprId,
    /// The kernel's name without template arguments and without parentheses (`ns::child`); `None` for a computed callee.
    pub kernel: Option<String>,
    /// Span of the name alone.
    pub name_span: Span,
    /// Template arguments including the angle brackets, where there are any.
    pub template_args: Option<Span>,
    /// Span of `<<<…>>>` including the brackets.
    pub config_span: Span,
    /// Config expressions: grid, block, then shared memory and stream where given. Normally 2 to 4.
    pub config: Vec<ExprId>,
    /// Arguments.
    pub args: Vec<ExprId>,
    /// Span of the argument list including its parentheses.
    pub args_span: Span,
    /// It stands in a lambda, so nothing is known about when it runs.
    pub in_lambda: bool,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub enum ExprKind {
    /// A literal.
    Literal(Literal),
    /// An identifier.
    Name(Name),
    /// `(inner)`
    Paren(ExprId),
    /// `-x`, `!x`, `~x`, `+x`
    Unary(UnOp, ExprId),
    /// `x + y` and so on; no side effect of its own.
    Binary(BinOp, ExprId, ExprId),
    /// `x && y` (`and == true`) or `x || y`: the right side is evaluated conditionally.
    Logical {
        /// `&&` rather than `||`.
        and: bool,
        /// Always evaluated.
        lhs: ExprId,
        /// Evaluated only when the left side doesn't decide.
        rhs: ExprId,
    },
    /// `c ? t : e`
    Conditional {
        /// The condition.
        cond: ExprId,
        /// Value when true.
        then: ExprId,
        /// Value when false.
        otherwise: ExprId,
    },
    /// `x, y`
    Comma(ExprId, ExprId),
    /// `place = value` or `place op= value`.
    Assign {
        /// The operator of a compound assignment.
        op: Option<BinOp>,
        /// What is written.
        place: ExprId,
        /// The value.
        value: ExprId,
    },
    /// `++x`, `x++`, `--x`, `x--`
    IncDec {
        /// What is changed.
        place: ExprId,
        /// `++` rather than `--`.
        increment: bool,
        /// The value is the one after the change.
        prefix: bool,
    },
    /// `*p`
    Deref(ExprId),
    /// `&x`
    AddrOf(ExprId),
    /// `base.field` or `base->field`
    Field {
        /// The object, or the pointer to it.
        base: ExprId,
        /// Name of the field or member function.
        field: String,
        /// `->`
        arrow: bool,
    },
    /// `base[index]` (the first index of several).
    Index {
        /// Array or pointer.
        base: ExprId,
        /// Index.
        index: ExprId,
    },
    /// `callee(args)`, also `T(x)` for a name that may be a type: a function call unless `Construct` was certain.
    Call {
        /// The callee.
        callee: ExprId,
        /// Name of a plain or qualified callee without template arguments.
        name: Option<String>,
        /// Template arguments including the angle brackets.
        template_args: Option<Span>,
        /// The arguments.
        args: Vec<ExprId>,
    },
    /// `dim3(x, y)`, `int(x)`, `T{x}` and declarations such as `dim3 g(x, y)`: certain to be a construction.
    Construct {
        /// The type as written.
        ty: String,
        /// The arguments.
        args: Vec<ExprId>,
    },
    /// `{a, b}`
    InitList(Vec<ExprId>),
    /// `(T)x`, `static_cast<T>(x)`, …
    Cast {
        /// The type as written.
        ty: String,
        /// The operand.
        operand: ExprId,
        /// `reinterpret_cast`, or a C cast to a pointer.
        reinterpret: bool,
    },
    /// `sizeof`, `alignof`: a constant.
    SizeOf,
    /// `new T[..](..)`; operands are evaluated.
    New(Vec<ExprId>),
    /// `delete p`
    Delete(ExprId),
    /// A kernel launch.
    Launch(Box<Launch>),
    /// A lambda. Local variables that occur in it are listed: they may be read or written when it is called.
    Lambda {
        /// Local variables of the enclosing function that occur in it.
        mentions: Vec<BindingId>,
        /// Its parameters, without a pack.
        params: Vec<BindingId>,
        /// Its body, lowered so that launches in it are found; it runs whenever somebody calls the lambda.
        body: Option<StmtId>,
    },
    /// Not understood: may read and write anything it mentions, and call anything.
    Unknown {
        /// Sub-expressions that were understood.
        parts: Vec<ExprId>,
        /// Local variables that occur anywhere in its text (also inside macro arguments).
        mentions: Vec<BindingId>,
    },
}

/// A statement.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Its source, including the `;`.
    pub span: Span,
}

/// One declared variable of a declaration statement.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct LocalDecl {
    /// The variable.
    pub binding: BindingId,
    /// Its initialiser; for `dim3 g(a, b)` an `ExprKind::Construct`.
    pub init: Option<ExprId>,
}

/// What a statement is.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub enum StmtKind {
    /// `{ … }`
    Block(Vec<StmtId>),
    /// `e;`
    Expr(ExprId),
    /// `T a = x, b;`
    Decl(Vec<LocalDecl>),
    /// `if (init; cond) then else otherwise`
    If {
        /// C++17 init statement or the declaration in the condition.
        init: Option<StmtId>,
        /// The condition; `None` when it is only a declaration (then its variable decides: see `init`).
        cond: Option<ExprId>,
        /// `if constexpr`
        constexpr: bool,
        /// True branch.
        then: StmtId,
        /// False branch.
        otherwise: Option<StmtId>,
    },
    /// `while (cond) body`
    While {
        /// The condition (`None`: a declaration, see `init`).
        cond: Option<ExprId>,
        /// Declaration in the condition.
        init: Option<StmtId>,
        /// The body.
        body: StmtId,
    },
    /// `do body while (cond);`
    DoWhile {
        /// The body.
        body: StmtId,
        /// The condition.
        cond: ExprId,
    },
    /// `for (init; cond; step) body`
    For {
        /// Init statement.
        init: Option<StmtId>,
        /// Condition; `None` means true.
        cond: Option<ExprId>,
        /// Step.
        step: Option<ExprId>,
        /// The body.
        body: StmtId,
    },
    /// `for (auto x : range) body`: the variable holds something of the range in each iteration.
    RangeFor {
        /// The declared variable.
        binding: BindingId,
        /// The range.
        range: ExprId,
        /// The body.
        body: StmtId,
    },
    /// `switch (cond) body`; the cases are `Case` statements inside the body (fall-through is explicit in their order).
    Switch {
        /// The selector.
        cond: ExprId,
        /// Normally a block whose statements are `Case`s.
        body: StmtId,
    },
    /// `case v:` / `default:` with the statements up to the next label.
    Case {
        /// `None` for `default`.
        value: Option<ExprId>,
        /// The statements behind the label.
        stmts: Vec<StmtId>,
    },
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return e;`
    Return(Option<ExprId>),
    /// `goto l;`
    Goto(String),
    /// `l: stmt`
    Label(String, Option<StmtId>),
    /// Alternatives of `#if … #elif … #else`: exactly one branch is compiled, which one isn't known. A missing `#else` is an empty
    /// last branch. Branches that are known not to be compiled are left out.
    Preprocessor {
        /// The branches.
        branches: Vec<Vec<StmtId>>,
    },
    /// `asm(…)`: may do anything to its operands.
    Asm {
        /// See [`assembly_text`](crate::hir::assembly::assembly_text).
        text: Option<String>,
        /// Local variables that occur in it.
        mentions: Vec<BindingId>,
        /// Sub-expressions.
        parts: Vec<ExprId>,
    },
    /// `;`, a pragma, a `using`, a `static_assert`: does nothing.
    Empty,
    /// Not understood: may do anything, control flow included.
    Unknown {
        /// Sub-statements and expressions that were understood are listed so that launches in them are still found.
        stmts: Vec<StmtId>,
        /// Expressions.
        exprs: Vec<ExprId>,
        /// Local variables that occur anywhere in its text.
        mentions: Vec<BindingId>,
    },
}

/// A parameter as callers see it.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Parameter {
    /// Its name; empty when it has none.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// It has a default argument.
    pub has_default: bool,
}
