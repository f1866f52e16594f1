//! Random pairs, as the original takes Gandiva to have them: an equal part of the cluster for
//! everybody while all jobs fit, and for pairs that are drawn by chance when they do not.

use std::collections::BTreeMap;

use hostler_policies::allocate::{
    Allocate, AllocateError, Allocation, Instance, Isolated, JobRow, PairShare,
};

use crate::twister::Twister;

/// Pairs that last until one of the two is gone or they turn out to be worse than taking turns.
///
/// The objective is the number of pairs.
#[derive(Clone, Debug)]
pub(crate) struct RandomPairs {
    twister: Twister,
    /// The partner of each job that has one, by number.
    partners: BTreeMap<u32, u32>,
}

impl RandomPairs {
    /// With nobody paired yet.
    pub(crate) fn new(seed: u64) -> RandomPairs {
        RandomPairs { twister: Twister::new(seed as u32), partners: BTreeMap::new() }
    }

    /// Parts those of whom one is gone, and those who lose by sharing.
    fn part(&mut self, instance: &Instance, jobs: &BTreeMap<u32, usize>) {
        self.partners.retain(|one, other| {
            let both = jobs.get(one).zip(jobs.get(other));
            both.is_some_and(|(one, other)| {
                worth(instance, &instance.jobs[*one], &instance.jobs[*other]) >= 1.0
            })
        });
    }

    /// Draws pairs among those who have no partner, as often as there are such jobs. Two whose
    /// gangs differ go back.
    fn draw(&mut self, instance: &Instance) {
        let single = |job: &&JobRow| !self.partners.contains_key(&job.number);
        let mut alone: Vec<&JobRow> = instance.jobs.iter().filter(single).collect();
        for _ in 0..alone.len() {
            if alone.len() < 2 {
                break;
            }
            let [first, second] = self.twister.two_of(alone.len() as u32).map(|at| at as usize);
            let [one, other] = [alone[first], alone[second]];
            if one.gang == other.gang {
                self.partners.insert(one.number, other.number);
                self.partners.insert(other.number, one.number);
                alone.retain(|job| job.number != one.number && job.number != other.number);
            }
        }
    }
}

impl Allocate for RandomPairs {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        let jobs: BTreeMap<u32, usize> =
            instance.jobs.iter().map(|job| job.number).zip(0..).collect();
        let asked: f64 = instance.jobs.iter().map(|job| f64::from(job.gang)).sum();
        if asked <= instance.workers_total() {
            return Isolated.allocate(instance);
        }
        instance.check()?;
        self.part(instance, &jobs);
        self.draw(instance);
        let pairs = self.partners.len() / 2;
        let units = (instance.jobs.len() - pairs) as f64;
        let part = |job: &JobRow| -> Vec<f64> {
            let parts = instance.workers.iter().map(|gpus| gpus / units / f64::from(job.gang));
            let parts: Vec<f64> = parts.collect();
            let cut = parts.iter().sum::<f64>().max(1.0);
            parts.into_iter().map(|part| part / cut).collect()
        };
        let mut allocation = Allocation { objective: pairs as f64, ..Allocation::default() };
        for (at, job) in instance.jobs.iter().enumerate() {
            let partner = self.partners.get(&job.number).map(|number| jobs[number]);
            allocation.shares.push(match partner {
                None => part(job),
                Some(_) => vec![0.0; instance.types()],
            });
            if let Some(second) = partner.filter(|second| at < *second) {
                let shares = part(job).into_iter().enumerate();
                let pair = |(gpu, share)| PairShare { first: at, second, gpu, share };
                allocation.pairs.extend(shares.map(pair));
            }
        }
        Ok(allocation)
    }
}

/// What both do beside each other over what they do alone, added up over all GPU types.
fn worth(instance: &Instance, one: &JobRow, other: &JobRow) -> f64 {
    let Some(pair) = instance.pairs.iter().find(|pair| {
        (pair.first, pair.second) == (one.kind, other.kind)
            || (pair.first, pair.second) == (other.kind, one.kind)
    }) else {
        return 0.0;
    };
    let turned = pair.first != one.kind;
    let of_type = |(gpu, rates): (usize, &(f64, f64))| {
        let (own, others) = if turned { (rates.1, rates.0) } else { *rates };
        let part = |rate: f64, alone: f64| if alone > 0.0 { rate / alone } else { 0.0 };
        part(own, one.rates[gpu]) + part(others, other.rates[gpu])
    };
    pair.rates.iter().enumerate().map(of_type).sum()
}

#[cfg(test)]
mod tests {
    use hostler_policies::allocate::{Allocate, Instance, JobRow, PairRow, PairShare};

    use super::RandomPairs;

    /// Jobs of one kind on two GPUs of one type, by number and gang; together each has this part
    /// of its speed.
    fn instance(jobs: &[(u32, u32)], together: f64) -> Instance {
        let job = |(number, gang): &(u32, u32)| JobRow {
            rates: vec![10.0],
            kind: 1,
            gang: *gang,
            number: *number,
            ..JobRow::default()
        };
        Instance {
            workers: vec![2.0],
            prices: vec![1.0],
            jobs: jobs.iter().map(job).collect(),
            pairs: vec![PairRow {
                first: 1,
                second: 1,
                rates: vec![(10.0 * together, 10.0 * together)],
                seen: true,
            }],
            entities: Vec::new(),
        }
    }

    /// Positions of those who share GPUs, and for how long.
    fn pairs(policy: &mut RandomPairs, instance: &Instance) -> Vec<(usize, usize, f64)> {
        let of = |pair: &PairShare| (pair.first, pair.second, pair.share);
        policy.allocate(instance).expect("a sane instance").pairs.iter().map(of).collect()
    }

    #[test]
    fn nobody_shares_while_all_fit() {
        let mut policy = RandomPairs::new(0);
        assert!(pairs(&mut policy, &instance(&[(0, 1), (1, 1)], 0.8)).is_empty());
        // Three jobs are two units then: each has a GPU all the time.
        let three = instance(&[(0, 1), (1, 1), (2, 1)], 0.8);
        let [(.., share)] = *pairs(&mut policy, &three) else { panic!("one pair") };
        assert_eq!(share, 1.0);
        let shares = policy.allocate(&three).expect("a sane instance").shares;
        assert_eq!(shares.iter().flatten().sum::<f64>(), 1.0, "{shares:?}");
    }

    #[test]
    fn a_pair_lasts_until_one_is_gone() {
        let mut policy = RandomPairs::new(3);
        let five = [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)];
        let before = pairs(&mut policy, &instance(&five, 0.8));
        assert_eq!(before.len(), 2);
        assert_eq!(pairs(&mut policy, &instance(&five, 0.8)), before);
        let (one, other, _) = before[0];
        let left: Vec<(u32, u32)> = five.into_iter().filter(|job| job.0 != one as u32).collect();
        let after = policy.allocate(&instance(&left, 0.8)).expect("a sane instance");
        let number = |at: usize| left[at].0 as usize;
        let kept = (before[1].0, before[1].1);
        assert!(after.pairs.iter().any(|pair| (number(pair.first), number(pair.second)) == kept));
        // The one that is left and the one that was alone are all there is to draw from.
        assert!(
            after.pairs.iter().any(|pair| [pair.first, pair.second].map(number).contains(&other))
        );
    }

    #[test]
    fn those_who_lose_by_sharing_are_parted() {
        let mut policy = RandomPairs::new(0);
        let jobs = [(0, 1), (1, 1), (2, 1)];
        let mut met = std::collections::BTreeSet::new();
        for _ in 0..32 {
            let [(one, other, _)] = *pairs(&mut policy, &instance(&jobs, 0.49)) else {
                panic!("one pair")
            };
            met.insert((one, other));
        }
        assert_eq!(met.len(), 3, "each time others are tried");
    }

    #[test]
    fn gangs_of_other_sizes_go_back() {
        for seed in 0..20 {
            let mut policy = RandomPairs::new(seed);
            assert!(pairs(&mut policy, &instance(&[(0, 1), (1, 2)], 0.8)).is_empty());
        }
    }
}
