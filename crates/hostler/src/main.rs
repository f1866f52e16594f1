//! The `hostler` program.

fn main() {}
