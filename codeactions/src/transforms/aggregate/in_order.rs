//! Two launches of a thread whose order counts, as the second grid reads what the first has written. Two aggregators keep it: all grids of the
//! first launch are done before those of the second begin.
//!
//! That gives each thread the order that the stream gave it. Grids of different threads have no order in a stream of their own, and in the NULL
//! stream they may come in any order that keeps that of each thread.

use gridfuse_analysis::facts::launch::{Child, Stream};

use super::collect::Collection;
use super::group::Group;
use super::strategy::Strategy;
use crate::api::refusal::Refusals;
use crate::facts::cluster::Cluster;
use crate::facts::sequence;
use crate::facts::site::Site;

/// The launches of a kernel by their turns: indices of a cluster's launches.
pub struct InOrder {
    first: Vec<usize>,
    second: Vec<usize>,
}

impl InOrder {
    /// The two kernels that a kernel launches, where each thread launches all of one before any of the other, in the same stream, and the
    /// order counts. `None` where that isn't so, and where aggregators can't keep it.
    pub fn find(cluster: &Cluster<'_>, strategy: &dyn Strategy) -> Option<InOrder> {
        let [function] = cluster.functions.as_slice() else {
            return None;
        };
        if !strategy.keeps_order() || !function.is_kernel() || function.batch().is_some() {
            return None;
        }
        let sites = &cluster.sites;
        let child = |index: usize| match sites[index].facts.child {
            Child::Kernel(child) => Some(child),
            _ => None,
        };
        // By their place: the text says who comes first.
        let mut all: Vec<usize> = (0..sites.len()).collect();
        all.sort_by_key(|index| sites[*index].facts.span.start);
        let leading = child(*all.first()?)?;
        let (first, second): (Vec<usize>, Vec<usize>) =
            all.into_iter().partition(|index| child(*index) == Some(leading));
        let following = child(*second.first()?)?;
        // What is collected in turn is launched whenever the grid that it came from is done.
        if [leading, following].iter().any(|child| cluster.index(*child).is_some()) {
            return None;
        }
        let one_stream = |site: &Site<'_>| {
            let stream = &site.facts.stream;
            matches!(stream, Stream::Null | Stream::Created(_)) && *stream == sites[first[0]].facts.stream
        };
        let pairs = || first.iter().flat_map(|a| second.iter().map(move |b| (*a, *b)));
        let keeps = second.iter().all(|index| child(*index) == Some(following))
            && sites.iter().all(one_stream)
            && pairs().all(|(a, b)| sequence::precedes(&sites[a], sites[b].facts));
        let counts = || pairs().any(|(a, b)| sequence::depends(&sites[a], sites[b].id.index));
        (keeps && counts()).then_some(InOrder { first, second })
    }

    /// The launches whose order with this one is kept, by their index in the function.
    pub fn beside(&self, cluster: &Cluster<'_>, index: usize) -> Vec<u32> {
        let others = match self.first.contains(&index) {
            true => &self.second,
            false => &self.first,
        };
        others.iter().map(|other| cluster.sites[*other].id.index).collect()
    }

    /// The groups that collect them: the first and the second. Refused where launches of one kernel need several.
    pub fn of_groups(
        &self,
        groups: &[Group<'_>],
        collection: &Collection<'_>,
        refusals: &mut Refusals,
    ) -> Option<(usize, usize)> {
        let collects = |all: &[usize]| {
            groups.iter().position(|group| {
                group.launches.len() == all.len() && group.launches.iter().all(|(index, _)| all.contains(index))
            })
        };
        let found = collects(&self.first).zip(collects(&self.second));
        if found.is_none()
            && let Some(site) = self.second.first().map(|index| &collection.cluster.sites[*index])
        {
            refusals.add(
                format!(
                    "`{}` has to come after the grids that are launched before it, and launches of one of the two kernels differ in their \
                     template arguments or in the shape of their blocks",
                    site.child_name()
                ),
                Some(site.here()),
            );
        }
        found
    }
}
