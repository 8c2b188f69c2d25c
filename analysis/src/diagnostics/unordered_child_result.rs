//! `unordered-child-result`

use std::collections::{BTreeSet, HashMap};

use crate::db::Db;
use crate::diagnostic::{Finding, Kind, Severity};
use crate::flow::{BlockId, Flow, Step, operands};
use crate::hir::{BinOp, BindingId, Body, ExprId, ExprKind, Name, body};
use crate::items::FunctionItem;
use crate::launch::{Child, LaunchFacts, Launchers, Pins, Stream, constant_value, launches, single_definition};
use crate::resolve::{Meaning, meaning, unqualified};
use crate::uniformity::known::{Known, known};
use crate::uniformity::{immutable_parameter, uniformity};

pub(super) const KIND: Kind = Kind {
    id: "unordered-child-result",
    severity: Severity::Warning,
    doc: DOC,
    rewrites: &[],
    find: unordered_child_result,
};

const DOC: &str = r#"The parent reads what a child grid writes, and nothing orders the two.

## What it does
Finds reads behind a launch, in the same function, of memory that the launched kernel writes: the same element of an array that was
passed as it is (a constant index, or the thread's number on both sides), or the same global variable. Launches into
`cudaStreamTailLaunch` are left alone, and so are functions that synchronize with their children, which CUDA 12 took away.

## Why is this bad
Without `cudaDeviceSynchronize()`, which no longer exists in device code, a parent cannot wait for its child: the child may run before
the read, after it, or after the parent has ended. `__syncthreads()` waits for the block's own threads only.

## Example
```cuda
__global__ void sum(const int* values, int n, int* result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(result, values[i]);
}

__global__ void parent(const int* values, int n, int* result, float* mean) {
    if (threadIdx.x == 0) {
        sum<<<(n + 255) / 256, 256>>>(values, n, result);
        *mean = (float)*result / n;
    }
}
```

## Use instead
Put what needs the result into a kernel of its own, and launch it behind the child in the same stream, or into
`cudaStreamTailLaunch`, where it runs after all other children.

```cuda
__global__ void sum(const int* values, int n, int* result) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(result, values[i]);
}

__global__ void divide(const int* result, int n, float* mean) { *mean = (float)*result / n; }

__global__ void parent(const int* values, int n, int* result, float* mean) {
    if (threadIdx.x == 0) {
        sum<<<(n + 255) / 256, 256>>>(values, n, result);
        divide<<<1, 1>>>(result, n, mean);
    }
}
```
"#;

/// An array or variable that parent and child share.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shared {
    Pointer(BindingId),
    Global(String),
}

/// Which element is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Constant(i128),
    /// The number of the thread.
    Thread,
    Other,
}

impl Element {
    fn may_be(self, other: Element) -> bool {
        match (self, other) {
            (Element::Constant(a), Element::Constant(b)) => a == b,
            (Element::Constant(n), Element::Thread) | (Element::Thread, Element::Constant(n)) => n >= 0,
            (Element::Thread, Element::Thread) => true,
            (Element::Other, _) | (_, Element::Other) => false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Access {
    expr: ExprId,
    element: Element,
    reads: bool,
    writes: bool,
}

fn unordered_child_result<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Finding<'db>> {
    let all = launches(db, function);
    let text = function.text(db);
    let waits = ["cudaDeviceSynchronize", "cudaThreadSynchronize"];
    if all.iter().all(|l| l.launchers == Launchers::Host) || waits.iter().any(|name| text.contains(name)) {
        return Vec::new();
    }
    let body = body(db, function);
    if !body.problems.is_empty() {
        return Vec::new();
    }
    let flow = Flow::of(&body);
    let parent = Accesses::of(db, function, &body);
    let mut found: Vec<Finding<'db>> = Vec::new();
    for facts in all {
        let Child::Kernel(child) = facts.child else { continue };
        if facts.in_lambda || facts.stream == Stream::TailLaunch || facts.launchers == Launchers::Host {
            continue;
        }
        let later = evaluated_later(&flow, facts.expr);
        let child_body = crate::hir::body(db, child);
        let in_child = Accesses::of(db, child, &child_body);
        for (ours, theirs) in shared(db, function, &body, facts, child, &child_body, &in_child) {
            let writes: Vec<Access> = in_child.of_shared(&theirs).into_iter().filter(|a| a.writes).collect();
            for read in parent.of_shared(&ours) {
                let span = body.expr(read.expr).span;
                if !read.reads || !later.contains(&read.expr) || found.iter().any(|f| f.span == span) {
                    continue;
                }
                let Some(write) = writes.iter().find(|w| w.element.may_be(read.element)) else {
                    continue;
                };
                let name = child.name(db);
                found.push(Finding {
                    span,
                    message: format!("nothing orders this read with the write in `{name}`, which was launched before"),
                    label: "the child may not have run yet".to_owned(),
                    related: vec![
                        (function, facts.span, "launched here".to_owned()),
                        (child, child_body.expr(write.expr).span, format!("`{name}` writes it here")),
                    ],
                    help: Some(
                        "read it in a kernel that is launched behind the child in the same stream, or into `cudaStreamTailLaunch`"
                            .to_owned(),
                    ),
                });
            }
        }
    }
    found.sort_by_key(|f| f.span);
    found
}

/// What the launch passes to a parameter as it is, and the global variables that the child accesses: as the parent and as the
/// child call them.
fn shared<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    body: &Body,
    facts: &LaunchFacts<'db>,
    child: FunctionItem<'db>,
    child_body: &Body,
    in_child: &Accesses,
) -> Vec<(Shared, Shared)> {
    let mut found = Vec::new();
    for (arg, parameter) in facts.args.iter().zip(&child_body.params) {
        let theirs = child_body.binding(*parameter);
        if theirs.ty.pointers != 1 || theirs.ty.volatile || !immutable_parameter(child_body, *parameter) {
            continue;
        }
        let mut e = body.strip_parens(arg.expr);
        while let ExprKind::Cast { operand, .. } = body.expr(e).kind {
            e = body.strip_parens(operand);
        }
        let ours = match &body.expr(e).kind {
            ExprKind::Name(Name::Local(b)) => {
                let fixed = immutable_parameter(body, *b) || single_definition(body, *b).is_some();
                let ty = &body.binding(*b).ty;
                if !fixed || ty.pointers != 1 || ty.volatile {
                    continue;
                }
                Shared::Pointer(*b)
            }
            ExprKind::Name(Name::Other(name)) if is_variable(db, function, name) => Shared::Global(name.clone()),
            _ => continue,
        };
        found.push((ours, Shared::Pointer(*parameter)));
    }
    for name in in_child.globals() {
        if is_variable(db, function, &name) && is_variable(db, child, &name) {
            found.push((Shared::Global(name.clone()), Shared::Global(name)));
        }
    }
    found
}

/// A variable in global memory that may change.
fn is_variable(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> bool {
    match meaning(db, function.file(db), name) {
        Meaning::Global(global) => (global.device || global.managed) && !global.constant && !global.constant_memory,
        _ => false,
    }
}

/// What is evaluated behind the launch before control comes back to it.
fn evaluated_later(flow: &Flow, launch: ExprId) -> BTreeSet<ExprId> {
    let mut later = BTreeSet::new();
    let Some(start) = flow.expr_block.get(&launch).copied().filter(|b| flow.reachable(*b)) else {
        return later;
    };
    let exprs = |block: BlockId| {
        flow.block(block).steps.iter().filter_map(|step| match step {
            Step::Expr(e) => Some(*e),
            _ => None,
        })
    };
    later.extend(exprs(start).skip_while(|e| *e != launch).skip(1));
    let mut seen = BTreeSet::from([start]);
    let mut todo = vec![start];
    while let Some(block) = todo.pop() {
        for to in flow.block(block).targets() {
            // Forwards only: an iteration that comes later starts before the launch.
            if flow.position[to.index()] > flow.position[block.index()] && seen.insert(*to) {
                later.extend(exprs(*to));
                todo.push(*to);
            }
        }
    }
    later
}

/// The accesses of a function to what its pointers and global variables name.
struct Accesses {
    all: Vec<(Shared, Access)>,
}

impl Accesses {
    fn of<'db>(db: &'db dyn Db, function: FunctionItem<'db>, body: &Body) -> Accesses {
        let levels = uniformity(db, function);
        let pins = Pins::new(db, function, body, &levels);
        let element = |index: ExprId| match constant_value(db, function, body, index) {
            Some(n) => Element::Constant(n),
            None if pins.numbers_threads(index) => Element::Thread,
            None => Element::Other,
        };
        let mut parents: HashMap<ExprId, ExprId> = HashMap::new();
        for (i, expr) in body.exprs.iter().enumerate() {
            for operand in operands(&expr.kind) {
                parents.insert(operand, ExprId(i as u32));
            }
        }
        let mut all = Vec::new();
        for (i, expr) in body.exprs.iter().enumerate() {
            let id = ExprId(i as u32);
            let accessed = match &expr.kind {
                ExprKind::Deref(pointer) => pointed(body, *pointer).map(|(what, index)| {
                    let element = index.map_or(Element::Constant(0), element);
                    (what, element)
                }),
                ExprKind::Index { base, index } => named(body, *base).map(|what| (what, element(*index))),
                ExprKind::Name(Name::Other(name)) if !is_address(body, &parents, id) => {
                    Some((Shared::Global(name.clone()), Element::Constant(0)))
                }
                ExprKind::Call {
                    name: Some(name), args, ..
                } if known(name) == Some(Known::Atomic) => {
                    let target = args.first().map(|a| body.strip_parens(*a));
                    let Some(target) = target else { continue };
                    let hit = match &body.expr(target).kind {
                        ExprKind::AddrOf(place) => match &body.expr(body.strip_parens(*place)).kind {
                            ExprKind::Index { base, index } => named(body, *base).map(|w| (w, element(*index))),
                            _ => named(body, *place).map(|w| (w, Element::Constant(0))),
                        },
                        _ => pointed(body, target).map(|(w, i)| (w, i.map_or(Element::Constant(0), element))),
                    };
                    if let Some((what, element)) = hit {
                        let access = Access {
                            expr: id,
                            element,
                            reads: false,
                            writes: true,
                        };
                        all.push((what, access));
                    }
                    continue;
                }
                _ => None,
            };
            let Some((what, element)) = accessed else { continue };
            let mut place = id;
            while let Some(outer) = parents.get(&place)
                && matches!(body.expr(*outer).kind, ExprKind::Paren(_))
            {
                place = *outer;
            }
            let (reads, writes) = match parents.get(&place).map(|p| &body.expr(*p).kind) {
                Some(ExprKind::Assign { op, place: p, .. }) if *p == place => (op.is_some(), true),
                Some(ExprKind::IncDec { .. }) => (true, true),
                // An address, a part of it, or a row of it: not followed.
                Some(ExprKind::AddrOf(_) | ExprKind::Field { .. }) => continue,
                Some(ExprKind::Index { base, .. }) if *base == place => continue,
                _ => (true, false),
            };
            let access = Access {
                expr: id,
                element,
                reads,
                writes,
            };
            all.push((what, access));
        }
        Accesses { all }
    }

    fn of_shared(&self, what: &Shared) -> Vec<Access> {
        let all = self.all.iter().filter(|(shared, _)| shared == what);
        all.map(|(_, access)| *access).collect()
    }

    /// Global variables that are written.
    fn globals(&self) -> BTreeSet<String> {
        let written = self.all.iter().filter(|(_, access)| access.writes);
        written
            .filter_map(|(what, _)| match what {
                Shared::Global(name) => Some(unqualified(name).to_owned()),
                Shared::Pointer(_) => None,
            })
            .collect()
    }
}

fn named(body: &Body, e: ExprId) -> Option<Shared> {
    match &body.expr(body.strip_parens(e)).kind {
        ExprKind::Name(Name::Local(b)) => Some(Shared::Pointer(*b)),
        ExprKind::Name(Name::Other(name)) => Some(Shared::Global(name.clone())),
        _ => None,
    }
}

/// `p` and `p + index`.
fn pointed(body: &Body, e: ExprId) -> Option<(Shared, Option<ExprId>)> {
    match &body.expr(body.strip_parens(e)).kind {
        ExprKind::Binary(BinOp::Add, pointer, index) => named(body, *pointer).map(|what| (what, Some(*index))),
        _ => named(body, e).map(|what| (what, None)),
    }
}

/// The name stands for an address or a function: it's subscripted, passed on, called.
fn is_address(body: &Body, parents: &HashMap<ExprId, ExprId>, name: ExprId) -> bool {
    match parents.get(&name).map(|p| &body.expr(*p).kind) {
        Some(ExprKind::Index { base, .. }) => *base == name,
        Some(
            ExprKind::AddrOf(_)
            | ExprKind::Deref(_)
            | ExprKind::Call { .. }
            | ExprKind::Launch(_)
            | ExprKind::Field { .. },
        ) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::Element::{Constant, Other, Thread};

    #[test]
    fn elements() {
        assert!(Constant(3).may_be(Constant(3)) && !Constant(3).may_be(Constant(4)));
        assert!(Thread.may_be(Constant(0)) && Thread.may_be(Thread) && !Thread.may_be(Constant(-1)));
        assert!(!Other.may_be(Thread) && !Constant(0).may_be(Other));
    }
}
