//! Code that is called by no name: initialisers of members, conversions, operators and destructors of a class. It reads `threadIdx` where
//! a value looks the same everywhere, or does something in the stream of a launch beside it.

use super::Generator;
use super::ordered::March;
use super::plan::Role;
use crate::fuzz::ast::{
    Expr, Item, Launch, LaunchForm, Stmt, atom, binary, call, declare, index, int, member, text, when,
};

/// A value that is computed by code that isn't named.
struct Unnamed {
    /// What stands before it.
    before: Vec<Stmt>,
    /// The value.
    value: Expr,
}

impl Generator {
    /// Adds a parent with such code.
    pub fn hidden_code(&mut self) {
        match self.random.below(9) {
            0..=2 => self.hidden_guard(),
            3 | 4 => self.hidden_argument(),
            5 => self.hidden_parameter(),
            6 => self.hidden_error(),
            7 => self.hidden_launch(),
            _ => self.hidden_operation(),
        }
    }

    /// The number of the thread or block, as `builtin` says, by code that isn't named. A parameter `len` is there.
    fn unnamed(&mut self, builtin: &str) -> Unnamed {
        let wanted = *self.random.pick(&["Def", "Lazy", "Num"]);
        let class = self.fresh(wanted);
        let make = self.fresh("make");
        let only = |value: String| Unnamed {
            before: Vec::new(),
            value: atom(value),
        };
        let comment = self.comment();
        match self.random.below(12) {
            0 => {
                self.feature("default member initialiser");
                self.text(format!("struct {class} {{ int v = {builtin}; }};"));
                only(format!("{class}().v"))
            }
            1 => {
                self.feature("default member initialiser of an aggregate");
                self.text(format!("struct {class} {{\n    int a;\n    int b = {builtin};\n}};"));
                only(format!("{class}{{len}}.b"))
            }
            2 => {
                self.feature("default member initialiser of a result");
                self.text(format!(
                    "struct {class} {{ int v = {builtin}; }};\nstatic __device__ {class} {make}() {{ return {{}}; }}"
                ));
                only(format!("{make}().v"))
            }
            3 => {
                self.feature("default member initialiser in a template");
                self.text(format!(
                    "struct {class} {{ int v = {builtin}; }};\ntemplate <class T> __device__ int {make}() {{ return T().v; }}"
                ));
                only(format!("{make}<{class}>()"))
            }
            4 => {
                self.feature("conversion of a result");
                self.text(format!(
                    r#"struct {class} {{
    int b;
    __device__ operator{comment} int() const {{ return b + {builtin}; }}
}};
static __device__ {class} {make}(int n) {{ return {{n}}; }}"#
                ));
                only(format!("{make}(0)"))
            }
            5 => {
                self.feature("conversion of an argument");
                self.text(format!(
                    r#"struct {class} {{
    int b;
    __device__ operator{comment} int() const {{ return b + {builtin}; }}
}};
static __device__ int {make}(int n) {{ return n + 1; }}"#
                ));
                let object = self.object(&class, "-1");
                only(format!("{make}({object})"))
            }
            6 => {
                self.feature("conversion to a result");
                self.text(format!(
                    r#"struct {class} {{
    int v;
    __device__ {class}(int x) : v(x + {builtin}) {{}}
}};
static __device__ {class} {make}(int n) {{ return n; }}"#
                ));
                only(format!("{make}(0).v"))
            }
            7 => {
                self.feature("increment of a class");
                self.text(format!(
                    "struct {class} {{\n    int v;\n    __device__ {class}& operator++() {{\n        v = {builtin};\n        return *this;\n    }}\n}};"
                ));
                Unnamed {
                    before: vec![text(&format!("{class} counter{{len}};")), text("++counter;")],
                    value: atom("counter.v"),
                }
            }
            8 => {
                self.feature("comma of a class");
                self.text(format!(
                    r#"struct {class} {{ int v; }};
static __device__ int operator,({class} a, int b) {{ return a.v * 0 + b * 0 + {builtin}; }}"#
                ));
                Unnamed {
                    before: vec![text(&format!("{class} left{{len}};"))],
                    value: atom("(left, len)"),
                }
            }
            9 => {
                self.feature("operator of a class");
                let operator = *self.random.pick(&["+", "*", "%", "<<", "^"]);
                self.text(format!(
                    r#"struct {class} {{ int v; }};
static __device__ int operator{comment}{operator}({class} a, int b) {{ return a.v * 0 + b * 0 + {builtin}; }}"#
                ));
                let object = self.object(&class, "len");
                only(format!("{object} {operator} len"))
            }
            10 => {
                self.feature("operator of an enumeration");
                let operator = *self.random.pick(&["+", "-", "%", "<"]);
                self.text(format!(
                    r#"enum class {class} {{ first }};
static __device__ int operator{comment}{operator}({class} a, int b) {{ return (int)a * 0 + b * 0 + {builtin}; }}"#
                ));
                only(format!("({class}::first {operator} 2)"))
            }
            _ => {
                self.feature("member operator of a class");
                let (operator, written) = *self.random.pick(&[("()", "(len)"), ("[]", "[len]")]);
                self.text(format!(
                    "struct {class} {{\n    int v;\n    __device__ int operator{operator}(int b) const {{ return v * 0 + b * 0 + {builtin}; }}\n}};"
                ));
                let object = self.object(&class, "len");
                only(format!("{object}{written}"))
            }
        }
    }

    /// What stands between `operator` and what follows it.
    fn comment(&mut self) -> &'static str {
        match self.random.chance(25) {
            true => {
                self.feature("comment behind the word operator");
                let comments = [" /* of the thread */ ", " // of the thread\n    ", "/**/ "];
                let at = self.random.range(0, 2) as usize;
                comments.get(at).copied().unwrap_or(" ")
            }
            false => " ",
        }
    }

    /// An object of a class that has one number: made on the spot, of `number`, or one of the file's.
    fn object(&mut self, class: &str, number: &str) -> String {
        if self.random.chance(50) {
            return format!("{class}{{{number}}}");
        }
        self.feature("object of the file");
        let name = self.fresh("shared_by_all");
        let constant = if number == "len" { "3" } else { number };
        let memory = *self
            .random
            .pick(&["constexpr __device__", "__constant__", "__device__"]);
        self.text(format!("{memory} {class} {name} = {{{constant}}};"));
        name
    }

    /// Every thread launches, though the guard compares its number with what looks the same everywhere.
    fn hidden_guard(&mut self) {
        self.feature("hidden launcher guard");
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let Unnamed { before, value } = self.unnamed("threadIdx.x");
        let mut inner = before;
        inner.push(declare("int", "x", value));
        let launch = self.tally_launch(&march, None, 2);
        let who = binary(member(atom("threadIdx"), "x"), "==", atom("x"));
        inner.push(when(who, vec![launch]));
        self.of_blocks(&march, Some(int(8)), inner);
    }

    /// `add(o, k)`: adds to each element; grids in any order, and at once, give the same.
    fn add(&mut self, march: &March, ty: &str, value: &str) -> String {
        let mut child = self.kernel(
            "add",
            false,
            vec![(Role::Pointer(march.b), "int*", "o"), (Role::Scalar(0, 9), ty, "k")],
        );
        let place = Expr::Unary("&", Box::new(index(atom("o"), member(atom("threadIdx"), "x"))));
        child.body = Some(vec![Stmt::Expr(call("atomicAdd", vec![place, atom(value)]))]);
        let name = child.name.clone();
        self.kernels.push(child);
        name
    }

    fn half_launch(&mut self, march: &March, kernel: String, argument: Expr, mut before: Vec<Stmt>) {
        let launch = Launch {
            site: self.site(),
            kernel,
            config: vec![int(1), int(march.len)],
            args: vec![binary(atom("next"), "+", atom("at")), argument],
            form: LaunchForm::Plain,
        };
        let half = binary(binary(member(atom("threadIdx"), "x"), "%", int(2)), "==", int(0));
        before.push(when(half, vec![Stmt::Launch(launch)]));
        self.of_blocks(march, Some(int(8)), before);
    }

    /// The argument is another one for every thread, or block.
    fn hidden_argument(&mut self) {
        self.feature("hidden argument");
        let units = self.random.range(2, 5);
        let march = self.march(8, units);
        let builtin = *self.random.pick(&["threadIdx.x", "threadIdx.x", "blockIdx.x"]);
        let Unnamed { before, value } = self.unnamed(builtin);
        let add = self.add(&march, "int", "k");
        self.half_launch(&march, add, value, before);
    }

    /// The parameter is a class that reads the thread's number when it is made.
    fn hidden_parameter(&mut self) {
        self.feature("hidden parameter");
        let units = self.random.range(2, 5);
        let march = self.march(8, units);
        let class = self.fresh("Made");
        let builtin = *self.random.pick(&["threadIdx.x", "threadIdx.x", "blockIdx.x"]);
        let argument = if self.random.chance(50) {
            self.text(format!("struct {class} {{ int v = {builtin}; }};"));
            Expr::Braces(String::new(), Vec::new())
        } else {
            self.text(format!(
                "struct {class} {{\n    int v;\n    __device__ {class}(int x) : v(x + {builtin}) {{}}\n}};"
            ));
            atom("len")
        };
        let add = self.add(&march, &class, "k.v");
        self.half_launch(&march, add, argument, Vec::new());
    }

    /// One thread of each block, with an object around its launch.
    fn beside(&mut self, march: &March, class: Item, object: &str, launch: Stmt) {
        let object = text(object);
        let mut inner = Vec::new();
        // It is gone before the launch, or outlives it.
        let gone = self.random.chance(50);
        inner.push(if gone { Stmt::Block(vec![object]) } else { object });
        inner.push(launch);
        let first = binary(member(atom("threadIdx"), "x"), "==", int(0));
        self.of_blocks(march, Some(int(8)), vec![when(first, inner)]);
        if let Some(kernel) = self.kernels.last_mut() {
            kernel.before.push(class);
        }
    }

    /// `again(next + at, …)`: what becomes of the elements depends on what they were.
    fn beside_launch(&mut self, march: &March, grid_is_empty: bool) -> Stmt {
        let again = self.step(march, "again", false);
        let place = || binary(atom("next"), "+", atom("at"));
        let args = vec![place(), place(), atom("len"), int(3)];
        let mut launch = self.ordered_launch(again, march.len, None, args, true);
        if grid_is_empty && let Stmt::Launch(launch) = &mut launch {
            launch.config = vec![binary(atom("len"), "/", int(100)), int(8)];
        }
        launch
    }

    /// A destructor or an operator puts something into the stream of the launch.
    fn hidden_operation(&mut self) {
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let class = self.fresh("Clear");
        let operation = *self.random.pick(&[
            "cudaMemsetAsync(to, 0, len * sizeof(int), 0);",
            "cudaMemcpyAsync(to, from, len * sizeof(int), cudaMemcpyDeviceToDevice, 0);",
        ]);
        let launch = self.beside_launch(&march, false);
        let fields = "    int* to;\n    const int* from;\n    int len;\n";
        let made = format!("{class} clear{{next + at, state + at, len}};");
        if self.random.chance(50) {
            self.feature("destructor that sets memory");
            let text = format!("struct {class} {{\n{fields}    __device__ ~{class}() {{ {operation} }}\n}};");
            self.beside(&march, Item::Text(text), &made, launch);
            return;
        }
        self.feature("operator that sets memory");
        let (operator, use_it) =
            *self
                .random
                .pick(&[("+=", "clear += 3;"), ("<<", "clear << 3;"), ("()", "clear(3);")]);
        let class_text = format!(
            "struct {class} {{\n{fields}    __device__ {class}& operator{operator}(int) {{\n        {operation}\n        return *this;\n    }}\n}};"
        );
        let mut inner = vec![text(&made)];
        if self.random.chance(50) {
            inner.extend([text(use_it), launch]);
        } else {
            inner.extend([launch, text(use_it)]);
        }
        let first = binary(member(atom("threadIdx"), "x"), "==", int(0));
        self.of_blocks(&march, Some(int(8)), vec![when(first, inner)]);
        if let Some(kernel) = self.kernels.last_mut() {
            kernel.before.push(Item::Text(class_text));
        }
    }

    /// A destructor asks for the error of a launch that fails.
    fn hidden_error(&mut self) {
        self.feature("destructor that asks for errors");
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let class = self.fresh("Asks");
        let launch = self.beside_launch(&march, true);
        let ask = *self.random.pick(&["cudaGetLastError", "cudaPeekAtLastError"]);
        let class_text = format!(
            "struct {class} {{\n    int* at;\n    __device__ ~{class}() {{\n        if ({ask}() != cudaSuccess) *at = 77;\n    }}\n}};"
        );
        let first = binary(member(atom("threadIdx"), "x"), "==", int(0));
        let inner = vec![text(&format!("{class} asks{{state + at}};")), launch];
        self.of_blocks(&march, Some(int(8)), vec![when(first, inner)]);
        if let Some(kernel) = self.kernels.last_mut() {
            kernel.before.push(Item::Text(class_text));
        }
    }

    /// A destructor launches.
    fn hidden_launch(&mut self) {
        self.feature("destructor that launches");
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let class = self.fresh("Last");
        let other = self.step(&march, "other", false);
        let other = self.kernels[other].name.clone();
        let launch = self.beside_launch(&march, false);
        let class_text = format!(
            "struct {class} {{\n    int* to;\n    int* from;\n    int len;\n    \
             __device__ ~{class}() {{ {other}<<<1, 8>>>(from, to, len, 2); }}\n}};"
        );
        let made = format!("{class} last{{next + at, state + at, len}};");
        // The launch in the destructor has no number of its own.
        self.ordered_sites.insert(0);
        self.beside(&march, Item::Text(class_text), &made, launch);
    }
}
