//! Jobs that run as the people who submitted them: who they become, what they get, and who they
//! cannot become.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use hostler_live::person::{Account, Person};
use hostler_live::wire::{Stage, StartOrder, Stream, ToAgent};

use crate::daemon::{Fake, order};

/// An account that every machine has, and that owns nothing of worth.
const NAME: &str = "games";

/// That account; none, loudly, where the tests cannot become anybody else.
fn games() -> Option<Account> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root starts programs as somebody else");
        return None;
    }
    let found = Account::named(NAME).unwrap();
    if found.is_none() {
        println!("skipped: there is no user `{NAME}` here");
    }
    found
}

fn person(name: &str, uid: Option<u32>) -> Option<Person> {
    Some(Person { name: name.to_owned(), uid })
}

fn shell(lease: u32, script: &str) -> StartOrder {
    StartOrder { person: person(NAME, None), ..order(lease, &["sh", "-c", script]) }
}

fn start(fake: &mut Fake, order: StartOrder) {
    fake.say(ToAgent::Start(Box::new(order)));
}

/// Why a job did not start, and never will.
fn refusal(fake: &mut Fake, order: StartOrder) -> String {
    let lease = order.lease.0;
    start(fake, order);
    match fake.stage(lease, |stage| *stage != Stage::Starting) {
        Stage::Impossible { fault } => fault,
        other => panic!("{other:?}"),
    }
}

const PEOPLE: &[&str] = &["--job-user", "person", "--uid-min", "1"];

#[test]
fn a_job_is_its_person_with_groups_home_shell_and_mask() {
    let Some(games) = games() else { return };
    let mut fake = Fake::new(PEOPLE);
    let script = "id -u; id -g; id -G; echo $HOME $USER $LOGNAME $SHELL; umask; grep NoNewPrivs \
                  /proc/self/status";
    start(&mut fake, StartOrder { umask: Some(0o027), ..shell(1, script) });
    assert_eq!(fake.ended(1), "0:0");
    let said = fake.output(1, Stream::Stdout, 0).1;
    let groups = games.groups().unwrap();
    let groups: Vec<String> = groups.iter().map(u32::to_string).collect();
    let Account { uid, gid, home, shell: login, .. } = &games;
    let groups = groups.join(" ");
    let expected =
        format!("{uid}\n{gid}\n{groups}\n{home} {NAME} {NAME} {login}\n0027\nNoNewPrivs:\t1\n");
    assert_eq!(said, expected);
}

#[test]
fn what_a_job_is_given_belongs_to_its_person_alone() {
    let Some(games) = games() else { return };
    let mut fake = Fake::new(PEOPLE);
    let script = "#!/bin/sh\npwd; ls -n $0 | cut -d' ' -f1,3\n";
    let order = StartOrder {
        script: script.to_owned(),
        person: person(NAME, Some(games.uid)),
        ..order(1, &["job.sh"])
    };
    start(&mut fake, order);
    assert_eq!(fake.ended(1), "0:0", "{}", fake.output(1, Stream::Stderr, 0).1);
    let said = fake.output(1, Stream::Stdout, 0).1;
    let data = fake.folder().canonicalize().unwrap();
    assert_eq!(said, format!("{}\n-r-x------ {}\n", data.join("jobs/1").display(), games.uid));
    for folder in ["jobs/1", "checkpoints/1"] {
        let metadata = std::fs::metadata(data.join(folder)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (games.uid, games.gid), "{folder}");
        assert_eq!(metadata.mode() & 0o777, 0o700, "{folder}");
    }
}

#[test]
fn nobody_becomes_root_or_the_system_or_whom_the_machine_does_not_know() {
    let Some(games) = games() else { return };
    let mut fake = Fake::new(PEOPLE);
    let as_person = |lease, person| StartOrder { person, ..shell(lease, "id -u") };
    for (lease, person, words) in [
        (1, None, "has no Unix user"),
        (2, person("root", Some(0)), "which is no person's"),
        (3, person("root", None), "which is no person's"),
        (4, person("no-such-user", None), "there is no user `no-such-user` here"),
        (5, person(NAME, Some(games.uid + 1)), "people need the same number on every machine"),
        (6, person("0", None), "no account can have"),
        (7, person("-u root", None), "no account can have"),
        (8, person("nobody", None), "which is no person's"),
    ] {
        let fault = refusal(&mut fake, as_person(lease, person));
        assert!(fault.contains(words), "{fault}");
    }
    let mut fake = Fake::new(&["--job-user", "person"]);
    let fault = refusal(&mut fake, as_person(1, person(NAME, Some(games.uid))));
    assert!(fault.contains("those begin at 1000"), "{fault}");
}

#[test]
fn a_folder_is_entered_with_the_rights_of_the_person() {
    let Some(games) = games() else { return };
    let mut fake = Fake::new(PEOPLE);
    let root = tempfile::tempdir().unwrap();
    let make = |path: &Path, mode| {
        std::fs::create_dir(path).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    std::fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
    let closed = root.path().join("closed");
    make(&closed, 0o700);
    make(&closed.join("open"), 0o777);
    let shared = root.path().join("shared");
    make(&shared, 0o750);
    chown(&shared, None, Some(games.gid)).unwrap();
    let file = root.path().join("file");
    std::fs::write(&file, "").unwrap();
    let in_folder = |lease, folder: &Path| StartOrder {
        workdir: folder.display().to_string(),
        ..shell(lease, "pwd")
    };
    let none = root.path().join("none");
    for (lease, folder) in [(1, &closed), (2, &closed.join("open")), (3, &none), (4, &file)] {
        let fault = refusal(&mut fake, in_folder(lease, folder));
        assert!(fault.contains(&format!("in `{}` as `{NAME}`", folder.display())), "{fault}");
        assert!(fault.contains("--workdir private"), "{fault}");
    }
    start(&mut fake, in_folder(5, &shared));
    assert_eq!(fake.ended(5), "0:0");
    assert_eq!(fake.output(5, Stream::Stdout, 0).1.trim(), shared.display().to_string());
}

#[test]
fn variables_change_what_a_job_believes_and_not_who_it_is() {
    let Some(games) = games() else { return };
    let mut fake = Fake::new(PEOPLE);
    let mut order = shell(1, "echo $HOME $USER; id -u; ls /root 2>&1 | grep -c denied");
    order.env = [("HOME", "/root"), ("USER", "root")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    start(&mut fake, order);
    assert_eq!(fake.ended(1), "0:0");
    let expected = format!("/root root\n{}\n1\n", games.uid);
    assert_eq!(fake.output(1, Stream::Stdout, 0).1, expected);
}

/// Runs the stage of a task by itself, with a shell command; gives what it says.
fn stage(order: &str, script: &str) -> String {
    let mut stage = Command::new(env!("CARGO_BIN_EXE_hostler"));
    stage.args([
        "shim",
        "--task",
        &std::process::id().to_string(),
        order,
        "--",
        "sh",
        "-c",
        script,
    ]);
    let mut stage = stage.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let variables = r#"{"PATH": "/usr/bin:/bin"}"#;
    let length = u32::try_from(variables.len()).unwrap().to_be_bytes();
    let variables = [&length[..], variables.as_bytes()].concat();
    // One that could not become what it should has ended by now.
    let _ = std::io::Write::write_all(&mut stage.stdin.take().unwrap(), &variables);
    String::from_utf8(stage.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn a_stage_takes_on_all_groups_and_leaves_nothing_of_root() {
    let Some(games) = games() else { return };
    let (uid, gid) = (games.uid, games.gid);
    let order = format!(
        r#"{{"user": {{"uid": {uid}, "gid": {gid}, "groups": [{gid}, 20, 24]}}, "workdir": "/",
            "umask": 63, "input": "none"}}"#
    );
    let masks = "Uid:|Gid:|CapInh:|CapPrm:|CapEff:|CapAmb:";
    let script = format!(
        "id -G; umask; while read -r n v; do case $n in {masks}) echo $n $v;; esac; done \
         < /proc/$$/status"
    );
    let said = stage(&order, &script);
    let none = "0000000000000000";
    let expected = format!(
        "r0000{gid} 20 24\n0077\nUid: {uid} {uid} {uid} {uid}\nGid: {gid} {gid} {gid} {gid}\n\
         CapInh: {none}\nCapPrm: {none}\nCapEff: {none}\nCapAmb: {none}\n"
    );
    assert_eq!(said, expected);
    let nobody = order.replacen(&format!("\"uid\": {uid}"), "\"uid\": 4294967295", 1);
    assert_eq!(stage(&nobody, "id -u"), "u0000", "that number would leave it root");
}
