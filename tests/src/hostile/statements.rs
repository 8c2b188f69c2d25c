//! Functions of many statements, variables, branches and accesses.

use super::{Files, Hostile, around, one, times};

/// The projects of this file.
pub fn all() -> Vec<Hostile> {
    let hostile = |name, about, make| Hostile { name, about, make };
    vec![
        hostile("switch-10000", "A switch of 10,000 cases.", |d| {
            switch(10_000 / d, true)
        }),
        hostile(
            "switch-fall-through",
            "A switch of 10,000 cases that fall through into the next.",
            |d| switch(10_000 / d, false),
        ),
        hostile("statements-100000", "A function of 100,000 statements.", |d| {
            statements(100_000 / d)
        }),
        hostile(
            "variables-100000",
            "A function of 100,000 variables, each made from the one before.",
            |d| variables(100_000 / d),
        ),
        hostile(
            "branches-20000",
            "A function of 20,000 branches, each of which changes a variable.",
            |d| branches(20_000 / d),
        ),
        hostile("loops-5000", "A function of 5,000 loops, one behind the other.", |d| {
            loops(5_000 / d)
        }),
        hostile("returns-10000", "A function of 10,000 early returns.", |d| {
            returns(10_000 / d)
        }),
        hostile(
            "assignments-in-loops",
            "2,000 assignments to one variable in loops that are nested 50 deep.",
            |d| assignments_in_loops(2_000 / d, 50),
        ),
        hostile(
            "variables-in-loops",
            "2,000 variables, each made from the next, in loops that are nested 50 deep.",
            |d| variables_in_loops(2_000 / d, 50),
        ),
        hostile("gotos-3000", "3,000 labels and jumps forth.", |d| {
            gotos(3_000 / d, |k, n| (k + 2).min(n))
        }),
        hostile(
            "gotos-irreducible",
            "3,000 labels, with jumps forth and back into the middle of loops.",
            |d| gotos(3_000 / d, |k, n| (k * 7_919 + 13) % n.max(1)),
        ),
        hostile(
            "accesses-in-a-statement",
            "One statement of 10,000 accesses through pointers.",
            |d| accesses_in_a_statement(10_000 / d),
        ),
        hostile(
            "accesses-10000",
            "10,000 statements that write through a pointer, and a child that writes as often.",
            |d| accesses(10_000 / d),
        ),
        hostile(
            "barriers-5000",
            "5,000 barriers with shared memory written between them.",
            |d| barriers(5_000 / d),
        ),
        hostile(
            "pointers-5000",
            "5,000 pointers, each of which may be any that was before.",
            |d| pointers(5_000 / d),
        ),
        hostile("nested-subscripts", "5,000 subscripts within each other.", |d| {
            nested_subscripts(5_000 / d)
        }),
        hostile(
            "polynomial",
            "Products of sums of variables that multiply out to millions of terms.",
            |d| polynomial((64 / d).max(4)),
        ),
        hostile("sum-500000", "A sum of 500,000 terms.", |d| {
            chain(500_000 / d, "int x = i", " + i", ";")
        }),
        hostile("products-500000", "A product of 500,000 factors.", |d| {
            chain(500_000 / d, "int x = i", " * i", ";")
        }),
        hostile("commas-500000", "500,000 expressions joined by commas.", |d| {
            chain(500_000 / d, "i = 1", ", i = n", ";")
        }),
        hostile("assignments-500000", "A chain of 500,000 assignments.", |d| {
            chain(500_000 / d, "i = ", "n = ", "1;")
        }),
        hostile(
            "initializers-500000",
            "An array of 500,000 elements in an initialiser.",
            |d| chain(500_000 / d, "int x[] = {0", ", 7", "};"),
        ),
        hostile(
            "initializers-nested",
            "An array of 500,000 initialisers in braces.",
            |d| chain(500_000 / d, "int x[][1] = {{0}", ", {i}", "};"),
        ),
        hostile("arguments-500000", "A call with 500,000 arguments.", |d| {
            chain(500_000 / d, "printf(\"\"", ", i", ");")
        }),
        hostile("declarators-100000", "A declaration of 100,000 variables.", |d| {
            around(&format!("  int x{};", times(100_000 / d, |k| format!(", v{k} = {k}"))))
        }),
        hostile("shifts-500000", "500,000 shifts, as a stream is written to.", |d| {
            chain(500_000 / d, "out", " << i", ";")
        }),
        hostile(
            "comparisons-500000",
            "500,000 angle brackets that may be templates.",
            |d| chain(500_000 / d, "i = n", " < i", ";"),
        ),
        hostile(
            "values-1000",
            "A variable of a child that 1,000 statements make of itself.",
            |d| values(1_000 / d),
        ),
        hostile(
            "squares-500",
            "500 variables, each of which is the square of the one before.",
            |d| squares(500 / d),
        ),
        hostile(
            "exclusive-launches",
            "30 launches of one kernel, each by another thread.",
            |d| exclusive_launches(30 / d),
        ),
        hostile(
            "strings-500000",
            "500,000 string literals, one behind the other.",
            |d| chain(500_000 / d, "const char *s = \"\"", " \"a\"", ";"),
        ),
    ]
}

fn chain(count: usize, first: &str, piece: &str, last: &str) -> Files {
    around(&format!("  {first}{}{last}", piece.repeat(count)))
}

fn switch(count: usize, breaks: bool) -> Files {
    let end = if breaks { " break;" } else { "" };
    let cases = times(count, |k| format!("  case {k}: x += {k}; out[{k}] = x;{end}\n"));
    around(&format!("  int x = 0;\n  switch (n + i) {{\n{cases}  }}\n  n = x;"))
}

fn statements(count: usize) -> Files {
    around(&times(count, |k| match k % 4 {
        0 => format!("  i += {k};\n"),
        1 => format!("  out[{k}] = i;\n"),
        2 => "  n = out[i];\n".to_owned(),
        _ => "  i = i * n;\n".to_owned(),
    }))
}

fn variables(count: usize) -> Files {
    around(&format!(
        "  int v0 = i;\n{}  n = v{count};",
        times(count, |k| format!("  int v{} = v{k} + 1;\n", k + 1))
    ))
}

fn values(count: usize) -> Files {
    let made = "    sum = (sum * 3 + sum) % 7;\n".repeat(count);
    let child = format!(
        "__global__ void child(const int *in, unsigned *out, int n) {{\n  for (int i = threadIdx.x; i < n; i += blockDim.x) {{\n    \
         int sum = 0;\n{made}    if (i < 12 && n % 2 == 0) atomicAdd(&out[sum & 15], (unsigned)in[5]);\n    \
         else sum = max(sum, in[sum & 255] / 7);\n  }}\n}}\n"
    );
    let parent = "__global__ void parent(int *in, unsigned *out, int n) {\n  for (int k = threadIdx.x; k < n; k += blockDim.x)\n    \
                  if (n % 5 > 0) child<<<1, 16>>>(in, out, n % 5);\n}\n";
    one(format!(
        "{child}{parent}void host(int *in, unsigned *out) {{ parent<<<2, 32>>>(in, out, 7); }}\n"
    ))
}

fn squares(count: usize) -> Files {
    let made = times(count, |k| format!("  int v{} = v{k} * v{k} + 1;\n", k + 1));
    one(format!(
        "__global__ void child(int *out, int v) {{\n  if (threadIdx.x < v) out[threadIdx.x] += v;\n}}\n__global__ void parent(int *out) {{\n  \
         int v0 = threadIdx.x;\n{made}  child<<<1, 32>>>(out + v{count}, v{count});\n}}\nvoid host(int *out) {{ parent<<<2, 64>>>(out); }}\n"
    ))
}

fn exclusive_launches(count: usize) -> Files {
    let all = times(count, |k| {
        format!("  if (threadIdx.x == {k}) child<<<1, 32>>>(out + {k}, {k});\n")
    });
    one(format!(
        "__global__ void child(int *out, int v) {{\n  if (threadIdx.x < v) out[threadIdx.x] += v;\n}}\n__global__ void parent(int *out) {{\n\
         {all}}}\nvoid host(int *out) {{ parent<<<2, 64>>>(out); }}\n"
    ))
}

fn branches(count: usize) -> Files {
    let declared = times(50, |k| format!("  int v{k} = {k};\n"));
    around(&format!(
        "{declared}{}",
        times(count, |k| format!(
            "  if (v{} > i) v{} = n; else v{} += i;\n",
            k % 50,
            (k + 1) % 50,
            (k * 7) % 50
        ))
    ))
}

fn loops(count: usize) -> Files {
    around(&times(count, |k| {
        format!("  for (int k{k} = 0; k{k} < n; k{k}++) {{ out[k{k}] = i; i += k{k}; }}\n")
    }))
}

fn returns(count: usize) -> Files {
    around(&times(count, |k| format!("  if (out[{k}] == i) return;\n")))
}

fn nested(depth: usize, inner: &str) -> Files {
    let open = times(depth, |k| format!("for (int k{k} = 0; k{k} < n; k{k}++) {{\n"));
    around(&format!("  int x = 0;\n{open}{inner}{}\n  n = x;", "}".repeat(depth)))
}

fn assignments_in_loops(count: usize, depth: usize) -> Files {
    nested(depth, &times(count, |k| format!("  x = x + k{} * {k};\n", k % depth)))
}

fn variables_in_loops(count: usize, depth: usize) -> Files {
    let changed = times(count, |k| format!("  v{k} = v{} + 1;\n", k + 1));
    let declared = times(count + 1, |k| format!("  int v{k} = 0;\n"));
    let open = times(depth, |k| format!("for (int k{k} = 0; k{k} < v{k}; k{k}++) {{\n"));
    around(&format!(
        "{declared}{open}{changed}  v{count} = i;\n{}\n  n = v0;",
        "}".repeat(depth)
    ))
}

fn gotos(count: usize, target: impl Fn(usize, usize) -> usize) -> Files {
    let body = times(count, |k| {
        format!("l{k}: i += {k}; if (out[i] > {k}) goto l{};\n", target(k, count))
    });
    around(&format!("{body}l{count}: ;"))
}

fn accesses_in_a_statement(count: usize) -> Files {
    around(&format!("  i = 0{};", times(count, |k| format!(" + out[i + {k}]"))))
}

fn accesses(count: usize) -> Files {
    let stored = times(count, |k| format!("  p[t * {k} + n] = p[t + {k}];\n"));
    let mut files = around(&format!(
        "  int *p = out; int t = i;\n  writes<<<n, 32>>>(out, n);\n{stored}"
    ));
    let writes = format!("__global__ void writes(int *p, int n) {{\n  int t = threadIdx.x;\n{stored}}}\n");
    if let Some((_, text)) = files.first_mut() {
        text.splice(0..0, writes.into_bytes());
    }
    files
}

fn barriers(count: usize) -> Files {
    around(&format!(
        "  __shared__ int s[256];\n{}",
        times(count, |k| format!(
            "  s[threadIdx.x] = i + {k};\n  __syncthreads();\n  i = s[{}];\n  __syncthreads();\n",
            k % 256
        ))
    ))
}

fn pointers(count: usize) -> Files {
    around(&format!(
        "  int a; int *p0 = out;\n{}",
        times(count, |k| format!(
            "  int *p{} = i > {k} ? p{k} : p{}; *p{k} = a;\n",
            k + 1,
            k / 2
        ))
    ))
}

fn nested_subscripts(count: usize) -> Files {
    around(&format!("  i = {}i{};", "out[".repeat(count), "]".repeat(count)))
}

fn polynomial(count: usize) -> Files {
    let declared = times(count, |k| format!("  int v{k} = out[{k}];\n"));
    let factor = |k: usize| format!("(v{} + v{} + v{} + n)", k % count, (k + 1) % count, (k + 2) % count);
    let product = times(count, |k| if k == 0 { factor(k) } else { format!(" * {}", factor(k)) });
    around(&format!(
        "{declared}  out[{product}] = 1;\n  child<<<{product}, 32>>>(out + {product}, n);"
    ))
}
