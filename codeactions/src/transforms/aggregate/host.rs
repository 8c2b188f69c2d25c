//! Collected launches of a grid that the host launches, which waits for the parent.

use super::device::give_arena;
use super::emit::Plan;
use super::granularity::Granularity;
use super::strategy::Strategy;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::edit::include::Header;
use crate::emit::arena::Parent;

/// By the host.
pub struct ByHost;

impl Strategy for ByHost {
    fn granularity(&self) -> Granularity {
        Granularity::GridFromHost
    }

    fn lists_kernels(&self) -> bool {
        true
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
        let listed = plan.listed(&[index]);
        if !listed.is_empty() {
            parent.host_waits(&listed, refusals, edit);
        }
        give_arena(plan, index, parent, &listed, header, refusals, edit);
    }
}
