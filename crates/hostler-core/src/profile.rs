//! Throughput tables: how fast a kind of job runs on which GPUs, alone and beside another.
//!
//! A profile is either measured (steps per second by GPU model, gang and reach) or a set of
//! factors on a reference run. Where there are measurements, they count. A measured speed of zero
//! says that the job does not fit there: policies that know profiles do not put it there, and an
//! executor answers with `StartFailed`.

use serde::{Deserialize, Serialize};

use crate::id::{ModelId, ProfileKey};
use crate::units::{Pace, Rate};

/// How far apart the tasks of a job are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// One group of GPUs with fast links.
    Island,
    /// One node.
    Node,
    /// One rack.
    Rack,
    /// Several racks.
    Cluster,
}

impl Reach {
    /// Whether tasks talk over the network between nodes.
    pub fn is_spread(self) -> bool {
        self > Reach::Node
    }
}

/// Speed of one kind of job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Speed on a model, relative to the reference run. Missing models run at full rate.
    pub models: Vec<(ModelId, Rate)>,
    /// Factor by reach. Missing reaches cost nothing.
    pub reach: Vec<(Reach, Rate)>,
    /// Factor beside a job of another profile on the same device.
    pub pairs: Vec<(ProfileKey, Rate)>,
    /// Factor beside a job without a known pair.
    pub shared: Option<Rate>,
    /// Measured speeds.
    #[serde(default, skip_serializing_if = "Measured::is_empty")]
    pub measured: Measured,
}

/// Measured speeds of one kind of job, sorted by their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    alone: Vec<(Run, Pace)>,
    pairs: Vec<(PairRun, PairPace)>,
    /// Speeds are relative to the reference run of each gang, which is one step per second.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    relative: bool,
}

/// Where a job runs alone: model, GPUs of the whole gang, and whether they are in several nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Run(pub ModelId, pub bool, pub u32);

/// Beside whom a job runs, on which model, on how many GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PairRun(pub ProfileKey, pub ModelId, pub u32);

/// Speeds of two jobs on the same GPUs: its own, and the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairPace(pub Pace, pub Pace);

impl Measured {
    /// Nothing measured yet, and what will be is relative to the reference run of each gang: one
    /// step per second is as fast as that. Gangs that were not measured are as fast, for their
    /// size, as the nearest that was.
    pub fn relative() -> Measured {
        Measured { relative: true, ..Measured::default() }
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.alone.is_empty() && self.pairs.is_empty()
    }

    /// Takes in the speed of a run alone; a later one replaces an earlier one.
    pub fn set(&mut self, run: Run, pace: Pace) {
        insert(&mut self.alone, run, pace);
    }

    /// Takes in the speeds of a pair; later ones replace earlier ones.
    pub fn set_pair(&mut self, run: PairRun, pace: PairPace) {
        insert(&mut self.pairs, run, pace);
    }

    /// Forgets pairs, but for those to keep.
    pub fn retain_pairs(&mut self, keep: impl Fn(&PairRun) -> bool) {
        self.pairs.retain(|(run, _)| keep(run));
    }

    /// All runs alone.
    pub fn alone(&self) -> &[(Run, Pace)] {
        &self.alone
    }

    /// All pairs.
    pub fn pairs(&self) -> &[(PairRun, PairPace)] {
        &self.pairs
    }

    /// Speed of `gpus` GPUs of `model`; none if the model was not measured. A gang that was not
    /// measured has the speed per GPU of the next smaller one that was, or else of the next
    /// larger. A spread gang that was never measured is as fast as one close together.
    fn pace(&self, model: ModelId, gpus: u32, spread: bool) -> Option<Pace> {
        let close = || self.nearest(model, gpus, false);
        if spread { self.nearest(model, gpus, true).or_else(close) } else { close() }
    }

    fn nearest(&self, model: ModelId, gpus: u32, spread: bool) -> Option<Pace> {
        let after = self.alone.partition_point(|(run, _)| *run <= Run(model, spread, gpus));
        let same = |entry: &&(Run, Pace)| entry.0.0 == model && entry.0.1 == spread;
        let below = after.checked_sub(1).and_then(|at| self.alone.get(at)).filter(same);
        let (run, pace) = below.or_else(|| self.alone.get(after).filter(same))?;
        Some(if run.2 == gpus || self.relative { *pace } else { pace.scaled(gpus, run.2) })
    }

    fn models(&self) -> impl Iterator<Item = ModelId> {
        self.alone.chunk_by(|a, b| a.0.0 == b.0.0).map(|runs| runs[0].0.0)
    }

    /// Whether some gang is measured at a speed above zero, and every speed at a possible one.
    fn is_sane(&self) -> bool {
        let few = |pace: &Pace| *pace <= Pace::MAX;
        let sorted = self.alone.is_sorted_by(|a, b| a.0 < b.0);
        let pairs_sorted = self.pairs.is_sorted_by(|a, b| a.0 < b.0);
        let moves = self.alone.is_empty() || self.alone.iter().any(|(_, pace)| *pace > Pace::ZERO);
        let alone = self.alone.iter().all(|(run, pace)| run.2 > 0 && few(pace));
        let pairs = self.pairs.iter().all(|(run, pace)| run.2 > 0 && few(&pace.0) && few(&pace.1));
        sorted && pairs_sorted && moves && alone && pairs
    }
}

fn insert<Key: Ord, Value>(table: &mut Vec<(Key, Value)>, key: Key, value: Value) {
    match table.binary_search_by(|(known, _)| known.cmp(&key)) {
        Ok(at) => table[at].1 = value,
        Err(at) => table.insert(at, (key, value)),
    }
}

impl Profile {
    /// Whether the speeds let work come to an end somewhere.
    pub fn is_sane(&self) -> bool {
        let models = self.models.iter().map(|(_, rate)| rate);
        let reach = self.reach.iter().map(|(_, rate)| rate);
        let pairs = self.pairs.iter().map(|(_, rate)| rate);
        let mut factors = models.chain(reach).chain(pairs).chain(&self.shared);
        factors.all(|rate| rate.0 > 0) && self.measured.is_sane()
    }

    /// Speed of the whole gang on `gpus` GPUs of one model, zero where it does not fit. A model
    /// that was not measured counts as fast as the reference. Without measurements a step is a
    /// second of the reference run.
    pub fn pace(&self, model: ModelId, gpus: u32, spread: bool) -> Pace {
        if self.measured.alone.is_empty() {
            let reach = if spread { Reach::Rack } else { Reach::Island };
            let rate = lookup(&self.models, &model).unwrap_or(Rate::FULL);
            let per_rate = Pace::ONE.0 / u64::from(Rate::FULL.0);
            return Pace(u64::from(rate.times(self.at_reach(reach)).0) * per_rate);
        }
        let measured = self.measured.pace(model, gpus, spread);
        measured.unwrap_or_else(|| self.reference(gpus))
    }

    /// Steps per second of the whole gang, as [`Profile::pace`] gives it.
    pub fn steps_per_sec(&self, model: ModelId, gpus: u32, spread: bool) -> f64 {
        self.pace(model, gpus, spread).steps_per_sec()
    }

    /// Speed that run times refer to: that of the gang close together on its fastest model.
    pub fn reference(&self, gpus: u32) -> Pace {
        if self.measured.alone.is_empty() || self.measured.relative {
            return Pace::ONE;
        }
        let paces = self.measured.models();
        paces.filter_map(|model| self.measured.pace(model, gpus, false)).max().unwrap_or_default()
    }

    /// Whether a gang of `gpus` GPUs runs on `model`.
    pub fn fits(&self, model: ModelId, gpus: u32) -> bool {
        self.pace(model, gpus, false) > Pace::ZERO
    }

    /// Speed of a gang on `model` relative to its reference run, alone and close together; zero
    /// where it does not fit.
    pub fn on(&self, model: ModelId, gpus: u32) -> Rate {
        self.rate(model, gpus, gpus, Reach::Island)
    }

    /// Speed relative to the reference run of a gang of `asked` GPUs, when it has `gpus` of them
    /// that are `reach` apart; zero where it does not fit.
    pub fn rate(&self, model: ModelId, gpus: u32, asked: u32, reach: Reach) -> Rate {
        if self.measured.alone.is_empty() {
            let alone = lookup(&self.models, &model).unwrap_or(Rate::FULL);
            return alone.times(self.at_reach(reach));
        }
        let pace = self.pace(model, gpus, reach.is_spread());
        let rate = pace.relative_to(self.reference(asked));
        if rate.0 == 0 { rate } else { rate.times(self.at_reach(reach)) }
    }

    /// No job of this profile is faster than this anywhere.
    pub fn rate_max(&self) -> Rate {
        if !self.measured.alone.is_empty() {
            // Paces are relative to a run that need not be the fastest.
            return Rate(u32::MAX);
        }
        let alone = self.models.iter().map(|(_, rate)| *rate).fold(Rate::FULL, Rate::max);
        let reach = self.reach.iter().map(|(_, rate)| *rate).fold(Rate::FULL, Rate::max);
        alone.times(reach)
    }

    /// Factor for tasks that are `reach` apart.
    pub fn at_reach(&self, reach: Reach) -> Rate {
        lookup(&self.reach, &reach).unwrap_or(Rate::FULL)
    }

    /// Factor beside a job of profile `other` on the same `gpus` GPUs of `model`; zero where the
    /// two do not fit together.
    pub fn beside(&self, other: Option<ProfileKey>, model: ModelId, gpus: u32) -> Rate {
        if let Some(PairPace(own, _)) = other.and_then(|key| self.pair(key, model, gpus)) {
            return own.relative_to(self.pace(model, gpus, false));
        }
        other.and_then(|key| lookup(&self.pairs, &key)).or(self.shared).unwrap_or(Rate::FULL)
    }

    /// Measured speeds beside a job of profile `other` on the same `gpus` GPUs of `model`; none
    /// if the two were never measured together there. A pair that was measured on other numbers
    /// of GPUs only does not fit on this one.
    pub fn pair(&self, other: ProfileKey, model: ModelId, gpus: u32) -> Option<PairPace> {
        let pairs = &self.measured.pairs;
        let first = pairs.partition_point(|(run, _)| *run < PairRun(other, model, 0));
        let mut same = pairs[first..].iter();
        let mut found = None;
        while let Some((PairRun(key, on, size), pace)) = same.next()
            && *key == other
            && *on == model
        {
            if *size == gpus {
                return Some(*pace);
            }
            found = Some(PairPace(Pace::ZERO, Pace::ZERO));
        }
        found
    }

    /// Measured speeds of just this pair; none if it was never measured, whatever others were.
    pub fn exact_pair(&self, run: PairRun) -> Option<PairPace> {
        let pairs = &self.measured.pairs;
        let at = pairs.binary_search_by(|(known, _)| known.cmp(&run)).ok()?;
        Some(pairs[at].1)
    }

    /// Steps per second of the pair, own and other, as [`Profile::pair`] gives them.
    pub fn pair_rates(&self, other: ProfileKey, model: ModelId, gpus: u32) -> Option<(f64, f64)> {
        let pair = self.pair(other, model, gpus);
        pair.map(|PairPace(own, others)| (own.steps_per_sec(), others.steps_per_sec()))
    }
}

fn lookup<Key: PartialEq>(table: &[(Key, Rate)], key: &Key) -> Option<Rate> {
    table.iter().find(|(entry, _)| entry == key).map(|(_, rate)| *rate)
}

#[cfg(test)]
mod tests;
