//! Rounds: while jobs are submitted and run, a daemon, an agent or the shim of a job is killed
//! without warning, and what was killed is started again.
//!
//! HOSTLER_CRASH_ROUNDS says how many kills, HOSTLER_CRASH_SEED from where on seeds count. A seed
//! fixes what is done; when exactly things happen is up to the machine.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use crate::check;
use crate::harness::server::Server;
use crate::harness::{Cluster, processes};
use crate::work::{Chance, Submitter};

/// Kills in the life of one cluster: starting one costs more than many kills.
const KILLS_PER_CLUSTER: u64 = 50;

/// Jobs for each kill.
const JOBS_PER_KILL: usize = 3;

/// Kills of the one cluster on PostgreSQL.
const POSTGRESQL_KILLS: u64 = 30;

/// Longest time for the last jobs of a cluster to end.
const DRAIN: Duration = Duration::from_secs(180);

#[test]
fn kills_of_daemon_agent_and_shim_lose_and_double_nothing() {
    let number = |name: &str, usual: u64| match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => usual,
    };
    let rounds = number("HOSTLER_CRASH_ROUNDS", 200);
    let first = number("HOSTLER_CRASH_SEED", 1);
    let begun = Instant::now();
    let mut total = Tally::default();
    let mut left = rounds;
    for seed in first.. {
        if left == 0 {
            break;
        }
        let kills = left.min(KILLS_PER_CLUSTER);
        left -= kills;
        let done = catch_unwind(AssertUnwindSafe(|| live(&[], seed, kills)));
        match done {
            Ok(tally) => total.add(&tally),
            Err(panic) => {
                eprintln!(
                    "seed {seed} fails; again: HOSTLER_CRASH_SEED={seed} \
                     HOSTLER_CRASH_ROUNDS={kills} cargo test -p hostler --test crash kills"
                );
                resume_unwind(panic);
            }
        }
        eprintln!("after seed {seed}: {total} in {:.0} s", begun.elapsed().as_secs_f64());
    }
}

#[test]
fn kills_lose_nothing_on_postgresql_either() {
    let Some(server) = Server::start() else { return };
    let tally = live(&["--store", &server.address()], 1, POSTGRESQL_KILLS);
    eprintln!("on PostgreSQL: {tally}");
}

/// What happened in some rounds.
#[derive(Default)]
struct Tally {
    daemons: usize,
    agents: usize,
    shims: usize,
    jobs: usize,
    starts: usize,
}

impl Tally {
    fn add(&mut self, other: &Tally) {
        self.daemons += other.daemons;
        self.agents += other.agents;
        self.shims += other.shims;
        self.jobs += other.jobs;
        self.starts += other.starts;
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Tally { daemons, agents, shims, jobs, starts } = self;
        write!(f, "killed {daemons} daemons, {agents} agents, {shims} shims; ")?;
        write!(f, "{jobs} jobs, {starts} starts")
    }
}

/// The life of one cluster with so many kills.
fn live(options: &[&str], seed: u64, kills: u64) -> Tally {
    let mut cluster = Cluster::start(options, &["2xV100", "2xV100"]);
    let script = cluster.folder().join("job.sh");
    std::fs::write(&script, include_str!("job.sh")).unwrap();
    let most = JOBS_PER_KILL * usize::try_from(kills).unwrap();
    let paths = (script, cluster.notes());
    let submitter = Submitter::start(cluster.access(), seed, (most, 100), paths);
    let mut chance = Chance::new(seed ^ 0xdead);
    let mut tally = Tally::default();
    for _ in 0..kills {
        std::thread::sleep(chance.millis_below(500));
        kill_one(&mut cluster, &mut chance, &mut tally);
    }
    let jobs = submitter.finish();
    cluster.until_drained(DRAIN);
    tally.jobs = jobs.len();
    tally.starts = check::all_is_well(&cluster, &jobs);
    tally
}

/// Kills something and starts it again: mostly one thing, sometimes two at once, now and then
/// everything.
fn kill_one(cluster: &mut Cluster, chance: &mut Chance, tally: &mut Tally) {
    let (what, which) = (chance.below(20), usize::try_from(chance.below(1000)).unwrap());
    // Often nothing else happens meanwhile, sometimes much.
    let away = if chance.below(3) == 0 { chance.millis_below(400) } else { Duration::ZERO };
    let with_shim = chance.below(5) == 0;
    let mut shims = processes::shims(cluster.folder());
    let agents = match what {
        0..7 if !shims.is_empty() => Vec::new(),
        7..13 => vec![which % cluster.agents.len()],
        13 => (0..cluster.agents.len()).collect(),
        _ => Vec::new(),
    };
    let daemon = what >= 13 || (agents.is_empty() && shims.is_empty());
    if what != 13 && !shims.is_empty() {
        shims = vec![shims[which % shims.len()]];
        shims.truncate(usize::from(what < 7 || with_shim));
    }
    if daemon {
        cluster.kill_daemon();
    }
    agents.iter().for_each(|agent| cluster.kill_agent(*agent));
    shims.iter().for_each(|shim| processes::kill(*shim));
    tally.daemons += usize::from(daemon);
    tally.agents += agents.len();
    tally.shims += shims.len();
    std::thread::sleep(away);
    agents.into_iter().for_each(|agent| cluster.spawn_agent(agent));
    if daemon {
        cluster.spawn_daemon();
    }
}
