//! What people are told: jobs, nodes, tenants and tokens as they are now.

use hostler_core::gate::Gate;
use hostler_core::id::{Features, JobId, NodeId, TenantId};
use hostler_core::job::Phase;
use hostler_core::metrics::Summary;
use hostler_core::state::PolicyFault;
use hostler_core::units::Time;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::reasons::Shortages;
use super::tokens::is_local;
use super::{Answer, Effect, Figures, Host, Principal};
use crate::agent::user::{ABILITY, ability_of};
use crate::job::{HeldBy, JobState, JobView, StartView};
use crate::limits::PAGE_JOBS_MAX;
use crate::person::Person;
use crate::store::{JobRow, NodeRow, Role, Start, TenantQuota, TokenRow, starts, stays};

/// A node, for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeView {
    /// Its name.
    pub name: String,
    /// `up`, `draining` (a person said so), `silent` (its agent does not answer, or is not
    /// connected any more), `resting` (it cannot start jobs, or its agent has not connected yet) or
    /// `down`.
    pub health: String,
    /// Why it gets no jobs, besides what a person said; empty when it does.
    #[serde(default)]
    pub reason: String,
    /// The reservation that it is kept for now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_for: Option<String>,
    /// Whether its agent is connected.
    pub connected: bool,
    /// Version of its agent; empty for one of an early release.
    #[serde(default)]
    pub version: String,
    /// Whether that is earlier than the daemon's.
    #[serde(default)]
    pub outdated: bool,
    /// Seconds since its agent was last heard.
    pub silent_secs: f64,
    /// CPU cores, and how many are booked.
    pub cpus: f64,
    /// CPU cores that jobs hold.
    pub cpus_used: f64,
    /// Memory in MiB.
    pub mem_mib: u32,
    /// Memory that jobs hold.
    pub mem_mib_used: u32,
    /// GPU model; empty without GPUs.
    pub gpu_model: String,
    /// Memory of each GPU in MiB.
    pub gpu_mem_mib: u32,
    /// Number of GPUs.
    pub gpus: u32,
    /// GPUs that jobs hold.
    pub gpus_used: f64,
    /// Use of each GPU in per cent, where it can be read.
    pub gpu_use: Vec<u8>,
    /// Programs that run images there, with their versions.
    #[serde(default)]
    pub images: Vec<String>,
    /// Such programs that are there and start nothing, each with why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images_unusable: Vec<String>,
    /// Whether jobs with whole GPUs are suspended there where that costs less than a save.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspends: bool,
    /// Why not, where it could be otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cannot_suspend: String,
    /// Jobs that hold something here.
    pub jobs: Vec<u32>,
}

/// A tenant, for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TenantView {
    /// Its name.
    pub name: String,
    /// What it may use.
    pub quota: TenantQuota,
    /// Jobs that are not over.
    pub jobs: u32,
    /// Jobs that wait.
    pub waiting: u32,
    /// GPUs of jobs that run.
    pub gpus: f64,
    /// GPUs that waiting jobs ask for and that are kept of its quota for them.
    #[serde(default)]
    pub gpus_asked: f64,
    /// GPU hours that were used in the present period of its budget, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_used: Option<f64>,
}

/// A token, for people; its secret is not kept anywhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TokenView {
    /// Its number.
    pub id: u32,
    /// What it allows.
    pub role: Role,
    /// Whose jobs it sees.
    pub tenant: String,
    /// Its owner or node.
    pub name: String,
    /// When it was made, in seconds since the epoch.
    pub created: f64,
    /// When it was revoked or spent.
    pub revoked: Option<f64>,
    /// Whether it only enrols one agent.
    pub one_time: bool,
    /// The Unix user that machines run its jobs as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<String>,
    /// Whether it has no secret and stands for a user of the daemon's machine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
}

/// Which jobs that are not over to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only of this tenant.
    pub tenant: Option<String>,
    /// Only of this user.
    pub user: Option<String>,
    /// Only in one of these states; in any when empty.
    pub states: Vec<JobState>,
    /// Only those with one of these numbers.
    pub numbers: Option<(u32, u32)>,
    /// Only those with a larger number: the last one of the page before.
    pub after: Option<u32>,
    /// At most this many; never more than a page holds.
    pub limit: usize,
}

impl Host {
    /// A job that is not over.
    pub fn job(&self, id: u32) -> Option<JobView> {
        let mut view = self.job_in_list(id, &mut Shortages::default())?;
        let row = &self.desk.jobs.get(&id)?.row;
        let request = &row.request;
        view.starts = starts_of(row);
        view.request.env.clone_from(&request.env);
        view.request.script.clone_from(&request.script);
        let job = self.desk.state().job(JobId(id))?;
        if job.phase == Phase::Pending {
            if let Some(room) = self.room_when(job) {
                view.reason = format!("{}; {room}", view.reason);
            }
            view.expected_start = self.expected_start(job).map(Time::secs_f64);
        }
        Some(view)
    }

    /// Jobs that are not over, ascending.
    pub fn jobs(&self, filter: &JobFilter) -> Vec<JobView> {
        let (first, last) = filter.numbers.unwrap_or((0, u32::MAX));
        let from = filter.after.map_or(0, |after| after.saturating_add(1)).max(first);
        if from > last {
            return Vec::new();
        }
        let jobs = self.desk.jobs.range(from..=last).filter(|(id, live)| {
            filter.tenant.as_ref().is_none_or(|tenant| *tenant == live.row.tenant)
                && filter.user.as_ref().is_none_or(|user| *user == live.row.user)
                && (filter.states.is_empty() || filter.states.contains(&self.desk.state_of(**id)))
        });
        let page = jobs.take(filter.limit.clamp(1, PAGE_JOBS_MAX as usize));
        let mut known = Shortages::default();
        page.filter_map(|(id, _)| self.job_in_list(*id, &mut known)).collect()
    }

    /// Since when a job that is not over stands where it stands, in seconds since the epoch.
    pub fn job_since(&self, id: u32) -> Option<f64> {
        self.desk.state().job(JobId(id)).map(|job| job.phase_since.secs_f64())
    }

    /// Jobs that a job still waits for.
    pub fn job_needs(&self, id: u32) -> Vec<u32> {
        self.desk.state().needs(JobId(id)).iter().map(|after| after.job.0).collect()
    }

    /// The tenant of a job that is not over.
    pub fn job_tenant(&self, id: u32) -> Option<&str> {
        self.desk.jobs.get(&id).map(|live| live.row.tenant.as_str())
    }

    /// Number of jobs that are not over, by state.
    pub fn job_counts(&self) -> Vec<(JobState, u64)> {
        let state = self.desk.state();
        let queued = state.pending().len() as u64;
        let mut counts = [0; 3];
        for lease in state.leases() {
            counts[match state.job(lease.job).map(|job| job.phase) {
                Some(Phase::Starting(_)) => 0,
                Some(Phase::Running(_)) => 1,
                _ => 2,
            }] += 1;
        }
        let leased: u64 = counts.iter().sum();
        vec![
            (JobState::Held, (self.desk.jobs.len() as u64).saturating_sub(queued + leased)),
            (JobState::Queued, queued),
            (JobState::Starting, counts[0]),
            (JobState::Running, counts[1]),
            (JobState::Stopping, counts[2]),
        ]
    }

    fn job_in_list(&self, id: u32, known: &mut Shortages) -> Option<JobView> {
        let live = self.desk.jobs.get(&id)?;
        let state = self.desk.state();
        let job = state.job(JobId(id))?;
        let mut view = in_list(&live.row);
        view.state = self.desk.state_of(id);
        let lease = job.lease().and_then(|lease| state.lease(lease));
        view.expected_end = lease
            .filter(|lease| lease.expected_end != Time::NEVER)
            .map(|lease| lease.expected_end.secs_f64());
        view.held_by = job.gates.first().map(held_by);
        view.reason = self.reason(id, job, known);
        Some(view)
    }

    /// Answers those who want to see jobs as they are after the batch.
    pub(super) fn answer_about_jobs(&mut self) {
        for (slot, id) in std::mem::take(&mut self.desk.draft.job_replies) {
            let view = match self.desk.draft.ended.get(&id) {
                Some(row) => Some(of_row(row)),
                None => self.job(id),
            };
            let view = view.expect("a job that is answered about is live or just ended");
            let answer = Answer::Job(Box::new(view));
            self.desk.effect(Effect::Reply(slot, Ok(answer)));
        }
        self.desk.answer_many();
        self.desk.draft.ended.clear();
    }

    /// A node.
    pub fn node(&self, name: &str) -> Option<NodeView> {
        let row = self.desk.node_row(name)?;
        Some(self.node_view(row))
    }

    /// All nodes, by name.
    pub fn nodes(&self) -> Vec<NodeView> {
        self.desk.node_rows().map(|row| self.node_view(row)).collect()
    }

    fn node_view(&self, row: &NodeRow) -> NodeView {
        let (id, machine) = (NodeId(row.id), &row.machine);
        let state = self.desk.state();
        let node = state.node(id);
        let free = state.capacity().node(id);
        let gpu_free = state.capacity().gpu_free(id).0;
        let status = self.driver.node(&self.desk, id);
        let jobs = node.leases.iter().filter_map(|lease| state.lease(*lease));
        NodeView {
            name: machine.name.clone(),
            health: self.desk.node_health(id, status.silent).to_owned(),
            reason: match self.kept_note(&machine.name, id) {
                note if status.reason.is_empty() => note,
                note if note.is_empty() => status.reason,
                note => format!("{}; {note}", status.reason),
            },
            kept_for: self.kept_now(id),
            connected: status.connected,
            // One that a cluster manager has needs no agent.
            outdated: row.token.is_some()
                && is_earlier(&machine.version, env!("CARGO_PKG_VERSION")),
            version: machine.version.clone(),
            silent_secs: status.silence.secs_f64(),
            cpus: f64::from(node.spec.cpu.0) / 1000.0,
            cpus_used: f64::from(node.spec.cpu.0 - free.cpu.0) / 1000.0,
            mem_mib: node.spec.mem.0,
            mem_mib_used: node.spec.mem.0 - free.mem.0,
            gpu_model: machine.gpu_model.clone(),
            gpu_mem_mib: machine.gpu_mem_mib,
            gpus: node.spec.gpus,
            gpus_used: f64::from(node.spec.gpus * 1000 - gpu_free) / 1000.0,
            gpu_use: status.gpu_use,
            images: machine
                .runtimes
                .iter()
                .map(|it| format!("{} {}", it.name, it.version))
                .collect(),
            images_unusable: machine.unusable_runtimes.clone(),
            suspends: node.spec.features.cover(Features::SUSPENDS),
            cannot_suspend: machine.cannot_suspend.clone(),
            jobs: jobs.map(|lease| lease.job.0).collect(),
        }
    }

    /// A tenant.
    pub fn tenant(&self, name: &str) -> Option<TenantView> {
        let tenant = self.desk.tenants.get(name)?;
        let through = self.desk.state().let_through(TenantId(tenant.row.id));
        let run = tenant.leased_gpu_milli;
        Some(TenantView {
            name: tenant.row.name.clone(),
            quota: tenant.row.quota.clone(),
            jobs: tenant.jobs,
            waiting: tenant.jobs.saturating_sub(tenant.leased),
            gpus: run as f64 / 1000.0,
            gpus_asked: through.saturating_sub(run) as f64 / 1000.0,
            budget_used: tenant.row.quota.budget_gpu_hours.map(|_| {
                let state = self.desk.state();
                let spent = state.tenant_account(TenantId(tenant.row.id)).spent_at(state.now());
                spent.secs_f64() / 3600.0
            }),
        })
    }

    /// All tenants, by name.
    pub fn tenants(&self) -> Vec<TenantView> {
        self.desk.tenants.iter().filter_map(|tenant| self.tenant(&tenant.row.name)).collect()
    }

    /// All tokens, by number.
    pub fn tokens(&self) -> Vec<TokenView> {
        self.desk.tokens.iter().map(token_view).collect()
    }

    /// Whether some node runs jobs as a person, so that the person's folders are theirs.
    pub fn runs_as(&self, person: &Person) -> bool {
        let own = person.uid.map(ability_of);
        self.desk.node_rows().any(|row| {
            row.machine.can(ABILITY) || own.as_ref().is_some_and(|own| row.machine.can(own))
        })
    }

    /// Who shows this secret, and whether the token only enrols an agent.
    pub fn authenticate(&self, secret: &str) -> Option<(Principal, bool)> {
        self.desk.tokens.authenticate(secret)
    }

    /// The policy that decides, as TOML.
    pub fn policy(&self) -> &str {
        &self.desk.policy
    }

    /// The rule that a policy broke last, unless a person has chosen another one since.
    pub fn policy_fault(&self) -> Option<&PolicyFault> {
        self.desk.state().policy_fault()
    }

    /// The figures of the cluster since this daemon started, as a simulation gives them.
    pub fn summary(&self) -> Summary {
        self.desk.engine.watch().1.summary(self.desk.state())
    }

    /// Name of this cluster.
    pub fn cluster(&self) -> &str {
        &self.desk.cluster
    }

    /// Number of agents that are connected.
    pub fn connected_agents(&self) -> usize {
        self.driver.connected()
    }

    /// Counters and histograms.
    pub fn figures(&self) -> &Figures {
        &self.desk.figures
    }
}

/// Whether a version, as in `1.2.3`, comes before another. One that nobody knows does.
fn is_earlier(version: &str, than: &str) -> bool {
    let numbers = |text: &str| -> Vec<u64> {
        let plain = text.split(['-', '+']).next().unwrap_or_default();
        plain.split('.').map(|part| part.parse().unwrap_or(0)).collect()
    };
    version.is_empty() || numbers(version) < numbers(than)
}

/// What keeps a job from the policy, for people.
fn held_by(gate: Gate) -> HeldBy {
    match gate {
        Gate::Person => HeldBy::Person,
        Gate::After => HeldBy::Jobs,
        Gate::Pause => HeldBy::Start,
        Gate::NoNode => HeldBy::Nodes,
        Gate::Array => HeldBy::Array,
        Gate::Quota => HeldBy::Quota,
        Gate::Budget => HeldBy::Budget,
        Gate::Window => HeldBy::Reservation,
        Gate::Engine => HeldBy::Engine,
    }
}

/// A job as its row tells it.
pub fn of_row(row: &JobRow) -> JobView {
    JobView { request: row.request.clone(), starts: starts_of(row), ..in_list(row) }
}

fn starts_of(row: &JobRow) -> Vec<StartView> {
    let secs = |micros: u64| Time(micros).secs_f64();
    let view = |start: &Start| StartView {
        restart: start.restart,
        started: secs(start.from),
        ended: start.to.map(secs),
        end: start.end,
        exit_code: start.exit_code,
        failed_rank: start.failed_rank,
        failed_node: failed_node(start.failed_rank, &start.nodes, &start.tasks),
        nodes: start.nodes.clone(),
    };
    row.facts.starts.iter().map(view).collect()
}

fn failed_node(rank: Option<u32>, nodes: &[String], tasks: &[u32]) -> Option<String> {
    starts::node_of(nodes, tasks, rank?).map(str::to_owned)
}

/// A job as its row tells it, without the environment.
pub fn in_list(row: &JobRow) -> JobView {
    let secs = |micros: u64| Time(micros).secs_f64();
    JobView {
        id: row.id,
        version: row.version,
        name: super::request::name_of(&row.request),
        tenant: row.tenant.clone(),
        user: row.user.clone(),
        state: row.state,
        held_by: None,
        reason: if row.ended.is_some() { row.facts.reason.clone() } else { String::new() },
        submitted: secs(row.submitted),
        started: row.facts.started.map(secs),
        ended: row.ended.map(secs),
        expected_start: None,
        expected_end: None,
        exit_code: row.facts.exit_code,
        nodes: row.facts.nodes.clone(),
        restarts: row.facts.restarts,
        steps_done: row.facts.steps_done,
        energy_kwh: stays::energy_kwh(&row.facts.stays),
        array_index: row.facts.array_index,
        array_of: row.array_of,
        failed_rank: row.facts.failed_rank,
        failed_node: failed_node(row.facts.failed_rank, &row.facts.nodes, &row.facts.tasks),
        starts: Vec::new(),
        engine_id: row.origin.found().map(|by| by.split('~').next().unwrap_or(by).to_owned()),
        request: row.request.without_env(),
    }
}

fn token_view(row: &TokenRow) -> TokenView {
    let secs = |micros: u64| Time(micros).secs_f64();
    TokenView {
        id: row.id,
        role: row.role,
        tenant: row.tenant.clone(),
        name: row.name.clone(),
        created: secs(row.created),
        revoked: row.revoked.map(secs),
        one_time: row.one_time,
        person: row.person.as_ref().map(|person| person.name.clone()),
        local: is_local(row),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(is_earlier("", "0.1.0") && is_earlier("0.9.0", "0.10.0"));
        assert!(is_earlier("0.1.0", "0.1.1") && is_earlier("0.1.9-rc.1", "0.2.0"));
        assert!(!is_earlier("0.1.0", "0.1.0") && !is_earlier("1.0.0", "0.9.9"));
    }
}
