//! One lease that the agent has not been told to forget.

use hostler_core::decision::StopHow;
use hostler_core::id::LeaseId;

use crate::wire::{FromAgent, LeaseReport, Stage};

/// Beats between two reports of a lease that goes on, at most: they only mend lost messages.
const REPEAT_BEATS_MAX: u32 = 64;

/// What the agent knows about a lease.
#[derive(Debug)]
pub(super) struct Held {
    /// The shim that has its tasks, by the lease that it was started for.
    pub shim: LeaseId,
    /// Whether its tasks are to go on that were suspended under this number.
    pub resumes: bool,
    stage: Stage,
    /// The last order to stop it.
    pub stop: Option<(StopHow, u64)>,
    /// The last progress, for a daemon that was away.
    pub progress: Option<FromAgent>,
    /// Beats until the stage is reported again, and the pause after that.
    repeat_in: u32,
    pause: u32,
    /// Sum and number of the samples of its use of GPUs.
    samples: (u64, u64),
    /// Millijoules that it used so far, where that is measured.
    energy: Option<u64>,
}

impl Held {
    /// A lease that nothing is known of but its shim.
    pub fn new(shim: LeaseId) -> Held {
        Held {
            shim,
            resumes: false,
            stage: Stage::Starting,
            stop: None,
            progress: None,
            repeat_in: 1,
            pause: 1,
            samples: (0, 0),
            energy: None,
        }
    }

    /// The order to stop it that is not carried out yet.
    pub fn stop_due(&self) -> Option<(StopHow, u64)> {
        let suspended = matches!(self.stage, Stage::Suspended { .. });
        let done = |how| how == StopHow::Suspend && suspended;
        self.stop.filter(|(how, _)| !self.is_over() && !done(*how))
    }

    /// It is not to be suspended any more.
    pub fn stays(&mut self) {
        self.stop.take_if(|(how, _)| *how == StopHow::Suspend);
    }

    /// Whether nothing of it runs any more.
    pub fn is_over(&self) -> bool {
        order(&self.stage) == 2
    }

    /// What the daemon is told.
    pub fn report(&self, lease: LeaseId) -> LeaseReport {
        LeaseReport { lease, stage: self.stage.clone() }
    }

    /// Takes in what it uses of its GPUs while it runs.
    pub fn sampled(&mut self, milli: u32) {
        if self.stage == Stage::Running {
            self.samples.0 += u64::from(milli);
            self.samples.1 += 1;
        }
    }

    /// Takes in the millijoules that it used so far.
    pub fn used(&mut self, sum: u64) {
        self.energy = self.energy.max(Some(sum));
    }

    /// Takes a later stage; says whether it was one. The first end counts; up to then tasks may be
    /// suspended and go on. What the job said about its use of GPUs comes before what was measured
    /// from outside.
    pub fn advance(&mut self, mut stage: Stage) -> bool {
        let turns = order(&stage) == 1 && order(&self.stage) == 1 && stage != self.stage;
        if order(&stage) <= order(&self.stage) && !turns {
            return false;
        }
        if let Stage::Ended { gpu_milli: gpu_milli @ None, .. } = &mut stage {
            let (sum, count) = self.samples;
            *gpu_milli = sum.checked_div(count).and_then(|mean| u32::try_from(mean).ok());
        }
        if let Stage::Ended { notes, .. } = &mut stage {
            notes.joules = notes.joules.max(self.energy.map(|sum| sum / 1000));
        }
        self.stage = stage;
        (self.repeat_in, self.pause) = (1, 1);
        true
    }

    /// Whether the report is repeated with this beat: always when it is over and the daemon has
    /// not said `Forget`, else ever more rarely.
    pub fn is_due(&mut self) -> bool {
        if self.is_over() {
            return true;
        }
        self.repeat_in -= 1;
        if self.repeat_in > 0 {
            return false;
        }
        self.pause = (self.pause * 2).min(REPEAT_BEATS_MAX);
        self.repeat_in = self.pause;
        true
    }
}

fn order(stage: &Stage) -> u8 {
    match stage {
        Stage::Starting => 0,
        Stage::Running | Stage::Suspended { .. } => 1,
        Stage::NotStarted { .. }
        | Stage::Impossible { .. }
        | Stage::Ended { .. }
        | Stage::Unknown => 2,
    }
}
