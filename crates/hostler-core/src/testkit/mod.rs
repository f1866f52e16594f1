//! What unit tests share: clusters and jobs in a few words, an engine whose policy does what the
//! test says, and states and decisions as text.

mod facts;
mod spec;
mod text;
mod world;

pub(crate) use facts::*;
pub(crate) use spec::asks;
pub(crate) use text::decided;
pub(crate) use world::{Act, World};
