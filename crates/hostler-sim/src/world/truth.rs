//! What really is, and what no policy may see: true run times and true use of GPUs.

use std::collections::BTreeMap;
use std::sync::Arc;

use hostler_core::id::JobId;
use hostler_core::job::{Estimate, JobSpec};
use hostler_core::predict::Predict;
use hostler_core::units::{Mib, Milli, Span};

/// True run time at reference speed of every job, by id, and what it uses of its GPUs.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    runs: Runs,
    /// Empty where nobody knows; sharing then costs nothing.
    uses: Arc<[Use]>,
}

/// True run times: of jobs that count up from zero, or of some.
#[derive(Clone, Debug)]
enum Runs {
    Listed(Arc<[Span]>),
    Some(Arc<BTreeMap<JobId, Span>>),
}

impl Default for Runs {
    fn default() -> Runs {
        Runs::Listed(Arc::default())
    }
}

/// What a job really uses of each device that it holds a part of, when it is alone there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Compute; may be less or more than it booked.
    pub gpu: Milli,
    /// Memory; what is beyond its guarantee it uses only while nobody else has booked it.
    pub mem: Mib,
}

impl Truth {
    /// Run times in the order of job ids.
    pub fn new(runs: impl IntoIterator<Item = Span>) -> Truth {
        Truth { runs: Runs::Listed(runs.into_iter().collect()), uses: Arc::default() }
    }

    /// Run times of some jobs, whatever their numbers.
    pub fn of(runs: impl IntoIterator<Item = (JobId, Span)>) -> Truth {
        Truth { runs: Runs::Some(Arc::new(runs.into_iter().collect())), uses: Arc::default() }
    }

    /// The same with what every job uses of its GPUs, in the order of job ids.
    pub fn with_uses(self, uses: impl IntoIterator<Item = Use>) -> Truth {
        Truth { uses: uses.into_iter().collect(), ..self }
    }

    /// Whether it is known what jobs use of their GPUs.
    pub fn knows_uses(&self) -> bool {
        !self.uses.is_empty()
    }

    /// What a job uses of each of its devices.
    pub(super) fn used(&self, job: JobId) -> Use {
        self.uses.get(job.index()).copied().unwrap_or_default()
    }

    /// True run time of a job; as good as none for one that is not known.
    pub fn run(&self, job: JobId) -> Span {
        match &self.runs {
            Runs::Listed(runs) => runs.get(job.index()).copied().unwrap_or_default(),
            Runs::Some(runs) => runs.get(&job).copied().unwrap_or_default(),
        }
    }
}

/// A predictor that knows the truth: how good a policy could be.
pub struct Oracle(pub Truth);

impl Predict for Oracle {
    fn estimate(&mut self, job: JobId, _: &JobSpec) -> Option<Estimate> {
        Some(Estimate { run: self.0.run(job), spread: Span::ZERO })
    }
}
