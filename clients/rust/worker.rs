//! A worker that stays subscribed: handles, acks or nacks, and comes back when the broker was away.
//!
//! ```sh
//! cargo run --example worker -- --mode balanced --group resizers 'jobs.thumb.*'
//! ```
//!
//! Prints one JSON object a line for each thing that happens.

use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde_json::json;
// In a program of your own: what tonic-prost-build makes of the .proto files.
use tinybroker::proto::broker_client::BrokerClient;
use tinybroker::proto::subscribe_command::Command;
use tinybroker::proto::subscribe_event::Event;
use tinybroker::proto::{
    Ack, AckRequest, DeliveryMode, Message, Nack, NackRequest, OpenSubscription, SubscribeCommand,
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::time::sleep;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

const LONGEST_BACKOFF: Duration = Duration::from_secs(2);
const SETTLE_DEADLINE: Duration = Duration::from_secs(10);

/// Trying again does not help here: the program or its options are wrong.
const FATAL: [Code; 4] =
    [Code::InvalidArgument, Code::FailedPrecondition, Code::AlreadyExists, Code::Unimplemented];

#[derive(Parser)]
struct Options {
    #[arg(long, env = "TINYBROKER_BROKER", default_value = "127.0.0.1:50051")]
    broker: String,
    #[arg(long, value_enum, default_value = "multi")]
    mode: Mode,
    /// Needed in balanced and singleton.
    #[arg(long, default_value = "")]
    group: String,
    /// And nack.
    #[arg(long, value_enum, default_value = "unary")]
    ack: AckWay,
    /// Un-acked messages at once.
    #[arg(long, default_value_t = 0)]
    max_in_flight: u32,
    /// Messages in an event.
    #[arg(long, default_value_t = 0)]
    max_batch: u32,
    /// Seconds that a message may be held.
    #[arg(long, default_value = "0", value_parser = parse_seconds)]
    ack_timeout: Duration,
    /// Attempts before a message is given up.
    #[arg(long, default_value_t = 0)]
    max_deliveries: u32,
    /// Where it goes then, or when discarded.
    #[arg(long, default_value = "")]
    dead_letter_topic: String,
    /// Messages that may wait.
    #[arg(long, default_value_t = 0)]
    max_pending: u64,
    /// Seconds that a message takes.
    #[arg(long, default_value = "0", value_parser = parse_seconds)]
    work: Duration,
    /// A payload that cannot be handled, and is nacked.
    #[arg(long, value_name = "PAYLOAD")]
    fails: Option<String>,
    /// Seconds until it may come again.
    #[arg(long, default_value = "0", value_parser = parse_seconds)]
    nack_delay: Duration,
    /// Nack: it shall never come again.
    #[arg(long)]
    discard: bool,
    /// Nack: it counts as not tried.
    #[arg(long)]
    keep_attempt: bool,
    /// Globs over topics, for example 'order.*'.
    #[arg(required = true)]
    patterns: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Mode {
    Multi,
    Balanced,
    Singleton,
}

#[derive(Clone, Copy, ValueEnum)]
enum AckWay {
    Unary,
    Stream,
    None,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match work(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn work(options: Options) -> Result<(), Box<dyn Error>> {
    let channel = Endpoint::from_shared(format!("http://{}", options.broker))?
        .connect_timeout(Duration::from_secs(5))
        // A stream may rightly be silent for hours: only pings tell a quiet broker from a dead one.
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(Duration::from_secs(10))
        // Connects anew with each call that finds no connection.
        .connect_lazy();
    let stop = signal(SignalKind::terminate())?;
    let client = BrokerClient::new(channel);
    Worker { client, options, stop, subscription_id: String::new(), failures: 0 }.run().await?;
    Ok(())
}

/// Your work goes here; this only takes its time, and tells whether it was done.
async fn handle(message: &Message, options: &Options) -> bool {
    report(json!({
        "event": "message",
        "topic": message.topic,
        "system_id": message.system_id,
        "message_id": message.message_id,
        "attempt": message.delivery_attempt,
        "epoch": message.epoch,
        "headers": message.headers,
        "payload": String::from_utf8_lossy(&message.payload),
    }));
    sleep(options.work).await;
    options.fails.as_ref().is_none_or(|fails| message.payload != fails.as_bytes())
}

fn report(event: serde_json::Value) {
    println!("{event}");
}

struct Worker {
    client: BrokerClient<Channel>,
    options: Options,
    stop: Signal,
    subscription_id: String,
    failures: u32,
}

impl Worker {
    /// Until SIGTERM, or a mistake that trying again does not cure.
    async fn run(mut self) -> Result<(), Status> {
        while let Err(status) = self.subscribe().await {
            if FATAL.contains(&status.code()) {
                return Err(status);
            }
            report(json!({
                "event": "lost",
                "code": format!("{:?}", status.code()),
                "details": status.message(),
            }));
            let pause = self.back_off();
            tokio::select! {
                () = sleep(pause) => {}
                _ = self.stop.recv() => break,
            }
        }
        Ok(())
    }

    /// One stream, from its opening to its end. Leaving it drops the stream, which cancels the call:
    /// what was not acked goes to another worker.
    async fn subscribe(&mut self) -> Result<(), Status> {
        let (commands, receiver) = mpsc::unbounded_channel();
        send(&commands, Command::Open(self.opening()));
        let mut events = self.client.subscribe(UnboundedReceiverStream::new(receiver)).await?.into_inner();
        loop {
            // SIGTERM is looked for only between messages: the one in hand is done first.
            let event = tokio::select! {
                event = events.message() => event?,
                _ = self.stop.recv() => return Ok(()),
            };
            let event = event.ok_or_else(|| Status::unavailable("the stream ended"))?;
            self.react(event.event, &commands).await?;
        }
    }

    fn opening(&self) -> OpenSubscription {
        let mode = match self.options.mode {
            Mode::Multi => DeliveryMode::Multi,
            Mode::Balanced => DeliveryMode::Balanced,
            Mode::Singleton => DeliveryMode::Singleton,
        };
        OpenSubscription {
            topic_patterns: self.options.patterns.clone(),
            mode: mode.into(),
            consumer_group: self.options.group.clone(),
            max_in_flight: self.options.max_in_flight,
            max_batch: self.options.max_batch,
            // Zero is the same as unset, in all that follows.
            ack_timeout: self.options.ack_timeout.try_into().ok(),
            max_deliveries: self.options.max_deliveries,
            dead_letter_topic: self.options.dead_letter_topic.clone(),
            max_pending: self.options.max_pending,
            ..Default::default()
        }
    }

    async fn react(
        &mut self,
        event: Option<Event>,
        commands: &UnboundedSender<SubscribeCommand>,
    ) -> Result<(), Status> {
        match event {
            Some(Event::SubscriptionId(id)) => {
                self.failures = 0;
                report(json!({ "event": "started", "subscription_id": id }));
                self.subscription_id = id;
                Ok(())
            }
            Some(Event::Message(message)) => self.work_off(vec![message], commands).await,
            Some(Event::Batch(batch)) => {
                report(json!({ "event": "batch", "size": batch.messages.len() }));
                self.work_off(batch.messages, commands).await
            }
            // Other events may come, and new kinds later: let them pass.
            _ => Ok(()),
        }
    }

    /// Each message is a delivery of its own, but one ack may settle them all.
    async fn work_off(
        &mut self,
        messages: Vec<Message>,
        commands: &UnboundedSender<SubscribeCommand>,
    ) -> Result<(), Status> {
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for message in messages {
            let outcome = if handle(&message, &self.options).await { &mut done } else { &mut failed };
            outcome.push(message.system_id);
        }
        match self.options.ack {
            AckWay::None => {}
            AckWay::Stream => self.settle_in_stream(done, failed, commands),
            AckWay::Unary => self.settle_by_call(done, failed).await?,
        }
        Ok(())
    }

    fn settle_in_stream(
        &self,
        done: Vec<String>,
        failed: Vec<String>,
        commands: &UnboundedSender<SubscribeCommand>,
    ) {
        if !done.is_empty() {
            send(commands, Command::Ack(Ack { system_ids: done, ..Default::default() }));
        }
        if !failed.is_empty() {
            let nack = Nack {
                system_ids: failed,
                delay: self.options.nack_delay.try_into().ok(),
                discard: self.options.discard,
                keep_attempt: self.options.keep_attempt,
                ..Default::default()
            };
            send(commands, Command::Nack(nack));
        }
    }

    async fn settle_by_call(&mut self, done: Vec<String>, failed: Vec<String>) -> Result<(), Status> {
        let id = self.subscription_id.clone();
        if !done.is_empty() {
            let ack = AckRequest { subscription_id: id.clone(), system_ids: done, ..Default::default() };
            settled(self.client.ack(in_time(ack)).await)?;
        }
        if !failed.is_empty() {
            let nack = NackRequest {
                subscription_id: id,
                system_ids: failed,
                delay: self.options.nack_delay.try_into().ok(),
                discard: self.options.discard,
                keep_attempt: self.options.keep_attempt,
                ..Default::default()
            };
            settled(self.client.nack(in_time(nack)).await)?;
        }
        Ok(())
    }

    /// Longer each time, and different in each worker, so that they do not come back all at once.
    fn back_off(&mut self) -> Duration {
        let shortest = Duration::from_millis(100);
        let longest = LONGEST_BACKOFF.min(2 * shortest * 2u32.pow(self.failures.min(10)));
        self.failures += 1;
        shortest + (longest - shortest).mul_f64(random_fraction())
    }
}

/// What is sent when the stream has ended is lost, and the stream's end tells.
fn send(commands: &UnboundedSender<SubscribeCommand>, command: Command) {
    let _ = commands.send(SubscribeCommand { command: Some(command) });
}

fn in_time<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(SETTLE_DEADLINE);
    request
}

/// NOT_FOUND: the broker took them back meanwhile, and another worker does them again.
fn settled<T>(answer: Result<T, Status>) -> Result<(), Status> {
    match answer {
        Err(status) if status.code() != Code::NotFound => Err(status),
        _ => Ok(()),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, Box<dyn Error + Send + Sync>> {
    Ok(Duration::try_from_secs_f64(text.parse()?)?)
}

/// From the seeds that std makes for hash maps; good enough to spread reconnects.
fn random_fraction() -> f64 {
    RandomState::new().hash_one(()) as f64 / u64::MAX as f64
}
