//! Subscribers that wait for one message each.

use std::rc::Rc;

use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::session::{Arrival, Session};
use super::worker::OPENED_AT_ONCE;
use crate::client::{CallError, Connection};
use crate::clock::{self, Nanos};
use crate::crew::Station;
use crate::failure::{Doing, Failure};
use crate::ledger::{Member, ReceiverId};
use crate::payload::Stamp;
use crate::proto::OpenSubscription;
use crate::recorder::timed;

/// A subscriber's task.
pub struct Sleeper {
    pub receiver: ReceiverId,
    pub open: OpenSubscription,
}

impl Sleeper {
    /// Runs sleepers that share a connection. `wake_delay`: from the end of what is measured to the first
    /// message.
    pub async fn run_all(
        sleepers: Vec<Sleeper>,
        wake_delay: Nanos,
        station: Rc<Station>,
    ) -> Result<(), Failure> {
        let connection = Connection::open(&station.trial.address).await.doing("connecting subscribers")?;
        let open = |sleeper: Sleeper| sleeper.open(&connection, &station);
        let streams: Vec<Stream> =
            stream::iter(sleepers).map(open).buffered(OPENED_AT_ONCE).try_collect().await?;
        let wake = station.start().await.until + wake_delay;
        let listen = |stream: Stream| stream.listen(wake, &station);
        try_join_all(streams.into_iter().map(listen)).await.doing("a subscriber's stream").map(drop)
    }

    async fn open(self, connection: &Connection, station: &Station) -> Result<Stream, Failure> {
        let begun = clock::now();
        let session = Session::open(connection, self.open).await.doing("opening a subscription")?;
        station.recorder.borrow_mut().time(timed::OPEN, clock::now() - begun);
        Ok(Stream { session, member: station.trial.ledger.join(self.receiver) })
    }
}

struct Stream {
    session: Session,
    member: Member,
}

impl Stream {
    /// Goes on after its message: a second one would be a double, which the ledger tells.
    async fn listen(mut self, wake: Nanos, station: &Station) -> Result<(), CallError> {
        while let Some(arrival) = self.session.next().await? {
            let Arrival::Message(delivery) = arrival else { continue };
            let now = clock::now();
            let Some(stamp) = Stamp::read(&delivery.payload).filter(|stamp| stamp.run == station.trial.run)
            else {
                station.trial.note("messages of other publishers came too; they are not counted".into());
                continue;
            };
            self.member.delivered(stamp.lane, stamp.sequence, delivery.attempt);
            let mut recorder = station.recorder.borrow_mut();
            recorder.time(timed::WAKE, now.saturating_sub(wake));
            recorder.time(timed::SENT, now.saturating_sub(stamp.intended));
        }
        Err(CallError::Protocol("the broker ended a subscriber's stream with OK".into()))
    }
}
