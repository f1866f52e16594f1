//! What goes wrong, and when: nodes that fail, starts that fail, reports that are late, repeated
//! or never come.

use std::collections::{BTreeMap, VecDeque};

use hostler_core::id::{JobId, NodeId};
use hostler_core::units::{Span, Time};

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// A node fails and may come back.
    NodeDown {
        /// Which.
        node: NodeId,
        /// When.
        at: Time,
        /// For how long; for ever when none.
        lasts: Option<Span>,
    },
    /// Starts of a job fail.
    StartFails {
        /// Whose.
        job: JobId,
        /// How many.
        times: u32,
    },
    /// Reports on a job go astray.
    Report {
        /// Whose.
        job: JobId,
        /// Which report.
        of: Report,
        /// In which way.
        astray: ReportFault,
        /// How many.
        times: u32,
    },
}

/// A report of the executor on a stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Report {
    /// It started, or did not.
    Start,
    /// It stopped because it was told to.
    Stop,
    /// It ended by itself.
    Finish,
}

/// How a report goes astray.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFault {
    /// It arrives later.
    Late(Span),
    /// It arrives, and again later.
    Twice(Span),
    /// It does not arrive.
    Never,
}

/// The faults that are still to come, by whom they hit.
#[derive(Debug, Default)]
pub(super) struct Faults {
    starts: BTreeMap<JobId, u32>,
    /// Used up in the order in which they are listed.
    reports: BTreeMap<(JobId, Report), VecDeque<(ReportFault, u32)>>,
}

impl Faults {
    pub(super) fn new(faults: &[InjectedFault]) -> Faults {
        let mut all = Faults::default();
        for fault in faults {
            match *fault {
                InjectedFault::NodeDown { .. } => {}
                InjectedFault::StartFails { job, times } => {
                    let starts = all.starts.entry(job).or_default();
                    *starts = starts.saturating_add(times);
                }
                InjectedFault::Report { job, of, astray, times } => {
                    all.reports.entry((job, of)).or_default().push_back((astray, times));
                }
            }
        }
        all
    }

    /// Whether this start fails.
    pub(super) fn start_fails(&mut self, job: JobId) -> bool {
        match self.starts.get_mut(&job) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            Some(_) | None => false,
        }
    }

    /// When a report arrives: not at all, once or twice.
    pub(super) fn arrivals(&mut self, at: Time, job: JobId, of: Report) -> [Option<Time>; 2] {
        match self.next_astray(job, of) {
            Some(ReportFault::Late(by)) => [Some(at + by), None],
            Some(ReportFault::Twice(by)) => [Some(at), Some(at + by)],
            Some(ReportFault::Never) => [None, None],
            None => [Some(at), None],
        }
    }

    fn next_astray(&mut self, job: JobId, of: Report) -> Option<ReportFault> {
        let listed = self.reports.get_mut(&(job, of))?;
        while listed.front().is_some_and(|(_, left)| *left == 0) {
            listed.pop_front();
        }
        let (astray, left) = listed.front_mut()?;
        *left -= 1;
        Some(*astray)
    }
}
