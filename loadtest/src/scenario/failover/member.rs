//! A member that acks what comes at once, until it is told to hold; then it waits for its death.

use std::convert::Infallible;
use std::io;

use bytes::BytesMut;
use tokio::sync::Notify;

use super::word::{Taken, Word};
use crate::client::{Ack, AckCommand, CallError, Connection, Delivery, frame_into};
use crate::clock::{self, Nanos};
use crate::failure::{Doing, Failure};
use crate::payload::Stamp;
use crate::proto::OpenSubscription;
use crate::role::{Arrival, Session};

/// Serves without end, and says what it sees: a message before it is acked, and that it holds after its last ack.
pub async fn serve(
    connection: &Connection,
    open: OpenSubscription,
    hold: &Notify,
    mut say: impl FnMut(Vec<Word>) -> io::Result<()>,
) -> Result<Infallible, Failure> {
    let mut session = Session::begin(connection, open).await.doing("opening a member's stream")?;
    let mut is_holding = false;
    loop {
        tokio::select! {
            more = session.more() => {
                if !more.doing("a member's stream")? {
                    return Err(Failure::Unexpected("the broker ended a member's stream with OK".into()));
                }
                let mut read = Read { at: clock::now(), acks: !is_holding, ..Read::default() };
                read.all(&mut session).doing("reading what came to a member")?;
                say(read.words).doing("saying what came to a member")?;
                if !read.out.is_empty() {
                    session.sender.send(read.out.freeze()).doing("acking")?;
                }
            }
            () = hold.notified(), if !is_holding => {
                is_holding = true;
                say(vec![Word::Holding]).doing("saying that a member holds")?;
            }
        }
    }
}

/// What came with one read, and the acks for it.
#[derive(Default)]
struct Read {
    at: Nanos,
    acks: bool,
    words: Vec<Word>,
    out: BytesMut,
}

impl Read {
    fn all(&mut self, session: &mut Session) -> Result<(), CallError> {
        while let Some(arrival) = session.next_ready()? {
            match arrival {
                Arrival::Message(delivery) => self.take(delivery)?,
                Arrival::Batch(deliveries) => {
                    deliveries.into_iter().try_for_each(|delivery| self.take(delivery))?
                }
                Arrival::Active => self.words.push(Word::Active { at: self.at }),
                Arrival::Lagged(_) | Arrival::Other => self.words.push(Word::Present),
            }
        }
        Ok(())
    }

    fn take(&mut self, delivery: Delivery) -> Result<(), CallError> {
        let foreign = || CallError::Protocol("a message that the load test did not publish".into());
        let Stamp { lane, sequence, intended, .. } = Stamp::read(&delivery.payload).ok_or_else(foreign)?;
        let (at, attempt, acks) = (self.at, delivery.attempt, self.acks);
        self.words.push(Word::Took(Taken { at, lane, sequence, attempt, intended, acks }));
        if acks {
            let ack = Ack { system_id: delivery.system_id, ..Ack::default() };
            frame_into(&AckCommand { ack: Some(ack) }, &mut self.out);
        }
        Ok(())
    }
}
