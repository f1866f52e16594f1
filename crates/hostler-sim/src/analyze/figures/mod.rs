//! Every figure, one file for each family. The list below is the order of the report.

mod alloc_heat;
mod colocated;
mod contention;
mod delayed;
mod gang;
mod instances;
mod machine_use;
mod mismatch;
mod network;
mod overuse;
mod predictor;
mod recur;
mod requests;
mod runtime;
mod sharing;
mod simulator;
mod submissions;
mod users;
mod waits;
mod who;

use std::collections::BTreeMap;

use super::figure::Figure;
use super::input::Input;
use super::need::Need;
use crate::trace::TextId;

/// A figure that can be computed.
pub struct Def {
    /// Stable name.
    pub key: &'static str,
    /// Heading.
    pub title: &'static str,
    /// What it means for whoever runs the cluster, in one sentence.
    pub meaning: &'static str,
    /// What the study found in the full PAI trace; empty where it says nothing.
    pub published: &'static str,
    /// What it cannot do without.
    pub needs: &'static [Need],
    /// Computes it.
    pub compute: fn(&Input, &mut Figure),
}

/// Every figure.
pub const ALL: [&Def; 28] = [
    &requests::USE,
    &requests::ASKED,
    &sharing::SHARING_SAVED,
    &contention::CONTENTION,
    &overuse::OVERUSE,
    &waits::BY_SHARING,
    &waits::BY_GPU,
    &waits::SHARE,
    &gang::GANG,
    &runtime::RUNTIME,
    &recur::RECUR,
    &predictor::PREDICTOR,
    &mismatch::MISMATCH,
    &alloc_heat::ALLOC_HEAT,
    &machine_use::MACHINE_USE,
    &machine_use::CPU_TIME,
    &network::NETWORK,
    &delayed::DELAYED,
    &colocated::COLOCATED,
    &who::WHO,
    &users::TASKS_PER_USER,
    &submissions::SUBMISSIONS,
    &submissions::REQUESTED,
    &instances::INSTANCES,
    &instances::STATUS,
    &mismatch::MACHINES,
    &simulator::COMPLETION_TIME,
    &simulator::SCHEDULE,
];

/// Name of those that name none.
const ANY: &str = "any";

/// Ascending values by name; names in order.
fn by_name<'a>(
    input: &Input,
    values: impl Iterator<Item = (TextId, f64)> + 'a,
) -> BTreeMap<String, Vec<f64>> {
    let mut by_id: BTreeMap<TextId, Vec<f64>> = BTreeMap::new();
    for (id, value) in values.filter(|(_, value)| value.is_finite()) {
        by_id.entry(id).or_default().push(value);
    }
    let named = by_id.into_iter().map(|(id, mut values)| {
        values.sort_unstable_by(f64::total_cmp);
        let name = if id.is_empty() { ANY } else { input.str(id) };
        (name.to_owned(), values)
    });
    named.collect()
}

/// A share as a sentence writes it: `85.0 %`.
fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
