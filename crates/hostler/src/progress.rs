//! Progress on stderr: one bar per policy, one for reading. Silent when stderr is no terminal.

use std::time::Duration;

use hostler_core::job::Job;
use hostler_core::state::ClusterState;
use hostler_core::units::Time;
use hostler_core::watch::Watch;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Jobs between two updates of a bar.
const STRIDE: u64 = 64;

/// All bars of a command.
pub struct Bars {
    bars: MultiProgress,
    width: usize,
}

impl Bars {
    /// Bars whose names are at most `width` characters.
    pub fn new(width: usize) -> Bars {
        Bars { bars: MultiProgress::new(), width }
    }

    /// A bar that counts jobs.
    pub fn jobs(&self, name: &str, jobs: u64) -> ProgressBar {
        let bar = self.bars.add(ProgressBar::new(jobs));
        let template =
            "{prefix} {bar:30} {human_pos:>9} of {human_len} jobs  {elapsed}, {eta} left";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is valid"));
        bar.set_prefix(format!("{name:width$}", width = self.width));
        bar
    }
}

/// A bar that counts bytes.
pub fn bytes(name: &str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    let template = "{prefix} {bar:30} {bytes:>11} of {total_bytes}  {elapsed}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template).expect("the template is valid"));
    bar.set_prefix(name.to_owned());
    bar
}

/// A spinner for work of unknown length.
pub fn spinner(name: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(name.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Moves a bar as jobs end; several runs may move one.
pub struct Counter {
    bar: ProgressBar,
    ended: u64,
}

impl Counter {
    /// Counts on `bar`.
    pub fn new(bar: ProgressBar) -> Counter {
        Counter { bar, ended: 0 }
    }
}

impl Watch for Counter {
    fn retired(&mut self, _: Time, _: &ClusterState, _: &Job) {
        self.ended += 1;
        if self.ended.is_multiple_of(STRIDE) {
            self.bar.inc(STRIDE);
        }
    }
}
