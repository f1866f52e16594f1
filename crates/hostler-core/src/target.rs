//! Shares of time: what a solver wants, what was received of it, and whose turn it is in a round.
//!
//! A solver says which part of the time a job should spend on which GPU model; a round turns that
//! into stays. Plain data: only `ClusterState::apply` keeps the accounts.

use serde::{Deserialize, Serialize};

use crate::id::{JobId, ModelId};
use crate::units::{Span, Time};

/// One job, or two that share GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Team {
    /// The job, or the older of the two.
    pub first: JobId,
    /// The younger of the two.
    pub second: Option<JobId>,
}

impl Team {
    /// A job by itself.
    pub fn alone(job: JobId) -> Team {
        Team { first: job, second: None }
    }

    /// Two different jobs.
    pub fn pair(one: JobId, other: JobId) -> Team {
        assert_ne!(one, other, "a job does not share with itself");
        Team { first: one.min(other), second: Some(one.max(other)) }
    }

    /// Its members.
    pub fn members(self) -> impl Iterator<Item = JobId> {
        [Some(self.first), self.second].into_iter().flatten()
    }

    /// Whether the job is a member.
    pub fn has(self, job: JobId) -> bool {
        self.first == job || self.second == Some(job)
    }
}

/// Part of the time that a team should spend on GPUs of one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Who.
    pub team: Team,
    /// On which GPUs.
    pub model: ModelId,
    /// Part of the time; [`Target::ALL`] is all of it.
    pub share: u64,
}

impl Target {
    /// All the time. So many, because a tiny share still goes before none.
    pub const ALL: u64 = 1_000_000_000_000_000;
}

/// Where a job stood when it was last solved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SolveRecord {
    /// The job.
    pub job: JobId,
    /// Steps that were left to do, in millionths.
    pub steps_left: u64,
    /// Steps per second with an equal part of the cluster to itself, in millionths.
    pub isolated: u64,
    /// Time that the work done before would have taken with such a part.
    pub credit: Span,
}

/// What a solver answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Solution {
    /// Shares of time; what is not named gets none.
    pub targets: Vec<Target>,
    /// Where every job stood that was solved for; empty where the policy does not go by it.
    pub solve_records: Vec<SolveRecord>,
    /// Whether something else than an optimum was given.
    pub fallback: bool,
}

/// The right of a team to GPUs of one model until the round is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Turn {
    /// Who.
    pub team: Team,
    /// On which GPUs.
    pub model: ModelId,
}

/// A round: who runs where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Its number, from zero.
    pub number: u64,
    /// When it began.
    pub began: Time,
    /// Whether the executor said that nothing more will come of it.
    pub over: bool,
}

/// What a team was to receive on one model, and what it received, since the last solution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Part of the time that it should have, of [`Target::ALL`].
    pub share: u64,
    /// Time that it had, up to its last settlement.
    pub served: Span,
    /// Time that it should have had and did not, before the last solution; in microseconds.
    pub deficit: i64,
}

/// What rounds keep of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShareAccounts {
    /// Accounts of the job by itself, by model; what is missing is empty.
    pub accounts: Vec<Account>,
    /// Where it stood when it was last solved for.
    pub solve_record: Option<SolveRecord>,
    /// Its last turn, and the number of the round.
    pub turn: Option<(u64, Turn)>,
}

impl ShareAccounts {
    /// The account for a model.
    pub(crate) fn account(&mut self, model: ModelId) -> &mut Account {
        if self.accounts.len() <= model.index() {
            self.accounts.resize(model.index() + 1, Account::default());
        }
        &mut self.accounts[model.index()]
    }
}

impl Account {
    /// The share over a time that was received.
    pub fn urgency(&self, received: Span) -> f64 {
        self.share as f64 / Target::ALL as f64 / received.secs_f64().max(1e-6)
    }

    /// What was due in the time since the last solution becomes a deficit.
    pub(crate) fn close(&mut self, elapsed: Span) {
        // Most have a share of one model at most, and a division of so many digits is slow.
        let due = match self.share {
            0 => 0,
            share => i128::from(share) * i128::from(elapsed.0) / i128::from(Target::ALL),
        };
        let missed = (due - i128::from(self.served.0)).clamp(i64::MIN.into(), i64::MAX.into());
        let deficit = self.deficit.saturating_add(missed as i64);
        *self = Account { share: 0, served: Span::ZERO, deficit };
    }
}
