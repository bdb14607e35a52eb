//! The load test as a process.

use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;

/// How long any run may take; only one that hangs does.
const LIMIT: Duration = Duration::from_secs(60);

/// What a run left behind.
pub struct Said {
    /// Exit code.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    /// The report of `--json`; null where none was written.
    pub report: Value,
}

/// Runs the load test with arguments that are told apart by spaces.
///
/// # Panics
/// If it does not end.
pub async fn run(arguments: &str) -> Said {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let json =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}.json", std::process::id()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tinybroker-loadtest"));
    command.args(arguments.split_whitespace()).arg("--json").arg(&json);
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(LIMIT, output).await.unwrap_or_else(|_| panic!("`{arguments}` hangs"));
    let output = output.expect("the program starts");
    let report = match std::fs::read(&json) {
        Ok(bytes) => serde_json::from_slice(&bytes).expect("a whole JSON file"),
        Err(_) => Value::Null,
    };
    let _ = std::fs::remove_file(&json);
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Said {
        code: output.status.code().expect("an end of its own"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
        report,
    }
}

impl Said {
    /// What is on stdout, however its lines were broken.
    pub fn words(&self) -> String {
        self.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// The only run's verdict.
    pub fn verdict(&self) -> &Value {
        assert_eq!(self.report["runs"].as_array().map(Vec::len), Some(1), "{self}");
        &self.report["runs"][0]["verdict"]
    }

    /// A number of it.
    pub fn count(&self, name: &str) -> u64 {
        self.verdict()[name].as_u64().unwrap_or_else(|| panic!("no {name}: {self}"))
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Said { code, stdout, stderr, .. } = self;
        write!(f, "exit code {code}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}
