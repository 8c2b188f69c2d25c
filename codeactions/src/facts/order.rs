//! What a rewrite takes for granted about the order of child grids, given the stream that they are launched into.

use std::collections::BTreeSet;

use gridfuse_analysis::base::db::Db;
use gridfuse_analysis::base::span::Span;
use gridfuse_analysis::facts::dependence::{Access, Dependence, Doubt, Kind, Order, Touch};
use gridfuse_analysis::facts::effects::{Found, effects};
use gridfuse_analysis::facts::launch::{
    LaunchFacts, Launchers, Repeats, Stream, launches, statement_places, stream_of, takes_flat_blocks, who_launches,
};
use gridfuse_analysis::hir::items::FunctionItem;
use gridfuse_analysis::hir::stream_ordered::stream_ordered;
use gridfuse_analysis::hir::{self, ExprId, ExprKind, StmtId};

use crate::api::assumption::{self, Assumed, Assumption};
use crate::api::refusal::Reason;
use crate::api::refusal::Refusals;
use crate::edit::builder::EditBuilder;
use crate::edit::lex;
use crate::facts::called_again::{called_again, launched_again};
use crate::facts::cluster::Function;
use crate::facts::cluster::callers;
pub use crate::facts::created_stream::{CreatedStream, created_stream};
use crate::facts::gathered::gathered;
use crate::facts::handed_on::{handed_on, handed_on_between_iterations};
use crate::facts::passes::{Grids, passes};
use crate::facts::sequence::{comes_first, jumps, known, later, others_in_order, passes_by, precedes, threads_meet};
use crate::facts::site::Site;
use crate::facts::surface::surface_in_common;
use crate::facts::surroundings::callers_of_launch;
use crate::facts::swapped::swapped;

/// The assumptions under which the grids of this NULL-stream launch need no order among themselves and with others, but for
/// what is proven. Launches of one block into the NULL stream run one after the other; blocks don't wait for each other.
/// What the code in sight contradicts isn't assumed, it is refused. `in_turn`: the other launches of the function, by index, whose order with
/// this one the rewrite keeps.
pub fn null_stream(
    site: &Site<'_>,
    at_once: AtOnce,
    in_turn: &[u32],
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'_>,
) {
    require(assumptions(site, at_once.keeps(), in_turn), refusals, edit);
}

/// Which of the grids that a thread would have launched it runs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOnce {
    /// None.
    Nothing,
    /// Some, and it launches the others.
    Some,
    /// All.
    All,
}

impl AtOnce {
    /// Of which grids the order is kept.
    fn keeps(self) -> &'static [Among] {
        match self {
            AtOnce::Nothing => &[],
            AtOnce::Some => &[Among::Later],
            AtOnce::All => &[Among::Iterations, Among::Calls, Among::Later],
        }
    }
}

/// Assumes them, or refuses what the code contradicts.
fn require(all: Vec<Claim>, refusals: &mut Refusals, edit: &mut EditBuilder<'_>) {
    for Claim { assumed, against } in all {
        match against {
            Against::Contradicts => refusals.add(assumed.reason.text, assumed.reason.place),
            Against::Speaks => edit.assume(Assumed {
                contradicted: true,
                ..assumed
            }),
            Against::Open => edit.assume(assumed),
        }
    }
}

/// What accesses in sight say against an assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Against {
    /// Nothing that is certain.
    Open,
    /// One grid reads what another one writes, though that may be meant to be read at any time.
    Speaks,
    /// It's wrong.
    Contradicts,
}

/// What a rewrite takes for granted of blocks that may have several dimensions.
const ONE_THREAD: &str = "have one dimension, so that one thread of a block launches";

/// What to do where grids aren't independent.
const INSTEAD: &str = "use atomic operations, or give each grid memory of its own";

/// What is taken for granted, and what is known of that.
struct Claim {
    assumed: Assumed,
    against: Against,
}

impl Claim {
    /// The same, as a claim of another kind.
    fn about(self, kind: &'static Assumption) -> Claim {
        Claim {
            assumed: kind.of(self.assumed.reason),
            ..self
        }
    }
}

/// Grids that a rewrite needn't prove independent of those of a launch, as it keeps their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Among {
    /// Those of this launch that one thread launches in a loop.
    Iterations,
    /// Those of this launch that one thread launches in several calls of the launching function.
    Calls,
    /// Those of other launches that the same thread only comes to afterwards.
    Later,
}

/// The assumptions. `kept`: of which grids the rewrite keeps the order, and `in_turn`: with which other launches, by index.
fn assumptions(site: &Site<'_>, kept: &[Among], in_turn: &[u32]) -> Vec<Claim> {
    let child = site.child_name();
    let parent = site.parent_name();
    let known = known(site);
    let kernel = site.parent.signature(site.db).kernel;
    // Threads that take turns launch one each, one after the other.
    let turns = site.facts.turns && repeats(site);
    let single = kernel && !turns && matches!(site.facts.launchers, Launchers::OnePerBlock | Launchers::OnePerGrid);
    let calls = (!kernel).then(|| calls(site));
    let later = match kept.contains(&Among::Later) && !calls.is_some_and(|calls| calls.again) {
        true => later(site, known),
        false => Vec::new(),
    };
    let of_others = later.iter().filter(|(other, _)| !single || !passes_by(site, *other));
    let mut found: Vec<Claim> = of_other_threads(site, of_others).into_iter().collect();
    let in_loop = known
        .and_then(|known| known.iterations.as_ref())
        .filter(|_| comes_again(site));
    let open = |text: String, dependence: Option<&Dependence<'_>>, same: bool| {
        unless_proven(site, text, dependence, same, in_loop, INSTEAD)
    };
    if !single {
        let text = format!(
            "grids of `{child}` are independent of each other: those that different threads of a block launch (the NULL \
             stream runs them one at a time)"
        );
        let proven = known.is_some_and(|known| known.threads.is_none());
        if let Some(but) = same_elements(site, Grids::Threads).filter(|_| !proven) {
            let but = format!("{but}; {INSTEAD}");
            found.push(contradicted(site, &text, &but));
            return found;
        }
        found.extend(open(text, known.map(|k| &k.threads), true));
    } else if takes_flat_blocks(site.db, site.id) {
        let flat = flat_blocks(site);
        let claim = open(flat.reason.text, known.map(|k| &k.threads), false);
        found.extend(claim.map(|claim| claim.about(flat.kind)));
    }
    if comes_again(site) && !kept.contains(&Among::Iterations) {
        let text = format!(
            "grids of `{child}` are independent of each other: those that one thread launches in successive iterations (the \
             NULL stream runs them in order)"
        );
        let iterations = known.and_then(|k| k.iterations.as_ref());
        if let Some(wrong) = in_turns(site, &text, iterations) {
            found.push(wrong);
            return found;
        }
        found.extend(open(text, iterations, true));
    }
    if calls.is_some_and(|calls| calls.again) && !kept.contains(&Among::Calls) {
        let text = format!(
            "grids of `{child}` are independent of each other: those that one thread launches in several calls of `{parent}` (the \
             NULL stream runs them in order)"
        );
        if let Some(but) = called_again(site).or_else(|| same_elements(site, Grids::Calls)) {
            found.push(contradicted(site, &text, &but));
            return found;
        }
        found.extend(open(text, None, false));
    }
    if calls.is_some_and(|calls| calls.beside) {
        let text = format!(
            "grids of `{child}` are independent of other grids that kernels which call `{parent}` launch into the NULL stream"
        );
        found.extend(open(text, None, false));
    }
    found.extend(of_other_launches(site, kept, in_turn, &later, in_loop));
    found.extend(
        in_turn
            .iter()
            .filter_map(|other| between_iterations(site, *other, "the NULL stream")),
    );
    if !single {
        found.extend(of_others_in_turn(site, in_turn, known));
    }
    found
}

/// What is taken for granted about the other launches of the function and of those that it calls, but for those that come `later`.
fn of_other_launches(
    site: &Site<'_>,
    kept: &[Among],
    in_turn: &[u32],
    later: &[(u32, Option<&Dependence<'_>>)],
    in_loop: Option<&Dependence<'_>>,
) -> Vec<Claim> {
    let known = known(site);
    let (child, parent) = (site.child_name(), site.parent_name());
    let mut found = Vec::new();
    let open_text = |text: String| unless_proven(site, text, None, false, None, INSTEAD);
    let text =
        format!("grids of `{child}` are independent of other grids that `{parent}` launches into the NULL stream");
    let own = launches(site.db, site.parent);
    let effects = effects(site.db, site.parent);
    // Functions that the kernel calls launch, too.
    if effects.launches.len() > own.len() {
        found.extend(open_text(text));
        return found;
    }
    if let Some(unknown) = effects.unknown.first() {
        let text = format!("{text}, if {}, does so, too", unknown.what);
        found.extend(open_text(text));
    }
    let mut others = others_in_order(site, known);
    let is_earlier = |other: u32| {
        let other = own.get(other as usize);
        other.is_some_and(|other| comes_first(site, other, site.facts))
    };
    others.retain(|(other, _)| !in_turn.contains(other) && !later.iter().any(|(known, _)| known == other));
    let open = || others.iter().filter(|(_, d)| !d.is_some_and(Dependence::is_none));
    let instead = |other: u32| match kept.contains(&Among::Later) && is_earlier(other) {
        // Then its grids are done.
        true => format!("apply `serialize` to the launch of `{}` first", name_of(site, other)),
        false => instead(site, other),
    };
    if let Some((other, handed)) = open().find_map(|(other, _)| Some((*other, handed_on(site, *other)?))) {
        found.extend(unless_proven(site, text, Some(&handed), false, None, &instead(other)));
        return found;
    }
    if let Some(but) = open().find_map(|(other, _)| launched_again(site, *other)) {
        found.push(contradicted(site, &text, &but));
        return found;
    }
    // The one that says most against it.
    let conflict = others.iter().find(|(_, d)| matches!(d, Some(Dependence::Conflict(..))));
    if let Some((other, dependence)) = conflict.or(open().next()) {
        found.extend(unless_proven(site, text, *dependence, false, in_loop, &instead(*other)));
    }
    found
}

/// The assumption that this text says, with what the accesses in sight say against it; `None` where it is proven. `same`: it is about grids
/// of one launch. `in_loop`: what is known of the grids that one thread launches in a loop. `instead`: what to do where it is wrong.
fn unless_proven(
    site: &Site<'_>,
    text: String,
    dependence: Option<&Dependence<'_>>,
    same: bool,
    in_loop: Option<&Dependence<'_>>,
    instead: &str,
) -> Option<Claim> {
    if dependence.is_some_and(Dependence::is_none) {
        return None;
    }
    let wrong = |but: &str| format!("{}: {but}; {instead}", denied(&text));
    let surface = || surface_in_common(site).filter(|_| same);
    let (text, against) = match dependence {
        // Grids of one launch run the same code; what one launch writes for another one to read is ordered on purpose.
        Some(conflict @ Dependence::Conflict(a, b)) => {
            let but = both(site, a, b);
            if conflict.accumulates() || !same && conflict.shows_for_sure() {
                (wrong(&but), Against::Contradicts)
            } else {
                let speaks = if conflict.shows() {
                    Against::Speaks
                } else {
                    Against::Open
                };
                (with_accesses(&text, speaks, &but), speaks)
            }
        }
        _ => match surface() {
            Some(surface) => (wrong(&surface), Against::Contradicts),
            None => where_unknown(site, text, dependence, in_loop),
        },
    };
    let place = Some(site.here());
    let assumed = assumption::LAUNCHES_INDEPENDENT.of(Reason { text, place });
    Some(Claim { assumed, against })
}

/// An assumption of which it isn't known whether it holds, with the accesses in sight that may contradict it. `in_loop`: what is known of
/// the grids that one thread launches in a loop, where it does.
fn where_unknown(
    site: &Site<'_>,
    text: String,
    dependence: Option<&Dependence<'_>>,
    in_loop: Option<&Dependence<'_>>,
) -> (String, Against) {
    let of_loop = dependence.is_some() && dependence == in_loop;
    let gathers = gathered(site).filter(|_| of_loop);
    let gathers = gathers.map(|(read, write)| two_accesses(site, &read, &write));
    let on_purpose = gathers.is_some() || of_loop && is_shifted(site, in_loop);
    let found = dependence.and_then(|found| neighbours(site, found));
    match gathers.or(found) {
        Some(but) => {
            let against = match on_purpose {
                true => Against::Speaks,
                false => Against::Open,
            };
            (with_accesses(&text, against, &but), against)
        }
        None => (text, Against::Open),
    }
}

/// An assumption with the accesses that may contradict it, or do.
fn with_accesses(text: &str, against: Against, accesses: &str) -> String {
    // These are apart where one thread launches, as it takes for granted.
    if text.contains(ONE_THREAD) {
        return format!("{text}; otherwise {accesses}");
    }
    match against {
        Against::Open => format!("{text}; check it: {accesses}"),
        Against::Speaks | Against::Contradicts => format!("{text}; the code contradicts it: {accesses}"),
    }
}

/// The contrary of an assumption: the grids that aren't independent come first, for the reason follows.
///
/// ```text
/// grids of `k` are independent of each other: those that one thread launches (the NULL stream runs them in order)
/// grids of `k` that one thread launches aren't independent of each other
/// ```
fn denied(text: &str) -> String {
    if let Some((grids, which)) = text.split_once(" are independent of each other: those that ") {
        let which = which.split_once(" (").map_or(which, |(which, _)| which);
        return format!("{grids} that {which} aren't independent of each other");
    }
    let several = "may have several dimensions, so that several threads of a block launch";
    text.replacen("are independent", "aren't independent", 1)
        .replacen(ONE_THREAD, several, 1)
}

/// What is taken for granted about launches whose order with this one is kept for each thread alone, and that come after it: other threads
/// may launch theirs before this one, and make sure that they have.
fn of_others_in_turn(site: &Site<'_>, in_turn: &[u32], known: Option<&Order<'_>>) -> Option<Claim> {
    let all = launches(site.db, site.parent);
    let comes_later = |other: u32| all.get(other as usize).is_some_and(|other| precedes(site, other));
    let others = others_in_order(site, known);
    let later = others
        .iter()
        .filter(|(other, _)| in_turn.contains(other) && comes_later(*other));
    of_other_threads(site, later).filter(|_| threads_meet(site))
}

/// What is taken for granted about this launch, of which a thread may get to the next one before it has done what another launch, by index,
/// has in another iteration, where the order within an iteration is kept: that those are independent. `stream`: what keeps that order.
fn between_iterations(site: &Site<'_>, other: u32, stream: &str) -> Option<Claim> {
    let theirs = launches(site.db, site.parent).get(other as usize)?;
    let loops = |facts: &LaunchFacts<'_>| -> Vec<StmtId> { facts.loops.iter().map(|l| l.stmt).collect() };
    let (own, their_loops) = (loops(site.facts), loops(theirs));
    // Of the innermost loop around both.
    let around = *own.iter().find(|stmt| their_loops.contains(stmt))?;
    if !precedes(site, theirs) {
        return None;
    }
    let (child, other_child) = (site.child_name(), name_of(site, other));
    let text = format!(
        "grids of `{child}` are independent of those of `{other_child}` that are launched in other iterations ({stream} runs them in order)"
    );
    Some(
        match handed_on_between_iterations(site, other, site.body.stmt(around).span) {
            Some(Dependence::Conflict(a, b)) => {
                contradicted(site, &text, &format!("{}; {INSTEAD}", both(site, &a, &b)))
            }
            _ => Claim {
                assumed: assumption::LAUNCHES_INDEPENDENT.of(Reason {
                    text,
                    place: Some(site.here()),
                }),
                against: Against::Open,
            },
        },
    )
}

/// The name of the kernel of another launch of the function, by index.
fn name_of<'s>(site: &'s Site<'_>, other: u32) -> &'s str {
    let other = launches(site.db, site.parent).get(other as usize);
    other
        .and_then(|facts| facts.kernel_name.as_deref())
        .unwrap_or("the other kernel")
}

/// What is taken for granted about launches that each thread gets to `later`: a thread that runs its own grid at once has done so by then,
/// while other threads of its block may have launched theirs already.
fn of_other_threads<'a, 'db: 'a>(
    site: &Site<'_>,
    later: impl Iterator<Item = &'a (u32, Option<&'a Dependence<'db>>)> + Clone,
) -> Option<Claim> {
    let all = launches(site.db, site.parent);
    let open = later.filter(|(_, found)| !found.is_some_and(Dependence::is_none));
    let names: BTreeSet<String> = open
        .clone()
        .filter_map(|(other, _)| all.get(*other as usize)?.kernel_name.as_ref())
        .map(|name| format!("`{name}`"))
        .collect();
    let first = open.clone().next()?;
    let child = site.child_name();
    let names: Vec<String> = names.into_iter().collect();
    let text = format!(
        "grids of `{child}` are independent of those of {} that other threads of a block launch (the NULL stream runs them one at a \
         time)",
        names.join(", ")
    );
    // Two that change the same place in turn do so whoever launches them.
    let adds = open.filter_map(|(_, found)| *found).find(|found| found.accumulates());
    Some(match adds {
        Some(Dependence::Conflict(a, b)) => contradicted(site, &text, &format!("{}; {INSTEAD}", both(site, a, b))),
        _ => Claim {
            assumed: assumption::LAUNCHES_INDEPENDENT.of(Reason {
                text,
                place: all.get(first.0 as usize).map(|other| site.place(other.span)),
            }),
            against: Against::Open,
        },
    })
}

/// What is wrong with an assumption about the iterations of a loop whose launches are given buffers by turns, or go over the same ones.
fn in_turns(site: &Site<'_>, text: &str, iterations: Option<&Dependence<'_>>) -> Option<Claim> {
    let but = against_iterations(site).filter(|_| !iterations.is_some_and(Dependence::is_none))?;
    Some(contradicted(site, text, &but))
}

/// An assumption that is wrong, and why.
fn contradicted(site: &Site<'_>, text: &str, but: &str) -> Claim {
    Claim {
        assumed: assumption::LAUNCHES_INDEPENDENT.of(Reason {
            text: format!("{}: {but}", denied(text)),
            place: Some(site.here()),
        }),
        against: Against::Contradicts,
    }
}

/// What contradicts that the grids that one thread launches in a loop are independent.
fn against_iterations(site: &Site<'_>) -> Option<String> {
    swapped(site).or_else(|| same_elements(site, Grids::Iterations))
}

/// What contradicts that these grids are independent: they go over the same elements.
fn same_elements(site: &Site<'_>, grids: Grids) -> Option<String> {
    let (write, read) = passes(site, grids)?;
    let both = two_accesses(site, &read, &write);
    Some(format!("they go over the same elements ({both})"))
}

/// A read and a write, which may be one access, each with its line.
fn two_accesses(site: &Site<'_>, read: &Access<'_>, write: &Access<'_>) -> String {
    let touch = |access: &Access<'_>| place_of(site, access.function, access.span, access.kind);
    if (write.span, write.function) == (read.span, read.function) {
        format!("{} in each of them", touch(write))
    } else {
        format!("{}, and {}", touch(read), touch(write))
    }
}

/// What to do where one of two kernels goes on with what the other one, by index, has written.
fn instead(site: &Site<'_>, other: u32) -> String {
    let child = site.child_name();
    let facts = launches(site.db, site.parent).get(other as usize);
    let other = facts.and_then(|facts| facts.kernel_name.as_deref());
    let (Some(facts), Some(other)) = (facts, other.filter(|other| *other != child)) else {
        return INSTEAD.to_owned();
    };
    if who_launches(site.db, site.id) == Launchers::OnePerGrid {
        let from = if comes_again(site) {
            "from a loop on the host"
        } else {
            "from the host"
        };
        return format!("launch `{child}` and `{other}` {from}");
    }
    let together = format!("let one block do what `{child}` and `{other}` do, with `__syncthreads()` between");
    let first = match comes_first(site, site.facts, facts) {
        true => Some(child),
        false => Some(other).filter(|_| comes_first(site, facts, site.facts)),
    };
    match first {
        Some(first) => format!("apply `serialize` to the launch of `{first}` first, or {together}"),
        None => together,
    }
}

/// The assumption of a rewrite that relies on one thread of a block launching, where [`takes_flat_blocks`].
pub fn flat_blocks(site: &Site<'_>) -> Assumed {
    let (parent, child) = (site.parent_name(), site.child_name());
    assumption::ONE_DIMENSIONAL_BLOCKS.of(Reason {
        text: format!("blocks of `{parent}` {ONE_THREAD} grids of `{child}`"),
        place: Some(site.here()),
    })
}

/// Memory that is set or copied in the stream of a launch, by the launching function and by those that call it or that it calls: what
/// a rewrite that keeps no such order takes for granted, or refuses.
pub fn stream_operations(site: &Site<'_>, refusals: &mut Refusals, edit: &mut EditBuilder<'_>) {
    if site.facts.stream == Stream::FireAndForget {
        return;
    }
    let (parent, child) = (site.parent_name(), site.child_name());
    let mut refuse = |found: &Found| {
        refusals.add(
            format!(
                "the stream runs `{}` and the grids of `{child}` in the order in which they are put there, and they may use the same \
                 memory; put one of them into a stream of its own, if the order doesn't matter",
                found.what
            ),
            Some(found.place),
        );
    };
    let effects = effects(site.db, site.parent);
    let beside = known(site).map_or(&[][..], |known| &known.operations);
    for found in &effects.operations {
        let own = beside.iter().find(|operation| {
            let place = site.place(site.body.expr(operation.expr).span);
            place.file == found.place.file && place.range.contains(found.place.range)
        });
        match own {
            Some(own) if !shares_stream(&own.stream, &site.facts.stream) || own.dependence.is_none() => {}
            Some(own) if !own.same_memory => edit.assume(assumption::OPERATIONS_INDEPENDENT.of(Reason {
                text: format!(
                    "grids of `{child}` are independent of `{}`, which `{parent}` puts into the same stream (a stream runs them in order)",
                    found.what
                ),
                place: Some(found.place),
            })),
            _ => refuse(found),
        }
    }
    // Whoever calls a device function may have put something into the stream before.
    for caller in callers_of_launch(site).all {
        let theirs = gridfuse_analysis::facts::effects::effects(site.db, caller);
        let more = theirs
            .operations
            .iter()
            .filter(|found| !effects.operations.contains(found));
        more.for_each(&mut refuse);
    }
}

/// What goes into the one stream and into the other may be in order.
fn shares_stream(operation: &Stream, launch: &Stream) -> bool {
    match (operation, launch) {
        // Nothing is in order with these; and what is in the tail stream comes after all grids, where they are launched or not.
        (Stream::FireAndForget, _) | (Stream::TailLaunch, Stream::Null | Stream::Created(_) | Stream::PerThread) => {
            false
        }
        (Stream::Other, _) | (_, Stream::Other) => true,
        (operation, launch) => operation == launch,
    }
}

/// What a function and those that it calls put into streams beside launches, each with its stream, where that is known.
pub fn operations<'db>(db: &'db dyn Db, function: FunctionItem<'db>) -> Vec<(Found, Option<Stream>)> {
    let body = hir::body(db, function);
    let (file, start) = (function.file(db), function.start(db));
    let stream = |found: &Found| {
        let mut calls = body.exprs.iter().filter_map(|expr| match &expr.kind {
            ExprKind::Call {
                name: Some(name), args, ..
            } if expr.span.shift(start).contains(found.place.range) && found.place.file == file => {
                stream_ordered(name).map(|(_, at)| stream_of(db, function, args.get(at).copied()))
            }
            _ => None,
        });
        calls.next()
    };
    let all = &effects(db, function).operations;
    all.iter().map(|found| (found.clone(), stream(found))).collect()
}

/// What a rewrite that keeps no order among grids takes for granted because of the stream that they go into, or why it refuses that;
/// but for a stream that the launching function creates. `tail`: why not for a tail launch.
/// `in_turn`: see [`null_stream`].
pub fn other_stream(
    site: &Site<'_>,
    tail: &str,
    at_once: AtOnce,
    in_turn: &[u32],
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'_>,
) {
    let place = site.facts.stream_operand.as_ref().map(|o| site.place(o.span));
    stream_operations(site, refusals, edit);
    match &site.facts.stream {
        Stream::FireAndForget | Stream::Created(_) => {}
        Stream::Null => null_stream(site, at_once, in_turn, refusals, edit),
        Stream::TailLaunch => refusals.add(tail, place),
        Stream::PerThread => refusals.add(
            "launches into each thread's own stream (cudaStreamPerThread, `--default-stream per-thread`) are not supported",
            place,
        ),
        Stream::Other => refusals.add("which stream it goes into isn't known", place),
    }
}

/// What the threads that call a device function with launches do beside one call of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Calls {
    /// One thread may call it more than once.
    again: bool,
    /// One of its callers may launch something by itself, or call other functions that do.
    beside: bool,
}

/// Looks at the calls of the launching function, and at the calls of its callers. What isn't understood, or not in sight, may be anything.
fn calls(site: &Site<'_>) -> Calls {
    const ANYTHING: Calls = Calls {
        again: true,
        beside: true,
    };
    let db = site.db;
    let own = effects(db, site.parent).launches.len();
    let mut found = Calls {
        again: false,
        beside: false,
    };
    let mut seen = Vec::new();
    let mut todo = vec![site.parent];
    while let Some(item) = todo.pop() {
        if seen.len() > 100 {
            return ANYTHING;
        }
        if seen.contains(&item) {
            // By two ways, or around.
            found.again = true;
            continue;
        }
        seen.push(item);
        found.beside |= effects(db, item).launches.len() > own;
        if item.signature(db).kernel {
            continue;
        }
        let mut refusals = Refusals::default();
        let calls = callers(&Function::new(db, item), &mut refusals);
        if calls.is_empty() || !refusals.is_empty() {
            return ANYTHING;
        }
        for (number, (caller, expr)) in calls.iter().enumerate() {
            let body = hir::body(db, *caller);
            let loops = statement_places(db, *caller).loops_around(&body, *expr);
            let same = |(other, _): &(FunctionItem<'_>, ExprId)| other == caller;
            let twice = calls[..number].iter().any(same);
            found.again |= jumps(&body) || !loops.is_empty() || twice;
            if !twice {
                todo.push(*caller);
            }
        }
        // A thread of one kernel is none of another one, but it may get to both of two device functions.
        let kernel = |(caller, _): &(FunctionItem<'_>, ExprId)| caller.signature(db).kernel;
        found.again |= calls.len() > 1 && !calls.iter().all(kernel);
    }
    found
}

/// Two accesses that contradict an assumption.
fn both(site: &Site<'_>, a: &Touch<'_>, b: &Touch<'_>) -> String {
    let place = |touch: &Touch<'_>| place_of(site, touch.function, touch.span, touch.kind);
    if a == b {
        format!("{} in each of them", place(a))
    } else {
        format!("{}, and {}", place(a), place(b))
    }
}

/// What may contradict an assumption where the analysis can't tell: a grid reads other elements of an array than it writes. One that reads
/// and writes the same elements says nothing.
fn neighbours(site: &Site<'_>, found: &Dependence<'_>) -> Option<String> {
    let (read, write) = read_and_written(found)?;
    let (read_code, write_code) = (code(site, read), code(site, write));
    let array = |code: &[String]| code.iter().position(|word| word == "[").map(|at| code[..at].to_vec());
    let same = array(&read_code).is_some() && array(&read_code) == array(&write_code);
    (same && read_code != write_code).then(|| both(site, read, write))
}

/// Whether their places differ by numbers, as in `h[i - 1]` and `h[i]`: each step of a wavefront reads what the one before has written.
/// What one thread launches in a loop, it launches in that order.
fn is_shifted(site: &Site<'_>, found: Option<&Dependence<'_>>) -> bool {
    found.and_then(read_and_written).is_some_and(|(read, write)| {
        let (read, write) = (code(site, read), code(site, write));
        read != write && without_offsets(&read) == without_offsets(&write)
    })
}

/// Two accesses that may be to the same place, of which one reads and one writes.
fn read_and_written<'a, 'db>(found: &'a Dependence<'db>) -> Option<(&'a Touch<'db>, &'a Touch<'db>)> {
    let Dependence::Unknown(Doubt { pair: Some((a, b)), .. }) = found else {
        return None;
    };
    match (a.kind, b.kind) {
        (Kind::Read, Kind::Write(_)) => Some((a, b)),
        (Kind::Write(_), Kind::Read) => Some((b, a)),
        _ => None,
    }
}

/// What stands where something is accessed, word by word.
fn code(site: &Site<'_>, touch: &Touch<'_>) -> Vec<String> {
    let text = touch.function.file(site.db).text(site.db);
    let span = touch.span.shift(touch.function.start(site.db));
    lex::code_words(span.text(&text))
        .into_iter()
        .map(str::to_owned)
        .collect()
}

/// Words of a subscript without parentheses and without the numbers that are added or taken away.
fn without_offsets(words: &[String]) -> Vec<&str> {
    let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    let mut left: Vec<&str> = Vec::new();
    for word in words
        .iter()
        .map(String::as_str)
        .filter(|word| !matches!(*word, "(" | ")"))
    {
        match left.last() {
            Some(&("+" | "-")) if is_number(word) => {
                left.pop();
            }
            _ => left.push(word),
        }
    }
    left
}

/// `line 7 writes `keys[i]``
fn place_of(site: &Site<'_>, function: FunctionItem<'_>, span: Span, kind: Kind) -> String {
    let file = function.file(site.db);
    let text = file.text(site.db);
    let range = span.shift(function.start(site.db));
    let line = text.get(..range.start as usize).unwrap_or("").matches('\n').count() + 1;
    let at = match file.path(site.db).file_name() {
        Some(name) if file != site.file => format!("line {line} of {}", name.to_string_lossy()),
        _ => format!("line {line}"),
    };
    let code: Vec<&str> = range.text(&text).split_whitespace().collect();
    format!("{at} {} `{}`", kind.verb(), code.join(" "))
}

/// One thread may come to the launch more than once: by a loop that isn't left right after it, or by a jump back to a label.
pub(super) fn comes_again(site: &Site<'_>) -> bool {
    let around: Vec<StmtId> = site.facts.loops.iter().map(|l| l.stmt).collect();
    jumps(&site.body) || !around.is_empty() && !Repeats::of(&site.body).among(site.facts.expr, &around).is_empty()
}

/// The launch may happen more than once, by whatever threads.
fn repeats(site: &Site<'_>) -> bool {
    !site.facts.loops.is_empty() || jumps(&site.body)
}

/// The assumption for a stream that several launches share; none, when only iterations share it and they are proven independent. What
/// the code in sight contradicts is refused. `in_turn`: the other launches of the function, by index, whose order with this one is kept.
pub fn shared_stream(
    site: &Site<'_>,
    created: &CreatedStream,
    stream: &str,
    in_turn: &[u32],
    refusals: &mut Refusals,
    edit: &mut EditBuilder<'_>,
) {
    if !created.each_time {
        let turns = in_turn.iter();
        require(
            turns
                .filter_map(|other| between_iterations(site, *other, "a stream"))
                .collect(),
            refusals,
            edit,
        );
    }
    let iterations = known(site).and_then(|k| k.iterations.as_ref());
    let only_iterations = created.create.len() == 1 && created.other.is_none();
    if created.one_launch() || only_iterations && iterations.is_some_and(Dependence::is_none) {
        return;
    }
    let why = "independent of each other: those that one thread launches (a stream runs them in order)";
    let beside = launches(site.db, site.parent);
    let together = |other: u32| {
        beside
            .get(other as usize)
            .is_some_and(|l| l.stream == site.facts.stream)
    };
    let others = known(site).map_or(&[][..], |k| &k.others);
    let one = created.create.len() == 1;
    let in_turns = against_iterations(site)
        .filter(|_| created.shared_by_iterations && !iterations.is_some_and(Dependence::is_none));
    if let Some(but) = in_turns {
        let text = format!("grids in `{stream}` aren't {why}: {but}");
        refusals.add(text, Some(site.here()));
        return;
    }
    let others = others
        .iter()
        .filter(|(other, _)| one && together(*other) && !in_turn.contains(other))
        .map(|(_, d)| d);
    let handed = beside
        .iter()
        .enumerate()
        .filter(|(index, facts)| *index != site.id.index as usize && facts.stream == site.facts.stream)
        .filter(|(index, _)| !in_turn.contains(&(*index as u32)))
        .find_map(|(index, _)| handed_on(site, index as u32));
    let again = iterations.filter(|d| created.shared_by_iterations && d.accumulates());
    let against = again.or_else(|| others.into_iter().find(|d| d.shows_for_sure()));
    if let Some(Dependence::Conflict(a, b)) = against.or(handed.as_ref().filter(|_| one)) {
        let text = format!("grids in `{stream}` aren't {why}: {}; {INSTEAD}", both(site, a, b));
        refusals.add(text, Some(site.here()));
        return;
    }
    match iterations.filter(|_| only_iterations) {
        Some(Dependence::Conflict(a, b)) => {
            let but = both(site, a, b);
            edit.assume(assumption::LAUNCHES_INDEPENDENT.of(Reason {
                text: format!("grids in `{stream}` are {why}; check it: {but}"),
                place: Some(site.here()),
            }));
        }
        _ => edit.assume(assumption::LAUNCHES_INDEPENDENT.of(Reason {
            text: format!("grids in `{stream}` are {why}"),
            place: Some(site.here()),
        })),
    }
}
