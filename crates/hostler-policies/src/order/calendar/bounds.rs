//! Before which time nobody finds a place who asks for as much: while nothing is given back, places
//! only get fewer, so what one search found out holds for all that ask for more. It spares most of
//! the work; it decides nothing.

use std::collections::BTreeMap;

use hostler_core::id::ModelId;
use hostler_core::job::Demand;
use hostler_core::units::{Mib, Milli, Span, Time};

use super::node::Need;
use crate::limits::KNOWN_SIZES_MAX;

/// Times before which there is no place.
#[derive(Default)]
pub(super) struct Bounds {
    by_kind: BTreeMap<Kind, Vec<Known>>,
}

/// A demand without its sizes, and the GPU model that it is looked for on.
type Kind = (Demand, Option<ModelId>);

/// What was asked for, and when it finds a place at the earliest.
#[derive(Clone, Copy)]
struct Known {
    gpu: Milli,
    cpu: Milli,
    mem: Mib,
    count: u32,
    run: Span,
    at: Time,
}

impl Known {
    fn new(need: &Need<'_>, at: Time) -> Known {
        let Demand { gpu, cpu, mem, .. } = *need.demand;
        Known { gpu, cpu, mem, count: need.count, run: need.run.unwrap_or(Span::MAX), at }
    }

    /// Whether whoever finds room for the other finds room for this.
    fn asks_no_more(&self, other: &Known) -> bool {
        self.gpu <= other.gpu
            && self.cpu <= other.cpu
            && self.mem <= other.mem
            && self.count <= other.count
            && self.run <= other.run
    }
}

fn kind(need: &Need<'_>, only: Option<ModelId>) -> Kind {
    let (gpu, cpu, mem) = Default::default();
    (Demand { gpu, cpu, mem, ..need.demand.clone() }, only)
}

impl Bounds {
    /// Forgets all: something was given back.
    pub(super) fn clear(&mut self) {
        self.by_kind.clear();
    }

    /// The earliest time at which a role may find room.
    pub(super) fn earliest(&self, need: &Need<'_>, only: Option<ModelId>) -> Time {
        let asked = Known::new(need, Time::ZERO);
        let known = self.by_kind.get(&kind(need, only));
        let known = known.into_iter().flatten().filter(|known| known.asks_no_more(&asked));
        known.map(|known| known.at).max().unwrap_or(Time::ZERO)
    }

    /// Notes that a role finds no room before a time.
    pub(super) fn note(&mut self, need: &Need<'_>, only: Option<ModelId>, at: Time, now: Time) {
        if at <= now {
            return;
        }
        let found = Known::new(need, at);
        let known = self.by_kind.entry(kind(need, only)).or_default();
        if known.iter().any(|other| other.asks_no_more(&found) && other.at >= at) {
            return;
        }
        known.retain(|other| other.at > now && !(found.asks_no_more(other) && at >= other.at));
        if known.len() == KNOWN_SIZES_MAX {
            known.remove(0);
        }
        known.push(found);
    }
}
