//! What a search needs to build, run and compare points, and what it knows of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use gridfuse_codeactions::api::rewrite::Options;
use gridfuse_codeactions::handlers::rewrite_by_id;

use super::base::{Base, Load};
use super::choice::{Choice, choose};
use super::cost::{Ledger, Stage};
use super::race::{Entry, Race, Tries};
use super::report::TriedPoint;
use super::search::{Search, ranked};
use super::space::{FACTORS, Point, Space, THRESHOLDS, granularities};
use super::state::{GivenUp, State, Tried};
use super::workshop::{Program, Workshop};
use super::{Reference, SEARCHED, Tuning, save};
use crate::cli::Project;
use crate::measure::instrument::Sites;
use crate::measure::report::{Agreement, Kernel, Outcome, Run, median};
use crate::measure::run::{Captured, Runner};
use crate::measure::variant::Applied;
use crate::measure::{PROBED, Progress, Recipe, Sources, percent, process, sources};

/// So many points are compared with the original at once, and shown.
pub const FINALISTS: usize = 3;

/// So many cores have to be free for programs that may never be run.
const SPARE_CORES: usize = 4;

/// What a point is made of; `Err`: why no launch can be rewritten.
type Made = Result<Arc<Sources>, Vec<String>>;

/// Everything that a search needs to run points, and what it knows of them.
pub struct Lab<'a> {
    /// What is tuned.
    pub tuning: &'a Tuning,
    /// Loads the user's files afresh.
    pub load: Load<'a>,
    /// Rewrites in front of each point's.
    pub prefix: Vec<&'static str>,
    /// Kernels that launch others.
    pub kernels: &'a BTreeSet<String>,
    /// Measured launches of the host.
    pub sites: Sites,
    /// One for each GPU.
    pub runners: &'a [Runner<'a>],
    /// The program as it is.
    pub original: Arc<Sources>,
    /// Where programs are built.
    pub workshop: &'a Workshop<'a>,
    /// What it takes.
    pub ledger: &'a Ledger,
    /// What points are made of.
    pub made: BTreeMap<Point, Made>,
    /// What the search knows.
    pub tried: Tries,
    /// What is known from measuring all points.
    pub swept: Tries,
    /// Runs that were stopped.
    pub stopped: usize,
    /// Where it's kept.
    pub state: Option<&'a State>,
    /// When all began.
    pub begin: Instant,
    /// Is told what goes on.
    pub progress: Progress<'a>,
}

/// What came out of a comparison with the original.
pub struct Checked {
    /// Whether it computes the same; `Err`: it is out of the race.
    pub verdict: Result<Agreement, GivenUp>,
    /// Launches by device code.
    pub launches: Option<u64>,
    /// What its kernels need.
    pub kernels: Vec<Kernel>,
    /// How long the program ran for that.
    pub time: Duration,
}

impl Tried {
    /// Takes what a comparison has found out.
    pub fn compared(&mut self, checked: Checked) {
        self.device_launches = checked.launches;
        self.compared_seconds = Some(checked.time.as_secs_f64());
        self.kernels = checked.kernels;
        match checked.verdict {
            Ok(agreement) => self.agreement = Some(agreement),
            Err(given_up) => self.given_up = Some(given_up),
        }
    }
}

/// No launch could be rewritten.
pub fn refused(tried: &Tried) -> bool {
    matches!(tried.given_up, Some(GivenUp::Refused { .. }))
}

/// The medians of the points that are in the race.
pub fn times(tries: &Tries) -> BTreeMap<Point, f64> {
    let points = tries.iter().filter(|(_, tried)| tried.given_up.is_none());
    points
        .filter_map(|(point, tried)| Some((*point, median(&tried.times_ms)?)))
        .collect()
}

/// It was compared, and doesn't compute what the original computes.
pub fn is_wrong(tries: &Tries, point: Point) -> bool {
    let agreement = tries.get(&point).and_then(|tried| tried.agreement.as_ref());
    agreement.is_some_and(|agreement| !matches!(agreement, Agreement::Agrees { .. }))
}

/// Waits until a program is built, and compares what it computes with the original.
fn check_one(
    runner: &Runner<'_>,
    workshop: &Workshop<'_>,
    program: Program,
    stage: Stage,
    original: &Captured,
) -> Checked {
    let built = workshop.wait(program);
    let begin = Instant::now();
    let checked = built.map(|program| runner.check(&program, original));
    let time = begin.elapsed();
    workshop.ledger.ran(stage, time);
    let given_up = match checked {
        Ok(Ok((agreement, recording))) => {
            return Checked {
                verdict: Ok(agreement),
                launches: recording.launches,
                kernels: recording.kernels,
                time,
            };
        }
        Ok(Err(Outcome::Failed { message, .. })) => GivenUp::Failed { message },
        Ok(Err(_)) => GivenUp::Slow,
        Err(failure) => GivenUp::NotBuilt {
            message: failure.message,
        },
    };
    Checked {
        verdict: Err(given_up),
        launches: None,
        kernels: Vec::new(),
        time,
    }
}

impl Lab<'_> {
    fn recipe(&self, point: Point) -> Recipe {
        let prefix = self.prefix.iter().filter_map(|id| rewrite_by_id(id));
        let steps = prefix.map(|rewrite| (rewrite, Options::default())).chain(point.steps());
        Recipe::of(point.to_string(), steps.collect())
    }

    /// Rewrites the launches. `Ok(Err(…))`: none of them can be, and why.
    pub fn apply(&self, point: Point) -> Result<Result<(Project, Applied), Vec<String>>, String> {
        // On a busy machine all points together take seconds: the one who has ended the search doesn't wait for them.
        if process::given_up() {
            return Err("given up".to_owned());
        }
        let file = &self.tuning.request.file;
        Base::new(self.load, file, self.tuning.place)?.apply(file, &self.recipe(point))
    }

    /// The points: without rewrites that no launch can take.
    pub fn space(&self, guess: Point) -> Result<Space, String> {
        let applies = |point: Point| Ok::<bool, String>(self.apply(point)?.is_ok());
        let some = |values: &[u64]| std::iter::once(None).chain(values.iter().copied().map(Some)).collect();
        let mut thresholds = self.tuning.thresholds.clone().unwrap_or_else(|| some(&THRESHOLDS));
        let mut factors = self.tuning.factors.clone().unwrap_or_else(|| some(&FACTORS));
        let all = || {
            std::iter::once(None)
                .chain(granularities().into_iter().map(Some))
                .collect()
        };
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
        let mut combined = vec![false];
        if applies(Point {
            combined: true,
            ..Point::default()
        })? {
            combined.push(true);
        }
        let space = Space::new(thresholds, factors, possible, combined, guess);
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

    /// What a point is made of.
    fn made(&mut self, point: Point) -> Result<Made, String> {
        if let Some(made) = self.made.get(&point) {
            return Ok(made.clone());
        }
        let made = match self.apply(point)? {
            Ok((project, _)) => {
                let request = &self.tuning.request;
                Ok(Arc::new(sources(&project, request, self.kernels, &mut self.sites)?))
            }
            Err(reasons) => Err(reasons),
        };
        self.made.insert(point, made.clone());
        Ok(made)
    }

    /// Has a point's program built. `Ok(Err(…))`: no launch can be rewritten, and why.
    pub fn order(
        &mut self,
        stage: Stage,
        point: Point,
        checked: bool,
        spare: bool,
    ) -> Result<Result<Program, Vec<String>>, String> {
        let made = match self.made(point)? {
            Ok(made) => made,
            Err(reasons) => return Ok(Err(reasons)),
        };
        let as_it_is = made.timed == self.original.timed && made.checked == self.original.checked;
        let program = match as_it_is {
            // It's built already.
            true => Program {
                stage: Stage::Setup,
                point: None,
                checked,
            },
            false => Program {
                stage,
                point: Some(point),
                checked,
            },
        };
        self.workshop.order(program, &made, spare);
        Ok(Ok(program))
    }

    /// Has those of some points built that the search would run, and has not.
    pub fn order_timed(&mut self, points: &[Point], spare: bool) -> Result<(), String> {
        for point in points {
            if self.tried.contains_key(point) {
                continue;
            }
            if let Err(reasons) = self.order(Stage::Search, *point, false, spare)? {
                self.tried.entry(*point).or_default().given_up = Some(GivenUp::Refused { reasons });
            }
        }
        Ok(())
    }

    /// Searches the best point.
    pub fn search(&mut self, mut search: Search<'_>, reference: &Reference) -> Result<Option<Choice>, String> {
        let repeat = self.tuning.request.repeat;
        let most = search.most();
        while let Some(batch) = search.next(&times(&self.tried)) {
            let left = search.left();
            let soon: Vec<Point> = search.soon(&times(&self.tried)).into_iter().take(left).collect();
            self.run(&batch.points, &soon, reference, most)?;
            if self.tuning.budget.is_some_and(|budget| self.begin.elapsed() > budget) {
                break;
            }
        }
        self.workshop.forget_spare();
        // The fastest first, until one computes the same.
        loop {
            let now = times(&self.tried);
            let order = ranked(&now.keys().copied().collect::<Vec<_>>(), &now);
            let right = order.into_iter().filter(|point| !is_wrong(&self.tried, *point));
            let finalists: Vec<Point> = right.take(FINALISTS).collect();
            let is_open = |tried: &Tried| tried.agreement.is_none() && tried.given_up.is_none();
            // Built while they run once more.
            for point in &finalists {
                if self.tried.get(point).is_some_and(is_open) {
                    let _ = self.order(Stage::Search, *point, true, false)?;
                }
            }
            let wanted: Vec<(Point, usize)> = finalists.iter().map(|point| (*point, repeat)).collect();
            self.run(&wanted, &[], reference, most)?;
            let open = finalists.iter().copied();
            let open: Vec<Point> = open
                .filter(|point| self.tried.get(point).is_some_and(is_open))
                .collect();
            if !open.is_empty() {
                self.progress.tell(SEARCHED, "comparing with the program as it is");
                for (point, checked) in self.check(Stage::Search, &open, &reference.captured)? {
                    self.tried.entry(point).or_default().compared(checked);
                }
                self.save()?;
                continue;
            }
            return Ok(choose(&ranked(&finalists, &times(&self.tried)), &self.tried));
        }
    }

    /// Keeps what is known.
    pub fn save(&self) -> Result<(), String> {
        save(self.state, &self.tried, &self.swept, self.ledger)
    }

    /// Runs points until each has run so often. `soon`: points that are built on cores that would have nothing to do.
    fn run(
        &mut self,
        wanted: &[(Point, usize)],
        soon: &[Point],
        reference: &Reference,
        most: usize,
    ) -> Result<(), String> {
        let mut queue = VecDeque::new();
        for (point, runs) in wanted {
            let tried = self.tried.get(point);
            let done = tried.map_or(0, |tried| tried.times_ms.len());
            if tried.is_some_and(|tried| tried.given_up.is_some()) || done >= *runs {
                continue;
            }
            match self.order(Stage::Search, *point, false, false)? {
                Ok(program) => queue.push_back(Entry {
                    point: *point,
                    program,
                    runs: runs - done,
                }),
                Err(reasons) => {
                    self.tried.entry(*point).or_default().given_up = Some(GivenUp::Refused { reasons });
                }
            }
        }
        let workers = self.workshop.workers(self.runners.len());
        if self.workshop.waiting() + SPARE_CORES <= workers {
            self.order_timed(soon, true)?;
        }
        let (state, swept, ledger) = (self.state, &self.swept, self.ledger);
        let race = Race {
            runners: self.runners,
            workshop: self.workshop,
            pace: Some(reference.seconds),
            told: &|done, what| self.progress.tell(percent(PROBED, SEARCHED, done, most), what),
            save: &|tried| save(state, tried, swept, ledger),
        };
        self.stopped += race.run(queue, &mut self.tried)?;
        Ok(())
    }

    /// Compares points with the original.
    pub fn check(
        &mut self,
        stage: Stage,
        points: &[Point],
        original: &Captured,
    ) -> Result<Vec<(Point, Checked)>, String> {
        let mut programs = Vec::new();
        for point in points {
            if let Ok(program) = self.order(stage, *point, true, false)? {
                programs.push((*point, program));
            }
        }
        let workshop = self.workshop;
        let queue = Mutex::new(VecDeque::from(programs));
        let all = Mutex::new(Vec::new());
        // Each GPU takes the next one as soon as it's done with another.
        std::thread::scope(|scope| {
            for runner in self.runners {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                        let Some((point, program)) = next else { return };
                        if process::given_up() {
                            return;
                        }
                        let checked = check_one(runner, workshop, program, stage, original);
                        all.lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push((point, checked));
                    }
                });
            }
        });
        if process::given_up() {
            return Err("given up".to_owned());
        }
        Ok(all.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The points that were compared, and those with which something is wrong.
    pub fn points(&self) -> Vec<TriedPoint> {
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
                        kernels: tried.kernels.clone(),
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
}
