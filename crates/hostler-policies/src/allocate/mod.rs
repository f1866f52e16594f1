//! Shares of time on GPU types for a set of jobs: the optimisation policies as pure functions.
//!
//! An [`Instance`] is the whole question, an [`Allocation`] the whole answer; nothing here knows
//! the engine, the clock or a round. Turning shares into starts and stops is the business of the
//! policies. `X` of the literature is `Allocation::shares`, `T` is `JobRow::rates`.
//!
//! Bad numbers are refused with an [`AllocateError`]; a problem that has no answer, or a solver
//! that gives up, leads to a [`Fallback`] that the allocation names.

mod allox;
mod assignment;
mod check;
mod classes;
mod closed;
mod fifo;
mod finish_time;
mod formulate;
mod makespan;
mod max_min;
mod pop;
mod programmes;
mod shortest;
mod slices;
mod strategy_proof;
mod sum;
mod water_filling;

pub use allox::Allox;
pub use check::{is_feasible, violation};
pub use classes::{Class, ClassPair, Classes, Traits};
pub use closed::{
    Isolated, Proportional, isolated_fallback, isolated_rates, isolated_shares, proportional_rates,
};
pub use fifo::{Fifo, FifoPacked, FifoPerf};
pub use finish_time::FinishTime;
pub use formulate::{Floor, Formulation, Goal, Spread};
pub use makespan::Makespan;
pub use max_min::MaxMin;
pub use pop::{Pop, in_parts};
pub use programmes::{Grouped, Programmes};
pub use shortest::Shortest;
pub use slices::TimeSlices;
pub use strategy_proof::StrategyProof;
pub use sum::SumThroughput;
pub use water_filling::WaterFilling;

/// One optimisation instance. GPU types are numbered from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instance {
    /// GPUs of each type.
    pub workers: Vec<f64>,
    /// Price of a GPU of each type; 1 where nobody asks for money.
    pub prices: Vec<f64>,
    /// The jobs, oldest first: their order is the order of `fifo`.
    pub jobs: Vec<JobRow>,
    /// Which kinds of jobs may share a GPU, and how fast they are then. Empty: none.
    pub pairs: Vec<PairRow>,
    /// Groups of jobs that share fairly among each other first. Empty: none.
    pub entities: Vec<Entity>,
}

/// What a solver knows about one job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// Steps per second of the whole gang on each type; 0 where it does not fit.
    pub rates: Vec<f64>,
    /// What the table of pairs calls this job: jobs of one kind behave alike in pairs.
    pub kind: u32,
    /// GPUs of the gang, all of one type.
    pub gang: u32,
    /// Priority weight; twice the weight, twice the share.
    pub weight: f64,
    /// Steps left to do.
    pub steps_left: f64,
    /// Whether that is more than a guess: it was told, or estimated and not outlasted so far.
    pub end_is_known: bool,
    /// Seconds since the job arrived.
    pub age_secs: f64,
    /// Seconds that the work done so far would have taken on an isolated share.
    pub finish_credit: f64,
    /// Seconds to the deadline, if it has one.
    pub slack_secs: Option<f64>,
    /// Index in `Instance::entities`.
    pub entity: Option<u32>,
    /// The type that it holds now and that policies which never migrate keep.
    pub held_type: Option<usize>,
    /// Number by which an allocator with a memory knows the job again.
    pub number: u32,
    /// Number of the job that it shared GPUs with by the last solution.
    pub partner: Option<u32>,
    /// Part of its GPUs that it is expected to use; all of them where nobody knows.
    pub gpu_use: f64,
    /// Whether it has run.
    pub has_run: bool,
}

impl Default for JobRow {
    fn default() -> JobRow {
        JobRow {
            rates: Vec::new(),
            kind: 0,
            gang: 1,
            weight: 1.0,
            steps_left: 1.0,
            end_is_known: true,
            age_secs: 0.0,
            finish_credit: 0.0,
            slack_secs: None,
            entity: None,
            held_type: None,
            number: 0,
            partner: None,
            gpu_use: 1.0,
            has_run: false,
        }
    }
}

/// How fast jobs of two kinds run when they share a GPU; for gangs of equal size only.
#[derive(Clone, Debug, PartialEq)]
pub struct PairRow {
    /// Kind of the first job.
    pub first: u32,
    /// Kind of the second job; may be the same.
    pub second: u32,
    /// Steps per second of the first and of the second job, for each type; 0 where it fails.
    pub rates: Vec<(f64, f64)>,
    /// Whether that is more than a hope: they were seen together, on some type at least.
    pub seen: bool,
}

/// A group of jobs that counts as one when shares are dealt out.
#[derive(Clone, Debug, PartialEq)]
pub struct Entity {
    /// Weight among the entities.
    pub weight: f64,
    /// How it divides its share among its jobs.
    pub inner: Inner,
}

/// How an entity divides its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// In proportion to the weights of its jobs.
    Fairness,
    /// All to its first job.
    Fifo,
}

/// Shares of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocation {
    /// Share of its time that each job spends alone on each type.
    pub shares: Vec<Vec<f64>>,
    /// Shares of time that two jobs spend together; what is not listed is 0.
    pub pairs: Vec<PairShare>,
    /// Value of the objective; the policy says of which.
    pub objective: f64,
    /// What was given instead of an optimum, if anything.
    pub fallback: Option<Fallback>,
}

/// Share of time that two jobs spend together on one type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairShare {
    /// Index of one job, less than the other.
    pub first: usize,
    /// Index of the other job.
    pub second: usize,
    /// The GPU type.
    pub gpu: usize,
    /// Part of the time of both.
    pub share: f64,
}

/// What stands in for an optimum that does not exist or was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// The deadlines cannot all be met: solved without any.
    DeadlinesDropped,
    /// The solver gave up: every job has an equal part of the cluster.
    Isolated,
    /// The solver gave up after some levels were filled: the last of them.
    LastLevel,
    /// Too large as a whole: parts of the jobs on parts of the cluster.
    Parts,
}

/// Whether a policy sees that types differ and that jobs can share a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateKnowledge {
    /// Every type counts as equally fast.
    Agnostic,
    /// The measured rates.
    Aware,
    /// The measured rates, and those of pairs.
    Packed,
}

/// A rule that deals out time.
pub trait Allocate: Send {
    /// The shares of an instance.
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError>;
}

/// What is wrong with an instance.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AllocateError {
    /// No GPU at all, yet there are jobs.
    #[error("the cluster has no GPUs for {jobs} jobs; add nodes or wait for them")]
    NoWorkers {
        /// Jobs that ask.
        jobs: usize,
    },
    /// A number that is not finite or is negative.
    #[error("invalid `{what}` of item {index}: {value}; expected a finite number, not negative")]
    BadNumber {
        /// Which field.
        what: &'static str,
        /// Index of the job, type, pair or entity.
        index: usize,
        /// What it holds.
        value: f64,
    },
    /// A list whose length is not the number of types.
    #[error("`{what}` of item {index} has {found} entries; expected one for each of {types} types")]
    WrongLength {
        /// Which field.
        what: &'static str,
        /// Index of the job or pair.
        index: usize,
        /// Entries found.
        found: usize,
        /// Number of types.
        types: usize,
    },
    /// A job that runs on no type which the cluster has.
    #[error("job {job} runs on no GPU type of the cluster; refuse it when it is submitted")]
    NoRate {
        /// Index of the job.
        job: usize,
    },
    /// A number that names nothing.
    #[error("`{what}` of job {job} names number {number}, which does not exist")]
    Unknown {
        /// Which field.
        what: &'static str,
        /// Index of the job.
        job: usize,
        /// What it names.
        number: usize,
    },
    /// More than the policy can take.
    #[error("too many {what}: {found}; the limit is {limit}")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many.
        found: usize,
        /// How many at most.
        limit: usize,
    },
    /// A gang where the policy knows single GPUs only.
    #[error("job {job} asks for {gang} GPUs; this policy takes jobs of one GPU only")]
    Gang {
        /// Index of the job.
        job: usize,
        /// GPUs that it asks for.
        gang: u32,
    },
}
