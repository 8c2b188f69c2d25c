//! `persistent-loop` of kernels that launch each other into the tail and don't all come back.

use super::{refuses, rewrite};

const ID: &str = "persistent-loop";

/// Three stages; the host launches the first one.
const STAGES: &str = r#"__global__ void last(int* out, int n) { out[0] = n; }

__global__ void wide(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i + 1] = i;
    if (i == 0) last<<<1, 1, 0, cudaStreamTailLaunch>>>(out, n);
}

__global__ void first(int* out, int n) {
    int found = 0;
    for (int i = 0; i < n; ++i) found += out[i];
    if (found > 9) wide<<<found / 64 + 1, 64, 0, cudaStreamTailLaunch>>>(out, found);
    else last<<<1, 1, 0, cudaStreamTailLaunch>>>(out, -1);
}

void run(int* out) { first<<<1, 1>>>(out, 7); }
"#;

/// The program with the mark at the launch that stands behind this text.
fn at(text: &str, launch: &str) -> String {
    text.replacen(launch, &format!("$0{launch}"), 1)
}

const LAUNCHES: [&str; 3] = [
    "last<<<1, 1, 0, cudaStreamTailLaunch>>>(out, n)",
    "wide<<<",
    "last<<<1, 1, 0, cudaStreamTailLaunch>>>(out, -1)",
];

#[test]
fn stages_of_a_pipeline() {
    for launch in LAUNCHES {
        rewrite(ID, &at(STAGES, launch)).has(&[
            "// kernel: 0 for first, 1 for wide, 2 for last.\nstruct first_args { int kernel; int n; };",
            "loop.launch(found / 64 + 1, 64, {1, found});",
            "loop.launch(1, 64, {2, -1});",
            "if (i == 0) loop.launch(1, 64, {2, n});",
            "            if (threadIdx.x == 0)\n                first_body(loop, blockIdx, gridDim, dim3(1), out, args.n);",
            "gridfuse::launch_growing_loop<first_loop>(1, 64, /*shared_memory=*/0,",
        ]);
    }
}

#[test]
fn optimize_leaves_a_pipeline_alone() {
    let loops = |text: &str, launch: &str| {
        let result = super::rewrite_files("optimize", &[("a.cu", &at(text, launch))], &[]);
        result.is_ok_and(|result| result.text().contains("gridfuse::Loop<"))
    };
    assert!(!loops(STAGES, LAUNCHES[1]));
    let again = STAGES.replace(
        "last<<<1, 1, 0, cudaStreamTailLaunch>>>(out, n);",
        "first<<<1, 1, 0, cudaStreamTailLaunch>>>(out, n);",
    );
    assert!(loops(&again, LAUNCHES[1]));
}

#[test]
fn what_is_run_before_a_loop_and_after_it() {
    let text = r#"__global__ void after(int* x) { x[threadIdx.x] = 1; }
__global__ void turn(int* x, int round) {
    x[threadIdx.x] += round;
    if (threadIdx.x == 0) {
        if (round < 5) turn<<<1, 32, 0, cudaStreamTailLaunch>>>(x, round + 1);
        else after<<<1, 32, 0, cudaStreamTailLaunch>>>(x);
    }
}
__global__ void before(int* x) {
    x[threadIdx.x] = 0;
    if (threadIdx.x == 0) turn<<<1, 32, 0, cudaStreamTailLaunch>>>(x, 1);
}
void run(int* x) { before<<<1, 32>>>(x); }
"#;
    for launch in [
        "turn<<<1, 32, 0, cudaStreamTailLaunch>>>(x, round",
        "after<<<",
        "turn<<<1, 32, 0, cudaStreamTailLaunch>>>(x, 1",
    ] {
        rewrite(ID, &at(text, launch)).has(&[
            "// kernel: 0 for before, 1 for turn, 2 for after.",
            "loop.launch(1, 32, {1, 1});",
        ]);
    }
    // A loop that the host launches begins by itself, and what launches it besides isn't part of it.
    let host = text.replace("before<<<1, 32>>>(x);", "before<<<1, 32>>>(x); turn<<<1, 32>>>(x, 3);");
    let result = rewrite(ID, &at(&host, "after<<<"));
    result.has(&[
        "// kernel: 0 for turn, 1 for after.",
        "    if (threadIdx.x == 0) turn<<<1, 32, 0, cudaStreamTailLaunch>>>(x, 1);",
    ]);
}

#[test]
fn a_stage_that_the_host_launches_begins_a_chain() {
    // The launch by the device stays.
    let text = STAGES.replace(
        "void run(int* out) {",
        "void run(int* out) { wide<<<5, 64>>>(out, 300);",
    );
    rewrite(ID, &at(&text, LAUNCHES[0])).has(&[
        "// kernel: 0 for wide, 1 for last.",
        "if (found > 9) wide<<<found / 64 + 1, 64, 0, cudaStreamTailLaunch>>>(out, found);",
    ]);
}

#[test]
fn chains_that_are_left_alone() {
    let refused = |from: &str, to: &str, why: &str| {
        let text = STAGES.replace(from, to);
        assert_ne!(text, STAGES);
        refuses(ID, &at(&text, LAUNCHES[1]), why);
    };
    // What `wide` launches comes before what is launched behind it.
    refused(
        "else last<<<1, 1, 0, cudaStreamTailLaunch>>>(out, -1);",
        "last<<<1, 1, 0, cudaStreamTailLaunch>>>(out, -1);",
        "isn't the last tail launch",
    );
    refused(
        "if (i == 0) last",
        "if (threadIdx.x == 0) last",
        "more than one thread of the grid may launch what `wide` launches",
    );
    refused(
        "{ out[0] = n; }",
        "{ out[0] = n; cudaMemsetAsync(out, 0, 4, cudaStreamFireAndForget); }",
        "the next iteration waits for",
    );
    refused(
        "void run(int* out) { first",
        "__global__ void run(int* out) { first",
        "launches `first` from the device, where no memory can be had for it",
    );
    refused(
        "out[i + 1] = i;",
        "out[i + 1] = i; while (atomicAdd(out, 0) == 0) {}",
        "`wide` may wait for another thread",
    );
    // Which of them would the loop begin with?
    let two = STAGES.replace(
        "void run(",
        "__global__ void other(int* out) { wide<<<3, 64, 0, cudaStreamTailLaunch>>>(out, 5); }\nvoid run(",
    );
    refuses(ID, &at(&two, LAUNCHES[0]), "launches `wide` from the device");
    // The same as a function's.
    let function = STAGES
        .replace(
            "__global__ void first(int* out, int n)",
            "__device__ void choose(int* out, int n)",
        )
        .replace(
            "void run(",
            "__global__ void first(int* out, int n) { choose(out, n); }\nvoid run(",
        );
    refuses(
        ID,
        &at(&function, LAUNCHES[1]),
        "`choose` is no kernel: put the tail launch into the kernel that calls it",
    );
}

/// A stage that goes on until a member of `given` is set, by a function that has it by reference to `const`.
fn until_set(member: &str, helper: &str, condition: &str) -> String {
    let structure = format!(
        "struct Given {{ int {member}; int* sums; }};\n__device__ void help(const Given& given) {{ {helper} }}\n"
    );
    let text = STAGES.replace(
        "int i = blockIdx",
        &format!("Given given{{}}; while ({condition}) help(given);\n    int i = blockIdx"),
    );
    at(&format!("{structure}{text}"), LAUNCHES[1])
}

#[test]
fn elements_are_no_part_of_what_has_their_pointer() {
    let loops = |helper: &str| {
        let text = until_set("n", helper, "k++ < given.n");
        text.replace("Given given{};", "Given given{}; int k = 0;")
    };
    rewrite(ID, &loops("atomicAdd((unsigned*)&given.sums[0], 1u);"));
    let inside = until_set(
        "stop[2]",
        "*(int*)&given.stop[0] = atomicAdd(given.sums, 0);",
        "given.stop[0] == 0",
    );
    refuses(ID, &inside, "`wide` may wait for another thread");
    refuses(
        ID,
        &loops("*(int*)&given.n = atomicAdd(given.sums, 0);"),
        "`wide` may wait for another thread",
    );
}

#[test]
fn a_pointer_to_const_is_no_argument_of_the_loop() {
    let text = STAGES.replace("wide(int* out, int n) {", "wide(const int* out, int n) {");
    let text = text.replace("out[i + 1] = i;", ";").replace(
        "last<<<1, 1, 0, cudaStreamTailLaunch>>>(out, n)",
        "last<<<1, 1, 0, cudaStreamTailLaunch>>>(const_cast<int*>(out), n)",
    );
    rewrite(ID, &at(&text, "wide<<<")).has(&["gridfuse::Loop<first_loop> loop({});"]);
}

/// Two variables of one name are two conditions.
#[test]
fn conditions_of_other_variables() {
    let text = r#"__global__ void leaf(int* out) { out[2] = 1; }

__global__ void mid(int* out) { out[3] = 1; }

__global__ void head(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) $0leaf<<<1, 64, 0, cudaStreamTailLaunch>>>(out);
    if (n > 0) {
        int i = threadIdx.x;
        if (i == 0 && blockIdx.x == 1) mid<<<1, 64, 0, cudaStreamTailLaunch>>>(out);
    }
}

void run(int* out, int n) { head<<<4, 64>>>(out, n); }
"#;
    refuses(ID, text, "");
}

/// A block has 64 threads in z at most: a launch of more fails, and nothing else does.
#[test]
fn blocks_that_cannot_be_launched() {
    let text = |block: &str| {
        format!(
            "__global__ void mid(int* out) {{ if (threadIdx.z == 0) out[1] = 1; }}\n
__global__ void head(int* out, int n) {{
    if (blockIdx.x == 0 && threadIdx.x == 0) $0mid<<<1, {block}, 0, cudaStreamTailLaunch>>>(out);
}}\n
void run(int* out, int n) {{ head<<<4, dim3(1, 1, 64)>>>(out, n); }}\n"
        )
    };
    refuses(ID, &text("dim3(1, 1, 128)"), "");
}
