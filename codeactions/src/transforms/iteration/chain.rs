//! Kernels that launch each other into the tail and don't all come back: the stages of a pipeline, or what is run before a loop. They
//! begin with one kernel, which the host launches.

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::launch::{Child as Launched, LaunchId, Stream, launches};
use gridfuse_analysis::hir::Builtin;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::{launch_sites_of, runs_on_device};

use crate::api::refusal::{Ineligible, refuse};
use crate::facts::site::Site;
use crate::transforms::self_launch::is_builtin;

/// So many kernels are looked at.
pub(super) const MOST: usize = 8;

/// What comes of a kernel.
pub struct Stages<'db> {
    /// It, and those that are launched from there on.
    pub kernels: Vec<FunctionItem<'db>>,
    /// Their launches.
    pub launches: Vec<LaunchId<'db>>,
    /// Which launches which, by number.
    turns: Vec<(usize, usize)>,
}

impl<'db> Stages<'db> {
    /// What comes of this kernel. `None` where it isn't known, or more than a loop runs.
    pub fn of(db: &'db dyn Db, first: FunctionItem<'db>) -> Option<Stages<'db>> {
        let mut found = Stages {
            kernels: vec![first],
            launches: Vec::new(),
            turns: Vec::new(),
        };
        let mut at = 0;
        while let Some(&function) = found.kernels.get(at) {
            for (index, facts) in launches(db, function).iter().enumerate() {
                let Launched::Kernel(kernel) = facts.child else {
                    return None;
                };
                let known = found.kernels.iter().position(|other| *other == kernel);
                let to = known.unwrap_or(found.kernels.len());
                if known.is_none() {
                    found.kernels.push(kernel);
                }
                found.turns.push((at, to));
                found.launches.push(LaunchId {
                    function,
                    index: u32::try_from(index).ok()?,
                });
            }
            at += 1;
            if found.kernels.len() > MOST {
                return None;
            }
        }
        Some(found)
    }

    /// Whether the first one is launched again.
    pub fn returns(&self) -> bool {
        self.turns.iter().any(|(_, to)| *to == 0)
    }

    /// Whether one of them is launched again by what comes of it.
    fn has_ring(&self) -> bool {
        (0..self.kernels.len()).any(|at| reaches(&self.turns, at, at))
    }

    /// The first one, and those from which it is launched again.
    fn ring(&self) -> Vec<FunctionItem<'db>> {
        let numbered = self.kernels.iter().enumerate();
        let found = numbered.filter(|(at, _)| *at == 0 || reaches(&self.turns, *at, 0));
        found.map(|(_, kernel)| *kernel).collect()
    }
}

/// Whether one comes to the other by at least one of these steps.
pub fn reaches(turns: &[(usize, usize)], from: usize, to: usize) -> bool {
    let mut seen = vec![from];
    let mut at = 0;
    while let Some(&here) = seen.get(at) {
        at += 1;
        for (_, next) in turns.iter().filter(|(from, _)| *from == here) {
            if *next == to {
                return true;
            }
            if !seen.contains(next) {
                seen.push(*next);
            }
        }
    }
    false
}

/// All launches of a chain of tail launches, if this one belongs to it. A loop that the host launches is none, however it is left.
pub fn launches_of_chain<'db>(site: &Site<'db>) -> Option<Vec<LaunchId<'db>>> {
    let found = stages(site)?;
    let own = Stages::of(site.db, site.parent)?;
    let begins = found.kernels.first().copied()?;
    let comes_back = found.returns() && own.ring().contains(&begins);
    (!comes_back && !is_block_loop(site)).then_some(found.launches)
}

/// Refuses the tail launch of another kernel that belongs to no chain that is seen.
///
/// # Errors
/// Why it isn't seen.
pub fn refuse_unfollowed(site: &Site<'_>) -> Result<(), Ineligible> {
    let other = matches!(site.facts.child, Launched::Kernel(kernel) if kernel != site.parent);
    if !other || site.facts.stream != Stream::TailLaunch {
        return Ok(());
    }
    let name = site.parent_name();
    let why = match site.parent.signature(site.db).kernel {
        true => format!("what comes of `{name}` are more than {MOST} kernels, or one that isn't known"),
        false => format!("`{name}` is no kernel: put the tail launch into the kernel that calls it"),
    };
    Err(refuse(why, Some(site.here())))
}

/// Whether a tail launch is one of a loop's, or of what is run before one.
pub fn belongs_to_loop(site: &Site<'_>) -> bool {
    stages(site).is_some_and(|stages| stages.has_ring())
}

/// What begins with the kernel with which a tail launch's chain begins.
fn stages<'db>(site: &Site<'db>) -> Option<Stages<'db>> {
    let db = site.db;
    if site.facts.stream != Stream::TailLaunch || !site.parent.signature(db).kernel {
        return None;
    }
    let mut found = Stages::of(db, site.parent)?;
    for _ in 0..MOST {
        let ring = found.ring();
        if ring.iter().any(|kernel| is_launched_by_host(db, *kernel)) {
            break;
        }
        let Some(before) = before(db, &ring) else { break };
        found = Stages::of(db, before)?;
    }
    Some(found)
}

/// A kernel whose grids all have one block, and launch themselves and nothing else: a loop within a block needs no more, whoever launches
/// it.
fn is_block_loop(site: &Site<'_>) -> bool {
    let db = site.db;
    let itself = matches!(site.facts.child, Launched::Kernel(kernel) if kernel == site.parent);
    let one = |other: &Site<'_>| {
        let own = other.parent == site.parent;
        other.has_one_block() || own && is_builtin(other, other.facts.grid.operand.expr, Builtin::GridDim)
    };
    let all = launch_sites_of(db, site.parent);
    itself
        && launches(db, site.parent).len() == 1
        && all
            .into_iter()
            .all(|id| Site::new(db, id).is_ok_and(|other| one(&other)))
}

fn is_launched_by_host<'db>(db: &'db dyn Db, kernel: FunctionItem<'db>) -> bool {
    let all = launch_sites_of(db, kernel);
    all.into_iter().any(|id| !runs_on_device(db, id.function))
}

/// The one kernel besides these that launches one of them into the tail.
fn before<'db>(db: &'db dyn Db, kernels: &[FunctionItem<'db>]) -> Option<FunctionItem<'db>> {
    let mut found = Vec::new();
    for id in kernels.iter().flat_map(|kernel| launch_sites_of(db, *kernel)) {
        let facts = launches(db, id.function).get(id.index as usize);
        let tail = facts.is_some_and(|facts| facts.stream == Stream::TailLaunch);
        if tail && id.function.signature(db).kernel && !kernels.contains(&id.function) && !found.contains(&id.function)
        {
            found.push(id.function);
        }
    }
    match found.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::reaches;

    #[test]
    fn ways_between_kernels() {
        let turns = [(0, 1), (1, 2), (2, 1)];
        assert!(reaches(&turns, 0, 2) && reaches(&turns, 1, 1));
        assert!(!reaches(&turns, 0, 0) && !reaches(&turns, 2, 0));
    }
}
