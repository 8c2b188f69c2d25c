//! Children with a barrier, whose threads keep over it what isn't a number of their own: references, pointers, addresses, objects with
//! references, constants, elements of local arrays, words that directives change.

use super::Generator;
use super::plan::Role;
use crate::fuzz::ast::{Launch, LaunchForm, Stmt, atom, binary, int, text, when};

impl Generator {
    /// Adds a parent with such a child.
    pub fn keeping(&mut self) {
        let threads = *self.random.pick(&[4, 8, 32]);
        let blocks = self.random.range(1, 3);
        let units = self.random.range(2, 9);
        let march = self.march(threads * blocks, units);
        let mut child = self.kernel(
            "keeps",
            false,
            vec![(Role::Pointer(march.b), "int*", "o"), (Role::Scalar(0, 9), "int", "k")],
        );
        let mut body = vec![
            text("int x = threadIdx.x;"),
            text("int i = blockIdx.x * blockDim.x + x;"),
            text(&format!("__shared__ int lanes[{threads}];")),
            text("lanes[x] = k + x;"),
            text("int mine = x * 2 + k;"),
        ];
        let mut uses = Vec::new();
        for _ in 0..self.random.range(1, 3) {
            let (before, used) = self.kept_thing(threads);
            body.push(text(&before));
            uses.push(used);
        }
        body.push(text("__syncthreads();"));
        body.push(text(&format!("int sum = lanes[{threads} - 1 - x];")));
        for used in uses {
            body.push(text(&format!("sum += {used};")));
        }
        if self.random.chance(40) {
            body.push(text("__syncthreads();"));
            body.push(text("lanes[x] = sum;"));
            body.push(text("__syncthreads();"));
            body.push(text("sum += lanes[x / 2];"));
        }
        body.push(text("o[i] += sum + mine;"));
        child.body = Some(body);
        let name = child.name.clone();
        self.kernels.push(child);

        let kernel = self.march_kernel(&march);
        let mut stmts = self.thread_number(&kernel, "v");
        let launch = Launch {
            site: self.site(),
            kernel: name,
            config: vec![int(blocks), int(threads)],
            args: vec![
                binary(atom("next"), "+", binary(atom("v"), "*", atom("len"))),
                binary(atom("v"), "%", int(5)),
            ],
            form: LaunchForm::Plain,
        };
        stmts.push(when(binary(atom("v"), "<", atom("units")), vec![Stmt::Launch(launch)]));
        self.march_parent(&march, kernel, stmts, false);
    }

    /// What stands in front of the barrier, and what uses it behind.
    fn kept_thing(&mut self, threads: i64) -> (String, String) {
        let n = self.site();
        let x = self.random.range(2, 6);
        match self.random.below(10) {
            0 => {
                self.feature("kept reference");
                let init = *self.random.pick(&[" = mine", "{mine}", "(mine)"]);
                (format!("int& r{n}{init};\nr{n} += {x};"), format!("r{n}"))
            }
            1 => {
                self.feature("kept pointer");
                let at = *self.random.pick(&["&mine", "&lanes[x]", "lanes + x", "&o[i]"]);
                (format!("int* p{n} = {at};"), format!("*p{n} * {x}"))
            }
            2 => {
                self.feature("kept address");
                let at = *self.random.pick(&["&mine", "&o[i]"]);
                (
                    format!("unsigned long long a{n} = (unsigned long long){at};"),
                    format!("*(int*)a{n} + {x}"),
                )
            }
            3 => {
                self.feature("kept constant");
                let ty = *self
                    .random
                    .pick(&["constexpr int", "const int", "static constexpr int"]);
                (
                    format!("{ty} c{n} = {x};\nint l{n}[c{n}];\nl{n}[c{n} - 1] = x;"),
                    format!("l{n}[c{n} - 1] * c{n}"),
                )
            }
            4 => {
                self.feature("kept object with a reference");
                let class = self.fresh("Holder");
                self.text(format!("struct {class} {{ int& to; }};"));
                (format!("{class} h{n}{{mine}};\nh{n}.to += {x};"), format!("h{n}.to"))
            }
            5 => {
                self.feature("kept array that a callee gets");
                let fill = self.fresh("fill");
                self.text(format!(
                    "static __device__ void {fill}(int* a, int v) {{ a[0] = v; a[1] = v * {x}; }}"
                ));
                (
                    format!("int l{n}[2];\n{fill}(l{n}, x + k);"),
                    format!("l{n}[1] - l{n}[0]"),
                )
            }
            6 => {
                self.feature("macro that changes in a body");
                (format!("#define M{n} {x}"), format!("M{n} * x"))
            }
            7 => {
                self.feature("condition of the preprocessor in a body");
                (
                    format!("#if {x} > 3\nint w{n} = x;\n#else\nint w{n} = k;\n#endif"),
                    format!("w{n} * 3"),
                )
            }
            8 => {
                self.feature("kept trait");
                let class = self.fresh("Traits");
                self.text(format!(
                    "template <class T>\nstruct {class} {{ static constexpr int width = {x}; using type = T; }};"
                ));
                (
                    format!("typename {class}<int>::type t{n} = x * {class}<int>::width;").replace("typename ", ""),
                    format!("t{n} + {class}<int>::width"),
                )
            }
            _ => {
                self.feature("kept structure");
                let class = self.fresh("Pair");
                self.text(format!("struct {class} {{ int a, b; }};"));
                (
                    format!("{class} q{n} = {{x, k}};\nint* p{n} = &q{n}.b;\n*p{n} += {threads};"),
                    format!("q{n}.b + q{n}.a"),
                )
            }
        }
    }
}
