//! Ports of jobs: which process listens, and a connection to it if it is one of the job.
//!
//! All jobs of a machine share its loopback. So a stream to a port goes through only where every
//! socket that listens there belongs to a process of the job that the person may enter.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::folder::{LeaseFolder, read_json};
use super::processes;
use super::shim::Remnants;

/// The state of a socket that listens, in the kernel's tables.
const LISTENS: &str = "0A";

/// A socket that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Listener {
    address: IpAddr,
    inode: u64,
}

/// Connects to a port of a job; says why not in words for people.
pub(super) async fn connect(
    folder: &LeaseFolder,
    port: u16,
    secs_max: u64,
) -> Result<TcpStream, String> {
    let look = |folder: LeaseFolder| {
        let looked = tokio::task::spawn_blocking(move || check(&folder, port));
        async { looked.await.unwrap_or_else(|fault| Err(fault.to_string())) }
    };
    let (address, before) = look(folder.clone()).await?;
    let target = SocketAddr::new(address, port);
    let connected = timeout(Duration::from_secs(secs_max), TcpStream::connect(target)).await;
    let stream = match connected {
        Ok(Ok(stream)) => stream,
        Ok(Err(fault)) => return Err(format!("cannot connect to port {port} of the job: {fault}")),
        Err(_) => return Err(format!("port {port} of the job does not answer")),
    };
    // Whoever listens may have changed between the look and the connection.
    match look(folder.clone()).await? {
        (_, after) if after == before => Ok(stream),
        _ => Err(format!("another process listens on port {port} now; try again")),
    }
}

/// The address at which the job is reached, and who listens there.
fn check(folder: &LeaseFolder, port: u16) -> Result<(IpAddr, BTreeSet<Listener>), String> {
    let all = listeners(port);
    let listeners: BTreeSet<Listener> = all.iter().filter(|it| is_near(it)).copied().collect();
    if listeners.is_empty() {
        return Err(match all.first() {
            Some(Listener { address, .. }) => format!(
                "port {port} of its node is open on {address} only; let the job listen on 127.0.0.1"
            ),
            None => format!("nothing listens on port {port} of its node (yet)"),
        });
    }
    let remnants: Option<Remnants> = read_json(&folder.pids());
    let remnants = remnants.filter(|remnants| remnants.is_of(folder));
    let Some(remnants) = remnants else { return Err("the job is over".to_owned()) };
    let mut foreign: BTreeSet<u64> = listeners.iter().map(|listener| listener.inode).collect();
    for process in remnants.running(&processes::processes()) {
        foreign = &foreign - &processes::sockets(process.pid);
    }
    // Where several listen, the kernel chooses one.
    if !foreign.is_empty() {
        return Err(format!("port {port} of its node belongs to another process, not to the job"));
    }
    let address = reachable(&listeners);
    Ok((address, listeners))
}

/// Whether loopback leads there. Some programs write an address of the old kind as one of the new.
fn is_near(listener: &Listener) -> bool {
    let address = listener.address.to_canonical();
    address.is_loopback() || address.is_unspecified()
}

/// How loopback leads to one of them.
fn reachable(listeners: &BTreeSet<Listener>) -> IpAddr {
    let is_four = |listener: &Listener| listener.address.to_canonical().is_ipv4();
    // One that listens everywhere by the newer protocol is mostly reached by both.
    match listeners.iter().any(is_four) {
        true => IpAddr::V4(Ipv4Addr::LOCALHOST),
        false => IpAddr::V6(Ipv6Addr::LOCALHOST),
    }
}

/// All sockets of this machine that listen on a port.
fn listeners(port: u16) -> BTreeSet<Listener> {
    let table = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let tables = [table("/proc/self/net/tcp"), table("/proc/self/net/tcp6")];
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    lines.filter_map(|line| parse(line, port)).collect()
}

/// A line of the kernel's table, if it is a socket that listens on the port.
fn parse(line: &str, port: u16) -> Option<Listener> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    let (address, local_port) = local.split_once(':')?;
    if *state != LISTENS || u16::from_str_radix(local_port, 16).ok()? != port {
        return None;
    }
    Some(Listener { address: address_of(address)?, inode: inode.parse().ok()? })
}

/// An address as the kernel writes it: words of 32 bits, each as this machine keeps them.
fn address_of(digits: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(digits.get(at..at + 8)?, 16).ok();
    match digits.len() {
        8 => Some(IpAddr::from(word(0)?.to_ne_bytes())),
        32 => {
            let mut bytes = [0; 16];
            for (place, part) in bytes.chunks_mut(4).enumerate() {
                part.copy_from_slice(&word(place * 8)?.to_ne_bytes());
            }
            Some(IpAddr::from(bytes))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn lines_of_the_kernels_tables_are_read() {
        let four = "   0: 0100007F:22B8 00000000:0000 0A 00000000:00000000 00:00000000 00000000 \
                    1000        0 4242 1 0000000000000000 100 0 0 10 0";
        let six = "   1: 00000000000000000000000001000000:22B8 \
                   00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 \
                   1000 0 4243 1 0 100 0 0 10 0";
        let seen = [four, six].map(|line| parse(line, 8888).unwrap());
        let (first, second) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
        assert_eq!(seen[0], Listener { address: first, inode: 4242 });
        assert_eq!(seen[1], Listener { address: second, inode: 4243 });
        assert_eq!(parse(four, 8889), None);
        assert_eq!(parse(&four.replace(" 0A ", " 01 "), 8888), None);
        assert_eq!(reachable(&BTreeSet::from(seen)), first);
        assert_eq!(reachable(&BTreeSet::from([seen[1]])), second);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn an_address_of_the_old_kind_in_the_new_one_is_reached_by_the_old_one() {
        let line = "   1: 0000000000000000FFFF00000100007F:22B8 \
                    00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 \
                    00000000 1000 0 4244 1 0 100 0 0 10 0";
        let mapped = parse(line, 8888).unwrap();
        assert_eq!(mapped.address.to_string(), "::ffff:127.0.0.1");
        assert!(is_near(&mapped));
        let four = IpAddr::V4(Ipv4Addr::LOCALHOST);
        assert_eq!(reachable(&BTreeSet::from([mapped])), four);
        let elsewhere = line.replace("0100007F", "0100000A");
        assert!(!is_near(&parse(&elsewhere, 8888).unwrap()));
    }

    #[test]
    fn a_socket_of_this_process_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let found = listeners(socket.local_addr().unwrap().port());
        let own = processes::sockets(std::process::id());
        assert!(!found.is_empty());
        assert!(found.iter().all(|listener| own.contains(&listener.inode)));
    }
}
