//! Files that include each other.

use super::{CHILD, Files, Hostile, parent, times};

/// The projects of this file.
pub fn all() -> Vec<Hostile> {
    let hostile = |name, about, make| Hostile { name, about, make };
    vec![
        hostile(
            "header-library",
            "6 lines that include a library of 200 headers and 150,000 lines, each of which includes many others.",
            |d| library(200 / d.min(20), 750),
        ),
        hostile(
            "header-library-unguarded",
            "The same without include guards in one header of ten.",
            |d| library_with(200 / d.min(20), 750 / d.min(10), false),
        ),
        hostile("include-self", "A file that includes itself.", |_| {
            with("#include \"hostile.cu\"\n", Vec::new())
        }),
        hostile(
            "include-cycle",
            "200 headers that include each other in a circle, without guards.",
            |d| {
                let count = 200 / d.min(20);
                let headers = (0..count)
                    .map(|k| {
                        (
                            format!("h{k}.h"),
                            format!("#include \"h{}.h\"\nint x{k};\n", (k + 1) % count),
                        )
                    })
                    .collect();
                with("#include \"h0.h\"\n", headers)
            },
        ),
        hostile(
            "include-mesh",
            "20 headers that all include all others, without guards.",
            |d| {
                let count = if d > 1 { 8 } else { 20 };
                let headers = (0..count)
                    .map(|k| {
                        (
                            format!("h{k}.h"),
                            times(count, |other| {
                                format!("#include \"h{other}.h\"\n#define X{k} {other}\n")
                            }),
                        )
                    })
                    .collect();
                with("#include \"h0.h\"\n", headers)
            },
        ),
        hostile(
            "include-doubling",
            "30 headers, each of which includes the next twice, without guards.",
            |d| {
                let count = if d > 1 { 16 } else { 30 };
                let headers = (0..count)
                    .map(|k| {
                        (
                            format!("h{k}.h"),
                            format!("#include \"h{}.h\"\n#include \"h{}.h\"\n", k + 1, k + 1),
                        )
                    })
                    .chain([(
                        format!("h{count}.h"),
                        "__device__ int f(int x);\n#define D 1\n".to_owned(),
                    )])
                    .collect();
                with("#include \"h0.h\"\n", headers)
            },
        ),
        hostile(
            "include-1000-times",
            "A header of 500 lines that is included 1,000 times.",
            |d| {
                let header = times(500, |k| format!("#ifdef A{k}\n#define B{k} N\n#endif\n"));
                let included = times(1_000 / d, |k| format!("#undef N\n#define N {k}\n#include \"h.h\"\n"));
                with(&included, vec![("h.h".to_owned(), header)])
            },
        ),
        hostile(
            "include-chain",
            "2,000 headers, each of which includes the next.",
            |d| {
                let count = 2_000 / d;
                let headers = (0..count)
                    .map(|k| {
                        (
                            format!("h{k}.h"),
                            format!("#pragma once\n#include \"h{}.h\"\n__device__ int f{k}(int x);\n", k + 1),
                        )
                    })
                    .chain([(format!("h{count}.h"), "#pragma once\n".to_owned())])
                    .collect();
                with("#include \"h0.h\"\n", headers)
            },
        ),
        hostile(
            "includers-2000",
            "2,000 files that include one header of 1,000 lines.",
            |d| {
                let mut files = with(
                    "#include \"h.h\"\n",
                    vec![("h.h".to_owned(), header(0, 1_000, "", true))],
                );
                for k in 0..2_000 / d {
                    files.push((
                        format!("f{k}.cu"),
                        format!("#include \"h.h\"\n__global__ void k{k}(int *p) {{ *p = 0; }}\n").into_bytes(),
                    ));
                }
                files
            },
        ),
    ]
}

fn with(first: &str, headers: Vec<(String, String)>) -> Files {
    let main = (
        "hostile.cu".to_owned(),
        format!("{first}{CHILD}{}", parent("")).into_bytes(),
    );
    let headers = headers.into_iter().map(|(path, text)| (path, text.into_bytes()));
    std::iter::once(main).chain(headers).collect()
}

/// A header-only library, as large ones are: each header includes a configuration and a dozen others, defines macros under
/// conditions, templates and inline functions.
fn library(headers: usize, lines: usize) -> Files {
    library_with(headers, lines, true)
}

fn library_with(headers: usize, lines: usize, guarded: bool) -> Files {
    let main = "#include \"lib/all.h\"\n__global__ void child(int *p) { p[threadIdx.x] = 0; }\n__global__ void parent(int *p, int n) {\n  \
                if (threadIdx.x == 0) child<<<1, n>>>(p);\n}\nvoid host(int *p) { parent<<<1, 32>>>(p, 32); }\n";
    let mut files = vec![("hostile.cu".to_owned(), main.as_bytes().to_vec())];
    let all = times(headers, |k| format!("#include \"h{k}.h\"\n"));
    files.push(("lib/all.h".to_owned(), format!("#pragma once\n{all}").into_bytes()));
    for k in 0..headers {
        let included = times(12, |c| {
            format!("#include \"h{}.h\"\n", (k * 5 + c * c * 3 + 1) % headers)
        });
        let guarded = guarded || k % 10 != 0;
        files.push((format!("lib/h{k}.h"), header(k, lines, &included, guarded).into_bytes()));
    }
    files
}

fn header(number: usize, lines: usize, included: &str, guarded: bool) -> String {
    let body = times(lines / 15, |k| {
        let name = format!("{number}_{k}");
        format!(
            r#"#if defined(LIB_FEATURE_{k}) && LIB_VERSION >= {k}
#define LIB_CALL_{name} __device__ __forceinline__
#elif !defined(LIB_NONE)
#define LIB_CALL_{name} __host__ __device__ inline
#else
#define LIB_CALL_{name} inline
#endif
#ifndef LIB_MAX_{k}
#define LIB_MAX_{k} {number}
#endif
template <class T> struct Thing{name} {{
  T value; LIB_CALL_{name} T get(int i) const {{ return i < LIB_MAX_{k} ? value : T(i); }}
}};
LIB_CALL_{name} int function{name}(int x) {{ Thing{name}<int> t{{x}}; return t.get(x) + {k}; }}
extern int external{name};
"#
        )
    });
    match guarded {
        true => format!("#ifndef LIB_H{number}\n#define LIB_H{number}\n{included}{body}#endif\n"),
        false => format!("{included}{body}"),
    }
}
