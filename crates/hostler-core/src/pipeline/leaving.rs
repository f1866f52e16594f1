//! A running job that would leave its place to another, on trial: what becomes free by that depends
//! on how it leaves.

use crate::capacity::Capacity;
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
    pub(super) fn begin(
        view: &View<'_>,
        lease: &'v Lease,
        leave: Leave,
        later: &mut Capacity,
        bound: &mut FitBound<'_>,
    ) -> Option<Leaving<'v>> {
        let entirely = leave == Leave::Entirely && view.may_stop_for_good(lease);
        let suspends = !entirely && view.best_stop(lease)? == StopHow::Suspend;
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

    /// Leaves again after [`Leaving::all_come_back`].
    pub(super) fn leave_again(&self, later: &mut Capacity) {
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
