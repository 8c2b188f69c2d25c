//! The kernels of the loop: whether their blocks can run one at a time in a grid that stays, and what sizes their launches have.

use std::collections::BTreeSet;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::facts::effects::{Effects, computes, effects};
use gridfuse_analysis::facts::launch::Stream;
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::library::constant;
use gridfuse_analysis::hir::reference_names::may_hold_a_reference;
use gridfuse_analysis::hir::resolve::{Meaning, functions_in, meaning_in};
use gridfuse_analysis::hir::walk::all_in_expr;
use gridfuse_analysis::hir::{ExprId, ExprKind, Name, body};

use super::api;
use super::classes::{Own, of_field, of_variable, taken_apart};
use super::host_loop::HostLoop;
use crate::api::assumption;
use crate::api::refusal::{Reason, Refusals};
use crate::edit::builder::EditBuilder;
use crate::edit::names::Names;
use crate::facts::barriers;
use crate::facts::calls::is_plain_type;
use crate::facts::child::Child;
use crate::facts::cluster::Function;
use crate::facts::configured::refuse_configured;
use crate::facts::ctype;
use crate::facts::instance;
use crate::facts::movable::{KEPT_BLOCK, KEPT_THREADS};
use crate::facts::pure;
use crate::facts::read_only::all_restrict;
use crate::facts::room::stands_behind;
use crate::facts::shared_room::{self, Needed};
use crate::facts::site::Site;
use crate::transforms::aggregate::refuse_child;
use crate::transforms::fission::constant_bytes;
use crate::transforms::refused_launches::assume_accepted;
use crate::transforms::self_launch::is_linear;

/// The kernels of a loop.
pub struct Kernels<'db> {
    /// Each once.
    pub all: Vec<Child<'db>>,
    /// For each launch of the loop its kernel, by number.
    pub of_launch: Vec<usize>,
}

/// Looks at the kernels of the loop's launches; what can't run in one grid is refused.
pub fn read<'db>(
    host: &HostLoop<'db>,
    names: &mut Names,
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'db>,
) -> Kernels<'db> {
    let mut found = Kernels {
        all: Vec::new(),
        of_launch: Vec::new(),
    };
    for site in &host.launches {
        refuse_launch(host, site, refusals);
        assume_unseen_stays(host, site, edit);
        let Some(item) = site.child(refusals) else { continue };
        let known = found.all.iter().position(|kernel: &Child<'_>| kernel.item == item);
        let index = known.unwrap_or_else(|| {
            names.add_file(site.db, item.file(site.db));
            let kernel = Child::read(site.db, item, names, refusals);
            refuse_kernel(site, &kernel, refusals, edit);
            found.all.push(kernel);
            found.all.len() - 1
        });
        found.of_launch.push(index);
        let kernel = &found.all[index];
        assume_accepted(site, kernel, edit);
        if instance::arguments(site, kernel).is_none() {
            let why = format!("the template arguments of `{}` are deduced: write them", kernel.name);
            refusals.add(why, Some(site.here()));
        }
        if site.launch.args.len() != kernel.params.len() {
            let why = format!(
                "the launch of `{}` leaves out arguments that have default values",
                kernel.name
            );
            refusals.add(why, Some(site.here()));
        }
        if !stands_behind(site, kernel, kernel.start) {
            let why = format!("`{}` isn't defined above the function with the loop", kernel.name);
            refusals.add(why, Some(site.here()));
        }
    }
    refuse_shared_memory(host, &found, edit);
    found
}

/// Takes for granted that what isn't in sight, or isn't understood, gives the same size of a launch in each round.
fn assume_unseen_stays(host: &HostLoop<'_>, site: &Site<'_>, edit: &mut EditBuilder<'_>) {
    let Function { db, item, body, .. } = &host.function;
    for operand in site.launch.config.iter().skip(1) {
        for part in all_in_expr(body, *operand) {
            let ExprKind::Name(Name::Other(name)) = &body.expr(part).kind else {
                continue;
            };
            if meaning_in(*db, *item, name) == Meaning::Unknown && !constant(name) && !computes(*db, *item, name) {
                edit.assume(assumption::UNCHANGED_VALUES.of(Reason {
                    text: format!("nothing in the loop changes `{name}`, which the host reads in each round"),
                    place: Some(site.place(body.expr(part).span)),
                }));
            }
        }
    }
}

/// Refuses a launch that isn't a statement of its own, or whose operands do more than compute.
fn refuse_launch(host: &HostLoop<'_>, site: &Site<'_>, refusals: &mut Refusals) {
    let here = Some(site.here());
    if site.facts.from_macro {
        refusals.add("the launch comes out of a macro", here);
    } else if site.facts.in_lambda {
        refusals.add("the launch stands in a lambda", here);
    } else if site.facts.statement.is_none() {
        refusals.add("the launch is no statement of its own", here);
    }
    if !(2..=4).contains(&site.launch.config.len()) {
        refusals.add("the configuration of the launch is not understood", here);
    }
    for operand in site.launch.config.iter().chain(&site.launch.args) {
        let place = Some(site.place(site.body.expr(*operand).span));
        if pure::unknown_part(&site.body, *operand).is_some() {
            refusals.add("an operand of the launch is not understood", place);
        } else if pure::assigns(&site.body, *operand) {
            refusals.add(
                "an operand of the launch changes a variable: do so in a statement of its own",
                place,
            );
        }
    }
    if let Some(what) = refused_always(site) {
        refusals.add(format!("CUDA refuses the launch: {what}"), here);
    }
    for operand in site.launch.config.iter().skip(1) {
        if reads_memory(host, *operand) {
            let what = host.flat(*operand);
            refusals.add(
                format!("`{what}` is read from memory in each round: copy it to a variable before the loop"),
                Some(site.place(site.body.expr(*operand).span)),
            );
        }
        if pure::not_repeatable(site, *operand).is_some() {
            let what = host.flat(*operand);
            refusals.add(
                format!("`{what}` may be another value in another round: compute it before the loop"),
                Some(site.place(site.body.expr(*operand).span)),
            );
        }
        if varies(host, *operand) {
            refusals.add(
                "the blocks, their shared memory or the stream of the launch differ from round to round",
                Some(site.place(site.body.expr(*operand).span)),
            );
        }
    }
}

/// Why no launch of these sizes runs, if that is in sight.
fn refused_always(site: &Site<'_>) -> Option<String> {
    let product = |sizes: [u64; 3]| sizes.iter().fold(1, |all: u64, x| all.saturating_mul(*x));
    match (
        site.facts.grid.constant.map(product),
        site.facts.block.constant.map(product),
    ) {
        (Some(0), _) => Some("its grid has no block".to_owned()),
        (_, Some(0)) => Some("its blocks have no thread".to_owned()),
        (_, Some(threads)) if threads > MOST_THREADS => Some(format!("its blocks have {threads} threads")),
        _ => None,
    }
}

/// Threads of the largest block.
const MOST_THREADS: u64 = 1024;

/// Refuses a kernel whose blocks can't run in a grid that stays.
fn refuse_kernel<'db>(site: &Site<'db>, kernel: &Child<'db>, refusals: &mut Refusals, edit: &mut EditBuilder<'db>) {
    let (db, name) = (site.db, &kernel.name);
    let found = effects(db, kernel.worker());
    if kernel.outlined.is_some() || kernel.params.iter().any(|p| p.ty.base.contains("gridfuse::")) {
        refusals.add(format!("`{name}` has been rewritten already"), Some(kernel.place()));
        return;
    }
    if let Some(launch) = found.launches.first() {
        refusals.add(
            format!("`{name}` launches grids, which the next kernel of the loop waits for: apply `serialize` to its launches first"),
            Some(launch.place),
        );
        return;
    }
    refuse_configured(kernel, refusals);
    refuse_child(site, kernel, false, KEPT_BLOCK, refusals);
    for reason in barriers::refuse_divergent(db, kernel.worker(), name, &found, false, refusals) {
        edit.assume(reason);
    }
    refuse_read_only(kernel, &found, refusals, edit);
}

/// Loads that take for granted that nobody writes there while the kernel runs miss what an earlier round has written.
fn refuse_read_only(kernel: &Child<'_>, found: &Effects, refusals: &mut Refusals, edit: &mut EditBuilder<'_>) {
    let name = &kernel.name;
    if all_restrict(kernel.db, kernel.file) {
        refusals.add(
            format!("the file of `{name}` is compiled with `--restrict`, so that loads may miss what an earlier round has written"),
            Some(kernel.place()),
        );
    } else if let Some(load) = found.read_only.first().or(found.restricts.first()) {
        edit.assume(assumption::READ_ONLY_LOADS.of(Reason {
            text: format!(
                "no kernel of the loop writes what `{name}` reads by {}, which may miss what the same grid has written",
                load.what
            ),
            place: Some(load.place),
        }));
    }
}

/// Shared memory that any block may have, in bytes.
const MOST_SHARED: u32 = 48 << 10;

/// The shared memory of several kernels adds up; so does that of several instances of a template.
fn refuse_shared_memory(host: &HostLoop<'_>, found: &Kernels<'_>, edit: &mut EditBuilder<'_>) {
    let used = |kernel: &Child<'_>| effects(kernel.db, kernel.item);
    let launched = found.of_launch.iter().zip(&host.launches);
    let instances: BTreeSet<(usize, Option<String>)> = launched
        .map(|(index, site)| (*index, instance::arguments(site, &found.all[*index])))
        .filter(|(index, _)| !used(&found.all[*index]).shared.is_empty())
        .collect();
    if instances.len() < 2 {
        return;
    }
    // It comes on top of what all of them have.
    let dynamic = host.launches.iter().filter_map(|site| {
        let bytes = site.launch.config.get(2)?;
        Some(constant_bytes(site, *bytes).map_or(MOST_SHARED, |bytes| u32::try_from(bytes).unwrap_or(MOST_SHARED)))
    });
    let dynamic = dynamic.max().unwrap_or(0);
    for kernel in found.all.iter().filter(|kernel| !used(kernel).shared.is_empty()) {
        let others = (MOST_SHARED / instances.len() as u32)
            .saturating_add(dynamic)
            .min(MOST_SHARED);
        let function = Function::new(kernel.db, kernel.item);
        if let Some(reason) = shared_room::enough(&function, Needed::Bytes(others), &used(kernel).shared) {
            edit.assume(reason);
        }
    }
}

/// Whether an expression reads memory that device code, or the host by another name, may write.
fn reads_memory(host: &HostLoop<'_>, expr: ExprId) -> bool {
    let Function { db, item, body, .. } = &host.function;
    let parts = all_in_expr(body, expr);
    let taken_apart = taken_apart(body, &parts);
    parts.into_iter().any(|e| match &body.expr(e).kind {
        ExprKind::Field { arrow: false, .. } => of_field(host, e) != Own::Yes,
        ExprKind::Name(Name::Local(variable)) => {
            body.binding(*variable).ty.reference
                || !taken_apart.contains(&e) && of_variable(host, *variable) != Own::Yes
        }
        ExprKind::Call { name, .. } => !name.as_deref().is_some_and(|name| reads_nothing(*db, *item, name, 0)),
        kind => reads_memory_itself(*db, *item, kind, taken_apart.contains(&e)),
    })
}

/// The same of an expression by itself, in a function's body. `apart`: only a field of it is read.
fn reads_memory_itself(db: &dyn Db, function: FunctionItem<'_>, kind: &ExprKind, apart: bool) -> bool {
    match kind {
        ExprKind::Deref(_) | ExprKind::Index { .. } | ExprKind::Field { arrow: true, .. } => true,
        ExprKind::Name(Name::Other(name)) => match meaning_in(db, function, name) {
            Meaning::Global(global) => {
                let base = ctype::normalize(&global.base);
                let value = is_plain_type(&base) || base == "dim3";
                // An object may become a number by code of its own; a field of it may be a reference.
                let refers = || may_hold_a_reference(db, function.file(db), &global.base);
                let object = || !value && (!apart || refers());
                global.managed || global.pointer || object()
            }
            _ => false,
        },
        _ => false,
    }
}

/// Calls in calls that are followed.
const MAX_DEPTH: u32 = 8;

/// Whether what a function calls by this name computes from the values of its arguments, and from variables of the host's that no pointer
/// leads to.
fn reads_nothing(db: &dyn Db, function: FunctionItem<'_>, name: &str, depth: u32) -> bool {
    if computes(db, function, name) {
        return true;
    }
    let functions = functions_in(db, function, name);
    let alone = |called: FunctionItem<'_>| {
        let body = body(db, called);
        let values = body.params.iter().all(|param| {
            let ty = &body.binding(*param).ty;
            !ty.reference && (is_plain_type(&ctype::normalize(&ty.base)) || ty.base == "dim3")
        });
        let reads = |kind: &ExprKind| match kind {
            ExprKind::Call { name, .. } => !name
                .as_deref()
                .is_some_and(|name| reads_nothing(db, called, name, depth + 1)),
            kind => reads_memory_itself(db, called, kind, false),
        };
        values && called.has_body(db) && !body.exprs.iter().any(|expr| reads(&expr.kind))
    };
    depth < MAX_DEPTH && !functions.is_empty() && functions.into_iter().all(alone)
}

/// Whether an expression has another value in another round.
pub fn varies(host: &HostLoop<'_>, expr: ExprId) -> bool {
    let body = &host.function.body;
    all_in_expr(body, expr)
        .into_iter()
        .any(|e| host.local(e).is_some_and(|binding| host.changes(binding)))
}

/// The sizes of the launches.
pub struct Shape {
    /// The launch whose blocks are those of the loop.
    pub block: usize,
    /// For each launch so many threads of a block, where they are fewer.
    pub narrow: Vec<Option<u64>>,
    /// The launch that names the dynamic shared memory.
    pub shared: Option<usize>,
}

impl Shape {
    /// The built-in variables that are the GPU's own in a kernel's blocks.
    pub fn kept(&self, kernels: &Kernels<'_>, kernel: usize) -> &'static [&'static str] {
        let launches = kernels.of_launch.iter().zip(&self.narrow);
        let mut narrow = launches.filter(|(of, _)| **of == kernel).map(|(_, narrow)| narrow);
        match narrow.any(Option::is_some) {
            true => KEPT_THREADS,
            false => KEPT_BLOCK,
        }
    }
}

/// Finds blocks in which those of all launches run, in one stream.
pub fn shape(host: &HostLoop<'_>, kernels: &Kernels<'_>, refusals: &mut Refusals) -> Option<Shape> {
    let sites = &host.launches;
    let operand = |site: &Site<'_>, index: usize| site.launch.config.get(index).map(|e| host.flat(*e));
    let threads = |site: &Site<'_>| -> Option<u64> {
        site.facts
            .block
            .constant
            .map(|c| c.iter().fold(1, |all: u64, x| all.saturating_mul(*x)))
    };
    let block = (0..sites.len()).max_by_key(|at| {
        // One whose size isn't known is no block of one thread, written so.
        let known = threads(&sites[*at]);
        (known.is_none(), known, std::cmp::Reverse(*at))
    })?;
    let main = &sites[block];
    let mut narrow = vec![None; sites.len()];
    for (at, site) in sites.iter().enumerate() {
        let alike = operand(site, 1) == operand(main, 1)
            || site.facts.block.constant.is_some() && site.facts.block.constant == main.facts.block.constant;
        if alike {
            continue;
        }
        let found = effects(site.db, kernels.all.get(*kernels.of_launch.get(at)?)?.worker());
        let alone = found.barriers.is_empty() && found.warp.is_empty();
        let one_dimension = is_linear(&site.facts.block) && is_linear(&main.facts.block);
        match threads(site) {
            Some(few) if alone && (few == 1 || one_dimension && threads(main).is_some_and(|all| all >= few)) => {
                narrow[at] = Some(few);
            }
            _ => refusals.add(
                format!(
                    "`{}` and `{}` have blocks of different sizes: give them the same",
                    main.child_name(),
                    site.child_name()
                ),
                Some(site.place(site.facts.block.operand.span)),
            ),
        }
    }
    let shared = sites.iter().position(|site| {
        let zero = |e: &ExprId| api::is_zero(&host.function, *e);
        site.launch.config.get(2).is_some_and(|e| !zero(e))
    });
    if let Some(first) = shared {
        let other = sites.iter().find(|site| operand(site, 2) != operand(&sites[first], 2));
        if let Some(other) = other {
            refusals.add(
                "the launches of the loop have different amounts of dynamic shared memory: give them the same",
                Some(other.here()),
            );
        }
    }
    let stream = |site: &Site<'_>| match site.facts.stream {
        Stream::Null => None,
        _ => operand(site, 3),
    };
    if let Some(other) = sites.iter().find(|site| stream(site) != stream(main)) {
        refusals.add("the launches of the loop go into different streams", Some(other.here()));
    }
    Some(Shape { block, narrow, shared })
}
