//! Dependences between parents, children and iterations: what is proven, what is refuted, and what has to stay open.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use gridfuse_analysis::facts::dependence::{
    Dependence, Iterations, Touch, after, loops, order, own_footprint, prefixes,
};
use gridfuse_analysis::facts::launch::launches;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::host::Host;

/// What is said of the launches of the last kernel or device function that launches: of the first launch, unless noted.
#[derive(Debug, Default)]
struct Said {
    threads: String,
    iterations: String,
    others: Vec<String>,
    after: String,
    meetings: Vec<String>,
    loops: Vec<String>,
    prefix: String,
}

fn said(source: &str) -> Said {
    let mut host = Host::new();
    let file = host.set_file(Path::new("/w/a.cu"), source);
    let db = host.db();
    let functions = &items(db, file).functions;
    let launching = functions.iter().rev().find(|f| {
        let signature = f.signature(db);
        f.has_body(db) && (signature.kernel || signature.device) && !launches(db, **f).is_empty()
    });
    let function = *launching.expect("a launch");
    let touch = |t: &Touch<'_>| format!("{} `{}`", t.kind.verb(), t.span.text(&t.function.text(db)));
    let text = |d: &Dependence<'_>| match d {
        Dependence::None(why) => format!("none: {why:?}"),
        Dependence::Conflict(a, b) => format!("conflict: {} | {}", touch(a), touch(b)),
        Dependence::Unknown(doubt) => format!("unknown: {}", doubt.reason),
    };
    let own = &order(db, function)[0];
    let behind = &after(db, function)[0];
    let place = |f: FunctionItem<'_>, s: gridfuse_analysis::base::span::Span| s.text(&f.text(db)).to_owned();
    Said {
        threads: text(&own.threads),
        iterations: own.iterations.as_ref().map_or("once".to_owned(), text),
        others: own.others.iter().map(|(_, d)| text(d)).collect(),
        after: text(&behind.dependence),
        meetings: behind.meetings.iter().map(|m| touch(&m.parent)).collect(),
        loops: loops(db, function)[0]
            .iter()
            .map(|l| match &l.iterations {
                Iterations::Parallel => "parallel".to_owned(),
                Iterations::Reduction(op, t) => format!("reduction {op:?}: {}", touch(t)),
                Iterations::Scan(op, t) => format!("scan {op:?}: {}", touch(t)),
                Iterations::Carried(a, b) => format!("carried: {} | {}", touch(a), touch(b)),
                Iterations::Ends(span) => format!("ends: {}", place(function, *span)),
                Iterations::Unknown(doubt) => format!("unknown: {}", doubt.reason),
            })
            .collect(),
        prefix: match &prefixes(db, function)[0] {
            Some(prefix) => prefix.span.map_or(String::new(), |s| place(prefix.child, s)),
            None => "unknown".to_owned(),
        },
    }
}

/// A child with `body` of `int* a, int* b, int n`, a parent that does `launch` with `v` the number of the thread, launched with
/// blocks of one dimension on allocations of their own.
fn program(body: &str, launch: &str) -> String {
    format!(
        r#"__device__ int table[64]; __device__ int other[64]; __device__ int counter;
struct Pair {{ int x, y; }};
__global__ void child(int* a, int* b, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}
__global__ void parent(int* p, int* q, int n, unsigned u, int m) {{
int v = blockIdx.x * blockDim.x + threadIdx.x;
{launch}
}}
int main() {{ int *d, *e; cudaMalloc(&d, 4); cudaMalloc((void**)&e, 4);
parent<<<8, 128>>>(d, e, 4, 5, 6); cudaFree(d); }}
"#
    )
}

thread_local! {
    static SURPRISES: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Notes what was said where something else was expected.
fn expect(found: &str, expected: &str, body: &str, launch: &str) {
    if !found.starts_with(expected) {
        SURPRISES.with_borrow_mut(|all| all.push(format!("{found}\n   not {expected}\n   for {body} and {launch}")));
    }
}

/// Fails if there was anything unexpected.
#[track_caller]
fn done() {
    let all = SURPRISES.take();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

fn threads(body: &str, launch: &str, expected: &str) {
    expect(&said(&program(body, launch)).threads, expected, body, launch);
}

#[test]
fn children_of_different_threads() {
    let whole = "child<<<(n + 127) / 128, 128>>>(p, q, n);";
    threads("int x = a[i];", whole, "none: ReadOnly");
    threads("if (i < n) atomicAdd(&a[b[i]], 1);", whole, "none: Commuting");
    threads("if (i < n) a[i] = 1;", whole, "none: Commuting");
    threads(
        "if (i < n) a[i] = b[i];",
        whole,
        "conflict: writes `a[i]` | writes `a[i]`",
    );
    threads("a[0] += 1;", whole, "conflict: changes `a[0]`");
    threads("*a = n;", whole, "conflict: writes `*a`");
    // One launcher for each block, and one for the grid.
    threads(
        "a[i] = b[i];",
        "if (threadIdx.x == 0) child<<<1, 32>>>(p, q, n);",
        "none: Single",
    );
    threads("a[i] = b[i];", "if (v == 0) child<<<1, 32>>>(p, q, n);", "none: Single");
    threads(
        "a[i] = b[i];",
        "if (threadIdx.x) return;\nchild<<<1, 32>>>(p, q, n);",
        "none: Single",
    );
    threads(
        "a[i] = b[i];",
        "if (threadIdx.x < 2) child<<<1, 32>>>(p, q, n);",
        "conflict",
    );
    done();
}

#[test]
fn disjoint_by_index() {
    let fixed = "child<<<1, 64>>>(p + v * 64, q, n);";
    threads("a[threadIdx.x] = b[0];", fixed, "none: Disjoint");
    threads("a[i] = b[0];", fixed, "none: Disjoint");
    threads("a[63 - i] = b[0];", fixed, "none: Disjoint");
    threads("a[i + 1] = b[0];", fixed, "none: Disjoint");
    threads("a[2 * i] = b[0];", fixed, "conflict");
    threads("a[i] = a[i + 64];", fixed, "conflict");
    threads("a[64 * i] = b[0];", fixed, "conflict");
    // By the greatest common divisor: even and odd elements.
    threads(
        "a[2 * i] = a[2 * i + 1];",
        "child<<<1, 64>>>(p, q, n);",
        "conflict: writes `a[2 * i]` | writes `a[2 * i]`",
    );
    threads(
        "if (threadIdx.x == 0) a[0] = b[1];",
        "child<<<1, 64>>>(&p[v], q, n);",
        "none: Disjoint",
    );
    threads("a[-i] = b[1];", "child<<<1, 4>>>(p + 4 * v, q, n);", "none: Disjoint");
    threads("a[-i] = b[1];", "child<<<1, 5>>>(p + 4 * v, q, n);", "conflict");
    threads("a[-i] = b[1];", "child<<<1, 4>>>(p - 4 * v, q, n);", "none: Disjoint");
    // By the bound of the child's own loop or condition.
    threads(
        "if (i < n) a[i] = b[i];",
        "child<<<(m + 127) / 128, 128>>>(p + v * 48, q, 48);",
        "none: Disjoint",
    );
    threads(
        "if (i <= n) a[i] = b[i];",
        "child<<<(m + 127) / 128, 128>>>(p + v * 48, q, 48);",
        "conflict",
    );
    threads(
        "for (int k = 0; k < n; ++k) a[k] = b[k];",
        "child<<<1, 1>>>(p + v * 48, q, 48);",
        "none: Disjoint",
    );
    threads(
        "for (int k = i; k < n; k += 128) a[k] = b[k];",
        "child<<<1, 128>>>(p + v * 48, q, 48);",
        "none: Disjoint",
    );
    threads(
        "if (i >= n) return; a[i] = b[i];",
        "child<<<1, 128>>>(p + v * m, q, m);",
        "none: Disjoint",
    );
    threads("a[n] = b[i];", "child<<<1, 128>>>(p, q, v);", "none: Disjoint");
    threads(
        "a[n] = b[i];",
        "child<<<1, 128>>>(p, q, threadIdx.x);",
        "none: Disjoint",
    );
    threads("a[n / 2] = b[i];", "child<<<1, 128>>>(p, q, v);", "unknown");
    threads(
        "a[n] = b[i];",
        "child<<<1, 128>>>(p, q, q[v]);",
        "unknown: the subscripts may be equal",
    );
    done();
}

#[test]
fn arithmetic_that_wraps_around() {
    // 64 * u is equal for threads that are 2^26 apart; threads of a block aren't.
    threads(
        "a[i] = b[i];",
        "unsigned w = v; child<<<1, 64>>>(p + w * 64u, q, n);",
        "none: Disjoint",
    );
    threads(
        "a[i] = b[i];",
        "unsigned w = v; child<<<1, 64>>>(p + w * 0x4000000u, q, n);",
        "conflict",
    );
    threads(
        "a[i] = b[i];",
        "unsigned w = threadIdx.x; child<<<1, 1>>>(p + (w << 22), q, n);",
        "none: Disjoint",
    );
    threads(
        "a[i] = b[i];",
        "unsigned w = threadIdx.x; child<<<1, 1>>>(p + (w << 30), q, n);",
        "conflict",
    );
    threads(
        "a[i] = b[i];",
        "unsigned char w = v; child<<<1, 1>>>(p + w, q, n);",
        "unknown",
    );
    threads(
        "a[i] = b[i];",
        "short w = (short)v; child<<<1, 1>>>(p + w, q, n);",
        "unknown",
    );
    threads("a[i] = b[i];", "child<<<1, 1>>>(p + (v & 31), q, n);", "unknown");
    threads("a[i] = b[i];", "child<<<1, 1>>>(p + (v ^ 1), q, n);", "unknown");
    threads(
        "a[i] = b[i];",
        "float w = v; child<<<1, 1>>>(p + (int)w, q, n);",
        "unknown",
    );
    threads(
        "a[i] = b[i];",
        "int w = v * 0.5f; child<<<1, 1>>>(p + w, q, n);",
        "unknown",
    );
    threads(
        "a[i] = b[i];",
        "long long w = (long long)v * 64; child<<<1, 64>>>(p + w, q, n);",
        "none: Disjoint",
    );
    threads(
        "a[i] = b[i];",
        "size_t w = (size_t)threadIdx.x * 64; child<<<1, 64>>>(p + w, q, n);",
        "none: Disjoint",
    );
    // `u - v` is below zero somewhere, and huge then; still different for every thread.
    threads(
        "if (i == 0) a[n] = b[i];",
        "child<<<1, 64>>>(p, q, u - v);",
        "none: Disjoint",
    );
    // A grid of which the number of threads isn't known may have more than an index holds.
    threads("a[i] = b[i];", "child<<<u, 64>>>(p + v * 64, q, n);", "conflict");
    done();
}

#[test]
fn blocks_with_more_dimensions() {
    let two = program("if (i == 0) a[0] = b[0];", "child<<<1, 64>>>(p + v, q, n);")
        .replace("<<<8, 128>>>(d", "<<<8, dim3(16, 16)>>>(d");
    assert!(
        said(&two).threads.starts_with("conflict"),
        "threads of one column have the same `v`"
    );
    let flat = program(
        "if (i == 0) a[0] = b[0];",
        "int t = threadIdx.y * 16 + threadIdx.x; if (threadIdx.x < 16) child<<<1, 64>>>(p + t, q, n);",
    )
    .replace("<<<8, 128>>>(d", "<<<8, dim3(16, 16)>>>(d");
    assert_eq!(said(&flat).threads, "none: Disjoint");
    let nobody =
        program("if (i == 0) a[0] = b[0];", "child<<<1, 64>>>(p + v, q, n);").replace("parent<<<", "elsewhere<<<");
    assert!(
        said(&nobody).threads.starts_with("conflict"),
        "blocks of an unknown launch may have any dimensions"
    );
    let pointer = program("if (i == 0) a[0] = b[0];", "child<<<1, 64>>>(p + v, q, n);")
        .replace("int main() {", "int main() { auto k = &parent;");
    assert!(
        !said(&pointer).threads.starts_with("none"),
        "it may be launched through a pointer"
    );
    done();
}

#[test]
fn atomics() {
    let whole = "child<<<1, 128>>>(p, q, n);";
    for operation in ["Add", "Min", "Max", "And", "Or", "Xor", "Sub"] {
        threads(&format!("atomic{operation}(&a[i], n);"), whole, "none: Commuting");
    }
    threads("atomicAdd(a, 1); atomicSub(&a[3], 2);", whole, "none: Commuting");
    threads("(void)atomicAdd(a, 1);", whole, "none: Commuting");
    threads("atomicAdd_system(a, 1);", whole, "none: Commuting");
    threads("atomicAdd_block(a, 1);", whole, "conflict");
    threads("int slot = atomicAdd(a, 1); b[i] = 0;", whole, "conflict");
    threads("b[atomicAdd(a, 1)] = i;", whole, "conflict");
    threads("if (atomicAdd(a, 1) == 3) b[0] = 0;", whole, "conflict");
    threads("atomicAdd(a, 1); atomicMax(a, 1);", whole, "conflict");
    threads("atomicExch(a, n);", whole, "conflict");
    threads("atomicCAS(a, 0, n);", whole, "conflict");
    threads("atomicInc((unsigned*)a, n);", whole, "conflict");
    threads("atomicAdd((float*)a, 1.0f);", whole, "conflict");
    threads("atomicAdd(a, 1); if (a[0] > 3) b[i] = 0;", whole, "conflict");
    threads(
        "atomicAdd(a, 1); atomicAdd((unsigned long long*)a, 1ull);",
        whole,
        "unknown",
    );
    // Which number is smaller depends on the type, and so do the bits of a 1.
    threads("atomicMin((unsigned*)a, 7u);", whole, "none: Commuting");
    threads("atomicMin(a, 7); atomicMin((unsigned*)a, 7u);", whole, "conflict");
    threads(
        "atomicAdd(a, 7); atomicAdd((unsigned*)a, 7u);",
        whole,
        "none: Commuting",
    );
    threads("((float*)a)[i] = 0; a[i] = 0;", whole, "none: Commuting");
    threads("((float*)a)[i] = 1; a[i] = 1;", whole, "conflict");
    threads("((bool*)a)[i] = 2; ((char*)a)[i] = 2;", whole, "unknown");
    threads("atomicAdd(&counter, 1);", whole, "none: Commuting");
    threads(
        "for (int k = 0; k < n; k++) atomicAdd(&a[b[k]], k);",
        whole,
        "none: Commuting",
    );
    threads("a[i] = 0; b[i] = 0;", whole, "none: Commuting");
    threads("a[i] = 0; a[i] = 1;", whole, "conflict");
    threads("a[0] = 1; if (a[0]) b[0] = 1;", whole, "conflict");
    done();
}

#[test]
fn pointers() {
    let text = program("if (i == 0) a[0] = b[0];", "child<<<1, 64>>>(p + v, q, n);");
    assert_eq!(
        said(&text).threads,
        "none: Disjoint",
        "each `cudaMalloc` is memory of its own"
    );
    for (from, to) in [
        ("(d, e, 4, 5, 6)", "(d, d, 4, 5, 6)"),
        ("(d, e, 4, 5, 6)", "(d, d + 9, 4, 5, 6)"),
        ("int *d, *e;", "int *d, *e, **f = &d; *f = e;"),
        ("cudaFree(d);", "e = d; cudaFree(d);"),
        ("cudaFree(d);", "take(d);"),
        ("cudaFree(d);", "auto f = [&] { d = e; };"),
        ("cudaMalloc(&d, 4);", "d = get();"),
        ("cudaFree(d);", "parent<<<1, 1>>>(e, e, 1, 1, 1);"),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        assert!(
            said(&changed).threads.starts_with("unknown: `p` and `q` may overlap"),
            "{to}"
        );
    }
    let restrict = text.replace("(d, e, 4, 5, 6)", "(d, d + 9, 4, 5, 6)");
    let both = restrict.replace(
        "parent(int* p, int* q",
        "parent(int* __restrict__ p, int* __restrict__ q",
    );
    assert_eq!(said(&both).threads, "none: Disjoint");
    let one = restrict.replace("parent(int* p, int* q", "parent(int* __restrict__ p, int* q");
    assert!(said(&one).threads.starts_with("unknown"), "both have to be restricted");
    let child = restrict.replace("child(int* a, int* b", "child(int* __restrict__ a, int* __restrict__ b");
    assert!(
        said(&child).threads.starts_with("unknown"),
        "what the child's pointers restrict is one child's execution"
    );
    // Checked by a macro.
    let checked = text
        .replace(
            "__device__ int table",
            "#define CHECK(call) do { cudaError_t err = (call); if (err) exit(1); } while (0)\n__device__ int table",
        )
        .replace("cudaMalloc(&d, 4);", "CHECK(cudaMalloc(&d, 4));");
    assert_eq!(said(&checked).threads, "none: Disjoint");
    // Variables are memory of their own.
    threads(
        "table[i] = other[i]; ",
        "child<<<1, 64>>>(p, q, n);",
        "conflict: writes `table[i]` | writes `table[i]`",
    );
    threads(
        "if (i == 0) table[n] = other[i]; ",
        "child<<<1, 64>>>(p, q, threadIdx.x);",
        "none: Disjoint",
    );
    threads(
        "if (i == 0) table[n] = a[i]; ",
        "child<<<1, 64>>>(p, q, threadIdx.x);",
        "none: Disjoint",
    );
    threads(
        "if (i == 0) table[n] = a[i]; ",
        "child<<<1, 64>>>(table, q, threadIdx.x);",
        "conflict",
    );
    // Pointers from memory, in structs, through casts.
    threads(
        "int** rows = (int**)a; rows[0][i] = 1;",
        "child<<<1, 1>>>(p, q, n);",
        "unknown",
    );
    threads("int* w = a; w++; *w = n;", "child<<<1, 1>>>(p + v, q, n);", "unknown");
    threads(
        "char* w = (char*)a; w[i] = n;",
        "child<<<1, 1>>>(p + v, q, n);",
        "unknown",
    );
    threads(
        "unsigned* w = (unsigned*)a; w[i] = n;",
        "child<<<1, 1>>>(p + v, q, n);",
        "none: Disjoint",
    );
    threads(
        "long long* w = (long long*)a; w[i] = n;",
        "child<<<1, 1>>>(p + v, q, n);",
        "unknown",
    );
    threads(
        "int* w = n ? a : b; w[i] = n;",
        "child<<<1, 1>>>(p + v, q, n);",
        "unknown",
    );
    threads(
        "int& w = a[i]; w = n;",
        "child<<<1, 1>>>(p + v, q, n);",
        "none: Disjoint",
    );
    threads(
        "Pair* w = (Pair*)a; w[i].x = n;",
        "child<<<1, 1>>>(p + v, q, n);",
        "unknown",
    );
    done();
}

#[test]
fn structs() {
    let text = r#"struct Pair { int x, y; };
__global__ void child(Pair* a, int n) { if (threadIdx.x == 0) a[n].x = a[n].y; }
__global__ void parent(Pair* p) { child<<<1, 32>>>(p, threadIdx.x); }
int main() { parent<<<1, 64>>>(nullptr); }
"#;
    assert_eq!(said(text).threads, "none: Disjoint");
    let neighbours = text.replace("a[n].y;", "a[n + 1].y;");
    // Different fields of one element may share storage, as in a union.
    assert!(
        said(&neighbours).threads.starts_with("unknown"),
        "{:?}",
        said(&neighbours)
    );
    let same = text.replace("a[n].y;", "a[n + 1].x;");
    assert!(said(&same).threads.starts_with("conflict"));
    let member = r#"struct Arg { int* data; int* more; };
__global__ void child(Arg a, int n) { if (threadIdx.x == 0) a.data[n] = a.data[n]; }
__global__ void parent(Arg p) { child<<<1, 32>>>(p, threadIdx.x); }
int main() { parent<<<1, 64>>>(Arg{}); }
"#;
    assert_eq!(said(member).threads, "none: Disjoint");
    assert!(
        said(&member.replace("= a.data[n]", "= a.more[n]"))
            .threads
            .starts_with("unknown")
    );
    assert!(
        said(&member.replace("{ child<", "{ p.data += threadIdx.x; child<"))
            .threads
            .starts_with("unknown")
    );
    let class = text
        .replace("{ int x, y; }", "{ int x, y; Pair& operator=(const Pair&); }")
        .replace("a[n].x = a[n].y", "a[n] = a[n]");
    assert!(said(&class).threads.starts_with("unknown"));
    // Bit-fields share a unit, and who writes one writes all of it.
    let one = "if (threadIdx.x == 0) a[n].x = a[n].y;";
    let apart = text.replace(one, "if (threadIdx.x == 0) a[n].x = 1;");
    let constant = apart.replace("p, threadIdx.x", "p, 0");
    assert_eq!(said(&apart).threads, "none: Disjoint");
    assert_eq!(said(&constant).threads, "none: Commuting");
    let bits = constant.replace("{ int x, y; }", "{ int x : 1, y : 3; }");
    assert!(!said(&bits).threads.starts_with("none"), "{:?}", said(&bits));
    // An array at the end of an object may go on behind it.
    for (extent, found) in [
        ("", "unknown"),
        ("0", "unknown"),
        ("1", "unknown"),
        ("4", "none: Disjoint"),
    ] {
        let array = apart.replace("int x, y;", &format!("int x; int y[{extent}];"));
        let array = array.replace("a[n].x = 1;", "a[n].y[n] = n;");
        assert!(said(&array).threads.starts_with(found), "{extent}: {:?}", said(&array));
    }
    done();
}

#[test]
fn what_is_not_known() {
    let whole = "child<<<1, 128>>>(p, q, n);";
    threads("mystery(a);", whole, "unknown: what `mystery` does isn't known");
    threads("asm(\"\");", whole, "unknown: inline assembly");
    threads("printf(\"%d\", n);", whole, "unknown: it prints");
    threads("while (atomicCAS(a, 0, 1)) {}", whole, "unknown: a loop may wait");
    threads("*(volatile int*)a = 1;", whole, "unknown: a volatile access");
    threads("child<<<1, 1>>>(a, b, n);", whole, "unknown: `child` is recursive");
    threads("auto f = [=] { a[0] = n; }; f();", whole, "unknown");
    threads("static int w; w = n;", whole, "unknown");
    threads(
        "a[i] = 0;",
        "auto f = [&] { child<<<1, 1>>>(p + v, q, n); }; f();",
        "unknown: a launch in a lambda",
    );
    threads("@ a[i] = 0;", whole, "unknown");
    let declared = program("", "other_child<<<1, 1>>>(p);")
        .replace("struct Pair", "__global__ void other_child(int*);\nstruct Pair");
    assert!(said(&declared).threads.starts_with("unknown: the definition"));
    // Through functions and macros.
    let helper = "__device__ void put(int* w, int k, int x) { w[k] = x; }\n#define PUT(w, k, x) ((w)[k] = (x))\n#define ME (blockIdx.x * blockDim.x + threadIdx.x)\n";
    for body in ["put(a, n, b[0]);", "put(a + n, 0, b[0]);", "PUT(a, n, b[0]);"] {
        let text = format!(
            "{helper}{}",
            program(&format!("if (i == 0) {body}"), "child<<<1, 32>>>(p, q, v);")
        );
        assert_eq!(said(&text).threads, "none: Disjoint", "{body}");
        let text = text.replace("(p, q, v)", "(p, q, ME)");
        assert_eq!(said(&text).threads, "none: Disjoint", "{body}");
        let text = text.replace("(p, q, ME)", "(p, q, n)");
        assert!(said(&text).threads.starts_with("conflict"), "{body}");
    }
    let template = r#"template <class T> __global__ void child(T* a, T x) { a[threadIdx.x] = x; }
__global__ void parent(float* p) { child<float><<<1, 4>>>(p + threadIdx.x * 4, 1.0f); }
int main() { parent<<<1, 64>>>(nullptr); }
"#;
    assert_eq!(said(template).threads, "none: Disjoint");
    assert!(said(&template.replace("* 4,", "* 3,")).threads.starts_with("conflict"));
    // A grid that the child launches does its part.
    let grand = "__global__ void leaf(int* w, int k) { w[k] = k; }\n";
    let text = format!(
        "{grand}{}",
        program("if (i == 0) leaf<<<1, 1>>>(a, n);", "child<<<1, 32>>>(p, q, v);")
    );
    assert_eq!(said(&text).threads, "none: Disjoint");
    let text = format!(
        "{grand}{}",
        program("leaf<<<1, 1>>>(a, 3);", "child<<<1, 32>>>(p, q, v);")
    );
    assert!(said(&text).threads.starts_with("conflict"));
    done();
}

#[test]
fn conditions_that_do_not_hold() {
    // Past the condition by a jump, or because the variable has changed since.
    let far = "child<<<1, 128>>>(p + v * 48, q, 48);";
    threads("if (i < n) a[i] = b[0];", far, "none: Disjoint");
    threads("if (i < n) { in: a[i] = b[0]; } else goto in;", far, "conflict");
    threads("switch (b[0]) { if (i < n) { case 1: a[i] = b[1]; } }", far, "conflict");
    threads("if (i < n) i += 9; a[i] = b[0];", far, "unknown");
    threads("int k = i; if (k < n) { k += n; a[k] = b[0]; }", far, "unknown");
    threads("if (i < n) {} a[i] = b[0];", far, "conflict");
    threads("if (i < n || b[1]) a[i] = b[0];", far, "conflict");
    threads("if (!(i >= n) && b[1]) a[i] = b[0];", far, "none: Disjoint");
    threads("int x = i < n && (a[i] = b[0]);", far, "none: Disjoint");
    threads("int x = i < n || (a[i] = b[0]);", far, "conflict");
    threads("i < n ? a[i] = b[0] : 0;", far, "none: Disjoint");
    threads(
        "for (int k = 0; k < n; ++k) { if (b[k]) k += 50; a[k] = b[0]; }",
        far,
        "unknown",
    );
    threads("for (int k = n - 1; k >= 0; --k) a[k] = b[0];", far, "none: Disjoint");
    threads("int k = 0; while (k < n) { a[k] = b[0]; k++; }", far, "unknown");
    done();
}

#[test]
fn behind_the_launch() {
    let behind = |body: &str, launch: &str, expected: &str| {
        expect(&said(&program(body, launch)).after, expected, body, launch);
    };
    let write = "if (i < n) a[i] = b[i];";
    behind(write, "child<<<1, 64>>>(p, q, n);", "none");
    behind(write, "child<<<1, 64>>>(p, q, n); int x = q[v];", "none");
    behind(write, "int x = p[v]; child<<<1, 64>>>(p, q, n);", "none");
    behind(
        write,
        "child<<<1, 64>>>(p, q, n); int x = p[v];",
        "conflict: writes `a[i]` | reads `p[v]`",
    );
    behind(
        write,
        "child<<<1, 64>>>(p, q, n); q[v] = 1;",
        "conflict: reads `b[i]` | writes `q[v]`",
    );
    behind(write, "child<<<1, 64>>>(p, q, n); table[v] = 1;", "none");
    behind(write, "child<<<1, 64>>>(table, q, n); table[v] = 1;", "conflict");
    behind(
        write,
        "child<<<1, 64>>>(p, q, n); __syncthreads(); if (v == 0) p[64] = 1;",
        "none",
    );
    behind(
        write,
        "child<<<1, 64>>>(p, q, n); __syncthreads(); if (v == 0) p[63] = 1;",
        "conflict",
    );
    behind(
        write,
        "child<<<1, 64>>>(p, q, n); int w[3]; w[0] = n; __shared__ int s[4]; s[1] = w[0];",
        "none",
    );
    behind(write, "child<<<1, 64>>>(p, q, n); free(p);", "unknown");
    behind(
        write,
        "child<<<1, 64>>>(p, q, n); mystery();",
        "unknown: what `mystery` does",
    );
    behind(write, "mystery(); child<<<1, 64>>>(p, q, n);", "none");
    behind(write, "child<<<1, 64>>>(p, q, n); printf(\"\");", "none");
    behind(
        "printf(\"\");",
        "child<<<1, 64>>>(p, q, n); printf(\"\");",
        "unknown: it prints",
    );
    behind(
        "atomicAdd(a, 1);",
        "child<<<1, 64>>>(p, q, n); atomicAdd(p, 2);",
        "none: Commuting",
    );
    behind(
        "atomicAdd(a, 1);",
        "child<<<1, 64>>>(p, q, n); int x = atomicAdd(p, 2);",
        "conflict",
    );
    // In the next iteration of a loop.
    behind(
        write,
        "for (int k = 0; k < 3; ++k) { int x = p[v]; child<<<1, 64>>>(p, q, n); }",
        "conflict",
    );
    let text = program(
        write,
        "for (int k = 0; k < 3; ++k) { int x = p[v]; child<<<1, 64>>>(p, q, n); int y = p[0]; }",
    );
    assert_eq!(said(&text).meetings, ["reads `p[v]`", "reads `p[0]`"]);
    let device = "__global__ void child(int* a) { a[0] = 1; }\n__device__ void f(int* p) { child<<<1, 1>>>(p); }\n";
    assert!(said(device).after.starts_with("unknown: what its callers do"));
    done();
}

#[test]
fn launches_of_one_thread() {
    let again = |body: &str, launch: &str, expected: &str| {
        expect(&said(&program(body, launch)).iterations, expected, body, launch);
    };
    let write = "if (i < n) a[i] = b[i];";
    again(write, "child<<<1, 64>>>(p, q, n);", "once");
    again(
        write,
        "for (int k = 0; k < n; ++k) child<<<1, 64>>>(p + k * 64, q, 64);",
        "none: Disjoint",
    );
    again(
        write,
        "for (int k = 0; k < n; ++k) child<<<1, 64>>>(p + k * 63, q, 64);",
        "conflict",
    );
    again(
        write,
        "for (int k = n; k > 0; k -= 2) child<<<1, 64>>>(p + k * 32, q, 64);",
        "none: Disjoint",
    );
    again(
        write,
        "for (int k = 0; k < n; k += 64) child<<<1, 64>>>(p + k, q, 64);",
        "none: Disjoint",
    );
    again(
        write,
        "for (int k = 0; k < n; k += q[0]) child<<<1, 64>>>(p + k, q, 64);",
        "unknown",
    );
    again(
        write,
        "for (int k = 0; k < n; ++k) { child<<<1, 64>>>(p + k * 64, q, 64); if (q[k]) --k; }",
        "unknown",
    );
    again(
        write,
        "for (int k = 0; k < 8; ++k) for (int l = 0; l < 8; ++l) child<<<1, 8>>>(p + k * 64 + l * 8, q, 8);",
        "none: Disjoint",
    );
    again(
        write,
        "for (int k = 0; k < 8; ++k) for (int l = 0; l < 9; ++l) child<<<1, 8>>>(p + k * 64 + l * 8, q, 8);",
        "conflict",
    );
    again(
        write,
        "int k = 0; again: child<<<1, 64>>>(p + k * 64, q, 64); if (++k < n) goto again;",
        "unknown",
    );
    again(
        write,
        "for (unsigned k = 0; k < u; ++k) child<<<1, 64>>>(p + threadIdx.x + k, q, 1);",
        "none: Disjoint",
    );
    again(
        write,
        "for (unsigned k = 0; k < u; k += 3) child<<<1, 64>>>(p + threadIdx.x + k, q, 1);",
        "unknown",
    );
    again(
        "atomicAdd(a, 1);",
        "while (q[v]) child<<<1, 64>>>(p, q, n);",
        "none: Commuting",
    );
    let two = program(write, "child<<<1, 64>>>(p, q, 64); child<<<1, 64>>>(p + 64, q, 64);");
    assert_eq!(said(&two).others, ["none: Disjoint"]);
    let two = program(write, "child<<<1, 64>>>(p, q, 64); child<<<1, 64>>>(p + 63, q, 64);");
    assert!(said(&two).others[0].starts_with("conflict"));
    let two = program(
        write,
        "child<<<1, 64>>>(p + v * 64, q, 64); child<<<1, 64>>>(q, p, 64);",
    );
    assert!(!said(&two).others[0].starts_with("none"));
    done();
}

#[test]
fn iterations_of_loops() {
    let of = |body: &str, launch: &str, expected: &[&str]| {
        let found = said(&program(body, launch)).loops;
        let fits = found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| f.starts_with(e));
        if !fits {
            expect(&format!("{found:?}"), &format!("{expected:?}"), body, launch);
        }
    };
    let write = "if (i < n) a[i] = b[i];";
    let far = "child<<<1, 64>>>(p + k * 64, q, 64);";
    let around = |inner: &str| format!("int s = 0; for (int k = 0; k < n; ++k) {{ {inner} {far} }} if (s) return;");
    of(write, &around(""), &["parallel"]);
    of(write, &around("s += q[k];"), &["reduction Add: changes `s += q[k]`"]);
    of(write, &around("s *= q[k];"), &["reduction Multiply"]);
    of(write, &around("s = max(s, q[k]);"), &["reduction Maximum"]);
    of(write, &around("s = min(q[k], s);"), &["reduction Minimum"]);
    of(write, &around("s |= q[k];"), &["reduction Or"]);
    of(write, &around("s += s;"), &["carried"]);
    of(write, &around("s = s * 3 + q[k];"), &["carried"]);
    of(write, &around("s += q[k]; table[k] = s;"), &["scan Add"]);
    of(write, &around("s += q[k]; s *= 2;"), &["carried"]);
    of(write, &around("s = q[k];"), &["carried"]);
    of(write, &around("if (q[k] < 0) break;"), &["ends: break;"]);
    of(write, &around("if (q[k] < 0) return;"), &["ends: return;"]);
    of(write, &around("switch (q[k]) { case 1: break; }"), &["parallel"]);
    of(write, &around("int w = q[k]; w += 2; table[k] = w;"), &["parallel"]);
    of(
        write,
        &around("table[k] = table[k + 1];"),
        &["carried: writes `table[k]` | reads `table[k + 1]`"],
    );
    of(write, &around("table[2 * k] = table[2 * k + 1];"), &["parallel"]);
    of(write, &around("table[0] += q[k];"), &["reduction Add"]);
    of(write, &around("atomicAdd(&table[q[k]], 1);"), &["reduction Add"]);
    of(write, &around("table[0] += q[k]; table[1] = table[0];"), &["carried"]);
    of(
        write,
        &around("table[q[k]] = k;"),
        &["unknown: the subscripts may be equal"],
    );
    of(write, &around("int x = p[0];"), &["carried"]);
    of(
        write,
        "for (int k = 0; k < n; ++k) child<<<1, 64>>>(p, q, n);",
        &["carried: writes `a[i]` | writes `a[i]`"],
    );
    of(
        write,
        "int k = 0; while (k < n) { child<<<1, 64>>>(p + k * 64, q, n); k++; }",
        &["ends: k < n"],
    );
    of(
        "if (i < n) atomicMax(&a[i], 3);",
        "for (int k = 0; k < n; ++k) child<<<1, 64>>>(p, q, n);",
        &["reduction Maximum"],
    );
    of(
        write,
        "for (int k = 0; k < 8; ++k) for (int l = 0; l < 8; ++l) child<<<1, 64>>>(p + k * 64, q, 64);",
        &["carried", "parallel"],
    );
    done();
}

#[test]
fn what_may_run_before_the_launch() {
    let prefix = |body: &str, launch: &str| said(&program(body, launch)).prefix;
    assert_eq!(
        prefix("a[i] = b[i];", "child<<<1, 64>>>(p, q, n);"),
        "int i = blockIdx.x * blockDim.x + threadIdx.x; a[i] = b[i];"
    );
    assert_eq!(
        prefix("int x = b[i]; a[i] = x;", "p[v] = 1; child<<<1, 64>>>(p, q, n);"),
        "int i = blockIdx.x * blockDim.x + threadIdx.x; int x = b[i];"
    );
    assert_eq!(
        prefix("if (i < n) a[i] = 1;", "int w = q[0]; child<<<1, 64>>>(p, q, w);"),
        "int i = blockIdx.x * blockDim.x + threadIdx.x;"
    );
    assert_eq!(
        prefix(
            "__shared__ int s; __syncthreads(); a[i] = 1;",
            "child<<<1, 64>>>(p, q, n);"
        ),
        "int i = blockIdx.x * blockDim.x + threadIdx.x; __shared__ int s;"
    );
    done();
}

#[test]
fn what_leads_to_itself_is_named() {
    let mut host = Host::new();
    let source = r#"__global__ void walk(int* p, int d) { p[d] = 1; if (threadIdx.x == 0 && d < 4) walk<<<1, 32>>>(p, d + 1); p[0] = 2; }
void host(int* p) { walk<<<1, 32>>>(p, 0); }"#;
    let file = host.set_file(Path::new("/w/a.cu"), source);
    let db = host.db();
    let walk = items(db, file).functions[0];
    let Dependence::Unknown(doubt) = &after(db, walk)[0].dependence else {
        panic!("{:?}", after(db, walk)[0].dependence);
    };
    assert_eq!(doubt.reason, "`walk` is recursive");
    let (function, span) = doubt.place.unwrap();
    assert_eq!(span.text(&function.text(db)), "walk");
}

/// A chain (or circle) of device functions, each of which calls the next, and a parent that calls the first behind its launch.
fn calls(count: usize, circle: bool) -> String {
    let mut text = String::new();
    for k in 0..count {
        text += &format!("__device__ int f{k}(int* p, int x);\n");
    }
    for k in 0..count {
        let next = match (k + 1 < count, circle) {
            (true, _) => format!("f{}(p, x)", k + 1),
            (false, true) => "f0(p, x)".to_owned(),
            (false, false) => "x".to_owned(),
        };
        text += &format!("__device__ int f{k}(int* p, int x) {{ p[{k}] = x; return {next}; }}\n");
    }
    text + r#"__global__ void child(int* a) { a[threadIdx.x] = 1; }
__global__ void parent(int* p, int n) { child<<<1, 32>>>(p); n = f0(p, n); }
void host(int* p) { parent<<<1, 32>>>(p, 0); }
"#
}

#[test]
fn what_leads_to_many_functions_is_unknown_and_takes_few_steps() {
    let short = said(&calls(100, false));
    assert!(!short.after.contains("more functions"), "{}", short.after);
    for circle in [false, true] {
        let long = said(&calls(600, circle));
        let expected = "unknown: it leads to more functions than are followed";
        assert_eq!(long.after, expected, "{circle}");
        // Nobody collects what is unknown of all the others.
        let mut host = Host::new();
        let file = host.set_file(Path::new("/w/a.cu"), calls(600, circle));
        let db = host.db();
        let listed: usize = items(db, file)
            .functions
            .iter()
            .map(|f| own_footprint(db, *f).gaps.len())
            .sum();
        assert!(listed <= 600 * 20, "{circle}: {listed}");
    }
}

#[test]
fn accesses_that_are_too_many_to_be_listed_are_unknown_where_they_stand() {
    let before: String = (0..200).map(|k| format!("    q[{k}] = {k};\n")).collect();
    let found = said(&program(
        "a[i] = i;",
        &format!("{before}    child<<<1, 32>>>(p, q, n);\n    p[v] = 1;"),
    ));
    assert_eq!(found.after, "unknown: it accesses memory in too many places");
    let found = said(&program(
        "a[i] = i;",
        &format!("{before}    child<<<1, 32>>>(p, q, n);"),
    ));
    assert!(found.after.starts_with("none"), "{}", found.after);
}

#[test]
fn iterations_of_what_leads_to_itself_are_unknown() {
    let found = said(
        r#"__global__ void child(int* a) { a[threadIdx.x] = 1; }
__device__ void walk(int* p, int d) {
for (int i = 0; i < d; i++) { p[0] = p[1] + i; child<<<1, 32>>>(p + i); }
if (d > 0) walk(p, d - 1); }
__global__ void parent(int* p) { walk(p, 3); }
void host(int* p) { parent<<<1, 1>>>(p); }
"#,
    );
    assert!(!found.loops.is_empty());
    assert!(
        found.loops.iter().all(|l| !l.starts_with("parallel")),
        "{:?}",
        found.loops
    );
}
