//! Reads of output that wait for an agent's answer.

use std::collections::BTreeMap;

use hostler_core::id::NodeId;
use hostler_core::units::{Span, Time};

use crate::driver::OutputRead;
use crate::host::{Answer, Desk, Effect, HostError, OutputPiece, SessionId};
use crate::limits::OUTPUT_WAITING_MAX;
use crate::wire::ToAgent;

/// How long a read of output waits for an agent.
const PATIENCE: Span = Span::from_secs(20);

/// All reads that wait.
#[derive(Default)]
pub(super) struct Reads {
    /// The slot, the connection and since when.
    waiting: BTreeMap<u64, (u64, SessionId, Time)>,
    last: u64,
}

impl Reads {
    /// Asks an agent.
    pub(super) fn ask(
        &mut self,
        desk: &mut Desk,
        session: SessionId,
        read: &OutputRead,
    ) -> Result<(), HostError> {
        if self.waiting.len() >= OUTPUT_WAITING_MAX {
            return Err(HostError::Busy);
        }
        self.last += 1;
        self.waiting.insert(self.last, (read.slot, session, desk.now()));
        let OutputRead { lease, rank, stream, offset, .. } = *read;
        let message = ToAgent::ReadOutput { request: self.last, lease, rank, stream, offset };
        desk.effect(Effect::Tell(session, message));
        Ok(())
    }

    /// Passes an answer on. Numbers of requests can be guessed: only the agent that was asked
    /// answers.
    pub(super) fn answer(
        &mut self,
        desk: &mut Desk,
        session: SessionId,
        request: u64,
        piece: Result<OutputPiece, String>,
    ) {
        let asked = self.waiting.get(&request).filter(|(_, asked, _)| *asked == session);
        let Some((slot, ..)) = asked.copied() else { return };
        self.waiting.remove(&request);
        let answer = piece.map(Answer::Output).map_err(|fault| HostError::NoOutput { fault });
        desk.effect(Effect::Reply(slot, answer));
    }

    /// Lets nobody wait for an agent that is gone or takes too long.
    pub(super) fn give_up_old(&mut self, desk: &mut Desk, sessions: &BTreeMap<SessionId, NodeId>) {
        let now = desk.now();
        self.waiting.retain(|_, (slot, session, since)| {
            let waits = now.since(*since) < PATIENCE && sessions.contains_key(session);
            if !waits {
                let fault = "its agent did not answer in time".to_owned();
                desk.effect(Effect::Reply(*slot, Err(HostError::NoOutput { fault })));
            }
            waits
        });
    }
}
