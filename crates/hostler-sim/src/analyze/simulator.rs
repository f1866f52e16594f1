//! What figures ask of the published job simulator. Repeating it is the business of another crate:
//! whoever joins both hands it over with the rows of its table.

/// Jobs that come each minute in the published comparison, whatever the table says.
pub const PER_MINUTE: u32 = 1000;

/// What ranks a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Submission (FIFO).
    Submit,
    /// True duration (SJF).
    Duration,
    /// Median of the user (SJU).
    User,
    /// Median of the group (SJG).
    Group,
    /// Median of the group and GPU type (SJGG).
    GroupGpu,
}

/// The cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimulatedCluster {
    /// One node with so many GPUs.
    Single(u32),
    /// The real cluster at one fifth.
    Hetero,
}

/// How long one job waited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobWait {
    /// Seconds from submission to start.
    pub wait_s: f64,
    /// Whether it asked for a V100.
    pub v100: bool,
}

/// What the simulator made of its jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Simulated {
    /// Mean seconds from submission to end, over instances.
    pub avg_jct_s: f64,
    /// Mean seconds of waiting, over instances.
    pub avg_wait_s: f64,
    /// Every job, in the order of their ends.
    pub waits: Vec<JobWait>,
}

/// The published job simulator, with the rows of a table.
pub trait JobSimulator {
    /// How many jobs the table has.
    fn jobs(&self) -> usize;

    /// Runs all jobs, on nodes that are filled in order or kept in balance; or says why not.
    fn run(&self, rank: Rank, cluster: SimulatedCluster, pack: bool) -> Result<Simulated, String>;
}
