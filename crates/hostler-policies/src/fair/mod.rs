//! Policies that share time out: a solver says which part of its time each job should spend on
//! which GPU model, and rounds turn that into stays.
//!
//! After "Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads" (OSDI'20).
//! The mathematics is in `allocate`; what is here asks the question and carries the answer out.
//! `Rounds` is the mechanism; it can be made of other parts than the policies below are. `gandiva`
//! gives equal slices, and says which pairs to try; `themis` is fair by leases, and has neither
//! solver nor rounds.

mod dealing;
mod lines;
mod moves;
mod new_round;
mod options;
mod pick;
mod roster;
mod rounds;
mod seats;
mod settings;
mod solver;

pub use dealing::{ByTier, Dealing};
pub use options::{Prices, TenantRule};
use options::{by_name, rate_knowledge};
pub use pick::Ranking;
pub use rounds::{Rounds, Rules};
pub use solver::{Alone, FairQuestion};

policies![
    allox,
    fifo_fastest,
    finish_time_fairness,
    first_finish,
    gandiva,
    isolated,
    makespan,
    max_min_fairness,
    max_throughput,
    proportional,
    strategy_proof,
    themis,
    water_filling,
];
