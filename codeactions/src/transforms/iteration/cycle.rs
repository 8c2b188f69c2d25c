//! Kernels that launch each other in turn: `propose` launches `accept` into its tail stream, and `accept` launches `propose`.

use std::collections::BTreeSet;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::launch::{Child as Launched, LaunchId, launches};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::launch_sites_of;
use gridfuse_analysis::hir::{Builtin, Type};

use super::kernel::{Iteration, has_one_block, refuse_place};
use super::read_only;
use crate::api::refusal::{Ineligible, Reason, Refusals};
use crate::draft::Draft;
use crate::facts::child::Child;
use crate::facts::cluster::Function;
use crate::facts::moved::{Spot, different};
use crate::facts::site::Site;
use crate::transforms::self_launch::{is_builtin, passed_on};

/// More kernels than people write in turn.
const MOST: usize = 8;

/// Kernels that launch each other in turn.
pub struct Cycle<'db> {
    /// In the order in which they run; the host launches the first one.
    pub kernels: Vec<Iteration<'db>>,
    /// The parameters that have the same argument in all grids: by number, one of each kernel.
    pub uniform: Vec<Vec<usize>>,
    /// Blocks of some kernels have fewer threads than those of others; all blocks of the loop have so many.
    pub block: Option<u64>,
}

/// The launches of several kernels in turn, beginning with this one, if the last one launches its kernel again. None of them launches
/// anything else.
pub fn launches_in_turn<'db>(site: &Site<'db>) -> Option<Vec<LaunchId<'db>>> {
    let mut found = vec![site.id];
    let mut facts = site.facts;
    while found.len() <= MOST {
        let Launched::Kernel(kernel) = facts.child else {
            return None;
        };
        if kernel == site.parent {
            return (found.len() > 1).then_some(found);
        }
        let [next] = launches(site.db, kernel).as_slice() else {
            return None;
        };
        found.push(LaunchId {
            function: kernel,
            index: 0,
        });
        facts = next;
    }
    None
}

impl<'db> Cycle<'db> {
    /// Looks at such launches. What can't become a loop is refused; what is taken for granted goes into the edit.
    pub fn find(turn: &[LaunchId<'db>], draft: &mut Draft<'db>) -> Result<Cycle<'db>, Ineligible> {
        let db = draft.site.db;
        let mut sites = Vec::new();
        for id in turn {
            sites.push(Site::new(db, *id)?);
        }
        // The same loop, whichever launch it is asked for.
        let in_turn = |item: FunctionItem<'db>| sites.iter().any(|site| site.parent == item);
        let from_outside = |site: &Site<'db>| {
            let all = launch_sites_of(db, site.parent);
            all.into_iter().any(|id| !in_turn(id.function))
        };
        let first = (0..sites.len()).min_by_key(|at| (!from_outside(&sites[*at]), sites[*at].start));
        sites.rotate_left(first.unwrap_or_default());
        for site in &sites {
            refuse_place(site, &mut draft.refusals)?;
        }
        let children: Vec<Child<'db>> = sites.iter().map(|site| draft.read(site.parent)).collect();
        draft.refusals.check()?;
        let uniform = uniform(&sites, &children);
        let kernels = children
            .into_iter()
            .zip(&sites)
            .enumerate()
            .map(|(at, (kernel, site))| Iteration {
                site: site.clone(),
                uniform: (0..kernel.params.len())
                    .map(|param| uniform.iter().any(|same| same.get(at) == Some(&param)))
                    .collect(),
                kernel,
                one_block: false,
                same_grid: false,
                threads: None,
            });
        let mut cycle = Cycle {
            kernels: kernels.collect(),
            uniform,
            block: None,
        };
        cycle.refuse_heads(&mut draft.refusals);
        draft.refusals.check()?;
        cycle.widen(db, &mut draft.refusals);
        cycle.refuse_kernels(draft)?;
        Ok(cycle)
    }

    /// The launches of a kernel that belong to the loop. Where another kernel than the first is launched from elsewhere, it goes on by
    /// itself.
    fn launches_of(&self, db: &'db dyn Db, at: usize) -> Vec<Site<'db>> {
        let in_turn = |item: FunctionItem<'db>| self.kernels.iter().any(|k| k.kernel.item == item);
        let all = self.kernels.get(at).map(|k| launch_sites_of(db, k.kernel.item));
        let all = all.into_iter().flatten().filter(|id| at == 0 || in_turn(id.function));
        all.filter_map(|id| Site::new(db, id).ok()).collect()
    }

    /// Where blocks of the kernels have constant numbers of threads, and not all the same: those of the loop have as many as the largest
    /// one, if threads that a block doesn't have are nothing to the others, as they neither meet nor exchange anything.
    fn widen(&mut self, db: &'db dyn Db, refusals: &mut Refusals) {
        let linear = |site: &Site<'db>| match site.facts.block.constant {
            Some([x, 1, 1]) => Some(x).filter(|x| (1..=1024).contains(x)),
            _ => None,
        };
        let size = |at: usize| {
            let sizes: Option<BTreeSet<u64>> = self.launches_of(db, at).iter().map(linear).collect();
            let mut sizes = sizes?.into_iter();
            sizes.next().filter(|_| sizes.next().is_none())
        };
        let Some(sizes) = (0..self.kernels.len()).map(size).collect::<Option<Vec<u64>>>() else {
            return;
        };
        let Some(&largest) = sizes
            .iter()
            .max()
            .filter(|largest| sizes.iter().any(|size| size < largest))
        else {
            return;
        };
        self.block = Some(largest);
        for (iteration, size) in self.kernels.iter_mut().zip(sizes).filter(|(_, size)| *size < largest) {
            let found = effects(db, iteration.kernel.item);
            let together = found.barriers.iter().chain(&found.warp).map(|found| found.place);
            let place = together.chain(found.asm.iter().map(|asm| asm.place)).next();
            if let Some(place) = place {
                let name = &iteration.kernel.name;
                refusals.add(
                    format!(
                        "blocks of `{name}` have {size} threads, and those of the loop {largest}, of which `{name}` may wait for the others here"
                    ),
                    Some(place),
                );
            }
            iteration.threads = Some(size);
        }
    }

    /// All of the kernels stand side by side.
    fn refuse_heads(&self, refusals: &mut Refusals) {
        let Some(first) = self.kernels.iter().map(|k| &k.kernel).min_by_key(|k| k.start) else {
            return;
        };
        let scope = |kernel: &Child<'db>| {
            let name = kernel.item.name(kernel.db);
            name.rsplit_once("::").map(|(scope, _)| scope.to_owned())
        };
        let above = Function::new(first.db, first.item);
        for kernel in self.kernels.iter().map(|k| &k.kernel) {
            let (name, place) = (&kernel.name, Some(kernel.place()));
            if kernel.file != first.file || scope(kernel) != scope(first) {
                refusals.add(
                    format!("`{name}` and `{}` stand in different files or namespaces", first.name),
                    place,
                );
                return;
            }
            if kernel.template.is_some() {
                refusals.add(format!("`{name}` is a template"), place);
            }
            if kernel.launch_bounds != first.launch_bounds {
                refusals.add(format!("`{name}` has other launch bounds than `{}`", first.name), place);
            }
            let own = Function::new(kernel.db, kernel.item);
            let unknown = kernel.params.iter().find(|param| {
                let known = std::slice::from_ref(&param.name);
                kernel.item != first.item
                    && different(&param.field, Spot::head(&own), Spot::head(&above), known).is_some()
            });
            if let Some(param) = unknown {
                refusals.add(
                    format!(
                        "the type of `{}`'s parameter `{}` may be another one above `{}`, where the arguments of both are declared",
                        name, param.name, first.name
                    ),
                    place,
                );
            }
        }
    }

    /// Who launches what, and what the kernels may not do when blocks run several of them.
    fn refuse_kernels(&mut self, draft: &mut Draft<'db>) -> Result<(), Ineligible> {
        let db = draft.site.db;
        let Draft { edit, refusals, .. } = draft;
        let writes = self.kernels.iter().any(read_only::may_write);
        let own: Vec<FunctionItem<'db>> = self.kernels.iter().map(|k| k.kernel.item).collect();
        let all: Vec<&str> = self.kernels.iter().map(|k| k.kernel.name.as_str()).collect();
        let mut grids = Vec::new();
        for (at, iteration) in self.kernels.iter().enumerate() {
            let others = self.launches_of(db, at);
            iteration.refuse_dimensions(others.iter(), refusals, edit);
            let one_block = others.iter().all(has_one_block);
            iteration.refuse_launch(&others, one_block, self.block.is_some(), refusals);
            iteration.refuse_kernel(&all, writes, refusals, edit);
            grids.extend(others.iter().map(|site| {
                let inherited = is_builtin(site, site.facts.grid.operand.expr, Builtin::GridDim);
                (inherited && own.contains(&site.parent), site.facts.grid.constant)
            }));
        }
        let constant = grids.iter().find_map(|(_, constant)| *constant);
        let same = grids
            .iter()
            .all(|(inherited, grid)| *inherited || grid.is_some() && *grid == constant);
        // One launch of the host and only grids that are handed on are alike, too.
        let others = grids.iter().filter(|(inherited, _)| !inherited).count();
        for iteration in &mut self.kernels {
            iteration.same_grid = same || others == 1;
        }
        let shared = |k: &&Iteration<'db>| !effects(db, k.kernel.item).shared.is_empty();
        if let [first, second, ..] = self.kernels.iter().filter(shared).collect::<Vec<_>>().as_slice() {
            edit.assume(Reason {
                text: format!(
                    "the shared variables of `{}` and `{}` fit into a block's shared memory together",
                    first.kernel.name, second.kernel.name
                ),
                place: Some(second.kernel.place()),
            });
        }
        refusals.check()
    }
}

/// Parameters, one of each kernel, that each launch passes on as they are, so that all grids have the same argument.
fn uniform(sites: &[Site<'_>], kernels: &[Child<'_>]) -> Vec<Vec<usize>> {
    let Some(head) = kernels.first() else {
        return Vec::new();
    };
    let same_type = |at: usize, a: usize, b: usize| {
        let next = &kernels[(at + 1) % kernels.len()];
        let types = kernels[at].params.get(a).zip(next.params.get(b));
        let plain = |ty: &Type| !ty.complex && ty.array.is_empty();
        types.is_some_and(|(a, b)| {
            plain(&a.ty) && plain(&b.ty) && a.ty.base == b.ty.base && a.ty.pointers == b.ty.pointers
        })
    };
    let mut found = Vec::new();
    for first in 0..head.params.len() {
        // From each kernel's parameter to those of the next one that get it.
        let mut ways: Vec<Vec<usize>> = vec![vec![first]];
        for (at, site) in sites.iter().enumerate() {
            let next = kernels[(at + 1) % kernels.len()].params.len();
            let step = |way: Vec<usize>| {
                let last = way.last().copied().unwrap_or_default();
                let to = (0..next).filter(move |to| passed_on(site, *to) == Some(last));
                let to: Vec<usize> = to.filter(|to| same_type(at, last, *to)).collect();
                to.into_iter().map(move |to| [way.clone(), vec![to]].concat())
            };
            ways = ways.into_iter().flat_map(step).take(64).collect();
        }
        let closed = ways.into_iter().find(|way| way.last() == Some(&first));
        found.extend(closed.map(|mut way| {
            way.pop();
            way
        }));
    }
    found
}
