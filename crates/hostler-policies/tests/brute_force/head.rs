//! The head: nobody delays it, and by the EASY rule whoever does not delay it starts.

use hostler_core::job::Job;
use hostler_core::plan::Plan;
use hostler_core::units::Time;
use hostler_core::view::View;

use crate::room::{FreeNodes, Stay, answers, end_of, running};
use crate::{Jobs, try_through};

const EASY: &str = "kind = 'fifo-backfill'\nestimate = 'user'";

#[test]
fn easy_starts_all_who_do_not_delay_the_head_and_nobody_else() {
    try_through(EASY, Jobs::Plain, || Box::new(all_who_do_not_delay));
}

#[test]
fn easy_does_so_where_nobody_says_how_long_some_jobs_run() {
    try_through(EASY, Jobs::Unknown, || Box::new(all_who_do_not_delay));
}

#[test]
fn easy_does_so_for_whole_gpus_beside_parts_of_gpus_and_several_roles() {
    try_through(EASY, Jobs::Mixed, || Box::new(all_who_do_not_delay));
}

/// The head, the time of its reservation, and what is free then beside those that last longer.
struct Head<'a> {
    job: &'a Job,
    at: Option<Time>,
    later: FreeNodes,
}

impl<'a> Head<'a> {
    fn new(job: &'a Job, free: &FreeNodes, mut stays: Vec<Stay>) -> Head<'a> {
        stays.sort_by_key(|stay| stay.end);
        let mut later = free.clone();
        for together in stays.chunk_by(|one, other| one.end == other.end) {
            together.iter().for_each(|stay| later.give_back(&stay.taken));
            if later.fits(&job.spec.gangs[0]) {
                return Head { job, at: Some(together[0].end), later };
            }
        }
        Head { job, at: None, later }
    }

    fn fits(&self) -> bool {
        self.later.fits(&self.job.spec.gangs[0])
    }

    /// Whether it has too little beside another job. Where nobody knows when its time comes, all
    /// that it could use is needed.
    fn misses(&self, before: &Head<'_>) -> bool {
        let slots = |head: &Head<'_>| head.later.slots(&self.job.spec.gangs[0]);
        match self.at {
            Some(Time::NEVER) => slots(self) < slots(before),
            Some(_) | None => !self.fits(),
        }
    }

    /// Whether a job is there when the head should start. What nobody knows the end of is in the
    /// way even of a head that waits for another such.
    fn meets(&self, end: Time) -> bool {
        self.at.is_some_and(|at| end > at || end == Time::NEVER)
    }
}

fn all_who_do_not_delay(view: &View<'_>, plan: &Plan<'_>) {
    look_through(view, plan, |job, end, free, head| {
        // Of parts of GPUs not every choice is tried, nor of several roles.
        if !is_plain(job) || !is_plain(head.job) {
            return;
        }
        for taken in free.divisions(&job.spec.gangs[0], false) {
            assert!(head.meets(end), "{} fits and is over in time", job.spec.name);
            let mut beside = Head { later: head.later.clone(), ..*head };
            beside.later.take(&taken);
            let name = &head.job.spec.name;
            assert!(beside.misses(head), "{} does not delay {name}: {taken:?}", job.spec.name);
        }
    });
}

fn is_plain(job: &Job) -> bool {
    job.spec.gangs.len() == 1 && !job.spec.gangs[0].demand.gpu.is_fraction()
}

/// Goes through those who wait in order: whoever starts delays nobody, and whoever does not, when
/// it is believed to end, what is free at its turn and the head are looked at.
fn look_through(
    view: &View<'_>,
    plan: &Plan<'_>,
    left_out: impl Fn(&Job, Time, &FreeNodes, &Head<'_>),
) {
    let (mut free, mut stays) = (FreeNodes::now(view), running(view));
    let mut head: Option<Head<'_>> = None;
    for (job, start) in answers(view, plan) {
        let end = end_of(view, job, view.now());
        match (&mut head, start) {
            (None, Some(taken)) => {
                free.take(&taken);
                stays.push(Stay { end, taken });
            }
            // Where it could be with its roles, and when, is answered for one after the other.
            (None, None) if job.spec.gangs.len() > 1 => return,
            (None, None) => {
                let fits = free.fits(&job.spec.gangs[0]);
                assert!(!fits, "{} is first and fits", job.spec.name);
                head = Some(Head::new(job, &free, stays.clone()));
            }
            (Some(head), Some(taken)) => {
                free.take(&taken);
                if head.meets(end) {
                    head.later.take(&taken);
                    assert!(head.fits(), "{} delays {}", job.spec.name, head.job.spec.name);
                }
            }
            (Some(head), None) => left_out(job, end, &free, head),
        }
    }
}
