//! A round that is about to begin: who keeps its GPUs, who gets which, and who has to go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hostler_core::capacity::Capacity;
use hostler_core::decision::StopHow;
use hostler_core::id::{JobId, LeaseId, ModelId};
use hostler_core::job::{Demand, Phase};
use hostler_core::placement::{Lease, Placement};
use hostler_core::plan::Plan;
use hostler_core::stage::Place;
use hostler_core::target::{Team, Turn};
use hostler_core::view::View;

use super::moves;
use super::pick::Candidate;
use super::roster::gpu_gang;
use super::seats::{self, Seated};
use crate::limits::EMPTYING_TRIES_MAX;

/// A candidate that is given a turn, and its seat if it has one.
pub(super) type Pick<'a> = (&'a Candidate, Option<Seated>);

/// The turns of a round that is about to begin.
pub(super) struct NewRound<'v> {
    pub(super) turns: Vec<Turn>,
    /// Leases that go on.
    pub(super) kept: Vec<LeaseId>,
    /// Leases that go on only with a turn, by id.
    pub(super) lifted: Vec<LeaseId>,
    /// Starts, with the place found on trial.
    pub(super) starts: Vec<(JobId, Arc<Placement>)>,
    /// Tasks for which no room was found, by what each asks for: nothing is freed on trial once
    /// seats are sought, so that nobody who asks for as much finds any.
    in_vain: BTreeMap<(ModelId, &'v Demand), u32>,
    /// Leases that have a turn where they are, of jobs that might be faster elsewhere.
    torn: BTreeSet<LeaseId>,
    /// How often a node was sought that all jobs could leave, and none was found.
    not_emptied: usize,
}

impl<'v> NewRound<'v> {
    /// A round in which nobody has a turn yet, with room for about so many.
    pub(super) fn new(about: usize) -> NewRound<'v> {
        NewRound {
            turns: Vec::with_capacity(about),
            kept: Vec::with_capacity(about),
            lifted: Vec::with_capacity(about),
            starts: Vec::new(),
            in_vain: BTreeMap::new(),
            torn: BTreeSet::new(),
            not_emptied: 0,
        }
    }

    /// Puts those who might be faster elsewhere behind those who stay. Each keeps its place until
    /// it finds a better one.
    pub(super) fn set_apart_torn(&mut self, view: &View<'_>, picks: &mut [Pick<'_>]) {
        let torn = |seated: Seated| {
            let alone = seated.alone().and_then(|id| view.lease(id));
            alone.filter(|lease| moves::is_torn(view, lease)).map(|lease| lease.id)
        };
        self.torn = picks.iter().filter_map(|(_, seated)| torn((*seated)?)).collect();
        if !self.torn.is_empty() {
            picks.sort_by_key(|(_, seated)| match seated {
                Some(seated) => u8::from(seated.leases().any(|id| self.torn.contains(&id))),
                None => 2,
            });
        }
    }

    /// Lets picks that have a seat keep it, and answers the others: those come last.
    pub(super) fn keep<'a, 'b>(&mut self, picks: &'b [Pick<'a>]) -> &'b [Pick<'a>] {
        let stays = |lease: LeaseId| {
            self.lifted.binary_search(&lease).is_ok() && !self.torn.contains(&lease)
        };
        let may_stay = |seated: Seated| seated.leases().all(stays);
        let stays = picks.iter().take_while(|(_, seated)| seated.is_some_and(may_stay)).count();
        for (candidate, seated) in &picks[..stays] {
            self.kept.extend(seated.iter().flat_map(|seated| seated.leases()));
            self.turns.push(candidate.turn());
        }
        &picks[stays..]
    }

    /// Lets a stay go on that is not to be stopped, whatever is decided for others.
    pub(super) fn keep_turn(&mut self, view: &View<'_>, lease: &Lease, model: ModelId) {
        self.kept.push(lease.id);
        let shared = view.turn(lease.job).filter(|turn| turn.team.second.is_some());
        match shared.filter(|turn| seats::seated(view, *turn).is_some()) {
            Some(turn) if self.turns.contains(&turn) => {}
            Some(turn) => self.turns.push(turn),
            None => self.turns.push(Turn { team: Team::alone(lease.job), model }),
        }
    }

    /// Frees the leases that are not kept, on trial.
    pub(super) fn lift(&mut self, plan: &mut Plan<'_>) {
        self.kept.sort_unstable();
        let risen = self.lifted.iter().filter(|lease| self.kept.binary_search(lease).is_err());
        let stays = risen.filter(|lease| !self.torn.contains(lease));
        stays.for_each(|lease| plan.lift(*lease).expect("it runs"));
    }

    /// Keeps a team where it is, or finds it GPUs, on trial.
    pub(super) fn seat(
        &mut self,
        view: &View<'v>,
        plan: &mut Plan<'_>,
        place: &dyn Place,
        turn: Turn,
        seated: Option<Seated>,
    ) -> bool {
        let mark = plan.mark();
        if let Some(seated) = seated {
            let torn = seated.alone().filter(|lease| self.torn.contains(lease));
            if let Some(lease) = torn.and_then(|id| view.lease(id)) {
                self.seat_torn(view, plan, place, (turn, lease));
                return true;
            }
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
        let Some(gang) = view.job(turn.team.first).and_then(|job| gpu_gang(&job.spec)) else {
            return false;
        };
        let asked = (turn.model, &gang.demand);
        if self.in_vain.get(&asked).is_some_and(|tasks| *tasks <= gang.count) {
            return false;
        }
        let Some(seats) = seats::place_team(view, place, plan.free(), turn) else {
            // Two that share may fail for what the other of them asks for.
            if turn.team.second.is_none() {
                self.in_vain.insert(asked, gang.count);
            }
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

    /// Finds a torn job a place where it is faster, on trial, or leaves it where it is.
    fn seat_torn(
        &mut self,
        view: &View<'v>,
        plan: &mut Plan<'_>,
        place: &dyn Place,
        (turn, lease): (Turn, &Lease),
    ) {
        self.turns.push(turn);
        let mark = plan.mark();
        plan.lift(lease.id).expect("it runs");
        let seats = seats::place_team(view, place, plan.free(), turn).unwrap_or_default();
        let closer = |(job, placement): &(JobId, Arc<Placement>)| {
            *job == lease.job && moves::is_faster_at(view, lease, placement)
        };
        let found = !seats.is_empty()
            && seats.iter().all(closer)
            && seats.iter().all(|(_, placement)| plan.claim(Arc::clone(placement)).is_ok());
        if found {
            self.starts.extend(seats);
        } else {
            plan.undo_to(mark);
            self.kept.push(lease.id);
        }
    }

    /// Moves jobs off a node for a turn that finds no room, on trial; whether that could be done.
    pub(super) fn make_room(
        &mut self,
        view: &View<'v>,
        plan: &mut Plan<'_>,
        place: &dyn Place,
        turn: Turn,
    ) -> bool {
        if self.not_emptied == EMPTYING_TRIES_MAX || !moves::needs_node(view, turn) {
            return false;
        }
        // Who stays whatever is decided is not among those that were lifted.
        let may_leave = |id: &LeaseId| self.lifted.binary_search(id).is_ok();
        let kept: BTreeSet<LeaseId> = self.kept.iter().copied().filter(may_leave).collect();
        let Some(moved) = moves::empty_node(view, plan, (turn, place), &kept) else {
            self.not_emptied += 1;
            return false;
        };
        let leaves = |lease: &LeaseId| moved.iter().any(|one| one.lease == *lease);
        self.kept.retain(|lease| !leaves(lease));
        self.starts.extend(moved.into_iter().map(|one| (one.job, one.to)));
        // What was sought in vain before may be there now.
        self.in_vain.clear();
        true
    }

    /// Stops who has no turn, begins the round, and starts who finds its place free already.
    pub(super) fn carry_out(mut self, view: &View<'_>, plan: &mut Plan<'_>) {
        self.vacate(view, plan);
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

    /// Stops who has no turn. Who is suspended keeps its memory and takes more, beside those who
    /// get its GPUs; where that is not free for it, it is saved, or stays.
    fn vacate(&mut self, view: &View<'_>, plan: &mut Plan<'_>) {
        self.kept.sort_unstable();
        let gone = |lease: &LeaseId| self.kept.binary_search(lease).is_err();
        let gone: Vec<LeaseId> = self.lifted.iter().copied().filter(gone).collect();
        let gone: Vec<&Lease> = gone.into_iter().filter_map(|id| view.lease(id)).collect();
        let starting: BTreeSet<JobId> = self.starts.iter().map(|(job, _)| *job).collect();
        let mut later = self.seated(view, plan, &gone);
        for lease in gone {
            if view.best_stop(lease) != Some(StopHow::Suspend) {
                // Housekeeping may have ended it already.
                let _ = plan.preempt(lease.id);
                continue;
            }
            // What is suspended goes on where it was only: who is to run elsewhere is saved.
            let moves = starting.contains(&lease.job);
            let room = later.as_mut().zip(view.parking(lease).filter(|_| !moves));
            let leaves = match room.is_some_and(|(later, parking)| later.book(&parking).is_ok()) {
                true => plan.preempt(lease.id).is_ok(),
                false => plan.stop(lease.id, StopHow::Checkpoint).is_ok(),
            };
            if let Some(model) = view.model_of(lease).filter(|_| !leaves && !moves) {
                self.turns.push(Turn { team: Team::alone(lease.job), model });
            }
        }
    }

    /// What will be free when all sit where this round wants them; none where nobody is suspended.
    fn seated(&self, view: &View<'_>, plan: &Plan<'_>, gone: &[&Lease]) -> Option<Capacity> {
        view.abilities().suspend?;
        let mut later = plan.free().clone();
        gone.iter().for_each(|lease| later.release(&lease.placement));
        for (_, placement) in &self.starts {
            // It was free on trial; who takes no turns may have come in between.
            let _ = later.book(placement);
        }
        Some(later)
    }
}
