//! `replace-device-sync`, beside the programs of `tests/fixtures/device_sync`.

use super::fixes::fix;

const ID: &str = "replace-device-sync";

/// A program: a child that writes `out`, a parent with this body, and how the host launches it.
fn program(body: &str, grid: &str) -> String {
    format!(
        r#"__global__ void child(int* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = i;
}}

__global__ void other(const int* out, int* sums, int n) {{
    if (threadIdx.x < n) sums[threadIdx.x] = out[threadIdx.x];
}}

__global__ void parent(int* __restrict__ out, int* __restrict__ sums, const int* __restrict__ row, int n) {{
{body}
}}

void run(int* out, int* sums, const int* row, int n) {{ parent<<<{grid}>>>(out, sums, row, n); }}
"#
    )
}

const WAIT: &str = "$0cudaDeviceSynchronize();";

#[track_caller]
fn becomes(body: &str, grid: &str, pieces: &[&str]) -> Vec<String> {
    let (new, assumes) = fix(ID, &program(body, grid), &[]).unwrap_or_else(|reasons| panic!("refused: {reasons:#?}"));
    for piece in pieces {
        assert!(new.contains(piece), "no\n{piece}\nin\n{new}");
    }
    assert!(!new.contains("cudaDeviceSynchronize"), "{new}");
    assumes
}

#[track_caller]
fn goes(body: &str, grid: &str) -> Vec<String> {
    let (new, assumes) = fix(ID, &program(body, grid), &[]).unwrap_or_else(|reasons| panic!("refused: {reasons:#?}"));
    assert!(!new.contains("_after_"), "{new}");
    assert!(!new.contains("cudaDeviceSynchronize"), "{new}");
    assumes
}

#[track_caller]
fn refused(body: &str, grid: &str, reason: &str) {
    match fix(ID, &program(body, grid), &[]) {
        Ok((new, _)) => panic!("not refused:\n{new}"),
        Err(reasons) => assert!(reasons.iter().any(|r| r.contains(reason)), "{reasons:#?}"),
    }
}

#[test]
fn a_wait_that_nothing_needs_goes() {
    let one = "1, 1";
    assert!(goes(&format!("    child<<<1, 32>>>(out, n);\n    {WAIT}"), one).is_empty());
    // The stream orders the two grids.
    let next = format!(
        r#"    child<<<1, 32>>>(out, n);
    {WAIT}
    other<<<1, 32>>>(out, sums, n);"#
    );
    assert!(goes(&next, one).is_empty());
    let constant = format!(
        r#"    for (int k = 0; k < 5; ++k) {{
        child<<<1, 32>>>(out, k);
        {WAIT}
    }}"#
    );
    assert!(goes(&constant, one).is_empty());
    let open = format!(
        r#"    for (int k = 0; k < n; ++k) {{
        child<<<1, 32>>>(out, k);
        {WAIT}
    }}"#
    );
    let assumes = goes(&open, one);
    assert!(
        assumes.len() == 1 && assumes[0].contains("pending at a time"),
        "{assumes:?}"
    );
    // What comes behind the next wait isn't this one's business.
    let two = format!(
        r#"    child<<<1, 32>>>(out, n);
    {WAIT}
    cudaDeviceSynchronize();
    sums[0] = out[0];"#
    );
    let (new, _) = fix(ID, &program(&two, one), &[]).unwrap();
    assert_eq!(new.matches("cudaDeviceSynchronize").count(), 1, "{new}");
    let alone = format!(
        r#"    if (threadIdx.x == 0) child<<<1, 32>>>(out, n);
    if (threadIdx.x == 0) {{
        {WAIT} // all
    }}"#
    );
    let (new, _) = fix(ID, &program(&alone, "4, 32"), &[]).unwrap();
    assert!(new.contains("(out, n);\n}"), "{new}");
    let checked = r#"    child<<<1, 32>>>(out, n);
    if ($0cudaDeviceSynchronize() != cudaSuccess) sums[0] = 1;"#
        .to_owned();
    becomes(
        &checked,
        one,
        &["if (cudaPeekAtLastError() != cudaSuccess) sums[0] = 1;"],
    );
}

#[test]
fn what_follows_becomes_a_kernel() {
    let one = format!(
        r#"    int first = row[0] + sums[1];
    child<<<1, 32>>>(out, n);
    {WAIT}
    sums[0] = out[first];"#
    );
    becomes(
        &one,
        "1, 1",
        &[
            r#"__global__ void parent_after_child(int* __restrict__ out, int* __restrict__ sums, int first) {
    sums[0] = out[first];
}
"#,
            r#"    child<<<1, 32>>>(out, n);
    parent_after_child<<<1, 1, 0, cudaStreamTailLaunch>>>(out, sums, first);
}"#,
        ],
    );
    let many = format!(
        r#"    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int twice = v * 2;
    if (threadIdx.x == 0) {{
        child<<<1, 32>>>(out, n);
        {WAIT}
        sums[blockIdx.x] = out[0];
    }}
    __syncthreads();
    sums[twice] = out[v];"#
    );
    becomes(
        &many,
        "4, 32",
        &[
            r#"    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int twice = v * 2;
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = out[0];
    }
    __syncthreads();
    sums[twice] = out[v];
}"#,
            r#"{
    if (threadIdx.x == 0 && blockIdx.x == 0)
        parent_after_child<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>("#,
            r#"        child<<<1, 32>>>(out, n);
    }
}"#,
        ],
    );
    // A branch that all threads take alike: the launch stands where they get to.
    let uniform = format!(
        r#"    int steps = 1;
    if (n > 4) steps = 2;
    if (threadIdx.x == 0) child<<<1, 32>>>(out, n);
    {WAIT}
    __syncthreads();
    sums[threadIdx.x] = out[threadIdx.x] * steps;"#
    );
    becomes(&uniform, "4, 32", &["int steps)", "sums, steps);"]);
}

#[test]
fn what_can_not_be_computed_again() {
    let many = "4, 32";
    let with = |before: &str, after: &str| {
        format!(
            r#"{before}
    if (threadIdx.x == 0) child<<<1, 32>>>(out, n);
    {WAIT}
    __syncthreads();
    {after}"#
        )
    };
    refused(
        &with("    int slot = atomicAdd(sums, 1);", "sums[slot] = out[0];"),
        many,
        "a call of `atomicAdd` can't be computed again",
    );
    refused(
        &with("    int x = 1;\n    if (threadIdx.x > 3) x = 2;", "sums[x] = out[0];"),
        many,
        "`x` may differ",
    );
    refused(
        &with("    int x = out[threadIdx.x];", "sums[x] = out[0];"),
        many,
        "`child` writes",
    );
    refused(
        &with(
            "    __shared__ int s[32];\n    s[threadIdx.x] = n;",
            "sums[s[0]] = out[0];",
        ),
        many,
        "shared memory (`s`)",
    );
    refused(
        &with("    extern __shared__ int s[];", "s[0] = out[0]; sums[0] = s[0];"),
        many,
        "dynamic shared memory",
    );
    refused(
        &with("    if (atomicAdd(sums, 1) > 3) return;", "sums[threadIdx.x] = out[0];"),
        many,
        "a call of `atomicAdd` can't be computed again",
    );
    refused(
        &with(
            r#"    for (int i = 0; i < n; ++i)
        if (row[i] == threadIdx.x) return;"#,
            "sums[threadIdx.x] = out[0];",
        ),
        many,
        "leave the kernel here",
    );
    refused(
        &with("    int a[4];\n    a[0] = n;", "sums[a[0]] = out[0];"),
        many,
        "`a`",
    );
    refused(
        &with(
            r#"    int x = n;
    int& y = x;
    ++y;"#,
            "sums[y] = out[0];",
        ),
        many,
        "`y`",
    );
    refused(
        &with("    int a[4];\n    int* p = a;", "sums[0] = out[0] + *p;"),
        "1, 1",
        "`p` may point at",
    );
}

/// A loop of one thread that waits goes on in a kernel that launches itself.
#[test]
fn a_loop_goes_on_in_another_kernel() {
    let (one, block) = ("1, 1", "1, 64");
    becomes(
        &format!(
            r#"    do {{
        child<<<1, 32>>>(out, n);
        {WAIT}
    }} while (out[0] < n);"#
        ),
        one,
        &[
            r#"// What parent does after its wait: the rest of the loop, up to the next wait.
__global__ void parent_after_child(int* __restrict__ out, int n) {
    for (bool resumed = true; resumed || (out[0] < n);) {
        if (!resumed) {
            child<<<1, 32>>>(out, n);
            parent_after_child<<<1, 1, 0, cudaStreamTailLaunch>>>(out, n);
            return;
        }
        resumed = false;
    }
}
"#,
        ],
    );
    // What is declared by the loop goes along, what is done between waits is done anew.
    becomes(
        &format!(
            r#"    if (threadIdx.x == 0 && blockIdx.x == 0) {{
        float sum = 0;
        for (int k = 0; k < n; ++k) {{
            if (k == 3) continue;
            int at = k * 2;
            child<<<1, 32>>>(out + at, n);
            {WAIT}
            sum += out[at];
        }}
        sums[0] = sum;
    }}"#
        ),
        block,
        &[
            "resumed || (k < n); ++k) {",
            "            int at = k * 2;",
            "        sum += out[at];",
            "    sums[0] = sum;",
        ],
    );
    let refuse = |body: &str, grid: &str, reason: &str| refused(&body.replace("WAIT", WAIT), grid, reason);
    // Other threads have something to do with the loop.
    refuse(
        "    for (int k = 0; k < n; ++k) {\n child<<<1, 32>>>(out, n);\n WAIT\n sums[k] = out[k];\n }",
        block,
        "which another kernel can only go on with",
    );
    refuse(
        r#"    int t = threadIdx.x;
    if (t == 0) {
        for (int k = 0; k < n; ++k) {
            child<<<1, 32>>>(out, n);
            WAIT
            sums[k] = out[k];
        }
    }
    __syncthreads();
    sums[t] += 1;"#,
        block,
        "at a barrier",
    );
    refuse(
        "    if (threadIdx.x == 5)\n for (int k = 0; k < n; ++k) {\n child<<<1, 32>>>(out, n);\n WAIT\n sums[threadIdx.x] = out[k];\n }",
        block,
        "which another kernel can only go on with",
    );
    // What goes into the tail would come before the rest of the loop.
    refuse(
        r#"    for (int k = 0; k < n; ++k) {
        other<<<1, 32, 0, cudaStreamTailLaunch>>>(out, sums, n);
        child<<<1, 32>>>(out, n);
        WAIT
        sums[k] = out[k];
    }"#,
        one,
        "goes into the tail of the grid",
    );
    // What can't go along.
    for (before, inside, behind, reason) in [
        (
            "__shared__ int last;",
            "last = k;",
            "sums[0] = out[0] + last;",
            "doesn't live as long as that",
        ),
        (
            "int last[2] = {0, 0};",
            "last[k % 2] = k;",
            "sums[0] = out[0] + last[0];",
            "`last` can't be handed",
        ),
        (
            "int last; int* p = &last;",
            "*p = k;",
            "sums[0] = out[0] + *p;",
            "may point at shared or local memory",
        ),
        ("", "static int last; last += k;", "sums[0] = out[0] + last;", "`last`"),
        (
            "",
            "constexpr int last = 3;",
            "sums[0] = out[0] + last;",
            "declare it in front of the loop",
        ),
        ("", "int& last = sums[k];", "last = out[0];", "`last` can't be handed"),
        (
            "cudaStream_t s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);",
            "child<<<1, 32, 0, s>>>(out, n);",
            "sums[0] = out[0];",
            "`s` can't be handed",
        ),
        (
            "",
            "cudaDeviceSynchronize();",
            "sums[0] = out[0];",
            "the loop waits here, too",
        ),
    ] {
        refuse(
            &format!(
                "    {before}\n    for (int k = 0; k < n; ++k) {{\n        {inside}\n        child<<<1, 32>>>(out, n);\n        WAIT\n        \
                 {behind}\n    }}"
            ),
            one,
            reason,
        );
    }
    refuse(
        "    for (int j = 0; j < 2; ++j)\n    for (int k = 0; k < n; ++k) {\n child<<<1, 32>>>(out, n);\n WAIT\n sums[k] = out[k];\n }",
        one,
        "stands in a loop",
    );
}

#[test]
fn waits_that_stay() {
    let one = "1, 1";
    refused(
        &format!(
            r#"    if (n > 3) goto end;
    child<<<1, 32>>>(out, n);
    {WAIT}
    sums[0] = out[0];
end:
    ;"#
        ),
        one,
        "jumps to labels",
    );
    refused(
        &format!(
            r#"    child<<<1, 32>>>(out, n);
    if (cudaSuccess == {} sums[0] = out[0];"#,
            WAIT.replace(';', ")")
        ),
        one,
        "isn't a statement",
    );
    refused(
        &format!(
            r#"    child<<<1, 32>>>(out, n);
    while (atomicAdd(sums, 0) == 0) {{}}
    {WAIT}"#
        ),
        one,
        "may wait in a loop",
    );
    refused("    child<<<1, 32>>>($0out, n);", one, "no wait");
    // A fence may be for other grids.
    refused(
        &format!(
            r#"    child<<<1, 32>>>(out, n);
    for (int k = 0; k < 3; ++k) {{
        {WAIT}
        __threadfence();
        sums[0] = k;
    }}"#
        ),
        "1, 64",
        "memory fence",
    );
    let device = r#"__global__ void child(int* out) { out[0] = 1; }
__device__ void wait(int* out) { child<<<1, 1>>>(out); $0cudaDeviceSynchronize(); }
__global__ void parent(int* out) { wait(out); out[0] += 1; }
"#;
    match fix(ID, device, &[]) {
        Ok((new, _)) => panic!("not refused:\n{new}"),
        Err(reasons) => assert!(reasons[0].contains("isn't a kernel"), "{reasons:?}"),
    }
    let callee = r#"__global__ void child(int* out) { out[0] = 1; }
__device__ void launch(int* out) { child<<<1, 1>>>(out); }
__global__ void parent(int* out) { launch(out); $0cudaDeviceSynchronize(); out[0] += 1; }
"#;
    match fix(ID, callee, &[]) {
        Ok((new, _)) => panic!("not refused:\n{new}"),
        Err(reasons) => assert!(reasons[0].contains("launches as well"), "{reasons:?}"),
    }
}

/// The address of shared memory may come from a function.
#[test]
fn shared_memory_of_a_function_stays_behind() {
    let scratch = "__device__ int* scratch() { __shared__ int s[32]; return s; }\n";
    for (before, behind) in [("", ""), ("    for (int k = 0; k < n; ++k) {\n", "\n    }")] {
        let body = format!(
            "    int* p = scratch();\n    p[0] = 5;\n{before}    child<<<1, 32>>>(out, n);\n    {WAIT}\n    out[0] += p[0];{behind}"
        );
        match fix(ID, &format!("{scratch}{}", program(&body, "1, 1")), &[]) {
            Ok((new, _)) => panic!("not refused:\n{new}"),
            Err(reasons) => assert!(reasons.iter().any(|r| r.contains("`p` may point at")), "{reasons:#?}"),
        }
    }
}

#[test]
fn the_dependence_is_shown() {
    let body = format!(
        r#"    for (int k = 0; k < n; ++k) {{
        child<<<1, 32>>>(out, n);
        {WAIT}
        sums[k] = out[0];
    }}"#
    );
    match fix(ID, &program(&body, "1, 64"), &[]) {
        Ok((new, _)) => panic!("not refused:\n{new}"),
        Err(reasons) => {
            assert!(
                reasons.iter().any(|r| r.contains("`child` writes `out[i]`")),
                "{reasons:#?}"
            );
            assert!(
                reasons.iter().any(|r| r.contains("`parent` reads `out[0]`")),
                "{reasons:#?}"
            );
        }
    }
}

#[test]
fn no_panic_on_broken_text() {
    let text = program(
        &format!(
            r#"    int v = threadIdx.x;
    if (v > n) return;
    child<<<1, 32>>>(out, n);
    {WAIT}
    sums[v] = out[v];"#
        ),
        "1, 32",
    );
    for cut in (0..text.len()).step_by(31) {
        let _ = fix(ID, &text[..cut], &[]);
        let _ = fix(ID, &format!("{}{}", &text[..cut], &text[cut + 1..]), &[]);
    }
}

/// A program with a variable `total` beside the kernels, which one thread runs.
fn with_global(body: &str) -> String {
    format!(
        r#"__device__ int total = 100;

__global__ void child(int* __restrict__ out) {{ out[1] += 7; }}

__global__ void parent(int* __restrict__ out, int* __restrict__ sums, int n) {{
{body}
}}

void run(int* out, int* sums, int n) {{ parent<<<1, 1>>>(out, sums, n); }}
"#
    )
}

#[test]
fn blocks_keep_their_scopes() {
    let fixed = |body: &str, pieces: &[&str]| {
        let (new, _) = fix(ID, &with_global(body), &[]).unwrap_or_else(|reasons| panic!("refused: {reasons:#?}"));
        for piece in pieces {
            assert!(new.contains(piece), "no\n{piece}\nin\n{new}");
        }
    };
    // Outside of the block, the name is another variable's.
    fixed(
        r#"    {
        int total = 3;
        child<<<1, 1>>>(out);
        $0cudaDeviceSynchronize();
        sums[0] = total + out[1];
    }
    sums[1] = total;"#,
        &[
            r#"{
    {
        int total = 3;
        sums[0] = total + out[1];
    }
    sums[1] = total;
}
"#,
            "\n    parent_after_child<<<1, 1, 0, cudaStreamTailLaunch>>>(out, sums);\n}",
        ],
    );
    fixed(
        r#"    {
        child<<<1, 1>>>(out);
        $0cudaDeviceSynchronize();
        int v = out[1];
        sums[0] = v;
    }
    int v = 5;
    sums[1] = v;"#,
        &[r#"{
    {
        int v = out[1];
        sums[0] = v;
    }
    int v = 5;
    sums[1] = v;
}
"#],
    );
    // In the braces of a branch there is no need for others, nor where nothing is declared.
    fixed(
        r#"    if (n > 2) {
        const int twice = n * 2;
        child<<<1, 1>>>(out);
        $0cudaDeviceSynchronize();
        sums[0] = out[1] + twice;
    }
    sums[1] = out[1];"#,
        &[r#"{
    if (n > 2) {
        const int twice = n * 2;
        sums[0] = out[1] + twice;
    }
    sums[1] = out[1];
}
"#],
    );
    fixed(
        r#"    {
        child<<<1, 1>>>(out);
        $0cudaDeviceSynchronize();
        sums[0] = out[1];
    }
    sums[1] = out[1];"#,
        &[r#"{
    sums[0] = out[1];
    sums[1] = out[1];
}
"#],
    );
    for (body, reason) in [
        (
            r#"    {
        int first = n;
        first += 2;
        child<<<1, 1>>>(out);
        $0cudaDeviceSynchronize();
        sums[0] = out[first];
    }
    sums[1] = out[1];"#,
            "`first` is declared in a block that ends before",
        ),
        (
            r#"    int before = total, total = n;
    child<<<1, 1>>>(out);
    $0cudaDeviceSynchronize();
    sums[0] = out[total] + before;"#,
            "several variables are named `total`",
        ),
        (
            r#"    child<<<1, 1>>>(out);
    $0cudaDeviceSynchronize();
    sums[out[1]] = R"(a
    b)"[3];"#,
            "a string over several lines",
        ),
    ] {
        match fix(ID, &with_global(body), &[]) {
            Ok((new, _)) => panic!("not refused:\n{new}"),
            Err(reasons) => assert!(reasons.iter().any(|r| r.contains(reason)), "{reasons:#?}"),
        }
    }
    // At the launch, `n` isn't the parameter.
    refused(
        &format!(
            r#"    int y = n + threadIdx.x;
    if (row[0] > 0) {{
        int n = 5;
        if (threadIdx.x == 0) child<<<1, 32>>>(out, n);
        {WAIT}
        __syncthreads();
        sums[y] = out[0];
    }}"#
        ),
        "4, 32",
        "several variables are named `n`",
    );
}

#[test]
fn one_thread_keeps_its_number() {
    // In a grid of its own, the thread would be the first one.
    becomes(
        &format!(
            r#"    if (threadIdx.x == 5) {{
        if (threadIdx.x == 5) {{
            child<<<1, 32>>>(out, n);
            {WAIT}
            sums[0] = out[0];
        }}
        sums[1] = out[1];
    }}"#
        ),
        "1, 32",
        &["parent_after_child<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>("],
    );
    becomes(
        &format!(
            r#"    if (threadIdx.x == 5) {{
        int own = threadIdx.x;
        if (own == 5) {{
            child<<<1, 32>>>(out, n);
            {WAIT}
            sums[0] = out[0];
        }}
        sums[1] = out[1];
    }}"#
        ),
        "1, 32",
        &[
            r#"    if (own == 5) {
        sums[0] = out[0];
    }
    sums[1] = out[1];
}"#,
            "(out, sums, own);",
        ],
    );
    refused(
        &format!(
            r#"    if (threadIdx.x == 5) {{
        {{
            const int own = threadIdx.x;
            child<<<1, 32>>>(out, n);
            {WAIT}
            sums[own] = out[0];
        }}
        sums[1] = out[1];
    }}"#
        ),
        "1, 32",
        "the number of a thread can't be computed again",
    );
}

#[test]
fn one_thread_keeps_its_lane() {
    let before = r#"__device__ unsigned lane() { unsigned r; asm("mov.u32 %0, %%laneid;" : "=r"(r)); return r; }
__device__ int warp_sum(int x) { return __shfl_xor_sync(~0u, x, 1); }
__device__ int plain(int x) { int r; asm("add.s32 %0, %1, 1;" : "=r"(r) : "r"(x)); return r; }
"#;
    let with = |first: &str, last: &str| {
        let body = format!(
            r#"    {first}
    if (threadIdx.x == 5) {{
        child<<<1, 32>>>(out, n);
        {WAIT}
        {last}
    }}"#
        );
        let text = format!("{before}{}", program(&body, "1, 32"));
        fix(ID, &text, &[])
            .unwrap_or_else(|reasons| panic!("refused: {reasons:#?}"))
            .0
    };
    let (one, as_it_was) = (
        "<<<1, 1, 0, cudaStreamTailLaunch>>>",
        "<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>",
    );
    for last in [
        "sums[lane()] = out[3];",
        "sums[__ffs(__activemask())] = out[3];",
        "sums[warp_sum(1)] = out[3];",
        "unsigned r; asm(\"mov.u32 %0, %%tid.x;\" : \"=r\"(r)); sums[r] = out[3];",
        "unsigned r; asm(\"activemask.b32 %0;\" : \"=r\"(r)); sums[r & 31] = out[3];",
    ] {
        let text = with("", last);
        assert!(text.contains(as_it_was), "{last}:\n{text}");
    }
    for (first, last) in [
        ("int all = warp_sum(n);", "sums[0] = out[3];"),
        ("unsigned all = __activemask();", "sums[0] = out[3];"),
        ("", "sums[0] = plain(out[3]);"),
    ] {
        let text = with(first, last);
        assert!(text.contains(one), "{last}:\n{text}");
    }
}

#[test]
fn variables_where_nothing_is_evaluated() {
    let before = r#"template <int N> __device__ int first(const int* p) { return p[N]; }
#define FIRST first<K>(out)
"#;
    let in_one = |first: &str, last: &str| {
        program(
            &format!(
                r#"    {first}
    if (threadIdx.x == 0) {{
        child<<<1, 32>>>(out, n);
        {WAIT}
        {last}
    }}"#
            ),
            "1, 32",
        )
    };
    let in_all = |first: &str, last: &str| {
        program(
            &format!(
                r#"    {first}
    if (threadIdx.x == 0) child<<<1, 32>>>(out, n);
    {WAIT}
    {last}"#
            ),
            "1, 32",
        )
    };
    for (first, last, piece) in [
        (
            "constexpr int K = 4;",
            "sums[0] = first<K>(out);",
            "    constexpr int K = 4;\n",
        ),
        ("const int K = 4;", "sums[0] = first<K>(out);", "    const int K = 4;\n"),
        ("constexpr int K = 4;", "sums[0] = FIRST;", "    constexpr int K = 4;\n"),
        (
            "constexpr int K = 4;",
            "int a[K] = {out[0]}; sums[0] = a[0];",
            "    constexpr int K = 4;\n",
        ),
        ("long w = 7; w += n;", "decltype(w) z = out[3]; sums[0] = z;", "long w"),
        (
            "short w = 7;",
            "sums[0] = static_cast<decltype(w)>(out[3] * 70000);",
            "short w",
        ),
        (
            "constexpr int A = 16;",
            "alignas(A) int q[4] = {out[0]}; sums[0] = q[0];",
            "    constexpr int A = 16;\n",
        ),
        (
            "constexpr int A = 16; alignas(A) int q[4];",
            "q[0] = out[0]; sums[0] = q[0];",
            "    constexpr int A = 16;\n",
        ),
    ] {
        for text in [in_one(first, last), in_all(first, last)] {
            let (new, _) = fix(ID, &format!("{before}{text}"), &[]).unwrap_or_else(|why| panic!("{last}: {why:?}"));
            let kernel = new.split("__global__ void parent_after_child").nth(1).unwrap_or("");
            let kernel = kernel.split("\n}\n").next().unwrap_or("");
            assert!(kernel.contains(piece), "no {piece} in\n{kernel}\nof\n{new}");
        }
    }
    let unknown = in_one("constexpr char K = \"ab\"[1];", "sums[0] = first<K>(out);");
    let unknown = format!("{before}{unknown}");
    match fix(ID, &unknown, &[]) {
        Ok((new, _)) => panic!("not refused:\n{new}"),
        Err(why) => assert!(
            why.iter().any(|r| r.contains("`K` has to be a constant here")),
            "{why:?}"
        ),
    }
}

#[test]
fn comments_do_not_swallow_code() {
    becomes(
        &format!(
            r#"    if (n < 2 // small
        || n > 100) return;
    int i = threadIdx.x, // first
        j = i * 2; // second
    if (i >= 30) return;
    if (i == 0) {{
        child<<<1, 32>>>(out, n);
        {WAIT}
    }}
    __syncthreads();
    sums[i] = out[j];"#
        ),
        "4, 32",
        &[r#"    if (n < 2 || n > 100) return;
    int i = threadIdx.x, j = i * 2;
    if (i >= 30) return;
    sums[i] = out[j];
}"#],
    );
    // A comment behind the wait goes with its line, whole.
    let (new, _) = fix(
        ID,
        &program(
            &format!(
                r#"    child<<<1, 32>>>(out, n);
    {WAIT} /* until
    it's done */ // all
    other<<<1, 32>>>(out, sums, n);"#
            ),
            "1, 1",
        ),
        &[],
    )
    .unwrap();
    assert!(
        new.contains(
            r#"    child<<<1, 32>>>(out, n);
    other<<<1, 32>>>(out, sums, n);
"#
        ),
        "{new}"
    );
    let (new, _) = fix(
        ID,
        &program(
            &format!(
                r#"    child<<<1, 32>>>(out, n); {WAIT} // the rows
    other<<<1, 32>>>(out, sums, n);"#
            ),
            "1, 1",
        ),
        &[],
    )
    .unwrap();
    assert!(new.contains("    child<<<1, 32>>>(out, n); // the rows\n"), "{new}");
}

#[test]
fn a_statement_stays_where_one_has_to() {
    for (wait, left) in [
        ("do $0cudaDeviceSynchronize(); while (0);", "do {} while (0);"),
        (
            r#"switch (n) {
    case 1: break;
    default: $0cudaDeviceSynchronize();
    }"#,
            "default: {}\n",
        ),
    ] {
        becomes(&format!("    child<<<1, 32>>>(out, n);\n    {wait}"), "1, 1", &[left]);
    }
}

#[test]
fn other_tails_that_would_run_before() {
    let one = "1, 1";
    let rest = "    sums[0] = out[3] + 1;";
    for before in [
        "    other<<<1, 32, 0, cudaStreamTailLaunch>>>(out, sums, n);",
        "    if (n > 1) parent<<<1, 1, 0, cudaStreamTailLaunch>>>(out, sums, row, n - 1);",
        "    for (int k = 0; k < n; ++k) other<<<1, 32, 0, cudaStreamTailLaunch>>>(out, sums, k);",
        r#"    cudaStream_t s = n > 3 ? cudaStreamTailLaunch : 0;
    other<<<1, 32, 0, s>>>(out, sums, n);"#,
        "    cudaMemsetAsync(sums, 0, 4, cudaStreamTailLaunch);",
    ] {
        let body = format!(
            r#"{before}
    child<<<1, 32>>>(out, n);
    {WAIT}
{rest}"#
        );
        refused(&body, one, "goes into the tail of the grid");
    }
    // Another thread does.
    let body = format!(
        r#"    if (threadIdx.x == 1) other<<<1, 32, 0, cudaStreamTailLaunch>>>(out, sums, n);
    if (threadIdx.x == 0) {{
        child<<<1, 32>>>(out, n);
        {WAIT}
        sums[0] = out[3] + 1;
    }}"#
    );
    refused(&body, "1, 32", "goes into the tail of the grid");
    // What follows the wait launches it.
    let behind = "    other<<<1, 32, 0, cudaStreamTailLaunch>>>(out, sums, n);";
    let body = format!(
        r#"    child<<<1, 32>>>(out, n);
    {WAIT}
{rest}
{behind}"#
    );
    becomes(&body, one, &["parent_after_child"]);
}

#[test]
fn addresses_in_numbers() {
    let with = |value: &str| {
        format!(
            r#"    int x[4] = {{n}};
    {value}
    child<<<1, 32>>>(out, n);
    {WAIT}
    sums[0] = out[3] + *(int*)p;"#
        )
    };
    for value in [
        "size_t p = (size_t)&n;",
        "size_t p = (size_t)x;",
        "unsigned long long p = reinterpret_cast<unsigned long long>(&x[1]);",
        "size_t p = 0; p = size_t(&x[1]);",
        "size_t q = (size_t)x; size_t p = q + 8;",
        "int* y = x; size_t p = (size_t)y;",
        "size_t p = (size_t)(x + 1) | 0;",
        "uintptr_t p = n ? (uintptr_t)x : 0;",
    ] {
        refused(&with(value), "1, 1", "may hold the address of shared or local memory");
    }
    for value in ["size_t p = (size_t)out;", "size_t p = n * 8;"] {
        becomes(&with(value), "1, 1", &["parent_after_child"]);
    }
}

/// What follows the children of a kernel that launches itself isn't called after it twice.
#[test]
fn names_do_not_repeat() {
    let program = r#"__global__ void sort(int* __restrict__ out, int* __restrict__ sums, int n) {
    if (n > 1 && threadIdx.x == 0) sort<<<1, 32>>>(out, sums, n / 2);
    $0cudaDeviceSynchronize();
    if (threadIdx.x == 0) sums[n] = out[n] + sums[n / 2];
}

void run(int* out, int* sums, int n) { sort<<<1, 32>>>(out, sums, n); }
"#;
    let (new, _) = fix(ID, program, &[]).unwrap_or_else(|reasons| panic!("refused: {reasons:#?}"));
    assert!(new.contains("sort_after_children<<<"), "{new}");
    assert!(!new.contains("sort_after_sort"), "{new}");
}
