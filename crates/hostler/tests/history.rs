//! What was recorded elsewhere makes the first estimates of a new daemon as good as those of a
//! simulation that has seen the same.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::sync::Arc;

use hostler_core::id::JobId;
use hostler_core::job::{Estimate, JobSpec, Models};
use hostler_core::predict::Predict;
use hostler_core::units::Time;
use hostler_live::driver::AgentDriver;
use hostler_live::host::{Command, Experience, Host, Input, Principal, Settings};
use hostler_live::job::JobRequest;
use hostler_live::store::TenantQuota;
use hostler_live::store::memory::Disk;
use hostler_predict::{BlendRun, Learner, MedianRun, evaluate};
use hostler_sim::history;
use hostler_sim::lower::Workload;
use hostler_sim::trace::{Cluster, PaiLike};

/// Jobs whose first estimates are looked at.
const NEW: usize = 200;

fn week() -> Workload {
    let options = PaiLike { jobs: 3_000, seed: 7, scale: 100, ..PaiLike::default() };
    let trace = options.generate().unwrap();
    Workload::new(trace, &Cluster::pai()).unwrap()
}

/// What a simulation that has seen the lessons believes of a job.
fn simulated<Taught: Learner + Predict>(
    mut learner: Taught,
    workload: &Workload,
    jobs: &[usize],
) -> Vec<Option<Estimate>> {
    evaluate::teach(&mut learner, &history::history(workload));
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

/// What a new daemon with these lessons believes of jobs when they are submitted.
fn live(source: &str, workload: &Workload, jobs: &[usize]) -> Vec<Option<Estimate>> {
    let lessons = history::lessons(workload);
    let policy = &format!("kind = 'sjf'\nestimate = '{source}'\n");
    let settings = Settings::new(policy);
    let builder =
        |text: &str| hostler_policies::builtin().from_toml(text).map_err(|fault| fault.to_string());
    let driver = Box::new(AgentDriver::new(settings.clone()));
    let experience = Experience { lessons, ..Experience::default() };
    let (store, now) = (Box::new(Disk::default().store()), Time::from_secs(1));
    let mut host =
        Host::open_with(driver, store, Arc::new(builder), settings, experience, now).unwrap();
    let mut command = |command: Command| {
        let command = Box::new(command);
        let input = Input::Command { slot: 1, by: Principal::daemon(), command };
        host.handle(now, vec![input]).unwrap();
    };
    for at in jobs {
        let spec = workload.spec(*at);
        let name = workload.site.tenants[spec.tenant.index()].name.to_string();
        command(Command::SetTenant { name: name.clone(), quota: TenantQuota::default() });
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
    // Models have numbers of their own in a daemon that has no node yet.
    let plain = |at: &usize| {
        let spec = workload.spec(*at);
        spec.gangs.len() == 1 && spec.gangs[0].demand.models == Models::Any
    };
    let jobs: Vec<usize> = (0..workload.job_count()).filter(plain).take(NEW).collect();
    assert_eq!(jobs.len(), NEW);
    let median = simulated(MedianRun::default(), &workload, &jobs);
    assert!(median.iter().all(Option::is_some), "every job is like some other");
    assert_eq!(live("median", &workload, &jobs), median);
    let blend = simulated(BlendRun::default(), &workload, &jobs);
    assert_eq!(live("blend", &workload, &jobs), blend);
}
