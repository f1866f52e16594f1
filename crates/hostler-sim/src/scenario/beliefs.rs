//! What policies know of speeds: the `[profiles]` table of a scenario.
//!
//! The truth is in the physics of the site. Beliefs begin with the truth, with a part of it, with
//! estimates, or with nothing, and may be corrected by what is seen.

use std::collections::{BTreeMap, BTreeSet};

use hostler_core::id::{ModelId, ProfileKey};
use hostler_core::profile::{PairRun, Profile};
use hostler_predict::limits::PAIR_ENTRIES_MAX;
use hostler_predict::{EstimatedPairs, ObservedSpeeds, Speeds};
use serde::Deserialize;

use super::{ScenarioError, between};
use crate::lower::Workload;
use crate::trace::random::Random;

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Beliefs {
    source: BeliefSource,
    pub(super) pairs: PairSource,
    hidden: f64,
    seed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum BeliefSource {
    #[default]
    Table,
    Observed,
}

/// Which pairs of workloads policies know the speed of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairSource {
    /// Those that were measured.
    #[default]
    Measured,
    /// The others, too: estimated from those, until they have run together.
    Estimated,
}

type Profiles = BTreeMap<ProfileKey, Profile>;

impl Beliefs {
    /// Sets what policies are told and what they learn, when all true speeds are there.
    pub(super) fn apply(&self, workload: &mut Workload) -> Result<(), ScenarioError> {
        let hidden = between("hidden", self.hidden, 1.0, "a part from 0 to 1")?;
        let truth = &mut workload.site.physics.profiles;
        let known = without_hidden(truth, hidden, self.seed);
        if self.pairs == PairSource::Estimated {
            // What nobody measured has to be slow somehow: as it is estimated from all there is.
            *truth = estimated(truth.clone())?.profiles().clone();
        }
        let (told, learnt) = match (self.source, self.pairs) {
            (BeliefSource::Table, PairSource::Measured) => ((hidden > 0.0).then_some(known), None),
            (BeliefSource::Table, PairSource::Estimated) => {
                let pairs = estimated(known)?;
                (Some(pairs.profiles().clone()), Some(Speeds::Estimated(pairs)))
            }
            (BeliefSource::Observed, PairSource::Measured) => {
                (Some(Profiles::new()), Some(Speeds::Observed(ObservedSpeeds::default())))
            }
            (BeliefSource::Observed, PairSource::Estimated) => {
                let speeds = ObservedSpeeds::from_shares(estimated(known)?.profiles());
                (Some(speeds.profiles()), Some(Speeds::Observed(speeds)))
            }
        };
        workload.site.told_speeds = told;
        workload.estimates.speeds = learnt;
        Ok(())
    }
}

fn estimated(profiles: Profiles) -> Result<EstimatedPairs, ScenarioError> {
    EstimatedPairs::new(profiles).map_err(|refused| ScenarioError::TooManyPairs {
        entries: refused.entries,
        max: PAIR_ENTRIES_MAX,
    })
}

/// The profiles without a part of their pairs, drawn by chance. A larger part takes the same pairs
/// and more.
fn without_hidden(profiles: &Profiles, part: f64, seed: u64) -> Profiles {
    let pairs = profiles.iter().flat_map(|(key, profile)| {
        let runs = profile.measured.pairs().iter();
        runs.map(|(PairRun(other, model, _), _)| ordered(*key, *other, *model))
    });
    let pairs: BTreeSet<(ProfileKey, ProfileKey, ModelId)> = pairs.collect();
    let mut random = Random::new(seed);
    let hidden: BTreeSet<_> = pairs.into_iter().filter(|_| random.uniform() < part).collect();
    let mut known = profiles.clone();
    for (key, profile) in &mut known {
        profile.measured.retain_pairs(|PairRun(other, model, _)| {
            !hidden.contains(&ordered(*key, *other, *model))
        });
    }
    known
}

/// A pair, whichever side it is seen from.
fn ordered(
    key: ProfileKey,
    other: ProfileKey,
    model: ModelId,
) -> (ProfileKey, ProfileKey, ModelId) {
    (key.min(other), key.max(other), model)
}
