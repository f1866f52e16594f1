//! Spreading: the roomiest nodes, one task at a time in turn.
//!
//! Leaves each job as much of its nodes' CPU, memory and network as there is, and loses few tasks
//! to one failed node. It breaks up large holes, so jobs that need whole nodes wait longer.

use hostler_core::capacity::{Capacity, Walk};
use hostler_core::job::Demand;
use hostler_core::placement::Part;
use hostler_core::stage::{Place, Shortfall};

use super::{Rack, Rule, Seat, choose};

/// Most free GPUs first, in turn.
pub struct Spread;

impl Place for Spread {
    fn choose(
        &self,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        choose::<Spread>(free, gang, demand, count)
    }
}

impl Rule for Spread {
    const WALK: Walk = Walk::Roomiest;

    fn enough(seats: &[Seat], _: u32, count: u32) -> bool {
        seats.len() >= count as usize
    }

    fn divide(seats: &[Seat], count: u32) -> Vec<Seat> {
        let mut taken: Vec<Seat> = seats.iter().map(|seat| Seat { tasks: 0, ..*seat }).collect();
        let mut left = count;
        while left > 0 {
            let open = taken.iter_mut().zip(seats);
            let open = open.filter(|(taken, seat)| taken.tasks < seat.tasks);
            for (taken, _) in open.take(left as usize) {
                taken.tasks += 1;
                left -= 1;
            }
        }
        taken.retain(|seat| seat.tasks > 0);
        taken
    }

    fn rack_rank(rack: &Rack, _: u32) -> (u32, u32) {
        (u32::MAX - rack.slots, rack.number)
    }
}
