//! Children that every thread launches, with shared memory whose size, lifetime or use is easily mistaken: what runs them in one thread
//! has to get it right for every block.

use super::Generator;
use super::plan::Role;
use crate::fuzz::ast::{Launch, LaunchForm, Stmt, atom, binary, declare, int, text, when};

impl Generator {
    /// Adds a parent with such a child.
    pub fn fission(&mut self) {
        let threads = *self.random.pick(&[4, 8, 32]);
        let blocks = self.random.range(1, 3);
        let units = self.random.range(2, 9);
        let march = self.march(threads * blocks, units);
        let mut child = self.kernel(
            "blocks",
            false,
            vec![(Role::Pointer(march.b), "int*", "o"), (Role::Scalar(0, 9), "int", "k")],
        );
        let mut bytes = None;
        let mut body = vec![declare("int", "x", atom("threadIdx.x"))];
        let other = format!("{} - x", threads - 1);
        let mut read = match self.random.below(3) {
            0 => {
                let (vector, size) = *self.random.pick(&[
                    ("float3", 12),
                    ("uchar3", 3),
                    ("int3", 12),
                    ("short3", 6),
                    ("uchar4", 4),
                    ("double3", 24),
                ]);
                let name = self.fresh("lanes");
                if self.random.chance(60) {
                    self.feature("dynamic shared memory of vectors");
                    body.push(text(&format!("extern __shared__ {vector} {name}[];")));
                    bytes = Some(threads * size);
                } else {
                    self.feature("shared memory of vectors");
                    body.push(text(&format!("__shared__ {vector} {name}[{threads}];")));
                }
                body.push(text(&format!("{name}[x].x = x;")));
                body.push(text(&format!("{name}[x].z = k;")));
                body.push(text("__syncthreads();"));
                format!("(int)({name}[{other}].x + {name}[x].z)")
            }
            1 => {
                self.feature("shared memory that is declared static");
                let ty = *self.random.pick(&["int", "float", "short"]);
                let word = *self.random.pick(&["static __shared__", "__shared__ static"]);
                body.push(text(&format!("{word} {ty} lanes[{threads}];")));
                body.push(text("lanes[x] = k + x;"));
                body.push(text("__syncthreads();"));
                format!("(int)lanes[{other}]")
            }
            _ => {
                self.feature("atomic on shared memory by a reference");
                body.push(text("__shared__ int sum;"));
                body.push(text("if (x == 0) sum = 0;"));
                body.push(text("__syncthreads();"));
                let bump = self.fresh("bump");
                match self.random.below(5) {
                    0 => {
                        self.text(format!(
                            "static __device__ void {bump}(int& c, int v) {{ atomicAdd(&c, v); }}"
                        ));
                        body.push(text(&format!("{bump}(sum, k + x);")));
                    }
                    1 => {
                        self.text(format!(
                            "static __device__ void {bump}(int* c, int v) {{ atomicAdd(c, v); }}"
                        ));
                        body.push(text(&format!("{bump}(&sum, k + x);")));
                    }
                    2 => {
                        body.push(text("int& c = sum;"));
                        body.push(text("atomicAdd(&c, k + x);"));
                    }
                    3 => {
                        body.push(text("int& c{sum};"));
                        body.push(text("atomicAdd(&c, k + x);"));
                    }
                    _ => {
                        self.text(format!("struct {bump} {{\n    int& c;\n    __device__ void add(int v) const {{ atomicAdd(&c, v); }}\n}};"));
                        body.push(text(&format!("{bump} bump{{sum}};")));
                        body.push(text("bump.add(k + x);"));
                    }
                }
                body.push(text("__syncthreads();"));
                "sum".to_owned()
            }
        };
        if self.random.chance(30) {
            // It is read behind another barrier, too.
            body.push(text(&format!("int seen = {read};")));
            body.push(text("__syncthreads();"));
            read = format!("seen * 2 - {read}");
        }
        body.push(text(&format!("o[blockIdx.x * blockDim.x + x] += {read};")));
        child.body = Some(body);
        let name = child.name.clone();
        self.kernels.push(child);

        let mut config = vec![int(blocks), int(threads)];
        config.extend(bytes.map(int));
        let kernel = self.march_kernel(&march);
        let mut stmts = self.thread_number(&kernel, "v");
        let launch = Launch {
            site: self.site(),
            kernel: name,
            config,
            args: vec![
                binary(atom("next"), "+", binary(atom("v"), "*", atom("len"))),
                binary(atom("v"), "%", int(5)),
            ],
            form: LaunchForm::Plain,
        };
        stmts.push(when(binary(atom("v"), "<", atom("units")), vec![Stmt::Launch(launch)]));
        self.march_parent(&march, kernel, stmts, false);
    }
}
