//! Speeds as they were observed: corrects what is believed of profiles while jobs run.
//!
//! Each stay of a job tells how fast its workload was on a GPU model, for a gang, alone or beside
//! one partner. A moving average of these becomes the profile that policies see. Speeds are
//! relative to the reference run; nothing is learnt from what has not been reported yet.

use std::collections::BTreeMap;

use hostler_core::id::{JobId, ModelId, ProfileKey};
use hostler_core::job::{Estimate, JobSpec};
use hostler_core::predict::{Observed, Predict};
use hostler_core::profile::{Measured, PairPace, PairRun, Profile, Run};
use hostler_core::units::{Pace, Rate, Span};

use crate::limits::SPEEDS_MAX;

/// Change of a belief that is worth an event, in per cent; less changes no decision and would
/// fill the log.
const TOLD_PER_CENT: u64 = 1;

/// What was observed of all profiles.
#[derive(Clone, Debug, Default)]
pub struct ObservedSpeeds {
    alone: BTreeMap<(ProfileKey, Run), Belief>,
    beside: BTreeMap<(ProfileKey, PairRun), Belief>,
}

#[derive(Clone, Copy, Debug)]
struct Belief {
    pace: Pace,
    told: Pace,
}

impl ObservedSpeeds {
    /// Begins with what a table says.
    pub fn from_tables(profiles: &BTreeMap<ProfileKey, Profile>) -> ObservedSpeeds {
        let mut speeds = ObservedSpeeds::default();
        for (key, profile) in profiles {
            for (run, pace) in profile.measured.alone() {
                let pace = of_rate(pace.relative_to(profile.reference(run.2)));
                speeds.alone.insert((*key, *run), Belief { pace, told: pace });
            }
            for (run, PairPace(own, _)) in profile.measured.pairs() {
                let pace = of_rate(own.relative_to(profile.reference(run.2)));
                speeds.beside.insert((*key, *run), Belief { pace, told: pace });
            }
        }
        speeds
    }

    /// Takes in how fast a stay was; the answer is what to believe from now on, if that changed.
    pub fn observe(&mut self, observed: &Observed) -> Vec<(ProfileKey, Profile)> {
        let Observed { key, model, gpus, spread, partner, rate } = *observed;
        if self.alone.len() + self.beside.len() >= SPEEDS_MAX {
            return Vec::new();
        }
        let pace = of_rate(rate);
        let changed = match partner {
            None => learn(&mut self.alone, (key, Run(model, spread, gpus)), pace),
            Some(other) => learn(&mut self.beside, (key, PairRun(other, model, gpus)), pace),
        };
        // A pair is told from both sides.
        let keys = [Some(key), partner.filter(|other| *other != key)];
        let keys = keys.into_iter().flatten().filter(|_| changed);
        keys.map(|key| (key, self.profile(key))).collect()
    }

    /// What is believed of a profile.
    pub fn profile(&self, key: ProfileKey) -> Profile {
        let mut measured = Measured::relative();
        let first = (key, Run(ModelId(0), false, 0));
        let alone = self.alone.range(first..).take_while(|((of, _), _)| *of == key);
        alone.for_each(|((_, run), belief)| measured.set(*run, belief.pace));
        let first = (key, PairRun(ProfileKey(0), ModelId(0), 0));
        let beside = self.beside.range(first..).take_while(|((of, _), _)| *of == key);
        for ((_, run), belief) in beside {
            let PairRun(other, model, gpus) = *run;
            let others = self.beside.get(&(other, PairRun(key, model, gpus)));
            let alone = || self.alone.get(&(other, Run(model, false, gpus)));
            // Nobody saw the other slowed by this one yet.
            let others = others.or_else(alone).map_or(Pace::ONE, |belief| belief.pace);
            measured.set_pair(*run, PairPace(belief.pace, others));
        }
        Profile { measured, ..Profile::default() }
    }
}

/// Half of what was believed and half of what was seen; whether that is worth telling.
fn learn<Key: Ord>(beliefs: &mut BTreeMap<Key, Belief>, key: Key, seen: Pace) -> bool {
    let belief = beliefs.entry(key).or_insert(Belief { pace: seen, told: Pace::ZERO });
    belief.pace = Pace((belief.pace.0 + seen.0) / 2);
    let change = belief.pace.0.abs_diff(belief.told.0);
    let telling = change * 100 > belief.told.0 * TOLD_PER_CENT;
    if telling {
        belief.told = belief.pace;
    }
    telling
}

fn of_rate(rate: Rate) -> Pace {
    Pace(u64::from(rate.0) * (Pace::ONE.0 / u64::from(Rate::FULL.0)))
}

/// A predictor of run times that also learns speeds.
pub struct WithSpeeds {
    inner: Box<dyn Predict>,
    speeds: ObservedSpeeds,
}

impl WithSpeeds {
    /// Run times from `inner`, speeds on top of `speeds`.
    pub fn new(inner: Box<dyn Predict>, speeds: ObservedSpeeds) -> WithSpeeds {
        WithSpeeds { inner, speeds }
    }
}

impl Predict for WithSpeeds {
    fn estimate(&mut self, job: JobId, spec: &JobSpec) -> Option<Estimate> {
        self.inner.estimate(job, spec)
    }

    fn observe(&mut self, job: JobId, spec: &JobSpec, run: Span) -> Vec<JobId> {
        self.inner.observe(job, spec, run)
    }

    fn wants_speeds(&self) -> bool {
        true
    }

    fn observe_speed(&mut self, observed: &Observed) -> Vec<(ProfileKey, Profile)> {
        self.speeds.observe(observed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ProfileKey = ProfileKey(0);
    const OTHER: ProfileKey = ProfileKey(1);
    const V100: ModelId = ModelId(0);
    const K80: ModelId = ModelId(1);

    fn seen(partner: Option<ProfileKey>, rate: u32) -> Observed {
        Observed { key: KEY, model: K80, gpus: 1, spread: false, partner, rate: Rate(rate) }
    }

    #[test]
    fn beliefs_move_half_way_to_what_was_seen() {
        let mut speeds = ObservedSpeeds::default();
        let told = speeds.observe(&seen(None, 400_000));
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].1.on(K80, 1), Rate(400_000));
        // Nothing is known of the other model, and gangs of two are like those of one.
        assert_eq!(told[0].1.on(V100, 1), Rate::FULL);
        assert_eq!(told[0].1.on(K80, 2), Rate(400_000));
        let told = speeds.observe(&seen(None, 200_000));
        assert_eq!(told[0].1.on(K80, 1), Rate(300_000));
        assert!(told[0].1.is_sane());
    }

    #[test]
    fn what_hardly_changes_is_not_told_again() {
        let mut speeds = ObservedSpeeds::default();
        assert_eq!(speeds.observe(&seen(None, 400_000)).len(), 1);
        assert_eq!(speeds.observe(&seen(None, 403_000)), []);
    }

    #[test]
    fn a_table_is_corrected_rather_than_forgotten() {
        let mut profile = Profile::default();
        profile.measured.set(Run(V100, false, 1), Pace(8_000_000_000));
        profile.measured.set(Run(K80, false, 1), Pace(4_000_000_000));
        let mut speeds = ObservedSpeeds::from_tables(&BTreeMap::from([(KEY, profile)]));
        // Believed 0.5, seen 0.3.
        let told = speeds.observe(&seen(None, 300_000));
        assert_eq!(told[0].1.on(K80, 1), Rate(400_000));
        assert_eq!(told[0].1.on(V100, 1), Rate::FULL);
    }

    #[test]
    fn a_pair_is_told_from_both_sides() {
        let mut speeds = ObservedSpeeds::default();
        speeds.observe(&seen(None, 800_000));
        let told = speeds.observe(&seen(Some(OTHER), 600_000));
        let keys: Vec<ProfileKey> = told.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, [KEY, OTHER]);
        assert_eq!(told[0].1.pair_rates(OTHER, K80, 1), Some((0.6, 1.0)));
        // Three quarters of its speed alone.
        assert_eq!(told[0].1.beside(Some(OTHER), K80, 1), Rate(750_000));
    }
}
