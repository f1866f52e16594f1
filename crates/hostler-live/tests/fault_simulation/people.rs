//! Those who submit: they repeat what was not answered, with the same key.

use std::collections::BTreeMap;

use hostler_live::host::{Answer, Command, HostError, Principal};
use hostler_live::job::JobRequest;
use hostler_live::need::Need;
use hostler_live::reservation::{DrainRequest, ReservationRequest};
use hostler_live::selection::Selection;
use hostler_live::store::{Role, TenantQuota};

use super::network::Dice;

/// What somebody wants and has no answer to yet.
pub struct Wish {
    pub command: Command,
    /// Those without a key are not repeated.
    pub key: Option<u64>,
    pub asked_at: u64,
}

/// What people remember.
#[derive(Default)]
pub struct People {
    /// By slot.
    pub open: BTreeMap<u64, Wish>,
    /// Numbers that were acknowledged, by key.
    pub acknowledged: BTreeMap<u64, Vec<u32>>,
    pub cancelled: Vec<u32>,
    pub held: Vec<u32>,
    next_key: u64,
}

impl People {
    /// A new wish.
    pub fn wish(&mut self, dice: &mut Dice, nodes: usize) -> (Command, Option<u64>) {
        let known: Vec<u32> = self.acknowledged.values().flatten().copied().collect();
        let some = |dice: &mut Dice| known.get(dice.below(known.len() as u64) as usize).copied();
        match (dice.below(20), some(dice)) {
            (0, Some(job)) => (Command::Cancel { job, version: None }, None),
            (1, Some(job)) => {
                self.held.push(job);
                (Command::Hold { job, held: true, version: None }, None)
            }
            (2, _) => {
                let node = format!("m{}", dice.below(nodes as u64));
                let deadline_secs = dice.chance(300).then(|| dice.below(60));
                let how = DrainRequest { deadline_secs, ..DrainRequest::default() };
                (Command::Drain { node, draining: dice.chance(500), how }, None)
            }
            (3, _) => (Command::SetPolicy { settings: policy(dice) }, None),
            (4, _) => {
                let gpus_max = dice.chance(700).then(|| dice.between(1, 8) as u32);
                let quota = TenantQuota { gpus_max, ..TenantQuota::default() };
                (Command::SetTenant { name: "default".to_owned(), quota }, None)
            }
            (5, _) => {
                self.next_key += 1;
                let request = ReservationRequest {
                    name: format!("r{}", self.next_key),
                    nodes: vec![format!("m{}", dice.below(nodes as u64))],
                    secs: dice.between(1, 30),
                    stops_jobs: dice.chance(500),
                    ..ReservationRequest::default()
                };
                (Command::Reserve(Box::new(request)), None)
            }
            (_, after) => {
                self.next_key += 1;
                let request = Box::new(request(dice, after));
                let key = Some(format!("key {}", self.next_key));
                (Command::Submit { request, key, tenant: None }, Some(self.next_key))
            }
        }
    }

    /// An answer came.
    pub fn answered(&mut self, slot: u64, answer: Result<Answer, HostError>) {
        let Some(wish) = self.open.remove(&slot) else { return };
        match (answer, wish.key) {
            (Ok(Answer::Submitted { jobs, .. }), Some(key)) => {
                let before = self.acknowledged.insert(key, jobs.clone());
                assert!(before.is_none_or(|before| before == jobs), "key {key} made other jobs");
            }
            (Ok(_), _) => {
                if let Command::Cancel { job, .. } = wish.command {
                    self.cancelled.push(job);
                }
            }
            (Err(HostError::Stopped { .. } | HostError::Store(_)), _) => {
                panic!("the daemon answers although it is over")
            }
            (Err(_), _) => {}
        }
    }
}

/// Somebody who may do everything.
pub fn admin() -> Principal {
    let (user, tenant) = ("ada".to_owned(), "default".to_owned());
    Principal { token: 1, user, role: Role::Admin, tenant, person: None }
}

/// Some policy.
pub fn policy(dice: &mut Dice) -> String {
    let policies = [
        "kind = 'fifo'",
        "kind = 'fifo-backfill'\nestimate = 'user'",
        "kind = 'priority'\npreempt = true",
        "kind = 'sjf'\nestimate = 'median'",
        "kind = 'bounded-sjf'\nestimate = 'blend'",
        "kind = 'srtf'\nestimate = 'user'",
        "kind = 'sjf'\nestimate = 'user'\nfair_share_days = 0.001",
        "kind = 'max-min-fairness'\nround_secs = 5",
        "kind = 'finish-time-fairness'\nround_secs = 8",
        "kind = 'gittins'\nlimits_gpu_secs = [5, 20]\nends_min = 3\nquantum_gpu_secs = 4",
        "kind = 'themis'\nlease_secs = 5\nestimate = 'user'",
        "kind = 'gandiva'\nround_secs = 5\ngap_secs = 5",
    ];
    policies[dice.below(policies.len() as u64) as usize].to_owned()
}

fn request(dice: &mut Dice, after: Option<u32>) -> JobRequest {
    let tasks = if dice.chance(300) { dice.between(2, 4) as u32 } else { 1 };
    let gpus = [0.0, 0.5, 1.0, 1.0, 2.0][dice.below(5) as usize];
    JobRequest {
        command: vec!["work".to_owned()],
        gpus,
        cpus: 1.0,
        tasks,
        priority: dice.below(3) as i32,
        max_secs: dice.chance(100).then(|| dice.between(2, 20)),
        estimate_secs: dice.chance(500).then(|| dice.between(1, 30)),
        after: after.filter(|_| dice.chance(150)).map(need).into_iter().collect(),
        array: if dice.chance(100) { dice.between(2, 4) as u32 } else { 0 },
        grace_secs: Some(dice.below(3)),
        checkpoints: dice.chance(500),
        no_suspend: dice.chance(100),
        skew: dice.chance(100).then(|| dice.below(11) as f64 / 10.0),
        // So little is moved in a moment.
        gpu_mem_mib: if dice.chance(700) { 200 } else { 0 },
        ..JobRequest::default()
    }
}

/// That a job, or all of the array that begins with it, finishes well.
fn need(job: u32) -> Need {
    Need::finished(Selection::Job(job.into()))
}
