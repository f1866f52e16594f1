//! What unit tests share: clusters and jobs in a few words, an engine whose policy does what the
//! test says, and states and decisions as text.

mod facts;
mod place;
mod schedule;
mod spec;
mod text;
mod world;

pub(crate) use facts::*;
pub(crate) use place::FirstFit;
pub(crate) use schedule::Schedule;
pub(crate) use spec::asks;
pub(crate) use text::decided;
pub(crate) use world::{Act, World};

/// What a broken invariant says.
pub(crate) fn panic_of(deed: impl FnOnce()) -> String {
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(deed));
    *panic.expect_err("nothing is broken").downcast().expect("panics say why")
}
