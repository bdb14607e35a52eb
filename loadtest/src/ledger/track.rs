//! What became of one lane's messages at one receiver.

use super::receiver::Receiver;
use super::verdict::Promise;
use super::window::{Place, Window};

/// The copies that one receiver is to get of one lane, and where each is (the states: see the ledger).
///
/// About 64 bytes, and 16 for each copy that is held, that was overtaken, or whose ack is not certain while
/// members may die.
#[derive(Debug, Default)]
pub struct Track {
    /// Above the newest message that came and was not excused.
    reached: u64,
    /// Closed: final.
    copies: Window<Copied>,
}

/// A copy that is not final.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    state: State,
    /// Its publish has no known outcome: it may come or not, early or late.
    excused: bool,
    /// Of the last delivery, as far as it fits.
    attempt: u16,
    /// Who had it last.
    member: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Awaited,
    Held,
    /// Without certainty.
    Acked,
}

/// What a delivery found.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    pub was: Was,
    /// Above the newest message that had come before.
    pub reached: u64,
    /// The outcome of its publish is unknown.
    pub excused: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Was {
    Awaited,
    /// With one that lived: the delivery is wrong and changes nothing.
    Held {
        by: u32,
    },
    /// By one that lived: the delivery is wrong and changes nothing.
    Acked {
        by: u32,
    },
    /// With one that died.
    Returned {
        from: u32,
        attempt: u16,
    },
    /// Acked by one that died, so that the ack may never have arrived.
    AckLost {
        by: u32,
        attempt: u16,
    },
    /// The delivery is wrong and changes nothing.
    Final,
}

/// Why a copy is not final at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    NeverCame,
    /// Its holder neither died nor settled it.
    Unsettled(u32),
    /// Its holder died, and nobody got it again.
    NeverReturned(u32),
}

impl Track {
    /// A delivery; final where no ack is asked for it.
    pub fn deliver(
        &mut self,
        sequence: u64,
        member: u32,
        attempt: u32,
        asks_ack: bool,
        is_dead: impl Fn(u32) -> bool,
    ) -> Found {
        let place = self.copies.look(sequence);
        let copy = match place {
            Place::Open(copy) => copy,
            Place::Untouched | Place::Closed => Copied::default(),
        };
        let Copied { state, member: by, attempt: earlier, excused } = copy;
        let was = match state {
            _ if place == Place::Closed => Was::Final,
            State::Awaited => Was::Awaited,
            State::Held if is_dead(by) => Was::Returned { from: by, attempt: earlier },
            State::Held => Was::Held { by },
            State::Acked if is_dead(by) => Was::AckLost { by, attempt: earlier },
            State::Acked => Was::Acked { by },
        };
        let found = Found { was, reached: self.reached, excused };
        if was.is_wrong() {
            return found;
        }
        if !excused {
            self.reached = self.reached.max(sequence + 1);
        }
        if asks_ack {
            let attempt = u16::try_from(attempt).unwrap_or(u16::MAX);
            self.copies.set(sequence, Copied { state: State::Held, member, attempt, excused });
        } else {
            self.copies.close(sequence);
        }
        found
    }

    /// An ack; `is_final`: nothing can make the message come again. Says whether it was the first.
    pub fn ack(&mut self, sequence: u64, member: u32, is_final: bool) -> bool {
        let Place::Open(copy) = self.copies.look(sequence) else { return false };
        if copy.state == State::Awaited || copy.member != member {
            return false;
        }
        if is_final {
            self.copies.close(sequence);
        } else {
            self.copies.set(sequence, Copied { state: State::Acked, ..copy });
        }
        copy.state == State::Held
    }

    /// The publish was refused. Says whether the copy had not come, as it should be.
    pub fn refuse(&mut self, sequence: u64) -> bool {
        let awaited = self.awaits(sequence);
        if awaited {
            self.copies.close(sequence);
        }
        awaited
    }

    /// The publish has no known outcome. Says whether the copy had not come.
    pub fn excuse(&mut self, sequence: u64) -> bool {
        let awaited = self.awaits(sequence);
        match self.copies.look(sequence) {
            Place::Untouched => self.copies.set(sequence, Copied { excused: true, ..Copied::default() }),
            Place::Open(copy) => self.copies.set(sequence, Copied { excused: true, ..copy }),
            Place::Closed => {}
        }
        awaited
    }

    fn awaits(&self, sequence: u64) -> bool {
        match self.copies.look(sequence) {
            Place::Untouched => true,
            Place::Open(copy) => copy.state == State::Awaited,
            Place::Closed => false,
        }
    }

    /// The copies of so many messages sent that should be final when all is quiet.
    pub fn missing(
        &self,
        sent: u64,
        is_confirmed: impl Fn(u64) -> bool,
        is_dead: impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = (u64, Missing)> {
        let untouched = (self.copies.end()..sent).map(|sequence| (sequence, Copied::default()));
        self.copies.iter().chain(untouched).filter_map(move |(sequence, copy)| {
            let missing = match copy.state {
                State::Awaited if !copy.excused && is_confirmed(sequence) => Missing::NeverCame,
                State::Held if is_dead(copy.member) => Missing::NeverReturned(copy.member),
                State::Held => Missing::Unsettled(copy.member),
                State::Awaited | State::Acked => return None,
            };
            Some((sequence, missing))
        })
    }
}

impl Missing {
    /// The promise it breaks, and how to say it after `message 7 of lane "a"`.
    pub fn say(self, receiver: &Receiver) -> (Promise, String) {
        match self {
            Missing::NeverCame => (Promise::Lost, format!("never came to \"{}\"", receiver.name)),
            Missing::NeverReturned(holder) => {
                (Promise::Lost, format!("never came again after the death of {}", receiver.member(holder)))
            }
            Missing::Unsettled(holder) => {
                (Promise::Unsettled, format!("came to {} and was never settled", receiver.member(holder)))
            }
        }
    }
}

impl Found {
    /// Whether the copy was outstanding.
    pub fn was_outstanding(&self) -> bool {
        match self.was {
            Was::Awaited => !self.excused,
            Was::Held { .. } | Was::Returned { .. } => true,
            Was::Acked { .. } | Was::AckLost { .. } | Was::Final => false,
        }
    }

    /// The member that had it and died.
    pub fn returned_from(&self) -> Option<u32> {
        match self.was {
            Was::Returned { from, .. } | Was::AckLost { by: from, .. } => Some(from),
            _ => None,
        }
    }

    /// 0 where it had not come yet.
    pub fn earlier_attempt(&self) -> u32 {
        match self.was {
            Was::Returned { attempt, .. } | Was::AckLost { attempt, .. } => attempt.into(),
            _ => 0,
        }
    }
}

impl Was {
    fn is_wrong(self) -> bool {
        matches!(self, Was::Held { .. } | Was::Acked { .. } | Was::Final)
    }
}
