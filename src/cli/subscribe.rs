mod backoff;
mod format;
mod stream;

use std::time::Duration;

use tokio::io::{AsyncWriteExt, Stdout};

use self::backoff::Backoff;
use self::format::Format;
use self::stream::{Incoming, Stream};
use super::CommandResult;
use super::client::{self, Fault, Stop};
use crate::config::{AckMode, SubOptions};
use crate::proto::subscribe_event::Event;
use crate::proto::{DeliveryMode, Message, OpenSubscription};

/// How long a reader of standard output may take for its last line, once the person wants to end.
const LAST_LINE: Duration = Duration::from_secs(1);

/// Prints what comes until the person, the count or the reader of the output ends it.
pub fn subscribe(options: SubOptions) -> CommandResult {
    check(&options)?;
    client::run(async { Subscriber::new(options)?.run().await })?;
    Ok(())
}

/// Refuses what would wait for ever.
fn check(options: &SubOptions) -> Result<(), Fault> {
    match (options.ack, options.count, options.in_flight()) {
        (AckMode::None, Some(count), Some(held)) if count > u64::from(held) => Err(Fault::Usage(format!(
            "with --ack none only {held} of --count {count} messages would come: give --max-in-flight {count}"
        ))),
        _ => Ok(()),
    }
}

struct Subscriber {
    options: SubOptions,
    format: Format,
    stdout: Stdout,
    stop: Stop,
    backoff: Backoff,
    /// The broker has answered once, so that the options are good and a failure may pass.
    was_open: bool,
    printed: u64,
}

/// What became of a line.
#[derive(PartialEq, Eq)]
enum Printed {
    Yes,
    /// Nobody reads any more.
    Unread,
}

impl Subscriber {
    fn new(options: SubOptions) -> Result<Self, Fault> {
        Ok(Subscriber {
            format: if options.json { Format::Json } else { Format::Text },
            stdout: tokio::io::stdout(),
            stop: Stop::catch()?,
            backoff: Backoff::new(),
            was_open: false,
            printed: 0,
            options,
        })
    }

    /// One stream after the other, until one need not be followed any further.
    async fn run(mut self) -> Result<(), Fault> {
        loop {
            let fault = match self.follow_one_stream().await {
                Ok(Some(stream)) => return self.leave(stream).await,
                Ok(None) => return Ok(()),
                Err(fault) if self.options.no_reconnect || !self.was_open || !fault.is_passing() => {
                    return Err(fault);
                }
                Err(fault) => fault,
            };
            let pause = self.backoff.pause();
            client::say(&format!("tinybroker: {fault}; trying again in {} ms", pause.as_millis()));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stop.requested() => return Ok(()),
            }
        }
    }

    /// Returns the stream when it is to be left; none where the person ended this before it began.
    async fn follow_one_stream(&mut self) -> Result<Option<Stream>, Fault> {
        let opening = Stream::open(&self.options.connection.broker, open(&self.options), acks(&self.options));
        let mut stream = tokio::select! {
            stream = opening => stream?,
            () = self.stop.requested() => return Ok(None),
        };
        self.print_all(&mut stream).await?;
        Ok(Some(stream))
    }

    /// With all acks carried out, unless the person presses on.
    async fn leave(&mut self, stream: Stream) -> Result<(), Fault> {
        tokio::select! {
            closed = stream.close() => closed,
            () = self.stop.next() => Ok(()),
        }
    }

    async fn print_all(&mut self, stream: &mut Stream) -> Result<(), Fault> {
        loop {
            let incoming = tokio::select! {
                incoming = stream.next() => incoming?,
                () = self.stop.requested() => return Ok(()),
            };
            self.was_open = true;
            self.backoff.reset();
            let go_on = match incoming {
                Incoming::Messages(messages) => self.take(messages, stream).await?,
                Incoming::Event(event) => self.report(&event).await?,
            };
            if !go_on {
                return Ok(());
            }
        }
    }

    /// Prints messages and acks each. Tells whether more are wanted.
    async fn take(&mut self, messages: Vec<Message>, stream: &mut Stream) -> Result<bool, Fault> {
        for message in messages {
            if self.print(self.format.message(&message)).await? == Printed::Unread {
                return Ok(false);
            }
            stream.ack(message.system_id);
            self.printed += 1;
            if self.options.count == Some(self.printed) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Says what happened: among the messages in JSON, apart from them in text.
    async fn report(&mut self, event: &Event) -> Result<bool, Fault> {
        match (self.format.event(event), self.format) {
            (Some(line), Format::Json) => return Ok(self.print(line).await? == Printed::Yes),
            (Some(line), Format::Text) => client::say(line.trim_end()),
            (None, _) => {}
        }
        Ok(true)
    }

    async fn print(&mut self, line: String) -> Result<Printed, Fault> {
        let writing = async {
            self.stdout.write_all(line.as_bytes()).await?;
            self.stdout.flush().await
        };
        // A reader that does not read must not keep the person from ending this.
        let hurried = async {
            self.stop.requested().await;
            tokio::time::sleep(LAST_LINE).await;
        };
        let written = tokio::select! {
            written = writing => written,
            () = hurried => return Ok(Printed::Unread),
        };
        match written {
            Ok(()) => Ok(Printed::Yes),
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(Printed::Unread),
            Err(error) => Err(error.into()),
        }
    }
}

fn open(options: &SubOptions) -> OpenSubscription {
    let mode = match (&options.group, options.singleton) {
        (None, _) => DeliveryMode::Multi,
        (Some(_), false) => DeliveryMode::Balanced,
        (Some(_), true) => DeliveryMode::Singleton,
    };
    OpenSubscription {
        topic_patterns: options.patterns.clone(),
        mode: mode.into(),
        consumer_group: options.group.clone().unwrap_or_default(),
        max_in_flight: options.max_in_flight,
        control_events: true,
        ..Default::default()
    }
}

/// Most acks that can be on their way, where any are sent.
fn acks(options: &SubOptions) -> Option<usize> {
    let in_flight = options.in_flight()?;
    (options.ack == AckMode::Auto).then_some(in_flight as usize)
}
