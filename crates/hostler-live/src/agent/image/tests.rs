//! Command lines as the programs' documentation has them; Podman's is also tried with real
//! containers in the tests of the binary.

use expect_test::{Expect, expect};

use super::*;
use crate::agent::shim::tests::shim_order;

fn check(program: Program, image: &str, gpus: &[u32], expected: Expect) {
    let mut shim = shim_order(&["python", "train.py", "--lr", "a b"]);
    shim.order.env = [("PATH", "/opt/bin"), ("SECRET", "hunter2")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let mut container = Container {
        program,
        path: format!("/usr/bin/{}", program.name()).into(),
        image: image.to_owned(),
        mounts: vec![Mount::parse("/sets:/data:ro").unwrap()],
        args: vec!["--operator".to_owned()],
        folder: "/data/images/65534".into(),
        env: [("HTTP_PROXY".to_owned(), "http://proxy".to_owned())].into(),
        has_devices: true,
    };
    container.show(&shim.workdir);
    shim.container = Some(container);
    let gpus = gpus.iter().map(|gpu| (*gpu, 1000)).collect();
    let task = TaskOrder { rank: 3, local_rank: 0, gpus, gpu_mem_mib: 0 };
    let Launch { command, env } = launch(&shim, &task);
    assert!(!command.iter().any(|word| word.contains("hunter2")), "{command:?}");
    let shown = |name: &str| {
        name.contains("CUDA_V") || ["PATH", "SECRET"].iter().any(|own| name.ends_with(own))
    };
    let env = env.into_iter().filter(|(name, _)| shown(name));
    let env: String = env.map(|(name, value)| format!("{name}={value}\n")).collect();
    let told = |word: &&String| !word.starts_with("--env=HOSTLER_") && !is_usual(word);
    let words: Vec<&str> = command.iter().filter(told).map(String::as_str).collect();
    expected.assert_eq(&format!("{}\n{env}", words.join("\n")));
}

/// Variables of every task, which make the picture longer and nothing clearer.
fn is_usual(word: &str) -> bool {
    let names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR"];
    let more = ["MASTER_PORT", "CUDA_DEVICE_ORDER", "LANG"];
    names.iter().chain(&more).any(|name| word == format!("--env={name}"))
}

#[test]
fn podman_runs_a_folder_with_the_gpus_of_the_task_alone() {
    check(Program::Podman, "/images/root", &[2, 5], expect![[""]]);
}

#[test]
fn podman_fetches_and_takes_archives() {
    check(Program::Podman, "docker://nvcr.io/nvidia/pytorch:24.01-py3", &[], expect![[""]]);
    let image = |image: &str| {
        let mut shim = shim_order(&["true"]);
        let found = [Found { program: Program::Podman, path: "podman".into(), version: "4".into() }];
        shim.order.image = image.to_owned();
        let container = Container::of(&shim.order, &found, &[], "/images".into()).unwrap();
        shim.container = Some(container);
        let task = shim.order.tasks[0].clone();
        launch(&shim, &task).command.pop().unwrap()
    };
    assert_eq!(image("/images/a.tar"), "docker-archive:/images/a.tar");
    assert_eq!(image("oci-archive:/images/a.tar"), "oci-archive:/images/a.tar");
}

#[test]
fn apptainer_gets_variables_by_their_prefix() {
    check(Program::Apptainer, "/images/torch.sif", &[1], expect![[""]]);
}

#[test]
fn enroot_makes_a_file_of_what_it_fetches() {
    check(Program::Enroot, "docker://nvcr.io/nvidia/pytorch:24.01-py3", &[0], expect![[""]]);
}

#[test]
fn an_image_that_nothing_here_runs_is_refused_in_words() {
    let mut shim = shim_order(&["true"]);
    shim.order.image = "/images/a.sif".to_owned();
    let found = [Found { program: Program::Podman, path: "podman".into(), version: "4".into() }];
    let fault = Container::of(&shim.order, &found, &[], "/images".into()).unwrap_err();
    assert_eq!(fault.to_string(), "nothing here runs its image `/images/a.sif`");
}
