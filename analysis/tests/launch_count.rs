//! How often launch sites of small programs launch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gridfuse_analysis::facts::launch::{GridSize, LaunchCount, Recursion, launch_counts};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;

const HEAD: &str = r#"constexpr int LIMIT = 30;
__global__ void child(int* out, int n) { out[n] = 1; }
"#;

/// The count of the only launch in the function `parent`.
fn count_in(source: &str) -> LaunchCount {
    let mut host = Host::new();
    let file = host.set_file("/a.cu".as_ref(), source);
    let db = host.db();
    let functions = &items(db, file).functions;
    let parent = functions
        .iter()
        .find(|f| f.has_body(db) && f.name(db) == "parent")
        .unwrap();
    let [count] = launch_counts(db, *parent).as_slice() else {
        panic!("{source}")
    };
    count.clone()
}

fn kernel(statements: &str) -> String {
    format!(
        r#"{HEAD}__global__ void parent(int* out, int n, int m, const int* row) {{
{statements}
}}
"#
    )
}

fn count(statements: &str) -> LaunchCount {
    count_in(&kernel(statements))
}

/// Per thread and per block.
#[track_caller]
fn is(statements: &str, per_thread: &str, per_block: &str) {
    let count = count(statements);
    let found = (count.per_thread.to_string(), count.per_block.to_string());
    assert_eq!(found, (per_thread.to_owned(), per_block.to_owned()), "{statements}");
}

#[test]
fn jumps_and_what_is_not_understood_may_repeat_a_launch() {
    for statements in [
        "again: child<<<1, 32>>>(out, n); if (row[n]) goto again;",
        "again: n++; if (m) child<<<1, 32>>>(out, n); if (row[n]) goto again;",
        "again: n++; if (row[n]) { child<<<1, 32>>>(out, n); goto again; }",
        "int k; if (m) goto in; for (k = 0; k < 3; ++k) { in: child<<<1, 32>>>(out, n); }",
        "UNKNOWN(n) { child<<<1, 32>>>(out, n); }",
    ] {
        assert_eq!(count(statements).per_thread.to_string(), "0 or more", "{statements}");
    }
    is(
        "if (n) goto end; child<<<1, 32>>>(out, n); end: m = 0;",
        "0 or 1",
        "up to blockDim.x",
    );
    // As `continue` and `break`.
    is(
        "for (int k = 0; k < 3; ++k) { if (row[k]) goto next; child<<<1, 32>>>(out, n); next: m = 0; }",
        "up to 3",
        "up to 3 * blockDim.x",
    );
    is(
        "for (int k = 0; k < 3; ++k) { if (row[k]) goto end; child<<<1, 32>>>(out, n); } end: m = 0;",
        "up to 3",
        "up to 3 * blockDim.x",
    );
    is(
        "again: if (row[n++]) goto again; child<<<1, 32>>>(out, n);",
        "0 or 1",
        "up to blockDim.x",
    );
}

#[test]
fn at_most_once() {
    is("child<<<1, 32>>>(out, n);", "1", "1 to blockDim.x");
    is(
        "if (row[threadIdx.x]) child<<<1, 32>>>(out, n);",
        "0 or 1",
        "up to blockDim.x",
    );
    is("if (threadIdx.x == 0) child<<<1, 32>>>(out, n);", "0 or 1", "1");
    is(
        "if (threadIdx.x == 0 && n > 3) child<<<1, 32>>>(out, n);",
        "0 or 1",
        "0 or 1",
    );
    is("if (threadIdx.x != 0) return; child<<<1, 32>>>(out, n);", "0 or 1", "1");
    is(
        "if (row[n]) return; child<<<1, 32>>>(out, n);",
        "0 or 1",
        "up to blockDim.x",
    );
    is(
        "if (threadIdx.x % 32 == 0) child<<<1, 32>>>(out, n);",
        "0 or 1",
        "1 to blockDim.x / 32",
    );
    is("n && (child<<<1, 32>>>(out, n), true);", "0 or 1", "up to blockDim.x");
    is(
        "switch (n) { case 1: child<<<1, 32>>>(out, n); }",
        "0 or 1",
        "up to blockDim.x",
    );
    is(
        r#"
#ifdef X
child<<<1, 32>>>(out, n);
#endif
"#,
        "0 or 1",
        "up to blockDim.x",
    );
    is(
        "auto f = [&] { child<<<1, 32>>>(out, n); }; f();",
        "0 or 1",
        "up to blockDim.x",
    );
}

#[test]
fn loops() {
    let pinned = |body: &str| format!("if (threadIdx.x == 0) {body}");
    let one = |body: &str, per_block: &str| {
        let count = count(&pinned(body));
        assert_eq!(count.per_block.to_string(), per_block, "{body}");
    };
    one("for (int i = 0; i < 4; ++i) child<<<1, 32>>>(out, i);", "4");
    one("for (int i = 9; i >= 0; i -= 2) child<<<1, 32>>>(out, i);", "5");
    one(
        "for (int i = 0; i != 7; i++) for (int j = 1; j <= 3; j = j + 1) child<<<1, 32>>>(out, i);",
        "21",
    );
    one("for (int i = 0; i < n; ++i) child<<<1, 32>>>(out, i);", "up to n");
    one(
        "for (int i = m; i < n + 1; ++i) child<<<1, 32>>>(out, i);",
        "up to n - m + 1",
    );
    one(
        "for (int i = 0; i < n + 1; i += m) child<<<1, 32>>>(out, i);",
        "up to (n + m) / m",
    );
    // Rounded up: the last iteration may be for less than a whole step.
    for (head, expected) in [
        ("int i = 0; i < n; i += 3", "up to (n + 2) / 3"),
        ("int i = 0; i <= n; i += 3", "up to (n + 3) / 3"),
        ("int i = m; i < n; i += 4", "up to (n - m + 3) / 4"),
        ("int i = 0; i < n; i += m * 2", "up to (n + m * 2 - 1) / (m * 2)"),
        ("int i = 0; i < n; i += m + 1", "up to (n + (m + 1) - 1) / (m + 1)"),
        ("int i = 0; i <= n; i += m", "up to (n + m) / m"),
        ("int i = 0; i < (n < m ? n : m); i++", "up to (n < m ? n : m)"),
    ] {
        one(&format!("for ({head}) child<<<1, 32>>>(out, i);"), expected);
    }
    one(
        "for (int i = 0; i < n; ++i) for (int j = 0; j < m - i; ++j) child<<<1, 32>>>(out, i);",
        "up to m * n",
    );
    one(
        "for (int i = 0; i < 4; ++i) { if (row[i]) break; child<<<1, 32>>>(out, i); }",
        "up to 4",
    );
    one(
        "for (int i = 0; i < 4; ++i) { for (;;) break; child<<<1, 32>>>(out, i); }",
        "4",
    );
    one("for (int i = 0; i < 0; ++i) child<<<1, 32>>>(out, i);", "0");
    one("do { child<<<1, 32>>>(out, n); } while (row[n]);", "1 or more");
    one("while (row[n]) child<<<1, 32>>>(out, n);", "0 or more");
    one("for (;;) child<<<1, 32>>>(out, n);", "0 or more");
}

/// Loops of which the number of iterations must not be claimed to be known.
#[test]
fn loops_that_are_not_counted() {
    for body in [
        "for (int i = 0; i < 4; ++i) { i -= row[i]; child<<<1, 32>>>(out, i); }",
        "for (int i = 0; i < n; ++i) { n = row[i]; child<<<1, 32>>>(out, i); }",
        "for (int i = 0; i < 4; ++i) { int* p = &i; *p = 0; child<<<1, 32>>>(out, i); }",
        "for (int i = 0; i < 4; ++i) { int& r = i; unknown(i); child<<<1, 32>>>(out, i); }",
        "for (int i = 0; i < 4; --i) child<<<1, 32>>>(out, i);",
        "for (int i = 0; i != 7; i += 2) child<<<1, 32>>>(out, i);",
        "for (int i = 1; i < 64; i *= 2) child<<<1, 32>>>(out, i);",
        "for (volatile int i = 0; i < 4; ++i) child<<<1, 32>>>(out, i);",
        "for (int i = 0; i < row[0]; ++i) { out[0] = 1; child<<<1, 32>>>(out, i); }",
    ] {
        let count = count(&format!("if (threadIdx.x == 0) {body}"));
        assert_eq!(count.per_block.to_string(), "0 or more", "{body}");
    }
}

#[test]
fn grids_and_totals() {
    let launched = |config: &str| {
        let source = kernel("if (out[n]) child<<<2, 64>>>(out, n);");
        count_in(&format!("{source}\nint main() {{ parent<<<{config}>>>(0, 0, 0, 0); }}"))
    };
    let known = launched("dim3(4, 2), 256");
    assert_eq!(known.per_grid.to_string(), "up to 2048");
    assert_eq!(known.total_threads.to_string(), "262144");
    let unknown = launched("blocks, 256");
    assert_eq!(unknown.per_grid.to_string(), "up to 256 * gridDim.x");
    assert_eq!(unknown.total_threads.to_string(), "256 * gridDim.x * 128");
    let size = |config: &str| {
        let count = count(&format!("child<<<{config}>>>(out, n);"));
        (count.size, count.child_threads.to_string())
    };
    assert_eq!(size("1, 16"), (GridSize::Tiny, "16".to_owned()));
    assert_eq!(size("2, dim3(4, 4)"), (GridSize::Constant, "32".to_owned()));
    assert_eq!(size("n, 64"), (GridSize::Symbolic, "n * 64".to_owned()));
    assert_eq!(
        size("(n + 63) / 64, 64"),
        (GridSize::Symbolic, "((n + 63) / 64) * 64".to_owned())
    );
}

fn recursion(parameters: &str, body: &str, host: &str) -> Recursion {
    let source = format!(
        r#"{HEAD}__global__ void parent({parameters}) {{ {body} }}
int main() {{ {host} }}
"#
    );
    count_in(&source).recursion
}

#[test]
fn recursion_by_way_of_other_kernels_is_endless_when_all_launches_are_certain() {
    let of = |there: &str, back: &str| {
        let source = format!(
            r#"__global__ void pong(int* p, int n);
__global__ void parent(int* p, int n) {{ {there} }}
__global__ void pong(int* p, int n) {{ {back} }}
int main() {{ parent<<<1, 1>>>(p, 1); }}
"#
        );
        count_in(&source).recursion
    };
    let (there, back) = ("pong<<<1, 1>>>(p, n);", "parent<<<1, 1>>>(p, n);");
    assert_eq!(of(there, back), Recursion::Endless);
    assert_eq!(
        of("if (threadIdx.x == 0) pong<<<1, 1>>>(p, n);", back),
        Recursion::Endless
    );
    for (there, back) in [
        ("if (n) pong<<<1, 1>>>(p, n);", back),
        (there, "if (n) parent<<<1, 1>>>(p, n);"),
        (there, "parent<<<n, 1>>>(p, n);"),
        (there, "if (n > 3) __trap(); parent<<<1, 1>>>(p, n);"),
    ] {
        assert_eq!(of(there, back), Recursion::Open, "{there} {back}");
    }
}

#[test]
fn recursion_is_classified() {
    let host = "parent<<<1, 1>>>(p, 0);";
    let r = |body: &str| recursion("int* p, int depth", body, host);
    assert_eq!(r("parent<<<1, 32>>>(p, depth + 1);"), Recursion::Endless);
    assert_eq!(
        r("if (threadIdx.x == 0) parent<<<1, 32>>>(p, depth + 1);"),
        Recursion::Endless
    );
    assert_eq!(
        r("for (int i = 0; i < 2; ++i) parent<<<1, 32>>>(p, depth);"),
        Recursion::Endless
    );
    assert_eq!(r("parent<<<gridDim.x, blockDim>>>(p, depth);"), Recursion::Endless);
    // A launch without blocks fails, and a trap ends the program.
    for ended in [
        "parent<<<depth / 2, 32>>>(p, depth / 2);",
        "parent<<<(depth + 255) / 256, 256>>>(p, depth - 256);",
        "parent<<<1, depth>>>(p, depth - 1);",
        "dim3 grid(1, depth); parent<<<grid, 32>>>(p, depth - 1);",
        "if (depth > 100) __trap(); parent<<<1, 32>>>(p, depth + 1);",
        "parent<<<1, 32>>>(p, depth + 1); assert(depth < 100);",
        "if (depth > 100) asm(\"exit;\"); parent<<<1, 32>>>(p, depth + 1);",
        "unknown(depth); parent<<<1, 32>>>(p, depth + 1);",
    ] {
        assert_eq!(r(ended), Recursion::Open, "{ended}");
    }
    assert_eq!(
        r("if (depth < LIMIT) parent<<<1, 32>>>(p, depth + 1);"),
        Recursion::Bounded(Some(30))
    );
    assert_eq!(
        r("if (depth <= LIMIT) parent<<<1, 32>>>(p, depth + 1);"),
        Recursion::Bounded(Some(31))
    );
    assert_eq!(
        r("if (depth >= LIMIT) return; if (threadIdx.x == 0) parent<<<1, 32>>>(p, depth + 1);"),
        Recursion::Bounded(Some(30))
    );
    assert_eq!(
        r("if (p[0] && !(LIMIT <= depth)) { int next = depth + 1; parent<<<1, 32>>>(p, next); }"),
        Recursion::Bounded(Some(30))
    );
    assert_eq!(
        r("if (depth < *p) parent<<<1, 32>>>(p, depth + 1);"),
        Recursion::Bounded(None)
    );
    assert_eq!(
        r("if (depth + 1 < LIMIT) parent<<<1, 32>>>(p, depth + 1);"),
        Recursion::Bounded(Some(29))
    );
    assert_eq!(
        r("if (LIMIT <= 2 + depth) return; parent<<<1, 32>>>(p, depth + 1);"),
        Recursion::Bounded(Some(28))
    );
    assert_eq!(
        r("if (depth + 1 != LIMIT) parent<<<1, 32>>>(p, depth + 1);"),
        Recursion::Bounded(Some(29))
    );
    // Not ahead by a constant, and not ahead at all.
    assert_eq!(
        r("if (depth + *p < LIMIT) parent<<<1, 32>>>(p, depth + 1);"),
        Recursion::Open
    );
    assert_eq!(
        r("if (depth - 1 < LIMIT) parent<<<1, 32>>>(p, depth + 1);"),
        Recursion::Open
    );
    assert_eq!(
        r("if (depth * 2 < LIMIT) parent<<<1, 32>>>(p, depth + 1);"),
        Recursion::Open
    );
    // Not a counter, not a limit, not a constant start.
    assert_eq!(r("if (depth < LIMIT) parent<<<1, 32>>>(p, depth);"), Recursion::Open);
    assert_eq!(
        r("if (depth > LIMIT) parent<<<1, 32>>>(p, depth + 1);"),
        Recursion::Open
    );
    assert_eq!(r("if (*p) parent<<<1, 32>>>(p, depth + 1);"), Recursion::Open);
    assert_eq!(
        r("depth = 0; if (depth < LIMIT) parent<<<1, 32>>>(p, depth + 1);"),
        Recursion::Open
    );
    assert_eq!(r("child<<<1, 32>>>(p, depth);"), Recursion::None);
    let down = |host: &str| {
        recursion(
            "int* p, int levels",
            "if (levels > 0) parent<<<1, 32>>>(p, levels - 1);",
            host,
        )
    };
    assert_eq!(down("parent<<<1, 1>>>(p, 40);"), Recursion::Bounded(Some(40)));
    assert_eq!(
        down("parent<<<1, 1>>>(p, 40); parent<<<1, 1>>>(p, 50);"),
        Recursion::Bounded(Some(50))
    );
    assert_eq!(down("parent<<<1, 1>>>(p, n);"), Recursion::Bounded(None));
    assert_eq!(down(""), Recursion::Bounded(None));
}

/// Threads that share the iterations of a loop do each once.
#[test]
fn loops_that_threads_share() {
    let index = "blockIdx.x * blockDim.x + threadIdx.x";
    let counts = |declarations: &str, head: &str, launch: &str, host: &str| {
        let kernel = kernel(&format!("{declarations} for ({head}) {launch}"));
        let count = count_in(&format!(
            "{kernel}void run(int* out, int n, int m, const int* row, dim3 size) {{ parent<<<{host}>>>(out, n, m, row); }}\n"
        ));
        [count.per_thread, count.per_block, count.per_grid].map(|amount| amount.to_string())
    };
    let whole = format!("int i = {index}; i < n; i += gridDim.x * blockDim.x");
    let child = "child<<<1, 32>>>(out, i);";
    let per_thread = "up to (n + gridDim.x * blockDim.x - 1) / (gridDim.x * blockDim.x)";
    let block = format!("up to ({}) * 64", per_thread.trim_start_matches("up to "));
    assert_eq!(counts("", &whole, child, "m, 64"), [per_thread, &block, "up to n"]);
    // By way of variables.
    let named = format!("const int first = {index}; int stride = blockDim.x * gridDim.x;");
    let head = "int i = first; i < n; i += stride";
    assert_eq!(counts(&named, head, child, "m, 64")[2], "up to n");
    assert_eq!(
        counts(
            "",
            &whole,
            "for (int k = 0; k < m; ++k) child<<<1, 32>>>(out, k);",
            "m, 64"
        )[2],
        "up to n * m"
    );
    // Blocks share, and all threads of each launch; threads of a block share, and each block does it all.
    let blocks = "int i = blockIdx.x; i < n; i += gridDim.x";
    assert_eq!(counts("", blocks, child, "m, 64")[2], "up to n * 64");
    let threads = "int i = threadIdx.x; i < n; i += blockDim.x";
    assert_eq!(
        counts("", threads, child, "8, 64"),
        ["up to (n + 63) / 64", "up to n", "up to n * 8"]
    );
    // Threads with other numbers in y do the same once more; where each has its own end, all of them are more.
    assert_ne!(counts("", &whole, child, "m, dim3(8, 8)")[2], "up to n");
    assert_ne!(counts("", &whole, child, "m, size")[2], "up to n");
    let own = format!("int i = {index}; i < n + (int)threadIdx.x; i += gridDim.x * blockDim.x");
    assert_eq!(counts("", &own, child, "m, 64")[2], "0 or more");
    // In a smaller type several threads have the same number, and each does the iteration.
    let byte = format!("unsigned char first = {index};");
    let whole_by = |from: &str| format!("int i = {from}; i < n; i += gridDim.x * blockDim.x");
    assert_ne!(counts(&byte, &whole_by("first"), child, "m, 64")[2], "up to n");
    assert_ne!(
        counts("", &whole_by(&format!("(unsigned char)({index})")), child, "m, 64")[2],
        "up to n"
    );
    assert_eq!(
        counts("", &whole_by(&format!("(int)({index})")), child, "m, 64")[2],
        "up to n"
    );
    // Other steps than those of the whole grid.
    let halves = format!("int i = {index}; i < n; i += gridDim.x * 32");
    assert_ne!(counts("", &halves, child, "m, 64")[2], "up to n");
}

#[test]
fn enumerators_are_numbers_where_literals_say_them() {
    let per_thread = |declared: &str, bound: &str| {
        let launch = format!("for (int i = 0; i < {bound}; ++i) child<<<1, 32>>>(out, i);");
        count_in(&format!("{declared}\n{}", kernel(&launch)))
            .per_thread
            .to_string()
    };
    for (declared, bound, expected) in [
        ("enum { N = 4 };", "N", "4"),
        ("enum Mode { A, B = 7, C };", "C", "8"),
        ("enum Mode : unsigned char { A, B = 0x10 };", "B", "16"),
        ("struct Config { enum { N = 4 }; };", "Config::N", "4"),
        // Something else says what it is.
        ("enum { A = sizeof(int), B };", "B", "up to B"),
        ("enum { A,\n#ifdef MORE\nM,\n#endif\nB };", "B", "up to B"),
        (
            "struct One { enum { N = 4 }; };\nstruct Two { enum { N = 5 }; };",
            "One::N",
            "up to One::N",
        ),
        ("enum { N = 4 };\n#define N 5", "N", "5"),
        (
            "namespace other { constexpr int N = 8; }\nenum { N = 4 };",
            "N",
            "0 or more",
        ),
    ] {
        assert_eq!(per_thread(declared, bound), expected, "{declared}");
    }
}
