//! Three networks: one for the daemon, and one for each of two agents, joined by cables to it.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::harness::Cluster;

/// Networks that go away with their owner.
pub struct Namespaces {
    name: String,
}

impl Namespaces {
    /// Makes them; none where that is not permitted.
    pub fn make() -> Option<Namespaces> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let namespaces = Namespaces { name: format!("hostler-{}-{number}", std::process::id()) };
        if !namespaces.try_ip(&["netns", "add", &namespaces.daemon()]) {
            eprintln!("skipped: network namespaces need root and the command `ip`");
            return None;
        }
        let daemon = namespaces.daemon();
        namespaces.ip(&["-n", &daemon, "link", "set", "lo", "up"]);
        (0..2).for_each(|agent| namespaces.join(agent));
        Some(namespaces)
    }

    fn join(&self, agent: usize) {
        let (daemon, own, cable) = (self.daemon(), self.agent(agent), cable(agent));
        self.ip(&["netns", "add", &own]);
        self.ip(&["-n", &own, "link", "set", "lo", "up"]);
        let ends = ["type", "veth", "peer", "name", "eth0", "netns", &own];
        self.ip(&[&["link", "add", &cable, "netns", &daemon], &ends[..]].concat());
        let address = |last| format!("10.77.{agent}.{last}/24");
        self.ip(&["-n", &daemon, "addr", "add", &address(1), "dev", &cable]);
        self.ip(&["-n", &daemon, "link", "set", &cable, "up"]);
        self.ip(&["-n", &own, "addr", "add", &address(2), "dev", "eth0"]);
        self.ip(&["-n", &own, "link", "set", "eth0", "up"]);
    }

    /// A daemon with these options and its two agents, `n0` and `n1`, of one GPU each.
    pub fn cluster(&self, options: &[&str]) -> Cluster {
        let mut cluster = Cluster::new(options);
        let exec =
            |name: String| ["ip", "netns", "exec"].map(str::to_owned).into_iter().chain([name]);
        cluster.before = exec(self.daemon()).collect();
        cluster.listen("0.0.0.0:0");
        cluster.serve();
        let port = cluster.access().server.port;
        for agent in 0..2 {
            let before: Vec<String> = exec(self.agent(agent)).collect();
            let before: Vec<&str> = before.iter().map(String::as_str).collect();
            let server = format!("https://10.77.{agent}.1:{port}");
            let options = ["--fake-gpus", "1xV100"];
            cluster.enrol_at(&format!("n{agent}"), &options, &before, Some(&server));
        }
        cluster.until_up();
        cluster
    }

    /// Pulls the cable of an agent, or puts it back.
    pub fn connect(&self, agent: usize, is_up: bool) {
        let state = if is_up { "up" } else { "down" };
        self.ip(&["-n", &self.daemon(), "link", "set", &cable(agent), state]);
    }

    fn daemon(&self) -> String {
        format!("{}-daemon", self.name)
    }

    fn agent(&self, agent: usize) -> String {
        format!("{}-n{agent}", self.name)
    }

    fn ip(&self, arguments: &[&str]) {
        assert!(self.try_ip(arguments), "`ip` fails with {arguments:?}");
    }

    fn try_ip(&self, arguments: &[&str]) -> bool {
        let mut ip = Command::new("ip");
        ip.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
        ip.status().is_ok_and(|status| status.success())
    }
}

fn cable(agent: usize) -> String {
    format!("to-n{agent}")
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // Cables go with them.
        for name in [self.daemon(), self.agent(0), self.agent(1)] {
            self.try_ip(&["netns", "delete", &name]);
        }
    }
}
