//! What was recorded elsewhere makes the first estimates of a new daemon as good as those of a
//! simulation that has seen the same.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::sync::Arc;

use hostler_core::id::{JobId, TenantId};
use hostler_core::job::{Estimate, JobSpec, Models};
use hostler_core::predict::Predict;
use hostler_core::units::Time;
use hostler_live::driver::AgentDriver;
use hostler_live::host::{Command, Experience, Host, Input, Principal, Settings};
use hostler_live::job::JobRequest;
use hostler_live::store::TenantQuota;
use hostler_live::store::memory::Disk;
use hostler_predict::evaluate::Past;
use hostler_predict::limits::SAMPLES_MIN;
use hostler_predict::trained::ModelKind;
use hostler_predict::{BlendRun, Learner, MedianRun, ModelFile, evaluate};
use hostler_sim::history;
use hostler_sim::lower::Workload;
use hostler_sim::trace::{Cluster, PaiLike};

/// Jobs of a week, which a predictor has seen.
const OLD: usize = 3_000;
/// Jobs that came after that week, and whose first estimates are looked at.
const NEW: usize = 200;
const HOURS_OF_A_WEEK: f64 = 168.0;

/// A week of jobs that are over, and a few days of those that come.
fn week() -> Workload {
    let per_hour = OLD as f64 / HOURS_OF_A_WEEK;
    let options = PaiLike { jobs: 4_000, seed: 7, per_hour, scale: 100, ..PaiLike::default() };
    let trace = options.generate().unwrap();
    Workload::new(trace, &Cluster::pai()).unwrap()
}

fn past(workload: &Workload) -> Vec<Past> {
    let mut past = history::history(workload);
    past.truncate(OLD);
    let hours = past[OLD - 1].submitted.since(past[0].submitted).secs_f64() / 3600.0;
    assert!((120.0..220.0).contains(&hours), "about a week: {hours} h");
    past
}

/// Jobs of one role that take any GPU: models have numbers of their own in a daemon that has no
/// node yet.
fn plain_jobs(workload: &Workload) -> Vec<usize> {
    let plain = |at: &usize| {
        let spec = workload.spec(*at);
        spec.gangs.len() == 1 && spec.gangs[0].demand.models == Models::Any
    };
    let jobs: Vec<usize> = (OLD..workload.job_count()).filter(plain).take(NEW).collect();
    assert_eq!(jobs.len(), NEW);
    jobs
}

/// What a simulation that has seen the lessons believes of a job.
fn simulated<Taught: Learner + Predict>(
    mut learner: Taught,
    workload: &Workload,
    jobs: &[usize],
) -> Vec<Option<Estimate>> {
    evaluate::teach(&mut learner, &past(workload));
    let of = |at: &usize| learner.estimate(JobId(*at as u32), &workload.spec(*at));
    jobs.iter().map(of).collect()
}

fn request(workload: &Workload, at: usize, spec: &JobSpec) -> JobRequest {
    let (gang, trace) = (&spec.gangs[0], workload.trace());
    JobRequest {
        command: vec!["true".to_owned()],
        gpus: f64::from(gang.demand.gpu.0) / 1000.0,
        cpus: f64::from(gang.demand.cpu.0) / 1000.0,
        mem_mib: gang.demand.mem.0,
        tasks: gang.count,
        group: trace.text.get(trace.jobs[at].group_tag).to_owned(),
        ..JobRequest::default()
    }
}

/// What a new daemon with the lessons of this workload believes of jobs when they are submitted.
fn live(source: &str, workload: &Workload, jobs: &[usize]) -> Vec<Option<Estimate>> {
    let next = history::history(workload)[OLD].submitted;
    let mut lessons = history::lessons(workload);
    lessons.retain(|lesson| lesson.submitted < next);
    assert_eq!(lessons.len(), OLD);
    estimates(Experience { lessons, ..Experience::default() }, source, workload, jobs)
}

/// What a new daemon with this experience believes of jobs when they are submitted.
fn estimates(
    experience: Experience,
    source: &str,
    workload: &Workload,
    jobs: &[usize],
) -> Vec<Option<Estimate>> {
    let policy = &format!("kind = 'sjf'\nestimate = '{source}'\n");
    let settings = Settings::new(policy);
    let builder =
        |text: &str| hostler_policies::builtin().from_toml(text).map_err(|fault| fault.to_string());
    let driver = Box::new(AgentDriver::new(settings.clone()));
    let (store, now) = (Box::new(Disk::default().store()), Time::from_secs(1));
    let mut host =
        Host::open_with(driver, store, Arc::new(builder), settings, experience, now).unwrap();
    let mut command = |command: Command| {
        let command = Box::new(command);
        let input = Input::Command { slot: 1, by: Principal::daemon(), command };
        host.handle(now, vec![input]).unwrap();
    };
    let tenant = |spec: &JobSpec| workload.site.tenants[spec.tenant.index()].name.to_string();
    // What is believed of one depends on whom else the daemon knows.
    for name in jobs.iter().map(|at| tenant(&workload.spec(*at))) {
        command(Command::SetTenant { name, quota: TenantQuota::default() });
    }
    for at in jobs {
        let spec = workload.spec(*at);
        let name = tenant(&spec);
        let request = Box::new(request(workload, *at, &spec));
        command(Command::Submit { request, key: None, tenant: Some(name) });
    }
    let first = 1;
    let of = |at: u32| host.state().job(JobId(first + at)).unwrap().estimate;
    (0..jobs.len() as u32).map(of).collect()
}

#[test]
fn the_first_estimates_of_a_new_daemon_are_those_of_the_simulator() {
    let workload = week();
    let jobs = plain_jobs(&workload);
    let median = simulated(MedianRun::default(), &workload, &jobs);
    assert!(median.iter().all(Option::is_some), "every job is like some other");
    assert_eq!(live("median", &workload, &jobs), median);
    let blend = simulated(BlendRun::default(), &workload, &jobs);
    assert_eq!(live("blend", &workload, &jobs), blend);
}

#[test]
fn a_trained_model_says_live_what_it_says_in_a_simulation() {
    let workload = week();
    let jobs = plain_jobs(&workload);
    let (past, names) = (past(&workload), history::names(&workload));
    // A daemon without nodes has no GPU models, and knows the tenants that it was told of.
    let tenants: Vec<TenantId> = jobs.iter().map(|at| workload.spec(*at).tenant).collect();
    let mut known = names.clone();
    known.gpu_models.clear();
    known.queues.clear();
    known.users.retain(|_, tenant| tenants.contains(tenant));
    for kind in [ModelKind::Median, ModelKind::Cart, ModelKind::Blend] {
        let model = ModelFile::train(kind, SAMPLES_MIN, evaluate::part(&past, 100).learnt, &names);
        // As a daemon reads it: from a file.
        let model = ModelFile::parse(&model.to_json()).unwrap();
        let mut bound = model.bind(&known);
        let of = |at: &usize| bound.estimate(JobId(*at as u32), &workload.spec(*at));
        let simulated: Vec<Option<Estimate>> = jobs.iter().map(of).collect();
        assert!(simulated.iter().all(Option::is_some), "every job is like some other");
        let experience = Experience { model: Some(model), ..Experience::default() };
        assert_eq!(estimates(experience, "trained", &workload, &jobs), simulated, "{kind:?}");
    }
}
