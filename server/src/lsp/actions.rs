//! Code actions: the rewrites of the launches in the selection.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use gridfuse_analysis::base::db::{Database, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::severity::Severity;
use gridfuse_analysis::base::span::TextRange;
use gridfuse_analysis::diagnostics::diagnostic;
use gridfuse_analysis::diagnostics::diagnostics;
use gridfuse_analysis::facts::launch::in_recursion;
use gridfuse_codeactions::api::assumption::Assumed;
use gridfuse_codeactions::api::refusal::{Ineligible, Reason};
use gridfuse_codeactions::api::rewrite::{Launches, Options, Rewrite, Target, Undo, Verdict};
use gridfuse_codeactions::api::source_edit::SourceEdit;
use gridfuse_codeactions::api::source_edit::{TextEdit, apply_to_text};
use gridfuse_codeactions::facts::allocations::allocates;
use gridfuse_codeactions::handlers::{REWRITES, launch_rewrite, of_launches, place_rewrite};
use gridfuse_codeactions::runtime::HEADER_NAME;
use serde::{Deserialize, Serialize};
use tower_lsp_server::jsonrpc::{Error, ErrorCode, Result};
use tower_lsp_server::ls_types::{
    CodeAction, CodeActionDisabled, CodeActionKind, CodeActionOrCommand, CodeActionParams, Uri, WorkspaceEdit,
};

use super::convert::path_of;
use super::measure;
use super::state::Snapshot;
use crate::best_title::title_at;
use crate::collected::{self, in_order, launches_others};
use crate::creates::{Exists, to_create};
use crate::files::{MAX_NAMED_BYTES, read};
use crate::fixes;
use crate::gain::{may_gain, mends};
use crate::glance::{brief, decisive};
use crate::launches::{
    LaunchSite, REPLACES_WAIT, REVERT, around, function_at, overlap, overlapping, place_in, wait_for,
};
use crate::leftover::{self, Edited};
use crate::line_index::line_index;
use crate::measure::kernel::Sources;
use crate::steps_back;

/// The protocol's code for a request that is right but cannot be fulfilled.
const REQUEST_FAILED: i64 = -32803;

/// What an action needs to be resolved later.
#[derive(Debug, Serialize, Deserialize)]
struct Data {
    uri: Uri,
    version: Option<i32>,
    /// First byte of the launch.
    offset: u32,
    rewrite: String,
}

/// The answer to a request that is right but cannot be fulfilled; a sentence.
pub fn failed(message: String) -> Error {
    Error {
        code: ErrorCode::ServerError(REQUEST_FAILED),
        message: message.into(),
        data: None,
    }
}

/// The actions for a selection.
pub fn code_actions(snapshot: &Snapshot, params: &CodeActionParams) -> Vec<CodeActionOrCommand> {
    let uri = &params.text_document.uri;
    let Some(file) = snapshot.file(&path_of(uri)) else {
        return Vec::new();
    };
    if !snapshot.session.code_actions {
        return Vec::new();
    }
    let range = snapshot.text_range(file, params.range);
    let wanted = |kind: &CodeActionKind| match &params.context.only {
        Some(only) => only.iter().any(|only| includes(only, kind)),
        None => true,
    };
    let fixes = wanted(&CodeActionKind::QUICKFIX);
    let mut offers = Vec::new();
    let here = overlapping(&snapshot.db, file, range);
    for site in &here {
        if site.device_side() {
            offers.extend(of_launch(snapshot, uri, file, site, &[], fixes));
        }
    }
    // A diagnostic that speaks of no launch is mended at the launch of its function.
    for found in diagnostics(&snapshot.db, file) {
        let place = found.place.range;
        if found.rewrites.is_empty() || !overlap(place, range) || !overlapping(&snapshot.db, file, place).is_empty() {
            continue;
        }
        if let Some(site) = around(&snapshot.db, found.place).filter(LaunchSite::device_side)
            && !here.iter().any(|other| other.id == site.id)
        {
            let mends = of_launch(snapshot, uri, file, &site, &[found], fixes).into_iter();
            offers.extend(mends.filter(|offer| offer.is_fix() || offer.action.disabled.is_some()));
        }
    }
    offers.extend(edits_at_places(snapshot, file, range, fixes));
    offers.extend(small_edits(snapshot, file, range));
    offers.retain(|offer| offer.action.kind.as_ref().is_none_or(wanted));
    let mut offers = each_once(offers);
    // Fixes of what is found here, then the rest; the order within is the table's: the best first.
    offers.sort_by_key(|offer| (!offer.is_fix(), offer.action.is_preferred.is_none()));
    let mut actions: Vec<CodeAction> = offers.into_iter().map(|offer| offer.action).collect();
    if wanted(&CodeActionKind::EMPTY) {
        actions.extend(run_on_gpu(snapshot, uri, file, range, &here));
        actions.extend(insert_run_spec(snapshot, file, range));
    }
    // What can't be done says why, behind what can.
    actions.sort_by_key(|action| action.disabled.is_some());
    actions.into_iter().map(CodeActionOrCommand::CodeAction).collect()
}

/// An action, and what it does to the text.
struct Offer {
    action: CodeAction,
    /// The same for those that leave the same text behind, whatever they assume. `None`: it can't be done.
    result: Option<u64>,
}

impl Offer {
    fn is_fix(&self) -> bool {
        self.action.kind == Some(CodeActionKind::QUICKFIX)
    }

    /// Takes over what a twin mends.
    fn absorb(&mut self, twin: Offer) {
        if twin.is_fix() {
            self.action.kind = twin.action.kind;
        }
        for mended in twin.action.diagnostics.unwrap_or_default() {
            let known = self.action.diagnostics.get_or_insert_default();
            if !known.contains(&mended) {
                known.push(mended);
            }
        }
        self.action.is_preferred = self.action.is_preferred.or(twin.action.is_preferred);
    }
}

/// Of those that do the same, the first.
fn each_once(offers: Vec<Offer>) -> Vec<Offer> {
    let mut once: Vec<Offer> = Vec::new();
    let mut places: HashMap<u64, usize> = HashMap::new();
    for offer in offers {
        let known = offer.result.and_then(|result| places.get(&result)).copied();
        match known.and_then(|place| once.get_mut(place)) {
            Some(known) => known.absorb(offer),
            None => {
                places.extend(offer.result.map(|result| (result, once.len())));
                once.push(offer);
            }
        }
    }
    once
}

/// What tells the text that an edit leaves behind from that of others.
fn result_of(edit: &SourceEdit) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (path, edits) in &edit.edits {
        path.hash(&mut hasher);
        for edit in edits {
            (edit.range.start, edit.range.end, &edit.insert).hash(&mut hasher);
        }
    }
    edit.creates.hash(&mut hasher);
    hasher.finish()
}

/// The kind of a rewrite: what sort it is of stands behind the protocol's kind. A fix has the protocol's kind for that.
fn kind_of(rewrite: &Rewrite, fix: bool) -> CodeActionKind {
    match fix {
        true => CodeActionKind::QUICKFIX,
        false => format!(
            "{}.{}",
            CodeActionKind::REFACTOR_REWRITE.as_str(),
            rewrite.family.name()
        )
        .into(),
    }
}

/// The kinds that actions can be asked for.
pub fn kinds() -> Vec<CodeActionKind> {
    let mut kinds = vec![CodeActionKind::QUICKFIX, CodeActionKind::REFACTOR_REWRITE];
    for rewrite in REWRITES {
        let kind = kind_of(rewrite, false);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// What the menu says while the verdicts are still being worked out.
pub fn unfinished(snapshot: &Snapshot) -> Vec<CodeActionOrCommand> {
    let action = CodeAction {
        title: "gridfuse is still reading this code".to_owned(),
        kind: Some(CodeActionKind::REFACTOR_REWRITE),
        disabled: Some(CodeActionDisabled {
            reason: "Open the menu again in a moment.".to_owned(),
        }),
        ..CodeAction::default()
    };
    match snapshot.session.disabled_actions {
        true => vec![CodeActionOrCommand::CodeAction(action)],
        false => Vec::new(),
    }
}

/// Measuring the launches in the selection, or those of the function whose name is there.
fn run_on_gpu(
    snapshot: &Snapshot,
    uri: &Uri,
    file: SourceFile,
    range: TextRange,
    here: &[LaunchSite<'_>],
) -> Option<CodeAction> {
    if !snapshot.session.runs_measure {
        return None;
    }
    let db = &snapshot.db;
    let launch = here.iter().find(|site| site.device_side()).map(|site| site.place);
    let collected = || {
        collected::overlapping(db, file, range)
            .first()
            .map(|found| found.place(db))
    };
    let place = launch.or_else(collected).or_else(|| {
        let function = function_at(db, file, range.start)?;
        let name = place_in(db, function, function.signature(db).name_span);
        (overlap(name.range, range) && launches_others(db, function)).then_some(name)
    })?;
    let mut action = CodeAction {
        title: measure::TITLE.to_owned(),
        kind: Some(CodeActionKind::EMPTY),
        command: Some(measure::command(uri, Some(snapshot.range(place).start.line))),
        ..CodeAction::default()
    };
    match snapshot.lacking(file.path(db)) {
        None => {}
        Some(lacking) if snapshot.session.disabled_actions => {
            action.command = None;
            action.disabled = Some(CodeActionDisabled {
                reason: lacking.advice().to_owned(),
            });
        }
        // The command says why.
        Some(lacking) => action.title = format!("{} ({})", measure::TITLE, lacking.short()),
    }
    Some(action)
}

/// A proposal for how a kernel is run by itself, where nothing says it yet.
fn insert_run_spec(snapshot: &Snapshot, file: SourceFile, range: TextRange) -> Option<CodeAction> {
    let db = &snapshot.db;
    let path = file.path(db);
    let manifest = snapshot.manifests.of(path);
    if !snapshot.session.runs_measure || manifest.is_some_and(|manifest| manifest.build.is_some()) {
        return None;
    }
    let function = function_at(db, file, range.start)?;
    let sources = Sources {
        db,
        file,
        runs: manifest.and_then(|manifest| manifest.runs.as_ref()),
        show: &|path: &std::path::Path| path.display().to_string(),
    };
    let comment = sources.missing_spec(function)?;
    let at = function.start(db);
    let text = file.text(db);
    let (_, start) = line_index(db, file).line(at);
    let indent = text
        .get(start as usize..at as usize)
        .filter(|before| before.trim().is_empty())?;
    let comment: String = comment.lines().map(|line| format!("{line}\n{indent}")).collect();
    let edit = SourceEdit {
        edits: BTreeMap::from([(
            path.to_path_buf(),
            vec![TextEdit {
                range: TextRange::empty(at),
                insert: comment,
            }],
        )]),
        ..SourceEdit::default()
    };
    let title = format!("Insert a run specification for `{}`", function.name(db));
    Some(CodeAction {
        edit: Some(workspace_edit(snapshot, &edit, &title).ok()?),
        title,
        kind: Some(CodeActionKind::EMPTY),
        ..CodeAction::default()
    })
}

/// The edits of diagnostics that bring their own.
fn small_edits(snapshot: &Snapshot, file: SourceFile, range: TextRange) -> Vec<Offer> {
    let found = diagnostics(&snapshot.db, file).iter();
    found
        .filter(|diagnostic| overlap(diagnostic.place.range, range))
        .filter_map(|diagnostic| {
            let title = diagnostic.edit.as_ref()?.title.to_string();
            let edit = fixes::small_edit(&snapshot.db, diagnostic)?;
            let action = CodeAction {
                title,
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![snapshot.diagnostic(diagnostic)]),
                is_preferred: snapshot.session.preferred_actions.then_some(true),
                edit: Some(workspace_edit(snapshot, &edit, "").ok()?),
                ..CodeAction::default()
            };
            let result = Some(result_of(&edit));
            Some(Offer { action, result })
        })
        .collect()
}

/// `kind` is `wanted` or one of its sub-kinds.
fn includes(wanted: &CodeActionKind, kind: &CodeActionKind) -> bool {
    let (wanted, kind) = (wanted.as_str(), kind.as_str());
    match kind.strip_prefix(wanted) {
        Some(rest) => wanted.is_empty() || rest.is_empty() || rest.starts_with('.'),
        None => false,
    }
}

/// The rewrites of a launch; of those that mend the diagnostics `others`, which stand elsewhere, where there are any. As fixes if `fixes`:
/// else the client asks for rewrites alone, and those that mend something are among them.
fn of_launch(
    snapshot: &Snapshot,
    uri: &Uri,
    file: SourceFile,
    site: &LaunchSite<'_>,
    others: &[&diagnostic::Diagnostic],
    fixes: bool,
) -> Vec<Offer> {
    let db = &snapshot.db;
    let mut found: Vec<&diagnostic::Diagnostic> = others.to_vec();
    if others.is_empty() {
        let here = diagnostics(db, file).iter();
        found.extend(here.filter(|diagnostic| overlap(diagnostic.place.range, site.place.range)));
    }
    let wanted = |rewrite: &&Rewrite| {
        let mends = others.is_empty() || others.iter().any(|d| mends(db, site.id, rewrite.id, d.rewrites));
        mends
            && match rewrite.target {
                Target::Launch(Launches::Any) => true,
                Target::Launch(Launches::Recursive) => in_recursion(db, site.id),
                Target::Launch(Launches::Allocating) => allocates(db, site.id.function),
                Target::Place(_) => false,
            }
    };
    let mut verdicts: Vec<(&'static Rewrite, Verdict)> = of_launches()
        .filter(wanted)
        .map(|rewrite| (rewrite, rewrite.verdict(db, site.id, &Options::default())))
        .collect();
    // What the code speaks against comes after what fits.
    verdicts.sort_by_key(|(_, verdict)| verdict.is_contradicted());
    // The best one, which the menu shows first: editors have a key that applies it without a menu.
    let preferred = verdicts
        .iter()
        .find(|(rewrite, verdict)| verdict.fits() && may_gain(db, site.id, rewrite.id))
        .map(|(rewrite, _)| rewrite.id);
    verdicts
        .iter()
        .filter_map(|(rewrite, verdict)| {
            let mut mended: Vec<_> = found
                .iter()
                .filter(|d| mends(db, site.id, rewrite.id, d.rewrites))
                .collect();
            // What is known to be wrong mends nothing, and is the best of nothing.
            let mut own = title_at(db, rewrite, site.id);
            if verdict.is_contradicted() {
                mended.clear();
                own = rewrite.title.into();
            }
            let mut action = CodeAction {
                title: own.to_string(),
                kind: Some(kind_of(rewrite, false)),
                ..CodeAction::default()
            };
            let refused = match verdict {
                Verdict::Ineligible(reasons) => {
                    Some(decisive(rewrite.id, reasons).map_or_else(String::new, |reason| brief(&reason.text)))
                }
                Verdict::Assumes(assumptions) => {
                    action.title = title(&own, assumptions);
                    None
                }
                Verdict::Eligible => None,
            };
            let refused = match refused {
                None if snapshot.session.resolve_edits => {
                    action.data = serde_json::to_value(Data {
                        uri: uri.clone(),
                        version: snapshot.version(file.path(db)),
                        offset: site.place.range.start,
                        rewrite: rewrite.id.to_string(),
                    })
                    .ok();
                    None
                }
                None => match edit(snapshot, site, rewrite) {
                    Ok(edit) => {
                        action.edit = Some(edit);
                        None
                    }
                    Err(error) => Some(error.message.into_owned()),
                },
                refused => refused,
            };
            if let Some(reason) = refused {
                action.disabled = Some(CodeActionDisabled { reason });
                let offer = Offer { action, result: None };
                return snapshot.session.disabled_actions.then_some(offer);
            }
            if !mended.is_empty() {
                action.kind = Some(kind_of(rewrite, fixes));
                action.diagnostics = Some(mended.iter().map(|d| snapshot.diagnostic(d)).collect());
            }
            let best = preferred == Some(rewrite.id);
            action.is_preferred = (best && snapshot.session.preferred_actions).then_some(true);
            let edit = rewrite.edit(db, site.id, &Options::default());
            let result = edit.ok().as_ref().map(result_of);
            Some(Offer { action, result })
        })
        .collect()
}

/// The fixes of the diagnostics in the selection, and those that are offered everywhere.
fn edits_at_places(snapshot: &Snapshot, file: SourceFile, range: TextRange, fixes: bool) -> Vec<Offer> {
    let db = &snapshot.db;
    let mut found = Vec::new();
    let here: Vec<&diagnostic::Diagnostic> = diagnostics(db, file)
        .iter()
        .filter(|diagnostic| overlap(diagnostic.place.range, range))
        .collect();
    let mut offer = |fix: &'static Rewrite, place: FileRange, mends: Option<&diagnostic::Diagnostic>| {
        let applied = fix.apply(db, place, &Options::default());
        let kept = || (fix.id == REVERT).then(|| kept_at(snapshot, place)).flatten();
        let mut edit = match applied {
            Ok(edit) => edit,
            Err(refusal) => match kept() {
                Some(edit) => edit,
                // A finding with nothing in its menu looks like a fault of the editor.
                None => {
                    return found.extend(mends.and_then(|mended| not_mended(snapshot, fix, fixes, mended, &refusal)));
                }
            },
        };
        // What isn't taken back needn't be remembered: that looks at every file.
        match fix.undo {
            _ if fix.id == REVERT => {
                if snapshot.is_untouched(&edit) {
                    edit.assumptions.clear();
                }
            }
            Undo::Not(_) => {}
            _ => snapshot.remember(&edit),
        }
        let proven = edit.assumptions.is_empty() && fix.unattended;
        // An error has to be mended one way or another.
        let is_only_way =
            |mended: &diagnostic::Diagnostic| mended.severity == Severity::Error && mended.rewrites == [fix.id];
        let Ok(told) = workspace_edit(snapshot, &edit, fix.title) else {
            return;
        };
        let preferred = mends.is_some_and(|mended| proven || is_only_way(mended)) && snapshot.session.preferred_actions;
        let action = CodeAction {
            title: title(fix.title, &edit.assumptions),
            kind: Some(kind_of(fix, fixes && mends.is_some())),
            diagnostics: mends.map(|d| vec![snapshot.diagnostic(d)]),
            is_preferred: preferred.then_some(true),
            edit: Some(told),
            ..CodeAction::default()
        };
        let result = Some(result_of(&edit));
        found.push(Offer { action, result });
    };
    for diagnostic in &here {
        for fix in diagnostic.rewrites.iter().filter_map(|id| place_rewrite(id)) {
            offer(fix, diagnostic.place, Some(diagnostic));
        }
    }
    // Nothing else fits a launch for which the kernel waits, until that is mended.
    let launches = overlapping(db, file, range);
    let mut waits: Vec<FileRange> = launches.iter().filter_map(|site| wait_for(db, site)).collect();
    waits.dedup();
    for wait in waits {
        let stopped = diagnostics(db, file).iter().find(|found| found.place == wait);
        if let (Some(found), Some(fix)) = (stopped, place_rewrite(REPLACES_WAIT))
            && !here.iter().any(|seen| seen.place == wait)
        {
            offer(fix, wait, Some(found));
        }
    }
    let collected = collected::overlapping(db, file, range);
    let elsewhere = match collected.is_empty() {
        true => collected::around(db, file, range),
        false => None,
    };
    let nearest = collected.first().or(elsewhere.as_ref().map(|(launch, _)| launch));
    for fix in in_order(nearest.map(|found| &found.collector)) {
        let place = FileRange { file, range };
        // What is about a launch stands in the menus of the launch, of its collector and of the head of its kernel: before the rewrite, too,
        // it was in none of the lines between.
        let between = elsewhere.as_ref().filter(|(_, is_between)| *is_between);
        if between.is_some_and(|(launch, _)| is_about(db, fix, place, launch.place(db))) {
            continue;
        }
        offer(fix, place, None);
    }
    found
}

/// A rewrite does at `place` what it does at a launch elsewhere.
fn is_about(db: &Database, fix: &'static Rewrite, place: FileRange, launch: FileRange) -> bool {
    let result = |at: FileRange| fix.apply(db, at, &Options::default()).ok().as_ref().map(result_of);
    result(place).is_some_and(|here| result(launch) == Some(here))
}

/// A fix of a finding that can't be done here, with the reason, for clients that show such.
fn not_mended(
    snapshot: &Snapshot,
    fix: &Rewrite,
    fixes: bool,
    mended: &diagnostic::Diagnostic,
    refusal: &Ineligible,
) -> Option<Offer> {
    let reason = decisive(fix.id, &refusal.0).filter(|_| snapshot.session.disabled_actions)?;
    let action = CodeAction {
        title: fix.title.to_owned(),
        kind: Some(kind_of(fix, fixes)),
        diagnostics: Some(vec![snapshot.diagnostic(mended)]),
        disabled: Some(CodeActionDisabled {
            reason: brief(&reason.text),
        }),
        ..CodeAction::default()
    };
    Some(Offer { action, result: None })
}

/// What stands in most programs that a rewrite has made.
const MADE_OF: &str = "gridfuse::";

/// What leads back from the rewrites that this session has made, or commands before it, where the code doesn't say what it was made of.
fn kept_at(snapshot: &Snapshot, place: FileRange) -> Option<SourceEdit> {
    let (db, path) = (&snapshot.db, place.file.path(&snapshot.db));
    let mut steps = snapshot.applied_steps();
    // Files that commands have written are only read where a rewrite has been.
    if place.file.text(db).contains(MADE_OF) {
        steps.splice(..0, steps_back::kept());
    }
    // At what has changed, and at a launch of a function that has: anywhere else it would be in the way.
    let is_here = !steps.is_empty()
        && (!overlapping(db, place.file, place.range).is_empty()
            || steps_back::has_changed(db, &steps, path, place.range));
    if !is_here {
        return None;
    }
    let mut edit = steps_back::back(db, &steps, path, place.range)?;
    edit.assumptions.push(steps_back::others_need_nothing());
    Some(edit)
}

/// The title in a menu, with how many things the rewrite assumes: `Collect launches per block — 1 assumption`. What they are, the edit's
/// annotation and the hover say.
fn title(own: &str, assumptions: &[Assumed]) -> String {
    let texts: BTreeSet<&str> = assumptions.iter().map(|assumed| assumed.reason.text.as_str()).collect();
    match texts.len() {
        0 => own.to_owned(),
        1 => format!("{own} — 1 assumption"),
        several => format!("{own} — {several} assumptions"),
    }
}

/// More reasons than these aren't told in a menu.
const MOST_REASONS: usize = 8;

/// Reasons, each once, wherever it holds: what is said of several places is one cause.
fn join(reasons: &[Reason]) -> String {
    let mut texts: Vec<&str> = Vec::new();
    for reason in reasons {
        if !texts.contains(&reason.text.as_str()) {
            texts.push(&reason.text);
        }
    }
    let more = match texts.len() {
        all if all <= MOST_REASONS => 0,
        all => all - (MOST_REASONS - 1),
    };
    texts.truncate(texts.len() - more);
    match more {
        0 => texts.join("; "),
        more => format!("{}; and {more} more reasons", texts.join("; ")),
    }
}

/// Fills in the edit of an action.
pub fn resolve(snapshot: &Snapshot, mut action: CodeAction) -> Result<CodeAction> {
    if action.edit.is_some() || action.disabled.is_some() || action.command.is_some() {
        return Ok(action);
    }
    let data = action.data.clone().unwrap_or_default();
    let data: Data = serde_json::from_value(data)
        .map_err(|error| Error::invalid_params(format!("not an action of gridfuse: {error}")))?;
    let rewrite = launch_rewrite(&data.rewrite)
        .ok_or_else(|| Error::invalid_params(format!("no rewrite is called `{}`", data.rewrite)))?;
    let path = path_of(&data.uri);
    let modified = || Error {
        code: ErrorCode::ContentModified,
        message: "the document changed since the action was offered; ask for actions again".into(),
        data: None,
    };
    if snapshot.version(&path) != data.version {
        return Err(modified());
    }
    let file = snapshot.file(&path).ok_or_else(modified)?;
    let here = overlapping(&snapshot.db, file, TextRange::empty(data.offset));
    let site = here
        .iter()
        .find(|site| site.place.range.start == data.offset)
        .ok_or_else(modified)?;
    action.edit = Some(edit(snapshot, site, rewrite)?);
    Ok(action)
}

fn edit(snapshot: &Snapshot, site: &LaunchSite<'_>, rewrite: &'static Rewrite) -> Result<WorkspaceEdit> {
    let edit = rewrite
        .edit(&snapshot.db, site.id, &Options::default())
        .map_err(|refusal| failed(format!("cannot be applied: {}", join(&refusal.0))))?;
    snapshot.remember(&edit);
    snapshot.remember_step(&edit);
    workspace_edit(snapshot, &edit, &title_at(&snapshot.db, rewrite, site.id))
}

/// An edit for the client, with the files that it creates where they aren't there yet. It's refused where it leads out of the workspace.
pub fn workspace_edit(snapshot: &Snapshot, edit: &SourceEdit, title: &str) -> Result<WorkspaceEdit> {
    let assumed = edit.assumptions.iter().map(|assumed| assumed.reason.text.as_str());
    workspace_edit_if(snapshot, edit, &assumed.collect::<Vec<_>>(), title)
}

/// The same of an edit that is right if something holds.
pub fn workspace_edit_if(
    snapshot: &Snapshot,
    edit: &SourceEdit,
    assumed: &[&str],
    title: &str,
) -> Result<WorkspaceEdit> {
    let bounds = snapshot.bounds();
    for path in edit.edits.keys() {
        bounds.check(path).map_err(|outside| failed(outside.to_string()))?;
    }
    let existing = |path: &std::path::Path| {
        let known = snapshot.file(path).map(|file| file.text(&snapshot.db));
        let text = known.or_else(|| read(path, MAX_NAMED_BYTES).ok());
        text.map(|text| text.to_string())
    };
    let creates = to_create(&edit.creates, existing)
        .map_err(|Exists(path)| failed(Exists::message(&path.display().to_string())))?;
    for path in creates.keys() {
        bounds.check(path).map_err(|outside| failed(outside.to_string()))?;
    }
    let deletes: Vec<PathBuf> = left_over(snapshot, edit)
        .into_iter()
        .filter(|path| bounds.check(path).is_ok() && snapshot.knows_all_around(path))
        .collect();
    snapshot
        .workspace_edit(edit, &creates, &deletes, assumed, title)
        .ok_or_else(|| failed("the edit is of a file that is not known; save all files and try again".to_string()))
}

/// The runtime headers that nobody needs once an edit is applied, where the client can delete files.
fn left_over(snapshot: &Snapshot, edit: &SourceEdit) -> Vec<PathBuf> {
    if !snapshot.session.delete_files {
        return Vec::new();
    }
    let texts = edit.edits.iter().filter_map(|(path, list)| {
        let before = snapshot.file(path)?.text(&snapshot.db);
        let after = before
            .contains(HEADER_NAME)
            .then(|| apply_to_text(path, &before, list).ok())??;
        Some((path, before, after))
    });
    let texts: Vec<_> = texts.collect();
    let edited: Vec<Edited<'_>> = texts
        .iter()
        .map(|(path, before, after)| Edited { path, before, after })
        .collect();
    let headers = leftover::headers(&snapshot.db, &edited).into_iter();
    headers.map(|(path, _)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_told_once() {
        let reasons = |texts: &[&str]| -> Vec<Reason> {
            let reason = |text: &&str| Reason {
                text: (*text).to_owned(),
                place: None,
            };
            texts.iter().map(reason).collect()
        };
        assert_eq!(join(&reasons(&["a", "b", "a"])), "a; b");
        let eight = ["a", "b", "c", "d", "e", "f", "g", "h"];
        assert_eq!(join(&reasons(&eight)), "a; b; c; d; e; f; g; h");
        let nine = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        assert_eq!(join(&reasons(&nine)), "a; b; c; d; e; f; g; and 2 more reasons");
    }

    #[test]
    fn kinds_include_their_sub_kinds() {
        let rewrite = CodeActionKind::REFACTOR_REWRITE;
        assert!(includes(&CodeActionKind::REFACTOR, &rewrite));
        assert!(includes(&CodeActionKind::EMPTY, &rewrite));
        assert!(includes(&rewrite, &rewrite));
        assert!(!includes(&CodeActionKind::QUICKFIX, &rewrite));
        assert!(!includes(&CodeActionKind::from("refactor.re"), &rewrite));
    }
}
