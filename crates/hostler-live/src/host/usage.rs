//! What jobs that are not over have used so far.

use hostler_core::units::Time;

use super::Host;
use crate::usage::Meter;

impl Host {
    /// The time up to which everything was taken in.
    pub fn now(&self) -> Time {
        self.desk.now
    }

    /// Counts jobs of a tenant and a user, or of all; gives their numbers, ascending.
    pub fn measure(&self, meter: &mut Meter, tenant: Option<&str>, user: Option<&str>) -> Vec<u32> {
        let asked = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
        let jobs = self.desk.jobs.values().map(|live| &live.row);
        let jobs = jobs.filter(|row| asked(tenant, &row.tenant) && asked(user, &row.user));
        jobs.map(|row| {
            meter.add(row);
            row.id
        })
        .collect()
    }
}
