//! What gridfuse says of a program's launches, and of what its diagnostics point to, and the programs that its rewrites make of it.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use gridfuse_analysis::base::db::{SourceFile, Workspace};
use gridfuse_analysis::base::parse::parse;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::facts::launch::{LaunchId, Launchers, launches};
use gridfuse_analysis::hir::items::items;
use gridfuse_analysis::host::Host;
use gridfuse_codeactions::api::assumption::reasons;
use gridfuse_codeactions::api::refusal::Reason;
use gridfuse_codeactions::api::rewrite::{At, Options, Verdict};
use gridfuse_codeactions::api::source_edit::SourceEdit;
use gridfuse_codeactions::api::source_edit::apply_to_text;
use gridfuse_codeactions::api::source_edit::map_range;
use gridfuse_codeactions::handlers::{launch_rewrite, of_launches, rewrite_by_id};

use super::print::Printed;
use super::random::Random;

/// One rewrite of one launch, or of what a diagnostic points to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// The launch; 0 when the program doesn't say which; from [`PLACES`] on: the place of a diagnostic, by its turn among those that
    /// name the rewrite.
    pub site: u32,
    /// The rewrite.
    pub id: String,
    /// The value of its option, where it has one and not the default is taken.
    pub option: Option<String>,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.id)?;
        if let Some(option) = &self.option {
            write!(f, "={option}")?;
        }
        write!(f, "@{}", self.site)
    }
}

/// A sequence of rewrites as text: `threshold@2,aggregate-block@2`.
pub fn sequence(steps: &[Step]) -> String {
    let steps: Vec<String> = steps.iter().map(Step::to_string).collect();
    steps.join(",")
}

/// A program after some rewrites.
#[derive(Clone, Debug)]
pub struct Variant {
    /// What was done, in order.
    pub steps: Vec<Step>,
    /// All files.
    pub files: BTreeMap<String, String>,
    /// What the rewrites took for granted.
    pub assumptions: Vec<String>,
}

/// What gridfuse says of a rewrite of a launch.
#[derive(Clone, Debug)]
pub struct Said {
    /// The launch.
    pub site: u32,
    /// The rewrite.
    pub id: &'static str,
    /// `eligible`, `assumes` or `ineligible`.
    pub verdict: &'static str,
    /// Assumptions or reasons.
    pub reasons: Vec<String>,
}

/// A mistake of gridfuse that shows without running anything.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// What was done.
    pub steps: Vec<Step>,
    /// What is wrong.
    pub what: String,
    /// It panicked.
    pub panic: bool,
}

/// All that gridfuse makes of a program.
#[derive(Clone, Debug, Default)]
pub struct Rewrites {
    /// Verdicts on the launches by device code.
    pub said: Vec<Said>,
    /// Rewritten programs.
    pub variants: Vec<Variant>,
    /// Mistakes.
    pub mistakes: Vec<Mistake>,
}

/// How many rewritten programs are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// At most so many.
    pub variants: usize,
    /// Steps in a sequence, at most.
    pub steps: usize,
}

const ROOT: &str = "/fuzz";

/// Where the numbers of places begin, beyond those of launches.
const PLACES: u32 = 1_000_000;

/// Rewrites of places that leave what a program prints as it is, wherever a diagnostic names them. `check-launch-error` prints.
const OF_PLACES: &[&str] = &[
    "replace-device-sync",
    "outline-iteration",
    "guard-empty-grid",
    "destroy-stream",
    "raise-pending-launch-limit",
];

/// Name of the runtime header, which takes longer to parse than a program.
pub const HEADER: &str = "gridfuse.cuh";

/// Databases that are used again and again, so that the runtime header is parsed once, and programs change under them as
/// they do in an editor.
pub struct Session {
    /// For programs as they are generated.
    original: Host,
    /// For rewritten programs that are rewritten again.
    before: Host,
    /// For what came out.
    after: Host,
    uses: u32,
}

impl Default for Session {
    fn default() -> Self {
        Session {
            original: Host::new(),
            before: Host::new(),
            after: Host::new(),
            uses: 0,
        }
    }
}

impl Session {
    /// Forgets everything now and then: a database never shrinks.
    fn begin(&mut self) {
        self.uses += 1;
        if self.uses > 100 {
            *self = Session::default();
        }
    }

    /// The database with these files, and no others.
    fn host(&mut self, files: &BTreeMap<String, String>) -> &Host {
        let host = if files.contains_key(HEADER) {
            &mut self.before
        } else {
            &mut self.original
        };
        fill(host, files);
        host
    }
}

fn fill(host: &mut Host, files: &BTreeMap<String, String>) {
    let known: Vec<PathBuf> = Workspace::get(host.db()).files(host.db()).keys().cloned().collect();
    for path in known {
        if !files.contains_key(&name(&path)) {
            host.remove_file(&path);
        }
    }
    let texts = files.iter().map(|(name, text)| (path(name), text.as_str().into()));
    host.set_files(texts.collect());
}

/// Where a launch, or the place of a diagnostic, stands while it is rewritten.
#[derive(Clone)]
struct State {
    files: BTreeMap<String, String>,
    file: String,
    range: TextRange,
}

/// What can be rewritten in a program.
#[derive(Default)]
struct Starts {
    /// Launches by device code, by site.
    launches: Vec<(u32, State)>,
    /// Places of diagnostics, by number and rewrite.
    places: Vec<(u32, &'static str, State)>,
}

impl Starts {
    fn state(&self, site: u32, id: &str) -> Option<&State> {
        let launch = self.launches.iter().find(|(s, _)| *s == site).map(|(_, state)| state);
        let place = || self.places.iter().find(|(s, of, _)| *s == site && *of == id);
        launch.or_else(|| place().map(|(.., state)| state))
    }
}

/// Applies the rewrites to all launches of a program, and to the places of its diagnostics. At launches whose site is in `ordered`, nothing that assumes anything.
pub fn rewrite(session: &mut Session, printed: &Printed, ordered: &BTreeSet<u32>, seed: u64, wish: Wish) -> Rewrites {
    session.begin();
    let mut random = Random::new(seed ^ 0x7277);
    let mut found = Rewrites::default();
    let attempt = catch_unwind(AssertUnwindSafe(|| first_steps(session, printed, &mut found)));
    let starts = match attempt {
        Ok(starts) => starts,
        Err(panic) => {
            *session = Session::default();
            found.mistakes.push(Mistake {
                steps: Vec::new(),
                what: message(panic.as_ref()),
                panic: true,
            });
            return found;
        }
    };
    // Every single rewrite, then longer and longer sequences.
    let mut frontier: Vec<(Vec<Step>, State)> = Vec::new();
    for (site, state) in &starts.launches {
        for rewrite in of_launches() {
            let option = option_for(rewrite.id, &mut random);
            let step = Step {
                site: *site,
                id: rewrite.id.to_owned(),
                option,
            };
            let from = From {
                done: &[],
                other: None,
                state,
            };
            extend(session, &mut found, &mut frontier, &from, step, ordered);
        }
    }
    for (site, id, state) in &starts.places {
        let step = Step {
            site: *site,
            id: (*id).to_owned(),
            option: None,
        };
        let from = From {
            done: &[],
            other: None,
            state,
        };
        extend(session, &mut found, &mut frontier, &from, step, ordered);
    }
    for _ in 1..wish.steps {
        // Every way to go on is as good as another, and there are many: some of them.
        let mut ways = Vec::new();
        for (at, (steps, _)) in frontier.iter().enumerate() {
            let Some(last) = steps.last() else { continue };
            let unused = of_launches().filter(|r| !steps.iter().any(|s| s.id == r.id && s.site == last.site));
            ways.extend(unused.map(|rewrite| (at, last.site, rewrite.id)));
            let untouched = |site: u32| site != 0 && steps.iter().all(|s| s.site != site);
            let others = starts.launches.iter().filter(|(site, _)| untouched(*site));
            ways.extend(others.flat_map(|(site, _)| of_launches().map(move |r| (at, *site, r.id))));
            let places = starts.places.iter().filter(|(site, ..)| untouched(*site));
            ways.extend(places.map(|(site, id, _)| (at, *site, *id)));
        }
        let mut next = Vec::new();
        while ways.len() > wish.variants {
            ways.swap_remove(random.below(ways.len()));
        }
        // One program after the other, so that analyses are used again.
        ways.sort_unstable();
        for (at, site, id) in ways {
            let (steps, state) = &frontier[at];
            let same = steps.last().is_some_and(|last| last.site == site);
            let other = if same { None } else { starts.state(site, id) };
            let step = Step {
                site,
                id: id.to_owned(),
                option: option_for(id, &mut random),
            };
            let from = From {
                done: steps,
                other,
                state,
            };
            extend(session, &mut found, &mut next, &from, step, ordered);
        }
        frontier = next;
    }
    // Singles first; a random choice of the others.
    while found.variants.len() > wish.variants {
        let singles = found.variants.iter().filter(|v| v.steps.len() == 1).count();
        let from = if singles < found.variants.len() { singles } else { 0 };
        let out = from + random.below(found.variants.len() - from);
        found.variants.remove(out);
    }
    found
}

/// Applies a given sequence to a program: a reproducer. `None` when a rewrite of it is refused.
pub fn replay(session: &mut Session, printed: &Printed, steps: &[Step]) -> Result<Option<Variant>, Mistake> {
    let attempt = catch_unwind(AssertUnwindSafe(|| {
        let mut found = Rewrites::default();
        let starts = first_steps(session, printed, &mut found);
        let mut frontier = Vec::new();
        let mut done: Vec<Step> = Vec::new();
        let mut current: Option<State> = None;
        for step in steps {
            let Some(start) = starts.state(step.site, &step.id) else {
                return Ok(None);
            };
            let same = done.last().is_some_and(|last| last.site == step.site);
            let state = current.as_ref().unwrap_or(start).clone();
            let other = (!same && current.is_some()).then_some(start);
            frontier.clear();
            let from = From {
                done: &done,
                other,
                state: &state,
            };
            let none = BTreeSet::new();
            extend(session, &mut found, &mut frontier, &from, step.clone(), &none);
            if let Some(mistake) = found.mistakes.pop() {
                return Err(mistake);
            }
            let Some((steps, state)) = frontier.pop() else {
                return Ok(None);
            };
            done = steps;
            current = Some(state);
        }
        Ok(found.variants.pop())
    }));
    attempt.unwrap_or_else(|panic| {
        *session = Session::default();
        Err(Mistake {
            steps: steps.to_vec(),
            what: message(panic.as_ref()),
            panic: true,
        })
    })
}

fn option_for(id: &str, random: &mut Random) -> Option<String> {
    let known = launch_rewrite(id)?.options;
    if known.is_empty() || random.chance(50) {
        return None;
    }
    let values: &[&str] = match id {
        "reuse-threads" => &["auto", "thread", "warp", "block", "size", "grid"],
        _ => &["1", "9", "33", "100", "5000"],
    };
    Some(random.pick(values).to_string())
}

fn path(name: &str) -> PathBuf {
    Path::new(ROOT).join(name)
}

fn name(path: &Path) -> String {
    path.strip_prefix(ROOT).unwrap_or(path).to_string_lossy().into_owned()
}

/// The launches by device code in a file, with their places.
fn device_launches<'db>(host: &'db Host, file: SourceFile) -> Vec<(LaunchId<'db>, TextRange)> {
    let db = host.db();
    let mut found = Vec::new();
    for function in items(db, file).functions.iter().filter(|f| f.has_body(db)) {
        let signature = function.signature(db);
        if !(signature.kernel || signature.device) || !function.text(db).contains("<<") {
            continue;
        }
        for (index, facts) in launches(db, *function).iter().enumerate() {
            if facts.launchers != Launchers::Host {
                let id = LaunchId {
                    function: *function,
                    index: index as u32,
                };
                found.push((id, facts.span.shift(function.start(db))));
            }
        }
    }
    found
}

/// The places of a file for which a diagnostic names a rewrite.
fn places_of(host: &Host, file: SourceFile, id: &str) -> Vec<TextRange> {
    let all = diagnostics(host.db(), file).iter();
    all.filter(|d| d.rewrites.contains(&id))
        .map(|d| d.place.range)
        .collect()
}

/// Verdicts on everything, and where each launch and each place of a diagnostic stands.
fn first_steps(session: &mut Session, printed: &Printed, found: &mut Rewrites) -> Starts {
    let host = session.host(&printed.files);
    let db = host.db();
    let mut starts = Starts::default();
    let mut number = PLACES;
    for file_name in printed.files.keys() {
        let Some(file) = host.file(&path(file_name)) else {
            continue;
        };
        if !printed.beyond_the_grammar && parse(db, file).tree().root_node().has_error() {
            found.mistakes.push(Mistake {
                steps: Vec::new(),
                what: format!("{file_name} is not parsed completely"),
                panic: false,
            });
        }
        for (id, range) in device_launches(host, file) {
            let known = printed
                .launches
                .iter()
                .find(|(_, f, at)| f == file_name && *at == range.start);
            let site = known.map_or(0, |(site, ..)| *site);
            for rewrite in of_launches() {
                let (verdict, reasons) = match rewrite.verdict(db, id, &Options::default()) {
                    Verdict::Eligible => ("eligible", Vec::new()),
                    Verdict::Assumes(all) => ("assumes", reasons(&all)),
                    Verdict::Ineligible(reasons) => ("ineligible", reasons),
                };
                let reasons = texts(&reasons);
                let contradicted = printed.two_dimensional.iter().find(|kernel| {
                    let assumed = format!("blocks of `{kernel}` have one dimension");
                    reasons.iter().any(|reason| reason.contains(&assumed))
                });
                if let Some(kernel) = contradicted {
                    found.mistakes.push(Mistake {
                        steps: Vec::new(),
                        what: format!(
                            "{} at site {site}: that blocks of `{kernel}` have one dimension is assumed, and they have two in sight",
                            rewrite.id
                        ),
                        panic: false,
                    });
                }
                found.said.push(Said {
                    site,
                    id: rewrite.id,
                    verdict,
                    reasons,
                });
            }
            starts.launches.push((
                site,
                State {
                    files: printed.files.clone(),
                    file: file_name.clone(),
                    range,
                },
            ));
        }
        for id in OF_PLACES {
            for range in places_of(host, file, id) {
                let Some(rewrite) = rewrite_by_id(id) else { continue };
                let place = FileRange { file, range };
                let (verdict, reasons) = match Verdict::of(&rewrite.apply(db, place, &Options::default())) {
                    Verdict::Eligible => ("eligible", Vec::new()),
                    Verdict::Assumes(all) => ("assumes", texts(&reasons(&all))),
                    Verdict::Ineligible(reasons) => ("ineligible", texts(&reasons)),
                };
                found.said.push(Said {
                    site: number,
                    id: rewrite.id,
                    verdict,
                    reasons,
                });
                let state = State {
                    files: printed.files.clone(),
                    file: file_name.clone(),
                    range,
                };
                starts.places.push((number, rewrite.id, state));
                number += 1;
            }
        }
    }
    for (site, file, _) in &printed.launches {
        if !starts.launches.iter().any(|(s, _)| s == site) {
            found.mistakes.push(Mistake {
                steps: Vec::new(),
                what: format!("the launch of site {site} in {file} is not found"),
                panic: false,
            });
        }
    }
    starts
}

/// Where one more rewrite is applied.
struct From<'a> {
    /// What has been applied.
    done: &'a [Step],
    /// The launch to be rewritten is not the one that `state` speaks of, but was there in the original; it is looked for by
    /// its text.
    other: Option<&'a State>,
    /// The program as it is.
    state: &'a State,
}

/// Applies one more rewrite.
fn extend(
    session: &mut Session,
    found: &mut Rewrites,
    frontier: &mut Vec<(Vec<Step>, State)>,
    from: &From<'_>,
    step: Step,
    ordered: &BTreeSet<u32>,
) {
    let mut steps = from.done.to_vec();
    steps.push(step.clone());
    let attempt = catch_unwind(AssertUnwindSafe(|| apply_step(session, from.state, from.other, &step)));
    if attempt.is_err() {
        *session = Session::default();
    }
    match attempt {
        Err(panic) => found.mistakes.push(Mistake {
            steps,
            what: message(panic.as_ref()),
            panic: true,
        }),
        Ok(Err(what)) => found.mistakes.push(Mistake {
            steps,
            what,
            panic: false,
        }),
        Ok(Ok(None)) => {}
        Ok(Ok(Some((next, assumptions)))) => {
            // What a coarsened child does isn't contradicted any more by what is plain to see: it is assumed, rightly or not.
            let coarsened = from.done.iter().any(|s| s.site == step.site && s.id == "coarsen");
            if !assumptions.is_empty() && (ordered.contains(&step.site) || coarsened) {
                return;
            }
            found.variants.push(Variant {
                steps: steps.clone(),
                files: next.files.clone(),
                assumptions,
            });
            frontier.push((steps, next));
        }
    }
}

type Applied = Result<Option<(State, Vec<String>)>, String>;

fn apply_step(session: &mut Session, state: &State, other: Option<&State>, step: &Step) -> Applied {
    let rewrite = rewrite_by_id(&step.id).ok_or_else(|| format!("there is no rewrite {}", step.id))?;
    let host = session.host(&state.files);
    let db = host.db();
    let place = other.unwrap_or(state);
    let Some(file) = host.file(&path(&place.file)) else {
        return Ok(None);
    };
    let mut options = Options::default();
    if let (Some(value), Some(spec)) = (&step.option, rewrite.options.first()) {
        options.0.insert(spec.name.to_owned(), value.clone());
    }
    let all: Vec<(At<'_>, TextRange)> = if rewrite.target.is_launch() {
        let launches = device_launches(host, file).into_iter();
        launches.map(|(id, range)| (At::from(id), range)).collect()
    } else {
        let places = places_of(host, file, rewrite.id).into_iter();
        places
            .map(|range| (At::from(FileRange { file, range }), range))
            .collect()
    };
    let here = match other {
        Some(other) => {
            let text = other.files.get(&other.file).map_or("", String::as_str);
            let wanted = other.range.text(text);
            let now = file.text(db);
            let mut same = all.iter().filter(|(_, range)| range.text(&now) == wanted);
            let first = same.next();
            if same.next().is_some() { None } else { first }
        }
        None => {
            let overlaps = |range: &TextRange| range.start < state.range.end && state.range.start < range.end;
            let exact = all.iter().find(|(_, range)| *range == state.range);
            exact.or_else(|| all.iter().find(|(_, range)| overlaps(range)))
        }
    };
    let Some((at, range)) = here else { return Ok(None) };
    let applied = rewrite.apply(db, *at, &options);
    // Once is enough: `check` is asked of programs as they were written.
    let verdict = match &applied {
        Ok(edit) if state.files.contains_key(HEADER) && edit.assumptions.is_empty() => Verdict::Eligible,
        Ok(edit) if state.files.contains_key(HEADER) => Verdict::Assumes(edit.assumptions.clone()),
        Err(refusal) if state.files.contains_key(HEADER) => Verdict::Ineligible(refusal.0.clone()),
        _ => match at {
            At::Launch(id) => rewrite.verdict(db, *id, &options),
            At::Place(_) => Verdict::of(&applied),
        },
    };
    let edit = match (applied, verdict) {
        (Ok(edit), Verdict::Eligible) if edit.assumptions.is_empty() => edit,
        (Ok(edit), Verdict::Assumes(all)) if edit.assumptions == all && !all.is_empty() => edit,
        (Err(refusal), Verdict::Ineligible(reasons)) if refusal.0 == reasons && !reasons.is_empty() => return Ok(None),
        (applied, verdict) => {
            return Err(format!(
                "check says {verdict:?}, apply says {:?}",
                applied.map(|e| e.assumptions)
            ));
        }
    };
    let mut next = State {
        files: state.files.clone(),
        file: place.file.clone(),
        range: *range,
    };
    apply_edit(&edit, &mut next)?;
    // A tree of what came out: nothing may be left that isn't understood.
    let assumptions = texts(&reasons(&edit.assumptions));
    let broken = |host: &Host, name: &str| {
        let file = host.file(&path(name));
        file.is_some_and(|file| parse(host.db(), file).tree().root_node().has_error())
    };
    let was_broken: Vec<&String> = state.files.keys().filter(|name| broken(host, name)).collect();
    fill(&mut session.after, &next.files);
    for file in next.files.keys().filter(|name| *name != HEADER) {
        if broken(&session.after, file) && !was_broken.contains(&file) {
            return Err(format!("{file} is not parsed completely after {step}"));
        }
    }
    Ok(Some((next, assumptions)))
}

fn apply_edit(edit: &SourceEdit, state: &mut State) -> Result<(), String> {
    for (created, text) in &edit.creates {
        state.files.insert(name(created), text.to_string());
    }
    for (edited, list) in &edit.edits {
        let file = name(edited);
        let before = state
            .files
            .get(&file)
            .ok_or_else(|| format!("{file} is edited but not there"))?;
        let after = apply_to_text(edited, before, list).map_err(|error| error.to_string())?;
        if file == state.file {
            state.range = map_range(state.range, list);
        }
        state.files.insert(file, after);
    }
    Ok(())
}

fn texts(reasons: &[Reason]) -> Vec<String> {
    reasons.iter().map(|r| r.text.clone()).collect()
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}
