use std::collections::BTreeMap;

use slab::Slab;

use super::effect::{Effect, MemberEvent, Role};
use super::member::Member;
use super::subscription::Subscription;
use super::{Books, Counter, MemberKey};
use crate::model::Time;

/// One active member; the others wait in the order in which they came.
///
/// ```text
///   open ──▶ standby ──promote──▶ active ──leave──▶ gone
///               ▲                    │
///               └──────resign────────┘
/// ```
#[derive(Debug, Default)]
pub struct Singleton {
    active: Option<MemberKey>,
    /// Fencing number of the active member.
    epoch: u64,
    /// Standbys by their turn.
    line: BTreeMap<u64, MemberKey>,
    next_turn: u64,
}

impl Singleton {
    pub fn active(&self) -> Option<MemberKey> {
        self.active
    }

    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn standbys(&self) -> usize {
        self.line.len()
    }

    /// Puts a member at the end of the waiting line.
    pub fn line_up(&mut self, key: MemberKey, members: &mut Slab<Member>) {
        members[key].turn = Some(self.next_turn);
        self.line.insert(self.next_turn, key);
        self.next_turn += 1;
    }

    pub fn remove(&mut self, key: MemberKey, members: &mut Slab<Member>) {
        match members[key].turn.take() {
            Some(turn) => {
                self.line.remove(&turn);
            }
            None => self.active = None,
        }
    }

    /// Makes the first of the line active, with a new epoch, where nobody is.
    fn promote(&mut self, members: &mut Slab<Member>, epoch: &mut u64) -> Option<MemberKey> {
        if self.active.is_some() {
            return None;
        }
        let (_, key) = self.line.pop_first()?;
        members[key].turn = None;
        *epoch += 1;
        self.epoch = *epoch;
        self.active = Some(key);
        Some(key)
    }

    fn roles(&self) -> impl Iterator<Item = (MemberKey, Role)> + '_ {
        let epoch = self.epoch;
        let active = self.active.map(|key| (key, Role::Active { epoch }));
        let standbys = (1..).zip(self.line.values());
        active
            .into_iter()
            .chain(standbys.map(move |(position, &key)| (key, Role::Standby { epoch, position })))
    }
}

impl Subscription {
    /// After a change of membership: promotes where nobody is active, and tells those who asked
    /// what became of them. Does nothing in the other modes.
    pub(super) fn settle_roles(&mut self, books: &mut Books, effects: &mut Vec<Effect>) {
        let super::roster::Roster::Singleton(singleton) = &mut self.roster else { return };
        if let Some(key) = singleton.promote(&mut self.members, &mut books.epoch) {
            let started = MemberEvent::Started(self.id.clone());
            effects.push(Effect::Member(self.members[key].id, started));
        }
        for (key, role) in singleton.roles() {
            let member = &mut self.members[key];
            if member.control_events && member.told_role != Some(role) {
                member.told_role = Some(role);
                effects.push(Effect::Member(member.id, MemberEvent::Role(role)));
            }
        }
    }
}

impl super::Core {
    /// The active member hands over and goes to the end of the line; what it held goes to the next.
    pub(super) fn resign(&mut self, now: Time, member: crate::model::MemberId, effects: &mut Vec<Effect>) {
        let Some(&(key, member_key)) = self.members.get(&member) else { return };
        let subscription = &mut self.subscriptions[key];
        let super::roster::Roster::Singleton(singleton) = &mut subscription.roster else {
            let mode = subscription.mode.name();
            return self.end_member(now, member, super::EndReason::ResignOutsideSingleton { mode }, effects);
        };
        if singleton.active() != Some(member_key) {
            return self.books.counters.count(Counter::ResignIgnored, 1);
        }
        singleton.remove(member_key, &mut subscription.members);
        singleton.line_up(member_key, &mut subscription.members);
        subscription.take_back(member_key, &mut self.books);
        subscription.settle_roles(&mut self.books, effects);
        subscription.feed(&mut self.books, effects);
    }
}
