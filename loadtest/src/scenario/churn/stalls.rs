//! When a group stood still although messages waited for it.

use std::time::Duration;

use crate::clock::Nanos;

/// A message that comes later than this after its intended time has waited in a stall.
pub const LATE: Duration = Duration::from_millis(250);

/// Of one group, the stall that may still go on.
#[derive(Debug, Default)]
pub struct Waits {
    /// When its last late message came.
    until: Option<Nanos>,
}

/// Of all groups. A stall is a row of late messages of one group, each of which waited already when the one
/// before came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stalls {
    pub count: u64,
    /// Messages that came late.
    pub late: u64,
    /// The longest time that one of them took.
    pub longest: Nanos,
}

impl Waits {
    /// A message of the group came; the oldest that waits comes first, or shows when its turn comes.
    pub fn came(&mut self, intended: Nanos, now: Nanos, stalls: &mut Stalls) {
        let took = now.saturating_sub(intended);
        if Duration::from_nanos(took) <= LATE {
            return;
        }
        stalls.late += 1;
        stalls.longest = stalls.longest.max(took);
        if self.until.is_none_or(|until| intended > until) {
            stalls.count += 1;
        }
        self.until = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// Messages by their intended time and the time at which they came, in milliseconds.
    fn stalls(messages: &[(Nanos, Nanos)]) -> (u64, u64, Nanos) {
        let (mut waits, mut stalls) = (Waits::default(), Stalls::default());
        messages.iter().for_each(|(intended, now)| waits.came(intended * MS, now * MS, &mut stalls));
        (stalls.count, stalls.late, stalls.longest / MS)
    }

    #[test]
    fn what_comes_within_the_limit_is_no_stall() {
        assert_eq!(stalls(&[(0, 250), (1000, 1000), (1100, 1101)]), (0, 0, 0));
    }

    #[test]
    fn all_that_waited_together_is_one_stall() {
        // Nothing came from 0 to 400; the last two were punctual again.
        assert_eq!(stalls(&[(0, 400), (50, 400), (100, 401), (200, 402), (390, 402)]), (1, 3, 400));
        // Each waited while the one before was late: the group has never caught up.
        assert_eq!(stalls(&[(0, 300), (300, 600), (550, 900)]), (1, 3, 350));
    }

    #[test]
    fn a_group_may_stall_again() {
        assert_eq!(stalls(&[(0, 300), (310, 311), (400, 800)]), (2, 2, 400));
    }
}
