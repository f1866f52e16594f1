//! Moves of jobs that have a turn where they are: tasks come together where that makes them faster,
//! and nodes become whole for whoever needs one.
//!
//! A move is a stop that saves and a start elsewhere. Who would lose by that is left alone, and so
//! is a pair.

use std::collections::BTreeSet;
use std::sync::Arc;

use hostler_core::capacity::{Capacity, Walk};
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_core::job::{Demand, Locality};
use hostler_core::placement::{Lease, Placement};
use hostler_core::plan::Plan;
use hostler_core::profile::Reach;
use hostler_core::stage::Place;
use hostler_core::target::Turn;
use hostler_core::units::Rate;
use hostler_core::view::View;

use super::roster::{demand_on, gpu_gang};
use super::seats;
use crate::limits::{NODES_EMPTIED_ON_TRIAL, SPEED_GAIN_MIN};

/// Whether a job might be faster on fewer nodes than it is on.
pub(super) fn is_torn(view: &View<'_>, lease: &Lease) -> bool {
    if lease.placement.node_count() < 2 || !may_move(view, lease) {
        return false;
    }
    let Some(job) = view.job(lease.job) else { return false };
    let profile = job.spec.profile.and_then(|key| view.profile(key));
    let Some((profile, model)) = profile.zip(view.model_of(lease)) else { return false };
    let gpus = job.spec.gpus();
    is_faster(profile.rate(model, gpus, gpus, Reach::Island), lease.rate)
}

/// Whether a job is that much faster at a place than it is.
pub(super) fn is_faster_at(view: &View<'_>, lease: &Lease, placement: &Placement) -> bool {
    let job = view.job(lease.job);
    job.is_some_and(|job| is_faster(view.believed_rate(job, placement), lease.rate))
}

fn is_faster(one: Rate, other: Rate) -> bool {
    f64::from(one.0) > f64::from(other.0) * SPEED_GAIN_MIN
}

/// Whether a job can be stopped and goes on elsewhere from what it saved, having worked for twice
/// as long as it took to load before.
fn may_move(view: &View<'_>, lease: &Lease) -> bool {
    let worked = |began| view.now().since(began) > lease.load + lease.load + lease.load;
    lease.stop.is_none() && lease.started.is_some_and(worked) && view.may_stop_for_good(lease)
}

/// Whether a job needs room on one node, beyond that for single GPUs.
pub(super) fn needs_node(view: &View<'_>, turn: Turn) -> bool {
    let gang = view.job(turn.team.first).and_then(|job| gpu_gang(&job.spec));
    gang.is_some_and(|gang| {
        let together = matches!(gang.demand.locality, Locality::Node | Locality::Island);
        gang.demand.gpu.0 > 1000 || together && gang.count > 1
    })
}

/// A job that goes to another node.
pub(super) struct Moved {
    pub(super) lease: LeaseId,
    pub(super) job: JobId,
    pub(super) to: Arc<Placement>,
}

/// Takes the jobs off a node that nobody else finds room on for a turn, so that it may; all of that
/// on trial. `kept` are those who have a turn where they are. Of nodes that could hold a task it is
/// one with the most free that all jobs can leave, for nodes that are in use already.
pub(super) fn empty_node(
    view: &View<'_>,
    plan: &mut Plan<'_>,
    (turn, place): (Turn, &dyn Place),
    kept: &BTreeSet<LeaseId>,
) -> Option<Vec<Moved>> {
    let gang = gpu_gang(&view.job(turn.team.first)?.spec)?;
    let wanted = demand_on(&gang.demand, turn.model);
    let free = plan.free();
    let in_use = |node: &NodeId| free.gpu_free(*node) < free.gpu_size(*node);
    let of_use = |node: &NodeId| in_use(node) && free.would_hold(*node, &wanted);
    let nodes = view.nodes().iter().filter(|node| node.usable() && !node.leases.is_empty());
    let mut nodes: Vec<NodeId> = nodes.map(|node| node.id).filter(of_use).collect();
    nodes.sort_by_key(|node| (u32::MAX - free.gpu_free(*node).0, *node));
    nodes.truncate(NODES_EMPTIED_ON_TRIAL);
    nodes.into_iter().find_map(|node| {
        let mark = plan.mark();
        let moved = move_all(view, plan, node, kept);
        let moved = moved.filter(|_| seats::place_team(view, place, plan.free(), turn).is_some());
        if moved.is_none() {
            plan.undo_to(mark);
        }
        moved
    })
}

/// Moves all jobs from a node to others.
fn move_all(
    view: &View<'_>,
    plan: &mut Plan<'_>,
    node: NodeId,
    kept: &BTreeSet<LeaseId>,
) -> Option<Vec<Moved>> {
    let mut moved = Vec::new();
    for id in &view.node(node)?.leases {
        let lease = view.lease(*id).filter(|lease| kept.contains(id) && may_move(view, lease))?;
        let job = view.job(lease.job)?;
        if lease.placement.node_count() > 1 || seats::has_halves(view, job) {
            return None;
        }
        let gang = gpu_gang(&job.spec)?;
        let demand = demand_on(&gang.demand, view.model_of(lease)?);
        let to = other_node(plan.free(), &demand, gang.count, node)?;
        let to = Arc::new(Placement { parts: vec![plan.free().fit(to, 0, &demand, gang.count)?] });
        plan.lift(*id).ok()?;
        plan.claim(Arc::clone(&to)).ok()?;
        moved.push(Moved { lease: *id, job: job.id, to });
    }
    Some(moved)
}

/// The fullest node in use but one that holds all of a role.
fn other_node(free: &Capacity, demand: &Demand, count: u32, but: NodeId) -> Option<NodeId> {
    let mut found = None;
    free.visit(Walk::Tightest, demand, |node| {
        let in_use = free.gpu_free(node) < free.gpu_size(node);
        if node != but && in_use && free.slots(node, demand, count) >= count {
            found = Some(node);
        }
        found.is_some()
    });
    found
}
