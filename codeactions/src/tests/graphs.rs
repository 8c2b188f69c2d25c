//! Launches that are captured into a graph, which then has memory of its own.

use super::{refuses, rewrite};

const ID: &str = "aggregate-block";

/// A program of which the host does this, with the launch in `launch`, a call.
fn program(code: &str) -> String {
    format!(
        r#"__global__ void child(int* out, int n) {{ out[threadIdx.x] = n; }}
__global__ void parent(int* out, int n) {{ child<<<1, 32, 0, cudaStreamFireAndForget>>>(out + 32 * threadIdx.x, n + threadIdx.x); }}
void launch(int* out, cudaStream_t s) {{ parent<<<1, 32, 0, s>>>(out, 3); }}
void run(int* out, cudaStream_t s) {{
    cudaGraphExec_t exec, other;
    {code}
}}
"#
    )
}

const CAPTURE: &str = "cudaGraph_t graph;\n    cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);\n    launch(out, s);\n    \
                       cudaStreamEndCapture(s, &graph);\n";

const ASSUMED: &str = "are instantiated once at a time";

#[test]
fn graphs_that_are_instantiated_once() {
    let once = "cudaGraphInstantiate(&exec, graph, 0); cudaGraphLaunch(exec, s); cudaGraphDestroy(graph);";
    let whole = format!("for (int i = 0; i < 3; ++i) {{ {CAPTURE} {once} cudaGraphExecDestroy(exec); }}");
    for code in ["launch(out, s);".to_owned(), format!("{CAPTURE}{once}"), whole] {
        let assumes = rewrite(ID, &program(&code)).assumes;
        assert!(!assumes.iter().any(|a| a.contains(ASSUMED)), "{code}: {assumes:?}");
    }
}

#[test]
fn graphs_of_which_it_is_not_clear() {
    for code in [
        "cudaGraphInstantiate(&exec, graph, 0); keep(graph);",
        "for (int i = 0; i < 3; ++i) cudaGraphInstantiate(&exec, graph, 0);",
        "keep(&graph);",
        "cudaGraphInstantiate(&exec, graph, 0); cudaGraphExecDestroy(exec); cudaGraphInstantiate(&other, graph, 0);",
    ] {
        let assumes = rewrite(ID, &program(&format!("{CAPTURE}{code}"))).assumes;
        assert!(assumes.iter().any(|a| a.contains(ASSUMED)), "{code}: {assumes:?}");
    }
}

#[test]
fn graphs_that_cuda_refuses() {
    for (code, why) in [
        (
            "cudaGraphInstantiate(&exec, graph, 0); cudaGraphInstantiate(&other, graph, 0);",
            "here it is the second time",
        ),
        (
            "cudaGraphExecUpdate(exec, graph, nullptr);",
            "CUDA refuses cudaGraphExecUpdate()",
        ),
        (
            "cudaGraphNode_t node; cudaGraphAddChildGraphNode(&node, whole, nullptr, 0, graph);",
            "CUDA refuses cudaGraphAddChildGraphNode()",
        ),
        (
            "cudaGraph_t again; cudaGraphClone(&again, graph);",
            "CUDA refuses cudaGraphClone()",
        ),
    ] {
        for id in [ID, "aggregate-grid", "aggregate-grid-stream"] {
            refuses(id, &program(&format!("{CAPTURE}{code}")), why);
        }
        // What runs in the launching thread takes no memory.
        rewrite("threshold", &program(&format!("{CAPTURE}{code}")));
    }
}
