//! A trace as experience: jobs that are over, for predictors to learn from and be judged by.

use hostler_core::id::{GroupId, JobId, ModelId, ModelSet, QueueId, TenantId};
use hostler_core::job::Models;
use hostler_core::units::{Span, Time};
use hostler_predict::evaluate::Past;
use hostler_predict::trained::Names;
use hostler_predict::{Features, Lesson};

use crate::lower::Workload;

/// The jobs of a trace, in order of submission, as if all were over. A job ended when the trace
/// says so; where it does not say, the job is taken to have started at once.
pub fn history(workload: &Workload) -> Vec<Past> {
    let trace = workload.trace();
    let past = |at: usize| {
        let job = &trace.jobs[at];
        let run = workload.truth.run(JobId(at as u32));
        let submitted = Time::from_millis(job.submit_ms);
        let recorded = trace.tasks[job.tasks()].iter().filter_map(|task| task.end_ms.get()).max();
        let ended = recorded.map_or(submitted + run, Time::from_millis);
        // A trace may err; nothing ends before it was submitted.
        let ended = ended.max(submitted + Span(1));
        Past { features: Features::of(&workload.spec(at)), submitted, ended, run }
    };
    (0..workload.job_count()).map(past).collect()
}

/// The jobs of a trace as lessons for predictors elsewhere, in order of their end.
pub fn lessons(workload: &Workload) -> Vec<Lesson> {
    let past = history(workload);
    let mut ends: Vec<(Time, usize)> = past.iter().map(|past| past.ended).zip(0..).collect();
    ends.sort_unstable();
    ends.into_iter().map(|(_, at)| lesson(workload, at, &past[at])).collect()
}

fn lesson(workload: &Workload, at: usize, past: &Past) -> Lesson {
    let (spec, trace) = (workload.spec(at), workload.trace());
    let asks = spec.gangs.iter().map(|gang| &gang.demand);
    let named = asks.filter(|demand| demand.gpu.0 > 0 && demand.models != Models::Any);
    let named = named.fold(ModelSet::NONE, |set, demand| set.with(demand.models.set()));
    let models = workload.site.models.iter().enumerate();
    let models = models.filter(|(id, _)| named.contains(ModelId(*id as u32)));
    Lesson {
        tenant: workload.site.tenants[spec.tenant.index()].name.to_string(),
        group: trace.text.get(trace.jobs[at].group_tag).to_owned(),
        gpu_models: models.map(|(_, model)| model.name.to_string()).collect(),
        submitted: past.submitted,
        ended: past.ended,
        run: past.run,
        spec,
    }
}

/// The numbers that users, groups and GPU models have in a workload.
pub fn names(workload: &Workload) -> Names {
    let mut names = Names::default();
    for (at, tenant) in workload.site.tenants.iter().enumerate() {
        names.users.insert(tenant.name.to_string(), TenantId(at as u32));
    }
    let trace = workload.trace();
    for job in trace.jobs.iter().filter(|job| !job.group_tag.is_empty()) {
        let name = trace.text.get(job.group_tag).to_owned();
        names.groups.insert(name, GroupId(job.group_tag.0));
    }
    for job in trace.jobs.iter().filter(|job| !job.queue.is_empty()) {
        let name = trace.text.get(job.queue).to_owned();
        names.queues.insert(name, QueueId(job.queue.0));
    }
    for (at, model) in workload.site.models.iter().enumerate() {
        names.gpu_models.insert(model.name.to_string(), ModelId(at as u32));
    }
    names
}
