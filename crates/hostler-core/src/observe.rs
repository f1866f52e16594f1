//! How fast a stay is or was, from what is told of it. Not for what was believed before.

use crate::cluster::Share;
use crate::decision::StopHow;
use crate::event::Outcome;
use crate::id::{LeaseId, ProfileKey};
use crate::placement::Lease;
use crate::predict::Observed;
use crate::state::ClusterState;
use crate::units::{Rate, Span};

/// Stays that are shorter say more of the start than of the speed.
const STAY_MIN: Span = Span::from_secs(1);

/// The pair that a start which failed was part of, at speed zero; none when the job had its GPUs
/// for itself, since then nothing tells that they were the reason.
pub(crate) fn unfit(state: &ClusterState, lease: LeaseId) -> Option<Observed> {
    let lease = state.lease(lease).filter(|lease| lease.started.is_none())?;
    let job = state.job(lease.job)?;
    // Whoever was told to stop meanwhile may not have started for that.
    if lease.stop.is_some() || job.cancelled {
        return None;
    }
    let spec = &job.spec;
    let mut others = neighbours(state, lease);
    let (other, more) = (others.next()?, others.next());
    let partner = state.job(other.job)?.spec.profile?;
    let model = state.model_of(lease)?;
    let (key, gpus) = (spec.profile?, lease.placement.gpus());
    let beside =
        Observed { key, model, gpus, spread: false, partner: Some(partner), rate: Rate(0) };
    more.is_none().then_some(beside)
}

/// The speed of a stay that ends now; none where it cannot be told apart from something else:
/// too short, several models, not the gang that was asked for, neighbours that changed, or a save
/// that was cut off.
pub(crate) fn observed(
    state: &ClusterState,
    lease: LeaseId,
    outcome: Outcome,
    (done, lost): (Span, Span),
) -> Option<Observed> {
    let lease = state.lease(lease)?;
    let spec = &state.job(lease.job)?.spec;
    let saving = match (outcome, lease.stop) {
        (Outcome::Interrupted, Some(stop)) if stop.how == StopHow::Checkpoint => {
            spec.checkpoint.save
        }
        // When it left its GPUs nobody knows.
        (Outcome::Suspended, _) => return None,
        _ => Span::ZERO,
    };
    let began = lease.started? + lease.load;
    let work = (done + lost).saturating_sub(lease.base);
    let due = |(every, _): (Span, Span)| work > Span::ZERO && work.0.is_multiple_of(every.0);
    if outcome != Outcome::Finished && spec.checkpoint.rhythm().is_some_and(due) {
        // It may have been about to save, and for how long nobody knows.
        return None;
    }
    let saving = saving + spec.checkpoint.pauses(work);
    speed_of(state, lease, work, state.now().since(began).saturating_sub(saving))
}

/// The speed of a stay that goes on, of which so much work is done; none where that cannot be told.
pub(crate) fn observed_so_far(
    state: &ClusterState,
    lease: LeaseId,
    done: Span,
    idle: Span,
) -> Option<Observed> {
    let lease = state.lease(lease)?;
    let spec = &state.job(lease.job)?.spec;
    if spec.checkpoint.rhythm().is_some_and(|(every, _)| done.0.is_multiple_of(every.0)) {
        // It may be about to save, and for how long nobody knows.
        return None;
    }
    let began = lease.started? + lease.load;
    let paused = idle + spec.checkpoint.pauses(done);
    speed_of(state, lease, done, state.now().since(began).saturating_sub(paused))
}

/// The speed of a stay that did so much work in so much time.
fn speed_of(state: &ClusterState, lease: &Lease, work: Span, worked: Span) -> Option<Observed> {
    let spec = &state.job(lease.job)?.spec;
    let gpus = lease.placement.gpus();
    if worked < STAY_MIN || gpus == 0 || gpus != spec.gpus() {
        return None;
    }
    let on_gpus = || lease.placement.parts.iter().filter(|part| !part.slices.is_empty());
    let mut models = on_gpus().map(|part| state.node(part.node).spec.gpu_model);
    let model = models.next()??;
    if !models.all(|other| other == Some(model)) {
        return None;
    }
    let rate = u128::from(work.0) * u128::from(Rate::FULL.0) / u128::from(worked.0);
    Some(Observed {
        key: spec.profile?,
        model,
        gpus,
        spread: state.reach(&lease.placement).is_spread(),
        partner: partner(state, lease)?,
        rate: Rate(u32::try_from(rate).unwrap_or(u32::MAX).max(1)),
    })
}

/// The profile beside a lease for all of its stay, if any; none when that cannot be known.
fn partner(state: &ClusterState, lease: &Lease) -> Option<Option<ProfileKey>> {
    let slices = || lease.placement.parts.iter().flat_map(|part| &part.slices);
    if slices().all(|slice| slice.share == Share::Whole) {
        return Some(None);
    }
    let mut others = neighbours(state, lease);
    let other = others.next()?;
    if others.next().is_some() || other.started? > lease.started? {
        return None;
    }
    Some(Some(state.job(other.job)?.spec.profile?))
}

/// Others that hold a part of the same GPUs.
fn neighbours<'a>(state: &'a ClusterState, lease: &'a Lease) -> impl Iterator<Item = &'a Lease> {
    let slices = || lease.placement.parts.iter().flat_map(|part| &part.slices);
    state.leases().filter(move |other| {
        let mut theirs = other.placement.parts.iter().flat_map(|part| &part.slices);
        other.id != lease.id && theirs.any(|one| slices().any(|own| own.device == one.device))
    })
}

#[cfg(test)]
mod tests;
