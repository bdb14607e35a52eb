//! The order in which one member may get the messages of a lane.
//!
//! The broker promises that a waiting queue is in publish order; messages leave it from the front. What a member
//! may see follows from that:
//!
//! - A first attempt never left the queue before, so it is younger than all that did: than all that this member
//!   had.
//! - A member gets something older than what it had before only if that came back in between, and that happens
//!   only when a member dies: then all that it held comes back at once. So each step back takes a death of its
//!   own, and what came back from one member comes in order.
//! - While a member of a SINGLETON group is active nobody else holds anything, so nothing comes back: there is no
//!   step back at all. Nor is there in MULTI, where nothing ever comes back.
//!
//! A message whose publish has no known outcome takes no part: it may be enqueued at any time.

use ahash::AHashMap;

use super::{Kind, LaneId};

/// What came to one member of a group.
#[derive(Debug, Default)]
pub struct Order {
    lanes: AHashMap<LaneId, Seen>,
    /// By lane and member that died: the newest that came back from it.
    returned: AHashMap<(LaneId, u32), u64>,
}

#[derive(Debug)]
struct Seen {
    last: u64,
    newest: u64,
    steps_back: u32,
}

/// A message that comes.
#[derive(Debug, Clone, Copy)]
pub struct Coming {
    pub lane: LaneId,
    pub sequence: u64,
    pub is_first_attempt: bool,
    /// The member that had it and died, if this is the very next attempt: nobody had it in between.
    pub from: Option<u32>,
}

impl Order {
    /// Takes note of a message. Where it comes too late: the newer one that it should not have come after.
    ///
    /// `deaths`: how many members the group has lost by now.
    pub fn overtaken_by(&mut self, coming: Coming, kind: Kind, deaths: u32) -> Option<u64> {
        let Coming { lane, sequence, is_first_attempt, from } = coming;
        let nothing = Seen { last: sequence, newest: sequence, steps_back: 0 };
        let seen = self.lanes.entry(lane).or_insert(nothing);
        let (last, newest) = (seen.last, seen.newest);
        seen.last = sequence;
        seen.newest = newest.max(sequence);
        seen.steps_back += u32::from(sequence < last);

        let allowed = if kind == Kind::Balanced { deaths } else { 0 };
        if is_first_attempt && sequence < newest {
            return Some(newest);
        }
        if sequence < last && seen.steps_back > allowed {
            return Some(last);
        }
        let from = from?;
        let newest = self.returned.entry((lane, from)).or_insert(sequence);
        let before = std::mem::replace(newest, sequence.max(*newest));
        (sequence < before).then_some(before)
    }
}
