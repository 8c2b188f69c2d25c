//! How much memory the launches of a thread take in an arena.

use gridfuse_analysis::facts::launch::{Bound, launch_counts};
use gridfuse_analysis::hir::Type;
use gridfuse_analysis::hir::included::included_files;

use crate::edit::argument::named;
use crate::facts::child::Child;
use crate::facts::site::Site;
use crate::facts::sizes::size_of;

/// What `gridfuse::arena_for` gives a thread by default.
const DEFAULT_BYTES: u64 = 64;

/// What a record takes besides its arguments, with the number of blocks before it.
const RECORD_BYTES: u64 = 20;

/// An argument whose type isn't known is taken to have so many bytes, where its struct can't be named.
const UNKNOWN_BYTES: u64 = 64;

/// So many launches are expected where a loop has no known number of iterations. Further ones go out one by one.
const LAUNCHES_IN_LOOP: u64 = 4;

/// More iterations than this get no room of their own.
const MOST_LAUNCHES: u64 = 32;

/// Of a grid of few threads that launch often there is room for so many launches in all: what finds none goes to the device's heap, where
/// 8,000 launches of one thread took thirty times as long as the original (the newcomer's matrix of tests/gpu/measure.sh).
const LAUNCHES_OF_FEW_THREADS: u64 = 1 << 14;

/// The launches that one aggregator collects.
pub struct Collected<'a, 'db> {
    /// Their child.
    pub child: &'a Child<'db>,
    /// The struct of the arguments that differ; `None` where it depends on template parameters.
    pub record: Option<&'a str>,
    /// Where that struct stands: behind this offset in the child's file.
    pub behind: u32,
    /// The types of the arguments.
    pub fields: Vec<&'a Type>,
    /// How many each thread is expected to have.
    pub launches: u64,
    /// How many it may have; `u64::MAX` where nothing bounds them.
    pub most: u64,
}

impl Collected<'_, '_> {
    /// For how many launches of a thread there should be room where a launch by the host starts so many threads.
    fn room(&self, threads: Option<u64>) -> u64 {
        let few = threads.map_or(0, |threads| LAUNCHES_OF_FEW_THREADS / threads.max(1));
        self.launches.max(self.most.min(few))
    }
}

/// How many launches a thread is expected to have at a site; `repeated`: its function is called more than once.
pub fn launches_at(site: &Site<'_>, repeated: bool) -> u64 {
    let counts = launch_counts(site.db, site.parent);
    let here = counts.get(site.id.index as usize).map(|c| &c.per_thread.at_most);
    let here = match here {
        Some(Bound::Constant(n)) => (*n).clamp(1, MOST_LAUNCHES),
        _ => LAUNCHES_IN_LOOP,
    };
    let called = if repeated { LAUNCHES_IN_LOOP } else { 1 };
    (here * called).min(MOST_LAUNCHES)
}

/// How many launches a thread may have at a site, over however many iterations and calls.
pub fn most_launches_at(site: &Site<'_>, repeated: bool) -> u64 {
    let counts = launch_counts(site.db, site.parent);
    match counts.get(site.id.index as usize).map(|c| &c.per_thread.at_most) {
        Some(Bound::Constant(n)) if !repeated => *n,
        _ => u64::MAX,
    }
}

/// How many threads a launch by the host starts, where that is a constant.
fn threads(host: &Site<'_>) -> Option<u64> {
    let product = |dims: Option<[u64; 3]>| dims?.into_iter().try_fold(1, u64::checked_mul);
    product(host.facts.grid.constant)?.checked_mul(product(host.facts.block.constant)?)
}

/// The argument `bytes_per_thread` of `arena_for` at a launch by the host; `None` where the default is enough.
pub fn bytes_per_thread(host: &Site<'_>, collected: &[Collected<'_, '_>]) -> Option<String> {
    let threads = threads(host);
    let known =
        |c: &Collected<'_, '_>| size_of_all(&c.fields, None).map(|bytes| (RECORD_BYTES + bytes) * c.room(threads));
    if collected.iter().all(|c| known(c).is_some_and(|b| b <= DEFAULT_BYTES)) {
        return None;
    }
    let visible: Option<Vec<String>> = collected.iter().map(|c| visible(host, c)).collect();
    if let Some(mut records) = visible {
        records.dedup();
        let launches = collected.iter().map(|c| c.room(threads)).max().unwrap_or(1);
        let launches = if launches > 1 {
            named("launches_per_thread", &launches.to_string())
        } else {
            String::new()
        };
        return Some(format!("gridfuse::room_for<{}>({launches})", records.join(", ")));
    }
    let most = collected.iter().map(|c| {
        let args = size_of_all(&c.fields, Some(UNKNOWN_BYTES)).unwrap_or(UNKNOWN_BYTES);
        (RECORD_BYTES + args) * c.room(threads)
    });
    most.max().map(|bytes| bytes.to_string())
}

/// The name of the arguments' struct at a host launch, if that stands behind it.
fn visible(host: &Site<'_>, collected: &Collected<'_, '_>) -> Option<String> {
    let child = collected.child;
    let there = stands_behind(host, child, collected.behind);
    let record = collected.record.filter(|_| there)?;
    Some(crate::facts::qualified::qualified(host, child, record))
}

/// Whether a launch by the host stands where it sees what is written behind an offset in a child's file.
pub fn stands_behind(host: &Site<'_>, child: &Child<'_>, behind: u32) -> bool {
    if host.file == child.file {
        host.start > behind
    } else {
        included_files(host.db, host.file).contains(&child.file)
    }
}

/// At least what a struct with these fields has; `unknown` stands for a field whose type isn't known.
fn size_of_all(fields: &[&Type], unknown: Option<u64>) -> Option<u64> {
    let mut bytes = 0;
    let mut alignment = 4;
    for ty in fields {
        let (size, align) = size_of(ty).or(unknown.map(|size| (size, 16)))?;
        bytes = u64::next_multiple_of(bytes, align) + size;
        alignment = alignment.max(align);
    }
    Some(bytes.next_multiple_of(alignment))
}
