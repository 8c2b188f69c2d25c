//! Takes rewrites back. Each layer is taken off the text, and the result counts only if the rewrite makes of it what was there
//! before, white space aside: so what was edited by hand is noticed, and the rewrite's own proof holds.

mod aggregated;
mod coarsened;
mod collector;
mod copied;
mod in_child;
mod in_no_order;
mod launch;
mod launched_again;
mod layer;
mod looked_first;
mod nested;
mod passed_collectors;
mod renewed;
mod reused;
mod same_code;
mod serialized;
mod text;
mod thresholded;
mod together;

use std::path::{Path, PathBuf};

use gridfuse_analysis::base::db::{Db, Workspace};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::launch::{LaunchId, Launchers, launches};
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::resolve::launch_sites_of;
use gridfuse_analysis::hir::{BindingId, ExprKind, Name, body};
use gridfuse_analysis::host::Host;

use crate::api::assumption::Assumed;
use crate::api::copy::Copy;
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::refuse;
use crate::api::rewrite::{At, Layer, Options, Rewrite, RewriteCtx, Undo};
use crate::api::source_edit::SourceEdit;
use crate::api::source_edit::apply;
use crate::edit::style;
use crate::facts::site::{Site, function_around};

use layer::Peeled;
use same_code::{same_code, spelling_macros};

/// Shared memory and stream of launches that are in no order.
const NO_ORDER: &str = ", 0, cudaStreamFireAndForget";

/// The stream of these.
const MADE_STREAM: &str = "cudaStreamFireAndForget";

/// Why nothing is taken back where no rewrite has been.
pub const NOTHING: &str = "no rewrite that can be taken back made this code";

/// Takes off every layer of the launches in the function around a place, or, at what a rewrite has changed in a child, of a function that
/// launches it.
pub fn all(ctx: &RewriteCtx<'_, '_>, table: &'static [Rewrite]) -> Result<SourceEdit, Ineligible> {
    let refusal = match all_of_function(ctx, table) {
        Ok(edit) => return Ok(edit),
        Err(refusal) => refusal,
    };
    for launch in launches_of_changed(ctx) {
        let place = Site::new(ctx.db, launch).map(|site| site.here());
        let Ok(place) = place else { continue };
        let at_launch = RewriteCtx {
            at: At::Place(place),
            ..*ctx
        };
        if let Ok(edit) = all_of_function(&at_launch, table) {
            return Ok(edit);
        }
    }
    Err(refusal)
}

/// The launches of the kernel around a place, where its lines have what `skip-silent-stores` and `aggregate-atomics` write.
fn launches_of_changed<'db>(ctx: &RewriteCtx<'_, 'db>) -> Vec<LaunchId<'db>> {
    let Ok(place) = ctx.place() else { return Vec::new() };
    let db = ctx.db;
    let kernel = function_around(db, place).filter(|function| function.signature(db).kernel);
    let text = place.file.text(db);
    let start = style::line_start(&text, place.range.start as usize);
    let end = style::line_end(&text, place.range.end as usize);
    let lines = text.get(start..end).unwrap_or_default();
    let is_changed = ["// only what changes", "gridfuse::"]
        .iter()
        .any(|mark| lines.contains(mark));
    kernel
        .filter(|_| is_changed)
        .map_or_else(Vec::new, |kernel| launch_sites_of(db, kernel))
}

/// Takes off every layer of the launches in the function around a place.
fn all_of_function(ctx: &RewriteCtx<'_, '_>, table: &'static [Rewrite]) -> Result<SourceEdit, Ineligible> {
    let mut stripped = match Stripped::new(ctx, table) {
        Ok(stripped) => stripped,
        Err(nothing) => return in_no_order::take_back(ctx, table).map_err(|_| nothing),
    };
    match stripped.strip("") {
        Err(refusal) => return in_no_order::take_back(ctx, table).map_err(|_| refusal),
        Ok(_) => while stripped.strip("")? {},
    }
    stripped.assume_room("each thread launches its own again");
    stripped.finish(Vec::new())
}

/// Collects the launches of the function around a place at another granularity: takes the aggregation off, and puts the layer of the
/// rewrite that is asked on.
pub fn collect_again(ctx: &RewriteCtx<'_, '_>, table: &'static [Rewrite]) -> Result<SourceEdit, Ineligible> {
    refuse_not_collected(ctx)?;
    let mut stripped = Stripped::new(ctx, table)?;
    // They are in no order already, so that isn't taken for granted once more.
    stripped.strip(NO_ORDER)?;
    if !matches!(ctx.rewrite.undo, Undo::Layer(Layer::Collected(name)) if name.starts_with("PerGrid")) {
        stripped.assume_room("fewer launches are collected together");
    }
    let assumptions = stripped.put_on(ctx.rewrite.undo, ctx.options, 0)?;
    stripped.keep_notes();
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
    while let Some((layer, options, launch)) = stripped.strip_one(NO_ORDER)? {
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
    stripped.keep_notes();
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

/// Takes one layer of a rewrite off a function, the launches counted from 0 in the order in which they are tried: `None` where there are
/// fewer, `Some(None)` where it was edited.
type Peel = for<'db> fn(&'db dyn Db, FunctionItem<'db>, usize) -> Option<Option<Peeled>>;

/// The layers under that of collected launches, from the outermost one.
const LAYERS: [(Layer, Peel); 5] = [
    (Layer::Coarsened, coarsened::peel),
    (Layer::Thresholded, thresholded::peel),
    (Layer::Serialized, serialized::peel),
    (Layer::Combined, together::peel),
    (Layer::LookedFirst, looked_first::peel),
];

/// How many layers of other functions are taken off at most, to take one off beneath them.
const MOST_ABOVE: usize = 8;

/// A copy of the workspace without some layers.
struct Stripped<'db> {
    db: &'db dyn Db,
    /// All rewrites.
    table: &'static [Rewrite],
    copy: Copy,
    place: FileRange,
    /// The function that launches.
    function: String,
    /// How many functions of that name stand above it in the file: overloads, methods of other classes.
    overload: usize,
    layers: usize,
    /// What is taken for granted of the launches that were taken off: their grids may run at another time now.
    assumed: Vec<Assumed>,
    /// Launches that were collected, or ran in the launching threads, are launches again.
    launches_again: bool,
}

impl<'db> Stripped<'db> {
    fn new(ctx: &RewriteCtx<'_, 'db>, table: &'static [Rewrite]) -> Result<Stripped<'db>, Ineligible> {
        let (db, place) = (ctx.db, ctx.place()?);
        let nothing = || refuse(NOTHING, Some(place));
        let function = function_around(db, place).ok_or_else(nothing)?;
        // Most functions are none that a rewrite has touched: no copy for these.
        if !is_touched(db, function) {
            return Err(nothing());
        }
        Ok(Stripped {
            db,
            table,
            copy: Copy::around(db, function).ok_or_else(nothing)?,
            place,
            function: function.name(db).to_owned(),
            overload: functions_before(db, function),
            layers: 0,
            assumed: Vec::new(),
            launches_again: false,
        })
    }

    /// The function of the file that has a name now; of several that one that launches, if it is one of them.
    fn named(&self, name: &str) -> Option<FunctionItem<'_>> {
        let host = &self.copy.host;
        let db = host.db();
        let functions = items(db, host.file(self.path())?).functions.iter().copied();
        let mut named = functions.filter(|f| f.has_body(db) && f.name(db) == name);
        let overload = if name == self.function { self.overload } else { 0 };
        named.nth(overload)
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
            matches!(field.as_str(), "launch" | "launch_child")
                && matches!(object, ExprKind::Name(Name::Local(binding)) if collects(*binding))
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

    /// Takes an outermost layer off a function, the `nth` that may be one: what has made it, and `None` where that was edited. `why`: why
    /// it can't be taken off, where it wasn't.
    fn peel<'a>(
        &self,
        db: &'a dyn Db,
        function: FunctionItem<'a>,
        stream: &str,
        nth: usize,
        why: &mut Option<String>,
    ) -> Option<(&'static str, Option<Peeled>)> {
        if let Some(peeled) = aggregated::peel(db, function, self.table, stream, why) {
            return (nth == 0).then_some(("aggregate", peeled));
        }
        if let Some(peeled) = renewed::peel(db, function) {
            return (nth == 0).then_some(("promote", peeled));
        }
        let mut nth = nth;
        for (layer, peel) in &LAYERS {
            let mut launch = 0;
            while let Some(peeled) = peel(db, function, launch) {
                if nth == 0 {
                    return Some((self.rewrite(Undo::Layer(*layer))?.id, peeled));
                }
                (nth, launch) = (nth - 1, launch + 1);
            }
        }
        None
    }

    /// Takes one layer off; the layer, its rewrite's options and the launch to which it belongs.
    fn strip_one(&mut self, stream: &str) -> Result<Option<(Layer, Options, u32)>, Ineligible> {
        let function = self.function.clone();
        let stripped = match self.strip_one_of(&function, stream) {
            Err(refusal) => Some(self.strip_beneath_others(stream)?.ok_or(refusal)?),
            Ok(stripped) => stripped,
        };
        let Some((layer, options, index)) = stripped else {
            if self.layers == 0 {
                return Err(refuse(NOTHING, Some(self.place)));
            }
            return Ok(None);
        };
        self.layers += 1;
        // A coarsened launch is one already.
        if layer != Layer::Coarsened {
            self.launches_again |= !matches!(layer, Layer::Combined | Layer::LookedFirst);
            for assumption in self.launched_again(index)? {
                if !self.assumed.contains(&assumption) {
                    self.assumed.push(assumption);
                }
            }
        }
        Ok(Some((layer, options, index)))
    }

    /// Takes one layer off that is as its rewrite made it before other functions were rewritten, as kernels share what their child is
    /// split into: takes the others' layers off first, and puts them on again. `None` where that doesn't help.
    fn strip_beneath_others(&mut self, stream: &str) -> Result<Option<(Layer, Options, u32)>, Ineligible> {
        let before = texts(&self.copy.host);
        let own = self.function.clone();
        let mut above = Vec::new();
        while above.len() < MOST_ABOVE {
            let mut others = self.rewritten_functions().into_iter().filter(|name| *name != own);
            let taken = others.find_map(|name| {
                let (layer, options, launch) = self.strip_one_of(&name, "").ok()??;
                Some((name, layer, options, launch))
            });
            let Some(taken) = taken else { break };
            above.push(taken);
            let Ok(Some(stripped)) = self.strip_one_of(&own, stream) else {
                continue;
            };
            let mut again = above.iter().rev();
            // What the others assume has been said when they were rewritten.
            if again.all(|(name, layer, options, launch)| {
                self.put_on_launch(name, Undo::Layer(*layer), options, *launch).is_ok()
            }) {
                return Ok(Some(stripped));
            }
            break;
        }
        for (path, text) in before {
            self.copy.host.set_file(&path, text);
        }
        Ok(None)
    }

    /// The functions of the file that look as if a rewrite had touched them.
    fn rewritten_functions(&self) -> Vec<String> {
        let db = self.copy.host.db();
        let file = self.copy.host.file(self.path());
        let functions = file
            .into_iter()
            .flat_map(|file| items(db, file).functions.iter().copied());
        functions
            .filter(|f| f.has_body(db) && is_touched(db, *f))
            .map(|f| f.name(db).to_owned())
            .collect()
    }

    /// Takes one layer off a function, if its rewrite makes of the result what is there now.
    fn strip_one_of(&mut self, name: &str, stream: &str) -> Result<Option<(Layer, Options, u32)>, Ineligible> {
        let mut first = None;
        for nth in 0.. {
            match self.strip_nth_of(name, stream, nth) {
                Ok(None) => break,
                Ok(stripped) => return Ok(stripped),
                Err(refusal) => first = first.or(Some(refusal)),
            }
        }
        first.map_or(Ok(None), Err)
    }

    fn strip_nth_of(
        &mut self,
        name: &str,
        stream: &str,
        nth: usize,
    ) -> Result<Option<(Layer, Options, u32)>, Ineligible> {
        let here = self.place;
        let edited = |what: &str| {
            refuse(
                format!("the code that `{what}` made isn't what it would write now, so it can't be taken back"),
                Some(here),
            )
        };
        let peeled = {
            let db = self.copy.host.db();
            let Some(function) = self.named(name) else {
                return Ok(None);
            };
            let mut why = None;
            let Some((what, peeled)) = self.peel(db, function, stream, nth, &mut why) else {
                return Ok(None);
            };
            peeled.ok_or_else(|| why.map_or_else(|| edited(what), |why| refuse(why, Some(here))))?
        };
        let undo = Undo::Layer(peeled.layer);
        let rewrite = self.rewrite(undo).map_or("", |rewrite| rewrite.id);
        let before = texts(&self.copy.host);
        let read = |path: &Path| before.iter().find(|(p, _)| p == path).map(|(_, t)| t.clone());
        let plain_name = peeled.function.as_deref().unwrap_or(name);
        let spelling = spelling_macros(before.iter().map(|(_, text)| &**text));
        let mut best: Option<Vec<(PathBuf, String)>> = None;
        for edit in &peeled.edits {
            let mut after = apply(edit, read).map_err(|_| edited(rewrite))?;
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
            let made = self.put_on_launch(plain_name, undo, &peeled.options, peeled.index);
            let mut again = texts(&self.copy.host);
            if !stream.is_empty() {
                for (path, text) in &mut again {
                    let known = before.iter().find(|(known, _)| known == path);
                    let known = known.map_or("", |(_, text)| text);
                    *text = launch::with_notes_of(known, text, MADE_STREAM);
                }
            }
            let all = |same: &dyn Fn(&str, &str) -> bool| {
                let mut files = before.iter();
                files.all(|(path, text)| again.iter().any(|(p, t)| p == path && same(text, t)))
            };
            let exact = made.is_ok() && all(&|text, made| text == made);
            let same = |text: &str, made: &str| same_code(text, made, &spelling);
            if exact || made.is_ok() && best.is_none() && all(&same) {
                best = Some(plain);
            }
            for (path, text) in &before {
                self.copy.host.set_file(path, text.clone());
            }
            if exact {
                break;
            }
        }
        let plain = best.ok_or_else(|| edited(rewrite))?;
        for (path, text) in plain {
            self.copy.host.set_file(&path, text);
        }
        if name == self.function && plain_name != name {
            plain_name.clone_into(&mut self.function);
            self.overload = 0;
        }
        Ok(Some((peeled.layer, peeled.options, peeled.index)))
    }

    /// Applies the rewrite that is taken back in a way to a launch of the function; what it assumes.
    fn put_on(&mut self, undo: Undo, options: &Options, index: u32) -> Result<Vec<Assumed>, Ineligible> {
        let function = self.function.clone();
        self.put_on_launch(&function, undo, options, index)
    }

    /// Applies the rewrite that is taken back in a way to a launch of a function; what it assumes.
    fn put_on_launch(
        &mut self,
        name: &str,
        undo: Undo,
        options: &Options,
        index: u32,
    ) -> Result<Vec<Assumed>, Ineligible> {
        let here = self.place;
        let lost = || refuse("the launch is lost", Some(here));
        let edit = {
            let db = self.copy.host.db();
            let function = self.named(name).ok_or_else(lost)?;
            let rewrite = self.rewrite(undo).ok_or_else(lost)?;
            let known = launches(db, function).get(index as usize);
            if known.is_none_or(|l| l.launchers == Launchers::Host) {
                return Err(lost());
            }
            let launch = LaunchId { function, index };
            let applied = rewrite.apply(db, launch, options);
            applied.map_err(|refusal| Ineligible(refusal.0.iter().map(|reason| self.here(reason)).collect()))?
        };
        let before = texts(&self.copy.host);
        let read = |path: &Path| before.iter().find(|(p, _)| p == path).map(|(_, t)| t.clone());
        for (path, text) in apply(&edit, read).map_err(|_| lost())? {
            self.copy.host.set_file(&path, text);
        }
        let here = |assumed: &Assumed| assumed.with(|reason| self.here(reason));
        Ok(edit.assumptions.iter().map(here).collect())
    }

    /// What a launch of the function takes for granted, now that it is one again.
    fn launched_again(&self, launch: u32) -> Result<Vec<Assumed>, Ineligible> {
        let function = self.named(&self.function);
        function.map_or(Ok(Vec::new()), |f| {
            launched_again::assumed(self.copy.host.db(), f, launch, self.place)
        })
    }

    /// Takes for granted that no more grids are pending at a time than may be, as there are more launches now.
    fn assume_room(&mut self, why: &str) {
        let function = self.named(&self.function).filter(|_| self.launches_again);
        let assumption = function.and_then(|f| launched_again::room(self.copy.host.db(), f, why, self.place));
        self.assumed.extend(assumption);
    }

    /// A reason whose place is in a text that nobody has seen.
    fn here(&self, reason: &Reason) -> Reason {
        Reason {
            place: Some(self.place),
            ..reason.clone()
        }
    }

    /// Notes what launches were in the beginning, where they have been collected again.
    fn keep_notes(&mut self) {
        for (path, now) in texts(&self.copy.host) {
            let Some(before) = self.copy.before(&path) else {
                continue;
            };
            let text = launch::with_notes_of(&before, &now, MADE_STREAM);
            if text != now {
                self.copy.host.set_file(&path, text);
            }
        }
    }

    fn finish(self, mut assumptions: Vec<Assumed>) -> Result<SourceEdit, Ineligible> {
        let further = self.assumed.iter().filter(|a| !assumptions.contains(a)).cloned();
        let further: Vec<Assumed> = further.collect();
        assumptions.extend(further);
        Ok(SourceEdit {
            edits: self.copy.edits(),
            assumptions,
            ..SourceEdit::default()
        })
    }
}

/// Whether a function looks as if a rewrite had touched it.
fn is_touched<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> bool {
    let source = text::source(db, function);
    let mut words = ["gridfuse::", "Threshold", "Coarsening", "Blocks", "_serial"].iter();
    // A template gets its collectors by the names of parameters.
    let launches = || source.contains(".launch(");
    let of_child = || together::is_there(db, function) || looked_first::is_there(db, function);
    words.any(|word| source.contains(word)) || launches() || of_child()
}

fn texts(host: &Host) -> Vec<(PathBuf, String)> {
    let db = host.db();
    let files = Workspace::try_get(db).map(|w| w.files(db)).unwrap_or_default();
    files.iter().map(|(p, f)| (p.clone(), f.text(db).to_string())).collect()
}

/// How many functions of the same name are defined above one in its file.
fn functions_before(db: &dyn Db, function: FunctionItem<'_>) -> usize {
    let functions = items(db, function.file(db)).functions.iter().copied();
    let named = functions.filter(|f| f.has_body(db) && f.name(db) == function.name(db));
    named.take_while(|f| *f != function).count()
}
