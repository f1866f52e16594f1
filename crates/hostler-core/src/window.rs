//! Times for which nodes are kept: for the jobs of a reservation, or for nobody while people work
//! on them.
//!
//! Before such a time only jobs start on its nodes whose time limit ends in time; while it lasts,
//! only those that were submitted for it. What a job asks for says both, so a search for room needs
//! to know nothing else.

use serde::{Deserialize, Serialize};

use crate::id::{NodeId, WindowId};
use crate::job::Demand;
use crate::limits::ENDLESS_STAY;
use crate::units::{Span, Time};

/// A time for which nodes are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The nodes, ascending.
    pub nodes: Box<[NodeId]>,
    /// When it begins.
    pub from: Time,
    /// When it is over.
    pub until: Time,
    /// Whether other jobs that still run there when it begins are stopped, and wait again.
    pub evicts: bool,
}

/// For what a node is kept next, or now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The window.
    pub window: WindowId,
    /// Whether it has begun.
    pub begun: bool,
    /// The longest stays that are over before it begins.
    pub room: StayBound,
}

impl Kept {
    /// Whether tasks of a demand may start on a node that is kept, or is not.
    pub fn admits(kept: Option<Kept>, demand: &Demand) -> bool {
        match (kept, demand.window) {
            (None, window) => window.is_none(),
            (Some(kept), Some(window)) => kept.window == window && kept.begun,
            (Some(kept), None) => demand.stay.believed() <= kept.room,
        }
    }
}

/// How long a stay may last, in four steps for each doubling, from a minute on. Coarse, so that
/// jobs which ask for the same are still looked at together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StayBound(u8);

impl StayBound {
    /// Of a job: without an end. Of a node: nothing is over in time.
    pub const NONE: StayBound = StayBound(0);
    /// The longest that is told apart: some two thousand years.
    const LAST: u8 = 120;

    /// The shortest that holds a time limit.
    pub fn of_limit(limit: Option<Span>) -> StayBound {
        let Some(limit) = limit else { return StayBound::NONE };
        let holds = (1..=StayBound::LAST).find(|class| StayBound(*class).span() >= limit);
        holds.map_or(StayBound::NONE, StayBound)
    }

    /// The longest that is over within a time.
    pub fn within(span: Span) -> StayBound {
        let over = (1..=StayBound::LAST).rev().find(|class| StayBound(*class).span() <= span);
        over.map_or(StayBound::NONE, StayBound)
    }

    /// How long a stay is taken to last: one without an end as long as jobs without a limit may.
    pub fn believed(self) -> StayBound {
        if self.is_none() { StayBound::of_limit(Some(ENDLESS_STAY)) } else { self }
    }

    /// How long it is; nothing for none.
    pub fn span(self) -> Span {
        let Some(step) = self.0.checked_sub(1) else { return Span::ZERO };
        Span::from_secs((u64::from(4 + step % 4) * 15) << (step / 4))
    }

    /// Whether nothing is said.
    pub fn is_none(&self) -> bool {
        *self == StayBound::NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_rounded_up_and_room_is_rounded_down() {
        let minutes = |count: u64| Span::from_secs(60 * count);
        assert_eq!(StayBound::of_limit(Some(Span::from_secs(1))).span(), minutes(1));
        assert_eq!(StayBound::of_limit(Some(minutes(60))).span(), minutes(64));
        assert_eq!(StayBound::of_limit(Some(minutes(64))).span(), minutes(64));
        assert_eq!(StayBound::of_limit(None), StayBound::NONE);
        assert_eq!(StayBound::of_limit(Some(Span::MAX)), StayBound::NONE);
        assert_eq!(StayBound::within(Span::from_secs(59)), StayBound::NONE);
        assert_eq!(StayBound::within(minutes(95)).span(), minutes(80));
        assert_eq!(StayBound::within(Span::MAX), StayBound(StayBound::LAST));
    }

    #[test]
    fn who_is_over_in_time_may_start_and_who_came_for_the_window_once_it_began() {
        let limited = |secs| Demand {
            stay: StayBound::of_limit(Some(Span::from_secs(secs))),
            ..Demand::default()
        };
        let invited = Demand { window: Some(WindowId(1)), ..limited(60) };
        let kept = |window, begun, secs| {
            let room = StayBound::within(Span::from_secs(secs));
            Some(Kept { window: WindowId(window), begun, room })
        };
        let (soon, now, other) = (kept(1, false, 600), kept(1, true, 0), kept(2, true, 0));
        assert!(!Kept::admits(kept(1, false, 1), &invited), "a second is a second");
        let admitted =
            |demand: &Demand| [None, soon, now, other].map(|kept| Kept::admits(kept, demand));
        assert_eq!(admitted(&Demand::default()), [true, false, false, false]);
        let far = kept(1, false, 3 * 86_400);
        assert!(Kept::admits(far, &Demand::default()) && !Kept::admits(far, &limited(4 * 86_400)));
        assert_eq!(admitted(&limited(300)), [true, true, false, false]);
        assert_eq!(admitted(&limited(900)), [true, false, false, false]);
        assert_eq!(admitted(&invited), [false, false, true, false]);
    }
}
