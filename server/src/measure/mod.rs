//! Building and running a program as it is and rewritten: do they compute the same, and how long do they take?
//!
//! The host's launches of the kernels that launch others are timed by CUDA events, from the launch until all children are done, in
//! a program of its own; another one looks at the memory behind the kernels' pointer arguments after each launch, and counts the
//! launches by device code. Both are built from copies in a scratch directory: the user's files are never touched.

mod build;
mod compare;
mod instrument;
mod nvcc;
pub mod process;
mod recording;
pub mod report;
mod variant;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gridfuse_analysis::span::TextRange;

use self::build::{Compiler, build, texts};
use self::compare::{Comparison, compare, output_difference, unstable};
use self::instrument::{Sites, instrument, launching_kernels};
use self::process::Finished;
use self::recording::{Moment, Recording};
use self::report::{Agreement, LeftOut, Machine, Outcome, Report, Run, Site, VERSION, Variant, median};
use crate::cli::Project;

pub use self::compare::Tolerance;
pub use self::variant::{Recipe, targets};

const HEADER: &str = include_str!("measure.cuh");
const PROBE: &str = include_str!("probe.cu");

/// What is to be measured.
pub struct Request {
    /// The file with `main`.
    pub file: PathBuf,
    /// The launches that are rewritten: those that touch this range, or all.
    pub within: Option<TextRange>,
    /// The rewritten programs.
    pub recipes: Vec<Recipe>,
    /// Options of the rewrites.
    pub set: Vec<(String, String)>,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Runs of each program that count; one more warms up.
    pub repeat: usize,
    /// Limit of one run.
    pub timeout: Duration,
    /// How exact results have to agree.
    pub tolerance: Tolerance,
    /// nvcc, if the user names it.
    pub nvcc: Option<PathBuf>,
    /// More arguments for nvcc.
    pub nvcc_flags: Vec<String>,
    /// Architecture to build for, like `sm_90`; `None`: that of the GPU.
    pub arch: Option<String>,
    /// Include directories.
    pub include_dirs: Vec<PathBuf>,
}

/// The programs of one variant: `Err`: what the compiler said.
struct Programs {
    timed: Result<PathBuf, String>,
    checked: Result<PathBuf, String>,
}

/// Texts of the two programs of a variant.
struct Sources {
    timed: BTreeMap<PathBuf, String>,
    checked: BTreeMap<PathBuf, String>,
}

/// A variant before it's built.
struct Prepared {
    rewrites: String,
    assumptions: Vec<String>,
    /// `Err`: why no launch could be rewritten.
    sources: Result<Sources, Vec<String>>,
}

/// Measures. `load` loads the user's files afresh; `progress` is told what goes on. An error is a sentence that says what to do.
pub fn measure(
    request: &Request,
    load: &dyn Fn() -> Result<Project, String>,
    progress: &dyn Fn(&str),
) -> Result<Report, String> {
    let mut compiler = Compiler {
        nvcc: nvcc::find(request.nvcc.as_deref())?,
        arch: request.arch.clone().unwrap_or_else(|| "native".to_owned()),
        flags: request.nvcc_flags.clone(),
        include_dirs: request.include_dirs.clone(),
        limit: Duration::from_secs(600),
    };
    let scratch = tempfile::Builder::new()
        .prefix("gridfuse-measure-")
        .tempdir()
        .map_err(|error| format!("cannot create a scratch directory: {error}"))?;
    let header = scratch.path().join("gridfuse_measure.cuh");
    write(&header, HEADER)?;

    // The sources first: what is wrong with them need not wait for a compiler.
    let mut project = load()?;
    let file = project
        .host
        .file(&request.file)
        .ok_or_else(|| format!("cannot read {}", request.file.display()))?;
    let kernels = launching_kernels(project.host.db(), file);
    if kernels.is_empty() {
        return Err(format!(
            "no kernel in {} launches another: there is nothing to measure",
            project.show(&request.file)
        ));
    }
    let mut sites = Sites::default();
    let original = sources(&project, request, &kernels, &mut sites)?;
    if sites.places.is_empty() {
        let mut message = format!(
            "host code in {} launches none of the kernels that launch others ({})",
            project.show(&request.file),
            kernels.iter().cloned().collect::<Vec<_>>().join(", ")
        );
        for (path, line, why) in &sites.left_out {
            message += &format!("; the launch at {}:{line} can't be measured: {why}", project.show(path));
        }
        return Err(message);
    }
    let mut prepared = Vec::new();
    for recipe in &request.recipes {
        project = load()?;
        let targets = targets(&project, &request.file, request.within);
        match recipe.apply(&mut project, &request.file, targets, &request.set)? {
            Ok(applied) => {
                let sources = sources(&project, request, &kernels, &mut sites)?;
                prepared.push(Prepared {
                    rewrites: recipe.name.clone(),
                    assumptions: applied.assumptions,
                    sources: Ok(sources),
                });
            }
            Err(reasons) => prepared.push(Prepared {
                rewrites: recipe.name.clone(),
                assumptions: Vec::new(),
                sources: Err(reasons),
            }),
        }
    }

    progress("looking for a GPU");
    let machine = probe(&mut compiler, request.arch.is_none(), scratch.path())?;

    let all: Vec<&Sources> = std::iter::once(&original)
        .chain(
            prepared
                .iter()
                .filter_map(|prepared: &Prepared| prepared.sources.as_ref().ok()),
        )
        .collect();
    let mut programs = build_all(&compiler, &all, request, &header, scratch.path(), progress)?.into_iter();
    let runner = Runner {
        request,
        scratch: scratch.path(),
    };

    progress("running the original");
    let Some(original_programs) = programs.next() else {
        return Err("internal error: the original was not built; please report it".to_owned());
    };
    let baseline = runner.baseline(&original_programs);
    let mut variants = Vec::new();
    for Prepared {
        rewrites,
        assumptions,
        sources,
    } in prepared
    {
        let outcome = match sources {
            Err(reasons) => Outcome::Refused { reasons },
            Ok(_) => {
                progress(&format!("running {rewrites}"));
                match programs.next() {
                    Some(programs) => runner.variant(&programs, &baseline),
                    None => return Err(format!("internal error: {rewrites} was not built; please report it")),
                }
            }
        };
        variants.push(Variant {
            rewrites,
            assumptions,
            outcome,
        });
    }
    let project = load()?;
    Ok(Report {
        version: VERSION,
        file: project.show(&request.file),
        args: request.args.clone(),
        machine,
        sites: sites
            .places
            .iter()
            .map(|(site, path, line)| Site {
                kernel: site.kernel.clone(),
                path: project.show(path),
                line: *line,
            })
            .collect(),
        left_out: sites
            .left_out
            .iter()
            .map(|(path, line, why)| LeftOut {
                path: project.show(path),
                line: *line,
                reason: (*why).to_owned(),
            })
            .collect(),
        deterministic: baseline.captured.as_ref().map(|captured| captured.unstable.is_empty()),
        original: baseline.outcome,
        variants,
    })
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn sources(
    project: &Project,
    request: &Request,
    kernels: &BTreeSet<String>,
    sites: &mut Sites,
) -> Result<Sources, String> {
    let db = project.host.db();
    let file = project
        .host
        .file(&request.file)
        .ok_or_else(|| format!("cannot read {}", request.file.display()))?;
    let timed = texts(project, file, &instrument(db, file, kernels, sites, false))?;
    let checked = texts(project, file, &instrument(db, file, kernels, sites, true))?;
    Ok(Sources { timed, checked })
}

/// Builds and runs a program that says which GPU there is. Builds for it from then on where `native` is wanted.
fn probe(compiler: &mut Compiler, native: bool, scratch: &Path) -> Result<Machine, String> {
    let directory = scratch.join("probe");
    std::fs::create_dir_all(&directory).map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    let (source, program) = (directory.join("probe.cu"), directory.join("probe"));
    write(&source, PROBE)?;
    let mut command = Command::new(&compiler.nvcc);
    for libraries in nvcc::library_dirs(&compiler.nvcc) {
        command.arg("-L").arg(libraries);
    }
    command.arg(&source).arg("-o").arg(&program);
    let built = process::run(&mut command, &directory, compiler.limit)
        .map_err(|error| format!("{} cannot be run: {error}", compiler.nvcc.display()))?;
    if !built.success() {
        let nvcc = compiler.nvcc.display();
        return Err(format!(
            "{nvcc} cannot build even a small program:\n{}",
            built.last_words()
        ));
    }
    let done = process::run(&mut Command::new(&program), &directory, Duration::from_secs(60))
        .map_err(|error| format!("{} cannot be run: {error}", program.display()))?;
    let line: Vec<&str> = done.stdout.trim_end().split('\t').collect();
    match line.as_slice() {
        ["gpu", gpu, capability, driver, runtime] => {
            if native {
                compiler.arch = format!("sm_{capability}");
            }
            Ok(Machine {
                gpu: (*gpu).to_owned(),
                compute_capability: (*capability).to_owned(),
                driver: (*driver).to_owned(),
                runtime: (*runtime).to_owned(),
            })
        }
        ["error", message] => Err(format!(
            "there is no usable GPU: {message}; measuring needs an NVIDIA GPU of compute capability 7.0 or higher with a driver for CUDA 12 or newer"
        )),
        _ if done.status.is_none() => {
            Err("the GPU did not answer in 60 s: is it busy or hung? (`nvidia-smi` shows it)".to_owned())
        }
        _ => Err(format!(
            "the program that looks for a GPU failed:\n{}",
            done.last_words()
        )),
    }
}

fn build_all(
    compiler: &Compiler,
    sources: &[&Sources],
    request: &Request,
    header: &Path,
    scratch: &Path,
    progress: &dyn Fn(&str),
) -> Result<Vec<Programs>, String> {
    let jobs: Vec<(usize, &'static str, &BTreeMap<PathBuf, String>)> = sources
        .iter()
        .enumerate()
        .flat_map(|(index, sources)| [(index, "timed", &sources.timed), (index, "checked", &sources.checked)])
        .collect();
    let workers = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(jobs.len());
    progress(&format!("building {} programs", jobs.len()));
    let next = AtomicUsize::new(0);
    let built: Mutex<Vec<Option<Result<PathBuf, String>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, what, texts)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let directory = scratch.join(format!("{index}-{what}"));
                    let result = std::fs::create_dir_all(&directory)
                        .map_err(|error| format!("cannot create {}: {error}", directory.display()))
                        .and_then(|()| build(compiler, texts, &request.file, header, &directory));
                    let slot = index * 2 + usize::from(*what == "checked");
                    if let Some(place) = built.lock().unwrap_or_else(PoisonError::into_inner).get_mut(slot) {
                        *place = Some(result);
                    }
                }
            });
        }
    });
    let mut built = built.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter();
    let mut programs = Vec::new();
    while let (Some(timed), Some(checked)) = (built.next(), built.next()) {
        let lost = || Err("internal error: a build was lost; please report it".to_owned());
        programs.push(Programs {
            timed: timed.unwrap_or_else(lost),
            checked: checked.unwrap_or_else(lost),
        });
    }
    Ok(programs)
}

/// What the original has computed.
struct Captured {
    recording: Recording,
    /// What two runs of it disagree about.
    unstable: BTreeSet<Moment>,
    stdout: [String; 2],
    code: Option<i32>,
}

struct Baseline {
    outcome: Outcome,
    /// `None`: it didn't finish.
    captured: Option<Captured>,
}

struct Runner<'a> {
    request: &'a Request,
    scratch: &'a Path,
}

impl Runner<'_> {
    fn run(&self, program: &Path, mode: &str, name: &str) -> Result<(Finished, Recording), Outcome> {
        let out = self.scratch.join(name);
        let mut command = Command::new(program);
        command
            .args(&self.request.args)
            .env("GRIDFUSE_MEASURE", mode)
            .env("GRIDFUSE_MEASURE_OUT", &out)
            // Modules are loaded at once, not within what is measured.
            .env("CUDA_MODULE_LOADING", "EAGER");
        if let Some(directory) = self.request.file.parent() {
            command.current_dir(directory);
        }
        let failed = |message: String| Outcome::Failed { message };
        let done = process::run(&mut command, self.scratch, self.request.timeout)
            .map_err(|error| failed(format!("cannot be run: {error}")))?;
        if done.status.is_none() {
            return Err(Outcome::TimedOut {
                seconds: self.request.timeout.as_secs_f64(),
            });
        }
        let recording = Recording::read(&out).map_err(|_| {
            failed(format!(
                "launched none of the measured kernels ({})\n{}",
                status(&done),
                done.last_words()
            ))
        })?;
        if !recording.complete {
            let why = recording
                .errors
                .first()
                .map_or(String::new(), |error| format!(": {}", error.name));
            return Err(failed(format!(
                "broke off ({}){why}\n{}",
                status(&done),
                done.last_words()
            )));
        }
        Ok((done, recording))
    }

    /// Times of the runs that count: total GPU time and number of launches.
    fn times(&self, program: &Path) -> Result<(Vec<f64>, usize), Outcome> {
        let mut times = Vec::new();
        let mut launches = 0;
        for round in 0..=self.request.repeat {
            let (_, recording) = self.run(program, "time", "times")?;
            let (count, total) = recording.total();
            launches = count;
            if round > 0 {
                times.push(total);
            }
        }
        if launches == 0 {
            return Err(Outcome::Failed {
                message: "no launch could be timed".to_owned(),
            });
        }
        Ok((times, launches))
    }

    fn outcome(
        &self,
        programs: &Programs,
        judge: impl FnOnce(&Path) -> Result<(Agreement, Recording), Outcome>,
    ) -> Outcome {
        let (timed, checked) = match (&programs.timed, &programs.checked) {
            (Ok(timed), Ok(checked)) => (timed, checked),
            (Err(message), _) | (_, Err(message)) => {
                return Outcome::NotBuilt {
                    message: message.clone(),
                };
            }
        };
        let (agreement, recording) = match judge(checked) {
            Ok(judged) => judged,
            Err(outcome) => return outcome,
        };
        match self.times(timed) {
            Ok((times_ms, host_launches)) => Outcome::Ran(Box::new(Run {
                median_ms: median(&times_ms).unwrap_or_default(),
                times_ms,
                host_launches,
                device_launches: recording.launches,
                errors: recording.errors.iter().map(Into::into).collect(),
                agreement,
            })),
            Err(outcome) => outcome,
        }
    }

    fn baseline(&self, programs: &Programs) -> Baseline {
        let mut captured = None;
        let outcome = self.outcome(programs, |program| {
            let (first_run, first) = self.run(program, "capture", "original")?;
            let (second_run, second) = self.run(program, "capture", "original-again")?;
            captured = Some(Captured {
                unstable: unstable(&first, &second, &self.request.tolerance),
                recording: first.clone(),
                code: first_run.status.and_then(|status| status.code()),
                stdout: [first_run.stdout, second_run.stdout],
            });
            Ok((Agreement::Original, first))
        });
        Baseline { outcome, captured }
    }

    fn variant(&self, programs: &Programs, baseline: &Baseline) -> Outcome {
        self.outcome(programs, |program| {
            let (done, recording) = self.run(program, "capture", "variant")?;
            let Some(original) = &baseline.captured else {
                let reason = "the original did not come to its end".to_owned();
                return Ok((Agreement::Unknown { reason }, recording));
            };
            let code = done.status.and_then(|status| status.code());
            if code != original.code {
                return Err(Outcome::Failed {
                    message: format!(
                        "ended otherwise than the original: {}\n{}",
                        status(&done),
                        done.last_words()
                    ),
                });
            }
            let tolerance = &self.request.tolerance;
            let agreement = match compare(&original.recording, &recording, &original.unstable, tolerance) {
                Comparison::Different(difference) => Agreement::Differs(difference),
                Comparison::Same { compared, unstable } => {
                    match output_difference(&original.stdout[0], &original.stdout[1], &done.stdout) {
                        Some((expected, found)) => Agreement::PrintsOtherwise { expected, found },
                        None => Agreement::Agrees { compared, unstable },
                    }
                }
            };
            Ok((agreement, recording))
        })
    }
}

fn status(done: &Finished) -> String {
    done.status
        .map_or_else(|| "killed".to_owned(), |status| status.to_string())
}
