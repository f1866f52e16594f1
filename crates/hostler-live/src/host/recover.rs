//! How a host begins: from an empty store, or from what the one before left.
//!
//! The state is the snapshot and the records after it, folded without asking the policy. Stays
//! that have no outcome wait for the driver to say what became of them.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use hostler_core::ability::Abilities;
use hostler_core::engine::Engine;
use hostler_core::event::Event;
use hostler_core::id::{JobId, LeaseId};
use hostler_core::metrics::Metrics;
use hostler_core::policy::{ESTIMATE_SETTING, Policy};
use hostler_core::predict::EstimateSource;
use hostler_core::record::Record;
use hostler_core::replay::Replay;
use hostler_core::state::Snapshot;
use hostler_core::units::{Span, Time};

use super::desk::Draft;
use super::estimates::Experience;
use super::follow::Gathered;
use super::jobs::LiveJob;
use super::keys::Keys;
use super::tenants::Tenants;
use super::tokens::Tokens;
use super::{DEFAULT_TENANT, Desk, Figures, Host, HostError, PolicyBuilder, Settings, clock};
use crate::driver::{AgentDriver, Driver};
use crate::limits::{FIGURES_KEPT, RESTORED_JOBS_GAP, RESTORED_LEASES_GAP};
use crate::store::{Loaded, Row, Store, StoreError, TenantQuota};

/// Records that are read at a time.
const RECORDS_AT_ONCE: usize = 1_000;

/// What it may mean that something cannot be read.
const OTHER_VERSION: &str = "another version of this program may have written it";

/// Those who look on at the engine of a host.
type Watchers = (Gathered, Metrics);

impl Host {
    /// Opens a host of agents on a store and recovers what is in it.
    pub fn open(
        store: Box<dyn Store>,
        builder: PolicyBuilder,
        settings: Settings,
        now: Time,
    ) -> Result<Host, HostError> {
        let driver = Box::new(AgentDriver::new(settings.clone()));
        Host::open_with(driver, store, builder, settings, Experience::default(), now)
    }

    /// The same with any driver, and with what was learnt elsewhere.
    pub fn open_with(
        mut driver: Box<dyn Driver>,
        store: Box<dyn Store>,
        builder: PolicyBuilder,
        settings: Settings,
        experience: Experience,
        now: Time,
    ) -> Result<Host, HostError> {
        let mut desk = Desk::open(store, builder, settings, experience, now)?;
        desk.check_engine(&*driver)?;
        driver.restore(&mut desk);
        desk.drain();
        desk.predict_anew();
        // Moves, power and divisions have no way to a driver yet.
        let can = driver.abilities();
        let abilities = Abilities { resize: false, power: false, repartition: false, ..can };
        if desk.state().abilities() != abilities {
            desk.fact(Event::AbilitiesChanged { abilities });
        }
        let clock_next = desk.now;
        let not_before = Time::ZERO;
        let mut host = Host { desk, driver, clock_next, not_before, failed: None };
        if host.desk.is_fresh() {
            host.begin_fresh()?;
        }
        Ok(host)
    }

    /// What every log begins with.
    fn begin_fresh(&mut self) -> Result<(), HostError> {
        let desk = &mut self.desk;
        let policy = desk.policy.clone();
        desk.set_tenant(DEFAULT_TENANT, TenantQuota::default())?;
        desk.fact(Event::PolicyChanged { settings: policy.as_str().into() });
        desk.draft.rows.push(Row::Policy(policy));
        self.settle();
        self.desk.commit(false)
    }
}

impl Desk {
    /// Refuses jobs that another engine is to run.
    fn check_engine(&self, driver: &dyn Driver) -> Result<(), HostError> {
        let others = self.jobs.values().filter(|live| !driver.runs(&live.row.origin));
        let Some(first) = others.clone().map(|live| live.row.id).min() else { return Ok(()) };
        let fault = format!(
            "this store has {} jobs of another engine, job {first} first; start the daemon with \
             that engine, or with a folder of its own (`--data`)",
            others.count()
        );
        Err(HostError::Invalid { field: "engine", fault })
    }

    fn open(
        mut store: Box<dyn Store>,
        builder: PolicyBuilder,
        mut settings: Settings,
        experience: Experience,
        now: Time,
    ) -> Result<Desk, HostError> {
        let loaded = store.load()?;
        let builder = guarded(builder);
        settings.policy = for_real(&builder, settings.policy);
        settings.fallback = for_real(&builder, settings.fallback);
        usable(&builder, &experience, &settings.fallback)?;
        let policy = loaded.policy.clone().unwrap_or_else(|| settings.policy.clone());
        // One that was good once may want what is gone: a model of run times, or itself.
        let gone = match usable(&builder, &experience, &policy) {
            Err(fault) if loaded.policy.is_some() => Some(fault),
            checked => checked.map(|()| None)?,
        };
        let in_use = if gone.is_some() { &settings.fallback } else { &policy };
        let (engine, log_bytes) = fold(&mut *store, &builder, in_use, &loaded)?;
        let snapshot_bytes = loaded.snapshot.as_ref().map_or(0, |(_, text)| text.len());
        let now = now.max(engine.state().now());
        let keys = Keys::restore(loaded.keys, settings.keys_max, now);
        let nodes = loaded.nodes.into_iter().map(|row| (row.name.clone(), row));
        let mut desk = Desk {
            next_job: engine.state().next_job().0.max(1),
            engine,
            store,
            builder,
            settings,
            cluster: loaded.cluster,
            policy,
            estimates: None,
            experience,
            journal_seen: 0,
            now,
            jobs: BTreeMap::new(),
            found: BTreeMap::new(),
            tenants: Tenants::default(),
            tokens: Tokens::restore(loaded.tokens),
            groups: loaded.groups.into_iter().collect(),
            keys,
            nodes: nodes.collect(),
            reservations: loaded.reservations,
            fence: loaded.fence.map(Span),
            store_checked: now,
            solving: None,
            questions: 0,
            ended: Vec::new(),
            draft: Draft::default(),
            last_record: loaded.last_record,
            last_change: (loaded.last_record + 1) << 20,
            log_bytes,
            snapshot_bytes,
            figures: Figures::default(),
            stopwatch: clock::standing(),
        };
        loaded.tenants.into_iter().for_each(|row| desk.tenants.put(row));
        desk.restore_jobs(loaded.jobs)?;
        if loaded.restored {
            desk.leave_gap();
        }
        if let Some(fault) = gone {
            let fault = format!("{fault} (`{}`)", desk.policy.replace('\n', " ").trim());
            tracing::error!(fault, "the policy cannot be used any more");
            desk.leave_policy(fault);
        }
        Ok(desk)
    }

    /// Leaves out numbers of jobs and leases: those after a backup were given out before the store
    /// was lost, and files, agents and people know them.
    fn leave_gap(&mut self) {
        let (job, lease) = (self.next_job, self.state().next_lease().0);
        self.skip_jobs(JobId(job.saturating_add(RESTORED_JOBS_GAP)));
        let next = LeaseId(lease.saturating_add(RESTORED_LEASES_GAP));
        self.fact(Event::LeasesSkipped { next });
        self.draft.rows.push(Row::GapLeft);
        tracing::warn!(next_job = self.next_job, "restored from a backup; numbers are left out");
    }

    fn restore_jobs(&mut self, rows: Vec<crate::store::JobRow>) -> Result<(), HostError> {
        let in_log: BTreeSet<u32> = self.engine.state().jobs().map(|job| job.id.0).collect();
        let in_rows: BTreeSet<u32> = rows.iter().map(|row| row.id).collect();
        if let Some(id) = in_log.symmetric_difference(&in_rows).next() {
            return Err(damaged(format!(
                "job {id} is in the log or in the table, but not in both"
            )));
        }
        for row in rows {
            let job = self.engine.state().job(JobId(row.id));
            let job = job.expect("compared above");
            if self.tenants.get(&row.tenant).is_none() {
                return Err(damaged(format!("job {} is of no known tenant", row.id)));
            }
            self.tenants.added(&row.tenant);
            if job.lease().is_some() {
                self.tenants.leased(&row.tenant, job.spec.gpu_milli());
            }
            if let Some(by) = row.origin.found() {
                self.found.insert(by.to_owned(), JobId(row.id));
            }
            self.jobs.insert(row.id, LiveJob::new(row));
        }
        Ok(())
    }
}

/// A builder whose policies do not panic while they are made or tell of themselves.
fn guarded(builder: PolicyBuilder) -> PolicyBuilder {
    std::sync::Arc::new(move |text: &str| {
        let made = catch_unwind(AssertUnwindSafe(|| {
            let policy = builder(text)?;
            let _ = (policy.cadence(), policy.estimates());
            Ok(policy)
        }));
        made.unwrap_or_else(|_| Err("the policy panicked when it was made".to_owned()))
    })
}

/// Settings as they hold where jobs run for real: a policy that goes by true run times only because
/// nobody named others goes by what people say. Others are left as they are, good or bad.
pub(super) fn for_real(builder: &PolicyBuilder, settings: String) -> String {
    let wants_truth =
        |text: &str| builder(text).is_ok_and(|policy| policy.estimates() == EstimateSource::Oracle);
    if !wants_truth(&settings) {
        return settings;
    }
    let Ok(mut document) = settings.parse::<toml::Table>() else { return settings };
    let table = match document.get_mut("policy") {
        Some(toml::Value::Table(table)) => table,
        Some(_) | None => &mut document,
    };
    if table.contains_key(ESTIMATE_SETTING) {
        return settings;
    }
    table.insert(ESTIMATE_SETTING.to_owned(), "user".into());
    let said = document.to_string();
    if builder(&said).is_ok() { said } else { settings }
}

/// Whether the daemon can do what a policy is told.
pub(super) fn usable(
    builder: &PolicyBuilder,
    experience: &Experience,
    settings: &str,
) -> Result<(), HostError> {
    let policy = builder(settings).map_err(|fault| HostError::Policy { fault })?;
    experience.check(policy.estimates()).map_err(|fault| HostError::Policy { fault })
}

/// The engine at the end of the log, and the bytes of log after its snapshot.
fn fold(
    store: &mut dyn Store,
    builder: &PolicyBuilder,
    policy: &str,
    loaded: &Loaded,
) -> Result<(Engine<Watchers>, usize), HostError> {
    let current = builder(policy).map_err(|fault| HostError::Policy { fault })?;
    let mut engine = Engine::new(current, Watchers::default());
    let mut last = 0;
    if let Some((number, text)) = &loaded.snapshot {
        let snapshot: Snapshot = serde_json::from_str(text)
            .map_err(|fault| damaged(format!("snapshot {number}: {fault}; {OTHER_VERSION}")))?;
        engine.restore(snapshot);
        // Who looks on from here must know of what runs: it may end in the records that follow.
        engine.watch_mut().1 = Metrics::joining(engine.state());
        last = *number;
    }
    let mut bytes = 0;
    let mut replay = Replay::new(engine, false);
    loop {
        let records = store.records(last, RECORDS_AT_ONCE)?;
        let Some((newest, _)) = records.last() else { break };
        let newest = *newest;
        for (number, text) in records {
            if number != last + 1 {
                return Err(damaged(format!("record {} is missing", last + 1)));
            }
            last = number;
            bytes += text.len();
            let record: Record = serde_json::from_str(&text)
                .map_err(|fault| damaged(format!("record {number}: {fault}; {OTHER_VERSION}")))?;
            let fed = replay.feed(&record);
            fed.map_err(|fault| damaged(format!("record {number} does not follow: {fault}")))?;
        }
        assert_eq!(last, newest, "records come in order");
    }
    if last != loaded.last_record {
        return Err(damaged(format!("record {} is missing", last + 1)));
    }
    let mut engine = replay.into_engine();
    let metrics = Metrics::joining(engine.state()).keeping(FIGURES_KEPT);
    *engine.watch_mut() = (Gathered::default(), metrics);
    let current: Box<dyn Policy> = builder(policy).map_err(|fault| HostError::Policy { fault })?;
    engine.replace_policy(current);
    let keep = std::sync::Arc::clone(builder);
    let engine = engine.with_builder(Box::new(move |text| {
        keep(text).expect("settings were checked before they entered the log")
    }));
    Ok((engine, bytes))
}

fn damaged(fault: String) -> HostError {
    HostError::Store(StoreError::Damaged { store: "log".to_owned(), fault })
}
