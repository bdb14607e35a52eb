use slab::Slab;

use super::MemberKey;
use super::balanced::Balanced;
use super::member::Member;
use super::singleton::Singleton;
use crate::model::Mode;

/// Who of a subscription's members gets the next message.
#[derive(Debug)]
pub enum Roster {
    /// The one stream of a MULTI subscription; `None` while the subscription lingers.
    Multi(Option<MemberKey>),
    Balanced(Balanced),
    Singleton(Singleton),
}

impl Roster {
    pub fn new(mode: Mode) -> Self {
        match mode {
            Mode::Multi => Roster::Multi(None),
            Mode::Balanced => Roster::Balanced(Balanced::default()),
            Mode::Singleton => Roster::Singleton(Singleton::default()),
        }
    }

    /// A member has joined.
    pub fn add(&mut self, key: MemberKey, members: &mut Slab<Member>) {
        match self {
            Roster::Multi(stream) => {
                debug_assert!(stream.is_none(), "a MULTI subscription has one stream");
                *stream = Some(key);
            }
            Roster::Balanced(balanced) => balanced.note_room(key, members),
            Roster::Singleton(singleton) => singleton.line_up(key, members),
        }
    }

    /// A member leaves; it is still in `members`.
    pub fn remove(&mut self, key: MemberKey, members: &mut Slab<Member>) {
        match self {
            Roster::Multi(stream) => *stream = None,
            Roster::Balanced(balanced) => balanced.remove(key, members),
            Roster::Singleton(singleton) => singleton.remove(key, members),
        }
    }

    /// The member whose turn it is, among those with room.
    pub fn next(&self, members: &Slab<Member>) -> Option<MemberKey> {
        match self {
            Roster::Multi(stream) => stream.filter(|&key| members[key].has_room()),
            Roster::Balanced(balanced) => balanced.next(),
            Roster::Singleton(singleton) => singleton.active().filter(|&key| members[key].has_room()),
        }
    }

    /// A member got a message: it goes to the end of the round.
    pub fn had_its_turn(&mut self, key: MemberKey, members: &mut Slab<Member>) {
        if let Roster::Balanced(balanced) = self {
            balanced.had_its_turn(key, members);
        }
    }

    /// A member may have got room.
    pub fn note_room(&mut self, key: MemberKey, members: &mut Slab<Member>) {
        if let Roster::Balanced(balanced) = self {
            balanced.note_room(key, members);
        }
    }

    /// Members that wait for a promotion.
    pub fn standbys(&self) -> usize {
        match self {
            Roster::Singleton(singleton) => singleton.standbys(),
            _ => 0,
        }
    }
}
