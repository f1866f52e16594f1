//! The functions of the driver's library that are called, as C has them.
//!
//! `CUresult cuCheckpointProcess*(int pid, Args*)`: the arguments may be null, but for a lock,
//! whose first word is a time limit. Declared in `cuda.h` of CUDA 12.8 and newer.
#![allow(unsafe_code, reason = "a library that is found at run time can be called in no other way")]

use std::ffi::{c_int, c_uint, c_void};

use super::{Answer, CudaError};

/// File name of the library, as the driver installs it.
const FILE: &str = "libcuda.so.1";

type Init = unsafe extern "C" fn(flags: c_uint) -> c_uint;
type State = unsafe extern "C" fn(pid: c_int, state: *mut c_int) -> c_uint;
type Lock = unsafe extern "C" fn(pid: c_int, args: *mut LockArgs) -> c_uint;
type Step = unsafe extern "C" fn(pid: c_int, args: *mut c_void) -> c_uint;

/// `CUcheckpointLockArgs`.
#[repr(C)]
struct LockArgs {
    timeout_ms: c_uint,
    reserved: c_uint,
    more: [u64; 7],
}

/// The functions. They are valid for as long as the library is loaded, which is as long as this.
#[derive(Debug)]
pub(super) struct Library {
    init: Init,
    state: State,
    lock: Lock,
    save: Step,
    load_back: Step,
    unlock: Step,
    _library: libloading::Library,
}

impl Library {
    pub(super) fn load() -> Result<Library, CudaError> {
        // SAFETY: the constructors of NVIDIA's library have no conditions on who loads it.
        let library = unsafe { libloading::Library::new(FILE) };
        let library = library.map_err(|fault| CudaError::NoLibrary(fault.to_string()))?;
        // SAFETY: the signature of each is that of `cuda.h`; so for those below.
        let init = unsafe { function::<Init>(&library, "cuInit") }?;
        // SAFETY: as above.
        let state = unsafe { function::<State>(&library, "cuCheckpointProcessGetState") }?;
        // SAFETY: as above.
        let lock = unsafe { function::<Lock>(&library, "cuCheckpointProcessLock") }?;
        // SAFETY: as above; its arguments are a pointer to a struct that may be null.
        let save = unsafe { function::<Step>(&library, "cuCheckpointProcessCheckpoint") }?;
        // SAFETY: as above.
        let load_back = unsafe { function::<Step>(&library, "cuCheckpointProcessRestore") }?;
        // SAFETY: as above.
        let unlock = unsafe { function::<Step>(&library, "cuCheckpointProcessUnlock") }?;
        Ok(Library { init, state, lock, save, load_back, unlock, _library: library })
    }

    pub(super) fn init(&self) -> Result<(), Answer> {
        // SAFETY: takes a number, which must be zero.
        answer(unsafe { (self.init)(0) })
    }

    pub(super) fn state(&self, pid: u32) -> Result<c_int, Answer> {
        let mut state: c_int = -1;
        // SAFETY: writes one `int` (an enumeration of C) to a place that outlives the call.
        answer(unsafe { (self.state)(pid as c_int, &raw mut state) })?;
        Ok(state)
    }

    pub(super) fn lock(&self, pid: u32, timeout_ms: u32) -> Result<(), Answer> {
        let mut args = LockArgs { timeout_ms, reserved: 0, more: [0; 7] };
        // SAFETY: reads a struct of 64 bytes that outlives the call, with zeros where they must be.
        answer(unsafe { (self.lock)(pid as c_int, &raw mut args) })
    }

    pub(super) fn save(&self, pid: u32) -> Result<(), Answer> {
        // SAFETY: without arguments it takes a null pointer.
        answer(unsafe { (self.save)(pid as c_int, std::ptr::null_mut()) })
    }

    pub(super) fn load_back(&self, pid: u32) -> Result<(), Answer> {
        // SAFETY: without arguments it takes a null pointer.
        answer(unsafe { (self.load_back)(pid as c_int, std::ptr::null_mut()) })
    }

    pub(super) fn unlock(&self, pid: u32) -> Result<(), Answer> {
        // SAFETY: without arguments it takes a null pointer.
        answer(unsafe { (self.unlock)(pid as c_int, std::ptr::null_mut()) })
    }
}

fn answer(code: c_uint) -> Result<(), Answer> {
    if code == 0 { Ok(()) } else { Err(Answer(code)) }
}

/// A function of the library.
///
/// # Safety
///
/// Its type must be that of the function which has this name.
unsafe fn function<F: Copy>(
    library: &libloading::Library,
    name: &'static str,
) -> Result<F, CudaError> {
    // SAFETY: the caller knows the type.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    found.map(|symbol| *symbol).map_err(|_| CudaError::TooOld(name))
}
