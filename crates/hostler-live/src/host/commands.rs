//! Commands other than those about jobs: nodes, policy, tenants, tokens and output.

use hostler_core::cluster::Tenant;
use hostler_core::event::Event;
use hostler_core::id::{LeaseId, NodeId, TenantId};

use super::jobs::{require, unknown_job};
use super::recover::{for_real, usable};
use super::request::{check_name, invalid};
use super::tokens::{is_local, local_hash};
use super::{Answer, Change, Changed, Command, Desk, Effect, Host, HostError, Principal};
use crate::driver::{OutputRead, StreamOpen};
use crate::limits::{BUDGET_DAYS_MAX, BUDGET_HOURS_MAX, POLICY_BYTES_MAX, TOKENS_MAX};
use crate::person::{Person, is_account_name};
use crate::reservation::DrainRequest;
use crate::store::{JobRow, NodeRow, Role, Row, TenantQuota, TenantRow, TokenRow, starts};
use crate::stream::StreamRequest;

impl Host {
    /// Does what somebody wants, or says why not and changes nothing.
    pub(super) fn command(
        &mut self,
        slot: u64,
        by: &Principal,
        command: Command,
    ) -> Result<(), HostError> {
        let answer = match command {
            Command::Submit { request, key, tenant } => {
                if let Some(instead) = self.driver.takes_no_jobs() {
                    return Err(HostError::TakesNoJobs { instead });
                }
                return self.desk.submit(slot, by, *request, key, tenant);
            }
            Command::Cancel { job, version } => {
                self.desk.cancel_job(by, job, version)?;
                self.desk.draft.job_replies.push((slot, job));
                return Ok(());
            }
            Command::Hold { job, held, version } => {
                self.desk.hold_job(by, job, held, version)?;
                self.desk.draft.job_replies.push((slot, job));
                return Ok(());
            }
            Command::ChangeMany { action, jobs } => {
                return self.desk.change_many(slot, by, action, &jobs);
            }
            Command::ReadOutput { job, rank, stream, offset, start } => {
                let read = OutputRead {
                    slot,
                    lease: LeaseId(0),
                    node: String::new(),
                    rank,
                    stream,
                    offset,
                };
                return self.read_output(by, job, start, read);
            }
            Command::OpenStream { job, number, request } => {
                self.open_stream(by, job, number, request)?
            }
            Command::Enrol { hash, node } => self.desk.enrol(by, hash, node)?,
            command => self.operate(by, command)?,
        };
        self.desk.draft.effects.push(Effect::Reply(slot, Ok(answer)));
        Ok(())
    }

    /// Does what only admins may want.
    fn operate(&mut self, by: &Principal, command: Command) -> Result<Answer, HostError> {
        require(by, &[Role::Admin])?;
        Ok(match command {
            Command::Reserve(request) => {
                Answer::Reservation(Box::new(self.desk.reserve(*request)?))
            }
            Command::Unreserve { name } => {
                self.desk.unreserve(&name)?;
                Answer::Done
            }
            Command::Drain { node, draining, how } => {
                self.drain_node(&node, draining, how)?;
                Answer::Node(Box::new(self.node(&node).expect("drained just now")))
            }
            Command::SetPolicy { settings } => self.desk.set_policy(settings)?,
            Command::SetTenant { name, quota } => {
                let is_new = self.desk.tenants.get(&name).is_none();
                self.desk.set_tenant(&name, quota)?;
                let tenant = Box::new(self.tenant(&name).expect("set just now"));
                Answer::Tenant { tenant, is_new }
            }
            Command::CreateToken { hash, role, tenant, name, one_time, person } => {
                check_name("name", &name)?;
                if role == Role::Agent && !one_time {
                    self.desk.nobody_speaks_for(&name)?;
                }
                if self.desk.tenants.get(&tenant).is_none() {
                    self.desk.set_tenant(&tenant, TenantQuota::default())?;
                }
                let token = NewRow { role, tenant, name, one_time, person };
                self.desk.add_token(|_| hash, token)?
            }
            Command::SetUser { name, role, tenant } => self.desk.set_user(name, role, tenant)?,
            Command::RemoveUser { name } => self.desk.remove_user(&name)?,
            Command::RevokeToken { token } => {
                let answer = self.desk.revoke(token)?;
                self.driver.revoked(&mut self.desk, token);
                answer
            }
            Command::Submit { .. }
            | Command::Cancel { .. }
            | Command::Hold { .. }
            | Command::ChangeMany { .. }
            | Command::ReadOutput { .. }
            | Command::OpenStream { .. }
            | Command::Enrol { .. } => unreachable!("everybody may ask for this"),
        })
    }

    fn drain_node(
        &mut self,
        name: &str,
        draining: bool,
        how: DrainRequest,
    ) -> Result<(), HostError> {
        let Some(row) = self.desk.node_row(name).cloned() else {
            return Err(HostError::Unknown { what: "node", name: name.to_owned() });
        };
        let id = NodeId(row.id);
        self.desk.note_drain(&row, draining, how)?;
        self.desk.put_node(NodeRow { draining, ..row });
        self.driver.drain(&mut self.desk, id);
        Ok(())
    }

    /// Has a piece of output read from the node that the task was on.
    fn read_output(
        &mut self,
        by: &Principal,
        id: u32,
        start: Option<u32>,
        read: OutputRead,
    ) -> Result<(), HostError> {
        let row = match self.desk.jobs.get(&id) {
            Some(live) => Some(live.row.clone()),
            None => self.desk.store.job(id)?,
        };
        let row = row.filter(|row| by.sees(&row.tenant)).ok_or_else(|| unknown_job(id))?;
        let (lease, node) =
            place_of(&row, start, read.rank).map_err(|fault| HostError::NoOutput { fault })?;
        self.driver.read_output(&mut self.desk, OutputRead { lease, node, ..read })
    }

    /// Whoever may end a job may also go inside.
    fn open_stream(
        &mut self,
        by: &Principal,
        job: u32,
        number: u64,
        request: StreamRequest,
    ) -> Result<Answer, HostError> {
        self.desk.changeable(by, job, None)?;
        let row = &self.desk.jobs.get(&job).expect("looked up just now").row;
        // Inside, one is whoever the job runs as.
        if let Some(person) = &row.facts.person
            && by.role != Role::Admin
            && by.person.as_ref().is_none_or(|own| own.name != person.name || own.uid != person.uid)
        {
            return Err(HostError::OtherPerson { job });
        }
        let facts = &self.desk.jobs.get(&job).expect("looked up just now").row.facts;
        let wrong = |fault: String| HostError::WrongState { job, fault };
        let lease = facts.lease.and_then(|lease| self.desk.state().lease(LeaseId(lease)));
        let lease = lease.filter(|lease| lease.started.is_some()).map(|lease| lease.id);
        let Some(lease) = lease else {
            let fault = "does not run yet; `hostler explain` says why it waits".to_owned();
            return Err(wrong(fault));
        };
        let rank = request.rank;
        let node = starts::node_of(&facts.nodes, &facts.tasks, rank);
        let node = node.ok_or_else(|| wrong(format!("has no task {rank}")))?.to_owned();
        let open = StreamOpen { number, lease, node, request };
        let token = self.driver.open_stream(&mut self.desk, open)?;
        Ok(Answer::Stream { token })
    }
}

impl Desk {
    fn set_policy(&mut self, settings: String) -> Result<Answer, HostError> {
        if settings.len() > POLICY_BYTES_MAX {
            let fault = format!("{} bytes; at most {POLICY_BYTES_MAX}", settings.len());
            return Err(invalid("policy", fault));
        }
        let settings = for_real(&self.builder, settings);
        self.check_policy(&settings)?;
        self.policy.clone_from(&settings);
        self.fact(Event::PolicyChanged { settings: settings.as_str().into() });
        self.draft.rows.push(Row::Policy(settings));
        let (number, at) = (self.next_change(), self.now.secs_f64());
        self.draft.effects.push(Effect::Changed(Change { number, at, what: Changed::Policy }));
        Ok(Answer::Done)
    }

    /// Whether the daemon can do what a policy is told.
    pub(super) fn check_policy(&self, settings: &str) -> Result<(), HostError> {
        usable(&self.builder, &self.experience, settings)
    }

    pub(super) fn set_tenant(
        &mut self,
        name: &str,
        mut quota: TenantQuota,
    ) -> Result<(), HostError> {
        check_name("tenant", name)?;
        if quota.weight == Some(0) {
            return Err(invalid("weight", "0; use at least 1".to_owned()));
        }
        if quota.budget_gpu_hours == Some(0) || quota.budget_gpu_hours > Some(BUDGET_HOURS_MAX) {
            let fault = format!("use 1 to {BUDGET_HOURS_MAX} hours");
            return Err(invalid("budget_gpu_hours", fault));
        }
        if quota.budget_days == Some(0) || quota.budget_days > Some(BUDGET_DAYS_MAX) {
            return Err(invalid("budget_days", format!("use 1 to {BUDGET_DAYS_MAX}")));
        }
        let known = self.tenants.get(name).map(|tenant| tenant.row.id);
        let before = self.tenants.get(name).and_then(|tenant| tenant.row.quota.weight);
        quota.weight = quota.weight.or(before);
        let (weight, gpus_max) = (quota.weight.unwrap_or(1), quota.gpus_max);
        let spec = Tenant { name: name.into(), weight, gpus_max, budget: quota.budget() };
        let id = known.unwrap_or(self.tenants.len() as u32);
        let tenant = TenantId(id);
        match known {
            Some(_) if *self.state().tenant(tenant) == spec => {}
            Some(_) => self.fact(Event::TenantChanged { tenant, spec }),
            None => self.fact(Event::TenantAdded { tenant, spec }),
        }
        let row = TenantRow { id, name: name.to_owned(), quota };
        self.draft.rows.push(Row::Tenant(row.clone()));
        self.tenants.put(row);
        Ok(())
    }

    fn add_token(
        &mut self,
        hash: impl FnOnce(u32) -> String,
        token: NewRow,
    ) -> Result<Answer, HostError> {
        if self.tokens.len() >= TOKENS_MAX {
            return Err(invalid("token", format!("there are {TOKENS_MAX} already")));
        }
        let id = self.tokens.next_id();
        let created = self.now.0;
        let (hash, revoked) = (hash(id), None);
        let NewRow { role, tenant, name, one_time, person } = token;
        let token = TokenRow { id, hash, role, tenant, name, created, revoked, one_time, person };
        self.draft.rows.push(Row::Token(token.clone()));
        self.tokens.put(token);
        Ok(Answer::Token(id))
    }

    fn revoke(&mut self, id: u32) -> Result<Answer, HostError> {
        let Some(token) = self.tokens.get(id) else {
            return Err(HostError::Unknown { what: "token", name: id.to_string() });
        };
        let lets_in = |token: &TokenRow| {
            token.role == Role::Admin && token.revoked.is_none() && !is_local(token)
        };
        if lets_in(token) && self.tokens.iter().filter(|token| lets_in(token)).count() == 1 {
            return Err(HostError::LastAdmin { token: id });
        }
        let mut token = token.clone();
        token.revoked.get_or_insert(self.now.0);
        self.draft.rows.push(Row::Token(token.clone()));
        self.tokens.put(token);
        Ok(Answer::Done)
    }

    /// Spends a one-time token for one that is bound to a node.
    fn enrol(&mut self, by: &Principal, hash: String, node: String) -> Result<Answer, HostError> {
        check_name("node", &node)?;
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if hash.len() != 64 || !hash.bytes().all(digit) || self.tokens.knows(&hash) {
            let fault = "use the SHA-256 of a fresh secret, in hexadecimal digits".to_owned();
            return Err(invalid("hash", fault));
        }
        let token = self.tokens.get(by.token).filter(|token| token.revoked.is_none());
        let Some(token) = token.filter(|token| token.one_time && token.role == Role::Agent) else {
            return Err(HostError::Forbidden { role: by.role });
        };
        if token.name != node {
            return Err(HostError::OtherNode { named: token.name.clone(), node });
        }
        self.nobody_speaks_for(&node)?;
        let mut spent = token.clone();
        spent.revoked = Some(self.now.0);
        self.draft.rows.push(Row::Token(spent.clone()));
        let tenant = spent.tenant.clone();
        self.tokens.put(spent);
        let (role, one_time, person) = (Role::Agent, false, None);
        self.add_token(|_| hash, NewRow { role, tenant, name: node, one_time, person })
    }

    /// Lets a user of the daemon's machine in; what was said of the same one before is over.
    fn set_user(&mut self, name: String, role: Role, tenant: String) -> Result<Answer, HostError> {
        if !is_account_name(&name) {
            let fault = format!("`{}` is no name of an account", name.escape_debug());
            return Err(invalid("name", fault));
        }
        if name == "nobody" {
            let fault = "jobs may run as `nobody`, and would be let in, too; name a person";
            return Err(invalid("name", fault.to_owned()));
        }
        if role == Role::Agent {
            return Err(invalid(
                "role",
                "agents have tokens; use user, viewer or admin".to_owned(),
            ));
        }
        if self.tenants.get(&tenant).is_none() {
            return Err(HostError::Unknown { what: "tenant", name: tenant });
        }
        if self.tokens.len() >= TOKENS_MAX {
            return Err(invalid("token", format!("there are {TOKENS_MAX} already")));
        }
        if self.tokens.of_user(&name).is_some() {
            self.remove_user(&name)?;
        }
        let hashed = name.clone();
        let token = NewRow { role, tenant, name, one_time: false, person: None };
        self.add_token(|id| local_hash(&hashed, id), token)
    }

    fn remove_user(&mut self, name: &str) -> Result<Answer, HostError> {
        let Some(id) = self.tokens.of_user(name).map(|token| token.id) else {
            return Err(HostError::Unknown { what: "user", name: name.to_owned() });
        };
        self.revoke(id)
    }

    /// Two machines with one name would end each other's jobs: a second one has to wait until a
    /// person says that the first is gone.
    fn nobody_speaks_for(&self, node: &str) -> Result<(), HostError> {
        match self.tokens.of_node(node) {
            Some(token) => Err(HostError::Enrolled { node: node.to_owned(), token: token.id }),
            None => Ok(()),
        }
    }
}

/// What is said of a token that is made.
struct NewRow {
    role: Role,
    tenant: String,
    name: String,
    one_time: bool,
    person: Option<Person>,
}

/// The lease of a start of a job, and the node that a task of it was on.
fn place_of(row: &JobRow, start: Option<u32>, rank: u32) -> Result<(LeaseId, String), String> {
    let facts = &row.facts;
    let earlier = start.filter(|start| *start != facts.restarts);
    let (lease, nodes, tasks) = match earlier {
        Some(start) => {
            let known = facts.starts.iter().find(|known| known.restart == start);
            let known = known.ok_or_else(|| {
                let number = u64::from(start) + 1;
                format!("nothing is known of start {number}; `hostler show {}` lists those", row.id)
            })?;
            (Some(known.lease), &known.nodes, &known.tasks)
        }
        None => (facts.lease, &facts.nodes, &facts.tasks),
    };
    let Some(lease) = lease else {
        return Err(match row.ended {
            Some(_) => "the job is over and never started; `hostler show` says why".to_owned(),
            None => "the job has not started yet".to_owned(),
        });
    };
    let node = starts::node_of(nodes, tasks, rank);
    let node = node.ok_or_else(|| format!("it has no task {rank}"))?;
    Ok((LeaseId(lease), node.to_owned()))
}
