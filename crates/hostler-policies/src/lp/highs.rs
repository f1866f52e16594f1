//! `HiGHS`, for comparison with a well-known solver. Needs a C++ tool chain to build.

use super::{LpError, LpSolution, Problem};
use highs::{HighsModelStatus, RowProblem, Sense};

/// Solves a linear problem.
pub(super) fn solve(problem: &Problem) -> Result<LpSolution, LpError> {
    let mut model = RowProblem::default();
    let mut rows = vec![Vec::new(); problem.rows()];
    for column in 0..problem.columns() {
        let variable = model.add_column(problem.objective[column], 0..);
        for (row, value) in problem.entries(column) {
            rows[row].push((variable, value));
        }
    }
    for (row, &bound) in rows.iter().zip(&problem.bounds) {
        model.add_row(..=bound, row);
    }
    let mut model = model.optimise(Sense::Maximise);
    model.make_quiet();
    let solved = model.solve();
    match solved.status() {
        HighsModelStatus::Optimal => {}
        HighsModelStatus::Infeasible => return Err(LpError::Infeasible),
        HighsModelStatus::Unbounded => return Err(LpError::Unbounded),
        _ => return Err(LpError::Stuck { iterations: 0 }),
    }
    let solution = solved.get_solution();
    Ok(LpSolution {
        values: solution.columns().to_vec(),
        prices: solution.dual_rows().to_vec(),
        objective: solved.objective_value(),
        iterations: 0,
    })
}
