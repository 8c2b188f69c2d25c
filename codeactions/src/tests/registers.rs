//! Parents of blocks whose size isn't known, which come to need some registers more.

use super::rewrite;

const ASSUMED: &str = "blocks of `parent` have at most 256 threads (the rewritten kernel may need more registers)";

/// A program whose parent runs this code, in blocks of so many threads.
fn program(helpers: &str, code: &str, block: &str) -> String {
    format!(
        r#"{helpers}
__global__ void child(int* out, int n) {{ out[threadIdx.x] = n; }}
__global__ void parent(int* out, const float* x, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    {code}
    child<<<1, 32, 0, cudaStreamFireAndForget>>>(out + 32 * v, n + int(sum));
}}
void run(int* out, const float* x, int threads, int n) {{
    parent<<<1, {block}>>>(out, x, 3);
}}
"#
    )
}

const LARGE: &str = "float a[48]; for (int i = 0; i < 48; ++i) a[i] = x[v + i]; for (int i = 0; i < n; ++i) \
                     for (int k = 0; k < 48; ++k) a[k] *= a[(k + i) % 48]; for (int k = 0; k < 48; ++k) sum += a[k];";

fn assumes(id: &str, text: &str) -> bool {
    rewrite(id, text).assumes.iter().any(|a| a == ASSUMED)
}

#[test]
fn large_kernels_in_blocks_of_any_size() {
    const UNSEEN: &str = "__device__ float far(float x);";
    const SEEN: &str = "__device__ float twice(float x) { float two = 2; return two * x; }";
    for id in ["aggregate-block", "aggregate-grid"] {
        assert!(assumes(id, &program("", LARGE, "threads")));
        assert!(assumes(id, &program(UNSEEN, "sum = far(x[v]);", "threads")));
        for (helpers, code) in [
            ("", "for (int i = 0; i < n; ++i) sum += x[i];"),
            (SEEN, "sum = twice(x[v]);"),
            ("", ""),
        ] {
            assert!(!assumes(id, &program(helpers, code, "threads")), "{code}");
        }
        // Blocks whose size is known, and launch bounds.
        for block in ["256", "96", "1024"] {
            assert!(!assumes(id, &program("", LARGE, block)), "{block}");
        }
        let bounded = program("", LARGE, "threads").replace("void parent", "void __launch_bounds__(512) parent");
        assert!(!assumes(id, &bounded));
    }
}

#[test]
fn children_whose_code_comes_to_the_parent() {
    let text = program("", "", "threads");
    for id in ["threshold", "serialize"] {
        assert!(!assumes(id, &text));
        let large = text.replace(
            "{ out[threadIdx.x] = n; }",
            &format!(
                "{{ int v = n; const float* x = (const float*)out; float sum = 0; {LARGE} out[threadIdx.x] = sum; }}"
            ),
        );
        assert!(assumes(id, &large));
        assert!(!assumes(id, &large.replace("<<<1, threads>>>", "<<<1, 128>>>")));
    }
}
