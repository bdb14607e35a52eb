//! A worker that stays subscribed: handles, acks, and comes back when the broker was away.
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
use tinybroker::proto::{Ack, AckRequest, DeliveryMode, Message, OpenSubscription, SubscribeCommand};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::time::sleep;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

const LONGEST_BACKOFF: Duration = Duration::from_secs(2);
const ACK_DEADLINE: Duration = Duration::from_secs(10);

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
    #[arg(long, value_enum, default_value = "unary")]
    ack: AckWay,
    /// Un-acked messages at once.
    #[arg(long, default_value_t = 0)]
    max_in_flight: u32,
    /// Seconds that a message takes.
    #[arg(long, default_value_t = 0.0)]
    work: f64,
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

/// Your work goes here; this only takes its time.
async fn handle(message: &Message, seconds: f64) {
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
    sleep(Duration::from_secs_f64(seconds)).await;
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
            Some(Event::Message(message)) => {
                handle(&message, self.options.work).await;
                self.ack(message.system_id, commands).await
            }
            // Other events may come, and new kinds later: let them pass.
            _ => Ok(()),
        }
    }

    async fn ack(
        &mut self,
        system_id: String,
        commands: &UnboundedSender<SubscribeCommand>,
    ) -> Result<(), Status> {
        match self.options.ack {
            AckWay::None => Ok(()),
            AckWay::Stream => {
                send(commands, Command::Ack(Ack { system_id, ..Default::default() }));
                Ok(())
            }
            AckWay::Unary => {
                let subscription_id = self.subscription_id.clone();
                let mut request =
                    Request::new(AckRequest { subscription_id, system_id, ..Default::default() });
                request.set_timeout(ACK_DEADLINE);
                match self.client.ack(request).await {
                    // The broker took the message back meanwhile, and another worker does it again.
                    Err(status) if status.code() == Code::NotFound => Ok(()),
                    answer => answer.map(|_| ()),
                }
            }
        }
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

/// From the seeds that std makes for hash maps; good enough to spread reconnects.
fn random_fraction() -> f64 {
    RandomState::new().hash_one(()) as f64 / u64::MAX as f64
}
