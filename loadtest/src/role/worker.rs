//! A member that takes messages and, where its receiver is a group, acks them.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use ahash::AHashSet;
use bytes::{Bytes, BytesMut};
use clap::ValueEnum;
use futures_util::future::try_join_all;
use futures_util::stream::{self, FuturesUnordered, StreamExt, TryStreamExt};

use super::completion::Completion;
use super::session::{Arrival, Session};
use crate::client::{Ack, AckCommand, Acked, CallError, Connection, Delivery, frame_into, rpc};
use crate::clock::{self, Nanos};
use crate::crew::{Crew, Station};
use crate::failure::{Doing, Failure};
use crate::ledger::{Delivered, LaneId, Member, ReceiverId};
use crate::payload::Stamp;
use crate::proto::OpenSubscription;
use crate::recorder::timed;

/// Subscriptions of one connection that are being opened at the same time.
pub(super) const OPENED_AT_ONCE: usize = 64;

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

impl fmt::Display for Acking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Acking::Stream => "in-stream acks",
            Acking::Unary => "unary acks",
            Acking::Bulk => "bulk acks",
            Acking::None => "no acks",
        })
    }
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
                let desks = Worker::open_all(workers, &connection, &station).await?;
                station.start().await;
                Desk::work_all(desks, &connection).await
            });
        }
    }

    /// Opens the streams of workers that share a connection.
    pub async fn open_all(
        workers: Vec<Worker>,
        connection: &Connection,
        station: &Rc<Station>,
    ) -> Result<Vec<Desk>, Failure> {
        let open = |worker: Worker| worker.open(connection, station);
        stream::iter(workers).map(open).buffered(OPENED_AT_ONCE).try_collect().await
    }

    /// Opens the stream; as a standby, waits for the promotion.
    pub async fn open(self, connection: &Connection, station: &Rc<Station>) -> Result<Desk, Failure> {
        let session = Session::open(connection, self.open.clone()).await.doing("opening a subscription")?;
        Ok(self.sit_down(session, station))
    }

    /// Takes its place in the ledger, with a stream whose first event has come.
    pub fn sit_down(self, session: Session, station: &Rc<Station>) -> Desk {
        Desk {
            station: Rc::clone(station),
            session,
            member: station.trial.ledger.join(self.receiver),
            acking: self.acking,
            completion: self.completion,
            watch: None,
            taken: Vec::new(),
            unanswered: AHashSet::new(),
        }
    }
}

/// A worker at work.
pub struct Desk {
    station: Rc<Station>,
    session: Session,
    member: Member,
    acking: Acking,
    completion: Option<Arc<Completion>>,
    watch: Option<Watch>,
    /// What came with the last read and is to be settled.
    taken: Vec<(Stamp, Bytes)>,
    /// Acked by calls that have not been answered.
    unanswered: AHashSet<(LaneId, u64)>,
}

/// Hears of every message and when it came.
pub type Watch = Box<dyn Fn(&Stamp, Nanos)>;

impl Desk {
    /// Takes and settles what comes to workers that share a connection, without end.
    pub async fn work_all(mut desks: Vec<Desk>, connection: &Connection) -> Result<(), Failure> {
        try_join_all(desks.iter_mut().map(|desk| desk.work(connection))).await.map(drop)
    }

    /// Takes and settles what comes, until this is dropped: with in-stream acks nothing is lost by that.
    pub async fn work(&mut self, connection: &Connection) -> Result<(), Failure> {
        self.work_until(connection, std::future::pending()).await
    }

    /// The same until something happens; then waits for the acks that are under way.
    pub async fn work_until(
        &mut self,
        connection: &Connection,
        end: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        self.serve(connection, end).await.doing("a worker's stream")
    }

    pub fn watched_by(self, watch: Watch) -> Self {
        Desk { watch: Some(watch), ..self }
    }

    /// Leaves at once: what it holds goes to others.
    pub fn leave(self) {
        self.give_up().cancel();
    }

    /// Tells the ledger that it leaves, which the caller then does by ending the stream.
    pub fn give_up(mut self) -> Session {
        for (lane, sequence) in self.unanswered {
            self.member.acked(lane, sequence, false);
        }
        self.member.died();
        self.session
    }

    async fn serve(
        &mut self,
        connection: &Connection,
        end: impl Future<Output = ()>,
    ) -> Result<(), CallError> {
        tokio::pin!(end);
        let mut is_over = false;
        let mut calls = FuturesUnordered::new();
        while !is_over || !calls.is_empty() {
            if !is_over {
                // Messages may have come together with the first event.
                self.take_all()?;
                if self.acking == Acking::Unary {
                    for (stamp, system_id) in self.taken.drain(..) {
                        self.unanswered.insert((stamp.lane, stamp.sequence));
                        let subscription_id = self.session.subscription_id.clone();
                        calls.push(ack_call(connection, subscription_id, system_id, stamp));
                    }
                } else {
                    self.ack_in_stream()?;
                }
            }
            self.station.trial.gate.look();
            tokio::select! {
                more = self.session.more(), if !is_over => {
                    if !more? {
                        return Err(CallError::Protocol("the broker ended a worker's stream with OK".into()));
                    }
                }
                Some(settled) = calls.next() => self.answered(settled?),
                () = &mut end, if !is_over => is_over = true,
            }
        }
        Ok(())
    }

    /// A call that acked a message was answered.
    fn answered(&mut self, (Stamp { lane, sequence, .. }, settled): (Stamp, u32)) {
        self.unanswered.remove(&(lane, sequence));
        if settled == 1 {
            self.member.acked(lane, sequence, true);
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
        let delivered = self.member.delivered(stamp.lane, stamp.sequence, delivery.attempt);
        let mut recorder = self.station.recorder.borrow_mut();
        recorder.delivered(stamp.intended, now);
        // A number that no message has must not reach the completion, which keeps a place for each.
        if delivered == Delivered::First
            && self.completion.as_ref().is_some_and(|completion| completion.is_complete(stamp.sequence))
        {
            recorder.took(timed::LAST_DELIVERY, stamp.intended, now);
        }
        drop(recorder);
        if let Some(watch) = &self.watch {
            watch(&stamp, now);
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

/// Acks by a call of its own, and says how many deliveries that settled: what remains unsettled is the ledger's to tell.
async fn ack_call(
    connection: &Connection,
    subscription_id: Bytes,
    system_id: Bytes,
    stamp: Stamp,
) -> Result<(Stamp, u32), CallError> {
    let request = Ack { subscription_id, system_id, system_ids: Vec::new() };
    match connection.unary::<Acked>(rpc::ACK, &request).await {
        Ok(acked) => Ok((stamp, acked.settled)),
        Err(error) if error.is_not_found() => Ok((stamp, 0)),
        Err(error) => Err(error),
    }
}
