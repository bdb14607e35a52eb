//! The broker's process as the system sees it.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use socket2::Socket;

use crate::support::{Broker, LIMIT};

/// The sockets that the broker holds: listeners, connections, and a few of its own.
fn sockets(broker: &Broker) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(format!("/proc/{}/fd", broker.pid())).expect("the broker lives");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let is_socket = |path: &PathBuf| {
        std::fs::read_link(path).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
    };
    paths.filter(is_socket).collect()
}

pub fn open_sockets(broker: &Broker) -> usize {
    sockets(broker).len()
}

/// Waits until no more sockets are open than before.
pub async fn sockets_come_home(broker: &Broker, before: usize) {
    let deadline = Instant::now() + LIMIT;
    while open_sockets(broker) > before {
        assert!(Instant::now() < deadline, "{before} sockets were open, now {}", open_sockets(broker));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Resident memory, in bytes.
pub fn memory(broker: &Broker) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", broker.pid())).expect("the broker lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// The broker's end of the connection from `client`, duplicated into this process.
pub fn socket_of(broker: &Broker, client: SocketAddr) -> Option<Socket> {
    // SAFETY: pidfd_open(2) takes plain numbers; what it returns is ours alone.
    let process = unsafe { owned(libc::syscall(libc::SYS_pidfd_open, broker.pid(), 0))? };
    sockets(broker).into_iter().find_map(|path| {
        let number: i32 = path.file_name()?.to_str()?.parse().ok()?;
        // SAFETY: as above; the broker's own descriptor is not touched.
        let socket: Socket =
            unsafe { owned(libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), number, 0))? }.into();
        (socket.peer_addr().ok()?.as_socket()? == client).then_some(socket)
    })
}

/// # Safety
/// `descriptor` is an error, or a descriptor that nobody else owns.
unsafe fn owned(descriptor: libc::c_long) -> Option<OwnedFd> {
    // SAFETY: the caller says so.
    (descriptor >= 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor as i32) })
}
