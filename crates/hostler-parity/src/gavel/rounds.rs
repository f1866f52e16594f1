//! Rounds as the original has them: dealt out in the order of the list or by chance, with turns
//! that are won and wasted, and a solver that remembers for as long as the run lasts.

use std::sync::{Arc, Mutex};

use hostler_core::id::ModelId;
use hostler_core::plan::Plan;
use hostler_core::policy::{Cadence, Policy, Wake};
use hostler_core::predict::EstimateSource;
use hostler_core::solve::Solve;
use hostler_core::target::Turn;
use hostler_core::view::View;
use hostler_policies::allocate::{
    Allocate, AllocateError, Allocation, Fallback, Instance, Isolated, in_parts,
};
use hostler_policies::fair::{Dealing, Rounds};

use super::exact::Exact;
use crate::twister::Twister;

/// What the original adds to its seed for the order of GPU types.
const SEED_OF_ORDER: u64 = 5;

/// How the original deals GPUs out.
pub(super) struct PublishedDealing {
    /// By chance, if not as listed.
    pub(super) shuffles: Option<Shuffles>,
}

impl Dealing for PublishedDealing {
    fn models(&mut self, view: &View<'_>, number: u64) -> Vec<ModelId> {
        let models = (0..view.models().len() as u32).map(ModelId);
        match &mut self.shuffles {
            None => models.collect(),
            Some(shuffles) => {
                let has = |model: &ModelId| {
                    view.nodes().iter().any(|node| node.spec.gpu_model == Some(*model))
                };
                shuffles.of_round(number, &models.filter(has).collect::<Vec<_>>())
            }
        }
    }

    /// Who came after the last solution may win a turn and wastes it.
    fn can_use(&self, view: &View<'_>, turn: Turn) -> bool {
        turn.team.members().all(|job| view.solve_record(job).is_some())
    }
}

/// The shuffled orders of all rounds, drawn one after the other.
pub(super) struct Shuffles {
    /// Rounds drawn.
    drawn: u64,
    twister: Twister,
    last: Vec<ModelId>,
}

impl Shuffles {
    pub(super) fn new(seed: u64) -> Shuffles {
        let twister = Twister::new(seed.wrapping_add(SEED_OF_ORDER) as u32);
        Shuffles { drawn: 0, twister, last: Vec::new() }
    }

    fn of_round(&mut self, number: u64, models: &[ModelId]) -> Vec<ModelId> {
        while self.drawn <= number {
            self.last = models.to_vec();
            self.twister.shuffle(&mut self.last);
            self.drawn += 1;
        }
        self.last.clone()
    }
}

/// Our rounds, which solve at once when nobody would run otherwise.
pub(super) struct GavelPolicy {
    pub(super) rounds: Rounds,
    pub(super) exact: Arc<Exact>,
}

impl Policy for GavelPolicy {
    fn cadence(&self) -> Cadence {
        self.rounds.cadence()
    }

    fn estimates(&self) -> EstimateSource {
        self.rounds.estimates()
    }

    fn solver(&self) -> Option<Box<dyn Solve>> {
        self.rounds.solver()
    }

    fn decide(&mut self, view: &View<'_>, wake: Wake, plan: &mut Plan<'_>) {
        let asks = wake == Wake::Round && view.solve_asked().is_none();
        if asks && self.exact.is_stuck() && view.solution_is_stale() {
            return plan.solve();
        }
        self.rounds.decide(view, wake, plan);
    }
}

/// An allocator that is asked to the last bit, and that lives as long as the run.
#[derive(Clone)]
pub(super) struct Remembering {
    pub(super) exact: Arc<Exact>,
    pub(super) weighted: bool,
    pub(super) packed: bool,
    pub(super) inner: Arc<Mutex<Box<dyn Allocate>>>,
}

impl Allocate for Remembering {
    fn allocate(&mut self, instance: &Instance) -> Result<Allocation, AllocateError> {
        self.exact.count_solution();
        let instance = self.exact.correct(instance, self.weighted);
        let mut inner = self.inner.lock().expect("no allocator panicked before");
        let answer = match inner.allocate(&instance) {
            Err(AllocateError::TooMany { limit, .. }) if self.packed => {
                in_parts(&mut **inner, &instance, limit)
            }
            answer => answer,
        };
        // Here and not by whoever asks: that one would go by rounded speeds.
        Ok(answer.unwrap_or_else(|_| {
            let equal = Isolated.allocate(&instance).unwrap_or_default();
            Allocation { fallback: Some(Fallback::Isolated), ..equal }
        }))
    }
}
