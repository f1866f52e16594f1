//! One look at a cluster, by which nothing is changed: what runs, what waits, and what keeps it.
//!
//! It goes the way of every look of a daemon: the same driver takes in the same lists, on a store
//! that is in memory only, and with a policy that starts nobody.

use std::sync::Arc;

use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, Wake};
use hostler_core::predict::EstimateSource;
use hostler_core::state::Snapshot;
use hostler_core::units::{Span, Time};
use hostler_core::view::View;

use super::read::{SlurmJob, SlurmNode};
use super::{Sight, SlurmCall, SlurmDriver, SlurmSettings, SlurmWord, Told};
use crate::driver::{Call, Word};
use crate::host::{Effect, Experience, Host, HostError, Input, JobFilter, Settings};
use crate::job::JobView;
use crate::limits::JOBS_MAX;
use crate::store::memory::Disk;

/// Rounds of questions and answers: more than a first look takes.
const ROUNDS: u64 = 8;

/// A cluster as it was seen.
pub struct Glance {
    /// The state, with running jobs where they are.
    pub state: Snapshot,
    /// How many nodes there are.
    pub nodes: usize,
    /// Jobs, by number.
    pub jobs: Vec<JobView>,
}

/// Lets everybody wait.
struct Nobody;

impl Policy for Nobody {
    fn estimates(&self) -> EstimateSource {
        EstimateSource::User
    }

    fn decide(&mut self, _: &View<'_>, _: Wake, _: &mut Plan<'_>) {}
}

/// What a daemon with these settings would know of a cluster at its first look.
pub fn glance(
    settings: SlurmSettings,
    counts_memory: bool,
    nodes: &[SlurmNode],
    jobs: &[SlurmJob],
    now: Time,
) -> Result<Glance, HostError> {
    let driver = Box::new(SlurmDriver::new(settings));
    let builder = Arc::new(|_: &str| Ok(Box::new(Nobody) as Box<dyn Policy>));
    let store = Box::new(Disk::default().store());
    let (host_settings, experience) = (Settings::new("kind = 'nobody'"), Experience::default());
    let mut host = Host::open_with(driver, store, builder, host_settings, experience, now)?;
    let mut inputs = Vec::new();
    for round in 0..ROUNDS {
        let at = now + Span::from_secs(round);
        let effects = host.handle(at, std::mem::take(&mut inputs))?;
        for effect in effects {
            // What it would change is left undone.
            let Effect::Call(Call::Slurm(SlurmCall::Read { number, what })) = effect else {
                continue;
            };
            let told = match what {
                Sight::Config => Told::Config { counts_memory },
                Sight::Nodes => Told::Nodes(nodes.to_vec()),
                Sight::Jobs => Told::Jobs(jobs.to_vec()),
                Sight::Briefs => Told::Briefs(Vec::new()),
            };
            inputs.push(Input::Driver(Word::Slurm(SlurmWord::Told { number, told: Ok(told) })));
        }
    }
    let all = JobFilter { limit: JOBS_MAX, ..JobFilter::default() };
    Ok(Glance { state: host.snapshot(), nodes: host.nodes().len(), jobs: host.jobs(&all) })
}
