//! Settings that the policies of this family have in common.

/// Declares the settings of a policy of this family: those of reserving, its own, and what happens
/// behind a job that does not fit.
macro_rules! reserve_settings {
    (struct $name:ident { $($own:tt)* }) => {
        hostler_core::settings! {
            struct $name {
                /// Least speed-up on high-end GPUs that makes a job a high one.
                theta: f64 = 2.0,
                /// Wait after which the other jobs may use high-end GPUs too.
                reserve_secs: u64 = 3600,
                /// Part of the high-end GPUs that other jobs leave free before that.
                reserve_part: f64 = 0.1,
                /// Which machines come first for the other jobs.
                low_first: crate::reserve::class_access::LowFirst =
                    crate::reserve::class_access::LowFirst::LeastBooked,
                $($own)*
                head: hostler_core::pipeline::Head = hostler_core::pipeline::Head::Skips,
            }
        }

        impl $name {
            /// The policy, with a taste of its own.
            fn reserving(
                &self,
                taste: impl crate::reserve::place::CostModel + 'static,
            ) -> Result<Box<dyn hostler_core::policy::Policy>, String> {
                let rules = crate::reserve::class_access::Rules {
                    theta: self.theta,
                    reserve: hostler_core::units::Span::from_secs(self.reserve_secs),
                    part: self.reserve_part,
                    low_first: self.low_first,
                };
                let (rules, taste) = (rules.checked()?, Box::new(taste));
                Ok(Box::new(crate::reserve::pass::Reserving::new(rules, self.head, taste)))
            }
        }
    };
}
pub(super) use reserve_settings;
