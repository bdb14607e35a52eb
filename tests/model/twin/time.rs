//! What happens because time has passed: exactly when it is due, and before anything else.

use std::time::Duration;

use tinybroker::model::Time;

use super::{Subscription, Twin};

/// Of each subscription so many deliveries and so many parked messages are seen to with one input; the rest
/// with the next ones.
const SLICE: usize = 1024;

impl Twin {
    pub(super) fn expire(&mut self) {
        let now = self.now;
        let first_due = |s: &Subscription| s.dues().min().filter(|due| *due <= now);
        let due = self.subscriptions.iter().filter_map(|s| Some((first_due(s)?, s.place, s.serial)));
        let mut due: Vec<(Time, usize, u64)> = due.collect();
        due.sort();
        for (_, _, serial) in due {
            let subscription = self.by_serial(serial).expect("is there");
            if subscription.ends_at.is_some_and(|at| at <= now) {
                self.end(serial, "dropped_subscription_ended");
            } else {
                self.time_out(serial);
                self.unpark(serial);
                self.feed(serial);
            }
        }
    }

    /// Takes back what was held too long: what is due longest first, of the same moment what was published first.
    fn time_out(&mut self, serial: u64) {
        let now = self.now;
        let in_flight = &self.by_serial(serial).expect("is there").in_flight;
        let mut late: Vec<(Time, u64)> =
            in_flight.iter().filter_map(|held| Some((held.due?, held.item.place))).collect();
        late.retain(|(due, _)| *due <= now);
        late.sort();
        late.truncate(SLICE);
        for (_, place) in late {
            let subscription = self.by_serial(serial).expect("is there");
            let at = subscription.in_flight.iter().position(|held| held.item.place == place);
            let item = subscription.take(at.expect("is in flight"));
            self.count("timed_out", 1);
            self.put_back(serial, item);
        }
    }

    fn unpark(&mut self, serial: u64) {
        let now = self.now;
        let waiting = &mut self.by_serial(serial).expect("is there").waiting;
        let mut due: Vec<(Time, u64)> =
            waiting.iter().filter_map(|item| Some((item.parked_until?, item.place))).collect();
        due.retain(|(due, _)| *due <= now);
        due.sort();
        due.truncate(SLICE);
        for item in waiting.iter_mut() {
            if due.iter().any(|(_, place)| *place == item.place) {
                item.parked_until = None;
            }
        }
    }

    /// When a span is over; zero means never.
    pub(super) fn after(&self, span: Duration) -> Option<Time> {
        (!span.is_zero()).then(|| self.now + span)
    }
}
