//! The simulated world: machines, time and what goes wrong, behind the executor's two methods.
//!
//! No ticks: time jumps from one thing to come to the next. The world knows the truth and tells
//! only what an executor could know.

mod arrivals;
mod faults;
mod queue;
mod stay;
mod truth;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use arrivals::{Arrivals, Listed};
pub use faults::{Astray, Fault, Report};
pub use truth::{Oracle, Truth};

use faults::Faults;
use hostler_core::cluster::{GpuModel, NodeSpec, Power, Tenant};
use hostler_core::decision::{Decision, StopHow};
use hostler_core::event::{Event, Outcome};
use hostler_core::executor::Executor;
use hostler_core::id::{JobId, LeaseId, ModelId, NodeId, TenantId};
use hostler_core::job::JobSpec;
use hostler_core::placement::Placement;
use hostler_core::profile::Reach;
use hostler_core::table::Table;
use hostler_core::units::{Rate, Span, Time};
use queue::{Coming, Queue};
use stay::{Doing, Stay};

use crate::physics::{Neighbours, Physics};

/// Questions without any news before the world says that nothing can happen any more.
const IDLE_WAKES_MAX: u32 = 100_000;

/// What a simulated cluster consists of.
#[derive(Clone, Debug, Default)]
pub struct Site {
    /// GPU models, by id.
    pub models: Vec<GpuModel>,
    /// Tenants, by id.
    pub tenants: Vec<Tenant>,
    /// Nodes, by id.
    pub nodes: Vec<NodeSpec>,
    /// True speeds and delays.
    pub physics: Physics,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// The simulated world.
pub struct World<Source> {
    site: Site,
    /// Faults that hold each node down: it is back when the last of them is over.
    down: Vec<u32>,
    /// Number of the first GPU of each node.
    first_devices: Vec<u32>,
    arrivals: Source,
    truth: Truth,
    queue: Queue,
    faults: Faults,
    stays: Table<Stay>,
    /// Specifications of jobs that were submitted and are not over.
    specs: Table<Arc<JobSpec>>,
    /// Safe work of jobs that were stopped.
    safe: BTreeMap<JobId, Span>,
    neighbours: Option<Neighbours>,
    /// Last word on stays that are over, in case it went astray. Kept only when reports may.
    last_words: BTreeMap<LeaseId, Event>,
    reports_go_astray: bool,
    opened: bool,
    idle_wakes: u32,
    now: Time,
}

impl<Source: Arrivals> World<Source> {
    /// A world at time zero.
    pub fn new(site: Site, arrivals: Source, truth: Truth) -> World<Source> {
        let mut queue = Queue::default();
        for fault in &site.faults {
            if let Fault::NodeDown { node, at, lasts } = *fault {
                queue.push(at, Coming::Fail(node));
                if let Some(lasts) = lasts {
                    queue.push(at + lasts, Coming::Repair(node));
                }
            }
        }
        let first = |next: &mut u32, node: &NodeSpec| {
            *next += node.gpus;
            Some(*next - node.gpus)
        };
        let astray = |fault: &Fault| matches!(fault, Fault::Report { .. });
        World {
            faults: Faults::new(&site.faults),
            neighbours: site.physics.neighbours_matter().then(Neighbours::default),
            reports_go_astray: site.faults.iter().any(astray),
            down: vec![0; site.nodes.len()],
            first_devices: site.nodes.iter().scan(0, first).collect(),
            site,
            arrivals,
            truth,
            queue,
            stays: Table::default(),
            specs: Table::default(),
            safe: BTreeMap::new(),
            last_words: BTreeMap::new(),
            opened: false,
            idle_wakes: 0,
            now: Time::ZERO,
        }
    }

    /// The catalogue and the nodes, as facts.
    fn opening(&self) -> Vec<Event> {
        let models = self.site.models.iter().enumerate();
        let models = models
            .map(|(at, spec)| Event::ModelAdded { model: ModelId(at as u32), spec: spec.clone() });
        let tenants = self.site.tenants.iter().enumerate();
        let tenants = tenants.map(|(at, spec)| Event::TenantAdded {
            tenant: TenantId(at as u32),
            spec: spec.clone(),
        });
        let nodes = self.site.nodes.iter().enumerate();
        let nodes =
            nodes.map(|(at, spec)| Event::NodeUp { node: NodeId(at as u32), spec: spec.clone() });
        let profiles = self.site.physics.profiles.iter();
        let profiles =
            profiles.map(|(key, profile)| Event::Profiled { key: *key, profile: profile.clone() });
        models.chain(tenants).chain(nodes).chain(profiles).collect()
    }

    fn happen(&mut self, coming: Coming, events: &mut Vec<Event>) {
        match coming {
            Coming::Start(lease) => self.start(lease, events),
            Coming::Finish(lease, version) => self.finish(lease, version, events),
            Coming::Saved(lease) => self.saved(lease, events),
            Coming::Fail(node) => self.fail(node, events),
            Coming::Repair(node) => self.repair(node, events),
            Coming::Deliver(event) => events.push(*event),
        }
    }

    fn start(&mut self, lease: LeaseId, events: &mut Vec<Event>) {
        let Some(stay) = self.stays.get(lease.0) else {
            return;
        };
        if stay.doing != Doing::Starting {
            return;
        }
        let job = stay.job;
        if self.faults.start_fails(job) {
            self.leave(lease);
            self.report(job, Report::Start, Event::StartFailed { lease }, events);
            return;
        }
        self.begin_work(lease);
        self.report(job, Report::Start, Event::Started { lease }, events);
    }

    /// The first step of work comes after the state is loaded.
    fn begin_work(&mut self, lease: LeaseId) {
        if let (Some(neighbours), Some(stay)) = (&mut self.neighbours, self.stays.get(lease.0)) {
            neighbours.join(lease, &stay.placement);
        }
        let rate = self.rate_of(lease);
        let stay = self.stays.get_mut(lease.0).expect("the stay is here");
        let again = stay.base > Span::ZERO || self.safe.contains_key(&stay.job);
        let load = if again { stay.spec.checkpoint.load } else { Span::ZERO };
        stay.work_from(self.now + load, rate);
        let (finish, version) = (stay.finish_at(self.truth.run(stay.job)), stay.version);
        self.queue.push(finish, Coming::Finish(lease, version));
        self.adjust_neighbours(lease);
    }

    fn finish(&mut self, lease: LeaseId, version: u32, events: &mut Vec<Event>) {
        let Some(stay) = self.stays.get(lease.0).filter(|stay| stay.version == version) else {
            return;
        };
        let job = stay.job;
        let done = self.truth.run(job);
        self.leave(lease);
        // A node that fails before the word is out takes it along, and the job runs again.
        if !self.reports_go_astray {
            self.specs.remove(job.0);
            self.safe.remove(&job);
        }
        let word = Event::Stopped { lease, outcome: Outcome::Finished, done, lost: Span::ZERO };
        self.report(job, Report::Finish, word, events);
    }

    fn saved(&mut self, lease: LeaseId, events: &mut Vec<Event>) {
        let Some(stay) = self.stays.get(lease.0).filter(|stay| stay.doing == Doing::Saving) else {
            return;
        };
        let job = stay.job;
        let (done, _) = stay.done_and_safe();
        self.safe.insert(job, done);
        self.leave(lease);
        let word = Event::Stopped { lease, outcome: Outcome::Interrupted, done, lost: Span::ZERO };
        self.report(job, Report::Stop, word, events);
    }

    fn repair(&mut self, node: NodeId, events: &mut Vec<Event>) {
        self.down[node.index()] -= 1;
        if self.down[node.index()] == 0 {
            let spec = self.site.nodes[node.index()].clone();
            events.push(Event::NodeUp { node, spec });
        }
    }

    /// A node fails: what ran only on failed nodes is gone, what was being saved is not saved, and
    /// other gangs wait to be told to stop.
    fn fail(&mut self, node: NodeId, events: &mut Vec<Event>) {
        self.down[node.index()] += 1;
        if self.down[node.index()] > 1 {
            return;
        }
        let (now, down) = (self.now, &self.down);
        let (mut gone, mut unsaved) = (Vec::new(), Vec::new());
        for stay in self.stays.iter_mut() {
            let touches = stay.placement.parts.iter().any(|part| part.node == node);
            if !touches {
                continue;
            }
            stay.account(now);
            stay.version += 1;
            let (done, safe) = stay.done_and_safe();
            events.push(Event::Checkpointed { lease: stay.lease, done: safe });
            if stay.placement.parts.iter().all(|part| down[part.node.index()] > 0) {
                gone.push((stay.lease, stay.job, safe));
            } else if stay.doing == Doing::Saving {
                unsaved.push((stay.lease, stay.job, done, safe));
            }
        }
        for (lease, job, safe) in gone {
            self.safe.insert(job, safe);
            self.leave(lease);
        }
        events.push(Event::NodeDown { node });
        for (lease, job, done, safe) in unsaved {
            self.end_unsaved(lease, job, done, safe, events);
        }
    }

    /// Ends a stay of which only what it saved by itself is left.
    fn end_unsaved(
        &mut self,
        lease: LeaseId,
        job: JobId,
        done: Span,
        safe: Span,
        events: &mut Vec<Event>,
    ) {
        self.safe.insert(job, safe);
        self.leave(lease);
        let lost = done.saturating_sub(safe);
        let word = Event::Stopped { lease, outcome: Outcome::Interrupted, done: safe, lost };
        self.report(job, Report::Stop, word, events);
    }

    fn stop(&mut self, lease: LeaseId, how: StopHow) {
        let now = self.now;
        let Some(stay) = self.stays.get_mut(lease.0) else {
            // It is over already; say so (again), in case the first word went astray.
            if let Some(word) = self.last_words.get(&lease) {
                self.queue.push(now, Coming::Deliver(Box::new(word.clone())));
            }
            return;
        };
        stay.account(now);
        if how == StopHow::Checkpoint && stay.doing == Doing::Working {
            let save = stay.spec.checkpoint.save;
            stay.save(now);
            self.queue.push(now + save, Coming::Saved(lease));
            return;
        }
        let job = stay.job;
        let (done, safe) = stay.done_and_safe();
        let mut events = Vec::new();
        self.end_unsaved(lease, job, done, safe, &mut events);
        for event in events {
            self.queue.push(now, Coming::Deliver(Box::new(event)));
        }
    }

    fn move_to(&mut self, lease: LeaseId, placement: &Arc<Placement>) {
        let now = self.now;
        let Some(stay) = self.stays.get_mut(lease.0) else {
            return;
        };
        stay.account(now);
        if let Some(neighbours) = &mut self.neighbours {
            neighbours.leave(lease, &stay.placement);
            neighbours.join(lease, placement);
        }
        stay.placement = Arc::clone(placement);
        let pause = stay.spec.checkpoint.save + stay.spec.checkpoint.load;
        let rate = self.rate_of(lease);
        let stay = self.stays.get_mut(lease.0).expect("the stay is here");
        stay.work_from(now + pause, rate);
        let (finish, version) = (stay.finish_at(self.truth.run(stay.job)), stay.version);
        self.queue.push(finish, Coming::Finish(lease, version));
        self.adjust_neighbours(lease);
    }

    fn leave(&mut self, lease: LeaseId) {
        let stay = self.stays.remove(lease.0).expect("the stay is here");
        let Some(neighbours) = &mut self.neighbours else {
            return;
        };
        neighbours.leave(lease, &stay.placement);
        for other in neighbours.of(lease, &stay.placement) {
            self.adjust(other);
        }
    }

    fn adjust_neighbours(&mut self, lease: LeaseId) {
        let (Some(neighbours), Some(stay)) = (&self.neighbours, self.stays.get(lease.0)) else {
            return;
        };
        for other in neighbours.of(lease, &stay.placement) {
            self.adjust(other);
        }
    }

    /// Gives a stay its present speed and finish.
    fn adjust(&mut self, lease: LeaseId) {
        let rate = self.rate_of(lease);
        let Some(stay) = self.stays.get_mut(lease.0) else {
            return;
        };
        if stay.doing != Doing::Working || stay.rate == rate {
            return;
        }
        stay.change_rate(self.now, rate);
        let (finish, version) = (stay.finish_at(self.truth.run(stay.job)), stay.version);
        self.queue.push(finish, Coming::Finish(lease, version));
    }

    fn rate_of(&self, lease: LeaseId) -> Rate {
        let stay = self.stays.get(lease.0).expect("the stay is here");
        let on_gpus = stay.placement.parts.iter().filter(|part| !part.slices.is_empty());
        let models = on_gpus.filter_map(|part| self.site.nodes[part.node.index()].gpu_model);
        let alone = self.site.physics.rate(&stay.spec, models, || self.reach(&stay.placement));
        let Some(neighbours) = &self.neighbours else {
            return alone;
        };
        let others = neighbours.of(lease, &stay.placement).into_iter();
        let others = others.filter_map(|other| self.stays.get(other.0));
        others.fold(alone, |rate, other| {
            rate.times(self.site.physics.beside(stay.spec.profile, other.spec.profile))
        })
    }

    fn reach(&self, placement: &Placement) -> Reach {
        let racks = |node: NodeId| self.site.nodes[node.index()].rack;
        let Some(first) = placement.parts.first() else {
            return Reach::Island;
        };
        let same_node = placement.parts.iter().all(|part| part.node == first.node);
        let same_rack = placement.parts.iter().all(|part| racks(part.node) == racks(first.node));
        match (same_node, same_rack) {
            (true, _) => self.reach_inside(placement),
            (false, true) => Reach::Rack,
            (false, false) => Reach::Cluster,
        }
    }

    fn reach_inside(&self, placement: &Placement) -> Reach {
        let node = placement.parts[0].node;
        let island_gpus = self.site.nodes[node.index()].island_gpus;
        let first = self.first_devices[node.index()];
        let slices = placement.parts.iter().flat_map(|part| &part.slices);
        let mut islands =
            slices.map(|slice| (slice.device.0 - first).checked_div(island_gpus).unwrap_or(0));
        let one = islands.next();
        if islands.all(|island| Some(island) == one) { Reach::Island } else { Reach::Node }
    }

    /// Sends a report, unless it goes astray.
    fn report(&mut self, job: JobId, of: Report, word: Event, events: &mut Vec<Event>) {
        if !self.reports_go_astray {
            events.push(word);
            return;
        }
        if let Event::Stopped { lease, .. } | Event::StartFailed { lease } = &word {
            self.last_words.insert(*lease, word.clone());
        }
        for arrival in self.faults.arrivals(self.now, job, of).into_iter().flatten() {
            if arrival == self.now {
                events.push(word.clone());
            } else {
                self.queue.push(arrival, Coming::Deliver(Box::new(word.clone())));
            }
        }
    }

    fn submit_jobs(&mut self, at: Time, events: &mut Vec<Event>) {
        while self.arrivals.next_at().is_some_and(|next| next <= at) {
            let Some((job, spec)) = self.arrivals.take() else {
                break;
            };
            self.specs.insert(job.0, Arc::clone(&spec));
            events.push(Event::Submitted { job, spec });
        }
    }
}

impl<Source: Arrivals> Executor for World<Source> {
    fn next(&mut self, wake: Option<Time>) -> Option<(Time, Vec<Event>)> {
        let mut events = if self.opened { Vec::new() } else { self.opening() };
        let mut news = [self.queue.next_at(), self.arrivals.next_at()].into_iter().flatten().min();
        if !std::mem::replace(&mut self.opened, true) {
            news = Some(Time::ZERO);
        }
        let at = match (news, wake) {
            (Some(news), Some(wake)) => news.min(wake),
            (Some(news), None) => news,
            (None, Some(wake)) => wake,
            (None, None) => return None,
        };
        self.now = self.now.max(at);
        while let Some(coming) = self.queue.pop_at(self.now) {
            self.happen(coming, &mut events);
        }
        self.submit_jobs(self.now, &mut events);
        self.idle_wakes = if news.is_some() { 0 } else { self.idle_wakes + 1 };
        (self.idle_wakes < IDLE_WAKES_MAX).then_some((self.now, events))
    }

    fn submit(&mut self, at: Time, decision: &Decision) {
        self.now = at;
        match decision {
            Decision::Start { lease, job, placement } => {
                let base = self.safe.get(job).copied().unwrap_or(Span::ZERO);
                let spec =
                    Arc::clone(self.specs.get(job.0).expect("a job that starts is not over"));
                let stay = Stay::new(*lease, *job, spec, Arc::clone(placement), base);
                self.stays.insert(lease.0, stay);
                self.queue.push(at + self.site.physics.start_delay, Coming::Start(*lease));
            }
            Decision::Stop { lease, how, .. } => self.stop(*lease, *how),
            Decision::Resize { lease, placement } | Decision::SetShare { lease, placement } => {
                self.move_to(*lease, placement);
            }
            Decision::SetPower { node, power } => {
                let (delay, power) = match power {
                    Power::Sleeping => (Span::ZERO, Power::Sleeping),
                    Power::Waking | Power::On => (self.site.physics.wake_delay, Power::On),
                };
                let event = Event::PowerChanged { node: *node, power };
                self.queue.push(at + delay, Coming::Deliver(Box::new(event)));
            }
            Decision::Reject { job, .. } => {
                self.specs.remove(job.0);
            }
            Decision::Admit { .. }
            | Decision::Extend { .. }
            | Decision::Repartition { .. }
            | Decision::Hold { .. }
            | Decision::Solve { .. }
            | Decision::WakeAt { .. } => {}
        }
    }
}
