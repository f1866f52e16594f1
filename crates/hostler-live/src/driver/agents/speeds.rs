//! How fast jobs are on which GPUs, from the steps that they report.
//!
//! Jobs of one group of one tenant do the same thing again, so what one of them shows is believed
//! of all. The belief is in the state, as facts of the log: nothing here remembers it. Stays are
//! measured that have their GPUs for themselves, and those beside one other that was there for all
//! of the time; who shares otherwise is slowed by nobody knows whom.

use hostler_core::cluster::Share;
use hostler_core::event::Event;
use hostler_core::id::{LeaseId, ProfileKey};
use hostler_core::job::Job;
use hostler_core::placement::Lease;
use hostler_core::profile::Run;
use hostler_core::state::ClusterState;
use hostler_core::units::{Pace, Span};

use super::{AgentDriver, pairs};
use crate::host::Desk;
use crate::limits::{PROFILES_MAX, RUNS_PER_PROFILE_MAX};

/// Time over which steps are counted: what takes its turn now and then, such as saving, is in it.
const MEASURED_OVER: Span = Span::from_secs(60);

/// Change of a belief that is worth a fact, in per cent. Each makes a policy think again, and steps
/// are not so even that less would mean anything.
pub(super) const TOLD_PER_CENT: u64 = 5;

impl AgentDriver {
    /// Takes in a step that a stay reports; from time to time that tells its speed.
    pub(super) fn measure(&mut self, desk: &mut Desk, lease: LeaseId, step: u64) {
        let Some(run) = self.lease_runs.get_mut(&lease) else { return };
        let (since, from) = match run.measured_from {
            Some((since, from)) if step >= from => (since, from),
            // The first report, or one of a job that began again.
            Some(_) | None => {
                run.measured_from = Some((desk.now(), step));
                return;
            }
        };
        let span = desk.now().since(since);
        if span < MEASURED_OVER || step == from {
            return;
        }
        run.measured_from = Some((desk.now(), step));
        let seen = Pace::from_steps_per_sec((step - from) as f64 / span.secs_f64());
        let state = desk.state();
        let believed = seen.zip(state.lease(lease)).map(|(seen, lease)| {
            let alone = where_alone(state, lease).map(|(key, run)| believe(state, key, run, seen));
            let beside = || pairs::believe(state, pairs::beside(state, lease, since)?, seen);
            alone.map_or_else(|| beside().unwrap_or_default(), |event| event.into_iter().collect())
        });
        for event in believed.into_iter().flatten() {
            self.fact(desk, event);
        }
    }
}

/// Steps per second of a job where it is fastest, if anything is known of its speeds.
pub(super) fn reference(state: &ClusterState, job: &Job) -> Option<Pace> {
    let profile = state.profile(job.spec.profile?)?;
    let pace = profile.reference(job.spec.gpus());
    (pace > Pace::ZERO && !profile.measured.alone().is_empty()).then_some(pace)
}

/// What a stay tells about, when it has the GPUs that its job asked for, all of one model, for
/// itself.
fn where_alone(state: &ClusterState, lease: &Lease) -> Option<(ProfileKey, Run)> {
    let spec = &state.job(lease.job)?.spec;
    let parts = || lease.placement.parts.iter().filter(|part| !part.slices.is_empty());
    let model = state.model_of(lease)?;
    let one_model = parts().all(|part| state.node(part.node).spec.gpu_model == Some(model));
    let whole = parts().flat_map(|part| &part.slices).all(|slice| slice.share == Share::Whole);
    let gpus = lease.placement.gpus();
    let run = Run(model, state.reach(&lease.placement).is_spread(), gpus);
    (one_model && whole && gpus == spec.gpus()).then_some((spec.profile?, run))
}

/// Half of what was believed and half of what was seen, if that is worth a fact.
fn believe(state: &ClusterState, key: ProfileKey, run: Run, seen: Pace) -> Option<Event> {
    let known = state.profile(key);
    if known.is_none() && state.profile_count() >= PROFILES_MAX {
        return None;
    }
    let mut profile = known.cloned().unwrap_or_default();
    let alone = profile.measured.alone();
    let before = alone.iter().find(|(known, _)| *known == run).map(|(_, pace)| *pace);
    if before.is_none() && alone.len() >= RUNS_PER_PROFILE_MAX {
        return None;
    }
    let pace = before.map_or(seen, |before| Pace((before.0 + seen.0) / 2));
    let change = pace.0.abs_diff(before.map_or(0, |before| before.0));
    let telling = before.is_none_or(|before| change * 100 > before.0 * TOLD_PER_CENT);
    profile.measured.set(run, pace);
    let Run(model, spread, gpus) = run;
    let close = Run(model, false, gpus);
    let slower = |(known, before): &(Run, Pace)| *known == close && *before < pace;
    let alone = profile.measured.alone();
    let unseen = !alone.iter().any(|(known, _)| known.0 == model && !known.1);
    if spread && (unseen || alone.iter().any(slower)) {
        // Close together it is as fast as far apart, at least.
        profile.measured.set(close, pace);
    }
    telling.then_some(Event::Profiled { key, profile })
}
