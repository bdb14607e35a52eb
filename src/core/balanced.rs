use std::collections::BTreeMap;

use slab::Slab;

use super::MemberKey;
use super::member::Member;

/// Round robin over the members that have room.
///
/// A member without room loses its place and joins the end of the round when it gets room again.
/// So the pointer survives joins and leaves without favouring anybody.
#[derive(Debug, Default)]
pub struct Balanced {
    /// Members with room by their turn.
    round: BTreeMap<u64, MemberKey>,
    next_turn: u64,
}

impl Balanced {
    pub fn next(&self) -> Option<MemberKey> {
        self.round.values().next().copied()
    }

    /// Puts the member at the end of the round, if it has room and is not in it.
    pub fn note_room(&mut self, key: MemberKey, members: &mut Slab<Member>) {
        let member = &mut members[key];
        if member.turn.is_none() && member.has_room() {
            member.turn = Some(self.next_turn);
            self.round.insert(self.next_turn, key);
            self.next_turn += 1;
        }
    }

    pub fn remove(&mut self, key: MemberKey, members: &mut Slab<Member>) {
        if let Some(turn) = members[key].turn.take() {
            self.round.remove(&turn);
        }
    }

    pub fn is_in_round(&self, turn: u64, key: MemberKey) -> bool {
        self.round.get(&turn) == Some(&key)
    }
}
