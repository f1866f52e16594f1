//! Placement rules: which nodes a job gets when several would do.
//!
//! A rule says in which order to look, when it has seen enough and how to divide the tasks among
//! the nodes that it saw; what "close together" means is decided here, once for all rules. Whether
//! a role fits never depends on the rule: without a locality it fits when the free slots of all
//! nodes add up, with one when those of a rack or of a single node do.

pub mod affinity;
pub mod balance;
pub mod best_fit;
pub mod by_skew;
pub mod consolidate;
pub mod first_fit;
pub mod progressive;
pub(crate) mod scored;
pub mod spread;

use affinity::Affinity;
use balance::Balance;
use best_fit::BestFit;
use by_skew::BySkew;
use consolidate::Consolidate;
use first_fit::FirstFit;
use hostler_core::capacity::{Capacity, Walk};
use hostler_core::id::NodeId;
use hostler_core::job::{Demand, Locality};
use hostler_core::placement::Part;
use hostler_core::policy::SettingType;
use hostler_core::stage::{Place, Shortfall};
use serde::{Deserialize, Serialize};
use spread::Spread;

/// A placement rule, as policies name it in their settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceRule {
    /// The node with the lowest number.
    FirstFit,
    /// The node with the fewest free GPUs.
    #[default]
    BestFit,
    /// As few nodes as possible.
    Consolidate,
    /// As many nodes as possible.
    Spread,
    /// The nodes that are booked the least.
    Balance,
    /// As few nodes as possible for jobs that lose on several, else the fewest free GPUs.
    BySkew,
    /// A node where jobs ask for as many GPUs.
    Affinity,
}

impl PlaceRule {
    /// Every rule.
    pub const ALL: [PlaceRule; 7] = [
        PlaceRule::FirstFit,
        PlaceRule::BestFit,
        PlaceRule::Consolidate,
        PlaceRule::Spread,
        PlaceRule::Balance,
        PlaceRule::BySkew,
        PlaceRule::Affinity,
    ];

    /// The stage that places by this rule.
    pub fn build(self) -> Box<dyn Place> {
        match self {
            PlaceRule::FirstFit => Box::new(FirstFit),
            PlaceRule::BestFit => Box::new(BestFit),
            PlaceRule::Consolidate => Box::new(Consolidate),
            PlaceRule::Spread => Box::new(Spread),
            PlaceRule::Balance => Box::new(Balance { with_gpus: true }),
            PlaceRule::BySkew => Box::new(BySkew),
            PlaceRule::Affinity => Box::new(Affinity::default()),
        }
    }
}

impl SettingType for PlaceRule {
    const TAKES: &'static str = "\"first-fit\" | \"best-fit\" | \"consolidate\" | \"spread\" | \
                                 \"balance\" | \"by-skew\" | \"affinity\"";
    const HELP: &'static str = "Which nodes a job gets.";
}

/// Room on one node, or the tasks that it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seat {
    node: NodeId,
    tasks: u32,
}

/// What distinguishes a placement rule.
trait Rule {
    /// Order in which nodes are looked at.
    const WALK: Walk;

    /// Whether `seats`, of which the last is new and all together hold `total`, will do for
    /// `count` tasks.
    fn enough(seats: &[Seat], total: u32, count: u32) -> bool;

    /// Divides `count` tasks among seats anywhere in the cluster that hold them.
    fn pick(_free: &Capacity, _demand: &Demand, seats: &[Seat], count: u32) -> Vec<Seat> {
        Self::divide(seats, count)
    }

    /// Divides `count` tasks among seats that hold them.
    fn divide(seats: &[Seat], count: u32) -> Vec<Seat>;

    /// Rank of a rack that holds the tasks, least first.
    fn rack_rank(rack: &Rack, count: u32) -> (u32, u32);
}

/// Room in one rack.
struct Rack<'a> {
    number: u32,
    slots: u32,
    seats: &'a [Seat],
}

/// Places one role by `R`.
fn choose<R: Rule>(
    free: &Capacity,
    gang: u32,
    demand: &Demand,
    count: u32,
) -> Result<Vec<Part>, Shortfall> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let alone = matches!(demand.locality, Locality::Node | Locality::Island);
    if alone || count == 1 {
        let node = one_node(free, R::WALK, demand, count)?;
        return Ok(vec![part(free, gang, demand, node)]);
    }
    let seats = match demand.locality {
        Locality::Rack => one_rack::<R>(free, demand, count)?,
        Locality::Any | Locality::Apart | Locality::Node | Locality::Island => {
            let (seats, total) = seats::<R>(free, demand, Some(count));
            if total < count {
                return Err(Shortfall { fit: total });
            }
            R::pick(free, demand, &seats, count)
        }
    };
    let parts = seats.into_iter();
    Ok(parts.map(|seat| part(free, gang, demand, seat)).collect())
}

/// The first node that holds all tasks.
fn one_node(free: &Capacity, walk: Walk, demand: &Demand, count: u32) -> Result<Seat, Shortfall> {
    let mut best = 0;
    let mut found = None;
    free.visit(walk, demand, |node| {
        let slots = free.slots(node, demand, count);
        best = best.max(slots);
        if slots >= count {
            found = Some(Seat { node, tasks: count });
        }
        found.is_some()
    });
    found.ok_or(Shortfall { fit: best })
}

/// Nodes with room, in the order of the rule, until it has seen enough for `count` tasks; all of
/// them when that is not given. The second answer is how many tasks they hold.
fn seats<R: Rule>(free: &Capacity, demand: &Demand, count: Option<u32>) -> (Vec<Seat>, u32) {
    let mut seats = Vec::new();
    let mut total: u32 = 0;
    free.visit(R::WALK, demand, |node| {
        let tasks = free.slots(node, demand, u32::MAX);
        if tasks == 0 {
            return false;
        }
        seats.push(Seat { node, tasks });
        total = total.saturating_add(tasks);
        count.is_some_and(|count| R::enough(&seats, total, count))
    });
    (seats, total)
}

/// The best rack for the role, and who sits where in it.
fn one_rack<R: Rule>(free: &Capacity, demand: &Demand, count: u32) -> Result<Vec<Seat>, Shortfall> {
    let (mut seats, _) = seats::<R>(free, demand, None);
    // The sort is stable: inside a rack the order of the rule stays.
    seats.sort_by_key(|seat| free.rack(seat.node));
    let racks = seats.chunk_by(|one, other| free.rack(one.node) == free.rack(other.node));
    let racks = racks.map(|seats| Rack {
        number: free.rack(seats[0].node),
        slots: seats.iter().fold(0, |sum: u32, seat| sum.saturating_add(seat.tasks)),
        seats,
    });
    let (able, short): (Vec<Rack>, Vec<Rack>) = racks.partition(|rack| rack.slots >= count);
    match able.iter().min_by_key(|rack| R::rack_rank(rack, count)) {
        Some(rack) => Ok(R::divide(rack.seats, count)),
        None => Err(Shortfall { fit: short.iter().map(|rack| rack.slots).max().unwrap_or(0) }),
    }
}

fn part(free: &Capacity, gang: u32, demand: &Demand, seat: Seat) -> Part {
    free.fit(seat.node, gang, demand, seat.tasks).expect("the slots of the node were counted")
}

/// Fills seat after seat.
fn in_turn(seats: &[Seat], count: u32) -> Vec<Seat> {
    let mut left = count;
    let mut taken = Vec::new();
    for seat in seats {
        if left == 0 {
            break;
        }
        let tasks = seat.tasks.min(left);
        left -= tasks;
        taken.push(Seat { tasks, ..*seat });
    }
    taken
}
