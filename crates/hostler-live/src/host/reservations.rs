//! Reservations, upkeep and drained nodes: who keeps which nodes for when, and what people are
//! told about it. The core keeps the windows themselves; names and guests are rows.

use hostler_core::border;
use hostler_core::event::Event;
use hostler_core::id::{NodeId, WindowId};
use hostler_core::job::Demand;
use hostler_core::limits::WINDOWS_MAX;
use hostler_core::units::{Span, Time};
use hostler_core::window::Window;

use super::request::{check_name, invalid};
use super::{Desk, Host, HostError, Principal};
use crate::limits::{NOTE_CHARS_MAX, SECS_MAX};
use crate::reservation::{DrainRequest, Reservation, ReservationRequest};
use crate::store::{NodeRow, Row};

/// Seconds by which a beginning may lie in the past and mean now.
const PAST_SECS_MAX: f64 = 60.0;

impl Desk {
    /// Reservations that are not over, and notes on drained nodes.
    pub(super) fn reservations(&self) -> impl Iterator<Item = &Reservation> {
        let now = self.now.secs_f64();
        self.reservations.iter().filter(move |kept| !kept.is_over(now))
    }

    /// Keeps nodes for a time.
    pub(super) fn reserve(
        &mut self,
        request: ReservationRequest,
    ) -> Result<Reservation, HostError> {
        check_name("name", &request.name)?;
        check_note(&request.reason)?;
        if request.secs == 0 || request.secs > SECS_MAX {
            return Err(invalid("secs", format!("{}; use 1 to {SECS_MAX}", request.secs)));
        }
        let now = self.now.secs_f64();
        // A clock that is a little behind means now.
        if request.from.is_some_and(|from| from < now - PAST_SECS_MAX) {
            let fault = "that time is over; name one to come, or leave it out for now".to_owned();
            return Err(invalid("from", fault));
        }
        let from = request.from.unwrap_or(now).max(now);
        let until = from + request.secs as f64;
        if !until.is_finite() || until > now + 2.0 * SECS_MAX as f64 {
            return Err(invalid("from", format!("{from} is too far away")));
        }
        if self.reservations().any(|kept| !kept.drains && kept.name == request.name) {
            let fault = format!("there is `{}` already; end it first", request.name);
            return Err(invalid("name", fault));
        }
        for tenant in &request.tenants {
            if self.tenants.get(tenant).is_none() {
                return Err(HostError::Unknown { what: "tenant", name: tenant.clone() });
            }
        }
        let nodes = self.nodes_to_keep(&request, from, until)?;
        let kept = Reservation {
            name: request.name,
            window: self.next_window(),
            drains: false,
            nodes,
            from: Some(from),
            until: Some(until),
            tenants: request.tenants,
            users: request.users,
            stops_jobs: request.stops_jobs,
            reason: request.reason,
        };
        self.keep(kept.clone())?;
        Ok(kept)
    }

    /// Ends a reservation before its time; jobs in it that wait go on waiting.
    pub(super) fn unreserve(&mut self, name: &str) -> Result<(), HostError> {
        let known = self.reservations().find(|kept| !kept.drains && kept.name == name);
        let Some(window) = known.map(|kept| kept.window) else {
            return Err(HostError::Unknown { what: "reservation", name: name.to_owned() });
        };
        self.release(window);
        Ok(())
    }

    /// A node takes nothing new, or does again; with a deadline, what still runs then is stopped.
    pub(super) fn note_drain(
        &mut self,
        row: &NodeRow,
        draining: bool,
        how: DrainRequest,
    ) -> Result<(), HostError> {
        check_note(&how.reason)?;
        if how.deadline_secs.is_some_and(|secs| secs > SECS_MAX) {
            return Err(invalid("deadline_secs", format!("use up to {SECS_MAX}")));
        }
        if draining && how.deadline_secs.is_some() && self.state().windows().count() >= WINDOWS_MAX
        {
            let fault = format!("there are {WINDOWS_MAX} reservations and deadlines already");
            return Err(invalid("deadline_secs", fault));
        }
        let before = self.reservations.iter().find(|kept| kept.drains && kept.name == row.name);
        if let Some(window) = before.map(|kept| kept.window) {
            self.release(window);
        }
        if !draining || how == DrainRequest::default() {
            return Ok(());
        }
        let from = how.deadline_secs.map(|secs| self.now.secs_f64() + secs as f64);
        self.keep(Reservation {
            name: row.name.clone(),
            window: self.next_window(),
            drains: true,
            nodes: vec![row.name.clone()],
            from,
            until: None,
            tenants: Vec::new(),
            users: Vec::new(),
            stops_jobs: from.is_some(),
            reason: how.reason,
        })
    }

    /// The window that a job is submitted for.
    pub(super) fn window_for(
        &self,
        by: &Principal,
        tenant: &str,
        name: &str,
    ) -> Result<Option<WindowId>, HostError> {
        if name.is_empty() {
            return Ok(None);
        }
        let known = self.reservations().find(|kept| !kept.drains && kept.name == name);
        let Some(kept) = known else {
            return Err(HostError::Unknown { what: "reservation", name: name.to_owned() });
        };
        if !kept.admits(&by.user, tenant) {
            return Err(HostError::NotInvited { name: name.to_owned() });
        }
        Ok(Some(WindowId(kept.window)))
    }

    fn keep(&mut self, kept: Reservation) -> Result<(), HostError> {
        if let Some(from) = kept.from {
            let ids = kept.nodes.iter().filter_map(|name| self.node_row(name));
            let mut nodes: Vec<NodeId> = ids.map(|row| NodeId(row.id)).collect();
            nodes.sort_unstable();
            let until = kept.until.map_or(Time::NEVER, moment);
            // A deadline that is over begins in a moment: nothing ends before it begins.
            let from = moment(from).max(self.now);
            let spec = Window { nodes: nodes.into(), from, until, evicts: kept.stops_jobs };
            let event = Event::WindowSet { window: WindowId(kept.window), spec };
            border::check(self.state(), &event)
                .map_err(|fault| invalid("reservation", fault.to_string()))?;
            self.fact(event);
        }
        self.reservations.push(kept);
        self.write_reservations();
        Ok(())
    }

    fn release(&mut self, window: u32) {
        if self.state().window(WindowId(window)).is_some() {
            self.fact(Event::WindowEnded { window: WindowId(window) });
        }
        self.reservations.retain(|kept| kept.window != window);
        self.write_reservations();
    }

    /// Writes them down; what is over is forgotten on the way.
    fn write_reservations(&mut self) {
        let now = self.now.secs_f64();
        self.reservations.retain(|kept| !kept.is_over(now));
        self.draft.rows.push(Row::Reservations(self.reservations.clone()));
    }

    /// Numbers count up over all that are remembered, here or in the log.
    fn next_window(&self) -> u32 {
        let rows = self.reservations.iter().map(|kept| kept.window);
        let windows = self.state().windows().map(|(id, _)| id.0);
        // Jobs that waited for one that is over must not get into another.
        let gangs = self.state().jobs().flat_map(|job| &job.spec.gangs);
        let asked = gangs.filter_map(|gang| gang.demand.window.map(|window| window.0));
        rows.chain(windows).chain(asked).max().map_or(0, |last| last.saturating_add(1))
    }

    fn nodes_to_keep(
        &self,
        request: &ReservationRequest,
        from: f64,
        until: f64,
    ) -> Result<Vec<String>, HostError> {
        let taken = |name: &str| {
            let mut kept = self.reservations().filter(|kept| !kept.drains);
            kept.find(|kept| {
                kept.overlaps(from, until) && kept.nodes.iter().any(|node| node == name)
            })
        };
        for name in &request.nodes {
            if self.node_row(name).is_none() {
                return Err(HostError::Unknown { what: "node", name: name.clone() });
            }
            if let Some(other) = taken(name) {
                let fault = format!("`{name}` is kept for `{}` then", other.name);
                return Err(invalid("nodes", fault));
            }
        }
        match (request.nodes.is_empty(), request.gpus) {
            (false, None) => Ok(request.nodes.clone()),
            (true, Some(gpus)) => self.choose_nodes(gpus, |name| taken(name).is_none()),
            (_, _) => {
                Err(invalid("nodes", "name nodes, or a number of GPUs, one of them".to_owned()))
            }
        }
    }

    /// Nodes with so many GPUs together: those first that are believed to be empty first.
    fn choose_nodes(
        &self,
        gpus: u32,
        is_open: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>, HostError> {
        let state = self.state();
        let ready = |row: &NodeRow| {
            let leases = state.node(NodeId(row.id)).leases.iter();
            let ends = leases.filter_map(|lease| state.lease(*lease));
            ends.map(|lease| lease.expected_end).max().unwrap_or(Time::ZERO)
        };
        let is_up = |row: &&NodeRow| state.node(NodeId(row.id)).usable();
        let rows = self.node_rows().filter(|row| row.machine.gpus > 0 && !row.draining);
        let rows = rows.filter(is_up);
        let mut rows: Vec<&NodeRow> = rows.filter(|row| is_open(&row.name)).collect();
        rows.sort_by_key(|row| (ready(row), std::cmp::Reverse(row.machine.gpus), row.id));
        let (mut chosen, mut have) = (Vec::new(), 0);
        for row in rows {
            if have < gpus {
                have += row.machine.gpus;
                chosen.push(row.name.clone());
            }
        }
        match have >= gpus {
            true => Ok(chosen),
            false => Err(invalid("gpus", format!("{gpus}; {have} can be kept then"))),
        }
    }
}

impl Host {
    /// Reservations that are not over, by their beginning.
    pub fn reservations(&self) -> Vec<Reservation> {
        let mut kept: Vec<Reservation> =
            self.desk.reservations().filter(|kept| !kept.drains).cloned().collect();
        kept.sort_by(|one, other| {
            one.from.partial_cmp(&other.from).unwrap_or(std::cmp::Ordering::Equal)
        });
        kept
    }

    /// What people are told of a node that is drained or kept; empty when it is neither.
    pub(super) fn kept_note(&self, name: &str, id: NodeId) -> String {
        let now = self.desk.now.secs_f64();
        let drain = self.desk.reservations().find(|kept| kept.drains && kept.name == name);
        if let Some(drain) = drain {
            let why = if drain.reason.is_empty() { "drained" } else { drain.reason.as_str() };
            return match drain.from {
                Some(at) if at > now => {
                    format!("{why}; what still runs is stopped in {}", words(at - now))
                }
                Some(_) | None => why.to_owned(),
            };
        }
        let Some(kept) = self.desk.state().node(id).kept else { return String::new() };
        let known = self.desk.reservations().find(|row| row.window == kept.window.0);
        let Some(row) = known else { return String::new() };
        let why = if row.reason.is_empty() { String::new() } else { format!(" ({})", row.reason) };
        match row.from {
            Some(from) if from > now => {
                format!("kept for `{}` in {}{why}", row.name, words(from - now))
            }
            Some(_) | None => format!("kept for `{}`{why}", row.name),
        }
    }

    /// Name of the reservation that a node is kept for at this time.
    pub(super) fn kept_now(&self, id: NodeId) -> Option<String> {
        let kept = self.desk.state().node(id).kept.filter(|kept| kept.begun)?;
        let mut known = self.desk.reservations();
        known.find(|row| row.window == kept.window.0 && !row.drains).map(|row| row.name.clone())
    }

    /// Why a job of a reservation waits, where that is about the reservation.
    pub(super) fn window_note(&self, demand: &Demand) -> Option<String> {
        let window = demand.window?;
        let row = self.desk.reservations().find(|row| row.window == window.0);
        let Some(row) = row else {
            let next = "cancel it, or submit it again without `--reservation`";
            return Some(format!("its reservation is over; {next}"));
        };
        let now = self.desk.now.secs_f64();
        let from = row.from.filter(|from| *from > now)?;
        Some(format!("its reservation `{}` begins in {}", row.name, words(from - now)))
    }
}

fn check_note(text: &str) -> Result<(), HostError> {
    if text.chars().count() > NOTE_CHARS_MAX || text.contains(char::is_control) {
        let fault = format!("use up to {NOTE_CHARS_MAX} characters on one line");
        return Err(invalid("reason", fault));
    }
    Ok(())
}

fn moment(secs: f64) -> Time {
    Time((secs * 1e6) as u64)
}

/// A span of time in the largest unit that says enough.
pub(super) fn words(secs: f64) -> String {
    match secs {
        secs if secs < 120.0 => format!("{secs:.0} s"),
        secs if secs < 7200.0 => format!("{:.0} min", secs / 60.0),
        secs if secs < 172_800.0 => format!("{:.1} h", secs / 3600.0),
        secs => format!("{:.1} d", secs / 86_400.0),
    }
}

/// The same of a span.
pub(super) fn span_words(span: Span) -> String {
    words(span.secs_f64())
}
