//! Kernels that wait for their children by `cudaDeviceSynchronize()`, as they could before CUDA 12, and go on with what these have written:
//! threads, blocks and grids that wait once, or twice, or in a loop, with what is known before a wait and needed after it.

use super::Generator;
use super::ordered::March;
use super::plan::{BufferId, Fill, Kernel, Role};
use super::thread_index;
use crate::fuzz::ast::{Expr, Stmt, atom, binary, call, declare, int, member, text, unary, when};

/// Which of the threads waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// Each, for what it has launched.
    Thread,
    /// The first of each block, and all threads of the block go on.
    Block,
    /// The first of the grid.
    Grid,
}

/// Two buffers, and one with two places for each unit that waits.
struct Waiting {
    march: March,
    found: BufferId,
    by: By,
}

impl Waiting {
    /// The number of the unit, as the kernel writes it.
    fn number(&self) -> Expr {
        match self.by {
            By::Thread => atom("v"),
            By::Block => member(atom("blockIdx"), "x"),
            By::Grid => int(0),
        }
    }
}

impl Generator {
    /// Adds a parent that waits.
    pub fn waits(&mut self) {
        self.feature("wait for child grids");
        let len = *self.random.pick(&[4, 7, 16, 24]);
        let by = *self.random.pick(&[By::Thread, By::Block, By::Grid, By::Grid]);
        let units = if by == By::Grid { 1 } else { self.random.range(2, 9) };
        let march = self.march(len, units);
        let found = self.buffer("found", "int", 2 * units, Fill::Value(0));
        self.buffers[found].shown = true;
        let waiting = Waiting { march, found, by };
        let looped = by == By::Grid && self.random.chance(60) || by == By::Block && self.random.chance(15);
        let inner = match looped {
            true => self.loop_that_waits(&waiting),
            false => self.once_or_twice(&waiting),
        };
        self.waiting_parent(&waiting, inner);
    }

    fn waiting_parent(
        &mut self,
        waiting: &Waiting,
        (before, mut inner, mut behind): (Vec<Stmt>, Vec<Stmt>, Vec<Stmt>),
    ) {
        let march = &waiting.march;
        let mut kernel = self.kernel(
            "await",
            true,
            vec![
                (Role::Pointer(march.a), "int*", "state"),
                (Role::Pointer(march.b), "int*", "next"),
                (Role::Pointer(waiting.found), "int*", "found"),
                (Role::Count, "int", "units"),
                (Role::Scalar(march.len, march.len), "int", "len"),
            ],
        );
        let mut stmts = Vec::new();
        let parts = |stmts: &mut Vec<Stmt>| {
            stmts.push(declare("int", "at", binary(waiting.number(), "*", atom("len"))));
            stmts.push(declare("int*", "x", binary(atom("state"), "+", atom("at"))));
            stmts.push(declare("int*", "y", binary(atom("next"), "+", atom("at"))));
            stmts.extend(before.iter().cloned());
        };
        match waiting.by {
            By::Block => {
                let over = binary(call("int", vec![member(atom("blockIdx"), "x")]), ">=", atom("units"));
                stmts.push(when(over, vec![text("return;")]));
                parts(&mut stmts);
                stmts.push(text("__syncthreads();"));
                stmts.push(when(binary(member(atom("threadIdx"), "x"), "==", int(0)), inner));
                stmts.push(text("__syncthreads();"));
                stmts.append(&mut behind);
            }
            By::Thread | By::Grid => {
                let alone = waiting.by == By::Grid && self.random.chance(50);
                let is_one = if waiting.by == By::Thread {
                    stmts.extend(self.thread_number(&kernel, "v"));
                    binary(atom("v"), "<", atom("units"))
                } else if alone {
                    kernel.one_block_of = Some(1);
                    atom("true")
                } else {
                    binary(thread_index("x"), "==", int(0))
                };
                let mut own = Vec::new();
                parts(&mut own);
                own.append(&mut inner);
                own.append(&mut behind);
                if alone {
                    stmts.extend(own);
                } else if self.random.chance(50) {
                    let other = unary("!", Expr::Call(String::new(), vec![is_one]));
                    stmts.push(when(other, vec![text("return;")]));
                    stmts.extend(own);
                } else {
                    stmts.push(when(is_one, own));
                }
            }
        }
        self.parent_of(waiting, kernel, stmts);
    }

    fn parent_of(&mut self, waiting: &Waiting, mut kernel: Kernel, stmts: Vec<Stmt>) {
        kernel.body = Some(stmts);
        kernel.numbers = waiting.march.units;
        kernel.by_block = waiting.by == By::Block;
        self.kernels.push(kernel);
    }

    /// A wait, in one of its forms.
    fn wait(&mut self) -> Vec<Stmt> {
        self.waits += 1;
        match self.random.below(12) {
            0 => {
                self.feature("error of a wait");
                let number = self.site();
                vec![
                    text(&format!("cudaError_t error{number} = cudaDeviceSynchronize();")),
                    text(&format!("if (error{number} != cudaSuccess) return;")),
                ]
            }
            1 => {
                self.feature("error of a wait");
                vec![text("if (cudaDeviceSynchronize() != cudaSuccess) return;")]
            }
            2 => vec![text("(void)cudaDeviceSynchronize();")],
            3 => vec![
                text("cudaDeviceSynchronize();"),
                text("if (cudaGetLastError() != cudaSuccess) return;"),
            ],
            _ => vec![text("cudaDeviceSynchronize();")],
        }
    }

    /// What is known before a wait, and what speaks of it after the wait.
    fn kept(&mut self, waiting: &Waiting) -> (Vec<Stmt>, Vec<Expr>) {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for _ in 0..self.random.weighted(&[40, 40, 20]) {
            let number = self.site();
            let name = format!("kept{number}");
            match self.random.below(7) {
                0 => {
                    self.feature("value kept over a wait");
                    let last = binary(atom("len"), "-", int(1));
                    before.push(declare("int", &name, Expr::Index(Box::new(atom("x")), Box::new(last))));
                    after.push(atom(name));
                }
                1 => {
                    let twice = binary(binary(atom("len"), "*", int(2)), "+", waiting.number());
                    before.push(declare("const int", &name, twice));
                    after.push(atom(name));
                }
                // Each unit has a place of its own; blocks would count once for each thread.
                2 if waiting.by != By::Block => {
                    self.feature("effect before a wait");
                    let place = binary(atom("units"), "+", waiting.number());
                    let place = unary("&", Expr::Index(Box::new(atom("found")), Box::new(place)));
                    let ticket = call("atomicAdd", vec![place, int(3)]);
                    before.push(declare("int", &name, ticket));
                    after.push(atom(name));
                }
                3 => {
                    self.feature("address kept over a wait");
                    let place = format!("place{number}");
                    before.push(declare("int", &name, int(self.random.range(1, 9))));
                    before.push(text(&format!("size_t {place} = (size_t)&{name};")));
                    after.push(atom(format!("*(int*){place}")));
                }
                4 => {
                    self.feature("address kept over a wait");
                    let place = format!("place{number}");
                    before.push(text(&format!("int {name}[2] = {{len, 3}};")));
                    before.push(text(&format!("int* {place} = {name} + 1;")));
                    after.push(atom(format!("*{place}")));
                }
                5 => {
                    self.feature("variable that changes before a wait");
                    before.push(declare("int", &name, int(self.random.range(1, 9))));
                    before.push(text(&format!(
                        "for (int j = 0; j < len; ++j) {name} = ({name} * 3 + j) % 101;"
                    )));
                    after.push(atom(name));
                }
                _ if waiting.by == By::Block => {
                    self.feature("shared memory kept over a wait");
                    before.push(text(&format!("__shared__ int {name}[64];")));
                    before.push(text(&format!("{name}[threadIdx.x] = threadIdx.x * 5 + at;")));
                    after.push(atom(format!("{name}[threadIdx.x]")));
                }
                _ => {
                    self.feature("reference kept over a wait");
                    before.push(text(&format!("int& {name} = y[len - 1];")));
                    after.push(atom(name));
                }
            }
        }
        (before, after)
    }

    /// `step` from one buffer to another, or in place; in some programs without an order among launches, where waits give it.
    fn step_of(&mut self, waiting: &Waiting, from: &str, to: &str, k: Expr, waits: bool) -> Stmt {
        let len = waiting.march.len;
        let step = self.step(&waiting.march, "step", from != to);
        let free = waits && self.random.chance(20);
        let stream = free.then(|| atom("cudaStreamFireAndForget"));
        let args = vec![atom(from), atom(to), atom("len"), k];
        self.ordered_launch(step, len, stream, args, true)
    }

    /// A launch that runs when the parent is complete.
    fn finish_in_tail(&mut self, waiting: &Waiting) -> Stmt {
        self.feature("tail launch before a wait");
        let finish = self.step(&waiting.march, "finish", false);
        let args = vec![atom("y"), atom("y"), atom("len"), int(2)];
        let tail = Some(atom("cudaStreamTailLaunch"));
        self.ordered_launch(finish, waiting.march.len, tail, args, true)
    }

    fn sum_of(mut terms: Vec<Expr>, first: Expr) -> Expr {
        let mut sum = first;
        for term in terms.drain(..) {
            sum = binary(sum, "+", term);
        }
        binary(sum, "%", int(1009))
    }

    fn once_or_twice(&mut self, waiting: &Waiting) -> (Vec<Stmt>, Vec<Stmt>, Vec<Stmt>) {
        let (before, kept) = self.kept(waiting);
        let in_place = self.random.chance(25);
        let result = if in_place { "x" } else { "y" };
        let tail = self.random.chance(15);
        let mut inner = Vec::new();
        if tail && self.random.chance(50) {
            inner.push(self.finish_in_tail(waiting));
        }
        let launch = self.step_of(waiting, "x", result, int(1), true);
        let conditional = self.random.chance(20);
        if conditional {
            self.feature("launch in a branch before a wait");
            let cond = binary(atom("len"), ">", int(*self.random.pick(&[5, 10])));
            inner.push(when(cond, vec![launch]));
        } else {
            inner.push(launch);
        }
        if tail && inner.len() == 1 {
            inner.push(self.finish_in_tail(waiting));
        }
        inner.extend(self.wait());
        let mut read = result;
        if self.random.chance(25) {
            self.feature("two waits");
            let back = if in_place { "y" } else { "x" };
            inner.push(self.step_of(waiting, result, back, int(2), true));
            inner.extend(self.wait());
            read = back;
        }
        let mut behind = Vec::new();
        let element = |at: Expr| Expr::Index(Box::new(atom(read)), Box::new(at));
        // What a branch leaves out, nothing has written but the host.
        let first = element(int(0));
        let last = element(binary(atom("len"), "-", int(1)));
        let found = Expr::Index(Box::new(atom("found")), Box::new(waiting.number()));
        if waiting.by == By::Block {
            let value = Self::sum_of(kept, element(atom("i")));
            let write = Stmt::Expr(binary(element(atom("i")), "=", value));
            behind.push(Stmt::For {
                init: ("int".to_owned(), "i".to_owned(), member(atom("threadIdx"), "x")),
                cond: binary(atom("i"), "<", atom("len")),
                step: binary(atom("i"), "+=", member(atom("blockDim"), "x")),
                body: vec![write],
                braces: true,
                unroll: false,
            });
        } else {
            let mut terms = kept;
            terms.push(last);
            behind.push(Stmt::Expr(binary(found, "=", Self::sum_of(terms, first))));
            if self.random.chance(20) {
                self.feature("launch behind a wait");
                let (from, to) = if read == "x" { ("x", "y") } else { ("y", "x") };
                behind.push(self.step_of(waiting, from, to, int(3), true));
            }
        }
        (before, inner, behind)
    }

    fn loop_that_waits(&mut self, waiting: &Waiting) -> (Vec<Stmt>, Vec<Stmt>, Vec<Stmt>) {
        self.feature("wait in a loop");
        let (before, kept) = self.kept(waiting);
        let mut inner = vec![
            text("int* from = x;"),
            text("int* to = y;"),
            declare("int", "total", int(0)),
        ];
        let times = self.random.range(2, 4);
        let in_place = self.random.chance(25);
        let to = if in_place { "from" } else { "to" };
        let mut unwaited = self.random.chance(15);
        let mut body = vec![self.step_of(waiting, "from", to, atom("k"), !unwaited)];
        if self.random.chance(25) {
            body.insert(0, declare("int", "early", binary(atom("total"), "*", int(2))));
            body.extend(self.wait());
            body.push(text("total = (total + early + from[0]) % 997;"));
        } else {
            body.extend(self.wait());
            body.push(text("total = (total * 3 + from[len - 1]) % 997;"));
        }
        if !in_place {
            body.push(text("int* other = from;"));
            body.push(text("from = to;"));
            body.push(text("to = other;"));
        }
        if self.random.chance(30) {
            self.feature("loop that a result of children ends");
            body.push(text("if (from[0] % 5 == 3) break;"));
        }
        if unwaited {
            self.feature("launch behind a wait");
            body.push(self.step_of(waiting, "from", "from", int(5), false));
            unwaited = self.random.chance(50);
            if !unwaited {
                body.extend(self.wait());
            }
        }
        let more = binary(atom("k"), "<", int(times));
        let next = unary("++", atom("k"));
        match self.random.below(3) {
            0 => inner.push(Stmt::For {
                init: ("int".to_owned(), "k".to_owned(), int(0)),
                cond: more,
                step: next,
                body,
                braces: true,
                unroll: false,
            }),
            1 => {
                inner.push(declare("int", "k", int(0)));
                body.push(Stmt::Expr(next));
                inner.push(Stmt::While { cond: more, body });
            }
            _ => {
                inner.push(declare("int", "k", int(0)));
                body.push(Stmt::Expr(next));
                inner.push(Stmt::DoWhile { body, cond: more });
            }
        }
        // What was kept may be an address, and the last grids may still write there.
        if unwaited && !kept.is_empty() {
            inner.extend(self.wait());
        }
        let found = Expr::Index(Box::new(atom("found")), Box::new(waiting.number()));
        inner.push(Stmt::Expr(binary(found, "=", Self::sum_of(kept, atom("total")))));
        (before, inner, Vec::new())
    }
}
