//! Speeds by workload and GPU model, from a table: steps become run times.

use crate::program::{Folder, repository};

const NODES: &str = "node_id,gpu_model,gpu_count,cpu_milli,mem_mib\n\
                     a,V100,2,8000,65536\nb,K80,2,8000,65536\n";
const TABLE: &str = "workload,gpu_model,gpus,spread,steps_per_sec\n\
                     resnet,V100,1,0,8\nresnet,K80,1,0,2\nresnet,v100,2,0,16\n\
                     resnet,V100,4,0,32\nresnet,K80,4,0,32\nresnet,V100,4,1,4\n\
                     resnet,K80,4,1,4\nbig,V100,1,0,1\nbig,K80,1,0,0\n";

/// A trace of these tasks, `job,count,gpu_models,work,model` each, all submitted at once.
fn trace(folder: &Folder, tasks: &[&str]) {
    let mut jobs = "job_id,user,submit_ms\n".to_owned();
    let mut rows = "job_id,count,gpu_milli,gpu_models,cpu_milli,work,model\n".to_owned();
    for task in tasks {
        let [job, count, models, work, model] = task.split(',').collect::<Vec<_>>()[..] else {
            panic!("`{task}` has not five fields");
        };
        jobs += &format!("{job},ada,0\n");
        rows += &format!("{job},{count},1000,{models},1000,{work},{model}\n");
    }
    folder.write("trace/nodes.csv", NODES);
    folder.write("trace/jobs.csv", jobs);
    folder.write("trace/tasks.csv", rows);
    folder.write("speeds.csv", TABLE);
}

const SIMULATE: &str = "simulate --trace trace --policy fifo --json";

fn makespan(folder: &Folder, more: &str) -> f64 {
    let run = folder.json(&format!("{SIMULATE} {more}"));
    run["makespan_s"].as_f64().expect("a number")
}

#[test]
fn steps_take_as_long_as_the_table_says_for_the_gpu() {
    // 800 steps: 100 s at 8 steps a second, 400 s at 2.
    for (model, seconds) in [("V100", 100.0), ("K80", 400.0)] {
        let folder = Folder::new();
        trace(&folder, &[&format!("j,1,{model},800,ResNet")]);
        assert_eq!(makespan(&folder, "--throughputs speeds.csv"), seconds);
    }
}

#[test]
fn gangs_over_several_servers_run_at_the_speed_of_spread_ones() {
    let folder = Folder::new();
    // Two GPUs of one server: 16 steps a second. All four: 4 steps a second, not 32.
    trace(&folder, &["two,2,V100,1600,resnet"]);
    assert_eq!(makespan(&folder, "--throughputs speeds.csv"), 100.0);
    trace(&folder, &["four,4,,1600,resnet"]);
    assert_eq!(makespan(&folder, "--throughputs speeds.csv"), 400.0);
}

#[test]
fn no_policy_puts_a_job_where_it_does_not_fit() {
    let folder = Folder::new();
    // Six jobs on two V100, one after another: three times 100 s.
    let jobs: Vec<String> = (0..6).map(|job| format!("{job},1,,100,big")).collect();
    trace(&folder, &jobs.iter().map(String::as_str).collect::<Vec<_>>());
    let compared =
        folder.json("compare --trace trace --throughputs speeds.csv --json --out r.html");
    let runs = compared["runs"].as_array().expect("a list");
    assert!(runs.len() > 5, "only {} policies", runs.len());
    for run in runs {
        assert_eq!(run["makespan_s"], 300.0, "{}", run["policy"]);
        assert_eq!(run["jobs_done"], 6, "{}", run["policy"]);
    }
}

#[test]
fn a_scenario_can_name_the_table_beside_it() {
    let folder = Folder::new();
    trace(&folder, &["j,1,K80,800,resnet"]);
    folder.write("conf/s.toml", "throughputs = '../speeds.csv'\n");
    assert_eq!(makespan(&folder, "--scenario conf/s.toml"), 400.0);
    // The command line has the last word: nothing to go by.
    let line = format!("{SIMULATE} --scenario conf/s.toml --throughputs none.csv");
    folder.run(&line).fails(1, &["none.csv"]);
}

#[test]
fn what_the_table_lacks_is_told_once() {
    let folder = Folder::new();
    trace(&folder, &["a,1,,800,resnet", "b,1,,1,gpt", "c,1,,1,gpt"]);
    folder.write(
        "trace/tasks.csv",
        "job_id,count,gpu_milli,gpu_models,cpu_milli,work,model,duration_ms\n\
         a,1,1000,,1000,800,resnet,\nb,1,1000,,1000,1,gpt,5000\nc,1,1000,,1000,1,gpt,5000\n",
    );
    let ran = folder.run(&format!("{SIMULATE} --throughputs speeds.csv")).ok();
    assert_eq!(
        ran.stderr,
        "warning: 2 jobs name a workload that the throughput table lacks (`gpt`); they run at one \
         speed on every GPU\n"
    );
    folder.write("t.csv", "workload,gpu_model,steps_per_sec\nresnet,K80,1\n");
    let ran = folder.run(&format!("{SIMULATE} --throughputs t.csv")).ok();
    assert!(ran.stderr.contains("lacks GPU model `V100`; it counts as fast"), "{}", ran.stderr);
    folder.write("t.csv", "workload,gpu_model,speed\n");
    folder.run(&format!("{SIMULATE} --throughputs t.csv")).fails(1, &["t.csv:1", "`speed`"]);
}

#[test]
fn a_gavel_trace_runs_with_a_gavel_table_and_its_log_replays() {
    let folder = Folder::new();
    let line = "lm\tpython3 x\tlm\t-s\t1\t346\t1\t1\t-1.0\t0.5\n";
    folder.write("jobs.trace", line.replace("lm\tp", "conv-s\tp").repeat(3));
    folder.run("trace convert jobs.trace trace --from gavel").ok();
    folder.write("nodes.csv", NODES);
    let table = repository("testdata/gavel/own_throughputs.json");
    let common = format!("--cluster nodes.csv --throughputs {table} --log run.jsonl");
    // Nine steps a second on the V100, of which there are two; 1.1 on the K80.
    let seconds = makespan(&folder, &common);
    let exact = 346.0 / 1.1;
    assert!((seconds / exact - 1.0).abs() < 1e-5, "{seconds}, not {exact}");
    assert!(folder.run("replay run.jsonl --check").ok().stdout.contains("all the same"));
    let cluster = repository("examples/clusters/gavel.toml");
    let run = folder.json(&format!("{SIMULATE} --cluster {cluster} --throughputs {table}"));
    assert_eq!(run["jobs_done"], 3);
}

#[test]
fn the_table_of_the_examples_is_read() {
    let folder = Folder::new();
    trace(&folder, &["j,1,V100,120000,resnet50-training"]);
    let ran =
        folder.run(&format!("{SIMULATE} --throughputs {}", repository("examples/throughputs")));
    // 1200 images a second; nobody printed a K80.
    let ran = ran.ok();
    assert!(ran.stdout.contains("\"makespan_s\": 100.0"), "{}", ran.stdout);
    assert!(ran.stderr.contains("`K80`"), "{}", ran.stderr);
}

#[test]
fn observed_speeds_enter_the_log_only_after_a_job_has_run() {
    let folder = Folder::new();
    trace(&folder, &["j,1,K80,800,resnet", "k,1,K80,800,resnet", "l,1,K80,800,resnet"]);
    folder.write("s.toml", "throughputs = 'speeds.csv'\n[profiles]\nsource = 'observed'\n");
    assert_eq!(makespan(&folder, "--scenario s.toml --log run.jsonl"), 800.0);
    let log = folder.text("run.jsonl");
    let told: Vec<&str> = log.lines().filter(|line| line.contains("profiled")).collect();
    // Two jobs end at once and say the same; the third adds nothing.
    let [told] = told[..] else { panic!("{} records tell speeds", told.len()) };
    assert!(told.contains("\"at\":400000000"), "{told}");
    // A quarter of the reference speed, on the second model of the cluster.
    assert!(told.contains("\"alone\":[[[1,false,1],250000000]]"), "{told}");
    folder.run("replay run.jsonl --check").ok();
}
