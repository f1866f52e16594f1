//! A private PostgreSQL server in a folder of its own.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A PostgreSQL server that listens on a Unix socket in its folder.
pub struct Server {
    folder: TempDir,
    programs: PathBuf,
}

impl Server {
    /// Starts one; none where PostgreSQL is not installed.
    pub fn start() -> Option<Server> {
        let Some(programs) = programs() else {
            eprintln!("skipped on PostgreSQL: it is not installed");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let server = Server { folder, programs };
        let data = server.data();
        server.call(
            "initdb",
            &["-D", &data, "-U", "hostler", "-A", "trust", "-N", "--no-locale", "-E", "UTF8"],
        );
        server.start_again();
        Some(server)
    }

    /// Starts it after a stop.
    pub fn start_again(&self) {
        let (data, folder) = (self.data(), self.folder.path().display());
        let options = format!("-c listen_addresses='' -c unix_socket_directories='{folder}'");
        let log = format!("{folder}/log");
        self.call("pg_ctl", &["-D", &data, "-w", "-s", "-l", &log, "-o", &options, "start"]);
    }

    pub fn address(&self) -> String {
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://hostler:password@{folder}/postgres")
    }

    /// Runs a statement in the database.
    pub fn run(&self, statement: &str) {
        let mut client = postgres::Client::connect(&self.address(), postgres::NoTls).unwrap();
        client.batch_execute(statement).unwrap();
    }

    /// Stops it at once, as if it had crashed.
    pub fn stop(&self) {
        self.call("pg_ctl", &["-D", &self.data(), "-w", "-s", "-m", "immediate", "stop"]);
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    /// Runs a program of PostgreSQL, which refuses to run as root.
    fn call(&self, program: &str, arguments: &[&str]) {
        assert!(self.try_call(program, arguments), "`{program}` fails with {arguments:?}");
    }

    fn try_call(&self, program: &str, arguments: &[&str]) -> bool {
        let program = self.programs.join(program);
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        let command = command.args(arguments).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).status().unwrap().success()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been stopped before.
        let data = self.data();
        self.try_call("pg_ctl", &["-D", &data, "-s", "-m", "immediate", "stop"]);
    }
}

/// Where the newest PostgreSQL has its programs.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let programs = versions.filter_map(|entry| Some(entry.ok()?.path().join("bin")));
    programs.filter(|path| path.join("initdb").exists()).max()
}
