//! Where jobs come from.

use std::sync::Arc;

use hostler_core::id::JobId;
use hostler_core::job::JobSpec;
use hostler_core::units::Time;

/// Jobs in order of submission. Ids count up from zero in this order.
pub trait Arrivals {
    /// When the next job is submitted.
    fn next_at(&self) -> Option<Time>;

    /// The next job.
    fn take(&mut self) -> Option<(JobId, Arc<JobSpec>)>;
}

/// Jobs from a list.
pub struct Listed {
    jobs: Vec<(Time, Arc<JobSpec>)>,
    first: u32,
    next: u32,
}

impl Listed {
    /// The jobs of a list that is sorted by time.
    pub fn new(jobs: Vec<(Time, Arc<JobSpec>)>) -> Listed {
        assert!(jobs.is_sorted_by_key(|(at, _)| *at), "jobs are listed in order of submission");
        Listed { jobs, first: 0, next: 0 }
    }

    /// The same; the first of them has this number.
    pub fn numbered_from(self, first: JobId) -> Listed {
        Listed { first: first.0, ..self }
    }
}

impl Arrivals for Listed {
    fn next_at(&self) -> Option<Time> {
        self.jobs.get(self.next as usize).map(|(at, _)| *at)
    }

    fn take(&mut self) -> Option<(JobId, Arc<JobSpec>)> {
        let (_, spec) = self.jobs.get(self.next as usize)?;
        let id = JobId(self.first + self.next);
        self.next += 1;
        Some((id, Arc::clone(spec)))
    }
}
