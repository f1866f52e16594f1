//! Load balancing alone: first in, first out onto the nodes that are booked the least.
//!
//! The baseline of `pai`. GPUs, CPU and memory count alike; GPU models are not told apart, so jobs
//! that any GPU would serve take high-end ones. Needs no estimate and never preempts.

use hostler_core::policy::PolicyDef;

use super::fifo::placing;
use crate::place::balance::Balance;

/// First in, first out; the least booked nodes by GPU, CPU and memory.
pub fn def() -> PolicyDef {
    let summary = "first in, first out; the least booked nodes by GPU, CPU and memory";
    placing("load-balance", summary, || Box::new(Balance { with_gpus: true }))
}
