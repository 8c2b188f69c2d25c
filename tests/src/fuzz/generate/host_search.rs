//! Searches by the host: a function with a loop of rounds, and what programs put around such a loop. Variables of many types that outlive it, are
//! kept by reference, or are carried from one run of it to the next; sizes and bounds out of macros, constants, structs, and memory that the
//! device shares; flags of every kind; checks of errors in several styles.

use super::Generator;
use crate::fuzz::ast::{Item, text};

/// The pieces of one search, as text.
struct Search {
    /// Number of the search, in its names.
    number: u32,
    /// The host's counter of rounds: type and name.
    level: (&'static str, &'static str),
    /// The host's copy of the flag: type and name.
    again: (&'static str, &'static str),
    /// Where the flag is.
    flag: Flag,
    /// Rounds at most.
    most: i64,
    /// Elements.
    len: i64,
    /// Threads of a block.
    block: i64,
    /// Its kernel is a template.
    template: bool,
}

/// How the host learns that there is something left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flag {
    /// `cudaMemcpy` from memory.
    Copied,
    /// `cudaMemcpyFromSymbol`.
    Symbol,
    /// The host reads managed memory.
    Managed,
}

impl Generator {
    /// Adds a search by the host.
    pub fn host_search(&mut self) {
        self.feature("search by the host");
        let search = Search {
            number: self.site(),
            level: (
                *self
                    .random
                    .pick(&["int", "int", "unsigned", "short", "long long", "unsigned char"]),
                *self
                    .random
                    .pick(&["level", "depth", "state", "rounds", "blocks", "grid"]),
            ),
            again: (
                *self.random.pick(&["int", "int", "unsigned", "bool"]),
                *self.random.pick(&["again", "changed", "h", "memory"]),
            ),
            flag: *self
                .random
                .pick(&[Flag::Copied, Flag::Copied, Flag::Symbol, Flag::Managed]),
            most: self.random.range(2, 6),
            len: *self.random.pick(&[5, 20, 33, 70]),
            block: *self.random.pick(&[8, 32, 64]),
            template: self.random.chance(15),
        };
        let mut before = self.search_kernels(&search);
        before.push(self.search_function(&search));
        for part in before.into_iter().filter(|part| !part.is_empty()) {
            self.main.push(Item::Text(part));
        }
        let call = self.search_call(&search);
        if let Some(kernel) = self.kernels.iter_mut().find(|kernel| kernel.parent) {
            kernel.host_behind.push(text(&call));
        }
    }

    fn search_kernels(&mut self, search: &Search) -> Vec<String> {
        let n = search.number;
        let flag = search.again.0;
        let symbol = match search.flag {
            Flag::Symbol => format!("__device__ {flag} found{n};"),
            _ => String::new(),
        };
        let say = match (search.flag, self.random.below(2)) {
            (Flag::Symbol, _) => format!("found{n} = 1;"),
            (_, 0) if flag == "int" || flag == "unsigned" => "atomicExch(flag, 1);".to_owned(),
            _ => "*flag = 1;".to_owned(),
        };
        let bounds = match self.random.below(6) {
            0 => "__launch_bounds__(64) ",
            _ => "",
        };
        let (template, by) = match search.template {
            true => ("template <int B>\n", "B"),
            false => ("", "2"),
        };
        if search.template {
            self.feature("search by the host with a template");
        }
        let relax = format!(
            "{template}__global__ void {bounds}relax{n}(int* value, int* other, {flag}* flag, int level, int bound, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    other[i] = value[i];
    if (value[i] > bound + level) {{
        other[i] = value[i] / {by};
        {say}
    }}
}}"
        );
        let adapt =
            format!("__global__ void adapt{n}(int* limits, int by) {{ if (threadIdx.x == 0) limits[0] += by; }}");
        vec![symbol, relax, adapt]
    }

    /// Where the bound of a round comes from: what stands above the function, in front of the loop, and in the launch.
    fn search_bound(&mut self, n: u32, level: &str) -> (String, String, String) {
        let none = String::new;
        match self.random.below(9) {
            0 => (none(), none(), "3".to_owned()),
            1 => (format!("static const int kBound{n} = 4;"), none(), format!("kBound{n}")),
            2 => (format!("#define BOUND_{n} (5 - 2)"), none(), format!("BOUND_{n}")),
            3 => (
                format!("enum Bounds{n} {{ kFew{n} = 2 }};"),
                none(),
                format!("kFew{n} * 2"),
            ),
            4 => (none(), "const int bound = n / 8 + 1;".to_owned(), "bound".to_owned()),
            5 => {
                self.feature("search that reads managed memory in each round");
                (none(), none(), "limits[0]".to_owned())
            }
            6 => {
                self.feature("search with a reference to managed memory");
                (none(), "const int& bound = limits[0];".to_owned(), "bound".to_owned())
            }
            7 => {
                let settings = format!("struct Settings{n} {{ int bound, more; }};");
                (
                    settings,
                    format!("Settings{n} settings = {{3, n}};"),
                    "settings.bound".to_owned(),
                )
            }
            _ => {
                self.feature("search with a struct of references");
                let view = format!("struct View{n} {{ int& bound; }};");
                (
                    view,
                    format!("int most{n} = 2; View{n} view{{most{n}}};"),
                    format!("view.bound + (int){level} % 2"),
                )
            }
        }
    }

    /// Who keeps the counter: what stands in front of the loop, and what is printed afterwards.
    fn search_keeper(&mut self, search: &Search) -> (String, String, String) {
        let (n, (ty, level)) = (search.number, search.level);
        let none = String::new;
        match self.random.below(7) {
            0 => {
                self.feature("search whose counter has another name");
                (none(), format!("{ty}& kept = {level};"), "(int)kept".to_owned())
            }
            1 => {
                self.feature("search whose counter is kept by an object");
                let keeper = format!("struct Keeper{n} {{ {ty}& value; }};");
                (
                    keeper,
                    format!("Keeper{n} keeper{{{level}}};"),
                    "(int)keeper.value".to_owned(),
                )
            }
            2 => {
                self.feature("search whose counter has its address taken");
                (
                    none(),
                    format!("const {ty}* where = &{level};"),
                    "(int)*where".to_owned(),
                )
            }
            3 => {
                self.feature("search whose counter a lambda has");
                (
                    none(),
                    format!("auto read = [&] {{ return (int){level}; }};"),
                    "read()".to_owned(),
                )
            }
            4 => (none(), none(), "0".to_owned()),
            _ => (none(), none(), format!("(int){level}")),
        }
    }

    fn search_function(&mut self, search: &Search) -> String {
        let n = search.number;
        let (ty, level) = search.level;
        let (flag, again) = search.again;
        let (above_bound, declared, bound) = self.search_bound(n, level);
        let (above_keeper, keeper, kept) = self.search_keeper(search);
        let mut above = vec![above_bound, above_keeper];
        let size = format!("sizeof({flag})");
        let clear = match search.flag {
            Flag::Copied => format!("cudaMemset(flag, 0, {size});"),
            Flag::Symbol => format!("{again} = 0;\n        cudaMemcpyToSymbol(found{n}, &{again}, {size});"),
            Flag::Managed => "*flag = 0;".to_owned(),
        };
        let look = match search.flag {
            Flag::Copied => format!("cudaMemcpy(&{again}, flag, {size}, cudaMemcpyDeviceToHost)"),
            Flag::Symbol => format!("cudaMemcpyFromSymbol(&{again}, found{n}, {size})"),
            Flag::Managed => "cudaDeviceSynchronize()".to_owned(),
        };
        let look = match self.random.below(4) {
            0 => {
                self.feature("search that checks calls by a macro");
                above.push(format!(
                    "#define CHECK_{n}(call) do {{ if ((call) != cudaSuccess) printf(\"failed\\n\"); }} while (0)"
                ));
                format!("CHECK_{n}({look});")
            }
            1 => {
                self.feature("search that checks calls");
                format!("if ({look} != cudaSuccess) printf(\"failed\\n\");")
            }
            _ => format!("{look};"),
        };
        let look = match search.flag {
            Flag::Managed => format!("{look}\n        {again} = *flag;"),
            _ => look,
        };
        let block = search.block;
        let grid = match self.random.below(5) {
            0 => {
                above.push(format!("#define BLOCKS_{n}(n) (((n) + {block} - 1) / {block})"));
                format!("BLOCKS_{n}(n)")
            }
            1 => {
                self.feature("search whose grids change");
                format!("(n + {block} - 1) / {block} + (int){level} % 2")
            }
            2 => format!("dim3((n + {block} - 1) / {block})"),
            _ => format!("(n + {block} - 1) / {block}"),
        };
        let relax = match search.template {
            true => format!("relax{n}<{}>", self.random.range(2, 3)),
            false => format!("relax{n}"),
        };
        let launch = format!("{relax}<<<{grid}, {block}>>>(value, other, flag, {level}, {bound}, n);");
        let swap = match self.random.below(2) {
            0 => "std::swap(value, other);".to_owned(),
            _ => "int* last = value;\n        value = other;\n        other = last;".to_owned(),
        };
        let more = match self.random.below(6) {
            0 => {
                self.feature("search whose bound a kernel changes");
                format!("adapt{n}<<<1, {block}>>>(limits, 1);\n        cudaDeviceSynchronize();")
            }
            1 if search.flag == Flag::Managed => {
                self.feature("search whose bound the host changes");
                "limits[0] = limits[0] + 1;".to_owned()
            }
            2 => format!("if ({level} == {}) continue;", self.random.range(0, 3)),
            3 => format!("if ({level} > {}) break;", search.most - 1),
            _ => String::new(),
        };
        // `continue` passes by the step of a loop that isn't in its head.
        let (step_above, more, step_below) = match more.contains("continue") {
            true => (format!("++{level};"), format!("{swap}\n        {more}"), String::new()),
            false => (String::new(), format!("{more}\n        {swap}"), format!("{level}++;")),
        };
        let most = search.most;
        let goes_on = format!("{again} && {level} < {most} + turns * {most}");
        let body = [clear, step_above, launch, look, more, step_below];
        let body = body
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("\n        ");
        let head = match self.random.below(3) {
            0 => format!("do {{\n        {body}\n    }} while ({goes_on});"),
            1 => format!("for (; {goes_on};) {{\n        {body}\n    }}"),
            _ => format!("while ({goes_on}) {{\n        {body}\n    }}"),
        };
        let begins = i64::from(!self.random.chance(15));
        let around = match self.random.below(4) {
            0 => {
                self.feature("search that runs again");
                format!("for (; turns < 2; ++turns) {{\n    {again} = {begins};\n    {head}\n    }}")
            }
            1 => {
                self.feature("search that runs again by goto");
                format!("more:\n    {again} = {begins};\n    {head}\n    if (turns++ < 1) goto more;")
            }
            _ => head,
        };
        let above: Vec<String> = above.into_iter().filter(|part| !part.is_empty()).collect();
        format!(
            "{above}
static int search{n}(int* value, int* other, int* limits, {flag}* flag, int n) {{
    int turns = 0;
    {ty} {level} = 0;
    {flag} {again} = {begins};
    {declared}
    {keeper}
    {around}
    cudaDeviceSynchronize();
    printf(\"search %d %d %d\\n\", turns, {kept}, (int)cudaGetLastError());
    return value[0] + other[n - 1] + limits[0];
}}",
            above = above.join("\n")
        )
    }

    fn search_call(&mut self, search: &Search) -> String {
        let (n, len, flag) = (search.number, search.len, search.again.0);
        let (x, y) = (self.random.range(3, 50), self.random.range(0, 9));
        format!(
            "{{
    int *value, *other, *limits;
    {flag}* flag;
    cudaMallocManaged(&value, {len} * sizeof(int));
    cudaMallocManaged(&other, {len} * sizeof(int));
    cudaMallocManaged(&limits, sizeof(int));
    cudaMallocManaged(&flag, sizeof({flag}));
    for (int i = 0; i < {len}; ++i) value[i] = other[i] = (i * {x} + {y}) % 100;
    *limits = 3;
    *flag = 0;
    printf(\"found %d\\n\", search{n}(value, other, limits, flag, {len}));
    show(\"value\", value, {len});
    show(\"other\", other, {len});
    show(\"limits\", limits, 1);
    cudaFree(value);
    cudaFree(other);
    cudaFree(limits);
    cudaFree(flag);
    }}"
        )
    }
}
