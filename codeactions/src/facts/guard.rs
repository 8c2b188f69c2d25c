//! Which threads of a child grid do something: of a child that looks at its number first, all that come to less than one of its
//! arguments.

use gridfuse_analysis::facts::effects::BUILTINS;
use gridfuse_analysis::facts::launch::constant_value;
use gridfuse_analysis::hir::{BinOp, Body, Builtin, ExprId, ExprKind, Name, StmtKind, body};

use crate::facts::child::Child;
use crate::facts::ctype;
use crate::facts::pure;

/// What guards all that a child does: no thread from a number on does anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The index of the parameter that says from which.
    pub parameter: usize,
    /// The type in which a thread's number is compared with it.
    pub ty: String,
    /// The child counts on blocks of so many threads: its number is `blockIdx.x * 128 + threadIdx.x`.
    block: Option<u64>,
}

impl Guard {
    /// Whether it guards a launch with such a block, too.
    pub fn fits(&self, block: Option<[u64; 3]>) -> bool {
        self.block.is_none_or(|own| block == Some([own, 1, 1]))
    }

    /// The body is `int i = blockIdx.x * blockDim.x + threadIdx.x;` and `if (i < n) …` or `if (i >= n) return; …`. In place of `blockDim.x`
    /// there may be a constant: see [`Guard::fits`]. Further conditions may follow, as in `if (i < n && …) …` and `if (i >= n || …) return; …`: a thread without work doesn't come to them.
    pub fn of(child: &Child<'_>) -> Option<Guard> {
        let worker = child.worker();
        let lowered = match &child.outlined {
            Some(_) => body(child.db, worker),
            None => child.body.clone(),
        };
        // Where a rewrite has moved the body, the built-in variables come first.
        let builtins = match &child.outlined {
            Some(outlined) if !outlined.takes_thread => return None,
            Some(_) => BUILTINS.len(),
            None => 0,
        };
        let body: &Body = &lowered;
        let StmtKind::Block(stmts) = &body.stmt(body.root?).kind else {
            return None;
        };
        let mut stmts = stmts.iter().filter(|s| !matches!(body.stmt(**s).kind, StmtKind::Empty));
        let StmtKind::Decl(decls) = &body.stmt(*stmts.next()?).kind else {
            return None;
        };
        let [decl] = decls.as_slice() else { return None };
        let variable = body.binding(decl.binding);
        if !variable.ty.is_value() || variable.ty.volatile {
            return None;
        }
        let block = match thread_index(body, decl.init?)? {
            Width::OfBlock => None,
            Width::Of(factor) => Some(u64::try_from(constant_value(child.db, worker, body, factor)?).ok()?),
        };
        let ty = ctype::normalize(&variable.ty.base);
        let StmtKind::If {
            init: None,
            cond: Some(cond),
            then,
            otherwise: None,
            ..
        } = &body.stmt(*stmts.next()?).kind
        else {
            return None;
        };
        let (first, and) = first_condition(body, *cond);
        let ExprKind::Binary(op, left, right) = body.expr(first).kind else {
            return None;
        };
        let is_index = |e: ExprId| matches!(body.expr(body.strip_parens(e)).kind, ExprKind::Name(Name::Local(b)) if b == decl.binding);
        let (op, limit) = match (is_index(left), is_index(right)) {
            (true, false) => (op, right),
            (false, true) => (
                match op {
                    BinOp::Gt => BinOp::Lt,
                    BinOp::Le => BinOp::Ge,
                    _ => return None,
                },
                left,
            ),
            _ => return None,
        };
        let leaves = || match &body.stmt(*then).kind {
            StmtKind::Return(None) => true,
            StmtKind::Block(inner) => {
                matches!(inner.as_slice(), [only] if matches!(body.stmt(*only).kind, StmtKind::Return(None)))
            }
            _ => false,
        };
        let rest_is_empty = stmts.next().is_none();
        let guarded = match op {
            BinOp::Lt => rest_is_empty && and != Some(false),
            BinOp::Ge => leaves() && and != Some(true),
            _ => false,
        };
        let ExprKind::Name(Name::Local(limit)) = body.expr(body.strip_parens(limit)).kind else {
            return None;
        };
        let parameter = body.params.iter().position(|p| *p == limit)?.checked_sub(builtins)?;
        (guarded && pure::is_immutable_parameter(child.db, worker, body, limit)).then_some(Guard {
            parameter,
            ty,
            block,
        })
    }
}

/// The condition that is looked at first, `a` of `a && b && …` or `a || b || …`; and whether the others are joined to it by `&&`.
fn first_condition(body: &Body, cond: ExprId) -> (ExprId, Option<bool>) {
    let cond = body.strip_parens(cond);
    let ExprKind::Logical { and, lhs, .. } = body.expr(cond).kind else {
        return (cond, None);
    };
    match first_condition(body, lhs) {
        (first, inner) if inner.is_none_or(|inner| inner == and) => (first, Some(and)),
        // `a && b || c`: none of them decides.
        _ => (cond, None),
    }
}

/// By what the number of a block is multiplied.
enum Width {
    OfBlock,
    Of(ExprId),
}

/// `blockIdx.x * blockDim.x + threadIdx.x` in any order, casts to integers aside; or with another factor.
fn thread_index(body: &Body, expr: ExprId) -> Option<Width> {
    let field_x = |e: ExprId, wanted: Builtin| {
        let mut e = body.strip_parens(e);
        while let ExprKind::Cast { operand, ty, .. } = &body.expr(e).kind
            && matches!(ty.as_str(), "int" | "unsigned" | "unsigned int")
        {
            e = body.strip_parens(*operand);
        }
        matches!(&body.expr(e).kind, ExprKind::Field { base, field, arrow: false }
            if field == "x" && is_builtin(body, *base, wanted))
    };
    let product = |e: ExprId| {
        let ExprKind::Binary(BinOp::Mul, a, b) = body.expr(body.strip_parens(e)).kind else {
            return None;
        };
        let factor = match (field_x(a, Builtin::BlockIdx), field_x(b, Builtin::BlockIdx)) {
            (true, false) => b,
            (false, true) => a,
            _ => return None,
        };
        Some(match field_x(factor, Builtin::BlockDim) {
            true => Width::OfBlock,
            false => Width::Of(factor),
        })
    };
    let ExprKind::Binary(BinOp::Add, a, b) = body.expr(body.strip_parens(expr)).kind else {
        return None;
    };
    match (field_x(a, Builtin::ThreadIdx), field_x(b, Builtin::ThreadIdx)) {
        (false, true) => product(a),
        (true, false) => product(b),
        _ => None,
    }
}

/// A built-in variable, or the parameter that stands for it where a rewrite has moved the body.
fn is_builtin(body: &Body, expr: ExprId, wanted: Builtin) -> bool {
    match &body.expr(expr).kind {
        ExprKind::Name(Name::Builtin(builtin)) => *builtin == wanted,
        ExprKind::Name(Name::Local(binding)) => {
            let name = match wanted {
                Builtin::ThreadIdx => "threadIdx",
                Builtin::BlockIdx => "blockIdx",
                Builtin::GridDim => "gridDim",
                Builtin::BlockDim => "blockDim",
                _ => return false,
            };
            body.params.contains(binding) && body.binding(*binding).name == name
        }
        _ => false,
    }
}
