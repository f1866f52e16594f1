//! Values that settings of this family can have.

use std::collections::BTreeMap;

use hostler_core::policy::SettingType;
use hostler_core::view::View;
use serde::{Deserialize, Serialize};

use crate::allocate::{Inner, RateKnowledge};

/// What a policy knows of GPU models and of pairs.
pub(super) fn rate_knowledge(aware: bool, packed: bool) -> RateKnowledge {
    match (aware, packed) {
        (_, true) => RateKnowledge::Packed,
        (true, false) => RateKnowledge::Aware,
        (false, false) => RateKnowledge::Agnostic,
    }
}

/// Models by name: decides between those that are equally good.
pub(super) fn by_name(view: &View<'_>) -> Vec<usize> {
    let mut models: Vec<usize> = (0..view.models().len()).collect();
    models.sort_by_key(|model| &view.models()[*model].name);
    models
}

/// Whether tenants share first, and how each divides its part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TenantRule {
    /// Jobs share, whoever they belong to.
    #[default]
    None,
    /// Tenants share by weight, and each divides its part fairly.
    Fair,
    /// Tenants share by weight, and each gives its part to its oldest job.
    Fifo,
}

impl TenantRule {
    pub(super) fn inner(self) -> Option<Inner> {
        match self {
            TenantRule::None => None,
            TenantRule::Fair => Some(Inner::Fairness),
            TenantRule::Fifo => Some(Inner::Fifo),
        }
    }
}

impl SettingType for TenantRule {
    const TAKES: &'static str = "\"none\" | \"fair\" | \"fifo\"";
}

/// Price of a GPU hour by model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prices(pub BTreeMap<String, f64>);

impl SettingType for Prices {
    const TAKES: &'static str = "{ MODEL = number, .. }";
}
