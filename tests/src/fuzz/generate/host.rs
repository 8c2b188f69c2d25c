//! `main`: inputs, launches, results.

use super::Generator;
use super::plan::{Fill, Role};
use super::scope::Scope;
use crate::fuzz::ast::{
    Expr, Function, Item, Launch, LaunchForm, Stmt, atom, binary, call, cast, declare, int, text, unary,
};

/// Copies an array to the device.
const UPLOAD: &str = "template <class T>
T* upload(const T* from, int count) {
    T* device = nullptr;
    cudaMalloc(&device, count * sizeof(T));
    cudaMemcpy(device, from, count * sizeof(T), cudaMemcpyHostToDevice);
    return device;
}";

/// Prints a checksum and the first elements of an array.
const SHOW: &str = "template <class T>
void show(const char* name, const T* values, int count) {
    const unsigned char* bytes = (const unsigned char*)values;
    unsigned hash = 2166136261u;
    for (unsigned i = 0; i < count * sizeof(T); ++i) hash = (hash ^ bytes[i]) * 16777619u;
    printf(\"%s %08x\", name, hash);
    for (int i = 0; i < count && i < 8; ++i) printf(\" %g\", (double)values[i]);
    printf(\"\\n\");
}";

impl Generator {
    /// The host's part.
    pub fn main(&mut self) {
        self.main.push(Item::Text(UPLOAD.to_owned()));
        self.main.push(Item::Text(SHOW.to_owned()));
        let used = self.used();
        let mut stmts = Vec::new();
        for id in &used {
            let buffer = self.buffers[*id].clone();
            if buffer.global {
                continue;
            }
            let host = format!("h_{}", buffer.name);
            self.main
                .push(Item::Text(format!("static {} {host}[{}];", buffer.ty, buffer.len)));
            let loop_over = |value: String| {
                text(&format!(
                    "for (int i = 0; i < {}; ++i) {host}[i] = {value};",
                    buffer.len
                ))
            };
            match buffer.fill {
                Fill::Value(0) => {}
                Fill::Value(value) => stmts.push(loop_over(format!("({}){value}", buffer.ty))),
                Fill::Formula(a, b, c) => stmts.push(loop_over(format!("(i * {a} + {b}) % {c}"))),
                Fill::Offsets => {
                    let degrees: Vec<String> = self.degrees.iter().map(i64::to_string).collect();
                    self.main.push(Item::Text(format!(
                        "static const int degrees[{}] = {{{}}};",
                        self.n,
                        degrees.join(", ")
                    )));
                    stmts.push(text(&format!(
                        "for (int i = 0; i < {}; ++i) {host}[i + 1] = {host}[i] + degrees[i];",
                        self.n
                    )));
                }
            }
            let device = format!("d_{}", buffer.name);
            let upload = call("upload", vec![atom(host), int(buffer.len)]);
            stmts.push(declare(&format!("{}*", buffer.ty), &device, upload));
        }
        let parents: Vec<usize> = (0..self.kernels.len()).filter(|k| self.kernels[*k].parent).collect();
        if self.tried {
            stmts.push(text("try {"));
        }
        for parent in parents {
            self.runs(parent, &mut stmts);
        }
        if self.tried {
            stmts.push(text("if (cudaPeekAtLastError() != cudaSuccess) throw 1;"));
            stmts.push(text("} catch (int error) {"));
            stmts.push(text("    printf(\"thrown %d\\n\", error);"));
            stmts.push(text("    return 3;"));
            stmts.push(text("}"));
        }
        stmts.push(Stmt::Expr(call("cudaDeviceSynchronize", Vec::new())));
        stmts.push(text("printf(\"status %d\\n\", (int)cudaGetLastError());"));
        for id in used {
            let buffer = self.buffers[id].clone();
            if !buffer.shown {
                stmts.push(text(&format!("cudaFree(d_{});", buffer.name)));
                continue;
            }
            if buffer.global {
                let host = format!("h_{}", buffer.name);
                self.main
                    .push(Item::Text(format!("static {} {host}[{}];", buffer.ty, buffer.len)));
                stmts.push(text(&format!(
                    "cudaMemcpyFromSymbol({host}, {}, sizeof {host});",
                    buffer.name
                )));
                stmts.push(text(&format!("show(\"{}\", {host}, {});", buffer.name, buffer.len)));
                continue;
            }
            stmts.push(text(&format!(
                "cudaMemcpy(h_{0}, d_{0}, sizeof h_{0}, cudaMemcpyDeviceToHost);",
                buffer.name
            )));
            stmts.push(text(&format!("show(\"{0}\", h_{0}, {1});", buffer.name, buffer.len)));
            stmts.push(text(&format!("cudaFree(d_{});", buffer.name)));
        }
        stmts.push(Stmt::Return(int(0)));
        self.main.push(Item::Function(Function {
            template: None,
            head: "int".to_owned(),
            name: "main".to_owned(),
            params: Vec::new(),
            body: stmts,
        }));
    }

    /// Buffers that some parent takes, or that are global.
    fn used(&self) -> Vec<usize> {
        let mut used: std::collections::BTreeSet<usize> = self
            .kernels
            .iter()
            .filter(|k| k.parent)
            .flat_map(|k| k.needs())
            .collect();
        used.extend((0..self.buffers.len()).filter(|b| self.buffers[*b].global));
        used.into_iter().collect()
    }

    /// Launches of one parent.
    fn runs(&mut self, parent: usize, stmts: &mut Vec<Stmt>) {
        let spec = self.kernels[parent].clone();
        stmts.extend(spec.host.iter().cloned());
        let n = spec.numbers.max(1);
        let more = spec.instances.as_ref().map_or(0, |_| 2);
        let times = 1 + more + self.random.weighted(&[65, 25, 10]);
        if times > 1 {
            self.feature("parent launched from several places");
        }
        let mut stream = None;
        if self.random.chance(30) {
            self.feature("host stream");
            let name = format!("s_{}", spec.name);
            stmts.push(text(&format!("cudaStream_t {name};")));
            stmts.push(text(&format!("cudaStreamCreate(&{name});")));
            stream = Some(name);
        }
        let count_name = format!("n_{}", spec.name);
        let named = self.random.chance(50);
        if named {
            stmts.push(declare("int", &count_name, int(n)));
        }
        let count = if named { atom(count_name) } else { int(n) };
        for _ in 0..times {
            let looped = self.random.chance(15);
            let mut scope = Scope::default();
            if looped {
                scope.values.push(super::scope::Value::variable("turn", 0, 1));
            }
            let (before, launch) = self.run(&spec, n, &count, &scope, stream.as_deref());
            stmts.extend(before);
            let through = !looped && self.random.chance(12) && stream.is_none();
            if looped {
                self.feature("parent launched in a loop");
                let braces = self.random.chance(50);
                stmts.push(Stmt::For {
                    init: ("int".to_owned(), "turn".to_owned(), int(0)),
                    cond: binary(atom("turn"), "<", int(2)),
                    step: unary("++", atom("turn")),
                    body: vec![Stmt::Launch(launch)],
                    braces,
                    unroll: false,
                });
            } else if through {
                self.through_function(launch, stmts);
            } else {
                stmts.push(Stmt::Launch(launch));
            }
            if self.random.chance(30) {
                stmts.push(Stmt::Expr(call("cudaDeviceSynchronize", Vec::new())));
            }
        }
        if let Some(stream) = stream {
            stmts.push(text(&format!("cudaStreamSynchronize({stream});")));
            stmts.push(text(&format!("cudaStreamDestroy({stream});")));
        } else if self.random.chance(50) {
            stmts.push(Stmt::Expr(call("cudaDeviceSynchronize", Vec::new())));
        }
        // What comes next may run in another stream.
        stmts.push(Stmt::Expr(call("cudaDeviceSynchronize", Vec::new())));
        stmts.extend(spec.host_behind);
    }

    /// Puts the launch into a host function of its own.
    fn through_function(&mut self, launch: Launch, stmts: &mut Vec<Stmt>) {
        let buffers: Vec<(String, String)> = self
            .buffers
            .iter()
            .filter(|b| !b.global)
            .map(|b| (format!("d_{}", b.name), b.ty.to_owned()))
            .collect();
        let mut params = Vec::new();
        let mut args = Vec::new();
        for arg in &launch.args {
            let Expr::Atom(name) = arg else { continue };
            if let Some((name, ty)) = buffers.iter().find(|(n, _)| n == name)
                && !args.contains(arg)
            {
                params.push(super::param(&format!("{ty}*"), name));
                args.push(atom(name.clone()));
            }
        }
        let needs_more = launch
            .args
            .iter()
            .chain(&launch.config)
            .any(|a| matches!(a, Expr::Atom(n) if n.starts_with("n_") || n == "threads" || n == "graph" || n.starts_with("blocks")));
        let complex = launch
            .config
            .iter()
            .any(|c| !matches!(c, Expr::Atom(n) if n.parse::<i64>().is_ok()))
            || launch.args.iter().any(|a| matches!(a, Expr::Braces(..)));
        if needs_more || complex {
            stmts.push(Stmt::Launch(launch));
            return;
        }
        self.feature("parent launched by a host function");
        let name = self.fresh("run");
        self.main.push(Item::Function(Function {
            template: None,
            head: "static void".to_owned(),
            name: name.clone(),
            params,
            body: vec![Stmt::Launch(launch)],
        }));
        stmts.push(Stmt::Expr(call(&name, args)));
    }

    fn run(
        &mut self,
        spec: &super::plan::Kernel,
        n: i64,
        count: &Expr,
        scope: &Scope,
        stream: Option<&str>,
    ) -> (Vec<Stmt>, Launch) {
        let mut before = Vec::new();
        let mut config = Vec::new();
        let mut kernel = spec.name.clone();
        if let Some(threads) = spec.one_block_of {
            config.push(int(1));
            config.push(int(threads));
        } else if spec.by_block {
            config.push(spec.grid.clone().unwrap_or_else(|| count.clone()));
            let any = int(*self.random.pick(&[2, 8, 32]));
            config.push(spec.block.clone().unwrap_or(any));
        } else if spec.dims == 2 {
            let (x, y) = *self.random.pick(&[(8, 4), (4, 2), (16, 2)]);
            let blocks = (n + x * y - 1) / (x * y);
            let (gx, gy) = if self.random.chance(50) {
                (blocks, 1)
            } else {
                (1, blocks)
            };
            config.push(call("dim3", vec![int(gx), int(gy)]));
            config.push(call("dim3", vec![int(x), int(y)]));
            self.feature("two-dimensional parent");
        } else {
            let block = spec.template_block.unwrap_or(*self.random.pick(&[8, 16, 32, 33, 64]));
            let blocks = (n + block - 1) / block;
            match self.random.below(5) {
                0 => {
                    config.push(int(blocks));
                    config.push(int(block));
                }
                1 => {
                    let up = binary(binary(count.clone(), "+", int(block - 1)), "/", int(block));
                    config.push(up);
                    config.push(int(block));
                }
                2 => {
                    let number = self.site();
                    let name = format!("blocks{number}");
                    let up = binary(binary(count.clone(), "+", int(block - 1)), "/", int(block));
                    before.push(declare("const int", &name, up));
                    config.push(atom(name));
                    config.push(int(block));
                }
                3 => {
                    let number = self.site();
                    let name = format!("grid{number}");
                    before.push(Stmt::Construct {
                        ty: "dim3".to_owned(),
                        name: name.clone(),
                        args: vec![int(blocks)],
                    });
                    config.push(atom(name));
                    config.push(call("dim3", vec![int(block)]));
                }
                _ => {
                    config.push(int(blocks + 1));
                    config.push(int(block));
                }
            }
            if let Some(size) = spec.template_block {
                kernel = format!("{kernel}<{size}>");
            }
        }
        if let Some(instances) = &spec.instances {
            kernel = format!("{kernel}<{}>", self.random.pick(&instances.args));
        }
        if let Some(stream) = stream {
            config.push(int(0));
            config.push(atom(stream));
        }
        let mut args = Vec::new();
        for param in &spec.params {
            args.push(match &param.role {
                Role::Pointer(buffer) | Role::OwnSlots(buffer) => {
                    if self.buffers[*buffer].global {
                        atom("nullptr")
                    } else {
                        atom(format!("d_{}", self.buffers[*buffer].name))
                    }
                }
                Role::Count if spec.body.is_some() && !param.name.eq("units") => int(n),
                Role::Count => count.clone(),
                Role::Bundle(buffers) => {
                    let mut parts: Vec<Expr> = buffers
                        .iter()
                        .map(|b| atom(format!("d_{}", self.buffers[*b].name)))
                        .collect();
                    parts.push(count.clone());
                    Expr::Braces("Graph".to_owned(), parts)
                }
                Role::Scalar(low, high) => {
                    let value = scope.within(&mut self.random, 1, *low, *high);
                    if param.ty == "Mode" {
                        cast("Mode", value.expr)
                    } else {
                        value.expr
                    }
                }
                Role::Float => atom("1.5f"),
                Role::Object(written) => atom(written.clone()),
                _ => int(0),
            });
        }
        let launch = Launch {
            site: 0,
            kernel,
            config,
            args,
            form: LaunchForm::Plain,
        };
        (before, launch)
    }
}
