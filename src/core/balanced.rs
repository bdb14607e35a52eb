use std::collections::VecDeque;

use slab::Slab;

use super::MemberKey;
use super::member::Member;

/// Round robin over the members that have room.
///
/// A member without room loses its place and joins the end of the round when it gets room again.
/// So the pointer survives joins and leaves without favouring anybody.
#[derive(Debug, Default)]
pub struct Balanced {
    /// Members with room, the next one first. Only who gets a message loses room, so that but for leaving all
    /// happens at the ends.
    round: VecDeque<MemberKey>,
}

impl Balanced {
    pub fn next(&self) -> Option<MemberKey> {
        self.round.front().copied()
    }

    /// Puts the member at the end of the round, if it has room and is not in it.
    pub fn note_room(&mut self, key: MemberKey, members: &mut Slab<Member>) {
        let member = &mut members[key];
        if !member.is_in_round && member.has_room() {
            member.is_in_round = true;
            self.round.push_back(key);
        }
    }

    /// The first of the round got a message.
    pub fn had_its_turn(&mut self, key: MemberKey, members: &mut Slab<Member>) {
        let first = self.round.pop_front();
        debug_assert_eq!(first, Some(key), "whose turn it is gets the message");
        members[key].is_in_round = false;
        self.note_room(key, members);
    }

    pub fn remove(&mut self, key: MemberKey, members: &mut Slab<Member>) {
        if std::mem::take(&mut members[key].is_in_round) {
            self.round.retain(|&other| other != key);
        }
    }

    pub fn is_in_round(&self, key: MemberKey) -> bool {
        self.round.contains(&key)
    }
}
