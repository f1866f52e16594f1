//! Nodes as Slurm lists them: which there are, what they have, and whether they take jobs.

use hostler_core::cluster::Health;
use hostler_core::event::Event;
use hostler_core::id::NodeId;

use super::SlurmDriver;
use super::read::SlurmNode;
use crate::host::Desk;
use crate::wire::Machine;

/// What is wrong with a node.
#[derive(Default)]
pub(super) struct NodeSeen {
    /// Whether Slurm says that it is gone.
    down: bool,
    /// Why it takes no jobs; nothing while it does.
    rests: Option<String>,
}

impl SlurmDriver {
    /// Takes in all nodes.
    pub(super) fn take_nodes(&mut self, desk: &mut Desk, nodes: Vec<SlurmNode>) {
        let (partition, room) = (self.settings.partition.clone(), &self.settings.waiting_room);
        if !nodes.is_empty() && !nodes.iter().any(|node| node.partitions.contains(room)) {
            let fault = format!("no node is in the waiting room, partition `{room}`");
            self.tell_once(format!("{fault}; `hostler slurm setup --check` says what is missing"));
        }
        let mine = nodes.into_iter().filter(|node| node.partitions.contains(&partition));
        let mine: Vec<SlurmNode> = mine.collect();
        if mine.is_empty() {
            return self.tell_once(format!("no node is in partition `{partition}`"));
        }
        self.nodes.retain(|name, _| mine.iter().any(|node| node.name == *name));
        for node in mine {
            self.take_node(desk, node);
        }
        let rows = desk.node_rows().map(|row| row.name.clone());
        let gone: Vec<String> = rows.filter(|name| !self.nodes.contains_key(name)).collect();
        for name in &gone {
            let why = format!("it is not in partition `{partition}` any more");
            self.nodes_seen.insert(name.clone(), NodeSeen { down: true, rests: Some(why) });
            self.refresh_node(desk, name);
        }
    }

    fn take_node(&mut self, desk: &mut Desk, node: SlurmNode) {
        let name = node.name.clone();
        let mut seen = NodeSeen { down: node.is_down(), rests: None };
        if !node.takes_jobs() {
            let why = if node.reason.is_empty() { "" } else { ": " };
            let state = if node.reserved { "reserved" } else { &node.state };
            seen.rests = Some(format!("Slurm says `{state}`{why}{}", node.reason));
        }
        let machine = machine_of(&node);
        let fault = node.gpus.as_ref().err().cloned();
        self.nodes.insert(name.clone(), node);
        let fault =
            fault.or_else(|| desk.check_machine(&machine).err().map(|told| told.to_string()));
        if let Some(fault) = fault {
            let why = format!("it is left to Slurm: {fault}");
            self.tell_once(format!("node `{name}`: {why}"));
            // One that was known as something else takes nothing new.
            seen.rests = Some(why);
            self.nodes_seen.insert(name.clone(), seen);
            return self.refresh_node(desk, &name);
        }
        let spec = desk.node_spec(&machine);
        let known = desk.node_row(&name).map(|row| NodeId(row.id));
        match known.map(|id| (id, desk.state().node(id))) {
            None => _ = desk.add_node(machine, None),
            Some((_, before)) if before.spec == spec => {}
            Some((_, before)) if !before.is_empty() => {
                seen.rests = Some("it has changed, and jobs rely on what it was".to_owned());
            }
            Some((id, _)) => {
                desk.fact(Event::NodeDown { node: id });
                desk.fact(Event::NodeRetired { node: id });
                desk.add_node(machine, None);
            }
        }
        self.nodes_seen.insert(name.clone(), seen);
        self.refresh_node(desk, &name);
    }

    /// Brings what the scheduler thinks of a node in line with what Slurm and people say. A node
    /// counts as gone when Slurm has said of each of its jobs what became of it.
    pub(super) fn refresh_node(&mut self, desk: &mut Desk, name: &str) {
        let Some(row) = desk.node_row(name) else { return };
        let (id, draining) = (NodeId(row.id), row.draining);
        let (down, rests) = match self.nodes_seen.get(name) {
            Some(seen) => (seen.down, seen.rests.is_some()),
            None => (false, false),
        };
        let node = desk.state().node(id);
        let (before, spec, empty) = (node.health, node.spec.clone(), node.is_empty());
        if before == Health::Down && !down {
            desk.fact(Event::NodeUp { node: id, spec });
        }
        let wanted = draining || rests;
        let health = desk.state().node(id).health;
        if health != Health::Down && wanted != (health == Health::Draining) {
            desk.fact(Event::NodeDrain { node: id, draining: wanted });
        }
        if down && empty && desk.state().node(id).health != Health::Down {
            desk.fact(Event::NodeDown { node: id });
        }
        if desk.state().node(id).health != before {
            desk.announce_node(id, false);
        }
    }

    /// Why a node takes no jobs, besides what a person wants.
    pub(super) fn why_it_rests(&self, desk: &Desk, node: NodeId, name: &str) -> String {
        if desk.node_row(name).is_none_or(|row| row.id != node.0) {
            return "its machine goes by another number now".to_owned();
        }
        match self.nodes_seen.get(name) {
            Some(seen) => seen.rests.clone().unwrap_or_default(),
            None => "Slurm has not listed it yet".to_owned(),
        }
    }
}

/// A node as a machine. How much memory its GPUs have nobody says.
fn machine_of(node: &SlurmNode) -> Machine {
    let gpus = node.gpus.as_ref().map_or(0, |gpus| gpus.count);
    Machine {
        name: node.name.clone(),
        version: String::new(),
        address: String::new(),
        cpu_milli: node.cpus.saturating_mul(1000),
        mem_mib: u32::try_from(node.mem).unwrap_or(u32::MAX),
        gpu_model: node.gpu_model().unwrap_or_default().to_owned(),
        gpu_mem_mib: 0,
        gpus,
        rack: 0,
        ..Machine::default()
    }
}
