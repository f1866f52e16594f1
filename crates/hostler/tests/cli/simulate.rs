//! `hostler simulate`: numbers that are worked out by hand, and every way to name the input.

use crate::program::{Folder, Tables, repository};

/// Four jobs on two GPUs.
fn lecture(policy: &str) -> serde_json::Value {
    let trace = repository("testdata/traces/lecture");
    let cluster = repository("examples/clusters/lecture.toml");
    let line = format!("simulate --trace {trace} --cluster {cluster} --policy {policy} --json");
    Folder::new().json(&line)
}

fn assert_lecture(policy: &str, avg_jct_s: f64, makespan_s: f64) {
    let run = lecture(policy);
    assert_eq!(run["avg_jct_s"], avg_jct_s, "{policy}");
    assert_eq!(run["makespan_s"], makespan_s, "{policy}");
    assert_eq!(run["jobs_done"], 4, "{policy}");
}

#[test]
fn the_lecture_example_gives_the_numbers_of_the_lecture() {
    assert_lecture("fifo", 35.0, 70.0);
    assert_lecture("sjf --set preempt=true", 34.0, 66.0);
    assert_lecture("priority --set preempt=true", 43.5, 53.0);
}

#[test]
fn json_has_the_measures_that_others_build_on() {
    let run = lecture("sjf --set preempt=true");
    assert_eq!(run["policy"], "sjf");
    assert_eq!(run["settings"], "preempt=true");
    assert_eq!(run["preemptions"], 1);
    let numbers = [
        "jobs_done",
        "jobs_failed",
        "jobs_rejected",
        "avg_jct_s",
        "p50_jct_s",
        "p99_jct_s",
        "avg_wait_s",
        "makespan_s",
        "gpu_utilisation",
        "preemptions",
        "events",
        "wall_s",
        "peak_rss_mib",
    ];
    for key in numbers {
        assert!(run[key].is_number(), "`{key}` is no number: {}", run[key]);
    }
}

#[test]
fn without_json_a_list_for_people_is_printed() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).write(&folder);
    let text = folder.quiet("simulate --trace trace --policy fifo");
    assert!(text.starts_with("fifo: 1 jobs, 1 machines, 2 GPUs"), "{text}");
    for label in ["avg JCT", "makespan", "rejected", "events"] {
        assert!(text.contains(label), "no `{label}` in: {text}");
    }
}

#[test]
fn a_cluster_is_a_toml_file_a_table_or_a_folder() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).plain_job("b", 0).plain_job("c", 0).write(&folder);
    let one_gpu = "node_id,gpu_model,gpu_count,cpu_milli\nsmall,T4,1,4000\n";
    folder.write("one/nodes.csv", one_gpu);
    folder.write("tables.csv", one_gpu);
    let toml = "[[gpu_models]]\nname = 'T4'\nmem_mib = 16384\ntier = 1\n\
                [[nodes]]\ncount = 1\ngpu_model = 'T4'\ngpus = 1\ncpu = 4\nmem_gib = 8\n";
    folder.write("one.toml", toml);
    folder.write("described/cluster.toml", toml);
    let makespan = |cluster: &str| {
        let line = format!("simulate --trace trace --policy fifo --json {cluster}");
        folder.json(&line)["makespan_s"].clone()
    };
    assert_eq!(makespan(""), 20.0);
    for cluster in ["one", "one/nodes.csv", "tables.csv", "one.toml", "described"] {
        assert_eq!(makespan(&format!("--cluster {cluster}")), 30.0, "{cluster}");
    }
}

#[test]
fn a_machine_may_have_as_many_gpus_as_a_rack() {
    let folder = Folder::new();
    let mut tables = Tables::new();
    tables.nodes = tables.nodes.replace("V100,2,8000", "GB200,72,80000");
    tables = tables.job("most", 0, "1,70000,,1000,10000,").job("all", 0, "1,72000,,1000,10000,");
    tables.plain_job("one", 0).write(&folder);
    let run = folder.json("simulate --trace trace --policy fifo --set head=skips --json");
    assert_eq!((&run["jobs_done"], &run["makespan_s"]), (&3.into(), &20.0.into()));
}

#[test]
fn jobs_that_fail_are_counted_in_the_list() {
    let folder = Folder::new();
    Tables::new().plain_job("a", 0).plain_job("b", 0).write(&folder);
    folder.write("s.toml", "[[fault]]\nkind = 'start-fails'\njob = 'a'\ntimes = 1000\n");
    let list = folder.quiet("simulate --trace trace --policy fifo --scenario s.toml");
    assert!(list.contains("\n  failed      1 of 2 jobs\n"), "{list}");
}

#[test]
fn a_priority_is_a_name_or_a_number() {
    let folder = Folder::new();
    let mut tables = Tables::new();
    tables.nodes = tables.nodes.replace("V100,2", "V100,1");
    for (name, class, submit) in
        [("first", "0", 0), ("low", "low", 1), ("seven", "7", 2), ("high", "high", 3)]
    {
        tables.jobs += &format!("{name},ada,{class},{submit},,\n");
        tables.tasks += &format!("{name},1,1000,,1000,10000,\n");
    }
    tables.write(&folder);
    folder.run("simulate --trace trace --policy priority --log log").ok();
    let order = crate::logs::starts(&folder.text("log"));
    assert_eq!(order, ["first", "seven", "high", "low"]);
}

#[test]
fn intervals_of_a_node_are_failures_between_them() {
    let folder = Folder::new();
    let mut tables = Tables::new().job("a", 0, "1,2000,,1000,20000,");
    tables.nodes = "node_id,gpu_model,gpu_count,cpu_milli,up_from_s,up_to_s\n\
                    n1,V100,2,8000,5,15\n\
                    n1,V100,2,8000,40,\n"
        .to_owned();
    tables.write(&folder);
    let run = folder.json("simulate --trace trace --policy fifo --json");
    // Waits until 5, loses the ten seconds up to 15, waits until 40, runs to 60.
    assert_eq!(run["avg_jct_s"], 60.0);
    assert_eq!(run["avg_wait_s"], 30.0);
    assert_eq!(run["jobs_done"], 1);
}

/// Two machines; `a` is taken from pool `p` and given to `q` after 100 s.
#[test]
fn a_machine_that_moves_to_another_pool_keeps_its_jobs_and_takes_only_those_of_its_pool() {
    let folder = Folder::new();
    let mut tables = Tables::new();
    tables.nodes = "node_id,pool,gpu_count,cpu_milli,up_from_s,up_to_s\n\
                    a,p,2,8000,0,100\na,q,2,8000,100,\nb,q,2,8000,,\n"
        .to_owned();
    tables.jobs = "job_id,queue,submit_ms\nlong,p,0\nsecond,p,1000\nwide,q,2000\n\
                   small,q,120000\nfree,,130000\n"
        .to_owned();
    tables.tasks = "job_id,count,gpu_milli,duration_ms\nlong,1,1000,300000\nsecond,1,1000,50000\n\
                    wide,2,1000,10000\nsmall,1,1000,5000\nfree,2,2000,1000\n"
        .to_owned();
    tables.write(&folder);
    let line = "simulate --trace trace --policy fifo --set head=skips --json --log log";
    let run = folder.json(line);
    // Nobody begins again; `wide` runs on `b` at once though `a` has room, `free` where both are.
    assert_eq!((&run["restarts"], &run["jobs_done"]), (&0.into(), &5.into()));
    assert_eq!(run["lost_work_s"], 0.0);
    let jct = 300.0 + 50.0 + 10.0 + 5.0 + (300.0 - 130.0 + 1.0);
    assert_eq!(run["avg_jct_s"], jct / 5.0);
    // A job of a pool that has no machine any more can never run.
    folder.write("trace/jobs.csv", tables.jobs.replace("second,p,1000", "second,p,101000"));
    let run = folder.json("simulate --trace trace --policy fifo --set head=skips --json");
    assert_eq!((&run["jobs_rejected"], &run["jobs_done"]), (&1.into(), &4.into()));
}

#[test]
fn jobs_are_named_when_their_node_never_comes_back() {
    let folder = Folder::new();
    let mut tables = Tables::new().job("stranded", 0, "1,2000,,1000,20000,");
    tables.nodes = tables.nodes.replace(",,\n", ",0,10\n");
    tables.write(&folder);
    let ran = folder.run("simulate --trace trace --policy fifo --json").ok();
    assert!(ran.stderr.contains("warning: fifo: 1 job was left"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`stranded`"), "{}", ran.stderr);
    let run: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(run["jobs_unfinished"], 1);
}

#[test]
fn jobs_whose_tasks_need_not_start_together_are_counted_in_a_warning() {
    let folder = Folder::new();
    let mut tables = Tables::new();
    tables.jobs += "apart,ada,,0,,\nalone,ada,,0,,\ntogether,ada,,0,,\n";
    tables.tasks = "job_id,count,gang,gpu_milli,duration_ms\napart,2,0,1000,10000\n\
                    alone,1,0,1000,10000\ntogether,2,1,1000,10000\n"
        .to_owned();
    tables.write(&folder);
    let ran = folder.run("simulate --trace trace --policy fifo").ok();
    let warning = "warning: 1 job says `gang` = 0; its tasks start together all the same\n";
    assert_eq!(ran.stderr, warning);
}

#[test]
fn what_can_never_run_is_rejected_and_counted() {
    let folder = Folder::new();
    Tables::new()
        .plain_job("runs", 0)
        .plain_job("runs-too", 0)
        .plain_job("and-this", 0)
        .plain_job("and-that", 0)
        .job("no-such-model", 0, "1,1000,H200,1000,10000,")
        .job("too-many-gpus", 0, "1,3000,,1000,10000,")
        .job("too-many-tasks", 0, "3,1000,,1000,10000,")
        .job("too-many-cores", 0, "1,1000,,9000,10000,")
        .job("some-model-exists", 0, "1,1000,H200|V100,1000,10000,")
        .write(&folder);
    for def in hostler_policies::builtin().all() {
        let line = format!("simulate --trace trace --json --policy {}", def.kind);
        let run = folder.json(&line);
        assert_eq!(run["jobs_rejected"], 4, "{}", def.kind);
        assert_eq!(run["jobs_done"], 5, "{}", def.kind);
        assert_eq!(run["jobs_unfinished"], 0, "{}", def.kind);
    }
    let list = folder.run("simulate --trace trace --policy fifo").ok().stdout;
    let (_, rejected) = list.split_once("  rejected").expect("they are counted");
    for words in [
        "    1: no node has the GPU model that it asks for (job `no-such-model`)\n",
        "    2: no node that it accepts has the GPUs, cores and memory that a task asks for (job \
         `too-many-gpus` and others)\n",
        "    1: it asks for more than the whole cluster has (job `too-many-tasks`)\n",
    ] {
        assert!(rejected.contains(words), "no `{words}` in: {list}");
    }
}

/// Two jobs on one of two GPUs each, one that waits for both, and one that never runs.
#[test]
fn the_table_of_jobs_has_a_line_for_each() {
    let folder = Folder::new();
    let mut tables = Tables::new();
    tables.jobs = "job_id,user,queue,submit_ms\na,ada,q,0\n\"b,c\",bob,,0\nwide,ada,q,1000\n\
                   never,ada,q,2000\n"
        .to_owned();
    tables.tasks += "a,1,1000,,1000,10000,\n\"b,c\",1,500,,1000,36000,\nwide,1,2000,,1000,1000,\n\
                     never,9,1000,,1000,1000,\n";
    tables.write(&folder);
    folder.run("simulate --trace trace --policy fifo --jobs jobs.csv").ok();
    let table = folder.text("jobs.csv");
    let hours = |secs: f64| (secs / 3600.0).to_string();
    let lines: Vec<String> = vec![
        "job_id,user,queue,gpus,submit_s,start_s,end_s,wait_s,run_s,jct_s,gpu_model,gpu_hours,\
         lost_gpu_hours,restarts,preemptions,ending"
            .to_owned(),
        format!("a,ada,q,1,0,0,10,0,10,10,V100,{},0,0,0,finished", hours(10.0)),
        format!("\"b,c\",bob,,0.5,0,0,36,0,36,36,V100,{},0,0,0,finished", hours(18.0)),
        format!("wide,ada,q,2,1,36,37,35,1,36,V100,{},0,0,0,finished", hours(2.0)),
        "never,ada,q,9,2,,2,0,0,,,0,0,0,0,rejected".to_owned(),
    ];
    assert_eq!(table.lines().collect::<Vec<_>>(), lines);
    let again = folder.run("simulate --trace trace --policy fifo --jobs jobs.csv");
    again.fails(1, &["`jobs.csv` is there already", "--force"]);
    folder.run("simulate --trace trace --policy fifo --jobs jobs.csv --force").ok();
    folder.run("simulate --trace trace --policy fifo --jobs jobs.parquet").ok();
    let file = std::fs::read(folder.path("jobs.parquet")).expect("it was written");
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
}

#[test]
fn an_unknown_policy_or_setting_is_a_usage_error() {
    let folder = Folder::new();
    folder
        .run("simulate --policy fito")
        .fails(2, &["unknown policy `fito`", "fifo, fifo-backfill", "sjf"]);
    folder
        .run("simulate --policy sjf --set preemt=true")
        .fails(2, &["invalid settings for policy `sjf`", "preemt"]);
    folder.run("simulate --policy sjf --set preempt=maybe").fails(2, &["`sjf`", "maybe"]);
    folder.run("simulate --policy sjf --set preempt").fails(2, &["preempt"]);
    let nothing = folder.run("simulate");
    nothing.fails(2, &["--policy"]);
}
