//! What users and operators do, and who must start where.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Cluster, wait_for};
use crate::lab::{Lab, SMALL, Wants, is_possible};

/// A job of Hostler's, by what Slurm calls it.
fn here(cluster: &Cluster, name: &str) -> Option<Value> {
    let page: Value = serde_json::from_str(&cluster.text(&["queue", "--json"])).unwrap();
    let jobs = page.as_array().or(page["jobs"].as_array()).cloned().unwrap_or_default();
    jobs.into_iter().find(|job| job["engine_id"] == name)
}

fn until_reason(cluster: &Cluster, name: &str, words: &str) -> Value {
    wait_for(&format!("job {name} to wait because `{words}`"), || {
        here(cluster, name).filter(|job| job["reason"].as_str().unwrap().contains(words))
    })
}

/// Where it ran, when it began, how often it was started again.
fn run_of(lab: &Lab, name: &str) -> (String, u64) {
    let fields = lab.job(name, "%N|%S");
    let (nodes, started) = fields.split_once('|').unwrap();
    (nodes.to_owned(), started.parse().unwrap())
}

fn restarts(lab: &Lab, name: &str) -> u32 {
    let shown = lab.text(&["scontrol", "show", "job", name]);
    let at = shown.split("Restarts=").nth(1).unwrap();
    at.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn the_shortest_go_first_to_the_nodes_that_were_decided() {
    if !is_possible() {
        return;
    }
    let lab = Lab::small();
    // All wait before anybody decides.
    let long = lab.submit("-J long -t 5 --gres=gpu:p100:2", "sleep 3");
    let short = lab.submit("-J short -t 1 --gres=gpu:p100:2", "sleep 1");
    let third = lab.submit("-J third -t 9 --gres=gpu:p100:2", "sleep 1");
    let gang = lab.submit("-J gang -t 2 -N2 --gres=gpu:misc:8", "sleep 1");
    let _cluster = lab.hostler("sjf", "");
    for job in [&long, &short, &third, &gang] {
        lab.until(job, "COMPLETED");
    }
    let short_ended: u64 = lab.job(&short, "%e").parse().unwrap();
    let [long, short, third, gang] = [long, short, third, gang].map(|job| {
        assert_eq!(restarts(&lab, &job), 0, "job {job}");
        run_of(&lab, &job)
    });
    assert_eq!((short.0.as_str(), gang.0.as_str(), long.0.as_str()), ("p1", "m[1-2]", "p2"));
    assert_eq!(third.0, "p1");
    assert!(third.1 >= short_ended, "third began before short had ended");
}

#[test]
fn jobs_of_slurm_are_jobs_here_with_all_that_slurm_holds_back() {
    if !is_possible() {
        return;
    }
    let lab = Lab::small();
    let cluster =
        lab.hostler("fifo:head=skips", "tenant_by = 'user'\ntenants = { root = 'staff' }");
    let first = lab.submit("-J first -t 1 --mem=200 -n 2", "sleep 2");
    let array = lab.submit("-J array -t 1 --array=1-4%2 --gres=gpu:t4:1", "sleep 2");
    let after = lab.submit(&format!("-J after -t 1 -d afterok:{first}"), "true");
    let held = lab.submit("-J held -t 1 -H", "true");
    let alone = lab.submit("-J alone -t 1 --exclusive", "true");
    let tasks = lab.submit("-J tasks -t 1 --gpus=4 -n 4", "true");
    let never = lab.submit("-J never -t 700", "true");
    let job = wait_for("the first job", || here(&cluster, &first));
    assert_eq!((job["name"].as_str(), job["tenant"].as_str()), (Some("first"), Some("staff")));
    assert_eq!((&job["request"]["cpus"], &job["request"]["mem_mib"]), (&2.0.into(), &200.into()));
    until_reason(&cluster, &after, "it comes after other jobs in Slurm");
    let job = until_reason(&cluster, &held, "its user holds it in Slurm");
    assert_eq!((job["state"].as_str(), job["held_by"].as_str()), (Some("held"), Some("engine")));
    until_reason(&cluster, &alone, "it asks for whole nodes (`--exclusive`)");
    // Slurm has the last word on limits of its partitions, and is heard.
    until_reason(&cluster, &never, "Slurm did not start it: PartitionTimeLimit");
    lab.text(&["scontrol", "release", &held]);
    for job in [&first, &after, &held, &tasks] {
        lab.until(job, "COMPLETED");
    }
    let element = |task: u32| format!("{array}_{task}");
    (1..=4).for_each(|task| lab.until(&element(task), "COMPLETED"));
    let runs: Vec<(String, u64)> = (1..=4).map(|task| run_of(&lab, &element(task))).collect();
    assert!(runs[2].1 > runs[0].1 && runs[3].1 > runs[1].1, "more than two at once: {runs:?}");
    // Users are told by their own tools.
    wait_for("a comment", || {
        let shown = lab.text(&["scontrol", "show", "job", &alone]);
        shown.contains("AdminComment=hostler: Hostler does not place it").then_some(())
    });
    // What a person cancels here ends there.
    let job = here(&cluster, &alone).unwrap();
    cluster.text(&["cancel", &job["id"].to_string()]);
    lab.until(&alone, "CANCELLED");
    let refused = cluster.run(&["submit", "--", "true"]).unwrap_err();
    assert!(refused.contains("sbatch --partition=ext"), "{refused}");
}

#[test]
fn what_runs_by_itself_is_booked_and_nodes_are_as_slurm_says() {
    if !is_possible() {
        return;
    }
    let lab = Lab::small();
    let foreign = lab.submit_to("high", "-J foreign -t 9 --gres=gpu:v100:6 -c 3", "sleep 6");
    lab.until(&foreign, "RUNNING");
    lab.text(&["scontrol", "update", "nodename=p1", "state=drain", "reason=fan broken"]);
    let cluster = lab.hostler("fifo:head=skips", "");
    let wants = lab.submit("-J wants -t 1 --gres=gpu:v100:4", "true");
    let moved = lab.submit("-J moved -t 1 --gres=gpu:p100:2", "true");
    lab.until(&moved, "COMPLETED");
    assert_eq!(run_of(&lab, &moved).0, "p2");
    let node = |name: &str| {
        let nodes = cluster.nodes();
        nodes.into_iter().find(|node| node["name"] == name).unwrap()
    };
    let (p1, v1) = (node("p1"), node("v1"));
    assert!(p1["reason"].as_str().unwrap().contains("fan broken"), "{p1}");
    assert_eq!((&v1["gpus_used"], &v1["cpus_used"]), (&6.0.into(), &3.0.into()), "{v1}");
    let job = here(&cluster, &foreign).unwrap();
    assert_eq!(job["state"], "running");
    lab.until(&wants, "COMPLETED");
    // It was not moved in vain while the other one ran.
    assert_eq!(restarts(&lab, &wants), 0);
    let ended: u64 = lab.job(&foreign, "%e").parse().unwrap();
    assert!(run_of(&lab, &wants).1 >= ended, "both were on v1 at once");
}

#[test]
fn a_job_that_gives_way_is_requeued_and_starts_again() {
    if !is_possible() {
        return;
    }
    let lab = Lab::small();
    let cluster = lab.hostler("srtf", "preempt_requeueable = true");
    let long = lab.submit("-J long -t 60 --gres=gpu:v100:8", "sleep 4");
    lab.until(&long, "RUNNING");
    let short = lab.submit("-J short -t 1 --gres=gpu:v100:8", "sleep 1");
    lab.until(&short, "COMPLETED");
    let ended = Instant::now();
    lab.until(&long, "RUNNING");
    assert!(ended.elapsed() < Duration::from_secs(15), "it waits for its credential");
    assert_eq!(restarts(&lab, &long), 1);
    // A person may requeue it, too.
    lab.text(&["scontrol", "requeue", &long]);
    wait_for("the second restart", || (restarts(&lab, &long) == 2).then_some(()));
    lab.until(&long, "COMPLETED");
    wait_for("the end of it here", || here(&cluster, &long).is_none().then_some(()));
    let over: Value = serde_json::from_str(&cluster.text(&["history", "--json"])).unwrap();
    let jobs = over.as_array().or(over["jobs"].as_array()).unwrap();
    let states: Vec<&str> = jobs.iter().map(|job| job["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["finished", "finished"]);
}

#[test]
fn a_node_that_dies_under_a_start_keeps_nobody() {
    if !is_possible() {
        return;
    }
    let mut lab = Lab::small();
    let cluster = lab.hostler("fifo:head=skips", "start_secs = 4");
    let runs = lab.submit("-J runs -t 9 --gres=gpu:p100:1", "sleep 300");
    lab.until(&runs, "RUNNING");
    let on = run_of(&lab, &runs).0;
    assert_eq!(on, "p1");
    lab.kill_node("p1");
    lab.kill_node("p2");
    // Slurm does not know yet that nobody is there.
    let waits = lab.submit("-J waits -t 9 --gres=gpu:p100:1", "true");
    wait_for("Slurm to give a node up", || {
        let state = lab.text(&["sinfo", "-h", "-n", "p1", "-p", "normal", "-o", "%T"]);
        state.contains("down").then_some(())
    });
    lab.start_node("p2");
    lab.until(&waits, "COMPLETED");
    assert_eq!(run_of(&lab, &waits).0, "p2");
    // What ran on the node that failed runs again elsewhere.
    wait_for("the job of the dead node", || {
        let fields = lab.job(&runs, "%T|%N");
        (fields == "RUNNING|p2").then_some(())
    });
    assert!(restarts(&lab, &runs) >= 1);
    let job = here(&cluster, &runs).unwrap();
    cluster.text(&["cancel", &job["id"].to_string()]);
    lab.until(&runs, "CANCELLED");
}

#[test]
fn what_is_asked_in_other_words_is_kept_to_or_told() {
    if !is_possible() {
        return;
    }
    let lab = Lab::small();
    let cluster = lab.hostler("fifo:head=skips", "");
    let named = lab.submit("-J named -t 1 --gres=gpu:p100:1 -w p2", "true");
    let by_gpu = lab.submit("-J by-gpu -t 1 --gres=gpu:t4:2 --mem-per-gpu=150", "sleep 2");
    let range = lab.submit("-J range -t 1 -N1-3 --gres=gpu:misc:1", "sleep 2");
    let job = wait_for("the memory of GPUs", || here(&cluster, &by_gpu));
    assert_eq!(job["request"]["mem_mib"], 300, "{job}");
    until_reason(&cluster, &named, "`--nodelist=p2`");
    for job in [&by_gpu, &range] {
        lab.until(job, "COMPLETED");
    }
    let on = run_of(&lab, &range).0;
    assert!(!on.contains([',', '[']), "a job that asks for one node at least is given one: {on}");
    // The way out that the reason names: Slurm starts it where its user wants it.
    lab.text(&["scontrol", "update", &format!("jobid={named}"), "partition=normal"]);
    lab.until(&named, "COMPLETED");
    assert_eq!(run_of(&lab, &named).0, "p2");
}

#[test]
fn an_array_that_waits_is_told_why_and_stays_one_job_of_slurms() {
    if !is_possible() {
        return;
    }
    let lab = Lab::small();
    let cluster = lab.hostler("fifo:head=skips", "");
    let array = lab.submit("-J array -t 1 --mem=100 -H --array=1-40%2", "true");
    let shown = || lab.text(&["scontrol", "show", "job", &array]);
    wait_for("a comment", || {
        shown().contains("AdminComment=hostler: its user holds it in Slurm").then_some(())
    });
    until_reason(&cluster, &format!("{array}_40"), "its user holds it in Slurm");
    // One that Slurm has cut off is told for itself.
    lab.text(&["scontrol", "release", &format!("{array}_2")]);
    lab.until(&format!("{array}_2"), "COMPLETED");
    let jobs = shown().lines().filter(|line| line.starts_with("JobId=")).count();
    assert_eq!(jobs, 2, "{}", shown());
    // Where nobody backfills, Slurm takes no jobs with parts that differ.
    let parts = lab.try_submit("-t 1 --gres=gpu:t4:1 : -p ext -t 1 --gres=gpu:p100:1", "true");
    assert!(parts.unwrap_err().contains("not supported"));
}

#[test]
fn nodes_that_are_kept_for_others_are_left_alone() {
    if !is_possible() {
        return;
    }
    let lab = Lab::small();
    // Slurm shows a node with jobs as mixed, whether it is reserved or not.
    let foreign = lab.submit_to("high", "-t 9 -w m1 --gres=gpu:misc:4", "sleep 60");
    lab.until(&foreign, "RUNNING");
    let words = ["scontrol", "create", "reservation", "ReservationName=keep", "Nodes=m1"];
    let rest = ["Users=root", "StartTime=now", "Duration=60", "Flags=IGNORE_JOBS"];
    lab.text(&[&words[..], &rest].concat());
    let cluster = lab.hostler("fifo:head=skips:place=best-fit", "");
    let job = lab.submit("-t 1 --gres=gpu:misc:4", "true");
    lab.until(&job, "COMPLETED");
    assert_eq!((run_of(&lab, &job).0.as_str(), restarts(&lab, &job)), ("m2", 0));
    let nodes = cluster.nodes();
    let m1 = nodes.iter().find(|node| node["name"] == "m1").unwrap();
    assert!(m1["reason"].as_str().unwrap().contains("reserved"), "{m1}");
    lab.text(&["scontrol", "delete", "ReservationName=keep"]);
    wait_for("the node to be free", || {
        let nodes = cluster.nodes();
        let m1 = nodes.iter().find(|node| node["name"] == "m1")?;
        m1["reason"].as_str().is_none_or(str::is_empty).then_some(())
    });
    lab.text(&["scancel", &foreign]);
}

#[test]
fn limits_of_a_quality_of_service_are_heard() {
    if !is_possible() {
        return;
    }
    let enforce = "AccountingStorageEnforce=limits,qos".to_owned();
    let lab =
        Lab::start(SMALL, &Wants { accounts: true, lines: vec![enforce], ..Wants::default() });
    let words = ["sacctmgr", "-i", "add", "qos", "tight", "MaxTRESPerUser=gres/gpu=1"];
    lab.text(&words);
    lab.text(&["sacctmgr", "-i", "modify", "user", "root", "set", "qos+=tight"]);
    let cluster = lab.hostler("fifo:head=skips", "start_secs = 4");
    let fits = wait_for("the accounts to reach Slurm", || {
        lab.try_submit("-t 1 --qos=tight --gres=gpu:t4:1", "sleep 1").ok()
    });
    let never = lab.submit("-t 1 --qos=tight --gres=gpu:t4:2", "true");
    until_reason(&cluster, &never, "Slurm did not start it: QOSMaxGRESPerUser");
    lab.until(&fits, "COMPLETED");
    // Nobody keeps a place for it.
    let next = lab.submit("-t 1 --gres=gpu:t4:2", "true");
    lab.until(&next, "COMPLETED");
}

#[test]
fn tenants_see_and_end_their_own_jobs_alone() {
    if !is_possible() {
        return;
    }
    let lab = Lab::small();
    let cluster = lab.hostler("fifo:head=skips", "tenant_by = 'user'");
    let long =
        ["sbatch", "--parsable", "-o", "/dev/null", "-p", "ext", "-t", "9", "--wrap=sleep 300"];
    let theirs = lab.as_nobody(&long).unwrap().trim().to_owned();
    let ours = lab.submit("-t 9", "sleep 300");
    let job = |name: &str| wait_for("the job here", || here(&cluster, name));
    let (theirs_here, ours_here) = (job(&theirs)["id"].to_string(), job(&ours)["id"].to_string());
    let made = cluster.text(&["token", "create", "ann", "--tenant", "nobody"]);
    let token = made.split_whitespace().find(|word| word.starts_with("hst_")).unwrap();
    let page = cluster.run_by(token, &["queue", "--json"]).unwrap();
    let page: Value = serde_json::from_str(&page).unwrap();
    let jobs = page.as_array().or(page["jobs"].as_array()).unwrap();
    let seen: Vec<_> = jobs.iter().map(|job| job["engine_id"].as_str().unwrap()).collect();
    assert_eq!(seen, [theirs.as_str()]);
    cluster.run_by(token, &["cancel", &ours_here]).unwrap_err();
    cluster.run_by(token, &["cancel", &theirs_here]).unwrap();
    lab.until(&theirs, "CANCELLED");
    assert_ne!(lab.job(&ours, "%T"), "CANCELLED");
}
