//! The starts of a job, for people: where it ran, when, and how that ended. By them the output of
//! an earlier start is found.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::limits::{START_NODES_MAX, STARTS_MAX};

/// One start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// How often the job had been started before.
    pub restart: u32,
    /// Its lease.
    pub lease: u32,
    /// When it began, in microseconds.
    pub from: u64,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Its nodes.
    pub nodes: Vec<String>,
    /// Tasks on each of them.
    pub tasks: Vec<u32>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<StartEnd>,
    /// With which code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The first task that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_rank: Option<u32>,
}

/// How a start of a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartEnd {
    /// By itself.
    Own,
    /// It was stopped in favour of another job.
    Preempted,
    /// Its node was wanted for something else.
    Evicted,
    /// A person cancelled the job.
    Cancelled,
    /// It ran for too long.
    TimeLimit,
    /// A node failed, or nothing was heard of it.
    NodeFailed,
    /// It was cut short on its machine: nobody asked it to end.
    Interrupted,
    /// It never began.
    NotStarted,
}

/// Notes that a job starts. One that never began is forgotten with the next.
pub(crate) fn begin(starts: &mut Vec<Start>, start: Start) {
    starts.retain(|known| known.restart != start.restart);
    starts.push(start);
    let names = |starts: &[Start]| starts.iter().map(|start| start.nodes.len()).sum::<usize>();
    while starts.len() > STARTS_MAX || (starts.len() > 1 && names(starts) > START_NODES_MAX) {
        starts.remove(0);
    }
}

/// Notes that a start has come to its end.
pub(crate) fn end(
    starts: &mut [Start],
    lease: u32,
    at: u64,
    how: StartEnd,
    (exit_code, failed_rank): (Option<i32>, Option<u32>),
) {
    if let Some(start) = starts.iter_mut().rev().find(|start| start.lease == lease) {
        // What came to its own end has a code.
        let cut = how == StartEnd::Own && exit_code.is_none();
        let how = if cut { StartEnd::Interrupted } else { how };
        (start.to, start.end) = (Some(at.max(start.from)), Some(how));
        (start.exit_code, start.failed_rank) = (exit_code, failed_rank);
    }
}

/// The node of a task: ranks are given in order of nodes.
pub(crate) fn node_of<'a>(nodes: &'a [String], tasks: &[u32], rank: u32) -> Option<&'a str> {
    let mut first = 0;
    let at = tasks.iter().position(|tasks| {
        first += tasks;
        rank < first
    });
    nodes.get(at?).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(restart: u32, nodes: usize) -> Start {
        let nodes = vec!["n".to_owned(); nodes];
        Start { restart, lease: restart + 100, nodes, ..Start::default() }
    }

    #[test]
    fn the_newest_starts_are_kept_and_those_that_never_began_are_not() {
        let mut starts = Vec::new();
        (0..100).for_each(|restart| begin(&mut starts, start(restart, 1)));
        assert_eq!((starts.len(), starts[0].restart), (STARTS_MAX, 100 - STARTS_MAX as u32));
        end(&mut starts, 199, 7, StartEnd::NotStarted, (None, None));
        begin(&mut starts, Start { lease: 300, ..start(99, 1) });
        assert_eq!((starts.len(), starts[STARTS_MAX - 1].lease), (STARTS_MAX, 300));
        // Many names are kept of few starts.
        begin(&mut starts, start(100, START_NODES_MAX + 1));
        assert_eq!(starts.iter().map(|start| start.restart).collect::<Vec<_>>(), [100]);
    }

    #[test]
    fn tasks_are_found_on_their_nodes() {
        let nodes = ["a".to_owned(), "b".to_owned()];
        let found = [0, 1, 2, 3].map(|rank| node_of(&nodes, &[2, 1], rank));
        assert_eq!(found, [Some("a"), Some("a"), Some("b"), None]);
    }
}
