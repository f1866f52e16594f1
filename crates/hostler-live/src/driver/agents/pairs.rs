//! How fast two jobs are beside each other, from the steps that each of them reports.

use hostler_core::cluster::Share;
use hostler_core::event::Event;
use hostler_core::id::{DeviceId, ProfileKey};
use hostler_core::placement::Lease;
use hostler_core::profile::{PairPace, PairRun};
use hostler_core::state::ClusterState;
use hostler_core::units::{Pace, Time};

use super::speeds::TOLD_PER_CENT;
use crate::limits::RUNS_PER_PROFILE_MAX;

/// Two workloads that share GPUs, seen from one of them.
pub(super) struct Beside {
    own: ProfileKey,
    run: PairRun,
}

/// Beside whom a stay has been since a time; none where that was nobody, several or somebody else.
pub(super) fn beside(state: &ClusterState, lease: &Lease, since: Time) -> Option<Beside> {
    let own = &state.job(lease.job)?.spec;
    let slices = || lease.placement.parts.iter().flat_map(|part| &part.slices);
    let whole = own.gangs.iter().all(|gang| !gang.demand.gpu.is_fraction());
    let shares = slices().all(|slice| slice.share != Share::Whole);
    if !whole || !shares || lease.placement.gpus() != own.gpus() {
        return None;
    }
    let mut others = lease.placement.parts.iter().flat_map(|part| &state.node(part.node).leases);
    let on_same =
        |other: &&Lease| devices(other).any(|device| devices(lease).any(|own| own == device));
    let first = others.clone().filter(|id| **id != lease.id).filter_map(|id| state.lease(*id));
    let other = first.filter(on_same).min_by_key(|other| other.id)?;
    let only = |id: &hostler_core::id::LeaseId| {
        *id == lease.id || *id == other.id || state.lease(*id).is_none_or(|third| !on_same(&third))
    };
    let together = devices(lease).eq(devices(other));
    let all_the_time = |lease: &Lease| lease.started.is_some_and(|started| started <= since);
    if !together || !others.all(only) || !all_the_time(lease) || !all_the_time(other) {
        return None;
    }
    let model = state.model_of(lease)?;
    let theirs = state.job(other.job)?.spec.profile?;
    let run = PairRun(theirs, model, lease.placement.gpus());
    Some(Beside { own: own.profile?, run })
}

fn devices(lease: &Lease) -> impl Iterator<Item = DeviceId> {
    lease.placement.parts.iter().flat_map(|part| &part.slices).map(|slice| slice.device)
}

/// Half of what was believed and half of what was seen, if that is worth a fact: for this one, and
/// for the other's view of it. Nobody is believed to share who was not seen alone.
pub(super) fn believe(state: &ClusterState, beside: Beside, seen: Pace) -> Option<Vec<Event>> {
    let Beside { own, run: run @ PairRun(other, model, gpus) } = beside;
    let mut profile = state.profile(own)?.clone();
    let before = profile.exact_pair(run);
    if before.is_none() && profile.measured.pairs().len() >= RUNS_PER_PROFILE_MAX {
        return None;
    }
    let pace = before.map_or(seen, |PairPace(before, _)| Pace((before.0 + seen.0) / 2));
    let change = pace.0.abs_diff(before.map_or(0, |PairPace(before, _)| before.0));
    if before.is_some_and(|PairPace(before, _)| change * 100 <= before.0 * TOLD_PER_CENT) {
        return None;
    }
    let theirs = state.profile(other).filter(|_| other != own);
    let back = PairRun(own, model, gpus);
    let known = theirs.and_then(|theirs| theirs.exact_pair(back));
    let others = match other == own {
        true => pace,
        false => known.map_or_else(
            // Nobody saw the other slowed by this one yet.
            || theirs.map_or(Pace::ONE, |theirs| theirs.pace(model, gpus, false)),
            |PairPace(others, _)| others,
        ),
    };
    profile.measured.set_pair(run, PairPace(pace, others));
    let mut events = vec![Event::Profiled { key: own, profile }];
    if let Some((theirs, PairPace(others, _))) = theirs.zip(known) {
        let mut profile = theirs.clone();
        profile.measured.set_pair(back, PairPace(others, pace));
        events.push(Event::Profiled { key: other, profile });
    }
    Some(events)
}
