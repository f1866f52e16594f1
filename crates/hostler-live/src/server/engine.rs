//! The one place that chooses what runs the jobs of a daemon.

use tokio::runtime::Handle;

use crate::driver::slurm::SlurmCaller;
use crate::driver::{AgentDriver, Caller, Driver, SlurmDriver, SlurmSettings};
use crate::host::{self, Ear};

/// What runs the jobs of a daemon.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Engine {
    /// Agents on machines.
    #[default]
    Agents,
    /// Slurm.
    Slurm(SlurmSettings),
}

impl Engine {
    /// Its driver.
    pub fn driver(&self, settings: &host::Settings) -> Box<dyn Driver> {
        match self {
            Engine::Agents => Box::new(AgentDriver::new(settings.clone())),
            Engine::Slurm(slurm) => Box::new(SlurmDriver::new(slurm.clone())),
        }
    }

    /// Who carries out what the driver asks of a cluster manager, where there is one.
    pub fn caller(&self, runtime: Handle, ear: Ear) -> Option<Box<dyn Caller>> {
        match self {
            Engine::Agents => None,
            Engine::Slurm(slurm) => Some(Box::new(SlurmCaller::new(slurm, runtime, ear))),
        }
    }
}
