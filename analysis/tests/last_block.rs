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
