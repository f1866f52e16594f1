//! Rounds, turns and the accounts of shares.

use std::sync::Arc;

use crate::event::{Event, Outcome};
use crate::id::{JobId, ModelId};
use crate::target::{Account, Solution, SolveRecord, Target, Team, Turn};
use crate::testkit::*;
use crate::units::Span;

const MODEL: ModelId = ModelId(0);

fn alone(job: u32) -> Team {
    Team::alone(JobId(job))
}

fn pair() -> Team {
    Team::pair(JobId(1), JobId(0))
}

fn solved(world: &World, targets: &[(Team, u64)]) -> Event {
    let target = |(team, percent): &(Team, u64)| Target {
        team: *team,
        model: MODEL,
        share: Target::ALL / 100 * percent,
    };
    let record = SolveRecord { job: JobId(0), steps_left: 7, isolated: 1, credit: Span::ZERO };
    let solution = Solution {
        targets: targets.iter().map(target).collect(),
        solve_records: vec![record],
        fallback: targets.is_empty(),
    };
    Event::Solved { based_on: world.state().step(), solution: Arc::new(solution) }
}

fn round(turns: &[(Team, ModelId)]) -> Act {
    let turns = turns.iter().map(|(team, model)| Turn { team: *team, model: *model }).collect();
    Act::new(move |_, plan| {
        plan.begin_round();
        plan.take_turns(turns);
    })
}

fn served(world: &World, team: Team) -> u64 {
    world.state().account(team, MODEL).served.0 / 1_000_000
}

#[test]
fn time_goes_to_the_account_of_the_job_and_a_solution_starts_it_anew() {
    let mut world = World::of("2 | 2 model 1");
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    world.step(0, vec![solved(&world, &[(alone(0), 50), (alone(1), 100)])], vec![]);
    assert_eq!(world.state().solves(), (1, 0));
    world.run(10, 0, whole(0, &[0]));
    world.step(30, vec![], vec![round(&[])]);
    assert_eq!((served(&world, alone(0)), served(&world, alone(1))), (20, 0));
    world.step(40, vec![stopped(0, Outcome::Interrupted, 0, 0)], vec![]);
    assert_eq!(served(&world, alone(0)), 30);
    // Half of 100 s was due and 30 s were had; all of 100 s was due and none was had.
    world.step(100, vec![solved(&world, &[])], vec![]);
    let account = |job| world.state().account(alone(job), MODEL);
    let deficit = |deficit| Account { share: 0, served: Span::ZERO, deficit };
    assert_eq!(account(0), deficit(20_000_000));
    assert_eq!(account(1), deficit(100_000_000));
    assert_eq!(world.state().solves(), (2, 1));
    assert_eq!(world.state().solved_at(), Some(secs(100)));
    assert_eq!(world.state().account(alone(0), ModelId(1)), Account::default());
    world.check_log();
}

#[test]
fn a_solution_is_stale_once_something_it_depends_on_has_changed() {
    let mut world = World::of("2");
    assert!(world.state().solution_is_stale());
    world.submit(1, 0, &["gpus 1"]);
    let solution = solved(&world, &[(alone(0), 100)]);
    world.step(2, vec![solution], vec![]);
    assert!(!world.state().solution_is_stale());
    world.run(3, 0, whole(0, &[0]));
    assert!(!world.state().solution_is_stale(), "a start changes no shares");
    world.step(4, vec![node_up(1, 1)], vec![]);
    assert!(world.state().solution_is_stale());
    let catalogue = world.state().catalogue_step();
    assert_eq!(catalogue, world.state().step());
    world.step(5, vec![cancel(0)], vec![]);
    assert_eq!(world.state().catalogue_step(), catalogue);
}

#[test]
fn two_jobs_that_share_have_one_account_and_the_older_keeps_it() {
    let mut world = World::of("1");
    world.submit(0, 0, &["gpu 500", "gpu 500"]);
    world.step(0, vec![solved(&world, &[(pair(), 80)])], vec![round(&[(pair(), MODEL)])]);
    world.run(10, 0, fraction(0, 0, 500));
    world.run(10, 1, fraction(0, 0, 500));
    assert_eq!(world.state().turn(JobId(1)).unwrap().team, pair());
    world.step(30, vec![], vec![round(&[(pair(), MODEL)])]);
    assert_eq!((served(&world, pair()), served(&world, alone(0))), (20, 0));
    let accounts: Vec<Team> = world.state().pair_accounts().map(|(team, ..)| team).collect();
    assert_eq!(accounts, [pair()]);
    // One of them is over: the other keeps its turn by itself, and the account is gone.
    world.step(40, vec![finished(0, 1)], vec![]);
    assert_eq!(world.state().turn(JobId(1)), Some(Turn { team: alone(1), model: MODEL }));
    assert_eq!(world.state().pair_accounts().count(), 0);
    world.step(50, vec![], vec![round(&[])]);
    assert_eq!(served(&world, alone(1)), 20);
}

#[test]
fn a_turn_holds_for_its_round_and_its_model() {
    let mut world = World::of("1 | 1 model 1");
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    let turns = [(alone(0), MODEL), (alone(1), ModelId(1))];
    world.step(1, vec![], vec![round(&turns)]);
    assert_eq!(world.state().round().unwrap().number, 0);
    assert_eq!(world.state().turn(JobId(1)), Some(Turn { team: alone(1), model: ModelId(1) }));
    world.step(2, vec![], vec![round(&[])]);
    assert_eq!((world.state().round().unwrap().number, world.state().turn(JobId(1))), (1, None));
    assert!(!world.state().round_is_over(Span::from_secs(5)));
    world.step(7, vec![], vec![]);
    assert!(world.state().round_is_over(Span::from_secs(5)));
    assert!(!world.state().round_is_over(Span::from_secs(6)));
    world.step(7, vec![Event::RoundEnded], vec![]);
    assert!(world.state().round_is_over(Span::from_secs(6)));
}

#[test]
fn targets_of_jobs_that_are_over_are_left_out() {
    let mut world = World::of("2");
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    let late = solved(&world, &[(alone(0), 10), (pair(), 20), (alone(1), 30)]);
    world.step(1, vec![cancel(1)], vec![]);
    world.step(2, vec![late], vec![]);
    assert_eq!(world.state().account(alone(0), MODEL).share, Target::ALL / 10);
    assert_eq!(world.state().pair_accounts().count(), 0);
    assert_eq!(world.state().solve_record(JobId(0)).unwrap().steps_left, 7);
    assert!(world.state().solution_is_stale(), "it looked at a state before the end");
}

#[test]
fn an_answer_to_an_earlier_question_leaves_the_later_one_open() {
    let mut world = World::of("2");
    let ask = || Act::new(|_, plan| plan.solve());
    world.step(1, vec![], vec![ask()]);
    let first = solved(&world, &[]);
    world.step(2, vec![], vec![ask()]);
    let second = world.state().solve_asked();
    assert_eq!(second, Some(world.state().step()));
    world.step(3, vec![first], vec![]);
    assert_eq!(world.state().solve_asked(), second);
    let Event::Solved { solution, .. } = solved(&world, &[]) else { unreachable!() };
    world.step(4, vec![Event::Solved { based_on: second.unwrap(), solution }], vec![]);
    assert_eq!(world.state().solve_asked(), None);
}

#[test]
fn a_deficit_is_what_was_due_less_what_was_had() {
    let mut account = Account { share: Target::ALL / 4, served: Span::from_secs(30), deficit: 5 };
    account.close(Span::from_secs(100));
    assert_eq!(account, Account { share: 0, served: Span::ZERO, deficit: -4_999_995 });
    let full = Account { share: Target::ALL, ..Account::default() };
    assert_eq!(full.urgency(Span::from_secs(2)), 0.5);
}
