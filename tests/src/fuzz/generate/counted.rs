//! Operands of launches that look as if nothing came of evaluating them twice: a call, an operator or a conversion that counts how often it
//! runs, and `__COUNTER__`.

use super::Generator;
use super::ordered::March;
use super::plan::{Buffer, Fill};
use crate::fuzz::ast::{Stmt, assign, atom, binary, declare, index, int, member, text, when};

/// Where something is counted, and by whom.
struct Counter {
    /// What stands before functions and operators: `__device__ `, or nothing.
    by: &'static str,
    /// A pointer to two numbers, of which the first one counts.
    place: String,
    /// What counts where there is no such pointer.
    elsewhere: String,
}

/// A number with an effect.
struct Counting {
    /// What stands before it.
    before: Vec<String>,
    value: String,
}

fn only(value: String) -> Counting {
    Counting {
        before: Vec::new(),
        value,
    }
}

impl Generator {
    /// Adds a parent with such an operand.
    pub fn counted(&mut self) {
        match self.random.below(8) {
            0..=4 => self.counted_operand(),
            5 | 6 => self.counted_by_the_host(),
            _ => self.numbered_uses(),
        }
    }

    /// The number `n`, and the counter has one more.
    fn counting(&mut self, counter: &Counter, n: i64) -> Counting {
        match self.random.below(3) {
            0 => self.counting_by_a_field(counter, n),
            1 => self.counting_unseen(counter, n),
            _ => self.counting_operand(counter, n),
        }
    }

    /// A function that counts through a reference which an object of its own holds.
    fn counting_by_a_field(&mut self, counter: &Counter, n: i64) -> Counting {
        let Counter { by, place, .. } = counter;
        let (class, base, size) = (self.fresh("Holds"), self.fresh("Held"), self.fresh("size"));
        let (classes, object, field) = match self.random.below(6) {
            0 | 1 => {
                self.feature("counts by a field");
                (
                    format!("struct {class} {{ int& r; }};"),
                    format!("{class} w{{*p}};"),
                    "w.r",
                )
            }
            2 => {
                self.feature("counts by an inherited field");
                (
                    format!("struct {base} {{ int& r; }};\nstruct {class} : {base} {{ int z; }};"),
                    format!("{class} w{{{{*p}}, 0}};"),
                    "w.r",
                )
            }
            3 => {
                self.feature("counts by a field of a field");
                (
                    format!("struct {base} {{ int& r; }};\nstruct {class} {{ {base} v; }};"),
                    format!("{class} w{{{{*p}}}};"),
                    "w.v.r",
                )
            }
            4 => {
                self.feature("counts by a field of a template");
                (
                    format!("template <class T> struct {class} {{ T r; }};"),
                    format!("{class}<int&> w{{*p}};"),
                    "w.r",
                )
            }
            _ => {
                self.feature("counts by a field of another type's name");
                (
                    format!("typedef int& {base};\nstruct {class} {{ {base} r; }};"),
                    format!("{class} w{{*p}};"),
                    "w.r",
                )
            }
        };
        let count = self
            .random
            .pick::<&str>(&["@ = @ + 1;", "@++;", "++@;", "@ += 1;", "(@)++;"])
            .replace('@', field);
        self.text(format!(
            "{classes}\nstatic {by}int {size}(int* p) {{\n    {object}\n    {count}\n    return {n};\n}}"
        ));
        only(format!("{size}({place})"))
    }

    /// A function that calls what counts by no name.
    fn counting_unseen(&mut self, counter: &Counter, n: i64) -> Counting {
        let Counter { by, place, elsewhere } = counter;
        let (class, size) = (self.fresh("Counts"), self.fresh("size"));
        let (class_text, body) = match self.random.below(7) {
            0 => {
                self.feature("counts in an operator");
                (
                    format!(
                        "struct {class} {{ int* p; }};\nstatic {by}int operator+({class} a, int b) {{\n    *a.p += 1;\n    return b;\n}}"
                    ),
                    format!("{class} a{{p}};\n    return a + {n};"),
                )
            }
            1 => {
                self.feature("counts in a conversion");
                (
                    format!(
                        "struct {class} {{\n    int* p;\n    {by}operator int() const {{\n        *p += 1;\n        return {n};\n    }}\n}};"
                    ),
                    format!("{class} a{{p}};\n    return a;"),
                )
            }
            2 => {
                self.feature("counts in a constructor");
                (
                    format!("struct {class} {{\n    {by}{class}(int* p) {{ *p += 1; }}\n}};"),
                    format!("{class} a(p);\n    return {n};"),
                )
            }
            3 => {
                self.feature("counts in a destructor");
                (
                    format!("struct {class} {{\n    int* p;\n    {by}~{class}() {{ *p += 1; }}\n}};"),
                    format!("{class} a{{p}};\n    return {n};"),
                )
            }
            4 => {
                self.feature("counts in a default argument");
                let (next, inner) = (self.fresh("next_number"), self.fresh("inner"));
                (
                    format!(
                        r#"static {by}int {next}() {{
    {elsewhere}
    return {n};
}}
static {by}int {inner}(int x, int y = {next}()) {{ return y; }}"#
                    ),
                    format!("return {inner}(1);"),
                )
            }
            5 => {
                self.feature("counts in a loop over a class");
                (
                    format!(
                        r#"struct {class} {{
    int* p;
    {by}int* begin() const {{
        *p += 1;
        return p;
    }}
    {by}int* end() const {{ return p + 1; }}
}};"#
                    ),
                    format!("int k = 0;\n    for (int x : {class}{{p}}) k += x > 0 ? {n} : 0;\n    return k;"),
                )
            }
            _ => {
                self.feature("counts behind an arrow");
                let pointed = self.arrow(by, &class);
                (pointed, format!("{class} a{{p}};\n    return a->v + {n};"))
            }
        };
        self.text(format!(
            "{class_text}\nstatic {by}int {size}(int* p) {{\n    {body}\n}}"
        ));
        only(format!("{size}({place})"))
    }

    /// A class with an operator `->` that counts and leads to the second number.
    fn arrow(&mut self, by: &str, class: &str) -> String {
        let pointed = self.fresh("Pointed");
        format!(
            r#"struct {pointed} {{ int v; }};
struct {class} {{
    int* p;
    {by}{pointed}* operator->() const {{
        *p += 1;
        return ({pointed}*)(p + 1);
    }}
}};"#
        )
    }

    /// Code of the operand itself that is called by no name, or by one that a local variable has.
    fn counting_operand(&mut self, counter: &Counter, n: i64) -> Counting {
        let Counter { by, place, elsewhere } = counter;
        let (class, object) = (self.fresh("Counts"), self.fresh("counts"));
        let (lines, value) = match self.random.below(8) {
            0 | 1 => {
                self.feature("operand with an arrow that counts");
                (self.arrow(by, &class), format!("{object}->v + {n}"))
            }
            2 | 3 => {
                self.feature("operand with a literal operator that counts");
                let suffix = self.fresh("go");
                self.text(format!(
                    "static {by}int operator\"\"_{suffix}(unsigned long long x) {{\n    {elsewhere}\n    return (int)x;\n}}"
                ));
                return only(format!("{n}_{suffix}"));
            }
            4 => {
                self.feature("operand with an operator that counts");
                let operator = *self.random.pick(&["+", "-", "%", "|"]);
                (
                    format!(
                        "struct {class} {{ int* p; }};\nstatic {by}int operator{operator}({class} a, int b) {{\n    *a.p += 1;\n    return b;\n}}"
                    ),
                    format!("({object} {operator} {n})"),
                )
            }
            5 => {
                self.feature("operand with a conversion that counts");
                (
                    format!(
                        "struct {class} {{\n    int* p;\n    {by}operator int() const {{\n        *p += 1;\n        return {n};\n    }}\n}};"
                    ),
                    format!("{object} + 0"),
                )
            }
            6 => {
                self.feature("operand with a member that counts");
                let (operator, used) = *self.random.pick(&[
                    ("operator()(int x)", "(#)"),
                    ("operator[](int x)", "[#]"),
                    ("next(int x)", ".next(#)"),
                ]);
                (
                    format!(
                        "struct {class} {{\n    int* p;\n    {by}int {operator} const {{\n        *p += 1;\n        return x;\n    }}\n}};"
                    ),
                    format!("{object}{}", used.replace('#', &n.to_string())),
                )
            }
            _ => {
                self.feature("operand with a default argument that counts");
                let next = self.fresh("next_number");
                self.text(format!(
                    r#"static {by}int {next}() {{
    {elsewhere}
    return {n};
}}
static {by}int {object}(int x, int y = {next}()) {{ return y; }}"#
                ));
                return only(format!("{object}(1)"));
            }
        };
        self.text(lines);
        Counting {
            before: vec![format!("{class} {object}{{{place}}};")],
            value,
        }
    }

    /// A parent each of whose threads launches for its own elements.
    fn of_threads(&mut self, march: &March, kernel: super::plan::Kernel, inner: Vec<Stmt>) {
        let mut stmts = self.thread_number(&kernel, "v");
        let at = declare("int", "at", binary(atom("v"), "*", atom("len")));
        if self.random.chance(50) {
            stmts.push(when(binary(atom("v"), ">=", atom("units")), vec![text("return;")]));
            stmts.push(at);
            stmts.extend(inner);
        } else {
            let mut then = vec![at];
            then.extend(inner);
            stmts.push(when(binary(atom("v"), "<", atom("units")), then));
        }
        self.march_parent(march, kernel, stmts, false);
    }

    /// `again(next + at, …)`: what becomes of the elements depends on what they were, and on `k`.
    fn again_launch(&mut self, march: &March, k: i64) -> Stmt {
        let again = self.step(march, "again", false);
        let place = || binary(atom("next"), "+", atom("at"));
        let args = vec![place(), place(), atom("len"), int(k)];
        self.ordered_launch(again, march.len, None, args, false)
    }

    /// A launch by device code.
    fn counted_operand(&mut self) {
        let units = self.random.range(2, 9);
        let march = self.march(8, units);
        let (kernel, counters) = self.counting_kernel(&march, 2);
        self.buffers[counters].shown = true;
        let total = self.fresh("g_calls");
        self.text(format!("__device__ int {total}[1];"));
        self.buffers.push(Buffer {
            name: total.clone(),
            ty: "int",
            len: 1,
            fill: Fill::Value(0),
            shown: true,
            atomic: None,
            global: true,
        });
        let counter = Counter {
            by: "__device__ ",
            place: "counters + 2 * v".to_owned(),
            elsewhere: format!("atomicAdd({total}, 1);"),
        };
        let mut launch = self.again_launch(&march, 3);
        let Stmt::Launch(made) = &mut launch else { return };
        let counting = match self.random.below(6) {
            0 | 1 => {
                self.feature("counting grid size");
                let n = self.random.range(1, 2);
                let counting = self.counting(&counter, n);
                made.config = vec![atom(counting.value.clone()), int(8)];
                counting
            }
            2 => {
                self.feature("counting block size");
                let counting = self.counting(&counter, 8);
                made.config = vec![int(1), atom(counting.value.clone())];
                counting
            }
            3 | 4 => {
                self.feature("counting count");
                let counting = self.counting(&counter, 8);
                made.args[2] = atom(counting.value.clone());
                counting
            }
            _ => {
                self.feature("counting argument");
                let counting = self.counting(&counter, 5);
                made.args[3] = atom(counting.value.clone());
                counting
            }
        };
        let mut inner: Vec<Stmt> = counting.before.iter().map(|line| text(line)).collect();
        inner.push(launch);
        self.of_threads(&march, kernel, inner);
    }

    /// A launch by the host.
    fn counted_by_the_host(&mut self) {
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let total = self.fresh("calls");
        self.text(format!("static int {total}[2];"));
        let counter = Counter {
            by: "",
            place: total.clone(),
            elsewhere: format!("{total}[0] += 1;"),
        };
        let of_grid = self.random.chance(60);
        let counting = self.counting(&counter, if of_grid { units } else { 8 });
        let launch = self.again_launch(&march, 3);
        let first = binary(member(atom("threadIdx"), "x"), "==", int(0));
        let written = atom(counting.value);
        let (grid, block) = if of_grid {
            self.feature("counting grid size of the host");
            (Some(written), int(8))
        } else {
            self.feature("counting block size of the host");
            (None, written)
        };
        self.of_blocks(&march, Some(block), vec![when(first, vec![launch])]);
        if let Some(kernel) = self.kernels.last_mut() {
            kernel.grid = grid;
            kernel.host = counting.before.iter().map(|line| text(line)).collect();
            kernel.host_behind = vec![text(&format!("printf(\"calls %d\\n\", {total}[0]);"))];
        }
    }

    /// Each use of `__COUNTER__` is another number.
    fn numbered_uses(&mut self) {
        self.feature("numbered uses");
        let units = self.random.range(2, 9);
        let march = self.march(8, units);
        // The first number that is left depends on the headers.
        let (number, first) = (self.fresh("NUMBER"), self.fresh("kFirst_number"));
        self.text(format!("enum {{ {first} = __COUNTER__ }};"));
        let used = format!("(__COUNTER__ - {first})");
        let number = match self.random.below(4) {
            0 => used,
            1 => {
                self.text(format!("#define {number} {used}"));
                number
            }
            2 => {
                let inner = self.fresh("NEXT");
                self.text(format!(
                    "#define {inner} __COUNTER__\n#define {number}(n) ((n) + {inner})"
                ));
                format!("({number}(1) - {first})")
            }
            _ => {
                self.text(format!("#define {number}(n) ((n) + 0)"));
                format!("{number}({used})")
            }
        };
        let mut launch = self.again_launch(&march, 3);
        let Stmt::Launch(made) = &mut launch else { return };
        match self.random.below(5) {
            0 => made.config = vec![atom(format!("1 + {number} % 2")), int(8)],
            1 => made.config = vec![int(1), atom(format!("8 + {number} % 3"))],
            2 => made.args[2] = atom(format!("3 + {number} % 5")),
            3 => made.args[3] = atom(format!("{number} % 7")),
            _ => self.numbered_child(&number),
        }
        let mine = assign(index(atom("state"), atom("at")), "=", atom(format!("{number} % 100")));
        let kernel = self.march_kernel(&march);
        let of_host = self.random.chance(20);
        self.of_threads(&march, kernel, vec![launch, mine]);
        if of_host && let Some(kernel) = self.kernels.last_mut() {
            kernel.host_behind = vec![text(&format!("printf(\"number %d\\n\", {number});"))];
        }
    }

    /// The child that was made last has a use in its body.
    fn numbered_child(&mut self, number: &str) {
        self.feature("numbered use in a child");
        if let Some(body) = self.kernels.last_mut().and_then(|kernel| kernel.body.as_mut()) {
            body.insert(0, text(&format!("k += {number} % 7;")));
        }
    }
}
