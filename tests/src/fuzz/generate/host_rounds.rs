//! Loops of the host that launch kernels in rounds until a flag, or a number, says that nothing is left.

use super::Generator;
use super::plan::{BufferId, Fill, Role};
use super::thread_index;
use crate::fuzz::ast::{
    Expr, Launch, LaunchForm, Stmt, assign, atom, binary, call, declare, index, int, text, unary, when,
};

/// What the kernels of a loop share.
struct Rounds {
    state: BufferId,
    next: BufferId,
    flag: BufferId,
    len: i64,
    /// A round reads one buffer and writes the other; the host swaps them.
    flips: bool,
}

impl Generator {
    /// Adds a loop of the host.
    pub fn host_rounds(&mut self) {
        self.feature("loop of the host");
        let len = *self.random.pick(&[5, 20, 33, 70]);
        let (x, y) = (self.random.range(3, 50), self.random.range(0, 9));
        let state = self.buffer("values", "int", len, Fill::Formula(x, y, 100));
        let next = self.buffer("others", "int", len, Fill::Value(0));
        let ty = *self.random.pick(&["int", "int", "unsigned"]);
        let flag = self.buffer("changed", ty, 1, Fill::Value(0));
        for buffer in [state, next] {
            self.buffers[buffer].shown = true;
        }
        let rounds = Rounds {
            state,
            next,
            flag,
            len,
            flips: self.random.chance(40),
        };
        let changed = if ty == "int" { "int*" } else { "unsigned*" };
        let relax = self.changing(&rounds, changed);
        let second = self.random.chance(30).then(|| self.adding(&rounds));
        let behind = self.host_loop(&rounds, ty, &relax, second.as_deref());
        // The first kernel is one that the host launches once as well, with the loop behind it.
        if let Some(kernel) = self.kernels.iter_mut().find(|kernel| kernel.name == relax) {
            kernel.host_behind = behind;
        }
    }

    fn parameters(rounds: &Rounds, changed: &'static str) -> Vec<(Role, &'static str, &'static str)> {
        vec![
            (Role::Pointer(rounds.state), "int*", "from"),
            (Role::Pointer(rounds.next), "int*", "to"),
            (Role::Pointer(rounds.flag), changed, "flag"),
            (Role::Count, "int", "len"),
            (Role::Scalar(0, 0), "int", "level"),
        ]
    }

    /// The kernel that changes elements, and says so.
    fn changing(&mut self, rounds: &Rounds, changed: &'static str) -> String {
        let mut kernel = self.kernel("relax", true, Self::parameters(rounds, changed));
        kernel.numbers = rounds.len;
        let inside = || binary(atom("i"), "<", atom("len"));
        let mut stmts = Vec::new();
        let barrier = self.random.chance(20);
        if barrier {
            self.feature("barrier in a kernel of a loop of the host");
            stmts.push(text("__shared__ int tile[64];"));
            stmts.push(text("int i = blockIdx.x * blockDim.x + threadIdx.x;"));
            stmts.push(text("tile[threadIdx.x] = i < len ? from[i] : 0;"));
            stmts.push(text("__syncthreads();"));
        } else {
            stmts.extend(self.thread_number(&kernel, "i"));
        }
        let said = match self.random.below(3) {
            0 => text("*flag = 1;"),
            1 => Stmt::Expr(call("atomicExch", vec![atom("flag"), int(1)])),
            _ => Stmt::Expr(call("atomicAdd", vec![atom("flag"), int(1)])),
        };
        let limit = self.random.range(2, 30);
        let large = binary(
            index(atom("from"), atom("i")),
            ">",
            binary(int(limit), "+", atom("level")),
        );
        let halved = binary(index(atom("from"), atom("i")), "/", int(2));
        let mut change = Vec::new();
        if rounds.flips {
            // All elements move to the other buffer.
            let mut value = index(atom("from"), atom("i"));
            if self.random.chance(50) {
                let beside = binary(binary(atom("i"), "+", int(1)), "%", atom("len"));
                value = call("max", vec![value, binary(index(atom("from"), beside), "/", int(3))]);
            }
            change.push(declare("int", "value", value));
            let more = binary(atom("value"), ">", binary(int(limit), "+", atom("level")));
            change.push(when(
                more,
                vec![assign(atom("value"), "=", binary(atom("value"), "/", int(2))), said],
            ));
            change.push(assign(index(atom("to"), atom("i")), "=", atom("value")));
        } else {
            let mut then = vec![assign(index(atom("from"), atom("i")), "=", halved), said];
            if barrier {
                let next = Expr::Call(String::new(), vec![binary(atom("threadIdx.x"), "+", int(1))]);
                let neighbour = binary(next, "%", atom("blockDim.x"));
                let add = binary(index(atom("tile"), neighbour), "%", int(3));
                then.push(assign(index(atom("to"), atom("i")), "+=", add));
            }
            change.push(when(large, then));
        }
        if !barrier && self.random.chance(40) {
            stmts.push(when(binary(atom("i"), ">=", atom("len")), vec![text("return;")]));
            stmts.extend(change);
        } else {
            stmts.push(when(inside(), change));
        }
        kernel.body = Some(stmts);
        let name = kernel.name.clone();
        self.kernels.push(kernel);
        name
    }

    /// The other kernel of a round.
    fn adding(&mut self, rounds: &Rounds) -> String {
        self.feature("loop of the host with two kernels");
        let params = vec![
            (Role::Pointer(rounds.next), "int*", "to"),
            (Role::Count, "int", "len"),
            (Role::Scalar(0, 0), "int", "level"),
        ];
        let mut kernel = self.kernel("weigh_all", true, params);
        kernel.numbers = rounds.len;
        let sum = binary(
            binary(index(atom("to"), atom("i")), "*", int(3)),
            "+",
            binary(atom("level"), "+", int(1)),
        );
        let stmts = vec![Stmt::For {
            init: ("int".to_owned(), "i".to_owned(), thread_index("x")),
            cond: binary(atom("i"), "<", atom("len")),
            step: binary(atom("i"), "+=", atom("blockDim.x * gridDim.x")),
            body: vec![assign(index(atom("to"), atom("i")), "=", binary(sum, "%", int(500)))],
            braces: true,
            unroll: false,
        }];
        kernel.body = Some(stmts);
        let name = kernel.name.clone();
        // In front of the one that the loop is behind.
        let at = self.kernels.len().saturating_sub(1);
        self.kernels.insert(at, kernel);
        name
    }

    /// The step to the next round, by the variable's name or by something else that leads to it.
    fn next_level(&mut self, level: &str, before: &mut Vec<Stmt>) -> Stmt {
        if !self.random.chance(30) {
            return Stmt::Expr(unary("++", atom(level)));
        }
        self.feature("variable of a loop of the host that changes by another name");
        match self.random.below(5) {
            0 => {
                before.push(text(&format!("int* to_{level} = &{level};")));
                text(&format!("++*to_{level};"))
            }
            1 => {
                before.push(text(&format!("int& same_{level} = {level};")));
                text(&format!("same_{level} += 1;"))
            }
            2 => {
                before.push(text(&format!("auto step_{level} = [&] {{ ++{level}; }};")));
                text(&format!("step_{level}();"))
            }
            3 => {
                let advance = self.fresh("advance");
                self.text(format!("static void {advance}(int* by) {{ *by += 1; }}"));
                text(&format!("{advance}(&{level});"))
            }
            _ => {
                let name = format!("STEP_{level}").to_uppercase();
                self.text(format!("#define {name} 2"));
                before.push(text(&format!("#undef {name}\n#define {name} 1")));
                text(&format!("{level} += {name};"))
            }
        }
    }

    /// Work of the host in the stream of the rounds, which counts them.
    fn called_back(&mut self, level: &str, stream: Option<&str>, before: &mut Vec<Stmt>, body: &mut Vec<Stmt>) {
        let (count, calls) = (self.fresh("count_round"), format!("calls_{level}"));
        self.text(format!(
            "static void {count}(void* calls) {{ *static_cast<int*>(calls) += 1; }}"
        ));
        before.push(text(&format!("int {calls} = 0;")));
        let stream = stream.unwrap_or("0");
        body.push(text(&format!("cudaLaunchHostFunc({stream}, {count}, &{calls});")));
        if self.random.chance(50) {
            body.push(text(&format!("cudaStreamSynchronize({stream});")));
            body.push(text(&format!("printf(\"called back %d\\n\", {calls});")));
        }
    }

    fn host_loop(&mut self, rounds: &Rounds, ty: &str, relax: &str, second: Option<&str>) -> Vec<Stmt> {
        let number = self.site();
        let name = |of: &str| format!("{of}{number}");
        let (level, again, from, to) = (name("level"), name("again"), name("from"), name("to"));
        let buffer = |id: BufferId| format!("d_{}", self.buffers[id].name);
        let (state, next, flag) = (buffer(rounds.state), buffer(rounds.next), buffer(rounds.flag));
        let (x, y) = if rounds.flips {
            (from.clone(), to.clone())
        } else {
            (state.clone(), next.clone())
        };
        let mut stmts = Vec::new();
        if rounds.flips {
            stmts.push(text(&format!("int* {from} = {state};")));
            stmts.push(text(&format!("int* {to} = {next};")));
        }
        stmts.push(text(&format!("int {level} = 0;")));
        stmts.push(text(&format!("{ty} {again} = 1;")));
        let stream = self.random.chance(20).then(|| name("rounds_stream"));
        if let Some(stream) = &stream {
            self.feature("loop of the host in a stream");
            stmts.push(text(&format!("cudaStream_t {stream};")));
            stmts.push(text(&format!("cudaStreamCreate(&{stream});")));
        }
        let block = *self.random.pick(&[8, 32, 64]);
        let len = rounds.len;
        let grids = match self.random.below(3) {
            0 => int((len + block - 1) / block),
            1 => atom(format!("({len} + {block} - 1) / {block}")),
            _ => {
                self.feature("grid that changes in a loop of the host");
                atom(format!("({len} + {block} - 1) / {block} + {level} % 2"))
            }
        };
        let launch = |kernel: &str, args: Vec<Expr>| {
            let mut config = vec![grids.clone(), int(block)];
            if let Some(stream) = &stream {
                config.extend([int(0), atom(stream.clone())]);
            }
            Stmt::Launch(Launch {
                site: 0,
                kernel: kernel.to_owned(),
                config,
                args,
                form: LaunchForm::Plain,
            })
        };
        let mut body = Vec::new();
        let size = format!("sizeof({ty})");
        match &stream {
            Some(stream) => body.push(text(&format!("cudaMemsetAsync({flag}, 0, {size}, {stream});"))),
            None if self.random.chance(30) => {
                body.push(text(&format!("{again} = 0;")));
                body.push(text(&format!(
                    "cudaMemcpy({flag}, &{again}, {size}, cudaMemcpyHostToDevice);"
                )));
            }
            None => body.push(text(&format!("cudaMemset({flag}, 0, {size});"))),
        }
        let shared = |args: [&str; 5]| args.map(atom).to_vec();
        let count = len.to_string();
        body.push(launch(relax, shared([&x, &y, &flag, &count, &level])));
        if let Some(second) = second {
            let target = if rounds.flips { &x } else { &y };
            body.push(launch(
                second,
                vec![atom(target.clone()), int(len), atom(level.clone())],
            ));
        }
        match self.random.below(4) {
            0 => body.push(text("if (cudaGetLastError() != cudaSuccess) return 1;")),
            1 if stream.is_none() => body.push(text("cudaDeviceSynchronize();")),
            _ => {}
        }
        let kind = "cudaMemcpyDeviceToHost";
        match &stream {
            Some(stream) => {
                body.push(text(&format!(
                    "cudaMemcpyAsync(&{again}, {flag}, {size}, {kind}, {stream});"
                )));
                body.push(text(&format!("cudaStreamSynchronize({stream});")));
            }
            None => body.push(text(&format!("cudaMemcpy(&{again}, {flag}, {size}, {kind});"))),
        }
        if rounds.flips {
            let other = name("other");
            body.push(text(&format!("int* {other} = {from};")));
            body.push(text(&format!("{from} = {to};")));
            body.push(text(&format!("{to} = {other};")));
        }
        let most = self.random.range(2, 7);
        let goes_on = binary(
            binary(atom(again.clone()), ">", int(*self.random.pick(&[0, 0, 2]))),
            "&&",
            binary(atom(level.clone()), "<", int(most)),
        );
        let step = self.next_level(&level, &mut stmts);
        if self.random.chance(20) {
            self.feature("loop of the host that breaks");
            body.push(when(
                binary(atom(level.clone()), "==", int(most - 1)),
                vec![text("break;")],
            ));
        }
        body.push(step);
        if self.random.chance(10) {
            self.feature("function that the driver calls in a loop of the host");
            self.called_back(&level, stream.as_deref(), &mut stmts, &mut body);
        }
        let unrolled = self.random.chance(10);
        if unrolled {
            self.feature("pragma at a loop of the host");
            stmts.push(text("#pragma GCC unroll 2"));
        }
        if self.random.chance(50) {
            stmts.push(Stmt::DoWhile { body, cond: goes_on });
        } else {
            stmts.push(Stmt::While { cond: goes_on, body });
        }
        if let Some(stream) = &stream {
            stmts.push(text(&format!("cudaStreamDestroy({stream});")));
        }
        stmts.push(text(&format!("printf(\"rounds %d %d\\n\", {level}, (int){again});")));
        stmts
    }
}
