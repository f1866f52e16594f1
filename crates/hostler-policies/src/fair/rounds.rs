//! The round mechanism: from shares of time to stays.
//!
//! A round gives turns to the teams that are furthest behind their share. Who had the same GPUs in
//! the last round keeps them; the others are stopped and make room. Inside a round, what becomes
//! free goes to those who wait. Whose turn it is is kept in the state, so that a start which has
//! to wait for a stop is taken up again at the next question.
//!
//! Jobs that no single GPU model can hold, and jobs without GPUs, take no turns: they start when
//! there is room, before everybody else, and stay.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use hostler_core::decision::StopHow;
use hostler_core::id::{JobId, ModelId};
use hostler_core::job::{Job, Phase, Sharing};
use hostler_core::placement::Lease;
use hostler_core::plan::Plan;
use hostler_core::policy::{Cadence, Policy, Wake};
use hostler_core::predict::EstimateSource;
use hostler_core::reason::Reason;
use hostler_core::solve::Solve;
use hostler_core::stage::{Place, Shortfall, place_job};
use hostler_core::target::Turn;
use hostler_core::units::{Span, Time};
use hostler_core::view::View;
use hostler_core::window::Kept;

use super::dealing::Dealing;
use super::lines::{LineQueue, Lines};
use super::moves;
use super::new_round::{NewRound, Pick};
use super::pick::{Candidate, Ranking, RoundBudget};
use super::roster::Roster;
use super::seats;
use super::solver::{FairQuestion, FairSolver, Make, runs_together};
use crate::allocate::Allocate;
use crate::limits::PAYING_OFF_ROUNDS;
use crate::place::best_fit::BestFit;

/// How rounds go.
pub struct Rules {
    /// Length of a round; turns are given anew at its end.
    pub round: Span,
    /// Least time between two solutions; 0 solves whenever something changed.
    pub gap: Span,
    /// Whether GPUs that become free inside a round are given to those who wait.
    pub reuse: bool,
    /// How candidates for a turn are ranked.
    pub ranking: Ranking,
    /// How a round deals GPUs out.
    pub dealing: Box<dyn Dealing>,
    /// Which nodes a job gets.
    pub place: Box<dyn Place>,
    /// Whether who has a turn where it is may be moved, so that tasks come together and whole nodes
    /// become free.
    pub moves: bool,
    /// Whose run times it goes by.
    pub estimates: EstimateSource,
}

/// What became of an offer to a waiting job.
enum Offer {
    /// It starts.
    Taken,
    /// It does not, for a reason of its own.
    PassedOver,
    /// It does not fit, nor do others that ask for as much.
    NoRoom(Shortfall),
    /// Nobody of its queue can have it.
    NoneOfQueue,
}

/// A policy that shares time out in rounds.
pub struct Rounds {
    pub(super) rules: Rules,
    question: FairQuestion,
    make: Make,
    /// Shared with the solver that was asked last, until it has answered.
    pub(super) roster: Arc<Roster>,
    pub(super) lines: Lines,
}

impl Rounds {
    /// A policy that goes by these rules. `make` makes the allocator for a question.
    pub fn new(
        rules: Rules,
        question: FairQuestion,
        make: impl Fn(&View<'_>) -> Box<dyn Allocate> + Send + Sync + 'static,
    ) -> Rounds {
        let (roster, lines) = (Arc::default(), Lines::default());
        Rounds { rules, question, make: Arc::new(make), roster, lines }
    }
}

impl Policy for Rounds {
    fn cadence(&self) -> Cadence {
        Cadence::Rounds(self.rules.round)
    }

    fn estimates(&self) -> EstimateSource {
        self.rules.estimates
    }

    fn solver(&self) -> Option<Box<dyn Solve>> {
        let make = Make::clone(&self.make);
        let (question, roster) = (self.question.clone(), Arc::clone(&self.roster));
        Some(Box::new(FairSolver { question, make, roster }))
    }

    fn decide(&mut self, view: &View<'_>, wake: Wake, plan: &mut Plan<'_>) {
        self.rules.place.learn(view);
        let roster = Arc::make_mut(&mut self.roster);
        let news = roster.refresh(view);
        if self.rules.reuse {
            self.lines.note(news);
        }
        roster.turn_away(view, plan);
        let begins = wake == Wake::Round;
        if self.wants_solution(view, begins) {
            match self.solution_due(view) {
                // The answer comes at once, or the next question finds it outstanding.
                None => return plan.solve(),
                Some(at) => plan.wake_at(at),
            }
        }
        if begins {
            self.begin_round(view, plan);
        } else {
            self.go_on(view, plan);
        }
        explain(&self.roster, plan);
    }
}

impl Rounds {
    /// Whether a solution would be of use now: inside a round, only to those who wait.
    fn wants_solution(&self, view: &View<'_>, begins: bool) -> bool {
        let waits = || self.roster.has_waiting(view);
        let of_use = || begins || (self.rules.reuse && waits());
        let stale = view.solution_is_stale() && of_use();
        view.solve_asked().is_none() && (stale || begins && self.has_hopes(view))
    }

    /// Whether a pair may be worth a try by now: whoever ran for the first time since the last
    /// solution changes nothing else.
    fn has_hopes(&self, view: &View<'_>) -> bool {
        let long_ago = |at: Time| view.now().since(at) >= self.rules.round;
        let willing = |job: &Job| job.started && job.spec.sharing == Sharing::Willing;
        self.question.hopeful
            && view.solved_at().is_none_or(long_ago)
            && view.pending().iter().any(|id| view.job(*id).is_some_and(willing))
    }

    /// When the next solution may come; none when it may come now. What was solved before time
    /// began does not count.
    fn solution_due(&self, view: &View<'_>) -> Option<Time> {
        let last = view.solved_at().filter(|at| *at > Time::ZERO)?;
        let due = last + self.rules.gap;
        (due > view.now()).then_some(due)
    }

    /// Leases of jobs that take turns and were not told to stop, by id.
    fn leases<'a>(&'a self, view: &View<'a>) -> impl Iterator<Item = &'a Lease> {
        let leases = view.leases().filter(|lease| lease.stop.is_none());
        leases.filter(|lease| self.roster.row(lease.job).is_some())
    }

    /// Gives turns anew.
    fn begin_round(&mut self, view: &View<'_>, plan: &mut Plan<'_>) {
        let mark = plan.mark();
        let mut walk = RoundBudget::new(view, open_gpus(view, plan));
        let mut round = NewRound::new(view.lease_count());
        for lease in self.leases(view) {
            let model = view.model_of(lease).expect("who takes turns has GPUs");
            if plan.has_lease(lease.id) {
                continue;
            }
            if self.stays(view, lease) {
                walk.pass(lease.job);
                round.keep_turn(view, lease, model);
            } else {
                walk.left[model.index()] += held_milli(view, lease);
                round.lifted.push(lease.id);
            }
        }
        let number = view.round().map_or(0, |round| round.number + 1);
        let models = self.rules.dealing.models(view, number);
        let hopeful = self.question.hopeful;
        let candidates = self.rules.ranking.candidates(view, &self.roster, &models, hopeful);
        let (mut picks, rest) = self.pick(&candidates, &mut walk, view);
        if self.rules.moves {
            round.set_apart_torn(view, &mut picks);
        }
        let moving = match self.roster.others().is_empty() {
            // Who stays need not be asked to rise.
            true => round.keep(&picks),
            false => &picks,
        };
        round.lift(plan);
        for job in self.roster.others() {
            self.try_other(view, plan, *job, true);
        }
        self.seat(view, plan, &mut round, &mut walk, moving, &rest);
        plan.undo_to(mark);
        self.start_others(view, plan);
        Arc::make_mut(&mut self.roster).note_turns(view, &round.turns);
        round.carry_out(view, plan);
    }

    /// Whether a stay goes on whatever is decided for others, by itself or for the other of a pair.
    fn stays(&self, view: &View<'_>, lease: &Lease) -> bool {
        let shared = view.turn(lease.job).filter(|turn| turn.team.second.is_some());
        match shared.and_then(|turn| seats::seated(view, turn)) {
            None => self.must_stay(view, lease),
            Some(both) => both
                .leases()
                .any(|id| view.lease(id).is_some_and(|lease| self.must_stay(view, lease))),
        }
    }

    /// Nobody can come back to a node that takes no new jobs: who is there stays. So does who
    /// cannot be saved, and who has done too little to be stopped.
    fn must_stay(&self, view: &View<'_>, lease: &Lease) -> bool {
        let paid_off = has_paid_off(view, lease, self.rules.round);
        !can_come_back(view, lease) || !view.may_preempt(lease) || !paid_off
    }

    /// Picks by count: first those that stay where they are, then larger teams before smaller
    /// ones. The second answer is whoever could fill gaps.
    fn pick<'a>(
        &self,
        candidates: &'a [Candidate],
        walk: &mut RoundBudget,
        view: &View<'_>,
    ) -> (Vec<Pick<'a>>, Vec<&'a Candidate>) {
        let (mut picks, mut rest) = (Vec::new(), Vec::with_capacity(candidates.len()));
        for candidate in candidates {
            if !walk.admits(candidate) {
                rest.push(candidate);
                continue;
            }
            walk.take(candidate);
            if self.rules.dealing.can_use(view, candidate.turn()) {
                picks.push((candidate, seats::seated(view, candidate.turn())));
            }
        }
        picks.sort_by_key(|(candidate, seated)| (seated.is_none(), u64::MAX - candidate.gpu_milli));
        (picks, rest)
    }

    /// Finds GPUs for the picks, on trial; those who find none make way for others.
    fn seat<'v>(
        &self,
        view: &View<'v>,
        plan: &mut Plan<'_>,
        round: &mut NewRound<'v>,
        walk: &mut RoundBudget,
        picks: &[Pick<'_>],
        rest: &[&Candidate],
    ) {
        let mut failed = false;
        for (candidate, seated) in picks {
            let turn = candidate.turn();
            let place = &*self.rules.place;
            let found = round.seat(view, plan, place, turn, *seated)
                || self.rules.moves
                    && round.make_room(view, plan, place, turn)
                    && round.seat(view, plan, place, turn, None);
            if !found {
                walk.give_back(candidate);
                failed = true;
            }
        }
        if !failed {
            return;
        }
        let place = &*self.rules.place;
        for candidate in rest {
            let turn = candidate.turn();
            if self.rules.dealing.can_use(view, turn)
                && walk.admits(candidate)
                && round.seat(view, plan, place, turn, seats::seated(view, turn))
            {
                walk.take(candidate);
            }
        }
    }

    /// Starts those whose turn it is and who have room by now, and lets others use what is free.
    fn go_on(&mut self, view: &View<'_>, plan: &mut Plan<'_>) {
        self.start_others(view, plan);
        let mut turns = self.roster.turns_due(view);
        turns.sort_by_key(|turn| {
            let asked = self.roster.row(turn.team.first).map_or(0, |row| row.gpu_milli);
            (u64::MAX - asked, *turn)
        });
        turns.dedup();
        let mut kept = BTreeSet::new();
        for turn in turns {
            // A node that is being emptied for one must not be taken by those who left it.
            let suspended = view.job(turn.team.first).is_some_and(Job::is_suspended);
            if kept.contains(&turn.model) && !suspended {
                continue;
            }
            let started = self.resume(view, plan, turn);
            let waits_for_node = self.rules.moves && moves::needs_node(view, turn);
            if waits_for_node && !started && view.stopping() > 0 {
                kept.insert(turn.model);
            }
        }
        if self.rules.reuse && view.round().is_some() && view.stopping() == 0 {
            self.fill(view, plan);
        }
    }

    /// Starts members of a team that wait for their turn; whether there was room.
    fn resume(&self, view: &View<'_>, plan: &mut Plan<'_>, turn: Turn) -> bool {
        let waits = |job: &JobId| view.job(*job).is_some_and(|job| job.phase == Phase::Pending);
        let waiting: Vec<JobId> = turn.team.members().filter(waits).collect();
        let place = &*self.rules.place;
        let seats = match (turn.team.second, &*waiting) {
            (_, []) => None,
            // Their start failed, and it would again.
            (Some(_), _) if !runs_together(view, turn, self.question.hopeful) => None,
            (Some(_), [one]) => {
                let spec = &view.job(*one).expect("it waits").spec;
                let beside = seats::partner(view, turn.team, *one);
                let beside =
                    beside.and_then(|placement| seats::beside(plan.free(), &placement, spec));
                beside.map(|placement| vec![(*one, Arc::new(placement))])
            }
            (None, _) | (Some(_), _) => seats::place_team(view, place, plan.free(), turn),
        };
        let found = seats.is_some();
        for (job, placement) in seats.into_iter().flatten() {
            // What a plan does not take now is tried again at the next question.
            let _ = plan.start(job, placement);
        }
        found
    }

    /// Gives what is free to those who wait, model by model, most urgent first.
    fn fill(&mut self, view: &View<'_>, plan: &mut Plan<'_>) {
        self.lines.follow(view, &self.roster, &self.rules.ranking);
        if self.lines.is_empty() {
            return;
        }
        self.lines.raise_bounds(plan.free());
        let mut left = open_gpus(view, plan);
        let number = view.round().map_or(0, |round| round.number);
        let models = self.rules.dealing.models(view, number);
        let mut turns = Vec::new();
        for model in models {
            let mut heads = self.lines.heads(view, &self.rules.ranking, model);
            while let Some(Reverse((rank, queue))) = heads.pop() {
                let turn = Turn { team: rank.team, model };
                let left = &mut left[model.index()];
                let next = match self.offer(view, plan, turn, queue, left) {
                    Offer::Taken => {
                        turns.push(turn);
                        self.lines.next(model, queue, rank)
                    }
                    Offer::PassedOver => self.lines.next(model, queue, rank),
                    Offer::NoRoom(short) => {
                        let room = (plan.free(), &*self.rules.place);
                        self.lines.next_after_failure(view, turn, queue, (rank, short), room)
                    }
                    Offer::NoneOfQueue => None,
                };
                heads.extend(next.map(|next| Reverse((next, queue))));
            }
        }
        if !turns.is_empty() {
            plan.take_turns(turns);
        }
    }

    /// Offers what is free on a model to a waiting job.
    fn offer(
        &mut self,
        view: &View<'_>,
        plan: &mut Plan<'_>,
        turn: Turn,
        queue: LineQueue,
        left: &mut u64,
    ) -> Offer {
        let job = turn.team.first;
        if !self.lines.may_fit(turn.model, queue, plan.free()) {
            return Offer::NoneOfQueue;
        }
        let asked = self.roster.row(job).map_or(0, |row| row.gpu_milli);
        if asked > *left {
            self.lines.look_again(turn.model, queue);
            return Offer::NoneOfQueue;
        }
        if plan.has_job(job) {
            return Offer::PassedOver;
        }
        let spec = &view.job(job).expect("who waits is not over").spec;
        let placed = seats::place_alone(&*self.rules.place, plan.free(), spec, turn.model);
        match placed.map(|placement| plan.start(job, placement)) {
            Ok(Ok(_)) => {
                *left -= asked;
                Offer::Taken
            }
            Ok(Err(_)) => Offer::PassedOver,
            Err(short) => Offer::NoRoom(short),
        }
    }

    /// Starts jobs that take no turns, in order of submission.
    fn start_others(&self, view: &View<'_>, plan: &mut Plan<'_>) {
        for job in self.roster.others() {
            self.try_other(view, plan, *job, false);
        }
    }

    /// Starts a job that takes no turn if there is room, or only keeps the room on trial.
    fn try_other(&self, view: &View<'_>, plan: &mut Plan<'_>, job: JobId, trial: bool) {
        let spec = &view.job(job).expect("it waits").spec;
        if plan.has_job(job) {
            return;
        }
        // The rule by which the roster tells whether several roles fit at all.
        if let Ok(placement) = place_job(&BestFit, plan, spec) {
            let room = "it was free a moment ago";
            match trial {
                true => plan.claim(placement).expect(room),
                false => _ = plan.start(job, placement).expect(room),
            }
        }
    }
}

/// Whether a job could be started again where it is.
fn can_come_back(view: &View<'_>, lease: &Lease) -> bool {
    let Some(job) = view.job(lease.job) else { return false };
    lease.placement.parts.iter().all(|part| {
        let demand = job.spec.gangs.get(part.gang as usize).map(|gang| &gang.demand);
        let node = view.node(part.node).filter(|node| node.usable());
        node.zip(demand).is_some_and(|(node, demand)| Kept::admits(node.kept, demand))
    })
}

/// Whether a stay has worked for as long as it took to load and takes to save, or for some rounds:
/// where rounds are shorter than that, who is stopped at the end of each would never come to an
/// end.
fn has_paid_off(view: &View<'_>, lease: &Lease, round: Span) -> bool {
    let Some((job, started)) = view.job(lease.job).zip(lease.started) else { return true };
    let worked = view.now().since(started).saturating_sub(lease.load);
    let save = match view.best_stop(lease) {
        Some(StopHow::Checkpoint) => job.spec.checkpoint.save,
        Some(StopHow::Suspend | StopHow::Kill) | None => Span::ZERO,
    };
    worked >= (lease.load + save).min(Span(round.0.saturating_mul(PAYING_OFF_ROUNDS)))
}

/// Thousandths of free GPUs of each model, on nodes that take jobs and are kept for none.
fn open_gpus(view: &View<'_>, plan: &Plan<'_>) -> Vec<u64> {
    (0..view.models().len() as u32).map(|model| plan.free().open_gpu(ModelId(model))).collect()
}

fn held_milli(view: &View<'_>, lease: &Lease) -> u64 {
    lease.placement.parts.iter().map(|part| u64::from(view.gpu_of(part).0)).sum()
}

/// Tells newcomers that their turn comes later.
fn explain(roster: &Roster, plan: &mut Plan<'_>) {
    for id in roster.newcomers() {
        if !plan.has_job(*id) {
            plan.hold(*id, Reason::NotThisRound);
        }
    }
}
