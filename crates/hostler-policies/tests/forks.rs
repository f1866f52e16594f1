//! A world that goes on from the middle of another run comes to the same end.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeSet;

use hostler_core::engine::Engine;
use hostler_core::executor;
use hostler_core::id::JobId;
use hostler_core::job::{Ending, Job, Phase};
use hostler_core::predict::UserEstimate;
use hostler_core::state::{ClusterState, Snapshot};
use hostler_core::units::Time;
use hostler_core::watch::Watch;
use hostler_policies::builtin;
use hostler_sim::fixture::Fixture;
use hostler_sim::world::{Listed, Truth, World};

const STORY: &str = "
    node n1 gpus 4 model V100
    node n2 gpus 4 model K80
    profile p V100=1 K80=0.5
    tenant red quota 5
    job a at 0 gpus 3 for 100 profile p save 2 load 3 every 20
    job b at 1 gpus 4 for 50 profile p save 2 load 3
    job c at 7 gpus 1 for 90 tenant red
    job d at 13 gpus 1 for 200 after a
    job e at 21 gpus 4 for 33 priority 5 tenant red save 1 load 2
    job f at 34 gpus 1 for 17 after c:started
    job g at 55 gpus 2 for 71 priority 1 save 3 load 1 every 9
    job h at 89 gpus 1 for 40 array_of h array_max 1
    job i at 144 gpus 1 for 41 array_of h array_max 1
    job j at 233 gpus 4 for 10
";

/// Jobs that cannot be saved give way by being suspended, and not all at once.
const SUSPENDING: &str = "
    model V100 mem 4096
    node n1 gpus 4 model V100 cpu 64 mem 20000
    node n2 gpus 2 model V100 cpu 64 mem 9000
    suspend fixed 1 out 2 back 1
    job a at 0 gpus 2 mem 3000 for 100 saves never
    job b at 1 gpus 2 mem 500 for 90 saves never
    job c at 2 gpus 2 for 80 saves never
    job d at 13 gpus 4 mem 4000 for 40 priority 5 saves never
    job e at 20 gpus 1 for 30 priority 2 save 5 load 5
    job f at 41 gpus 2 for 25 priority 7
    job g at 60 gpus 0 mem 8000 for 20 priority 1
";

/// When jobs ended, and how.
#[derive(Clone, Default, PartialEq, Debug)]
struct Ends(Vec<(JobId, Time, Phase)>);

impl Watch for Ends {
    fn retired(&mut self, at: Time, _: &ClusterState, job: &Job) {
        self.0.push((job.id, at, job.phase));
    }
}

/// Runs a story; the answer is when jobs end, and the state before each step.
fn run(story: &str, policy: &str) -> (Ends, Vec<Snapshot>) {
    let fixture = Fixture::parse(story).unwrap();
    let truth = Truth::new(fixture.runs.iter().copied());
    let mut engine = Engine::new(builtin().from_toml(policy).unwrap(), Ends::default())
        .with_predictor(Box::new(UserEstimate));
    let mut world = World::new(fixture.site, Listed::new(fixture.jobs), truth);
    let mut snapshots = Vec::new();
    let keep = |engine: &mut Engine<Ends>| snapshots.push(engine.snapshot());
    executor::run_with(&mut world, &mut engine, keep).unwrap();
    (engine.into_parts().1, snapshots)
}

/// Goes on from a state: when the jobs end that are not over there.
fn fork(story: &str, policy: &str, snapshot: Snapshot) -> Ends {
    let fixture = Fixture::parse(story).unwrap();
    let mut engine = Engine::new(builtin().from_toml(policy).unwrap(), Ends::default())
        .with_predictor(Box::new(UserEstimate));
    engine.restore(snapshot);
    let first = engine.state().next_job();
    let later = Listed::new(fixture.jobs[first.index()..].to_vec()).numbered_from(first);
    let runs = (0..).map(JobId).zip(fixture.runs.iter().copied());
    let truth = Truth::of(runs.collect::<Vec<_>>());
    let physics = fixture.site.physics.clone();
    let mut world = World::from_state(engine.state(), physics, later, truth);
    executor::run(&mut world, &mut engine).unwrap();
    engine.into_parts().1
}

#[test]
fn a_fork_at_any_time_ends_as_the_run_itself() {
    let preempting = "kind = 'priority'\npreempt = true";
    let policies = ["kind = 'fifo'", preempting, "kind = 'fifo-backfill'"];
    let stories = policies.map(|policy| (STORY, policy));
    for (story, policy) in stories.into_iter().chain([(SUSPENDING, preempting)]) {
        let (whole, snapshots) = run(story, policy);
        assert_eq!(whole.0.len(), story.matches("job ").count(), "{policy}");
        // The first one is before there is a cluster.
        for (step, snapshot) in snapshots.into_iter().enumerate().skip(1) {
            let forked = fork(story, policy, snapshot);
            let rest = &whole.0[whole.0.len() - forked.0.len()..];
            assert_eq!(forked.0, rest, "{policy}, step {step}");
        }
    }
}

#[test]
fn every_policy_goes_on_with_jobs_that_another_one_suspended() {
    let (_, snapshots) = run(SUSPENDING, "kind = 'priority'\npreempt = true");
    for def in builtin().all() {
        let policy = format!("kind = '{}'", def.kind);
        for (step, snapshot) in snapshots.iter().enumerate().skip(1) {
            let forked = fork(SUSPENDING, &policy, snapshot.clone());
            let done = |(job, _, phase): &(JobId, Time, Phase)| {
                assert_eq!(*phase, Phase::Done(Ending::Finished), "{policy}, step {step}: {job:?}");
                *job
            };
            let done: BTreeSet<JobId> = forked.0.iter().map(done).collect();
            assert_eq!(done, still_to_end(snapshot), "{policy}, step {step}");
        }
    }
}

/// Jobs that are not over in a state, and those that have not come yet.
fn still_to_end(snapshot: &Snapshot) -> BTreeSet<JobId> {
    let mut engine = Engine::new(builtin().from_toml("kind = 'fifo'").unwrap(), Ends::default());
    engine.restore(snapshot.clone());
    let state = engine.state();
    let all = SUSPENDING.matches("job ").count() as u32;
    let coming = (state.next_job().0..all).map(JobId);
    state.jobs().map(|job| job.id).chain(coming).collect()
}
