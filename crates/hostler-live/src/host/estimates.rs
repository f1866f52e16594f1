//! Run times that the daemon believes in: the same predictors as in a simulation, taught by what
//! finished here and by what was learnt elsewhere.
//!
//! What a predictor says enters the log as facts, so nothing of it has to be in the store: it is
//! taught anew at each start and whenever another policy goes by other run times.

use hostler_core::event::Event;
use hostler_core::id::{GroupId, ModelId, ModelSet, TenantId};
use hostler_core::limits::MODELS_MAX;
use hostler_core::predict::{EstimateSource, Predict, UserEstimate};
use hostler_core::units::{Span, Time};
use hostler_predict::evaluate::{self, Past};
use hostler_predict::trained::{ModelFile, Names, Trained};
use hostler_predict::{BlendRun, CartRun, Features, Learner, Lesson, MedianRun};

use super::Desk;
use super::request::spec_of;
use crate::job::JobState;
use crate::limits::{GROUPS_MAX, LESSONS_MAX};
use crate::store::HistoryFilter;

/// What was learnt elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Experience {
    /// The model behind `estimate = "trained"`.
    pub model: Option<ModelFile>,
    /// Jobs of recorded traces, oldest first.
    pub lessons: Vec<Lesson>,
}

impl Experience {
    /// Whether there is what a policy wants to go by.
    pub(super) fn check(&self, source: EstimateSource) -> Result<(), String> {
        match source {
            EstimateSource::User
            | EstimateSource::Median
            | EstimateSource::Cart
            | EstimateSource::Blend => Ok(()),
            EstimateSource::Oracle => Err("invalid `estimate`: nobody knows the true run times \
                                           of jobs that run for real; name `user`, \
                                           `median`, `cart`, `blend` or `trained`, as in \
                                           `sjf:estimate=user`"
                .to_owned()),
            EstimateSource::Trained if self.model.is_some() => Ok(()),
            EstimateSource::Trained => Err("invalid `estimate`: the daemon has no trained model; \
                                            start it with `--model FILE`, or use `median`"
                .to_owned()),
        }
    }
}

impl Desk {
    /// Whether a fact gives a name a number that what was learnt elsewhere may speak of, or changes
    /// whose run times count.
    pub(super) fn concerns_estimates(&self, event: &Event) -> bool {
        let Experience { model, lessons } = &self.experience;
        match event {
            Event::PolicyChanged { .. } | Event::PolicyBroke { .. } => true,
            Event::ModelAdded { .. } => model.is_some() || !lessons.is_empty(),
            Event::TenantAdded { spec, .. } => {
                model.as_ref().is_some_and(|model| model.knows_user(&spec.name))
                    || lessons.iter().any(|lesson| *lesson.tenant == *spec.name)
            }
            _ => false,
        }
    }

    /// Puts the predictor in place that the policy wants, taught by all that is known. Jobs that
    /// wait hear of it where that is another one than before.
    pub(super) fn predict_anew(&mut self) {
        let source = self.engine.estimates();
        let before = self.estimates.replace(source);
        let predict: Box<dyn Predict> = match source {
            EstimateSource::User => Box::new(UserEstimate),
            EstimateSource::Median => Box::new(self.taught(MedianRun::default())),
            EstimateSource::Cart => Box::new(self.taught(CartRun::default())),
            EstimateSource::Blend => Box::new(self.taught(BlendRun::default())),
            EstimateSource::Trained => Box::new(self.trained()),
            EstimateSource::Oracle => unreachable!("a policy that asks for it is refused"),
        };
        let beliefs = self.engine.replace_predictor(predict);
        if before.is_some_and(|before| before != source) {
            beliefs.into_iter().for_each(|belief| self.later(belief));
        }
    }

    /// The model that was learnt elsewhere, in the numbers of here.
    fn trained(&mut self) -> Trained {
        let model = self.experience.model.take().expect("without it the policy is refused");
        self.add_groups(model.groups());
        let trained = model.bind(&self.names());
        self.experience.model = Some(model);
        trained
    }

    /// Groups that were learnt about elsewhere have a number before a job names them.
    fn add_groups<'a>(&mut self, groups: impl IntoIterator<Item = &'a String>) {
        for group in groups {
            if !group.is_empty() && self.groups.len() < GROUPS_MAX {
                self.add_group(group.clone());
            }
        }
    }

    fn taught<Taught: Learner>(&mut self, mut learner: Taught) -> Taught {
        let lessons = std::mem::take(&mut self.experience.lessons);
        self.add_groups(lessons.iter().map(|lesson| &lesson.group));
        let mut names = self.names();
        name_strangers(&mut names, &lessons);
        let skipped = lessons.len().saturating_sub(LESSONS_MAX);
        let elsewhere = lessons[skipped..].iter().map(|lesson| {
            let &Lesson { submitted, ended, run, .. } = lesson;
            Past { features: features_of(&names, lesson), submitted, ended, run }
        });
        let mut elsewhere: Vec<Past> = elsewhere.collect();
        elsewhere.sort_by_key(|past| past.submitted);
        self.experience.lessons = lessons;
        evaluate::teach(&mut learner, &elsewhere);
        evaluate::teach(&mut learner, &self.own_lessons());
        learner
    }

    /// Jobs that finished here, in order of submission.
    fn own_lessons(&mut self) -> Vec<Past> {
        let mut lessons = Vec::new();
        let (state, limit) = (Some(JobState::Finished), LESSONS_MAX);
        let mut filter = HistoryFilter { state, limit, ..HistoryFilter::default() };
        // Estimates are not worth a daemon that does not start.
        let mut reader = match self.store.reader() {
            Ok(reader) => reader,
            Err(fault) => {
                tracing::warn!(%fault, "run times of jobs that finished here are not learnt from");
                return lessons;
            }
        };
        while lessons.len() < LESSONS_MAX {
            let rows = match reader.history(&filter) {
                Ok(rows) => rows,
                Err(fault) => {
                    tracing::warn!(%fault, "not all that finished here is learnt from");
                    break;
                }
            };
            let Some(last) = rows.last() else { break };
            filter.before = Some(last.id);
            lessons.extend(rows.iter().filter_map(|row| {
                let (spec, _) = spec_of(&row.request, self, &row.tenant).ok()?;
                let (submitted, run) = (Time(row.submitted), Span(row.facts.run?));
                let ended = row.ended.map_or(submitted + run, Time);
                Some(Past { features: Features::of(&spec), submitted, ended, run })
            }));
        }
        lessons.sort_by_key(|past| past.submitted);
        lessons
    }

    /// The numbers of names, as the state has them: a tenant that was added just now is there.
    fn names(&self) -> Names {
        let mut names = Names::default();
        for (at, tenant) in self.state().tenants().iter().enumerate() {
            names.users.insert(tenant.name.to_string(), TenantId(at as u32));
        }
        for (name, number) in &self.groups {
            names.groups.insert(name.clone(), GroupId(*number));
        }
        for (at, model) in self.state().models().iter().enumerate() {
            names.gpu_models.insert(model.name.to_string(), ModelId(at as u32));
        }
        names
    }
}

/// Gives tenants and GPU models that nobody knows here numbers from the other end, which none of
/// here has: they are as different from each other as they were elsewhere.
fn name_strangers(names: &mut Names, lessons: &[Lesson]) {
    let (mut tenants, mut models) =
        (0..=u32::MAX, names.gpu_models.len() as u32..MODELS_MAX as u32);
    for lesson in lessons {
        if !names.users.contains_key(&lesson.tenant) {
            let number = tenants.next_back().expect("there are more numbers than lessons");
            names.users.insert(lesson.tenant.clone(), TenantId(number));
        }
        for model in &lesson.gpu_models {
            if !names.gpu_models.contains_key(model)
                && let Some(number) = models.next_back()
            {
                names.gpu_models.insert(model.clone(), ModelId(number));
            }
        }
    }
}

/// The features of a job of elsewhere, in the numbers of here.
fn features_of(names: &Names, lesson: &Lesson) -> Features {
    let tenant = names.users.get(&lesson.tenant).copied().unwrap_or(TenantId(u32::MAX));
    let group = names.groups.get(&lesson.group).copied().unwrap_or(GroupId(u32::MAX));
    let asked = Features::of(&lesson.spec);
    let known = lesson.gpu_models.iter().filter_map(|name| names.gpu_models.get(name));
    let models = match lesson.gpu_models.is_empty() {
        true => asked.models,
        false => known.fold(ModelSet::NONE, |set, model| set.with(ModelSet::one(*model))),
    };
    let group = (!lesson.group.is_empty()).then_some(group);
    // Queues have no names here.
    Features { tenant, group, models, queue: None, ..asked }
}
