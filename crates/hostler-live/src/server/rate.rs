//! How many requests each caller may make: one bucket for each token, and one for all who fail to
//! show a valid one.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

/// Requests a second for each token, and how many at once after a pause.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Requests that one second adds.
    pub per_second: f64,
    /// Requests that a full bucket holds.
    pub burst: f64,
}

/// The buckets.
pub struct Buckets {
    rate: Rate,
    tokens_max: usize,
    table: Mutex<HashMap<u64, Bucket>>,
}

struct Bucket {
    left: f64,
    at: Instant,
}

impl Buckets {
    /// Empty table for at most `tokens_max` callers at a time.
    pub fn new(rate: Rate, tokens_max: usize) -> Buckets {
        Buckets { rate, tokens_max, table: Mutex::new(HashMap::new()) }
    }

    /// Takes one request of `caller` at `now`; false when there is none left.
    pub fn take(&self, caller: u64, now: Instant) -> bool {
        let mut table = self.table.lock().expect("nothing panics while it holds the table");
        if table.len() >= self.tokens_max && !table.contains_key(&caller) {
            // A bucket that is full again says nothing that a missing one does not.
            let Rate { per_second, burst } = self.rate;
            table.retain(|_, bucket| bucket.level(now, per_second, burst) < burst);
            if table.len() >= self.tokens_max {
                return false;
            }
        }
        let full = Bucket { left: self.rate.burst, at: now };
        let bucket = table.entry(caller).or_insert(full);
        bucket.left = bucket.level(now, self.rate.per_second, self.rate.burst);
        bucket.at = now;
        if bucket.left < 1.0 {
            return false;
        }
        bucket.left -= 1.0;
        true
    }
}

impl Bucket {
    fn level(&self, now: Instant, per_second: f64, burst: f64) -> f64 {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left + passed * per_second).min(burst)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn buckets() -> Buckets {
        Buckets::new(Rate { per_second: 2.0, burst: 3.0 }, 2)
    }

    #[test]
    fn a_full_bucket_gives_its_burst_and_then_what_time_adds() {
        let (buckets, start) = (buckets(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        let taken = [0, 0, 0, 0, 499, 500, 501].map(|ms| buckets.take(1, at(ms)));
        assert_eq!(taken, [true, true, true, false, false, true, false]);
    }

    #[test]
    fn callers_do_not_share_and_idle_ones_make_room() {
        let (buckets, start) = (buckets(), Instant::now());
        assert!(buckets.take(1, start));
        assert!(buckets.take(2, start));
        assert!(!buckets.take(3, start), "the table is full of callers that matter");
        assert!(buckets.take(3, start + Duration::from_secs(1)));
    }
}
