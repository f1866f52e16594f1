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
    let (name, home) = ("nobody".to_owned(), "/".to_owned());
    shim.user = Some(JobUser { uid: 65534, gid: 65534, name, home, ..JobUser::default() });
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
    // What differs from machine to machine is left out, too.
    let of_machine = ["--env=HOSTLER_", "--ulimit=", "--ipc=", "--volume=/dev/shm"];
    let told = |word: &&str| {
        !of_machine.iter().any(|beginning| word.starts_with(beginning)) && !is_usual(word)
    };
    // Some programs take a flag and its value as two words.
    let words = command.join("\n").replace("--env\n", "--env=");
    let words: Vec<&str> = words.split('\n').filter(told).collect();
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
    check(
        Program::Podman,
        "/images/root",
        &[2, 5],
        expect![[r#"
            /usr/bin/podman
            --root=/data/images/65534/data
            --runroot=/data/images/65534/run
            --cgroup-manager=cgroupfs
            --events-backend=none
            --log-level=error
            run
            --rm
            --replace
            --name
            hostler-7-3
            --cgroups=disabled
            --network=host
            --security-opt=no-new-privileges
            --security-opt=label=disable
            --log-driver=none
            --workdir
            /data/jobs/3
            --volume=/sets:/data:ro
            --volume=/data/jobs/3:/data/jobs/3
            --device=nvidia.com/gpu=2
            --device=nvidia.com/gpu=5
            --env=CUDA_VISIBLE_DEVICES
            --env=PATH=/opt/bin
            --env=SECRET
            --operator
            --entrypoint=["python"]
            --read-only
            --rootfs
            /images/root
            train.py
            --lr
            a b
            CUDA_VISIBLE_DEVICES=0,1
            PATH=/usr/bin:/bin
            SECRET=hunter2
        "#]],
    );
}

#[test]
fn podman_fetches_and_takes_archives() {
    check(
        Program::Podman,
        "docker://nvcr.io/nvidia/pytorch:24.01-py3",
        &[],
        expect![[r#"
            /usr/bin/podman
            --root=/data/images/65534/data
            --runroot=/data/images/65534/run
            --cgroup-manager=cgroupfs
            --events-backend=none
            --log-level=error
            run
            --rm
            --replace
            --name
            hostler-7-3
            --cgroups=disabled
            --network=host
            --security-opt=no-new-privileges
            --security-opt=label=disable
            --log-driver=none
            --workdir
            /data/jobs/3
            --volume=/sets:/data:ro
            --volume=/data/jobs/3:/data/jobs/3
            --env=CUDA_VISIBLE_DEVICES
            --env=PATH=/opt/bin
            --env=SECRET
            --operator
            --entrypoint=["python"]
            docker://nvcr.io/nvidia/pytorch:24.01-py3
            train.py
            --lr
            a b
            CUDA_VISIBLE_DEVICES=
            PATH=/usr/bin:/bin
            SECRET=hunter2
        "#]],
    );
    let image = |image: &str| {
        let mut shim = shim_order(&["true"]);
        let found =
            [Found { program: Program::Podman, path: "podman".into(), version: "4".into() }];
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
    check(
        Program::Apptainer,
        "/images/torch.sif",
        &[1],
        expect![[r#"
        /usr/bin/apptainer
        --quiet
        exec
        --cleanenv
        --no-home
        --no-privs
        --pwd
        /data/jobs/3
        --bind=/sets:/data:ro
        --bind=/data/jobs/3:/data/jobs/3
        --nv
        --operator
        /images/torch.sif
        python
        train.py
        --lr
        a b
        APPTAINERENV_CUDA_VISIBLE_DEVICES=1
        APPTAINERENV_PATH=/opt/bin
        APPTAINERENV_SECRET=hunter2
        PATH=/usr/bin:/bin
    "#]],
    );
}

#[test]
fn enroot_makes_a_file_of_what_it_fetches() {
    check(
        Program::Enroot,
        "docker://nvcr.io/nvidia/pytorch:24.01-py3",
        &[0],
        expect![[r#"
            /bin/sh
            -c

            echo 'cd "$1" && shift && exec "$@"' > "$2.$$" && mv "$2.$$" "$2" || exit 125
            if [ -n "$4" ] && ! [ -e "$3" ]; then
                "$1" import --output "$3.$$" -- "$4" >&2 && mv "$3.$$" "$3" || exit 125
            fi
            shift 4
            exec "$@"
            hostler
            /usr/bin/enroot
            /data/images/65534/data/rc
            /data/images/65534/data/640976d8027638db4441ad63d1f3ff70.sqsh
            docker://nvcr.io#nvidia/pytorch:24.01-py3
            /usr/bin/enroot
            start
            --rc
            /data/images/65534/data/rc
            --mount
            /sets:/data:x-create=auto,rbind,ro
            --mount
            /data/jobs/3:/data/jobs/3:x-create=auto,rbind
            --env=CUDA_VISIBLE_DEVICES
            --env=NVIDIA_VISIBLE_DEVICES
            --env=PATH=/opt/bin
            --env=SECRET
            --operator
            --
            /data/images/65534/data/640976d8027638db4441ad63d1f3ff70.sqsh
            /data/jobs/3
            python
            train.py
            --lr
            a b
            CUDA_VISIBLE_DEVICES=0
            ENROOT_CACHE_PATH=/data/images/65534/cache
            ENROOT_DATA_PATH=/data/images/65534/data
            ENROOT_RUNTIME_PATH=/data/images/65534/run
            ENROOT_TEMP_PATH=/data/images/65534/tmp
            PATH=/usr/bin:/bin
            SECRET=hunter2
        "#]],
    );
}

#[test]
fn an_image_that_nothing_here_runs_is_refused_in_words() {
    let mut shim = shim_order(&["true"]);
    shim.order.image = "/images/a.sif".to_owned();
    let found = [Found { program: Program::Podman, path: "podman".into(), version: "4".into() }];
    let fault = Container::of(&shim.order, &found, &[], "/images".into()).unwrap_err();
    assert_eq!(fault.to_string(), "nothing here runs its image `/images/a.sif`");
}
