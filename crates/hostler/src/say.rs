//! Words for people on stderr, and results on stdout.

use std::fmt::Display;
use std::io::Write;

/// Prints a line for people. That nobody reads it is no reason to stop.
pub fn say(words: impl Display) {
    let _ = writeln!(std::io::stderr(), "{words}");
}

/// Prints a line of a result. Whoever has read enough (`hostler queue | head`) ends the command
/// quietly: `println!` would panic.
pub fn print(line: impl Display) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
