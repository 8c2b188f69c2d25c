//! Takes rewrites back. Each layer is taken off the text, and the result counts only if the rewrite makes of it what was there
//! before, white space aside: so what was edited by hand is noticed, and the rewrite's own proof holds.

mod aggregated;
mod coarsened;
mod layer;
mod serialized;
mod text;
mod thresholded;
mod together;

use std::path::Path;

use gridfuse_analysis::base::db::{Db, Workspace};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::launch::{LaunchId, Launchers, launches};
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::host::Host;

use crate::api::copy::Copy;
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::refuse;
use crate::api::rewrite::Options;
use crate::api::source_edit::SourceEdit;
use crate::api::source_edit::apply;
use crate::facts::site::function_around;
use crate::handlers::rewrite_by_id;

/// Why nothing is taken back where no rewrite has been.
pub const NOTHING: &str = "nothing here was made by a rewrite that can be taken back";

/// Takes off every layer of the launches in the function around a place.
pub fn all(db: &dyn Db, place: FileRange) -> Result<SourceEdit, Ineligible> {
    let mut stripped = Stripped::new(db, place)?;
    while stripped.strip("")? {}
    stripped.finish(Vec::new())
}

/// Collects the launches of the function around a place at another granularity: takes the aggregation off, and puts `rewrite` on.
pub fn collect_again(
    db: &dyn Db,
    place: FileRange,
    rewrite: &str,
    options: &Options,
) -> Result<SourceEdit, Ineligible> {
    let collects = function_around(db, place).is_some_and(|f| text::source(db, f).contains("gridfuse::Aggregator"));
    if !collects {
        return Err(refuse("no launches are collected here", Some(place)));
    }
    let mut stripped = Stripped::new(db, place)?;
    // They are in no order already, so that isn't taken for granted once more.
    stripped.strip(", 0, cudaStreamFireAndForget")?;
    let assumptions = stripped.put_on(rewrite, options, 0)?;
    let edit = stripped.finish(assumptions)?;
    if edit.edits.is_empty() {
        return Err(refuse("that is how they are collected already", Some(place)));
    }
    Ok(edit)
}

/// Puts a threshold on a launch that is collected: takes the layers off that belong on top of it, and puts them on again.
pub fn add_threshold(db: &dyn Db, place: FileRange, options: &Options) -> Result<SourceEdit, Ineligible> {
    let collects = function_around(db, place).is_some_and(|f| text::source(db, f).contains("gridfuse::Aggregator"));
    if !collects {
        return Err(refuse("no launches are collected here", Some(place)));
    }
    let mut stripped = Stripped::new(db, place)?;
    let index = stripped.collected_before(place);
    let mut taken = Vec::new();
    while let Some((rewrite, options, launch)) = stripped.strip_one(", 0, cudaStreamFireAndForget")? {
        if rewrite == "threshold" && launch == index {
            return Err(refuse("the launch has a threshold already", Some(place)));
        }
        taken.push((rewrite, options, launch));
    }
    let mut assumptions = stripped.put_on("threshold", options, index)?;
    for (rewrite, options, launch) in taken.into_iter().rev() {
        for assumption in stripped.put_on(rewrite, &options, launch)? {
            if !assumptions.contains(&assumption) {
                assumptions.push(assumption);
            }
        }
    }
    stripped.finish(assumptions)
}

/// A copy of the workspace without some layers.
struct Stripped<'db> {
    db: &'db dyn Db,
    copy: Copy,
    place: FileRange,
    /// The function that launches.
    function: String,
    layers: usize,
}

impl<'db> Stripped<'db> {
    fn new(db: &'db dyn Db, place: FileRange) -> Result<Stripped<'db>, Ineligible> {
        let nothing = || refuse(NOTHING, Some(place));
        let function = function_around(db, place).ok_or_else(nothing)?;
        // Most functions are none that a rewrite has touched: no copy for these.
        let source = text::source(db, function);
        let touched = ["gridfuse::", "Threshold", "Coarsening", "Blocks", "_serial"]
            .iter()
            .any(|word| source.contains(word));
        if !touched && !together::is_there(db, function) {
            return Err(nothing());
        }
        Ok(Stripped {
            db,
            copy: Copy::around(db, function).ok_or_else(nothing)?,
            place,
            function: function.name(db).to_owned(),
            layers: 0,
        })
    }

    fn path(&self) -> &'db Path {
        self.place.file.path(self.db)
    }

    /// How many collected launches of the function end before a place.
    fn collected_before(&self, place: FileRange) -> u32 {
        let Some(function) = function_around(self.db, place) else {
            return 0;
        };
        let start = function.start(self.db);
        let text = place.file.text(self.db);
        let before = text
            .get(start as usize..place.range.start.max(start) as usize)
            .unwrap_or("");
        // The launch that the place is in the middle of has begun.
        let begun = before.matches(".launch(").count() as u32;
        let inside = before.rfind(".launch(").is_some_and(|at| !before[at..].contains(';'));
        begun - u32::from(inside)
    }

    /// Takes one layer off; false when there is none left.
    fn strip(&mut self, stream: &str) -> Result<bool, Ineligible> {
        Ok(self.strip_one(stream)?.is_some())
    }

    /// Takes one layer off; the rewrite that puts it on again, its options and the launch to which it belongs.
    fn strip_one(&mut self, stream: &str) -> Result<Option<(&'static str, Options, u32)>, Ineligible> {
        let here = self.place;
        let edited = |what: &str| {
            refuse(
                format!("the code that `{what}` has made was edited, so it can't be taken back"),
                Some(here),
            )
        };
        let layer = {
            let db = self.copy.host.db();
            let Some(function) = function_named(&self.copy.host, self.path(), &self.function) else {
                return Ok(None);
            };
            let mut why = None;
            let layers = [
                ("aggregate", aggregated::peel(db, function, stream, &mut why)),
                ("coarsen", coarsened::peel(db, function)),
                ("threshold", thresholded::peel(db, function)),
                ("serialize", serialized::peel(db, function)),
                ("aggregate-atomics", together::peel(db, function)),
            ];
            let Some((what, layer)) = layers.into_iter().find_map(|(what, layer)| Some((what, layer?))) else {
                if self.layers == 0 {
                    return Err(refuse(NOTHING, Some(self.place)));
                }
                return Ok(None);
            };
            layer.ok_or_else(|| why.map_or_else(|| edited(what), |why| refuse(why, Some(here))))?
        };
        let before = texts(&self.copy.host);
        let rewrite = layer.rewrite;
        let read = |path: &Path| before.iter().find(|(p, _)| p == path).map(|(_, t)| t.clone());
        let mut after = apply(&layer.edit, read).map_err(|_| edited(rewrite))?;
        for text in after.values_mut() {
            if let Some(without) = text::without_include(text) {
                *text = without;
            }
        }
        for (path, text) in after {
            self.copy.host.set_file(&path, text);
        }
        // What the rewrite makes of it now has to be what was there.
        let plain = texts(&self.copy.host);
        let index = layer.index;
        self.put_on(rewrite, &layer.options, index)
            .map_err(|_| edited(rewrite))?;
        let same = |a: &str, b: &str| {
            a.split_whitespace()
                .flat_map(str::chars)
                .eq(b.split_whitespace().flat_map(str::chars))
        };
        let again = texts(&self.copy.host);
        let all = before
            .iter()
            .all(|(path, text)| again.iter().any(|(p, t)| p == path && same(text, t)));
        if !all {
            return Err(edited(rewrite));
        }
        for (path, text) in plain {
            self.copy.host.set_file(&path, text);
        }
        self.layers += 1;
        Ok(Some((rewrite, layer.options, index)))
    }

    /// Applies a rewrite to a launch of the function; what it assumes.
    fn put_on(&mut self, id: &str, options: &Options, index: u32) -> Result<Vec<Reason>, Ineligible> {
        let here = self.place;
        let lost = || refuse("the launch is lost", Some(here));
        let edit = {
            let db = self.copy.host.db();
            let function = function_named(&self.copy.host, self.path(), &self.function).ok_or_else(lost)?;
            let rewrite = rewrite_by_id(id).ok_or_else(lost)?;
            let known = launches(db, function).get(index as usize);
            if known.is_none_or(|l| l.launchers == Launchers::Host) {
                return Err(lost());
            }
            let launch = LaunchId { function, index };
            (rewrite.apply)(db, launch, options).map_err(|refusal| Ineligible(self.here(refusal.0)))?
        };
        let before = texts(&self.copy.host);
        let read = |path: &Path| before.iter().find(|(p, _)| p == path).map(|(_, t)| t.clone());
        for (path, text) in apply(&edit, read).map_err(|_| lost())? {
            self.copy.host.set_file(&path, text);
        }
        Ok(self.here(edit.assumptions))
    }

    /// Reasons whose places are in a text that nobody has seen.
    fn here(&self, reasons: Vec<Reason>) -> Vec<Reason> {
        let place = Some(self.place);
        reasons.into_iter().map(|reason| Reason { place, ..reason }).collect()
    }

    fn finish(self, assumptions: Vec<Reason>) -> Result<SourceEdit, Ineligible> {
        Ok(SourceEdit {
            edits: self.copy.edits(),
            assumptions,
            ..SourceEdit::default()
        })
    }
}

fn texts(host: &Host) -> Vec<(std::path::PathBuf, String)> {
    let db = host.db();
    let files = Workspace::try_get(db).map(|w| w.files(db)).unwrap_or_default();
    files.iter().map(|(p, f)| (p.clone(), f.text(db).to_string())).collect()
}

fn function_named<'a>(host: &'a Host, path: &Path, name: &str) -> Option<FunctionItem<'a>> {
    let db = host.db();
    let mut functions = items(db, host.file(path)?).functions.iter().copied();
    functions.find(|f| f.has_body(db) && f.name(db) == name)
}
