//! A Slurm of our own: controller, nodes and accounts as processes of this test, in one folder and
//! on loopback.
//!
//! Several `slurmd` run on one machine, each under the name of a node and on a port of its own.
//! Processes end with their owner, by their ids. The folder is kept where a test fails.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::harness::{Cluster, Guarded, processes, wait_for};

/// Nodes with the same GPUs.
pub struct Kind {
    pub prefix: &'static str,
    pub count: u32,
    pub model: &'static str,
    pub gpus: u32,
}

/// Eight nodes, as small as a cluster can be that is not all alike.
pub const SMALL: &[Kind] = &[
    Kind { prefix: "v", count: 1, model: "v100", gpus: 8 },
    Kind { prefix: "m", count: 2, model: "misc", gpus: 8 },
    Kind { prefix: "p", count: 2, model: "p100", gpus: 2 },
    Kind { prefix: "t", count: 2, model: "t4", gpus: 2 },
    Kind { prefix: "c", count: 1, model: "", gpus: 0 },
];

/// What differs from one cluster to the next.
#[derive(Default)]
pub struct Wants {
    /// More lines of the configuration.
    pub lines: Vec<String>,
    /// Files beside the configuration.
    pub files: Vec<(&'static str, String)>,
    /// Whether there are accounts.
    pub accounts: bool,
    /// Whether Slurm decides by itself: nobody waits for Hostler.
    pub alone: bool,
}

/// Runs what follows as a user without rights.
const NOBODY: [&str; 4] = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"];

/// A cluster that Slurm runs.
pub struct Lab {
    folder: TempDir,
    names: Vec<String>,
    controller: Option<Guarded>,
    nodes: Vec<(String, Option<Guarded>)>,
    /// What goes after the others.
    servers: Vec<Guarded>,
}

/// Whether a Slurm can be had here; says why not.
pub fn is_possible() -> bool {
    let missing = ["slurmctld", "slurmd", "munged", "sbatch", "slurmdbd", "mariadbd"]
        .into_iter()
        .find(|program| on_path(program).is_none());
    let why = match missing {
        _ if !rustix::process::geteuid().is_root() => "needs root".to_owned(),
        Some(program) => format!("needs `{program}`"),
        None => return true,
    };
    // What a test that passes prints is shown to nobody, unless it goes there directly.
    let _ = writeln!(std::io::stderr(), "skipped: a cluster of Slurm's {why}");
    false
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').chain(["/usr/sbin", "/sbin"]);
    folders.map(|folder| Path::new(folder).join(program)).find(|file| file.is_file())
}

impl Lab {
    /// A small cluster in which jobs wait for Hostler.
    pub fn small() -> Lab {
        Lab::start(SMALL, &Wants::default())
    }

    pub fn start(kinds: &[Kind], wants: &Wants) -> Lab {
        let mut folder = tempfile::Builder::new().prefix("slurm-").tempdir().unwrap();
        folder.disable_cleanup(std::env::var_os("HOSTLER_TEST_KEEP").is_some());
        let names = kinds
            .iter()
            .flat_map(|kind| (1..=kind.count).map(|number| format!("{}{number}", kind.prefix)));
        let names: Vec<String> = names.collect();
        let mut lab =
            Lab { folder, names, controller: None, nodes: Vec::new(), servers: Vec::new() };
        for name in ["etc", "log", "state", "spool", "run", "gpus", "notes"] {
            fs::create_dir(lab.path(name)).unwrap();
        }
        for name in ["", "notes", "run", "log"] {
            fs::set_permissions(lab.path(name), fs::Permissions::from_mode(0o777)).unwrap();
        }
        let ports = Ports::free(lab.names.len() + 3);
        lab.write_configuration(kinds, wants, &ports);
        lab.start_munge();
        if wants.accounts {
            lab.start_accounts(&ports);
        }
        lab.start_controller();
        for name in lab.names.clone() {
            fs::create_dir(lab.path("spool").join(&name)).unwrap();
            let node = lab.spawn("slurmd", &["-D", "-N", &name], &format!("slurmd.{name}"));
            lab.nodes.push((name, Some(node)));
        }
        let all = lab.names.len();
        wait_for("all nodes of Slurm", || (lab.nodes_up() == all).then_some(()));
        lab
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn conf(&self) -> PathBuf {
        self.path("etc").join("slurm.conf")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(on_path(program).unwrap_or_else(|| program.into()));
        command.env("SLURM_CONF", self.conf()).env("SLURM_TIME_FORMAT", "%s");
        command.env("LC_ALL", "C").current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    fn spawn(&self, program: &str, arguments: &[&str], log: &str) -> Guarded {
        let path = self.path("log").join(format!("{log}.out"));
        let out = fs::File::options().create(true).append(true).open(path).unwrap();
        let mut command = self.command(program);
        command.args(arguments).stdout(out.try_clone().unwrap()).stderr(out);
        Guarded::spawn(&mut command)
    }

    /// Runs a command of Slurm's; what it prints, or its complaint.
    pub fn run(&self, words: &[&str]) -> Result<String, String> {
        let output = self.command(words[0]).args(&words[1..]).output().unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// The same as a user without rights.
    pub fn as_nobody(&self, words: &[&str]) -> Result<String, String> {
        self.run(&[&NOBODY[..], words].concat())
    }

    /// A folder with commands of Slurm's that are run as a user without rights.
    pub fn commands_as_nobody(&self) -> PathBuf {
        let bin = self.path("bin");
        fs::create_dir(&bin).unwrap();
        for name in ["squeue", "sinfo", "scontrol", "scancel", "sacct"] {
            let program = on_path(name).unwrap();
            let line = format!("exec {} {} \"$@\"", NOBODY.join(" "), program.display());
            fs::write(bin.join(name), format!("#!/bin/sh\n{line}\n")).unwrap();
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        bin
    }

    pub fn text(&self, words: &[&str]) -> String {
        self.run(words).unwrap_or_else(|fault| panic!("{words:?}: {fault}"))
    }

    /// Submits a script to where jobs wait for Hostler; gives its number.
    pub fn submit(&self, options: &str, script: &str) -> String {
        self.submit_to("ext", options, script)
    }

    pub fn submit_to(&self, partition: &str, options: &str, script: &str) -> String {
        self.try_submit_to(partition, options, script).unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// The same where Slurm may not take it.
    pub fn try_submit(&self, options: &str, script: &str) -> Result<String, String> {
        self.try_submit_to("ext", options, script)
    }

    fn try_submit_to(&self, to: &str, options: &str, script: &str) -> Result<String, String> {
        let wrap = format!("--wrap={script}");
        let mut words = vec!["sbatch", "--parsable", "-o", "/dev/null", "-p", to];
        words.extend(options.split_whitespace());
        words.push(&wrap);
        self.run(&words).map(|id| id.trim().to_owned())
    }

    fn nodes_up(&self) -> usize {
        let list = self.run(&["sinfo", "-h", "-N", "-p", "normal", "-o", "%N %T"]);
        let list = list.unwrap_or_default();
        list.lines().filter(|line| line.ends_with(" idle")).count()
    }

    /// Some fields of a job, as `squeue -o` gives them.
    pub fn job(&self, name: &str, format: &str) -> String {
        let format = format!("%i|{format}");
        let list = self.run(&["squeue", "-h", "-r", "-a", "-t", "all", "-o", &format]);
        let list = list.unwrap_or_default();
        let mut lines = list.lines().filter_map(|line| line.split_once('|'));
        lines.find(|(id, _)| *id == name).map_or_else(String::new, |(_, rest)| rest.to_owned())
    }

    /// Waits until a job is in a state.
    pub fn until(&self, name: &str, state: &str) {
        wait_for(&format!("job {name} to be {state}"), || {
            (self.job(name, "%T") == state).then_some(())
        });
    }

    /// Tells the controller to end. One that is killed forgets what it was told a moment ago.
    pub fn stop_controller(&mut self) {
        let mut controller = self.controller.take().unwrap();
        processes::terminate(controller.pid());
        controller.exit_code();
    }

    pub fn start_controller(&mut self) {
        self.controller = Some(self.spawn("slurmctld", &["-D", "-i"], "slurmctld"));
        wait_for("the controller", || {
            self.run(&["scontrol", "ping"]).ok().filter(|said| said.contains("is UP"))
        });
    }

    pub fn kill_node(&mut self, name: &str) {
        self.nodes.iter_mut().find(|(known, _)| known == name).unwrap().1 = None;
    }

    pub fn start_node(&mut self, name: &str) {
        let node = self.spawn("slurmd", &["-D", "-N", name], &format!("slurmd.{name}"));
        self.nodes.iter_mut().find(|(known, _)| known == name).unwrap().1 = Some(node);
    }

    /// A Hostler that drives it, with these options and more lines of settings.
    pub fn hostler(&self, policy: &str, lines: &str) -> Cluster {
        self.hostler_by(&self.conf(), policy, lines)
    }

    /// The same with another configuration of Slurm's commands.
    pub fn hostler_by(&self, conf: &Path, policy: &str, lines: &str) -> Cluster {
        let file = self.path("etc").join("hostler.toml");
        let text = format!(
            "waiting_room = 'ext'\npartition = 'normal'\nconf = '{}'\nfull_secs = 2\n{lines}\n",
            conf.display()
        );
        fs::write(&file, text).unwrap();
        let file = file.display().to_string();
        let mut cluster =
            Cluster::new(&["--plain", "--engine", "slurm", "--slurm", &file, "--policy", policy]);
        cluster.serve();
        let nodes = self.names.len();
        wait_for("all nodes", || (cluster.nodes().len() == nodes).then_some(()));
        cluster
    }

    fn start_munge(&mut self) {
        let key = self.path("etc").join("munge.key");
        let random: Vec<u8> = fs::read("/proc/sys/kernel/random/uuid").unwrap().repeat(4);
        fs::write(&key, random).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o400)).unwrap();
        let of = |option: &str, name: &str| format!("--{option}={}", self.path(name).display());
        let arguments = [
            "--foreground".to_owned(),
            "--force".to_owned(),
            of("key-file", "etc/munge.key"),
            of("socket", "run/munge.sock"),
            of("pid-file", "run/munged.pid"),
            of("log-file", "log/munged.log"),
            of("seed-file", "etc/munge.seed"),
        ];
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let munge = self.spawn("munged", &arguments, "munged");
        self.servers.push(munge);
        let socket = self.path("run/munge.sock");
        wait_for("munge", || socket.exists().then_some(()));
    }

    fn start_accounts(&mut self, ports: &Ports) {
        let data = format!("--datadir={}", self.path("db").display());
        let made = ["--user=mysql", &data, "--auth-root-authentication-method=normal"];
        fs::create_dir(self.path("db")).unwrap();
        let mut chown = Command::new("chown");
        assert!(chown.args(["mysql"]).arg(self.path("db")).status().unwrap().success());
        let log = fs::File::create(self.path("log/install.out")).unwrap();
        let mut install = self.command("mariadb-install-db");
        install.args(made).arg("--skip-test-db").stdout(log.try_clone().unwrap()).stderr(log);
        assert!(install.status().unwrap().success(), "no database");
        let (port, socket) = (ports.0[1].to_string(), self.path("run/mysql.sock"));
        let socket = socket.display().to_string();
        let arguments = [
            "--no-defaults",
            "--user=mysql",
            &data,
            "--bind-address=127.0.0.1",
            &format!("--port={port}"),
            &format!("--socket={socket}"),
            "--innodb-flush-log-at-trx-commit=0",
        ];
        let database = self.spawn("mariadbd", &arguments, "mariadb");
        self.servers.insert(0, database);
        let grant = "create user slurm@'127.0.0.1' identified by 'lab'; \
                     create user slurm@localhost identified by 'lab'; \
                     grant all on slurm_acct.* to slurm@'127.0.0.1'; \
                     grant all on slurm_acct.* to slurm@localhost;";
        let client = ["mariadb", "--no-defaults", "-S", &socket, "-uroot", "-e", grant];
        wait_for("the database", || self.run(&client).ok());
        let text = format!(
            "AuthType=auth/munge\nAuthInfo=socket={run}/munge.sock\nDbdHost=localhost\n\
             DbdAddr=127.0.0.1\nDbdPort={}\nSlurmUser=root\nPidFile={run}/slurmdbd.pid\n\
             LogFile={run}/slurmdbd.log\nStorageType=accounting_storage/mysql\n\
             StorageHost=127.0.0.1\nStoragePort={port}\nStorageUser=slurm\nStoragePass=lab\n\
             StorageLoc=slurm_acct\n",
            ports.0[2],
            run = self.path("run").display()
        );
        let file = self.path("etc/slurmdbd.conf");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let accounts = self.spawn("slurmdbd", &["-D"], "slurmdbd");
        self.servers.insert(0, accounts);
        let add = ["sacctmgr", "-i", "add", "cluster", "lab"];
        wait_for("the accounts", || self.run(&add).ok());
        self.text(&["sacctmgr", "-i", "add", "account", "lab", "description=x", "organization=x"]);
        self.text(&["sacctmgr", "-i", "add", "user", "root", "account=lab"]);
    }

    /// Lines of nodes, and of their GPUs.
    fn nodes_of(&self, kinds: &[Kind], host: &str, ports: &[u16]) -> (String, String) {
        let folder = self.path("gpus").display().to_string();
        let (mut text, mut gres) = (String::new(), String::new());
        let mut port = ports.iter();
        for kind in kinds {
            for number in 1..=kind.count {
                let (name, port) = (format!("{}{number}", kind.prefix), port.next().unwrap());
                let gpus = match kind.gpus {
                    0 => String::new(),
                    count => format!("Gres=gpu:{}:{count}", kind.model),
                };
                text += &format!(
                    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} Sockets=2 \
                     CoresPerSocket=16 ThreadsPerCore=1 RealMemory=64000 {gpus} State=UNKNOWN\n"
                );
                if kind.gpus > 0 {
                    let files = format!("{}/{}[0-{}]", folder, kind.model, kind.gpus - 1);
                    gres += &format!("NodeName={name} Name=gpu Type={} File={files}\n", kind.model);
                }
            }
            for gpu in 0..kind.gpus {
                fs::write(self.path("gpus").join(format!("{}{gpu}", kind.model)), "").unwrap();
            }
        }
        (text, gres)
    }

    fn write_configuration(&self, kinds: &[Kind], wants: &Wants, ports: &Ports) {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let host = host.trim().split('.').next().unwrap();
        let of = |name: &str| self.path(name).display().to_string();
        let scheduler = match wants.alone {
            true => {
                "SchedulerType=sched/backfill\nSchedulerParameters=bf_interval=2,\
                     batch_sched_delay=0,sched_interval=2"
            }
            false => {
                "SchedulerType=sched/builtin\nSchedulerParameters=batch_sched_delay=0,\
                      sched_min_interval=20000,sched_interval=2,default_queue_depth=2000,\
                      partition_job_depth=2000"
            }
        };
        let accounts = match wants.accounts {
            true => format!(
                "AccountingStorageType=accounting_storage/slurmdbd\n\
                 AccountingStorageHost=localhost\nAccountingStoragePort={}\n\
                 AccountingStoragePass={}/munge.sock\nAccountingStorageTRES=gres/gpu,gres/gpu:v100,\
                 gres/gpu:misc,gres/gpu:p100,gres/gpu:t4",
                ports.0[2],
                of("run")
            ),
            false => "AccountingStorageType=accounting_storage/none".to_owned(),
        };
        let mut text = format!(
            "ClusterName=lab\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\n\
             SlurmdUser=root\nAuthType=auth/munge\n\
             AuthInfo=socket={run}/munge.sock,cred_expire=5\nCredType=cred/munge\n\
             CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\nStateSaveLocation={}\n\
             SlurmdSpoolDir={}/%n\nSlurmctldPidFile={run}/slurmctld.pid\n\
             SlurmdPidFile={run}/slurmd.%n.pid\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nMpiDefault=none\nReturnToService=2\n\
             SlurmdParameters=config_overrides\nGresTypes=gpu\nSelectType=select/cons_tres\n\
             SelectTypeParameters=CR_Core_Memory\nDefMemPerCPU=100\n{scheduler}\n\
             PriorityType=priority/basic\nJobRequeue=1\nKillWait=2\nMinJobAge=300\n\
             InactiveLimit=0\nSlurmctldTimeout=30\nSlurmdTimeout=8\nMessageTimeout=5\n\
             JobAcctGatherType=jobacct_gather/none\n{accounts}\n",
            ports.0[0],
            of("state"),
            of("spool"),
            run = of("run")
        );
        let (nodes, gres) = self.nodes_of(kinds, host, &ports.0[3..]);
        text += &nodes;
        let partitions = match wants.alone {
            true => "PartitionName=normal Nodes=ALL Default=YES MaxTime=600 State=UP\n",
            false => {
                "PartitionName=normal Nodes=ALL MaxTime=600 State=UP\n\
                 PartitionName=high Nodes=ALL PriorityTier=9 MaxTime=INFINITE State=UP\n\
                 PartitionName=ext Nodes=ALL Default=YES MaxTime=INFINITE State=DOWN\n"
            }
        };
        text += partitions;
        for line in &wants.lines {
            text += line;
            text.push('\n');
        }
        fs::write(self.conf(), text).unwrap();
        fs::write(self.path("etc/gres.conf"), gres).unwrap();
        fs::write(self.path("etc/cgroup.conf"), "CgroupAutomount=no\n").unwrap();
        for (name, text) in &wants.files {
            fs::write(self.path("etc").join(name), text).unwrap();
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let list = self.run(&["squeue", "-r", "-a", "-t", "all", "-o", "%i %j %T %P %N %r %S"]);
            eprintln!("--- queue of Slurm\n{}", list.unwrap_or_else(|fault| fault));
            let log = fs::read_to_string(self.path("log/slurmctld.out")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            eprintln!("--- controller\n{}", lines[lines.len().saturating_sub(25)..].join("\n"));
        }
        // Steps of jobs are no children of ours: Slurm ends them.
        let _ = self.run(&["scancel", "--user=root"]);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while std::time::Instant::now() < end {
            let left = self.run(&["squeue", "-h", "-t", "R,CG", "-o", "%i"]);
            if left.is_ok_and(|left| left.is_empty()) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        self.nodes.clear();
        self.controller = None;
        self.servers.clear();
        // Those of a node that was killed are left, and know the cluster by its configuration.
        for process in processes::with_variable("SLURM_CONF", &self.conf()) {
            processes::kill(process);
        }
    }
}

/// Ports of loopback that nobody uses at this moment.
struct Ports(Vec<u16>);

impl Ports {
    fn free(count: usize) -> Ports {
        let taken: Vec<TcpListener> =
            (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        Ports(taken.iter().map(|listener| listener.local_addr().unwrap().port()).collect())
    }
}
