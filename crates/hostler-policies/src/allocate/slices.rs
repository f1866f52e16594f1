//! Time slices: the same part of the time for everybody, alone or beside a partner.
//!
//! While there are fewer GPUs than jobs ask for, jobs are put in pairs: what two of a kind do
//! together over what each does alone says whether that is better than taking turns. Of two kinds
//! that nobody saw together one pair is tried, the least busy first; one that turns out worse
//! than turns is parted, and its kinds are not tried again. All that is remembered is in the
//! question: who shared so far, and what was seen.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Allocate, AllocateError, Allocation, Instance, JobRow, PairRow, PairShare};
use crate::limits::TRIALS_PART;

/// Equal slices of time.
///
/// The objective is the number of pairs.
#[derive(Clone, Copy, Debug)]
pub struct TimeSlices {
    /// Whether jobs share GPUs at all.
    pub packed: bool,
}

impl Allocate for TimeSlices {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        instance.check()?;
        let pairs = if self.packed { Pairing::new(instance).pair() } else { Vec::new() };
        Ok(slices(instance, &pairs))
    }
}

/// Two jobs that share GPUs.
struct Pair<'a> {
    first: usize,
    second: usize,
    row: &'a PairRow,
}

impl Pair<'_> {
    /// What the two of them weigh: as much as the one that weighs more.
    fn weight(&self, jobs: &[JobRow]) -> f64 {
        jobs[self.first].weight.max(jobs[self.second].weight)
    }
}

/// The part of the time of everybody: on each type alike for all that run there, in proportion to
/// their weights, and no more than all of it.
fn slices(instance: &Instance, pairs: &[Pair<'_>]) -> Allocation {
    let paired: BTreeSet<usize> = pairs.iter().flat_map(|pair| [pair.first, pair.second]).collect();
    let alone = (0..instance.jobs.len()).filter(|at| !paired.contains(at));
    let mut asked = vec![0.0; instance.types()];
    let mut ask = |weight: f64, gang: u32, runs_on: &dyn Fn(usize) -> bool| {
        for gpu in (0..asked.len()).filter(|gpu| runs_on(*gpu)) {
            asked[gpu] += weight * f64::from(gang);
        }
    };
    let jobs = &instance.jobs;
    for at in alone.clone() {
        ask(jobs[at].weight, jobs[at].gang, &|gpu| jobs[at].rates[gpu] > 0.0);
    }
    for pair in pairs {
        ask(pair.weight(jobs), jobs[pair.first].gang, &|gpu| run_on(jobs, pair, gpu));
    }
    let part = |weight: f64, runs_on: &dyn Fn(usize) -> bool| -> Vec<f64> {
        let of_type = |gpu: usize| match runs_on(gpu) {
            true => (instance.workers[gpu] * weight / asked[gpu]).min(1.0),
            false => 0.0,
        };
        let parts: Vec<f64> = (0..instance.types()).map(of_type).collect();
        let cut = parts.iter().sum::<f64>().max(1.0);
        parts.into_iter().map(|part| part / cut).collect()
    };
    let none = vec![0.0; instance.types()];
    let mut allocation = Allocation {
        shares: vec![none; instance.jobs.len()],
        objective: pairs.len() as f64,
        ..Allocation::default()
    };
    for at in alone {
        allocation.shares[at] = part(jobs[at].weight, &|gpu| jobs[at].rates[gpu] > 0.0);
    }
    for pair in pairs {
        let parts = part(pair.weight(jobs), &|gpu| run_on(jobs, pair, gpu));
        let Pair { first, second, .. } = *pair;
        let shares = parts.into_iter().enumerate().filter(|(_, share)| *share > 0.0);
        allocation.pairs.extend(shares.map(|(gpu, share)| PairShare { first, second, gpu, share }));
    }
    allocation
}

/// Whether two kinds run beside each other on a type.
fn runs_on(row: &PairRow, gpu: usize) -> bool {
    row.rates[gpu].0 > 0.0 && row.rates[gpu].1 > 0.0
}

/// Whether both of a pair may run on a type, and do so beside each other.
fn run_on(jobs: &[JobRow], pair: &Pair<'_>, gpu: usize) -> bool {
    let each = [pair.first, pair.second].iter().all(|at| jobs[*at].rates[gpu] > 0.0);
    each && runs_on(pair.row, gpu)
}

/// Puts jobs in pairs until those that are left to take turns are no more than there are GPUs.
struct Pairing<'a> {
    instance: &'a Instance,
    /// What both do beside each other over what they do alone, where that is more than turns give.
    worth: Vec<(&'a PairRow, f64)>,
    /// Jobs that might share, by kind, the least busy first.
    singles: BTreeMap<u32, VecDeque<usize>>,
    pairs: Vec<Pair<'a>>,
    /// GPUs that are asked for beyond those that there are.
    excess: f64,
}

impl<'a> Pairing<'a> {
    fn new(instance: &'a Instance) -> Pairing<'a> {
        let asked: f64 = instance.jobs.iter().map(|job| f64::from(job.gang)).sum();
        let mut kinds: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (at, job) in instance.jobs.iter().enumerate().filter(|(_, job)| job.kind > 0) {
            kinds.entry(job.kind).or_default().push(at);
        }
        let sample = |kind: u32| kinds.get(&kind).map(|jobs| &instance.jobs[jobs[0]]);
        let judged = instance.pairs.iter().filter_map(|row| {
            let worth = worth(row, sample(row.first)?, sample(row.second)?)?;
            (!row.seen || worth > 1.0).then_some((row, worth))
        });
        let worth = judged.collect();
        let by_use = |mut jobs: Vec<usize>| {
            jobs.sort_by(|one, other| busier(&instance.jobs[*one], &instance.jobs[*other]));
            VecDeque::from(jobs)
        };
        let singles = kinds.into_iter().map(|(kind, jobs)| (kind, by_use(jobs))).collect();
        let excess = asked - instance.workers_total();
        Pairing { instance, worth, singles, pairs: Vec::new(), excess }
    }

    fn pair(mut self) -> Vec<Pair<'a>> {
        self.keep();
        self.repeat();
        self.try_others();
        self.pairs.sort_by_key(|pair| (pair.first, pair.second));
        self.pairs
    }

    /// Those who share already go on, unless they are better off apart.
    fn keep(&mut self) {
        let jobs = &self.instance.jobs;
        let by_number: BTreeMap<u32, usize> = jobs.iter().map(|job| job.number).zip(0..).collect();
        let rows: BTreeMap<(u32, u32), &'a PairRow> =
            self.worth.iter().map(|(row, _)| ((row.first, row.second), *row)).collect();
        for (at, job) in jobs.iter().enumerate() {
            if self.excess <= 0.0 {
                return;
            }
            let other = job.partner.and_then(|number| by_number.get(&number)).copied();
            let Some(other) = other.filter(|other| *other > at) else { continue };
            let (one, two) = (job.kind, jobs[other].kind);
            let straight = rows.get(&(one, two)).map(|row| (*row, at, other));
            let turned = || rows.get(&(two, one)).map(|row| (*row, other, at));
            let shares = straight
                .or_else(turned)
                .filter(|(row, first, second)| self.can_share(row, *first, *second));
            let Some((row, first, second)) = shares else { continue };
            for at in [first, second] {
                let singles = self.singles.get_mut(&jobs[at].kind).expect("it is of this kind");
                singles.retain(|single| *single != at);
            }
            self.join(row, first, second);
        }
    }

    /// Kinds that do well beside each other, the best first.
    fn repeat(&mut self) {
        let mut known: Vec<(&PairRow, f64)> =
            self.worth.iter().filter(|(row, _)| row.seen).copied().collect();
        known.sort_by(|one, other| other.1.total_cmp(&one.1));
        for (row, _) in known {
            while let Some((first, second)) = self.next_two(row, |_| true) {
                self.join(row, first, second);
            }
        }
    }

    /// One pair of each two kinds that nobody saw together, the least busy first, and few at once.
    /// Jobs that never ran are left alone: nobody knows what they would do.
    fn try_others(&mut self) {
        let on_trial: BTreeSet<(u32, u32)> =
            self.pairs.iter().map(|pair| (pair.row.first, pair.row.second)).collect();
        let is_new = |row: &PairRow| !row.seen && !on_trial.contains(&(row.first, row.second));
        let mut unknown: Vec<&'a PairRow> =
            self.worth.iter().map(|(row, _)| *row).filter(|row| is_new(row)).collect();
        let least = |kind: u32| {
            let first = self.singles.get(&kind).and_then(VecDeque::front);
            first.map_or(f64::INFINITY, |at| self.instance.jobs[*at].gpu_use)
        };
        unknown.sort_by(|one, other| {
            let busy = |row: &PairRow| least(row.first) + least(row.second);
            busy(one).total_cmp(&busy(other))
        });
        let trials = self.pairs.iter().filter(|pair| !pair.row.seen).count();
        let most = (self.instance.jobs.len() / TRIALS_PART).max(1);
        let mut left = most.saturating_sub(trials);
        for row in unknown {
            if left == 0 {
                break;
            }
            if let Some((first, second)) = self.next_two(row, |job| job.has_run) {
                self.join(row, first, second);
                left -= 1;
            }
        }
    }

    /// The least busy jobs of both kinds that find a type to share, if pairs are still of use.
    fn next_two(
        &mut self,
        row: &PairRow,
        suits: impl Fn(&JobRow) -> bool,
    ) -> Option<(usize, usize)> {
        if self.excess <= 0.0 {
            return None;
        }
        let first = self.take(row.first, |job, _| suits(job))?;
        let fits = |at| self.can_share(row, first, at);
        let singles = self.singles.get(&row.second)?;
        let jobs = &self.instance.jobs;
        let found = singles.iter().copied().find(|at| suits(&jobs[*at]) && fits(*at));
        match found {
            Some(second) => _ = self.take(row.second, |_, at| at == second),
            None => self.singles.entry(row.first).or_default().push_front(first),
        }
        Some((first, found?))
    }

    /// Whether there is a type on which both may run, and do so beside each other.
    fn can_share(&self, row: &'_ PairRow, first: usize, second: usize) -> bool {
        let pair = Pair { first, second, row };
        (0..self.instance.types())
            .any(|gpu| self.instance.workers[gpu] > 0.0 && run_on(&self.instance.jobs, &pair, gpu))
    }

    fn take(&mut self, kind: u32, suits: impl Fn(&JobRow, usize) -> bool) -> Option<usize> {
        let singles = self.singles.get_mut(&kind)?;
        let at = singles.iter().position(|at| suits(&self.instance.jobs[*at], *at))?;
        singles.remove(at)
    }

    fn join(&mut self, row: &'a PairRow, first: usize, second: usize) {
        self.excess -= f64::from(self.instance.jobs[first].gang);
        self.pairs.push(match first < second {
            true => Pair { first, second, row },
            false => Pair { first: second, second: first, row },
        });
    }
}

/// Who keeps its GPUs busier; equals in order of submission.
fn busier(one: &JobRow, other: &JobRow) -> std::cmp::Ordering {
    one.gpu_use.total_cmp(&other.gpu_use).then(one.number.cmp(&other.number))
}

/// What both do beside each other over what they do alone, on the type where that is the least;
/// none where they run together on no type.
fn worth(row: &PairRow, one: &JobRow, other: &JobRow) -> Option<f64> {
    let on_type = |gpu: usize| {
        let (own, others) = row.rates[gpu];
        own / one.rates[gpu] + others / other.rates[gpu]
    };
    let both = |gpu: &usize| runs_on(row, *gpu) && one.rates[*gpu] > 0.0 && other.rates[*gpu] > 0.0;
    (0..row.rates.len()).filter(both).map(on_type).reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs by number, kind and partner, of one GPU each, on some GPUs of one type; speeds of kinds
    /// 1 and 2 beside each other are what is seen of them, if anything is.
    fn instance(gpus: f64, jobs: &[(u32, u32, Option<u32>)], seen: Option<f64>) -> Instance {
        let job = |(number, kind, partner): &(u32, u32, Option<u32>)| JobRow {
            rates: vec![10.0],
            kind: *kind,
            number: *number,
            partner: *partner,
            has_run: true,
            ..JobRow::default()
        };
        let rate = 10.0 * seen.unwrap_or(1.0);
        Instance {
            workers: vec![gpus],
            prices: vec![1.0],
            jobs: jobs.iter().map(job).collect(),
            pairs: vec![PairRow {
                first: 1,
                second: 2,
                rates: vec![(rate, rate)],
                seen: seen.is_some(),
            }],
            entities: Vec::new(),
        }
    }

    fn pairs(instance: &Instance) -> Vec<(usize, usize)> {
        let answer = TimeSlices { packed: true }.allocate(instance).unwrap();
        answer.pairs.iter().map(|pair| (pair.first, pair.second)).collect()
    }

    const FOUR: [(u32, u32, Option<u32>); 4] =
        [(0, 1, None), (1, 2, None), (2, 1, None), (3, 2, None)];

    #[test]
    fn everybody_has_the_same_part_of_the_time() {
        let mut four = instance(2.0, &FOUR, None);
        four.jobs[3].gang = 2;
        four.jobs[2].weight = 2.0;
        let answer = TimeSlices { packed: false }.allocate(&four).unwrap();
        // One GPU of weight 1, another, one of weight 2, and two of weight 1: six in all.
        let shares: Vec<f64> = answer.shares.iter().map(|row| row[0]).collect();
        assert_eq!(shares, [1.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0, 1.0 / 3.0]);
        assert!(answer.pairs.is_empty());
    }

    #[test]
    fn nobody_shares_while_all_fit() {
        assert_eq!(pairs(&instance(4.0, &FOUR, Some(0.9))), []);
    }

    #[test]
    fn kinds_that_do_well_share_until_all_fit() {
        assert_eq!(pairs(&instance(3.0, &FOUR, Some(0.6))), [(0, 1)]);
        assert_eq!(pairs(&instance(2.0, &FOUR, Some(0.6))), [(0, 1), (2, 3)]);
        assert_eq!(pairs(&instance(1.0, &FOUR, Some(0.6))), [(0, 1), (2, 3)], "all there are");
    }

    #[test]
    fn one_pair_of_kinds_that_nobody_saw_is_tried_at_a_time() {
        assert_eq!(pairs(&instance(1.0, &FOUR, None)), [(0, 1)]);
        let sharing = [(0, 1, Some(3)), (1, 2, None), (2, 1, None), (3, 2, Some(0))];
        assert_eq!(pairs(&instance(1.0, &sharing, None)), [(0, 3)], "it goes on");
        let mut unseen = instance(1.0, &FOUR, None);
        unseen.jobs.iter_mut().take(2).for_each(|job| job.has_run = false);
        assert_eq!(pairs(&unseen), [(2, 3)], "who never ran is left alone");
    }

    #[test]
    fn the_least_busy_are_tried_first() {
        let mut four = instance(1.0, &FOUR, None);
        four.jobs[0].gpu_use = 0.9;
        four.jobs[2].gpu_use = 0.2;
        assert_eq!(pairs(&four), [(1, 2)]);
    }

    #[test]
    fn a_pair_that_is_better_off_apart_is_parted_and_not_tried_again() {
        let sharing = [(0, 1, Some(1)), (1, 2, Some(0)), (2, 1, None)];
        assert_eq!(pairs(&instance(1.0, &sharing, Some(0.6))), [(0, 1)], "1.2 is kept");
        assert_eq!(pairs(&instance(1.0, &sharing, Some(0.45))), [], "0.9 is not");
        assert_eq!(pairs(&instance(1.0, &sharing, Some(0.0))), [], "nor what did not fit");
    }

    #[test]
    fn shares_are_within_what_there_is() {
        for seen in [None, Some(0.6)] {
            let four = instance(1.5, &FOUR, seen);
            let answer = TimeSlices { packed: true }.allocate(&four).unwrap();
            assert!(crate::allocate::is_feasible(&four, &answer), "{answer:?}");
        }
    }
}
