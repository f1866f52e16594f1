//! Buckets of time that widen as a run goes on, so that their number stays bounded.

use crate::units::{Span, Time};

/// Equal buckets from the first instant of interest; their width doubles when they run out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    origin: Option<Time>,
    width: Span,
    count: usize,
}

impl Grid {
    /// An even number of buckets, of one second at first.
    pub(super) fn new(count: usize) -> Grid {
        assert!(count.is_multiple_of(2), "buckets merge in pairs");
        Grid { origin: None, width: Span::from_secs(1), count }
    }

    /// The first bucket begins at `at`, unless it has begun.
    pub(super) fn open(&mut self, at: Time) {
        self.origin.get_or_insert(at);
    }

    /// Where the first bucket begins, once that is known.
    pub(super) fn origin(&self) -> Option<Time> {
        self.origin
    }

    /// Number of buckets.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Width of each bucket.
    pub(super) fn width(&self) -> Span {
        self.width
    }

    /// Whether `at` lies beyond the last bucket.
    pub(super) fn is_short(&self, at: Time) -> bool {
        let reach = self.width.0.saturating_mul(self.count as u64);
        self.offset(at) >= reach && reach < u64::MAX
    }

    /// Makes the buckets twice as wide; the caller merges what it keeps for each pair.
    pub(super) fn widen(&mut self) {
        self.width = self.width + self.width;
    }

    /// The bucket that `at` lies in.
    pub(super) fn bucket(&self, at: Time) -> usize {
        (self.offset(at) / self.width.0) as usize
    }

    /// Where a bucket begins.
    pub(super) fn start(&self, bucket: usize) -> Time {
        self.origin.unwrap_or(Time::ZERO) + Span(self.width.0.saturating_mul(bucket as u64))
    }

    /// Number of buckets that begin before `until`.
    pub(super) fn filled(&self, until: Time) -> usize {
        let buckets = self.offset(until).div_ceil(self.width.0) as usize;
        buckets.min(self.count)
    }

    fn offset(&self, at: Time) -> u64 {
        self.origin.map_or(0, |origin| at.since(origin).0)
    }
}
