//! Measures what a benchmark took: wall time, and processor time of this thread, which other work
//! on the machine hardly changes.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// A measurement that began.
pub struct Stopwatch {
    wall: Instant,
    cpu: f64,
}

/// A measurement that ended.
#[derive(Clone, Copy, Default)]
pub struct Took {
    /// Seconds on the clock.
    #[allow(dead_code, reason = "not every benchmark prints it")]
    pub wall: f64,
    /// Seconds that this thread was computing.
    pub cpu: f64,
}

impl Stopwatch {
    /// Begins now.
    pub fn start() -> Stopwatch {
        Stopwatch { wall: Instant::now(), cpu: cpu_secs() }
    }

    /// What it took up to now.
    pub fn took(&self) -> Took {
        Took { wall: self.wall.elapsed().as_secs_f64(), cpu: cpu_secs() - self.cpu }
    }
}

fn cpu_secs() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
