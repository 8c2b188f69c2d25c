//! Parents whose children rely on the order that a stream gives them: time steps, producer and consumer, tail launches.

use super::Generator;
use super::plan::{BufferId, Fill, Kernel, KernelParam, Role};
use super::thread_index;
use crate::fuzz::ast::{
    Expr, Launch, LaunchForm, Stmt, assign, atom, binary, call, cast, conditional, declare, index, int, member, text,
    unary, when,
};

/// Which launching unit has data of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Thread,
    Block,
    Grid,
}

/// What is generated for one parent.
pub(super) struct March {
    /// Input and output.
    pub a: BufferId,
    pub b: BufferId,
    /// Elements of one unit.
    pub len: i64,
    pub units: i64,
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
        let march = self.march(len, units);
        match self.random.below(12) {
            8 => self.turns(&march),
            9 | 10 => self.picked_threads(&march),
            0 => self.relaunching(&march),
            kind => self.marching(&march, unit, kind),
        }
    }

    /// Two buffers for so many units with so many elements each.
    pub fn march(&mut self, len: i64, units: i64) -> March {
        let (x, y) = (self.random.range(3, 50), self.random.range(0, 9));
        let a = self.buffer("state", "int", len * units, Fill::Formula(x, y, 100));
        let b = self.buffer("next", "int", len * units, Fill::Value(0));
        self.buffers[a].shown = true;
        self.buffers[b].shown = true;
        March { a, b, len, units }
    }

    pub fn kernel(&mut self, name: &str, parent: bool, params: Vec<(Role, &str, &str)>) -> Kernel {
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
    pub fn step(&mut self, march: &March, name: &str, neighbours: bool) -> usize {
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

    pub fn ordered_launch(
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
            7 => {
                self.feature("memory set in a stream");
                body.extend(self.set_in_stream(march, stream));
            }
            11 => {
                self.feature("children that carry on a value in sight");
                let fold = self.fold(march);
                // That these are independent is contradicted by what they do: nothing may assume it.
                let args = vec![atom("y"), atom("len"), atom("k")];
                let launch = self.ordered_launch(fold, len, stream, args, false);
                body.push(steps(times, vec![launch]));
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

    /// `tally(to, len, k)`: adds to each element; grids in any order give the same, and two at once don't.
    pub fn tally(&mut self, march: &March) -> usize {
        let mut kernel = self.kernel(
            "tally",
            false,
            vec![
                (Role::Pointer(march.b), "int*", "to"),
                (Role::Count, "int", "len"),
                (Role::Scalar(0, 9), "int", "k"),
            ],
        );
        let mut stmts = self.thread_number(&kernel, "i");
        let add = assign(index(atom("to"), atom("i")), "+=", binary(atom("k"), "+", int(1)));
        stmts.push(when(binary(atom("i"), "<", atom("len")), vec![add]));
        kernel.body = Some(stmts);
        self.kernels.push(kernel);
        self.kernels.len() - 1
    }

    /// `fold(to, len, k)`: makes the first element anew from what it was.
    fn fold(&mut self, march: &March) -> usize {
        let mut kernel = self.kernel(
            "fold",
            false,
            vec![
                (Role::Pointer(march.b), "int*", "to"),
                (Role::Count, "int", "len"),
                (Role::Scalar(0, 9), "int", "k"),
            ],
        );
        // No helper's number: that it is the same thread each time has to be seen for sure.
        let mut stmts = vec![text("int i = blockIdx.x * blockDim.x + threadIdx.x;")];
        let first = || index(atom("to"), int(0));
        let factor = self.random.range(2, 5);
        let next = binary(
            binary(first(), "*", int(factor)),
            "+",
            binary(atom("k"), "+", atom("len")),
        );
        let change = assign(first(), "=", binary(next, "%", int(1009)));
        stmts.push(when(binary(atom("i"), "==", int(0)), vec![change]));
        kernel.body = Some(stmts);
        self.kernels.push(kernel);
        self.kernels.len() - 1
    }

    /// What threads of one block do, each block for its own part.
    pub fn of_blocks(&mut self, march: &March, threads: Option<Expr>, mut inner: Vec<Stmt>) {
        let over = binary(call("int", vec![member(atom("blockIdx"), "x")]), ">=", atom("units"));
        let at = binary(member(atom("blockIdx"), "x"), "*", atom("len"));
        let mut stmts = vec![when(over, vec![text("return;")]), declare("int", "at", at)];
        stmts.append(&mut inner);
        let mut kernel = self.march_kernel(march);
        kernel.block = threads;
        self.march_parent(march, kernel, stmts, true);
    }

    /// Threads of a block that launch one after the other, each in its own iteration.
    fn turns(&mut self, march: &March) {
        self.feature("threads take turns");
        let place = |name: &str| binary(atom(name), "+", atom("at"));
        let thread = || member(atom("threadIdx"), "x");
        let barrier = self.random.chance(50);
        let (child, args) = if barrier {
            (self.step(march, "step", false), vec![place("next"), place("next")])
        } else {
            (self.tally(march), vec![place("next")])
        };
        let args = args.into_iter().chain([atom("len"), atom("k")]).collect();
        let launch = self.ordered_launch(child, march.len, None, args, true);
        let (who, before) = match self.random.below(3) {
            0 => (binary(thread(), "==", atom("k")), None),
            1 => (
                binary(thread(), "==", atom("turn")),
                Some(declare("int", "turn", binary(atom("k"), "*", int(1)))),
            ),
            _ => (binary(binary(thread(), "^", atom("k")), "==", int(0)), None),
        };
        let mut inner: Vec<Stmt> = before.into_iter().collect();
        inner.push(when(who, vec![launch]));
        if barrier {
            inner.push(text("__syncthreads();"));
        }
        self.of_blocks(march, Some(int(8)), vec![steps(3, inner)]);
    }

    /// Conditions that look as if they left one thread of a block, and leave several.
    fn picked_threads(&mut self, march: &March) {
        let thread = || member(atom("threadIdx"), "x");
        let zero = |number: Expr| binary(number, "==", int(0));
        let mut before = Vec::new();
        let mut threads = int(8);
        let who = match self.random.below(10) {
            0 => {
                self.feature("a thread's number in a byte");
                threads = int(512);
                before.push(declare("unsigned char", "t", thread()));
                zero(atom("t"))
            }
            1 => {
                self.feature("a thread's number as a truth value");
                binary(cast("bool", thread()), "==", atom("true"))
            }
            2 => {
                self.feature("a thread's number scaled down");
                let scaled = Expr::Call(String::new(), vec![binary(thread(), "*", atom("0.25f"))]);
                zero(cast("int", scaled))
            }
            3 => {
                self.feature("a thread's number scaled down");
                before.push(declare("int", "bin", binary(thread(), "*", atom("0.5f"))));
                zero(atom("bin"))
            }
            4 => {
                self.feature("a thread's number times what may be 0");
                zero(binary(thread(), "*", binary(atom("len"), "/", int(1000))))
            }
            5 => {
                self.feature("a thread's number that wraps around");
                zero(binary(thread(), "*", atom("0x40000000u")))
            }
            6 => {
                self.feature("a counter that wraps around");
                before.push(text("__shared__ unsigned turn;"));
                before.push(when(zero(thread()), vec![assign(atom("turn"), "=", int(0))]));
                before.push(text("__syncthreads();"));
                zero(call("atomicInc", vec![unary("&", atom("turn")), int(3)]))
            }
            kind => {
                self.feature("blocks of two dimensions, by a function");
                let name = self.fresh("block_of");
                let two = match kind {
                    7 => format!("static dim3 {name}(int n) {{ return dim3(n, 2); }}"),
                    8 => format!("static uint3 {name}(int n) {{ return make_uint3(n, 2, 1); }}"),
                    _ => {
                        format!("struct {name} {{\n    int n;\n    operator dim3() const {{ return dim3(n, 2); }}\n}};")
                    }
                };
                self.text(two);
                threads = call("dim3", vec![call(&name, vec![int(8)])]);
                if kind == 9 {
                    threads = call("dim3", vec![Expr::Braces(name, vec![int(8)])]);
                }
                zero(thread())
            }
        };
        let tally = self.tally(march);
        let args = vec![binary(atom("next"), "+", atom("at")), atom("len"), int(2)];
        let launch = self.ordered_launch(tally, march.len, None, args, true);
        before.push(when(who, vec![launch]));
        self.of_blocks(march, Some(threads), before);
    }

    /// A grid, and memory that is set or copied in the same stream before or behind it.
    fn set_in_stream(&mut self, march: &March, stream: Option<Expr>) -> Vec<Stmt> {
        let bytes = |len: Expr| binary(len, "*", call("sizeof", vec![atom("int")]));
        let operation = |name: &str, mut args: Vec<Expr>| {
            args.extend(stream.clone());
            Stmt::Expr(call(name, args))
        };
        let set = |place: &str| operation("cudaMemsetAsync", vec![atom(place), int(0), bytes(atom("len"))]);
        let copy = |to: &str, from: &str| {
            let kind = atom("cudaMemcpyDeviceToDevice");
            operation("cudaMemcpyAsync", vec![atom(to), atom(from), bytes(atom("len")), kind])
        };
        let step = self.step(march, "step", true);
        let args = vec![atom("x"), atom("y"), atom("len"), int(4)];
        let from_to = self.ordered_launch(step, march.len, stream.clone(), args, true);
        match self.random.below(4) {
            0 => vec![set("x"), from_to],
            1 => vec![copy("y", "x"), self.in_place(march, stream.clone())],
            2 => vec![from_to, set("x")],
            _ => vec![from_to, copy("x", "y")],
        }
    }

    /// `step` of the second buffer.
    fn in_place(&mut self, march: &March, stream: Option<Expr>) -> Stmt {
        let step = self.step(march, "again", false);
        let args = vec![atom("y"), atom("y"), atom("len"), int(3)];
        self.ordered_launch(step, march.len, stream, args, true)
    }

    pub fn march_kernel(&mut self, march: &March) -> Kernel {
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

    pub fn march_parent(&mut self, march: &March, mut kernel: Kernel, stmts: Vec<Stmt>, by_block: bool) {
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

/// `for (int k = 0; k < times; ++k) …`
pub(super) fn steps(times: i64, body: Vec<Stmt>) -> Stmt {
    Stmt::For {
        init: ("int".to_owned(), "k".to_owned(), int(0)),
        cond: binary(atom("k"), "<", int(times)),
        step: unary("++", atom("k")),
        body,
        braces: false,
        unroll: false,
    }
}
