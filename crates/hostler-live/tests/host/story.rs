//! Stories of a daemon: what happens at which second, and what it does about it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use expect_test::Expect;
use hostler_core::event::Event;
use hostler_core::id::{JobId, LeaseId, ProfileKey};
use hostler_core::profile::{PairPace, PairRun, Run};
use hostler_core::record::Record;
use hostler_core::solve::SolverQuestion;
use hostler_core::units::{Span, Time};
use hostler_core::verify::Violation;
use hostler_live::driver::AgentWord;
use hostler_live::host::{
    Answer, Command, Effect, Host, Input, JobFilter, Principal, SessionId, Settings,
};
use hostler_live::job::{JobAction, JobRequest, JobView};
use hostler_live::reservation::{DrainRequest, ReservationRequest};
use hostler_live::store::memory::Disk;
use hostler_live::store::{HistoryFilter, Reader, Role, TenantQuota};
use hostler_live::wire::{
    EndNotes, FromAgent, Instance, LeaseReport, Machine, PROTOCOL, Stage, StartOrder, Stream,
    TaskExit, ToAgent,
};

/// Plays a story and compares what the daemon did.
///
/// A line is a second and what happens: `join NODE GPUS [files JOB] [LEASE STAGE,..]`, the same
/// with `from FOLDER@BOOT` instead of files, `lose NODE`, `NODE beat`, `old NODE beat` over the
/// connection before, `NODE LEASE STAGE` with a stage of `running`, `ended CODE [USED]`,
/// `killed`, `faulty`, `impossible` or `unknown`; a command such as `submit gpus=1 after=1`,
/// `cancel 1`, `hold 1`, `release 1`, `drain NODE`, `quota gpus=2 weight=3`, `tenant NAME`,
/// `policy KIND`, `cancel-all 1-3 7` and its like, `output JOB`, all of them also `as USER`; the
/// answer to that one, `NODE piece REQUEST TEXT`; `restart` of the daemon, or `restart
/// fence=SECS`; `solved` when the solver is done; `backup` and `restore` of the store; or `jobs`,
/// `nodes`, `tenants`, `speeds`, `ends` and `history` to look. GPUs of a node are V100, or K80 if
/// its name begins with `slow`.
pub fn check(story: &str, expected: Expect) {
    let mut stage = Theatre::new();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        writeln!(stage.text, "{line}").unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        stage.now = words[0].parse().unwrap();
        stage.line(&words[1..]);
        stage.host.state().audit();
    }
    stage.compare_with_store();
    expected.assert_eq(&stage.text);
}

struct Theatre {
    text: String,
    now: u64,
    disk: Disk,
    backup: Disk,
    host: Host,
    sessions: BTreeMap<String, SessionId>,
    /// The connections before those.
    old: BTreeMap<String, SessionId>,
    tokens: BTreeMap<String, u32>,
    /// What a solver is at work on.
    question: Option<(u64, Result<SolverQuestion, Violation>)>,
    next: u64,
    /// Which agent joins.
    instance: Option<Instance>,
}

impl Theatre {
    fn new() -> Theatre {
        let disk = Disk::default();
        let host = open(&disk, 0, 900);
        let (sessions, old, tokens) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (text, question, backup) = (String::new(), None, Disk::default());
        let (now, next, instance) = (0, 0, None);
        Theatre { text, now, disk, backup, host, sessions, old, tokens, question, next, instance }
    }

    fn line(&mut self, words: &[&str]) {
        match words {
            ["join", node, gpus, words @ ..] => self.joins(node, gpus.parse().unwrap(), words),
            ["lose", node] => {
                let session = self.sessions.remove(*node).unwrap();
                self.play(AgentWord::Lost { session }.into());
            }
            ["solved"] => {
                let (number, question) = self.question.take().expect("it was asked for");
                let answer = question.and_then(SolverQuestion::answer);
                self.play(Input::Solved { number, answer });
            }
            ["tick"] => self.play(Input::Tick),
            ["backup"] => self.backup = self.disk.backup(),
            ["restore"] => {
                self.disk = self.backup.backup();
                self.open(900);
            }
            ["restart", settings @ ..] => {
                self.compare_with_store();
                let fence = settings.first().and_then(|text| text.strip_prefix("fence="));
                self.open(fence.map_or(900, |secs| secs.parse().unwrap()));
            }
            ["jobs"] => {
                let filter = JobFilter { limit: 100, ..JobFilter::default() };
                self.host.jobs(&filter).iter().for_each(|job| show_job(&mut self.text, job));
            }
            ["tenants"] => self.show_tenants(),
            ["history"] => {
                let filter = HistoryFilter { limit: 100, ..HistoryFilter::default() };
                let rows = Reader::history(&mut self.disk.store(), &filter).unwrap();
                for row in rows.iter().rev() {
                    show_job(&mut self.text, &hostler_live::host::of_row(row));
                }
            }
            ["speeds"] => self.show_speeds(),
            ["ends"] => self.show_ends(),
            ["stays"] => self.show_stays(),
            ["deciding"] => {
                let policy = self.host.policy().trim().replace('\n', " ");
                let violation = self.host.policy_fault().map(|broke| &*broke.fault);
                let count = self.host.figures().violations;
                writeln!(self.text, "    {policy}; {count} violations, {violation:?}").unwrap();
            }
            ["nodes"] => self.show_nodes(),
            ["why"] => {
                for node in self.host.nodes() {
                    let why = if node.reason.is_empty() { "nothing" } else { &node.reason };
                    writeln!(self.text, "    {}: {why}", node.name).unwrap();
                }
            }
            [node, "piece", request, text] => self.said(node, piece(request, text)),
            ["old", node, "beat"] => {
                let (session, message) = (self.old[*node], beat());
                self.play(AgentWord::Said { session, message }.into());
            }
            [node, "beat"] => self.said(node, beat()),
            [node, "step", lease, step, total] => {
                let (lease, step) = (LeaseId(lease.parse().unwrap()), step.parse().unwrap());
                let (total, saved) = (total.parse().ok(), true);
                self.said(node, FromAgent::Progress { lease, step, total, saved });
            }
            [node, lease, stage @ ..] if lease.parse::<u32>().is_ok() && !is_command(node) => {
                let report = report(lease, stage);
                self.said(node, FromAgent::Report(report));
            }
            ["as", user, words @ ..] => self.command(user, words),
            words => self.command("hostler", words),
        }
    }

    fn command(&mut self, user: &str, words: &[&str]) {
        let (command, user) = (Box::new(command(words)), user.to_owned());
        let by = Principal { token: 9, role: Role::Admin, user, ..Principal::daemon() };
        self.play(Input::Command { slot: 1, by, command });
    }

    fn joins(&mut self, node: &str, gpus: u32, words: &[&str]) {
        match words {
            ["files", job, held @ ..] => self.join(node, gpus, held, job.parse().ok().map(JobId)),
            ["from", instance, held @ ..] => {
                self.instance = Some(instance_of(instance));
                self.join(node, gpus, held, None);
                self.instance = None;
            }
            held => self.join(node, gpus, held, None),
        }
    }

    fn show_tenants(&mut self) {
        for tenant in self.host.tenants() {
            let (name, waiting) = (&tenant.name, tenant.waiting);
            let (run, asked) = (tenant.gpus, tenant.gpus_asked);
            let line = format!("{name}: {run} GPUs run, {asked} asked, {waiting} wait");
            writeln!(self.text, "    {line}").unwrap();
        }
    }

    fn show_nodes(&mut self) {
        for node in self.host.nodes() {
            let (name, health) = (&node.name, &node.health);
            writeln!(self.text, "    {name} {health} {} used", node.gpus_used).unwrap();
        }
    }

    /// The facts about ends of stays that are in the log.
    fn show_ends(&mut self) {
        for (_, record) in Reader::records(&mut self.disk.store(), 0, 10_000).unwrap() {
            let Record::Input { events, .. } = serde_json::from_str(&record).unwrap() else {
                continue;
            };
            for event in events {
                match event {
                    Event::Used { lease, gpu } => {
                        writeln!(self.text, "    {lease:?} used {}", gpu.0).unwrap();
                    }
                    Event::Stopped { lease, outcome, .. } => {
                        writeln!(self.text, "    {lease:?} {outcome:?}").unwrap();
                    }
                    _ => {}
                }
            }
        }
    }

    /// What jobs that are over are charged for.
    fn show_stays(&mut self) {
        let secs = |micros: u64| micros / 1_000_000;
        let filter = HistoryFilter { limit: 100, ..HistoryFilter::default() };
        for row in Reader::history(&mut self.disk.store(), &filter).unwrap().iter().rev() {
            let ended = row.ended.map(secs).unwrap();
            writeln!(self.text, "    {} ended at {ended}", row.id).unwrap();
            for stay in &row.facts.stays {
                let (from, to) = (secs(stay.from), stay.to.map(secs).unwrap());
                let lost = if stay.lost { ", lost" } else { "" };
                let gpu = secs(stay.gpu_micros);
                writeln!(self.text, "        {from}..{to}: {gpu} GPU s{lost}").unwrap();
            }
        }
    }

    fn show_speeds(&mut self) {
        let state = self.host.state();
        for key in (0..state.profile_count() as u32 * 2).map(ProfileKey) {
            let runs = state.profile(key).map_or(&[][..], |profile| profile.measured.alone());
            for (Run(model, spread, gpus), pace) in runs {
                let (name, steps) = (&state.model(*model).name, pace.steps_per_sec());
                let spread = if *spread { " spread" } else { "" };
                writeln!(self.text, "    {key:?} {gpus} {name}{spread}: {steps:.2} steps/s")
                    .unwrap();
            }
            let pairs = state.profile(key).map_or(&[][..], |profile| profile.measured.pairs());
            for (PairRun(other, model, gpus), PairPace(own, others)) in pairs {
                let (own, others) = (own.steps_per_sec(), others.steps_per_sec());
                let name = &state.model(*model).name;
                writeln!(
                    self.text,
                    "    {key:?} beside {other:?} {gpus} {name}: {own:.2} and {others:.2} steps/s"
                )
                .unwrap();
            }
        }
    }

    fn open(&mut self, fence_secs: u64) {
        self.host = open(&self.disk, self.now, fence_secs);
        self.sessions.clear();
        self.question = None;
    }

    fn join(&mut self, name: &str, gpus: u32, held: &[&str], last_job: Option<JobId>) {
        let token = match self.tokens.get(name) {
            Some(token) => *token,
            None => self.make_token(name),
        };
        self.next += 1;
        let session = SessionId(self.next);
        if let Some(before) = self.sessions.insert(name.to_owned(), session) {
            self.old.insert(name.to_owned(), before);
        }
        let held = held.join(" ");
        let held = held.split(',').map(str::trim).filter(|text| !text.is_empty());
        let held = held.map(|text| {
            let words: Vec<&str> = text.split_whitespace().collect();
            report(words[0], &words[1..])
        });
        let machine = Machine {
            name: name.to_owned(),
            version: String::new(),
            address: format!("{name}.example"),
            cpu_milli: 8_000,
            mem_mib: 1_000,
            gpu_model: match (gpus, name.starts_with("slow")) {
                (0, _) => String::new(),
                (_, true) => "K80".to_owned(),
                (_, false) => "V100".to_owned(),
            },
            gpu_mem_mib: if gpus > 0 { 16_000 } else { 0 },
            gpus,
            rack: 0,
            instance: self.instance.clone(),
            ..Machine::default()
        };
        let (protocol, held) = (PROTOCOL, held.collect());
        self.play(
            AgentWord::Connected { session, token, protocol, machine, held, last_job }.into(),
        );
    }

    fn make_token(&mut self, name: &str) -> u32 {
        let (hash, tenant, name) =
            (format!("hash of {name}"), "default".to_owned(), name.to_owned());
        let command = Command::CreateToken {
            hash,
            role: Role::Agent,
            tenant,
            name: name.clone(),
            one_time: false,
            person: None,
        };
        let by = Principal::daemon();
        let input = Input::Command { slot: 0, by, command: Box::new(command) };
        let effects = self.host.handle(Time::from_secs(self.now), vec![input]).unwrap();
        let Some(Effect::Reply(_, Ok(Answer::Token(id)))) = effects.last() else { panic!() };
        self.tokens.insert(name, *id);
        *id
    }

    fn said(&mut self, node: &str, message: FromAgent) {
        let session = *self.sessions.get(node).expect("the node joined before");
        self.play(AgentWord::Said { session, message }.into());
    }

    fn play(&mut self, input: Input) {
        let effects = self.host.handle(Time::from_secs(self.now), vec![input]).unwrap();
        for effect in effects {
            let node = |session: &SessionId| {
                let known = self.sessions.iter().find(|(_, known)| *known == session);
                known.map_or("(old)", |(name, _)| name.as_str()).to_owned()
            };
            match &effect {
                Effect::Tell(_, ToAgent::Welcome { .. } | ToAgent::BeatSeen { .. }) => {}
                Effect::Tell(session, message) => {
                    writeln!(self.text, "    to {}: {}", node(session), show(message)).unwrap();
                }
                Effect::Close(session) => {
                    writeln!(self.text, "    close {}", node(session)).unwrap()
                }
                Effect::Reply(_, Ok(answer)) => show_answer(&mut self.text, answer),
                Effect::Reply(_, Err(fault)) => writeln!(self.text, "    {fault}").unwrap(),
                Effect::Changed(_) | Effect::Notify(_) => {}
                Effect::Call(call) => unreachable!("agents are not called: {call:?}"),
                Effect::Solve(number) => {
                    writeln!(self.text, "    solve {number}").unwrap();
                    self.question = self.host.question(*number).map(|question| (*number, question));
                }
            }
        }
    }

    fn compare_with_store(&self) {
        let again = open(&self.disk, self.now, 900);
        assert!(again.state() == self.host.state(), "memory and store differ");
    }
}

fn open(disk: &Disk, now: u64, fence_secs: u64) -> Host {
    let mut registry = hostler_policies::builtin();
    crate::violations::register_rogues(&mut registry);
    let builder = move |text: &str| registry.from_toml(text).map_err(|fault| fault.to_string());
    let settings = Settings {
        fence: Span::from_secs(fence_secs),
        dead: Span::from_secs(fence_secs + 60),
        snapshot_bytes: 3_000,
        keys_max: 3,
        ..Settings::new("kind = \"fifo-backfill\"\nestimate = \"user\"\n")
    };
    let store = Box::new(disk.store());
    Host::open(store, Arc::new(builder), settings, Time::from_secs(now)).unwrap()
}

fn is_command(word: &str) -> bool {
    ["cancel", "hold", "release", "output", "cancel-all", "hold-all", "release-all"].contains(&word)
}

fn command(words: &[&str]) -> Command {
    let number = |text: &str| text.parse().unwrap();
    match words {
        ["submit", settings @ ..] => submit(settings),
        ["output", job, rank] => Command::ReadOutput {
            job: number(job),
            rank: number(rank),
            stream: Stream::Stdout,
            offset: 0,
            start: None,
        },
        ["cancel", job] => Command::Cancel { job: number(job), version: None },
        ["cancel", job, version] => {
            Command::Cancel { job: number(job), version: version.parse().ok() }
        }
        ["hold", job] => Command::Hold { job: number(job), held: true, version: None },
        ["release", job] => Command::Hold { job: number(job), held: false, version: None },
        [action @ ("cancel-all" | "hold-all" | "release-all"), jobs @ ..] => {
            let action = match *action {
                "cancel-all" => JobAction::Cancel,
                "hold-all" => JobAction::Hold,
                _ => JobAction::Release,
            };
            let jobs = jobs.iter().map(|job| job.parse().unwrap()).collect();
            Command::ChangeMany { action, jobs }
        }
        ["drain" | "undrain" | "reserve" | "unreserve", ..] => keep(words),
        ["output", job] => {
            let (job, stream) = (number(job), Stream::Stdout);
            Command::ReadOutput { job, rank: 0, stream, offset: 0, start: None }
        }
        ["policy", kind] => Command::SetPolicy { settings: format!("kind = '{kind}'") },
        ["policy", kind, setting] => {
            Command::SetPolicy { settings: format!("kind = '{kind}'\n{setting}") }
        }
        ["tenant", name] => {
            Command::SetTenant { name: name.to_string(), quota: TenantQuota::default() }
        }
        ["quota", settings @ ..] => {
            let mut quota = TenantQuota::default();
            for setting in settings {
                match setting.split_once('=').unwrap() {
                    ("gpus", most) => quota.gpus_max = Some(number(most)),
                    ("jobs", most) => quota.jobs_max = Some(number(most)),
                    ("queued", most) => quota.queued_max = Some(number(most)),
                    ("weight", weight) => quota.weight = Some(number(weight)),
                    ("budget", hours) => quota.budget_gpu_hours = Some(number(hours)),
                    ("days", days) => quota.budget_days = Some(number(days)),
                    other => panic!("{other:?}"),
                }
            }
            Command::SetTenant { name: "default".to_owned(), quota }
        }
        other => panic!("no such command: {other:?}"),
    }
}

/// Nodes that are drained or kept.
fn keep(words: &[&str]) -> Command {
    match words {
        ["drain", node, rest @ ..] => Command::Drain {
            node: node.to_string(),
            draining: true,
            how: DrainRequest {
                reason: rest.get(1).unwrap_or(&"").replace('_', " "),
                deadline_secs: rest.first().map(|secs| secs.parse().unwrap()),
            },
        },
        ["undrain", node] => {
            let how = DrainRequest::default();
            Command::Drain { node: node.to_string(), draining: false, how }
        }
        ["reserve", name, nodes, from, secs, who, rest @ ..] => {
            Command::Reserve(Box::new(ReservationRequest {
                name: name.to_string(),
                nodes: match nodes.parse::<u32>() {
                    Ok(_) => Vec::new(),
                    Err(_) => nodes.split(',').map(str::to_owned).collect(),
                },
                gpus: nodes.parse().ok(),
                from: Some(from.parse().unwrap()),
                secs: secs.parse().unwrap(),
                users: Some(*who)
                    .filter(|who| *who != "-")
                    .map(str::to_owned)
                    .into_iter()
                    .collect(),
                stops_jobs: rest == ["stops"],
                ..ReservationRequest::default()
            }))
        }
        ["unreserve", name] => Command::Unreserve { name: name.to_string() },
        other => panic!("no such command: {other:?}"),
    }
}

fn submit(settings: &[&str]) -> Command {
    let mut request = JobRequest { command: vec!["work".to_owned()], ..JobRequest::default() };
    request.env.insert("PASSWORD".to_owned(), "hunter2".to_owned());
    let (mut key, mut tenant) = (None, None);
    for setting in settings {
        let (name, value) = setting.split_once('=').unwrap();
        match name {
            "gpus" => request.gpus = value.parse().unwrap(),
            "mem" => request.mem_mib = value.parse().unwrap(),
            "cpus" => request.cpus = value.parse().unwrap(),
            "tasks" => request.tasks = value.parse().unwrap(),
            "array" => request.array = value.parse().unwrap(),
            "after" => request.after = value.split('+').map(|job| job.parse().unwrap()).collect(),
            "max" => request.max_secs = value.parse().ok(),
            "estimate" => request.estimate_secs = value.parse().ok(),
            "priority" => request.priority = value.parse().unwrap(),
            "model" => request.gpu_models = vec![value.to_owned()],
            "tenant" => tenant = Some(value.to_owned()),
            "group" => request.group = value.to_owned(),
            "share" => request.sharing = hostler_live::job::Sharing::Willing,
            "steps" => request.steps = value.parse().ok(),
            "checkpoints" => request.checkpoints = value == "yes",
            "reservation" => request.reservation = value.to_owned(),
            "grace" => request.grace_secs = value.parse().ok(),
            "key" => key = Some(value.to_owned()),
            other => panic!("no such setting: {other}"),
        }
    }
    Command::Submit { request: Box::new(request), key, tenant }
}

fn report(lease: &str, stage: &[&str]) -> LeaseReport {
    let exit = |code, signal| vec![TaskExit { rank: 0, code, signal }];
    let stage = match stage {
        ["starting"] => Stage::Starting,
        ["running"] => Stage::Running,
        ["ended", code] => {
            let exits = exit(code.parse().ok(), None);
            Stage::Ended { exits, interrupted: false, gpu_milli: None, notes: EndNotes::default() }
        }
        ["ended", code, "ago", secs] => {
            let exits = exit(code.parse().ok(), None);
            let ago_ms = secs.parse().ok().map(|secs: u64| secs * 1000);
            let notes = EndNotes { ago_ms, ..EndNotes::default() };
            Stage::Ended { exits, interrupted: false, gpu_milli: None, notes }
        }
        ["ended", code, used] => {
            let (exits, gpu_milli) = (exit(code.parse().ok(), None), used.parse().ok());
            Stage::Ended { exits, interrupted: false, gpu_milli, notes: EndNotes::default() }
        }
        ["killed"] => Stage::Ended {
            exits: exit(None, Some(15)),
            interrupted: true,
            gpu_milli: None,
            notes: EndNotes::default(),
        },
        ["faulty"] => Stage::NotStarted { fault: "no such program".to_owned(), of_machine: false },
        ["impossible"] => Stage::Impossible { fault: "no such folder".to_owned() },
        ["unable"] => Stage::NotStarted { fault: "disk full".to_owned(), of_machine: true },
        ["unknown"] => Stage::Unknown,
        other => panic!("no such stage: {other:?}"),
    };
    LeaseReport { lease: LeaseId(lease.parse().unwrap()), stage }
}

fn show(message: &ToAgent) -> String {
    match message {
        ToAgent::Start(order) => show_order(order),
        ToAgent::Stop { lease, how, grace_ms } => {
            format!("stop {lease:?} {how:?} in {grace_ms} ms").to_lowercase()
        }
        ToAgent::Forget { lease } => format!("forget {lease:?}"),
        ToAgent::ReadOutput { request, lease, .. } => format!("read {request} of {lease:?}"),
        ToAgent::OpenStream(order) => format!("stream {} of {:?}", order.number, order.lease),
        other => format!("{other:?}"),
    }
}

fn show_order(order: &StartOrder) -> String {
    let tasks: Vec<String> =
        order.tasks.iter().map(|task| format!("{}{:?}", task.rank, task.gpus)).collect();
    let (lease, job, restart) = (order.lease, order.job, order.restart);
    let index = order.array_index.map_or_else(String::new, |index| format!(" index {index}"));
    let master = format!("{}:{}", order.master_addr, order.master_port);
    format!(
        "start {lease:?} {job:?} restart {restart} tasks {} of {} at {master}{index}",
        tasks.join(" "),
        order.world_size
    )
}

fn beat() -> FromAgent {
    FromAgent::Beat { number: 1, gpu_use: vec![], unable: None }
}

fn piece(request: &str, text: &str) -> FromAgent {
    let (request, bytes) = (request.parse().unwrap(), text.len() as u64);
    let (text, base64, offset, last, fault) = (text.to_owned(), None, 0, true, None);
    FromAgent::Output { request, offset, text, base64, bytes, last, fault }
}

/// The agent of `FOLDER@BOOT`.
fn instance_of(text: &str) -> Instance {
    let (folder, boot) = text.split_once('@').unwrap();
    Instance {
        boot: boot.to_owned(),
        machine: "machine".to_owned(),
        folder: folder.to_owned(),
        device: boot.len() as u64,
        inode: folder.bytes().map(u64::from).sum(),
    }
}

fn show_answer(text: &mut String, answer: &Answer) {
    match answer {
        Answer::Submitted { jobs, again } => {
            let again = if *again { ", as before" } else { "" };
            match jobs.len() {
                0..100 => writeln!(text, "    submitted {jobs:?}{again}").unwrap(),
                many => writeln!(text, "    submitted {many} jobs{again}").unwrap(),
            }
        }
        Answer::Job(job) => show_job(text, job),
        Answer::Jobs(changed) => {
            for job in &changed.jobs {
                let state = serde_json::to_value(job.state).unwrap();
                writeln!(text, "    {} {}", job.id, state.as_str().unwrap()).unwrap();
            }
            for refused in &changed.refused {
                writeln!(text, "    refused {}: {}", refused.jobs, refused.error).unwrap();
            }
        }
        Answer::Output(piece) => writeln!(text, "    output {}", piece.text).unwrap(),
        Answer::Node(node) => writeln!(text, "    {} {}", node.name, node.health).unwrap(),
        _ => writeln!(text, "    done").unwrap(),
    }
}

fn show_job(text: &mut String, job: &JobView) {
    let state = serde_json::to_value(job.state).unwrap();
    let mut line = format!("    {} {}", job.id, state.as_str().unwrap());
    if let Some(by) = job.held_by {
        line += &format!(" by {}", serde_json::to_value(by).unwrap().as_str().unwrap());
    }
    if let Some(code) = job.exit_code {
        line += &format!(", code {code}");
    }
    if !job.nodes.is_empty() {
        line += &format!(", on {}", job.nodes.join(" "));
    }
    if let Some(start) = job.expected_start {
        line += &format!(", expected at {start}");
    }
    if let Some(steps) = job.steps_done {
        line += &format!(", step {steps}, expected end {:?}", job.expected_end);
    }
    if !job.reason.is_empty() {
        line += &format!(": {}", job.reason);
    }
    writeln!(text, "{line}").unwrap();
}
