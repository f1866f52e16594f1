//! Webhooks and mail with real processes: signed, tried again, and never in the way.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit as _, Mac as _};
use hostler_live::client::{Ask, Method};
use serde_json::Value;
use sha2::Sha256;

use crate::harness::{Cluster, PATIENCE, wait_for};

const SECRET: &str = "a secret that nobody prints";

/// A webhook: answers each request with the next of these, and goes on with the last.
struct Hook {
    address: String,
    heard: Receiver<(Vec<String>, Vec<u8>)>,
}

impl Hook {
    fn listen(answers: &'static [u16]) -> Hook {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/hooks/s3cret-path", listener.local_addr().unwrap());
        let (told, heard) = channel();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let status = answers[number.min(answers.len() - 1)];
                if told.send(read(stream.unwrap(), status)).is_err() {
                    return;
                }
            }
        });
        Hook { address, heard }
    }

    /// The next document, whose signature must be right.
    fn next(&self) -> Value {
        let (head, body) = self.heard.recv_timeout(PATIENCE).expect("the webhook is told");
        let header = |name: &str| {
            let line = head.iter().find(|line| line.to_lowercase().starts_with(name));
            line.unwrap_or_else(|| panic!("no {name} in {head:?}")).clone()
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
        mac.update(&body);
        let signature = format!("sha256={}", HEXLOWER.encode(&mac.finalize().into_bytes()));
        assert!(header("hostler-signature:").ends_with(&signature), "{head:?}");
        assert!(head[0].starts_with("POST /hooks/s3cret-path HTTP/1.1"), "{head:?}");
        let told: Value = serde_json::from_slice(&body).unwrap();
        assert!(header("hostler-delivery:").ends_with(&told["number"].to_string()), "{head:?}");
        told
    }
}

fn read(stream: TcpStream, status: u16) -> (Vec<String>, Vec<u8>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    let length = head
        .iter()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let answer = format!("HTTP/1.1 {status} Word\r\nContent-Length: 0\r\n\r\n");
    let _ = (&stream).write_all(answer.as_bytes());
    (head, body)
}

/// A daemon that tells a webhook and sends mail into a file.
fn cluster(hook: &Hook, more: &[&str]) -> Cluster {
    let mut cluster = Cluster::new(&["--plain"]);
    let (secret, address) = (cluster.folder().join("secret"), cluster.folder().join("hook"));
    std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
    std::fs::write(&address, &hook.address).unwrap();
    let mail = format!("sh -c 'cat >> {}'", cluster.folder().join("mail").display());
    let (secret, address) = (secret.display().to_string(), format!("@{}", address.display()));
    let told = ["--webhook", &address, "--webhook-secret", &secret, "--mail-command", &mail];
    let words = told.iter().chain(more).map(|word| (*word).to_owned());
    cluster.options.extend(words.collect::<Vec<_>>());
    cluster.serve();
    cluster.enrol("n0", &["--fake-gpus", "4xV100", "--address", "127.0.0.1"]);
    cluster.until_up();
    cluster
}

fn metric(cluster: &Cluster, name: &str) -> f64 {
    let ask = Ask { method: Method::GET, path: "//metrics", headers: &[], body: None };
    let answer = cluster.client().ask(&ask).unwrap();
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[test]
fn webhooks_are_told_what_jobs_ask_for_and_again_when_they_fail() {
    // The first is answered with a fault, and comes again.
    let hook = Hook::listen(&[503, 200]);
    let cluster = cluster(&hook, &[]);
    let words = ["--name", "train", "--gpus", "1", "--notify", "start,fail"];
    let (gate, script) = cluster.gate("first");
    let script = format!("{script}; exit 3");
    let bad = cluster.submit(&[&words[..], &["--", "sh", "-c", &script]].concat());
    let (first, again) = (hook.next(), hook.next());
    std::fs::write(&gate, "").unwrap();
    assert_eq!(first, again);
    assert_eq!((&first["event"], &first["state"]), (&"start".into(), &"running".into()));
    assert_eq!((&first["job"], &first["nodes"][0]), (&bad.into(), &"n0".into()));
    let end = hook.next();
    assert_eq!((&end["event"], &end["state"]), (&"fail".into(), &"failed".into()));
    assert_eq!((&end["exit_code"], &end["name"]), (&3.into(), &"train".into()));
    assert_eq!((&end["user"], &end["tenant"]), (&"admin".into(), &"default".into()));
    assert!(end["ended"].as_f64().unwrap() >= end["started"].as_f64().unwrap());
    assert!(end["number"].as_u64() > first["number"].as_u64());
    // Who asks for nothing, or for failures only and has none, is not told of.
    for words in [&["--", "true"][..], &["--notify", "fail", "--", "true"]] {
        let quiet = cluster.submit(words);
        cluster.until(quiet, "finished");
    }
    // What comes after a job that fails is cancelled by nobody: it fails with it.
    let (gate, script) = cluster.gate("second");
    let first = cluster.submit(&["--", "sh", "-c", &format!("{script}; false")]);
    let after = ["--notify", "fail", "--after", &first.to_string(), "--", "true"];
    let in_vain = cluster.submit(&after);
    std::fs::write(&gate, "").unwrap();
    let end = hook.next();
    assert_eq!((&end["job"], &end["event"]), (&in_vain.into(), &"fail".into()));
    assert_eq!(end["state"], "cancelled");
    assert!(end["reason"].as_str().unwrap().contains("did not finish well"), "{end}");
    let last = cluster.submit(&["--notify", "all", "--gpus", "1", "--", "sleep", "600"]);
    assert_eq!(hook.next()["job"], last);
    cluster.text(&["cancel", &last.to_string()]);
    let end = hook.next();
    assert_eq!((&end["job"], &end["event"]), (&last.into(), &"end".into()));
    assert_eq!(end["state"], "cancelled");
    wait_for("the figures", || {
        (metric(&cluster, "hostler_notices_delivered_total{by=\"webhook\"}") == 5.0).then_some(())
    });
    assert_eq!(metric(&cluster, "hostler_notices_retried_total{by=\"webhook\"}"), 1.0);
    assert_eq!(metric(&cluster, "hostler_notices_lost_total{by=\"webhook\"}"), 0.0);
    let log = std::fs::read_to_string(cluster.folder().join("daemon.log")).unwrap();
    assert!(!log.contains(SECRET) && !log.contains("s3cret-path"), "{log}");
}

#[test]
fn an_operator_hears_of_all_jobs_and_a_refusal_is_counted_and_told() {
    let hook = Hook::listen(&[404]);
    let mut cluster = cluster(&hook, &["--webhook-events", "fail"]);
    let bad = cluster.submit(&["--", "false"]);
    cluster.until(bad, "failed");
    assert_eq!(hook.next()["job"], bad);
    wait_for("the figures", || {
        (metric(&cluster, "hostler_notices_lost_total{by=\"webhook\"}") == 1.0).then_some(())
    });
    let log = wait_for("the log", || {
        let log = std::fs::read_to_string(cluster.folder().join("daemon.log")).unwrap();
        log.contains("a notice is given up").then_some(log)
    });
    assert!(log.contains("it says 404") && !log.contains("s3cret-path"), "{log}");
    assert!(!cluster.folder().join("mail").exists(), "nobody asked for mail");
    cluster.stop_daemon();
}

#[test]
fn mail_is_sent_by_the_operators_program_and_scripts_of_slurm_ask_for_it() {
    let hook = Hook::listen(&[200]);
    let cluster = cluster(&hook, &["--mail-from", "hostler@lab.example"]);
    let script = "#!/bin/sh\n#SBATCH --job-name=sweep --mail-type=END,FAIL\n\
                  #SBATCH --mail-user=ada@lab.example\nexit 2\n";
    std::fs::write(cluster.folder().join("job.sh"), script).unwrap();
    let job = cluster.submit(&["job.sh"]);
    assert_eq!(hook.next()["event"], "fail");
    let mail = wait_for("the mail", || {
        let mail = std::fs::read_to_string(cluster.folder().join("mail")).ok()?;
        mail.contains("hostler logs").then_some(mail)
    });
    assert!(mail.starts_with("To: ada@lab.example\nFrom: hostler@lab.example\n"), "{mail}");
    let subject = format!("Subject: [hostler] job {job} (sweep) failed with exit code 2\n");
    assert!(mail.contains(&subject), "{mail}");
    assert_eq!(mail.matches("Subject:").count(), 1, "{mail}");
    let shown = cluster.text(&["show", &job.to_string()]);
    assert!(shown.contains("notify          end fail to ada@lab.example"), "{shown}");
    let wrong = cluster.run(&["submit", "--mail-to", "|sh", "--", "true"]).unwrap_err();
    assert!(wrong.contains("is no address"), "{wrong}");
}
