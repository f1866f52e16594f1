//! Free resources, counted by hand, and every way to divide a job among nodes.

use hostler_core::decision::Decision;
use hostler_core::id::JobId;
use hostler_core::job::{Gang, Job, Locality};
use hostler_core::placement::{Part, Placement, Slice};
use hostler_core::plan::Plan;
use hostler_core::units::{Span, Time};
use hostler_core::view::View;

/// What is free on one node: thousandths of each of its GPUs and of its cores, and memory.
#[derive(Clone, Debug)]
struct FreeNode {
    gpus: Vec<u64>,
    cpu: u64,
    mem: u64,
}

/// What a job takes of one node: thousandths of GPUs by their place there, cores and memory.
#[derive(Clone, Debug)]
pub struct TakenThere {
    node: usize,
    gpus: Vec<(usize, u64)>,
    cpu: u64,
    mem: u64,
}

/// What a job takes, by node.
pub type Taken = Vec<TakenThere>;

/// What is free on every node.
#[derive(Clone)]
pub struct FreeNodes {
    free: Vec<FreeNode>,
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
        let whole = view.nodes().iter().map(|node| FreeNode {
            gpus: vec![1000; node.spec.gpus as usize],
            cpu: node.spec.cpu.0.into(),
            mem: node.spec.mem.0.into(),
        });
        let racks = view.nodes().iter().map(|node| node.spec.rack);
        let mut room = FreeNodes { free: whole.collect(), racks: racks.collect() };
        for lease in view.leases() {
            room.take(&taken(view, &lease.placement));
        }
        room
    }

    pub fn take(&mut self, taken: &Taken) {
        let less = |free: &mut u64, more: u64| {
            *free = free.checked_sub(more).expect("what is taken is free");
        };
        for there in taken {
            let free = &mut self.free[there.node];
            there.gpus.iter().for_each(|(gpu, part)| less(&mut free.gpus[*gpu], *part));
            less(&mut free.cpu, there.cpu);
            less(&mut free.mem, there.mem);
        }
    }

    pub fn give_back(&mut self, taken: &Taken) {
        for there in taken {
            let free = &mut self.free[there.node];
            there.gpus.iter().for_each(|(gpu, part)| free.gpus[*gpu] += part);
            free.cpu += there.cpu;
            free.mem += there.mem;
        }
    }

    /// Whether a role fits.
    pub fn fits(&self, gang: &Gang) -> bool {
        !self.divisions(gang, true).is_empty()
    }

    /// Tasks of a role that nodes hold, each by itself.
    pub fn slots(&self, gang: &Gang) -> u32 {
        let held = |(at, node): (usize, &FreeNode)| {
            (1..=gang.count).take_while(|tasks| node.hold(at, gang, *tasks).is_some()).count()
        };
        self.free.iter().enumerate().map(held).sum::<usize>() as u32
    }

    /// All divisions of a role among the nodes, on some of the GPUs of each; with `one`, at most
    /// one of them.
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
            let Some(there) = self.free[node].hold(node, gang, tasks) else { break };
            so_far.push(there);
            self.divide(gang, node + 1, left - tasks, so_far, one, found);
            so_far.pop();
        }
    }

    fn is_near(&self, gang: &Gang, taken: &Taken) -> bool {
        match gang.demand.locality {
            Locality::Node | Locality::Island => taken.len() <= 1,
            Locality::Rack => {
                taken.windows(2).all(|two| self.racks[two[0].node] == self.racks[two[1].node])
            }
            Locality::Any | Locality::Apart => true,
        }
    }
}

impl FreeNode {
    /// So many tasks of a role here, on the first GPUs that will do; none where they do not fit.
    /// Those that are whole are alike, and as many parts fit whichever of them come first.
    fn hold(&self, node: usize, gang: &Gang, tasks: u32) -> Option<TakenThere> {
        let (demand, tasks) = (&gang.demand, u64::from(tasks));
        let (cpu, mem) = (tasks * u64::from(demand.cpu.0), tasks * u64::from(demand.mem.0));
        let asked = u64::from(demand.gpu.0);
        let (part, mut left) = match demand.gpu.is_fraction() {
            true => (asked, tasks),
            false => (1000, tasks * asked / 1000),
        };
        let mut gpus = Vec::new();
        for (gpu, free) in self.gpus.iter().enumerate() {
            let count = (free / part).min(left);
            gpus.extend((0..count).map(|_| (gpu, part)));
            left -= count;
        }
        let fits = left == 0 && cpu <= self.cpu && mem <= self.mem;
        fits.then_some(TakenThere { node, gpus, cpu, mem })
    }
}

/// What a placement takes.
pub fn taken(view: &View<'_>, placement: &Placement) -> Taken {
    let there = |part: &Part| {
        let first = view.node(part.node).unwrap().first_device;
        let held = |slice: &Slice| {
            ((slice.device.0 - first.0) as usize, u64::from(slice.share.compute(0).0))
        };
        TakenThere {
            node: part.node.index(),
            gpus: part.slices.iter().map(held).collect(),
            cpu: part.cpu.0.into(),
            mem: part.mem.0.into(),
        }
    };
    placement.parts.iter().map(there).collect()
}

/// Who runs, and until when that is believed.
pub fn running(view: &View<'_>) -> Vec<Stay> {
    let now = view.now();
    let stays = view.leases().map(|lease| {
        let late = Span(now.since(lease.since).0 / 10).max(Span::from_secs(1));
        let end = if lease.expected_end > now { lease.expected_end } else { now + late };
        Stay { end, taken: taken(view, &lease.placement) }
    });
    stays.collect()
}

/// When a job that starts now is believed to end; never, where nobody says.
pub fn end_of(view: &View<'_>, job: &Job, start: Time) -> Time {
    assert!(job.ledger.first_start.is_none() && view.now() <= start, "nobody is stopped here");
    job.estimate.map_or(Time::NEVER, |estimate| start + estimate.run.max(Span(1)))
}

/// Those who wait, in order; and where the plan starts them, if it does.
pub fn answers<'a>(view: &View<'a>, plan: &Plan<'_>) -> Vec<(&'a Job, Option<Taken>)> {
    let start = |id: JobId| {
        plan.decisions().iter().find_map(|decision| match decision {
            Decision::Start { job, placement, .. } if *job == id => Some(taken(view, placement)),
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
