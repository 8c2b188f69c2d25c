//! Device functions that launch, and what those do that call them: they put memory operations into the stream of the launch, order it by
//! events, ask for its error.

use super::Generator;
use super::ordered::March;
use crate::fuzz::ast::{Expr, Function, Item, Stmt, atom, binary, call, int, member, text, when};

/// How the launching function is called.
struct Called {
    /// It, and what is around it.
    items: Vec<Item>,
    /// The statement.
    call: Stmt,
}

impl Generator {
    /// Adds a parent that calls such a function.
    pub fn caller(&mut self) {
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let (items, inner) = match self.random.below(4) {
            0 => self.caller_asks(&march),
            1 => self.caller_orders(&march),
            _ => self.caller_sets(&march),
        };
        let first = binary(member(atom("threadIdx"), "x"), "==", int(0));
        self.of_blocks(&march, Some(int(8)), vec![when(first, inner)]);
        if let Some(kernel) = self.kernels.last_mut() {
            kernel.before = items;
        }
    }

    /// The function that launches, and a call of it for `next + at`, which comes from `from`. Its grids are in no order with each other.
    /// What a rewrite assumes is false where the grid `fails`, and where it assumes something of callers that it doesn't see.
    fn launching(&mut self, march: &March, from: &str, fails: bool, stream: Option<Expr>) -> Called {
        let child = self.step(march, "again", false);
        let args = vec![atom("from"), atom("to"), atom("len"), int(3)];
        let mut launch = self.ordered_launch(child, march.len, stream, args, fails);
        if fails && let Stmt::Launch(launch) = &mut launch {
            launch.config[0] = binary(atom("len"), "/", int(100));
        }
        let way = self.random.below(5);
        if way < 3
            && let Stmt::Launch(launch) = &launch
        {
            self.ordered_sites.insert(launch.site);
        }
        let go = self.fresh("go");
        let param = |ty: &str, name: &str| super::param(ty, name);
        let function = Item::Function(Function {
            template: None,
            head: "static __device__ void".to_owned(),
            name: go.clone(),
            params: vec![param("int*", "from"), param("int*", "to"), param("int", "len")],
            body: vec![launch],
        });
        let args = |first: &str| format!("{first}, next + at, len");
        match way {
            0 => {
                self.feature("launching function in a macro");
                let name = go.to_uppercase();
                let defined = Item::Text(format!("#define {name}(from, to, len) {go}(from, to, len)"));
                Called {
                    items: vec![function, defined],
                    call: text(&format!("{name}({});", args(from))),
                }
            }
            1 => {
                self.feature("launching function in a member");
                let class = self.fresh("Work");
                let class_text = format!(
                    "struct {class} {{\n    int* from;\n    int* to;\n    __device__ void run(int len) const {{ {go}(from, to, len); }}\n}};"
                );
                Called {
                    items: vec![function, Item::Text(class_text)],
                    call: text(&format!("{class}{{{from}, next + at}}.run(len);")),
                }
            }
            2 => {
                self.feature("launching function in a destructor");
                let class = self.fresh("Last");
                let class_text = format!(
                    "struct {class} {{\n    int* from;\n    int* to;\n    int len;\n    __device__ ~{class}() {{ {go}(from, to, len); }}\n}};"
                );
                Called {
                    items: vec![function, Item::Text(class_text)],
                    call: Stmt::Block(vec![text(&format!("{class} last{{{from}, next + at, len}};"))]),
                }
            }
            3 => {
                self.feature("launching function in a function");
                let outer = self.fresh("outer");
                let through = Item::Function(Function {
                    template: None,
                    head: "static __device__ void".to_owned(),
                    name: outer.clone(),
                    params: vec![param("int*", "from"), param("int*", "to"), param("int", "len")],
                    body: vec![Stmt::Expr(call(&go, vec![atom("from"), atom("to"), atom("len")]))],
                });
                Called {
                    items: vec![function, through],
                    call: text(&format!("{outer}({});", args(from))),
                }
            }
            _ => Called {
                items: vec![function],
                call: text(&format!("{go}({});", args(from))),
            },
        }
    }

    /// The caller asks for the error of the launch.
    fn caller_asks(&mut self, march: &March) -> (Vec<Item>, Vec<Stmt>) {
        self.feature("caller asks for the error");
        let stream = self.random.chance(50).then(|| atom("cudaStreamFireAndForget"));
        let Called { items, call } = self.launching(march, "next + at", true, stream);
        let ask = *self.random.pick(&["cudaGetLastError", "cudaPeekAtLastError"]);
        let asks = text(&format!("if ({ask}() != cudaSuccess) state[at] = 77;"));
        (items, vec![call, asks])
    }

    /// The caller sets or copies memory before or behind the launch.
    fn caller_sets(&mut self, march: &March) -> (Vec<Item>, Vec<Stmt>) {
        self.feature("caller sets memory");
        let Called { items, call } = self.launching(march, "next + at", false, None);
        let operation = text(self.random.pick::<&str>(&[
            "cudaMemsetAsync(next + at, 0, len * sizeof(int), 0);",
            "cudaMemcpyAsync(next + at, state + at, len * sizeof(int), cudaMemcpyDeviceToDevice, 0);",
        ]));
        let inner = if self.random.chance(60) {
            vec![operation, call]
        } else {
            vec![call, operation]
        };
        (items, inner)
    }

    /// The caller orders the launch and another one by an event.
    fn caller_orders(&mut self, march: &March) -> (Vec<Item>, Vec<Stmt>) {
        self.feature("caller orders by an event");
        let before = self.random.chance(50);
        let from = if before { "state + at" } else { "next + at" };
        let Called { items, call } = self.launching(march, from, false, None);
        let other = self.step(march, "other", false);
        let place = |name: &str| binary(atom(name), "+", atom("at"));
        // It makes what the function's grid reads, or reads what that makes.
        let (x, y) = if before { ("state", "state") } else { ("next", "state") };
        let args = vec![place(x), place(y), atom("len"), int(2)];
        let launch = self.ordered_launch(other, march.len, Some(atom("s")), args, true);
        let mut inner = vec![
            text("cudaStream_t s;"),
            text("cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);"),
            text("cudaEvent_t e;"),
            text("cudaEventCreateWithFlags(&e, cudaEventDisableTiming);"),
        ];
        if before {
            inner.extend([
                launch,
                text("cudaEventRecord(e, s);"),
                text("cudaStreamWaitEvent(0, e, 0);"),
                call,
            ]);
        } else {
            inner.extend([
                call,
                text("cudaEventRecord(e, 0);"),
                text("cudaStreamWaitEvent(s, e, 0);"),
                launch,
            ]);
        }
        inner.extend([text("cudaStreamDestroy(s);"), text("cudaEventDestroy(e);")]);
        (items, inner)
    }
}
