//! The fields of a job file: the names of the flags, and those of the interface beside them.

/// One field.
pub struct Field {
    /// As the flag is called, with `_` for `-`.
    pub name: &'static str,
    /// As the interface calls it.
    pub api: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What it means.
    pub help: &'static str,
}

/// What a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// One text, or a list of them.
    Texts,
    /// A line for a shell, or a list of program and arguments.
    Command,
    /// A number of GPUs or cores.
    Part,
    /// A number from zero to one.
    Ratio,
    /// A whole number from zero on.
    Whole,
    /// A whole number from one on.
    Count,
    /// Any whole number.
    Signed,
    /// Seconds, or a time as in `12h`.
    Time,
    /// MiB, or memory as in `16G`.
    Memory,
    /// Yes or no.
    Flag,
    /// How GPUs are shared.
    Share,
    /// Jobs that are waited for.
    After,
    /// A number of copies, or their indices as in `1-10%4`.
    Array,
    /// Variables by name.
    Variables,
    /// One task on each of so many nodes.
    Nodes,
    /// Of what is told.
    Events,
}

const fn field(name: &'static str, api: &'static str, kind: Kind, help: &'static str) -> Field {
    Field { name, api, kind, help }
}

/// All of them.
pub const FIELDS: &[Field] = &[
    field("name", "name", Kind::Text, "For people."),
    field(
        "command",
        "command",
        Kind::Command,
        "Program and arguments; a text is a line for the shell.",
    ),
    field("script", "script", Kind::Text, "A script that travels with the job, from `#!` on."),
    field("gpus", "gpus", Kind::Part, "GPUs of each task: a fraction below 1, or whole ones."),
    field("gpu_mem", "gpu_mem_mib", Kind::Memory, "GPU memory of each task, for fractions."),
    field("gpu_model", "gpu_models", Kind::Texts, "GPU models that will do, best first."),
    field("cpus", "cpus", Kind::Part, "CPU cores of each task; 1 when left out."),
    field("mem", "mem_mib", Kind::Memory, "Memory of each task in MiB, or as in 16G."),
    field("tasks", "tasks", Kind::Count, "Tasks that start together."),
    field("one_node", "one_node", Kind::Flag, "All tasks on one node."),
    field("nodes", "", Kind::Nodes, "One task on each of so many nodes."),
    field("apart", "apart", Kind::Flag, "Each task on a node of its own."),
    field("priority", "priority", Kind::Signed, "Larger is more important."),
    field("deadline", "deadline_secs", Kind::Time, "Time from now by which it should be done."),
    field("max_time", "max_secs", Kind::Time, "Time after which it is ended."),
    field("estimate", "estimate_secs", Kind::Time, "Time that it is expected to run."),
    field("grace", "grace_secs", Kind::Time, "Time between the signal to stop and the end."),
    field("share", "sharing", Kind::Share, "Whether it shares GPUs."),
    field("checkpoints", "checkpoints", Kind::Flag, "It can be stopped and started again."),
    field("no_suspend", "no_suspend", Kind::Flag, "It is never suspended in main memory."),
    field("group", "group", Kind::Text, "Jobs that do the same thing again."),
    field("reservation", "reservation", Kind::Text, "The reservation that it runs in."),
    field("after", "after", Kind::After, "Jobs that must finish well before, as in 17 or over:17."),
    field("array", "array", Kind::Array, "Number of copies, or their indices as in 1-10:2%4."),
    field("array_first", "array_first", Kind::Whole, "Index of the first copy."),
    field("array_step", "array_step", Kind::Count, "Distance between two indices."),
    field("array_limit", "array_limit", Kind::Count, "How many of them run at once at most."),
    field("env", "env", Kind::Variables, "Variables of its environment."),
    field(
        "workdir",
        "workdir",
        Kind::Text,
        "Folder to run in, relative to the current one; `private` for one of the job's own.",
    ),
    field("umask", "umask", Kind::Text, "What its files are not open for, as in 027."),
    field("image", "image", Kind::Text, "Image of a container to run it in."),
    field("mount", "mounts", Kind::Texts, "What is seen in it, as in /data or /data:/in:ro."),
    field("steps", "steps", Kind::Count, "Steps that it will do in all."),
    field("skew", "skew", Kind::Ratio, "How much of its model its largest tensor is, 0 to 1."),
    field("notify", "notify", Kind::Events, "Of what is told: start, end, fail."),
    field("mail_to", "mail_to", Kind::Text, "Address that is told by mail."),
    field("slurm", "slurm", Kind::Flag, "Set the variables of Slurm beside ours."),
];
