//! `outline-iteration`

use super::fixes::fix;

const ID: &str = "outline-iteration";

/// What the rewrite makes of the loop behind `$0` has these pieces; what it takes for granted.
#[track_caller]
pub(super) fn outlined(text: &str, pieces: &[&str]) -> Vec<String> {
    let (new, assumes) = fix(ID, text, &[]).unwrap_or_else(|reasons| panic!("refused: {reasons:#?}\n{text}"));
    for piece in pieces {
        assert!(new.contains(piece), "no\n{piece}\nin\n{new}");
    }
    assert!(new.lines().all(|line| line.chars().count() <= 100), "{new}");
    assumes
}

/// What is assumed beside other streams: the function gets one, so that there may be more.
#[track_caller]
pub(super) fn assumed(text: &str, pieces: &[&str]) -> Vec<String> {
    let mut assumes = outlined(text, pieces);
    assumes.retain(|a| !a.starts_with("the loop ends without the work of other streams"));
    assumes
}

#[track_caller]
pub(super) fn refused(text: &str, reason: &str) {
    match fix(ID, text, &[]) {
        Ok((new, _)) => panic!("not refused:\n{new}"),
        Err(reasons) => assert!(reasons.iter().any(|r| r.contains(reason)), "{reasons:#?}\n{text}"),
    }
}

/// A program with a kernel, what stands beside it, and a loop by the host.
pub(super) fn with(kernels: &str, host: &str) -> String {
    format!(
        r#"#include <cstdio>
#include <utility>
{kernels}
__global__ void relax(const int* next, int* dist, int* flag, int level, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n && dist[v] == level && atomicCAS(&dist[next[v]], -1, level + 1) == -1) *flag = 1;
}}

int search(const int* next, int* dist, int* other, int* flag, int n, cudaStream_t stream) {{
    int level = 0, h = 1;
    {host}
    return level;
}}
"#
    )
}

/// A loop of these statements beside those that every one has.
pub(super) fn around(statements: &str) -> String {
    around_beside("", statements)
}

/// The same in a program with more kernels.
pub(super) fn around_beside(kernels: &str, statements: &str) -> String {
    with(
        kernels,
        &format!(
            r#"$0while (h) {{
        cudaMemset(flag, 0, sizeof(int));
        relax<<<(n + 127) / 128, 128>>>(next, dist, flag, level, n);
        {statements}
        cudaMemcpy(&h, flag, sizeof(int), cudaMemcpyDeviceToHost);
        level++;
    }}"#
        ),
    )
}

#[test]
fn shapes_of_loops() {
    let assumes = assumed(
        &around(""),
        &[
            "struct relax_state { int level; };",
            "__global__ void relax_rounds(gridfuse::Rounds<relax_state> rounds,",
            "    int level = rounds.state().level;\n    while (h) {\n        rounds.fill(flag, 0, sizeof(int));\n",
            "        rounds.run(blocks, [&](uint3 blockIdx, dim3 gridDim) {\n            relax_body(blockIdx, gridDim, blockDim, next, dist, flag, level, n);\n        });\n",
            "        rounds.load(&h, flag, sizeof(int));\n        level++;\n    }\n    rounds.finish({level});\n}",
            "    relax_state state = {level};\n    gridfuse::run_rounds<relax_rounds>(",
            "    level = state.level;\n    return level;",
        ],
    );
    assert_eq!(assumes, Vec::<String>::new());
    // What the condition reads decides where it is read.
    let text = with(
        "",
        r#"int* shared;
    cudaMallocManaged(&shared, sizeof(int));
    $0for (level = 0;; ++level) {
        *shared = 0;
        relax<<<4, 128>>>(next, dist, shared, level, n);
        cudaDeviceSynchronize();
        if (!*shared || level > 99) break;
    }"#,
    );
    outlined(
        &text,
        &[
            "rounds.store(shared, 0);",
            "rounds.run(4, [&]",
            "if (!rounds.load(shared) || level > 99) break;",
            "run_rounds<relax_rounds>(/*grid=*/4, /*block=*/128, /*shared_bytes=*/0,",
        ],
    );
}

#[test]
fn errors_are_looked_for_as_before() {
    let checked = |check: &str, call: &str| {
        let text = around("").replace("cudaMemcpy(&h, flag, sizeof(int), cudaMemcpyDeviceToHost);", call);
        text.replacen("#include <utility>\n", &format!("#include <utility>\n{check}\n"), 1)
    };
    let macro_ = "#define CHECK(x) do { cudaError_t e = (x); if (e != cudaSuccess) { printf(\"%d\", e); } } while (0)";
    let copy = "cudaMemcpy(&h, flag, sizeof(int), cudaMemcpyDeviceToHost)";
    outlined(
        &checked(macro_, &format!("CHECK({copy});")),
        &["    CHECK(gridfuse::run_rounds<relax_rounds>("],
    );
    let function = "inline void ok(cudaError_t e, int line = 0) { if (e) printf(\"%d %d\", e, line); }";
    outlined(&checked(function, &format!("ok({copy}, __LINE__);")), &[", __LINE__);"]);
    let tested =
        format!("cudaError_t e = {copy};\n        if (e != cudaSuccess) {{\n            return -1;\n        }}");
    outlined(
        &checked("", &tested),
        &[
            "    cudaError_t e = gridfuse::run_rounds<relax_rounds>(",
            ";\n    if (e != cudaSuccess) {\n        return -1;\n    }\n    level = state.level;",
        ],
    );
    // A function that does more than look.
    let more = "int calls;\ninline void ok(cudaError_t e) { calls++; if (e) printf(\"%d\", e); }";
    refused(&checked(more, &format!("ok({copy});")), "can't move to the device");
}

#[test]
fn what_cannot_move() {
    for (statement, why) in [
        (
            "printf(\"%d\\n\", level);",
            "`printf(\"%d\\n\", level)` can't move to the device",
        ),
        (
            "int* more; cudaMalloc(&more, 4);",
            "`cudaMalloc(&more, 4)` can't move to the device",
        ),
        (
            "if (level > 9) return -1;",
            "the function returns within the loop: leave it by `break`",
        ),
        (
            "cudaMemcpyAsync(&h, flag, sizeof(int), cudaMemcpyDeviceToHost, stream);",
            "this isn't in the stream of the launches",
        ),
        (
            "relax<<<4, 128, 0, stream>>>(next, dist, flag, level, n);",
            "the launches of the loop go into different streams",
        ),
        ("relax<<<4, 64>>>(next, dist, flag, level, n);", ""),
        (
            "relax<<<4, 32 * level + 32>>>(next, dist, flag, level, n);",
            "differ from round to round",
        ),
        (
            "int seen[1]; cudaMemcpy(seen, flag, 4, cudaMemcpyDeviceToHost);",
            "the loop copies to `seen`, which is no variable of its own",
        ),
        (
            "cudaMemcpy(flag, other, 4, cudaMemcpyHostToDevice);",
            "the loop copies from `other`, which is no variable of its own",
        ),
        (
            "level += *other;",
            "`other` isn't known to point to memory that device code can read",
        ),
        (
            "cudaMemcpyToSymbol(scale, &level, sizeof(int));",
            "`scale` is `__constant__`",
        ),
    ] {
        let text = around(statement).replacen(
            "#include <utility>\n",
            "#include <utility>\n__constant__ int scale;\n",
            1,
        );
        match why {
            "" => {
                outlined(&text, &[]);
            }
            why => refused(&text, why),
        }
    }
}

#[test]
fn kernels_that_cannot_run_so() {
    for (kernel, why) in [
        (
            "__global__ void k(int* x) { if (threadIdx.x == 0) while (atomicCAS(x, 0, 1) != 0); x[1] = 2; atomicExch(x, 0); }",
            "`k` may wait for another thread",
        ),
        (
            "__global__ void c(int* x) { x[0] = 1; }\n__global__ void k(int* x) { c<<<1, 1>>>(x); }",
            "`k` launches grids, which the next kernel of the loop waits for",
        ),
        (
            "__global__ void k(int* x) { if (threadIdx.x > 9) return; x[threadIdx.x] = 1; __syncthreads(); }",
            "not all threads of a block of `k` reach this",
        ),
        ("template <class T>\n__global__ void k(T* x) {\n    x[0] = 1;\n}", ""),
    ] {
        let text = around("k<<<2, 128>>>(flag);").replacen(
            "#include <utility>\n",
            &format!("#include <utility>\n{kernel}\n"),
            1,
        );
        match why {
            "" => {
                outlined(&text, &["k_body<int>(blockIdx, gridDim, blockDim, flag);"]);
            }
            why => refused(&text, why),
        }
    }
    // Blocks of one thread run in a thread; blocks whose threads meet don't.
    let publish = "__global__ void publish(const int* from, int* to) { *to = *from; }";
    let narrow = around_beside(publish, "publish<<<1, 1>>>(flag, dist);");
    outlined(
        &narrow,
        &[
            "rounds.run(1, 1, [&](uint3 blockIdx, dim3 gridDim) {\n            publish_body(blockIdx, gridDim, dim3(1), flag, dist);",
            "gridfuse::larger_grid((n + 127) / 128, 1)",
        ],
    );
    let meets = "__global__ void publish(const int* from, int* to) { __syncthreads(); *to = *from; }";
    refused(&narrow.replace(publish, meets), "have blocks of different sizes");
}

#[test]
fn loops_that_are_not_seen_as_a_whole() {
    let text = around("");
    refused(
        &text.replace("int search(", "template <class T> int search("),
        "`search` is a template",
    );
    refused(
        &text.replace(
            "        level++;",
            "#ifdef DEBUG\n        level += 2;\n#endif\n        level++;",
        ),
        "can't move to the device",
    );
    refused(
        "int f(int n) { $0while (n) --n; return n; }",
        "no loop of the host's that launches kernels stands here",
    );
}

/// Variables that change keep the values that the host gives them, and give back those that it reads.
#[test]
fn variables_of_the_host() {
    let text = with(
        "",
        r#"int* from = dist;
    bool again;
    $0do {
        again = false;
        cudaMemcpy(flag, &again, sizeof(bool), cudaMemcpyHostToDevice);
        relax<<<4, 128>>>(next, from, flag, level, n);
        std::swap(from, other);
        cudaMemcpy(&again, flag, sizeof(again), cudaMemcpyDeviceToHost);
    } while (again);
    cudaFree(other);"#,
    );
    outlined(
        &text,
        &[
            "struct relax_state { int* other; };",
            "    bool again;\n    do {",
            "rounds.store(flag, &again, sizeof(bool));",
            "rounds.swap(from, other);",
            "rounds.load(&again, flag, sizeof(again));",
            "int* from)",
            "    int* from = dist;\n    relax_state state = {other};",
        ],
    );
}

/// What one round has written the next one reads: not by loads that take for granted that nobody writes.
#[test]
fn loads_as_if_nobody_wrote() {
    let program = |kernel: &str| around_beside(kernel, "k<<<2, 128>>>(flag, dist);");
    let restricted = program("__global__ void k(const int* __restrict__ a, int* __restrict__ b) { b[0] = a[1]; }");
    let assumes = assumed(&restricted, &["dim3 blockDim, const int* a,\n"]);
    assert_eq!(assumes, Vec::<String>::new());
    let cached = program("__global__ void k(const int* a, int* b) { b[0] = __ldg(a + 1); }");
    let assumes = assumed(&cached, &[]);
    assert_eq!(
        assumes,
        ["no kernel of the loop writes what `k` reads by __ldg(), which may miss what the same grid has written"]
    );
}

/// A variable that changes has one name in the loop; what is kept of it elsewhere gets its last value.
#[test]
fn other_names_of_variables() {
    let used = |before: &str, inside: &str, behind: &str| {
        let loop_ = around(inside).replace("$0while", &format!("{before}\n    $0while"));
        loop_.replace("    return level;", &format!("    {behind}\n    return 0;"))
    };
    for before in [
        "int& other_name = level;",
        "int& first = level; int& other_name = first;",
    ] {
        refused(
            &used(before, "++other_name;", ""),
            "are names of one variable, which changes in the loop",
        );
    }
    for before in [
        "auto report = [&] { printf(\"%d\", level); };",
        "const int& other_name = level;",
    ] {
        let behind = if before.contains("report") {
            "report();"
        } else {
            "printf(\"%d\", other_name);"
        };
        outlined(&used(before, "", behind), &["    level = state.level;\n"]);
    }
    let by_reference = around("").replace("int n, cudaStream_t stream)", "int n, int& h, int& level)");
    let by_reference = by_reference.replace("    int level = 0, h = 1;\n", "");
    let assumes = outlined(&by_reference, &[]);
    assert_eq!(assumes.len(), 3, "{assumes:#?}");
    assert!(
        assumes
            .iter()
            .filter(|a| !a.starts_with("the host may wait"))
            .all(|a| a.contains("is another variable than all others of the loop"))
    );
    let registered = used("cudaHostRegister(&h, sizeof(int), 0);", "", "");
    refused(&registered, "`h` is memory that the device may write");
}

/// What the host changes in memory isn't what it was in front of the loop.
#[test]
fn memory_that_changes() {
    let managed = "__managed__ int scale;\n";
    let program = |statement: &str| around_beside(managed, statement);
    refused(
        &program("scale = 2; relax<<<4, 128>>>(next, dist, flag, scale, n);"),
        "`scale` reads memory that may change in the loop",
    );
    refused(
        &program("relax<<<4, 128>>>(next, dist, flag, *flag, n);"),
        "`*flag` reads memory that may change in the loop",
    );
    outlined(
        &program("int kept = *flag; relax<<<4, 128>>>(next, dist, flag, kept, n);"),
        &["int kept = rounds.load(flag);"],
    );
}

/// What the host evaluated in rounds it may not be able to evaluate where there is none.
#[test]
fn what_is_computed_early() {
    let divides = around("")
        .replace("(n + 127) / 128", "n / m")
        .replace("int n,", "int n, int m,");
    // The first round comes for certain.
    assert_eq!(assumed(&divides, &[]), Vec::<String>::new());
    let divides = divides.replace("h = 1;", "h = n;");
    let assumes = assumed(&divides, &[]);
    assert_eq!(
        assumes
            .iter()
            .filter(|a| !a.starts_with("the host may wait"))
            .collect::<Vec<_>>(),
        ["the host can compute `n / m` even where no round of the loop does so"]
    );
    let once = divides
        .replace("$0while (h) {", "$0do {")
        .replace("        level++;\n    }", "        level++;\n    } while (h);");
    assert_eq!(assumed(&once, &[]), Vec::<String>::new());
}

/// Waits for streams that aren't the loop's.
#[test]
fn waits_for_other_streams() {
    refused(
        &around("cudaStreamSynchronize(stream);"),
        "this isn't in the stream of the launches",
    );
    outlined(
        &around("cudaDeviceSynchronize();"),
        &["    cudaDeviceSynchronize();\n    relax_state state = {level};\n"],
    );
}

/// What looks for errors stands behind the loop, or the loop stays.
#[test]
fn checks_behind_the_loop() {
    let text = around(
        "cudaError_t e = cudaGetLastError();\n        if (e != cudaSuccess) printf(\"launch\");\n        e = cudaDeviceSynchronize();\n        if (e != cudaSuccess) return 1;",
    );
    outlined(
        &text,
        &[
            "cudaError_t e;\n",
            "    e = gridfuse::run_rounds<relax_rounds>(",
            "cudaError_t e = cudaGetLastError();",
        ],
    );
    let two = around("first = cudaGetLastError(); second = cudaDeviceSynchronize();");
    let two = two.replace("$0while", "cudaError_t first, second;\n    $0while");
    let two = two.replace("    return level;", "    return first == second;");
    outlined(&two, &["second = gridfuse::run_rounds", "first = cudaGetLastError();"]);
    let lost = two.replace(
        "first = cudaGetLastError();",
        "first = cudaPeekAtLastError(); first = cudaStreamSynchronize(0);",
    );
    outlined(&lost, &[]);
    let lost = two.replace("first = cudaGetLastError();", "first = cudaStreamSynchronize(0);");
    refused(&lost, "`first` holds the error of one of several calls");
    let message = around("int it = level; cudaError_t e = cudaGetLastError(); if (e) printf(\"%d\", it);");
    refused(&message, "names `it`, which is declared in the loop");
    let left = around("cudaError_t e = cudaGetLastError();\n        if (e) break;");
    let assumes = assumed(&left, &[]);
    assert_eq!(assumes.len(), 2, "{assumes:#?}");
    assert!(assumes[0].starts_with("the host may wait for the loop"), "{assumes:#?}");
    assert_eq!(
        assumes[1],
        "no call of the loop fails: it goes on where `break` left it"
    );
}

/// Declarations that a kernel can't have, or would understand otherwise.
#[test]
fn declarations_of_the_host() {
    refused(&around("static int total = 0; total += level;"), "a static variable");
    refused(
        &around("int blockIdx = level; level = blockIdx;"),
        "`blockIdx` is called as a variable that each kernel has",
    );
    let computed = "#include <cstdlib>\nconst int kMost = atoi(\"5\");\nconst int kLeast = 2 + 3;";
    outlined(
        &around_beside(computed, "if (level > kMost + kLeast) break;"),
        &["int kMost", "if (level > kMost + kLeast) break;"],
    );
    let sized = around("").replace(
        "int level = 0, h = 1;",
        "int level = 0;\n    int h;\n    cudaMalloc(&flag, sizeof(h));",
    );
    let sized = sized
        .replace("$0while (h) {", "$0do {")
        .replace("        level++;\n    }", "        level++;\n    } while (h);");
    outlined(&sized, &["    int h;\n    cudaMalloc(&flag, sizeof(h));"]);
    let number = around("").replace("cudaMemset(flag,", "cudaMemset((void*)address,");
    let number = number.replace(
        "int level = 0,",
        "unsigned long long address = (unsigned long long)flag;\n    int level = 0,",
    );
    outlined(&number, &["rounds.fill((void*)address, 0, sizeof(int));"]);
    let recorded = around("").replace(
        "$0while",
        "cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);\n    $0while",
    );
    refused(&recorded, "the function records a graph");
}
