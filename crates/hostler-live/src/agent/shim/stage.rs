//! How the stage of a task becomes the job's user: the one place where rights are dropped.
//!
//! A stage begins with the rights of the shim and an empty environment, gives up all of them,
//! enters the job's folder with the rights of the job's user alone, and says so. From then on only
//! those can reach into it whom the kernel would let trace a process that changed its user: nobody
//! but root.

use std::io::{self, Read, Write as _};
use std::path::PathBuf;

use rustix::fs::Mode;
use rustix::thread::{CapabilitySet, CapabilitySets};
use serde::{Deserialize, Serialize};

use super::ShimOrder;
use crate::agent::refusal::refused;
use crate::agent::user::{Identity, is_root};

/// What a stage says first: it is what it should be, or could not do one of these two. The number
/// of the error follows, in as many digits; all of it passes a terminal as it is.
const READY: u8 = b'r';
const NOT_THE_USER: u8 = b'u';
const NOT_IN_FOLDER: u8 = b'f';
const ERROR_DIGITS: usize = 4;

/// What files of a job are not open for, where nothing is said: writing by others.
const USUAL_UMASK: u32 = 0o022;

/// What to do about a folder that is not there, or not for the user.
const ANOTHER_FOLDER: &str = "name one that nodes share with `--workdir DIR`, or take `--workdir \
                              private` for a folder of the job's own";

/// Where the command of a stage gets its input from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StageInput {
    /// It has none.
    None,
    /// What follows the variables.
    Pipe,
    /// Its terminal, which it also writes to.
    Terminal,
}

/// What a stage is told besides its command, as an argument: nothing in it is secret.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct StageOrder {
    /// Who it becomes; it stays who it is when none.
    user: Option<Identity>,
    /// Where the command runs.
    workdir: PathBuf,
    /// What its files are not open for.
    umask: u32,
    /// Where its input comes from.
    input: StageInput,
}

impl StageOrder {
    /// What a stage of a lease is told.
    pub(super) fn of(shim: &ShimOrder, input: StageInput) -> StageOrder {
        let user = shim.user.as_ref().filter(|_| is_root()).map(|user| user.identity());
        let umask = shim.order.umask.unwrap_or(USUAL_UMASK) & 0o777;
        StageOrder { user, workdir: shim.workdir.clone(), umask, input }
    }

    /// The same as one word.
    pub(super) fn words(&self) -> String {
        serde_json::to_string(self).expect("the folder was text in the order")
    }

    fn carry_out(&self) -> Result<(), (u8, io::Error)> {
        // Before there is a process of the user: no program that it runs gives it more rights.
        let user = rustix::thread::set_no_new_privs(true)
            .map_err(io::Error::from)
            .and_then(|()| self.user.as_ref().map_or(Ok(()), Identity::assume))
            .and_then(|()| drop_rights());
        user.map_err(|fault| (NOT_THE_USER, fault))?;
        std::env::set_current_dir(&self.workdir).map_err(|fault| (NOT_IN_FOLDER, fault))?;
        rustix::process::umask(Mode::from_bits_truncate(self.umask));
        Ok(())
    }
}

/// Gives up all that the job must not have, goes to where it runs, and tells the shim. None when
/// that failed: nothing of the job may be run then. Otherwise where its input comes from.
pub(super) fn take_on(order: &str) -> Option<StageInput> {
    let order: StageOrder = serde_json::from_str(order).ok()?;
    let (word, number) = match order.carry_out() {
        Ok(()) => (READY, 0),
        Err((word, fault)) => (word, fault.raw_os_error().unwrap_or(0)),
    };
    let answer = format!("{}{number:0ERROR_DIGITS$}", char::from(word));
    let mut out = io::stdout();
    let told = out.write_all(answer.as_bytes()).and_then(|()| out.flush());
    (word == READY && told.is_ok()).then_some(order.input)
}

/// Waits until a stage has become what it should be, by what it says first on its output.
pub(super) fn await_ready(shim: &ShimOrder, said: &mut impl Read) -> io::Result<()> {
    let mut answer = [0; 1 + ERROR_DIGITS];
    said.read_exact(&mut answer)
        .map_err(|_| io::Error::other("its first process ended before it was anybody's"))?;
    let [word, number @ ..] = answer;
    if word == READY {
        return Ok(());
    }
    let number = std::str::from_utf8(&number).ok().and_then(|text| text.parse().ok());
    let fault = match number.filter(|number| *number != 0) {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::other("it is not told why"),
    };
    let user = shim.user.as_ref().map_or("the agent's user", |user| &user.name);
    if word != NOT_IN_FOLDER {
        return Err(io::Error::other(format!("cannot start as `{user}`: {fault}")));
    }
    let words = format!("cannot start in `{}` as `{user}`: {fault}", shim.workdir.display());
    let missing = matches!(
        fault.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidFilename
    );
    if missing && !shim.order.workdir.is_empty() {
        // It is not there on the next try either.
        return Err(refused(format!("{words}; {ANOTHER_FOLDER}")));
    }
    Err(io::Error::new(fault.kind(), words))
}

/// Gives up what is left besides the user. What the shim gave up it does not have either; this
/// holds for a stage whoever started it.
fn drop_rights() -> io::Result<()> {
    if !rustix::process::getuid().is_root() {
        // An agent may have been given some without being root.
        rustix::thread::clear_ambient_capability_set()?;
        let none = CapabilitySet::empty();
        let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
        rustix::thread::set_capabilities(None, none)?;
    }
    Ok(())
}
