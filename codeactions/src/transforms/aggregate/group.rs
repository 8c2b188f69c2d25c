//! Launches that one aggregator collects.

use std::collections::BTreeMap;

use super::collect::Collection;
use super::eligibility::{differs_in_shape, is_linear_block};
use super::granularity::Granularity;
use super::shared_block::SharedBlock;
use super::strategy::Strategy;
use crate::api::refusal::Refusals;
use crate::edit::lex;
use crate::edit::names::{Names, plural};
use crate::emit::arena::Parent;
use crate::emit::launch_bounds;
use crate::emit::split::Split;
use crate::emit::uniform::Uniform;
use crate::facts::child::Child;
use crate::facts::instance;
use crate::facts::site::Site;

/// The launches that one aggregator collects: of one child, with the same template arguments.
pub struct Group<'a> {
    /// Index of the child.
    pub child: usize,
    /// Of each launch, its index and how its arguments are passed. Which are uniform is the same for all.
    pub launches: Vec<(usize, Split<'a>)>,
    /// For each function in which an aggregator is declared, what the uniform arguments are there.
    pub uniform: BTreeMap<usize, Vec<String>>,
    /// The aggregated kernel.
    pub kernel: String,
    /// The struct of the arguments that differ, with template arguments where it has some.
    pub record: String,
    /// The variable.
    pub aggregator: String,
    /// The parent's parameter with its memory, where that is not the one for all.
    pub arena: Option<String>,
    /// Of the children's warps only those run that have something to do: the index of the parameter that says how many threads have.
    pub threads: Option<usize>,
    /// The blocks differ in shape: they run in blocks of one dimension.
    pub shaped: bool,
    /// The function that runs a grid in the thread that launches it, where that may find no room.
    pub serial: Option<String>,
    /// The constant for the block size, where that is a template argument, too.
    pub block: Option<SharedBlock>,
    /// What an earlier group of the child has already.
    pub shares: Shares,
}

/// What is generated for an earlier group of the same child, and serves another one as well.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shares {
    /// The kernel, with the struct and the constant for the block size.
    pub kernel: bool,
    /// The struct of the arguments.
    pub record: bool,
    /// The function that runs a grid in one thread.
    pub serial: bool,
}

impl Group<'_> {
    /// The first launch's: says which parameters are uniform.
    pub fn split(&self) -> Option<&Split<'_>> {
        self.launches.first().map(|(_, split)| split)
    }
}

/// Puts the launches together that one aggregator can collect: those of one child with the same template arguments and, for
/// blocks of several dimensions that don't differ, the same block.
pub fn groups<'a>(
    collection: &'a Collection<'_>,
    parents: &[(usize, Parent<'_>)],
    strategy: &dyn Strategy,
    refusals: &mut Refusals,
) -> Vec<Group<'a>> {
    if !collection.is_complete() {
        return Vec::new();
    }
    let Collection {
        cluster,
        children,
        child_of,
        ..
    } = collection;
    let sites = &cluster.sites;
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (index, site) in sites.iter().enumerate() {
        let fits = |m: &&mut Vec<usize>| {
            m.first().is_some_and(|first| {
                child_of[*first] == child_of[index]
                    && alike(&sites[*first], site, &children[child_of[index]], strategy.granularity())
                    && strategy.fit_together(&sites[*first], site)
            })
        };
        match members.iter_mut().find(fits) {
            Some(group) => group.push(index),
            None => members.push(vec![index]),
        }
    }
    let members: Vec<(usize, Vec<usize>)> = members.into_iter().map(|m| (child_of[m[0]], m)).collect();
    let uniform = Uniform::find(cluster, children, &members, strategy.granularity().level());
    let mut groups = Vec::new();
    for ((child, members), (mut flags, mut texts)) in members.into_iter().zip(uniform) {
        strategy.leave_out_unknown(collection, parents, &children[child], &mut flags, &mut texts);
        let launches = members
            .iter()
            .map(|m| (*m, Split::of_instance(&sites[*m], &children[child], &flags, refusals)))
            .collect();
        let mut own = members.iter().map(|m| &sites[*m]);
        let shaped = own.any(|site| differs_in_shape(site, strategy.granularity()));
        groups.push(Group {
            child,
            launches,
            uniform: texts,
            kernel: String::new(),
            record: String::new(),
            aggregator: String::new(),
            arena: None,
            threads: None,
            shaped,
            serial: None,
            block: None,
            shares: Shares::default(),
        });
    }
    groups
}

/// Names what is generated for each group.
pub fn name(groups: &mut [Group<'_>], collection: &Collection<'_>, strategy: &dyn Strategy, names: &mut Names) {
    let several = groups.len() > 1;
    let texts = collection.cluster.texts();
    for index in 0..groups.len() {
        let (earlier, rest) = groups.split_at_mut(index);
        let Some(group) = rest.first_mut() else { continue };
        let child = &collection.children[group.child].name;
        strategy.complete(group, collection, several, names);
        group.aggregator = names.fresh_in(collection.children[group.child].db, &texts, &plural(child));
        let mut own = earlier.iter().filter(|other| other.child == group.child);
        if let Some(serial) = own.clone().find_map(|other| other.serial.as_ref())
            && group.serial.is_some()
        {
            group.serial = Some(serial.clone());
            group.shares.serial = true;
        }
        if let Some(twin) = own
            .clone()
            .find(|other| have_one_kernel(other, group, collection, strategy))
        {
            group.record.clone_from(&twin.record);
            group.kernel.clone_from(&twin.kernel);
            if let (Some(block), Some(of)) = (&mut group.block, &twin.block) {
                block.take_names(of);
            }
            (group.shares.kernel, group.shares.record) = (true, true);
            continue;
        }
        match own.find(|other| have_one_record(other, group, collection, strategy)) {
            Some(other) => {
                group.record.clone_from(&other.record);
                group.shares.record = true;
            }
            None => group.record = names.fresh(&format!("{child}_args")),
        }
        group.kernel = names.fresh(&format!("{child}_aggregated"));
    }
}

/// Whether the arguments that differ in launches of the same child are the same, and are those of launches by the same function. What runs in
/// the parent keeps its state by their struct, so that each has one of its own.
fn have_one_record(a: &Group<'_>, b: &Group<'_>, collection: &Collection<'_>, strategy: &dyn Strategy) -> bool {
    let function = |group: &Group<'_>| {
        let (site, _) = group.launches.first()?;
        collection.cluster.site_of.get(*site).copied()
    };
    let uniform = |group: &Group<'_>| -> Option<Vec<bool>> {
        Some(group.split()?.parts.iter().map(|part| part.uniform).collect())
    };
    !strategy.runs_in_parent()
        && function(a).is_some()
        && function(a) == function(b)
        && uniform(a) == uniform(b)
        && a.threads == b.threads
}

/// Whether the kernel of one group runs what another one collects, too: as another instance of the template that it is. Aggregators keep their
/// state by the kernel, so that each has one of its own.
fn have_one_kernel(a: &Group<'_>, b: &Group<'_>, collection: &Collection<'_>, strategy: &dyn Strategy) -> bool {
    let child = &collection.children[a.child];
    let sites = |group: &Group<'_>| -> Vec<&Site<'_>> {
        let launches = group.launches.iter();
        launches.map(|(site, _)| &collection.cluster.sites[*site]).collect()
    };
    let (of_a, of_b) = (sites(a), sites(b));
    let (Some(first), Some(other)) = (of_a.first(), of_b.first()) else {
        return false;
    };
    let same_block = match (&a.block, &b.block) {
        (Some(a), Some(b)) => a.is_like(b),
        (None, None) => first.facts.block.constant == other.facts.block.constant,
        _ => false,
    };
    let bounds = |sites: &[&Site<'_>]| launch_bounds::largest_block(sites.iter().copied());
    have_one_record(a, b, collection, strategy)
        && same_block
        && a.shaped == b.shaped
        && bounds(&of_a) == bounds(&of_b)
        && instance::are_others(first, other, child)
}

/// Whether one aggregator can collect both launches, given that they are of the same child.
fn alike(a: &Site<'_>, b: &Site<'_>, child: &Child<'_>, granularity: Granularity) -> bool {
    let shaped = |site: &Site<'_>| differs_in_shape(site, granularity);
    let blocks = match (shaped(a), shaped(b)) {
        (false, false) => block_words(a) == block_words(b),
        (a, b) => a == b,
    };
    template_words(a, child) == template_words(b, child) && blocks
}

fn template_words(site: &Site<'_>, child: &Child<'_>) -> Vec<String> {
    let written = instance::named(site, child);
    lex::code_words(&written).into_iter().map(str::to_owned).collect()
}

/// Empty for a block of one dimension, whose size may differ from launch to launch.
fn block_words<'a>(site: &'a Site<'_>) -> Vec<&'a str> {
    if is_linear_block(site) {
        return Vec::new();
    }
    lex::code_words(site.source(site.facts.block.operand.span))
}
