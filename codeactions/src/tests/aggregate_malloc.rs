//! `aggregate-malloc`

use super::{Rewritten, refuses, refuses_files, rewrite, rewrite_files};

const ID: &str = "aggregate-malloc";

/// A program whose parent allocates by `allocate` and whose other kernel frees by `release`.
fn program(allocate: &str, release: &str) -> String {
    format!(
        r#"struct Node {{ int value; Node* next; }};
struct Made {{ int value = 3; }};
__device__ int* lists[100];

__global__ void child(int* list, int n) {{
    if (threadIdx.x < n) list[threadIdx.x] = n;
}}

__global__ void parent(const int* counts, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int count = counts[v];
    {allocate}
    child<<<1, 32>>>(lists[v], count);
}}

__global__ void release(int n) {{
    int v = threadIdx.x;
    {release}
}}

int main() {{
    int* host = (int*)malloc(4);
    parent<<<1, 64>>>(nullptr, 64);
    release<<<1, 64>>>(64);
    free(host);
    return 0;
}}
"#
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
            r#"free(lists[v]);
    int* more = new int[3];
    delete[] more;"#,
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
    refused(
        r#"if (v & 1) goto end;
    lists[v] = (int*)malloc(count * 4);
end:;"#,
    );
    let wrong = with(&program(MALLOC, ""), &[("granularity", "grid")])
        .err()
        .unwrap_or_default();
    assert_eq!(wrong, ["`granularity` is `warp` or `block`, not `grid`"]);
}

#[test]
fn several_files() {
    let header = "#pragma once\n__device__ void give_back(int* list);\n";
    let other = r#"#include "lists.cuh"
__device__ void give_back(int* list) { free(list); }
"#;
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
        r#"#include "lists.cuh"
#include "gridfuse.cuh"
__device__ void give_back(int* list) { gridfuse::free_together(list); }
"#
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
    refuse(
        MALLOC,
        r#"
#ifdef X
    free(lists[v]);
#endif"#,
        "under an #if",
    );
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

#[test]
fn what_is_not_in_the_body_of_a_function_that_is_understood() {
    let with_release = |before: &str, release: &str| {
        program(MALLOC, release).replacen(
            "__global__ void release",
            &format!("{before}__global__ void release"),
            1,
        )
    };
    let refuse = |before: &str, release: &str, word: &str| {
        refuses(
            ID,
            &with_release(before, release),
            &format!("`{word}` may allocate or free device memory in a way that is not understood"),
        );
    };
    let tag = "struct Tag { int* p; __device__ operator bool() { free(p); return true; } };\n";
    refuse(tag, "if (Tag{lists[v]}) lists[v] = nullptr;", "free");
    let rel = r#"#define RELEASE(T) template <> struct Rel<T> { static __device__ void go(T* p) { free(p); } };
template <class T> struct Rel; RELEASE(int)
"#;
    refuse(rel, "Rel<int>::go(lists[v]);", "RELEASE");
    let drop = r#"#define DEFINE(name) __device__ void name(int* p) { free(p); }
DEFINE(drop)
"#;
    refuse(drop, "drop(lists[v]);", "DEFINE");
    // A use of a macro without a `;` doesn't hide what stands behind it.
    for before in [
        "#define NOTE(x)\nNOTE(releases everything)\n",
        r#"#define CONSTANT(name) __device__ const int name = 7;
CONSTANT(kSeven)
"#,
    ] {
        rewrite(ID, &with_release(before, "free(lists[v]);")).has(&["    gridfuse::free_together(lists[v]);\n"]);
    }
    refuse(
        "struct Buf { int* p = (int*)malloc(64); };\n",
        "Buf b;\n    lists[v] = b.p;",
        "malloc",
    );
    let get = "__device__ int* get(int n, int* p = (int*)malloc(64)) { p[0] = n; return p; }\n";
    refuse(get, "lists[v] = get(v);", "malloc");
    let macro_body = with_release("#define BODY { free(lists[threadIdx.x]); }\n", "").replacen(
        "release(int n) {\n    int v = threadIdx.x;\n    \n}",
        "release(int n) BODY",
        1,
    );
    assert!(macro_body.contains("release(int n) BODY"));
    refuses(ID, &macro_body, "`BODY` may allocate or free");
    let lambda = with_release("template <class F> __global__ void each(F f) { f(threadIdx.x); }\n", "").replacen(
        "    free(host);",
        "    each<<<1, 64>>>([=] __device__ (int v) { free(lists[v]); });",
        1,
    );
    refuses(ID, &lambda, "`free` may allocate or free");
    // What the host does is its own; names of members aren't calls.
    rewrite(
        ID,
        &with_release(
            r#"#define DROP(p) free(p)
struct Host {
    Host(const Host&) = delete;
    ~Host() { DROP(data); }
    void* data;
    void free(int);
    int malloc;
};
#ifdef NEVER
#endif
#include <new>
"#,
            "::free(lists[v]);",
        ),
    );
}

#[test]
fn names_that_mean_something_else() {
    let other = "namespace x { template <class T> __device__ void free(T* p) { *p = 1; } }\n";
    let with_other = |release: &str| format!("{other}{}", program(MALLOC, release));
    rewrite(ID, &with_other("::free(lists[v]);")).has(&["    gridfuse::free_together(lists[v]);"]);
    rewrite(ID, &with_other("x::free(lists[v]);\n    ::free(lists[v]);")).has(&["    x::free(lists[v]);\n"]);
    refuses(
        ID,
        &with_other("free(lists[v]);"),
        "uses `free` in a way that is not understood",
    );
    // A template parameter has the name of a class.
    let make = r#"struct T { int x; };
template <class T> __device__ T* make() { return new T; }
"#;
    let text = program(
        "lists[v] = new int;",
        "delete lists[v];\n    lists[v] = (int*)make<Made>();",
    );
    refuses(ID, &format!("{make}{text}"), "`T` may have to be constructed");
    let text = program("Two* two = new Two;\n    lists[v] = &two->a;", "delete (Two*)lists[v];");
    rewrite(ID, &format!("typedef struct Two {{ int a, b; }} Two;\n{text}"));
    refuses(
        ID,
        &format!(
            r#"struct Two {{ int a, b; }};
namespace x {{ using Two = Made; }}
{text}"#
        ),
        "`Two` may have to be constructed",
    );
    // A pointer to a function in the arguments of a call that is seen.
    refuses(
        ID,
        &program("lists[v] = (int*)malloc(size_of(free));", "free(lists[v]);"),
        "uses `free` in a way that is not understood",
    );
    // Not a placement.
    let text = program("lists[v] = new int;", "Buf b;\n    lists[v] = b.p;");
    refuses(
        ID,
        &format!("struct Buf {{ int* p = new (int); }};\n{text}"),
        "`new` may allocate or free device memory",
    );
    let text = program("lists[v] = new int;", "new (lists[v]) int;\n    delete lists[v];");
    rewrite(
        ID,
        &format!(
            r#"#include <new>
struct No {{ No() = delete; }};
{text}"#
        ),
    );
}
