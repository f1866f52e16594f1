//! What the definitions of this family have in common: the settings of rounds, and what is to be
//! known of a policy that shares time out.

use hostler_core::policy::{Need, Policy, PolicyDef, PolicySettings};

use super::rounds::Rounds;
use super::solver::FairQuestion;
use crate::allocate::Allocate;

/// A policy that shares time out.
pub(super) fn sharing_time<Config: PolicySettings>(
    kind: &'static str,
    summary: &'static str,
    make: impl Fn(Config) -> Result<Box<dyn Policy>, String> + Send + Sync + 'static,
) -> PolicyDef {
    PolicyDef {
        needs: vec![Need::Speeds],
        solve_gap: Some("gap_secs".into()),
        ..PolicyDef::new(kind, summary, make)
    }
}

/// A policy that shares time out by a rule without settings.
pub(super) fn sharing_time_by(
    kind: &'static str,
    summary: &'static str,
    rule: fn() -> Box<dyn Allocate>,
) -> PolicyDef {
    sharing_time(kind, summary, move |config: Config| {
        let question = FairQuestion { weighted: config.weighted, ..FairQuestion::new() };
        Ok(Box::new(Rounds::new(config.rules(true), question, move |_| rule())))
    })
}

/// Declares the settings of a policy of this family: those of rounds, and its own; how long rounds
/// are, how often it solves and where jobs go unless it is told otherwise.
macro_rules! round_settings {
    ($(#[$meta:meta])* struct $name:ident { $($own:tt)* }) => {
        crate::fair::settings::round_settings! {
            $(#[$meta])* struct $name for 360, 0 in Consolidate { $($own)* }
        }
    };
    ($(#[$meta:meta])* struct $name:ident for $secs:literal, $gap:literal in $place:ident { $($own:tt)* }) => {
        hostler_core::settings! {
            $(#[$meta])*
            struct $name {
                $($own)*
                /// Length of a round; turns are given anew at its end.
                round_secs: u64 = $secs,
                /// Least time between two solutions; 0 solves whenever something changed.
                gap_secs: u64 = $gap,
                /// Whether GPUs that become free inside a round are given to those who wait;
                /// without it nobody starts for the rest of a round only.
                reuse: bool = true,
                /// Whether priorities are weights: twice the priority, twice the share.
                weighted: bool = false,
                place: crate::place::PlaceRule = crate::place::PlaceRule::$place,
                /// Whose run times it goes by.
                estimate: hostler_core::predict::EstimateSource =
                    hostler_core::predict::EstimateSource::User,
            }
        }

        impl $name {
            /// How rounds go; `fillers` lets teams without a share take what is left.
            fn rules(&self, fillers: bool) -> crate::fair::rounds::Rules {
                let round = hostler_core::units::Span::from_secs(self.round_secs.max(1));
                crate::fair::rounds::Rules {
                    round,
                    gap: hostler_core::units::Span::from_secs(self.gap_secs),
                    reuse: self.reuse,
                    ranking: crate::fair::pick::Ranking {
                        head_start: hostler_core::units::Span(round.0 / 2),
                        fillers,
                    },
                    dealing: Box::new(crate::fair::ByTier),
                    place: self.place.build(),
                    moves: false,
                    estimates: self.estimate,
                }
            }
        }
    };
}
pub(super) use round_settings;

round_settings! {
    struct Config {
    }
}
