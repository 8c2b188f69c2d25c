//! `outline-iteration`: programs of which it once made others, by class.

use super::outline_iteration::{around_beside, outlined, with};

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
        ("int carried = 0;", "more: ;", "if (n-- > 5) goto more;"),
        ("int carried = 0;", "do {", "} while (n-- > 5);"),
    ] {
        outlined(&run_again(declared, head, foot), given_back);
    }
    let anew = run_again("", "for (int r = 0; r < 2; ++r) { int carried = 0;", "}");
    outlined(&anew, &["h = state.h;\n", "int carried)"]);
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
