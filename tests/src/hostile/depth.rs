//! Brackets, operators and statements within each other.

use super::{CHILD, Files, Hostile, around, one, parent, times};

/// How deep.
const DEEP: usize = 100_000;

/// The projects of this file.
pub fn all() -> Vec<Hostile> {
    let hostile = |name, about, make| Hostile { name, about, make };
    vec![
        hostile("deep-parentheses", "100,000 parentheses within each other.", |d| {
            inside(d, "i = ", "(", "n", ")", ";")
        }),
        hostile(
            "deep-parentheses-open",
            "100,000 parentheses that are never closed.",
            |d| inside(d, "i = ", "(", "n", "", ";"),
        ),
        hostile("deep-blocks", "100,000 blocks within each other.", |d| {
            inside(d, "", "{", "i = n;", "}", "")
        }),
        hostile("deep-blocks-open", "100,000 blocks that are never closed.", |d| {
            inside(d, "", "{", "i = n;", "", "")
        }),
        hostile("deep-braces", "100,000 initialisers within each other.", |d| {
            inside(d, "int x = ", "{", "n", "}", ";")
        }),
        hostile("deep-subscripts", "100,000 subscripts within each other.", |d| {
            inside(d, "i = ", "out[", "n", "]", ";")
        }),
        hostile("deep-brackets-open", "100,000 brackets that are never closed.", |d| {
            inside(d, "i = ", "out[", "n", "", ";")
        }),
        hostile("deep-templates", "100,000 template arguments within each other.", |d| {
            inside(d, "", "a<", "int", ">", " x;")
        }),
        hostile(
            "deep-templates-open",
            "100,000 template arguments that are never closed.",
            |d| inside(d, "", "a<", "int", "", " x;"),
        ),
        hostile("deep-launch-brackets", "100,000 launches that are never closed.", |d| {
            inside(d, "", "child<<<", "n", "", ";")
        }),
        hostile("deep-calls", "100,000 calls within each other.", |d| {
            inside(d, "i = ", "min(i, ", "n", ")", ";")
        }),
        hostile("deep-unary", "100,000 unary operators.", |d| {
            inside(d, "i = ", "-!~", "n", "", ";")
        }),
        hostile("deep-dereferences", "100,000 dereferences.", |d| {
            inside(d, "i = ", "*", "out", "", ";")
        }),
        hostile("deep-pointer-types", "A pointer to a pointer, 100,000 times.", |d| {
            inside(d, "int ", "*", "p", "", ";")
        }),
        hostile("deep-array-types", "An array of 100,000 dimensions.", |d| {
            inside(d, "int p", "[2]", "", "", ";")
        }),
        hostile("deep-binary", "100,000 binary operators in parentheses.", |d| {
            inside(d, "i = ", "(i + ", "n", ")", ";")
        }),
        hostile(
            "deep-binary-mixed",
            "100,000 binary operators of all precedences.",
            |d| {
                around(&format!(
                    "  i = {}n;",
                    times(DEEP / d, |k| format!(
                        "n {} ",
                        ["+", "*", "<<", "&&", "|", "==", "||", "^", "<"][k % 9]
                    ))
                ))
            },
        ),
        hostile("deep-ternaries", "100,000 conditional expressions.", |d| {
            inside(d, "i = ", "i > n ? i : ", "n", "", ";")
        }),
        hostile(
            "deep-ternaries-middle",
            "100,000 conditional expressions in the middle of each other.",
            |d| inside(d, "i = ", "i > n ? ", "n", " : i", ";"),
        ),
        hostile("deep-casts", "100,000 casts.", |d| {
            inside(d, "i = ", "(int)", "n", "", ";")
        }),
        hostile("deep-static-casts", "100,000 static casts.", |d| {
            inside(d, "i = ", "static_cast<int>(", "n", ")", ";")
        }),
        hostile("deep-sizeof", "100,000 times sizeof.", |d| {
            inside(d, "i = ", "sizeof ", "n", "", ";")
        }),
        hostile("deep-members", "100,000 members of members.", |d| {
            inside(d, "i = s", ".s", "", "", ";")
        }),
        hostile("deep-arrows", "100,000 members through pointers.", |d| {
            inside(d, "i = s", "->s()", "", "", ";")
        }),
        hostile("deep-scopes", "A name in 100,000 namespaces.", |d| {
            inside(d, "i = ", "a::", "b", "", ";")
        }),
        hostile("deep-else-if", "A chain of 100,000 else-ifs.", |d| {
            inside(d, "", "if (i == n) n = i; else ", ";", "", "")
        }),
        hostile("deep-if", "100,000 ifs within each other.", |d| {
            inside(d, "", "if (i < n) ", "n = i;", "", "")
        }),
        hostile("deep-if-blocks", "100,000 ifs with blocks within each other.", |d| {
            inside(d, "", "if (i < n) { i++; ", "n = i;", "}", "")
        }),
        hostile("deep-loops", "100,000 loops within each other.", |d| {
            inside(d, "", "for (;i < n; i++) ", "n = i;", "", "")
        }),
        hostile(
            "deep-loop-blocks",
            "5,000 loops with blocks within each other, each of which changes a variable.",
            |d| {
                inside(
                    d * 20,
                    "",
                    "for (int k = 0; k < n; k++) { i += k; out[k] = n; ",
                    "n = i;",
                    "}",
                    "",
                )
            },
        ),
        hostile("deep-while", "100,000 while loops within each other.", |d| {
            inside(d, "", "while (i < n) ", "n = i;", "", "")
        }),
        hostile("deep-do", "100,000 do loops within each other.", |d| {
            inside(d, "", "do ", "n = i;", " while (i < n);", "")
        }),
        hostile("deep-switch", "50,000 switches within each other.", |d| {
            inside(d * 2, "", "switch (i) { case 0: ", "n = i;", "}", "")
        }),
        hostile("deep-labels", "100,000 labels before one statement.", |d| {
            around(&format!("{} i = n;", times(DEEP / d, |k| format!("l{k}:\n"))))
        }),
        hostile("deep-lambdas", "20,000 lambdas within each other.", |d| {
            inside(d * 5, "auto f = ", "[&](int x) { return ", "i", "; }", ";")
        }),
        hostile("deep-namespaces", "100,000 namespaces within each other.", |d| {
            outside(d, "namespace a {", "}")
        }),
        hostile("deep-structs", "100,000 structs within each other.", |d| {
            outside(d, "struct S {", "};")
        }),
        hostile("deep-extern", "100,000 blocks of extern C.", |d| {
            outside(d, "extern \"C\" {", "}")
        }),
        hostile("deep-template-heads", "100,000 heads of templates.", |d| {
            outside(d, "template <class T>\n", "")
        }),
        hostile("deep-comments", "100,000 comments that open in comments.", |d| {
            outside(d, "/*", "*/")
        }),
        hostile(
            "deep-conditionals",
            "100,000 conditionals of the preprocessor within each other.",
            |d| outside(d, "#if A\n", "\n#endif\n"),
        ),
        hostile("deep-declarators", "A declarator in 100,000 parentheses.", |d| {
            outside(d, "int (", "")
        }),
        hostile("deep-attributes", "100,000 attributes.", |d| {
            outside(d, "__attribute__((", "))")
        }),
    ]
}

fn inside(divisor: usize, first: &str, open: &str, middle: &str, close: &str, last: &str) -> Files {
    let deep = DEEP / divisor;
    around(&format!(
        "  {first}{}{middle}{}{last}",
        open.repeat(deep),
        close.repeat(deep)
    ))
}

fn outside(divisor: usize, open: &str, close: &str) -> Files {
    let deep = DEEP / divisor;
    one(format!(
        "{CHILD}{}{}{}\n{}",
        open.repeat(deep),
        "int in;",
        close.repeat(deep),
        parent("")
    ))
}
