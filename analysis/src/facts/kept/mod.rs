//! Addresses of a function's own objects that something keeps: a variable, memory that outlives the function, or somebody who is called.
//!
//! Each mention of an object is followed to where it goes ([`flow`]). What isn't known to leave an address alone keeps it, whatever
//! type it has: an address may go on in pieces, as a number, or as a reference that a function returns. Nothing is said of when: an
//! address that is kept once counts as kept everywhere.

mod called;
mod flow;

use std::collections::{BTreeMap, BTreeSet};

use crate::base::db::Db;
use crate::facts::hidden::hidden;
use crate::facts::uniformity::class_changes;
use crate::hir::items::FunctionItem;
use crate::hir::{BindingId, body};

use flow::{Edge, Flow, Level, Sink, Subject};

/// Objects whose addresses are known: variables, and `None` for CUDA's built-in ones.
type Objects = BTreeSet<Option<BindingId>>;

/// Who keeps the addresses of a function's objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
pub struct Kept {
    /// By variable: the objects whose addresses it may hold, or that it refers to.
    by_variable: BTreeMap<BindingId, Objects>,
    /// The objects whose addresses may be kept where no variable of the function's own says so.
    elsewhere: Objects,
}

impl Kept {
    /// The objects that may be reached as long as these variables live, and from elsewhere; `None`: a built-in variable.
    pub fn while_alive(&self, variables: impl Iterator<Item = BindingId>) -> BTreeSet<Option<BindingId>> {
        let mut found = BTreeSet::new();
        let mut todo: Vec<Option<BindingId>> = self.elsewhere.iter().copied().collect();
        todo.extend(variables.filter_map(|v| self.by_variable.get(&v)).flatten().copied());
        while let Some(next) = todo.pop() {
            if found.insert(next) {
                todo.extend(next.and_then(|b| self.by_variable.get(&b)).into_iter().flatten());
            }
        }
        found
    }
}

/// Who keeps the addresses of the objects of a function.
#[salsa::tracked(returns(ref))]
pub fn kept<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Kept {
    let body = &*body(db, function);
    let mut edges = Flow::new(db, function, body).edges();
    // The program's own operators run without a call.
    if !hidden(db, function).is_empty() {
        let changed = class_changes(db, function).iter();
        edges.extend(changed.map(|b| Edge::new(Subject::Variable(*b), Level::Itself, Sink::Anywhere)));
    }
    let held = Held::of(&edges, &BTreeSet::new());
    let objects = |sink: Sink| -> Objects {
        let own = held.of_sink(sink).filter(|(_, level)| *level == Level::Itself);
        own.filter_map(|(subject, _)| match subject {
            Subject::Variable(b) => Some(Some(b)),
            Subject::Builtin => Some(None),
            Subject::This => None,
        })
        .collect()
    };
    let variables = (0..body.bindings.len() as u32).map(BindingId);
    Kept {
        by_variable: { variables.map(|b| (b, objects(Sink::Variable(b)))) }
            .filter(|(_, objects)| !objects.is_empty())
            .collect(),
        elsewhere: objects(Sink::Anywhere),
    }
}

/// What becomes of an address that a function gets, or of one that lies where it leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
struct Leak {
    /// It may be stored where it is found when the function has returned.
    on: bool,
    /// It may be returned.
    back: bool,
}

/// What a function does with a parameter: with the address that it is, and with those that lie where it leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, salsa::SalsaValue)]
struct Leaks {
    itself: Leak,
    inside: Leak,
}

impl Leaks {
    const ALL: Leaks = {
        let all = Leak { on: true, back: true };
        Leaks {
            itself: all,
            inside: all,
        }
    };

    fn or(self, other: Leaks) -> Leaks {
        let or = |a: Leak, b: Leak| Leak {
            on: a.on || b.on,
            back: a.back || b.back,
        };
        Leaks {
            itself: or(self.itself, other.itself),
            inside: or(self.inside, other.inside),
        }
    }
}

/// What a function does with the addresses that it gets; `None`: it isn't seen, so anything.
#[salsa::tracked(returns(ref), cycle_result = of_itself)]
fn leaks<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Option<BTreeMap<Passed, Leaks>> {
    let body = &*body(db, function);
    let unseen = !function.has_body(db) || !body.problems.is_empty() || body.cut;
    if unseen || !hidden(db, function).is_empty() {
        return None;
    }
    let edges = Flow::new(db, function, body).edges();
    let params: BTreeSet<BindingId> = body.params.iter().copied().collect();
    let held = Held::of(&edges, &params);
    let leaks = |subject: Subject| {
        let leak = |level: Level| Leak {
            on: held.reaches(subject, level, Sink::Anywhere),
            back: held.reaches(subject, level, Sink::Returned),
        };
        Leaks {
            itself: leak(Level::Held),
            inside: leak(Level::Deeper),
        }
    };
    let params = body.params.iter().enumerate();
    let mut found: BTreeMap<Passed, Leaks> = params
        .map(|(index, param)| (Passed::Argument(index), leaks(Subject::Variable(*param))))
        .collect();
    found.insert(Passed::Object, leaks(Subject::This));
    Some(found)
}

fn of_itself<'db>(_: &'db dyn Db, _: salsa::Id, _: FunctionItem<'db>) -> Option<BTreeMap<Passed, Leaks>> {
    None
}

/// How a function gets something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, salsa::SalsaValue)]
enum Passed {
    /// By the parameter of this index.
    Argument(usize),
    /// As the object of which it is a member.
    Object,
}

/// What a variable, memory elsewhere, or a caller gets, over all steps.
struct Held {
    by_sink: BTreeMap<Sink, BTreeSet<(Subject, Level)>>,
}

impl Held {
    /// `params`: the parameters, which hold what the function doesn't see.
    fn of(edges: &BTreeSet<Edge>, params: &BTreeSet<BindingId>) -> Held {
        let mut by_sink: BTreeMap<Sink, BTreeSet<(Subject, Level)>> = BTreeMap::new();
        loop {
            let mut grown = false;
            for edge in edges {
                let more = Self::brought(&by_sink, edge, params);
                let all = by_sink.entry(edge.sink).or_default();
                for one in more {
                    grown |= all.insert(one);
                }
            }
            if !grown {
                return Held { by_sink };
            }
        }
    }

    /// What one step brings.
    fn brought(
        by_sink: &BTreeMap<Sink, BTreeSet<(Subject, Level)>>,
        edge: &Edge,
        params: &BTreeSet<BindingId>,
    ) -> BTreeSet<(Subject, Level)> {
        let held = |subject: Subject| match subject {
            Subject::Variable(b) => {
                let mut held = by_sink.get(&Sink::Variable(b)).cloned().unwrap_or_default();
                held.extend(params.contains(&b).then_some((subject, Level::Held)));
                held
            }
            Subject::This => BTreeSet::from([(subject, Level::Held)]),
            Subject::Builtin => BTreeSet::new(),
        };
        match edge.level {
            Level::Itself => BTreeSet::from([(edge.subject, Level::Itself)]),
            Level::Held => held(edge.subject),
            Level::Deeper => {
                let mut found = BTreeSet::new();
                let mut todo: Vec<(Subject, Level)> = held(edge.subject).into_iter().collect();
                let mut seen = BTreeSet::new();
                while let Some((object, level)) = todo.pop() {
                    if !seen.insert((object, level)) {
                        continue;
                    }
                    match level {
                        Level::Itself => {
                            let inside = held(object);
                            found.extend(inside.iter().copied());
                            todo.extend(inside);
                        }
                        Level::Held | Level::Deeper => {
                            found.insert((object, Level::Deeper));
                        }
                    }
                }
                found
            }
        }
    }

    fn of_sink(&self, sink: Sink) -> impl Iterator<Item = (Subject, Level)> {
        self.by_sink.get(&sink).into_iter().flatten().copied()
    }

    /// Whether what a parameter holds gets there, also inside of an object whose address does.
    fn reaches(&self, subject: Subject, level: Level, sink: Sink) -> bool {
        let mut todo: Vec<(Subject, Level)> = self.of_sink(sink).collect();
        let mut seen = BTreeSet::new();
        while let Some(next) = todo.pop() {
            if next == (subject, level) {
                return true;
            }
            if let (Subject::Variable(b), Level::Itself) = next
                && seen.insert(b)
            {
                todo.extend(self.of_sink(Sink::Variable(b)));
                // A parameter's own memory holds what it was given.
                todo.push((next.0, Level::Held));
            }
        }
        false
    }
}
