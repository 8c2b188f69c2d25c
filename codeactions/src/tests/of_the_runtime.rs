//! What the runtime header takes, and what gets in its way.

use super::{program, refuses, rewrite, with_child};

const LAUNCH: &str = "child<<<2, 32>>>(out, begin, count);";

#[test]
fn macros_with_names_of_the_runtime() {
    for (defined, name) in [
        ("#define launch(x) (x + 1)\n", "launch"),
        ("#define launch start\n", "launch"),
        ("#define for_each_block each_block\n", "for_each_block"),
        ("#ifdef OTHER\n#define launch start\n#endif\n", "launch"),
    ] {
        let text = program(LAUNCH).replacen("__global__", &format!("{defined}__global__"), 1);
        for id in ["aggregate-block", "aggregate-grid", "aggregate-warp"] {
            refuses(
                id,
                &text,
                &format!("the macro `{name}` has the name of something in the runtime header"),
            );
        }
        rewrite("coarsen", &text);
    }
    // Macros with other names, and with those of generated variables.
    for defined in ["#define blocks 2\n", "#define arena 7\n", "#define launcher 1\n"] {
        let text = program(LAUNCH).replacen("__global__", &format!("{defined}__global__"), 1);
        rewrite("aggregate-block", &text);
    }
}

#[test]
fn arguments_that_are_aligned_to_more_than_there_is() {
    let child = |class: &str| {
        let child = format!(
            "{class}\n__global__ void child(int* out, Big big, int count) {{ out[threadIdx.x] = big.v + count; }}\n"
        );
        with_child(&child, "Big big; big.v = begin; child<<<1, 32>>>(out, big, count);")
    };
    for class in [
        "struct alignas(256) Big { int v; };",
        "struct Big { alignas(512) int v; };",
        "struct __align__(256) Big { int v; };",
    ] {
        refuses(
            "aggregate-block",
            &child(class),
            "which is aligned to more than 128 bytes",
        );
    }
    let nested = "struct alignas(256) Line { int v; }; struct Big { Line line; int v; };";
    refuses(
        "aggregate-block",
        &child(nested),
        "whose field `line` isn't known to be plain",
    );
    for class in [
        "struct alignas(128) Big { int v; };",
        "struct Big { alignas(16) int v; };",
    ] {
        rewrite("aggregate-block", &child(class));
    }
}
