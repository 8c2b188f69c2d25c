//! Aggregation of launches (El Hajj 2018, §3.1): what the rewrites `aggregate-warp`, `aggregate-block`, `aggregate-multiblock`,
//! `aggregate-grid`, `aggregate-grid-host` and `aggregate-grid-stream` have in common.

mod eligibility;
mod emit;

use std::collections::BTreeMap;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::{LaunchId, Launchers};
use gridfuse_analysis::facts::uniformity::Level;

pub use self::eligibility::{refuse_child, refuse_waits, shared_memory, understand_stream};

use self::eligibility::{
    children_with_kept_blocks, is_linear_block, refuse_blocks, refuse_other_scopes, refuse_what_needs_its_children,
};
use self::emit::{Plan, declare};
use crate::api::refusal::Ineligible;
use crate::api::refusal::Refusals;
use crate::api::refusal::refuse;
use crate::api::source_edit::SourceEdit;
use crate::edit::builder::EditBuilder;
use crate::edit::builder::finish;
use crate::edit::include::Header;
use crate::edit::lex;
use crate::edit::names::{Names, plural};
use crate::emit::arena::{self, Parent, Room, refuse_to_leave_unseen};
use crate::emit::launch_bounds::{self, Needed};
use crate::emit::replaced_launch::replace_launch;
use crate::emit::split::Split;
use crate::emit::target;
use crate::emit::uniform::Uniform;
use crate::facts::child::Child;
use crate::facts::cluster::{self, Cluster};
use crate::facts::configured::refuse_configured;
use crate::facts::effects::effects;
use crate::facts::launch_errors;
use crate::facts::movable::KEPT_BLOCK;
use crate::facts::movable::KEPT_THREADS;
use crate::facts::room::Collected;
use crate::facts::site::Site;
use crate::transforms::stream;

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
/// kernel either collects all its launches or none. See [`crate::facts::cluster`].
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
    let with_kept_blocks = match granularity {
        // The host chooses the blocks of what follows.
        Granularity::GridInStream => Vec::new(),
        _ => children_with_kept_blocks(&cluster),
    };
    let mut streams = Vec::new();
    let mut children: Vec<Child<'db>> = Vec::new();
    let mut child_of = Vec::new();
    for site in sites {
        site.refuse_common(&mut refusals);
        target::refuse_place(site, &mut refusals);
        target::refuse_operands_but_defaults(site, true, &mut refusals);
        streams.push(understand_stream(site, &mut refusals, &mut edit));
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
            children.push(Child::read(db, item, &mut names, &mut refusals));
            Some(children.len() - 1)
        });
        if let Some(index) = child {
            let collected = cluster.index(item).is_some();
            let kept = match with_kept_blocks.contains(&item) {
                true => KEPT_BLOCK,
                false => KEPT_THREADS,
            };
            refuse_child(site, &children[index], collected, kept, &mut refusals);
            child_of.push(index);
        }
    }
    for child in &children {
        refuse_configured(child, &mut refusals);
        launch_errors::assume_none(&child.name, &effects(db, child.worker()), &mut edit);
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
        launch_errors::assume_none(function.name(), &effects, &mut edit);
        if function.batch().is_some() {
            refuse_to_leave_unseen(function.name(), &effects, &mut refusals);
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
    plan.refuse_other_meanings(&mut refusals);
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
