//! `aggregate-grid-host`: what differs from `aggregate-grid` is that the host launches.

use super::nesting::{NEST, QUICKSORT};
use super::{program, refuses, rewrite, rewrite_files, with_child};

const ID: &str = "aggregate-grid-host";

const LAUNCH: &str = "if (count > 0) child<<<(count + 31) / 32, 32>>>(out, begin, count);";

#[test]
fn the_host_lists_the_kernel() {
    let result = rewrite(ID, &program(LAUNCH));
    result.has(&[
        "gridfuse::Aggregator<gridfuse::PerGridFromHost, child_aggregated> children(arena, out);",
        "// The arguments of child that differ within a grid of parent.\n",
        "gridfuse::launchpad_for<child_aggregated>((n + 127) / 128, 128)",
    ]);
    assert!(!result.text().contains("arena_for"), "{}", result.text());
    assert!(
        result
            .assumes
            .iter()
            .any(|a| a.starts_with("the host may wait where it launches `parent` until that is done (")),
        "{:?}",
        result.assumes
    );
}

#[test]
fn kernels_of_nested_launches_are_listed_too() {
    rewrite(ID, QUICKSORT).has(&[
        "gridfuse::launchpad_for<sort_aggregated>(1, 32, /*stream=*/0, /*bytes_per_thread=*/64,
                                                 /*aggregators=*/1, gridfuse::kNestedBytes));",
    ]);
    rewrite(ID, &NEST.replace("leaf<<<", "$0leaf<<<")).has(&[
        "gridfuse::Aggregator<gridfuse::PerGridFromHost, leaf_aggregated> leafs(batch.arena(), out);",
        "gridfuse::launchpad_for<child_aggregated, leaf_aggregated>(
            4, 128, /*stream=*/0, /*bytes_per_thread=*/64, /*aggregators=*/1,
            gridfuse::kNestedBytes)",
    ]);
}

#[test]
fn one_after_the_other() {
    let marked = NEST.replace("child<<<", "$0child<<<");
    let inner = |outer: &str| {
        let outer = rewrite(outer, &marked).text().replace("leaf<<<", "$0leaf<<<");
        rewrite_files(ID, &[("a.cu", &outer)], &[])
    };
    let both = inner(ID).unwrap_or_else(|reasons| panic!("{reasons:?}"));
    both.has(&["gridfuse::launchpad_for<child_aggregated, leaf_aggregated>(
            4, 128, /*stream=*/0, /*bytes_per_thread=*/64, /*aggregators=*/1,
            gridfuse::kNestedBytes)"]);
    assert!(both.assumes.iter().any(|a| a.contains("the host may wait")));
    let refused = inner("aggregate-block");
    assert!(
        refused.is_err_and(|r| r.iter().any(|r| r.contains("go out from the device"))),
        "the device launches the outer ones"
    );
    // The device may go on with what the host has launched.
    let outer = rewrite(ID, &marked).text().replace("leaf<<<", "$0leaf<<<");
    rewrite("aggregate-block", &outer).has(&[
        "gridfuse::Aggregator<gridfuse::PerBlock, leaf_aggregated> leafs(batch.arena(), out);",
        "gridfuse::launchpad_for<child_aggregated>(4, 128, /*stream=*/0, /*bytes_per_thread=*/64,
                                                  /*aggregators=*/1, gridfuse::kNestedBytes)",
    ]);
}

#[test]
fn templates_are_named_by_the_host() {
    let child = r#"template <class T>
__global__ void child(T* out, int begin, int count) {
    out[begin] += T(count);
}
"#;
    rewrite(ID, &with_child(child, "child<int><<<1, 32>>>(out, begin, count);"))
        .has(&["gridfuse::launchpad_for<child_aggregated<int>>("]);
    let text = format!(
        r#"{child}
template <class T>
__global__ void parent(T* out, int n) {{
    child<T><<<1, 32>>>(out, threadIdx.x, n);
}}

int main() {{
    parent<int><<<1, 32>>>(nullptr, 5);
}}
"#
    );
    refuses(
        ID,
        &text,
        "the host can't name the template arguments of `child`: they mean something only in `parent`",
    );
}

#[test]
fn launches_of_the_parent_that_cannot_wait() {
    let with = |main: &str| {
        let text = program(LAUNCH);
        let at = text.find("    parent<<<").unwrap_or_default();
        let end = at + text[at..].find(";\n").unwrap_or_default() + 1;
        format!("{}{main}{}", &text[..at], &text[end..])
    };
    let launch = "parent<<<4, 128>>>(nullptr, nullptr, 512)";
    rewrite(ID, &with(&format!("    {launch};"))).has(&["launchpad_for<child_aggregated>(4, 128)"]);
    for main in [
        format!("    {launch}, cudaDeviceSynchronize();"),
        format!("    for (int i = 0; i < 3; ++i, {launch}) {{}}"),
    ] {
        refuses(ID, &with(&main), "part of a larger expression");
        rewrite("aggregate-grid", &with(&main));
    }
}

#[test]
fn the_kernel_is_declared_before_the_host_launches() {
    let parent = "__global__ void parent(int* out, int n);\n";
    let main = r#"int main() {
    parent<<<1, 32>>>(nullptr, 5);
}
"#;
    let kernels = r#"__global__ void child(int* out, int begin, int n) {
    if (threadIdx.x < n) out[begin] += 1;
}

__global__ void parent(int* out, int n) {
    child<<<1, 32>>>(out, threadIdx.x, n);
}
"#;
    let behind = format!("{parent}\n{main}\n{kernels}");
    refuses(
        ID,
        &behind,
        "`child_aggregated`, which the host is to launch, isn't declared before",
    );
    rewrite("aggregate-grid", &behind);
    let two = [("kernels.cu", kernels), ("main.cu", &format!("{parent}{main}"))];
    let refused = rewrite_files(ID, &two, &[]);
    assert!(refused.is_err_and(|r| r.iter().any(|r| r.contains("isn't declared before"))));
    let header = [
        ("kernels.cuh", kernels),
        ("main.cu", &format!("#include \"kernels.cuh\"\n{main}")),
    ];
    let found = rewrite_files(ID, &header, &[]).unwrap_or_else(|reasons| panic!("{reasons:?}"));
    assert!(found.files["main.cu"].contains("gridfuse::launchpad_for<child_aggregated>(1, 32)"));
}
