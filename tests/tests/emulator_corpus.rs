//! What the rewrites make of programs does what the programs did: run on the CPU, under schedules that no GPU has to show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::Path;

use gridfuse_tests::cli::{files_of, in_parallel};
use gridfuse_tests::emulator::report::Kind;
use gridfuse_tests::emulator::rewritten::{device_launches, offered};
use gridfuse_tests::emulator::run::{Executable, Outcome, RunOptions};
use gridfuse_tests::emulator::{Emulator, Program};
use gridfuse_tests::fixture::is_asked_for;
use gridfuse_tests::patience::PATIENCE;
use gridfuse_tests::workspace;
use regex::Regex;

/// A program with what gridfuse makes of it, each once: names and texts, the original first. Of pairs of rewrites only
/// those for whose number `wanted` holds.
fn variants(program: &Program, wanted: impl Fn(usize) -> bool) -> Vec<(String, Program)> {
    let mut found = vec![("the original".to_owned(), program.clone())];
    for site in device_launches(program) {
        for rewritten in offered(program, &site, &wanted) {
            if found.iter().any(|(_, known)| *known == rewritten.program) {
                continue;
            }
            let name = format!(
                "{}:{} after {}",
                site.file.display(),
                site.line,
                rewritten.ids.join(", ")
            );
            found.push((name, rewritten.program));
        }
    }
    found
}

/// Builds every variant; the messages of those that can't be built.
fn build(variants: Vec<(String, Program)>) -> (Vec<(String, Executable)>, String) {
    let programs: Vec<&Program> = variants.iter().map(|(_, program)| program).collect();
    let results = Emulator::get().build_all(&programs);
    let mut built = Vec::new();
    let mut failures = String::new();
    for ((name, _), result) in variants.into_iter().zip(results) {
        match result {
            Ok(executable) => built.push((name, executable)),
            Err(failure) if DEDUCED.iter().all(|part| failure.to_string().contains(part)) => {
                eprintln!("{name}: not run")
            }
            Err(failure) => {
                let _ = writeln!(failures, "{name}: {failure}");
            }
        }
    }
    (built, failures)
}

/// Runs every variant with every seed; `judge` says what is wrong with an outcome, given that of the first run.
fn run(
    variants: &[(String, Executable)],
    seeds: Range<u64>,
    arguments: &[&str],
    judge: impl Fn(&Outcome, &Outcome) -> Option<String>,
) -> String {
    let mut failures = String::new();
    let mut first: Option<Outcome> = None;
    for (name, executable) in variants {
        for seed in seeds.clone() {
            let options = RunOptions {
                seed,
                arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
                // Seconds on an idle machine; a busy one is no hang.
                timeout: PATIENCE,
                ..RunOptions::default()
            };
            let outcome = executable.run(&options).expect("the program starts");
            let first = first.get_or_insert_with(|| outcome.clone());
            if let Some(what) = judge(&outcome, first) {
                let _ = writeln!(
                    failures,
                    "{name} {}, seed {seed}: {what}\n{outcome}",
                    arguments.join(" ")
                );
                break;
            }
        }
    }
    failures
}

/// A program of the corpus, and small inputs for it.
struct Benchmark {
    file: &'static str,
    inputs: &'static [&'static str],
    /// Whether every pair of rewrites is run, or only some: it is compiling that takes time.
    all_pairs: bool,
}

const SEARCHES: &[&str] = &[
    "--input rmat --vertices 60",
    "--input tree --vertices 150",
    "--input uniform --vertices 40",
    "--input road --vertices 40",
];

const GRAPHS: &[&str] = &["--input rmat --vertices 60", "--input uniform --vertices 40"];

const CURVES: &[&str] = &["--input skewed --lines 40", "--input flat --lines 20"];

const POINTS: &[&str] = &[
    "--input skewed --points 300",
    "--input flat --points 200",
    "--input skewed --points 300 --variant recursive",
];

const KEYS: &[&str] = &[
    "--input skewed --keys 1500",
    "--input flat --keys 1200",
    "--input flat --keys 900 --variant serial",
];

const BODIES: &[&str] = &["--input skewed --bodies 80", "--input flat --bodies 60"];

const FORMULAS: &[&str] = &[
    "--input skewed --variables 40 --iterations 3",
    "--input flat --variables 20 --iterations 2",
];

/// Several blocks, which sweep until the last sweep that they may do, or until the plate is at rest.
const PLATES: &[&str] = &[
    "--size 40 --sweeps 6",
    "--size 9 --sweeps 400",
    "--size 20 --sweeps 3 --variant host",
];

/// Chains of two and of four links: the last one is not full.
const TILES: &[&str] = &["--elements 5000", "--elements 16384"];

const CORPUS: &[Benchmark] = &[
    all_pairs("bfs.cu", SEARCHES),
    some_pairs("sssp.cu", SEARCHES),
    some_pairs("bh.cu", BODIES),
    some_pairs("bt.cu", CURVES),
    some_pairs("bt_malloc.cu", CURVES),
    some_pairs("cc.cu", GRAPHS),
    some_pairs("gc.cu", GRAPHS),
    some_pairs("jacobi.cu", PLATES),
    some_pairs("los.cu", TILES),
    some_pairs("mstf.cu", GRAPHS),
    some_pairs("mstv.cu", GRAPHS),
    some_pairs("pd.cu", TILES),
    some_pairs("pt.cu", TILES),
    some_pairs("qs.cu", KEYS),
    some_pairs("qt.cu", POINTS),
    some_pairs("sc.cu", TILES),
    some_pairs("sp.cu", FORMULAS),
    some_pairs("tc.cu", GRAPHS),
    some_pairs("unq.cu", TILES),
    some_pairs("upd.cu", TILES),
];

const fn all_pairs(file: &'static str, inputs: &'static [&'static str]) -> Benchmark {
    Benchmark {
        file,
        inputs,
        all_pairs: true,
    }
}

const fn some_pairs(file: &'static str, inputs: &'static [&'static str]) -> Benchmark {
    Benchmark {
        file,
        inputs,
        all_pairs: false,
    }
}

#[test]
fn the_corpus_agrees_with_its_references() {
    let corpus = workspace::root().join("tests/corpus");
    for (file, _) in files_of(&corpus).iter().filter(|(file, _)| file.ends_with(".cu")) {
        assert!(
            CORPUS.iter().any(|benchmark| benchmark.file == file),
            "{file} is not run"
        );
    }
    let numbered: Vec<_> = CORPUS.iter().enumerate().collect();
    let failures = in_parallel(&numbered, |(number, benchmark)| {
        let file = benchmark.file;
        let program = Program::load(&corpus, &[file], &[""; 0]).expect("the program");
        let variants = variants(&program, |pair| benchmark.all_pairs || pair % 8 == number % 8);
        let names: Vec<&str> = variants.iter().map(|(name, _)| name.as_str()).collect();
        // A launch into the tail stream can become a loop, and nothing else.
        let least = if file == "jacobi.cu" { 2 } else { 5 };
        assert!(names.len() >= least, "{file}: only {names:?}");
        let (variants, mut failures) = build(variants);
        let seeds = if benchmark.all_pairs { 1..4 } else { 1..3 };
        for input in benchmark.inputs {
            let threads: &[&str] = if benchmark.inputs == TILES {
                &[]
            } else {
                &["--threads", "64"]
            };
            let arguments: Vec<&str> = input
                .split(' ')
                .chain(threads.iter().copied())
                .chain(["--repeat", "1"])
                .collect();
            failures += &run(&variants, seeds.clone(), &arguments, |outcome, _| {
                let passed = outcome.is_success() && outcome.stdout.contains("\"verdict\":\"pass\"");
                (!passed).then(|| "it does not pass".to_owned())
            });
        }
        failures
    });
    let failures = failures.concat();
    assert!(failures.is_empty(), "{failures}");
}

/// The test of the runtime header that is made for GPUs, with fewer threads (`--small`). Left out are, besides what its
/// comment says, launches of more than 2^31 blocks and those that CUDA refuses: `--quick` leaves them out as well.
#[test]
fn the_runtime_header_passes_its_test() {
    let root = workspace::root();
    let directories = [root.join("codeactions/runtime")];
    let program = Program::load(&root.join("tests/gpu"), &["runtime_test.cu"], &directories).expect("the program");
    let executable = Emulator::get()
        .build(&program)
        .unwrap_or_else(|failure| panic!("{failure}"));
    let groups = [
        "control_flow",
        "host",
        "from_host",
        "shapes",
        "kernels",
        "overflow",
        "counts",
        "starved",
        "shared",
        "threshold",
        "serial",
        "together",
        "recursion",
        "loop",
    ];
    let failures = in_parallel(&groups, |group| {
        let variants = [(group.to_string(), executable.clone())];
        run(&variants, 1..2, &["--small", group], |outcome, _| {
            let passed = outcome.is_success() && outcome.stdout.contains(" passed, 0 failed");
            (!passed).then(|| "it does not pass".to_owned())
        })
    });
    let failures = failures.concat();
    assert!(failures.is_empty(), "{failures}");
}

/// The same for chains of launches.
#[test]
fn the_chains_pass_their_test() {
    passes("chain_test.cu");
}

/// And for what the host launches behind a parent.
#[test]
fn what_runs_behind_a_parent_passes_its_test() {
    let executable = passes("stream_test.cu");
    // What would lose a launch is stopped.
    for how in ["block", "launches", "memory"] {
        let options = RunOptions {
            arguments: vec!["--stop".to_owned(), how.to_owned()],
            ..RunOptions::default()
        };
        let outcome = executable.run(&options).expect("it runs");
        assert!(
            outcome.events.iter().any(|event| event.kind == Kind::Trap),
            "{how}: {outcome:?}"
        );
    }
}

/// And for atomic operations that a warp does together.
#[test]
fn atomics_together_pass_their_test() {
    passes("together_test.cu");
}

/// Builds a test of the runtime header that is made for GPUs, and runs it with a few seeds.
fn passes(file: &str) -> Executable {
    let root = workspace::root();
    let directories = [root.join("codeactions/runtime")];
    let program = Program::load(&root.join("tests/gpu"), &[file], &directories).expect("the program");
    let executable = Emulator::get()
        .build(&program)
        .unwrap_or_else(|failure| panic!("{failure}"));
    let variants = [(file.to_owned(), executable.clone())];
    let failures = run(&variants, 1..4, &["--small"], |outcome, _| {
        let passed = outcome.is_success() && outcome.stdout.contains(" passed, 0 failed");
        (!passed).then(|| "it does not pass".to_owned())
    });
    assert!(failures.is_empty(), "{failures}");
    executable
}

/// Programs of `tests/fixtures/rewrites` that can't be run, and why.
const NOT_RUN: [(&str, &str); 18] = [
    ("functor_handed_on.cu", STRUCTURES),
    ("tail_driver.cu", STRUCTURES),
    ("tail_driver_branches.cu", STRUCTURES),
    ("tail_driver_in_loop.cu", STRUCTURES),
    ("tail_driver_leaf_launches.cu", STRUCTURES),
    ("tail_driver_not_last.cu", STRUCTURES),
    ("tail_driver_partner.cu", STRUCTURES),
    ("tail_driver_shared.cu", STRUCTURES),
    ("tail_driver_sizes.cu", STRUCTURES),
    ("tail_driver_stream.cu", STRUCTURES),
    ("tail_driver_two_tails.cu", STRUCTURES),
    ("unnamed_struct.cu", STRUCTURES),
    (
        "config_with_effects.cu",
        "the order of threads decides how many blocks each of them launches",
    ),
    ("early_return.cu", "children add to what the parent writes"),
    ("grid_3d.cu", "several blocks launch children for the same data"),
    (
        "host_launch_api.cu",
        "it passes a kernel to cudaLaunchKernel as a void pointer: the parameters can't be known",
    ),
    (
        "occupancy.cu",
        "what it computes depends on the number of multiprocessors",
    ),
    ("unknown_child.cu", "it has no child"),
];

/// Programs that leave nothing behind: the recursive one has no data, the other one would need a function in device memory.
const NO_RESULT: [&str; 2] = ["array_parameter.cu", "recursive.cu"];

/// Why a program isn't run: drivers run in `tests/fixtures/mutants/driver.cu` and `tests/reach`, functors in `tests/reach`.
const STRUCTURES: &str = "its pointers lead to structures, and what it would be given is none";

/// What g++ says of a kernel template to which the host passes an arena and whose template arguments are deduced: the emulator copies such
/// arguments, where CUDA converts them.
const DEDUCED: [&str; 2] = ["emu::Launch::deduced", "use of deleted function ‘gridfuse::"];

/// Gives a program of the fixtures data to work on.
fn with_data(program: &Program) -> Program {
    // The arguments may hold calls, and these others.
    let call = r"\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)";
    let arguments =
        Regex::new(&format!(r"(?:>> ?>|gridfuse::launch_\w+<[\w:]+(?:<[^>]*>)?>)\s*{call}")).expect("an expression");
    let pointers = Regex::new(r"(\*\s*\w+) = nullptr").expect("an expression");
    let data = fs::read_to_string(workspace::root().join("tests/fixtures/emulator/data.hpp")).expect("data.hpp");
    let mut changed = program.clone();
    for (path, text) in program.files() {
        let with_memory = arguments.replace_all(text, |found: &regex::Captures<'_>| {
            found[0].replace("nullptr", "data::Memory()")
        });
        let with_rows = with_memory.replace(
            "int *out = nullptr, *row = nullptr",
            "int *out = data::Memory(), *row = data::rows<int>()",
        );
        let of_runtime = path.file_name().is_some_and(|name| name == "gridfuse.cuh");
        let with_pointers = if of_runtime {
            with_rows.into()
        } else {
            pointers.replace_all(&with_rows, "$1 = data::Memory()")
        };
        let result = with_pointers.replace("return cudaDeviceSynchronize();", "return data::finish();");
        if *result != **text {
            // Line numbers stay as they are.
            changed = changed
                .with_file(path, format!("#include \"data.hpp\"\n#line 1\n{result}"))
                .with_file(path.with_file_name("data.hpp"), data.as_str());
        }
    }
    changed
}

/// The programs of the fixtures, with the names of their directories or files.
fn fixtures() -> Vec<(String, Program)> {
    let root = workspace::root().join("tests/fixtures/rewrites");
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for (path, _) in files_of(&root).iter().filter(|(path, _)| path.ends_with(".cu")) {
        match path.split_once('/') {
            None => found.push((path.clone(), vec![path.clone()])),
            Some((directory, _)) => match found.iter_mut().find(|(name, _)| name == directory) {
                Some((_, units)) => units.push(path.clone()),
                None => found.push((directory.to_owned(), vec![path.clone()])),
            },
        }
    }
    let load = |name: &str, units: &[String]| {
        let include = Path::new(name).join("include");
        Program::load(&root, units, &[include]).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    found
        .iter()
        .map(|(name, units)| (name.clone(), load(name, units)))
        .collect()
}

#[test]
fn rewritten_fixtures_print_what_the_originals_print() {
    let fixtures = fixtures();
    for (name, _) in NOT_RUN {
        assert!(
            fixtures.iter().any(|(fixture, _)| fixture == name),
            "there is no {name}"
        );
    }
    let jobs: Vec<_> = fixtures
        .into_iter()
        .filter(|(name, _)| !NOT_RUN.iter().any(|(left_out, _)| left_out == name))
        .collect();
    assert!(jobs.len() > 60);
    let asked_for = jobs.into_iter().filter(|(name, _)| is_asked_for(name));
    let numbered: Vec<_> = asked_for.enumerate().collect();
    let failures = in_parallel(&numbered, |(number, (name, program))| {
        // A tenth of the pairs for each program, and other ones for the next program: it is compiling that takes time.
        let variants: Vec<_> = variants(program, |pair| pair % 10 == number % 10)
            .iter()
            .map(|(what, program)| (format!("{name}: {what}"), with_data(program)))
            .collect();
        let (variants, mut failures) = build(variants);
        let silent = NO_RESULT.contains(&name.as_str());
        failures += &run(&variants, 1..4, &[], |outcome, original| {
            if !outcome.is_success() {
                return Some("a fault".to_owned());
            }
            if !silent && (!outcome.stdout.contains("bytes changed") || outcome.stdout.contains(" 0 bytes changed")) {
                return Some("no result".to_owned());
            }
            let same = outcome.stdout == original.stdout;
            (!same).then(|| format!("not what the original printed:\n{}", original.stdout))
        });
        failures
    });
    let failures = failures.concat();
    assert!(failures.is_empty(), "{failures}");
}
