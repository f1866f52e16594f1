//! Words for people, on stderr. Results do not go here.

use std::fmt::Display;
use std::io::Write;

/// Prints a line. That nobody reads it is no reason to stop.
pub fn say(words: impl Display) {
    let _ = writeln!(std::io::stderr(), "{words}");
}
