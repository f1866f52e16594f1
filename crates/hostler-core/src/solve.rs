//! Heavy optimisation, outside the step: the interface of solvers.
//!
//! A policy that decides `Solve` is answered by an `Event::Solved`. In between, the host runs the
//! policy's solver on the state of that step: at once where time stands still, on a thread with a
//! clone of the state where it does not. A replay needs no solver, because the answer is in the
//! log.

use std::sync::Arc;

use crate::engine::guarded;
use crate::event::Event;
use crate::state::ClusterState;
use crate::target::Solution;
use crate::verify::Violation;
use crate::view::View;

/// Turns a state into shares of time.
pub trait Solve: Send {
    /// Solves for the state as it is. Budgets are iterations; what fails gives a fallback that the
    /// solution admits to.
    fn solve(&mut self, view: &View<'_>) -> Solution;
}

/// A question to a solver, with all that it takes to answer it on another thread.
pub struct SolverQuestion {
    based_on: u64,
    solver: Box<dyn Solve>,
    state: ClusterState,
}

impl SolverQuestion {
    pub(crate) fn new(
        based_on: u64,
        solver: Box<dyn Solve>,
        state: ClusterState,
    ) -> SolverQuestion {
        SolverQuestion { based_on, solver, state }
    }

    /// Solves; what comes out is the fact to take in, once it was [checked].
    ///
    /// [checked]: crate::engine::Engine::check_answer
    pub fn answer(mut self) -> Result<Event, Violation> {
        let solution = guarded(|| self.solver.solve(&View::new(&self.state)))?;
        Ok(Event::Solved { based_on: self.based_on, solution: Arc::new(solution) })
    }
}
