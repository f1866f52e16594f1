//! Pools: nodes that only jobs of the queue of the same name may use.
//!
//! A pool is a mark that its nodes bear and its jobs need. Where no job names a pool in `queue`
//! there are none, and every node is open to all. A machine whose rows name several pools moves:
//! what runs there stays, and from then on only jobs of the new pool start there.

use std::collections::BTreeMap;

use hostler_core::id::{Features, NodeId};
use hostler_core::units::Time;

use crate::trace::{Cluster, NodeRow, TextId, Trace};
use crate::world::{Move, Site};

/// The marks of the pools, by name.
#[derive(Debug, Default)]
pub(super) struct Pools(BTreeMap<String, Features>);

impl Pools {
    /// Pools of the cluster that jobs name.
    pub(super) fn new(trace: &Trace, cluster: &Cluster) -> Pools {
        let mut pools = BTreeMap::new();
        let mut marks = marks();
        for row in cluster.nodes.iter().filter(|row| !row.pool.is_empty()) {
            pools.entry(cluster.text.get(row.pool)).or_insert(false);
        }
        for job in trace.jobs.iter().filter(|job| !job.queue.is_empty()) {
            if let Some(named) = pools.get_mut(trace.str(job.queue)) {
                *named = true;
            }
        }
        let named = pools.into_iter().filter(|(_, named)| *named);
        Pools(named.map_while(|(name, _)| Some((name.to_owned(), marks.next()?))).collect())
    }

    /// What jobs need, by the text of their queue.
    pub(super) fn needs(&self, trace: &Trace) -> BTreeMap<TextId, Features> {
        let queues = trace.jobs.iter().map(|job| job.queue);
        queues.filter_map(|queue| Some((queue, *self.0.get(trace.str(queue))?))).collect()
    }

    /// Marks a node by its first pool, and has it move to the others. `rows` are its own, in order
    /// of time.
    pub(super) fn mark(&self, cluster: &Cluster, node: NodeId, rows: &[NodeRow], site: &mut Site) {
        let of = |row: &NodeRow| self.0.get(cluster.text.get(row.pool)).copied();
        let mut present = rows.first().and_then(of).unwrap_or_default();
        site.nodes[node.index()].features = present;
        for row in rows.iter().skip(1) {
            let features = of(row).unwrap_or_default();
            if features != present {
                let at = Time::from_secs(row.up_from_s.or(0));
                site.moves.push(Move { node, at, features });
                present = features;
            }
        }
    }
}

/// Marks none of which covers another: half of all bits, always as many.
fn marks() -> impl Iterator<Item = Features> {
    let next = |mark: &u64| {
        // The next larger number with as many bits.
        let low = mark & mark.wrapping_neg();
        let carried = mark + low;
        let next = (((carried ^ mark) >> 2) / low) | carried;
        (next <= u64::from(u32::MAX)).then_some(next)
    };
    std::iter::successors(Some(0xffff_u64), next).map(Features)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mark_covers_another() {
        let marks: Vec<Features> = marks().take(300).collect();
        for (at, one) in marks.iter().enumerate() {
            for (other_at, other) in marks.iter().enumerate() {
                assert_eq!(one.cover(*other), at == other_at, "{one:?} {other:?}");
            }
        }
    }
}
