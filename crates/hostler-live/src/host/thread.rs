//! The thread that the host lives on, and the handle by which everybody else reaches it.
//!
//! All inputs that wait become one batch and one transaction: the more is going on, the more of
//! it shares the cost of a commit. The channel is bounded; who finds it full is told to come
//! again, and agents are slowed down.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use hostler_core::event::Event;
use hostler_core::id::JobId;
use hostler_core::solve::SolverQuestion;
use hostler_core::units::Time;
use hostler_core::verify::Violation;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::clock::{self, Clock};
use super::reader::HistoryReader;
use super::tokens::Tokens;
use super::{
    Answer, Change, Command, Effect, Host, HostError, Input, Principal, Secret, SessionId,
};
use crate::driver::{AgentWord, Caller, Word};
use crate::job::JobView;
use crate::limits::{
    AGENT_MESSAGES_MAX, CHANGES_KEPT, INPUTS_PER_BATCH_MAX, INPUTS_WAITING_MAX, NOTICES_WAITING_MAX,
};
use crate::notice::Notice;
use crate::person::Person;
use crate::store::{HistoryFilter, JobRow, Role};
use crate::wire::{FromAgent, LeaseReport, Machine, ToAgent};

/// The longest time between two looks at silent nodes.
const TICK: Duration = Duration::from_secs(1);

/// Pause of an agent's connection while the channel is full.
const FULL_PAUSE: Duration = Duration::from_millis(5);

type Reply = oneshot::Sender<Result<Answer, HostError>>;
type Look = Box<dyn FnOnce(&Host) + Send>;

enum Message {
    Command(Principal, Box<Command>, Reply),
    Connected(Box<Input>, SessionId, mpsc::Sender<ToAgent>),
    Input(Box<Input>),
    Look(Look),
    /// A question was solved, or the solver broke a rule.
    Solved(u64, Box<Result<Event, Violation>>),
    Stop,
}

/// What handles and the thread have in common.
struct Shared {
    tokens: RwLock<Arc<Tokens>>,
    recent: Mutex<VecDeque<Change>>,
    changes: broadcast::Sender<Change>,
    notices: broadcast::Sender<Arc<Notice>>,
    sessions: AtomicU64,
    fault: watch::Sender<Option<HostError>>,
    library: HistoryReader,
}

/// Reaches the host from anywhere.
#[derive(Clone)]
pub struct HostHandle {
    /// The host ends with the last handle; it has none itself.
    messages: Arc<SyncSender<Message>>,
    shared: Arc<Shared>,
}

/// The thread that the host lives on.
pub struct HostThread {
    thread: JoinHandle<Result<(), HostError>>,
}

impl HostThread {
    /// Puts a host on a thread of its own.
    pub fn start(host: Host) -> Result<(HostHandle, HostThread), HostError> {
        HostThread::start_with(host, |_| None)
    }

    /// The same with somebody who carries out what the driver asks of a cluster manager, and tells
    /// the ear what came of it.
    pub fn start_with(
        mut host: Host,
        caller: impl FnOnce(Ear) -> Option<Box<dyn Caller>>,
    ) -> Result<(HostHandle, HostThread), HostError> {
        host.desk.stopwatch = clock::running();
        let library = HistoryReader::start(host.reader()?)?;
        let shared = Arc::new(Shared {
            tokens: RwLock::new(Arc::new(host.desk.tokens.clone())),
            recent: Mutex::new(VecDeque::new()),
            changes: broadcast::channel(CHANGES_KEPT).0,
            notices: broadcast::channel(NOTICES_WAITING_MAX).0,
            sessions: AtomicU64::new(1),
            fault: watch::channel(None).0,
            library,
        });
        let (messages, inbox) = sync_channel(INPUTS_WAITING_MAX);
        let messages = Arc::new(messages);
        let body = Body {
            clock: Clock::new(host.desk.now),
            host,
            inbox,
            back: Arc::downgrade(&messages),
            caller: caller(Ear { messages: Arc::downgrade(&messages) }),
            solver: Solver::default(),
            shared: Arc::clone(&shared),
            replies: BTreeMap::new(),
            links: BTreeMap::new(),
            slots: 0,
            lost: Vec::new(),
            looks: Vec::new(),
            tokens_seen: 0,
        };
        let thread = std::thread::Builder::new().name("host".to_owned()).spawn(|| body.run());
        let thread = thread.map_err(|fault| HostError::Stopped { fault: fault.to_string() })?;
        Ok((HostHandle { messages, shared }, HostThread { thread }))
    }

    /// Waits until the host is over, and tells why if it did not stop by itself.
    pub fn join(self) -> Result<(), HostError> {
        self.thread.join().unwrap_or_else(|_| Err(panicked()))
    }
}

impl HostHandle {
    /// Does a command; when this returns it is durable.
    pub async fn command(&self, by: &Principal, command: Command) -> Result<Answer, HostError> {
        let (reply, answer) = oneshot::channel();
        self.push(Message::Command(by.clone(), Box::new(command), reply))?;
        answer.await.unwrap_or_else(|_| Err(self.over()))
    }

    /// Makes a token; the secret is nowhere else.
    pub async fn create_token(
        &self,
        by: &Principal,
        role: Role,
        tenant: &str,
        name: &str,
        one_time: bool,
        person: Option<Person>,
    ) -> Result<(u32, Secret), HostError> {
        let secret = Secret::generate()?;
        let (tenant, name) = (tenant.to_owned(), name.to_owned());
        let hash = secret.hash();
        let command = Command::CreateToken { hash, role, tenant, name, one_time, person };
        Ok((self.token(by, command).await?, secret))
    }

    /// Spends the principal's one-time token and lets the secret with this hash speak for a node.
    pub async fn enrol(&self, by: &Principal, node: &str, hash: &str) -> Result<u32, HostError> {
        let command = Command::Enrol { hash: hash.to_owned(), node: node.to_owned() };
        self.token(by, command).await
    }

    async fn token(&self, by: &Principal, command: Command) -> Result<u32, HostError> {
        match self.command(by, command).await? {
            Answer::Token(id) => Ok(id),
            other => unreachable!("a token is answered, not {other:?}"),
        }
    }

    /// Looks at the host between two batches. Keep it short: everybody waits.
    pub async fn read<Out: Send + 'static>(
        &self,
        look: impl FnOnce(&Host) -> Out + Send + 'static,
    ) -> Result<Out, HostError> {
        let (reply, answer) = oneshot::channel();
        let look = Box::new(move |host: &Host| {
            // Whoever asked may be gone.
            let _ = reply.send(look(host));
        });
        self.push(Message::Look(look))?;
        answer.await.map_err(|_| self.over())
    }

    /// A job, over or not.
    pub async fn job(&self, id: u32) -> Result<Option<JobView>, HostError> {
        match self.read(move |host| host.job(id)).await? {
            Some(view) => Ok(Some(view)),
            None => self.shared.library.job(id).await,
        }
    }

    /// Jobs that are over, newest first.
    pub async fn history(&self, filter: HistoryFilter) -> Result<Vec<JobView>, HostError> {
        self.shared.library.history(filter).await
    }

    /// The same as rows, with their stays.
    pub async fn history_rows(&self, filter: HistoryFilter) -> Result<Vec<JobRow>, HostError> {
        self.shared.library.rows(filter).await
    }

    /// Records of the log after number `after`, at most `most` of them.
    pub async fn records(&self, after: u64, most: usize) -> Result<Vec<(u64, String)>, HostError> {
        self.shared.library.records(after, most).await
    }

    /// Who shows this secret, and whether the token only enrols an agent.
    pub fn authenticate(&self, secret: &str) -> Option<(Principal, bool)> {
        let tokens = self.shared.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.authenticate(secret)
    }

    /// Who a user of the daemon's machine is, if somebody said so.
    pub fn local_user(&self, name: &str, uid: u32) -> Option<Principal> {
        let tokens = self.shared.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.local(name, uid)
    }

    /// Whether a token still lets somebody in.
    pub fn lets_in(&self, token: u32) -> bool {
        self.shared.tokens.read().unwrap_or_else(PoisonError::into_inner).lets_in(token)
    }

    /// Changes from now on, and those since number `after` that are still remembered.
    pub fn changes(&self, after: Option<u64>) -> Changes {
        let recent = self.shared.recent();
        let coming = self.shared.changes.subscribe();
        let missed = match after {
            Some(after) => recent.iter().filter(|change| change.number > after).cloned().collect(),
            None => Vec::new(),
        };
        let oldest = recent.front().map(|change| change.number);
        let gap = after.is_some_and(|after| oldest.is_none_or(|oldest| oldest > after));
        Changes { missed, coming, gap }
    }

    /// What those who are not looking are to be told from now on. Who is too slow misses the
    /// oldest and is told how many.
    pub fn notices(&self) -> broadcast::Receiver<Arc<Notice>> {
        self.shared.notices.subscribe()
    }

    /// An agent connected and said hello.
    pub async fn connect_agent(
        &self,
        token: u32,
        protocol: u32,
        machine: Machine,
        held: Vec<LeaseReport>,
        last_job: Option<JobId>,
    ) -> Result<AgentLink, HostError> {
        let session = SessionId(self.shared.sessions.fetch_add(1, Ordering::Relaxed));
        let (sender, messages) = mpsc::channel(AGENT_MESSAGES_MAX);
        let input = AgentWord::Connected { session, token, protocol, machine, held, last_job };
        self.push_slowly(Message::Connected(Box::new(input.into()), session, sender)).await?;
        Ok(AgentLink { session, messages, handle: self.clone() })
    }

    /// Why the host stopped, once it did.
    pub fn fault(&self) -> watch::Receiver<Option<HostError>> {
        self.shared.fault.subscribe()
    }

    /// Lets the host finish what it has, save its state and stop.
    pub async fn stop(&self) {
        // When it is over already there is nothing to stop.
        let _ = self.push_slowly(Message::Stop).await;
    }

    fn push(&self, message: Message) -> Result<(), HostError> {
        self.messages.try_send(message).map_err(|error| match error {
            TrySendError::Full(_) => HostError::Busy,
            TrySendError::Disconnected(_) => self.over(),
        })
    }

    async fn push_slowly(&self, mut message: Message) -> Result<(), HostError> {
        loop {
            message = match self.messages.try_send(message) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(message)) => message,
                Err(TrySendError::Disconnected(_)) => return Err(self.over()),
            };
            tokio::time::sleep(FULL_PAUSE).await;
        }
    }

    fn over(&self) -> HostError {
        let fault = self.shared.fault.borrow().clone();
        fault.unwrap_or(HostError::Stopped { fault: "it was told to".to_owned() })
    }
}

/// Changes for one listener.
pub struct Changes {
    /// Those that happened before.
    pub missed: Vec<Change>,
    /// Whether some may have happened in between that are not remembered.
    pub gap: bool,
    /// Those to come; a listener who is too slow misses some and is told so.
    pub coming: broadcast::Receiver<Change>,
}

/// The connection of one agent, from the daemon's side.
pub struct AgentLink {
    session: SessionId,
    /// What to say to the agent; ends when the connection is to be closed.
    pub messages: mpsc::Receiver<ToAgent>,
    handle: HostHandle,
}

impl AgentLink {
    /// What lets another task pass on what the agent says.
    pub fn voice(&self) -> AgentVoice {
        AgentVoice { session: self.session, handle: self.handle.clone() }
    }
}

impl Drop for AgentLink {
    fn drop(&mut self) {
        let input = Box::new(AgentWord::Lost { session: self.session }.into());
        // When the channel is full the beats will tell, and the next connection takes over.
        let _ = self.handle.messages.try_send(Message::Input(input));
    }
}

/// Passes on what an agent says.
#[derive(Clone)]
pub struct AgentVoice {
    session: SessionId,
    handle: HostHandle,
}

impl AgentVoice {
    /// The agent said something; waits while too much is going on.
    pub async fn said(&self, message: FromAgent) -> Result<(), HostError> {
        let input = Box::new(AgentWord::Said { session: self.session, message }.into());
        self.handle.push_slowly(Message::Input(input)).await
    }
}

/// Hears what came of calls. It does not keep the host alive.
#[derive(Clone)]
pub struct Ear {
    messages: Weak<SyncSender<Message>>,
}

impl Ear {
    /// Tells the driver something; waits while too much is going on.
    pub async fn hear(&self, word: Word) {
        let mut message = Message::Input(Box::new(Input::Driver(word)));
        while let Some(messages) = self.messages.upgrade() {
            message = match messages.try_send(message) {
                Err(TrySendError::Full(message)) => message,
                Ok(()) | Err(TrySendError::Disconnected(_)) => return,
            };
            drop(messages);
            tokio::time::sleep(FULL_PAUSE).await;
        }
    }
}

impl Shared {
    fn recent(&self) -> MutexGuard<'_, VecDeque<Change>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn panicked() -> HostError {
    HostError::Stopped { fault: "it panicked; see its last words".to_owned() }
}

/// What runs on the thread.
struct Body {
    host: Host,
    clock: Clock,
    inbox: Receiver<Message>,
    back: Weak<SyncSender<Message>>,
    caller: Option<Box<dyn Caller>>,
    solver: Solver,
    shared: Arc<Shared>,
    replies: BTreeMap<u64, Reply>,
    links: BTreeMap<SessionId, mpsc::Sender<ToAgent>>,
    slots: u64,
    /// Connections that were too slow.
    lost: Vec<SessionId>,
    /// Who looks after this batch. Kept until the fault is known when there is one: whoever was
    /// forgotten before would be told that the daemon was.
    looks: Vec<Look>,
    tokens_seen: u64,
}

/// The solver on its thread: one at a time.
#[derive(Default)]
struct Solver {
    busy: bool,
    /// The question that waits for it; an older one is of no use.
    next: Option<u64>,
}

impl Body {
    fn run(mut self) -> Result<(), HostError> {
        // Whoever waits for the end must hear of a panic too, or the process would live on without
        // its host. What is in memory is not looked at again.
        let done = catch_unwind(AssertUnwindSafe(|| self.serve()));
        let done = done.unwrap_or_else(|_| Err(panicked()));
        let fault = match &done {
            Ok(()) => HostError::Stopped { fault: "it was told to".to_owned() },
            Err(fault) => fault.clone(),
        };
        self.shared.fault.send_replace(Some(fault.clone()));
        for (_, reply) in std::mem::take(&mut self.replies) {
            // Whoever asked may be gone.
            let _ = reply.send(Err(fault.clone()));
        }
        done
    }

    fn serve(&mut self) -> Result<(), HostError> {
        loop {
            let mut inputs: Vec<Input> =
                self.lost.drain(..).map(|session| AgentWord::Lost { session }.into()).collect();
            let mut stop = false;
            let patience = self.patience();
            match self.inbox.recv_timeout(patience) {
                Ok(message) => stop |= self.sort(message, &mut inputs),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => stop = true,
            }
            while inputs.len() + self.looks.len() < INPUTS_PER_BATCH_MAX && !stop {
                let Ok(message) = self.inbox.try_recv() else { break };
                stop |= self.sort(message, &mut inputs);
            }
            let effects = self.host.handle(self.clock.now(), inputs)?;
            // Whoever is told of a change of tokens finds it in effect.
            self.publish_tokens();
            effects.into_iter().for_each(|effect| self.carry_out(effect));
            self.solve()?;
            std::mem::take(&mut self.looks).into_iter().for_each(|look| look(&self.host));
            if stop {
                return self.host.close();
            }
        }
    }

    /// Puts the solver to work, if it rests and is asked for: everybody else goes on meanwhile.
    fn solve(&mut self) -> Result<(), HostError> {
        if self.solver.busy {
            return Ok(());
        }
        let Some(number) = self.solver.next.take() else { return Ok(()) };
        let (Some(question), Some(back)) = (self.host.question(number), self.back.upgrade()) else {
            return Ok(());
        };
        self.solver.busy = true;
        let work = move || {
            let answer = question.and_then(SolverQuestion::answer);
            // The host may be over.
            let _ = back.send(Message::Solved(number, Box::new(answer)));
        };
        let thread = std::thread::Builder::new().name("solver".to_owned()).spawn(work);
        thread.map(drop).map_err(|fault| HostError::Stopped { fault: fault.to_string() })
    }

    /// Time until something is to be done without an input.
    fn patience(&mut self) -> Duration {
        let now = self.clock.now();
        let wake = self.host.wake().map_or(Time::NEVER, |at| at);
        Duration::from_micros(wake.since(now).0).clamp(Duration::from_millis(1), TICK)
    }

    /// Puts a message where it belongs; tells whether it asks to stop.
    fn sort(&mut self, message: Message, inputs: &mut Vec<Input>) -> bool {
        match message {
            Message::Command(by, command, reply) => {
                self.slots += 1;
                self.replies.insert(self.slots, reply);
                inputs.push(Input::Command { slot: self.slots, by, command });
            }
            Message::Connected(input, session, sender) => {
                self.links.insert(session, sender);
                inputs.push(*input);
            }
            Message::Input(input) => {
                if let Input::Driver(Word::Agent(AgentWord::Lost { session })) = &*input {
                    self.links.remove(session);
                }
                inputs.push(*input);
            }
            Message::Look(look) => self.looks.push(look),
            Message::Solved(number, answer) => {
                self.solver.busy = false;
                inputs.push(Input::Solved { number, answer: *answer });
            }
            Message::Stop => return true,
        }
        false
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Reply(slot, answer) => {
                if let Some(reply) = self.replies.remove(&slot) {
                    // Whoever asked may be gone.
                    let _ = reply.send(answer);
                }
            }
            Effect::Tell(session, message) => {
                let Some(link) = self.links.get(&session) else { return };
                if link.try_send(message).is_err() {
                    self.links.remove(&session);
                    self.lost.push(session);
                }
            }
            Effect::Close(session) => {
                self.links.remove(&session);
            }
            // Who is too slow for it counts what was missed.
            Effect::Notify(notice) => _ = self.shared.notices.send(Arc::from(notice)),
            Effect::Call(call) => {
                let caller = self.caller.as_mut().expect("a driver that calls has a caller");
                caller.call(call);
            }
            Effect::Solve(number) => self.solver.next = Some(number),
            Effect::Changed(change) => {
                let mut recent = self.shared.recent();
                if recent.len() >= CHANGES_KEPT {
                    recent.pop_front();
                }
                recent.push_back(change.clone());
                // Nobody may be listening.
                let _ = self.shared.changes.send(change);
            }
        }
    }

    fn publish_tokens(&mut self) {
        if self.tokens_seen != self.host.desk.tokens.changes {
            self.tokens_seen = self.host.desk.tokens.changes;
            let copy = Arc::new(self.host.desk.tokens.clone());
            *self.shared.tokens.write().unwrap_or_else(PoisonError::into_inner) = copy;
        }
    }
}
