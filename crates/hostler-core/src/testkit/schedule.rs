//! A world that carries decisions out at once, for schedules as text.
//!
//! Every job runs for as long as its user says, at full speed; what it did before a stop is safe.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::facts::{started, stopped, submit};
use super::spec::asks;
use super::world::World;
use crate::decision::Decision;
use crate::event::{Event, Outcome};
use crate::id::{JobId, LeaseId};
use crate::policy::Policy;
use crate::predict::UserEstimate;
use crate::units::{Span, Time};

/// Jobs on their way through a policy.
pub(crate) struct Schedule {
    pub(crate) world: World,
    /// Makes the policy anew before each question, where that is wanted.
    rebuild: Option<Box<dyn Fn() -> Box<dyn Policy>>>,
    arrivals: Vec<(u64, String)>,
    running: BTreeMap<LeaseId, (JobId, Time)>,
    done: BTreeMap<JobId, Span>,
    stays: BTreeMap<JobId, Vec<String>>,
    /// All decisions with their time.
    pub(crate) decisions: Vec<(Time, Decision)>,
}

impl Schedule {
    pub(crate) fn new(cluster: &str, policy: impl Policy + 'static) -> Schedule {
        let mut world = World::with_policy(cluster, policy);
        world.engine.replace_predictor(Box::new(UserEstimate));
        Schedule {
            world,
            rebuild: None,
            arrivals: Vec::new(),
            running: BTreeMap::new(),
            done: BTreeMap::new(),
            stays: BTreeMap::new(),
            decisions: Vec::new(),
        }
    }

    /// Puts a policy in place before each question that remembers nothing.
    pub(crate) fn forgetful(mut self, make: impl Fn() -> Box<dyn Policy> + 'static) -> Schedule {
        self.rebuild = Some(Box::new(make));
        self
    }

    /// Jobs, one a line, each with the second at which it comes: `5 gpus 2 lasts 10`.
    pub(crate) fn jobs(mut self, text: &str) -> Schedule {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (at, spec) = line.split_once(' ').unwrap();
            self.arrivals.push((at.parse().unwrap(), spec.to_owned()));
        }
        self
    }

    /// Runs until nothing more happens; the answer is a line for each job: when it ran.
    pub(crate) fn run(&mut self) -> String {
        let mut facts = Vec::new();
        let mut now = Time::ZERO;
        let mut arrived = 0;
        loop {
            if facts.is_empty() {
                let arrival = self.arrivals.get(arrived).map(|(at, _)| Time::from_secs(*at));
                let end = self.running.keys().map(|lease| self.end(*lease)).min();
                let times = [arrival, end, self.world.engine.wake()];
                let Some(next) = times.into_iter().flatten().min() else { break };
                now = next;
                facts = self.ends_at(now);
                while let Some((_, spec)) =
                    self.arrivals.get(arrived).filter(|(at, _)| Time::from_secs(*at) == now)
                {
                    facts.push(submit(arrived as u32, asks(spec)));
                    arrived += 1;
                }
            }
            if let Some(make) = &self.rebuild {
                self.world.engine.replace_policy(make());
            }
            let decisions = self.world.step_at(now, std::mem::take(&mut facts), vec![]);
            facts = decisions.iter().filter_map(|decision| self.carry_out(now, decision)).collect();
            self.decisions.extend(decisions.into_iter().map(|decision| (now, decision)));
            assert!(self.decisions.len() < 100_000, "the schedule never ends");
        }
        self.world.check_log();
        self.text()
    }

    fn end(&self, lease: LeaseId) -> Time {
        let (job, since) = self.running[&lease];
        let run = self.world.job(job.0).spec.user_estimate.unwrap_or(Span::from_secs(1));
        since + run.saturating_sub(self.done.get(&job).copied().unwrap_or_default())
    }

    fn ends_at(&mut self, now: Time) -> Vec<Event> {
        let over: Vec<LeaseId> =
            self.running.keys().copied().filter(|lease| self.end(*lease) <= now).collect();
        let mut facts = Vec::new();
        for lease in over {
            let done = self.leave(lease, now).0 / 1_000_000;
            facts.push(stopped(lease.0, Outcome::Finished, done, 0));
        }
        facts
    }

    /// Ends a stay; the answer is all that its job has done.
    fn leave(&mut self, lease: LeaseId, now: Time) -> Span {
        let (job, since) = self.running.remove(&lease).expect("it runs");
        let done = self.done.entry(job).or_default();
        *done += now.since(since);
        let stays = self.stays.entry(job).or_default();
        *stays.last_mut().unwrap() += &format!("{now}");
        *done
    }

    fn carry_out(&mut self, now: Time, decision: &Decision) -> Option<Event> {
        match decision {
            Decision::Start { lease, job, .. } => {
                self.running.insert(*lease, (*job, now));
                self.stays.entry(*job).or_default().push(format!("{now}.."));
                Some(started(lease.0))
            }
            Decision::Stop { lease, .. } => {
                let done = self.leave(*lease, now);
                let lost = Span::ZERO;
                Some(Event::Stopped { lease: *lease, outcome: Outcome::Interrupted, done, lost })
            }
            _ => None,
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (job, stays) in &self.stays {
            writeln!(text, "{job:?} {}", stays.join(" ")).unwrap();
        }
        text
    }
}
