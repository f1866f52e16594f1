//! Accounts of what real jobs used: over a stay that was lost, a kill of the daemon and an end that
//! failed.

use serde_json::Value;

use crate::harness::{Cluster, processes, wait_for};

fn usage(cluster: &Cluster, more: &[&str]) -> Value {
    let all = [&["usage", "--json"], more].concat();
    serde_json::from_str(&cluster.text(&all)).unwrap()
}

fn row<'a>(usage: &'a Value, key: &str) -> &'a Value {
    let rows = usage["rows"].as_array().unwrap();
    rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key} in {usage}"))
}

fn close(found: &Value, hours: f64) -> bool {
    (found.as_f64().unwrap() - hours).abs() < 1e-6
}

fn seconds(view: &Value, name: &str) -> f64 {
    view[name].as_f64().unwrap()
}

#[test]
fn usage_counts_all_stays_over_a_lost_one_and_a_kill_of_the_daemon() {
    let mut cluster = Cluster::start(&[], &["4xV100"]);
    let go = cluster.notes().join("go");
    let script = format!("while [ ! -e {} ]; do sleep 0.05; done", go.display());
    let long = cluster.submit(&["--gpus", "2", "--group", "nightly", "--", "sh", "-c", &script]);
    let first = cluster.until(long, "running");
    // Its shim dies: nothing of the stay is saved, and it starts again.
    let shims = wait_for("its shim", || {
        Some(processes::shims(cluster.folder())).filter(|shims| !shims.is_empty())
    });
    shims.into_iter().for_each(processes::kill);
    wait_for("its second start", || (cluster.job(long)["restarts"] == 1).then_some(()));
    cluster.until(long, "running");
    cluster.kill_daemon();
    cluster.serve();
    cluster.until_up();
    let bad = cluster.submit(&["--gpus", "1", "--", "sh", "-c", "sleep 0.5; exit 3"]);
    let bad = cluster.until(bad, "failed");
    // One that runs counts up to now, and more from one look to the next.
    let running = usage(&cluster, &["--by", "group"]);
    let later = usage(&cluster, &["--by", "group"]);
    let hours = |usage: &Value| row(usage, "nightly")["gpu_hours"].as_f64().unwrap();
    assert!(hours(&running) > 0.0 && hours(&later) > hours(&running), "{running} {later}");
    std::fs::write(&go, "").unwrap();
    let done = cluster.until(long, "finished");
    let bad_hours = (seconds(&bad, "ended") - seconds(&bad, "started")) / 3600.0;
    let by_user = usage(&cluster, &["--by", "user"]);
    let all = &by_user["total"];
    assert_eq!((&all["jobs"], &all["finished"], &all["failed"]), (&2.into(), &1.into(), &1.into()));
    assert!(close(&all["failed_gpu_hours"], bad_hours), "{all} {bad_hours}");
    let long_hours = all["gpu_hours"].as_f64().unwrap() - bad_hours;
    // Between its stays it had nothing: what it used and what it waited for is all of its time.
    let life = (seconds(&done, "ended") - seconds(&first, "submitted")) / 3600.0;
    let waited = all["waited_hours"].as_f64().unwrap()
        - (seconds(&bad, "started") - seconds(&bad, "submitted")) / 3600.0;
    assert!((long_hours / 2.0 + waited - life).abs() < 1e-6, "{all} {done}");
    let lost = all["lost_gpu_hours"].as_f64().unwrap();
    assert!(lost > 0.0 && lost < long_hours, "the first stay came to nothing: {all}");
    assert!(all["energy_kwh"].is_null(), "{all}");
    let by_model = usage(&cluster, &["--by", "model"]);
    assert_eq!(row(&by_model, "V100")["gpu_hours"], all["gpu_hours"]);
    // Nothing before anybody came.
    let before = usage(&cluster, &["--since", "2020-01-01", "--until", "2020-02-01"]);
    assert_eq!(
        (before["rows"].as_array().unwrap().len(), &before["total"]["jobs"]),
        (0, &0.into())
    );
}

#[test]
fn members_see_the_use_of_their_own_tenant_only() {
    let cluster = Cluster::start(&[], &["4xV100"]);
    cluster.text(&["tenant", "set", "vision"]);
    let token = cluster.text(&["token", "create", "--role", "user", "--tenant", "vision", "ada"]);
    let job = cluster.submit(&["--gpus", "1", "--", "true"]);
    cluster.until(job, "finished");
    let mut access = cluster.access();
    access.token = token.trim().to_owned();
    let mut ada = hostler_live::client::Client::new(access).unwrap();
    let seen: Value = ada.get("/usage?by=tenant").unwrap();
    assert_eq!(seen["total"]["jobs"], 0, "{seen}");
    let other = ada.get::<Value>("/usage?by=tenant&tenant=default").unwrap_err().to_string();
    assert!(other.contains("no such tenant"), "{other}");
    let csv = cluster.text(&["usage", "--by", "tenant", "--csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("tenant,jobs,finished,failed,gpu_hours,"), "{csv}");
    assert!(lines[1].starts_with("default,1,1,0,") && lines.len() == 2, "{csv}");
    let table = cluster.text(&["usage", "--by", "day"]);
    assert!(table.contains("GPU-H") && table.contains("all"), "{table}");
}

#[test]
fn energy_is_measured_where_gpus_tell_it() {
    let mut cluster = Cluster::start(&[], &["2xV100:16384@360", "1xA100"]);
    let long = ["--gpus", "2", "--gpu-model", "V100", "--", "sleep", "5"];
    let shown = cluster.until(cluster.submit(&long), "finished");
    // Two GPUs of 360 W for five seconds are 0.001 kWh; its first and last second are not sure.
    let kwh = shown["energy_kwh"].as_f64().expect("it is measured");
    assert!((0.0006..0.0016).contains(&kwh), "{shown}");
    let silent = cluster.submit(&["--gpus", "1", "--gpu-model", "A100", "--", "sleep", "1"]);
    let silent = cluster.until(silent, "finished");
    assert!(silent["energy_kwh"].is_null(), "{silent}");
    // It is in the store, and sums are by what is asked for.
    cluster.kill_daemon();
    cluster.serve();
    let by_model = usage(&cluster, &["--by", "model"]);
    let found = row(&by_model, "V100")["energy_kwh"].as_f64().unwrap();
    assert!((found - kwh).abs() < 1e-9, "{by_model}");
    assert!(row(&by_model, "A100")["energy_kwh"].is_null(), "{by_model}");
    let number = shown["id"].to_string();
    let text = cluster.text(&["show", &number]);
    assert!(text.contains("energy          0.00") && text.contains(" kWh"), "{text}");
    let table = cluster.text(&["usage", "--by", "model"]);
    let line = table.lines().find(|line| line.starts_with("A100")).unwrap();
    assert!(line.ends_with('-'), "{table}");
}
