//! Shares of time inside the state: the accounts of what solvers wanted and what rounds gave.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::ClusterState;
use crate::id::{JobId, ModelId};
use crate::job::Job;
use crate::placement::Lease;
use crate::target::{Account, Round, ShareAccounts, Solution, SolveRecord, Team, Turn};
use crate::units::{Span, Time};

/// Shares of time and rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turns {
    /// Accounts of pairs; those of single jobs are with the jobs.
    #[serde(with = "as_list")]
    pairs: BTreeMap<(Team, ModelId), Account>,
    round: Option<Round>,
    /// When the last solution came and which step it looked at.
    solved: Option<(Time, u64)>,
    /// Step of the state that a solver was asked to look at.
    asked: Option<u64>,
    /// Last step with a fact that a solution may depend on.
    changed: u64,
    /// Last step that changed which nodes or speeds are known.
    catalogue: u64,
    solves: u64,
    fallbacks: u64,
}

/// A map as a list of its entries: text formats take only text as keys.
mod as_list {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<Key: Serialize, Value: Serialize, S: Serializer>(
        map: &BTreeMap<Key, Value>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(super) fn deserialize<'de, Key, Value, D>(
        deserializer: D,
    ) -> Result<BTreeMap<Key, Value>, D::Error>
    where
        Key: Deserialize<'de> + Ord,
        Value: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(Key, Value)>::deserialize(deserializer)?.into_iter().collect())
    }
}

impl ClusterState {
    /// The round that goes on, if there ever was one.
    pub fn round(&self) -> Option<&Round> {
        self.turns.round.as_ref()
    }

    /// The turn of a job in this round.
    pub fn turn(&self, job: JobId) -> Option<Turn> {
        let (number, turn) = self.share_accounts(job)?.turn?;
        (self.round()?.number == number).then_some(turn)
    }

    /// What a team was to receive and received on a model since the last solution, up to its last
    /// settlement.
    pub fn account(&self, team: Team, model: ModelId) -> Account {
        let account = match team.second {
            None => self.share_accounts(team.first).and_then(|own| own.accounts.get(model.index())),
            Some(_) => self.turns.pairs.get(&(team, model)),
        };
        account.copied().unwrap_or_default()
    }

    /// The accounts of a job by itself, by model; what is missing is empty.
    pub fn own_accounts(&self, job: JobId) -> &[Account] {
        self.share_accounts(job).map_or(&[], |own| &own.accounts)
    }

    /// Accounts of pairs that are not empty, by team and model.
    pub fn pair_accounts(&self) -> impl Iterator<Item = (Team, ModelId, Account)> {
        self.turns.pairs.iter().map(|((team, model), account)| (*team, *model, *account))
    }

    /// Where a job stood when it was last solved for.
    pub fn solve_record(&self, job: JobId) -> Option<SolveRecord> {
        self.share_accounts(job)?.solve_record
    }

    fn share_accounts(&self, job: JobId) -> Option<&ShareAccounts> {
        self.jobs.get(job.0)?.share_accounts.as_deref()
    }

    /// What rounds keep of a job that is not over, made when there is nothing yet.
    fn share_accounts_mut(&mut self, job: JobId) -> Option<&mut ShareAccounts> {
        let kept = &mut self.jobs.get_mut(job.0)?.share_accounts;
        if kept.is_none() {
            self.in_rounds.insert(job);
        }
        Some(kept.get_or_insert_default())
    }

    /// Jobs that rounds keep something of, by id: all others have no share.
    pub fn in_rounds(&self) -> &BTreeSet<JobId> {
        &self.in_rounds
    }

    fn account_mut(&mut self, team: Team, model: ModelId) -> Option<&mut Account> {
        match team.second {
            None => self.share_accounts_mut(team.first).map(|own| own.account(model)),
            Some(_) => Some(self.turns.pairs.entry((team, model)).or_default()),
        }
    }

    fn credit(&mut self, (team, model): (Team, ModelId), time: Span) {
        if let Some(account) = self.account_mut(team, model) {
            account.served += time;
        }
    }

    /// When the last solution came.
    pub fn solved_at(&self) -> Option<Time> {
        self.turns.solved.map(|(at, _)| at)
    }

    /// Whether jobs, nodes or speeds changed since the state that was last solved for.
    pub fn solution_is_stale(&self) -> bool {
        self.turns.solved.is_none_or(|(_, step)| self.turns.changed > step)
    }

    /// Step of the state that a solver is to look at, while it has not answered.
    pub fn solve_asked(&self) -> Option<u64> {
        self.turns.asked
    }

    /// Solutions so far, and how many of them were fallbacks.
    pub fn solves(&self) -> (u64, u64) {
        (self.turns.solves, self.turns.fallbacks)
    }

    /// Whether the next round may begin, with rounds of this length.
    pub(crate) fn round_is_over(&self, span: Span) -> bool {
        self.round().is_none_or(|round| round.over || round.began + span <= self.now)
    }

    /// The model that a lease has GPUs of.
    pub fn model_of(&self, lease: &Lease) -> Option<ModelId> {
        let part = lease.placement.parts.iter().find(|part| !part.slices.is_empty())?;
        self.node(part.node).spec.gpu_model
    }

    /// The account that the time of a lease goes to. Two jobs that share have one between them,
    /// and the older of them keeps it.
    pub(crate) fn account_key(&self, lease: &Lease) -> Option<(Team, ModelId)> {
        let model = self.model_of(lease)?;
        let turn = self.turn(lease.job).filter(|turn| turn.model == model);
        let team = turn.map_or(Team::alone(lease.job), |turn| turn.team);
        (team.first == lease.job).then_some((team, model))
    }

    /// Last step that changed which nodes or speeds are known: for caches.
    pub fn catalogue_step(&self) -> u64 {
        self.turns.catalogue
    }

    pub(super) fn note_catalogue(&mut self) {
        self.turns.catalogue = self.step;
        self.note_change();
    }

    pub(super) fn note_change(&mut self) {
        self.turns.changed = self.step;
    }

    pub(super) fn ask_solver(&mut self, based_on: u64) {
        self.turns.asked = Some(based_on);
    }

    pub(super) fn withdraw_question(&mut self) {
        self.turns.asked = None;
    }

    /// Begins a round: turns of the one before are over.
    pub(super) fn begin_round(&mut self) {
        self.settle();
        let next = self.turns.round.as_ref().map_or(0, |round| round.number + 1);
        self.turns.round = Some(Round { number: next, began: self.now, over: false });
    }

    /// Gives turns in the round that goes on.
    pub(super) fn take_turns(&mut self, turns: &[Turn]) {
        let number = self.turns.round.as_ref().expect("turns are given in a round").number;
        for turn in turns {
            for job in turn.team.members() {
                self.settle_job(job);
                self.set_turn(job, number, *turn);
            }
        }
    }

    /// Puts the time of a job's lease up to now into its account: a turn may give it another.
    fn settle_job(&mut self, job: JobId) {
        let lease = self.jobs.get(job.0).and_then(Job::lease).and_then(|id| self.leases.get(id.0));
        let Some(lease) = lease.filter(|lease| lease.settled < self.now) else { return };
        let (id, key, time) = (lease.id, self.account_key(lease), self.now.since(lease.settled));
        if let Some(key) = key {
            self.credit(key, time);
        }
        self.leases.get_mut(id.0).expect("looked up above").settled = self.now;
    }

    fn set_turn(&mut self, job: JobId, number: u64, turn: Turn) {
        if let Some(own) = self.share_accounts_mut(job) {
            own.turn = Some((number, turn));
        }
    }

    pub(super) fn end_round(&mut self) {
        if let Some(round) = &mut self.turns.round {
            round.over = true;
        }
    }

    /// Takes a solution in: what was due before becomes a deficit, and accounts start anew.
    pub(super) fn solved(&mut self, based_on: u64, solution: &Solution) {
        self.settle();
        let elapsed = self.turns.solved.map_or(Span::ZERO, |(at, _)| self.now.since(at));
        for id in &self.in_rounds {
            let job = self.jobs.get_mut(id.0);
            let Some(own) = job.and_then(|job| job.share_accounts.as_deref_mut()) else { continue };
            own.accounts.iter_mut().for_each(|account| account.close(elapsed));
            own.solve_record = None;
        }
        self.turns.pairs.values_mut().for_each(|account| account.close(elapsed));
        for target in &solution.targets {
            if target.team.members().all(|job| self.jobs.get(job.0).is_some())
                && let Some(account) = self.account_mut(target.team, target.model)
            {
                account.share = target.share;
            }
        }
        self.turns.pairs.retain(|_, account| *account != Account::default());
        for solve_record in &solution.solve_records {
            if let Some(own) = self.share_accounts_mut(solve_record.job) {
                own.solve_record = Some(*solve_record);
            }
        }
        self.turns.solved = Some((self.now, based_on));
        self.turns.asked = self.turns.asked.filter(|asked| *asked != based_on);
        self.turns.solves += 1;
        self.turns.fallbacks += u64::from(solution.fallback);
    }

    /// Puts the time of every lease up to now into its account.
    fn settle(&mut self) {
        let now = self.now;
        // A solution and the round that goes by it come at one instant.
        let open = self.leases.iter().filter(|lease| lease.settled != now);
        let settle = |lease: &Lease| (self.account_key(lease), now.since(lease.settled));
        let credits: Vec<_> = open.map(settle).collect();
        if credits.is_empty() {
            return;
        }
        for (key, time) in credits {
            key.into_iter().for_each(|key| self.credit(key, time));
        }
        self.leases.values_mut().for_each(|lease| lease.settled = now);
    }

    /// Puts the time of a lease that ends or moves into its account.
    pub(super) fn settle_lease(&mut self, lease: &Lease) {
        // Nobody goes by accounts where nobody solves.
        if self.turns.solved.is_none() {
            return;
        }
        if let Some(key) = self.account_key(lease) {
            self.credit(key, self.now.since(lease.settled));
        }
    }

    /// Forgets a job that is over, and that others had turns together with it.
    pub(super) fn forget_turns(&mut self, job: &Job) {
        self.note_change();
        let id = job.id;
        self.in_rounds.remove(&id);
        if !self.turns.pairs.is_empty() {
            self.turns.pairs.retain(|(team, _), _| !team.has(id));
        }
        let turn = job.share_accounts.as_deref().and_then(|own| own.turn);
        let Some((number, turn)) = turn else { return };
        let other = turn.team.members().find(|member| *member != id);
        // The other of a pair keeps its turn, by itself.
        if let Some(other) = other.filter(|_| self.round().is_some_and(|now| now.number == number))
        {
            let alone = Turn { team: Team::alone(other), model: turn.model };
            self.set_turn(other, number, alone);
        }
    }
}
