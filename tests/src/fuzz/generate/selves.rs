//! Kernels of one block that launch themselves: chains, where each link launches the next one with what it has found out so far, and
//! trees, where each node launches one for each part of its range.

use super::Generator;
use super::plan::{Fill, Kernel, KernelParam, Role};
use crate::fuzz::ast::{
    Expr, Launch, LaunchForm, Stmt, assign, atom, binary, call, conditional, declare, index, int, member, text, unary,
    when,
};

/// What a link passes to the next one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carry {
    /// Nothing.
    None,
    /// The sum of what it has got and of its elements.
    Sum,
    /// The maximum.
    Maximum,
    /// Something that depends on all before in another way.
    Mix,
    /// Both a sum and a maximum.
    Two,
}

impl Generator {
    /// Adds, to some programs, a kernel that launches itself.
    pub fn selves(&mut self) {
        if !self.random.chance(25) {
            return;
        }
        match self.random.chance(70) {
            true => self.chain(),
            false => self.tree(),
        }
    }

    fn self_launching(&mut self, name: &str, block: i64, params: Vec<(Role, &str, &str)>) -> Kernel {
        let mut kernel = Kernel::plain(self.fresh(name));
        kernel.parent = true;
        kernel.one_block_of = Some(block);
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

    /// The sum, or the maximum, of what the threads of a block have.
    fn of_block(&mut self, block: i64, maximum: bool) -> String {
        let name = self.fresh(if maximum { "largest" } else { "total" });
        let step = if maximum {
            "result = max(result, values[t])"
        } else {
            "result += values[t]"
        };
        let last = if self.random.chance(50) {
            "    __syncthreads();\n"
        } else {
            // The next call would write while others still read: there is none.
            ""
        };
        self.text(format!(
            "__device__ int {name}(int value) {{\n    __shared__ int values[{block}];\n    values[threadIdx.x] = value;\n    \
             __syncthreads();\n    int result = 0;\n    for (int t = 0; t < {block}; ++t) {step};\n{last}    return result;\n}}"
        ));
        name
    }

    /// A self-launch by one thread.
    fn again(&mut self, kernel: &Kernel, block: i64, args: Vec<Expr>) -> Stmt {
        let block = if self.random.chance(50) {
            int(block)
        } else {
            member(atom("blockDim"), "x")
        };
        let mut config = vec![int(1), block];
        match self.random.below(6) {
            0 => config.extend([int(0), atom("cudaStreamFireAndForget")]),
            1 => config.extend([int(0), int(0)]),
            2 => config[0] = call("dim3", vec![int(1)]),
            _ => {}
        }
        Stmt::Launch(Launch {
            site: self.site(),
            kernel: kernel.name.clone(),
            config,
            args,
            form: LaunchForm::Plain,
        })
    }

    fn first_thread(&mut self) -> Expr {
        let thread = member(atom("threadIdx"), "x");
        if self.random.chance(25) {
            unary("!", thread)
        } else {
            binary(thread, "==", int(0))
        }
    }

    /// Types of parameters that lead to what is read, and to what is written.
    fn pointers(&mut self) -> (&'static str, &'static str) {
        match self.random.below(8) {
            0 | 1 => {
                self.feature("restricted pointers in a kernel that launches itself");
                ("const int* __restrict__", "int* __restrict__")
            }
            2 => {
                self.feature("constant parameters in a kernel that launches itself");
                ("const int* const", "int* const")
            }
            3 => {
                self.feature("restricted pointers in a kernel that launches itself");
                ("const int* const __restrict__", "int* const __restrict__")
            }
            _ => ("const int*", "int*"),
        }
    }

    fn chain(&mut self) {
        self.feature("chain");
        let block = *self.random.pick(&[4, 8, 32, 33]);
        let len = self.random.range(1, 7 * block);
        let carry = *self.random.pick(&[
            Carry::None,
            Carry::Sum,
            Carry::Sum,
            Carry::Maximum,
            Carry::Mix,
            Carry::Two,
        ]);
        let (x, y) = (self.random.range(3, 50), self.random.range(0, 9));
        // Links may read what the one before has written before it launched.
        let reads_back = self.random.chance(25);
        let source = self.buffer("items", "int", len, Fill::Formula(x, y, 100));
        let target = self.buffer("moved", "int", len, Fill::Value(0));
        let end = self.buffer("end", "int", 2, Fill::Value(-1));
        for buffer in [target, end] {
            self.buffers[buffer].shown = true;
        }
        let (read, written) = self.pointers();
        let mut params = vec![
            (Role::Pointer(source), read, "items"),
            (Role::Pointer(target), written, "moved"),
            (Role::Pointer(end), written, "end"),
        ];
        // What bounds the chain: a number, or a field of an object.
        let by_field = self.random.chance(20);
        let bounds = self.fresh("Bounds");
        match by_field {
            true => params.push((Role::Object(self.bounds(&bounds, len)), bounds.as_str(), "size")),
            false => params.push((Role::Count, "int", "n")),
        }
        let n = || match by_field {
            true => member(atom("size"), "n"),
            false => atom("n"),
        };
        params.push((Role::Scalar(0, 0), "int", "tile"));
        // An object that is constant but for a field that each link changes.
        let counting = self.random.chance(12);
        let meter = format!("const {}", self.fresh("Meter"));
        if counting {
            params.push((Role::Object(self.meter(&meter)), meter.as_str(), "meter"));
        }
        if carry != Carry::None {
            params.push((Role::Scalar(0, 9), "int", "before"));
        }
        if carry == Carry::Two {
            params.push((Role::Scalar(0, 9), "int", "highest"));
        }
        let unchanged = self.random.chance(30);
        if unchanged {
            params.push((Role::Scalar(1, 5), "int", "scale"));
        }
        let mut kernel = self.self_launching("link", block, params);
        kernel.numbers = len;

        let mut stmts = Vec::new();
        let width = if self.random.chance(50) {
            int(block)
        } else {
            member(atom("blockDim"), "x")
        };
        let i = binary(binary(atom("tile"), "*", width), "+", member(atom("threadIdx"), "x"));
        stmts.push(declare("int", "i", i));
        let inside = || binary(atom("i"), "<", n());
        let item = conditional(inside(), index(atom("items"), atom("i")), int(0));
        stmts.push(declare("int", "value", item));
        if unchanged {
            stmts.push(assign(atom("value"), "*=", atom("scale")));
        }
        if counting {
            stmts.push(assign(atom("value"), "+=", member(atom("meter"), "uses")));
            stmts.push(assign(member(atom("meter"), "uses"), "+=", int(3)));
        }
        let element = || index(atom("moved"), atom("i"));
        if reads_back {
            self.feature("a link reads what the one before wrote");
            let place = binary(atom("i"), "-", int(block));
            let before = conditional(
                binary(binary(atom("tile"), ">", int(0)), "&&", inside()),
                index(atom("moved"), place),
                int(1),
            );
            stmts.push(declare("int", "earlier", before));
            let mixed = binary(binary(atom("value"), "+", atom("earlier")), "%", int(97));
            stmts.push(when(inside(), vec![assign(element(), "=", mixed)]));
        }
        // A macro whose parts have no text of their own.
        let macros = self.random.chance(20);
        let step = match macros {
            true => self.sum_by_macro(atom("tile"), int(1)),
            false => binary(atom("tile"), "+", int(1)),
        };
        let bound = if by_field { atom("size") } else { atom("n") };
        let mut next = vec![atom("items"), atom("moved"), atom("end"), bound, step];
        if counting {
            next.push(atom("meter"));
        }
        let results = self.carried(carry, block, &mut stmts);
        next.extend(results.iter().cloned());
        if unchanged {
            next.push(atom("scale"));
        }
        if reads_back || self.random.chance(30) {
            // All threads have written, and read, before one of them launches.
            stmts.push(text("__syncthreads();"));
        }

        let more = binary(binary(binary(atom("tile"), "+", int(1)), "*", int(block)), "<", n());
        let mut goes_on = match macros && self.random.chance(60) {
            true => self.more_by_macro(block, n()),
            false => more,
        };
        if let Some(result) = results.first()
            && self.random.chance(25)
        {
            self.feature("the data decide how long a chain is");
            let below = binary(result.clone(), "<", int(self.random.range(20, 3000)));
            goes_on = binary(goes_on, "&&", below);
        }
        let launch = self.again(&kernel, block, next);
        let first = self.first_thread();
        let last = results.first().cloned().unwrap_or_else(|| atom("tile"));
        let ends = assign(index(atom("end"), int(0)), "=", last);
        // The last write of what the next link reads, which a part of the warp makes while the launching thread waits for it.
        let apart = block <= 32 && reads_back && self.random.chance(30);
        match self.random.below(3) {
            _ if apart => {
                self.feature("branches meet before a link launches");
                let other = assign(element(), "+=", int(1));
                stmts.push(Stmt::If {
                    cond: binary(member(atom("threadIdx"), "x"), "==", int(0)),
                    then: vec![text("__syncwarp();"), when(goes_on, vec![launch])],
                    otherwise: vec![when(inside(), vec![other]), text("__syncwarp();")],
                    braces: true,
                });
            }
            0 => {
                let inner = Stmt::If {
                    cond: goes_on,
                    then: vec![launch],
                    otherwise: vec![ends],
                    braces: self.random.chance(50),
                };
                stmts.push(when(first, vec![inner]));
            }
            1 => stmts.push(when(binary(first, "&&", goes_on), vec![launch])),
            _ => {
                let number = call("atomicAdd", vec![unary("&", index(atom("end"), int(1))), int(3)]);
                stmts.push(Stmt::If {
                    cond: binary(goes_on, "&&", first),
                    then: vec![launch],
                    otherwise: Vec::new(),
                    braces: self.random.chance(50),
                });
                stmts.push(Stmt::Expr(number));
            }
        }
        // What comes behind the launch: the elements of this link, which no other one touches.
        let mut behind = binary(atom("value"), "*", int(self.random.range(2, 9)));
        if carry != Carry::None {
            behind = binary(behind, "+", atom("before"));
        }
        if carry == Carry::Two {
            behind = binary(behind, "-", atom("highest"));
        }
        if !reads_back {
            if self.random.chance(20) {
                stmts.push(when(binary(atom("i"), ">=", n()), vec![text("return;")]));
                stmts.push(assign(element(), "=", behind));
            } else {
                stmts.push(when(inside(), vec![assign(element(), "=", behind)]));
            }
        }
        kernel.body = Some(stmts);
        self.kernels.push(kernel);
    }

    /// A class whose field `n` bounds a chain; an object of it with this bound.
    fn bounds(&mut self, class: &str, n: i64) -> String {
        self.feature("field that bounds a chain");
        let (fields, object) = match self.random.below(3) {
            0 => ("int n;", format!("{class}{{{n}}}")),
            1 => ("int first; int n;", format!("{class}{{0, {n}}}")),
            _ => ("int n; const int* none;", format!("{class}{{{n}, nullptr}}")),
        };
        self.text(format!("struct {class} {{ {fields} }};"));
        object
    }

    /// A class with a field that changes in constant objects, too; an object of it.
    fn meter(&mut self, ty: &str) -> String {
        self.feature("mutable field of a constant parameter");
        let class = ty.trim_start_matches("const ");
        let (class_text, object) = match self.random.chance(50) {
            true => (
                format!("struct {class} {{ mutable int uses; }};"),
                format!("{class}{{1}}"),
            ),
            false => (
                format!("struct Of{class} {{ mutable int uses; }};\nstruct {class} : Of{class} {{ int most; }};"),
                format!("{class}{{{{1}}, 5}}"),
            ),
        };
        self.text(class_text);
        object
    }

    /// The sum of two numbers, by a macro.
    fn sum_by_macro(&mut self, a: Expr, b: Expr) -> Expr {
        self.feature("parts of a link out of a macro");
        let name = self.fresh("ADD").to_uppercase();
        self.text(format!("#define {name}(a, b) ((a) + (b))"));
        call(&name, vec![a, b])
    }

    /// Whether there is another link, by a macro that says no to the opposite.
    fn more_by_macro(&mut self, block: i64, n: Expr) -> Expr {
        self.feature("parts of a link out of a macro");
        let name = self.fresh("MORE").to_uppercase();
        self.text(format!("#define {name}(t, n) (!(((t) + 1) * {block} >= (n)))"));
        call(&name, vec![atom("tile"), n])
    }

    /// Computes what the next link gets in the place of `before`, and of `highest`.
    fn carried(&mut self, carry: Carry, block: i64, stmts: &mut Vec<Stmt>) -> Vec<Expr> {
        match carry {
            Carry::None => Vec::new(),
            Carry::Sum => {
                let total = self.of_block(block, false);
                stmts.push(declare("int", "sum", call(&total, vec![atom("value")])));
                if self.random.chance(15) {
                    self.feature("what a link adds depends on the sum");
                    let own = binary(binary(atom("before"), "%", int(3)), "+", atom("sum"));
                    return vec![binary(atom("before"), "+", own)];
                }
                if self.random.chance(15) {
                    return vec![self.sum_by_macro(atom("before"), atom("sum"))];
                }
                let result = if self.random.chance(50) {
                    binary(atom("before"), "+", atom("sum"))
                } else {
                    binary(atom("sum"), "+", atom("before"))
                };
                vec![result]
            }
            Carry::Maximum => {
                let largest = self.of_block(block, true);
                stmts.push(declare("int", "most", call(&largest, vec![atom("value")])));
                vec![call("max", vec![atom("before"), atom("most")])]
            }
            Carry::Mix => {
                let total = self.of_block(block, false);
                stmts.push(declare("int", "sum", call(&total, vec![atom("value")])));
                let mixed = binary(binary(atom("before"), "*", int(3)), "+", atom("sum"));
                vec![binary(mixed, "%", int(1009))]
            }
            Carry::Two => {
                let (total, largest) = (self.of_block(block, false), self.of_block(block, true));
                stmts.push(declare("int", "sum", call(&total, vec![atom("value")])));
                stmts.push(declare("int", "most", call(&largest, vec![atom("value")])));
                vec![
                    binary(atom("before"), "+", atom("sum")),
                    call("max", vec![atom("highest"), atom("most")]),
                ]
            }
        }
    }

    /// Every node changes all elements of its range, and leaves the parts to others.
    fn tree(&mut self) {
        self.feature("tree of launches");
        let block = *self.random.pick(&[4, 8, 32]);
        let len = self.random.range(5, 60);
        let (x, y) = (self.random.range(3, 50), self.random.range(0, 9));
        let target = self.buffer("range", "int", len, Fill::Formula(x, y, 100));
        let sums = self.buffer("sums", "int", 8, Fill::Value(0));
        for buffer in [target, sums] {
            self.buffers[buffer].shown = true;
        }
        let (_, written) = self.pointers();
        let params = vec![
            (Role::Pointer(target), written, "range"),
            (Role::Pointer(sums), written, "sums"),
            (Role::Scalar(0, 0), "int", "first"),
            (Role::Count, "int", "last"),
            (Role::Scalar(0, 0), "int", "level"),
        ];
        let mut kernel = self.self_launching("node", block, params);
        kernel.numbers = len;
        let element = index(atom("range"), atom("i"));
        let changed = binary(
            binary(
                binary(element.clone(), "*", int(self.random.range(2, 4))),
                "+",
                atom("level"),
            ),
            "%",
            int(1000),
        );
        let added = call(
            "atomicAdd",
            vec![unary("&", index(atom("sums"), atom("level"))), element.clone()],
        );
        let mut stmts = vec![Stmt::For {
            init: (
                "int".to_owned(),
                "i".to_owned(),
                binary(atom("first"), "+", member(atom("threadIdx"), "x")),
            ),
            cond: binary(atom("i"), "<", atom("last")),
            step: binary(atom("i"), "+=", member(atom("blockDim"), "x")),
            body: vec![assign(element, "=", changed), Stmt::Expr(added)],
            braces: true,
            unroll: false,
        }];
        // Before others change the same elements.
        stmts.push(text("__syncthreads();"));
        let size = binary(atom("last"), "-", atom("first"));
        let large = binary(size, ">", int(self.random.range(3, 12)));
        let deep = binary(atom("level"), "<", int(self.random.range(2, 6)));
        let first = self.first_thread();
        let mut parts = vec![declare(
            "int",
            "middle",
            binary(binary(atom("first"), "+", atom("last")), "/", int(2)),
        )];
        for (from, to) in [("first", "middle"), ("middle", "last")] {
            let args = vec![
                atom("range"),
                atom("sums"),
                atom(from),
                atom(to),
                binary(atom("level"), "+", int(1)),
            ];
            let launch = self.again(&kernel, block, args);
            if self.random.chance(20) {
                parts.push(when(binary(atom(from), "<", atom(to)), vec![launch]));
            } else {
                parts.push(launch);
            }
        }
        let goes_on = binary(large, "&&", deep);
        if self.random.chance(50) {
            stmts.push(when(binary(first, "&&", goes_on), parts));
        } else {
            let stop = Expr::Call(String::new(), vec![goes_on]);
            stmts.push(when(unary("!", stop), vec![text("return;")]));
            stmts.push(when(first, parts));
        }
        kernel.body = Some(stmts);
        self.kernels.push(kernel);
    }
}
