//! The launches that are collected together, the kernels that are launched, and those that launch.

use gridfuse_analysis::facts::effects::{Found, effects};
use gridfuse_analysis::facts::launch::launches;
use gridfuse_analysis::hir::items::FunctionItem;

use super::eligibility::{
    differs_in_shape, refuse_child, refuse_shapes, refuse_to_move, refuse_to_run_in_a_row,
    refuse_what_needs_its_children, understand_stream,
};
use super::in_order::InOrder;
use super::strategy::Strategy;
use crate::api::assumption;
use crate::api::refusal::Reason;
use crate::draft::Draft;
use crate::emit::arena::{Parent, refuse_to_leave_unseen};
use crate::emit::target;
use crate::facts::child::Child;
use crate::facts::cluster::Cluster;
use crate::facts::configured::refuse_configured;
use crate::facts::graphs;
use crate::facts::launch_errors;
use crate::facts::movable::{KEPT_BLOCK, KEPT_THREADS};
use crate::facts::order::CreatedStream;
use crate::facts::pending;
use crate::facts::surroundings::{self, Errors};
use crate::transforms::stream;

/// What is collected.
pub struct Collection<'db> {
    /// The functions that take part, and their launches.
    pub cluster: Cluster<'db>,
    /// What is launched.
    pub children: Vec<Child<'db>>,
    /// Of each child, the built-in variables that functions which it calls may read themselves.
    pub kept: Vec<&'static [&'static str]>,
    /// Of each launch, the index of its child. Where a child isn't known, there are fewer.
    pub child_of: Vec<usize>,
    /// Of each launch, the stream that was created for it alone, or for those that keep their order with it.
    pub streams: Vec<Option<CreatedStream>>,
    /// The launches of which each thread's are launched in order.
    pub in_order: Option<InOrder>,
}

impl<'db> Collection<'db> {
    /// Finds everything that has to collect its launches along with the draft's. Launches that can't be are refused.
    pub fn of(draft: &mut Draft<'db>, strategy: &dyn Strategy) -> Collection<'db> {
        let db = draft.site.db;
        let mut collection = Collection {
            cluster: Cluster::find(db, draft.site.parent, &mut draft.refusals),
            children: Vec::new(),
            kept: Vec::new(),
            child_of: Vec::new(),
            streams: Vec::new(),
            in_order: None,
        };
        collection.in_order = InOrder::find(&collection.cluster, strategy);
        for function in &collection.cluster.functions {
            draft.names.add_file(db, function.file);
        }
        let with_kept_blocks = strategy.kept_blocks(&collection.cluster);
        for (index, site) in collection.cluster.sites.iter().enumerate() {
            let in_turn = collection
                .in_order
                .as_ref()
                .map(|pair| pair.beside(&collection.cluster, index));
            let Draft { edit, refusals, .. } = draft;
            site.refuse_common(refusals);
            surroundings::assume_nothing_else(site, Errors::Vanish, edit);
            target::refuse_place(site, refusals);
            target::refuse_operands_but_defaults(site, true, refusals);
            let in_turn = in_turn.unwrap_or_default();
            collection
                .streams
                .push(understand_stream(site, &in_turn, refusals, edit));
            let differs = differs_in_shape(site, strategy.granularity());
            if differs && !strategy.runs_shapes() {
                refuse_shapes(site, refusals);
            }
            strategy.refuse_launch(site, refusals);
            let Some(item) = site.child(refusals) else {
                continue;
            };
            let known = collection.children.iter().position(|c| c.item == item);
            let index = known.unwrap_or_else(|| {
                collection.children.push(draft.read(item));
                collection.kept.push(match with_kept_blocks.contains(&item) {
                    true => KEPT_BLOCK,
                    false => KEPT_THREADS,
                });
                collection.children.len() - 1
            });
            let collected = collection.cluster.index(item).is_some();
            let kept = collection.kept[index];
            refuse_child(site, &collection.children[index], collected, kept, &mut draft.refusals);
            // Kernels that nest have batches of one kind.
            if differs && collected {
                refuse_shapes(site, &mut draft.refusals);
            } else if differs {
                refuse_to_run_in_a_row(&collection.children[index], &mut draft.refusals);
            }
            if !collected && known.is_none() {
                let child = &collection.children[index];
                let names = launches(child.db, child.worker())
                    .iter()
                    .filter_map(|facts| facts.kernel_name.clone());
                let names: Vec<String> = names.collect();
                let kept = pending::kept_by_one_grid(child.db, child.file, &child.name, &names);
                if let Some(text) = kept {
                    let place = Some(child.place());
                    draft
                        .edit
                        .assume(assumption::PENDING_LAUNCHES.of(Reason { text, place }));
                }
            }
            collection.child_of.push(index);
        }
        collection
    }

    /// Each launch is one of a known child.
    pub fn is_complete(&self) -> bool {
        self.child_of.len() == self.cluster.sites.len()
    }

    /// The most launches of a site that a thread of a parent has, if that is known.
    pub fn launches_of_a_thread(&self, site: usize) -> Option<u64> {
        let cluster = &self.cluster;
        stream::launches_of_a_thread(&cluster.sites[site], cluster.is_repeated(cluster.site_of[site]))
    }

    /// Refuses children that can't be collected, whatever launches them.
    pub fn refuse_children(&self, draft: &mut Draft<'db>, strategy: &dyn Strategy) {
        let Draft { edit, refusals, .. } = draft;
        for child in &self.children {
            refuse_configured(child, refusals);
            // What collects for it names it outside of the launch's branch.
            let optional = |item: FunctionItem<'db>| item.signature(child.db).optional;
            let missed = self.cluster.functions.iter().find(|function| !optional(function.item));
            if let Some(function) = missed.filter(|_| optional(child.item)) {
                refusals.add(
                    format!(
                        "`{}` is defined under an #if, and `{}` is compiled without it, too",
                        child.name,
                        function.name()
                    ),
                    Some(child.place()),
                );
            }
            launch_errors::assume_none(&child.name, &effects(child.db, child.worker()), edit);
        }
        strategy.refuse_children(self, refusals, edit);
    }

    /// The kernels that launch; what can't do so through an aggregator is refused.
    pub fn kernels(&self, draft: &mut Draft<'db>, strategy: &dyn Strategy) -> Kernels<'db> {
        let mut kernels = Kernels {
            parents: Vec::new(),
            moved: Vec::new(),
            shared: Vec::new(),
        };
        for (index, function) in self.cluster.functions.iter().enumerate() {
            if !function.is_kernel() {
                continue;
            }
            let (db, refusals) = (function.db, &mut draft.refusals);
            let effects = effects(db, function.item);
            refuse_what_needs_its_children(&self.cluster, function, &effects, refusals);
            launch_errors::assume_none(function.name(), &effects, &mut draft.edit);
            if function.batch().is_some() {
                refuse_to_leave_unseen(function.name(), &effects, refusals);
            } else if !strategy.changes_launches() {
                Parent::refuse_definition(function, &effects, refusals);
                let parent = Parent::launched_as_it_is(&self.cluster, function);
                draft.names.add_file(db, function.file);
                kernels.parents.push((index, parent));
            } else {
                let parent = Parent::find(&self.cluster, function, &effects, refusals);
                for host in parent.launches() {
                    graphs::keep(host, refusals, &mut draft.edit);
                }
                for file in parent.files(function) {
                    draft.names.add_file(db, file);
                }
                kernels.parents.push((index, parent));
            }
            if strategy.runs_in_parent() {
                let parent = draft.read(function.item);
                refuse_to_move(&parent, &effects, &mut draft.refusals);
                kernels.moved.push((index, parent));
            }
            kernels.shared.push((index, effects.shared.clone()));
        }
        kernels
    }
}

/// The kernels that launch, by their index among the functions.
pub struct Kernels<'db> {
    /// Those that the host launches.
    pub parents: Vec<(usize, Parent<'db>)>,
    /// Those whose bodies move.
    pub moved: Vec<(usize, Child<'db>)>,
    /// Where each uses shared memory.
    pub shared: Vec<(usize, Vec<Found>)>,
}
