//! `extract-launch`

use super::fixes::fix;

const ID: &str = "extract-launch";

/// What the rewrite makes of the loop at `$0` has these pieces; what it takes for granted.
#[track_caller]
fn extracted(text: &str, pieces: &[&str]) -> Vec<String> {
    let (new, assumes) = fix(ID, text, &[]).unwrap_or_else(|reasons| panic!("refused: {reasons:#?}\n{text}"));
    // Wherever lines are broken.
    let squeezed = |code: &str| code.split_whitespace().collect::<String>();
    for piece in pieces {
        assert!(squeezed(&new).contains(&squeezed(piece)), "no\n{piece}\nin\n{new}");
    }
    assert!(new.lines().all(|line| line.chars().count() <= 120), "{new}");
    assumes
}

#[track_caller]
fn refused(text: &str, reason: &str) {
    match fix(ID, text, &[]) {
        Ok((new, assumes)) => panic!("not refused:\n{new}\n{assumes:#?}"),
        Err(reasons) => assert!(reasons.iter().any(|r| r.contains(reason)), "{reasons:#?}\n{text}"),
    }
}

/// A kernel with `code` for each thread, and what stands in front of it.
fn beside(front: &str, code: &str) -> String {
    format!(
        "{front}__global__ void walk(const int* __restrict__ row, const int* __restrict__ col, int* __restrict__ out,\n                     \
         float* __restrict__ sum, int n) {{\n    int v = blockIdx.x * blockDim.x + threadIdx.x;\n    if (v >= n) return;\n    {code}\n}}\n"
    )
}

fn kernel(code: &str) -> String {
    beside("", code)
}

/// A loop over a row with this body.
fn row(body: &str) -> String {
    kernel(&format!("$0for (int e = row[v]; e < row[v + 1]; ++e) {body}"))
}

const ATOMIC: &str = "atomicAdd(&out[col[e]], 1);";

/// The rest of what is assumed of nearly every loop.
fn others(mut assumes: Vec<String>) -> Vec<String> {
    assumes.retain(|a| !a.contains("grids are pending") && !a.contains("-rdc=true"));
    assumes
}

#[test]
fn a_row_becomes_a_grid() {
    let assumes = extracted(
        &row(ATOMIC),
        &[
            "// An iteration of the loop in walk, for each thread.\n__global__ void walk_loop(const int* __restrict__ col, \
             int* __restrict__ out, int begin, unsigned count) {\n    \
             unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i >= count) return;\n    int e = begin + i;\n    \
             atomicAdd(&out[col[e]], 1);\n}\n",
            "    int begin = row[v], end = row[v + 1];\n    if (begin < end) {\n        unsigned count = (unsigned)end - begin;\n        \
             walk_loop<<<(count - 1) / 128 + 1, 128, 0, cudaStreamFireAndForget>>>(col, out, begin, count);\n    }\n}\n",
        ],
    );
    assert_eq!(assumes.len(), 2, "{assumes:#?}");
    assert!(others(assumes).is_empty());
}

#[test]
fn bounds_that_have_names_keep_them() {
    extracted(
        &kernel(
            "int first = row[v], last = row[v + 1];\n    $0for (int e = first; e < last; e++) atomicAdd(&out[col[e]], 1);",
        ),
        &[
            "    if (first < last) {\n        unsigned count = (unsigned)last - first;\n",
            "(col, out, first, count);",
        ],
    );
    extracted(
        &kernel("int degree = row[v];\n    $0for (int k = 0; k < degree; k++) atomicAdd(&out[col[k] + degree], 1);"),
        &[
            "int* __restrict__ out, int degree) {\n    int k = blockIdx.x * blockDim.x + threadIdx.x;\n    if (k >= degree) return;\n",
            "    if (degree > 0)\n        walk_loop<<<(degree - 1) / 128 + 1, 128, 0, cudaStreamFireAndForget>>>(col, out, degree);\n",
        ],
    );
    extracted(
        &kernel("$0for (int k = 0; k < row[v]; k++) atomicAdd(&out[col[k]], 1);"),
        &["    int count = row[v];\n    if (count > 0)\n"],
    );
}

#[test]
fn steps_and_inclusive_limits() {
    extracted(
        &kernel("$0for (int e = row[v]; e <= n; e += 3) atomicAdd(&out[e], 1);"),
        &[
            "    int e = begin + 3 * i;\n",
            "    int begin = row[v];\n    if (begin <= n) {\n        unsigned count = ((unsigned)n - begin) / 3 + 1;\n",
        ],
    );
    extracted(
        &kernel("unsigned a = row[v], b = row[v + 1];\n    $0for (unsigned e = a; e < b; ++e) atomicAdd(&out[e], 1);"),
        &["unsigned count = b - a;"],
    );
    for (head, why) in [
        ("int e = n; e > 0; --e", "doesn't go on while its counter is less"),
        ("int e = 0; e != n; ++e", "doesn't go on while its counter is less"),
        ("int e = 1; e < n; e *= 2", "doesn't add a constant"),
        ("int e = 0; e < n; e += v", "doesn't add a constant"),
        ("unsigned e = 0; e < blockDim.x; e += 2", "may wrap around"),
        ("unsigned e = 0; e <= blockDim.x; ++e", "may wrap around"),
        ("short e = 0; e < n; ++e", "isn't an `int` or an `unsigned`"),
        ("size_t e = 0; e < n; ++e", "isn't an `int` or an `unsigned`"),
        ("float e = 0; e < n; ++e", "isn't an `int` or an `unsigned`"),
        ("auto e = row[v]; e < n; ++e", "isn't an `int` or an `unsigned`"),
        ("int e = 0, k = 1; e < n; ++e", "doesn't declare one counter"),
        ("int e = 0; e < sum[v]; ++e", "the type of the loop's limit isn't known"),
        ("int e = 0; e < n; ++e, ++v", "doesn't add a constant"),
    ] {
        refused(&kernel(&format!("$0for ({head}) atomicAdd(&out[0], 1);")), why);
    }
    refused(
        &kernel("int e;\n    $0for (e = 0; e < n; ++e) atomicAdd(&out[e], 1);"),
        "doesn't declare one counter",
    );
    refused(
        &row("{ atomicAdd(&out[e], 1); if (out[e] == 7) ++e; }"),
        "counter changes in its body",
    );
    refused(
        &kernel("int m = n;\n    $0for (int e = 0; e < m; ++e) { atomicAdd(&out[e], 1); if (e == 9) m = 4; }"),
        "limit changes",
    );
    refused(
        &kernel("$0for (int e = 0; e < out[v]; ++e) atomicAdd(&out[e], 1);"),
        "depends",
    );
}

#[test]
fn what_continues_returns() {
    extracted(
        &row(
            "{\n        if (col[e] == v) continue;\n        for (int k = 0; k < 4; ++k) {\n            if (k == v) continue;\n            \
              atomicAdd(&out[k], 1);\n        }\n    }",
        ),
        &["    if (col[e] == v) return;\n", "        if (k == v) continue;\n"],
    );
    refused(
        &row("{ if (col[e] == v) break; atomicAdd(&out[e], 1); }"),
        "another one",
    );
    refused(
        &row("{ if (col[e] == v) return; atomicAdd(&out[e], 1); }"),
        "another one",
    );
}

#[test]
fn iterations_that_need_their_order() {
    refused(&row("out[col[e]] += 1;"), "an iteration depends on others");
    refused(&row("out[e + 1] = out[e] + 1;"), "an iteration depends on others");
    refused(&row("out[v] = e;"), "an iteration depends on others");
    refused(&row("out[col[e]] = out[e];"), "an iteration depends on others");
    let assumes = others(extracted(&row("out[col[e]] = e;"), &[]));
    assert!(
        assumes.iter().any(|a| a.contains("may run in any order")),
        "{assumes:#?}"
    );
    let assumes = others(extracted(
        &row("if (atomicCAS(&out[col[e]], -1, v) == -1) atomicAdd(&out[n], 1);"),
        &[],
    ));
    assert!(assumes.iter().any(|a| a.contains("who comes first")), "{assumes:#?}");
    assert!(others(extracted(&row("out[e] = col[e];"), &[])).is_empty());
    let assumes = others(extracted(&row("atomicAdd(&sum[col[e]], 0.5f);"), &[]));
    assert!(assumes.len() == 1 && assumes[0].contains("rounded"), "{assumes:#?}");
    // Pointers that may lead to the same memory.
    let plain = row(ATOMIC).replace("__restrict__ ", "");
    let assumes = others(extracted(&plain, &[]));
    assert!(assumes.len() == 1 && assumes[0].contains("overlap"), "{assumes:#?}");
}

/// Who comes last writes what all others have written.
#[test]
fn iterations_that_write_the_same() {
    for written in [
        "out[0] = n + 1;",
        "if (col[e] > 3) out[0] = n + 1; else out[0] = n + 1;",
        "out[0] = v;",
        "out[0] = (n > 3 ? v : 7);",
        "sum[0] = (float)n;",
        "out[col[e]] = n;",
    ] {
        extracted(&row(&format!("{{ {written} }}")), &["<<<"]);
    }
    for written in [
        "out[0] = e;",
        "out[0] = col[e];",
        "out[0] = col[v];",
        "if (col[e] > 3) out[0] = n + 1; else out[0] = n;",
        "int k = col[e]; out[0] = k;",
        "out[0] = n; out[1] = out[0];",
        "out[0] += n;",
    ] {
        refused(&row(&format!("{{ {written} }}")), "");
    }
    refused(
        &kernel("int k = 0; $0for (int e = row[v]; e < row[v + 1]; ++e) { out[0] = k; k = 1; }"),
        "",
    );
    // Other bits by another type, places that overlap in parts: somebody has to say that they don't.
    for written in [
        "if (col[e]) out[0] = n; else ((float*)out)[0] = n;",
        "int3 w = make_int3(n, n + 1, n + 2); *(int3*)(out + e) = w;",
        "*(int2*)(out + 2 * col[e]) = make_int2(n, v);",
    ] {
        let told = match fix(ID, &row(&format!("{{ {written} }}")), &[]) {
            Ok((_, assumes)) => assumes.iter().any(|a| a.contains("in any order")),
            Err(_) => true,
        };
        assert!(told, "{written}");
    }
    // What is written reads memory.
    let text = "struct View { int& total; };\n__global__ void walk(View view, int* out, const int* row, int n) {\n    int v = threadIdx.x;\n    \
                $0for (int e = row[v]; e < row[v + 1]; ++e) out[0] = view.total + 1;\n}\n";
    refused(text, "what a member that is a reference refers to isn't known");
    // The member may be its base's.
    let derived = text
        .replace("struct View {", "struct Base {")
        .replacen("};\n", "};\nstruct View : Base {};\n", 1);
    refused(&derived, "what a member that is a reference refers to isn't known");
}

/// A type may be a reference, or hold one.
#[test]
fn types_that_refer_to_something() {
    let text = |class: &str| {
        format!(
            "{class}\ntemplate <class T>\n__global__ void walk(const int* __restrict__ row, int* __restrict__ out, T factor) {{\n    int v = threadIdx.x;\n    \
             $0for (int e = row[v]; e < row[v + 1]; ++e) atomicAdd(&out[e], factor);\n}}\n"
        )
    };
    extracted(&text("struct Two { int a, b; };"), &["<<<"]);
    refused(
        &text("struct View { int& total; };"),
        "which may be a reference or hold one",
    );
    refused(
        &text("template <class T> void f(); void g() { f<int&>(); }"),
        "which may be a reference or hold one",
    );
}

#[test]
fn what_the_kernel_does_after_the_loop() {
    let after = |code: &str| {
        kernel(&format!(
            "$0for (int e = row[v]; e < row[v + 1]; ++e) {ATOMIC}\n    {code}"
        ))
    };
    extracted(&after("sum[v] = col[v];"), &[]);
    refused(&after("sum[v] = out[v];"), "may come to memory after the loop");
    refused(&after("out[v] = 0;"), "may come to memory after the loop");
    refused(&after("__syncthreads();"), "after __syncthreads()");
    refused(&after("__threadfence();"), "after __threadfence()");
    refused(&after("__syncwarp();"), "after __syncwarp()");
    refused(&after("unseen(7);"), "after the loop isn't known");
    // In front of it all is done.
    extracted(
        &kernel(&format!(
            "out[v] = 0;\n    __syncthreads();\n    $0for (int e = row[v]; e < row[v + 1]; ++e) {ATOMIC}"
        )),
        &[],
    );
    // In a loop around it, what stands in front comes again.
    let around = |code: &str| {
        kernel(&format!(
            "for (int r = v; r < n; r += gridDim.x * blockDim.x) {{\n        {code}\n        $0for (int e = row[r]; e < row[r + 1]; ++e) {ATOMIC}\n    }}"
        ))
    };
    extracted(
        &around("sum[r] = 1;"),
        &["walk_loop<<<(count - 1) / 128 + 1, 128>>>(col, out, begin, count);"],
    );
    refused(&around("sum[r] = out[r];"), "may come to memory after the loop");
    refused(&around("__syncthreads();"), "after __syncthreads()");
}

#[test]
fn what_an_iteration_needs_of_its_thread() {
    refused(&row("atomicAdd(&out[threadIdx.x], e);"), "keep it in a variable");
    refused(
        &kernel("int best = 0;\n    $0for (int e = row[v]; e < row[v + 1]; ++e) best += col[e];\n    out[v] = best;"),
        "collect a result in `best`",
    );
    refused(
        &kernel("int t;\n    $0for (int e = row[v]; e < row[v + 1]; ++e) { t = col[e]; atomicAdd(&out[t], 1); }"),
        "declare it in the loop",
    );
    refused(
        &kernel("int own[4] = {v};\n    $0for (int e = row[v]; e < row[v + 1]; ++e) atomicAdd(&out[own[e % 4]], 1);"),
        "local array",
    );
    refused(
        &kernel("int& first = out[0];\n    $0for (int e = row[v]; e < row[v + 1]; ++e) atomicAdd(&out[e], first);"),
        "is a reference",
    );
    refused(
        &kernel("auto base = row[v];\n    $0for (int e = 0; e < n; ++e) atomicAdd(&out[e], base);"),
        "write it instead of `auto`",
    );
    refused(
        &kernel(
            "__shared__ int cell[32];\n    cell[threadIdx.x] = v;\n    $0for (int e = 0; e < n; ++e) atomicAdd(&out[e], cell[e % 32]);",
        ),
        "shared memory",
    );
    refused(
        &kernel("int x = v;\n    int* p = &x;\n    $0for (int e = 0; e < n; ++e) atomicAdd(&out[e], *p);"),
        "may point at shared or local memory",
    );
    refused(
        &kernel(
            "int x = v;\n    int* p = &x;\n    out[0] = *p;\n    $0for (int e = 0; e < n; ++e) atomicAdd(&out[e], x);",
        ),
        "something else may change `x`",
    );
    extracted(
        &kernel(
            "const int* mine = col + v;\n    int x = v * 2;\n    x += 1;\n    $0for (int e = 0; e < n; ++e) atomicAdd(&out[e], mine[e] + x);",
        ),
        &["walk_loop(int* __restrict__ out, const int* mine, int x, int n) {"],
    );
    // Constants stay constants.
    extracted(
        &kernel(
            "const int k = 4;\n    $0for (int e = 0; e < n; ++e) { int t[k]; t[e % k] = e; atomicAdd(&out[e], t[0]); }",
        ),
        &["    const int k = 4;\n", "(out, n);"],
    );
    refused(
        &beside(
            "__device__ int where() { return threadIdx.x; }\n",
            "$0for (int e = 0; e < n; ++e) atomicAdd(&out[where()], 1);",
        ),
        "reads the number of the thread",
    );
    refused(
        &beside(
            "__device__ void meet() { __syncwarp(); }\n",
            "$0for (int e = 0; e < n; ++e) { meet(); atomicAdd(&out[e], 1); }",
        ),
        "which uses __syncwarp()",
    );
    for code in [
        "__syncthreads(); atomicAdd(&out[e], 1);",
        "out[e] = __shfl_sync(~0u, col[e], 0);",
        "asm(\"\");",
        "printf(\"%d\", e);",
        "unseen(out, e);",
        "__threadfence(); atomicAdd(&out[e], 1);",
        "while (atomicCAS(&out[e], 0, 1)) ; out[e] = 0;",
    ] {
        assert!(fix(ID, &row(&format!("{{ {code} }}")), &[]).is_err(), "{code}");
    }
}

#[test]
fn loops_of_other_code() {
    refused(
        &row(ATOMIC).replace("__global__", "__device__"),
        "no `for` loop of a kernel",
    );
    refused(
        &beside(
            "#define EACH for (int e = row[v]; e < row[v + 1]; ++e)\n",
            "$0EACH atomicAdd(&out[e], 1);",
        ),
        "comes out of a macro",
    );
    refused(
        &row("{\n#ifdef SLOW\n    atomicAdd(&out[e], 2);\n#endif\n    atomicAdd(&out[e], 1);\n    }"),
        "#if",
    );
    refused(
        &row("{ again: atomicAdd(&out[e], 1); if (col[e] == n) goto again; }"),
        "jumps to labels",
    );
    refused(
        &beside(
            "__global__ void other(int* x) { x[0] = 1; }\n",
            &format!("other<<<1, 1>>>(out);\n    $0for (int e = row[v]; e < row[v + 1]; ++e) {ATOMIC}"),
        ),
        "child grids already",
    );
    refused(
        &row("{ auto f = [&](int x) { atomicAdd(&out[x], 1); }; f(e); }"),
        "a lambda",
    );
    extracted(
        &row(ATOMIC)
            .replace("__global__", "template <typename T>\nstatic __global__")
            .replace("float*", "T*"),
        &[
            "template <typename T>\nstatic __global__ void walk_loop(",
            "walk_loop<T><<<",
        ],
    );
    // In the place of one statement.
    extracted(
        &kernel(
            "if (v % 2)\n        $0for (int e = row[v]; e < row[v + 1]; ++e)\n            atomicAdd(&out[col[e]], 1);\n    else\n        sum[v] = 1;",
        ),
        &[
            "    if (v % 2)\n        {\n            int begin = row[v], end = row[v + 1];\n            if (begin < end) {\n",
            "        }\n    else\n",
        ],
    );
    let (_, assumes) = fix(ID, &row(ATOMIC), &[("block", "64")]).unwrap_or_default();
    assert!(!assumes.is_empty());
    assert!(fix(ID, &row(ATOMIC), &[("block", "96")]).is_err());
}

#[test]
fn the_launch_is_optimized_as_well() {
    let both = |text: &str| fix("extract-and-optimize", text, &[]);
    let host = "void run(const int* row, const int* col, int* out, float* sum, int n) {\n    \
                walk<<<(n + 127) / 128, 128>>>(row, col, out, sum, n);\n}\n";
    let (new, assumes) = both(&(row(ATOMIC) + host)).unwrap_or_default();
    assert!(
        new.contains("#include \"gridfuse.cuh\"") && new.contains("walk_loop_aggregated("),
        "{new}"
    );
    assert!(assumes.iter().any(|a| a.contains("-rdc=true")), "{assumes:#?}");
    let reasons = both(&row("out[v] = e;")).err().unwrap_or_default();
    assert!(reasons.iter().any(|r| r.contains("depends on others")), "{reasons:#?}");
}

/// A later round of a loop around it reads the first value and the limit while the grids of earlier rounds may not have run.
#[test]
fn heads_that_later_rounds_read_anew() {
    let front =
        "__global__ void levels(int* count, int* out, int n) {\n    for (int level = 0; level < n; ++level)\n        ";
    for (head, body) in [
        (
            "for (int i = 0; i < count[level]; ++i)",
            "atomicAdd(&count[level + 1], 1);",
        ),
        (
            "for (int i = count[level]; i < n; ++i)",
            "atomicAdd(&count[level + 1], 1);",
        ),
    ] {
        refused(&format!("{front}$0{head} {body}\n}}\n"), "in a later round around it");
    }
    let other = format!("{front}$0for (int i = 0; i < n; ++i) atomicAdd(&out[level], 1);\n}}\n");
    fix(ID, &other, &[]).unwrap_or_else(|reasons| panic!("{reasons:#?}"));
}

/// Threads that wait at a barrier in another branch go on when those of the loop have left.
#[test]
fn barriers_in_other_branches() {
    let with = |barrier: &str| {
        kernel(&format!(
            "{barrier}\n    $0for (int e = row[v]; e < row[v + 1]; ++e) atomicAdd(&out[col[e]], 1);"
        ))
    };
    refused(
        &with("if (threadIdx.x < 32) { __syncthreads(); out[v] += out[v + 1]; return; }"),
        "threads may count on what the loop has done",
    );
    fix(ID, &with("__syncthreads();"), &[]).unwrap_or_else(|reasons| panic!("{reasons:#?}"));
}

#[test]
fn what_has_to_be_a_constant_in_the_child() {
    let row = |front: &str, body: &str| {
        beside(
            "template <int N> __device__ int times(int x) { return N * x; }\n__device__ constexpr int twice(int n) { return 2 * n; }\n",
            &format!(
                "{front}\n    $0for (int e = row[v]; e < row[v + 1]; ++e) {{ {body} atomicAdd(&out[col[e]], 1); }}"
            ),
        )
    };
    for (front, body) in [
        (
            "const int W = twice(4);",
            "int b[W]; b[0] = e; atomicAdd(&out[b[0]], 1);",
        ),
        (
            "const int W = sizeof(float4) / sizeof(float);",
            "int b[W]; b[0] = e; atomicAdd(&out[b[0]], 1);",
        ),
        (
            "const int lo = 2, hi = 5;",
            "switch (e) { case lo: continue; case hi: break; default: break; }",
        ),
        (
            "const int d = 2, f = 3;",
            "constexpr int m = d + 1; atomicAdd(&out[m], f);",
        ),
    ] {
        refused(&row(front, body), "has to be a constant here");
    }
    refused(
        &row(
            "",
            "\n#pragma unroll v\n    for (int k = 0; k < 3; ++k) atomicAdd(&out[k], 1);\n",
        ),
        "may name what another kernel",
    );
    refused(
        &kernel("#pragma unroll 4\n    // of a row\n    $0for (int e = row[v]; e < row[v + 1]; ++e) atomicAdd(&out[col[e]], 1);")
            .replace("    #pragma", "#pragma"),
        "a comment stands between",
    );
}

/// What the body declares by the name of a bound stands in braces of its own.
#[test]
fn names_of_bounds_that_the_body_declares() {
    let text = kernel(
        "int first = row[v], last = row[v + 1];\n    $0for (int e = first; e < last; ++e) { int first = col[e]; atomicAdd(&out[first], 1); }",
    );
    let (new, _) = fix(ID, &text, &[]).unwrap_or_else(|reasons| panic!("{reasons:#?}"));
    let squeezed: String = new.split_whitespace().collect();
    assert!(
        squeezed.contains("{intfirst=col[e];atomicAdd(&out[first],1);}"),
        "{new}"
    );
}
