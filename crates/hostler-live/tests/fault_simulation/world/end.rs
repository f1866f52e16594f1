//! Whether everything came to an end, and whether it was the right one.

use std::collections::BTreeSet;

use hostler_core::id::LeaseId;
use hostler_live::host::{JobFilter, Settings};
use hostler_live::job::JobState;
use hostler_live::store::{JobRow, Reader};

use super::{Node, World, open};

/// The end.
impl World {
    pub(super) fn is_drained(&self) -> bool {
        let held =
            |node: &Node| node.agent.as_ref().is_none_or(|agent| agent.held().next().is_some());
        self.people.open.is_empty()
            && self.truth.is_quiet()
            && self.host.as_ref().is_some_and(|host| host.state().job_count() == 0)
            && !self.nodes.iter().any(held)
    }

    pub(super) fn left(&self) -> String {
        let jobs = self.host.as_ref().map(|host| {
            let jobs = host.jobs(&JobFilter { limit: 100, ..JobFilter::default() });
            jobs.iter().map(|job| format!("{} {:?} {}", job.id, job.state, job.reason)).collect()
        });
        let jobs: Vec<String> = jobs.unwrap_or_default();
        let agent = |node: &Node| {
            let held: Vec<_> = node.agent.iter().flat_map(|agent| agent.held()).collect();
            format!("m{} {:?} {held:?}", node.number, node.session)
        };
        let agents: Vec<String> = self.nodes.iter().map(agent).collect();
        format!("jobs {jobs:?}, agents {agents:?}, {} wishes", self.people.open.len())
    }

    pub(super) fn look_back(&mut self) {
        let host = self.host.as_ref().expect("drained means that it lives");
        host.state().audit();
        assert_eq!(host.state().lease_count(), 0, "no job, no lease");
        let again = open(
            &self.disk,
            Settings::new("kind = \"fifo-backfill\"\nestimate = \"user\"\n"),
            self.now,
        );
        assert!(again.state() == host.state(), "memory and store differ");
        for tenant in host.tenants() {
            assert_eq!((tenant.jobs, tenant.gpus), (0, 0.0), "{tenant:?} uses something");
        }
        let mut store = self.disk.store();
        let mut promised = BTreeSet::new();
        for (key, jobs) in &self.people.acknowledged {
            for job in jobs {
                assert!(promised.insert(*job), "job {job} was promised twice, also to key {key}");
                let row = Reader::job(&mut store, *job).unwrap();
                let row = row.unwrap_or_else(|| panic!("job {job} was promised and is lost"));
                assert!(row.ended.is_some(), "job {job} is not over");
                self.judge(&row);
            }
        }
        let last = promised.last().copied().unwrap_or(0);
        assert_eq!(promised.len() as u32, last, "every job was promised to somebody");
    }

    /// Whether the end of a job is what really happened.
    fn judge(&self, row: &JobRow) {
        let lease = row.facts.lease.map(LeaseId);
        let own = lease.and_then(|lease| self.truth.own_exits.get(&lease));
        let own = own.map_or(&[][..], Vec::as_slice);
        let (id, code) = (row.id, row.facts.exit_code);
        match row.state {
            JobState::Finished => {
                assert_eq!(code, Some(0), "job {id}");
                let well = !own.is_empty() && own.iter().all(|code| *code == 0);
                assert!(well, "job {id} is said to have finished: {own:?}");
            }
            JobState::Failed => match code {
                Some(code) => {
                    assert!(code != 0 && own.contains(&code), "job {id}: {code} of {own:?}");
                }
                None => assert!(row.facts.reason.contains("start failed"), "job {id}: {row:?}"),
            },
            JobState::Cancelled => {
                let wanted = self.cancel_wishes.contains(&id);
                let needed = row.facts.reason.contains("did not finish well");
                assert!(wanted || needed, "nobody cancelled job {id}");
            }
            JobState::TimedOut => assert!(row.request.max_secs.is_some(), "job {id}"),
            other => panic!("job {id} is over as {other:?}"),
        }
    }
}
