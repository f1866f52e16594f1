//! What saving costs a job, and how long a stay takes that saves by itself.
//!
//! A stay saves after each `every` of its work, unless it is done then. So it takes its work and a
//! whole number of saves; no mean speed tells its end, but a division does.

use serde::{Deserialize, Serialize};

use crate::units::{Rate, Span};

/// Cost and rhythm of saving a job's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Time to save.
    pub save: Span,
    /// Time to load and go on.
    pub load: Span,
    /// It saves by itself this often; zero means only when asked.
    pub every: Span,
    /// It cannot be saved: stopped, it begins anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never: bool,
    /// It minds being suspended: its owner says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_suspend: bool,
}

impl Checkpoint {
    /// After how much work of a stay it saves by itself, and how long that takes; none where it
    /// does not, or at no cost.
    pub fn rhythm(self) -> Option<(Span, Span)> {
        let matters = !self.never && self.every > Span::ZERO && self.save > Span::ZERO;
        matters.then_some((self.every, self.save))
    }

    /// Saves that a stay makes by itself before `work` is done, where they take time; whoever is
    /// done does not save.
    pub fn saves_before(self, work: Span) -> u64 {
        self.rhythm().map_or(0, |(every, _)| work.0.saturating_sub(1) / every.0)
    }

    /// Time that these take.
    pub fn pauses(self, work: Span) -> Span {
        Span(self.saves_before(work).saturating_mul(self.save.0))
    }

    /// Time that a stay of which `worked` is done takes for `left` more at `rate`. A save that is
    /// due at `worked` is still to come.
    pub fn time_for(self, worked: Span, left: Span, rate: Rate) -> Span {
        let pauses = self.pauses(worked + left).saturating_sub(self.pauses(worked));
        pauses + left.at(rate)
    }

    /// What a stay of which `worked` is done does in `elapsed` at `rate`, rounded down: the other
    /// way round than [`Checkpoint::time_for`].
    pub fn work_in(self, worked: Span, elapsed: Span, rate: Rate) -> Span {
        let Some((every, save)) = self.rhythm() else { return elapsed.work_at(rate) };
        let since = Span(worked.0 - self.saves_before(worked) * every.0);
        // From the last save on, one round is like another.
        let (elapsed, round) = (elapsed + since.at(rate), every.at(rate) + save);
        let (rounds, rest) = (elapsed.0 / round.0, Span(elapsed.0 % round.0));
        let done = Span(rounds.saturating_mul(every.0)) + rest.work_at(rate).min(every);
        done.saturating_sub(since)
    }
}

#[cfg(test)]
mod tests {
    use super::Checkpoint;
    use crate::units::{Rate, Span};

    fn secs(secs: u64) -> Span {
        Span::from_secs(secs)
    }

    /// Saves for 4 s after each 30 s of work.
    fn saving() -> Checkpoint {
        Checkpoint { save: secs(4), every: secs(30), ..Checkpoint::default() }
    }

    #[test]
    fn a_stay_pays_for_the_saves_before_its_end_and_for_no_other() {
        let cases = [(0, 0), (1, 1), (29, 29), (30, 30), (31, 35), (60, 64), (61, 69), (100, 112)];
        for (work, time) in cases {
            let takes = saving().time_for(Span::ZERO, secs(work), Rate::FULL);
            assert_eq!(takes, secs(time), "{work} s of work");
            assert_eq!(saving().work_in(Span::ZERO, takes, Rate::FULL), secs(work));
        }
        // At half the speed work takes twice as long, saves do not.
        let half = Rate(500_000);
        assert_eq!(saving().time_for(Span::ZERO, secs(60), half), secs(124));
        assert_eq!(saving().work_in(Span::ZERO, secs(124), half), secs(60));
        // The last microsecond is not done when the save is over.
        let more = Span(secs(60).0 + 1);
        assert_eq!(saving().time_for(Span::ZERO, more, Rate::FULL), Span(secs(68).0 + 1));
    }

    #[test]
    fn nothing_is_done_while_it_saves() {
        let done = |time: u64| saving().work_in(Span::ZERO, secs(time), Rate::FULL);
        assert_eq!([29, 30, 33, 34, 35].map(done), [29, 30, 30, 30, 31].map(secs));
        assert_eq!([63, 64, 66, 68, 69].map(done), [59, 60, 60, 60, 61].map(secs));
    }

    #[test]
    fn a_stay_goes_on_from_where_it_is() {
        // 50 done: 10 to the next save.
        assert_eq!(saving().time_for(secs(50), secs(10), Rate::FULL), secs(10));
        assert_eq!(saving().time_for(secs(50), secs(50), Rate::FULL), secs(58));
        assert_eq!(saving().work_in(secs(50), secs(58), Rate::FULL), secs(50));
        assert_eq!(saving().work_in(secs(50), secs(12), Rate::FULL), secs(10));
        // A save that is due comes first.
        assert_eq!(saving().time_for(secs(60), secs(1), Rate::FULL), secs(5));
        assert_eq!(saving().work_in(secs(60), secs(5), Rate::FULL), secs(1));
        assert_eq!(saving().work_in(secs(60), secs(3), Rate::FULL), Span::ZERO);
    }

    #[test]
    fn saves_that_cost_nothing_or_never_come_change_nothing() {
        let free = Checkpoint { save: Span::ZERO, ..saving() };
        let never = Checkpoint { never: true, ..saving() };
        let when_asked = Checkpoint { every: Span::ZERO, ..saving() };
        for checkpoint in [free, never, when_asked] {
            assert_eq!(checkpoint.time_for(secs(7), secs(100), Rate(500_000)), secs(200));
            assert_eq!(checkpoint.work_in(secs(7), secs(200), Rate(500_000)), secs(100));
        }
    }

    #[test]
    fn what_never_ends_stays_within_bounds() {
        let takes = saving().time_for(Span::MAX, Span::MAX, Rate(1));
        assert_eq!(takes, Span::MAX);
        assert!(saving().work_in(Span::MAX, Span::MAX, Rate(1)) < Span::MAX);
    }
}
