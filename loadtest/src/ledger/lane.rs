//! A lane: what was sent on it, how its publishes ended, and where its copies are.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::track::Track;
use super::window::{Place, Window};
use super::{ReceiverId, lock};

#[derive(Debug)]
pub struct Lane {
    pub name: String,
    /// Whether the broker owes its messages in their order.
    pub ordered: bool,
    /// Receivers by number.
    audience: Range<u32>,
    /// One for each of the audience.
    tracks: Box<[Mutex<Track>]>,
    sent: AtomicU64,
    pub outcomes: Mutex<Outcomes>,
}

/// What publishers were told.
#[derive(Debug, Default)]
pub struct Outcomes {
    /// Closed: told.
    told: Window<()>,
    pub refused: BTreeSet<u64>,
    /// How many are told to be unknown.
    pub unknown: u64,
}

impl Lane {
    pub fn new(name: String, audience: Range<u32>, ordered: bool) -> Self {
        let tracks = audience.clone().map(|_| Mutex::default()).collect();
        Lane { name, ordered, audience, tracks, sent: AtomicU64::new(0), outcomes: Mutex::default() }
    }

    /// Takes the next sequence numbers; the first of them.
    pub fn send(&self, count: u64) -> u64 {
        self.sent.fetch_add(count, Ordering::AcqRel)
    }

    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Acquire)
    }

    pub fn audience(&self) -> u32 {
        self.audience.end - self.audience.start
    }

    /// None where the receiver is not in the audience.
    pub fn track(&self, receiver: ReceiverId) -> Option<&Mutex<Track>> {
        self.tracks.get(receiver.0.checked_sub(self.audience.start)? as usize)
    }

    pub fn has_refused(&self, sequence: u64) -> bool {
        lock(&self.outcomes).refused.contains(&sequence)
    }

    pub fn tracks(&self) -> impl Iterator<Item = (ReceiverId, &Mutex<Track>)> {
        (self.audience.start..).map(ReceiverId).zip(&self.tracks)
    }
}

impl Outcomes {
    /// Notes that a publish has an outcome; false where it had one.
    pub fn tell(&mut self, sequence: u64) -> bool {
        let is_first = self.told.look(sequence) != Place::Closed;
        self.told.close(sequence);
        is_first
    }

    pub fn is_told(&self, sequence: u64) -> bool {
        self.told.look(sequence) == Place::Closed
    }

    /// How many of so many sent have no outcome.
    pub fn untold(&self, sent: u64) -> u64 {
        self.told.iter().count() as u64 + sent.saturating_sub(self.told.end())
    }
}
