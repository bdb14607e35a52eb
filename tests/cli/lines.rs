//! A client command as a child process whose lines are read as they come.

use std::net::SocketAddr;
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

use crate::support::{Broker, LIMIT, QUIET};

/// The binary with these arguments, unmoved by the environment of the tests.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tinybroker"));
    command.env_clear().args(args).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a command said until it ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ended {
    #[track_caller]
    pub fn fails_with(&self, words: &[&str]) {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "an error is one line: {self:?}");
        for word in words {
            assert!(self.err.contains(word), "{self:?} does not say {word:?}");
        }
    }

    #[track_caller]
    pub fn succeeds(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self:?}");
        &self.out
    }
}

/// Runs a command to its end.
pub async fn run(args: &[&str]) -> Ended {
    run_with_input(args, b"").await
}

pub async fn run_with_input(args: &[&str], input: &[u8]) -> Ended {
    let mut child = command(args).stdin(Stdio::piped()).spawn().expect("the binary starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // A command that needs no input may have ended already.
    let _ = stdin.write_all(input).await;
    drop(stdin);
    let output = timeout(LIMIT, child.wait_with_output()).await.expect("it ends").expect("it ran");
    let text = |bytes| String::from_utf8(bytes).expect("it says text");
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs `pub` at this broker to its end.
pub async fn publish(broker: &Broker, args: &[&str]) -> Ended {
    run(&with_broker("pub", args, &broker.address().to_string())).await
}

pub fn with_broker<'a>(command: &'a str, args: &[&'a str], address: &'a str) -> Vec<&'a str> {
    [&[command], args, &["--broker", address]].concat()
}

/// A running `sub`; killed when dropped.
pub struct Sub {
    child: Child,
    pub out: Lines<ChildStdout>,
    pub err: Lines<ChildStderr>,
}

impl Sub {
    pub fn start(address: SocketAddr, args: &[&str]) -> Self {
        Self::spawn(command(&with_broker("sub", args, &address.to_string())))
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the binary starts");
        let out = Lines::of(child.stdout.take().expect("stdout is piped"));
        let err = Lines::of(child.stderr.take().expect("stderr is piped"));
        Sub { child, out, err }
    }

    /// Started and subscribed.
    pub async fn open(broker: &Broker, args: &[&str]) -> Self {
        let mut sub = Self::start(broker.address(), args);
        sub.err.find("subscribed as ").await;
        sub
    }

    pub fn signal(&self, signal: i32) {
        let pid = self.child.id().expect("it has not been waited for") as i32;
        // SAFETY: kill(2) takes plain numbers; the pid is that of our own child, not yet waited for.
        assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    }

    /// Waits for the end, which comes with exit code 0 and nothing more to say.
    pub async fn ends_well(&mut self) {
        let err = self.err.rest().await;
        assert_eq!((self.wait().await, err.as_str()), (Some(0), ""));
    }

    /// Waits for the end; returns the exit code.
    pub async fn wait(&mut self) -> Option<i32> {
        timeout(LIMIT, self.child.wait()).await.expect("it ends").expect("it can be waited for").code()
    }

    /// Its standard output has no reader any more.
    pub fn close_out(&mut self) {
        self.out = Lines(None);
    }
}

/// The lines of a pipe.
pub struct Lines<P>(Option<BufReader<P>>);

impl<P: AsyncRead + Unpin> Lines<P> {
    fn of(pipe: P) -> Self {
        Lines(Some(BufReader::new(pipe)))
    }

    fn pipe(&mut self) -> &mut BufReader<P> {
        self.0.as_mut().expect("it is not closed")
    }

    /// The next line; empty at the end.
    pub async fn next(&mut self) -> String {
        let mut line = String::new();
        timeout(LIMIT, self.pipe().read_line(&mut line)).await.expect("a line comes").expect("it is text");
        line.trim_end_matches('\n').into()
    }

    pub async fn json(&mut self) -> Value {
        let line = self.next().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?} is no JSON: {error}"))
    }

    /// The next line with these words.
    pub async fn find(&mut self, words: &str) -> String {
        loop {
            let line = self.next().await;
            assert!(!line.is_empty(), "{words:?} never came");
            if line.contains(words) {
                return line;
            }
        }
    }

    /// All that is left.
    pub async fn rest(&mut self) -> String {
        let mut rest = String::new();
        timeout(LIMIT, self.pipe().read_to_string(&mut rest)).await.expect("it ends").expect("it is text");
        rest
    }

    /// Nothing comes for a while.
    pub async fn quiet(&mut self) {
        let next = timeout(QUIET, self.pipe().fill_buf()).await;
        assert!(next.is_err(), "nothing was due, {next:?} came");
    }
}

/// A port that is taken, and that nobody listens on.
pub struct ClosedPort {
    _socket: socket2::Socket,
    address: String,
}

impl ClosedPort {
    pub fn new() -> Self {
        let socket =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a port is free");
        let address = socket.local_addr().expect("it is bound").as_socket().expect("an IP address");
        ClosedPort { _socket: socket, address: address.to_string() }
    }

    pub fn address(&self) -> &str {
        &self.address
    }
}
