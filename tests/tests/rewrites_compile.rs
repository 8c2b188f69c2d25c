//! What the rewrites make compiles: the examples of their documentation, the corpus, and small nasty programs.
//!
//! The programs of `tests/fixtures/rewrites` begin with a comment that says what `gridfuse explain` has to say about their
//! launch: `// expect: aggregate-block=assumes threshold=refused(part of the reason) fire-and-forget=eligible`. For other
//! rewrites it stands in a file of its own, `coarsen.expect`, with a line for each program: `loop.cu: eligible`, or
//! `*: eligible` for the programs without a line. A sequence
//! of rewrites is expected to work where each of them does, but for the programs in `coarsen,aggregate-grid.expect`.
//! What is expected of `aggregate-block` is expected of the other granularities, too, unless they are named. A file
//! with several launches by kernels has `// <- here` on the line of the one that is meant. A directory is one program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gridfuse_codeactions::api::rewrite::Family;
use gridfuse_codeactions::handlers::launch_rewrite;
use gridfuse_codeactions::runtime::{HEADER, HEADER_NAME};
use gridfuse_tests::cli::{Directory, copy, directory, files_of, gridfuse, in_parallel};
use gridfuse_tests::fixture::{before_after, is_asked_for};
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::{expect, workspace};
use serde_json::Value;

/// A warning in what a rewrite made is a mistake as well. But for one: the child stays when nothing launches it any more, and
/// an unused kernel that no other file can launch is warned of.
const STRICT: [&str; 6] = ["-Xcicc", "-O0", "-Werror", "all-warnings", "-diag-suppress", "177"];

const HERE: &str = "// <- here";

/// What is there for programs that don't compile.
const MENDS: [&str; 1] = ["replace-device-sync"];

/// Sequences of rewrites that are applied one after the other, beside each rewrite alone.
const SEQUENCES: [&str; 2] = ["threshold,aggregate-grid", "coarsen,aggregate-grid"];

/// Fixtures that one rewrite of a sequence is offered for, and not the next one: calls of a functor are followed in the kernel that gets it, not
/// yet in the function to which a rewrite has moved its body.
const NOT_IN_SEQUENCE: [&str; 2] = ["functor.cu", "functor_handed_on.cu"];

/// The program of the corpus that every rewrite is applied to; the others are compiled after one of [`SEQUENCES`]. What else is offered
/// for them runs in the emulator.
const CORPUS_WITH_ALL: &str = "bfs.cu";

/// Programs of the corpus with a kernel that launches itself alone, which is promoted.
const CORPUS_PROMOTED: [&str; 6] = ["los.cu", "pd.cu", "pt.cu", "sc.cu", "unq.cu", "upd.cu"];

/// Launches of the corpus that may be refused: programs, and how the launches begin.
const CORPUS_REFUSED: [(&str, &str); 2] = [("qs.cu", "sort_part<<<"), ("qt.cu", "build<<<")];

fn rewrites() -> Vec<Value> {
    let report = gridfuse(workspace::root(), &["list", "--format", "json"])
        .expect_code(0)
        .json();
    report["rewrites"].as_array().expect("rewrites").clone()
}

fn id(rewrite: &Value) -> String {
    rewrite["id"].as_str().expect("an id").to_owned()
}

/// The launches by kernels and device functions of a file.
fn device_launches(directory: &Path, file: &str) -> Vec<Value> {
    let report = gridfuse(directory, &["explain", file, "--format", "json"])
        .expect_code(0)
        .json();
    let launches = report["launches"].as_array().expect("launches");
    launches
        .iter()
        .filter(|launch| launch["parent"]["kind"] != "host")
        .cloned()
        .collect()
}

fn place(launch: &Value) -> String {
    let start = &launch["place"]["start"];
    format!("{}:{}", start["line"], start["column"])
}

fn header() -> Vec<u8> {
    HEADER.as_bytes().to_vec()
}

#[test]
fn examples_of_the_documentation() {
    let rewrites = rewrites();
    assert!(!rewrites.is_empty());
    let failures = in_parallel(&rewrites, |rewrite| {
        let id = id(rewrite);
        let example = before_after(rewrite["doc"].as_str().expect("a doc")).unwrap_or_else(|e| panic!("{id}: {e}"));
        let program = directory(&[("example.cu", example.before.as_bytes())]);
        if example.before.contains("gridfuse.cuh") {
            program.write("gridfuse.cuh", &header());
        }
        let mut failures = String::new();
        let before = Nvcc::get().check_compiles_with(&program.file("example.cu"), &STRICT);
        match before {
            Ok(()) if MENDS.contains(&id.as_str()) => {
                let _ = writeln!(failures, "{id}: Before compiles");
            }
            Err(failure) if !MENDS.contains(&id.as_str()) => {
                let _ = writeln!(failures, "{id}: Before: {failure}");
            }
            _ => {}
        }
        if rewrite["at"] == "place" {
            // Where it is applied, and that it gives After, is tested beside it.
            let after = directory(&[("example.cu", example.after.as_bytes()), ("gridfuse.cuh", &header())]);
            if let Err(failure) = Nvcc::get().check_compiles_with(&after.file("example.cu"), &STRICT) {
                let _ = writeln!(failures, "{id}: After: {failure}");
            }
            return failures;
        }
        let launches = device_launches(program.path(), "example.cu");
        let [launch] = launches.as_slice() else {
            panic!("{id}: Before has {} launches", launches.len())
        };
        let arguments = [
            "rewrite",
            "example.cu",
            "--at",
            &place(launch),
            "--apply",
            &id,
            "--in-place",
        ];
        gridfuse(program.path(), &arguments).expect_code(0);
        assert_eq!(program.read("example.cu"), example.after, "{id}: After");
        if let Err(failure) = Nvcc::get().check_compiles_with(&program.file("example.cu"), &STRICT) {
            let _ = writeln!(failures, "{id}: After: {failure}");
        }
        failures
    });
    assert_eq!(failures.concat(), "");
}

#[test]
fn the_corpus_links() {
    // By themselves: the emulator has functions of its own with the names of CUDA's.
    let corpus = Directory::copy_of(&workspace::root().join("tests/corpus"));
    let mut all: Vec<String> = rewrites().iter().filter(|r| r["at"] == "launch").map(id).collect();
    // The one to which all others are applied doesn't allocate on the device, has no kernel with several blocks that launches itself, and no
    // atomic operation on one place.
    const OF_OTHERS: [Family; 4] = [Family::Memory, Family::Recursion, Family::Iteration, Family::Atomics];
    let family = |id: &String| launch_rewrite(id).expect("a rewrite").family;
    all.retain(|id| !OF_OTHERS.contains(&family(id)));
    let (promotions, mut all): (Vec<String>, Vec<String>) =
        all.into_iter().partition(|id| family(id) == Family::Promotion);
    all.extend(SEQUENCES.map(str::to_owned));
    let mut jobs = Vec::new();
    let mut number = 0;
    for (file, _) in files_of(corpus.path()).iter().filter(|(name, _)| name.ends_with(".cu")) {
        let launches = device_launches(corpus.path(), file);
        assert!(!launches.is_empty(), "{file} has no launch by a kernel");
        let ids = match file.as_str() {
            CORPUS_WITH_ALL => all.clone(),
            name if CORPUS_PROMOTED.contains(&name) => promotions.clone(),
            "jacobi.cu" => vec!["persistent-loop".to_owned()],
            "mstf.cu" => vec!["aggregate-atomics,aggregate-grid-stream".to_owned()],
            _ => SEQUENCES.map(str::to_owned).to_vec(),
        };
        for launch in launches {
            // One of the others for each launch, and the next for the next one: it is compiling that takes time.
            let every = if file == CORPUS_WITH_ALL { 1 } else { ids.len() };
            let some = ids.iter().skip(number % every).step_by(every);
            jobs.extend(some.map(|ids| (file.clone(), launch.clone(), ids.clone())));
            number += 1;
        }
    }
    let failures = in_parallel(&jobs, |(file, launch, ids)| {
        let program = Directory::copy_of(corpus.path());
        let at = place(launch);
        let run = gridfuse(
            program.path(),
            &["rewrite", file, "--at", &at, "--apply", ids, "--in-place"],
        );
        let refused =
            |rewrite: &&Value| ids.split(',').any(|id| rewrite["rewrite"] == id) && rewrite["verdict"] == "ineligible";
        let verdicts = launch["rewrites"].as_array().expect("verdicts");
        if let Some(refused) = verdicts.iter().find(refused) {
            assert_eq!(run.code, Some(1), "{}", run.story());
            let text = launch["text"].as_str().expect("its text");
            if CORPUS_REFUSED
                .iter()
                .any(|(name, start)| name == file && text.starts_with(start))
            {
                return String::new();
            }
            return format!("{file}:{at}: {ids} is refused: {}\n", refused["reasons"]);
        }
        if run.code != Some(0) {
            return format!("{}\n", run.story());
        }
        match Nvcc::get().compile(&[&program.file(file)], None, &["-Xptxas", "-O0", "-Xcicc", "-O0"]) {
            Ok(()) => String::new(),
            Err(failure) => format!("{file}:{at}: {ids}: {failure}\n"),
        }
    });
    assert_eq!(failures.concat(), "");
}

/// A program of `tests/fixtures/rewrites`.
#[derive(Debug)]
struct Program {
    name: String,
    /// Its directory.
    root: PathBuf,
    /// The file with the launch, relative to the directory.
    file: String,
    single: bool,
    expected: Vec<(String, Expected)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Expected {
    Eligible,
    /// Some assumption contains the text.
    Assumes(String),
    /// Some reason contains the text.
    Refused(String),
}

/// Reads `id=verdict id=verdict(part of a reason)`.
fn expectations(mut text: &str) -> Result<Vec<(String, Expected)>, String> {
    let mut found = Vec::new();
    loop {
        text = text.trim_start();
        let Some((id, rest)) = text.split_once('=') else {
            return if text.is_empty() {
                Ok(found)
            } else {
                Err(format!("expected `id=verdict`, found `{text}`"))
            };
        };
        let end = rest.find(['(', ' ']).unwrap_or(rest.len());
        let (verdict, rest) = rest.split_at(end);
        let (reason, rest) = match rest.strip_prefix('(') {
            Some(rest) => rest.split_once(')').ok_or("a reason without `)`")?,
            None => ("", rest),
        };
        let expected = match verdict {
            "eligible" => Expected::Eligible,
            "assumes" => Expected::Assumes(reason.to_owned()),
            "refused" if !reason.is_empty() => Expected::Refused(reason.to_owned()),
            _ => return Err(format!("`{verdict}` is not eligible, assumes or refused(reason)")),
        };
        found.push((id.to_owned(), expected));
        text = rest;
    }
}

/// In a file `ID.expect`: the programs that no other line names.
const EVERY_OTHER: &str = "*";

/// What the files `ID.expect` say: program, rewrite, verdict.
fn tables(fixtures: &Path) -> Vec<(String, String, Expected)> {
    let mut found = Vec::new();
    for (path, bytes) in files_of(fixtures) {
        let Some(id) = path.strip_suffix(".expect") else {
            continue;
        };
        let text = String::from_utf8(bytes).expect("UTF-8");
        for line in text.lines() {
            let (program, verdict) = line.split_once(": ").unwrap_or_else(|| panic!("{path}: {line}"));
            let verdicts = expectations(&format!("{id}={verdict}")).unwrap_or_else(|error| panic!("{path}: {error}"));
            let [(id, expected)] = verdicts.as_slice() else {
                panic!("{path}: {line}")
            };
            found.push((program.to_owned(), id.clone(), expected.clone()));
        }
    }
    found
}

fn programs() -> Vec<Program> {
    let fixtures = workspace::root().join("tests/fixtures/rewrites");
    let tables = tables(&fixtures);
    let mut found = Vec::new();
    for (path, bytes) in files_of(&fixtures) {
        let text = String::from_utf8(bytes).expect("UTF-8");
        let Some(expected) = text.lines().next().and_then(|line| line.strip_prefix("// expect: ")) else {
            continue;
        };
        let mut expected = expectations(expected).unwrap_or_else(|error| panic!("{path}: {error}"));
        let (name, root, file) = match path.split_once('/') {
            Some((directory, file)) => (directory.to_owned(), fixtures.join(directory), file.to_owned()),
            None => (path.clone(), fixtures.clone(), path.clone()),
        };
        let single = !path.contains('/');
        let of_tables = tables.iter().filter(|(program, ..)| *program == name);
        let others = tables.iter().filter(|(program, id, _)| {
            program == EVERY_OTHER && !tables.iter().any(|(program, named, _)| named == id && *program == name)
        });
        expected.extend(
            of_tables
                .chain(others)
                .map(|(_, id, expected)| (id.clone(), expected.clone())),
        );
        found.push(Program {
            name,
            root,
            file,
            single,
            expected,
        });
    }
    for (program, id, _) in &tables {
        assert!(
            program == EVERY_OTHER || found.iter().any(|p| p.name == *program),
            "{id}.expect: there is no {program}"
        );
    }
    found
}

impl Program {
    fn copy(&self) -> Directory {
        if self.single {
            let text = fs::read(self.root.join(&self.file)).expect("the program");
            return directory(&[(&self.file, &text)]);
        }
        let copied = Directory::new();
        copy(&self.root, copied.path());
        copied
    }

    /// The launch that is meant.
    fn launch(&self, directory: &Directory) -> Result<Value, String> {
        let mut launches = device_launches(directory.path(), &self.file);
        let text = directory.read(&self.file);
        if let Some(line) = text.lines().position(|line| line.contains(HERE)) {
            launches.retain(|launch| launch["place"]["start"]["line"] == line + 1);
        }
        match launches.as_slice() {
            [launch] => Ok(launch.clone()),
            _ => Err(format!("{}: {} launches are meant\n", self.name, launches.len())),
        }
    }

    /// What is expected of a rewrite.
    fn expected_of(&self, id: &str) -> Option<&Expected> {
        let named = |id: &str| self.expected.iter().find(|(expected, _)| expected == id);
        let found = named(id).or_else(|| named("aggregate-block").filter(|_| id.starts_with("aggregate-")));
        found.map(|(_, expected)| expected)
    }

    /// The rewrites of which nothing is expected, each with the line of `ID.expect` that would expect what `explain` says.
    fn unexpected(&self, launch: &Value) -> Vec<(String, String)> {
        let verdicts = launch["rewrites"].as_array().expect("verdicts").iter();
        let unexpected =
            verdicts.filter(|verdict| self.expected_of(verdict["rewrite"].as_str().expect("an id")).is_none());
        unexpected
            .map(|verdict| {
                let reason = verdict["reasons"][0]["text"].as_str().unwrap_or_default();
                // A part of it is enough, and it ends in front of a parenthesis.
                let part = reason.split(')').next().unwrap_or_default();
                let what = match verdict["verdict"].as_str().expect("a verdict") {
                    "ineligible" => format!("refused({part})"),
                    "assumes" => format!("assumes({part})"),
                    other => other.to_owned(),
                };
                let id = verdict["rewrite"].as_str().expect("an id").to_owned();
                (id, format!("{}: {what}", self.name))
            })
            .collect()
    }

    /// What `explain` says that isn't expected.
    fn surprises(&self, launch: &Value) -> String {
        let mut surprises = String::new();
        let verdicts = launch["rewrites"].as_array().expect("verdicts");
        for verdict in verdicts {
            let id = verdict["rewrite"].as_str().expect("an id");
            let reasons: Vec<&str> = verdict["reasons"]
                .as_array()
                .expect("reasons")
                .iter()
                .filter_map(|r| r["text"].as_str())
                .collect();
            let found = verdict["verdict"].as_str().expect("a verdict");
            let expected = self.expected_of(id);
            let fits = match expected {
                Some(Expected::Eligible) => found == "eligible",
                Some(Expected::Assumes(part)) => {
                    found == "assumes" && reasons.iter().any(|reason| reason.contains(part))
                }
                Some(Expected::Refused(part)) => {
                    found == "ineligible" && reasons.iter().any(|reason| reason.contains(part))
                }
                None => false,
            };
            if !fits {
                let expected = expected.map_or_else(
                    || "and every_verdict_is_expected says what to write".to_owned(),
                    |expected| format!("expected {expected:?}"),
                );
                let _ = writeln!(surprises, "{}: {id} is {found} {reasons:#?}, {expected}", self.name);
            }
        }
        for (id, _) in self.expected.iter().filter(|(id, _)| !id.contains(',')) {
            if !verdicts.iter().any(|verdict| verdict["rewrite"] == id.as_str()) {
                let _ = writeln!(surprises, "{}: there is no rewrite {id}", self.name);
            }
        }
        surprises
    }
}

/// One way to rewrite a program, done.
struct Rewritten {
    what: String,
    directory: Directory,
}

/// Checks the verdicts, and applies what is offered.
fn rewrite(program: &Program) -> (Vec<Rewritten>, String) {
    let original = program.copy();
    let launch = match program.launch(&original) {
        Ok(launch) => launch,
        Err(message) => return (Vec::new(), message),
    };
    let mut failures = program.surprises(&launch);
    let verdicts = launch["rewrites"].as_array().expect("verdicts");
    let offered = |id: &str| {
        verdicts
            .iter()
            .any(|v| v["rewrite"] == id && v["verdict"] != "ineligible")
    };
    let mut ids: Vec<String> = verdicts
        .iter()
        .map(|v| v["rewrite"].as_str().expect("an id").to_owned())
        .collect();
    if !NOT_IN_SEQUENCE.contains(&program.name.as_str()) {
        ids.extend(SEQUENCES.map(str::to_owned));
    }
    let at = place(&launch);
    let mut done = vec![Rewritten {
        what: program.name.clone(),
        directory: original,
    }];
    for ids in ids {
        let directory = program.copy();
        let run = gridfuse(
            directory.path(),
            &["rewrite", &program.file, "--at", &at, "--apply", &ids, "--in-place"],
        );
        let refused = program
            .expected
            .iter()
            .any(|(expected, _)| ids.contains(',') && *expected == ids);
        let wanted = i32::from(refused || !ids.split(',').all(offered));
        if run.code != Some(wanted) {
            let _ = writeln!(failures, "{}: {}", program.name, run.story());
        } else if wanted == 1 {
            let untouched = files_of(directory.path()) == files_of(done[0].directory.path());
            assert!(untouched, "{}: {ids} is refused, but files changed", program.name);
        } else {
            let (before, after) = (done[0].directory.read(&program.file), directory.read(&program.file));
            failures.push_str(
                &odd_text(&before, &after)
                    .map(|odd| format!("{} {ids}: {odd}\n", program.name))
                    .unwrap_or_default(),
            );
            if let Some(same) = same_but_for_granularity(&ids)
                && plain(&after, &ids) == same_text(&done, &program.file, same)
            {
                continue;
            }
            let what = format!("{} after {ids}", program.name);
            done.push(Rewritten { what, directory });
        }
    }
    (done, failures)
}

/// The rewrite that makes the same but for the name of a type and a comment: then one of the two is compiled.
fn same_but_for_granularity(id: &str) -> Option<&'static str> {
    match id {
        "aggregate-multiblock" => Some("aggregate-grid"),
        "aggregate-warp" => Some("aggregate-block"),
        _ => None,
    }
}

/// A text without the names of granularities and without white space.
fn plain(text: &str, id: &str) -> String {
    let (ty, noun) = match id {
        "aggregate-multiblock" => ("gridfuse::PerMultiBlock<8>", "within a group of blocks of"),
        "aggregate-grid" => ("gridfuse::PerGrid", "within a grid of"),
        "aggregate-warp" => ("gridfuse::PerWarp", "within a warp of"),
        _ => ("gridfuse::PerBlock", "within a block of"),
    };
    text.replace(ty, "").replace(noun, "").split_whitespace().collect()
}

/// What this rewrite made of a file, plain.
fn same_text(done: &[Rewritten], file: &str, id: &str) -> String {
    let other = done.iter().find(|d| d.what.ends_with(&format!("after {id}")));
    other.map_or_else(String::new, |d| plain(&d.directory.read(file), id))
}

/// What is wrong with the looks of a rewritten text.
fn odd_text(before: &str, after: &str) -> Option<String> {
    let bare = |text: &str| text.matches('\n').count() - text.matches("\r\n").count();
    if before.contains("\r\n") && bare(after) > 0 {
        return Some("line ends of both kinds".to_owned());
    }
    if !before.contains('\r') && after.contains('\r') {
        return Some("carriage returns that weren't there".to_owned());
    }
    let trailing = |text: &str| text.lines().filter(|line| line.trim_end() != *line).count();
    if trailing(after) > trailing(before) {
        return Some("blanks at the end of a line".to_owned());
    }
    if after.contains("gridfuse::") && !after.contains("#include \"gridfuse.cuh\"") {
        return Some("no include of gridfuse.cuh".to_owned());
    }
    (before.contains("threadIdx") && !after.contains("threadIdx")).then(|| "lost code".to_owned())
}

/// Compiles the units of a program, and links them when it has several.
fn compile(rewritten: &Rewritten) -> String {
    let root = rewritten.directory.path();
    let units: Vec<PathBuf> = files_of(root)
        .iter()
        .filter(|(name, _)| name.ends_with(".cu"))
        .map(|(name, _)| root.join(name))
        .collect();
    let result = match units.as_slice() {
        [unit] => Nvcc::get().check_compiles_with(unit, &STRICT),
        units => {
            let units: Vec<&Path> = units.iter().map(PathBuf::as_path).collect();
            Nvcc::get().compile(&units, None, &[&STRICT[..], &["-Xptxas", "-O0"]].concat())
        }
    };
    result.map_or_else(|failure| format!("{}: {failure}\n", rewritten.what), |()| String::new())
}

/// Compiles programs of one file together, each in a namespace of its own: the headers of CUDA take most of the time.
fn compile_together(programs: &[&Rewritten]) -> bool {
    let together = Directory::new();
    let mut unit = String::from("#include <cstdio>\n");
    for (index, program) in programs.iter().enumerate() {
        for (name, bytes) in files_of(program.directory.path()) {
            if name.ends_with(".cu") {
                // Its own headers are part of it; those of the system are everybody's.
                let text = String::from_utf8_lossy(&bytes);
                let headers = text.lines().filter(|line| line.starts_with("#include <"));
                headers.for_each(|line| unit.insert_str(0, &format!("{line}\n")));
                together.write(&format!("p{index}.cu"), &bytes);
                let _ = writeln!(unit, "namespace p{index} {{\n#include \"p{index}.cu\"\n}}");
            } else if !together.file(&name).exists() {
                // First of all: what a program includes must not end up in its namespace.
                unit.insert_str(0, &format!("#include \"{name}\"\n"));
                // Each program has the parts that it needs: together they need more than any of them.
                together.write(&name, if name == HEADER_NAME { HEADER.as_bytes() } else { &bytes });
            }
        }
    }
    let unit = together.write("unit.cu", unit.as_bytes());
    let result = Nvcc::get().check_compiles_with(&unit, &STRICT);
    if let Err(failure) = &result {
        // Seen only when a test fails: then, or when this takes long, it tells what doesn't go together.
        println!("not together: {failure}");
    }
    result.is_ok()
}

/// Of every rewrite something is expected for every program, of a new one, too. [`nasty_programs`] says the same, after minutes of compiling.
#[test]
fn every_verdict_is_expected() {
    let fixtures = workspace::root().join("tests/fixtures/rewrites");
    let programs = programs();
    let found = in_parallel(&programs, |program| {
        program
            .launch(&program.copy())
            .map(|launch| program.unexpected(&launch))
    });
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, line) in found
        .into_iter()
        .flat_map(|found| found.unwrap_or_else(|why| panic!("{why}")))
    {
        missing.entry(id).or_default().push(line);
    }
    if expect::updates() {
        for (id, lines) in &missing {
            let path = fixtures.join(format!("{id}.expect"));
            let before = fs::read_to_string(&path).unwrap_or_default();
            fs::write(&path, format!("{before}{}\n", lines.join("\n"))).expect("the expectations");
        }
        return;
    }
    let missing: Vec<String> = missing
        .iter()
        .map(|(id, lines)| format!("{id}.expect lacks {} lines: `{}` is one", lines.len(), lines[0]))
        .collect();
    assert!(
        missing.is_empty(),
        r#"in tests/fixtures/rewrites {missing:#?}
run: UPDATE_EXPECT=1 cargo test -p gridfuse-tests --test rewrites_compile every_verdict_is_expected"#
    );
}

#[test]
fn nasty_programs() {
    let mut programs = programs();
    assert!(programs.len() >= 15);
    programs.retain(|program| is_asked_for(&program.name));
    let results = in_parallel(&programs, rewrite);
    let mut failures: String = results.iter().map(|(_, failures)| failures.as_str()).collect();
    let (alone, together): (Vec<_>, Vec<_>) = programs
        .iter()
        .zip(&results)
        // A namespace can't be put around these.
        .partition(|(program, _)| {
            !program.single || ["anonymous_namespace.cu", "extern_c.cu"].contains(&program.name.as_str())
        });
    // The original and a third of the others, the next ones for the next program: all of them run in the emulator.
    let some = alone.iter().enumerate().flat_map(|(program, (_, (done, _)))| {
        let numbered = done.iter().enumerate();
        numbered.filter(move |(number, _)| *number == 0 || number % 3 == program % 3)
    });
    let alone: Vec<&Rewritten> = some.map(|(_, rewritten)| rewritten).collect();
    let together: Vec<&Rewritten> = together.iter().flat_map(|(_, (done, _))| done).collect();
    let batches: Vec<&[&Rewritten]> = together.chunks(60).collect();
    failures.extend(in_parallel(&batches, |batch| {
        // What counts is each by itself, which also tells which one it is.
        if compile_together(batch) {
            String::new()
        } else {
            batch.iter().map(|program| compile(program)).collect()
        }
    }));
    failures.extend(in_parallel(&alone, |program| compile(program)));
    assert!(failures.is_empty(), "{failures}");
}

/// Rewriting a second launch builds on what the first one made.
#[test]
fn one_rewrite_after_the_other() {
    let fixtures = workspace::root().join("tests/fixtures/rewrites");
    let jobs = [
        (
            "two_launches.cu",
            "threshold",
            ["child<<<(count + 255)", "child<<<(count + 127)"],
        ),
        ("two_children.cu", "threshold", ["child<<<", "other<<<"]),
        ("two_parents.cu", "aggregate-block", ["child<<<(count", "child<<<1"]),
        ("two_parents.cu", "threshold", ["child<<<(count", "child<<<1"]),
    ];
    let failures = in_parallel(&jobs, |(name, id, texts)| {
        let program = directory(&[(name, &fs::read(fixtures.join(name)).expect("the program"))]);
        let mut failures = String::new();
        for text in texts {
            let launches = device_launches(program.path(), name);
            let launch = launches
                .iter()
                .find(|l| l["text"].as_str().is_some_and(|t| t.starts_with(text)));
            let Some(launch) = launch else {
                panic!("{name}: no launch {text}")
            };
            let at = place(launch);
            let run = gridfuse(
                program.path(),
                &["rewrite", name, "--at", &at, "--apply", id, "--in-place"],
            );
            if run.code != Some(0) {
                let _ = writeln!(failures, "{}", run.story());
            }
        }
        if let Err(failure) = Nvcc::get().check_compiles_with(&program.file(name), &STRICT) {
            let _ = writeln!(failures, "{name} {id}: {failure}{}", program.read(name));
        }
        failures
    });
    assert_eq!(failures.concat(), "");
}

#[test]
fn expectations_are_read() {
    let read = expectations("a=eligible b=refused(x = y, z) c=assumes d=assumes(more)").unwrap();
    let owned = |text: &str| text.to_owned();
    let wanted = [
        (owned("a"), Expected::Eligible),
        (owned("b"), Expected::Refused(owned("x = y, z"))),
        (owned("c"), Expected::Assumes(String::new())),
        (owned("d"), Expected::Assumes(owned("more"))),
    ];
    assert_eq!(read, wanted);
    assert!(expectations("a=refused").is_err());
    assert!(expectations("a=maybe").is_err());
    assert!(expectations("a").is_err());
}
