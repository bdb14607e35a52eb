//! A publisher: where its messages go, and how.

use std::rc::Rc;

use super::publishing::{self, Publishing};
use super::source::{Pace, Source};
use crate::client::Connection;
use crate::clock;
use crate::crew::Station;
use crate::failure::{Doing, Failure};
use crate::ledger::LaneId;
use crate::pacer::Alarm;
use crate::payload::Template;
use crate::window::Window;

/// Messages of a backlog that are sent and not yet confirmed, at most.
const FILLED_AT_ONCE: usize = 4096;

/// A publisher's task.
#[derive(Clone)]
pub struct Publisher {
    /// Where its messages go, in turns.
    pub lanes: Vec<(LaneId, Template)>,
    pub publishing: Publishing,
    /// Messages sent and not yet confirmed, at most.
    pub outstanding: usize,
    pub pace: Pace,
    /// Subscriptions that get every message too and are in no ledger.
    pub bystanders: u32,
}

impl Publisher {
    /// On a connection of its own, until the window is over and all is confirmed.
    pub async fn run(self, station: Rc<Station>) -> Result<(), Failure> {
        self.run_behind(0, station).await
    }

    /// The same behind a backlog: so many messages that are published before the go, when all subscriptions are there.
    pub async fn run_behind(self, backlog: u64, station: Rc<Station>) -> Result<(), Failure> {
        let connection = Connection::open(&station.trial.address).await.doing("connecting a publisher")?;
        let alarm = Alarm::new().doing("making a timer")?;
        if backlog > 0 {
            station.trial.others_ready().await;
            let alarm = Alarm::new().doing("making a timer")?;
            let (lanes, count) = (self.lanes.clone(), Pace::Count(backlog));
            let source =
                Source::new(lanes, count, self.bystanders, Rc::clone(&station), Window::ENDLESS, alarm);
            publishing::publish(&connection, &source, Publishing::Stream, FILLED_AT_ONCE).await?;
        }
        let window = station.start().await;
        clock::sleep_until(window.start).await;
        let source = Source::new(self.lanes, self.pace, self.bystanders, station, window, alarm);
        publishing::publish(&connection, &source, self.publishing, self.outstanding).await?;
        source.finish();
        Ok(())
    }
}
