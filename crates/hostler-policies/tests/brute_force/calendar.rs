//! Conservative backfilling: at each question all reservations are worked out from the rule, by
//! trying every instant, and those start whose reservation is for now, where it is.

use std::collections::BTreeMap;

use hostler_core::decision::Decision;
use hostler_core::id::JobId;
use hostler_core::job::{Gang, Job, Locality, Models};
use hostler_core::placement::Placement;
use hostler_core::plan::Plan;
use hostler_core::units::{Span, Time};
use hostler_core::view::View;

use crate::{Demanded, Jobs, try_through};

const CONSERVATIVE: &str = "kind = 'conservative-backfill'\nestimate = 'user'";

#[test]
fn conservative_starts_those_whose_reservation_is_for_now_where_it_is() {
    try_through(CONSERVATIVE, Jobs::Plain, || Box::new(as_reserved));
}

#[test]
fn it_does_so_where_nobody_says_how_long_some_jobs_run() {
    try_through(CONSERVATIVE, Jobs::Unknown, || Box::new(as_reserved));
}

#[test]
fn it_does_so_for_parts_of_gpus_and_several_roles() {
    try_through(CONSERVATIVE, Jobs::Mixed, || Box::new(as_reserved));
}

#[test]
fn it_does_so_for_several_models_and_many_jobs() {
    try_through(CONSERVATIVE, Jobs::Models, || Box::new(as_reserved));
}

#[test]
fn with_true_estimates_nobody_starts_later_than_was_first_planned() {
    try_through(CONSERVATIVE, Jobs::Exact, in_time);
}

#[test]
fn so_it_is_for_several_roles_with_true_estimates() {
    try_through(CONSERVATIVE, Jobs::ExactRoles, || Box::new(as_reserved));
}

/// Demands that all starts are those of the reservations.
fn as_reserved(view: &View<'_>, plan: &Plan<'_>) {
    let expected: Vec<(JobId, Vec<Held>)> = reservations(view, plan)
        .into_iter()
        .filter_map(|(job, place)| place.filter(|(at, _)| *at == view.now()).map(|p| (job, p.1)))
        .collect();
    let started = |decision: &Decision| match decision {
        Decision::Start { job, placement, .. } => Some((*job, held(view, placement))),
        _ => None,
    };
    let mut started: Vec<_> = plan.decisions().iter().filter_map(started).collect();
    started.sort_by_key(|(job, _)| *job);
    assert_eq!(started, expected, "at {}", view.now());
}

/// The same, and that nobody starts later than its reservation was at its first question.
fn in_time() -> Demanded {
    let mut planned: BTreeMap<JobId, Option<Time>> = BTreeMap::new();
    Box::new(move |view, plan| {
        as_reserved(view, plan);
        for (job, place) in reservations(view, plan) {
            let at = place.map(|(at, _)| at);
            let first = planned.entry(job).or_insert(at);
            assert!(at <= *first, "{job:?} was to start at {first:?}, now at {at:?}");
        }
    })
}

/// What is held of one node: thousandths of GPUs by their place there, cores and memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Held {
    node: usize,
    gpus: Vec<(usize, u64)>,
    cpu: u64,
    mem: u64,
}

/// When a job is to start, and what it holds then.
type Place = (Time, Vec<Held>);

/// Something held from a time on, until another or for ever.
struct Booking {
    from: Time,
    until: Option<Time>,
    held: Held,
}

struct Machine {
    gpus: usize,
    cpu: u64,
    mem: u64,
    rack: u32,
    model: Option<u32>,
}

/// What is free of a machine; of a GPU that somebody holds a part of, and who holds none.
#[derive(Clone)]
struct Free {
    gpus: Vec<(u64, bool)>,
    cpu: u64,
    mem: u64,
}

struct Book {
    machines: Vec<Machine>,
    /// Machines in the order of places.
    order: Vec<usize>,
    bookings: Vec<Booking>,
}

impl Book {
    fn new(view: &View<'_>) -> Book {
        let machines: Vec<Machine> = view
            .nodes()
            .iter()
            .map(|node| Machine {
                gpus: node.spec.gpus as usize,
                cpu: node.spec.cpu.0.into(),
                mem: node.spec.mem.0.into(),
                rack: node.spec.rack,
                model: node.spec.gpu_model.map(|model| model.0),
            })
            .collect();
        let tier = |at: &usize| {
            view.nodes()[*at].spec.gpu_model.map(|model| (view.model(model).unwrap().tier, model))
        };
        let mut order: Vec<usize> = (0..machines.len()).collect();
        order.sort_by_key(|at| (tier(at), machines[*at].gpus));
        let mut bookings = Vec::new();
        for lease in view.leases() {
            let now = view.now();
            let mut end = lease.expected_end;
            while end <= now {
                end = end + Span(end.since(lease.since).0 / 10).max(Span::from_secs(1));
            }
            for held in held(view, &lease.placement) {
                bookings.push(Booking { from: now, until: Some(end), held });
            }
        }
        Book { machines, order, bookings }
    }

    /// What is free of a machine at a time.
    fn free_at(&self, node: usize, at: Time) -> Free {
        let machine = &self.machines[node];
        let mut free =
            Free { gpus: vec![(1000, true); machine.gpus], cpu: machine.cpu, mem: machine.mem };
        let there = |booking: &&Booking| {
            let lasts = booking.until.is_none_or(|until| at < until);
            booking.held.node == node && booking.from <= at && lasts
        };
        for booking in self.bookings.iter().filter(there) {
            free.cpu = free.cpu.checked_sub(booking.held.cpu).unwrap();
            free.mem = free.mem.checked_sub(booking.held.mem).unwrap();
            for (gpu, part) in &booking.held.gpus {
                let gpu = &mut free.gpus[*gpu];
                *gpu = (gpu.0.checked_sub(*part).unwrap(), false);
            }
        }
        free
    }

    /// What is free of a machine all the time.
    fn free_during(&self, node: usize, from: Time, until: Option<Time>) -> Free {
        let mut least = self.free_at(node, from);
        let begins = self.bookings.iter().map(|booking| booking.from);
        for at in begins.filter(|at| *at > from && until.is_none_or(|until| *at < until)) {
            let free = self.free_at(node, at);
            least.cpu = least.cpu.min(free.cpu);
            least.mem = least.mem.min(free.mem);
            for (gpu, other) in least.gpus.iter_mut().zip(free.gpus) {
                *gpu = (gpu.0.min(other.0), gpu.1 && other.1);
            }
        }
        least
    }

    /// Now, and times at which more is free somewhere than just before.
    fn instants(&self, now: Time) -> Vec<Time> {
        let mut ends: Vec<Time> =
            self.bookings.iter().filter_map(|booking| booking.until).collect();
        ends.sort();
        ends.dedup();
        ends.retain(|at| *at > now && self.gains(*at));
        [now].into_iter().chain(ends).collect()
    }

    fn gains(&self, at: Time) -> bool {
        (0..self.machines.len()).any(|node| {
            let (old, new) = (self.free_at(node, Time(at.0 - 1)), self.free_at(node, at));
            let mut gpus = old.gpus.iter().zip(&new.gpus);
            new.cpu > old.cpu || new.mem > old.mem || gpus.any(|(old, new)| new > old)
        })
    }

    /// The earliest place of a job; it is booked.
    fn reserve(&mut self, job: &Job, now: Time) -> Option<Place> {
        let run = job.estimate.map(|estimate| estimate.run.max(Span(1)));
        for at in self.instants(now) {
            let until = run.map(|run| at + run).filter(|until| *until < Time::NEVER);
            let before = self.bookings.len();
            let mut place: Vec<Held> = Vec::new();
            let fits = job.spec.gangs.iter().all(|gang| {
                let Some(parts) = self.first_place(gang, at, until) else { return false };
                for held in parts {
                    place.push(held.clone());
                    self.bookings.push(Booking { from: at, until, held });
                }
                true
            });
            if fits {
                place.sort_by_key(|held| held.node);
                return Some((at, place));
            }
            self.bookings.truncate(before);
        }
        None
    }

    /// The first place of a role at a time: one machine if there is one, else in their order.
    fn first_place(&self, gang: &Gang, at: Time, until: Option<Time>) -> Option<Vec<Held>> {
        let demand = &gang.demand;
        let accepted = |node: &&usize| match self.machines[**node].model {
            Some(model) => demand.models.set().contains(hostler_core::id::ModelId(model)),
            None => demand.gpu.0 == 0 && demand.models == Models::Any,
        };
        let most = if demand.locality == Locality::Apart { 1 } else { gang.count };
        let hold = |node: &usize| {
            let free = self.free_during(*node, at, until);
            let held = (1..=most).map_while(|tasks| hold(*node, &free, gang, tasks)).last();
            (*node, held.map_or(0, |(tasks, _)| tasks), free)
        };
        let seats: Vec<(usize, u32, Free)> =
            self.order.iter().filter(accepted).map(hold).filter(|seat| seat.1 > 0).collect();
        if let Some((node, _, free)) = seats.iter().find(|seat| seat.1 == gang.count) {
            return Some(vec![self::hold(*node, free, gang, gang.count)?.1]);
        }
        let mut racks: Vec<u32> = self.machines.iter().map(|machine| machine.rack).collect();
        racks.sort();
        let groups: Vec<Option<u32>> = match demand.locality {
            Locality::Node | Locality::Island => return None,
            Locality::Rack => racks.into_iter().map(Some).collect(),
            Locality::Any | Locality::Apart => vec![None],
        };
        groups.into_iter().find_map(|rack| {
            let mut left = gang.count;
            let mut parts = Vec::new();
            let inside = |seat: &&(usize, u32, Free)| {
                rack.is_none_or(|rack| self.machines[seat.0].rack == rack)
            };
            for (node, tasks, free) in seats.iter().filter(inside) {
                let tasks = left.min(*tasks);
                left -= tasks;
                parts.extend(self::hold(*node, free, gang, tasks).map(|(_, held)| held));
            }
            (left == 0).then_some(parts)
        })
    }
}

/// So many tasks on the first GPUs that will do.
fn hold(node: usize, free: &Free, gang: &Gang, tasks: u32) -> Option<(u32, Held)> {
    let demand = &gang.demand;
    let (cpu, mem) = (u64::from(tasks * demand.cpu.0), u64::from(tasks * demand.mem.0));
    let mut gpus = free.gpus.clone();
    let mut held = Held { node, cpu, mem, gpus: Vec::new() };
    for _ in 0..tasks {
        let asked = u64::from(demand.gpu.0);
        let parts = if asked < 1000 { u64::from(asked > 0) } else { asked / 1000 };
        for _ in 0..parts {
            let fits = |(part, untouched): &(u64, bool)| {
                if asked < 1000 { *part >= asked } else { *untouched }
            };
            let gpu = gpus.iter().position(fits)?;
            let part = asked.min(1000);
            gpus[gpu] = (gpus[gpu].0 - part, false);
            held.gpus.push((gpu, part));
        }
    }
    (tasks > 0 && cpu <= free.cpu && mem <= free.mem).then_some((tasks, held))
}

/// What a placement holds, by node.
fn held(view: &View<'_>, placement: &Placement) -> Vec<Held> {
    let of = |part: &hostler_core::placement::Part| {
        let first = view.node(part.node).unwrap().first_device.0;
        let gpu = |slice: &hostler_core::placement::Slice| {
            ((slice.device.0 - first) as usize, u64::from(slice.share.compute(0).0))
        };
        Held {
            node: part.node.index(),
            gpus: part.slices.iter().map(gpu).collect(),
            cpu: part.cpu.0.into(),
            mem: part.mem.0.into(),
        }
    };
    placement.parts.iter().map(of).collect()
}

/// Reservations of all who wait, in order.
fn reservations(view: &View<'_>, plan: &Plan<'_>) -> Vec<(JobId, Option<Place>)> {
    let now = view.now();
    let turned_away = |id: &JobId| {
        plan.decisions()
            .iter()
            .any(|made| matches!(made, Decision::Reject { job, .. } if job == id))
    };
    let mut book = Book::new(view);
    let mut somebody_waits = false;
    let mut all = Vec::new();
    for id in view.pending().iter().copied().filter(|id| !turned_away(id)) {
        let before = book.bookings.len();
        let place = book.reserve(view.job(id).unwrap(), now);
        somebody_waits |= place.as_ref().is_none_or(|(at, _)| *at > now);
        if !somebody_waits {
            // As good as one that runs: over at the end of time.
            let new = &mut book.bookings[before..];
            new.iter_mut().for_each(|booking| booking.until = booking.until.or(Some(Time::NEVER)));
        }
        all.push((id, place));
    }
    all
}
