//! Aggregation of launches (El Hajj 2018, §3.1): what the rewrites `aggregate-warp`, `aggregate-block`, `aggregate-multiblock`,
//! `aggregate-grid`, `aggregate-grid-host` and `aggregate-grid-stream` have in common. [`collect`] finds out what is launched by whom,
//! [`eligibility`] what rules it out, [`group`] what one aggregator collects, and [`emit`] writes it down. What differs with who
//! launches in the end is a [`strategy::Strategy`]: [`device`], [`host`] or [`in_stream`]; or nobody does, and the parent's threads run the
//! child grids: [`reuse`].

mod collect;
mod collected_instances;
mod device;
mod eligibility;
mod emit;
mod granularity;
mod group;
mod host;
mod in_order;
mod in_stream;
mod instances;
mod reuse;
pub mod shared_block;
mod strategy;

use gridfuse_analysis::facts::launch::Launchers;

pub use self::eligibility::{refuse_child, refuse_waits, understand_stream};
pub use self::granularity::Granularity;
pub use self::reuse::Assignment;

use self::collect::{Collection, Kernels};
use self::device::ByDevice;
use self::eligibility::refuse_other_scopes;
use self::emit::{Plan, Turns, declare};
use self::host::ByHost;
use self::in_stream::InStream;
use self::reuse::{Reuse, move_parents};
use self::shared_block::AtLaunch;
use self::strategy::Strategy;
use crate::api::refusal::Ineligible;
use crate::api::source_edit::SourceEdit;
use crate::draft::Draft;
use crate::edit::include::Header;
use crate::emit::arena;
use crate::emit::outline::Worker;
use crate::emit::removed_streams;
use crate::emit::replaced_launch::{note_unless_plain, replace_launch};
use crate::emit::target;
use crate::emit::was;
use crate::facts::cluster;
use crate::facts::shared_room::{self, Needed};

/// The edit that collects the launches of the draft's kernel: all of them, and those of everything that has to do so, too.
/// Threads that write down a launch meet others of their warp again, while the device runtime of CUDA 13.0 may let threads
/// that launch at that time wait for ever (measured: `tests/gpu/runtime_test.cu`, and see `put_aside` in `gridfuse.cuh`); so a
/// kernel either collects all its launches or none. See [`crate::facts::cluster`].
///
/// # Errors
/// The reasons why it can't be done.
pub fn aggregate(draft: Draft<'_>, granularity: Granularity) -> Result<SourceEdit, Ineligible> {
    match granularity {
        Granularity::GridFromHost => aggregate_by(draft, &ByHost),
        Granularity::GridInStream => aggregate_by(draft, &InStream),
        _ => aggregate_by(draft, &ByDevice(granularity)),
    }
}

/// The edit that runs the launches of the draft's kernel in the kernel's own threads (Chen and Shen 2015, thread reuse).
///
/// # Errors
/// The reasons why it can't be done.
pub fn reuse_threads(draft: Draft<'_>, assignment: Assignment) -> Result<SourceEdit, Ineligible> {
    aggregate_by(draft, &Reuse(assignment))
}

fn aggregate_by(mut draft: Draft<'_>, strategy: &dyn Strategy) -> Result<SourceEdit, Ineligible> {
    if draft.site.facts.launchers == Launchers::Host {
        draft.site.refuse_common(&mut draft.refusals);
        draft.refusals.check()?;
    }
    let collection = Collection::of(&mut draft, strategy);
    collection.refuse_children(&mut draft, strategy);
    let kernels = collection.kernels(&mut draft, strategy);
    refuse_other_scopes(&collection.cluster, &mut draft.refusals);
    let header = draft.header();
    let mut groups = group::groups(&collection, &kernels.parents, strategy, &mut draft.refusals);
    let in_order = collection
        .in_order
        .as_ref()
        .and_then(|pair| pair.of_groups(&groups, &collection, &mut draft.refusals));
    let header = draft.settle(header.filter(|_| !groups.is_empty()))?;
    group::name(&mut groups, &collection, strategy, &mut draft.names);
    let Draft { names, refusals, .. } = &mut draft;
    let instances = instances::find(&groups, &collection, strategy, names, refusals);
    let in_order = in_order.map(|(first, second)| Turns {
        name: draft
            .names
            .fresh_in(draft.site.db, &collection.cluster.texts(), "in_order"),
        first,
        second,
    });
    let plan = Plan {
        collection: &collection,
        groups: &groups,
        instances,
        strategy,
        in_order,
        arena: draft
            .names
            .fresh_in(draft.site.db, &collection.cluster.texts(), "arena"),
    };
    plan.refuse_other_meanings(&mut draft.refusals);
    plan.refuse_nested_shapes(&mut draft.refusals);
    assume_shared_memory(&plan, &kernels, &mut draft);
    write(&plan, &kernels, &header, &mut draft);
    draft.finish()
}

/// Aggregators keep their state in shared memory, which a block has to have left.
fn assume_shared_memory(plan: &Plan<'_, '_>, kernels: &Kernels<'_>, draft: &mut Draft<'_>) {
    for (index, used) in &kernels.shared {
        let bytes = plan.strategy.shared_bytes() * plan.collectors(*index).len() as u32;
        if bytes != 0
            && let Some(reason) =
                shared_room::enough(&plan.collection.cluster.functions[*index], Needed::Bytes(bytes), used)
        {
            draft.edit.assume(reason);
        }
    }
}

/// Writes all of it down: what kernels, functions and launches by the host get, what is generated, and the launches.
fn write<'db>(plan: &Plan<'_, 'db>, kernels: &Kernels<'db>, header: &Header, draft: &mut Draft<'db>) {
    let cluster = &plan.collection.cluster;
    let db = draft.site.db;
    let Draft {
        names, edit, refusals, ..
    } = draft;
    for function in &cluster.functions {
        header.include_in(db, edit, function.file);
    }
    for child in &plan.collection.children {
        header.include_in(db, edit, child.file);
    }
    plan.forward(refusals, edit);
    for (index, parent) in &kernels.parents {
        plan.strategy.equip(plan, *index, parent, header, refusals, edit);
    }
    let mut batches = Vec::new();
    for (index, function) in cluster.functions.iter().enumerate() {
        if let Some(batch) = function.batch() {
            let declarations = plan.declarations(index, &format!("{batch}.arena()"), function, edit);
            declare(function, &declarations, edit);
            cluster::make_nested(function, edit);
            batches.push(index);
        } else if !function.is_kernel() {
            plan.add_parameters(index, names, edit);
        }
    }
    let listed = plan.listed(&batches);
    let batches = batches.iter().map(|index| cluster.functions[*index].item).collect();
    arena::nest(db, cluster, batches, &listed, refusals, edit);
    let children = plan.collection.children.iter().enumerate();
    let workers: Vec<Worker> = children
        .map(|(index, child)| plan.aggregated_kernels(index, child, names, edit))
        .collect();
    move_parents(plan, &kernels.moved, &workers, names, edit);
    replace_launches(plan, draft);
}

/// Puts calls of aggregators in the place of launches, and hands them to the functions that need them. Streams that were created for a
/// launch are gone with it.
fn replace_launches<'db>(plan: &Plan<'_, 'db>, draft: &mut Draft<'db>) {
    let (cluster, edit) = (&plan.collection.cluster, &mut draft.edit);
    for (number, call) in cluster.calls.iter().enumerate() {
        let arguments = plan.handed_on(number, call);
        let file = cluster.functions[call.caller].file;
        target::prepend_items(edit, file, call.list, &arguments);
    }
    for (number, group) in plan.groups.iter().enumerate() {
        for (index, split) in &group.launches {
            let site = &cluster.sites[*index];
            let style = edit.style(site.file);
            let otherwise = plan.without_room(number, site, split, &style);
            let child = &plan.collection.children[group.child];
            let shared = group.block.as_ref().map(|block| block.at_launch(site, child));
            let AtLaunch { grid, block } = shared.unwrap_or_default();
            // What takes its place doesn't say by which template parameters it was named.
            if plan.instances.dependent.contains(index) {
                was::note(site, edit);
            } else {
                note_unless_plain(site, edit);
            }
            replace_launch(
                site,
                split,
                [grid, block],
                plan.collector_of(number, *index),
                otherwise,
                edit,
            );
        }
        if let Some(block) = &group.block {
            let child = &plan.collection.children[group.child];
            block.name_in_variables(|index| &cluster.sites[index], child, edit);
        }
    }
    let streams = cluster.sites.iter().zip(&plan.collection.streams);
    removed_streams::remove(
        streams.filter_map(|(site, stream)| Some((site, stream.as_ref()?))),
        edit,
    );
}
