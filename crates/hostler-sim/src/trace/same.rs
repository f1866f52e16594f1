//! Equality of traces: same texts and numbers, whatever the ids and source lines.
//!
//! Ids depend on the order of first appearance, so a trace that was written and read again has
//! other ids than the one it was made from.

use super::table::{InstanceRow, JobRow, NodeRow, TaskRow, Trace};
use super::text::TextId;

impl PartialEq for Trace {
    fn eq(&self, other: &Trace) -> bool {
        self.meta == other.meta
            && same_rows(self, &self.nodes, other, &other.nodes)
            && same_rows(self, &self.jobs, other, &other.jobs)
            && same_rows(self, &self.tasks, other, &other.tasks)
            && same_rows(self, &self.instances, other, &other.instances)
    }
}

fn same_rows<R: TimedRow>(left: &Trace, lefts: &[R], right: &Trace, rights: &[R]) -> bool {
    let same_text = |(x, y): (TextId, TextId)| left.str(x) == right.str(y);
    let same_row = |(a, b): (&R, &R)| {
        a.numbers() == b.numbers() && a.texts().into_iter().zip(b.texts()).all(same_text)
    };
    lefts.len() == rights.len() && lefts.iter().zip(rights).all(same_row)
}

trait TimedRow: Copy + PartialEq {
    /// Its text columns, filled up with empty ones.
    fn texts(&self) -> [TextId; 6];
    /// The row without text and line.
    fn numbers(self) -> Self;
}

const NO: TextId = TextId::EMPTY;

impl TimedRow for NodeRow {
    fn texts(&self) -> [TextId; 6] {
        [self.node_id, self.pool, self.gpu_model, self.rack, self.labels, NO]
    }
    fn numbers(self) -> Self {
        NodeRow { node_id: NO, pool: NO, gpu_model: NO, rack: NO, labels: NO, line: 0, ..self }
    }
}

impl TimedRow for JobRow {
    fn texts(&self) -> [TextId; 6] {
        let JobRow { job_id, user, group_tag, queue, priority_class, workload, .. } = *self;
        [job_id, user, group_tag, queue, priority_class, workload]
    }
    fn numbers(self) -> Self {
        let part = JobRow { line: 0, job_id: NO, user: NO, group_tag: NO, ..self };
        JobRow { queue: NO, priority_class: NO, workload: NO, ..part }
    }
}

impl TimedRow for TaskRow {
    fn texts(&self) -> [TextId; 6] {
        [self.job_id, self.task, self.gpu_models, self.model, self.placement, NO]
    }
    fn numbers(self) -> Self {
        let part = TaskRow { line: 0, job_id: NO, task: NO, gpu_models: NO, ..self };
        TaskRow { model: NO, placement: NO, ..part }
    }
}

impl TimedRow for InstanceRow {
    fn texts(&self) -> [TextId; 6] {
        [self.job_id, self.task, self.node_id, NO, NO, NO]
    }
    fn numbers(self) -> Self {
        InstanceRow { line: 0, job_id: NO, task: NO, node_id: NO, ..self }
    }
}
