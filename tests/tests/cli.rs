//! The command line from end to end: exit codes, streams, files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::Path;

use gridfuse_tests::cli::{Directory, directory, files_of, gridfuse, run_of};
use gridfuse_tests::workspace;
use serde_json::json;

const WARNING: &str = "\
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }
__global__ void parent(int* out, const int* row) {
    if (row[threadIdx.x] > 0) child<<<1, 32>>>(out);
}
int main() { parent<<<1, 32>>>(nullptr, nullptr); }
";
const ERROR: &str = "__global__ void k() { cudaDeviceSynchronize(); }\n";
const CLEAN: &str = "__global__ void k(int* a) { a[threadIdx.x] = 1; }\n";

fn files() -> Directory {
    directory(&[
        ("warning.cu", WARNING.as_bytes()),
        ("error.cu", ERROR.as_bytes()),
        ("clean.cu", CLEAN.as_bytes()),
        ("empty.cu", b""),
        (
            "broken.cu",
            b"__global__ void k( {{{ <<< }}} ) k<<<,>>>(((\n#if\n\"\n/*",
        ),
        ("sub/binary.cu", b"\x7fELF\0\0\xff"),
        ("text/readme.txt", b"child<<<1, 1>>>();"),
    ])
}

#[test]
fn exit_codes_of_check() {
    let files = files();
    let code = |arguments: &[&str]| gridfuse(files.path(), &[&["check"], arguments].concat()).code;
    assert_eq!(code(&["clean.cu"]), Some(0));
    assert_eq!(code(&["warning.cu"]), Some(0));
    assert_eq!(code(&["warning.cu", "--deny", "warning"]), Some(1));
    assert_eq!(code(&["clean.cu", "--deny", "info"]), Some(0));
    assert_eq!(code(&["error.cu"]), Some(1));
    assert_eq!(code(&["error.cu", "--deny", "error"]), Some(1));
    assert_eq!(code(&["empty.cu", "broken.cu"]), Some(0));
    assert_eq!(code(&["clean.cu", "error.cu"]), Some(1));
    assert_eq!(code(&["."]), Some(1));
    assert_eq!(code(&["missing.cu"]), Some(2));
    assert_eq!(code(&["clean.cu", "missing.cu"]), Some(2));
    assert_eq!(code(&["--deny", "everything", "clean.cu"]), Some(2));
    assert_eq!(code(&["--format", "xml", "clean.cu"]), Some(2));
    assert_eq!(code(&[]), Some(2));
    for help in ["--help", "--version"] {
        gridfuse(files.path(), &[help]).expect_code(0);
    }
    gridfuse(files.path(), &[]).expect_code(2);
}

#[test]
fn binary_files() {
    let files = files();
    let named = gridfuse(files.path(), &["check", "sub/binary.cu"]).expect_code(2);
    assert!(
        named.stderr.contains("cannot read sub/binary.cu: not UTF-8 text"),
        "{}",
        named.stderr
    );
    assert_eq!(named.stdout, "");
    let walked = gridfuse(files.path(), &["check", "sub"]).expect_code(0);
    assert!(walked.stderr.contains("skipped sub/binary.cu"), "{}", walked.stderr);
    let report = gridfuse(files.path(), &["check", "sub", "--format", "json"])
        .expect_code(0)
        .json();
    assert_eq!(report["skipped"][0]["path"], "sub/binary.cu");
    let none = gridfuse(files.path(), &["check", "text"]).expect_code(2);
    assert!(none.stdout.contains("0 files"), "{}", none.story());
}

#[test]
fn output_for_programs_and_people() {
    let files = files();
    let report = gridfuse(files.path(), &["check", ".", "--format", "json"])
        .expect_code(1)
        .json();
    assert_eq!(report["summary"]["errors"], 1);
    assert_eq!(report["summary"]["warnings"], 1);
    assert_eq!(report["summary"]["files"], 5);
    // Text goes to people: no colour when nobody looks.
    let text = gridfuse(files.path(), &["check", "."]).expect_code(1);
    assert!(
        !text.stdout.contains('\u{1b}') && !text.stderr.contains('\u{1b}'),
        "{}",
        text.story()
    );
    for part in [
        "warning[serialized-launches]",
        "error[device-sync]",
        "--> warning.cu:3:31",
        "^^^^",
    ] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
    for file in ["warning.cu", "clean.cu", "empty.cu", "broken.cu"] {
        let report = gridfuse(files.path(), &["explain", file, "--format", "json"])
            .expect_code(0)
            .json();
        assert!(report["launches"].is_array());
        gridfuse(files.path(), &["explain", file]).expect_code(0);
    }
    let list = gridfuse(files.path(), &["list", "--format", "json"])
        .expect_code(0)
        .json();
    assert!(!list["diagnostics"].as_array().unwrap().is_empty() && !list["rewrites"].as_array().unwrap().is_empty());
    // The command that a finding shows is one that works.
    let fix = &report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["id"] == "serialized-launches")
        .unwrap()["fixes"][0];
    let command: Vec<&str> = fix["command"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap())
        .collect();
    let diff = gridfuse(files.path(), &command[1..]).expect_code(0);
    assert!(
        diff.stdout.contains("--- ") && diff.stdout.contains("+++ ") && diff.stdout.contains("@@"),
        "{}",
        diff.story()
    );
    assert_eq!(files.read("warning.cu"), WARNING, "showing changes nothing");
}

#[test]
fn ways_to_rewrite() {
    let files = files();
    let rewrite = |more: &[&str]| gridfuse(files.path(), &[&["rewrite", "warning.cu", "--at", "3"], more].concat());
    let before = files_of(files.path());
    let output = rewrite(&["--apply", "aggregate-block", "--output", "out"]).expect_code(0);
    assert!(output.stderr.contains("assumes"), "{}", output.story());
    assert!(files.read("out/warning.cu").contains("gridfuse::Aggregator"));
    assert!(files.file("out/gridfuse.cuh").is_file());
    fs::remove_dir_all(files.file("out")).unwrap();
    assert!(files_of(files.path()) == before);
    // Options.
    let diff = rewrite(&["--apply", "threshold", "--set", "threshold=17"]).expect_code(0);
    assert!(diff.stdout.contains("= 17;"), "{}", diff.stdout);
    for wrong in ["threshold=0", "threshold=-1", "threshold=x", "other=1"] {
        let run = rewrite(&["--apply", "threshold", "--set", wrong]);
        assert!(
            matches!(run.code, Some(1 | 2)) && !run.stderr.is_empty(),
            "{}",
            run.story()
        );
    }
    rewrite(&["--apply", "no-such"]).expect_code(2);
    gridfuse(
        files.path(),
        &["rewrite", "warning.cu", "--at", "1", "--apply", "threshold"],
    )
    .expect_code(2);
    gridfuse(
        files.path(),
        &["rewrite", "missing.cu", "--at", "1", "--apply", "threshold"],
    )
    .expect_code(2);
    // Refused: nothing changes, the reason is told.
    let twice = rewrite(&["--apply", "fire-and-forget,fire-and-forget", "--in-place"]).expect_code(1);
    assert!(twice.stderr.contains("cannot be applied"), "{}", twice.story());
    assert!(files_of(files.path()) == before);
    // A header of that name that is somebody else's stays.
    files.write("gridfuse.cuh", b"// mine\n");
    let kept = rewrite(&["--apply", "aggregate-block", "--in-place"]).expect_code(1);
    assert!(
        kept.stderr.contains("another file named gridfuse.cuh"),
        "{}",
        kept.story()
    );
    assert_eq!(files.read("gridfuse.cuh"), "// mine\n");
    assert_eq!(files.read("warning.cu"), WARNING);
    fs::remove_file(files.file("gridfuse.cuh")).unwrap();
    rewrite(&["--apply", "threshold,aggregate-block", "--in-place"]).expect_code(0);
    let clean = gridfuse(files.path(), &["check", "warning.cu", "--deny", "info"]).expect_code(0);
    assert!(clean.stdout.contains(" 0 findings"), "{}", clean.story());
}

#[cfg(unix)]
#[test]
fn files_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let files = files();
    let mode = |mode| fs::set_permissions(files.path(), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o555);
    let writable = fs::write(files.file("probe"), "").is_ok();
    if !writable {
        let run = gridfuse(
            files.path(),
            &[
                "rewrite",
                "warning.cu",
                "--at",
                "3",
                "--apply",
                "aggregate-block",
                "--in-place",
            ],
        );
        assert_eq!(run.code, Some(2), "{}", run.story());
    }
    mode(0o755);
    assert_eq!(files.read("warning.cu"), WARNING);
}

#[test]
fn the_corpus_is_reported() {
    let report = gridfuse(workspace::root(), &["check", "tests/corpus", "--format", "json"])
        .expect_code(0)
        .json();
    assert_eq!(report["skipped"], json!([]));
    let findings = report["findings"].as_array().unwrap();
    for file in ["tests/corpus/bfs.cu", "tests/corpus/sssp.cu"] {
        let found = findings
            .iter()
            .find(|f| f["place"]["path"] == file && f["id"] == "serialized-launches");
        let fixes = found.unwrap_or_else(|| panic!("nothing in {file}"))["fixes"]
            .as_array()
            .unwrap();
        assert!(
            fixes.iter().any(|fix| fix["rewrite"] == "aggregate-block"),
            "{fixes:#?}"
        );
    }
}

#[test]
fn paths_of_all_kinds() {
    let files = directory(&[("a b/ü (1).cu", WARNING.as_bytes())]);
    let run = gridfuse(files.path(), &["check", "a b/ü (1).cu", "--deny", "warning"]).expect_code(1);
    assert!(run.stdout.contains("--> a b/ü (1).cu:3:31"), "{}", run.stdout);
    let absolute = files.file("a b/ü (1).cu");
    let elsewhere = Directory::new();
    let run = gridfuse(elsewhere.path(), &["check", &absolute.display().to_string()]).expect_code(0);
    assert!(run.stdout.contains(&absolute.display().to_string()), "{}", run.stdout);
    let run = gridfuse(&files.file("a b"), &["explain", "../a b/./ü (1).cu:3"]).expect_code(0);
    assert!(run.stdout.contains("child<<<1, 32>>>"), "{}", run.stdout);
    assert!(Path::new(&absolute).exists());
}

/// A path outside of the current directory is shown as the user has named it.
#[test]
fn paths_elsewhere_are_shown_as_they_were_given() {
    let files = directory(&[("x/a.cu", WARNING.as_bytes()), ("y/b.cu", CLEAN.as_bytes())]);
    let here = files.file("y");
    for given in ["../x/a.cu", "../x", "../y/../x/a.cu"] {
        let run = gridfuse(&here, &["check", given]).expect_code(0);
        let shown = if given == "../x" { "../x/a.cu" } else { given };
        let place = format!("--> {shown}:3:31\n");
        let command = format!("gridfuse rewrite {shown} --at 3:31");
        assert!(run.stdout.contains(&place), "{place}: {}", run.stdout);
        assert!(run.stdout.contains(&command), "{command}: {}", run.stdout);
    }
    let words = [
        "rewrite",
        "../x/a.cu",
        "--at",
        "3",
        "--apply",
        "aggregate-block",
        "--in-place",
    ];
    let run = gridfuse(&here, &words).expect_code(0);
    assert_eq!(run.stdout, "changed ../x/a.cu\ncreated ../x/gridfuse.cuh\n");
    // What lies in the current directory is named from there, however it was given.
    let run = gridfuse(&files.file("x"), &["explain", "../x/./a.cu"]).expect_code(0);
    assert!(run.stdout.starts_with("a.cu:"), "{}", run.stdout);
}

#[test]
fn a_file_that_is_no_cuda_is_told_of() {
    let files = directory(&[
        ("readme.txt", b"what it does"),
        ("kernels.impl", CLEAN.as_bytes()),
        ("host.cpp", b"int main() {}"),
        // It quotes CUDA.
        (
            "run.py",
            b"kernel = '__global__ void child() {}'; print('child<<<1, 32>>>()')",
        ),
    ]);
    for other in ["readme.txt", "run.py"] {
        let run = gridfuse(files.path(), &["check", other]).expect_code(2);
        let told = format!("warning: {other} is no CUDA file");
        assert!(run.stderr.contains(&told), "{}", run.story());
    }
    // A drawing of nothing is no success either.
    std::fs::create_dir(files.file("empty")).unwrap();
    let run = gridfuse(files.path(), &["graph", "empty"]).expect_code(2);
    assert!(
        run.stderr.contains("warning: empty has no CUDA files"),
        "{}",
        run.story()
    );
    for cuda in ["kernels.impl", "host.cpp"] {
        let run = gridfuse(files.path(), &["check", cuda]).expect_code(0);
        assert_eq!(run.stderr, "", "{cuda}");
    }
}

/// `12 |     child<<<1, 32>>>(out);`
fn is_source(line: &str) -> bool {
    let number = line.split_once(" |").map(|(number, _)| number.trim());
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Why a rewrite can't be applied, and what it assumes, fit as well. Marks begin where the statement does.
#[test]
fn refusals_fit_the_terminal() {
    let long = "(cells + at, count, maxCells, tol, maxLevel, \"a long line\", nullptr, nullptr)";
    let program = format!(
        "__global__ void child(int* out);\n__global__ void parent(int* out) {{\n    child<<<1, 32>>>{long};\n        \
         cudaDeviceSynchronize(); /* {long} */\n{far}child<<<1, 32>>>{long};\n}}\n",
        far = " ".repeat(90)
    );
    let files = directory(&[("a.cu", program.as_bytes())]);
    for (line, arguments) in [
        (3, &["rewrite", "a.cu:3", "--apply", "persistent-loop"][..]),
        (4, &["rewrite", "a.cu:4", "--apply", "outline-iteration"]),
        (5, &["rewrite", "a.cu:5", "--apply", "persistent-loop"]),
        (4, &["revert", "a.cu:4"]),
    ] {
        let mut command = std::process::Command::new(workspace::gridfuse_bin());
        command.current_dir(files.path()).args(arguments).env("COLUMNS", "60");
        let run = run_of(&mut command).expect_code(1);
        let lines: Vec<&str> = run.stderr.lines().collect();
        let source = lines
            .iter()
            .position(|shown| shown.trim_start().starts_with(&format!("{line} |")));
        let source = source.unwrap_or_else(|| panic!("{}", run.story()));
        let (code, marks) = (lines[source].chars(), lines[source + 1].chars());
        let first = code.zip(marks).find(|(_, mark)| *mark == '^');
        assert!(first.is_some_and(|(code, _)| code == 'c'), "{}", run.story());
        for line in lines {
            assert!(line.chars().count() <= 60, "{line}: {}", run.story());
        }
    }
}

/// What gridfuse prints names a place in a way that it understands.
#[test]
fn a_place_may_follow_the_file() {
    let files = files();
    let run = |arguments: &[&str]| gridfuse(files.path(), arguments);
    for place in ["warning.cu:3", "warning.cu:3:31", "./warning.cu:3"] {
        let shown = run(&["rewrite", place, "--apply", "aggregate-block"]).expect_code(0);
        let meant = run(&["rewrite", "warning.cu", "--at", "3", "--apply", "aggregate-block"]);
        assert_eq!(shown.stdout, meant.stdout, "{place}");
    }
    for wrong in [
        &["rewrite", "warning.cu:3", "--at", "3", "--apply", "aggregate-block"][..],
        &["rewrite", "warning.cu", "--apply", "aggregate-block"],
        &["revert", "warning.cu"],
        &["check", ".:3"],
        &["check", "missing.cu:3"],
        &["check", "warning.cu:3", "--fix"],
    ] {
        let story = run(wrong).expect_code(2);
        assert!(story.stderr.contains("error: "), "{}", story.story());
    }
    let found = |arguments: &[&str]| {
        let report = run(&[&["check", "--format", "json"], arguments].concat()).json();
        report["findings"].as_array().unwrap().len()
    };
    let all = found(&["warning.cu"]);
    assert!(all > 0);
    assert_eq!(found(&["warning.cu:3"]), all);
    assert_eq!(found(&["warning.cu:3:31"]), all);
    assert_eq!(found(&["warning.cu:4"]), 0);
    assert_eq!(found(&["warning.cu:4", "error.cu"]), found(&["error.cu"]));
    assert_eq!(found(&["warning.cu:4", "warning.cu"]), all);
    assert_eq!(found(&["warning.cu:4", "."]), found(&["."]));
    run(&["check", "error.cu:1"]).expect_code(1);
    run(&["check", "error.cu:2"]).expect_code(0);
    run(&["rewrite", "warning.cu:3", "--apply", "aggregate-block", "--in-place"]).expect_code(0);
    let rewritten = files.read("warning.cu");
    let line = rewritten.lines().position(|line| line.contains(".launch(")).unwrap() + 1;
    run(&["revert", &format!("warning.cu:{line}"), "--in-place"]).expect_code(0);
    assert_eq!(files.read("warning.cu"), WARNING);
}

const REFINE: &str = "\
__global__ void refine(float* cells, int* count, int level) {
    int i = threadIdx.x;
    if (cells[i] > 1 && level < 8) {
        int at = atomicAdd(count, 4);
        if (at > 1000) return;
        refine<<<1, 4>>>(cells + at, count, level + 1);
        cudaDeviceSynchronize();
        cells[i] = 0;
    }
}
";
const ROUNDS: &str = "\
__global__ void child(int* out) { out[threadIdx.x] = threadIdx.x; }
__global__ void visit(int* out, int* changed) {
    if (threadIdx.x < out[0]) child<<<1, 32>>>(out);
    *changed = 1;
}
void search(int* out, int* flag) {
    int changed = 1;
    while (changed) {
        visit<<<1, 32>>>(out, flag);
        cudaMemcpy(&changed, flag, sizeof(int), cudaMemcpyDeviceToHost);
    }
}
";

/// Where the rewrite that would mend something doesn't fit, its reason stands there. A wait is no reason for its own staying.
#[test]
fn what_no_rewrite_mends_says_why() {
    let files = directory(&[("refine.cu", REFINE.as_bytes()), ("rounds.cu", ROUNDS.as_bytes())]);
    let check = |file: &str| gridfuse(files.path(), &["check", file]).stdout;
    let why = "a call of `atomicAdd` can't be computed again in another kernel";
    let found = check("refine.cu:7");
    assert!(
        found.contains(&format!("note: no rewrite mends it: {why}\n --> refine.cu:4:18")),
        "{found}"
    );
    let told = gridfuse(files.path(), &["explain", "refine.cu:6"])
        .expect_code(0)
        .stdout;
    let answer = format!("  answer      no rewrite fits\n  because     the wait in line 7 has to stay: {why}\n");
    assert!(told.contains(&answer), "{told}");
    let found = check("rounds.cu:10");
    let why =
        "`visit` launches grids, which the next kernel of the loop waits for: apply `serialize` to its launches first";
    assert!(
        found.contains(&format!("note: no rewrite mends it: {why}\n  --> rounds.cu:3:36")),
        "{found}"
    );
}

/// The grids of the host are no level.
#[test]
fn levels_of_a_recursion_are_counted_below_the_first_grid() {
    let program = "__global__ void walk(int* out, int depth) {
    out[depth] = 1;
    if (threadIdx.x == 0 && depth < 9) walk<<<1, 32>>>(out, depth + 1);
}
void host(int* out) { walk<<<1, 32>>>(out, 0); }
";
    let files = directory(&[("walk.cu", program.as_bytes())]);
    let told = gridfuse(files.path(), &["explain", "walk.cu:3"]).expect_code(0).stdout;
    assert!(
        told.contains("  recursive   up to 9 levels below the first grid\n"),
        "{told}"
    );
}

/// What the command line says of itself fits the terminal, too.
#[test]
fn help_and_lists_fit_the_terminal() {
    for words in [&["--help"][..], &["help", "check"], &["measure", "--help"], &["list"]] {
        let said = |columns: &str| {
            let mut command = std::process::Command::new(workspace::gridfuse_bin());
            run_of(command.args(words).env("COLUMNS", columns))
                .expect_code(0)
                .stdout
        };
        let wide: Vec<String> = said("400").split_whitespace().map(str::to_owned).collect();
        let narrow = said("80");
        assert_eq!(narrow.split_whitespace().collect::<Vec<_>>(), wide, "{narrow}");
        let long: Vec<&str> = narrow.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
    }
}

/// What is to be read fits the terminal; what is to be copied is in one piece.
#[test]
fn findings_fit_the_terminal() {
    let directory = workspace::root().join("tests/corpus");
    let check = |columns: &str| {
        let mut command = std::process::Command::new(workspace::gridfuse_bin());
        command.current_dir(&directory).args(["check", "bfs.cu"]);
        run_of(command.env("COLUMNS", columns)).expect_code(0)
    };
    let words = |text: &str| -> Vec<String> {
        // Source is cut, and so are its marks. The lines that lead from labels to code go on beside labels.
        let told = text.lines().filter(|line| !is_source(line));
        let words = told.flat_map(str::split_whitespace);
        let words = words.filter(|word| !word.chars().all(|c| "|^-".contains(c)));
        words.map(str::to_owned).collect()
    };
    let wide = check("400");
    for columns in [60, 80, 100] {
        let narrow = check(&columns.to_string());
        assert_eq!(words(&narrow.stdout), words(&wide.stdout), "{}", narrow.stdout);
        for line in narrow.stdout.lines().filter(|line| line.chars().count() > columns) {
            assert!(line.trim_start().starts_with("gridfuse rewrite "), "{columns}: {line}");
        }
        let commands = narrow.stdout.lines().filter(|line| line.contains("gridfuse rewrite"));
        assert!(commands.clone().count() > 3);
        for command in commands {
            assert!(command.contains(" --apply "), "{command}");
        }
    }
}

/// What nobody has touched becomes what it was: nothing is taken for granted. After an edit, what the code relies on isn't known.
#[test]
fn an_untouched_rewrite_is_taken_back_without_a_doubt() {
    let home = Directory::new();
    let run = |files: &Directory, words: &[&str]| {
        let mut command = std::process::Command::new(workspace::gridfuse_bin());
        command.current_dir(files.path()).args(words);
        run_of(command.env("XDG_STATE_HOME", home.path())).expect_code(0)
    };
    let program = fs::read(workspace::root().join("tests/corpus/bfs.cu")).unwrap();
    let files = directory(&[("bfs.cu", &program), ("other.cu", CLEAN.as_bytes())]);
    let line = |part: &str| {
        let text = files.read("bfs.cu");
        (text.lines().position(|line| line.contains(part)).unwrap() + 1).to_string()
    };
    let words = [
        "rewrite",
        "bfs.cu",
        "--at",
        &line("expand<<<"),
        "--apply",
        "aggregate-block",
        "--in-place",
    ];
    run(&files, &words);
    let at = line("expands.launch(");
    let revert = |how: &str| run(&files, &["revert", "bfs.cu", "--at", &at, how]).stderr;
    assert_eq!(revert("--diff"), "");
    let told = run(&files, &["explain", &format!("bfs.cu:{at}")]).stdout;
    assert!(told.contains("│ revert             ┆ eligible "), "{told}");
    // Comments and line breaks are no code.
    let text = files.read("bfs.cu");
    files.write("bfs.cu", format!("{text}\n// mine\n").as_bytes());
    assert_eq!(revert("--diff"), "");
    files.write("other.cu", WARNING.as_bytes());
    let told = revert("--diff");
    assert!(told.contains("`revert` is right only if"), "{told}");
    files.write("other.cu", CLEAN.as_bytes());
    assert_eq!(revert("--in-place"), "");
    assert_eq!(
        files.read("bfs.cu").as_bytes(),
        [&program, b"\n// mine\n".as_slice()].concat()
    );
}

#[test]
fn grid_stride_loops_have_a_name() {
    let program = "\
__global__ void child(float* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = 1; }
__global__ void direct(float* out, const int* rows, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        child<<<1, 32>>>(out + i * 32, rows[i]);
}
__global__ void named(float* out, const int* rows, int num_rows) {
    int stride = gridDim.x * blockDim.x;
    for (int row = threadIdx.x + blockIdx.x * blockDim.x; row < num_rows; row += stride)
        child<<<1, 32>>>(out + row * 32, rows[row]);
}
__global__ void by_block(float* out, const int* rows, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) child<<<1, 32>>>(out + i * 32, rows[i]);
}
";
    let files = directory(&[("a.cu", program.as_bytes())]);
    let told = gridfuse(files.path(), &["explain", "a.cu"]).expect_code(0).stdout;
    let rows: Vec<&str> = told
        .lines()
        .filter(|row| row.starts_with('│') && row.contains("loop "))
        .collect();
    let starts = [
        "│ grid-stride loop over `n` (line 3) ",
        "│ grid-stride loop over `num_rows` (line 8) ",
        "│ loop of line 12 ",
    ];
    for start in starts {
        assert_eq!(
            rows.iter().filter(|row| row.starts_with(start)).count(),
            1,
            "{start}: {rows:#?}"
        );
    }
    assert!(!told.contains("for (int"), "{told}");
    let report = gridfuse(files.path(), &["explain", "a.cu", "--format", "json"])
        .expect_code(0)
        .json();
    let stride = |index: usize| &report["launches"][index]["dependences"]["loops"][0]["grid_stride"];
    assert_eq!(
        (stride(0), stride(1), stride(2)),
        (&json!("n"), &json!("num_rows"), &json!(null))
    );
}

/// The runtime header goes with the last rewrite that needs it, unless somebody has edited it.
#[test]
fn the_header_goes_with_the_last_rewrite() {
    let files = directory(&[("a.cu", WARNING.as_bytes()), ("b.cu", WARNING.as_bytes())]);
    let rewrite = |name: &str| {
        let words = ["rewrite", name, "--at", "3", "--apply", "aggregate-block", "--in-place"];
        gridfuse(files.path(), &words).expect_code(0);
    };
    let revert = |name: &str, how: &str| {
        let text = files.read(name);
        let line = text.lines().position(|line| line.contains(".launch(")).unwrap() + 1;
        let words = ["revert", name, "--at", &line.to_string(), how];
        gridfuse(files.path(), &words).expect_code(0).stdout
    };
    rewrite("a.cu");
    rewrite("b.cu");
    assert_eq!(revert("a.cu", "--in-place"), "changed a.cu\n");
    let diff = revert("b.cu", "--diff");
    assert!(diff.contains("--- a/gridfuse.cuh\n+++ /dev/null\n"), "{diff}");
    assert!(files.file("gridfuse.cuh").is_file());
    assert_eq!(revert("b.cu", "--in-place"), "changed b.cu\ndeleted gridfuse.cuh\n");
    assert!(!files.file("gridfuse.cuh").exists());
    assert_eq!(
        (files.read("a.cu"), files.read("b.cu")),
        (WARNING.to_owned(), WARNING.to_owned())
    );
    rewrite("a.cu");
    let edited = format!("// mine\n{}", files.read("gridfuse.cuh"));
    files.write("gridfuse.cuh", edited.as_bytes());
    assert_eq!(revert("a.cu", "--in-place"), "changed a.cu\n");
    assert_eq!(files.read("gridfuse.cuh"), edited);
}

/// What a command has changed comes back to the byte, whatever the rewritten code says; not once somebody has edited it.
#[test]
fn any_rewrite_is_taken_back_until_somebody_edits() {
    let program = |path: &str| fs::read_to_string(workspace::root().join(path)).unwrap();
    let cases = [
        ("tests/corpus/bt_malloc.cu", "place<<<", "optimize", "places.launch("),
        ("tests/corpus/bt_malloc.cu", "place<<<", "aggregate-malloc", "place<<<"),
        (
            "tests/fixtures/host_iteration/managed_flag.cu",
            "do {",
            "outline-iteration",
            "gridfuse::run_rounds<",
        ),
    ];
    for (path, launch, id, made) in cases {
        let before = program(path);
        let files = directory(&[("a.cu", before.as_bytes())]);
        let line = |part: &str| {
            let text = files.read("a.cu");
            let found = text.lines().position(|line| line.contains(part));
            (found.unwrap_or_else(|| panic!("{part} in {text}")) + 1).to_string()
        };
        let words = ["rewrite", "a.cu", "--at", &line(launch), "--apply", id, "--in-place"];
        gridfuse(files.path(), &words).expect_code(0);
        let rewritten = files.read("a.cu");
        assert_ne!(rewritten, before, "{id}");
        let at = line(made);
        let revert = || gridfuse(files.path(), &["revert", "a.cu", "--at", &at, "--in-place"]);
        let edited = format!("{rewritten}int mine;\n");
        files.write("a.cu", edited.as_bytes());
        let told = revert();
        assert_ne!(
            (told.code, files.read("a.cu")),
            (Some(0), format!("{before}int mine;\n")),
            "{id}"
        );
        files.write("a.cu", rewritten.as_bytes());
        let told = revert().expect_code(0);
        assert_eq!((told.stderr.as_str(), files.read("a.cu")), ("", before), "{id}");
        assert!(!files.file("gridfuse.cuh").exists(), "{id}: {}", told.story());
    }
}

/// Only what stands at the place is taken back, not the last step.
#[test]
fn other_functions_stay_rewritten() {
    let pair = |n: u32| {
        format!(
            "__global__ void child{n}(int* out) {{ out[threadIdx.x] = {n}; }}\n\
             __global__ void parent{n}(int* out, const int* row) {{\n    \
             if (row[threadIdx.x] > 0) child{n}<<<1, 32>>>(out + 32 * threadIdx.x);\n}}\n"
        )
    };
    let text = format!(
        "{}{}int main() {{ parent1<<<1, 32>>>(0, 0); parent2<<<1, 32>>>(0, 0); }}\n",
        pair(1),
        pair(2)
    );
    let files = directory(&[("a.cu", text.as_bytes())]);
    let run_at = |part: &str, words: &[&str]| {
        let text = files.read("a.cu");
        let line = text.lines().position(|line| line.contains(part)).unwrap() + 1;
        let line = line.to_string();
        let at = [&[words[0], "a.cu", "--at", &line], &words[1..], &["--in-place"]].concat();
        gridfuse(files.path(), &at).expect_code(0);
        files.read("a.cu")
    };
    run_at("child1<<<", &["rewrite", "--apply", "aggregate-block"]);
    let both = run_at("child2<<<", &["rewrite", "--apply", "aggregate-block"]);
    let second_alone = run_at("child1_launches.launch(", &["revert"]);
    assert!(
        second_alone.contains("child2_launches.launch(") && second_alone.contains("child1<<<1, 32>>>"),
        "{second_alone}"
    );
    files.write("a.cu", both.as_bytes());
    let first_alone = run_at("child2_launches.launch(", &["revert"]);
    assert!(
        first_alone.contains("child1_launches.launch(") && first_alone.contains("child2<<<1, 32>>>"),
        "{first_alone}"
    );
    assert_eq!(run_at("child1_launches.launch(", &["revert"]), text);
}

#[test]
fn who_mistypes_is_told_what_was_meant() {
    let files = files();
    let said = |arguments: &[&str], part: &str| {
        let run = gridfuse(files.path(), arguments).expect_code(2);
        assert!(run.stderr.contains(part), "{part}: {}", run.story());
    };
    said(&["list", "seralized-launches"], "did you mean `serialized-launches`?");
    said(&["list", "nonsense"], "`gridfuse list` names them");
    let rewrite = |id, more: &[&str], part: &str| {
        let arguments = ["rewrite", "warning.cu", "--at", "3", "--apply", id];
        said(&[&arguments, more].concat(), part);
    };
    rewrite("agregate-blokc", &[], "did you mean `aggregate-block`?");
    rewrite("aggregate", &[], "did you mean `aggregate-grid`, ");
    rewrite("nonsense", &[], "there are: optimize, ");
    rewrite("threshold", &["--set", "treshold=8"], "did you mean `threshold`?");
    let rewrites = ["measure", "warning.cu", "--rewrites", "threshhold+aggregate-block"];
    said(&rewrites, "did you mean `threshold`?");
    files.write("gridfuse.toml", b"[severity]\nserialised-launches = 'off'\n");
    said(&["check", "warning.cu"], "did you mean `serialized-launches`?");
    files.write("gridfuse.toml", b"");
    files.write(
        "allow.cu",
        b"__global__ void k() {}  // gridfuse: allow(launch-in-loops)\n",
    );
    let run = gridfuse(files.path(), &["check", "allow.cu"]).expect_code(0);
    assert!(run.stdout.contains("did you mean `launch-in-loop`?"), "{}", run.story());
}

#[test]
fn colour_where_it_is_wanted() {
    let files = files();
    let coloured = |arguments: &[&str], no_color: &str| {
        let mut command = std::process::Command::new(workspace::gridfuse_bin());
        command.current_dir(files.path()).args(arguments);
        for variable in ["CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(variable);
        }
        let run = run_of(command.env("NO_COLOR", no_color));
        (run.stdout + &run.stderr).contains('\u{1b}')
    };
    for (arguments, no_color, expected) in [
        (&["check", "warning.cu"][..], "", false),
        (&["check", "warning.cu", "--color", "auto"], "", false),
        (&["check", "warning.cu", "--color", "always"], "", true),
        // What is said for one command counts more than what is said for all.
        (&["--color=always", "check", "warning.cu"], "1", true),
        (&["check", "missing.cu", "--color=always"], "", true),
        (&["check", "missing.cu", "--color=never"], "", false),
        (&["chekc", "--color=always"], "", true),
        (&["chekc"], "", false),
    ] {
        assert_eq!(coloured(arguments, no_color), expected, "{arguments:?} {no_color}");
    }
    gridfuse(files.path(), &["check", "warning.cu", "--color", "loud"]).expect_code(2);
}
