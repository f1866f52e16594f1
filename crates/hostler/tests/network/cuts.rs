//! What a cut does, shorter than the fence and longer.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::harness::{Cluster, wait_for};
use crate::namespaces::Namespaces;

/// Seconds after which an agent that is not answered ends its jobs.
const FENCE_SECS: u64 = 10;

/// Seconds after which the daemon gives a silent node up.
const DEAD_SECS: u64 = 17;

/// A job that locks a file of its own while it runs, and writes a line every tenth of a second: its
/// node's folder, its lease and the time in milliseconds. It ends when it is told so.
fn script(folder: &Path, name: &str) -> String {
    let file = folder.join(name);
    let file = file.display();
    format!(
        "exec 3> {file}.lock; flock -n 3 || echo twice >> {file}.faults
         node=${{HOSTLER_SOCKET%/leases/*}}
         while :; do
             echo \"${{node##*/}} $HOSTLER_LEASE $(date +%s%3N)\" >> {file}
             [ ! -e {file}.end ] || exit 5
             sleep 0.1
         done"
    )
}

/// Tells a job that it may end.
fn end(cluster: &Cluster, name: &str) {
    std::fs::write(cluster.notes().join(name).with_extension("end"), "").unwrap();
}

/// Waits until a stay of a job has lasted for so long.
fn until_lasted(cluster: &Cluster, name: &str, number: usize, seconds: u64) {
    wait_for(&format!("stay {number} of {name}"), || {
        let stays = stays(cluster, name);
        let (_, first, last) = stays.get(number)?;
        (last - first >= 1000 * seconds).then_some(())
    });
}

/// What a job wrote: for each stay the node, and the first and last time in milliseconds.
fn stays(cluster: &Cluster, name: &str) -> Vec<(String, u64, u64)> {
    let file = cluster.notes().join(name);
    assert!(!file.with_extension("faults").exists(), "{name} ran twice at once");
    let mut stays: Vec<(String, String, u64, u64)> = Vec::new();
    for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
        let [node, lease, time] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let time = time.parse().unwrap();
        match stays.iter_mut().find(|stay| stay.1 == lease) {
            Some(stay) => stay.3 = time,
            None => stays.push((node.to_owned(), lease.to_owned(), time, time)),
        }
    }
    stays.into_iter().map(|(node, _, first, last)| (node, first, last)).collect()
}

fn cluster(namespaces: &Namespaces) -> Cluster {
    let (fence, dead) = (FENCE_SECS.to_string(), DEAD_SECS.to_string());
    namespaces.cluster(&["--fence-secs", &fence, "--dead-secs", &dead])
}

fn submit(cluster: &Cluster, name: &str) -> u32 {
    let script = script(&cluster.notes(), name);
    let grace = ["--gpus", "1", "--grace", "1s", "--", "sh", "-c", &script];
    let job = cluster.submit(&grace);
    cluster.until(job, "running");
    job
}

fn node_of(cluster: &Cluster, job: u32) -> usize {
    usize::from(cluster.job(job)["nodes"][0] == "n1")
}

#[test]
fn a_cut_shorter_than_the_fence_changes_nothing() {
    let Some(namespaces) = Namespaces::make() else { return };
    let cluster = cluster(&namespaces);
    let (during, after) = (submit(&cluster, "during"), submit(&cluster, "after"));
    namespaces.connect(0, false);
    namespaces.connect(1, false);
    end(&cluster, "during");
    sleep(Duration::from_secs(4));
    namespaces.connect(0, true);
    namespaces.connect(1, true);
    // Longer than the fence.
    until_lasted(&cluster, "after", 0, FENCE_SECS + 2);
    end(&cluster, "after");
    for (job, name) in [(during, "during"), (after, "after")] {
        let view = cluster.until(job, "failed");
        assert_eq!((&view["exit_code"], &view["restarts"]), (&5.into(), &0.into()), "{view}");
        assert_eq!(stays(&cluster, name).len(), 1);
    }
    drop(cluster);
}

#[test]
fn after_a_long_cut_the_node_is_given_up_and_its_job_runs_elsewhere_once() {
    let Some(namespaces) = Namespaces::make() else { return };
    let cluster = cluster(&namespaces);
    let moved = submit(&cluster, "moved");
    let (cut, other) = (node_of(&cluster, moved), 1 - node_of(&cluster, moved));
    let begun = Instant::now();
    namespaces.connect(cut, false);
    let stayed = submit(&cluster, "stayed");
    assert_eq!(node_of(&cluster, stayed), other);
    wait_for("the node to be given up", || {
        (cluster.nodes()[cut]["health"] == "down").then_some(())
    });
    // The last beat before the cut may be a little older than the cut.
    let silence = begun.elapsed() + Duration::from_secs(FENCE_SECS / 4);
    assert!(silence >= Duration::from_secs(DEAD_SECS), "given up after {silence:?}");
    let before = stays(&cluster, "moved");
    assert_eq!(before.len(), 1, "it waits for the other node: {before:?}");
    let ended = now_ms() - before[0].2;
    let margin = (DEAD_SECS - FENCE_SECS) * 1000;
    assert!(ended + 1000 >= margin, "it ended only {ended} ms before the node was given up");
    end(&cluster, "stayed");
    until_lasted(&cluster, "moved", 1, 3);
    end(&cluster, "moved");
    let view = cluster.until(moved, "failed");
    assert_eq!((&view["exit_code"], &view["restarts"]), (&5.into(), &1.into()), "{view}");
    namespaces.connect(cut, true);
    cluster.until_up();
    let view = cluster.until(stayed, "failed");
    assert_eq!((&view["exit_code"], &view["restarts"]), (&5.into(), &0.into()), "{view}");
    let all = stays(&cluster, "moved");
    let nodes: Vec<&str> = all.iter().map(|stay| stay.0.as_str()).collect();
    assert_eq!(nodes, [format!("n{cut}"), format!("n{other}")], "{all:?}");
    assert!(all[0].2 < all[1].1, "it ended here before it began there: {all:?}");
    // Both nodes take jobs again.
    let jobs = [submit(&cluster, "first"), submit(&cluster, "second")];
    assert_ne!(node_of(&cluster, jobs[0]), node_of(&cluster, jobs[1]));
    ["first", "second"].into_iter().for_each(|name| end(&cluster, name));
    jobs.into_iter().for_each(|job| _ = cluster.until(job, "failed"));
    assert_eq!(stays(&cluster, "moved").len(), 2, "nothing more of it ran");
    drop(cluster);
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}
