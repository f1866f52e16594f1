//! Who writes and solves the programmes of a policy. Ours take jobs that are alike together; a
//! comparison with results of others may have to write them as those did.

use super::classes::{Classes, Traits};
use super::formulate::{Floor, Formulation, Goal, Spread};
use super::{AllocateError, Instance};
use crate::lp::{LpError, Solver};

/// A way to write and solve programmes.
pub trait Programmes: Send {
    /// The jobs that have columns of their own.
    fn classes(&self, instance: &Instance, traits: Traits) -> Result<Classes, AllocateError>;

    /// The best shares.
    fn solve(
        &self,
        instance: &Instance,
        classes: &Classes,
        floors: &[Floor],
        goal: Goal<'_>,
    ) -> Result<Spread, LpError>;
}

/// Jobs that are alike are one class, and programmes are in units that the solver likes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grouped {
    /// Who solves.
    pub solver: Solver,
}

impl Programmes for Grouped {
    fn classes(&self, instance: &Instance, traits: Traits) -> Result<Classes, AllocateError> {
        Classes::new(instance, traits)
    }

    fn solve(
        &self,
        instance: &Instance,
        classes: &Classes,
        floors: &[Floor],
        goal: Goal<'_>,
    ) -> Result<Spread, LpError> {
        Formulation::new(instance, classes, floors, goal).solve(self.solver)
    }
}
