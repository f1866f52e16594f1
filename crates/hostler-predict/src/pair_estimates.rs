//! Speeds of pairs that nobody measured, from those that were.
//!
//! What two workloads leave of each other's speed is estimated by [`PairTable`]; times their
//! speeds alone, that stands in a profile like a measurement until the two have run together.
//! What was measured always stays, a pair that does not fit included. A workload of which no pair
//! was measured says nothing, and gets no estimate.

use std::collections::{BTreeMap, BTreeSet};

use hostler_core::id::{ModelId, ProfileKey};
use hostler_core::predict::Observed;
use hostler_core::profile::{PairPace, PairRun, Profile};
use hostler_core::units::{Pace, Rate};

use crate::limits::PAIR_ENTRIES_MAX;
use crate::pairs::PairTable;
use crate::throughput::worth_telling;

/// There are too many pairs to estimate any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyPairs {
    /// Pairs of all workloads with pairs, on all GPU models.
    pub entries: usize,
}

/// Profiles of which some pairs are estimated: each is corrected when the two run together.
#[derive(Clone, Debug, Default)]
pub struct EstimatedPairs {
    profiles: BTreeMap<ProfileKey, Profile>,
    /// Pairs that nobody measured, and what was told of them last.
    estimated: BTreeMap<(ProfileKey, PairRun), PairPace>,
}

impl EstimatedPairs {
    /// Estimates pairs that were not measured on GPU models and gangs of which others were.
    pub fn new(
        mut profiles: BTreeMap<ProfileKey, Profile>,
    ) -> Result<EstimatedPairs, TooManyPairs> {
        let mut found = Vec::new();
        for gpus in gangs(&profiles) {
            found.extend(Gaps::new(&profiles, gpus)?.estimates());
        }
        let mut estimated = BTreeMap::new();
        for (key, run, pace) in found {
            let profile = profiles.get_mut(&key).expect("estimated from this profile");
            profile.measured.set_pair(run, pace);
            estimated.insert((key, run), pace);
        }
        Ok(EstimatedPairs { profiles, estimated })
    }

    /// The profiles, estimates included.
    pub fn profiles(&self) -> &BTreeMap<ProfileKey, Profile> {
        &self.profiles
    }

    /// How many pairs are estimated, each counted from both sides.
    pub fn count(&self) -> usize {
        self.estimated.len()
    }

    /// Takes in how fast a stay was; the answer is what to believe from now on, if that changed.
    /// Only pairs that are estimated are believed otherwise.
    pub fn observe(&mut self, observed: &Observed) -> Vec<(ProfileKey, Profile)> {
        let Observed { key, model, gpus, spread: _, partner, rate } = *observed;
        let Some(other) = partner else { return Vec::new() };
        let (own, theirs) = (PairRun(other, model, gpus), PairRun(key, model, gpus));
        let Some(told) = self.estimated.get(&(key, own)).copied() else { return Vec::new() };
        let believed = self.profiles[&key].pair(other, model, gpus).expect("it is estimated");
        let corrected = match rate {
            // The one that started first may be the other: neither runs beside the other.
            Rate(0) => PairPace(Pace::ZERO, Pace::ZERO),
            _ => {
                let seen = of_rate(rate, self.profiles[&key].reference(gpus));
                PairPace(Pace((believed.0.0 + seen.0) / 2), believed.1)
            }
        };
        // Two of a kind are one entry, seen from either side.
        let corrected = match other == key {
            true => PairPace(corrected.0, corrected.0),
            false => corrected,
        };
        let telling = worth_telling(told.0, corrected.0) || worth_telling(told.1, corrected.1);
        self.set(key, own, corrected, telling);
        self.set(other, theirs, PairPace(corrected.1, corrected.0), telling);
        let keys = BTreeSet::from([key, other]);
        let keys = keys.into_iter().filter(|_| telling);
        keys.map(|key| (key, self.profiles[&key].clone())).collect()
    }

    fn set(&mut self, key: ProfileKey, run: PairRun, pace: PairPace, told: bool) {
        let profile = self.profiles.get_mut(&key).expect("both of a pair have profiles");
        profile.measured.set_pair(run, pace);
        if told {
            self.estimated.insert((key, run), pace);
        }
    }
}

/// Gangs of which some pair runs.
fn gangs(profiles: &BTreeMap<ProfileKey, Profile>) -> BTreeSet<u32> {
    let pairs = profiles.values().flat_map(|profile| profile.measured.pairs());
    let running = pairs.filter(|(_, pace)| pace.0 > Pace::ZERO && pace.1 > Pace::ZERO);
    running.map(|(PairRun(_, _, gpus), _)| *gpus).collect()
}

/// Workloads that were measured in pairs as gangs of one size, and the pairs that were not.
struct Gaps<'a> {
    profiles: Vec<(ProfileKey, &'a Profile)>,
    models: Vec<ModelId>,
    gpus: u32,
}

impl<'a> Gaps<'a> {
    fn new(
        profiles: &'a BTreeMap<ProfileKey, Profile>,
        gpus: u32,
    ) -> Result<Gaps<'a>, TooManyPairs> {
        let of_size = |profile: &'a Profile| {
            profile.measured.pairs().iter().filter(move |(run, _)| run.2 == gpus)
        };
        let in_pairs = profiles.iter().filter(|(_, profile)| of_size(profile).next().is_some());
        let kept: Vec<(ProfileKey, &Profile)> =
            in_pairs.map(|(key, profile)| (*key, profile)).collect();
        let models = kept.iter().flat_map(|(_, profile)| of_size(profile).map(|(run, _)| run.1));
        let models: BTreeSet<ModelId> = models.collect();
        let entries = kept.len().saturating_mul(kept.len()).saturating_mul(models.len());
        match entries <= PAIR_ENTRIES_MAX {
            true => Ok(Gaps { profiles: kept, models: models.into_iter().collect(), gpus }),
            false => Err(TooManyPairs { entries }),
        }
    }

    /// What the pairs that were not measured are taken to run at.
    fn estimates(&self) -> Vec<(ProfileKey, PairRun, PairPace)> {
        let row = |own: usize| {
            let entry = |(model, other)| self.share(own, model, other);
            self.columns().map(entry).collect()
        };
        let rows = (0..self.profiles.len()).map(row).collect();
        let Some(table) = PairTable::new(rows) else { return Vec::new() };
        let shares = table.estimate();
        let mut found = Vec::new();
        for (own, (key, profile)) in self.profiles.iter().enumerate() {
            for (column, (model, other)) in self.columns().enumerate() {
                let (partner, partners) = self.profiles[other];
                let back = column - other + own;
                let (Some(left), Some(right)) = (shares[own][column], shares[other][back]) else {
                    continue;
                };
                if profile.pair(partner, model, self.gpus).is_none() {
                    let alone = (self.alone(profile, model), self.alone(partners, model));
                    let run = PairRun(partner, model, self.gpus);
                    found.push((*key, run, paces((left, right), alone)));
                }
            }
        }
        found
    }

    fn columns(&self) -> impl Iterator<Item = (ModelId, usize)> {
        let others = self.profiles.len();
        self.models.iter().flat_map(move |model| (0..others).map(|other| (*model, other)))
    }

    fn alone(&self, profile: &Profile, model: ModelId) -> Pace {
        profile.pace(model, self.gpus, false)
    }

    /// What is left of the speed alone; none if the two were never measured there. A workload that
    /// does not fit alone does not in a pair.
    fn share(&self, own: usize, model: ModelId, other: usize) -> Option<f64> {
        let ((_, profile), (key, partner)) = (self.profiles[own], self.profiles[other]);
        let alone = self.alone(profile, model);
        if alone == Pace::ZERO || self.alone(partner, model) == Pace::ZERO {
            return Some(0.0);
        }
        let PairPace(own, _) = profile.pair(key, model, self.gpus)?;
        Some((own.0 as f64 / alone.0 as f64).min(1.0))
    }
}

/// Shares of speeds alone. A pair of which one would stand still does not fit.
fn paces(shares: (f64, f64), alone: (Pace, Pace)) -> PairPace {
    if shares.0 <= 0.0 || shares.1 <= 0.0 {
        return PairPace(Pace::ZERO, Pace::ZERO);
    }
    let part = |share: f64, alone: Pace| Pace((share * alone.0 as f64).round() as u64);
    PairPace(part(shares.0, alone.0), part(shares.1, alone.1))
}

fn of_rate(rate: Rate, reference: Pace) -> Pace {
    let pace = u128::from(rate.0) * u128::from(reference.0) / u128::from(Rate::FULL.0);
    Pace(u64::try_from(pace).unwrap_or(u64::MAX).min(Pace::MAX.0))
}

#[cfg(test)]
mod tests;
