//! From the analyses' facts to the plain data of [`schema`], which the command line prints and the editor shows.

mod dependences;

use std::path::Path;

use gridfuse_analysis::base::db::{Database, Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::diagnostics::diagnostic::Diagnostic;
use gridfuse_analysis::facts::launch::{
    self, GridSize, LaunchId, Launchers, Recursion, StreamKind, in_recursion, iteration_divergence, launch_counts,
    statement_places, stream_kind, waits_after, who_gets_to, who_launches,
};
use gridfuse_analysis::facts::uniformity::{self, Cause, Level, assumed_uniformity};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::{ExprId, StmtId, body};
use gridfuse_codeactions::api::assumption::Assumed;
use gridfuse_codeactions::api::refusal::Ineligible;
use gridfuse_codeactions::api::refusal::Reason;
use gridfuse_codeactions::api::rewrite::{Launches, Options, Target, Verdict};
use gridfuse_codeactions::api::source_edit::SourceEdit;
use gridfuse_codeactions::facts::allocations::allocates;
use gridfuse_codeactions::handlers::optimize::plan_of;
use gridfuse_codeactions::handlers::{of_launches, optimize, rewrite_by_id};

use crate::best_title::title_at;
use crate::collected::{CollectedCall, Collector, Tends, argument_names, fitting, kernel_of};
use crate::gain::{may_gain, mends};
use crate::launches::{LaunchSite, REPLACES_WAIT, REVERT, around, is_wait, overlap, place_in};
use crate::line_index::line_index;
use crate::schema;

pub use dependences::dependence_rows;

/// Describes facts; knows how paths are shown.
pub struct Describe<'a> {
    /// The database.
    pub db: &'a Database,
    /// Shows a path.
    pub path: &'a dyn Fn(&Path) -> String,
    /// An edit takes a rewrite back since which nobody has touched the program.
    pub is_untouched: &'a dyn Fn(&SourceEdit) -> bool,
}

/// Who launches, in words.
pub fn launchers(launchers: Launchers) -> &'static str {
    match launchers {
        Launchers::ManyThreads => "each thread that gets here",
        Launchers::OnePerWarp => "one thread of each warp",
        Launchers::OnePerBlock => "one thread of each block",
        Launchers::OnePerGrid => "one thread of the grid",
        Launchers::Host => "host code",
    }
}

/// Who launches, as a sentence.
pub fn launching(launchers: Launchers) -> &'static str {
    match launchers {
        Launchers::ManyThreads => "each thread that gets here launches it",
        Launchers::OnePerWarp => "one thread of each warp launches it",
        Launchers::OnePerBlock => "one thread of each block launches it",
        Launchers::OnePerGrid => "one thread of the grid launches it",
        Launchers::Host => "host code launches it",
    }
}

/// Who launches, as [`schema::Launch::launched_by`] names it.
fn launched_by(launchers: Launchers) -> &'static str {
    match launchers {
        Launchers::ManyThreads => "many-threads",
        Launchers::OnePerWarp => "one-per-warp",
        Launchers::OnePerBlock => "one-per-block",
        Launchers::OnePerGrid => "one-per-grid",
        Launchers::Host => "host",
    }
}

/// How a text ends that is about what a place may change: under the place, as a label, it stands as it is.
const MAY_CHANGE_HERE: &str = ", which may change here";

/// A text with its place, which is told as `line`: `depends on `x` (line 7)`, but `read from `x`, which line 7 may change`.
pub fn placed(text: &str, line: &str) -> String {
    match text.strip_suffix(MAY_CHANGE_HERE) {
        Some(text) => format!("{text}, which {line} may change"),
        None => format!("{text} ({line})"),
    }
}

impl<'a> Describe<'a> {
    /// A position.
    pub fn position(&self, file: SourceFile, offset: u32) -> schema::Position {
        let (line, column) = line_index(self.db, file).line_column(offset);
        schema::Position {
            line: line + 1,
            column: column + 1,
            offset,
        }
    }

    /// A place.
    pub fn place(&self, place: FileRange) -> schema::Place {
        schema::Place {
            path: (self.path)(place.file.path(self.db)),
            start: self.position(place.file, place.range.start),
            end: self.position(place.file, place.range.end),
        }
    }

    /// A reason.
    pub fn reason(&self, reason: &Reason) -> schema::Note {
        schema::Note {
            text: reason.text.clone(),
            place: reason.place.map(|place| self.place(place)),
            assumption: None,
        }
    }

    /// Something that is taken for granted.
    pub fn assumed(&self, assumed: &Assumed) -> schema::Note {
        schema::Note {
            assumption: Some(assumed.kind.id()),
            ..self.reason(&assumed.reason)
        }
    }

    fn all_assumed(&self, all: &[Assumed]) -> Vec<schema::Note> {
        all.iter().map(|assumed| self.assumed(assumed)).collect()
    }

    /// Verdict and reasons in words.
    fn verdict_parts(&self, verdict: &Verdict) -> (&'static str, Vec<schema::Note>) {
        match verdict {
            Verdict::Eligible => ("eligible", Vec::new()),
            Verdict::Assumes(all) => ("assumes", self.all_assumed(all)),
            Verdict::Ineligible(reasons) => ("ineligible", reasons.iter().map(|reason| self.reason(reason)).collect()),
        }
    }

    fn cause(&self, function: FunctionItem<'_>, cause: &Cause) -> schema::Note {
        let known = cause.span != Span::default();
        schema::Note {
            text: cause.text.clone(),
            place: known.then(|| self.place(place_in(self.db, function, cause.span))),
            assumption: None,
        }
    }

    fn uniformity(&self, function: FunctionItem<'_>, of: &uniformity::Uniformity, proved: Level) -> schema::Uniformity {
        schema::Uniformity {
            level: of.level.name(),
            proved: proved.name(),
            why: of.why.as_ref().map(|cause| self.cause(function, cause)),
            assumes: of.assumes.iter().map(|cause| self.cause(function, cause)).collect(),
        }
    }

    fn operand(&self, site: &LaunchSite<'_>, who: Launchers, operand: &launch::Operand) -> schema::Operand {
        let function = site.id.function;
        let assumed = assumed_uniformity(self.db, function);
        let proved = &operand.uniformity;
        // Where both agree, the proof says it better.
        let shown = assumed
            .exprs
            .get(&operand.expr)
            .filter(|u| u.level < proved.level)
            .unwrap_or(proved);
        let rounds = operand
            .changes_in_loop
            .then(|| iteration_divergence(self.db, site.id, operand.expr))
            .flatten()
            .filter(|rounds| rounds.level > shown.level);
        let shown = rounds.as_ref().unwrap_or(shown);
        let level = shown.level;
        let proved = rounds
            .as_ref()
            .map_or(proved.level, |rounds| proved.level.join(rounds.level));
        let one = |single: bool, level: bool| (single || level) && !operand.changes_in_loop;
        let one_per_grid = matches!(who, Launchers::OnePerGrid | Launchers::Host);
        let place = place_in(self.db, function, operand.span);
        schema::Operand {
            text: self.text(place),
            place: self.place(place),
            parameter: operand.parameter.clone(),
            uniformity: self.uniformity(function, shown, proved),
            same_in_block: one(one_per_grid || who == Launchers::OnePerBlock, level <= Level::Block),
            same_in_grid: one(one_per_grid, level <= Level::Grid),
            changes_in_loop: operand.changes_in_loop,
        }
    }

    fn extent(&self, site: &LaunchSite<'_>, who: Launchers, extent: &launch::Extent) -> schema::Extent {
        schema::Extent {
            operand: self.operand(site, who, &extent.operand),
            constant: extent.constant,
        }
    }

    /// The source at a place, on one line.
    pub fn text(&self, place: FileRange) -> String {
        let text = place.file.text(self.db);
        place.range.text(&text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// A function.
    pub fn function(&self, function: FunctionItem<'_>) -> schema::Function {
        let signature = function.signature(self.db);
        schema::Function {
            name: function.name(self.db).to_string(),
            kind: if signature.kernel {
                "kernel"
            } else if signature.device {
                "device"
            } else {
                "host"
            },
            place: self.place(place_in(self.db, function, signature.name_span)),
        }
    }

    /// Everything about a launch site.
    pub fn launch(&self, site: &LaunchSite<'_>) -> schema::Launch {
        let mut launch = self.launch_without_rewrites(site);
        if site.device_side() {
            launch.rewrites = self.verdicts(site);
        }
        launch
    }

    /// What is known about a launch site without asking the rewrites, which takes longest.
    pub fn launch_without_rewrites(&self, site: &LaunchSite<'_>) -> schema::Launch {
        let function = site.id.function;
        let facts = site.facts;
        let who = who_launches(self.db, site.id);
        let assumed = assumed_uniformity(self.db, function);
        let divergence = assumed.launch_divergence.get(&facts.expr).unwrap_or(&facts.divergence);
        let (status, definitions) = match &facts.child {
            launch::Child::Kernel(kernel) => ("known", vec![self.function(*kernel)]),
            launch::Child::Ambiguous(kernels) => ("ambiguous", kernels.iter().map(|k| self.function(*k)).collect()),
            launch::Child::Unknown => ("unknown", Vec::new()),
        };
        schema::Launch {
            place: self.place(site.place),
            text: self.text(site.place),
            child: schema::Child {
                name: facts.kernel_name.clone(),
                status,
                definitions,
            },
            parent: self.function(function),
            launchers: facts.launchers,
            who,
            launched_by: launched_by(who),
            in_loop: !facts.loops.is_empty(),
            loops: facts
                .loops
                .iter()
                .map(|l| self.place(site.at(self.db, l.span)))
                .collect(),
            divergent: divergence.level > Level::Block,
            divergence: self.uniformity(function, divergence, facts.divergence.level),
            recursive: in_recursion(self.db, site.id),
            allocates: site.device_side() && allocates(self.db, function),
            sync: waits_after(self.db, function)
                .get(site.id.index as usize)
                .copied()
                .flatten()
                .map(|wait| {
                    let at = site.at(self.db, wait.span);
                    schema::Sync {
                        place: self.place(at),
                        always: wait.always,
                        replace: self.replacement(at),
                    }
                }),
            conditional: facts.conditional,
            count: self.count(site),
            grid: self.extent(site, who, &facts.grid),
            block: self.extent(site, who, &facts.block),
            shared: facts.shared.as_ref().map(|operand| self.operand(site, who, operand)),
            stream: match stream_kind(self.db, site.id) {
                StreamKind::Null => "null",
                StreamKind::FireAndForget => "fire-and-forget",
                StreamKind::TailLaunch => "tail-launch",
                StreamKind::PerThread => "per-thread",
                StreamKind::Created => "created",
                StreamKind::Other => "other",
            },
            stream_operand: facts
                .stream_operand
                .as_ref()
                .map(|operand| self.operand(site, who, operand)),
            threads: facts.threads.as_ref().map(|threads| {
                let place = site.at(self.db, threads.span);
                schema::Threads {
                    text: self.text(place),
                    form: threads.form,
                    place: self.place(place),
                }
            }),
            args: facts.args.iter().map(|arg| self.operand(site, who, arg)).collect(),
            dependences: site.device_side().then(|| self.dependences(site)),
            rewrites: Vec::new(),
        }
    }

    fn count(&self, site: &LaunchSite<'_>) -> schema::Count {
        let count = &launch_counts(self.db, site.id.function)[site.id.index as usize];
        let (recursion, levels) = match count.recursion {
            Recursion::None => ("none", None),
            Recursion::Endless => ("endless", None),
            Recursion::Bounded(levels) => ("bounded", levels),
            Recursion::Open => ("open", None),
        };
        schema::Count {
            per_thread: count.per_thread.to_string(),
            per_block: count.per_block.to_string(),
            per_grid: count.per_grid.to_string(),
            guard: count.guard.map(|span| self.place(site.at(self.db, span))),
            child_threads: count.child_threads.to_string(),
            child_size: match count.size {
                GridSize::Tiny => "tiny",
                GridSize::Constant => "constant",
                GridSize::Symbolic => "symbolic",
            },
            total_threads: count.total_threads.to_string(),
            recursion,
            levels,
        }
    }

    /// Everything about a launch that a rewrite has collected.
    pub fn collected(
        &self,
        function: FunctionItem<'_>,
        collector: &Collector<'_>,
        launch: &CollectedCall,
    ) -> schema::CollectedLaunch {
        let place = place_in(self.db, function, launch.span);
        let child = self.function(collector.child);
        let mut fitting = fitting(self.db, place, collector);
        for (rewrite, edit) in &mut fitting {
            if rewrite.id == REVERT && (self.is_untouched)(edit) {
                edit.assumptions.clear();
            }
        }
        let reverted = fitting.iter().find(|(rewrite, _)| rewrite.id == REVERT);
        let names = argument_names(self.db, collector);
        let config = ["grid", "block", "shared memory"].map(|name| Some(name.to_owned()));
        let names = names.into_iter().map(Some).chain(std::iter::repeat(None));
        let places = statement_places(self.db, function);
        let loops = places.loops_around(&body(self.db, function), launch.expr);
        let who = who_gets_to(self.db, function, launch.expr);
        let values = |exprs: &[ExprId], names: &mut dyn Iterator<Item = Option<String>>| {
            let named = exprs.iter().zip(names);
            named.map(|(expr, name)| self.value(function, *expr, name)).collect()
        };
        schema::CollectedLaunch {
            place: self.place(place),
            text: self.text(place),
            runs: collector.label(),
            answer: collector.answer(&child.name),
            others: collector.launches.len().saturating_sub(1),
            child,
            parent: self.function(kernel_of(self.db, function)),
            was: reverted.and_then(|(_, edit)| launch_at(edit, place.file.path(self.db), place.range)),
            who,
            launched_by: who.map(launched_by),
            divergence: self.reached(function, places.statement_of(launch.expr)),
            loops: loops
                .iter()
                .map(|l| self.place(place_in(self.db, function, l.span)))
                .collect(),
            config: values(&launch.config, &mut config.into_iter()),
            args: values(&launch.arguments, &mut names.into_iter()),
            faster: fitting
                .iter()
                .map(|(rewrite, _)| rewrite)
                .find(|rewrite| collector.tends(rewrite) == Tends::Faster)
                .map(|rewrite| rewrite.id),
            rewrites: fitting
                .iter()
                .map(|(rewrite, edit)| schema::RewriteVerdict {
                    rewrite: rewrite.id,
                    title: rewrite.title.into(),
                    verdict: match edit.assumptions.is_empty() {
                        true => "eligible",
                        false => "assumes",
                    },
                    reasons: self.all_assumed(&edit.assumptions),
                    refuted: false,
                    plan: None,
                    may_gain: true,
                })
                .collect(),
        }
    }

    /// How uniform the decision is that control reaches a statement.
    fn reached(&self, function: FunctionItem<'_>, stmt: Option<StmtId>) -> schema::Uniformity {
        let proved = uniformity::uniformity(self.db, function);
        let assumed = assumed_uniformity(self.db, function);
        let unknown = unknown_level();
        let of = |found: &uniformity::FunctionUniformity| stmt.and_then(|stmt| found.divergence.get(&stmt).cloned());
        let proved = of(&proved).unwrap_or(unknown);
        let shown = of(&assumed);
        self.uniformity(function, shown.as_ref().unwrap_or(&proved), proved.level)
    }

    fn value(&self, function: FunctionItem<'_>, expr: ExprId, name: Option<String>) -> schema::Value {
        let place = place_in(self.db, function, body(self.db, function).expr(expr).span);
        let proved = uniformity::uniformity(self.db, function);
        let assumed = assumed_uniformity(self.db, function);
        let unknown = unknown_level();
        let proved = proved.exprs.get(&expr).unwrap_or(&unknown);
        let shown = assumed.exprs.get(&expr).filter(|found| found.level < proved.level);
        schema::Value {
            name,
            text: self.text(place),
            place: self.place(place),
            uniformity: self.uniformity(function, shown.unwrap_or(proved), proved.level),
        }
    }

    fn verdicts(&self, site: &LaunchSite<'_>) -> Vec<schema::RewriteVerdict> {
        of_launches()
            .map(|rewrite| {
                let (verdict, plan) = if rewrite.id == optimize::ID {
                    self.plan(site)
                } else {
                    (rewrite.verdict(self.db, site.id, &Options::default()), None)
                };
                let refuted = verdict.is_contradicted();
                let (verdict, reasons) = self.verdict_parts(&verdict);
                schema::RewriteVerdict {
                    rewrite: rewrite.id,
                    title: title_at(self.db, rewrite, site.id),
                    verdict,
                    refuted,
                    reasons,
                    plan,
                    may_gain: may_gain(self.db, site.id, rewrite.id),
                }
            })
            .collect()
    }

    /// What becomes of a wait for child grids.
    fn replacement(&self, wait: FileRange) -> Option<schema::RewriteVerdict> {
        let fix = rewrite_by_id(REPLACES_WAIT).filter(|_| is_wait(self.db, wait))?;
        let verdict = Verdict::of(&fix.apply(self.db, wait, &Options::default()));
        let (verdict, reasons) = self.verdict_parts(&verdict);
        Some(schema::RewriteVerdict {
            rewrite: fix.id,
            title: fix.title.into(),
            verdict,
            reasons,
            refuted: false,
            plan: None,
            may_gain: true,
        })
    }

    /// The verdict on `optimize`, and what it would do.
    fn plan(&self, site: &LaunchSite<'_>) -> (Verdict, Option<schema::Plan>) {
        let plan = match plan_of(self.db, site.id) {
            Ok(plan) => plan.clone(),
            Err(Ineligible(reasons)) => return (Verdict::Ineligible(reasons.clone()), None),
        };
        let twin = has_twin(self.db, site.id, &plan);
        let verdict = match plan.edit.assumptions.is_empty() {
            true => Verdict::Eligible,
            false => Verdict::Assumes(plan.edit.assumptions),
        };
        // What is refused on two ways to the plan is told once.
        let steps = |steps: Vec<(String, String)>| {
            let mut told: Vec<schema::Step> = Vec::new();
            for (rewrite, why) in steps {
                if !told.iter().any(|step| (&step.rewrite, &step.why) == (&rewrite, &why)) {
                    told.push(schema::Step { rewrite, why });
                }
            }
            told
        };
        let plan = schema::Plan {
            steps: steps(plan.steps),
            without: steps(plan.without),
            twin,
        };
        (verdict, Some(plan))
    }

    /// The rewrites that mend a diagnostic and can be applied, best first.
    pub fn fixes(&self, diagnostic: &Diagnostic, include_dirs: &[String]) -> Vec<schema::Fix> {
        if diagnostic.rewrites.is_empty() {
            return Vec::new();
        }
        let site = around(self.db, diagnostic.place);
        let mut edits: Vec<SourceEdit> = Vec::new();
        diagnostic
            .rewrites
            .iter()
            .filter_map(|id| {
                let rewrite = rewrite_by_id(id)?;
                let (place, edit, title) = match rewrite.target {
                    Target::Place(_) => {
                        let edit = rewrite.apply(self.db, diagnostic.place, &Options::default()).ok()?;
                        (diagnostic.place, edit, rewrite.title.into())
                    }
                    Target::Launch(_) => {
                        let site = site.filter(|site| mends(self.db, site.id, rewrite.id, diagnostic.rewrites))?;
                        let edit = rewrite.edit(self.db, site.id, &Options::default()).ok()?;
                        (site.place, edit, title_at(self.db, rewrite, site.id))
                    }
                };
                // Nobody is to be talked into what is known to be wrong; `explain` tells of it. And what optimizes may do what another does.
                if edit.assumptions.iter().any(|assumed| assumed.contradicted)
                    || edits.iter().any(|other| other.is_twin_of(&edit))
                {
                    return None;
                }
                let assumptions = self.all_assumed(&edit.assumptions);
                edits.push(edit);
                let place = self.place(place);
                let at = format!("{}:{}", place.start.line, place.start.column);
                let mut command: Vec<String> = ["gridfuse", "rewrite", &place.path, "--at", &at, "--apply", id]
                    .map(str::to_string)
                    .to_vec();
                for directory in include_dirs {
                    command.extend(["-I".to_string(), directory.clone()]);
                }
                Some(schema::Fix {
                    rewrite: rewrite.id,
                    title,
                    assumptions,
                    command,
                })
            })
            .collect()
    }

    /// A diagnostic with its fixes.
    pub fn finding(&self, diagnostic: &Diagnostic, include_dirs: &[String]) -> schema::Finding {
        schema::Finding {
            fixes: self.fixes(diagnostic, include_dirs),
            ..self.finding_without_fixes(diagnostic)
        }
    }

    /// A diagnostic whose fixes aren't looked up.
    pub fn finding_without_fixes(&self, diagnostic: &Diagnostic) -> schema::Finding {
        schema::Finding {
            id: diagnostic.id,
            severity: diagnostic.severity,
            message: diagnostic.message.clone(),
            label: diagnostic.label.clone(),
            place: self.place(diagnostic.place),
            related: diagnostic
                .related
                .iter()
                .map(|related| schema::Note {
                    text: related.message.clone(),
                    place: Some(self.place(related.place)),
                    assumption: None,
                })
                .collect(),
            help: diagnostic.help.clone(),
            fixes: Vec::new(),
        }
    }
}

/// The level of what no analysis has seen.
fn unknown_level() -> uniformity::Uniformity {
    uniformity::Uniformity {
        level: Level::Varying,
        ..uniformity::Uniformity::default()
    }
}

/// The launch that an edit writes where something stands, on one line; `None` where it writes several.
fn launch_at(edit: &SourceEdit, path: &Path, range: TextRange) -> Option<String> {
    let here = edit.edits.get(path)?.iter();
    let mut inserts = here
        .filter(|edit| overlap(edit.range, range))
        .map(|edit| edit.insert.as_str());
    only_launch(inserts.find(|insert| insert.contains("<<<"))?)
}

/// The launch in a text that has one: `child<<<1, 32>>>(out)`.
fn only_launch(text: &str) -> Option<String> {
    let (before, rest) = text.split_once("<<<").filter(|(_, rest)| !rest.contains("<<<"))?;
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut name = before.trim_end();
    // `child<float>`
    if name.ends_with('>') {
        let mut depth = 0u32;
        let opens = name.char_indices().rev().find(|(_, c)| {
            match c {
                '>' => depth += 1,
                '<' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        name = &name[..opens?.0];
    }
    let start = name.trim_end_matches(part).len();
    let arguments = rest.split_once(">>>")?.1;
    let mut depth = 0u32;
    let closes = arguments.char_indices().find(|(_, c)| match c {
        '(' => {
            depth += 1;
            false
        }
        ')' => {
            depth = depth.saturating_sub(1);
            depth == 0
        }
        _ => false,
    });
    let end = text.len() - arguments.len() + closes?.0 + 1;
    Some(text[start..end].split_whitespace().collect::<Vec<_>>().join(" "))
}

/// `1 thread`, `32 threads`, `n threads`.
pub fn plural(number: &str, what: &str) -> String {
    let ending = if number == "1" { "" } else { "s" };
    format!("{number} {what}{ending}")
}

/// Recursion in words.
pub fn recursion(count: &schema::Count) -> String {
    match (count.recursion, count.levels) {
        ("none", _) => "no".to_string(),
        ("endless", _) => "endless: every run launches the kernel again".to_string(),
        ("bounded", Some(levels)) => format!("up to {levels} levels below the first grid"),
        ("bounded", None) => "as deep as a parameter says".to_string(),
        _ => "as deep as the data say".to_string(),
    }
}

/// `range`, cut to the text and moved outwards to character boundaries.
pub fn clamp(text: &str, range: TextRange) -> std::ops::Range<usize> {
    let start = text.floor_char_boundary(range.start as usize);
    let end = text.ceil_char_boundary(range.end as usize);
    start..end.max(start)
}

/// The verdicts of a launch that say something to a reader: that a launch which isn't part of a recursion can't be flattened doesn't.
pub fn told_rewrites(launch: &schema::Launch) -> impl Iterator<Item = &schema::RewriteVerdict> {
    let wait = launch.sync.as_ref().and_then(|sync| sync.replace.as_ref());
    let told = launch.rewrites.iter().filter(move |rewrite| {
        match rewrite_by_id(rewrite.rewrite).map(|rewrite| rewrite.target) {
            Some(Target::Launch(Launches::Recursive)) => launch.recursive,
            Some(Target::Launch(Launches::Allocating)) => launch.allocates,
            Some(Target::Launch(Launches::Any) | Target::Place(_)) | None => true,
        }
    });
    wait.into_iter().chain(told)
}

/// Whether another rewrite makes the same edit as `optimize` does by a plan.
pub fn has_twin(db: &dyn Db, launch: LaunchId<'_>, plan: &optimize::Plan) -> bool {
    let [(step, _)] = plan.steps.as_slice() else {
        return false;
    };
    let id = step.split('=').next().unwrap_or(step);
    let edit = rewrite_by_id(id).and_then(|rewrite| rewrite.edit(db, launch, &Options::default()).ok());
    edit.is_some_and(|edit| edit.is_twin_of(&plan.edit))
}

#[cfg(test)]
mod tests {
    use super::{only_launch, placed};

    #[test]
    fn a_place_is_named_where_it_belongs() {
        assert_eq!(
            placed("depends on the parameter `n`", "line 3"),
            "depends on the parameter `n` (line 3)"
        );
        let change = placed("read from `row`, which may change here", "[line 24](a.cu#L24)");
        assert_eq!(change, "read from `row`, which [line 24](a.cu#L24) may change");
    }

    #[test]
    fn the_launch_in_a_text() {
        let text = "{\n  if (n > 0) a::child<b<int>><<<n, 32>>>(f(n),\n    out); }\n}";
        let launch = only_launch(text);
        assert_eq!(launch.as_deref(), Some("a::child<b<int>><<<n, 32>>>(f(n), out)"));
        assert_eq!(only_launch("k<<<1, 2>>>(); k<<<1, 2>>>();"), None);
        assert_eq!(only_launch("k<<<1, 2>>>"), None);
        assert_eq!(only_launch("k();"), None);
    }
}
