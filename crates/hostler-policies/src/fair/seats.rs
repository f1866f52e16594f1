//! Where a team runs: GPUs of one model, its own or half and half with the other of a pair.

use std::sync::Arc;

use hostler_core::capacity::Capacity;
use hostler_core::cluster::Share;
use hostler_core::id::{JobId, LeaseId, ModelId};
use hostler_core::job::{Job, JobSpec};
use hostler_core::placement::{Lease, Part, Placement, Slice};
use hostler_core::stage::{Place, Shortfall};
use hostler_core::target::{Team, Turn};
use hostler_core::units::{Mib, Milli};
use hostler_core::view::View;

use super::roster::{demand_on, gpu_gang};

/// Half of a GPU.
const HALF: Milli = Milli(500);

/// Places one job on GPUs of one model; tells how many of its tasks fit when not all do.
pub(super) fn place_alone(
    place: &dyn Place,
    free: &Capacity,
    spec: &JobSpec,
    model: ModelId,
) -> Result<Placement, Shortfall> {
    let gang = gpu_gang(spec).ok_or(Shortfall { fit: 0 })?;
    let demand = demand_on(&gang.demand, model);
    let parts = place.choose_for(spec, free, 0, &demand, gang.count)?;
    Ok(Placement { parts })
}

/// Places the members of a team, the older first.
pub(super) fn place_team(
    view: &View<'_>,
    place: &dyn Place,
    free: &Capacity,
    turn: Turn,
) -> Option<Vec<(JobId, Arc<Placement>)>> {
    let first = view.job(turn.team.first)?;
    let gang = gpu_gang(&first.spec)?;
    if !free.may_hold(&demand_on(&gang.demand, turn.model), gang.count) {
        return None;
    }
    let whole = place_alone(place, free, &first.spec, turn.model).ok()?;
    let Some(second) = turn.team.second else {
        return Some(vec![(first.id, Arc::new(whole))]);
    };
    let suspended = |id: JobId| view.job(id).is_some_and(Job::is_suspended);
    assert!(!turn.team.members().any(suspended), "who is suspended goes on with whole GPUs");
    let mem = view.model(turn.model)?.mem;
    let halves = halve(&whole, mem);
    let beside = beside(free, &halves, &view.job(second)?.spec)?;
    Some(vec![(first.id, Arc::new(halves)), (second, Arc::new(beside))])
}

/// The same devices, half of each.
fn halve(placement: &Placement, mem: Mib) -> Placement {
    let share = Share::Fraction { compute: HALF, mem: Mib(mem.0 / 2) };
    let half = |part: &Part| Part {
        slices: part.slices.iter().map(|slice| Slice { share, ..*slice }).collect(),
        ..part.clone()
    };
    Placement { parts: placement.parts.iter().map(half).collect() }
}

/// The other half of the same devices, for a job of the same shape; none where it may not be.
pub(super) fn beside(free: &Capacity, placement: &Placement, spec: &JobSpec) -> Option<Placement> {
    let demand = &gpu_gang(spec)?.demand;
    if !placement.parts.iter().all(|part| free.suits(part.node, demand)) {
        return None;
    }
    let parts = placement.parts.iter().map(|part| {
        let (cpu, mem) =
            (demand.cpu.0.checked_mul(part.tasks), demand.mem.0.checked_mul(part.tasks));
        Some(Part { cpu: Milli(cpu?), mem: Mib(mem?), ..part.clone() })
    });
    Some(Placement { parts: parts.collect::<Option<Vec<Part>>>()? })
}

/// Leases of the members of a team that is where its turn wants it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seated {
    first: LeaseId,
    second: Option<LeaseId>,
}

impl Seated {
    /// The lease of a job that shares with nobody.
    pub(super) fn alone(self) -> Option<LeaseId> {
        self.second.is_none().then_some(self.first)
    }

    pub(super) fn leases(self) -> impl Iterator<Item = LeaseId> {
        [Some(self.first), self.second].into_iter().flatten()
    }
}

/// The leases of a team when all members are there already.
pub(super) fn seated(view: &View<'_>, turn: Turn) -> Option<Seated> {
    let lease = |job: JobId| {
        let lease = view.lease(view.job(job)?.lease()?)?;
        (lease.stop.is_none() && view.model_of(lease) == Some(turn.model)).then_some(lease)
    };
    let first = lease(turn.team.first)?;
    let Some(second) = turn.team.second else {
        return (!is_half(view, first)).then_some(Seated { first: first.id, second: None });
    };
    let second = lease(second)?;
    let together = is_half(view, first) && devices(first).eq(devices(second));
    together.then_some(Seated { first: first.id, second: Some(second.id) })
}

/// Whether a job runs on halves of the GPUs that it asked for.
pub(super) fn has_halves(view: &View<'_>, job: &Job) -> bool {
    job.lease().and_then(|lease| view.lease(lease)).is_some_and(|lease| is_half(view, lease))
}

/// Whether a job that asked for whole GPUs has halves of them.
fn is_half(view: &View<'_>, lease: &Lease) -> bool {
    let asked = view.job(lease.job).and_then(|job| Some(gpu_gang(&job.spec)?.demand.gpu));
    asked.is_some_and(|gpu| !gpu.is_fraction())
        && lease
            .placement
            .parts
            .iter()
            .flat_map(|part| &part.slices)
            .any(|slice| slice.share != Share::Whole)
}

fn devices(lease: &Lease) -> impl Iterator<Item = hostler_core::id::DeviceId> {
    lease.placement.parts.iter().flat_map(|part| &part.slices).map(|slice| slice.device)
}

/// Where the other of a pair is, when the pair's turn has begun for it already.
pub(super) fn partner(view: &View<'_>, team: Team, job: JobId) -> Option<Arc<Placement>> {
    let other = team.members().find(|member| *member != job)?;
    let lease = view.lease(view.job(other)?.lease()?)?;
    (lease.stop.is_none() && is_half(view, lease)).then(|| Arc::clone(&lease.placement))
}
