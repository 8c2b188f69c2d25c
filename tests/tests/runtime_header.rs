//! The runtime header and the programs that are measured compile and link.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::path::{Path, PathBuf};

use gridfuse_codeactions::runtime::{HEADER, PARTS, PartSet, VERSION, header as header_of};
use gridfuse_tests::cli::{directory, files_of, in_parallel};
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::workspace;

/// What g++ is to say nothing about, of the functions that it sees.
const HOST_WARNINGS: &str = "-Wall,-Wextra,-Wshadow,-Wconversion";

fn header() -> Vec<u8> {
    HEADER.as_bytes().to_vec()
}

fn includes() -> Vec<String> {
    let root = workspace::root();
    ["codeactions/runtime", "tests/gpu/baselines", "tests/corpus"]
        .iter()
        .map(|directory| format!("-I{}", root.join(directory).display()))
        .collect()
}

/// The programs that are measured.
fn programs() -> Vec<PathBuf> {
    let tests = workspace::root().join("tests");
    let mut found: Vec<PathBuf> = ["runtime_test.cu", "chain_test.cu", "stream_test.cu", "together_test.cu"]
        .iter()
        .map(|name| tests.join("gpu").join(name))
        .collect();
    for directory in ["gpu/baselines", "corpus"] {
        let files = files_of(&tests.join(directory));
        found.extend(
            files
                .iter()
                .filter(|(name, _)| name.ends_with(".cu"))
                .map(|(name, _)| tests.join(directory).join(name)),
        );
    }
    found
}

#[test]
fn programs_link() {
    let programs = programs();
    assert!(programs.len() >= 5, "{programs:?}");
    let includes = includes();
    let mut flags: Vec<&str> = includes.iter().map(String::as_str).collect();
    flags.extend(["-Xptxas", "-O0"]);
    let failures = in_parallel(&programs, |program| {
        Nvcc::get()
            .compile(&[program], None, &flags)
            .err()
            .map(|failure| failure.to_string())
            .unwrap_or_default()
    });
    assert_eq!(failures.concat(), "");
}

const USER: &str = r#"
#include "gridfuse.cuh"
#include "gridfuse.cuh"

namespace {
struct args { int begin; int count; };

__device__ void body(uint3 blockIdx, dim3 gridDim, dim3 blockDim, int* out, args a) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < a.count) out[a.begin + i] = i + gridDim.x;
}

__global__ void child_aggregated(gridfuse::Batch<args> batch, int* out) {
    batch.for_each_block([&](uint3 blockIdx, dim3 gridDim, dim3 blockDim, const args& a) {
        body(blockIdx, gridDim, blockDim, out, a);
    });
}

__global__ void parent(int* out, const int* row, int n, gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated> children(arena, out);
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    int count = row[v + 1] - row[v];
    if (gridfuse::below_threshold((count + 127) / 128, 128, 32))
        gridfuse::for_each_thread((count + 127) / 128, 128, [&](uint3, uint3 blockIdx, dim3 gridDim, dim3 blockDim) {
            body(blockIdx, gridDim, blockDim, out, {row[v], count});
        });
    else
        children.launch((count + 127) / 128, 128, {row[v], count});
}
}

void NAME(cudaStream_t stream) {
    parent<<<4, 128, 0, stream>>>(nullptr, nullptr, 512, gridfuse::arena_for(4, 128, stream));
}
"#;

#[test]
fn two_units_share_the_header() {
    let main = "void one(cudaStream_t);\nvoid two(cudaStream_t);\nint main() { one(nullptr); two(nullptr); }\n";
    let files = directory(&[
        ("gridfuse.cuh", &header()),
        ("one.cu", USER.replace("NAME", "one").as_bytes()),
        ("two.cu", USER.replace("NAME", "two").as_bytes()),
        ("main.cu", main.as_bytes()),
    ]);
    let units = ["one.cu", "two.cu", "main.cu"].map(|name| files.file(name));
    let units: Vec<&Path> = units.iter().map(PathBuf::as_path).collect();
    let strict = [
        "-Werror",
        "all-warnings",
        "-Xcompiler",
        "-Wall,-Wextra,-Wno-unused-parameter",
        "-Xptxas",
        "-O0",
    ];
    Nvcc::get()
        .compile(&units, None, &strict)
        .unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn standards_and_architectures() {
    let files = directory(&[
        ("gridfuse.cuh", &header()),
        ("one.cu", USER.replace("NAME", "one").as_bytes()),
    ]);
    let unit = files.file("one.cu");
    let jobs: [&[&str]; 3] = [
        &["-std=c++20"],
        &["-arch=sm_75", "--default-stream", "per-thread"],
        &["-arch=sm_100", "-O3", "-lineinfo"],
    ];
    let failures = in_parallel(&jobs, |flags| {
        let all = [flags, &["-Werror", "all-warnings"][..]].concat();
        Nvcc::get()
            .check_compiles_with(&unit, &all)
            .err()
            .map(|failure| failure.to_string())
            .unwrap_or_default()
    });
    assert_eq!(failures.concat(), "");
}

/// The header as another version of gridfuse would write it.
fn of_version(version: u32) -> String {
    let own = VERSION.to_string();
    HEADER
        .replace(
            &format!("inline namespace v{own}"),
            &format!("inline namespace v{version}"),
        )
        .replace(
            &format!("GRIDFUSE_VERSION {own}\n"),
            &format!("GRIDFUSE_VERSION {version}\n"),
        )
        .replace(
            &format!("GRIDFUSE_VERSION != {own}\n"),
            &format!("GRIDFUSE_VERSION != {version}\n"),
        )
}

#[test]
fn two_versions_share_nothing() {
    let main = "void one(cudaStream_t);\nvoid two(cudaStream_t);\nint main() { one(nullptr); two(nullptr); }\n";
    // The other one has a counter and a state of another size: shared by name, they would be too small for one of them.
    let other = of_version(VERSION + 1)
        .replace(
            "inline __device__ unsigned long long direct_launches = 0;",
            "inline __device__ unsigned direct_launches[4] = {};",
        )
        .replace(
            "atomicAdd(&detail::direct_launches, 1ull)",
            "atomicAdd(&detail::direct_launches[1], 1u)",
        )
        .replace(
            "atomicAdd(&direct_launches, 1ull)",
            "atomicAdd(&direct_launches[1], 1u)",
        )
        .replace(
            "atomicAdd(&detail::direct_launches, 1ull * (end - slot))",
            "atomicAdd(&detail::direct_launches[1], end - slot)",
        )
        .replace("kPieces = 16;", "kPieces = 64;");
    assert!(other.contains("direct_launches[4]") && other.contains("kPieces = 64"));
    let user = |name: &str| USER.replace("NAME", name);
    let files = directory(&[
        ("a/gridfuse.cuh", &header()),
        ("b/gridfuse.cuh", other.as_bytes()),
        ("a/one.cu", user("one").as_bytes()),
        ("b/two.cu", user("two").as_bytes()),
        ("main.cu", main.as_bytes()),
        (
            "both.cu",
            b"#include \"a/gridfuse.cuh\"\n#include \"b/gridfuse.cuh\"\nint main() {}\n",
        ),
    ]);
    let units = ["a/one.cu", "b/two.cu", "main.cu"].map(|name| files.file(name));
    let units: Vec<&Path> = units.iter().map(PathBuf::as_path).collect();
    let program = files.file("program");
    Nvcc::get()
        .compile(&units, Some(&program), &["-Werror", "all-warnings", "-Xptxas", "-O0"])
        .unwrap_or_else(|failure| panic!("{failure}"));
    // Both have the memory that is kept between launches.
    let bytes = std::fs::read(&program).expect("the program");
    let has = |name: &str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
    for version in [VERSION, VERSION + 1] {
        assert!(
            has(&format!("8gridfuse2v{version}6detail10KeptMemory8instance")),
            "{version}"
        );
    }
    assert!(!has("8gridfuse6detail"));
    let both = Nvcc::get().check_compiles_with(&files.file("both.cu"), &[]);
    let failure = both.expect_err("two versions in one unit").to_string();
    assert!(
        failure.contains("two versions of gridfuse.cuh in one translation unit"),
        "{failure}"
    );
}

#[test]
fn each_part_compiles_by_itself() {
    let failures = in_parallel(PARTS, |part| {
        let alone = header_of(PartSet::of(|other| other.name == part.name));
        let files = directory(&[
            ("gridfuse.cuh", alone.as_bytes()),
            ("one.cu", b"#include \"gridfuse.cuh\"\n#include \"gridfuse.cuh\"\n"),
        ]);
        let strict = ["-Werror", "all-warnings", "-Xcompiler", HOST_WARNINGS];
        match Nvcc::get().check_compiles_with(&files.file("one.cu"), &strict) {
            Ok(()) => String::new(),
            Err(failure) => format!("{}: {failure}\n", part.name),
        }
    });
    assert_eq!(failures.concat(), "");
}

#[test]
fn two_headers_of_a_version_make_one() {
    let some = |name: &str| header_of(PartSet::of(|part| part.name == name));
    let files = directory(&[
        ("a/gridfuse.cuh", some("threshold").as_bytes()),
        ("b/gridfuse.cuh", some("arena_for").as_bytes()),
        ("c/gridfuse.cuh", some("aggregate").as_bytes()),
        ("d/gridfuse.cuh", some("serial").as_bytes()),
        (
            "one.cu",
            USER.replace("#include \"gridfuse.cuh\"\n", "")
                .replacen(
                    '\n',
                    &"abcd"
                        .chars()
                        .map(|dir| format!("#include \"{dir}/gridfuse.cuh\"\n"))
                        .collect::<String>(),
                    1,
                )
                .replace("NAME", "one")
                .as_bytes(),
        ),
    ]);
    Nvcc::get()
        .check_compiles_with(&files.file("one.cu"), &["-Werror", "all-warnings"])
        .unwrap_or_else(|failure| panic!("{failure}"));
}

/// A program that uses what launches nothing by the device: what it takes to compile is the same for every compiler.
const WITHOUT_DEVICE_LAUNCHES: &str = r#"
#include "gridfuse.cuh"

namespace {
struct args {
    int begin;
    int count;
    __device__ int threads() const { return count; }
};

__device__ void body(uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, int* out, args a) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < static_cast<unsigned>(a.count)) atomicAdd(out + a.begin, static_cast<int>(i + gridDim.x));
}

__global__ void child_aggregated(gridfuse::StreamBatch<args, 128> batch, int* out) {
    batch.for_each_thread([&](uint3 threadIdx, uint3 blockIdx, dim3 gridDim, dim3 blockDim, const args& a) {
        body(threadIdx, blockIdx, gridDim, blockDim, out, a);
    });
}

__global__ void parent(int* out, int n, gridfuse::StreamArena arena) {
    gridfuse::Aggregator<gridfuse::PerGridInStream, child_aggregated> children(arena);
    const int v = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (v >= n) return;
    const dim3 grid(static_cast<unsigned>(n + 127) / 128), block(128);
    if (gridfuse::below_threshold(grid, block, 32))
        gridfuse::for_each_thread(grid, block, [&](uint3 thread, uint3 index, dim3 gridDim, dim3 blockDim) {
            body(thread, index, gridDim, blockDim, out, {v, n});
        });
    else
        children.launch(grid, block, {v, n});
    void* const memory = gridfuse::malloc_together(16);
    gridfuse::free_together(memory);
    gridfuse::warp_aggregated::atomicAdd(out, 1);
}
}

unsigned long long NAME(cudaStream_t stream) {
    int* const out = nullptr;
    parent<<<4, 128, 0, stream>>>(out, 512, gridfuse::followed_by<child_aggregated>(4, 128, stream, out));
    return gridfuse::direct_launches();
}
"#;

const STANDARDS: [&str; 2] = ["-std=c++17", "-std=c++20"];

#[test]
fn no_warnings_by_any_standard() {
    let files = directory(&[
        ("gridfuse.cuh", &header()),
        ("one.cu", WITHOUT_DEVICE_LAUNCHES.replace("NAME", "one").as_bytes()),
    ]);
    let tests = workspace::root().join("tests/gpu");
    let mut jobs: Vec<(PathBuf, &str)> = Vec::new();
    for standard in STANDARDS {
        jobs.push((files.file("one.cu"), standard));
        // All that kernels can be launched with, and all that they launch.
        jobs.extend(["stream_test.cu", "together_test.cu"].map(|name| (tests.join(name), standard)));
    }
    let includes = includes();
    let failures = in_parallel(&jobs, |(unit, standard)| {
        let mut flags: Vec<&str> = includes.iter().map(String::as_str).collect();
        flags.extend([standard, "-Werror", "all-warnings", "-Xcompiler", HOST_WARNINGS]);
        match Nvcc::get().check_compiles_with(unit, &flags) {
            Ok(()) => String::new(),
            Err(failure) => format!("{failure}\n"),
        }
    });
    assert_eq!(failures.concat(), "");
}

/// Headers that take longer to compile than all of the runtime.
#[test]
fn no_part_includes_what_is_slow() {
    for part in PARTS {
        for slow in [
            "mutex",
            "memory",
            "functional",
            "algorithm",
            "string",
            "vector",
            "thread",
            "iostream",
        ] {
            let line = format!("#include <{slow}>");
            assert!(!part.text.contains(&line), "{}.cuh: {line}", part.name);
        }
    }
}

/// The symbols of an object that name the host's `direct_launches()`, with what nm says of them: `W` is shared by all objects.
fn counter_symbols(object: &Path) -> Vec<String> {
    let output = std::process::Command::new("nm").arg(object).output().expect("nm");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let kinds = text.lines().filter(|line| line.ends_with("15direct_launchesEv"));
    kinds
        .filter_map(|line| line.split_whitespace().rev().nth(1).map(str::to_owned))
        .collect()
}

/// Without relocatable device code each unit has a counter of its own: a function that reads it must not be merged with that of another
/// unit. With it, there is one of each.
#[test]
fn units_read_their_own_counter() {
    let main = r#"unsigned long long one(cudaStream_t);
unsigned long long two(cudaStream_t);
int main() { return one(nullptr) != two(nullptr); }
"#;
    let files = directory(&[
        ("gridfuse.cuh", &header()),
        ("one.cu", WITHOUT_DEVICE_LAUNCHES.replace("NAME", "one").as_bytes()),
        ("two.cu", WITHOUT_DEVICE_LAUNCHES.replace("NAME", "two").as_bytes()),
        ("main.cu", main.as_bytes()),
    ]);
    for (relocatable, expected) in [("-rdc=false", "t"), ("-rdc=true", "W")] {
        let mut objects = Vec::new();
        for name in ["one", "two", "main"] {
            let object = files.file(&format!("{name}.o"));
            let mut command = Nvcc::get().command();
            command.args([relocatable, "-c", "-Xptxas", "-O0", "-Werror", "all-warnings", "-o"]);
            let output = command
                .arg(&object)
                .arg(files.file(&format!("{name}.cu")))
                .output()
                .expect("nvcc");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            if name != "main" {
                assert_eq!(counter_symbols(&object), [expected], "{relocatable} {name}");
            }
            objects.push(object);
        }
        let objects: Vec<&Path> = objects.iter().map(PathBuf::as_path).collect();
        Nvcc::get()
            .compile(&objects, Some(&files.file("program")), &[relocatable])
            .unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// What clang says of a unit, compiled as CUDA for the host or for the device; `None`: there is no clang here.
fn clang(unit: &Path, side: &str, standard: &str) -> Option<String> {
    let clang = ["clang++-19", "clang++"].into_iter().find(|name| {
        let mut command = std::process::Command::new(name);
        command
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    })?;
    let directory = unit.parent().expect("a directory");
    // clang 19 includes two headers that CUDA 13 has no more. They say nothing that the runtime needs.
    for gone in ["texture_fetch_functions.h", "curand_mtgp32_kernel.h"] {
        std::fs::write(directory.join(gone), "").expect("an empty header");
    }
    let output = std::process::Command::new(clang)
        .args([
            "-x",
            "cuda",
            "-fsyntax-only",
            "-nocudalib",
            "--cuda-gpu-arch=sm_80",
            "-fgpu-rdc",
        ])
        .args(["-Wno-unknown-cuda-version", "-Xclang", "-target-sdk-version=12.5"])
        .args([
            "-Werror",
            "-Wall",
            "-Wextra",
            "-Wshadow",
            "-Wconversion",
            side,
            standard,
        ])
        .arg(format!("--cuda-path={}", Nvcc::get().root().display()))
        .arg("-I")
        .arg(directory)
        .arg(unit)
        .output()
        .expect("clang");
    Some(match output.status.success() {
        true => String::new(),
        false => format!(
            "{} {side} {standard}:\n{}\n",
            unit.display(),
            String::from_utf8_lossy(&output.stderr)
        ),
    })
}

#[test]
fn clang_takes_every_part() {
    let mut texts: Vec<(String, String)> = PARTS
        .iter()
        .map(|part| {
            let alone = header_of(PartSet::of(|other| other.name == part.name));
            (alone.to_string(), "#include \"gridfuse.cuh\"\n".to_owned())
        })
        .collect();
    texts.push((HEADER.to_string(), WITHOUT_DEVICE_LAUNCHES.replace("NAME", "one")));
    let failures = in_parallel(&texts, |(header, unit)| {
        // A directory each: clang's two empty headers are written beside the unit.
        let files = directory(&[("gridfuse.cuh", header.as_bytes()), ("one.cu", unit.as_bytes())]);
        let mut said = String::new();
        for side in ["--cuda-host-only", "--cuda-device-only"] {
            for standard in STANDARDS {
                match clang(&files.file("one.cu"), side, standard) {
                    Some(failure) => said.push_str(&failure),
                    None => return None,
                }
            }
        }
        Some(said)
    });
    if failures.iter().any(Option::is_none) {
        eprintln!("clang++-19 isn't installed: nothing is compiled");
        return;
    }
    assert_eq!(failures.into_iter().flatten().collect::<String>(), "");
}

/// clang 19 compiles no launches by device code. If a later one does, the README need not say so any more.
#[test]
fn clang_refuses_launches_by_the_device() {
    let files = directory(&[
        ("gridfuse.cuh", &header()),
        ("one.cu", USER.replace("NAME", "one").as_bytes()),
    ]);
    let Some(said) = clang(&files.file("one.cu"), "--cuda-device-only", "-std=c++17") else {
        eprintln!("clang++-19 isn't installed: nothing is compiled");
        return;
    };
    assert!(said.contains("reference to __global__ function"), "{said}");
}
