//! Conditionals and macros.

use super::{CHILD, Files, Hostile, around, one, parent, times};

/// The projects of this file.
pub fn all() -> Vec<Hostile> {
    let hostile = |name, about, make| Hostile { name, about, make };
    vec![
        hostile("elif-ladder", "A ladder of 10,000 undecided #elif.", |d| {
            elif_ladder(10_000 / d)
        }),
        hostile(
            "elif-ladder-launches",
            "A ladder of 2,000 undecided #elif in a kernel, with a launch in each.",
            |d| elif_launches(2_000 / d),
        ),
        hostile(
            "if-groups",
            "5,000 undecided #if groups, each of which defines a macro.",
            |d| if_groups(5_000 / d),
        ),
        hostile("if-groups-in-kernel", "5,000 undecided #if groups in a kernel.", |d| {
            if_groups_in_kernel(5_000 / d)
        }),
        hostile(
            "if-groups-that-cut",
            "2,000 #if groups that cut through statements.",
            |d| if_groups_that_cut(2_000 / d),
        ),
        hostile(
            "if-depends",
            "5,000 #if groups, each of which depends on the macro of the one before.",
            |d| if_depends(5_000 / d),
        ),
        hostile("if-condition-long", "An #if with a condition of 100,000 terms.", |d| {
            one(format!(
                "#if A{}\nint x;\n#endif\n{CHILD}{}",
                " || defined(B)".repeat(100_000 / d),
                parent("")
            ))
        }),
        hostile(
            "if-condition-deep",
            "An #if with a condition in 100,000 parentheses.",
            |d| {
                let deep = 100_000 / d;
                one(format!(
                    "#if {}A{}\nint x;\n#endif\n{CHILD}{}",
                    "(".repeat(deep),
                    ")".repeat(deep),
                    parent("")
                ))
            },
        ),
        hostile(
            "if-condition-macros",
            "Conditions that expand macros, each of which uses two others.",
            |d| {
                let macros = doubling((40 / d).max(10), "||");
                let last = (40 / d).max(10);
                one(format!("{macros}#if M{last}\nint x;\n#endif\n{CHILD}{}", parent("")))
            },
        ),
        hostile(
            "macro-doubling",
            "40 macros, each of which uses the one before twice.",
            |d| {
                let count = (40 / d).max(10);
                one(format!(
                    "{}{CHILD}{}",
                    doubling(count, "+"),
                    parent(&format!("  i = M{count};"))
                ))
            },
        ),
        hostile(
            "macro-doubling-function",
            "40 macros with a parameter, each of which uses it twice.",
            |d| {
                let count = (40 / d).max(10);
                let macros = times(count, |k| format!("#define F{}(x) F{k}(x) + F{k}(x)\n", k + 1));
                one(format!(
                    "#define F0(x) x\n{macros}{CHILD}{}",
                    parent(&format!("  i = F{count}(F{count}(i));"))
                ))
            },
        ),
        hostile(
            "macro-doubling-launch",
            "A launch in a macro that 40 others repeat.",
            |d| {
                let count = (40 / d).max(10);
                let macros = times(count, |k| format!("#define M{} M{k} M{k}\n", k + 1));
                one(format!(
                    "#define M0 child<<<n, 32>>>(out, n);\n{macros}{CHILD}{}",
                    parent(&format!("  M{count}"))
                ))
            },
        ),
        hostile("macro-chain", "10,000 macros, each of which is the one before.", |d| {
            let count = 10_000 / d;
            let macros = times(count, |k| format!("#define M{} M{k}\n", k + 1));
            one(format!(
                "#define M0 n\n{macros}{CHILD}{}",
                parent(&format!("  i = M{count};"))
            ))
        }),
        hostile("macro-cycle", "10,000 macros that are each other.", |d| {
            let count = 10_000 / d;
            let macros = times(count, |k| format!("#define M{k} M{} + M{k}\n", (k + 1) % count.max(1)));
            one(format!("{macros}{CHILD}{}", parent("  i = M0;")))
        }),
        hostile("macros-10000", "10,000 macros, each of which a kernel uses.", |d| {
            let count = 10_000 / d;
            let macros = times(count, |k| format!("#define M{k}(x) ((x) + {k})\n"));
            let used = times(count, |k| format!("  i = M{k}(i);\n"));
            one(format!("{macros}{CHILD}{}", parent(&used)))
        }),
        hostile(
            "macro-redefined",
            "One macro, defined anew and used 10,000 times.",
            |d| {
                let used = times(10_000 / d, |k| format!("#undef M\n#define M {k}\n  i += M;\n"));
                around(&used)
            },
        ),
        hostile(
            "macro-arguments",
            "A macro that is called with 100,000 arguments.",
            |d| {
                one(format!(
                    "#define M(...) f(__VA_ARGS__, __VA_ARGS__)\n{CHILD}{}",
                    parent(&format!("  M(i{});", ", i".repeat(100_000 / d)))
                ))
            },
        ),
        hostile(
            "macro-arguments-nested",
            "A macro that is called within its own arguments 10,000 times.",
            |d| {
                let deep = 10_000 / d;
                one(format!(
                    "#define M(x) ((x) + (x))\n{CHILD}{}",
                    parent(&format!("  i = {}n{};", "M(".repeat(deep), ")".repeat(deep)))
                ))
            },
        ),
        hostile("macro-long", "A macro with a body of 5 MB.", |d| {
            one(format!(
                "#define M i{}\n{CHILD}{}",
                " + i".repeat(1_250_000 / d),
                parent("  i = M;")
            ))
        }),
        hostile("pragmas-100000", "100,000 pragmas.", |d| {
            around(&"#pragma unroll\n".repeat(100_000 / d))
        }),
        hostile("defines-100000", "100,000 macros that nobody uses.", |d| {
            one(format!(
                "{}{CHILD}{}",
                times(100_000 / d, |k| format!("#define M{k} {k}\n")),
                parent("")
            ))
        }),
        hostile("elses-10000", "10,000 times #else and #endif without #if.", |d| {
            one(format!(
                "{}{CHILD}{}",
                "#else\nint x;\n#endif\n".repeat(10_000 / d),
                parent("")
            ))
        }),
        hostile("continued-lines", "A line that is continued 500,000 times.", |d| {
            one(format!(
                "#define M {}\n{CHILD}{}",
                "\\\n".repeat(500_000 / d),
                parent("")
            ))
        }),
    ]
}

fn doubling(count: usize, operator: &str) -> String {
    times(count, |k| match k {
        0 => "#define M0 n\n#define M1 M0\n".to_owned(),
        _ => format!("#define M{} M{k} {operator} M{k}\n", k + 1),
    })
}

fn elif_ladder(count: usize) -> Files {
    let rungs = times(count, |k| format!("#elif A == {k}\n#define B {k}\nint x{k};\n"));
    one(format!("#if defined(A) && C\n{rungs}#endif\n{CHILD}{}", parent("")))
}

fn elif_launches(count: usize) -> Files {
    let rungs = times(count, |k| format!("#elif A == {k}\n  child<<<n, {k}>>>(out, n);\n"));
    around(&format!("#if defined(A) && C\n  i = 0;\n{rungs}#endif"))
}

fn if_groups(count: usize) -> Files {
    let groups = times(count, |k| {
        format!("#ifdef A{k}\n#define B{k} 1\n#else\n#define B{k} 0\n#endif\n")
    });
    one(format!("{groups}{CHILD}{}", parent("")))
}

fn if_groups_in_kernel(count: usize) -> Files {
    around(&times(count, |k| {
        format!("#ifdef A{k}\n  i += {k};\n#else\n  i -= {k};\n#endif\n")
    }))
}

fn if_groups_that_cut(count: usize) -> Files {
    around(&times(count, |k| {
        format!("#ifdef A{k}\n  if (i > {k}) {{\n#else\n  if (i < {k}) {{\n#endif\n  out[{k}] = i;\n  }}\n")
    }))
}

fn if_depends(count: usize) -> Files {
    let groups = times(count, |k| {
        format!(
            "#if B{k} > 1 || defined(C{k})\n#define B{} B{k}\n#elif defined(D{k})\n#define B{} (B{k} + 1)\n#endif\n",
            k + 1,
            k + 1
        )
    });
    one(format!("{groups}{CHILD}{}", parent("")))
}
