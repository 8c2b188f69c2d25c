//! Bodies of children, and statements with effects.

use std::collections::BTreeSet;

use super::Generator;
use super::launch::Context;
use super::plan::{Kernel, Kind, Role};
use super::scope::{Scope, Table, Value, clamped};
use super::thread_index;
use crate::fuzz::ast::{
    Expr, Function, Launch, LaunchForm, Param, Stmt, assign, atom, binary, call, cast, declare, index, int, member,
    text, unary, when,
};

impl Generator {
    /// Bodies of all kernels: launchers before what they launch, because a launch gives out numbers to its child's threads.
    pub fn bodies(&mut self) {
        for kernel in (0..self.kernels.len()).rev() {
            let body = if let Some(body) = self.kernels[kernel].body.clone() {
                body
            } else if self.kernels[kernel].parent {
                self.parent_body(kernel)
            } else if self.kernels[kernel].kind == Kind::Recursive {
                self.recursive_body(kernel)
            } else {
                self.child_body(kernel)
            };
            let function = self.function(kernel, body);
            self.functions.entry(kernel).or_default().insert(0, function);
            for slots in self.kernels[kernel].slots.clone() {
                self.buffers[slots].len = self.kernels[kernel].numbers.max(1);
            }
        }
    }

    /// The kernel with its head.
    fn function(&mut self, kernel: usize, body: Vec<Stmt>) -> Function {
        let spec = &self.kernels[kernel];
        let params = spec
            .params
            .iter()
            .map(|p| Param {
                ty: p.ty.clone(),
                name: p.name.clone(),
                default: p.default.map(|d| d.to_string()),
            })
            .collect();
        let template = match (spec.template_block, spec.template_type) {
            (Some(_), _) => Some("template <int B>".to_owned()),
            (None, Some(_)) => Some(
                if self.random.chance(50) {
                    "template <class T>"
                } else {
                    "template <typename T>"
                }
                .to_owned(),
            ),
            (None, None) if spec.instances.is_some() => spec.instances.as_ref().map(|i| i.head.to_owned()),
            (None, None) if spec.template_op => Some("template <class Op>".to_owned()),
            (None, None) => None,
        };
        let own = spec.head;
        let heads: &[&str] = if template.is_some() {
            &["__global__ void", "__global__ void", "static __global__ void"]
        } else {
            &[
                "__global__ void",
                "__global__ void",
                "__global__ void",
                "__global__ void",
                "static __global__ void",
                "__global__ __launch_bounds__(256) void",
                "__global__ void __launch_bounds__(128)",
                "inline __global__ void",
            ]
        };
        let mut head = *self.random.pick(heads);
        // The GPU runs no larger blocks than these.
        if head.contains("__launch_bounds__") && spec.block.as_ref().is_some_and(|block| *block == int(512)) {
            head = "__global__ void";
        }
        let head = own.unwrap_or(head).to_owned();
        Function {
            template,
            head,
            name: spec.name.clone(),
            params,
            body,
        }
    }

    /// What a kernel's parameters let expressions use.
    pub fn scope_of(&mut self, kernel: &Kernel) -> Scope {
        let mut scope = self.common.clone();
        scope.values.extend(self.device.values.iter().cloned());
        scope.tables.extend(self.device.tables.iter().cloned());
        scope
            .helpers
            .extend(self.helpers.iter().filter(|h| h.arity > 0).cloned());
        for param in &kernel.params {
            match &param.role {
                Role::Scalar(low, high) => scope.values.push(scalar_value(&param.ty, &param.name, *low, *high)),
                Role::Float => scope.floats.push(param.name.clone()),
                Role::Depth(most) => scope.values.push(Value::variable(&param.name, 0, *most)),
                _ => {}
            }
        }
        if let Some(pointer) = self.pointer_in(kernel, 0) {
            scope.tables.push(Table {
                pointer,
                mask: 255,
                bounds: (0, 99),
                read_only: true,
            });
        }
        if kernel.template_block.is_some() {
            scope.values.push(Value::variable("B", 16, 64));
        }
        scope
    }

    /// An empty context of a kernel.
    pub fn context(&mut self, kernel: usize) -> Context {
        let spec = self.kernels[kernel].clone();
        let mut taken: BTreeSet<String> = spec.params.iter().map(|p| p.name.clone()).collect();
        taken.extend(self.kernels.iter().map(|k| k.name.clone()));
        taken.extend(self.names.iter().cloned());
        Context {
            kernel,
            scope: self.scope_of(&spec),
            number: (int(0), 1),
            loops: Vec::new(),
            taken,
            edges: None,
            launches_left: 6,
            locals: Vec::new(),
            own_slots: Vec::new(),
            others: Vec::new(),
        }
    }

    fn child_body(&mut self, kernel: usize) -> Vec<Stmt> {
        let spec = self.kernels[kernel].clone();
        let mut context = self.context(kernel);
        let mut stmts = Vec::new();
        let (mut begin, mut count) = (None, None);
        for param in &spec.params {
            let name = atom(param.name.clone());
            match &param.role {
                Role::Base => begin = Some(name),
                Role::Count => count = Some(name),
                Role::Range("int2") => {
                    begin = Some(member(name.clone(), "x"));
                    count = Some(member(name, "y"));
                }
                Role::Range(_) => {
                    begin = Some(member(name.clone(), "begin"));
                    count = Some(member(name, "count"));
                }
                Role::Owner => {
                    if let Some(notes) = spec.notes.and_then(|b| self.pointer_in(&spec, b)) {
                        context.scope.values.push(Value::new(index(notes, name), -900, 900));
                    }
                }
                _ => {}
            }
        }

        // The number of the thread in its grid.
        let i = context.fresh(["i", "e", "tid", "j"][self.random.below(4)]);
        let striding = spec.dims == 1 && count.is_some() && self.random.chance(12);
        let mut limit = spec.most - 1;
        if count.is_none() {
            limit = 255;
        }
        if !striding {
            stmts.extend(self.thread_number(&spec, &i));
        }
        let whole = Value::new(atom(i.clone()), 0, 4095);
        let value = Value::variable(&i, 0, limit);
        if let Some(count) = &count {
            context.scope.values.push(Value::new(count.clone(), 0, spec.most));
        }
        context.number = match &begin {
            Some(begin) => (binary(begin.clone(), "+", atom(i.clone())), spec.numbers.max(1)),
            None => (atom(i.clone()), spec.numbers.max(1)),
        };
        for slots in &spec.slots {
            if let Some(pointer) = self.pointer_in(&spec, *slots) {
                context
                    .own_slots
                    .push((index(pointer, context.number.0.clone()), self.buffers[*slots].ty));
            }
        }

        // What all threads of a block do together.
        if spec.dynamic_shared || spec.tile.is_some() {
            let values = context.scope.values.len();
            if striding {
                let thread = cast("int", member(atom("threadIdx"), "x"));
                context.scope.values.push(Value::new(thread, 0, 127));
            } else {
                context.scope.values.push(clamped(whole, 0, 255));
            }
            let at = context.scope.values.len();
            stmts.extend(self.together(&mut context, &spec));
            context.scope.values.drain(values..at);
        }

        context.scope.values.push(value);
        let mut inner = Vec::new();
        if self.random.chance(35) {
            let name = context.fresh("sum");
            inner.push(declare("int", &name, int(0)));
            context.scope.values.push(Value::variable(&name, -1008, 1008));
            context.locals.push(name);
        }
        if self.random.chance(15) {
            self.change_parameter(&mut context, &spec, "child changes a parameter", &mut inner);
        }
        let depth = 1 + self.random.below(2) as u32;
        for _ in 0..self.random.range(1, 2) {
            inner.extend(self.effect(&mut context, depth));
        }
        if let Some((place, ty)) = context.own_slots.first().cloned() {
            let write = self.slot_write(&context, place, ty);
            inner.push(write);
        }
        for child in spec.launches.clone() {
            context.launches_left = 2;
            let at = if self.random.chance(50) { 0 } else { inner.len() };
            let rare = context.scope.bool(&mut self.random, 0);
            let launch = self.place(&mut context, child, 1);
            let launch = if self.random.chance(50) {
                vec![when(rare, launch)]
            } else {
                launch
            };
            // A launch that uses what the statements declare has to stand behind them.
            let declares = inner.iter().any(|s| matches!(s, Stmt::Declare { .. }));
            let at = if declares { inner.len() } else { at };
            inner.splice(at..at, launch);
        }
        if context.locals.is_empty() && context.own_slots.is_empty() || self.random.chance(40) {
            inner.extend(self.effect(&mut context, 0));
        }

        let Some(count) = count else {
            let limit = int(self.random.range(1, limit.min(40)));
            if self.random.chance(50) {
                let cond = binary(atom(i), "<", limit);
                stmts.push(when(cond, inner));
            } else {
                let cond = binary(atom(i), ">=", limit);
                stmts.push(Stmt::If {
                    cond,
                    then: vec![text("return;")],
                    otherwise: Vec::new(),
                    braces: false,
                });
                stmts.extend(inner);
            }
            return stmts;
        };
        if striding {
            self.feature("child with a grid-stride loop");
            let stride = binary(member(atom("gridDim"), "x"), "*", member(atom("blockDim"), "x"));
            stmts.push(Stmt::For {
                init: ("int".to_owned(), i.clone(), thread_index("x")),
                cond: binary(atom(i.clone()), "<", count),
                step: binary(atom(i), "+=", stride),
                body: inner,
                braces: true,
                unroll: false,
            });
        } else if self.random.chance(45) {
            self.feature("early return in a child");
            stmts.push(Stmt::If {
                cond: binary(atom(i), ">=", count),
                then: vec![text("return;")],
                otherwise: Vec::new(),
                braces: false,
            });
            stmts.extend(inner);
        } else {
            let thread = i.clone();
            let cond = if self.random.chance(80) {
                binary(atom(i), "<", count)
            } else {
                binary(count, ">", atom(i))
            };
            stmts.push(Stmt::If {
                cond,
                then: inner,
                otherwise: Vec::new(),
                braces: false,
            });
            if self.random.chance(20) {
                self.feature("child does something behind its guard");
                context.scope.values.clear();
                context.scope.tables.clear();
                context.scope.values.push(Value::variable(&thread, 0, 4095));
                context.locals.clear();
                stmts.extend(self.accumulate(&mut context, &spec));
            }
        }
        stmts
    }

    /// `int i = blockIdx.x * blockDim.x + threadIdx.x;` in many ways.
    pub fn thread_number(&mut self, spec: &Kernel, name: &str) -> Vec<Stmt> {
        if spec.dims == 1 {
            return match self.random.below(10) {
                0 | 1 if !self.global_id.is_empty() => {
                    let id = self.random.pick(&self.global_id.clone()).clone();
                    self.feature("GLOBAL_ID");
                    vec![declare("int", name, atom(id))]
                }
                2 => vec![declare(
                    "const int",
                    name,
                    binary(
                        member(atom("threadIdx"), "x"),
                        "+",
                        binary(member(atom("blockDim"), "x"), "*", member(atom("blockIdx"), "x")),
                    ),
                )],
                3 => vec![declare(
                    "int",
                    name,
                    cast("int", Expr::Call(String::new(), vec![thread_index("x")])),
                )],
                4 => {
                    let first = format!("{name}_first");
                    vec![
                        declare(
                            "int",
                            &first,
                            binary(member(atom("blockIdx"), "x"), "*", member(atom("blockDim"), "x")),
                        ),
                        declare("int", name, binary(atom(first), "+", member(atom("threadIdx"), "x"))),
                    ]
                }
                _ => vec![declare("int", name, thread_index("x"))],
            };
        }
        let (x, y) = (format!("{name}x"), format!("{name}y"));
        let width = binary(member(atom("gridDim"), "x"), "*", member(atom("blockDim"), "x"));
        let mut stmts = vec![
            declare("int", &x, thread_index("x")),
            declare("int", &y, thread_index("y")),
        ];
        let row = binary(binary(atom(y), "*", width.clone()), "+", atom(x));
        if spec.dims == 2 {
            stmts.push(declare("int", name, row));
            return stmts;
        }
        let height = binary(member(atom("gridDim"), "y"), "*", member(atom("blockDim"), "y"));
        let z = format!("{name}z");
        stmts.push(declare("int", &z, thread_index("z")));
        let plane = binary(binary(atom(z), "*", height), "*", width);
        stmts.push(declare("int", name, binary(plane, "+", row)));
        stmts
    }

    /// A phase with shared memory and barriers, which leaves a number for later.
    fn together(&mut self, context: &mut Context, spec: &Kernel) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        let lane = context.fresh("lane");
        let volume = |axes: &[&str]| {
            let mut product = member(atom("blockDim"), axes[0]);
            for axis in &axes[1..] {
                product = binary(product, "*", member(atom("blockDim"), axis));
            }
            product
        };
        let linear = match spec.dims {
            1 => member(atom("threadIdx"), "x"),
            2 => binary(
                binary(member(atom("threadIdx"), "y"), "*", member(atom("blockDim"), "x")),
                "+",
                member(atom("threadIdx"), "x"),
            ),
            _ => binary(
                binary(
                    binary(
                        binary(member(atom("threadIdx"), "z"), "*", member(atom("blockDim"), "y")),
                        "+",
                        member(atom("threadIdx"), "y"),
                    ),
                    "*",
                    member(atom("blockDim"), "x"),
                ),
                "+",
                member(atom("threadIdx"), "x"),
            ),
        };
        let threads = volume(&["x", "y", "z"][..spec.dims]);
        let tile = context.fresh("tile");
        if self.random.chance(30) && spec.tile.is_some() {
            // A sum over the block.
            let value = context.scope.within(&mut self.random, 2, 0, 50);
            let part = context.fresh("part");
            let first = binary(linear, "==", int(0));
            stmts.push(text(&format!("__shared__ int {part};")));
            stmts.push(when(first, vec![assign(atom(part.clone()), "=", int(0))]));
            stmts.push(text("__syncthreads();"));
            stmts.push(Stmt::Expr(call(
                "atomicAdd",
                vec![unary("&", atom(part.clone())), value.expr],
            )));
            stmts.push(text("__syncthreads();"));
            context.scope.values.push(Value::variable(&part, 0, 50 * 128));
            return stmts;
        }
        stmts.push(text(&match spec.tile {
            Some(size) => format!("__shared__ int {tile}[{size}];"),
            None => format!("extern __shared__ int {tile}[];"),
        }));
        stmts.push(declare("int", &lane, linear));
        let value = context.scope.within(&mut self.random, 2, -500, 500);
        stmts.push(assign(index(atom(tile.clone()), atom(lane.clone())), "=", value.expr));
        stmts.push(text("__syncthreads();"));
        let other = if self.random.chance(50) {
            binary(binary(threads, "-", int(1)), "-", atom(lane.clone()))
        } else {
            binary(binary(atom(lane.clone()), "+", int(1)), "%", threads)
        };
        let seen = context.fresh("seen");
        stmts.push(declare("int", &seen, index(atom(tile.clone()), other)));
        context.scope.values.push(Value::variable(&seen, -500, 500));
        if self.random.chance(30) {
            stmts.push(text("__syncthreads();"));
            stmts.push(assign(index(atom(tile), atom(lane.clone())), "=", int(1)));
            stmts.push(text("__syncthreads();"));
        }
        stmts
    }

    /// Changes a parameter as if it were a variable.
    pub fn change_parameter(
        &mut self,
        context: &mut Context,
        spec: &Kernel,
        feature: &'static str,
        inner: &mut Vec<Stmt>,
    ) {
        let ints: Vec<(String, i64, i64)> = spec
            .params
            .iter()
            .filter_map(|p| match p.role {
                Role::Scalar(low, high) if p.ty == "int" => Some((p.name.clone(), low, high)),
                _ => None,
            })
            .collect();
        if ints.is_empty() {
            return;
        }
        self.feature(feature);
        let (name, low, high) = self.random.pick(&ints).clone();
        let value = context.scope.within(&mut self.random, 1, low, high);
        inner.push(assign(atom(name), "=", value.expr));
    }

    /// Writes the slot of this thread.
    fn slot_write(&mut self, context: &Context, place: Expr, ty: &'static str) -> Stmt {
        let value = match ty {
            "float" | "double" => context.scope.float(&mut self.random),
            "unsigned char" => context.scope.within(&mut self.random, 3, 0, 255).expr,
            "short" => context.scope.within(&mut self.random, 3, -3000, 3000).expr,
            _ => context.scope.int(&mut self.random, 3).expr,
        };
        assign(place, "=", value)
    }

    /// Statements with an effect that no other thread can tell from another order.
    pub fn effect(&mut self, context: &mut Context, depth: u32) -> Vec<Stmt> {
        let kernel = self.kernels[context.kernel].clone();
        let values = context.scope.values.len();
        let choice = self.random.below(if depth == 0 { 4 } else { 10 });
        let stmts = match choice {
            0 | 1 => self.accumulate(context, &kernel).map(|s| vec![s]).unwrap_or_default(),
            2 | 3 if !context.locals.is_empty() => vec![self.change_local(context)],
            4 | 5 => {
                let cond = context.scope.bool(&mut self.random, 2);
                let then = self.effect(context, depth - 1);
                let otherwise = if self.random.chance(40) {
                    self.effect(context, depth - 1)
                } else {
                    Vec::new()
                };
                let braces = self.random.chance(50);
                if then.is_empty() {
                    Vec::new()
                } else {
                    vec![Stmt::If {
                        cond,
                        then,
                        otherwise,
                        braces,
                    }]
                }
            }
            6 => {
                let name = context.fresh("r");
                let times = context.scope.within(&mut self.random, 1, 0, 3);
                context.scope.values.push(Value::variable(&name, 0, 2));
                let body = self.effect(context, depth - 1);
                if body.is_empty() {
                    Vec::new()
                } else {
                    vec![Stmt::For {
                        init: ("int".to_owned(), name.clone(), int(0)),
                        cond: binary(atom(name.clone()), "<", times.expr),
                        step: Expr::Postfix("++", Box::new(atom(name))),
                        body,
                        braces: false,
                        unroll: false,
                    }]
                }
            }
            7 => {
                let on = context.scope.within(&mut self.random, 1, 0, 4);
                let mut cases = Vec::new();
                for value in 0..self.random.range(1, 2) {
                    let mut body = vec![Stmt::Block(self.effect(context, depth - 1))];
                    if self.random.chance(75) {
                        body.push(text("break;"));
                    }
                    cases.push((Some(value), body));
                }
                cases.push((None, vec![text("break;")]));
                vec![Stmt::Switch { on: on.expr, cases }]
            }
            8 => {
                let name = context.fresh("t");
                let value = context.scope.int(&mut self.random, 2);
                let mut stmts = vec![declare("int", &name, value.expr)];
                context.scope.values.push(Value::variable(&name, value.low, value.high));
                stmts.extend(self.effect(context, depth - 1));
                vec![Stmt::Block(stmts)]
            }
            _ => self.accumulate(context, &kernel).map(|s| vec![s]).unwrap_or_default(),
        };
        context.scope.values.truncate(values);
        stmts
    }

    fn change_local(&mut self, context: &mut Context) -> Stmt {
        let name = self.random.pick(&context.locals).clone();
        let by = context.scope.within(&mut self.random, 2, -1000, 1000);
        match self.random.below(3) {
            0 => assign(atom(name), "=", by.expr),
            1 => assign(
                atom(name.clone()),
                "=",
                binary(binary(atom(name), "+", by.expr), "%", int(1000)),
            ),
            _ => assign(
                atom(name.clone()),
                "=",
                call("max", vec![atom(name), clamped(by, 0, 900).expr]),
            ),
        }
    }

    fn accumulate(&mut self, context: &mut Context, kernel: &Kernel) -> Option<Stmt> {
        let reachable: Vec<usize> = (0..self.buffers.len())
            .filter(|b| self.buffers[*b].atomic.is_some() && self.pointer_in(kernel, *b).is_some())
            .collect();
        if reachable.is_empty() {
            return None;
        }
        let buffer = *self.random.pick(&reachable);
        let at = context.scope.int(&mut self.random, 1);
        let by = context.scope.int(&mut self.random, 2);
        self.atomic(kernel, buffer, at, by)
    }

    /// A kernel that launches itself for the halves of its range.
    fn recursive_body(&mut self, kernel: usize) -> Vec<Stmt> {
        let spec = self.kernels[kernel].clone();
        let mut context = self.context(kernel);
        let named = |wanted: fn(&Role) -> bool| {
            spec.params
                .iter()
                .find(|p| wanted(&p.role))
                .map_or_else(|| int(0), |p| atom(p.name.clone()))
        };
        let begin = named(|r| matches!(r, Role::Base));
        let count = named(|r| matches!(r, Role::Count));
        let depth = named(|r| matches!(r, Role::Depth(_)));
        let mut stmts = vec![declare("int", "i", thread_index("x"))];
        context.taken.insert("i".to_owned());
        context.scope.values.push(Value::variable("i", 0, spec.most - 1));
        context.number = (binary(begin.clone(), "+", atom("i")), spec.numbers.max(1));
        let half = context.fresh("half");
        let one_more = binary(count.clone(), ">", int(1));
        let goes_on = binary(binary(depth.clone(), ">", int(0)), "&&", one_more);
        let mut parts = vec![declare("int", &half, binary(count.clone(), "/", int(2)))];
        for (first, part) in [
            (begin.clone(), atom(half.clone())),
            (
                binary(begin, "+", atom(half.clone())),
                binary(count.clone(), "-", atom(half)),
            ),
        ] {
            let args = spec
                .params
                .iter()
                .map(|p| match p.role {
                    Role::Base => first.clone(),
                    Role::Count => part.clone(),
                    Role::Depth(_) => binary(depth.clone(), "-", int(1)),
                    _ => atom(p.name.clone()),
                })
                .collect();
            parts.push(Stmt::Launch(Launch {
                site: self.site(),
                kernel: spec.name.clone(),
                config: vec![int(1), int(16)],
                args,
                form: LaunchForm::Plain,
            }));
        }
        parts.push(text("return;"));
        let first_thread = when(binary(atom("i"), "==", int(0)), {
            parts.pop();
            parts
        });
        let mut leaf = self.effect(&mut context, 1);
        if let Some(pointer) = spec.slots.first().and_then(|s| self.pointer_in(&spec, *s)) {
            let write = self.slot_write(&context, index(pointer, context.number.0.clone()), "int");
            leaf.push(write);
        }
        let inner = vec![when(binary(atom("i"), "<", count), leaf)];
        stmts.push(Stmt::If {
            cond: goes_on,
            then: vec![first_thread],
            otherwise: inner,
            braces: true,
        });
        stmts
    }
}

/// A parameter as an `int`.
pub(super) fn scalar_value(ty: &str, name: &str, low: i64, high: i64) -> Value {
    let plain = matches!(ty, "int" | "const int");
    let expr = if plain { atom(name) } else { cast("int", atom(name)) };
    Value::new(expr, low, high)
}
