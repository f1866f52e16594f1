//! Speeds as they were observed: corrects what is believed of profiles while jobs run.
//!
//! Each stay of a job tells how fast its workload was on a GPU model, for a gang, alone or beside
//! one partner. A moving average of these becomes the profile that policies see. Speeds are
//! relative to the reference run; nothing is learnt from what has not been reported yet.

use std::collections::{BTreeMap, BTreeSet};

use hostler_core::id::{JobId, ModelId, ProfileKey};
use hostler_core::job::{Estimate, JobSpec};
use hostler_core::predict::{Observed, Predict};
use hostler_core::profile::{Measured, PairPace, PairRun, Profile, Run};
use hostler_core::units::{Pace, Rate, Span};

use crate::limits::SPEEDS_MAX;
use crate::pair_estimates::EstimatedPairs;

/// Change of a belief that is worth an event, in per cent; less changes no decision and would
/// fill the log.
const TOLD_PER_CENT: u64 = 1;

/// What was observed of all profiles.
#[derive(Clone, Debug, Default)]
pub struct ObservedSpeeds {
    alone: BTreeMap<(ProfileKey, Run), Belief>,
    beside: BTreeMap<(ProfileKey, PairRun), Belief>,
    /// What partners are taken to leave of the speed alone, until the two were seen together.
    shares: BTreeMap<(ProfileKey, PairRun), Rate>,
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

    /// Begins with what pairs leave of speeds that are not known yet. Whatever was not seen counts
    /// as fast as the reference.
    pub fn from_shares(profiles: &BTreeMap<ProfileKey, Profile>) -> ObservedSpeeds {
        let mut speeds = ObservedSpeeds::default();
        for (key, profile) in profiles {
            for (run, PairPace(own, _)) in profile.measured.pairs() {
                let share = own.relative_to(profile.pace(run.1, run.2, false));
                speeds.shares.insert((*key, *run), share);
            }
        }
        speeds
    }

    /// What is believed of all profiles of which something is.
    pub fn profiles(&self) -> BTreeMap<ProfileKey, Profile> {
        let alone = self.alone.keys().map(|(key, _)| *key);
        let pairs = self.beside.keys().chain(self.shares.keys()).map(|(key, _)| *key);
        let keys: BTreeSet<ProfileKey> = alone.chain(pairs).collect();
        keys.into_iter().map(|key| (key, self.profile(key))).collect()
    }

    /// Takes in how fast a stay was; the answer is what to believe from now on, if that changed.
    pub fn observe(&mut self, observed: &Observed) -> Vec<(ProfileKey, Profile)> {
        let Observed { key, model, gpus, spread, partner, rate } = *observed;
        if self.alone.len() + self.beside.len() >= SPEEDS_MAX {
            return Vec::new();
        }
        let seen = of_rate(rate);
        let keys = match partner {
            None => {
                let run = Run(model, spread, gpus);
                let changed = learn(&mut self.alone, (key, run), None, seen);
                // Estimates go by the speed alone, and pairs are told from both sides.
                if changed { self.estimated_beside(key) } else { BTreeSet::new() }
            }
            Some(other) => {
                let sides =
                    [(key, PairRun(other, model, gpus)), (other, PairRun(key, model, gpus))];
                let changed = match rate {
                    Rate(0) => sides.map(|side| self.rule_out(side)).contains(&true),
                    _ => {
                        let estimate = self.estimate(sides[0]);
                        learn(&mut self.beside, sides[0], estimate, seen)
                    }
                };
                if changed { BTreeSet::from([key, other]) } else { BTreeSet::new() }
            }
        };
        keys.into_iter().map(|key| (key, self.profile(key))).collect()
    }

    /// A profile and those that are estimated to share GPUs with it.
    fn estimated_beside(&self, key: ProfileKey) -> BTreeSet<ProfileKey> {
        let first = (key, PairRun(ProfileKey(0), ModelId(0), 0));
        let shares = self.shares.range(first..).take_while(|((of, _), _)| *of == key);
        shares.map(|((_, run), _)| run.0).chain([key]).collect()
    }

    /// Two that could not start together are not tried again; whether that is news.
    fn rule_out(&mut self, side: (ProfileKey, PairRun)) -> bool {
        let never = Belief { pace: Pace::ZERO, told: Pace::ZERO };
        let before = self.beside.insert(side, never);
        before.is_none_or(|before| before.told > Pace::ZERO)
    }

    /// What a pair is estimated to run at, seen from one side.
    fn estimate(&self, (key, run): (ProfileKey, PairRun)) -> Option<Pace> {
        let share = self.shares.get(&(key, run))?;
        let alone = self.near(key, run.1, run.2);
        let pace = u128::from(alone.0) * u128::from(share.0) / u128::from(Rate::FULL.0);
        Some(Pace(u64::try_from(pace).unwrap_or(u64::MAX)))
    }

    /// Speed alone of a gang, or of one of another size; what was never seen is as fast as the
    /// reference.
    fn near(&self, key: ProfileKey, model: ModelId, gpus: u32) -> Pace {
        let of_model = (key, Run(model, false, 0))..=(key, Run(model, false, u32::MAX));
        let below = self.alone.range(*of_model.start()..=(key, Run(model, false, gpus)));
        let nearest = below.last().or_else(|| self.alone.range(of_model).next());
        nearest.map_or(Pace::ONE, |(_, belief)| belief.pace)
    }

    /// What is believed of a pair, seen from one side; none if nothing is.
    fn pair(&self, side: (ProfileKey, PairRun)) -> Option<Pace> {
        let seen = self.beside.get(&side).map(|belief| belief.pace);
        seen.or_else(|| self.estimate(side))
    }

    /// What is believed of a profile.
    pub fn profile(&self, key: ProfileKey) -> Profile {
        let mut measured = Measured::relative();
        let first = (key, Run(ModelId(0), false, 0));
        let alone = self.alone.range(first..).take_while(|((of, _), _)| *of == key);
        alone.for_each(|((_, run), belief)| measured.set(*run, belief.pace));
        let first = (key, PairRun(ProfileKey(0), ModelId(0), 0));
        let seen = self.beside.range(first..).map(|(side, _)| *side);
        let estimated = self.shares.range(first..).map(|(side, _)| *side);
        let own = |side: &(ProfileKey, PairRun)| side.0 == key;
        for side in seen.take_while(own).chain(estimated.take_while(own)) {
            let PairRun(other, model, gpus) = side.1;
            let Some(pace) = self.pair(side) else { continue };
            let others = self.pair((other, PairRun(key, model, gpus)));
            // Nobody saw the other slowed by this one yet.
            let others = others.unwrap_or_else(|| self.near(other, model, gpus));
            measured.set_pair(side.1, PairPace(pace, others));
        }
        Profile { measured, ..Profile::default() }
    }
}

/// Half of what was believed and half of what was seen; whether that is worth telling. What was
/// believed of something never seen before is an estimate, or nothing.
fn learn<Key: Ord>(
    beliefs: &mut BTreeMap<Key, Belief>,
    key: Key,
    estimate: Option<Pace>,
    seen: Pace,
) -> bool {
    let first = Belief { pace: estimate.unwrap_or(seen), told: estimate.unwrap_or(Pace::ZERO) };
    let belief = beliefs.entry(key).or_insert(first);
    belief.pace = Pace((belief.pace.0 + seen.0) / 2);
    let telling = worth_telling(belief.told, belief.pace);
    if telling {
        belief.told = belief.pace;
    }
    telling
}

/// Whether a belief differs enough from what was told of it.
pub(crate) fn worth_telling(told: Pace, pace: Pace) -> bool {
    pace.0.abs_diff(told.0) * 100 > told.0 * TOLD_PER_CENT
}

fn of_rate(rate: Rate) -> Pace {
    Pace(u64::from(rate.0) * (Pace::ONE.0 / u64::from(Rate::FULL.0)))
}

/// What is learnt of speeds.
#[derive(Clone, Debug)]
pub enum Speeds {
    /// All of them.
    Observed(ObservedSpeeds),
    /// Those of pairs that are estimated so far.
    Estimated(EstimatedPairs),
}

/// A predictor of run times that also learns speeds.
pub struct WithSpeeds {
    inner: Box<dyn Predict>,
    speeds: Speeds,
}

impl WithSpeeds {
    /// Run times from `inner`, speeds on top of `speeds`.
    pub fn new(inner: Box<dyn Predict>, speeds: Speeds) -> WithSpeeds {
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
        match &mut self.speeds {
            Speeds::Observed(speeds) => speeds.observe(observed),
            Speeds::Estimated(pairs) => pairs.observe(observed),
        }
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

    /// Beside the other, three quarters are left on the K80, whatever the speed alone is.
    fn with_shares() -> ObservedSpeeds {
        let profile = |other| {
            let mut profile = Profile::default();
            profile.measured.set(Run(K80, false, 1), Pace(4_000_000_000));
            let pair = PairPace(Pace(3_000_000_000), Pace(3_000_000_000));
            profile.measured.set_pair(PairRun(other, K80, 1), pair);
            profile
        };
        let profiles = BTreeMap::from([(KEY, profile(OTHER)), (OTHER, profile(KEY))]);
        ObservedSpeeds::from_shares(&profiles)
    }

    #[test]
    fn an_estimated_pair_follows_the_speed_alone_until_it_is_seen() {
        let mut speeds = with_shares();
        let first = speeds.profiles();
        assert_eq!(first[&KEY].on(K80, 1), Rate::FULL);
        assert_eq!(first[&KEY].pair_rates(OTHER, K80, 1), Some((0.75, 0.75)));
        // Both are told anew: the partner has the speed of this one in its pair.
        let told = speeds.observe(&seen(None, 400_000));
        let keys: Vec<ProfileKey> = told.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, [KEY, OTHER]);
        assert_eq!(told[0].1.pair_rates(OTHER, K80, 1), Some((0.3, 0.75)));
        assert_eq!(told[1].1.pair_rates(KEY, K80, 1), Some((0.75, 0.3)));
        // Estimated 0.3, seen 0.2; later the speed alone is of no account any more.
        let told = speeds.observe(&seen(Some(OTHER), 200_000));
        assert_eq!(told[0].1.pair_rates(OTHER, K80, 1), Some((0.25, 0.75)));
        let told = speeds.observe(&seen(None, 200_000));
        assert_eq!(told[0].1.pair_rates(OTHER, K80, 1), Some((0.25, 0.75)));
    }

    #[test]
    fn a_pair_that_failed_to_start_is_told_as_one_that_does_not_fit() {
        let mut speeds = with_shares();
        let told = speeds.observe(&seen(Some(OTHER), 0));
        assert_eq!(told[0].1.pair_rates(OTHER, K80, 1), Some((0.0, 0.0)));
        assert_eq!(told[1].1.pair_rates(KEY, K80, 1), Some((0.0, 0.0)));
        assert_eq!(speeds.observe(&seen(Some(OTHER), 0)), []);
    }
}
