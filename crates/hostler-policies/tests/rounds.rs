//! Sharing time out on a whole trace: what rounds that waste nothing gain, and what pairs do.

use std::path::Path;

use hostler_core::engine::Engine;
use hostler_core::executor;
use hostler_core::job::{Ending, Job, Phase};
use hostler_core::state::ClusterState;
use hostler_core::units::Time;
use hostler_core::watch::Watch;
use hostler_policies::from_toml;
use hostler_sim::parity::gavel::{self, Options};
use hostler_sim::world::{Listed, World};

/// How rounds go in the published simulator.
const PUBLISHED: &str =
    "gap_secs = 1920\nreuse = false\nblank_turns = true\nplace = 'first-fit'\nmodels = 'listed'";

#[derive(Default)]
struct Times {
    sum: f64,
    done: u32,
}

impl Watch for Times {
    fn retired(&mut self, at: Time, _: &ClusterState, job: &Job) {
        assert_eq!(job.phase, Phase::Done(Ending::Finished));
        self.sum += at.since(job.submitted).secs_f64();
        self.done += 1;
    }
}

struct Input {
    rows: Vec<gavel::Row>,
    speeds: hostler_sim::trace::Throughputs,
    options: Options,
}

fn input() -> Input {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/gavel");
    Input {
        rows: gavel::read(&folder.join("own_cont_single_80.trace")).expect("a trace"),
        speeds: gavel::read_speeds(&folder.join("own_throughputs.json")).expect("a table"),
        options: Options { gpus: [4, 4, 4], prices: [1.0; 3] },
    }
}

/// Mean completion time in the simulator of this project, and solutions that were fallbacks.
fn simulated(input: &Input, policy: &str) -> (f64, u64) {
    let workload = gavel::workload(&input.rows, &input.speeds, &input.options);
    let workload = workload.expect("all jobs are known");
    let arrivals = Listed::new(workload.jobs);
    let mut world = World::new(workload.site, arrivals, workload.truth);
    let mut engine = Engine::new(from_toml(policy).expect("settings"), Times::default());
    executor::run(&mut world, &mut engine);
    let (state, times) = engine.into_parts();
    assert_eq!(times.done as usize, input.rows.len());
    (times.sum / f64::from(times.done), state.solves().1)
}

#[test]
fn rounds_that_waste_nothing_beat_those_of_the_published_simulator() {
    let input = input();
    for kind in ["max-min-fairness", "finish-time-fairness"] {
        let published = from_toml(&format!("kind = '{kind}'\n{PUBLISHED}")).unwrap();
        let published = gavel::run(&input.rows, &input.speeds, &input.options, published).unwrap();
        let (own, fallbacks) = simulated(&input, &format!("kind = '{kind}'"));
        assert!(own < published.avg_jct_s, "{kind}: {own} against {}", published.avg_jct_s);
        assert_eq!(fallbacks, 0, "{kind}");
    }
}

#[test]
fn pairs_on_one_gpu_shorten_the_mean_completion_time() {
    let input = input();
    let (alone, _) = simulated(&input, "kind = 'max-min-fairness'");
    let (packed, _) = simulated(&input, "kind = 'max-min-fairness'\npacked = true");
    assert!(packed < 0.9 * alone, "{packed} s packed, {alone} s alone");
}
