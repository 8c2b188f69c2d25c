//! What a function and all that it calls do, each with the place where it stands.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::assembly::Assembly;
use super::of_body::direct;
use super::types::{Act, Step, What};
use super::unlowered::{default_arguments, unlowered};
use crate::base::budget::CALLEES;
use crate::base::db::Db;
use crate::base::place::FileRange;
use crate::base::span::Span;
use crate::base::words::words;
use crate::facts::closures::Closure;
use crate::hir::body;
use crate::hir::items::FunctionItem;
use crate::hir::library::{Does, Library, Memory, Together};
use crate::hir::resolve::declarations_of;
use crate::hir::runtime_header::is_runtime_header;
use crate::hir::stream_ordered::Operation;

/// A place with the words to name what stands there.
#[derive(Clone, Debug, PartialEq, Eq, salsa::SalsaValue)]
pub struct Found {
    /// `__syncthreads()`, `a call of f`.
    pub what: String,
    /// Where.
    pub place: FileRange,
}

/// What a function does, callees included everywhere, with the places in the order in which they were met. What the runtime header does
/// is no effect of the program's: who uses it knows what for.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct Effects {
    /// Built-in variables (`blockIdx`…) that functions other than the one asked about read, with the function's name.
    pub builtins_in_callees: Vec<(&'static str, String, FileRange)>,
    /// Barriers of the block.
    pub barriers: Vec<Found>,
    /// Exchange with other threads of the warp.
    pub warp: Vec<Found>,
    /// `__shared__`.
    pub shared: Vec<Found>,
    /// Launches.
    pub launches: Vec<Found>,
    /// Waiting for child grids.
    pub syncs: Vec<Found>,
    /// Reading of a launch's error.
    pub errors: Vec<Found>,
    /// Events.
    pub events: Vec<Found>,
    /// Memory that is set or copied in the order of a stream.
    pub operations: Vec<Found>,
    /// `asm`.
    pub asm: Vec<Assembly>,
    /// Loops that may wait for another thread.
    pub waits: Vec<Found>,
    /// Code of which nothing is known.
    pub unknown: Vec<Found>,
    /// Functions that call themselves.
    pub recursion: Vec<Found>,
    /// Loads of memory that nothing may write while the kernel runs: `__ldg`, `ld.global.nc`, textures and surfaces.
    pub read_only: Vec<Found>,
    /// Fences: what was written before is seen by who sees what is written behind.
    pub fences: Vec<Found>,
    /// `__restrict__` pointers of functions that it calls, and of variables: loads through them may be of that kind, too.
    pub restricts: Vec<Found>,
    /// `__func__` and the like.
    pub own_name: Vec<Found>,
}

/// Calls in calls that are followed.
const MAX_DEPTH: usize = 60;

/// The effects of `function` and all that it calls.
#[salsa::tracked(returns(clone))]
pub fn effects<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Effects> {
    let mut walk = Walk {
        db,
        root: function,
        found: Effects::default(),
        done: FxHashSet::default(),
        lambdas: FxHashSet::default(),
        active: Vec::new(),
        cut: false,
    };
    walk.function(function);
    Arc::new(walk.found)
}

/// A place in a function, or in a declaration of it, where others run: by a call, an operator, a constructor, a conversion.
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct Run<'db> {
    /// The function that is named there: the one that was asked about, or a declaration of it, whose default argument it is.
    pub function: FunctionItem<'db>,
    /// Where they are named, from the start of that function.
    pub at: Span,
    /// Every definition that may run.
    pub functions: Vec<FunctionItem<'db>>,
}

/// All places of a function, its lambdas included, where others run; [`effects`] follows the same ones.
#[salsa::tracked(returns(clone))]
pub fn runs<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Arc<Vec<Run<'db>>> {
    let run = |function: FunctionItem<'db>, step: &Step<'db>| match step {
        Step::Runs { functions, at } => Some(Run {
            function,
            at: *at,
            functions: functions.clone(),
        }),
        _ => None,
    };
    let own = direct(db, function);
    let mut all: Vec<Run<'db>> = own
        .steps
        .iter()
        .chain(unlowered(db, function))
        .filter_map(|step| run(function, step))
        .collect();
    for head in declarations_of(db, function).into_iter().chain([function]) {
        all.extend(default_arguments(db, head).iter().filter_map(|step| run(head, step)));
    }
    Arc::new(all)
}

struct Walk<'db> {
    db: &'db dyn Db,
    root: FunctionItem<'db>,
    found: Effects,
    done: FxHashSet<FunctionItem<'db>>,
    lambdas: FxHashSet<Closure<'db>>,
    active: Vec<FunctionItem<'db>>,
    /// There are more functions than are looked at.
    cut: bool,
}

impl<'db> Walk<'db> {
    fn function(&mut self, function: FunctionItem<'db>) {
        let db = self.db;
        let named = || FileRange {
            file: function.file(db),
            range: function.signature(db).name_span.shift(function.start(db)),
        };
        if self.active.contains(&function) {
            let what = format!("`{}` calls itself", function.name(db));
            self.found.recursion.push(Found { what, place: named() });
            return;
        }
        if is_runtime_header(db, function.file(db)) || self.done.contains(&function) {
            return;
        }
        if self.done.len() >= CALLEES {
            // Once is enough: all that is left out is unknown.
            if !std::mem::replace(&mut self.cut, true) {
                let what = "more functions than are looked at".to_owned();
                self.found.unknown.push(Found { what, place: named() });
            }
            return;
        }
        self.done.insert(function);
        if self.active.len() > MAX_DEPTH {
            let what = "calls that are nested too deeply".to_owned();
            self.found.unknown.push(Found { what, place: named() });
            return;
        }
        self.active.push(function);
        let own = direct(db, function);
        let mut steps: Vec<&Step<'db>> = own.steps.iter().chain(unlowered(db, function)).collect();
        steps.sort_by_key(|step| step.at().start);
        for step in steps {
            self.step(function, step);
        }
        // Default arguments are evaluated where it is called; a declaration apart may have them.
        if function != self.root {
            for head in declarations_of(db, function).into_iter().chain([function]) {
                for step in default_arguments(db, head) {
                    self.step(head, step);
                }
            }
        }
        for act in &own.unclear {
            self.act(function, act);
        }
        self.active.pop();
    }

    /// Something in `function`, or in a declaration of the function that is looked at.
    fn step(&mut self, function: FunctionItem<'db>, step: &Step<'db>) {
        match step {
            Step::Does(act) => self.act(function, act),
            Step::Runs { functions, .. } => {
                for called in functions {
                    self.function(*called);
                }
            }
            Step::RunsLambda { closures, .. } => {
                for called in closures {
                    self.lambda(*called);
                }
            }
        }
    }

    /// What stands in a lambda: a part of what its function does.
    fn lambda(&mut self, closure: Closure<'db>) {
        if !self.lambdas.insert(closure) {
            return;
        }
        let (db, function) = (self.db, closure.function);
        let own = direct(db, function);
        let all = own.steps.iter().chain(unlowered(db, function));
        let mut steps: Vec<&Step<'db>> = all.filter(|step| closure.has(step.at())).collect();
        steps.sort_by_key(|step| step.at().start);
        for step in steps {
            match step {
                Step::Does(act) => self.act_of_lambda(closure, act),
                _ => self.step(function, step),
            }
        }
        for act in own.unclear.iter().filter(|act| closure.meets(act.span)) {
            self.act_of_lambda(closure, act);
        }
        // What it captures are variables of its own, of the same types.
        for variable in &body(db, function).bindings {
            let captured = || words(closure.span.text(&function.text(db))).any(|word| word == variable.name);
            if variable.ty.restrict && captured() {
                let what = format!("`{}`, which is __restrict__", variable.name);
                let place = FileRange {
                    file: function.file(db),
                    range: variable.span.shift(function.start(db)),
                };
                self.found.restricts.push(Found { what, place });
            }
        }
    }

    /// Something in a lambda, which is nobody's own code where it is called.
    fn act_of_lambda(&mut self, closure: Closure<'db>, act: &Act) {
        let (db, function) = (self.db, closure.function);
        let place = FileRange {
            file: function.file(db),
            range: act.at.shift(function.start(db)),
        };
        match &act.what {
            What::Builtin(builtin) => {
                let name = format!("a lambda of {}", function.name(db));
                self.found.builtins_in_callees.push((builtin, name, place));
            }
            What::UnknownValue => self.found.unknown.push(Found {
                what: act.name.clone(),
                place,
            }),
            _ => self.act(function, act),
        }
    }

    fn act(&mut self, function: FunctionItem<'db>, act: &Act) {
        let db = self.db;
        let place = |span: Span| FileRange {
            file: function.file(db),
            range: span.shift(function.start(db)),
        };
        let found = |what: &str| Found {
            what: what.to_owned(),
            place: place(act.at),
        };
        let is_root = function == self.root;
        let into = &mut self.found;
        match &act.what {
            What::Calls(known) => self.library(known, found(&act.name)),
            What::Launches => into.launches.push(found(&act.name)),
            What::Shared => into.shared.push(found(&act.name)),
            What::Asm(text) => {
                let text = text.clone();
                let place = place(act.at);
                let assembly = Assembly { text, place };
                // Such loads go by way of a cache that doesn't see what is written meanwhile.
                if assembly.may_have(&["nc", "tex", "tld4"]) {
                    into.read_only.push(found("ld.global.nc"));
                }
                into.asm.push(assembly);
            }
            What::Waits => into.waits.push(found(&act.name)),
            // The kernel's own parameters are looked at by themselves.
            What::Restrict { parameter: true } if is_root => {}
            What::Restrict { .. } => into.restricts.push(found(&act.name)),
            What::OwnName => into.own_name.push(found(&act.name)),
            // Where the body moves, parameters stand for these.
            What::Builtin(_) if is_root => {}
            What::Builtin(builtin) => {
                let name = function.name(db).to_owned();
                into.builtins_in_callees.push((builtin, name, place(act.at)));
            }
            What::ReadsItself(builtin) => {
                into.builtins_in_callees
                    .push((builtin, act.name.clone(), place(act.at)));
            }
            // What computes a value reads what stands beside it: in a body that moves that's given, in a function that is called it isn't.
            What::UnknownValue if is_root => {}
            What::Unknown | What::UnknownValue => into.unknown.push(found(&act.name)),
        }
    }

    /// A call of a function of the library.
    fn library(&mut self, known: &Library, found: Found) {
        let into = &mut self.found;
        let does = |what: Does| known.does.has(what);
        if matches!(known.memory, Memory::ReadOnly | Memory::Handle { writes: false }) {
            into.read_only.push(found.clone());
        }
        if does(Does::FENCE) {
            into.fences.push(found.clone());
        }
        if does(Does::WAITS_FOR_CHILDREN) || does(Does::WAITS_FOR_STREAM) {
            into.syncs.push(found);
            return;
        }
        if does(Does::READS_ERROR) {
            into.errors.push(found.clone());
        }
        match known.stream {
            Some((Operation::Event, _)) => into.events.push(found.clone()),
            Some(_) => into.operations.push(found.clone()),
            None => {}
        }
        // What needs threads that the arguments name, or memory of one kind, isn't followed.
        let beyond = [Does::HOST, Does::LAUNCHES, Does::ASKS_FOR_MEMORY];
        match known.together {
            _ if beyond.into_iter().any(does) => into.unknown.push(found),
            Together::Alone => {}
            Together::Warp => into.warp.push(found),
            Together::Block => into.barriers.push(found),
            Together::Group => into.unknown.push(Found {
                what: format!("{}, which waits for threads that aren't followed", found.what),
                place: found.place,
            }),
        }
    }
}
