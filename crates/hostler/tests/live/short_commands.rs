//! Commands inside a job that are over before their input is: the end must not be lost.

use std::fs::File;

use crate::cluster::Cluster;

#[test]
fn the_end_of_a_command_that_does_not_read_its_input_is_not_lost() {
    let cluster = Cluster::start("2xV100");
    let job = cluster.submit(&["--gpus", "1", "--", "sleep", "600"]);
    cluster.until(&job, "running");
    let try_often = || {
        for _ in 0..20 {
            // The end of the input comes when nobody listens any more.
            let ran = cluster.run(&["exec", &job, "--", "sh", "-c", "echo over; exit 7"]);
            let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert_eq!((ran.status.code(), &ran.stdout[..]), (Some(7), &b"over\n"[..]), "{errors}");
        }
    };
    // Nor when there is much more of it.
    let zero = File::open("/dev/zero").unwrap();
    let mut command = cluster.command();
    let ran =
        command.args(["exec", &job, "--", "sh", "-c", "exit 7"]).stdin(zero).output().unwrap();
    assert_eq!(ran.status.code(), Some(7), "{}", String::from_utf8_lossy(&ran.stderr));
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(try_often);
        }
    });
}
