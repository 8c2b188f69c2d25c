//! `revert` and `retune-*`

use super::fixes::{fix, fix_beside};
use super::{Rewritten, program, rewrite_files, with_child};

/// Applies rewrites in a row to the launches of `child`.
fn rewritten(text: &str, ids: &[&str]) -> String {
    let mut now = text.to_owned();
    for id in ids {
        let marked = ["child_coarsened<<<", "child<<<", "child<int><<<"]
            .iter()
            .find(|launch| now.contains(**launch))
            .map_or(now.clone(), |launch| now.replacen(launch, &format!("$0{launch}"), 1));
        let result: Result<Rewritten, _> = rewrite_files(id, &[("a.cu", &marked)], &[]);
        now = result
            .unwrap_or_else(|reasons| panic!("{id}: {reasons:?}"))
            .text()
            .to_owned();
    }
    now
}

/// The text with the place of the parent's collected or plain launch marked.
fn marked(text: &str) -> String {
    let at = text.rfind(".launch(").or_else(|| text.rfind("child"));
    let at = at.unwrap_or_default();
    format!("{}$0{}", &text[..at], &text[at..])
}

#[track_caller]
fn round_trip(text: &str, ids: &[&str]) {
    assert!(comes_back(text, ids).is_empty());
}

/// The text is what it was once its rewrites are taken back; what that assumes.
#[track_caller]
fn comes_back(text: &str, ids: &[&str]) -> Vec<String> {
    let there = rewritten(text, ids);
    let (back, assumes) =
        fix("revert", &marked(&there), &[]).unwrap_or_else(|reasons| panic!("{ids:?}: {reasons:?}\n{there}"));
    assert_eq!(back, text, "{ids:?}");
    assumes
}

const LAUNCH: &str = "if (count > 0) child<<<(count + 31) / 32, 32>>>(out, begin, count);";

/// What a rewrite has changed in the child says so there, too.
#[test]
fn what_has_changed_in_a_child_is_taken_back_there() {
    let child = r#"__global__ void child(int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin] = 1;
}
"#;
    let text = with_child(child, LAUNCH);
    let there = rewritten(&text, &["skip-silent-stores"]);
    let (back, _) = fix("revert", &there.replacen("if (out[begin]", "if ($0out[begin]", 1), &[])
        .unwrap_or_else(|reasons| panic!("{reasons:?}"));
    assert_eq!(back, text);
    fix("revert", &there.replacen("int i = ", "int $0i = ", 1), &[]).expect_err("nothing has changed there");
}

#[test]
fn functions_of_one_line_and_parameters_without_names() {
    let one_line = r#"__global__ void child(int* o, int, float) { o[threadIdx.x] += 1; }
__global__ void parent(int* o, int n) { int t = threadIdx.x; if (t < n) child<<<2, 32>>>(o + 32 * t, n, 1.0f); }
void run(int* o) { parent<<<1, 32>>>(o, 3); }
"#;
    let named = one_line.replace(
        "int, float) { o[threadIdx.x] += 1; }",
        "int arg2, float arg4) { o[threadIdx.x] += arg2; }",
    );
    for text in [one_line, &named] {
        for ids in [
            &["aggregate-block"][..],
            &["aggregate-grid"],
            &["threshold"],
            &["serialize"],
            &["coarsen"],
        ] {
            round_trip(text, ids);
        }
    }
}

#[test]
fn bodies_of_one_line_and_block_sizes_of_several_dimensions() {
    // Too long for a line together with a longer head; and one that stood below its head before.
    let body = "{ out[blockIdx.x * blockDim.x + threadIdx.x + begin] = count * static_cast<int>(threadIdx.y); }";
    for gap in [" ", "\n", ""] {
        let head = "__global__ void child(int* out, int begin, int count)";
        let child = format!("{head}{gap}{body}\n");
        for launch in [
            "dim3 block(8, 4);\n    child<<<dim3((count + 7) / 8, (count + 3) / 4), block>>>(out, begin, count);",
            "child<<<1, dim3(8, 1, 2)>>>(out, begin, count);",
        ] {
            let text = with_child(&child, launch);
            for id in ["aggregate-grid-stream", "reuse-threads", "aggregate-block", "serialize"] {
                round_trip(&text, &[id]);
                let now = rewritten(&text, &[id]);
                assert!(now.contains(&format!("\n{body}")), "{now}");
                assert!(now.contains(&format!("{head}{gap}{{\n    child_")), "{now}");
                let made = now.lines().filter(|line| !text.contains(line.trim()));
                for line in made {
                    assert!(line.chars().count() <= 100, "{line}");
                }
            }
        }
    }
}

#[test]
fn rewrites_are_taken_back_exactly() {
    let text = program(LAUNCH);
    for ids in [
        &["aggregate-grid"][..],
        &["aggregate-grid-host"],
        &["threshold", "coarsen", "aggregate-grid-host"],
        &["aggregate-grid-stream"],
        &["threshold", "coarsen", "aggregate-grid-stream"],
        &["aggregate-multiblock"],
        &["aggregate-block"],
        &["aggregate-warp"],
        &["coarsen"],
        &["threshold"],
        &["serialize"],
        &["threshold", "serialize"],
        &["threshold", "aggregate-grid"],
        &["threshold", "coarsen"],
        &["coarsen", "aggregate-block"],
        &["threshold", "coarsen", "aggregate-grid"],
        &["optimize"],
    ] {
        round_trip(&text, ids);
        round_trip(
            &format!(
                r#"// Here.
#include <cstdio>

{text}"#
            ),
            ids,
        );
        round_trip(&format!("// Here.\n\n{text}"), ids);
    }
}

#[test]
fn children_with_barriers_are_taken_back() {
    let child = r#"__global__ void child(int* out, int begin, int count) {
    __shared__ int all;
    if (threadIdx.x == 0) all = count;
    __syncthreads();
    out[begin + threadIdx.x] = all;
}
"#;
    for block in ["32", "count"] {
        let text = with_child(
            child,
            &format!("if (count > 0) child<<<count, {block}>>>(out, begin, count);"),
        );
        round_trip(&text, &["threshold"]);
        round_trip(&text, &["threshold", "aggregate-block"]);
    }
    let text = with_child(child, "if (count > 0) child<<<count, 32>>>(out, begin, count);");
    round_trip(&text, &["serialize"]);
}

#[test]
fn restrict_comes_back() {
    let text = program(LAUNCH).replace("child(int* out,", "child(int* __restrict__ out,");
    for id in [
        "threshold",
        "serialize",
        "coarsen",
        "aggregate-block",
        "aggregate-grid-stream",
    ] {
        round_trip(&text, &[id]);
    }
}

#[test]
fn combined_atomics_are_taken_back() {
    let text = program(LAUNCH).replace("out[begin + i] = count;", "atomicAdd(&out[begin], i);");
    for ids in [
        &["aggregate-atomics"][..],
        &["aggregate-atomics", "aggregate-grid-stream"],
        &["aggregate-atomics", "threshold", "aggregate-grid"],
        &["aggregate-atomics", "serialize"],
        &["optimize"],
    ] {
        round_trip(&text, ids);
    }
    let loops = text.replace("if (count > 0) child", "for (int k = 0; k < count; ++k) child");
    round_trip(&loops, &["aggregate-grid-stream"]);
    round_trip(&loops, &["aggregate-atomics", "aggregate-grid-stream"]);
    round_trip(&loops, &["optimize"]);
}

#[test]
fn looks_in_front_of_stores_are_taken_back() {
    let text = program(LAUNCH).replace("out[begin + i] = count;", "{ out[begin + i] = count; *out = 1; }");
    let at_the_end = text.replace("*out = 1; }", "\n        out[begin] = count;\n    }");
    let own = text.replace("{ out", "{ if (out[1] != 2) out[1] = 2; out");
    for text in [text, at_the_end, own] {
        for ids in [
            &["skip-silent-stores"][..],
            &["skip-silent-stores", "aggregate-grid-stream"],
            &["skip-silent-stores", "threshold", "aggregate-grid"],
            &["skip-silent-stores", "serialize"],
            &["optimize"],
        ] {
            round_trip(&text, ids);
        }
    }
}

#[test]
fn arguments_and_configurations_come_back() {
    for launch in [
        "child<<<(count + 31) / 32, 32>>>(out + v, 0, (short)count);",
        "child<<<1, 32, 64>>>(out, begin, n);",
        r#"child<<<1, 32>>>(out, begin, count);
    child<<<2, 64>>>(out + v, 0, count);"#,
    ] {
        round_trip(&program(launch), &["aggregate-block"]);
        round_trip(&program(launch), &["aggregate-grid"]);
    }
    let both_write = r#"for (int k = 0; k < count; ++k) {
        child<<<k + 1, 32>>>(out, begin, k);
        out[k] = 1;
    }"#;
    for id in ["aggregate-block", "aggregate-grid"] {
        let assumes = comes_back(&program(both_write), &[id]);
        assert!(
            assumes.len() == 1 && assumes[0].contains("needs no result of `child`"),
            "{assumes:?}"
        );
    }
    let child = r#"template <class T>
__global__ void child(T* out, int begin, int count) {
    out[begin] += T(count);
}
"#;
    let text = with_child(child, "child<int><<<(count + 31) / 32, 32>>>(out, begin, count);");
    for id in ["aggregate-block", "coarsen", "threshold"] {
        round_trip(&text, &[id]);
    }
}

#[test]
fn what_was_edited_is_left_alone() {
    let there = rewritten(&program(LAUNCH), &["aggregate-block"]);
    for (from, to) in [
        ("args.begin, args.count", "args.begin + 1, args.count"),
        ("children(arena, out);", "children(arena, out + 1);"),
        (
            "gridfuse::arena_for((n + 127) / 128, 128)",
            "gridfuse::arena_for((n + 127) / 128, 128, 0, 128)",
        ),
    ] {
        let text = there.replace(from, to);
        assert_ne!(text, there);
        let refused = fix("revert", &marked(&text), &[]);
        let fits = refused.is_err_and(|r| r.iter().any(|r| r.contains("isn't what it would write now")));
        // What is no more than another argument comes back as that.
        assert!(fits || from.starts_with("children("), "{to}");
    }
    // The body may have been edited, and everything around.
    let text = there.replace("out[begin + i] = count;", "out[begin + i] += 2;");
    let (back, _) = fix("revert", &marked(&text), &[]).unwrap_or_default();
    assert_eq!(back, program(LAUNCH).replace("= count;\n}", "+= 2;\n}"));
    assert!(fix("revert", &marked(&program(LAUNCH)), &[]).is_err());
}

#[test]
fn programs_beside_it_may_have_the_same_names() {
    let text = program(LAUNCH);
    let there = rewritten(&text, &["threshold", "coarsen", "aggregate-grid"]);
    let back = fix_beside(&[("b.cu", &there), ("c.cu", &text)], "revert", &marked(&there), &[]);
    assert_eq!(back.map(|(back, _)| back), Ok(text));
    // One that has no definition of its own may mean this one.
    let user = r#"__global__ void child_coarsened_aggregated(int);
void use() { (void)&child_coarsened_aggregated, (void)&child_aggregated; }
"#;
    assert!(fix_beside(&[("user.cu", user)], "revert", &marked(&there), &[]).is_err());
}

#[test]
fn granularities_change() {
    let names = [
        ("grid", "PerGrid"),
        ("block", "PerBlock"),
        ("warp", "PerWarp"),
        ("multiblock", "PerMultiBlock<8>"),
    ];
    // An argument that is the same for a block and not for a grid.
    let text = program("child<<<(count + 31) / 32, 32>>>(out, blockIdx.x, count);");
    for (from, _) in names {
        let there = rewritten(&text, &["threshold", &format!("aggregate-{from}")]);
        for (to, ty) in names {
            let result = fix(&format!("retune-{to}"), &marked(&there), &[]);
            if from == to {
                assert!(result.is_err_and(|r| r.iter().any(|r| r.contains("already"))), "{from}");
                continue;
            }
            let (new, assumes) = result.unwrap_or_else(|reasons| panic!("{from} {to}: {reasons:?}"));
            assert!(assumes.is_empty(), "{assumes:?}");
            assert!(new.contains(&format!("gridfuse::{ty},")), "{new}");
            assert_eq!(
                new,
                rewritten(&text, &["threshold", &format!("aggregate-{to}")]),
                "{from} {to}"
            );
        }
    }
    // The host waits for what it launches, and only then.
    for (from, _) in names {
        let there = rewritten(&text, &[&format!("aggregate-{from}")]);
        let (new, assumes) = fix("retune-grid-host", &marked(&there), &[]).unwrap_or_else(|r| panic!("{from}: {r:?}"));
        assert!(
            assumes.iter().all(|a| a.contains("the host may wait")) && assumes.len() == 1,
            "{assumes:?}"
        );
        let host = rewritten(&text, &["aggregate-grid-host"]);
        assert_eq!(new, host, "{from}");
        let (back, assumes) =
            fix(&format!("retune-{from}"), &marked(&host), &[]).unwrap_or_else(|r| panic!("{from}: {r:?}"));
        assert!(assumes.is_empty(), "{assumes:?}");
        assert_eq!(back, there, "{from}");
    }
    // What the host passes goes back into the kernel.
    let stream = rewritten(&text, &["aggregate-grid-stream"]);
    for (from, _) in names {
        let there = rewritten(&text, &[&format!("aggregate-{from}")]);
        let (new, assumes) =
            fix("retune-grid-stream", &marked(&there), &[]).unwrap_or_else(|r| panic!("{from}: {r:?}"));
        assert!(assumes.iter().all(|a| a.contains("what follows it")), "{assumes:?}");
        assert_eq!(new, stream, "{from}");
        let (back, _) =
            fix(&format!("retune-{from}"), &marked(&stream), &[]).unwrap_or_else(|r| panic!("{from}: {r:?}"));
        assert_eq!(back, there, "{from}");
    }
    let there = rewritten(&text, &["aggregate-grid"]);
    let four = fix("retune-multiblock", &marked(&there), &[("blocks", "4")]);
    assert!(four.is_ok_and(|(t, _)| t.contains("PerMultiBlock<4>")));
    assert!(fix("retune-grid", &marked(&text), &[]).is_err());
}

#[test]
fn what_follows_a_parent_is_taken_back() {
    let other = r#"__global__ void other(int* out, int begin) {
    out[begin] = blockIdx.x;
}

__global__ void parent"#;
    let two =
        program(&format!("{LAUNCH}\n    else other<<<1, 32>>>(out, begin);")).replace("__global__ void parent", other);
    round_trip(&two, &["aggregate-grid-stream"]);
    let shared = r#"__shared__ int first;
    if (i == 0) first = begin;
    __syncthreads();
    if (i < count) out[first + i] += 1;"#;
    let barrier = program(LAUNCH).replace("if (i < count) out[begin + i] = count;", shared);
    round_trip(&barrier, &["aggregate-grid-stream"]);
    // More than one launch of a thread.
    let thrice = program("for (int k = 0; k < 3; ++k) child<<<1, 32>>>(out, begin + k, count);");
    round_trip(&thrice, &["aggregate-grid-stream"]);
    // The same argument for two parameters, and another one at another launch.
    let twice = program(&LAUNCH.replace("(out, begin", "(also, begin"))
        .replace("void parent(int* out,", "void parent(int* out, int* also,")
        .replace(
            "(out, row, n);",
            r#"(out, out, row, n);
    parent<<<1, 64>>>(nullptr, out, row, n);"#,
        );
    round_trip(&twice, &["aggregate-grid-stream"]);
}

#[test]
fn the_host_passes_the_same_for_several_parameters() {
    const ID: &str = "aggregate-grid-stream";
    let with = |params: &str, args: &str, statement: &str, launch: &str| {
        program(launch)
            .replace(
                "void parent(int* out, const int* row, int n) {",
                &format!("void parent({params}) {{\n    {statement}"),
            )
            .replace("(out, row, n);\n}", &format!("({args});\n}}"))
    };
    // One points to constants, and one is changed.
    let row = "const int* row, int n";
    let text = with(
        &format!("const int* in, int* out, {row}"),
        "out, out, row, n",
        "if (in[n]) return;",
        LAUNCH,
    );
    round_trip(&text, &[ID]);
    let text = with(
        &format!("int* also, int* out, {row}"),
        "out, out, row, n",
        "also += n;",
        LAUNCH,
    );
    round_trip(&text, &[ID]);
    // One is converted, and of two that aren't one has the name of the child's.
    let launch = "if (begin > 0) child<<<1, 32>>>(out, begin, n);";
    for (tag, named) in [
        ("unsigned char tag", "n"),
        ("int tag", "count"),
        ("int tag, int other", "count"),
    ] {
        let more = if tag.contains("other") { "n, n" } else { "n" };
        let text = with(
            &format!("{tag}, int* out, const int* row, int n"),
            &format!("{more}, out, row, n"),
            "",
            launch,
        )
        .replace("count = row[v + 1] - begin;", "m = row[v + 1] - begin;");
        let text = if named == "n" {
            text
        } else {
            let (child, rest) = text.split_at(text.find("__global__ void parent").unwrap_or(0));
            let rest = rest
                .replacen("int n)", "int count)", 1)
                .replacen("v >= n", "v >= count", 1);
            format!("{child}{}", rest.replace("begin, n);\n}", "begin, count);\n}"))
        };
        round_trip(&text, &[ID]);
    }
    // Nothing tells these apart.
    let text = with(
        "int* a, int* b, const int* row, int n",
        "out, out, row, n",
        "",
        &LAUNCH.replace("(out", "(b"),
    );
    let there = rewritten(&text, &[ID]);
    for what in ["revert", "retune-grid"] {
        let why =
            "the host passes the same for `a`, `b` of `parent`, and which of them was passed on as `out` isn't known";
        let refused = fix(what, &marked(&there), &[]).expect_err("refused");
        assert!(refused.iter().any(|r| r.contains(why)), "{refused:?}");
    }
}

#[test]
fn a_threshold_goes_below_what_is_there() {
    let text = program(LAUNCH);
    for layers in [
        &["aggregate-grid"][..],
        &["aggregate-block"],
        &["coarsen", "aggregate-warp"],
    ] {
        let there = rewritten(&text, layers);
        let (new, assumes) = fix("add-threshold", &marked(&there), &[]).unwrap_or_else(|r| panic!("{layers:?}: {r:?}"));
        assert!(assumes.is_empty(), "{assumes:?}");
        let wanted: Vec<&str> = ["threshold"].iter().chain(layers).copied().collect();
        assert_eq!(new, rewritten(&text, &wanted), "{layers:?}");
        let again = fix("add-threshold", &marked(&new), &[]);
        assert!(again.is_err_and(|r| r.iter().any(|r| r.contains("already"))));
        let wide = fix("add-threshold", &marked(&there), &[("threshold", "7")]);
        assert!(wide.is_ok_and(|(t, _)| t.contains("kChildThreshold = 7;")));
    }
    let two = program(
        r#"child<<<begin, 32>>>(out, begin, count);
    child<<<v, 64>>>(out + v, 0, count);"#,
    );
    let there = rewritten(&two, &["aggregate-block"]);
    let (new, _) = fix("add-threshold", &marked(&there), &[]).unwrap_or_default();
    assert!(
        new.contains("children.launch(begin, 32") && new.contains("child_serial(v, 64, out + v, 0, count);"),
        "{new}"
    );
    assert!(fix("add-threshold", &marked(&text), &[]).is_err());
}

#[test]
fn what_was_written_behind_it_since_may_need_the_order() {
    let kernels = r#"__global__ void child(int* out, int t) { atomicAdd(&out[t], 1 + (int)threadIdx.x); }
__global__ void parent(int* out, int n) {
    int t = threadIdx.x;
    if (t < n) {
        child<<<1, 16>>>(out, t);
        out[100 + t] = 0;
    }
}
void run(int* out) { parent<<<1, 16>>>(out, 12); }
"#;
    let reverted = |text: &str| fix("revert", &marked(text), &[]);
    for (id, other) in [
        ("serialize", "out[100 + t] = out[t];"),
        ("aggregate-block", "out[t] = 5;"),
    ] {
        let there = rewritten(kernels, &[id]);
        let (_, before) = reverted(&there).unwrap_or_else(|reasons| panic!("{id}: {reasons:?}"));
        let edited = there.replace("out[100 + t] = 0;", other);
        assert_ne!(edited, there);
        let (back, assumes) = reverted(&edited).unwrap_or_else(|reasons| panic!("{id}: {reasons:?}"));
        assert!(back.contains("child<<<1, 16>>>(out, t);"), "{back}");
        assert!(
            assumes.len() == 1 && assumes[0].contains("`parent` doesn't need `child` to be done"),
            "{id}: {assumes:?}"
        );
        assert!(before.iter().all(|b| !assumes.contains(b)), "{id}: {before:?}");
    }
    // A launch of no blocks fails again, and somebody asks.
    for id in ["serialize", "aggregate-block"] {
        let asks = "out[100 + t] = cudaGetLastError() == cudaSuccess;";
        let edited = rewritten(kernels, &[id]).replace("out[100 + t] = 0;", asks);
        let (_, assumes) = reverted(&edited).unwrap_or_else(|reasons| panic!("{id}: {reasons:?}"));
        let says = |a: &String| a.contains("the launch of `child` doesn't fail") && a.contains("cudaGetLastError");
        assert!(assumes.iter().any(says), "{id}: {assumes:?}");
    }
    // A small grid would run at once, and was collected until the end.
    let there = rewritten(kernels, &["aggregate-block"]).replace("out[100 + t] = 0;", "out[t] = 5;");
    let assumes = fix("add-threshold", &marked(&there), &[]).map(|(_, assumes)| assumes);
    assert!(
        assumes
            .as_ref()
            .is_ok_and(|all| all.iter().any(|a| a.contains("doesn't need `child` to be done"))),
        "{assumes:?}"
    );
    // A child grid can't use a variable of the launching thread.
    let there = rewritten(kernels, &["serialize"]);
    let local = there
        .replace("out[100 + t] = 0;", "out[100 + t] = own[t];")
        .replace("(out, t);", "(own, 0);")
        .replace("int t = threadIdx.x;", "int t = threadIdx.x;\n    int own[16] = {0};")
        .replace(", out, t)", ", own, 0)");
    let refused = reverted(&local);
    assert!(
        refused
            .as_ref()
            .is_err_and(|r| r.iter().any(|r| r.contains("points to local"))),
        "{refused:?}\n{local}"
    );
}

#[test]
fn what_was_written_around_it_since_may_need_the_order() {
    let kernels = r#"__global__ void child(int* out, const int* aux, int t) { atomicAdd(&out[t], aux[(t + threadIdx.x) % 16]); }
__global__ void consumer(int* out) { out[40] = out[3]; }
__global__ void parent(int* out, int* aux, int n) {
    int t = threadIdx.x;
    if (t < n) child<<<1, 16>>>(out, aux, t);
}
void run(int* out, int* aux, int n) { parent<<<n, 16>>>(out, aux, n); }
"#;
    let assumed = |id: &str, what: &str, edit: &dyn Fn(&str) -> String| {
        let edited = edit(&rewritten(kernels, &["aggregate-grid"]));
        let assumes = fix(id, &marked(&edited), &[]).map(|(_, assumes)| assumes);
        let says = assumes.as_ref().is_ok_and(|all| all.iter().any(|a| a.contains(what)));
        assert!(says, "{id}: {assumes:?}");
    };
    assert_eq!(comes_back(kernels, &["aggregate-grid"]), Vec::<String>::new());
    // Another thread may do it behind the launch.
    let in_front = |text: &str| {
        let at = text.find("int t = threadIdx.x;").unwrap_or_default();
        format!("{}aux[threadIdx.x] = 3;\n    {}", &text[..at], &text[at..])
    };
    for id in ["revert", "retune-block", "add-threshold"] {
        assumed(
            id,
            "no other thread needs `child` to come later, or to be done",
            &in_front,
        );
    }
    // A limit in sight.
    let limit = |text: &str| {
        let set =
            "void run(int* out, int* aux, int n) { cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 16); ";
        text.replace("void run(int* out, int* aux, int n) { ", set)
    };
    for id in ["revert", "retune-warp"] {
        assumed(id, "at most 16 grids are pending at a time", &limit);
    }
    // What the thread has run itself was done for the next launch, whatever its stream.
    let there = rewritten(kernels, &["serialize"]);
    let call = there.rfind("child_serial").unwrap_or_default();
    let end = call + there[call..].find(';').unwrap_or_default() + 1;
    let edited = format!(
        "{}\n    consumer<<<1, 1, 0, cudaStreamFireAndForget>>>(out);{}",
        &there[..end],
        &there[end..]
    );
    let place = format!("{}$0{}", &edited[..call], &edited[call..]);
    let assumes = fix("revert", &place, &[]).map(|(_, assumes)| assumes);
    let says = |all: &Vec<String>| {
        all.iter()
            .any(|a| a.contains("the grids of `child` and `consumer` don't depend on each other"))
    };
    assert!(assumes.as_ref().is_ok_and(says), "{assumes:?}\n{edited}");
}

#[test]
fn a_threshold_is_put_on_the_launch_that_is_meant() {
    let text = program(
        r#"Pool pool;
    pool.launch(3);   // not x.launch( any more
    child<<<begin, 32>>>(out, begin, count);
    child<<<v, 64>>>(out + v, 0, count);"#,
    )
    .replacen(
        "__global__",
        "struct Pool { __device__ void launch(int) {} };\n__global__",
        1,
    );
    let there = rewritten(&text, &["aggregate-block"]);
    for (launch, wanted) in [
        ("children.launch(begin", "child_serial(begin, 32, out, begin, count);"),
        ("children.launch(v", "child_serial(v, 64, out + v, 0, count);"),
    ] {
        let at = there.find(launch).unwrap_or_else(|| panic!("{there}"));
        let (new, _) = fix("add-threshold", &format!("{}$0{}", &there[..at], &there[at..]), &[])
            .unwrap_or_else(|reasons| panic!("{launch}: {reasons:?}"));
        assert!(new.contains(wanted), "{launch}: {new}");
    }
}

#[test]
fn a_threshold_with_braces_is_no_serialized_launch() {
    let there = rewritten(&program(LAUNCH), &["threshold"]);
    let at = there.rfind("child_serial(").unwrap_or_default();
    let braced = |from: usize, text: &str| {
        let end = from + text[from..].find(';').unwrap_or_default() + 1;
        format!("{}{{ {} }}{}", &text[..from], &text[from..end], &text[end..])
    };
    let once = braced(at, &there);
    let launch = once.rfind("child<<<").unwrap_or_default();
    let both = braced(launch, &once);
    let refused = fix("revert", &marked(&once), &[]);
    let edited = |all: &Vec<String>| {
        all.iter()
            .any(|r| r.contains("`threshold`") && r.contains("would write now"))
    };
    assert!(refused.as_ref().is_err_and(edited), "{refused:?}\n{once}");
    // The launch keeps the braces, and so do others of the user's.
    let in_braces = LAUNCH
        .replace("child<<<", "{\n        child<<<")
        .replace(';', ";\n    }");
    let (back, _) = fix("revert", &marked(&both), &[]).unwrap_or_else(|reasons| panic!("{reasons:?}\n{both}"));
    assert_eq!(back, program(&in_braces));
    comes_back(&program(&in_braces), &["threshold"]);
}

/// A kernel of this name that launches `child` for each of its threads.
fn kernel(name: &str) -> String {
    format!(
        r#"__global__ void {name}(int* out, const int* row, int n) {{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v < n) {{
        int begin = row[v], count = row[v + 1] - begin;
        {LAUNCH}
    }}
}}
"#
    )
}

/// A child and kernels that launch it.
fn with_kernels(names: &[&str]) -> String {
    let child = r#"__global__ void child(int* out, int begin, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[begin + i] = begin;
}
"#;
    let kernels: Vec<String> = names.iter().map(|name| kernel(name)).collect();
    let launched = names
        .iter()
        .map(|name| format!("    {name}<<<(n + 127) / 128, 128>>>(out, row, n);\n"));
    let host: String = launched.collect();
    format!(
        "{child}\n{}\nvoid run(int* out, const int* row, int n) {{\n{host}}}\n",
        kernels.join("\n")
    )
}

/// Applies a rewrite to the launch that stands behind a text.
fn rewritten_behind(text: &str, behind: &str, id: &str) -> String {
    let from = text.find(behind).unwrap_or_else(|| panic!("{behind}: {text}"));
    let at = from + text[from..].find("child<<<").unwrap_or_else(|| panic!("{text}"));
    let (before, after) = text.split_at(at);
    rewrite_files(id, &[("a.cu", &format!("{before}$0{after}"))], &[])
        .unwrap_or_else(|reasons| panic!("{id}: {reasons:?}"))
        .text()
        .to_owned()
}

#[test]
fn kernels_that_share_a_child_are_taken_back_in_any_order() {
    let names = ["first", "second", "third"];
    let text = with_kernels(&names);
    for id in ["aggregate-block", "aggregate-grid", "threshold", "serialize", "coarsen"] {
        let there = names.iter().fold(text.clone(), |now, name| {
            rewritten_behind(&now, &format!("void {name}("), id)
        });
        for order in [[0, 1, 2], [1, 2, 0], [1, 0, 2], [2, 0, 1]] {
            let mut now = there.clone();
            for index in order {
                let at = now.find(&format!("void {}(", names[index])).unwrap_or_default();
                let (before, behind) = now.split_at(at);
                let (back, _) = fix("revert", &format!("{before}$0{behind}"), &[])
                    .unwrap_or_else(|reasons| panic!("{id}, {order:?}, {}: {reasons:?}\n{now}", names[index]));
                now = back;
            }
            assert_eq!(now, text, "{id}, {order:?}");
        }
    }
}

#[test]
fn launches_of_one_kernel_are_taken_back_whichever_was_rewritten_first() {
    let text = program(
        r#"if (count > 0) child<<<(count + 31) / 32, 32>>>(out, begin, count);
    if (count > 9) {
        out[v] = 0;
        child<<<(count + 63) / 64, 64>>>(out, begin, count);
    }"#,
    );
    for id in ["threshold", "serialize", "coarsen"] {
        for order in [["count > 0", "count > 9"], ["count > 9", "count > 0"]] {
            let there = order
                .iter()
                .fold(text.clone(), |now, behind| rewritten_behind(&now, behind, id));
            let (back, _) = fix("revert", &marked(&there), &[])
                .unwrap_or_else(|reasons| panic!("{id}, {order:?}: {reasons:?}\n{there}"));
            assert_eq!(back, text, "{id}, {order:?}");
        }
    }
}

/// What a rewrite of a kernel's launch of itself makes of a program comes back, and is left alone where somebody has edited it.
#[track_caller]
fn renewed_comes_back(id: &str, text: &str, edits: &[(&str, &str)]) {
    let there = rewrite_files(id, &[("a.cu", text)], &[]).unwrap_or_else(|reasons| panic!("{id}: {reasons:?}"));
    let (there, at) = (there.text(), there.text().find(".launch").unwrap_or_default());
    let marked = |text: &str| format!("{}$0{}", &text[..at], &text[at..]);
    let back = fix("revert", &marked(there), &[]).unwrap_or_else(|reasons| panic!("{id}: {reasons:?}\n{there}"));
    assert_eq!(back.0, text, "{id}");
    // Behind the launch, so that the place stays.
    for (from, to) in edits {
        assert!(there[at..].contains(from), "{from} in {there}");
        let edited = format!("{}{}", &there[..at], there[at..].replacen(from, to, 1));
        let reasons = fix("revert", &marked(&edited), &[]);
        assert!(
            reasons.is_err_and(|r| r.iter().any(|r| r.contains("isn't what it would write now"))),
            "{id}: {to}"
        );
    }
}

#[test]
fn chains_are_taken_back() {
    let text = r#"/* Sums. */
__global__ void sums(const int* in, int* out, int n, int tile, int before) {
    __shared__ int all;
    if (threadIdx.x == 0) all = 0;
    __syncthreads();
    atomicAdd(&all, in[tile * 128 + threadIdx.x]);
    __syncthreads();
    int total = all;
    if (threadIdx.x == 0 && tile + 1 < n) sums<<<1, 128>>>(in, out, n, tile + 1,
                                                           before + total);
    out[tile * 128 + threadIdx.x] = before;
}

void run(const int* in, int* out, int n, cudaStream_t stream) {
    sums<<<1, 128, 0, stream>>>(in, out, n, 0, 0);
    sums<<<dim3(1), 128>>>(in, out, n, 1, 0);
}
"#;
    renewed_comes_back(
        "promote",
        text,
        &[
            ("{tile + 1, before + total}", "{tile + 2, before + total}"),
            ("{tile, before}", "{tile + 1, before}"),
            ("chain_blocks<sums>(128)", "chain_blocks<sums>(64)"),
        ],
    );
    renewed_comes_back(
        "promote-overlap",
        text,
        &[("return tile + 1 < n", "return tile + 2 < n")],
    );
    renewed_comes_back("promote-lookback", text, &[("memory, before)", "memory, before + 1)")]);
}

#[test]
fn loops_are_taken_back() {
    let text = r#"// Sweeps.
__global__ void relax(const float* __restrict__ a, float* __restrict__ b, int n, int round) {
    if (threadIdx.x < n) b[threadIdx.x] = a[threadIdx.x] * 0.5f;
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    if (round < 9) relax<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(b, (float*)a, n, round + 1);
}

void run(float* a, float* b, int n) {
    relax<<<GRID, 64>>>(a, b, n, 0);
}
"#;
    for grid in ["1", "n"] {
        let text = text.replace("GRID", grid);
        renewed_comes_back("persistent-loop", &text, &[("round + 1}", "round + 2}")]);
    }
    let in_turn = r#"__global__ void accept(int* x, int round);

__global__ void propose(int* x, int round) {
    x[threadIdx.x] += round;
    if (blockIdx.x == 0 && threadIdx.x == 0) accept<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(x, round);
}

__global__ void accept(int* x, int round) {
    x[threadIdx.x] *= 2;
    if (blockIdx.x == 0 && threadIdx.x == 0 && round < 9)
        propose<<<gridDim, blockDim, 0, cudaStreamTailLaunch>>>(x, round + 1);
}

void run(int* x, int n) {
    propose<<<n, 64>>>(x, 0);
}
"#;
    renewed_comes_back(
        "persistent-loop",
        in_turn,
        &[("accept_body(loop,", "propose_body(loop,")],
    );
    let driver = r#"// Sums.
__global__ void sweep(const float* __restrict__ from, float* to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i] * 0.5f;
}

__global__ void step(float* a, float* b, int n, int round) {
    __syncthreads();
    if (threadIdx.x != 0 || round == 9) return;
    sweep<<<(n + 127) / 128, 128>>>(a, b, n);
    sweep<<<(n + 127) / 128, 128, 0, cudaStreamTailLaunch>>>(b, a, n);
    step<<<1, 32, 0, cudaStreamTailLaunch>>>(b, a, n, round + 1);
}

void run(float* a, float* b, int n) {
    step<<<1, 32>>>(a, b, n, 0);
}
"#;
    renewed_comes_back(
        "persistent-loop",
        driver,
        &[("sweep_body(blockIdx,", "step_body(blockIdx,"), ("a, b});", "b, a});")],
    );
}

#[test]
fn worklists_are_taken_back() {
    let text = r#"// The children of a node of a tree have the numbers row[node] to row[node + 1] - 1.
__global__ void visit(const int* row, int* depths, int first, int depth) {
    int node = first + blockIdx.x;
    depths[node] = depth;
    int begin = row[node], count = row[node + 1] - begin;
    if (count > 0) {
        cudaStream_t s;
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        visit<<<count, 1, 0, s>>>(row, depths, begin, depth + 1);
        cudaStreamDestroy(s);
    }
}

void run(const int* row, int* depths, int root, cudaStream_t stream) {
    visit<<<1, 1, 0, stream>>>(row, depths, root, 0);
}
"#;
    renewed_comes_back(
        "flatten-recursion",
        text,
        &[("{begin, depth + 1}", "{begin, depth + 2}")],
    );
}

#[test]
fn streams_line_breaks_and_comments_come_back() {
    for launch in [
        "child<<<(count + 31) / 32, 32, 0, cudaStreamFireAndForget>>>(out, begin, count);",
        "child<<<(count + 31) / 32, 32, 0, 0>>>(out, begin, count);",
        "if (count > 0)\n        child << < (count + 31) / 32,\n            32 >> >(out, // all\n            begin, count);",
        "child<<<(count + 31) / 32 + 0 * 1111111111 + 0 * 1111111111 + 0 * 1111111111, 32, 0, 0>>>(out, begin, count);",
    ] {
        let text = program(launch);
        for id in ["aggregate-grid", "aggregate-block", "coarsen", "serialize"] {
            round_trip(&text, &[id]);
        }
        let there = rewritten(&text, &["aggregate-block"]);
        assert!(there.contains("// was: child"), "{there}");
        // The note stays where the granularity changes.
        let (grid, _) = fix("retune-grid", &marked(&there), &[]).unwrap_or_else(|reasons| panic!("{reasons:?}"));
        assert_eq!(grid, rewritten(&text, &["aggregate-grid"]));
    }
}

/// A note that can't be read back isn't a comment of the user's: the stream that it tells of would be lost.
#[test]
fn a_stream_that_only_a_note_tells_of_is_not_lost() {
    let launch = "child<<<(count + 31) / 32, 32, 0, cudaStreamFireAndForget>>>(out, begin, count);";
    let own = "cudaStream_t s;  // mine\n    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);\n    \
               child<<<(count + 31) / 32, 32, 0, s>>>(out, begin, count);\n    cudaStreamDestroy(s);  // gone";
    for text in [program(&format!("// was: something else\n    {launch}")), program(own)] {
        for id in ["aggregate-block", "serialize", "coarsen"] {
            let Ok((there, _)) = fix(id, &text.replace("child<<<", "$0child<<<"), &[]) else {
                continue;
            };
            let back = fix("revert", &marked(&there), &[]);
            let kept = back.as_ref().map_or(true, |(back, _)| *back == text.replace("$0", ""));
            assert!(kept, "{id}: {back:?}\n{there}");
        }
    }
    // A number of the note has been edited.
    let there = rewritten(&program(launch), &["aggregate-block"]);
    let edited = there.replace("// was: child<<<(count + 31)", "// was: child<<<(count + 33)");
    assert_ne!(there, edited);
    let back = fix("revert", &marked(&edited), &[]);
    assert!(back.is_err(), "{back:?}");
}
