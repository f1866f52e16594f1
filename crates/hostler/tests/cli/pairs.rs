//! Pairs that the throughput table lacks: packed only where they are estimated.

use crate::program::{Folder, repository};

const NODES: &str = "node_id,gpu_model,gpu_count,cpu_milli,mem_mib\na,V100,1,8000,65536\n";

/// Four workloads that do not disturb each other much. What `a` and `d` do together is not there.
fn small(folder: &Folder) {
    let names = ["a", "b", "c", "d"];
    let mut alone = "workload,gpu_model,steps_per_sec\n".to_owned();
    let mut pairs = "workload,other,gpu_model,steps_per_sec,other_steps_per_sec\n".to_owned();
    for (at, name) in names.iter().enumerate() {
        alone += &format!("{name},V100,10\n");
        let others = names[at..].iter().filter(|other| [*name, **other] != ["a", "d"]);
        others.for_each(|other| pairs += &format!("{name},{other},V100,9,9\n"));
    }
    folder.write("speeds/throughputs.csv", alone);
    folder.write("speeds/pairs.csv", pairs);
    folder.write("trace/nodes.csv", NODES);
    folder.write("trace/jobs.csv", "job_id,submit_ms,sharing\n1,0,willing\n2,0,willing\n");
    folder.write(
        "trace/tasks.csv",
        "job_id,count,gpu_milli,cpu_milli,work,model\n1,1,1000,1000,20000,a\n2,1,1000,1000,20000,d\n",
    );
}

const SMALL: &str = "simulate --trace trace --throughputs speeds --policy max-min-fairness \
                     --set packed=true --json";

#[test]
fn two_jobs_whose_pair_was_not_measured_share_a_gpu_only_by_estimate() {
    let folder = Folder::new();
    small(&folder);
    let makespan = |more: &str| folder.json(&format!("{SMALL} {more}"))["makespan_s"].clone();
    assert_eq!(makespan(""), 4000.0);
    assert_eq!(makespan("--pairs measured"), 4000.0);
    // Nine steps a second, both at once.
    let together = makespan("--pairs estimated").as_f64().expect("a number");
    assert!((together - 2222.2).abs() < 1.0, "{together}");
    folder.write("s.toml", "[profiles]\npairs = 'estimated'\n");
    assert_eq!(makespan("--scenario s.toml"), together);
    // The command line has the last word.
    assert_eq!(makespan("--scenario s.toml --pairs measured"), 4000.0);
}

#[test]
fn without_any_measured_pair_there_is_a_warning() {
    let folder = Folder::new();
    small(&folder);
    std::fs::remove_file(folder.as_ref().join("speeds/pairs.csv")).expect("the file is there");
    let ran = folder.run(&format!("{SMALL} --pairs estimated")).ok();
    assert!(ran.stderr.contains("no pair of workloads was measured"), "{}", ran.stderr);
}

const MODELS: [&str; 3] = ["V100", "P100", "K80"];

/// The trace of this project, 80 jobs, on four GPUs of each model.
fn whole(folder: &Folder) {
    let trace = repository("testdata/gavel/own_cont_single_80.trace");
    folder.run(&format!("trace convert {trace} trace --from gavel")).ok();
    let mut nodes = "node_id,gpu_model,gpu_count,cpu_milli,mem_mib\n".to_owned();
    for (model, node) in MODELS.iter().flat_map(|model| (0..4).map(move |node| (model, node))) {
        nodes += &format!("{model}-{node},{model},1,16000,65536\n");
    }
    folder.write("nodes.csv", nodes);
}

#[test]
fn estimates_win_back_a_part_of_what_hidden_pairs_cost() {
    let folder = Folder::new();
    whole(&folder);
    let table = repository("testdata/gavel/own_throughputs.json");
    let jct = |more: &str| {
        let run = folder.json(&format!(
            "simulate --trace trace --cluster nodes.csv --throughputs {table} --policy \
             max-min-fairness --json --log run.jsonl --force {more}"
        ));
        assert_eq!(run["jobs_done"], 80, "{more}");
        run["avg_jct_s"].as_f64().expect("a number")
    };
    let hidden = |pairs: &str, source: &str| {
        let text =
            format!("[profiles]\nsource = '{source}'\npairs = '{pairs}'\nhidden = 0.8\nseed = 1\n");
        folder.write("s.toml", text);
        let jct = jct("--set packed=true --scenario s.toml");
        let checked = folder.run("replay run.jsonl --check").ok();
        assert!(checked.stdout.contains("all the same"), "{}", checked.stdout);
        jct
    };
    let (alone, all) = (jct("--set packed=false"), jct("--set packed=true"));
    let (measured, estimated) = (hidden("measured", "table"), hidden("estimated", "table"));
    println!(
        "alone {alone:.0} s, measured {measured:.0} s, estimated {estimated:.0} s, all {all:.0} s"
    );
    assert!(measured < alone, "{measured} s, {alone} s alone");
    assert!(estimated < measured, "{estimated} s, {measured} s without estimates");
    assert!(all < estimated, "{estimated} s, {all} s when all pairs are known");
    // Speeds alone are learnt, too. Nobody packs whom nobody ever saw together.
    let (measured, estimated) = (hidden("measured", "observed"), hidden("estimated", "observed"));
    println!("observed: measured {measured:.0} s, estimated {estimated:.0} s");
    assert!(estimated < 0.9 * measured, "{estimated} s, {measured} s without estimates");
}
