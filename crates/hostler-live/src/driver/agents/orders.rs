//! What agents are told: start orders made from a lease and what its job asked for, and stops.

use hostler_core::decision::StopHow;
use hostler_core::id::{DeviceId, LeaseId, NodeId};
use hostler_core::placement::{Part, Slice};
use hostler_core::state::ClusterState;
use hostler_core::units::Mib;

use super::AgentDriver;
use crate::host::{Desk, Effect, grace_of};
use crate::image::Mount;
use crate::job::umask_of;
use crate::limits::GRACE_SECS;
use crate::wire::{LeaseReport, Stage, StartOrder, TaskOrder, ToAgent};

/// Ports on which rank 0 listens are taken from here on, by lease: two stays that meet on a node
/// rarely get the same one.
const FIRST_PORT: u32 = 20_000;
const PORTS: u32 = 10_000;

impl AgentDriver {
    pub(super) fn tell_start(&mut self, desk: &mut Desk, lease: LeaseId, node: NodeId) {
        let Some(session) = self.agents.session(node) else { return };
        self.note_told(desk, lease, node);
        let order = Box::new(self.start_order(desk, lease, node));
        if !order.image.is_empty() && !self.runs_images(desk, lease, node) {
            // It has become one that would run the command without the image.
            let fault = "its node does not run images any more".to_owned();
            let stage = Stage::NotStarted { fault, of_machine: false };
            return self.report(desk, node, LeaseReport { lease, stage });
        }
        desk.figures_mut().starts += 1;
        desk.effect(Effect::Tell(session, ToAgent::Start(order)));
    }

    pub(super) fn tell_stop(
        &mut self,
        desk: &mut Desk,
        lease: LeaseId,
        node: NodeId,
        how: StopHow,
    ) {
        let Some(session) = self.agents.session(node) else { return };
        self.note_told(desk, lease, node);
        let grace_ms = self.grace_ms(desk, lease);
        let message = ToAgent::Stop { lease, how, grace_ms };
        desk.effect(Effect::Tell(session, message));
    }

    /// Whether a node still has what the image of a job needs.
    fn runs_images(&self, desk: &Desk, lease: LeaseId, node: NodeId) -> bool {
        let job = desk.state().lease(lease).and_then(|lease| desk.state().job(lease.job));
        let features = desk.state().node(node).spec.features;
        job.is_some_and(|job| features.cover(job.asked().gangs[0].demand.needs))
    }

    fn note_told(&mut self, desk: &Desk, lease: LeaseId, node: NodeId) {
        if let Some(run) = self.lease_runs.get_mut(&lease) {
            run.told.insert(node, desk.now());
        }
    }

    pub(super) fn grace_ms(&self, desk: &Desk, lease: LeaseId) -> u64 {
        let row = self.lease_runs.get(&lease).and_then(|run| desk.job_row(run.job));
        let grace = row.and_then(|row| grace_of(&row.request).ok());
        grace.map_or(GRACE_SECS * 1000, |grace| grace.0 / 1000)
    }

    fn start_order(&self, desk: &Desk, lease: LeaseId, node: NodeId) -> StartOrder {
        let state = desk.state();
        let known = state.lease(lease).expect("only leases that are not over are started");
        let row = desk.job_row(known.job).expect("a lease belongs to a live job");
        let request = &row.request;
        let first = state.node(node).first_device;
        let mut tasks = Vec::new();
        let mut rank = 0;
        for part in &known.placement.parts {
            for task in 0..part.tasks {
                if part.node == node {
                    let local_rank = tasks.len() as u32;
                    let slices = slices_of(part, task);
                    tasks.push(task_order(state, rank, local_rank, slices, first, part));
                }
                rank += 1;
            }
        }
        let leader = known.placement.parts.first().map_or(node, |part| part.node);
        let spec = &state.job(known.job).expect("a lease belongs to a job").spec;
        let gang = &spec.gangs[0];
        StartOrder {
            lease,
            job: known.job,
            restart: row.facts.restarts,
            command: request.command.clone(),
            env: self.variables(desk, lease, node),
            script: request.script.clone(),
            interactive: request.interactive,
            workdir: request.workdir.clone(),
            tasks,
            world_size: rank,
            master_addr: self.address(desk, leader),
            master_port: (FIRST_PORT + lease.0 % PORTS) as u16,
            cpu_milli: gang.demand.cpu.0,
            mem_mib: gang.demand.mem.0,
            array_index: row.facts.array_index,
            grace_ms: self.grace_ms(desk, lease),
            tenant: spec.tenant.0,
            limit_ms: spec.time_limit.map(|limit| limit.0 / 1000),
            person: row.facts.person.clone(),
            umask: umask_of(&request.umask),
            image: request.image.clone(),
            mounts: request.mounts.iter().filter_map(|mount| Mount::parse(mount)).collect(),
            resumes: known.resumes,
        }
    }

    /// Address at which other nodes reach a node.
    fn address(&self, desk: &Desk, node: NodeId) -> String {
        let name = self.agents.nodes.get(&node).map(|node| &node.name);
        let row = name.and_then(|name| desk.node_row(name));
        row.map_or_else(String::new, |row| row.machine.address.clone())
    }
}

fn task_order(
    state: &ClusterState,
    rank: u32,
    local_rank: u32,
    slices: &[Slice],
    first: DeviceId,
    part: &Part,
) -> TaskOrder {
    let model = state.node(part.node).spec.gpu_model.map(|model| state.model(model));
    let mig_slices = model.map_or(0, |model| model.mig_slices);
    let mem = model.map_or(Mib(0), |model| model.mem);
    let gpu = |slice: &Slice| (slice.device.0 - first.0, slice.share.compute(mig_slices).0);
    TaskOrder {
        rank,
        local_rank,
        gpus: slices.iter().map(gpu).collect(),
        gpu_mem_mib: slices.first().map_or(0, |slice| slice.share.mem(mem).0),
    }
}

/// The shares of one task: those of a part are in order of its tasks.
fn slices_of(part: &Part, task: u32) -> &[Slice] {
    let each = part.slices.len() / part.tasks.max(1) as usize;
    let from = task as usize * each;
    &part.slices[from..from + each]
}
