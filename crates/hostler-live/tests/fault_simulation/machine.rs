//! A machine: an agent, what it wrote down, and shims that keep jobs while it is away.

use std::collections::BTreeMap;

use hostler_core::id::LeaseId;
use hostler_live::agent::core::{AgentCore, Alive, MemoryDisk};
use hostler_live::wire::{EndNotes, Machine, SUSPEND, Stage, StartOrder, TaskExit};

use super::network::Dice;

/// A machine.
pub struct Node {
    pub number: usize,
    pub about: Machine,
    pub token: u32,
    /// None while the agent is dead.
    pub agent: Option<AgentCore<MemoryDisk>>,
    /// What the agent wrote down, while it is dead.
    pub disk: Option<MemoryDisk>,
    /// Survive the agent, not the machine.
    pub shims: BTreeMap<LeaseId, Shim>,
    /// The file by which the agent tells the shims that it is believed.
    pub alive: Option<Alive>,
    /// The connection that stands, from the agent's side.
    pub session: Option<u64>,
    /// Whether nothing gets through to the daemon.
    pub cut: bool,
    /// Whether the machine has power.
    pub powered: bool,
}

/// What keeps the tasks of a lease.
pub struct Shim {
    /// Its lease is the one that the tasks work for now.
    pub order: StartOrder,
    /// The lease that they worked for when they left.
    pub worked_for: LeaseId,
    /// For which lease they are to come back as soon as they have left.
    pub back_for: Option<LeaseId>,
    pub state: ShimState,
    /// Code with which its tasks will end by themselves.
    pub code: i32,
    /// Whether somebody asked it to end.
    pub stopping: bool,
    /// Until when it may go on, as it last read; it reads again when that has run out.
    pub alive: Option<Alive>,
}

/// Where a shim stands.
#[derive(Clone, Debug, PartialEq)]
pub enum ShimState {
    /// It is being started.
    Launching,
    /// Its tasks run.
    Running,
    /// They are on their way to main memory.
    Leaving,
    /// They stand still there.
    Suspended,
    /// They are on their way back.
    Returning,
    /// Its record, once all is over.
    Over(Stage),
    /// It was killed before it could write one.
    Killed,
}

impl ShimState {
    /// Whether its tasks have their GPUs.
    pub fn is_on_gpus(&self) -> bool {
        matches!(self, ShimState::Running | ShimState::Leaving | ShimState::Returning)
    }

    /// Whether there are tasks.
    pub fn lives(&self) -> bool {
        self.is_on_gpus() || *self == ShimState::Suspended
    }
}

impl Shim {
    /// What an agent sees of it.
    pub fn stage(&self) -> Stage {
        match &self.state {
            ShimState::Launching => Stage::Starting,
            // Until they are back nothing is said of them.
            ShimState::Running | ShimState::Leaving => Stage::Running,
            ShimState::Suspended | ShimState::Returning => Stage::Suspended { of: self.worked_for },
            ShimState::Over(stage) => stage.clone(),
            ShimState::Killed => nothing_left(),
        }
    }

    /// How its tasks end by themselves.
    pub fn own_end(&self) -> Stage {
        let exits = self.order.tasks.iter().map(|task| TaskExit {
            rank: task.rank,
            code: Some(self.code),
            signal: None,
        });
        Stage::Ended {
            exits: exits.collect(),
            interrupted: false,
            gpu_milli: None,
            notes: EndNotes::default(),
        }
    }

    /// How its tasks end when they are killed.
    pub fn forced_end(&self) -> Stage {
        let exits = self.order.tasks.iter().map(|task| TaskExit {
            rank: task.rank,
            code: None,
            signal: Some(15),
        });
        Stage::Ended {
            exits: exits.collect(),
            interrupted: true,
            gpu_milli: None,
            notes: EndNotes::default(),
        }
    }
}

/// What is known of a lease whose shim left no record.
pub fn nothing_left() -> Stage {
    Stage::Ended {
        exits: Vec::new(),
        interrupted: true,
        gpu_milli: None,
        notes: EndNotes::default(),
    }
}

impl Node {
    pub fn new(number: usize, gpus: u32, suspends: bool) -> Node {
        let abilities = suspends.then(|| SUSPEND.to_owned()).into_iter().collect();
        let about = Machine {
            abilities,
            name: format!("m{number}"),
            version: String::new(),
            address: format!("10.0.0.{number}"),
            cpu_milli: 16_000,
            mem_mib: 64_000,
            gpu_model: "V100".to_owned(),
            gpu_mem_mib: 16_000,
            gpus,
            rack: 0,
            ..Machine::default()
        };
        Node {
            number,
            about,
            token: 0,
            agent: None,
            disk: Some(MemoryDisk::default()),
            shims: BTreeMap::new(),
            alive: None,
            session: None,
            cut: false,
            powered: true,
        }
    }

    /// A shim with tasks that run, or stand still.
    pub fn some_running(&self, dice: &mut Dice) -> Option<LeaseId> {
        let running = self.shims.iter().filter(|(_, shim)| shim.state.lives());
        let running: Vec<LeaseId> = running.map(|(lease, _)| *lease).collect();
        let at = dice.below(running.len() as u64) as usize;
        running.get(at).copied()
    }
}
