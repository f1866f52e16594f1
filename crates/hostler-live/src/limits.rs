//! Bounds of the live scheduler, each with the reason for its number.

/// Seconds that the first process of a task has to become its user and to enter its folder: a file
/// system that hangs must not keep the shim from ending the job.
pub const STAGE_SECS_MAX: u64 = 20;

/// Characters of a note by which an admin says why.
pub const NOTE_CHARS_MAX: usize = 256;

/// GPU hours of a budget: a hundred thousand GPUs for a year.
pub const BUDGET_HOURS_MAX: u32 = 1_000_000_000;

/// Days of a period of a budget: ten years.
pub const BUDGET_DAYS_MAX: u32 = 3660;

/// Days of a period of a budget, where nobody says otherwise: about a month.
pub const BUDGET_DAYS_DEFAULT: u32 = 30;

/// Bytes of one message between agent and daemon: a start order with a full environment fits.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Bytes of command and environment of one job: what `execve` takes is twice that on Linux.
pub const COMMAND_BYTES_MAX: usize = 64 << 10;

/// Bytes of one answer with a piece of a job's output.
pub const OUTPUT_BYTES_MAX: usize = 64 << 10;

/// Tasks of one job: all of them may be on one node, and their order is one message.
pub const TASKS_MAX: u32 = 4096;

/// Bytes of one task in an order: its ranks and one GPU; more than one belongs to few tasks.
const TASK_BYTES_MAX: usize = 128;

/// Bytes that JSON makes of one byte of text at most: `\u0001`.
const ESCAPED_BYTES_MAX: usize = 6;

// The fullest command with the most tasks still fits a message, with room for numbers and names.
const _: () = assert!(
    COMMAND_BYTES_MAX * ESCAPED_BYTES_MAX + TASKS_MAX as usize * TASK_BYTES_MAX + (64 << 10)
        < MESSAGE_BYTES_MAX
);

/// Thousandths of a core that a task without a GPU must ask for: what bounds the jobs that a node
/// is given at a time.
pub const CPU_MILLI_MIN: u32 = 100;

/// Thousandths of a GPU that a task with one must ask for, for the same reason.
pub const GPU_MILLI_MIN: u32 = 10;

/// Thousandths of GPUs or cores that a task may ask for: more than any machine has.
pub const CPU_MILLI_MAX: u32 = 64_000_000;

/// Seconds that a request may name: what a clock in microseconds can hold a hundred times over.
pub const SECS_MAX: u64 = 100 * 366 * 24 * 3600;

/// Leases that an agent holds at a time: a greeting with all of them fits a message. The largest
/// machine is given more only where nearly all of its GPUs are cut into hundredths.
pub const LEASES_MAX: usize = 8192;

/// Bytes of the names by which an agent is told from its copies: two numbers and a path.
pub const INSTANCE_BYTES_MAX: usize = 1024;

/// Words by which an agent says what it can do: a few for each release.
pub const ABILITIES_MAX: usize = 64;

/// Bytes of each of them.
pub const ABILITY_BYTES_MAX: usize = 64;

/// Bytes of a sentence of an agent about something that it cannot do.
pub const SENTENCE_BYTES_MAX: usize = 2048;

/// Bytes of the version of an agent, as `1.2.3-rc.1`.
pub const VERSION_BYTES_MAX: usize = 64;

/// Folders that a job sees inside of its container besides its own.
pub const MOUNTS_MAX: usize = 64;

/// Jobs that one array submits: they enter the log in one transaction.
pub const ARRAY_JOBS_MAX: u32 = 10_000;

/// The largest index that an array may begin with: room for the largest array behind it.
pub const ARRAY_INDEX_MAX: u32 = 1_000_000_000;

/// The largest distance between two indices of an array, for the same reason.
pub const ARRAY_STEP_MAX: u32 = 100_000;

/// Jobs that one request changes: as many as one submits, in one transaction, too.
pub const CHANGED_JOBS_MAX: usize = ARRAY_JOBS_MAX as usize;

/// Words for jobs in one such request.
pub const SELECTIONS_MAX: usize = 1000;

/// Characters of a name of a job, tenant, node or user.
pub const NAME_CHARS_MAX: usize = 128;

/// Words for jobs that one job may wait for.
pub const AFTER_MAX: usize = 64;

/// Jobs that one job may wait for: the largest array.
pub const AFTER_JOBS_MAX: usize = ARRAY_JOBS_MAX as usize;

/// Jobs that the jobs of one array may wait for, all together: each writes its own list into the
/// log, a few megabytes in all.
pub const AFTER_IN_ALL_MAX: usize = 100_000;

/// Inputs that wait for the host: seconds of work; beyond it callers are told to come again.
pub const INPUTS_WAITING_MAX: usize = 16_384;

/// Inputs of one transaction: bounds how long an answer waits for others.
pub const INPUTS_PER_BATCH_MAX: usize = 2_048;

/// Messages that wait for one agent; a slower one is cut off and says Hello again.
pub const AGENT_MESSAGES_MAX: usize = 8_192;

/// Jobs that are not over, of all tenants: what fits memory and the time of a restart.
pub const JOBS_MAX: usize = 1_000_000;

/// Tenants up to which a driver adds those whose jobs it finds: accounts of a large site. Each is
/// in every snapshot. People may add more.
pub const FOUND_TENANTS_MAX: usize = 4096;

/// Bytes of one file of a job's output.
pub const OUTPUT_SEGMENT_BYTES: u64 = 4 << 20;

/// Files that are kept of each stream of output: 64 MiB in all, the newest.
pub const OUTPUT_SEGMENTS_MAX: usize = 16;

/// Leases whose output an agent keeps after the daemon has forgotten them; the oldest go first.
pub const OUTPUT_LEASES_MAX: usize = 1000;

/// Port of the daemon, where none is named.
pub const PORT: u16 = 7717;

/// Bytes of a request to the interface: an array with a full environment fits.
pub const REQUEST_BYTES_MAX: usize = 256 << 10;

/// Seconds that a request may take, waiting for output included.
pub const REQUEST_SECS_MAX: u64 = 60;

/// Seconds that a request for output may wait for something new.
pub const OUTPUT_WAIT_SECS_MAX: u32 = 30;

/// Seconds that an agent has to answer a request for output.
pub const OUTPUT_ANSWER_SECS_MAX: u64 = 10;

/// Connections that the server holds at a time: agents of a large cluster and as many people.
pub const CONNECTIONS_MAX: usize = 16_384;

/// Connections of users of the daemon's machine by its socket, besides those.
pub const LOCAL_CONNECTIONS_MAX: usize = 4096;

/// Those of one user: scripts that submit side by side, and a few terminals.
pub const LOCAL_CONNECTIONS_PER_USER_MAX: usize = 512;

/// Users of the daemon's machine whose names are remembered for a minute.
pub const NAMES_KEPT: usize = 4096;

/// Seconds for TLS and the head of a request: who is slower takes the place of somebody else.
pub const HEAD_SECS_MAX: u64 = 20;

/// Streams of changes at a time: each holds a connection and a place in the queue of changes.
pub const STREAMS_MAX: usize = 1024;

/// Jobs in one part of a list.
pub const PAGE_JOBS_MAX: u32 = 1000;

/// Records in one part of the log.
pub const PAGE_RECORDS_MAX: u32 = 1000;

/// Bytes of records from which on a part of the log is full. One read more may come on top.
pub const LOG_BYTES_MAX: usize = 4 << 20;

/// Records that are read from the store together: one may hold the facts of a whole array.
pub const LOG_RECORDS_AT_ONCE: usize = 50;

/// Jobs in one part of a list, where no number is given.
pub const PAGE_JOBS_DEFAULT: u32 = 100;

/// Callers whose requests are counted at a time.
pub const CALLERS_MAX: usize = 8192;

/// Changes that one listener may lag behind before it misses some.
pub const CHANGES_KEPT: usize = 4_096;

/// Reads of output that agents have not answered yet.
pub const OUTPUT_WAITING_MAX: usize = 1_024;

/// Characters of an idempotency key.
pub const KEY_CHARS_MAX: usize = 128;

/// Idempotency keys that are remembered of each token, the newest: more than a script submits in
/// the hours in which it may try again, and some 30 MiB.
pub const KEYS_PER_TOKEN_MAX: usize = 100_000;

/// Bytes of an answer that a client reads: a full page of jobs with large environments.
pub const ANSWER_BYTES_MAX: usize = 128 << 20;

/// Bytes of a line of a stream that a client reads.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// Seconds that a client waits for an answer: longer than the server may take.
pub const ANSWER_SECS_MAX: u64 = REQUEST_SECS_MAX + 10;

/// Seconds that a client waits for a connection.
pub const CONNECT_SECS_MAX: u64 = 10;

/// Bytes of a policy's settings.
pub const POLICY_BYTES_MAX: usize = 64 << 10;

/// Follow-up steps of one batch: a chain of jobs that wait for each other is cut in one, so only
/// a fault goes on for longer.
pub const FOLLOW_UPS_MAX: u32 = 1_000;

/// Tokens, revoked ones included: one for each person and node of a large site.
pub const TOKENS_MAX: usize = 100_000;

/// Seconds that a job has to end itself after a signal, when it does not say.
pub const GRACE_SECS: u64 = 30;

/// The longest such time that can be asked for: a drain must come to an end.
pub const GRACE_SECS_MAX: u64 = 3_600;

/// Milliseconds that a shim sleeps at most: timers stand still while a machine sleeps, so the fence
/// may be noticed by as much later.
pub const SHIM_SLEEP_MS_MAX: u64 = 5000;

/// Seconds from the fence to giving a node up, at least: what a shim may sleep through, and two for
/// the kill and for clocks of two machines that do not run quite alike.
pub const DEAD_AFTER_FENCE_SECS_MIN: u64 = SHIM_SLEEP_MS_MAX.div_ceil(1000) + 2;

/// Seconds that a stream of changes lasts: a revoked token is good for no longer.
pub const STREAM_SECS_MAX: u64 = 600;

/// Requests without a valid token that are answered with why, all together, as a part of those that
/// one token may make: enough for people who mistype, too few to learn anything.
pub const GUESSES_PART: f64 = 0.05;

/// Jobs of one change of many that are looked up because they do not wait or run: everybody else
/// waits while the store is read, one job at a time.
pub const LOOKED_UP_MAX: usize = 100;

/// Names of groups that are ever numbered. A job of another one is taken, and nothing is learnt of
/// it.
pub const GROUPS_MAX: usize = 1_000_000;

/// Groups of jobs of which speeds are known: a thousand users with ten kinds of work each. Beyond
/// it nothing is learnt of new ones.
pub const PROFILES_MAX: usize = 10_000;

/// Speeds of one group: ten GPU models with a dozen sizes of gangs, close together or spread. All
/// of them are written whenever one changes.
pub const RUNS_PER_PROFILE_MAX: usize = 256;

/// Jobs that are over of which the figures of the daemon are made, at least: a busy week, and a
/// megabyte.
pub const FIGURES_KEPT: usize = 20_000;

/// Jobs that predictors are taught by at a start: more than they remember.
pub const LESSONS_MAX: usize = 20_000;

/// Job numbers that are left out after a backup was restored: more than a lab submits between two
/// backups, and a tenth of what one gap may be, so that agents which know more can still say so.
pub const RESTORED_JOBS_GAP: u32 = 100_000;

/// Lease numbers that are left out then: each of those jobs may have been started a few times.
pub const RESTORED_LEASES_GAP: u32 = 4 * RESTORED_JOBS_GAP;

/// Snapshots of its own store that a daemon keeps.
pub const SNAPSHOTS_KEPT: usize = 4;

/// Bytes of all of them; the newest stays in any case.
pub const SNAPSHOTS_BYTES_MAX: u64 = 8 << 30;

/// Bytes that are left free, besides the size of a store and as much again, when one is taken: the
/// daemon stops when its disk is full.
pub const SNAPSHOT_FREE_BYTES_MIN: u64 = 64 << 20;

/// Bytes of a store of which a snapshot is taken at a stop, too: some seconds of work.
pub const SNAPSHOT_AT_STOP_BYTES_MAX: u64 = 512 << 20;

/// Starts of a job of which it is known where they were and how they ended: agents keep the output
/// of the newest leases only, too.
pub const STARTS_MAX: usize = 32;

/// Names of nodes in all of them: one start of the largest gang. All are written whenever one
/// begins or ends.
pub const START_NODES_MAX: usize = 4096;

/// Stays that are kept of a job, each by itself; the oldest of more are counted together. All of
/// them are written whenever one begins or ends.
pub const STAYS_MAX: usize = 100;

/// Notices that wait for one webhook or for mail; the oldest of more are lost, and counted. What
/// a busy minute brings fits.
pub const NOTICES_WAITING_MAX: usize = 4096;

/// Tries to deliver a notice, with pauses of 1, 4, 16 and 64 seconds: a receiver that is started
/// again within a minute misses nothing.
pub const NOTICE_TRIES_MAX: u32 = 5;

/// Seconds of one try over the network.
pub const WEBHOOK_SECS_MAX: u64 = 10;

/// Seconds that the program that sends mail may take.
pub const MAIL_SECS_MAX: u64 = 30;

/// Seconds that a daemon which is stopped waits for notices that are still to be delivered.
pub const NOTICES_LAST_SECS_MAX: u64 = 5;

/// Webhooks of one daemon: each has a queue and a connection.
pub const WEBHOOKS_MAX: usize = 16;

/// Bytes of data in one frame of a stream to a job: what a pipe holds.
pub const STREAM_FRAME_BYTES_MAX: usize = 64 << 10;

/// Bytes of a person's input that wait for a job which does not read: a few times what a pipe
/// holds.
pub const STREAM_INPUT_BYTES_MAX: usize = 256 << 10;

/// Streams to jobs that the daemon passes on at a time: each holds two connections.
pub const JOB_STREAMS_MAX: usize = 1024;

/// Streams with one token at a time: a few terminals, and a browser with its connections.
pub const JOB_STREAMS_PER_TOKEN_MAX: usize = 128;

/// Streams to one job at a time.
pub const JOB_STREAMS_PER_JOB_MAX: usize = 64;

/// Seconds between two signs of life of each end of a stream.
pub const STREAM_ALIVE_SECS: u64 = 10;

/// Seconds for the last words of a person who does not read any more.
pub const STREAM_LAST_WORDS_SECS_MAX: u64 = 2;

/// Seconds without a word after which an end of a stream is gone: six signs of life.
pub const STREAM_SILENT_SECS_MAX: u64 = 6 * STREAM_ALIVE_SECS;

/// Seconds that an agent has to connect for a stream, and to say whether it stands.
pub const STREAM_OPEN_SECS_MAX: u64 = 15;

/// Seconds between two looks whether a stream's token still lets anybody in.
pub const STREAM_CHECK_SECS: u64 = 10;

/// Seconds that an interactive job goes on when those who were attached have vanished, where
/// nothing else is said: a laptop is opened again, or a daemon restarted, in that time.
pub const LINGER_SECS: u64 = 600;

/// Bytes of a person's input that are written to a job at a time, and that the person is told of
/// together: a quarter of what a pipe holds, so that a job which reads slowly is fed in between.
pub const PIECE_BYTES_MAX: usize = 16 << 10;

/// Bytes of recent output that an interactive job shows to those who attach: a few screens.
pub const CONSOLE_RECENT_BYTES: usize = 64 << 10;

/// Bytes that may wait for those who are attached before the job has to wait for them.
pub const CONSOLE_WAITING_BYTES_MAX: usize = 1 << 20;

/// Terminals and commands of one stay at a time; threads are kept for each.
pub const STREAMS_PER_SHIM_MAX: usize = 32;
