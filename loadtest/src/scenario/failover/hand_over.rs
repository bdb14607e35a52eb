//! One kill, and what was to come to others after it.

use ahash::AHashSet;

use super::Way;
use crate::clock::Nanos;
use crate::ledger::LaneId;

/// A message of a lane.
pub type Id = (LaneId, u64);

#[derive(Debug)]
pub struct HandOver {
    pub way: Way,
    /// The moment before.
    pub killed: Nanos,
    /// What the victim held and nobody has got yet.
    awaited: AHashSet<Id>,
    awaits_promotion: bool,
    promoted: Option<Nanos>,
    first: Option<Nanos>,
}

impl HandOver {
    pub fn new(way: Way, killed: Nanos, held: AHashSet<Id>, awaits_promotion: bool) -> Self {
        HandOver { way, killed, awaited: held, awaits_promotion, promoted: None, first: None }
    }

    /// A message came to another. Members in other processes are heard late, so the earliest need not be the first.
    pub fn came(&mut self, id: Id, at: Nanos) {
        if self.awaited.remove(&id) {
            self.first = Some(self.first.map_or(at, |first| first.min(at)));
        }
    }

    /// The first frame came to another.
    pub fn promoted(&mut self, at: Nanos) {
        self.promoted.get_or_insert(at);
    }

    /// Whether all has come that was to come.
    pub fn is_complete(&self) -> bool {
        self.awaited.is_empty() && (!self.awaits_promotion || self.promoted.is_some())
    }

    /// From the kill to the first message that the victim held, at another.
    pub fn redelivery(&self) -> Option<Nanos> {
        self.first.map(|at| at.saturating_sub(self.killed))
    }

    /// From the kill to the first frame at the next one.
    pub fn promotion(&self) -> Option<Nanos> {
        self.promoted.map(|at| at.saturating_sub(self.killed))
    }

    /// What is missing.
    pub fn missing(&self) -> String {
        let messages = match self.awaited.len() {
            1 => "1 message".to_owned(),
            many => format!("{many} messages"),
        };
        if self.awaits_promotion && self.promoted.is_none() {
            format!("its place and {messages}")
        } else {
            messages
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(sequences: impl IntoIterator<Item = u64>) -> AHashSet<Id> {
        sequences.into_iter().map(|sequence| (LaneId(0), sequence)).collect()
    }

    #[test]
    fn the_earliest_of_what_was_held_counts() {
        let mut hand_over = HandOver::new(Way::Cut, 100, held([5, 6, 7]), false);
        hand_over.came((LaneId(0), 8), 110);
        hand_over.came((LaneId(1), 5), 111);
        assert_eq!(hand_over.redelivery(), None, "none of these was held");
        hand_over.came((LaneId(0), 6), 140);
        hand_over.came((LaneId(0), 5), 120);
        assert!(!hand_over.is_complete());
        assert_eq!(hand_over.missing(), "1 message");
        hand_over.came((LaneId(0), 7), 150);
        assert!(hand_over.is_complete());
        assert_eq!((hand_over.redelivery(), hand_over.promotion()), (Some(20), None));
    }

    #[test]
    fn a_place_is_handed_on_too_where_there_is_one() {
        let mut hand_over = HandOver::new(Way::Process, 100, held([1, 2]), true);
        assert_eq!(hand_over.missing(), "its place and 2 messages");
        hand_over.came((LaneId(0), 1), 130);
        hand_over.came((LaneId(0), 2), 130);
        assert!(!hand_over.is_complete());
        hand_over.promoted(125);
        hand_over.promoted(400);
        assert!(hand_over.is_complete());
        assert_eq!((hand_over.promotion(), hand_over.redelivery()), (Some(25), Some(30)));
    }
}
