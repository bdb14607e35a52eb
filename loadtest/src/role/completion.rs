//! When a message has reached the last of its receivers.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Of one lane, whose messages go to so many receivers each.
pub struct Completion {
    receivers: u32,
    window: Mutex<Window>,
}

/// The messages that have reached some and not all.
#[derive(Default)]
struct Window {
    /// Below this all are complete.
    base: u64,
    /// How many each has reached, from `base` on.
    reached: VecDeque<u32>,
}

impl Completion {
    pub fn new(receivers: u32) -> Self {
        Completion { receivers, window: Mutex::default() }
    }

    /// A message reached one more receiver: was that the last one?
    pub fn is_complete(&self, sequence: u64) -> bool {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = sequence.checked_sub(window.base) else { return false };
        let at = at as usize;
        if window.reached.len() <= at {
            window.reached.resize(at + 1, 0);
        }
        window.reached[at] += 1;
        let is_complete = window.reached[at] == self.receivers;
        while window.reached.front() == Some(&self.receivers) {
            window.reached.pop_front();
            window.base += 1;
        }
        is_complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_all_completes_a_message_in_whatever_order() {
        let completion = Completion::new(2);
        let arrivals = [0, 2, 1, 2, 0, 0, 1, 3, 3];
        let complete: Vec<bool> = arrivals.iter().map(|&sequence| completion.is_complete(sequence)).collect();
        // The third arrival of message 0 is a double, which is the ledger's to tell.
        assert_eq!(complete, [false, false, false, true, true, false, true, false, true]);
    }
}
