//! Predictors: what is believed about jobs before they have run.
//!
//! One file for each predictor; all implement [`hostler_core::predict::Predict`]. They learn from
//! jobs that finished and never see the truth of others: that lives in the simulator. Reading
//! files and judging how good a predictor was is left to callers.

pub mod durations;
pub mod limits;

pub use durations::MedianRun;
