//! A line of jobs by rank that finds the next one that nothing is known against. No policy of its
//! own.

use hostler_core::pipeline::Rank;
use hostler_core::units::{Mib, Span};

/// Jobs in a block: to pass over one costs as much as to look at one job.
const BLOCK: usize = 64;

/// Jobs by rank.
#[derive(Default)]
pub(super) struct Line {
    /// None is empty.
    blocks: Vec<Block>,
}

/// A job in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) rank: Rank,
    /// Memory that each of its tasks asks for.
    pub(super) mem: Mib,
    /// The least time that it is believed to run.
    pub(super) run: Span,
}

/// Jobs that are not worth a look for now, because one of them was looked at: they ask for about as
/// much memory, and run for so long or longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RuledOut {
    pub(super) least_mem: Mib,
    pub(super) most_mem: Mib,
    pub(super) least_run: Span,
}

impl RuledOut {
    fn covers(&self, entry: &Entry) -> bool {
        let mem = self.least_mem <= entry.mem && entry.mem <= self.most_mem;
        mem && self.least_run <= entry.run
    }

    /// Whether it says all that the other says.
    pub(super) fn implies(&self, other: &RuledOut) -> bool {
        self.least_mem <= other.least_mem
            && self.most_mem >= other.most_mem
            && self.least_run <= other.least_run
    }
}

#[derive(Default)]
struct Block {
    jobs: Vec<Entry>,
    /// What all of its jobs have in common.
    bounds: Bounds,
}

/// Between which sizes jobs are.
#[derive(Clone, Copy, Default)]
struct Bounds {
    least_mem: Mib,
    most_mem: Mib,
    shortest: Span,
}

impl Bounds {
    fn of(entry: &Entry) -> Bounds {
        Bounds { least_mem: entry.mem, most_mem: entry.mem, shortest: entry.run }
    }

    fn with(self, entry: &Entry) -> Bounds {
        Bounds {
            least_mem: self.least_mem.min(entry.mem),
            most_mem: self.most_mem.max(entry.mem),
            shortest: self.shortest.min(entry.run),
        }
    }

    /// Whether one word rules all out.
    fn are_within(&self, ruled: &RuledOut) -> bool {
        let mem = ruled.least_mem <= self.least_mem && self.most_mem <= ruled.most_mem;
        mem && ruled.least_run <= self.shortest
    }
}

impl Block {
    fn new(jobs: Vec<Entry>) -> Block {
        let first = jobs.first().map(Bounds::of).unwrap_or_default();
        let bounds = jobs.iter().fold(first, Bounds::with);
        Block { jobs, bounds }
    }

    fn last(&self) -> Rank {
        self.jobs.last().expect("a block is not empty").rank
    }
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Adds a job that is not in line.
    pub(super) fn insert(&mut self, entry: Entry) {
        let at = self.block_of(entry.rank).min(self.blocks.len().saturating_sub(1));
        let Some(block) = self.blocks.get_mut(at) else {
            self.blocks.push(Block::new(vec![entry]));
            return;
        };
        let inside = block.jobs.partition_point(|known| known.rank < entry.rank);
        debug_assert!(block.jobs.get(inside).is_none_or(|known| known.rank != entry.rank));
        block.jobs.insert(inside, entry);
        block.bounds = block.bounds.with(&entry);
        if block.jobs.len() > 2 * BLOCK {
            let rest = block.jobs.split_off(BLOCK);
            *block = Block::new(std::mem::take(&mut block.jobs));
            self.blocks.insert(at + 1, Block::new(rest));
        }
    }

    /// Removes a job, if it is in line.
    pub(super) fn remove(&mut self, rank: Rank) {
        let at = self.block_of(rank);
        let Some(block) = self.blocks.get_mut(at) else { return };
        let Ok(inside) = block.jobs.binary_search_by_key(&rank, |known| known.rank) else {
            return;
        };
        block.jobs.remove(inside);
        if block.jobs.is_empty() {
            self.blocks.remove(at);
        } else {
            *block = Block::new(std::mem::take(&mut block.jobs));
        }
    }

    /// The next job after a rank, or from it on, that is not ruled out.
    pub(super) fn next(&self, rank: Rank, itself: bool, ruled_out: &[RuledOut]) -> Option<Rank> {
        let before = |known: &Entry| known.rank < rank || (known.rank == rank && !itself);
        let in_vain = |block: &Block| ruled_out.iter().any(|ruled| block.bounds.are_within(ruled));
        let open = |entry: &&Entry| !ruled_out.iter().any(|ruled| ruled.covers(entry));
        let blocks = self.blocks[self.block_of(rank)..].iter();
        blocks.filter(|block| !in_vain(block)).find_map(|block| {
            let behind = block.jobs.partition_point(before);
            block.jobs[behind..].iter().find(open).map(|found| found.rank)
        })
    }

    /// The block in which a rank is or would be; their number behind the last.
    fn block_of(&self, rank: Rank) -> usize {
        self.blocks.partition_point(|block| block.last() < rank)
    }
}

#[cfg(test)]
mod tests {
    use hostler_core::id::JobId;
    use hostler_core::random::Random;

    use super::*;

    fn rank(key: u64) -> Rank {
        ((key % 3) as i64, JobId((key / 3) as u32))
    }

    fn chance_rule(random: &mut Random) -> RuledOut {
        let least_mem = Mib((random.bits() % 60) as u32);
        let more = Mib((random.bits() % 60) as u32);
        let least_run = Span(random.bits() % 1000);
        RuledOut { least_mem, most_mem: Mib(least_mem.0 + more.0), least_run }
    }

    #[test]
    fn the_next_open_job_is_that_of_a_search_through_all() {
        let mut random = Random::new(7);
        let (mut line, mut all) = (Line::default(), std::collections::BTreeMap::new());
        for _ in 0..5000 {
            let job = rank(random.bits() % 900);
            match all.remove(&job) {
                Some(_) => line.remove(job),
                None => {
                    let mem = Mib((random.bits() % 100) as u32);
                    let entry = Entry { rank: job, mem, run: Span(random.bits() % 1000) };
                    all.insert(job, entry);
                    line.insert(entry);
                }
            }
            let from = rank(random.bits() % 900);
            let rules: Vec<RuledOut> =
                (0..random.bits() % 4).map(|_| chance_rule(&mut random)).collect();
            let open = |entry: &&Entry| !rules.iter().any(|ruled| ruled.covers(entry));
            for itself in [false, true] {
                let expected = all.range(from..).map(|(_, entry)| entry);
                let expected = expected.filter(|entry| itself || entry.rank != from).find(open);
                assert_eq!(line.next(from, itself, &rules), expected.map(|entry| entry.rank));
            }
            assert_eq!(line.is_empty(), all.is_empty());
        }
        line.remove((9, JobId(9)));
    }

    #[test]
    fn what_one_rule_implies_it_rules_out() {
        let mut random = Random::new(8);
        for _ in 0..2000 {
            let (one, other) = (chance_rule(&mut random), chance_rule(&mut random));
            let mem = Mib((random.bits() % 130) as u32);
            let entry = Entry { rank: rank(1), mem, run: Span(random.bits() % 1000) };
            assert!(!one.implies(&other) || !other.covers(&entry) || one.covers(&entry));
        }
    }
}
