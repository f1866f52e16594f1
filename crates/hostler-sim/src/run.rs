//! One simulation: a workload under a policy.

use hostler_core::engine::{Engine, Recorder};
use hostler_core::event::Event;
use hostler_core::executor;
use hostler_core::metrics::Contention;
use hostler_core::policy::Policy;
use hostler_core::predict::{EstimateSource, Predict, UserEstimate};
use hostler_core::state::ClusterState;
use hostler_core::units::Time;
use hostler_core::verify::Violation;
use hostler_core::watch::Watch;
use hostler_predict::{BlendRun, CartRun, Distortion, MedianRun, Speeds, Trained, WithSpeeds};

use crate::lower::Workload;
use crate::world::{Oracle, Truth, World};

/// What a simulation leaves behind.
pub struct Finished<Watcher> {
    /// The cluster at the end.
    pub state: ClusterState,
    /// Those who looked on.
    pub watch: Watcher,
    /// Facts that were taken in.
    pub events: u64,
    /// What sharing of GPUs cost, where the trace tells what jobs really use.
    pub contention: Option<Contention>,
}

/// Where the log goes.
pub struct Log {
    /// Takes the records.
    pub recorder: Recorder,
    /// The policy as TOML: the first fact of the log, so that a replay can ask it again.
    pub policy: String,
}

/// Runs a workload under a policy until nothing can happen any more, or the policy breaks a rule.
pub fn simulate<Watcher: Watch>(
    workload: &Workload,
    policy: Box<dyn Policy>,
    watch: Watcher,
    log: Option<Log>,
) -> Result<Finished<Watcher>, Violation> {
    let predict = workload.estimates.predictor(policy.estimates(), &workload.truth);
    simulate_by(workload, policy, predict, watch, log)
}

/// The same with run times of a predictor, whatever the policy asks for.
pub fn simulate_by<Watcher: Watch>(
    workload: &Workload,
    policy: Box<dyn Policy>,
    predict: Box<dyn Predict>,
    watch: Watcher,
    log: Option<Log>,
) -> Result<Finished<Watcher>, Violation> {
    let mut engine = Engine::new(policy, watch).with_predictor(predict);
    if let Some(log) = log {
        engine = engine.with_recorder(log.recorder);
        let settings = log.policy.into();
        engine.step(Time::ZERO, vec![Event::PolicyChanged { settings }])?;
    }
    let mut world = World::new(workload.site.clone(), workload.arrivals(), workload.truth.clone());
    executor::run(&mut world, &mut engine)?;
    let events = engine.events();
    let (state, watch) = engine.into_parts();
    let contention = world.contention();
    Ok(Finished { state, watch, events, contention })
}

/// The predictor for a source of estimates, where nothing was trained and nothing is distorted.
pub fn predictor(source: EstimateSource, truth: &Truth) -> Box<dyn Predict> {
    Estimates::default().predictor(source, truth)
}

/// Where estimates come from besides what a policy asks for.
#[derive(Clone, Debug, Default)]
pub struct Estimates {
    /// The model behind `estimate = "trained"`.
    pub trained: Option<Trained>,
    /// How estimates are spoilt on their way to the policy.
    pub distortion: Distortion,
    /// What is learnt of speeds from stays that are over, if anything.
    pub speeds: Option<Speeds>,
}

impl Estimates {
    /// The predictor for a source of estimates.
    ///
    /// Panics when a trained model is asked for and there is none.
    pub fn predictor(&self, source: EstimateSource, truth: &Truth) -> Box<dyn Predict> {
        let predict: Box<dyn Predict> = match source {
            EstimateSource::User => Box::new(UserEstimate),
            EstimateSource::Oracle => Box::new(Oracle(truth.clone())),
            EstimateSource::Median => Box::new(MedianRun::default()),
            EstimateSource::Cart => Box::new(CartRun::default()),
            EstimateSource::Blend => Box::new(BlendRun::default()),
            EstimateSource::Trained => {
                let trained = self.trained.clone();
                Box::new(trained.expect("a model was given to a policy that goes by one"))
            }
        };
        let predict = self.distortion.before(predict);
        match self.speeds.clone() {
            Some(speeds) => Box::new(WithSpeeds::new(predict, speeds)),
            None => predict,
        }
    }
}
