//! A gang over two agents that meets as programs under torchrun do: rank 0 listens where everybody
//! was told, the others come, and each learns something of all.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::harness::{Cluster, wait_for};

/// This test is its own job: under a rank it is a member of the gang.
#[test]
fn a_gang_over_two_agents_meets_and_adds_up() {
    if std::env::var("RANK").is_ok() {
        return member();
    }
    // Jobs must be able to run the program of this test, wherever it lies.
    let mut cluster = Cluster::new(&["--plain"]);
    cluster.serve();
    for (name, gpus) in [("n0", "2xV100"), ("n1", "2xV100")] {
        let mut options = vec!["--fake-gpus", gpus, "--address", "127.0.0.1"];
        if rustix::process::geteuid().is_root() {
            options.extend(["--job-user", "0:0"]);
        }
        cluster.enrol(name, &options);
    }
    cluster.until_up();
    let program = std::env::current_exe().unwrap();
    let test = "gang::a_gang_over_two_agents_meets_and_adds_up";
    let program = program.to_str().unwrap();
    let command = [program, "--exact", test, "--nocapture"];
    let job = cluster.submit(&[&["--tasks", "4", "--gpus", "1", "--"], &command[..]].concat());
    let view = wait_for("the gang to end", || {
        let view = cluster.job(job);
        view["ended"].is_number().then_some(view)
    });
    let number = job.to_string();
    let output = |rank: &str, stream: &[&str]| {
        let all = [&["logs", &number, "--rank", rank], stream].concat();
        cluster.run(&all).unwrap_or_else(|fault| fault)
    };
    let errors: Vec<String> = ["0", "1", "2", "3"].map(|rank| output(rank, &["--stderr"])).into();
    assert_eq!(view["state"], "finished", "{view}\n{errors:#?}");
    assert_eq!(view["nodes"].as_array().unwrap().len(), 2, "{view}");
    for rank in ["0", "1", "2", "3"] {
        let text = output(rank, &[]);
        assert!(text.contains("the sum of all ranks is 6 of 4"), "rank {rank}: {text}");
    }
}

#[test]
fn a_job_of_two_nodes_has_a_task_on_each() {
    let mut cluster = Cluster::new(&["--plain"]);
    cluster.serve();
    for name in ["n0", "n1"] {
        cluster.enrol(name, &["--fake-gpus", "4xV100"]);
    }
    cluster.until_up();
    let job = cluster.submit(&["--nodes", "2", "--gpus", "1", "--", "true"]);
    let view = wait_for("its end", || {
        let view = cluster.job(job);
        view["ended"].is_number().then_some(view)
    });
    assert_eq!((&view["state"], view["nodes"].as_array().unwrap().len()), (&"finished".into(), 2));
    let larger = cluster.submit(&["--nodes", "3", "--gpus", "1", "--", "true"]);
    let view = wait_for("a refusal, or a reason to wait", || {
        let view = cluster.job(larger);
        (!view["reason"].as_str().unwrap_or_default().is_empty()).then_some(view)
    });
    assert!(view["nodes"].as_array().is_none_or(Vec::is_empty), "{view}");
    assert!(view["reason"].as_str().unwrap().contains("2 of its 3 tasks"), "{view}");
}

/// Sends its rank to rank 0 and prints the sum that comes back.
fn member() {
    let number = |name: &str| std::env::var(name).unwrap().parse::<u32>().unwrap();
    let (rank, size) = (number("RANK"), number("WORLD_SIZE"));
    assert_eq!(number("LOCAL_WORLD_SIZE"), 2);
    assert_eq!(number("LOCAL_RANK"), rank % 2);
    let address = (std::env::var("MASTER_ADDR").unwrap(), number("MASTER_PORT") as u16);
    let sum = if rank == 0 { lead(&address, size) } else { follow(&address, rank) };
    println!("the sum of all ranks is {sum} of {size}");
}

fn lead(address: &(String, u16), size: u32) -> u32 {
    let listener = TcpListener::bind((address.0.as_str(), address.1)).unwrap();
    let members: Vec<TcpStream> = (1..size).map(|_| listener.accept().unwrap().0).collect();
    let ranks = members.iter().map(|member| {
        let mut line = String::new();
        BufReader::new(member).read_line(&mut line).unwrap();
        line.trim().parse::<u32>().unwrap()
    });
    let sum = ranks.sum();
    members.iter().for_each(|mut member| writeln!(member, "{sum}").unwrap());
    sum
}

fn follow(address: &(String, u16), rank: u32) -> u32 {
    let connect = || TcpStream::connect((address.0.as_str(), address.1)).ok();
    let mut stream = wait_for("rank 0", connect);
    writeln!(stream, "{rank}").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim().parse().unwrap()
}

#[test]
fn the_task_of_a_gang_that_failed_is_told_with_its_node() {
    let mut cluster = Cluster::new(&["--plain"]);
    cluster.serve();
    for node in ["n0", "n1"] {
        cluster.enrol(node, &["--fake-gpus", "1xV100", "--address", "127.0.0.1"]);
    }
    cluster.until_up();
    let gang =
        |script: &str| cluster.submit(&["--nodes", "2", "--gpus", "1", "--", "sh", "-c", script]);
    let code = gang("if [ $RANK = 1 ]; then exit 7; fi; sleep 600");
    cluster.until(code, "failed");
    let node = cluster.job(code)["failed_node"].as_str().unwrap().to_owned();
    assert_eq!(cluster.job(code)["nodes"][1], node.as_str());
    let shown = cluster.text(&["show", &code.to_string()]);
    assert!(shown.contains(&format!("exit code       7 (task 1 on {node})")), "{shown}");
    let over = cluster.text(&["history"]);
    assert!(over.contains(&format!("exit 7 (task 1 on {node})")), "{over}");
    let signal = "if [ $RANK = 1 ]; then kill -SEGV $$; fi; sleep 600";
    let words = ["submit", "--wait", "--nodes", "2", "--gpus", "1", "--", "sh", "-c", signal];
    let told = cluster.run(&words).unwrap_err();
    assert!(told.contains(&format!("killed by SIGSEGV (task 1 on {node})")), "{told}");
    let shown = cluster.text(&["history"]);
    assert!(shown.contains(&format!("SIGSEGV (task 1 on {node})")), "{shown}");
}
