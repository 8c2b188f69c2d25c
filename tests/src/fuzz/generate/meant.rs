//! Names that mean something else than what stands nearest: a variable that isn't found by its name, a member of a specialisation, an
//! operator of an enumeration, a default argument, a pack of parameters. One grid writes what the next one in the stream reads, or a
//! value differs between threads where it looks the same everywhere.

use super::Generator;
use super::ordered::March;
use super::plan::Role;
use crate::fuzz::ast::{Expr, Stmt, atom, binary, declare, index, int, member, text, when};

impl Generator {
    /// Adds a parent with such a name.
    pub fn meant(&mut self) {
        match self.random.below(5) {
            0 | 1 => self.unfollowed_variable(),
            2 | 3 => self.written_elsewhere(),
            _ => self.index_elsewhere(),
        }
    }

    /// Two grids, one after the other, that share a variable of the device: a thread of the first one does `write`, the threads of the
    /// second one read `read`.
    fn handed_over(&mut self, write: &str, read: &str) {
        let march = self.march(8, 1);
        let kernel = |generator: &mut Generator, name: &str| {
            let params = vec![
                (Role::Pointer(march.b), "int*", "to"),
                (Role::Count, "int", "len"),
                (Role::Scalar(0, 9), "int", "k"),
            ];
            let mut kernel = generator.kernel(name, false, params);
            kernel.body = Some(Vec::new());
            generator.kernels.push(kernel);
            generator.kernels.len() - 1
        };
        let (first, second) = (kernel(self, "first"), kernel(self, "second"));
        let thread = || member(atom("threadIdx"), "x");
        let zero = binary(binary(thread(), "+", member(atom("blockIdx"), "x")), "==", int(0));
        self.kernels[first].body = Some(vec![when(zero, vec![text(write)])]);
        let numbered = self.kernels[second].clone();
        let mut stmts = self.thread_number(&numbered, "i");
        let value = binary(atom(read), "*", int(2));
        let add = crate::fuzz::ast::assign(index(atom("to"), atom("i")), "=", binary(value, "+", atom("k")));
        stmts.push(when(binary(atom("i"), "<", atom("len")), vec![add]));
        self.kernels[second].body = Some(stmts);
        let args = |k: i64| vec![binary(atom("next"), "+", atom("at")), atom("len"), int(k)];
        let inner = vec![
            self.ordered_launch(first, march.len, None, args(3), true),
            self.ordered_launch(second, march.len, None, args(4), true),
        ];
        self.one_thread_does(&march, inner);
    }

    /// The first thread of each block does it.
    fn one_thread_does(&mut self, march: &March, inner: Vec<Stmt>) {
        let first = binary(member(atom("threadIdx"), "x"), "==", int(0));
        self.of_blocks(march, Some(int(8)), vec![when(first, inner)]);
    }

    /// A variable of the device to which its own name doesn't lead.
    fn unfollowed_variable(&mut self) {
        let (class, total) = (self.fresh("Sums"), self.fresh("total"));
        let (declared, name) = match self.random.below(6) {
            0 => {
                self.feature("variable in an object");
                // As a static member it couldn't be the device's: nvcc refuses that.
                let declared = format!("struct {class} {{\n    int {total};\n}};\n__device__ {class} {class}s[1];");
                (declared, format!("{class}s->{total}"))
            }
            1 => {
                self.feature("reference to a variable");
                let declared = format!("__device__ int {class};\n__device__ int& {total} = {class};");
                (declared, total)
            }
            2 => {
                self.feature("variable that a macro declares");
                let declared = format!("#define {class}(name) __device__ int name\n{class}({total});");
                (declared, total)
            }
            3 => {
                self.feature("part of an anonymous union");
                // One at namespace scope can't be used by device code: nvcc refuses it.
                let (part, sums) = (self.fresh("part"), self.fresh("sums"));
                let declared = format!(
                    "struct {class} {{\n    union {{ int {total}; float {part}; }};\n}};\n__device__ {class} {sums};"
                );
                (declared, format!("{sums}.{total}"))
            }
            4 => {
                self.feature("another name of a namespace");
                let other = self.fresh("other");
                let declared =
                    format!("namespace {class} {{\n__device__ int {total};\n}}\nnamespace {other} = {class};");
                (declared, format!("{other}::{total}"))
            }
            _ => {
                self.feature("variable template");
                let declared = format!("template <class T> __device__ T {total} = 0;");
                // A statement that begins with `total<int>` is nothing that the grammar knows.
                (declared, format!("({total}<int>)"))
            }
        };
        self.text(declared);
        self.handed_over(&format!("{name} = k + 5;"), &name);
    }

    /// What stands for a function with this body and result, though another one by its name stands before it.
    fn elsewhere(&mut self, effect: &str, value: &str) -> Expr {
        let (class, run) = (self.fresh("Policy"), self.fresh("run"));
        let body = format!("{{ {effect}return {value}; }}");
        let (declared, called) = match self.random.below(8) {
            0 => {
                self.feature("member of a specialisation");
                let declared = format!(
                    r#"template <class T> struct {class} {{
    static __device__ int {run}() {{ return 0; }}
}};
template <> struct {class}<float> {{
    static __device__ int {run}() {body}
}};"#
                );
                (declared, format!("{class}<float>::{run}()"))
            }
            1 => {
                self.feature("member of a partial specialisation");
                let declared = format!(
                    r#"template <class T> struct {class} {{
    static __device__ int {run}() {{ return 0; }}
}};
template <class T> struct {class}<T*> {{
    static __device__ int {run}() {body}
}};"#
                );
                (declared, format!("{class}<int*>::{run}()"))
            }
            2 => {
                self.feature("specialised function");
                let declared = format!(
                    r#"template <class T> __device__ int {run}(T x) {{ return 0; }}
template <> __device__ int {run}<float>(float x) {body}"#
                );
                (declared, format!("{run}(1.0f)"))
            }
            3 => {
                self.feature("operator of an enumeration");
                let operator = *self.random.pick(&["|", "+", "<<", ","]);
                let declared = format!(
                    r#"enum {class} {{ {class}_a, {class}_b }};
static __device__ int operator{operator}({class} x, {class} y) {body}"#
                );
                (declared, format!("({class}_a {operator} {class}_b)"))
            }
            4 => {
                self.feature("increment of an enumeration");
                let declared = format!(
                    r#"enum class {class} {{ a, b }};
static __device__ int operator++({class}& x) {body}
static __device__ int {run}() {{
    {class} x = {class}::a;
    return ++x;
}}"#
                );
                (declared, format!("{run}()"))
            }
            5 => {
                self.feature("default argument that does something");
                let other = self.fresh("other");
                let declared = format!(
                    r#"static __device__ int {other}() {body}
static __device__ int {run}(int k, int value = {other}()) {{ return value; }}"#
                );
                (declared, format!("{run}(1)"))
            }
            6 => {
                self.feature("inherited member");
                let base = self.fresh("Base");
                let declared = format!(
                    r#"struct {base} {{
    static __device__ int {run}() {body}
}};
static __device__ int {run}() {{ return 0; }}
struct {class} : {base} {{
    static __device__ int size() {{ return 1; }}
}};"#
                );
                (declared, format!("{class}::{run}()"))
            }
            _ => {
                self.feature("overload with a pack of parameters");
                let declared = format!(
                    r#"static __device__ int {run}(int x) {{ return x * 0; }}
template <class... A> __device__ int {run}(A... all) {body}"#
                );
                (declared, format!("{run}(1, 2)"))
            }
        };
        self.text(declared);
        atom(called)
    }

    /// The first grid writes what the second one reads.
    fn written_elsewhere(&mut self) {
        self.feature("written by what another name means");
        let total = self.fresh("total");
        self.text(format!("__device__ int {total};"));
        let called = self.elsewhere(&format!("{total} = 7; "), "1");
        let Expr::Atom(called) = called else { return };
        self.handed_over(&format!("{called};"), &total);
    }

    /// Every thread launches, though the guard compares its number with what looks the same everywhere.
    fn index_elsewhere(&mut self) {
        self.feature("launcher guard by what another name means");
        let units = self.random.range(1, 5);
        let march = self.march(8, units);
        let value = self.elsewhere("", "threadIdx.x");
        let tally = self.tally(&march);
        let args = vec![binary(atom("next"), "+", atom("at")), atom("len"), int(2)];
        let launch = self.ordered_launch(tally, march.len, None, args, true);
        let who = binary(member(atom("threadIdx"), "x"), "==", atom("x"));
        let inner = vec![declare("int", "x", value), when(who, vec![launch])];
        self.of_blocks(&march, Some(int(8)), inner);
    }
}
