//! Predictors: what is believed about jobs before they have run.
//!
//! One file for each predictor; all implement [`hostler_core::predict::Predict`]. They learn from
//! jobs that finished and never see the truth of others: that lives in the simulator. Reading
//! files is left to callers.

pub mod blend;
pub mod cart;
pub mod distorted;
pub mod durations;
pub mod evaluate;
pub mod features;
pub mod frozen;
pub mod limits;
pub mod medians;
pub mod pair_estimates;
pub mod pairs;
pub mod throughput;
pub mod trained;
pub mod tree;
mod waiting;

pub use blend::BlendRun;
pub use cart::CartRun;
pub use distorted::Distortion;
pub use durations::MedianRun;
pub use features::{FeatureSet, Features, Learner, Lesson};
pub use frozen::Frozen;
pub use pair_estimates::{EstimatedPairs, TooManyPairs};
pub use pairs::PairTable;
pub use throughput::{ObservedSpeeds, Speeds, WithSpeeds};
pub use trained::{ModelFile, Trained};
