//! The program without rewrites, from which each point is made: where the launches of a file are rewritten already, that is taken back
//! first, in memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::hir::items::items;
use gridfuse_codeactions::api::rewrite::{Axis, Family, Options};
use gridfuse_codeactions::api::source_edit::map_range;
use gridfuse_codeactions::handlers::optimize::Plan;
use gridfuse_codeactions::handlers::{REWRITES, rewrite_by_id};
use gridfuse_codeactions::undo::NOTHING;

use super::space::{Point, granularity};
use crate::changes::{Change, record, take};
use crate::cli::Project;
use crate::launches::{LaunchSite, by_function, function_at, in_file, overlapping};
use crate::measure::Recipe;
use crate::measure::variant::Applied;

/// Loads the user's files afresh.
pub type Load<'a> = &'a dyn Fn() -> Result<Project, String>;

/// The program without rewrites.
pub struct Base {
    /// It.
    pub project: Project,
    /// The launches that are tuned.
    pub targets: Vec<TextRange>,
    /// The files in which something was taken back.
    pub changes: BTreeMap<PathBuf, Change>,
}

impl Base {
    /// Takes the rewrites of a file back. `place`: tune the launches that touch it, or those of the function around it; `None`: all of
    /// the file. An error is a sentence.
    pub fn new(load: Load<'_>, path: &Path, place: Option<TextRange>) -> Result<Base, String> {
        let mut project = load()?;
        let mut place = place;
        let mut changes = BTreeMap::new();
        let reversal = REWRITES.iter().find(|rewrite| rewrite.family == Family::Reversal);
        for name in functions(&project, path) {
            let edit = {
                let db = project.host.db();
                let file = project.host.file(path).ok_or_else(|| unreadable(path))?;
                let function = items(db, file)
                    .functions
                    .iter()
                    .find(|function| function.has_body(db) && function.name(db) == name);
                let (Some(function), Some(revert)) = (function, reversal) else {
                    continue;
                };
                let start = function.start(db);
                let range = TextRange::new(start, start + function.text(db).len() as u32);
                match revert.apply(db, FileRange { file, range }, &Options::default()) {
                    Ok(edit) => edit,
                    Err(refusal) => match refusal.0.iter().find(|reason| reason.text != NOTHING) {
                        None => continue,
                        Some(reason) => {
                            return Err(format!(
                                "the launches in `{name}` are rewritten already, and can't be rewritten otherwise: {}",
                                reason.text
                            ));
                        }
                    },
                }
            };
            if let Some(edits) = edit.edits.get(path) {
                place = place.map(|place| map_range(place, edits));
            }
            take(&mut project, &edit, &mut changes)?;
        }
        let targets = targets(&project, path, place);
        if targets.is_empty() {
            return Err(match place {
                Some(_) => format!("no kernel launches another at this place of {}", project.show(path)),
                None => format!(
                    "no kernel in {} launches another: there is nothing to tune",
                    project.show(path)
                ),
            });
        }
        Ok(Base {
            project,
            targets,
            changes,
        })
    }

    /// What the cost model recommends for the first launch of which it has something to say, and whether memory is allocated
    /// together first.
    pub fn guess(&self, path: &Path) -> (Point, bool) {
        let db = self.project.host.db();
        let file = self.project.host.file(path);
        let sites = file.map_or_else(Vec::new, |file| in_file(db, file));
        let plan = sites
            .iter()
            .filter(|site| self.targets.contains(&site.place.range))
            .find_map(|site| Plan::make(db, site.id).ok());
        let mut point = Point::default();
        let mut allocates = false;
        for (step, _) in plan.iter().flat_map(|plan| &plan.steps) {
            let (id, value) = step.split_once('=').unwrap_or((step, ""));
            match rewrite_by_id(id).and_then(|rewrite| rewrite.tunes) {
                Some(Axis::Threshold(_)) => point.threshold = value.parse().ok(),
                Some(Axis::Factor(_)) => point.factor = value.parse().ok(),
                Some(Axis::Allocation) => allocates = true,
                Some(Axis::Combination) => point.combined = true,
                Some(Axis::Granularity(_)) => point.granularity = granularity(id).or(point.granularity),
                // The nearest that is searched.
                None if id == "reuse-threads" => point.granularity = granularity("aggregate-grid-stream"),
                None => {}
            }
        }
        (point, allocates)
    }

    /// Rewrites the launches. `Ok(Err(…))`: none of them can be, and why.
    pub fn apply(mut self, path: &Path, recipe: &Recipe) -> Result<Result<(Project, Applied), Vec<String>>, String> {
        if recipe.is_empty() {
            let applied = Applied {
                changes: self.changes,
                assumptions: Vec::new(),
            };
            return Ok(Ok((self.project, applied)));
        }
        let applied = match recipe.apply(&mut self.project, path, self.targets, &[])? {
            Ok(applied) => applied,
            Err(reasons) => return Ok(Err(reasons)),
        };
        for (path, change) in applied.changes {
            record(&mut self.changes, (path, change.before, change.after));
        }
        self.changes
            .retain(|_, change| change.before.as_deref() != Some(&change.after));
        let applied = Applied {
            changes: self.changes,
            assumptions: applied.assumptions,
        };
        Ok(Ok((self.project, applied)))
    }
}

fn unreadable(path: &Path) -> String {
    format!("cannot read {}", path.display())
}

/// The names of a file's functions.
fn functions(project: &Project, path: &Path) -> Vec<String> {
    let db = project.host.db();
    let Some(file) = project.host.file(path) else {
        return Vec::new();
    };
    let all = items(db, file)
        .functions
        .iter()
        .filter(|function| function.has_body(db));
    all.map(|function| function.name(db).to_owned()).collect()
}

fn targets(project: &Project, path: &Path, place: Option<TextRange>) -> Vec<TextRange> {
    let db = project.host.db();
    let Some(file) = project.host.file(path) else {
        return Vec::new();
    };
    let device = |sites: Vec<LaunchSite<'_>>| -> Vec<TextRange> {
        let sites = sites.iter().filter(|site| site.device_side());
        sites.map(|site| site.place.range).collect()
    };
    let Some(place) = place else {
        return device(in_file(db, file));
    };
    let here = device(overlapping(db, file, place));
    if !here.is_empty() {
        return here;
    }
    function_at(db, file, place.start).map_or_else(Vec::new, |function| device(by_function(db, function)))
}
