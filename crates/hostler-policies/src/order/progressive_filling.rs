//! Progressive filling: first in, first out onto the nodes whose GPUs are booked the least.
//!
//! A baseline of `pai`. Differs from `load-balance` in that CPU and memory do not count. Needs no
//! estimate and never preempts.

use hostler_core::policy::PolicyDef;

use super::fifo::placing;
use crate::place::progressive::Progressive;

/// First in, first out; the nodes with the least used GPUs.
pub fn def() -> PolicyDef {
    let summary = "first in, first out; the nodes with the least used GPUs";
    placing("progressive-filling", summary, || Box::new(Progressive))
}
