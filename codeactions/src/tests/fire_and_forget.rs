//! `fire-and-forget`

use super::{program, refuses, rewrite, rewrite_files};

const ID: &str = "fire-and-forget";

#[track_caller]
fn becomes(launch: &str, expected: &str) -> Vec<String> {
    let result = rewrite(ID, &program(launch));
    result.has(&[expected]);
    result.assumes
}

#[test]
fn configurations() {
    // The stream is longer than the line that the launch ends on.
    becomes(
        "child<<<1, 32, 0, static_cast<cudaStream_t>(nullptr)>>>(out,\nbegin,\ncount);",
        "<<<1, 32, 0, cudaStreamFireAndForget>>>",
    );
    becomes(
        "child<<<1, 32>>>(out, begin, count);",
        "child<<<1, 32, 0, cudaStreamFireAndForget>>>(out",
    );
    becomes(
        "child<<<1, 32, 16>>>(out, begin, count);",
        "child<<<1, 32, 16, cudaStreamFireAndForget>>>(out",
    );
    becomes(
        "child<<<1, 32, 16, 0>>>(out, begin, count);",
        "<<<1, 32, 16, cudaStreamFireAndForget>>>",
    );
    becomes(
        "child<<<1, 32, 0, (cudaStream_t)0>>>(out, begin, count);",
        "<<<1, 32, 0, cudaStreamFireAndForget>>>",
    );
    becomes(
        "child<< <1, dim3(32) >> >(out, begin, count);",
        "child<< <1, dim3(32), 0, cudaStreamFireAndForget >> >(out",
    );
    becomes(
        "child<<<1, 32 /* b */>>>(out, begin, count);",
        "<<<1, 32, 0, cudaStreamFireAndForget /* b */>>>",
    );
    becomes(
        "if (count > 0) child<<<1, 32>>>(out, begin, count); else out[v] = 0;",
        "if (count > 0) child<<<1, 32, 0, ",
    );
}

#[test]
fn assumptions() {
    let many = becomes("child<<<1, 32>>>(out, begin, count);", "Forget");
    assert_eq!(many.len(), 1);
    assert!(many[0].contains("different threads of a block"));
    let looped = becomes("for (int k = 0; k < 4; ++k) child<<<1, 32>>>(out, begin, k);", "Forget");
    assert!(looped.iter().any(|a| a.contains("successive iterations")));
    let two = becomes(
        r#"child<<<1, 32>>>(out, begin, count);
    child<<<2, 32>>>(out, begin, count);"#,
        "Forget",
    );
    assert!(two.iter().any(|a| a.contains("other grids that `parent` launches")));
}

#[test]
fn a_single_launch_of_a_block_needs_no_assumption() {
    let text = r#"__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }
__global__ void parent(int* out) {
    if (threadIdx.x == 0) child<<<1, 32>>>(out);
}
"#;
    let launched = |text: &str, block: &str| {
        format!("{text}void run(int* out, int n, dim3 block) {{ parent<<<4, {block}>>>(out); }}\n")
    };
    for block in ["n", "64"] {
        assert!(rewrite(ID, &launched(text, block)).assumes.is_empty());
    }
    // Which blocks it has isn't in sight.
    for unknown in [text.to_owned(), launched(text, "block")] {
        let assumes = rewrite(
            ID,
            &unknown.replace("int* out) { parent", "int* out, dim3 block) { parent"),
        )
        .assumes;
        assert!(
            assumes.len() == 1 && assumes[0].contains("blocks of `parent` have one dimension"),
            "{assumes:?}"
        );
    }
    let two = rewrite(ID, &launched(text, "dim3(8, 4)")).assumes;
    assert!(
        two.iter().any(|a| a.contains("different threads of a block")),
        "{two:?}"
    );
    let looped = r#"__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }
__global__ void parent(int* out) {
    for (int i = 0; i < 3; ++i)
        if (threadIdx.x == 0) child<<<1, 32>>>(out);
}
"#;
    assert_eq!(rewrite(ID, &launched(looped, "64")).assumes.len(), 1);
    let device = r#"__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }
__device__ void helper(int* out) {
    if (threadIdx.x == 0) child<<<1, 32>>>(out);
}
"#;
    // Who calls it isn't in sight, so nothing is known of what else they launch.
    assert_eq!(
        rewrite(ID, device).assumes.len(),
        4,
        "{:#?}",
        rewrite(ID, device).assumes
    );
    let callee = r#"__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }
__device__ void helper(int* out) { child<<<1, 32>>>(out); }
__global__ void parent(int* out) {
    if (threadIdx.x == 0) { $0child<<<1, 32>>>(out); helper(out); }
}
"#;
    assert_eq!(rewrite(ID, &launched(callee, "64")).assumes.len(), 1);
}

#[test]
fn threads_that_take_turns() {
    let program = |place: &str, inside: &str| {
        format!(
            r#"__global__ void child(int* out, int k) {{ out[threadIdx.x] = out[threadIdx.x] * 3 + k; }}
__global__ void parent(int* out, int n, int leader) {{
    int outside = n % 32;
    for (int k = 0; k < 32; ++k) {{
        int inside = k * 1;
        if ({inside}) child<<<1, 32>>>(out + {place}, k);
    }}
}}
void run(int* out, int n) {{ parent<<<64, 32>>>(out, n, 3); }}
"#
        )
    };
    // They write in the same places, so it is refused where they are seen to be several.
    let by_threads = |place: &str, inside: &str| {
        let result = rewrite_files(ID, &[("a.cu", &program(place, inside))], &[]);
        let said = result.map_or_else(|refused| refused, |rewritten| rewritten.assumes);
        said.iter().any(|a| a.contains("different threads of a block"))
    };
    for inside in [
        "threadIdx.x == k",
        "threadIdx.x == inside",
        "threadIdx.x == (unsigned)k % 32",
        "!(threadIdx.x != k)",
        "threadIdx.x == out[0]",
    ] {
        assert!(by_threads("32 * blockIdx.x", inside), "{inside}");
        // Each thread has memory of its own.
        assert!(
            !by_threads("32 * (blockIdx.x * blockDim.x + threadIdx.x)", inside),
            "{inside}"
        );
    }
    for inside in [
        "threadIdx.x == 0",
        "threadIdx.x == leader",
        "threadIdx.x == outside",
        "threadIdx.x == leader % 32 && k > 3",
    ] {
        assert!(!by_threads("32 * blockIdx.x", inside), "{inside}");
    }
}

#[test]
fn assumptions_that_are_proven() {
    let parent = |child: &str, launch: &str| {
        format!(
            r#"__global__ void child(int* out, int n) {{ int i = threadIdx.x; {child} }}
__global__ void parent(int* out, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    {launch}
}}
void run(int* out, int n) {{ parent<<<64, 128>>>(out, n); }}
"#
        )
    };
    let assumes = |child: &str, launch: &str| rewrite(ID, &parent(child, launch)).assumes;
    for child in ["atomicAdd(&out[i], n);", "out[i] = 1;"] {
        let launch = "for (int k = 0; k < n; ++k) child<<<1, 32>>>(out, k);";
        assert!(assumes(child, launch).is_empty(), "{child}");
    }
    assert!(assumes("out[i] += n;", "child<<<1, 32>>>(out + v * 32, n);").is_empty());
    let twice = r#"child<<<1, 32>>>(out + v * 64, n);
    child<<<1, 32>>>(out + v * 64 + 32, n);"#;
    // Each pair of threads would have to be looked at for its own.
    assert_eq!(assumes("out[i] += n;", twice).len(), 1);
    // What speaks against it is shown.
    let meet = assumes("out[i] += n;", "child<<<1, 32>>>(out + v * 31, n);");
    assert_eq!(meet.len(), 1);
    assert!(
        meet[0].contains("different threads of a block")
            && meet[0].ends_with("; the code contradicts it: line 1 changes `out[i]` in each of them"),
        "{meet:?}"
    );
    let slot = assumes("out[atomicAdd(&out[0], 1)] = n;", "child<<<1, 32>>>(out, n);");
    assert!(
        slot[0].ends_with(": line 1 updates atomically `atomicAdd(&out[0], 1)` in each of them"),
        "{slot:?}"
    );
    let mixed = assumes(
        "if (i == 0) out[1] = out[0] = n;",
        "if (v < 32) child<<<1, 32>>>(out + v, n);",
    );
    assert!(mixed[0].contains("; check it: line 1 "), "{mixed:?}");
}

#[test]
fn the_child_need_not_be_known() {
    let text = r#"template <class T> __global__ void other(T* out);
__global__ void parent(float* out) { other<float><<<1, 32>>>(out); }
"#;
    rewrite(ID, text).has(&["other<float><<<1, 32, 0, cudaStreamFireAndForget>>>(out)"]);
}

#[test]
fn line_ends_and_comments_stay() {
    let text = program(
        r#"child<<<1, // grid
            32>>>(out, begin, count); // go"#,
    )
    .replace('\n', "\r\n");
    rewrite(ID, &text)
        .has(&["child<<<1, // grid\r\n            32, 0, cudaStreamFireAndForget>>>(out, begin, count); // go\r\n"]);
}

#[test]
fn refusals() {
    let refuse = |launch: &str, reason: &str| refuses(ID, &program(launch), reason);
    refuse(
        "child<<<1, 32, 0, cudaStreamFireAndForget>>>(out, begin, count);",
        "already",
    );
    refuse(
        "child<<<1, 32, 0, cudaStreamTailLaunch>>>(out, begin, count);",
        "a tail launch runs after",
    );
    refuse(
        "child<<<1, 32, 0, cudaStreamPerThread>>>(out, begin, count);",
        "cudaStreamPerThread",
    );
    refuse(
        "child<<<1, 32, 0, streams[v]>>>(out, begin, count);",
        "which stream it goes into isn't known",
    );
    refuse(
        r#"cudaStream_t s;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    child<<<1, 32, 0, s>>>(out, begin, count);"#,
        "a stream of its own already",
    );
    refuse(
        r#"child<<<1, 32>>>(out, begin, count);
    cudaDeviceSynchronize();"#,
        "waits for its children with cudaDeviceSynchronize()",
    );
    refuse(
        r#"child<<<1, 32>>>(out, begin, count);
    cudaEventRecord(event, 0);"#,
        "orders streams by events",
    );
    refuse(
        r#"auto go = [&] { child<<<1, 32>>>(out, begin, count); };
    go();"#,
        "lambda",
    );
    refuses(
        ID,
        &program("").replace("parent<<<", "$0parent<<<"),
        "the host launches it",
    );
    refuses(
        ID,
        r#"__global__ void child(int* out) {}
__device__ void wait() { cudaDeviceSynchronize(); }
__global__ void parent(int* out) { child<<<1, 32>>>(out); wait(); }
"#,
        "a function it calls waits for its children with cudaDeviceSynchronize()",
    );
    refuse(
        "child<<<1, 32>>>(out, begin, count);\n    out[v] = @ 3;",
        "isn't understood completely",
    );
}
