//! The solvers on small programmes, and against each other on random ones.

use super::*;
use hostler_core::random::Random;
use proptest::prelude::*;

/// Shares of jobs on types such that the least relative throughput is greatest.
fn level_problem(seed: u64, jobs: usize, types: usize, tight: bool) -> Problem {
    let mut random = Random::new(seed);
    let mut bounds = Vec::new();
    (0..jobs).for_each(|_| bounds.extend([0.0, 1.0]));
    let workers = if tight { jobs as f64 / (2.0 * types as f64) } else { jobs as f64 };
    (0..types).for_each(|_| bounds.push(workers * (0.2 + random.uniform())));
    let mut problem = Problem::new(bounds, types);
    for job in 0..jobs {
        for gpu in 0..types {
            let rate =
                if random.uniform() < 0.2 && gpu > 0 { 0.0 } else { random.uniform() + 0.01 };
            let entries = [(2 * job, -rate), (2 * job + 1, 1.0), (2 * jobs + gpu, 1.0)];
            problem.column(0.0, &entries);
        }
    }
    let level: Vec<(usize, f64)> = (0..jobs).map(|job| (2 * job, 0.5 + random.uniform())).collect();
    problem.wide_column(1.0, &level);
    problem
}

/// Many jobs of three kinds on five types, of which one alone has to hurry: nothing but its own
/// time is scarce.
fn one_in_a_hurry(seed: u64, jobs: usize) -> Problem {
    const RATES: [[f64; 5]; 3] = [
        [0.036, 0.521, 0.151, 1.0, 1.0],
        [0.278, 0.515, 0.593, 1.0, 1.0],
        [0.267, 0.356, 0.815, 1.0, 1.0],
    ];
    let workers = [2240.0, 994.0, 1596.0, 832.0, 1080.0].map(|gpus| gpus * jobs as f64 / 4000.0);
    let mut random = Random::new(seed);
    let mut bounds: Vec<f64> = (0..2 * jobs).map(|row| (row % 2) as f64).collect();
    bounds.extend([1.0; 5]);
    let mut problem = Problem::new(bounds, 5);
    let mut level = Vec::new();
    for job in 0..jobs {
        let gang = random.pick(&[(1.0, 12.0), (2.0, 1.0), (4.0, 1.0), (8.0, 1.0)]);
        let kinds = [(None, 73.0), (Some(0), 20.0), (Some(1), 3.0), (Some(2), 2.0), (Some(3), 2.0)];
        let only = random.pick(&kinds);
        for gpu in (0..5).filter(|gpu| only.is_none_or(|only| only == *gpu)) {
            let rate = if only.is_some() { 1.0 } else { RATES[job % 3][gpu] };
            let part = gang / workers[gpu];
            problem.column(0.0, &[(2 * job, -rate), (2 * job + 1, 1.0), (2 * jobs + gpu, part)]);
        }
        let need = (0.045 * libm::exp(0.8 * random.normal())).min(0.3);
        level.push((2 * job, if job == 0 { 0.9 } else { need }));
    }
    problem.wide_column(1.0, &level);
    problem
}

#[test]
fn the_middle_of_a_large_programme_is_left_again() {
    for seed in 0..8 {
        let solution = one_in_a_hurry(seed, 1000).solve(Solver::Interior).unwrap();
        assert!(solution.objective < 1.0 / 0.9 + 1e-6, "{}", solution.objective);
        assert!(solution.iterations < 30, "{}", solution.iterations);
    }
}

#[test]
fn two_products_share_two_machines() {
    let mut problem = Problem::new(vec![4.0, 12.0, 18.0], 1);
    problem.column(3.0, &[(0, 1.0), (2, 3.0)]);
    problem.column(5.0, &[(1, 2.0), (2, 2.0)]);
    let solvers = [
        Solver::Interior,
        Solver::Simplex,
        #[cfg(feature = "clarabel")]
        Solver::Clarabel,
    ];
    for solver in solvers {
        let solution = problem.solve(solver).unwrap();
        assert!((solution.objective - 36.0).abs() < 1e-6, "{solver:?}: {solution:?}");
        assert!((solution.values[0] - 2.0).abs() < 1e-6, "{solver:?}: {solution:?}");
    }
    let prices = problem.solve(Solver::Interior).unwrap().prices;
    assert!((prices[1] - 1.5).abs() < 1e-6 && (prices[2] - 1.0).abs() < 1e-6, "{prices:?}");
}

#[test]
fn logarithms_share_in_proportion_to_their_weights() {
    let mut problem = Problem::new(vec![1.0], 0);
    problem.log_column(1.0, &[(0, 1.0)]);
    problem.log_column(3.0, &[(0, 1.0)]);
    let values = problem.solve(Solver::Interior).unwrap().values;
    assert!((values[0] - 0.25).abs() < 1e-6 && (values[1] - 0.75).abs() < 1e-6, "{values:?}");
}

#[test]
fn a_problem_without_a_feasible_point_is_refused() {
    let mut problem = Problem::new(vec![1.0, -2.0], 0);
    problem.column(1.0, &[(0, 1.0), (1, -1.0)]);
    assert!(matches!(problem.solve(Solver::Interior), Err(LpError::Stuck { .. })));
    assert_eq!(problem.solve(Solver::Simplex), Err(LpError::Infeasible));
}

#[test]
fn a_problem_without_an_end_is_refused() {
    let mut problem = Problem::new(vec![1.0], 0);
    problem.column(1.0, &[(0, -1.0)]);
    assert!(problem.solve(Solver::Interior).is_err());
    assert_eq!(problem.solve(Solver::Simplex), Err(LpError::Unbounded));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn solvers_agree(seed: u64, jobs in 1usize..40, types in 1usize..5, tight: bool) {
        let problem = level_problem(seed, jobs, types, tight);
        let interior = problem.solve(Solver::Interior).unwrap();
        let simplex = problem.solve(Solver::Simplex).unwrap();
        let off = (interior.objective - simplex.objective).abs() / (1.0 + simplex.objective);
        prop_assert!(off < 1e-7, "{} {}", interior.objective, simplex.objective);
        #[cfg(feature = "clarabel")]
        {
            let conic = problem.solve(Solver::Clarabel).unwrap();
            let off = (interior.objective - conic.objective).abs() / (1.0 + conic.objective);
            prop_assert!(off < 1e-6, "{} {}", interior.objective, conic.objective);
        }
    }
}
