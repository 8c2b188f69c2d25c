//! Doing what a plan says: rewrite, compile, run, judge, write down.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use regex::Regex;

use super::machine::{self, Machine};
use super::plan::{self, Defaults, Plan, Program, Sanitize, Variant};
use super::process::{self, Finished};
use super::record::{self, Build, BuildStatus, Results, Run, RunStatus, SanitizeStatus, Sanitized};
use super::{sources, tables};

/// Measures the corpus on a GPU.
///
/// Needs nvcc and a GPU, but neither Rust nor a network nor git, so this binary and `gridfuse` can be
/// carried to a machine that has nothing else. Results go to OUT/<program>.json.
#[derive(Debug, Clone, Parser)]
#[command(name = "gpu-bench", version)]
pub struct Options {
    /// What to measure.
    #[arg(long, value_name = "FILE", default_value = "tests/gpu/plan.toml")]
    pub plan: PathBuf,
    /// The gridfuse binary that does the rewrites.
    #[arg(long, value_name = "FILE")]
    pub gridfuse: PathBuf,
    /// Where the results go.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Only what matches, of `program/variant/input` and `program/variant/sanitizer`.
    #[arg(long, value_name = "REGEX")]
    pub only: Option<Regex>,
    /// How often programs repeat their measurement, instead of what the plan says.
    #[arg(long, value_name = "N")]
    pub repeat: Option<u32>,
    /// The repository; paths in the plan are relative to it.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
    /// The compiler, instead of the one that is found.
    #[arg(long, value_name = "FILE")]
    pub nvcc: Option<PathBuf>,
    /// The architecture to compile for.
    #[arg(long, value_name = "ARCH", default_value = "sm_90")]
    pub arch: String,
    /// The commit to write into the results, where git cannot be asked.
    #[arg(long, value_name = "ID")]
    pub commit: Option<String>,
    /// How many compilations run side by side; one for each core when left out.
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// After how many seconds nothing new begins, and what still runs is given up.
    #[arg(long, value_name = "SECONDS")]
    pub budget_s: Option<u64>,
    /// Where the rewritten sources and the binaries go and stay.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Rewrite and compile, but run nothing; needs no GPU.
    #[arg(long)]
    pub compile_only: bool,
}

/// Does everything, and returns whether nothing was broken.
pub fn run(options: &Options) -> Result<bool> {
    let bench = Bench::new(options)?;
    let mut jobs = bench.select()?;
    ensure!(
        jobs.iter().any(|job| !job.builds.is_empty()),
        "nothing in the plan matches --only"
    );
    bench.build_all(&mut jobs)?;
    let mut healthy = true;
    for job in &jobs {
        if job.builds.is_empty() {
            continue;
        }
        let results = bench.measure(job)?;
        healthy &= results.builds.iter().all(|build| build.status == BuildStatus::Ok)
            && !results.runs.iter().any(|run| run.status.is_broken())
            && !results
                .sanitize
                .iter()
                .any(|run| matches!(run.status, SanitizeStatus::Findings | SanitizeStatus::Failed));
        print!("{}", tables::terminal(&results));
    }
    Ok(healthy)
}

struct Bench {
    plan: Plan,
    options: Options,
    root: PathBuf,
    gridfuse: PathBuf,
    nvcc: PathBuf,
    machine: Machine,
    commit: String,
    scratch: PathBuf,
    /// Removes the scratch directory at the end, if nobody wants to keep it.
    _temporary: Option<tempfile::TempDir>,
    deadline: Option<Instant>,
}

/// What is to be done about one program.
struct Job<'a> {
    program: &'a Program,
    builds: Vec<Binary<'a>>,
    runs: Vec<Planned<'a>>,
    sanitize: Vec<PlannedSanitize<'a>>,
}

/// A binary that some variants share.
struct Binary<'a> {
    recipe: &'a Variant,
    variants: Vec<&'a Variant>,
    record: Option<Build>,
    directory: PathBuf,
    /// What was compiled, and how; empty where nothing was.
    code: String,
}

struct Planned<'a> {
    variant: &'a Variant,
    baseline: bool,
    input: &'a plan::Input,
}

struct PlannedSanitize<'a> {
    variant: &'a Variant,
    tool: &'a str,
    args: &'a [String],
    settings: &'a Sanitize,
}

impl Binary<'_> {
    /// Whether a variant needs no binary of its own.
    fn serves(&self, variant: &Variant) -> bool {
        self.recipe.same_binary(variant)
    }
}

/// What takes longer than the fastest by no more than this factor is run in [`PROCESSES`] processes.
const CLOSE: f64 = 1.3;

/// In how many.
const PROCESSES: usize = 3;

/// These are, too, whatever they take: what the others are compared with.
const ALWAYS_AGAIN: [&str; 3] = ["serial", "optimize", "optimize-p2048"];

impl Job<'_> {
    /// Two runs of the same program in the same way, whatever the variants are called.
    fn is_same(&self, one: &Planned<'_>, other: &Planned<'_>) -> bool {
        let codes = [one, other].map(|run| self.binary(run.variant).map_or("", |binary| binary.code.as_str()));
        let [first, second] = codes;
        one.input.name == other.input.name
            && one.variant.args == other.variant.args
            && !first.is_empty()
            && first == second
    }

    fn binary(&self, variant: &Variant) -> Option<&Binary<'_>> {
        self.builds.iter().find(|binary| binary.serves(variant))
    }
}

impl Bench {
    fn new(options: &Options) -> Result<Bench> {
        let absolute =
            |path: &Path| std::path::absolute(path).with_context(|| format!("{}: no such place", path.display()));
        ensure!(
            options.gridfuse.is_file(),
            "--gridfuse: {} is not a file",
            options.gridfuse.display()
        );
        let nvcc = absolute(&machine::find_nvcc(options.nvcc.as_deref())?)?;
        let root = absolute(&options.root)?;
        let (scratch, temporary) = match &options.keep {
            Some(directory) => (absolute(directory)?, None),
            None => {
                let temporary = tempfile::tempdir()?;
                (temporary.path().to_path_buf(), Some(temporary))
            }
        };
        std::fs::create_dir_all(&options.out).with_context(|| format!("{} cannot be made", options.out.display()))?;
        Ok(Bench {
            plan: Plan::load(&options.plan)?,
            gridfuse: absolute(&options.gridfuse)?,
            machine: Machine::detect(&nvcc),
            commit: options.commit.clone().unwrap_or_else(|| commit(&root)),
            deadline: options
                .budget_s
                .map(|seconds| Instant::now() + Duration::from_secs(seconds)),
            options: options.clone(),
            root,
            nvcc,
            scratch,
            _temporary: temporary,
        })
    }

    fn defaults(&self) -> &Defaults {
        &self.plan.defaults
    }

    /// Picks what `--only` asks for, and finds out which binaries that needs.
    fn select(&self) -> Result<Vec<Job<'_>>> {
        let wanted = |program: &Program, variant: &Variant, last: &str| {
            let name = format!("{}/{}/{last}", program.name, variant.name);
            self.options.only.as_ref().is_none_or(|only| only.is_match(&name))
        };
        let mut jobs = Vec::new();
        for program in &self.plan.programs {
            let mut job = Job {
                program,
                builds: Vec::new(),
                runs: Vec::new(),
                sanitize: Vec::new(),
            };
            for (variant, baseline) in program.all_variants() {
                let inputs = program.inputs.iter().filter(|input| {
                    let names = variant.inputs.as_ref();
                    names.is_none_or(|names| names.contains(&input.name)) && wanted(program, variant, &input.name)
                });
                job.runs.extend(inputs.map(|input| Planned {
                    variant,
                    baseline,
                    input,
                }));
            }
            if let Some(settings) = &self.plan.sanitize {
                for run in settings.runs.iter().filter(|run| run.program == program.name) {
                    for tool in &settings.tools {
                        job.sanitize.extend(
                            run.selected(program)
                                .into_iter()
                                .filter(|variant| wanted(program, variant, tool))
                                .map(|variant| PlannedSanitize {
                                    variant,
                                    tool,
                                    args: &run.args,
                                    settings,
                                }),
                        );
                    }
                }
            }
            for (variant, _) in program.all_variants() {
                let used = job
                    .runs
                    .iter()
                    .map(|run| run.variant)
                    .chain(job.sanitize.iter().map(|run| run.variant))
                    .any(|used| std::ptr::eq(used, variant));
                if !used {
                    continue;
                }
                match job.builds.iter_mut().find(|binary| binary.serves(variant)) {
                    Some(binary) => binary.variants.push(variant),
                    None => job.builds.push(Binary {
                        recipe: variant,
                        variants: vec![variant],
                        record: None,
                        code: String::new(),
                        directory: self.scratch.join(&program.name).join(&variant.name),
                    }),
                }
            }
            jobs.push(job);
        }
        Ok(jobs)
    }

    /// Rewrites and compiles everything, several at a time.
    fn build_all(&self, jobs: &mut [Job<'_>]) -> Result<()> {
        let queue: VecDeque<_> = jobs
            .iter_mut()
            .flat_map(|job| {
                let program = job.program;
                job.builds.iter_mut().map(move |binary| (program, binary))
            })
            .collect();
        let count = queue.len();
        let queue = Mutex::new(queue);
        let workers = self
            .options
            .jobs
            .or(self.machine.cores)
            .unwrap_or(1)
            .clamp(1, count.max(1));
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..workers)
                .map(|_| {
                    scope.spawn(|| -> Result<()> {
                        loop {
                            let next = queue.lock().unwrap_or_else(|poison| poison.into_inner()).pop_front();
                            let Some((program, binary)) = next else {
                                return Ok(());
                            };
                            let record = self.build(program, binary)?;
                            let how = match record.status {
                                BuildStatus::Ok => "built".to_owned(),
                                _ => record.message.clone().unwrap_or_default(),
                            };
                            eprintln!("{}/{}: {how}", program.name, binary.recipe.name);
                            if record.status == BuildStatus::Ok {
                                binary.code = self.code(program, binary);
                            }
                            binary.record = Some(record);
                        }
                    })
                })
                .collect();
            for worker in workers {
                match worker.join() {
                    Ok(result) => result?,
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(())
        })
    }

    fn build(&self, program: &Program, binary: &Binary<'_>) -> Result<Build> {
        let start = Instant::now();
        let source = binary.recipe.source.as_ref().unwrap_or(&program.source);
        let mut build = Build {
            variants: binary.variants.iter().map(|variant| variant.name.clone()).collect(),
            source: source.display().to_string(),
            commands: Vec::new(),
            status: BuildStatus::Ok,
            message: None,
            seconds: 0.0,
        };
        if let Err((status, error)) = self.try_build(program, binary, source, &mut build.commands) {
            build.status = status;
            build.message = Some(self.shown(&format!("{error:#}")));
        }
        build.seconds = rounded(start.elapsed());
        Ok(build)
    }

    fn try_build(
        &self,
        program: &Program,
        binary: &Binary<'_>,
        source: &Path,
        commands: &mut Vec<String>,
    ) -> Result<(), (BuildStatus, anyhow::Error)> {
        let plan_failed = |error| (BuildStatus::PlanFailed, error);
        let directory = &binary.directory;
        if directory.exists() {
            // Left by an earlier call with the same --keep; a rewritten source must not be rewritten again.
            std::fs::remove_dir_all(directory)
                .with_context(|| format!("{} cannot be removed", directory.display()))
                .map_err(plan_failed)?;
        }
        sources::copy(&self.root, source, &program.files, directory).map_err(plan_failed)?;

        let recipe = binary.recipe;
        if let Some(at) = &recipe.at {
            let read = || std::fs::read_to_string(directory.join(source));
            for at in at.lines() {
                let text = read().map_err(|error| plan_failed(error.into()))?;
                let line = plan::launch_line(&text, at)
                    .with_context(|| source.display().to_string())
                    .map_err(plan_failed)?;
                let mut words = vec!["rewrite".to_owned(), source.display().to_string()];
                words.extend(["--at".to_owned(), line.to_string()]);
                words.extend(["--apply".to_owned(), recipe.apply.join(",")]);
                for (key, value) in &recipe.set {
                    let value = plan::option_text(value).map_err(plan_failed)?;
                    words.extend(["--set".to_owned(), format!("{key}={value}")]);
                }
                words.push("--in-place".to_owned());
                commands.push(command_line("gridfuse", &words));
                let failed = |error| (BuildStatus::RewriteFailed, error);
                self.step(&self.gridfuse, &words, directory).map_err(failed)?;
                if read().is_ok_and(|after| after == text) {
                    return Err(failed(anyhow::anyhow!("gridfuse left the source as it was")));
                }
            }
        }

        let words = self.compile_words(program, recipe, source);
        commands.push(self.shown(&command_line("nvcc", &words)));
        self.step(&self.nvcc, &words, directory)
            .map_err(|error| (BuildStatus::CompileFailed, error))
    }

    /// The source as it was compiled, and the words of the compiler. The other files are the same for all.
    fn code(&self, program: &Program, binary: &Binary<'_>) -> String {
        let source = binary.recipe.source.as_ref().unwrap_or(&program.source);
        let text = std::fs::read_to_string(binary.directory.join(source)).unwrap_or_default();
        format!(
            "{}\n{text}",
            self.compile_words(program, binary.recipe, source).join("\n")
        )
    }

    fn compile_words(&self, program: &Program, recipe: &Variant, source: &Path) -> Vec<String> {
        let mut words = vec!["-std=c++17".to_owned(), "-rdc=true".to_owned()];
        words.push(format!("-arch={}", self.options.arch));
        let flags = [&self.defaults().nvcc_flags, &program.nvcc_flags, &recipe.nvcc_flags];
        words.extend(flags.into_iter().flatten().cloned());
        for directory in &self.defaults().include_dirs {
            words.push(format!("-I{}", self.root.join(directory).display()));
        }
        words.push(source.display().to_string());
        words.extend(["-o".to_owned(), program.name.clone()]);
        // A toolkit from Python packages does not know its own library directory.
        if let Some(toolkit) = self.toolkit()
            && toolkit.join("lib/libcudadevrt.a").is_file()
        {
            words.push(format!("-L{}", toolkit.join("lib").display()));
        }
        words.push("-lcudadevrt".to_owned());
        words
    }

    fn toolkit(&self) -> Option<&Path> {
        self.nvcc.parent().and_then(Path::parent)
    }

    /// Runs a step of a build; its output is the error if it fails.
    fn step(&self, program: &Path, words: &[String], directory: &Path) -> Result<()> {
        let mut command = Command::new(program);
        command.args(words).current_dir(directory);
        let limit = Duration::from_secs(self.defaults().build_timeout_s);
        let finished = process::run(&mut command, limit)?;
        ensure!(finished.success(), "{}: {}", finished.describe(), finished.printed());
        Ok(())
    }

    /// Runs everything of one program, and writes the results down after every step.
    fn measure(&self, job: &Job<'_>) -> Result<Results> {
        let program = job.program;
        let mut results = Results {
            schema: record::SCHEMA,
            program: program.name.clone(),
            commit: self.commit.clone(),
            date: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            machine: self.machine.clone(),
            variants: program
                .all_variants()
                .filter(|(variant, _)| {
                    let mut used = job.builds.iter().flat_map(|binary| &binary.variants);
                    used.any(|used| std::ptr::eq(*used, *variant))
                })
                .map(|(variant, _)| variant.name.clone())
                .collect(),
            inputs: program
                .inputs
                .iter()
                .filter(|input| job.runs.iter().any(|run| run.input.name == input.name))
                .map(|input| input.name.clone())
                .collect(),
            builds: job.builds.iter().filter_map(|binary| binary.record.clone()).collect(),
            runs: Vec::new(),
            sanitize: Vec::new(),
        };
        results.save(&self.options.out)?;
        if self.options.compile_only {
            return Ok(results);
        }
        // Of each run the one that ran the same program in the same way, which may be itself.
        let mut same: Vec<usize> = Vec::new();
        for (number, planned) in job.runs.iter().enumerate() {
            let known = (0..number).find(|other| same[*other] == *other && job.is_same(&job.runs[*other], planned));
            same.push(known.unwrap_or(number));
            let run = match known {
                Some(known) => Run {
                    variant: planned.variant.name.clone(),
                    baseline: planned.baseline,
                    ..results.runs[known].clone()
                },
                None => self.measure_one(job, planned)?,
            };
            let how = match run.time_ms {
                Some(time) => format!("{time} ms"),
                None => run.status.as_str().to_owned(),
            };
            eprintln!("{}/{}/{}: {how}", program.name, run.variant, run.input);
            results.runs.push(run);
            if program.compare_checksums {
                record::compare_checksums(&mut results.runs);
            }
            results.save(&self.options.out)?;
        }
        self.measure_again(job, &same, &mut results)?;
        results.sanitize = self.sanitize_all(job)?;
        results.save(&self.options.out)?;
        Ok(results)
    }

    /// Runs what may be the fastest a few times more, each time in another process, all in turn: where the host waits for a kernel after
    /// the other, processes differ by more than the runs within one, as the host isn't always there at once. The fastest process counts.
    /// `same` says which run has measured each.
    fn measure_again(&self, job: &Job<'_>, same: &[usize], results: &mut Results) -> Result<()> {
        let least = |input: &str| {
            let times = results.runs.iter().filter(|run| run.input == input);
            times.filter_map(|run| run.time_ms).fold(f64::INFINITY, f64::min)
        };
        let is_named = |number: usize| {
            let names = (0..same.len())
                .filter(|n| same[*n] == number)
                .map(|n| &results.runs[n].variant);
            names.into_iter().any(|name| ALWAYS_AGAIN.contains(&name.as_str()))
        };
        let again: Vec<usize> = (0..same.len())
            .filter(|number| {
                let run = &results.runs[*number];
                let is_close = |time: f64| time <= CLOSE * least(&run.input);
                same[*number] == *number && run.time_ms.is_some_and(|time| is_close(time) || is_named(*number))
            })
            .collect();
        for number in &again {
            results.runs[*number].processes_ms = results.runs[*number].time_ms.into_iter().collect();
        }
        for _ in 1..PROCESSES {
            for number in &again {
                let run = self.measure_one(job, &job.runs[*number])?;
                let known = &mut results.runs[*number];
                let checksum = |run: &Run| run.report.get("checksum").cloned();
                if job.program.compare_checksums && run.time_ms.is_some() && checksum(&run) != checksum(known) {
                    record::drop_times(&mut known.report);
                    known.status = RunStatus::Wrong;
                    known.time_ms = None;
                    known.message = Some("another process of this run printed another checksum".to_owned());
                } else if run.status.is_broken() {
                    *known = run;
                } else if let (Some(time), Some(before)) = (run.time_ms, known.time_ms) {
                    known.processes_ms.push(time);
                    known.time_ms = Some(before.min(time));
                }
            }
        }
        for (number, &first) in same.iter().enumerate() {
            if first != number {
                let measured = &results.runs[first];
                let (status, time_ms, processes_ms) =
                    (measured.status, measured.time_ms, measured.processes_ms.clone());
                let run = &mut results.runs[number];
                (run.status, run.time_ms, run.processes_ms) = (status, time_ms, processes_ms);
            }
        }
        results.save(&self.options.out)
    }

    /// Runs under compute-sanitizer, several side by side: nothing is timed there.
    fn sanitize_all(&self, job: &Job<'_>) -> Result<Vec<Sanitized>> {
        let queue = Mutex::new(job.sanitize.iter().enumerate());
        let workers = self.machine.cores.unwrap_or(1).div_ceil(2).clamp(1, 8);
        let mut runs = std::thread::scope(|scope| -> Result<Vec<(usize, Sanitized)>> {
            let work = || -> Result<Vec<(usize, Sanitized)>> {
                let mut done = Vec::new();
                loop {
                    let next = queue.lock().unwrap_or_else(|poison| poison.into_inner()).next();
                    let Some((index, planned)) = next else {
                        return Ok(done);
                    };
                    let run = self.sanitize_one(job, planned)?;
                    let status = run.status.as_str();
                    eprintln!("{}/{}/{}: {status}", job.program.name, run.variant, run.tool);
                    done.push((index, run));
                }
            };
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let mut runs = Vec::new();
            for worker in workers {
                match worker.join() {
                    Ok(done) => runs.extend(done?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(runs)
        })?;
        runs.sort_by_key(|(index, _)| *index);
        Ok(runs.into_iter().map(|(_, run)| run).collect())
    }

    /// The arguments of a run.
    fn run_words(&self, variant: &Variant, input: &str, args: &[String], repeat: u32) -> Vec<String> {
        [args, &variant.args, &self.defaults().run_args]
            .into_iter()
            .flatten()
            .map(|word| {
                word.replace("{repeat}", &repeat.to_string())
                    .replace("{variant}", &variant.name)
                    .replace("{input}", input)
            })
            .collect()
    }

    /// How long a run may take, and whether that is all that the plan gives it.
    fn limit(&self, seconds: u64) -> Option<(Duration, bool)> {
        let limit = Duration::from_secs(seconds);
        let Some(deadline) = self.deadline else {
            return Some((limit, true));
        };
        let left = deadline.saturating_duration_since(Instant::now());
        (!left.is_zero()).then(|| (limit.min(left), limit <= left))
    }

    fn measure_one(&self, job: &Job<'_>, planned: &Planned<'_>) -> Result<Run> {
        let (program, variant) = (job.program, planned.variant);
        let repeat = self.options.repeat.unwrap_or(self.defaults().repeat);
        let words = self.run_words(variant, &planned.input.name, &planned.input.args, repeat);
        let executable = format!("./{}", program.name);
        let mut run = Run {
            variant: variant.name.clone(),
            baseline: planned.baseline,
            input: planned.input.name.clone(),
            command: command_line(&executable, &words),
            status: RunStatus::NotBuilt,
            time_ms: None,
            processes_ms: Vec::new(),
            report: serde_json::Map::new(),
            message: None,
            wall_s: 0.0,
        };
        let Some(directory) = built(job, variant) else {
            return Ok(run);
        };
        let seconds = variant
            .timeout_s
            .or(program.timeout_s)
            .unwrap_or(self.defaults().timeout_s);
        let Some((limit, whole)) = self.limit(seconds) else {
            run.status = RunStatus::Skipped;
            run.message = Some("no time was left".to_owned());
            return Ok(run);
        };
        let mut command = Command::new(directory.join(&program.name));
        command.args(&words).current_dir(directory);
        let finished = match process::run(&mut command, limit) {
            Ok(finished) => finished,
            Err(error) => {
                run.status = RunStatus::Failed;
                run.message = Some(self.shown(&format!("{error:#}")));
                return Ok(run);
            }
        };
        run.wall_s = rounded(finished.wall);
        if finished.status.is_none() {
            run.status = if whole {
                RunStatus::DidNotFinish
            } else {
                RunStatus::Skipped
            };
            run.message = Some(if whole {
                format!("did not finish in {seconds} s")
            } else {
                format!("given up after {:.0} s, as no time was left", run.wall_s)
            });
            return Ok(run);
        }
        let judged = record::judge(
            &finished.stdout,
            finished.success(),
            &finished.describe(),
            &finished.printed(),
        );
        run.status = judged.status;
        run.time_ms = judged.time_ms;
        run.report = judged.report;
        run.message = judged.message.map(|message| self.shown(&message));
        Ok(run)
    }

    fn sanitize_one(&self, job: &Job<'_>, planned: &PlannedSanitize<'_>) -> Result<Sanitized> {
        let (program, variant) = (job.program, planned.variant);
        let mut words = vec!["--tool".to_owned(), planned.tool.to_owned()];
        words.push(format!("./{}", program.name));
        words.extend(self.run_words(variant, planned.tool, planned.args, 1));
        let mut run = Sanitized {
            tool: planned.tool.to_owned(),
            variant: variant.name.clone(),
            command: command_line("compute-sanitizer", &words),
            status: SanitizeStatus::Skipped,
            message: String::new(),
            wall_s: 0.0,
        };
        let Some(directory) = built(job, variant) else {
            run.message = "there is no binary".to_owned();
            return Ok(run);
        };
        let Some(sanitizer) = self.sanitizer() else {
            run.message = "there is no compute-sanitizer".to_owned();
            return Ok(run);
        };
        let Some((limit, whole)) = self.limit(planned.settings.timeout_s) else {
            run.message = "no time was left".to_owned();
            return Ok(run);
        };
        let mut command = Command::new(sanitizer);
        command.args(&words).current_dir(directory);
        match process::run(&mut command, limit) {
            Ok(finished) => {
                run.wall_s = rounded(finished.wall);
                let (status, message) = judge_sanitizer(&finished);
                run.status = match status {
                    SanitizeStatus::DidNotFinish if !whole => SanitizeStatus::Skipped,
                    status => status,
                };
                run.message = self.shown(&message);
            }
            Err(error) => {
                run.status = SanitizeStatus::Failed;
                run.message = self.shown(&format!("{error:#}"));
            }
        }
        Ok(run)
    }

    fn sanitizer(&self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let toolkit = self.toolkit().into_iter();
        std::env::split_paths(&path)
            .chain(toolkit.flat_map(|toolkit| [toolkit.join("bin"), toolkit.join("compute-sanitizer")]))
            .map(|directory| directory.join("compute-sanitizer"))
            .find(|tool| tool.is_file())
    }

    /// A text without the places of this machine.
    fn shown(&self, text: &str) -> String {
        let mut shown = text.to_owned();
        let mut replace = |path: &Path, name: &str| {
            let path = path.display().to_string();
            if path.len() > 1 {
                shown = shown.replace(&path, name);
            }
        };
        // Inner places first: the toolkit may be in the repository's build directory.
        replace(&self.scratch, "$SCRATCH");
        if let Some(toolkit) = self.toolkit() {
            replace(toolkit, "$CUDA");
        }
        replace(&self.root, "$ROOT");
        shown
    }
}

/// The directory of a variant's binary, if there is one.
fn built<'a>(job: &'a Job<'_>, variant: &Variant) -> Option<&'a Path> {
    let binary = job.binary(variant)?;
    (binary.record.as_ref()?.status == BuildStatus::Ok).then_some(binary.directory.as_path())
}

/// Reads the summary of compute-sanitizer.
fn judge_sanitizer(finished: &Finished) -> (SanitizeStatus, String) {
    if finished.status.is_none() {
        return (SanitizeStatus::DidNotFinish, finished.describe());
    }
    let output = format!("{}\n{}", finished.stdout, finished.stderr);
    let summaries: Vec<&str> = output
        .lines()
        .filter_map(|line| Some(&line[line.find("SUMMARY:")?..]))
        .collect();
    // racecheck and synccheck count this notice itself as one finding.
    let notice = "CUDA Dynamic Parallelism is not supported by the selected tool";
    let count_of = |summary: &&str| {
        summary
            .split_whitespace()
            .nth(1)
            .and_then(|count| count.parse::<u64>().ok())
    };
    if output.contains(notice) && summaries.len() == 1 && summaries.first().and_then(count_of) == Some(1) {
        return (SanitizeStatus::Unsupported, notice.to_owned());
    }
    if summaries.iter().any(|summary| count_of(summary).unwrap_or(1) > 0) {
        return (
            SanitizeStatus::Findings,
            format!("{}\n{}", summaries.join("\n"), finished.printed()),
        );
    }
    if summaries.is_empty() || !finished.success() {
        let message = format!("{}: {}", finished.describe(), finished.printed());
        return (SanitizeStatus::Failed, message);
    }
    (SanitizeStatus::Clean, summaries.join("\n"))
}

/// A command as one types it.
pub(super) fn command_line(program: &str, words: &[String]) -> String {
    let mut line = program.to_owned();
    for word in words {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,+:@%$".contains(c);
        line.push(' ');
        if !word.is_empty() && word.chars().all(plain) {
            line.push_str(word);
        } else {
            line.push_str(&format!("'{}'", word.replace('\'', "'\\''")));
        }
    }
    line
}

/// Seconds, to the millisecond.
pub(super) fn rounded(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

/// The commit that is checked out, marked when files differ from it.
pub(super) fn commit(root: &Path) -> String {
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(args).current_dir(root);
        let finished = process::run(&mut command, Duration::from_secs(20)).ok()?;
        finished.success().then(|| finished.stdout.trim().to_owned())
    };
    match git(&["rev-parse", "HEAD"]) {
        Some(id) => match git(&["status", "--porcelain", "--untracked-files=no"]) {
            Some(changes) if changes.is_empty() => id,
            _ => format!("{id} with changes"),
        },
        None => "unknown".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_can_be_typed() {
        let words = ["--at", "7", "a b", "it's", ""].map(str::to_owned);
        assert_eq!(command_line("gridfuse", &words), r"gridfuse --at 7 'a b' 'it'\''s' ''");
    }

    #[cfg(unix)]
    #[test]
    fn summaries_of_the_sanitizer() {
        use std::os::unix::process::ExitStatusExt;
        let judged = |stdout: &str, code: i32| {
            judge_sanitizer(&Finished {
                status: Some(std::process::ExitStatus::from_raw(code << 8)),
                stdout: stdout.to_owned(),
                stderr: String::new(),
                wall: Duration::ZERO,
            })
            .0
        };
        use SanitizeStatus::{Clean, Failed, Findings};
        assert_eq!(judged("========= ERROR SUMMARY: 0 errors\n", 0), Clean);
        assert_eq!(judged("========= ERROR SUMMARY: 2 errors\n", 0), Findings);
        let races = "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n";
        assert_eq!(judged(races, 0), Findings);
        assert_eq!(judged("========= ERROR SUMMARY: 0 errors\n", 1), Failed);
        assert_eq!(judged("not supported", 0), Failed);
        let notice = "========= Warning: CUDA Dynamic Parallelism is not supported by the selected tool\n";
        assert_eq!(
            judged(&format!("{notice}========= ERROR SUMMARY: 1 error\n"), 0),
            SanitizeStatus::Unsupported
        );
        assert_eq!(
            judged(&format!("{notice}========= ERROR SUMMARY: 2 errors\n"), 0),
            Findings
        );
    }
}
