/// What a core counts: nothing is dropped, refused or ignored without one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Copies of messages accepted into subscriptions.
    Accepted,
    /// Deliveries, redeliveries included.
    Delivered,
    /// Deliveries after the first of a message in its subscription.
    Redelivered,
    /// Deliveries settled by an ack.
    Acked,
    /// Deliveries for which no ack was asked (MULTI without max_in_flight).
    SentUnacked,
    /// Acks that named nothing in flight.
    AckNotFound,
    /// Deliveries ended by a nack, whatever became of the message.
    Nacked,
    /// Nacks that named nothing in flight.
    NackNotFound,
    /// Deliveries whose holder asked for more time.
    Extended,
    /// Extends that named nothing in flight.
    ExtendNotFound,
    /// Deliveries taken back when their ack_timeout was over.
    TimedOut,
    /// Messages given up for their dead_letter_topic.
    DeadLettered,
    /// Messages dropped after max_deliveries attempts, where there is no dead_letter_topic.
    DroppedMaxDeliveries,
    /// Messages dropped by a nack that discards, where there is no dead_letter_topic.
    DroppedDiscarded,
    /// Resigns of a standby.
    ResignIgnored,
    /// Publishes refused by a full REJECT subscription.
    RefusedFull,
    /// Messages that waited in a subscription that ended with its last member.
    DroppedEnded,
    /// Messages in flight in a subscription that ended.
    DroppedEndedInFlight,
    /// Messages that waited in a subscription ended by the DISCONNECT policy.
    DroppedDisconnect,
    /// Subscriptions ended by the DISCONNECT policy; each also lost the message that did not fit.
    Disconnected,
    /// Messages dropped by DROP_OLDEST.
    DroppedOldest,
    /// Messages dropped by DROP_NEWEST.
    DroppedNewest,
}

impl Counter {
    /// Every counter with its name in metrics and in the admin service.
    pub const ALL: [(Counter, &'static str); 22] = [
        (Counter::Accepted, "accepted"),
        (Counter::Delivered, "delivered"),
        (Counter::Redelivered, "redelivered"),
        (Counter::Acked, "acked"),
        (Counter::SentUnacked, "sent_unacked"),
        (Counter::AckNotFound, "ack_not_found"),
        (Counter::Nacked, "nacked"),
        (Counter::NackNotFound, "nack_not_found"),
        (Counter::Extended, "extended"),
        (Counter::ExtendNotFound, "extend_not_found"),
        (Counter::TimedOut, "timed_out"),
        (Counter::DeadLettered, "dead_lettered"),
        (Counter::DroppedMaxDeliveries, "dropped_max_deliveries"),
        (Counter::DroppedDiscarded, "dropped_discarded"),
        (Counter::ResignIgnored, "resign_ignored"),
        (Counter::RefusedFull, "refused_subscription_full"),
        (Counter::DroppedEnded, "dropped_subscription_ended"),
        (Counter::DroppedEndedInFlight, "dropped_subscription_ended_in_flight"),
        (Counter::DroppedDisconnect, "dropped_disconnect"),
        (Counter::Disconnected, "disconnected_subscriptions"),
        (Counter::DroppedOldest, "dropped_oldest"),
        (Counter::DroppedNewest, "dropped_newest"),
    ];
}

/// What becomes of a copy that was accepted, in the end.
const GONE: [Counter; 9] = [
    Counter::Acked,
    Counter::SentUnacked,
    Counter::DeadLettered,
    Counter::DroppedMaxDeliveries,
    Counter::DroppedDiscarded,
    Counter::DroppedEnded,
    Counter::DroppedEndedInFlight,
    Counter::DroppedDisconnect,
    Counter::DroppedOldest,
];

/// The counts of one core.
#[derive(Debug, Clone, Default)]
pub struct Counters([u64; Counter::ALL.len()]);

impl Counters {
    pub fn get(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// Copies that were accepted and are not gone: what waits and what is in flight.
    pub(crate) fn held(&self) -> u64 {
        let gone: u64 = GONE.iter().map(|&counter| self.get(counter)).sum();
        self.get(Counter::Accepted) - gone
    }

    pub(crate) fn count(&mut self, counter: Counter, by: u64) {
        self.0[counter as usize] += by;
    }

    pub(crate) fn add(&mut self, other: &Counters) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Names and values, in the order of [`Counter::ALL`].
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Counter::ALL.iter().map(|&(counter, name)| (name, self.get(counter)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_stands_at_its_place() {
        for (place, (counter, _)) in Counter::ALL.iter().enumerate() {
            assert_eq!(*counter as usize, place);
        }
    }
}
