//! The world of the original: whole steps, and rounds that end with the last of them.
//!
//! All that happens in a round is told at its end. Who finished earlier finished earlier, though:
//! completion times are kept here, not in the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use hostler_core::cluster::Share;
use hostler_core::decision::Decision;
use hostler_core::event::{Event, Outcome};
use hostler_core::executor::Executor;
use hostler_core::id::{DeviceId, JobId, LeaseId, ModelId, NodeId, TenantId};
use hostler_core::job::JobSpec;
use hostler_core::placement::Placement;
use hostler_core::target::Team;
use hostler_core::units::{Span, Time};

use super::exact::Exact;
use super::{GavelJob, Options, ROUND_SECS, Workload};

/// Steps per second of what does not move at all: the round then takes as good as for ever.
const SLOWEST: f64 = 1e-12;

/// Sums over a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Seconds from arrival to completion; not a number while the job is not done.
    pub(super) jcts: Vec<f64>,
    pub(super) clock: f64,
    /// GPU seconds.
    pub(super) busy: f64,
    pub(super) cost: f64,
    pub(super) rounds: u64,
    /// Jobs that had run in the round before and were not done.
    pub(super) continued: u64,
    /// Those of them that went on where they were.
    pub(super) extended: u64,
}

/// Progress of one job.
#[derive(Clone, Copy, Debug)]
struct Progress {
    steps_left: u64,
    steps_done: u64,
    /// Steps per second that reference work refers to.
    reference: f64,
}

/// A job on its GPUs.
#[derive(Clone, Debug)]
struct RoundStay {
    job: JobId,
    placement: Arc<Placement>,
    model: ModelId,
    /// Steps of this stay.
    steps: u64,
    /// Seconds of this stay without work.
    idle: f64,
}

/// What a stay does in one round.
struct Leg {
    lease: LeaseId,
    job: JobId,
    steps: u64,
    end: f64,
    partner: Option<JobId>,
}

/// The world.
pub(super) struct RoundWorld {
    workload: Workload,
    exact: Arc<Exact>,
    prices: [f64; 3],
    next_arrival: usize,
    jobs: Vec<Progress>,
    stays: BTreeMap<LeaseId, RoundStay>,
    /// Where each job, or pair of jobs, was in the last round, by job.
    last: Vec<(Team, Arc<Placement>)>,
    /// Jobs that are done.
    done: usize,
    /// Answers to decisions, told at the same instant.
    answers: Vec<Event>,
    opened: bool,
    /// When the last round ended.
    last_end: f64,
    /// Whether nobody ran in the last round and nobody will arrive.
    stuck: bool,
    tally: Tally,
}

impl RoundWorld {
    pub(super) fn new(
        workload: Workload,
        exact: Arc<Exact>,
        rows: &[GavelJob],
        options: &Options,
    ) -> RoundWorld {
        let progress = |(row, (_, spec)): (&GavelJob, &(Time, Arc<JobSpec>))| {
            let key = spec.profile.expect("every job has a profile");
            let profile = &workload.site.physics.profiles[&key];
            let reference = profile.reference(row.gpus).steps_per_sec();
            Progress { steps_left: row.steps, steps_done: 0, reference }
        };
        let jobs = rows.iter().zip(&workload.jobs).map(progress).collect();
        // Time begins with the first job.
        let clock = rows.first().map_or(0.0, |row| row.arrival);
        let tally = Tally { jcts: vec![f64::NAN; rows.len()], clock, ..Tally::default() };
        RoundWorld {
            exact,
            prices: options.prices,
            next_arrival: 0,
            jobs,
            stays: BTreeMap::new(),
            last: Vec::new(),
            done: 0,
            answers: Vec::new(),
            opened: false,
            last_end: 0.0,
            stuck: false,
            tally,
            workload,
        }
    }

    pub(super) fn tally(self) -> Tally {
        self.tally
    }

    fn now(&self) -> Time {
        Time((self.tally.clock * 1e6).round() as u64)
    }

    /// The catalogue and the nodes, as facts.
    fn opening(&self) -> Vec<Event> {
        let site = &self.workload.site;
        let mut events = Vec::new();
        for (at, spec) in site.models.iter().enumerate() {
            events.push(Event::ModelAdded { model: ModelId(at as u32), spec: spec.clone() });
        }
        for (at, spec) in site.tenants.iter().enumerate() {
            events.push(Event::TenantAdded { tenant: TenantId(at as u32), spec: spec.clone() });
        }
        for (at, spec) in site.nodes.iter().enumerate() {
            events.push(Event::NodeUp { node: NodeId(at as u32), spec: spec.clone() });
        }
        for (key, profile) in &site.physics.profiles {
            if profile.is_sane() {
                events.push(Event::Profiled { key: *key, profile: profile.clone() });
            }
        }
        events
    }

    fn submit_arrived(&mut self, events: &mut Vec<Event>) {
        while self.exact.arrival(self.next_arrival).is_some_and(|at| at <= self.tally.clock) {
            let job = JobId(self.next_arrival as u32);
            let spec = Arc::clone(&self.workload.jobs[self.next_arrival].1);
            events.push(Event::Submitted { job, spec });
            self.next_arrival += 1;
        }
    }

    /// Steps per second of a stay, beside whoever shares its GPUs.
    fn rate(&self, stay: &RoundStay, partner: Option<JobId>) -> f64 {
        let spec = &self.workload.jobs[stay.job.index()].1;
        let profiles = &self.workload.site.physics.profiles;
        let profile = &profiles[&spec.profile.expect("every job has a profile")];
        let (model, gpus) = (stay.model, spec.gpus());
        match partner {
            None => self.exact.rates(stay.job.index())[model.index()],
            Some(other) => {
                let other = self.workload.jobs[other.index()].1.profile;
                let pair = other.and_then(|other| profile.pair_rates(other, model, gpus));
                pair.map_or(0.0, |(own, _)| own)
            }
        }
    }

    /// Who shares the GPUs of a stay. A GPU that is held whole is held by nobody else.
    fn partner(&self, stay: &RoundStay) -> Option<JobId> {
        let mut slices = stay.placement.parts.iter().flat_map(|part| &part.slices);
        if slices.all(|slice| slice.share == Share::Whole) {
            return None;
        }
        let shares = |other: &&RoundStay| {
            other.job != stay.job && devices(&other.placement).eq(devices(&stay.placement))
        };
        self.stays.values().find(shares).map(|other| other.job)
    }

    /// Plays the round: everybody does the steps that fit in.
    fn play(&mut self, events: &mut Vec<Event>) {
        self.count_extensions();
        let legs = self.legs();
        let mut reports = Vec::new();
        for leg in &legs {
            // An idle phase before the round is paid for with it, as in the original.
            self.pay(leg, leg.end - self.last_end);
            self.tally.clock = self.tally.clock.max(leg.end);
            let progress = &mut self.jobs[leg.job.index()];
            progress.steps_left -= leg.steps;
            progress.steps_done += leg.steps;
            let (left, reference) = (progress.steps_left, progress.reference);
            if left == 0 {
                self.finish(leg, events);
            } else {
                let stay = self.stays.get_mut(&leg.lease).expect("it plays");
                stay.steps += leg.steps;
                let done = Span((stay.steps as f64 / reference * 1e6).round() as u64);
                reports.push((leg, done));
            }
        }
        self.tally.rounds += 1;
        self.last_end = self.tally.clock;
        for (leg, done) in reports {
            // Whoever is done early waits for the end of the round.
            let stay = self.stays.get_mut(&leg.lease).expect("it plays");
            stay.idle += self.tally.clock - leg.end;
            let idle = Span((stay.idle * 1e6).round() as u64);
            events.push(Event::Progress { lease: leg.lease, done, idle });
        }
    }

    /// What everybody does in the round that begins. Two that share end together.
    fn legs(&self) -> Vec<Leg> {
        let mut legs: Vec<Leg> =
            self.stays.iter().map(|(lease, stay)| self.leg(*lease, stay)).collect();
        if legs.iter().all(|leg| leg.partner.is_none()) {
            return legs;
        }
        let ends: BTreeMap<JobId, f64> = legs.iter().map(|leg| (leg.job, leg.end)).collect();
        for leg in &mut legs {
            let other = leg.partner.and_then(|job| ends.get(&job));
            leg.end = other.map_or(leg.end, |end| leg.end.max(*end));
        }
        legs
    }

    /// What a stay does in the round that begins, by itself.
    fn leg(&self, lease: LeaseId, stay: &RoundStay) -> Leg {
        let partner = self.partner(stay);
        let rate = self.rate(stay, partner);
        let left = self.jobs[stay.job.index()].steps_left;
        let steps = ((rate * ROUND_SECS).floor() as u64).clamp(1, left);
        let end = self.tally.clock + steps as f64 / rate.max(SLOWEST);
        Leg { lease, job: stay.job, steps, end, partner }
    }

    /// Counts the time and the money of the GPUs of a stay. Two that share keep them busy once,
    /// and pay for them twice.
    fn pay(&mut self, leg: &Leg, secs: f64) {
        let stay = &self.stays[&leg.lease];
        let gpus = devices(&stay.placement).count() as f64;
        if leg.partner.is_none_or(|other| leg.job < other) {
            self.tally.busy += secs * gpus;
        }
        self.tally.cost += self.prices[stay.model.index()] * secs / 3600.0 * gpus;
    }

    fn finish(&mut self, leg: &Leg, events: &mut Vec<Event>) {
        self.stays.remove(&leg.lease);
        self.last.retain(|(team, _)| !team.has(leg.job));
        self.done += 1;
        let (lease, job) = (leg.lease, leg.job.index());
        let arrival = self.exact.arrival(job).expect("a job of the trace");
        self.tally.jcts[job] = leg.end - arrival;
        let done = self.work_done(leg.job);
        events.push(Event::Stopped { lease, outcome: Outcome::Finished, done, lost: Span::ZERO });
    }

    fn work_done(&self, job: JobId) -> Span {
        let progress = &self.jobs[job.index()];
        Span((progress.steps_done as f64 / progress.reference * 1e6).round() as u64)
    }

    fn count_extensions(&mut self) {
        let team = |stay: &RoundStay| match self.partner(stay) {
            Some(other) => Team::pair(stay.job, other),
            None => Team::alone(stay.job),
        };
        let stays = self.stays.values();
        let mut now: Vec<_> = stays.map(|stay| (team(stay), Arc::clone(&stay.placement))).collect();
        // Both of a pair are on the same GPUs.
        now.sort_unstable_by_key(|(team, _)| *team);
        now.dedup_by_key(|(team, _)| *team);
        for (team, before) in &self.last {
            let at = now.binary_search_by_key(team, |(team, _)| *team);
            let same = at.is_ok_and(|at| devices(&now[at].1).eq(devices(before)));
            self.tally.continued += 1;
            self.tally.extended += u64::from(same);
        }
        self.last = now;
    }
}

impl RoundWorld {
    /// The next facts, all of one instant.
    fn advance(&mut self) -> Option<(Time, Vec<Event>)> {
        let mut events = std::mem::take(&mut self.answers);
        if !events.is_empty() {
            return Some((self.now(), events));
        }
        if !std::mem::replace(&mut self.opened, true) {
            events = self.opening();
            self.submit_arrived(&mut events);
            return Some((self.now(), events));
        }
        if self.done == self.tally.jcts.len() {
            return None;
        }
        match (self.stays.is_empty(), self.exact.arrival(self.next_arrival)) {
            (false, _) => {
                self.stuck = false;
                self.play(&mut events);
            }
            (true, Some(arrival)) => self.tally.clock = self.tally.clock.max(arrival),
            (true, None) => {
                // A solution was of no help: nothing ever will be.
                if std::mem::replace(&mut self.stuck, true) {
                    return None;
                }
            }
        }
        self.submit_arrived(&mut events);
        events.push(Event::RoundEnded);
        Some((self.now(), events))
    }
}

impl Executor for RoundWorld {
    fn next(&mut self, _: Option<Time>) -> Option<(Time, Vec<Event>)> {
        let facts = self.advance();
        self.exact.tell(self.tally.clock, self.stuck);
        facts
    }

    fn submit(&mut self, _: Time, decision: &Decision) {
        match decision {
            Decision::Start { lease, job, placement, .. } => {
                let part = placement.parts.first().expect("every job has GPUs");
                let model = self.workload.site.nodes[part.node.index()].gpu_model;
                let model = model.expect("every node has GPUs");
                let placement = Arc::clone(placement);
                self.stays
                    .insert(*lease, RoundStay { job: *job, placement, model, steps: 0, idle: 0.0 });
                self.answers.push(Event::Started { lease: *lease });
            }
            Decision::Stop { lease, .. } => {
                let Some(stay) = self.stays.remove(lease) else { return };
                let done = self.work_done(stay.job);
                let (lease, lost) = (*lease, Span::ZERO);
                self.answers.push(Event::Stopped {
                    lease,
                    outcome: Outcome::Interrupted,
                    done,
                    lost,
                });
            }
            Decision::Reject { .. }
            | Decision::SetAside { .. }
            | Decision::Resize { .. }
            | Decision::BeginRound
            | Decision::WeighPast { .. }
            | Decision::Repartition { .. }
            | Decision::SetPower { .. }
            | Decision::Hold { .. }
            | Decision::Solve { .. }
            | Decision::Turns { .. }
            | Decision::WakeAt { .. } => {}
        }
    }
}

fn devices(placement: &Placement) -> impl Iterator<Item = DeviceId> {
    placement.parts.iter().flat_map(|part| &part.slices).map(|slice| slice.device)
}
