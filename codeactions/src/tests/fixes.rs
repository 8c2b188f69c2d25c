//! The fixes, beside the examples of their documentation.

use std::path::Path;

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::host::Host;

use super::{program, with_child};
use crate::api::assumption::reasons;
use crate::api::rewrite::Options;
use crate::api::source_edit::apply;
use crate::handlers::place_rewrite;
use crate::runtime::HEADER;

/// Applies a fix at `$0`: the new text and the assumptions, or the reasons against it.
pub fn fix(id: &str, text: &str, options: &[(&str, &str)]) -> Result<(String, Vec<String>), Vec<String>> {
    fix_beside(&[], id, text, options)
}

/// The same where there are other files in the directory.
pub fn fix_beside(
    others: &[(&str, &str)],
    id: &str,
    text: &str,
    options: &[(&str, &str)],
) -> Result<(String, Vec<String>), Vec<String>> {
    let at = text.find("$0").unwrap_or_default() as u32;
    let mut host = Host::new();
    host.set_file(Path::new("/p/gridfuse.cuh"), HEADER.clone());
    for (name, text) in others {
        host.set_file(&Path::new("/p").join(name), *text);
    }
    let file = host.set_file(Path::new("/p/a.cu"), text.replace("$0", ""));
    let options = Options(options.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect());
    let range = TextRange::empty(at);
    let fix = place_rewrite(id).ok_or_else(|| vec!["no such fix".to_owned()])?;
    let texts = |reasons: &[crate::api::refusal::Reason]| reasons.iter().map(|r| r.text.clone()).collect::<Vec<_>>();
    let edit = fix
        .apply(host.db(), FileRange { file, range }, &options)
        .map_err(|refusal| texts(&refusal.0))?;
    let read = |path: &Path| host.file(path).map(|f| f.text(host.db()).to_string());
    let new = apply(&edit, read).map_err(|e| vec![e.to_string()])?;
    let text = new.get(Path::new("/p/a.cu")).cloned().unwrap_or_default();
    Ok((text, texts(&reasons(&edit.assumptions))))
}

#[track_caller]
fn fixed(id: &str, text: &str, pieces: &[&str]) -> Vec<String> {
    let (new, assumes) = fix(id, text, &[]).unwrap_or_else(|reasons| panic!("refused: {reasons:?}"));
    for piece in pieces {
        assert!(new.contains(piece), "no\n{piece}\nin\n{new}");
    }
    assumes
}

#[track_caller]
fn refused(id: &str, text: &str, reason: &str) {
    match fix(id, text, &[]) {
        Ok((new, _)) => panic!("not refused:\n{new}"),
        Err(reasons) => assert!(reasons.iter().any(|r| r.contains(reason)), "{reasons:?}"),
    }
}

#[test]
fn guards() {
    let id = "guard-empty-grid";
    let assumes = fixed(
        id,
        &program("$0child<<<begin * count, 32>>>(out, begin, count);"),
        &["    if (begin * count > 0)\n        child<<<begin * count, 32>>>(out, begin, count);\n"],
    );
    assert!(assumes.is_empty());
    fixed(
        id,
        &program("if (v) $0child<<<count, 32>>>(out, begin, count);\n    else out[v] = 0;"),
        &[
            "    if (v) {\n        if (count > 0)\n            child<<<count, 32>>>(out, begin, count);\n    }\n    else out[v] = 0;",
        ],
    );
    let assumes = fixed(
        id,
        &program("unsigned u = count;\n    $0child<<<(u - 1) / 32 + 1, 32>>>(out, begin, u);"),
        &["if (u > 0)"],
    );
    assert_eq!(assumes, ["`child` does nothing when `u` is 0, whatever its grid"]);
    // The block that is launched for no elements does something for sure.
    let unguarded = |code: &str| {
        program("$0child<<<(count - 1) / 32 + 1, 32>>>(out, begin, count);")
            .replace("if (i < count) out[begin + i] = count;", code)
    };
    for code in [
        "atomicAdd(&out[i], count + 1);",
        "int more = count + 1;\n    out[begin + i % 64] = more;",
    ] {
        refused(
            id,
            &unguarded(code),
            "`child` works without comparing `count` with anything",
        );
    }
    for code in [
        "int last = begin + count;\n    if (begin + i < last) out[begin + i] = 1;",
        "helper(out, count);",
    ] {
        assert_eq!(fixed(id, &unguarded(code), &["if (count != 0)"]).len(), 1, "{code}");
    }
    // A negative number may stand for blocks.
    for (grid, condition, assumed) in [
        ("(count + 31) / 32", "count > 0", false),
        ("(count + 31u) / 32", "count != 0", false),
        ("count / 32 + (count % 32 != 0)", "count != 0", false),
        ("(count - 1) / 32 + 1", "count != 0", true),
        ("round_up(count, 32)", "count != 0", false),
        ("less_one(count, 32)", "count != 0", true),
    ] {
        let text = format!(
            r#"__device__ int round_up(int n, int b) {{ return (n + b - 1) / b; }}
__device__ int less_one(int n, int b) {{ return (n - 1) / b + 1; }}
{}"#,
            program(&format!("$0child<<<{grid}, 32>>>(out, begin, count);"))
        );
        let assumes = fixed(
            id,
            &text,
            &[&format!("    if ({condition})\n        child<<<{grid}, 32>>>")],
        );
        assert_eq!(!assumes.is_empty(), assumed, "{grid}: {assumes:?}");
    }
    // What the size was made of may have changed, or mean something else.
    for (before, grid, condition) in [
        ("int blocks = (count + 31) / 32;", "blocks", "blocks > 0"),
        ("dim3 grid(count);\n    count = 0;", "grid", "grid.x > 0"),
    ] {
        fixed(
            id,
            &program(&format!("{before}\n    $0child<<<{grid}, 32>>>(out, begin, count);")),
            &[&format!("if ({condition})")],
        );
    }
    // Over several lines, with line continuations.
    fixed(
        id,
        &program("$0child<<<begin \\\n        * (\n        count ), 32>>>(out, begin, count);"),
        &["    if ((begin * (count )) > 0)\n"],
    );
    refused(
        id,
        &program("$0child<<<dim3(count, 2), 32>>>(out, begin, count);"),
        "several dimensions",
    );
    refused(
        id,
        &program("$0child<<<atomicAdd(out, 1), 32>>>(out, begin, count);"),
        "not a number",
    );
    refused(
        id,
        &program("$0child<<<count, 32>>>(out, begin, count);\n    if (cudaGetLastError()) out[0] = 1;"),
        "checks its launches",
    );
    refused(id, "$0int x;\n", "no kernel launch");
}

#[test]
fn what_a_guard_leaves_out() {
    let id = "guard-empty-grid";
    let before = r#"__device__ int take(int* p) { return (*p)++; }
__device__ int at(const int* p, int i) { return p[i]; }
struct Alloc { int used; __device__ int get(int n) { int r = used; used += n; return r; } };
struct Pair { int a; int b; };
struct Counted { int a; __device__ Counted(int* n) { a = 1; ++*n; } __device__ operator int() const { return a; } };
"#;
    let with = |launch: &str| {
        let text = program(&format!(
            "Alloc alloc{{0}};\n    volatile int seen = v;\n    $0{launch};"
        ));
        format!("{before}{text}")
    };
    let reason = "evaluate it in a statement in front of the launch";
    for launch in [
        "child<<<count, 32>>>(out, begin++, count)",
        "child<<<count, 32>>>(out, begin += 4, count)",
        "child<<<count, 32>>>(out, alloc.get(8), count)",
        "child<<<count, 32>>>(out, take(out) & 7, count)",
        "child<<<count, 32>>>(out, v ? 1 : atomicAdd(out, 1), count)",
        "child<<<count, 32>>>(out, __shfl_sync(~0u, v, 0), count)",
        "child<<<count, take(out)>>>(out, begin, count)",
        "child<<<count, 32, take(out)>>>(out, begin, count)",
        "child<<<count, 32>>>(out, Counted(out), count)",
    ] {
        refused(id, &with(launch), reason);
    }
    for launch in [
        "child<<<count, 32>>>(out + v, at(row, begin), min(count, 8))",
        "child<<<count, dim3(32, 2)>>>(&out[v], seen, sizeof(begin))",
        "child<<<count, 32>>>(out, (int)__ldg(row + v), Pair{begin, v}.a)",
    ] {
        fixed(id, &with(launch), &["if (count > 0)"]);
    }
}

#[test]
fn error_checks() {
    let id = "check-launch-error";
    fixed(
        id,
        &format!(
            "#include <stdio.h>\n{}",
            program("$0child<<<count, 32>>>(out, begin, count);")
        ),
        &[
            "    child<<<count, 32>>>(out, begin, count);\n    if (cudaError_t error = cudaGetLastError()) printf(\"child: %s\\n\",",
        ],
    );
    // Where one statement stands, the check needs braces.
    fixed(
        id,
        &program("do $0child<<<count, 32>>>(out, begin, count); while (0);"),
        &[
            "    do {\n        child<<<count, 32>>>(out, begin, count);\n        if (cudaError_t",
            "    } while (0);\n",
        ],
    );
    fixed(
        id,
        &program("if (count) label: $0child<<<count, 32>>>(out, begin, count);"),
        &["    if (count) label: {\n        child<<<"],
    );
    fixed(
        id,
        &program("label: $0child<<<count, 32>>>(out, begin, count);"),
        &["    label: child<<<count, 32>>>(out, begin, count);\n    if (cudaError_t"],
    );
    refused(
        id,
        &program("$0child<<<count, 32>>>(out, begin, R\"(a\n    b)\"[3]);"),
        "a string over several lines",
    );
    let (text, _) = fix(id, &program("$0child<<<count, 32>>>(out, begin, count);"), &[]).unwrap_or_default();
    refused(
        id,
        &text.replace("    child<<<", "    $0child<<<"),
        "checks its launches",
    );
}

#[test]
fn streams_are_destroyed_behind_their_last_use() {
    let id = "destroy-stream";
    let create = "cudaStream_t s;\n    $0cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);";
    fixed(
        id,
        &program(&format!(
            "{create}\n    for (int k = 0; k < 3; ++k) {{\n        child<<<count, 32, 0, s>>>(out, begin, count);   // go\n    }}\n    out[v] = 1;"
        )),
        &["    }\n    cudaStreamDestroy(s);\n    out[v] = 1;"],
    );
    fixed(
        id,
        &program(&format!(
            "{create}\n    child<<<count, 32, 0, s>>>(out, begin, count);   // go"
        )),
        &["count);   // go\n    cudaStreamDestroy(s);\n"],
    );
    for (code, reason) in [
        (
            "cudaStream_t s;\n    if (count) { $0cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking); child<<<count, 32, 0, s>>>(out, begin, count); }",
            "in the block where it is declared",
        ),
        (
            "cudaStream_t s[2];\n    $0cudaStreamCreateWithFlags(&s[0], cudaStreamNonBlocking);\n    child<<<count, 32, 0, s[0]>>>(out, begin, count);",
            "in the block where it is declared",
        ),
        (
            "cudaStream_t s;\n    $0cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n    child<<<count, 32, 0, s>>>(out, begin, count);\n    cudaStreamDestroy(s);",
            "never destroyed",
        ),
    ] {
        refused(id, &program(code), reason);
    }
}

#[test]
fn limits() {
    let rows = "__global__ void child(int* out, int begin, int count) { out[begin] += count; }\n";
    let parent = with_child(
        rows,
        "$0child<<<1, 32, 0, cudaStreamFireAndForget>>>(out, begin, count);",
    );
    refused("raise-pending-launch-limit", &parent, "isn't known");
    let many = r#"__global__ void child(int* out) { out[0] = 1; }
__global__ void parent(int* out) {
    $0child<<<1, 1, 0, cudaStreamFireAndForget>>>(out);
}

void run(int* out) {
    parent<<<16, 256>>>(out);
}

int main() { run(nullptr); }
"#;
    let other = "int main() { cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096); }\n";
    // Another program sets its own limit.
    let (new, _) = fix_beside(&[("b.cu", other)], "raise-pending-launch-limit", many, &[]).unwrap_or_default();
    assert!(
        new.contains("{\n    cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096);\n    parent"),
        "{new}"
    );
    let header = "inline void limit() { cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096); }\n";
    let included = format!("#include \"b.cuh\"\n{many}");
    let reasons = fix_beside(&[("b.cuh", header)], "raise-pending-launch-limit", &included, &[]).err();
    assert!(reasons.is_some_and(|r| r[0].contains("set here already")));
    let set = "void limit() { cudaDeviceSetLimit($0cudaLimitDevRuntimePendingLaunchCount, 4096); }\n";
    refused(
        "restore-pending-launch-limit",
        &format!("{}{set}", parent.replace("$0", "")),
        "launches directly here",
    );
    refused(
        "restore-pending-launch-limit",
        set,
        "no launch of the program is collected",
    );
    refused(
        "restore-pending-launch-limit",
        "void limit() { if (cudaDeviceSetLimit($0cudaLimitDevRuntimePendingLaunchCount, 4096)) abort(); }\n",
        "larger statement",
    );
}

/// A guard takes the error of an empty grid away, which the caller of the launching function asks for.
#[test]
fn a_caller_that_asks_hears_of_an_empty_grid() {
    let with = |behind: &str| {
        format!(
            "__global__ void child(int* p, int n) {{ p[threadIdx.x] = n; }}\n\
             __device__ void go(int* p, int n) {{\n    $0child<<<n, 32>>>(p, n);\n}}\n\
             __global__ void parent(int* p) {{\n    go(p, threadIdx.x);{behind}\n}}\n"
        )
    };
    let asking = with(" if (cudaGetLastError() != cudaSuccess) p[0] = 1;");
    refused("guard-empty-grid", &asking, "checks its launches");
}

// A destructor that runs by no name hears of an error, or not.
#[test]
fn hidden_code_may_ask_for_errors() {
    let asks = "struct Ask { int* o; __device__ ~Ask() { if (cudaGetLastError() != cudaSuccess) *o = 7; } };\n";
    let launch = "Ask ask{out};\n    $0child<<<begin * count, 32>>>(out, begin, count);";
    for id in ["guard-empty-grid", "check-launch-error"] {
        let assumes = fixed(id, &format!("{asks}{}", program(launch)), &[]);
        assert!(
            assumes
                .iter()
                .any(|text| text.ends_with("leaves streams, child grids and errors alone")),
            "{id}: {assumes:?}"
        );
    }
}

#[test]
fn a_macro_takes_the_name_of_the_error() {
    let text = format!(
        "#define error 5\n{}",
        program("$0child<<<count, 32>>>(out, begin, count);")
    );
    refused("check-launch-error", &text, "`error` is a macro here");
}
