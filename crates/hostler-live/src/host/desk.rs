//! Everything of the host but its driver: the engine, the store, jobs, nodes and people.
//!
//! What is public here is what a driver may use: it reads the state, enters facts, notes what it
//! finds out and gives effects. What follows from a fact shows at once, but for leases that ended:
//! those are handed to the driver when its method returns, or when it asks by itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hostler_core::engine::Engine;
use hostler_core::event::Event;
use hostler_core::id::{JobId, LeaseId};
use hostler_core::metrics::Metrics;
use hostler_core::predict::EstimateSource;
use hostler_core::record::Record;
use hostler_core::state::ClusterState;
use hostler_core::units::{Span, Time};

use super::clock::Stopwatch;
use super::estimates::Experience;
use super::follow::Gathered;
use super::jobs::LiveJob;
use super::keys::Keys;
use super::many::ManyReply;
use super::tenants::Tenants;
use super::tokens::Tokens;
use super::{Effect, Figures, HostError, PolicyBuilder, Settings};
use crate::reservation::Reservation;
use crate::store::{Batch, JobFacts, JobRow, NodeRow, Row, Store, TokenRow};

/// Time between looks at whether the store is still this daemon's alone. While it is not, beats
/// that are answered keep jobs from the fence that the next daemon relies on; so it is shorter
/// than the least time between a fence and giving a node up.
const STORE_CHECKED: Span = Span::from_secs(1);

/// Time after the first failed start before the next; it doubles with each. All tries of a job that
/// never starts take about a minute, in which somebody may mount what is missing.
const PAUSE: Span = Span::from_secs(2);

/// What the host and its driver work on.
pub struct Desk {
    pub(super) engine: Engine<(Gathered, Metrics)>,
    pub(super) experience: Experience,
    pub(super) store: Box<dyn Store>,
    pub(super) builder: PolicyBuilder,
    pub(super) settings: Settings,
    pub(super) cluster: String,
    pub(super) policy: String,
    /// Whose run times count, once that is known.
    pub(super) estimates: Option<EstimateSource>,
    pub(super) now: Time,
    pub(super) next_job: u32,
    pub(super) jobs: BTreeMap<u32, LiveJob>,
    /// Those that the driver found, by what it calls them.
    pub(super) found: BTreeMap<String, JobId>,
    pub(super) tenants: Tenants,
    pub(super) tokens: Tokens,
    pub(super) groups: BTreeMap<String, u32>,
    pub(super) keys: Keys,
    pub(super) nodes: BTreeMap<String, NodeRow>,
    pub(super) reservations: Vec<Reservation>,
    pub(super) fence: Option<Span>,
    pub(super) store_checked: Time,
    /// The question that a solver is at work on, and the step that it is about.
    pub(super) solving: Option<(u64, u64)>,
    pub(super) questions: u64,
    /// Changes of the waiting jobs up to here have been looked at.
    pub(super) journal_seen: u64,
    /// Leases that ended and of which the driver does not know yet.
    pub(super) ended: Vec<LeaseId>,
    pub(super) draft: Draft,
    pub(super) last_record: u64,
    pub(super) last_change: u64,
    pub(super) log_bytes: usize,
    pub(super) snapshot_bytes: usize,
    pub(super) figures: Figures,
    pub(super) stopwatch: Stopwatch,
}

/// What the present batch has come to so far.
#[derive(Default)]
pub(super) struct Draft {
    /// Facts that follow from others and are not taken in yet.
    pub(super) later: VecDeque<Event>,
    pub(super) records: Vec<Record>,
    pub(super) rows: Vec<Row>,
    pub(super) effects: Vec<Effect>,
    /// Replies that show a job as it is after the batch.
    pub(super) job_replies: Vec<(u64, u32)>,
    pub(super) many_replies: Vec<ManyReply>,
    /// Jobs that may have changed.
    pub(super) touched: BTreeSet<u32>,
    /// Jobs that ended in this batch, to show them once more.
    pub(super) ended: BTreeMap<u32, JobRow>,
}

impl Desk {
    /// The time of this batch.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The scheduler's state.
    pub fn state(&self) -> &ClusterState {
        self.engine.state()
    }

    /// Enters a fact; the state shows it, and what follows from it, at once.
    pub fn fact(&mut self, event: Event) {
        self.later(event);
        self.drain();
    }

    /// Leases that ended since this was last asked.
    pub fn take_ended(&mut self) -> Vec<LeaseId> {
        std::mem::take(&mut self.ended)
    }

    /// Has something done to the world as soon as this batch is safe.
    pub fn effect(&mut self, effect: Effect) {
        self.draft.effects.push(effect);
    }

    /// A job that is not over, with what was asked for.
    pub fn job_row(&self, job: JobId) -> Option<&JobRow> {
        self.jobs.get(&job.0).map(|live| &live.row)
    }

    /// What is known of a job, to add to it. It is written with the next change that matters;
    /// [`Desk::job_changed`] says that this is one.
    pub fn job_facts(&mut self, job: JobId) -> Option<&mut JobFacts> {
        self.jobs.get_mut(&job.0).map(|live| &mut live.row.facts)
    }

    /// A job that ends now ended at this moment, as far as its machine knows.
    pub fn job_ended_at(&mut self, job: JobId, ended: Time) {
        if let Some(live) = self.jobs.get_mut(&job.0) {
            live.ended = Some(ended.min(self.now));
        }
    }

    /// People are to see what was noted about a job.
    pub fn job_changed(&mut self, job: JobId) {
        if let Some(live) = self.jobs.get_mut(&job.0) {
            live.changed = true;
            self.draft.touched.insert(job.0);
        }
    }

    /// The phase of a job may be another one.
    pub fn job_touched(&mut self, job: JobId) {
        self.draft.touched.insert(job.0);
    }

    /// The number that the next job gets.
    pub fn next_job(&self) -> JobId {
        JobId(self.next_job)
    }

    /// Leaves out numbers of jobs.
    pub fn skip_jobs(&mut self, next: JobId) {
        self.next_job = next.0;
        self.fact(Event::JobsSkipped { next });
    }

    /// A token.
    pub fn token(&self, id: u32) -> Option<&TokenRow> {
        self.tokens.get(id)
    }

    /// The token that speaks for a node.
    pub fn token_of_node(&self, node: &str) -> Option<&TokenRow> {
        self.tokens.of_node(node)
    }

    /// The longest time without an answer after which jobs on a node may still go on, as it is in
    /// the store; none when nobody said.
    pub fn fence(&self) -> Option<Span> {
        self.fence
    }

    /// Notes that time; safe before anybody is told of it.
    pub fn set_fence(&mut self, fence: Span) {
        self.fence = Some(fence);
        self.draft.rows.push(Row::Fence(fence.0));
    }

    /// Whether nothing ever happened here.
    pub fn is_fresh(&self) -> bool {
        self.last_record == 0
    }

    /// Counters and histograms.
    pub fn figures_mut(&mut self) -> &mut Figures {
        &mut self.figures
    }

    /// Lets a fact enter at the next opportunity, from where one is being taken in already.
    pub(super) fn later(&mut self, event: Event) {
        self.draft.later.push_back(event);
    }

    pub(super) fn drain(&mut self) {
        while let Some(event) = self.draft.later.pop_front() {
            if !self.engine.has_input() {
                self.engine.begin(self.now);
            }
            let policy_changed =
                matches!(event, Event::PolicyChanged { .. } | Event::PolicyBroke { .. });
            let predicts_anew = self.concerns_estimates(&event);
            self.engine.take_fact(event);
            if policy_changed {
                self.solving = None;
            }
            if predicts_anew {
                self.predict_anew();
            }
            self.gather();
        }
    }

    /// A stay never began: its job is tried again after a pause.
    pub fn start_failed(&mut self, lease: LeaseId) {
        let Some(known) = self.engine.state().lease(lease) else { return };
        let job = known.job;
        let before = self.engine.state().job(job).map_or(0, |job| job.ledger.start_failures);
        let until = self.now + Span(PAUSE.0 << before.min(8));
        self.fact(Event::StartFailed { lease });
        if self.engine.state().job(job).is_some() {
            self.fact(Event::Paused { job, until });
        }
    }

    /// Has a solver asked for, unless it is at work on this question already. What an earlier life
    /// asked is asked again.
    pub(super) fn ask_solver(&mut self) {
        let known = self.solving.map(|(_, based_on)| based_on);
        if self.engine.state().solve_asked() == known {
            return;
        }
        self.solving = None;
        if let Some(based_on) = self.engine.state().solve_asked() {
            self.questions += 1;
            self.solving = Some((self.questions, based_on));
            self.draft.effects.push(Effect::Solve(self.questions));
        }
    }

    /// Writes everything of this batch durably.
    pub(super) fn commit(&mut self, closing: bool) -> Result<(), HostError> {
        let mut batch = Batch { rows: std::mem::take(&mut self.draft.rows), ..Batch::default() };
        for record in self.draft.records.drain(..) {
            let text = serde_json::to_string(&record).expect("records are plain data");
            self.log_bytes += text.len();
            self.last_record += 1;
            batch.records.push((self.last_record, text));
        }
        let due = self.log_bytes >= self.settings.snapshot_bytes.max(2 * self.snapshot_bytes);
        if due || (closing && self.log_bytes > 0) {
            let state = serde_json::to_string(&self.engine.snapshot());
            let mut state = state.expect("a state is plain data");
            // It grew by doubling; what is too much is given back before the store copies from it.
            state.shrink_to_fit();
            (self.snapshot_bytes, self.log_bytes) = (state.len(), 0);
            batch.snapshot = Some((self.last_record, state));
        }
        if batch.is_empty() {
            return Ok(());
        }
        let begun = (self.stopwatch)();
        self.store.commit(&batch)?;
        self.figures.commits.add((self.stopwatch)().saturating_sub(begun));
        self.figures.records = self.last_record;
        Ok(())
    }

    /// Finds out whether another daemon may be the writer, although there is nothing to write.
    pub(super) fn check_store(&mut self) -> Result<(), HostError> {
        if self.now.since(self.store_checked) >= STORE_CHECKED {
            self.store.check()?;
            self.store_checked = self.now;
        }
        Ok(())
    }

    /// A number for a change, larger than every one before, over restarts too.
    pub(super) fn next_change(&mut self) -> u64 {
        let records = self.last_record + self.draft.records.len() as u64;
        self.last_change = (self.last_change + 1).max(records << 20);
        self.last_change
    }
}
