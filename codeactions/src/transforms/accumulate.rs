//! Atomic operations of a child whose grids run in one thread: on a place that is the same for all threads of a grid, and whose old value
//! nobody asks for, they can be done once for all of them, with a value that was collected in a register.

use std::collections::HashSet;

use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::hir::walk::{all_exprs, all_in_expr, all_stmts};
use gridfuse_analysis::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Name, StmtId, StmtKind, Storage};

use crate::edit::lex;
use crate::edit::names::{is_macro, words_with_macros};
use crate::edit::style;
use crate::emit::outline;
use crate::facts::calls::is_plain_type;
use crate::facts::child::{Child, copies_plainly};
use crate::facts::combinable::NAMESPACE;
use crate::facts::combinable::Operation;
use crate::facts::combinable::on_one_place;
use crate::facts::ctype;
use crate::facts::pure::is_immutable_parameter;

/// What stands in the code that runs a grid's threads one after the other.
pub struct Accumulated {
    /// Statements in front of the loop, with tabs: `gridfuse::SumAt sum(&out[begin]);`.
    pub declarations: String,
    /// The child's body, in braces, with tabs.
    pub body: String,
}

/// The class of the runtime that collects what an operation does.
fn collector(name: &str) -> Option<(&'static str, &'static str)> {
    match name.strip_prefix(NAMESPACE).unwrap_or(name) {
        "atomicAdd" => Some(("gridfuse::SumAt", "sum")),
        "atomicMin" => Some(("gridfuse::MinimumAt", "least")),
        "atomicMax" => Some(("gridfuse::MaximumAt", "most")),
        _ => None,
    }
}

/// The child's body with its atomic operations collected; `None` where there is none that can be.
///
/// Each thread's operation is the last thing that it does with memory. So whatever else it reads it reads before, as it would have; and when
/// the operation is done in the sequence of all the threads of a grid was anybody's guess.
pub fn accumulated(child: &Child<'_>) -> Option<Accumulated> {
    let body: &Body = &child.body;
    let root = body.root?;
    let whole = child.source(body.stmt(root).span);
    // A function that asks for the built-in variables itself would need a copy.
    let asks = !effects(child.db, child.item).builtins_in_callees.is_empty();
    if child.outlined.is_some() || whole.contains('#') || asks {
        return None;
    }
    // Each thread begins with the arguments, and the body stands there once for all threads. What is static would be there twice.
    let settled = |b: &BindingId| is_immutable_parameter(child.db, child.item, body, *b);
    let named = |b: &&BindingId| !body.binding(**b).name.is_empty();
    let twice = body.bindings.iter().any(|b| b.storage == Storage::Static);
    if twice || !body.params.iter().filter(named).all(settled) {
        return None;
    }
    // A destructor may write something behind it.
    let mut locals = body.bindings.iter().filter(|b| b.storage == Storage::Local);
    if !locals.all(|b| copies_plainly(child.db, child.item, &b.ty, 0).is_ok()) {
        return None;
    }
    // A type of the body's own isn't there in front of the loop.
    if lex::type_declaration(whole).is_some() {
        return None;
    }
    let may_not_be_evaluated = |operation: &Operation| {
        let mut parts = all_in_expr(body, operation.pointer).into_iter();
        parts.any(|e| matches!(body.expr(e).kind, ExprKind::Binary(BinOp::Div | BinOp::Rem, ..)))
    };
    let operations: Vec<Operation> = on_one_place(child.db, child.item)
        .into_iter()
        .filter(|operation| collector(&operation.name).is_some() && !may_not_be_evaluated(operation))
        .filter(|operation| lex::comments(child.source(body.expr(operation.pointer).span)).is_empty())
        .collect();
    let stmts: HashSet<StmtId> = operations.iter().map(|operation| operation.stmt).collect();
    if operations.is_empty() || !end_with(body, root, &stmts) {
        return None;
    }
    let mut taken: HashSet<String> = child.params.iter().map(|param| param.name.clone()).collect();
    taken.extend(words_with_macros(child.db, child.file, whole));
    let start = body.stmt(root).span.start;
    let (mut code, mut at) = (String::new(), start);
    let mut declarations = Vec::new();
    for operation in &operations {
        let (class, wanted) = collector(&operation.name)?;
        let name = (1..)
            .map(|n| {
                if n == 1 {
                    wanted.to_owned()
                } else {
                    format!("{wanted}{n}")
                }
            })
            .find(|name| !taken.contains(name) && !is_macro(child.db, child.file, name))?;
        taken.insert(name.clone());
        let source = |expr: ExprId| child.source(body.expr(expr).span);
        let pointer = crate::edit::one_line::one_line(source(operation.pointer));
        declarations.push((class, format!("\t{class} {name}({pointer});\n")));
        let call = body.expr(operation.call).span;
        code.push_str(child.source(Span::new(at, call.start)));
        code.push_str(&format!("{name}.take({})", source(operation.value)));
        at = call.end;
    }
    code.push_str(child.source(Span::new(at, body.stmt(root).span.end)));
    // They are done where these variables end, the last one first. A thread does them in the order of the text, and different ones
    // may be for the same place.
    if declarations.iter().any(|(class, _)| *class != declarations[0].0) {
        declarations.reverse();
    }
    let indent = style::indent_at(&child.text, child.start as usize);
    Some(Accumulated {
        declarations: declarations.into_iter().map(|(_, code)| code).collect(),
        body: style::reindent(&outline::verbatim(&code, indent), "", "\t"),
    })
}

/// The statement ends with some of these operations, on every way through it on which it comes to any: nothing behind the first of them
/// has to do with memory.
fn end_with(body: &Body, stmt: StmtId, operations: &HashSet<StmtId>) -> bool {
    let has_some = |s: StmtId| all_stmts(body, s).iter().any(|inner| operations.contains(inner));
    match &body.stmt(stmt).kind {
        _ if !has_some(stmt) => true,
        // What it evaluates comes before it.
        StmtKind::Expr(_) => operations.contains(&stmt),
        StmtKind::Block(stmts) => {
            let Some(first) = stmts.iter().position(|s| has_some(*s)) else {
                return true;
            };
            let behind = stmts.get(first + 1..).unwrap_or(&[]);
            end_with(body, stmts[first], operations)
                && behind
                    .iter()
                    .all(|s| end_with(body, *s, operations) && touches_no_memory(body, *s, operations))
        }
        StmtKind::If { then, otherwise, .. } => {
            end_with(body, *then, operations) && otherwise.is_none_or(|s| end_with(body, s, operations))
        }
        _ => false,
    }
}

/// All that a statement does with memory are some of these operations.
fn touches_no_memory(body: &Body, stmt: StmtId, operations: &HashSet<StmtId>) -> bool {
    let mut allowed: HashSet<ExprId> = HashSet::new();
    for inner in all_stmts(body, stmt).iter().filter(|s| operations.contains(s)) {
        if let StmtKind::Expr(expr) = body.stmt(*inner).kind {
            let call = body.strip_parens(expr);
            allowed.insert(call);
            if let ExprKind::Call { args, callee, .. } = &body.expr(call).kind {
                allowed.extend(args.first().into_iter().flat_map(|pointer| all_in_expr(body, *pointer)));
                allowed.extend(all_in_expr(body, *callee));
            }
        }
    }
    // A reference is read from memory; an operator of a class may do anything, and so may what makes an object.
    let is_number = |b: BindingId| {
        let ty = &body.binding(b).ty;
        ty.is_value() && is_plain_type(&ctype::normalize(&ty.base))
    };
    all_exprs(body, stmt)
        .into_iter()
        .filter(|e| !allowed.contains(e))
        .all(|e| match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => is_number(*b),
            ExprKind::Cast { ty, .. } => is_plain_type(&ctype::normalize(ty)),
            _ => matches!(
                body.expr(e).kind,
                ExprKind::Literal(_)
                    | ExprKind::Paren(_)
                    | ExprKind::Unary(..)
                    | ExprKind::Binary(..)
                    | ExprKind::Logical { .. }
                    | ExprKind::Conditional { .. }
            ),
        })
}
