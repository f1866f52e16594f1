//! Nodes as they are in the store and in the state, whoever found them.

use hostler_core::border;
use hostler_core::cluster::{GpuModel, Health, NodeSpec};
use hostler_core::event::Event;
use hostler_core::id::{Features, ModelId, NodeId};
use hostler_core::limits::DEVICES_PER_NODE_MAX;
use hostler_core::units::{Mib, Milli};

use super::request::check_name;
use super::{Change, Changed, Desk, Effect};
use crate::image;
use crate::limits::{
    ABILITIES_MAX, ABILITY_BYTES_MAX, INSTANCE_BYTES_MAX, SENTENCE_BYTES_MAX, VERSION_BYTES_MAX,
};
use crate::store::{NodeRow, Row};
use crate::wire::{Instance, Machine, SUSPEND};

impl Desk {
    /// A node by its name.
    pub fn node_row(&self, name: &str) -> Option<&NodeRow> {
        self.nodes.get(name)
    }

    /// All nodes, by name.
    pub fn node_rows(&self) -> impl Iterator<Item = &NodeRow> {
        self.nodes.values()
    }

    /// Notes a node that is new or changed.
    pub fn put_node(&mut self, row: NodeRow) {
        self.draft.rows.push(Row::Node(Box::new(row.clone())));
        self.nodes.insert(row.name.clone(), row);
    }

    /// Whether a machine can be made a node.
    pub fn check_machine(&self, machine: &Machine) -> Result<(), String> {
        check_name("node", &machine.name).map_err(|fault| fault.to_string())?;
        check_words(machine)?;
        let state = self.state();
        let known = state.models().iter().any(|model| *model.name == *machine.gpu_model);
        if machine.gpus > 0 && !known {
            let next = ModelId(state.models().len() as u32);
            let event = Event::ModelAdded { model: next, spec: model_of(machine) };
            border::check(state, &event).map_err(|fault| fault.to_string())?;
        }
        if (machine.gpus == 0) != machine.gpu_model.is_empty() {
            return Err("its GPUs and their model do not go together".to_owned());
        }
        if machine.gpus as usize > DEVICES_PER_NODE_MAX {
            let gpus = machine.gpus;
            return Err(format!("it has {gpus} GPUs; a node may have {DEVICES_PER_NODE_MAX}"));
        }
        Ok(())
    }

    /// A machine that was checked joins under a number of its own; one that goes by its name
    /// already must be retired by the caller. One that the driver found has no token.
    pub fn add_node(&mut self, machine: Machine, token: Option<u32>) -> NodeId {
        let spec = self.node_spec(&machine);
        let id = NodeId(self.state().nodes().len() as u32);
        let draining = self.node_row(&machine.name).is_some_and(|row| row.draining);
        self.put_node(NodeRow { name: machine.name.clone(), id: id.0, token, draining, machine });
        self.fact(Event::NodeUp { node: id, spec });
        id
    }

    /// What a machine is for the scheduler; a model of GPUs that was never seen becomes known.
    pub fn node_spec(&mut self, machine: &Machine) -> NodeSpec {
        let models = self.engine.state().models();
        let known = models.iter().position(|model| *model.name == *machine.gpu_model);
        let model = ModelId(known.unwrap_or(models.len()) as u32);
        if known.is_none() && machine.gpus > 0 {
            self.fact(Event::ModelAdded { model, spec: model_of(machine) });
        }
        NodeSpec {
            name: machine.name.as_str().into(),
            cpu: Milli(machine.cpu_milli),
            mem: Mib(machine.mem_mib),
            gpu_model: (machine.gpus > 0).then_some(model),
            gpus: machine.gpus,
            island_gpus: 0,
            rack: machine.rack,
            base_watts: 0,
            features: features(machine),
        }
    }

    /// Tells those who watch how a node is; the driver knows whether it is silent.
    pub fn announce_node(&mut self, id: NodeId, silent: bool) {
        let (number, at) = (self.next_change(), self.now.secs_f64());
        let node = self.state().node(id).spec.name.to_string();
        let health = self.node_health(id, silent).to_owned();
        let what = Changed::Node { node, health };
        self.effect(Effect::Changed(Change { number, at, what }));
    }

    pub(super) fn node_health(&self, id: NodeId, silent: bool) -> &'static str {
        let node = self.state().node(id);
        let wanted = self.node_row(&node.spec.name).is_some_and(|row| row.draining);
        match node.health {
            Health::Down => "down",
            Health::Draining if !wanted && silent => "silent",
            Health::Draining if !wanted => "resting",
            Health::Draining => "draining",
            Health::Up => "up",
        }
    }
}

/// What a machine can do besides having resources.
pub fn features(machine: &Machine) -> Features {
    match machine.can(SUSPEND) {
        true => image::features(machine).with(Features::SUSPENDS),
        false => image::features(machine),
    }
}

/// People see these words on their terminals, and jobs in their environment.
fn check_words(machine: &Machine) -> Result<(), String> {
    if machine.gpus > 0 {
        check_name("gpu_model", &machine.gpu_model).map_err(|fault| fault.to_string())?;
    }
    if machine.version.len() > VERSION_BYTES_MAX || machine.version.contains(char::is_control) {
        return Err(format!("its version makes no sense: {:?}", machine.version));
    }
    if machine.address.contains(char::is_control) {
        return Err(format!("its address makes no sense: {:?}", machine.address));
    }
    let is_word = |word: &&String| {
        word.len() <= ABILITY_BYTES_MAX && word.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let said = machine.runtimes.iter().flat_map(|runtime| [&runtime.name, &runtime.version]);
    let mut said = said.chain(&machine.abilities);
    if said.clone().count() > ABILITIES_MAX || !said.all(|word| is_word(&word)) {
        return Err("what it says that it can do makes no sense".to_owned());
    }
    let is_sentence =
        |text: &String| text.len() <= SENTENCE_BYTES_MAX && !text.contains(char::is_control);
    let unusable = &machine.unusable_runtimes;
    let mut cannot = unusable.iter().chain([&machine.cannot_suspend]);
    if unusable.len() > ABILITIES_MAX || !cannot.all(is_sentence) {
        return Err("what it says that it cannot do makes no sense".to_owned());
    }
    let Some(Instance { boot, machine, folder, .. }) = &machine.instance else { return Ok(()) };
    // They are kept with the node.
    match boot.len() + machine.len() + folder.len() <= INSTANCE_BYTES_MAX {
        true => Ok(()),
        false => Err(format!("the names of its instance have over {INSTANCE_BYTES_MAX} bytes")),
    }
}

fn model_of(machine: &Machine) -> GpuModel {
    GpuModel {
        name: machine.gpu_model.as_str().into(),
        mem: Mib(machine.gpu_mem_mib),
        tier: 0,
        mig_slices: 0,
        idle_watts: 0,
        busy_watts: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_an_agent_do_nothing_to_a_terminal() {
        let machine = |model: &str, address: &str| Machine {
            name: "n1".to_owned(),
            version: String::new(),
            address: address.to_owned(),
            cpu_milli: 1000,
            mem_mib: 1000,
            gpu_model: model.to_owned(),
            gpu_mem_mib: 1000,
            gpus: u32::from(!model.is_empty()),
            rack: 0,
            ..Machine::default()
        };
        assert_eq!(check_words(&machine("NVIDIA H100 80GB HBM3", "10.0.0.1")), Ok(()));
        assert_eq!(check_words(&machine("", "fd00::1")), Ok(()));
        assert!(check_words(&machine("V100\u{1b}[2J", "10.0.0.1")).is_err());
        assert!(check_words(&machine("V100", "10.0.0.1\n")).is_err());
        let saying = |why: &str| {
            let unusable_runtimes = vec![why.to_owned()];
            Machine { unusable_runtimes, ..machine("V100", "10.0.0.1") }
        };
        assert_eq!(check_words(&saying("podman 4.3.1: it starts nothing")), Ok(()));
        assert!(check_words(&saying("podman\u{1b}[2J")).is_err());
        assert!(check_words(&saying(&"x".repeat(5000))).is_err());
    }
}
