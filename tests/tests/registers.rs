//! A second opinion on registers, by ptxas: a block of any size that fitted before a rewrite fits after it, or the rewrite says that it
//! may not. The host's blocks are taken out of sight first, as gridfuse would go by the largest of them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use gridfuse_codeactions::api::rewrite::Family;
use gridfuse_codeactions::handlers::of_launches;
use gridfuse_tests::cli::{Directory, directory, files_of, gridfuse, in_parallel};
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::resources::{Usage, is_function, usages};
use gridfuse_tests::workspace;
use serde_json::Value;

/// Registers of a multiprocessor.
const REGISTERS: u32 = 65536;

/// How a rewrite says that blocks may be too large.
const ASSUMED: [&str; 2] = ["may need more registers", "leave enough registers"];

/// Programs beside the corpus: kernels that are near a limit.
const NEAR: &str = r#"
__global__ void child(float* out, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}
__device__ __noinline__ float series(float x, int n) {
    float sum = 0;
    for (int i = 1; i <= n; ++i) sum += sinf(x * i) / i;
    return sum;
}
__global__ void parent(float* out, const float* x, const int* row, int n) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    float a[LOCALS];
    for (int k = 0; k < LOCALS; ++k) a[k] = x[v + k];
    for (int i = 0; i < row[v]; ++i)
        #pragma unroll
        for (int k = 0; k < LOCALS; ++k) a[k] = a[k] * a[(k + 5) % LOCALS] + x[i];
    float sum = series(x[v], row[v]);
    for (int k = 0; k < LOCALS; ++k) sum += a[k];
    out[v] = sum;
    int count = row[v + 1] - row[v];
    if (count > 0) child<<<(count + 31) / 32, 32, 0, cudaStreamFireAndForget>>>(out + row[v], x + v, count);
}
void run(float* out, const float* x, const int* row, int n) { parent<<<n, 256>>>(out, x, row, n); }
"#;

/// How many numbers a thread of [`NEAR`] keeps.
const LOCALS: [u32; 4] = [24, 40, 52, 96];

/// How many threads a block may have, by the registers of each: they are given out to whole warps, eight a thread at a time.
fn largest_block(registers: u32) -> u32 {
    let threads = REGISTERS / registers.max(1).next_multiple_of(8);
    (threads / 32 * 32).min(1024)
}

/// Prints the most resident threads by the registers and the shared memory of a kernel, as NVIDIA's own calculator says it for sm_90.
const CALCULATOR: &str = r#"
#include <initializer_list>
#include <climits>
#include <cstdio>
#include "cuda_occupancy.h"
int main() {
    cudaOccDeviceProp gpu;
    gpu.computeMajor = 9, gpu.computeMinor = 0;
    gpu.maxThreadsPerBlock = 1024, gpu.maxThreadsPerMultiprocessor = 2048;
    gpu.regsPerBlock = gpu.regsPerMultiprocessor = 65536;
    gpu.warpSize = 32, gpu.numSms = 132;
    gpu.sharedMemPerBlock = 48 << 10, gpu.sharedMemPerMultiprocessor = 228 << 10, gpu.sharedMemPerBlockOptin = 227 << 10;
    gpu.reservedSharedMemPerBlock = 1024;
    for (int registers = 1; registers <= 255; ++registers)
        for (int shared : {0, 4, 1028, 1080, 2816, 8000, 20000, 49152}) {
            cudaOccFuncAttributes kernel;
            kernel.maxThreadsPerBlock = INT_MAX, kernel.numRegs = registers, kernel.sharedSizeBytes = shared;
            kernel.partitionedGCConfig = PARTITIONED_GC_OFF, kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_DEFAULT;
            kernel.maxDynamicSharedSizeBytes = 0, kernel.numBlockBarriers = 1;
            const cudaOccDeviceState state;
            int most = 0;
            for (int size = 32; size <= 1024; size *= 2) {
                cudaOccResult result;
                if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &gpu, &kernel, &state, size, 0) != CUDA_OCC_SUCCESS) return 1;
                if (result.activeBlocksPerMultiprocessor * size > most) most = result.activeBlocksPerMultiprocessor * size;
            }
            std::printf("%d %d %d\n", registers, shared, most);
        }
}
"#;

#[test]
fn resident_threads_are_those_of_the_calculator() {
    let include = Nvcc::get().root().join("include");
    assert!(include.join("cuda_occupancy.h").is_file(), "{}", include.display());
    let files = directory(&[("calculator.cpp", CALCULATOR.as_bytes())]);
    let program = files.file("calculator");
    let mut compile = Command::new("g++");
    compile
        .arg("-I")
        .arg(&include)
        .arg(files.file("calculator.cpp"))
        .arg("-o")
        .arg(&program);
    let compiled = compile.output().expect("g++ starts");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
    let printed = Command::new(&program).output().expect("it starts");
    assert!(printed.status.success());
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert_eq!(printed.lines().count(), 255 * 8);
    for line in printed.lines() {
        let numbers: Vec<u32> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let usage = Usage {
            registers: numbers[0],
            shared: numbers[1],
            ..Usage::default()
        };
        assert_eq!(usage.resident_threads(), numbers[2], "{line}");
    }
}

fn explained(root: &Path, file: &str) -> Vec<Value> {
    let report = gridfuse(root, &["explain", file, "--format", "json"])
        .expect_code(0)
        .json();
    report["launches"].as_array().expect("launches").clone()
}

/// The program with an operand of each of the host's blocks that nobody knows, and the text in front of it that declares what it is.
fn of_any_block(file: &str, text: &str) -> String {
    let program = directory(&[(file, text.as_bytes())]);
    let mut places: Vec<(usize, usize)> = Vec::new();
    for launch in explained(program.path(), file) {
        let operand = &launch["block"]["place"];
        let offset = |end: &str| usize::try_from(operand[end]["offset"].as_u64().expect("an offset")).expect("small");
        if launch["launched_by"] == "host" {
            places.push((offset("start"), offset("end")));
        }
    }
    places.sort_unstable();
    let mut text = text.to_owned();
    for (start, end) in places.into_iter().rev() {
        text.replace_range(start..end, "threads_of_the_machine");
    }
    format!("extern const int threads_of_the_machine;\n{text}")
}

/// What a rewrite makes of the first launch of a kernel for which it is offered.
struct Rewritten {
    directory: Directory,
    parent: String,
    assumes: bool,
}

fn rewritten(file: &str, text: &str, id: &str) -> Option<Rewritten> {
    let program = directory(&[(file, text.as_bytes())]);
    let launches = explained(program.path(), file);
    let offered = |launch: &&Value| {
        let mut verdicts = launch["rewrites"].as_array().expect("verdicts").iter();
        launch["launched_by"] != "host" && verdicts.any(|v| v["rewrite"] == id && v["verdict"] != "ineligible")
    };
    let launch = launches.iter().find(offered)?;
    let verdicts = launch["rewrites"].as_array().expect("verdicts");
    let verdict = verdicts.iter().find(|v| v["rewrite"] == id).expect("its verdict");
    let reasons = verdict["reasons"].as_array().expect("reasons").iter();
    let mut reasons = reasons.filter_map(|reason| reason["text"].as_str());
    let assumes = reasons.any(|reason| ASSUMED.iter().any(|assumed| reason.contains(assumed)));
    let start = &launch["place"]["start"];
    let at = format!("{}:{}", start["line"], start["column"]);
    gridfuse(
        program.path(),
        &["rewrite", file, "--at", &at, "--apply", id, "--in-place"],
    )
    .expect_code(0);
    Some(Rewritten {
        directory: program,
        parent: launch["parent"]["name"].as_str().expect("its name").to_owned(),
        assumes,
    })
}

/// The registers of a kernel.
fn registers(found: &[(String, Usage)], kernel: &str) -> Option<u32> {
    let own = found.iter().filter(|(symbol, _)| is_function(symbol, kernel));
    own.map(|(_, usage)| usage.registers).max()
}

/// What is wrong with a rewrite of a program, and whether ptxas gave the kernel more registers. `old`: what it says of the original.
fn opinion(program: &Program, id: &str) -> Option<(String, bool)> {
    let file = &program.file;
    let after = rewritten(file, &program.text, id)?;
    let found = usages(Nvcc::get(), &after.directory.file(file));
    let (old, new) = match (&program.usages, &found) {
        (Ok(old), Ok(new)) => (registers(old, &after.parent), registers(new, &after.parent)),
        (Err(error), _) | (_, Err(error)) => return Some((format!("{file}: {id}: {error:#}\n"), false)),
    };
    // A function of the device has none, it counts for the kernels that call it.
    let (old, new) = (old?, new?);
    let said = if after.assumes { ", and it says so" } else { "" };
    println!("{file}: {id}: {old} registers, {new} after it{said}");
    let mut wrong = String::new();
    if largest_block(new) < largest_block(old) && !after.assumes {
        let _ = writeln!(
            wrong,
            "{file}: {id}: `{}` had {old} registers and blocks of up to {} threads, and has {new} and {}; nothing says so",
            after.parent,
            largest_block(old),
            largest_block(new)
        );
    }
    Some((wrong, new > old))
}

/// A program in whose sight no block of the host has a size.
struct Program {
    file: String,
    text: String,
    usages: anyhow::Result<Vec<(String, Usage)>>,
}

impl Program {
    fn new(file: &str, text: &str) -> Program {
        let text = of_any_block(file, text);
        let original = directory(&[(file, text.as_bytes())]);
        Program {
            usages: usages(Nvcc::get(), &original.file(file)),
            file: file.to_owned(),
            text,
        }
    }
}

#[test]
fn blocks_that_fitted_fit_after_a_rewrite() {
    let corpus = workspace::root().join("tests/corpus");
    let mut sources: Vec<(String, String)> = files_of(&corpus)
        .into_iter()
        .filter(|(name, _)| name.ends_with(".cu"))
        .map(|(name, bytes)| (name, String::from_utf8(bytes).expect("UTF-8")))
        .collect();
    let of_corpus = sources.len();
    // Around 64 registers, which a block of 1,024 threads has at most.
    sources.extend(LOCALS.map(|n| (format!("near_{n}.cu"), NEAR.replace("LOCALS", &n.to_string()))));
    let programs = in_parallel(&sources, |(file, text)| Program::new(file, text));
    let ids: Vec<&str> = of_launches()
        .filter(|rewrite| rewrite.family != Family::Composition)
        .map(|rewrite| rewrite.id)
        .collect();
    let mut jobs = Vec::new();
    for (number, program) in programs.iter().enumerate() {
        // It is compiling that takes time: the programs of the corpus get some of the rewrites each, in turns.
        let every = if number < of_corpus && !every_rewrite() { 3 } else { 1 };
        let some = ids
            .iter()
            .enumerate()
            .filter(|(index, _)| (index + number) % every == 0);
        jobs.extend(some.map(|(_, id)| (program, *id)));
    }
    let opinions = in_parallel(&jobs, |(program, id)| opinion(program, id));
    let opinions: Vec<(String, bool)> = opinions.into_iter().flatten().collect();
    let wrong: String = opinions.iter().map(|(wrong, _)| wrong.as_str()).collect();
    let more = opinions.iter().filter(|(_, more)| *more).count();
    println!("{} rewritten programs, {more} with more registers", opinions.len());
    assert_eq!(wrong, "");
    assert!(opinions.len() >= 60 && more >= 25, "{} {more}", opinions.len());
}

/// Whether each program of the corpus gets all rewrites, not some of them.
fn every_rewrite() -> bool {
    std::env::var_os("GRIDFUSE_EVERY_REWRITE").is_some()
}
