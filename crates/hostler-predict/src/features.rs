//! What predictors look at: who sends a job, what it repeats, what it asks for; and what jobs have
//! in common. Nothing here is learnt.

use hostler_core::id::{GroupId, JobId, ModelSet, QueueId, TenantId};
use hostler_core::job::{Estimate, JobSpec};
use hostler_core::units::{Span, Time};

/// What a predictor may know of a job that was submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Who sends it.
    pub tenant: TenantId,
    /// What it repeats.
    pub group: Option<GroupId>,
    /// Its name without digits, as a number; none where hardly anything is left. Names of runs
    /// differ by dates and counters.
    pub name: Option<u64>,
    /// Where it was sent.
    pub queue: Option<QueueId>,
    /// How important it is.
    pub priority: i32,
    /// How long it takes by the word of its user, or else how long it may take.
    pub told: Option<Span>,
    /// GPU models that will do for its tasks with GPUs; none when it asks for no GPU.
    pub models: ModelSet,
    /// Thousandths of GPUs over all tasks.
    pub gpu_milli: u64,
    /// Thousandths of cores over all tasks.
    pub cpu_milli: u64,
    /// Main memory over all tasks.
    pub mem_mib: u64,
    /// Tasks over all roles.
    pub tasks: u32,
}

impl Features {
    /// The features of a job.
    pub fn of(spec: &JobSpec) -> Features {
        let mut models = ModelSet::NONE;
        let (mut cpu_milli, mut mem_mib) = (0, 0);
        for gang in &spec.gangs {
            if gang.demand.gpu.0 > 0 {
                models = models.with(gang.demand.models.set());
            }
            cpu_milli += u64::from(gang.count) * u64::from(gang.demand.cpu.0);
            mem_mib += u64::from(gang.count) * u64::from(gang.demand.mem.0);
        }
        Features {
            tenant: spec.tenant,
            group: spec.group,
            name: name_of(&spec.name),
            queue: spec.queue,
            priority: spec.priority,
            told: spec.user_estimate.or(spec.time_limit),
            models,
            gpu_milli: spec.gpu_milli(),
            cpu_milli,
            mem_mib,
            tasks: spec.tasks(),
        }
    }

    /// What the job has in common with others, closest first.
    pub fn keys(&self, set: FeatureSet) -> impl Iterator<Item = Key> + use<> {
        let Features { tenant, group, models, .. } = *self;
        let by_gpu = group.filter(|_| set == FeatureSet::UserGroupGpu);
        let by_group = group.filter(|_| set != FeatureSet::User);
        let of_gpu = by_gpu.map(|group| Key::UserGroupGpu(tenant, group, models));
        let of_group = by_group.map(|group| [Key::UserGroup(tenant, group), Key::Group(group)]);
        let of_group = of_group.into_iter().flatten();
        of_gpu.into_iter().chain(of_group).chain([Key::User(tenant), Key::All])
    }
}

/// Letters that a name needs to say something: `a1`, `job17` and plain numbers are counters.
const LETTERS_MIN: usize = 4;

/// A name without its digits, as a number that two names share only by a chance of nearly nothing
/// (FNV-1a of 64 bits).
fn name_of(name: &str) -> Option<u64> {
    let (mut number, mut letters) = (0xcbf2_9ce4_8422_2325_u64, 0);
    for byte in name.bytes().filter(|byte| !byte.is_ascii_digit()) {
        number = (number ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        letters += usize::from(byte.is_ascii_alphabetic() || !byte.is_ascii());
    }
    (letters >= LETTERS_MIN).then_some(number)
}

/// How closely a predictor looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum FeatureSet {
    /// Who sends the job.
    User,
    /// Also what it repeats.
    UserGroup,
    /// Also the GPU models that will do.
    #[default]
    UserGroupGpu,
}

impl FeatureSet {
    /// All sets, coarsest first.
    pub const ALL: [FeatureSet; 3] =
        [FeatureSet::User, FeatureSet::UserGroup, FeatureSet::UserGroupGpu];

    /// For people: `user+group`.
    pub const fn name(self) -> &'static str {
        match self {
            FeatureSet::User => "user",
            FeatureSet::UserGroup => "user+group",
            FeatureSet::UserGroupGpu => "user+group+gpu",
        }
    }
}

/// What jobs may have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Sender, group and GPU models.
    UserGroupGpu(TenantId, GroupId, ModelSet),
    /// Sender and group.
    UserGroup(TenantId, GroupId),
    /// Group, whoever sends it.
    Group(GroupId),
    /// Sender.
    User(TenantId),
    /// GPU models, whoever asks for them.
    Gpu(ModelSet),
    /// Nothing but being a job.
    All,
}

/// A job that finished somewhere, by the names that people use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lesson {
    /// Who sent it.
    pub tenant: String,
    /// What it repeated; empty when nobody said.
    pub group: String,
    /// GPU models that would have done; any when empty.
    pub gpu_models: Vec<String>,
    /// What it asked for; numbers of tenants, groups and models in it mean nothing
    /// elsewhere.
    pub spec: JobSpec,
    /// When it was submitted.
    pub submitted: Time,
    /// When it ended.
    pub ended: Time,
    /// What it took at reference speed.
    pub run: Span,
}

/// Learns run times from features.
pub trait Learner {
    /// Believed run time of such a job; none when too little is known.
    fn belief(&self, features: &Features) -> Option<Estimate>;

    /// Learns from a job that finished.
    fn learn(&mut self, features: &Features, run: Span);

    /// Believed run time of a job that is submitted now. A learner that is to know how right it was
    /// keeps what it said until [`Learner::learn_of`].
    fn foretell(&mut self, job: JobId, features: &Features) -> Option<Estimate> {
        let _ = job;
        self.belief(features)
    }

    /// Learns from a job that finished and that it may have been asked about.
    fn learn_of(&mut self, job: JobId, features: &Features, run: Span) {
        let _ = job;
        self.learn(features, run);
    }
}
