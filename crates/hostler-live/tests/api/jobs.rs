//! Submitting, listing and changing jobs.

use expect_test::expect;
use hostler_live::api::{Accepted, JobPage, JobsChanged};
use hostler_live::client::{Client, Method};
use hostler_live::job::{HeldBy, JobState, JobView};
use hostler_live::store::Role;
use serde_json::{Value, json};

use crate::daemon::{Daemon, ask, job, submit};

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body).into_owned()
}

#[test]
fn the_same_key_gives_the_same_jobs_even_after_a_restart() {
    let daemon = Daemon::plain();
    let array = json!({ "command": ["true"], "tasks": 1, "array": 3 });
    let key = [("idempotency-key", "one")];
    let first = ask(&mut daemon.admin(), Method::POST, "/jobs", &key, Some(&array));
    assert_eq!(
        (first.status.as_u16(), text(&first.body)),
        (201, r#"{"first":1,"count":3}"#.into())
    );
    let daemon = daemon.again();
    let mut admin = daemon.admin();
    let again = ask(&mut admin, Method::POST, "/jobs", &key, Some(&array));
    assert_eq!(
        (again.status.as_u16(), text(&again.body)),
        (200, r#"{"first":1,"count":3}"#.into())
    );
    let other = ask(&mut admin, Method::POST, "/jobs", &key, Some(&job()));
    assert_eq!(other.status, 422);
    let page: JobPage = admin.get("/jobs").unwrap();
    assert_eq!(page.jobs.len(), 3);
}

#[test]
fn lists_come_in_parts_that_fit_together() {
    let daemon = Daemon::plain();
    let mut admin = daemon.admin();
    let array = json!({ "command": ["true"], "tasks": 1, "array": 5 });
    let _: Accepted = admin.post("/jobs", &array).unwrap();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for _ in 0..4 {
        let page: JobPage = admin.get(&format!("/jobs?limit=2{cursor}")).unwrap();
        seen.extend(page.jobs.iter().map(|job| job.id));
        let Some(next) = page.next else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
    for id in [2, 4] {
        let _: JobView = admin.post(&format!("/jobs/{id}/cancel"), &()).unwrap();
    }
    let page: JobPage = admin.get("/history?limit=1").unwrap();
    assert_eq!((page.jobs[0].id, page.jobs[0].state), (4, JobState::Cancelled));
    let path = format!("/jobs?state=cancelled&cursor={}", page.next.unwrap());
    let page: JobPage = admin.get(&path).unwrap();
    assert_eq!(page.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_change_for_another_version_is_not_made() {
    let daemon = Daemon::plain();
    let mut admin = daemon.admin();
    let id = submit(&mut admin);
    let path = format!("/jobs/{id}");
    let seen = ask(&mut admin, Method::GET, &path, &[], None).etag.unwrap();
    let same = ask(&mut admin, Method::GET, &path, &[("if-none-match", &seen)], None);
    assert_eq!(same.status, 304);
    let hold = format!("{path}/hold");
    let held = ask(&mut admin, Method::POST, &hold, &[("if-match", &seen)], None);
    assert_eq!(held.status, 200);
    let cancel = format!("{path}/cancel");
    let stale = ask(&mut admin, Method::POST, &cancel, &[("if-match", &seen)], None);
    assert_eq!(stale.status, 412, "{}", text(&stale.body));
    let fresh = [("if-match", held.etag.as_deref().unwrap())];
    assert_eq!(ask(&mut admin, Method::POST, &cancel, &fresh, None).status, 200);
    assert_eq!(ask(&mut admin, Method::POST, &cancel, &[], None).status, 409);
    assert_eq!(ask(&mut admin, Method::POST, &cancel, &[("if-match", "x")], None).status, 400);
}

#[test]
fn many_jobs_are_changed_at_once_and_those_of_others_are_not_there() {
    let daemon = Daemon::plain();
    let mut ada = daemon.client(&daemon.token(Role::User, "vision", "ada"));
    let mut eve = daemon.client(&daemon.token(Role::User, "speech", "eve"));
    let array = json!({ "command": ["true"], "tasks": 1, "array": 3 });
    let _: Accepted = ada.post("/jobs", &array).unwrap();
    let own = submit(&mut eve);
    let mut told = String::new();
    let mut change = |client: &mut Client, body: Value| {
        let answer = ask(client, Method::POST, "/jobs/change", &[], Some(&body));
        told += &format!("{} {}\n", answer.status.as_u16(), text(&answer.body));
    };
    change(&mut eve, json!({ "action": "cancel", "jobs": ["1", "1_2", "1-10"] }));
    assert_eq!(own, 4);
    change(&mut ada, json!({ "action": "hold", "jobs": ["1"] }));
    change(&mut ada, json!({ "action": "cancel", "jobs": ["1_1", "4"] }));
    change(&mut ada, json!({ "action": "cancel", "jobs": ["2"] }));
    change(&mut ada, json!({ "action": "cancel", "jobs": [] }));
    change(&mut ada, json!({ "action": "cancel", "jobs": ["all"] }));
    change(&mut ada, json!({ "action": "end", "jobs": ["1"] }));
    expect![[r#"
        200 {"jobs":[{"id":4,"state":"cancelled"}],"refused":[{"jobs":"1","error":"no job `1`"},{"jobs":"1_2","error":"no array with `1_2`"}]}
        200 {"jobs":[{"id":1,"state":"held"},{"id":2,"state":"held"},{"id":3,"state":"held"}],"refused":[]}
        200 {"jobs":[{"id":2,"state":"cancelled"}],"refused":[{"jobs":"4","error":"no job `4`"}]}
        200 {"jobs":[{"id":2,"state":"cancelled"}],"refused":[]}
        400 {"error":"invalid `jobs`: 0; name 1 to 1000","hint":""}
        400 {"error":"invalid body: jobs[0]: `all` names no jobs; write a number, a range as in 12-40, or parts of an array as in 12_3 or 12_3-7 at line 1 column 33","hint":""}
        400 {"error":"invalid body: action: unknown variant `end`, expected one of `cancel`, `hold`, `release` at line 1 column 15","hint":""}
    "#]].assert_eq(&told);
    let held: JobPage = ada.get("/jobs?state=held").unwrap();
    assert_eq!(held.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn one_change_has_limits_on_what_is_named_and_what_is_looked_up() {
    let daemon = Daemon::plain();
    let mut admin = daemon.admin();
    let change = |client: &mut Client, jobs: Vec<String>| {
        let body = json!({ "action": "cancel", "jobs": jobs });
        let answer = ask(client, Method::POST, "/jobs/change", &[], Some(&body));
        (answer.status.as_u16(), text(&answer.body))
    };
    let array = json!({ "command": ["true"], "tasks": 1, "array": 3 });
    let _: Accepted = admin.post("/jobs", &array).unwrap();
    let all = || "0-4294967295".to_owned();
    let (status, fault) = change(&mut admin, vec![all(); 1001]);
    assert_eq!((status, fault.contains("1001; name 1 to 1000")), (400, true), "{fault}");
    let (status, changed) = change(&mut admin, vec![all(); 1000]);
    assert_eq!(status, 200);
    let changed: JobsChanged = serde_json::from_str(&changed).unwrap();
    assert_eq!(changed.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(changed.refused.len(), 0);
    let nothing = (200, r#"{"jobs":[],"refused":[]}"#.to_owned());
    assert_eq!(change(&mut admin, vec!["1".to_owned(), "2-3".to_owned()]), nothing);

    let waiting = submit(&mut admin);
    // The array is looked up once, however many of its jobs are named.
    let parts = (0..800).map(|number| format!("1_{}", number % 3));
    let unknown = (1001..=1100).map(|number| number.to_string());
    let last = [waiting.to_string(), "1001".to_owned(), "1_0".to_owned()];
    let (status, changed) = change(&mut admin, parts.chain(unknown).chain(last).collect());
    assert_eq!(status, 200);
    let changed: JobsChanged = serde_json::from_str(&changed).unwrap();
    assert_eq!(changed.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [waiting]);
    let refused: Vec<&str> = changed.refused.iter().map(|refused| &*refused.error).collect();
    assert_eq!(refused.len(), 101);
    assert_eq!((refused[98], refused[100]), ("no job `1099`", "no job `1001`"));
    let beyond = "job 1100 is over or was never there, as are 100 that come before it; name fewer \
                  at a time";
    assert_eq!(refused[99], beyond);
}

#[test]
fn a_store_that_fails_is_a_fault_of_the_whole_change() {
    let daemon = Daemon::plain();
    let mut admin = daemon.admin();
    let (over, waiting) = (submit(&mut admin), submit(&mut admin));
    let change = |client: &mut Client, jobs: &[u32]| {
        let jobs: Vec<String> = jobs.iter().map(u32::to_string).collect();
        let body = json!({ "action": "cancel", "jobs": jobs });
        ask(client, Method::POST, "/jobs/change", &[], Some(&body))
    };
    assert_eq!(change(&mut admin, &[over]).status, 200);
    let file = rusqlite::Connection::open(daemon.data().join("hostler.db")).unwrap();
    file.execute("UPDATE jobs SET request = 'torn' WHERE id = ?1", [over]).unwrap();
    let answer = change(&mut admin, &[waiting, over]);
    assert_eq!(answer.status, 503, "{}", text(&answer.body));
    let job: JobView = admin.get(&format!("/jobs/{waiting}")).unwrap();
    assert_ne!(job.state, JobState::Cancelled);
}

#[test]
fn faults_say_what_is_wrong() {
    let daemon = Daemon::plain();
    let mut admin = daemon.admin();
    let mut told = String::new();
    let mut tell = |method: Method, path: &str, body: Option<Value>| {
        let answer = ask(&mut admin, method.clone(), path, &[], body.as_ref());
        let body = text(&answer.body);
        // Lists of what is known grow with the program.
        let body = [", expected", "; known"]
            .iter()
            .fold(&*body, |body, list| body.split_once(list).map_or(body, |(before, _)| before));
        told += &format!("{} {method} {path}: {body}\n", answer.status.as_u16());
    };
    tell(Method::POST, "/jobs", Some(json!({ "command": [] })));
    tell(Method::POST, "/jobs", Some(json!({ "comand": ["true"] })));
    tell(Method::POST, "/jobs", Some(json!({ "command": ["true"], "gpus": 1.5 })));
    tell(Method::POST, "/jobs", Some(json!({ "command": ["true"], "after": [77] })));
    tell(Method::GET, "/jobs?limit=0", None);
    tell(Method::GET, "/history?limit=1001&state=queued", None);
    tell(Method::GET, "/jobs?sate=held", None);
    tell(Method::GET, "/jobs/none", None);
    tell(Method::GET, "/jobs/7", None);
    tell(Method::GET, "/nowhere", None);
    tell(Method::DELETE, "/jobs", None);
    tell(Method::PUT, "/policy", Some(json!({ "toml": "kind = 'fito'" })));
    tell(Method::POST, "/nodes/gpu-07/drain", None);
    expect![[r#"
        400 POST /jobs: {"error":"invalid `command`: it names no program","hint":""}
        400 POST /jobs: {"error":"invalid body: comand: unknown field `comand`
        400 POST /jobs: {"error":"invalid `gpus`: 1.5; use 0, a part of one GPU from 0.01 to 1, or whole ones up to 64000","hint":""}
        404 POST /jobs: {"error":"no job `77`","hint":"`hostler queue` and `hostler history` list them"}
        400 GET /jobs?limit=0: {"error":"invalid `limit`: 0","hint":"use 1 to 1000"}
        400 GET /history?limit=1001&state=queued: {"error":"invalid `limit`: 1001","hint":"use 1 to 1000"}
        400 GET /jobs?sate=held: {"error":"invalid query: sate: unknown field `sate`
        400 GET /jobs/none: {"error":"invalid path: Cannot parse `none` to a `u32`","hint":""}
        404 GET /jobs/7: {"error":"no such job: 7","hint":"`hostler queue` and `hostler history` list them"}
        404 GET /nowhere: {"error":"no such path","hint":"see GET /api/v1/openapi.json"}
        405 DELETE /jobs: {"error":"no such method here","hint":"see GET /api/v1/openapi.json"}
        400 PUT /policy: {"error":"unknown policy `fito`
        404 POST /nodes/gpu-07/drain: {"error":"no node `gpu-07`","hint":"`hostler nodes` lists them"}
    "#]].assert_eq(&told);
}

#[test]
fn quotas_policies_and_holds_are_set_and_survive_a_restart() {
    let daemon = Daemon::plain();
    let mut admin = daemon.admin();
    let quota = json!({ "jobs_max": 1 });
    let _: Value = admin.put("/tenants/default", &quota).unwrap();
    let sjf = "kind = 'sjf'\nestimate = 'median'\n";
    let _: Value = admin.put("/policy", &json!({ "toml": sjf })).unwrap();
    let id = submit(&mut admin);
    let _: JobView = admin.post(&format!("/jobs/{id}/hold"), &()).unwrap();
    let daemon = daemon.again();
    let mut admin = daemon.admin();
    assert_eq!(ask(&mut admin, Method::POST, "/jobs", &[], Some(&job())).status, 429);
    let policy: Value = admin.get("/policy").unwrap();
    assert_eq!(policy["toml"], sjf);
    let held: JobView = admin.get(&format!("/jobs/{id}")).unwrap();
    assert_eq!((held.state, held.reason.as_str()), (JobState::Held, "held by a person"));
    let let_go: JobView = admin.post(&format!("/jobs/{id}/release"), &()).unwrap();
    assert!(!let_go.reason.contains("person"), "{}", let_go.reason);
}

#[test]
fn what_would_be_ignored_is_refused() {
    let daemon = Daemon::plain();
    let mut admin = daemon.admin();
    let mut put = |path: &str, body: Value| {
        let answer = ask(&mut admin, Method::PUT, path, &[], Some(&body));
        (answer.status.as_u16(), text(&answer.body))
    };
    let (status, words) = put("/policy", json!({ "toml": "kind = 'sjf'\n" }));
    assert_eq!(status, 200, "{words}");
    assert!(words.contains(r#"estimate = \"user\""#), "{words}");
    for estimate in ["estimate = 'oracle'\n", "estimate = 'trained'\n"] {
        let toml = format!("kind = 'sjf'\n{estimate}");
        let (status, words) = put("/policy", json!({ "toml": toml }));
        assert_eq!(status, 400, "{words}");
        assert!(words.contains("invalid `estimate`"), "{words}");
    }
    assert_eq!(put("/tenants/vision", json!({ "weight": 3 })).0, 201);
    assert_eq!(put("/tenants/vision", json!({ "weight": 4 })).0, 200);
    let (status, words) = put("/tenants/vision", json!({ "jobs_max": 7 }));
    assert_eq!(status, 200);
    assert!(words.contains(r#""weight":4,"jobs_max":7"#), "{words}");
    assert_eq!(put("/tenants/speech", json!({ "weight": 0 })).0, 400);
}

#[test]
fn what_comes_after_a_large_array_is_settled_by_all_of_it() {
    let daemon = Daemon::plain();
    let mut admin = daemon.admin();
    let mut told = String::new();
    let mut submit = |client: &mut Client, body: Value| {
        let answer = ask(client, Method::POST, "/jobs", &[], Some(&body));
        told += &format!("{} {}\n", answer.status.as_u16(), text(&answer.body));
    };
    let array = |count: u32| json!({ "command": ["true"], "gpus": 1, "array": count });
    let after = |need: Value| json!({ "command": ["true"], "gpus": 1, "after": [need] });
    submit(&mut admin, array(1500));
    let cancel = json!({ "action": "cancel", "jobs": ["1_0-1498"] });
    let _: JobsChanged = admin.post("/jobs/change", &cancel).unwrap();
    // All but the last are over, more than one page of them.
    submit(&mut admin, after(json!(1)));
    submit(&mut admin, after(json!("over:1")));
    submit(&mut admin, after(json!("started:1_3-7")));
    submit(&mut admin, after(json!("failed:1_0-1498")));
    submit(&mut admin, after(json!("1_1500")));
    submit(&mut admin, after(json!("9000-9010")));
    submit(&mut admin, after(json!("0-20000")));
    submit(&mut admin, array(2000));
    let each = json!({ "command": ["true"], "gpus": 1, "after": ["over:1503"], "array": 51 });
    submit(&mut admin, each);
    expect![[r#"
        201 {"first":1,"count":1500}
        409 {"error":"job 1499 did not finish well; nothing can wait for it","hint":""}
        201 {"first":1501,"count":1}
        409 {"error":"job 4 ended without a start; nothing can wait for it to start","hint":""}
        201 {"first":1502,"count":1}
        404 {"error":"no job `1_1500`","hint":"`hostler queue` and `hostler history` list them"}
        404 {"error":"no job `9000-9010`","hint":"`hostler queue` and `hostler history` list them"}
        400 {"error":"invalid `after`: more than 10000 jobs; name fewer","hint":""}
        201 {"first":1503,"count":2000}
        400 {"error":"invalid `after`: 51 jobs that wait for 2000 each; at most 100000 in all: let one job wait for them, and the array for that one","hint":""}
    "#]].assert_eq(&told);
    let waits: JobView = admin.get("/jobs/1501").unwrap();
    assert_eq!(
        (waits.state, waits.reason.as_str()),
        (JobState::Held, "waits until jobs are over: 1_1499")
    );
    let free: JobView = admin.get("/jobs/1502").unwrap();
    // Only nodes are missing.
    assert_eq!(free.held_by, Some(HeldBy::Nodes));
}
