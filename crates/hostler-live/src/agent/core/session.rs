//! One connection to the daemon: welcome, beats, silence.

use std::collections::VecDeque;

/// Milliseconds in which the daemon has to answer `Hello`.
const WELCOME_MS_MAX: u64 = 10_000;

/// Beats without an answer after which the connection is given up: one may be late, a daemon that
/// makes its log safe may pause for another.
const BEATS_SILENT_MAX: usize = 4;

/// A connection that stands.
#[derive(Debug)]
pub(super) struct Session {
    pub number: u64,
    /// When `Hello` was sent.
    hello_ms: u64,
    welcome: Option<Welcome>,
}

#[derive(Debug)]
struct Welcome {
    beat_ms: u64,
    fence_ms: u64,
    next_beat_ms: u64,
    next_number: u64,
    /// Beats without answer, with their sending times; oldest first.
    open: VecDeque<(u64, u64)>,
}

impl Session {
    pub fn new(number: u64, now_ms: u64) -> Session {
        Session { number, hello_ms: now_ms, welcome: None }
    }

    /// The daemon accepted the connection; gives when the greeting it answers was sent.
    pub fn welcome(&mut self, now_ms: u64, beat_ms: u64, fence_ms: u64) -> u64 {
        if self.welcome.is_none() {
            self.welcome = Some(Welcome {
                beat_ms: beat_ms.max(1),
                fence_ms,
                next_beat_ms: now_ms,
                next_number: 1,
                open: VecDeque::new(),
            });
        }
        self.hello_ms
    }

    /// The fence that the daemon named, once it accepted the connection.
    pub fn fence_ms(&self) -> Option<u64> {
        self.welcome.as_ref().map(|welcome| welcome.fence_ms)
    }

    /// A beat was answered; gives when it was sent. None for one answered before.
    pub fn beat_seen(&mut self, number: u64) -> Option<u64> {
        let open = &mut self.welcome.as_mut()?.open;
        let at = open.iter().position(|(sent, _)| *sent == number)?;
        open.drain(..=at).next_back().map(|(_, sent_ms)| sent_ms)
    }

    /// Why the connection is given up, if the daemon has been silent for too long.
    pub fn silence(&self, now_ms: u64) -> Option<String> {
        match &self.welcome {
            None if now_ms >= self.hello_ms + WELCOME_MS_MAX => {
                Some(format!("the daemon did not answer within {WELCOME_MS_MAX} ms"))
            }
            Some(welcome)
                if welcome.open.len() >= BEATS_SILENT_MAX && now_ms >= welcome.next_beat_ms =>
            {
                Some(format!("the daemon did not answer {BEATS_SILENT_MAX} beats"))
            }
            _ => None,
        }
    }

    /// The number of the beat that is due now.
    pub fn beat(&mut self, now_ms: u64) -> Option<u64> {
        let welcome = self.welcome.as_mut()?;
        if now_ms < welcome.next_beat_ms {
            return None;
        }
        let number = welcome.next_number;
        welcome.next_number += 1;
        welcome.next_beat_ms = now_ms + welcome.beat_ms;
        welcome.open.push_back((number, now_ms));
        Some(number)
    }

    /// When the next beat, or the end of patience, is due.
    pub fn wake_at(&self) -> u64 {
        match &self.welcome {
            None => self.hello_ms + WELCOME_MS_MAX,
            Some(welcome) => welcome.next_beat_ms,
        }
    }
}
