//! Agents whose folder was copied: the second is refused for as long as the first may live.
//!
//! A copy holds none of the first one's leases, or believes those dead that run: welcomed, it would
//! have them started again while they go on. An agent that was killed and started again is known
//! by its folder, and comes back at once even while its old connection seems to stand. One whose
//! machine was started again looks like the copy of a machine; it has to wait until the other was
//! silent for as long as a node is that gets nothing new.

use hostler_core::id::NodeId;

use super::AgentDriver;
use crate::host::Desk;
use crate::wire::{Kinship, Machine};

/// Why an agent is not welcomed.
pub(super) struct Refusal {
    pub(super) fault: String,
    /// Whether it may be welcomed later.
    pub(super) retry: bool,
}

impl Refusal {
    /// Nothing will change by waiting.
    pub(super) fn lasting(fault: String) -> Refusal {
        Refusal { fault, retry: false }
    }
}

impl AgentDriver {
    /// Whether an agent is the one that spoke for its node before, or that one is surely gone.
    pub(super) fn check_copy(&mut self, desk: &Desk, machine: &Machine) -> Result<(), Refusal> {
        let Some(row) = desk.node_row(&machine.name) else { return Ok(()) };
        // Agents of before do not say who they are.
        let (Some(first), Some(second)) = (&row.machine.instance, &machine.instance) else {
            return Ok(());
        };
        let node = desk.state().node(NodeId(row.id));
        let nothing_runs_twice = match second.kinship(first) {
            Kinship::Same => return Ok(()),
            // All that ran there ended with the machine.
            Kinship::Restarted => true,
            Kinship::Strange => node.leases.is_empty(),
        };
        let Some(live) = self.agents.nodes.get_mut(&NodeId(row.id)) else { return Ok(()) };
        let silence = desk.now().since(live.last_beat);
        if silence >= self.settings.silent && nothing_runs_twice {
            live.challenger = None;
            return Ok(());
        }
        let since = match &live.challenger {
            Some((challenger, since)) if challenger == second => *since,
            _ => desk.now(),
        };
        live.challenger = Some((second.clone(), since));
        let lives = live.session.is_some() && live.last_beat > since;
        Err(refusal(&row.machine, silence.secs_f64(), lives))
    }
}

fn refusal(first: &Machine, silence_secs: f64, lives: bool) -> Refusal {
    let Machine { name, address, .. } = first;
    let other = format!("another agent speaks for node `{name}` from {address}");
    let fault = match lives {
        true => format!(
            "{other} and lives; this one has a copy of its folder or token: stop one of them, or \
             let this machine join under a name of its own, with an empty `--data` folder and a \
             token of `hostler token create --role agent NAME`"
        ),
        false => format!(
            "{other} and was heard {silence_secs:.0} s ago; this one has to wait until that is \
             surely gone"
        ),
    };
    Refusal { fault, retry: !lives }
}
