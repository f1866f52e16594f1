//! What is kept of a job that is over: a million of them fit into 48 MB.

use crate::id::{JobId, ModelId, TenantId};
use crate::job::{Ending, Job, JobKind};
use crate::units::{Span, Time};

/// A job that is over.
#[derive(Clone, Copy, Debug)]
pub struct JobFigures {
    /// Which.
    pub job: JobId,
    /// Whose.
    pub tenant: TenantId,
    /// When it was submitted.
    pub submitted: Time,
    /// From its submission to its end.
    pub jct: Span,
    /// Time without resources, over all waits (held by a person counts).
    pub wait: Span,
    /// Reference work that it did; where nobody reported work, its time with resources.
    pub run: Span,
    /// Finish-time fairness; see [`super::Summary::fairness_avg`].
    pub fairness: f32,
    /// From the lowest bit: instances 17, kind 2, ending 3, model 7.
    packed: u32,
}

const _: () = assert!(size_of::<JobFigures>() <= 48, "a row grew");

const INSTANCES_MAX: u32 = (1 << 17) - 1;
const NO_MODEL: u32 = 127;
const KINDS: [JobKind; 2] = [JobKind::Training, JobKind::Batch];
const ENDINGS: [Ending; 5] =
    [Ending::Finished, Ending::Failed, Ending::Cancelled, Ending::TimedOut, Ending::Rejected];

impl JobFigures {
    /// The row of `job`, which ended now.
    pub(super) fn new(at: Time, job: &Job, ending: Ending, fairness: f32) -> JobFigures {
        let instances = job.spec.tasks().min(INSTANCES_MAX);
        let model = main_model(job).map_or(NO_MODEL, |model| model.0);
        let packed = instances | (job.spec.kind as u32) << 17 | (ending as u32) << 19 | model << 22;
        JobFigures {
            job: job.id,
            tenant: job.spec.tenant,
            submitted: job.submitted,
            jct: at.since(job.submitted),
            wait: job.ledger.waited,
            run: run_of(job),
            fairness,
            packed,
        }
    }

    /// Tasks that it asked for.
    pub fn instances(&self) -> u32 {
        self.packed & INSTANCES_MAX
    }

    /// What sort of work it was.
    pub fn kind(&self) -> JobKind {
        KINDS[(self.packed >> 17 & 3) as usize]
    }

    /// How it ended.
    pub fn ending(&self) -> Ending {
        ENDINGS[(self.packed >> 19 & 7) as usize]
    }

    /// The GPU model that gave it most GPU time; none when it used no GPU.
    pub fn model(&self) -> Option<ModelId> {
        let model = self.packed >> 22;
        (model != NO_MODEL).then_some(ModelId(model))
    }
}

/// Reference work that a job did; where nobody reported work, its time with resources.
pub(super) fn run_of(job: &Job) -> Span {
    if job.ledger.done == Span::ZERO { job.ledger.ran } else { job.ledger.done }
}

/// The GPU model that gave most GPU time, the first of equals.
fn main_model(job: &Job) -> Option<ModelId> {
    let served = job.ledger.served.iter().copied();
    let most = served.reduce(|most, next| if next.1 > most.1 { next } else { most });
    most.map(|(model, _)| model)
}
