//! The simplex method of `microlp`: answers at a corner, so that few shares are above 0.
//!
//! It ends by itself: it stops when its objective stalls. Its prices are not public.

use super::{LpError, LpSolution, Problem};
use microlp::{ComparisonOp, Error, OptimizationDirection, SolveOptions};

/// Solves a linear problem.
pub(super) fn solve(problem: &Problem) -> Result<LpSolution, LpError> {
    let mut model = microlp::Problem::new(OptimizationDirection::Maximize);
    let mut rows: Vec<Vec<(microlp::Variable, f64)>> = vec![Vec::new(); problem.rows()];
    let mut variables = Vec::with_capacity(problem.columns());
    for column in 0..problem.columns() {
        let variable = model.add_var(problem.objective[column], (0.0, f64::INFINITY));
        variables.push(variable);
        for (row, value) in problem.entries(column) {
            rows[row].push((variable, value));
        }
    }
    for (row, &bound) in rows.iter().zip(&problem.bounds) {
        model.add_constraint(row.as_slice(), ComparisonOp::Le, bound);
    }
    let outcome = model.solve_with(SolveOptions::default()).map_err(|error| match error {
        Error::Infeasible => LpError::Infeasible,
        Error::Unbounded => LpError::Unbounded,
        _ => LpError::Stuck { iterations: 0 },
    })?;
    let solution = outcome.into_solution().map_err(|_| LpError::Stuck { iterations: 0 })?;
    Ok(LpSolution {
        values: variables.iter().map(|&variable| solution.var_value(variable)).collect(),
        prices: Vec::new(),
        objective: solution.objective(),
        iterations: 0,
    })
}
