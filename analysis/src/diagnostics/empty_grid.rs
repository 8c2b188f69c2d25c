//! `empty-grid`

use std::collections::HashSet;

use super::origin::origins;
use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{LaunchFacts, Launchers, constant_value, launches, single_definition};
use crate::hir::flow::operands;
use crate::hir::items::FunctionItem;
use crate::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Name, StmtKind, UnOp, body};

pub(super) const KIND: Kind = Kind {
    id: "empty-grid",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &["guard-empty-grid"],
    find: empty_grid,
};

const DOC: &str = r#"A child grid may have no blocks.

## What it does
Finds device-side launches whose grid size is 0. It also finds those whose grid size is computed from a number that is loaded from memory
(or the difference of two such numbers), if no condition in the function checks that number. For an unsigned `n` that is 0, the grid size
`(n - 1) / b + 1` is huge and not 0: where this is the grid size, the message says so.

## Why is this bad
A launch with 0 blocks fails with `cudaErrorInvalidConfiguration`. That looks like doing nothing, but the error stays until somebody asks
for it, and hides the errors that matter. It is no cheaper than a launch, either.

## Example
```cuda
__global__ void child(const int* edges, int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[edges[begin + i]] = 1;
}

__global__ void parent(const int* row, const int* edges, int* out, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    child<<<(count + 127) / 128, 128, 0, cudaStreamFireAndForget>>>(edges, out, begin, count);
}
```

## Use instead
```cuda
__global__ void child(const int* edges, int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[edges[begin + i]] = 1;
}

__global__ void parent(const int* row, const int* edges, int* out, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int begin = row[v], count = row[v + 1] - begin;
    if (count > 0) child<<<(count + 127) / 128, 128, 0, cudaStreamFireAndForget>>>(edges, out, begin, count);
}
```
"#;

fn empty_grid<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let body = body(db, function);
    let text = function.text(db);
    let device_side = launches(db, function).iter().filter(|l| l.launchers != Launchers::Host);
    device_side
        .filter_map(|facts| {
            let finding = |message: String, label: &str, help: Option<&str>| Finding {
                span: facts.grid.operand.span,
                message,
                label: label.to_owned(),
                related: origins(function, &body, facts.grid.operand.expr),
                help: help.map(str::to_owned),
            };
            let zero = |e: &ExprId| constant_value(db, function, &body, *e) == Some(0);
            if facts.grid.components.iter().flatten().flatten().any(zero) {
                return Some(finding(
                    "the launch fails: its grid has no blocks".to_owned(),
                    "0 blocks",
                    None,
                ));
            }
            if !body.problems.is_empty() {
                return None;
            }
            let (wanted, form) = wanted_blocks(facts)?;
            let mut suspect = Suspect::of(&body, wanted)?;
            suspect.also_in(&body, facts.grid.operand.expr);
            if suspect.is_looked_at(&body) {
                return None;
            }
            let name = body.expr(wanted).span.text(&text);
            let test = Some("launch only when there is something to do");
            if form == "(n - 1) / b + 1" {
                let unsigned = is_unsigned(&body, wanted);
                return unsigned.then(|| {
                    let message =
                        format!("the grid has millions of blocks when `{name}` is 0: `{name} - 1` wraps around");
                    finding(message, "wraps around", test)
                });
            }
            let message = format!("the launch fails when `{name}` is 0: the grid has no blocks then");
            Some(finding(message, "may be 0", test))
        })
        .collect()
}

/// What decides whether the grid is empty, and the form of the grid size.
fn wanted_blocks(facts: &LaunchFacts<'_>) -> Option<(ExprId, &'static str)> {
    if let Some(threads) = &facts.threads {
        return Some((threads.expr, threads.form));
    }
    match facts.grid.components? {
        [Some(x), None, None] => Some((x, "n")),
        _ => None,
    }
}

/// A number that comes out of memory, so that it may be anything.
struct Suspect {
    /// The variables that hold it, its parts, and the memory that they were loaded from.
    variables: HashSet<BindingId>,
    globals: HashSet<String>,
}

impl Suspect {
    fn of(body: &Body, wanted: ExprId) -> Option<Suspect> {
        let mut suspect = Suspect {
            variables: HashSet::new(),
            globals: HashSet::new(),
        };
        let value = suspect.value(body, wanted)?;
        let loaded = match &body.expr(value).kind {
            ExprKind::Binary(BinOp::Sub, a, b) => {
                let both = [suspect.value(body, *a)?, suspect.value(body, *b)?];
                both.map(|e| suspect.loaded(body, e)) == [true, true]
            }
            _ => suspect.loaded(body, value),
        };
        loaded.then_some(suspect)
    }

    /// The value behind variables that never change; the variables are noted.
    fn value(&mut self, body: &Body, mut e: ExprId) -> Option<ExprId> {
        for _ in 0..16 {
            match &body.expr(e).kind {
                ExprKind::Paren(inner) | ExprKind::Cast { operand: inner, .. } => e = *inner,
                ExprKind::Name(Name::Local(binding)) => {
                    self.variables.insert(*binding);
                    e = single_definition(body, *binding)?;
                }
                _ => return Some(e),
            }
        }
        None
    }

    fn loaded(&mut self, body: &Body, e: ExprId) -> bool {
        let (ExprKind::Index { base, .. } | ExprKind::Deref(base)) = &body.expr(e).kind else {
            return false;
        };
        let mut todo = vec![*base];
        while let Some(next) = todo.pop() {
            match &body.expr(next).kind {
                ExprKind::Name(Name::Local(binding)) => drop(self.variables.insert(*binding)),
                ExprKind::Name(Name::Other(name)) => drop(self.globals.insert(name.clone())),
                // The index says nothing about the value.
                ExprKind::Index { base, .. } => todo.push(*base),
                kind => todo.extend(operands(kind)),
            }
        }
        true
    }

    /// The number of blocks that is computed from it has a name of its own, by which it may be looked at.
    fn also_in(&mut self, body: &Body, grid: ExprId) {
        if let ExprKind::Name(Name::Local(binding)) = body.expr(body.strip_parens(grid)).kind {
            self.variables.insert(binding);
        }
    }

    /// A comparison or a condition in the function concerns it.
    fn is_looked_at(&self, body: &Body) -> bool {
        let mut todo: Vec<ExprId> = Vec::new();
        for expr in &body.exprs {
            match &expr.kind {
                ExprKind::Binary(BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge, a, b) => {
                    todo.extend([a, b]);
                }
                ExprKind::Unary(UnOp::Not, e) => todo.push(*e),
                ExprKind::Logical { lhs, rhs, .. } => todo.extend([lhs, rhs]),
                ExprKind::Conditional { cond, .. } => todo.push(*cond),
                // `min`, `max`, `assert`: what comes out, or goes on behind it, isn't the number itself.
                ExprKind::Call { args, .. } => todo.extend(args),
                ExprKind::Lambda { mentions, .. } | ExprKind::Unknown { mentions, .. }
                    if mentions.iter().any(|b| self.variables.contains(b)) =>
                {
                    return true;
                }
                _ => {}
            }
        }
        for stmt in &body.stmts {
            match &stmt.kind {
                StmtKind::If { cond, .. } | StmtKind::While { cond, .. } | StmtKind::For { cond, .. } => {
                    todo.extend(cond);
                }
                StmtKind::DoWhile { cond, .. } | StmtKind::Switch { cond, .. } => todo.push(*cond),
                StmtKind::Unknown { .. } | StmtKind::Asm { .. } => return true,
                _ => {}
            }
        }
        let mut seen = HashSet::new();
        while let Some(e) = todo.pop() {
            if !seen.insert(e) {
                continue;
            }
            match &body.expr(e).kind {
                ExprKind::Name(Name::Local(b)) if self.variables.contains(b) => return true,
                ExprKind::Name(Name::Other(name)) if self.globals.contains(name) => return true,
                kind => todo.extend(operands(kind)),
            }
        }
        false
    }
}

fn is_unsigned(body: &Body, e: ExprId) -> bool {
    match &body.expr(body.strip_parens(e)).kind {
        ExprKind::Name(Name::Local(binding)) => {
            let base = body.binding(*binding).ty.base.as_str();
            base.starts_with("unsigned") || base.starts_with("uint") || base == "size_t"
        }
        _ => false,
    }
}
