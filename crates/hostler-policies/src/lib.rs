//! The scheduling policies of Hostler, one file each, and the registry that finds them by name.
//!
//! A policy is a file in the folder of its family with a function `def`, and one word in the list
//! of that family. The registry feeds the command line, the manual and the tests; nothing else
//! knows a policy by name. Deciding when to ask a policy is the engine's business, not this
//! crate's.

use hostler_core::policy::PolicyDef;
use hostler_core::registry::Registry;

/// Declares the policies of one family: a module each, and the list of them.
macro_rules! policies {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        /// The policies of this family.
        pub(crate) fn family() -> Vec<hostler_core::policy::PolicyDef> {
            vec![$($name::def()),*]
        }
    };
}

/// Declares the families.
macro_rules! families {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        $($(#[$doc])* pub mod $name;)*

        fn families() -> impl Iterator<Item = PolicyDef> {
            [$($name::family()),*].into_iter().flatten()
        }
    };
}

families![order, reserve, fair];

pub mod allocate;
pub mod limits;
pub mod lp;
pub mod place;

/// The policy of a daemon that was told none, with settings as on a command line. Real gangs talk,
/// so they get few nodes.
pub const DEFAULT: &str = "fifo-backfill:estimate=user:place=consolidate";

/// The policy that needs nothing and surprises nobody: what to begin with.
pub const SIMPLEST: &str = order::fifo::KIND;

/// The policy by whose completion times predictors of run times are judged: it ranks by them alone.
pub const BY_RUN_TIME: &str = order::sjf::KIND;

/// The same without run times: by submission, and passing over what does not fit.
pub const BY_SUBMISSION: &str = "fifo:head=skips";

/// The policies of this crate, family by family.
pub fn builtin() -> Registry {
    let mut registry = Registry::default();
    for def in families() {
        registry.register(def).expect("policies of this crate have names of their own");
    }
    registry
}
