//! How fast jobs really run: GPU model, reach and neighbours.
//!
//! Does not know which policy runs. Values come from the scenario; without any, every job runs at
//! reference speed everywhere.

mod sharing;

use std::collections::BTreeMap;

pub(crate) use sharing::Member;
pub use sharing::SharingLaw;

use hostler_core::id::{DeviceId, LeaseId, ModelId, ProfileKey};
use hostler_core::job::JobSpec;
use hostler_core::placement::Placement;
use hostler_core::profile::{Profile, Reach};
use hostler_core::suspend::SuspendCost;
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
    /// Time that it takes to move a job out of its GPUs and back.
    pub suspend: SuspendCost,
    /// How jobs on one GPU slow each other down, where their real use is known.
    pub sharing: SharingLaw,
}

/// Who holds a part of which device; kept only where neighbours matter.
#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    holders: BTreeMap<DeviceId, Vec<LeaseId>>,
}

impl Physics {
    /// Whether any job is slowed by neighbours.
    pub(crate) fn neighbours_matter(&self) -> bool {
        let pairs =
            |profile: &Profile| !profile.pairs.is_empty() || !profile.measured.pairs().is_empty();
        self.profiles.values().any(|profile| profile.shared.is_some() || pairs(profile))
    }

    /// Speed of a job without neighbours on `gpus` GPUs; none where it does not fit. `models` are
    /// those of the nodes of its parts.
    pub(crate) fn rate(
        &self,
        spec: &JobSpec,
        gpus: u32,
        models: impl Iterator<Item = ModelId>,
        reach: impl FnOnce() -> Reach,
    ) -> Option<Rate> {
        let Some(profile) = spec.profile.and_then(|key| self.profiles.get(&key)) else {
            return Some(Rate::FULL);
        };
        let (asked, reach) = (spec.gpus(), reach());
        let rates = models.map(|model| profile.rate(model, gpus, asked, reach));
        let slowest = rates.min().unwrap_or_else(|| profile.at_reach(reach));
        (slowest.0 > 0).then_some(slowest)
    }

    /// Factor by which a neighbour of profile `other` slows a job of profile `own` that has `gpus`
    /// GPUs; none where the two do not fit together.
    pub(crate) fn beside(
        &self,
        own: Option<ProfileKey>,
        other: Option<ProfileKey>,
        gpus: u32,
        models: impl Iterator<Item = ModelId>,
    ) -> Option<Rate> {
        let Some(profile) = own.and_then(|key| self.profiles.get(&key)) else {
            return Some(Rate::FULL);
        };
        let factors = models.map(|model| profile.beside(other, model, gpus));
        let slowest = factors.min().unwrap_or(Rate::FULL);
        (slowest.0 > 0).then_some(slowest)
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
        let mut others: Vec<LeaseId> =
            lists.flatten().copied().filter(|other| *other != lease).collect();
        others.sort_unstable();
        others.dedup();
        others
    }
}

fn devices(placement: &Placement) -> impl Iterator<Item = DeviceId> {
    placement.parts.iter().flat_map(|part| &part.slices).map(|slice| slice.device)
}
