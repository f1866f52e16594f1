//! Everything that happens, in order of time.

mod end;
mod shims;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hostler_core::decision::StopHow;
use hostler_core::event::Event;
use hostler_core::id::LeaseId;
use hostler_core::solve::SolverQuestion;
use hostler_core::units::{Span, Time};
use hostler_core::verify::Violation;
use hostler_live::agent::core::{AgentCore, AgentEffect, AgentInput};
use hostler_live::driver::AgentWord;
use hostler_live::host::{
    Answer, Command, Effect, Host, Input, JobFilter, Principal, SessionId, Settings,
};
use hostler_live::reservation::DrainRequest;
use hostler_live::store::memory::{Disk, Failure};
use hostler_live::store::{Role, Store, TenantQuota};
use hostler_live::wire::{FromAgent, ToAgent};

use super::machine::{Node, Shim, ShimState, nothing_left};
use super::network::{Dice, Habits};
use super::people::{People, Wish, admin, policy};
use super::truth::Truth;

/// Milliseconds during which faults happen.
const FAULTY_MS: u64 = 90_000;

/// Milliseconds after that in which everything must have come to an end.
const CALM_MS: u64 = 6_000_000;

/// The world begins at some time after the epoch.
const EPOCH_MS: u64 = 1_000_000;

enum Happening {
    ToHost { session: u64, message: FromAgent },
    ToAgent { session: u64, message: ToAgent },
    HostSeesLoss { session: u64 },
    AgentSeesLoss { session: u64 },
    HostTurn,
    HostTick,
    HostStarts,
    Solved { life: u64, number: u64, answer: Result<Event, Violation> },
    AgentTick(usize),
    AgentStarts(usize),
    Connects(usize),
    PowerReturns(usize),
    CutHeals(usize),
    ShimStarts(usize, LeaseId),
    ShimEnds(usize, LeaseId),
    ShimIsForced(usize, LeaseId),
    ShimHasLeft(usize, LeaseId),
    ShimIsBack(usize, LeaseId),
    FenceIsDue(usize),
    Fault,
    Wish,
    Impatience,
}

struct Connection {
    node: usize,
    life: u64,
    up: bool,
    /// When the last message arrives, in each direction.
    last: [u64; 2],
}

pub struct World {
    loud: bool,
    now: u64,
    dice: Dice,
    habits: Habits,
    faulty: bool,
    queue: BTreeMap<(u64, u64), Happening>,
    happenings: u64,
    disk: Disk,
    host: Option<Host>,
    /// Counts the lives of the daemon.
    life: u64,
    inbox: Vec<Input>,
    turn_planned: bool,
    nodes: Vec<Node>,
    connections: BTreeMap<u64, Connection>,
    people: People,
    cancel_wishes: BTreeSet<u32>,
    truth: Truth,
    slots: u64,
}

impl World {
    pub fn new(seed: u64, loud: bool) -> World {
        let mut dice = Dice::new(seed);
        let habits = Habits::draw(&mut dice);
        let count = dice.between(2, 4) as usize;
        let node = |at| Node::new(at, dice.between(1, 4) as u32, dice.chance(600));
        let nodes = (0..count).map(node).collect();
        World {
            loud,
            now: EPOCH_MS,
            dice,
            habits,
            faulty: true,
            queue: BTreeMap::new(),
            happenings: 0,
            disk: Disk::default(),
            host: None,
            life: 0,
            inbox: Vec::new(),
            turn_planned: false,
            nodes,
            connections: BTreeMap::new(),
            people: People::default(),
            cancel_wishes: BTreeSet::new(),
            truth: Truth::default(),
            slots: 0,
        }
    }

    /// Lives through faults and the calm after them, and looks at what is left.
    pub fn run(mut self) {
        self.begin();
        while self.now < EPOCH_MS + FAULTY_MS {
            self.next();
        }
        self.calm_down();
        let end = self.now + CALM_MS;
        while !self.is_drained() {
            assert!(self.now < end, "not everything comes to an end: {}", self.left());
            self.next();
        }
        self.look_back();
    }

    fn begin(&mut self) {
        self.host = Some(self.open_host());
        let daemon = Principal::daemon();
        let mut names = vec![(Role::Admin, "ada".to_owned())];
        names.extend(self.nodes.iter().map(|node| (Role::Agent, node.about.name.clone())));
        for (at, (role, name)) in names.into_iter().enumerate() {
            let (hash, tenant) = (format!("hash {at}"), "default".to_owned());
            let (one_time, person) = (false, None);
            let command = Command::CreateToken { hash, role, tenant, name, one_time, person };
            let command = Box::new(command);
            let input = Input::Command { slot: 0, by: daemon.clone(), command };
            let host = self.host.as_mut().expect("it was opened above");
            let effects = host.handle(Time::from_millis(EPOCH_MS), vec![input]).unwrap();
            let token = effects.iter().find_map(|effect| match effect {
                Effect::Reply(_, Ok(Answer::Token(id))) => Some(*id),
                _ => None,
            });
            if let Some(node) = at.checked_sub(1) {
                self.nodes[node].token = token.expect("a token is made");
            }
        }
        for node in 0..self.nodes.len() {
            self.soon(0, 3_000, Happening::AgentStarts(node));
            self.soon(0, 200, Happening::AgentTick(node));
        }
        for first in [Happening::HostTick, Happening::Fault, Happening::Wish, Happening::Impatience]
        {
            self.soon(1, 1_000, first);
        }
    }

    fn open_host(&mut self) -> Host {
        let fence = [8, 20, 40][self.dice.below(3) as usize];
        let policy = policy(&mut self.dice);
        let settings = Settings {
            beat: Span::from_secs(1),
            fence: Span::from_secs(fence),
            dead: Span::from_secs(fence + 4),
            silent: Span::from_secs(5),
            snapshot_bytes: self.dice.between(1_000, 60_000) as usize,
            ..Settings::new(policy)
        };
        open(&self.disk, settings, self.now)
    }

    fn soon(&mut self, low: u64, high: u64, happening: Happening) {
        let at = self.now + self.dice.between(low, high);
        self.at(at, happening);
    }

    fn at(&mut self, at: u64, happening: Happening) {
        self.happenings += 1;
        self.queue.insert((at, self.happenings), happening);
    }

    fn say(&self, what: impl FnOnce() -> String) {
        if self.loud {
            println!("{:>8} {}", self.now - EPOCH_MS, what());
        }
    }

    fn next(&mut self) {
        let ((at, _), happening) = self.queue.pop_first().expect("clocks never stop");
        self.now = at;
        match happening {
            Happening::ToHost { session, message } => self.reaches_host(session, message),
            Happening::ToAgent { session, message } => self.reaches_agent(session, message),
            Happening::HostSeesLoss { session } => {
                if self.connections[&session].life == self.life {
                    self.tell_host(AgentWord::Lost { session: SessionId(session) }.into());
                }
            }
            Happening::AgentSeesLoss { session } => self.agent_sees_loss(session),
            Happening::HostTurn => self.host_turn(),
            Happening::HostTick => {
                self.tell_host(Input::Tick);
                self.soon(200, 600, Happening::HostTick);
            }
            Happening::HostStarts => {
                if self.host.is_none() {
                    self.life += 1;
                    self.host = Some(self.open_host());
                    self.say(|| "the daemon starts".to_owned());
                }
            }
            Happening::Solved { life, number, answer } => {
                if life == self.life {
                    self.tell_host(Input::Solved { number, answer });
                }
            }
            Happening::AgentTick(node) => {
                self.tell_agent(node, vec![AgentInput::Tick]);
                self.soon(100, 300, Happening::AgentTick(node));
            }
            Happening::AgentStarts(node) => self.agent_starts(node),
            Happening::Connects(node) => self.connects(node),
            Happening::PowerReturns(node) => {
                self.nodes[node].powered = true;
                self.agent_starts(node);
            }
            Happening::CutHeals(node) => self.nodes[node].cut = false,
            Happening::ShimStarts(node, lease) => self.shim_starts(node, lease),
            Happening::ShimEnds(node, lease) => self.shim_ends(node, lease, true),
            Happening::ShimIsForced(node, lease) => self.shim_ends(node, lease, false),
            Happening::ShimHasLeft(node, lease) => self.shim_has_left(node, lease),
            Happening::ShimIsBack(node, lease) => self.shim_is_back(node, lease),
            Happening::FenceIsDue(node) => self.fence(node),
            Happening::Fault => {
                if self.faulty {
                    self.fault();
                    self.soon(200, 6_000, Happening::Fault);
                }
            }
            Happening::Wish => {
                if self.faulty {
                    let (command, key) = self.people.wish(&mut self.dice, self.nodes.len());
                    self.ask(command, key);
                    self.soon(100, 6_000, Happening::Wish);
                }
            }
            Happening::Impatience => self.impatience(),
        }
    }
}

/// The daemon.
impl World {
    fn tell_host(&mut self, input: Input) {
        if self.host.is_none() {
            return;
        }
        self.inbox.push(input);
        if !self.turn_planned {
            self.turn_planned = true;
            self.soon(0, 3, Happening::HostTurn);
        }
    }

    fn host_turn(&mut self) {
        self.turn_planned = false;
        let inputs = std::mem::take(&mut self.inbox);
        if self.host.is_none() {
            return;
        }
        if self.faulty && self.dice.chance(1) {
            let failure = if self.dice.chance(500) { Failure::Before } else { Failure::After };
            self.disk.fail_next(Some(failure));
        }
        let host = self.host.as_mut().expect("looked at above");
        match host.handle(Time::from_millis(self.now), inputs) {
            Ok(mut effects) => {
                let dies = self.faulty && !effects.is_empty() && self.dice.chance(2);
                if dies {
                    let done = self.dice.below(effects.len() as u64) as usize;
                    effects.truncate(done);
                }
                effects.into_iter().for_each(|effect| self.carry_out(effect));
                if dies {
                    self.host_dies(true);
                }
            }
            Err(fault) => {
                self.say(|| format!("the store fails: {fault}"));
                self.host_dies(false);
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Reply(slot, answer) => {
                let lost = self.faulty && self.dice.chance(20);
                if !lost {
                    self.say(|| format!("answer {slot}: {answer:?}").chars().take(150).collect());
                    self.people.answered(slot, answer);
                }
            }
            Effect::Tell(session, message) => {
                let beat = matches!(message, ToAgent::BeatSeen { .. });
                if !beat {
                    self.say(|| {
                        let to = self.connections[&session.0].node;
                        format!("daemon to m{to}: {message:?}").chars().take(110).collect()
                    });
                }
                self.send(
                    session.0,
                    1,
                    |message| Happening::ToAgent { session: session.0, message },
                    message,
                );
            }
            Effect::Close(session) => self.break_off(session.0),
            Effect::Changed(_) | Effect::Notify(_) => {}
            Effect::Call(call) => unreachable!("agents are not called: {call:?}"),
            Effect::Solve(number) => {
                let host = self.host.as_ref().expect("what it wants is done while it lives");
                if let Some(question) = host.question(number) {
                    let (life, answer) = (self.life, question.and_then(SolverQuestion::answer));
                    self.say(|| format!("solver {number}: {answer:?}").chars().take(150).collect());
                    self.soon(1, 5_000, Happening::Solved { life, number, answer });
                }
            }
        }
    }

    /// The daemon is killed. What it had in memory is what is in the store.
    fn host_dies(&mut self, in_step: bool) {
        let Some(host) = self.host.take() else { return };
        self.say(|| "the daemon dies".to_owned());
        self.disk.fail_next(None);
        self.inbox.clear();
        host.state().audit();
        if in_step {
            let again = open(
                &self.disk,
                Settings::new("kind = \"fifo-backfill\"\nestimate = \"user\"\n"),
                self.now,
            );
            assert!(again.state() == host.state(), "memory and store differ");
        }
        let open: Vec<u64> = self.connections.keys().copied().collect();
        open.into_iter().for_each(|session| self.break_off(session));
        let patience = if self.dice.chance(500) { 3_000 } else { 40_000 };
        self.soon(50, patience, Happening::HostStarts);
        // What ends the daemon may well be what cuts a machine off.
        if self.faulty && self.dice.chance(300) {
            let node = self.dice.below(self.nodes.len() as u64) as usize;
            self.cut(node);
        }
    }
}

fn open(disk: &Disk, settings: Settings, now: u64) -> Host {
    let builder =
        |text: &str| hostler_policies::builtin().from_toml(text).map_err(|fault| fault.to_string());
    let store: Box<dyn Store> = Box::new(disk.store());
    let host = Host::open(store, Arc::new(builder), settings, Time::from_millis(now));
    host.unwrap_or_else(|fault| panic!("the daemon does not start: {fault}"))
}

/// The network.
impl World {
    fn send<Message: Clone>(
        &mut self,
        session: u64,
        way: usize,
        wrap: impl Fn(Message) -> Happening,
        message: Message,
    ) {
        let delays = self.habits.delays(&mut self.dice);
        let connection = self.connections.get_mut(&session).expect("sessions are remembered");
        if self.nodes[connection.node].cut {
            return;
        }
        let mut arrivals = Vec::new();
        for delay in delays {
            let mut at = self.now + delay;
            if !self.habits.reorders {
                at = at.max(connection.last[way]);
                connection.last[way] = at;
            }
            arrivals.push(at);
        }
        arrivals.into_iter().for_each(|at| self.at(at, wrap(message.clone())));
    }

    /// Whether something still comes out of a connection.
    fn delivers(&mut self, session: u64) -> bool {
        let connection = &self.connections[&session];
        let (up, cut) = (connection.up, self.nodes[connection.node].cut);
        !cut && (up || self.dice.chance(300))
    }

    fn break_off(&mut self, session: u64) {
        let Some(connection) = self.connections.get_mut(&session).filter(|known| known.up) else {
            return;
        };
        connection.up = false;
        // Either side may learn of it late, or only by the silence.
        if self.dice.chance(800) {
            self.soon(1, 3_000, Happening::HostSeesLoss { session });
        }
        if self.dice.chance(800) {
            self.soon(1, 3_000, Happening::AgentSeesLoss { session });
        }
    }

    fn reaches_host(&mut self, session: u64, message: FromAgent) {
        let same_life = self.connections[&session].life == self.life && self.host.is_some();
        if !self.delivers(session) || !same_life {
            return;
        }
        let node = self.connections[&session].node;
        let (session, token) = (SessionId(session), self.nodes[node].token);
        self.tell_host(match message {
            FromAgent::Hello { protocol, machine, held, last_job } => {
                let machine = *machine;
                AgentWord::Connected { session, token, protocol, machine, held, last_job }.into()
            }
            message => AgentWord::Said { session, message }.into(),
        });
    }

    fn reaches_agent(&mut self, session: u64, message: ToAgent) {
        let node = self.connections[&session].node;
        if self.delivers(session) && self.nodes[node].session == Some(session) {
            self.tell_agent(node, vec![AgentInput::MachineOverrides { session, message }]);
        }
    }

    fn connects(&mut self, node: usize) {
        let at = &self.nodes[node];
        if at.agent.is_none() || at.session.is_some() {
            return;
        }
        if self.host.is_none() || at.cut {
            return self.soon(200, 2_000, Happening::Connects(node));
        }
        let session = self.connections.len() as u64 + 1;
        let connection = Connection { node, life: self.life, up: true, last: [0; 2] };
        self.connections.insert(session, connection);
        self.nodes[node].session = Some(session);
        self.tell_agent(node, vec![AgentInput::Connected { session }]);
    }
}

/// The machines.
impl World {
    fn agent_starts(&mut self, node: usize) {
        let at = &mut self.nodes[node];
        if !at.powered || at.agent.is_some() {
            return;
        }
        let disk = at.disk.take().expect("a dead agent leaves its disk");
        let (agent, effects) = AgentCore::open(at.about.clone(), disk);
        at.agent = Some(agent);
        self.say(|| format!("the agent of m{node} starts"));
        self.obey(node, effects);
        self.soon(1, 1_000, Happening::Connects(node));
    }

    fn agent_dies(&mut self, node: usize) {
        let at = &mut self.nodes[node];
        let Some(agent) = at.agent.take() else { return };
        at.disk = Some(agent.into_disk());
        let session = at.session.take();
        self.say(|| format!("the agent of m{node} dies"));
        if let Some(session) = session {
            self.break_off(session);
        }
        self.soon(50, 30_000, Happening::AgentStarts(node));
    }

    fn agent_sees_loss(&mut self, session: u64) {
        let node = self.connections[&session].node;
        if self.nodes[node].session == Some(session) {
            self.nodes[node].session = None;
            self.tell_agent(node, vec![AgentInput::Disconnected { session }]);
            self.soon(100, 3_000, Happening::Connects(node));
        }
    }

    fn tell_agent(&mut self, node: usize, inputs: Vec<AgentInput>) {
        let now = self.now;
        let Some(agent) = &mut self.nodes[node].agent else { return };
        let effects = agent.handle(now, inputs);
        self.obey(node, effects);
    }

    fn obey(&mut self, node: usize, mut effects: Vec<AgentEffect>) {
        let dies = self.faulty && !effects.is_empty() && self.dice.chance(1);
        if dies {
            let done = self.dice.below(effects.len() as u64) as usize;
            effects.truncate(done);
        }
        effects.into_iter().for_each(|effect| self.do_for_agent(node, effect));
        if dies {
            self.agent_dies(node);
        }
    }

    fn do_for_agent(&mut self, node: usize, effect: AgentEffect) {
        match effect {
            AgentEffect::Send { session, message } => {
                if self.connections[&session].up {
                    let wrap = |message| Happening::ToHost { session, message };
                    self.send(session, 0, wrap, message);
                }
            }
            AgentEffect::Close { session, fault, retry } => {
                assert!(retry, "the daemon refuses m{node}: {fault}");
                self.nodes[node].session = None;
                self.break_off(session);
                self.soon(100, 3_000, Happening::Connects(node));
            }
            AgentEffect::Launch(order) => {
                self.say(|| format!("m{node} launches {:?} of {:?}", order.lease, order.job));
                let lease = order.lease;
                let code = if self.dice.chance(200) { self.dice.between(1, 9) as i32 } else { 0 };
                let state = ShimState::Launching;
                let shim = Shim {
                    order: *order,
                    worked_for: lease,
                    back_for: None,
                    state,
                    code,
                    stopping: false,
                    alive: None,
                };
                self.nodes[node].shims.insert(lease, shim);
                self.soon(5, 150, Happening::ShimStarts(node, lease));
            }
            AgentEffect::Watch { lease } => {
                let shim = self.nodes[node].shims.get(&lease);
                let stage = shim.map_or_else(nothing_left, Shim::stage);
                self.tell_agent(node, vec![AgentInput::Seen { lease, stage }]);
            }
            AgentEffect::Stop { lease, how: StopHow::Suspend, .. } => {
                let Some(shim) = self.nodes[node].shims.get_mut(&lease) else { return };
                if shim.state == ShimState::Running && !shim.stopping {
                    (shim.state, shim.back_for) = (ShimState::Leaving, None);
                    self.soon(1, 3_000, Happening::ShimHasLeft(node, lease));
                }
            }
            AgentEffect::Resume { lease, now_for } => self.shim_returns(node, lease, now_for),
            AgentEffect::Stop { lease, grace_ms, .. } => {
                let shim = self.nodes[node].shims.get_mut(&lease);
                if let Some(shim) = shim.filter(|shim| !shim.stopping) {
                    shim.stopping = true;
                    self.soon(1, grace_ms + 50, Happening::ShimIsForced(node, lease));
                }
            }
            AgentEffect::StillAlive(alive) => {
                self.nodes[node].alive = Some(alive);
                self.at(alive.end_ms().max(self.now), Happening::FenceIsDue(node));
            }
            AgentEffect::Forgotten { lease } => {
                let shim = self.nodes[node].shims.remove(&lease);
                let over = shim.is_none_or(|shim| !shim.state.lives());
                assert!(over, "{lease:?} is forgotten while it runs on m{node}");
            }
            AgentEffect::ReadOutput { .. } => unreachable!("nobody reads output here"),
            AgentEffect::OpenStream { .. } => unreachable!("nobody attaches here"),
        }
    }
}

/// Faults.
impl World {
    fn fault(&mut self) {
        let node = self.dice.below(self.nodes.len() as u64) as usize;
        match self.dice.below(13) {
            0 => self.host_dies(true),
            1 | 2 => self.agent_dies(node),
            3 | 4 => {
                if let Some(lease) = self.nodes[node].some_running(&mut self.dice) {
                    self.shim_is_killed(node, lease);
                }
            }
            5 => self.power_fails(node),
            6 | 7 => self.cut(node),
            8 => self.machine_changes(node),
            _ => {
                if let Some(session) = self.nodes[node].session {
                    self.say(|| format!("the connection of m{node} breaks"));
                    self.break_off(session);
                }
            }
        }
    }

    fn cut(&mut self, node: usize) {
        self.say(|| format!("m{node} is cut off"));
        self.nodes[node].cut = true;
        self.soon(500, 50_000, Happening::CutHeals(node));
    }

    /// Its agent comes back and tells of other hardware.
    fn machine_changes(&mut self, node: usize) {
        if self.dice.chance(500) {
            self.power_fails(node);
            self.nodes[node].about.gpus = self.dice.between(1, 4) as u32;
        } else {
            self.agent_dies(node);
            self.nodes[node].about.mem_mib -= 1;
        }
        let about = &self.nodes[node].about;
        self.say(|| format!("m{node} has {} GPUs and {} MiB now", about.gpus, about.mem_mib));
    }

    fn power_fails(&mut self, node: usize) {
        self.say(|| format!("m{node} loses power"));
        self.agent_dies(node);
        let at = &mut self.nodes[node];
        (at.powered, at.alive) = (false, None);
        if let Some(disk) = &mut at.disk {
            disk.lose_power();
        }
        let leases: Vec<LeaseId> = at.shims.keys().copied().collect();
        leases.into_iter().for_each(|lease| self.shim_is_killed(node, lease));
        self.soon(1_000, 40_000, Happening::PowerReturns(node));
    }

    fn calm_down(&mut self) {
        self.say(|| "faults end".to_owned());
        (self.faulty, self.habits) = (false, Habits::calm());
        self.disk.fail_next(None);
        self.at(self.now, Happening::HostStarts);
        for node in 0..self.nodes.len() {
            self.nodes[node].cut = false;
            self.at(self.now, Happening::PowerReturns(node));
        }
        while self.host.is_none() {
            self.next();
        }
        let quota = TenantQuota::default();
        self.ask_surely(Command::SetTenant { name: "default".to_owned(), quota });
        for node in 0..self.nodes.len() {
            self.ask_surely(Command::Drain {
                node: format!("m{node}"),
                draining: false,
                how: DrainRequest::default(),
            });
        }
        for job in std::mem::take(&mut self.people.held) {
            self.ask_surely(Command::Hold { job, held: false, version: None });
        }
    }
}

/// People.
impl World {
    fn ask(&mut self, command: Command, key: Option<u64>) {
        if let Command::Cancel { job, .. } = &command {
            self.cancel_wishes.insert(*job);
        }
        self.slots += 1;
        let slot = self.slots;
        self.say(|| format!("wish {slot}: {command:?}").chars().take(150).collect());
        let wish = Wish { command: command.clone(), key, asked_at: self.now };
        self.people.open.insert(slot, wish);
        let command = Box::new(command);
        self.tell_host(Input::Command { slot, by: admin(), command });
    }

    fn ask_surely(&mut self, command: Command) {
        self.ask(command, None);
    }

    /// Asks again for what was not answered.
    fn impatience(&mut self) {
        let old = self.people.open.iter().filter(|(_, wish)| wish.asked_at + 3_000 < self.now);
        let old: Vec<u64> = old.map(|(slot, _)| *slot).collect();
        for slot in old {
            if self.host.is_none() {
                break;
            }
            let wish = self.people.open.remove(&slot).expect("listed above");
            if wish.key.is_some() {
                self.ask(wish.command, wish.key);
            }
        }
        if !self.faulty {
            self.give_up_misfits();
        }
        self.soon(500, 1_500, Happening::Impatience);
    }

    /// No node will join that could hold them.
    fn give_up_misfits(&mut self) {
        let Some(host) = &self.host else { return };
        let jobs = host.jobs(&JobFilter { limit: 1_000, ..JobFilter::default() });
        let unplaceable_jobs = jobs.iter().filter(|job| job.reason.contains("other nodes to join"));
        let unplaceable_jobs: Vec<u32> = unplaceable_jobs.map(|job| job.id).collect();
        for job in unplaceable_jobs {
            self.ask(Command::Cancel { job, version: None }, None);
        }
    }
}
