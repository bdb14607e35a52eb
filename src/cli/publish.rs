use std::collections::HashMap;
use std::io::{Read, Write};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::CommandResult;
use super::client::{self, Client, Fault, Stop};
use crate::config::{Header, PubOptions};
use crate::limits;
use crate::proto::PublishRequest;

/// Stands for the number of the message.
const NUMBER: &str = "{n}";

/// Publishes one message after the other and says what became of them.
pub fn publish(options: PubOptions) -> CommandResult {
    let template = Template::new(&options)?;
    let mut tally = Tally::default();
    let done = client::run(publish_all(&options, &template, &mut tally));
    if tally.published > 0 {
        // They are published, whether anybody reads this or not.
        let _ = writeln!(std::io::stdout(), "{}", tally.summary());
    }
    if let Some(warning) = tally.warning() {
        client::say(&format!("tinybroker: warning: {warning}"));
    }
    Ok(done?)
}

async fn publish_all(options: &PubOptions, template: &Template, tally: &mut Tally) -> Result<(), Fault> {
    let mut stop = Stop::catch()?;
    let all = async {
        let mut client = client::connect(&options.connection.broker).await?;
        let schedule = Schedule { start: Instant::now(), rate: options.rate };
        for number in 1..=options.count {
            schedule.turn_of(number).await;
            tally.count(publish_one(&mut client, template.message(number)).await?);
        }
        Ok(())
    };
    tokio::select! {
        done = all => done,
        () = stop.requested() => Err(Fault::Usage("interrupted".into())),
    }
}

/// Returns how many subscriptions took the message.
async fn publish_one(client: &mut Client, message: PublishRequest) -> Result<u32, Fault> {
    Ok(client.publish(message).await?.into_inner().subscriptions)
}

/// When each message is due. A message that is late does not move those after it.
struct Schedule {
    start: Instant,
    rate: Option<f64>,
}

impl Schedule {
    async fn turn_of(&self, number: u64) {
        let Some(rate) = self.rate else { return };
        let due = Duration::try_from_secs_f64((number - 1) as f64 / rate).unwrap_or(Duration::MAX);
        tokio::time::sleep(due.saturating_sub(self.start.elapsed())).await;
    }
}

/// The message, before its number is put in.
struct Template {
    topic: String,
    payload: Payload,
    message_id: String,
    headers: HashMap<String, String>,
}

enum Payload {
    Text(String),
    Bytes(Bytes),
}

impl Template {
    fn new(options: &PubOptions) -> Result<Self, Fault> {
        Ok(Template {
            topic: options.topic.clone(),
            message_id: options.message_id.clone(),
            headers: headers(&options.headers)?,
            payload: match options.payload.as_str() {
                "-" => Payload::Bytes(read_payload(std::io::stdin())?),
                text => Payload::Text(text.into()),
            },
        })
    }

    fn message(&self, number: u64) -> PublishRequest {
        let numbered = |text: &str| text.replace(NUMBER, &number.to_string());
        PublishRequest {
            topic: numbered(&self.topic),
            message_id: numbered(&self.message_id),
            headers: self.headers.clone(),
            payload: match &self.payload {
                Payload::Text(text) => numbered(text).into(),
                Payload::Bytes(bytes) => bytes.clone(),
            },
        }
    }
}

fn headers(given: &[Header]) -> Result<HashMap<String, String>, Fault> {
    let mut headers = HashMap::new();
    for Header { key, value } in given {
        if headers.insert(key.clone(), value.clone()).is_some() {
            return Err(Fault::Usage(format!("header {key:?} is given twice: a key has one value")));
        }
    }
    Ok(headers)
}

/// Reads to the end, unless that is more than any message may have.
fn read_payload(input: impl Read) -> Result<Bytes, Fault> {
    let mut payload = Vec::new();
    input.take(limits::MESSAGE_BYTES as u64 + 1).read_to_end(&mut payload)?;
    if payload.len() > limits::MESSAGE_BYTES {
        let most = limits::MESSAGE_BYTES;
        return Err(Fault::Usage(format!("standard input is longer than a message may be ({most} bytes)")));
    }
    Ok(payload.into())
}

/// What became of the messages.
#[derive(Default)]
struct Tally {
    published: u64,
    unheard: u64,
    /// Fewest and most subscriptions that one message reached.
    reached: Option<RangeInclusive<u32>>,
}

impl Tally {
    fn count(&mut self, subscriptions: u32) {
        self.published += 1;
        self.unheard += u64::from(subscriptions == 0);
        let (least, most) =
            self.reached.take().map_or((subscriptions, subscriptions), RangeInclusive::into_inner);
        self.reached = Some(least.min(subscriptions)..=most.max(subscriptions));
    }

    fn summary(&self) -> String {
        let messages = if self.published == 1 { "message" } else { "messages" };
        let reached = match self.reached.clone().unwrap_or(0..=0).into_inner() {
            (1, 1) => "1 subscription".into(),
            (least, most) if least == most => format!("{most} subscriptions"),
            (least, most) => format!("{least} to {most} subscriptions"),
        };
        format!("published {} {messages} to {reached}", self.published)
    }

    fn warning(&self) -> Option<String> {
        match self.unheard {
            0 => None,
            1 if self.published == 1 => Some("nobody was listening, so the message is gone".into()),
            unheard => Some(format!(
                "nobody was listening to {unheard} of {} messages, so they are gone",
                self.published
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(reached: &[u32]) -> Tally {
        let mut tally = Tally::default();
        reached.iter().for_each(|&subscriptions| tally.count(subscriptions));
        tally
    }

    #[test]
    fn the_summary_tells_how_many_subscriptions_each_message_reached() {
        assert_eq!(tally(&[1]).summary(), "published 1 message to 1 subscription");
        assert_eq!(tally(&[2, 2, 2]).summary(), "published 3 messages to 2 subscriptions");
        assert_eq!(tally(&[1, 0, 3]).summary(), "published 3 messages to 0 to 3 subscriptions");
        assert_eq!(tally(&[2, 1]).warning(), None);
        assert!(tally(&[0]).warning().is_some());
        assert!(tally(&[1, 0, 0]).warning().is_some_and(|text| text.contains("2 of 3")));
    }

    #[test]
    fn a_payload_that_no_broker_takes_is_not_read_to_its_end() {
        assert!(matches!(read_payload(std::io::repeat(0)), Err(Fault::Usage(_))));
        let most = std::io::repeat(0).take(limits::MESSAGE_BYTES as u64);
        assert_eq!(read_payload(most).map(|bytes| bytes.len()).ok(), Some(limits::MESSAGE_BYTES));
    }
}
