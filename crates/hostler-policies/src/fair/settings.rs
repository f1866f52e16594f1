//! Settings that all policies of this family have: how rounds go.

/// Declares the settings of a policy of this family: those of rounds, and its own.
macro_rules! round_settings {
    ($(#[$meta:meta])* struct $name:ident { $($own:tt)* }) => {
        hostler_core::settings! {
            $(#[$meta])*
            struct $name {
                $($own)*
                /// Length of a round; turns are given anew at its end.
                round_secs: u64 = 360,
                /// Least time between two solutions; 0 solves whenever something changed.
                gap_secs: u64 = 0,
                /// Whether GPUs that become free inside a round are given to those who wait;
                /// without it nobody starts for the rest of a round only.
                reuse: bool = true,
                /// Whether priorities are weights: twice the priority, twice the share.
                weighted: bool = false,
                /// Which nodes a job gets.
                place: crate::place::PlaceRule = crate::place::PlaceRule::Consolidate,
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
                    estimates: self.estimate,
                }
            }
        }
    };
}
pub(super) use round_settings;
