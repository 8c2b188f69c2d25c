//! Order, dominators, control dependence and loops.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{BlockId, Flow};

const NONE: u32 = u32::MAX;

/// Reachable blocks in reverse post-order, and each block's position in it.
pub(super) fn reverse_post_order(flow: &Flow) -> (Vec<BlockId>, Vec<u32>) {
    let succs = |b: usize| flow.blocks[b].targets().to_vec();
    let order = post_order(flow.blocks.len(), Flow::ENTRY, succs);
    let order: Vec<BlockId> = order.into_iter().rev().collect();
    let mut position = vec![NONE; flow.blocks.len()];
    for (i, b) in order.iter().enumerate() {
        position[b.index()] = i as u32;
    }
    (order, position)
}

fn post_order(n: usize, start: BlockId, succs: impl Fn(usize) -> Vec<BlockId>) -> Vec<BlockId> {
    let mut seen = vec![false; n];
    let mut order = Vec::new();
    if start.index() >= n {
        return order;
    }
    seen[start.index()] = true;
    let mut stack = vec![(start, succs(start.index()))];
    while let Some((block, rest)) = stack.last_mut() {
        match rest.pop() {
            Some(next) if !seen[next.index()] => {
                seen[next.index()] = true;
                stack.push((next, succs(next.index())));
            }
            Some(_) => {}
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order
}

/// A dominator tree (Cooper, Harvey, Kennedy: "A simple, fast dominance algorithm").
#[derive(Clone, Debug, PartialEq, salsa::SalsaValue)]
pub struct Dominators {
    /// Immediate dominator; a block without one (the root, unreachable blocks) has `u32::MAX`.
    parent: Vec<u32>,
    /// Position of each block in a pre-order and one past the last position of its subtree: an O(1) ancestor test.
    range: Vec<(u32, u32)>,
    /// Children of each block.
    children: Vec<Vec<BlockId>>,
}

impl Dominators {
    /// Dominators, from the entry.
    pub fn of(flow: &Flow) -> Dominators {
        let n = flow.blocks.len();
        tree(n, Flow::ENTRY, &flow.order, |b| flow.preds[b].clone())
    }

    /// Post-dominators, from the exit. A cycle without a way out is taken to leave to the exit from its last block.
    pub fn post(flow: &Flow) -> Dominators {
        let succs = flow.blocks.iter().map(|b| b.targets().to_vec()).collect();
        Dominators::post_of(succs, flow.preds.clone(), Flow::EXIT, &flow.order)
    }

    fn post_of(
        mut succs: Vec<Vec<BlockId>>,
        mut preds: Vec<Vec<BlockId>>,
        exit: BlockId,
        order: &[BlockId],
    ) -> Dominators {
        let n = succs.len();
        let mut seen = vec![false; n];
        let mut stack = vec![exit];
        seen[exit.index()] = true;
        let mut candidates = order.iter().rev();
        loop {
            while let Some(b) = stack.pop() {
                for p in &preds[b.index()] {
                    if !seen[p.index()] {
                        seen[p.index()] = true;
                        stack.push(*p);
                    }
                }
            }
            let Some(b) = candidates.find(|b| !seen[b.index()]) else {
                break;
            };
            succs[b.index()].push(exit);
            preds[exit.index()].push(*b);
            seen[b.index()] = true;
            stack.push(*b);
        }
        let order: Vec<BlockId> = post_order(n, exit, |b| preds[b].clone()).into_iter().rev().collect();
        tree(n, exit, &order, |b| succs[b].clone())
    }

    /// Immediate dominator.
    pub fn parent(&self, block: BlockId) -> Option<BlockId> {
        let p = self.parent[block.index()];
        (p != NONE).then_some(BlockId(p))
    }

    /// Blocks whose immediate dominator this is.
    pub fn children(&self, block: BlockId) -> &[BlockId] {
        &self.children[block.index()]
    }

    /// Whether `a` dominates `b` (every block dominates itself).
    pub fn dominates(&self, a: BlockId, b: BlockId) -> bool {
        let (a, b) = (self.range[a.index()], self.range[b.index()]);
        a.0 != NONE && b.0 != NONE && a.0 <= b.0 && b.0 < a.1
    }

    /// Dominance frontier of every block.
    pub fn frontiers(&self, flow: &Flow) -> Vec<Vec<BlockId>> {
        let mut frontiers: Vec<Vec<BlockId>> = vec![Vec::new(); flow.blocks.len()];
        for block in &flow.order {
            if flow.preds[block.index()].len() < 2 {
                continue;
            }
            let stop = self.parent(*block);
            for pred in &flow.preds[block.index()] {
                let mut at = Some(*pred);
                while at != stop {
                    let Some(b) = at else { break };
                    if frontiers[b.index()].last() != Some(block) {
                        frontiers[b.index()].push(*block);
                    }
                    at = self.parent(b);
                }
            }
        }
        frontiers
    }
}

fn tree(n: usize, root: BlockId, order: &[BlockId], preds: impl Fn(usize) -> Vec<BlockId>) -> Dominators {
    let mut position = vec![NONE; n];
    for (i, b) in order.iter().enumerate() {
        position[b.index()] = i as u32;
    }
    // In terms of positions in `order`.
    let mut idom = vec![NONE; order.len()];
    if !idom.is_empty() {
        idom[0] = 0;
    }
    let mut changed = true;
    while changed {
        changed = false;
        for (i, b) in order.iter().enumerate().skip(1) {
            let mut new = NONE;
            for p in preds(b.index()) {
                let p = position[p.index()];
                if p == NONE || idom[p as usize] == NONE {
                    continue;
                }
                if new == NONE {
                    new = p;
                    continue;
                }
                let (mut x, mut y) = (p, new);
                while x != y {
                    while x > y {
                        x = idom[x as usize];
                    }
                    while y > x {
                        y = idom[y as usize];
                    }
                }
                new = x;
            }
            if idom[i] != new {
                idom[i] = new;
                changed = true;
            }
        }
    }
    let mut parent = vec![NONE; n];
    let mut children: Vec<Vec<BlockId>> = vec![Vec::new(); n];
    for (i, b) in order.iter().enumerate().skip(1) {
        if let Some(p) = order.get(idom[i] as usize) {
            parent[b.index()] = p.0;
            children[p.index()].push(*b);
        }
    }
    let mut range = vec![(NONE, NONE); n];
    let mut next = 0;
    let mut stack = vec![(root, false)];
    while let Some((b, done)) = stack.pop() {
        if b.index() >= n {
            continue;
        }
        if done {
            range[b.index()].1 = next;
            continue;
        }
        range[b.index()].0 = next;
        next += 1;
        stack.push((b, true));
        stack.extend(children[b.index()].iter().map(|c| (*c, false)));
    }
    Dominators {
        parent,
        range,
        children,
    }
}

/// Which branches decide whether a block is reached (Ferrante, Ottenstein, Warren 1987): for each block, the branching
/// blocks that it directly depends on, with the index of the edge that leads to it.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlDependence {
    /// Per block.
    pub of: Vec<Vec<(BlockId, u32)>>,
}

impl ControlDependence {
    /// From the post-dominators, and within each iteration of a loop from what comes before the next one: where only the next iteration
    /// leads to a block (`for (;;) { if (c) continue; b; if (d) break; }`), threads don't get there together.
    pub fn new(flow: &Flow, post: &Dominators, loops: &Loops) -> ControlDependence {
        let mut of: Vec<Vec<(BlockId, u32)>> = vec![Vec::new(); flow.blocks.len()];
        let mut apart: BTreeMap<LoopId, Vec<BlockId>> = BTreeMap::new();
        for x in &flow.order {
            let targets = flow.block(*x).targets();
            if targets.len() < 2 {
                continue;
            }
            let stop = post.parent(*x);
            for (edge, target) in targets.iter().enumerate() {
                let mut at = Some(*target);
                while at != stop {
                    let Some(b) = at else { break };
                    let list = &mut of[b.index()];
                    if list.last().is_none_or(|(y, e)| *y != *x || *e != edge as u32) {
                        list.push((*x, edge as u32));
                    }
                    at = post.parent(b);
                }
            }
            if let Some(id) = stop.and_then(|stop| loops.meets_in_another_iteration(flow, *x, stop)) {
                apart.entry(id).or_default().push(*x);
            }
        }
        for (id, branches) in apart {
            let iteration = Iteration::of(flow, loops, id);
            for x in branches {
                for (block, edge) in iteration.depending_on(flow, x) {
                    if !of[block.index()].contains(&(x, edge)) {
                        of[block.index()].push((x, edge));
                    }
                }
            }
        }
        ControlDependence { of }
    }
}

/// One iteration of a loop: it ends where the next one begins, or where the loop is left.
struct Iteration {
    /// The loop's blocks; their numbers in `post` begin at 1.
    blocks: Vec<BlockId>,
    number: HashMap<BlockId, u32>,
    post: Dominators,
}

impl Iteration {
    const END: BlockId = BlockId(0);

    fn of(flow: &Flow, loops: &Loops, id: LoopId) -> Iteration {
        let blocks: Vec<BlockId> = flow.order.iter().copied().filter(|b| loops.contains(id, *b)).collect();
        let number: HashMap<BlockId, u32> = (1..).zip(&blocks).map(|(number, block)| (*block, number)).collect();
        let header = loops.get(id).header;
        let inside = |to: &BlockId| {
            number
                .get(to)
                .filter(|_| *to != header)
                .map_or(Iteration::END, |n| BlockId(*n))
        };
        let mut succs = vec![Vec::new()];
        succs.extend(
            blocks
                .iter()
                .map(|b| flow.block(*b).targets().iter().map(inside).collect::<Vec<_>>()),
        );
        let mut preds = vec![Vec::new(); succs.len()];
        for (from, targets) in succs.iter().enumerate() {
            for to in targets {
                preds[to.index()].push(BlockId(from as u32));
            }
        }
        let order: Vec<BlockId> = (1..succs.len() as u32).map(BlockId).collect();
        let post = Dominators::post_of(succs, preds, Iteration::END, &order);
        Iteration { blocks, number, post }
    }

    /// The blocks that a branch decides about in this iteration, and by which edge they are reached.
    fn depending_on(&self, flow: &Flow, branch: BlockId) -> Vec<(BlockId, u32)> {
        let mut found = Vec::new();
        let Some(stop) = self.number.get(&branch).map(|n| self.post.parent(BlockId(*n))) else {
            return found;
        };
        for (edge, target) in flow.block(branch).targets().iter().enumerate() {
            let mut at = self.number.get(target).filter(|n| **n != 1).map(|n| BlockId(*n));
            while at != stop {
                let Some(block) = at.and_then(|b| Some((b, self.blocks.get(b.index().checked_sub(1)?)?))) else {
                    break;
                };
                found.push((*block.1, edge as u32));
                at = self.post.parent(block.0);
            }
        }
        found
    }
}

/// Index of a loop in [`Loops::all`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoopId(pub u32);

/// A cycle of blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// The loop around it.
    pub parent: Option<LoopId>,
    /// Its entry block, the first of several.
    pub header: BlockId,
    /// It can be entered at more than one block (`goto` into it): nothing about iterations can be said.
    pub irreducible: bool,
    /// Edges that leave it: the block inside and the block outside.
    pub exits: Vec<(BlockId, BlockId)>,
    /// Nesting depth; 1 for an outermost loop.
    pub depth: u32,
}

/// The nest of loops: strongly connected components, and those that remain inside without the header.
#[derive(Clone, Debug, PartialEq)]
pub struct Loops {
    /// Outer loops before inner ones.
    pub all: Vec<Loop>,
    /// Innermost loop of each block.
    pub innermost: Vec<Option<LoopId>>,
}

impl Loops {
    /// Finds the loops.
    pub fn of(flow: &Flow) -> Loops {
        let n = flow.blocks.len();
        let mut loops = Loops {
            all: Vec::new(),
            innermost: vec![None; n],
        };
        // Regions still to split: their blocks in reverse post-order, and the loop that they are in. A stamp marks membership.
        let mut work: Vec<(Vec<BlockId>, Option<LoopId>)> = vec![(flow.order.clone(), None)];
        let mut stamp = vec![0u32; n];
        let mut round = 0u32;
        while let Some((region, parent)) = work.pop() {
            round += 1;
            for b in &region {
                stamp[b.index()] = round;
            }
            for component in components(flow, &region, |b| stamp[b.index()] == round) {
                let cyclic = component.len() > 1 || component.iter().any(|b| flow.block(*b).targets().contains(b));
                if !cyclic {
                    continue;
                }
                let mut component = component;
                component.sort_by_key(|b| flow.position[b.index()]);
                let inside: HashSet<BlockId> = component.iter().copied().collect();
                let mut entries: Vec<BlockId> = component
                    .iter()
                    .copied()
                    .filter(|b| *b == Flow::ENTRY || flow.preds[b.index()].iter().any(|p| !inside.contains(p)))
                    .collect();
                let Some(header) = entries.first().copied().or(component.first().copied()) else {
                    continue;
                };
                entries.retain(|b| *b != header);
                let mut exits = Vec::new();
                for b in &component {
                    for t in flow.block(*b).targets() {
                        if !inside.contains(t) && !exits.contains(&(*b, *t)) {
                            exits.push((*b, *t));
                        }
                    }
                }
                let id = LoopId(loops.all.len() as u32);
                let depth = parent.map_or(1, |p: LoopId| loops.all[p.0 as usize].depth + 1);
                loops.all.push(Loop {
                    parent,
                    header,
                    irreducible: !entries.is_empty(),
                    exits,
                    depth,
                });
                for b in &component {
                    loops.innermost[b.index()] = Some(id);
                }
                component.retain(|b| *b != header);
                work.push((component, Some(id)));
            }
        }
        loops
    }

    /// The loop of which some thread may begin another iteration, or leave, before it gets from one block to the other one, which comes
    /// behind it on all paths. `None`: threads meet there in the same iteration.
    pub fn meets_in_another_iteration(&self, flow: &Flow, from: BlockId, to: BlockId) -> Option<LoopId> {
        let id = self.around(from).find(|l| self.contains(*l, to))?;
        let header = self.get(id).header;
        if to == header {
            return None;
        }
        let mut seen = HashSet::from([from, to]);
        let mut stack = vec![from];
        while let Some(block) = stack.pop() {
            for target in flow.block(block).targets() {
                if *target != to && (*target == header || !self.contains(id, *target)) {
                    return Some(id);
                }
                if seen.insert(*target) {
                    stack.push(*target);
                }
            }
        }
        None
    }

    /// The loop with this id.
    pub fn get(&self, id: LoopId) -> &Loop {
        &self.all[id.0 as usize]
    }

    /// The loops around a block, innermost first.
    pub fn around(&self, block: BlockId) -> impl Iterator<Item = LoopId> + '_ {
        std::iter::successors(self.innermost[block.index()], |id| self.get(*id).parent)
    }

    /// Whether the block lies in the loop.
    pub fn contains(&self, id: LoopId, block: BlockId) -> bool {
        let depth = self.get(id).depth;
        self.around(block)
            .find(|l| self.get(*l).depth <= depth)
            .is_some_and(|l| l == id)
    }
}

/// Strongly connected components of a region (Tarjan, without recursion).
fn components(flow: &Flow, region: &[BlockId], member: impl Fn(BlockId) -> bool) -> Vec<Vec<BlockId>> {
    let mut index: HashMap<BlockId, (u32, u32, bool)> = HashMap::new();
    let mut next = 0;
    let mut stack = Vec::new();
    let mut result = Vec::new();
    for start in region {
        if index.contains_key(start) {
            continue;
        }
        let mut calls: Vec<(BlockId, usize)> = vec![(*start, 0)];
        index.insert(*start, (next, next, true));
        next += 1;
        stack.push(*start);
        while let Some((block, i)) = calls.last_mut() {
            let block = *block;
            let target = flow.block(block).targets().get(*i).copied();
            *i += 1;
            match target {
                Some(t) if !member(t) => {}
                Some(t) => match index.get(&t).copied() {
                    None => {
                        index.insert(t, (next, next, true));
                        next += 1;
                        stack.push(t);
                        calls.push((t, 0));
                    }
                    Some((number, _, true)) => {
                        if let Some(entry) = index.get_mut(&block) {
                            entry.1 = entry.1.min(number);
                        }
                    }
                    Some(_) => {}
                },
                None => {
                    calls.pop();
                    let (number, low, _) = index.get(&block).copied().unwrap_or_default();
                    if let Some((caller, _)) = calls.last()
                        && let Some(entry) = index.get_mut(caller)
                    {
                        entry.1 = entry.1.min(low);
                    }
                    if number == low {
                        let mut component = Vec::new();
                        while let Some(b) = stack.pop() {
                            if let Some(entry) = index.get_mut(&b) {
                                entry.2 = false;
                            }
                            component.push(b);
                            if b == block {
                                break;
                            }
                        }
                        result.push(component);
                    }
                }
            }
        }
    }
    result
}
