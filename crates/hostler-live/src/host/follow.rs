//! What follows from what happened: rows of jobs that changed, and leases that ended.

use hostler_core::cluster::Health;
use hostler_core::decision::StopWhy;
use hostler_core::id::{JobId, LeaseId};
use hostler_core::job::{Ending, Job, Phase};
use hostler_core::placement::{Lease, Part};
use hostler_core::reason::Reason;
use hostler_core::state::{Change as JournalChange, ClusterState};
use hostler_core::units::Time;
use hostler_core::watch::Watch;

use super::{Change, Changed, Desk, Effect};
use crate::job::JobState;
use crate::notice;
use crate::store::{JobRow, Row, Start, StartEnd, starts, stays};

/// What the engine told since it was last asked.
#[derive(Default)]
pub(super) struct Gathered(Vec<WatchEvent>);

enum WatchEvent {
    Began(JobId, LeaseId),
    Ended {
        job: JobId,
        lease: LeaseId,
        /// What the job asked for.
        gpu_milli: u64,
        /// Whether nothing of the stay was saved.
        lost: bool,
        how: StartEnd,
    },
    Retired(Box<Job>),
}

impl Watch for Gathered {
    fn began(&mut self, _: Time, _: &ClusterState, job: &Job, lease: &Lease) {
        self.0.push(WatchEvent::Began(job.id, lease.id));
    }

    fn ended(&mut self, _: Time, state: &ClusterState, job: &Job, lease: &Lease) {
        self.0.push(WatchEvent::Ended {
            job: job.id,
            lease: lease.id,
            gpu_milli: job.spec.gpu_milli(),
            lost: job.ledger.done <= lease.base,
            how: end_of(state, lease),
        });
    }

    fn retired(&mut self, _: Time, _: &ClusterState, job: &Job) {
        self.0.push(WatchEvent::Retired(Box::new(job.clone())));
    }
}

impl Desk {
    /// Takes over what the engine told.
    pub(super) fn gather(&mut self) {
        self.touch_waiting();
        for told in std::mem::take(&mut self.engine.watch_mut().0.0) {
            match told {
                WatchEvent::Began(job, lease) => self.began(job, lease),
                WatchEvent::Ended { job, lease, gpu_milli, lost, how } => {
                    self.draft.touched.insert(job.0);
                    self.ended.push(lease);
                    if let Some(live) = self.jobs.get_mut(&job.0) {
                        let facts = &mut live.row.facts;
                        // What was heard late was not used longer.
                        let ended = live.ended.unwrap_or(self.now).0;
                        stays::end(&mut facts.stays, ended, lost);
                        let code = (facts.exit_code, facts.failed_rank);
                        starts::end(&mut facts.starts, lease.0, ended, how, code);
                        live.changed = true;
                        self.tenants.returned(&live.row.tenant, gpu_milli);
                    }
                }
                WatchEvent::Retired(job) => self.retired(&job),
            }
        }
    }

    /// Notes which jobs began to wait for the policy, or do no more.
    fn touch_waiting(&mut self) {
        let journal = self.engine.state().journal();
        for change in journal.since(self.journal_seen).unwrap_or_default() {
            if let JournalChange::Queued(job) | JournalChange::Unqueued(job) = change {
                self.draft.touched.insert(job.0);
            }
        }
        self.journal_seen = journal.end();
    }

    fn began(&mut self, job: JobId, lease: LeaseId) {
        let state = self.engine.state();
        let lease_now = state.lease(lease).expect("a lease that began just now is there");
        let (mut nodes, mut tasks): (Vec<String>, Vec<u32>) = (Vec::new(), Vec::new());
        for part in &lease_now.placement.parts {
            let name = &state.node(part.node).spec.name;
            match tasks.last_mut().filter(|_| nodes.last().is_some_and(|last| **last == **name)) {
                Some(tasks) => *tasks += part.tasks,
                None => {
                    nodes.push(name.to_string());
                    tasks.push(part.tasks);
                }
            }
        }
        let gpus = gpus_by_model(state, lease_now);
        let (restarts, gpu_milli) =
            state.job(job).map_or((0, 0), |job| (job.ledger.restarts, job.spec.gpu_milli()));
        let live = self.jobs.get_mut(&job.0).expect("jobs of the state are known");
        live.ended = None;
        let start = Start {
            restart: restarts,
            lease: lease.0,
            from: self.now.0,
            nodes: nodes.clone(),
            tasks: tasks.clone(),
            ..Start::default()
        };
        starts::begin(&mut live.row.facts.starts, start);
        (live.row.facts.nodes, live.row.facts.tasks) = (nodes, tasks);
        live.row.facts.lease = Some(lease.0);
        live.row.facts.restarts = restarts;
        (live.row.facts.exit_code, live.row.facts.failed_rank) = (None, None);
        live.row.facts.started.get_or_insert(self.now.0);
        stays::begin(&mut live.row.facts.stays, self.now.0, gpus);
        live.changed = true;
        self.tenants.leased(&live.row.tenant, gpu_milli);
        self.draft.touched.insert(job.0);
    }

    /// Notes that a job is over.
    fn retired(&mut self, job: &Job) {
        let Phase::Done(ending) = job.phase else { unreachable!("a retired job is done") };
        let Some(mut live) = self.jobs.remove(&job.id.0) else { return };
        self.tenants.over(&live.row.tenant);
        if let Some(by) = live.row.origin.found() {
            self.found.remove(by);
        }
        if let Reason::NeverComes { after } = job.reason {
            live.row.facts.reason = self.never_comes(job, after);
        } else if ending == Ending::Rejected {
            live.row.facts.reason = job.reason.to_string();
        }
        live.row.facts.run = (ending == Ending::Finished).then_some(job.ledger.done.0);
        live.row.state = match ending {
            Ending::Finished => JobState::Finished,
            Ending::Failed => JobState::Failed,
            Ending::Cancelled => JobState::Cancelled,
            Ending::TimedOut => JobState::TimedOut,
            Ending::Rejected => JobState::Rejected,
        };
        let began = live.row.facts.starts.last().map_or(live.row.submitted, |start| start.from);
        let ended = live.ended.unwrap_or(self.now).0.max(began);
        live.row.ended = Some(ended);
        stays::over(&mut live.row.facts.stays, ended);
        live.row.version = self.next_change();
        self.figures.ended(live.row.state, live.row.submitted, live.row.facts.started);
        self.draft.touched.remove(&job.id.0);
        self.announce(&live.row);
        self.notify(&live.row, matches!(job.reason, Reason::NeverComes { .. }));
        self.push_job(&live.row, live.is_new);
        self.draft.ended.insert(job.id.0, live.row);
    }

    fn push_job(&mut self, row: &JobRow, is_new: bool) {
        let row = Box::new(row.clone());
        self.draft.rows.push(if is_new { Row::JobAdded(row) } else { Row::JobChanged(row) });
    }

    fn announce(&mut self, row: &JobRow) {
        let what = Changed::Job { job: row.id, tenant: row.tenant.clone(), state: row.state };
        let at = self.now.secs_f64();
        self.draft.effects.push(Effect::Changed(Change { number: row.version, at, what }));
    }

    /// Tells those who want to hear of it where a job has come to, and whether it waited in vain.
    fn notify(&mut self, row: &JobRow, in_vain: bool) {
        let told = notice::of_change(row, in_vain, &self.cluster, &self.settings.notify_always);
        if let Some(notice) = told {
            self.draft.effects.push(Effect::Notify(Box::new(notice)));
        }
    }

    /// Writes the rows of jobs that changed.
    pub(super) fn write_jobs(&mut self) {
        for id in std::mem::take(&mut self.draft.touched) {
            let Some(live) = self.jobs.get(&id) else { continue };
            let state = self.state_of(id);
            let changed = state != live.row.state || live.changed;
            if !changed && !live.is_new {
                continue;
            }
            let version = self.next_change();
            let live = self.jobs.get_mut(&id).expect("looked up above");
            let began = state == JobState::Running
                && live.row.state != JobState::Running
                && live.row.facts.restarts == 0;
            (live.row.state, live.row.version) = (state, version);
            let is_new = std::mem::take(&mut live.is_new);
            live.changed = false;
            let row = live.row.clone();
            self.announce(&row);
            if began {
                self.notify(&row, false);
            }
            self.push_job(&row, is_new);
        }
    }

    /// Where a live job stands.
    pub(super) fn state_of(&self, id: u32) -> JobState {
        match self.engine.state().job(JobId(id)).map(|job| job.phase) {
            Some(Phase::Pending) => JobState::Queued,
            Some(Phase::Held) => JobState::Held,
            Some(Phase::Starting(_)) => JobState::Starting,
            Some(Phase::Running(_)) => JobState::Running,
            Some(Phase::Stopping(_)) => JobState::Stopping,
            Some(Phase::Done(_)) | None => unreachable!("job {id} is over and was taken out"),
        }
    }
}

/// How a stay that is over ended, as far as the scheduler knows.
fn end_of(state: &ClusterState, lease: &Lease) -> StartEnd {
    let down = |part: &Part| state.node(part.node).health == Health::Down;
    match lease.stop.map(|stop| stop.why) {
        Some(StopWhy::Preempted | StopWhy::LeaseEnded) => StartEnd::Preempted,
        Some(StopWhy::Evicted) => StartEnd::Evicted,
        Some(StopWhy::Cancelled) => StartEnd::Cancelled,
        Some(StopWhy::TimeLimit) => StartEnd::TimeLimit,
        Some(StopWhy::NodeFailed | StopWhy::NoAnswer) => StartEnd::NodeFailed,
        None if lease.placement.parts.iter().any(down) => StartEnd::NodeFailed,
        None if lease.started.is_none() => StartEnd::NotStarted,
        None => StartEnd::Own,
    }
}

/// Thousandths of GPUs that a lease books, by the name of their model; one without GPUs books none
/// of no model.
fn gpus_by_model(state: &ClusterState, lease: &Lease) -> Vec<(String, u64)> {
    let mut gpus: Vec<(String, u64)> = Vec::new();
    for part in &lease.placement.parts {
        let booked = u64::from(state.gpu_of(part).0);
        let model = state.node(part.node).spec.gpu_model.filter(|_| booked > 0);
        let name = model.map_or("", |model| &state.model(model).name);
        match gpus.iter_mut().find(|(known, _)| known == name) {
            Some((_, milli)) => *milli += booked,
            None => gpus.push((name.to_owned(), booked)),
        }
    }
    gpus
}
