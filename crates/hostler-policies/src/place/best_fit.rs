//! Best fit: the nodes with the fewest free GPUs first, so that large holes stay whole.
//!
//! Models come in the order that the job asks for, else from low to high tier. A fraction goes to
//! a device that is shared already before it touches a fresh one. It does not try to keep a large
//! job on few nodes; `consolidate` does.

use hostler_core::capacity::{Capacity, Walk};
use hostler_core::job::Demand;
use hostler_core::placement::Part;
use hostler_core::stage::{Place, Shortfall};

use super::{Rack, Rule, Seat, choose, in_turn};

/// Fewest free GPUs first.
pub struct BestFit;

impl Place for BestFit {
    fn choose(
        &self,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        choose::<BestFit>(free, gang, demand, count)
    }
}

impl Rule for BestFit {
    const WALK: Walk = Walk::Tightest;

    fn enough(_: &[Seat], total: u32, count: u32) -> bool {
        total >= count
    }

    fn divide(seats: &[Seat], count: u32) -> Vec<Seat> {
        in_turn(seats, count)
    }

    fn rack_rank(rack: &Rack, _: u32) -> (u32, u32) {
        (rack.slots, rack.number)
    }
}
