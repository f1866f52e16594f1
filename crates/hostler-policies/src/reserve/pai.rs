//! Reserving and packing first, load balancing second, as on the PAI cluster.
//!
//! Jobs that run at least `theta` times faster on high-end GPUs get these first; without a table
//! of speeds those are the jobs that name a model of the top class. All others are packed onto the
//! low end, onto the model that is booked the least: jobs that name a model would find the slowest
//! one full otherwise. They may use the top class only where `reserve_part` of it stays free, or
//! after waiting `reserve_secs`. Inside a model the booked part of a node decides, after placement:
//! fullest first for those that are packed, emptiest first for the high ones. A role that no single
//! model holds is divided among several. Needs no estimate of run times and never preempts.
//!
//! After "MLaaS in the Wild" (NSDI'22), which leaves numbers open; `docs/pai.md` has ours.

use hostler_core::capacity::Capacity;
use hostler_core::job::Demand;
use hostler_core::policy::PolicyDef;

use super::place::{Candidate, CostModel};
use super::settings::reserve_settings;

/// Reserving and packing.
pub fn def() -> PolicyDef {
    let summary = "high-end GPUs for jobs that gain from them, others packed onto the low end";
    PolicyDef::new("pai", summary, |config: Config| {
        let weights = Weights::new([config.gpu_weight, config.cpu_weight, config.mem_weight])?;
        config.reserving(Packing { weights })
    })
}

reserve_settings! {
    struct Config {
        /// Weight of GPUs in the booked part of a node.
        gpu_weight: f64 = 1.0,
        /// Weight of CPU cores in it.
        cpu_weight: f64 = 1.0,
        /// Weight of main memory in it.
        mem_weight: f64 = 1.0,
    }
}

/// How much GPUs, CPU and memory count in the booked part of a node.
pub(super) struct Weights([f64; 3]);

impl Weights {
    pub(super) fn new(weights: [f64; 3]) -> Result<Weights, String> {
        let sane = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0);
        if sane && weights.iter().sum::<f64>() > 0.0 {
            return Ok(Weights(weights));
        }
        Err(format!("weights: {weights:?}; give numbers from 0 on, one of them above"))
    }

    /// Weighted booked part of a node with the tasks on it, in billionths.
    pub(super) fn booked(&self, free: &Capacity, seat: &Candidate<'_>) -> i64 {
        let (cpu, mem) = free.size(seat.node);
        let left = free.node(seat.node);
        let resources = [
            (free.gpu_size(seat.node).0, free.gpu_free(seat.node).0, seat.demand.gpu.0),
            (cpu.0, left.cpu.0, seat.demand.cpu.0),
            (mem.0, left.mem.0, seat.demand.mem.0),
        ];
        let (mut sum, mut weights) = (0.0, 0.0);
        for ((size, free, asked), weight) in resources.into_iter().zip(self.0) {
            if size > 0 {
                let booked = f64::from(size - free) + f64::from(asked) * f64::from(seat.tasks);
                sum += weight * booked / f64::from(size);
                weights += weight;
            }
        }
        if weights > 0.0 { (1e9 * sum / weights).round() as i64 } else { 0 }
    }
}

/// Packs, or balances what gains from fast GPUs.
struct Packing {
    weights: Weights,
}

impl CostModel for Packing {
    fn cost(&self, free: &Capacity, seat: &Candidate<'_>) -> i64 {
        let booked = self.weights.booked(free, seat);
        if seat.high { booked } else { -booked }
    }

    fn class_weights(&self, _: &Demand) -> [u64; 2] {
        [1, 1]
    }
}
