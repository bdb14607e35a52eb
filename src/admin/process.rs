//! What this process takes of the machine.

use std::time::Duration;

use procfs::process::Process;
use rustix::time::{ClockId, clock_gettime};

/// `/proc` tells memory in these.
const KIB: u64 = 1024;

/// Figures of this process. What the system does not tell is `None` or 0, for example where no `/proc` is mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessFigures {
    /// User and system time of all threads since the start, those that have ended included.
    pub cpu_time: Option<Duration>,
    /// Memory in RAM.
    pub resident_bytes: u64,
    /// The most memory that was ever in RAM.
    pub peak_resident_bytes: u64,
    pub open_descriptors: u32,
}

impl ProcessFigures {
    /// Reads all of them as they are now: some system calls and no disk, so an executor may do it.
    pub fn read() -> Self {
        let cpu_time = clock_gettime(ClockId::ProcessCPUTime).try_into().ok();
        let process = Process::myself().ok();
        let status = process.as_ref().and_then(|process| process.status().ok());
        let descriptors = process.as_ref().and_then(|process| process.fd_count().ok());
        let bytes = |kib: Option<u64>| kib.unwrap_or_default().saturating_mul(KIB);
        ProcessFigures {
            cpu_time,
            resident_bytes: bytes(status.as_ref().and_then(|status| status.vmrss)),
            peak_resident_bytes: bytes(status.as_ref().and_then(|status| status.vmhwm)),
            open_descriptors: descriptors.unwrap_or_default().try_into().unwrap_or(u32::MAX),
        }
    }
}
