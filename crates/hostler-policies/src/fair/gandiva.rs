//! Time slices and introspection, after Gandiva (Xiao and others, OSDI 2018).
//!
//! Everybody has the same part of the time, in slices of a round each; who gives way is suspended
//! where that can be done. While jobs ask for more GPUs than there are, those that are willing to
//! share are put in pairs: two kinds that nobody saw together are tried, what they do beside each
//! other is learnt as all speeds are, and they go on sharing only if that beats taking turns.
//! Tasks on several nodes that lose by it are moved together, and jobs off a node that others need
//! whole. Knows nothing of run times.

use hostler_core::policy::PolicyDef;

use super::rounds::{Rounds, Rules};
use super::settings::{round_settings, sharing_time};
use super::solver::FairQuestion;
use crate::allocate::TimeSlices;

/// Slices, pairs and moves.
pub fn def() -> PolicyDef {
    let summary =
        "equal slices of time; who does well beside each other shares GPUs, and jobs move";
    sharing_time("gandiva", summary, |config: Config| {
        let Config { packed, weighted, .. } = config;
        let question =
            FairQuestion { packed, hopeful: packed, weighted, alone: None, ..FairQuestion::new() };
        let rules = Rules { moves: config.migrate, ..config.rules(true) };
        Ok(Box::new(Rounds::new(rules, question, move |_| Box::new(TimeSlices { packed }))))
    })
}

round_settings! {
    struct Config for 60, 60 in Affinity {
        /// Whether jobs that are willing share GPUs where that beats taking turns.
        packed: bool = true,
        /// Whether jobs are moved to other nodes.
        migrate: bool = true,
    }
}
