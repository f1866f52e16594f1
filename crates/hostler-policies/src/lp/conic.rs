//! The interior-point method of `clarabel`, for comparison with the one of this crate.

use super::{LpError, LpSolution, Problem};
use crate::limits::LP_ITERATIONS_MAX;
use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus};

/// Solves a linear problem.
pub(super) fn solve(problem: &Problem) -> Result<LpSolution, LpError> {
    let (rows, columns) = (problem.rows(), problem.columns());
    // Below the rows stand those that keep the columns at 0 or above.
    let mut starts = vec![0];
    let mut places = Vec::new();
    let mut values = Vec::new();
    for column in 0..columns {
        for (row, value) in problem.entries(column) {
            places.push(row);
            values.push(value);
        }
        places.push(rows + column);
        values.push(-1.0);
        starts.push(places.len());
    }
    let matrix = CscMatrix::new(rows + columns, columns, starts, places, values);
    let mut bounds = problem.bounds.clone();
    bounds.resize(rows + columns, 0.0);
    let goal: Vec<f64> = problem.objective.iter().map(|value| -value).collect();
    let settings = DefaultSettings {
        verbose: false,
        max_iter: LP_ITERATIONS_MAX,
        ..DefaultSettings::default()
    };
    let none = CscMatrix::zeros((columns, columns));
    let cones = [NonnegativeConeT(rows + columns)];
    let stuck = LpError::Stuck { iterations: 0 };
    let mut solver = DefaultSolver::new(&none, &goal, &matrix, &bounds, &cones, settings)
        .map_err(|_| stuck.clone())?;
    solver.solve();
    let found = &solver.solution;
    match found.status {
        SolverStatus::Solved | SolverStatus::AlmostSolved => Ok(LpSolution {
            values: found.x.clone(),
            prices: found.z[..rows].to_vec(),
            objective: -found.obj_val,
            iterations: found.iterations,
        }),
        SolverStatus::PrimalInfeasible | SolverStatus::AlmostPrimalInfeasible => {
            Err(LpError::Infeasible)
        }
        SolverStatus::DualInfeasible | SolverStatus::AlmostDualInfeasible => {
            Err(LpError::Unbounded)
        }
        _ => Err(LpError::Stuck { iterations: found.iterations }),
    }
}
