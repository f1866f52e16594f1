//! Faults of a start that no other try would mend: the job names what is not there, or not for it.

use std::io;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refusal(String);

/// A fault that ends the job.
pub(super) fn refused(words: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, Refusal(words))
}

/// Whether a fault ends the job.
pub(super) fn is_refusal(fault: &io::Error) -> bool {
    fault.get_ref().is_some_and(|inner| inner.is::<Refusal>())
}
