//! What a program consists of: buffers, constants, helpers, and kernels with their parameters, but not yet their bodies.

use std::collections::BTreeSet;

use super::Generator;
use super::scope::{Helper, Table, Value};
use crate::fuzz::ast::{Expr, Function, Item, Stmt, assign, atom, binary, call, cast, declare, index, int, text};

/// Index into the generator's buffers.
pub(super) type BufferId = usize;

/// Memory that the host allocates.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub name: String,
    pub ty: &'static str,
    pub len: i64,
    pub fill: Fill,
    /// Its contents are a result.
    pub shown: bool,
    /// The only operation on it, for buffers of accumulators.
    pub atomic: Option<&'static str>,
    /// A `__device__` variable rather than an allocation.
    pub global: bool,
}

/// First contents of a buffer.
#[derive(Clone, Debug)]
pub(super) enum Fill {
    /// All the same.
    Value(i64),
    /// `(i * a + b) % c`
    Formula(i64, i64, i64),
    /// Prefix sums of the degrees.
    Offsets,
}

/// What a parameter means.
#[derive(Clone, Debug)]
pub(super) enum Role {
    /// The begin of a buffer.
    Pointer(BufferId),
    /// The place in a buffer where the slots of this grid begin.
    OwnSlots(BufferId),
    /// The number of the first thread of this grid.
    Base,
    /// How many threads are wanted.
    Count,
    /// Both, in a struct (or `int2`).
    Range(&'static str),
    /// Number of the launch: where the launching thread has left a note.
    Owner,
    /// A number.
    Scalar(i64, i64),
    /// A number of a floating type.
    Float,
    /// How often to go on.
    Depth(i64),
    /// Several pointers in a struct.
    Bundle(Vec<BufferId>),
    /// An object, as the host writes it.
    Object(String),
}

/// A parameter of a kernel.
#[derive(Clone, Debug)]
pub(super) struct KernelParam {
    pub role: Role,
    pub ty: String,
    pub name: String,
    pub default: Option<i64>,
}

/// What a kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Anything.
    Plain,
    /// Splits its range and launches itself for the parts.
    Recursive,
}

/// The arguments with which the host launches a template.
#[derive(Clone, Debug)]
pub(super) struct Instances {
    /// `template <int N>`
    pub head: &'static str,
    pub args: Vec<String>,
}

/// A kernel before it has a body.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub name: String,
    pub kind: Kind,
    /// Launched by the host.
    pub parent: bool,
    pub params: Vec<KernelParam>,
    /// Dimensions of its grids.
    pub dims: usize,
    /// Kernels that it launches, one for each site.
    pub launches: Vec<usize>,
    /// Threads wanted in one grid, at most.
    pub most: i64,
    /// Numbers given out to its threads.
    pub numbers: i64,
    /// Slots that it writes, with the same number of elements as it has numbers.
    pub slots: Vec<BufferId>,
    /// Accumulators.
    pub accumulators: Vec<BufferId>,
    /// Notes that its launching threads leave for it.
    pub notes: Option<BufferId>,
    /// An `extern __shared__` array with one element a thread.
    pub dynamic_shared: bool,
    /// A static shared array for blocks of so many threads at most.
    pub tile: Option<i64>,
    /// Takes its block size, a number, as a template argument.
    pub template_block: Option<i64>,
    /// The type of its slots is a template parameter; whether launches leave it to be deduced.
    pub template_type: Option<bool>,
    /// The type of its last parameter, a functor, is a template parameter.
    pub template_op: bool,
    /// What it is a template of, where that is something else.
    pub instances: Option<Instances>,
    /// What stands in front of its name, where not anything may.
    pub head: Option<&'static str>,
    /// Each of its blocks, rather than of its threads, has a number.
    pub by_block: bool,
    /// The number of its blocks, where it is written otherwise than their numbers say.
    pub grid: Option<Expr>,
    /// The size of its blocks, where each of them has a number.
    pub block: Option<Expr>,
    /// Its grids have one block, of so many threads.
    pub one_block_of: Option<i64>,
    /// Its statements, where they don't follow from the rest.
    pub body: Option<Vec<Stmt>>,
    /// What stands in front of it and behind the kernels that it launches.
    pub before: Vec<Item>,
    /// What the host does before it launches it.
    pub host: Vec<Stmt>,
    /// What the host does behind the launches.
    pub host_behind: Vec<Stmt>,
}

impl Kernel {
    /// A kernel without parameters.
    pub fn plain(name: String) -> Self {
        Kernel {
            name,
            kind: Kind::Plain,
            parent: false,
            params: Vec::new(),
            dims: 1,
            launches: Vec::new(),
            most: 1,
            numbers: 0,
            slots: Vec::new(),
            accumulators: Vec::new(),
            notes: None,
            dynamic_shared: false,
            tile: None,
            template_block: None,
            template_type: None,
            template_op: false,
            instances: None,
            head: None,
            by_block: false,
            grid: None,
            block: None,
            one_block_of: None,
            body: None,
            before: Vec::new(),
            host: Vec::new(),
            host_behind: Vec::new(),
        }
    }

    /// Buffers that must be handed to it.
    pub fn needs(&self) -> BTreeSet<BufferId> {
        let mut needs = BTreeSet::new();
        for param in &self.params {
            match &param.role {
                Role::Pointer(buffer) | Role::OwnSlots(buffer) => {
                    needs.insert(*buffer);
                }
                Role::Bundle(buffers) => needs.extend(buffers),
                _ => {}
            }
        }
        needs
    }
}

/// An atomic operation that commutes with itself: name, element type, first value.
const ATOMICS: &[(&str, &str, i64)] = &[
    ("atomicAdd", "unsigned", 0),
    ("atomicAdd", "int", 0),
    ("atomicMax", "int", 0),
    ("atomicMin", "int", 1_000_000),
    ("atomicOr", "unsigned", 0),
    ("atomicXor", "unsigned", 5),
    ("atomicAnd", "unsigned", 0xffff),
    ("atomicAdd", "unsigned long long", 0),
    ("atomicMax", "unsigned long long", 0),
    ("atomicAdd", "float", 0),
    ("atomicAdd", "double", 1),
    ("atomicSub", "int", 77),
];

const SLOT_TYPES: &[&str] = &[
    "int",
    "int",
    "unsigned",
    "float",
    "double",
    "long long",
    "short",
    "unsigned char",
];

/// Type and greatest value of numbers that are passed to children.
const SCALAR_TYPES: &[(&str, i64, i64)] = &[
    ("int", 0, 99),
    ("int", -20, 20),
    ("const int", 0, 30),
    ("unsigned", 0, 200),
    ("unsigned int", 0, 9),
    ("short", -50, 50),
    ("char", 0, 60),
    ("unsigned char", 0, 200),
    ("long long", -1000, 1000),
    ("bool", 0, 1),
    ("Mode", 0, 2),
    ("size_t", 0, 64),
];

impl Generator {
    /// Buffers, helpers and kernels.
    pub fn plan(&mut self) {
        self.inputs();
        self.constants();
        self.helpers();
        let leaves = 1 + self.random.weighted(&[50, 35, 15]);
        for _ in 0..leaves {
            let small = self.random.chance(40);
            self.leaf(small);
        }
        if self.random.chance(8) {
            self.recursive();
        }
        if self.random.chance(14) {
            self.middle();
        }
        let parents = 1 + self.random.weighted(&[72, 28]);
        if parents > 1 {
            self.feature("several parents");
        }
        for _ in 0..parents {
            self.parent();
        }
        self.drop_unused();
    }

    /// Forgets kernels that nothing launches.
    fn drop_unused(&mut self) {
        let mut used: BTreeSet<usize> = (0..self.kernels.len()).filter(|k| self.kernels[*k].parent).collect();
        loop {
            let launched: Vec<usize> = used.iter().flat_map(|k| self.kernels[*k].launches.clone()).collect();
            let before = used.len();
            used.extend(launched);
            if used.len() == before {
                break;
            }
        }
        let places: Vec<usize> = used.iter().copied().collect();
        let kernels = std::mem::take(&mut self.kernels);
        for (index, mut kernel) in kernels.into_iter().enumerate() {
            if !used.contains(&index) {
                continue;
            }
            for child in &mut kernel.launches {
                *child = places.iter().position(|place| place == child).unwrap_or(0);
            }
            self.kernels.push(kernel);
        }
    }

    fn inputs(&mut self) {
        let (a, b) = (self.random.range(3, 90), self.random.range(0, 50));
        let data = self.buffer("data", "int", 256, Fill::Formula(a, b, 100));
        debug_assert_eq!(data, 0);
        self.buffer("row", "int", self.n + 1, Fill::Offsets);
    }

    pub fn buffer(&mut self, name: &str, ty: &'static str, len: i64, fill: Fill) -> BufferId {
        let name = self.fresh(name);
        self.buffers.push(Buffer {
            name,
            ty,
            len,
            fill,
            shown: false,
            atomic: None,
            global: false,
        });
        self.buffers.len() - 1
    }

    fn constants(&mut self) {
        if self.random.chance(50) {
            let size = *self.random.pick(&[8, 16, 32, 64]);
            if self.random.chance(50) {
                let name = self.fresh("kBlock");
                let word = *self.random.pick(&["constexpr", "static const", "const"]);
                self.text(format!("{word} int {name} = {size};"));
                self.block_constants.push((name, size));
            } else {
                let name = self.fresh("BLOCK_SIZE");
                self.text(format!("#define {name} {size}"));
                self.block_constants.push((name, size));
                self.feature("macro block size");
            }
        }
        if self.random.chance(30) {
            let name = self.fresh("GLOBAL_ID");
            let body = *self.random.pick(&[
                "(blockIdx.x * blockDim.x + threadIdx.x)",
                "(int)(threadIdx.x + blockIdx.x * blockDim.x)",
            ]);
            self.text(format!("#define {name} {body}"));
            self.global_id.push(name);
        }
        if self.random.chance(14) {
            let name = self.fresh("global_index");
            self.text(format!(
                "__device__ int {name}() {{ return blockIdx.x * blockDim.x + threadIdx.x; }}"
            ));
            self.global_id.push(format!("{name}()"));
            self.feature("helper reads blockIdx");
        }
        if self.random.chance(35) {
            let name = self.fresh("ceil_div");
            let macro_form = self.random.chance(30);
            if macro_form {
                let name = name.to_uppercase();
                self.text(format!("#define {name}(a, b) (((a) + (b) - 1) / (b))"));
                self.ceil_div = Some(name);
                self.feature("macro ceil-div");
            } else {
                self.text(format!(
                    "__host__ __device__ inline int {name}(int a, int b) {{ return (a + b - 1) / b; }}"
                ));
                self.ceil_div = Some(name);
            }
        }
        self.text("enum Mode { kFirst, kSecond, kThird };");
        self.text("struct Range { int begin; int count; };");
        self.common.values.push(Value::new(cast("int", atom("kThird")), 2, 2));
        if self.random.chance(25) {
            let name = self.fresh("table");
            self.text(format!("__constant__ int {name}[8] = {{3, 1, 4, 1, 5, 9, 2, 6}};"));
            self.device.tables.push(Table {
                pointer: atom(name),
                mask: 7,
                bounds: (1, 9),
                read_only: false,
            });
            self.feature("__constant__");
        }
        if self.random.chance(12) {
            let name = self.fresh("kLimit");
            self.text(format!("constexpr int {name} = 11;"));
            self.common.values.push(Value::variable(&name, 11, 11));
        }
        if self.random.chance(20) {
            let name = self.fresh("g_bias");
            self.text(format!("__device__ int {name} = 6;"));
            self.device.values.push(Value::variable(&name, 6, 6));
            self.feature("__device__ variable");
        }
        if self.random.chance(25) {
            let name = self.fresh("g_total");
            self.text(format!("__device__ unsigned {name}[16];"));
            self.buffers.push(Buffer {
                name,
                ty: "unsigned",
                len: 16,
                fill: Fill::Value(0),
                shown: true,
                atomic: Some("atomicAdd"),
                global: true,
            });
            self.feature("__device__ accumulator");
        }
    }

    fn helpers(&mut self) {
        let count = self.random.weighted(&[35, 40, 25]);
        for _ in 0..count {
            let base = *self.random.pick(&["mix", "weigh", "score", "clampi"]);
            let name = self.fresh(base);
            let (x, y) = (atom("a"), atom("b"));
            let body: Vec<Stmt> = match self.random.below(4) {
                0 => vec![Stmt::Return(binary(
                    binary(binary(x, "%", int(97)), "*", int(3)),
                    "+",
                    binary(y, "&", int(15)),
                ))],
                1 => vec![
                    Stmt::If {
                        cond: binary(x.clone(), "<", y),
                        then: vec![Stmt::Return(binary(x.clone(), "&", int(31)))],
                        otherwise: Vec::new(),
                        braces: false,
                    },
                    Stmt::Return(binary(binary(x, "%", int(50)), "-", int(7))),
                ],
                2 => vec![
                    declare("int", "sum", int(0)),
                    Stmt::For {
                        init: ("int".to_owned(), "j".to_owned(), int(0)),
                        cond: binary(atom("j"), "<", int(3)),
                        step: Expr::Unary("++", Box::new(atom("j"))),
                        body: vec![assign(
                            atom("sum"),
                            "+=",
                            binary(binary(x, "+", binary(y, "%", int(10))), "&", int(63)),
                        )],
                        braces: false,
                        unroll: false,
                    },
                    Stmt::Return(atom("sum")),
                ],
                _ => vec![
                    text("switch (a & 3) {"),
                    text("case 0: return b & 7;"),
                    text("case 1: a = a % 40;"),
                    text("default: break;"),
                    text("}"),
                    Stmt::Return(binary(
                        binary(x, "%", int(60)),
                        "+",
                        call("min", vec![binary(y, "&", int(3)), int(2)]),
                    )),
                ],
            };
            let template = self.random.chance(20);
            let (head, called) = if template {
                self.feature("template helper");
                (Some("template <int N>".to_owned()), format!("{name}<4>"))
            } else {
                (None, name.clone())
            };
            let qualifiers = *self.random.pick(&[
                "__device__ int",
                "__host__ __device__ int",
                "static __device__ __forceinline__ int",
                "inline __device__ int",
            ]);
            self.head.push(Item::Function(Function {
                template: head,
                head: qualifiers.to_owned(),
                name,
                params: vec![super::param("int", "a"), super::param("int", "b")],
                body,
            }));
            self.helpers.push(Helper {
                name: called,
                arity: 2,
                bounds: (-400, 400),
            });
        }
        if self.random.chance(20) {
            let name = self.fresh("bump");
            self.text(format!(
                "template <class T>\n__device__ void {name}(T* where, int at, T by) {{ atomicAdd(&where[at], by); }}"
            ));
            self.helpers.push(Helper {
                name,
                arity: 0,
                bounds: (0, 0),
            });
        }
    }

    /// An accumulator, an old one or a new one.
    fn accumulator(&mut self) -> BufferId {
        let old: Vec<BufferId> = (0..self.buffers.len())
            .filter(|b| self.buffers[*b].atomic.is_some() && !self.buffers[*b].global)
            .collect();
        if !old.is_empty() && self.random.chance(40) {
            return *self.random.pick(&old);
        }
        let (atomic, ty, first) = *self.random.pick(ATOMICS);
        let base = *self.random.pick(&["total", "sums", "best", "bits", "hist"]);
        let len = *self.random.pick(&[1, 8, 32]);
        let id = self.buffer(base, ty, len, Fill::Value(first));
        self.buffers[id].shown = true;
        self.buffers[id].atomic = Some(atomic);
        id
    }

    pub fn slot_buffer(&mut self, name: &str, ty: &'static str) -> BufferId {
        let id = self.buffer(name, ty, 0, Fill::Value(-1));
        self.buffers[id].shown = true;
        id
    }

    fn pointer_type(&mut self, buffer: BufferId) -> String {
        let buffer = &self.buffers[buffer];
        let constant = if buffer.shown { "" } else { "const " };
        let restrict = if self.random.chance(12) { " __restrict__" } else { "" };
        format!("{constant}{}*{restrict}", buffer.ty)
    }

    fn pointer_param(&mut self, kernel: &mut Kernel, buffer: BufferId) {
        let own = self.buffers[buffer].name.clone();
        let name = if self.random.chance(25) {
            unused(
                kernel,
                &own,
                &["out", "dst", "p", "values", "args", "acc"],
                &mut self.random,
            )
        } else {
            own
        };
        let ty = self.pointer_type(buffer);
        kernel.params.push(KernelParam {
            role: Role::Pointer(buffer),
            ty,
            name,
            default: None,
        });
    }

    /// A child that launches nothing.
    fn leaf(&mut self, small: bool) -> usize {
        let base = *self
            .random
            .pick(&["child", "expand", "relax", "scatter", "fill", "process"]);
        let mut kernel = Kernel::plain(self.fresh(base));
        kernel.most = if small {
            *self.random.pick(&[4, 6])
        } else {
            *self.random.pick(&[8, 20, 40, 70])
        };
        kernel.dims = 1 + self.random.weighted(&[82, 12, 6]);
        if kernel.dims > 1 {
            self.feature("child grids of several dimensions");
        }
        if self.random.chance(22) {
            if self.random.chance(35) {
                kernel.dynamic_shared = true;
                self.feature("dynamic shared memory");
            } else {
                kernel.tile = Some(*self.random.pick(&[64, 128]));
                self.feature("static shared memory");
            }
        } else if self.random.chance(8) && kernel.dims == 1 {
            kernel.template_block = Some(*self.random.pick(&[16, 32, 64]));
            self.feature("template child, value");
        }
        self.common_params(&mut kernel);
        self.kernels.push(kernel);
        self.kernels.len() - 1
    }

    /// Slots, accumulators and numbers.
    fn common_params(&mut self, kernel: &mut Kernel) {
        // Who launches needs a number of its own for each thread.
        let numbered = !kernel.launches.is_empty();
        let slots = self.random.chance(70);
        let accumulators = if slots {
            self.random.weighted(&[45, 45, 10])
        } else {
            1 + self.random.below(2)
        };
        if self.random.chance(70) {
            self.pointer_param(kernel, 0);
        }
        if self.random.chance(25) {
            let base = *self.random.pick(&["note", "tmp", "pending"]);
            let id = self.slot_buffer(base, "int");
            kernel.notes = Some(id);
            self.feature("child reads what the launcher wrote");
        }
        let mut own = None;
        if slots {
            let ty = *self.random.pick(SLOT_TYPES);
            let id = self.slot_buffer("out", ty);
            kernel.slots.push(id);
            if self.random.chance(20) && kernel.notes.is_none() && !numbered {
                own = Some(id);
                self.feature("pointer arithmetic in arguments");
            }
            if kernel.template_block.is_none() && self.random.chance(12) {
                let deduced = self.random.chance(30);
                kernel.template_type = Some(deduced);
                self.feature(if deduced {
                    "template child, deduced"
                } else {
                    "template child, type"
                });
            }
        }
        for _ in 0..accumulators {
            let id = self.accumulator();
            if !kernel.accumulators.contains(&id) {
                kernel.accumulators.push(id);
                self.pointer_param(kernel, id);
            }
        }
        if let Some(global) = (0..self.buffers.len()).find(|b| self.buffers[*b].global)
            && self.random.chance(50)
        {
            kernel.accumulators.push(global);
        }
        if let Some(id) = kernel.notes {
            let name = unused(kernel, &self.buffers[id].name.clone(), &["note"], &mut self.random);
            kernel.params.push(KernelParam {
                role: Role::Pointer(id),
                ty: "const int*".to_owned(),
                name,
                default: None,
            });
        }
        if let Some(id) = kernel.slots.first().copied() {
            let ty = if kernel.template_type.is_some() {
                "T*".to_owned()
            } else {
                format!("{}*", self.buffers[id].ty)
            };
            let name = unused(
                kernel,
                &self.buffers[id].name.clone(),
                &["out", "dst"],
                &mut self.random,
            );
            let role = if own.is_some() {
                Role::OwnSlots(id)
            } else {
                Role::Pointer(id)
            };
            kernel.params.push(KernelParam {
                role,
                ty,
                name,
                default: None,
            });
        }
        let mut numbers: Vec<KernelParam> = Vec::new();
        let needs_base = own.is_none() && !kernel.slots.is_empty() || numbered;
        let plain = |role, name: &str| KernelParam {
            role,
            ty: "int".to_owned(),
            name: name.to_owned(),
            default: None,
        };
        let count = *self.random.pick(&["count", "n", "len", "num"]);
        if needs_base && self.random.chance(15) {
            let form = *self.random.pick(&["Range", "int2"]);
            self.structs.insert(form);
            self.feature("struct argument");
            numbers.push(KernelParam {
                role: Role::Range(form),
                ty: form.to_owned(),
                name: self.random.pick(&["range", "part", "args"]).to_string(),
                default: None,
            });
        } else {
            if needs_base {
                let name = *self.random.pick(&["begin", "first", "offset", "start"]);
                numbers.push(plain(Role::Base, name));
            }
            if needs_base || own.is_some() || self.random.chance(85) {
                numbers.push(plain(Role::Count, count));
            }
        }
        if kernel.notes.is_some() {
            numbers.push(plain(Role::Owner, "owner"));
        }
        for number in 0..self.random.weighted(&[15, 40, 30, 15]) {
            let name = ["k", "scale", "flag"][number.min(2)];
            if self.random.chance(15) {
                let ty = *self.random.pick(&["float", "double"]);
                numbers.push(KernelParam {
                    role: Role::Float,
                    ty: ty.to_owned(),
                    name: name.to_owned(),
                    default: None,
                });
                self.feature("floating argument");
                continue;
            }
            let (ty, low, high) = *self.random.pick(SCALAR_TYPES);
            if !ty.contains("int") {
                self.feature("argument of another type");
            }
            numbers.push(KernelParam {
                role: Role::Scalar(low, high),
                ty: ty.to_owned(),
                name: name.to_owned(),
                default: None,
            });
        }
        if self.random.chance(20) {
            let at = self.random.below(numbers.len() + 1);
            let rest = numbers.split_off(at);
            numbers.splice(0..0, rest);
        }
        kernel.params.append(&mut numbers);
        if self.random.chance(5) {
            kernel.params.push(KernelParam {
                role: Role::Scalar(0, 9),
                ty: "int".to_owned(),
                name: "extra".to_owned(),
                default: Some(self.random.range(0, 9)),
            });
            self.feature("defaulted parameter");
        }
        if self.random.chance(10) {
            // Pointers last is as good as pointers first.
            kernel.params.reverse();
            kernel.params.sort_by_key(|p| p.default.is_some());
        }
        let mut names = BTreeSet::new();
        for param in &mut kernel.params {
            while !names.insert(param.name.clone()) {
                param.name.push('_');
            }
        }
    }

    /// A child that launches children.
    fn middle(&mut self) {
        let small: Vec<usize> = (0..self.kernels.len())
            .filter(|k| self.kernels[*k].most <= 8 && self.kernels[*k].kind == Kind::Plain)
            .collect();
        if small.is_empty() {
            return;
        }
        self.feature("children launch again");
        let base = *self.random.pick(&["spread", "middle", "divide"]);
        let mut kernel = Kernel::plain(self.fresh(base));
        kernel.most = 5;
        let child = *self.random.pick(&small);
        kernel.launches.push(child);
        self.common_params(&mut kernel);
        if kernel.template_type.is_some() {
            kernel.template_type = None;
            let slots = kernel.slots.first().map(|s| self.buffers[*s].ty);
            for param in &mut kernel.params {
                if let (true, Some(ty)) = (param.ty == "T*", slots) {
                    param.ty = format!("{ty}*");
                }
            }
        }
        self.pass_through(&mut kernel);
        self.kernels.push(kernel);
    }

    /// Parameters for what the launched kernels need.
    fn pass_through(&mut self, kernel: &mut Kernel) {
        let mut needs = BTreeSet::new();
        for child in &kernel.launches {
            needs.extend(self.kernels[*child].needs());
        }
        let own = kernel.needs();
        for buffer in needs.difference(&own) {
            let mut name = self.buffers[*buffer].name.clone();
            while kernel.params.iter().any(|p| p.name == name) {
                name.push('_');
            }
            let shown = self.buffers[*buffer].shown;
            let constant = if shown { "" } else { "const " };
            let param = KernelParam {
                role: Role::Pointer(*buffer),
                ty: format!("{constant}{}*", self.buffers[*buffer].ty),
                name,
                default: None,
            };
            let at = kernel.params.iter().position(|p| p.default.is_some());
            kernel.params.insert(at.unwrap_or(kernel.params.len()), param);
        }
    }

    /// A kernel that launches itself.
    fn recursive(&mut self) {
        self.feature("recursion");
        let mut kernel = Kernel::plain(self.fresh("split"));
        kernel.kind = Kind::Recursive;
        kernel.most = 16;
        let accumulator = self.accumulator();
        kernel.accumulators.push(accumulator);
        self.pointer_param(&mut kernel, accumulator);
        let own = self.kernels.len();
        kernel.launches.push(own);
        let slots = self.slot_buffer("parts", "int");
        kernel.slots.push(slots);
        self.pointer_param(&mut kernel, slots);
        for (role, name) in [(Role::Base, "begin"), (Role::Count, "count"), (Role::Depth(2), "depth")] {
            kernel.params.push(KernelParam {
                role,
                ty: "int".to_owned(),
                name: name.to_owned(),
                default: None,
            });
        }
        self.kernels.push(kernel);
    }

    /// A kernel that the host launches.
    fn parent(&mut self) {
        let base = *self.random.pick(&["parent", "visit", "bfs_level", "drive", "sweep"]);
        let mut kernel = Kernel::plain(self.fresh(base));
        kernel.parent = true;
        kernel.most = self.n;
        kernel.dims = 1 + self.random.weighted(&[90, 10]);
        let sites = 1 + self.random.weighted(&[80, 15, 5]);
        if sites > 1 {
            self.feature("several launch sites");
        }
        for _ in 0..sites {
            let children: Vec<usize> = (0..self.kernels.len()).filter(|k| !self.kernels[*k].parent).collect();
            let launched = |child: &usize| {
                kernel.launches.contains(child)
                    || self
                        .kernels
                        .iter()
                        .any(|k| k.launches.contains(child) && k.name != self.kernels[*child].name)
            };
            let new: Vec<usize> = children.iter().copied().filter(|child| !launched(child)).collect();
            let from = if new.is_empty() || self.random.chance(25) {
                &children
            } else {
                &new
            };
            kernel.launches.push(*self.random.pick(from));
        }
        if self.random.chance(12) {
            let buffers = vec![0, 1];
            let ty = "Graph".to_owned();
            if self.structs.insert("Graph") {
                let (data, row) = (&self.buffers[0].name, &self.buffers[1].name);
                let text = format!("struct Graph {{\n    const int* {data};\n    const int* {row};\n    int n;\n}};");
                self.text(text);
            }
            self.feature("struct parameter of a parent");
            kernel.params.push(KernelParam {
                role: Role::Bundle(buffers),
                ty,
                name: "graph".to_owned(),
                default: None,
            });
        } else {
            self.pointer_param(&mut kernel, 0);
            self.pointer_param(&mut kernel, 1);
        }
        let scalars = self.random.weighted(&[20, 45, 35]);
        for number in 0..scalars {
            let types = if self.random.chance(60) {
                &SCALAR_TYPES[..2]
            } else {
                &SCALAR_TYPES[..6]
            };
            let (ty, low, high) = *self.random.pick(types);
            kernel.params.push(KernelParam {
                role: Role::Scalar(low, high),
                ty: ty.to_owned(),
                name: ["level", "phase"][number.min(1)].to_owned(),
                default: None,
            });
        }
        if self.random.chance(40) {
            let slots = self.slot_buffer("mine", "int");
            kernel.slots.push(slots);
            self.pointer_param(&mut kernel, slots);
        }
        kernel.params.push(KernelParam {
            role: Role::Count,
            ty: "int".to_owned(),
            name: self.random.pick(&["n", "vertices", "size"]).to_string(),
            default: None,
        });
        kernel.numbers = self.n;
        if self.random.chance(6) && kernel.dims == 1 {
            kernel.template_block = Some(*self.random.pick(&[16, 32]));
            self.feature("template parent");
        }
        self.pass_through(&mut kernel);
        self.kernels.push(kernel);
    }

    /// The pointer to a buffer in a kernel, by its parameters.
    pub fn pointer_in(&self, kernel: &Kernel, buffer: BufferId) -> Option<Expr> {
        if self.buffers[buffer].global {
            return Some(atom(self.buffers[buffer].name.clone()));
        }
        kernel.params.iter().find_map(|param| match &param.role {
            Role::Pointer(b) | Role::OwnSlots(b) if *b == buffer => Some(atom(param.name.clone())),
            Role::Bundle(buffers) if buffers.contains(&buffer) => Some(Expr::Member(
                Box::new(atom(param.name.clone())),
                self.buffers[buffer].name.clone(),
            )),
            _ => None,
        })
    }

    /// An atomic on an accumulator: `atomicAdd(&sums[at], by)`.
    pub fn atomic(&mut self, kernel: &Kernel, buffer: BufferId, at: Value, by: Value) -> Option<Stmt> {
        let pointer = self.pointer_in(kernel, buffer)?;
        let info = self.buffers[buffer].clone();
        let at = super::scope::masked(at, info.len - 1);
        let name = info.atomic?;
        let by = match (info.ty, name) {
            ("int", _) => super::scope::clamped(by, -999, 999).expr,
            ("float" | "double", _) => cast(info.ty, super::scope::clamped(by, -99, 99).expr),
            (_, _) => cast(info.ty, super::scope::clamped(by, 0, 4000).expr),
        };
        let bump = self.helpers.iter().find(|h| h.arity == 0).map(|h| h.name.clone());
        if let Some(bump) = bump
            && name == "atomicAdd"
            && self.random.chance(40)
        {
            let by = if info.ty == "int" { binary(by, "+", int(0)) } else { by };
            return Some(Stmt::Expr(call(&bump, vec![pointer, at.expr, by])));
        }
        let place = if self.random.chance(15) {
            binary(pointer, "+", at.expr)
        } else {
            Expr::Unary("&", Box::new(index(pointer, at.expr)))
        };
        Some(Stmt::Expr(call(name, vec![place, by])))
    }
}

fn unused(kernel: &Kernel, own: &str, wanted: &[&str], random: &mut crate::fuzz::random::Random) -> String {
    let wanted = *random.pick(wanted);
    if kernel.params.iter().any(|p| p.name == wanted) {
        let mut name = own.to_owned();
        while kernel.params.iter().any(|p| p.name == name) {
            name.push('_');
        }
        return name;
    }
    wanted.to_owned()
}
