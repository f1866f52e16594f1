//! What facts and decisions do to the state.

mod accounts;
mod adopted;
mod gates;
mod gates_walk;
mod late;
mod ledger;
mod nodes;
mod parked;
mod profiles;
mod stays;
mod suspensions;
mod turns;
mod windows;
