//! What jobs have in common, as far as `blend` looks: from being a job at all to being the same
//! work in the same place. What a job does not say makes no likeness.

use hostler_core::id::{GroupId, ModelSet, QueueId, TenantId};
use hostler_core::units::Span;

use crate::features::Features;

/// Kinds of likeness.
pub(super) const KINDS: usize = 10;

/// What jobs may have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    All,
    Shape(RequestShape),
    Queue(Place),
    Tenant(TenantId),
    QueueShape(Place, RequestShape),
    TenantTold(TenantId, Span),
    TenantShape(TenantId, Place, RequestShape),
    Work(Work),
    TenantWork(TenantId, Work),
    Same(TenantId, Work, Place, RequestShape),
}

/// All that a job asks for, to the last core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestShape {
    gpu_milli: u64,
    cpu_milli: u64,
    mem_mib: u64,
    tasks: u32,
    models: ModelSet,
}

/// Where a job was sent and how urgent it is: clusters use both for classes of work.
type Place = (Option<QueueId>, i32);

/// What a job repeats: its group, or else its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    Group(GroupId),
    Name(u64),
}

impl Likeness {
    /// The kind of [`Likeness::TenantShape`], which every job has.
    pub(super) const ASKED_ALIKE: u8 = 6;

    /// The likenesses of a job, the widest first.
    pub(super) fn of(job: &Features) -> impl Iterator<Item = Likeness> + use<> {
        let &Features { tenant, gpu_milli, cpu_milli, mem_mib, tasks, models, .. } = job;
        let shape = RequestShape { gpu_milli, cpu_milli, mem_mib, tasks, models };
        let place = (job.queue, job.priority);
        let placed = (place != (None, 0)).then_some(place);
        let work = job.group.map(Work::Group).or(job.name.map(Work::Name));
        let kinds: [Option<Likeness>; KINDS] = [
            Some(Likeness::All),
            Some(Likeness::Shape(shape)),
            placed.map(Likeness::Queue),
            Some(Likeness::Tenant(tenant)),
            placed.map(|place| Likeness::QueueShape(place, shape)),
            job.told.map(|told| Likeness::TenantTold(tenant, told)),
            Some(Likeness::TenantShape(tenant, place, shape)),
            work.map(Likeness::Work),
            work.map(|work| Likeness::TenantWork(tenant, work)),
            work.map(|work| Likeness::Same(tenant, work, place, shape)),
        ];
        kinds.into_iter().flatten()
    }

    /// Its place among the kinds.
    pub(super) const fn kind(&self) -> usize {
        match self {
            Likeness::All => 0,
            Likeness::Shape(_) => 1,
            Likeness::Queue(_) => 2,
            Likeness::Tenant(_) => 3,
            Likeness::QueueShape(..) => 4,
            Likeness::TenantTold(..) => 5,
            Likeness::TenantShape(..) => Likeness::ASKED_ALIKE as usize,
            Likeness::Work(_) => 7,
            Likeness::TenantWork(..) => 8,
            Likeness::Same(..) => 9,
        }
    }

    /// How closely it looks, in steps.
    pub(super) const fn closeness(&self) -> u32 {
        match self {
            Likeness::All => 0,
            Likeness::Shape(_) | Likeness::Queue(_) => 1,
            Likeness::Tenant(_) | Likeness::QueueShape(..) => 2,
            Likeness::TenantTold(..) | Likeness::TenantShape(..) | Likeness::Work(_) => 3,
            Likeness::TenantWork(..) => 4,
            Likeness::Same(..) => 5,
        }
    }
}
