//! Options of Slurm and what becomes of them.

use expect_test::{Expect, expect};

use super::*;
use crate::submission::words;

fn flags(text: &str) -> Result<Flags> {
    let lines: Vec<(usize, Vec<String>)> =
        text.lines().map(|line| words::split(line).unwrap()).enumerate().collect();
    flags_of(&lines)
}

fn check(text: &str, expected: Expect) {
    let told = match flags(text) {
        Ok(flags) => {
            let notes = flags.notes.iter().map(|note| format!("note: {note}\n"));
            format!("{}\n{}", flags.words.join(" "), notes.collect::<String>())
        }
        Err(fault) => format!("error: {fault:#}\n"),
    };
    expected.assert_eq(&told);
}

#[test]
fn containers_are_named_as_pyxis_does() {
    let flags = |line: &str| flags(line).map(|flags| flags.words);
    let line = "--container-image=nvcr.io#nvidia/pytorch:24.01-py3 \
                --container-mounts=/sets:/data:ro,/scratch:/scratch";
    let words = flags(line).unwrap();
    let image = "--image=docker://nvcr.io/nvidia/pytorch:24.01-py3";
    assert!(words.contains(&image.to_owned()), "{words:?}");
    assert!(words.contains(&"--mount=/sets:/data:ro".to_owned()), "{words:?}");
    assert!(words.contains(&"--mount=/scratch:/scratch".to_owned()), "{words:?}");
    let local = flags("--container-image=/images/a.sqsh").unwrap();
    assert!(local.contains(&"--image=/images/a.sqsh".to_owned()), "{local:?}");
    assert!(flags("--container-image=me@nvcr.io#a").is_err());
}

#[test]
fn a_usual_script_is_understood() {
    check(
        "--job-name=train --time=1-12:30:00\n-N 2 --ntasks-per-node=1 --gres=gpu:a100:4\n\
         --cpus-per-task=16 --mem=64G\n-o out-%j.txt -p gpu",
        expect![[r#"
            --name=train --max-time=131400s --nodes=2 --gpus=4 --gpu-model=a100 --cpus=16 --mem=65536
            note: `--output=out-%j.txt` is left out: output is kept by the daemon; see `hostler logs`
            note: `--partition=gpu` is left out: there are no partitions; all nodes take all jobs
        "#]],
    );
}

#[test]
fn tasks_gpus_and_memory_are_counted_together() {
    for (text, expected) in [
        ("-n 4 -G 8", expect!["--tasks=4 --gpus=2\n"]),
        (
            "-N1 -n4 --gpus-per-node=4 --mem=8G",
            expect!["--tasks=4 --one-node --gpus=1 --mem=2048\n"],
        ),
        ("--gpus-per-task=2 --ntasks=3", expect!["--tasks=3 --gpus=2\n"]),
        ("--gres=gpu -c 4 --mem-per-cpu=2G", expect!["--tasks=1 --gpus=1 --cpus=4 --mem=8192\n"]),
        ("--gpus=2 --mem-per-gpu=10G", expect!["--tasks=1 --gpus=2 --mem=20480\n"]),
        (
            "-n 3 -G 4",
            expect!["error: 4 GPUs cannot be given to 3 tasks evenly; use `#HOSTLER --gpus`\n"],
        ),
        (
            "-N 2 --ntasks-per-node=4 --gres=gpu:4",
            expect![[r#"
                --tasks=8 --gpus=1
                note: 8 tasks go where there is room, not 4 to each node
            "#]],
        ),
    ] {
        check(text, expected);
    }
}

#[test]
fn times_arrays_dependencies_and_variables() {
    let seconds = |value: &str| time(value).ok();
    assert_eq!(seconds("90"), Some(5400));
    assert_eq!(seconds("1:30"), Some(90));
    assert_eq!(seconds("1:30:05"), Some(5405));
    assert_eq!(seconds("2-12"), Some(216_000));
    assert_eq!(seconds("1-0:30"), Some(88_200));
    assert_eq!(seconds("1-1:1:1"), Some(90_061));
    for wrong in ["", "0", "x", "1:2:3:4", "-1", "1-", "99999999999999999999"] {
        assert_eq!(seconds(wrong), None, "{wrong}");
    }
    check("-a 1-10:2%3", expect!["--array=1-10:2%3 --tasks=1\n"]);
    check("--array=5", expect!["--array=5-5 --tasks=1\n"]);
    check(
        "--array=1,3",
        expect!["error: line 0: `--array=1,3`: write one range, as in 0-9, 1-9:2 or 0-9%4\n"],
    );
    check(
        "-d afterok:17:18,afterany:19_3",
        expect!["--after=finished:17 --after=finished:18 --after=over:19_3 --tasks=1\n"],
    );
    check(
        "--export=NONE,A=b,HOSTLER_NO_SUCH",
        expect!["--export=NONE,A=b,HOSTLER_NO_SUCH --tasks=1\n"],
    );
    check("--export=ALL --export=A", expect!["--export=A --tasks=1\n"]);
    check("-D private", expect!["--workdir=./private --tasks=1\n"]);
    check(
        "-D /data --requeue --parsable",
        expect![[r#"
        --workdir=/data --tasks=1
        note: `--requeue` is left out: a job whose node fails is always started again
    "#]],
    );
    assert!(flags("--wait").unwrap().wait);
}

#[test]
fn mail_needs_whom_and_of_what() {
    check(
        "--mail-type=BEGIN,FAIL --mail-user=ada@lab.example",
        expect!["--notify=start,fail --mail-to=ada@lab.example --tasks=1\n"],
    );
    check(
        "--mail-type=NONE",
        expect![[r#"
            --notify=none --tasks=1
        "#]],
    );
    check(
        "--mail-type=all,TIME_LIMIT_80",
        expect![[r#"
        --notify=all --tasks=1
        note: `--mail-type=TIME_LIMIT_80` is left out: BEGIN, END and FAIL are told, of each job of an array
        note: `--mail-type` without `--mail-user`: only the operator's webhooks hear
    "#]],
    );
    check(
        "--mail-user=ada",
        expect![[r#"
        --tasks=1
        note: `--mail-user` is left out: no `--mail-type` says of what to tell
    "#]],
    );
    check(
        "--mail-type=MOON",
        expect![[r#"
        error: line 0: `--mail-type=MOON` is not known; use NONE, BEGIN, END, FAIL or ALL
    "#]],
    );
}

#[test]
fn what_would_run_otherwise_is_refused() {
    check(
        "--constraint=a100",
        expect!["error: line 0: `--constraint=a100`: `#HOSTLER --gpu-model MODEL` names GPUs\n"],
    );
    check(
        "--exclusive",
        expect!["error: line 0: `--exclusive`: say how many GPUs and cores it needs instead\n"],
    );
    check(
        "--licenses=x",
        expect!["error: line 0: `--licenses` is no option that is understood; see docs/slurm.md\n"],
    );
    check("-Z", expect!["error: line 0: `-Z` is no option that is understood\n"]);
    check("-n 0", expect!["error: line 0: `--ntasks=0`: use a whole number from 1 on\n"]);
    check("--mem=4X", expect!["error: line 0: `--mem=4X` is no memory; write 4G or 4096M\n"]);
    check("-J", expect!["error: line 0: `--job-name` needs a value\n"]);
    check(
        "-d singleton",
        expect![
            "error: line 0: `--dependency=singleton` is not known; use afterok, afterany, afternotok or after\n"
        ],
    );
}
