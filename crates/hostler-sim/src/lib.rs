//! Placeholder crate root.

pub mod report;
