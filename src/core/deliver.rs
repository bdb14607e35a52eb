use super::effect::{Delivery, Effect, MemberEvent};
use super::entry::Entry;
use super::roster::Roster;
use super::subscription::Subscription;
use super::{Books, Core, Counter, MemberKey};
use crate::model::{MemberId, Time};

impl Subscription {
    /// Hands out what waits, as long as some member has room. To be called after every change of what
    /// waits or is in flight.
    pub(super) fn feed(&mut self, now: Time, books: &mut Books, effects: &mut Vec<Effect>) {
        while !books.draining && self.backlog.has_ready() {
            let Some(key) = self.roster.next(&self.members) else { break };
            let Some(entry) = self.backlog.pop() else { break };
            self.deliver(now, key, entry, books, effects);
        }
        self.note_room(books);
    }

    /// The member that gets the next message at once, where nothing waits: most messages need no place in the queue.
    pub(super) fn next_idle(&self, books: &Books) -> Option<MemberKey> {
        if books.draining || !self.backlog.is_empty() { None } else { self.roster.next(&self.members) }
    }

    /// Hands a message to the member whose turn it is.
    pub(super) fn deliver(
        &mut self,
        now: Time,
        key: MemberKey,
        mut entry: Entry,
        books: &mut Books,
        effects: &mut Vec<Effect>,
    ) {
        let member = &mut self.members[key];
        debug_assert!(member.has_room(), "I2: in flight stays within the member's credit");
        entry.deliveries += 1;
        entry.attempts += 1;
        books.counters.count(Counter::Delivered, 1);
        if entry.deliveries > 1 {
            books.counters.count(Counter::Redelivered, 1);
        }
        if self.lagged > 0 {
            let lagged = MemberEvent::Lagged(std::mem::take(&mut self.lagged));
            member.tell(lagged, effects);
        }
        let epoch = match &self.roster {
            Roster::Singleton(singleton) => singleton.epoch(),
            _ => 0,
        };
        member.use_window(entry.message.cost());
        let (delivery, attempt) = (entry.deliveries, entry.attempts);
        let message = if member.asks_acks() {
            member.in_flight += 1;
            books.in_flight += 1;
            let timeout = self.options.ack_timeout;
            let due = (!timeout.is_zero()).then(|| now + timeout);
            let message = entry.message.clone();
            self.in_flight.hold(key, &mut member.held, entry, due);
            message
        } else {
            books.counters.count(Counter::SentUnacked, 1);
            entry.message
        };
        let delivery = Delivery { message, delivery, attempt, epoch };
        member.tell_delivery(delivery, books.input, effects);
        self.roster.had_its_turn(key, &mut self.members);
    }
}

impl Core {
    /// A member's connection has taken some of what was sent to it.
    pub(super) fn credit(
        &mut self,
        now: Time,
        member: MemberId,
        messages: u32,
        bytes: u64,
        effects: &mut Vec<Effect>,
    ) {
        let Some(&(key, member_key)) = self.members.get(&member) else { return };
        let subscription = &mut self.subscriptions[key];
        subscription.members[member_key].refill_window(messages, bytes);
        subscription.roster.note_room(member_key, &mut subscription.members);
        subscription.feed(now, &mut self.books, effects);
        self.note_deadline(key);
    }
}
