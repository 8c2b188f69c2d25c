//! What aggregation asks of the launches, of the kernels and functions that launch, and of the children.

use gridfuse_analysis::base::place::FileRange;
use gridfuse_analysis::facts::effects::{Effects, effects};
use gridfuse_analysis::facts::launch::{self, LaunchFacts, Stream, is_scalar, launches};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::names::template_arguments;
use gridfuse_analysis::hir::resolve::Child as Launched;
use gridfuse_analysis::hir::{Builtin, ExprId, ExprKind, Name, StmtId, StmtKind};

use super::granularity::Granularity;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::emit::target;
use crate::facts::calls::is_plain_type;
use crate::facts::child::Child;
use crate::facts::cluster::Cluster;
use crate::facts::cluster::Function;
use crate::facts::members;
use crate::facts::movable;
use crate::facts::movable::Form;
use crate::facts::order;
use crate::facts::order::CreatedStream;
use crate::facts::pure;
use crate::facts::site::Site;
use crate::facts::surroundings::waits_for_children;
use crate::transforms::self_launch::is_builtin;

/// Refuses what would have to be written differently in the functions that take part: names of another
/// namespace.
pub fn refuse_other_scopes(cluster: &Cluster<'_>, refusals: &mut Refusals) {
    let scope = |name: &str| {
        name.rsplit_once("::")
            .map_or(String::new(), |(scope, _)| scope.to_owned())
    };
    // What a class's function names is found around the class.
    let of = |f: &Function<'_>| match f.item.signature(f.db).member && members::can_be_given(f.db, f.item) {
        true => scope(&scope(f.item.name(f.db))),
        false => scope(f.item.name(f.db)),
    };
    let scopes: Vec<String> = cluster.functions.iter().map(of).collect();
    if let Some(other) = scopes.iter().position(|s| *s != scopes[0]) {
        let function = &cluster.functions[other];
        refusals.add(
            format!(
                "`{}` and `{}` collect their launches together, and stand in different namespaces",
                cluster.functions[0].name(),
                function.name()
            ),
            Some(function.name_place()),
        );
    }
}

/// A kernel that waits for its children or orders them by events; or that launches in ways that aren't
/// understood as a launch.
pub fn refuse_what_needs_its_children(
    cluster: &Cluster<'_>,
    function: &Function<'_>,
    effects: &Effects,
    refusals: &mut Refusals,
) {
    let name = function.name();
    let who = format!("`{name}` or a function it calls");
    let waits = effects
        .syncs
        .iter()
        .map(|found| (waits_for_children(&who, &found.what), found));
    let events = effects
        .events
        .iter()
        .map(|found| (format!("{who} uses {}", found.what), found));
    for (what, found) in waits.chain(events) {
        if refusals.is_empty() {
            refusals.add(what, Some(found.place));
        }
    }
    let known = |place: &FileRange| {
        let here = |site: &Site<'_>| site.file == place.file && site.here().range.contains(place.range);
        cluster.sites.iter().any(here)
    };
    if let Some(found) = effects.launches.iter().find(|l| !known(&l.place)) {
        refusals.add(
            format!(
                "`{name}` calls a function that launches: a block that collects some launches and does others at once can \
                 hang (CUDA 13.0)"
            ),
            Some(found.place),
        );
    }
}

/// Assumptions or refusals because of the stream that a collected launch goes into; a created stream that is to be removed. `in_turn`: the
/// other launches of the function, by index, whose order with this one is kept.
pub fn understand_stream(
    site: &Site<'_>,
    in_turn: &[u32],
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'_>,
) -> Option<CreatedStream> {
    let tail = tail_launch(site);
    order::other_stream(site, &tail, order::AtOnce::Nothing, in_turn, refusals, edit);
    let Stream::Created(binding) = site.facts.stream else {
        return None;
    };
    let operand = site.facts.stream_operand.as_ref();
    let stream = order::created_stream(site, binding, in_turn);
    let name = operand.map_or("", |o| site.source(o.span)).to_owned();
    if let Some(other) = stream.other {
        let place = site.place(site.body.expr(other).span);
        refusals.add(
            format!("the stream `{name}` is used for more than this launch"),
            Some(place),
        );
        return None;
    }
    // What a macro stands for is a list without braces: where a label is in front of it, that needs a statement.
    let list_around = |s: &StmtId| {
        let mut lists = std::iter::successors(site.places.parent(*s), |list| site.places.parent(*list));
        lists.find(|list| {
            let stmt = site.body.stmt(*list);
            !matches!(stmt.kind, StmtKind::Block(_)) || site.source(stmt.span).starts_with('{')
        })
    };
    let removable = |s: &StmtId| match list_around(s).map(|list| &site.body.stmt(list).kind) {
        Some(StmtKind::Block(_)) => true,
        Some(StmtKind::Preprocessor { branches }) => branches.iter().any(|b| b.contains(s) && compiled_with(site, b)),
        _ => false,
    };
    let mut all = stream.declaration.iter().chain(&stream.create).chain(&stream.destroy);
    let clean = stream.create.len() == 1 && all.all(removable);
    if stream.declaration.is_none() || !clean {
        let place = operand.map(|o| site.place(o.span));
        refusals.add(format!("the stream `{name}` can't be removed cleanly"), place);
        return None;
    }
    order::shared_stream(site, &stream, &name, in_turn, refusals, edit);
    Some(stream)
}

/// Why a tail launch isn't collected, and where else it could stand.
fn tail_launch(site: &Site<'_>) -> String {
    let (parent, child) = (site.parent_name(), site.child_name());
    let is_leaf = matches!(site.facts.child, Launched::Kernel(child) if launches(site.db, child).is_empty());
    // What launches in turn may be a loop of grids, which the host doesn't know the end of.
    if !is_leaf {
        return "a tail launch runs after the launching grid; a collected launch doesn't wait for it".to_owned();
    }
    let own = launches(site.db, site.parent);
    let itself: Vec<&LaunchFacts<'_>> = own
        .iter()
        .filter(|facts| facts.child == Launched::Kernel(site.parent))
        .collect();
    let place = match itself.as_slice() {
        [] => format!("where `{parent}` is launched, right after it"),
        all if all.iter().all(|facts| facts.stream == Stream::TailLaunch) => {
            format!("from the host once the whole recursion of `{parent}` is done, if that is early enough")
        }
        // Each level needs what the one below it has done.
        _ => format!("from the host, level by level, after the grids of `{parent}` of that level"),
    };
    // Several of them run in order; the recursion itself stays.
    let mut all: Vec<String> = Vec::new();
    let others = own.iter().filter(|facts| facts.child != Launched::Kernel(site.parent));
    for facts in others.filter(|facts| facts.stream == Stream::TailLaunch) {
        let name = format!("`{}`", facts.kernel_name.as_deref().unwrap_or(child));
        if !all.contains(&name) {
            all.push(name);
        }
    }
    let all = match all.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last} in this order", others.join(", ")),
        _ => format!("`{child}`"),
    };
    format!("a tail launch can't be collected; launch {all} {place}")
}

/// Whether the launch stands in this branch of an `#if`, so that what else stands there is compiled with it or not at all.
fn compiled_with(site: &Site<'_>, branch: &[StmtId]) -> bool {
    let mut stmt = site.facts.statement;
    while let Some(inner) = stmt {
        if branch.contains(&inner) {
            return true;
        }
        stmt = site.places.parent(inner);
    }
    false
}

/// Blocks of several dimensions may differ between launches that are collected together: a block of these doesn't run as it is in a block of
/// another shape.
pub fn differs_in_shape(site: &Site<'_>, granularity: Granularity) -> bool {
    let block = &site.facts.block;
    let alike = block.operand.uniformity.level <= granularity.level() && !block.operand.changes_in_loop;
    block.constant.is_none() && !is_linear_block(site) && !alike
}

/// Refuses a launch because of its blocks' shapes.
pub fn refuse_shapes(site: &Site<'_>, refusals: &mut Refusals) {
    refusals.add(
        "the blocks of the child may have several dimensions and differ from launch to launch",
        Some(site.place(site.facts.block.operand.span)),
    );
}

/// Refuses a child whose body can't run with another `threadIdx`: its blocks run as parts of blocks of another shape, each thread as the one
/// that has its place in the order in which they make warps.
pub fn refuse_to_run_in_a_row(child: &Child<'_>, refusals: &mut Refusals) {
    let effects = effects(child.db, child.worker());
    movable::refuse_to_outline(child, Form::Thread, &[], &effects, refusals);
}

/// The block is sure to have one dimension.
pub fn is_linear_block(site: &Site<'_>) -> bool {
    let block = &site.facts.block;
    matches!(block.components, Some([_, None, None])) || is_linear(site, block.operand.expr) || is_template_number(site)
}

/// The block is also a template argument of the launch, where the child's template has a number: `child<Policy::threads><<<n,
/// Policy::threads>>>(…)`.
fn is_template_number(site: &Site<'_>) -> bool {
    let (Launched::Kernel(child), Some(list)) = (&site.facts.child, site.launch.template_args) else {
        return false;
    };
    let signature = child.signature(site.db);
    let text = child.text(site.db);
    let header = signature.template_params.map_or("", |list| list.text(&text));
    let block = lex::code_words(site.source(site.facts.block.operand.span));
    let number = |parameter: &String| {
        let declared = parameter.split('=').next().unwrap_or("");
        let (ty, name) = declared.trim().rsplit_once(char::is_whitespace)?;
        let plain = is_plain_type(ty.trim()) && lex::code_words(name).len() == 1;
        plain.then_some(())
    };
    let mut pairs = template_arguments(site.source(list))
        .into_iter()
        .zip(template_arguments(header));
    pairs.any(|(argument, parameter)| lex::code_words(&argument) == block && number(&parameter).is_some())
}

/// A number, or a local `dim3` made of one number that nothing changes.
fn is_linear(site: &Site<'_>, expr: ExprId) -> bool {
    let body = &site.body;
    match &body.expr(body.strip_parens(expr)).kind {
        ExprKind::Construct { ty, args } => {
            ty == "dim3" && matches!(args.as_slice(), [one] if is_scalar(site.db, site.parent, body, *one))
        }
        ExprKind::Name(Name::Local(binding)) => {
            pure::keeps_first_value(site.db, site.parent, body, *binding)
                && body
                    .initialiser(*binding)
                    .is_some_and(|i| matches!(body.expr(i).kind, ExprKind::Construct { .. }) && is_linear(site, i))
        }
        _ => false,
    }
}

/// The children of which each launch has just the blocks that a grid of its own would have, where functions that the child calls may read
/// `blockDim` themselves: all launches have the same constant block, or all hand on the block of the kernel that launches, which is one for
/// all threads that one aggregator serves. That holds for a kernel of the host; a kernel that is collected itself has to be such a
/// child. In others a block may have threads behind those that a launch has asked for.
pub fn children_with_kept_blocks<'db>(cluster: &Cluster<'db>) -> Vec<FunctionItem<'db>> {
    let child = |site: &Site<'db>| match site.facts.child {
        launch::Child::Kernel(child) => Some(child),
        _ => None,
    };
    let mut kept: Vec<FunctionItem<'db>> = Vec::new();
    for item in cluster.sites.iter().filter_map(child) {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    let all = kept.clone();
    loop {
        let holds = |item: &FunctionItem<'db>| {
            let mut blocks = (0..cluster.sites.len())
                .filter(|index| child(&cluster.sites[*index]) == Some(*item))
                .map(|index| {
                    let site = &cluster.sites[index];
                    if let Some(constant) = site.facts.block.constant {
                        return Some(Block::Constant(constant));
                    }
                    let function = &cluster.functions[cluster.site_of[index]];
                    let parent_keeps = !all.contains(&function.item) || kept.contains(&function.item);
                    let real = function.is_kernel() && function.batch().is_none() && parent_keeps;
                    handed_on(site).filter(|_| real)
                });
            let first = blocks.next().flatten();
            first.is_some() && blocks.all(|block| block == first)
        };
        let left: Vec<FunctionItem<'db>> = kept.iter().copied().filter(holds).collect();
        if left.len() == kept.len() {
            return kept;
        }
        kept = left;
    }
}

/// The block of a launch, as far as it is the same for all launches of a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Block {
    Constant([u64; 3]),
    /// So many dimensions of the launching kernel's block; the others are 1.
    HandedOn(usize),
}

/// The block is that of the launching kernel: `blockDim`, or `dim3(blockDim.x, blockDim.y)`.
fn handed_on(site: &Site<'_>) -> Option<Block> {
    let block = &site.facts.block;
    if is_builtin(site, block.operand.expr, Builtin::BlockDim) {
        return Some(Block::HandedOn(3));
    }
    let components = block.components?;
    let own = |axis: &usize| {
        let Some(Some(component)) = components.get(*axis) else {
            return false;
        };
        let component = site.body.expr(site.body.strip_parens(*component));
        matches!(&component.kind, ExprKind::Field { base, field, arrow: false }
            if *field == ["x", "y", "z"][*axis] && is_builtin(site, *base, Builtin::BlockDim))
    };
    let dimensions = (0..3).take_while(own).count();
    let others = components.iter().skip(dimensions).all(Option::is_none);
    (dimensions > 0 && others).then_some(Block::HandedOn(dimensions))
}

/// Refuses a child whose body can't be run as some block of a larger grid. `collected`: its own launches are collected, too. `kept`: the
/// built-in variables that functions which it calls may read, see [`movable::refuse_to_outline`].
pub fn refuse_child(site: &Site<'_>, child: &Child<'_>, collected: bool, kept: &[&str], refusals: &mut Refusals) {
    let db = site.db;
    let name = &child.name;
    let worker = child.worker();
    let effects = effects(db, worker);
    if collected {
        movable::refuse_to_outline_collecting(child, Form::Block, kept, &effects, refusals);
    } else {
        movable::refuse_to_outline(child, Form::Block, kept, &effects, refusals);
    }
    if child.file != site.file {
        target::refuse_unseen(site, child, refusals);
    }
    refuse_waits(child, &effects, refusals);
    let odd = order::operations(db, worker)
        .into_iter()
        .find(|(_, stream)| !matches!(stream, Some(Stream::Null | Stream::FireAndForget | Stream::Created(_))));
    if let Some((found, _)) = odd {
        refusals.add(
            format!(
                "`{name}` puts {} into a stream that depends on which grid it is",
                found.what
            ),
            Some(found.place),
        );
    }
    if collected {
        return;
    }
    let own = launches(db, worker);
    let odd = own
        .iter()
        .find(|l| !matches!(l.stream, Stream::Null | Stream::FireAndForget | Stream::Created(_)));
    if let Some(odd) = odd {
        let place = FileRange {
            file: worker.file(db),
            range: odd.span.shift(worker.start(db)),
        };
        refusals.add(
            format!("`{name}` launches into a stream that depends on which grid launches"),
            Some(place),
        );
    } else if effects.launches.len() > own.len() {
        let place = effects.launches.last().map(|l| l.place);
        refusals.add(format!("`{name}` calls functions that launch"), place);
    }
}

/// Refuses a child that waits for other threads or uses events. `effects` are those of its worker.
pub fn refuse_waits(child: &Child<'_>, effects: &Effects, refusals: &mut Refusals) {
    let name = &child.name;
    if let Some(wait) = effects.waits.first() {
        refusals.add(format!("`{name}` may wait for another thread"), Some(wait.place));
    }
    if let Some(event) = effects.events.first() {
        refusals.add(format!("`{name}` uses events: {}", event.what), Some(event.place));
    }
}

/// Refuses a kernel whose body can't move to a function.
pub fn refuse_to_move(parent: &Child<'_>, effects: &Effects, refusals: &mut Refusals) {
    if let Some(outlined) = &parent.outlined {
        refusals.add(
            format!(
                "the body of `{}` has been moved to `{}` by an earlier rewrite; take that back first",
                parent.name, outlined.name
            ),
            Some(parent.place()),
        );
    }
    movable::refuse_to_outline_collecting(parent, Form::Own, &[], effects, refusals);
}
