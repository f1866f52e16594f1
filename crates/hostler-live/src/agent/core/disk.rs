//! What an agent must remember over its own death: which leases it ever took on.
//!
//! Behind a trait so that a simulation can crash it. How a lease ended is not kept here; the shim
//! writes that down beside the job.

use std::collections::BTreeMap;
use std::io;

use hostler_core::id::LeaseId;

/// The leases that an agent ever took on.
pub trait LeaseDisk {
    /// Every lease that was accepted and not forgotten, in order.
    fn held(&self) -> Vec<LeaseId>;

    /// Whether a lease is over for good: it must never be started, and nothing is reported.
    fn is_forgotten(&self, lease: LeaseId) -> bool;

    /// The highest lease that was ever written down.
    fn last(&self) -> Option<LeaseId>;

    /// Writes down that a lease is taken on. Safe only after [`LeaseDisk::sync`].
    fn accept(&mut self, lease: LeaseId) -> io::Result<()>;

    /// The shim that has the tasks of a lease, by the lease that it was started for.
    fn shim_of(&self, lease: LeaseId) -> LeaseId;

    /// Writes down that a lease goes on with the tasks of another, which is over. Both or neither.
    fn carry_on(&mut self, lease: LeaseId, of: LeaseId) -> io::Result<()>;

    /// Writes down that a lease is over, also one that never came.
    fn forget(&mut self, lease: LeaseId) -> io::Result<()>;

    /// Returns when everything before survives a loss of power.
    fn sync(&mut self) -> io::Result<()>;
}

/// A disk in memory, for tests and simulations; it can lose what was not synced.
#[derive(Clone, Debug, Default)]
pub struct MemoryDisk {
    /// True while held, false once forgotten.
    leases: BTreeMap<LeaseId, bool>,
    synced: BTreeMap<LeaseId, bool>,
    /// Shims of leases that go on with the tasks of others. They are gone with the machine.
    shims: BTreeMap<LeaseId, LeaseId>,
    /// Whether writes fail from now on.
    pub full: bool,
}

impl MemoryDisk {
    /// The machine lost power: what was not synced is gone.
    pub fn lose_power(&mut self) {
        self.leases = self.synced.clone();
    }

    fn write(&mut self, lease: LeaseId, held: bool) -> io::Result<()> {
        if self.full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.leases.insert(lease, held);
        Ok(())
    }
}

impl LeaseDisk for MemoryDisk {
    fn held(&self) -> Vec<LeaseId> {
        self.leases.iter().filter(|(_, held)| **held).map(|(lease, _)| *lease).collect()
    }

    fn is_forgotten(&self, lease: LeaseId) -> bool {
        self.leases.get(&lease) == Some(&false)
    }

    fn last(&self) -> Option<LeaseId> {
        self.leases.keys().next_back().copied()
    }

    fn accept(&mut self, lease: LeaseId) -> io::Result<()> {
        self.write(lease, true)
    }

    fn shim_of(&self, lease: LeaseId) -> LeaseId {
        self.shims.get(&lease).copied().unwrap_or(lease)
    }

    fn carry_on(&mut self, lease: LeaseId, of: LeaseId) -> io::Result<()> {
        self.write(lease, true)?;
        self.write(of, false)?;
        self.shims.insert(lease, self.shim_of(of));
        Ok(())
    }

    fn forget(&mut self, lease: LeaseId) -> io::Result<()> {
        self.write(lease, false)
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.synced = self.leases.clone();
        Ok(())
    }
}
