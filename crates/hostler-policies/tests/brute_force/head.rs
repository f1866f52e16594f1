//! The head: nobody delays it, and by the EASY rule whoever does not delay it starts.

use hostler_core::job::Job;
use hostler_core::plan::Plan;
use hostler_core::units::Time;
use hostler_core::view::View;

use crate::room::{FreeNodes, Stay, answers, end_of, running};
use crate::try_through;

#[test]
fn easy_starts_all_who_do_not_delay_the_head_and_nobody_else() {
    try_through("kind = 'fifo-backfill'\nestimate = 'user'", all_who_do_not_delay);
}

#[test]
fn nobody_delays_the_first_job_that_waits() {
    try_through("kind = 'conservative-backfill'\nestimate = 'user'", nobody_delays);
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
}

fn nobody_delays(view: &View<'_>, plan: &Plan<'_>) {
    look_through(view, plan, |_, _, _, _| {});
}

fn all_who_do_not_delay(view: &View<'_>, plan: &Plan<'_>) {
    look_through(view, plan, |job, end, free, head| {
        for taken in free.divisions(&job.spec.gangs[0], false) {
            let outlasts = head.at.is_some_and(|at| end > at);
            assert!(outlasts, "{} fits and is over in time", job.spec.name);
            let mut beside = Head { later: head.later.clone(), ..*head };
            beside.later.take(&taken);
            let name = &head.job.spec.name;
            assert!(!beside.fits(), "{} does not delay {name}: {taken:?}", job.spec.name);
        }
    });
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
        let gang = &job.spec.gangs[0];
        let end = end_of(view, job, view.now());
        match (&mut head, start) {
            (None, Some(taken)) => {
                free.take(&taken);
                stays.push(Stay { end, taken });
            }
            (None, None) => {
                assert!(!free.fits(gang), "{} is first and fits", job.spec.name);
                head = Some(Head::new(job, &free, stays.clone()));
            }
            (Some(head), Some(taken)) => {
                free.take(&taken);
                if head.at.is_some_and(|at| end > at) {
                    head.later.take(&taken);
                    assert!(head.fits(), "{} delays {}", job.spec.name, head.job.spec.name);
                }
            }
            (Some(head), None) => left_out(job, end, &free, head),
        }
    }
}
