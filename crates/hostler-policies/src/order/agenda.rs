//! Who is where and until when: stays and reservations in one calendar that follows the journal. No
//! policy of its own.
//!
//! As long as all goes as planned, nothing has to be worked out anew: jobs start and end where and
//! when the calendar has them, and those that come go behind all others. Whatever is not as planned
//! makes reservations void: from the rank at which something changed in the queue, and all of them
//! when what runs or which nodes there are is another thing than was believed. So the reservations
//! are at any time those that follow from the state, and a calendar made anew has the same.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hostler_core::capacity::Capacity;
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_core::job::Job;
use hostler_core::pipeline::{BacklogChanges, Rank};
use hostler_core::placement::{Lease, Placement};
use hostler_core::units::Time;
use hostler_core::view::View;

use super::calendar::{Calendar, FirstPlace, Found};
use super::choices::choices;
use super::outlook::overdue;

/// Before all ranks that jobs have.
const FIRST: Rank = (i64::MIN, JobId(0));

/// Stays and reservations.
#[derive(Default)]
pub(super) struct Agenda {
    calendar: Calendar,
    stays: BTreeMap<LeaseId, Stay>,
    by_end: BTreeSet<(Time, LeaseId)>,
    /// Stays on each node.
    on_node: Vec<Vec<LeaseId>>,
    /// Reservations of the first that wait; none for those that find no place at any time.
    places: BTreeMap<Rank, Option<Found>>,
    due: BTreeSet<(Time, Rank)>,
    /// Those among them that have several roles.
    with_roles: BTreeSet<Rank>,
}

/// A stay and when it is believed to be over.
struct Stay {
    until: Time,
    placement: Arc<Placement>,
}

impl Agenda {
    /// Takes in what happened since the last question.
    pub(super) fn follow(&mut self, view: &View<'_>, free: &Capacity, news: &BacklogChanges) {
        if news.all || view.nodes().len() != self.calendar.node_count() {
            return self.start_anew(view, free);
        }
        self.calendar.set_now(view.now());
        let mut odd = self.take_starts(view, news);
        let mut over: BTreeSet<LeaseId> = BTreeSet::new();
        for id in news.freed.iter().flat_map(|node| &self.on_node[node.index()]) {
            match view.lease(*id) {
                None => _ = over.insert(*id),
                Some(lease) if lease.placement != self.stays[id].placement => {
                    odd.insert(*id);
                }
                Some(_) => {}
            }
        }
        let late = self.by_end.iter().take_while(|(until, _)| *until <= view.now());
        let late = late.map(|(_, id)| *id).filter(|id| view.lease(*id).is_some());
        odd.extend(late);
        for id in &news.rescheduled {
            let ends = view.lease(*id).map(|lease| end_of(view, lease));
            let known = self.stays.get(id).map(|stay| stay.until);
            if ends.is_some() && known.is_some() && ends != known {
                odd.insert(*id);
            }
        }
        let early = |id: &LeaseId| self.stays[id].until > view.now();
        let as_planned = odd.is_empty() && !over.iter().any(early);
        let nodes = news.freed.iter().chain(&news.closed);
        let changed = nodes.filter(|node| self.calendar.is_news(view, free, **node));
        let changed: Vec<NodeId> = changed.copied().collect();
        if !as_planned || !changed.is_empty() {
            self.forget_from(FIRST, view.now());
        }
        changed.iter().for_each(|node| self.calendar.look_at(view, free, *node));
        odd.iter().chain(&over).for_each(|id| self.end(*id, view.now()));
        odd.iter().filter_map(|id| view.lease(*id)).for_each(|lease| self.begin(view, lease));
        self.forget_changed(view, news);
    }

    fn start_anew(&mut self, view: &View<'_>, free: &Capacity) {
        *self = Agenda { calendar: Calendar::empty(view, free), ..Agenda::default() };
        self.calendar.set_now(view.now());
        self.on_node.resize_with(view.nodes().len(), Vec::new);
        view.leases().for_each(|lease| self.begin(view, lease));
    }

    /// Jobs that wait no more: those that started as planned have their place. The answer are the
    /// stays that began otherwise.
    fn take_starts(&mut self, view: &View<'_>, news: &BacklogChanges) -> BTreeSet<LeaseId> {
        let mut odd = BTreeSet::new();
        for (rank, _) in &news.left {
            let lease = view.job(rank.1).and_then(Job::lease).and_then(|id| view.lease(id));
            let Some(lease) = lease.filter(|lease| !self.stays.contains_key(&lease.id)) else {
                self.forget_from(*rank, view.now());
                continue;
            };
            let as_planned = |found: &&Found| {
                found.at == lease.since
                    && found.until == Some(end_of(view, lease))
                    && found.placement == *lease.placement
            };
            let place = self.places.get(rank).and_then(Option::as_ref).filter(as_planned);
            match place.map(|found| found.at) {
                Some(at) => {
                    self.places.remove(rank);
                    self.due.remove(&(at, *rank));
                    self.with_roles.remove(rank);
                    self.note(view, lease);
                }
                None => {
                    self.forget_from(*rank, view.now());
                    odd.insert(lease.id);
                }
            }
        }
        odd
    }

    /// Makes reservations void from the first job on that came, has another estimate, should have
    /// started, or is to be looked at anew at each question.
    fn forget_changed(&mut self, view: &View<'_>, news: &BacklogChanges) {
        let now = view.now();
        // One that runs for ever counts as one that runs if nobody waits before it.
        let for_ever = |rank: &Rank| self.places[rank].as_ref().is_none_or(|at| at.until.is_none());
        let due = self.due.iter().take_while(|(at, _)| *at <= now);
        let odd = due.filter(|(at, rank)| *at < now || for_ever(rank)).map(|(_, rank)| rank);
        // At another time, or beside others, a role may go elsewhere, and then the next one fits.
        let odd = odd.chain(self.with_roles.first());
        if let Some(rank) = news.came.iter().chain(&news.stayed).chain(odd).min().copied() {
            self.forget_from(rank, now);
        }
    }

    fn forget_from(&mut self, rank: Rank, now: Time) {
        self.with_roles.split_off(&rank);
        for (rank, place) in self.places.split_off(&rank) {
            let Some(Found { at, until, placement }) = place else { continue };
            self.calendar.release(&placement, at.max(now), until);
            self.due.remove(&(at, rank));
        }
    }

    /// Books a stay.
    fn begin(&mut self, view: &View<'_>, lease: &Lease) {
        self.note(view, lease);
        let until = self.stays[&lease.id].until;
        self.calendar.book(&lease.placement, view.now(), Some(until));
    }

    /// Notes a stay that is booked.
    fn note(&mut self, view: &View<'_>, lease: &Lease) {
        let (until, placement) = (end_of(view, lease), Arc::clone(&lease.placement));
        self.calendar.trim(&placement);
        for node in nodes_of(&placement) {
            self.on_node[node.index()].push(lease.id);
        }
        self.by_end.insert((until, lease.id));
        self.stays.insert(lease.id, Stay { until, placement });
    }

    /// Gives back what is left of a stay, if there is one.
    fn end(&mut self, id: LeaseId, now: Time) {
        let Some(Stay { until, placement }) = self.stays.remove(&id) else { return };
        self.by_end.remove(&(until, id));
        for node in nodes_of(&placement) {
            self.on_node[node.index()].retain(|known| *known != id);
        }
        self.calendar.release(&placement, now, Some(until));
        self.calendar.trim(&placement);
    }

    /// The rule by which it places.
    pub(super) fn rule(&self) -> FirstPlace<'_> {
        FirstPlace(&self.calendar)
    }

    /// The last that has a reservation.
    pub(super) fn last(&self) -> Option<Rank> {
        self.places.last_key_value().map(|(rank, _)| *rank)
    }

    /// The first that has a reservation, but not for now.
    pub(super) fn head(&self, now: Time) -> Option<Rank> {
        let waits = |place: &Option<Found>| place.as_ref().is_none_or(|found| found.at > now);
        self.places.iter().find(|(_, place)| waits(place)).map(|(rank, _)| *rank)
    }

    /// How many have a reservation for a later time, or find no place.
    pub(super) fn waiting(&self, now: Time) -> usize {
        self.places.len() - self.due_now(now).count()
    }

    /// Reservations for now, by rank.
    pub(super) fn due_now(&self, now: Time) -> impl Iterator<Item = (Rank, &Placement)> {
        let due = self.due.iter().take_while(move |(at, _)| *at <= now).map(|(_, rank)| *rank);
        due.map(|rank| {
            let found = self.places[&rank].as_ref();
            (rank, &found.expect("what is due has a place").placement)
        })
    }

    /// Gives a job behind all others its reservation; the place, if that is for now.
    pub(super) fn place(&mut self, view: &View<'_>, rank: Rank, job: &Job) -> Option<&Placement> {
        let now = view.now();
        let mut found =
            self.calendar.reserve(&job.spec.gangs, &choices(view, job), now, Time::NEVER);
        let nobody_waits = || self.head(now).is_none();
        if let Some(Found { at, until: until @ None, placement }) = &mut found
            && *at == now
            && nobody_waits()
        {
            // It is in nobody's way: as good as one that runs.
            self.calendar.release(placement, Time::NEVER, None);
            *until = Some(Time::NEVER);
        }
        self.due.extend(found.as_ref().map(|found| (found.at, rank)));
        if job.spec.gangs.len() > 1 {
            self.with_roles.insert(rank);
        }
        let place = self.places.entry(rank).or_insert(found);
        place.as_ref().filter(|found| found.at == now).map(|found| &found.placement)
    }

    /// Whether a job could start now beside all reservations so far.
    pub(super) fn fits_now(&mut self, view: &View<'_>, job: &Job) -> bool {
        let now = view.now();
        let found = self.calendar.reserve(&job.spec.gangs, &choices(view, job), now, now);
        found.is_some_and(|found| {
            self.calendar.undo(&found.placement, found.at, found.until);
            true
        })
    }
}

/// When a stay is believed to be over: as estimated, or when it is cut off. One that outlasts that
/// is believed to need a tenth more than it has run by then; one that outlasts that too, again.
fn end_of(view: &View<'_>, lease: &Lease) -> Time {
    let job = view.job(lease.job).expect("a lease belongs to a job");
    let begun = lease.started.unwrap_or(lease.since);
    let limit = job.spec.time_limit.map(|limit| begun + limit);
    let stop = lease.stop.map(|stop| stop.deadline);
    let cut_off = [limit, lease.until, stop].into_iter().flatten();
    let mut end = cut_off.fold(lease.expected_end, Time::min).max(lease.since);
    while end <= view.now() {
        end = end + overdue(end.since(lease.since));
    }
    end
}

fn nodes_of(placement: &Placement) -> impl Iterator<Item = NodeId> {
    // Parts are in order of nodes.
    placement.parts.chunk_by(|one, other| one.node == other.node).map(|parts| parts[0].node)
}
