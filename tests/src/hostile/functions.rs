//! Many functions, many launches, and functions that call each other.

use super::{CHILD, Files, HOST, Hostile, around, one, parent, times};

/// The projects of this file.
pub fn all() -> Vec<Hostile> {
    let hostile = |name, about, make| Hostile { name, about, make };
    vec![
        hostile("launches-1000", "One kernel launches 1,000 times.", |d| {
            launches(1_000 / d)
        }),
        hostile("launches-5000", "One kernel launches 5,000 times.", |d| {
            launches(5_000 / d)
        }),
        hostile(
            "launches-in-branches",
            "One kernel launches 2,000 times, each time under a condition of its own.",
            |d| launches_in_branches(2_000 / d),
        ),
        hostile("kernels-5000", "5,000 small kernels.", |d| kernels(5_000 / d)),
        hostile(
            "kernels-launched-5000",
            "5,000 small kernels, each launched by one parent.",
            |d| kernels_launched(5_000 / d),
        ),
        hostile("call-chain", "5,000 functions, each of which calls the next.", |d| {
            calls(5_000 / d, false)
        }),
        hostile("call-cycle", "5,000 functions that call each other in a circle.", |d| {
            calls(5_000 / d, true)
        }),
        hostile(
            "call-mesh",
            "5,000 functions, each of which calls 10 others, in many circles.",
            |d| call_mesh(5_000 / d),
        ),
        hostile(
            "launching-mesh",
            "1,000 functions, each of which calls the next 10; the last one launches.",
            |d| launching_mesh(1_000 / d),
        ),
        hostile("launch-chain", "5,000 kernels, each of which launches the next.", |d| {
            launch_chain(5_000 / d, false)
        }),
        hostile(
            "launch-cycle",
            "5,000 kernels that launch each other in a circle.",
            |d| launch_chain(5_000 / d, true),
        ),
        hostile("parameters-1000", "A child kernel with 1,000 parameters.", |d| {
            parameters(1_000 / d)
        }),
        hostile(
            "globals-10000",
            "10,000 variables of the device, each written by the parent.",
            |d| globals(10_000 / d),
        ),
        hostile(
            "overloads-10000",
            "10,000 overloads of one name, each called by the parent.",
            |d| overloads(10_000 / d),
        ),
        hostile(
            "overloaded-templates-1000",
            "1,000 templates of one name that take a collector and call each other.",
            |d| overloaded_templates(1_000 / d),
        ),
        hostile(
            "sizes-5000",
            "5,000 functions and as many variables that name each other, and 100 launches with sizes that name them.",
            |d| sizes(5_000 / d, 100 / d.min(100)),
        ),
        hostile(
            "typedef-chain",
            "10,000 names of types, each made from the one before.",
            |d| aliases(10_000 / d, false),
        ),
        hostile("typedef-cycle", "10,000 names of types that are each other's.", |d| {
            aliases(10_000 / d, true)
        }),
        hostile("structs-10000", "10,000 structs, each a member of the next.", |d| {
            structs(10_000 / d)
        }),
        hostile(
            "base-classes-5000",
            "5,000 structs, each derived from the one before.",
            |d| bases(5_000 / d),
        ),
        hostile(
            "lambdas-5000",
            "A kernel with 5,000 lambdas that capture by reference.",
            |d| lambdas(5_000 / d),
        ),
        hostile(
            "host-launches-10000",
            "A host function that launches the parent 10,000 times.",
            |d| host_launches(10_000 / d),
        ),
    ]
}

fn launches(count: usize) -> Files {
    around(&times(count, |k| format!("  child<<<n + {k}, 32>>>(out + {k}, n);\n")))
}

fn launches_in_branches(count: usize) -> Files {
    around(&times(count, |k| {
        format!("  if (out[{k}] > i) {{ out[i] = {k}; child<<<out[{k}], 32>>>(out, n); }}\n")
    }))
}

fn kernels(count: usize) -> Files {
    let many = times(count, |k| {
        format!("__global__ void k{k}(int *p) {{ p[threadIdx.x] = {k}; }}\n")
    });
    one(format!("{many}{CHILD}{}", parent("")))
}

fn kernels_launched(count: usize) -> Files {
    let many = times(count, |k| {
        format!("__global__ void k{k}(int *p) {{ p[threadIdx.x] = {k}; }}\n")
    });
    let body = times(count, |k| format!("  k{k}<<<1, 32>>>(out);\n"));
    one(format!("{many}{CHILD}{}", parent(&body)))
}

fn calls(count: usize, circle: bool) -> Files {
    let declared = times(count, |k| format!("__device__ int f{k}(int *p, int x);\n"));
    let defined = times(count, |k| {
        let next = match k + 1 < count {
            true => k + 1,
            false if circle => 0,
            false => return format!("__device__ int f{k}(int *p, int x) {{ p[x] = x; __syncthreads(); return x; }}\n"),
        };
        format!("__device__ int f{k}(int *p, int x) {{ p[{k}] = x; return f{next}(p, x + 1); }}\n")
    });
    one(format!("{declared}{defined}{CHILD}{}", parent("  n = f0(out, i);")))
}

fn call_mesh(count: usize) -> Files {
    let declared = times(count, |k| format!("__device__ int f{k}(int *p, int x);\n"));
    let defined = times(count, |k| {
        let called = times(10, |c| {
            format!(" x += f{}(p, x + {c});", (k * 7 + c * 131 + 1) % count.max(1))
        });
        format!("__device__ int f{k}(int *p, int x) {{{called} return x; }}\n")
    });
    one(format!("{declared}{defined}{CHILD}{}", parent("  n = f0(out, i);")))
}

fn launching_mesh(count: usize) -> Files {
    let declared = times(count, |k| format!("__device__ void f{k}(int *p, int x);\n"));
    let defined = times(count, |k| {
        let called: String = (k + 1..(k + 11).min(count))
            .map(|next| format!(" f{next}(p, x + {next});"))
            .collect();
        let launch = match k + 1 == count {
            true => " child<<<x, 32>>>(p, x);",
            false => "",
        };
        format!("__device__ void f{k}(int *p, int x) {{{called}{launch} }}\n")
    });
    one(format!("{declared}{CHILD}{defined}{}", parent("  f0(out, i);")))
}

fn launch_chain(count: usize, circle: bool) -> Files {
    let declared = times(count, |k| format!("__global__ void k{k}(int *p, int x);\n"));
    let defined = times(count, |k| {
        let next = match k + 1 < count {
            true => k + 1,
            false if circle => 0,
            false => return format!("__global__ void k{k}(int *p, int x) {{ p[x] = x; }}\n"),
        };
        format!("__global__ void k{k}(int *p, int x) {{ if (threadIdx.x < x) k{next}<<<x, 32>>>(p, x - 1); }}\n")
    });
    one(format!(
        "{declared}{defined}{CHILD}{}",
        parent("  k0<<<1, 32>>>(out, n);")
    ))
}

fn parameters(count: usize) -> Files {
    let declared = times(count, |k| format!(", int *p{k}"));
    let stored = times(count, |k| format!("  p{k}[threadIdx.x] = n;\n"));
    let passed = times(count, |k| format!(", out + {k}"));
    one(format!(
        "__global__ void many(int n{declared}) {{\n{stored}}}\n{CHILD}{}",
        parent(&format!("  many<<<n, 32>>>(n{passed});"))
    ))
}

fn globals(count: usize) -> Files {
    let declared = times(count, |k| format!("__device__ int g{k};\n"));
    let written = times(count, |k| format!("  g{k} = i;\n"));
    one(format!("{declared}{CHILD}{}", parent(&written)))
}

fn overloads(count: usize) -> Files {
    let declared = times(count, |k| {
        format!("struct T{k} {{ int x; }};\n__device__ int f(T{k} t, int *p) {{ p[t.x] = {k}; return t.x; }}\n")
    });
    let called = times(count, |k| format!("  i += f(T{k}{{i}}, out);\n"));
    one(format!("{declared}{CHILD}{}", parent(&called)))
}

fn overloaded_templates(count: usize) -> Files {
    let many = times(count, |k| {
        format!("template <class T> __device__ void f(T &children, Tag<{k}>) {{ f(children, Tag<{k} + 1>()); }}\n")
    });
    let body = "  gridfuse::Aggregator<gridfuse::PerBlock, child> children(arena, out);\n  f(children, Tag<0>());\n";
    one(format!("{many}{CHILD}{}", parent(body)))
}

fn sizes(count: usize, launches: usize) -> Files {
    let declared = times(count, |k| format!("dim3 size{k}();\nextern dim3 shape{k};\n"));
    let defined = times(count, |k| {
        let [x, y, z, w] = [(7, 1), (131, 1), (3, 2), (5, 3)].map(|(by, plus)| (k * by + plus) % count.max(1));
        format!("dim3 size{k}() {{ return shape{x}.x ? size{y}() : shape{z}; }}\ndim3 shape{k} = size{w}();\n")
    });
    let launched = times(launches, |k| {
        let [grid, block] = [k * 5, k * 11].map(|number| number % count.max(1));
        format!("  parent<<<size{grid}(), shape{block}>>>(out, n);\n")
    });
    one(format!(
        "{declared}{defined}{CHILD}{}void many(int *out, int n) {{\n{launched}}}\n",
        parent("")
    ))
}

fn aliases(count: usize, circle: bool) -> Files {
    let first = if circle {
        format!("typedef t{} t0;\n", count.max(1) - 1)
    } else {
        "typedef int t0;\n".to_owned()
    };
    let rest = times(count.max(1) - 1, |k| match k % 2 {
        0 => format!("typedef t{k} t{};\n", k + 1),
        _ => format!("using t{} = t{k};\n", k + 1),
    });
    let last = count.max(1) - 1;
    one(format!(
        "{first}{rest}{CHILD}{}",
        parent(&format!("  t{last} x = (t{last}) i;\n  out[x] = x;"))
    ))
}

fn structs(count: usize) -> Files {
    let declared = times(count, |k| match k {
        0 => "struct S0 { int x; };\n".to_owned(),
        _ => format!(
            "struct S{k} {{ S{} s; int x; __device__ int get() const {{ return s.x; }} }};\n",
            k - 1
        ),
    });
    let last = count.max(1) - 1;
    one(format!(
        "{declared}{CHILD}{}",
        parent(&format!("  S{last} s;\n  out[i] = s.get();"))
    ))
}

fn bases(count: usize) -> Files {
    let declared = times(count, |k| match k {
        0 => "struct S0 { int x; __device__ ~S0() {} };\n".to_owned(),
        _ => format!("struct S{k} : S{} {{ int x{k}; }};\n", k - 1),
    });
    let last = count.max(1) - 1;
    one(format!(
        "{declared}{CHILD}{}",
        parent(&format!("  S{last} s;\n  out[i] = s.x;"))
    ))
}

fn lambdas(count: usize) -> Files {
    around(&times(count, |k| {
        format!("  auto l{k} = [&](int x) {{ out[x] = i + {k}; return x; }};\n  i += l{k}(i);\n")
    }))
}

fn host_launches(count: usize) -> Files {
    let launched = times(count, |k| format!("  parent<<<{k} + 1, 256>>>(out, n);\n"));
    one(format!(
        "{CHILD}{}void many(int *out, int n) {{\n{launched}}}\n{HOST}",
        parent("").replace(HOST, "")
    ))
}
