//! Who runs in a round: teams by how far behind their share they are, model by model.
//!
//! Counts GPUs only. Where the GPUs are, and whether a gang finds enough of them together, is the
//! business of `seats`.

use std::cmp::Reverse;

use hostler_core::id::{JobId, ModelId};
use hostler_core::job::Job;
use hostler_core::target::{Account, Team, Turn};
use hostler_core::units::Span;
use hostler_core::view::View;

use super::roster::{Roster, RosterEntry};
use super::solver::runs_together;

/// How far behind its share a team is on a model: most urgent first, equals in order of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Urgency {
    /// Share over time received, as the bits of a number that is not negative: in the same order.
    urgency: Reverse<u64>,
    deficit: Reverse<i64>,
    share: Reverse<u64>,
    pub(super) team: Team,
}

impl Urgency {
    fn new(team: Team, account: Account, received: Span) -> Urgency {
        let Account { share, deficit, .. } = account;
        let urgency = if share == 0 { 0.0 } else { account.urgency(received) };
        Urgency {
            urgency: Reverse(urgency.to_bits()),
            deficit: Reverse(deficit),
            share: Reverse(share),
            team,
        }
    }

    /// Whether the team has a share.
    pub(super) fn has_share(&self) -> bool {
        self.share.0 > 0
    }
}

/// A team that may run on a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    rank: Urgency,
    model: ModelId,
    /// Thousandths of GPUs that it takes.
    pub(super) gpu_milli: u64,
}

impl Candidate {
    /// The turn that it is for.
    pub(super) fn turn(&self) -> Turn {
        Turn { team: self.rank.team, model: self.model }
    }
}

/// A job that asks for a turn.
struct Asking<'a> {
    job: &'a Job,
    row: &'a RosterEntry,
    /// Its accounts by itself, by model; what is missing is empty.
    accounts: &'a [Account],
    /// The account that it runs for, and the time that is not in it yet.
    running: Option<(Turn, Span)>,
}

impl<'a> Asking<'a> {
    fn new(view: &View<'a>, job: &'a Job, row: &'a RosterEntry) -> Asking<'a> {
        let (accounts, running) = (view.own_accounts(job.id), view.running_account(job));
        Asking { job, row, accounts, running }
    }
}

/// How candidates are ranked.
pub struct Ranking {
    /// Half a round: what everybody is taken to have had, so that the first round of a new
    /// solution is not decided by a division by zero.
    pub head_start: Span,
    /// Whether teams without a share may take what is left.
    pub fillers: bool,
}

impl Ranking {
    /// The candidates, model by model in the given order, most urgent first; with pairs that nobody
    /// has seen together, if somebody is hopeful of them.
    pub(super) fn candidates(
        &self,
        view: &View<'_>,
        roster: &Roster,
        models: &[ModelId],
        hopeful: bool,
    ) -> Vec<Candidate> {
        let ask = |(job, row)| Asking::new(view, job, row);
        let jobs: Vec<Asking<'_>> = match self.fillers {
            true => roster.rows(view).map(ask).collect(),
            false => roster.rows_with_share(view).map(ask).collect(),
        };
        let pairs = self.pairs(view, hopeful);
        let mut all = Vec::with_capacity(jobs.len() * models.len() + pairs.len());
        for &model in models {
            let begin = all.len();
            for job in jobs.iter().filter(|job| job.row.rates[model.index()] > 0.0) {
                let turn = Turn { team: Team::alone(job.job.id), model };
                let account = job.accounts.get(model.index()).copied().unwrap_or_default();
                all.extend(self.candidate(turn, account, job.row.gpu_milli, job.running));
            }
            for &turn in pairs.iter().filter(|turn| turn.model == model) {
                let first = view.job(turn.team.first).zip(roster.row(turn.team.first));
                all.extend(first.and_then(|(job, row)| {
                    let account = view.account(turn.team, turn.model);
                    self.candidate(turn, account, row.gpu_milli, view.running_account(job))
                }));
            }
            // No two are equal.
            all[begin..].sort_unstable_by_key(|candidate| candidate.rank);
        }
        all
    }

    /// How urgent a waiting job is, by itself.
    pub(super) fn of_waiting(&self, view: &View<'_>, job: JobId, model: ModelId) -> Urgency {
        let account = view.account(Team::alone(job), model);
        Urgency::new(Team::alone(job), account, self.head_start + account.served)
    }

    /// The candidate for a turn, unless it has nothing to ask for. Its first member may be running
    /// now, for an account.
    fn candidate(
        &self,
        turn: Turn,
        account: Account,
        gpu_milli: u64,
        running: Option<(Turn, Span)>,
    ) -> Option<Candidate> {
        let current = running.filter(|(account, _)| *account == turn);
        let received = account.served + current.map_or(Span::ZERO, |(_, time)| time);
        let rank = Urgency::new(turn.team, account, self.head_start + received);
        (self.fillers || rank.has_share()).then_some(Candidate {
            rank,
            model: turn.model,
            gpu_milli,
        })
    }

    /// Pairs that have an account, and have not failed since it was solved for.
    fn pairs(&self, view: &View<'_>, hopeful: bool) -> Vec<Turn> {
        let accounts = view.pair_accounts().filter(|(_, _, account)| account.share > 0);
        let turns = accounts.map(|(team, model, _)| Turn { team, model });
        turns.filter(|turn| runs_together(view, *turn, hopeful)).collect()
    }
}

/// Walks down the candidates and takes those for which GPUs are left.
pub(super) struct RoundBudget {
    /// Thousandths of GPUs that are left, by model.
    pub(super) left: Vec<u64>,
    taken: Marks,
}

/// Jobs that have a turn, by number from the first job that is not over.
struct Marks {
    first: u32,
    marked: Vec<bool>,
}

impl Marks {
    fn set(&mut self, job: JobId, mark: bool) {
        let at = job.0.wrapping_sub(self.first) as usize;
        if let Some(marked) = self.marked.get_mut(at) {
            *marked = mark;
        }
    }

    /// Whether a job has a turn, or can have none because it is over.
    fn has(&self, job: JobId) -> bool {
        self.marked.get(job.0.wrapping_sub(self.first) as usize).is_none_or(|marked| *marked)
    }
}

impl RoundBudget {
    /// A walk that nobody was met on.
    pub(super) fn new(view: &View<'_>, left: Vec<u64>) -> RoundBudget {
        let first = view.jobs().next().map_or(view.next_job(), |job| job.id).0;
        let marked = vec![false; (view.next_job().0 - first) as usize];
        RoundBudget { left, taken: Marks { first, marked } }
    }

    /// Notes that a job has its turn already.
    pub(super) fn pass(&mut self, job: JobId) {
        self.taken.set(job, true);
    }

    /// Whether the candidate can have a turn.
    pub(super) fn admits(&self, candidate: &Candidate) -> bool {
        let model = candidate.model.index();
        candidate.gpu_milli <= self.left[model]
            && candidate.rank.team.members().all(|job| !self.taken.has(job))
    }

    /// Gives the candidate a turn.
    pub(super) fn take(&mut self, candidate: &Candidate) {
        self.left[candidate.model.index()] -= candidate.gpu_milli;
        candidate.rank.team.members().for_each(|job| self.taken.set(job, true));
    }

    /// Takes the turn back.
    pub(super) fn give_back(&mut self, candidate: &Candidate) {
        self.left[candidate.model.index()] += candidate.gpu_milli;
        candidate.rank.team.members().for_each(|job| self.taken.set(job, false));
    }
}
