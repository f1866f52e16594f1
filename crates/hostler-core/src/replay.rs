//! Reading a log again: folding it to its state and, if wanted, asking the policy again.

use crate::decision::Decision;
use crate::engine::Engine;
use crate::record::Record;
use crate::watch::Watch;

/// A log that is being read again.
pub struct Replay<Watcher> {
    engine: Engine<Watcher>,
    ask_again: bool,
    proposed: Option<(bool, Vec<Decision>)>,
    /// Records read.
    pub records: u64,
    /// Decisions compared.
    pub compared: u64,
}

/// The policy decided otherwise this time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Number of the record, from one.
    pub record: u64,
    /// What the log says.
    pub logged: Vec<Decision>,
    /// What the policy says now.
    pub again: Vec<Decision>,
}

impl<Watcher: Watch> Replay<Watcher> {
    /// Reads into `engine`, whose policy is asked again if `ask_again`.
    pub fn new(engine: Engine<Watcher>, ask_again: bool) -> Replay<Watcher> {
        Replay { engine, ask_again, proposed: None, records: 0, compared: 0 }
    }

    /// Takes the next record. What is logged takes effect, whatever the policy says now.
    pub fn feed(&mut self, record: &Record) -> Result<(), Mismatch> {
        self.records += 1;
        let proposed = self.proposed.take();
        let mut result = Ok(());
        if let (Record::Output { asked, decisions, .. }, Some((again_asked, again))) =
            (record, proposed)
        {
            self.compared += decisions.len() as u64;
            if (*asked, decisions) != (again_asked, &again) {
                let logged = decisions.clone();
                result = Err(Mismatch { record: self.records, logged, again });
            }
        }
        self.engine.fold(record);
        if self.ask_again && matches!(record, Record::Input { .. }) {
            self.proposed = Some(self.engine.propose());
        }
        result
    }

    /// The engine, at the end.
    pub fn into_engine(self) -> Engine<Watcher> {
        self.engine
    }
}
