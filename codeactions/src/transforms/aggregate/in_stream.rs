//! Collected launches of a grid that run in a grid which the host has launched after the parent: see [`crate::transforms::stream`].

use std::collections::BTreeMap;

use gridfuse_analysis::hir::items::FunctionItem;

use super::collect::Collection;
use super::emit::{Plan, declare};
use super::granularity::Granularity;
use super::group::Group;
use super::shared_block::SharedBlock;
use super::strategy::Strategy;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::edit::include::Header;
use crate::edit::names::Names;
use crate::emit::arena::Parent;
use crate::emit::launch_bounds;
use crate::emit::split::Split;
use crate::emit::target;
use crate::facts::child::Child;
use crate::facts::cluster::{BATCH, Cluster};
use crate::facts::site::Site;
use crate::transforms::stream;

/// By a grid after the parent.
pub struct InStream;

impl Strategy for InStream {
    fn granularity(&self) -> Granularity {
        Granularity::GridInStream
    }

    /// None: the host chooses the blocks of what follows.
    fn kept_blocks<'db>(&self, _cluster: &Cluster<'db>) -> Vec<FunctionItem<'db>> {
        Vec::new()
    }

    fn refuse_launch(&self, site: &Site<'_>, refusals: &mut Refusals) {
        stream::refuse_launch(site, refusals);
    }

    fn refuse_children(&self, collection: &Collection<'_>, refusals: &mut Refusals, edit: &mut EditBuilder<'_>) {
        let Collection {
            cluster,
            children,
            child_of,
            ..
        } = collection;
        // The children of which a thread may launch more than there is room for.
        for (index, child) in children.iter().enumerate() {
            let own = || (0..child_of.len()).filter(|site| child_of[*site] == index);
            if own().any(|site| collection.launches_of_a_thread(site).is_none()) {
                let needed =
                    own().filter_map(|site| stream::refuse_without_room(&cluster.sites[site], child, refusals));
                for reason in needed.collect::<Vec<_>>() {
                    edit.assume(reason);
                }
            }
        }
        stream::refuse_nesting(cluster, children, refusals);
        for child in children {
            for reason in stream::refuse_child(child, refusals) {
                edit.assume(reason);
            }
        }
    }

    /// What follows has one block size.
    fn fit_together(&self, first: &Site<'_>, other: &Site<'_>) -> bool {
        first.facts.block.constant == other.facts.block.constant
    }

    fn leave_out_unknown(
        &self,
        collection: &Collection<'_>,
        parents: &[(usize, Parent<'_>)],
        child: &Child<'_>,
        flags: &mut [bool],
        texts: &mut BTreeMap<usize, Vec<String>>,
    ) {
        stream::leave_out_unknown(&collection.cluster, parents, child, flags, texts);
    }

    fn complete(&self, group: &mut Group<'_>, collection: &Collection<'_>, several: bool, names: &mut Names) {
        let child = &collection.children[group.child];
        let arena = format!("{}_arena", child.name);
        group.arena = several.then(|| names.fresh_in(child.db, &collection.cluster.texts(), &arena));
        group.threads = group.split().and_then(|split| {
            let launches = group.launches.iter();
            let sites: Vec<&Site<'_>> = launches.map(|(index, _)| &collection.cluster.sites[*index]).collect();
            stream::warps_alone(&sites, child, split)
        });
        let launches = group.launches.iter().map(|(index, _)| *index);
        let sites: Vec<_> = launches
            .map(|index| (index, &collection.cluster.sites[index]))
            .collect();
        // A variable may be that of several kernels, and can begin with the constant of one only.
        let shared = SharedBlock::of(&sites, child, names);
        group.block = shared.filter(|block| !several || !block.has_variables());
        let mut launches = group.launches.iter();
        if launches.any(|(site, _)| collection.launches_of_a_thread(*site).is_none()) {
            group.serial = Some(names.fresh(&format!("{}_serial", child.name)));
        }
    }

    /// The host passes them to the grid that follows.
    fn passes_shared_arguments(&self) -> bool {
        false
    }

    fn separates_blocks(&self, child: &Child<'_>) -> bool {
        stream::ends_with_barrier(child)
    }

    fn batch_type(&self, record: &str, block: Option<[u64; 3]>, shared: Option<&SharedBlock>, _nested: bool) -> String {
        match (shared, block) {
            (Some(shared), _) => format!("{}<{record}, {}>", stream::STREAM_BATCH, shared.sizes()),
            (None, Some(block)) => stream::batch(record, block),
            (None, None) => format!("{BATCH}<{record}>"),
        }
    }

    fn equip<'db>(
        &self,
        plan: &Plan<'_, 'db>,
        index: usize,
        parent: &Parent<'db>,
        header: &Header,
        refusals: &mut Refusals,
        edit: &mut EditBuilder<'db>,
    ) {
        let function = &plan.collection.cluster.functions[index];
        stream::refuse_parent(function, parent.existing(), refusals);
        if plan
            .needs(index)
            .iter()
            .any(|group| plan.groups[*group].serial.is_some())
        {
            launch_bounds::keep_with_more_code(function, parent.all_launches(function), edit);
            let serial = plan
                .needs(index)
                .into_iter()
                .filter(|group| plan.groups[*group].serial.is_some());
            let children: Vec<_> = serial
                .map(|group| plan.collection.children[plan.groups[group].child].worker())
                .collect();
            launch_bounds::assume_enough(function, parent.launches(), &children, edit);
        }
        followers(plan, index, parent, header, stream::FOLLOWED_BY, false, refusals, edit);
        let declarations = plan.declarations(index, &plan.arena, function, edit);
        declare(function, &declarations, edit);
    }
}

/// Gives a parent the arenas of what follows it, and its launches by the host what makes them: `by`. `written`: the parent's definition gets
/// them otherwise.
#[expect(clippy::too_many_arguments, reason = "those of `equip`, and what differs")]
pub fn followers<'db>(
    plan: &Plan<'_, 'db>,
    index: usize,
    parent: &Parent<'db>,
    header: &Header,
    by: &str,
    written: bool,
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) {
    let function = &plan.collection.cluster.functions[index];
    let needs = plan.needs(index);
    let arena = |group: &usize| plan.groups[*group].arena.as_ref().unwrap_or(&plan.arena);
    let parameters = needs.iter().map(|g| format!("{} {}", stream::STREAM_ARENA, arena(g)));
    parent.add_parameters(function, header, &parameters.collect::<Vec<_>>(), written, edit);
    for host in parent.launches() {
        let mut arguments = Vec::new();
        for group in &needs {
            let group_of = &plan.groups[*group];
            let Some(follower) = plan.host_launches(*group) else {
                continue;
            };
            stream::follows(host, &follower, group_of.serial.is_none(), refusals, edit);
            let most = |(site, _): &(usize, Split<'_>)| plan.collection.launches_of_a_thread(*site);
            let texts = group_of.uniform.get(&index).map_or(&[][..], Vec::as_slice);
            let uniform = group_of.split().into_iter().flat_map(Split::uniform);
            let values: Vec<String> = uniform
                .zip(texts)
                .filter_map(|(part, text)| stream::at_host(function, host, part.param, text))
                .collect();
            let launches = group_of.launches.iter().map(most).sum();
            arguments.push(stream::followed_by(by, host, &follower, launches, &values));
        }
        target::append_items(edit, host.file, host.launch.args_span.shift(host.start), &arguments);
    }
}
