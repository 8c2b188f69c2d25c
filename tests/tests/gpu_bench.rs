//! `gpu-bench` from the command line to the result files, with fake tools in place of CUDA's.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gridfuse_tests::gpu::record::{BuildStatus, Results, RunStatus, SanitizeStatus};

/// The fake compiler makes a program that knows the rewrites its source went through.
const NVCC: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then
    echo 'Cuda compilation tools, release 13.0, V13.0.88'; exit
fi
for word in "$@"; do
    case "$previous" in -o) out=$word ;; esac
    case "$word" in *.cu) source=$word ;; esac
    previous=$word
done
echo built >> "$FAKE_LOG"
if grep -q broken "$source"; then echo "$PWD/$source(1): error: broken" >&2; exit 1; fi
rewrites=$(sed -n 's,^// applied ,,p' "$source")
sed "s/REWRITES/$rewrites/" "$FAKE_PROGRAM" > "$out"
chmod +x "$out"
"#;

const GRIDFUSE: &str = r#"#!/bin/sh
# gridfuse rewrite FILE --at LINE --apply IDS [--set KEY=VALUE] --in-place
[ "$1" = rewrite ] && [ "$3" = --at ] && [ "$5" = --apply ] || exit 2
sed -n "$4p" "$2" | grep -q 'child<<<' || { echo "no launch at line $4" >&2; exit 1; }
case "$6" in
    refused) echo 'ineligible: because' >&2; exit 1 ;;
    nothing) exit 0 ;;
esac
ids=$6
[ "$ids" = twin ] && ids=aggregate-block,fire   # what another variant does
echo "// applied $ids $8" >> "$2"
"#;

const PROGRAM: &str = r#"#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
        --input) input=$2 ;; --variant) variant=$2 ;; --label) label=$2 ;; --repeat) repeat=$2 ;;
        *) echo "unknown flag $1" >&2; exit 2 ;;
    esac
    shift 2
done
verdict=pass checksum=abc time=1.5
case "$variant/$input" in
    naive/slow) sleep 600 & wait ;;
    naive/wrong) verdict=fail ;;
    naive/odd) checksum=xyz ;;
    naive/crash) echo 'illegal address' >&2; kill -SEGV $$ ;;
esac
case "REWRITES" in *aggregate*) time=0.25 ;; esac
echo "some chatter"
printf '{"bench":"p","input":"%s","variant":"%s","time_ms":%s,"verdict":"%s","checksum":"%s","repeats":%s,"applied":"REWRITES"}\n' \
    "$input" "$label" "$time" "$verdict" "$checksum" "$repeat"
[ "$verdict" = pass ]
"#;

const SANITIZER: &str = r#"#!/bin/sh
[ "$1" = --tool ] || exit 2
case "$2" in
    memcheck) echo '========= ERROR SUMMARY: 0 errors' ;;
    racecheck) echo '========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)' ;;
    *) echo "unknown tool" >&2; exit 1 ;;
esac
"#;

const SMI: &str = "#!/bin/sh\necho 'NVIDIA H200, 143771 MiB, 580.10'\necho 'Other, 1 MiB, 580.10'\n";

const PLAN: &str = r#"
[defaults]
run_args = ["--repeat", "{repeat}", "--label", "{variant}"]
repeat = 7
timeout_s = 5

[[program]]
name = "p"
source = "corpus/p.cu"
input = [
    { name = "tree", args = ["--input", "tree"] },
    { name = "slow", args = ["--input", "slow"] },
    { name = "wrong", args = ["--input", "wrong"] },
    { name = "odd", args = ["--input", "odd"] },
    { name = "crash", args = ["--input", "crash"] },
]
variant = [
    { name = "serial", args = ["--variant", "serial"] },
    { name = "naive", args = ["--variant", "naive"] },
    { name = "aggregate-block", args = ["--variant", "x"], apply = ["aggregate-block", "fire"], at = "child<<<", set = { threshold = 64 } },
    { name = "twin", args = ["--variant", "x"], apply = ["twin"], at = "child<<<", set = { threshold = 64 } },
    { name = "refused", apply = ["refused"], at = "child<<<", inputs = ["tree"] },
    { name = "nothing", apply = ["nothing"], at = "child<<<", inputs = ["tree"] },
    { name = "lost", apply = ["aggregate-block"], at = "grandchild<<<", inputs = ["tree"] },
]
baseline = [
    { name = "klap", source = "baselines/p_klap.cu", args = ["--variant", "block"], inputs = ["tree"] },
    { name = "bad", source = "baselines/bad.cu", inputs = ["tree"] },
]

[sanitize]
tools = ["memcheck", "racecheck", "othercheck"]
run = [{ program = "p", variants = ["aggregate-block"], args = ["--input", "tree"] }]
"#;

struct Bed {
    directory: tempfile::TempDir,
}

impl Bed {
    fn new() -> Bed {
        let bed = Bed {
            directory: tempfile::tempdir().unwrap(),
        };
        for (name, text) in [
            ("repo/plan.toml", PLAN),
            ("repo/corpus/p.cu", "#include \"p.cuh\"\n\n  child<<<1, 1>>>();\n"),
            ("repo/corpus/p.cuh", "// shared\n"),
            ("repo/baselines/p_klap.cu", "#include \"../corpus/p.cuh\"\n"),
            ("repo/baselines/bad.cu", "broken\n"),
            ("program", PROGRAM),
        ] {
            bed.write(name, text);
        }
        for (name, text) in [
            ("bin/nvcc", NVCC),
            ("bin/nvidia-smi", SMI),
            ("bin/compute-sanitizer", SANITIZER),
            ("gridfuse", GRIDFUSE),
        ] {
            let path = bed.write(name, text);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        bed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn run(&self, extra: &[&str]) -> Output {
        let path = std::env::var("PATH").unwrap();
        Command::new(env!("CARGO_BIN_EXE_gpu-bench"))
            .current_dir(self.path("repo"))
            .args(["--plan", "plan.toml", "--gridfuse", "../gridfuse"])
            .args(["--out", "../out", "--commit", "0123456789abcdef"])
            .args(extra)
            .env("PATH", format!("{}:{path}", self.path("bin").display()))
            .env("FAKE_LOG", self.path("log"))
            .env("FAKE_PROGRAM", self.path("program"))
            .env_remove("GRIDFUSE_TEST_NVCC")
            .output()
            .unwrap()
    }

    fn results(&self) -> Results {
        Results::load(&self.path("out/p.json")).unwrap()
    }

    fn compilations(&self) -> usize {
        fs::read_to_string(self.path("log")).map_or(0, |log| log.lines().count())
    }
}

fn text(output: &Output) -> String {
    format!(
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn everything_is_measured_and_written_down() {
    let bed = Bed::new();
    let output = bed.run(&[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let results = bed.results();

    assert_eq!(results.commit, "0123456789abcdef");
    assert_eq!(results.machine.gpu.as_deref(), Some("NVIDIA H200"));
    assert_eq!(results.machine.gpu_memory.as_deref(), Some("143771 MiB"));
    assert_eq!(results.machine.driver.as_deref(), Some("580.10"));
    assert_eq!(results.machine.cuda.as_deref(), Some("13.0.88"));
    assert_eq!(results.inputs, ["tree", "slow", "wrong", "odd", "crash"]);

    let status = |variant: &str, input: &str| results.run(variant, input).unwrap().status;
    for (variant, input, expected) in [
        ("serial", "slow", RunStatus::Pass),
        ("naive", "tree", RunStatus::Pass),
        ("naive", "slow", RunStatus::DidNotFinish),
        ("naive", "wrong", RunStatus::Wrong),
        ("naive", "odd", RunStatus::Wrong),
        ("naive", "crash", RunStatus::Failed),
        ("aggregate-block", "odd", RunStatus::Pass),
        ("refused", "tree", RunStatus::NotBuilt),
        ("klap", "tree", RunStatus::Pass),
        ("bad", "tree", RunStatus::NotBuilt),
    ] {
        assert_eq!(status(variant, input), expected, "{variant}/{input}");
    }
    for run in &results.runs {
        let timed = run.status == RunStatus::Pass;
        assert_eq!(run.time_ms.is_some(), timed, "{run:?}");
        assert_eq!(run.report.contains_key("time_ms"), timed, "{run:?}");
    }
    let aggregated = results.run("aggregate-block", "tree").unwrap();
    assert_eq!(aggregated.time_ms, Some(0.25));
    assert_eq!(
        aggregated.command,
        "./p --input tree --variant x --repeat 7 --label aggregate-block"
    );
    assert_eq!(aggregated.report["variant"], "aggregate-block");
    assert_eq!(aggregated.processes_ms, [0.25; 3], "the fastest, in three processes");
    assert_eq!(results.run("serial", "tree").unwrap().processes_ms, [1.5; 3]);
    assert!(results.run("naive", "tree").unwrap().processes_ms.is_empty());
    let twin = results.run("twin", "tree").unwrap();
    assert_eq!(twin.command, aggregated.command, "the same program is run once");
    assert_eq!(
        (twin.time_ms, &twin.processes_ms),
        (Some(0.25), &aggregated.processes_ms)
    );
    let crash = results.run("naive", "crash").unwrap();
    assert!(crash.message.as_deref().unwrap().contains("illegal address"));
    assert!(results.run("klap", "tree").unwrap().baseline);

    let build = |variant: &str| {
        let found = results
            .builds
            .iter()
            .find(|build| build.variants.iter().any(|name| name == variant));
        found.unwrap()
    };
    assert_eq!(build("serial").variants, ["serial", "naive"], "one binary");
    assert_eq!(
        build("aggregate-block").commands,
        [
            "gridfuse rewrite corpus/p.cu --at 3 --apply aggregate-block,fire --set threshold=64 --in-place",
            "nvcc -std=c++17 -rdc=true -arch=sm_90 corpus/p.cu -o p -lcudadevrt",
        ]
    );
    for (variant, status, message) in [
        ("refused", BuildStatus::RewriteFailed, "ineligible: because"),
        ("nothing", BuildStatus::RewriteFailed, "left the source"),
        ("lost", BuildStatus::PlanFailed, "no line matches"),
        ("bad", BuildStatus::CompileFailed, "error: broken"),
    ] {
        let build = build(variant);
        assert_eq!(build.status, status);
        assert!(build.message.as_deref().unwrap().contains(message), "{build:?}");
    }

    let sanitized: Vec<_> = results.sanitize.iter().map(|run| run.status).collect();
    use SanitizeStatus::{Clean, Failed, Findings};
    assert_eq!(sanitized, [Clean, Findings, Failed]);

    let json = fs::read_to_string(bed.path("out/p.json")).unwrap();
    let place = bed.directory.path().display().to_string();
    assert!(!json.contains(&place), "places of this machine are left out");

    let table = String::from_utf8(output.stdout).unwrap();
    for part in ["p [ms]", "did not finish", "0.250", "1.50", "not rewritten"] {
        assert!(table.contains(part), "{part} is missing in\n{table}");
    }
}

#[test]
fn only_builds_what_is_asked_for() {
    let bed = Bed::new();
    let output = bed.run(&["--only", "^p/(serial|aggregate-block)/tree$", "--repeat", "3"]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(bed.compilations(), 2);
    let results = bed.results();
    assert_eq!(results.runs.len(), 2);
    assert_eq!(results.inputs, ["tree"]);
    assert_eq!(results.variants, ["serial", "aggregate-block"]);
    assert_eq!(results.runs[0].report["repeats"], 3);
    let output = bed.run(&["--only", "nothing-like-this"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("matches --only"));
}

#[test]
fn compiling_alone_can_be_repeated_and_kept() {
    let bed = Bed::new();
    let extra = ["--only", "aggregate-block", "--compile-only", "--keep", "../kept"];
    for _ in 0..2 {
        let output = bed.run(&extra);
        assert!(output.status.success(), "{}", text(&output));
    }
    let kept = bed.path("kept/p/aggregate-block/corpus");
    let source = fs::read_to_string(kept.join("p.cu")).unwrap();
    assert_eq!(source.matches("// applied").count(), 1, "{source}");
    assert!(kept.join("p.cuh").is_file());
    assert_eq!(bed.results().runs, []);
}

#[test]
fn a_spent_budget_skips() {
    let bed = Bed::new();
    let output = bed.run(&["--only", "/serial/", "--budget-s", "0"]);
    assert!(output.status.success(), "{}", text(&output));
    let results = bed.results();
    assert_eq!(results.runs.len(), 5);
    assert!(results.runs.iter().all(|run| run.status == RunStatus::Skipped));
}

#[test]
fn without_a_gpu_tool_the_machine_is_unknown() {
    let bed = Bed::new();
    let smi = bed.path("bin/nvidia-smi");
    fs::write(&smi, "#!/bin/sh\nexit 9\n").unwrap();
    let output = bed.run(&["--only", "serial/tree"]);
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(bed.results().machine.gpu, None);
    assert!(Path::new(&bed.path("out/p.json")).is_file());
}
