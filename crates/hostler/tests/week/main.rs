//! The first week of a lab, typed as people type it: from an empty machine to the accounts at its
//! end, with real daemons, agents, jobs and faults. `docs/tour.md` is what was typed and printed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

#[path = "../harness/mod.rs"]
mod harness;
mod images;
mod lab;
mod record;

use std::os::unix::fs::PermissionsExt as _;

use expect_test::expect_file;
use harness::wait_for;
use lab::Lab;
use serde_json::Value;

/// Who works here, and for which tenant.
const PEOPLE: &[(&str, &str)] = &[
    ("ada", "vision"),
    ("bela", "vision"),
    ("chen", "vision"),
    ("dora", "vision"),
    ("emil", "vision"),
    ("fay", "speech"),
    ("gil", "speech"),
    ("hana", "speech"),
    ("ivan", "speech"),
    ("jo", "speech"),
];

/// Machines and their GPUs.
const MACHINES: &[(&str, &str)] = &[
    ("gpu-1", "4xA100:40960@300"),
    ("gpu-2", "4xA100:40960@300"),
    ("gpu-3", "4xV100:32768@250"),
    ("gpu-4", "4xV100:32768@250"),
];

#[test]
fn the_first_week_of_a_lab() {
    let mut lab = Lab::new("The first week of a lab");
    lab.tell(
        "Ten people, four machines with four GPUs each, and Hostler from an empty folder on. This \
         page is typed by a test against real daemons, agents and jobs, and compared with what they \
         print; only the GPUs are made up. Times, secrets and ports differ, so `..`, `TOKEN` and \
         `DAY TIME` stand for them. `#` is the prompt of the admin.",
    );
    monday(&mut lab);
    tuesday(&mut lab);
    wednesday(&mut lab);
    thursday(&mut lab);
    inside(&mut lab);
    container(&mut lab);
    friday(&mut lab);
    saturday(&mut lab);
    sunday(&mut lab);
    expect_file!["../../../../docs/tour.md"].assert_eq(&lab.page());
}

/// A daemon, tenants, people and machines.
fn monday(lab: &mut Lab) {
    lab.day(
        "Monday: a daemon, people and machines",
        "The daemon keeps everything in one folder and prints the line with which its admin logs \
         in. A fence of ten seconds is short, so that this page need not wait for a machine that \
         is lost.",
    );
    let login = lab.serve("--fence-secs 10 --dead-secs 17");
    lab.types("admin", login.trim());
    lab.tell("Two groups share the machines, each with at most twelve GPUs at a time.");
    for tenant in ["vision", "speech"] {
        lab.types("admin", &format!("hostler tenant set {tenant} --gpus 12"));
    }
    lab.tell("Each person gets a token, once, and logs in with it.");
    let server = login.split_whitespace().skip(2).take(3).collect::<Vec<_>>().join(" ");
    for (number, (who, tenant)) in PEOPLE.iter().enumerate() {
        let home = lab.home(who);
        let create = format!("hostler token create {who} --tenant {tenant}");
        let made = lab.quietly("admin", &create);
        let token = made.lines().nth(1).unwrap().to_owned();
        lab.hide(&token, "TOKEN");
        std::fs::write(home.join("token"), &token).unwrap();
        let login = format!("hostler login {server} < token");
        if number == 0 {
            lab.show("admin", &create, &made);
            lab.types(who, &login);
        } else {
            lab.quietly(who, &login);
        }
    }
    lab.tell(
        "The other nine are let in the same way. Then the machines, with tokens of their own and a \
         folder for checkpoints that all of them see:",
    );
    let shared = lab.home("shared");
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o777)).unwrap();
    for (number, (name, gpus)) in MACHINES.iter().enumerate() {
        let home = lab.home(name);
        let create = format!("hostler token create --role agent {name}");
        let made = lab.quietly("admin", &create);
        let token = made.lines().nth(1).unwrap().to_owned();
        lab.hide(&token, "TOKEN");
        std::fs::write(home.join("token"), &token).unwrap();
        if number == 0 {
            lab.show("admin", &create, &made);
        }
        let options = format!(
            "--server {server} --name {name} --token-file token --data agent --cpus 16 \
             --mem-mib 65536 --fake-gpus {gpus} --checkpoints {} --image-programs none",
            shared.display()
        );
        lab.agent(name, &options);
    }
    let nodes = lab.types("admin", "hostler nodes");
    assert_eq!(nodes.matches(" up ").count(), 4, "{nodes}");
}

/// Scripts as they were.
fn tuesday(lab: &mut Lab) {
    lab.day(
        "Tuesday: scripts from before",
        "Scripts that were written for Slurm run as they are. What their lines say is understood; \
         what is left out is told.",
    );
    lab.file(
        "ada",
        "train.sh",
        "#!/bin/bash\n#SBATCH --job-name=resnet\n#SBATCH --gres=gpu:a100:2 --time=1:00:00\n\
         #SBATCH --partition=gpu\necho \"$SLURM_JOB_NAME on $SLURM_GPUS_ON_NODE GPUs, lr $1\"\n",
    );
    let fault = lab.ends_with("ada", "hostler submit train.sh 0.1", 1);
    assert!(fault.contains("A100"), "{fault}");
    lab.tell("Models are called as the machines call them.");
    lab.types("ada", "sed -i s/a100/A100/ train.sh");
    lab.types("ada", "hostler submit train.sh 0.1 --wait");
    let said = lab.types("ada", "hostler logs 1");
    assert_eq!(said, "resnet on 2 GPUs, lr 0.1\n");
    lab.tell("Without a script, a command is enough.");
    lab.types("bela", "hostler submit --name hyper --gpus 4 --max-time 12h -- sleep 600");
    lab.until("2", "running");
    lab.types("bela", "hostler queue");
    lab.types("bela", "hostler cancel 2");
    lab.until("2", "cancelled");
    let other = lab.ends_with("fay", "hostler show 2", 1);
    assert!(!other.contains("bela"), "another group sees nothing: {other}");
}

/// Arrays, dependencies, quotas.
fn wednesday(lab: &mut Lab) {
    lab.day(
        "Wednesday: sweeps",
        "An array is one job many times, here two of them at once. What comes after it waits for \
         all of it.",
    );
    // None of it is over before all is submitted.
    for (name, _) in MACHINES {
        lab.quietly("admin", &format!("hostler drain {name}"));
    }
    lab.types(
        "chen",
        "hostler submit --name sweep --gpus 1 --array 1-6%2 -- sh -c 'sleep 1; \
         echo lr 0.$HOSTLER_ARRAY_INDEX; [ $HOSTLER_ARRAY_INDEX != 4 ]'",
    );
    lab.types("chen", "hostler submit --name best --after over:3 -- echo the best of six");
    lab.types("chen", "hostler submit --name paper --after 3 -- echo all went well");
    for (name, _) in MACHINES {
        lab.quietly("admin", &format!("hostler undrain {name}"));
    }
    lab.until("3_2", "finished");
    lab.until("9", "finished");
    lab.tell("One of them failed, so that what needs all of them can never run.");
    lab.types("chen", "hostler history");
    let shown = lab.types("chen", "hostler logs 3_4");
    assert_eq!(shown, "lr 0.4\n");
    let paper = lab.json("chen", "show 10");
    assert_eq!(paper["state"], "cancelled", "{paper}");
    lab.tell("A group that uses all GPUs of its quota waits, and is told so.");
    lab.types("dora", "hostler submit --name big --gpus 4 --tasks 3 -- sleep 600");
    lab.until("11", "running");
    lab.types("emil", "hostler submit --name late --gpus 1 -- true");
    lab.until("12", "held");
    let why = lab.types("emil", "hostler explain 12");
    assert!(why.contains("12"), "{why}");
    lab.types("dora", "hostler cancel 11");
    lab.until("11", "cancelled");
    lab.until("12", "finished");
}

/// Gangs and machines that are taken out.
fn thursday(lab: &mut Lab) {
    lab.day(
        "Thursday: several machines",
        "A gang has its tasks started together, with the variables that `torchrun` sets.",
    );
    lab.types(
        "gil",
        "hostler submit --name gang --nodes 2 --gpus 4 --wait -- \
         sh -c 'echo rank $RANK of $WORLD_SIZE'",
    );
    let said = lab.types("gil", "hostler logs 13 --rank 1");
    assert!(said.contains("rank 1 of 2"), "{said}");
    lab.tell("A machine that needs a new fan takes nothing new meanwhile.");
    lab.types("admin", "hostler drain gpu-1 --reason 'new fan' --deadline 2h");
    let said = lab.types("admin", "hostler nodes");
    assert!(said.contains("gpu-1 gets no jobs: new fan; what still runs is stopped"), "{said}");
    lab.types("gil", "hostler submit --gpus 4 --gpu-model A100 --wait -- true");
    let view = lab.json("gil", "show 14");
    assert_eq!(view["nodes"][0], "gpu-2", "{view}");
    lab.types("admin", "hostler undrain gpu-1");
    lab.tell(
        "Two machines are kept for new drivers on a day to come. Until then jobs start there that \
         end in time: by their `--max-time`, or two days before.",
    );
    lab.types(
        "admin",
        "hostler reservation add upkeep --nodes gpu-1,gpu-2 --from +10d --for 1d --stop-jobs \
         --reason drivers",
    );
    let said = lab.types("admin", "hostler tenant set speech --gpus 12 --budget 500");
    assert!(said.contains("speech"), "{said}");
}

/// Inside of jobs.
fn inside(lab: &mut Lab) {
    lab.day(
        "Thursday, later: inside a job",
        "Whoever is at a terminal works in the job as in a shell of their own; in a pipe its \
         standard streams are joined.",
    );
    let shell = "script -qec \"hostler run --gpus 1 -- sh -c 'test -t 0 && echo a terminal'\" out";
    let seen = lab.types("fay", shell);
    assert!(seen.contains("a terminal"), "{seen}");
    let said = lab.types("fay", "echo hello | hostler run --gpus 1 -- tr a-z A-Z");
    assert!(said.contains("HELLO\n"), "{said}");
    lab.tell("A command can be run inside a job that runs already, with its GPUs and folder.");
    let words = "hostler submit --name busy --gpus 2 --gpu-model V100 -- sleep 600";
    let busy = lab.types("jo", words).trim().to_owned();
    lab.until(&busy, "running");
    let gpus =
        lab.types("jo", &format!("hostler exec {busy} -- sh -c 'echo GPUs $CUDA_VISIBLE_DEVICES'"));
    assert_eq!(gpus, "GPUs 0,1\n");
    let other = lab.ends_with("ada", &format!("hostler exec {busy} -- id"), 1);
    assert!(other.contains("no such job"), "{other}");
    lab.types("jo", &format!("hostler cancel {busy}"));
    lab.until(&busy, "cancelled");
}

/// A container, where anything that runs one is installed.
fn container(lab: &mut Lab) {
    let title = "Thursday, still later: a container";
    let Some((program, before)) = images::program() else {
        println!("skipped: containers need podman or apptainer, and busybox");
        lab.leave(title, include_str!("../../../../docs/tour.md"));
        // The numbers and accounts of what follows are the same.
        lab.quietly("jo", "hostler submit --gpus 1 --gpu-model V100 --wait -- true");
        return;
    };
    lab.day(
        title,
        "One of the machines has a program that runs images: Podman, Apptainer or enroot. An image \
         may be a file, a name of a registry, or a folder, as this one with nothing but a shell.",
    );
    lab.hide(program, "podman");
    lab.kill_agent("gpu-4", false);
    lab.before.insert("gpu-4".to_owned(), before);
    lab.show("gpu-4", "kill %1", "");
    let options = lab.options("gpu-4").replace("--image-programs none", "");
    lab.agent("gpu-4", &format!("{options}--image-programs {program}"));
    wait_for("what runs images", || {
        let nodes = lab.json("jo", "nodes");
        let runs = |node: &Value| node["images"].as_array().is_some_and(|runs| !runs.is_empty());
        nodes.as_array()?.iter().any(runs).then_some(())
    });
    images::make(&lab.home("jo").join("image"));
    lab.types("jo", "ls image");
    let script = "cat /etc/motd; [ -e /usr ] || echo nothing of the machine";
    let words = format!("--gpus 1 --image image --wait -- /bin/sh -c '{script}'");
    let ran = lab.types("jo", &format!("hostler submit --gpu-model V100 {words}"));
    let number = ran.lines().next().unwrap().to_owned();
    let said = lab.types("jo", &format!("hostler logs {number} --stdout"));
    assert_eq!(said, "hello from the image\nnothing of the machine\n");
    let view = lab.json("jo", &format!("show {number}"));
    assert_eq!(view["nodes"][0], "gpu-4", "{view}");
}

/// An agent dies, and then a machine.
fn friday(lab: &mut Lab) {
    lab.day(
        "Friday: faults",
        "A job does not hang on the agent of its machine: that may be killed and started again.",
    );
    let go = lab.path().join("hana").join("go");
    let until_go = "until [ -e go ]; do sleep 0.1; done; echo done";
    lab.home("hana");
    let words = format!(
        "hostler submit --name long --gpus 2 --gpu-model V100 --workdir . -- sh -c '{until_go}'"
    );
    let long = lab.types("hana", &words).trim().to_owned();
    let before = lab.until(&long, "running");
    assert_eq!(before["nodes"][0], "gpu-3", "{before}");
    lab.kill_agent("gpu-3", false);
    lab.show("gpu-3", "kill -9 %1", "");
    lab.agent_again("gpu-3");
    lab.until(&long, "running");
    std::fs::write(go, "").unwrap();
    lab.until(&long, "finished");
    let after = lab.json("hana", &format!("show {long}"));
    assert_eq!(after["restarts"], 0, "it was not started again: {after}");
    lab.types("hana", &format!("hostler logs {long}"));
    lab.tell(
        "A machine that is lost with all that runs on it is given up after the fence, and its jobs \
         start elsewhere; this one goes on from its checkpoint.",
    );
    lab.file(
        "ivan",
        "steps.sh",
        "#!/bin/bash\n#HOSTLER --gpus 4 --gpu-model V100 --checkpoints\n\
         cd $HOSTLER_CHECKPOINT_DIR\necho \"from step $(cat step 2> /dev/null || echo 0)\"\n\
         [ -e step ] && exit\necho 500 > step\nsleep 600\n",
    );
    let steps = lab.types("ivan", "hostler submit --name steps steps.sh").trim().to_owned();
    let first = lab.until(&steps, "running");
    assert_eq!(first["nodes"][0], "gpu-3", "{first}");
    wait_for("its checkpoint", || {
        let saved = lab.quietly("admin", "cat ../shared/*/step 2> /dev/null || true");
        (saved == "500\n").then_some(())
    });
    lab.kill_agent("gpu-3", true);
    lab.show("gpu-3", "poweroff", "");
    lab.until_node("gpu-3", "down");
    let ended = lab.until(&steps, "finished");
    let nodes = lab.types("admin", "hostler nodes | grep -v ^images");
    assert!(nodes.contains("down"), "{nodes}");
    assert_eq!((&ended["restarts"], &ended["nodes"][0]), (&1.into(), &"gpu-4".into()));
    let said = lab.types("ivan", &format!("hostler logs {steps}"));
    assert_eq!(said, "from step 500\n");
    lab.tell("It comes back as if nothing had been.");
    lab.agent_again("gpu-3");
}

/// A backup, and the daemon from it.
fn saturday(lab: &mut Lab) {
    lab.day(
        "Saturday: a backup, and back",
        "A backup is taken while everything runs. The daemon that is restored from it elsewhere is \
         the same for people and machines.",
    );
    lab.types("admin", "hostler backup week.db");
    let before = lab.json("admin", "history --each");
    lab.stop_daemon();
    lab.types("admin", "hostler restore week.db --data restored");
    lab.serve("--data restored --fence-secs 10 --dead-secs 17");
    MACHINES.iter().for_each(|(name, _)| lab.until_node(name, "up"));
    assert_eq!(lab.json("admin", "history --each"), before);
    let made = lab.types("jo", "hostler submit --gpus 1 --wait -- echo as before");
    let number: u32 = made.lines().next().unwrap().parse().unwrap();
    assert!(number > 100_000, "no number is given out twice: {number}");
    let said = lab.types("jo", &format!("hostler logs {number}"));
    assert_eq!(said, "as before\n");
}

/// What was used.
fn sunday(lab: &mut Lab) {
    lab.day(
        "Sunday: what was used",
        "Accounts are by user, tenant, GPU model, group, day, week or month, as a table, CSV or \
         JSON. The energy is what the GPUs tell.",
    );
    lab.types("admin", "hostler usage --by tenant --since 7d");
    lab.types("admin", "hostler usage --by model --since 7d");
    lab.types("ada", "hostler usage --since 7d");
    let usage = lab.json("admin", "usage --by user --since 7d");
    let rows = usage["rows"].as_array().unwrap();
    let sum = |field: &str| rows.iter().map(|row| row[field].as_f64().unwrap_or(0.0)).sum::<f64>();
    let total = &usage["total"];
    for field in ["jobs", "finished", "failed", "gpu_hours", "energy_kwh"] {
        let all = total[field].as_f64().unwrap();
        assert!((sum(field) - all).abs() < 1e-9, "{field}: {usage}");
    }
    assert!(total["energy_kwh"].as_f64().unwrap() > 0.0, "{usage}");
    let history = lab.json("admin", "history --each");
    let count = |state: &str| {
        let jobs = history.as_array().unwrap().iter();
        jobs.filter(|job| job["state"] == state).count()
    };
    assert_eq!(
        (total["finished"].as_u64(), total["failed"].as_u64()),
        (Some(count("finished") as u64), Some(count("failed") as u64))
    );
    assert_eq!(lab.json("admin", "queue"), Value::Array(Vec::new()));
}
