//! What tenants use: budgets that hold jobs back, and the past that is weighed.

use crate::account::Budget;
use crate::cluster::Tenant;
use crate::event::{Event, Outcome};
use crate::gate::Gate;
use crate::id::{JobId, TenantId};
use crate::job::Phase;
use crate::reason::Reason;
use crate::state::Change;
use crate::testkit::*;
use crate::units::Span;

const RED: TenantId = TenantId(0);
const BLUE: TenantId = TenantId(1);

fn budget(tenant: TenantId, gpu_secs: Option<u64>, every: u64) -> Event {
    let every = Span::from_secs(every);
    let budget = gpu_secs.map(|secs| Budget { gpu_time: Span::from_secs(secs), every });
    Event::TenantChanged { tenant, spec: Tenant { budget, ..Tenant::named("t") } }
}

fn waiting(world: &World) -> Vec<u32> {
    world.state().pending().iter().map(|id| id.0).collect()
}

#[test]
fn a_budget_that_is_used_up_holds_others_back_until_the_next_period() {
    let mut world = World::of("8");
    world.step(0, vec![budget(RED, Some(20), 100)], vec![]);
    world.submit(1, 0, &["gpus 4", "gpus 1", "tasks 1", "gpus 1 tenant 1"]);
    let lease = world.run(5, 0, whole(0, &[0, 1, 2, 3]));
    // Four GPUs use twenty seconds in five.
    assert_eq!(world.engine.wake(), Some(secs(10)));
    world.step(10, vec![], vec![]);
    assert_eq!(waiting(&world), [2, 3]);
    assert_eq!((world.job(1).phase, world.job(1).reason), (Phase::Held, Reason::OverBudget));
    // Who runs goes on; who comes waits.
    world.submit(11, 4, &["gpus 1", "tasks 1"]);
    assert!(world.job(4).gates.has(Gate::Budget));
    assert_eq!(world.job(5).phase, Phase::Pending, "it needs no GPU");
    world.step(14, vec![held(4, true), held(4, false)], vec![]);
    assert_eq!(world.job(4).reason, Reason::OverBudget);
    world.step(15, vec![finished(lease, 10)], vec![]);
    assert_eq!(world.state().tenant_account(RED).spent_at(secs(15)), Span::from_secs(40));
    assert_eq!((waiting(&world), world.engine.wake()), (vec![2, 3, 5], Some(secs(100))));
    world.step(100, vec![], vec![]);
    assert_eq!(waiting(&world), [1, 2, 3, 4, 5]);
    assert_eq!(world.state().tenant_account(RED).spent_at(secs(100)), Span::ZERO);
    world.check_log();
}

#[test]
fn who_is_stopped_when_the_budget_is_used_up_waits_for_the_next_period() {
    let mut world = World::of("8");
    world.step(0, vec![budget(RED, Some(10), 100)], vec![]);
    world.submit(0, 0, &["gpus 1"]);
    let lease = world.run(0, 0, whole(0, &[0]));
    world.step(10, vec![], vec![]);
    world.step(12, vec![stopped(lease, Outcome::Interrupted, 5, 0)], vec![]);
    assert_eq!((world.job(0).phase, world.job(0).reason), (Phase::Held, Reason::OverBudget));
    world.step(100, vec![], vec![]);
    assert_eq!(waiting(&world), [0]);
    world.check_log();
}

#[test]
fn a_larger_budget_lets_jobs_go_and_what_was_spent_still_counts() {
    let mut world = World::of("8");
    world.step(0, vec![budget(RED, Some(10), 1000)], vec![]);
    world.submit(1, 0, &["gpus 1", "gpus 1", "gpus 2"]);
    world.run(1, 0, whole(0, &[0]));
    world.step(11, vec![], vec![]);
    assert_eq!(waiting(&world), [0; 0]);
    world.step(12, vec![budget(RED, Some(30), 1000)], vec![]);
    assert_eq!(waiting(&world), [1, 2]);
    assert_eq!(world.engine.wake(), Some(secs(31)));
    world.step(31, vec![held(2, true)], vec![]);
    assert_eq!(waiting(&world), [0; 0]);
    // A person lets it go; the budget does not.
    world.step(32, vec![held(2, false)], vec![]);
    assert_eq!(world.job(2).reason, Reason::OverBudget);
    world.step(33, vec![cancel(2), budget(RED, None, 1)], vec![]);
    assert_eq!((waiting(&world), world.engine.wake()), (vec![1], None));
    world.check_log();
}

#[test]
fn a_budget_begins_when_it_is_given_and_moves_charge_what_is_held() {
    let mut world = World::of("8");
    world.set_abilities(0, |abilities| abilities.resize = true);
    let mut elastic = asks("gpus 1 tasks 2");
    elastic.elastic = Some(crate::job::Elastic { min: 1, max: 4 });
    world.step(0, vec![submit(0, elastic)], vec![]);
    let lease = world.run(0, 0, tasks(0, 2, &[0, 1]));
    world.step(10, vec![budget(RED, Some(40), 500)], vec![]);
    assert_eq!(world.state().tenant_account(RED).used_at(secs(10)), Span::from_secs(20));
    assert_eq!(world.engine.wake(), Some(secs(30)));
    world.step(20, vec![], vec![Act::Resize(lease, tasks(0, 4, &[0, 1, 2, 3]))]);
    assert_eq!(world.engine.wake(), Some(secs(25)));
    world.step(25, vec![], vec![]);
    assert!(world.state().is_spent(RED));
    // The period is over; what is held goes on to be charged to the next.
    world.step(510, vec![], vec![]);
    assert!(!world.state().is_spent(RED));
    assert_eq!(world.engine.wake(), Some(secs(520)));
    world.check_log();
}

#[test]
fn tenants_above_their_due_have_higher_levels_and_their_jobs_another_rank() {
    let mut world = World::of("8");
    let weigh = || Act::new(|_, plan| plan.weigh_past(Span::from_secs(6400)));
    world.submit(0, 0, &["gpus 2", "gpus 1 tenant 1", "gpus 1", "gpus 1 tenant 1"]);
    world.step(0, vec![], vec![weigh()]);
    world.run(0, 0, whole(0, &[0, 1]));
    world.run(0, 1, whole(0, &[2]));
    world.step(300, vec![], vec![weigh()]);
    let levels = |world: &World| [RED, BLUE].map(|t| world.state().tenant_account(t).level);
    // Two thirds where a half is due, and one third.
    assert_eq!(levels(&world), [2, -2]);
    assert_eq!(world.state().weighed_at(), Some(secs(300)));
    // The journal of the next question names the jobs whose tenants moved.
    let journal = world.state().journal();
    let queued = [JobId(2), JobId(3)].map(Change::Queued);
    assert_eq!(journal.since(journal.end() - 2), Some(&queued[..]));
    let heavy = Tenant { weight: 2, ..Tenant::named("red") };
    world.step(301, vec![Event::TenantChanged { tenant: RED, spec: heavy }], vec![]);
    world.step(400, vec![], vec![weigh()]);
    assert_eq!(levels(&world), [0, 0]);
    world.check_log();
}
