//! `serve --with-agent` by an ordinary user: its jobs can read what the daemon can.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs::{File, Permissions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hostler_live::api::{MadeToken, NewToken};
use hostler_live::client::{Access, Client, ClientError};
use hostler_live::job::JobRequest;
use hostler_live::store::Role;
use serde_json::{Value, json};

/// Nobody's number, where the tests run as root.
const ORDINARY: u32 = 65534;

/// A daemon that does not outlive its test.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a daemon with an agent as an ordinary user; gives where it is.
fn serve(folder: &Path, address: &str, options: &[&str]) -> (Daemon, String) {
    let mut command = Command::new(folder.join("hostler"));
    command.args(["serve", "--data", "data", "--listen", address, "--plain"]);
    command.args(["--with-agent", "--fake-gpus", "1xV100"]).args(options).current_dir(folder);
    if rustix::process::geteuid().is_root() {
        command.uid(ORDINARY).gid(ORDINARY);
    }
    let is_new = !folder.join("data").exists();
    let log = File::options().create(true).append(true).open(folder.join("log")).unwrap();
    let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut line = String::new();
    if is_new {
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    }
    let url = line.split_whitespace().nth(2).unwrap_or_default().to_owned();
    (Daemon(child), url)
}

fn submit(access: &Access) -> Result<Value, ClientError> {
    let command = vec!["true".to_owned()];
    let request = JobRequest { command, gpus: 1.0, tasks: 1, ..JobRequest::default() };
    let mut client = Client::new(access.clone()).unwrap();
    for _ in 0..1200 {
        match client.post("/jobs", &request) {
            Err(ClientError::Unreachable { .. }) => {}
            answer => return answer,
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("the daemon does not answer");
}

#[test]
fn other_tenants_run_nothing_where_jobs_can_read_the_admins_token() {
    let folder = tempfile::Builder::new().prefix("hostler-").tempdir().unwrap();
    let path = folder.path();
    std::fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_hostler"), path.join("hostler")).unwrap();
    let (daemon, url) = serve(path, "127.0.0.1:0", &[]);
    let token = std::fs::read_to_string(path.join("data/admin-token")).unwrap();
    let admin = Access::new(&url, &token, None).unwrap();
    let mut client = Client::new(admin.clone()).unwrap();
    client.put::<Value>("/tenants/other", &json!({})).unwrap();
    let (name, tenant) = ("eve".into(), Some("other".into()));
    let role = Role::User;
    let new = NewToken { role, name, tenant, new_tenant: true, unix_user: None };
    let made: MadeToken = client.post("/tokens", &new).unwrap();
    let other = Access::new(&url, &made.token, None).unwrap();

    let refused = submit(&other).unwrap_err();
    assert!(matches!(refused, ClientError::Refused { status: 403, .. }), "{refused:?}");
    let words = refused.to_string();
    assert!(words.contains("could read its secrets") && words.contains("--trust-tenants"));
    submit(&admin).unwrap();
    let log = std::fs::read_to_string(path.join("log")).unwrap();
    let warned = |line: &str| line.contains("WARN") && line.contains("can read its secrets");
    assert!(log.lines().any(warned), "{log}");

    drop(daemon);
    let address = url.trim_start_matches("http://");
    let (_daemon, _) = serve(path, address, &["--trust-tenants"]);
    submit(&other).unwrap();
}
