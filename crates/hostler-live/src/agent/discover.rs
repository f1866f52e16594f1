//! What this machine is: its name, address, cores, memory and GPUs.

use std::fs;
use std::net::{ToSocketAddrs, UdpSocket};
use std::thread::available_parallelism;

use super::gpus::Gpus;
use crate::wire::Machine;

/// What people may say about a machine instead of letting it be found.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// Name of the node; the host's name by default.
    pub name: Option<String>,
    /// Where other nodes reach it; by default the address from which it reaches the daemon.
    pub address: Option<String>,
    /// CPU in thousandths of a core.
    pub cpu_milli: Option<u32>,
    /// Memory in MiB.
    pub mem_mib: Option<u32>,
    /// Rack.
    pub rack: u32,
}

/// Finds out what this machine is. `daemon` is host and port, for the address.
pub fn machine(said: &Said, gpus: &Gpus, daemon: &str) -> Machine {
    let kind = gpus.kind();
    Machine {
        name: said.name.clone().unwrap_or_else(host_name),
        address: said.address.clone().unwrap_or_else(|| address_towards(daemon)),
        cpu_milli: said.cpu_milli.unwrap_or_else(cpu_milli),
        mem_mib: said.mem_mib.unwrap_or_else(mem_mib),
        gpu_model: kind.model,
        gpu_mem_mib: kind.mem_mib,
        gpus: kind.count,
        rack: said.rack,
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The address that the kernel would send from; nothing is sent.
fn address_towards(daemon: &str) -> String {
    let target = daemon.to_socket_addrs().ok().and_then(|mut all| all.next());
    let any = if target.is_some_and(|target| target.is_ipv6()) { "[::]:0" } else { "0.0.0.0:0" };
    let local = target.and_then(|target| {
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect(target).ok()?;
        socket.local_addr().ok()
    });
    local.map_or_else(|| "127.0.0.1".to_owned(), |local| local.ip().to_string())
}

/// Cores that this process may use.
fn cpu_milli() -> u32 {
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    u32::try_from(cores).unwrap_or(u32::MAX / 1000).saturating_mul(1000)
}

fn mem_mib() -> u32 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    u32::try_from(kib.unwrap_or(0) >> 10).unwrap_or(u32::MAX)
}
