//! A kernel whose grids are the iterations of a loop: what it may do, and who may launch it.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::effects::{BUILTINS, effects};
use gridfuse_analysis::facts::launch::{Child as Launched, Launchers, Stream, several_in_sight, who_launches};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::resolve::{launch_sites_of, other_mentions};
use gridfuse_analysis::hir::{Builtin, ExprId, ExprKind};

use crate::api::assumption;
use crate::api::refusal::Ineligible;
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::api::refusal::refuse;
use crate::draft::Draft;
use crate::edit::builder::EditBuilder;
use crate::emit::target;
use crate::facts::barriers;
use crate::facts::child::Child;
use crate::facts::cluster::Function;
use crate::facts::instance;
use crate::facts::launch_errors;
use crate::facts::movable;
use crate::facts::movable::Form;
use crate::facts::movable::KEPT_BLOCK;
use crate::facts::shared_room::{self, Needed};
use crate::facts::site::Site;
use crate::runtime::is_header;
use crate::transforms::aggregate::{refuse_child, refuse_waits};
use crate::transforms::iteration::instances::Instance;
use crate::transforms::iteration::read_only;
use crate::transforms::iteration::threads::{self, Threads};
use crate::transforms::self_launch::{
    is_builtin, is_linear, is_x_of, keeps_block_size, refuse_other_instance, shared_bytes, uniform,
};

/// A kernel that ends by launching itself, or one of several that launch each other in turn.
pub struct Iteration<'db> {
    /// The launch of the next iteration, in the kernel.
    pub site: Site<'db>,
    /// The kernel.
    pub kernel: Child<'db>,
    /// For each parameter of the kernel whether all iterations have the same argument.
    pub uniform: Vec<bool>,
    /// All grids have one block.
    pub one_block: bool,
    /// All grids of a loop have the same size.
    pub same_grid: bool,
    /// Its blocks have so many threads, and those of the loop have more, which leave it alone.
    pub threads: Option<Threads>,
    /// In these blocks they wait for each other, as the threads of a warp do.
    pub waits: bool,
    /// Which instance of its template it is.
    pub instance: Instance,
}

/// Refuses a launch that isn't the next iteration, or that can't be replaced where it stands.
///
/// # Errors
/// It isn't launched into the tail stream.
pub fn refuse_place(site: &Site<'_>, refusals: &mut Refusals) -> Result<(), Ineligible> {
    if site.facts.stream != Stream::TailLaunch {
        let place = site.facts.stream_operand.as_ref().map(|o| site.place(o.span));
        return Err(refuse(
            "it isn't a tail launch: the next grid may start before this one ends",
            place.or(Some(site.here())),
        ));
    }
    refuse_statement(site, refusals);
    Ok(())
}

/// Refuses a launch that can't be replaced where it stands.
pub fn refuse_statement(site: &Site<'_>, refusals: &mut Refusals) {
    site.refuse_common(refusals);
    target::refuse_place(site, refusals);
    target::refuse_undecided(site, refusals);
    target::refuse_operands(site, refusals);
}

impl<'db> Iteration<'db> {
    /// Looks at a launch of a kernel by itself. What can't become a loop is refused; what is taken for granted goes into the edit.
    pub fn find(draft: &mut Draft<'db>) -> Result<Iteration<'db>, Ineligible> {
        let Draft { site, refusals, .. } = draft;
        let (db, item) = (site.db, site.parent);
        refuse_place(site, refusals)?;
        let kernel = draft.read(item);
        let Draft {
            site, edit, refusals, ..
        } = draft;
        refusals.check()?;
        let mut others = Vec::new();
        for id in launch_sites_of(db, item).into_iter().filter(|id| id.function != item) {
            others.push(Site::new(db, id)?);
        }
        let own_grid = site.facts.grid.operand.expr;
        let inherited = is_builtin(site, own_grid, Builtin::GridDim);
        let one_block =
            !others.is_empty() && others.iter().all(Site::has_one_block) && (inherited || site.has_one_block());
        let alike = |other: &Site<'_>| {
            inherited
                || is_x_of(site, own_grid, Builtin::GridDim) && is_linear(&other.facts.grid)
                || site.facts.grid.constant.is_some() && other.facts.grid.constant == site.facts.grid.constant
        };
        let iteration = Iteration {
            same_grid: others.iter().all(alike),
            uniform: uniform(std::slice::from_ref(site), &kernel),
            one_block,
            threads: None,
            waits: false,
            instance: Instance::default(),
            site: site.clone(),
            kernel,
        };
        let writes = read_only::may_write(&iteration);
        let own_grid = !is_builtin(site, own_grid, Builtin::GridDim);
        let dimensioned = others.iter().chain(own_grid.then_some(&iteration.site));
        iteration.refuse_dimensions(dimensioned, refusals, edit);
        iteration.refuse_launch(&others, one_block, false, refusals);
        refuse_other_instance(&iteration.site, &iteration.kernel, refusals);
        iteration.refuse_kernel(&[], writes, refusals, edit);
        refusals.check()?;
        Ok(iteration)
    }

    /// Who launches what, how often. `one_block`: all grids of the kernel have one; `same_block`: all blocks are made to be of one size.
    pub fn refuse_launch(&self, others: &[Site<'db>], one_block: bool, same_block: bool, refusals: &mut Refusals) {
        let site = &self.site;
        let (db, name, here) = (site.db, site.parent_name(), Some(site.here()));
        if let Some(around) = site.facts.loops.first() {
            refusals.add("the launch stands in a loop", Some(site.place(around.span)));
        }
        if let Some(found) = effects(db, site.parent)
            .launches
            .iter()
            .find(|f| !site.here().range.contains(f.place.range))
        {
            refusals.add(
                format!("`{name}` launches elsewhere, too, and the next iteration waits for that"),
                Some(found.place),
            );
        }
        if let Some(found) = effects(db, site.parent).operations.first() {
            refusals.add(
                format!(
                    "the next iteration waits for `{}`, which `{name}` puts into a stream",
                    found.what
                ),
                Some(found.place),
            );
        }
        match who_launches(db, site.id) {
            Launchers::OnePerGrid => {}
            Launchers::OnePerBlock if one_block => {}
            _ => refusals.add(
                "more than one thread of the grid may launch: `if (blockIdx.x == 0 && threadIdx.x == 0)` or the like around the \
                 launch isn't seen",
                here,
            ),
        }
        let next = site.child_name();
        for other in others {
            if !same_block && !keeps_block_size(site, other) && !self.has_named_block_of(other) {
                refusals.add(
                    format!("the next `{next}` isn't known to have the block size of this one"),
                    Some(site.place(site.facts.block.operand.span)),
                );
            }
            if shared_bytes(other).is_none() || shared_bytes(other) != shared_bytes(site) {
                let place = site.facts.shared.as_ref().map_or(site.here(), |o| site.place(o.span));
                refusals.add(
                    format!("the next `{next}` isn't known to have as much dynamic shared memory as this one"),
                    Some(place),
                );
            }
        }
    }

    /// Whether blocks of another launch are of the size that the kernel's launch of itself names by a template parameter: `k<B><<<n, B>>>`.
    fn has_named_block_of(&self, other: &Site<'db>) -> bool {
        let names = &self.kernel.item.signature(self.kernel.db).template_names;
        let own: Vec<(String, String)> = names.iter().map(|name| (name.clone(), name.clone())).collect();
        let given = instance::at_launch(other, &self.kernel).unwrap_or_default();
        let sizes = threads::of_launch(&self.site, names, &own, &[]);
        let others = threads::of_launch(other, names, &[], &given);
        self.site.facts.child == Launched::Kernel(self.kernel.item) && !sizes.is_disjoint(&others)
    }

    /// A condition on `threadIdx.x` picks one thread only where blocks have one dimension. `launches`: of the kernel, wherever they are.
    pub fn refuse_dimensions<'a>(
        &self,
        launches: impl Iterator<Item = &'a Site<'db>>,
        refusals: &mut Refusals,
        edit: &mut EditBuilder<'db>,
    ) where
        'db: 'a,
    {
        let name = &self.kernel.name;
        let body = &self.site.body;
        let reads = |builtin: Builtin, dimension: &str| {
            body.exprs.iter().any(|e| {
                matches!(&e.kind, ExprKind::Field { base, field, .. }
                    if field == dimension && is_builtin(&self.site, *base, builtin))
            })
        };
        for other in launches {
            let (grid, block) = (&other.facts.grid, &other.facts.block);
            for (extent, index, asked, of, unit) in [
                (block, Builtin::ThreadIdx, "threadIdx", "blocks", "thread"),
                (grid, Builtin::BlockIdx, "blockIdx", "grids", "block"),
            ] {
                for (dimension, at) in [("y", 1), ("z", 2)] {
                    // Of its own grid.
                    if other.parent == self.kernel.item && is_builtin(other, extent.operand.expr, Builtin::BlockDim) {
                        continue;
                    }
                    let size = extent.constant.and_then(|c| c.get(at).copied());
                    let left_out = |c: [Option<ExprId>; 3]| c.get(at).is_some_and(Option::is_none);
                    let flat = size.map_or(extent.components.is_some_and(left_out), |s| s == 1);
                    if flat || reads(index, dimension) {
                        continue;
                    }
                    let place = Some(other.place(extent.operand.span));
                    let operand = extent.operand.expr;
                    let several = || several_in_sight(other.db, other.parent, &other.body, operand);
                    match size {
                        None if extent.components.is_none() && several().get(at) == Some(&true) => refusals.add(
                            format!(
                                "{of} of `{name}` may have several {unit}s in {dimension}, as code that makes their size sets it, and the \
                                 launch isn't left to one of them by `{asked}.{dimension}`"
                            ),
                            place,
                        ),
                        Some(size) => refusals.add(
                            format!("{of} of `{name}` have {size} {unit}s in {dimension}, and the launch isn't left to one of them by `{asked}.{dimension}`"),
                            place,
                        ),
                        None => edit.assume(assumption::ONE_DIMENSIONAL_BLOCKS.of(Reason {
                            text: format!("{of} of `{name}` have one {unit} in {dimension}, as the launch isn't left to one by `{asked}.{dimension}`"),
                            place,
                        })),
                    }
                }
            }
        }
    }

    /// The built-in variables that are the GPU's own in a block of the loop.
    pub fn kept(&self) -> &'static [&'static str] {
        if self.threads.is_some() {
            &["threadIdx"]
        } else {
            KEPT_BLOCK
        }
    }

    /// What the kernel may not do when its blocks run several iterations. `writes`: one of the kernels may write memory that others see.
    pub fn refuse_kernel(
        &self,
        all: &[(FunctionItem<'db>, &str)],
        writes: bool,
        refusals: &mut Refusals,
        edit: &mut EditBuilder<'db>,
    ) {
        let (db, kernel) = (self.site.db, &self.kernel);
        let (item, name) = (kernel.item, &kernel.name);
        let found = effects(db, item);
        launch_errors::assume_none(name, &found, edit);
        if kernel.outlined.is_some() || kernel.params.iter().any(|p| p.ty.base.contains("gridfuse::")) {
            refusals.add(format!("`{name}` has been rewritten already"), Some(kernel.place()));
        }
        if self.one_block {
            if kernel.template.is_some() {
                refusals.add(format!("`{name}` is a template"), Some(kernel.place()));
            }
            // The built-in variables stay what they are.
            movable::refuse_to_outline_collecting(kernel, Form::Block, &BUILTINS, &found, refusals);
            refuse_waits(kernel, &found, refusals);
        } else {
            if kernel.template.as_ref().is_some_and(|t| t.contains('=')) {
                refusals.add(
                    format!("`{name}` has default template arguments, and its kernel has to be declared twice"),
                    Some(kernel.place()),
                );
            }
            refuse_child(&self.site, kernel, true, self.kept(), refusals);
        }
        for reason in barriers::refuse_divergent(db, item, name, &found, true, refusals) {
            edit.assume(reason);
        }
        read_only::refuse(self, all, writes, &found, refusals, edit);
        // The arguments, twice or once with what a block of the loop is at.
        let function = Function::new(db, item);
        let needed = Needed::for_parameters(96, 2, &function);
        if let Some(reason) = shared_room::enough(&function, needed, &found.shared) {
            edit.assume(reason);
        }
        let of_user = |m: &FileRange| !is_header(db, m.file);
        for mention in other_mentions(db, item).into_iter().filter(of_user).take(3) {
            refusals.add(
                format!("`{name}` is mentioned where it isn't launched: some launches may be unseen"),
                Some(mention),
            );
        }
    }
}
