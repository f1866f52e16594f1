//! By skew: few nodes for jobs that lose by being spread, and the fullest nodes for all others.
//!
//! How much a job loses when it talks across nodes follows from its largest tensor: one that is
//! most of a model is sent in one piece and holds up all others (Gu and others, NSDI 2019). Such
//! jobs are placed as under `consolidate`, and so are those of which nobody knows; the others as
//! under `best-fit`, so that they fill what is left of nodes and keep whole ones free. Nobody waits
//! for fewer nodes: that is what a job asks for by its locality.

use hostler_core::capacity::Capacity;
use hostler_core::job::{Demand, JobSpec};
use hostler_core::placement::Part;
use hostler_core::stage::{Place, Shortfall};

use super::best_fit::BestFit;
use super::consolidate::Consolidate;
use crate::limits::SKEW_SPREAD_MAX;

/// Few nodes where it pays.
pub struct BySkew;

impl Place for BySkew {
    fn choose(
        &self,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        Consolidate.choose(free, gang, demand, count)
    }

    fn choose_for(
        &self,
        spec: &JobSpec,
        free: &Capacity,
        gang: u32,
        demand: &Demand,
        count: u32,
    ) -> Result<Vec<Part>, Shortfall> {
        match spec.skew.is_some_and(|skew| skew <= SKEW_SPREAD_MAX) {
            true => BestFit.choose(free, gang, demand, count),
            false => Consolidate.choose(free, gang, demand, count),
        }
    }
}
