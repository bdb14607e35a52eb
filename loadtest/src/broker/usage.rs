//! What the broker's process has used.

use procfs::process::Process;
use prost_types::Duration;

use crate::client::{Connection, rpc};
use crate::failure::{Doing, Failure};
use crate::proto::{GetStatsRequest, GetStatsResponse};

/// Of a process, until a moment.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    pub cpu_seconds: f64,
    /// In which threads were ready to run and waited for a core, one by one; 0 where only the broker tells.
    pub waited_seconds: f64,
    pub resident_bytes: u64,
    pub descriptors: u64,
}

/// Who says so.
pub enum Source {
    /// `/proc` of this process.
    Process(u32),
    /// The broker itself.
    Metrics(Box<Connection>),
}

impl Source {
    pub async fn usage(&self) -> Result<Usage, Failure> {
        match self {
            Source::Process(pid) => of_process(*pid)
                .map_err(|error| Failure::Unexpected(format!("the broker's process {pid}: {error}"))),
            Source::Metrics(connection) => {
                let stats: GetStatsResponse = connection
                    .unary(rpc::STATS, &GetStatsRequest {})
                    .await
                    .doing("asking the broker for its metrics")?;
                Ok(Usage {
                    cpu_seconds: stats.cpu_time.map_or(0.0, seconds),
                    waited_seconds: 0.0,
                    resident_bytes: stats.resident_bytes,
                    descriptors: u64::from(stats.open_descriptors),
                })
            }
        }
    }
}

fn of_process(pid: u32) -> procfs::ProcResult<Usage> {
    let process = Process::new(pid as i32)?;
    let (mut on_cpu_nanos, mut waited_nanos) = (0, 0);
    for task in process.tasks()? {
        // A thread may end between the listing and the look.
        let Ok(times) = task.and_then(|task| task.schedstat()) else { continue };
        on_cpu_nanos += times.sum_exec_runtime;
        waited_nanos += times.run_delay;
    }
    Ok(Usage {
        cpu_seconds: on_cpu_nanos as f64 / 1e9,
        waited_seconds: waited_nanos as f64 / 1e9,
        resident_bytes: process.statm()?.resident * procfs::page_size(),
        descriptors: process.fd_count()? as u64,
    })
}

fn seconds(duration: Duration) -> f64 {
    duration.seconds as f64 + f64::from(duration.nanos) / 1e9
}
