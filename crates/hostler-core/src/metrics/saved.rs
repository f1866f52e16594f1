//! GPUs that sharing saves: devices that jobs would hold if each share had one of its own, less
//! those that they hold.

use serde::{Deserialize, Serialize};

use crate::cluster::Share;
use crate::placement::Placement;

/// Shares by device. Devices that are held whole are only counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    holders: Vec<u32>,
}

/// Shares that began or ended, and devices that were saved thereby or are not any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) shares: u64,
    pub(super) saved: u64,
}

impl Shares {
    pub(super) fn began(&mut self, placement: &Placement) -> Moved {
        let mut moved = Moved::default();
        for slice in placement.parts.iter().flat_map(|part| &part.slices) {
            moved.shares += 1;
            if slice.share != Share::Whole {
                let at = slice.device.index();
                if self.holders.len() <= at {
                    self.holders.resize(at + 1, 0);
                }
                moved.saved += u64::from(self.holders[at] > 0);
                self.holders[at] += 1;
            }
        }
        moved
    }

    pub(super) fn ended(&mut self, placement: &Placement) -> Moved {
        let mut moved = Moved::default();
        for slice in placement.parts.iter().flat_map(|part| &part.slices) {
            moved.shares += 1;
            if slice.share != Share::Whole {
                let holders = &mut self.holders[slice.device.index()];
                *holders -= 1;
                moved.saved += u64::from(*holders > 0);
            }
        }
        moved
    }
}

/// What sharing of GPUs cost, as whoever knows real use tells: a simulator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contention {
    /// GPU time in which two jobs or more were on a device.
    pub shared_gpu_hours: f64,
    /// Part of it in which they would have used more than the device has.
    pub contended_share: f64,
    /// Stays that shared a device at some time.
    pub shared_stays: u64,
    /// Mean of their time over the time that they would have taken alone.
    pub slowdown_avg: f64,
    /// Nineteen in twenty of them were slowed down no more.
    pub slowdown_p95: f64,
    /// Devices that were shared and that were contended, on average over each hour from time zero.
    pub hourly: Vec<[f64; 2]>,
}
