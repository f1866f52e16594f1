//! A place for a job that lasts beyond the reservation of the head, where the head does not miss
//! it. No policy of its own.
//!
//! The place that the rule wants comes first. Where the head would miss that, the tasks go to the
//! nodes on which they cost it the fewest slots: where both have one role a place is found whenever
//! there is one, short of gangs that are too large to weigh all divisions of. Roles of a job with
//! several are placed one after the other.

use hostler_core::capacity::{Capacity, Walk};
use hostler_core::id::NodeId;
use hostler_core::job::{Gang, JobSpec, Locality};
use hostler_core::placement::{Part, Placement};
use hostler_core::plan::Plan;
use hostler_core::stage::{Room, Shortfall};

use super::head_room::HeadRoom;
use crate::limits::SEATINGS_MAX;

/// Books a job beside the head, and says where: `wanted`, or another place that is free now.
pub(super) fn beside(
    room: &mut HeadRoom<'_>,
    plan: &mut Plan<'_>,
    spec: &JobSpec,
    wanted: Placement,
) -> Option<Placement> {
    if room.take(plan.free(), &wanted.parts) {
        return Some(wanted);
    }
    let mut taken: Vec<Part> = Vec::new();
    let placed = plan.try_roles(spec, &mut |free, at, gang| {
        let parts = harmless(room, free, at, gang).ok_or(Shortfall { fit: 0 })?;
        taken.extend_from_slice(&parts);
        Ok(parts)
    });
    if placed.is_err() {
        room.give_back(plan.free(), &taken);
    }
    placed.ok()
}

/// Whether a job that finds no place beside the head tells that no other does that asks for as many
/// cores and as much memory or more, and else for the same: all divisions of its tasks were
/// weighed. Which devices of a node it gets depends on neither.
pub(super) fn divides_alike(room: &HeadRoom<'_>, free: &Capacity, spec: &JobSpec) -> bool {
    let [gang] = &*spec.gangs else { return false };
    let seatings = free.node_count().saturating_mul(gang.count as usize);
    room.is_counted() && (gang.count == 1 || seatings <= SEATINGS_MAX)
}

/// Books one role where the head still fits.
fn harmless(room: &mut HeadRoom<'_>, free: &Capacity, at: u32, gang: &Gang) -> Option<Vec<Part>> {
    let seats = seats(free, gang);
    let alone = matches!(gang.demand.locality, Locality::Node | Locality::Island);
    if alone || gang.count == 1 {
        let mut able = seats.iter().filter(|(_, slots)| *slots >= gang.count);
        return able.find_map(|(node, _)| {
            let part = free.fit(*node, at, &gang.demand, gang.count)?;
            room.take(free, std::slice::from_ref(&part)).then(|| vec![part])
        });
    }
    let mut seats = seats;
    let racks = match gang.demand.locality {
        Locality::Rack => {
            // The sort is stable: inside a rack the order stays.
            seats.sort_by_key(|(node, _)| free.rack(*node));
            seats.chunk_by(|one, other| free.rack(one.0) == free.rack(other.0)).collect()
        }
        _ => vec![seats.as_slice()],
    };
    let spare = room.spare_slots();
    let choices = racks.iter().flat_map(|seats| spare.iter().map(move |spare| (*seats, *spare)));
    for (seats, (group, most)) in choices {
        let mut search = Search { room, free, at, gang, group };
        let divided = search.at_no_cost(seats).or_else(|| search.cheapest(seats, most));
        let parts: Option<Vec<Part>> = divided.map(|divided| search.parts(&divided).collect());
        if let Some(parts) = parts.filter(|parts| room.take(free, parts)) {
            return Some(parts);
        }
    }
    None
}

/// Nodes that hold tasks now, the tightest first, and how many.
fn seats(free: &Capacity, gang: &Gang) -> Vec<(NodeId, u32)> {
    let mut seats = Vec::new();
    free.visit(Walk::Tightest, &gang.demand, |node| {
        let slots = free.slots(node, &gang.demand, gang.count);
        if slots > 0 {
            seats.push((node, slots));
        }
        false
    });
    seats
}

/// The search for seats that take few slots of a group from the head.
struct Search<'r, 'a> {
    room: &'r mut HeadRoom<'a>,
    free: &'r Capacity,
    at: u32,
    gang: &'r Gang,
    group: u32,
}

impl Search<'_, '_> {
    fn part(&self, node: NodeId, tasks: u32) -> Part {
        let part = self.free.fit(node, self.at, &self.gang.demand, tasks);
        part.expect("the slots of the node were counted")
    }

    fn parts<'s>(&'s self, divided: &'s [(NodeId, u32)]) -> impl Iterator<Item = Part> + 's {
        divided.iter().map(|(node, tasks)| self.part(*node, *tasks))
    }

    fn loss(&mut self, node: NodeId, tasks: u32) -> u32 {
        if !self.room.uses(self.free, self.group, node) {
            return 0;
        }
        let part = self.part(node, tasks);
        self.room.loss(self.free, &part)
    }

    /// Divides the tasks among seats where they take no slot of the group.
    fn at_no_cost(&mut self, seats: &[(NodeId, u32)]) -> Option<Vec<(NodeId, u32)>> {
        let mut left = self.gang.count;
        let mut divided = Vec::new();
        for (node, slots) in seats {
            let most = (*slots).min(left);
            let tasks = match self.room.uses(self.free, self.group, *node) {
                true => (1..=most).take_while(|tasks| self.loss(*node, *tasks) == 0).count() as u32,
                false => most,
            };
            left -= tasks;
            divided.extend((tasks > 0).then_some((*node, tasks)));
            if left == 0 {
                return Some(divided);
            }
        }
        None
    }

    /// Divides the tasks so that they take the fewest slots of the group; none when that is more
    /// than `most`. A table over nodes and tasks: the least that so many tasks on the nodes so far
    /// cost.
    fn cheapest(&mut self, seats: &[(NodeId, u32)], most: u32) -> Option<Vec<(NodeId, u32)>> {
        let count = self.gang.count as usize;
        if most == 0 || seats.len().saturating_mul(count) > SEATINGS_MAX {
            return None;
        }
        let mut least: Vec<Option<u32>> = vec![None; count + 1];
        least[0] = Some(0);
        let mut chosen: Vec<Vec<u32>> = Vec::with_capacity(seats.len());
        for (node, slots) in seats {
            let costs: Vec<u32> = (1..=*slots).map(|tasks| self.loss(*node, tasks)).collect();
            let mut here = vec![0; count + 1];
            for total in (1..=count).rev() {
                for (tasks, cost) in (1..=total).zip(&costs) {
                    let Some(before) = least[total - tasks] else { continue };
                    let sum = before + cost;
                    if sum <= most && least[total].is_none_or(|known| sum < known) {
                        least[total] = Some(sum);
                        here[total] = tasks as u32;
                    }
                }
            }
            chosen.push(here);
        }
        least[count]?;
        let mut left = count;
        let mut divided = Vec::new();
        for ((node, _), here) in seats.iter().zip(&chosen).rev() {
            let tasks = here[left];
            divided.extend((tasks > 0).then_some((*node, tasks)));
            left -= tasks as usize;
        }
        divided.reverse();
        Some(divided)
    }
}
