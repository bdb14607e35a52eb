//! The example programs as processes: what they are told, and what they say.

use std::collections::HashMap;
use std::process::{ExitStatus, Output, Stdio};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::support::{Broker, LIMIT};
use crate::toolchain;

#[derive(Clone, Copy)]
pub enum Language {
    Python,
    Node,
    Rust,
}

impl Language {
    /// One of the language's programs, for this broker.
    pub fn program(self, name: &str, broker: &Broker) -> Command {
        let file = |folder: &str, extension: &str| {
            toolchain::root().join("clients").join(folder).join(name).with_extension(extension)
        };
        let mut command = match self {
            Language::Python => {
                let python = toolchain::python();
                let mut command = Command::new(&python.interpreter);
                command.arg(file("python", "py")).env("PYTHONPATH", &python.stubs);
                command
            }
            Language::Node => {
                let mut command = Command::new("node");
                command.arg(file("node", "js")).env("NODE_PATH", toolchain::node_modules());
                command
            }
            Language::Rust => Command::new(toolchain::rust_examples().join(name)),
        };
        command.env("TINYBROKER_BROKER", broker.address().to_string()).kill_on_drop(true);
        command
    }

    /// What the language's library calls a connection that broke in the middle of a stream.
    pub fn code_of_a_broken_connection(self) -> &'static str {
        match self {
            Language::Python | Language::Node => "UNAVAILABLE",
            Language::Rust => "UNKNOWN",
        }
    }

    /// A worker that runs; what it was told is in the words of its command line.
    pub fn worker(self, broker: &Broker, words: &str) -> Program {
        Program::start(self.program("worker", broker).args(words.split(' ')))
    }

    /// A worker that is subscribed.
    pub async fn started(self, broker: &Broker, words: &str) -> Program {
        let mut worker = self.worker(broker, words);
        worker.started().await;
        worker
    }

    /// Publishes what the words say, and returns the broker's answers.
    pub async fn publish(self, broker: &Broker, words: &str) -> Vec<Value> {
        let output = run(self.program("publisher", broker).args(words.split(' '))).await;
        assert!(output.status.success(), "{output:?}");
        let answers = String::from_utf8(output.stdout).expect("a publisher prints text");
        answers.lines().map(|line| serde_json::from_str(line).expect("an answer a line")).collect()
    }
}

/// Runs a program to its end.
pub async fn run(command: &mut Command) -> Output {
    timeout(LIMIT, command.output()).await.expect("the program ends").expect("the program starts")
}

/// A program that goes on, and prints a line for what happens.
pub struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        Program { child, lines }
    }

    pub async fn line(&mut self) -> String {
        let line = timeout(LIMIT, self.lines.next_line()).await.expect("a line comes");
        line.expect("stdout is text").expect("the program goes on")
    }

    async fn any_event(&mut self) -> Value {
        serde_json::from_str(&self.line().await).expect("an event a line")
    }

    /// The next event, which is of this kind.
    async fn event(&mut self, kind: &str) -> Value {
        let event = self.any_event().await;
        assert_eq!(event["event"], kind, "{event}");
        event
    }

    /// It is subscribed; returns the subscription's id.
    pub async fn started(&mut self) -> String {
        text(&self.event("started").await["subscription_id"])
    }

    /// It lost the broker; returns the status code's name, in capitals.
    pub async fn lost(&mut self) -> String {
        text(&self.event("lost").await["code"]).to_uppercase()
    }

    /// It is subscribed anew, after however many tries.
    pub async fn back(&mut self) {
        while self.any_event().await["event"] != "started" {}
    }

    /// A batch came, and its messages follow; returns how many.
    pub async fn batch(&mut self) -> u64 {
        self.event("batch").await["size"].as_u64().expect("a size is a number")
    }

    pub async fn message(&mut self) -> Delivery {
        let event = self.event("message").await;
        let headers = event["headers"].as_object().expect("headers are an object");
        Delivery {
            topic: text(&event["topic"]),
            system_id: text(&event["system_id"]),
            message_id: text(&event["message_id"]),
            attempt: event["attempt"].as_u64().expect("an attempt is a number"),
            epoch: event["epoch"].as_u64().expect("an epoch is a number"),
            headers: headers.iter().map(|(key, value)| (key.clone(), text(value))).collect(),
            payload: text(&event["payload"]),
        }
    }

    /// The next messages, as payload and attempt.
    pub async fn attempts(&mut self, count: usize) -> Vec<(String, u64)> {
        let mut attempts = Vec::new();
        for _ in 0..count {
            let message = self.message().await;
            attempts.push((message.payload, message.attempt));
        }
        attempts
    }

    /// The payloads of the next messages.
    pub async fn payloads(&mut self, count: usize) -> Vec<String> {
        self.attempts(count).await.into_iter().map(|(payload, _)| payload).collect()
    }

    /// As a crash or the kernel's killer of processes would end it.
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("a child can be killed");
    }

    /// As a supervisor would end it.
    pub async fn terminate(&mut self) -> ExitStatus {
        let pid = self.child.id().expect("the program runs");
        // SAFETY: kill(2) takes plain numbers; the pid is that of our own child, not yet waited for.
        assert_eq!(unsafe { libc::kill(pid as i32, libc::SIGTERM) }, 0);
        timeout(LIMIT, self.child.wait()).await.expect("the program ends").expect("a child can be waited for")
    }

    /// What a program that has ended had said and was not asked for yet.
    pub async fn last_lines(mut self) -> Vec<String> {
        let mut last = Vec::new();
        while let Some(line) = self.lines.next_line().await.expect("stdout is text") {
            last.push(line);
        }
        last
    }
}

/// What a worker says of a message.
pub struct Delivery {
    pub topic: String,
    pub system_id: String,
    pub message_id: String,
    pub attempt: u64,
    pub epoch: u64,
    pub headers: HashMap<String, String>,
    pub payload: String,
}

/// The payload in a line that tells of a message.
pub fn payload(line: &str) -> String {
    let event: Value = serde_json::from_str(line).expect("an event a line");
    text(&event["payload"])
}

pub fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}
