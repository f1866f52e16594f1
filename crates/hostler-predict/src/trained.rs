//! Models that were trained before, as files and in use.
//!
//! A file names users, groups and GPU models; [`ModelFile::bind`] finds them among those of the
//! cluster at hand and forgets the others. A trained model learns nothing more. Reading and writing
//! the file itself is left to callers.

mod past_rows;

use std::collections::BTreeMap;

use hostler_core::id::{GroupId, JobId, ModelId, ModelSet, QueueId, TenantId};
use hostler_core::job::{Estimate, JobSpec};
use hostler_core::predict::{Predict, UserEstimate};
use hostler_core::units::Span;
use serde::{Deserialize, Serialize};

use crate::blend::BlendRun;
use crate::cart::{self, CartRun, CartSettings, WIDTH};
use crate::durations::MedianRun;
use crate::evaluate::{self, Past};
use crate::features::{FeatureSet, Features, Key, Learner};
use crate::limits::{LESSONS_KEPT_MAX, NODES_MAX, TRAINED_MAX};
use crate::medians::Medians;
use crate::tree::Tree;
use past_rows::PastRow;

/// What a file of this kind calls itself.
const FORMAT: &str = "hostler-model";
/// The version that is written and read.
const VERSION: u32 = 1;

/// The numbers behind names, on one cluster or in one trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Users.
    pub users: BTreeMap<String, TenantId>,
    /// Groups.
    pub groups: BTreeMap<String, GroupId>,
    /// Queues.
    pub queues: BTreeMap<String, QueueId>,
    /// GPU models.
    pub gpu_models: BTreeMap<String, ModelId>,
}

/// What sort of model it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// Medians of like jobs.
    Median,
    /// A regression tree over them.
    Cart,
    /// Many ways to look at like jobs.
    Blend,
}

/// A model as it lies in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelFile {
    format: String,
    version: u32,
    /// What sort of model it is.
    pub kind: ModelKind,
    /// Jobs that it was learnt from.
    pub jobs: usize,
    users: Vec<String>,
    groups: Vec<String>,
    /// Sets of GPU models; none stands for any model.
    gpu_sets: Vec<Option<Vec<String>>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    queues: Vec<String>,
    medians: Vec<MedianRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tree: Option<Tree>,
    /// Jobs in order of submission, for a blend.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    past: Vec<PastRow>,
}

/// A belief and what it is about: places in the lists of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MedianRow {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gpus: Option<u32>,
    run: Span,
    spread: Span,
}

/// What is wrong with a model file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The text cannot be read.
    #[error("no model of run times: {fault}; `hostler predict train` writes one")]
    Syntax {
        /// What is wrong with it.
        fault: String,
    },
    /// Another version wrote it.
    #[error("`version` of the model: {found}; this program reads {VERSION}; train it again")]
    Version {
        /// The version in the file.
        found: u64,
    },
    /// A median that is about nothing, or about a name that the file lacks.
    #[error("`medians` of the model: row {row} is about no known user, group or GPUs")]
    FeatureRow {
        /// Its place, from 0.
        row: usize,
    },
    /// The tree is no tree.
    #[error("`tree` of the model: node {node} leads nowhere; train it again")]
    Tree {
        /// Its place, from 0.
        node: usize,
    },
    /// A job of the past that names nobody, or is out of order.
    #[error("`past` of the model: row {row} names nothing known or is out of order")]
    PastRow {
        /// Its place, from 0.
        row: usize,
    },
    /// A blend without jobs, or with too many.
    #[error("`past` of the model: {rows} rows; 1 to {LESSONS_KEPT_MAX} are allowed")]
    PastSize {
        /// Its rows.
        rows: usize,
    },
    /// A regression tree without a tree, or with one too large.
    #[error("`tree` of the model: {nodes} nodes; 1 to {NODES_MAX} are allowed")]
    TreeSize {
        /// Its nodes.
        nodes: usize,
    },
}

/// The part of a file that tells whether the rest can be read.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u64,
}

impl ModelFile {
    /// Trains a model on jobs that are over, in the order in which they ended.
    pub fn train<'a>(
        kind: ModelKind,
        samples_min: usize,
        past: impl IntoIterator<Item = &'a Past>,
        names: &Names,
    ) -> ModelFile {
        let past: Vec<&Past> = past.into_iter().collect();
        let mut file = ModelFile {
            format: FORMAT.to_owned(),
            version: VERSION,
            kind,
            jobs: past.len(),
            users: Vec::new(),
            groups: Vec::new(),
            gpu_sets: Vec::new(),
            queues: Vec::new(),
            medians: Vec::new(),
            tree: None,
            past: Vec::new(),
        };
        match kind {
            ModelKind::Median => {
                let mut median = MedianRun::new(samples_min);
                past.iter().for_each(|job| median.learn(&job.features, job.run));
                file.write_medians(median.medians(), names);
            }
            ModelKind::Cart => {
                let mut cart = CartRun::new(CartSettings {
                    samples_min,
                    window_max: TRAINED_MAX,
                    by_itself: false,
                    ..CartSettings::default()
                });
                past.iter().for_each(|job| cart.learn(&job.features, job.run));
                cart.grow();
                file.tree = cart.tree().cloned();
                file.write_medians(cart.medians(), names);
            }
            ModelKind::Blend => file.write_past(&past, names),
        }
        file
    }

    /// Reads a model.
    pub fn parse(text: &str) -> Result<ModelFile, ModelError> {
        let syntax = |error: serde_json::Error| ModelError::Syntax { fault: error.to_string() };
        let head: Head = serde_json::from_str(text).map_err(syntax)?;
        if head.format != FORMAT {
            let fault = format!("`format`: `{}`, not `{FORMAT}`", head.format);
            return Err(ModelError::Syntax { fault });
        }
        if head.version != u64::from(VERSION) {
            return Err(ModelError::Version { found: head.version });
        }
        let file: ModelFile = serde_json::from_str(text).map_err(syntax)?;
        file.check()?;
        Ok(file)
    }

    /// The model as text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names and numbers can be written")
    }

    /// The groups that it knows.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// Whether it was taught about a user.
    pub fn knows_user(&self, name: &str) -> bool {
        self.users.iter().any(|user| user == name)
    }

    /// Makes the model ready for jobs of these users, groups and GPU models.
    pub fn bind(&self, names: &Names) -> Trained {
        let users: Vec<_> = self.users.iter().map(|name| names.users.get(name).copied()).collect();
        let groups: Vec<_> =
            self.groups.iter().map(|name| names.groups.get(name).copied()).collect();
        let sets: Vec<_> =
            self.gpu_sets.iter().map(|set| bind_set(set.as_deref(), names)).collect();
        let mut beliefs = BTreeMap::new();
        for row in &self.medians {
            let found = |place: Option<u32>| place.map(|place| place as usize);
            let user = found(row.user).map(|place| users[place]);
            let group = found(row.group).map(|place| groups[place]);
            let models = found(row.gpus).map(|place| sets[place]);
            // Nobody here asks for a name that has no number here.
            if user == Some(None) || group == Some(None) || models == Some(None) {
                continue;
            }
            let key = key(user.flatten(), group.flatten(), models.flatten());
            let key = key.expect("rows were checked when the file was read");
            beliefs.entry(key).or_insert(Estimate { run: row.run, spread: row.spread });
        }
        let blend = (self.kind == ModelKind::Blend).then(|| {
            let mut blend = BlendRun::default();
            evaluate::teach(&mut blend, &self.past(names));
            Box::new(blend)
        });
        Trained { beliefs, tree: self.tree.clone(), blend }
    }

    fn check(&self) -> Result<(), ModelError> {
        let within =
            |place: Option<u32>, count: usize| place.is_none_or(|place| (place as usize) < count);
        for (at, row) in self.medians.iter().enumerate() {
            let named = within(row.user, self.users.len())
                && within(row.group, self.groups.len())
                && within(row.gpus, self.gpu_sets.len());
            let user = row.user.map(TenantId);
            let about = key(user, row.group.map(GroupId), row.gpus.map(|_| ModelSet::ALL));
            if !named || about.is_none() {
                return Err(ModelError::FeatureRow { row: at });
            }
        }
        if let Some(row) = self.past_fault() {
            return Err(ModelError::PastRow { row });
        }
        let rows = self.past.len();
        if rows > LESSONS_KEPT_MAX || (self.kind == ModelKind::Blend && rows == 0) {
            return Err(ModelError::PastSize { rows });
        }
        match (self.kind, &self.tree) {
            (ModelKind::Cart, None) => Err(ModelError::TreeSize { nodes: 0 }),
            (_, Some(tree)) if tree.len() > NODES_MAX => {
                Err(ModelError::TreeSize { nodes: tree.len() })
            }
            (_, Some(tree)) => {
                tree.fault(WIDTH).map_or(Ok(()), |node| Err(ModelError::Tree { node }))
            }
            (ModelKind::Median | ModelKind::Blend, None) => Ok(()),
        }
    }

    fn write_medians(&mut self, medians: &Medians, names: &Names) {
        let users = names.users.iter().map(|(name, user)| (*user, name.clone()));
        let mut users = Listed::new(users);
        let groups = names.groups.iter().map(|(name, group)| (*group, name.clone()));
        let mut groups = Listed::new(groups);
        let mut sets = Listed { known: BTreeMap::new(), places: BTreeMap::new(), list: Vec::new() };
        for (key, Estimate { run, spread }) in medians.beliefs() {
            let (user, group, models) = parts(key);
            if let Some(models) = models {
                sets.known.entry(models).or_insert_with(|| names_of(models, names));
            }
            self.medians.push(MedianRow {
                user: user.map(|user| users.place(user)),
                group: group.map(|group| groups.place(group)),
                gpus: models.map(|models| sets.place(models)),
                run,
                spread,
            });
        }
        (self.users, self.groups, self.gpu_sets) = (users.list, groups.list, sets.list);
    }
}

/// Values in the order in which they were first asked for.
struct Listed<Id, Value> {
    known: BTreeMap<Id, Value>,
    places: BTreeMap<Id, u32>,
    list: Vec<Value>,
}

impl<Id: Ord + Copy, Value: Clone> Listed<Id, Value> {
    fn new(known: impl Iterator<Item = (Id, Value)>) -> Listed<Id, Value> {
        Listed { known: known.collect(), places: BTreeMap::new(), list: Vec::new() }
    }

    fn place(&mut self, id: Id) -> u32 {
        *self.places.entry(id).or_insert_with(|| {
            self.list.push(self.known.get(&id).expect("what is learnt has a name").clone());
            self.list.len() as u32 - 1
        })
    }
}

/// Names of the models in a set; none for the set of all.
fn names_of(models: ModelSet, names: &Names) -> Option<Vec<String>> {
    let inside = names.gpu_models.iter().filter(|(_, model)| models.contains(**model));
    (models != ModelSet::ALL).then(|| inside.map(|(name, _)| name.clone()).collect())
}

/// The set of models with these names; none when no model of it is known.
fn bind_set(set: Option<&[String]>, names: &Names) -> Option<ModelSet> {
    let Some(listed) = set else { return Some(ModelSet::ALL) };
    let known = listed.iter().filter_map(|name| names.gpu_models.get(name));
    let models = known.fold(ModelSet::NONE, |set, model| set.with(ModelSet::one(*model)));
    (listed.is_empty() || models != ModelSet::NONE).then_some(models)
}

/// What a belief is about, in parts.
fn parts(key: Key) -> (Option<TenantId>, Option<GroupId>, Option<ModelSet>) {
    match key {
        Key::UserGroupGpu(user, group, models) => (Some(user), Some(group), Some(models)),
        Key::UserGroup(user, group) => (Some(user), Some(group), None),
        Key::Group(group) => (None, Some(group), None),
        Key::User(user) => (Some(user), None, None),
        Key::Gpu(models) => (None, None, Some(models)),
        Key::All => (None, None, None),
    }
}

/// The key with these parts, if there is one.
fn key(user: Option<TenantId>, group: Option<GroupId>, models: Option<ModelSet>) -> Option<Key> {
    match (user, group, models) {
        (Some(user), Some(group), Some(models)) => Some(Key::UserGroupGpu(user, group, models)),
        (Some(user), Some(group), None) => Some(Key::UserGroup(user, group)),
        (None, Some(group), None) => Some(Key::Group(group)),
        (Some(user), None, None) => Some(Key::User(user)),
        (None, None, Some(models)) => Some(Key::Gpu(models)),
        (None, None, None) => Some(Key::All),
        (Some(_), None, Some(_)) | (None, Some(_), Some(_)) => None,
    }
}

/// A trained model in use.
#[derive(Clone, Debug)]
pub struct Trained {
    beliefs: BTreeMap<Key, Estimate>,
    tree: Option<Tree>,
    blend: Option<Box<BlendRun>>,
}

impl Trained {
    /// Believed run time of such a job.
    pub fn belief(&self, features: &Features) -> Option<Estimate> {
        let known = |key| self.beliefs.get(&key).copied();
        if let Some(blend) = &self.blend {
            return blend.belief(features);
        }
        match &self.tree {
            Some(tree) => Some(cart::belief(tree, &cart::row(features, known)?)),
            None => features.keys(FeatureSet::UserGroupGpu).find_map(known),
        }
    }
}

impl Predict for Trained {
    fn estimate(&mut self, job: JobId, spec: &JobSpec) -> Option<Estimate> {
        let belief = self.belief(&Features::of(spec));
        belief.or_else(|| UserEstimate.estimate(job, spec))
    }
}

#[cfg(test)]
mod tests;
