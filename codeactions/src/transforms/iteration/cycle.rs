//! Kernels that launch each other in turn: `propose` launches `accept` into its tail stream, and `accept` launches `propose`. And what
//! such kernels launch besides.

use std::collections::BTreeSet;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::effects::effects;
use gridfuse_analysis::facts::launch::{Child as Launched, LaunchId, launches};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::launch_sites_of;
use gridfuse_analysis::hir::{Builtin, Type};

use super::chain::{MOST, Stages};
use super::driver;
use super::instances::{self, Instance};
use super::kernel::{Iteration, refuse_place, refuse_statement};
use super::read_only;
use super::threads::{self, Threads};
use crate::api::assumption;
use crate::api::refusal::{Ineligible, Reason, Refusals};
use crate::draft::Draft;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::facts::child::Child;
use crate::facts::cluster::Function;
use crate::facts::instance;
use crate::facts::moved::{Spot, different};
use crate::facts::site::Site;
use crate::transforms::self_launch::{is_builtin, passed_on};

/// Kernels that launch each other in turn.
pub struct Cycle<'db> {
    /// In the order in which they run; the host launches the first one.
    pub kernels: Vec<Iteration<'db>>,
    /// Which launches which, kernel after kernel.
    pub launches: Vec<Turn<'db>>,
    /// The parameters that have the same argument in all grids: by number, one of each kernel that launches, and where they have it of
    /// those that don't.
    pub uniform: Vec<Vec<Option<usize>>>,
    /// Blocks of some kernels have fewer threads than those of others; all blocks of the loop have so many.
    pub block: Option<Threads>,
    /// How many children one iteration launches at most, and how many grids into the tail, where it isn't one.
    pub several: Option<(usize, usize)>,
}

/// A launch of one of the kernels by one of them.
pub struct Turn<'db> {
    /// The launch.
    pub site: Site<'db>,
    /// The number of the kernel in which it stands.
    pub from: usize,
    /// That of the kernel that it launches.
    pub to: usize,
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
        let items = in_order(db, &sites);
        let number = |item: FunctionItem<'db>| items.iter().position(|other| *other == item);
        let mut found: Vec<Turn<'db>> = Vec::new();
        for site in sites {
            let Launched::Kernel(kernel) = site.facts.child else {
                return Err(draft.not_understood());
            };
            let (Some(from), Some(to)) = (number(site.parent), number(kernel)) else {
                return Err(draft.not_understood());
            };
            found.push(Turn { site, from, to });
        }
        found.sort_by_key(|turn| (turn.from, turn.site.id.index));
        let several = found.len() > items.len() || found.windows(2).any(|two| two[0].from == two[1].from);
        for turn in &found {
            match several {
                true => refuse_statement(&turn.site, &mut draft.refusals),
                false => refuse_place(&turn.site, &mut draft.refusals)?,
            }
        }
        let children: Vec<Child<'db>> = items.iter().map(|item| draft.read(*item)).collect();
        draft.refusals.check()?;
        let instances = instances::find(&found, &children, &mut draft.refusals);
        draft.refusals.check()?;
        let uniform = uniform(&found, &children, &instances);
        let mut kernels = Vec::new();
        for (at, (kernel, instance)) in children.into_iter().zip(instances).enumerate() {
            // Of one that launches nothing a launch of it.
            let own = found.iter().filter(|turn| turn.from == at);
            let site = own.max_by_key(|turn| !driver::is_child(&turn.site));
            let site = site.or_else(|| found.iter().find(|turn| turn.to == at));
            let Some(site) = site.map(|turn| turn.site.clone()) else {
                return Err(draft.not_understood());
            };
            kernels.push(Iteration {
                site,
                uniform: (0..kernel.params.len())
                    .map(|param| uniform.iter().any(|same| same.get(at) == Some(&Some(param))))
                    .collect(),
                kernel,
                one_block: false,
                same_grid: false,
                threads: None,
                waits: false,
                instance,
            });
        }
        let mut cycle = Cycle {
            kernels,
            launches: found,
            uniform,
            block: None,
            several: None,
        };
        if several {
            cycle.several = Some(cycle.at_once());
        }
        cycle.refuse_heads(&mut draft.refusals);
        draft.refusals.check()?;
        let sized = cycle.widen(db, draft);
        cycle.refuse_kernels(sized, draft)?;
        Ok(cycle)
    }

    /// The launches of a kernel that belong to the loop. Where another kernel than the first is launched from elsewhere, it goes on by
    /// itself.
    pub(super) fn launches_of(&self, db: &'db dyn Db, at: usize) -> Vec<Site<'db>> {
        let in_turn = |item: FunctionItem<'db>| self.kernels.iter().any(|k| k.kernel.item == item);
        let all = self.kernels.get(at).map(|k| launch_sites_of(db, k.kernel.item));
        let all = all.into_iter().flatten().filter(|id| at == 0 || in_turn(id.function));
        all.filter_map(|id| Site::new(db, id).ok()).collect()
    }

    /// What the size of a kernel's blocks is, where all of its launches say that.
    fn threads_of(&self, db: &'db dyn Db, at: usize) -> Option<Threads> {
        let inherits = |site: &Site<'db>| is_builtin(site, site.facts.block.operand.expr, Builtin::BlockDim);
        let (head, iteration) = (self.kernels.first()?, self.kernels.get(at)?);
        let names = &head.kernel.item.signature(db).template_names;
        let mut sizes: Option<BTreeSet<Threads>> = None;
        let mut inherited = false;
        for site in self.launches_of(db, at) {
            // What launches itself with the size that it has.
            if self.several.is_some() && site.parent == iteration.kernel.item && inherits(&site) {
                inherited = true;
                continue;
            }
            let parent = self.kernels.iter().find(|k| k.kernel.item == site.parent);
            let own = parent.map(|parent| parent.instance.values.as_slice());
            let given = match own {
                None => instance::at_launch(&site, &head.kernel).unwrap_or_default(),
                Some(_) => Vec::new(),
            };
            let found = threads::of_launch(&site, names, own.unwrap_or_default(), &given);
            sizes = Some(match sizes {
                None => found,
                Some(known) => known.intersection(&found).cloned().collect(),
            });
        }
        // Numbers come first.
        let size = sizes?.into_iter().next()?;
        // Where it goes on by itself, it does with the size that it has there.
        let in_turn = |item: FunctionItem<'db>| self.kernels.iter().any(|k| k.kernel.item == item);
        let elsewhere = launch_sites_of(db, iteration.kernel.item).into_iter();
        let mut elsewhere = elsewhere.filter(|id| inherited && at != 0 && !in_turn(id.function));
        let same = |id| Site::new(db, id).is_ok_and(|site| threads::of_launch(&site, names, &[], &[]).contains(&size));
        elsewhere.all(same).then_some(size)
    }

    /// Where blocks of the kernels have constant numbers of threads, and not all the same: those of the loop have as many as the largest
    /// one, if threads that a block doesn't have are nothing to the others, as they neither meet nor exchange anything. Whether all are
    /// of one size then.
    fn widen(&mut self, db: &'db dyn Db, draft: &mut Draft<'db>) -> bool {
        let Draft { refusals, edit, .. } = draft;
        let sizes: Option<Vec<Threads>> = (0..self.kernels.len()).map(|at| self.threads_of(db, at)).collect();
        let Some(sizes) = sizes else { return false };
        let Some(largest) = Threads::largest(&sizes) else {
            return false;
        };
        if sizes.iter().all(|size| *size == largest) {
            return true;
        }
        // The host couldn't launch the first kernel either.
        if largest.constant().is_none() && sizes.first() != Some(&largest) {
            self.assume_room(&largest, edit);
        }
        for (iteration, size) in self.kernels.iter_mut().zip(sizes).filter(|(_, size)| *size != largest) {
            let found = effects(db, iteration.kernel.item);
            // Whole warps are those of the loop, and a warp can do without a barrier.
            let number = size.constant().filter(|_| size.linear()).map(|[x, ..]| x);
            let meets = |at: FileRange| number.is_some_and(|x| x <= 32) && is_plain_barrier(&iteration.kernel, at);
            let warps = number.is_some_and(|x| x % 32 == 0);
            let barriers = found.barriers.iter().map(|found| found.place);
            iteration.waits = barriers.clone().any(meets);
            let together = barriers.filter(|place| !meets(*place));
            let together = together.chain(found.warp.iter().filter(|_| !warps).map(|found| found.place));
            let place = together.chain(found.asm.iter().map(|asm| asm.place)).next();
            if let Some(place) = place {
                let name = &iteration.kernel.name;
                let text = match size.constant().zip(largest.constant()) {
                    Some((size, largest)) => format!(
                        "blocks of `{name}` have {} threads, and those of the loop {}, of which `{name}` may wait for the others here",
                        size.iter().product::<u64>(),
                        largest.iter().product::<u64>()
                    ),
                    None => format!(
                        "blocks of `{name}` may have fewer threads than those of the loop, of which `{name}` may wait for the others here"
                    ),
                };
                refusals.add(text, Some(place));
            }
            iteration.threads = Some(size);
        }
        self.block = Some(largest);
        true
    }

    /// All blocks have as many threads as template parameters say, and the launches of small ones fail where a large one's would.
    fn assume_room(&self, largest: &Threads, edit: &mut EditBuilder<'db>) {
        let Some(head) = self.kernels.first() else { return };
        edit.assume(assumption::TEMPLATE_BLOCK_SIZES.of(Reason {
            text: format!(
                "`{}` is launched with template arguments for which a block may have {} threads",
                head.kernel.name,
                largest.operand(&[])
            ),
            place: Some(head.kernel.place()),
        }));
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
        let of_head = self.kernels.first().and_then(|k| k.kernel.launch_bounds.clone());
        for Iteration { kernel, instance, .. } in &self.kernels {
            let (name, place) = (&kernel.name, Some(kernel.place()));
            if kernel.file != first.file || scope(kernel) != scope(first) {
                refusals.add(
                    format!("`{name}` and `{}` stand in different files or namespaces", first.name),
                    place,
                );
                return;
            }
            let bounds = kernel.launch_bounds.as_ref();
            let bounds = bounds.map(|bounds| instance.in_terms_of_head(kernel, bounds));
            if bounds != of_head.clone().map(Some) {
                refusals.add(
                    format!(
                        "`{name}` has other launch bounds than `{}`",
                        self.kernels[0].kernel.name
                    ),
                    place,
                );
            }
            let own = Function::new(kernel.db, kernel.item);
            let moved = |code: &str, mut known: Vec<String>| {
                known.extend(kernel.item.signature(kernel.db).template_names.iter().cloned());
                kernel.item != first.item && different(code, Spot::head(&own), Spot::head(&above), &known).is_some()
            };
            if let Some(header) = kernel
                .template
                .as_ref()
                .filter(|_| kernel.item == self.kernels[0].kernel.item)
                && moved(header, Vec::new())
            {
                refusals.add(
                    format!(
                        "the template parameters of `{name}` may be others above `{}`, where the loop is declared",
                        first.name
                    ),
                    place,
                );
            }
            let unknown = kernel.params.iter().find(|param| {
                let mut named = instance.values.iter().filter(|(name, _)| {
                    let mut words = lex::identifiers(&param.field);
                    words.any(|word| word == name)
                });
                moved(&param.field, vec![param.name.clone()])
                    || instance.in_terms_of_head(kernel, &param.field).is_none()
                    || named.any(|(_, value)| !self.means_that_above(value, &above))
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

    /// Whether a template argument, in terms of the first kernel's, is the same above all kernels.
    fn means_that_above(&self, value: &str, above: &Function<'db>) -> bool {
        let Some(head) = self.kernels.first().map(|k| &k.kernel) else {
            return false;
        };
        let own = Function::new(head.db, head.item);
        let known = &head.item.signature(head.db).template_names;
        head.item == above.item || different(value, Spot::head(&own), Spot::head(above), known).is_none()
    }

    /// Who launches what, and what the kernels may not do when blocks run several of them.
    fn refuse_kernels(&mut self, sized: bool, draft: &mut Draft<'db>) -> Result<(), Ineligible> {
        let db = draft.site.db;
        let Draft { edit, refusals, .. } = draft;
        let writes = self.kernels.iter().any(read_only::may_write);
        let own: Vec<FunctionItem<'db>> = self.kernels.iter().map(|k| k.kernel.item).collect();
        let names: Vec<String> = self.kernels.iter().map(|k| k.kernel.name.clone()).collect();
        let all: Vec<(FunctionItem<'db>, &str)> = own.iter().copied().zip(names.iter().map(String::as_str)).collect();
        let mut grids = Vec::new();
        for (at, iteration) in self.kernels.iter().enumerate() {
            let others = self.launches_of(db, at);
            if !self.launches.iter().any(|turn| turn.from == at) {
                Cycle::refuse_leaf(iteration, refusals);
            } else {
                iteration.refuse_dimensions(others.iter(), refusals, edit);
                let one_block = others.iter().all(Site::has_one_block);
                match self.several {
                    Some(_) => self.refuse_launches(at, sized, refusals),
                    None => iteration.refuse_launch(&others, one_block, sized, refusals),
                }
            }
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
            edit.assume(assumption::SHARED_MEMORY.of(Reason {
                text: format!(
                    "the shared variables of `{}` and `{}` fit into a block's shared memory together",
                    first.kernel.name, second.kernel.name
                ),
                place: Some(second.kernel.place()),
            }));
        }
        refusals.check()
    }
}

/// Whether it is `__syncthreads()` in the kernel's own body, where a parameter may have its name.
fn is_plain_barrier(kernel: &Child<'_>, at: FileRange) -> bool {
    let body = kernel.item.body_span(kernel.db).shift(kernel.start);
    if at.file != kernel.file || !body.contains(at.range) {
        return false;
    }
    let named = lex::code_words(at.range.text(&kernel.text)).first() == Some(&"__syncthreads");
    let before = kernel.text.get(..at.range.start as usize).unwrap_or("");
    named && !before.trim_end().ends_with(':')
}

/// The kernels of these launches, those first that the host launches, as they come by turns.
fn in_order<'db>(db: &'db dyn Db, sites: &[Site<'db>]) -> Vec<FunctionItem<'db>> {
    // The same loop, whichever launch it is asked for.
    let in_turn = |item: FunctionItem<'db>| sites.iter().any(|site| site.parent == item);
    let from_outside = |site: &Site<'db>| {
        let all = launch_sites_of(db, site.parent);
        all.into_iter().any(|id| !in_turn(id.function))
    };
    // All of them come of it.
    let begins = |item: FunctionItem<'db>| {
        let found = Stages::of(db, item);
        found.is_some_and(|found| sites.iter().all(|site| found.kernels.contains(&site.parent)))
    };
    let first = sites.iter().filter(|site| begins(site.parent));
    let head = first.min_by_key(|site| (!from_outside(site), site.start));
    let mut items: Vec<FunctionItem<'db>> = head.map(|site| site.parent).into_iter().collect();
    let mut at = 0;
    while let Some(&item) = items.get(at) {
        at += 1;
        for site in sites.iter().filter(|site| site.parent == item) {
            if let Launched::Kernel(kernel) = site.facts.child
                && !items.contains(&kernel)
            {
                items.push(kernel);
            }
        }
    }
    items
}

/// Parameters, one of each kernel that launches, that each launch passes on as they are, so that all grids have the same argument.
fn uniform(launches: &[Turn<'_>], kernels: &[Child<'_>], instances: &[Instance]) -> Vec<Vec<Option<usize>>> {
    let Some(head) = kernels.first() else {
        return Vec::new();
    };
    let launching = |kernel: usize| launches.iter().any(|turn| turn.from == kernel);
    let (on, last): (Vec<&Turn<'_>>, Vec<&Turn<'_>>) = launches.iter().partition(|turn| launching(turn.to));
    let gets = |turn: &Turn<'_>, from: usize, to: usize| {
        let types = kernels[turn.from].params.get(from).zip(kernels[turn.to].params.get(to));
        let plain = |ty: &Type| !ty.complex && ty.array.is_empty();
        let base = |kernel: usize, ty: &Type| {
            let child = &kernels[kernel];
            instances[kernel].in_terms_of_head(child, &ty.base)
        };
        let same = types.is_some_and(|(a, b)| {
            let known = base(turn.from, &a.ty);
            plain(&a.ty)
                && plain(&b.ty)
                && known.is_some()
                && known == base(turn.to, &b.ty)
                && a.ty.pointers == b.ty.pointers
        });
        same && passed_on(&turn.site, to) == Some(from)
    };
    // What launches hands its own argument on to the loop's parameter, which is the first kernel's.
    let goes_back = |turn: &Turn<'_>, from: usize, to: usize| {
        let marks = |kernel: usize, param: usize| {
            let field = kernels[kernel]
                .params
                .get(param)
                .map_or("", |param| param.field.as_str());
            let words = lex::code_words(field).into_iter();
            let marks = words.filter(|word| matches!(*word, "const" | "volatile" | "*"));
            marks.map(str::to_owned).collect::<Vec<_>>()
        };
        let pointer = kernels[turn.to]
            .params
            .get(to)
            .is_some_and(|param| param.ty.pointers > 0);
        !pointer || marks(turn.from, from) == marks(turn.to, to)
    };
    let mut found = Vec::new();
    for first in 0..head.params.len() {
        let mut way: Vec<Option<usize>> = vec![None; kernels.len()];
        way[0] = Some(first);
        let mut ways = vec![way];
        // From each kernel's parameter to those of the next one that get it.
        for turn in &on {
            let step = |way: Vec<Option<usize>>| {
                let from = way[turn.from];
                let to = 0..kernels[turn.to].params.len();
                let fits = |to: &usize| {
                    from.is_some_and(|from| gets(turn, from, *to) && goes_back(turn, from, *to))
                        && way[turn.to].is_none_or(|known| known == *to)
                };
                let to: Vec<usize> = to.filter(fits).collect();
                let with = |to: usize| {
                    let mut way = way.clone();
                    way[turn.to] = Some(to);
                    way
                };
                to.into_iter().map(with).collect::<Vec<_>>()
            };
            ways = ways.into_iter().flat_map(step).take(64).collect();
        }
        let Some(mut way) = ways.into_iter().next() else {
            continue;
        };
        for (leaf, kernel) in kernels.iter().enumerate().filter(|(leaf, _)| !launching(*leaf)) {
            let all = |to: &usize| {
                let mut of_it = last.iter().filter(|turn| turn.to == leaf);
                of_it.all(|turn| way[turn.from].is_some_and(|from| gets(turn, from, *to)))
            };
            let to = (0..kernel.params.len()).find(all);
            way[leaf] = to;
        }
        found.push(way);
    }
    found
}
