use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::limits;
use crate::proto::broker_client::BrokerClient;

/// How long a broker may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

pub type Client = BrokerClient<Channel>;

/// What a client command fails with; one line.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("no broker answers at {address} ({cause}): start one with \"tinybroker serve\"")]
    NoBroker { address: String, cause: String },
    #[error("{}", describe(.0))]
    Call(#[from] Status),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("{0}")]
    Usage(String),
}

impl Fault {
    /// The broker cannot be reached for now, so that another try may go well.
    pub fn is_passing(&self) -> bool {
        match self {
            Fault::NoBroker { .. } => true,
            // Transport errors of the client's own come as any of these.
            Fault::Call(status) => {
                matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal)
            }
            Fault::Io(_) | Fault::Usage(_) => false,
        }
    }
}

/// Code name and message, as in `NOT_FOUND: no such subscription`; what the transport says, in plain words.
fn describe(status: &Status) -> String {
    match status.source() {
        Some(cause) => format!("lost the connection to the broker ({})", root_cause(cause)),
        None => format!("{}: {}", code_name(status.code()), escape(status.message())),
    }
}

/// `InvalidArgument` is INVALID_ARGUMENT to everybody else.
fn code_name(code: Code) -> String {
    let mut name = String::new();
    for letter in format!("{code:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// The text without what a terminal would obey: control characters, and marks that turn the direction of writing.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        let turns =
            matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || turns {
            let _ = write!(safe, "{}", character.escape_default());
        } else {
            safe.push(character);
        }
    }
    safe
}

/// Tells the person, on standard error; whether anybody reads it does not matter.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Runs a client command on this thread.
pub fn run(command: impl Future<Output = Result<(), Fault>>) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(command);
    // A write to a pipe that nobody reads must not keep the process.
    runtime.shutdown_background();
    done
}

/// Connects, with keepalive, so that a dead broker is noticed on an idle stream.
pub async fn connect(address: &str) -> Result<Client, Fault> {
    let no_broker = |error: tonic::transport::Error| Fault::NoBroker {
        address: address.into(),
        cause: root_cause(&error),
    };
    let channel = Endpoint::from_shared(format!("http://{address}"))
        .map_err(no_broker)?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(limits::KEEPALIVE_INTERVAL)
        .keep_alive_timeout(limits::KEEPALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .connect()
        .await
        .map_err(no_broker)?;
    Ok(Client::new(channel))
}

fn root_cause(error: &dyn Error) -> String {
    match error.source() {
        Some(source) => root_cause(source),
        None => error.to_string(),
    }
}

/// SIGINT or SIGTERM: the person wants the command to end.
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
    came: bool,
}

impl Stop {
    /// From here on the signals no longer kill the process.
    pub fn catch() -> Result<Self, Fault> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Stop { interrupt, terminate, came: false })
    }

    /// Waits for the first signal; once it came, returns at once.
    pub async fn requested(&mut self) {
        if !self.came {
            self.next().await;
            self.came = true;
        }
    }

    /// Waits for one more signal.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_one_line_with_the_name_of_the_code() {
        let status = Status::invalid_argument("topic: \u{1b}[31m\nred");
        assert_eq!(Fault::Call(status).to_string(), "INVALID_ARGUMENT: topic: \\u{1b}[31m\\nred");
        assert_eq!(code_name(Code::NotFound), "NOT_FOUND");
        assert_eq!(code_name(Code::Ok), "OK");
    }

    #[test]
    fn terminals_are_safe_and_text_stays_readable() {
        assert_eq!(escape("naïve ☕ \\ \"x\""), "naïve ☕ \\ \"x\"");
        assert_eq!(escape("a\tb\r\n\u{7}\u{9b}\u{202e}"), "a\\tb\\r\\n\\u{7}\\u{9b}\\u{202e}");
    }

    #[test]
    fn only_faults_that_may_pass_are_tried_again() {
        assert!(Fault::Call(Status::unavailable("stopping")).is_passing());
        assert!(!Fault::Call(Status::resource_exhausted("fell behind")).is_passing());
    }
}
