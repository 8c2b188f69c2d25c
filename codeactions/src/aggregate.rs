//! Aggregation of launches (El Hajj 2018, §3.1): what the rewrites `aggregate-warp`, `aggregate-block`, `aggregate-multiblock`,
//! `aggregate-grid`, `aggregate-grid-host` and `aggregate-grid-stream` have in common.

use std::collections::BTreeMap;

use gridfuse_analysis::db::Db;
use gridfuse_analysis::hir::{ExprId, ExprKind, Literal, Name, StmtId, StmtKind, Storage};
use gridfuse_analysis::launch::{LaunchId, Launchers, Stream, constant_value, launches};
use gridfuse_analysis::span::{FileRange, Span, TextRange};
use gridfuse_analysis::summary::summary;
use gridfuse_analysis::uniformity::Level;

use crate::arena::{self, Parent, Room, refuse_to_leave_unseen};
use crate::child::Child;
use crate::cluster::{self, Cluster, Function};
use crate::ctype;
use crate::edit::{EditBuilder, SourceEdit};
use crate::effects::{Effects, effects};
use crate::handlers::finish;
use crate::in_launcher;
use crate::include::Header;
use crate::launch_bounds::{self, Needed};
use crate::launchpad::Listed;
use crate::lex;
use crate::names::{Names, camel, plural};
use crate::order::{self, CreatedStream};
use crate::outline::{self, Behind, Collecting, Form};
use crate::pure;
use crate::rewrite::{Ineligible, Reason};
use crate::room::{Collected, launches_at};
use crate::site::{Refusals, Site, refuse};
use crate::split::Split;
use crate::stream;
use crate::style::{self, Style};
use crate::target;
use crate::uniform::Uniform;

/// Whose launches become one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// Of the threads of a warp.
    Warp,
    /// Of the threads of a block.
    Block,
    /// Of so many neighbouring blocks.
    MultiBlock(u64),
    /// Of the whole parent grid.
    Grid,
    /// Of the whole parent grid; the host launches.
    GridFromHost,
    /// Of the whole parent grid; the host has launched behind the parent what runs them.
    GridInStream,
}

impl Granularity {
    /// The type in `gridfuse.cuh`.
    fn type_name(self) -> String {
        match self {
            Granularity::Warp => "gridfuse::PerWarp".to_owned(),
            Granularity::Block => "gridfuse::PerBlock".to_owned(),
            Granularity::MultiBlock(blocks) => format!("gridfuse::PerMultiBlock<{blocks}>"),
            Granularity::Grid => "gridfuse::PerGrid".to_owned(),
            Granularity::GridFromHost => "gridfuse::PerGridFromHost".to_owned(),
            Granularity::GridInStream => "gridfuse::PerGridInStream".to_owned(),
        }
    }

    /// For a comment and a message: the launches of what.
    fn noun(self) -> &'static str {
        match self {
            Granularity::Warp => "warp",
            Granularity::Block => "block",
            Granularity::MultiBlock(_) => "group of blocks",
            Granularity::Grid | Granularity::GridFromHost | Granularity::GridInStream => "grid",
        }
    }

    /// What has to be uniform at this level is the same for all launches that are collected together.
    fn level(self) -> Level {
        match self {
            Granularity::Warp | Granularity::Block => Level::Block,
            Granularity::MultiBlock(_) | Granularity::Grid | Granularity::GridFromHost | Granularity::GridInStream => {
                Level::Grid
            }
        }
    }

    /// Shared memory that the aggregator takes, in bytes.
    fn shared_bytes(self) -> u32 {
        match self {
            Granularity::Warp => 32 * 48,
            Granularity::Block => 48,
            Granularity::MultiBlock(_) | Granularity::Grid | Granularity::GridFromHost => 16,
            Granularity::GridInStream => 0,
        }
    }
}

/// The launches that one aggregator collects: of one child, with the same template arguments.
struct Group<'a> {
    /// Index of the child.
    child: usize,
    /// Of each launch, its index and how its arguments are passed. Which are uniform is the same for all.
    launches: Vec<(usize, Split<'a>)>,
    /// For each function in which an aggregator is declared, what the uniform arguments are there.
    uniform: BTreeMap<usize, Vec<String>>,
    /// The aggregated kernel.
    kernel: String,
    /// The struct of the arguments that differ, with template arguments where it has some.
    record: String,
    /// The variable.
    aggregator: String,
    /// The parent's parameter with its memory, where that is not the one for all.
    arena: Option<String>,
    /// Of the children's warps only those run that have something to do: the index of the parameter that says how many threads have.
    threads: Option<usize>,
    /// The function that runs a grid in the thread that launches it, where that may find no room.
    serial: Option<String>,
}

impl Group<'_> {
    /// The first launch's: says which parameters are uniform.
    fn split(&self) -> Option<&Split<'_>> {
        self.launches.first().map(|(_, split)| split)
    }
}

/// The edit that collects the launches of `launch`'s parent: all of them, and those of everything that has to do so, too.
/// Threads that write down a launch meet others of their warp again, while the device runtime of CUDA 13.0 may let threads
/// that launch at that time wait for ever (measured: `tests/gpu/runtime_test.cu`, and see `put_aside` in `gridfuse.cuh`); so a
/// kernel either collects all its launches or none. See [`crate::cluster`].
///
/// # Errors
/// The reasons why it can't be done.
pub fn aggregate<'db>(
    db: &'db dyn Db,
    launch: LaunchId<'db>,
    granularity: Granularity,
) -> Result<SourceEdit, Ineligible> {
    let site = Site::new(db, launch)?;
    let mut refusals = Refusals::default();
    let mut edit = EditBuilder::new(db);
    let mut names = Names::default();
    if site.facts.launchers == Launchers::Host {
        site.refuse_common(&mut refusals);
        refusals.check()?;
    }
    let cluster = Cluster::find(db, launch.function, &mut refusals);
    for function in &cluster.functions {
        names.add_file(db, function.file);
    }
    let sites = &cluster.sites;
    let mut streams = Vec::new();
    let mut children: Vec<Child<'db>> = Vec::new();
    let mut child_of = Vec::new();
    for (site, function) in sites.iter().zip(&cluster.site_of) {
        site.refuse_common(&mut refusals);
        target::refuse_place(site, &mut refusals);
        target::refuse_operands_but_defaults(site, true, &mut refusals);
        streams.push(understand_stream(site, &mut refusals, &mut edit));
        if cluster.is_repeated(*function) && site.facts.stream == Stream::Null {
            edit.assume(order::called_again(site));
        }
        refuse_blocks(site, granularity, &mut refusals);
        if granularity == Granularity::GridInStream {
            stream::refuse_launch(site, &mut refusals);
        }
        let Some(item) = site.child(&mut refusals) else {
            continue;
        };
        let known = children.iter().position(|c| c.item == item);
        let child = known.or_else(|| {
            names.add_file(db, item.file(db));
            children.push(Child::read(db, item, &mut names, &mut refusals)?);
            Some(children.len() - 1)
        });
        if let Some(index) = child {
            let collected = cluster.index(item).is_some();
            refuse_child(site, &children[index], collected, &mut refusals);
            child_of.push(index);
        }
    }
    if granularity == Granularity::GridInStream {
        // The children of which a thread may launch more than there is room for.
        for (index, child) in children.iter().enumerate() {
            let own = || (0..child_of.len()).filter(|s| child_of[*s] == index);
            if own().any(|s| !is_counted(&cluster, s)) {
                let needed = own().filter_map(|s| stream::refuse_without_room(&sites[s], child, &mut refusals));
                for reason in needed.collect::<Vec<_>>() {
                    edit.assume(reason);
                }
            }
        }
        stream::refuse_nesting(&cluster, &children, &mut refusals);
        for child in &children {
            for reason in stream::refuse_child(child, &mut refusals) {
                edit.assume(reason);
            }
        }
    }
    let mut parents: Vec<(usize, Parent<'db>)> = Vec::new();
    let mut shared = Vec::new();
    for (index, function) in cluster.functions.iter().enumerate() {
        if !function.is_kernel() {
            continue;
        }
        let effects = effects(db, function.item);
        refuse_what_needs_its_children(&cluster, function, &effects, &mut refusals);
        if function.batch().is_some() {
            refuse_to_leave_unseen(db, function.name(), &effects, &mut refusals);
        } else {
            let parent = Parent::find(&cluster, function, &effects, &mut refusals);
            for file in parent.files(function) {
                names.add_file(db, file);
            }
            parents.push((index, parent));
        }
        shared.push((index, effects.shared.first().map(|s| s.place)));
    }
    refuse_other_scopes(&cluster, &mut refusals);
    let header = Header::for_file(db, site.file)
        .map_err(|r| refusals.add(r.text, r.place))
        .ok();
    let mut groups = if child_of.len() == sites.len() {
        group(&cluster, &child_of, &children, &parents, granularity, &mut refusals)
    } else {
        Vec::new()
    };
    refusals.check()?;
    let Some(header) = header.filter(|_| !groups.is_empty()) else {
        return Err(refuse("the launch is not understood", Some(site.here())));
    };
    let several = groups.len() > 1;
    for group in &mut groups {
        let child = &children[group.child];
        if granularity == Granularity::GridInStream {
            group.arena = several.then(|| names.fresh(&format!("{}_arena", child.name)));
            group.threads = group.split().and_then(|split| {
                let sites: Vec<&Site<'_>> = group.launches.iter().map(|(index, _)| &sites[*index]).collect();
                stream::warps_alone(&sites, child, split)
            });
        }
        if granularity == Granularity::GridInStream && group.launches.iter().any(|(s, _)| !is_counted(&cluster, *s)) {
            group.serial = Some(names.fresh(&format!("{}_serial", child.name)));
        }
        let record = names.fresh(&format!("{}_args", child.name));
        group.kernel = names.fresh(&format!("{}_aggregated", child.name));
        group.aggregator = names.fresh(&plural(&child.name));
        group.record = record;
    }
    let plan = Plan {
        cluster: &cluster,
        children: &children,
        groups: &groups,
        granularity,
        arena: names.fresh("arena"),
    };
    for (index, place) in shared {
        let bytes = granularity.shared_bytes() * plan.needs(index).len() as u32;
        if bytes != 0
            && let Some(reason) = shared_memory(&cluster.functions[index], bytes, place)
        {
            edit.assume(reason);
        }
    }
    for function in &cluster.functions {
        header.include_in(db, &mut edit, function.file);
    }
    for child in &children {
        header.include_in(db, &mut edit, child.file);
    }
    plan.forward(&mut refusals, &mut edit);
    for (index, parent) in &parents {
        let function = &cluster.functions[*index];
        let needs = plan.needs(*index);
        if granularity == Granularity::GridInStream {
            stream::refuse_parent(function, parent.existing(), &mut refusals);
            if needs.iter().any(|group| plan.groups[*group].serial.is_some()) {
                launch_bounds::keep_with_more_code(function, parent.all_launches(function), &mut edit);
            }
            plan.follow(*index, parent, &header, &mut refusals, &mut edit);
            continue;
        }
        let collected: Vec<Collected<'_, 'db>> = needs.iter().map(|g| plan.collected(*index, *g)).collect();
        let listed = plan.listed(&[*index]);
        if !listed.is_empty() {
            parent.host_waits(&listed, &mut refusals, &mut edit);
        }
        let room = Room {
            collected: &collected,
            nested: needs.iter().any(|g| plan.launches_in_turn(*g)),
            listed: &listed,
        };
        let nested = plan.is_nested();
        let needed = needs.iter().map(|g| plan.registers(*g, nested)).reduce(Needed::and);
        let launches = parent.all_launches(function).filter(|_| !plan.is_outlined_now(*index));
        if let Some(needed) = needed {
            launch_bounds::keep(function, launches, needed, &mut refusals, &mut edit);
        }
        let arena = parent.existing().unwrap_or(&plan.arena);
        parent.add_arena(
            function,
            &header,
            &room,
            &plan.arena,
            plan.is_outlined_now(*index),
            &mut edit,
        );
        if !plan.is_outlined_now(*index) {
            let declarations = plan.declarations(*index, arena, function, &mut edit);
            declare(function, &declarations, &mut edit);
        }
    }
    let mut batches = Vec::new();
    for (index, function) in cluster.functions.iter().enumerate() {
        if let Some(batch) = function.batch() {
            let declarations = plan.declarations(index, &format!("{batch}.arena()"), function, &mut edit);
            declare(function, &declarations, &mut edit);
            cluster::make_nested(function, &mut edit);
            batches.push(index);
        } else if !function.is_kernel() {
            plan.add_parameters(index, &mut names, &mut edit);
        }
    }
    let listed = plan.listed(&batches);
    let batches = batches.iter().map(|index| cluster.functions[*index].item).collect();
    arena::nest(db, &cluster, batches, &listed, &mut refusals, &mut edit);
    for (index, child) in children.iter().enumerate() {
        plan.aggregated_kernels(index, child, &mut names, &mut edit);
    }
    for call in &cluster.calls {
        let needs = plan.needs(call.callee);
        let arguments: Vec<String> = needs.iter().map(|g| groups[*g].aggregator.clone()).collect();
        let file = cluster.functions[call.caller].file;
        target::prepend_items(&mut edit, file, call.list, &arguments);
    }
    for (number, group) in groups.iter().enumerate() {
        for (index, split) in &group.launches {
            let style = edit.style(sites[*index].file);
            let otherwise = plan.without_room(number, &sites[*index], split, &style);
            replace_launch(&sites[*index], split, &group.aggregator, otherwise, &mut edit);
        }
    }
    for (site, stream) in sites.iter().zip(streams) {
        let Some(stream) = stream else { continue };
        for stmt in stream.declaration.iter().chain(&stream.create).chain(&stream.destroy) {
            edit.delete_lines(site.place(site.body.stmt(*stmt).span));
        }
    }
    refusals.check()?;
    finish(edit)
}

/// Puts the launches together that one aggregator can collect: those of one child with the same template arguments and, for
/// blocks of several dimensions, the same block.
fn group<'a, 'db>(
    cluster: &'a Cluster<'db>,
    child_of: &[usize],
    children: &'a [Child<'db>],
    parents: &[(usize, Parent<'db>)],
    granularity: Granularity,
    refusals: &mut Refusals,
) -> Vec<Group<'a>> {
    let sites = &cluster.sites;
    let in_stream = granularity == Granularity::GridInStream;
    let block = |index: usize| sites[index].facts.block.constant;
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (index, site) in sites.iter().enumerate() {
        let fits = |m: &&mut Vec<usize>| {
            m.first().is_some_and(|first| {
                child_of[*first] == child_of[index]
                    && alike(&sites[*first], site)
                    && (!in_stream || block(*first) == block(index))
            })
        };
        match members.iter_mut().find(fits) {
            Some(group) => group.push(index),
            None => members.push(vec![index]),
        }
    }
    let members: Vec<(usize, Vec<usize>)> = members.into_iter().map(|m| (child_of[m[0]], m)).collect();
    let uniform = Uniform::find(cluster, children, &members, granularity.level());
    let mut groups = Vec::new();
    for ((child, members), (mut flags, mut texts)) in members.into_iter().zip(uniform) {
        if in_stream {
            stream::leave_out_unknown(cluster, parents, &children[child], &mut flags, &mut texts);
        }
        let launches = members
            .iter()
            .map(|m| (*m, Split::of(&sites[*m], &children[child], &flags, refusals)))
            .collect();
        groups.push(Group {
            child,
            launches,
            uniform: texts,
            kernel: String::new(),
            record: String::new(),
            aggregator: String::new(),
            arena: None,
            threads: None,
            serial: None,
        });
    }
    groups
}

/// The most launches of a site that a thread of a parent has, if that is known.
fn launches_of_a_thread(cluster: &Cluster<'_>, site: usize) -> Option<u64> {
    stream::launches_of_a_thread(&cluster.sites[site], cluster.is_repeated(cluster.site_of[site]))
}

fn is_counted(cluster: &Cluster<'_>, site: usize) -> bool {
    launches_of_a_thread(cluster, site).is_some()
}

/// Whether one aggregator can collect both launches, given that they are of the same child.
fn alike(a: &Site<'_>, b: &Site<'_>) -> bool {
    template_words(a) == template_words(b) && block_words(a) == block_words(b)
}

fn template_words<'a>(site: &'a Site<'_>) -> Vec<&'a str> {
    let span = site.launch.template_args;
    span.map_or_else(Vec::new, |t| lex::code_words(site.source(t)))
}

/// Empty for a block of one dimension, whose size may differ from launch to launch.
fn block_words<'a>(site: &'a Site<'_>) -> Vec<&'a str> {
    if is_linear_block(site) {
        return Vec::new();
    }
    lex::code_words(site.source(site.facts.block.operand.span))
}

/// Refuses what would have to be written differently in the functions that take part: names of another namespace, and template
/// arguments that mean something in one function alone.
fn refuse_other_scopes(cluster: &Cluster<'_>, refusals: &mut Refusals) {
    let scope = |name: &str| {
        name.rsplit_once("::")
            .map_or(String::new(), |(scope, _)| scope.to_owned())
    };
    let scopes: Vec<String> = cluster.functions.iter().map(|f| scope(f.item.name(f.db))).collect();
    if let Some(other) = scopes.iter().position(|s| *s != scopes[0]) {
        let function = &cluster.functions[other];
        refusals.add(
            format!(
                "`{}` and `{}` collect their launches together, and stand in different namespaces",
                cluster.functions[0].name(),
                function.name()
            ),
            Some(function.name_place()),
        );
    }
    for (site, at) in cluster.sites.iter().zip(&cluster.site_of) {
        let function = &cluster.functions[*at];
        let names = &function.item.signature(function.db).template_names;
        if let Some(span) = site.launch.template_args.filter(|_| !function.is_kernel())
            && lex::identifiers(site.source(span)).any(|w| names.iter().any(|n| n == w))
        {
            refusals.add(
                format!(
                    "the template arguments of this launch depend on those of `{}`",
                    function.name()
                ),
                Some(site.place(span)),
            );
        }
    }
}

/// A kernel that waits for its children, asks for their errors or orders them by events; or that launches in ways that aren't
/// understood as a launch.
fn refuse_what_needs_its_children(
    cluster: &Cluster<'_>,
    function: &Function<'_>,
    effects: &Effects,
    refusals: &mut Refusals,
) {
    let name = function.name();
    for found in effects.syncs.iter().chain(&effects.errors).chain(&effects.events) {
        if refusals.is_empty() {
            let what = format!("`{name}` or a function it calls uses {}", found.what);
            refusals.add(what, Some(found.place));
        }
    }
    let known = |place: &FileRange| {
        let here = |site: &Site<'_>| site.file == place.file && site.here().range.contains(place.range);
        cluster.sites.iter().any(here)
    };
    if let Some(found) = effects.launches.iter().find(|l| !known(&l.place)) {
        refusals.add(
            format!(
                "`{name}` calls a function that launches: a block that collects some launches and does others at once can \
                 hang (CUDA 13.0)"
            ),
            Some(found.place),
        );
    }
}

/// Assumptions or refusals because of the stream that a collected launch goes into; a created stream that is to be removed.
pub(crate) fn understand_stream(
    site: &Site<'_>,
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'_>,
) -> Option<CreatedStream> {
    let operand = site.facts.stream_operand.as_ref();
    let place = operand.map(|o| site.place(o.span));
    match &site.facts.stream {
        Stream::FireAndForget => {}
        Stream::Null => {
            for reason in order::null_stream(site) {
                edit.assume(reason);
            }
        }
        Stream::Created(binding) => {
            let stream = order::created_stream(site, *binding);
            let name = operand.map_or("", |o| site.source(o.span)).to_owned();
            if let Some(other) = stream.other {
                let place = site.place(site.body.expr(other).span);
                refusals.add(
                    format!("the stream `{name}` is used for more than this launch"),
                    Some(place),
                );
                return None;
            }
            let removable = |s: &StmtId| matches!(site.around(*s), Some(StmtKind::Block(_)));
            let clean = stream.create.len() == 1
                && stream
                    .declaration
                    .iter()
                    .chain(&stream.create)
                    .chain(&stream.destroy)
                    .all(removable);
            if stream.declaration.is_none() || !clean {
                refusals.add(format!("the stream `{name}` can't be removed cleanly"), place);
                return None;
            }
            if let Some(reason) = order::shared_stream(site, &stream, &name) {
                edit.assume(reason);
            }
            return Some(stream);
        }
        Stream::TailLaunch => refusals.add(
            "a tail launch runs after the launching grid, an aggregated launch doesn't wait for it",
            place,
        ),
        Stream::PerThread => refusals.add(
            "launches into each thread's own stream (cudaStreamPerThread, `--default-stream per-thread`) are not supported",
            place,
        ),
        Stream::Other => refusals.add("which stream it goes into isn't known", place),
    }
    None
}

/// Blocks of different shapes fit into one launch only when they are one-dimensional.
fn refuse_blocks(site: &Site<'_>, granularity: Granularity, refusals: &mut Refusals) {
    let block = &site.facts.block;
    let linear = is_linear_block(site);
    let alike = block.operand.uniformity.level <= granularity.level() && !block.operand.changes_in_loop;
    if block.constant.is_none() && !linear && !alike {
        refusals.add(
            "the blocks of the child may have several dimensions and differ from launch to launch",
            Some(site.place(block.operand.span)),
        );
    }
}

/// The block is sure to have one dimension.
fn is_linear_block(site: &Site<'_>) -> bool {
    let block = &site.facts.block;
    matches!(block.components, Some([_, None, None])) || is_linear(site, block.operand.expr)
}

/// A number, or a local `dim3` made of one number that nothing changes.
fn is_linear(site: &Site<'_>, expr: ExprId) -> bool {
    let body = &site.body;
    match &body.expr(body.strip_parens(expr)).kind {
        ExprKind::Construct { ty, args } => ty == "dim3" && args.len() == 1,
        ExprKind::Name(Name::Local(binding)) => {
            let mut inits = body.stmts.iter().filter_map(|stmt| match &stmt.kind {
                StmtKind::Decl(decls) => decls.iter().find(|d| d.binding == *binding),
                _ => None,
            });
            let init = inits.next().and_then(|d| d.init);
            inits.next().is_none()
                && pure::keeps_first_value(site.db, site.file, body, *binding)
                && init.is_some_and(|i| matches!(body.expr(i).kind, ExprKind::Construct { .. }) && is_linear(site, i))
        }
        _ => false,
    }
}

/// Refuses a child whose body can't be run as some block of a larger grid. `collected`: its own launches are collected, too.
pub(crate) fn refuse_child(site: &Site<'_>, child: &Child<'_>, collected: bool, refusals: &mut Refusals) {
    let db = site.db;
    let name = &child.name;
    let worker = child.worker();
    let effects = effects(db, worker);
    if collected {
        outline::refuse_to_outline_collecting(child, Form::Block, &effects, refusals);
    } else {
        outline::refuse_to_outline(child, Form::Block, &effects, refusals);
    }
    if child.file != site.file {
        target::refuse_unseen(site, child, refusals);
    }
    refuse_waits(child, &effects, refusals);
    if collected {
        return;
    }
    let own = launches(db, worker);
    let odd = own
        .iter()
        .find(|l| !matches!(l.stream, Stream::Null | Stream::FireAndForget | Stream::Created(_)));
    if let Some(odd) = odd {
        let place = FileRange {
            file: worker.file(db),
            range: odd.span.shift(worker.start(db)),
        };
        refusals.add(
            format!("`{name}` launches into a stream that depends on which grid launches"),
            Some(place),
        );
    } else if effects.launches.len() > own.len() {
        let place = effects.launches.last().map(|l| l.place);
        refusals.add(format!("`{name}` calls functions that launch"), place);
    }
}

/// Refuses a child that waits for other threads or uses events. `effects` are those of its worker.
pub(crate) fn refuse_waits(child: &Child<'_>, effects: &Effects, refusals: &mut Refusals) {
    let (db, name, worker) = (child.db, &child.name, child.worker());
    for (list, what) in [
        (&effects.waits, "may wait for another thread"),
        (&effects.events, "uses events"),
    ] {
        if let Some(first) = list.first() {
            refusals.add(format!("`{name}` {what}: {}", first.what), Some(first.place));
        }
    }
    if let Some(span) = summary(db, worker).may_wait.filter(|_| effects.waits.is_empty()) {
        let place = FileRange {
            file: worker.file(db),
            range: span.shift(worker.start(db)),
        };
        refusals.add(format!("`{name}` may wait for another thread"), Some(place));
    }
}

/// The aggregator keeps its state in shared memory: an assumption, unless the parent is sure to leave enough.
pub fn shared_memory(function: &Function<'_>, needed: u32, used: Option<FileRange>) -> Option<Reason> {
    let place = used?;
    let body = &function.body;
    let mut bytes: i128 = 0;
    let mut known = place.file == function.file;
    for binding in &body.bindings {
        match binding.storage {
            Storage::Shared => {}
            Storage::ExternShared => known = false,
            _ => continue,
        }
        let size = match ctype::normalize(&binding.ty.base).as_str() {
            _ if binding.ty.pointers > 0 => 8,
            "char" | "unsigned char" | "signed char" | "bool" => 1,
            "short" | "unsigned short" => 2,
            "int" | "unsigned int" | "float" => 4,
            "long" | "unsigned long" | "long long" | "unsigned long long" | "double" | "size_t" | "int2" | "float2" => {
                8
            }
            "int4" | "uint4" | "float4" | "double2" => 16,
            _ => {
                known = false;
                0
            }
        };
        let mut count = 1;
        for extent in &binding.ty.array {
            match extent.and_then(|e| constant_value(function.db, function.item, body, e)) {
                Some(extent) => count *= extent,
                None => known = false,
            }
        }
        bytes += size * count;
    }
    let own = body.bindings.iter().any(|b| b.storage == Storage::Shared);
    (!known || !own || bytes > 48 * 1024 - 208 - i128::from(needed)).then(|| Reason {
        text: format!(
            "a block of `{}` leaves {needed} bytes of the shared memory that it may use",
            function.name()
        ),
        place: Some(place),
    })
}

/// Who gets what.
struct Plan<'a, 'db> {
    cluster: &'a Cluster<'db>,
    children: &'a [Child<'db>],
    groups: &'a [Group<'a>],
    granularity: Granularity,
    /// The parameter of kernels that have none yet.
    arena: String,
}

impl<'db> Plan<'_, 'db> {
    /// The groups whose aggregators a function needs.
    fn needs(&self, function: usize) -> Vec<usize> {
        let reached = self.cluster.reached_from(function);
        let used = |g: &Group<'_>| {
            let mut launches = g.launches.iter();
            launches.any(|(site, _)| reached.contains(&self.cluster.site_of[*site]))
        };
        (0..self.groups.len()).filter(|g| used(&self.groups[*g])).collect()
    }

    /// The function of the cluster that a child is.
    fn member(&self, child: &Child<'db>) -> Option<usize> {
        self.cluster.index(child.item)
    }

    /// Whether the child of a group collects launches, too.
    fn launches_in_turn(&self, group: usize) -> bool {
        self.member(&self.children[self.groups[group].child]).is_some()
    }

    /// Some kernel that an aggregator launches has aggregators of its own.
    fn is_nested(&self) -> bool {
        (0..self.groups.len()).any(|group| self.launches_in_turn(group))
            || self.cluster.functions.iter().any(|function| function.batch().is_some())
    }

    /// What the aggregator of a group collects in a kernel.
    fn collected(&self, kernel: usize, group: usize) -> Collected<'_, 'db> {
        let group_of = &self.groups[group];
        let child = &self.children[group_of.child];
        let split = group_of.split();
        let reached = self.cluster.reached_from(kernel);
        let here = group_of
            .launches
            .iter()
            .map(|(site, _)| (&self.cluster.sites[*site], self.cluster.site_of[*site]))
            .filter(|(_, function)| reached.contains(function));
        Collected {
            child,
            record: (!split.is_some_and(|s| depends_on_template(child, s))).then_some(group_of.record.as_str()),
            behind: self.declared_at(group),
            fields: split.map_or_else(Vec::new, |s| s.varying().map(|p| &p.param.ty).collect()),
            launches: here
                .map(|(site, function)| launches_at(site, self.cluster.is_repeated(function)))
                .sum(),
        }
    }

    /// The registers that a kernel needs to launch a group's child.
    fn registers(&self, group: usize, nested: bool) -> Needed {
        let split = self.groups[group].split();
        let words = split.and_then(|split| launch_bounds::words(split.parts.iter().map(|p| &p.param.ty)));
        Needed::to_collect(words, nested)
    }

    /// Behind which offset of the child's file a group's kernel is declared.
    fn declared_at(&self, group: usize) -> u32 {
        let early = self.needed_early(group).map(|f| self.cluster.functions[f].start);
        early.unwrap_or(self.children[self.groups[group].child].start)
    }

    /// What the host has to launch when the launches of these kernels, and of their children in their turn, are left to it.
    fn listed(&self, kernels: &[usize]) -> Vec<Listed<'_, 'db>> {
        if !matches!(self.granularity, Granularity::GridFromHost | Granularity::GridInStream) {
            return Vec::new();
        }
        let mut groups: Vec<usize> = Vec::new();
        let mut todo = kernels.to_vec();
        while let Some(kernel) = todo.pop() {
            for group in self.needs(kernel) {
                if !groups.contains(&group) {
                    groups.push(group);
                    todo.extend(self.member(&self.children[self.groups[group].child]));
                }
            }
        }
        groups
            .into_iter()
            .filter_map(|group| self.host_launches(group))
            .collect()
    }

    /// A group's kernel as the host launches it.
    fn host_launches(&self, group: usize) -> Option<Listed<'_, 'db>> {
        let group_of = &self.groups[group];
        let (launch, _) = group_of.launches.first()?;
        Some(Listed {
            child: &self.children[group_of.child],
            kernel: &group_of.kernel,
            launch: &self.cluster.sites[*launch],
            behind: self.declared_at(group),
        })
    }

    /// Gives a parent the arenas of what follows it, and its launches by the host what makes them.
    fn follow(
        &self,
        index: usize,
        parent: &Parent<'db>,
        header: &Header,
        refusals: &mut Refusals,
        edit: &mut EditBuilder<'db>,
    ) {
        let function = &self.cluster.functions[index];
        let needs = self.needs(index);
        let arena = |group: &usize| self.groups[*group].arena.as_ref().unwrap_or(&self.arena);
        let parameters = needs.iter().map(|g| format!("{} {}", stream::STREAM_ARENA, arena(g)));
        parent.add_parameters(function, header, &parameters.collect::<Vec<_>>(), false, edit);
        for host in parent.launches() {
            let mut arguments = Vec::new();
            for group in &needs {
                let group_of = &self.groups[*group];
                let Some(follower) = self.host_launches(*group) else {
                    continue;
                };
                stream::follows(host, &follower, group_of.serial.is_none(), refusals, edit);
                let most = |(site, _): &(usize, Split<'_>)| launches_of_a_thread(self.cluster, *site);
                let texts = group_of.uniform.get(&index).map_or(&[][..], Vec::as_slice);
                let uniform = group_of.split().into_iter().flat_map(Split::uniform);
                let values: Vec<String> = uniform
                    .zip(texts)
                    .filter_map(|(part, text)| stream::at_host(function, host, part.param, text))
                    .collect();
                let launches = group_of.launches.iter().map(most).sum();
                arguments.push(stream::followed_by(host, &follower, launches, &values));
            }
            target::append_items(edit, host.file, host.launch.args_span.shift(host.start), &arguments);
        }
        let declarations = self.declarations(index, &self.arena, function, edit);
        declare(function, &declarations, edit);
    }

    /// What a launch does that finds no room: a function of the grid, the block and the arguments that were to be written down.
    fn without_room(&self, group: usize, site: &Site<'_>, split: &Split<'_>, style: &Style) -> Option<String> {
        let group = &self.groups[group];
        let child = &self.children[group.child];
        let serial = target::qualified(site, child, group.serial.as_ref()?);
        // The arguments that all launches share are named in the function.
        let shared: Vec<String> = split
            .uniform()
            .filter_map(|p| Some(target::flat(site.expr_source(p.arg?))))
            .collect();
        let template_args = site.launch.template_args.map_or("", |t| site.source(t));
        let unused = |wanted: &str| {
            let mut name = wanted.to_owned();
            let texts = || shared.iter().map(String::as_str).chain([template_args]);
            while texts().any(|text| lex::identifiers(text).any(|word| word == name)) {
                name.insert_str(0, "launch_");
            }
            name
        };
        let [grid, block, args] = ["grid", "block", "args"].map(unused);
        let record = target::qualified(site, child, &group.record);
        let of_record = if depends_on_template(child, split) {
            template_args
        } else {
            ""
        };
        let mut shared = shared.into_iter();
        let values = split.parts.iter().map(|part| match part.uniform {
            true => shared.next().unwrap_or_default(),
            false => format!("{args}.{}", part.param.name),
        });
        let items: Vec<String> = [grid.clone(), block.clone()].into_iter().chain(values).collect();
        let indent = style::indent_at(&site.text, site.place(site.facts.span).range.start as usize);
        let column = style::columns(indent) + 2 * style::columns(&style.unit);
        let call = style.list(column, &format!("{serial}{template_args}("), &items, ");");
        Some(format!(
            "\n\t[&](dim3 {grid}, dim3 {block}, const {record}{of_record}& {args}) {{\n\t\t{}\n\t}}",
            call.replace('\n', "\n\t\t")
        ))
    }

    /// Whether a kernel is a child whose body moves to another function.
    fn is_outlined_now(&self, function: usize) -> bool {
        let item = self.cluster.functions[function].item;
        self.children.iter().any(|c| c.item == item && c.outlined.is_none())
    }

    /// The name of a group's kernel as a function has to write it, with template arguments.
    fn kernel(&self, group: usize) -> String {
        let group = &self.groups[group];
        let child = &self.children[group.child];
        let Some(site) = group.launches.first().map(|(site, _)| &self.cluster.sites[*site]) else {
            return group.kernel.clone();
        };
        let template_args = site.launch.template_args.map_or("", |t| site.source(t));
        let template_args = if child.template.is_some() { template_args } else { "" };
        format!("{}{template_args}", target::qualified(site, child, &group.kernel))
    }

    /// The type of a group's aggregator.
    fn aggregator(&self, group: usize) -> String {
        format!(
            "gridfuse::Aggregator<{}, {}>",
            self.granularity.type_name(),
            self.kernel(group)
        )
    }

    /// The declarations of a kernel's aggregators: of each its line, or lines, without indentation of the first. The uniform
    /// arguments are those of `function`.
    fn declarations(
        &self,
        index: usize,
        arena: &str,
        function: &Function<'_>,
        edit: &mut EditBuilder<'_>,
    ) -> Vec<String> {
        let style = edit.style(function.file);
        let indent = format!(
            "{}{}",
            style::indent_at(&function.text, function.start as usize),
            style.unit
        );
        let declare = |group: usize| {
            let prefix = format!("{} {}(", self.aggregator(group), self.groups[group].aggregator);
            let own = self.groups[group].arena.as_deref();
            let mut items = vec![own.unwrap_or(arena).to_owned()];
            if self.granularity != Granularity::GridInStream {
                items.extend(self.groups[group].uniform.get(&index).into_iter().flatten().cloned());
            }
            style.list(style::columns(&indent), &prefix, &items, ");")
        };
        self.needs(index).into_iter().map(declare).collect()
    }

    /// Parameters for the aggregators that a function needs: template parameters where it is a template, and parameters.
    fn parameters(&self, function: usize, names: &mut Names) -> (Vec<String>, Vec<String>) {
        let item = &self.cluster.functions[function];
        let is_template = item.item.signature(item.db).template_params.is_some();
        let (mut types, mut params) = (Vec::new(), Vec::new());
        for group in self.needs(function) {
            let name = &self.groups[group].aggregator;
            if is_template {
                // A template argument that names a kernel by parameters of another template isn't understood by nvcc.
                let ty = names.fresh(&camel(name));
                params.push(format!("{ty}& {name}"));
                types.push(format!("class {ty}"));
            } else {
                params.push(format!("{}& {name}", self.aggregator(group)));
            }
        }
        (types, params)
    }

    /// Gives a device function its aggregators.
    fn add_parameters(&self, function: usize, names: &mut Names, edit: &mut EditBuilder<'db>) {
        let (types, params) = self.parameters(function, names);
        let function = &self.cluster.functions[function];
        let signature = function.item.signature(function.db);
        if let Some(list) = signature.template_params.filter(|_| !types.is_empty()) {
            let list = list.shift(function.start);
            let empty = list.text(&function.text).trim_matches(['<', '>', ' ']).is_empty();
            let comma = if empty { "" } else { ", " };
            edit.insert(function.file, list.end - 1, format!("{comma}{}", types.join(", ")));
        }
        let list = signature.params_span.shift(function.start);
        target::prepend_items(edit, function.file, list, &params);
    }

    /// The function in front of which a group's kernel has to be declared, where it is defined further down.
    fn needed_early(&self, group: usize) -> Option<usize> {
        let child = &self.children[self.groups[group].child];
        let users =
            self.cluster.functions.iter().enumerate().filter(|(index, f)| {
                f.file == child.file && f.start < child.end() && self.needs(*index).contains(&group)
            });
        users.min_by_key(|(_, f)| f.start).map(|(index, _)| index)
    }

    /// Declares the kernels, with their arguments' structs, that are needed further up than they are defined.
    fn forward(&self, refusals: &mut Refusals, edit: &mut EditBuilder<'db>) {
        for (index, group) in self.groups.iter().enumerate() {
            let Some(first) = self.needed_early(index) else {
                continue;
            };
            let child = &self.children[group.child];
            let function = &self.cluster.functions[first];
            let scope = |name: &str| name.rsplit_once("::").map_or(String::new(), |(s, _)| s.to_owned());
            let defaults = child.template.as_ref().is_some_and(|t| t.contains('='));
            let same_scope = scope(function.item.name(function.db)) == scope(child.item.name(child.db));
            if !same_scope || defaults || function.item.signature(function.db).extern_c {
                refusals.add(
                    format!("`{}` is defined behind `{}`", child.name, function.name()),
                    Some(child.place()),
                );
                continue;
            }
            let behind = outline::behind(edit, child);
            let (structure, head, params) = self.kernel_head(group, child, &behind);
            let list = behind.style().list(
                behind.column(),
                head.rsplit('\n').next().unwrap_or(&head),
                &params,
                ");",
            );
            let before = head.rsplit_once('\n').map_or(String::new(), |(b, _)| format!("{b}\n"));
            let start = (function.start as usize).min(child_front(child, function));
            let at = target::above_comment(function.db, function.file, start);
            let indent = style::indent_at(&function.text, at).to_owned();
            let code = format!("{structure}\n{before}{list}\n\n");
            let text = format!("{}{indent}", edit.style(function.file).fit(&code, &indent));
            edit.insert(function.file, at as u32, text);
        }
    }

    /// The struct of a group's arguments that differ, and the kernel's head and parameters.
    fn kernel_head(&self, group: &Group<'_>, child: &Child<'db>, behind: &Behind) -> (String, String, Vec<String>) {
        let Some((split, site)) = group.split().zip(group.launches.first()) else {
            return Default::default();
        };
        let at = self.cluster.site_of[site.0];
        let kernels = self.cluster.functions.iter().enumerate().filter(|(_, f)| f.is_kernel());
        let mut reaching = kernels.filter(|(k, _)| self.cluster.reached_from(*k).contains(&at));
        let parent = reaching.next().map_or("", |(_, f)| f.name());
        let batch = local(child, "batch");
        let (record, noun) = (&group.record, self.granularity.noun());
        let template = template_line(child);
        let depends = depends_on_template(child, split);
        let mut fields: Vec<String> = split
            .varying()
            .map(|p| format!("{};", outline::one_line(&p.param.field)))
            .collect();
        let mut comment = format!(
            "// The arguments of {} that differ within a {noun} of {parent}.",
            child.name
        );
        if let Some(count) = group.threads.and_then(|index| child.params.get(index)) {
            fields.push(stream::threads(count));
            comment.push_str("\n// Of the child's threads only the first threads() do anything.");
        }
        let header = if depends { template.as_str() } else { "" };
        let line = format!("struct {record} {{ {} }};", fields.join(" "));
        let structure = if fields.is_empty() {
            format!(
                "// No argument of {} differs within a {noun} of {parent}.\nstruct {record} {{}};",
                child.name
            )
        } else if behind.column() + line.chars().count() <= behind.style().width && !behind.style().brace_on_own_line {
            format!("{comment}\n{header}{line}")
        } else {
            let open = behind.style().open_brace();
            format!(
                "{comment}\n{header}struct {record}{open}\n\t{}\n}};",
                fields.join("\n\t")
            )
        };
        let record_type = if depends {
            format!("{record}{}", child.template_args)
        } else {
            record.clone()
        };
        let block = self.cluster.sites[site.0].facts.block.constant;
        let batch_type = match block.filter(|_| self.granularity == Granularity::GridInStream) {
            Some(block) => stream::batch(&record_type, block),
            None if self.is_nested() => format!("{}<{record_type}>", cluster::NESTED_BATCH),
            None => format!("{}<{record_type}>", cluster::BATCH),
        };
        let mut params = vec![format!("{batch_type} {batch}")];
        params.extend(split.uniform().map(|p| outline::one_line(&p.param.decl)));
        let is_static = if child.is_static { "static " } else { "" };
        let own = child.launch_bounds.as_ref().map(|b| outline::one_line(b));
        let in_stream = block.filter(|_| self.granularity == Granularity::GridInStream);
        let bounds = own.or_else(|| in_stream.and_then(stream::launch_bounds));
        let bounds = bounds.map_or(String::new(), |b| format!("{b} "));
        let head = format!("{template}{is_static}__global__ void {bounds}{}(", group.kernel);
        (structure, head, params)
    }

    /// Writes everything behind a child: an aggregated kernel for each of its groups.
    fn aggregated_kernels(&self, index: usize, child: &Child<'db>, names: &mut Names, edit: &mut EditBuilder<'db>) {
        let mut behind = outline::behind(edit, child);
        let mut collecting = Collecting::default();
        let member = self.member(child);
        let groups: Vec<usize> = (0..self.groups.len())
            .filter(|g| self.groups[*g].child == index)
            .collect();
        if let Some(member) = member {
            let needs = self.needs(member);
            collecting.args = needs.iter().map(|g| self.groups[*g].aggregator.clone()).collect();
            if child.outlined.is_none() {
                (collecting.template_params, collecting.params) = self.parameters(member, names);
                collecting.arena = Some(format!("{} {}", arena::ARENA, self.arena));
                let function = &self.cluster.functions[member];
                collecting.declarations = self.declarations(member, &self.arena, function, edit);
            }
        }
        let by_warps = groups.iter().any(|number| self.groups[*number].threads.is_some());
        let in_launcher = groups.iter().any(|number| self.groups[*number].serial.is_some());
        let form = if by_warps || in_launcher {
            Form::Thread
        } else {
            Form::Block
        };
        let worker = outline::outline_collecting(edit, &mut behind, child, form, &collecting, names);
        for number in groups {
            let group = &self.groups[number];
            let Some(split) = group.split() else { continue };
            if let Some(serial) = &group.serial {
                behind.add(in_launcher::serial_of(&behind, child, &worker, serial));
            }
            let (structure, head, params) = self.kernel_head(group, child, &behind);
            if self.needed_early(number).is_none() {
                behind.add(structure);
            }
            let (batch, args) = (local(child, "batch"), local(child, "args"));
            let record_type = if depends_on_template(child, split) {
                format!("{}{}", group.record, child.template_args)
            } else {
                group.record.clone()
            };
            let values = split.parts.iter().map(|p| {
                if p.uniform {
                    p.param.name.clone()
                } else {
                    format!("{args}.{}", p.param.name)
                }
            });
            let (prefix, items) = worker.call(child, values);
            let mut call = behind.call(2, &prefix, &items, ");");
            if self.granularity == Granularity::GridInStream && stream::ends_with_barrier(child) {
                call.push_str("\n\t\t__syncthreads();   // the next one uses the shared memory again");
            }
            let mut body = String::new();
            if let Some(member) = member {
                let arena = format!("{batch}.arena()");
                for line in self.declarations(member, &arena, &self.cluster.functions[member], edit) {
                    body.push_str(&format!("\t{}\n", line.replace('\n', "\n\t")));
                }
            }
            let (each, thread) = match group.threads {
                Some(_) => ("for_each_warp", "uint3 threadIdx, "),
                None => ("for_each_block", ""),
            };
            body.push_str(&format!(
                "\t{batch}.{each}([&]({thread}uint3 blockIdx, dim3 gridDim, dim3 blockDim, const {record_type}& {args}) {{\n{call}\n\t}});"
            ));
            let code = behind.function(&head, &params, &body);
            behind.add(code);
        }
        behind.finish(edit, child);
    }
}

/// A name that is none of the child's parameters.
pub(crate) fn local(child: &Child<'_>, wanted: &str) -> String {
    let mut name = wanted.to_owned();
    while child.params.iter().any(|p| p.name == name) {
        name.insert_str(0, "launch_");
    }
    name
}

/// The template header of what is generated from a child, with its newline, or nothing.
pub(crate) fn template_line(child: &Child<'_>) -> String {
    let template = child.template.as_ref();
    template.map_or(String::new(), |t| format!("{}\n", outline::one_line(t)))
}

/// The type of an argument that differs depends on a template parameter of the child.
pub(crate) fn depends_on_template(child: &Child<'_>, split: &Split<'_>) -> bool {
    let names = &child.item.signature(child.db).template_names;
    split
        .varying()
        .any(|p| lex::identifiers(&p.param.field).any(|w| names.iter().any(|n| n == w)))
}

/// Where a function begins, which may be the child itself.
fn child_front(child: &Child<'_>, function: &Function<'_>) -> usize {
    if child.item == function.item {
        child.front() as usize
    } else {
        function.start as usize
    }
}

/// Puts the declarations in front of a kernel's first statement.
fn declare(function: &Function<'_>, declarations: &[String], edit: &mut EditBuilder<'_>) {
    if declarations.is_empty() {
        return;
    }
    let style = edit.style(function.file);
    let body = function.item.body_span(function.db).shift(function.start);
    let open = body.start as usize + 1;
    let own = style::indent_at(&function.text, function.start as usize).to_owned();
    let indent = format!("{own}{}", style.unit);
    let code: String = declarations
        .iter()
        .map(|d| format!("{}{indent}{}", style.newline, style.fit(d, &indent)))
        .collect();
    // Behind a comment in the line of the brace; what else stands in that line goes to the next one.
    let line_end = style::line_end(&function.text, open);
    let rest = function.text.get(open..line_end).unwrap_or("");
    if lex::is_blank(rest) && lex::comments(rest).iter().all(|c| open + c.end <= line_end) {
        edit.insert(function.file, line_end as u32, code);
    } else {
        let blank = rest.len() - rest.trim_start().len();
        let range = TextRange::new(open as u32, (open + blank) as u32);
        let file = function.file;
        let text = format!("{code}{}{indent}", style.newline);
        edit.replace(FileRange { file, range }, text);
    }
}

/// Replaces the launch expression by a call of the aggregator.
/// `otherwise`: what is done with a launch that finds no room.
pub(crate) fn replace_launch(
    site: &Site<'_>,
    split: &Split<'_>,
    aggregator: &str,
    otherwise: Option<String>,
    edit: &mut EditBuilder<'_>,
) {
    let mut kept = vec![site.facts.grid.operand.span, site.facts.block.operand.span];
    let mut items: Vec<String> = kept.iter().map(|s| target::flat(site.source(*s))).collect();
    if let Some(shared) = &site.facts.shared {
        let zero = matches!(
            site.body.expr(site.body.strip_parens(shared.expr)).kind,
            ExprKind::Literal(Literal::Int(0))
        );
        if !zero {
            kept.push(shared.span);
            items.push(target::flat(site.source(shared.span)));
        }
    }
    let fields: Vec<String> = split.varying().map(|p| p.initialiser.clone()).collect();
    kept.extend(split.varying().filter_map(|p| Some(site.body.expr(p.arg?).span)));
    items.push(format!("{{{}}}", fields.join(", ")));
    replace_by_call_and(
        site,
        &format!("{aggregator}.launch("),
        &items,
        otherwise.as_deref(),
        &kept,
        edit,
    );
}

/// Replaces a launch expression by a call. Comments between operands that aren't `kept` stay behind the statement.
pub(crate) fn replace_by_call(
    site: &Site<'_>,
    prefix: &str,
    items: &[String],
    kept: &[Span],
    edit: &mut EditBuilder<'_>,
) {
    replace_by_call_and(site, prefix, items, None, kept, edit);
}

/// The same with a last argument that takes lines of its own; tabs stand for the indentation that it has beyond the statement's.
fn replace_by_call_and(
    site: &Site<'_>,
    prefix: &str,
    items: &[String],
    last: Option<&str>,
    kept: &[Span],
    edit: &mut EditBuilder<'_>,
) {
    let style = edit.style(site.file);
    let span = site.facts.span;
    let place = site.place(span);
    let start = place.range.start as usize;
    let line = style::line_start(&site.text, start);
    let before = site.text.get(line..start).unwrap_or("");
    let indent = style::indent_at(&site.text, start);
    let column = style::columns(indent) + before.chars().count() - indent.chars().count();
    let code = style.list(column, prefix, items, if last.is_some() { "," } else { ")" });
    // Aligned below the first item, wherever the statement begins in its line.
    let align = " ".repeat(before.chars().count() - indent.chars().count());
    let mut code = code.replace('\n', &format!("{}{indent}{align}", style.newline));
    if let Some(last) = last {
        let lines = last
            .replace('\t', &style.unit)
            .replace('\n', &format!("{}{indent}", style.newline));
        code.push_str(&format!("{lines})"));
    }
    edit.replace(place, code);

    let source = site.source(span).to_owned();
    let lost: Vec<String> = lex::comments(&source)
        .iter()
        .filter(|c| {
            let at = span.start + c.start as u32;
            !kept.iter().any(|k| k.start <= at && at < k.end)
        })
        .map(|c| {
            c.text(&source)
                .trim_start_matches("//")
                .trim_start_matches("/*")
                .trim_end_matches("*/")
        })
        .map(outline::one_line)
        .filter(|c| !c.is_empty())
        .collect();
    if let Some(statement) = site.facts.statement.filter(|_| !lost.is_empty()) {
        let end = site.body.stmt(statement).span.shift(site.start).end;
        let rest = site
            .text
            .get(end as usize..style::line_end(&site.text, end as usize))
            .unwrap_or("");
        let text = lost.join("; ");
        let comment = if rest.trim().is_empty() {
            format!("   // {text}")
        } else {
            format!(" /* {text} */")
        };
        edit.insert(site.file, end, comment);
    }
}
