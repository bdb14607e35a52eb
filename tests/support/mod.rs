//! What the tests share: a broker of their own from the built binary, and clients of it.
//!
//! Waiting is always for something, with a generous limit that only a broken broker reaches:
//! tests assert what happens, never how fast.
#![allow(dead_code, reason = "each test binary uses its part")]

mod publishing;

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tinybroker::proto::admin_client::AdminClient;
use tinybroker::proto::broker_client::BrokerClient;
use tinybroker::proto::subscribe_command::Command as Kind;
use tinybroker::proto::subscribe_event::Event;
use tinybroker::proto::*;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};
use tonic_types::StatusExt;

/// How long anything that must happen may take.
pub const LIMIT: Duration = Duration::from_secs(20);
/// How long nothing has to happen to count as nothing.
pub const QUIET: Duration = Duration::from_millis(200);

/// A broker process; killed when dropped. Four shards on two frontends, so that rings are crossed.
pub struct Broker {
    child: Child,
    pub addresses: Vec<SocketAddr>,
}

impl Broker {
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// With further arguments of `serve`; the last of an option wins.
    pub fn with(args: &[&str]) -> Self {
        Self::with_env(args, &[])
    }

    pub fn with_env(args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tinybroker"));
        command.args(["serve", "--log", "text/warn"]);
        for (option, value) in [("--listen", "127.0.0.1:0"), ("--shards", "4"), ("--frontends", "2")] {
            if !args.contains(&option) {
                command.args([option, value]);
            }
        }
        command.args(args).envs(env.iter().copied());
        Self::launch(command)
    }

    /// From a command that becomes `serve`.
    pub fn launch(mut command: Command) -> Self {
        command.stdout(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let out = child.stdout.take().expect("stdout is piped");
        let mut addresses = Vec::new();
        for line in BufReader::new(out).lines() {
            let line = line.expect("stdout is text");
            if let Some(address) = line.strip_prefix("listening on ") {
                addresses.push(address.parse().expect("an address"));
            } else if !addresses.is_empty() {
                break;
            }
        }
        assert!(!addresses.is_empty(), "the broker did not start: {:?}", child.wait());
        Broker { child, addresses }
    }

    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends this broker's own process a signal.
    pub fn signal(&self, signal: i32) {
        // SAFETY: kill(2) takes plain numbers; the pid is that of our own child, not yet waited for.
        assert_eq!(unsafe { libc::kill(self.pid() as i32, signal) }, 0);
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child can be asked").is_none()
    }

    /// Waits for the end of the process.
    pub fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be asked") {
                return status;
            }
            assert!(Instant::now() < deadline, "the broker does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A connection of its own.
    pub async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address())).expect("a URI");
        endpoint.connect().await.expect("the broker accepts")
    }

    /// A client on a connection of its own.
    pub async fn client(&self) -> Client {
        Client(BrokerClient::new(self.channel().await))
    }

    pub async fn stats(&self) -> GetStatsResponse {
        let mut admin = AdminClient::new(self.channel().await);
        in_time(admin.get_stats(GetStatsRequest {})).await.expect("stats are served").into_inner()
    }

    /// Asks for stats until they are as wanted.
    pub async fn stats_when(
        &self,
        what: &str,
        wanted: impl Fn(&GetStatsResponse) -> bool,
    ) -> GetStatsResponse {
        let deadline = Instant::now() + LIMIT;
        loop {
            let stats = self.stats().await;
            if wanted(&stats) {
                return stats;
            }
            assert!(Instant::now() < deadline, "{what} never came true: {stats:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client on one connection.
#[derive(Clone)]
pub struct Client(pub BrokerClient<Channel>);

impl Client {
    pub async fn try_publish(&self, request: PublishRequest) -> Result<PublishResponse, Status> {
        in_time(self.0.clone().publish(request)).await.map(|response| response.into_inner())
    }

    pub async fn publish(&self, topic: &str, payload: &str) -> PublishResponse {
        self.try_publish(message(topic, payload)).await.expect("the publish is confirmed")
    }

    /// Payloads `first..=last` to one topic, each after the last was confirmed.
    pub async fn publish_numbers(&self, topic: &str, first: u32, last: u32) {
        for number in first..=last {
            self.publish(topic, &number.to_string()).await;
        }
    }

    pub async fn ack(&self, request: AckRequest) -> Result<u32, Status> {
        in_time(self.0.clone().ack(request)).await.map(|response| response.into_inner().settled)
    }

    pub async fn nack(&self, request: NackRequest) -> Result<u32, Status> {
        in_time(self.0.clone().nack(request)).await.map(|response| response.into_inner().settled)
    }

    pub async fn extend(&self, request: ExtendRequest) -> Result<u32, Status> {
        in_time(self.0.clone().extend(request)).await.map(|response| response.into_inner().settled)
    }

    /// Opens a stream and says nothing on it yet.
    pub async fn stream(&self) -> Result<Stream, Status> {
        let (commands, receiver) = mpsc::unbounded_channel();
        let mut stub = self.0.clone();
        let events = in_time(stub.subscribe(UnboundedReceiverStream::new(receiver))).await?.into_inner();
        Ok(Stream { commands: Some(commands), events })
    }

    /// Opens a stream and sends `open`.
    pub async fn open(&self, open: OpenSubscription) -> Stream {
        let stream = self.stream().await.expect("the stream begins");
        stream.send(Kind::Open(open));
        stream
    }

    /// Opens a stream and waits for its first event, the subscription id.
    pub async fn subscribe(&self, open: OpenSubscription) -> (Stream, String) {
        let mut stream = self.open(open).await;
        let id = stream.subscription_id().await;
        (stream, id)
    }
}

/// One Subscribe stream. Dropping it cancels the call.
pub struct Stream {
    commands: Option<mpsc::UnboundedSender<SubscribeCommand>>,
    events: Streaming<SubscribeEvent>,
}

impl Stream {
    pub fn send(&self, command: Kind) {
        self.send_raw(SubscribeCommand { command: Some(command) });
    }

    /// What comes after the end of the stream is lost, as in any client.
    pub fn send_raw(&self, command: SubscribeCommand) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
        }
    }

    /// Acks in the stream.
    pub fn ack(&self, message: &Message) {
        self.send(Kind::Ack(Ack { system_id: message.system_id.clone(), ..Default::default() }));
    }

    /// Gives back in the stream, at once.
    pub fn nack(&self, message: &Message) {
        self.send(Kind::Nack(Nack { system_id: message.system_id.clone(), ..Default::default() }));
    }

    /// Ends the command side alone.
    pub fn half_close(&mut self) {
        self.commands = None;
    }

    /// The next event, or how the stream ended: `Ok(None)` is status OK.
    pub async fn next(&mut self) -> Result<Option<Event>, Status> {
        in_time(self.events.message()).await.map(|event| event.and_then(|event| event.event))
    }

    /// The next message, however long it takes; `None` at the end. Other events are passed over.
    pub async fn next_message_whenever(&mut self) -> Result<Option<Message>, Status> {
        loop {
            match self.events.message().await?.map(|event| event.event) {
                Some(Some(Event::Message(message))) => return Ok(Some(message)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    pub async fn event(&mut self) -> Event {
        self.next().await.expect("the stream lives").expect("the stream goes on")
    }

    pub async fn subscription_id(&mut self) -> String {
        match self.event().await {
            Event::SubscriptionId(id) => id,
            other => panic!("a subscription id was due, {other:?} came"),
        }
    }

    pub async fn message(&mut self) -> Message {
        match self.event().await {
            Event::Message(message) => message,
            other => panic!("a message was due, {other:?} came"),
        }
    }

    pub async fn role(&mut self) -> RoleChanged {
        match self.event().await {
            Event::Role(role) => role,
            other => panic!("a role was due, {other:?} came"),
        }
    }

    pub async fn lagged(&mut self) -> u64 {
        match self.event().await {
            Event::Lagged(lagged) => lagged.dropped,
            other => panic!("lagged was due, {other:?} came"),
        }
    }

    /// The messages of the next event, which carries some: one, or a batch.
    pub async fn messages(&mut self) -> Vec<Message> {
        match self.event().await {
            Event::Message(message) => vec![message],
            Event::Batch(batch) => batch.messages,
            other => panic!("messages were due, {other:?} came"),
        }
    }

    /// The payload of the next message.
    pub async fn payload(&mut self) -> String {
        payload(&self.message().await)
    }

    /// Receives a message and acks it in the stream.
    pub async fn take(&mut self) -> String {
        let message = self.message().await;
        self.ack(&message);
        payload(&message)
    }

    /// Receives a message that has this payload and is this attempt.
    pub async fn due(&mut self, text: &str, attempt: u32) -> Message {
        let message = self.message().await;
        assert_eq!((payload(&message).as_str(), message.delivery_attempt), (text, attempt));
        message
    }

    /// The same, and acks it in the stream.
    pub async fn take_due(&mut self, text: &str, attempt: u32) {
        let message = self.due(text, attempt).await;
        self.ack(&message);
    }

    /// The status that the stream ends with; events before it are passed over.
    pub async fn end(&mut self) -> Status {
        end_of(async || self.next().await).await
    }

    /// Nothing comes for a while.
    pub async fn quiet(&mut self) {
        let next = tokio::time::timeout(QUIET, self.events.message()).await;
        assert!(next.is_err(), "nothing was due, {next:?} came");
    }
}

/// The status that a stream ends with; what comes before is passed over.
async fn end_of<T>(mut next: impl AsyncFnMut() -> Result<Option<T>, Status>) -> Status {
    loop {
        match next().await {
            Ok(Some(_)) => {}
            Ok(None) => return Status::ok(""),
            Err(status) => return status,
        }
    }
}

/// What is waited for, which comes.
pub async fn in_time<T>(awaited: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, awaited).await.expect("it comes")
}

pub fn payload(message: &Message) -> String {
    String::from_utf8(message.payload.to_vec()).expect("tests publish text")
}

pub fn message(topic: &str, payload: &str) -> PublishRequest {
    PublishRequest {
        topic: topic.into(),
        payload: payload.to_owned().into(),
        message_id: String::new(),
        headers: HashMap::new(),
    }
}

/// Payloads `first..=last` to one topic.
pub fn numbers(topic: &str, first: u32, last: u32) -> Vec<PublishRequest> {
    (first..=last).map(|number| message(topic, &number.to_string())).collect()
}

pub fn multi(patterns: &[&str]) -> OpenSubscription {
    open(DeliveryMode::Multi, "", patterns)
}

pub fn balanced(group: &str, patterns: &[&str]) -> OpenSubscription {
    open(DeliveryMode::Balanced, group, patterns)
}

pub fn singleton(group: &str, patterns: &[&str]) -> OpenSubscription {
    open(DeliveryMode::Singleton, group, patterns)
}

fn open(mode: DeliveryMode, group: &str, patterns: &[&str]) -> OpenSubscription {
    OpenSubscription {
        topic_patterns: patterns.iter().map(|&pattern| pattern.into()).collect(),
        mode: mode.into(),
        consumer_group: group.into(),
        ..Default::default()
    }
}

pub fn ack_by_system_id(subscription_id: &str, system_id: &str) -> AckRequest {
    AckRequest { subscription_id: subscription_id.into(), system_id: system_id.into(), ..Default::default() }
}

pub fn ack_by_message_id(subscription_id: &str, message_id: &str) -> AckRequest {
    AckRequest {
        subscription_id: subscription_id.into(),
        message_id: message_id.into(),
        ..Default::default()
    }
}

pub fn millis(millis: i32) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds: i64::from(millis / 1000), nanos: millis % 1000 * 1_000_000 })
}

/// So long that no test sees its end.
pub const ENDLESS: Option<prost_types::Duration> = Some(prost_types::Duration { seconds: 3600, nanos: 0 });
/// So short that every test sees its end.
pub const BRIEF: Option<prost_types::Duration> =
    Some(prost_types::Duration { seconds: 0, nanos: 100_000_000 });
pub const NEGATIVE: Option<prost_types::Duration> = Some(prost_types::Duration { seconds: 0, nanos: -1 });

/// A status has this code, and words that name what they must.
#[track_caller]
pub fn assert_status(status: &Status, code: Code, words: &[&str]) {
    assert_eq!(status.code(), code, "{status:?}");
    for word in words {
        assert!(status.message().contains(word), "{:?} does not say {word:?}", status.message());
    }
}

/// INVALID_ARGUMENT that names the field, in words and as a google.rpc.BadRequest violation.
#[track_caller]
pub fn assert_invalid(status: &Status, field: &str, words: &[&str]) {
    assert_status(status, Code::InvalidArgument, words);
    assert_status(status, Code::InvalidArgument, &[field]);
    let details = status.get_details_bad_request().expect("BadRequest comes with INVALID_ARGUMENT");
    let named = details.field_violations.iter().any(|it| it.field == field && !it.description.is_empty());
    assert!(named, "{details:?} has no violation of {field}");
}
