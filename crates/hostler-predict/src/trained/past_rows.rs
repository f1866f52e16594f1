//! Jobs that are over, as they lie in a model file: what a blend is taught anew by.
//!
//! A blend is what it has seen, and in which order; the jobs themselves say that in fewer words
//! than all that it knows would need.

use hostler_core::id::{GroupId, ModelSet, QueueId, TenantId};
use hostler_core::units::{Span, Time};
use serde::{Deserialize, Serialize};

use super::{Listed, ModelFile, Names, bind_set, names_of};
use crate::evaluate::Past;
use crate::features::Features;
use crate::limits::LESSONS_KEPT_MAX;

/// A job that is over; users, groups, queues and GPU models are places in the lists of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PastRow {
    user: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue: Option<u32>,
    #[serde(default, skip_serializing_if = "is_zero")]
    priority: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<Span>,
    gpus: u32,
    gpu_milli: u64,
    cpu_milli: u64,
    mem_mib: u64,
    tasks: u32,
    submitted: Time,
    ended: Time,
    run: Span,
}

fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl ModelFile {
    /// Writes the latest of these jobs, which are in the order in which they ended.
    pub(super) fn write_past(&mut self, past: &[&Past], names: &Names) {
        let latest = &past[past.len().saturating_sub(LESSONS_KEPT_MAX)..];
        let mut users = Listed::new(names.users.iter().map(|(name, id)| (*id, name.clone())));
        let mut groups = Listed::new(names.groups.iter().map(|(name, id)| (*id, name.clone())));
        let mut queues = Listed::new(names.queues.iter().map(|(name, id)| (*id, name.clone())));
        let mut sets = Listed::new(std::iter::empty());
        for job in latest {
            let Past { features, submitted, ended, run } = **job;
            let Features { tenant, group, name, queue, priority, told, models, .. } = features;
            sets.known.entry(models).or_insert_with(|| names_of(models, names));
            self.past.push(PastRow {
                user: users.place(tenant),
                group: group.map(|group| groups.place(group)),
                name,
                queue: queue.map(|queue| queues.place(queue)),
                priority,
                told,
                gpus: sets.place(models),
                gpu_milli: features.gpu_milli,
                cpu_milli: features.cpu_milli,
                mem_mib: features.mem_mib,
                tasks: features.tasks,
                submitted,
                ended,
                run,
            });
        }
        self.past.sort_by_key(|row| row.submitted);
        (self.users, self.groups) = (users.list, groups.list);
        (self.queues, self.gpu_sets) = (queues.list, sets.list);
    }

    /// The jobs, in the numbers of here. Those whose names nobody has here have one number between
    /// them: they still tell what jobs of their size take.
    pub(super) fn past(&self, names: &Names) -> Vec<Past> {
        let user = |at: u32| names.users.get(&self.users[at as usize]).copied();
        let group = |at: u32| names.groups.get(&self.groups[at as usize]).copied();
        let queue = |at: u32| names.queues.get(&self.queues[at as usize]).copied();
        let set = |at: u32| bind_set(self.gpu_sets[at as usize].as_deref(), names);
        let job = |row: &PastRow| Past {
            features: Features {
                tenant: user(row.user).unwrap_or(TenantId(u32::MAX)),
                group: row.group.map(|at| group(at).unwrap_or(GroupId(u32::MAX))),
                name: row.name,
                queue: row.queue.map(|at| queue(at).unwrap_or(QueueId(u32::MAX))),
                priority: row.priority,
                told: row.told,
                models: set(row.gpus).unwrap_or(ModelSet::NONE),
                gpu_milli: row.gpu_milli,
                cpu_milli: row.cpu_milli,
                mem_mib: row.mem_mib,
                tasks: row.tasks,
            },
            submitted: row.submitted,
            ended: row.ended,
            run: row.run,
        };
        self.past.iter().map(job).collect()
    }

    /// The first job that names nothing, or comes before one that was submitted earlier.
    pub(super) fn past_fault(&self) -> Option<usize> {
        let within =
            |place: Option<u32>, count: usize| place.is_none_or(|at| (at as usize) < count);
        let named = |row: &PastRow| {
            within(Some(row.user), self.users.len())
                && within(row.group, self.groups.len())
                && within(row.queue, self.queues.len())
                && within(Some(row.gpus), self.gpu_sets.len())
        };
        let unnamed = self.past.iter().position(|row| !named(row));
        let early = self.past.windows(2).position(|two| two[1].submitted < two[0].submitted);
        unnamed.or(early.map(|at| at + 1))
    }
}
