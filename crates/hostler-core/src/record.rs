//! One entry of the log. Folding all of them gives the state.

use serde::{Deserialize, Serialize};

use crate::decision::Decision;
use crate::event::Event;
use crate::units::Time;

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "record")]
pub enum Record {
    /// Facts of one instant.
    Input {
        /// When they arrived.
        at: Time,
        /// The facts, in order.
        events: Vec<Event>,
    },
    /// What was decided on them.
    Output {
        /// When.
        at: Time,
        /// Whether the policy was asked (or only housekeeping spoke).
        asked: bool,
        /// The decisions, in order.
        decisions: Vec<Decision>,
    },
}
