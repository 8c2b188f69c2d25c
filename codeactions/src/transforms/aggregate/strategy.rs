//! How collected launches come to run: what differs between a launch by the device, one by the host, and a grid that stands ready in the
//! stream.

use std::collections::BTreeMap;

use gridfuse_analysis::hir::items::FunctionItem;

use super::collect::Collection;
use super::eligibility::children_with_kept_blocks;
use super::emit::Plan;
use super::granularity::Granularity;
use super::group::Group;
use super::shared_block::SharedBlock;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::edit::include::Header;
use crate::edit::names::Names;
use crate::emit::arena::Parent;
use crate::facts::child::Child;
use crate::facts::cluster::{ARENA, BATCH, Cluster, NESTED_BATCH};
use crate::facts::site::Site;

/// A way in which collected launches run.
pub trait Strategy {
    /// Whose launches become one.
    fn granularity(&self) -> Granularity;

    /// The children of which each launch has just the blocks that it would have by itself.
    fn kept_blocks<'db>(&self, cluster: &Cluster<'db>) -> Vec<FunctionItem<'db>> {
        children_with_kept_blocks(cluster)
    }

    /// Refuses a launch that can't run in this way.
    fn refuse_launch(&self, _site: &Site<'_>, _refusals: &mut Refusals) {}

    /// Refuses children that can't run in this way; what that takes for granted goes into the edit.
    fn refuse_children(&self, _collection: &Collection<'_>, _refusals: &mut Refusals, _edit: &mut EditBuilder<'_>) {}

    /// Two launches of the same child can be collected by one aggregator, as far as this goes.
    fn fit_together(&self, _first: &Site<'_>, _other: &Site<'_>) -> bool {
        true
    }

    /// Of the arguments that are the same for all launches, leaves out those that aren't known where they are passed.
    fn leave_out_unknown(
        &self,
        _collection: &Collection<'_>,
        _parents: &[(usize, Parent<'_>)],
        _child: &Child<'_>,
        _flags: &mut [bool],
        _texts: &mut BTreeMap<usize, Vec<String>>,
    ) {
    }

    /// Says of a group what only this way of running asks of it. `several`: there are others.
    fn complete(&self, _group: &mut Group<'_>, _collection: &Collection<'_>, _several: bool, _names: &mut Names) {}

    /// The type of what collects a group's launches; `kernel` and `record` are the names of what it runs and of the arguments that differ, as
    /// the parents have to write them.
    fn collector(&self, kernel: &str, _record: &str, _block: Option<[u64; 3]>, _shared: Option<&str>) -> String {
        format!("gridfuse::Aggregator<{}, {kernel}>", self.granularity().type_name())
    }

    /// What is collected runs in a kernel of its own.
    fn has_kernel(&self) -> bool {
        true
    }

    /// What is collected runs in the parents themselves, whose bodies move to functions: behind the calls of these, all threads are there.
    fn runs_in_parent(&self) -> bool {
        false
    }

    /// The host's launches of a parent change.
    fn changes_launches(&self) -> bool {
        true
    }

    /// Blocks of several dimensions and different shapes run in blocks of one dimension.
    fn runs_shapes(&self) -> bool {
        false
    }

    /// A kernel can have collectors of several instances of one kernel template, whose template arguments only it knows.
    fn has_instances(&self) -> bool {
        false
    }

    /// Two aggregators can launch in order.
    fn keeps_order(&self) -> bool {
        false
    }

    /// The parameter of a parent with the memory for what is collected.
    fn arena(&self) -> &'static str {
        ARENA
    }

    /// Shared memory that a collector takes, in bytes.
    fn shared_bytes(&self) -> u32 {
        self.granularity().shared_bytes()
    }

    /// The aggregator gets the arguments that are the same for all launches.
    fn passes_shared_arguments(&self) -> bool {
        true
    }

    /// The host launches what is collected, so that its launch of the parent lists the kernels.
    fn lists_kernels(&self) -> bool {
        false
    }

    /// A block of the aggregated kernel that has run one of the child needs a barrier before the next one.
    fn separates_blocks(&self, _child: &Child<'_>) -> bool {
        false
    }

    /// The type of the aggregated kernel's first parameter. `block`: of the launches, where that is constant, and `shared`: the constant for
    /// it; `nested`: some kernel that an aggregator launches has aggregators of its own.
    fn batch_type(
        &self,
        record: &str,
        _block: Option<[u64; 3]>,
        _shared: Option<&SharedBlock>,
        nested: bool,
    ) -> String {
        let batch = if nested { NESTED_BATCH } else { BATCH };
        format!("{batch}<{record}>")
    }

    /// Gives a parent that the host launches what its aggregators need, and the host's launches of it.
    fn equip<'db>(
        &self,
        plan: &Plan<'_, 'db>,
        index: usize,
        parent: &Parent<'db>,
        header: &Header,
        refusals: &mut Refusals,
        edit: &mut EditBuilder<'db>,
    );
}
