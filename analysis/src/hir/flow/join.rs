//! Where the threads that a branch separates meet again.

use std::collections::{BTreeSet, HashMap};

use super::{BlockId, Dominators, Flow, Loops, Terminator};

/// The blocks at which two disjoint paths from the branch at the end of `branch` meet: a variable with different
/// definitions on the two is as divergent there as the branch is ("sync dependence": Karrenberg and Hack 2012; Rosemann,
/// Moll, Hack: "An abstract interpretation for SPMD divergence on reducible control flow graphs", POPL 2021).
///
/// Each edge of the branch sends a label along all paths; a block that two different labels reach is a join, and sends its
/// own. The immediate post-dominator ends the search: all labels meet there, if they do in the same iteration of loops. The result may be
/// too large, never too small.
pub fn divergent_joins(flow: &Flow, post: &Dominators, loops: &Loops, branch: BlockId) -> Vec<BlockId> {
    let targets = flow.block(branch).targets();
    if targets.len() < 2 {
        return Vec::new();
    }
    // A target that only leaves the function meets the others nowhere else.
    let leaves = |b: &&BlockId| {
        let only = flow.preds[b.index()].len() == 1 && flow.block(**b).end == Terminator::Goto(Flow::EXIT);
        **b == Flow::EXIT || only
    };
    if targets.iter().filter(leaves).count() + 1 >= targets.len() {
        return vec![Flow::EXIT];
    }
    let together = post
        .parent(branch)
        .filter(|to| loops.meets_in_another_iteration(flow, branch, *to).is_none());
    let mut search = Search {
        flow,
        ends: [together, Some(branch), Some(Flow::EXIT)],
        labels: HashMap::new(),
        joins: BTreeSet::new(),
        pending: BTreeSet::new(),
    };
    for (i, target) in targets.iter().enumerate() {
        search.offer(*target, (flow.blocks.len() + i) as u32);
    }
    while let Some((_, block)) = search.pending.pop_first() {
        if let Some(label) = search.labels.get(&block).copied() {
            for to in flow.block(block).targets() {
                search.offer(*to, label);
            }
        }
    }
    search.joins.into_iter().collect()
}

struct Search<'a> {
    flow: &'a Flow,
    /// Labels go no further than these.
    ends: [Option<BlockId>; 3],
    /// What reached each block: an edge of the branch (numbered behind the blocks), or a join.
    labels: HashMap<BlockId, u32>,
    joins: BTreeSet<BlockId>,
    pending: BTreeSet<(u32, BlockId)>,
}

impl Search<'_> {
    fn offer(&mut self, to: BlockId, label: u32) {
        let new = match self.labels.get(&to) {
            None => label,
            Some(old) if *old == label => return,
            Some(_) if !self.joins.insert(to) => return,
            Some(_) => to.0,
        };
        self.labels.insert(to, new);
        if !self.ends.contains(&Some(to)) {
            self.pending.insert((self.flow.position[to.index()], to));
        }
    }
}
