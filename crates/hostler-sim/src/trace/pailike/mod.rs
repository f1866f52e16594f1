//! Generator of synthetic traces whose marginals resemble the PAI cluster.
//!
//! Users with very uneven activity repeat their own templates (recurrence groups); arrivals follow
//! the hour of day and the day of week. The same options give the same trace on every platform.
//! Not modelled: roles of a job, failures over time, growth of jobs by time of day.

mod arrivals;
mod draw;
mod formats;
mod habits;
mod tables;
mod uses;

pub use draw::{DrawnJob, Draws, Template};
pub use formats::Format;
pub use tables::GpuType;

use std::collections::BTreeMap;

use super::cluster::{Cluster, scaled};
use super::error::TraceError;
use super::limits::{GENERATED_HOURS_MAX, GENERATED_JOBS_MAX};
use super::load::load;
use super::meta::{Maker, Meta};
use super::table::Trace;

/// Options of the generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaiLike {
    /// Number of jobs.
    pub jobs: u32,
    /// Same seed, same trace.
    pub seed: u64,
    /// Mean arrivals per hour.
    pub per_hour: f64,
    /// Divides the number of machines and the largest gang.
    pub scale: u32,
    /// Whether to draw what jobs really use of their GPUs, and who is willing to share.
    pub gpu_use: bool,
    /// Whether users come back to kinds of work, as recorded users do, and jobs have names and
    /// queues.
    pub habits: bool,
}

impl Default for PaiLike {
    fn default() -> PaiLike {
        PaiLike { jobs: 2000, seed: 1, per_hour: 345.0, scale: 1, gpu_use: false, habits: false }
    }
}

impl PaiLike {
    /// Draws the jobs; see [`Draws`] for what can be made of them.
    pub fn draw(&self) -> Result<Draws, TraceError> {
        self.check()?;
        let mut draws = draw::bodies(self);
        arrivals::assign(self, &mut draws.jobs);
        Ok(draws)
    }

    /// The trace in memory, with the machines of the PAI cluster at this scale.
    pub fn generate(&self) -> Result<Trace, TraceError> {
        self.draw()?.to_trace()
    }

    /// The PAI cluster at this scale.
    pub fn cluster(&self) -> Cluster {
        scaled(&Cluster::pai(), self.scale)
    }

    /// The same jobs at the arrival rate that offers `target` load (1.0 = all GPUs or all cores
    /// busy, whichever is scarcer) to a cluster.
    ///
    /// What a job asks and how long it runs does not depend on the rate (separate streams of
    /// chance), so the rate is found by drawing arrival times alone, a few times. Hours and days
    /// keep their shape. Short traces meet the target less well: their span is a matter of luck.
    pub fn at_load(&self, target: f64, cluster: &Cluster) -> Result<PaiLike, TraceError> {
        if !(target.is_finite() && target > 0.0) {
            let (value, expected) = (target.to_string(), "a number above 0".to_owned());
            return Err(TraceError::Option { name: "load", value, expected });
        }
        const ROUNDS_MAX: usize = 24;
        const CLOSE_ENOUGH: f64 = 0.002;
        let mut options = *self;
        let mut trace = options.generate()?;
        let mut best = (f64::INFINITY, options);
        for _ in 0..ROUNDS_MAX {
            let ratio = target / load(&trace, &cluster.nodes).max();
            let error = (ratio - 1.0).abs();
            if error < best.0 {
                best = (error, options);
            }
            if error < CLOSE_ENOUGH || !ratio.is_finite() {
                break;
            }
            options.per_hour *= ratio;
            options.check()?;
            let times = arrivals::times(&options);
            for (job, at) in trace.jobs.iter_mut().zip(times) {
                job.submit_ms = at * 1000;
            }
        }
        Ok(best.1)
    }

    /// Origin of what these options make.
    fn meta(&self) -> Meta {
        let options = [
            ("jobs", self.jobs.to_string()),
            ("seed", self.seed.to_string()),
            ("per_hour", self.per_hour.to_string()),
            ("scale", self.scale.to_string()),
        ];
        let switches = [("gpu_use", self.gpu_use), ("habits", self.habits)];
        let switches = switches.into_iter().filter(|(_, on)| *on);
        let switches = switches.map(|(name, on)| (name, on.to_string()));
        let options = options.into_iter().chain(switches);
        Meta {
            source: "synthetic, marginals like the PAI cluster".to_owned(),
            licence: "MIT OR Apache-2.0".to_owned(),
            time_origin: "relative".to_owned(),
            time_zone: "UTC".to_owned(),
            importer: Some(Maker::own("pai-like")),
            options: options.map(|(name, value)| (name.to_owned(), value)).collect(),
            rows: BTreeMap::new(),
            ..Meta::default()
        }
    }

    fn check(&self) -> Result<(), TraceError> {
        let refuse = |name, value: String, expected: String| {
            Err(TraceError::Option { name, value, expected })
        };
        if !(1..=GENERATED_JOBS_MAX).contains(&self.jobs) {
            let expected = format!("1 to {GENERATED_JOBS_MAX}");
            return refuse("jobs", self.jobs.to_string(), expected);
        }
        let slowest = f64::from(self.jobs) / GENERATED_HOURS_MAX;
        if !(slowest.max(1e-6)..=1e9).contains(&self.per_hour) {
            let expected = format!("{} to 1e9", slowest.max(1e-6));
            return refuse("per-hour", self.per_hour.to_string(), expected);
        }
        if !(1..=1000).contains(&self.scale) {
            return refuse("scale", self.scale.to_string(), "1 to 1000".to_owned());
        }
        Ok(())
    }
}
