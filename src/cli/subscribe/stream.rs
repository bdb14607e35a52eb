use std::collections::VecDeque;
use std::time::Duration;

use futures_channel::mpsc::{UnboundedSender, unbounded};
use tonic::{Code, Status, Streaming};

use crate::cli::client::{self, Client, Fault};
use crate::proto::subscribe_command::Command;
use crate::proto::subscribe_event::Event;
use crate::proto::{Ack, AckRequest, Message, OpenSubscription, SubscribeCommand, SubscribeEvent};

/// How long the broker may take to confirm the last acks.
const GOODBYE: Duration = Duration::from_secs(5);
/// Most ids in one confirming call.
const IDS_A_CALL: usize = 10_000;

/// One Subscribe stream on a connection of its own. Dropping it is leaving.
pub struct Stream {
    client: Client,
    commands: UnboundedSender<SubscribeCommand>,
    events: Streaming<SubscribeEvent>,
    subscription_id: String,
    /// Most acks that can be on their way; none where none are sent.
    max_in_flight: Option<usize>,
    /// The acks that may still be on their way, oldest first: the broker sent the message that is
    /// as many places behind as may be in flight only after it had carried out the ack.
    underway: VecDeque<String>,
}

pub enum Incoming {
    Messages(Vec<Message>),
    Event(Event),
}

impl Stream {
    pub async fn open(
        address: &str,
        open: OpenSubscription,
        max_in_flight: Option<usize>,
    ) -> Result<Self, Fault> {
        let mut client = client::connect(address).await?;
        let (commands, receiver) = unbounded();
        send(&commands, Command::Open(open));
        let events = client.subscribe(receiver).await?.into_inner();
        Ok(Stream {
            client,
            commands,
            events,
            subscription_id: String::new(),
            max_in_flight,
            underway: VecDeque::new(),
        })
    }

    pub async fn next(&mut self) -> Result<Incoming, Fault> {
        loop {
            let Some(event) = self.events.message().await? else {
                return Err(Status::unavailable("the broker ended the stream").into());
            };
            match event.event {
                Some(Event::Message(message)) => return Ok(Incoming::Messages(vec![message])),
                Some(Event::Batch(batch)) => return Ok(Incoming::Messages(batch.messages)),
                Some(event) => {
                    if let Event::SubscriptionId(id) = &event {
                        self.subscription_id.clone_from(id);
                    }
                    return Ok(Incoming::Event(event));
                }
                // Of a kind that this version does not know.
                None => {}
            }
        }
    }

    /// Acks in the stream, where acks are sent.
    pub fn ack(&mut self, system_id: String) {
        let Some(max_in_flight) = self.max_in_flight else { return };
        send(&self.commands, Command::Ack(Ack { system_id: system_id.clone(), ..Default::default() }));
        if self.underway.len() == max_in_flight {
            self.underway.pop_front();
        }
        self.underway.push_back(system_id);
    }

    /// Leaves, once all acks are carried out.
    ///
    /// A reset overtakes what the transport has not sent yet, and acks in the stream are not
    /// answered. So what may be on its way is acked again by the unary call, which is.
    pub async fn close(mut self) -> Result<(), Fault> {
        self.commands.close_channel();
        let confirmed = tokio::time::timeout(GOODBYE, self.confirm()).await;
        confirmed
            .unwrap_or_else(|_| Err(Status::deadline_exceeded("the last acks were not confirmed").into()))
    }

    async fn confirm(&mut self) -> Result<(), Fault> {
        for ids in self.underway.make_contiguous().chunks(IDS_A_CALL) {
            let request = AckRequest {
                subscription_id: self.subscription_id.clone(),
                system_ids: ids.to_vec(),
                ..Default::default()
            };
            match self.client.ack(request).await {
                // Settled by now, or before.
                Ok(_) => {}
                Err(status) if status.code() == Code::NotFound => {}
                Err(status) => return Err(status.into()),
            }
        }
        Ok(())
    }
}

/// What comes after the end of the stream is lost; the events tell of the end.
fn send(commands: &UnboundedSender<SubscribeCommand>, command: Command) {
    let _ = commands.unbounded_send(SubscribeCommand { command: Some(command) });
}
