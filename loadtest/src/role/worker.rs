//! A member that takes messages and, where its receiver is a group, acks them.

use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use clap::ValueEnum;
use futures_util::future::try_join_all;
use futures_util::stream::{self, FuturesUnordered, StreamExt, TryStreamExt};

use super::completion::Completion;
use super::session::{Arrival, Session};
use crate::client::{Ack, AckCommand, Acked, CallError, Connection, Delivery, frame_into, rpc};
use crate::clock;
use crate::crew::{Crew, Station};
use crate::failure::{Doing, Failure};
use crate::ledger::{Member, ReceiverId};
use crate::payload::Stamp;
use crate::proto::OpenSubscription;
use crate::recorder::timed;

/// Subscriptions of one connection that are being opened at the same time.
const OPENED_AT_ONCE: usize = 64;

/// How a worker settles what it got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Acking {
    /// One ack a message in the stream.
    Stream,
    /// One unary call a message.
    Unary,
    /// One ack in the stream for all messages that came together.
    Bulk,
    /// None: a MULTI subscriber.
    #[value(skip)]
    None,
}

/// A worker's task.
#[derive(Clone)]
pub struct Worker {
    pub receiver: ReceiverId,
    pub open: OpenSubscription,
    pub acking: Acking,
    /// Where the last receiver of a message is waited for.
    pub completion: Option<Arc<Completion>>,
}

impl Worker {
    /// Adds workers to a crew, dealt over so many connections.
    pub fn enlist(crew: &mut Crew, workers: Vec<Worker>, connections: usize) {
        let connections = connections.clamp(1, workers.len().max(1));
        let mut hands: Vec<Vec<Worker>> = (0..connections).map(|_| Vec::new()).collect();
        for (at, worker) in workers.into_iter().enumerate() {
            hands[at % connections].push(worker);
        }
        for workers in hands {
            crew.passive(|station| async move {
                let connection =
                    Connection::open(&station.trial.address).await.doing("connecting workers")?;
                let open = |worker: Worker| worker.open(&connection, &station);
                let desks: Vec<Desk> =
                    stream::iter(workers).map(open).buffered(OPENED_AT_ONCE).try_collect().await?;
                station.start().await;
                let work = |desk: Desk| desk.work(&connection);
                try_join_all(desks.into_iter().map(work)).await.doing("a worker's stream").map(drop)
            });
        }
    }

    async fn open(self, connection: &Connection, station: &Rc<Station>) -> Result<Desk, Failure> {
        let session = Session::open(connection, self.open).await.doing("opening a subscription")?;
        let member = station.trial.ledger.join(self.receiver);
        Ok(Desk {
            station: Rc::clone(station),
            session,
            member,
            acking: self.acking,
            completion: self.completion,
            taken: Vec::new(),
        })
    }
}

/// A worker at work.
struct Desk {
    station: Rc<Station>,
    session: Session,
    member: Member,
    acking: Acking,
    completion: Option<Arc<Completion>>,
    /// What came with the last read and is to be settled.
    taken: Vec<(Stamp, Bytes)>,
}

impl Desk {
    async fn work(mut self, connection: &Connection) -> Result<(), CallError> {
        let mut calls = FuturesUnordered::new();
        loop {
            tokio::select! {
                more = self.session.more() => {
                    if !more? {
                        return Err(CallError::Protocol("the broker ended a worker's stream with OK".into()));
                    }
                    self.take_all()?;
                    if self.acking == Acking::Unary {
                        for (stamp, system_id) in self.taken.drain(..) {
                            let subscription_id = self.session.subscription_id.clone();
                            calls.push(ack_call(connection, subscription_id, system_id, stamp));
                        }
                    } else {
                        self.ack_in_stream()?;
                    }
                }
                Some(settled) = calls.next() => {
                    let (stamp, settled) = settled?;
                    if settled == 1 {
                        self.member.acked(stamp.lane, stamp.sequence, true);
                    }
                }
            }
            self.station.trial.gate.look();
        }
    }

    /// Takes note of all that has come in.
    fn take_all(&mut self) -> Result<(), CallError> {
        let now = clock::now();
        while let Some(arrival) = self.session.next_ready()? {
            match arrival {
                Arrival::Message(delivery) => self.take(delivery, now),
                Arrival::Batch(deliveries) => {
                    deliveries.into_iter().for_each(|delivery| self.take(delivery, now))
                }
                Arrival::Lagged(dropped) => {
                    self.station
                        .trial
                        .note(format!("the broker dropped {dropped} messages of a slow member"));
                }
                Arrival::Active | Arrival::Other => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, delivery: Delivery, now: clock::Nanos) {
        let run = self.station.trial.run;
        let Some(stamp) = Stamp::read(&delivery.payload).filter(|stamp| stamp.run == run) else {
            self.station.trial.note("messages of other publishers came too; they are not counted".into());
            return;
        };
        self.member.delivered(stamp.lane, stamp.sequence, delivery.attempt);
        let mut recorder = self.station.recorder.borrow_mut();
        recorder.delivered(stamp.intended, now);
        if self.completion.as_ref().is_some_and(|completion| completion.is_complete(stamp.sequence)) {
            recorder.took(timed::LAST_DELIVERY, stamp.intended, now);
        }
        if self.acking != Acking::None {
            self.taken.push((stamp, delivery.system_id));
        }
    }

    fn ack_in_stream(&mut self) -> Result<(), CallError> {
        if self.taken.is_empty() {
            return Ok(());
        }
        // The ledger first: what has left may be settled, and the publisher's gate open, before this thread goes on.
        for (stamp, _) in &self.taken {
            self.member.acked(stamp.lane, stamp.sequence, false);
        }
        let mut out = BytesMut::with_capacity(32 * self.taken.len());
        let ids = self.taken.drain(..).map(|(_, system_id)| system_id);
        if self.acking == Acking::Bulk {
            let ack = Ack { system_ids: ids.collect(), ..Ack::default() };
            frame_into(&AckCommand { ack: Some(ack) }, &mut out);
        } else {
            for system_id in ids {
                let ack = Ack { system_id, ..Ack::default() };
                frame_into(&AckCommand { ack: Some(ack) }, &mut out);
            }
        }
        self.session.sender.send(out.freeze())
    }
}

/// Acks by a call of its own, and says how many deliveries that settled.
async fn ack_call(
    connection: &Connection,
    subscription_id: Bytes,
    system_id: Bytes,
    stamp: Stamp,
) -> Result<(Stamp, u32), CallError> {
    let request = Ack { subscription_id, system_id, system_ids: Vec::new() };
    let acked: Acked = connection.unary(rpc::ACK, &request).await?;
    Ok((stamp, acked.settled))
}
