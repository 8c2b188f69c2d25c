//! Launches that a rewrite has made into calls of a collector: `gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated> children(arena);` at the
//! top of a function, and `children.launch(…)` where a launch stood. A loop or a recursion of grids that has become one grid is one, too.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use gridfuse_analysis::base::db::{Database, Db, SourceFile};
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::base::span::{Span, TextRange};
use gridfuse_analysis::facts::effects::direct;
use gridfuse_analysis::hir::extents::functions_near;
use gridfuse_analysis::hir::items::{FunctionItem, items};
use gridfuse_analysis::hir::names::unqualified;
use gridfuse_analysis::hir::resolve::functions_named;
use gridfuse_analysis::hir::{ExprId, ExprKind, body};
use gridfuse_codeactions::api::rewrite::{Axis, Layer, Offered, Options, Rewrite, Target, Undo};
use gridfuse_codeactions::api::source_edit::SourceEdit;
use gridfuse_codeactions::handlers::{of_launches, of_places};

use crate::launches::{LaunchSite, REVERT, by_function, function_at, overlap, place_in};

/// How a declaration of a collector begins.
const AGGREGATOR: &str = "gridfuse::Aggregator<";

/// How a declaration of what leaves launches to the kernel's own threads begins.
const THREAD_REUSE: &str = "gridfuse::ThreadReuse<";

/// The same where a grid may follow the kernel.
const THREAD_REUSE_IN_STREAM: &str = "gridfuse::ThreadReuseInStream<";

/// The kernel that runs what a collector takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    /// One that the declaration names: as rewrites call it, the name of the kernel that was launched and this behind it.
    Named(&'static str),
    /// The kernel that has the collector: its launches are links or iterations of itself.
    Itself,
}

/// How declarations of what takes launches begin, and what runs these. What is in the runtime is here, too: a test compares.
const COLLECTORS: [(&str, Runs); 8] = [
    (AGGREGATOR, Runs::Named("_aggregated")),
    (THREAD_REUSE_IN_STREAM, Runs::Named("_aggregated")),
    (THREAD_REUSE, Runs::Named("_args")),
    ("gridfuse::Loop<", Runs::Named("_loop")),
    ("gridfuse::Recursion<", Runs::Named("_flattened")),
    ("gridfuse::BlockLoop<", Runs::Itself),
    ("gridfuse::Chain<", Runs::Itself),
    ("gridfuse::DecoupledLookback<", Runs::Itself),
];

/// What the host calls in place of a launch, where a loop or a recursion has become one grid, and what is behind the name of the
/// kernel that was launched.
const STARTERS: [(&str, &str); 4] = [
    ("gridfuse::launch_loop<", "_loop"),
    ("gridfuse::launch_growing_loop<", "_loop"),
    ("gridfuse::launch_recursion<", "_flattened"),
    ("gridfuse::run_rounds<", ROUNDS),
];

/// What is behind the name of a kernel of which one grid runs a loop of the host.
const ROUNDS: &str = "_rounds";

/// The members by which collectors take launches.
const TAKES: [&str; 3] = ["launch", "launch_at_once", "launch_child"];

/// What stands for the granularity of launches that are left to the kernel's own threads, and to a grid that may follow.
const IN_PARENT: &str = "ThreadReuseInStream";

/// A collector that a function declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector<'db> {
    /// The variable.
    pub name: String,
    /// The granularity as the header calls it: `PerBlock`, `PerMultiBlock<8>`.
    pub granularity: String,
    /// The kernel that was launched here before, or, where it is gone, the one that runs what is collected.
    pub child: FunctionItem<'db>,
    /// Its calls of `launch`, relative to the function.
    pub launches: Vec<CollectedCall>,
}

/// A call of `launch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedCall {
    /// The call.
    pub expr: ExprId,
    /// The call, relative to the function.
    pub span: Span,
    /// The grid size, the block size and the shared memory, as far as they are there.
    pub config: Vec<ExprId>,
    /// The arguments that differ from launch to launch.
    pub arguments: Vec<ExprId>,
}

impl Collector<'_> {
    /// Whose launches become one, in words: `block`, `group of blocks`. `None` where all grids that follow each other do.
    pub fn group(&self) -> Option<&'static str> {
        let word = self.granularity.split('<').next().unwrap_or_default();
        match word {
            "" => None,
            "PerWarp" => Some("warp"),
            "PerBlock" => Some("block"),
            "PerMultiBlock" => Some("group of blocks"),
            "ByWarp" => Some("warp"),
            "ByBlock" | "BySize" => Some("block"),
            _ => Some("grid"),
        }
    }

    /// Its launches run in the threads of the kernel that has it.
    fn is_in_parent(&self) -> bool {
        self.granularity.starts_with("By") || self.granularity == IN_PARENT
    }

    /// How its launches run, for a label: `collected per block`.
    pub fn label(&self) -> String {
        match self.group() {
            _ if self.is_in_parent() => "in the parent's threads".to_owned(),
            Some(group) => match self.granularity.as_str() {
                "PerGridFromHost" => "collected per grid, launched by the host".to_owned(),
                "PerGridInStream" => "collected per grid, run after the parent".to_owned(),
                _ => format!("collected per {group}"),
            },
            None => "in the same grid".to_owned(),
        }
    }

    /// How its launches run, as a sentence.
    pub fn answer(&self, child: &str) -> String {
        match self.group() {
            _ if self.is_in_parent() => {
                format!("after their own work, the parent's threads run the grids of `{child}` that are launched here")
            }
            Some(group) => {
                let one = match self.granularity.as_str() {
                    "PerGridFromHost" => "one grid, which the host launches where it can,",
                    "PerGridInStream" => "one grid, which follows the parent in its stream,",
                    _ => "one grid",
                };
                format!("collected per {group}: {one} runs all grids of `{child}` that a {group} launches here")
            }
            None => format!("one grid runs this grid of `{child}` and all that follow it"),
        }
    }
}

/// The names of what stands in the braces of a launch: the fields of `struct child_args { int begin; int count; };`.
pub fn argument_names(db: &dyn Db, collector: &Collector<'_>) -> Vec<String> {
    let kernel = collector.child.name(db).rsplit("::").next().unwrap_or_default();
    let kernel = COLLECTORS.iter().fold(kernel, |name, (_, runs)| match runs {
        Runs::Named(suffix) => name.strip_suffix(suffix).unwrap_or(name),
        Runs::Itself => name,
    });
    let text = collector.child.file(db).text(db);
    let fields = text
        .split_once(&format!("struct {kernel}_args"))
        .and_then(|(_, rest)| rest.trim_start().strip_prefix('{'))
        .and_then(|rest| rest.split_once('}'));
    let Some((fields, _)) = fields else {
        return Vec::new();
    };
    let name = |declared: &str| {
        let declared = declared.split('[').next().unwrap_or_default().trim_end();
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        declared[declared.trim_end_matches(part).len()..].to_owned()
    };
    fields.split(';').map(name).filter(|name| !name.is_empty()).collect()
}

/// The rewrites that can be applied to a collected launch, each with its edit, in the order of a menu.
pub fn fitting(db: &Database, place: FileRange, collector: &Collector<'_>) -> Vec<(&'static Rewrite, SourceEdit)> {
    in_order(Some(collector))
        .into_iter()
        .filter_map(|rewrite| Some((rewrite, rewrite.apply(db, place, &Options::default()).ok()?)))
        .collect()
}

/// What a rewrite does to collected launches, in the order of a menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tends {
    /// More launches become one, as a rule the faster, the more.
    Faster,
    /// It may save launches.
    Perhaps,
    /// Fewer launches become one.
    Slower,
    /// It takes them back.
    Back,
}

impl Collector<'_> {
    /// What a rewrite that is offered everywhere does to launches that are collected here.
    pub fn tends(&self, rewrite: &Rewrite) -> Tends {
        let granularity = self.granularity.split('<').next().unwrap_or_default();
        match rewrite.undo {
            _ if rewrite.id == REVERT => Tends::Back,
            Undo::Layer(Layer::Collected(other)) if rank(other) > rank(granularity) => Tends::Faster,
            Undo::Layer(Layer::Collected(_)) => Tends::Slower,
            _ => Tends::Perhaps,
        }
    }
}

/// The rewrites that are offered everywhere, in the order of a menu at a collected launch, or elsewhere.
pub fn in_order(collector: Option<&Collector<'_>>) -> Vec<&'static Rewrite> {
    let everywhere = of_places().filter(|rewrite| rewrite.target == Target::Place(Offered::Everywhere));
    let mut found: Vec<&'static Rewrite> = everywhere.collect();
    if let Some(collector) = collector {
        let of = |rewrite: &Rewrite| match rewrite.undo {
            Undo::Layer(Layer::Collected(name)) => rank(name),
            _ => None,
        };
        found.sort_by_key(|rewrite| (collector.tends(rewrite), Reverse(of(rewrite))));
    }
    found
}

/// How many launches become one at a granularity, by its place among those that `tune` tries; `None`: none of them.
fn rank(granularity: &str) -> Option<u8> {
    let mut collecting = of_launches().filter(|rewrite| match rewrite.undo {
        Undo::Layer(Layer::Collected(name)) => name == granularity,
        _ => false,
    });
    match collecting.next()?.tunes? {
        Axis::Granularity(rank) => Some(rank),
        _ => None,
    }
}

/// The launches of a function that a rewrite has collected.
pub fn count(db: &dyn Db, function: FunctionItem<'_>) -> usize {
    collectors(db, function)
        .iter()
        .map(|collector| collector.launches.len())
        .sum()
}

/// A collected launch that stands somewhere.
pub struct Found<'db> {
    /// The function that it stands in.
    pub function: FunctionItem<'db>,
    /// What takes it.
    pub collector: Collector<'db>,
    /// The call.
    pub call: CollectedCall,
}

impl Found<'_> {
    /// The call in its file.
    pub fn place(&self, db: &dyn Db) -> FileRange {
        place_in(db, self.function, self.call.span)
    }
}

/// The collected launches of a file that have a byte in common with `range`.
pub fn overlapping<'db>(db: &'db dyn Db, file: SourceFile, range: TextRange) -> Vec<Found<'db>> {
    let near = functions_near(db, file, range).into_iter();
    let all = near.flat_map(|function| {
        let collectors = collectors(db, function).into_iter();
        collectors.flat_map(move |collector| {
            let calls = collector.launches.clone().into_iter();
            calls.map(move |call| Found {
                function,
                collector: collector.clone(),
                call,
            })
        })
    });
    all.filter(|found| overlap(found.place(db).range, range)).collect()
}

/// The first collected launch of the function around a place. Whether nothing at the place is about it: it is neither in the function's head
/// nor on a line that names the collector.
pub fn around<'db>(db: &'db dyn Db, file: SourceFile, range: TextRange) -> Option<(Found<'db>, bool)> {
    let function = function_at(db, file, range.start)?;
    let text = function.text(db);
    let at = range.start.saturating_sub(function.start(db)) as usize;
    let (before, after) = text.split_at_checked(at)?;
    let line = before.rsplit('\n').next()?.len();
    let line = text.get(at - line..)?.lines().next()?;
    let is_in_head = !before.contains('{') && after.contains('{');
    let collector = collectors(db, function).into_iter().next()?;
    let call = collector.launches.first()?.clone();
    let is_between = !is_in_head && !line.contains(&collector.name);
    let found = Found {
        function,
        collector,
        call,
    };
    Some((found, is_between))
}

/// The innermost collected launch around `offset`.
pub fn at<'db>(db: &'db dyn Db, file: SourceFile, offset: u32) -> Option<Found<'db>> {
    let found = overlapping(db, file, TextRange::empty(offset)).into_iter();
    found.min_by_key(|found| found.call.span.end - found.call.span.start)
}

/// A function of device code launches, also where a rewrite has collected its launches.
pub fn launches_others(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    by_function(db, function).iter().any(LaunchSite::device_side) || count(db, function) > 0
}

/// A call by which the host starts a loop or a recursion of grids that has become one grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start<'db> {
    /// The kernel that was launched here before.
    pub kernel: FunctionItem<'db>,
    /// The call, relative to the function.
    pub span: Span,
    /// It has taken the place of a loop of the host with all its launches, not of one launch.
    pub is_loop_of_the_host: bool,
}

/// The calls by which a function starts loops or recursions of grids that have become one grid.
pub fn started<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Start<'db>> {
    let text = function.text(db);
    if !function.has_body(db) || !STARTERS.iter().any(|(start, _)| text.contains(start)) {
        return Vec::new();
    }
    // What only a comment or a string mentions isn't called.
    let body = body(db, function);
    let call = |at: usize| {
        let mut exprs = body.exprs.iter();
        exprs.find(|expr| matches!(expr.kind, ExprKind::Call { .. }) && expr.span.start as usize == at)
    };
    let starts = STARTERS
        .iter()
        .flat_map(|(start, suffix)| text.match_indices(start).map(move |(at, _)| (at, start.len(), *suffix)));
    let calls = starts.filter_map(|(at, length, suffix)| {
        let span = call(at)?.span;
        let rest = &text[at + length..];
        let name = rest.get(..closing(rest)?)?.split(['<', ',']).next()?.trim();
        let kernel = child_of(db, function, name, suffix)?;
        Some(Start {
            kernel,
            span,
            is_loop_of_the_host: suffix == ROUNDS,
        })
    });
    calls.collect()
}

/// The collectors of a function.
pub fn collectors<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Collector<'db>> {
    let mut found = declared(db, function);
    found.extend(handed_on(db, function));
    found
        .into_iter()
        .flat_map(|collector| by_kernel(db, function, collector))
        .collect()
}

/// A collector as one for each kernel that it runs. Where kernels take turns in one grid, the first field of a launch says which is meant,
/// and the comment of the fields what its numbers say: `// kernel: 0 for control, 1 for jacobi.`
fn by_kernel<'db>(db: &'db dyn Db, function: FunctionItem<'db>, collector: Collector<'db>) -> Vec<Collector<'db>> {
    let file = collector.child.file(db).text(db);
    let fields = format!("struct {}_args", unqualified(collector.child.name(db)));
    let comment = file
        .find(&fields)
        .and_then(|at| file[..at].trim_end().lines().next_back())
        .and_then(|line| line.trim().strip_prefix("// kernel: "));
    let Some(comment) = comment.filter(|_| !collector.launches.is_empty()) else {
        return vec![collector];
    };
    let (body, text) = (body(db, function), function.text(db));
    let numbered = comment
        .trim_end_matches('.')
        .split(", ")
        .filter_map(|one| one.split_once(" for "));
    let kernels = numbered.filter_map(|(number, name)| {
        let mut named = functions_named(db, function.file(db), name).into_iter();
        let child = named.find(|f| f.has_body(db) && f.signature(db).kernel)?;
        let mut launches = collector.launches.clone();
        launches.retain(|launch| {
            let first = launch.arguments.first();
            first.is_some_and(|first| body.expr(*first).span.text(&text) == number)
        });
        let name = collector.name.clone();
        let granularity = collector.granularity.clone();
        Some(Collector {
            name,
            granularity,
            child,
            launches,
        })
    });
    let kernels: Vec<Collector<'db>> = kernels.collect();
    // What isn't understood stays as it is.
    let told: usize = kernels.iter().map(|kernel| kernel.launches.len()).sum();
    match told == collector.launches.len() {
        true => kernels
            .into_iter()
            .filter(|kernel| !kernel.launches.is_empty())
            .collect(),
        false => vec![collector],
    }
}

/// The collectors that a template takes by parameters of types that are template parameters, as rewrites write them: those of the same
/// names of the functions that call it, or that call its callers.
fn handed_on<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Collector<'db>> {
    let of_function = handed_on_in(db, function.file(db))
        .iter()
        .filter(|(to, ..)| *to == function);
    let collectors = of_function.filter_map(|(_, from, name)| {
        let collector = declared(db, *from).into_iter().find(|found| found.name == *name)?;
        let launches = launches(db, function, name);
        Some(Collector { launches, ..collector })
    });
    collectors.collect()
}

/// What the functions of a file hand on: the template that takes a collector, the function that declares it, and its name. Each template
/// and name stands there once, so that functions that call each other cost no more than their number.
#[salsa::tracked(returns(ref))]
fn handed_on_in<'db>(db: &'db dyn Db, file: SourceFile) -> Vec<(FunctionItem<'db>, FunctionItem<'db>, String)> {
    let text = file.text(db);
    if !COLLECTORS.iter().any(|(start, _)| text.contains(start)) {
        return Vec::new();
    }
    let functions = || items(db, file).functions.iter().copied().filter(|f| f.has_body(db));
    // By the name of the template and of the collector: who calls one overload may call all.
    let mut templates: BTreeMap<(&str, String), Vec<FunctionItem<'db>>> = BTreeMap::new();
    for function in functions() {
        for name in taken_by_template(db, function) {
            let own = unqualified(function.name(db));
            templates.entry((own, name)).or_default().push(function);
        }
    }
    let mut work: Vec<(FunctionItem<'db>, FunctionItem<'db>, String)> = Vec::new();
    for function in functions() {
        let own = declared(db, function).into_iter();
        work.extend(own.map(|found| (function, function, found.name)));
    }
    let mut handed_on = Vec::new();
    while let Some((caller, declares, name)) = work.pop() {
        let text = caller.text(db);
        let taken: Vec<(&str, String)> = templates
            .keys()
            .filter(|(own, taken)| *taken == name && text.contains(own))
            .cloned()
            .collect();
        let called = taken.iter().filter_map(|key| templates.remove(key)).flatten();
        let called: Vec<_> = called.map(|template| (template, declares, name.clone())).collect();
        work.extend(called.iter().cloned());
        handed_on.extend(called);
    }
    handed_on
}

/// The parameters by which a template may take a collector: references to what a template parameter names.
fn taken_by_template(db: &dyn Db, function: FunctionItem<'_>) -> Vec<String> {
    let types = &function.signature(db).template_types;
    if types.is_empty() {
        return Vec::new();
    }
    let body = body(db, function);
    let params = body.params.iter().map(|param| body.binding(*param));
    let taken = params.filter(|param| param.ty.reference && !param.ty.const_base && types.contains(&param.ty.base));
    taken.map(|param| param.name.clone()).collect()
}

/// The collectors whose types a function names.
fn declared<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<Collector<'db>> {
    let text = function.text(db);
    if !function.has_body(db) || !COLLECTORS.iter().any(|(start, _)| text.contains(start)) {
        return Vec::new();
    }
    let body = body(db, function);
    let starts = COLLECTORS.iter().flat_map(|(start, runs)| {
        let places = text.match_indices(start);
        places.map(move |(at, _)| (at + start.len(), *start, *runs))
    });
    let declared = starts.filter_map(|(at, start, runs)| {
        let rest = &text[at..];
        let close = closing(rest)?;
        let arguments = &rest[..close];
        let (granularity, kernel) = match start {
            AGGREGATOR | THREAD_REUSE => split_first(arguments)?,
            THREAD_REUSE_IN_STREAM => (IN_PARENT, arguments),
            _ => ("", arguments),
        };
        // A function that a kernel's body has moved to takes the kernel's collector by reference.
        let name = rest[close + 1..].trim_start().trim_start_matches('&').trim_start();
        let name = &name[..name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?];
        // What is only mentioned in a comment or a string is no variable.
        body.bindings.iter().any(|binding| binding.name == name).then_some(())?;
        let child = match runs {
            Runs::Named(suffix) => child_of(db, function, kernel.split(['<', ',']).next()?.trim(), suffix)?,
            Runs::Itself => kernel_of(db, function),
        };
        Some(Collector {
            name: name.to_owned(),
            granularity: granularity.trim().trim_start_matches("gridfuse::").to_owned(),
            child,
            launches: launches(db, function, name),
        })
    });
    declared.collect()
}

/// The launches that a function gives to a collector.
fn launches(db: &dyn Db, function: FunctionItem<'_>, name: &str) -> Vec<CollectedCall> {
    let text = function.text(db);
    let body = body(db, function);
    let launches = body.exprs.iter().enumerate().filter_map(|(index, expr)| {
        let ExprKind::Call { callee, args, .. } = &expr.kind else {
            return None;
        };
        let ExprKind::Field { base, field, .. } = &body.expr(body.strip_parens(*callee)).kind else {
            return None;
        };
        let object = body.expr(body.strip_parens(*base)).span;
        if !TAKES.contains(&field.as_str()) || object.text(&text) != name {
            return None;
        }
        let listed = args
            .iter()
            .position(|arg| matches!(body.expr(*arg).kind, ExprKind::InitList(_)));
        let arguments = match listed.map(|at| &body.expr(args[at]).kind) {
            Some(ExprKind::InitList(items)) => items.clone(),
            _ => Vec::new(),
        };
        Some(CollectedCall {
            expr: ExprId(index as u32),
            span: expr.span,
            config: args.get(..listed.unwrap_or(args.len()))?.to_vec(),
            arguments,
        })
    });
    launches.collect()
}

/// The kernel that users know: that of which `aggregated` is the aggregated form, where it is there, and has the name without the suffix.
fn child_of<'db>(
    db: &'db dyn Db,
    function: FunctionItem<'db>,
    aggregated: &str,
    suffix: &str,
) -> Option<FunctionItem<'db>> {
    let kernel = |name: &str| {
        let found = functions_named(db, function.file(db), name);
        let mut kernels = found.into_iter().filter(|f| f.has_body(db) && f.signature(db).kernel);
        kernels.next()
    };
    // `child_aggregated2`, where another rewrite has taken the name.
    let unnumbered = aggregated.trim_end_matches(|c: char| c.is_ascii_digit());
    let of = |name: &str| name.strip_suffix(suffix).and_then(kernel);
    let plain = of(aggregated).or_else(|| of(unnumbered));
    plain.or_else(|| kernel(aggregated))
}

/// The function is a kernel's body that a rewrite has moved, and collects.
pub fn runs_for_a_collector(db: &dyn Db, function: FunctionItem<'_>) -> bool {
    let text = function.text(db);
    let parameters = function.signature(db).params_span.text(&text);
    let by_name = COLLECTORS.iter().any(|(start, _)| parameters.contains(start));
    by_name || !function.signature(db).kernel && !handed_on(db, function).is_empty()
}

/// What the kernel that runs another one in fewer blocks has behind that one's name.
const COARSENED: &str = "_coarsened";

/// The kernel that another one runs in fewer blocks, where a rewrite has made that; else the kernel itself.
pub fn in_whole_blocks<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> FunctionItem<'db> {
    let Some(name) = kernel.name(db).strip_suffix(COARSENED) else {
        return kernel;
    };
    // Both call the body.
    let calls = |f: FunctionItem<'db>| -> Vec<FunctionItem<'db>> {
        let calls = &direct(db, f).calls;
        calls.iter().flat_map(|call| call.candidates.clone()).collect()
    };
    let shared = calls(kernel);
    let is_user = |f: &FunctionItem<'db>| {
        f.has_body(db) && f.signature(db).kernel && calls(*f).iter().any(|called| shared.contains(called))
    };
    let mut named = functions_named(db, kernel.file(db), name).into_iter();
    named.find(is_user).unwrap_or(kernel)
}

/// The kernel whose body a function is, where a rewrite has moved it there; else the function itself.
pub fn kernel_of<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> FunctionItem<'db> {
    let moved = runs_for_a_collector(db, function).then(|| function.name(db));
    let kernel = moved.and_then(|name| name.rsplit_once('_')).and_then(|(name, _)| {
        let mut found = functions_named(db, function.file(db), name).into_iter();
        found.find(|f| f.has_body(db) && f.signature(db).kernel)
    });
    kernel.unwrap_or(function)
}

/// Where the template's arguments end.
fn closing(rest: &str) -> Option<usize> {
    let mut depth = 0u32;
    for (at, c) in rest.char_indices() {
        match c {
            '<' | '(' => depth += 1,
            '>' if depth == 0 => return Some(at),
            '>' | ')' => depth = depth.checked_sub(1)?,
            ';' | '{' => return None,
            _ => {}
        }
    }
    None
}

/// The first argument, and the rest.
fn split_first(arguments: &str) -> Option<(&str, &str)> {
    let mut depth = 0u32;
    for (at, c) in arguments.char_indices() {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => return Some((&arguments[..at], &arguments[at + 1..])),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use gridfuse_analysis::hir::items::items;
    use gridfuse_analysis::host::Host;

    use gridfuse_codeactions::api::rewrite::Undo;
    use gridfuse_codeactions::runtime::PARTS;

    use super::{COLLECTORS, Collector, REVERT, TAKES, Tends, collectors, kernel_of};

    #[test]
    fn collectors_are_seen_with_their_launches() -> Result<(), &'static str> {
        let program = r#"
struct child_args { int* first; int sizes[2]; };
__global__ void child(int* out, int n) { out[n] = 1; }
__global__ void child_aggregated(gridfuse::Batch<child_args> batch, int* out) {}
template <class T> __global__ void other_aggregated(gridfuse::Batch<other_args> batch, T* out) {}
__device__ void parent_body(gridfuse::Aggregator<gridfuse::PerGrid, child_aggregated>& parents, int n) {
    parents.launch(1, 32, {n});
}
__global__ void parent(int* out, int n, gridfuse::Arena arena) {
    // gridfuse::Aggregator<gridfuse::PerBlock, child_aggregated> no(arena);
    gridfuse::Aggregator<gridfuse::PerMultiBlock<8>, child_aggregated> children(arena, out);
    gridfuse::Aggregator<gridfuse::PerGrid, other_aggregated<int>> others(arena, out);
    if (n > 0) children.launch(1, 32, {n});
    children.launch(1, 32, {n + 1});
    others.launch(1, 32, {n});
}
"#;
        let mut host = Host::new();
        let file = host.set_file("/a.cu".as_ref(), program);
        let db = host.db();
        let functions = &items(db, file).functions;
        let parent = functions.iter().find(|f| f.name(db) == "parent").ok_or("no kernel")?;
        let found = collectors(db, *parent);
        let told: Vec<_> = found
            .iter()
            .map(|c| (c.name.as_str(), c.group(), c.child.name(db), c.launches.len()))
            .collect();
        let expected = [
            ("children", Some("group of blocks"), "child", 2),
            ("others", Some("grid"), "other_aggregated", 1),
        ];
        assert_eq!(told, expected);
        let call = &found[0].launches[0];
        assert_eq!((call.config.len(), call.arguments.len()), (2, 1));
        assert_eq!(super::argument_names(db, &found[0]), ["first", "sizes"]);
        assert_eq!(super::argument_names(db, &found[1]), [""; 0]);
        let child = functions.iter().find(|f| f.name(db) == "child").ok_or("no kernel")?;
        assert_eq!(collectors(db, *child), []);
        let body = functions
            .iter()
            .find(|f| f.name(db) == "parent_body")
            .ok_or("no function")?;
        assert_eq!(kernel_of(db, *body), *parent);
        assert_eq!(kernel_of(db, *child), *child);
        assert_eq!(super::count(db, *body), 1);
        Ok(())
    }

    #[test]
    fn templates_get_the_collectors_of_their_callers() -> Result<(), &'static str> {
        let program = r#"
struct node_args { int n; };
template <int N> __global__ void node_aggregated(gridfuse::Batch<node_args> batch, int* out);
template <class Nodes> __device__ void split(Nodes& nodes, int n) { nodes.launch(2, 32, {n}); }
template <int N, class Nodes, class Other> __device__ void node_body(Nodes& nodes, Other& other, int* out, int n) {
    other.launch(1);
    nodes.launch(1, 32, {n});
    split(nodes, n);
}
template <int N> __global__ void node(int* out, int n, gridfuse::Arena arena) {
    gridfuse::Aggregator<gridfuse::PerGrid, node_aggregated<N>> nodes(arena, out);
    Thing other;
    node_body<N>(nodes, other, out, n);
}
"#;
        let mut host = Host::new();
        let file = host.set_file("/a.cu".as_ref(), program);
        let db = host.db();
        let named = |name: &str| {
            let mut functions = items(db, file).functions.iter().copied();
            functions
                .find(|f| f.has_body(db) && f.name(db) == name)
                .ok_or("no function")
        };
        let node = named("node")?;
        for name in ["split", "node_body"] {
            let found = collectors(db, named(name)?);
            let told: Vec<_> = found
                .iter()
                .map(|c| (c.name.as_str(), c.group(), c.child, c.launches.len()))
                .collect();
            assert_eq!(told, [("nodes", Some("grid"), node, 1)], "{name}");
        }
        assert_eq!(kernel_of(db, named("node_body")?), node);
        Ok(())
    }

    #[test]
    fn a_loop_of_grids_is_launched_by_itself_and_by_the_host() -> Result<(), &'static str> {
        let program = r#"
__global__ void sweep_loop(gridfuse::Iterations<sweep_args> iterations, int n);
__device__ void sweep_body(gridfuse::Loop<sweep_loop>& sweeps, int n) {
    if (n > 0) sweeps.launch(gridDim, blockDim, {n - 1});
}
__global__ void sweep(int n) {
    gridfuse::Loop<sweep_loop> sweeps({}, n);
    sweep_body(sweeps, n);
}
__global__ void sweep_loop(gridfuse::Iterations<sweep_args> iterations, int n) {}
void run(int n) {
    // gridfuse::launch_loop<sweep_loop>(1);
    gridfuse::launch_loop<sweep_loop>(n, 32, 0, 0, {n}, n);
}
"#;
        let mut host = Host::new();
        let file = host.set_file("/a.cu".as_ref(), program);
        let db = host.db();
        let named = |name: &str| {
            let mut functions = items(db, file).functions.iter().copied();
            functions
                .find(|f| f.has_body(db) && f.name(db) == name)
                .ok_or("no function")
        };
        let (sweep, body) = (named("sweep")?, named("sweep_body")?);
        let found = collectors(db, body);
        let told: Vec<_> = found.iter().map(|c| (c.group(), c.child, c.launches.len())).collect();
        assert_eq!(told, [(None, sweep, 1)]);
        assert_eq!(kernel_of(db, body), sweep);
        let run = named("run")?;
        let started = super::started(db, run);
        assert_eq!(started.iter().map(|start| start.kernel).collect::<Vec<_>>(), [sweep]);
        let call = "gridfuse::launch_loop<sweep_loop>(n, 32, 0, 0, {n}, n)";
        assert_eq!(started[0].span.text(&run.text(db)), call);
        Ok(())
    }

    #[test]
    fn what_collects_more_launches_comes_first() -> Result<(), &'static str> {
        let mut host = Host::new();
        let file = host.set_file("/a.cu".as_ref(), "__global__ void k() {}\n");
        let child = *items(host.db(), file).functions.first().ok_or("no kernel")?;
        let ids = |granularity: &str| -> Vec<(&str, Tends)> {
            let collector = Collector {
                name: "ks".to_owned(),
                granularity: granularity.to_owned(),
                child,
                launches: Vec::new(),
            };
            // What is offered elsewhere stands between them.
            let in_order = super::in_order(Some(&collector)).into_iter();
            let in_order = in_order.filter(|rewrite| matches!(rewrite.undo, Undo::Layer(_)) || rewrite.id == REVERT);
            in_order.map(|rewrite| (rewrite.id, collector.tends(rewrite))).collect()
        };
        let per_block = ids("PerBlock");
        assert_eq!(per_block[0], ("retune-grid-stream", Tends::Faster));
        assert_eq!(per_block.last(), Some(&("revert", Tends::Back)));
        assert!(per_block.contains(&("retune-warp", Tends::Slower)));
        assert_eq!(ids("PerMultiBlock<8>")[3], ("add-threshold", Tends::Perhaps));
        // Nothing collects more.
        assert_eq!(ids("PerGridInStream")[0], ("add-threshold", Tends::Perhaps));
        Ok(())
    }

    /// The classes of the runtime by which code launches, as declarations of them begin: those with a member that takes a launch.
    #[test]
    fn every_collector_of_the_runtime_is_known() {
        let declared = |line: &str| {
            let rest = ["class ", "struct "].iter().find_map(|kind| line.strip_prefix(kind))?;
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric())?;
            (!rest.ends_with(';')).then(|| rest[..end].to_owned())
        };
        let mut found = Vec::new();
        for part in PARTS {
            let mut class = String::new();
            for line in part.text.lines() {
                class = declared(line).unwrap_or(class);
                let taken = TAKES.iter().any(|take| line.contains(&format!("void {take}(")));
                if taken && line.starts_with("    __device__") && !found.contains(&class) {
                    found.push(class.clone());
                }
            }
        }
        assert!(found.len() > 5, "{found:?}");
        for class in found {
            let start = format!("gridfuse::{class}<");
            assert!(
                COLLECTORS.iter().any(|(known, _)| *known == start),
                "`{class}` of the runtime takes launches: name it in COLLECTORS, or graphs and lenses lose them"
            );
        }
    }

    #[test]
    fn a_chain_of_links_launches_itself() -> Result<(), &'static str> {
        let program = r#"
__device__ __forceinline__ void scan_link(gridfuse::DecoupledLookback<int, gridfuse::plus>& chain, int n, int tile) {
    if (tile < n) chain.launch();
}
__global__ void scan(int n, int tile, int offset, gridfuse::ChainMemory memory) {
    gridfuse::DecoupledLookback<int, gridfuse::plus> chain(memory, offset);
    while (chain.next([&](unsigned long long link) { return tile + (int)link < n; })) scan_link(chain, n, tile);
}
__device__ __forceinline__ void sum_link(gridfuse::Chain<sum_args>& chain, int n, int tile) {
    if (tile < n) chain.launch_at_once({tile + 1});
}
__global__ void sum(int n, int tile, gridfuse::ChainMemory memory) {
    gridfuse::Chain<sum_args> chain(memory, {tile});
    while (chain.next()) sum_link(chain, n, chain.args().tile);
}
__global__ void relax(int n, int round) {
    gridfuse::BlockLoop<relax_args> relaxes({round});
    while (relaxes.next()) {
        if (relaxes.args().round < n) relaxes.launch({relaxes.args().round + 1});
    }
}
"#;
        let mut host = Host::new();
        let file = host.set_file("/a.cu".as_ref(), program);
        let db = host.db();
        let mut told = Vec::new();
        for function in &items(db, file).functions {
            for collector in collectors(db, *function).iter().filter(|c| !c.launches.is_empty()) {
                let kernel = kernel_of(db, *function).name(db).to_owned();
                told.push((kernel, collector.child.name(db).to_owned(), collector.launches.len()));
            }
        }
        let expected = ["scan", "sum", "relax"].map(|name| (name.to_owned(), name.to_owned(), 1));
        assert_eq!(told, expected);
        Ok(())
    }
}
