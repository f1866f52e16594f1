//! Gates inside the state: who is let through to the policy, and who is let through next.
//!
//! A job that is let through counts against its tenant's quota and its array's limit until it is
//! over. Those who wait for room are let through in order of submission.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, ClusterState};
use crate::gate::{After, AfterWhen, Gate, Gates};
use crate::id::{JobId, TenantId};
use crate::job::{Ending, Job, Phase};
use crate::reason::Reason;
use crate::units::Time;

/// Who waits at which gate, and what those use that were let through. But for `paused`, all of it
/// follows from the jobs.
#[derive(Clone, Debug, Default)]
pub(super) struct GateBook {
    /// What jobs still wait for.
    needs: BTreeMap<JobId, Vec<After>>,
    /// Who waits for a job.
    dependents: BTreeMap<JobId, BTreeSet<JobId>>,
    /// When pauses end.
    pub(super) paused: BTreeSet<(Time, JobId)>,
    set_aside: BTreeSet<JobId>,
    /// Jobs of tenants that have used up their budget.
    unpaid: BTreeMap<TenantId, BTreeSet<JobId>>,
    /// Jobs that wait for their window to begin.
    outside: BTreeSet<JobId>,
    /// By number.
    tenants: Vec<Room>,
    arrays: BTreeMap<JobId, Room>,
}

impl PartialEq for GateBook {
    /// Equality of what is written in it: an array that nobody is in any more is as good as none.
    fn eq(&self, other: &GateBook) -> bool {
        self.needs == other.needs
            && self.dependents == other.dependents
            && self.paused == other.paused
            && self.set_aside == other.set_aside
            && self.unpaid == other.unpaid
            && self.outside == other.outside
            && self.tenants == other.tenants
            && self.arrays_inside().eq(other.arrays_inside())
    }
}

impl GateBook {
    fn arrays_inside(&self) -> impl Iterator<Item = (&JobId, &Room)> {
        self.arrays.iter().filter(|(_, room)| !room.is_empty())
    }
}

/// What is used of a limit, and who waits for it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Room {
    /// Jobs of an array, or thousandths of GPUs of a tenant's jobs.
    used: u64,
    waiting: BTreeSet<JobId>,
    /// Jobs that ask for more than the whole limit: they stand in nobody's way.
    oversize: BTreeSet<JobId>,
}

impl Room {
    fn is_empty(&self) -> bool {
        *self == Room::default()
    }

    /// Whether so much more is within the limit, and nobody came before.
    fn admits(&self, job: JobId, more: u64, most: Option<u64>) -> bool {
        let first = self.waiting.first().is_none_or(|first| *first >= job);
        more == 0 || (first && most.is_none_or(|most| self.used + more <= most))
    }
}

impl ClusterState {
    /// Thousandths of GPUs of a tenant's jobs that were let through to the policy.
    pub fn let_through(&self, tenant: TenantId) -> u64 {
        self.gates.tenants.get(tenant.index()).map_or(0, |room| room.used)
    }

    /// What a job still waits for.
    pub fn needs(&self, job: JobId) -> &[After] {
        self.gates.needs.get(&job).map_or(&[], Vec::as_slice)
    }

    /// When the next pause ends.
    pub(crate) fn next_resume(&self) -> Option<Time> {
        self.gates.paused.first().map(|(until, _)| *until)
    }

    /// Lets a new job through, or keeps it back: whether it waits for the policy.
    pub(super) fn admit_new(&mut self, job: &mut Job) {
        let unmet = job.spec.after.iter().filter(|after| !self.is_met(after)).copied();
        let unmet: Vec<After> = unmet.collect();
        if !unmet.is_empty() {
            for after in &unmet {
                self.gates.dependents.entry(after.job).or_default().insert(job.id);
            }
            self.gates.needs.insert(job.id, unmet);
            job.gates.close(Gate::After);
        } else if self.close_by_time(job) {
            // It waits for a time to come.
        } else if let Some(gate) = self.full_gate(job) {
            self.stand_in_line(job, gate);
        } else {
            self.count(job, true);
        }
        if !job.gates.is_open() {
            job.phase = Phase::Held;
            job.reason = self.reason_of(job);
        }
    }

    /// Closes a gate of a job that waits or is held already; of one that runs, none.
    pub(super) fn close_gate(&mut self, id: JobId, gate: Gate) -> bool {
        let Some(mut job) = self.jobs.take(id.0) else { return false };
        let waits = job.phase == Phase::Pending;
        if waits {
            self.pending.remove(&id);
            self.journal.push(Change::Unqueued(id));
            self.hold(&mut job);
            self.count(&job, false);
        }
        let mut makes_room = waits;
        if job.phase == Phase::Held {
            makes_room |= self.leave_rooms(&mut job);
            job.gates.close(gate);
            job.reason = self.reason_of(&job);
        }
        let (tenant, array) = (job.spec.tenant, job.spec.array.map(|array| array.first));
        let held = job.phase == Phase::Held;
        self.jobs.put_back(id.0, job);
        if makes_room {
            self.let_next_through(tenant, array);
        }
        held
    }

    /// Opens a gate of a job that is held, and lets it through if that was the last.
    pub(super) fn open_gate(&mut self, id: JobId, gate: Gate) {
        let Some(mut job) = self.jobs.take(id.0) else { return };
        // Who waits for room has its name in that room, too: it leaves that below.
        if !matches!(gate, Gate::Array | Gate::Quota) {
            job.gates.open(gate);
        }
        let mut through = false;
        if job.phase == Phase::Held {
            if !job.gates.holds_by_itself() {
                self.leave_rooms(&mut job);
                self.close_by_time(&mut job);
            }
            if !job.gates.holds_by_itself() {
                match self.full_gate(&job) {
                    Some(gate) => self.stand_in_line(&mut job, gate),
                    None => {
                        self.count(&job, true);
                        through = true;
                    }
                }
            }
            job.reason = self.reason_of(&job);
            if through {
                job.ledger.waited += self.now.since(job.phase_since);
            }
        }
        self.jobs.put_back(id.0, job);
        if through {
            self.requeue(id, Reason::New);
        }
    }

    /// A person holds a job back, or lets it go.
    pub(super) fn hold_changed(&mut self, id: JobId, held: bool) {
        self.note_change();
        if self.job(id).is_none() {
            self.stale_events += 1;
        } else if held {
            self.close_gate(id, Gate::Person);
        } else {
            // What fits nowhere is looked at again, and told why again.
            if self.gates.set_aside.remove(&id) {
                self.open_gate(id, Gate::NoNode);
            }
            self.open_gate(id, Gate::Person);
        }
    }

    /// What runs the jobs keeps one back, or lets it go.
    pub(super) fn kept_back(&mut self, id: JobId, kept: bool) {
        self.note_change();
        let has = self.job(id).map(|job| job.gates.has(Gate::Engine));
        match (has, kept) {
            (Some(false), true) => _ = self.close_gate(id, Gate::Engine),
            (Some(true), false) => self.open_gate(id, Gate::Engine),
            (Some(_), _) => {}
            (None, _) => self.stale_events += 1,
        }
    }

    pub(super) fn paused(&mut self, id: JobId, until: Time) {
        self.note_change();
        if self.close_gate(id, Gate::Pause) {
            self.gates.paused.retain(|(_, job)| *job != id);
            self.gates.paused.insert((until, id));
        } else {
            self.stale_events += 1;
        }
    }

    /// Lets jobs go whose pause is over by now; whether there were any.
    pub(super) fn resume_paused(&mut self) -> bool {
        let mut any = false;
        while let Some((_, id)) = self.gates.paused.first().filter(|(at, _)| *at <= self.now) {
            let id = *id;
            self.gates.paused.pop_first();
            self.note_change();
            self.open_gate(id, Gate::Pause);
            any = true;
        }
        any
    }

    pub(super) fn set_aside(&mut self, id: JobId, reason: Reason) {
        self.jobs.get_mut(id.0).expect("the job is not over").reason = reason;
        self.note_change();
        self.close_gate(id, Gate::NoNode);
        self.gates.set_aside.insert(id);
    }

    /// Another node joined: what fitted nowhere is looked at again.
    pub(super) fn reconsider_set_aside(&mut self) {
        for id in std::mem::take(&mut self.gates.set_aside) {
            self.open_gate(id, Gate::NoNode);
        }
    }

    /// A tenant is there from now on.
    pub(super) fn tenant_added(&mut self, tenant: TenantId) {
        self.tenant_room(tenant);
    }

    /// A tenant may use more than before, or less.
    pub(super) fn quota_changed(&mut self, tenant: TenantId) {
        let room = std::mem::take(self.tenant_room(tenant));
        self.tenant_room(tenant).used = room.used;
        for id in room.waiting.into_iter().chain(room.oversize) {
            let Some(mut job) = self.jobs.take(id.0) else { continue };
            self.stand_in_line(&mut job, Gate::Quota);
            job.reason = self.reason_of(&job);
            self.jobs.put_back(id.0, job);
        }
        self.let_next_through(tenant, None);
    }

    /// Keeps a waiting job back because its tenant has used up its budget.
    pub(super) fn hold_for_budget(&mut self, id: JobId) {
        if self.close_gate(id, Gate::Budget) {
            let tenant = self.job(id).expect("it is held").spec.tenant;
            self.gates.unpaid.entry(tenant).or_default().insert(id);
            self.plan_budget(tenant);
        }
    }

    /// Jobs that were kept back for the budget of a tenant; they are forgotten here.
    pub(super) fn take_unpaid(&mut self, tenant: TenantId) -> BTreeSet<JobId> {
        self.gates.unpaid.remove(&tenant).unwrap_or_default()
    }

    /// Keeps a job back that waits again, if its time has not come or is over.
    pub(super) fn hold_by_time(&mut self, id: JobId) {
        let job = self.job(id).expect("the job is not over");
        let (outside, unpaid) = (self.is_outside(job), self.lacks_budget(job));
        if outside {
            self.hold_outside(id);
        }
        if unpaid {
            self.hold_for_budget(id);
        }
    }

    /// Keeps a job back whose window has not begun, or is over.
    pub(super) fn hold_outside(&mut self, id: JobId) {
        if self.close_gate(id, Gate::Window) {
            self.gates.outside.insert(id);
        }
    }

    /// Lets jobs through whose window has begun.
    pub(super) fn let_inside(&mut self) {
        let inside = |id: &JobId| self.job(*id).is_some_and(|job| !self.is_outside(job));
        let inside: Vec<JobId> = self.gates.outside.iter().copied().filter(inside).collect();
        for id in inside {
            self.gates.outside.remove(&id);
            self.open_gate(id, Gate::Window);
        }
    }

    /// Whether a job is for a window that goes on no more, or not yet.
    pub(super) fn is_outside(&self, job: &Job) -> bool {
        let mut windows = job.spec.gangs.iter().filter_map(|gang| gang.demand.window);
        windows.any(|window| !self.is_inside(window))
    }

    /// Closes the gates of a job that open by time, where that has not come.
    fn close_by_time(&mut self, job: &mut Job) -> bool {
        if self.is_outside(job) {
            job.gates.close(Gate::Window);
            self.gates.outside.insert(job.id);
        }
        if self.lacks_budget(job) {
            self.note_unpaid(job);
        }
        job.gates.has(Gate::Window) || job.gates.has(Gate::Budget)
    }

    fn lacks_budget(&self, job: &Job) -> bool {
        job.spec.gpu_milli() > 0 && self.is_spent(job.spec.tenant)
    }

    fn note_unpaid(&mut self, job: &mut Job) {
        job.gates.close(Gate::Budget);
        self.gates.unpaid.entry(job.spec.tenant).or_default().insert(job.id);
        self.plan_budget(job.spec.tenant);
    }

    /// Whether jobs of a tenant wait for its next budget.
    pub(super) fn has_unpaid(&self, tenant: TenantId) -> bool {
        self.gates.unpaid.contains_key(&tenant)
    }

    fn forget_unpaid(&mut self, job: &Job) {
        if let Some(jobs) = self.gates.unpaid.get_mut(&job.spec.tenant) {
            jobs.remove(&job.id);
            if jobs.is_empty() {
                self.gates.unpaid.remove(&job.spec.tenant);
            }
        }
        self.plan_budget(job.spec.tenant);
    }

    /// A job started: those who waited for that need not any more.
    pub(super) fn settle_started(&mut self, id: JobId) {
        if !self.gates.dependents.is_empty() {
            self.settle_dependents(id, |when| (when == AfterWhen::Started).then_some(true));
        }
    }

    /// A job is over: room for others, and the end of waiting for those who come after it. The
    /// answer is who waited for another end of it, in vain.
    pub(super) fn settle_over(&mut self, job: &mut Job, ending: Ending) -> Vec<JobId> {
        if job.gates.is_open() {
            self.count(job, false);
        }
        self.leave_rooms(job);
        self.leave_gates(job);
        let array = job.spec.array.map(|array| array.first);
        if let Some(first) = array
            && self.gates.arrays.get(&first).is_some_and(Room::is_empty)
        {
            self.gates.arrays.remove(&first);
        }
        self.let_next_through(job.spec.tenant, array);
        if self.gates.dependents.is_empty() {
            return Vec::new();
        }
        let started = job.started;
        self.settle_dependents(job.id, |when| {
            Some(match when {
                AfterWhen::Finished => ending == Ending::Finished,
                AfterWhen::Over => true,
                AfterWhen::Failed => ending != Ending::Finished,
                AfterWhen::Started => started,
            })
        })
    }

    /// A job waits behind no gate any more, but for those where room is made.
    fn leave_gates(&mut self, job: &Job) {
        if let Some(needs) = self.gates.needs.remove(&job.id) {
            needs.iter().for_each(|after| self.forget_dependent(after.job, job.id));
        }
        if job.gates.has(Gate::Budget) {
            self.forget_unpaid(job);
        }
        if job.gates.has(Gate::Pause) {
            self.gates.paused.retain(|(_, paused)| *paused != job.id);
        }
        self.gates.set_aside.remove(&job.id);
        self.gates.outside.remove(&job.id);
    }

    /// A job runs already: whatever kept it back does so no more, and it counts as let through.
    pub(super) fn let_run(&mut self, id: JobId) {
        let mut job = self.jobs.take(id.0).expect("the job is not over");
        if job.phase == Phase::Held {
            self.note_change();
            self.leave_rooms(&mut job);
            self.leave_gates(&job);
            job.gates = Gates::default();
            job.ledger.waited += self.now.since(job.phase_since);
            (job.phase, job.phase_since) = (Phase::Pending, self.now);
            self.count(&job, true);
        }
        let (tenant, array) = (job.spec.tenant, job.spec.array.map(|array| array.first));
        self.jobs.put_back(id.0, job);
        self.let_next_through(tenant, array);
    }

    /// Settles what others wait for of a job: met, or never to be met; not known yet where `met`
    /// says nothing. The answer is for whom it will never come.
    fn settle_dependents(
        &mut self,
        id: JobId,
        met: impl Fn(AfterWhen) -> Option<bool>,
    ) -> Vec<JobId> {
        let dependents = self.gates.dependents.get(&id).cloned().unwrap_or_default();
        let mut hopeless = Vec::new();
        for dependent in dependents {
            let needs = self.gates.needs.get_mut(&dependent).expect("a dependent needs something");
            let never = |after: &After| after.job == id && met(after.when) == Some(false);
            if needs.iter().any(never) {
                hopeless.push(dependent);
                continue;
            }
            needs.retain(|after| after.job != id || met(after.when).is_none());
            let (waits_still, over) = (needs.iter().any(|after| after.job == id), needs.is_empty());
            if !waits_still {
                self.forget_dependent(id, dependent);
            }
            if over {
                self.gates.needs.remove(&dependent);
                self.note_change();
                self.open_gate(dependent, Gate::After);
            } else {
                self.tell_reason(dependent);
            }
        }
        hopeless
    }

    /// Tells a held job why it is, where what it waits for has changed.
    fn tell_reason(&mut self, id: JobId) {
        if let Some(reason) = self.job(id).map(|job| self.reason_of(job)) {
            self.jobs.get_mut(id.0).expect("looked up just now").reason = reason;
        }
    }

    fn forget_dependent(&mut self, needed: JobId, dependent: JobId) {
        if let Some(dependents) = self.gates.dependents.get_mut(&needed) {
            dependents.remove(&dependent);
            if dependents.is_empty() {
                self.gates.dependents.remove(&needed);
            }
        }
    }

    fn is_met(&self, after: &After) -> bool {
        match self.job(after.job) {
            None => true,
            Some(job) => after.when == AfterWhen::Started && job.started,
        }
    }

    /// The limit that a job would exceed, if any.
    fn full_gate(&self, job: &Job) -> Option<Gate> {
        let none = Room::default();
        if let Some(limit) = job.spec.array {
            let room = self.gates.arrays.get(&limit.first).unwrap_or(&none);
            if !room.admits(job.id, 1, Some(limit.most.into())) {
                return Some(Gate::Array);
            }
        }
        let room = self.gates.tenants.get(job.spec.tenant.index()).unwrap_or(&none);
        let admitted = room.admits(job.id, job.spec.gpu_milli(), self.quota(job.spec.tenant));
        (!admitted).then_some(Gate::Quota)
    }

    /// Thousandths of GPUs that a tenant's jobs may have at a time, if there is a limit.
    fn quota(&self, tenant: TenantId) -> Option<u64> {
        let most = self.tenants.get(tenant.index()).and_then(|tenant| tenant.gpus_max);
        most.map(|gpus| u64::from(gpus) * 1000)
    }

    fn exceeds_quota(&self, job: &Job) -> bool {
        self.quota(job.spec.tenant).is_some_and(|most| job.spec.gpu_milli() > most)
    }

    /// A job waits for room behind a gate.
    fn stand_in_line(&mut self, job: &mut Job, gate: Gate) {
        job.gates.close(gate);
        let oversize = gate == Gate::Quota && self.exceeds_quota(job);
        let room = self.room_mut(job, gate);
        if oversize { &mut room.oversize } else { &mut room.waiting }.insert(job.id);
    }

    /// Counts a job that was let through, or no longer.
    fn count(&mut self, job: &Job, through: bool) {
        let moved = |used: &mut u64, by: u64| *used = if through { *used + by } else { *used - by };
        moved(&mut self.tenant_room(job.spec.tenant).used, job.spec.gpu_milli());
        if let Some(limit) = job.spec.array {
            moved(&mut self.gates.arrays.entry(limit.first).or_default().used, 1);
        }
    }

    fn room_mut(&mut self, job: &Job, gate: Gate) -> &mut Room {
        match (gate, job.spec.array) {
            (Gate::Array, Some(limit)) => self.gates.arrays.entry(limit.first).or_default(),
            (_, _) => self.tenant_room(job.spec.tenant),
        }
    }

    fn tenant_room(&mut self, tenant: TenantId) -> &mut Room {
        let tenants = &mut self.gates.tenants;
        if tenants.len() <= tenant.index() {
            tenants.resize_with(tenant.index() + 1, Room::default);
        }
        &mut tenants[tenant.index()]
    }

    /// A job waits for no room any more; whether it did.
    fn leave_rooms(&mut self, job: &mut Job) -> bool {
        let mut left = false;
        for gate in [Gate::Array, Gate::Quota] {
            if job.gates.has(gate) {
                let room = self.room_mut(job, gate);
                room.waiting.remove(&job.id);
                room.oversize.remove(&job.id);
                job.gates.open(gate);
                left = true;
            }
        }
        left
    }

    /// Lets those through for whom there is room by now, in order of submission.
    fn let_next_through(&mut self, tenant: TenantId, array: Option<JobId>) {
        if let Some(first) = array {
            self.let_through_of(Gate::Array, |state| state.gates.arrays.get(&first));
        }
        self.let_through_of(Gate::Quota, |state| state.gates.tenants.get(tenant.index()));
    }

    fn let_through_of(&mut self, gate: Gate, room: impl Fn(&ClusterState) -> Option<&Room>) {
        while let Some(next) = room(self).and_then(|room| room.waiting.first().copied()) {
            self.note_change();
            self.open_gate(next, gate);
            let waits_still = room(self).is_some_and(|room| room.waiting.contains(&next));
            if waits_still {
                break;
            }
        }
    }

    fn hold(&self, job: &mut Job) {
        job.ledger.waited += self.now.since(job.phase_since);
        job.phase = Phase::Held;
        job.phase_since = self.now;
    }

    /// Why a job is held: the first gate that is closed.
    fn reason_of(&self, job: &Job) -> Reason {
        match job.gates.first() {
            None => job.reason,
            Some(Gate::Person) => Reason::Held,
            Some(Gate::After) => {
                let first = self.needs(job.id).first().or(job.spec.after.first());
                first.map_or(job.reason, |after| Reason::After { job: after.job })
            }
            Some(Gate::Pause) => Reason::StartFailed,
            Some(Gate::NoNode) => job.reason,
            Some(Gate::Array) => Reason::ArrayLimit,
            Some(Gate::Quota) if self.exceeds_quota(job) => Reason::QuotaTooSmall,
            Some(Gate::Quota) => Reason::OverQuota,
            Some(Gate::Budget) => Reason::OverBudget,
            Some(Gate::Window) => Reason::OutsideWindow,
            Some(Gate::Engine) => Reason::KeptBack,
        }
    }

    /// The book as it follows from the jobs, with the pauses that are known.
    pub(super) fn derive_gates(&self) -> GateBook {
        let mut book = ClusterState::default();
        book.gates.paused.clone_from(&self.gates.paused);
        book.gates.tenants.resize_with(self.tenants.len(), Room::default);
        for job in self.jobs.iter() {
            if job.gates.is_open() {
                book.count(job, true);
            }
            for gate in [Gate::Array, Gate::Quota].into_iter().filter(|gate| job.gates.has(*gate)) {
                let oversize = gate == Gate::Quota && self.exceeds_quota(job);
                let room = book.room_mut(job, gate);
                if oversize { &mut room.oversize } else { &mut room.waiting }.insert(job.id);
            }
            if job.gates.has(Gate::Budget) {
                book.gates.unpaid.entry(job.spec.tenant).or_default().insert(job.id);
            }
            if job.gates.has(Gate::Window) {
                book.gates.outside.insert(job.id);
            }
            if job.gates.has(Gate::NoNode) {
                book.gates.set_aside.insert(job.id);
            }
            if job.gates.has(Gate::After) {
                let unmet = job.spec.after.iter().filter(|after| !self.is_met(after)).copied();
                let unmet: Vec<After> = unmet.collect();
                for after in &unmet {
                    book.gates.dependents.entry(after.job).or_default().insert(job.id);
                }
                book.gates.needs.insert(job.id, unmet);
            }
        }
        book.gates
    }
}
