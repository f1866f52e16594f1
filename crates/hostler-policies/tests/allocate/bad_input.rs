//! Input that no solver can work with is refused or led to a fallback that the answer names.

use hostler_policies::allocate::*;

fn job(rates: &[f64]) -> JobRow {
    JobRow { rates: rates.to_vec(), ..JobRow::default() }
}

fn two_jobs() -> Instance {
    let jobs = vec![job(&[4.0, 1.0]), job(&[2.0, 2.0])];
    Instance { workers: vec![1.0, 1.0], prices: vec![1.0, 1.0], jobs, ..Instance::default() }
}

fn all() -> Vec<(&'static str, Box<dyn Allocate>)> {
    let sum = SumThroughput { deadlines: true, priced: true, packed: true, ..Default::default() };
    let mut list: Vec<(&'static str, Box<dyn Allocate>)> = vec![
        ("isolated", Box::new(Isolated)),
        ("strategy-proof", Box::new(StrategyProof)),
        ("sum", Box::new(sum)),
        ("fifo", Box::new(Fifo::default())),
        ("fifo-perf", Box::new(FifoPerf::default())),
        ("fifo-packed", Box::new(FifoPacked::default())),
        ("allox", Box::new(Allox::default())),
        ("shortest", Box::new(Shortest)),
    ];
    for rate_knowledge in [RateKnowledge::Agnostic, RateKnowledge::Aware, RateKnowledge::Packed] {
        list.push(("max-min", Box::new(MaxMin::new(rate_knowledge))));
        list.push(("water-filling", Box::new(WaterFilling { rate_knowledge })));
        list.push(("finish-time", Box::new(FinishTime { rate_knowledge, weighted: true })));
        list.push(("makespan", Box::new(Makespan { rate_knowledge })));
    }
    list
}

/// Every policy refuses, and for the same reason.
fn refused(instance: &Instance, message: &str) {
    for (name, mut policy) in all() {
        let error = policy.allocate(instance).expect_err(name).to_string();
        assert_eq!(error, message, "{name}");
    }
}

#[test]
fn a_job_that_runs_nowhere_is_refused() {
    let mut instance = two_jobs();
    instance.jobs[1].rates = vec![0.0, 0.0];
    let message = "job 1 runs on no GPU type of the cluster; refuse it when it is submitted";
    refused(&instance, message);
    instance.jobs[1].rates = vec![0.0, 3.0];
    instance.workers[1] = 0.0;
    refused(&instance, message);
}

#[test]
fn a_cluster_without_gpus_is_refused() {
    let instance = Instance { workers: vec![0.0, 0.0], ..two_jobs() };
    refused(&instance, "the cluster has no GPUs for 2 jobs; add nodes or wait for them");
}

#[test]
fn numbers_that_are_none_are_refused() {
    for value in [f64::NAN, f64::INFINITY, -1.0] {
        let expected = |what: &str, index: usize| {
            format!(
                "invalid `{what}` of item {index}: {value}; expected a finite number, not negative"
            )
        };
        let mut instance = two_jobs();
        instance.jobs[1].rates[0] = value;
        refused(&instance, &expected("rates", 1));
        let instance = Instance { workers: vec![1.0, value], ..two_jobs() };
        refused(&instance, &expected("workers", 1));
        let mut instance = two_jobs();
        instance.jobs[0].weight = value;
        refused(&instance, &expected("weight", 0));
        let mut instance = two_jobs();
        instance.jobs[0].steps_left = value;
        refused(&instance, &expected("steps left", 0));
    }
}

#[test]
fn rows_of_the_wrong_length_are_refused() {
    let mut instance = two_jobs();
    instance.jobs[1].rates.push(1.0);
    refused(&instance, "`rates` of item 1 has 3 entries; expected one for each of 2 types");
}

#[test]
fn nobody_gets_nothing() {
    for (name, mut policy) in all() {
        let instance = Instance { jobs: Vec::new(), ..two_jobs() };
        let allocation = policy.allocate(&instance).expect(name);
        assert!(allocation.shares.is_empty(), "{name}");
        let instance = Instance { workers: vec![0.0, 0.0], ..instance };
        assert!(policy.allocate(&instance).expect(name).shares.is_empty(), "{name}");
    }
}

#[test]
fn jobs_without_steps_left_end_no_solver() {
    let mut instance = two_jobs();
    instance.jobs.iter_mut().for_each(|job| job.steps_left = 0.0);
    for (name, mut policy) in all() {
        let allocation = policy.allocate(&instance).expect(name);
        assert!(is_feasible(&instance, &allocation), "{name}: {allocation:?}");
    }
}

#[test]
fn deadlines_that_cannot_all_be_met_are_dropped_together() {
    let mut policy = SumThroughput { deadlines: true, ..SumThroughput::default() };
    let mut instance = two_jobs();
    let free = policy.allocate(&instance).unwrap();
    for slack in [100.0, 1e-3, 0.0, -5.0] {
        instance.jobs[1].steps_left = 100.0;
        instance.jobs[1].slack_secs = Some(slack);
        let allocation = policy.allocate(&instance).unwrap();
        let dropped = slack < 50.0;
        assert_eq!(allocation.fallback, dropped.then_some(Fallback::DeadlinesDropped), "{slack}");
        assert!((allocation.objective - free.objective).abs() < 1e-6, "{slack}");
    }
}

#[test]
fn a_deadline_that_can_be_met_is_met() {
    let mut policy = SumThroughput { deadlines: true, ..SumThroughput::default() };
    let mut instance = two_jobs();
    // Alone on the second type it gets 2 steps a second; its rival is worth more on the first.
    instance.workers = vec![1.0, 0.0];
    instance.jobs[1].steps_left = 30.0;
    instance.jobs[1].slack_secs = Some(30.0);
    let allocation = policy.allocate(&instance).unwrap();
    assert_eq!(allocation.fallback, None);
    assert!((allocation.shares[1][0] - 0.5).abs() < 1e-6, "{allocation:?}");
    assert!((allocation.objective - 3.0).abs() < 1e-6, "{allocation:?}");
}

#[test]
fn too_many_classes_for_pairs_are_refused() {
    let mut instance = two_jobs();
    instance.jobs = (0..300).map(|at| job(&[1.0 + f64::from(at), 1.0])).collect();
    instance.pairs = vec![PairRow { first: 0, second: 0, rates: vec![(1.0, 1.0); 2], seen: true }];
    let error = MaxMin::new(RateKnowledge::Packed).allocate(&instance).unwrap_err().to_string();
    assert_eq!(error, "too many classes of jobs for pairs: 300; the limit is 256");
}

#[test]
fn allox_takes_single_gpus_only() {
    let mut instance = two_jobs();
    instance.jobs[1].gang = 2;
    let error = Allox::default().allocate(&instance).unwrap_err().to_string();
    assert_eq!(error, "job 1 asks for 2 GPUs; this policy takes jobs of one GPU only");
}
