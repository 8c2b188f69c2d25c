//! Parents whose children rely on the order that a stream gives them: time steps, producer and consumer, tail launches.

use super::Generator;
use super::plan::{BufferId, Fill, Kernel, KernelParam, Role};
use super::thread_index;
use crate::fuzz::ast::{
    Expr, Launch, LaunchForm, Stmt, assign, atom, binary, call, conditional, declare, index, int, member, text, unary,
    when,
};

/// Which launching unit has data of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Thread,
    Block,
    Grid,
}

/// What is generated for one parent.
struct March {
    /// Input and output.
    a: BufferId,
    b: BufferId,
    /// Elements of one unit.
    len: i64,
    units: i64,
}

impl Generator {
    /// Adds, to some programs, a parent whose children are ordered.
    pub fn ordered(&mut self) {
        if !self.random.chance(28) {
            return;
        }
        let len = *self.random.pick(&[4, 7, 16, 24]);
        let unit = *self.random.pick(&[Unit::Thread, Unit::Block, Unit::Grid]);
        let units = if unit == Unit::Grid { 1 } else { self.random.range(2, 9) };
        let (x, y) = (self.random.range(3, 50), self.random.range(0, 9));
        let a = self.buffer("state", "int", len * units, Fill::Formula(x, y, 100));
        let b = self.buffer("next", "int", len * units, Fill::Value(0));
        self.buffers[a].shown = true;
        self.buffers[b].shown = true;
        let march = March { a, b, len, units };
        match self.random.below(7) {
            0 => self.relaunching(&march),
            kind => self.marching(&march, unit, kind),
        }
    }

    fn kernel(&mut self, name: &str, parent: bool, params: Vec<(Role, &str, &str)>) -> Kernel {
        let mut kernel = Kernel::plain(self.fresh(name));
        kernel.parent = parent;
        kernel.params = params
            .into_iter()
            .map(|(role, ty, name)| KernelParam {
                role,
                ty: ty.to_owned(),
                name: name.to_owned(),
                default: None,
            })
            .collect();
        kernel
    }

    /// `step(from, to, len, k)`: one element a thread.
    fn step(&mut self, march: &March, name: &str, neighbours: bool) -> usize {
        let mut kernel = self.kernel(
            name,
            false,
            vec![
                (Role::Pointer(march.a), "const int*", "from"),
                (Role::Pointer(march.b), "int*", "to"),
                (Role::Count, "int", "len"),
                (Role::Scalar(0, 9), "int", "k"),
            ],
        );
        if !neighbours {
            kernel.params[0].ty = "int*".to_owned();
        }
        let i = "i";
        let mut stmts = self.thread_number(&kernel, i);
        let element = |name: &str, at: Expr| index(atom(name), at);
        let scaled = binary(element("from", atom(i)), "*", int(self.random.range(2, 5)));
        let mut value = binary(scaled, "+", atom("k"));
        if neighbours {
            let next = binary(binary(atom(i), "+", int(1)), "%", atom("len"));
            value = binary(value, "+", element("from", next));
        }
        let value = binary(value, "%", int(1000));
        let inside = binary(atom(i), "<", atom("len"));
        let write = vec![assign(element("to", atom(i)), "=", value)];
        if self.random.chance(50) {
            stmts.push(when(inside, write));
        } else {
            stmts.push(when(binary(atom(i), ">=", atom("len")), vec![text("return;")]));
            stmts.extend(write);
        }
        kernel.body = Some(stmts);
        self.kernels.push(kernel);
        self.kernels.len() - 1
    }

    fn ordered_launch(
        &mut self,
        kernel: usize,
        len: i64,
        stream: Option<Expr>,
        args: Vec<Expr>,
        ordered: bool,
    ) -> Stmt {
        let site = self.site();
        if ordered {
            self.ordered_sites.insert(site);
        }
        let block = *self.random.pick(&[4, 8, 32]);
        let grid = if self.random.chance(50) {
            int((len + block - 1) / block)
        } else {
            binary(binary(atom("len"), "+", int(block - 1)), "/", int(block))
        };
        let mut config = vec![grid, int(block)];
        if let Some(stream) = stream {
            config.push(int(0));
            config.push(stream);
        }
        Stmt::Launch(Launch {
            site,
            kernel: self.kernels[kernel].name.clone(),
            config,
            args,
            form: LaunchForm::Plain,
        })
    }

    /// A kernel that launches itself into the tail stream.
    fn relaunching(&mut self, march: &March) {
        self.feature("relaunch in the tail stream");
        let total = march.len * march.units;
        let mut kernel = self.kernel(
            "iterate",
            true,
            vec![
                (Role::Pointer(march.a), "int*", "state"),
                (Role::Count, "int", "len"),
                (Role::Scalar(0, 0), "int", "k"),
                (Role::Scalar(2, 4), "int", "rounds"),
            ],
        );
        kernel.numbers = total;
        let mut stmts = self.thread_number(&kernel, "i");
        let place = index(atom("state"), atom("i"));
        let value = binary(
            binary(binary(place.clone(), "*", int(3)), "+", atom("k")),
            "%",
            int(1000),
        );
        stmts.push(when(
            binary(atom("i"), "<", atom("len")),
            vec![assign(place, "=", value)],
        ));
        let site = self.site();
        let again = Launch {
            site,
            kernel: kernel.name.clone(),
            config: vec![atom("gridDim"), atom("blockDim"), int(0), atom("cudaStreamTailLaunch")],
            args: vec![
                atom("state"),
                atom("len"),
                binary(atom("k"), "+", int(1)),
                atom("rounds"),
            ],
            form: LaunchForm::Plain,
        };
        self.ordered_sites.insert(site);
        let last = binary(binary(atom("k"), "+", int(1)), "<", atom("rounds"));
        let cond = binary(binary(atom("i"), "==", int(0)), "&&", last);
        stmts.push(when(cond, vec![Stmt::Launch(again)]));
        kernel.body = Some(stmts);
        self.kernels.push(kernel);
    }

    fn marching(&mut self, march: &March, unit: Unit, kind: usize) {
        let len = march.len;
        let (stream, mut before, mut after) = match self.random.below(5) {
            0 => (Some(atom("0")), Vec::new(), Vec::new()),
            1 | 2 if kind != 5 && kind != 4 => (
                Some(atom("steps")),
                vec![
                    text("cudaStream_t steps;"),
                    text("cudaStreamCreateWithFlags(&steps, cudaStreamNonBlocking);"),
                ],
                vec![text("cudaStreamDestroy(steps);")],
            ),
            _ => (None, Vec::new(), Vec::new()),
        };
        let own = |name: &str| {
            declare(
                "int*",
                name,
                binary(atom(if name == "x" { "state" } else { "next" }), "+", atom("at")),
            )
        };
        let mut body = vec![own("x"), own("y")];
        body.append(&mut before);
        let times = self.random.range(2, 4);
        let pair = |x: &str, y: &str, k: Expr| vec![atom(x), atom(y), atom("len"), k];
        match kind {
            1 => {
                self.feature("time steps, two buffers");
                let step = self.step(march, "step", true);
                let odd = || binary(binary(atom("k"), "%", int(2)), "==", int(1));
                let inner = if self.random.chance(50) {
                    let args = vec![
                        conditional(odd(), atom("y"), atom("x")),
                        conditional(odd(), atom("x"), atom("y")),
                        atom("len"),
                        atom("k"),
                    ];
                    vec![self.ordered_launch(step, len, stream, args, true)]
                } else {
                    let there = self.ordered_launch(step, len, stream.clone(), pair("x", "y", atom("k")), true);
                    let back = self.ordered_launch(step, len, stream, pair("y", "x", atom("k")), true);
                    vec![Stmt::If {
                        cond: odd(),
                        then: vec![back],
                        otherwise: vec![there],
                        braces: false,
                    }]
                };
                body.push(steps(times, inner));
            }
            2 => {
                self.feature("time steps, in place");
                let step = self.step(march, "step", false);
                let args = pair("x", "x", atom("k"));
                let launch = self.ordered_launch(step, len, stream, args, true);
                body.push(steps(times, vec![launch]));
            }
            3 => {
                self.feature("producer and consumer");
                let produce = self.step(march, "produce", true);
                let consume = self.step(march, "consume", true);
                let first = self.ordered_launch(produce, len, stream.clone(), pair("x", "y", int(1)), true);
                let second = self.ordered_launch(consume, len, stream, pair("y", "x", int(2)), true);
                body.push(first);
                if self.random.chance(30) {
                    body.push(when(binary(index(atom("state"), int(0)), ">=", int(0)), vec![second]));
                    // What the condition reads, the children write.
                    if let Some(Stmt::If { cond, .. }) = body.last_mut() {
                        *cond = binary(atom("len"), ">", int(2));
                    }
                } else {
                    body.push(second);
                }
            }
            4 => {
                self.feature("work and a tail launch");
                let work = self.step(march, "work", true);
                let finish = self.step(march, "finish", true);
                let stream = match self.random.below(3) {
                    0 => None,
                    1 => Some(atom("cudaStreamFireAndForget")),
                    _ => Some(atom("nullptr")),
                };
                let first = self.ordered_launch(work, len, stream, pair("x", "y", int(1)), false);
                let tail = Some(atom("cudaStreamTailLaunch"));
                let second = self.ordered_launch(finish, len, tail, pair("y", "x", int(2)), true);
                body.push(first);
                body.push(second);
            }
            5 => {
                self.feature("two launchers and a barrier");
                self.two_launchers(march, stream);
                return;
            }
            _ => {
                self.feature("one launch by one thread");
                let step = self.step(march, "step", true);
                // In order with nothing: what is said to be eligible must be right.
                let launch = self.ordered_launch(step, len, stream, pair("x", "y", int(3)), true);
                body.push(launch);
            }
        }
        body.append(&mut after);
        let mut stmts = Vec::new();
        let kernel = self.march_kernel(march);
        let at = match unit {
            Unit::Thread => {
                stmts.extend(self.thread_number(&kernel, "v"));
                stmts.push(when(binary(atom("v"), ">=", atom("units")), vec![text("return;")]));
                atom("v")
            }
            Unit::Block => {
                let other = unary(
                    "!",
                    Expr::Call(
                        String::new(),
                        vec![binary(member(atom("threadIdx"), "x"), "==", int(0))],
                    ),
                );
                let over = binary(call("int", vec![member(atom("blockIdx"), "x")]), ">=", atom("units"));
                stmts.push(when(binary(other, "||", over), vec![text("return;")]));
                member(atom("blockIdx"), "x")
            }
            Unit::Grid => {
                stmts.push(when(binary(thread_index("x"), "!=", int(0)), vec![text("return;")]));
                int(0)
            }
        };
        stmts.push(declare("int", "at", binary(at, "*", atom("len"))));
        stmts.append(&mut body);
        self.march_parent(march, kernel, stmts, unit == Unit::Block);
    }

    fn march_kernel(&mut self, march: &March) -> Kernel {
        self.kernel(
            "march",
            true,
            vec![
                (Role::Pointer(march.a), "int*", "state"),
                (Role::Pointer(march.b), "int*", "next"),
                (Role::Count, "int", "units"),
                (Role::Scalar(march.len, march.len), "int", "len"),
            ],
        )
    }

    fn march_parent(&mut self, march: &March, mut kernel: Kernel, stmts: Vec<Stmt>, by_block: bool) {
        kernel.body = Some(stmts);
        kernel.numbers = march.units;
        kernel.by_block = by_block;
        self.kernels.push(kernel);
    }

    /// Two threads of a block launch one after the other: a barrier orders them, and so the NULL stream orders the grids.
    fn two_launchers(&mut self, march: &March, stream: Option<Expr>) {
        let produce = self.step(march, "produce", true);
        let consume = self.step(march, "consume", true);
        let at = binary(member(atom("blockIdx"), "x"), "*", atom("len"));
        let args = |x: &str, y: &str| {
            vec![
                binary(atom(x), "+", atom("at")),
                binary(atom(y), "+", atom("at")),
                atom("len"),
                int(1),
            ]
        };
        let thread = |number: i64| binary(member(atom("threadIdx"), "x"), "==", int(number));
        let first = self.ordered_launch(produce, march.len, stream.clone(), args("state", "next"), true);
        let second = self.ordered_launch(consume, march.len, stream, args("next", "state"), true);
        let over = binary(call("int", vec![member(atom("blockIdx"), "x")]), ">=", atom("units"));
        let stmts = vec![
            when(over, vec![text("return;")]),
            declare("int", "at", at),
            when(thread(0), vec![first]),
            text("__syncthreads();"),
            when(thread(1), vec![second]),
        ];
        let kernel = self.march_kernel(march);
        self.march_parent(march, kernel, stmts, true);
    }
}

fn steps(times: i64, body: Vec<Stmt>) -> Stmt {
    Stmt::For {
        init: ("int".to_owned(), "k".to_owned(), int(0)),
        cond: binary(atom("k"), "<", int(times)),
        step: unary("++", atom("k")),
        body,
        braces: false,
        unroll: false,
    }
}
