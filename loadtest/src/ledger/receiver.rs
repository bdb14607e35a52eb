//! A receiver: a consumer group with its members, or one MULTI subscriber.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Kind, lock};

/// No member was active yet.
const NOBODY: u32 = u32::MAX;

#[derive(Debug)]
pub struct Receiver {
    pub name: String,
    pub kind: Kind,
    /// By member: whether it died.
    dead: Mutex<Vec<bool>>,
    deaths: AtomicU32,
    /// Of a SINGLETON group: the member that got the last delivery.
    active: AtomicU32,
    delivered: AtomicU64,
}

impl Receiver {
    pub fn new(name: String, kind: Kind) -> Self {
        Receiver {
            name,
            kind,
            dead: Mutex::default(),
            deaths: AtomicU32::new(0),
            active: AtomicU32::new(NOBODY),
            delivered: AtomicU64::new(0),
        }
    }

    /// A new member's number, from 0.
    pub fn join(&self) -> u32 {
        let mut dead = lock(&self.dead);
        assert!(self.kind != Kind::Multi || dead.is_empty(), "\"{}\" has one member", self.name);
        dead.push(false);
        dead.len() as u32 - 1
    }

    /// One more delivery.
    pub fn count(&self) {
        self.delivered.fetch_add(1, Ordering::Relaxed);
    }

    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    pub fn died(&self, member: u32) {
        lock(&self.dead)[member as usize] = true;
        self.deaths.fetch_add(1, Ordering::AcqRel);
    }

    pub fn is_dead(&self, member: u32) -> bool {
        lock(&self.dead)[member as usize]
    }

    pub fn deaths(&self) -> u32 {
        self.deaths.load(Ordering::Acquire)
    }

    /// Notes who is active in a SINGLETON group; the one that was and has not died, where there is such a one.
    pub fn activate(&self, member: u32) -> Option<u32> {
        if self.active.load(Ordering::Acquire) == member {
            return None;
        }
        let dead = lock(&self.dead);
        let before = self.active.swap(member, Ordering::AcqRel);
        (before != NOBODY && !dead[before as usize]).then_some(before)
    }

    /// How a member is called in a verdict.
    pub fn member(&self, number: u32) -> MemberName<'_> {
        MemberName { receiver: self, number }
    }
}

pub struct MemberName<'a> {
    receiver: &'a Receiver,
    number: u32,
}

impl fmt::Display for MemberName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Receiver { name, kind, .. } = self.receiver;
        match kind {
            Kind::Multi => write!(f, "\"{name}\""),
            Kind::Balanced | Kind::Singleton => write!(f, "member {} of \"{name}\"", self.number),
        }
    }
}
