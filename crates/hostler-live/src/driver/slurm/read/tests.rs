//! What Slurm 22.05 printed, word for word, and entries in the form of later versions: 23.02.4 as
//! the fixtures of a public exporter (rivosinc/prometheus-slurm-exporter) have it, later ones as
//! they are documented.

use super::*;

/// An entry of `squeue --json`, with these fields on top of what every job has.
fn listing(fields: &str) -> SlurmJob {
    let text = format!(
        r#"{{"errors": [], "jobs": [{{"job_id": 7, "name": "train", "user_name": "ada",
            "account": "bio", "partition": "ext", "job_state": "PENDING", {fields}}}]}}"#
    );
    let mut jobs = jobs(&text).unwrap();
    assert_eq!(jobs.len(), 1);
    jobs.remove(0)
}

#[test]
fn a_job_of_22_05_is_read() {
    let job = listing(
        r#""priority": 4294901759, "state_reason": "PartitionDown", "node_count": 1, "cpus": 2,
           "max_nodes": 0, "memory_per_node": 1000, "memory_per_cpu": null, "time_limit": 5,
           "submit_time": 1795036476, "eligible_time": 1795036476, "start_time": 0,
           "end_time": 0, "nodes": "", "required_nodes": "", "dependency": "", "tasks": 1,
           "array_job_id": 0, "array_task_id": null, "het_job_id": 0, "shared": null,
           "tres_per_node": "gres:gpu:p100:2", "tres_per_job": "", "requeue": true,
           "tres_req_str": "cpu=2,mem=1000M,node=1,billing=2", "admin_comment": """#,
    );
    let gpus = Gpus { count: 2, model: Some("p100".to_owned()) };
    assert_eq!(job.gpus, Asked::OnEachNode(gpus));
    assert_eq!((job.nodes, job.nodes_max, job.cpus), (1, None, 2));
    assert_eq!((job.mem, job.limit_secs), (Memory::OnEachNode(1000), Some(300)));
    assert_eq!((job.stands, job.started, job.ended), (Stands::Waits, None, None));
    assert_eq!((job.name_there.as_str(), job.account.as_str()), ("7", "bio"));
    assert!(job.requeues && job.beyond.is_empty());
}

#[test]
fn later_versions_wrap_numbers_and_list_states() {
    let job = listing(
        r#""job_state": ["RUNNING", "COMPLETING"], "node_count": {"set": true, "infinite": false,
           "number": 2}, "cpus": {"set": true, "infinite": false, "number": 8},
           "memory_per_node": {"set": false, "infinite": false, "number": 0},
           "memory_per_cpu": {"set": true, "infinite": false, "number": 512},
           "time_limit": {"set": true, "infinite": true, "number": 0},
           "start_time": {"set": true, "infinite": false, "number": 1795036476},
           "array_job_id": {"set": true, "infinite": false, "number": 0}, "shared": [],
           "tres_per_job": "gres/gpu:a100:4", "restart_cnt": 1,
           "exit_code": {"return_code": {"set": true, "infinite": false, "number": 3},
                         "signal": {"id": {"set": false, "infinite": false, "number": 0}}}"#,
    );
    assert_eq!((job.stands, job.nodes, job.cpus), (Stands::Ends, 2, 8));
    assert_eq!((job.mem, job.limit_secs), (Memory::ForEachCore(512), None));
    let gpus = Gpus { count: 4, model: Some("a100".to_owned()) };
    assert_eq!((job.gpus, job.exit_code), (Asked::InAll(gpus), Some(3)));
    assert_eq!((job.started, job.restarts), (Some(1_795_036_476), 1));
}

#[test]
fn elements_of_an_array_that_wait_together_are_told_apart() {
    let text = r#"{"jobs": [
        {"job_id": 3, "array_job_id": 3, "array_task_id": null, "array_task_string": "1,3-4%2",
         "array_max_tasks": 2, "job_state": "PENDING"},
        {"job_id": 8, "array_job_id": 3, "array_task_id": 2, "array_task_string": "",
         "array_max_tasks": 2, "job_state": "COMPLETED", "end_time": 9}]}"#;
    let names = jobs(text).unwrap().into_iter().map(|job| job.name_there).collect::<Vec<_>>();
    assert_eq!(names, ["3_1", "3_3", "3_4", "3_2"]);
    let together = jobs(text).unwrap().into_iter().map(|job| job.together).collect::<Vec<_>>();
    assert_eq!((together[2].as_deref(), &together[3]), (Some("3_[1,3-4]"), &None));
}

#[test]
fn a_queue_without_its_controller_is_no_empty_queue() {
    // `squeue` ends with exit code 0 then.
    let text = r#"{"errors": [{"description": "Failed while looking for jobs",
        "error_number": -1, "error": "Unspecified error", "source": "slurm_load_jobs"}],
        "jobs": []}"#;
    let fault = jobs(text).unwrap_err();
    assert_eq!(fault, "Failed while looking for jobs: Unspecified error");
    assert_eq!(jobs(r#"{"errors": [], "jobs": []}"#), Ok(Vec::new()));
    assert!(jobs("{}").is_err() && jobs("slurm_load_jobs error").is_err());
}

#[test]
fn what_is_not_placed_here_is_said() {
    let says = |fields: &str| listing(fields).beyond;
    assert_eq!(says(r#""het_job_id": 7"#), "it is a part of a heterogeneous job");
    assert_eq!(says(r#""shared": "none""#), "it asks for whole nodes (`--exclusive`)");
    assert_eq!(says(r#""shared": ["user"]"#), "it asks for whole nodes (`--exclusive=USER`)");
    assert_eq!(says(r#""features": "nvlink""#), "it asks for `--constraint=nvlink`");
    assert_eq!(says(r#""resv_name": "exam""#), "it asks for `--reservation=exam`");
    assert_eq!(says(r#""shared": "oversubscribe""#), "");
}

#[test]
fn states_are_read_with_all_that_stands_beside_them() {
    let of = |words: &[&str]| {
        stands(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>())
    };
    assert_eq!(of(&["COMPLETING"]), Stands::Ends);
    assert_eq!(of(&["PENDING", "REQUEUED"]), Stands::Waits);
    assert_eq!(of(&["RUNNING", "CONFIGURING"]), Stands::Begins);
    assert_eq!(of(&["SUSPENDED"]), Stands::Runs);
    assert_eq!(of(&["OUT_OF_MEMORY"]), Stands::Over(End::Failed));
    assert_eq!(of(&["PREEMPTED"]), Stands::Over(End::Lost));
    // Nobody is taken for over because of a word of a version to come.
    assert_eq!(of(&["EXPEDITING"]), Stands::Runs);
}

#[test]
fn exit_codes_are_those_of_processes() {
    let of = |raw: &str| listing(&format!(r#""exit_code": {raw}"#)).exit_code;
    assert_eq!((of("0"), of("256"), of("9"), of("null")), (Some(0), Some(1), Some(137), None));
}

#[test]
fn nodes_are_read_once_for_all_their_partitions() {
    let text = "v1|normal*|mixed|96|512000|1|gpu:v100:8(S:0-1)|none\n\
                v1|ext|mixed|96|512000|1|gpu:v100:8(S:0-1)|none\n\
                p1|normal*|drained*|64|512000|2|gpu:p100:2|fan | broken\n\
                x1|normal*|idle|8|1000|1|gpu:v100:4,gpu:a100:4|none\nnonsense\n";
    let nodes = nodes(text);
    assert_eq!(nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["v1", "p1", "x1"]);
    assert_eq!(nodes[0].partitions, ["normal", "ext"]);
    assert!(nodes[0].takes_jobs() && !nodes[1].takes_jobs() && nodes[2].gpus.is_err());
    assert_eq!((nodes[1].reason.as_str(), nodes[1].threads), ("fan | broken", 2));
    let node = |state: &str| SlurmNode { state: state.to_owned(), ..nodes[0].clone() };
    for state in ["idle", "mixed", "allocated", "completing", "alloc", "mixed-", "planned", "idle~"]
    {
        assert!(node(state).takes_jobs(), "{state}");
    }
    for state in ["idle*", "down", "down*", "draining", "reserved", "maint", "down~"] {
        assert!(!node(state).takes_jobs(), "{state}");
    }
    assert!(node("down*").is_down() && !node("drained").is_down());
    let text = "ReservationName=a StartTime=1 Nodes=n[1-2],m1 NodeCnt=3 State=ACTIVE Users=root\n\
                ReservationName=b StartTime=9 Nodes=n7 NodeCnt=1 State=INACTIVE Users=root\n";
    assert_eq!(reserved(text), ["n1", "n2", "m1"]);
    assert!(reserved("No reservations in the system\n").is_empty());
    assert!(!SlurmNode { reserved: true, ..node("mixed") }.takes_jobs());
}

/// Its numbers are wrapped, its states are words still, and an exit code is a wrapped status.
#[test]
fn a_job_of_23_02_is_read() {
    let number = |number: u64| format!(r#"{{"set": true, "infinite": false, "number": {number}}}"#);
    let unset = r#"{"set": false, "infinite": false, "number": 0}"#;
    let job = listing(&format!(
        r#""job_state": "FAILED", "array_job_id": {array}, "array_task_id": {task},
           "array_max_tasks": {zero}, "array_task_string": "", "exit_code": {code},
           "het_job_id": {zero}, "gres_detail": [], "max_nodes": {zero}, "memory_per_tres": "",
           "memory_per_cpu": {unset}, "memory_per_node": {mem}, "cpus_per_tres": "",
           "node_count": {one}, "cpus": {one}, "tasks": {one}, "priority": {zero},
           "shared": ["oversubscribe"], "exclusive": ["false"], "time_limit": {limit},
           "tres_req_str": "cpu=1,mem=4G,node=1,billing=1", "required_nodes": "",
           "start_time": 1694675238, "end_time": 1694675491, "requeue": true"#,
        array = number(52_173_767),
        task = number(2000),
        zero = number(0),
        one = number(1),
        code = number(256),
        mem = number(4096),
        limit = number(120),
    ));
    assert_eq!((job.name_there.as_str(), job.array), ("52173767_2000", Some((52_173_767, None))));
    assert_eq!((job.stands, job.exit_code), (Stands::Over(End::Failed), Some(1)));
    assert_eq!((job.mem, job.limit_secs), (Memory::OnEachNode(4096), Some(7200)));
    assert_eq!((job.nodes, job.nodes_max, job.priority, job.cpus_per_gpu), (1, None, 0, 0));
    assert_eq!(job.beyond, "");
}

#[test]
fn whole_nodes_are_asked_for_in_either_field() {
    for field in [
        r#""shared": "none""#,
        r#""shared": ["none"]"#,
        r#""shared": [], "exclusive": ["true"]"#,
        r#""exclusive": ["user"]"#,
    ] {
        assert!(listing(field).beyond.contains("--exclusive"), "{field}");
    }
    assert_eq!(listing(r#""shared": [], "exclusive": []"#).beyond, "");
}

#[test]
fn what_users_write_is_shown_on_one_line() {
    let job = listing(r#""features": "a\nb\u001b[2Jc""#);
    assert_eq!(job.beyond, "it asks for `--constraint=b[2Jc`");
}

#[test]
fn what_is_asked_for_each_gpu_and_where_gpus_are_is_read() {
    let job = listing(
        r#""memory_per_cpu": 100, "memory_per_tres": "gres:gpu:150", "max_nodes": 3,
           "cpus_per_tres": "gres:gpu:4", "node_count": 1,
           "gres_detail": ["gpu:v100:2(IDX:0-1)", "gpu:v100:1(IDX:3)"]"#,
    );
    assert_eq!((job.mem, job.cpus_per_gpu), (Memory::ForEachGpu(150), 4));
    assert_eq!((job.nodes, job.nodes_max, job.gpus_on), (1, Some(3), vec![2, 1]));
    for (said, is) in [("gres/gpu:2048", 2048), ("gres/gpu=2G", 2048), ("gres:gpu:v100:64", 64)] {
        assert_eq!(words::for_each_gpu(said), Some(is), "{said}");
    }
    // Which tasks an array has must be known before one of them is started alone.
    let job = listing(r#""array_job_id": 7, "array_task_string": "1-3,...""#);
    assert!(job.beyond.contains("cannot be told"), "{job:?}");
}

#[test]
fn looks_and_accounts_are_read_line_by_line() {
    let text = "13_4|PENDING|ext||0|N/A|N/A|JobHeldUser\n\
                12|RUNNING|normal|m[1-2]|99|1795037015|1795037135|None\nnonsense\n\
                14+1|RUNNING|normal|m1|99|1795037015|1795037135|None\n";
    let briefs = briefs(text);
    assert_eq!(briefs.len(), 2, "parts of heterogeneous jobs are not followed");
    assert_eq!((briefs[0].name_there.as_str(), briefs[0].priority), ("13_4", 0));
    assert_eq!((briefs[0].reason.as_str(), briefs[0].started), ("JobHeldUser", None));
    assert_eq!((briefs[1].on.join(" ").as_str(), briefs[1].stands), ("m1 m2", Stands::Runs));
    let text = "5|CANCELLED by 1000|0:15|1795037015|1795037016|m1\n\
                5|COMPLETED|0:0|1795037020|1795037030|m[1-2]\n\
                6|FAILED|3:0|1795037015|1795037016|None assigned\n";
    let ends = ends(text);
    assert_eq!((ends.len(), ends[0].stands), (2, Stands::Over(End::Finished)));
    assert_eq!((ends[0].on.join(" ").as_str(), ends[1].on.len()), ("m1 m2", 0));
    assert_eq!((ends[1].exit_code, ends[1].ended), (Some(3), Some(1_795_037_016)));
}
