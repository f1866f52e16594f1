//! Whether this machine suspends jobs: its GPUs must let themselves be emptied from outside.

use hostler_cuda::Driver;

use super::gpus::Gpus;
use crate::wire::{Machine, SUSPEND};

/// Whether jobs are suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspending {
    /// Where the driver of the GPUs can.
    Auto,
    /// With made-up GPUs as well: there is nothing on them, so that jobs just stand still.
    On,
    /// Never.
    Off,
}

impl Suspending {
    /// Lets a machine say that its jobs can be suspended, or why not.
    pub fn offer(self, gpus: &Gpus, machine: &mut Machine) {
        let able = match (self, gpus) {
            (Suspending::Off, Gpus::Nvml(_)) => Err("its agent was told not to".to_owned()),
            (Suspending::Auto | Suspending::On, Gpus::Nvml(_)) => {
                Driver::check().map(|()| true).map_err(|fault| fault.to_string())
            }
            (Suspending::On, Gpus::Fake(_)) => Ok(true),
            (Suspending::Auto | Suspending::Off, Gpus::Fake(_)) | (_, Gpus::None) => Ok(false),
        };
        match able {
            Ok(true) => machine.abilities.push(SUSPEND.to_owned()),
            Ok(false) => {}
            Err(fault) => machine.cannot_suspend = fault,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_gpus_are_left_only_where_that_is_asked_for() {
        let gpus = Gpus::Fake("2xV100".parse().unwrap());
        for (suspending, able) in
            [(Suspending::Auto, false), (Suspending::On, true), (Suspending::Off, false)]
        {
            let mut machine = Machine::default();
            suspending.offer(&gpus, &mut machine);
            assert_eq!(machine.can(SUSPEND), able, "{suspending:?}");
            assert_eq!(machine.cannot_suspend, "");
        }
    }
}
