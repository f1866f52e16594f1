//! One stay of a job over all its nodes: what agents said about it, and what follows.
//!
//! Nothing here is in the store: agents repeat what they know at each connection until they are
//! told to forget, and that happens only when the outcome is safe in the log.

use std::collections::BTreeMap;

use hostler_core::decision::StopHow;
use hostler_core::event::{Event, Outcome};
use hostler_core::id::{JobId, LeaseId, NodeId};
use hostler_core::placement::Lease;
use hostler_core::units::{Milli, Span, Time};

use super::AgentDriver;
use super::health::sentence;
use super::suspend::SuspendedRun;
use super::suspend_times::Way;
use crate::host::{Desk, Effect};
use crate::store::stays;
use crate::wire::{LeaseReport, Stage, TaskExit, ToAgent};

/// Time after which an agent that is connected but did not confirm an order is told again.
const TELL_AGAIN: Span = Span::from_secs(30);

/// One stay.
pub(super) struct LeaseRun {
    pub(super) job: JobId,
    /// What each node said last.
    pub(super) parts: BTreeMap<NodeId, PartStage>,
    /// Whether its agents were told to end it.
    pub(super) stop: Option<StopHow>,
    /// When they were first told to suspend it: it did no work since.
    pub(super) suspend_told: Option<Time>,
    /// The first task that failed by itself, and its exit code.
    failure: Option<(u32, i32)>,
    /// What parts that are done used of their GPUs, in thousandths of each.
    used: Vec<u32>,
    /// Bytes of output that its nodes had no room for.
    lost_bytes: u64,
    /// What its parts used of GPUs of each model, where these tell it, in joules.
    joules: BTreeMap<String, u64>,
    /// Why a shim of it ended its tasks by itself.
    why: Option<String>,
    /// When the last of its tasks that are over ended, which is before it was heard.
    ended: Option<Time>,
    /// When each node was last told something.
    pub(super) told: BTreeMap<NodeId, Time>,
    /// From when and which step on its speed is measured.
    pub(super) measured_from: Option<(Time, u64)>,
}

/// Where the tasks of a stay on one node stand.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PartStage {
    /// Nothing was heard.
    Ordered,
    /// The agent has the order.
    Starting,
    /// Every task runs.
    Running,
    /// Every task stands still, and has nothing on GPUs.
    Suspended,
    /// Nothing ever ran.
    NotStarted,
    /// Nothing ever ran, and nothing else would: the machine is at fault.
    Unable,
    /// Nothing ever ran, and never would: the job is at fault.
    Impossible,
    /// The tasks came to their own end; whether all were successful.
    Done(bool),
    /// The tasks were ended from outside.
    Interrupted(Option<i32>),
    /// The node is down.
    Gone,
}

impl PartStage {
    pub(super) fn is_over(&self) -> bool {
        match self {
            PartStage::Ordered
            | PartStage::Starting
            | PartStage::Running
            | PartStage::Suspended => false,
            PartStage::NotStarted
            | PartStage::Unable
            | PartStage::Impossible
            | PartStage::Done(_)
            | PartStage::Interrupted(_)
            | PartStage::Gone => true,
        }
    }
}

impl LeaseRun {
    pub(super) fn new(lease: &Lease) -> LeaseRun {
        let nodes = lease.placement.parts.iter().map(|part| part.node);
        let parts = nodes.map(|node| (node, PartStage::Ordered)).collect();
        LeaseRun {
            job: lease.job,
            parts,
            stop: lease.stop.map(|stop| stop.how),
            suspend_told: None,
            failure: None,
            used: Vec::new(),
            lost_bytes: 0,
            joules: BTreeMap::new(),
            why: None,
            ended: None,
            told: BTreeMap::new(),
            measured_from: None,
        }
    }

    fn any(&self, test: impl Fn(&PartStage) -> bool) -> bool {
        self.parts.values().any(test)
    }

    fn all(&self, test: impl Fn(&PartStage) -> bool) -> bool {
        self.parts.values().all(test)
    }

    /// Mean compute used of each of its GPUs, where anybody knows.
    fn gpu_use(&self) -> Option<Milli> {
        let sum: u64 = self.used.iter().copied().map(u64::from).sum();
        let mean = sum.checked_div(self.used.len() as u64)?;
        u32::try_from(mean).ok().map(Milli)
    }

    /// Exit code to show: of the first task that failed, else of one that was ended.
    fn exit_code(&self) -> Option<i32> {
        let ended = self.parts.values().find_map(|part| match part {
            PartStage::Interrupted(code) => *code,
            _ => None,
        });
        let well = self.all(|part| *part == PartStage::Done(true));
        self.failure.map(|(_, code)| code).or(ended).or(well.then_some(0))
    }
}

impl AgentDriver {
    /// Tells the agents of a new lease to start it.
    pub(super) fn begin_run(&mut self, desk: &mut Desk, lease: LeaseId) {
        // A fault of one part may have ended it in the meantime.
        let Some(known) = desk.state().lease(lease) else { return };
        let run = LeaseRun::new(known);
        self.suspended.remove(&known.resumes.unwrap_or(lease));
        let nodes: Vec<NodeId> = run.parts.keys().copied().collect();
        self.lease_runs.insert(lease, run);
        nodes.into_iter().for_each(|node| self.tell_start(desk, lease, node));
    }

    /// Tells the agents of a lease to end it.
    pub(super) fn end_run(&mut self, desk: &mut Desk, lease: LeaseId, how: StopHow) {
        let Some(run) = self.lease_runs.get_mut(&lease) else { return };
        desk.job_touched(run.job);
        if how == StopHow::Suspend {
            run.suspend_told.get_or_insert(desk.now());
        }
        let told_now = run.stop.replace(how) == Some(how);
        let told_now = |node: &NodeId| told_now && run.told.get(node) == Some(&desk.now());
        let left: Vec<NodeId> = unfinished(run).filter(|node| !told_now(node)).collect();
        left.into_iter().for_each(|node| self.tell_stop(desk, lease, node, how));
        self.judge(desk, lease);
    }

    /// A lease is over in the state: its agents may forget it once that is safe.
    pub(super) fn forget_run(&mut self, desk: &mut Desk, lease: LeaseId) {
        let Some(run) = self.lease_runs.remove(&lease) else { return };
        if self.waits_suspended(desk, lease, run.job) {
            let nodes = run.parts.into_keys().collect();
            self.suspended.insert(lease, SuspendedRun { job: run.job, nodes });
            return;
        }
        for (node, part) in run.parts {
            let Some(session) = self.agents.session(node) else { continue };
            let message = if part.is_over() {
                ToAgent::Forget { lease }
            } else {
                ToAgent::Stop { lease, how: StopHow::Kill, grace_ms: 0 }
            };
            desk.effect(Effect::Tell(session, message));
        }
    }

    /// Takes in what an agent says about a lease.
    pub(super) fn report(&mut self, desk: &mut Desk, node: NodeId, report: LeaseReport) {
        let LeaseReport { lease, stage } = report;
        let part = self.lease_runs.get(&lease).and_then(|run| run.parts.get(&node));
        let Some(part) = part.filter(|part| **part != PartStage::Gone) else {
            return self.report_on_nothing(desk, node, lease, &stage);
        };
        if part.is_over() {
            return;
        }
        let suspended = matches!(stage, Stage::Suspended { .. });
        if suspended && self.lease_runs.get(&lease).is_some_and(|run| run.stop.is_none()) {
            return self.tell_resume(desk, lease, node);
        }
        let run = self.lease_runs.get_mut(&lease).expect("looked up above");
        let part = run.parts.get_mut(&node).expect("looked up above");
        *part = match &stage {
            Stage::Starting if *part == PartStage::Ordered => PartStage::Starting,
            Stage::Starting => return,
            Stage::Running if *part == PartStage::Running => return,
            Stage::Running => PartStage::Running,
            Stage::Suspended { .. } if *part == PartStage::Suspended => return,
            Stage::Suspended { .. } => PartStage::Suspended,
            Stage::NotStarted { of_machine: true, .. } => PartStage::Unable,
            Stage::NotStarted { .. } => PartStage::NotStarted,
            Stage::Impossible { .. } => PartStage::Impossible,
            Stage::Ended { exits, interrupted, .. } if *interrupted => {
                PartStage::Interrupted(first_failure(exits))
            }
            Stage::Ended { exits, .. } => PartStage::Done(first_failure(exits).is_none()),
            Stage::Unknown => PartStage::Interrupted(None),
        };
        let run = self.lease_runs.get_mut(&lease).expect("looked up above");
        match stage {
            Stage::Ended { exits, interrupted, gpu_milli, notes } => {
                if !interrupted {
                    run.failure = run.failure.or(first_failed(&exits));
                    run.used.extend(gpu_milli.map(|milli| milli.min(Milli::ONE.0)));
                }
                run.lost_bytes = run.lost_bytes.saturating_add(notes.lost_bytes);
                if let Some(joules) = notes.joules {
                    let sum = run.joules.entry(model_on(desk, node)).or_default();
                    *sum = sum.saturating_add(joules);
                }
                run.why = notes.why.as_deref().map(sentence).or(run.why.take());
                let ago = Span::from_millis(notes.ago_ms.unwrap_or(0));
                let ended = Time(desk.now().0.saturating_sub(ago.0));
                run.ended = run.ended.max(Some(ended));
            }
            Stage::Impossible { fault } => {
                let name = self.agents.nodes.get(&node).map_or("", |node| &node.name);
                let fault = format!("on node `{name}`: {}", sentence(&fault));
                self.note_fault(desk, lease, &fault);
            }
            Stage::Running => self.failed_starts.went_well(node),
            Stage::NotStarted { fault, of_machine } => {
                let fault = sentence(&fault);
                self.note_fault(desk, lease, &fault);
                if of_machine {
                    self.quarantine(desk, node, format!("a start failed: {fault}"));
                }
            }
            _ => {}
        }
        self.judge(desk, lease);
    }

    /// A report about a lease that is over, or whose node was given up.
    fn report_on_nothing(&mut self, desk: &mut Desk, node: NodeId, lease: LeaseId, stage: &Stage) {
        let Some(session) = self.agents.session(node) else { return };
        if self.report_on_suspended(desk, lease, stage) {
            return;
        }
        let message = match stage {
            Stage::Starting | Stage::Running | Stage::Suspended { .. } => {
                ToAgent::Stop { lease, how: StopHow::Kill, grace_ms: 0 }
            }
            Stage::NotStarted { .. } | Stage::Impossible { .. } | Stage::Ended { .. } => {
                ToAgent::Forget { lease }
            }
            Stage::Unknown => return,
        };
        desk.effect(Effect::Tell(session, message));
    }

    fn note_fault(&mut self, desk: &mut Desk, lease: LeaseId, fault: &str) {
        let Some(run) = self.lease_runs.get(&lease) else { return };
        if let Some(facts) = desk.job_facts(run.job) {
            facts.reason = format!("its start failed: {fault}");
            desk.job_changed(run.job);
        }
    }

    /// What an agent that just connected does not hold it will not report: either the order never
    /// came there, or it lost everything.
    pub(super) fn not_held(&mut self, desk: &mut Desk, node: NodeId, lease: LeaseId) {
        let known_to_run = desk.state().lease(lease).is_some_and(|lease| lease.started.is_some());
        let Some(run) = self.lease_runs.get_mut(&lease) else { return };
        let Some(part) = run.parts.get_mut(&node) else { return };
        if part.is_over() {
            return;
        }
        // A machine that changed may not have what the order names.
        let startable = !known_to_run && !self.agents.has_changed(node);
        if *part == PartStage::Ordered && run.stop.is_none() && startable {
            return self.tell_start(desk, lease, node);
        }
        *part = PartStage::Interrupted(None);
        self.judge(desk, lease);
    }

    /// Draws the conclusions from where all parts of a stay stand.
    pub(super) fn judge(&mut self, desk: &mut Desk, lease: LeaseId) {
        let Some(run) = self.lease_runs.get_mut(&lease) else { return };
        let broken = run.any(|part| part.is_over() && *part != PartStage::Done(true));
        if broken && run.stop.is_none_or(|how| how == StopHow::Suspend) {
            // The rest of a gang is of no use without it.
            run.stop = Some(StopHow::Kill);
            let left: Vec<NodeId> = unfinished(run).collect();
            left.into_iter().for_each(|node| self.tell_stop(desk, lease, node, StopHow::Kill));
        }
        let run = self.lease_runs.get(&lease).expect("looked up above");
        let Some(known) = desk.state().lease(lease) else { return };
        let runs = |part: &PartStage| {
            matches!(part, PartStage::Running | PartStage::Done(_) | PartStage::Interrupted(_))
        };
        if run.stop == Some(StopHow::Suspend) {
            return self.judge_suspension(desk, lease);
        }
        if known.started.is_none() && known.stop.is_none() && run.all(runs) {
            let (job, resumes) = (run.job, known.resumes.is_some());
            desk.job_touched(job);
            if resumes {
                let told = run.told.values().min().copied();
                self.learn_suspend_time(desk, lease, Way::Back, told);
            }
            self.fact(desk, Event::Started { lease });
        }
        if self.lease_runs.get(&lease).is_some_and(|run| run.all(PartStage::is_over)) {
            self.conclude(desk, lease);
        }
    }

    /// All parts are over: the stay is.
    fn conclude(&mut self, desk: &mut Desk, lease: LeaseId) {
        let Some(known) = desk.state().lease(lease) else { return };
        let run = self.lease_runs.get(&lease).expect("the caller looked it up");
        let job = desk.state().job(known.job).expect("a lease belongs to a job");
        // What was heard late was not done longer. Nothing ends before it began.
        let ended = run.ended.unwrap_or(desk.now()).max(known.started.unwrap_or(Time::ZERO));
        let believed = known.believed_done(job.spec.checkpoint, ended);
        let gone = run.any(|part| *part == PartStage::Gone);
        let outcome = if gone {
            // What the others did when a part of them vanished says nothing about the job.
            Outcome::Interrupted
        } else if run.failure.is_some() || run.any(|part| *part == PartStage::Impossible) {
            Outcome::Failed
        } else if run.all(|part| *part == PartStage::Done(true)) {
            Outcome::Finished
        } else if run.any(|part| *part == PartStage::NotStarted) && known.started.is_none() {
            return self.start_failed(desk, lease);
        } else {
            Outcome::Interrupted
        };
        let (code, used) = (run.exit_code(), run.gpu_use());
        let saved = run.stop == Some(StopHow::Checkpoint)
            && !job.spec.checkpoint.never
            && run.all(|part| matches!(part, PartStage::Interrupted(None)));
        let done = match outcome {
            Outcome::Finished => believed,
            Outcome::Failed => job.ledger.done,
            Outcome::Interrupted if saved => believed,
            Outcome::Interrupted | Outcome::Suspended => job.ledger.done,
        };
        let lost = match outcome {
            Outcome::Failed => Span::ZERO,
            Outcome::Finished | Outcome::Interrupted | Outcome::Suspended => {
                believed.saturating_sub(done)
            }
        };
        let (job, lost_bytes, joules) = (job.id, run.lost_bytes, run.joules.clone());
        let why = run.why.clone();
        let failed_rank = run.failure.map(|(rank, _)| rank);
        desk.figures_mut().output_lost_bytes += lost_bytes;
        if let Some(facts) = desk.job_facts(job) {
            (facts.exit_code, facts.failed_rank) = (code, failed_rank);
            stays::measured(&mut facts.stays, &joules);
            if let Some(why) = why {
                facts.reason = why;
            }
            if lost_bytes > 0 {
                facts.reason = format!("{lost_bytes} bytes of its output are lost: no room for it");
            }
            desk.job_changed(job);
        }
        if outcome != Outcome::Interrupted {
            desk.job_ended_at(job, ended);
        }
        let missing_on = self.nodes_with(lease, &PartStage::Impossible);
        for node in &missing_on {
            // One after the other cannot start where a folder of all machines is missing.
            self.blame(desk, *node, job, true);
        }
        if let Some(gpu) = used.filter(|_| outcome == Outcome::Finished) {
            self.fact(desk, Event::Used { lease, gpu });
        }
        self.fact(desk, Event::Stopped { lease, outcome, done, lost });
    }

    /// Tells a node again what it did not confirm: a message may be lost without the connection.
    pub(super) fn tell_again(&mut self, desk: &mut Desk, node: NodeId) {
        let leases = &desk.state().node(node).leases;
        let waiting = leases.iter().filter_map(|lease| {
            let run = self.lease_runs.get(lease)?;
            let part = run.parts.get(&node).filter(|part| !part.is_over())?;
            let silence = desk.now().since(*run.told.get(&node)?);
            match run.stop {
                Some(how) => {
                    let patience = TELL_AGAIN + Span::from_millis(self.grace_ms(desk, *lease));
                    (silence >= patience).then_some((*lease, Some(how)))
                }
                None => {
                    let due = *part == PartStage::Ordered && silence >= TELL_AGAIN;
                    due.then_some((*lease, None))
                }
            }
        });
        let waiting: Vec<_> = waiting.collect();
        for (lease, stop) in waiting {
            match stop {
                Some(how) => self.tell_stop(desk, lease, node, how),
                None => self.tell_start(desk, lease, node),
            }
        }
    }

    /// A node was given up: its parts of stays are gone.
    pub(super) fn parts_gone(&mut self, desk: &mut Desk, node: NodeId) {
        let concerned = self.lease_runs.iter().filter(|(_, run)| run.parts.contains_key(&node));
        let leases: Vec<LeaseId> = concerned.map(|(lease, _)| *lease).collect();
        for lease in leases {
            let part = self.lease_runs.get_mut(&lease).and_then(|run| run.parts.get_mut(&node));
            if let Some(part) = part.filter(|part| !part.is_over()) {
                *part = PartStage::Gone;
            }
            self.judge(desk, lease);
        }
    }
}

/// Name of the GPU model of a node; empty without GPUs.
fn model_on(desk: &Desk, node: NodeId) -> String {
    let model = desk.state().node(node).spec.gpu_model;
    model.map_or(String::new(), |model| desk.state().model(model).name.to_string())
}

/// Nodes on which something of a stay may still run.
fn unfinished(run: &LeaseRun) -> impl Iterator<Item = NodeId> {
    run.parts.iter().filter(|(_, part)| !part.is_over()).map(|(node, _)| *node)
}

/// Code of the task that failed, in order of ranks; 128 + signal when one ended it.
fn first_failure(exits: &[TaskExit]) -> Option<i32> {
    first_failed(exits).map(|(_, code)| code)
}

/// The same with the task.
fn first_failed(exits: &[TaskExit]) -> Option<(u32, i32)> {
    let code = |exit: &TaskExit| match (exit.code, exit.signal) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    };
    exits.iter().map(|exit| (exit.rank, code(exit))).find(|(_, code)| *code != 0)
}
