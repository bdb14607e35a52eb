//! What happens because time has passed: a subscription that lingered ends, a delivery that was held too long goes
//! to others, a parked message is ready.

use super::effect::Effect;
use super::subscription::Subscription;
use super::{Books, Core, Counter, SubscriptionKey};
use crate::model::Time;

/// Deliveries and parked messages of one subscription that one input works off; the rest stays due.
const WORKED_OFF: usize = 1024;

impl Core {
    /// Does what is due by `now`, of each subscription a bounded part.
    pub(super) fn expire(&mut self, now: Time, effects: &mut Vec<Effect>) {
        if self.deadlines.first().is_none_or(|&(at, _)| at > now) {
            return;
        }
        let due: Vec<SubscriptionKey> =
            self.deadlines.iter().take_while(|&&(at, _)| at <= now).map(|&(_, key)| key).collect();
        for key in due {
            let subscription = &mut self.subscriptions[key];
            if subscription.lingers_until.is_some_and(|at| at <= now) {
                self.end(key, effects);
                continue;
            }
            subscription.work_off(now, &mut self.books, effects);
            subscription.feed(now, &mut self.books, effects);
            self.note_deadline(key);
        }
    }

    /// Keeps the order of deadlines true; to be called when a subscription has changed.
    pub(super) fn note_deadline(&mut self, key: SubscriptionKey) {
        let subscription = &mut self.subscriptions[key];
        let next = subscription.next_deadline();
        let noted = std::mem::replace(&mut subscription.noted_deadline, next);
        if noted == next {
            return;
        }
        if let Some(at) = noted {
            self.deadlines.remove(&(at, key));
        }
        if let Some(at) = next {
            self.deadlines.insert((at, key));
        }
    }
}

impl Subscription {
    /// When time changes something here next.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let earlier = |one: Option<Time>, other: Option<Time>| match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            _ => one.or(other),
        };
        earlier(self.lingers_until, earlier(self.in_flight.next_due(), self.backlog.next_due()))
    }

    fn work_off(&mut self, now: Time, books: &mut Books, effects: &mut Vec<Effect>) {
        for _ in 0..WORKED_OFF {
            let Some(slot) = self.in_flight.due(now) else { break };
            let entry = self.release(slot, books);
            books.counters.count(Counter::TimedOut, 1);
            self.put_back(entry, None, books, effects);
        }
        for _ in 0..WORKED_OFF {
            if !self.backlog.unpark(now) {
                break;
            }
        }
    }
}
