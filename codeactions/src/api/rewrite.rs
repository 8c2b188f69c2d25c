//! What a rewrite is. The rewrites themselves are one file each in [`crate::handlers`].

use std::collections::BTreeMap;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::LaunchId;

use crate::api::refusal::refuse;
use crate::api::refusal::{Ineligible, Reason};
use crate::api::source_edit::SourceEdit;

/// Whether a rewrite can be applied to a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every behaviour of the result is a behaviour of the original.
    Eligible,
    /// The same if these things hold, which only the programmer knows.
    Assumes(Vec<Reason>),
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
}

/// Values of a rewrite's options, by name, as the user wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(pub BTreeMap<String, String>);

impl Options {
    /// Refuses options that the rewrite doesn't have.
    pub fn validate(&self, known: &[OptionSpec]) -> Result<(), Ineligible> {
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

    /// The value of an option that is a positive number.
    pub fn positive(&self, name: &str, known: &[OptionSpec]) -> Result<u64, Ineligible> {
        let default = known.iter().find(|s| s.name == name).map_or("", |s| s.default);
        let text = self.0.get(name).map_or(default, String::as_str).trim();
        match text.parse::<u64>() {
            Ok(value) if (1..=i32::MAX as u64).contains(&value) => Ok(value),
            _ => Err(refuse(
                format!("`{name}` must be a number from 1 to {}, not `{text}`", i32::MAX),
                None,
            )),
        }
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
    /// A chain of launches becomes one grid whose blocks run the links.
    Promotion,
    /// Allocations of several threads become one.
    Memory,
    /// Atomic operations of several threads become one.
    Atomics,
}

/// What sort of launch a rewrite is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Any launch by a kernel.
    Launch,
    /// One that is part of a recursion.
    Recursion,
    /// One by a kernel that allocates memory.
    Allocation,
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
    /// Grids of how many threads are launched.
    Threshold,
    /// How many blocks become one.
    Factor,
    /// Whether the child's atomic operations are combined.
    Combination,
    /// Nothing: it comes first, in kernels that allocate.
    Allocation,
}

/// A rewrite: one entry of the table [`crate::handlers::REWRITES`].
pub struct Rewrite {
    /// Its id, kebab-case: `aggregate-block`.
    pub id: &'static str,
    /// Imperative title for a menu: `Aggregate launches per block`.
    pub title: &'static str,
    /// Markdown: what it does, `## Before` and `## After` with a CUDA program each, what it needs, source (paper and section).
    pub doc: &'static str,
    /// Its options.
    pub options: &'static [OptionSpec],
    /// What it does, in a word.
    pub family: Family,
    /// What sort of launch it is for. That it refuses launches of another sort goes without saying.
    pub subject: Subject,
    /// Whether `measure --rewrites all` takes it.
    pub measured: Measured,
    /// What `tune` chooses with it; `None`: nothing.
    pub tunes: Option<Axis>,
    /// It may be applied where nobody looks, if it is eligible without assumptions: it leaves the program's structure as it is, so that
    /// the next reader needn't wonder where the code has gone.
    pub unattended: bool,
    /// The edit, or why not. Callers ask [`Rewrite::edit`] and [`Rewrite::verdict`], which remember it.
    pub apply: for<'db> fn(&'db dyn Db, LaunchId<'db>, &Options) -> Result<SourceEdit, Ineligible>,
}
