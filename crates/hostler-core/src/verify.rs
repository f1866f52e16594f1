//! Checking decisions before they take effect, by another path than the plan that made them.
//!
//! The plan counts what is free; the state adds up what leases hold, and this goes by the latter.
//! Decisions that break a rule are refused as a whole and change nothing: what follows from that
//! is for the executor's host to say.

use std::collections::BTreeSet;

use crate::capacity::Refusal;
use crate::cluster::{Health, Power, Share};
use crate::decision::{Decision, StopHow, StopWhy};
use crate::id::{DeviceId, JobId, LeaseId, ModelId, NodeId};
use crate::job::{Job, Locality, Phase, Sharing};
use crate::limits::DECISIONS_PER_JOB_MAX;
use crate::placement::{Lease, Part, Placement, Slice};
use crate::profile::Reach;
use crate::state::ClusterState;
use crate::suspend::Parked;
use crate::target::Turn;
use crate::units::Mib;
use crate::window::Kept;

/// Why a decision is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// More decisions than jobs give reason for.
    #[error("{0} decisions in one step")]
    TooMany(usize),
    /// The job is over or does not wait.
    #[error("{0:?} is not waiting")]
    NotWaiting(JobId),
    /// The lease is over.
    #[error("{0:?} is over")]
    NoLease(LeaseId),
    /// Leases are numbered in order.
    #[error("{0:?} is out of order")]
    LeaseOrder(LeaseId),
    /// There is no such node.
    #[error("there is no {0:?}")]
    NoNode(NodeId),
    /// There is no such device.
    #[error("there is no {0:?}")]
    NoDevice(DeviceId),
    /// There is no such GPU model.
    #[error("there is no {0:?}")]
    NoModel(ModelId),
    /// Two decisions on one job or lease.
    #[error("{0:?} is decided on twice")]
    Twice(JobId),
    /// Not all tasks of a role are placed.
    #[error("{0:?}: a role is not whole")]
    NotWhole(JobId),
    /// Tasks are farther apart than the job allows.
    #[error("{0:?}: tasks are too far apart")]
    Apart(JobId),
    /// Tasks that want a node each share one.
    #[error("{0:?}: tasks share a node")]
    Together(JobId),
    /// The parts are not in order of nodes.
    #[error("{0:?}: its parts are not in order of nodes")]
    Unsorted(JobId),
    /// A part holds other amounts than its tasks ask for, or a model that is not allowed.
    #[error("{0:?}: a part on {1:?} does not match the demand")]
    Mismatch(JobId, NodeId),
    /// A job that is suspended starts elsewhere than where it waits.
    #[error("{0:?} is suspended and starts elsewhere")]
    Elsewhere(JobId),
    /// The node takes no new jobs.
    #[error("{0:?} takes no new jobs")]
    Unusable(NodeId),
    /// CPU or memory of the node is held already.
    #[error("{0:?} is booked beyond what it has")]
    NodeFull(NodeId),
    /// The device is held already.
    #[error("{0:?} is booked beyond what it has")]
    DeviceFull(DeviceId),
    /// The node is in use, or used and changed by the same decisions.
    #[error("{0:?} is in use")]
    InUse(NodeId),
    /// The executor cannot do that.
    #[error("the executor cannot {0}")]
    Unable(&'static str),
    /// Nodes are switched to sleep or to wake; that one is on, only the executor can say.
    #[error("{0:?} is not switched on by a decision")]
    SwitchedOn(NodeId),
    /// A lease would end before it begins.
    #[error("{0:?} would end before it begins")]
    EndsBefore(JobId),
    /// Turns are given while there is no round.
    #[error("turns are given outside a round")]
    NoRound,
    /// A reason for which nobody is turned away.
    #[error("{0:?} is turned away for what may pass")]
    Passing(JobId),
    /// A job that cannot be saved is stopped in favour of others.
    #[error("{0:?} cannot be saved and may not be stopped in favour of others")]
    Kept(JobId),
    /// The placements are not free together, in the order of the decisions.
    #[error(transparent)]
    Taken(#[from] Refusal),
    /// Its solver gave an answer that makes no sense.
    #[error("its solver gave an answer that makes no sense")]
    Answer,
    /// The policy panicked: a bug of it.
    #[error("the policy panicked")]
    Panicked,
    /// Questions without end at one instant.
    #[error("time stands still: more than {0} questions at one instant")]
    StandsStill(u32),
}

/// Checks all decisions of a step together.
pub fn verify(state: &ClusterState, decisions: &[Decision]) -> Result<(), Violation> {
    let most = DECISIONS_PER_JOB_MAX * (state.job_count() + state.nodes().len() + 1);
    if decisions.len() > most {
        return Err(Violation::TooMany(decisions.len()));
    }
    let mut check = Check {
        state,
        jobs: BTreeSet::new(),
        moved: BTreeSet::new(),
        added: Vec::new(),
        parked: Vec::new(),
        next_lease: state.next_lease(),
        changed: BTreeSet::new(),
        in_round: state.round().is_some(),
    };
    for decision in decisions {
        check.decision(decision)?;
    }
    check.bookings()
}

struct Check<'a> {
    state: &'a ClusterState,
    jobs: BTreeSet<JobId>,
    moved: BTreeSet<LeaseId>,
    added: Vec<&'a Placement>,
    next_lease: LeaseId,
    /// Memory that jobs take beside their own while they are suspended.
    parked: Vec<(NodeId, i64)>,
    /// Nodes that are switched or divided another way.
    changed: BTreeSet<NodeId>,
    in_round: bool,
}

impl<'a> Check<'a> {
    fn decision<'b: 'a>(&mut self, decision: &'b Decision) -> Result<(), Violation> {
        match decision {
            Decision::Start { lease, job, placement, until } => {
                if *lease != self.next_lease {
                    return Err(Violation::LeaseOrder(*lease));
                }
                self.next_lease = LeaseId(lease.0 + 1);
                let job = self.waiting(*job)?;
                if until.is_some_and(|until| until <= self.state.now()) {
                    return Err(Violation::EndsBefore(job.id));
                }
                self.placement(job, placement)?;
                self.added.push(placement);
            }
            Decision::Reject { job, reason } | Decision::SetAside { job, reason } => {
                self.waiting(*job)?;
                if !reason.is_of_machines() {
                    return Err(Violation::Passing(*job));
                }
                let grows = self.state.abilities().grows;
                match (decision, grows) {
                    (Decision::Reject { .. }, true) => return Err(Violation::Unable("reject")),
                    (Decision::SetAside { .. }, false) => {
                        return Err(Violation::Unable("take other nodes in"));
                    }
                    (_, _) => {}
                }
            }
            Decision::Hold { job, .. } => {
                self.waiting(*job)?;
            }
            Decision::Stop { lease, how, why } => self.stop(*lease, *how, *why)?,
            Decision::Resize { lease, placement } => {
                if !self.state.abilities().resize {
                    return Err(Violation::Unable("move or resize a job"));
                }
                let held = self.state.lease(*lease).ok_or(Violation::NoLease(*lease))?;
                self.once(held.job)?;
                let job = self.state.job(held.job).expect("a lease belongs to a job");
                self.placement(job, placement)?;
                self.moved.insert(*lease);
                self.added.push(placement);
            }
            Decision::Repartition { device, .. } => {
                if !self.state.abilities().repartition {
                    return Err(Violation::Unable("divide a device"));
                }
                if device.0 >= self.state.device_count() {
                    return Err(Violation::NoDevice(*device));
                }
                self.empty(self.state.node_of(*device))?;
            }
            Decision::SetPower { node, power } => {
                if !self.state.abilities().power {
                    return Err(Violation::Unable("switch a node"));
                }
                if *power == Power::On {
                    return Err(Violation::SwitchedOn(*node));
                }
                self.empty(*node)?;
            }
            Decision::BeginRound => self.in_round = true,
            Decision::Turns { turns } => self.turns(turns)?,
            Decision::Solve { .. } | Decision::WeighPast { .. } | Decision::WakeAt { .. } => {}
        }
        Ok(())
    }

    /// A stop is of a lease that there is, and in favour of others only where that may be.
    fn stop(&mut self, lease: LeaseId, how: StopHow, why: StopWhy) -> Result<(), Violation> {
        let held = self.state.lease(lease).ok_or(Violation::NoLease(lease))?;
        self.once(held.job)?;
        if how == StopHow::Suspend {
            return self.suspension(held);
        }
        let anew = why == StopWhy::Preempted && held.stop.is_none();
        let kept = anew && !self.state.may_stop_for_good(held);
        if kept { Err(Violation::Kept(held.job)) } else { Ok(()) }
    }

    /// Who is suspended can be, and finds memory where it is.
    fn suspension(&mut self, held: &Lease) -> Result<(), Violation> {
        if held.is_suspending() {
            return Ok(());
        }
        let able = self.state.parking(held).filter(|_| held.stop.is_none());
        let parking = able.ok_or(Violation::Unable("suspend a job"))?;
        for (part, own) in parking.parts.iter().zip(&held.placement.parts) {
            self.parked.push((part.node, i64::from(part.mem.0) - i64::from(own.mem.0)));
        }
        Ok(())
    }

    /// Turns are of jobs and GPU models that there are.
    fn turns(&self, turns: &[Turn]) -> Result<(), Violation> {
        if !self.in_round {
            return Err(Violation::NoRound);
        }
        for turn in turns {
            if turn.model.index() >= self.state.models().len() {
                return Err(Violation::NoModel(turn.model));
            }
            if let Some(gone) = turn.team.members().find(|job| self.state.job(*job).is_none()) {
                return Err(Violation::NotWaiting(gone));
            }
        }
        Ok(())
    }

    fn waiting(&mut self, id: JobId) -> Result<&'a Job, Violation> {
        self.once(id)?;
        let job = self.state.job(id).filter(|job| job.phase == Phase::Pending);
        job.ok_or(Violation::NotWaiting(id))
    }

    fn once(&mut self, id: JobId) -> Result<(), Violation> {
        if self.jobs.insert(id) { Ok(()) } else { Err(Violation::Twice(id)) }
    }

    /// A node that is to change has nobody on it, and changes once.
    fn empty(&mut self, id: NodeId) -> Result<(), Violation> {
        self.known(id)?;
        let empty = self.state.node(id).is_empty();
        if empty && self.changed.insert(id) { Ok(()) } else { Err(Violation::InUse(id)) }
    }

    fn known(&self, id: NodeId) -> Result<(), Violation> {
        if id.index() < self.state.nodes().len() { Ok(()) } else { Err(Violation::NoNode(id)) }
    }

    /// Roles are whole, parts match their demand, nodes take jobs.
    fn placement(&self, job: &Job, placement: &Placement) -> Result<(), Violation> {
        placement.parts.iter().try_for_each(|part| self.known(part.node))?;
        if !placement.parts.is_sorted_by_key(|part| (part.node, part.gang)) {
            return Err(Violation::Unsorted(job.id));
        }
        placement.parts.iter().try_for_each(|part| self.part(job, part))?;
        let goes_back = |parked: &Parked| {
            let (before, now) = (&parked.placement.parts, &placement.parts);
            before.len() == now.len() && before.iter().zip(now).all(|(one, other)| same(one, other))
        };
        if !job.parked.as_deref().is_none_or(goes_back) {
            return Err(Violation::Elsewhere(job.id));
        }
        let elastic = job.spec.elastic;
        for (at, gang) in job.spec.gangs.iter().enumerate() {
            let at = at as u32;
            let placed = placement.tasks_of(at);
            let (min, max) = match elastic.filter(|_| at == 0) {
                Some(range) => (range.min, range.max),
                None => (gang.count, gang.count),
            };
            if placed < min || placed > max {
                return Err(Violation::NotWhole(job.id));
            }
            self.locality(job, placement, at)?;
        }
        Ok(())
    }

    /// Tasks of a role are as close together, or as far apart, as it asks.
    fn locality(&self, job: &Job, placement: &Placement, gang: u32) -> Result<(), Violation> {
        let locality = job.spec.gangs[gang as usize].demand.locality;
        let parts = || placement.parts.iter().filter(|part| part.gang == gang);
        let reach = self.state.reach_of(parts());
        let apart = match locality {
            Locality::Any | Locality::Apart => false,
            Locality::Rack => reach > Reach::Rack,
            Locality::Node => reach > Reach::Node,
            Locality::Island => reach > Reach::Island,
        };
        if apart {
            return Err(Violation::Apart(job.id));
        }
        let twice = || parts().zip(parts().skip(1)).any(|(one, next)| one.node == next.node);
        let most = locality.tasks_per_node();
        if parts().any(|part| part.tasks > most) || (most == 1 && twice()) {
            return Err(Violation::Together(job.id));
        }
        Ok(())
    }

    fn part(&self, job: &Job, part: &Part) -> Result<(), Violation> {
        let mismatch = Violation::Mismatch(job.id, part.node);
        let gang = job.spec.gangs.get(part.gang as usize).ok_or(mismatch)?;
        let node = self.state.node(part.node);
        let demand = &gang.demand;
        if !node.usable() || !Kept::admits(node.kept, demand) {
            return Err(Violation::Unusable(part.node));
        }
        let allowed = node.spec.gpu_model.is_some_and(|model| demand.models.set().contains(model));
        let slices = u64::from(demand.gpu.0.div_ceil(1000)) * u64::from(part.tasks);
        let matches = part.tasks > 0
            && Some(part.cpu.0) == demand.cpu.0.checked_mul(part.tasks)
            && Some(part.mem.0) == demand.mem.0.checked_mul(part.tasks)
            && part.slices.len() as u64 == slices
            && node.spec.features.cover(demand.needs)
            && (!demand.names_models() || allowed);
        let devices = node.first_device.0..node.first_device.0 + node.spec.gpus;
        let inside = |slice: &Slice| devices.contains(&slice.device.0);
        let device_mem = node.spec.gpu_model.map_or(Mib(0), |model| self.state.model(model).mem);
        let guaranteed = demand.device_mem(device_mem);
        let willing = job.spec.sharing != Sharing::Never;
        // A whole GPU is held whole, unless the job may be packed with another; a part of one may
        // be held in any way. Who is packed said that it may be, and has all the memory that it
        // asked for.
        let as_asked = |slice: &Slice| match slice.share {
            Share::Whole => true,
            Share::Packed { mem, .. } => demand.gpu.is_fraction() && willing && mem >= guaranteed,
            Share::Fraction { .. } | Share::Mig { .. } => demand.gpu.is_fraction() || willing,
        };
        let sane = part
            .slices
            .iter()
            .all(|slice| inside(slice) && as_asked(slice) && slice.share.is_sane());
        if !matches || !sane {
            return Err(mismatch);
        }
        let shared = part.slices.iter().any(|slice| slice.share != Share::Whole);
        if shared && !self.state.abilities().shares {
            return Err(Violation::Unable("give a job a part of a device"));
        }
        Ok(())
    }

    /// On every node that gets something: what is held plus what is added is at most what it has.
    fn bookings(&self) -> Result<(), Violation> {
        let added = self.added.iter().flat_map(|placement| &placement.parts);
        let mut change = BookingChange::default();
        for part in added {
            if self.changed.contains(&part.node) {
                return Err(Violation::InUse(part.node));
            }
            change.count(self.state, part, 1)?;
        }
        let parked = self.parked.iter().map(|(node, mem)| (*node, [0, *mem]));
        change.nodes.extend(parked);
        for lease in &self.moved {
            let lease = self.state.lease(*lease).expect("it was looked up before");
            for part in &lease.placement.parts {
                change.count(self.state, part, -1)?;
            }
        }
        change.check(self.state)
    }
}

/// What the decisions add to nodes and devices, less what they take away.
#[derive(Default)]
struct BookingChange {
    nodes: Vec<(NodeId, [i64; 2])>,
    devices: Vec<(DeviceId, [i64; 2])>,
}

impl BookingChange {
    fn count(&mut self, state: &ClusterState, part: &Part, sign: i64) -> Result<(), Violation> {
        let node = state.node(part.node);
        let amounts = [sign * i64::from(part.cpu.0), sign * i64::from(part.mem.0)];
        self.nodes.push((part.node, amounts));
        let devices = node.first_device.0..node.first_device.0 + node.spec.gpus;
        for slice in &part.slices {
            let model = node.spec.gpu_model.filter(|_| devices.contains(&slice.device.0));
            let model = state.model(model.ok_or(Violation::DeviceFull(slice.device))?);
            let compute = sign * i64::from(slice.share.compute(model.mig_slices).0);
            let mem = sign * i64::from(slice.share.mem(model.mem).0);
            self.devices.push((slice.device, [compute, mem]));
        }
        Ok(())
    }

    fn check(mut self, state: &ClusterState) -> Result<(), Violation> {
        for (id, added) in sums(&mut self.nodes) {
            let (node, held) = (state.node(id), state.held_on(id));
            let has = [i64::from(node.spec.cpu.0), i64::from(node.spec.mem.0)];
            if node.health == Health::Down || exceeds(held, added, has) {
                return Err(Violation::NodeFull(id));
            }
        }
        for (id, added) in sums(&mut self.devices) {
            let model = state.node(state.node_of(id)).spec.gpu_model;
            let mem = model.map_or(0, |model| state.model(model).mem.0);
            if exceeds(state.held_of(id), added, [1000, i64::from(mem)]) {
                return Err(Violation::DeviceFull(id));
            }
        }
        Ok(())
    }
}

/// Whether two parts are the same tasks on the same devices.
fn same(one: &Part, other: &Part) -> bool {
    (one.node, one.gang, one.tasks) == (other.node, other.gang, other.tasks)
        && one.slices == other.slices
}

fn exceeds(held: [u32; 2], added: [i64; 2], has: [i64; 2]) -> bool {
    (0..2).any(|at| i64::from(held[at]) + added[at] > has[at])
}

/// Sums of equal keys, ascending.
fn sums<Key: Copy + Ord>(list: &mut [(Key, [i64; 2])]) -> impl Iterator<Item = (Key, [i64; 2])> {
    list.sort_by_key(|(key, _)| *key);
    list.chunk_by(|one, other| one.0 == other.0).map(|equal| {
        let total = equal
            .iter()
            .fold([0, 0], |sum, (_, [first, second])| [sum[0] + first, sum[1] + second]);
        (equal[0].0, total)
    })
}

#[cfg(test)]
mod tests;
