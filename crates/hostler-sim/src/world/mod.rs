//! The simulated world: machines, time and what goes wrong, behind the executor's two methods.
//!
//! No ticks: time jumps from one thing to come to the next. The world knows the truth and tells
//! only what an executor could know.

mod arrivals;
mod faults;
mod fork;
mod lifecycle;
mod queue;
mod reports;
mod shared;
mod speed;
mod stay;
mod suspended;
mod truth;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use arrivals::{Arrivals, Listed};
pub use faults::{InjectedFault, Report, ReportFault};
pub use truth::{Oracle, Truth, Use};

use faults::Faults;
use hostler_core::ability::Abilities;
use hostler_core::cluster::{GpuModel, NodeSpec, Power, Tenant};
use hostler_core::decision::Decision;
use hostler_core::event::Event;
use hostler_core::executor::Executor;
use hostler_core::id::{Features, JobId, LeaseId, ModelId, NodeId, ProfileKey, TenantId, WindowId};
use hostler_core::job::JobSpec;
use hostler_core::metrics::Contention;
use hostler_core::placement::Placement;
use hostler_core::profile::Profile;
use hostler_core::table::IdWindow;
use hostler_core::units::{Span, Time};
use hostler_core::window::Window;
use queue::{Coming, Queue};
use reports::LastWord;
use shared::Shared;
use stay::SimulatedStay;
use suspended::Suspended;

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
    pub faults: Vec<InjectedFault>,
    /// Speeds that the scheduler is told; the true ones if none.
    pub told_speeds: Option<BTreeMap<ProfileKey, Profile>>,
    /// What can be done with jobs and machines there.
    pub abilities: Abilities,
    /// Times for which nodes are kept, by number.
    pub windows: Vec<Window>,
    /// Nodes that become part of another pool; what runs there stays.
    pub moves: Vec<Move>,
}

/// A node becomes part of another pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which.
    pub node: NodeId,
    /// When.
    pub at: Time,
    /// What it can do from then on: the mark of the pool.
    pub features: Features,
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
    stays: IdWindow<SimulatedStay>,
    /// Specifications of jobs that were submitted and are not over.
    specs: IdWindow<Arc<JobSpec>>,
    /// Safe work of jobs that were stopped.
    safe: BTreeMap<JobId, Span>,
    /// Jobs that wait in the memory of their nodes.
    suspended: BTreeMap<JobId, Suspended>,
    neighbours: Option<Neighbours>,
    /// Who shares devices with whom; kept only where real use is known.
    shared: Option<Shared>,
    /// Last word on stays that are over, in case it went astray. Kept only when reports may.
    last_words: BTreeMap<LeaseId, LastWord>,
    /// Where stays were that are over and have no last word yet. Kept only when reports may.
    left: BTreeMap<LeaseId, Arc<Placement>>,
    /// Whether nodes may have been taken out because stops were never answered.
    nodes_fell_silent: bool,
    reports_go_astray: bool,
    opened: bool,
    idle_wakes: u32,
    now: Time,
}

impl<Source: Arrivals> World<Source> {
    /// A world at time zero.
    pub fn new(site: Site, arrivals: Source, truth: Truth) -> World<Source> {
        let mut queue = Queue::default();
        for Move { node, at, features } in site.moves.iter().copied() {
            queue.push(at, Coming::Move(node, features));
        }
        for fault in &site.faults {
            if let InjectedFault::NodeDown { node, at, lasts } = *fault {
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
        let astray = |fault: &InjectedFault| matches!(fault, InjectedFault::Report { .. });
        World {
            faults: Faults::new(&site.faults),
            shared: truth.knows_uses().then(|| Shared::new(site.physics.sharing)),
            neighbours: site.physics.neighbours_matter().then(Neighbours::default),
            reports_go_astray: site.faults.iter().any(astray),
            down: vec![0; site.nodes.len()],
            first_devices: site.nodes.iter().scan(0, first).collect(),
            site,
            arrivals,
            truth,
            queue,
            stays: IdWindow::default(),
            specs: IdWindow::default(),
            safe: BTreeMap::new(),
            suspended: BTreeMap::new(),
            last_words: BTreeMap::new(),
            left: BTreeMap::new(),
            nodes_fell_silent: false,
            opened: false,
            idle_wakes: 0,
            now: Time::ZERO,
        }
    }

    /// What sharing of GPUs cost so far; none where real use is not known.
    pub fn contention(&self) -> Option<Contention> {
        self.shared.as_ref().map(Shared::contention)
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
        let profiles = self.site.told_speeds.as_ref().unwrap_or(&self.site.physics.profiles);
        let profiles = profiles.iter();
        let profiles =
            profiles.map(|(key, profile)| Event::Profiled { key: *key, profile: profile.clone() });
        let abilities = self.site.abilities;
        let limited = abilities != Abilities::default();
        let abilities = limited.then_some(Event::AbilitiesChanged { abilities });
        let windows = self.site.windows.iter().enumerate();
        let windows = windows
            .map(|(at, spec)| Event::WindowSet { window: WindowId(at as u32), spec: spec.clone() });
        let catalogue = abilities.into_iter().chain(models).chain(tenants);
        catalogue.chain(nodes).chain(windows).chain(profiles).collect()
    }

    fn happen(&mut self, coming: Coming, events: &mut Vec<Event>) {
        match coming {
            Coming::Start(lease) => self.start(lease, events),
            Coming::Finish(lease, version) => self.finish(lease, version, events),
            Coming::Look(lease, version) => self.look_at_speed(lease, version, events),
            Coming::Saved(lease) => self.saved(lease, events),
            Coming::Suspended(lease) => self.out_of_gpus(lease, events),
            Coming::Move(node, features) => {
                self.site.nodes[node.index()].features = features;
                events.push(Event::FeaturesChanged { node, features });
            }
            Coming::Fail(node) => self.fail(node, events),
            Coming::Repair(node) => self.repair(node, events),
            Coming::Resend(lease) => self.resend(lease, events),
            Coming::Deliver(event) => events.push(*event),
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
            Decision::Start { lease, job, placement, .. } => {
                self.drop_forgotten(*job);
                let stay = self.next_stay(*lease, *job, placement);
                self.stays.insert(lease.0, stay);
                self.queue.push(at + self.site.physics.start_delay, Coming::Start(*lease));
            }
            Decision::Stop { lease, how, .. } => self.stop(*lease, *how),
            Decision::Resize { lease, placement } => self.move_to(*lease, placement),
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
            // A device has no state of its own here: how it is divided is the state's business.
            Decision::Repartition { .. }
            | Decision::SetAside { .. }
            | Decision::Hold { .. }
            | Decision::Solve { .. }
            | Decision::BeginRound
            | Decision::WeighPast { .. }
            | Decision::Turns { .. }
            | Decision::WakeAt { .. } => {}
        }
    }
}
