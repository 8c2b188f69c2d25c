//! Searching the threshold, the coarsening factor and the granularity with which a program is fastest on the GPU that is there.
//!
//! Each point is a program of its own: the constants are the compiler's to know. The search begins at the cost model's guess and
//! halves the field in each round; a run that takes much longer than the best one is stopped. What is fastest at the end is
//! compared with the original, as `measure` does it, and no time is told of a program whose results were not compared.

mod base;
pub mod report;
mod search;
pub mod space;
mod state;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gridfuse_analysis::span::TextRange;
use gridfuse_codeactions::handlers::rewrite_by_id;
use gridfuse_codeactions::rewrite::Options;

use self::base::{Base, Load};
use self::report::{Found, Swept, TriedPoint, TuneReport, VERSION};
use self::search::{Search, ranked};
use self::space::{FACTORS, GRANULARITIES, Point, Space, THRESHOLDS};
use self::state::{GivenUp, Key, State, Tried};
use super::build::{BuildFailure, Compiler};
use super::instrument::{Sites, launching_kernels};
use super::place::Place;
use super::probe::probe;
use super::report::{Agreement, Outcome, Run, median};
use super::run::{Captured, Programs, Runner};
use super::variant::Applied;
use super::{
    Job, PROBED, Progress, Recipe, Request, Sources, build_each, compiler, connect, creates, diff, fingerprint,
    home_of, percent, process, program, require_sites, scratch, sources,
};
use crate::changes::Change;
use crate::cli::Project;

/// A run that takes so many times as long as the fastest program's is stopped: setting up included, so that the launches of such
/// a program take even more times as long.
const STOP: f64 = 2.0;

/// What a run may take longer without being slower: seconds.
const SLACK: f64 = 0.25;

/// So many points are compared with the original at once, and shown.
const FINALISTS: usize = 3;

/// Points are built in portions of this size when all of them are measured.
const PORTION: usize = 32;

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
}

/// Searches. `load` loads the user's files afresh; `progress` is told what goes on. An error is a sentence that says what to do.
pub fn tune(tuning: &Tuning, load: Load<'_>, progress: Progress<'_>) -> Result<Tuned, String> {
    let begin = Instant::now();
    let request = &tuning.request;
    let project = load()?;
    let (scratch, header) = scratch()?;
    let place = connect(request, scratch.path(), progress)?;
    let mut compiler = compiler(&place, request, &project)?;
    place.send(&header)?;
    let base = Base::new(load, &request.file, tuning.place)?;
    let (guess, allocates) = base.guess(&request.file);
    let rewritten = !base.changes.is_empty();
    let mut kernels = launching_kernels(project.host.db(), &program::files(&project, &request.file)?);
    kernels.extend(launching_kernels(
        base.project.host.db(),
        &program::files(&base.project, &request.file)?,
    ));
    let mut sites = Sites::default();
    let original = sources(&project, request, &kernels, &mut sites)?;
    require_sites(&sites, &kernels, request, &project)?;
    drop(base);

    progress(0, "looking for a GPU");
    let found = probe(&place, &mut compiler, request.arch.is_none(), scratch.path())?;
    let devices = devices(&found.alike, &place.visible_devices());
    let key = key(tuning, &project, &compiler, &found.machine.gpu);
    let show = project.shower();
    let directories: Vec<PathBuf> = (0..devices.len())
        .map(|number| scratch.path().join(format!("gpu-{number}")))
        .collect();
    for directory in &directories {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("cannot create {}: {error}", directory.display()))?;
    }
    let runners: Vec<Runner<'_>> = devices
        .iter()
        .zip(&directories)
        .map(|(device, directory)| Runner {
            request,
            place: &place,
            scratch: directory,
            original: &original.plain,
            directory: home_of(&project, request),
            show: &show,
            device: device.as_deref(),
        })
        .collect();
    let Some(first) = runners.first() else {
        return Err("internal error: there is nothing to run programs on; please report it".to_owned());
    };

    let (state, known) = match State::open(key)? {
        Some((state, known)) => (Some(state), known),
        None => (None, BTreeMap::new()),
    };
    let known = if tuning.fresh { BTreeMap::new() } else { known };
    let mut lab = Lab {
        tuning,
        load,
        prefix: if allocates {
            vec!["aggregate-malloc"]
        } else {
            Vec::new()
        },
        place: &place,
        compiler: &compiler,
        header: &header,
        scratch: scratch.path(),
        kernels: &kernels,
        sites: &mut sites,
        runners: &runners,
        original: &original,
        built: BTreeMap::new(),
        resumed: known.len(),
        tried: known,
        state: state.as_ref(),
        stopped: 0,
        begin,
        progress,
    };
    let space = lab.space(guess)?;
    progress(PROBED, "building the program as it is");
    let reference = lab.reference(first)?;
    let best = lab.search(&space, guess, &reference)?;
    let seconds = begin.elapsed().as_secs_f64();

    let found_best = best.map(|point| {
        let ms = lab.tried.get(&point).and_then(|tried| median(&tried.times_ms));
        (point, ms)
    });
    let search = Found {
        possible: space.len(),
        tried: lab.tried.values().filter(|tried| !refused(tried)).count(),
        resumed: lab.resumed,
        stopped: lab.stopped,
        seconds,
        best: found_best.map(|(point, _)| point.to_string()),
        best_ms: found_best.and_then(|(_, ms)| ms),
        speedup: found_best.and_then(|(_, ms)| Some(reference.outcome.median()? / ms.filter(|ms| *ms > 0.0)?)),
    };
    let exhaustive = match tuning.exhaustive {
        true => Some(lab.sweep(&space, best, &reference)?),
        false => None,
    };
    let faster = search.speedup.is_some_and(|speedup| speedup > 1.0);
    let (project, applied) = match best.filter(|_| faster) {
        Some(point) => match lab.apply(point)? {
            Ok((project, applied)) => (project, applied),
            Err(reasons) => return Err(format!("internal error: {}; please report it", reasons.join("; "))),
        },
        None => (load()?, Applied::default()),
    };
    let points = lab.points();
    let gpus = runners.len();
    drop(lab);
    if let Some(state) = state {
        state.forget();
    }
    let report = TuneReport {
        version: VERSION,
        file: project.show(&request.file),
        args: request.args.clone(),
        machine: found.machine,
        gpus,
        sites: sites.shown(request, &show),
        left_out: sites.shown_left_out(&show),
        deterministic: reference.captured.deterministic(),
        original: reference.outcome,
        guess: guess.to_string(),
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
        changes: applied.changes,
    })
}

/// What programs get as CUDA_VISIBLE_DEVICES, one for each GPU; a single one needs none.
fn devices(alike: &[usize], visible: &str) -> Vec<Option<String>> {
    if alike.len() < 2 {
        return vec![None];
    }
    let named: Vec<&str> = visible
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    alike
        .iter()
        .map(|number| {
            Some(
                named
                    .get(*number)
                    .map_or_else(|| number.to_string(), |name| (*name).to_owned()),
            )
        })
        .collect()
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

fn refused(tried: &Tried) -> bool {
    matches!(tried.given_up, Some(GivenUp::Refused { .. }))
}

/// The program as it is.
struct Reference {
    outcome: Outcome,
    captured: Captured,
}

/// Everything that a search needs to run points, and what it knows of them.
struct Lab<'a> {
    tuning: &'a Tuning,
    load: Load<'a>,
    /// Rewrites in front of each point's.
    prefix: Vec<&'static str>,
    place: &'a Place,
    compiler: &'a Compiler,
    header: &'a Path,
    scratch: &'a Path,
    kernels: &'a std::collections::BTreeSet<String>,
    sites: &'a mut Sites,
    /// One for each GPU.
    runners: &'a [Runner<'a>],
    original: &'a Sources,
    /// Points that are built: what they are made of, and the program that measures times.
    built: BTreeMap<Point, (Sources, PathBuf)>,
    tried: BTreeMap<Point, Tried>,
    resumed: usize,
    stopped: usize,
    state: Option<&'a State>,
    begin: Instant,
    progress: Progress<'a>,
}

impl Lab<'_> {
    fn recipe(&self, point: Point) -> Recipe {
        let prefix = self.prefix.iter().filter_map(|id| rewrite_by_id(id));
        let steps = prefix.map(|rewrite| (rewrite, Options::default())).chain(point.steps());
        Recipe::of(point.to_string(), steps.collect())
    }

    fn apply(&self, point: Point) -> Result<Result<(Project, Applied), Vec<String>>, String> {
        let file = &self.tuning.request.file;
        Base::new(self.load, file, self.tuning.place)?.apply(file, &self.recipe(point))
    }

    /// The points: without rewrites that no launch can take.
    fn space(&self, guess: Point) -> Result<Space, String> {
        let applies = |point: Point| Ok::<bool, String>(self.apply(point)?.is_ok());
        let some = |values: &[u64]| std::iter::once(None).chain(values.iter().copied().map(Some)).collect();
        let mut thresholds = self.tuning.thresholds.clone().unwrap_or_else(|| some(&THRESHOLDS));
        let mut factors = self.tuning.factors.clone().unwrap_or_else(|| some(&FACTORS));
        let all = || std::iter::once(None).chain(GRANULARITIES.map(Some)).collect();
        let granularities: Vec<Option<&'static str>> = self.tuning.granularities.clone().unwrap_or_else(all);
        // The largest: a child with barriers takes those only that are above its block size.
        let threshold = thresholds.iter().copied().max().flatten();
        if threshold.is_some()
            && !applies(Point {
                threshold,
                ..Point::default()
            })?
        {
            thresholds = vec![None];
        }
        let factor = factors.iter().copied().max().flatten();
        if factor.is_some()
            && !applies(Point {
                factor,
                ..Point::default()
            })?
        {
            factors = vec![None];
        }
        let mut possible = Vec::new();
        for granularity in granularities {
            if granularity.is_none()
                || applies(Point {
                    granularity,
                    ..Point::default()
                })?
            {
                possible.push(granularity);
            }
        }
        let space = Space::new(thresholds, factors, possible, guess);
        if space.len() < 2 {
            let reasons = self.apply(Point {
                granularity: Some("aggregate-grid"),
                ..Point::default()
            })?;
            let why = reasons.err().unwrap_or_default();
            return Err(format!(
                "no rewrite with something to tune can be applied: {}",
                why.first().map_or("", String::as_str)
            ));
        }
        Ok(space)
    }

    /// Builds and runs the program as it is.
    fn reference(&self, runner: &Runner<'_>) -> Result<Reference, String> {
        let jobs = [
            Job {
                directory: self.scratch.join("original-timed"),
                texts: &self.original.timed,
            },
            Job {
                directory: self.scratch.join("original-checked"),
                texts: &self.original.checked,
            },
        ];
        let request = &self.tuning.request;
        let mut built = build_each(self.place, self.compiler, &jobs, request, self.header, &|_| ()).into_iter();
        let (timed, checked) = match (built.next(), built.next()) {
            (Some(Ok(timed)), Some(Ok(checked))) => (timed, checked),
            (Some(Err(failure)), _) | (_, Some(Err(failure))) => {
                return Err(format!("the program as it is does not compile:\n{}", failure.message));
            }
            _ => return Err("internal error: a build was lost; please report it".to_owned()),
        };
        (self.progress)(PROBED, "running the program as it is");
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
        let captured = runner.capture(&checked).map_err(unusable)?;
        let mut times_ms = Vec::new();
        let mut launches = 0;
        for _ in 0..request.repeat.min(3) {
            let timed = runner.timed(&timed, request.timeout).map_err(unusable)?;
            times_ms.push(timed.ms);
            launches = timed.launches;
        }
        let outcome = Outcome::Ran(Box::new(Run {
            median_ms: median(&times_ms).unwrap_or_default(),
            times_ms,
            host_launches: launches,
            device_launches: captured.device_launches(),
            errors: captured.errors(),
            agreement: Agreement::Original,
        }));
        Ok(Reference { outcome, captured })
    }

    /// Searches the best point.
    fn search(&mut self, space: &Space, guess: Point, reference: &Reference) -> Result<Option<Point>, String> {
        let repeat = self.tuning.request.repeat;
        let mut search = Search::new(space, guess, repeat);
        let expected = (space.len() / 4).max(1);
        while let Some(batch) = search.next(&self.times()) {
            self.run(&batch.points, &search.soon(&self.times()), expected)?;
            if self.tuning.budget.is_some_and(|budget| self.begin.elapsed() > budget) {
                break;
            }
        }
        // The fastest first, until one computes the same.
        loop {
            let times = self.times();
            let order = ranked(&times.keys().copied().collect::<Vec<_>>(), &times);
            let finalists: Vec<Point> = order
                .into_iter()
                .filter(|point| !self.is_wrong(*point))
                .take(FINALISTS)
                .collect();
            let wanted: Vec<(Point, usize)> = finalists.iter().map(|point| (*point, repeat)).collect();
            self.run(&wanted, &[], expected)?;
            let open: Vec<Point> = finalists
                .iter()
                .copied()
                .filter(|point| {
                    let tried = self.tried.get(point);
                    tried.is_some_and(|tried| tried.agreement.is_none() && tried.given_up.is_none())
                })
                .collect();
            if !open.is_empty() {
                (self.progress)(96, "comparing with the program as it is");
                self.compare(&open, &reference.captured)?;
                continue;
            }
            let times = self.times();
            return Ok(ranked(&finalists, &times).first().copied());
        }
    }

    /// The medians of the points that are in the race.
    fn times(&self) -> BTreeMap<Point, f64> {
        let points = self.tried.iter().filter(|(_, tried)| tried.given_up.is_none());
        points
            .filter_map(|(point, tried)| Some((*point, median(&tried.times_ms)?)))
            .collect()
    }

    /// It was compared, and doesn't compute what the original computes.
    fn is_wrong(&self, point: Point) -> bool {
        let agreement = self.tried.get(&point).and_then(|tried| tried.agreement.as_ref());
        agreement.is_some_and(|agreement| !matches!(agreement, Agreement::Agrees { .. }))
    }

    fn save(&self) -> Result<(), String> {
        match self.state {
            Some(state) => state
                .save(&self.tried)
                .map_err(|error| format!("cannot remember the search: {error}")),
            None => Ok(()),
        }
    }

    /// Runs points until each has run so often. `soon`: points that are built on cores that would have nothing to do.
    fn run(&mut self, wanted: &[(Point, usize)], soon: &[Point], expected: usize) -> Result<(), String> {
        let open: Vec<(Point, usize)> = wanted
            .iter()
            .filter_map(|(point, runs)| {
                let tried = self.tried.get(point);
                let done = tried.map_or(0, |tried| tried.times_ms.len());
                let out = tried.is_some_and(|tried| tried.given_up.is_some());
                (!out && done < *runs).then_some((*point, runs - done))
            })
            .collect();
        let mut points: Vec<Point> = open.iter().map(|(point, _)| *point).collect();
        points.retain(|point| !self.built.contains_key(point));
        // One build more takes as long as none while a core is free; a project's own command uses them itself.
        if !points.is_empty() && self.compiler.project.is_none() {
            let free = self.place.cores().saturating_sub(points.len());
            let new = soon
                .iter()
                .filter(|point| !self.tried.contains_key(point) && !self.built.contains_key(point));
            points.extend(new.take(free));
        }
        self.build(&points, expected)?;
        let mut queue: VecDeque<(Point, usize)> = open
            .into_iter()
            .filter(|(point, _)| self.built.contains_key(point))
            .collect();
        // One sets the pace for the others.
        if !self.tried.values().any(|tried| tried.seconds.is_some())
            && let Some(first) = queue.pop_front()
        {
            self.race(VecDeque::from([first]), expected)?;
        }
        self.race(queue, expected)
    }

    /// Runs built points, on all GPUs.
    fn race(&mut self, queue: VecDeque<(Point, usize)>, expected: usize) -> Result<(), String> {
        let timeout = self.tuning.request.timeout;
        let built = &self.built;
        let progress = self.progress;
        let state = self.state;
        struct Shared<'a> {
            queue: VecDeque<(Point, usize)>,
            tried: &'a mut BTreeMap<Point, Tried>,
            stopped: &'a mut usize,
            problem: Option<String>,
        }
        let shared = Mutex::new(Shared {
            queue,
            tried: &mut self.tried,
            stopped: &mut self.stopped,
            problem: None,
        });
        let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
        let work = |runner: &Runner<'_>| {
            loop {
                let (point, runs, pace) = {
                    let mut shared = lock();
                    if process::given_up() {
                        shared.problem = Some("given up".to_owned());
                    }
                    if shared.problem.is_some() {
                        return;
                    }
                    let Some((point, runs)) = shared.queue.pop_front() else {
                        return;
                    };
                    let in_race = shared.tried.values().filter(|tried| tried.given_up.is_none());
                    let pace = in_race.filter_map(|tried| tried.seconds).fold(f64::INFINITY, f64::min);
                    let done = shared.tried.values().filter(|tried| !refused(tried)).count();
                    progress(percent(PROBED, 95, done, expected), &format!("running {point}"));
                    (point, runs, pace)
                };
                let Some((_, program)) = built.get(&point) else {
                    continue;
                };
                for _ in 0..runs {
                    let limit =
                        Duration::try_from_secs_f64(pace * STOP + SLACK).map_or(timeout, |limit| limit.min(timeout));
                    let outcome = runner.timed(program, limit);
                    let mut shared = lock();
                    if process::given_up() {
                        shared.problem = Some("given up".to_owned());
                        return;
                    }
                    let out = {
                        let tried = shared.tried.entry(point).or_default();
                        match outcome {
                            Ok(timed) => {
                                tried.times_ms.push(timed.ms);
                                tried.host_launches = timed.launches;
                                tried.seconds = Some(tried.seconds.map_or(timed.seconds, |s| s.min(timed.seconds)));
                            }
                            Err(Outcome::TimedOut { .. }) => tried.given_up = Some(GivenUp::Slow),
                            Err(Outcome::Failed { message, .. }) => tried.given_up = Some(GivenUp::Failed { message }),
                            Err(_) => {
                                let message = "it can't be run".to_owned();
                                tried.given_up = Some(GivenUp::Failed { message });
                            }
                        }
                        tried.given_up.clone()
                    };
                    *shared.stopped += usize::from(out == Some(GivenUp::Slow));
                    if let Some(Err(error)) = state.map(|state| state.save(shared.tried)) {
                        shared.problem = Some(format!("cannot remember the search: {error}"));
                    }
                    if out.is_some() {
                        break;
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for runner in self.runners {
                scope.spawn(|| work(runner));
            }
        });
        let problem = shared.into_inner().unwrap_or_else(PoisonError::into_inner).problem;
        problem.map_or(Ok(()), Err)
    }

    /// Builds the programs of points that aren't built.
    fn build(&mut self, points: &[Point], expected: usize) -> Result<(), String> {
        let mut prepared: Vec<(Point, Sources)> = Vec::new();
        for point in points {
            if self.built.contains_key(point) {
                continue;
            }
            match self.sources(*point)? {
                Ok(sources) => prepared.push((*point, sources)),
                Err(reasons) => {
                    let tried = self.tried.entry(*point).or_default();
                    tried.given_up = Some(GivenUp::Refused { reasons });
                }
            }
        }
        let jobs: Vec<Job<'_>> = prepared
            .iter()
            .map(|(point, sources)| Job {
                directory: self.scratch.join(format!("{point}-timed")),
                texts: &sources.timed,
            })
            .collect();
        let done = self.tried.values().filter(|tried| !refused(tried)).count();
        let so_far = |built: usize| {
            let what = format!("building programs: {built} of {}", jobs.len());
            (self.progress)(percent(PROBED, 95, done, expected), &what);
        };
        let programs = build_each(
            self.place,
            self.compiler,
            &jobs,
            &self.tuning.request,
            self.header,
            &so_far,
        );
        drop(jobs);
        if process::given_up() {
            return Err("given up".to_owned());
        }
        for ((point, sources), program) in prepared.into_iter().zip(programs) {
            match program {
                Ok(program) => {
                    self.built.insert(point, (sources, program));
                }
                Err(BuildFailure { message, .. }) => {
                    self.tried.entry(point).or_default().given_up = Some(GivenUp::NotBuilt { message });
                }
            }
        }
        self.save()
    }

    fn sources(&mut self, point: Point) -> Result<Result<Sources, Vec<String>>, String> {
        match self.apply(point)? {
            Ok((project, _)) => Ok(Ok(sources(&project, &self.tuning.request, self.kernels, self.sites)?)),
            Err(reasons) => Ok(Err(reasons)),
        }
    }

    /// Compares points with the original.
    fn compare(&mut self, points: &[Point], original: &Captured) -> Result<(), String> {
        for point in points {
            // Known from before the interruption, and not built this time.
            if !self.built.contains_key(point) {
                self.build(&[*point], 1)?;
            }
        }
        let jobs: Vec<(Point, Job<'_>)> = points
            .iter()
            .filter_map(|point| {
                let (sources, _) = self.built.get(point)?;
                let directory = self.scratch.join(format!("{point}-checked"));
                let texts = &sources.checked;
                Some((*point, Job { directory, texts }))
            })
            .collect();
        let (order, jobs): (Vec<Point>, Vec<Job<'_>>) = jobs.into_iter().unzip();
        let programs = build_each(
            self.place,
            self.compiler,
            &jobs,
            &self.tuning.request,
            self.header,
            &|_| (),
        );
        let Some(runner) = self.runners.first() else {
            return Ok(());
        };
        for (point, program) in order.into_iter().zip(programs) {
            let checked = program.map(|program| runner.check(&program, Some(original)));
            if process::given_up() {
                return Err("given up".to_owned());
            }
            let tried = self.tried.entry(point).or_default();
            match checked {
                Ok(Ok((agreement, recording))) => {
                    tried.agreement = Some(agreement);
                    tried.device_launches = recording.launches;
                }
                Ok(Err(Outcome::Failed { message, .. })) => tried.given_up = Some(GivenUp::Failed { message }),
                Ok(Err(_)) => tried.given_up = Some(GivenUp::Slow),
                Err(BuildFailure { message, .. }) => tried.given_up = Some(GivenUp::NotBuilt { message }),
            }
        }
        self.save()
    }

    /// The points that were compared, and those with which something is wrong.
    fn points(&self) -> Vec<TriedPoint> {
        let mut points: Vec<(f64, TriedPoint)> = self
            .tried
            .iter()
            .filter_map(|(point, tried)| {
                let outcome = match (&tried.given_up, &tried.agreement) {
                    (Some(GivenUp::NotBuilt { message }), _) => Outcome::NotBuilt {
                        message: message.clone(),
                        messages: Vec::new(),
                    },
                    (Some(GivenUp::Failed { message }), _) => Outcome::Failed {
                        message: message.clone(),
                        advice: None,
                    },
                    (None, Some(agreement)) => Outcome::Ran(Box::new(Run {
                        times_ms: tried.times_ms.clone(),
                        median_ms: median(&tried.times_ms)?,
                        host_launches: tried.host_launches,
                        device_launches: tried.device_launches,
                        errors: Vec::new(),
                        agreement: agreement.clone(),
                    })),
                    _ => return None,
                };
                let point = point.to_string();
                Some((outcome.median().unwrap_or(f64::INFINITY), TriedPoint { point, outcome }))
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points.into_iter().map(|(_, point)| point).collect()
    }

    /// Measures all points as `measure` does it: nothing is stopped early, and all results are compared.
    fn sweep(&mut self, space: &Space, found: Option<Point>, reference: &Reference) -> Result<Swept, String> {
        let begin = Instant::now();
        let all = space.points();
        let mut times: BTreeMap<Point, f64> = BTreeMap::new();
        for (portion, points) in all.chunks(PORTION).enumerate() {
            let mut prepared = Vec::new();
            for point in points {
                if let Ok(sources) = self.sources(*point)? {
                    prepared.push((*point, sources));
                }
            }
            let directory = self.scratch.join(format!("all-{portion}"));
            let jobs: Vec<Job<'_>> = prepared
                .iter()
                .flat_map(|(point, sources)| {
                    [("timed", &sources.timed), ("checked", &sources.checked)].map(|(what, texts)| Job {
                        directory: directory.join(format!("{point}-{what}")),
                        texts,
                    })
                })
                .collect();
            let what = format!("measuring all {} points", all.len());
            (self.progress)(percent(95, 100, portion * PORTION, all.len()), &what);
            let mut built = build_each(
                self.place,
                self.compiler,
                &jobs,
                &self.tuning.request,
                self.header,
                &|_| (),
            )
            .into_iter();
            let mut queue = VecDeque::new();
            for (point, sources) in &prepared {
                if let (Some(timed), Some(checked)) = (built.next(), built.next()) {
                    queue.push_back((*point, &sources.plain, Programs { timed, checked }));
                }
            }
            let shared = Mutex::new((queue, &mut times));
            let lock = || shared.lock().unwrap_or_else(PoisonError::into_inner);
            let work = |runner: &Runner<'_>| {
                loop {
                    let next = lock().0.pop_front();
                    let Some((point, plain, programs)) = next else { return };
                    if process::given_up() {
                        return;
                    }
                    let outcome = runner.variant_of(&programs, plain, &reference.captured);
                    if let Outcome::Ran(run) = outcome
                        && matches!(run.agreement, Agreement::Agrees { .. })
                    {
                        lock().1.insert(point, run.median_ms);
                    }
                }
            };
            std::thread::scope(|scope| {
                for runner in self.runners {
                    scope.spawn(|| work(runner));
                }
            });
            self.place.remove(&directory);
            if process::given_up() {
                return Err("given up".to_owned());
            }
        }
        let best = ranked(&all, &times).first().copied();
        Ok(Swept {
            points: times.len(),
            seconds: begin.elapsed().as_secs_f64(),
            best: best.map(|point| point.to_string()),
            best_ms: best.and_then(|point| times.get(&point).copied()),
            found_ms: found.and_then(|point| times.get(&point).copied()),
        })
    }
}
