//! Reserving and packing that looks at CPU: no GPU is left without the cores to use it.
//!
//! Reserves like `pai`. Where `pai` takes the fullest machine of a model, this takes the one that
//! its tasks leave best balanced. Free GPUs and free cores of a node are of use only together, in
//! about the proportion that the cluster has them; what is over on either side is stranded. A task
//! goes where it strands the least: tasks that ask for many cores per GPU to machines with cores to
//! spare, tasks without GPUs to machines without GPUs, and tasks that need few cores to crowded
//! machines with idle GPUs. Ties go to the fullest node. Which model is booked least is judged by
//! what a task asks most of. Needs no estimate of run times and never preempts.

use hostler_core::capacity::Capacity;
use hostler_core::job::Demand;
use hostler_core::policy::PolicyDef;

use super::pai::Weights;
use super::place::{Candidate, CostModel};
use super::settings::reserve_settings;

/// Reserving and packing that looks at CPU.
pub fn def() -> PolicyDef {
    let summary = "like `pai`, and tasks go where they strand the fewest GPUs and cores";
    PolicyDef::new("pai-cpu", summary, |config: Config| {
        let weights = Weights::new([1.0; 3])?;
        config.reserving(Stranding { weights, cores_per_gpu: config.cores_per_gpu })
    })
}

reserve_settings! {
    struct Config {
        /// Free cores that are of use with one free GPU: what machines with many GPUs have.
        cores_per_gpu: f64 = 12.0,
    }
}

struct Stranding {
    weights: Weights,
    cores_per_gpu: f64,
}

impl Stranding {
    /// What is over on one side, in GPUs, with so many tasks on the node.
    fn stranded(&self, free: &Capacity, seat: &Candidate<'_>, tasks: u32) -> f64 {
        let tasks = f64::from(tasks);
        let gpus = f64::from(free.gpu_free(seat.node).0) - f64::from(seat.demand.gpu.0) * tasks;
        let cores = f64::from(free.node(seat.node).cpu.0) - f64::from(seat.demand.cpu.0) * tasks;
        (gpus - cores / self.cores_per_gpu).abs() / 1000.0
    }
}

impl CostModel for Stranding {
    fn cost(&self, free: &Capacity, seat: &Candidate<'_>) -> i64 {
        let after = self.stranded(free, seat, seat.tasks);
        let more = after - self.stranded(free, seat, seat.tasks - 1);
        // Hundredths of a GPU: nearer ones are equal, and the fuller node wins.
        let more = (100.0 * more).round() as i64;
        more * 10_000_000_000 - self.weights.booked(free, seat)
    }

    /// A model matters by what the task asks most of: many cores go where cores are free.
    fn class_weights(&self, demand: &Demand) -> [u64; 2] {
        let gpu = f64::from(demand.gpu.0) * self.cores_per_gpu;
        [gpu.round() as u64, u64::from(demand.cpu.0)]
    }
}
