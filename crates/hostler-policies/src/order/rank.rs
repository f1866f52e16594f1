//! What the policies that rank by run time have in common. No policy of its own.

use hostler_core::pipeline::Preempt;
use hostler_core::units::Span;

/// The rank of a run time; jobs for which nobody knows one come last.
pub(super) fn key_of(run: Option<Span>) -> i64 {
    run.map_or(i64::MAX, |run| i64::try_from(run.0).unwrap_or(i64::MAX))
}

/// The setting `preempt`, as the pipeline takes it.
pub(super) fn by_rank_if(preempt: bool) -> Preempt {
    if preempt { Preempt::ByRank } else { Preempt::Never }
}

/// Declares the settings of a policy that ranks by run time: its own, of which one is `preempt`,
/// and the others.
macro_rules! run_time_settings {
    (struct $name:ident { $($own:tt)* }) => {
        hostler_core::settings! {
            struct $name {
                $($own)*
                estimate: hostler_core::predict::EstimateSource =
                    hostler_core::predict::EstimateSource::Oracle,
                head: hostler_core::pipeline::Head = hostler_core::pipeline::Head::Skips,
                place: crate::place::PlaceRule = crate::place::PlaceRule::BestFit,
                fair_share_days: hostler_core::pipeline::HalfLifeDays =
                    hostler_core::pipeline::HalfLifeDays::default(),
                sharing: hostler_core::pipeline::ShareRule =
                    hostler_core::pipeline::ShareRule::Requests,
            }
        }

        impl $name {
            /// The policy that ranks like this.
            fn pipeline(
                self,
                order: impl hostler_core::stage::Order + 'static,
            ) -> Box<dyn hostler_core::policy::Policy> {
                let pipeline = hostler_core::pipeline::Pipeline {
                    head: self.head,
                    preempt: crate::order::rank::by_rank_if(self.preempt),
                    sharing: self.sharing,
                    estimates: self.estimate,
                    ..hostler_core::pipeline::Pipeline::new(order, self.place.build())
                };
                Box::new(pipeline.with_fair_share(self.fair_share_days))
            }
        }
    };
}
pub(super) use run_time_settings;
