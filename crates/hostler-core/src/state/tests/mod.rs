//! What facts and decisions do to the state.

mod gates;
mod gates_walk;
