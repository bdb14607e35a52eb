use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The process may not open what a broker needs to start.
#[derive(Debug, thiserror::Error)]
#[error(
    "this process may have {limit} files open, {needed} are needed to start and one more for each connection; raise it: ulimit -n, LimitNOFILE= in systemd, --ulimit nofile= in docker"
)]
pub struct TooFewDescriptors {
    limit: u64,
    needed: u64,
}

/// Descriptors beside those of executors and connections: standard streams, listeners, signals, a few connections.
const BASE: u64 = 32;
/// Descriptors of one executor: epoll, wake-ups, signals.
const EXECUTOR: u64 = 8;

/// Each connection takes a descriptor: allows as many as the process may allow itself, since what shells and service
/// managers set by default (1024) is meant for programs that use select(2).
pub fn make_room(executors: usize) -> Result<(), TooFewDescriptors> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    // No limit is the largest of all.
    let limit = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum,
        Err(_) => current,
    };
    let limit = limit.unwrap_or(u64::MAX);
    let needed = BASE + EXECUTOR * executors as u64;
    if limit < needed { Err(TooFewDescriptors { limit, needed }) } else { Ok(()) }
}
