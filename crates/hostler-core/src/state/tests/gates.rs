//! Who is let through to the policy, and when. Every step checks that the book of gates follows
//! from the jobs.

use std::collections::BTreeSet;

use expect_test::expect;

use crate::cluster::Tenant;
use crate::event::{Event, Outcome};
use crate::gate::Gate;
use crate::id::{JobId, TenantId};
use crate::job::{Ending, Job, Phase};
use crate::reason::Reason;
use crate::state::ClusterState;
use crate::testkit::*;
use crate::units::{Span, Time};
use crate::watch::Watch;

fn quota(tenant: u32, gpus: Option<u32>) -> Event {
    let spec = Tenant { gpus_max: gpus, ..Tenant::named("changed") };
    Event::TenantChanged { tenant: TenantId(tenant), spec }
}

fn pause(job: u32, until: u64) -> Event {
    Event::Paused { job: JobId(job), until: secs(until) }
}

fn waiting(world: &World) -> Vec<u32> {
    world.state().pending().iter().map(|id| id.0).collect()
}

#[test]
fn a_quota_lets_jobs_through_in_order_of_submission() {
    let mut world = World::of("8");
    world.step(0, vec![quota(0, Some(3))], vec![]);
    world.submit(1, 0, &["gpus 2", "gpus 2", "gpus 1", "gpus 8 tenant 1", "tasks 2"]);
    // Job 2 would be within the quota, but job 1 came first. Who asks for no GPU needs no quota.
    expect![[r#"
        job0 waits: not considered yet
        job1 held: jobs before it take its tenant's quota
        job2 held: jobs before it take its tenant's quota
        job3 waits: not considered yet
        job4 waits: not considered yet
    "#]]
    .assert_eq(&world.jobs());
    assert_eq!(world.state().let_through(TenantId(0)), 2000);
    assert_eq!(world.state().let_through(TenantId(1)), 8000);
    let lease = world.run(2, 0, whole(0, &[0, 1]));
    assert_eq!(waiting(&world), [3, 4]);
    world.step(3, vec![finished(lease, 1)], vec![]);
    assert_eq!(waiting(&world), [1, 2, 3, 4]);
    assert_eq!(world.state().let_through(TenantId(0)), 3000);
    world.check_log();
}

#[test]
fn the_first_job_of_a_tenant_counts_against_its_quota_too() {
    let mut world = World::of("8");
    world.step(0, vec![quota(1, Some(1))], vec![]);
    world.submit(1, 0, &["gpus 2 tenant 1", "gpus 1 tenant 1"]);
    // Who asks for more than the whole quota stands in nobody's way.
    assert_eq!(waiting(&world), [1]);
    assert_eq!(world.job(0).reason, Reason::QuotaTooSmall);
    world.step(2, vec![quota(1, Some(3))], vec![]);
    assert_eq!(waiting(&world), [0, 1]);
}

#[test]
fn a_lower_quota_sorts_those_who_wait_anew() {
    let mut world = World::of("8");
    world.step(0, vec![quota(0, Some(4))], vec![]);
    world.submit(1, 0, &["gpus 2", "gpus 4", "gpus 1"]);
    assert_eq!(waiting(&world), [0]);
    assert_eq!(world.job(1).reason, Reason::OverQuota);
    world.step(2, vec![quota(0, Some(3))], vec![]);
    assert_eq!((waiting(&world), world.job(1).reason), (vec![0, 2], Reason::QuotaTooSmall));
    world.step(3, vec![quota(0, Some(7))], vec![]);
    assert_eq!(waiting(&world), [0, 1, 2]);
    world.check_log();
}

#[test]
fn the_quota_of_a_tenant_can_be_raised_step_by_step() {
    let mut world = World::of("8");
    world.step(0, vec![quota(1, Some(1))], vec![]);
    world.submit(1, 0, &["gpus 1 tenant 1", "gpus 1 tenant 1"]);
    assert_eq!(waiting(&world), [0]);
    assert_eq!(world.job(1).reason, Reason::OverQuota);
    world.step(2, vec![quota(1, Some(2))], vec![]);
    assert_eq!(waiting(&world), [0, 1]);
    world.submit(3, 2, &["gpus 2 tenant 1"]);
    world.step(4, vec![quota(1, None)], vec![]);
    assert_eq!(waiting(&world), [0, 1, 2]);
}

#[test]
fn a_lower_quota_takes_nothing_back() {
    let mut world = World::of("8");
    world.submit(0, 0, &["gpus 2", "gpus 2"]);
    world.step(1, vec![quota(0, Some(1))], vec![]);
    assert_eq!(waiting(&world), [0, 1]);
    world.submit(2, 2, &["gpus 1"]);
    assert_eq!(world.job(2).reason, Reason::OverQuota);
    world.step(3, vec![cancel(0), cancel(1)], vec![]);
    assert_eq!(waiting(&world), [2]);
}

#[test]
fn who_is_held_makes_room_for_those_behind_it() {
    let mut world = World::of("8");
    world.step(0, vec![quota(0, Some(2))], vec![]);
    world.submit(1, 0, &["gpus 1", "gpus 2", "gpus 1"]);
    assert_eq!(waiting(&world), [0]);
    // Job 1 waits for the quota in front of job 2, for which there is room.
    world.step(2, vec![held(1, true)], vec![]);
    assert_eq!(waiting(&world), [0, 2]);
    assert_eq!(world.job(1).reason, Reason::Held);
    world.step(3, vec![held(0, true), held(2, true)], vec![]);
    assert_eq!(world.state().let_through(TenantId(0)), 0);
    world.step(4, vec![held(1, false)], vec![]);
    assert_eq!(waiting(&world), [1]);
    world.step(5, vec![held(0, false)], vec![]);
    assert_eq!(world.job(0).reason, Reason::OverQuota);
}

#[test]
fn a_person_holds_a_job_that_waits_and_none_that_runs() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    let lease = world.run(1, 0, whole(0, &[0]));
    world.step(11, vec![held(0, true), held(1, true)], vec![]);
    expect![[r#"
        job0 runs lease0 on node0[gpu0]
        job1 held: held by a person
    "#]]
    .assert_eq(&world.jobs());
    assert_eq!(world.job(1).ledger.waited, Span::from_secs(11));
    world.step(12, vec![held(1, true)], vec![]);
    world.step(31, vec![held(1, false)], vec![]);
    assert_eq!(waiting(&world), [1]);
    assert_eq!(world.job(1).ledger.waited, Span::from_secs(31));
    assert_eq!(world.job(1).phase_since, secs(31));
    world.step(32, vec![held(1, false)], vec![]);
    let stale = world.state().stale_events();
    world.step(33, vec![finished(lease, 9), held(0, true), held(0, false)], vec![]);
    assert_eq!(world.state().stale_events(), stale + 2);
    assert_eq!(world.job(1).reason, Reason::New);
}

#[test]
fn one_job_comes_after_others_by_four_measures() {
    let mut world = World::of("4");
    let after = ["gpus 1", "after 0", "after 0:over", "after 0:failed", "after 0:started"];
    world.submit(0, 0, &after);
    expect![[r#"
        job0 waits: not considered yet
        job1 held: it waits for job 0
        job2 held: it waits for job 0
        job3 held: it waits for job 0
        job4 held: it waits for job 0
    "#]]
    .assert_eq(&world.jobs());
    let lease = world.state().next_lease().0;
    world.step(1, vec![], vec![Act::Start(0, whole(0, &[0]))]);
    assert_eq!(waiting(&world), [] as [u32; 0]);
    world.step(2, vec![started(lease)], vec![]);
    assert_eq!(waiting(&world), [4]);
    // A stop in between is no end.
    world.step(3, vec![stopped(lease, Outcome::Interrupted, 1, 0)], vec![]);
    assert_eq!(waiting(&world), [0, 4]);
    let again = world.run(4, 0, whole(0, &[0]));
    world.step(5, vec![finished(again, 2)], vec![]);
    assert_eq!(waiting(&world), [1, 2, 4]);
    assert!(world.state().job(JobId(3)).is_none(), "what it waited for never comes");
}

#[test]
fn a_failed_job_ends_the_waiting_of_those_who_wanted_its_success() {
    let mut world = World::of("4");
    world.submit(0, 0, &["gpus 1", "after 0", "after 0:over", "after 0:failed", "after 0:started"]);
    world.step(1, vec![cancel(0)], vec![]);
    // It never started, so who waited for that waits for nothing.
    assert_eq!(waiting(&world), [2, 3]);
    assert_eq!(world.state().job_count(), 2);
}

#[test]
fn a_job_after_one_that_is_over_or_runs_already_waits_for_nothing() {
    let mut world = World::of("4");
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    let first = world.run(1, 0, whole(0, &[0]));
    world.run(1, 1, whole(0, &[1]));
    world.step(2, vec![finished(first, 1)], vec![]);
    world.submit(3, 2, &["after 0", "after 0:failed", "after 1:started", "after 1 after 0"]);
    assert_eq!(waiting(&world), [2, 3, 4]);
    assert_eq!(world.job(5).reason, Reason::After { job: JobId(1) });
    assert_eq!(world.state().needs(JobId(5)).len(), 1);
}

#[test]
fn a_job_after_several_waits_for_the_last_and_says_for_whom() {
    let mut world = World::of("4");
    world.submit(0, 0, &["gpus 1", "gpus 1", "after 0:over after 1:over after 0:started"]);
    assert_eq!(world.job(2).reason, Reason::After { job: JobId(0) });
    world.step(1, vec![held(2, true)], vec![]);
    assert_eq!(world.job(2).reason, Reason::Held);
    let lease = world.run(2, 0, whole(0, &[0]));
    world.step(3, vec![held(2, false)], vec![]);
    assert_eq!(world.job(2).reason, Reason::After { job: JobId(0) });
    world.step(4, vec![finished(lease, 1)], vec![]);
    assert_eq!(world.job(2).phase, Phase::Held);
    assert_eq!(world.state().needs(JobId(2)).len(), 1);
    world.step(5, vec![cancel(1)], vec![]);
    assert_eq!(waiting(&world), [2]);
}

#[test]
fn a_job_says_for_whom_it_waits_when_the_first_of_them_has_come() {
    let mut world = World::of("4");
    world.submit(0, 0, &["gpus 1", "gpus 1", "after 0 after 1"]);
    let lease = world.run(1, 0, whole(0, &[0]));
    world.step(2, vec![finished(lease, 1)], vec![]);
    assert_eq!(world.job(2).reason, Reason::After { job: JobId(1) });
}

/// Who ended how, in order.
#[derive(Default)]
struct Endings(Vec<(u32, Ending, Reason)>);

impl Watch for Endings {
    fn retired(&mut self, _: Time, _: &ClusterState, job: &Job) {
        let Phase::Done(ending) = job.phase else { panic!("{:?} is not over", job.id) };
        self.0.push((job.id.0, ending, job.reason));
    }
}

#[test]
fn a_cancelled_job_takes_those_along_who_waited_for_its_success() {
    let mut world = World::new(Endings::default(), &[4]);
    world.submit(0, 0, &["gpus 1", "after 0", "after 0", "after 1 after 2", "after 3:over"]);
    world.step(1, vec![cancel(0)], vec![]);
    let in_vain = |after| (Ending::Cancelled, Reason::NeverComes { after: JobId(after) });
    let endings: Vec<_> =
        world.watch().0.iter().map(|(id, how, why)| (*id, (*how, *why))).collect();
    let expected =
        [(0, (Ending::Cancelled, Reason::New)), (1, in_vain(0)), (3, in_vain(1)), (2, in_vain(0))];
    assert_eq!(endings, expected);
    assert_eq!(world.job(4).phase, Phase::Pending);
}

#[test]
fn a_chain_of_ten_thousand_jobs_ends_without_a_deep_stack() {
    let mut world = World::new(Endings::default(), &[1]);
    let link = |id: u32| match id {
        0 => asks("gpus 1"),
        id => asks(&format!("gpus 1 after {}", id - 1)),
    };
    let jobs = (0..10_000).map(|id| submit(id, link(id))).collect();
    world.step(0, jobs, vec![]);
    assert_eq!(world.state().pending().len(), 1);
    world.step(1, vec![cancel(0)], vec![]);
    assert_eq!(world.state().job_count(), 0);
    let ids: BTreeSet<u32> = world.watch().0.iter().map(|(id, ..)| *id).collect();
    assert_eq!((ids.len(), world.watch().0.len()), (10_000, 10_000));
}

#[test]
fn an_array_lets_as_many_through_as_may_run_at_once() {
    let mut world = World::of("8");
    world.submit(0, 0, &["gpus 1 array 0:2"; 5]);
    assert_eq!(waiting(&world), [0, 1]);
    assert_eq!(world.job(2).reason, Reason::ArrayLimit);
    // Who is stopped and waits again still counts.
    let lease = world.run(1, 0, whole(0, &[0]));
    world.step(2, vec![stopped(lease, Outcome::Interrupted, 0, 0)], vec![]);
    assert_eq!(waiting(&world), [0, 1]);
    world.step(3, vec![cancel(1)], vec![]);
    assert_eq!(waiting(&world), [0, 2]);
    world.step(4, vec![held(0, true)], vec![]);
    assert_eq!(waiting(&world), [2, 3]);
    world.step(5, vec![held(0, false)], vec![]);
    assert_eq!(world.job(0).reason, Reason::ArrayLimit);
    // It came first, so it is next.
    world.step(6, vec![cancel(2)], vec![]);
    assert_eq!(waiting(&world), [0, 3]);
    world.step(7, vec![cancel(0), cancel(3), cancel(4)], vec![]);
    assert_eq!(world.state().job_count(), 0);
}

#[test]
fn an_array_within_a_quota_needs_room_in_both() {
    let mut world = World::of("8");
    world.step(0, vec![quota(0, Some(2))], vec![]);
    world.submit(1, 0, &["gpus 1", "gpus 1 array 1:2", "gpus 1 array 1:2", "gpus 1 array 1:2"]);
    assert_eq!(waiting(&world), [0, 1]);
    assert_eq!(world.job(2).reason, Reason::OverQuota);
    world.step(2, vec![quota(0, Some(3))], vec![]);
    assert_eq!(waiting(&world), [0, 1, 2]);
    assert_eq!(world.job(3).reason, Reason::ArrayLimit);
    world.step(3, vec![cancel(1)], vec![]);
    assert_eq!(waiting(&world), [0, 2, 3]);
}

#[test]
fn a_pause_ends_by_time_and_the_engine_wakes_for_it() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    assert_eq!(world.engine.wake(), None);
    world.step(1, vec![pause(0, 30), pause(1, 20)], vec![]);
    assert_eq!(world.job(0).reason, Reason::StartFailed);
    assert_eq!(world.engine.wake(), Some(secs(20)));
    // The last word counts.
    world.step(2, vec![pause(1, 25)], vec![]);
    assert_eq!(world.engine.wake(), Some(secs(25)));
    world.step(24, vec![], vec![]);
    assert_eq!(waiting(&world), [] as [u32; 0]);
    world.script(vec![Act::Start(1, whole(0, &[0]))]);
    world.engine.step(secs(25), vec![]).unwrap();
    assert_eq!(world.jobs().lines().nth(1), Some("job1 starts lease0 on node0[gpu0]"));
    world.step(31, vec![], vec![]);
    assert_eq!(waiting(&world), [0]);
    world.check_log();
}

#[test]
fn a_pause_of_what_runs_or_is_over_is_ignored_and_counted() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1"]);
    let lease = world.run(1, 0, whole(0, &[0]));
    world.step(2, vec![pause(0, 9), pause(7, 9)], vec![]);
    assert_eq!(world.state().stale_events(), 2);
    assert_ne!(world.engine.wake(), Some(secs(9)));
    world.step(3, vec![stopped(lease, Outcome::Interrupted, 0, 0), pause(0, 9)], vec![]);
    world.step(4, vec![held(0, true)], vec![]);
    world.step(10, vec![], vec![]);
    assert_eq!(world.job(0).reason, Reason::Held);
    world.step(11, vec![pause(0, 50), cancel(0)], vec![]);
    assert_eq!(world.engine.wake(), None);
}

#[test]
fn what_fits_nowhere_is_set_aside_until_a_node_joins() {
    let mut world = World::of("2");
    world.set_abilities(0, |abilities| abilities.grows = true);
    world.step(0, vec![quota(0, Some(9))], vec![]);
    let aside = vec![Act::new(|_, plan| {
        let reason = Reason::TooLarge { tasks: 1, fit: 0 };
        plan.turn_away(JobId(0), reason).unwrap();
    })];
    let jobs = vec![submit(0, asks("gpus 9")), submit(1, asks("gpus 1"))];
    world.step(1, jobs, aside);
    assert_eq!(world.job(0).reason, Reason::TooLarge { tasks: 1, fit: 0 });
    // It uses none of the quota meanwhile.
    assert_eq!(waiting(&world), [1]);
    world.step(2, vec![node_down(0)], vec![]);
    world.step(3, vec![node_up(0, 2)], vec![]);
    assert_eq!(waiting(&world), [1]);
    world.step(4, vec![cancel(1), node_up(1, 16)], vec![]);
    assert_eq!(waiting(&world), [0]);
    assert_eq!(world.job(0).reason, Reason::New);
}

#[test]
fn a_person_who_lets_go_has_what_was_set_aside_looked_at_again() {
    let mut world = World::of("2");
    world.set_abilities(0, |abilities| abilities.grows = true);
    let aside =
        |id| Act::new(move |_, plan| plan.turn_away(JobId(id), Reason::NoSuchModel).unwrap());
    world.submit(1, 0, &["gpus 1", "gpus 1"]);
    world.step(2, vec![], vec![aside(0), aside(1)]);
    world.step(3, vec![held(0, true)], vec![]);
    assert_eq!(world.job(0).reason, Reason::Held);
    assert!(world.job(0).gates.has(Gate::NoNode));
    world.step(4, vec![held(0, false)], vec![]);
    assert_eq!(waiting(&world), [0]);
    world.step(5, vec![cancel(1), node_up(1, 1)], vec![]);
    assert_eq!(waiting(&world), [0]);
}

#[test]
fn books_of_gates_differ_when_anything_in_them_does() {
    let mut world = World::of("2");
    world.set_abilities(0, |abilities| abilities.grows = true);
    let book = |world: &World| world.state().gates.clone();
    let mut books = vec![book(&world)];
    let aside = Act::new(|_, plan| plan.turn_away(JobId(2), Reason::NoSuchModel).unwrap());
    world.submit(1, 0, &["gpus 1"]);
    books.push(book(&world));
    world.submit(2, 1, &["gpus 1 array 1:1"]);
    books.push(book(&world));
    world.step(3, vec![submit(2, asks("gpus 1"))], vec![aside]);
    books.push(book(&world));
    world.submit(4, 3, &["gpus 1 after 0"]);
    books.push(book(&world));
    world.step(5, vec![pause(0, 90)], vec![]);
    books.push(book(&world));
    world.submit(6, 4, &["gpus 1 array 1:1"]);
    books.push(book(&world));
    for (at, one) in books.iter().enumerate() {
        for (other_at, other) in books.iter().enumerate() {
            assert_eq!(one == other, at == other_at, "{one:?} {other:?}");
        }
    }
}
