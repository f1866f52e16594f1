//! Commands other than those about jobs: nodes, policy, tenants, tokens and output.

use hostler_core::cluster::Tenant;
use hostler_core::event::Event;
use hostler_core::id::{LeaseId, NodeId, TenantId};

use super::jobs::{require, unknown_job};
use super::recover::usable;
use super::request::{check_name, invalid};
use super::{Answer, Change, Changed, Command, Desk, Effect, Host, HostError, Principal};
use crate::driver::{OutputRead, StreamOpen};
use crate::limits::{POLICY_BYTES_MAX, TOKENS_MAX};
use crate::store::{JobFacts, NodeRow, Role, Row, TenantQuota, TenantRow, TokenRow};
use crate::stream::StreamRequest;
use crate::wire::Stream;

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
            Command::ReadOutput { job, rank, stream, offset } => {
                return self.read_output(slot, by, job, rank, stream, offset);
            }
            Command::OpenStream { job, number, request } => {
                self.open_stream(by, job, number, request)?
            }
            Command::Enrol { hash, node } => self.desk.enrol(by, hash, node)?,
            Command::Drain { node, draining } => {
                require(by, &[Role::Admin])?;
                self.drain_node(&node, draining)?;
                Answer::Node(Box::new(self.node(&node).expect("drained just now")))
            }
            Command::SetPolicy { settings } => {
                require(by, &[Role::Admin])?;
                self.desk.set_policy(settings)?
            }
            Command::SetTenant { name, quota } => {
                require(by, &[Role::Admin])?;
                let is_new = self.desk.tenants.get(&name).is_none();
                self.desk.set_tenant(&name, quota)?;
                let tenant = Box::new(self.tenant(&name).expect("set just now"));
                Answer::Tenant { tenant, is_new }
            }
            Command::CreateToken { hash, role, tenant, name, one_time } => {
                require(by, &[Role::Admin])?;
                check_name("name", &name)?;
                if role == Role::Agent && !one_time {
                    self.desk.nobody_speaks_for(&name)?;
                }
                if self.desk.tenants.get(&tenant).is_none() {
                    self.desk.set_tenant(&tenant, TenantQuota::default())?;
                }
                self.desk.add_token(hash, role, tenant, name, one_time)?
            }
            Command::RevokeToken { token } => {
                require(by, &[Role::Admin])?;
                let answer = self.desk.revoke(token)?;
                self.driver.revoked(&mut self.desk, token);
                answer
            }
        };
        self.desk.draft.effects.push(Effect::Reply(slot, Ok(answer)));
        Ok(())
    }

    fn drain_node(&mut self, name: &str, draining: bool) -> Result<(), HostError> {
        let Some(row) = self.desk.node_row(name).cloned() else {
            return Err(HostError::Unknown { what: "node", name: name.to_owned() });
        };
        let id = NodeId(row.id);
        self.desk.put_node(NodeRow { draining, ..row });
        self.driver.drain(&mut self.desk, id);
        Ok(())
    }

    fn read_output(
        &mut self,
        slot: u64,
        by: &Principal,
        id: u32,
        rank: u32,
        stream: Stream,
        offset: i64,
    ) -> Result<(), HostError> {
        let row = match self.desk.jobs.get(&id) {
            Some(live) => Some(live.row.clone()),
            None => self.desk.store.job(id)?,
        };
        let row = row.filter(|row| by.sees(&row.tenant)).ok_or_else(|| unknown_job(id))?;
        let Some(lease) = row.facts.lease else {
            let fault = match row.ended {
                Some(_) => "the job is over and never started; `hostler show` says why",
                None => "the job has not started yet",
            };
            return Err(HostError::NoOutput { fault: fault.to_owned() });
        };
        let node = node_of(&row.facts, rank)
            .ok_or_else(|| HostError::NoOutput { fault: format!("it has no task {rank}") })?;
        let read = OutputRead { slot, lease: LeaseId(lease), node, rank, stream, offset };
        self.driver.read_output(&mut self.desk, read)
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
        let facts = &self.desk.jobs.get(&job).expect("looked up just now").row.facts;
        let wrong = |fault: String| HostError::WrongState { job, fault };
        let lease = facts.lease.and_then(|lease| self.desk.state().lease(LeaseId(lease)));
        let lease = lease.filter(|lease| lease.started.is_some()).map(|lease| lease.id);
        let Some(lease) = lease else {
            let fault = "does not run yet; `hostler explain` says why it waits".to_owned();
            return Err(wrong(fault));
        };
        let rank = request.rank;
        let node = node_of(facts, rank).ok_or_else(|| wrong(format!("has no task {rank}")))?;
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
        let known = self.tenants.get(name).map(|tenant| tenant.row.id);
        let before = self.tenants.get(name).and_then(|tenant| tenant.row.quota.weight);
        quota.weight = quota.weight.or(before);
        let (weight, gpus_max) = (quota.weight.unwrap_or(1), quota.gpus_max);
        let spec = Tenant { name: name.into(), weight, gpus_max };
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
        hash: String,
        role: Role,
        tenant: String,
        name: String,
        one_time: bool,
    ) -> Result<Answer, HostError> {
        if self.tokens.len() >= TOKENS_MAX {
            return Err(invalid("token", format!("there are {TOKENS_MAX} already")));
        }
        let id = self.tokens.next_id();
        let created = self.now.0;
        let token = TokenRow { id, hash, role, tenant, name, created, revoked: None, one_time };
        self.draft.rows.push(Row::Token(token.clone()));
        self.tokens.put(token);
        Ok(Answer::Token(id))
    }

    fn revoke(&mut self, id: u32) -> Result<Answer, HostError> {
        let Some(token) = self.tokens.get(id) else {
            return Err(HostError::Unknown { what: "token", name: id.to_string() });
        };
        let lets_in = |token: &TokenRow| token.role == Role::Admin && token.revoked.is_none();
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
        self.add_token(hash, Role::Agent, tenant, node, false)
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

/// The node that a task ran on last: ranks are given in order of nodes.
fn node_of(facts: &JobFacts, rank: u32) -> Option<String> {
    let mut first = 0;
    let at = facts.tasks.iter().position(|tasks| {
        first += tasks;
        rank < first
    });
    facts.nodes.get(at?).cloned()
}
