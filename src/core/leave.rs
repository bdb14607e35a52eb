use super::effect::{Effect, EndReason, MemberEvent};
use super::subscription::Subscription;
use super::{Core, Counter, SubscriptionKey};
use crate::model::{MemberId, Time};

impl Core {
    /// A stream is over, says its frontend, which hears when that is done.
    pub(super) fn leave_as_told(&mut self, now: Time, member: MemberId, effects: &mut Vec<Effect>) {
        // Whose stream was ended from here has heard that.
        if self.members.contains_key(&member) {
            self.leave(now, member, effects);
            effects.push(Effect::Member(member, MemberEvent::Left));
        }
    }

    /// A stream is over: what the member held goes to others at once, or as soon as one has room.
    pub(super) fn leave(&mut self, now: Time, member: MemberId, effects: &mut Vec<Effect>) {
        let Some((key, member_key)) = self.members.remove(&member) else { return };
        let subscription = &mut self.subscriptions[key];
        if subscription.members.len() == 1 && subscription.options.linger.is_zero() {
            return self.end(key, effects);
        }
        subscription.take_back(member_key, &mut self.books, effects);
        subscription.roster.remove(member_key, &mut subscription.members);
        subscription.members.remove(member_key);
        if subscription.members.is_empty() {
            subscription.lingers_until = Some(now + subscription.options.linger);
        } else {
            subscription.settle_roles(&mut self.books, effects);
        }
        subscription.feed(now, &mut self.books, effects);
        self.note_deadline(key);
    }

    /// The broker ends a member's stream; it leaves like any other.
    pub(super) fn end_member(
        &mut self,
        now: Time,
        member: MemberId,
        reason: EndReason,
        effects: &mut Vec<Effect>,
    ) {
        effects.push(Effect::Member(member, MemberEvent::End(Box::new(reason))));
        self.leave(now, member, effects);
    }

    /// Drops a subscription with its members and all that it holds, and counts what is lost.
    pub(super) fn end(&mut self, key: SubscriptionKey, effects: &mut Vec<Effect>) {
        let subscription = self.remove_subscription(key, effects);
        self.books.counters.count(Counter::DroppedEnded, subscription.backlog.len());
        self.books.counters.count(Counter::DroppedEndedInFlight, subscription.in_flight.len() as u64);
    }

    /// Ends a subscription that fell too far behind, with each member's stream.
    pub(super) fn disconnect(&mut self, key: SubscriptionKey, reason: EndReason, effects: &mut Vec<Effect>) {
        for (_, member) in &self.subscriptions[key].members {
            effects.push(Effect::Member(member.id, MemberEvent::End(Box::new(reason.clone()))));
        }
        let subscription = self.remove_subscription(key, effects);
        self.books.counters.count(Counter::Disconnected, 1);
        self.books.counters.count(Counter::DroppedDisconnect, subscription.backlog.len());
        self.books.counters.count(Counter::DroppedEndedInFlight, subscription.in_flight.len() as u64);
    }

    fn remove_subscription(&mut self, key: SubscriptionKey, effects: &mut Vec<Effect>) -> Subscription {
        let mut subscription = self.subscriptions.remove(key);
        if let Some(at) = subscription.noted_deadline {
            self.deadlines.remove(&(at, key));
        }
        for (_, member) in &subscription.members {
            self.members.remove(&member.id);
        }
        subscription.give_up_spent(&mut self.books, effects);
        subscription.forget_room(&mut self.books);
        self.books.in_flight -= subscription.in_flight.len() as u64;
        self.index.remove(key, &subscription.patterns);
        self.matched_topic.clear();
        self.by_id.remove(&subscription.id);
        if let Some(group) = &subscription.group {
            self.by_group.remove(group);
        }
        effects.push(Effect::Ended(subscription.id.clone()));
        subscription
    }
}
