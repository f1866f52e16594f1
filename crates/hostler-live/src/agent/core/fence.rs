//! The fence: how long a machine that hears nothing may go on.
//!
//! The daemon starts a job elsewhere only after it has heard nothing for longer than the fence. So
//! by the fence, counted from the *sending* of the last beat that was answered, nothing may run any
//! more. Agents write this value to a file and shims read it: a dead agent does not lift the fence.

use serde::{Deserialize, Serialize};

/// Until when a machine is surely believed to be alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alive {
    /// When the last answered beat was sent, in milliseconds of the machine's boot clock.
    pub sent_ms: u64,
    /// Milliseconds after that at which nothing may run any more.
    pub fence_ms: u64,
}

impl Alive {
    /// When everything must have ended.
    pub fn end_ms(&self) -> u64 {
        self.sent_ms.saturating_add(self.fence_ms)
    }

    /// When jobs with this grace are asked to end, so that the force comes at the fence and not
    /// later. At most a quarter of the fence is given up for it.
    pub fn ask_ms(&self, grace_ms: u64) -> u64 {
        self.end_ms() - grace_ms.min(self.fence_ms / 4)
    }

    /// Whether nothing may be started or left running.
    pub fn is_over(&self, now_ms: u64) -> bool {
        now_ms >= self.end_ms()
    }
}
