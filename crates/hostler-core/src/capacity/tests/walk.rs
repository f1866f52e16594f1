//! Random bookings, step by step beside a naive book. Searches find exactly the nodes that a full
//! scan finds, and bounds are never too low.

use std::collections::BTreeSet;

use super::model::Model;
use crate::capacity::{Capacity, ClassTotals, Overlay, Walk};
use crate::cluster::Layout;
use crate::id::{DeviceId, ModelId, NodeId};
use crate::job::{Demand, Models};
use crate::placement::Placement;
use crate::random::Random;
use crate::testkit::*;

const CLUSTER: &str = "4 cores 9 mem 50 | 8 island 4 cores 20 mem 90 | 2 model 1 cores 3 \
                       | 0 cores 5 | 4 model 1 island 2 cores 130 | 1 cores 2 | 0 mem 7";

const DEMANDS: [&str; 20] = [
    "gpus 1",
    "gpus 2 cores 3",
    "gpus 1 near island",
    "gpus 2 near island cores 2",
    "gpus 1 on 1",
    "gpus 4 prefers 1,0",
    "gpus 1 near apart",
    "gpus 1 gpu-mem 1200",
    "gpu 300",
    "gpu 250 cores 0 mem 3",
    "gpu 700 on 0",
    "gpu 50 cores 0",
    "gpu 120 near island cores 0",
    "gpu 100 gpu-mem 450",
    "gpu 990 prefers 1",
    "tasks 1",
    "cores 4 mem 6",
    "cores 0 mem 2",
    "cores 1 on 1",
    "cores 9 near apart",
];

struct Walker {
    free: Capacity,
    model: Model,
    booked: Vec<Placement>,
    random: Random,
}

impl Walker {
    fn below(&mut self, most: usize) -> usize {
        (self.random.bits() % most as u64) as usize
    }

    fn demand(&mut self) -> Demand {
        asks(DEMANDS[self.below(DEMANDS.len())]).gangs[0].demand.clone()
    }

    fn book(&mut self) {
        let (demand, node) = (self.demand(), NodeId(self.below(7) as u32));
        let slots = self.free.slots(node, &demand, 4);
        if slots == 0 {
            return;
        }
        let tasks = 1 + self.below(slots as usize) as u32;
        let part = self.free.fit(node, 0, &demand, tasks).expect("slots were counted");
        let placement = Placement { parts: vec![part] };
        self.free.book(&placement).expect("what fits is free");
        assert!(self.model.book(&placement), "the naive book has no room for {placement:?}");
        self.booked.push(placement);
    }

    /// The same once more: refused by both or by none.
    fn book_again(&mut self) {
        if self.booked.is_empty() {
            return;
        }
        let at = self.below(self.booked.len());
        let placement = self.booked[at].clone();
        let before = self.free.clone();
        let result = self.free.book(&placement).is_ok();
        assert_eq!(result, self.model.book(&placement), "{placement:?}");
        match result {
            true => self.booked.push(placement),
            false => assert!(self.free == before, "a refusal changed something"),
        }
    }

    fn release(&mut self) {
        if !self.booked.is_empty() {
            let at = self.below(self.booked.len());
            let placement = self.booked.swap_remove(at);
            self.free.release(&placement);
            self.model.release(&placement);
        }
    }

    fn switch(&mut self) {
        let node = self.below(7);
        let usable = !self.model.0[node].usable;
        self.model.0[node].usable = usable;
        self.free.set_usable(NodeId(node as u32), usable);
    }

    fn divide(&mut self) {
        let node = self.below(7);
        let entry = &mut self.model.0[node];
        let idle = entry.devices.iter().position(|device| device.holders == 0);
        let Some(local) = idle else { return };
        let device = &mut entry.devices[local];
        device.layout = match device.layout {
            Layout::Shared => Layout::Mig,
            Layout::Mig => Layout::Shared,
        };
        let id = DeviceId(entry.first + local as u32);
        self.free.set_layout(NodeId(node as u32), id, device.layout);
    }

    /// Half of what is booked given back on an overlay, and some of that booked again, is what it
    /// is on a copy; the capacity itself goes on unnoticed.
    fn look_ahead(&mut self) {
        let (mut later, mut copy) = (Overlay::default(), self.free.clone());
        let over: Vec<Placement> = self.booked.iter().step_by(2).cloned().collect();
        for (at, placement) in over.iter().enumerate() {
            copy.release(placement);
            later.release(&self.free, &placement.parts[0]);
            if at % 3 == 0 && copy.book(placement).is_ok() {
                later.book(&self.free, &placement.parts[0]);
            }
        }
        (0..7).for_each(|node| later.touch(&self.free, NodeId(node)));
        let mut busy = self.free.clone();
        self.booked.iter().for_each(|placement| busy.release(placement));
        for demand in DEMANDS.map(|text| asks(text).gangs[0].demand.clone()) {
            for node in (0..7).map(NodeId) {
                let expected = copy.slots(node, &demand, u32::MAX);
                assert_eq!(later.slots(&busy, node, &demand, u32::MAX), expected);
            }
        }
        later.clear();
        let demand = self.demand();
        let slots = |free: &Capacity| free.slots(NodeId(0), &demand, 9);
        assert_eq!(later.slots(&self.free, NodeId(0), &demand, 9), slots(&self.free));
    }

    fn compare(&self) {
        for (at, node) in self.model.0.iter().enumerate() {
            let id = NodeId(at as u32);
            let free = self.free.node(id);
            assert_eq!((free.cpu.0, free.mem.0), (node.cpu, node.mem));
            assert_eq!(free.usable, node.usable);
            let whole = node.devices.iter().filter(|device| device.is_whole()).count();
            assert_eq!(usize::from(free.whole), whole);
            let compute: u32 = node.devices.iter().map(|device| device.compute).sum();
            assert_eq!(self.free.gpu_free(id).0, compute);
        }
        for model in self.models() {
            let of_model = (0..7).map(NodeId).filter(|id| self.free.model(*id) == model);
            let sums = of_model.fold(ClassTotals::default(), |sums, id| ClassTotals {
                gpu: sums.gpu + u64::from(self.free.gpu_size(id).0),
                gpu_free: sums.gpu_free + u64::from(self.free.gpu_free(id).0),
                cpu: sums.cpu + u64::from(self.free.size(id).0.0),
                cpu_free: sums.cpu_free + u64::from(self.free.node(id).cpu.0),
            });
            assert_eq!(self.free.totals(model), sums, "{model:?}");
        }
        for text in DEMANDS {
            self.compare_demand(text, &asks(text).gangs[0].demand);
        }
    }

    /// The models of all nodes, each once; none for those without GPUs.
    fn models(&self) -> BTreeSet<Option<ModelId>> {
        (0..7).map(|id| self.free.model(NodeId(id))).collect()
    }

    fn compare_demand(&self, text: &str, demand: &Demand) {
        let slots: Vec<u32> = self.model.0.iter().map(|node| node.slots(demand)).collect();
        let counted = (0..7).map(|id| self.free.slots(NodeId(id), demand, u32::MAX));
        assert_eq!(counted.collect::<Vec<_>>(), slots, "{text}");
        for most in [0, 1, 2] {
            let capped = (0..7).map(|id| self.free.slots(NodeId(id), demand, most));
            assert!(capped.eq(slots.iter().map(|slots| *slots.min(&most))), "{text}: {most}");
        }
        let able: Vec<u32> = (0..7).filter(|id| slots[*id as usize] > 0).collect();
        for walk in [Walk::Tightest, Walk::Roomiest, Walk::ById] {
            let mut seen = Vec::new();
            self.free.visit(walk, demand, |node| {
                seen.push(node.0);
                false
            });
            let mut found = seen.clone();
            found.retain(|id| slots[*id as usize] > 0);
            if walk == Walk::ById && !matches!(demand.models, Models::Ordered(_)) {
                assert_eq!(found, able, "{text}: {walk:?}");
            }
            found.sort_unstable();
            assert_eq!(found, able, "{text}: {walk:?} misses or repeats nodes");
            let usable = seen.iter().all(|id| self.model.0[*id as usize].usable);
            assert!(usable, "{text}: {walk:?} visits nodes that take no jobs");
        }
        let mut found = Vec::new();
        for model in self.models() {
            self.free.visit_on(model, demand, |node| {
                assert_eq!(self.free.model(node), model);
                found.extend((slots[node.index()] > 0).then_some(node.0));
                false
            });
        }
        found.sort_unstable();
        assert_eq!(found, able, "{text}: model by model nodes are missed or repeated");
        let all = slots.iter().fold(0u32, |sum, slots| sum.saturating_add(*slots));
        assert!(self.free.slots_bound(demand) >= all, "{text}: the bound is too low");
        assert!(self.free.may_hold(demand, all) && self.free.may_hold(demand, 0), "{text}");
        let bound = self.free.slots_bound(demand);
        if bound < u32::MAX {
            assert!(!self.free.may_hold(demand, bound + 1), "{text}");
        }
    }
}

#[test]
fn any_sequence_of_bookings_agrees_with_a_naive_book() {
    for seed in 0..6 {
        let specs: Vec<_> =
            World::of(CLUSTER).state().nodes().iter().map(|n| n.spec.clone()).collect();
        let mut walker = Walker {
            free: super::of(CLUSTER),
            model: Model::new(specs),
            booked: Vec::new(),
            random: Random::new(seed),
        };
        for _ in 0..250 {
            match walker.below(12) {
                0..=5 => walker.book(),
                6 | 7 => walker.book_again(),
                8 | 9 => walker.release(),
                10 => walker.switch(),
                _ => walker.divide(),
            }
            walker.look_ahead();
            walker.compare();
        }
        while !walker.booked.is_empty() {
            walker.release();
        }
        walker.compare();
    }
}
