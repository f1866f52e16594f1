//! A round that is about to begin: who keeps its GPUs, who gets which, and who has to go.

use std::sync::Arc;

use hostler_core::decision::StopHow;
use hostler_core::id::{JobId, LeaseId};
use hostler_core::job::Phase;
use hostler_core::placement::Placement;
use hostler_core::plan::Plan;
use hostler_core::stage::Place;
use hostler_core::target::Turn;
use hostler_core::view::View;

use super::pick::Candidate;
use super::seats::{self, Seated};

/// A candidate that is given a turn, and its seat if it has one.
pub(super) type Pick<'a> = (&'a Candidate, Option<Seated>);

/// The turns of a round that is about to begin.
pub(super) struct NewRound {
    pub(super) turns: Vec<Turn>,
    /// Leases that go on.
    pub(super) kept: Vec<LeaseId>,
    /// Leases that go on only with a turn, by id.
    pub(super) lifted: Vec<LeaseId>,
    /// Starts, with the place found on trial.
    pub(super) starts: Vec<(JobId, Arc<Placement>)>,
}

impl NewRound {
    /// A round in which nobody has a turn yet, with room for about so many.
    pub(super) fn new(about: usize) -> NewRound {
        NewRound {
            turns: Vec::with_capacity(about),
            kept: Vec::with_capacity(about),
            lifted: Vec::with_capacity(about),
            starts: Vec::new(),
        }
    }

    /// Lets picks that have a seat keep it, and answers the others: those come last.
    pub(super) fn keep<'a, 'b>(&mut self, picks: &'b [Pick<'a>]) -> &'b [Pick<'a>] {
        let may_stay =
            |seated: Seated| seated.leases().all(|lease| self.lifted.binary_search(&lease).is_ok());
        let stays = picks.iter().take_while(|(_, seated)| seated.is_some_and(may_stay)).count();
        for (candidate, seated) in &picks[..stays] {
            self.kept.extend(seated.iter().flat_map(|seated| seated.leases()));
            self.turns.push(candidate.turn);
        }
        &picks[stays..]
    }

    /// Frees the leases that are not kept, on trial.
    pub(super) fn lift(&mut self, plan: &mut Plan<'_>) {
        self.kept.sort_unstable();
        let risen = self.lifted.iter().filter(|lease| self.kept.binary_search(lease).is_err());
        risen.for_each(|lease| plan.lift(*lease).expect("it runs"));
    }

    /// Keeps a team where it is, or finds it GPUs, on trial.
    pub(super) fn seat(
        &mut self,
        view: &View<'_>,
        plan: &mut Plan<'_>,
        place: &dyn Place,
        turn: Turn,
        seated: Option<Seated>,
    ) -> bool {
        let mark = plan.mark();
        if let Some(seated) = seated {
            let placement = |id: LeaseId| {
                Arc::clone(&view.lease(id).expect("a seat is a live lease").placement)
            };
            if seated.leases().all(|lease| plan.claim(placement(lease)).is_ok()) {
                self.kept.extend(seated.leases());
                self.turns.push(turn);
                return true;
            }
            plan.undo_to(mark);
        }
        let Some(seats) = seats::place_team(view, place, plan.free(), turn) else {
            return false;
        };
        if !seats.iter().all(|(_, placement)| plan.claim(Arc::clone(placement)).is_ok()) {
            plan.undo_to(mark);
            return false;
        }
        self.starts.extend(seats);
        self.turns.push(turn);
        true
    }

    /// Stops who has no turn, begins the round, and starts who finds its place free already.
    pub(super) fn carry_out(mut self, view: &View<'_>, plan: &mut Plan<'_>) {
        self.kept.sort_unstable();
        let gone = |lease: &&LeaseId| self.kept.binary_search(lease).is_err();
        for lease in self.lifted.iter().filter(gone) {
            // Housekeeping may have ended it already.
            let _ = plan.stop(*lease, StopHow::Checkpoint);
        }
        plan.begin_round();
        plan.take_turns(self.turns);
        for (job, placement) in self.starts {
            let waits = view.job(job).is_some_and(|job| job.phase == Phase::Pending);
            if waits {
                // What is being vacated is taken at the next question.
                let _ = plan.start(job, placement);
            }
        }
    }
}
