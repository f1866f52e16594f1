//! Scripts, their lines, and job files.

use crate::cluster::Cluster;

#[test]
fn a_script_for_slurm_runs_with_its_lines_and_variables() {
    let cluster = Cluster::start("4xV100");
    let script = "#!/bin/bash\n#SBATCH --job-name=sweep\n#SBATCH -t 1:00:00 --gres=gpu:V100:2\n\
                  #SBATCH --array=1-3:2 --cpus-per-task=1 -p gpu -o out.txt\n\
                  #SBATCH --ntasks=1\n\n\
                  echo $SLURM_JOB_NAME $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $SLURM_NTASKS \
                  $SLURM_PROCID $SLURM_CPUS_PER_TASK $SLURM_GPUS_ON_NODE $SLURM_JOB_ID \
                  $HOSTLER_JOB $SLURM_SUBMIT_DIR \"$@\"\n";
    let file = cluster.folder().join("job.sh");
    std::fs::write(&file, script).unwrap();
    let ran = cluster.run(&["submit", "job.sh", "one", "--", "--two", "three four"]);
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{told}");
    assert!(told.contains("`--partition=gpu` is left out: there are no partitions"), "{told}");
    // The text travelled with the job: nobody needs the file any more.
    std::fs::remove_file(file).unwrap();
    let array = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
    let last = format!("{array}_3");
    let view = cluster.until(&last, "finished");
    let here = cluster.folder().canonicalize().unwrap();
    let said = cluster.text(&["logs", &last]);
    let number: u32 = array.parse().unwrap();
    let id = number + 1;
    let expected =
        format!("sweep {array} 3 1 0 1 2 {id} {id} {} one --two three four\n", here.display());
    assert_eq!(said, expected);
    assert_eq!(
        (&view["request"]["gpus"], &view["request"]["max_secs"]),
        (&2.0.into(), &3600.into())
    );
    assert_eq!(view["request"]["gpu_models"][0], "V100");
    assert!(view["request"]["script"].as_str().unwrap().starts_with("#!/bin/bash"));
}

#[test]
fn the_command_line_beats_lines_and_the_first_line_names_the_reader() {
    let cluster = Cluster::start("2xV100");
    let script =
        "#!/bin/cat\n#HOSTLER --gpus 2 --name from-the-script --max-time 1h\nnot a shell\n";
    std::fs::write(cluster.folder().join("job.sh"), script).unwrap();
    let job = cluster.submit(&["--gpus", "1", "job.sh", "--wait"]);
    let view = cluster.job(&job);
    assert_eq!((&view["request"]["gpus"], &view["name"]), (&1.0.into(), &"from-the-script".into()));
    assert_eq!(cluster.text(&["logs", &job]), script);
    std::fs::write(cluster.folder().join("ends.sh"), "#!/bin/sh\n#HOSTLER --wait\nexit $1\n")
        .unwrap();
    let ran = cluster.run(&["submit", "ends.sh", "7"]);
    assert_eq!(ran.status.code(), Some(7), "{}", String::from_utf8_lossy(&ran.stderr));
    let ran = cluster.run(&["submit", "--wait", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(ran.status.code(), Some(137));
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(told.contains("failed, killed by SIGKILL"), "{told}");
    std::fs::write(cluster.folder().join("bad.sh"), "#!/bin/sh\n#SBATCH --exclusive\n").unwrap();
    let ran = cluster.run(&["submit", "bad.sh"]);
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(told.contains("`bad.sh`: line 2: `--exclusive`: say how many GPUs"), "{told}");
}

#[test]
fn a_job_is_printed_as_a_file_that_submits_the_same() {
    let cluster = Cluster::start("2xV100");
    let words = ["--gpus", "1", "--max-time", "90m", "--share", "willing", "--env", "A=b c"];
    let command = ["--array", "2", "--", "sh", "-c", "echo $A $HOSTLER_ARRAY_INDEX"];
    let printed = cluster.text(&[&["submit", "--print"][..], &words, &command].concat());
    assert!(printed.contains("max_time = \"90m\""), "{printed}");
    std::fs::write(cluster.folder().join("job.toml"), &printed).unwrap();
    assert_eq!(cluster.text(&["submit", "--print", "job.toml"]), printed);
    let job = cluster.submit(&["job.toml", "--wait"]);
    assert_eq!(cluster.text(&["logs", &format!("{job}_1")]), "b c 1\n");
    let line = "command: echo a line for the shell > note; cat note\nmax_time: 1h\n";
    std::fs::write(cluster.folder().join("job.yaml"), line).unwrap();
    let job = cluster.submit(&["job.yaml", "--wait"]);
    assert_eq!(cluster.text(&["logs", &job]), "a line for the shell\n");
    let json = "{\"command\": [\"true\"], \"gpu_model\": \"V100\", \"gpus\": 1}";
    std::fs::write(cluster.folder().join("job.json"), json).unwrap();
    let job = cluster.submit(&["job.json", "--wait"]);
    assert_eq!(cluster.job(&job)["request"]["gpu_models"][0], "V100");
}
