//! The table of library functions against the headers of CUDA: each function that device code can call stands in it, with what it does or
//! among those of which it says nothing on purpose. The declarations are read as the compiler sees them, behind its preprocessor.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use gridfuse_analysis::hir::library::{group_member, is_left_out, library, repeated};
use gridfuse_tests::nvcc::Nvcc;

/// What programs include.
const INCLUDES: [&str; 11] = [
    "cuda_runtime.h",
    "cuda_fp16.h",
    "cuda_bf16.h",
    "cuda_fp8.h",
    "cuda_pipeline.h",
    "cuda_awbarrier.h",
    "cooperative_groups.h",
    "cooperative_groups/reduce.h",
    "cooperative_groups/scan.h",
    "cooperative_groups/memcpy_async.h",
    "mma.h",
];

/// The headers whose functions are called by their names.
const OF_FUNCTIONS: [&str; 27] = [
    "common_functions.h",
    "cstring",
    "cuda_awbarrier_primitives.h",
    "cuda_bf16.h",
    "cuda_device_runtime_api.h",
    "cuda_fp16.h",
    "cuda_fp4.h",
    "cuda_fp6.h",
    "cuda_fp8.h",
    "cuda_pipeline_primitives.h",
    "cuda_runtime.h",
    "device_atomic_functions.h",
    "device_double_functions.h",
    "device_functions.h",
    "math_functions.h",
    "mma.h",
    "sm_20_atomic_functions.h",
    "sm_20_intrinsics.h",
    "sm_30_intrinsics.h",
    "sm_32_atomic_functions.h",
    "sm_32_intrinsics.h",
    "sm_60_atomic_functions.h",
    "sm_61_intrinsics.h",
    "sm_70_rt.h",
    "surface_indirect_functions.h",
    "texture_indirect_functions.h",
    "vector_functions.h",
];

/// Those of which a few are for programs.
const MORE_FUNCTIONS: [&str; 2] = ["sm_80_rt.h", "sm_90_rt.h"];

/// What the headers have for themselves.
fn is_internal(name: &str) -> bool {
    let begins = [
        "__internal_",
        "__cuda",
        "__nv_",
        "__u128",
        "__attribute",
        "__assert",
        "__cmath",
        "__pow_",
        "__get_storage",
        "__float_to_tf32",
    ];
    let documented = ["__nv_cvt_", "__nv_bswap"];
    let of_c_library = name.ends_with("_device") && name.starts_with("__mem");
    let template = name
        .strip_prefix('_')
        .is_some_and(|n| n.starts_with(char::is_uppercase));
    let begins = begins.iter().any(|b| name.starts_with(b)) && !documented.iter().any(|d| name.starts_with(d));
    begins || of_c_library || template
}

/// The functions that a preprocessed text declares for devices, by the header in which they stand.
fn declared(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut header = String::new();
    let mut pending = String::new();
    for line in text.lines() {
        if let Some(marker) = line.strip_prefix("# ") {
            let path = marker.split('"').nth(1).unwrap_or("");
            header = path.rsplit('/').next().unwrap_or("").to_owned();
            continue;
        }
        // A declaration may go on over several lines, each of which begins behind the last one's end.
        pending.push_str(line);
        pending.push(' ');
        if line.contains([';', '{', '}']) {
            for part in pending.split("__attribute__((device))").skip(1) {
                found.entry(header.clone()).or_default().extend(function_name(part));
            }
            pending.clear();
        }
    }
    found
}

/// The name of the function whose declaration goes on with `rest` behind an attribute.
fn function_name(rest: &str) -> Option<String> {
    let mut name = String::new();
    let mut skip_until = 0;
    for (at, c) in rest.char_indices() {
        if at < skip_until {
            continue;
        }
        match c {
            '(' => {
                let of_compiler = [
                    "__attribute__",
                    "__declspec",
                    "alignas",
                    "decltype",
                    "noexcept",
                    "sizeof",
                ];
                if !of_compiler.contains(&name.as_str()) {
                    return (!name.is_empty()).then_some(name);
                }
                let mut depth = 0usize;
                for (offset, c) in rest.get(at..)?.char_indices() {
                    depth = match c {
                        '(' => depth + 1,
                        ')' => depth - 1,
                        _ => depth,
                    };
                    if depth == 0 {
                        skip_until = at + offset + 1;
                        break;
                    }
                }
                name.clear();
            }
            ';' | '{' | '}' | '=' => return None,
            c if c == '_' || c.is_alphabetic() => {
                let end = rest.get(at..)?.find(|c: char| c != '_' && !c.is_alphanumeric());
                let word = rest.get(at..end.map_or(rest.len(), |end| at + end))?;
                skip_until = at + word.len();
                if word == "operator" {
                    return None;
                }
                word.clone_into(&mut name);
            }
            _ => {}
        }
    }
    None
}

fn preprocessed() -> String {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("all.cu");
    let lines: Vec<String> = INCLUDES.iter().map(|header| format!("#include <{header}>\n")).collect();
    fs::write(&source, lines.concat()).unwrap();
    let output = Nvcc::get().command().arg("-E").arg(&source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Classes, whose constructors are no functions of their own.
fn classes(text: &str) -> BTreeSet<&str> {
    let words = text
        .split(|c: char| c != '_' && !c.is_alphanumeric())
        .filter(|w| !w.is_empty());
    let mut words = words.peekable();
    let mut found = BTreeSet::new();
    while let Some(word) = words.next() {
        if matches!(word, "struct" | "class" | "union") {
            found.extend(words.peek());
        }
    }
    // Behind alignment.
    found.extend([
        "__half",
        "__half2",
        "__nv_bfloat16",
        "__nv_bfloat162",
        "__half_raw",
        "__half2_raw",
    ]);
    found
}

const WHAT_TO_DO: &str = "Put each into a row of analysis/src/hir/library/table.rs whose attributes hold for it (a function that writes through a \
                          pointer, asks which thread it is in, or needs other threads has a row of its own), or into LEFT_OUT with the reason";

#[test]
fn functions_of_the_headers() {
    let text = preprocessed();
    let classes = classes(&text);
    let found = declared(&text);
    let mut looked_at = 0;
    let mut missing = Vec::new();
    for header in OF_FUNCTIONS.iter().chain(&MORE_FUNCTIONS) {
        let functions = found
            .get(*header)
            .unwrap_or_else(|| panic!("{header} declares nothing"));
        for name in functions {
            let known = library(name).is_some() || library(&format!("std::{name}")).is_some();
            if is_internal(name) || classes.contains(name.as_str()) {
                continue;
            }
            looked_at += 1;
            if !known && !is_left_out(name) {
                missing.push(format!("{header}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}\n{WHAT_TO_DO}", missing.join("\n"));
    // The headers were read.
    assert!(looked_at > 1100, "{looked_at}");
}

#[test]
fn cooperative_groups() {
    let found = declared(&preprocessed());
    let internal = |name: &str| {
        let parts = [
            "impl",
            "internal",
            "helper",
            "getter",
            "location",
            "collectives",
            "mask",
            "scheme",
            "base",
            "check_",
            "pick_",
        ];
        name.starts_with('_') || parts.iter().any(|part| name.contains(part))
    };
    // Constructors and what classes have for themselves.
    let own = [
        "cluster_group",
        "coalesced_group",
        "grid_group",
        "thread_block",
        "thread_block_tile",
        "thread_group",
        "group_size",
        "get_type",
        "redux",
        "plus",
        "less",
        "greater",
        "bit_and",
        "bit_or",
        "bit_xor",
        "scan",
        "accelerated_async_copy",
        "copy",
        "copy_like",
        "find_best_alignment",
        "inline_copy",
    ];
    let mut missing = Vec::new();
    for header in [
        "cooperative_groups.h",
        "reduce.h",
        "scan.h",
        "async.h",
        "partitioning.h",
    ] {
        let functions = found.get(header).unwrap_or_else(|| panic!("{header} declares nothing"));
        for name in functions
            .iter()
            .filter(|name| !internal(name) && !own.contains(&name.as_str()))
        {
            let known = group_member(name).is_some() || library(&format!("cg::{name}")).is_some();
            if !known && !is_left_out(name) {
                missing.push(format!("{header}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}\n{WHAT_TO_DO}", missing.join("\n"));
}

/// The device functions of cuRAND's documentation, and those of `cuda::std` and `<cstring>` that kernels use.
#[test]
fn documented_functions() {
    let curand = "curand curand4 curand_init curand_uniform curand_uniform2_double curand_uniform4 curand_uniform_double curand_normal
        curand_normal2 curand_normal4 curand_normal_double curand_normal2_double curand_log_normal curand_log_normal2 curand_log_normal4
        curand_log_normal_double curand_log_normal2_double curand_poisson curand_poisson4 curand_discrete curand_discrete4 skipahead
        skipahead_sequence skipahead_subsequence";
    let standard = "min max clamp abs move forward swap exchange bit_cast popcount countl_zero countr_zero bit_ceil bit_floor bit_width rotl rotr
        sqrt sin cos tan exp log pow floor ceil round trunc fabs fmod fma hypot isnan isinf isfinite memcpy memset memmove memcmp memchr";
    let missing = curand
        .split_whitespace()
        .map(str::to_owned)
        .chain(standard.split_whitespace().map(|name| format!("cuda::std::{name}")))
        .filter(|name| library(name).is_none());
    let missing: Vec<String> = missing.collect();
    assert!(missing.is_empty(), "{}\n{WHAT_TO_DO}", missing.join("\n"));
}

#[test]
fn nothing_stands_there_twice() {
    let twice = repeated();
    assert!(twice.is_empty(), "{}\nLeave one row for each.", twice.join("\n"));
}
