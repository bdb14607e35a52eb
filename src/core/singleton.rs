use std::collections::BTreeMap;

use slab::Slab;

use super::MemberKey;
use super::effect::Role;
use super::member::Member;

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
    pub fn promote(&mut self, members: &mut Slab<Member>, epoch: &mut u64) -> Option<MemberKey> {
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

    /// The part of each member, the active one first.
    pub fn roles(&self) -> impl Iterator<Item = (MemberKey, Role)> + '_ {
        let epoch = self.epoch;
        let active = self.active.map(|key| (key, Role::Active { epoch }));
        let standbys = (1..).zip(self.line.values());
        active
            .into_iter()
            .chain(standbys.map(move |(position, &key)| (key, Role::Standby { epoch, position })))
    }
}
