//! A round of the original: the order, and its way to place jobs.
//!
//! Jobs that run stay where they are. One that does not run takes from every node, in order, up to
//! as many GPUs as it asks for, and is placed if it ever has just as many: three free on one node
//! and four on the next are of no use to a job of four. Where that fails, running jobs are
//! suspended from the end of the order, one by one, until it succeeds; where it never does, nobody
//! behind is looked at, and who was suspended on the way stays suspended.

use hostler_core::cluster::Share;
use hostler_core::decision::StopHow;
use hostler_core::id::{DeviceId, JobId, NodeId};
use hostler_core::job::Job;
use hostler_core::placement::{Part, Placement, Slice};
use hostler_core::plan::Plan;
use hostler_core::policy::{Cadence, Policy, Wake};
use hostler_core::units::{Mib, Milli, Span};
use hostler_core::view::View;

use super::table::BloxJob;
use super::{GPUS_PER_NODE, ROUND_SECS};

/// Who comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BloxPolicy {
    /// Earliest arrival.
    Fifo,
    /// Least time that a job ran; how many GPUs it had does not count.
    Las,
    /// Least time left.
    Srtf,
}

/// A job that is not over; times in seconds.
#[derive(Clone, Debug)]
struct Active {
    job: usize,
    ran: u64,
    /// GPUs that it has; none while it does not run.
    gpus: Vec<u32>,
}

/// The policy.
pub(super) struct Rounds {
    policy: BloxPolicy,
    rows: Vec<BloxJob>,
    /// Jobs that are not over, in the order of the last round.
    active: Vec<Active>,
    entered: usize,
    /// Free GPUs by node, ascending.
    free: Vec<Vec<u32>>,
    to_start: Vec<(JobId, Placement)>,
}

impl Rounds {
    pub(super) fn new(policy: BloxPolicy, rows: &[BloxJob], gpus: u32) -> Rounds {
        let node = |first: u32| (first..first + GPUS_PER_NODE).collect();
        let free = (0..gpus).step_by(GPUS_PER_NODE as usize).map(node).collect();
        let (active, to_start) = (Vec::new(), Vec::new());
        Rounds { policy, rows: rows.to_vec(), active, entered: 0, free, to_start }
    }

    /// Takes in the round that went by: who ran, who ended and who came.
    fn take_in(&mut self, view: &View<'_>) {
        let Rounds { active, free, .. } = self;
        active.retain_mut(|job| {
            job.ran += if job.gpus.is_empty() { 0 } else { ROUND_SECS };
            let over = view.job(id_of(job.job)).is_none();
            if over {
                give_back(free, &mut job.gpus);
            }
            !over
        });
        for job in view.jobs_from(id_of(self.entered)) {
            self.active.push(Active { job: job.id.index(), ran: 0, gpus: Vec::new() });
            self.entered = job.id.index() + 1;
        }
    }

    fn sort(&mut self) {
        let Rounds { policy, rows, active, .. } = self;
        active.sort_unstable_by_key(|job| {
            let row = &rows[job.job];
            let key = match policy {
                BloxPolicy::Fifo => row.arrival,
                BloxPolicy::Las => job.ran,
                BloxPolicy::Srtf => row.duration - job.ran.min(row.duration),
            };
            (key, job.job)
        });
    }

    /// Places jobs that do not run, in order.
    fn place(&mut self, view: &View<'_>, plan: &mut Plan<'_>) {
        for at in 0..self.active.len() {
            if !self.active[at].gpus.is_empty() {
                continue;
            }
            let wanted = self.rows[self.active[at].job].gpus as usize;
            let mut last = self.active.len();
            while !take(&mut self.free, wanted, &mut self.active[at].gpus) {
                let victim = (at + 1..last).rev().find(|at| !self.active[*at].gpus.is_empty());
                let Some(victim) = victim else { return };
                last = victim;
                self.suspend(victim, view, plan);
            }
            let Active { job, gpus, .. } = &self.active[at];
            self.to_start.push((id_of(*job), placement(gpus)));
        }
    }

    fn suspend(&mut self, at: usize, view: &View<'_>, plan: &mut Plan<'_>) {
        let Active { job, gpus, .. } = &mut self.active[at];
        give_back(&mut self.free, gpus);
        let lease = view.job(id_of(*job)).and_then(Job::lease).expect("who has GPUs runs");
        plan.stop(lease, StopHow::Checkpoint).expect("every job can be saved");
    }
}

impl Policy for Rounds {
    fn cadence(&self) -> Cadence {
        Cadence::Rounds(Span::from_secs(ROUND_SECS))
    }

    fn decide(&mut self, view: &View<'_>, wake: Wake, plan: &mut Plan<'_>) {
        if wake == Wake::Round {
            plan.begin_round();
            self.take_in(view);
            self.sort();
            self.place(view, plan);
        }
        // GPUs of those who were suspended are free at the next question of this very second.
        self.to_start.retain(|(job, placement)| {
            let waits = view.job(*job).is_some_and(|job| job.lease().is_none());
            !(waits && plan.has_room(placement) && plan.start(*job, placement.clone()).is_ok())
        });
    }
}

fn id_of(job: usize) -> JobId {
    JobId(job as u32)
}

/// Takes GPUs from nodes in order, up to as many as wanted from each; whether it ever was just as
/// many. Otherwise nothing is taken.
fn take(free: &mut [Vec<u32>], wanted: usize, taken: &mut Vec<u32>) -> bool {
    let mut found = 0;
    for end in 0..free.len() {
        found += free[end].len().min(wanted);
        if found > wanted {
            return false;
        }
        if found == wanted {
            let nodes = free[..=end].iter_mut();
            nodes.for_each(|node| taken.extend(node.drain(..node.len().min(wanted))));
            return true;
        }
    }
    false
}

fn give_back(free: &mut [Vec<u32>], gpus: &mut Vec<u32>) {
    for gpu in gpus.drain(..) {
        let node = &mut free[(gpu / GPUS_PER_NODE) as usize];
        let at = node.partition_point(|other| *other < gpu);
        node.insert(at, gpu);
    }
}

fn placement(gpus: &[u32]) -> Placement {
    let nodes = gpus.chunk_by(|one, other| one / GPUS_PER_NODE == other / GPUS_PER_NODE);
    let slice = |gpu: &u32| Slice { device: DeviceId(*gpu), share: Share::Whole };
    let part = |gpus: &[u32]| Part {
        gang: 0,
        node: NodeId(gpus[0] / GPUS_PER_NODE),
        tasks: gpus.len() as u32,
        cpu: Milli::ZERO,
        mem: Mib(0),
        slices: gpus.iter().map(slice).collect(),
    };
    Placement { parts: nodes.map(part).collect() }
}
