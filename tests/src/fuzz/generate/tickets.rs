//! Counters and flags that choose who launches, and that a reference sets back or sets, too; threads that draw a number and take turns.

use super::Generator;
use super::ordered::March;
use super::plan::{BufferId, Fill, Kernel, Role};
use crate::fuzz::ast::{Launch, LaunchForm, Stmt, assign, atom, binary, index, int, member, text, when};

impl Generator {
    /// Adds a parent that chooses its launchers so.
    pub fn tickets(&mut self) {
        let units = self.random.range(1, 4);
        let march = self.march(8, units);
        match self.random.below(4) {
            0 => self.ticket(&march),
            1 => self.turn_by_ticket(&march),
            2 => self.flag(&march),
            _ => self.flag_of_self(),
        }
    }

    /// [`Generator::march_kernel`] with counters of each block.
    pub fn counting_kernel(&mut self, march: &March, each: i64) -> (Kernel, BufferId) {
        let counters = self.buffer("counters", "int", march.units * each, Fill::Value(0));
        let mut kernel = self.march_kernel(march);
        let counted = self.kernel("counted", true, vec![(Role::Pointer(counters), "int*", "counters")]);
        kernel.params.extend(counted.params);
        (kernel, counters)
    }

    /// Two groups of threads, one after the other, and a counter that is 0 for both.
    fn ticket(&mut self, march: &March) {
        self.feature("a counter that a reference sets back");
        let (mut kernel, _) = self.counting_kernel(march, 2);
        kernel.block = Some(int(64));
        let again = self.step(march, "again", false);
        let place = || binary(atom("next"), "+", atom("at"));
        let args = vec![place(), place(), atom("len"), binary(atom("warp"), "+", int(1))];
        let launch = self.ordered_launch(again, march.len, None, args, true);
        let class = self.fresh("Queue");
        let (before, counter, back) = match self.random.below(4) {
            0 => (vec![text("int& r = mine[0];")], "mine", "r = 0;"),
            1 => (vec![text("int& r{*mine};")], "mine", "r = 0;"),
            2 => {
                self.text(format!("struct {class} {{ int head, turn; }};"));
                let before = vec![
                    text(&format!("{class}* queue = ({class}*)mine;")),
                    text(&format!("{class}& r = *queue;")),
                ];
                (before, "&queue->head", "r.head = 0;")
            }
            _ => {
                self.text(format!("struct {class} {{ int& head; }};"));
                (vec![text(&format!("{class} r{{mine[0]}};"))], "mine", "r.head = 0;")
            }
        };
        let mut stmts = vec![
            text("if ((int)blockIdx.x >= units) return;"),
            text("int at = blockIdx.x * len;"),
            text("int* mine = counters + blockIdx.x * 2;"),
            text("int* turn = mine + 1;"),
        ];
        stmts.extend(before);
        stmts.push(text("int warp = threadIdx.x / 32;"));
        stmts.push(text("while (atomicAdd(turn, 0) != warp) {}"));
        stmts.push(text("__threadfence();"));
        stmts.push(when(atom(format!("atomicAdd({counter}, 1) == 0")), vec![launch]));
        stmts.push(text("__syncwarp();"));
        stmts.push(when(
            atom("threadIdx.x % 32 == 0"),
            vec![text(back), text("__threadfence();"), text("atomicAdd(turn, 1);")],
        ));
        // For the next grid.
        stmts.push(text("__syncthreads();"));
        stmts.push(text("if (threadIdx.x == 0) *turn = 0;"));
        self.march_parent(march, kernel, stmts, true);
    }

    /// Threads draw a number once, and launch when it is their turn.
    fn turn_by_ticket(&mut self, march: &March) {
        self.feature("threads take turns by a number that they draw");
        let rounds = self.random.range(2, 6);
        let again = self.step(march, "again", false);
        let place = || binary(atom("next"), "+", atom("at"));
        let args = vec![place(), place(), atom("len"), atom("k")];
        let launch = self.ordered_launch(again, march.len, None, args, true);
        let zero = binary(member(atom("threadIdx"), "x"), "==", int(0));
        let draw = *self.random.pick(&[
            "int slot = atomicAdd(&drawn, 1);",
            "const int slot = atomicAdd(&drawn, 1);",
            "int slot = (int)atomicInc((unsigned*)&drawn, 1000u);",
        ]);
        let inner = vec![
            text("__shared__ int drawn;"),
            when(zero, vec![assign(atom("drawn"), "=", int(0))]),
            text("__syncthreads();"),
            text(draw),
            super::ordered::steps(
                rounds,
                vec![
                    when(binary(atom("slot"), "==", atom("k")), vec![launch]),
                    text("__syncthreads();"),
                ],
            ),
        ];
        self.of_blocks(march, Some(int(8)), inner);
    }

    /// How the shared flag `last` is set beside its assignment.
    fn sets_flag(&mut self) -> Vec<Stmt> {
        let set = self.fresh("set");
        let by = match self.random.below(4) {
            0 => {
                self.text(format!("static __device__ void {set}(bool& b) {{ b = true; }}"));
                format!("{set}(last);")
            }
            1 => "{ bool& alias = last; alias = true; }".to_owned(),
            2 => "{ bool& alias{last}; alias = true; }".to_owned(),
            _ => {
                self.text(format!("struct {set} {{ bool& flag; }};"));
                format!("{{ {set} holder{{last}}; holder.flag = true; }}")
            }
        };
        vec![
            text("__syncthreads();"),
            when(atom("threadIdx.x == 1"), vec![text(&by)]),
            text("__syncthreads();"),
        ]
    }

    /// A flag that only the last block sets, and that all blocks set by a reference.
    fn flag(&mut self, march: &March) {
        self.feature("a shared flag that a reference sets");
        let (mut kernel, _) = self.counting_kernel(march, 1);
        kernel.block = Some(int(8));
        // All of them add to the elements of the first block.
        let tally = self.tally(march);
        let args = vec![atom("next"), atom("len"), int(2)];
        let launch = self.ordered_launch(tally, march.len, None, args, true);
        if let Some(Stmt::If { then, .. }) = self.kernels[tally].body.as_mut().and_then(|b| b.last_mut()) {
            *then = vec![text("atomicAdd(&to[i], k + 1);")];
        }
        let who = *self.random.pick(&[
            "last = atomicAdd(counters, 1) == (int)gridDim.x - 1;",
            "last = blockIdx.x == 0;",
        ]);
        let mut stmts = vec![
            text("__shared__ bool last;"),
            when(atom("threadIdx.x == 0"), vec![text(who)]),
        ];
        stmts.extend(self.sets_flag());
        stmts.push(when(binary(atom("last"), "&&", atom("threadIdx.x == 0")), vec![launch]));
        self.march_parent(march, kernel, stmts, true);
    }

    /// A kernel that launches itself again from every block, though it seems to be one.
    fn flag_of_self(&mut self) {
        self.feature("a shared flag that a reference sets in a kernel that launches itself");
        let march = self.march(8, 2);
        let mut kernel = self.kernel(
            "rounds",
            true,
            vec![
                (Role::Pointer(march.b), "int*", "o"),
                (Role::Count, "int", "units"),
                (Role::Scalar(1, 3), "int", "n"),
            ],
        );
        kernel.by_block = true;
        kernel.block = Some(int(8));
        kernel.numbers = 2;
        let site = self.site();
        let again = Stmt::Launch(Launch {
            site,
            kernel: kernel.name.clone(),
            config: vec![int(2), int(8), int(0), atom("cudaStreamTailLaunch")],
            args: vec![atom("o"), atom("units"), binary(atom("n"), "-", int(1))],
            form: LaunchForm::Plain,
        });
        self.ordered_sites.insert(site);
        let mut stmts = vec![
            text("__shared__ bool last;"),
            when(atom("threadIdx.x == 0"), vec![text("last = blockIdx.x == 0;")]),
        ];
        stmts.extend(self.sets_flag());
        let place = index(atom("o"), atom("8 * blockIdx.x + threadIdx.x"));
        let add = crate::fuzz::ast::call(
            "atomicAdd",
            vec![crate::fuzz::ast::unary("&", place), binary(atom("n"), "+", int(1))],
        );
        stmts.push(Stmt::Expr(add));
        let who = binary(atom("last"), "&&", atom("threadIdx.x == 0"));
        stmts.push(when(binary(who, "&&", atom("n > 0")), vec![again]));
        kernel.body = Some(stmts);
        self.kernels.push(kernel);
    }
}
