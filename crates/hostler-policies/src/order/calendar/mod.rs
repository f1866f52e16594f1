//! What is believed to be free from now on, node by node and device by device, to the microsecond;
//! and the search for the earliest place of a job. Knows no order of jobs and no policy.
//!
//! Places have an order of their own that does not depend on who else is there: see
//! `conservative_backfill` for it and for the reason.

mod bounds;
mod earliest;
mod empty;
mod node;
mod peaks;
mod search;
mod window;

use hostler_core::capacity::Capacity;
use hostler_core::cluster::Layout;
use hostler_core::id::{DeviceId, ModelId, NodeId};
use hostler_core::job::{Demand, Models};
use hostler_core::placement::{Part, Placement};
use hostler_core::units::Time;
use hostler_core::view::View;

use bounds::Bounds;
pub(super) use empty::FirstPlace;
use node::{Glance, Need, NodeCalendar, Open};
use peaks::{Peaks, Starts};
use search::Scratch;
pub(super) use search::{Choice, Found};

/// Free resources of all nodes over time.
#[derive(Default)]
pub(super) struct Calendar {
    /// By id.
    nodes: Vec<NodeCalendar>,
    /// Nodes by the model of their GPUs, those without GPUs first, then from low to high tier;
    /// those with few of them first.
    classes: Vec<(Option<ModelId>, Vec<NodeId>)>,
    /// The last time, but for the end of all, at which something is believed to change.
    horizon: Time,
    now: Time,
    /// What is free now, by node: most nodes need no closer look.
    glances: Vec<Glance>,
    /// The most that is free at other times: most nodes need no closer look then, either.
    peaks: Peaks,
    bounds: Bounds,
    scratch: Scratch,
}

impl Calendar {
    /// Nothing runs and nothing is planned.
    pub(super) fn empty(view: &View<'_>, free: &Capacity) -> Calendar {
        let mut calendar = Calendar::default();
        let mut models: Vec<Option<ModelId>> =
            (0..view.models().len() as u32).map(ModelId).map(Some).collect();
        models.sort_by_key(|model| model.and_then(|model| view.model(model)).map(|on| on.tier));
        calendar.classes = [None].into_iter().chain(models).map(|on| (on, Vec::new())).collect();
        for node in view.nodes() {
            let model = node.spec.gpu_model.and_then(|model| view.model(model));
            let (mem, slices) =
                model.map_or_else(Default::default, |model| (model.mem, model.mig_slices));
            calendar.nodes.push(NodeCalendar::new(node, mem, slices));
            calendar.glances.push(Glance::default());
            let of_model = |class: &&mut (_, _)| class.0 == node.spec.gpu_model;
            let class = calendar.classes.iter_mut().find(of_model);
            class.expect("a node has GPUs of a known model").1.push(node.id);
            calendar.look_at(view, free, node.id);
        }
        let gpus = |id: &NodeId| view.node(*id).map(|node| node.spec.gpus);
        calendar.classes.iter_mut().for_each(|class| class.1.sort_by_key(gpus));
        calendar
    }

    pub(super) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Takes in for whom a node is open now. Where that is news, nothing may be planned there.
    pub(super) fn look_at(&mut self, view: &View<'_>, free: &Capacity, id: NodeId) {
        let (open, divided) = now_open(view, free, id);
        self.nodes[id.index()].set_open(open, divided);
        self.changed(id, Time::ZERO, None);
        self.bounds.clear();
    }

    /// Whether a node is open for others than before.
    pub(super) fn is_news(&self, view: &View<'_>, free: &Capacity, id: NodeId) -> bool {
        let node = &self.nodes[id.index()];
        now_open(view, free, id) != (node.open, node.divided())
    }

    /// Takes a place from a time on until another, or for ever.
    pub(super) fn book(&mut self, placement: &Placement, from: Time, until: Option<Time>) {
        for part in &placement.parts {
            self.book_part(part, from, until);
        }
    }

    fn book_part(&mut self, part: &Part, from: Time, until: Option<Time>) {
        self.nodes[part.node.index()].book(part, from, until);
        self.changed(part.node, from, until);
        let ends = [Some(from), until].into_iter().flatten().filter(|at| *at < Time::NEVER);
        self.horizon = ends.fold(self.horizon, Time::max);
    }

    /// Gives a place back that was booked for at least that time.
    pub(super) fn release(&mut self, placement: &Placement, from: Time, until: Option<Time>) {
        if until.is_none_or(|until| until > from) {
            self.bounds.clear();
            self.undo(placement, from, until);
        }
    }

    /// Gives a place back that was taken on trial.
    pub(super) fn undo(&mut self, placement: &Placement, from: Time, until: Option<Time>) {
        for part in &placement.parts {
            self.nodes[part.node.index()].release(part, from, until);
            self.changed(part.node, from, until);
        }
    }

    /// Time goes on.
    pub(super) fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// Forgets what was before now on the nodes of a placement.
    pub(super) fn trim(&mut self, placement: &Placement) {
        for part in &placement.parts {
            self.nodes[part.node.index()].trim(self.now);
            self.glance(part.node);
        }
    }

    /// Something changed on a node from a time on until another, or for ever.
    fn changed(&mut self, id: NodeId, from: Time, until: Option<Time>) {
        self.glance(id);
        self.peaks.note(&self.nodes[id.index()], from, until);
    }

    fn glance(&mut self, id: NodeId) {
        self.glances[id.index()] = self.nodes[id.index()].glance(self.now);
    }

    /// Nodes that may hold tasks of a demand when enough of them is free, in the order of places;
    /// with `only`, those with GPUs of that model.
    fn able(&self, demand: &Demand, only: Option<ModelId>, able: &mut Vec<NodeId>) {
        able.clear();
        self.accepted(demand, only, |nodes| {
            able.extend(nodes.iter().filter(|id| self.admits(**id, demand)));
            false
        });
    }

    /// Whether a node may hold so many tasks of a role that starts at a time, as far as can be told
    /// at a glance: most hold none.
    fn may_hold(
        &self,
        id: NodeId,
        need: &Need<'_>,
        (at, starts): (Time, Starts),
        tasks: u32,
    ) -> bool {
        self.glances[id.index()].may_hold(at, need.demand, tasks)
            && self.peaks.may_hold(starts, id, need, tasks)
            && self.admits(id, need.demand)
    }

    fn admits(&self, id: NodeId, demand: &Demand) -> bool {
        let plain = demand.window.is_none() && demand.needs.is_none() && demand.gpu_mem.0 == 0;
        plain && self.glances[id.index()].open_to_all || self.nodes[id.index()].admits(demand)
    }

    /// Goes through nodes with GPUs that are accepted, in the order of places, until `each` says
    /// stop.
    fn accepted(
        &self,
        demand: &Demand,
        only: Option<ModelId>,
        mut each: impl FnMut(&[NodeId]) -> bool,
    ) {
        let allowed = demand.models.set();
        let will_do = |model: Option<ModelId>| match model {
            _ if only.is_some() && model != only => false,
            Some(model) => !demand.names_models() || allowed.contains(model),
            None => !demand.names_models(),
        };
        if let Models::Ordered(models) = &demand.models {
            let of = |model: &ModelId| {
                self.classes.iter().find(|class| class.0 == Some(*model) && will_do(class.0))
            };
            models.iter().filter_map(of).any(|class| each(&class.1));
            return;
        }
        let mut classes = self.classes.iter().filter(|class| will_do(class.0));
        classes.any(|class| each(&class.1));
    }
}

/// For whom a node is open, and which of its devices are cut in hardware.
fn now_open(view: &View<'_>, free: &Capacity, id: NodeId) -> (Option<Open>, u128) {
    let node = view.node(id).expect("nodes are never forgotten");
    let is_divided =
        |local: &u32| free.layout(DeviceId(node.first_device.0 + local)) == Layout::Mig;
    let divided = (0..node.spec.gpus).filter(is_divided);
    (Open::of(node), divided.fold(0, |set, local| set | 1 << local))
}
