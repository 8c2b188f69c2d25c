//! What neither the launching function nor the files that are there show: threads that leave by assembly, a header that isn't found, a
//! graph of which several executable ones are made.

use super::Generator;
use super::ordered::March;
use super::plan::Role;
use crate::fuzz::ast::{
    Expr, Function, Item, Launch, LaunchForm, Stmt, assign, atom, binary, call, declare, index, int, member, text, when,
};

/// The header that isn't found.
pub const UNFOUND: &str = "vendor/work.hpp";

impl Generator {
    /// Adds a parent with such a thing.
    pub fn unshown(&mut self) {
        match self.random.below(13) {
            10 | 11 => self.overload_by_macro(),
            12 => self.constant_by_macro(),
            0 | 1 => self.leaving(),
            2 => self.leaving_child(),
            3 | 4 => self.unfound_in_child(),
            5 => self.unfound_in_parent(),
            6 | 7 => self.captured(),
            8 => self.scoped(),
            _ => self.scoped_in_child(),
        }
    }

    fn own_march(&mut self) -> March {
        let units = self.random.range(2, 9);
        self.march(8, units)
    }

    /// A parent each of whose first threads launches for elements of its own.
    fn each(&mut self, march: &March, inner: Vec<Stmt>) {
        let kernel = self.march_kernel(march);
        let mut stmts = self.thread_number(&kernel, "v");
        stmts.push(when(binary(atom("v"), ">=", atom("units")), vec![text("return;")]));
        stmts.push(declare("int", "at", binary(atom("v"), "*", atom("len"))));
        stmts.extend(inner);
        self.march_parent(march, kernel, stmts, false);
    }

    /// `next + at, next + at, len, k`
    fn in_its_place(&mut self, child: usize, march: &March, ordered: bool) -> Stmt {
        let place = || binary(atom("next"), "+", atom("at"));
        let k = self.random.range(1, 9);
        let args = vec![place(), place(), atom("len"), int(k)];
        self.ordered_launch(child, march.len, None, args, ordered)
    }

    /// A statement by which a thread leaves if the condition holds.
    fn leaves(&mut self, cond: Expr) -> Stmt {
        let predicate = "{\\n\\t.reg .pred p;\\n\\tsetp.ne.s32 p, %0, 0;\\n\\t@p exit;\\n}";
        match self.random.below(6) {
            0 => {
                let name = self.fresh("leave_if");
                self.text(format!(
                    "static __device__ __forceinline__ void {name}(int done) {{\n    asm volatile(\"{predicate}\" ::\"r\"(done));\n}}"
                ));
                Stmt::Expr(call(&name, vec![cond]))
            }
            1 => Stmt::Block(vec![
                declare("int", "done", cond),
                text(&format!("asm volatile(\"{predicate}\" : : \"r\"(done));")),
            ]),
            2 => {
                let name = self.fresh("LEAVE");
                self.text(format!("#define {name}() asm volatile(\"exit;\")"));
                when(cond, vec![text(&format!("{name}();"))])
            }
            3 => when(cond, vec![text("asm(\"ex\" \"it;\");")]),
            4 => {
                let name = self.fresh("stop");
                self.text(format!(
                    "__device__ inline void {name}() {{ asm volatile(\"exit;\"); }}"
                ));
                when(cond, vec![Stmt::Expr(call(&name, Vec::new()))])
            }
            _ => when(cond, vec![text("asm volatile(\"exit;\" ::: \"memory\");")]),
        }
    }

    fn some_threads(&mut self) -> Expr {
        let every = self.random.range(2, 3);
        binary(binary(atom("v"), "%", int(every)), "==", int(1))
    }

    /// Threads of the parent leave, before or behind their launches.
    fn leaving(&mut self) {
        self.feature("threads leave by assembly");
        let march = self.own_march();
        let child = self.step(&march, "again", false);
        let launch = self.in_its_place(child, &march, false);
        let who = self.some_threads();
        let leaves = self.leaves(who);
        let inner = if self.random.chance(70) {
            vec![launch, leaves, text("state[at] = 5;")]
        } else {
            vec![leaves, launch]
        };
        self.each(&march, inner);
    }

    /// Threads of the child leave.
    fn leaving_child(&mut self) {
        self.feature("threads of a child leave by assembly");
        let march = self.own_march();
        let child = self.step(&march, "again", false);
        let over = binary(atom("i"), ">=", atom("len"));
        let leaves = self.leaves(over);
        let element = |name: &str| index(atom(name), atom("i"));
        let kernel = self.kernels[child].clone();
        let mut stmts = self.thread_number(&kernel, "i");
        stmts.push(leaves);
        let sum = binary(element("from"), "+", atom("k"));
        stmts.push(assign(element("to"), "=", binary(sum, "%", int(1000))));
        self.kernels[child].body = Some(stmts);
        let mut launch = self.in_its_place(child, &march, false);
        // Some threads have nothing to do.
        if let Stmt::Launch(launch) = &mut launch {
            launch.config = vec![int(2), int(march.len)];
        }
        self.each(&march, vec![launch]);
    }

    /// The header that isn't found, with this text; what stands first includes it.
    fn unfound(&mut self, header: &str) {
        self.unfound
            .insert(UNFOUND.to_owned(), format!("#pragma once\n{header}\n"));
        self.head.insert(0, Item::Text(format!("#include \"{UNFOUND}\"")));
    }

    /// A child with a class or a macro of that header.
    fn unfound_in_child(&mut self) {
        let march = self.own_march();
        let child = self.step(&march, "again", false);
        let element = |name: &str, at: &str| index(atom(name), atom(at));
        let changed = |from: Expr| {
            let sum = binary(from, "+", atom("k"));
            assign(index(atom("to"), atom("i")), "=", binary(sum, "%", int(1000)))
        };
        let inside = || binary(atom("i"), "<", atom("len"));
        let body = if self.random.chance(60) {
            self.feature("class of a header that isn't found in a child");
            let class = self.fresh("Here");
            let number = "blockIdx.x * blockDim.x + threadIdx.x";
            self.unfound(&format!(
                "struct {class} {{\n    int number;\n    __device__ {class}() : number({number}) {{}}\n}};"
            ));
            let made = if self.random.chance(50) {
                vec![
                    text(&format!("{class} here;")),
                    declare("int", "i", member(atom("here"), "number")),
                ]
            } else {
                vec![declare("int", "i", member(call(&class, Vec::new()), "number"))]
            };
            let mut body = made;
            body.push(when(inside(), vec![changed(element("from", "i"))]));
            body
        } else {
            self.feature("barrier of a header that isn't found in a child");
            let name = self.fresh("MEET");
            self.unfound(&format!("#define {name} __syncthreads()"));
            vec![
                text("__shared__ int lanes[64];"),
                declare("int", "i", atom("threadIdx.x")),
                text("lanes[i] = i < len ? from[i] + i : 0;"),
                text(&format!("{name};")),
                when(inside(), vec![changed(element("lanes", "len - 1 - i"))]),
            ]
        };
        self.kernels[child].body = Some(body);
        let mut launch = self.in_its_place(child, &march, false);
        if let Stmt::Launch(launch) = &mut launch {
            launch.config = vec![int(1), int(*self.random.pick(&[8, 32]))];
        }
        self.each(&march, vec![launch]);
    }

    /// Beside the launch, an object of a class of that header, which sets what the child reads or has written.
    fn unfound_in_parent(&mut self) {
        self.feature("class of a header that isn't found beside a launch");
        let march = self.own_march();
        let child = self.step(&march, "again", false);
        let class = self.fresh("Clean");
        let does = *self.random.pick(&[
            "cudaMemsetAsync(at, 0, n * sizeof(int), 0);",
            "cudaMemcpyAsync(at, at + n, sizeof(int), cudaMemcpyDeviceToDevice, 0);",
        ]);
        // The copy's source is what no grid touches.
        let first = self.random.chance(50);
        let code = format!("    __device__ {}{class}", if first { "" } else { "~" });
        let header = if first {
            format!("struct {class} {{\n{code}(int* at, int n) {{ {does} }}\n}};")
        } else {
            format!(
                "struct {class} {{\n    int* at;\n    int n;\n    __device__ {class}(int* at, int n) : at(at), n(n) {{}}\n{code}() {{ {does} }}\n}};"
            )
        };
        self.unfound(&header);
        // What such a class may do isn't seen: nothing may be assumed of the order.
        let mut launch = self.in_its_place(child, &march, true);
        if let Stmt::Launch(launch) = &mut launch {
            launch.args[2] = int(march.len / 2);
        }
        let clean = text(&format!("{class} clean(next + at, {});", march.len / 2));
        let one = binary(member(atom("threadIdx"), "x"), "==", int(0));
        let inner = if self.random.chance(70) {
            vec![Stmt::Block(vec![clean, launch])]
        } else {
            vec![clean, launch]
        };
        self.of_blocks(&march, Some(int(8)), vec![when(one, inner)]);
    }

    /// A macro declares an object beside the launch, whose destructor asks for the error of the launch.
    fn scoped(&mut self) {
        self.feature("object of a macro beside a launch");
        let march = self.own_march();
        let child = self.step(&march, "again", false);
        let class = self.fresh("Asks");
        self.text(format!(
            "struct {class} {{\n    int* at;\n    __device__ explicit {class}(int* at) : at(at) {{}}\n    __device__ ~{class}() {{ *at = cudaGetLastError() == cudaSuccess ? 3 : 4; }}\n}};"
        ));
        let name = self.fresh("SCOPED");
        self.text(format!("#define {name}(place) {class} asks_(place)"));
        // It fails for some blocks; and nobody who sees the destructor takes anything for granted of it.
        let mut launch = self.in_its_place(child, &march, true);
        let grid = binary(member(atom("blockIdx"), "x"), "%", int(2));
        if let Stmt::Launch(launch) = &mut launch {
            launch.config = vec![grid, int(march.len)];
        }
        let one = binary(member(atom("threadIdx"), "x"), "==", int(0));
        let inner = vec![text(&format!("{name}(state + at);")), launch];
        self.of_blocks(&march, Some(int(8)), vec![when(one, inner)]);
    }

    /// A macro declares an object in the child, at whose end the block's threads meet.
    fn scoped_in_child(&mut self) {
        self.feature("object of a macro in a child");
        let march = self.own_march();
        let child = self.step(&march, "again", false);
        let class = self.fresh("Phase");
        self.text(format!(
            "struct {class} {{\n    __device__ ~{class}() {{ __syncthreads(); }}\n}};"
        ));
        let name = self.fresh("PHASE");
        self.text(format!("#define {name} {class} phase_"));
        let i = || declare("int", "i", atom("threadIdx.x"));
        let sum = binary(index(atom("lanes"), atom("len - 1 - i")), "+", atom("k"));
        let change = assign(index(atom("to"), atom("i")), "=", binary(sum, "%", int(1000)));
        self.kernels[child].body = Some(vec![
            text("__shared__ int lanes[64];"),
            i(),
            Stmt::Block(vec![
                text(&format!("{name};")),
                text("lanes[i] = i < len ? from[i] + i : 0;"),
            ]),
            when(binary(atom("i"), "<", atom("len")), vec![change]),
        ]);
        let mut launch = self.in_its_place(child, &march, false);
        if let Stmt::Launch(launch) = &mut launch {
            launch.config = vec![int(1), int(*self.random.pick(&[8, 32]))];
        }
        self.each(&march, vec![launch]);
    }

    /// A macro makes the overload that a child calls, at which the block's threads meet; another one is in sight.
    fn overload_by_macro(&mut self) {
        self.feature("overload of a macro in a child");
        // A type as the argument of a macro.
        self.beyond_the_grammar = true;
        let march = self.own_march();
        let child = self.step(&march, "again", false);
        let name = self.fresh("meet");
        let make = self.fresh("MEETS");
        self.text(format!("static __device__ inline void {name}(double) {{}}"));
        let made = |what: &str| format!("static __device__ inline void {what}(T) {{ __syncthreads(); }}");
        if self.random.chance(50) {
            self.text(format!("#define {make}(T) {}", made(&name)));
            self.text(format!("{make}(int);"));
        } else {
            self.text(format!("#define {make}(n, T) {}", made("n")));
            self.text(format!("{make}({name}, int);"));
        }
        let change = assign(
            index(atom("to"), atom("i")),
            "=",
            binary(
                binary(index(atom("lanes"), atom("len - 1 - i")), "+", atom("k")),
                "%",
                int(1000),
            ),
        );
        self.kernels[child].body = Some(vec![
            text("__shared__ int lanes[64];"),
            declare("int", "i", atom("threadIdx.x")),
            text("lanes[i] = i < len ? from[i] + i : 0;"),
            text(&format!("{name}(i);")),
            when(binary(atom("i"), "<", atom("len")), vec![change]),
        ]);
        let mut launch = self.in_its_place(child, &march, false);
        if let Stmt::Launch(launch) = &mut launch {
            launch.config = vec![int(1), int(*self.random.pick(&[8, 32]))];
        }
        self.each(&march, vec![launch]);
    }

    /// A macro makes the constant that a launch has for its block size; another namespace has one of that name in sight.
    fn constant_by_macro(&mut self) {
        self.feature("constant of a macro");
        let march = self.own_march();
        let child = self.step(&march, "again", false);
        let name = self.fresh("kThreads");
        let (here, make) = (self.fresh("sizes"), self.fresh("CONSTANT"));
        self.text(format!("namespace {here}_of_host {{ constexpr int {name} = 8; }}"));
        self.text(format!(
            "#define {make}(n, v) namespace {here} {{ constexpr int n = v; }}"
        ));
        self.text(format!("{make}({name}, 32);"));
        self.text(format!("using namespace {here};"));
        let mut launch = self.in_its_place(child, &march, false);
        if let Stmt::Launch(launch) = &mut launch {
            launch.config = vec![int(1), atom(&name)];
        }
        self.each(&march, vec![launch]);
    }

    /// The host captures the parent's launch, and makes several executable graphs of it.
    fn captured(&mut self) {
        self.feature("captured graph, instantiated twice");
        let march = self.own_march();
        let child = self.step(&march, "again", false);
        let launch = self.in_its_place(child, &march, true);
        let one = binary(member(atom("threadIdx"), "x"), "==", int(0));
        self.of_blocks(&march, Some(int(8)), vec![when(one, vec![launch])]);
        let Some(kernel) = self.kernels.last() else { return };
        let parent = kernel.name.clone();
        let buffers: Vec<String> = kernel
            .params
            .iter()
            .filter_map(|param| match param.role {
                Role::Pointer(buffer) => Some(format!("d_{}", self.buffers[buffer].name)),
                _ => None,
            })
            .collect();
        let launch = Stmt::Launch(Launch {
            site: 0,
            kernel: parent,
            config: vec![int(march.units), int(8), int(0), atom("s")],
            args: vec![atom("state"), atom("next"), int(march.units), int(march.len)],
            form: LaunchForm::Plain,
        });
        let mut body = vec![
            text("cudaStream_t s;"),
            text("cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);"),
            text("cudaGraph_t graph;"),
            text("cudaGraphExec_t made[2] = {};"),
            text("cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);"),
            launch,
            text("cudaStreamEndCapture(s, &graph);"),
        ];
        let make = |which: &str| text(&format!("cudaGraphInstantiate(&made[{which}], graph, 0);"));
        let run = |which: &str| text(&format!("cudaGraphLaunch(made[{which}], s);"));
        let both = |inner: Vec<Stmt>| Stmt::For {
            init: ("int".to_owned(), "i".to_owned(), int(0)),
            cond: binary(atom("i"), "<", int(2)),
            step: Expr::Unary("++", Box::new(atom("i"))),
            body: inner,
            braces: true,
            unroll: false,
        };
        match self.random.below(3) {
            0 => body.extend([make("0"), make("1"), run("0"), run("1")]),
            1 => body.push(both(vec![make("i"), run("i")])),
            _ => {
                let name = self.fresh("made_of");
                self.main.push(Item::Text(format!(
                    "static cudaGraphExec_t {name}(cudaGraph_t graph) {{\n    cudaGraphExec_t made = nullptr;\n    cudaGraphInstantiate(&made, graph, 0);\n    return made;\n}}"
                )));
                for which in ["0", "1"] {
                    body.push(text(&format!("made[{which}] = {name}(graph);")));
                }
                body.extend([run("1"), run("0")]);
            }
        }
        body.extend([
            text("cudaStreamSynchronize(s);"),
            both(vec![text("cudaGraphExecDestroy(made[i]);")]),
            text("cudaGraphDestroy(graph);"),
            text("cudaStreamDestroy(s);"),
        ]);
        let name = self.fresh("captured");
        self.main.push(Item::Function(Function {
            template: None,
            head: "static void".to_owned(),
            name: name.clone(),
            params: vec![super::param("int*", "state"), super::param("int*", "next")],
            body,
        }));
        if let Some(kernel) = self.kernels.last_mut() {
            kernel
                .host
                .push(Stmt::Expr(call(&name, buffers.into_iter().map(atom).collect())));
        }
    }
}
