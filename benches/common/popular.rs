//! Topics that come again and again, beside patterns that come and go.

use std::collections::VecDeque;
use std::hint::black_box;

use tinybroker::pattern::{Index, Pattern};

use crate::workload::{Workload, mixed};

const TOPICS: usize = 1_000;
/// Each so many messages one pattern goes and another comes.
const MESSAGES_A_CHANGE: usize = 200;

pub struct Popular {
    topics: Vec<String>,
    next: usize,
    guests: VecDeque<[Pattern; 1]>,
    messages: usize,
    keys: Vec<usize>,
}

impl Popular {
    pub const fn workload() -> Workload {
        Workload { text: mixed, size: 100_000 }
    }

    pub fn new() -> Self {
        Self {
            topics: (0..TOPICS).map(|nth| Self::workload().topic(nth)).collect(),
            next: 0,
            guests: Self::workload().guests(),
            messages: 0,
            keys: Vec::new(),
        }
    }

    pub fn look_up(&mut self, index: &mut Index<usize>) {
        self.next = (self.next + 1) % TOPICS;
        self.keys.clear();
        index.matching(&self.topics[self.next], &mut self.keys);
        black_box(&self.keys);
    }

    /// To be called with each message.
    pub fn change_now_and_then(&mut self, index: &mut Index<usize>) {
        if self.messages.is_multiple_of(MESSAGES_A_CHANGE) {
            index.remove(usize::MAX, &self.guests[0]);
            self.guests.rotate_left(1);
            index.insert(usize::MAX, &self.guests[0]).expect("there is room");
        }
        self.messages += 1;
    }
}

impl Workload {
    /// Patterns of the same kind that the index does not hold, for one after the other to come and go.
    pub fn guests(&self) -> VecDeque<[Pattern; 1]> {
        (0..1024).map(|nth| [self.pattern(self.size + nth)]).collect()
    }
}
