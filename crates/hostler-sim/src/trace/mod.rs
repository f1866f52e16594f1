//! Traces: native tables, reading, checking, writing, importing, generating; cluster files.
//!
//! A [`Trace`] is what a cluster was asked to do (jobs, tasks) and, where known, on which
//! machines. Everything that enters is untrusted: readers work in bounded memory, name file,
//! line, column and value of each fault, and do not panic. Scheduling and physics are elsewhere.

pub mod check;
pub mod cluster;
mod cluster_toml;
pub mod convert;
pub mod error;
mod fit;
pub mod import;
pub mod limits;
pub mod load;
mod machines;
pub mod meta;
pub mod pailike;
pub mod priority;
pub mod read;
mod rescale;
mod rows;
mod same;
pub mod source;
pub mod table;
#[cfg(test)]
mod tests;
pub mod text;
pub mod throughputs;
pub mod write;

pub use check::{Finding, Rule, Severity, check};
pub use cluster::{Cluster, GpuModel, read_cluster, scaled};
pub use convert::{ConvertOptions, Converted, convert};
pub use error::{Fault, Faults, TraceError};
pub use hostler_core::random;
pub use import::{IMPORTERS, ImportOptions, Importer, Zone};
pub use load::{Load, load, runnable_load};
pub use meta::Meta;
pub use pailike::PaiLike;
pub use read::{ReadOptions, read};
pub use rescale::rescale;
pub use source::Compression;
pub use table::{InstanceRow, JobRow, Link, NodeRow, OptU32, OptU64, Status, TaskRow, Trace};
pub use text::{TextId, TextPool};
pub use throughputs::{Throughputs, read_throughputs};
pub use write::write;
