//! Who ran when, as text. For golden tests and small examples, not for a million jobs.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::id::JobId;
use crate::job::{Ending, Job, Phase};
use crate::placement::Lease;
use crate::state::ClusterState;
use crate::units::{Span, Time};
use crate::watch::Watch;

/// The stays of every job.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    jobs: BTreeMap<JobId, Line>,
    first_submit: Option<Time>,
    last_end: Time,
    /// Completion times of finished jobs, and how many.
    jct: (u128, u32),
    preemptions: u64,
}

#[derive(Clone, Debug, Default)]
struct Line {
    name: Box<str>,
    stays: Vec<(Time, Option<Time>)>,
    ending: Option<Ending>,
}

impl Timeline {
    /// One line for each job in order of submission, then the sums.
    ///
    /// A stay is `start..stop`, or `start..` when it goes on. How a job ended follows unless it
    /// did its work; one that waits and never ran is `waiting`.
    ///
    /// ```text
    /// a  0..100
    /// b  0..1 10..39
    /// avg jct 69.50  makespan 100  preemptions 1
    /// ```
    pub fn render(&self, state: &ClusterState) -> String {
        let names = self.jobs.values().map(|line| line.name.chars().count());
        let width = names.max().unwrap_or(0);
        let mut text = String::new();
        for line in self.jobs.values() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{:width$} ", line.name);
            line.render(&mut text);
            text.push('\n');
        }
        let avg = match self.jct {
            (_, 0) => "-".to_string(),
            (sum, count) => format!("{:.2}", sum as f64 / 1e6 / f64::from(count)),
        };
        let first_submit = self.first_submit.unwrap_or(Time::ZERO);
        let makespan = self.last_end.since(first_submit);
        let live = state.jobs().map(|job| u64::from(job.ledger.preemptions));
        let preemptions = self.preemptions + live.sum::<u64>();
        let _ = writeln!(text, "avg jct {avg}  makespan {makespan}  preemptions {preemptions}");
        text
    }

    /// The stays of a job, each with its end if that has come.
    pub fn stays(&self, job: JobId) -> &[(Time, Option<Time>)] {
        self.jobs.get(&job).map_or(&[], |line| &line.stays)
    }
}

impl Line {
    fn render(&self, text: &mut String) {
        for (start, stop) in &self.stays {
            let _ = write!(text, " {start}..");
            if let Some(stop) = stop {
                let _ = write!(text, "{stop}");
            }
        }
        let word = match self.ending {
            Some(Ending::Finished) => "",
            Some(Ending::Failed) => " failed",
            Some(Ending::Cancelled) => " cancelled",
            Some(Ending::TimedOut) => " timed out",
            Some(Ending::Rejected) => " rejected",
            None if self.stays.is_empty() => " waiting",
            None => "",
        };
        text.push_str(word);
    }
}

impl Watch for Timeline {
    fn submitted(&mut self, at: Time, job: &Job) {
        self.first_submit.get_or_insert(at);
        self.jobs.entry(job.id).or_default().name = job.spec.name.clone();
    }

    fn began(&mut self, at: Time, _: &ClusterState, job: &Job, _: &Lease) {
        let line = self.jobs.entry(job.id).or_default();
        line.stays.push((at, None));
    }

    fn ended(&mut self, at: Time, _: &ClusterState, job: &Job, _: &Lease) {
        let line = self.jobs.entry(job.id).or_default();
        if let Some((_, stop)) = line.stays.last_mut() {
            *stop = Some(at);
        }
    }

    fn retired(&mut self, at: Time, _state: &ClusterState, job: &Job) {
        let Phase::Done(ending) = job.phase else { unreachable!("{:?} is over", job.id) };
        self.jobs.entry(job.id).or_default().ending = Some(ending);
        self.preemptions += u64::from(job.ledger.preemptions);
        if ending == Ending::Finished {
            let Span(jct) = at.since(job.submitted);
            self.jct = (self.jct.0 + u128::from(jct), self.jct.1 + 1);
        }
        if job.ledger.first_start.is_some() {
            self.last_end = at;
        }
    }
}
