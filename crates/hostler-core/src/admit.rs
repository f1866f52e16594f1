//! Telling what can never run here, so that policies can turn it away.
//!
//! Looks at the empty cluster, whether its nodes are up or not; what is free now is no concern.
//! Nodes that never come back are none.

use crate::capacity::Capacity;
use crate::cluster::{Health, Node, Power};
use crate::id::{JobId, ModelId};
use crate::job::{Demand, JobSpec, Locality};
use crate::plan::Plan;
use crate::reason::Reason;
use crate::stage::{Place, place_job};
use crate::view::View;

/// The empty cluster: kinds of node and how many there are. A cache of the node table.
#[derive(Clone, Debug, Default)]
pub struct EmptyCluster {
    kinds: Vec<Kind>,
    nodes: usize,
    /// Changes of nodes that this takes into account.
    changes: usize,
    /// All nodes, up and free, to place jobs with several roles on trial; made when one comes.
    empty: Option<Capacity>,
}

#[derive(Clone, Debug)]
struct Kind {
    example: usize,
    count: u32,
}

impl EmptyCluster {
    /// Counts nodes that were added, retired or changed since the last time.
    pub fn refresh(&mut self, view: &View<'_>) {
        let changes = view.retired() + view.refitted();
        if self.changes != changes {
            *self = EmptyCluster { changes, ..EmptyCluster::default() };
        }
        // Nodes are never forgotten, so a number that did not change says that nothing did.
        let added = view.nodes().iter().enumerate().skip(self.nodes);
        for (at, node) in added.filter(|(_, node)| !node.retired) {
            let same = |kind: &&mut Kind| {
                let known = &view.nodes()[kind.example].spec;
                (known.cpu, known.mem, known.gpus) == (node.spec.cpu, node.spec.mem, node.spec.gpus)
                    && known.gpu_model == node.spec.gpu_model
                    && known.island_gpus == node.spec.island_gpus
                    && known.rack == node.spec.rack
                    && known.features == node.spec.features
            };
            match self.kinds.iter_mut().find(same) {
                Some(kind) => kind.count += 1,
                None => self.kinds.push(Kind { example: at, count: 1 }),
            }
        }
        if self.nodes != view.nodes().len() {
            self.nodes = view.nodes().len();
            self.empty = None;
        }
    }

    /// Whether a waiting job can ever run here, placed by the rule; one that cannot is turned away.
    pub fn admits(
        &mut self,
        view: &View<'_>,
        plan: &mut Plan<'_>,
        id: JobId,
        spec: &JobSpec,
        place: &dyn Place,
    ) -> bool {
        let objection = self.objection(view, spec, place);
        objection.is_none_or(|reason| plan.turn_away(id, reason).is_err())
    }

    /// Why the job can never run, if so. Several roles must fit the empty cluster together, placed
    /// by the rule that will place them.
    pub fn objection(
        &mut self,
        view: &View<'_>,
        spec: &JobSpec,
        place: &dyn Place,
    ) -> Option<Reason> {
        let alone = spec.gangs.iter().find_map(|gang| self.gang(view, &gang.demand, gang.count));
        // What is kept for a window is not known before it begins.
        let invited = spec.gangs.iter().any(|gang| gang.demand.window.is_some());
        if alone.is_some() || invited || spec.gangs.len() == 1 {
            return alone;
        }
        let empty = self.empty.get_or_insert_with(|| empty_cluster(view));
        let short = place_job(place, empty, spec).err()?;
        Some(Reason::TooLarge { tasks: spec.tasks(), fit: short.fit })
    }

    /// Tasks that the empty nodes with GPUs of `model` hold, or those without GPUs. Racks are not
    /// told apart.
    pub fn slots_on(&self, view: &View<'_>, demand: &Demand, model: Option<ModelId>) -> u32 {
        let alike = self.kinds.iter().filter(|kind| {
            let node = &view.nodes()[kind.example];
            node.spec.gpu_model == model
        });
        let slots = alike.map(|kind| (slots_when_empty(view, kind, demand), kind.count));
        match demand.locality {
            Locality::Any | Locality::Apart | Locality::Rack => {
                slots.map(|(slots, nodes)| slots.saturating_mul(nodes)).fold(0, u32::saturating_add)
            }
            Locality::Node | Locality::Island => slots.map(|(slots, _)| slots).max().unwrap_or(0),
        }
    }

    /// Whether the empty cluster holds `count` tasks of a demand.
    pub fn holds(&self, view: &View<'_>, demand: &Demand, count: u32) -> bool {
        self.gang(view, demand, count).is_none()
    }

    fn gang(&self, view: &View<'_>, demand: &Demand, count: u32) -> Option<Reason> {
        let slots = self.kinds.iter().map(|kind| (slots_when_empty(view, kind, demand), kind));
        let fit = match demand.locality {
            Locality::Any | Locality::Apart => slots
                .map(|(slots, kind)| slots.saturating_mul(kind.count))
                .fold(0, u32::saturating_add),
            Locality::Rack => self.best_rack(view, slots),
            Locality::Node | Locality::Island => slots.map(|(slots, _)| slots).max().unwrap_or(0),
        };
        if fit >= count {
            return None;
        }
        let wanted = demand.models.set();
        let nodes = view.nodes().iter().filter(|node| !node.retired);
        if !nodes.clone().any(|node| node.spec.features.cover(demand.needs)) {
            return Some(Reason::NoSuchFeature);
        }
        let models = nodes.filter_map(|node| node.spec.gpu_model);
        let model_exists =
            !demand.names_models() || models.into_iter().any(|model| wanted.contains(model));
        Some(match (model_exists, fit) {
            (false, _) => Reason::NoSuchModel,
            (true, 0) => Reason::NodeTooSmall { gpu: demand.gpu },
            (true, fit) => Reason::TooLarge { tasks: count, fit },
        })
    }

    fn best_rack<'a>(&self, view: &View<'_>, slots: impl Iterator<Item = (u32, &'a Kind)>) -> u32 {
        let mut racks: Vec<(u32, u32)> = Vec::new();
        for (slots, kind) in slots {
            let rack = view.nodes()[kind.example].spec.rack;
            let slots = slots.saturating_mul(kind.count);
            match racks.iter_mut().find(|(known, _)| *known == rack) {
                Some((_, sum)) => *sum = sum.saturating_add(slots),
                None => racks.push((rack, slots)),
            }
        }
        racks.into_iter().map(|(_, slots)| slots).max().unwrap_or(0)
    }
}

fn empty_cluster(view: &View<'_>) -> Capacity {
    let mut empty = Capacity::default();
    view.models().iter().for_each(|model| empty.add_model(model));
    for node in view.nodes() {
        let health = if node.retired { Health::Down } else { Health::Up };
        empty.add_node(&Node { health, power: Power::On, kept: None, ..node.clone() });
    }
    empty
}

/// Tasks that an empty node of this kind holds. Where a suspended job waits makes no difference: it
/// ran there, so that a node of its kind holds it.
fn slots_when_empty(view: &View<'_>, kind: &Kind, demand: &Demand) -> u32 {
    let spec = &view.nodes()[kind.example].spec;
    if !spec.features.cover(demand.needs) {
        return 0;
    }
    let per = |has: u32, asked: u32| has.checked_div(asked).unwrap_or(u32::MAX);
    let most = per(spec.cpu.0, demand.cpu.0).min(per(spec.mem.0, demand.mem.0));
    let most = most.min(demand.locality.tasks_per_node());
    if !demand.names_models() {
        return most;
    }
    let Some(model) = spec.gpu_model.filter(|model| demand.models.set().contains(*model)) else {
        return 0;
    };
    if demand.gpu.0 == 0 {
        return most;
    }
    let mem = view.model(model).map_or(0, |model| model.mem.0);
    if demand.gpu_mem.0 > mem {
        return 0;
    }
    let together = match demand.locality {
        Locality::Island if spec.island_gpus > 0 => spec.island_gpus.min(spec.gpus),
        Locality::Any | Locality::Rack | Locality::Node | Locality::Island | Locality::Apart => {
            spec.gpus
        }
    };
    let by_gpu = if demand.gpu.is_fraction() {
        together * (1000 / demand.gpu.0).min(per(mem, demand.gpu_mem.0))
    } else {
        together / demand.gpu.whole()
    };
    most.min(by_gpu)
}

#[cfg(test)]
mod tests;
