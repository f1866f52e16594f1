//! What really happens on the machines, beyond what anybody reports: the referee.

use std::collections::{BTreeMap, BTreeSet};

use hostler_core::id::{JobId, LeaseId};
use hostler_live::wire::StartOrder;

/// Processes that run, and what became of the others.
#[derive(Default)]
pub struct Truth {
    /// Machines on which tasks of a lease run.
    running: BTreeMap<LeaseId, (JobId, BTreeSet<usize>)>,
    /// Thousandths of a GPU that run there, by machine and GPU.
    gpus: BTreeMap<(usize, u32), u32>,
    /// Every start there ever was.
    started: BTreeSet<(LeaseId, usize)>,
    /// Exit codes of tasks that came to their own end.
    pub own_exits: BTreeMap<LeaseId, Vec<i32>>,
}

impl Truth {
    /// Tasks of an order begin to run on a machine.
    pub fn begin(&mut self, machine: usize, order: &StartOrder) {
        let lease = order.lease;
        assert!(self.started.insert((lease, machine)), "{lease:?} starts again on m{machine}");
        self.go_on(machine, order);
    }

    /// Tasks that stood still have their GPUs again.
    pub fn go_on(&mut self, machine: usize, order: &StartOrder) {
        let (lease, job) = (order.lease, order.job);
        for (other, (whose, machines)) in &self.running {
            let twice = *whose == job && *other != lease;
            assert!(!twice, "{job:?} runs as {other:?} on {machines:?} and starts as {lease:?}");
        }
        self.running.entry(lease).or_insert((job, BTreeSet::new())).1.insert(machine);
        for (gpu, milli) in order.tasks.iter().flat_map(|task| &task.gpus) {
            let used = self.gpus.entry((machine, *gpu)).or_default();
            *used += milli;
            assert!(*used <= 1000, "gpu {gpu} of m{machine} is used {used} thousandths");
        }
    }

    /// They run no more; `code` when they came to their own end.
    pub fn end(&mut self, machine: usize, order: &StartOrder, code: Option<i32>) {
        let (_, machines) = self.running.get_mut(&order.lease).expect("what ends has run");
        assert!(machines.remove(&machine), "{:?} ends twice on m{machine}", order.lease);
        if machines.is_empty() {
            self.running.remove(&order.lease);
        }
        for (gpu, milli) in order.tasks.iter().flat_map(|task| &task.gpus) {
            *self.gpus.get_mut(&(machine, *gpu)).expect("what ends has run") -= milli;
        }
        if let Some(code) = code {
            self.own_exits.entry(order.lease).or_default().push(code);
        }
    }

    /// Whether nothing runs anywhere.
    pub fn is_quiet(&self) -> bool {
        self.running.is_empty()
    }
}
