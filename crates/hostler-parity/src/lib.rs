//! Published simulators, repeated in worlds of their own through the engine of this project.
//!
//! Each world tells its facts and carries decisions out as its original does, and so gives the
//! numbers that others printed. Whatever only such a comparison needs is here: production crates
//! do not know this one.

pub mod blox;
pub mod gavel;
mod limits;
pub mod pai2020;
mod self_dual;
pub mod tiresias;
mod twister;
