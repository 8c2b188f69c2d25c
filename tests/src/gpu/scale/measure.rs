//! `gpu-scale`: builds programs, rewritten programs and peers, and runs them on inputs that grow.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use serde_json::Value;

use super::host_part::{PROGRAMS, Program, reads_files};
use super::record::{Run, SCHEMA, Scale, Status};
use crate::gpu::bench::{command_line, commit};
use crate::gpu::machine::{self, Machine};
use crate::gpu::process::{self, Finished};

/// The naive program isn't run on larger inputs when it has taken so long, in ms.
const LONG_MS: f64 = 1000.0;

/// A launch for which as much memory is set aside as is needed by default. The programs ask for more for their naive launches.
const PENDING: &str = "2048";

/// What is done to the programs. `None`: nothing.
const VARIANTS: [(&str, Option<&str>); 5] = [
    ("serial", None),
    ("naive", None),
    ("aggregate-grid", Some("aggregate-grid")),
    ("optimize", Some("optimize")),
    (OUTLINED, Some(OUTLINED)),
];

/// Each thread runs what it would launch, and one grid all rounds.
const OUTLINED: &str = "outlined";

/// Programs whose chains of launches become one grid, how their launch begins, and their peer's variant.
const CHAINS: [(&str, &str); 2] = [("sc", "compact<<<"), ("los", "look<<<")];

/// The sizes of their inputs.
const ELEMENTS: [u64; 3] = [1 << 22, 1 << 24, 1 << 26];

/// Measures rewritten programs of tests/corpus on inputs that grow, beside kernels that are written by hand. Writes OUT/scale.json.
///
/// Needs nvcc, a C++ compiler and a GPU, but neither Rust nor a network nor git.
#[derive(Debug, Clone, Parser)]
#[command(name = "gpu-scale", version)]
pub struct Options {
    /// Where the record goes.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// The gridfuse that rewrites.
    #[arg(long, value_name = "FILE")]
    pub gridfuse: PathBuf,
    /// The repository.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
    /// Powers of two: how many vertices.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [14, 16, 18, 20, 22])]
    pub sizes: Vec<u32>,
    /// Only these programs.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// How often each is run; one run for the largest inputs takes this many divided by four.
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub repeat: u32,
    /// Where graphs are kept; a directory of its own when left out.
    #[arg(long, value_name = "DIR")]
    pub graphs: Option<PathBuf>,
    /// The compiler, instead of the one that is found.
    #[arg(long, value_name = "FILE")]
    pub nvcc: Option<PathBuf>,
    /// The architecture to compile for.
    #[arg(long, value_name = "ARCH", default_value = "sm_90")]
    pub arch: String,
    /// The commit to write into the record, where git cannot be asked.
    #[arg(long, value_name = "ID")]
    pub commit: Option<String>,
    /// How long a run may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
    /// After how many seconds nothing is begun any more.
    #[arg(long, value_name = "SECONDS")]
    pub budget_s: Option<u64>,
}

/// Does everything; whether every run that ended was right.
///
/// # Errors
/// When something can't be built, or the record can't be written.
pub fn run(options: &Options) -> Result<bool> {
    let scratch = tempfile::tempdir()?;
    let root = std::path::absolute(&options.root)?;
    let bench = Bench {
        options,
        nvcc: machine::find_nvcc(options.nvcc.as_deref())?,
        gridfuse: std::path::absolute(&options.gridfuse)?,
        graphs: match &options.graphs {
            Some(directory) => std::path::absolute(directory)?,
            None => scratch.path().join("graphs"),
        },
        scratch: scratch.path().to_path_buf(),
        deadline: options
            .budget_s
            .map(|budget| Instant::now() + Duration::from_secs(budget)),
        root,
    };
    std::fs::create_dir_all(&bench.graphs)?;
    bench.build()?;
    bench.make_graphs()?;
    let mut record = Scale {
        schema: SCHEMA,
        machine: Machine::detect(&bench.nvcc),
        commit: options.commit.clone().unwrap_or_else(|| commit(&bench.root)),
        command: bench.own_command(),
        runs: Vec::new(),
    };
    for size in &options.sizes {
        for program in bench.programs() {
            for input in program.inputs {
                bench.measure(program, input, 1 << size, &mut record.runs)?;
                record.save(&options.out)?;
            }
        }
    }
    for (name, _) in bench.chains() {
        for elements in ELEMENTS {
            bench.measure_chain(name, elements, &mut record.runs)?;
            record.save(&options.out)?;
        }
    }
    ensure!(
        !record.runs.is_empty(),
        "nothing was measured: --only names no program, or the budget was too small"
    );
    record.save(&options.out)?;
    Ok(record
        .runs
        .iter()
        .all(|run| matches!(run.status, Status::Pass | Status::Timeout)))
}

struct Bench<'a> {
    options: &'a Options,
    root: PathBuf,
    nvcc: PathBuf,
    gridfuse: PathBuf,
    graphs: PathBuf,
    scratch: PathBuf,
    deadline: Option<Instant>,
}

impl Bench<'_> {
    fn wanted(&self, name: &str) -> bool {
        self.options.only.is_empty() || self.options.only.iter().any(|only| only == name)
    }

    fn programs(&self) -> impl Iterator<Item = &'static Program> {
        PROGRAMS.iter().filter(|program| self.wanted(program.name))
    }

    fn chains(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        CHAINS.into_iter().filter(|(name, _)| self.wanted(name))
    }

    fn own_command(&self) -> String {
        let sizes: Vec<String> = self.options.sizes.iter().map(u32::to_string).collect();
        let mut words = vec![
            "--gridfuse".to_owned(),
            "gridfuse".to_owned(),
            "--sizes".to_owned(),
            sizes.join(","),
        ];
        if !self.options.only.is_empty() {
            words.extend(["--only".to_owned(), self.options.only.join(",")]);
        }
        words.extend(["--repeat".to_owned(), self.options.repeat.to_string()]);
        command_line("gpu-scale", &words)
    }

    /// Runs a command that has to succeed.
    fn must(&self, command: &mut Command, what: &str) -> Result<Finished> {
        let finished = process::run(command, Duration::from_secs(600))?;
        ensure!(
            finished.success(),
            "{what}: {}\n{}",
            finished.describe(),
            finished.printed()
        );
        Ok(finished)
    }

    fn compile(&self, source: &Path, output: &str, launches: bool) -> Result<()> {
        let mut command = Command::new(&self.nvcc);
        command
            .args(["-std=c++17", "-O3"])
            .arg(format!("-arch={}", self.options.arch));
        // A toolkit from Python packages does not know its own library directory.
        if let Some(toolkit) = self.nvcc.parent().and_then(Path::parent)
            && toolkit.join("lib/libcudadevrt.a").is_file()
        {
            command.arg(format!("-L{}", toolkit.join("lib").display()));
        }
        if launches {
            command.args(["-rdc=true", "-lcudadevrt"]);
        }
        command.arg(source).arg("-o").arg(self.scratch.join(output));
        self.must(&mut command, &format!("compiling {}", source.display()))
            .map(drop)
    }

    /// Copies a program into a directory of its own, applies what a variant takes and lets it read files.
    fn prepare(&self, name: &str, launch: &str, apply: Option<&str>, program: Option<&Program>) -> Result<PathBuf> {
        let directory = self.scratch.join(format!("{name}-{}", apply.unwrap_or("plain")));
        std::fs::create_dir_all(&directory)?;
        let source = directory.join(format!("{name}.cu"));
        let original = self.root.join("tests/corpus").join(format!("{name}.cu"));
        std::fs::copy(&original, &source).with_context(|| format!("{} can't be copied", original.display()))?;
        std::fs::copy(self.root.join("tests/gpu/scale/scale.h"), directory.join("scale.h"))?;
        let rounds = program.and_then(|program| program.rounds).unwrap_or_default();
        let steps = match apply {
            None => Vec::new(),
            Some(OUTLINED) => vec![("serialize", launch), ("outline-iteration", rounds)],
            Some(id) => vec![(id, launch)],
        };
        for (id, place) in steps {
            let text = std::fs::read_to_string(&source)?;
            let line = text.lines().position(|line| line.contains(place));
            let line = line.with_context(|| format!("{name}.cu has no `{place}`"))? + 1;
            let mut command = Command::new(&self.gridfuse);
            command.arg("rewrite").arg(&source);
            command.args(["--at", &line.to_string(), "--apply", id, "--in-place"]);
            self.must(&mut command, &format!("{id} of {name}"))?;
        }
        if let Some(program) = program {
            let text = std::fs::read_to_string(&source)?;
            std::fs::write(&source, reads_files(program, &text)?)?;
        }
        Ok(source)
    }

    fn build(&self) -> Result<()> {
        type Job<'b> = Box<dyn Fn() -> Result<()> + Send + Sync + 'b>;
        let mut jobs: Vec<Job<'_>> = vec![Box::new(|| {
            self.compile(&self.root.join("tests/gpu/scale/peers.cu"), "peers", false)
        })];
        for program in self.programs() {
            let outlined = program.rounds.map(|_| Some(OUTLINED));
            for apply in [None, Some("aggregate-grid"), Some("optimize")]
                .into_iter()
                .chain(outlined)
            {
                jobs.push(Box::new(move || {
                    let source = self.prepare(program.name, program.launch, apply, Some(program))?;
                    self.compile(&source, &binary(program.name, apply), true)
                }));
            }
        }
        for (name, launch) in self.chains() {
            jobs.push(Box::new(move || {
                let source = self.prepare(name, launch, Some("promote-lookback"), None)?;
                self.compile(&source, &binary(name, Some("promote-lookback")), true)
            }));
        }
        let failures: String = std::thread::scope(|scope| {
            let running: Vec<_> = jobs.iter().map(|job| scope.spawn(job)).collect();
            let results = running.into_iter().map(|job| match job.join() {
                Ok(result) => result.err().map_or_else(String::new, |error| format!("{error:#}\n")),
                Err(_) => "a build has panicked\n".to_owned(),
            });
            results.collect()
        });
        ensure!(failures.is_empty(), "{failures}");
        Ok(())
    }

    fn make_graphs(&self) -> Result<()> {
        let maker = self.scratch.join("make_graphs");
        let mut command = Command::new("c++");
        command.args(["-std=c++17", "-O2", "-pthread"]);
        command
            .arg(self.root.join("tests/gpu/scale/make_graphs.cpp"))
            .arg("-o")
            .arg(&maker);
        self.must(&mut command, "compiling make_graphs.cpp")?;
        let mut names = Vec::new();
        for program in self.programs() {
            for (input, size) in program
                .inputs
                .iter()
                .flat_map(|i| self.options.sizes.iter().map(move |s| (i, s)))
            {
                let name = format!("{}-{input}-{}", program.family, 1u64 << size);
                if !names.contains(&name) && !self.graphs.join(format!("{name}.graph")).is_file() {
                    names.push(name);
                }
            }
        }
        if names.is_empty() {
            return Ok(());
        }
        let mut command = Command::new(&maker);
        command.arg(&self.graphs).args(&names);
        self.must(&mut command, "making graphs").map(drop)
    }

    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn measure(&self, program: &Program, input: &str, vertices: u64, runs: &mut Vec<Run>) -> Result<()> {
        let repeat = match vertices {
            0..=0xf_ffff => self.options.repeat,
            _ => self.options.repeat.div_ceil(4),
        };
        let common = |words: &[&str]| {
            let mut all: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let rest = [
                ("--input", input.to_owned()),
                ("--vertices", vertices.to_string()),
                ("--repeat", repeat.to_string()),
            ];
            all.extend(rest.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]));
            all
        };
        let key = |variant: &str| (program.name, input, vertices, variant.to_owned());
        for (variant, apply) in VARIANTS {
            if variant == OUTLINED && program.rounds.is_none() {
                continue;
            }
            let took_long = runs.iter().any(|run| {
                run.variant == variant
                    && run.program == program.name
                    && run.input == input
                    && (run.status == Status::Timeout || run.time_ms.is_some_and(|time| time > LONG_MS))
            });
            if variant == "naive" && took_long {
                continue;
            }
            let words = match (variant, apply) {
                ("naive", _) => common(&["--variant", "naive"]),
                (_, None) => common(&["--variant", variant, "--pending", PENDING]),
                (_, Some(_)) => common(&["--variant", "naive", "--pending", PENDING, "--label", variant]),
            };
            self.one(&binary(program.name, apply), &words, key(variant), runs)?;
        }
        for peer in program.peers {
            let words = common(&["--bench", program.name, "--variant", peer]);
            self.one("peers", &words, key(&format!("hand-{peer}")), runs)?;
        }
        Ok(())
    }

    fn measure_chain(&self, name: &str, elements: u64, runs: &mut Vec<Run>) -> Result<()> {
        let number = elements.to_string();
        let repeat = self.options.repeat.to_string();
        let own = [
            "--input",
            "large",
            "--variant",
            "naive",
            "--elements",
            &number,
            "--repeat",
            &repeat,
        ];
        let own: Vec<String> = own.iter().map(|word| (*word).to_owned()).collect();
        let key = |variant: &str| (name, "data", elements, variant.to_owned());
        self.one(
            &binary(name, Some("promote-lookback")),
            &own,
            key("promote-lookback"),
            runs,
        )?;
        let peer = [
            "--bench",
            name,
            "--elements",
            &number,
            "--variant",
            "cub",
            "--repeat",
            &repeat,
        ];
        let peer: Vec<String> = peer.iter().map(|word| (*word).to_owned()).collect();
        self.one("peers", &peer, key("cub"), runs)
    }

    fn one(&self, program: &str, words: &[String], key: (&str, &str, u64, String), runs: &mut Vec<Run>) -> Result<()> {
        if self.is_over() {
            return Ok(());
        }
        let mut command = Command::new(self.scratch.join(program));
        command.args(words).env("SCALE_DIR", &self.graphs);
        let finished = process::run(&mut command, Duration::from_secs(self.options.timeout))?;
        let (name, input, vertices, variant) = key;
        let mut run = Run {
            program: name.to_owned(),
            input: input.to_owned(),
            vertices,
            edges: None,
            variant,
            status: Status::Failed,
            time_ms: None,
            repeats: None,
            command: command_line(program, words),
        };
        let report = finished
            .stdout
            .lines()
            .find_map(|line| serde_json::from_str::<Value>(line).ok());
        match report {
            _ if finished.status.is_none() => run.status = Status::Timeout,
            Some(report) => {
                let verdict = ["verdict", "status"].iter().find_map(|name| report.get(name)?.as_str());
                run.status = match verdict {
                    Some("pass") => Status::Pass,
                    Some(_) => Status::Wrong,
                    None => bail!("{}: no verdict in {report}", run.command),
                };
                run.time_ms = ["time_ms", "ms"].iter().find_map(|name| report.get(name)?.as_f64());
                run.repeats = report.get("repeats").and_then(Value::as_u64);
                run.edges = ["edges", "work"]
                    .iter()
                    .find_map(|name| report.get(name)?.as_u64())
                    .filter(|_| input != "data");
            }
            None => eprintln!(
                "gpu-scale: {}: {}\n{}",
                run.command,
                finished.describe(),
                finished.printed()
            ),
        }
        let time = run
            .time_ms
            .map_or_else(|| "–".to_owned(), |time| format!("{time:.4} ms"));
        println!(
            "{} {} {} {}: {time} {:?}",
            run.program, run.input, run.vertices, run.variant, run.status
        );
        runs.push(run);
        Ok(())
    }
}

fn binary(name: &str, apply: Option<&str>) -> String {
    format!("{name}.{}", apply.unwrap_or("plain"))
}
