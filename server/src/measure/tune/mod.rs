//! Searching the threshold, the coarsening factor and the granularity with which a program is fastest on the GPU that is there.
//!
//! Each point is a program of its own: the constants are the compiler's to know. Some are built while others run. The search begins at
//! the cost model's guess and halves the field in each round; a run that takes much longer than the best one is stopped. What is fastest
//! at the end is compared with the original, as `measure` does it, and no time is reported of a program whose results were not compared.

mod base;
mod choice;
pub mod cost;
mod lab;
mod race;
pub mod report;
mod search;
pub mod space;
mod state;
mod sweep;
mod workshop;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gridfuse_analysis::base::span::TextRange;
use gridfuse_codeactions::api::rewrite::Axis;

use self::base::{Base, Load};
use self::cost::{Ledger, Stage};
use self::lab::{Lab, refused};
use self::race::Tries;
use self::report::{Found, Swept, TuneReport, VERSION};
use self::search::Search;
use self::space::{Point, rewrite_on};
use self::state::{Key, Saved, State};
use self::workshop::{CloseOnDrop, Program, Workshop};
use super::build::Compiler;
use super::gpus::Gpus;
use super::instrument::{Sites, kernels_of_launches, launching_kernels};
use super::probe::probe;
use super::report::{Agreement, Outcome, Run, median};
use super::run::{Captured, Runner};
use super::variant::Applied;
use super::{
    PROBED, Progress, Request, Sources, compiler, connect, creates, diff, fingerprint, home_of, program, require_sites,
    scratch, send_inputs, sources,
};
use crate::changes::Change;
use crate::cli::Project;
use crate::launches::function_at;

/// Percent that are done once the search is at its end.
const SEARCHED: u8 = 95;

/// What is to be tuned.
pub struct Tuning {
    /// The program, and how it's run.
    pub request: Request,
    /// Tune the launches that touch this range, or those of the function around it; `None`: all of the file.
    pub place: Option<TextRange>,
    /// Thresholds; `None`: the usual ones.
    pub thresholds: Option<Vec<Option<u64>>>,
    /// Coarsening factors; `None`: the usual ones.
    pub factors: Option<Vec<Option<u64>>>,
    /// Granularities; `None`: all.
    pub granularities: Option<Vec<Option<&'static str>>>,
    /// Nothing new is begun after this time.
    pub budget: Option<Duration>,
    /// Measure all points as well, and compare.
    pub exhaustive: bool,
    /// Begin anew, whatever is known of a search that was interrupted.
    pub fresh: bool,
}

/// What came out, and the texts that it leads to.
pub struct Tuned {
    /// What came out.
    pub report: TuneReport,
    /// The best point's changes; none where the program is as good as it is.
    pub changes: BTreeMap<PathBuf, Change>,
    /// Of the code for which this holds: as it was, and with these changes.
    pub fingerprints: Vec<u64>,
    /// The functions whose launches were tuned.
    pub functions: Vec<String>,
}

/// Searches. `load` loads the user's files afresh; `progress` is told what goes on. An error is a sentence that says what to do.
pub fn tune(tuning: &Tuning, load: Load<'_>, progress: Progress<'_>) -> Result<Tuned, String> {
    let begin = Instant::now();
    let ledger = Ledger::new(begin);
    let request = &tuning.request;
    let project = load()?;
    let (scratch, header) = scratch()?;
    let place = connect(request, scratch.path(), progress)?;
    let mut compiler = compiler(&place, request, &project)?;
    place.send(&header)?;
    let base = Base::new(load, &request.file, tuning.place)?;
    let (guess, allocates) = base.guess(&request.file);
    let rewritten = !base.changes.is_empty();
    let functions = tuned_functions(&base, request);
    let mut kernels = launching_kernels(project.host.db(), &program::files(&project, &request.file)?);
    kernels.extend(launching_kernels(
        base.project.host.db(),
        &program::files(&base.project, &request.file)?,
    ));
    // Launches that are collected already are launches in the base.
    let base_files = program::files(&base.project, &request.file)?;
    let concerned = kernels_of_launches(base.project.host.db(), &base_files, &kernels);
    let mut sites = Sites::default();
    let original = Arc::new(sources(&project, request, &kernels, &mut sites)?);
    require_sites(&sites, &kernels, request, &project)?;
    drop(base);

    let sent = send_inputs(&place, &project, request, scratch.path(), progress)?;
    progress.tell(0, "looking for a GPU");
    let found = probe(&place, &mut compiler, request.arch.is_none(), scratch.path())?;
    let gpus = Gpus::new(&found, &place, scratch.path())?;
    let key = key(tuning, &project, &compiler, &found.machine.gpu);
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

    let (state, saved) = resume(key, tuning, &ledger)?;
    let resumed = saved.tried.len();
    let workshop = Workshop::new(&place, &compiler, request, &header, scratch.path(), &ledger);
    let mut lab = Lab {
        tuning,
        load,
        prefix: rewrite_on(|axis| allocates && axis == Axis::Allocation)
            .into_iter()
            .map(|rewrite| rewrite.id)
            .collect(),
        kernels: &kernels,
        sites: sites.clone(),
        runners: &runners,
        original: original.clone(),
        workshop: &workshop,
        ledger: &ledger,
        made: BTreeMap::new(),
        tried: saved.tried,
        swept: saved.swept,
        stopped: 0,
        state: state.as_ref(),
        begin,
        progress,
    };
    let Searched {
        reference,
        best,
        search,
        exhaustive,
    } = std::thread::scope(|scope| {
        let _close = CloseOnDrop(&workshop);
        for _ in 0..workshop.workers(runners.len()) {
            scope.spawn(|| workshop.work());
        }
        explore(&mut lab, guess, resumed)
    })?;
    let faster = search.speedup.is_some_and(|speedup| speedup > 1.0);
    let (project, applied) = match best.filter(|_| faster) {
        Some(point) => lab
            .apply(point)?
            .map_err(|reasons| format!("internal error: {}; please report it", reasons.join("; ")))?,
        None => (load()?, Applied::default()),
    };
    let points = lab.points();
    drop(lab);
    if let Some(state) = state {
        state.forget();
    }
    let report = TuneReport {
        version: VERSION,
        file: project.show(&request.file),
        args: request.args.clone(),
        machine: found.machine,
        gpus: runners.len(),
        sites: sites.shown(request, &show),
        left_out: sites.shown_left_out(&show),
        deterministic: reference.captured.deterministic(),
        original: reference.outcome,
        guess: guess.to_string(),
        setup: ledger.cost(Stage::Setup),
        search,
        exhaustive,
        points,
        diff: diff(&project, request, &applied),
        creates: creates(&project, &applied),
        assumptions: if rewritten { Vec::new() } else { applied.assumptions },
        texts: BTreeMap::new(),
    };
    Ok(Tuned {
        report,
        fingerprints: fingerprints(&load()?, &project, request),
        functions,
        changes: applied.changes,
    })
}

/// Where the search is kept, and what is known from one that was cut short.
fn resume(key: Key, tuning: &Tuning, ledger: &Ledger) -> Result<(Option<State>, Saved), String> {
    let (state, saved) = match State::open(key)? {
        Some((state, saved)) => (Some(state), saved),
        None => (None, Saved::default()),
    };
    let saved = if tuning.fresh { Saved::default() } else { saved };
    ledger.resume(Stage::Search, saved.search);
    ledger.resume(Stage::Sweep, saved.sweep);
    Ok((state, saved))
}

/// What the search has found.
struct Searched {
    /// The program as it is.
    reference: Reference,
    /// The fastest point.
    best: Option<Point>,
    /// The search, in numbers.
    search: Found,
    /// All points, where they were asked for.
    exhaustive: Option<Swept>,
}

/// Runs the program as it is, and then the points of the space, as far as the search goes.
fn explore(lab: &mut Lab<'_>, guess: Point, resumed: usize) -> Result<Searched, String> {
    let programs = order_original(lab.workshop, &lab.original);
    lab.progress.tell(PROBED, "building the program as it is");
    let space = lab.space(guess)?;
    let search = Search::new(&space, guess, lab.tuning.request.repeat);
    let (runners, workshop, progress) = (lab.runners, lab.workshop, lab.progress);
    // The first points are made, and their programs built, while the program as it is runs.
    let (ordered, reference) = std::thread::scope(|scope| {
        let reference = scope.spawn(|| reference(runners, workshop, programs, progress));
        (lab.order_timed(search.first(), false), reference.join())
    });
    ordered?;
    let reference = reference
        .map_err(|_| "internal error: running the program as it is has panicked; please report it".to_owned())??;
    lab.ledger.begin(Stage::Search);
    let chosen = lab.search(search, &reference)?;
    let best = chosen.as_ref().map(|choice| choice.best);
    let seconds = lab
        .ledger
        .cost(Stage::Setup)
        .plus(lab.ledger.cost(Stage::Search))
        .seconds;
    let ms = best.and_then(|point| median(&lab.tried.get(&point)?.times_ms));
    let speedup = reference.outcome.median().zip(ms.filter(|ms| *ms > 0.0));
    let search = Found {
        possible: space.len(),
        tried: lab.tried.values().filter(|tried| !refused(tried)).count(),
        resumed,
        stopped: lab.stopped,
        seconds,
        cost: lab.ledger.cost(Stage::Search),
        best: best.map(|point| point.to_string()),
        best_ms: ms,
        speedup: speedup.map(|(original, ms)| original / ms),
        as_fast: chosen.map(|choice| choice.as_fast).unwrap_or_default(),
    };
    let exhaustive = match lab.tuning.exhaustive {
        true => Some(lab.sweep(&space, best, &reference)?),
        false => None,
    };
    Ok(Searched {
        reference,
        best,
        search,
        exhaustive,
    })
}

/// The names of the functions whose launches are tuned.
fn tuned_functions(base: &Base, request: &Request) -> Vec<String> {
    let db = base.project.host.db();
    let Some(file) = base.project.host.file(&request.file) else {
        return Vec::new();
    };
    let launches = base.targets.iter();
    let mut names: Vec<String> = launches
        .filter_map(|launch| Some(function_at(db, file, launch.start)?.name(db).to_owned()))
        .collect();
    names.dedup();
    names
}

/// Of the code as it is, and as it is with the best point's changes.
fn fingerprints(before: &Project, after: &Project, request: &Request) -> Vec<u64> {
    let of = |project: &Project| {
        let file = project.host.file(&request.file)?;
        Some(fingerprint::of_program(project.host.db(), file))
    };
    let mut both: Vec<u64> = [of(before), of(after)].into_iter().flatten().collect();
    both.dedup();
    both
}

/// Writes down what is known.
fn save(state: Option<&State>, tried: &Tries, swept: &Tries, ledger: &Ledger) -> Result<(), String> {
    let Some(state) = state else { return Ok(()) };
    let (search, sweep) = (ledger.cost(Stage::Search), ledger.cost(Stage::Sweep));
    state
        .save(tried, swept, search, sweep)
        .map_err(|error| format!("cannot remember the search: {error}"))
}

/// What the search depends on.
fn key(tuning: &Tuning, project: &Project, compiler: &Compiler, gpu: &str) -> Key {
    let request = &tuning.request;
    let db = project.host.db();
    let code = project
        .host
        .file(&request.file)
        .map(|file| fingerprint::of_program(db, file));
    let mut settings = vec![format!("gridfuse {}", env!("CARGO_PKG_VERSION")), compiler.arch.clone()];
    settings.extend(compiler.flags.iter().cloned());
    settings.extend(request.runner.clone());
    settings.extend(compiler.project.iter().map(|project| project.command.clone()));
    settings.extend(tuning.place.map(|place| format!("{}..{}", place.start, place.end)));
    Key {
        file: request.file.clone(),
        fingerprint: code.unwrap_or_default(),
        gpu: gpu.to_owned(),
        args: request.args.clone(),
        settings,
    }
}

/// The program as it is.
struct Reference {
    outcome: Outcome,
    captured: Captured,
    /// The least time that a run of it took from its beginning to its end.
    seconds: f64,
}

/// Has the program as it is built: the one that measures times, and the one that looks at memory.
fn order_original(workshop: &Workshop<'_>, original: &Arc<Sources>) -> [Program; 2] {
    [false, true].map(|checked| {
        let program = Program {
            stage: Stage::Setup,
            point: None,
            checked,
        };
        workshop.order(program, original, false);
        program
    })
}

/// Runs the program as it is.
fn reference(
    runners: &[Runner<'_>],
    workshop: &Workshop<'_>,
    programs: [Program; 2],
    progress: Progress<'_>,
) -> Result<Reference, String> {
    let (Some(runner), Some(other)) = (runners.first(), runners.last()) else {
        return Err("internal error: there is nothing to run programs on; please report it".to_owned());
    };
    let [timed, checked] = programs.map(|program| {
        let built = workshop.wait(program);
        built.map_err(|failure| format!("the program as it is does not compile:\n{}", failure.message))
    });
    let (timed, checked) = (timed?, checked?);
    progress.tell(PROBED, "running the program as it is");
    let unusable = |outcome: Outcome| match outcome {
        Outcome::TimedOut { seconds } => format!(
            "the program as it is did not finish in {seconds} s, so that nothing can be compared with it: tune with smaller \
             input (--args) or more patience (--timeout)"
        ),
        Outcome::Failed { message, advice } => {
            let advice = advice.map_or(String::new(), |advice| format!("\n{advice}"));
            format!(
                "the program as it is fails, so that nothing can be compared with it: {}{advice}",
                message.trim_end()
            )
        }
        _ => "the program as it is can't be run".to_owned(),
    };
    let ran = |begin: Instant| workshop.ledger.ran(Stage::Setup, begin.elapsed());
    let request = runner.request;
    let capture = || {
        let begin = Instant::now();
        let captured = runner.capture(&checked).map_err(unusable);
        ran(begin);
        captured
    };
    let time = || -> Result<(Vec<f64>, usize, f64), String> {
        let (mut times_ms, mut launches, mut seconds) = (Vec::new(), 0, f64::INFINITY);
        for _ in 0..request.repeat.min(3) {
            let begin = Instant::now();
            let timed = other.timed(&timed, request.timeout).map_err(unusable)?;
            ran(begin);
            times_ms.push(timed.ms);
            launches = timed.launches;
            seconds = timed.seconds.min(seconds);
        }
        Ok((times_ms, launches, seconds))
    };
    let (captured, timed) = match runners.len() {
        1 => (capture()?, time()?),
        _ => {
            let (captured, timed) = std::thread::scope(|scope| {
                let captured = scope.spawn(capture);
                let timed = time();
                (captured.join(), timed)
            });
            (
                captured.map_err(|_| "internal error: comparing has panicked; please report it".to_owned())??,
                timed?,
            )
        }
    };
    let (times_ms, launches, seconds) = timed;
    let outcome = Outcome::Ran(Box::new(Run {
        median_ms: median(&times_ms).unwrap_or_default(),
        times_ms,
        host_launches: launches,
        device_launches: captured.device_launches(),
        errors: captured.errors(),
        agreement: Agreement::Original,
        kernels: captured.kernels().to_vec(),
    }));
    Ok(Reference {
        outcome,
        captured,
        seconds,
    })
}
