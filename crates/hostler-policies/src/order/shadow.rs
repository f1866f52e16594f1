//! The look ahead to the reservation of the head. No policy of its own.

use std::iter::Peekable;

use hostler_core::capacity::{Capacity, Overlay};
use hostler_core::job::Job;
use hostler_core::stage::Place;
use hostler_core::units::Time;
use hostler_core::view::View;

use super::head_room::HeadRoom;
use super::outlook::{Ending, Started, endings};

/// Memory for the look ahead, used again at each question; what is in it means nothing.
#[derive(Default)]
pub(super) struct Scratch {
    overlay: Overlay,
    copy: Capacity,
}

/// The look for the head's reservation: gives stays back in the order of their end until the head
/// fits.
pub(super) struct Shadow<'a> {
    pub(super) room: HeadRoom<'a>,
    ends: Peekable<Box<dyn Iterator<Item = Ending<'a>> + 'a>>,
    /// When the head is believed to start, once that is known.
    pub(super) at: Option<Time>,
}

impl<'a> Shadow<'a> {
    /// From what is free now on. `started` are stays that this question began before it came to the
    /// head.
    pub(super) fn new(
        view: &'a View<'a>,
        place: &'a dyn Place,
        head: &'a Job,
        started: &'a [Started],
        free: &Capacity,
        scratch: &'a mut Scratch,
    ) -> Shadow<'a> {
        let Scratch { overlay, copy } = scratch;
        let room = HeadRoom::new(&head.spec, place, free, overlay, copy);
        let ends: Box<dyn Iterator<Item = Ending<'a>> + 'a> = Box::new(endings(view, started));
        Shadow { room, ends: ends.peekable(), at: None }
    }

    /// Whether the head is believed to start before `end`; looks no further ahead than that.
    pub(super) fn falls_before(&mut self, end: Time, free: &Capacity) -> bool {
        // A job that nobody knows the end of is in the way even of a head that has to wait for
        // another such.
        let in_time = |at: Time| at < end || end == Time::NEVER;
        while self.at.is_none()
            && let Some(at) = self.ends.peek().map(|ending| ending.at).filter(|at| in_time(*at))
        {
            while let Some(ending) = self.ends.next_if(|ending| ending.at == at) {
                self.room.release(free, ending.placement);
            }
            self.at = self.room.fits().then_some(at);
            if at == Time::NEVER {
                self.room.keep_all();
            }
        }
        self.at.is_some_and(in_time)
    }
}
