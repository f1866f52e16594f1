//! How much of each class of machines is booked when a job asks.
//!
//! The booked part of single nodes is a matter of taste, not of this.

use hostler_core::capacity::{Capacity, ClassTotals};

use super::class_access::{Class, Fleet};

/// Sizes and free parts by class.
#[derive(Default)]
pub(super) struct Booked {
    classes: Vec<(Class, Sums)>,
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
    /// What is booked now.
    pub(super) fn of(fleet: &Fleet, free: &Capacity) -> Booked {
        let sums = |class: Class| {
            let ClassTotals { gpu, gpu_free, cpu, cpu_free } = free.totals(class);
            let (gpu, cpu) = (Sum { size: gpu, free: gpu_free }, Sum { size: cpu, free: cpu_free });
            Sums { gpu, cpu }
        };
        Booked { classes: fleet.classes().map(|class| (class, sums(class))).collect() }
    }

    /// Booked part of a class, in thousandths: GPUs and cores by weight.
    pub(super) fn thousandths(&self, class: Class, [gpu, cpu]: [u64; 2]) -> u64 {
        let sums = self.classes.iter().find(|(known, _)| *known == class);
        let sums = sums.map_or_else(Sums::default, |(_, sums)| *sums);
        let parts = [(sums.gpu.booked(), gpu), (sums.cpu.booked(), cpu)];
        let known = parts.iter().filter_map(|(part, weight)| Some((part.as_ref()?, weight)));
        let (sum, weights) = known
            .fold((0, 0), |(sum, weights), (part, weight)| (sum + part * weight, weights + weight));
        sum.checked_div(weights).unwrap_or(0)
    }

    /// Whether the top class can give so much away and keep `part` of its GPUs free.
    pub(super) fn can_spare(&self, fleet: &Fleet, gpu_milli: u64, part: f64) -> bool {
        let top = self.classes.iter().filter(|(class, _)| fleet.is_top(*class));
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
