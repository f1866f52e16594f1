//! Jobs that no solver can tell apart, taken together: exact, and the cost of a solve then follows
//! the kinds of jobs, not their number.
//!
//! Averaging an optimum inside a class keeps every constraint and the value, so one variable stands
//! for all members. What tells jobs apart depends on the policy: see [`Traits`].

use std::collections::BTreeMap;

use super::{AllocateError, Inner, Instance, JobRow, RateKnowledge, proportional_rates};
use crate::limits::PACKED_CLASSES_MAX;

/// The rates that a policy goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speeds {
    /// As measured.
    Measured,
    /// 1 everywhere.
    Equal,
    /// The mean over the GPUs of the cluster, everywhere.
    Mean,
}

impl Speeds {
    /// Equal speeds where types do not count.
    pub fn of(rate_knowledge: RateKnowledge) -> Speeds {
        if rate_knowledge == RateKnowledge::Agnostic { Speeds::Equal } else { Speeds::Measured }
    }

    /// One own speed where types do not count.
    pub fn own(rate_knowledge: RateKnowledge) -> Speeds {
        if rate_knowledge == RateKnowledge::Agnostic { Speeds::Mean } else { Speeds::Measured }
    }

    /// The instance as the policy sees it.
    pub fn seen(self, instance: &Instance) -> Option<Instance> {
        if self == Speeds::Measured {
            return None;
        }
        let mean = proportional_rates(instance);
        let mut seen = instance.clone();
        for (job, mean) in seen.jobs.iter_mut().zip(mean) {
            let speed = match self {
                Speeds::Measured | Speeds::Equal => 1.0,
                Speeds::Mean => mean,
            };
            job.rates.fill(speed);
        }
        Some(seen)
    }
}

/// What tells two jobs apart, beyond rates, gang and weight.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traits {
    /// How they behave in pairs.
    pub pairs: bool,
    /// Steps left, age and credit.
    pub progress: bool,
    /// Steps left and deadline.
    pub deadline: bool,
    /// Their entity, and their place in it where it matters.
    pub entity: bool,
}

/// Jobs that are alike.
#[derive(Clone, Debug)]
pub struct Class {
    /// The first of them.
    pub job: usize,
    /// How many.
    pub count: f64,
    /// GPUs of each.
    pub gang: f64,
}

/// Two classes whose jobs may share a GPU; the first is not after the second.
#[derive(Clone, Debug)]
pub struct ClassPair {
    /// One class.
    pub first: usize,
    /// The other.
    pub second: usize,
    /// Steps per second of a job of either, for each type.
    pub rates: Vec<(f64, f64)>,
}

/// All jobs of an instance by class.
#[derive(Clone, Debug)]
pub struct Classes {
    /// The classes, in the order of their first jobs.
    pub rows: Vec<Class>,
    /// Class of each job.
    pub of_job: Vec<u32>,
    /// Pairs of them.
    pub pairs: Vec<ClassPair>,
}

impl Classes {
    /// Groups the jobs of an instance.
    pub fn new(instance: &Instance, traits: Traits) -> Result<Classes, AllocateError> {
        let mut table = ClassTable::default();
        let mut key = Vec::new();
        let mut rows: Vec<Class> = Vec::new();
        let mut of_job = Vec::with_capacity(instance.jobs.len());
        for (index, job) in instance.jobs.iter().enumerate() {
            key.clear();
            describe(instance, index, job, traits, &mut key);
            let class = table.number(&key);
            if class == rows.len() {
                rows.push(Class { job: index, count: 0.0, gang: f64::from(job.gang) });
            }
            rows[class].count += 1.0;
            of_job.push(class as u32);
        }
        let mut classes = Classes { rows, of_job, pairs: Vec::new() };
        if traits.pairs && !instance.pairs.is_empty() {
            classes.pair_up(instance)?;
        }
        Ok(classes)
    }

    /// One class for each job, and no pairs.
    pub fn apart(instance: &Instance) -> Classes {
        let rows = instance.jobs.iter().enumerate();
        let row =
            |(job, row): (usize, &JobRow)| Class { job, count: 1.0, gang: f64::from(row.gang) };
        Classes {
            rows: rows.map(row).collect(),
            of_job: (0..instance.jobs.len() as u32).collect(),
            pairs: Vec::new(),
        }
    }

    /// The members of each class.
    pub(super) fn members(&self) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.rows.len()];
        for (job, &class) in self.of_job.iter().enumerate() {
            members[class as usize].push(job);
        }
        members
    }

    /// Puts classes in pairs whose jobs may share a GPU.
    pub fn pair_up(&mut self, instance: &Instance) -> Result<(), AllocateError> {
        let found = self.rows.len();
        if found > PACKED_CLASSES_MAX {
            let limit = PACKED_CLASSES_MAX;
            return Err(AllocateError::TooMany { what: "classes of jobs for pairs", found, limit });
        }
        let mut kinds: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (class, row) in self.rows.iter().enumerate() {
            kinds.entry(instance.jobs[row.job].kind).or_default().push(class);
        }
        let mut pairs: BTreeMap<(usize, usize), Vec<(f64, f64)>> = BTreeMap::new();
        for row in &instance.pairs {
            let (Some(ones), Some(twos)) = (kinds.get(&row.first), kinds.get(&row.second)) else {
                continue;
            };
            for &one in ones {
                for &two in twos.iter().filter(|&&two| self.may_pair(one, two)) {
                    let swap = |&(left, right): &(f64, f64)| match row.first == row.second {
                        // Nobody can say which of two jobs of one kind is the first.
                        true => ((left + right) / 2.0, (left + right) / 2.0),
                        false if one < two => (left, right),
                        false => (right, left),
                    };
                    let rates = || row.rates.iter().map(swap).collect();
                    pairs.entry((one.min(two), one.max(two))).or_insert_with(rates);
                }
            }
        }
        let pairs = pairs.into_iter();
        self.pairs =
            pairs.map(|((first, second), rates)| ClassPair { first, second, rates }).collect();
        Ok(())
    }

    fn may_pair(&self, one: usize, two: usize) -> bool {
        self.rows[one].gang == self.rows[two].gang && (one != two || self.rows[one].count >= 2.0)
    }
}

/// Writes down what tells a job apart.
fn describe(instance: &Instance, index: usize, job: &JobRow, traits: Traits, key: &mut Vec<u64>) {
    key.extend(job.rates.iter().map(|rate| rate.to_bits()));
    key.extend([u64::from(job.gang), job.weight.to_bits()]);
    if traits.pairs {
        key.push(u64::from(job.kind));
    }
    if traits.progress {
        key.extend([job.age_secs.to_bits(), job.finish_credit.to_bits()]);
    }
    if traits.deadline {
        key.push(job.slack_secs.map_or(u64::MAX, f64::to_bits));
    }
    // Without a deadline nobody asks how many steps are left.
    if traits.progress || (traits.deadline && job.slack_secs.is_some()) {
        key.push(job.steps_left.to_bits());
    }
    if traits.entity
        && let Some(entity) = job.entity
    {
        key.push(u64::from(entity));
        if instance.entities[entity as usize].inner == Inner::Fifo {
            key.push(index as u64);
        }
    }
}

/// Numbers keys in order of appearance. A table of its own because the order of the standard one
/// differs between processes, and a tree is several times slower for many jobs.
#[derive(Default)]
struct ClassTable {
    /// Key number plus one, by hash; 0 is free. The length is a power of two.
    slots: Vec<u32>,
    keys: Vec<u64>,
    ends: Vec<usize>,
}

impl ClassTable {
    fn number(&mut self, key: &[u64]) -> usize {
        if self.slots.len() < 4 * (self.ends.len() + 1) {
            self.grow();
        }
        let slot = self.find(key);
        match self.slots[slot] {
            0 => {
                self.keys.extend_from_slice(key);
                self.ends.push(self.keys.len());
                self.slots[slot] = self.ends.len() as u32;
                self.ends.len() - 1
            }
            taken => taken as usize - 1,
        }
    }

    /// The slot of a key, or the free one where it belongs; a quarter of them is taken at most.
    fn find(&self, key: &[u64]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash(key) as usize & mask;
        while self.slots[slot] != 0 && self.key(self.slots[slot] as usize - 1) != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn key(&self, number: usize) -> &[u64] {
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.keys[start..self.ends[number]]
    }

    fn grow(&mut self) {
        self.slots = vec![0; (self.slots.len() * 2).max(64)];
        for number in 0..self.ends.len() {
            let slot = self.find(self.key(number));
            self.slots[slot] = number as u32 + 1;
        }
    }
}

fn hash(key: &[u64]) -> u64 {
    let mix = |state: u64, word: &u64| {
        let state = (state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state ^ (state >> 29)
    };
    let state = key.iter().fold(0x51ed_270b_0a1f_39c1, mix);
    state ^ (state >> 32)
}
