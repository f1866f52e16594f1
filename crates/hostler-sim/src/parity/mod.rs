//! Published simulators, repeated to the printed digit.
//!
//! A parity world repeats the rounding, batching and physics of an original, mistakes included.
//! Engine, pipeline and policies are the ones that everything else uses.

pub mod gavel;
pub mod pai2020;
