//! A member of a group that comes and goes, each time on a new connection.

use std::rc::Rc;
use std::time::Duration;

use super::worker::{Desk, Worker};
use crate::client::Connection;
use crate::crew::Station;
use crate::failure::{Doing, Failure};

/// A visitor's task.
pub struct Visitor {
    pub worker: Worker,
    /// Whether it is there before the first message; it must be where nobody else is.
    pub is_early: bool,
    /// How long it takes messages the first time, so that several leave in turns,
    pub first_stay: Duration,
    /// and after that.
    pub stay: Duration,
}

impl Visitor {
    /// Works, leaves with what it holds, and comes back at once, without end. In a SINGLETON group it stands by until
    /// it is promoted, and its stay begins then.
    pub async fn run(self, station: Rc<Station>) -> Result<(), Failure> {
        let mut stay = self.first_stay;
        let mut open = None;
        if self.is_early {
            open = Some(self.come(&station).await?);
        }
        station.start().await;
        loop {
            let (connection, mut desk) = match open.take() {
                Some(open) => open,
                None => self.come(&station).await?,
            };
            tokio::select! {
                ended = desk.work(&connection) => return ended,
                () = tokio::time::sleep(stay) => desk.leave(),
            }
            stay = self.stay;
        }
    }

    async fn come(&self, station: &Rc<Station>) -> Result<(Connection, Desk), Failure> {
        let connection = Connection::open(&station.trial.address).await.doing("connecting a visitor")?;
        let desk = self.worker.clone().open(&connection, station).await?;
        Ok((connection, desk))
    }
}
