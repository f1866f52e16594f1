//! The terminal of the person: its size, and as it must be while its keys go to a job.

use std::io::{IsTerminal, stdin, stdout};

use hostler_live::stream::TerminalSize;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// What terminals have that do not say.
const USUAL: TerminalSize = TerminalSize { columns: 80, rows: 24 };

/// Whether a person sits at both ends of this command.
pub fn is_there() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Its size now.
pub fn size() -> TerminalSize {
    let found = tcgetwinsize(stdout()).ok();
    let found = found.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    found.map_or(USUAL, |size| TerminalSize { columns: size.ws_col, rows: size.ws_row })
}

/// A terminal that passes every key on; it is put right again at the end.
pub struct Raw(Termios);

impl Raw {
    /// Makes the terminal so, if there is one.
    pub fn set() -> Option<Raw> {
        let before = tcgetattr(stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Drain, &raw).ok()?;
        Some(Raw(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &self.0);
    }
}

/// The key that says that the next one is for this command: Ctrl-].
const ESCAPE: u8 = 0x1d;

/// Looks for the keys by which a person leaves.
#[derive(Debug, Default)]
pub struct Keys {
    escaped: bool,
}

impl Keys {
    /// What of these keys goes to the job, and whether the person leaves behind them. Ctrl-] twice
    /// is one for the job, and so are both when another key than `d` follows.
    pub fn take(&mut self, keys: &[u8]) -> (Vec<u8>, bool) {
        let mut rest = Vec::with_capacity(keys.len());
        for key in keys {
            match (std::mem::take(&mut self.escaped), *key) {
                (true, b'd' | b'D') => return (rest, true),
                (true, ESCAPE) => rest.push(ESCAPE),
                (true, key) => rest.extend([ESCAPE, key]),
                (false, ESCAPE) => self.escaped = true,
                (false, key) => rest.push(key),
            }
        }
        (rest, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_two_keys_leave() {
        let mut keys = Keys::default();
        assert_eq!(keys.take(b"abc"), (b"abc".to_vec(), false));
        assert_eq!(keys.take(b"a\x1dx\x1d\x1db"), (b"a\x1dx\x1db".to_vec(), false));
        assert_eq!(keys.take(b"a\x1d"), (b"a".to_vec(), false));
        assert_eq!(keys.take(b"d rest"), (Vec::new(), true));
        assert_eq!(keys.take(b"d"), (b"d".to_vec(), false));
    }
}
