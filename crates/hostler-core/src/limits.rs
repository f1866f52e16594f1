//! Every bound of the core in one place, with the reason for the number.

use crate::units::Span;

/// GPU models in a catalogue: a set of them fits one machine word.
pub const MODELS_MAX: usize = 64;

/// GPUs in one node: a set of them fits two machine words. Racks that are one machine have 72.
pub const DEVICES_PER_NODE_MAX: usize = 128;

/// Points of a series over time: more than a picture has columns for.
pub const SERIES_BUCKETS_MAX: usize = 512;

/// Columns of a heat map: half a kilobyte for each node.
pub const HEAT_BUCKETS_MAX: usize = 128;

/// Nodes in a cluster: the largest published clusters have some ten thousand.
pub const NODES_MAX: usize = 1_000_000;

/// Freed nodes that are counted one by one for each shape of job; for more of them a bound over the
/// whole cluster costs less.
pub const FREED_COUNTED_MAX: usize = 64;

/// Roles in one job: parameter server, worker, chief, evaluator and as many again.
pub const GANGS_PER_JOB_MAX: usize = 8;

/// Tasks in one job: a hundred times the largest gang of the published traces.
pub const TASKS_PER_JOB_MAX: u32 = 100_000;

/// Jobs that one comes after: a whole array of the largest size that can be submitted.
pub const AFTER_PER_JOB_MAX: usize = 10_000;

/// Job numbers that may be left out between two submissions; a larger gap is a broken log.
pub const JOB_NUMBER_GAP_MAX: u32 = 1 << 20;

/// Lease numbers that may be left out at a time: what a busy cluster starts between two backups,
/// and 32 MiB until the leases before them are over.
pub const LEASE_NUMBER_GAP_MAX: u32 = 1 << 22;

/// A job that cannot be saved stays for at least so long, where such jobs are stopped at all: less
/// would be spent on starting.
pub const UNSAVED_STAY_MIN: Span = Span::from_secs(60);

/// A job without a time limit is taken to last so long where nodes will be kept for a window: they
/// would be of no use to it for weeks otherwise.
pub const ENDLESS_STAY: Span = Span::from_secs(2 * 24 * 3600);

/// Windows that are not over: each is looked at whenever one of them changes.
pub const WINDOWS_MAX: usize = 256;

/// Time that an executor has to say whether a job started. A cold image pull takes minutes.
pub const START_TIMEOUT: Span = Span::from_secs(1800);

/// Time beyond the checkpoint's own that an executor has to confirm a stop before it is asked
/// again.
pub const STOP_TIMEOUT: Span = Span::from_secs(300);

/// Stops asked for one lease before its nodes are taken out as silent.
pub const STOP_ATTEMPTS_MAX: u32 = 3;

/// Starts that may fail for one job before it is given up: more only burn the cluster.
pub const START_FAILURES_MAX: u32 = 5;

/// Starts beside another job that may fail before a job is given up. They say less of the job than
/// of the pair, and each tells of another pair: as many as there are partners to try.
pub const PACKED_FAILURES_MAX: u32 = 64;

/// Changes kept for policy caches between two questions; beyond it the caches start anew.
pub const JOURNAL_MAX: usize = 1 << 20;

/// Jobs of a group that must have been measured before the next one is packed by what they used:
/// fewer may all have been unusual.
pub const USES_SEEN_MIN: u32 = 3;

/// Ends of jobs that teach how long jobs last: published distributions of service times that
/// policies go by have as many samples. Some tenths of a MiB in a snapshot.
pub const SERVICES_LEARNT_MAX: usize = 1024;

/// Ends of jobs after which at the latest what they teach changes: an eighth of the window. Whoever
/// ranks by it looks at every job that waits then.
pub const SERVICE_STRIDE_MAX: u64 = 128;

/// Decisions of one step per pending or running job: stop, start, hold and one to spare.
pub const DECISIONS_PER_JOB_MAX: usize = 4;

/// Entries of jobs that run no more which a line of running jobs may hold, besides as many as run:
/// a line of a few is not made anew whenever one of them ends.
pub const RUNNERS_OVER_MIN: usize = 64;

/// Running jobs that are lifted for one that waits before it is counted whether all that rank after
/// it would be enough. The count looks at every node: most who find room do so before, and who
/// waits in vain has lifted no more than that costs.
pub const LIFTS_ON_TRIAL: usize = 64;

/// Limits that a queue of jobs remembers on what it could get. Each search in vain adds two, for
/// its own memory and for the best rank that would be lost as well: three sizes of memory are told
/// apart, and each limit is counted again on every node that changes.
pub const LIMITS_PER_QUEUE_MAX: usize = 6;

/// Searches for victims in one pass where ranks change without a word, by rounds or by what tenants
/// used, so that a search in vain tells nothing about the next: each looks at all that runs. Beyond
/// it a pass over many kinds of jobs would cost more than the preemption saves.
pub const SEARCHES_PER_PASS_MAX: usize = 64;

/// Counts by node that all queues remember together: 64 MiB.
pub const REACH_COUNTS_MAX: usize = 16 << 20;

/// Running jobs behind one that waits in vain that are looked at for who else would: on a cluster
/// of some thousand GPUs most of them, and a part of what the search in vain cost.
pub const FURTHER_RUNNERS_MAX: usize = 1024;

/// Nodes on which something changed at once that are counted again for each queue; for more of
/// them it costs less to forget what was counted.
pub const REACH_NODES_MAX: usize = 512;

/// Questions to a policy at one instant without time moving on: a policy that starts and stops
/// the same job for ever is a bug, found by this bound.
pub const STEPS_PER_INSTANT_MAX: u32 = 1_000_000;
