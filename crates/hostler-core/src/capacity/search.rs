//! Searching the cluster for nodes that may hold a demand.

use std::sync::Arc;

use super::{Capacity, Walk};
use crate::id::{ModelId, ModelSet, NodeId};
use crate::job::{Demand, Models};
use crate::placement::Part;
use crate::units::Milli;
use crate::window::Kept;

impl Capacity {
    /// At most this many tasks fit, by GPUs and CPU: cheap, and tight enough to skip searches
    /// that would fail.
    pub fn slots_bound(&self, demand: &Demand) -> u32 {
        self.slots_bounds(demand).fold(0, u32::saturating_add)
    }

    /// Whether `count` tasks may fit: as [`Capacity::slots_bound`], counted no further than that.
    pub fn may_hold(&self, demand: &Demand, count: u32) -> bool {
        let mut bound: u32 = 0;
        let mut enough = |more: u32| {
            bound = bound.saturating_add(more);
            bound >= count
        };
        count == 0 || self.slots_bounds(demand).any(&mut enough)
    }

    /// Whether a node may hold a task of `demand` when enough of it is free.
    pub fn suits(&self, id: NodeId, demand: &Demand) -> bool {
        let node = &self.nodes[id.index()];
        let allowed = || class_in(demand.models.set(), node.class);
        let open = node.usable && Kept::admits(node.kept, demand);
        let back = |parts: &Arc<[Part]>| parts.iter().any(|part| part.node == id);
        let open = open && demand.pinned.as_ref().is_none_or(back);
        open && node.features.cover(demand.needs) && (!demand.names_models() || allowed())
    }

    /// Whether a node that takes jobs of this demand would hold a task if it were empty.
    pub fn would_hold(&self, id: NodeId, demand: &Demand) -> bool {
        let (cpu, mem) = self.size(id);
        let sizes = demand.gpu <= self.gpu_size(id) && demand.cpu <= cpu && demand.mem <= mem;
        sizes && self.suits(id, demand)
    }

    fn slots_bounds(&self, demand: &Demand) -> impl Iterator<Item = u32> {
        let allowed = demand.models.set();
        let classes = self.classes.iter().enumerate();
        classes
            .filter(move |(class, _)| !demand.names_models() || class_in(allowed, *class as u8))
            .flat_map(|(_, index)| index.slots_bounds(demand))
    }

    /// Visits nodes that may hold a task of `demand`, each once, until `visit` says stop.
    ///
    /// Models come in the demand's order, else from low to high tier; tasks without GPUs go where
    /// fewest GPUs are left, so that they strand none.
    pub fn visit(&self, walk: Walk, demand: &Demand, mut visit: impl FnMut(NodeId) -> bool) {
        if let Some(pinned) = &demand.pinned {
            pinned.iter().any(|part| visit(part.node));
            return;
        }
        let mut each = |id: u32| self.is_large_enough(id, demand) && visit(NodeId(id));
        if demand.gpu.0 == 0 {
            self.visit_by_level(walk, demand.cpu, &mut each);
            return;
        }
        if walk == Walk::ById && !matches!(demand.models, Models::Ordered(_)) {
            self.visit_by_id(demand, &mut each);
            return;
        }
        match &demand.models {
            Models::Ordered(models) => {
                models
                    .iter()
                    .any(|model| self.visit_class(walk, model.0 as u8 + 1, demand, &mut each));
            }
            Models::Any | Models::OneOf(_) => {
                let allowed = demand.models.set();
                let classes = self.by_tier.iter().filter(|&&class| class_in(allowed, class));
                classes.copied().any(|class| self.visit_class(walk, class, demand, &mut each));
            }
        }
    }

    /// Visits nodes with GPUs of a model, or without GPUs, that may hold a task of `demand`, each
    /// once and in no order that matters, until `visit` says stop; tells whether it did.
    pub fn visit_on(
        &self,
        model: Option<ModelId>,
        demand: &Demand,
        mut visit: impl FnMut(NodeId) -> bool,
    ) -> bool {
        if let Some(pinned) = &demand.pinned {
            let mut parts = pinned.iter().filter(|part| self.model(part.node) == model);
            return parts.any(|part| visit(part.node));
        }
        let mut each = |id: u32| self.is_large_enough(id, demand) && visit(NodeId(id));
        let class = model.map_or(0, |model| model.0 as u8 + 1);
        if demand.gpu.0 > 0 {
            return self.visit_class(Walk::Tightest, class, demand, &mut each);
        }
        let index = self.classes.get(usize::from(class));
        index.is_some_and(|index| index.visit_levels(Walk::Tightest, 0, demand.cpu, &mut each))
    }

    /// Whether a node has cores and memory for a task. The index knows cores roughly and memory not
    /// at all: most nodes that it names have too little.
    fn is_large_enough(&self, id: u32, demand: &Demand) -> bool {
        let node = &self.nodes[id as usize];
        node.cpu >= demand.cpu && node.mem >= demand.mem
    }

    fn visit_class(
        &self,
        walk: Walk,
        class: u8,
        demand: &Demand,
        visit: &mut impl FnMut(u32) -> bool,
    ) -> bool {
        let Some(index) = self.classes.get(usize::from(class)) else {
            return false;
        };
        let (gpu, cpu) = (demand.gpu, demand.cpu);
        if !gpu.is_fraction() {
            return index.visit_levels(walk, gpu.whole() as usize, cpu, visit);
        }
        let rest_fits = |id: u32| u32::from(self.nodes[id as usize].rest) >= gpu.0;
        match walk {
            Walk::ById => {
                let able = |id: u32| rest_fits(id) || self.nodes[id as usize].whole > 0;
                index.visit_levels(walk, 0, cpu, &mut |id| able(id) && visit(id))
            }
            // A node shows up once: by its rest when that is large enough, else by its level.
            Walk::Tightest => {
                index.visit_rests(walk, gpu, cpu, &mut |id| rest_fits(id) && visit(id))
                    || index.visit_levels(walk, 1, cpu, &mut |id| !rest_fits(id) && visit(id))
            }
            Walk::Roomiest => {
                let untouched = |id: u32| self.nodes[id as usize].whole > 0;
                index.visit_levels(walk, 1, cpu, visit)
                    || index.visit_rests(walk, gpu, cpu, &mut |id| !untouched(id) && visit(id))
            }
        }
    }

    fn visit_by_level(&self, walk: Walk, cpu: Milli, visit: &mut impl FnMut(u32) -> bool) {
        let levels = self.classes.iter().map(|index| index.level_count()).max().unwrap_or(0);
        let classes = |level: usize, visit: &mut dyn FnMut(u32) -> bool| {
            let mut visit = visit;
            self.by_tier
                .iter()
                .any(|&class| self.classes[usize::from(class)].visit_level(level, cpu, &mut visit))
        };
        match walk {
            Walk::Tightest => {
                (0..levels).any(|level| classes(level, visit));
            }
            Walk::Roomiest => {
                (0..levels).rev().any(|level| classes(level, visit));
            }
            Walk::ById => {
                let usable = |id: &u32| self.nodes[*id as usize].usable;
                (0..self.nodes.len() as u32).filter(usable).any(visit);
            }
        }
    }

    fn visit_by_id(&self, demand: &Demand, visit: &mut impl FnMut(u32) -> bool) {
        let allowed = demand.models.set();
        let able = |id: &u32| {
            let node = &self.nodes[*id as usize];
            let gpu_fits = if demand.gpu.is_fraction() {
                u32::from(node.rest) >= demand.gpu.0 || node.whole > 0
            } else {
                u32::from(node.whole) >= demand.gpu.whole()
            };
            node.usable && gpu_fits && class_in(allowed, node.class)
        };
        (0..self.nodes.len() as u32).filter(able).any(visit);
    }
}

fn class_in(allowed: ModelSet, class: u8) -> bool {
    class > 0 && allowed.contains(ModelId(u32::from(class) - 1))
}
