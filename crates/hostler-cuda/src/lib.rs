//! Suspends processes that use CUDA, from outside and without their help: what they have on GPUs
//! goes to their own main memory, and comes back later.
//!
//! The driver does it (version 570 or newer); its library is looked for at run time, so that
//! nothing of CUDA is needed to build or to run without GPUs. This is the only crate with unsafe
//! code: six functions of a C library. It knows processes by number and nothing of jobs.

mod library;

use std::fmt;

use library::Library;

/// The driver that a process can be suspended with; the oldest has these functions.
const DRIVER_MIN: &str = "570";

/// Milliseconds for calls that a process is in to come back before it is left alone.
const LOCK_MS_MAX: u32 = 10_000;

/// The driver of the GPUs of this machine.
#[derive(Debug)]
pub struct Driver {
    library: Library,
}

/// What the driver says of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// It works, or could.
    Running,
    /// Its calls wait.
    Locked,
    /// It has nothing on GPUs: all is in main memory.
    Suspended,
    /// It cannot go on.
    Failed,
}

/// Why a process is not suspended, or does not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CudaError {
    /// There is no driver.
    #[error("the library of the GPU driver cannot be loaded: {0}")]
    NoLibrary(String),
    /// It is too old.
    #[error("the GPU driver cannot suspend processes (no `{0}`); it takes {DRIVER_MIN} or newer")]
    TooOld(&'static str),
    /// It says no.
    #[error("`{call}` of process {pid}: {answer}")]
    Refused {
        /// What was asked for.
        call: &'static str,
        /// Of which process.
        pid: u32,
        /// What it said.
        answer: Answer,
    },
}

/// An answer of the driver other than that all is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer(u32);

impl Answer {
    /// It is a client of the multi-process service, or of something else that cannot be moved.
    const NOT_SUPPORTED: u32 = 801;
    /// Its calls did not come back in time.
    const NOT_READY: u32 = 600;
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Answer::NOT_SUPPORTED => {
                write!(f, "not supported, as under the multi-process service (801)")
            }
            Answer::NOT_READY => write!(f, "it was busy for {} s (600)", LOCK_MS_MAX / 1000),
            other => write!(f, "error {other} of the driver"),
        }
    }
}

impl Driver {
    /// Whether the driver of this machine can do it at all. Nothing of it stays loaded.
    pub fn check() -> Result<(), CudaError> {
        Library::load().map(drop)
    }

    /// Loads the driver's library and makes it ready.
    pub fn load() -> Result<Driver, CudaError> {
        let library = Library::load()?;
        library.init().map_err(|answer| CudaError::Refused { call: "init", pid: 0, answer })?;
        Ok(Driver { library })
    }

    /// What a process is doing; none when it uses no CUDA.
    pub fn state(&self, pid: u32) -> Option<ProcessState> {
        match self.library.state(pid) {
            Ok(0) => Some(ProcessState::Running),
            Ok(1) => Some(ProcessState::Locked),
            Ok(2) => Some(ProcessState::Suspended),
            // Newer drivers tell that they are at it; nobody else is while this one asks.
            Ok(_) => Some(ProcessState::Failed),
            Err(_) => None,
        }
    }

    /// Lets the calls of a process wait, so that it stands still for all others of its job.
    pub fn lock(&self, pid: u32) -> Result<(), CudaError> {
        let refused = |answer| CudaError::Refused { call: "lock", pid, answer };
        self.library.lock(pid, LOCK_MS_MAX).map_err(refused)
    }

    /// Moves what a locked process has on GPUs to its main memory.
    pub fn save(&self, pid: u32) -> Result<(), CudaError> {
        let refused = |answer| CudaError::Refused { call: "checkpoint", pid, answer };
        self.library.save(pid).map_err(refused)
    }

    /// Moves it back, onto the same GPUs.
    pub fn load_back(&self, pid: u32) -> Result<(), CudaError> {
        let refused = |answer| CudaError::Refused { call: "restore", pid, answer };
        self.library.load_back(pid).map_err(refused)
    }

    /// Lets the calls of a process go on.
    pub fn unlock(&self, pid: u32) -> Result<(), CudaError> {
        let refused = |answer| CudaError::Refused { call: "unlock", pid, answer };
        self.library.unlock(pid).map_err(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_the_driver_says_what_is_missing() {
        match Driver::load() {
            Ok(driver) => assert_eq!(driver.state(std::process::id()), None),
            Err(fault @ (CudaError::NoLibrary(_) | CudaError::TooOld(_))) => {
                assert!(fault.to_string().contains("driver"), "{fault}");
            }
            Err(fault @ CudaError::Refused { .. }) => {
                assert!(fault.to_string().starts_with("`init`"), "{fault}");
            }
        }
    }

    #[test]
    fn answers_are_told_in_words_where_people_can_do_something() {
        let refused = |code| CudaError::Refused { call: "lock", pid: 7, answer: Answer(code) };
        let text = refused(801).to_string();
        assert!(text.contains("`lock` of process 7") && text.contains("multi-process service"));
        assert!(refused(600).to_string().contains("busy for 10 s"));
        assert!(refused(999).to_string().ends_with("error 999 of the driver"));
    }
}
