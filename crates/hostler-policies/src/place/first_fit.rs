//! First fit: nodes in order of their number, each filled before the next.
//!
//! Predictable and easy to explain; packs the front of the cluster. It does not look for the
//! tightest hole, so large holes break sooner than under best fit.

use hostler_core::capacity::{Capacity, Walk};
use hostler_core::job::Demand;
use hostler_core::placement::Part;
use hostler_core::stage::{Place, Shortfall};

use super::{Rack, Rule, Seat, choose, in_turn};

/// Lowest node number first.
pub struct FirstFit;

impl Place for FirstFit {
    fn choose(
        &self,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        choose::<FirstFit>(free, gang, demand, count)
    }
}

impl Rule for FirstFit {
    const WALK: Walk = Walk::ById;

    fn enough(_: &[Seat], total: u32, count: u32) -> bool {
        total >= count
    }

    fn divide(seats: &[Seat], count: u32) -> Vec<Seat> {
        in_turn(seats, count)
    }

    fn rack_rank(rack: &Rack, _: u32) -> (u32, u32) {
        (rack.number, 0)
    }
}
