//! A broker process of our own, on a free port of this machine.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::failure::{Doing, Failure, within};

/// How long a broker may take until it listens, and until it has ended.
const PATIENCE: Duration = Duration::from_secs(20);

/// Killed when it is dropped.
pub struct Spawned {
    child: Child,
    pid: u32,
    address: String,
    /// Held so that the broker never writes to a closed pipe.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Spawned {
    pub async fn start(program: &Path, arguments: &[String]) -> Result<Spawned, Failure> {
        if !program.exists() {
            return Err(Failure::NoBroker(program.to_owned()));
        }
        let mut child = Command::new(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "text/warn"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .doing("starting the broker")?;
        let output = child.stdout.take().ok_or(Failure::BrokerEnded)?;
        let mut lines = BufReader::new(output).lines();
        let listens = async {
            while let Some(line) = lines.next_line().await.doing("reading what the broker says")? {
                if let Some(address) = line.strip_prefix("listening on ") {
                    return Ok(address.to_owned());
                }
            }
            Err(Failure::BrokerEnded)
        };
        let address = within(PATIENCE, "the broker's start", listens).await?;
        let pid = child.id().ok_or(Failure::BrokerEnded)?;
        Ok(Spawned { child, pid, address, _output: lines })
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Asks it to end, and waits; what takes too long is killed.
    pub async fn end(mut self) -> Result<(), Failure> {
        // Our own child, not waited for yet: the number is still its.
        if let Some(pid) = Pid::from_raw(self.pid as i32) {
            for _ in 0..2 {
                // Twice: the second signal spares the drain. One that has ended already is no error.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        match tokio::time::timeout(PATIENCE, self.child.wait()).await {
            Ok(status) => status.map(drop).doing("waiting for the broker's end"),
            Err(_) => self.child.kill().await.doing("killing a broker that does not end"),
        }
    }
}
