//! Accounts of tenants inside the state: what they use, when a budget is used up or begins anew,
//! and how far they are from what is due to them.

use super::{Change, ClusterState};
use crate::account::{TenantAccount, WEIGHINGS_PER_HALF_LIFE, level};
use crate::gate::Gate;
use crate::id::{JobId, TenantId};
use crate::placement::Placement;
use crate::units::{Span, Time};

impl ClusterState {
    /// What a tenant used; nothing of one that there is not.
    pub fn tenant_account(&self, tenant: TenantId) -> TenantAccount {
        self.accounts.get(tenant.index()).copied().unwrap_or_default()
    }

    /// When the past was last weighed.
    pub fn weighed_at(&self) -> Option<Time> {
        self.weighed_at
    }

    /// The next time at which a budget is used up or begins anew.
    pub(crate) fn next_budget_change(&self) -> Option<Time> {
        self.budget_changes.first().map(|(at, _)| *at)
    }

    /// A tenant holds so many more thousandths of GPUs than before, or fewer.
    pub(super) fn charge(&mut self, job: JobId, placement: &Placement, begins: bool) {
        let milli: u64 = placement.parts.iter().map(|part| u64::from(self.gpu_of(part).0)).sum();
        if milli == 0 {
            return;
        }
        let tenant = self.job(job).expect("a lease belongs to a job").spec.tenant;
        self.begin_period(tenant);
        let account = self.tenant_account_mut(tenant);
        account.held = if begins { account.held + milli } else { account.held - milli };
        self.plan_budget(tenant);
    }

    /// A tenant is there, or its budget may be another. What it spent in the period that goes on
    /// still counts, unless it had no budget.
    pub(super) fn budget_changed(&mut self, tenant: TenantId, had_budget: bool) {
        let now = self.now;
        let account = self.tenant_account_mut(tenant);
        account.settle(now);
        if !had_budget {
            (account.period_from, account.period_base) = (now, account.used);
        }
        self.look_at_budget(tenant);
    }

    /// Looks at budgets for which something is due by now; whether there were any.
    pub(super) fn pass_budgets(&mut self) -> bool {
        let mut any = false;
        while let Some((_, tenant)) = self.budget_changes.first().filter(|(at, _)| *at <= self.now)
        {
            let tenant = *tenant;
            self.budget_changes.pop_first();
            self.look_at_budget(tenant);
            any = true;
        }
        any
    }

    /// Whether a tenant has used up its budget of this period.
    pub fn is_spent(&self, tenant: TenantId) -> bool {
        let budget = self.tenants.get(tenant.index()).and_then(|tenant| tenant.budget);
        let account = self.tenant_account(tenant);
        budget.is_some_and(|budget| {
            // A period in which it held nothing may be over without anybody having looked.
            let over = self.now.since(account.period_from) >= budget.every && account.held == 0;
            let spent = if over { Span::ZERO } else { account.spent_at(self.now) };
            spent >= budget.gpu_time
        })
    }

    /// Begins a new period if it is time, and lets jobs of the tenant through or not.
    fn look_at_budget(&mut self, tenant: TenantId) {
        self.note_change();
        self.begin_period(tenant);
        match self.is_spent(tenant) {
            true => {
                let of_tenant = |id: &JobId| {
                    let job = self.job(*id).expect("a waiting job is not over");
                    job.spec.tenant == tenant && job.spec.gpu_milli() > 0
                };
                let waiting: Vec<JobId> = self.pending.iter().copied().filter(of_tenant).collect();
                waiting.into_iter().for_each(|id| self.hold_for_budget(id));
            }
            false => {
                for id in self.take_unpaid(tenant) {
                    self.open_gate(id, Gate::Budget);
                }
            }
        }
        self.plan_budget(tenant);
    }

    /// Settles an account, in the period that goes on now.
    fn begin_period(&mut self, tenant: TenantId) {
        let now = self.now;
        let budget = self.tenants.get(tenant.index()).and_then(|tenant| tenant.budget);
        let account = self.tenant_account_mut(tenant);
        if let Some(budget) = budget {
            let every = budget.every.0.max(1);
            let periods = now.since(account.period_from).0 / every;
            if periods > 0 {
                account.period_from = account.period_from + Span(periods * every);
                account.period_base = account.used_at(account.period_from);
            }
        }
        account.settle(now);
    }

    /// Notes when to look at the budget of a tenant next: while it holds nothing and nobody waits,
    /// never.
    pub(super) fn plan_budget(&mut self, tenant: TenantId) {
        let account = self.tenant_account(tenant);
        let budget = self.tenants.get(tenant.index()).and_then(|tenant| tenant.budget);
        let matters = account.held > 0 || self.has_unpaid(tenant);
        let next = budget.filter(|_| matters).and_then(|budget| {
            let anew = Time(account.period_from.0.saturating_add(budget.every.0.max(1)));
            let spent = account.exhausted_at(&budget).filter(|at| *at > self.now);
            [Some(anew), spent].into_iter().flatten().min()
        });
        self.budget_changes.retain(|(_, known)| *known != tenant);
        self.budget_changes.extend(next.map(|at| (at, tenant)));
    }

    /// Puts accounts back that were saved. Where none were, they begin with what is held now.
    pub(super) fn restore_accounts(&mut self, accounts: Vec<TenantAccount>) {
        self.accounts = accounts;
        let (now, held) = (self.now, self.derive_held());
        let missing = held.into_iter().skip(self.accounts.len());
        let begun = missing.map(|held| TenantAccount {
            held,
            since: now,
            period_from: now,
            ..TenantAccount::default()
        });
        self.accounts.extend(begun);
        (0..self.tenants.len() as u32).for_each(|tenant| self.plan_budget(TenantId(tenant)));
    }

    /// Weighs the past of all tenants: what was used longer ago counts less. Jobs of those who are
    /// farther from their due than before, or nearer, have another rank.
    pub(super) fn weigh_past(&mut self, half_life: Span) {
        let step = (half_life.0 / WEIGHINGS_PER_HALF_LIFE).max(1);
        let last = self.weighed_at.unwrap_or(self.now);
        let steps = self.now.since(last).0 / step;
        self.weighed_at = Some(last + Span(steps * step));
        let now = self.now;
        (0..self.tenants.len() as u32).for_each(|tenant| {
            self.tenant_account_mut(TenantId(tenant)).weigh(now, steps);
        });
        let uses = self.accounts.iter().fold(0u64, |sum, one| sum.saturating_add(one.past.0));
        let weights: u64 = self.tenants.iter().map(|tenant| u64::from(tenant.weight)).sum();
        let mut moved = vec![false; self.tenants.len()];
        for (at, tenant) in self.tenants.iter().enumerate() {
            let account = &mut self.accounts[at];
            let next = level(account.past.0, uses, tenant.weight.into(), weights);
            moved[at] = std::mem::replace(&mut account.level, next) != next;
        }
        for id in &self.pending {
            let job = self.jobs.get(id.0).expect("a waiting job is not over");
            if moved[job.spec.tenant.index()] {
                self.journal.push(Change::Queued(*id));
            }
        }
    }

    fn tenant_account_mut(&mut self, tenant: TenantId) -> &mut TenantAccount {
        if self.accounts.len() <= tenant.index() {
            self.accounts.resize_with(tenant.index() + 1, TenantAccount::default);
        }
        &mut self.accounts[tenant.index()]
    }

    /// Thousandths of GPUs that each tenant holds, as it follows from the leases.
    pub(super) fn derive_held(&self) -> Vec<u64> {
        let mut held = vec![0; self.tenants.len()];
        for lease in self.leases.iter() {
            let job = self.job(lease.job).expect("a lease belongs to a job");
            let milli = lease.placement.parts.iter().map(|part| u64::from(self.gpu_of(part).0));
            held[job.spec.tenant.index()] += milli.sum::<u64>();
        }
        held
    }
}
