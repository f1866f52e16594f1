//! The scheduling policies of Hostler, one file each, and the registry that finds them by name.
//!
//! A policy is a file in the folder of its family with a `DEF`, and one word in the list of that
//! family. The registry feeds the command line, the manual and the tests; nothing else knows a
//! policy by name. Deciding when to ask a policy is the engine's business, not this crate's.

/// Declares the policies of one family: a module each, and the list of them.
macro_rules! policies {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        /// The policies of this family.
        pub const FAMILY: &[&hostler_core::policy::PolicyDef] = &[$(&$name::DEF),*];
    };
}

/// Declares the families.
macro_rules! families {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        $($(#[$doc])* pub mod $name;)*

        const FAMILIES: &[&[&hostler_core::policy::PolicyDef]] = &[$($name::FAMILY),*];
    };
}

families![order, reserve, fair];

pub mod allocate;
pub mod limits;
pub mod lp;
pub mod place;
pub mod registry;

pub use registry::{all, build, find, from_toml, settings_from_pairs, suggestion};
