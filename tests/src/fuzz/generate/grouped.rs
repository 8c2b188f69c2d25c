//! Children whose blocks have two or three dimensions, of several shapes in one kernel, and that number their threads by what their
//! groups, their grid, or a function that they call say.

use super::Generator;
use super::plan::Role;
use crate::fuzz::ast::{Item, Launch, LaunchForm, Stmt, atom, binary, int, text, when};

/// Shapes of blocks with whole warps and 64 threads at most.
const SHAPES: &[&str] = &[
    "dim3(8, 4)",
    "dim3(4, 8)",
    "dim3(4, 4, 2)",
    "dim3(16, 4)",
    "dim3(8, 2, 4)",
    "dim3(32, 2)",
    "32",
    "64",
];

const IN_BLOCK: &str = "(int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))";
const BLOCK: &str = "(int)(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z))";
const THREADS: &str = "(int)(blockDim.x * blockDim.y * blockDim.z)";

impl Generator {
    /// Adds a parent with such children.
    pub fn grouped(&mut self) {
        let units = self.random.range(2, 12);
        let len = *self.random.pick(&[48, 100, 130]);
        let march = self.march(len, units);
        if !self
            .head
            .iter()
            .any(|item| matches!(item, Item::Text(t) if t.contains("namespace cg =")))
        {
            self.head.insert(
                0,
                Item::Text("#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;".to_owned()),
            );
        }
        let mut child = self.kernel(
            "grouped",
            false,
            vec![
                (Role::Pointer(march.b), "int*", "o"),
                (Role::Count, "int", "count"),
                (Role::Scalar(0, 9), "int", "k"),
            ],
        );
        child.body = Some(self.grouped_body());
        let name = child.name.clone();
        self.kernels.push(child);

        let kernel = self.march_kernel(&march);
        let mut stmts = self.thread_number(&kernel, "v");
        let launches = self.random.range(1, 4);
        let part = len / launches;
        let mut inner = Vec::new();
        for number in 0..launches {
            let block = self.block_shape(&mut inner, number);
            let grid = *self
                .random
                .pick(&["dim3(1, 2)", "dim3(2, 2)", "dim3(2, 1, 2)", "3", "1"]);
            let begin = binary(binary(atom("v"), "*", atom("len")), "+", int(part * number));
            inner.push(Stmt::Launch(Launch {
                site: self.site(),
                kernel: name.clone(),
                config: vec![atom(grid), atom(block)],
                args: vec![
                    binary(atom("next"), "+", begin),
                    int(part),
                    binary(atom("v"), "%", int(5)),
                ],
                form: LaunchForm::Plain,
            }));
        }
        if launches > 1 {
            self.feature("children of several shapes");
        }
        stmts.push(when(binary(atom("v"), "<", atom("units")), inner));
        self.march_parent(&march, kernel, stmts, false);
    }

    /// The size of a block: a constant, a variable, or one of two at run time, of equally many threads or not.
    fn block_shape(&mut self, before: &mut Vec<Stmt>, number: i64) -> String {
        let one = *self.random.pick(SHAPES);
        let other = *self.random.pick(SHAPES);
        let name = format!("block{number}");
        match self.random.below(4) {
            0 | 1 => one.to_owned(),
            2 => {
                before.push(text(&format!("const dim3 {name} = {one};")));
                name
            }
            _ => {
                self.feature("shape of a child at run time");
                let who = *self.random.pick(&["v % 2 == 0", "v > 1", "units > 3"]);
                before.push(text(&format!("dim3 {name} = {who} ? dim3({one}) : dim3({other});")));
                name
            }
        }
    }

    /// What such a child does: it numbers its threads, has them talk with one another, and adds to an element of each.
    fn grouped_body(&mut self) -> Vec<Stmt> {
        let mut body = Vec::new();
        match self.random.below(4) {
            0 => {
                self.feature("child that asks its grid");
                body.push(text("auto grid = cg::this_grid();"));
                body.push(text("int i = (int)grid.thread_rank();"));
            }
            1 => {
                self.feature("child that asks its block");
                body.push(text("auto whole = cg::this_thread_block();"));
                body.push(text(
                    "int i = (int)(whole.thread_rank() + whole.size() * (whole.group_index().x + gridDim.x * (whole.group_index().y + gridDim.y * whole.group_index().z)));",
                ));
            }
            2 => {
                self.feature("child whose function asks for the thread");
                let rank = self.rank_function();
                body.push(text(&format!("int i = {rank};")));
            }
            _ => {
                self.feature("child that numbers the threads of three dimensions");
                body.push(text(&format!("int i = {BLOCK} * {THREADS} + {IN_BLOCK};")));
            }
        }
        body.push(text(&format!("int t = {IN_BLOCK};")));
        let heard = match self.random.below(6) {
            0 => {
                self.feature("shuffle in blocks of several dimensions");
                body.push(text("int heard = __shfl_xor_sync(0xffffffffu, t + k, 1);"));
                "heard"
            }
            1 | 2 => {
                self.feature("barrier in blocks of several dimensions");
                let sync = *self
                    .random
                    .pick(&["__syncthreads();", "cg::this_thread_block().sync();"]);
                body.push(text("__shared__ int lanes[64];"));
                body.push(text("lanes[t] = i % 7 + k;"));
                body.push(text(sync));
                body.push(text(&format!("int heard = lanes[{THREADS} - 1 - t];")));
                "heard"
            }
            3 => {
                self.feature("tiles in blocks of several dimensions");
                body.push(text("auto tile = cg::tiled_partition<8>(cg::this_thread_block());"));
                body.push(text(
                    "int heard = tile.shfl_xor(t * 3 + k, 1) + (int)tile.thread_rank();",
                ));
                "heard"
            }
            _ => "k",
        };
        let own = *self.random.pick(&[
            "(int)threadIdx.y * 5 + (int)threadIdx.x",
            "(int)blockDim.y",
            "(int)(blockDim.x + 3 * blockDim.z)",
            "(int)cg::this_thread_block().thread_rank()",
            "(int)cg::this_grid().size()",
            "(int)(gridDim.y * 10 + gridDim.x)",
            "(int)cg::this_thread_block().thread_index().y",
        ]);
        if self.random.chance(40) {
            self.feature("stride by the size of the grid");
            body.push(text(&format!(
                "for (; i < count; i += (int)cg::this_grid().size()) o[i] += {heard} + {own};"
            )));
        } else {
            body.push(text(&format!("if (i < count) o[i] += {heard} + {own};")));
        }
        body
    }

    /// A function that numbers a thread in its grid, and how it is called.
    fn rank_function(&mut self) -> String {
        let rank = self.fresh("rank");
        match self.random.below(4) {
            0 => {
                self.text(format!(
                    "static __device__ int {rank}() {{ return {BLOCK} * {THREADS} + {IN_BLOCK}; }}"
                ));
                format!("{rank}()")
            }
            1 => {
                self.text(format!(
                    "template <class I>\n__device__ I {rank}() {{ return I({BLOCK} * {THREADS} + {IN_BLOCK}); }}"
                ));
                format!("{rank}<int>()")
            }
            2 => {
                self.text(format!(
                    "struct {rank} {{\n    int shift;\n    __device__ int at() const {{ return shift + {BLOCK} * {THREADS} + {IN_BLOCK}; }}\n}};"
                ));
                format!("{rank}{{0}}.at()")
            }
            _ => {
                let inner = self.fresh("lane");
                self.text(format!(
                    "static __device__ int {inner}() {{ return {IN_BLOCK}; }}\nstatic __device__ int {rank}(int threads) {{ return {BLOCK} * threads + {inner}(); }}"
                ));
                format!("{rank}({THREADS})")
            }
        }
    }
}
