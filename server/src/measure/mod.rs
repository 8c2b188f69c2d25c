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
#[cfg(unix)]
pub mod guard;
mod hand_written;
pub mod history;
pub mod html;
mod instrument;
pub mod kernel;
pub mod markdown;
mod nvcc;
pub mod phrases;
mod probe;
pub mod process;
mod program;
mod project_build;
mod recording;
pub mod report;
mod run;
pub mod served;
mod variant;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gridfuse_analysis::span::TextRange;

use self::build::{BuildFailure, Compiler, build};
use self::instrument::{Sites, instrument, launching_kernels};
use self::kernel::HostProgram;
use self::probe::probe;
use self::program::texts;
use self::report::{KernelRun, LeftOut, Outcome, Report, Site, VERSION, Variant};
use self::run::{Programs, Runner};
use self::variant::Applied;
use crate::cli::{Project, unified};

pub use self::compare::Tolerance;
pub use self::hand_written::HandWritten;
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

/// Is told how many percent are done, and what goes on.
pub type Progress<'a> = &'a (dyn Fn(u8, &str) + Sync);

/// Percent that are done once the GPU is known.
const PROBED: u8 = 5;

/// Percent that are done once everything is built.
const BUILT: u8 = 60;

/// The percentage after `done` of `all` equal steps between two percentages.
fn percent(from: u8, to: u8, done: usize, all: usize) -> u8 {
    let part = usize::from(to.saturating_sub(from)) * done.min(all) / all.max(1);
    from.saturating_add(u8::try_from(part).unwrap_or(u8::MAX))
}

/// Measures. `load` loads the user's files afresh; `progress` is told what goes on. An error is a sentence that says what to do.
pub fn measure(
    request: &Request,
    load: &dyn Fn() -> Result<Project, String>,
    progress: Progress<'_>,
) -> Result<Report, String> {
    let mut compiler = Compiler {
        nvcc: nvcc::find(request.nvcc.as_deref())?,
        arch: request.arch.clone().unwrap_or_else(|| "native".to_owned()),
        flags: Vec::new(),
        include_dirs: request.include_dirs.clone(),
        forced_includes: Vec::new(),
        project: None,
        limit: Duration::from_secs(600),
    };
    let scratch = tempfile::Builder::new()
        .prefix(SCRATCH_PREFIX)
        .tempdir()
        .map_err(|error| format!("cannot create a scratch directory: {error}"))?;
    #[cfg(unix)]
    guard::protect(scratch.path());
    let header = scratch.path().join("gridfuse_measure.cuh");
    write(&header, HEADER)?;

    // The sources first: what is wrong with them need not wait for a compiler.
    let mut project = load()?;
    let own = program::flags(&project, &request.file);
    compiler.flags = own
        .flags
        .into_iter()
        .chain(request.nvcc_flags.iter().cloned())
        .collect();
    compiler.include_dirs.extend(own.include_dirs);
    compiler.forced_includes = own.forced_includes;
    compiler.project = project.build.clone();
    let kernels = launching_kernels(project.host.db(), &program::files(&project, request.main())?);
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

    for own in &request.also {
        project = load()?;
        let diff = own.take_place(&mut project, &request.file)?;
        let sources = sources(&project, request, &kernels, &mut sites)?;
        prepared.push(Prepared {
            rewrites: own.name.clone(),
            assumptions: Vec::new(),
            diff,
            creates: Vec::new(),
            sources: Ok(sources),
        });
        // What it includes from beside itself.
        compiler.include_dirs.extend(own.file.parent().map(Path::to_path_buf));
    }

    progress(0, "looking for a GPU");
    let machine = probe(&mut compiler, request.arch.is_none(), scratch.path())?;
    if process::given_up() {
        return Err("given up".to_owned());
    }

    let all: Vec<&Sources> = std::iter::once(&original)
        .chain(
            prepared
                .iter()
                .filter_map(|prepared: &Prepared| prepared.sources.as_ref().ok()),
        )
        .collect();
    let mut programs = build_all(&compiler, &all, request, &header, scratch.path(), progress)?.into_iter();
    let project = load()?;
    let show = |path: &Path| project.show(path);
    let runner = Runner {
        request,
        scratch: scratch.path(),
        original: &original.plain,
        directory: match &project.build {
            Some(build) => Some(build.root.as_path()),
            None => request.file.parent(),
        },
        show: &show,
    };

    let run = |done: usize, what: &str| progress(percent(BUILT, 100, done, all.len()), &format!("running {what}"));
    run(0, "the original");
    let Some(original_programs) = programs.next() else {
        return Err("internal error: the original was not built; please report it".to_owned());
    };
    let baseline = runner.baseline(&original_programs);
    let mut variants = Vec::new();
    let mut done = 1;
    for Prepared {
        rewrites,
        assumptions,
        diff,
        creates,
        sources,
    } in &prepared
    {
        let outcome = match sources {
            Err(reasons) => Outcome::Refused {
                reasons: reasons.clone(),
            },
            Ok(sources) => {
                run(done, rewrites);
                done += 1;
                match programs.next() {
                    Some(programs) => runner.variant(&programs, &sources.plain, &baseline),
                    None => return Err(format!("internal error: {rewrites} was not built; please report it")),
                }
            }
        };
        variants.push(Variant {
            rewrites: rewrites.clone(),
            assumptions: assumptions.clone(),
            diff: diff.clone(),
            creates: creates.clone(),
            outcome,
        });
    }
    Ok(Report {
        version: VERSION,
        file: project.show(&request.file),
        args: request.args.clone(),
        machine,
        sites: sites
            .places
            .iter()
            .map(|(site, path, line)| {
                let (path, line) = request.place(path, *line);
                Site {
                    kernel: site.kernel.clone(),
                    path: project.show(path),
                    line,
                }
            })
            .collect(),
        kernel: request.host.as_ref().map(|host| KernelRun {
            kernel: host.kernel.clone(),
            path: project.show(&host.place.0),
            line: host.place.1,
        }),
        left_out: sites
            .left_out
            .iter()
            .map(|(path, line, why)| LeftOut {
                path: project.show(path),
                line: *line,
                reason: (*why).to_owned(),
            })
            .collect(),
        deterministic: baseline.deterministic(),
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
    let files = program::files(project, request.main())?;
    let host = request.host.as_ref().map(|host| host.path.as_path());
    let timed = texts(project, &files, &instrument(db, &files, host, kernels, sites, false))?;
    let checked = texts(project, &files, &instrument(db, &files, host, kernels, sites, true))?;
    let plain = texts(project, &files, &BTreeMap::new())?;
    Ok(Sources { plain, timed, checked })
}

fn build_all(
    compiler: &Compiler,
    sources: &[&Sources],
    request: &Request,
    header: &Path,
    scratch: &Path,
    progress: Progress<'_>,
) -> Result<Vec<Programs>, String> {
    let jobs: Vec<(usize, &'static str, &BTreeMap<PathBuf, String>)> = sources
        .iter()
        .enumerate()
        .flat_map(|(index, sources)| [(index, "timed", &sources.timed), (index, "checked", &sources.checked)])
        .collect();
    let workers = std::thread::available_parallelism()
        .map_or(1, usize::from)
        // A project's own command uses the cores itself.
        .min(if compiler.project.is_some() { 1 } else { jobs.len() });
    let built_so_far = |done: usize| {
        let what = format!("building programs: {done} of {}", jobs.len());
        progress(percent(PROBED, BUILT, done, jobs.len()), &what);
    };
    built_so_far(0);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let built: Mutex<Vec<Option<Result<PathBuf, BuildFailure>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((index, what, texts)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let directory = scratch.join(format!("{index}-{what}"));
                    let result = std::fs::create_dir_all(&directory)
                        .map_err(|error| format!("cannot create {}: {error}", directory.display()).into())
                        .and_then(|()| match &compiler.project {
                            Some(project) => {
                                project_build::build(project, &compiler.nvcc, texts, header, &directory, compiler.limit)
                            }
                            None => build(compiler, texts, request.main(), header, &directory),
                        });
                    let slot = index * 2 + usize::from(*what == "checked");
                    if let Some(place) = built.lock().unwrap_or_else(PoisonError::into_inner).get_mut(slot) {
                        *place = Some(result);
                    }
                    built_so_far(done.fetch_add(1, Ordering::Relaxed) + 1);
                }
            });
        }
    });
    let mut built = built.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter();
    let mut programs = Vec::new();
    while let (Some(timed), Some(checked)) = (built.next(), built.next()) {
        let lost = || Err("internal error: a build was lost; please report it".to_owned().into());
        programs.push(Programs {
            timed: timed.unwrap_or_else(lost),
            checked: checked.unwrap_or_else(lost),
        });
    }
    Ok(programs)
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
