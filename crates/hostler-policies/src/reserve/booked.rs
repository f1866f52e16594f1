//! How much of each class of machines is booked, during one question.
//!
//! Counted over the nodes once, when the first job asks, and moved by what the plan starts. The
//! booked part of single nodes is a matter of taste, not of this.

use std::collections::BTreeMap;

use hostler_core::capacity::Capacity;
use hostler_core::placement::Placement;
use hostler_core::view::View;

use super::class_access::{Class, Fleet};

/// Sizes and free parts by class.
#[derive(Default)]
pub(super) struct Booked {
    classes: BTreeMap<Class, Sums>,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    gpu: Sum,
    cpu: Sum,
}

/// Thousandths of GPUs or cores.
#[derive(Clone, Copy, Default)]
struct Sum {
    size: u64,
    free: u64,
}

impl Booked {
    /// Counts what is booked now, if nobody has.
    pub(super) fn count(&mut self, fleet: &Fleet, free: &Capacity) {
        if !self.classes.is_empty() {
            return;
        }
        for (class, nodes) in fleet.classes() {
            let sums = self.classes.entry(class).or_default();
            for node in nodes {
                sums.gpu.size += u64::from(free.gpu_size(*node).0);
                sums.gpu.free += u64::from(free.gpu_free(*node).0);
                sums.cpu.size += u64::from(free.size(*node).0.0);
                sums.cpu.free += u64::from(free.node(*node).cpu.0);
            }
        }
    }

    /// Takes in a placement that was booked after the count.
    pub(super) fn take(&mut self, view: &View<'_>, placement: &Placement) {
        for part in &placement.parts {
            let class = view.node(part.node).and_then(|node| node.spec.gpu_model);
            let Some(sums) = self.classes.get_mut(&class) else { continue };
            let gpu = u64::from(view.gpu_of(part).0);
            sums.gpu.free = sums.gpu.free.saturating_sub(gpu);
            sums.cpu.free = sums.cpu.free.saturating_sub(u64::from(part.cpu.0));
        }
    }

    /// Booked part of a class, in thousandths: GPUs and cores by weight.
    pub(super) fn thousandths(&self, class: Class, [gpu, cpu]: [u64; 2]) -> u64 {
        let sums = self.classes.get(&class).copied().unwrap_or_default();
        let parts = [(sums.gpu.booked(), gpu), (sums.cpu.booked(), cpu)];
        let known = parts.iter().filter_map(|(part, weight)| Some((part.as_ref()?, weight)));
        let (sum, weights) = known
            .fold((0, 0), |(sum, weights), (part, weight)| (sum + part * weight, weights + weight));
        sum.checked_div(weights).unwrap_or(0)
    }

    /// Whether the top class can give so much away and keep `part` of its GPUs free.
    pub(super) fn can_spare(&self, fleet: &Fleet, gpu_milli: u64, part: f64) -> bool {
        let top = self.classes.iter().filter(|(class, _)| fleet.is_top(**class));
        let (size, free) = top
            .fold((0, 0), |(size, free), (_, sums)| (size + sums.gpu.size, free + sums.gpu.free));
        free.saturating_sub(gpu_milli) as f64 >= part * size as f64
    }
}

impl Sum {
    fn booked(self) -> Option<u64> {
        (1000 * (self.size - self.free.min(self.size))).checked_div(self.size)
    }
}
