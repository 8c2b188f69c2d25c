//! Chains that were promoted wrongly once, or that are close to one that was.

use super::promote::{ALL, SUMS, refused, with};
use super::{Rewritten, rewrite};

/// What a link adds to the running value is no function of that value.
#[test]
fn a_part_that_depends_on_the_running_value() {
    let program = with("before + total)", "before + (before * 2 + total))");
    refused(
        &["promote-lookback"],
        &program,
        "what the link adds to `before` depends on `before` itself",
    );
}

/// Threads of both branches meet before the launch: what the other branch writes comes before it.
#[test]
fn branches_that_meet_before_the_launch() {
    let walk = |launching: &str, other: &str| {
        format!(
            r#"__device__ void meet() {{ __syncwarp(); }}
__global__ void walk(const int* in, int* out, int n, int tile, int h) {{
    int i = tile * 32 + threadIdx.x;
    int v = i < n ? in[i] + __ldg(&out[i]) : 0;
    if (threadIdx.x == 0) {{
        {launching}
        if (tile + 1 < n) walk<<<1, 32>>>(in, out, n, tile + 1, h + 1);
    }} else {{
        if (i + 32 < n) out[i + 32] = v;
        {other}
    }}
}}
void run(const int* in, int* out, int n) {{ walk<<<1, 32>>>(in, out, n, 0, 0); }}
"#
        )
    };
    for (launching, other) in [
        ("__syncwarp();", "__syncwarp();"),
        ("meet();", "meet();"),
        ("if (__any_sync(~0u, n)) h;", "__any_sync(~0u, n);"),
        ("unknown();", "unknown();"),
    ] {
        refused(&["promote"], &walk(launching, other), "non-coherent load");
    }
    rewrite("promote", &walk("int half = n / 2;", ""));
}

/// The host's code names the kernel without its parameters.
#[test]
fn overloads_that_are_only_declared() {
    for declared in ["void sums(float* x);\n", "__global__ void sums(int* x);\n"] {
        refused(&ALL, &format!("{declared}{SUMS}"), "has several definitions");
    }
    let itself = "__global__ void sums(const int* in, int* out, int n, int tile, int before);\n";
    rewrite("promote", &format!("{itself}{SUMS}"));
}

/// Of what a macro stands for no part can be written by itself.
#[test]
fn parts_of_macros() {
    let macros = r#"#define ADD(a, b) ((a) + (b))
#define LAST(i) (!((i) + 1 < n))
#define ONLY(i) (threadIdx.x == 0 && (i) + 1 < n)
"#;
    let program = |from: &str, to: &str| format!("{macros}{}", with(from, to));
    for (from, to) in [
        ("tile + 1, before + total)", "ADD(tile, 1), before + total)"),
        ("tile + 1 < n)", "!LAST(tile))"),
        ("threadIdx.x == 0 && tile + 1 < n", "ONLY(tile)"),
    ] {
        refused(
            &["promote-overlap"],
            &program(from, to),
            "whether there is a next link is known only",
        );
    }
    let own = program("before + total", "ADD(before, total)");
    refused(&["promote-lookback"], &own, "comes out of a macro");
}

/// A chain, with something in front of the kernel, parameters that it has besides, what it does first, the condition of its launch, and
/// what the next link gets for `tile` and `h`.
fn walk(front: &str, parameters: &str, first: &str, condition: &str, next: &str) -> String {
    let passed: String = parameters
        .split(',')
        .filter_map(|parameter| parameter.split_whitespace().last())
        .map(|name| format!(", {}", name.trim_start_matches(['*', '&'])))
        .collect();
    let more = if parameters.is_empty() {
        String::new()
    } else {
        format!(", {parameters}")
    };
    format!(
        r#"{front}
__global__ void walk(int* out, int n, int tile, int h{more}) {{
    __shared__ int s[32];
    __shared__ int total;
    s[threadIdx.x] = tile;
    __syncthreads();
    {first}
    if (threadIdx.x == 0) {{
        if ({condition}) walk<<<1, 32>>>(out, n, {next}{passed});
    }}
    out[tile * 32 + threadIdx.x] = h + s[threadIdx.x];
}}
void run(int* out, int n{more}) {{ walk<<<1, 32>>>(out, n, 0, 0{passed}); }}
"#
    )
}

/// The condition is evaluated without the link: it gets the objects of which it reads fields, and asks for none that may refer to memory.
#[test]
fn fields_in_the_condition() {
    let params = walk(
        "struct Params { int n; };",
        "Params p",
        "",
        "tile + 1 < p.n",
        "tile + 1, h + s[0]",
    );
    rewrite("promote-overlap", &params).has(&["walk_goes_on(int tile, Params p)"]);
    let view = params.replace("int n; }", "int& n; }");
    refused(
        &["promote-overlap"],
        &view,
        "whether there is a next link is known only",
    );
}

/// Constant objects with `mutable` fields change.
#[test]
fn fields_that_change_in_constants() {
    let known = "whether there is a next link is known only";
    for (fields, changes) in [("int n;", false), ("mutable int n;", true)] {
        let class = format!(
            "struct Inner {{ {fields} }};\nstruct Config {{ Inner inner; __device__ int step() const {{ return inner.n; }} }};\n"
        );
        let global = walk(
            &format!("{class}__device__ const Config config = {{{{100}}}};"),
            "",
            "",
            "tile < config.inner.n",
            "tile + 1, h + s[0]",
        );
        let parameter = walk(
            &class,
            "const Config p",
            "p.step();",
            "tile < p.inner.n",
            "tile + 1, h + s[0]",
        );
        for program in [global, parameter] {
            match changes {
                true => refused(&["promote-overlap"], &program, known),
                false => drop(rewrite("promote-overlap", &program)),
            }
        }
    }
}

/// A step has to be an integer, also where it is a parameter of the template.
#[test]
fn steps_of_templates() {
    for (ty, integer) in [
        ("int", true),
        ("unsigned long", true),
        ("double", false),
        ("Step", false),
        ("auto", false),
    ] {
        let front = format!("enum Step {{ one = 1 }};\ntemplate <class T, {ty} S>");
        let program = walk(&front, "", "", "tile < 3", "tile + S, h + s[0]")
            .replacen("walk<<<", "walk<T, S><<<", 1)
            .replace("walk<<<", "walk<int, S><<<")
            .replace("void run(", "template <int S> void run(");
        match integer {
            true => drop(rewrite("promote-overlap", &program)),
            false => refused(
                &["promote-overlap"],
                &program,
                "whether there is a next link is known only",
            ),
        }
    }
}

/// Classes of the kernel's own, and classes that the kernel is a friend of.
#[test]
fn classes_that_the_kernel_belongs_to() {
    let local = walk(
        "",
        "",
        "struct L { int v = gridDim.x; } l;",
        "tile < 3",
        "tile + 1, h + l.v",
    );
    refused(&ALL, &local, "which differs in a grid of many blocks");
    let front = "class Box { int v; friend __global__ void walk(int* out, int n, int tile, int h); };";
    let friend = walk(front, "", "", "tile < 3", "tile + 1, h + s[0]");
    refused(&ALL, &friend, "is a friend of a class");
}

/// All threads evaluate what the link adds.
#[test]
fn shared_memory_that_one_thread_has_written() {
    let program = |first: &str| walk("", "", first, "tile < 3", "tile + 1, h + total");
    let write = "if (threadIdx.x == 0) total = s[0];";
    refused(&["promote-lookback"], &program(write), "put a `__syncthreads()`");
    rewrite("promote-lookback", &program(&format!("{write} __syncthreads();")));
}

/// Threads meet in the condition that parts them, and in the arguments of the launch.
#[test]
fn branches_that_meet_around_the_launch() {
    let program = |condition: &str, step: &str| {
        format!(
            r#"__device__ int meet() {{ __syncwarp(); return 1; }}
__global__ void walk(const int* in, int* out, int n, int tile, int h) {{
    int v = __ldg(&out[tile]);
    if (threadIdx.x == 0{condition}) {{
        if (tile + 1 < n) walk<<<1, 32>>>(in, out, n, tile + 1, h + {step});
    }} else {{
        out[tile + 1] = v;
        meet();
    }}
}}
void run(const int* in, int* out, int n) {{ walk<<<1, 32>>>(in, out, n, 0, 0); }}
"#
        )
    };
    refused(&["promote"], &program(" && meet()", "1"), "non-coherent load");
    refused(&["promote"], &program("", "meet()"), "non-coherent load");
    rewrite("promote", &program("", "1"));
}

/// A launch under a `switch` of which other cases meet the launching thread.
#[test]
fn cases_that_meet_before_the_launch() {
    let program = |meets: &str| {
        format!(
            r#"__global__ void walk(const int* in, int* out, int n, int tile, int h) {{
    int v = __ldg(&out[tile]);
    switch (threadIdx.x) {{
        default: out[tile + 1] = v; {meets}
        case 0: if (threadIdx.x == 0) walk<<<1, 32>>>(in, out, n, tile + 1, h + 1);
    }}
}}
void run(const int* in, int* out, int n) {{ walk<<<1, 32>>>(in, out, n, 0, 0); }}
"#
        )
    };
    refused(&["promote"], &program("__syncwarp();"), "non-coherent load");
}

/// All threads evaluate what a link adds: nobody writes the shared memory that it reads behind the last barrier that all have met.
#[test]
fn shared_memory_that_is_written_by_another_name() {
    let program = |first: &str| walk("", "int* p", first, "tile < 3", "tile + 1, h + total");
    let written = "other threads than the first may";
    let total = "if (threadIdx.x == 0) total = s[0];";
    for first in [
        "int* to = &total; __syncthreads(); if (threadIdx.x == 0) *to = s[0];",
        "int& same = total; __syncthreads(); if (threadIdx.x == 0) same = s[0];",
        "auto& same = total; __syncthreads(); if (threadIdx.x == 0) same = s[0];",
        &format!("{total} n > 3 ? __syncthreads() : (void)0;"),
        &format!("{total} n > 3 && (__syncthreads(), true);"),
        &format!("{total} auto meet = [] {{ __syncthreads(); }};"),
    ] {
        refused(&["promote-lookback"], &program(first), written);
    }
    for first in [
        &format!("{total} __syncthreads();"),
        "if (threadIdx.x == 0) atomicAdd(&total, s[0]); __syncthreads(); int half = n / 2;",
        "int* to = &total; if (threadIdx.x == 0) *to = s[0]; __syncthreads(); int half = max(n, 2);",
    ] {
        rewrite("promote-lookback", &program(first));
    }
}

/// A macro that uses its argument twice gets the value of a variable once.
#[test]
fn macros_that_use_an_argument_twice() {
    let text =
        with("    int total", "    int next = tile + 1;\n    int total").replace("tile + 1 < n", "MAX(next, 1) < n");
    let text = format!("#define MAX(a, b) ((a) > (b) ? (a) : (b))\n{text}");
    rewrite("promote-overlap", &text).has(&["return MAX(static_cast<int>(tile + 1), 1) < n;"]);
}

/// Room in shared memory is assumed where little is left, or where it isn't known how much is used: what functions that a kernel calls have
/// counts, and so do objects among its arguments.
#[test]
fn room_in_shared_memory() {
    let to_spare = |result: &Rewritten| {
        let texts = result.assumes.iter().filter(|a| a.contains("to spare"));
        texts.cloned().collect::<Vec<String>>()
    };
    let front = "struct Big { int v[100]; };\nstruct alignas(256) Lines { char v[100]; };\nconst int N = 4;\n\
                 struct Named { int v[N]; };\nstruct alignas(N * 4) Asked { int v; };\n\
                 __device__ int big(int v) { __shared__ int b[9]; b[threadIdx.x % 9] = v; return b[0]; }\n\
                 __device__ int huge(int v) { __shared__ int b[12200]; b[threadIdx.x % 9] = v; return b[0]; }\n\
                 __device__ int lines(int v) { __shared__ Lines b[180]; b[0].v[0] = v; return b[0].v[0]; }\n\
                 template <class T> __device__ int any(T v) { __shared__ int b[6200]; b[threadIdx.x % 9] = v; return b[0]; }";
    let program = |parameters: &str, first: &str| walk(front, parameters, first, "tile < 3", "tile + 1, h + 1");
    let bytes = ["a block of `walk` has 160 bytes of shared memory to spare"];
    let nothing: [&str; 0] = [];
    for (first, expected) in [
        ("", &nothing[..]),
        ("h += big(n);", &nothing),
        ("h += big(n) + big(2);", &nothing),
        ("h += huge(n);", &bytes),
        ("h += lines(n);", &nothing),
        ("h += lines(n) + big(n); __shared__ Lines more[11];", &bytes),
        ("h += any(n) + any(2u);", &bytes),
        ("extern __shared__ int more[]; h += more[0];", &bytes),
    ] {
        assert_eq!(to_spare(&rewrite("promote", &program("", first))), expected, "{first}");
    }
    assert_eq!(to_spare(&rewrite("promote", &program("Big all", ""))), nothing);
    let text =
        "a block of `walk` has 192 bytes, and room for the classes among its arguments, of shared memory to spare";
    for object in ["Named all", "Asked all"] {
        assert_eq!(to_spare(&rewrite("promote", &program(object, ""))), [text], "{object}");
    }
    for (bytes, assumed) in [(48 * 1024 - 600, 0), (48 * 1024 - 400, 1)] {
        let first = format!("__shared__ char rest[{bytes}]; rest[0] = n;");
        assert_eq!(
            to_spare(&rewrite("promote", &program("", &first))).len(),
            assumed,
            "{bytes}"
        );
    }
    let file = walk(
        "__shared__ int of_file;",
        "",
        "of_file = n;",
        "tile < 3",
        "tile + 1, h + 1",
    );
    assert_eq!(to_spare(&rewrite("promote", &file)).len(), 1);
}

/// Who looks a kernel up by its name launches it with the arguments that it had.
#[test]
fn kernels_that_are_looked_up_by_their_names() {
    let text = walk("", "", "", "tile < 3", "tile + 1, h + 1");
    let with = |code: &str| format!("{text}void other(void* m, void* out) {{ {code} }}\n");
    let mentioned = "`walk` is mentioned where it isn't launched";
    for code in [
        "cuModuleGetFunction(out, m, \"walk\");",
        "cuModuleGetFunction(out, m, \"_Z4walkPiiii\");",
        "const char* name = \"walk\"; cuLibraryGetKernel(out, m, name);",
        "nvrtcAddNameExpression(m, \"walk\");",
    ] {
        refused(&["promote", "promote-lookback"], &with(code), mentioned);
    }
    for code in [
        "print(\"walk\");",
        "cuModuleGetFunction(out, m, \"walks\"); /* \"walk\" */",
        "cuModuleGetFunction(out, m, \"_Z5walksPi\");",
    ] {
        rewrite("promote", &with(code));
    }
}
