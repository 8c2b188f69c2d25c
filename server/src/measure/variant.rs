//! The rewritten programs that are measured beside the original.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gridfuse_analysis::base::span::TextRange;
use gridfuse_codeactions::api::rewrite::{Axis, Measured, Offered, Options, Rewrite, Target};
use gridfuse_codeactions::api::source_edit::map_range;
use gridfuse_codeactions::handlers::{of_launches, of_places};

use crate::changes::{Change, NoEdit, edit_at_place, edit_of, take};
use crate::cli::Project;
use crate::collected;
use crate::launches::{in_file, overlapping};
use crate::pending::Pending;

/// Rewrites applied one after the other: `threshold+aggregate-block`.
#[derive(Clone)]
pub struct Recipe {
    /// How the user writes it.
    pub name: String,
    steps: Vec<(&'static Rewrite, Options)>,
}

impl Recipe {
    /// Understands `threshold+aggregate-block`, and what is applied to launches that are collected: `retune-grid`.
    pub fn parse(text: &str) -> Result<Recipe, String> {
        let steps = match of_collected().find(|rewrite| rewrite.id == text.trim()) {
            Some(rewrite) => vec![rewrite],
            None => crate::recipe::steps(text)?,
        };
        let steps = steps.into_iter().map(|rewrite| (rewrite, Options::default()));
        Ok(Recipe::of(text.trim().to_owned(), steps.collect()))
    }

    /// Rewrites with options of their own.
    pub fn of(name: String, steps: Vec<(&'static Rewrite, Options)>) -> Recipe {
        Recipe { name, steps }
    }

    /// Nothing is rewritten.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Each rewrite that makes launches faster, and those behind `threshold` that are worth a try.
    pub fn all() -> Vec<Recipe> {
        let alone = of_launches().filter(|rewrite| rewrite.measured != Measured::No);
        let behind = of_launches().filter(|rewrite| rewrite.measured == Measured::BehindThreshold);
        let thresholds = of_launches().filter(|rewrite| matches!(rewrite.tunes, Some(Axis::Threshold(_))));
        let names = alone.map(|rewrite| rewrite.id.to_owned());
        names
            .chain(behind.flat_map(|rewrite| thresholds.clone().map(|first| format!("{}+{}", first.id, rewrite.id))))
            .filter_map(|name| Recipe::parse(&name).ok())
            .collect()
    }

    /// What can be done with launches that are collected: going back to plain ones, too, as that is what they are compared with.
    pub fn all_of_collected() -> Vec<Recipe> {
        let recipe = |rewrite: &'static Rewrite| Recipe::of(rewrite.id.to_owned(), vec![(rewrite, Options::default())]);
        of_collected().map(recipe).collect()
    }

    /// Whether one of its rewrites has this option.
    pub fn knows(&self, option: &str) -> bool {
        self.steps
            .iter()
            .any(|(rewrite, _)| rewrite.options.iter().any(|known| known.name == option))
    }

    /// Applies the recipe to launches of the file `path`, in memory. `Ok(Err(…))`: to none of them, and why.
    pub fn apply(
        &self,
        project: &mut Project,
        path: &Path,
        mut targets: Vec<TextRange>,
        set: &[(String, String)],
    ) -> Result<Result<Applied, Vec<String>>, String> {
        let mut applied = Applied::default();
        for (rewrite, own) in &self.steps {
            let mine = set
                .iter()
                .filter(|(name, _)| rewrite.options.iter().any(|option| option.name == *name));
            let options = Options(own.0.clone().into_iter().chain(mine.cloned()).collect());
            let mut refusals = Vec::new();
            let mut left = Vec::new();
            let mut any = false;
            let mut pending = Pending::new(targets);
            while let Some(target) = pending.next() {
                let made = match rewrite.target {
                    Target::Launch(_) => edit_of(project, path, target, rewrite, &options),
                    Target::Place(_) => edit_at_place(project, path, target, rewrite, &options),
                };
                let edit = match made {
                    Ok((_, edit)) => edit,
                    // An edit for another launch has taken this one along.
                    Err(NoEdit::NoLaunch) if any => continue,
                    Err(NoEdit::NoLaunch) => {
                        refusals.push(format!("{}: the rewrite before it left no launch", rewrite.id));
                        continue;
                    }
                    // The same of collected launches.
                    Err(NoEdit::Refused(..)) if any && !rewrite.target.is_launch() => continue,
                    Err(NoEdit::Unreadable) => return Err(format!("cannot read {}", path.display())),
                    Err(NoEdit::Refused(_, reasons)) => {
                        refusals.extend(
                            reasons
                                .into_iter()
                                .map(|reason| format!("{}: {}", rewrite.id, reason.text)),
                        );
                        pending.refuse(target);
                        continue;
                    }
                };
                any = true;
                for assumed in &edit.assumptions {
                    let text = &assumed.reason.text;
                    if !applied.assumptions.contains(text) {
                        applied.assumptions.push(text.clone());
                    }
                }
                let after = |range: TextRange| edit.edits.get(path).map_or(range, |list| map_range(range, list));
                pending.rewritten(after);
                left = left.into_iter().map(after).collect();
                left.push(after(target));
                take(project, &edit, &mut applied.changes)?;
            }
            if !any {
                refusals.dedup();
                return Ok(Err(refusals));
            }
            targets = left;
        }
        Ok(Ok(applied))
    }
}

/// A rewritten program.
#[derive(Default)]
pub struct Applied {
    /// The texts that changed.
    pub changes: BTreeMap<PathBuf, Change>,
    /// What the rewrites take for granted.
    pub assumptions: Vec<String>,
}

/// The rewrites of launches that are collected.
fn of_collected() -> impl Iterator<Item = &'static Rewrite> {
    of_places().filter(|rewrite| rewrite.target == Target::Place(Offered::Everywhere))
}

/// What is rewritten.
#[derive(Debug, Default)]
pub struct Targets {
    /// The launches, in order.
    pub places: Vec<TextRange>,
    /// A rewrite has collected them already.
    pub are_collected: bool,
}

/// The device-side launches of a file, all or those that touch `within`; where there are none, those that a rewrite has collected.
pub fn targets(project: &Project, path: &Path, within: Option<TextRange>) -> Targets {
    let db = project.host.db();
    let Some(file) = project.host.file(path) else {
        return Targets::default();
    };
    let sites = match within {
        Some(range) => overlapping(db, file, range),
        None => in_file(db, file),
    };
    let device = sites.iter().filter(|site| site.device_side());
    let launches: Vec<TextRange> = device.map(|site| site.place.range).collect();
    if !launches.is_empty() {
        return Targets {
            places: launches,
            are_collected: false,
        };
    }
    let length = u32::try_from(file.text(db).len()).unwrap_or(u32::MAX);
    let range = within.unwrap_or(TextRange::new(0, length));
    let collected = collected::overlapping(db, file, range);
    let mut places: Vec<TextRange> = collected.iter().map(|found| found.place(db).range).collect();
    places.sort();
    Targets {
        are_collected: !places.is_empty(),
        places,
    }
}

#[cfg(test)]
mod tests {
    use gridfuse_codeactions::handlers::REWRITES;

    use super::*;

    /// Nothing that makes launches faster is forgotten, and nothing is measured twice.
    #[test]
    fn all_are_those_that_say_so() {
        let all: Vec<String> = Recipe::all().into_iter().map(|recipe| recipe.name).collect();
        for rewrite in REWRITES {
            let alone = all.iter().filter(|name| *name == rewrite.id).count();
            assert_eq!(alone == 1, rewrite.measured != Measured::No, "{}", rewrite.id);
        }
        assert!(all.contains(&"threshold+aggregate-grid".to_owned()), "{all:?}");
        assert!(!all.contains(&"threshold+serialize".to_owned()), "{all:?}");
    }
}
