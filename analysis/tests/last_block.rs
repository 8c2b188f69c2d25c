//! Who launches where the last block of a grid is asked for, and where a template parameter says how large blocks are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gridfuse_analysis::base::db::Workspace;
use gridfuse_analysis::facts::launch::Launchers::{self, ManyThreads, OnePerBlock, OnePerGrid};
use gridfuse_analysis::facts::launch::{LaunchId, who_launches};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;

/// Who does the first launch of the kernel `parent`.
fn who(text: &str) -> Launchers {
    let mut host = Host::new();
    host.set_file("/w/a.cu".as_ref(), text);
    let db = host.db();
    assert!(Workspace::try_get(db).is_some());
    let file = host.file("/w/a.cu".as_ref()).unwrap();
    let functions = &items(db, file).functions;
    let parent = functions.iter().find(|f| f.has_body(db) && f.name(db) == "parent");
    who_launches(
        db,
        LaunchId {
            function: *parent.unwrap(),
            index: 0,
        },
    )
}

const CONTROL: &str = r#"struct Control { unsigned done; int changed; int rounds; };
__global__ void child(int* out) { out[0] = 1; }
__global__ void parent(int* out, Control* control, int n) {
    if (out[threadIdx.x] > n) atomicOr(&control->changed, 1);
    if (threadIdx.x == 0) {
        unsigned ticket = atomicAdd(&control->done, 1u);
        if (ticket == gridDim.x - 1) {
            control->done = 0;
            control->rounds += 1;
            if (atomicExch(&control->changed, 0)) child<<<1, 32>>>(out);
        }
    }
}
void run(int* out, Control* control) { parent<<<4, 64>>>(out, control, 3); }
"#;

#[test]
fn another_member_of_the_counter_is_set() {
    assert_eq!(who(CONTROL), OnePerGrid);
    // It may be the counter that is set.
    for (what, by) in [
        ("atomicOr(&control->changed, 1)", "atomicOr(&control->done, 1)"),
        (
            "struct Control { unsigned done; int changed;",
            "struct Control { union { unsigned done; int changed; };",
        ),
        (
            "atomicOr(&control->changed, 1)",
            "memset(&control->changed, 0, sizeof(Control))",
        ),
        ("atomicOr(&control->changed, 1)", "control = control + 1"),
    ] {
        let other = CONTROL.replace(what, by);
        assert_ne!(other, CONTROL);
        assert_ne!(who(&other), OnePerGrid, "{by}");
    }
}

const HELPER: &str = r#"__device__ unsigned blocks_done;
__device__ bool is_last_block() {
    __shared__ bool last;
    if (threadIdx.x == 0) last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    return last;
}
__global__ void child(int* out) { out[0] = 1; }
__global__ void parent(int* out, int n) {
    out[threadIdx.x] += n;
    if (is_last_block() && threadIdx.x == 0) child<<<1, 32>>>(out);
}
void run(int* out) { parent<<<4, 64>>>(out, 3); }
"#;

#[test]
fn a_function_says_which_block_is_the_last_one() {
    assert_eq!(who(HELPER), OnePerGrid);
    assert_eq!(who(&HELPER.replace(" && threadIdx.x == 0)", ")")), ManyThreads);
    for (what, by) in [
        // It is asked twice.
        ("out[threadIdx.x] += n;", "if (is_last_block()) out[0] = n;"),
        // Its caller sets the counter back.
        ("out[threadIdx.x] += n;", "if (threadIdx.x == 0) blocks_done = 0;"),
        ("if (is_last_block()", "for (int k = 0; k < n; ++k) if (is_last_block()"),
        (
            "    return last;",
            "    if (blocks_done > 9) return true;\n    return last;",
        ),
        ("if (is_last_block() &&", "if (!is_last_block() &&"),
        ("gridDim.x - 1) == gridDim.x - 1;", "2) == 2;"),
    ] {
        let other = HELPER.replacen(what, by, 1);
        assert_ne!(other, HELPER, "{what}");
        assert_ne!(who(&other), OnePerGrid, "{by}");
    }
}

const TEMPLATE: &str = r#"template <int B>
__global__ void child(int* out) { out[0] = B; }
template <int B, class T>
__global__ void parent(T* out, int n) {
    int i = blockIdx.x * B + threadIdx.x;
    if (i == 0) child<B><<<1, 32>>>(out);
}
void run(int* out) {
    constexpr int kWide = 128;
    parent<kWide, int><<<4, kWide>>>(out, 3);
    parent<64, int><<<4, dim3(64)>>>(out, 3);
}
"#;

#[test]
fn a_template_parameter_is_the_size_of_a_block() {
    assert_eq!(who(TEMPLATE), OnePerGrid);
    assert_eq!(who(&TEMPLATE.replace("i == 0", "i == 7")), OnePerGrid);
    for (what, by) in [
        ("<<<4, kWide>>>", "<<<4, 64>>>"),
        ("<<<4, dim3(64)>>>", "<<<4, dim3(1, 64)>>>"),
        ("parent<64, int>", "parent<32, int>"),
        (
            "parent<kWide, int><<<4, kWide>>>",
            "int kOther = 2; parent<kWide, int><<<4, kOther>>>",
        ),
        ("void run(", "void (*pointer)(int*, int) = parent<0, int>;\nvoid run("),
    ] {
        let other = TEMPLATE.replace(what, by);
        assert_ne!(other, TEMPLATE, "{what}");
        assert!(matches!(who(&other), ManyThreads | OnePerBlock), "{by}");
    }
}

const MEMBERS: &str = r#"struct Args { const int* from; int n; int* to; unsigned* ticket; int* changed; int* rounds; };
__device__ int label_of(volatile int* to, int v) { return to[v]; }
int* device(size_t bytes, const void* from) {
    void* p = nullptr;
    cudaError_t e = cudaMalloc(&p, bytes);
    if (e == cudaSuccess) e = from ? cudaMemcpy(p, from, bytes, cudaMemcpyHostToDevice) : cudaMemset(p, 0, bytes);
    if (e != cudaSuccess) exit(1);
    return (int*)p;
}
int* pool;
__global__ void parent(Args g) {
    __shared__ int last;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < g.n) g.to[i] = label_of(g.to, g.from[i]);
    if (i == 3) *g.changed = 1;
    if (i == 4) atomicExch(g.changed, 2);
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(g.ticket, 1u) == gridDim.x - 1;
    __syncthreads();
    if (last && threadIdx.x == 0) {
        *g.ticket = 0;
        *g.rounds += 1;
        if (atomicExch(g.changed, 0)) parent<<<gridDim.x, blockDim.x, 0, cudaStreamTailLaunch>>>(g);
    }
}
int main() {
    Args g;
    int* from;
    cudaMalloc(&from, 400);
    g.from = from;
    g.n = 100;
    g.to = device(400, nullptr);
    g.ticket = (unsigned*)device(4, nullptr);
    g.changed = device(4, nullptr);
    cudaMalloc(&g.rounds, 4);
    parent<<<4, 32>>>(g);
    cudaFree(g.to);
}
"#;

#[test]
fn the_counter_is_one_of_several_pointers_in_an_object() {
    assert_eq!(who(MEMBERS), OnePerGrid);
    for (what, by) in [
        // All in one list.
        (
            "    Args g;\n",
            "    Args g{nullptr, 100, nullptr, nullptr, nullptr, nullptr};\n",
        ),
        (
            "    parent<<<4, 32>>>(g);",
            "    Args h = g;\n    parent<<<4, 32>>>(h);",
        ),
        ("cudaFree(g.to);", "g.to = nullptr;"),
        ("label_of(g.to, g.from[i])", "g.to[0]"),
    ] {
        let other = MEMBERS.replace(what, by);
        assert_ne!(other, MEMBERS, "{what}");
        assert_eq!(who(&other), OnePerGrid, "{by}");
    }
    // Another pointer may lead to the counter, or the counter is another one.
    for (what, by) in [
        ("g.changed = device(4, nullptr);", "g.changed = (int*)g.ticket;"),
        (
            "g.changed = device(4, nullptr);",
            "g.changed = g.to; g.ticket = (unsigned*)g.to;",
        ),
        ("g.changed = device(4, nullptr);", "g.changed = pool;"),
        (
            "g.changed = device(4, nullptr);",
            "g.changed = from; g.ticket = (unsigned*)from;",
        ),
        (
            "    parent<<<4, 32>>>(g);",
            "    Args* p = &g;\n    p->changed = (int*)p->ticket;\n    parent<<<4, 32>>>(g);",
        ),
        (
            "    parent<<<4, 32>>>(g);",
            "    Args& r = g;\n    r.changed = (int*)r.ticket;\n    parent<<<4, 32>>>(g);",
        ),
        (
            "    parent<<<4, 32>>>(g);",
            "    auto f = [&] { g.changed = (int*)g.ticket; };\n    f();\n    parent<<<4, 32>>>(g);",
        ),
        ("    parent<<<4, 32>>>(g);", "    set(g);\n    parent<<<4, 32>>>(g);"),
        (
            "    parent<<<4, 32>>>(g);",
            "    memcpy(&g, other, sizeof(g));\n    parent<<<4, 32>>>(g);",
        ),
        (
            "    parent<<<4, 32>>>(g);",
            "    int** p = &g.changed;\n    *p = (int*)g.ticket;\n    parent<<<4, 32>>>(g);",
        ),
        (
            "    return (int*)p;",
            "    if (!pool) pool = (int*)p;\n    return pool;",
        ),
        ("    void* p = nullptr;", "    static void* p = nullptr;"),
        ("    void* p = nullptr;", "    void* p = (void*)from;"),
        (
            "    Args g;\n",
            "    Args g{pool, 100, pool, (unsigned*)pool, pool, pool};\n",
        ),
        (
            "int* changed; int* rounds; };",
            "int* changed; int* rounds; void set() { changed = (int*)ticket; } };",
        ),
        ("int* to; unsigned* ticket;", "union { int* to; unsigned* ticket; };"),
        ("if (i == 3) *g.changed = 1;", "if (i == 3) *g.ticket = 1;"),
        ("if (i == 3) *g.changed = 1;", "if (i == 3) g.ticket[0] = 1;"),
        ("if (i == 3) *g.changed = 1;", "g.ticket = g.ticket + i;"),
        (
            "if (i == 3) *g.changed = 1;",
            "int* t = (int*)g.ticket; if (i == 3) *t = 1;",
        ),
        ("if (i == 3) *g.changed = 1;", "Args h = g; if (i == 3) *h.ticket = 0;"),
        ("{ return to[v]; }", "{ return to[v] = 1; }"),
        ("label_of(g.to, g.from[i])", "label_of((int*)g.ticket, 0)++"),
        (
            "int main() {",
            "void other(Args g) { parent<<<4, 32>>>(g); }\nint main() {",
        ),
    ] {
        let other = MEMBERS.replace(what, by);
        assert_ne!(other, MEMBERS, "{what}");
        // What is called may be a member.
        let other = match by.contains("void set()") {
            true => other.replace("    parent<<<4, 32>>>(g);", "    g.set();\n    parent<<<4, 32>>>(g);"),
            false => other,
        };
        assert_ne!(who(&other), OnePerGrid, "{by}");
    }
}

const LAMBDA: &str = r#"__global__ void child(int* out) { out[0] = 1; }
__global__ void parent(int* out, int w) {
    const int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 8 + threadIdx.y;
    auto at = [&](int xx, int yy) { return out[yy * w + xx]; };
    int value = at(x, y) + at(x - 1, y);
    if (x == 0 && y == 0) child<<<1, 32>>>(out + value);
}
void run(int* out) { parent<<<dim3(4, 4), dim3(32, 8)>>>(out, 3); }
"#;

#[test]
fn a_lambda_copies_what_it_is_passed() {
    assert_eq!(who(LAMBDA), OnePerGrid);
    assert_eq!(
        who(&LAMBDA.replace("[&](int xx, int yy)", "[=](long xx, const int yy)")),
        OnePerGrid
    );
    for (what, by) in [
        ("[&](int xx, int yy) {", "[&](int xx, int& yy) { yy = 0;"),
        ("[&](int xx, int yy) {", "[&](int xx, int&& yy) {"),
        ("[&](int xx, int yy) {", "[&](auto&& xx, auto&& yy) {"),
        ("[&](int xx, int yy) {", "[&](int xx, auto... yy) {"),
        ("[&](int xx, int yy) {", "[&](int xx, int yy) { y = 0;"),
        (
            "auto at = [&](int xx, int yy)",
            "std::function<int(int&, int&)> at = [&](int& xx, int& yy)",
        ),
        ("    int value", "    int* p = &y; *p = 0;\n    int value"),
    ] {
        let other = LAMBDA.replace(what, by);
        assert_ne!(other, LAMBDA, "{what}");
        assert_ne!(who(&other), OnePerGrid, "{by}");
    }
}
