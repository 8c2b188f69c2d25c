//! `aggregate-atomics`

use super::{program, refuses, rewrite, with_child};

const ID: &str = "aggregate-atomics";

const LAUNCH: &str = "if (count > 0) child<<<(count + 31) / 32, 32>>>(out, begin, count);";

const NONE: &str = "`child` has no atomic statement whose address depends on its arguments alone";

/// The program with a child of these parameters and with this code, behind the thread's number.
fn with(parameters: &str, code: &str) -> String {
    let child = format!(
        r#"struct Pair {{ unsigned long long x, y; }};
__device__ int total;

__global__ void child({parameters}) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {code}
}}
"#
    );
    with_child(&child, LAUNCH)
}

const PLAIN: &str = "int* out, int begin, int count";

#[test]
fn places_that_the_arguments_decide() {
    for (parameters, code, combined) in [
        (
            PLAIN,
            "if (i < count) atomicAdd(&out[begin], i);",
            "if (i < count) gridfuse::warp_aggregated::atomicAdd(&out[begin], i);",
        ),
        (
            PLAIN,
            "atomicMin(out + begin, i);",
            "gridfuse::warp_aggregated::atomicMin(out + begin, i);",
        ),
        (
            PLAIN,
            "atomicXor(&out[2 * (begin + 1)], i);",
            "gridfuse::warp_aggregated::atomicXor(&out[2 * (begin + 1)], i);",
        ),
        (
            PLAIN,
            "if (out[i] == 3) atomicAdd(&out[begin], 1);",
            "if (out[i] == 3) gridfuse::warp_aggregated::atomicAdd(&out[begin], 1);",
        ),
        (
            PLAIN,
            "atomicAdd(&total, i);",
            "gridfuse::warp_aggregated::atomicAdd(&total, i);",
        ),
        (
            PLAIN,
            "for (int k = 0; k < i; ++k) atomicOr(out, k);",
            "gridfuse::warp_aggregated::atomicOr(out, k);",
        ),
        (
            "Pair* out, int begin, int count",
            "atomicAdd(&out[begin].y, 3ull);",
            "gridfuse::warp_aggregated::atomicAdd(&out[begin].y, 3ull);",
        ),
        (
            "Pair* out, int begin, int count",
            "atomicMax(&out->x, 3ull);",
            "gridfuse::warp_aggregated::atomicMax(&out->x, 3ull);",
        ),
    ] {
        let result = rewrite(ID, &with(parameters, code));
        result.has(&[combined, "#include \"gridfuse.cuh\""]);
        assert!(result.assumes.is_empty());
    }
    // All of them, and no others.
    let several = with(
        PLAIN,
        r#"atomicAdd(&out[begin], i);
    atomicAdd(&out[i], i);
    atomicSub(&out[begin + 1], i);"#,
    );
    rewrite(ID, &several).has(&[r#"gridfuse::warp_aggregated::atomicAdd(&out[begin], i);
    atomicAdd(&out[i], i);
    gridfuse::warp_aggregated::atomicSub(&out[begin + 1], i);"#]);
}

#[test]
fn many_threads_that_are_left_are_combined() {
    for code in [
        "if (count != 0) return;",
        "if (i >= count) return;",
        "if (blockIdx.x != 0) return;",
        "if (threadIdx.x != 0) out[i] = 1;",
        "if (out[i] != 0) return;",
        "{ if (threadIdx.x != 0) return; }",
        "if (threadIdx.x % 32 > 7) return;",
        "int flag = count;\n    if (flag != 0) return;",
        // A row of a block of two dimensions.
        "if (threadIdx.y != 0) return;\n    out[threadIdx.x] = 1;",
    ] {
        let text = with(PLAIN, &format!("{code}\n    atomicAdd(&out[begin], 1);"));
        rewrite(ID, &text).has(&["    gridfuse::warp_aggregated::atomicAdd(&out[begin], 1);"]);
    }
}

#[test]
fn others_are_left() {
    for (parameters, code) in [
        (PLAIN, "atomicAdd(&out[begin + i], 1);"),
        (PLAIN, "atomicAdd(&out[blockIdx.x], 1);"),
        (PLAIN, "atomicAdd(&out[out[begin]], 1);"),
        (PLAIN, "begin += i;\n    atomicAdd(&out[begin], 1);"),
        (PLAIN, "int place = i;\n    atomicAdd(&out[place], 1);"),
        (PLAIN, "out[i] = atomicAdd(&out[begin], 1);"),
        (PLAIN, "if (atomicSub(&out[begin], 1) == 1) out[i] = 1;"),
        (PLAIN, "atomicExch(&out[begin], i);"),
        (PLAIN, "if (threadIdx.x == 0) atomicAdd(&out[begin], 1);"),
        (PLAIN, "if (count > 0 && i % 32 == 0) { atomicAdd(&out[begin], 1); }"),
        (
            PLAIN,
            r#"if (threadIdx.x != 0) return;
    atomicAdd(&out[begin], 1);"#,
        ),
        (
            PLAIN,
            r#"if (i != 0) return;
    for (int k = 0; k < 3; ++k) atomicAdd(&out[begin], 1);"#,
        ),
        (
            PLAIN,
            r#"int t = threadIdx.y * blockDim.x + threadIdx.x;
    if (count < 2 || t != 0) {
        return;
    }
    atomicAdd(&out[begin], 1);"#,
        ),
        (PLAIN, "if (threadIdx.x > 0) return;\n    atomicAdd(&out[begin], 1);"),
        (
            PLAIN,
            r#"if (threadIdx.x != 0)
        return;
    else
        atomicAdd(&out[begin], 1);"#,
        ),
        (
            PLAIN,
            r#"const bool leader = threadIdx.x == 0;
    if (leader && count > 0) atomicAdd(&out[begin], 1);"#,
        ),
        (PLAIN, "atomicCAS(&out[begin], 0, i);"),
        (PLAIN, "__shared__ int sum;\n    atomicAdd(&sum, i);"),
        ("float* out, int begin, int count", "atomicAdd(&out[begin], 1.0f);"),
        ("double* out, int begin, int count", "atomicAdd(out + begin, 1.0);"),
    ] {
        refuses(ID, &with(parameters, code), NONE);
    }
    let own = with(PLAIN, "atomicAdd(&out[begin], i);").replace(
        "struct Pair",
        r#"__device__ void atomicAdd(int* place, int value) { *place = value; }
struct Pair"#,
    );
    refuses(ID, &own, NONE);
    let in_macro =
        with(PLAIN, "ADD(&out[begin], i);").replace("struct Pair", "#define ADD(a, b) atomicAdd(a, b)\nstruct Pair");
    refuses(ID, &in_macro, NONE);
    refuses(ID, &program(LAUNCH), NONE);
}

#[test]
fn fences_are_those_of_the_thread_that_does_it() {
    for code in [
        "__threadfence();",
        "publish();",
        "asm volatile(\"membar.gl;\");",
        "cuda::atomic_thread_fence(0);",
    ] {
        let text = with(
            PLAIN,
            &format!(
                r#"out[i] = 1;
    {code}
    atomicAdd(&out[begin], 1);"#
            ),
        )
        .replace(
            "struct Pair",
            r#"__device__ void publish() { __threadfence_system(); }
struct Pair"#,
        );
        refuses(ID, &text, "fence");
    }
}

#[test]
fn what_is_combined_is_no_obstacle() {
    let first = rewrite(ID, &with(PLAIN, "if (i < count) atomicAdd(&out[begin], i);"));
    let marked = first.text().replace("child<<<", "$0child<<<");
    refuses(ID, &marked, NONE);
    let plain = with(PLAIN, "if (i < count) atomicAdd(&out[begin], i);");
    for id in [
        "aggregate-grid-stream",
        "aggregate-block",
        "threshold",
        "serialize",
        "coarsen",
    ] {
        let result = rewrite(id, &marked);
        result.has(&["if (i < count) gridfuse::warp_aggregated::atomicAdd(&out[begin], i);"]);
        assert_eq!(result.assumes, rewrite(id, &plain).assumes, "{id}");
        // The body may have been moved before.
        if let Some(at) = result.text().find("child<<<") {
            let moved = rewrite(id, &plain).text().to_owned();
            let launch = moved.rfind("child<<<").unwrap_or(at);
            let marked = format!("{}$0{}", &moved[..launch], &moved[launch..]);
            rewrite(ID, &marked).has(&["gridfuse::warp_aggregated::atomicAdd(&out[begin], i);"]);
        }
    }
}
