//! Free resources, counted by hand, and every way to divide a job among nodes.

use hostler_core::decision::Decision;
use hostler_core::id::JobId;
use hostler_core::job::{Gang, Job, Locality};
use hostler_core::placement::Placement;
use hostler_core::plan::Plan;
use hostler_core::units::{Span, Time};
use hostler_core::view::View;

/// What is free, or asked for, on one node: GPUs, thousandths of cores, memory.
pub type Three = [u64; 3];

/// What a job takes, by node.
pub type Taken = Vec<(usize, Three)>;

/// What is free on every node.
#[derive(Clone)]
pub struct FreeNodes {
    free: Vec<Three>,
    racks: Vec<u32>,
}

/// A job that runs: when it is believed to end, and what it takes.
#[derive(Clone)]
pub struct Stay {
    pub end: Time,
    pub taken: Taken,
}

impl FreeNodes {
    /// What nobody holds now, by the leases.
    pub fn now(view: &View<'_>) -> FreeNodes {
        let whole = view.nodes().iter().map(|node| {
            [u64::from(node.spec.gpus), u64::from(node.spec.cpu.0), u64::from(node.spec.mem.0)]
        });
        let racks = view.nodes().iter().map(|node| node.spec.rack);
        let mut room = FreeNodes { free: whole.collect(), racks: racks.collect() };
        for lease in view.leases() {
            room.take(&taken(&lease.placement));
        }
        room
    }

    pub fn take(&mut self, taken: &Taken) {
        for (node, three) in taken {
            for (free, more) in self.free[*node].iter_mut().zip(three) {
                *free = free.checked_sub(*more).expect("what is taken is free");
            }
        }
    }

    pub fn give_back(&mut self, taken: &Taken) {
        for (node, three) in taken {
            self.free[*node].iter_mut().zip(three).for_each(|(free, more)| *free += more);
        }
    }

    /// Whether a role fits.
    pub fn fits(&self, gang: &Gang) -> bool {
        !self.divisions(gang, true).is_empty()
    }

    /// All divisions of a role among the nodes; with `one`, at most one of them.
    pub fn divisions(&self, gang: &Gang, one: bool) -> Vec<Taken> {
        let mut found = Vec::new();
        self.divide(gang, 0, gang.count, &mut Vec::new(), one, &mut found);
        found
    }

    fn divide(
        &self,
        gang: &Gang,
        node: usize,
        left: u32,
        so_far: &mut Taken,
        one: bool,
        found: &mut Vec<Taken>,
    ) {
        if left == 0 && self.is_near(gang, so_far) {
            found.push(so_far.clone());
        }
        if left == 0 || node == self.free.len() || (one && !found.is_empty()) {
            return;
        }
        self.divide(gang, node + 1, left, so_far, one, found);
        for tasks in 1..=left {
            let asked = asks(gang).map(|more| more * u64::from(tasks));
            if asked.iter().zip(&self.free[node]).any(|(asked, free)| asked > free) {
                break;
            }
            so_far.push((node, asked));
            self.divide(gang, node + 1, left - tasks, so_far, one, found);
            so_far.pop();
        }
    }

    fn is_near(&self, gang: &Gang, taken: &Taken) -> bool {
        match gang.demand.locality {
            Locality::Node | Locality::Island => taken.len() <= 1,
            Locality::Rack => {
                taken.windows(2).all(|two| self.racks[two[0].0] == self.racks[two[1].0])
            }
            Locality::Any | Locality::Apart => true,
        }
    }
}

fn asks(gang: &Gang) -> Three {
    let demand = &gang.demand;
    [u64::from(demand.gpu.0 / 1000), u64::from(demand.cpu.0), u64::from(demand.mem.0)]
}

/// What a placement takes.
pub fn taken(placement: &Placement) -> Taken {
    let parts = placement.parts.iter();
    parts
        .map(|part| {
            let three = [part.slices.len() as u64, u64::from(part.cpu.0), u64::from(part.mem.0)];
            (part.node.index(), three)
        })
        .collect()
}

/// Who runs, and until when that is believed.
pub fn running(view: &View<'_>) -> Vec<Stay> {
    let now = view.now();
    let stays = view.leases().map(|lease| {
        let late = Span(now.since(lease.since).0 / 10).max(Span::from_secs(1));
        let end = if lease.expected_end > now { lease.expected_end } else { now + late };
        Stay { end, taken: taken(&lease.placement) }
    });
    stays.collect()
}

/// When a job that starts now is believed to end.
pub fn end_of(view: &View<'_>, job: &Job, start: Time) -> Time {
    assert!(job.ledger.first_start.is_none() && view.now() <= start, "nobody is stopped here");
    start + job.estimate.unwrap().run.max(Span(1))
}

/// Those who wait, in order; and where the plan starts them, if it does.
pub fn answers<'a>(view: &View<'a>, plan: &Plan<'_>) -> Vec<(&'a Job, Option<Taken>)> {
    let start = |id: JobId| {
        plan.decisions().iter().find_map(|decision| match decision {
            Decision::Start { job, placement, .. } if *job == id => Some(taken(placement)),
            _ => None,
        })
    };
    let turned_away = |id: &JobId| {
        let is =
            |decision: &Decision| matches!(decision, Decision::Reject { job, .. } if job == id);
        plan.decisions().iter().any(is)
    };
    let waiting = view.pending().iter().copied().filter(|id| !turned_away(id));
    waiting.map(|id| (view.job(id).unwrap(), start(id))).collect()
}
