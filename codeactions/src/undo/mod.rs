//! Takes rewrites back. Each layer is taken off the text, and the result counts only if the rewrite makes of it what was there
//! before, white space aside: so what was edited by hand is noticed, and the rewrite's own proof holds.

mod aggregated;
mod coarsened;
mod launched_again;
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
use gridfuse_analysis::hir::{BindingId, ExprKind, Name, body};
use gridfuse_analysis::host::Host;

use crate::api::copy::Copy;
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::refuse;
use crate::api::rewrite::{Layer, Options, Rewrite, RewriteCtx, Undo};
use crate::api::source_edit::SourceEdit;
use crate::api::source_edit::apply;
use crate::facts::site::function_around;

use layer::Peeled;

/// Why nothing is taken back where no rewrite has been.
pub const NOTHING: &str = "nothing here was made by a rewrite that can be taken back";

/// Takes off every layer of the launches in the function around a place.
pub fn all(ctx: &RewriteCtx<'_, '_>, table: &'static [Rewrite]) -> Result<SourceEdit, Ineligible> {
    let mut stripped = Stripped::new(ctx, table)?;
    while stripped.strip("")? {}
    stripped.assume_room("each thread launches its own again");
    stripped.finish(Vec::new())
}

/// Collects the launches of the function around a place at another granularity: takes the aggregation off, and puts the layer of the
/// rewrite that is asked on.
pub fn collect_again(ctx: &RewriteCtx<'_, '_>, table: &'static [Rewrite]) -> Result<SourceEdit, Ineligible> {
    refuse_not_collected(ctx)?;
    let mut stripped = Stripped::new(ctx, table)?;
    // They are in no order already, so that isn't taken for granted once more.
    stripped.strip(", 0, cudaStreamFireAndForget")?;
    if !matches!(ctx.rewrite.undo, Undo::Layer(Layer::Collected(name)) if name.starts_with("PerGrid")) {
        stripped.assume_room("fewer launches are collected together");
    }
    let assumptions = stripped.put_on(ctx.rewrite.undo, ctx.options, 0)?;
    let place = stripped.place;
    let edit = stripped.finish(assumptions)?;
    if edit.edits.is_empty() {
        return Err(refuse("that is how they are collected already", Some(place)));
    }
    Ok(edit)
}

/// Puts a threshold on a launch that is collected: takes the layers off that belong on top of it, and puts them on again.
pub fn add_threshold(ctx: &RewriteCtx<'_, '_>, table: &'static [Rewrite]) -> Result<SourceEdit, Ineligible> {
    refuse_not_collected(ctx)?;
    let mut stripped = Stripped::new(ctx, table)?;
    let place = stripped.place;
    let index = stripped.launched_before(place);
    let mut taken = Vec::new();
    while let Some((layer, options, launch)) = stripped.strip_one(", 0, cudaStreamFireAndForget")? {
        if layer == Layer::Thresholded && launch == index {
            return Err(refuse("the launch has a threshold already", Some(place)));
        }
        taken.push((layer, options, launch));
    }
    let mut assumptions = stripped.put_on(ctx.rewrite.undo, ctx.options, index)?;
    for (layer, options, launch) in taken.into_iter().rev() {
        for assumption in stripped.put_on(Undo::Layer(layer), &options, launch)? {
            if !assumptions.contains(&assumption) {
                assumptions.push(assumption);
            }
        }
    }
    stripped.finish(assumptions)
}

/// Refuses a place where no launch is collected.
fn refuse_not_collected(ctx: &RewriteCtx<'_, '_>) -> Result<(), Ineligible> {
    let place = ctx.place()?;
    let function = function_around(ctx.db, place);
    if function.is_some_and(|f| text::source(ctx.db, f).contains("gridfuse::Aggregator")) {
        return Ok(());
    }
    Err(refuse("no launches are collected here", Some(place)))
}

/// Takes the layer of one rewrite off a function: `None` where there is none, `Some(None)` where it was edited.
type Peel = for<'db> fn(&'db dyn Db, FunctionItem<'db>) -> Option<Option<Peeled>>;

/// The layers under that of collected launches, from the outermost one.
const LAYERS: [(Layer, Peel); 4] = [
    (Layer::Coarsened, coarsened::peel),
    (Layer::Thresholded, thresholded::peel),
    (Layer::Serialized, serialized::peel),
    (Layer::Combined, together::peel),
];

/// A copy of the workspace without some layers.
struct Stripped<'db> {
    db: &'db dyn Db,
    /// All rewrites.
    table: &'static [Rewrite],
    copy: Copy,
    place: FileRange,
    /// The function that launches.
    function: String,
    layers: usize,
    /// What is taken for granted of the launches that were taken off: their grids may run at another time now.
    assumed: Vec<Reason>,
    /// Launches that were collected, or ran in the launching threads, are launches again.
    launches_again: bool,
}

impl<'db> Stripped<'db> {
    fn new(ctx: &RewriteCtx<'_, 'db>, table: &'static [Rewrite]) -> Result<Stripped<'db>, Ineligible> {
        let (db, place) = (ctx.db, ctx.place()?);
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
            table,
            copy: Copy::around(db, function).ok_or_else(nothing)?,
            place,
            function: function.name(db).to_owned(),
            layers: 0,
            assumed: Vec::new(),
            launches_again: false,
        })
    }

    fn path(&self) -> &'db Path {
        self.place.file.path(self.db)
    }

    /// How many launches of the function, collected or not, end before a place.
    fn launched_before(&self, place: FileRange) -> u32 {
        let db = self.db;
        let Some(function) = function_around(db, place) else {
            return 0;
        };
        let before = place.range.start.saturating_sub(function.start(db));
        let body = body(db, function);
        let collects = |binding: BindingId| {
            let base = &body.binding(binding).ty.base;
            base.contains("gridfuse::") || function.signature(db).template_types.iter().any(|t| t == base)
        };
        let collected = body.exprs.iter().filter(|expr| {
            let ExprKind::Call { callee, .. } = expr.kind else {
                return false;
            };
            let ExprKind::Field { base, field, .. } = &body.expr(callee).kind else {
                return false;
            };
            let object = &body.expr(body.strip_parens(*base)).kind;
            field == "launch" && matches!(object, ExprKind::Name(Name::Local(binding)) if collects(*binding))
        });
        let spans = collected
            .map(|expr| expr.span)
            .chain(launches(db, function).iter().map(|l| l.span));
        spans.filter(|span| span.end <= before).count() as u32
    }

    /// Takes one layer off; false when there is none left.
    fn strip(&mut self, stream: &str) -> Result<bool, Ineligible> {
        Ok(self.strip_one(stream)?.is_some())
    }

    /// The rewrite of launches that is taken back in this way.
    fn rewrite(&self, undo: Undo) -> Option<&'static Rewrite> {
        self.table.iter().find(|r| r.target.is_launch() && r.undo == undo)
    }

    /// Takes the outermost layer off a function: what has made it, and `None` where that was edited. `why`: why it can't be taken off,
    /// where it wasn't.
    fn peel<'a>(
        &self,
        db: &'a dyn Db,
        function: FunctionItem<'a>,
        stream: &str,
        why: &mut Option<String>,
    ) -> Option<(&'static str, Option<Peeled>)> {
        if let Some(peeled) = aggregated::peel(db, function, self.table, stream, why) {
            return Some(("aggregate", peeled));
        }
        LAYERS.iter().find_map(|(layer, peel)| {
            let peeled = peel(db, function)?;
            Some((self.rewrite(Undo::Layer(*layer))?.id, peeled))
        })
    }

    /// Takes one layer off; the layer, its rewrite's options and the launch to which it belongs.
    fn strip_one(&mut self, stream: &str) -> Result<Option<(Layer, Options, u32)>, Ineligible> {
        let here = self.place;
        let edited = |what: &str| {
            refuse(
                format!("the code that `{what}` has made was edited, so it can't be taken back"),
                Some(here),
            )
        };
        let peeled = {
            let db = self.copy.host.db();
            let Some(function) = function_named(&self.copy.host, self.path(), &self.function) else {
                return Ok(None);
            };
            let mut why = None;
            let Some((what, peeled)) = self.peel(db, function, stream, &mut why) else {
                if self.layers == 0 {
                    return Err(refuse(NOTHING, Some(self.place)));
                }
                return Ok(None);
            };
            peeled.ok_or_else(|| why.map_or_else(|| edited(what), |why| refuse(why, Some(here))))?
        };
        let undo = Undo::Layer(peeled.layer);
        let rewrite = self.rewrite(undo).map_or("", |rewrite| rewrite.id);
        let before = texts(&self.copy.host);
        let read = |path: &Path| before.iter().find(|(p, _)| p == path).map(|(_, t)| t.clone());
        let mut after = apply(&peeled.edit, read).map_err(|_| edited(rewrite))?;
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
        let index = peeled.index;
        self.put_on(undo, &peeled.options, index).map_err(|_| edited(rewrite))?;
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
        // A coarsened launch is one already.
        if peeled.layer != Layer::Coarsened {
            self.launches_again |= peeled.layer != Layer::Combined;
            for assumption in self.launched_again(index)? {
                if !self.assumed.contains(&assumption) {
                    self.assumed.push(assumption);
                }
            }
        }
        Ok(Some((peeled.layer, peeled.options, index)))
    }

    /// Applies the rewrite that is taken back in a way to a launch of the function; what it assumes.
    fn put_on(&mut self, undo: Undo, options: &Options, index: u32) -> Result<Vec<Reason>, Ineligible> {
        let here = self.place;
        let lost = || refuse("the launch is lost", Some(here));
        let edit = {
            let db = self.copy.host.db();
            let function = function_named(&self.copy.host, self.path(), &self.function).ok_or_else(lost)?;
            let rewrite = self.rewrite(undo).ok_or_else(lost)?;
            let known = launches(db, function).get(index as usize);
            if known.is_none_or(|l| l.launchers == Launchers::Host) {
                return Err(lost());
            }
            let launch = LaunchId { function, index };
            let applied = rewrite.apply(db, launch, options);
            applied.map_err(|refusal| Ineligible(self.here(refusal.0)))?
        };
        let before = texts(&self.copy.host);
        let read = |path: &Path| before.iter().find(|(p, _)| p == path).map(|(_, t)| t.clone());
        for (path, text) in apply(&edit, read).map_err(|_| lost())? {
            self.copy.host.set_file(&path, text);
        }
        Ok(self.here(edit.assumptions))
    }

    /// What a launch of the function takes for granted, now that it is one again.
    fn launched_again(&self, launch: u32) -> Result<Vec<Reason>, Ineligible> {
        let function = function_named(&self.copy.host, self.path(), &self.function);
        function.map_or(Ok(Vec::new()), |f| {
            launched_again::assumed(self.copy.host.db(), f, launch, self.place)
        })
    }

    /// Takes for granted that no more grids are pending at a time than may be, as there are more launches now.
    fn assume_room(&mut self, why: &str) {
        let function = function_named(&self.copy.host, self.path(), &self.function).filter(|_| self.launches_again);
        let assumption = function.and_then(|f| launched_again::room(self.copy.host.db(), f, why, self.place));
        self.assumed.extend(assumption);
    }

    /// Reasons whose places are in a text that nobody has seen.
    fn here(&self, reasons: Vec<Reason>) -> Vec<Reason> {
        let place = Some(self.place);
        reasons.into_iter().map(|reason| Reason { place, ..reason }).collect()
    }

    fn finish(self, mut assumptions: Vec<Reason>) -> Result<SourceEdit, Ineligible> {
        let further = self.assumed.iter().filter(|a| !assumptions.contains(a)).cloned();
        let further: Vec<Reason> = further.collect();
        assumptions.extend(further);
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
