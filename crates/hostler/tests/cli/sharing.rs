//! What sharing GPUs saves and costs, from tables to figures, worked out by hand.

use crate::program::Folder;

/// Two jobs that ask for half of the only GPU and would use 0.4 and 0.8 of it.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("trace/nodes.csv", "node_id,gpu_model,gpu_count,cpu_milli\nn1,V100,1,8000\n");
    folder.write("trace/jobs.csv", "job_id,submit_ms,sharing\na,0,willing\nb,0,never\n");
    folder.write(
        "trace/tasks.csv",
        "job_id,count,gpu_milli,duration_ms,gpu_use_milli\na,1,500,100000,400\nb,1,500,100000,800\n",
    );
    folder.write("costs.toml", "[sharing]\ncapacity = 1\ninterference = 0\n");
    folder
}

#[test]
fn figures_of_sharing_are_those_worked_out_by_hand() {
    let run = folder().json("simulate --trace trace --scenario costs.toml --policy fifo --json");
    // Of 1.2 that they would use there is 1: a gets its 0.4 and ends at 100, b gets 0.6 of 0.8 and
    // ends at 125. One GPU is saved for 100 of 125 seconds.
    assert_eq!(run["makespan_s"], 125.0);
    assert_eq!(run["gpus_saved_avg"], 0.8);
    assert_eq!(run["gpus_saved_peak"], 1);
    assert_eq!(run["gpus_saved_share"], 100.0 / 225.0);
    assert_eq!(run["gpus_held_avg"], 1.0);
    let contention = &run["contention"];
    assert_eq!(contention["shared_gpu_hours"], 100.0 / 3600.0);
    assert_eq!(contention["contended_share"], 1.0);
    assert_eq!(contention["shared_stays"], 2);
    assert_eq!(contention["slowdown_avg"], 1.125);
    assert_eq!(contention["slowdown_p95"], 1.25);
}

#[test]
fn columns_of_sharing_show_up_where_gpus_are_shared() {
    let folder = folder();
    let table = |policies: &str| {
        let line = format!("compare --trace trace --scenario costs.toml --policies {policies}");
        folder.run(&line).ok().stdout
    };
    let shared = table("fifo:sharing=off,fifo:sharing=requests");
    assert!(shared.contains("contended"), "{shared}");
    assert!(shared.contains("44.4 %"), "{shared}");
    assert!(folder.text("hostler-report.html").contains("GPUs saved"));
    let alone = table("fifo:sharing=off");
    assert!(!alone.contains("contended"), "{alone}");
}
