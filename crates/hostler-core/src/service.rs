//! What the last jobs needed that are over, for policies that go by how long jobs like them last.
//!
//! A window over ends, so that it follows a cluster whose work changes and never grows. What it
//! teaches changes in strides and not with each end: whoever ranks by it looks at all jobs anew
//! then.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::id::{GroupId, TenantId};
use crate::limits::{SERVICE_STRIDE_MAX, SERVICES_LEARNT_MAX};

/// What a job received that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Whose it was.
    pub tenant: TenantId,
    /// What it was like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupId>,
    /// GPU time over all its stays (device-microseconds).
    pub gpu_time: u64,
}

/// What the last jobs received that came to an end of their own, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Services {
    /// Ends that were ever taken in.
    count: u64,
    /// The last of them: those that count, and those that came since.
    last: VecDeque<Service>,
}

impl Services {
    /// Takes an end in.
    pub(crate) fn note(&mut self, service: Service) {
        self.count += 1;
        self.last.push_back(service);
        let kept = SERVICES_LEARNT_MAX + (self.count - self.learnt_count()) as usize;
        while self.last.len() > kept {
            self.last.pop_front();
        }
    }

    /// Ends that had been taken in when what is learnt changed last: while this is the same, so is
    /// [`Services::learnt`].
    pub fn learnt_count(&self) -> u64 {
        // Steps of an eighth, and of no more than a stride.
        let eighth = self.count.checked_ilog2().unwrap_or(0).saturating_sub(3);
        let stride = (1 << eighth).min(SERVICE_STRIDE_MAX);
        self.count - self.count % stride
    }

    /// What is learnt: the services of the last jobs, but for a few that ended just now.
    pub fn learnt(&self) -> impl Iterator<Item = &Service> {
        let since = (self.count - self.learnt_count()) as usize;
        let learnt = self.last.len() - since;
        self.last.range(learnt.saturating_sub(SERVICES_LEARNT_MAX)..learnt)
    }

    /// Whether nothing ever ended.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Panics when the window is not as long as follows from the ends that were taken in.
    pub(crate) fn audit(&self) {
        let kept = SERVICES_LEARNT_MAX as u64 + self.count - self.learnt_count();
        assert!(self.last.len() as u64 <= self.count, "more services are known than jobs ended");
        assert_eq!(self.last.len() as u64, kept.min(self.count), "the window of services is off");
        assert!(self.last.iter().all(|service| service.gpu_time > 0), "a service is empty");
    }
}

#[cfg(test)]
mod tests;
