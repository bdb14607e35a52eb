use super::effect::{Effect, EndReason};
use super::spec::Overflow;
use super::{Core, Counter, SubscriptionKey};
use crate::model::Message;

impl Core {
    /// Makes room for a message in a subscription, or does what its overflow policy says. Tells whether the
    /// subscription takes it.
    ///
    /// REJECT is not asked here: it refuses before anything is enqueued anywhere.
    pub(super) fn admit(
        &mut self,
        key: SubscriptionKey,
        message: &Message,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let subscription = &self.subscriptions[key];
        let overflow = subscription.options.overflow;
        if overflow != Overflow::Reject && subscription.is_full_for(message, &self.books) {
            if overflow == Overflow::Disconnect {
                let reason = self.overflow_reason(key);
                self.disconnect(key, reason, effects);
                return false;
            }
            if overflow == Overflow::DropNewest || !self.make_room(key, message) {
                self.subscriptions[key].lagged += 1;
                self.books.counters.count(Counter::DroppedNewest, 1);
                return false;
            }
        }
        self.books.counters.count(Counter::Accepted, 1);
        true
    }

    /// Drops what was published first until the message fits. Tells whether it does.
    fn make_room(&mut self, key: SubscriptionKey, message: &Message) -> bool {
        let subscription = &mut self.subscriptions[key];
        while subscription.is_full_for(message, &self.books) {
            if subscription.backlog.pop_oldest().is_none() {
                return false;
            }
            subscription.lagged += 1;
            self.books.counters.count(Counter::DroppedOldest, 1);
        }
        true
    }

    fn overflow_reason(&self, key: SubscriptionKey) -> EndReason {
        let subscription = &self.subscriptions[key];
        let (behind, limit) = (subscription.backlog.len(), subscription.options.max_pending);
        if behind >= limit {
            return EndReason::Overflow { behind, limit };
        }
        EndReason::OverflowBytes {
            behind_bytes: subscription.backlog.bytes(),
            limit_bytes: self.books.config.max_pending_bytes,
        }
    }
}
