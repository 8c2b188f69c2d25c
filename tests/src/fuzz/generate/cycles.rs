//! Cycles of tail launches: a kernel of one block, the driver, launches the work of a round, and then itself, or a partner that launches it,
//! into the tail. And functors: what a child does to an element is the operator of an object that it gets.

use super::Generator;
use super::ordered::March;
use super::plan::{BufferId, Fill, Kernel, KernelParam, Role};
use super::thread_index;
use crate::fuzz::ast::{
    Expr, Item, Launch, LaunchForm, Stmt, assign, atom, binary, call, declare, index, int, member, text, unary, when,
};

/// Where the driver launches the work of a round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Into {
    /// Into the NULL stream.
    Null,
    /// Into the fire-and-forget stream.
    FireAndForget,
    /// Into the tail, in front of the next round.
    Tail,
}

impl Into {
    fn stream(self) -> Option<Expr> {
        match self {
            Into::Null => None,
            Into::FireAndForget => Some(atom("cudaStreamFireAndForget")),
            Into::Tail => Some(atom("cudaStreamTailLaunch")),
        }
    }
}

/// What the kernels of a cycle share.
struct Cycle {
    march: March,
    /// A counter of what the rounds have found, and one of what the driver has.
    found: BufferId,
    /// All kernels are templates of the elements' type.
    template: bool,
    /// A round reads what the one before has written.
    flips: bool,
    /// The threads of the driver's block, and of its partner's.
    block: i64,
}

impl Cycle {
    fn pointer(&self) -> &'static str {
        if self.template { "T*" } else { "int*" }
    }

    fn params(&self) -> Vec<(Role, &str, &'static str)> {
        vec![
            (Role::Pointer(self.march.a), self.pointer(), "from"),
            (Role::Pointer(self.march.b), self.pointer(), "to"),
            (Role::Pointer(self.found), "int*", "found"),
            (Role::Count, "int", "len"),
            (Role::Scalar(0, 0), "int", "k"),
            (Role::Scalar(2, 5), "int", "rounds"),
        ]
    }

    /// The arguments of the next round.
    fn next(&self) -> Vec<Expr> {
        let (from, to) = if self.flips { ("to", "from") } else { ("from", "to") };
        vec![
            atom(from),
            atom(to),
            atom("found"),
            atom("len"),
            binary(atom("k"), "+", int(1)),
            atom("rounds"),
        ]
    }
}

impl Generator {
    /// Adds a cycle, or a parent whose child gets a functor.
    pub fn cycles(&mut self) {
        match self.random.chance(75) {
            true => self.cycle(),
            false => self.functor_parent(),
        }
    }

    fn cycle(&mut self) {
        self.feature("driver of rounds");
        let len = *self.random.pick(&[4, 20, 33, 70]);
        let march = self.march(len, 1);
        let found = self.buffer("found", "int", 2, Fill::Value(0));
        self.buffers[found].shown = true;
        let cycle = Cycle {
            march,
            found,
            template: self.random.chance(25),
            flips: self.random.chance(60),
            block: *self.random.pick(&[1, 1, 8, 32, 64]),
        };
        if cycle.template {
            self.feature("driver of rounds that is a template");
        }
        let into = *self.random.pick(&[Into::Null, Into::FireAndForget, Into::Tail]);
        let works = self.works(&cycle, into);
        let driver = self.fresh("drive");
        let partner = self.random.chance(30).then(|| self.fresh("decide"));
        let next = partner.clone().unwrap_or_else(|| driver.clone());
        let mut stmts = self.count_by_driver(&cycle);
        let mut round = works;
        if self.random.chance(20) {
            self.feature("driver that sets a counter");
            round.insert(0, text("found[1] += k + 1;"));
        }
        if partner.is_some() {
            self.feature("driver with a partner");
            let block = *self.random.pick(&[1, cycle.block, 16]);
            round.push(self.tail_launch(&cycle, &next, block, partner.is_some()));
            stmts.extend(self.by_first(&cycle, None, round));
        } else {
            let goes_on = self.goes_on();
            if self.random.chance(50) {
                round.push(self.tail_launch(&cycle, &next, cycle.block, false));
                stmts.extend(self.by_first(&cycle, Some(goes_on), round));
            } else {
                round.push(when(goes_on, vec![self.tail_launch(&cycle, &next, cycle.block, false)]));
                stmts.extend(self.by_first(&cycle, None, round));
            }
        }
        let mut kernel = self.of_cycle(&cycle, driver.clone(), true, cycle.block);
        if let Some(partner) = partner {
            let params = cycle.params();
            let list: Vec<String> = params.iter().map(|(_, ty, name)| format!("{ty} {name}")).collect();
            let template = if cycle.template { "template <class T>\n" } else { "" };
            kernel.head = Some("__global__ void");
            let declaration = format!("{template}__global__ void {driver}({});", list.join(", "));
            let mut other = self.of_cycle(&cycle, partner, false, cycle.block);
            other.head = Some("__global__ void");
            other.before.push(Item::Text(declaration));
            let again = self.tail_of_round(&cycle, &driver, cycle.block);
            let goes_on = self.goes_on();
            let mut body = vec![text("if (threadIdx.x == 0) found[1] += 3;")];
            body.push(when(
                binary(member(atom("threadIdx"), "x"), "==", int(0)),
                vec![when(goes_on, vec![again])],
            ));
            other.body = Some(body);
            self.kernels.push(other);
        }
        kernel.body = Some(stmts);
        self.kernels.push(kernel);
    }

    fn of_cycle(&mut self, cycle: &Cycle, name: String, parent: bool, block: i64) -> Kernel {
        let mut kernel = Kernel::plain(name);
        kernel.parent = parent;
        kernel.one_block_of = Some(block);
        kernel.numbers = cycle.march.len;
        kernel.template_type = cycle.template.then_some(true);
        let params = cycle.params().into_iter();
        kernel.params = params.map(|(role, ty, name)| parameter(role, ty, name)).collect();
        kernel
    }

    /// What all threads of the driver do before the first of them launches: they only read what the last round has written.
    fn count_by_driver(&mut self, cycle: &Cycle) -> Vec<Stmt> {
        if !self.random.chance(40) {
            return Vec::new();
        }
        self.feature("driver whose threads count");
        let add = call(
            "atomicAdd",
            vec![
                unary("&", index(atom("found"), int(0))),
                binary(call("int", vec![index(atom("from"), atom("i"))]), "%", int(5)),
            ],
        );
        let first = if cycle.block == 1 {
            int(0)
        } else {
            member(atom("threadIdx"), "x")
        };
        let mut stmts = vec![Stmt::For {
            init: ("int".to_owned(), "i".to_owned(), first),
            cond: binary(atom("i"), "<", atom("len")),
            step: binary(atom("i"), "+=", member(atom("blockDim"), "x")),
            body: vec![Stmt::Expr(add)],
            braces: true,
            unroll: false,
        }];
        if self.random.chance(50) {
            stmts.push(text("__syncthreads();"));
        }
        stmts
    }

    /// Statements that one thread of the driver runs, if that holds.
    fn by_first(&mut self, cycle: &Cycle, also: Option<Expr>, stmts: Vec<Stmt>) -> Vec<Stmt> {
        let first = binary(member(atom("threadIdx"), "x"), "==", int(0));
        let not_first = binary(member(atom("threadIdx"), "x"), "!=", int(0));
        match (cycle.block, also) {
            (1, None) => stmts,
            (1, Some(also)) if self.random.chance(50) => {
                let stop = Expr::Call(String::new(), vec![also]);
                let mut all = vec![when(unary("!", stop), vec![text("return;")])];
                all.extend(stmts);
                all
            }
            (1, Some(also)) => vec![when(also, stmts)],
            (_, None) if self.random.chance(50) => {
                let mut all = vec![when(not_first, vec![text("return;")])];
                all.extend(stmts);
                all
            }
            (_, also) => {
                let cond = also.map_or(first.clone(), |also| binary(first, "&&", also));
                vec![when(cond, stmts)]
            }
        }
    }

    /// Another round comes: by their number, and in some programs by what the last one has found.
    fn goes_on(&mut self) -> Expr {
        let more = binary(binary(atom("k"), "+", int(1)), "<", atom("rounds"));
        if !self.random.chance(30) {
            return more;
        }
        self.feature("the data decide how many rounds there are");
        let value = call("int", vec![index(atom("from"), int(0))]);
        binary(more, "&&", binary(binary(value, "%", int(7)), "!=", int(3)))
    }

    fn tail_launch(&mut self, cycle: &Cycle, kernel: &str, block: i64, as_it_is: bool) -> Stmt {
        let args = match as_it_is {
            // The partner goes on to the next round.
            true => ["from", "to", "found", "len", "k", "rounds"].map(atom).to_vec(),
            false => cycle.next(),
        };
        self.tail(cycle, kernel, block, args)
    }

    fn tail_of_round(&mut self, cycle: &Cycle, kernel: &str, block: i64) -> Stmt {
        self.tail(cycle, kernel, block, cycle.next())
    }

    fn tail(&mut self, cycle: &Cycle, kernel: &str, block: i64, args: Vec<Expr>) -> Stmt {
        let named = cycle.template && self.random.chance(50);
        Stmt::Launch(Launch {
            site: self.site(),
            kernel: if named {
                format!("{kernel}<T>")
            } else {
                kernel.to_owned()
            },
            config: vec![int(1), int(block), int(0), atom("cudaStreamTailLaunch")],
            args,
            form: LaunchForm::Plain,
        })
    }

    /// The launches of a round: one that writes `to`, and perhaps one that counts in `from`, which nothing writes in this round.
    fn works(&mut self, cycle: &Cycle, into: Into) -> Vec<Stmt> {
        let functor = !cycle.template && self.random.chance(35);
        let relax = match functor {
            true => self.apply(&cycle.march),
            false => self.relax(cycle),
        };
        let mut launches = vec![self.work(cycle, &relax, into, functor)];
        if self.random.chance(40) {
            self.feature("driver with several children");
            let mut kernel = self.work_kernel(cycle, "count");
            let inside = binary(atom("i"), "<", atom("len"));
            let value = binary(call("int", vec![index(atom("from"), atom("i"))]), "%", int(3));
            let mut stmts = self.thread_number(&kernel, "i");
            let add = vec![unary("&", index(atom("found"), int(0))), value];
            stmts.push(when(inside, vec![Stmt::Expr(call("atomicAdd", add))]));
            kernel
                .params
                .insert(2, parameter(Role::Pointer(cycle.found), "int*", "found"));
            kernel.body = Some(stmts);
            let name = kernel.name.clone();
            self.kernels.push(kernel);
            let Stmt::Launch(mut launch) = self.work(cycle, &name, into, false) else {
                return launches;
            };
            launch.args.insert(2, atom("found"));
            launches.push(Stmt::Launch(launch));
        }
        launches
    }

    fn work_kernel(&mut self, cycle: &Cycle, name: &str) -> Kernel {
        let mut kernel = Kernel::plain(self.fresh(name));
        kernel.template_type = cycle.template.then_some(true);
        kernel.params = vec![
            parameter(Role::Pointer(cycle.march.a), cycle.pointer(), "from"),
            parameter(Role::Pointer(cycle.march.b), cycle.pointer(), "to"),
            parameter(Role::Count, "int", "len"),
            parameter(Role::Scalar(0, 9), "int", "k"),
        ];
        kernel
    }

    /// The kernel that makes `to` of `from`, its neighbours included, or of what stands there.
    fn relax(&mut self, cycle: &Cycle) -> String {
        let mut kernel = self.work_kernel(cycle, "relax");
        let mut stmts = Vec::new();
        let element = |name: &str, at: Expr| index(atom(name), at);
        let scaled = binary(element("from", atom("i")), "*", int(self.random.range(2, 5)));
        let mut value = binary(scaled, "+", atom("k"));
        if self.random.chance(50) {
            let next = binary(binary(atom("i"), "+", int(1)), "%", atom("len"));
            value = binary(value, "+", element("from", next));
        }
        if !cycle.flips {
            // What the round before has written, which is a launch above.
            value = binary(value, "+", element("to", atom("i")));
        }
        let write = assign(element("to", atom("i")), "=", binary(value, "%", int(1000)));
        if self.random.chance(30) {
            self.feature("grid-stride loop in a round");
            stmts.push(Stmt::For {
                init: ("int".to_owned(), "i".to_owned(), thread_index("x")),
                cond: binary(atom("i"), "<", atom("len")),
                step: binary(
                    atom("i"),
                    "+=",
                    binary(member(atom("gridDim"), "x"), "*", member(atom("blockDim"), "x")),
                ),
                body: vec![write],
                braces: true,
                unroll: false,
            });
        } else {
            stmts.extend(self.thread_number(&kernel, "i"));
            stmts.push(when(binary(atom("i"), "<", atom("len")), vec![write]));
        }
        kernel.body = Some(stmts);
        let name = kernel.name.clone();
        self.kernels.push(kernel);
        name
    }

    /// A kernel that applies a functor to each element.
    fn apply(&mut self, march: &March) -> String {
        self.feature("functor of a child");
        let class = self.fresh("Mix");
        let (x, y) = (self.random.range(2, 5), self.random.range(0, 9));
        let constant = if self.random.chance(50) { " const" } else { "" };
        self.text(format!(
            "struct {class} {{\n    int k;\n    __device__ int operator()(int value, int other){constant} {{ return (value * {x} + \
             other + k + {y}) % 1000; }}\n}};"
        ));
        let mut kernel = Kernel::plain(self.fresh("apply"));
        kernel.params = vec![
            parameter(Role::Pointer(march.a), "int*", "from"),
            parameter(Role::Pointer(march.b), "int*", "to"),
            parameter(Role::Count, "int", "len"),
            parameter(Role::Scalar(0, 0), "Op", "op"),
        ];
        // The functor's class is what an argument of it is written as.
        self.functors.insert(kernel.name.clone(), class);
        kernel.template_op = true;
        let mut stmts = self.thread_number(&kernel, "i");
        let args = vec![index(atom("from"), atom("i")), index(atom("to"), atom("i"))];
        let write = assign(index(atom("to"), atom("i")), "=", call("op", args));
        stmts.push(when(binary(atom("i"), "<", atom("len")), vec![write]));
        kernel.body = Some(stmts);
        let name = kernel.name.clone();
        self.kernels.push(kernel);
        name
    }

    /// A launch of the work of a round.
    fn work(&mut self, cycle: &Cycle, kernel: &str, into: Into, functor: bool) -> Stmt {
        let site = self.site();
        if into != Into::FireAndForget {
            // The next one comes behind it.
            self.ordered_sites.insert(site);
        }
        let block = *self.random.pick(&[4, 8, 32]);
        let grid = match self.random.chance(50) {
            true => int((cycle.march.len + block - 1) / block),
            false => binary(binary(atom("len"), "+", int(block - 1)), "/", int(block)),
        };
        let mut config = vec![grid, int(block)];
        if let Some(stream) = into.stream() {
            config.extend([int(0), stream]);
        }
        let mut args = vec![atom("from"), atom("to"), atom("len")];
        args.push(match self.functors.get(kernel).filter(|_| functor) {
            Some(class) => Expr::Braces(class.clone(), vec![atom("k")]),
            None => atom("k"),
        });
        Stmt::Launch(Launch {
            site,
            kernel: kernel.to_owned(),
            config,
            args,
            form: LaunchForm::Plain,
        })
    }

    /// Many threads launch a child that gets a functor, each for elements of its own.
    fn functor_parent(&mut self) {
        let len = *self.random.pick(&[4, 7, 16]);
        let units = self.random.range(2, 20);
        let march = self.march(len, units);
        let child = self.apply(&march);
        let mut kernel = Kernel::plain(self.fresh("spread"));
        kernel.parent = true;
        kernel.numbers = units;
        kernel.params = vec![
            parameter(Role::Pointer(march.a), "int*", "from"),
            parameter(Role::Pointer(march.b), "int*", "to"),
            parameter(Role::Count, "int", "units"),
        ];
        let mut stmts = self.thread_number(&kernel, "v");
        stmts.push(when(binary(atom("v"), ">=", atom("units")), vec![text("return;")]));
        let size = binary(binary(atom("v"), "%", int(len)), "+", int(1));
        stmts.push(declare("int", "size", size));
        let class = self.functors.get(&child).cloned().unwrap_or_default();
        let at = || binary(atom("v"), "*", int(len));
        let op = match self.random.chance(50) {
            true => Expr::Braces(class, vec![atom("v")]),
            false => {
                let init = Expr::Braces(class.clone(), vec![binary(atom("v"), "%", int(4))]);
                stmts.push(declare(&class, "op", init));
                atom("op")
            }
        };
        let block = *self.random.pick(&[4, 8, 32]);
        let launch = Launch {
            site: self.site(),
            kernel: child,
            config: vec![
                binary(binary(atom("size"), "+", int(block - 1)), "/", int(block)),
                int(block),
            ],
            args: vec![
                binary(atom("from"), "+", at()),
                binary(atom("to"), "+", at()),
                atom("size"),
                op,
            ],
            form: LaunchForm::Plain,
        };
        stmts.push(Stmt::Launch(launch));
        kernel.body = Some(stmts);
        self.kernels.push(kernel);
    }
}

fn parameter(role: Role, ty: &str, name: &str) -> KernelParam {
    KernelParam {
        role,
        ty: ty.to_owned(),
        name: name.to_owned(),
        default: None,
    }
}
