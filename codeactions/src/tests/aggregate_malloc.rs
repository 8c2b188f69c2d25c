//! `aggregate-malloc`

use super::{Rewritten, refuses, refuses_files, rewrite, rewrite_files};

const ID: &str = "aggregate-malloc";

/// A program whose parent allocates by `allocate` and whose other kernel frees by `release`.
fn program(allocate: &str, release: &str) -> String {
    format!(
        "struct Node {{ int value; Node* next; }};\nstruct Made {{ int value = 3; }};\n__device__ int* lists[100];\n\n\
         __global__ void child(int* list, int n) {{\n    if (threadIdx.x < n) list[threadIdx.x] = n;\n}}\n\n\
         __global__ void parent(const int* counts, int n) {{\n    int v = blockIdx.x * blockDim.x + threadIdx.x;\n    if (v >= n) return;\n    \
         int count = counts[v];\n    {allocate}\n    child<<<1, 32>>>(lists[v], count);\n}}\n\n\
         __global__ void release(int n) {{\n    int v = threadIdx.x;\n    {release}\n}}\n\nint main() {{\n    int* host = (int*)malloc(4);\n    \
         parent<<<1, 64>>>(nullptr, 64);\n    release<<<1, 64>>>(64);\n    free(host);\n    return 0;\n}}\n"
    )
}

const MALLOC: &str = "lists[v] = (int*)malloc(count * 4);";

fn with(text: &str, options: &[(&str, &str)]) -> Result<Rewritten, Vec<String>> {
    rewrite_files(ID, &[("a.cu", text)], options)
}

#[test]
fn every_way_to_allocate() {
    let result = rewrite(ID, &program(MALLOC, "if (v < n) ::free(lists[v]);"));
    result.has(&[
        "lists[v] = (int*)gridfuse::malloc_together(count * 4);",
        "if (v < n) gridfuse::free_together(lists[v]);",
        "int* host = (int*)malloc(4);",
        "    free(host);",
    ]);
    assert_eq!(result.assumes.len(), 1);
    rewrite(ID, &program("lists[v] = new int[count + 1];", "delete [] lists[v];")).has(&[
        "lists[v] = gridfuse::new_together<int>(count + 1);",
        "    gridfuse::free_together(lists[v]);",
    ]);
    rewrite(
        ID,
        &program(
            "Node* node = new Node;\n    lists[v] = &node->value;",
            "delete (Node*)lists[v];",
        ),
    )
    .has(&[
        "Node* node = gridfuse::new_together<Node>(1);",
        "gridfuse::free_together((Node*)lists[v]);",
    ]);
    rewrite(ID, &program("cudaMalloc(&lists[v], count * 4);", "cudaFree(lists[v]);")).has(&[
        "    gridfuse::cuda_malloc_together(&lists[v], count * 4);",
        "    gridfuse::cuda_free_together(lists[v]);",
    ]);
    // Only what the launching kernel uses is changed.
    rewrite(
        ID,
        &program(
            MALLOC,
            "free(lists[v]);\n    int* more = new int[3];\n    delete[] more;",
        ),
    )
    .has(&["int* more = new int[3];\n    delete[] more;"]);
}

#[test]
fn blocks() {
    let block = [("granularity", "block")];
    let early = with(&program(MALLOC, "free(lists[v]);"), &block);
    early
        .unwrap_or_else(|r| panic!("{r:#?}"))
        .has(&["(int*)gridfuse::malloc_together_in_block(count * 4)"]);
    let refused = |allocate: &str| {
        let result = with(&program(allocate, "free(lists[v]);"), &block);
        let reasons = result.err().unwrap_or_default().join("\n");
        assert!(
            reasons.contains("not all threads of a block of `parent` come"),
            "{reasons}"
        );
    };
    refused("if (count > 0) lists[v] = (int*)malloc(count * 4);");
    refused("lists[v] = count > 0 ? (int*)malloc(count * 4) : nullptr;");
    refused("for (int k = 0; k < 3; ++k) lists[v] = (int*)malloc(count * 4);");
    let wrong = with(&program(MALLOC, ""), &[("granularity", "grid")])
        .err()
        .unwrap_or_default();
    assert_eq!(wrong, ["`granularity` is `warp` or `block`, not `grid`"]);
}

#[test]
fn several_files() {
    let header = "#pragma once\n__device__ void give_back(int* list);\n";
    let other = "#include \"lists.cuh\"\n__device__ void give_back(int* list) { free(list); }\n";
    let separate = "__global__ void own(int* p) { free(p); }\nint main() {}\n";
    let main = format!("#include \"lists.cuh\"\n{}", program(MALLOC, "give_back(lists[v]);"));
    let files = [
        ("a.cu", main.as_str()),
        ("lists.cuh", header),
        ("lists.cu", other),
        ("another_program.cu", separate),
    ];
    let result = rewrite_files(ID, &files, &[]).unwrap_or_else(|r| panic!("{r:#?}"));
    let text = |name: &str| result.files.get(name).map_or("", String::as_str);
    assert_eq!(
        text("lists.cu"),
        "#include \"lists.cuh\"\n#include \"gridfuse.cuh\"\n__device__ void give_back(int* list) { gridfuse::free_together(list); }\n"
    );
    assert_eq!(text("another_program.cu"), separate);
    assert_eq!(text("lists.cuh"), header);
    refuses_files(
        ID,
        &[("a.cu", main.as_str()), ("lists.cuh", header)],
        "`give_back`, of which no definition is in sight",
    );
}

#[test]
fn refusals() {
    let refuse = |allocate: &str, release: &str, reason: &str| refuses(ID, &program(allocate, release), reason);
    refuse("lists[v] = nullptr;", "", "`parent` allocates no memory");
    refuse(
        "lists[v] = &(new Made)->value;",
        "",
        "`Made` may have to be constructed",
    );
    refuse("lists[v] = new int[count]();", "", "only `new T` and `new T[n]` are");
    refuse("lists[v] = new int(3);", "", "only `new T` and `new T[n]` are");
    refuse(MALLOC, "auto f = [&] { free(lists[v]); };\n    f();", "in a lambda");
    refuse(
        MALLOC,
        "void (*f)(void*) = free;\n    f(lists[v]);",
        "uses `free` in a way",
    );
    refuse(
        MALLOC,
        "mystery(lists[v]);",
        "`mystery`, of which no definition is in sight, which may free",
    );
    refuse(MALLOC, "\n#ifdef X\n    free(lists[v]);\n#endif", "under an #if");
    let text = program(MALLOC, "FREE(lists[v]);");
    refuses(
        ID,
        &format!("#define FREE(p) free(p)\n{text}"),
        "the macro `FREE` allocates or frees",
    );
    let text = program(MALLOC, "both(lists[v]);");
    let both = format!("__host__ __device__ void both(int* p) {{ free(p); }}\n{text}");
    refuses(ID, &both, "may run on the host as well");
    let text = program("", "").replace(
        "    parent<<<1, 64>>>(nullptr, 64);",
        "    $0parent<<<1, 64>>>(nullptr, 64);",
    );
    refuses(ID, &text, "the host launches it");
    let without_main = program(MALLOC, "free(lists[v]);").replace("int main()", "int run()");
    assert_eq!(rewrite(ID, &without_main).assumes.len(), 2);
}
