//! How long a job is believed to run where it may be placed. No policy of its own.
//!
//! Before the place is known, its tasks are taken to be as far apart as they may be.

use hostler_core::id::ModelId;
use hostler_core::job::{Job, Locality};
use hostler_core::profile::{Profile, Reach};
use hostler_core::units::{Rate, Span, Time};
use hostler_core::view::View;

use super::calendar::Choice;
use super::outlook::end_at;

/// Where speeds by GPU model differ: on each model that is accepted, those of low tier first, and
/// on any of them, as long as on the slowest. Else on any.
pub(super) fn choices(view: &View<'_>, job: &Job) -> Vec<Choice> {
    let anywhere = |rate: Rate| Choice { only: None, run: run_at(view, job, rate) };
    let Some(profile) = job.spec.profile.and_then(|key| view.profile(key)) else {
        return vec![anywhere(Rate::FULL)];
    };
    let reaches = reaches(job);
    let with_gpus: Vec<_> = job.spec.gangs.iter().filter(|gang| gang.demand.gpu.0 > 0).collect();
    if with_gpus.is_empty() {
        let slowest = reaches.iter().map(|reach| profile.at_reach(*reach)).min();
        return vec![anywhere(slowest.unwrap_or(Rate::FULL).max(Rate(1)))];
    }
    let accepted =
        |model: &ModelId| with_gpus.iter().any(|gang| gang.demand.models.set().contains(*model));
    let models = (0..view.models().len() as u32).map(ModelId).filter(accepted);
    let mut rates: Vec<(u32, ModelId, Rate)> = models
        .map(|model| {
            let tier = view.model(model).map_or(0, |model| model.tier);
            (tier, model, slowest(profile, model, job.spec.gpus(), reaches))
        })
        .collect();
    rates.sort_by_key(|(tier, model, _)| (*tier, *model));
    let least = rates.iter().map(|(_, _, rate)| *rate).min().unwrap_or(Rate::FULL);
    let alike = rates.iter().all(|(_, _, rate)| *rate == least);
    let mut choices = Vec::new();
    if !alike && job.spec.gangs.len() == 1 {
        choices.extend(
            rates.iter().map(|(_, model, rate)| Choice {
                only: Some(*model),
                run: run_at(view, job, *rate),
            }),
        );
    }
    choices.push(anywhere(least));
    choices
}

/// The believed speed of a gang on a model, as far apart as it may be.
fn slowest(profile: &Profile, model: ModelId, gpus: u32, reaches: &[Reach]) -> Rate {
    let rates = reaches.iter().map(|reach| profile.rate(model, gpus, gpus, *reach));
    rates.min().unwrap_or(Rate::FULL).max(Rate(1))
}

/// How far apart the tasks of a job may be.
fn reaches(job: &Job) -> &'static [Reach] {
    const ALL: [Reach; 4] = [Reach::Island, Reach::Node, Reach::Rack, Reach::Cluster];
    let [gang] = &*job.spec.gangs else { return &ALL };
    match gang.demand.locality {
        Locality::Island => &ALL[..1],
        _ if gang.count == 1 && gang.demand.gpu.0 <= 1000 => &ALL[..1],
        Locality::Node => &ALL[..2],
        _ if gang.count == 1 => &ALL[..2],
        Locality::Rack => &ALL[..3],
        Locality::Any | Locality::Apart => &ALL,
    }
}

/// How long a job runs from its start; none when nobody knows.
fn run_at(view: &View<'_>, job: &Job, rate: Rate) -> Option<Span> {
    let end = end_at(job, rate, view.now());
    (end < Time::NEVER).then(|| end.since(view.now()))
}
