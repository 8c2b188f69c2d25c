//! Launches: their places in control flow, configurations, streams and arguments.

use std::collections::BTreeSet;

use super::Generator;
use super::plan::{BufferId, Kernel, Role};
use super::scope::{Scope, Value, clamped};
use crate::fuzz::ast::{
    Expr, Function, Launch, LaunchForm, Stmt, assign, atom, binary, call, cast, conditional, declare, index, int, text,
    unary, when,
};

/// Where a launch is put: the launching kernel as far as it is made.
pub(super) struct Context {
    /// The launching kernel.
    pub kernel: usize,
    /// What can be read here.
    pub scope: Scope,
    /// The number of the launching thread, and how many there are.
    pub number: (Expr, i64),
    /// Counters of the loops around, with the number of their values.
    pub loops: Vec<(Expr, i64)>,
    /// Names that are taken in the function.
    pub taken: BTreeSet<String>,
    /// Begin and count of the vertex, and the greatest count.
    pub edges: Option<(Expr, Value)>,
    /// How many launches a thread may do at most.
    pub launches_left: i64,
    /// Variables of the function that hold small numbers and may be changed.
    pub locals: Vec<String>,
    /// Slots of this thread that may be written: the element and its type.
    pub own_slots: Vec<(Expr, &'static str)>,
    /// Constants whose names mean something else outside of the function.
    pub others: Vec<Value>,
}

impl Context {
    pub fn fresh(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{wanted}{number}");
            number += 1;
        }
        name
    }
}

/// The block size of a launch.
struct Block {
    /// Statements before the launch.
    before: Vec<Stmt>,
    /// The operand.
    written: Expr,
    /// Its x dimension as a number, for the grid size.
    x: Expr,
    /// The number of threads, for the size of shared memory.
    threads: Expr,
}

impl Generator {
    /// A launch of `child` somewhere in nested control flow.
    pub fn place(&mut self, context: &mut Context, child: usize, depth: u32) -> Vec<Stmt> {
        if depth == 0 {
            return self.launch_here(context, child);
        }
        let values = context.scope.values.len();
        let choice = self.random.weighted(&[24, 16, 8, 14, 5, 4, 6, 4, 5, 7, 2]);
        let many = context.launches_left;
        let result = match choice {
            0 | 1 => {
                let cond = context.scope.bool(&mut self.random, 2);
                let then = self.place(context, child, depth - 1);
                let otherwise = if choice == 1 {
                    self.effect(context, 1)
                } else {
                    Vec::new()
                };
                if choice == 1 && self.random.chance(40) && !otherwise.is_empty() {
                    self.feature("launch in else");
                    vec![self.branch(cond, otherwise, then)]
                } else {
                    vec![self.branch(cond, then, otherwise)]
                }
            }
            2 => {
                self.feature("else-if chain");
                let first = context.scope.bool(&mut self.random, 1);
                let second = context.scope.bool(&mut self.random, 1);
                let inner = self.place(context, child, depth - 1);
                let (a, b) = (self.effect(context, 1), self.effect(context, 1));
                let last = self.branch(second, inner, b);
                vec![self.branch(first, a, vec![last])]
            }
            3 if many >= 2 => {
                self.feature("launch in a loop");
                let times = self.random.range(2, many.min(3));
                context.launches_left /= times;
                let name = context.fresh("k");
                let varying = self.random.chance(40);
                let limit = if varying {
                    context.scope.within(&mut self.random, 1, 1, times)
                } else {
                    Value::literal(times)
                };
                context.loops.push((atom(name.clone()), times));
                context.scope.values.push(Value::variable(&name, 0, times - 1));
                let mut body = Vec::new();
                if self.random.chance(25) {
                    let cond = context.scope.bool(&mut self.random, 1);
                    let leave = if self.random.chance(50) { "continue;" } else { "break;" };
                    self.feature(if leave == "break;" {
                        "break before a launch"
                    } else {
                        "continue before a launch"
                    });
                    body.push(self.branch(cond, vec![text(leave)], Vec::new()));
                }
                body.extend(self.place(context, child, depth - 1));
                context.loops.pop();
                let down = self.random.chance(10);
                let (first, cond, step) = if down {
                    let last = binary(limit.expr, "-", int(1));
                    (
                        last,
                        binary(atom(name.clone()), ">=", int(0)),
                        unary("--", atom(name.clone())),
                    )
                } else {
                    (
                        int(0),
                        binary(atom(name.clone()), "<", limit.expr),
                        unary("++", atom(name.clone())),
                    )
                };
                let braces = self.random.chance(60);
                let unroll = self.random.chance(5);
                vec![Stmt::For {
                    init: ("int".to_owned(), name, first),
                    cond,
                    step,
                    body,
                    braces,
                    unroll,
                }]
            }
            4 if many >= 2 => {
                self.feature("launch in a while loop");
                context.launches_left /= 2;
                let name = context.fresh("left");
                let first = context.scope.within(&mut self.random, 1, 0, 2);
                context.loops.push((atom(name.clone()), 2));
                context.scope.values.push(Value::variable(&name, 0, 1));
                let mut body = vec![Stmt::Expr(unary("--", atom(name.clone())))];
                body.extend(self.place(context, child, depth - 1));
                context.loops.pop();
                let cond = binary(atom(name.clone()), ">", int(0));
                vec![declare("int", &name, first.expr), Stmt::While { cond, body }]
            }
            5 if many >= 2 => {
                self.feature("launch in a do loop");
                context.launches_left /= 2;
                let name = context.fresh("round");
                let limit = context.scope.within(&mut self.random, 1, 1, 2);
                context.loops.push((atom(name.clone()), 2));
                context.scope.values.push(Value::variable(&name, 0, 1));
                let body = self.place(context, child, depth - 1);
                context.loops.pop();
                let cond = binary(unary("++", atom(name.clone())), "<", limit.expr);
                vec![declare("int", &name, int(0)), Stmt::DoWhile { body, cond }]
            }
            6 => {
                self.feature("launch in a switch");
                let on = context.scope.within(&mut self.random, 1, 0, 3);
                let mut inner = self.place(context, child, depth - 1);
                if inner
                    .iter()
                    .any(|s| matches!(s, Stmt::Declare { .. } | Stmt::Construct { .. }))
                {
                    inner = vec![Stmt::Block(inner)];
                }
                if self.random.chance(80) {
                    inner.push(text("break;"));
                }
                let mut other = self.effect(context, 1);
                if other.iter().any(|s| matches!(s, Stmt::Declare { .. })) {
                    other = vec![Stmt::Block(other)];
                }
                other.push(text("break;"));
                let mut cases = vec![(Some(0), inner), (Some(2), other)];
                if self.random.chance(50) {
                    cases.reverse();
                }
                if self.random.chance(50) {
                    cases.push((None, vec![text("break;")]));
                }
                vec![Stmt::Switch { on: on.expr, cases }]
            }
            7 => vec![Stmt::Block(self.place(context, child, depth - 1))],
            8 if context.loops.is_empty() => {
                self.feature("early return before a launch");
                let cond = context.scope.bool(&mut self.random, 1);
                let mut stmts = vec![self.branch(cond, vec![text("return;")], Vec::new())];
                stmts.extend(self.place(context, child, depth - 1));
                stmts
            }
            9 => {
                // A variable that hides another one of the same name.
                let Some(name) = self.hidden(context) else {
                    return self.place(context, child, depth - 1);
                };
                self.feature("shadowed variable");
                let from = context.scope.within(&mut self.random, 1, 0, 7);
                let uses_itself = mentions(&from.expr, &name);
                let hidden = context.scope.values.iter().position(|v| v.expr == atom(name.clone()));
                let Some(hidden) = hidden.filter(|_| !uses_itself) else {
                    return self.place(context, child, depth - 1);
                };
                let old = std::mem::replace(
                    &mut context.scope.values[hidden],
                    Value::variable(&name, from.low, from.high),
                );
                let inner = self.place(context, child, depth - 1);
                context.scope.values[hidden] = old;
                let mut stmts = vec![declare("int", &name, from.expr)];
                stmts.extend(inner);
                vec![Stmt::Block(stmts)]
            }
            10 if many >= 2 && context.loops.is_empty() && depth > 1 => {
                self.feature("launch behind a label");
                context.launches_left /= 2;
                let name = context.fresh("turn");
                context.loops.push((atom(name.clone()), 2));
                let inner = self.place(context, child, 1);
                context.loops.pop();
                let again = binary(unary("++", atom(name.clone())), "<", int(2));
                let label = context.fresh("again");
                vec![
                    declare("int", &name, int(0)),
                    text(&format!("{label}:")),
                    Stmt::Block(inner),
                    when(again, vec![Stmt::Text(format!("goto {label};"))]),
                ]
            }
            _ => self.place(context, child, depth - 1),
        };
        context.scope.values.truncate(values);
        result
    }

    fn branch(&mut self, cond: Expr, then: Vec<Stmt>, otherwise: Vec<Stmt>) -> Stmt {
        let braces = self.random.chance(50);
        if !braces {
            self.feature("unbraced body");
        }
        Stmt::If {
            cond,
            then,
            otherwise,
            braces,
        }
    }

    /// A parameter of the kernel that is an `int` in scope and isn't the thread's number.
    fn hidden(&mut self, context: &Context) -> Option<String> {
        let kernel = &self.kernels[context.kernel];
        let loops: Vec<Expr> = context.loops.iter().map(|l| l.0.clone()).collect();
        let names: Vec<String> = kernel
            .params
            .iter()
            .filter(|p| p.ty == "int" && matches!(p.role, Role::Scalar(..)))
            .map(|p| p.name.clone())
            .filter(|n| !loops.contains(&atom(n.clone())))
            .filter(|n| context.scope.values.iter().any(|v| v.expr == atom(n.clone())))
            .collect();
        (!names.is_empty()).then(|| self.random.pick(&names).clone())
    }

    /// The launch itself, with what stands directly around it.
    fn launch_here(&mut self, context: &mut Context, child: usize) -> Vec<Stmt> {
        let values = context.scope.values.len();
        let mut stmts = Vec::new();
        if self.random.chance(35) {
            let name = context.fresh(["x", "grid", "batch", "arena", "children", "t"][self.random.below(6)]);
            let value = context.scope.int(&mut self.random, 2);
            let constant = self.random.chance(40);
            stmts.push(declare(if constant { "const int" } else { "int" }, &name, value.expr));
            context.scope.values.push(Value::variable(&name, value.low, value.high));
        }
        stmts.extend(self.site_statements(context, child));
        context.scope.values.truncate(values);
        stmts
    }

    fn site_statements(&mut self, context: &mut Context, child: usize) -> Vec<Stmt> {
        let spec = self.kernels[child].clone();
        let parent = self.kernels[context.kernel].clone();
        let mut stmts = Vec::new();

        // The number of this launch among all launches of this site.
        let mut number = context.number.0.clone();
        let mut numbers = context.number.1;
        for (counter, times) in &context.loops {
            number = binary(binary(number, "*", int(*times)), "+", counter.clone());
            numbers *= times;
        }

        // How many threads are wanted, and which numbers they get.
        let edges = context
            .edges
            .clone()
            .filter(|_| context.loops.is_empty() && self.random.chance(70));
        let first = spec.numbers;
        let by_edges = edges.as_ref().is_some_and(|(_, count)| count.high <= spec.most);
        let (count, base, given) = match edges {
            Some((begin, count)) if by_edges => {
                let given = self.degrees.iter().sum::<i64>();
                let base = if first == 0 {
                    begin
                } else {
                    binary(begin, "+", int(first))
                };
                (count, base, given)
            }
            _ => {
                let count = match self.random.below(6) {
                    0 => Value::literal(self.random.range(1, spec.most)),
                    1 => self.uniform_count(context, &parent, spec.most),
                    _ => {
                        let raw = context.scope.within(&mut self.random, 2, 0, spec.most);
                        let name = context.fresh(["count", "num", "todo"][self.random.below(3)]);
                        stmts.push(declare("int", &name, raw.expr));
                        Value::variable(&name, raw.low, raw.high)
                    }
                };
                let base = binary(number.clone(), "*", int(spec.most));
                let base = if first == 0 {
                    base
                } else {
                    binary(base, "+", int(first))
                };
                (count, base, numbers * spec.most)
            }
        };
        self.kernels[child].numbers += given;

        // What the launching thread leaves for the child.
        let mut owner = int(0);
        if let Some(notes) = spec.notes {
            owner = self.note(context, &parent, notes, &number, numbers, &mut stmts);
        }

        let positive = self.random.chance(65) && count.low <= 0;
        let block = self.block(context, &spec, &count);
        stmts.extend(block.before.iter().cloned());
        let grid = self.grid(context, &spec, &count, &block, &mut stmts);
        let mut config = vec![grid, block.written.clone()];
        let (stream, mut before, mut after) = self.stream(context);
        let shared = spec.dynamic_shared.then(|| {
            let size = *self.random.pick(&["sizeof(int)", "4"]);
            binary(block.threads.clone(), "*", atom(size))
        });
        if shared.is_some() || stream.is_some() {
            config.push(shared.unwrap_or_else(|| int(0)));
        }
        config.extend(stream);

        let args = self.arguments(context, &spec, &parent, &base, &count, &owner, &mut stmts);
        let site = self.site();
        let mut kernel_name = spec.name.clone();
        if let Some(size) = spec.template_block {
            kernel_name = format!("{kernel_name}<{size}>");
        } else if spec.template_type == Some(false) {
            let ty = spec.slots.first().map_or("int", |s| self.buffers[*s].ty);
            kernel_name = format!("{kernel_name}<{ty}>");
        }
        let form = match self.random.below(20) {
            0 => LaunchForm::Spaced,
            1 | 2 => LaunchForm::Broken,
            3 => LaunchForm::Commented,
            _ => LaunchForm::Plain,
        };
        let launch = Launch {
            site,
            kernel: kernel_name,
            config,
            args,
            form,
        };
        let guarded = positive;
        let mut inner = Vec::new();
        inner.append(&mut before);
        let unusual = self.random.below(100);
        let simple_launch = after.is_empty() && inner.is_empty();
        if unusual < 3 && simple_launch {
            self.feature("launch in a conditional expression");
            let cond = context.scope.bool(&mut self.random, 0);
            inner.push(Stmt::Expr(conditional(
                cond,
                Expr::Launch(Box::new(launch)),
                atom("(void)0"),
            )));
        } else if unusual < 6
            && simple_launch
            && launch.config.len() == 2
            && spec.template_type.is_none()
            && spec.template_block.is_none()
            // The emulator takes a macro's kernel by its address, which has no default arguments.
            && launch.args.len() == spec.params.len()
        {
            self.feature("launch by a macro");
            inner.push(self.by_macro(launch));
        } else if unusual < 10 && simple_launch && spec.template_type.is_none() && spec.template_block.is_none() {
            if let Some(stmt) = self.by_function(child, &launch) {
                self.feature("launch in a device function");
                inner.push(stmt);
            } else {
                inner.push(Stmt::Launch(launch));
            }
        } else if unusual < 13 {
            self.feature("launch under #if");
            inner.push(text("#ifndef NO_CHILDREN"));
            inner.push(Stmt::Launch(launch));
            inner.push(text("#endif"));
        } else {
            inner.push(Stmt::Launch(launch));
        }
        inner.append(&mut after);
        if guarded {
            let cond = binary(count.expr, ">", int(0));
            stmts.push(self.branch(cond, inner, Vec::new()));
        } else {
            if count.low <= 0 {
                self.feature("grids that may be empty");
            }
            stmts.append(&mut inner);
        }
        stmts
    }

    /// A count that is the same for the whole grid.
    fn uniform_count(&mut self, context: &Context, parent: &Kernel, most: i64) -> Value {
        match uniform_values(context, parent).first() {
            Some(value) => clamped(value.clone(), 0, most),
            None => Value::literal(most),
        }
    }

    /// Writes a note for the child in front of the launch.
    fn note(
        &mut self,
        context: &mut Context,
        parent: &Kernel,
        notes: BufferId,
        number: &Expr,
        numbers: i64,
        stmts: &mut Vec<Stmt>,
    ) -> Expr {
        let first = self.buffers[notes].len;
        self.buffers[notes].len += numbers;
        let own = if first == 0 {
            number.clone()
        } else {
            binary(number.clone(), "+", int(first))
        };
        let Some(pointer) = self.pointer_in(parent, notes) else {
            return own;
        };
        let value = context.scope.within(&mut self.random, 2, -900, 900);
        let place = if self.random.chance(30) {
            let name = context.fresh("owner");
            stmts.push(declare("int", &name, own));
            atom(name)
        } else {
            own
        };
        stmts.push(assign(index(pointer, place.clone()), "=", value.expr));
        place
    }

    fn block(&mut self, context: &mut Context, child: &Kernel, count: &Value) -> Block {
        let limit = child.tile.unwrap_or(128);
        let simple = |x: i64| Block {
            before: Vec::new(),
            written: int(x),
            x: int(x),
            threads: int(x),
        };
        if let Some(size) = child.template_block {
            return simple(size);
        }
        if child.dims > 1 {
            let (x, y, z) = *self
                .random
                .pick(&[(8, 4, 1), (4, 4, 1), (3, 5, 1), (16, 2, 1), (4, 2, 3)]);
            let z = if child.dims == 3 { z.max(2) } else { 1 };
            let mut args = vec![int(x), int(y)];
            if child.dims == 3 {
                args.push(int(z));
            }
            let named = self.random.chance(50);
            let mut block = simple(x);
            block.threads = int(x * y * z);
            if named {
                let name = context.fresh("block");
                block.before.push(Stmt::Construct {
                    ty: "dim3".to_owned(),
                    name: name.clone(),
                    args,
                });
                block.written = atom(name);
            } else {
                block.written = call("dim3", args);
            }
            return block;
        }
        let constants: Vec<(String, i64)> = self
            .block_constants
            .iter()
            .filter(|(_, size)| *size <= limit)
            .cloned()
            .collect();
        match self.random.below(12) {
            0 | 1 if !constants.is_empty() => {
                let (name, _) = self.random.pick(&constants).clone();
                Block {
                    before: Vec::new(),
                    written: atom(name.clone()),
                    x: atom(name.clone()),
                    threads: atom(name),
                }
            }
            2 => {
                let name = context.fresh("threads");
                let size = *self.random.pick(&[16, 32, 64]);
                let word = *self.random.pick(&["int", "const int", "unsigned", "const unsigned"]);
                let x = if word.contains("unsigned") {
                    cast("int", atom(name.clone()))
                } else {
                    atom(name.clone())
                };
                Block {
                    before: vec![declare(word, &name, int(size))],
                    written: atom(name.clone()),
                    x: x.clone(),
                    threads: x,
                }
            }
            3 | 4 => {
                self.feature("block size varies");
                let name = context.fresh("threads");
                let size = match self.random.below(3) {
                    0 => conditional(context.scope.bool(&mut self.random, 1), int(16), int(64)),
                    1 => {
                        let by = context.scope.within(&mut self.random, 1, 0, 2);
                        binary(int(8), "<<", by.expr)
                    }
                    _ => {
                        let by = context.scope.within(&mut self.random, 1, 1, 40);
                        by.expr
                    }
                };
                Block {
                    before: vec![declare("int", &name, size)],
                    written: atom(name.clone()),
                    x: atom(name.clone()),
                    threads: atom(name),
                }
            }
            5 if count.low > 0 && count.high <= limit => {
                self.feature("block size is the count");
                Block {
                    before: Vec::new(),
                    written: count.expr.clone(),
                    x: count.expr.clone(),
                    threads: count.expr.clone(),
                }
            }
            6 => {
                self.feature("dim3 variable");
                let name = context.fresh("block");
                let size = *self.random.pick(&[16, 32, 33]);
                Block {
                    before: vec![Stmt::Construct {
                        ty: "dim3".to_owned(),
                        name: name.clone(),
                        args: vec![int(size)],
                    }],
                    written: atom(name),
                    x: int(size),
                    threads: int(size),
                }
            }
            7 => {
                let size = *self.random.pick(&[16, 32]);
                Block {
                    before: Vec::new(),
                    written: call("dim3", vec![int(size), int(1), int(1)]),
                    x: int(size),
                    threads: int(size),
                }
            }
            _ => simple(*self.random.pick(&[1, 7, 16, 32, 32, 33, 64, 64])),
        }
    }

    fn grid(
        &mut self,
        context: &mut Context,
        child: &Kernel,
        count: &Value,
        block: &Block,
        stmts: &mut Vec<Stmt>,
    ) -> Expr {
        let covering = {
            let (count, size) = (count.expr.clone(), block.x.clone());
            let up = match &size {
                Expr::Atom(text) if text.parse::<i64>().is_ok() && self.random.chance(70) => {
                    let number = text.parse::<i64>().unwrap_or(1);
                    binary(count, "+", int(number - 1))
                }
                _ => binary(binary(count, "+", size.clone()), "-", int(1)),
            };
            binary(up, "/", size)
        };
        let size = match self.random.below(14) {
            0 => {
                self.feature("grid doesn't cover the count");
                int(self.random.range(1, 2))
            }
            1 => binary(binary(count.expr.clone(), "/", block.x.clone()), "+", int(1)),
            2 => {
                self.feature("grid doesn't cover the count");
                call("max", vec![int(1), binary(count.expr.clone(), "/", block.x.clone())])
            }
            3 | 4 if self.ceil_div.is_some() => {
                let name = self.ceil_div.clone().unwrap_or_default();
                call(&name, vec![count.expr.clone(), block.x.clone()])
            }
            5 => call(
                "ceilf",
                vec![binary(count.expr.clone(), "/", cast("float", block.x.clone()))],
            ),
            _ => covering,
        };
        if child.dims > 1 {
            let mut args = vec![size, int(self.random.range(1, 2))];
            if child.dims == 3 {
                args.push(int(self.random.range(1, 2)));
            }
            if self.random.chance(50) {
                let name = context.fresh("grid");
                stmts.push(Stmt::Construct {
                    ty: "dim3".to_owned(),
                    name: name.clone(),
                    args,
                });
                return atom(name);
            }
            return call("dim3", args);
        }
        match self.random.below(10) {
            0 => {
                self.feature("dim3 variable");
                let name = context.fresh("grid");
                stmts.push(Stmt::Construct {
                    ty: "dim3".to_owned(),
                    name: name.clone(),
                    args: vec![size],
                });
                atom(name)
            }
            1 => {
                self.feature("dim3 assigned on several paths");
                let name = context.fresh("grid");
                stmts.push(Stmt::Construct {
                    ty: "dim3".to_owned(),
                    name: name.clone(),
                    args: vec![int(1)],
                });
                let cond = context.scope.bool(&mut self.random, 1);
                let change = if self.random.chance(50) {
                    assign(atom(name.clone()), "=", call("dim3", vec![size]))
                } else {
                    assign(Expr::Member(Box::new(atom(name.clone())), "x".to_owned()), "=", size)
                };
                stmts.push(when(cond, vec![change]));
                atom(name)
            }
            2 | 3 => {
                let name = context.fresh("blocks");
                stmts.push(declare("int", &name, size));
                atom(name)
            }
            _ => size,
        }
    }

    /// The stream operand, with statements before and after the launch.
    fn stream(&mut self, context: &mut Context) -> (Option<Expr>, Vec<Stmt>, Vec<Stmt>) {
        match self.random.weighted(&[50, 6, 4, 18, 14, 4]) {
            1 => (Some(atom("0")), Vec::new(), Vec::new()),
            2 => (Some(atom("nullptr")), Vec::new(), Vec::new()),
            3 => {
                self.feature("fire-and-forget stream");
                (Some(atom("cudaStreamFireAndForget")), Vec::new(), Vec::new())
            }
            4 => {
                self.feature("created stream");
                let name = context.fresh("stream");
                let create = call(
                    "cudaStreamCreateWithFlags",
                    vec![unary("&", atom(name.clone())), atom("cudaStreamNonBlocking")],
                );
                let before = vec![
                    Stmt::Declare {
                        ty: "cudaStream_t".to_owned(),
                        name: name.clone(),
                        init: None,
                    },
                    Stmt::Expr(create),
                ];
                let after = vec![Stmt::Expr(call("cudaStreamDestroy", vec![atom(name.clone())]))];
                (Some(atom(name)), before, after)
            }
            5 => {
                self.feature("tail launch");
                (Some(atom("cudaStreamTailLaunch")), Vec::new(), Vec::new())
            }
            _ => (None, Vec::new(), Vec::new()),
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn arguments(
        &mut self,
        context: &mut Context,
        child: &Kernel,
        parent: &Kernel,
        base: &Expr,
        count: &Value,
        owner: &Expr,
        stmts: &mut Vec<Stmt>,
    ) -> Vec<Expr> {
        let mut args = Vec::new();
        for param in &child.params {
            if param.default.is_some() && self.random.chance(60) {
                self.feature("argument left out");
                break;
            }
            let arg = match &param.role {
                Role::Pointer(buffer) => {
                    let pointer = self.pointer_in(parent, *buffer).unwrap_or_else(|| atom("nullptr"));
                    if self.random.chance(6) && !self.buffers[*buffer].global {
                        let name = context.fresh("where");
                        let ty = self.buffers[*buffer].ty;
                        let constant = if self.buffers[*buffer].shown { "" } else { "const " };
                        stmts.push(declare(&format!("{constant}{ty}*"), &name, pointer));
                        atom(name)
                    } else {
                        pointer
                    }
                }
                Role::OwnSlots(buffer) => {
                    let pointer = self.pointer_in(parent, *buffer).unwrap_or_else(|| atom("nullptr"));
                    if self.random.chance(50) {
                        binary(pointer, "+", base.clone())
                    } else {
                        unary("&", index(pointer, base.clone()))
                    }
                }
                Role::Base => base.clone(),
                Role::Count => count.expr.clone(),
                Role::Owner => owner.clone(),
                Role::Range(form) => {
                    let parts = vec![base.clone(), count.expr.clone()];
                    if *form == "int2" {
                        call("make_int2", parts)
                    } else if self.random.chance(50) {
                        Expr::Braces("Range".to_owned(), parts)
                    } else {
                        let name = context.fresh("range");
                        stmts.push(declare("Range", &name, Expr::Braces(String::new(), parts)));
                        atom(name)
                    }
                }
                Role::Depth(most) => context.scope.within(&mut self.random, 1, 0, *most).expr,
                Role::Float => {
                    if self.random.chance(30) {
                        context.scope.within(&mut self.random, 2, -100, 100).expr
                    } else {
                        context.scope.float(&mut self.random)
                    }
                }
                Role::Scalar(low, high) => self.scalar(context, parent, &param.ty, *low, *high, stmts),
                Role::Bundle(_) => atom("nullptr"),
                Role::Object(written) => atom(written.clone()),
            };
            args.push(arg);
        }
        args
    }

    fn scalar(
        &mut self,
        context: &mut Context,
        parent: &Kernel,
        ty: &str,
        low: i64,
        high: i64,
        stmts: &mut Vec<Stmt>,
    ) -> Expr {
        let uniform = uniform_values(context, parent);
        let value = match self.random.below(10) {
            0..=4 if !context.others.is_empty() => clamped(self.random.pick(&context.others).clone(), low, high),
            0..=2 if !uniform.is_empty() => clamped(self.random.pick(&uniform).clone(), low, high),
            3 | 4 => Value::literal(self.random.range(low, high)),
            5 => clamped(
                Value::new(
                    cast("int", Expr::Member(Box::new(atom("blockIdx")), "x".to_owned())),
                    0,
                    64,
                ),
                low,
                high,
            ),
            _ => context.scope.within(&mut self.random, 2, low, high),
        };
        match ty {
            "Mode" => cast("Mode", value.expr),
            "bool" if self.random.chance(60) => context.scope.bool(&mut self.random, 1),
            "char" if self.random.chance(10) => atom("'0'"),
            "short" | "unsigned char" | "long long" | "size_t" if self.random.chance(30) => {
                let name = context.fresh("value");
                stmts.push(declare(ty, &name, value.expr));
                atom(name)
            }
            _ => value.expr,
        }
    }

    /// The launch as a use of a macro.
    fn by_macro(&mut self, launch: Launch) -> Stmt {
        let plain = "#define LAUNCH(child_kernel, grid, block, ...) child_kernel<<<grid, block>>>(__VA_ARGS__)";
        if self.names.insert("LAUNCH".to_owned()) {
            self.text(plain);
        }
        // By statements of the macro's own, out of another macro, and below a condition of it.
        let (name, define) = match self.random.below(6) {
            0 => (
                "LAUNCH_ONCE",
                "do { \\\n        const dim3 grid_(grid), block_(block); \\\n        child_kernel<<<grid_, block_>>>(__VA_ARGS__); \\\n    } while (0)",
            ),
            1 => ("LAUNCH_NESTED", "LAUNCH(child_kernel, grid, block, __VA_ARGS__)"),
            2 => (
                "LAUNCH_SOME",
                "do { if (LAUNCH_LEAVES) break; LAUNCH(child_kernel, grid, block, __VA_ARGS__); } while (0)",
            ),
            _ => ("LAUNCH", ""),
        };
        if name == "LAUNCH_SOME" && self.names.insert("LAUNCH_LEAVES".to_owned()) {
            self.text("#define LAUNCH_LEAVES threadIdx.x > 1000");
        }
        if !define.is_empty() && self.names.insert(name.to_owned()) {
            self.text(format!("#define {name}(child_kernel, grid, block, ...) {define}"));
        }
        let mut args = vec![atom(launch.kernel)];
        // Commas in braces would part a macro's argument.
        let plain = |e: &Expr| !matches!(e, Expr::Braces(..));
        if !launch.args.iter().all(plain) {
            return Stmt::Launch(Launch {
                kernel: launch_name(&args),
                ..launch
            });
        }
        args.extend(launch.config);
        args.extend(launch.args);
        Stmt::Expr(call(name, args))
    }

    /// A device function that does nothing but the launch, and the call of it.
    fn by_function(&mut self, child: usize, launch: &Launch) -> Option<Stmt> {
        let spec = self.kernels[child].clone();
        if launch.args.len() != spec.params.len() || launch.config.len() > 3 {
            return None;
        }
        let name = self.fresh(&format!("launch_{}", spec.name));
        let mut params: Vec<crate::fuzz::ast::Param> =
            vec![super::param("dim3", "grid"), super::param("dim3", "block")];
        let mut config = vec![atom("grid"), atom("block")];
        if launch.config.len() == 3 {
            params.push(super::param("unsigned", "bytes"));
            config.push(atom("bytes"));
        }
        for param in &spec.params {
            params.push(super::param(&param.ty, &format!("{}_", param.name)));
        }
        let inner = Launch {
            site: launch.site,
            kernel: launch.kernel.clone(),
            config,
            args: spec.params.iter().map(|p| atom(format!("{}_", p.name))).collect(),
            form: LaunchForm::Plain,
        };
        let function = Function {
            template: None,
            head: "__device__ void".to_owned(),
            name: name.clone(),
            params,
            body: vec![Stmt::Launch(inner)],
        };
        self.functions.entry(child).or_default().push(function);
        let mut args: Vec<Expr> = Vec::new();
        for (index, config) in launch.config.iter().enumerate() {
            let plain_float = matches!(config, Expr::Call(name, _) if name == "ceilf");
            args.push(if plain_float && index < 2 {
                cast("int", config.clone())
            } else {
                config.clone()
            });
        }
        args.extend(launch.args.iter().cloned());
        Some(Stmt::Expr(call(&name, args)))
    }
}

fn launch_name(args: &[Expr]) -> String {
    match args.first() {
        Some(Expr::Atom(name)) => name.clone(),
        _ => String::new(),
    }
}

/// Numbers in scope that are made of a parameter of the launching kernel (or of what hides it).
fn uniform_values(context: &Context, parent: &Kernel) -> Vec<Value> {
    let is_scalar = |v: &&Value| {
        let params = parent.params.iter().filter(|p| matches!(p.role, Role::Scalar(..)));
        params.clone().any(|p| mentions(&v.expr, &p.name))
    };
    context.scope.values.iter().filter(is_scalar).cloned().collect()
}

/// Whether an expression uses a name.
pub(super) fn mentions(expr: &Expr, name: &str) -> bool {
    match expr {
        Expr::Atom(text) => text == name,
        Expr::Unary(_, x) | Expr::Postfix(_, x) | Expr::Cast(_, x) | Expr::Member(x, _) => mentions(x, name),
        Expr::Binary(_, x, y) | Expr::Index(x, y) => mentions(x, name) || mentions(y, name),
        Expr::Conditional(c, x, y) => mentions(c, name) || mentions(x, name) || mentions(y, name),
        Expr::Call(_, args) | Expr::Braces(_, args) => args.iter().any(|a| mentions(a, name)),
        Expr::Launch(launch) => launch.config.iter().chain(&launch.args).any(|a| mentions(a, name)),
    }
}
