//! An open Subscribe stream.

use bytes::Bytes;
use prost::Message;

use crate::client::{CallError, Connection, Delivery, Event, EventKind, Receiver, Sender, frame, rpc};
use crate::proto::subscribe_command::Command;
use crate::proto::{OpenSubscription, SubscribeCommand};

pub struct Session {
    pub sender: Sender,
    receiver: Receiver,
    /// Empty until the first event says it; a standby's comes with its promotion.
    pub subscription_id: Bytes,
}

/// What a stream brought, beside its subscription_id.
#[derive(Debug)]
pub enum Arrival {
    Message(Delivery),
    Batch(Vec<Delivery>),
    /// Messages that the broker dropped for this subscription.
    Lagged(u64),
    /// This member became active, or learned its subscription_id: from now on it misses nothing.
    Active,
    /// Its place in a SINGLETON group, or a shutdown.
    Other,
}

impl Session {
    /// Sends `open`, and waits for the response headers alone.
    pub async fn begin(connection: &Connection, open: OpenSubscription) -> Result<Session, CallError> {
        let (mut sender, mut receiver) = connection.call(rpc::SUBSCRIBE).await?;
        sender.send(frame(&SubscribeCommand { command: Some(Command::Open(open)) }))?;
        receiver.headers().await?;
        Ok(Session { sender, receiver, subscription_id: Bytes::new() })
    }

    /// Waits for the first event too: from then on the subscription misses nothing.
    pub async fn open(connection: &Connection, open: OpenSubscription) -> Result<Session, CallError> {
        let mut session = Session::begin(connection, open).await?;
        while session.subscription_id.is_empty() {
            if session.next().await?.is_none() {
                return Err(CallError::Protocol("the stream ended before its first event".into()));
            }
        }
        Ok(session)
    }

    /// Waits for more to come in. False once the broker has ended the stream with OK. May be dropped half way.
    pub async fn more(&mut self) -> Result<bool, CallError> {
        self.receiver.more().await
    }

    /// The next of what has come in.
    pub fn next_ready(&mut self) -> Result<Option<Arrival>, CallError> {
        let Some(bytes) = self.receiver.next_ready()? else { return Ok(None) };
        Ok(Some(match Event::decode(bytes)?.kind {
            Some(EventKind::Message(delivery)) => Arrival::Message(delivery),
            Some(EventKind::Batch(batch)) => Arrival::Batch(batch.messages),
            Some(EventKind::Lagged(lagged)) => Arrival::Lagged(lagged.dropped),
            Some(EventKind::SubscriptionId(id)) => {
                self.subscription_id = id;
                Arrival::Active
            }
            Some(EventKind::Role(_) | EventKind::Draining(_)) | None => Arrival::Other,
        }))
    }

    /// The next arrival; none once the broker has ended the stream with OK.
    pub async fn next(&mut self) -> Result<Option<Arrival>, CallError> {
        loop {
            if let Some(arrival) = self.next_ready()? {
                return Ok(Some(arrival));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    /// Leaves at once.
    pub fn cancel(self) {
        self.sender.cancel();
    }
}
