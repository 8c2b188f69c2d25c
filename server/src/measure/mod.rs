//! Building and running a program as it is and rewritten: do they compute the same, and how long do they take?
//!
//! The host's launches of the kernels that launch others are timed by CUDA events, from the launch until all children are done, in
//! a program of its own; another one looks at the memory behind the kernels' pointer arguments after each launch, and counts the
//! launches by device code. Both are built from copies in a scratch directory: the user's files are never touched.

mod advice;
mod build;
mod build_messages;
mod compare;
pub mod fingerprint;
mod gpus;
#[cfg(unix)]
pub mod guard;
mod hand_written;
pub mod history;
pub mod html;
mod inputs;
mod instrument;
pub mod kernel;
pub mod kernels;
pub mod lacking;
mod lock;
pub mod markdown;
pub mod nvcc;
pub mod phrases;
mod place;
mod probe;
pub mod process;
mod program;
pub mod progress;
mod project_build;
mod recording;
mod remote;
pub mod report;
mod run;
pub mod served;
mod shares;
pub mod state_directory;
pub mod tune;
mod variant;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gridfuse_analysis::base::span::TextRange;

use self::build::{BuildFailure, Compiler, build};
use self::gpus::Gpus;
use self::instrument::{Sites, instrument, kernels_of_launches, launching_kernels};
use self::kernel::HostProgram;
use self::place::Place;
use self::probe::probe;
use self::program::texts;
use self::progress::percent;
use self::report::{KernelRun, Outcome, Report, VERSION, Variant};
use self::run::{Baseline, Programs, Runner};
use self::variant::Applied;
use crate::cli::{Project, unified};

pub use self::compare::Tolerance;
pub use self::hand_written::HandWritten;
pub use self::progress::{Progress, Reports};
pub use self::shares::{Share, join};
pub use self::variant::{Recipe, targets};

/// What the names of scratch directories begin with.
const SCRATCH_PREFIX: &str = "gridfuse-measure-";

const HEADER: &str = include_str!("measure.cuh");

/// What is to be measured.
pub struct Request {
    /// The file with the launches; unless the project says how it's built, or `host` is there, `main` is in it, too.
    pub file: PathBuf,
    /// The generated program that launches a kernel, where no `main` does. It's among the files that are loaded.
    pub host: Option<HostProgram>,
    /// The launches that are rewritten: those that touch this range, or all.
    pub within: Option<TextRange>,
    /// The rewritten programs.
    pub recipes: Vec<Recipe>,
    /// Programs that the user has rewritten, beside them.
    pub also: Vec<HandWritten>,
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
    /// The command that leads to the machine with the GPU; `None`: it's this one.
    pub runner: Option<String>,
}

impl Request {
    /// The file that is compiled.
    fn main(&self) -> &Path {
        self.host.as_ref().map_or(&self.file, |host| &host.path)
    }

    fn is_generated(&self, path: &Path) -> bool {
        self.host.as_ref().is_some_and(|host| host.path == path)
    }

    /// Where something is for the user: what is in a generated program has its place where that is specified.
    fn place<'a>(&'a self, path: &'a Path, line: u32) -> (&'a Path, u32) {
        match &self.host {
            Some(host) if host.path == path => (&host.place.0, host.place.1),
            _ => (path, line),
        }
    }
}

/// Texts of the two programs of a variant.
struct Sources {
    /// What they measure. Its lines are theirs, too.
    plain: BTreeMap<PathBuf, String>,
    timed: BTreeMap<PathBuf, String>,
    checked: BTreeMap<PathBuf, String>,
}

/// A variant before it's built.
struct Prepared {
    rewrites: String,
    assumptions: Vec<String>,
    diff: String,
    creates: Vec<String>,
    /// `Err`: why no launch could be rewritten.
    sources: Result<Sources, Vec<String>>,
}

/// Percent that are done once the GPU is known.
const PROBED: u8 = 5;

/// Percent that are done once everything is built.
const BUILT: u8 = 60;

/// Measures. `load` loads the user's files afresh; `progress` is told what goes on. An error is a sentence that says what to do.
pub fn measure(
    request: &Request,
    load: &dyn Fn() -> Result<Project, String>,
    progress: Progress<'_>,
) -> Result<Report, String> {
    // The sources first: what is wrong with them need not wait for a compiler.
    let project = load()?;
    let (scratch, header) = scratch()?;
    let place = connect(request, scratch.path(), progress)?;
    let mut compiler = compiler(&place, request, &project)?;
    place.send(&header)?;
    let kernels = launching_kernels(project.host.db(), &program::files(&project, request.main())?);
    if kernels.is_empty() {
        return Err(format!(
            "no kernel in {} launches another: there is nothing to measure",
            project.show(&request.file)
        ));
    }
    let concerned = kernels_of_launches(project.host.db(), &program::files(&project, request.main())?, &kernels);
    let mut sites = Sites::default();
    let original = sources(&project, request, &kernels, &mut sites)?;
    require_sites(&sites, &kernels, request, &project)?;
    let mut prepared = prepare(request, load, &kernels, &mut sites)?;
    prepared.extend(prepare_own(request, load, &kernels, &mut sites, &mut compiler)?);

    let sent = send_inputs(&place, &project, request, scratch.path(), progress)?;
    progress.tell(0, "looking for a GPU");
    let found = probe(&place, &mut compiler, request.arch.is_none(), scratch.path())?;
    let gpus = Gpus::new(&found, &place, scratch.path())?;
    if process::given_up() {
        return Err("given up".to_owned());
    }

    let all: Vec<&Sources> = std::iter::once(&original)
        .chain(prepared.iter().filter_map(|prepared| prepared.sources.as_ref().ok()))
        .collect();
    let programs = build_all(&place, &compiler, &all, request, &header, scratch.path(), progress)?;
    let project = load()?;
    let show = project.shower();
    let runners = gpus.runners(Runner {
        request,
        place: &place,
        kernels: &concerned,
        scratch: scratch.path(),
        original: &original.plain,
        directory: sent.as_deref().or(home_of(&project, request)),
        show: &show,
        device: None,
    });

    let (baseline, variants) = run_all(&runners, prepared, programs, progress)?;
    Ok(Report {
        version: VERSION,
        file: project.show(&request.file),
        args: request.args.clone(),
        machine: found.machine,
        gpus: runners.len(),
        sites: sites.shown(request, &show),
        kernel: request.host.as_ref().map(|host| KernelRun {
            kernel: host.kernel.clone(),
            path: project.show(&host.place.0),
            line: host.place.1,
        }),
        left_out: sites.shown_left_out(&show),
        deterministic: baseline.deterministic(),
        original: baseline.outcome,
        variants,
    })
}

/// Rewrites the program in each way that is asked for.
fn prepare(
    request: &Request,
    load: &dyn Fn() -> Result<Project, String>,
    kernels: &BTreeSet<String>,
    sites: &mut Sites,
) -> Result<Vec<Prepared>, String> {
    let mut prepared = Vec::new();
    for recipe in &request.recipes {
        let mut project = load()?;
        let targets = targets(&project, &request.file, request.within);
        match recipe.apply(&mut project, &request.file, targets.places, &request.set)? {
            Ok(applied) => {
                let sources = sources(&project, request, kernels, sites)?;
                prepared.push(Prepared {
                    rewrites: recipe.name.clone(),
                    diff: diff(&project, request, &applied),
                    creates: creates(&project, &applied),
                    assumptions: applied.assumptions,
                    sources: Ok(sources),
                });
            }
            Err(reasons) => prepared.push(Prepared {
                rewrites: recipe.name.clone(),
                diff: String::new(),
                creates: Vec::new(),
                assumptions: Vec::new(),
                sources: Err(reasons),
            }),
        }
    }
    Ok(prepared)
}

/// Puts what the user has written in the program's place, and what it includes from beside itself in the compiler's reach.
fn prepare_own(
    request: &Request,
    load: &dyn Fn() -> Result<Project, String>,
    kernels: &BTreeSet<String>,
    sites: &mut Sites,
    compiler: &mut Compiler,
) -> Result<Vec<Prepared>, String> {
    let mut prepared = Vec::new();
    for own in &request.also {
        let mut project = load()?;
        let diff = own.take_place(&mut project, &request.file)?;
        let sources = sources(&project, request, kernels, sites)?;
        prepared.push(Prepared {
            rewrites: own.name.clone(),
            assumptions: Vec::new(),
            diff,
            creates: Vec::new(),
            sources: Ok(sources),
        });
        compiler.include_dirs.extend(own.file.parent().map(Path::to_path_buf));
    }
    Ok(prepared)
}

/// Runs the original, which the others are compared with, and then these: side by side where there are several GPUs.
fn run_all(
    runners: &[Runner<'_>],
    prepared: Vec<Prepared>,
    programs: Vec<Programs>,
    progress: Progress<'_>,
) -> Result<(Baseline, Vec<Variant>), String> {
    let all = programs.len();
    let mut programs = programs.into_iter();
    progress.tell(BUILT, "running the original");
    let (Some(first), Some(original_programs)) = (runners.first(), programs.next()) else {
        return Err("internal error: the original was not built; please report it".to_owned());
    };
    let baseline = first.baseline(&original_programs);
    let built = prepared.iter().enumerate().filter_map(|(number, prepared)| {
        let sources = prepared.sources.as_ref().ok()?;
        Some((number, prepared, sources, programs.next()?))
    });
    // The original is done.
    let queue = Mutex::new((1..).zip(built));
    let outcomes = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for runner in runners {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((done, (number, prepared, sources, programs))) = next else {
                        break;
                    };
                    let percent = percent(BUILT, 100, done, all);
                    progress.tell(percent, &format!("running {}", prepared.rewrites));
                    let outcome = runner.variant(&prepared.rewrites, &programs, &sources.plain, &baseline);
                    let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
                    outcomes.insert(number, outcome);
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    let variants = prepared.into_iter().enumerate().map(|(number, prepared)| {
        let outcome = match prepared.sources {
            Err(reasons) => Outcome::Refused { reasons },
            Ok(_) => outcomes.remove(&number).ok_or_else(|| {
                let rewrites = &prepared.rewrites;
                format!("internal error: {rewrites} was not run; please report it")
            })?,
        };
        Ok(Variant {
            rewrites: prepared.rewrites,
            assumptions: prepared.assumptions,
            diff: prepared.diff,
            creates: prepared.creates,
            outcome,
        })
    });
    let variants = variants.collect::<Result<Vec<_>, String>>()?;
    Ok((baseline, variants))
}

/// What a program is built with; the architecture is the GPU's as soon as that is known.
fn compiler(place: &Place, request: &Request, project: &Project) -> Result<Compiler, String> {
    let (nvcc, libraries) = place.find_nvcc(request.nvcc.as_deref())?;
    let own = program::flags(project, &request.file);
    let flags = own.flags.into_iter().chain(request.nvcc_flags.iter().cloned());
    Ok(Compiler {
        nvcc,
        libraries,
        arch: request.arch.clone().unwrap_or_else(|| "native".to_owned()),
        flags: flags.collect(),
        include_dirs: request.include_dirs.iter().cloned().chain(own.include_dirs).collect(),
        forced_includes: own.forced_includes,
        project: project.build.clone(),
        limit: Duration::from_secs(600),
    })
}

/// The machine with the GPU.
fn connect(request: &Request, scratch: &Path, progress: Progress<'_>) -> Result<Place, String> {
    if let Some(line) = &request.runner {
        progress.tell(0, &format!("waiting for {line}"));
    }
    Place::new(request.runner.as_deref(), scratch)
}

/// Sends the files that programs read; the directory in which they run then.
fn send_inputs(
    place: &Place,
    project: &Project,
    request: &Request,
    scratch: &Path,
    progress: Progress<'_>,
) -> Result<Option<PathBuf>, String> {
    inputs::send(
        project.inputs.as_ref(),
        place,
        home_of(project, request),
        scratch,
        progress,
    )
}

/// A directory for all that is made, which goes when it's dropped, and in it what makes programs measure themselves.
fn scratch() -> Result<(tempfile::TempDir, PathBuf), String> {
    let scratch = tempfile::Builder::new()
        .prefix(SCRATCH_PREFIX)
        .tempdir()
        .map_err(|error| format!("cannot create a scratch directory: {error}"))?;
    #[cfg(unix)]
    guard::protect(scratch.path());
    let header = scratch.path().join("gridfuse_measure.cuh");
    write(&header, HEADER)?;
    Ok((scratch, header))
}

/// An error where no launch of the host can be measured.
fn require_sites(
    sites: &Sites,
    kernels: &BTreeSet<String>,
    request: &Request,
    project: &Project,
) -> Result<(), String> {
    if !sites.places.is_empty() {
        return Ok(());
    }
    let mut message = format!(
        "host code in {} launches none of the kernels that launch others ({})",
        project.show(&request.file),
        kernels.iter().cloned().collect::<Vec<_>>().join(", ")
    );
    for (path, line, why) in &sites.left_out {
        message += &format!("; the launch at {}:{line} can't be measured: {why}", project.show(path));
    }
    Err(message)
}

/// Where programs run.
fn home_of<'a>(project: &'a Project, request: &'a Request) -> Option<&'a Path> {
    match &project.build {
        Some(build) => Some(build.root.as_path()),
        None => request.file.parent(),
    }
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
    let files = program::files(project, request.main())?;
    let host = request.host.as_ref().map(|host| host.path.as_path());
    let timed = texts(project, &files, &instrument(db, &files, host, kernels, sites, false))?;
    let checked = texts(project, &files, &instrument(db, &files, host, kernels, sites, true))?;
    let plain = texts(project, &files, &BTreeMap::new())?;
    Ok(Sources { plain, timed, checked })
}

fn build_all(
    place: &Place,
    compiler: &Compiler,
    sources: &[&Sources],
    request: &Request,
    header: &Path,
    scratch: &Path,
    progress: Progress<'_>,
) -> Result<Vec<Programs>, String> {
    let jobs: Vec<Job<'_>> = sources
        .iter()
        .enumerate()
        .flat_map(|(index, sources)| {
            let job = |what: &str, texts| Job {
                directory: scratch.join(format!("{index}-{what}")),
                texts,
            };
            [job("timed", &sources.timed), job("checked", &sources.checked)]
        })
        .collect();
    let all = jobs.len();
    let steps = progress.steps(PROBED, BUILT, all, |done| format!("building programs: {done} of {all}"));
    steps.begin();
    let mut built = build_each(place, compiler, &jobs, request, header, &|| steps.one_done()).into_iter();
    let mut programs = Vec::new();
    while let (Some(timed), Some(checked)) = (built.next(), built.next()) {
        programs.push(Programs { timed, checked });
    }
    Ok(programs)
}

/// A program to build.
struct Job<'a> {
    /// Where.
    directory: PathBuf,
    /// Of what.
    texts: &'a BTreeMap<PathBuf, String>,
}

/// Builds programs side by side; the results in the same order. `one_done` is called after each.
fn build_each(
    place: &Place,
    compiler: &Compiler,
    jobs: &[Job<'_>],
    request: &Request,
    header: &Path,
    one_done: &(dyn Fn() + Sync),
) -> Vec<Result<PathBuf, BuildFailure>> {
    let workers = place
        .cores()
        // A project's own command uses the cores itself.
        .min(if compiler.project.is_some() { 1 } else { jobs.len() });
    let next = AtomicUsize::new(0);
    let built: Mutex<Vec<Option<Result<PathBuf, BuildFailure>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(Job { directory, texts }) = jobs.get(index) else {
                        break;
                    };
                    let result = build_one(place, compiler, request, header, directory, texts);
                    if let Some(place) = built.lock().unwrap_or_else(PoisonError::into_inner).get_mut(index) {
                        *place = Some(result);
                    }
                    one_done();
                }
            });
        }
    });
    let built = built.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter();
    let lost = || Err("internal error: a build was lost; please report it".to_owned().into());
    built.map(|result| result.unwrap_or_else(lost)).collect()
}

/// Builds a program in a directory of its own.
fn build_one(
    place: &Place,
    compiler: &Compiler,
    request: &Request,
    header: &Path,
    directory: &Path,
    texts: &BTreeMap<PathBuf, String>,
) -> Result<PathBuf, BuildFailure> {
    std::fs::create_dir_all(directory).map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    let limit = compiler.limit;
    match &compiler.project {
        Some(project) => project_build::build(place, project, &compiler.nvcc, texts, header, directory, limit),
        None => build(place, compiler, texts, request.main(), header, directory),
    }
}

/// What a variant changes, without the files that it adds.
fn diff(project: &Project, request: &Request, applied: &Applied) -> String {
    let changes = applied.changes.iter();
    changes
        // A generated program is none of the user's.
        .filter(|(path, _)| !request.is_generated(path))
        .filter_map(|(path, change)| {
            let before = change.before.as_deref()?;
            Some(unified(&project.show(path), Some(before), &change.after))
        })
        .collect()
}

/// The files that a variant adds.
fn creates(project: &Project, applied: &Applied) -> Vec<String> {
    let added = applied.changes.iter().filter(|(_, change)| change.before.is_none());
    added.map(|(path, _)| project.show(path)).collect()
}
