//! Collected launches that the device launches: its last thread of a warp, a block, some blocks or the grid.

use super::emit::{Plan, declare};
use super::granularity::Granularity;
use super::strategy::Strategy;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::edit::include::Header;
use crate::emit::arena::{Parent, Room};
use crate::emit::launch_bounds::{self, Needed};
use crate::emit::launchpad::Listed;
use crate::facts::room::Collected;

/// By the device, at a granularity.
pub struct ByDevice(pub Granularity);

impl Strategy for ByDevice {
    fn granularity(&self) -> Granularity {
        self.0
    }

    fn runs_shapes(&self) -> bool {
        true
    }

    fn has_instances(&self) -> bool {
        true
    }

    fn keeps_order(&self) -> bool {
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
        give_arena(plan, index, parent, &[], header, refusals, edit);
    }
}

/// Gives a parent an arena, and its aggregators. `listed`: what the host launches.
pub fn give_arena<'db>(
    plan: &Plan<'_, 'db>,
    index: usize,
    parent: &Parent<'db>,
    listed: &[Listed<'_, 'db>],
    header: &Header,
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) {
    let function = &plan.collection.cluster.functions[index];
    let needs: Vec<usize> = plan.collectors(index).iter().map(|own| own.group).collect();
    let collected: Vec<Collected<'_, 'db>> = needs.iter().map(|g| plan.collected(index, *g)).collect();
    let room = Room {
        collected: &collected,
        nested: needs.iter().any(|g| plan.launches_in_turn(*g)),
        listed,
    };
    let nested = plan.is_nested();
    let outlined = plan.is_outlined_now(index);
    let needed = needs.iter().map(|g| plan.registers(*g, nested)).reduce(Needed::and);
    let launches = parent.all_launches(function).filter(|_| !outlined);
    if let Some(needed) = needed {
        launch_bounds::keep(function, launches, needed, refusals, edit);
        launch_bounds::assume_enough(function, parent.launches(), &[], edit);
    }
    let arena = parent.existing().unwrap_or(&plan.arena);
    parent.add_arena(function, header, &room, &plan.arena, outlined, edit);
    if !outlined {
        let declarations = plan.declarations(index, arena, function, edit);
        declare(function, &declarations, edit);
    }
}
