//! Signals as jobs expect them: whoever started the agent may have had some ignored, as shells do
//! for what they start in the background, and what is ignored stays so in all that is started.
//!
//! A handler that does nothing is as good for the shim, and no program inherits it.

use std::io;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use rustix::process::Signal;

use crate::agent::processes;

/// Signals have numbers up to this one.
const LAST: i32 = 64;

/// Catches every signal that is ignored, so that tasks have it by default again. The mask of
/// blocked ones is emptied by whoever starts a program, and so is what Rust ignores by itself.
pub(super) fn catch_ignored() -> io::Result<()> {
    let mask = processes::ignored() & !bit(Signal::PIPE.as_raw());
    if mask == 0 {
        return Ok(());
    }
    // The handlers outlive the runtime, which only makes them.
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    for number in (1..=LAST).filter(|number| mask & bit(*number) != 0) {
        // The few that cannot be caught cannot be ignored either when they matter.
        let _ = signal(SignalKind::from_raw(number));
    }
    Ok(())
}

fn bit(number: i32) -> u64 {
    1 << (number - 1)
}
