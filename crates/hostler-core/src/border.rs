//! Checking facts before they enter the state.
//!
//! Inside, a fact that makes no sense is a bug and panics. Whoever takes facts from outside (a log
//! on disk, a network) asks here first and refuses them with a reason.

use crate::cluster::NodeSpec;
use crate::event::Event;
use crate::id::{JobId, LeaseId, NodeId, WindowId};
use crate::job::{JobSpec, Models, Phase};
use crate::limits::{
    AFTER_PER_JOB_MAX, DEVICES_PER_NODE_MAX, GANGS_PER_JOB_MAX, JOB_NUMBER_GAP_MAX,
    LEASE_NUMBER_GAP_MAX, MODELS_MAX, NODES_MAX, TASKS_PER_JOB_MAX, WINDOWS_MAX,
};
use crate::placement::Placement;
use crate::state::ClusterState;
use crate::target::Target;
use crate::units::Milli;
use crate::window::Window;

/// Why a fact is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Catalogue entries and nodes count up from zero.
    #[error("{what} {id} is out of order: {next} is next")]
    Order {
        /// `model`, `tenant`, `node`, `job` or `lease`.
        what: &'static str,
        /// The number given.
        id: u32,
        /// The number that is next.
        next: u32,
    },
    /// There are too many.
    #[error("more than {max} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// A number that names nothing.
    #[error("no {what} {id}")]
    Unknown {
        /// `model`, `tenant`, `node` or `job`.
        what: &'static str,
        /// The number.
        id: u32,
    },
    /// Nothing would be due to a tenant.
    #[error("tenant {0}: its weight is 0; use at least 1")]
    Weightless(u32),
    /// A window that is over before it begins.
    #[error("window {0} is over before it begins")]
    EmptyWindow(u32),
    /// A node came back as another machine.
    #[error("node {0} came back as another machine")]
    OtherMachine(u32),
    /// A node's GPUs and their model disagree, or are too many.
    #[error("node {0}: its GPUs make no sense")]
    Devices(u32),
    /// A profile says that a job never makes progress, or is no table.
    #[error("profile {0}: its speeds make no sense")]
    Standstill(u32),
    /// A job was found where it cannot be: what it holds there is held by others, or it runs.
    #[error("job {0} was found to run on what is held already")]
    Elsewhere(u32),
    /// A job asks for something that makes no sense.
    #[error("job {job}: {fault}")]
    Job {
        /// Its number.
        job: u32,
        /// What is wrong.
        fault: SpecFault,
    },
}

/// What is wrong with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecFault {
    /// It has no roles, or too many.
    #[error("it has no roles, or too many")]
    Roles,
    /// A role has no tasks, or too many.
    #[error("a role has no tasks, or too many")]
    Tasks,
    /// Its range of tasks is empty, or without the number that it asks for.
    #[error("its range of tasks is empty, or without the number that it asks for")]
    Elastic,
    /// It comes after too many jobs, or after one that is not there yet.
    #[error("it comes after too many jobs, or after one that is not there yet")]
    After,
    /// Its array allows no job at all, or begins after it.
    #[error("its array allows no job at all, or begins after it")]
    Array,
    /// A GPU demand above one is not whole.
    #[error("above one GPU only whole ones can be asked for")]
    Gpu,
    /// A demand claims to be packed: only policies pack.
    #[error("`packed_from` is for policies, not for users")]
    Packed,
    /// A demand claims to be of a suspended job.
    #[error("`pinned` is for suspended jobs, not for users")]
    Pinned,
    /// Its largest tensor is larger than its model.
    #[error("its skew is above one")]
    Skew,
    /// It names a tenant or a GPU model that is not in the catalogue.
    #[error("it names a tenant or GPU model that nobody added")]
    Name,
}

/// Whether a fact may enter the state as it is now.
pub fn check(state: &ClusterState, event: &Event) -> Result<(), Refused> {
    match event {
        Event::ModelAdded { model, .. } => {
            in_order("model", model.0, state.models().len(), MODELS_MAX)
        }
        Event::TenantAdded { tenant, spec } => {
            in_order("tenant", tenant.0, state.tenants().len(), u32::MAX as usize)?;
            if spec.weight == 0 { Err(Refused::Weightless(tenant.0)) } else { Ok(()) }
        }
        Event::TenantChanged { tenant, spec } => {
            if tenant.index() >= state.tenants().len() {
                return Err(Refused::Unknown { what: "tenant", id: tenant.0 });
            }
            if spec.weight == 0 { Err(Refused::Weightless(tenant.0)) } else { Ok(()) }
        }
        Event::NodeUp { node, spec } => node_up(state, *node, spec),
        Event::NodeDown { node }
        | Event::NodeRetired { node }
        | Event::NodeDrain { node, .. }
        | Event::FeaturesChanged { node, .. }
        | Event::PowerChanged { node, .. } => known_node(state, *node),
        Event::WindowSet { window, spec } => window_set(state, *window, spec),
        Event::Submitted { job, spec } => submitted(state, *job, spec),
        Event::Adopted { lease, job, placement, .. } => adopted(state, *lease, *job, placement),
        Event::LeasesSkipped { next } => {
            let known = state.next_lease();
            // A number far ahead would leave a hole that memory has to hold.
            if next.0.saturating_sub(known.0) > LEASE_NUMBER_GAP_MAX {
                return Err(Refused::Order { what: "lease", id: next.0, next: known.0 });
            }
            Ok(())
        }
        Event::JobsSkipped { next } => {
            let known = state.next_job();
            if next.0.saturating_sub(known.0) > JOB_NUMBER_GAP_MAX {
                return Err(Refused::Order { what: "job", id: next.0, next: known.0 });
            }
            Ok(())
        }
        Event::Profiled { key, profile } => {
            if profile.is_sane() {
                Ok(())
            } else {
                Err(Refused::Standstill(key.0))
            }
        }
        Event::Solved { solution, .. } => {
            let beyond = |target: &&Target| target.model.index() >= state.models().len();
            match solution.targets.iter().find(beyond) {
                Some(target) => Err(Refused::Unknown { what: "GPU model", id: target.model.0 }),
                None => Ok(()),
            }
        }
        Event::WindowEnded { .. }
        | Event::Cancelled { .. }
        | Event::HoldChanged { .. }
        | Event::KeptBack { .. }
        | Event::Started { .. }
        | Event::StartFailed { .. }
        | Event::SuspendRefused { .. }
        | Event::SuspendedLost { .. }
        | Event::Progress { .. }
        | Event::Checkpointed { .. }
        | Event::Stopped { .. }
        | Event::Estimated { .. }
        | Event::Used { .. }
        | Event::AbilitiesChanged { .. }
        | Event::Paused { .. }
        | Event::PolicyChanged { .. }
        | Event::PolicyBroke { .. }
        | Event::RoundEnded => Ok(()),
    }
}

fn window_set(state: &ClusterState, id: WindowId, spec: &Window) -> Result<(), Refused> {
    let others = state.windows().filter(|(known, _)| *known != id).count();
    if others >= WINDOWS_MAX {
        return Err(Refused::TooMany { what: "windows", max: WINDOWS_MAX });
    }
    spec.nodes.iter().try_for_each(|node| known_node(state, *node))?;
    if spec.from < spec.until { Ok(()) } else { Err(Refused::EmptyWindow(id.0)) }
}

fn in_order(what: &'static str, id: u32, known: usize, max: usize) -> Result<(), Refused> {
    if known >= max {
        return Err(Refused::TooMany { what, max });
    }
    let next = known as u32;
    if id == next { Ok(()) } else { Err(Refused::Order { what, id, next }) }
}

fn known_node(state: &ClusterState, node: NodeId) -> Result<(), Refused> {
    let known = node.index() < state.nodes().len();
    if known { Ok(()) } else { Err(Refused::Unknown { what: "node", id: node.0 }) }
}

fn node_up(state: &ClusterState, id: NodeId, spec: &NodeSpec) -> Result<(), Refused> {
    if let Some(node) = state.nodes().get(id.index()) {
        let same = node.spec == *spec && !node.retired;
        return if same { Ok(()) } else { Err(Refused::OtherMachine(id.0)) };
    }
    in_order("node", id.0, state.nodes().len(), NODES_MAX)?;
    let model_known = match spec.gpu_model {
        Some(model) => model.index() < state.models().len() && spec.gpus > 0,
        None => spec.gpus == 0,
    };
    let few = spec.gpus as usize <= DEVICES_PER_NODE_MAX && spec.island_gpus <= 255;
    if model_known && few { Ok(()) } else { Err(Refused::Devices(id.0)) }
}

fn submitted(state: &ClusterState, id: JobId, spec: &JobSpec) -> Result<(), Refused> {
    let next = state.next_job();
    // A number far ahead would leave a hole that memory has to hold.
    if id < next || id.0 - next.0 > JOB_NUMBER_GAP_MAX {
        return Err(Refused::Order { what: "job", id: id.0, next: next.0 });
    }
    let gates = || check_gates(id, spec);
    check_spec(state, spec)
        .and_then(|()| gates())
        .map_err(|fault| Refused::Job { job: id.0, fault })
}

/// A job that is found to run holds whole GPUs that nobody else holds.
fn adopted(
    state: &ClusterState,
    lease: LeaseId,
    id: JobId,
    placement: &Placement,
) -> Result<(), Refused> {
    let next = state.next_lease();
    if lease != next {
        return Err(Refused::Order { what: "lease", id: lease.0, next: next.0 });
    }
    let job = state.job(id).ok_or(Refused::Unknown { what: "job", id: id.0 })?;
    let waits = matches!(job.phase, Phase::Pending | Phase::Held) && job.parked.is_none();
    let parts = &placement.parts;
    let ordered = parts.windows(2).all(|pair| pair[0].node < pair[1].node);
    if !waits || !ordered || parts.is_empty() {
        return Err(Refused::Elsewhere(id.0));
    }
    for part in parts {
        known_node(state, part.node)?;
        let role = (part.gang as usize) < job.spec.gangs.len() && part.tasks > 0;
        if !role || !state.capacity().is_untouched(part) {
            return Err(Refused::Elsewhere(id.0));
        }
    }
    Ok(())
}

/// A job comes after jobs that were there before it, and is no earlier than its array.
fn check_gates(id: JobId, spec: &JobSpec) -> Result<(), SpecFault> {
    let early = spec.after.iter().all(|after| after.job < id);
    if !early || spec.after.len() > AFTER_PER_JOB_MAX {
        return Err(SpecFault::After);
    }
    match spec.array {
        Some(limit) if limit.first > id || limit.most == 0 => Err(SpecFault::Array),
        Some(_) | None => Ok(()),
    }
}

/// Whether what a job asks for makes sense on this cluster's catalogue.
pub fn check_spec(state: &ClusterState, spec: &JobSpec) -> Result<(), SpecFault> {
    if spec.gangs.is_empty() || spec.gangs.len() > GANGS_PER_JOB_MAX {
        return Err(SpecFault::Roles);
    }
    if spec.tenant.index() >= state.tenants().len() {
        return Err(SpecFault::Name);
    }
    if let Some(range) = spec.elastic {
        let asked = spec.gangs[0].count;
        let sane = range.min > 0 && range.min <= asked && asked <= range.max;
        if !sane || range.max > TASKS_PER_JOB_MAX {
            return Err(SpecFault::Elastic);
        }
    }
    if spec.skew.is_some_and(|skew| skew > Milli::ONE) {
        return Err(SpecFault::Skew);
    }
    for gang in &spec.gangs {
        let tasks = gang.count > 0 && gang.count <= TASKS_PER_JOB_MAX;
        if !tasks {
            return Err(SpecFault::Tasks);
        }
        let gpu = gang.demand.gpu;
        if gpu.0 > 1000 && !gpu.0.is_multiple_of(1000) {
            return Err(SpecFault::Gpu);
        }
        if !gang.demand.packed_from.is_zero() {
            return Err(SpecFault::Packed);
        }
        if gang.demand.pinned.is_some() {
            return Err(SpecFault::Pinned);
        }
        if let Models::Ordered(models) = &gang.demand.models
            && models.iter().any(|model| model.index() >= state.models().len())
        {
            return Err(SpecFault::Name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
