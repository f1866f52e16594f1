//! A line of jobs by rank that finds the next one that is short enough. No policy of its own.

use hostler_core::pipeline::Rank;
use hostler_core::units::Span;

/// Jobs in a block: to pass over one costs as much as to look at one job.
const BLOCK: usize = 64;

/// Jobs by rank, with the least time that each is believed to run.
#[derive(Default)]
pub(super) struct Line {
    /// None is empty.
    blocks: Vec<Block>,
}

#[derive(Default)]
struct Block {
    jobs: Vec<(Rank, Span)>,
    shortest: Span,
}

impl Block {
    fn new(jobs: Vec<(Rank, Span)>) -> Block {
        let shortest = jobs.iter().map(|(_, run)| *run).min().unwrap_or_default();
        Block { jobs, shortest }
    }

    fn last(&self) -> Rank {
        self.jobs.last().expect("a block is not empty").0
    }
}

impl Line {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Adds a job that is not in line.
    pub(super) fn insert(&mut self, rank: Rank, run: Span) {
        let at = self.block_of(rank).min(self.blocks.len().saturating_sub(1));
        let Some(block) = self.blocks.get_mut(at) else {
            self.blocks.push(Block::new(vec![(rank, run)]));
            return;
        };
        let inside = block.jobs.partition_point(|(known, _)| *known < rank);
        debug_assert!(block.jobs.get(inside).is_none_or(|(known, _)| *known != rank));
        block.jobs.insert(inside, (rank, run));
        block.shortest = block.shortest.min(run);
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
        let Ok(inside) = block.jobs.binary_search_by_key(&rank, |(known, _)| *known) else {
            return;
        };
        block.jobs.remove(inside);
        if block.jobs.is_empty() {
            self.blocks.remove(at);
        } else {
            *block = Block::new(std::mem::take(&mut block.jobs));
        }
    }

    /// The next job after a rank.
    pub(super) fn after(&self, rank: Rank) -> Option<Rank> {
        self.short_after(rank, Span(u64::MAX))
    }

    /// The next job after a rank that may run no longer than that.
    pub(super) fn short_after(&self, rank: Rank, most: Span) -> Option<Rank> {
        let short = |block: &&Block| block.shortest <= most;
        self.blocks[self.block_of(rank)..].iter().filter(short).find_map(|block| {
            let behind = block.jobs.partition_point(|(known, _)| *known <= rank);
            let mut jobs = block.jobs[behind..].iter();
            jobs.find(|(_, run)| *run <= most).map(|(found, _)| *found)
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

    #[test]
    fn the_next_short_job_is_that_of_a_search_through_all() {
        let mut random = Random::new(7);
        let (mut line, mut all) = (Line::default(), std::collections::BTreeMap::new());
        for _ in 0..5000 {
            let job = rank(random.bits() % 900);
            match all.remove(&job) {
                Some(_) => line.remove(job),
                None => {
                    let run = Span(random.bits() % 1000);
                    all.insert(job, run);
                    line.insert(job, run);
                }
            }
            let (from, most) = (rank(random.bits() % 900), Span(random.bits() % 300));
            let behind = |job: &&Rank| **job > from;
            let expected = all.iter().find(|(job, run)| behind(job) && **run <= most);
            assert_eq!(line.short_after(from, most), expected.map(|(job, _)| *job));
            assert_eq!(line.after(from), all.keys().find(behind).copied());
            assert_eq!(line.is_empty(), all.is_empty());
        }
        line.remove((9, JobId(9)));
    }
}
