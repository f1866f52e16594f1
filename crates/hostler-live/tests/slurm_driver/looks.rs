//! What is known of jobs from look to look, and told of them.

use hostler_live::driver::slurm::read::{Asked, End, SlurmJob, Stands};
use hostler_live::driver::slurm::words::Gpus;
use hostler_live::job::JobState;

use crate::there::{There, node};

fn one_node(settings: &str) -> There {
    There::new("kind = 'fifo'\nhead = 'skips'", settings, &[node("n1", 8, 64_000)])
}

fn ended(name: &str, end: End, on: &str) -> SlurmJob {
    let on = vec![on.to_owned()];
    let (name_there, stands) = (name.to_owned(), Stands::Over(end));
    SlurmJob { name_there, stands, on, exit_code: Some(3), ..SlurmJob::default() }
}

#[test]
fn accounts_that_do_not_know_of_an_end_yet_are_waited_for() {
    let mut there = one_node("comments = false\nfull_secs = 3");
    there.submit("1", 8, 10);
    there.seconds(6);
    there.run("1", 8);
    there.seconds(4);
    // The queue forgets it, and the accounts are late.
    there.jobs.remove("1");
    there.seconds(60);
    assert_eq!(there.here(), [(1, "1".to_owned(), JobState::Running)]);
    there.accounts.push(ended("1", End::Failed, "n1"));
    there.seconds(10);
    let over = there.over();
    assert_eq!((over[0].state, over[0].facts.exit_code), (JobState::Failed, Some(3)));
}

#[test]
fn accounts_that_never_know_of_an_end_are_not_waited_for_for_ever() {
    let mut there = one_node("comments = false\nfull_secs = 3");
    there.submit("1", 8, 10);
    there.seconds(6);
    there.run("1", 8);
    there.seconds(4);
    there.jobs.remove("1");
    there.seconds(620);
    let over = there.over();
    assert_eq!(over[0].state, JobState::Finished);
    assert!(over[0].facts.reason.contains("forgot how it ended"));
}

#[test]
fn a_job_that_was_moved_may_be_called_by_its_old_reason_for_a_moment() {
    let mut there = one_node("comments = false\nstart_secs = 8");
    there.submit("1", 8, 10);
    there.seconds(10);
    // Slurm says `PartitionDown` until it has looked at it again.
    assert_eq!(there.jobs["1"].partition, "normal");
    there.run("1", 8);
    there.seconds(3);
    assert_eq!(there.here()[0].2, JobState::Running);
}

#[test]
fn a_job_beyond_all_bounds_says_so_and_is_booked_where_it_runs() {
    let mut there = one_node("full_secs = 3");
    there.submit("1", 0, 10);
    there.jobs.get_mut("1").unwrap().cpus = u32::MAX;
    there.nodes[0].threads = 2;
    there.submit("2", 0, 10);
    there.seconds(8);
    let reason = there.job(1).reason;
    assert!(reason.contains("it asks for more than 64000 cores or GPUs of a node"), "{reason}");
    assert!(there.jobs["1"].comment.contains("more than 64000 cores"));
    // An operator took it out.
    let job = there.jobs.get_mut("1").unwrap();
    job.gpus = Asked::OnEachNode(Gpus { count: 2, model: None });
    (job.partition, job.required) = ("normal".to_owned(), vec!["n1".to_owned()]);
    there.run("1", 2);
    there.seconds(6);
    assert_eq!(there.job(1).state, JobState::Running);
    assert_eq!(there.booked(), 2);
}

#[test]
fn a_huge_job_that_was_never_seen_waiting_is_booked() {
    let mut there = one_node("comments = false\nfull_secs = 3");
    there.submit("1", 2, 10);
    let job = there.jobs.get_mut("1").unwrap();
    (job.cpus, job.partition) = (4_000_000_000, "normal".to_owned());
    job.required = vec!["n1".to_owned()];
    there.run("1", 2);
    there.seconds(6);
    assert_eq!(there.booked(), 2);
}

#[test]
fn tasks_that_wait_together_are_told_together() {
    let mut there = one_node("full_secs = 3\ncalls_max = 1");
    let tasks: Vec<u32> = (1..=9).collect();
    for task in &tasks {
        let name = format!("3_{task}");
        there.submit(&name, 8, 10);
        let job = there.jobs.get_mut(&name).unwrap();
        (job.array, job.priority) = (Some((3, None)), 0);
        job.together = Some("3_[1-9]".to_owned());
    }
    there.seconds(12);
    assert_eq!(there.came("scontrol update jobid=3_["), 1, "{:?}", there.log);
    assert_eq!(there.log.len(), 1, "{:?}", there.log);
    assert!(there.jobs.values().all(|job| job.comment.starts_with("hostler: ")));
    // One that is by itself speaks for itself.
    let alone = there.jobs.get_mut("3_4").unwrap();
    (alone.together, alone.reason) = (None, "JobHeldAdmin".to_owned());
    there.seconds(8);
    assert!(there.log[1].starts_with("scontrol update jobid=3_4 AdminComment="), "{:?}", there.log);
}

#[test]
fn whoever_waits_is_told_why_however_fast_others_have_news() {
    let mut there = one_node("full_secs = 1\ncalls_max = 64");
    for job in 101..=199 {
        let name = format!("{job}");
        there.submit(&name, 1, 10);
        there.jobs.get_mut(&name).unwrap().after = "afterok:9".to_owned();
    }
    for turn in 0..25_u32 {
        // Most of them wait for something else at each look.
        for job in 101..=180 {
            let job = there.jobs.get_mut(&format!("{job}")).unwrap();
            job.after = format!("afterok:{turn}");
        }
        there.second();
    }
    there.seconds(2);
    let silent: Vec<_> = there.jobs.values().filter(|job| job.comment.is_empty()).collect();
    assert!(silent.is_empty(), "{} were never told", silent.len());
}

#[test]
fn accounts_without_end_share_one_tenant() {
    let mut there = one_node("comments = false");
    for job in 1..=4_100_u32 {
        let name = format!("{job}");
        there.submit(&name, 9, 10);
        there.jobs.get_mut(&name).unwrap().account = format!("made-up-{job}");
    }
    there.seconds(5);
    assert!(there.host.state().tenants().len() <= 4_097);
    assert_eq!(there.job(1).tenant, "made-up-1");
    assert_eq!(there.job(4_100).tenant, "others");
}
