//! Random walks through gates: after each step the book follows from the jobs, saved facts give
//! the same state, and nobody waits at a gate for which there is room.

use crate::account::Budget;
use crate::cluster::Tenant;
use crate::event::{Event, Outcome};
use crate::gate::Gate;
use crate::id::{JobId, NodeId, TenantId, WindowId};
use crate::job::Phase;
use crate::random::Random;
use crate::reason::Reason;
use crate::testkit::*;
use crate::units::Span;
use crate::window::Window;

struct Walk {
    world: World,
    random: Random,
    at: u64,
}

impl Walk {
    fn below(&mut self, most: u64) -> u64 {
        self.random.bits() % most
    }

    /// A job with some of: a size, a tenant, jobs to come after, an array.
    fn spec(&mut self) -> String {
        let next = u64::from(self.world.state().next_job().0);
        let mut text = format!("gpus {} tenant {}", self.below(4), self.below(2));
        for _ in 0..self.below(3) {
            let when = ["finished", "over", "failed", "started"][self.below(4) as usize];
            if next > 0 {
                let recent = next - 1 - self.below(next.min(6));
                text += &format!(" after {recent}:{when}");
            }
        }
        if self.below(5) == 0 {
            text += &format!(" window {}", self.below(3));
        }
        if self.below(3) == 0 && next > 8 {
            text += &format!(" array {}:{}", next / 8 * 8, 1 + next / 8 % 3);
        }
        text
    }

    fn some_job(&mut self) -> JobId {
        let jobs: Vec<JobId> = self.world.state().jobs().map(|job| job.id).collect();
        match jobs.is_empty() {
            true => JobId(0),
            false => jobs[self.below(jobs.len() as u64) as usize],
        }
    }

    fn fact(&mut self) -> Event {
        let job = self.some_job();
        let lease = self.world.state().leases().next().map(|lease| lease.id.0);
        match self.below(16) {
            0..=3 => {
                let id = self.world.state().next_job().0;
                let text = self.spec();
                submit(id, asks(&text))
            }
            4 => cancel(job.0),
            5 => held(job.0, true),
            6 | 7 => held(job.0, false),
            8 => Event::Paused { job, until: secs(self.at + self.random.bits() % 5) },
            9 => {
                let gpus_max = [None, Some(0), Some(2), Some(5)][self.below(4) as usize];
                let tenant = TenantId(self.below(2) as u32);
                let budget = (self.below(2) == 0).then(|| Budget {
                    gpu_time: Span::from_secs(self.below(20)),
                    every: Span::from_secs(1 + self.below(30)),
                });
                let spec = Tenant { gpus_max, budget, ..Tenant::named("t") };
                Event::TenantChanged { tenant, spec }
            }
            11 => {
                let from = secs(self.at + self.below(200));
                let until = from + Span::from_secs(1 + self.below(100));
                let nodes = Box::new([NodeId(self.below(2) as u32)]);
                let spec = Window { nodes, from, until, evicts: self.below(2) == 0 };
                Event::WindowSet { window: WindowId(self.below(3) as u32), spec }
            }
            12 => Event::WindowEnded { window: WindowId(self.below(3) as u32) },
            14 => kept_back(job.0, true),
            15 => kept_back(job.0, false),
            10 => node_up(self.world.state().nodes().len() as u32, 4),
            _ => match lease {
                Some(lease) => {
                    let outcomes = [Outcome::Finished, Outcome::Failed, Outcome::Interrupted];
                    stopped(lease, outcomes[self.below(3) as usize], 0, 0)
                }
                None => Event::RoundEnded,
            },
        }
    }

    /// One that waits or is held is found to run where nobody is.
    fn find(&mut self) {
        let (job, state) = (self.some_job(), self.world.state());
        let node = NodeId((self.at % 2) as u32);
        let Some(spec) = state.job(job).map(|job| job.spec.clone()) else { return };
        let gpus = spec.gangs[0].demand.gpu.whole();
        let Some(devices) = state.capacity().untouched(node, gpus) else { return };
        let devices: Vec<u32> = devices.into_iter().map(|device| device.0).collect();
        let fact = adopted(state.next_lease().0, job.0, whole(node.0, &devices), 0);
        if crate::border::check(state, &fact).is_ok() {
            self.world.step(self.at, vec![fact], vec![]);
            assert!(self.world.job(job.0).gates.is_open());
        }
    }

    /// Starts whoever fits the first node with room, and sets some aside.
    fn decide() -> Act {
        Act::new(|view, plan| {
            for id in view.pending() {
                if id.0 % 7 == 3 {
                    plan.turn_away(*id, Reason::NoSuchModel).unwrap();
                    continue;
                }
                let spec = &view.job(*id).unwrap().spec;
                let gang = &spec.gangs[0];
                let nodes = view.nodes().iter();
                let mut parts =
                    nodes.filter_map(|node| plan.free().fit(node.id, 0, &gang.demand, 1));
                if let Some(part) = parts.next() {
                    let placement = crate::placement::Placement { parts: vec![part] };
                    plan.start(*id, placement).unwrap();
                }
            }
        })
    }

    /// Nobody is held by a limit that it would not exceed.
    fn check_limits(&self) {
        let state = self.world.state();
        for job in state.jobs() {
            let spent = state.is_spent(job.spec.tenant);
            assert!(spent || !job.gates.has(Gate::Budget), "{:?} has a budget", job.id);
            let waits = job.phase == Phase::Pending;
            let paid = job.spec.gpu_milli() == 0 || !spent;
            assert!(paid || !waits, "{:?} is let through without a budget", job.id);
            let window = job.spec.gangs[0].demand.window;
            let goes_on = |id| state.window(id).is_some_and(|window| window.from <= state.now());
            let inside = window.is_none_or(goes_on);
            assert!(inside || !waits, "{:?} is let through outside its window", job.id);
            assert!(!inside || !job.gates.has(Gate::Window), "{:?} is held inside", job.id);
        }
        for tenant in 0..2 {
            let most = state.tenant(TenantId(tenant)).gpus_max.map(|gpus| u64::from(gpus) * 1000);
            let held = |job: &&crate::job::Job| {
                job.spec.tenant.0 == tenant
                    && job.phase == Phase::Held
                    && job.gates.has(Gate::Quota)
            };
            let first = state.jobs().find(held);
            if let (Some(first), used) = (first, state.let_through(TenantId(tenant))) {
                let more = first.spec.gpu_milli();
                assert!(most.is_some_and(|most| used + more > most), "{:?} has room", first.id);
            }
        }
        for job in state.jobs().filter(|job| job.gates.has(Gate::Array)) {
            let limit = job.spec.array.unwrap();
            let same = |other: &&crate::job::Job| {
                other.spec.array.is_some_and(|other| other.first == limit.first)
            };
            let through = state.jobs().filter(same).filter(|other| other.gates.is_open()).count();
            assert!(through as u32 >= limit.most, "{:?} has room in its array", job.id);
        }
    }
}

#[test]
fn any_sequence_of_facts_leaves_the_gates_consistent() {
    for seed in 0..12 {
        let world = World::of("4 | 2");
        let mut walk = Walk { world, random: Random::new(seed), at: 0 };
        walk.world.set_abilities(0, |abilities| abilities.grows = true);
        for _ in 0..120 {
            walk.at += walk.below(3);
            let count = 1 + walk.below(2);
            let facts: Vec<Event> = (0..count).map(|_| walk.fact()).collect();
            // Two submissions of one step would have one number.
            let submissions = |event: &&Event| matches!(event, Event::Submitted { .. });
            if facts.iter().filter(submissions).count() > 1 {
                continue;
            }
            let started = |lease: &crate::placement::Lease| Event::Started { lease: lease.id };
            let waiting = walk.world.state().leases().filter(|lease| lease.started.is_none());
            let confirmed: Vec<Event> = waiting.map(started).collect();
            walk.world.step(walk.at, confirmed, vec![]);
            walk.world.step(walk.at, facts, vec![Walk::decide()]);
            walk.check_limits();
            walk.find();
            walk.check_limits();
        }
        walk.world.check_log();
    }
}
