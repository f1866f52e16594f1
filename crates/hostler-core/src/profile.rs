//! Throughput tables: how fast a kind of job runs on which GPUs, alone and beside another.

use serde::{Deserialize, Serialize};

use crate::id::{ModelId, ProfileKey};
use crate::units::Rate;

/// How far apart the tasks of a job are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// One group of GPUs with fast links.
    Island,
    /// One node.
    Node,
    /// One rack.
    Rack,
    /// Several racks.
    Cluster,
}

/// Speed of one kind of job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Speed on a model, relative to the reference run. Missing models run at full rate.
    pub models: Vec<(ModelId, Rate)>,
    /// Factor by reach. Missing reaches cost nothing.
    pub reach: Vec<(Reach, Rate)>,
    /// Factor beside a job of another profile on the same device.
    pub pairs: Vec<(ProfileKey, Rate)>,
    /// Factor beside a job without a known pair.
    pub shared: Option<Rate>,
}

impl Profile {
    /// Whether every speed lets work come to an end.
    pub fn is_sane(&self) -> bool {
        let models = self.models.iter().map(|(_, rate)| rate);
        let reach = self.reach.iter().map(|(_, rate)| rate);
        let pairs = self.pairs.iter().map(|(_, rate)| rate);
        models.chain(reach).chain(pairs).chain(&self.shared).all(|rate| rate.0 > 0)
    }

    /// Speed on `model`, alone and close together.
    pub fn on(&self, model: ModelId) -> Rate {
        lookup(&self.models, &model).unwrap_or(Rate::FULL)
    }

    /// Factor for tasks that are `reach` apart.
    pub fn at_reach(&self, reach: Reach) -> Rate {
        lookup(&self.reach, &reach).unwrap_or(Rate::FULL)
    }

    /// Factor beside a job of profile `other`.
    pub fn beside(&self, other: Option<ProfileKey>) -> Rate {
        other.and_then(|key| lookup(&self.pairs, &key)).or(self.shared).unwrap_or(Rate::FULL)
    }
}

fn lookup<Key: PartialEq>(table: &[(Key, Rate)], key: &Key) -> Option<Rate> {
    table.iter().find(|(entry, _)| entry == key).map(|(_, rate)| *rate)
}
