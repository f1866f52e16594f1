//! People on the daemon's machine: who they are by the kernel, what they may do, and that their
//! jobs run as them, where they are.

use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hostler_live::person::Account;

use crate::harness::{Cluster, PROGRAM, wait_for};

/// Accounts that every machine has.
const ADA: &str = "games";
const EVE: &str = "daemon";

struct People {
    cluster: Cluster,
    program: PathBuf,
    ada: Account,
    eve: Account,
}

impl People {
    /// A daemon with a node that runs jobs as people; none where tests cannot be anybody else.
    fn start(options: &[&str]) -> Option<People> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root starts programs as somebody else");
            return None;
        }
        let (ada, eve) = (Account::named(ADA).unwrap(), Account::named(EVE).unwrap());
        let (Some(ada), Some(eve)) = (ada, eve) else {
            println!("skipped: there is no `{ADA}` or no `{EVE}` here");
            return None;
        };
        let mut cluster = Cluster::start(options, &[]);
        cluster.enrol("n0", &["--fake-gpus", "2xV100", "--job-user", "person", "--uid-min", "1"]);
        cluster.until_up();
        // What was built may lie where others cannot come.
        let program = cluster.folder().join("hostler");
        std::fs::copy(PROGRAM, &program).unwrap();
        Some(People { cluster, program, ada, eve })
    }

    fn socket(&self) -> PathBuf {
        self.cluster.folder().join("data/hostler.sock")
    }

    /// A folder of somebody's own.
    fn home(&self, account: &Account) -> PathBuf {
        let home = self.cluster.folder().join(&account.name);
        if !home.exists() {
            std::fs::create_dir(&home).unwrap();
            chown(&home, Some(account.uid), Some(account.gid)).unwrap();
        }
        home.canonicalize().unwrap()
    }

    /// A shell command of somebody, with the program as `hostler`.
    fn shell(&self, account: &Account, line: &str) -> Output {
        let home = self.home(account);
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("hostler() {{ {} \"$@\"; }}; {line}", self.program.display())]);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &home).env("MINE", "1");
        command.env("HOSTLER_SERVER", format!("unix:{}", self.socket().display()));
        command.current_dir(&home).uid(account.uid).gid(account.gid).output().unwrap()
    }

    fn run(&self, account: &Account, line: &str) -> String {
        let output = self.shell(account, line);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {errors}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn refused(&self, account: &Account, line: &str) -> String {
        let output = self.shell(account, line);
        assert!(!output.status.success(), "{line}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

#[test]
fn a_person_submits_without_a_token_and_the_job_runs_as_them_where_they_are() {
    let Some(people) = People::start(&[]) else { return };
    let words = people.refused(&people.ada, "hostler queue");
    assert!(words.contains(&format!("user `{ADA}` ({}) is not known", people.ada.uid)), "{words}");
    assert!(words.contains(&format!("hostler user add {ADA}")), "{words}");
    people.cluster.text(&["user", "add", ADA, "--tenant", "lab", "--new-tenant"]);
    let listed = people.cluster.text(&["user", "list"]);
    assert!(listed.contains(ADA) && listed.contains("lab"), "{listed}");

    let script = "pwd; id -un; umask; echo $PATH ${MINE-none}; touch made";
    let line = format!("umask 077; hostler submit --wait -- sh -c '{script}'");
    let job = people.run(&people.ada, &line);
    let said = people.run(&people.ada, &format!("hostler logs {job}"));
    let home = people.home(&people.ada);
    assert_eq!(said, format!("{}\n{ADA}\n0077\n/usr/bin:/bin none", home.display()));
    let made = std::fs::metadata(home.join("made")).unwrap();
    assert_eq!((made.uid(), made.gid()), (people.ada.uid, people.ada.gid));
    assert_eq!(made.mode() & 0o777, 0o600);
    let view = people.cluster.job(job.parse().unwrap());
    assert_eq!((&view["user"], &view["tenant"]), (&ADA.into(), &"lab".into()));

    let job = people.run(
        &people.ada,
        "hostler submit --wait --workdir private --export MINE,A=b \
                                       -- sh -c 'pwd; echo $MINE $A'",
    );
    let said = people.run(&people.ada, &format!("hostler logs {job}"));
    assert!(said.ends_with(&format!("/jobs/{job}\n1 b")), "{said}");
    let script = "#!/bin/sh\n#SBATCH --export=ALL -D below\npwd; echo $MINE\n";
    std::fs::write(home.join("job.sh"), script).unwrap();
    let job = people.run(&people.ada, "mkdir below; hostler submit --wait job.sh");
    let said = people.run(&people.ada, &format!("hostler logs {job}"));
    assert_eq!(said, format!("{}/below\n1", home.display()));

    people.cluster.text(&["user", "remove", ADA]);
    assert!(people.refused(&people.ada, "hostler queue").contains("is not known"));
}

#[test]
fn a_folder_that_is_not_for_the_person_fails_the_job_at_once() {
    let Some(people) = People::start(&[]) else { return };
    people.cluster.text(&["user", "add", ADA]);
    let closed = people.cluster.folder().join("closed");
    std::fs::create_dir_all(closed.join("open")).unwrap();
    for folder in [closed.as_path(), Path::new("/no/such/folder")] {
        std::fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .unwrap();
        let line = format!("hostler submit --wait --workdir {} -- pwd", folder.display());
        let words = people.refused(&people.ada, &line);
        let named = format!("on node `n0`: cannot start in `{}` as `{ADA}`", folder.display());
        assert!(words.contains(&named), "{words}");
        assert!(words.contains("--workdir private"), "{words}");
    }
}

#[test]
fn people_of_other_tenants_neither_see_nor_end_a_job() {
    let Some(people) = People::start(&[]) else { return };
    people.cluster.text(&["user", "add", ADA, "--tenant", "lab", "--new-tenant"]);
    people.cluster.text(&["user", "add", EVE, "--tenant", "other", "--new-tenant"]);
    let job = people.run(&people.ada, "hostler submit -- sleep 600");
    for line in ["show", "logs", "cancel", "explain"] {
        let words = people.refused(&people.eve, &format!("hostler {line} {job}"));
        assert!(words.contains("no such job") || words.contains("no job"), "{line}: {words}");
    }
    assert_eq!(people.run(&people.eve, "hostler queue --json"), "[]");
    for line in [
        "user add root --role admin",
        "token create x --unix-user root",
        "user list",
        "submit --tenant lab -- true",
    ] {
        let words = people.refused(&people.eve, &format!("hostler {line}"));
        assert!(words.contains("may not do this") || words.contains("no tenant"), "{words}");
    }
    people.run(&people.ada, &format!("hostler cancel {job}"));
    people.cluster.until_drained(std::time::Duration::from_secs(60));
}

#[test]
fn people_go_inside_their_own_jobs_by_the_socket_and_are_themselves_there() {
    let Some(people) = People::start(&[]) else { return };
    people.cluster.text(&["user", "add", ADA, "--tenant", "lab", "--new-tenant"]);
    people.cluster.text(&["user", "add", EVE, "--tenant", "other", "--new-tenant"]);
    let said = people.run(&people.ada, "echo hello | hostler run -- sh -c 'id -un; pwd; cat'");
    let home = people.home(&people.ada);
    assert_eq!(said, format!("{ADA}\n{}\nhello", home.display()));
    let job = people.run(&people.ada, "umask 027; hostler submit -- sleep 600");
    people.cluster.until(job.parse().unwrap(), "running");
    let line = format!("hostler exec {job} -- sh -c 'id -un; id -G; umask; pwd'");
    let groups: Vec<String> = people.ada.groups().unwrap().iter().map(u32::to_string).collect();
    let expected = format!("{ADA}\n{}\n0027\n{}", groups.join(" "), home.display());
    assert_eq!(people.run(&people.ada, &line), expected);
    // A terminal is the person's, too, and what the stage says first is not shown on it.
    let line = format!(
        "script -qec \"{} exec {job} -- sh -c 'id -un; stat -c %U \\$(tty)'\" /dev/null < /dev/null",
        people.program.display()
    );
    match Command::new("script").arg("--version").output() {
        Ok(_) => {
            // The end of its own input is echoed, too.
            let said = people.run(&people.ada, &line).replace('\r', "").replace("^@", "");
            assert_eq!(said.trim(), format!("{ADA}\n{ADA}"), "{said}");
        }
        Err(_) => println!("skipped in part: there is no `script` here"),
    }
    let words = people.refused(&people.eve, &format!("hostler exec {job} -- true"));
    assert!(words.contains("no such job") || words.contains("no job"), "{words}");
    people.run(&people.ada, &format!("hostler cancel {job}"));
    people.cluster.until_drained(std::time::Duration::from_secs(60));
}

/// Says something over a way to the daemon; gives the whole answer.
fn raw(mut way: impl std::io::Read + std::io::Write, request: &str) -> String {
    way.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    way.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn nobody_is_somebody_else_by_saying_so() {
    let Some(people) = People::start(&[]) else { return };
    let claims = "x-hostler-user: root\r\nx-remote-user: root\r\nx-forwarded-user: root\r\n\
                  x-hostler-uid: 0\r\nperson: root\r\nconnection: close\r\n";
    let request = format!("GET /api/v1/me HTTP/1.1\r\nhost: x\r\n{claims}\r\n");
    let server = people.cluster.access().server;
    let way = std::net::TcpStream::connect((server.host.as_str(), server.port)).unwrap();
    let answer = raw(way, &request);
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    // The test itself is root, who is nobody here until an admin says so.
    let answer = raw(UnixStream::connect(people.socket()).unwrap(), &request);
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("`root` (0)"), "{answer}");
    // As whom jobs may run that belong to nobody is let in for none of them.
    let refused = people.cluster.run(&["user", "add", "nobody"]).unwrap_err();
    assert!(refused.contains("`nobody` stands for all whom nobody knows"), "{refused}");
    people.cluster.text(&["user", "add", "root", "--role", "viewer"]);
    let answer = raw(UnixStream::connect(people.socket()).unwrap(), &request);
    assert!(answer.contains("\"role\":\"viewer\""), "{answer}");
    // A token that is shown counts, and a wrong one is not made up for by who shows it.
    let wrong = request.replace("person: root", "authorization: Bearer hst_wrong");
    let answer = raw(UnixStream::connect(people.socket()).unwrap(), &wrong);
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    let token = people.cluster.access().token;
    let admin = request.replace("person: root", &format!("authorization: Bearer {token}"));
    let answer = raw(UnixStream::connect(people.socket()).unwrap(), &admin);
    assert!(answer.contains("\"role\":\"admin\""), "{answer}");
    let body = r#"{"command": ["id"], "person": {"name": "root", "uid": 0}}"#;
    let submit = format!(
        "POST /api/v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = raw(UnixStream::connect(people.socket()).unwrap(), &submit);
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}

#[test]
fn a_token_stands_for_the_person_that_an_admin_named() {
    let Some(people) = People::start(&[]) else { return };
    let refused = people.cluster.run(&["token", "create", "x", "--unix-user", "root"]);
    assert!(refused.unwrap_err().contains("no job runs as root"));
    let agent = ["token", "create", "x", "--role", "agent", "--unix-user", ADA];
    assert!(people.cluster.run(&agent).unwrap_err().contains("an agent submits no jobs"));
    // The admin's own token stands for nobody.
    let job = people.cluster.submit(&["--", "true"]);
    let view = people.cluster.until(job, "failed");
    assert!(view["reason"].as_str().unwrap().contains("--unix-user NAME"), "{view}");
    let made = people.cluster.text(&["token", "create", "ada", "--unix-user", ADA]);
    let server = people.cluster.access().server;
    let folder = people.home(&people.ada);
    let run = |words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(words).current_dir(&folder).env("HOSTLER_SERVER", server.to_string());
        let output = command.env("HOSTLER_TOKEN", made.trim()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let job = run(&["submit", "--wait", "--", "sh", "-c", "id -un; pwd"]);
    assert_eq!(run(&["logs", &job]), format!("{ADA}\n{}", folder.display()));
}

#[test]
fn a_tenant_for_all_is_not_for_the_system_or_for_those_without_a_name() {
    let Some(people) = People::start(&["--local-tenant", "guests"]) else { return };
    assert!(people.refused(&people.ada, "hostler queue").contains("is not known here"));
    let nobody = Account::named("nobody").unwrap().unwrap();
    assert!(people.refused(&nobody, "hostler queue").contains("is not known here"));
    let unnamed = Account { uid: 61_234, gid: 61_234, name: "unnamed".into(), ..nobody };
    assert!(people.refused(&unnamed, "hostler queue").contains("has no name"));
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let uid = |line: &str| line.split(':').nth(2).and_then(|uid| uid.parse::<u32>().ok());
    let ordinary = passwd.lines().filter_map(uid).find(|uid| (1000..65534).contains(uid));
    let Some(guest) = ordinary.and_then(|uid| Account::numbered(uid).unwrap()) else {
        println!("skipped in part: there is no ordinary user on this machine");
        return;
    };
    let job = people.run(&guest, "hostler submit --wait -- id -u");
    assert_eq!(people.run(&guest, &format!("hostler logs {job}")), guest.uid.to_string());
    assert_eq!(people.cluster.job(job.parse().unwrap())["tenant"], "guests");
}

#[test]
fn a_socket_that_a_killed_daemon_left_is_taken_over() {
    let mut cluster = Cluster::start(&[], &[]);
    let socket = cluster.folder().join("data/hostler.sock");
    assert!(UnixStream::connect(&socket).is_ok());
    cluster.kill_daemon();
    assert!(socket.exists() && UnixStream::connect(&socket).is_err());
    cluster.serve();
    assert!(UnixStream::connect(&socket).is_ok());
    // Before that it may not hear the word to stop.
    wait_for("the daemon", || {
        (cluster.tail("daemon").matches("serving url").count() == 2).then_some(())
    });
    cluster.stop_daemon();
    assert!(!socket.exists());
}
