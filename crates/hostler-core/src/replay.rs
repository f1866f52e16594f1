//! Reading a log again: folding it to its state and, if wanted, asking the policy again.

use crate::border::{self, Refused};
use crate::capacity::Refusal;
use crate::decision::Decision;
use crate::engine::{Engine, Proposal};
use crate::event::Event;
use crate::record::Record;
use crate::units::Time;
use crate::verify::{Violation, verify};
use crate::watch::Watch;

/// A log that is being read again.
pub struct Replay<Watcher> {
    engine: Engine<Watcher>,
    ask_again: bool,
    proposed: Option<Proposal>,
    /// Records read.
    pub records: u64,
    /// Decisions compared.
    pub compared: u64,
}

/// Why a log cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// A fact makes no sense after those before it.
    #[error("record {record}: {fault}")]
    Fact {
        /// Number of the record, from one.
        record: u64,
        /// What is wrong with it.
        fault: Refused,
    },
    /// A decision breaks a rule of the cluster.
    #[error("record {record}: {fault}")]
    Decision {
        /// Number of the record, from one.
        record: u64,
        /// What is wrong with it.
        fault: Violation,
    },
    /// A decision books what is taken.
    #[error("record {record}: {fault}")]
    Taken {
        /// Number of the record, from one.
        record: u64,
        /// What is taken.
        fault: Refusal,
    },
    /// Facts and decisions do not alternate, or the times do not agree.
    #[error("record {record}: facts and the decisions on them do not go together")]
    Order {
        /// Number of the record, from one.
        record: u64,
    },
    /// The policy decided otherwise this time.
    #[error("record {record}: the policy decides otherwise this time")]
    Mismatch {
        /// Number of the record, from one.
        record: u64,
        /// What the log says.
        logged: Vec<Decision>,
        /// What the policy says now.
        again: Vec<Decision>,
    },
}

impl<Watcher: Watch> Replay<Watcher> {
    /// Reads into `engine`, whose policy is asked again if `ask_again`.
    pub fn new(engine: Engine<Watcher>, ask_again: bool) -> Replay<Watcher> {
        Replay { engine, ask_again, proposed: None, records: 0, compared: 0 }
    }

    /// Takes the next record, which may come from anywhere: what makes no sense is refused and
    /// changes nothing.
    pub fn feed(&mut self, record: &Record) -> Result<(), ReplayError> {
        self.records += 1;
        let number = self.records;
        let proposed = self.proposed.take();
        // Every instant of facts has its decisions, if only none.
        let in_order = match record {
            Record::Input { .. } => proposed.is_none(),
            Record::Output { at, .. } => {
                *at == self.engine.state().now() && (proposed.is_some() || !self.ask_again)
            }
        };
        if !in_order {
            return Err(ReplayError::Order { record: number });
        }
        match record {
            Record::Input { at, events } => self.take_in(*at, events)?,
            Record::Output { asked, decisions, .. } => {
                verify(self.engine.state(), decisions)
                    .map_err(|fault| ReplayError::Decision { record: number, fault })?;
                self.engine
                    .check_free(decisions)
                    .map_err(|fault| ReplayError::Taken { record: number, fault })?;
                if let Some(again) = proposed {
                    self.compared += decisions.len() as u64;
                    if (*asked, decisions) != (again.asked, &again.decisions) {
                        let (logged, again) = (decisions.clone(), again.decisions);
                        return Err(ReplayError::Mismatch { record: number, logged, again });
                    }
                }
                self.engine.fold(record);
            }
        }
        if self.ask_again && matches!(record, Record::Input { .. }) {
            self.proposed = Some(self.engine.propose());
        }
        Ok(())
    }

    /// Facts of one record may build on each other, so each is checked when its turn comes.
    fn take_in(&mut self, at: Time, events: &[Event]) -> Result<(), ReplayError> {
        self.engine.fold_begin(at);
        for event in events {
            border::check(self.engine.state(), event)
                .map_err(|fault| ReplayError::Fact { record: self.records, fault })?;
            self.engine.apply_fact(event);
        }
        Ok(())
    }

    /// The engine, at the end.
    pub fn into_engine(self) -> Engine<Watcher> {
        self.engine
    }
}

#[cfg(test)]
mod tests;
