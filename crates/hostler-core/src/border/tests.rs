//! Facts from outside: each fault with the fact that has it, and neighbours that are fine.

use std::sync::Arc;

use super::check;
use crate::cluster::{NodeSpec, Tenant};
use crate::event::Event;
use crate::gate::{After, AfterWhen};
use crate::id::{Features, JobId, LeaseId, ModelId, NodeId, ProfileKey, TenantId};
use crate::job::JobSpec;
use crate::limits::{
    AFTER_PER_JOB_MAX, JOB_NUMBER_GAP_MAX, LEASE_NUMBER_GAP_MAX, MODELS_MAX, TASKS_PER_JOB_MAX,
};
use crate::profile::{Profile, Run};
use crate::target::{Solution, Target, Team};
use crate::testkit::*;
use crate::units::{Milli, Pace, Rate, Span};

fn world() -> World {
    let mut world = World::of("2 | 0");
    world.submit(0, 0, &["gpus 1", "gpus 1"]);
    world
}

fn says(event: Event) -> String {
    match check(world().state(), &event) {
        Ok(()) => "fine".to_owned(),
        Err(fault) => fault.to_string(),
    }
}

fn job(text: &str) -> String {
    spec(asks(text))
}

fn spec(spec: JobSpec) -> String {
    says(submit(2, spec))
}

#[test]
fn catalogues_are_numbered_in_order_and_bounded() {
    let model = |id| Event::ModelAdded { model: ModelId(id), spec: Default::default() };
    assert_eq!(says(model(2)), "fine");
    assert_eq!(says(model(1)), "model 1 is out of order: 2 is next");
    assert_eq!(says(model(3)), "model 3 is out of order: 2 is next");
    let tenant = |id| Event::TenantAdded { tenant: TenantId(id), spec: Tenant::named("t") };
    assert_eq!(says(tenant(2)), "fine");
    assert_eq!(says(tenant(0)), "tenant 0 is out of order: 2 is next");
    let mut many = world();
    let rest = (2..MODELS_MAX as u32).map(model).collect();
    many.step(1, rest, vec![]);
    let full = check(many.state(), &model(MODELS_MAX as u32)).unwrap_err();
    assert_eq!(full.to_string(), "more than 64 model");
}

#[test]
fn something_is_due_to_every_tenant() {
    let of = |tenant, weight| Event::TenantChanged {
        tenant: TenantId(tenant),
        spec: Tenant { weight, ..Tenant::named("t") },
    };
    assert_eq!(says(of(1, 1)), "fine");
    assert_eq!(says(of(1, 0)), "tenant 1: its weight is 0; use at least 1");
    assert_eq!(says(of(2, 1)), "no tenant 2");
    let light = Tenant { weight: 0, ..Tenant::named("t") };
    let added = Event::TenantAdded { tenant: TenantId(2), spec: light };
    assert_eq!(says(added), "tenant 2: its weight is 0; use at least 1");
}

#[test]
fn nodes_are_known_and_come_back_as_they_were() {
    assert_eq!(says(node_up(0, 2)), "fine");
    assert_eq!(says(node_up(0, 1)), "node 0 came back as another machine");
    assert_eq!(says(node_up(2, 1)), "fine");
    assert_eq!(says(node_up(3, 1)), "node 3 is out of order: 2 is next");
    let node = NodeId(2);
    for event in [
        Event::NodeDown { node },
        Event::NodeRetired { node },
        Event::NodeDrain { node, draining: true },
        Event::FeaturesChanged { node, features: Features(1) },
        Event::PowerChanged { node, power: crate::cluster::Power::On },
    ] {
        assert_eq!(says(event), "no node 2");
    }
    let mut gone = world();
    gone.step(1, vec![Event::NodeRetired { node: NodeId(0) }], vec![]);
    assert!(check(gone.state(), &node_up(0, 2)).is_err());
}

#[test]
fn gpus_of_a_node_make_sense() {
    let node = |change: fn(&mut NodeSpec)| {
        let mut spec = node_spec(2, 2);
        change(&mut spec);
        says(Event::NodeUp { node: NodeId(2), spec })
    };
    let fault = "node 2: its GPUs make no sense";
    assert_eq!(node(|spec| spec.gpus = 128), "fine");
    assert_eq!(node(|spec| spec.gpus = 129), fault);
    assert_eq!(node(|spec| spec.gpus = 0), fault);
    assert_eq!(node(|spec| spec.gpu_model = None), fault);
    assert_eq!(node(|spec| (spec.gpu_model, spec.gpus) = (None, 0)), "fine");
    assert_eq!(node(|spec| spec.gpu_model = Some(ModelId(2))), fault);
    assert_eq!(node(|spec| spec.island_gpus = 255), "fine");
    assert_eq!(node(|spec| spec.island_gpus = 256), fault);
}

#[test]
fn jobs_and_leases_are_numbered_upwards_without_large_gaps() {
    let at = |id| says(submit(id, asks("gpus 1")));
    assert_eq!(at(1), "job 1 is out of order: 2 is next");
    assert_eq!(at(2 + JOB_NUMBER_GAP_MAX), "fine");
    assert_ne!(at(3 + JOB_NUMBER_GAP_MAX), "fine");
    let jobs = |id| says(Event::JobsSkipped { next: JobId(id) });
    assert_eq!((jobs(0), jobs(2 + JOB_NUMBER_GAP_MAX)), ("fine".into(), "fine".into()));
    assert_ne!(jobs(3 + JOB_NUMBER_GAP_MAX), "fine");
    let leases = |id| says(Event::LeasesSkipped { next: LeaseId(id) });
    assert_eq!(leases(LEASE_NUMBER_GAP_MAX), "fine");
    assert_ne!(leases(1 + LEASE_NUMBER_GAP_MAX), "fine");
}

#[test]
fn a_job_has_some_roles_of_some_tasks() {
    let none = JobSpec { gangs: [].into(), ..asks("gpus 1") };
    assert_eq!(spec(none), "job 2: it has no roles, or too many");
    assert_eq!(job("tasks 1 + + + + + + +"), "fine");
    assert_eq!(job("tasks 1 + + + + + + + +"), "job 2: it has no roles, or too many");
    let fault = "job 2: a role has no tasks, or too many";
    assert_eq!(job("tasks 0"), fault);
    assert_eq!(job("tasks 1 + tasks 0"), fault);
    assert_eq!(job(&format!("tasks {TASKS_PER_JOB_MAX}")), "fine");
    assert_eq!(job(&format!("tasks {}", TASKS_PER_JOB_MAX + 1)), fault);
}

#[test]
fn a_range_of_tasks_holds_the_number_asked_for() {
    let fault = "job 2: its range of tasks is empty, or without the number that it asks for";
    assert_eq!(job("tasks 2 elastic 1:3"), "fine");
    assert_eq!(job("tasks 2 elastic 2:2"), "fine");
    assert_eq!(job("tasks 2 elastic 0:3"), fault);
    assert_eq!(job("tasks 2 elastic 3:3"), fault);
    assert_eq!(job("tasks 2 elastic 1:1"), fault);
    assert_eq!(job(&format!("tasks 2 elastic 1:{}", TASKS_PER_JOB_MAX + 1)), fault);
}

#[test]
fn gpus_are_parts_of_one_or_whole_ones() {
    let fault = "job 2: above one GPU only whole ones can be asked for";
    assert_eq!(
        (job("gpu 999"), job("gpu 1000"), job("gpu 3000")),
        ("fine".into(), "fine".into(), "fine".into())
    );
    assert_eq!(job("gpu 1001"), fault);
    let mut packed = asks("gpu 200");
    packed.gangs[0].demand.packed_from = Milli(500);
    assert_eq!(spec(packed), "job 2: `packed_from` is for policies, not for users");
}

#[test]
fn names_are_of_the_catalogue() {
    let fault = "job 2: it names a tenant or GPU model that nobody added";
    assert_eq!((job("tenant 1"), job("gpus 1 prefers 1,0")), ("fine".into(), "fine".into()));
    assert_eq!((job("tenant 2"), job("gpus 1 prefers 0,2")), (fault.into(), fault.into()));
}

#[test]
fn a_job_comes_after_earlier_ones_and_is_no_earlier_than_its_array() {
    let fault = "job 2: it comes after too many jobs, or after one that is not there yet";
    assert_eq!((job("after 1"), job("after 2")), ("fine".into(), fault.into()));
    let after = After { job: JobId(0), when: AfterWhen::Over };
    let many = |count| JobSpec { after: vec![after; count].into(), ..asks("gpus 1") };
    assert_eq!(spec(many(AFTER_PER_JOB_MAX)), "fine");
    assert_eq!(spec(many(AFTER_PER_JOB_MAX + 1)), fault);
    let fault = "job 2: its array allows no job at all, or begins after it";
    assert_eq!((job("array 2:1"), job("array 0:5")), ("fine".into(), "fine".into()));
    assert_eq!((job("array 3:1"), job("array 2:0")), (fault.into(), fault.into()));
}

#[test]
fn speeds_and_solutions_make_sense() {
    let profiled = |profile| says(Event::Profiled { key: ProfileKey(4), profile });
    assert_eq!(profiled(Profile::default()), "fine");
    let still = Profile { shared: Some(Rate(0)), ..Profile::default() };
    assert_eq!(profiled(still), "profile 4: its speeds make no sense");
    let mut measured = Profile::default();
    measured.measured.set(Run(ModelId(0), false, 1), Pace::ZERO);
    assert_eq!(profiled(measured), "profile 4: its speeds make no sense");
    let solved = |model| {
        let team = Team::alone(JobId(0));
        let target = Target { team, model: ModelId(model), share: 1 };
        let solution = Solution { targets: vec![target], ..Solution::default() };
        says(Event::Solved { based_on: 1, solution: Arc::new(solution) })
    };
    assert_eq!((solved(1), solved(2)), ("fine".into(), "no GPU model 2".into()));
}

#[test]
fn what_may_come_late_is_never_refused() {
    let lease = LeaseId(99);
    for event in [
        started(99),
        start_failed(99),
        finished(99, 1),
        cancel(99),
        held(99, true),
        Event::Paused { job: JobId(99), until: secs(1) },
        Event::Progress { lease, done: Span::ZERO, idle: Span::ZERO },
        Event::Checkpointed { lease, done: Span::ZERO },
        Event::Used { lease, gpu: Milli(1) },
        Event::RoundEnded,
    ] {
        assert_eq!(says(event), "fine");
    }
}
