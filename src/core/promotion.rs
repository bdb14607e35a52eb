use super::effect::{Effect, EndReason, MemberEvent};
use super::roster::Roster;
use super::subscription::Subscription;
use super::{Books, Core, Counter};
use crate::model::{MemberId, Time};

impl Subscription {
    /// After a change of membership: promotes where nobody is active, and tells those who asked
    /// what became of them. Does nothing in the other modes, and nothing while the broker drains: who
    /// would be promoted now could not get to work any more.
    pub(super) fn settle_roles(&mut self, books: &mut Books, effects: &mut Vec<Effect>) {
        let Roster::Singleton(singleton) = &mut self.roster else { return };
        if books.draining {
            return;
        }
        if let Some(key) = singleton.promote(&mut self.members, &mut books.epoch) {
            let started = MemberEvent::Started(self.id.clone());
            self.members[key].tell(started, effects);
        }
        for (key, role) in singleton.roles() {
            let member = &mut self.members[key];
            if member.control_events && member.told_role != Some(role) {
                member.told_role = Some(role);
                member.tell(MemberEvent::Role(role), effects);
            }
        }
    }
}

impl Core {
    /// The active member hands over and goes to the end of the line; what it held goes to the next.
    pub(super) fn resign(&mut self, now: Time, member: MemberId, effects: &mut Vec<Effect>) {
        let Some(&(key, member_key)) = self.members.get(&member) else { return };
        let subscription = &mut self.subscriptions[key];
        let Roster::Singleton(singleton) = &mut subscription.roster else {
            let mode = subscription.mode.name();
            return self.end_member(now, member, EndReason::ResignOutsideSingleton { mode }, effects);
        };
        if singleton.active() != Some(member_key) {
            return self.books.counters.count(Counter::ResignIgnored, 1);
        }
        singleton.remove(member_key, &mut subscription.members);
        singleton.line_up(member_key, &mut subscription.members);
        subscription.take_back(member_key, &mut self.books, effects);
        subscription.settle_roles(&mut self.books, effects);
        subscription.feed(now, &mut self.books, effects);
        self.note_deadline(key);
    }
}
