//! How fast jobs really run: GPU model, reach and neighbours.
//!
//! Does not know which policy runs. Values come from the scenario; without any, every job runs at
//! reference speed everywhere.

use std::collections::BTreeMap;

use hostler_core::id::{DeviceId, LeaseId, ProfileKey};
use hostler_core::job::JobSpec;
use hostler_core::placement::Placement;
use hostler_core::profile::{Profile, Reach};
use hostler_core::units::{Rate, Span};

/// True speeds and delays.
#[derive(Clone, Debug, Default)]
pub struct Physics {
    /// Speed of each kind of job.
    pub profiles: BTreeMap<ProfileKey, Profile>,
    /// Time from the decision to the first step of work.
    pub start_delay: Span,
    /// Time that a sleeping node needs to wake.
    pub wake_delay: Span,
}

/// Who holds a part of which device; kept only where neighbours matter.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    holders: BTreeMap<DeviceId, Vec<LeaseId>>,
}

impl Physics {
    /// Whether any job is slowed by neighbours.
    pub(crate) fn neighbours_matter(&self) -> bool {
        self.profiles
            .values()
            .any(|profile| profile.shared.is_some() || !profile.pairs.is_empty())
    }

    /// Speed of a job without neighbours. `model_of` gives the GPU model of a part's node.
    pub(crate) fn rate(
        &self,
        spec: &JobSpec,
        models: impl Iterator<Item = hostler_core::id::ModelId>,
        reach: impl FnOnce() -> Reach,
    ) -> Rate {
        let Some(profile) = spec.profile.and_then(|key| self.profiles.get(&key)) else {
            return Rate::FULL;
        };
        let slowest = models
            .map(|model| profile.on(model))
            .min()
            .unwrap_or(Rate::FULL);
        slowest.times(profile.at_reach(reach()))
    }

    /// Factor by which a neighbour of profile `other` slows a job of profile `own`.
    pub(crate) fn beside(&self, own: Option<ProfileKey>, other: Option<ProfileKey>) -> Rate {
        let profile = own.and_then(|key| self.profiles.get(&key));
        profile.map_or(Rate::FULL, |profile| profile.beside(other))
    }
}

impl Neighbours {
    pub(crate) fn join(&mut self, lease: LeaseId, placement: &Placement) {
        for device in devices(placement) {
            self.holders.entry(device).or_default().push(lease);
        }
    }

    pub(crate) fn leave(&mut self, lease: LeaseId, placement: &Placement) {
        for device in devices(placement) {
            if let Some(holders) = self.holders.get_mut(&device) {
                holders.retain(|holder| *holder != lease);
            }
        }
    }

    /// Others on the devices of a placement, each once, ascending.
    pub(crate) fn of(&self, lease: LeaseId, placement: &Placement) -> Vec<LeaseId> {
        let lists = devices(placement).filter_map(|device| self.holders.get(&device));
        let mut others: Vec<LeaseId> = lists
            .flatten()
            .copied()
            .filter(|other| *other != lease)
            .collect();
        others.sort_unstable();
        others.dedup();
        others
    }
}

fn devices(placement: &Placement) -> impl Iterator<Item = DeviceId> {
    placement
        .parts
        .iter()
        .flat_map(|part| &part.slices)
        .map(|slice| slice.device)
}
