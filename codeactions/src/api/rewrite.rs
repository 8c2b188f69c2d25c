//! What a rewrite is. The rewrites themselves are one file each in [`crate::handlers`].

use std::collections::BTreeMap;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::launch::{LaunchId, launches};

use crate::api::assumption::Assumed;
use crate::api::refusal::refuse;
use crate::api::refusal::{Ineligible, Reason};
use crate::api::source_edit::SourceEdit;
use crate::api::written_out;

/// Whether a rewrite can be applied to a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every behaviour of the result is a behaviour of the original.
    Eligible,
    /// The same if these things hold, which only the programmer knows.
    Assumes(Vec<Assumed>),
    /// Not applicable.
    Ineligible(Vec<Reason>),
}

impl Verdict {
    /// The verdict that an edit, or a refusal, comes down to.
    pub fn of(outcome: &Result<SourceEdit, Ineligible>) -> Verdict {
        match outcome {
            Ok(edit) if edit.assumptions.is_empty() => Verdict::Eligible,
            Ok(edit) => Verdict::Assumes(edit.assumptions.clone()),
            Err(Ineligible(reasons)) => Verdict::Ineligible(reasons.clone()),
        }
    }

    /// Whether it assumes something that the code [contradicts](Assumed::contradicted): then nobody is to be talked into it.
    pub fn is_contradicted(&self) -> bool {
        matches!(self, Verdict::Assumes(all) if all.iter().any(|assumed| assumed.contradicted))
    }

    /// Whether it can be applied, and assumes nothing that the code contradicts.
    pub fn fits(&self) -> bool {
        !matches!(self, Verdict::Ineligible(_)) && !self.is_contradicted()
    }
}

/// Values of a rewrite's options, by name, as the user wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(pub BTreeMap<String, String>);

impl Options {
    /// Refuses options that the rewrite doesn't have.
    fn validate(&self, known: &[OptionSpec]) -> Result<(), Ineligible> {
        for name in self.0.keys() {
            if !known.iter().any(|spec| spec.name == name) {
                let names: Vec<&str> = known.iter().map(|s| s.name).collect();
                let has = if names.is_empty() {
                    "there are no options".to_owned()
                } else {
                    format!("the options are: {}", names.join(", "))
                };
                return Err(refuse(format!("there is no option `{name}`; {has}"), None));
            }
        }
        Ok(())
    }
}

/// An option of a rewrite.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Name, as in `--set threshold=64`.
    pub name: &'static str,
    /// Default value.
    pub default: &'static str,
    /// One sentence.
    pub doc: &'static str,
}

/// What a rewrite does, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// It applies others.
    Composition,
    /// Launches of several threads become one.
    Aggregation,
    /// Child grids run in the thread that would launch them.
    InLauncher,
    /// A block of the child does the work of several.
    Coarsening,
    /// The launch goes to another stream.
    Stream,
    /// A recursion becomes a loop over work that waits.
    Recursion,
    /// Launches of the kernel by itself become iterations of a loop.
    Iteration,
    /// A loop of a thread becomes a launch.
    Extraction,
    /// A chain of launches becomes one grid whose blocks run the links.
    Promotion,
    /// Allocations of several threads become one.
    Memory,
    /// Atomic operations of several threads become one.
    Atomics,
    /// Stores that change nothing are left out.
    Stores,
    /// What a diagnostic finds wrong is mended.
    Repair,
    /// Other rewrites are taken back.
    Reversal,
}

impl Family {
    /// The word for it, where rewrites are asked for by their sort: `aggregate`.
    pub fn name(self) -> &'static str {
        match self {
            Family::Composition => "optimize",
            Family::Aggregation => "aggregate",
            Family::InLauncher => "threshold",
            Family::Coarsening => "coarsen",
            Family::Stream => "stream",
            Family::Recursion => "flatten",
            Family::Iteration => "loop",
            Family::Extraction => "extract",
            Family::Promotion => "promote",
            Family::Memory => "allocate",
            Family::Atomics => "atomics",
            Family::Stores => "stores",
            Family::Repair => "repair",
            Family::Reversal => "revert",
        }
    }
}

/// What a rewrite is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A launch by device code. That launches of another sort are refused goes without saying.
    Launch(Launches),
    /// Whatever stands at a place of the text.
    Place(Offered),
}

impl Target {
    /// It needs a launch.
    pub fn is_launch(self) -> bool {
        matches!(self, Target::Launch(_))
    }

    /// As users read it: `launch`, or `place`.
    pub fn name(self) -> &'static str {
        match self {
            Target::Launch(_) => "launch",
            Target::Place(_) => "place",
        }
    }
}

/// What sort of launch a rewrite is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launches {
    /// Any launch by a kernel.
    Any,
    /// One that is part of a recursion.
    Recursive,
    /// One by a kernel that allocates memory.
    Allocating,
}

/// Where a rewrite of a place is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// Wherever it can be applied.
    Everywhere,
    /// Where a diagnostic names it.
    ByDiagnostics,
}

/// Whether `measure --rewrites all` takes a rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// It makes no launch faster by itself.
    No,
    /// By itself.
    Alone,
    /// By itself, and behind `threshold`.
    BehindThreshold,
}

/// What `tune` chooses with a rewrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Axis {
    /// How many threads share a launch: the place among those that say so, from the most launches to the fewest.
    Granularity(u8),
    /// Grids of how many threads are launched: the value of this option.
    Threshold(&'static str),
    /// How many blocks become one: the value of this option.
    Factor(&'static str),
    /// Whether the child's atomic operations are combined.
    Combination,
    /// Nothing: it comes first, in kernels that allocate.
    Allocation,
}

/// What takes a rewrite back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undo {
    /// `revert`, which knows such a layer of generated code by its looks (see [`crate::undo`]).
    Layer(Layer),
    /// `revert`, which takes the rewrites that were applied back one by one.
    EachStep,
    /// Nothing does, because of this: a sentence fragment.
    Not(&'static str),
}

/// A layer of code that a rewrite has put on a function, and that `revert` takes off again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Launches that are collected, at the granularity that the header calls so.
    Collected(&'static str),
    /// Launches that the parent's threads run, or a grid that may follow.
    Reused,
    /// Launches into the fire-and-forget stream.
    InNoOrder,
    /// A child of fewer, coarser blocks.
    Coarsened,
    /// A comparison by which small grids run in the launching thread.
    Thresholded,
    /// A function that runs the child's grids, in the place of launches.
    Serialized,
    /// A chain of launches that is one grid, whose links wait in this way.
    Promoted(&'static str),
    /// Launches into the tail stream that are a loop.
    Looped,
    /// A recursion that is a worklist.
    Flattened,
    /// Atomic operations that a warp combines.
    Combined,
    /// Stores in front of which a thread looks whether they change anything.
    LookedFirst,
}

/// A rewrite: one entry of the table [`crate::handlers::REWRITES`].
pub struct Rewrite {
    /// Its id, kebab-case: `aggregate-block`.
    pub id: &'static str,
    /// Imperative title for a menu, of 44 characters at most: `Collect launches per block`.
    pub title: &'static str,
    /// Markdown: what it does, `## Before` and `## After` with a CUDA program each, what it needs, source (paper and section).
    pub doc: &'static str,
    /// Its options.
    pub options: &'static [OptionSpec],
    /// What it is applied to.
    pub target: Target,
    /// What it does, in a word.
    pub family: Family,
    /// Whether `measure --rewrites all` takes it.
    pub measured: Measured,
    /// What `tune` chooses with it; `None`: nothing.
    pub tunes: Option<Axis>,
    /// It may be applied where nobody looks, if it is eligible without assumptions: it leaves the program's structure as it is, so that
    /// the next reader needn't wonder where the code has gone.
    pub unattended: bool,
    /// What takes it back.
    pub undo: Undo,
    /// The edit, or why not. Callers ask [`Rewrite::edit`] and [`Rewrite::verdict`], which remember it, or [`Rewrite::apply`].
    pub run: for<'a, 'db> fn(&RewriteCtx<'a, 'db>) -> Result<SourceEdit, Ineligible>,
}

impl Rewrite {
    /// The edit for a launch or a place, worked out anew.
    ///
    /// # Errors
    /// The reasons why it can't be applied: at least one.
    pub fn apply<'db>(
        &'static self,
        db: &'db dyn Db,
        at: impl Into<At<'db>>,
        options: &Options,
    ) -> Result<SourceEdit, Ineligible> {
        options.validate(self.options)?;
        let at = at.into();
        let ctx = RewriteCtx {
            db,
            rewrite: self,
            at,
            options,
        };
        match at {
            At::Launch(launch) if self.target.is_launch() => {
                written_out::rewritten(db, launch, self, options, || (self.run)(&ctx))
            }
            _ => (self.run)(&ctx),
        }
    }
}

/// Where a rewrite is applied. Either will do for each: the launch at a place is found, and a launch has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At<'db> {
    /// A launch.
    Launch(LaunchId<'db>),
    /// What stands at a place: of a diagnostic, of a selection.
    Place(FileRange),
}

impl<'db> From<LaunchId<'db>> for At<'db> {
    fn from(launch: LaunchId<'db>) -> Self {
        At::Launch(launch)
    }
}

impl From<FileRange> for At<'_> {
    fn from(place: FileRange) -> Self {
        At::Place(place)
    }
}

/// What a rewrite is asked: where it is to be applied, and how. Its options have been checked: it has all that are given.
pub struct RewriteCtx<'a, 'db> {
    /// The database.
    pub db: &'db dyn Db,
    /// The rewrite itself.
    pub rewrite: &'a Rewrite,
    /// Where.
    pub at: At<'db>,
    /// The options.
    pub options: &'a Options,
}

impl<'a> RewriteCtx<'a, '_> {
    /// Where it is to be applied, as a place of the text.
    ///
    /// # Errors
    /// The launch isn't there any more.
    pub fn place(&self) -> Result<FileRange, Ineligible> {
        let launch = match self.at {
            At::Place(place) => return Ok(place),
            At::Launch(launch) => launch,
        };
        let facts = launches(self.db, launch.function).get(launch.index as usize);
        let facts = facts.ok_or_else(|| refuse("there is no such launch any more", None))?;
        Ok(FileRange {
            file: launch.function.file(self.db),
            range: facts.span.shift(launch.function.start(self.db)),
        })
    }

    /// The value of an option, where somebody has given one.
    pub fn given(&self, option: &str) -> Option<&'a str> {
        self.options.0.get(option).map(|value| value.trim())
    }

    /// The value of an option that is a positive number.
    ///
    /// # Errors
    /// It isn't one.
    pub fn positive(&self, option: &str) -> Result<u64, Ineligible> {
        let spec = self.rewrite.options.iter().find(|spec| spec.name == option);
        let default = spec.map_or("", |spec| spec.default);
        let text = self.given(option).unwrap_or(default);
        match text.parse::<u64>() {
            Ok(value) if (1..=i32::MAX as u64).contains(&value) => Ok(value),
            _ => Err(refuse(
                format!("`{option}` must be a number from 1 to {}, not `{text}`", i32::MAX),
                None,
            )),
        }
    }
}
