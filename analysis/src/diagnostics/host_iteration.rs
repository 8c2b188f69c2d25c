//! `host-iteration`

use crate::base::db::Db;
use crate::base::severity::Severity;
use crate::diagnostics::diagnostic::{Finding, Kind};
use crate::facts::launch::{LaunchFacts, launches};
use crate::hir::items::FunctionItem;
use crate::hir::names::unqualified;
use crate::hir::resolve::{Meaning, functions_in, meaning_in};
use crate::hir::walk::{all_exprs, all_in_expr, all_stmts};
use crate::hir::{BindingId, Body, ExprId, ExprKind, Name, StmtId, StmtKind, body};

pub(super) const KIND: Kind = Kind {
    id: "host-iteration",
    severity: Severity::Info,
    doc: DOC,
    rewrites: &["outline-iteration"],
    find: host_iteration,
};

const DOC: &str = r#"The host waits for a flag in each round before it launches the next one.

## What it does
Finds loops on the host that launch kernels, then copy a variable back or wait for memory that the host shares with the device. That value
decides how the loop goes on.

## Why is this bad
Each round takes a launch, a wait and a copy: 10 µs and more, in which the device does nothing. A search through a long graph has thousands
of rounds, and most of them compute for less time than that.

## Example
```cuda
__global__ void relax(int* dist, int* changed, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + 1 < n && atomicMin(&dist[i + 1], dist[i] + 1) > dist[i] + 1) *changed = 1;
}

void search(int* dist, int* changed, int n) {
    int again;
    do {
        cudaMemset(changed, 0, sizeof(int));
        relax<<<(n + 255) / 256, 256>>>(dist, changed, n);
        cudaMemcpy(&again, changed, sizeof(int), cudaMemcpyDeviceToHost);
    } while (again);
}
```

## Use instead
One grid that runs all rounds; its blocks wait for each other in between. [outline-iteration](../rewrites/outline-iteration.md) writes it.

```cuda
#include <cooperative_groups.h>

__device__ void relax(int* dist, int* changed, int n) {
    int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i + 1 < n; i += step)
        if (atomicMin(&dist[i + 1], dist[i] + 1) > dist[i] + 1) *changed = 1;
}

__global__ void relax_rounds(int* dist, int* changed, int n) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    int again;
    do {
        grid.sync();
        if (grid.thread_rank() == 0) *changed = 0;
        grid.sync();
        relax(dist, changed, n);
        grid.sync();
        again = *(volatile int*)changed;
    } while (again);
}

void search(int* dist, int* changed, int n, int blocks) {
    void* arguments[] = {&dist, &changed, &n};
    cudaLaunchCooperativeKernel((void*)relax_rounds, blocks, 256, arguments, 0, 0);
    cudaDeviceSynchronize();
}
```
"#;

fn host_iteration<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let signature = function.signature(db);
    if signature.kernel || signature.device {
        return Vec::new();
    }
    let all = launches(db, function);
    if all.is_empty() {
        return Vec::new();
    }
    let search = Search {
        db,
        function,
        body: &body(db, function),
    };
    let mut found: Vec<Finding<'db>> = Vec::new();
    let mut seen: Vec<StmtId> = Vec::new();
    for launch in all {
        let Some(around) = launch.loops.first().filter(|_| !launch.in_lambda) else {
            continue;
        };
        if !seen.contains(&around.stmt) {
            seen.push(around.stmt);
            found.extend(search.finding(around.stmt, launch));
        }
    }
    found
}

struct Search<'a, 'db> {
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &'a Body,
}

impl<'db> Search<'_, 'db> {
    /// The wait in a loop that decides whether it goes on.
    fn finding(&self, around: StmtId, launch: &LaunchFacts<'db>) -> Option<Finding<'db>> {
        let decide: Vec<ExprId> = self
            .conditions(around)
            .into_iter()
            .flat_map(|cond| all_in_expr(self.body, cond))
            .collect();
        let kernel = launch.kernel_name.as_deref().map_or("the kernel", unqualified);
        for expr in all_exprs(self.body, around) {
            let ExprKind::Call {
                name: Some(name), args, ..
            } = &self.body.expr(expr).kind
            else {
                continue;
            };
            if !functions_in(self.db, self.function, name).is_empty() {
                continue;
            }
            let waited_for = match name.trim_start_matches("::") {
                "cudaMemcpy" | "cudaMemcpyAsync" if self.is_to_host(args) => self.target(args.first()),
                "cudaMemcpyFromSymbol" | "cudaMemcpyFromSymbolAsync" => self.target(args.first()),
                "cudaDeviceSynchronize" | "cudaThreadSynchronize" | "cudaStreamSynchronize" => {
                    match decide.iter().find(|e| self.reads_memory(**e)) {
                        Some(read) => Some((None, self.source(*read))),
                        None => continue,
                    }
                }
                _ => continue,
            };
            let Some((variable, shown)) = waited_for else { continue };
            let decides = variable.is_none_or(|variable| decide.iter().any(|e| self.local(*e) == Some(variable)));
            if decides {
                return Some(Finding {
                    span: self.body.expr(expr).span,
                    message: format!("the host waits for `{shown}` in each round before it launches `{kernel}` again"),
                    label: "waits in each round".to_owned(),
                    related: vec![(self.function, launch.span, "launched in each round".to_owned())],
                    help: Some("let one grid run all rounds".to_owned()),
                });
            }
        }
        None
    }

    /// The conditions that end a loop: its own, and those of an `if` with a `break`.
    fn conditions(&self, around: StmtId) -> Vec<ExprId> {
        let mut found = Vec::new();
        let own = match &self.body.stmt(around).kind {
            StmtKind::While { cond, body, .. } => (*cond, *body),
            StmtKind::DoWhile { cond, body } => (Some(*cond), *body),
            StmtKind::For { cond, body, .. } => (*cond, *body),
            _ => return found,
        };
        found.extend(own.0);
        for stmt in all_stmts(self.body, own.1) {
            if let StmtKind::If {
                cond: Some(cond),
                then,
                otherwise,
                ..
            } = &self.body.stmt(stmt).kind
            {
                let mut inside = all_stmts(self.body, *then);
                inside.extend(otherwise.iter().flat_map(|s| all_stmts(self.body, *s)));
                if inside
                    .iter()
                    .any(|s| matches!(self.body.stmt(*s).kind, StmtKind::Break))
                {
                    found.push(*cond);
                }
            }
        }
        found
    }

    fn is_to_host(&self, args: &[ExprId]) -> bool {
        let kind = args
            .get(3)
            .map(|kind| &self.body.expr(self.body.strip_parens(*kind)).kind);
        matches!(kind, Some(ExprKind::Name(Name::Other(name))) if matches!(unqualified(name), "cudaMemcpyDeviceToHost" | "cudaMemcpyDefault"))
    }

    /// The variable that a copy writes, or through which it does, and how to name it.
    fn target(&self, to: Option<&ExprId>) -> Option<(Option<BindingId>, String)> {
        let mut expr = self.body.strip_parens(*to?);
        while let ExprKind::Cast { operand, .. } | ExprKind::AddrOf(operand) = self.body.expr(expr).kind {
            expr = self.body.strip_parens(operand);
        }
        let variable = self.local(expr)?;
        Some((Some(variable), self.body.binding(variable).name.clone()))
    }

    fn local(&self, expr: ExprId) -> Option<BindingId> {
        match self.body.expr(expr).kind {
            ExprKind::Name(Name::Local(binding)) => Some(binding),
            _ => None,
        }
    }

    /// What is read through a pointer, or a variable that host and device share.
    fn reads_memory(&self, expr: ExprId) -> bool {
        match &self.body.expr(expr).kind {
            ExprKind::Deref(_) => true,
            ExprKind::Name(Name::Other(name)) => {
                matches!(meaning_in(self.db, self.function, name), Meaning::Global(global) if global.managed)
            }
            ExprKind::Index { base, .. } => {
                let pointer = self.local(self.body.strip_parens(*base));
                pointer.is_some_and(|binding| self.body.binding(binding).ty.pointers > 0)
            }
            _ => false,
        }
    }

    fn source(&self, expr: ExprId) -> String {
        let text = self.function.text(self.db);
        self.body.expr(expr).span.text(&text).to_owned()
    }
}
