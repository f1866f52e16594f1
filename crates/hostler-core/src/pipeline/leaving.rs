//! Running jobs that would leave their places to another, on trial: what becomes free by that
//! depends on how they leave.

use crate::capacity::{Capacity, Overlay};
use crate::decision::StopHow;
use crate::fit_bound::FitBound;
use crate::placement::{Lease, Placement};
use crate::view::View;

/// How stays leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    /// As it costs them least.
    Cheaply,
    /// With all that they hold: who is suspended keeps its memory, and takes more.
    Entirely,
}

/// A stay that would be stopped in favour of another.
pub(super) struct Leaving<'v> {
    pub(super) lease: &'v Lease,
    /// Memory of its nodes that it takes while it is suspended; none when it is saved instead.
    parking: Option<Placement>,
}

impl<'v> Leaving<'v> {
    /// Gives back what a stay leaves; none when it is left alone, and `later` is as before.
    fn begin(
        view: &View<'_>,
        lease: &'v Lease,
        leave: Leave,
        later: &mut Capacity,
        bound: &mut FitBound<'_>,
    ) -> Option<Leaving<'v>> {
        let suspends = suspends(view, lease, leave)?;
        bound.release(later, &lease.placement);
        let parking = view.parking(lease).filter(|_| suspends);
        let parking = parking.filter(|parking| later.keep(parking).is_ok());
        if suspends && parking.is_none() && !view.may_stop_for_good(lease) {
            later.book_again(&lease.placement);
            return None;
        }
        Some(Leaving { lease, parking })
    }

    /// How it would be stopped.
    pub(super) fn how(&self) -> StopHow {
        if self.parking.is_some() { StopHow::Suspend } else { StopHow::Checkpoint }
    }

    /// Whether it would leave more if it was saved instead.
    pub(super) fn could_leave_more(&self, view: &View<'_>) -> bool {
        self.parking.is_some() && view.may_stop_for_good(self.lease)
    }

    /// All of them stay after all. Nobody waits in memory any more before the first is back: what
    /// one waits in may be what another left, and others may have come back before.
    pub(super) fn all_come_back(leaving: &[Leaving<'_>], later: &mut Capacity) {
        let parked = leaving.iter().filter_map(|leaving| leaving.parking.as_ref());
        parked.for_each(|parking| later.release(parking));
        leaving.iter().for_each(|leaving| later.book_again(&leaving.lease.placement));
    }

    /// Leaves, as was found before that it may.
    fn leave_again(&self, later: &mut Capacity) {
        later.release(&self.lease.placement);
        self.parking.iter().for_each(|parking| later.book_again(parking));
    }

    /// Whether its place is still left to it, and taken for it then.
    pub(super) fn may_stay(&self, later: &mut Capacity) -> bool {
        self.parking.iter().for_each(|parking| later.release(parking));
        let stays = later.keep(&self.lease.placement).is_ok();
        if !stays {
            self.parking.iter().for_each(|parking| later.book_again(parking));
        }
        stays
    }
}

/// Whether a stay would be suspended; none when it is left alone.
fn suspends(view: &View<'_>, lease: &Lease, leave: Leave) -> Option<bool> {
    let entirely = leave == Leave::Entirely && view.may_stop_for_good(lease);
    Some(!entirely && view.best_stop(lease)? == StopHow::Suspend)
}

/// Running jobs that leave one after the other. Those that do so with all that they hold are only
/// counted as gone until somebody looks for a place: most who leave on trial come back, and a count
/// costs far less than the books.
pub(super) struct Trial<'t, 'v> {
    later: &'t mut Capacity,
    /// What is free without those that are only counted as gone.
    without: &'t mut Overlay,
    lifted: Vec<Leaving<'v>>,
    /// How many of them have left.
    left: usize,
}

impl<'t, 'v> Trial<'t, 'v> {
    pub(super) fn new(later: &'t mut Capacity, without: &'t mut Overlay) -> Trial<'t, 'v> {
        Trial { later, without, lifted: Vec::new(), left: 0 }
    }

    /// Lifts one more, unless it is left alone.
    pub(super) fn lift(
        &mut self,
        view: &View<'_>,
        lease: &'v Lease,
        leave: Leave,
        bound: &mut FitBound<'_>,
    ) -> bool {
        if bound.counts() && suspends(view, lease, leave) == Some(false) {
            bound.release_beside(self.later, self.without, &lease.placement);
            self.lifted.push(Leaving { lease, parking: None });
            return true;
        }
        let leaving = Leaving::begin(view, lease, leave, self.lifted(), bound);
        let lifted = leaving.is_some();
        self.lifted.extend(leaving);
        self.left = self.lifted.len();
        lifted
    }

    pub(super) fn len(&self) -> usize {
        self.lifted.len()
    }

    /// What is free, whoever is counted as gone.
    pub(super) fn later(&self) -> &Capacity {
        self.later
    }

    /// What is free without them.
    pub(super) fn lifted(&mut self) -> &mut Capacity {
        if self.left < self.lifted.len() {
            let counted = &self.lifted[self.left..];
            counted.iter().for_each(|leaving| leaving.leave_again(self.later));
            self.left = self.lifted.len();
            self.without.clear();
        }
        self.later
    }

    /// Asks something while all of them are there.
    pub(super) fn apart<Answer>(&mut self, ask: impl FnOnce(&Capacity) -> Answer) -> Answer {
        Leaving::all_come_back(&self.lifted[..self.left], self.later);
        let answer = ask(self.later);
        let left = &self.lifted[..self.left];
        left.iter().for_each(|leaving| leaving.leave_again(self.later));
        answer
    }

    /// All of them leave; the answer is who they are.
    pub(super) fn leave(mut self) -> Vec<Leaving<'v>> {
        self.lifted();
        self.lifted
    }

    /// All of them stay; the answer is who they are.
    pub(super) fn come_back(self) -> Vec<Leaving<'v>> {
        Leaving::all_come_back(&self.lifted[..self.left], self.later);
        self.lifted
    }
}
