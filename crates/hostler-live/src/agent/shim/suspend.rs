//! Suspending the tasks of a lease: what they have on GPUs goes to main memory, then every process
//! stands still; and back again.
//!
//! The driver of the GPUs moves the memory, process by process, from a thread of its own: it may
//! take a minute, in which the shim must go on. All of them move or none does. Where no process has
//! a GPU open there is nothing to move, and standing still is all.

use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use hostler_core::id::LeaseId;
use hostler_cuda::{CudaError, Driver};

use super::Happened;
use crate::agent::processes::{self, Process};

/// Looks for processes that do not stand still yet, and milliseconds between two of them: what is
/// started while others are stopped is found by the next.
const HALTS_MAX: u32 = 50;
const HALT_MS: u64 = 10;

/// Where the tasks are.
#[derive(Debug, Default)]
pub(super) enum Whereabouts {
    /// On their GPUs.
    #[default]
    Here,
    /// On the way to main memory; and for which lease they are to come back as soon as they are
    /// there, if they are.
    Leaving(Option<LeaseId>),
    /// In main memory.
    Away(Away),
    /// On the way back.
    Returning {
        /// Whether for another lease than they left for.
        anew: bool,
    },
}

/// Tasks that stand still.
#[derive(Debug)]
pub(super) struct Away {
    /// Processes that had something on GPUs.
    moved: Vec<u32>,
}

/// Begins to suspend everything below the shim; `Happened::Left` says what came of it.
pub(super) fn leave(family: fn() -> Vec<Process>, happened: SyncSender<Happened>) {
    thread::spawn(move || {
        let left = move_out(&family()).and_then(|away| {
            match halt(family).and_then(|()| nothing_left(&family(), &away.moved)) {
                Ok(()) => Ok(away),
                Err(fault) => {
                    let_go(&family());
                    Err(move_back(&away.moved).err().map_or(fault, |worse| worse.to_string()))
                }
            }
        });
        // A shim that has ended does not care.
        let _ = happened.send(Happened::Left(left));
    });
}

/// Begins to let everything go on; `Happened::Back` says what came of it.
pub(super) fn come_back(away: Away, family: fn() -> Vec<Process>, happened: SyncSender<Happened>) {
    thread::spawn(move || {
        let_go(&family());
        let back = move_back(&away.moved).map_err(|fault| fault.to_string());
        let _ = happened.send(Happened::Back(back));
    });
}

/// Moves what all processes have on GPUs to main memory, or nothing.
fn move_out(family: &[Process]) -> Result<Away, String> {
    let users = gpu_users(family)?;
    if !users.is_empty() {
        move_all(&users).map_err(|fault| fault.to_string())?;
    }
    Ok(Away { moved: users })
}

/// Processes that have a GPU open.
fn gpu_users(family: &[Process]) -> Result<Vec<u32>, String> {
    let mut users = Vec::new();
    for Process { pid, .. } in family {
        match processes::holds_gpu(*pid) {
            Some(true) => users.push(*pid),
            Some(false) => {}
            None => return Err(format!("it cannot be seen whether process {pid} uses a GPU")),
        }
    }
    Ok(users)
}

/// Whoever comes next finds the GPUs empty: what was started while others moved was not moved.
fn nothing_left(family: &[Process], moved: &[u32]) -> Result<(), String> {
    match gpu_users(family)?.into_iter().find(|pid| !moved.contains(pid)) {
        Some(pid) => Err(format!("process {pid} began to use a GPU meanwhile")),
        None => Ok(()),
    }
}

fn move_all(users: &[u32]) -> Result<(), CudaError> {
    let driver = Driver::load()?;
    // All stand still before the first one moves: they may wait for each other on the GPU.
    for (at, pid) in users.iter().enumerate() {
        if let Err(fault) = driver.lock(*pid) {
            users[..at].iter().for_each(|pid| _ = driver.unlock(*pid));
            return Err(fault);
        }
    }
    for (at, pid) in users.iter().enumerate() {
        if let Err(fault) = driver.save(*pid) {
            users[..at].iter().for_each(|pid| _ = driver.load_back(*pid));
            users.iter().for_each(|pid| _ = driver.unlock(*pid));
            return Err(fault);
        }
    }
    Ok(())
}

fn move_back(moved: &[u32]) -> Result<(), CudaError> {
    if moved.is_empty() {
        return Ok(());
    }
    let driver = Driver::load()?;
    moved.iter().try_for_each(|pid| driver.load_back(*pid))?;
    moved.iter().try_for_each(|pid| driver.unlock(*pid))
}

/// Stops every process, also those that are started meanwhile. The cores are for others now.
fn halt(family: fn() -> Vec<Process>) -> Result<(), String> {
    for _ in 0..HALTS_MAX {
        let all = family();
        let mut active = all.iter().filter(|process| !process.stopped).peekable();
        if active.peek().is_none() {
            return Ok(());
        }
        active.for_each(|process| processes::signal(process.pid, Signal::STOP));
        thread::sleep(Duration::from_millis(HALT_MS));
    }
    Err("its processes do not stand still".to_owned())
}

fn let_go(family: &[Process]) {
    family.iter().for_each(|process| processes::signal(process.pid, Signal::CONT));
}
