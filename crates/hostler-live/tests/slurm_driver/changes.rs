//! Jobs and nodes that are changed in Slurm while Hostler relies on what they were.

use hostler_live::driver::slurm::read::{Asked, End, Memory};
use hostler_live::driver::slurm::words::Gpus;
use hostler_live::job::JobState;

use crate::there::{There, node};

const SETTINGS: &str = "comments = false\nfull_secs = 3";

fn skipping(nodes: u32) -> There {
    let nodes: Vec<_> = (1..=nodes).map(|number| node(&format!("n{number}"), 8, 64_000)).collect();
    There::new("kind = 'fifo'\nhead = 'skips'", SETTINGS, &nodes)
}

#[test]
fn a_job_that_was_given_more_gpus_than_it_was_booked_with_is_booked_as_it_is() {
    let mut there = skipping(1);
    there.submit("1", 1, 10);
    there.seconds(6);
    // Its user wanted more in the last moment.
    there.jobs.get_mut("1").unwrap().gpus = Asked::OnEachNode(Gpus { count: 8, model: None });
    there.run("1", 8);
    there.seconds(8);
    assert_eq!(there.booked(), 8);
    assert_eq!(there.here()[0].2, JobState::Running);
    let leases: Vec<_> = there.host.state().leases().map(|lease| lease.id).collect();
    // Nobody is sent to where it is, and it stays booked as it is.
    there.submit("2", 4, 10);
    there.seconds(8);
    let later: Vec<_> = there.host.state().leases().map(|lease| lease.id).collect();
    assert_eq!(leases, later);
    assert_eq!(there.jobs["2"].partition, "hostler");
}

#[test]
fn a_node_that_comes_or_goes_leaves_waiting_jobs_their_numbers() {
    let mut there = skipping(2);
    there.submit("1", 17, 10);
    there.submit("2", 8, 10);
    let unsaid = there.jobs.get_mut("2").unwrap();
    (unsaid.mem, unsaid.nodes_max) = (Memory::Unsaid, None);
    unsaid.gpus = Asked::InAll(Gpus { count: 16, model: None });
    unsaid.priority = 0;
    there.seconds(6);
    let before = there.here();
    assert_eq!(before.len(), 2);
    there.nodes.push(node("n3", 16, 32_000));
    there.seconds(8);
    assert_eq!(there.here(), before);
    there.nodes.truncate(2);
    there.seconds(8);
    assert_eq!(there.here(), before);
    // What was booked is what Slurm is told, whatever would be asked for now.
    there.nodes.push(node("n3", 16, 32_000));
    there.jobs.get_mut("2").unwrap().priority = 100;
    there.seconds(6);
    let start = there.log.iter().find(|line| line.contains("jobid=2 ")).unwrap();
    assert!(start.contains("ReqNodeList=n1,n2"), "{start}");
    assert!(start.contains("NumNodes=2-2 MinMemoryNode=64000"), "{start}");
}

#[test]
fn a_job_that_is_changed_for_real_is_another_one() {
    let mut there = skipping(1);
    there.submit("1", 9, 10);
    there.seconds(6);
    let submitted = there.job(1).submitted;
    there.jobs.get_mut("1").unwrap().limit_secs = Some(60);
    there.seconds(6);
    assert_eq!(there.here(), [(2, "1".to_owned(), JobState::Held)]);
    assert!((there.job(2).submitted - submitted).abs() < 1.5);
}

#[test]
fn a_job_that_no_node_has_room_for_any_more_is_asked_for_anew() {
    let mut there = skipping(1);
    there.submit("1", 8, 10);
    there.jobs.get_mut("1").unwrap().mem = Memory::Unsaid;
    there.jobs.get_mut("1").unwrap().priority = 0;
    there.seconds(6);
    there.nodes[0] = node("n1", 8, 32_000);
    there.jobs.get_mut("1").unwrap().priority = 100;
    there.seconds(10);
    there.run("1", 8);
    there.seconds(4);
    assert_eq!(there.here()[0].2, JobState::Running);
}

#[test]
fn a_node_whose_gpus_cannot_be_told_any_more_takes_no_jobs_and_says_why() {
    let mut there = skipping(2);
    there.seconds(6);
    there.nodes[0].gpus = Err("GPUs of several models at once".to_owned());
    there.seconds(6);
    let seen = there.host.node("n1").unwrap();
    assert!(seen.reason.contains("several models"), "{}", seen.reason);
    there.submit("1", 8, 10);
    there.submit("2", 8, 10);
    there.seconds(8);
    assert_eq!(there.jobs["1"].required, ["n2"]);
    assert!(there.jobs["2"].required.is_empty());
    there.nodes[0] = node("n1", 8, 64_000);
    there.seconds(8);
    assert_eq!(there.jobs["2"].required, ["n1"]);
}

#[test]
fn a_job_that_was_cancelled_before_it_ran_never_started() {
    let mut there = skipping(1);
    there.submit("1", 1, 10);
    there.seconds(6);
    assert_eq!(there.jobs["1"].partition, "normal");
    // Slurm gives it a time of its start all the same.
    there.end("1", End::Cancelled);
    there.seconds(6);
    let over = there.over();
    assert_eq!((over.len(), over[0].state), (1, JobState::Cancelled));
    assert_eq!(there.host.state().leases().count(), 0);
    let started =
        there.records().iter().filter(|record| record.contains("\"event\":\"started\"")).count();
    assert_eq!(started, 0);
}
