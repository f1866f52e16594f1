//! A policy that is no part of `hostler-policies`: it is made at run time and registered.
//!
//! Jobs of a list come first, in its order; then all others. What the list holds is known to who
//! registers the policy, not to its settings.

use std::sync::Arc;

use hostler_core::job::Job;
use hostler_core::pipeline::{Head, Pipeline};
use hostler_core::policy::PolicyDef;
use hostler_core::stage::Order;
use hostler_core::view::View;
use hostler_policies::place::PlaceRule;

/// A policy of this name, for these jobs.
pub fn def(kind: String, names: &[&str]) -> PolicyDef {
    let summary = format!("{} first", names.join(", "));
    let names: Arc<[String]> = names.iter().map(ToString::to_string).collect();
    PolicyDef::new(kind, summary, move |config: Config| {
        let Config { head, place } = config;
        let order = Listed(Arc::clone(&names));
        Ok(Box::new(Pipeline { head, ..Pipeline::new(order, place.build()) }))
    })
}

hostler_core::settings! {
    struct Config {
        head: Head = Head::Skips,
        place: PlaceRule = PlaceRule::BestFit,
    }
}

struct Listed(Arc<[String]>);

impl Order for Listed {
    fn key(&self, _: &View<'_>, job: &Job) -> i64 {
        let place = self.0.iter().position(|name| **name == *job.spec.name);
        place.map_or(i64::MAX, |place| place as i64)
    }
}
