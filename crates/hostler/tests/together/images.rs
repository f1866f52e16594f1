//! Jobs in containers, run by whichever program is installed here, in an image that is made of one
//! static busybox.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::{Cluster, processes, surroundings, wait_for};

/// A cluster of one node that runs no images, and one that does.
struct Site {
    cluster: Cluster,
    program: &'static str,
    root: PathBuf,
}

/// None, and a loud word, where nothing that runs a folder is installed.
fn site() -> Option<Site> {
    let program = ["apptainer", "singularity", "podman"].into_iter().find(|name| found(name));
    let busybox =
        ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|it| Path::new(it).exists());
    let (Some(program), Some(busybox)) = (program, busybox) else {
        eprintln!("skipped: images need podman or apptainer, and busybox-static");
        return None;
    };
    let mut cluster = Cluster::new(&["--plain"]);
    let root = cluster.folder().join("root");
    for folder in ["bin", "dev", "etc", "proc", "sys", "tmp", "run", "var/tmp", "data"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::copy(busybox, root.join("bin/busybox")).unwrap();
    for name in ["sh", "cat", "sleep", "id", "env", "ls", "touch", "mv", "grep", "kill", "test"] {
        symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    fs::write(root.join("hello"), "hello from the image\n").unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    if rustix::process::geteuid().is_root() {
        // As whom jobs of root's agents run.
        let owned = Command::new("chown").args(["-R", "nobody:"]).arg(&root).status();
        assert!(owned.unwrap().success());
    }
    cluster.serve();
    cluster.enrol("bare", &["--fake-gpus", "4xV100", "--image-programs", "none"]);
    let options = ["--fake-gpus", "1xV100", "--image-programs", program];
    cluster.enrol_at("able", &options, &surroundings(), None);
    cluster.until_up();
    Some(Site { cluster, program, root })
}

fn found(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

impl Site {
    fn submit(&self, options: &[&str], script: &str) -> u32 {
        let root = self.root.to_str().unwrap();
        let all = [&["--image", root], options, &["--", "/bin/sh", "-c", script]];
        self.cluster.submit(&all.concat())
    }

    fn output(&self, job: u32) -> String {
        self.cluster.text(&["logs", &job.to_string(), "--stdout"])
    }

    fn errors(&self, job: u32) -> String {
        let shown = self.cluster.run(&["logs", &job.to_string(), "--stderr"]);
        shown.unwrap_or_else(|fault| fault)
    }

    fn until_said(&self, job: u32, word: &str) {
        wait_for(&format!("`{word}` of job {job}"), || {
            let view = self.cluster.job(job);
            assert!(!view["ended"].is_number(), "{view}\n{}", self.errors(job));
            let said = self.cluster.run(&["logs", &job.to_string(), "--stdout"]);
            said.is_ok_and(|said| said.contains(word)).then_some(())
        });
    }

    /// Containers that Podman knows of, with those that are over.
    fn containers(&self) -> Vec<String> {
        let images = self.cluster.folder().join("able/images");
        let Ok(users) = fs::read_dir(&images) else { return Vec::new() };
        let listed = users.filter_map(|user| {
            let file = user.ok()?.path().join("data/vfs-containers/containers.json");
            fs::read_to_string(file).ok()
        });
        listed.filter(|text| text.contains("hostler-")).collect()
    }
}

#[test]
fn a_job_runs_in_its_image_on_a_node_that_can() {
    let Some(site) = site() else { return };
    let script = r#"
        cat /hello; pwd
        echo "$RANK of $WORLD_SIZE, gpus $CUDA_VISIBLE_DEVICES, $WORD, image $HOSTLER_IMAGE"
        echo kept > "$HOSTLER_CHECKPOINT_DIR/kept"
        echo here > here
        test -S "$HOSTLER_SOCKET" && echo "a socket"
        cat /in/data
        echo no > /in/data || echo "read only"
        ! test -e /usr/bin/env && echo "nothing of the machine"
        grep NoNewPrivs /proc/self/status
        exit 7"#;
    let data = site.cluster.notes().join("data");
    fs::write(&data, "some data\n").unwrap();
    let mount = format!("{}:/in/data:ro", data.display());
    let word = ["--env", "WORD=two\nlines", "--mount", &mount, "--gpus", "1"];
    let job = site.submit(&word, script);
    let view = site.cluster.until(job, "failed");
    let errors = site.errors(job);
    assert_eq!((&view["exit_code"], &view["nodes"][0]), (&7.into(), &"able".into()), "{errors}");
    let own = fs::read_dir(site.cluster.folder().join("able/jobs")).unwrap();
    let own = own.map(|entry| entry.unwrap().path()).next().unwrap();
    let (own, root) = (own.canonicalize().unwrap(), site.root.display());
    let expected = format!(
        "hello from the image\n{}\n0 of 1, gpus 0, two\nlines, image {root}\na socket\n\
         some data\nread only\nnothing of the machine\nNoNewPrivs:\t1\n",
        own.display()
    );
    assert_eq!(site.output(job), expected, "{errors}");
    assert_eq!(fs::read_to_string(own.join("here")).unwrap(), "here\n");
    let kept = site.cluster.folder().join(format!("able/checkpoints/{job}/kept"));
    assert_eq!(fs::read_to_string(kept).unwrap(), "kept\n");
    assert!(!site.root.join("in").exists(), "the image is as it was");
    let nodes = site.cluster.text(&["nodes"]);
    assert!(nodes.contains("images are run by ") && nodes.contains(" on able"), "{nodes}");
    // A script travels into the container.
    let file = site.cluster.folder().join("job.sh");
    fs::write(&file, "#!/bin/sh\n#HOSTLER --image root\necho \"$1\"; cat /hello\n").unwrap();
    let job = site.cluster.submit(&["job.sh", "word"]);
    site.cluster.until(job, "finished");
    assert_eq!(site.output(job), "word\nhello from the image\n");
    assert_eq!(site.containers(), [""; 0]);
}

#[test]
fn many_jobs_of_one_user_run_images_at_once() {
    let Some(site) = site() else { return };
    let root = site.root.to_str().unwrap();
    let words = ["--image", root, "--array", "8", "--", "/bin/sh", "-c", "cat /hello; sleep 1"];
    let first = site.cluster.submit(&words);
    for job in first..first + 8 {
        site.cluster.until(job, "finished");
        let said = site.cluster.text(&["logs", &format!("{first}_{}", job - first), "--stdout"]);
        assert_eq!(said, "hello from the image\n");
    }
    until_clean(&site);
}

/// The same files as an archive of layers.
#[test]
fn an_archive_is_run_by_podman() {
    let Some(site) = site() else { return };
    if !found("podman") || !found("tar") || site.program != "podman" {
        eprintln!("skipped: an archive of an image is made by podman");
        return;
    }
    let archive = site.cluster.notes().join("image.tar");
    let script = format!(
        "set -e; tar --owner=0 --group=0 -C {root} -cf {folder}/root.tar .
         p() {{ podman --root {folder}/made/data --runroot {folder}/made/run \"$@\"; }}
         p import {folder}/root.tar localhost/made:1
         p save --quiet --format oci-archive -o {archive} localhost/made:1
         chmod 644 {archive}",
        root = site.root.display(),
        folder = site.cluster.folder().display(),
        archive = archive.display(),
    );
    let words = surroundings();
    let (program, rest) = words.split_first().unwrap();
    let made = Command::new(program).args(rest).args(["sh", "-c", &script]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let image = format!("oci-archive:{}", archive.display());
    let script = "cat /hello; echo written > /written; cat /written; exit 3";
    let job = site.cluster.submit(&["--image", &image, "--", "/bin/sh", "-c", script]);
    let view = site.cluster.until(job, "failed");
    let errors = site.errors(job);
    assert_eq!((&view["exit_code"], &view["nodes"][0]), (&3.into(), &"able".into()), "{errors}");
    assert_eq!(site.output(job), "hello from the image\nwritten\n", "{errors}");
    until_clean(&site);
}

#[test]
fn signals_reach_who_is_inside_once_and_nothing_is_left() {
    let Some(site) = site() else { return };
    let script = r#"
        trap 'echo asked; sleep 1; echo saved; exit 3' TERM
        echo ready
        while :; do sleep 0.1; done"#;
    let job = site.submit(&[], script);
    site.until_said(job, "ready");
    site.cluster.text(&["cancel", &job.to_string()]);
    site.cluster.until(job, "cancelled");
    assert_eq!(site.output(job), "ready\nasked\nsaved\n", "{}", site.errors(job));
    // One that does not listen is killed with all that it started, and so is what runs it.
    let script = "trap '' TERM; sleep 600 & echo ready; while :; do sleep 1; done";
    let job = site.submit(&["--grace", "1s"], script);
    site.until_said(job, "ready");
    site.cluster.text(&["cancel", &job.to_string()]);
    site.cluster.until(job, "cancelled");
    until_clean(&site);
}

#[test]
fn commands_run_inside_the_container_of_their_job() {
    let Some(site) = site() else { return };
    if !found("nsenter") {
        eprintln!("skipped: commands get into containers by nsenter");
        return;
    }
    let job = site.submit(&["--env", "WORD=mine", "--gpus", "1"], "echo ready; sleep 600");
    site.until_said(job, "ready");
    let script = "cat /hello; pwd; echo $WORD $CUDA_VISIBLE_DEVICES; test -e /proc/self/exe; \
                  test -e /usr/bin/env || echo nothing of the machine";
    let said = site.cluster.text(&["exec", &job.to_string(), "--", "/bin/sh", "-c", script]);
    let own = fs::read_dir(site.cluster.folder().join("able/jobs")).unwrap();
    let own = own.map(|entry| entry.unwrap().path()).next().unwrap().canonicalize().unwrap();
    let expected =
        format!("hello from the image\n{}\nmine 0\nnothing of the machine\n", own.display());
    assert_eq!(said, expected);
    let fault = site.cluster.run(&["exec", &job.to_string(), "--", "/bin/sh", "-c", "exit 9"]);
    assert!(fault.is_err(), "its exit code comes back");
    site.cluster.text(&["cancel", &job.to_string()]);
    site.cluster.until(job, "cancelled");
    until_clean(&site);
}

#[test]
fn a_shim_that_is_killed_leaves_no_container() {
    let Some(site) = site() else { return };
    let script = r#"
        test -e "$HOSTLER_CHECKPOINT_DIR/again" && echo again && exit 0
        touch "$HOSTLER_CHECKPOINT_DIR/again"
        echo ready
        while :; do sleep 0.1; done"#;
    let job = site.submit(&[], script);
    site.until_said(job, "ready");
    let shims = processes::shims(site.cluster.folder());
    assert_eq!(shims.len(), 1, "{:?}", processes::named(&shims));
    processes::kill(shims[0]);
    let view = site.cluster.until(job, "finished");
    assert_eq!((&view["restarts"], site.output(job).as_str()), (&1.into(), "again\n"), "{view}");
    until_clean(&site);
}

fn until_clean(site: &Site) {
    let mut left = Vec::new();
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        left = processes::named(&processes::left(site.cluster.folder()));
        left.extend(site.containers());
        if left.is_empty() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("something is left: {left:#?}");
}

#[test]
fn images_that_cannot_be_run_are_told_apart() {
    let mut cluster = Cluster::new(&["--plain"]);
    cluster.serve();
    cluster.enrol("bare", &["--fake-gpus", "4xV100", "--image-programs", "none"]);
    cluster.until_up();
    let job = cluster.submit(&["--image", "torch.sif", "--", "true"]);
    let view = wait_for("a reason", || {
        let view = cluster.job(job);
        (!view["reason"].as_str().unwrap_or_default().is_empty()).then_some(view)
    });
    let reason = "no node can run it: its image is a SIF file, which needs one of apptainer, \
                  singularity; it waits for other nodes to join";
    assert_eq!(view["reason"], reason, "{view}");
    let fault = cluster.run(&["submit", "--image", "docker://a b", "--", "true"]).unwrap_err();
    assert!(fault.contains("use docker://NAME, oci-archive:/FILE"), "{fault}");
    let fault = cluster.run(&["submit", "--mount", "/data", "--", "true"]).unwrap_err();
    assert!(fault.contains("they are for jobs with an image"), "{fault}");
    // A node that can from now on, by a program that stands for the real one: what it is and what
    // it runs stays.
    let programs = cluster.folder().join("programs");
    fs::create_dir(&programs).unwrap();
    let apptainer = programs.join("apptainer");
    fs::write(&apptainer, "#!/bin/sh\necho apptainer version 1.4.5\n").unwrap();
    fs::set_permissions(&apptainer, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("PATH={}:{}", programs.display(), std::env::var("PATH").unwrap());
    let other = cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    cluster.until(other, "running");
    cluster.kill_agent(0);
    let options = ["--fake-gpus", "4xV100", "--cpus", "64", "--mem-mib", "65536"];
    cluster.change_agent(0, &options, &["env", &path]);
    cluster.spawn_agent(0);
    let view = cluster.until(job, "failed");
    let reason = view["reason"].as_str().unwrap();
    assert!(reason.contains("torch.sif` cannot be read: No such file"), "{view}");
    let nodes = cluster.nodes();
    let images = &nodes[0]["images"][0];
    assert_eq!((nodes.len(), images), (1, &"apptainer 1.4.5".into()), "{nodes:?}");
    assert_eq!(cluster.job(other)["state"], "running");
}

#[test]
fn an_agent_shows_what_runs_images() {
    let shown = |programs: &str| {
        let mut command = Command::new(crate::harness::PROGRAM);
        command.args(["agent", "--show", "--image-programs", programs]);
        let shown = command.output().unwrap();
        (String::from_utf8(shown.stdout).unwrap(), String::from_utf8(shown.stderr).unwrap())
    };
    assert!(shown("none").0.contains("\"images\"") && !shown("none").0.contains("runtimes"));
    let fault = shown("docker").1;
    assert!(fault.contains("use apptainer, singularity, podman, enroot or none"), "{fault}");
}

#[test]
fn a_program_that_starts_no_container_is_told_and_gets_no_jobs() {
    let mut cluster = Cluster::new(&["--plain"]);
    let programs = cluster.folder().join("programs");
    fs::create_dir_all(&programs).unwrap();
    fs::set_permissions(&programs, fs::Permissions::from_mode(0o755)).unwrap();
    let program = programs.join("podman");
    let script = "#!/bin/sh\ntest \"$1\" = --version && echo podman version 9.9.9 && exit\n\
                  echo Error: cannot clone: Operation not permitted >&2; exit 125\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("PATH={}:/usr/bin:/bin", programs.display());
    cluster.serve();
    let options = ["--fake-gpus", "1xV100", "--image-programs", "podman"];
    cluster.enrol_at("able", &options, &["env", &path], None);
    cluster.until_up();
    let why = "podman 9.9.9: it cannot start a container (exit code 125): Error: cannot clone: \
               Operation not permitted";
    let nodes = wait_for("the trial", || {
        let nodes = cluster.text(&["nodes"]);
        nodes.contains(&format!("able does not run images by {why}")).then_some(nodes)
    });
    assert!(!nodes.contains("images are run by"), "{nodes}");
    let job = cluster.submit(&["--image", "/root", "--gpus", "1", "--", "true"]);
    let view = cluster.job(job);
    assert_eq!((&view["state"], &view["held_by"]), (&"held".into(), &"nodes".into()), "{view}");
    let doctor = Command::new(crate::harness::PROGRAM)
        .arg("doctor")
        .env("PATH", path.trim_start_matches("PATH="))
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(
        words.contains("warning  containers  nothing works; podman 9.9.9: it cannot"),
        "{words}"
    );
}

/// A program that stands for a real one, whose trial lasts until it is let go on.
#[test]
fn an_agent_works_while_programs_are_tried() {
    let mut cluster = Cluster::new(&["--plain"]);
    let programs = cluster.folder().join("programs");
    fs::create_dir_all(&programs).unwrap();
    fs::set_permissions(&programs, fs::Permissions::from_mode(0o755)).unwrap();
    let (program, go) = (programs.join("podman"), programs.join("go"));
    let script = format!(
        "#!/bin/sh\ntest \"$1\" = --version && echo podman version 9.9.9 && exit\n\
         until [ -e {} ]; do sleep 0.05; done\n",
        go.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("PATH={}:/usr/bin:/bin", programs.display());
    cluster.serve();
    let options = ["--fake-gpus", "2xV100", "--image-programs", "podman"];
    cluster.enrol_at("able", &options, &["env", &path], None);
    cluster.until_up();
    let plain = cluster.submit(&["--gpus", "1", "--", "true"]);
    cluster.until(plain, "finished");
    let image = ["--gpus", "1", "--image", "/no/image", "--", "true"];
    let early = cluster.submit(&image);
    let view = cluster.job(early);
    assert_eq!((&view["state"], &view["held_by"]), (&"held".into(), &"nodes".into()), "{view}");
    let images = |cluster: &Cluster| cluster.nodes()[0]["images"].clone();
    assert_eq!(images(&cluster), serde_json::json!([]));
    fs::write(&go, "").unwrap();
    // It gets as far as its image, which is not there.
    let view = cluster.until(early, "failed");
    assert!(view["reason"].as_str().unwrap().contains("`/no/image` cannot be read"), "{view}");
    assert_eq!(images(&cluster), serde_json::json!(["podman 9.9.9"]));
    // Tried again, it is what it was until the trial is over, and a job waits for that.
    fs::remove_file(&go).unwrap();
    cluster.kill_agent(0);
    cluster.spawn_agent(0);
    let plain = cluster.submit(&["--gpus", "1", "--", "true"]);
    cluster.until(plain, "finished");
    assert_eq!(images(&cluster), serde_json::json!(["podman 9.9.9"]));
    let late = cluster.submit(&image);
    cluster.until(late, "starting");
    fs::write(&go, "").unwrap();
    cluster.until(late, "failed");
}
