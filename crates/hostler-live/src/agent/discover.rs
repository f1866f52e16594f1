//! What this machine is: its name, address, cores, memory and GPUs.

use std::fs;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::thread::available_parallelism;

use super::gpus::Gpus;
use crate::wire::Machine;
use crate::{image, stream};

/// What people may say about a machine instead of letting it be found.
#[derive(Clone, Debug, Default)]
pub struct MachineOverrides {
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
pub fn machine(said: &MachineOverrides, gpus: &Gpus, daemon: &str) -> Machine {
    let kind = gpus.kind();
    Machine {
        name: said.name.clone().unwrap_or_else(host_name),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        address: said.address.clone().unwrap_or_else(|| address_towards(daemon)),
        cpu_milli: said.cpu_milli.unwrap_or_else(cpu_milli),
        mem_mib: said.mem_mib.unwrap_or_else(mem_mib),
        gpu_model: kind.model,
        gpu_mem_mib: kind.mem_mib,
        gpus: kind.count,
        rack: said.rack,
        instance: None,
        abilities: [image::ABILITY, stream::ABILITY].map(str::to_owned).into(),
        runtimes: Vec::new(),
        unusable_runtimes: Vec::new(),
        cannot_suspend: String::new(),
        untried: false,
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn address_towards(daemon: &str) -> String {
    let target = daemon.to_socket_addrs().ok().and_then(|mut all| all.next());
    let local = target.and_then(sent_from);
    local.map_or_else(|| "127.0.0.1".to_owned(), |local| local.to_string())
}

/// Where other machines reach one that listens on `listen`: there, or, when that is every address,
/// at the one towards the rest of the world. None when it listens to itself alone.
pub fn seen_from_outside(listen: IpAddr) -> Option<String> {
    if listen.is_loopback() {
        return None;
    }
    if !listen.is_unspecified() {
        return Some(listen.to_string());
    }
    // Addresses that are set aside for examples: nobody has them, so they lie outside.
    let outside = if listen.is_ipv6() { "[2001:db8::1]:9" } else { "192.0.2.1:9" };
    let outside = outside.parse().expect("an address that is written here is one");
    sent_from(outside).map(|local| local.to_string())
}

/// The address that the kernel would send from; nothing is sent.
fn sent_from(target: SocketAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind(if target.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" }).ok()?;
    socket.connect(target).ok()?;
    socket.local_addr().ok().map(|local| local.ip())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_others_can_reach_does_not_call_itself_loopback() {
        let seen = |listen: &str| seen_from_outside(listen.parse().unwrap());
        assert_eq!(seen("127.0.0.1"), None);
        assert_eq!(seen("10.1.2.3").as_deref(), Some("10.1.2.3"));
        // A machine without a network has no such address.
        let all = seen("0.0.0.0").map(|found| found.parse::<IpAddr>().unwrap());
        assert!(all.is_none_or(|found| !found.is_loopback() && !found.is_unspecified()), "{all:?}");
    }
}
