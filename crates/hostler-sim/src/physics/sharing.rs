//! Several jobs on one GPU: how compute and memory that nobody booked are divided.
//!
//! The law in words, with the sources of its numbers, is in `docs/sharing.md`. It looks at real
//! use, which no policy can see, and at what shares book. Does not know which policy runs.

use hostler_core::id::LeaseId;
use hostler_core::units::{Mib, Milli};

/// How jobs on one GPU slow each other down.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharingLaw {
    /// Compute of a device that is left to several jobs together: switching between them costs.
    pub capacity: f64,
    /// Speed that a job loses to each device's worth of compute that its neighbours use.
    pub interference: f64,
    /// Speed that a job loses while all the memory that it uses is missing.
    pub spill: f64,
}

impl Default for SharingLaw {
    fn default() -> SharingLaw {
        SharingLaw { capacity: 0.95, interference: 0.12, spill: 0.5 }
    }
}

/// No job stands still: work comes to an end whatever its neighbours do.
const SLOWEST: f64 = 0.01;

/// One share of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Member {
    pub(crate) lease: LeaseId,
    /// Compute that it booked: its weight when there is not enough for all.
    pub(crate) booked: Milli,
    /// Compute that it uses when it is alone, as a part of the device.
    pub(crate) used: f64,
    /// Memory that it booked.
    pub(crate) guaranteed: Mib,
    /// Memory that it uses where it can.
    pub(crate) mem_used: Mib,
}

impl SharingLaw {
    /// Speeds of the members of one device with memory `size`, in their order; memory beyond
    /// guarantees goes to those who come first in it.
    pub(crate) fn rates(&self, members: &[Member], size: Mib) -> Vec<f64> {
        if members.len() < 2 {
            return vec![1.0; members.len()];
        }
        let given = divide(self.capacity, members);
        let all: f64 = members.iter().map(|member| member.used).sum();
        let guaranteed: u32 = members.iter().map(|member| member.guaranteed.0).sum();
        let mut spare = size.0.saturating_sub(guaranteed);
        let rate = |(member, given): (&Member, f64)| {
            let by_time = if member.used > 0.0 { given / member.used } else { 1.0 };
            let by_caches = 1.0 - self.interference * (all - member.used).min(1.0);
            let extra = member.mem_used.0.saturating_sub(member.guaranteed.0);
            let lent = extra.min(spare);
            spare -= lent;
            let missing = f64::from(extra - lent) / f64::from(member.mem_used.0.max(1));
            (by_time.min(by_caches) * (1.0 - self.spill * missing)).clamp(SLOWEST, 1.0)
        };
        members.iter().zip(given).map(rate).collect()
    }
}

/// Divides `capacity` by water filling: in proportion to what is booked, nobody more than it uses.
fn divide(capacity: f64, members: &[Member]) -> Vec<f64> {
    let mut given = vec![0.0; members.len()];
    let mut hungry: Vec<usize> = (0..members.len()).collect();
    let mut left = capacity;
    while !hungry.is_empty() {
        let booked: u32 = hungry.iter().map(|at| members[*at].booked.0).sum();
        let part = |at: usize| match booked {
            // Only those are left who booked nothing: they share what is left alike.
            0 => left / hungry.len() as f64,
            booked => left * f64::from(members[at].booked.0) / f64::from(booked),
        };
        let (full, still): (Vec<usize>, Vec<usize>) =
            hungry.iter().partition(|at| part(**at) >= members[**at].used);
        if full.is_empty() {
            still.iter().for_each(|at| given[*at] = part(*at));
            break;
        }
        full.iter().for_each(|at| given[*at] = members[*at].used);
        left -= full.iter().map(|at| members[*at].used).sum::<f64>();
        hungry = still;
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Mib = Mib(16_000);

    fn member(booked: u32, used: f64) -> Member {
        let guaranteed = Mib(SIZE.0 * booked / 1000);
        Member { lease: LeaseId(0), booked: Milli(booked), used, guaranteed, mem_used: guaranteed }
    }

    fn rates(law: SharingLaw, members: &[Member]) -> Vec<f64> {
        let round = |rate: f64| (rate * 1e6).round() / 1e6;
        law.rates(members, SIZE).into_iter().map(round).collect()
    }

    const TIME_ALONE: SharingLaw = SharingLaw { capacity: 1.0, interference: 0.0, spill: 0.0 };

    #[test]
    fn nobody_is_slowed_while_the_device_suffices() {
        assert_eq!(rates(TIME_ALONE, &[member(500, 0.7), member(500, 0.3)]), [1.0, 1.0]);
        assert_eq!(rates(SharingLaw::default(), &[member(500, 0.9)]), [1.0], "alone");
    }

    #[test]
    fn what_a_neighbour_leaves_goes_to_those_who_use_more_than_they_booked() {
        // 0.2 is given in full; of the other 0.8 the booked parts give 0.48 and 0.32.
        let members = [member(200, 0.2), member(300, 0.8), member(200, 0.8)];
        assert_eq!(rates(TIME_ALONE, &members), [1.0, 0.6, 0.4]);
    }

    #[test]
    fn nobody_gets_less_than_it_booked() {
        let members = [member(600, 0.6), member(400, 1.0)];
        assert_eq!(rates(TIME_ALONE, &members), [1.0, 0.4]);
    }

    #[test]
    fn switching_costs_a_part_of_the_device() {
        let law = SharingLaw { capacity: 0.95, ..TIME_ALONE };
        assert_eq!(rates(law, &[member(500, 1.0), member(500, 1.0)]), [0.475, 0.475]);
    }

    #[test]
    fn caches_and_bandwidth_cost_where_time_does_not() {
        let law = SharingLaw { interference: 0.1, ..TIME_ALONE };
        // 0.1 of a neighbour's 0.5 and 0.3; with a neighbour that uses all, time costs more.
        assert_eq!(rates(law, &[member(500, 0.3), member(500, 0.5)]), [0.95, 0.97]);
        assert_eq!(rates(law, &[member(500, 1.0), member(500, 1.0)]), [0.5, 0.5]);
    }

    #[test]
    fn memory_that_nobody_booked_is_lent_to_those_who_came_first() {
        let law = SharingLaw { spill: 0.5, ..TIME_ALONE };
        let mut members = [member(250, 0.1), member(250, 0.1)];
        members[0].mem_used = Mib(10_000);
        members[1].mem_used = Mib(8_000);
        // 8000 MiB are spare: the first gets its 6000, the second 2000 of 4000.
        assert_eq!(rates(law, &members), [1.0, 1.0 - 0.5 * 2000.0 / 8000.0]);
        // A newcomer books 4000: the second gets nothing, the first keeps 4000 of 6000.
        let newcomer = member(250, 0.1);
        let slowed = rates(law, &[members[0], members[1], newcomer]);
        assert_eq!(slowed, [0.9, 1.0 - 0.5 * 4000.0 / 8000.0, 1.0]);
    }

    #[test]
    fn whoever_booked_no_compute_gets_what_others_leave_and_never_stops() {
        let members = [member(500, 0.7), Member { booked: Milli(0), ..member(0, 0.6) }];
        assert_eq!(rates(TIME_ALONE, &members), [1.0, 0.5]);
        let members = [member(500, 1.0), Member { booked: Milli(0), ..member(0, 0.6) }];
        assert_eq!(rates(TIME_ALONE, &members), [1.0, 0.01]);
    }
}
