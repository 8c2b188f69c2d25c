//! `outline-iteration`: programs of which it once made others, by class.

use super::outline_iteration::{around, around_beside, assumed, outlined, refused, with};

/// A loop of these statements that stands in another one; `declared` stands in front of both.
fn run_again(declared: &str, head: &str, foot: &str) -> String {
    with(
        "",
        &format!(
            r#"{declared}
    {head}
    h = 1;
    $0while (h) {{
        relax<<<n, n>>>(next, dist, flag, carried, n);
        carried++;
        cudaMemcpy(&h, flag, sizeof(int), cudaMemcpyDeviceToHost);
    }}
    {foot}"#
        ),
    )
}

/// What one run of the loop leaves, the next run begins with.
#[test]
fn loops_that_run_again() {
    let given_back = &["carried = state.carried;"];
    for (declared, head, foot) in [
        ("int carried = 0;", "for (int r = 0; r < 2; ++r) {", "}"),
        ("", "for (int carried = 0, r = 0; r < 2; ++r) {", "}"),
        ("int carried = 0;", "do {", "} while (n-- > 5);"),
    ] {
        outlined(&run_again(declared, head, foot), given_back);
    }
    // The names are short, as the call stands a level deeper.
    let jumps = run_again("int carried = 0;", "more: ;", "if (n-- > 5) goto more;");
    let jumps = jumps.replace("next", "a").replace("dist", "d");
    outlined(&jumps, given_back);
    let anew = run_again("", "for (int r = 0; r < 2; ++r) { int carried = 0;", "}");
    outlined(&anew, &["struct relax_state { int h; };", "int carried"]);
}

/// Whoever may keep a variable reads what the loop leaves in it.
#[test]
fn variables_that_something_keeps() {
    let classes = r#"#include <functional>
#include <vector>
struct View { int& value; };
struct Views { View all[1]; };
struct Guard { int& value; Guard(int& value) : value(value) {} ~Guard() { printf("%d", value); } };
struct Keep {
    int* kept = nullptr;
    Keep& operator<<(int& value) { kept = &value; return *this; }
    Keep& operator=(int& value) { kept = &value; return *this; }
    Keep& operator+=(int& value) { kept = &value; return *this; }
    int& operator[](int& value) { kept = &value; return value; }
    void keep(int& value) { kept = &value; }
};
void keep_as(Guard guard);
"#;
    let program = |declared: &str| {
        let text = around_beside(classes, "own++;");
        text.replace("$0while", &format!("int own = 0; {declared}\n    $0while"))
    };
    for declared in [
        "Guard guard{own};",
        "Guard guard(own);",
        "Guard guard = own;",
        "Guard guards[2] = {own, own};",
        "Guard* guard = new Guard(own);",
        "View view{own};",
        "View view = {own};",
        "View view{(own)};",
        "View* view = new View{own};",
        "Views views[1] = {{{own}}};",
        "struct Local { int& value; } local{own};",
        "Keep keep; keep << own;",
        "Keep keep; keep = own;",
        "Keep keep; keep += own;",
        "Keep keep; keep[own];",
        "Keep keep; keep.keep(own);",
        "std::vector<std::reference_wrapper<int>> all{own};",
        "int& first = n > 5 ? own : n;",
        "int& first = ++own;",
        "int& first = own = 5;",
        "keep_as(own);",
    ] {
        outlined(&program(declared), &["own = state.own;"]);
    }
    for declared in [
        "int twice = own * 2 + 1;",
        "own += n; own = n; --own;",
        "if (own > 5 && n) n = own;",
        "relax<<<own, 128>>>(next, dist, flag, own, n);",
        "auto copied = own; next += own; n = next[own];",
    ] {
        outlined(&program(declared), &["struct relax_state { int level; };", "int own)"]);
    }
}

/// What a macro stands for isn't in the text: no part of it can be another one there.
#[test]
fn parts_of_macros() {
    let macros = r#"__device__ int limit = 5;
__managed__ int managed = 5;
#include <cstdlib>
namespace own { const int kComputed = atoi("5"); }
#define HALF (limit / 2)
#define GO (managed > 2)
#define MOST (own::kComputed / 2)
#define SWAP_ON(a, b) (std::swap(a, b), ++a)
#define BACK(h) cudaMemcpy(&h, flag, sizeof(h), cudaMemcpyDeviceToHost)
#define CLEAR { cudaMemset(flag, 0, sizeof(int)); cudaMemset(dist, 1, 4); }
#define NEXT cudaDeviceSynchronize(); ++level
#define CHECK(call) do { if (call) printf("error"); } while (0)
#define BYTES sizeof(int)
#define FLAG ((void*)flag)
#define SIZES 4, 128
"#;
    let program = |statement: &str| {
        let text = around_beside(macros, statement);
        text.replace("$0while", "int limit = 64, p = 0, q = 1;\n    $0while")
    };
    for statement in [
        "if (level > HALF) break;",
        "relax<<<4, 128>>>(next, dist, flag, level + HALF - 3, n);",
        "if (GO) break;",
        "if (level > MOST) break;",
        "SWAP_ON(p, q);",
        "BACK(p); level += p;",
    ] {
        refused(&program(statement), "a part of the macro `");
    }
    refused(&program("CLEAR"), "a part of the macro `CLEAR`");
    refused(
        &program("relax<<<SIZES>>>(next, dist, flag, level, n);"),
        "the launch comes out of a macro",
    );
    refused(&program("NEXT;"), "is a macro of several statements");
    outlined(
        &program("cudaMemset(FLAG, 0, BYTES); CHECK(cudaMemset(dist, 1, sizeof(int)));"),
        &["rounds.fill(FLAG, 0, BYTES);", "rounds.fill(dist, 1, sizeof(int));"],
    );
}

/// The loop stands above its function then.
#[test]
fn names_above_the_function() {
    let beside = r#"template <int B> __global__ void filled(int* x) { x[threadIdx.x] = B; }
template <class T> __global__ void typed(T* x) { x[threadIdx.x] = 1; }
constexpr int N = 16;
namespace cfg { constexpr int kLimit = 2; __device__ int found; }
#define LIMIT 3
"#;
    let program = |declared: &str, statement: &str| {
        let text = around_beside(beside, statement);
        text.replace("$0while", &format!("{declared}\n    $0while"))
    };
    for (declared, statement) in [
        ("using namespace cfg;", "if (level > kLimit) break;"),
        (
            "using namespace cfg;",
            "relax<<<4, 128>>>(next, dist, flag, kLimit, n);",
        ),
        ("using namespace cfg;", "filled<kLimit><<<4, 128>>>(dist);"),
        (
            "using namespace cfg;",
            "cudaMemcpyToSymbol(found, &level, sizeof(int));",
        ),
        ("using T = int;", "typed<T><<<4, 128>>>(dist);"),
        ("\n#define INNER 2\n", "if (level > INNER) break;"),
        ("\n#undef LIMIT\n#define LIMIT 2\n", "if (level > LIMIT) break;"),
        (
            "\n#define INNER 2\n",
            "relax<<<4, 128>>>(next, dist, flag, INNER * 2, n);",
        ),
    ] {
        refused(&program(declared, statement), "means something else above `search`");
    }
    for statement in ["filled<N><<<4, 128>>>(dist);", "filled<N * 2><<<4, 128>>>(dist);"] {
        refused(
            &program("constexpr int N = 32;", statement),
            "the template argument `N` has to be a constant",
        );
        outlined(&program("", statement), &["filled_body<N"]);
    }
    for statement in [
        "constexpr int twice = own * 2; level += twice;",
        "if constexpr (own > 1) level++;",
    ] {
        refused(&program("constexpr int own = 32;", statement), "has to be a constant");
        outlined(&program("", &statement.replace("own", "N")), &[]);
    }
    for statement in ["static_assert(own == 32, \"\");", "using Q = T;"] {
        refused(
            &program("constexpr int own = 32; using T = int;", statement),
            "can't move to the device",
        );
    }
    outlined(&program("using namespace cfg;", "if (level > LIMIT) break;"), &[]);
    refused(&around("using Q = int;"), "can't move to the device");
}

/// A copy of a struct refers to the host's variables where the struct has references.
#[test]
fn fields_that_refer() {
    let classes = "struct View { int& level; int n; };\nstruct Look { const int& level; };\nstruct Size { int n, m; };";
    let program = |declared: &str, statement: &str| {
        let text = around_beside(classes, statement);
        text.replace("$0while", &format!("{declared}\n    $0while"))
    };
    for (declared, argument) in [
        ("View view{level, n};", "view.level"),
        ("View view{level, n};", "view.n"),
        ("Look view{level};", "view.level"),
        ("struct Local { int& level; } view{level};", "view.level"),
    ] {
        let launch = format!("relax<<<4, 128>>>(next, dist, flag, {argument}, n);");
        refused(
            &program(declared, &launch),
            "may be a reference to what changes in the loop",
        );
    }
    let copied = program(
        "Size size{n, 2};",
        "relax<<<4, 128>>>(next, dist, flag, size.n, size.m);",
    );
    outlined(&copied, &["Size size"]);
}

/// Memory of the host's alone is no memory of both, whatever has its pointer's name.
#[test]
fn memory_of_the_host() {
    let program = |declared: &str, statement: &str| {
        let kernel = "#include <cstdlib>";
        let text = around_beside(kernel, statement);
        text.replace("$0while", &format!("{declared}\n    $0while"))
    };
    let counts = "*count = *count + 1;";
    let managed = "int* count = nullptr; cudaMallocManaged(&count, sizeof(int));";
    outlined(
        &program(managed, counts),
        &["rounds.store(count, rounds.load(count) + 1);"],
    );
    for (declared, statement) in [
        (
            "int* count = new int(0);",
            "{ int* count = flag; relax<<<4, 128>>>(next, dist, count, level, n); }",
        ),
        (
            "int* count; if (n > 5) cudaMallocManaged(&count, 4); else count = (int*)malloc(4);",
            "",
        ),
        ("int* count = (int*)malloc(4); cudaMallocManaged(&count, 4);", ""),
    ] {
        let text = program(declared, &format!("{statement} {counts}"));
        refused(
            &text,
            "`count` isn't known to point to memory that device code can read",
        );
    }
}

/// Sizes of blocks that are read from memory may be others in each round.
#[test]
fn sizes_in_memory() {
    let managed = "__managed__ int threads = 32;\n__global__ void grow(int* x) { threads = 64; }";
    for size in ["threads", "*other", "other[1]"] {
        let text = around_beside(managed, &format!("grow<<<1, {size}>>>(flag);"));
        refused(&text, "is read from memory in each round");
    }
}

/// What the program does about errors it does once.
#[test]
fn errors_in_rounds() {
    for statement in [
        "if (cudaGetLastError() != cudaSuccess) printf(\"failed\");",
        "if (cudaDeviceSynchronize() != cudaSuccess) printf(\"failed\");",
    ] {
        let assumes = assumed(&around(statement), &[]);
        assert_eq!(
            assumes,
            ["no call of CUDA's runtime fails: the program looks for errors once, after the loop"]
        );
    }
    assert_eq!(assumed(&around(""), &[]), Vec::<String>::new());
}

/// A class says itself how it is read and written.
#[test]
fn memory_of_classes() {
    let classes = "#include <atomic>\nstruct Flag { int v; Flag& operator=(int x) { v = x + 1; return *this; } };\nusing number = unsigned;";
    let program = |declared: &str, statement: &str| {
        let text = around_beside(classes, statement);
        text.replace("$0while", &format!("{declared}\n    $0while"))
    };
    for (declared, statement) in [
        ("Flag* own; cudaMallocManaged(&own, 4);", "*own = 5;"),
        ("int** own; cudaMallocManaged(&own, 8);", "*own = 0;"),
        ("std::atomic<int>* own; cudaMallocManaged(&own, 4);", "if (*own) break;"),
    ] {
        refused(&program(declared, statement), "`own` isn't known to point to numbers");
    }
    for declared in [
        "number* own; cudaMallocManaged(&own, 4);",
        "float* own; cudaMallocManaged(&own, 4);",
    ] {
        outlined(
            &program(declared, "*own = 5; if (*own > 5) break;"),
            &["rounds.store(own, 5);"],
        );
    }
    let size = program(
        "dim3 size(2);",
        "cudaMemcpy(&size, flag, sizeof(dim3), cudaMemcpyDeviceToHost);",
    );
    refused(&size, "copies a `dim3` from the device");
}

/// What the host read in each round a kernel of the loop may have changed.
#[test]
fn values_that_kernels_may_change() {
    let beside = r#"struct Settings { int limit, most; };
__managed__ int managed_limit = 5;
__global__ void adapt(Settings* settings, int n) { settings->limit = n; }
__global__ void adapt_value(int* limit, int n) { *limit = n; }
__global__ void adapt_managed(int n) { managed_limit = n; }
__global__ void look(const Settings* settings, const int* limit, int* x) {
    *x = settings->limit + *limit;
}
"#;
    let program = |declared: &str, statements: &str, argument: &str| {
        let statements = format!("{statements} relax<<<4, 128>>>(next, dist, flag, {argument}, n);");
        let text = around_beside(beside, &statements);
        let given = text.replace(
            "int n, cudaStream_t stream)",
            "int n, cudaStream_t stream,\n           Settings* settings)",
        );
        given.replace("$0while", &format!("{declared}\n    $0while"))
    };
    let settings = "adapt<<<1, 1>>>(settings, level);";
    let value = "adapt_value<<<1, 1>>>(other, level);";
    for (declared, statements, argument) in [
        ("", settings, "settings->limit"),
        ("Settings* own = settings;", settings, "own->limit"),
        (
            "Settings* own = &settings[0];",
            "adapt<<<1, 1>>>(own, level);",
            "settings->limit",
        ),
        ("Settings& own = *settings;", settings, "own.limit"),
        ("int& limit = *other;", value, "limit"),
        ("const int& limit = other[0];", value, "limit * 2"),
        ("int* again; again = other; int& limit = *again;", value, "limit"),
        ("", "cudaMemset(settings, 0, sizeof(Settings));", "settings->limit"),
    ] {
        refused(
            &program(declared, statements, argument),
            "which the host reads in each round",
        );
    }
    for (declared, statements, argument) in [
        ("", "look<<<1, 1>>>(settings, other, dist);", "settings->limit"),
        ("int& limit = settings->limit;", value, "limit"),
        ("int* last = other + n; int& limit = *last;", value, "limit"),
    ] {
        let assumes = outlined(&program(declared, statements, argument), &[]);
        assert!(
            assumes.iter().any(|a| a.starts_with("nothing in the loop changes")),
            "{assumes:?}"
        );
    }
    refused(
        &program("", "adapt_managed<<<1, 1>>>(level);", "managed_limit"),
        "managed_limit",
    );
}

/// CUDA runs no such launch, and the host's loop goes on.
#[test]
fn launches_that_cuda_refuses() {
    for (sizes, why) in [
        ("0, 128", "its grid has no block"),
        ("4, 0", "its blocks have no thread"),
        ("4, 2048", "its blocks have 2048 threads"),
        ("4, dim3(64, 32)", "its blocks have 2048 threads"),
    ] {
        let launch = format!("relax<<<{sizes}>>>(next, dist, flag, level, n);");
        refused(
            &around("").replace("relax<<<(n + 127) / 128, 128>>>(next, dist, flag, level, n);", &launch),
            why,
        );
    }
    let accepted = "CUDA accepts the launches of `relax`";
    let bounded = around("").replace(
        "__global__ void relax(",
        "__global__ void __launch_bounds__(64)\nrelax(",
    );
    let assumes = outlined(&bounded, &[]);
    assert!(assumes.iter().any(|a| a.starts_with(accepted)), "{assumes:?}");
    let shared = around("").replace("128>>>(next", "128, n>>>(next");
    let assumes = outlined(&shared, &[]);
    assert!(assumes.iter().any(|a| a.starts_with(accepted)), "{assumes:?}");
}

/// Where nobody looks, the host's loop goes on after a call that has failed.
#[test]
fn calls_that_fail() {
    for (statement, memory) in [
        ("cudaMemset(other, 0, sizeof(int));", Some("other")),
        ("cudaMemset((void*)dist, 0, sizeof(int));", None),
        (
            "cudaMemcpy(dist, other, sizeof(int), cudaMemcpyDeviceToDevice);",
            Some("other"),
        ),
        (
            "cudaMemcpy(other, &level, sizeof(int), cudaMemcpyHostToDevice);",
            Some("other"),
        ),
        ("cudaMemcpy(dist, &level, sizeof(int), cudaMemcpyHostToDevice);", None),
    ] {
        let assumes = assumed(&around(statement), &[]);
        let text =
            memory.map(|name| format!("no call of CUDA's runtime fails: `{name}` points to memory of the device"));
        assert_eq!(assumes, Vec::from_iter(text), "{statement}");
    }
}

/// A kernel is no friend of a class, and no part of the head of a function.
#[test]
fn what_a_kernel_has_no_part_in() {
    let classes =
        "class Size {\n    int n;\n    friend int search(const int*, int*, int*, int*, int, cudaStream_t);\n};";
    let text = around_beside(classes, "relax<<<4, 128>>>(next, dist, flag, level, size.n);");
    let text = text.replace("$0while", "Size size;\n    $0while");
    outlined(&text, &["next, dist, flag, level, n2)"]);
    let head = around("")
        .replace("#include <utility>", "#define API(type) type")
        .replace("\nint search(", "\nAPI(int)\nsearch(");
    refused(&head, "what stands before the name of `search` isn't understood");
}

/// The host has done nothing but launch: it waits now, and what it does next comes too late for who waits for it.
#[test]
fn loops_without_a_wait() {
    let enqueues = with(
        "",
        "$0for (int r = 0; r < 5; ++r) { relax<<<4, 128>>>(next, dist, flag, level, n); level++; }",
    );
    let assumed = "the host may wait for the loop";
    let assumes = outlined(&enqueues, &[]);
    assert!(assumes.iter().any(|a| a.starts_with(assumed)), "{assumes:?}");
    for (wait, waits) in [
        ("cudaDeviceSynchronize();", true),
        ("cudaStreamSynchronize(0);", true),
        ("if (level > 5) cudaDeviceSynchronize();", false),
        ("cudaGetLastError();", false),
        ("cudaMemset(flag, 0, 4);", false),
        ("cudaMemcpy(&h, flag, 4, cudaMemcpyDeviceToHost);", true),
        ("cudaMemcpyAsync(&h, flag, 4, cudaMemcpyDeviceToHost, 0);", false),
    ] {
        let assumes = outlined(&enqueues.replace("level++;", &format!("level++; {wait}")), &[]);
        assert_eq!(
            assumes.iter().any(|a| a.starts_with(assumed)),
            !waits,
            "{wait}: {assumes:?}"
        );
    }
}

/// What isn't a pointer to what may change becomes one by its cast alone.
#[test]
fn casts_to_pointers() {
    let program = |declared: &str, place: &str| {
        let text = around(&format!("cudaMemset({place}, 0, 4);"));
        text.replace("$0while", &format!("{declared}\n    $0while"))
    };
    for (declared, place, moved) in [
        (
            "size_t address = (size_t)dist;",
            "(void*)(address + 4)",
            "rounds.fill((void*)(address + 4), 0, 4);",
        ),
        ("", "(void*)(next + 1)", "rounds.fill((void*)(next + 1), 0, 4);"),
        ("", "(void*)dist", "rounds.fill(dist, 0, 4);"),
    ] {
        outlined(&program(declared, place), &[moved]);
    }
}

/// Names that the new kernel has hide those that it needs.
#[test]
fn parameters_that_hide() {
    let beside = r#"#define blocks 4
constexpr int limit = 2;
struct Config { int limit; };
template <int B> __global__ void filled(int* x) { x[threadIdx.x] = B; }
"#;
    let macro_named = around_beside(beside, "");
    outlined(&macro_named, &["dim3 blocks2"]);
    let text = around_beside(
        beside,
        "filled<limit><<<4, 128>>>(dist); relax<<<4, 128>>>(next, dist, flag, config->limit, n);",
    );
    let text = text.replace("int n, cudaStream_t stream)", "int n, Config* config)");
    outlined(&text, &["int limit2", "filled_body<limit>"]);
    let dims = "struct Dims { int x, y; };";
    let text = around_beside(dims, "relax<<<4, 128>>>(next, dist, flag, gridDim.x, n);");
    let text = text.replace("$0while", "Dims gridDim{1, 2};\n    $0while");
    refused(&text, "`gridDim` is called as a variable that each kernel has");
}

/// What the host computed in rounds alone.
#[test]
fn sizes_that_are_computed() {
    let beside = "int counted = 0;\nint block_size() { return 32 + 0 * counted++; }";
    let text = around_beside(beside, "relax<<<4, block_size()>>>(next, dist, flag, level, n);");
    refused(&text, "`block_size()` may be another value in another round");
    let text = around("relax<<<level + 1, 64 / n * 32>>>(next, dist, flag, level, n);")
        .replace("relax<<<(n + 127) / 128, 128>>>(next, dist, flag, level, n);", "")
        .replace("h = 1;", "h = n;");
    let assumes = outlined(&text, &[]);
    assert!(
        assumes.iter().any(|a| a.contains("the host can compute `64 / n * 32`")),
        "{assumes:?}"
    );
}

/// Constant memory is no memory that a grid can write, whoever has its address.
#[test]
fn addresses_of_constant_memory() {
    let program = |symbol: &str| {
        let beside = "__constant__ int coef;\n__device__ int plain;";
        let text = around_beside(beside, "cudaMemcpy(p, &level, sizeof(int), cudaMemcpyHostToDevice);");
        text.replace(
            "$0while",
            &format!("int* p;\n    cudaGetSymbolAddress((void**)&p, {symbol});\n    $0while"),
        )
    };
    refused(&program("coef"), "which may be `__constant__`");
    refused(&program("unseen::other"), "which may be `__constant__`");
    outlined(&program("plain"), &[]);
}

/// An error variable keeps what it had where no round runs.
#[test]
fn errors_without_a_round() {
    let program = |first: &str| {
        let call = "cudaMemcpy(&h, flag, sizeof(int), cudaMemcpyDeviceToHost);";
        let text = around("").replace(call, &format!("e = {call}"));
        text.replace("$0while", &format!("cudaError_t e = {first};\n    $0while"))
    };
    refused(&program("cudaErrorNotReady"), "`e` holds an error by its name");
    outlined(&program("cudaSuccess"), &[]);
    outlined(&program("cudaGetLastError()"), &[]);
}

/// A field of a class of its own runs code where it is read.
#[test]
fn fields_of_classes() {
    let beside = "struct Bound { int v; operator int() const { return v + 1; } };\nstruct Config { Bound b; int n; };";
    let program = |statement: &str| {
        let text = around_beside(beside, statement);
        text.replace("$0while", "Config cfg{{3}, 4};\n    $0while")
    };
    refused(&program("if (level > cfg.b) break;"), "the type of `cfg.b` isn't known");
    outlined(&program("if (level > cfg.n) break;"), &["Config cfg"]);
}

/// A variable of the host's is memory of the host's: the kernel with the loop has another one.
#[test]
fn variables_that_the_device_writes() {
    let program = |declared: &str, argument: &str| {
        let text = around(&format!(
            "relax<<<4, 128>>>(next, dist, {argument}, level, n); if (!todo) break;"
        ));
        text.replace("$0while", &format!("int todo = 5; {declared}\n    $0while"))
    };
    refused(
        &program("", "&todo"),
        "`todo` is memory of the host's that a kernel gets",
    );
    let registered = "int* p = &todo; cudaHostRegister(p, sizeof(int), 0);";
    refused(&program(registered, "p"), "`todo` is memory that the device may write");
    let shared = |declared: &str| {
        let text = around("if (*count) break;");
        text.replace("$0while", &format!("int* count = nullptr; {declared}\n    $0while"))
    };
    outlined(&shared("cudaMallocHost(&count, 4);"), &["rounds.load(count)"]);
    for declared in [
        "if (n) cudaMallocHost(&count, 4); else posix_memalign((void**)&count, 8, 8);",
        "cudaMallocHost(&count, 4); int*& other_name = count; other_name = new int(0);",
    ] {
        refused(
            &shared(declared),
            "`count` isn't known to point to memory that device code can read",
        );
    }
    let moved = around("flag = dist; if (*flag) break; flag = (int*)next;");
    refused(
        &moved,
        "`flag` isn't known to point to memory that device code can read",
    );
}

/// What classes do where they are read, written, copied and converted.
#[test]
fn code_of_classes() {
    let classes = r#"struct Flag { int v; Flag& operator=(int x) { v = x + 1; return *this; } };
__managed__ Flag managed_flag;
__managed__ int managed_number;
struct Holder { Flag* flag; int* number; const int* fixed; float4* four; };
struct Made { int a; Made(int a) : a(a) {} };
__global__ void takes(int* x, Made made) { *x = made.a; }
bool operator<(dim3 a, dim3 b) { return a.x > b.x; }
"#;
    let program = |declared: &str, statement: &str| {
        let text = around_beside(classes, statement);
        text.replace("$0while", &format!("{declared}\n    $0while"))
    };
    for (declared, statement, why) in [
        ("", "managed_flag = 5;", "can't move to the device"),
        ("", "if (managed_flag) break;", "can't move to the device"),
        (
            "Holder s{};",
            "relax<<<4, 128>>>(next, dist, s.flag, 1, n); *s.flag = 5;",
            "isn't known to point to numbers",
        ),
        ("", "takes<<<1, 1>>>(dist, level);", "`level` is converted to `Made`"),
        (
            "dim3 g(2), most(3);",
            "if (g < most) break;",
            "can't move to the device",
        ),
        (
            "float4 four;",
            "cudaMemcpy(&four, flag, 16, cudaMemcpyDeviceToHost);",
            "copies a `float4` from the device",
        ),
    ] {
        refused(&program(declared, statement), why);
    }
    outlined(
        &program("", "managed_number = 5;"),
        &["rounds.store(&managed_number, 5);"],
    );
    outlined(
        &program("Holder s{};", "cudaMemset((void*)s.fixed, 0, 4);"),
        &["rounds.fill((void*)s.fixed, 0, 4);"],
    );
    let inner = r#"__global__ void fill(int* x, int* flag) { *x = 5; *flag = 0; }
struct S { friend int inner(int* x, int* flag) {
    int h;
    $0do { fill<<<1, 1>>>(x, flag); cudaMemcpy(&h, flag, 4, cudaMemcpyDeviceToHost); } while (h);
    return h;
} };
"#;
    refused(inner, "`inner` is defined in a class");
}

/// Checks of errors that do more than to look.
#[test]
fn checks_that_do_more() {
    let checks = r#"#include <cstdlib>
int counted = 0;
struct Counter { operator int() const { return ++counted; } };
struct Note { cudaError_t e; Note(cudaError_t e) : e(e) {} ~Note() { ++counted; } };
struct Called { void operator()(cudaError_t e) { ++counted; } };
Called checkCudaErrors;
void plain(cudaError_t e, int line = 5) { if (e != cudaSuccess) exit(line); }
void by_default(cudaError_t e, int where = ++counted) { if (e != cudaSuccess) exit(1); }
Note returned(cudaError_t e) { return e; }
void taken(Note note) {}
template <class T> void generic(T result) { if (result) exit(1); }
#define cudaErrorCheck(call) if (call) exit(1)
"#;
    let program = |declared: &str, statement: &str| {
        let text = around_beside(checks, statement);
        text.replace("$0while", &format!("{declared}\n    $0while"))
    };
    for (declared, statement) in [
        ("Counter counter;", "plain(cudaDeviceSynchronize(), counter);"),
        ("", "by_default(cudaDeviceSynchronize());"),
        ("", "returned(cudaDeviceSynchronize());"),
        ("", "taken(cudaDeviceSynchronize());"),
        ("", "checkCudaErrors(cudaDeviceSynchronize());"),
        ("", "generic<Note>(cudaDeviceSynchronize());"),
    ] {
        refused(&program(declared, statement), "can't move to the device");
    }
    for statement in ["plain(cudaDeviceSynchronize());", "generic(cudaDeviceSynchronize());"] {
        outlined(&program("", statement), &[]);
    }
    let macro_named = program("", "cudaError_t e; cudaErrorCheck(e = cudaDeviceSynchronize());");
    outlined(&macro_named, &["cudaError_t e;"]);
    for statement in [
        "if (cudaMemset(dist, 0, 4) == cudaSuccess) cudaMemset(flag, 0, 4);",
        "cudaError_t e = cudaMemset(dist, 0, 4), f = cudaMemset(flag, 0, 4);",
    ] {
        refused(
            &program("", statement),
            "several calls of CUDA's runtime stand in one statement",
        );
    }
    outlined(
        &around("cudaGetLastError();"),
        &["    cudaGetLastError();\n    level = state.level;"],
    );
}

/// Words that device code doesn't have, or that another scope has.
#[test]
fn words_of_the_host() {
    let beside = r#"namespace ns {
struct Config { int n; };
typedef int index_t;
struct Pair { int a; };
__global__ void fill(index_t n, int* x) { *x = n; }
__global__ void pairs(Pair* p, int* x) { *x = p->a; }
}
__device__ volatile int volatile_flag;
struct Swapper { void operator()(int& a, int& b) {} };
static Swapper swap;
static const float kDamp = 0.5f;
"#;
    let program = |declared: &str, statement: &str| {
        let text = around_beside(beside, statement);
        text.replace("$0while", &format!("{declared}\n    $0while"))
    };
    for (declared, statement, why) in [
        ("", "if (level > 0.5L) break;", "device code has no `long double`"),
        ("long double x = 1;", "x = x + 1;", "is a `long double`"),
        ("thread_local int total = 0;", "total++;", "as it is `thread_local`"),
        (
            "using namespace ns; Config c{5};",
            "relax<<<4, 128>>>(next, dist, flag, c.n, n);",
            "means something else above",
        ),
        (
            "using T = int; T* mine = dist;",
            "relax<<<4, 128>>>(next, mine, flag, 1, n);",
            "means something else above",
        ),
        (
            "ns::Pair p;",
            "ns::pairs<<<1, 1>>>(&p + 0, dist);",
            "which the scope of `pairs` names",
        ),
        (
            "",
            "cudaMemcpyFromSymbol(&h, volatile_flag, sizeof(int));",
            "`volatile_flag` is `volatile`",
        ),
        ("int a = 0, b = 1;", "swap(a, b);", "can't move to the device"),
    ] {
        refused(&program(declared, statement), why);
    }
    let rounds = program("float a = 1;", "a = a * kDamp + level;");
    let assumes = outlined(&rounds, &[]);
    assert!(
        assumes
            .iter()
            .any(|a| a.contains("may be rounded as the device does it")),
        "{assumes:?}"
    );
    let whole = program("unsigned a = 1;", "a = a * 2u + level;");
    assert!(outlined(&whole, &[]).iter().all(|a| !a.contains("rounded")));
}

/// The parameters of the new kernel have to fit into the space that CUDA has for them, and keep their types.
#[test]
fn parameters_of_the_kernel() {
    let kernels = r#"struct Large { int n; int levels[2000]; };
struct Small { int n; int levels[200]; };
struct Unknown { int n; int levels[LEVELS]; };
struct A { int x[600]; };
struct Point { float x, y, z; };
struct Many { Point at[300]; };
struct Rows { const int* const* rows; int* const* columns; };
__global__ void first(A a, int* x) { *x = a.x[0]; }
__global__ void second(A a, int* x) { *x = a.x[1]; }
__global__ void spread(const int* const* rows, int* const* columns) { columns[0][0] = rows[0][0]; }
"#;
    let program = |declared: &str, statement: &str| {
        let text = around_beside(kernels, statement);
        text.replace("$0while", &format!("{declared}\n    $0while"))
    };
    let too_large = "would have more than 4096 bytes of parameters";
    refused(&program("Large g{};", "if (level > g.levels[1]) break;"), too_large);
    refused(
        &program(
            "A a{}, b{};",
            "first<<<1, 128>>>(a, dist); second<<<1, 128>>>(b, dist);",
        ),
        too_large,
    );
    outlined(
        &program("Many g{}; float* at = &g.at[0].x;", "if (level > 99) break;"),
        &[],
    );
    outlined(&program("Small g{};", "if (level > g.levels[1]) break;"), &["Small g"]);
    let assumes = outlined(&program("Unknown g{};", "if (level > g.levels[1]) break;"), &[]);
    assert!(
        assumes.iter().any(|a| a.contains("CUDA accepts the kernel")),
        "{assumes:?}"
    );
    let pointers = program("Rows r{};", "spread<<<1, 128>>>(r.rows, r.columns);");
    outlined(&pointers, &["const int* const* rows", "int* const* columns"]);
}

/// What stands around the loop, or around its function, is about them.
#[test]
fn what_is_about_the_loop() {
    for pragma in [
        "#pragma GCC unroll 4\n    ",
        "#pragma GCC ivdep\n    ",
        "_Pragma(\"GCC unroll 4\") ",
    ] {
        let text = around("").replace("$0while", &format!("{pragma}$0while"));
        refused(&text, "a pragma in front of the loop");
    }
    let text = around("").replace("int search(", "extern \"C\" int search(");
    let text = text.replace("cudaStream_t stream", "int");
    outlined(&text, &["\n}\n\nextern \"C\" int search("]);
    let other = "__attribute__((cleanup(report))) int total = 0;";
    let text = around_beside("static void report(int* p) {}", "total += 2;");
    outlined(
        &text.replace("$0while", &format!("{other}\n    $0while")),
        &["total = state.total;"],
    );
    let text = around_beside(
        "struct Config { static int limit; int n; };",
        "if (level > config.limit) break;",
    );
    refused(
        &text.replace("$0while", "Config config{100};\n    $0while"),
        "`config.limit`",
    );
}

/// The sizes of blocks are computed once.
#[test]
fn sizes_that_change_in_memory() {
    let kernels = r#"struct View { int& n; };
struct Config { int n; int* p; };
__managed__ int managed = 32;
int size_at(const int* place) { return *place; }
int managed_size() { return managed; }
int field(const Config& c) { return *c.p; }
int& second(int* place) { return place[1]; }
int round_up(int n) { return (n + 31) / 32 * 32; }
int unseen(int n);
"#;
    let program = |declared: &str, block: &str| {
        let text = around_beside(kernels, "").replace("(n + 127) / 128, 128", &format!("4, {block}"));
        text.replace("$0while", &format!("{declared}\n    $0while"))
    };
    for (declared, block) in [
        ("", "size_at(dist)"),
        ("", "managed_size()"),
        ("Config c{1, dist};", "field(c)"),
        ("int& size = dist[0];", "size"),
        ("View view{dist[0]};", "view.n"),
        ("View view{level};", "view.n"),
        ("", "second(flag)"),
        ("", "unseen(n)"),
    ] {
        refused(&program(declared, block), "round");
    }
    outlined(&program("", "round_up(n)"), &["round_up(n), /*shared_bytes=*/"]);
    outlined(&program("Config c{64, dist};", "c.n"), &["c.n, /*shared_bytes=*/"]);
}

/// Names that mean something else, or nothing, in the kernel.
#[test]
fn names_of_the_hosts_function() {
    let program = |declared: &str, statement: &str| {
        let beside = "struct graph { int n; };\nconst volatile int kStop = 5;";
        let text = around_beside(beside, statement);
        text.replace("$0while", &format!("{declared}\n    $0while"))
    };
    refused(&program("", "level += sizeof(__func__);"), "`__func__`");
    refused(
        &program(
            "struct graph graph{5}, other{6};",
            "if (level > graph.n + other.n) break;",
        ),
        "`graph` has the name of a type",
    );
    refused(
        &program("", "if (level > kStop) break;"),
        "`kStop` can't move to the device",
    );
}

/// What the rounds need together.
#[test]
fn what_all_rounds_need() {
    let kernels = r#"#define LOG(x) printf("%d", x)
__device__ void tell(int x) { printf("%d", x); }
__global__ void telling(int* x) { tell(*x); }
__global__ void logging(int* x) { LOG(*x); }
__global__ void first(int* x) { __shared__ int s[5000]; s[threadIdx.x] = *x; *x = s[threadIdx.x]; }
__global__ void second(int* x) { __shared__ int s[5000]; s[threadIdx.x] = *x; *x = s[threadIdx.x]; }
"#;
    for kernel in ["telling", "logging"] {
        let assumes = outlined(&around_beside(kernels, &format!("{kernel}<<<1, 128>>>(dist);")), &[]);
        assert!(
            assumes.iter().any(|a| a.contains("the buffer of printf")),
            "{assumes:?}"
        );
    }
    let statements = "first<<<1, 128, 20480>>>(dist); second<<<1, 128, 20480>>>(dist);";
    let text = around_beside(kernels, statements).replace("/ 128, 128>>>", "/ 128, 128, 20480>>>");
    let assumes = outlined(&text, &[]);
    assert!(
        assumes.iter().any(|a| a.contains("of shared memory to spare")),
        "{assumes:?}"
    );
}

/// Fields and objects that may be references to what changes in the loop.
#[test]
fn objects_that_refer() {
    let kernels = r#"#include <functional>
#include <utility>
#define REF int&
using Ref = int&;
struct Inner { int& n; };
struct Outer { Inner b; };
struct Derived : Inner {};
template <class T> struct View { T v; };
struct Alias { Ref n; };
struct Macro { REF n; };
struct cudaView { Ref n; };
struct Plain { int n; float x; };
struct Nested { Plain b; int* p; };
"#;
    let program = |declared: &str, arg: &str| {
        let text = around_beside(kernels, &format!("relax<<<4, 128>>>(next, dist, flag, {arg}, n);"));
        text.replace("$0while", &format!("{declared}\n    $0while"))
    };
    refused(&program("Outer s{{level}};", "s.b.n"), "may be a reference");
    for (declared, arg) in [
        ("Derived s{{level}};", "s.n"),
        ("std::pair<int&, int> t(level, 1);", "t.first"),
        ("View<int&> s{level};", "s.v"),
        ("Alias s{level};", "s.n"),
        ("Macro s{level};", "s.n"),
        ("cudaView s{level};", "s.n"),
        ("std::reference_wrapper<int> r(level);", "r"),
        ("auto r = std::ref(level);", "r"),
    ] {
        let text = program(declared, arg);
        if let Ok((_, assumes)) = super::fixes::fix("outline-iteration", &text, &[]) {
            let named = format!("nothing in the loop changes `{arg}`");
            assert!(assumes.iter().any(|a| a.contains(&named)), "{text}\n{assumes:?}");
        }
    }
    for (declared, arg) in [
        ("Plain s{5, 1};", "s.n"),
        ("Nested s{{5, 1}, dist};", "s.b.n"),
        ("auto five = 5;", "five"),
        (
            "cudaDeviceProp prop; cudaGetDeviceProperties(&prop, 0);",
            "prop.multiProcessorCount",
        ),
    ] {
        let assumes = outlined(&program(declared, arg), &[]);
        assert!(
            assumes.iter().all(|a| !a.contains("nothing in the loop changes")),
            "{assumes:?}"
        );
    }
}

/// Attributes that call a function when a variable's scope ends, however they are written.
#[test]
fn variables_that_an_attribute_reads() {
    let beside = "static void report(int* p) {}\n#define ON_EXIT(f) __attribute__((cleanup(f)))";
    for declared in [
        "ON_EXIT(report) int total = 0;",
        "[[gnu::cleanup(report)]] int total = 0;",
        "int __attribute__((cleanup(report))) total = 0;",
        "int total __attribute__((__cleanup__(report))) = 0;",
    ] {
        let text = around_beside(beside, "total += 2;").replace("$0while", &format!("{declared}\n    $0while"));
        match super::fixes::fix("outline-iteration", &text, &[]) {
            Ok((new, _)) => assert!(new.contains("total = state.total;"), "{new}"),
            Err(reasons) => assert!(!reasons.is_empty()),
        }
    }
}

/// Constants that the compiler of the device may see otherwise.
#[test]
fn constants_of_each_side() {
    let beside = |condition: &str| {
        format!(
            r#"#if {condition}
#define LIMIT 1
#else
#define LIMIT 3
#endif
enum {{ kMost = LIMIT }};
struct Row {{ int at[LIMIT]; }};"#
        )
    };
    for (statement, piece) in [
        ("if (level > kMost) break;", "kMost"),
        ("level += sizeof(Row);", "sizeof(Row)"),
    ] {
        outlined(&around_beside(&beside("SMALL"), statement), &[piece]);
        let text = around_beside(&beside("defined(__CUDA_ARCH__)"), statement);
        match super::fixes::fix("outline-iteration", &text, &[]) {
            Ok((new, _)) => assert!(
                !new.contains(&format!("level > {piece}")) || new.contains("int kMost"),
                "{new}"
            ),
            Err(reasons) => assert!(
                reasons.iter().any(|r| r.contains("kMost") || r.contains("`Row`")),
                "{reasons:?}"
            ),
        }
    }
}

/// Kernels that are the file's alone have namesakes in other files.
#[test]
fn kernels_of_one_file() {
    let text = around("").replace("__global__ void relax(", "static __global__ void relax(");
    outlined(&text, &["static __global__ void", "_relax_rounds(", "_relax_state {"]);
    let text = around_beside(
        "__device__ const int stop = 5;",
        "cudaMemcpyToSymbol(stop, &level, sizeof(int));",
    );
    refused(&text, "`stop` is constant");
    let streams = around_beside("inline void others() { cudaStream_t s; cudaStreamCreate(&s); }", "");
    let assumes = outlined(&streams, &[]);
    assert!(
        assumes.iter().any(|a| a.contains("the loop ends without")),
        "{assumes:?}"
    );
    let inner = "__global__ void inner(int* __restrict__* v, int* __restrict__ w) { v[0][0] = w[0]; }";
    let text = around_beside(inner, "inner<<<1, 128>>>(rows, dist);");
    let text = text.replace("$0while", "int** rows = nullptr;\n    $0while");
    outlined(&text, &["int* __restrict__* v, int* w)"]);
}
