//! Kernels that are measured by themselves: run specifications, the programs that are generated from them, what is wrong in them.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::process::{Command, Stdio};

use gridfuse_tests::cli::{Directory, Run, directory, files_of};
use gridfuse_tests::emulator::rewritten::{device_launches, rewrite};
use gridfuse_tests::emulator::run::RunOptions;
use gridfuse_tests::emulator::{Emulator, Program};
use gridfuse_tests::nvcc::Nvcc;
use gridfuse_tests::workspace;
use serde_json::Value;

fn kernels() -> Directory {
    let source = fs::read(workspace::root().join("tests/fixtures/measure/kernels.cu")).unwrap();
    directory(&[("kernels.cu", &source)])
}

fn run_in(files: &Directory, arguments: &[&str], fakes: &[(&str, &str)]) -> Run {
    let fake = workspace::root().join("tests/fixtures/measure/fake_nvcc.sh");
    let home = directory(&[]);
    let output = Command::new(workspace::gridfuse_bin())
        .current_dir(files.path())
        .args(["measure", "--repeat", "1", "--nvcc"])
        .arg(fake)
        .args(arguments)
        .env("XDG_STATE_HOME", home.path())
        .envs(fakes.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("gridfuse starts");
    Run {
        command: format!("gridfuse measure {} {fakes:?}", arguments.join(" ")),
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn a_kernel_is_measured_by_itself() {
    let files = kernels();
    let before = files_of(files.path());
    let arguments = [
        "kernels.cu",
        "--kernel",
        "search",
        "--rewrites",
        "aggregate-block,threshold",
        "--json",
    ];
    let run = run_in(&files, &arguments, &[]).expect_code(0);
    let report = run.json();
    assert_eq!(report["kernel"]["kernel"], "graph::search", "{report:#}");
    let line = |needle: &str| {
        let text = files.read("kernels.cu");
        text.lines().position(|line| line.contains(needle)).unwrap() + 1
    };
    // The launch is where it's specified.
    assert_eq!(report["sites"].as_array().map(Vec::len), Some(1), "{report:#}");
    assert_eq!(report["sites"][0]["path"], "kernels.cu");
    assert_eq!(report["sites"][0]["line"], line("run <<<"));
    let variant = &report["variants"][0];
    assert_eq!(variant["outcome"]["median_ms"], 0.5, "{report:#}");
    assert_eq!(variant["outcome"]["agreement"]["agreement"], "agrees", "{report:#}");
    // The diff is of the user's file, and of the kernel that was asked for.
    let diff = variant["diff"].as_str().unwrap();
    assert!(
        diff.contains("+++ b/kernels.cu") && !diff.contains("gridfuse-run"),
        "{diff}"
    );
    assert!(
        diff.contains("Aggregator") && !diff.contains("scale_row_aggregated"),
        "{diff}"
    );
    assert_eq!(files_of(files.path()), before, "the user's directory stays as it is");

    let text = run_in(
        &files,
        &["kernels.cu", "--kernel", "graph::search", "--rewrites", "threshold"],
        &[],
    )
    .expect_code(0)
    .stdout;
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("graph::search run by itself as kernels.cu:"), "{text}");
    // In a kernel's head, its name need not be given.
    let at = line("__global__ void search").to_string();
    run_in(&files, &["kernels.cu", "--at", &at, "--rewrites", "threshold"], &[]).expect_code(0);

    // What the compiler says of the generated program is about the specification.
    let broken = [("FAKE_NO_BUILD", "gridfuse_launch < ")];
    let report = run_in(&files, &arguments, &broken).expect_code(1).json();
    let message = &report["original"]["messages"][0];
    assert_eq!(
        (&message["path"], &message["line"]),
        (&"kernels.cu".into(), &line("run <<<").into()),
        "{report:#}"
    );
}

#[test]
fn a_specification_in_the_manifest() {
    let source = fs::read_to_string(workspace::root().join("tests/fixtures/measure/kernels.cu")).unwrap();
    let source = source.replace("gridfuse: run", "Run");
    let manifest = r#"[[measure.kernel]]
name = 'search'
grid = '(n + 63) / 64'
block = 64
[measure.kernel.arguments]
n = 40
level = 0
g = 'csr(star, n)'
row = 'g.row'
col = 'g.col'
dist = 'fill(n, -1)'
'dist[0]' = 0
"#;
    let files = directory(&[
        ("kernels.cu", source.as_bytes()),
        ("gridfuse.toml", manifest.as_bytes()),
    ]);
    let report = run_in(&files, &["kernels.cu", "--rewrites", "threshold", "--json"], &[])
        .expect_code(0)
        .json();
    assert_eq!(report["kernel"]["path"], "gridfuse.toml", "{report:#}");
    assert_eq!(report["kernel"]["line"], 2);
    files.write("gridfuse.toml", manifest.replace("'g.row'", "'g.rows'").as_bytes());
    let run = run_in(&files, &["kernels.cu"], &[]).expect_code(2);
    assert!(
        run.stderr.contains("gridfuse.toml:2:8: a graph has .row"),
        "{}",
        run.story()
    );
}

/// The program that a specification describes.
fn written_main(files: &Directory, kernel: &str) -> String {
    let name = format!("{kernel}_main.cu");
    run_in(files, &["kernels.cu", "--kernel", kernel, "--write-main", &name], &[]).expect_code(0);
    files.read(&name)
}

const DISTANCES: &str = "dist[40]: 0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n";

#[test]
fn generated_programs_compute_under_the_emulator() {
    let files = kernels();
    let print = RunOptions {
        arguments: vec!["--print".to_owned()],
        ..RunOptions::seed(7)
    };
    let mut programs = Vec::new();
    for kernel in ["search", "scale"] {
        let main = written_main(&files, kernel);
        let program = Program::new("main.cu", main).with_file("kernels.cu", files.read("kernels.cu"));
        programs.push((kernel, program));
    }
    // The same, rewritten: the rewrite edits the generated launch, too.
    let search = &programs[0].1;
    let site = device_launches(search)
        .into_iter()
        .find(|site| rewrite(search, site, "aggregate-block").is_ok())
        .expect("it can be aggregated");
    let aggregated = rewrite(search, &site, "aggregate-block").unwrap().program;
    assert!(aggregated.files().values().any(|text| text.contains("Aggregator")));
    programs.push(("search", aggregated));
    for (kernel, program) in &programs {
        let outcome = Emulator::get().build(program).unwrap().run(&print).unwrap();
        assert!(outcome.is_success(), "{kernel}: {outcome:?}");
        match *kernel {
            "search" => assert!(outcome.stdout.contains(DISTANCES), "{}", outcome.stdout),
            // 0.5, 1.5, … twice as much.
            _ => assert!(outcome.stdout.contains("data[400]: 1 3 5 7"), "{}", outcome.stdout),
        }
    }
}

#[test]
fn generated_programs_compile() {
    let nvcc = Nvcc::get();
    let libraries = nvcc.root().join("lib");
    let files = kernels();
    let real = [
        ("REAL_NVCC", nvcc.executable().to_str().unwrap()),
        ("REAL_LIBRARIES", libraries.to_str().unwrap()),
    ];
    for (kernel, rewrites) in [("search", "aggregate-grid"), ("scale", "none")] {
        let arguments = [
            "kernels.cu",
            "--kernel",
            kernel,
            "--rewrites",
            rewrites,
            "--arch",
            "sm_90",
            "--json",
        ];
        let report = run_in(&files, &arguments, &real).expect_code(0).json();
        assert_eq!(report["original"]["outcome"], "ran", "{report:#}");
        for variant in report["variants"].as_array().unwrap() {
            assert_eq!(variant["outcome"]["outcome"], "ran", "{report:#}");
        }
    }
}

#[test]
fn a_proposal_for_a_specification() {
    let source = b"__global__ void child(int* d) {}\n\
        __global__ void parent(const int* row, const int* col, float* out, const float* w, float eps, int n) {\n\
            if (row[threadIdx.x] < n) child<<<1, 32>>>((int*)out);\n}\n";
    let files = directory(&[("k.cu", source)]);
    let run = run_in(&files, &["k.cu", "--scaffold"], &[]).expect_code(0);
    assert_eq!(run.stderr, "", "{}", run.story());
    let proposal = run.stdout;
    let childless = run_in(&files, &["k.cu", "--scaffold", "--kernel", "child"], &[]).expect_code(0);
    assert!(
        childless.stderr.contains("`child` launches no kernel"),
        "{}",
        childless.story()
    );
    assert_eq!(
        proposal,
        r#"// gridfuse: run <<<(n + 255) / 256, 256>>>
//   n = 16384
//   graph = csr(rmat, n)
//   row = graph.row
//   col = graph.col
//   out = zeros(n)
//   w = random(n, 0.0, 1.0)
//   eps = 1.0
"#
    );
    let run = run_in(&files, &["k.cu"], &[]).expect_code(2);
    assert!(run.stderr.contains("there is no `main` in k.cu"), "{}", run.story());
    assert!(run.stderr.contains("//   graph = csr(rmat, n)"), "{}", run.story());
    // It can be run as it is.
    let text =
        String::from_utf8_lossy(source).replace("__global__ void parent", &format!("{proposal}__global__ void parent"));
    files.write("k.cu", text.as_bytes());
    run_in(&files, &["k.cu", "--rewrites", "none"], &[]).expect_code(0);
}

#[test]
fn what_is_wrong_has_a_place() {
    let parent = r#"__global__ void child(float* d) {}
// gridfuse: run <<<SPEC
__global__ void parent(const int* row, float* out, unsigned char flag, int n) {
if (row[threadIdx.x] < n) child<<<1, 32>>>(out);
}
"#;
    let files = directory(&[]);
    files.write("floats.npy", &npy("<f4", 8, 32));
    let rest = "row = iota(n), out = zeros(n), flag = 1, n = 8";
    for (spec, place, part) in [
        (
            "1, 32>>> row = iota(n), out = zeros(n), n = 8",
            "2:1",
            "the parameter `flag` (unsigned char) of `parent`",
        ),
        (&format!("1, 2048>>> {rest}"), "2:24", "1 to 1024"),
        (&format!("0, 32>>> {rest}"), "2:21", "a grid of 0"),
        (&format!("n / (n - 8), 32>>> {rest}"), "2:21", "divides by zero"),
        (&format!("1, 32>>> {rest} m = 3"), "", "`m` is used nowhere"),
        (
            &format!("1, 32>>> {}", rest.replace("iota(n)", "iota(k)")),
            "",
            "add `k = …`",
        ),
        (
            &format!("1, 32>>> {}", rest.replace("iota(n)", "5")),
            "",
            "it needs a buffer",
        ),
        (
            &format!("1, 32>>> {}", rest.replace("iota(n)", "fill(n, 0.5)")),
            "",
            "0.5 is no integer",
        ),
        (
            &format!("1, 32>>> {}", rest.replace("flag = 1", "flag = 256")),
            "",
            "256 doesn't fit",
        ),
        (
            &format!("1, 32>>> {}", rest.replace("n = 8", "n = n + 1")),
            "",
            "defined by itself",
        ),
        (
            &format!("1, 32>>> {}", rest.replace("n = 8", "n = 8, n = 9")),
            "",
            "defined twice",
        ),
        (&format!("1, 32>>> {rest} row[8] = 1"), "", "8 elements: there is no 8"),
        (
            &format!("1, 32>>> {}", rest.replace("iota(n)", "npy(\"floats.npy\")")),
            "",
            "holds float32",
        ),
        (
            &format!("1, 32>>> {}", rest.replace("iota(n)", "npy(\"none.npy\")")),
            "",
            "can't be read",
        ),
        (
            &format!("1, 32>>> {}", rest.replace("iota(n)", "csr(mesh, n).row")),
            "",
            "rmat, uniform",
        ),
        (
            &format!("1, 32>>> {}", rest.replace("zeros(n)", "zeros(-1)")),
            "",
            "from 1 to",
        ),
        ("1 32>>>", "2:23", "expected `,`"),
    ] {
        let text = parent.replace("SPEC", spec);
        files.write("k.cu", text.as_bytes());
        let run = run_in(&files, &["k.cu"], &[]).expect_code(2);
        assert!(run.stderr.contains(part), "{spec}: {}", run.story());
        assert!(
            run.stderr
                .contains(&format!("k.cu:{}", if place.is_empty() { "2:" } else { place })),
            "{spec}: {}",
            run.story()
        );
    }
    // A file that fits.
    files.write("ints.npy", &npy("<i4", 8, 32));
    let spec = format!("1, 32>>> {}", rest.replace("iota(n)", "npy(\"ints.npy\")"));
    files.write("k.cu", parent.replace("SPEC", &spec).as_bytes());
    run_in(&files, &["k.cu", "--rewrites", "none"], &[]).expect_code(0);

    for (arguments, part) in [
        (
            &["k.cu", "--kernel", "none"][..],
            "no kernel in k.cu is called `none`; those that launch others are: parent",
        ),
        (&["k.cu", "--kernel", "child"][..], "`child` launches no other"),
        (&["k.cu", "--write-main", "k.cu"][..], "k.cu exists"),
    ] {
        let run = run_in(&files, arguments, &[]).expect_code(2);
        assert!(run.stderr.contains(part), "{}", run.story());
    }
    let two = parent.replace("SPEC", &spec) + &format!("// gridfuse: run parent<<<{spec}\n");
    files.write("k.cu", two.as_bytes());
    let run = run_in(&files, &["k.cu"], &[]).expect_code(2);
    assert!(
        run.stderr.contains("another run specification at line 2"),
        "{}",
        run.story()
    );
}

fn npy(descr: &str, count: usize, bytes: usize) -> Vec<u8> {
    let head = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({count},), }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(head.len()).unwrap().to_le_bytes());
    file.extend(head.as_bytes());
    file.extend(vec![0; bytes]);
    file
}

#[test]
fn a_program_of_the_users_own_is_compared() {
    let source = fs::read_to_string(workspace::root().join("tests/fixtures/measure/program.cu")).unwrap();
    let files = directory(&[("program.cu", source.as_bytes())]);
    let home = directory(&[]);
    let own = |name: &str, text: String| home.write(name, text.as_bytes()).display().to_string();
    let right = own(
        "right.cu",
        source.replace("data[begin + i] += 1;", "data[begin + i] += 1;  // by hand"),
    );
    let broken = own(
        "broken.cu",
        source.replace("if (i < count)", "if (i < count - 1)  // off_by_one\n       "),
    );
    let (right, broken) = (format!("--also=by hand={right}"), format!("--also=broken={broken}"));
    let arguments = ["program.cu", "--rewrites", "none", &right, &broken, "--json"];
    let report = run_in(&files, &arguments, &[("FAKE_WRONG", "off_by_one")])
        .expect_code(1)
        .json();
    let variant = |index: usize| -> &Value { &report["variants"][index] };
    assert_eq!(variant(0)["rewrites"], "by hand");
    assert_eq!(variant(0)["outcome"]["agreement"]["agreement"], "agrees", "{report:#}");
    assert!(
        variant(0)["diff"]
            .as_str()
            .unwrap()
            .contains("+    if (i < count) data[begin + i] += 1;  // by hand")
    );
    let agreement = &variant(1)["outcome"]["agreement"];
    assert_eq!(agreement["agreement"], "differs", "{report:#}");
    assert_eq!(
        (&agreement["element"], &agreement["expected"], &agreement["found"]),
        (&1.into(), &"5".into(), &"6".into())
    );

    for (arguments, part) in [
        (vec!["program.cu", &right, &right], "the name is taken"),
        (vec!["program.cu", "--also=x=none.cu"], "cannot read none.cu"),
        (vec!["program.cu", "--also=none.cu"], "NAME=FILE"),
    ] {
        let run = run_in(&files, &arguments, &[]).expect_code(2);
        assert!(run.stderr.contains(part), "{}", run.story());
    }
}
