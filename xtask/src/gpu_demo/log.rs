//! What the daemon's log tells of suspensions: how many there were and how long they took.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;

/// Times of the suspensions of some jobs, in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moves {
    /// From the order to leave until nothing of it was on the GPU.
    pub out: Vec<f64>,
    /// From the order to come back until it went on.
    pub back: Vec<f64>,
    /// From its start, or from when it went on, to the order to leave.
    pub slices: Vec<f64>,
}

/// A stay as far as it has come; microseconds of the log.
struct Stay {
    job: u64,
    resumes: bool,
    ordered: u64,
    started: u64,
    told: Option<u64>,
}

/// Suspensions of these jobs in an exported log.
pub fn moves(log: &str, jobs: &[u32]) -> Result<Moves> {
    let mut reader =
        Reader { jobs, moves: Moves::default(), stays: BTreeMap::new(), away: BTreeSet::new() };
    for line in log.lines() {
        let record: Value = serde_json::from_str(line)?;
        let at = record["at"].as_u64().context("a record without a time")?;
        for list in ["events", "decisions"] {
            for entry in record[list].as_array().into_iter().flatten() {
                reader.take(at, entry);
            }
        }
    }
    Ok(reader.moves)
}

struct Reader<'a> {
    jobs: &'a [u32],
    moves: Moves,
    /// By lease.
    stays: BTreeMap<u64, Stay>,
    /// Jobs that are suspended.
    away: BTreeSet<u64>,
}

impl Reader<'_> {
    fn take(&mut self, at: u64, entry: &Value) {
        let word = |name: &str| entry[name].as_str().unwrap_or_default();
        let Some(lease) = entry["lease"].as_u64() else { return };
        let kind = (word("event"), word("decision"));
        if kind == ("", "start") {
            return self.ordered(at, lease, entry["job"].as_u64().unwrap_or_default());
        }
        let Some(stay) = self.stays.get_mut(&lease) else { return };
        match kind {
            ("started", "") => {
                stay.started = at;
                if stay.resumes {
                    self.moves.back.push(secs(stay.ordered, at));
                }
            }
            ("", "stop") if word("how") == "suspend" => stay.told = Some(at),
            ("suspend-refused", "") => stay.told = None,
            ("stopped", "") if word("outcome") == "suspended" => {
                let told = stay.told.unwrap_or(at);
                self.moves.slices.push(secs(stay.started, told));
                self.moves.out.push(secs(told, at));
                self.away.insert(stay.job);
            }
            _ => {}
        }
    }

    fn ordered(&mut self, at: u64, lease: u64, job: u64) {
        if !self.jobs.iter().any(|wanted| u64::from(*wanted) == job) {
            return;
        }
        let resumes = self.away.remove(&job);
        self.stays.insert(lease, Stay { job, resumes, ordered: at, started: at, told: None });
    }
}

fn secs(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Job 7 runs, leaves for job 8 and comes back.
    const LOG: &str = r#"
        {"record":"input","at":1000000,"events":[{"event":"submitted","job":7}]}
        {"record":"output","at":1000000,"decisions":[{"decision":"start","lease":3,"job":7}]}
        {"record":"input","at":1500000,"events":[{"event":"started","lease":3}]}
        {"record":"output","at":9500000,"decisions":[{"decision":"stop","lease":3,"how":"suspend"}]}
        {"record":"input","at":18500000,"events":[
            {"event":"stopped","lease":3,"outcome":"suspended"}]}
        {"record":"output","at":18500000,"decisions":[{"decision":"start","lease":4,"job":8}]}
        {"record":"input","at":19000000,"events":[{"event":"started","lease":4}]}
        {"record":"input","at":30000000,"events":[
            {"event":"stopped","lease":4,"outcome":"finished"}]}
        {"record":"output","at":30000000,"decisions":[{"decision":"start","lease":5,"job":7}]}
        {"record":"input","at":35250000,"events":[{"event":"started","lease":5}]}
    "#;

    #[test]
    fn times_out_and_back_are_those_of_the_log() {
        // A line of the log is one record.
        let log = LOG.replace("[\n            ", "[");
        let log = log.trim();
        let wanted = Moves { out: vec![9.0], back: vec![5.25], slices: vec![8.0] };
        assert_eq!(moves(log, &[7]).unwrap(), wanted);
        assert_eq!(moves(log, &[8]).unwrap(), Moves::default());
    }
}
