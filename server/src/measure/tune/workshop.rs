//! Building programs in the background: while GPUs run what is built, the other cores build what comes next.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::cost::{Ledger, Stage};
use super::space::Point;
use crate::measure::build::{BuildFailure, Compiler};
use crate::measure::place::Place;
use crate::measure::{Request, Sources, build_one, process};

/// So long who waits sleeps before it looks whether the user has given up.
const MOMENT: Duration = Duration::from_millis(50);

/// A program to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// For what.
    pub stage: Stage,
    /// `None`: the program as it is.
    pub point: Option<Point>,
    /// It looks at memory, and measures no times.
    pub checked: bool,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.checked { "checked" } else { "timed" };
        match self.point {
            Some(point) => write!(f, "{}-{point}-{what}", self.stage),
            None => write!(f, "{}-original-{what}", self.stage),
        }
    }
}

/// What becomes of a program.
type Built = Result<PathBuf, BuildFailure>;

struct Order {
    program: Program,
    sources: Arc<Sources>,
}

#[derive(Default)]
struct Yard {
    /// Somebody waits for these.
    wanted: VecDeque<Order>,
    /// Nobody does yet.
    spare: VecDeque<Order>,
    /// `None`: ordered, and not built yet.
    programs: BTreeMap<Program, Option<Built>>,
    closed: bool,
}

/// Where programs are built.
pub struct Workshop<'a> {
    /// On which machine.
    pub place: &'a Place,
    /// With what.
    pub compiler: &'a Compiler,
    /// What is tuned.
    pub request: &'a Request,
    /// What makes programs measure themselves.
    pub header: &'a Path,
    /// Where.
    pub scratch: &'a Path,
    /// What it takes is noted there.
    pub ledger: &'a Ledger,
    yard: Mutex<Yard>,
    changed: Condvar,
}

impl<'a> Workshop<'a> {
    /// An empty one.
    pub fn new(
        place: &'a Place,
        compiler: &'a Compiler,
        request: &'a Request,
        header: &'a Path,
        scratch: &'a Path,
        ledger: &'a Ledger,
    ) -> Workshop<'a> {
        Workshop {
            place,
            compiler,
            request,
            header,
            scratch,
            ledger,
            yard: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    fn yard(&self) -> MutexGuard<'_, Yard> {
        self.yard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many builds run side by side, where so many GPUs run programs: those need a core each, or their times would be none.
    pub fn workers(&self, gpus: usize) -> usize {
        match self.compiler.project {
            // The project's own command uses the cores itself.
            Some(_) => 1,
            None => self.place.cores().saturating_sub(gpus).max(1),
        }
    }

    /// Builds what is ordered, until the workshop is closed.
    pub fn work(&self) {
        while let Some(Order { program, sources }) = self.next() {
            let begin = Instant::now();
            let texts = if program.checked {
                &sources.checked
            } else {
                &sources.timed
            };
            let directory = self.scratch.join(program.to_string());
            let built = build_one(self.place, self.compiler, self.request, self.header, &directory, texts);
            self.ledger.built(program.stage, begin.elapsed());
            self.yard().programs.insert(program, Some(built));
            self.changed.notify_all();
        }
    }

    fn next(&self) -> Option<Order> {
        let mut yard = self.yard();
        loop {
            if yard.closed || process::given_up() {
                return None;
            }
            if let Some(order) = yard.wanted.pop_front().or_else(|| yard.spare.pop_front()) {
                return Some(order);
            }
            yard = self.sleep(yard);
        }
    }

    fn sleep<'g>(&self, yard: MutexGuard<'g, Yard>) -> MutexGuard<'g, Yard> {
        let woken = self.changed.wait_timeout(yard, MOMENT);
        woken.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Has a program built, unless it is already. `spare`: only where nothing else is to be built.
    pub fn order(&self, program: Program, sources: &Arc<Sources>, spare: bool) {
        let mut yard = self.yard();
        if yard.programs.contains_key(&program) {
            let at = yard.spare.iter().position(|order| order.program == program);
            if !spare && let Some(order) = at.and_then(|at| yard.spare.remove(at)) {
                yard.wanted.push_back(order);
            }
            return;
        }
        yard.programs.insert(program, None);
        let order = Order {
            program,
            sources: sources.clone(),
        };
        match spare {
            true => yard.spare.push_back(order),
            false => yard.wanted.push_back(order),
        }
        drop(yard);
        self.changed.notify_all();
    }

    /// What nobody waits for, and isn't begun, isn't built.
    pub fn forget_spare(&self) {
        let mut yard = self.yard();
        for order in std::mem::take(&mut yard.spare) {
            yard.programs.remove(&order.program);
        }
    }

    /// How many programs somebody waits for, and nobody builds yet.
    pub fn waiting(&self) -> usize {
        self.yard().wanted.len()
    }

    /// A program that is built; `None`: it isn't yet.
    pub fn ready(&self, program: Program) -> Option<Built> {
        self.yard().programs.get(&program).cloned().flatten()
    }

    /// Waits until some program is built, or a moment.
    pub fn wait_a_moment(&self) {
        drop(self.sleep(self.yard()));
    }

    /// Waits until a program that was ordered is built.
    pub fn wait(&self, program: Program) -> Built {
        loop {
            if let Some(built) = self.ready(program) {
                return built;
            }
            if process::given_up() {
                return Err("given up".to_owned().into());
            }
            self.wait_a_moment();
        }
    }

    /// Nothing more is built.
    pub fn close(&self) {
        self.yard().closed = true;
        self.changed.notify_all();
    }
}

/// Closes a workshop, however its owner comes to its end: its workers would wait forever.
pub struct CloseOnDrop<'a>(pub &'a Workshop<'a>);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
